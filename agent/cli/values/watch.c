/*
 * pullet watch: tells of each new version, or runs a command for it.
 *
 * Surprising: TERM, INT and CHLD are blocked but while it waits for a version, and taken
 * synchronously while a command runs, so that none is lost between a look and a sleep; a version is
 * waited for in slices for the one moment that is left.
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

static void usage(FILE *out)
{
	fputs("Usage: pullet watch CONFIG [--timeout D] [--now] [--signal SIG --pidfile FILE] [-- "
	      "CMD ARG...]\n"
	      "Prints 'GENERATION VERSION' for the version that stands and each newer one, or runs "
	      "a command for\n"
	      "each newer one. Needs no running agent; waits for a first version. TERM and INT end "
	      "it with exit 0.\n"
	      "CONFIG is a name, or a path of a snapshot if there is a '/' in it.\n\n"
	      "      CMD ARG...      runs alone, with PULLET_CONFIG_NAME, PULLET_GENERATION and "
	      "PULLET_VERSION; what\n"
	      "                      comes while it runs makes one more run\n"
	      "      --now           a run for the version that stands, too\n"
	      "      --signal SIG    sends HUP, INT, QUIT, USR1, USR2, TERM, WINCH or CONT "
	      "instead\n"
	      "      --pidfile FILE  to the process of which the number is in this file\n"
	      "      --timeout D     exit 4 when nothing newer has come for that long\n",
		out);
}

static void on_end(int signo)
{
	(void)signo;
	ended = 1;
}

static void take_signals(struct watcher *w)
{
	struct sigaction action = {.sa_handler = on_end};
	sigset_t blocked;

	sigemptyset(&w->ends);
	sigaddset(&w->ends, SIGTERM);
	sigaddset(&w->ends, SIGINT);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	signal(SIGCHLD, SIG_DFL); /* else the end of a child might go unnoticed */
	blocked = w->ends;
	sigaddset(&blocked, SIGCHLD);
	sigprocmask(SIG_BLOCK, &blocked, &w->normal);
}

/* ---- what is done for a version ---- */

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

static void send_signal(const struct watcher *w)
{
	char why[FILE_WHY];

	if (pidfile_signal(&sys_real, w->pid_file, w->signal, why))
		cli_error(0, w->command, "%s", why);
}

/* In the child. Returns only when it failed. */
static void become(const struct watcher *w)
{
	char generation[24];
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	snprintf(generation, sizeof(generation), "%" PRIu64, pullet_generation(w->p));
	signal(SIGTERM, SIG_DFL); /* one that waits already must not end in our handler */
	signal(SIGINT, SIG_DFL);
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || setpgid(0, 0) ||
		setenv("PULLET_CONFIG_NAME", w->config, 1) ||
		setenv("PULLET_GENERATION", generation, 1) ||
		setenv("PULLET_VERSION", pullet_version(w->p), 1) ||
		sigprocmask(SIG_SETMASK, &w->normal, NULL))
		return;
	execvp(w->argv[0], w->argv);
}

static void tell_end(const struct watcher *w, int status)
{
	uint64_t generation = pullet_generation(w->p);

	if (WIFSIGNALED(status) && ended)
		return; /* by what was passed on */
	if (WIFSIGNALED(status))
		cli_error(0, w->command, "%s: ended by signal %d at generation %" PRIu64,
			w->argv[0], WTERMSIG(status), generation);
	else if (WEXITSTATUS(status))
		cli_error(0, w->command, "%s: exit %d at generation %" PRIu64, w->argv[0],
			WEXITSTATUS(status), generation);
}

/* Runs the command to its end; passes on what would end the watch. */
static void run_command(const struct watcher *w)
{
	sigset_t wanted = w->ends;
	pid_t pid = fork();
	int status, signo;

	if (pid < 0) {
		cli_error(0, w->command, "cannot start %s: %s", w->argv[0], strerror(errno));
		return;
	}
	if (pid == 0) {
		become(w);
		_exit(cli_error(
			127, w->command, "cannot start %s: %s", w->argv[0], strerror(errno)));
	}
	setpgid(pid, pid); /* whoever is first */
	sigaddset(&wanted, SIGCHLD);
	while (waitpid(pid, &status, WNOHANG) == 0) {
		signo = sigwaitinfo(&wanted, NULL);
		if (signo != SIGTERM && signo != SIGINT)
			continue;
		ended = 1;
		kill(-pid, signo);
	}
	tell_end(w, status);
}

static int act(const struct watcher *w)
{
	if (w->signal)
		send_signal(w);
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
		nanosleep(&slice, NULL); /* what is wrong now may be good then */
	sigprocmask(SIG_BLOCK, &w->ends, NULL);
	return r == -EINTR ? 0 : r;
}

static int watch(const struct watcher *w)
{
	uint64_t since_ms, passed_ms;
	int r, told = 0, code = CLI_OK;

	if (pullet_generation(w->p) == 0)
		cli_error(0, w->command,
			pullet_withdrawn(w->p) ? "%s was withdrawn, waiting for it to come back"
					       : "nothing is published as %s yet, waiting",
			w->config);
	else if (w->now || (!w->argv && !w->signal))
		code = act(w);
	since_ms = sys_real.now_ms(); /* what the command took is no waiting */
	while (code == CLI_OK && !ended) {
		passed_ms = sys_real.now_ms() - since_ms;
		if (passed_ms >= w->timeout_ms)
			return cli_error(
				CLI_TIMED_OUT, w->command, "nothing newer has come in that time");
		r = wait_slice(w, w->timeout_ms - passed_ms);
		if (r < 0 && r != told)
			cli_error(0, w->command, "%s: %s", w->config, pullet_strerror(r));
		told = r;
		if (r == 1 && !ended) {
			code = act(w);
			since_ms = sys_real.now_ms();
		}
	}
	return code;
}

static int check(const struct watcher *w)
{
	if (!w->config)
		return cli_misused(w->command, usage, "name a config");
	if (!w->signal != !w->pid_file)
		return cli_misused(w->command, usage, "--signal and --pidfile go together");
	if (w->signal && w->argv)
		return cli_misused(w->command, usage, "a signal or a command, not both");
	if (w->now && !w->signal && !w->argv)
		return cli_misused(w->command, usage, "--now goes with a command or a signal");
	return CLI_OK;
}

int cli_watch(int argc, char **argv)
{
	enum { NOW = 256, PIDFILE, SIGNAL, TIMEOUT };
	static const struct option longs[] = {
		{"now", no_argument, NULL, NOW},
		{"pidfile", required_argument, NULL, PIDFILE},
		{"signal", required_argument, NULL, SIGNAL},
		{"timeout", required_argument, NULL, TIMEOUT},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	static const struct descriptors_need needs = {"snapshot and files", CLI_FILES};
	struct watcher w = {.command = argv[0], .timeout_ms = UINT64_MAX};
	int opt, r;

	while ((opt = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
		if (opt == NOW)
			w.now = true;
		else if (opt == PIDFILE)
			w.pid_file = optarg;
		else if (opt == SIGNAL)
			w.signal = signal_number(optarg);
		else if (opt == 'h')
			return usage(stdout), CLI_OK;
		else if (opt != TIMEOUT)
			return cli_bad_option(argv[0]);
		else if (cli_duration(argv[0], "--timeout", optarg, &w.timeout_ms))
			return CLI_USAGE;
		if (opt == SIGNAL && !w.signal)
			return cli_error(CLI_USAGE, argv[0],
				"--signal takes HUP, INT, QUIT, USR1, USR2, TERM, WINCH or CONT, "
				"not '%s'",
				optarg);
	}
	w.config = optind < argc ? argv[optind] : NULL;
	w.argv = optind + 1 < argc ? argv + optind + 1 : NULL;
	if (check(&w))
		return CLI_USAGE;
	r = cli_room(argv[0], &needs, 1);
	if (r)
		return r;
	take_signals(&w);
	r = cli_open(argv[0], w.config, PULLET_WAIT_FIRST, &w.p);
	if (r == CLI_OK)
		r = watch(&w);
	pullet_close(w.p);
	return r;
}
