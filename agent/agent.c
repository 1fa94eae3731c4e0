/*
 * What the agent is made of. Surprising: the start is a step like any other, from settings that say
 * nothing to the first ones.
 */
#include "agent.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/events.h"
#include "fleet/config_receipt.h"
#include "files/file.h"
#include "base/log.h"
#include "push/subscriber.h"
#include "descriptor_budget.h"
#include "own_directories.h"
#include "fleet/report.h"
#include "http/client.h"
#include "publish/withdraw.h"
#include "version/left.h"
#include "base/worker.h"

#define CHECK_NICE 5 /* a third of the weight of the others, where both want a processor */
#define ADDRESS_WAIT_MS 1000
#define ADDRESS_PAUSE_MS 10

/* ---- events ---- */

static void take_triggers(void *arg)
{
	struct agent *a = arg;
	struct trigger *t;

	while ((t = trigger_queue_take(&a->queue)))
		config_called(t);
}

static void wake_loop(void *arg)
{
	loop_wake(arg);
}

/* Drops all connections and pulls each config once, splayed: connections are dead by now, and all
 * hosts of a fleet may have slept (maintenance of a hypervisor). */
static void on_resume(void *arg, uint64_t late_ms)
{
	struct agent *a = arg;

	log_info("the agent did not run for a while: pulling again", "late_ms", LOG_U64(late_ms));
	http_client_forget(a->transport);
	if (a->watcher)
		watch_resume(a->watcher);
	for (size_t i = 0; i < a->settings->config_count; i++)
		config_resumed(a->configs[i]);
}

static void config_run_ended(void *arg, struct config *c)
{
	struct agent *a = arg;
	struct config_status s;

	systemd_run_ended(a->service, config_place(c));
	if (a->control)
		control_check(a->control);
	if (a->report)
		report_changed(a->report, config_place(c));
	if (!a->once)
		return;
	if (a->dry_run)
		dry_run_ended(c);
	config_status(c, &s);
	trigger_suspend(config_push_topic(c)->trigger);
	a->once_failed |= s.outcome == CONFIG_FAILED;
	if (--a->once_left == 0)
		loop_stop(a->loop);
}

/* ---- what a configuration names ---- */

/* Sets the name of this host in receipts and rollouts. */
static void name_host(struct agent *a, const struct settings *s)
{
	const char *name = s->report.host;

	if (name)
		snprintf(a->host, sizeof(a->host), "%s", name);
	else if (gethostname(a->host, sizeof(a->host)))
		snprintf(a->host, sizeof(a->host), "localhost");
}

/* Starts the file thread and the watches if a server needs them and they are missing. */
static int start_helpers(struct agent *a, const struct settings *s)
{
	bool files = false, watch = false;

	for (size_t i = 0; i < s->server_count; i++) {
		files |= s->servers[i]->kind == SETTINGS_FILE;
		watch |= s->servers[i]->watch;
	}
	if (files && !a->files)
		a->files = worker_start(a->loop, "pullet-file");
	if (watch && !a->watcher && !a->once)
		a->watcher = watch_new(
			a->loop, &sys_real, a->backoffs, getenv("SSL_CERT_FILE"), a->drift);
	a->env.pull.exchange.files = a->files;
	a->env.watcher = a->watcher;
	return files && !a->files ? -ENOMEM : 0;
}

static struct upstream **make_servers(
	struct agent *a, const struct settings *s, const struct settings_match *m)
{
	struct upstream **servers = calloc(s->server_count + 1, sizeof(struct upstream *));

	for (size_t i = 0; servers && i < s->server_count; i++) {
		servers[i] = m->same[i] ? a->servers[m->before[i]]
					: upstream_new(a->loop, a->backoffs, s->servers[i]);
		if (!servers[i])
			return NULL;
	}
	return servers;
}

static struct config **make_configs(
	struct agent *a, const struct settings *s, const struct settings_match *m)
{
	struct config **configs = calloc(s->config_count + 1, sizeof(struct config *));

	for (size_t i = 0; configs && i < s->config_count; i++) {
		configs[i] =
			m->same[i] ? a->configs[m->before[i]] : config_new(&a->env, s->configs[i]);
		if (!configs[i])
			return NULL;
		config_set_place(configs[i], i);
	}
	return configs;
}

/* ---- push ---- */

static struct push_topic **list_topics(struct config *const *configs, size_t count)
{
	struct push_topic **topics = calloc(count + 1, sizeof(struct push_topic *));

	for (size_t i = 0; topics && i < count; i++)
		topics[i] = config_push_topic(configs[i]);
	return topics;
}

/* Starts the channel for the current configs. 0, or -errno with a sentence. */
static int start_push(
	struct agent *a, const struct settings *s, struct subscriber **ret_push, char why[FILE_WHY])
{
	size_t n = a->settings->config_count, m = s->push_count;
	struct push_topic **topics = list_topics(a->configs, n);
	struct subscriber_endpoint *endpoints = calloc(m + 1, sizeof(*endpoints));
	int r = -ENOMEM;

	for (size_t i = 0; endpoints && i < m; i++)
		endpoints[i] = (struct subscriber_endpoint){
			.endpoint = s->push[i].endpoint,
			.heartbeat_ms = s->push[i].heartbeat_ms,
			.server_key = s->push[i].server_key,
			.secret_key_file = s->push[i].secret_key_file,
		};
	if (topics && endpoints)
		r = m ? subscriber_start(&sys_real, endpoints, m, topics, n, ret_push) : 0;
	free(topics);
	free(endpoints);
	if (r)
		snprintf(why, FILE_WHY, "cannot start the push channel: %s%s",
			r == -EOPNOTSUPP ? "libzmq was built without CURVE, which the "
					   "configuration asks for: install one that has it"
					 : strerror(-r),
			sys_advice(-r));
	return r;
}

/* Gives the push thread the topics of these configs, or switches to the new channel. */
static int renew_push(struct agent *a, struct config *const *configs, size_t count,
	const struct settings_diff *diff)
{
	const struct settings_match *m = &diff->configs;
	struct push_topic **topics;
	int r;

	if (diff->push) {
		subscriber_stop(a->push);
		a->push = a->next_push;
		a->next_push = NULL;
	}
	if (!a->push || m->added + m->removed + m->changed == 0)
		return 0;
	topics = list_topics(configs, count);
	r = topics ? subscriber_renew(a->push, topics, count) : -ENOMEM;
	free(topics);
	return r;
}

/* ---- receipts ---- */

static void give_receipt(
	void *arg, size_t config, struct receipt_config *ret, struct receipt_texts *texts)
{
	struct agent *a = arg;

	config_receipt_fill(a->configs[config], ret, texts);
}

static int start_report(struct agent *a)
{
	const struct report_env env = {
		.sys = &sys_real,
		.loop = a->loop,
		.transport = a->transport,
		.backoffs = a->backoffs,
		.ca_file = getenv("SSL_CERT_FILE"),
		.settings = a->settings,
		.host = a->host,
		.look = give_receipt,
		.arg = a,
	};

	if (!a->settings->report.from)
		return 0;
	a->report = report_start(&env);
	return a->report ? 0 : -ENOMEM;
}

static int renew_report(struct agent *a, const struct settings_diff *diff)
{
	for (size_t i = 0; a->report && i < a->settings->config_count; i++)
		if (!diff->configs.same[i])
			report_changed(a->report, i);
	return a->report ? 0 : start_report(a);
}

/* ---- from one configuration to the next ---- */

void agent_set_log(const struct agent *a, const struct settings *s)
{
	log_setup(a->level_given ? a->level : s->log_level, s->log_format);
}

/* Frees the configs and servers that were removed or changed. */
static void free_old(struct agent *a, const struct settings *old, const struct settings_diff *diff,
	const bool *gone)
{
	take_triggers(
		a); /* nobody fires these triggers any more: the queue must not know them either */
	for (size_t i = 0; i < old->config_count; i++) {
		if (diff->configs.kept[i])
			continue;
		control_forget(a->control, a->configs[i], gone[i]);
		config_free(a->configs[i]);
	}
	for (size_t i = 0; i < old->server_count; i++)
		if (!diff->servers.kept[i])
			upstream_free(a->servers[i]);
	free(a->configs);
	free(a->servers);
}

/* For each old config: true when no new one has its name. */
static bool *list_gone(
	const struct settings *old, const struct settings *new, const struct settings_match *m)
{
	bool *gone = calloc(old->config_count + 1, sizeof(*gone));

	for (size_t i = 0; gone && i < old->config_count; i++)
		gone[i] = true;
	for (size_t i = 0; gone && i < new->config_count; i++)
		if (m->before[i] != SETTINGS_NONE)
			gone[m->before[i]] = false;
	return gone;
}

static void start_configs(struct agent *a, const struct settings_match *m)
{
	struct sweep *sweep = a->env.sweep = sweep_new(&sys_real);

	for (size_t i = 0; i < a->settings->config_count; i++)
		if (!m->same[i])
			config_start(a->configs[i], m->before[i] != SETTINGS_NONE);
	a->env.sweep = NULL;
	sweep_free(sweep);
}

/* Asks the rollouts again after a change of labels or of the host's name. */
static void ask_rollouts(struct agent *a, const struct settings_match *m)
{
	for (size_t i = 0; i < a->settings->config_count; i++)
		if (m->same[i] && a->settings->configs[i]->rollout)
			config_refresh(a->configs[i], false);
}

/* The names of all configs, or of those with a snapshot; the caller frees the list. NULL: no
 * memory.
 */
static const char **list_names(const struct settings *s, bool snapshots, size_t *ret_count)
{
	const char **names = calloc(s->config_count + 1, sizeof(*names));

	*ret_count = 0;
	for (size_t i = 0; names && i < s->config_count; i++)
		if (s->configs[i]->snapshot || !snapshots)
			names[(*ret_count)++] = s->configs[i]->name;
	return names;
}

/* Withdraws snapshots without a current config. Not with --once, whose configuration may be only a
 * part of what is published here. */
static void withdraw_others(const struct agent *a)
{
	char why[FILE_WHY] = "out of memory";
	size_t count;
	const char **names = list_names(a->settings, true, &count);
	int r = -ENOMEM;

	if (names)
		r = withdraw_snapshots(&sys_real, a->settings->runtime_dir, names, count, why);
	if (r < 0)
		log_warn("a snapshot that no config has any more can still be read", "why", why);
	else if (r > 0)
		log_info("withdrew snapshots that no config has any more", "snapshots",
			LOG_U64((unsigned)r));
	free(names);
}

/* What the state directory has of other configs is old when they come back. */
static void leave_others(const struct agent *a)
{
	char why[FILE_WHY] = "out of memory";
	size_t count;
	const char **names = list_names(a->settings, false, &count);
	int r = -ENOMEM;

	if (names)
		r = left_mark(&sys_real, a->settings->state_dir, names, count, why);
	if (r < 0)
		log_warn("versions of removed configs cannot be marked as left", "why", why);
	free(names);
}

static void forget_others(const struct agent *a)
{
	withdraw_others(a);
	leave_others(a);
}

/* Makes the new settings, servers and configs the current ones. */
static void switch_settings(
	struct agent *a, struct settings *new, struct upstream **servers, struct config **configs)
{
	struct settings old = *a->settings;

	*a->settings = *new;
	*new = old;
	a->servers = servers;
	a->configs = configs;
	a->control_env.servers = servers;
	a->control_env.configs = configs;
	a->env.labels = a->settings->labels;
	a->env.label_count = a->settings->label_count;
	a->env.state_dir = a->settings->state_dir;
	a->env.runtime_dir = a->settings->runtime_dir;
	name_host(a, a->settings);
	if (a->control)
		control_operators(a->control, a->settings->operators);
}

int agent_apply(struct agent *a, struct settings *new, const struct settings_diff *diff)
{
	struct upstream **servers;
	struct config **configs = NULL;
	bool *gone = list_gone(a->settings, new, &diff->configs);
	int r;

	settings_adopt(a->settings, new, diff);
	servers = make_servers(a, new, &diff->servers);
	a->env.pull.servers = servers;
	if (servers)
		configs = make_configs(a, new, &diff->configs);
	if (!gone || !configs)
		return -ENOMEM;
	r = renew_push(a, configs, new->config_count, diff);
	if (r)
		return r;
	if (diff->report) {
		report_stop(a->report);
		a->report = NULL;
	}
	free_old(a, a->settings, diff, gone);
	switch_settings(a, new, servers, configs);
	settings_free(new);
	free(gone);
	start_configs(a, &diff->configs);
	if (diff->labels)
		ask_rollouts(a, &diff->configs);
	if (a->control) /* a reload; a start takes the socket first */
		forget_others(a);
	return a->once ? 0 : renew_report(a, diff);
}

int agent_prepare(struct agent *a, const struct settings *new, const struct settings_diff *diff,
	char why[FILE_WHY])
{
	int r = descriptor_budget_check_next(a->settings, new, diff, why);

	if (r)
		return r;
	r = start_helpers(a, new);
	if (r)
		snprintf(why, FILE_WHY, "memory or threads are short: %s", strerror(-r));
	if (r == 0 && diff->push)
		r = start_push(a, new, &a->next_push, why);
	if (r == 0)
		r = control_listen(a->control, new->listen, why);
	if (r) {
		subscriber_stop(a->next_push);
		a->next_push = NULL;
	}
	return r;
}

/* ---- start and stop ---- */

int agent_log_shortage(int error)
{
	if (error == -EPERM || error == -ENOSYS)
		log_err("cannot start: a timer, a signal or a thread is denied: allow the system "
			"call in the sandbox (seccomp), or use a kernel that has it",
			"why", strerror(-error));
	else
		log_err("cannot start: memory, file descriptors or threads are short: raise the "
			"limits (LimitNOFILE, MemoryMax, TasksMax)",
			"why", strerror(-error));
	return error;
}

static void set_environment(struct agent *a)
{
	a->env = (struct config_env){
		.sys = &sys_real,
		.loop = a->loop,
		.pull.exchange = {.sys = &sys_real,
			.transport = a->transport,
			.ca_file = getenv("SSL_CERT_FILE")},
		.pull.check = a->check,
		.worker = a->worker,
		.check = a->check,
		.shelf = a->once ? NULL : &a->shelf,
		.queue = &a->queue,
		.drift = a->drift,
		.host = a->host,
		.starting = true,
		.dry_run = a->dry_run,
		.once = a->once,
		.goes_on = &a->goes_on,
		.events = a->once ? NULL : events_new(), /* without memory nobody sees them */
		.latency = &a->latency,
		.gone = &a->gone,
		.budget = &a->budget,
		.run_ended = config_run_ended,
		.arg = a,
	};
	a->control_env = (struct control_env){
		.loop = a->loop,
		.drift = a->drift,
		.settings = a->settings,
		.push = &a->push,
		.report = &a->report,
		.configuration = &a->configuration,
		.latency = &a->latency,
		.gone = &a->gone,
		.counts = &a->counts,
		.host = a->host,
		.started_ms = sys_real.wall_ms(),
	};
}

int agent_open(struct agent *a, const struct settings *settings)
{
	int r = a->dry_run ? 0 : own_directories_take(settings, &a->lock);

	if (r)
		return r;
	a->configuration =
		(struct configuration_status){.file = a->absolute_path ? a->absolute_path : a->path,
			.loaded_ms = sys_real.wall_ms()};
	errno = 0;
	a->loop = loop_new(&sys_real);
	a->transport = a->loop ? http_client_new(a->loop) : NULL;
	a->worker = a->loop ? worker_start(a->loop, "pullet-sync") : NULL;
	a->check = a->loop ? worker_start_behind(a->loop, "pullet-validate", CHECK_NICE) : NULL;
	a->backoffs = backoffs_new(&sys_real);
	a->settings = calloc(1, sizeof(*a->settings));
	if (!a->transport || !a->worker || !a->check || !a->backoffs || !a->settings)
		return agent_log_shortage(errno ? -errno : -ENOMEM);
	a->drift = a->once ? NULL : file_watch_new(a->loop);
	if (!a->drift && !a->once)
		log_warn("files cannot be watched: changes by others are seen at the interval",
			"why", file_watch_explain(errno));
	trigger_queue_init(&a->queue, wake_loop, a->loop);
	loop_on_wake(a->loop, take_triggers, a);
	loop_on_resume(a->loop, on_resume, a);
	set_environment(a);
	return 0;
}

/* Waits for addresses that are in use: a program that a killed agent was about to start has them
 * for a moment. */
static int start_control(struct agent *a, char why[FILE_WHY])
{
	uint64_t until_ms = sys_real.now_ms() + ADDRESS_WAIT_MS;
	int r = control_start(&a->control_env, &a->control, why);

	while (r == -EADDRINUSE && sys_real.now_ms() < until_ms) {
		poll(NULL, 0, ADDRESS_PAUSE_MS);
		r = control_start(&a->control_env, &a->control, why);
	}
	return r;
}

/* Starts the control API, the push channel and the messages to systemd. */
static int start_channels(struct agent *a)
{
	char why[FILE_WHY];
	int r = start_control(a, why);

	if (r) {
		log_err("cannot serve the control API", "why", why);
		return r;
	}
	r = start_push(a, a->settings, &a->push, why);
	if (r)
		log_err("cannot start", "why", why);
	else
		a->service = systemd_start(&a->control_env);
	return r;
}

int agent_start(struct agent *a, struct settings *settings)
{
	struct settings_diff diff;
	int r = settings_diff(a->settings, settings, &diff);

	if (r) {
		settings_free(settings);
		return agent_log_shortage(r);
	}
	a->once_left = settings->config_count;
	r = start_helpers(a, settings);
	if (r)
		settings_free(settings);
	else
		r = agent_apply(a, settings, &diff);
	a->env.starting = false;
	settings_diff_fini(&diff);
	if (r)
		return agent_log_shortage(r);
	r = a->once ? 0 : start_channels(a);
	if (r == 0 && !a->once)
		forget_others(a);
	return r;
}

static void end_loop(void *arg)
{
	struct agent *a = arg;

	loop_stop(a->loop);
}

void agent_leave(struct agent *a)
{
	struct loop_timer patience;

	if (!a->report || !report_leave(a->report, end_loop, a))
		return;
	loop_timer_init(&patience, end_loop, a);
	loop_timer_set(a->loop, &patience, loop_now_ms(a->loop) + AGENT_LEAVE_MS);
	(void)loop_run(a->loop); /* the agent ends in either case */
	loop_timer_cancel(a->loop, &patience);
}

/* Reverse order of the start. A write that hangs in the kernel is left behind: its state is one
 * that a crash may leave as well. */
void agent_stop(struct agent *a)
{
	systemd_stop(a->service);
	control_stop(a->control);
	report_stop(a->report);
	a->service = NULL; /* runs that end while the worker stops do not report to them */
	a->control = NULL;
	a->report = NULL;
	subscriber_stop(a->push);
	subscriber_stop(a->next_push);
	for (size_t i = 0; a->configs && i < a->settings->config_count; i++)
		config_retire(a->configs[i], NULL, NULL); /* ends pulls and publications */
	if (a->worker && worker_stop(a->worker, 1000)) {
		log_warn("the disk does not answer: exiting without the last write; the last known "
			 "good is safe");
		_exit(EXIT_FAILURE);
	}
	if (a->check && worker_stop(a->check, 2000)) {
		log_warn("a check still runs: exiting without its version");
		_exit(EXIT_SUCCESS);
	}
	if (a->files && worker_stop(a->files, 200)) {
		log_warn("a file of a server does not answer: exiting without it");
		_exit(EXIT_SUCCESS);
	}
	for (size_t i = 0; a->configs && i < a->settings->config_count; i++)
		config_free(a->configs[i]);
	free(a->configs);
	events_free(a->env.events);
	watch_free(a->watcher);
	file_watch_free(a->drift);
	for (size_t i = 0; a->servers && i < a->settings->server_count; i++)
		upstream_free(a->servers[i]);
	free(a->servers);
	backoffs_free(a->backoffs);
	http_client_free(a->transport);
	loop_free(a->loop);
	if (a->lock >= 0)
		close(a->lock);
	settings_free(a->settings);
}
