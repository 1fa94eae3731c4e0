/*
 * pulletd: options, signals, exit codes. What runs is in agent.c.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "agent.h"
#include "init.h"
#include "log.h"
#include "push.h"
#include "renewal.h"
#include "transport.h"

enum { EXIT_USAGE = 64, EXIT_BAD_CONFIG = 78 };

static void usage(FILE *out)
{
	fputs("Usage: pulletd [-c FILE] [-t] [--once] [--dry-run] [--log-level LEVEL]\n"
	      "Keeps local configuration files the same as those on a configuration server.\n\n"
	      "  -c, --config FILE      read FILE (default $PULLET_CONFIG, "
	      "then " SETTINGS_DEFAULT_PATH ")\n"
	      "                         and conf.d/*.yaml beside it\n"
	      "  -t, --test             check the configuration, print every error, exit\n"
	      "      --once             pull and publish every config once, exit\n"
	      "      --dry-run          pull and judge once, write nothing, say what would be "
	      "published\n"
	      "      --log-level LEVEL  err, warn, info or debug; wins over the configuration\n"
	      "  -V, --version          print the versions of pulletd and its libraries\n"
	      "  -h, --help             print this\n\n"
	      "Signals: TERM and INT end it, HUP reads the configuration anew, USR1 pulls "
	      "everything now.\n"
	      "Exit codes: 0 ok, 1 failed, 64 wrong usage, 78 bad configuration. See pulletd(8).\n",
		out);
}

/* -1 = go on, else the exit code. */
static int parse_options(int argc, char **argv, struct agent *o, bool *ret_test)
{
	enum { ONCE = 256, DRY_RUN, LEVEL };
	static const struct option longs[] = {
		{"config", required_argument, NULL, 'c'},
		{"test", no_argument, NULL, 't'},
		{"once", no_argument, NULL, ONCE},
		{"dry-run", no_argument, NULL, DRY_RUN},
		{"log-level", required_argument, NULL, LEVEL},
		{"version", no_argument, NULL, 'V'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	const char *path = getenv("PULLET_CONFIG");
	int opt;

	o->path = path && path[0] ? path : SETTINGS_DEFAULT_PATH;
	while ((opt = getopt_long(argc, argv, "c:tVh", longs, NULL)) != -1) {
		switch (opt) {
		case 'c':
			o->path = optarg;
			break;
		case 't':
			*ret_test = true;
			break;
		case DRY_RUN:
			o->dry_run = true;
			/* fall through */
		case ONCE:
			o->once = true;
			break;
		case LEVEL:
			if (!log_level_parse(optarg, &o->level)) {
				fprintf(stderr,
					"pulletd: --log-level is err, warn, info or debug, not "
					"'%s'\n",
					optarg);
				return EXIT_USAGE;
			}
			o->level_given = true;
			break;
		case 'V':
			printf("pulletd %s\n%s\n%s\n", PULLET_VERSION, transport_version(),
				push_version());
			return 0;
		case 'h':
			usage(stdout);
			return 0;
		default:
			fputs("Try 'pulletd --help'.\n", stderr);
			return EXIT_USAGE;
		}
	}
	if (optind < argc) {
		fprintf(stderr,
			"pulletd: '%s' is one argument too many; the configuration is named with "
			"-c\n",
			argv[optind]);
		return EXIT_USAGE;
	}
	return -1;
}

/* ---- settings ---- */

static void report_plain(void *arg, const char *message)
{
	(void)arg;
	fprintf(stderr, "%s\n", message);
}

static int test_settings(const char *path)
{
	struct settings *settings = NULL;

	if (settings_load(path, report_plain, NULL, &settings))
		return EXIT_BAD_CONFIG;
	printf("%s: good, %zu config%s\n", path, settings->config_count,
		settings->config_count == 1 ? "" : "s");
	settings_free(settings);
	return EXIT_SUCCESS;
}

/* ---- signals ---- */

static void on_stop(void *arg, int signal)
{
	struct agent *a = arg;

	log_info("stopping", "signal", strsignal(signal));
	loop_stop(a->loop);
}

static void on_hup(void *arg, int signal)
{
	(void)signal;
	renewal_begin(arg);
}

static void on_usr1(void *arg, int signal)
{
	struct agent *a = arg;

	(void)signal;
	log_info("pulling everything now", "configs", LOG_U64(a->settings->config_count));
	for (size_t i = 0; i < a->settings->config_count; i++)
		config_refresh(a->configs[i], false);
}

static int take_signals(struct agent *a, struct renewal *renewal)
{
	const struct {
		int number;
		void (*handle)(void *arg, int signal);
		void *arg;
	} signals[] = {{SIGTERM, on_stop, a}, {SIGINT, on_stop, a}, {SIGHUP, on_hup, renewal},
		{SIGUSR1, on_usr1, a}};
	int r = renewal ? 0 : -ENOMEM;

	signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; r == 0 && i < sizeof(signals) / sizeof(signals[0]); i++)
		r = loop_on_signal(a->loop, signals[i].number, signals[i].handle, signals[i].arg);
	if (r)
		log_err("cannot start: memory or file descriptors are short: raise the limits "
			"(LimitNOFILE, MemoryMax)",
			"why", strerror(-r));
	return r;
}

int main(int argc, char **argv)
{
	struct agent a = {.lock = -1};
	struct settings *settings = NULL;
	struct renewal *renewal = NULL;
	bool test = false;
	int r = parse_options(argc, argv, &a, &test);

	if (r >= 0)
		return r;
	if (test)
		return test_settings(a.path);
	prctl(PR_SET_DUMPABLE, 0); /* secrets are in memory for moments: no core, no debugger */
	r = init_run();
	if (r >= 0)
		return r;
	if (settings_load(a.path, report_plain, NULL, &settings))
		return EXIT_BAD_CONFIG;
	agent_set_log(&a, settings);
	r = agent_open(&a, settings);
	if (r == 0) {
		renewal = renewal_new(&a);
		r = take_signals(&a, renewal);
	}
	if (r == 0)
		r = agent_start(&a, settings);
	else
		settings_free(settings);
	if (r == 0) {
		log_info("started", "version", PULLET_VERSION, "configs",
			LOG_U64(a.settings->config_count));
		r = loop_run(a.loop);
	}
	renewal_free(renewal);
	agent_stop(&a);
	return r == 0 && !a.once_failed ? EXIT_SUCCESS : EXIT_FAILURE;
}
