/*
 * A user's program below a keeper, which is watched by a pidfd.
 *
 * Surprising: the keeper reports how the program ended, or why it could not start, in a page shared
 * with the agent; the agent waits for the end of the keeper, when no descendant is left. Standard
 * input is a file in memory, so that nothing has to be written while the program runs.
 */
#include "process/process.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/buffer.h"
#include "files/trusted.h"
#include "process/keeper.h"
#include "base/log.h"
#include "base/sys.h"

#ifndef MFD_NOEXEC_SEAL /* Linux 6.3 */
#define MFD_NOEXEC_SEAL 8u
#endif

#define MAX_ENV 64
#define PIECE 65536 /* read in one turn of the loop */
#define FREE_WAIT_MS 1000
#define AGAIN_MS 100 /* between two attempts to kill */
#define SWEEP_MS 10
#define SWEEPS 200

struct stream {
	struct loop_watch watch;
	int fd; /* -1 = closed */
	struct buffer bytes;
	uint64_t dropped;
	int error; /* -ENOMEM: bytes were lost for want of memory */
};

struct process {
	struct loop *loop;
	void (*ended)(void *arg, const struct process_result *result);
	void *arg;
	LIST_ENTRY(process) running;
	char *program;
	pid_t keeper; /* 0 = none: it is not in the list */
	int pidfd;
	int lifeline; /* to the keeper; -1 = closed: all is to be killed */
	struct loop_watch end_watch;
	struct stream output, message;
	bool product;
	uint64_t started_ms, timeout_ms, grace_ms;
	struct loop_timer limit;
	bool timed_out; /* it was asked to end */
	unsigned sweeps;
	volatile struct keeper_report *report;
};

/* Prepared before the keeper is forked. */
struct plan {
	struct keeper_plan keeper;
	char *env[MAX_ENV]; /* NULL behind what is there */
};

static LIST_HEAD(processes, process) running; /* the one list of this process's keepers */
static struct log_limit left_limit;

/* ---- before it ---- */

static int make_program_env(struct plan *plan, char *const *more)
{
	static char path[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
	static char home[] = "HOME=/", lang[] = "LANG=C.UTF-8";
	size_t n = 0;

	plan->env[n++] = path;
	plan->env[n++] = home;
	plan->env[n++] = lang;
	for (; more && *more; more++) {
		if (n == MAX_ENV - 1)
			return -E2BIG;
		plan->env[n++] = *more;
	}
	return 0;
}

/* A sandbox may have no /dev/null: then it is a pipe that nobody writes to. */
static int open_no_input(void)
{
	int ends[2], fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (fd >= 0)
		return fd;
	if (pipe2(ends, O_CLOEXEC))
		return -1;
	close(ends[1]);
	return ends[0];
}

/* A file without a name. */
static int open_unnamed(const char *path)
{
	char why[FILE_WHY];
	int fd, dir = trusted_open_dir(&sys_real, path, TRUSTED_OWN, why);

	if (dir < 0)
		return dir;
	fd = sys_real.openat(dir, ".", O_TMPFILE | O_EXCL | O_RDWR, 0600);
	sys_real.close(dir);
	return fd;
}

/* In memory, or in dir where a sandbox denies that. */
static int open_storage(const char *dir)
{
	int fd = memfd_create("pullet-input", MFD_CLOEXEC | MFD_NOEXEC_SEAL), error;

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create("pullet-input", MFD_CLOEXEC);
	if (fd >= 0 || !dir)
		return fd;
	error = errno;
	fd = open_unnamed(dir);
	errno = error; /* of what usually works */
	return fd;
}

/* A descriptor to read data from. */
static int open_input(const char *data, size_t len, const char *dir)
{
	int fd, error;

	if (!data)
		return open_no_input();
	fd = open_storage(dir);
	for (size_t done = 0; fd >= 0 && done < len;) {
		/* leaves the position at the beginning */
		ssize_t n = pwrite(fd, data + done, len - done, (off_t)done);

		if (n >= 0 || errno == EINTR) {
			done += n > 0 ? (size_t)n : 0;
			continue;
		}
		error = errno;
		close(fd);
		errno = error;
		return -1;
	}
	return fd;
}

static void stream_close(struct stream *s)
{
	loop_unwatch(&s->watch);
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}

/* Reads at most `most` bytes of what is there. False when there is nothing now. */
static bool stream_read(struct stream *s, size_t most)
{
	char piece[PIECE];
	ssize_t n = read(s->fd, piece, most < sizeof(piece) ? most : sizeof(piece));
	size_t fits = s->bytes.max - s->bytes.len;

	if (n < 0 && errno == EINTR)
		return true;
	if (n < 0 && errno == EAGAIN)
		return false;
	if (n <= 0) {
		stream_close(s);
		return false;
	}
	if (fits > (size_t)n)
		fits = (size_t)n;
	if (!s->error)
		s->error = buffer_append(&s->bytes, piece, fits);
	s->dropped += (size_t)n - (s->error ? 0 : fits);
	return true;
}

static void stream_ready(void *arg, int fd, unsigned events)
{
	(void)fd;
	(void)events;
	stream_read(arg, PIECE);
}

/* A pipe: our end watched, the other end is the caller's. */
static int stream_open(struct stream *s, struct loop *l, size_t max, int *ret_fd)
{
	int ends[2];

	buffer_init(&s->bytes, max);
	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	s->fd = ends[0];
	*ret_fd = ends[1];
	if (fcntl(s->fd, F_SETFL, O_NONBLOCK))
		return -errno;
	return loop_watch(l, &s->watch, s->fd, LOOP_READ, stream_ready, s);
}

/* ---- its end ---- */

static void free_process(struct process *p)
{
	loop_timer_cancel(p->loop, &p->limit);
	loop_unwatch(&p->end_watch);
	if (p->pidfd >= 0)
		close(p->pidfd);
	stream_close(&p->output);
	stream_close(&p->message);
	buffer_fini(&p->output.bytes);
	buffer_fini(&p->message.bytes);
	if (p->lifeline >= 0)
		close(p->lifeline);
	free(p->program);
	if (p->report)
		munmap((void *)(uintptr_t)p->report, sizeof(*p->report));
	free(p);
}

/* Reads what is in the pipe now and no more: others may hold it and write for ever. */
static void stream_finish(struct stream *s)
{
	int left = 0;

	ioctl(s->fd, FIONREAD, &left); /* of a closed one nothing is left */
	while (left > 0) {
		uint64_t before = s->bytes.len + s->dropped;

		if (!stream_read(s, (size_t)left))
			break;
		left -= (int)(s->bytes.len + s->dropped - before);
	}
}

static void explain_timeout(const struct process *p, char why[PROCESS_WHY])
{
	bool seconds = p->timeout_ms % 1000 == 0;

	snprintf(why, PROCESS_WHY, "still ran after %" PRIu64 " %s and was killed",
		seconds ? p->timeout_ms / 1000 : p->timeout_ms, seconds ? "s" : "ms");
}

/* The end of a program that did not time out. */
static void explain_end(const struct process *p, struct process_result *r)
{
	r->code = p->report->status;
	if (p->report->code == 0) {
		r->end = PROCESS_SIGNALLED;
		r->code = SIGKILL;
		snprintf(r->why, sizeof(r->why), "was killed with the process that watches it");
	} else if (p->report->code != CLD_EXITED) {
		r->end = PROCESS_SIGNALLED;
		snprintf(r->why, sizeof(r->why), "killed by signal %d", r->code);
	} else if (r->code != 0) {
		snprintf(r->why, sizeof(r->why), "exited with %d", r->code);
	} else if (p->product && p->output.error) {
		snprintf(r->why, sizeof(r->why), "wrote more than there is memory for");
	} else if (p->product && p->output.dropped) {
		snprintf(r->why, sizeof(r->why), "wrote more than %zu bytes", p->output.bytes.max);
	} else {
		r->ok = true;
	}
}

static const char *start_advice(int error)
{
	switch (error) {
	case ENOENT:
		return ": install it, name another one, or mend the #! it begins with";
	case EACCES:
		return ": the agent's user must be able to execute it (chmod +x)";
	case ENOEXEC:
		return ": it is neither a program for this machine nor begins with #!";
	default:
		return sys_advice(error);
	}
}

static void fill_result(const struct process *p, struct process_result *r)
{
	if (p->report->start_error) {
		r->end = PROCESS_NOT_STARTED;
		r->code = p->report->start_error;
		snprintf(r->why, sizeof(r->why), "cannot be started: %s%s", strerror(r->code),
			start_advice(r->code));
	} else if (p->timed_out) {
		r->end = PROCESS_TIMED_OUT;
		explain_timeout(p, r->why);
	} else {
		explain_end(p, r);
		r->left = p->report->left;
	}
}

static bool is_kept(pid_t pid)
{
	const struct process *p = LIST_FIRST(&running);

	while (p && p->keeper != pid)
		p = LIST_NEXT(p, running);
	return p != NULL;
}

static void log_left(const struct process *p, unsigned left)
{
	unsigned suppressed = 0;

	if (log_limit_pass(&left_limit, loop_now_ms(p->loop), p->program, &suppressed))
		log_warn("a program left processes running: they were killed; have a service "
			 "manager start daemons",
			"program", p->program, "processes", LOG_U64(left), "suppressed",
			suppressed ? LOG_U64(suppressed) : NULL);
}

static void finish_process(struct process *p)
{
	struct process_result result = {0};

	stream_finish(&p->output);
	stream_finish(&p->message);
	fill_result(p, &result);
	result.output = p->output.bytes.len ? p->output.bytes.data : "";
	result.output_len = p->output.bytes.len;
	result.message = p->message.bytes.len ? p->message.bytes.data : "";
	result.message_len = p->message.bytes.len;
	result.dropped = p->output.dropped;
	result.took_ms = loop_now_ms(p->loop) - p->started_ms;
	if (result.left)
		log_left(p, result.left);
	p->ended(p->arg, &result);
	free_process(p);
}

/* Kills orphans that the keeper left: all descendants, if it was killed itself. */
static void sweep_orphans(void *arg)
{
	struct process *p = arg;

	if (keeper_sweep(is_kept) > 0 && p->report->code == 0 && !p->report->start_error &&
		p->sweeps++ < SWEEPS)
		loop_timer_set(p->loop, &p->limit, loop_now_ms(p->loop) + SWEEP_MS);
	else
		finish_process(p);
}

static void keeper_ended(void *arg, int fd, unsigned events)
{
	struct process *p = arg;
	siginfo_t info = {0};
	int r;

	(void)fd;
	(void)events;
	r = waitid(P_PID, (id_t)p->keeper, &info, WEXITED | WNOHANG);
	assert(r == 0); /* nobody else reaps it */
	if (info.si_pid == 0)
		return;
	LIST_REMOVE(p, running);
	p->keeper = 0;
	loop_unwatch(&p->end_watch);
	loop_timer_cancel(p->loop, &p->limit);
	loop_timer_init(&p->limit, sweep_orphans, p);
	sweep_orphans(p);
}

/* ---- its time ---- */

/* Makes the keeper kill all descendants; it may have been stopped by SIGSTOP. */
static void cut_lifeline(struct process *p)
{
	if (p->lifeline >= 0)
		close(p->lifeline);
	p->lifeline = -1;
	kill(p->keeper, SIGCONT);
}

/* TERM first, after the grace KILL. */
static void limit_reached(void *arg)
{
	struct process *p = arg;
	struct pollfd end = {.fd = p->pidfd, .events = POLLIN};
	uint64_t wait_ms = AGAIN_MS;

	if (poll(&end, 1, 0) > 0)
		return; /* it has ended, only the loop was late */
	if (p->timed_out) {
		cut_lifeline(p);
	} else {
		p->timed_out = true;
		wait_ms = p->grace_ms;
		if (write(p->lifeline, "", 1) < 0 && errno != EPIPE)
			cut_lifeline(p);
	}
	loop_timer_set(p->loop, &p->limit, loop_now_ms(p->loop) + wait_ms);
}

/* ---- start ---- */

static int watch_end(struct process *p)
{
	p->pidfd = (int)syscall(SYS_pidfd_open, p->keeper, 0u); /* closed on exec by itself */
	if (p->pidfd < 0)
		return -errno;
	return loop_watch(p->loop, &p->end_watch, p->pidfd, LOOP_READ, keeper_ended, p);
}

static int launch_keeper(struct process *p, const struct plan *plan)
{
	pid_t pid;

	if (prctl(PR_SET_CHILD_SUBREAPER, 1L)) /* should a keeper be killed */
		return -errno;
	pid = keeper_start(&plan->keeper);
	if (pid < 0)
		return pid;
	p->keeper = pid;
	LIST_INSERT_HEAD(&running, p, running);
	return watch_end(p);
}

static int make_plan(struct process *p, const struct process_options *o, struct plan *plan)
{
	void *page = mmap(NULL, sizeof(*p->report), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int *fds = plan->keeper.fds, ends[2], r;

	if (page == MAP_FAILED)
		return -errno;
	plan->keeper.report = p->report = page;
	p->program = strdup(o->argv[0]);
	if (!p->program)
		return -ENOMEM;
	plan->keeper.argv = o->argv;
	plan->keeper.env = plan->env;
	r = make_program_env(plan, o->env);
	if (r)
		return r;
	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	plan->keeper.lifeline = ends[0];
	p->lifeline = ends[1];
	fds[0] = open_input(o->input, o->input_len, o->input_dir);
	if (fds[0] < 0)
		return -errno;
	r = stream_open(&p->output, p->loop, o->max_output, &fds[1]);
	if (r == 0 && o->product)
		return stream_open(&p->message, p->loop, PROCESS_MAX_MESSAGE, &fds[2]);
	if (r == 0)
		fds[2] = fcntl(fds[1], F_DUPFD_CLOEXEC, 0);
	return r ? r : fds[2] < 0 ? -errno : 0;
}

static void close_plan(const struct plan *plan)
{
	for (int i = 0; i < 3; i++)
		if (plan->keeper.fds[i] >= 0)
			close(plan->keeper.fds[i]);
	if (plan->keeper.lifeline >= 0)
		close(plan->keeper.lifeline);
}

int process_start(struct loop *l, const struct process_options *o,
	void (*ended)(void *arg, const struct process_result *result), void *arg,
	struct process **ret_process)
{
	struct process *p = calloc(1, sizeof(*p));
	struct plan plan = {.keeper = {.fds = {-1, -1, -1}, .lifeline = -1}};
	int r;

	if (!p)
		return -ENOMEM;
	*p = (struct process){.loop = l,
		.ended = ended,
		.arg = arg,
		.pidfd = -1,
		.lifeline = -1,
		.output.fd = -1,
		.message.fd = -1,
		.product = o->product,
		.started_ms = loop_now_ms(l),
		.timeout_ms = o->timeout_ms,
		.grace_ms = o->grace_ms ? o->grace_ms : PROCESS_GRACE_MS};
	loop_timer_init(&p->limit, limit_reached, p);
	signal(SIGCHLD, SIG_DFL); /* if ignored, the kernel would reap the keeper */
	r = make_plan(p, o, &plan);
	if (r == 0)
		r = launch_keeper(p, &plan);
	close_plan(&plan);
	if (r) {
		process_free(p);
		return r;
	}
	loop_timer_set(l, &p->limit, p->started_ms + p->timeout_ms);
	*ret_process = p;
	return 0;
}

void process_free(struct process *p)
{
	struct pollfd end = {.events = POLLIN};
	siginfo_t info;

	if (!p)
		return;
	if (p->keeper > 0) {
		cut_lifeline(p);
		LIST_REMOVE(p, running);
		end.fd = p->pidfd;
		while (p->pidfd >= 0 && poll(&end, 1, FREE_WAIT_MS) < 0 && errno == EINTR)
			;
		waitid(P_PID, (id_t)p->keeper, &info, WEXITED | (p->pidfd >= 0 ? WNOHANG : 0));
	}
	for (; p->sweeps && p->sweeps < SWEEPS && keeper_sweep(is_kept) > 0; p->sweeps++)
		poll(NULL, 0, SWEEP_MS);
	free_process(p);
}
