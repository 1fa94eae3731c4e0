/*
 * The options of `pullet relay`: a table. Surprising: one like --prefix belongs to the server, or
 * upstream, that was named last.
 */
#include "cli/relay/options.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crypto/curve_keys.h"
#include "settings/form.h"
#include "cli/common/cli.h"
#include "cli/common/options.h"

#define QUEUE 100 /* messages for a subscriber: what is more waits in the relay, once */
#define MAX_TIME_MS 3600000u

static struct relay_origin *add_relay_origin(struct relay_setup *s)
{
	if (s->origin_count < RELAY_SETUP_MAX)
		return &s->origins[s->origin_count++];
	cli_error(CLI_USAGE, s->command, "at most %d servers can be named", RELAY_SETUP_MAX);
	return NULL;
}

/* One url, without slashes at its end, as in a configuration. */
static int add_url(struct relay_setup *s, struct relay_origin *o, const char *text, size_t len)
{
	char **url = &o->urls[o->own.url_count];
	const char *why;

	if (o->own.url_count == SETTINGS_MAX_URLS)
		return cli_error(
			CLI_USAGE, s->command, "a server has at most %d urls", SETTINGS_MAX_URLS);
	while (len > 0 && text[len - 1] == '/')
		len--;
	*url = strndup(text, len);
	if (!*url)
		return cli_error(CLI_FAILED, s->command, "out of memory");
	o->own.url_count++;
	why = settings_check_base_url(*url);
	if (why) /* not shown: it may hold a password */
		return cli_error(CLI_USAGE, s->command, "the url of a server %s", why);
	return CLI_OK;
}

static int set_server_urls(struct relay_setup *s, enum settings_kind kind, const char *text)
{
	struct relay_origin *o = add_relay_origin(s);
	int r = o ? CLI_OK : CLI_USAGE;

	if (!o)
		return r;
	o->own = (struct settings_server){
		.kind = kind,
		.urls = o->urls,
		.connect_timeout_ms = 3000,
		.max_in_flight = 1,
		.max_bytes = SETTINGS_MAX_BYTES_DEFAULT,
	};
	for (size_t len; r == CLI_OK; text += len + 1) {
		len = strcspn(text, ",");
		r = add_url(s, o, text, len);
		if (!text[len])
			break;
	}
	o->own.name = o->urls[0]; /* for the log */
	return r;
}

static int set_etcd(void *target, const char *command, char *text)
{
	(void)command;
	return set_server_urls(target, SETTINGS_ETCD, text);
}

static int set_consul(void *target, const char *command, char *text)
{
	(void)command;
	return set_server_urls(target, SETTINGS_CONSUL, text);
}

static int set_named_server(void *target, const char *command, char *text)
{
	struct relay_setup *s = target;
	struct relay_origin *o = add_relay_origin(s);

	(void)command;
	if (o)
		o->name = text;
	return o ? CLI_OK : CLI_USAGE;
}

static int set_prefix(void *target, const char *command, char *text)
{
	struct relay_setup *s = target;
	struct relay_origin *o = s->origin_count ? &s->origins[s->origin_count - 1] : NULL;
	size_t len = strlen(text);

	if (!o)
		return cli_error(CLI_USAGE, command,
			"--prefix belongs to a server: name it first, with --etcd, --consul or "
			"--server");
	if (len == 0 || text[len - 1] != '/')
		return cli_error(
			CLI_USAGE, command, "--prefix ends in '/': the rest of a key is its topic");
	if (s->prefix_count == RELAY_SETUP_MAX)
		return cli_error(
			CLI_USAGE, command, "at most %d prefixes can be named", RELAY_SETUP_MAX);
	o->prefixes++;
	s->prefixes[s->prefix_count++] = (struct relay_prefix){o, text};
	return CLI_OK;
}

static int set_dir(void *target, const char *command, char *text)
{
	struct relay_setup *s = target;
	if (s->dir_count == RELAY_SETUP_MAX)
		return cli_error(
			CLI_USAGE, command, "at most %d directories can be named", RELAY_SETUP_MAX);
	s->dirs[s->dir_count++] = text;
	return CLI_OK;
}

static int set_upstream(void *target, const char *command, char *text)
{
	struct relay_setup *s = target;
	const char *why = settings_check_endpoint(text);

	if (why)
		return cli_error(CLI_USAGE, command, "--upstream %s", why);
	if (s->upstream_count == RELAY_SETUP_MAX)
		return cli_error(
			CLI_USAGE, command, "at most %d upstreams can be named", RELAY_SETUP_MAX);
	s->upstreams[s->upstream_count++] =
		(struct subscriber_endpoint){.endpoint = text, .heartbeat_ms = 5000};
	return CLI_OK;
}

static struct subscriber_endpoint *find_last_upstream(struct relay_setup *s, const char *option)
{
	if (s->upstream_count)
		return &s->upstreams[s->upstream_count - 1];
	cli_error(CLI_USAGE, s->command, "%s belongs to an upstream: name it first", option);
	return NULL;
}

static int set_upstream_heartbeat(void *target, const char *command, char *text)
{
	static const struct option_row bounds = {
		"upstream-heartbeat", .min = 100, .max = MAX_TIME_MS, .takes = "100ms to 1h"};
	struct subscriber_endpoint *u = find_last_upstream(target, "--upstream-heartbeat");

	return u ? options_duration(command, &bounds, text, &u->heartbeat_ms) : CLI_USAGE;
}

static int set_upstream_key(void *target, const char *command, char *text)
{
	struct relay_setup *s = target;
	struct subscriber_endpoint *u = find_last_upstream(s, "--upstream-curve-server-key");
	const char *why = curve_check_key(text);

	if (u && why)
		return cli_error(CLI_USAGE, command, "--upstream-curve-server-key %s", why);
	if (u)
		u->server_key = text;
	return u ? CLI_OK : CLI_USAGE;
}

static int set_upstream_secret(void *target, const char *command, char *text)
{
	struct relay_setup *s = target;
	struct subscriber_endpoint *u = find_last_upstream(s, "--upstream-curve-secret-key");

	(void)command;
	if (u)
		u->secret_key_file = text;
	return u ? CLI_OK : CLI_USAGE;
}

static int set_upstream_insecure(void *target, const char *command, char *text)
{
	struct relay_setup *s = target;
	struct subscriber_endpoint *u = find_last_upstream(s, "--upstream-insecure");

	(void)command, (void)text;
	if (u)
		s->upstream_insecure[u - s->upstreams] = true;
	return u ? CLI_OK : CLI_USAGE;
}

static int set_listen(void *target, const char *command, char *text)
{
	struct relay_setup *s = target;
	const char *why = settings_check_address(text);

	if (why)
		return cli_error(CLI_USAGE, command, "--listen '%s' %s", text, why);
	s->listen = text;
	return CLI_OK;
}

static int set_listen_name(void *target, const char *command, char *text)
{
	struct relay_setup *s = target;

	return options_add_name(command, "--listen-name", text, s->listen_names);
}

#define AT(member) .at = offsetof(struct relay_setup, member)

static const struct option_row relay_rows[] = {
	{"push", "ENDPOINT", "where to publish (default tcp://127.0.0.1:7377; port 0: any)",
		OPTION_TEXT, AT(push)},
	{"etcd", "URL[,URL...]", "watch this etcd cluster,", OPTION_READ, .read = set_etcd},
	{"consul", "URL[,URL...]", "or this Consul,", OPTION_READ, .read = set_consul},
	{"server", "NAME", "or this server of the agent's configuration (-c FILE):", OPTION_READ,
		.read = set_named_server},
	{"prefix", "PREFIX/", "the keys that begin so; once or several times behind a server",
		OPTION_READ, .read = set_prefix},
	{"config", "FILE", "where the servers of --server are", OPTION_TEXT, AT(config),
		.letter = 'c'},
	{"dir", "DIR", "watch the files of a directory", OPTION_READ, .read = set_dir},
	{"upstream", "ENDPOINT", "pass on the messages of another publisher or relay", OPTION_READ,
		.read = set_upstream},
	{"upstream-heartbeat", "DURATION", "expected of it (default 5s)", OPTION_READ,
		.read = set_upstream_heartbeat},
	{"upstream-curve-server-key", "KEY", "its public key: nothing is taken from others",
		OPTION_READ, .read = set_upstream_key},
	{"upstream-curve-secret-key", "FILE", "the relay's own key there, of pullet keygen",
		OPTION_READ, .read = set_upstream_secret},
	{"upstream-insecure", NULL, "take plain text also from another host", OPTION_READ,
		.read = set_upstream_insecure},
	{"heartbeat", "DURATION", "between heartbeats (default 5s)", OPTION_DURATION,
		AT(relaying.heartbeat_ms), .min = 100, .max = MAX_TIME_MS, .takes = "100ms to 1h"},
	{"spread", "DURATION", "each agent waits a random time up to this", OPTION_DURATION,
		AT(relaying.spread_ms), .max = MAX_TIME_MS, .takes = "0s to 1h"},
	OPTION_ROWS_PUBLISHER(struct relay_setup, publishing),
	{"listen", "HOST:PORT", "serve /metrics, /livez and /readyz there (port 0: any)",
		OPTION_READ, .read = set_listen},
	{"listen-name", "NAME", "what clients of --listen may call this host, too", OPTION_READ,
		.read = set_listen_name},
	{0},
};

static const struct command_line relay_line = {
	.usage = "Usage: pullet relay [--push ENDPOINT] SOURCE... [OPTION...]\n"
		 "Publishes an update message for each change in its sources, to any number of "
		 "agents and relays.\n"
		 "The topic is the name behind the prefix, or in the directory, without its "
		 "ending.\n",
	.rows = relay_rows,
	.max = -1,
};

static int check_upstreams(const struct relay_setup *s)
{
	for (size_t i = 0; i < s->upstream_count; i++) {
		const struct subscriber_endpoint *u = &s->upstreams[i];
		bool insecure = s->upstream_insecure[i];

		if (u->secret_key_file && !u->server_key)
			return cli_error(CLI_USAGE, s->command,
				"--upstream-curve-secret-key needs --upstream-curve-server-key "
				"beside it");
		if (u->server_key && insecure)
			return cli_error(CLI_USAGE, s->command,
				"--upstream-insecure and --upstream-curve-server-key exclude each "
				"other: leave one out");
		if (!u->server_key && !insecure && !curve_stays_here(u->endpoint))
			return cli_error(CLI_USAGE, s->command,
				"%s is not on this host, and plain text could be read and forged "
				"on the way: name its key with --upstream-curve-server-key, or "
				"say --upstream-insecure",
				u->endpoint);
	}
	return CLI_OK;
}

static int check_relay_options(const struct relay_setup *s)
{
	bool named = false;

	for (size_t i = 0; i < s->origin_count; i++) {
		named |= s->origins[i].name != NULL;
		if (s->origins[i].prefixes == 0)
			return cli_error(CLI_USAGE, s->command,
				"a server needs a --prefix behind it: which of its keys are "
				"watched?");
	}
	if (named && !s->config)
		return cli_error(CLI_USAGE, s->command,
			"--server needs -c FILE, where that server is described");
	if (s->config && !named)
		return cli_error(
			CLI_USAGE, s->command, "-c is read for --server only, and none is named");
	if (s->prefix_count + s->dir_count + s->upstream_count == 0)
		return options_misused(&relay_line, s->command,
			"there is nothing to relay: name a source with --etcd, --consul, "
			"--server, --dir or --upstream");
	if (s->listen_names[0] && !s->listen)
		return cli_error(CLI_USAGE, s->command,
			"--listen-name is for the clients of --listen: where is it?");
	return check_upstreams(s);
}

int relay_setup_read(struct relay_setup *s, int argc, char **argv)
{
	char sentence[128];
	int r;

	s->command = argv[0];
	s->push = "tcp://127.0.0.1:7377";
	s->publishing.queue = QUEUE;
	s->relaying.heartbeat_ms = 5000;
	r = options_read(&relay_line, argc, argv, s);
	if (r >= 0)
		return r;
	if (optind < argc) {
		snprintf(sentence, sizeof(sentence), "'%.80s' is no option: all sources are",
			argv[optind]);
		return options_misused(&relay_line, s->command, sentence);
	}
	s->relaying.upstreams = (unsigned)s->upstream_count;
	r = check_relay_options(s);
	return r ? r : -1;
}

void relay_setup_fini(struct relay_setup *s)
{
	for (size_t i = 0; i < s->origin_count; i++)
		for (size_t j = 0; j < SETTINGS_MAX_URLS; j++)
			free(s->origins[i].urls[j]);
}
