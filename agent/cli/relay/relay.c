/*
 * pullet relay: sources and upstream publishers in, one publisher out. Surprising: nothing is
 * decided here; agent/relay/relay.c decides what a change becomes.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "base/log.h"
#include "base/loop.h"
#include "origin/origin.h"
#include "push/publisher.h"
#include "push/subscriber.h"
#include "relay/relay.h"
#include "settings/settings.h"
#include "relay/listener.h"
#include "text/escape.h"
#include "origin/tree_watch.h"
#include "pull/watch.h"
#include "base/sys.h"
#include "cli/common/cli.h"
#include "cli/relay/monitor.h"
#include "cli/relay/options.h"
#include "base/ending.h"

#define MAX RELAY_SETUP_MAX
#define SUBSCRIPTIONS 256 /* taken in one turn */
#define LABEL 256
#define SIGNATURE ".minisig" /* behind the name of its document */

struct server { /* one for each origin */
	const struct settings_server *settings;
	struct exchange_session session;
};

struct source { /* what is below a prefix */
	struct daemon *daemon;
	const struct server *server;
	const char *prefix;
	char label[LABEL];
	struct watch_item item;
	struct relay_view_source seen;
};

struct folder {
	struct daemon *daemon;
	int dir; /* -1 = not open */
	struct tree_watch *watch;
	struct relay_view_source seen;
};

struct daemon {
	struct relay_setup setup;
	struct settings *settings;
	struct server servers[MAX];
	struct source sources[MAX];
	struct folder folders[MAX];
	struct loop *loop;
	struct publisher *publisher;
	struct relay *relay;
	struct backoffs *backoffs;
	struct watch *watcher;
	struct listener *upstream;
	struct loop_timer turn;
	struct loop_watch subscriptions;
	struct log_limit no_topic;
	struct relay_view view;
	struct monitor *monitor; /* NULL = no --listen */
};

/* ---- in ---- */

/* Runs the relay in the next turn of the loop. */
static void turn_soon(struct daemon *d)
{
	loop_timer_set(d->loop, &d->turn, loop_now_ms(d->loop));
}

static void name_changed(struct daemon *d, const char *key, size_t len, const char *version)
{
	char topic[PUSH_MAX_TOPIC + 1], shown[LABEL];
	unsigned repeated;

	if (ends_in(key, len, SIGNATURE)) { /* its document may be there, waiting for it */
		len -= strlen(SIGNATURE);
		version = NULL;
	}
	if (relay_topic(key, len, topic) == 0) {
		relay_changed(d->relay, topic, version);
		turn_soon(d);
		return;
	}
	d->view.invalid_names++;
	if (log_limit_pass(&d->no_topic, loop_now_ms(d->loop), "topic", &repeated)) {
		snprintf(shown, sizeof(shown), "%.*s", len < LABEL ? (int)len : LABEL, key);
		log_warn("invalid topic name: changes will not be published", "name", shown,
			"repeated", repeated ? LOG_U64(repeated) : NULL);
	}
}

/* The commands' notes beside a rollout document are nobody's news, and the document's own version
 * is not that of the config whose name it has. */
static void key_changed(struct daemon *d, const char *key, size_t len, const char *version)
{
	if (!ends_in(key, len, "#driver"))
		name_changed(d, key, len, ends_in(key, len, ".rollout") ? NULL : version);
}

static void source_changed(void *arg, const char *key, size_t key_len, const char *version)
{
	struct source *s = arg;
	struct daemon *d = s->daemon;
	const char *prefix = s->prefix;
	size_t len;

	s->seen.changes++;
	if (s->server->settings->kind == SETTINGS_CONSUL && *prefix == '/')
		prefix++; /* its keys begin without */
	len = strlen(prefix);
	if (key && key_len >= len && memcmp(key, prefix, len) == 0) {
		key_changed(d, key + len, key_len - len, version);
	} else {
		relay_missed(d->relay, "the source cannot say what changed", s->label, 0);
		turn_soon(d);
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

	f->seen.changes++;
	if (etag) /* without its quotes */
		snprintf(version, sizeof(version), "%.*s", (int)strlen(etag) - 2, etag + 1);
	name_changed(f->daemon, path, strlen(path), etag ? version : NULL);
}

static void upstream_heard(
	void *arg, size_t endpoint, const char *topic, const struct push_message *m)
{
	struct daemon *d = arg;

	relay_heard(d->relay, (unsigned)endpoint, d->setup.upstreams[endpoint].endpoint, topic, m);
	turn_soon(d);
}

static void upstream_missed(void *arg, size_t endpoint, const char *cause)
{
	struct daemon *d = arg;

	relay_missed(d->relay, cause, d->setup.upstreams[endpoint].endpoint, 0);
	turn_soon(d);
}

/* ---- out ---- */

static int forward_message(void *arg, const char *topic, const struct push_message *m, bool strict)
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

/* Any use of the socket may consume the event of its descriptor: so subscriptions are taken
 * afterwards, until there are none. */
static void turn_relay(void *arg)
{
	struct daemon *d = arg;
	uint64_t next_ms = relay_turn(d->relay);

	if (take_subscriptions(d))
		next_ms = loop_now_ms(d->loop);
	loop_timer_set(d->loop, &d->turn, next_ms);
}

static void publisher_readable(void *arg, int fd, unsigned events)
{
	(void)fd, (void)events;
	turn_relay(arg);
}

/* ---- start, stop ---- */

static void machine_resumed(void *arg, uint64_t late_ms)
{
	struct daemon *d = arg;

	(void)late_ms;
	if (d->watcher)
		watch_resume(d->watcher);
}

static void stop_relay(void *arg, int number)
{
	struct daemon *d = arg;

	(void)number;
	loop_stop(d->loop);
}

/* A subscriber is a descriptor, and libzmq accepts until there are none left. */
static void raise_limit(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_cur < l.rlim_max) {
		l.rlim_cur = l.rlim_max;
		setrlimit(RLIMIT_NOFILE, &l);
	}
}

static void print_config_error(void *arg, const char *message)
{
	const struct daemon *d = arg;

	cli_error(CLI_CONFIG, d->setup.command, "%s", message);
}

/* A server of the configuration, by its name. NULL when there is none. */
static const struct settings_server *find_server(const struct settings *s, const char *name)
{
	for (size_t i = 0; i < s->server_count; i++)
		if (s->servers[i]->name && strcmp(s->servers[i]->name, name) == 0)
			return s->servers[i];
	return NULL;
}

static int find_servers(struct daemon *d)
{
	const struct relay_setup *s = &d->setup;

	if (s->config && settings_load_servers(s->config, print_config_error, d, &d->settings))
		return CLI_CONFIG;
	for (size_t i = 0; i < s->origin_count; i++) {
		const struct relay_origin *o = &s->origins[i];
		const struct settings_server *server =
			o->name ? find_server(d->settings, o->name) : &o->own;

		if (!server)
			return cli_error(CLI_CONFIG, s->command, "%s: there is no server %s",
				s->config, o->name);
		if (server->kind != SETTINGS_ETCD && server->kind != SETTINGS_CONSUL)
			return cli_error(CLI_CONFIG, s->command,
				"server %s: only etcd and Consul can watch the keys below a prefix",
				o->name);
		d->servers[i].settings = server;
	}
	return CLI_OK;
}

/* Shows a source to the monitor, if there will be one. 0 or the error of a buffer. */
static int show_source(struct daemon *d, struct relay_view_source *seen,
	const struct watch_item *item, const char *name)
{
	struct buffer label; /* its bytes are kept */
	int r = 0;

	buffer_init(&label, 1u << 16);
	if (d->setup.listen)
		r = escape_append(&label, name, strlen(name));
	*seen = (struct relay_view_source){.label = label.data, .item = item};
	d->view.sources[d->view.source_count++] = seen;
	return r;
}

static int start_sources(struct daemon *d)
{
	const struct relay_setup *setup = &d->setup;
	int r = 0;

	if (setup->prefix_count == 0)
		return 0;
	d->backoffs = backoffs_new(&sys_real);
	if (!d->backoffs)
		return -ENOMEM;
	d->watcher = watch_new(d->loop, &sys_real, d->backoffs, getenv("SSL_CERT_FILE"), NULL);
	if (!d->watcher)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < setup->prefix_count; i++) {
		const struct relay_prefix *p = &setup->prefixes[i];
		struct server *server = &d->servers[p->origin - setup->origins];
		struct source *s = &d->sources[i];

		*s = (struct source){.daemon = d,
			.server = server,
			.prefix = p->text,
			.item = {.path = p->text,
				.version = no_version,
				.changed = source_changed,
				.arg = s}};
		snprintf(s->label, sizeof(s->label), "%s %s", server->settings->name, p->text);
		r = show_source(d, &s->seen, &s->item, s->label);
		if (r == 0)
			r = watch_add(d->watcher, server->settings, &server->session, &s->item);
	}
	return r;
}

static int start_folders(struct daemon *d)
{
	for (size_t i = 0; i < d->setup.dir_count; i++) {
		const char *path = d->setup.dirs[i];
		struct folder *f = &d->folders[i];
		int r;

		f->daemon = d;
		f->dir = origin_open(path);
		r = f->dir < 0 ? f->dir : show_source(d, &f->seen, NULL, path);
		if (r == 0)
			r = tree_watch_start(d->loop, path, f->dir, 0, file_changed, f, &f->watch);
		if (r)
			return cli_error(CLI_FAILED, d->setup.command, "cannot watch %s: %s", path,
				tree_watch_explain(-r));
	}
	return CLI_OK;
}

static int start_upstreams(struct daemon *d)
{
	static const struct listener_calls calls = {upstream_heard, upstream_missed};
	const struct relay_setup *s = &d->setup;
	int r = 0;

	for (size_t i = 0; i < s->upstream_count; i++)
		if (strcmp(s->upstreams[i].endpoint, publisher_endpoint(d->publisher)) == 0)
			return cli_error(CLI_FAILED, s->command,
				"%s is the relay's own endpoint: messages would go in a circle",
				s->upstreams[i].endpoint);
	if (s->upstream_count)
		r = listener_start(
			d->loop, s->upstreams, s->upstream_count, &calls, d, &d->upstream);
	if (r == -EOPNOTSUPP)
		return cli_error(CLI_FAILED, s->command,
			"libzmq was built without CURVE: install one that has it");
	if (r)
		return cli_error(
			CLI_FAILED, s->command, "cannot listen to the upstreams: %s", strerror(-r));
	return CLI_OK;
}

/* The first name that two of what is relayed have; NULL: each has its own. */
static const char *find_double(const struct daemon *d)
{
	const struct relay_setup *s = &d->setup;
	const struct relay_view *v = &d->view;

	for (size_t i = 0; i < s->upstream_count; i++)
		for (size_t j = 0; j < i; j++)
			if (strcmp(s->upstreams[i].endpoint, s->upstreams[j].endpoint) == 0)
				return s->upstreams[i].endpoint;
	for (size_t i = 0; i < v->source_count; i++)
		for (size_t j = 0; j < i; j++)
			if (strcmp(v->sources[i]->label, v->sources[j]->label) == 0)
				return v->sources[i]->label;
	return NULL;
}

/* Metrics and probes, when all that they are about has started. */
static int start_monitor(struct daemon *d)
{
	const struct relay_setup *s = &d->setup;
	const char *twice = s->listen ? find_double(d) : NULL;
	int r;

	if (twice)
		return cli_error(CLI_USAGE, s->command,
			"%s is named twice, and would have each metric twice: leave one out",
			twice);
	d->view.loop = d->loop;
	d->view.relay = d->relay;
	d->view.publisher = d->publisher;
	d->view.upstreams = d->upstream;
	d->view.upstream_count = s->upstream_count;
	d->view.started_ms = sys_real.wall_ms();
	r = s->listen ? monitor_open(&d->view, s->listen, s->listen_names, &d->monitor) : 0;
	return r ? cli_cannot_listen(s->command, "--listen", s->listen, -r) : CLI_OK;
}

static int start_relay(struct daemon *d)
{
	const struct relay_setup *s = &d->setup;
	int r = find_servers(d);

	if (r)
		return r;
	d->loop = loop_new(&sys_real);
	d->relay = relay_new(&sys_real, &s->relaying, forward_message, d);
	if (!d->loop || !d->relay || loop_on_signal(d->loop, SIGINT, stop_relay, d) ||
		loop_on_signal(d->loop, SIGTERM, stop_relay, d))
		return cli_error(CLI_FAILED, s->command, "out of memory or descriptors");
	r = cli_publisher(s->command, "--push", s->push, &s->publishing, &d->publisher);
	if (r)
		return r;
	loop_timer_init(&d->turn, turn_relay, d);
	loop_on_resume(d->loop, machine_resumed, d);
	r = loop_watch(d->loop, &d->subscriptions, publisher_fd(d->publisher), LOOP_READ,
		publisher_readable, d);
	if (r == 0)
		r = start_sources(d);
	if (r)
		return cli_error(CLI_FAILED, s->command, "cannot start: %s", strerror(-r));
	r = start_folders(d);
	if (r == CLI_OK)
		r = start_upstreams(d);
	if (r == CLI_OK)
		r = start_monitor(d);
	turn_soon(d);
	return r;
}

static void print_summary(const struct daemon *d)
{
	const struct relay_setup *s = &d->setup;

	for (size_t i = 0; i < s->prefix_count; i++)
		printf("relaying %s\n", d->sources[i].label);
	for (size_t i = 0; i < s->dir_count; i++)
		printf("relaying %s\n", s->dirs[i]);
	for (size_t i = 0; i < s->upstream_count; i++)
		printf("relaying %s\n", s->upstreams[i].endpoint);
	printf("publishing on %s\n", publisher_endpoint(d->publisher));
	if (*publisher_public_key(d->publisher))
		printf("agents need server_key: '%s'\n", publisher_public_key(d->publisher));
	if (s->listen)
		printf("metrics on http://%.*s:%d/metrics\n",
			(int)(strrchr(s->listen, ':') - s->listen), s->listen,
			monitor_port(d->monitor));
	fflush(stdout);
}

static void release_daemon(struct daemon *d)
{
	monitor_close(d->monitor);
	for (size_t i = 0; i < d->view.source_count; i++)
		free(d->view.sources[i]->label);
	listener_stop(d->upstream);
	watch_free(d->watcher);
	backoffs_free(d->backoffs);
	for (size_t i = 0; i < MAX; i++) {
		exchange_session_fini(&d->servers[i].session);
		tree_watch_stop(d->folders[i].watch);
		if (d->folders[i].dir >= 0)
			close(d->folders[i].dir);
	}
	loop_unwatch(&d->subscriptions);
	publisher_close(d->publisher);
	relay_free(d->relay);
	loop_free(d->loop);
	settings_free(d->settings);
	relay_setup_fini(&d->setup);
	free(d);
}

static int check_relay_descriptors(const struct relay_setup *s)
{
	const struct descriptors_need needs[] = {{"event loop", LOOP_DESCRIPTORS},
		{"push channel", PUBLISHER_DESCRIPTORS},
		{"upstreams", s->upstream_count ? PUSH_DESCRIPTORS(s->upstream_count) : 0},
		{"requests", s->prefix_count ? 6 + s->prefix_count : 0},
		{"directories", 2 * s->dir_count}, {"metrics", s->listen ? 2 : 0},
		{"files", CLI_FILES}};

	return cli_room(s->command, needs, sizeof(needs) / sizeof(needs[0]));
}

static int run_relay(struct daemon *d)
{
	int r;

	signal(SIGPIPE, SIG_IGN);
	sys_forbid_dumps();
	raise_limit();
	r = check_relay_descriptors(&d->setup);
	if (r == CLI_OK)
		r = start_relay(d);
	if (r)
		return r;
	print_summary(d);
	return loop_run(d->loop) ? CLI_FAILED : CLI_OK;
}

int cli_relay(int argc, char **argv)
{
	struct daemon *d = calloc(1, sizeof(*d));
	int r;

	if (!d)
		return cli_error(CLI_FAILED, argv[0], "out of memory");
	for (size_t i = 0; i < MAX; i++)
		d->folders[i].dir = -1;
	r = relay_setup_read(&d->setup, argc, argv);
	if (r < 0)
		r = run_relay(d);
	release_daemon(d);
	return r;
}
