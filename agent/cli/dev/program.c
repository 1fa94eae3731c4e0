/* A program beside this one. Surprising: its end is waited for with SIGCHLD blocked, taken by
 * sigtimedwait(), so that nothing is polled. */
#include "cli/dev/program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void program_init(struct program *c, void (*take_line)(void *arg, char *line),
	void (*take_error)(void *arg, char *line), void *arg)
{
	memset(c, 0, sizeof(*c));
	c->out.take_line = take_line;
	c->err.take_line = take_error;
	c->out.arg = c->err.arg = arg;
	c->out.watch.fd = c->err.watch.fd = -1;
}

/* ---- lines ---- */

static void end_output_line(struct stream *s)
{
	s->line[s->len] = '\0';
	s->len = 0;
	s->take_line(s->arg, s->line);
}

static void take_program_bytes(struct stream *s, const char *data, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (data[i] == '\n')
			end_output_line(s);
		else if (s->len < sizeof(s->line) - 1)
			s->line[s->len++] = data[i];
}

static void close_stream(struct stream *s)
{
	int fd = s->watch.fd;

	if (fd < 0)
		return;
	if (s->watch.event)
		loop_unwatch(&s->watch);
	s->watch.fd = -1;
	close(fd);
	if (s->len)
		end_output_line(s);
}

static void output_ready(void *arg, int fd, unsigned events)
{
	struct stream *s = arg;
	char data[4096];
	ssize_t n;

	(void)events;
	while ((n = read(fd, data, sizeof(data))) > 0)
		take_program_bytes(s, data, (size_t)n);
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		close_stream(s);
}

static int open_stream(struct stream *s, struct loop *l, int *ret_write)
{
	int fds[2], r;

	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	fcntl(fds[0], F_SETFL, O_NONBLOCK);
	*ret_write = fds[1];
	r = loop_watch(l, &s->watch, fds[0], LOOP_READ, output_ready, s);
	s->watch.fd = fds[0];
	return r;
}

/* ---- start ---- */

/* In the child. Returns only on failure. */
static void exec_dev_program(
	char *const argv[], const sigset_t *mask, int out, int err, pid_t parent)
{
	static const int ignored[] = {SIGPIPE, SIGHUP, SIGINT, SIGTERM, SIGCHLD};
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(1);
	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		signal(ignored[i], SIG_DFL);
	unsetenv("NOTIFY_SOCKET"); /* systemd's, for another program */
	unsetenv("WATCHDOG_USEC");
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 ||
		dup2(err, STDERR_FILENO) < 0 || setpgid(0, 0) ||
		sigprocmask(SIG_SETMASK, mask, NULL))
		return;
	execv(argv[0], argv);
}

int program_start(struct program *c, struct loop *l, char *const argv[], const sigset_t *mask)
{
	int out = -1, err = -1, r = open_stream(&c->out, l, &out);
	pid_t parent = getpid(), pid = -1;

	if (r == 0)
		r = open_stream(&c->err, l, &err);
	if (r == 0) {
		pid = fork();
		r = pid < 0 ? -errno : 0;
	}
	if (pid == 0) {
		exec_dev_program(argv, mask, out, err, parent);
		dprintf(STDERR_FILENO, "cannot start %s: %s\n", argv[0], strerror(errno));
		_exit(127);
	}
	if (out >= 0)
		close(out);
	if (err >= 0)
		close(err);
	if (r == 0)
		c->pid = pid;
	return r;
}

/* ---- the end ---- */

bool program_reap(struct program *c)
{
	if (c->pid == 0 || waitpid(c->pid, &c->status, WNOHANG) != c->pid)
		return false;
	c->pid = 0;
	c->ended = true;
	for (struct stream *s = &c->out; s; s = s == &c->out ? &c->err : NULL) {
		if (s->watch.fd >= 0)
			output_ready(s, s->watch.fd, LOOP_READ);
		close_stream(s);
	}
	return true;
}

void program_end(struct program *c, uint64_t timeout_ms)
{
	uint64_t end_ms = sys_real.now_ms() + timeout_ms;
	struct timespec left;
	sigset_t chld;

	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	if (c->pid)
		kill(c->pid, SIGTERM);
	while (c->pid && !program_reap(c)) {
		uint64_t t = sys_real.now_ms();

		if (t >= end_ms) {
			kill(-c->pid, SIGKILL);
			end_ms = UINT64_MAX;
			continue;
		}
		left.tv_sec = (time_t)((end_ms - t) / 1000);
		left.tv_nsec = (long)((end_ms - t) % 1000) * 1000000;
		sigtimedwait(&chld, NULL, end_ms == UINT64_MAX ? NULL : &left);
	}
	close_stream(&c->out);
	close_stream(&c->err);
}
