/*
 * pullet relay: sources and upstream publishers in, one publisher out; what becomes of a change is
 * in agent/relay.c. Surprising: an option like --prefix belongs to the server that was named last.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../log.h"
#include "../loop.h"
#include "../origin.h"
#include "../publisher.h"
#include "../relay.h"
#include "../settings.h"
#include "../settings_value.h"
#include "../upstream.h"
#include "../watch.h"
#include "../watcher.h"
#include "cli.h"

#define MAX RELAY_MAX_UPSTREAMS /* of servers, prefixes, directories and upstreams each */
#define MAX_HEARTBEAT_MS (3600u * 1000u)
#define QUEUE 100         /* messages for a subscriber: what is more waits in the relay, once */
#define SUBSCRIPTIONS 256 /* taken in one turn */
#define LABEL 256

struct origin {           /* a server */
	const char *name; /* --server; NULL: made from urls */
	struct settings_server own;
	char *urls[SETTINGS_MAX_URLS];
	const struct settings_server *server;
	struct session session;
	size_t prefixes;
};

struct source { /* what is below a prefix there */
	struct daemon *daemon;
	struct origin *origin;
	const char *prefix;
	char label[LABEL];
	struct watcher_item item;
};

struct folder {
	struct daemon *daemon;
	const char *path;
	int dir;
	struct watch *watch;
};

struct daemon {
	const char *command;
	/* options */
	const char *push, *config;
	struct publisher_options publishing;
	struct relay_options relaying;
	struct origin origins[MAX];
	struct source sources[MAX];
	struct folder folders[MAX];
	struct push_endpoint upstreams[MAX];
	bool upstream_insecure[MAX];
	size_t origin_count, source_count, folder_count, upstream_count;
	/* what runs */
	struct settings *settings;
	struct loop *loop;
	struct publisher *publisher;
	struct relay *relay;
	struct watcher *watcher;
	struct upstream *upstream;
	struct loop_timer turn;
	struct loop_watch subscriptions;
	struct log_limit no_topic;
};

/* ---- options ---- */

static int set_push(struct daemon *d, const char *text)
{
	d->push = text;
	return CLI_OK;
}

static int set_config(struct daemon *d, const char *text)
{
	d->config = text;
	return CLI_OK;
}

static struct origin *add_origin(struct daemon *d)
{
	if (d->origin_count < MAX)
		return &d->origins[d->origin_count++];
	cli_error(CLI_USAGE, d->command, "at most %d servers can be named", MAX);
	return NULL;
}

/* One url, without slashes at its end, as in a configuration. */
static int add_url(struct daemon *d, struct origin *o, const char *text, size_t len)
{
	char **url = &o->urls[o->own.url_count];
	const char *why;

	if (o->own.url_count == SETTINGS_MAX_URLS)
		return cli_error(
			CLI_USAGE, d->command, "a server has at most %d urls", SETTINGS_MAX_URLS);
	while (len > 0 && text[len - 1] == '/')
		len--;
	*url = strndup(text, len);
	if (!*url)
		return cli_error(CLI_FAILED, d->command, "out of memory");
	o->own.url_count++;
	why = settings_check_base_url(*url);
	if (why) /* not shown: it may hold a password */
		return cli_error(CLI_USAGE, d->command, "the url of a server %s", why);
	return CLI_OK;
}

static int set_server(struct daemon *d, enum settings_kind kind, const char *text)
{
	struct origin *o = add_origin(d);
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
	o->server = &o->own;
	for (size_t len; r == CLI_OK; text += len + 1) {
		len = strcspn(text, ",");
		r = add_url(d, o, text, len);
		if (!text[len])
			break;
	}
	o->own.name = o->urls[0]; /* for the log */
	return r;
}

static int set_etcd(struct daemon *d, const char *text)
{
	return set_server(d, SETTINGS_ETCD, text);
}

static int set_consul(struct daemon *d, const char *text)
{
	return set_server(d, SETTINGS_CONSUL, text);
}

static int set_named(struct daemon *d, const char *text)
{
	struct origin *o = add_origin(d);

	if (o)
		o->name = text;
	return o ? CLI_OK : CLI_USAGE;
}

static int set_prefix(struct daemon *d, const char *text)
{
	struct origin *o = d->origin_count ? &d->origins[d->origin_count - 1] : NULL;
	size_t len = strlen(text);

	if (!o)
		return cli_error(CLI_USAGE, d->command,
			"--prefix belongs to a server: name it first, with --etcd, --consul or "
			"--server");
	if (len == 0 || text[len - 1] != '/')
		return cli_error(CLI_USAGE, d->command,
			"--prefix ends in '/': what stands behind it is the topic");
	if (d->source_count == MAX)
		return cli_error(CLI_USAGE, d->command, "at most %d prefixes can be named", MAX);
	o->prefixes++;
	d->sources[d->source_count++] = (struct source){.daemon = d, .origin = o, .prefix = text};
	return CLI_OK;
}

static int set_dir(struct daemon *d, const char *text)
{
	if (d->folder_count == MAX)
		return cli_error(CLI_USAGE, d->command, "at most %d directories can be named", MAX);
	d->folders[d->folder_count++] = (struct folder){.daemon = d, .path = text, .dir = -1};
	return CLI_OK;
}

static int set_upstream(struct daemon *d, const char *text)
{
	const char *why = settings_check_endpoint(text);

	if (why)
		return cli_error(CLI_USAGE, d->command, "--upstream %s", why);
	if (d->upstream_count == MAX)
		return cli_error(CLI_USAGE, d->command, "at most %d upstreams can be named", MAX);
	d->upstreams[d->upstream_count++] =
		(struct push_endpoint){.endpoint = text, .heartbeat_ms = 5000};
	return CLI_OK;
}

static struct push_endpoint *last_upstream(struct daemon *d, const char *option)
{
	if (d->upstream_count)
		return &d->upstreams[d->upstream_count - 1];
	cli_error(CLI_USAGE, d->command, "%s belongs to an upstream: name it first", option);
	return NULL;
}

static int set_time(
	struct daemon *d, const char *option, const char *text, uint64_t least_ms, uint64_t *ret_ms)
{
	uint64_t ms;

	if (cli_duration(d->command, option, text, &ms))
		return CLI_USAGE;
	if (ms < least_ms || ms > MAX_HEARTBEAT_MS)
		return cli_error(
			CLI_USAGE, d->command, "%s is %s to 1h", option, least_ms ? "100ms" : "0s");
	*ret_ms = ms;
	return CLI_OK;
}

static int set_upstream_heartbeat(struct daemon *d, const char *text)
{
	struct push_endpoint *u = last_upstream(d, "--upstream-heartbeat");

	return u ? set_time(d, "--upstream-heartbeat", text, 100, &u->heartbeat_ms) : CLI_USAGE;
}

static int set_upstream_key(struct daemon *d, const char *text)
{
	struct push_endpoint *u = last_upstream(d, "--upstream-curve-server-key");
	const char *why = curve_check_key(text);

	if (u && why)
		return cli_error(CLI_USAGE, d->command, "--upstream-curve-server-key %s", why);
	if (u)
		u->server_key = text;
	return u ? CLI_OK : CLI_USAGE;
}

static int set_upstream_secret(struct daemon *d, const char *text)
{
	struct push_endpoint *u = last_upstream(d, "--upstream-curve-secret-key");

	if (u)
		u->secret_key_file = text;
	return u ? CLI_OK : CLI_USAGE;
}

static int set_upstream_insecure(struct daemon *d, const char *text)
{
	struct push_endpoint *u = last_upstream(d, "--upstream-insecure");

	(void)text;
	if (u)
		d->upstream_insecure[u - d->upstreams] = true;
	return u ? CLI_OK : CLI_USAGE;
}

static int set_heartbeat(struct daemon *d, const char *text)
{
	return set_time(d, "--heartbeat", text, 100, &d->relaying.heartbeat_ms);
}

static int set_spread(struct daemon *d, const char *text)
{
	return set_time(d, "--spread", text, 0, &d->relaying.spread_ms);
}

static int set_secret_key(struct daemon *d, const char *text)
{
	d->publishing.secret_key_file = text;
	return CLI_OK;
}

static int set_allow(struct daemon *d, const char *text)
{
	d->publishing.allow_file = text;
	return CLI_OK;
}

static int set_insecure(struct daemon *d, const char *text)
{
	(void)text;
	d->publishing.insecure = true;
	return CLI_OK;
}

static const struct row {
	const char *name, *argument, *help;
	int (*set)(struct daemon *d, const char *text);
} rows[] = {
	{"push", "ENDPOINT", "where to publish (default tcp://127.0.0.1:7377; port 0: any)",
		set_push},
	{"etcd", "URL[,URL...]", "watch this etcd cluster,", set_etcd},
	{"consul", "URL[,URL...]", "or this Consul,", set_consul},
	{"server", "NAME", "or this server of the agent's configuration (-c FILE):", set_named},
	{"prefix", "PREFIX/", "the keys that begin so; once or several times behind a server",
		set_prefix},
	{"config", "FILE", "(or -c) where the servers of --server are", set_config},
	{"dir", "DIR", "watch the files of a directory", set_dir},
	{"upstream", "ENDPOINT", "pass on what is published there, by a relay or anybody",
		set_upstream},
	{"upstream-heartbeat", "DURATION", "expected of it (default 5s)", set_upstream_heartbeat},
	{"upstream-curve-server-key", "KEY", "its public key: nothing is taken from others",
		set_upstream_key},
	{"upstream-curve-secret-key", "FILE", "the relay's own key there, of pullet keygen",
		set_upstream_secret},
	{"upstream-insecure", NULL, "take plain text also from another host",
		set_upstream_insecure},
	{"heartbeat", "DURATION", "between heartbeats (default 5s)", set_heartbeat},
	{"spread", "DURATION", "each agent waits a random time up to this", set_spread},
	{"curve-secret-key", "FILE", "encrypt what is published, with this key of pullet keygen",
		set_secret_key},
	{"curve-allow", "FILE", "let only those with these public keys connect, one on a line",
		set_allow},
	{"insecure", NULL, "publish plain text also where other hosts can reach it", set_insecure},
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

static int usage(void)
{
	fputs("Usage: pullet relay [--push ENDPOINT] SOURCE... [OPTION...]\n"
	      "Publishes an update message for whatever changes in its sources, to any number of "
	      "agents and relays.\n"
	      "The topic is the name behind the prefix, or in the directory, without its "
	      "ending.\n\n",
		stdout);
	for (size_t i = 0; i < ROWS; i++) {
		char left[64];

		snprintf(left, sizeof(left), "--%s%s%s", rows[i].name, rows[i].argument ? " " : "",
			rows[i].argument ? rows[i].argument : "");
		printf("  %-34s %s\n", left, rows[i].help);
	}
	return CLI_OK;
}

static int check_upstreams(const struct daemon *d)
{
	for (size_t i = 0; i < d->upstream_count; i++) {
		const struct push_endpoint *u = &d->upstreams[i];
		bool insecure = d->upstream_insecure[i];

		if (u->secret_key_file && !u->server_key)
			return cli_error(CLI_USAGE, d->command,
				"--upstream-curve-secret-key needs --upstream-curve-server-key "
				"beside it");
		if (u->server_key && insecure)
			return cli_error(CLI_USAGE, d->command,
				"--upstream-insecure and --upstream-curve-server-key exclude each "
				"other: leave one out");
		if (!u->server_key && !insecure && !curve_stays_here(u->endpoint))
			return cli_error(CLI_USAGE, d->command,
				"%s is not on this host, and plain text could be read and forged "
				"on the way: name its key with --upstream-curve-server-key, or "
				"say --upstream-insecure",
				u->endpoint);
	}
	return CLI_OK;
}

static int check_options(const struct daemon *d)
{
	bool named = false;

	for (size_t i = 0; i < d->origin_count; i++) {
		named |= d->origins[i].name != NULL;
		if (d->origins[i].prefixes == 0)
			return cli_error(CLI_USAGE, d->command,
				"a server needs a --prefix behind it: which of its keys are "
				"watched?");
	}
	if (named && !d->config)
		return cli_error(CLI_USAGE, d->command,
			"--server needs -c FILE, where that server is described");
	if (d->config && !named)
		return cli_error(
			CLI_USAGE, d->command, "-c is read for --server only, and none is named");
	if (d->source_count + d->folder_count + d->upstream_count == 0)
		return cli_error(CLI_USAGE, d->command,
			"there is nothing to relay: name a source with --etcd, --consul, "
			"--server, --dir or --upstream");
	return check_upstreams(d);
}

/* ---- in ---- */

/* What came is worked on in the next turn of the loop. */
static void soon(struct daemon *d)
{
	loop_timer_set(d->loop, &d->turn, loop_now_ms(d->loop));
}

static void changed(struct daemon *d, const char *key, size_t len, const char *version)
{
	char topic[PUSH_MAX_TOPIC + 1], shown[LABEL];
	unsigned held_back;

	if (relay_topic(key, len, topic) == 0) {
		relay_changed(d->relay, topic, version);
		soon(d);
	} else if (log_limit_pass(&d->no_topic, loop_now_ms(d->loop), "topic", &held_back)) {
		snprintf(shown, sizeof(shown), "%.*s", len < LABEL ? (int)len : LABEL, key);
		log_warn("a name is no topic: its changes are not told", "name", shown, "repeated",
			held_back ? LOG_U64(held_back) : NULL);
	}
}

static void source_changed(void *arg, const char *key, size_t key_len, const char *version)
{
	struct source *s = arg;
	struct daemon *d = s->daemon;
	const char *prefix = s->prefix;
	size_t len;

	if (s->origin->server->kind == SETTINGS_CONSUL && *prefix == '/')
		prefix++; /* its keys begin without */
	len = strlen(prefix);
	if (key && key_len >= len && memcmp(key, prefix, len) == 0) {
		changed(d, key + len, key_len - len, version);
	} else {
		relay_missed(d->relay, "the source cannot say what changed", s->label, 0);
		soon(d);
	}
}

static const char *no_version(void *arg)
{
	(void)arg;
	return "";
}

static void file_changed(void *arg, const char *path, const char *etag)
{
	struct folder *f = arg;
	char version[ORIGIN_ETAG];

	if (etag) /* without its quotes */
		snprintf(version, sizeof(version), "%.*s", (int)strlen(etag) - 2, etag + 1);
	changed(f->daemon, path, strlen(path), etag ? version : NULL);
}

static void upstream_heard(
	void *arg, size_t endpoint, const char *topic, const struct push_message *m)
{
	struct daemon *d = arg;

	relay_heard(d->relay, (unsigned)endpoint, d->upstreams[endpoint].endpoint, topic, m);
	soon(d);
}

static void upstream_missed(void *arg, size_t endpoint, const char *cause)
{
	struct daemon *d = arg;

	relay_missed(d->relay, cause, d->upstreams[endpoint].endpoint, 0);
	soon(d);
}

/* ---- out ---- */

static int forward(void *arg, const char *topic, const struct push_message *m, bool strict)
{
	struct daemon *d = arg;

	return publisher_forward(d->publisher, topic, m, strict);
}

/* Takes the subscriptions that have come, some at a time. False: there were none. */
static bool take_subscriptions(struct daemon *d)
{
	char prefix[512];
	int is_new;
	unsigned n = 0;

	while (n < SUBSCRIPTIONS &&
		publisher_poll(d->publisher, prefix, sizeof(prefix), &is_new) > 0) {
		if (is_new)
			relay_joined(d->relay, prefix);
		n++;
	}
	return n > 0;
}

/* Whatever is done with the socket may take away what its descriptor told of: so it is asked
 * afterwards, until there is nothing more. */
static void turn(void *arg)
{
	struct daemon *d = arg;
	uint64_t next_ms = relay_turn(d->relay);

	if (take_subscriptions(d))
		next_ms = loop_now_ms(d->loop);
	loop_timer_set(d->loop, &d->turn, next_ms);
}

static void readable(void *arg, int fd, unsigned events)
{
	(void)fd, (void)events;
	turn(arg);
}

/* ---- start, stop ---- */

static void resumed(void *arg, uint64_t late_ms)
{
	struct daemon *d = arg;

	(void)late_ms;
	if (d->watcher)
		watcher_resume(d->watcher);
}

static void stop(void *arg, int number)
{
	struct daemon *d = arg;

	(void)number;
	loop_stop(d->loop);
}

/* A subscriber is a descriptor, and libzmq turns none away before there are none left. */
static void raise_limit(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_cur < l.rlim_max) {
		l.rlim_cur = l.rlim_max;
		setrlimit(RLIMIT_NOFILE, &l);
	}
}

static void complain(void *arg, const char *message)
{
	cli_error(CLI_CONFIG, ((struct daemon *)arg)->command, "%s", message);
}

static int find_servers(struct daemon *d)
{
	if (d->config && settings_load_servers(d->config, complain, d, &d->settings))
		return CLI_CONFIG;
	for (size_t i = 0; i < d->origin_count; i++) {
		struct origin *o = &d->origins[i];

		for (size_t j = 0; o->name && !o->server && j < d->settings->server_count; j++)
			if (d->settings->servers[j].name &&
				strcmp(d->settings->servers[j].name, o->name) == 0)
				o->server = &d->settings->servers[j];
		if (!o->server)
			return cli_error(CLI_CONFIG, d->command, "%s: there is no server %s",
				d->config, o->name);
		if (o->server->kind != SETTINGS_ETCD && o->server->kind != SETTINGS_CONSUL)
			return cli_error(CLI_CONFIG, d->command,
				"server %s: only etcd and Consul tell of the keys below a prefix",
				o->name);
	}
	return CLI_OK;
}

static int start_sources(struct daemon *d)
{
	int r = 0;

	d->watcher = d->source_count
			     ? watcher_new(d->loop, &sys_real, getenv("SSL_CERT_FILE"), NULL)
			     : NULL;
	if (d->source_count && !d->watcher)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < d->source_count; i++) {
		struct source *s = &d->sources[i];
		const struct settings_server *server = s->origin->server;

		snprintf(s->label, sizeof(s->label), "%s %s", server->name, s->prefix);
		s->item = (struct watcher_item){.path = s->prefix,
			.version = no_version,
			.changed = source_changed,
			.arg = s};
		r = watcher_add(d->watcher, server, &s->origin->session, &s->item);
	}
	return r;
}

static int start_folders(struct daemon *d)
{
	for (size_t i = 0; i < d->folder_count; i++) {
		struct folder *f = &d->folders[i];
		int r;

		f->dir = origin_open(f->path);
		r = f->dir < 0 ? f->dir
			       : watch_start(d->loop, f->path, f->dir, file_changed, f, &f->watch);
		if (r)
			return cli_error(CLI_FAILED, d->command, "cannot watch %s: %s", f->path,
				strerror(-r));
	}
	return CLI_OK;
}

static int start_upstreams(struct daemon *d)
{
	static const struct upstream_calls calls = {upstream_heard, upstream_missed};
	int r = 0;

	for (size_t i = 0; i < d->upstream_count; i++)
		if (strcmp(d->upstreams[i].endpoint, publisher_endpoint(d->publisher)) == 0)
			return cli_error(CLI_FAILED, d->command,
				"%s is the relay's own endpoint: messages would go in a circle",
				d->upstreams[i].endpoint);
	r = d->upstream_count ? upstream_start(d->loop, d->upstreams, d->upstream_count, &calls, d,
					&d->upstream)
			      : 0;

	if (r == -EOPNOTSUPP)
		return cli_error(CLI_FAILED, d->command,
			"libzmq was built without CURVE: install one that has it");
	return r ? cli_error(CLI_FAILED, d->command, "cannot listen to the upstreams: %s",
			   strerror(-r))
		 : CLI_OK;
}

static int start(struct daemon *d)
{
	char why[CURVE_WHY];
	int r = find_servers(d);

	if (r)
		return r;
	d->loop = loop_new(&sys_real);
	d->relaying.upstreams = (unsigned)d->upstream_count;
	d->relay = relay_new(&sys_real, &d->relaying, forward, d);
	if (!d->loop || !d->relay || loop_on_signal(d->loop, SIGINT, stop, d) ||
		loop_on_signal(d->loop, SIGTERM, stop, d))
		return cli_error(CLI_FAILED, d->command, "out of memory or descriptors");
	if (publisher_open(&sys_real, d->push, &d->publishing, &d->publisher, why))
		return cli_error(CLI_FAILED, d->command, "%s", why);
	loop_timer_init(&d->turn, turn, d);
	loop_on_resume(d->loop, resumed, d);
	r = loop_watch(
		d->loop, &d->subscriptions, publisher_fd(d->publisher), LOOP_READ, readable, d);
	if (r == 0)
		r = start_sources(d);
	if (r)
		return cli_error(CLI_FAILED, d->command, "cannot start: %s", strerror(-r));
	r = start_folders(d);
	if (r == CLI_OK)
		r = start_upstreams(d);
	soon(d);
	return r;
}

static void print_what_it_does(const struct daemon *d)
{
	for (size_t i = 0; i < d->source_count; i++)
		printf("relaying %s\n", d->sources[i].label);
	for (size_t i = 0; i < d->folder_count; i++)
		printf("relaying %s\n", d->folders[i].path);
	for (size_t i = 0; i < d->upstream_count; i++)
		printf("relaying %s\n", d->upstreams[i].endpoint);
	printf("publishing on %s\n", publisher_endpoint(d->publisher));
	if (*publisher_public_key(d->publisher))
		printf("agents need server_key: '%s'\n", publisher_public_key(d->publisher));
	fflush(stdout);
}

static void release(struct daemon *d)
{
	upstream_stop(d->upstream);
	watcher_free(d->watcher);
	for (size_t i = 0; i < d->folder_count; i++) {
		watch_stop(d->folders[i].watch);
		if (d->folders[i].dir >= 0)
			close(d->folders[i].dir);
	}
	loop_unwatch(&d->subscriptions);
	publisher_close(d->publisher);
	relay_free(d->relay);
	loop_free(d->loop);
	for (size_t i = 0; i < d->origin_count; i++) {
		session_fini(&d->origins[i].session);
		for (size_t j = 0; j < SETTINGS_MAX_URLS; j++)
			free(d->origins[i].urls[j]);
	}
	settings_free(d->settings);
	free(d);
}

static int parse(struct daemon *d, int argc, char **argv)
{
	struct option longs[ROWS + 2] = {{0}};
	int opt, r = CLI_OK;

	for (int i = 0; i < ROWS; i++)
		longs[i] = (struct option){rows[i].name,
			rows[i].argument ? required_argument : no_argument, NULL, 256 + i};
	longs[ROWS] = (struct option){"help", no_argument, NULL, 'h'};
	while (r == CLI_OK && (opt = getopt_long(argc, argv, "hc:", longs, NULL)) != -1) {
		if (opt == 'h')
			return usage(), -1;
		r = opt == 'c'   ? set_config(d, optarg)
		    : opt >= 256 ? rows[opt - 256].set(d, optarg)
				 : cli_bad_option(d->command);
	}
	if (r == CLI_OK && optind < argc)
		r = cli_error(CLI_USAGE, d->command, "'%s' is no option: see --help", argv[optind]);
	return r ? r : check_options(d);
}

int cli_relay(int argc, char **argv)
{
	struct daemon *d = calloc(1, sizeof(*d));
	int r;

	if (!d)
		return cli_error(CLI_FAILED, argv[0], "out of memory");
	d->command = argv[0];
	d->push = "tcp://127.0.0.1:7377";
	d->publishing.queue = QUEUE;
	d->relaying.heartbeat_ms = 5000;
	r = parse(d, argc, argv);
	if (r == CLI_OK) {
		signal(SIGPIPE, SIG_IGN);
		raise_limit();
		r = start(d);
		if (r == CLI_OK) {
			print_what_it_does(d);
			r = loop_run(d->loop) ? CLI_FAILED : CLI_OK;
		}
	}
	release(d);
	return r < 0 ? CLI_OK : r;
}
