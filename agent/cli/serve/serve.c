/* pullet serve: a directory as a configuration origin. Surprising: changes are not batched; a
 * changed file is hashed and published within the turn of the loop that saw it, but in a storm of
 * changes. */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "base/ending.h"
#include "crypto/curve_keys.h"
#include "httpd/host_header.h"
#include "httpd/server.h"
#include "base/log.h"
#include "base/loop.h"
#include "origin/origin.h"
#include "push/publisher.h"
#include "settings/form.h"
#include "origin/tree_watch.h"
#include "base/sys.h"
#include "cli/common/cli.h"
#include "cli/common/options.h"
#include "cli/serve/served.h"
#include "settings/places.h"
#include "settings/settings.h"

#define MAX_QUEUED (256u << 20) /* bytes of answers on their way to slow clients */
#define MAX_KEPT (16u << 20)    /* bytes of files, for while they are written in place */
#define SIGNATURE ".minisig"    /* behind a document's name */
#define READS 2                 /* of a file that was written meanwhile */

struct options {
	const char *dir, *http, *push;
	char *http_names[OPTIONS_NAMES + 1]; /* ends with NULL */
	struct publisher_options publisher;
	uint64_t heartbeat_ms;
};

struct server {
	const struct options *options;
	int dir;
	struct loop *loop;
	struct httpd *httpd;
	struct publisher *publisher;
	struct tree_watch *watch;
	bool checks_names; /* of this host, in requests */
	struct log_limit refused;
	struct loop_timer heartbeat;
	struct loop_watch subscriptions;
};

static int add_http_name(void *target, const char *command, char *text)
{
	struct options *o = target;

	return options_add_name(command, "--http-name", text, o->http_names);
}

static const struct option_row serve_rows[] = {
	{"http", "HOST:PORT", "where to serve (default 127.0.0.1:8080; port 0: any free one)",
		OPTION_TEXT, .at = offsetof(struct options, http)},
	{"http-name", "NAME", "what clients may call this host, too", OPTION_READ,
		.read = add_http_name},
	{"push", "ENDPOINT",
		"where to publish (default tcp://127.0.0.1:7377; port 0: any free one)",
		OPTION_TEXT, .at = offsetof(struct options, push)},
	{"heartbeat", "DURATION", "between heartbeats (default 5s)", OPTION_DURATION,
		.at = offsetof(struct options, heartbeat_ms), .min = 100,
		.takes = "at least 100ms"},
	OPTION_ROWS_PUBLISHER(struct options, publisher),
	{0},
};

static const struct command_line serve_line = {
	.usage = "Usage: pullet serve DIR [--http HOST:PORT [--http-name NAME]...] [--push "
		 "ENDPOINT]\n"
		 "                    [--heartbeat DURATION]\n"
		 "                    [--curve-secret-key FILE [--curve-allow FILE] | --insecure]\n"
		 "Serves the files of DIR over HTTP with strong ETags, and publishes an update "
		 "message for each change.\n"
		 "A file that is written in place is served as it was before, until it is closed "
		 "or quiet for 2s.\n",
	.rows = serve_rows,
	.min = 1,
	.max = 1,
	.wants = "name one directory",
};

/* ---- HTTP ---- */

static void http_date(time_t t, char text[40])
{
	struct tm tm;

	gmtime_r(&t, &tm);
	strftime(text, 40, "%a, %d %b %Y %H:%M:%S GMT", &tm);
}

/* Within its second, and a little longer, a file may change again under the same time: then no time
 * is sent. */
static bool has_settled(const struct server *s, const struct origin_file *f)
{
	return f->modified + 2 <= loop_sys(s->loop)->wall_ms() / 1000;
}

/* Any other time is another file, an earlier one too: a file may be restored. */
static bool is_unmodified(
	const struct server *s, const struct httpd_request *r, const struct origin_file *f)
{
	const char *match = httpd_header(r, "If-None-Match"),
		   *since = httpd_header(r, "If-Modified-Since");
	struct tm tm = {0};

	if (match) /* it goes before the date (RFC 9110, 13.2.2) */
		return origin_etag_matches(match, f->etag);
	return since && has_settled(s, f) && strptime(since, "%a, %d %b %Y %H:%M:%S GMT", &tm) &&
	       f->modified == timegm(&tm);
}

/* A file as it was before somebody began to write in it: from memory, or only its ETag, for those
 * who have that already. */
static int take_before(
	const struct tree_watch_before *before, const char *match, struct origin_file *f)
{
	int r = before->body ? buffer_append(&f->body, before->body, before->len) : 0;

	if (r || !before->etag[0])
		return r ? r : -ENOENT;
	snprintf(f->etag, sizeof(f->etag), "%s", before->etag);
	f->modified = before->modified;
	return before->body || (match && origin_etag_matches(match, f->etag)) ? 0 : -EAGAIN;
}

static bool is_other(const struct tree_watch_before *before, const struct origin_file *f)
{
	return before->etag[0] && strcmp(before->etag, f->etag) != 0;
}

/* A file that becomes empty may be truncated and about to be written, before inotify says so: it is
 * checked. */
static bool is_written(struct server *s, const char *path, const struct origin_file *f,
	struct tree_watch_before *ret_before)
{
	if (tree_watch_is_written(s->watch, path, ret_before))
		return true;
	if (!f || f->body.len > 0 || !is_other(ret_before, f))
		return false;
	tree_watch_check(s->watch, path);
	return tree_watch_is_written(s->watch, path, ret_before);
}

/* As origin_read(), but never what somebody is writing. */
static int read_whole(
	struct server *s, const char *path, const char *match, struct origin_file *ret_file)
{
	struct tree_watch_before before;
	bool use_before, again;
	int r, reads = 0;

	do {
		if (reads++ > 0)
			buffer_fini(&ret_file->body);
		r = origin_read(s->dir, path, ret_file);
		use_before = is_written(s, path, r ? NULL : ret_file, &before);
		again = !use_before && r == 0 && is_other(&before, ret_file);
	} while (again && reads < READS);
	if (r == 0 && (use_before || (again && ret_file->body.len == 0))) {
		buffer_fini(&ret_file->body);
		r = -EAGAIN;
	}
	if (!use_before)
		return r;
	buffer_init(&ret_file->body, ORIGIN_MAX_FILE);
	r = take_before(&before, match, ret_file);
	if (r)
		buffer_fini(&ret_file->body);
	return r;
}

static void reply_refusal(struct httpd_request *r, int status, const char *text)
{
	httpd_reply(r, status, "text/plain; charset=utf-8", text, strlen(text));
}

/* Who reaches this host by its loopback is on it, but for a page in a browser here whose own name
 * points to it (DNS rebinding). Clients from elsewhere have names for it that are not known. A name
 * without a dot, such as nginx makes of its upstreams, cannot be that of a page from elsewhere. */
static bool has_our_name(struct server *s, const struct httpd_request *r)
{
	const char *host = httpd_header(r, "Host"); /* which browsers send */
	unsigned repeated;

	if (!s->checks_names || !host || (*host && !strchr(host, '.')) ||
		host_header_is_this_machines(host, s->options->http_names))
		return true;
	if (log_limit_pass(&s->refused, loop_now_ms(s->loop), "name", &repeated))
		log_warn("request refused: this host does not go by that name", "name", host,
			"repeated", repeated ? LOG_U64(repeated) : NULL);
	return false;
}

static void answer_request(void *arg, struct httpd_request *r)
{
	struct server *s = arg;
	const char *path = httpd_path(r) + 1;
	struct origin_file f;
	char date[40];
	int e;

	if (!has_our_name(s, r)) {
		reply_refusal(r, 421,
			"this host does not have the requested name: use its address, or name it "
			"with --http-name\n");
		return;
	}
	if (httpd_method(r) != HTTPD_GET && httpd_method(r) != HTTPD_HEAD) {
		httpd_add_header(r, "Allow", "GET, HEAD");
		reply_refusal(r, 405, "only GET and HEAD\n");
		return;
	}
	e = read_whole(s, path, httpd_header(r, "If-None-Match"), &f);
	if (e) {
		bool missing = e == -ENOENT || e == -EISDIR || e == -ENOTDIR || e == -EINVAL;

		if (e == -EAGAIN) {
			httpd_add_header(r, "Retry-After", "1");
			reply_refusal(r, 503, "the file is being written: ask again\n");
		} else {
			reply_refusal(
				r, missing ? 404 : 403, missing ? "not found\n" : "forbidden\n");
		}
		return;
	}
	http_date(f.modified, date);
	httpd_add_header(r, "ETag", f.etag);
	if (has_settled(s, &f))
		httpd_add_header(r, "Last-Modified", date);
	httpd_add_header(r, "Cache-Control", "no-cache");
	httpd_add_header(r, "X-Content-Type-Options", "nosniff");
	if (is_unmodified(s, r, &f))
		httpd_reply(r, 304, NULL, NULL, 0);
	else
		httpd_reply(r, 200, origin_content_type(path), f.body.data, f.body.len);
	buffer_fini(&f.body);
}

/* ---- push ---- */

static bool is_signature(const char *path)
{
	return ends_in(path, strlen(path), SIGNATURE);
}

/* "team/web.yaml", and its signature "team/web.yaml.minisig" -> "team/web" */
static void topic_of_path(const char *path, char topic[256])
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	size_t len = strlen(path) - (is_signature(path) ? strlen(SIGNATURE) : 0);
	const char *dot = memrchr(name, '.', (size_t)(path + len - name));

	snprintf(topic, 256, "%.*s", (int)(dot && dot > name ? (size_t)(dot - path) : len), path);
}

static void tree_changed(void *arg, const char *path, const char *etag)
{
	struct server *s = arg;
	char topic[256], version[ORIGIN_ETAG] = "";
	int r;

	topic_of_path(path, topic);
	if (etag && !is_signature(path)) /* without its quotes; agents know the document's */
		snprintf(version, sizeof(version), "%.*s", (int)strlen(etag) - 2, etag + 1);
	r = publisher_send(s->publisher, topic, version, 0);
	if (r)
		log_warn("cannot publish", "topic", topic, "why", strerror(-r));
	else
		log_info(etag ? "changed" : "removed", "path", path, "topic", topic, "version",
			etag ? version : NULL);
}

static void heartbeat_due(void *arg)
{
	struct server *s = arg;

	publisher_heartbeat(s->publisher);
	loop_timer_set(s->loop, &s->heartbeat, loop_now_ms(s->loop) + s->options->heartbeat_ms);
}

/* libzmq works on subscriptions only when the socket is used. */
static void subscriptions_came(void *arg, int fd, unsigned events)
{
	struct server *s = arg;
	char prefix[512];
	int is_new;

	(void)fd, (void)events;
	while (publisher_poll(s->publisher, prefix, sizeof(prefix), &is_new) > 0)
		log_debug(is_new ? "subscribed" : "unsubscribed", "prefix", prefix);
}

/* ---- start, stop ---- */

static void stop_serving(void *arg, int number)
{
	struct server *s = arg;

	(void)number;
	loop_stop(s->loop);
}

/* A whole fleet may hold its connections open, and download at once. */
static void raise_client_limit(struct httpd *h)
{
	struct rlimit files = {.rlim_cur = 1024, .rlim_max = 1024};

	if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
		files.rlim_cur = files.rlim_max;
		if (setrlimit(RLIMIT_NOFILE, &files))
			getrlimit(RLIMIT_NOFILE, &files);
	}
	httpd_limit(h, files.rlim_cur / 2, MAX_QUEUED);
}

static int start_server(struct server *s, const char *command)
{
	const struct options *o = s->options;
	int r;

	s->dir = origin_open(o->dir);
	if (s->dir < 0)
		return cli_error(
			CLI_FAILED, command, "cannot serve %s: %s", o->dir, strerror(-s->dir));
	s->loop = loop_new(&sys_real);
	if (!s->loop || loop_on_signal(s->loop, SIGINT, stop_serving, s) ||
		loop_on_signal(s->loop, SIGTERM, stop_serving, s))
		return cli_error(CLI_FAILED, command, "out of memory or descriptors");
	s->httpd = httpd_open_tcp(s->loop, o->http, answer_request, s);
	if (!s->httpd)
		return cli_cannot_listen(command, "--http", o->http, errno);
	raise_client_limit(s->httpd);
	s->checks_names = o->http_names[0] || curve_stays_here(o->http);
	r = cli_publisher(command, "--push", o->push, &o->publisher, &s->publisher);
	if (r)
		return r;
	r = tree_watch_start(s->loop, o->dir, s->dir, MAX_KEPT, tree_changed, s, &s->watch);
	if (r == 0)
		r = loop_watch(s->loop, &s->subscriptions, publisher_fd(s->publisher), LOOP_READ,
			subscriptions_came, s);
	if (r)
		return cli_error(
			CLI_FAILED, command, "cannot watch %s: %s", o->dir, tree_watch_explain(-r));
	loop_timer_init(&s->heartbeat, heartbeat_due, s);
	heartbeat_due(s);
	subscriptions_came(s, -1, LOOP_READ);
	return CLI_OK;
}

/* A host that stands for all of this one's addresses is its name to others. */
static void append_reachable(struct buffer *out, const char *host, size_t len)
{
	static const char *const all[] = {"0.0.0.0", "[::]", "*"};
	char name[256] = "";

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (strlen(all[i]) == len && memcmp(host, all[i], len) == 0 &&
			gethostname(name, sizeof(name)) == 0)
			break;
	buffer_append(out, name[0] ? name : host, name[0] ? strlen(name) : len);
}

/* "tcp://0.0.0.0:7377" with a host that others reach. */
static void append_endpoint(struct buffer *out, const char *endpoint)
{
	const char *host = strncmp(endpoint, "tcp://", 6) == 0 ? endpoint + 6 : NULL,
		   *colon = host ? strrchr(host, ':') : NULL;

	if (!colon) {
		buffer_append_string(out, endpoint);
		return;
	}
	buffer_append_string(out, "tcp://");
	append_reachable(out, host, (size_t)(colon - host));
	buffer_append_string(out, colon);
}

/* Prints a configuration to paste, with the documents that are there now. */
static void print_configuration(const struct server *s)
{
	const struct options *o = s->options;
	const char *colon = strrchr(o->http, ':');
	char runtime[PLACES_PATH], configuration[PLACES_PATH];
	struct served_from from = {.server_key = publisher_public_key(s->publisher),
		.insecure = o->publisher.insecure,
		.more = "    guard: {max_shrink: 50%} # half a file is no version: it is rejected, "
			"and said so\n"};
	const char *its = places_configuration(configuration);
	struct served *found = calloc(1, sizeof(*found));
	struct buffer url, push, out;

	buffer_init(&url, 4096);
	buffer_init(&push, 4096);
	buffer_init(&out, 1u << 20);
	buffer_append_string(&url, "http://");
	append_reachable(&url, o->http, colon ? (size_t)(colon - o->http) : 0);
	buffer_printf(&url, ":%d", httpd_port(s->httpd));
	append_endpoint(&push, publisher_endpoint(s->publisher));
	from.url = url.data;
	from.push = push.data;
	from.files = strcmp(its, SETTINGS_DEFAULT_PATH) != 0 && places_own_runtime_dir(runtime)
			     ? runtime
			     : places_runtime_dir(runtime);
	if (found)
		served_find(found, s->dir);
	if (found && found->count == 0)
		printf("no .yaml, .yml or .json file is in %s yet: put one there, and start this "
		       "again for a configuration to paste\n",
			o->dir);
	else if (found && !url.error && !push.error && served_write(found, &from, &out) == 0)
		printf("\n# a configuration for the agent (%s):\n%s", its, out.data);
	buffer_fini(&url);
	buffer_fini(&push);
	buffer_fini(&out);
	free(found);
}

static int run_server(const char *command, const struct options *o)
{
	static const struct descriptors_need needs[] = {{"event loop", LOOP_DESCRIPTORS},
		{"push channel", PUBLISHER_DESCRIPTORS}, {"HTTP server and clients", 4},
		{"directory and files", CLI_FILES + 4}};
	struct server s = {.options = o, .dir = -1};
	int r;

	signal(SIGPIPE, SIG_IGN);
	sys_forbid_dumps();
	r = cli_room(command, needs, sizeof(needs) / sizeof(needs[0]));
	if (r)
		return r;
	r = start_server(&s, command);
	if (r == CLI_OK) {
		const char *colon = strrchr(o->http, ':');

		printf("serving %s on http://%.*s:%d\npublishing on %s\n", o->dir,
			colon ? (int)(colon - o->http) : 0, o->http, httpd_port(s.httpd),
			publisher_endpoint(s.publisher));
		if (*publisher_public_key(s.publisher))
			printf("agents need server_key: '%s'\n", publisher_public_key(s.publisher));
		print_configuration(&s);
		fflush(stdout);
		r = loop_run(s.loop) ? CLI_FAILED : CLI_OK;
	}
	tree_watch_stop(s.watch);
	loop_unwatch(&s.subscriptions);
	if (s.httpd)
		httpd_close(s.httpd);
	publisher_close(s.publisher);
	loop_free(s.loop);
	if (s.dir >= 0)
		close(s.dir);
	return r;
}

int cli_serve(int argc, char **argv)
{
	struct options o = {
		.http = "127.0.0.1:8080", .push = "tcp://127.0.0.1:7377", .heartbeat_ms = 5000};
	int r = options_read(&serve_line, argc, argv, &o);
	const char *bad;

	if (r >= 0)
		return r;
	bad = settings_check_address(o.http);
	if (bad)
		return cli_error(CLI_USAGE, argv[0], "--http '%s' %s", o.http, bad);
	o.dir = argv[optind];
	return run_server(argv[0], &o);
}
