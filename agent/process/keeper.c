/*
 * Kills all descendants of a program, whose orphans become children of this process.
 *
 * Surprising: a fork bomb is not stopped first. KILL is sent to a process before its children are
 * listed: from then on it can neither start nor reap any, so the list is final, its numbers stay
 * valid, and the next round finds only children born before. Killing is some hundred times quicker
 * than forking.
 */
#include "process/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_SWEPT 65536 /* descriptors closed one by one where close_range() is missing */
#define MAX_LINE 4096   /* processes killed in one round */
#define ROUND_MS 100    /* at most between two rounds */

struct keeper {
	const struct keeper_plan *plan;
	pid_t agent, self, program;
	int ends; /* readable when a child has ended; -1 = poll */
	bool ended;
};

static pid_t line[MAX_LINE]; /* touched by keepers, and by a sweep */

/* ---- the program ---- */

static void close_from(unsigned first)
{
	struct rlimit limit;

	if (syscall(SYS_close_range, first, ~0u, 0u) == 0)
		return;
	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur > MAX_SWEPT)
		limit.rlim_cur = MAX_SWEPT;
	for (unsigned fd = first; fd < limit.rlim_cur; fd++)
		close((int)fd);
}

/* Everything but exec. 0 or errno. */
static int prepare_child(const struct keeper *k)
{
	struct sigaction usual = {.sa_handler = SIG_DFL};
	sigset_t none;
	int fds[3];

	for (int i = 0; i < 3; i++) {
		fds[i] = fcntl(k->plan->fds[i], F_DUPFD, 3); /* it may stand at 0 to 2 itself */
		if (fds[i] < 0)
			return errno;
	}
	for (int i = 0; i < 3; i++)
		if (dup2(fds[i], i) < 0)
			return errno;
	close_from(3);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL))
		return errno;
	if (getppid() != k->self)
		return ESRCH; /* it ended before the line above */
	/* else a program of another user could come of it, and could not be killed */
	if (geteuid() != 0 && prctl(PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L))
		return errno;
	if (setpgid(0, 0) || chdir("/"))
		return errno;
	umask(022);
	for (int i = 1; i < NSIG; i++)
		sigaction(i, &usual, NULL); /* KILL, STOP and libc's own refuse */
	sigemptyset(&none);
	return sigprocmask(SIG_SETMASK, &none, NULL) ? errno : 0;
}

__attribute__((noreturn)) static void become_program(const struct keeper *k)
{
	int error = prepare_child(k);

	if (error == 0) {
		execve(k->plan->argv[0], k->plan->argv, k->plan->env);
		error = errno;
	}
	k->plan->report->start_error = error;
	_exit(127);
}

/* fork() without the locks of libc, which a child of a process with threads must not take. */
static pid_t fork_bare(void)
{
#ifdef __s390__
	return (pid_t)syscall(SYS_clone, 0UL, (unsigned long)SIGCHLD, 0UL, 0UL, 0UL);
#else
	return (pid_t)syscall(SYS_clone, (unsigned long)SIGCHLD, 0UL, 0UL, 0UL, 0UL);
#endif
}

/* ---- descendants ---- */

static char *add_chars(char *to, const char *text)
{
	while (*text)
		*to++ = *text++;
	return to;
}

static char *add_digits(char *to, pid_t n)
{
	char digits[16];
	size_t count = 0;

	do
		digits[count++] = (char)('0' + n % 10);
	while ((n /= 10) > 0);
	while (count > 0)
		*to++ = digits[--count];
	return to;
}

/* Appends the children of a process's first thread; those of other threads follow when it has
 * ended. */
static size_t read_children(pid_t pid, pid_t pids[MAX_LINE], size_t count)
{
	char path[64], piece[1024], *end = add_chars(path, "/proc/");
	ssize_t n;
	pid_t child = 0;
	int fd;

	end = add_chars(add_digits(end, pid), "/task/");
	*add_chars(add_digits(end, pid), "/children") = '\0';
	fd = open(path, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && (n = read(fd, piece, sizeof(piece))) > 0)
		for (ssize_t i = 0; i < n; i++) {
			if (piece[i] >= '0' && piece[i] <= '9') {
				child = child * 10 + (piece[i] - '0');
				continue;
			}
			if (child > 0 && count < MAX_LINE)
				pids[count++] = child;
			child = 0;
		}
	if (fd >= 0)
		close(fd);
	return count;
}

/* Kills line[0] to line[count - 1] and their descendants. */
static void kill_line(size_t count)
{
	for (size_t i = 0; i < count; i++) {
		kill(line[i], SIGKILL);
		count = read_children(line[i], line, count);
	}
}

/* ---- the keeper ---- */

static uint64_t boottime_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Counts processes that the ended, not yet reaped program left running. */
static unsigned count_left(const struct keeper *k)
{
	size_t count = read_children(k->self, line, 0);
	unsigned left = 0;
	siginfo_t info;

	for (size_t i = 0; i < count; i++) {
		if (line[i] == k->program)
			continue;
		info.si_pid = 0;
		waitid(P_PID, (id_t)line[i], &info, WEXITED | WNOHANG);
		left += info.si_pid == 0;
	}
	return left;
}

/* Reaps all ended children. False when no child is left. */
static bool reap_children(struct keeper *k)
{
	volatile struct keeper_report *report = k->plan->report;
	siginfo_t info = {0};

	while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0) {
		if (info.si_pid == 0)
			return true;
		if (info.si_pid == k->program) {
			report->left = count_left(k);
			kill(-k->program, SIGKILL); /* while the number is surely its own */
			report->status = info.si_status;
			report->code = info.si_code;
			k->ended = true;
		}
		waitid(P_PID, (id_t)info.si_pid, &info, WEXITED | WNOHANG);
		info.si_pid = 0;
	}
	return errno != ECHILD;
}

/* Sends TERM to the group and to orphans outside of it, whose numbers cannot be reused yet. */
static void terminate_program(const struct keeper *k)
{
	size_t count = read_children(k->self, line, 0);

	kill(-k->program, SIGTERM);
	for (size_t i = 0; i < count; i++)
		if (getpgid(line[i]) != k->program)
			kill(line[i], SIGTERM);
}

static void drain_ends(const struct keeper *k)
{
	struct signalfd_siginfo info;

	while (k->ends >= 0 && read(k->ends, &info, sizeof(info)) > 0)
		;
}

/* Returns when the program has ended or the lifeline is closed. */
static void watch_program(struct keeper *k)
{
	struct pollfd fds[2] = {{.fd = 0, .events = POLLIN}, {.fd = k->ends, .events = POLLIN}};
	char byte;

	while (reap_children(k) && !k->ended) {
		poll(fds, 2, k->ends < 0 ? ROUND_MS : -1);
		drain_ends(k);
		if (!fds[0].revents)
			continue;
		if (read(0, &byte, 1) <= 0)
			return;
		terminate_program(k);
	}
}

/* Kills until nothing is left. While the agent lives, processes that hang in the kernel are not
 * waited for, except the program itself. */
static void kill_all(struct keeper *k)
{
	struct pollfd ends = {.fd = k->ends, .events = POLLIN};
	uint64_t until_ms = boottime_ms() + KEEPER_WAIT_MS;
	int wait_ms = 1;
	size_t count;

	while (reap_children(k)) {
		if (!k->ended)
			kill(-k->program, SIGKILL); /* all at once, unlike what follows */
		count = read_children(k->self, line, 0);
		kill_line(count);
		if (k->ended && boottime_ms() >= until_ms && (!count || getppid() == k->agent))
			return;
		poll(&ends, 1, wait_ms);
		drain_ends(k);
		wait_ms = wait_ms < ROUND_MS ? wait_ms * 2 : ROUND_MS;
	}
}

__attribute__((noreturn)) static void keep_program(struct keeper *k)
{
	sigset_t child;

	k->self = getpid();
	setpgid(0, 0);
	prctl(PR_SET_NAME, "hook-keeper"); /* not killed with "pkill pulletd" */
	if (prctl(PR_SET_CHILD_SUBREAPER, 1L) == 0)
		k->program = fork_bare();
	if (k->program == 0)
		become_program(k);
	if (k->program < 0) {
		k->plan->report->start_error = errno;
		_exit(127);
	}
	setpgid(k->program, k->program); /* so does the program: the first one counts */
	dup2(k->plan->lifeline, 0);
	close_from(1);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	k->ends = signalfd(-1, &child, SFD_NONBLOCK | SFD_CLOEXEC);
	watch_program(k);
	kill_all(k);
	_exit(0);
}

/* ---- the agent ---- */

pid_t keeper_start(const struct keeper_plan *plan)
{
	struct keeper k = {.plan = plan, .agent = getpid(), .program = -1};
	sigset_t all, before;
	pid_t pid;
	int error;

	/* blocked until the children are set up; the keeper handles none */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pid = fork();
	if (pid == 0)
		keep_program(&k);
	error = errno;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return pid < 0 ? -error : pid;
}

unsigned keeper_sweep(bool (*is_kept)(pid_t pid))
{
	size_t all = read_children(getpid(), line, 0), count = 0;
	siginfo_t info;

	for (size_t i = 0; i < all; i++)
		if (!is_kept(line[i]))
			line[count++] = line[i];
	all = count;
	kill_line(all);
	for (size_t i = 0; i < all; i++)
		waitid(P_PID, (id_t)line[i], &info, WEXITED | WNOHANG);
	return (unsigned)all;
}

unsigned keeper_signal_children(int signo)
{
	size_t count = read_children(getpid(), line, 0);

	for (size_t i = 0; i < count; i++)
		kill(line[i], signo);
	return (unsigned)count;
}
