/*
 * pullet watch: prints each new version, or runs a command for it.
 *
 * Surprising: TERM, INT and CHLD are blocked except while it waits for a version, and taken
 * synchronously while a command runs, so that none is lost between a check and a sleep; it waits in
 * slices because of the moment that remains.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/pullet.h"
#include "base/descriptors.h"
#include "process/pidfile.h"
#include "base/sys.h"
#include "cli/common/cli.h"
#include "cli/common/options.h"

#define SLICE_MS 1000

struct watcher {
	const char *command, *config, *pid_file;
	char **argv; /* of the command; NULL = none */
	int signal;  /* 0 = none */
	bool now;
	uint64_t timeout_ms; /* UINT64_MAX = none */
	struct pullet *p;
	sigset_t ends, normal; /* what ends the watch; the mask that was there */
};

static volatile sig_atomic_t ended;

static void on_end(int signo)
{
	(void)signo;
	ended = 1;
}

static void block_signals(struct watcher *w)
{
	struct sigaction action = {.sa_handler = on_end};
	sigset_t blocked;

	sigemptyset(&w->ends);
	sigaddset(&w->ends, SIGTERM);
	sigaddset(&w->ends, SIGINT);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	signal(SIGCHLD, SIG_DFL); /* ignored, it would hide the end of a child */
	blocked = w->ends;
	sigaddset(&blocked, SIGCHLD);
	sigprocmask(SIG_BLOCK, &blocked, &w->normal);
}

/* ---- a new version ---- */

static int signal_number(const char *name)
{
	static const struct {
		const char *name;
		int number;
	} table[] = {
		{"HUP", SIGHUP},
		{"INT", SIGINT},
		{"QUIT", SIGQUIT},
		{"USR1", SIGUSR1},
		{"USR2", SIGUSR2},
		{"TERM", SIGTERM},
		{"WINCH", SIGWINCH},
		{"CONT", SIGCONT},
	};

	if (strncmp(name, "SIG", 3) == 0)
		name += 3;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (strcmp(table[i].name, name) == 0)
			return table[i].number;
	return 0;
}

static void signal_pidfile(const struct watcher *w)
{
	char why[FILE_WHY];

	if (pidfile_signal(&sys_real, w->pid_file, w->signal, why))
		cli_note(w->command, "%s", why);
}

/* In the child. Returns only on failure. */
static void run_child(const struct watcher *w)
{
	char generation[24];
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	snprintf(generation, sizeof(generation), "%" PRIu64, pullet_generation(w->p));
	signal(SIGTERM, SIG_DFL); /* a pending one must not run our handler */
	signal(SIGINT, SIG_DFL);
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || setpgid(0, 0) ||
		setenv("PULLET_CONFIG_NAME", w->config, 1) ||
		setenv("PULLET_GENERATION", generation, 1) ||
		setenv("PULLET_VERSION", pullet_version(w->p), 1) ||
		sigprocmask(SIG_SETMASK, &w->normal, NULL))
		return;
	execvp(w->argv[0], w->argv);
}

static void report_exit(const struct watcher *w, int status)
{
	uint64_t generation = pullet_generation(w->p);

	if (WIFSIGNALED(status) && ended)
		return; /* by the signal that was passed on */
	if (WIFSIGNALED(status))
		cli_note(w->command, "%s: ended by signal %d at generation %" PRIu64, w->argv[0],
			WTERMSIG(status), generation);
	else if (WEXITSTATUS(status))
		cli_note(w->command, "%s: exit %d at generation %" PRIu64, w->argv[0],
			WEXITSTATUS(status), generation);
}

/* Runs the command to its end; passes TERM and INT on. */
static void run_command(const struct watcher *w)
{
	sigset_t wanted = w->ends;
	pid_t pid = fork();
	int status, signo;

	if (pid < 0) {
		cli_note(w->command, "cannot start %s: %s", w->argv[0], strerror(errno));
		return;
	}
	if (pid == 0) {
		run_child(w);
		_exit(cli_error(
			127, w->command, "cannot start %s: %s", w->argv[0], strerror(errno)));
	}
	setpgid(pid, pid); /* here too: the child may be later */
	sigaddset(&wanted, SIGCHLD);
	while (waitpid(pid, &status, WNOHANG) == 0) {
		signo = sigwaitinfo(&wanted, NULL);
		if (signo != SIGTERM && signo != SIGINT)
			continue;
		ended = 1;
		kill(-pid, signo);
	}
	report_exit(w, status);
}

static int handle_version(const struct watcher *w)
{
	if (w->signal)
		signal_pidfile(w);
	else if (w->argv)
		run_command(w);
	else if (printf("%" PRIu64 " %s\n", pullet_generation(w->p), pullet_version(w->p)) < 0 ||
		 fflush(stdout))
		return cli_error(CLI_FAILED, w->command, "cannot write: %s", strerror(errno));
	return CLI_OK;
}

/* ---- the watch ---- */

/* One slice, heeding signals: 1 a newer version, 0, or -errno. */
static int wait_slice(const struct watcher *w, uint64_t left_ms)
{
	const struct timespec slice = {.tv_sec = SLICE_MS / 1000};
	int r = 0;

	sigprocmask(SIG_UNBLOCK, &w->ends, NULL);
	if (!ended)
		r = pullet_wait(w->p, left_ms < SLICE_MS ? (int)left_ms : SLICE_MS);
	if (r < 0 && r != -EINTR)
		nanosleep(&slice, NULL); /* the error may be gone then */
	sigprocmask(SIG_BLOCK, &w->ends, NULL);
	return r == -EINTR ? 0 : r;
}

static int watch_config(const struct watcher *w)
{
	uint64_t since_ms, passed_ms;
	int r, reported = 0, code = CLI_OK;

	if (pullet_generation(w->p) == 0 && pullet_withdrawn(w->p))
		cli_note(w->command, "%s was withdrawn, waiting for it to come back", w->config);
	else if (pullet_generation(w->p) == 0)
		cli_note_waiting(w->command, w->config);
	else if (w->now || (!w->argv && !w->signal))
		code = handle_version(w);
	since_ms = sys_real.now_ms(); /* the time of the command does not count */
	while (code == CLI_OK && !ended) {
		passed_ms = sys_real.now_ms() - since_ms;
		if (passed_ms >= w->timeout_ms)
			return cli_error(
				CLI_TIMED_OUT, w->command, "nothing newer has come in that time");
		r = wait_slice(w, w->timeout_ms - passed_ms);
		if (r < 0 && r != reported)
			cli_note(w->command, "%s: %s", w->config, pullet_strerror(r));
		reported = r;
		if (r == 1 && !ended) {
			code = handle_version(w);
			since_ms = sys_real.now_ms();
		}
	}
	return code;
}

/* ---- the command ---- */

static int read_signal(void *target, const char *command, char *text)
{
	struct watcher *w = target;

	w->signal = signal_number(text);
	return w->signal ? CLI_OK
			 : cli_error(CLI_USAGE, command,
				   "--signal takes HUP, INT, QUIT, USR1, USR2, TERM, WINCH or "
				   "CONT, not '%s'",
				   text);
}

static const struct option_row watch_rows[] = {
	{"now", NULL, "runs it for the current version, too", OPTION_FLAG,
		.at = offsetof(struct watcher, now)},
	{"signal", "SIG", "sends HUP, INT, QUIT, USR1, USR2, TERM, WINCH or CONT instead",
		OPTION_READ, .read = read_signal},
	{"pidfile", "FILE", "to the process whose number is in this file", OPTION_TEXT,
		.at = offsetof(struct watcher, pid_file)},
	{"timeout", "D", "exit 4 when nothing newer has come for that long", OPTION_DURATION,
		.at = offsetof(struct watcher, timeout_ms)},
	{0},
};

static const struct command_line watch_line = {
	.usage = "Usage: pullet watch CONFIG [--timeout D] [--now] [--signal SIG --pidfile FILE] "
		 "[-- CMD ARG...]\n"
		 "Prints 'GENERATION VERSION' for the current version and each newer one, or runs "
		 "CMD for each\n"
		 "newer one, with PULLET_CONFIG_NAME, PULLET_GENERATION and PULLET_VERSION, one "
		 "run at a time:\n"
		 "versions that come while it runs make one more run. Needs no running agent; "
		 "waits for a first\n"
		 "version. TERM and INT end it with exit 0.\n"
		 "CONFIG is a name, or a path of a snapshot if there is a '/' in it.\n",
	.rows = watch_rows,
	.max = -1,
};

static int check_watch_options(const struct watcher *w)
{
	if (!w->config)
		return options_misused(&watch_line, w->command, "name a config");
	if (!w->signal != !w->pid_file)
		return options_misused(
			&watch_line, w->command, "--signal and --pidfile go together");
	if (w->signal && w->argv)
		return options_misused(&watch_line, w->command, "a signal or a command, not both");
	if (w->now && !w->signal && !w->argv)
		return options_misused(
			&watch_line, w->command, "--now goes with a command or a signal");
	return CLI_OK;
}

int cli_watch(int argc, char **argv)
{
	static const struct descriptors_need needs = {"snapshot and files", CLI_FILES};
	struct watcher w = {.command = argv[0], .timeout_ms = UINT64_MAX};
	int r = options_read(&watch_line, argc, argv, &w);

	if (r >= 0)
		return r;
	w.config = argv[optind];
	w.argv = optind + 1 < argc ? argv + optind + 1 : NULL;
	if (check_watch_options(&w))
		return CLI_USAGE;
	r = cli_room(argv[0], &needs, 1);
	if (r)
		return r;
	block_signals(&w);
	r = cli_open(argv[0], w.config, PULLET_WAIT_FIRST, &w.p);
	if (r == CLI_OK)
		r = watch_config(&w);
	pullet_close(w.p);
	return r;
}
