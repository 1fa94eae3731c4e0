/* An etcd from the command line. Surprising: an invalid line ends a watch; the caller reads
 * everything again. */
#include "cli/fleet/etcd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pull/exchange.h"
#include "fleet/receipt.h"
#include "settings/places.h"
#include "settings/form.h"
#include "cli/common/cli.h"

struct etcd {
	const struct etcd_options *o;
	struct settings *settings; /* NULL = made from options */
	struct settings_server made;
	char *url; /* made.urls[0] */
	const struct settings_server *server;
	const char *prefix;
	const char *rollout_key;
	struct loop *loop;
	struct http_client *transport;
	struct exchange_env env;
	struct exchange_session session;
	unsigned address;
	uint64_t deadline_ms;

	/* under way */
	struct exchange *exchange;
	etcd_build build;
	void *arg;
	struct etcd_store_answer *answer;
	char *why;
	int error;
	bool waiting;
	void (*line)(void *arg, const struct etcd_store_answer *a);
	void (*ended)(void *arg, int error, const char *why);
};

/* ---- one request ---- */

static int build_asked(
	void *arg, const struct kind_place *place, struct kind_request *r, char why[FILE_WHY])
{
	struct etcd *e = arg;

	return e->build(e->arg, place, r, why);
}

static void end_exchange(struct etcd *e, int error, const char *why)
{
	e->exchange = NULL;
	if (error)
		e->address = (unsigned)((e->address + 1) % e->server->url_count);
	if (e->waiting) {
		e->error = error;
		snprintf(e->why, FILE_WHY, "%s", why);
		loop_stop(e->loop);
	} else {
		e->ended(e->arg, error, why);
	}
}

static void exchange_answered(
	void *arg, const struct kind_place *place, const struct http_client_response *response)
{
	struct etcd_store_answer none; /* a watch ends with 200, or an error */
	struct etcd *e = arg;
	enum kind_cause cause;
	char why[FILE_WHY] = "";
	bool over = !e->waiting && response->status == 200; /* the end of a watch */
	int r;

	if (over) {
		end_exchange(e, 0, "");
		return;
	}
	r = etcd_store_read(place, response, e->waiting ? e->answer : &none, &cause, why);
	if (r == -EACCES && exchange_again(e->exchange, true))
		return;
	end_exchange(e, r, why);
}

static void exchange_not_sent(void *arg, enum kind_cause cause, const char *why)
{
	(void)cause;
	end_exchange(arg, -EIO, why);
}

static void exchange_line_came(void *arg, const struct http_client_response *response)
{
	struct etcd *e = arg;
	const struct kind_place place = {.server = e->server};
	struct etcd_store_answer a;
	enum kind_cause cause;
	char why[FILE_WHY] = "";
	int r = etcd_store_read(&place, response, &a, &cause, why);

	if (r == 0) {
		e->line(e->arg, &a);
		etcd_store_answer_fini(&a);
		return;
	}
	exchange_cancel(e->exchange);
	end_exchange(e, r, why);
}

static uint64_t asked_timeout_ms(const struct etcd *e)
{
	uint64_t now_ms = loop_now_ms(e->loop);

	if (!e->waiting)
		return ETCD_IDLE_MS;
	if (e->deadline_ms <= now_ms)
		return e->deadline_ms ? 1 : ETCD_TIMEOUT_MS;
	return e->deadline_ms - now_ms < ETCD_TIMEOUT_MS ? e->deadline_ms - now_ms
							 : ETCD_TIMEOUT_MS;
}

static int start_asked(struct etcd *e, char why[FILE_WHY])
{
	static const struct exchange_calls asked = {.build = build_asked,
						   .ended = exchange_answered,
						   .failed = exchange_not_sent},
					   watched = {.build = build_asked,
						   .ended = exchange_answered,
						   .failed = exchange_not_sent,
						   .line = exchange_line_came};
	const struct exchange_request request = {
		.server = e->server,
		.session = &e->session,
		.place = {.base = e->server->urls[e->address],
			.path = e->prefix,
			.max_bytes = ETCD_MAX_ANSWER},
		.timeout_ms = asked_timeout_ms(e),
		.calls = e->waiting ? &asked : &watched,
		.arg = e,
	};

	return exchange_start(&e->env, &request, &e->exchange, why);
}

int etcd_ask(struct etcd *e, etcd_build make, void *arg, struct etcd_store_answer *ret,
	char why[FILE_WHY])
{
	e->waiting = true;
	e->build = make;
	e->arg = arg;
	e->answer = ret;
	e->why = why;
	for (size_t tries = e->server->url_count; tries > 0; tries--) {
		e->error = start_asked(e, why);
		if (e->error == 0 && loop_run(e->loop)) {
			etcd_unwatch(e);
			e->error = -ENOMEM;
			snprintf(why, FILE_WHY, "the event loop failed");
		}
		if (e->error != -EIO)
			break;
	}
	e->waiting = false;
	return e->error;
}

int etcd_watch(struct etcd *e, etcd_build make,
	void (*line)(void *, const struct etcd_store_answer *),
	void (*ended)(void *, int, const char *), void *arg, char why[FILE_WHY])
{
	e->build = make;
	e->line = line;
	e->ended = ended;
	e->arg = arg;
	return start_asked(e, why);
}

void etcd_unwatch(struct etcd *e)
{
	exchange_cancel(e->exchange);
	e->exchange = NULL;
}

/* ---- the choice of an etcd ---- */

static void print_settings_error(void *arg, const char *message)
{
	(void)arg;
	fprintf(stderr, "%s\n", message);
}

static const char *default_settings_file(void)
{
	static char path[PLACES_PATH];

	return places_configuration(path);
}

static int choose_etcd_server(struct etcd *e, const char *file)
{
	const struct settings *s = e->settings;
	const char *name = e->o->server ? e->o->server : s->report.from;

	if (!name)
		return cli_error(CLI_CONFIG, e->o->command,
			"%s has no report: name an etcd with --etcd or --server", file);
	for (size_t i = 0; i < s->server_count; i++)
		if (s->servers[i]->name && strcmp(s->servers[i]->name, name) == 0)
			e->server = s->servers[i];
	if (!e->server)
		return cli_error(CLI_CONFIG, e->o->command, "%s has no server %s", file, name);
	if (e->server->kind != SETTINGS_ETCD)
		return cli_error(
			CLI_CONFIG, e->o->command, "the server %s is not of kind etcd", name);
	return CLI_OK;
}

/* The server of a config's rollout document, and its key. */
static int choose_rollout_server(struct etcd *e, const char *file)
{
	const struct settings *s = e->settings;
	const struct settings_layer *rollout = NULL;
	bool found = false;

	for (size_t i = 0; i < s->config_count; i++)
		if (strcmp(s->configs[i]->name, e->o->rollout_of) == 0) {
			rollout = s->configs[i]->rollout;
			found = true;
		}
	if (!found)
		return cli_error(CLI_NOT_FOUND, e->o->command, "%s has no config %s", file,
			e->o->rollout_of);
	if (!rollout)
		return cli_error(CLI_CONFIG, e->o->command,
			"%s has no rollout in %s: give it `rollout: {server: NAME, path: KEY}`, on "
			"all hosts",
			e->o->rollout_of, file);
	e->server = s->servers[rollout->server];
	e->rollout_key = rollout->path;
	if (e->server->kind != SETTINGS_ETCD)
		return cli_error(CLI_CONFIG, e->o->command,
			"the rollout document of %s is not in an etcd: write it as that server "
			"takes it",
			e->o->rollout_of);
	return CLI_OK;
}

static int configure_by_file(struct etcd *e)
{
	const char *file = e->o->file ? e->o->file : default_settings_file();
	int r;

	if (settings_load(file, print_settings_error, NULL, &e->settings))
		return cli_error(CLI_CONFIG, e->o->command,
			"the agent's configuration names the etcd; without it use --etcd");
	r = e->o->rollout_of ? choose_rollout_server(e, file) : choose_etcd_server(e, file);
	if (!e->prefix)
		e->prefix = e->settings->report.prefix;
	return r;
}

/* As the loader of a file does. */
static int check_etcd_url(struct etcd *e)
{
	const char *why = settings_check_base_url(e->url);

	for (size_t len = strlen(e->url); !why && len > 0 && e->url[len - 1] == '/';)
		e->url[--len] = '\0';
	return why ? cli_error(CLI_USAGE, e->o->command, "the address of --etcd %s", why) : CLI_OK;
}

static int configure_by_options(struct etcd *e)
{
	const struct etcd_options *o = e->o;

	e->url = strdup(o->url);
	if (!e->url)
		return cli_error(CLI_FAILED, o->command, "out of memory");
	if (!o->user != !o->password_file)
		return cli_error(
			CLI_USAGE, o->command, "--user and --password-file belong together");
	if (o->key && !o->cert)
		return cli_error(CLI_USAGE, o->command, "--key needs --cert");
	e->made = (struct settings_server){
		.kind = SETTINGS_ETCD,
		.urls = &e->url,
		.url_count = 1,
		.connect_timeout_ms = 3000,
		.max_in_flight = 1,
		.max_bytes = ETCD_MAX_ANSWER,
		.user = (char *)o->user,
		.password_file = (char *)o->password_file,
		.ca = (char *)o->ca,
		.cert = (char *)o->cert,
		.key = (char *)o->key,
	};
	e->server = &e->made;
	return check_etcd_url(e);
}

int etcd_check_options(const struct etcd_options *o)
{
	if (o->url && (o->file || o->server))
		return cli_error(CLI_USAGE, o->command,
			"--etcd is used alone: without --config and --server");
	if (!o->url && (o->user || o->password_file || o->ca || o->cert || o->key))
		return cli_error(CLI_USAGE, o->command,
			"--user, --password-file, --ca, --cert and --key belong to --etcd");
	return CLI_OK;
}

int etcd_open(const struct etcd_options *o, struct etcd **ret_etcd)
{
	struct etcd *e = calloc(1, sizeof(*e));
	int r;

	if (!e)
		return cli_error(CLI_FAILED, o->command, "out of memory");
	e->o = o;
	e->prefix = o->prefix;
	r = o->url ? configure_by_options(e) : configure_by_file(e);
	if (!e->prefix)
		e->prefix = RECEIPT_PREFIX;
	if (r == CLI_OK && (e->prefix[0] == '\0' || e->prefix[strlen(e->prefix) - 1] != '/'))
		r = cli_error(CLI_USAGE, o->command, "--prefix must end with /");
	if (r == CLI_OK) {
		e->loop = loop_new(&sys_real);
		e->transport = e->loop ? http_client_new(e->loop) : NULL;
		e->env = (struct exchange_env){.sys = &sys_real,
			.transport = e->transport,
			.ca_file = getenv("SSL_CERT_FILE")};
		if (!e->transport)
			r = cli_error(CLI_FAILED, o->command, "out of memory or descriptors");
	}
	if (r == CLI_OK)
		*ret_etcd = e;
	else
		etcd_close(e);
	return r;
}

void etcd_close(struct etcd *e)
{
	if (!e)
		return;
	etcd_unwatch(e);
	exchange_session_fini(&e->session);
	http_client_free(e->transport);
	loop_free(e->loop);
	settings_free(e->settings);
	free(e->url);
	free(e);
}

const char *etcd_prefix(const struct etcd *e)
{
	return e->prefix;
}

const char *etcd_name(const struct etcd *e)
{
	return e->server->urls[0];
}

const char *etcd_rollout_key(const struct etcd *e)
{
	return e->rollout_key;
}

void etcd_set_deadline(struct etcd *e, uint64_t deadline_ms)
{
	e->deadline_ms = deadline_ms;
}

struct loop *etcd_loop(struct etcd *e)
{
	return e->loop;
}
