/*
 * pulletd: options, the order in which everything starts, and the same list backwards.
 *
 * Surprising: SIGHUP checks the new configuration whole and, if it is good, stops in order and
 * executes the program again. The agent is crash-only: it comes back from the last known good at
 * once, and readers notice nothing, so a second way of applying settings would only be a second set
 * of bugs. A bad file changes nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "account.h"
#include "config.h"
#include "control.h"
#include "log.h"
#include "loop.h"
#include "push.h"
#include "report.h"
#include "server.h"
#include "settings.h"
#include "transport.h"
#include "worker.h"

enum { EXIT_USAGE = 64, EXIT_BAD_CONFIG = 78 };

struct options {
	const char *path;
	bool test, once, dry_run;
	bool level_given;
	enum log_level level;
};

struct agent {
	struct options options;
	struct settings *settings;
	int lock;
	struct loop *loop;
	struct worker *worker, *files;
	struct transport *transport;
	struct trigger_queue queue;
	struct drift *drift;
	struct watcher *watcher;
	struct config_env env;
	char host[HOST_NAME_MAX + 1];
	struct server **servers;
	struct config **configs;
	struct control_env control_env;
	struct control *control;
	struct push *push;
	struct report *report;
	size_t once_left; /* configs that have not ended their one run */
	bool once_failed, again;
};

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
static int parse_options(int argc, char **argv, struct options *o)
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
			o->test = true;
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

static void report_log(void *arg, const char *message)
{
	(void)arg;
	log_err("bad configuration", "error", message);
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

/* ---- directories ---- */

static int make_dir(const char *path, mode_t mode)
{
	if (mkdir(path, mode) == 0 || errno == EEXIST)
		return 0;
	log_err("cannot make the directory: make it, or name another one in the configuration",
		"path", path, "why", strerror(errno));
	return -errno;
}

/* The state directory belongs to one agent at a time. Not by flock(): a program that a killed agent
 * was about to start would keep that lock for a moment, and the next agent would not start. */
static int lock_state(struct agent *a)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	char path[1024];

	snprintf(path, sizeof(path), "%s/lock", a->settings->state_dir);
	a->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (a->lock < 0) {
		log_err("cannot write in the state directory: it must belong to the agent's user",
			"path", path, "why", strerror(errno));
		return -errno;
	}
	if (fcntl(a->lock, F_SETLK, &lock) == 0)
		return 0;
	log_err("another pulletd uses this state directory: stop it, or give this one another "
		"state_dir",
		"path", a->settings->state_dir);
	return -EBUSY;
}

/* ---- events ---- */

static void woken(void *arg)
{
	struct agent *a = arg;
	struct trigger *t;

	while ((t = trigger_queue_take(&a->queue)))
		config_called(t);
}

static void wake(void *arg)
{
	loop_wake(arg);
}

static void on_stop(void *arg, int signal)
{
	struct agent *a = arg;

	log_info("stopping", "signal", strsignal(signal));
	loop_stop(a->loop);
}

static void on_hup(void *arg, int signal)
{
	struct agent *a = arg;
	struct settings *settings = NULL;

	(void)signal;
	if (settings_load(a->options.path, report_log, NULL, &settings)) {
		log_err("the new configuration is bad: nothing was changed", "file",
			a->options.path);
		return;
	}
	settings_free(settings);
	log_info("the new configuration is good: starting again with it", "file", a->options.path);
	a->again = true;
	loop_stop(a->loop);
}

static void on_usr1(void *arg, int signal)
{
	struct agent *a = arg;

	(void)signal;
	log_info("pulling everything now", "configs", LOG_U64(a->settings->config_count));
	for (size_t i = 0; i < a->settings->config_count; i++)
		config_refresh(a->configs[i], false);
}

/* Timers were due long ago. What was kept alive is dead, and every host of a fleet may have slept
 * (a hypervisor was maintained): so no connection is used again, and each config pulls once,
 * splayed. */
static void on_resume(void *arg, uint64_t late_ms)
{
	struct agent *a = arg;

	log_info("the agent did not run for a while: pulling again", "late_ms", LOG_U64(late_ms));
	transport_forget(a->transport);
	if (a->watcher)
		watcher_resume(a->watcher);
	for (size_t i = 0; i < a->settings->config_count; i++)
		config_resumed(a->configs[i]);
}

static void run_ended(void *arg, struct config *c)
{
	struct agent *a = arg;
	struct config_status s;

	if (!a->options.once && !a->report)
		return;
	config_status(c, &s);
	if (a->report)
		report_changed(a->report, (size_t)(s.settings - a->settings->configs));
	if (!a->options.once)
		return;
	trigger_suspend(config_push_topic(c)->trigger);
	a->once_failed |= s.outcome == CONFIG_FAILED;
	if (--a->once_left == 0)
		loop_stop(a->loop);
}

/* ---- start and stop ---- */

static int start_servers(struct agent *a)
{
	size_t n = a->settings->server_count, *tasks = calloc(n, sizeof(*tasks));

	a->servers = calloc(n, sizeof(struct server *));
	for (size_t i = 0; tasks && i < a->settings->config_count; i++) {
		const struct settings_config *c = &a->settings->configs[i];
		size_t each = c->verify.public_keys ? 2 : 1;

		for (size_t k = 0; k < c->layer_count; k++)
			tasks[c->layers[k].server] += each;
		if (c->bootstrap)
			tasks[c->bootstrap->server] += each;
		if (c->rollout)
			tasks[c->rollout->server] += each;
	}
	for (size_t i = 0; tasks && a->servers && i < n; i++) {
		a->servers[i] = server_new(a->loop, &a->settings->servers[i], tasks[i]);
		if (!a->servers[i])
			n = 0;
	}
	free(tasks);
	return a->servers && n ? 0 : -ENOMEM;
}

/* What this host is called in receipts and rollouts. */
static void name_host(struct agent *a)
{
	const char *name = a->settings->report.host;

	if (name)
		snprintf(a->host, sizeof(a->host), "%s", name);
	else if (gethostname(a->host, sizeof(a->host) - 1))
		snprintf(a->host, sizeof(a->host), "localhost");
}

static int start_configs(struct agent *a)
{
	size_t n = a->settings->config_count;

	name_host(a);

	a->env = (struct config_env){
		.sys = &sys_real,
		.loop = a->loop,
		.transport = a->transport,
		.servers = a->servers,
		.worker = a->worker,
		.files = a->files,
		.queue = &a->queue,
		.drift = a->drift,
		.watcher = a->watcher,
		.state_dir = a->settings->state_dir,
		.runtime_dir = a->settings->runtime_dir,
		.ca_file = getenv("SSL_CERT_FILE"),
		.host = a->host,
		.labels = a->settings->labels,
		.label_count = a->settings->label_count,
		.dry_run = a->options.dry_run,
		.once = a->options.once,
		.run_ended = run_ended,
		.arg = a,
	};
	a->once_left = n;
	a->configs = calloc(n, sizeof(*a->configs));
	for (size_t i = 0; a->configs && i < n; i++) {
		a->configs[i] = config_new(&a->env, &a->settings->configs[i]);
		if (!a->configs[i])
			return -ENOMEM;
	}
	if (!a->configs)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		config_start(a->configs[i]);
	return 0;
}

static int start_control(struct agent *a)
{
	char why[FILE_WHY];
	int r;

	a->control_env = (struct control_env){
		.loop = a->loop,
		.settings = a->settings,
		.configs = a->configs,
		.servers = a->servers,
		.push = &a->push,
		.report = &a->report,
		.started_ms = sys_real.wall_ms(),
	};
	r = control_start(&a->control_env, &a->control, why);
	if (r)
		log_err("cannot serve the control API", "why", why);
	return r;
}

static int start_push(struct agent *a)
{
	size_t n = a->settings->config_count, m = a->settings->push_count;
	struct push_topic **topics;
	struct push_endpoint *endpoints;
	int r = -ENOMEM;

	if (m == 0)
		return 0;
	topics = calloc(n, sizeof(struct push_topic *));
	endpoints = calloc(m, sizeof(*endpoints));
	if (topics && endpoints) {
		for (size_t i = 0; i < n; i++)
			topics[i] = config_push_topic(a->configs[i]);
		for (size_t i = 0; i < m; i++)
			endpoints[i] = (struct push_endpoint){
				.endpoint = a->settings->push[i].endpoint,
				.heartbeat_ms = a->settings->push[i].heartbeat_ms,
				.server_key = a->settings->push[i].server_key,
				.secret_key_file = a->settings->push[i].secret_key_file,
			};
		r = push_start(&sys_real, endpoints, m, topics, n, &a->push);
	}
	free(topics);
	free(endpoints);
	if (r)
		log_err("cannot start the push channel", "why",
			r == -EOPNOTSUPP ? "libzmq was built without CURVE, which the "
					   "configuration asks for: install one that has it"
					 : strerror(-r));
	return r;
}

static void look(void *arg, size_t config, struct receipt_config *ret, struct receipt_texts *texts)
{
	struct agent *a = arg;

	account_give(a->configs[config], ret, texts);
}

static int start_report(struct agent *a)
{
	const struct report_env env = {
		.sys = &sys_real,
		.loop = a->loop,
		.transport = a->transport,
		.ca_file = getenv("SSL_CERT_FILE"),
		.settings = a->settings,
		.host = a->host,
		.look = look,
		.arg = a,
	};

	if (!a->settings->report.from)
		return 0;
	a->report = report_start(&env);
	return a->report ? 0 : -ENOMEM;
}

static int start(struct agent *a)
{
	static const struct {
		int number;
		void (*handle)(void *arg, int signal);
	} signals[] = {{SIGTERM, on_stop}, {SIGINT, on_stop}, {SIGHUP, on_hup}, {SIGUSR1, on_usr1}};
	int r = 0;

	signal(SIGPIPE, SIG_IGN);
	if (!a->options.dry_run) {
		r = make_dir(a->settings->state_dir, 0700);
		if (r == 0)
			r = make_dir(a->settings->runtime_dir, 0750);
		if (r == 0)
			r = lock_state(a);
		if (r)
			return r;
	}
	a->loop = loop_new(&sys_real);
	a->transport = a->loop ? transport_new(a->loop) : NULL;
	a->worker = a->loop ? worker_start(a->loop, "pullet-sync") : NULL;
	for (size_t i = 0; a->loop && !a->files && i < a->settings->server_count; i++)
		if (a->settings->servers[i].kind == SETTINGS_FILE)
			a->files = worker_start(a->loop, "pullet-file");
	if (!a->loop || !a->transport || !a->worker) {
		log_err("cannot start: out of memory or descriptors");
		return -ENOMEM;
	}
	a->drift = a->options.once ? NULL : drift_new(a->loop); /* without it the intervals do */
	for (size_t i = 0; !a->options.once && !a->watcher && i < a->settings->server_count; i++)
		if (a->settings->servers[i].watch)
			a->watcher =
				watcher_new(a->loop, &sys_real, getenv("SSL_CERT_FILE"), a->drift);
	trigger_queue_init(&a->queue, wake, a->loop);
	loop_on_wake(a->loop, woken, a);
	loop_on_resume(a->loop, on_resume, a);
	for (size_t i = 0; r == 0 && i < sizeof(signals) / sizeof(signals[0]); i++)
		r = loop_on_signal(a->loop, signals[i].number, signals[i].handle, a);
	if (r == 0)
		r = start_servers(a);
	if (r == 0)
		r = start_configs(a);
	if (r == 0 && !a->options.once)
		r = start_control(a);
	if (r == 0 && !a->options.once)
		r = start_push(a);
	if (r == 0 && !a->options.once)
		r = start_report(a);
	return r;
}

/* The start's list backwards. What hangs in the kernel (a disk) is left behind: the state it leaves
 * is one a crash may leave. */
static void stop(struct agent *a)
{
	control_stop(a->control);
	report_stop(a->report);
	push_stop(a->push);
	if (a->worker && worker_stop(a->worker, 1000)) {
		log_warn("the disk does not answer: leaving a write behind; the last known good is "
			 "safe");
		_exit(EXIT_FAILURE);
	}
	if (a->files && worker_stop(a->files, 200)) {
		log_warn("a file of a server does not answer: leaving its reading behind");
		_exit(EXIT_SUCCESS);
	}
	watcher_free(a->watcher);
	for (size_t i = 0; a->configs && i < a->settings->config_count; i++)
		config_free(a->configs[i]);
	free(a->configs);
	drift_free(a->drift);
	for (size_t i = 0; a->servers && i < a->settings->server_count; i++)
		server_free(a->servers[i]);
	free(a->servers);
	if (a->transport)
		transport_free(a->transport);
	if (a->loop)
		loop_free(a->loop);
	if (a->lock >= 0)
		close(a->lock);
	settings_free(a->settings);
}

/* Executes the program again; what stands at its path now (it may have been upgraded), else as it
 * is in memory. */
static void execute_again(char **argv)
{
	static const char deleted[] = " (deleted)";
	size_t tail = sizeof(deleted) - 1;
	char path[1024];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (n > 0) {
		path[n] = '\0';
		if ((size_t)n > tail && strcmp(path + n - tail, deleted) == 0)
			path[(size_t)n - tail] = '\0';
		execv(path, argv);
	}
	execv("/proc/self/exe", argv);
	log_err("cannot execute the program again", "why", strerror(errno));
}

int main(int argc, char **argv)
{
	struct agent a = {.lock = -1};
	int r = parse_options(argc, argv, &a.options);

	if (r >= 0)
		return r;
	if (a.options.test)
		return test_settings(a.options.path);
	if (settings_load(a.options.path, report_plain, NULL, &a.settings))
		return EXIT_BAD_CONFIG;
	log_setup(a.options.level_given ? a.options.level : a.settings->log_level,
		a.settings->log_format);

	r = start(&a);
	if (r == 0) {
		log_info("started", "version", PULLET_VERSION, "configs",
			LOG_U64(a.settings->config_count));
		r = loop_run(a.loop);
	}
	stop(&a);
	if (a.again)
		execute_again(argv);
	return r == 0 && !a.once_failed && !a.again ? EXIT_SUCCESS : EXIT_FAILURE;
}
