/*
 * The configuration file: all its errors, and what is allowed and still seldom meant. Surprising:
 * nothing here is a style guide; each row of the tables is something that cost somebody an outage
 * or a secret.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "crypto/curve_keys.h"
#include "cli/doctor/doctor.h"

#define LONG_MS (5 * 60 * 1000u)

/* ---- the file ---- */

struct told {
	struct doctor *d;
	struct doctor_list *l;
};

/* "file:line:column: what is wrong", its place as the subject. */
static void add_settings_error(void *arg, const char *message)
{
	struct told *t = arg;
	const char *end = strstr(message, ": ");
	char place[512];

	snprintf(place, sizeof(place), "%.*s", end ? (int)(end - message) : 0, message);
	doctor_add(
		t->l, DOCTOR_ERROR, end ? place : t->d->path, NULL, "%s", end ? end + 2 : message);
}

static void load_configuration(struct doctor *d, struct doctor_list *l)
{
	struct told told = {d, l};

	if (access(d->path, R_OK) && errno == EACCES) {
		doctor_add(l, DOCTOR_ERROR, d->path, "run this as root or as the agent's user",
			"you may not read it; what depends on it was not looked at");
		return;
	}
	d->bad_settings = settings_load(d->path, add_settings_error, &told, &d->settings);
	if (d->bad_settings)
		doctor_add(l, DOCTOR_NOTE, d->path, "put it right, and run this again",
			"with %zu error%s in it, servers, push, hooks and published files were not "
			"looked at",
			l->count, l->count == 1 ? "" : "s");
	else
		doctor_add(l, DOCTOR_OK, d->path, NULL, "%zu config%s, no error",
			d->settings->config_count, d->settings->config_count == 1 ? "" : "s");
}

/* ---- what a config says ---- */

static bool has_open_url(const struct settings_server *s)
{
	for (size_t i = 0; i < s->url_count; i++)
		if (curve_url_is_open(s->urls[i]))
			return true;
	return false;
}

static bool any_server(const struct settings *s, const struct settings_config *c,
	bool (*has)(const struct settings_server *server))
{
	for (size_t i = 0; i < c->layer_count; i++)
		if (has(s->servers[c->layers[i].server]))
			return true;
	return false;
}

static bool is_watched(const struct settings_server *s)
{
	return s->watch;
}

static bool plain_and_unsigned(const struct settings *s, const struct settings_config *c)
{
	return !c->verify.public_keys && any_server(s, c, has_open_url);
}

static bool timeout_beyond_interval(const struct settings *s, const struct settings_config *c)
{
	(void)s;
	return c->timeout_ms > c->interval_ms;
}

static bool without_jitter(const struct settings *s, const struct settings_config *c)
{
	(void)s;
	return c->jitter == 0;
}

static bool slow_to_notice(const struct settings *s, const struct settings_config *c)
{
	return c->interval_ms >= LONG_MS && s->push_count == 0 && !any_server(s, c, is_watched);
}

static bool leaves_drift(const struct settings *s, const struct settings_config *c)
{
	(void)s;
	return c->drift == SETTINGS_LEAVE && settings_place(c);
}

static bool no_history(const struct settings *s, const struct settings_config *c)
{
	(void)s;
	return c->history == 1;
}

static bool probe_without_reload(const struct settings *s, const struct settings_config *c)
{
	(void)s;
	return (c->probe.argv || c->probe.url) && c->reload.rule_count == 0;
}

static bool shares_unbound_key(const struct settings *s, const struct settings_config *c)
{
	(void)s;
	return c->verify.key_shared && c->verify.bind == SETTINGS_BIND_NONE;
}

static const struct {
	bool (*is)(const struct settings *s, const struct settings_config *c);
	enum doctor_severity severity;
	const char *finding, *remedy;
} config_rows[] = {
	{plain_and_unsigned, DOCTOR_WARNING,
		"comes over plain http from another host, unsigned: anybody on the way can change "
		"it",
		"use https, or sign it (verify: public_key)"},
	{shares_unbound_key, DOCTOR_WARNING,
		"a signature is good for every document that trusts its key: who can write on a "
		"server can show one in the place of another",
		"remove verify: bind: none, and sign with pullet sign --path; or a key each"},
	{timeout_beyond_interval, DOCTOR_NOTE,
		"timeout is longer than interval: a server that hangs delays pulls by more than "
		"one interval",
		"set timeout below interval"},
	{without_jitter, DOCTOR_NOTE,
		"jitter is 0%: hosts that were started together pull in the same moment for ever",
		"leave jitter at its 10%"},
	{slow_to_notice, DOCTOR_NOTE,
		"nothing tells the agent of a change, and interval is five minutes or more",
		"set push, or watch: true of a server that can, or a shorter interval"},
	{leaves_drift, DOCTOR_NOTE,
		"drift: leave: what somebody else writes into the file stays, and is not reported",
		"use heal, or report"},
	{no_history, DOCTOR_NOTE, "history is 1: there is no version to roll back to",
		"keep at least 2"},
	{probe_without_reload, DOCTOR_NOTE,
		"probe checks an application that was not notified of the change",
		"set reload, unless the application notices the file by itself"},
};

static void check_config_rows(struct doctor *d, struct doctor_list *l)
{
	const struct settings *s = d->settings;

	for (size_t i = 0; i < s->config_count; i++)
		for (size_t k = 0; k < sizeof(config_rows) / sizeof(config_rows[0]); k++)
			if (doctor_is_selected(d, s->configs[i]) &&
				config_rows[k].is(s, s->configs[i]))
				doctor_add(l, config_rows[k].severity, s->configs[i]->name,
					config_rows[k].remedy, "%s", config_rows[k].finding);
}

/* ---- what the rest says ---- */

static void check_listen_address(struct doctor *d, struct doctor_list *l)
{
	if (d->settings->listen && !curve_stays_here(d->settings->listen))
		doctor_add(l, DOCTOR_WARNING, "listen",
			"listen on 127.0.0.1, or let a firewall say who may come",
			"%s can be reached from other hosts: names of configs and servers, "
			"versions and errors are shown to every client",
			d->settings->listen);
}

static void check_push_endpoints(struct doctor *d, struct doctor_list *l)
{
	for (size_t i = 0; i < d->settings->push_count; i++)
		if (d->settings->push[i].insecure)
			doctor_add(l, DOCTOR_WARNING, d->settings->push[i].endpoint, "use curve",
				"push messages in plain text from another host: anybody on the way "
				"can make all hosts pull at once");
}

static bool is_secret_header(const char *name)
{
	static const char *const words[] = {
		"auth", "token", "key", "secret", "password", "cookie", "credential"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcasestr(name, words[i]))
			return true;
	return false;
}

/* Headers may stand in the file as they are: then the file is a secret. */
static void check_header_secrets(struct doctor *d, struct doctor_list *l)
{
	struct stat st;

	if (stat(d->path, &st) || !(st.st_mode & S_IROTH) || doctor_is_shielded(d->path))
		return;
	for (size_t i = 0; i < d->settings->server_count; i++) {
		const struct settings_server *s = d->settings->servers[i];

		for (size_t k = 0; k < s->header_count; k++)
			if (s->headers[k].value && is_secret_header(s->headers[k].name))
				doctor_add(l, DOCTOR_WARNING, s->name ? s->name : d->path,
					"put it into a file of its own (headers: NAME: {file: "
					"PATH}), or take the right to read this one from others "
					"(chmod o-r)",
					"the header %s is in the configuration, which "
					"everybody on this host can read",
					s->headers[k].name);
	}
}

static void check_configuration_writers(struct doctor *d, struct doctor_list *l)
{
	struct stat st;

	if (stat(d->path, &st) == 0 && st.st_mode & S_IWOTH && !doctor_is_shielded(d->path))
		doctor_add(l, DOCTOR_ERROR, d->path, "chmod o-w",
			"everybody on this host can write in it, and so choose the programs that "
			"the agent runs");
}

void doctor_configuration(struct doctor *d, struct doctor_list *l)
{
	load_configuration(d, l);
	doctor_find_dirs(d);
	if (!d->settings)
		return;
	check_config_rows(d, l);
	check_listen_address(d, l);
	check_push_endpoints(d, l);
	check_header_secrets(d, l);
	check_configuration_writers(d, l);
	if (d->settings->log_level == LOG_LEVEL_DEBUG)
		doctor_add(l, DOCTOR_NOTE, "log", "set level: info",
			"level is debug: several lines for each pull");
}
