/*
 * pulletd: options, signals, exit codes. What runs is in agent.c.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent.h"
#include "init.h"
#include "base/descriptors.h"
#include "base/log.h"
#include "lib/buffer.h"
#include "push/subscriber.h"
#include "httpd/reach.h"
#include "reconfigure.h"
#include "descriptor_budget.h"
#include "http/client.h"
#include "watch_config.h"
#include "files/trusted.h"
#include "settings/places.h"

enum { EXIT_USAGE = 64, EXIT_BAD_CONFIG = 78 };

#define MAX_MISSING 20 /* lines of what is missing at a start */

static void print_pulletd_usage(FILE *out)
{
	fputs("Usage: pulletd [-c FILE] [-t] [--once] [--dry-run] [--log-level LEVEL]\n"
	      "Keeps local configuration files the same as those on a configuration server.\n\n"
	      "  -c, --config FILE      read FILE (default $PULLET_CONFIG, "
	      "then " SETTINGS_DEFAULT_PATH ";\n"
	      "                         an ordinary user's: "
	      "~/.config/pullet/pullet.yaml)\n"
	      "                         and conf.d/*.yaml beside it\n"
	      "  -t, --test             check the configuration, print every error, exit\n"
	      "      --once             pull and publish every config once, exit\n"
	      "      --dry-run          pull and check once, write nothing, say what would be "
	      "published\n"
	      "      --log-level LEVEL  err, warn, info or debug; wins over the configuration\n"
	      "  -V, --version          print the versions of pulletd and its libraries\n"
	      "  -h, --help             print this\n\n"
	      "Signals: TERM and INT end it, HUP reads the configuration again, USR1 pulls "
	      "everything now.\n"
	      "Exit codes: 0 ok, 1 failed, 64 wrong usage, 78 invalid configuration. See "
	      "pulletd(8).\n",
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
	static char path[PLACES_PATH];
	int opt;

	o->path = places_configuration(path);
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
			printf("pulletd %s\n%s\n%s\n", PULLET_VERSION, http_client_version(),
				subscriber_version());
			return 0;
		case 'h':
			print_pulletd_usage(stdout);
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

/* Prints what the signatures of a config must say, and the command that makes such a one. */
static void print_signatures(const struct settings_config *c)
{
	static const char *const names[] = {"", "none", "config", "path"};
	const struct settings_verify *v = &c->verify;
	const char *rev = v->rev_required ? " rev=N" : "";

	if (!v->public_keys)
		return;
	printf("config %s: bind: %s%s%s\n", c->name, names[v->bind],
		v->key_shared ? ", its key is trusted for other documents too" : "",
		v->rev_required ? ", rev: required" : "");
	for (size_t i = 0; v->bind == SETTINGS_BIND_PATH && i < c->layer_count; i++) {
		int len = (int)strcspn(c->layers[i].path, "?");
		const char *path = len ? c->layers[i].path : "/";

		len = len ? len : 1;
		printf("  a signature must say path=%.*s%s: pullet sign FILE -s KEY --path %.*s\n",
			len, path, rev, len, path);
	}
	if (v->bind == SETTINGS_BIND_CONFIG)
		printf("  a signature must say config=%s%s: pullet sign FILE -s KEY --config %s\n",
			c->name, rev, c->name);
	if (v->bind == SETTINGS_BIND_NONE)
		printf("  a signature need not say what it is for%s%s; one that names another "
		       "config or path is rejected: pullet sign FILE -s KEY --unbound\n",
			v->rev_required ? ", but must say" : "", rev);
}

/* Warns of a path that an agent of this user would reject; checks the parent of a missing
 * directory. */
static void warn_untrusted(const char *subject, const char *path, bool is_file)
{
	const struct trusted_who who = trusted_self();
	char dir[PATH_MAX], why[FILE_WHY], *slash;
	int r;

	snprintf(dir, sizeof(dir), "%s", path);
	do {
		slash = is_file ? strrchr(dir, '/') : NULL;
		if (slash)
			slash[slash == dir] = '\0';
		r = trusted_check_dir(&sys_real, &who, dir, TRUSTED_OWN, why);
		is_file = !is_file;
	} while (r == -ENOENT && is_file);
	if (r == -EPERM)
		fprintf(stderr, "%s: an agent of this user will fail: %s\n", subject, why);
}

static void warn_paths(const struct settings *s)
{
	warn_untrusted("state_dir", s->state_dir, false);
	warn_untrusted("runtime_dir", s->runtime_dir, false);
	for (size_t i = 0; i < s->config_count; i++)
		if (settings_place(s->configs[i]))
			warn_untrusted(s->configs[i]->name, settings_place(s->configs[i]),
				s->configs[i]->file);
}

/* Warns when `operators` names a group that cannot reach the control socket. */
static void warn_operators(const struct settings *s)
{
	gid_t agent = geteuid() == 0 ? (gid_t)-1 : getegid(); /* root tests for others */
	char why[REACH_TEXT], remedy[REACH_TEXT];

	if (s->operators != (gid_t)-1 &&
		reach_check(s->operators, s->runtime_dir, agent, why, remedy) != REACH_GOOD)
		fprintf(stderr, "operators: %s: %s\n", why, remedy);
}

/* What a start found missing: sentences, each with a NUL behind. */
struct missing {
	struct buffer said;
	size_t count;
};

static void keep_missing(void *arg, const char *message)
{
	struct missing *m = arg;

	if (m->count++ < MAX_MISSING)
		buffer_append(&m->said, message, strlen(message) + 1);
}

/* The start goes on: it may come later, and the configs that need it report when they do. */
static void log_missing(struct missing *m)
{
	size_t told = 0;

	for (size_t at = 0; at < m->said.len; at += strlen(m->said.data + at) + 1, told++)
		log_warn("a file that the configuration names cannot be used", "why",
			m->said.data + at);
	if (m->count > told)
		log_warn("more files cannot be used: pulletd -t prints them", "count",
			LOG_U64(m->count - told));
	buffer_fini(&m->said);
}

static void count_missing(void *arg, const char *message)
{
	size_t *missing = arg;

	++*missing;
	report_plain(NULL, message);
}

/* An error without what a running agent would do. */
static void report_tested(void *arg, const char *message)
{
	const char *end = strstr(message, " (" SETTINGS_TEMPLATE_READ ")");

	(void)arg;
	fprintf(stderr, "%.*s\n", end ? (int)(end - message) : (int)strlen(message), message);
}

static int test_settings(const char *path)
{
	struct settings *settings = NULL;
	size_t missing = 0;
	const struct settings_reading how = {.report = report_tested,
		.look = count_missing,
		.look_all = true,
		.twins = count_missing,
		.arg = &missing};

	if (settings_load_with(path, &how, &settings))
		return EXIT_BAD_CONFIG;
	printf("%s: valid, %zu config%s", path, settings->config_count,
		settings->config_count == 1 ? "" : "s");
	if (missing)
		printf(", but %zu of the files that it names cannot be used", missing);
	printf("\n");
	for (size_t i = 0; i < settings->config_count; i++)
		print_signatures(settings->configs[i]);
	warn_paths(settings);
	warn_operators(settings);
	settings_free(settings);
	return missing ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Without enough descriptors libzmq would abort. */
static bool has_descriptors(const struct settings *settings, bool once)
{
	char why[DESCRIPTORS_WHY];

	if (descriptor_budget_check(settings, once, why) == 0)
		return true;
	log_err("cannot start: the limit of open files is too low", "why", why);
	return false;
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
	reconfigure_begin(arg);
}

static void on_usr1(void *arg, int signal)
{
	struct agent *a = arg;
	size_t suspended = 0;

	(void)signal;
	for (size_t i = 0; i < a->settings->config_count; i++)
		suspended += config_suspended(a->configs[i]);
	log_info("pulling everything now", "configs",
		LOG_U64(a->settings->config_count - suspended), "suspended",
		suspended ? LOG_U64(suspended) : NULL);
	for (size_t i = 0; i < a->settings->config_count; i++) {
		config_note_order(a->configs[i], CAUSE_OPERATOR, "SIGUSR1");
		config_refresh(a->configs[i], false);
	}
}

static int handle_signals(struct agent *a, struct reconfigure *reload)
{
	const struct {
		int number;
		void (*handle)(void *arg, int signal);
		void *arg;
	} signals[] = {{SIGTERM, on_stop, a}, {SIGINT, on_stop, a}, {SIGHUP, on_hup, reload},
		{SIGUSR1, on_usr1, a}};
	int r = reload ? 0 : -ENOMEM;

	signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; r == 0 && i < sizeof(signals) / sizeof(signals[0]); i++)
		r = loop_on_signal(a->loop, signals[i].number, signals[i].handle, signals[i].arg);
	return r ? agent_log_shortage(r) : 0;
}

/* Who asks may be in another directory. Where the own one is unknown, as it was named. */
static char *write_absolute(const char *path)
{
	char *dir = path[0] == '/' ? NULL : getcwd(NULL, 0), *text = NULL;

	while (dir && strncmp(path, "./", 2) == 0)
		path += 2;
	if (asprintf(&text, "%s%s%s", dir ? dir : "", dir && dir[1] ? "/" : "", path) < 0)
		text = NULL;
	free(dir);
	return text;
}

/* What should be read and is not there must not look like a success. */
static int end_output(int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	fputs("pulletd: standard output cannot be written to, or not all of it: is its disk "
	      "full?\n",
		stderr);
	return status ? status : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
	struct agent a = {.lock = -1};
	struct settings *settings = NULL;
	struct reconfigure *reload = NULL;
	struct missing missing = {0};
	const struct settings_reading how = {.report = report_plain,
		.look = keep_missing,
		.twins = keep_missing,
		.arg = &missing,
		.opens = watched_files_add,
		.opens_arg = &a.files_read};
	bool test = false;
	int r;

	descriptors_keep_standard();
	signal(SIGXFSZ, SIG_IGN); /* a write above RLIMIT_FSIZE fails with EFBIG */
	r = parse_options(argc, argv, &a, &test);
	log_find_reader();
	if (r >= 0)
		return end_output(r);
	if (test)
		return end_output(test_settings(a.path));
	sys_forbid_dumps();
	r = init_run();
	if (r >= 0)
		return r;
	watched_files_begin(&a.files_read, a.path);
	buffer_init(&missing.said, MAX_MISSING * (PATH_MAX + 1024));
	if (!has_descriptors(NULL, a.once) || settings_load_with(a.path, &how, &settings)) {
		buffer_fini(&missing.said);
		return EXIT_BAD_CONFIG;
	}
	agent_set_log(&a, settings);
	log_missing(&missing);
	if (!has_descriptors(settings, a.once)) {
		settings_free(settings);
		return EXIT_BAD_CONFIG;
	}
	a.absolute_path = write_absolute(a.path);
	r = agent_open(&a, settings);
	if (r == 0) {
		reload = reconfigure_new(&a);
		r = handle_signals(&a, reload);
	}
	if (r == 0)
		r = agent_start(&a, settings);
	else
		settings_free(settings);
	if (r == 0) {
		reconfigure_started(reload);
		if (!a.dry_run)
			log_info("started", "version", PULLET_VERSION, "configs",
				LOG_U64(a.settings->config_count));
		r = loop_run(a.loop);
		if (r == 0)
			agent_leave(&a);
	}
	reconfigure_free(reload);
	watched_files_fini(&a.files_read);
	agent_stop(&a);
	free(a.absolute_path);
	if (a.once && a.once_left > 0)
		a.once_failed = true; /* a signal came first */
	return end_output(r == 0 && !a.once_failed ? EXIT_SUCCESS : EXIT_FAILURE);
}
