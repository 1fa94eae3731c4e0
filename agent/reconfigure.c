/*
 * One reload after the other. Surprising: a config whose version is being written when it is
 * removed stays, and finishes that version; the other changed configs pull by the old configuration
 * until then.
 */
#include "reconfigure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent.h"
#include "base/ending.h"
#include "base/log.h"
#include "watch_config.h"

#define MAX_NAMES 200 /* bytes of a list in the log */

struct reconfigure {
	struct agent *agent;
	struct settings *next; /* NULL = no reload is under way */
	struct settings_diff diff;
	size_t waits; /* configs whose version is being written */
	struct loop_timer go_on;
	bool again; /* requested meanwhile */
	uint64_t began_ms;
	struct configuration_status *status;
	struct watch_config *watch; /* of its files */
};

/* ---- validation ---- */

static void add_error(void *arg, const char *message)
{
	struct configuration_status *s = ((struct reconfigure *)arg)->status;

	if (s->errors++ == 0) {
		free(s->error);
		s->error = strdup(message);
	}
	log_err("invalid configuration", "error", message);
}

static void drop_next(struct reconfigure *r)
{
	settings_free(r->next);
	settings_diff_fini(&r->diff);
	r->next = NULL;
	r->status->applying = false;
}

static void reject_next(struct reconfigure *r)
{
	r->status->rejections++;
	log_err("the new configuration is invalid: nothing was changed", "file", r->agent->path,
		"errors", LOG_U64(r->status->errors));
	drop_next(r);
	watch_config_set(r->watch, r->agent->settings->watch_config);
	systemd_reloaded(r->agent->service);
}

/* True when valid settings can also replace the current ones; else logs why not. */
static bool is_possible(struct reconfigure *r)
{
	char why[FILE_WHY];

	if (settings_diff(r->agent->settings, r->next, &r->diff)) {
		add_error(r, "out of memory");
		return false;
	}
	if (r->diff.fixed) {
		snprintf(why, sizeof(why),
			"%s: %s cannot change while the agent runs, for readers and the state are "
			"there: restart it, or write the value back",
			r->agent->path, r->diff.fixed);
		add_error(r, why);
		return false;
	}
	if (agent_prepare(r->agent, r->next, &r->diff, why)) {
		add_error(r, why);
		return false;
	}
	return true;
}

/* ---- what changes, for the log ---- */

static const char *config_text(const struct settings *s, size_t i)
{
	return s->configs[i]->name;
}

static const char *server_text(const struct settings *s, size_t i)
{
	return s->servers[i]->name ? s->servers[i]->name : s->servers[i]->urls[0];
}

struct list { /* "2: web db" */
	char text[MAX_NAMES];
	size_t count;
};

static void list_name(struct list *l, const char *name)
{
	size_t len = strlen(l->text);

	if (len + strlen(name) + 6 < sizeof(l->text))
		snprintf(l->text + len, sizeof(l->text) - len, " %s", name);
	else if (!ends_in(l->text, len, "...")) /* what fits leaves room for it */
		snprintf(l->text + len, sizeof(l->text) - len, " ...");
	l->count++;
}

/* NULL when the list is empty, which leaves the pair out of the log. */
static const char *list_text(const struct list *l, char text[MAX_NAMES + 24])
{
	if (!l->count)
		return NULL;
	snprintf(text, MAX_NAMES + 24, "%zu:%s", l->count, l->text);
	return text;
}

#define LIST_TEXT(l) list_text(l, (char[MAX_NAMES + 24]){0})

struct lists {
	struct list added, changed, removed;
};

static void fill_lists(struct lists *l, const struct settings *old, size_t old_count,
	const struct settings *new, size_t new_count, const struct settings_match *m,
	const char *(*name)(const struct settings *s, size_t i))
{
	for (size_t i = 0; i < new_count; i++) {
		if (m->before[i] == SETTINGS_NONE)
			list_name(&l->added, name(new, i));
		else if (!m->same[i])
			list_name(&l->changed, name(new, i));
	}
	for (size_t i = 0; i < old_count; i++)
		if (!m->stays[i])
			list_name(&l->removed, name(old, i));
}

/* Logs configs whose published file has another path now. */
static void log_moved_files(const struct reconfigure *r)
{
	const struct settings *old = r->agent->settings, *new = r->next;
	const struct settings_match *m = &r->diff.configs;

	for (size_t i = 0; i < new->config_count; i++) {
		const struct settings_config *now = new->configs[i], *was;
		const char *place;

		if (m->before[i] == SETTINGS_NONE || m->same[i])
			continue;
		was = old->configs[m->before[i]];
		place = settings_place(was);
		if (place && (!settings_place(now) || strcmp(place, settings_place(now)) != 0))
			log_info("published to another file: the old one is kept", "config",
				now->name, "file", place);
	}
}

/* What operators decided goes with the name: under another one it does not hold. */
static void log_left_decisions(const struct reconfigure *r)
{
	for (size_t i = 0; i < r->agent->settings->config_count; i++) {
		struct config_status s;

		if (r->diff.configs.stays[i])
			continue;
		config_status(r->agent->configs[i], &s);
		if (s.pin || s.suspension || s.override_count)
			log_warn("a config with decisions of operators is removed: they hold again "
				 "when one of this name is back, and for no other name",
				"config", s.settings->name, "pinned", s.pin ? "yes" : NULL,
				"suspended", s.suspension ? "yes" : NULL, "overrides",
				s.override_count ? LOG_U64(s.override_count) : NULL);
	}
}

static void log_changes(const struct reconfigure *r)
{
	const struct settings *old = r->agent->settings, *new = r->next;
	struct lists configs = {0}, servers = {0};
	char others[64];
	const char *other;

	fill_lists(&configs, old, old->config_count, new, new->config_count, &r->diff.configs,
		config_text);
	fill_lists(&servers, old, old->server_count, new, new->server_count, &r->diff.servers,
		server_text);
	snprintf(others, sizeof(others), "%s%s%s%s%s%s", r->diff.push ? " push" : "",
		r->diff.listen ? " listen" : "", r->diff.operators ? " operators" : "",
		r->diff.labels ? " labels" : "",
		r->diff.report && new->report.from ? " report" : "",
		r->diff.watch_config ? " watch_config" : "");
	other = others + strspn(others, " ");
	log_info("the new configuration is applied", "file", r->agent->path, "unchanged",
		LOG_U64(r->diff.configs.unchanged), "added", LIST_TEXT(&configs.added), "changed",
		LIST_TEXT(&configs.changed), "removed", LIST_TEXT(&configs.removed),
		"servers_added", LIST_TEXT(&servers.added), "servers_changed",
		LIST_TEXT(&servers.changed), "servers_removed", LIST_TEXT(&servers.removed),
		"other", *other ? other : NULL);
	if (configs.removed.count)
		log_info("files and history of the removed configs are kept", "state_dir",
			old->state_dir);
	log_moved_files(r);
}

/* ---- application ---- */

static void apply_next(struct reconfigure *r)
{
	struct agent *a = r->agent;

	log_changes(r);
	agent_set_log(a, r->next);
	if (agent_apply(a, r->next, &r->diff)) {
		log_err("out of memory during a reload: exiting, to start from the last known "
			"good");
		_exit(EXIT_FAILURE);
	}
	r->next = NULL;
	drop_next(r);
	r->status->reloads++;
	free(r->status->error);
	r->status->error = NULL;
	r->status->loaded_ms = sys_real.wall_ms();
	log_debug("the new configuration runs", "after_ms",
		LOG_U64(loop_now_ms(a->loop) - r->began_ms));
	watch_config_set(r->watch, a->settings->watch_config);
	systemd_reloaded(a->service);
}

static void one_retired(void *arg)
{
	struct reconfigure *r = arg;

	if (--r->waits == 0)
		loop_timer_set(r->agent->loop, &r->go_on, loop_now_ms(r->agent->loop));
}

/* Ends removed and changed configs: only those with a write under way, or only the others. */
static void retire_those(struct reconfigure *r, bool at_disk)
{
	struct agent *a = r->agent;

	for (size_t i = 0; i < a->settings->config_count; i++)
		if (!r->diff.configs.kept[i] && config_at_disk(a->configs[i]) == at_disk &&
			!config_retire(a->configs[i], one_retired, r))
			r->waits++;
}

/* Ends removed and changed configs. False while some are being written: the disk may hang, so the
 * others go on until it has answered. */
static bool retire_changed(struct reconfigure *r)
{
	retire_those(r, true);
	if (!r->waits)
		retire_those(r, false);
	if (r->waits)
		log_info("reload pending: waiting for writes to finish", "configs",
			LOG_U64(r->waits));
	return r->waits == 0;
}

static void continue_reload(void *arg)
{
	struct reconfigure *r = arg;

	if (r->next && retire_changed(r))
		apply_next(r);
	if (!r->next && r->again) {
		r->again = false;
		reconfigure_begin(r);
	}
}

/* ---- outside ---- */

void reconfigure_begin(struct reconfigure *r)
{
	struct agent *a = r->agent;
	const struct settings_reading how = {.report = add_error,
		.arg = r,
		.opens = watched_files_add,
		.opens_arg = &a->files_read};

	if (a->once) {
		log_info("SIGHUP ignored: --once keeps the configuration it started with");
		return;
	}
	if (r->next) {
		r->again = true;
		return;
	}
	r->began_ms = loop_now_ms(a->loop);
	r->status->errors = 0;
	systemd_reloading(a->service);
	watched_files_begin(&a->files_read, a->path);
	if (settings_load_with(a->path, &how, &r->next) || !is_possible(r)) {
		reject_next(r);
		return;
	}
	r->status->applying = true;
	log_left_decisions(r);
	if (retire_changed(r))
		apply_next(r);
}

void reconfigure_started(struct reconfigure *r)
{
	if (!r->agent->once)
		watch_config_set(r->watch, r->agent->settings->watch_config);
}

static void files_changed(void *arg)
{
	reconfigure_begin(arg);
}

struct reconfigure *reconfigure_new(struct agent *a)
{
	struct reconfigure *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->agent = a;
	r->status = &a->configuration;
	loop_timer_init(&r->go_on, continue_reload, r);
	r->watch = watch_config_new(a->loop, a->path, &a->files_read, files_changed, r);
	if (!r->watch) {
		free(r);
		return NULL;
	}
	return r;
}

void reconfigure_free(struct reconfigure *r)
{
	if (!r)
		return;
	watch_config_free(r->watch);
	loop_timer_cancel(r->agent->loop, &r->go_on);
	drop_next(r);
	free(r->status->error);
	r->status->error = NULL;
	free(r);
}
