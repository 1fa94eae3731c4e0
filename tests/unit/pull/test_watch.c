/*
 * Watches: when the next request goes out, where to, and what of it. On a transport of the test's
 * own, whose answers come when the test says so, on a clock that it turns, and three kinds: one is
 * asked again and again, one compares versions besides, one is a stream.
 *
 * What would surprise: agent/http/client.h's functions are defined here, and so are kind_apollo,
 * kind_nacos and kind_etcd, so that the program's own are not linked.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "files/file_watch.h"
#include "pull/watch.h"
#include "tests/unit/fixture/captured.h"
#include "tests/unit/fixture/scratch.h"

#define ITEMS (KIND_MAX_WATCHED + 6)
#define MANY (WATCH_MAX_REQUESTS + 2)
#define BEGIN_MS 1000000u

/* ---- the transport ---- */

struct transfer {
	struct transfer *next;
	char url[64], token[64], *body;
	size_t max_bytes;
	uint64_t timeout_ms, idle_ms;
	http_client_line line;
	http_client_done done;
	void *arg;
};

struct http_client {
	struct transfer *first; /* those under way, the oldest first */
	int refuses;            /* the errno of what is started next; 0 = none */
	unsigned started, cancelled, forgotten;
};

static struct http_client net;

struct http_client *http_client_new(struct loop *l)
{
	(void)l;
	return &net;
}

void http_client_free(struct http_client *t)
{
	assert_null(t->first);
}

void http_client_forget(struct http_client *t)
{
	t->forgotten++;
}

int http_client_start(struct http_client *transport, const struct http_client_request *q,
	http_client_done done, void *arg, struct transfer **ret_transfer)
{
	struct transfer *t, **link = &transport->first;
	int e = transport->refuses;

	transport->refuses = 0;
	if (e)
		return -e;
	t = calloc(1, sizeof(*t));
	assert_non_null(t);
	snprintf(t->url, sizeof(t->url), "%s", q->url);
	snprintf(t->token, sizeof(t->token), "%s", q->headers[0] ? q->headers[0] : "");
	t->body = strndup(q->body ? q->body : "", q->body_len);
	t->max_bytes = q->max_bytes;
	t->timeout_ms = q->timeout_ms;
	t->idle_ms = q->idle_ms;
	t->line = q->line;
	t->done = done;
	t->arg = arg;
	while (*link)
		link = &(*link)->next;
	*link = t;
	transport->started++;
	*ret_transfer = t;
	return 0;
}

static void unlink_transfer(struct transfer *t)
{
	struct transfer **link = &net.first;

	while (*link != t) {
		assert_non_null(*link);
		link = &(*link)->next;
	}
	*link = t->next;
}

static void free_transfer(struct transfer *t)
{
	free(t->body);
	free(t);
}

const char *http_client_waits_for(const struct transfer *t)
{
	(void)t;
	return "it hangs";
}

void http_client_cancel(struct transfer *t)
{
	unlink_transfer(t);
	free_transfer(t);
	net.cancelled++;
}

/* The only one under way. */
static struct transfer *under_way(void)
{
	assert_non_null(net.first);
	assert_null(net.first->next);
	return net.first;
}

static void fill(struct http_client_response *r, long status, const char *text)
{
	*r = (struct http_client_response){
		.status = status, .framed = true, .message = "the line was cut"};
	buffer_init(&r->body, 1000);
	assert_int_equal(buffer_append_string(&r->body, text), 0);
}

static void end(struct transfer *t, enum http_client_result result, long status, const char *text)
{
	struct http_client_response r;

	fill(&r, status, text);
	r.result = result;
	unlink_transfer(t);
	t->done(t->arg, &r);
	buffer_fini(&r.body);
	free_transfer(t);
}

static void answer(long status, const char *text)
{
	end(under_way(), HTTP_CLIENT_OK, status, text);
}

static void cut(void)
{
	end(under_way(), HTTP_CLIENT_NETWORK, 200, "");
}

/* One line of a stream. */
static void line(const char *text)
{
	struct http_client_response r;

	fill(&r, 200, text);
	assert_non_null(under_way()->line);
	net.first->line(net.first->arg, &r);
	buffer_fini(&r.body);
}

/* ---- the kinds ---- */

static bool together(const char *path, const char *other)
{
	return path[1] == other[1];
}

/* "PATH=VERSION@POSITION " of each document. */
static int watch_build(struct kind_watch *w, struct kind_request *r, char why[FILE_WHY])
{
	(void)why;
	r->method = "POST";
	for (size_t i = 0; i < w->count; i++)
		buffer_printf(&r->body, "%s=%s@%llu ", w->items[i].path, w->items[i].version,
			(unsigned long long)w->items[i].position);
	buffer_printf(&r->url, "%s/watch", w->place->base);
	return w->place->token ? kind_header(r, "%s", w->place->token) : r->url.error;
}

/* "moved ITEM POSITION": it changed, and is called k, version v; "half": all did, and then it is
 * bad. */
static int watch_read(
	struct kind_watch *w, const struct http_client_response *response, char why[FILE_WHY])
{
	static const struct {
		const char *text;
		int error;
	} table[] = {{"busy", -EAGAIN}, {"denied", -EACCES}, {"bad", -EPROTO}, {"half", -EPROTO}};
	const char *text = response->body.data ? response->body.data : "";
	char *end_of;

	if (strncmp(text, "moved ", 6) == 0) {
		size_t i = strtoul(text + 6, &end_of, 10);

		assert_true(i < w->count);
		w->items[i].position = strtoul(end_of, NULL, 10);
		w->answered(w->arg, i, response);
		w->changed(w->arg, i, "key", 1, "v");
	}
	for (size_t i = 0; i < w->count && (!strcmp(text, "stale") || !strcmp(text, "half")); i++) {
		w->items[i].position = 0;
		w->changed(w->arg, i, NULL, 0, NULL);
	}
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		if (strcmp(text, table[i].text) == 0) {
			snprintf(why, FILE_WHY, "it is %s", text);
			return table[i].error;
		}
	}
	return strcmp(text, "stale") == 0 ? -ESTALE : 0;
}

static int login_build(const struct kind_place *place, struct kind_request *r, char why[FILE_WHY])
{
	(void)why;
	r->method = "POST";
	return buffer_printf(&r->url, "%s/login", place->base);
}

static int login_read(const struct http_client_response *response, char **ret_token,
	uint64_t *ret_lifetime_ms, char why[FILE_WHY])
{
	if (response->status != 200) {
		snprintf(why, FILE_WHY, "the password is wrong");
		return -EACCES;
	}
	*ret_token = strdup(response->body.data);
	*ret_lifetime_ms = 0;
	return 0;
}

const struct kind kind_apollo = {.name = "asked again",
	.together = together,
	.watch_build = watch_build,
	.watch_read = watch_read};
const struct kind kind_nacos = {.name = "compares",
	.compares = true,
	.together = together,
	.watch_build = watch_build,
	.watch_read = watch_read};
const struct kind kind_etcd = {.name = "stream",
	.stream = true,
	.login_build = login_build,
	.login_read = login_read,
	.together = together,
	.watch_build = watch_build,
	.watch_read = watch_read};

/* ---- the watcher ---- */

static struct item {
	struct watch_item item;
	char path[16];
	const char *version;
	unsigned changes;
	char last[32]; /* the change: "KEY VERSION" */
} items[MANY];

static uint64_t now_ms;
static bool dice; /* thrown, or 0 each time */
static struct sys sys;
static struct loop *loop;
static struct loop_timer stop;
static struct backoffs *backoffs;
static struct watch *watcher;
static char url_a[] = "http://a", url_b[] = "http://b", *urls[] = {url_a, url_b}, name[] = "main";
static struct settings_server server;
static struct exchange_session session;
static char dir[SCRATCH_PATH], password[SCRATCH_PATH + 16];

static uint64_t clock_ms(void)
{
	return now_ms;
}

static uint64_t throw_dice(void)
{
	return dice ? sys_real.random() : 0;
}

static uint64_t host(void)
{
	return 0;
}

static const char *version_held(void *arg)
{
	const struct item *i = arg;

	return i->version;
}

static void is_changed(void *arg, const char *key, size_t key_len, const char *version)
{
	struct item *i = arg;

	i->changes++;
	snprintf(i->last, sizeof(i->last), "%.*s %s", (int)key_len, key ? key : "",
		version ? version : "-");
}

static void is_nothing(void *arg, const char *key, size_t key_len, const char *version)
{
	(void)arg, (void)key, (void)key_len, (void)version;
}

static void stop_now(void *arg)
{
	loop_stop(arg);
}

/* Handles what is due now. */
static void turn(void)
{
	for (int i = 0; i < 2; i++) { /* also what that made due */
		loop_timer_set(loop, &stop, now_ms);
		assert_int_equal(loop_run(loop), 0);
	}
}

static void pass(uint64_t ms)
{
	for (; ms > 0; ms--) {
		now_ms++;
		turn();
	}
}

/* An hour in which nothing is due: its seconds are enough. */
static void pass_idle_hour(void)
{
	unsigned started = net.started;

	for (int i = 0; i < 3600; i++) {
		now_ms += 1000;
		turn();
	}
	assert_int_equal(net.started, started);
}

/* Until a request is under way. How long that took. */
static uint64_t until_asked(void)
{
	uint64_t begin_ms = now_ms;

	for (turn(); !net.first; pass(1))
		assert_true(now_ms < begin_ms + 2 * WATCH_RETRY_MS);
	return now_ms - begin_ms;
}

static int add_at(const struct settings_server *where, size_t i, const char *path)
{
	items[i] = (struct item){
		.item = {.version = version_held, .changed = is_changed}, .version = "1"};
	snprintf(items[i].path, sizeof(items[i].path), "%s", path);
	items[i].item.path = items[i].path;
	items[i].item.arg = &items[i];
	return watch_add(watcher, where, &session, &items[i].item);
}

static int add(size_t i, const char *path)
{
	return add_at(&server, i, path);
}

static enum watch_state state_of(size_t i)
{
	const char *error;

	return watch_status(&items[i].item, &error);
}

static const char *error_of(size_t i)
{
	const char *error;

	watch_status(&items[i].item, &error);
	return error;
}

/* The watch of /a, asked for the first time. */
static void begin(enum settings_kind kind)
{
	server.kind = kind;
	assert_int_equal(add(0, "/a"), 0);
	assert_int_equal(state_of(0), WATCH_OFF);
	until_asked();
	assert_int_equal(state_of(0), WATCH_CONNECTING);
}

static int set_up(void **state)
{
	(void)state;
	log_setup(LOG_LEVEL_ERR, LOG_FORMAT_TEXT);
	memset(&net, 0, sizeof(net));
	memset(&session, 0, sizeof(session));
	now_ms = BEGIN_MS;
	dice = false;
	sys = sys_real;
	sys.now_ms = clock_ms;
	sys.random = throw_dice;
	sys.host = host;
	scratch_open(dir, scratch_memory());
	scratch_write(dir, "password", "secret\n", 7);
	snprintf(password, sizeof(password), "%s/password", dir);
	server = (struct settings_server){.name = name,
		.urls = urls,
		.url_count = 2,
		.max_bytes = 1000,
		.connect_timeout_ms = 3000};
	loop = loop_new(&sys);
	assert_non_null(loop);
	loop_timer_init(&stop, stop_now, loop);
	backoffs = backoffs_new(&sys);
	watcher = watch_new(loop, &sys, backoffs, NULL, NULL);
	assert_non_null(watcher);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	watch_free(watcher);
	backoffs_free(backoffs);
	assert_null(net.first);
	exchange_session_fini(&session);
	loop_free(loop);
	scratch_close(dir);
	return 0;
}

/* ---- what goes together ---- */

static void add__to_what_is_watched__is_the_same_request(void **state)
{
	(void)state;
	server.kind = SETTINGS_ETCD;
	assert_int_equal(add(0, "/a"), 0);
	assert_int_equal(add(1, "/ab"), 0);
	items[1].version = "2";
	assert_true(until_asked() <= WATCH_SPLAY_MS);
	assert_string_equal(under_way()->body, "/a=1@0 /ab=2@0 ");
	assert_string_equal(net.first->url, "http://a/watch");
	line("moved 1 7");
	assert_int_equal(items[0].changes, 0);
	assert_string_equal(items[1].last, "k v");
	line("moved 0 8");
	assert_string_equal(items[0].last, "k v");
	assert_int_equal(state_of(1), WATCH_ON);
}

static void is_answered(void *arg, const struct http_client_response *answer)
{
	struct item *i = arg;

	snprintf(i->last, sizeof(i->last), "%s", answer->body.data);
	assert_int_equal(i->changes, 0);
}

static void answer__that_came_with_the_news__goes_to_who_wants_it(void **state)
{
	(void)state;
	server.kind = SETTINGS_ETCD;
	assert_int_equal(add(0, "/a"), 0);
	assert_int_equal(add(1, "/ab"), 0);
	items[0].item.answered = is_answered;
	items[0].item.changed = is_nothing;
	until_asked();
	line("moved 0 7");
	assert_string_equal(items[0].last, "moved 0 7");
	line("moved 1 8"); /* that one does not */
	assert_string_equal(items[1].last, "k v");
}

static void add__of_more_than_fit__makes_a_second_request(void **state)
{
	char path[16];

	(void)state;
	server.kind = SETTINGS_ETCD;
	for (size_t i = 0; i < ITEMS; i++) {
		snprintf(path, sizeof(path), "/a%zu", i);
		assert_int_equal(add(i, path), 0);
	}
	pass(WATCH_SPLAY_MS);
	assert_int_equal(net.started, 2);
	assert_non_null(strstr(net.first->body, "/a63=1@0"));
	assert_null(strstr(net.first->body, "/a64=1@0"));
	assert_null(strstr(net.first->next->body, "/a63=1@0"));
	assert_non_null(strstr(net.first->next->body, "/a64=1@0 /a65=1@0"));
}

static void add__of_what_does_not_go_together__makes_a_request_each(void **state)
{
	static struct settings_server other;

	(void)state;
	server.kind = SETTINGS_APOLLO;
	assert_int_equal(add(0, "/a"), 0);
	assert_int_equal(add(1, "/b"), 0);
	other = server;
	assert_int_equal(add_at(&other, 2, "/a"), 0);
	pass(WATCH_SPLAY_MS);
	assert_int_equal(net.started, 3);
}

static void add__of_too_many__leaves_the_others_as_they_are(void **state)
{
	static struct settings_server servers[MANY];
	struct captured log = captured_begin(STDERR_FILENO);
	char said[4096];

	(void)state;
	log_setup(LOG_LEVEL_WARN, LOG_FORMAT_TEXT);
	server.kind = SETTINGS_ETCD;
	for (size_t i = 0; i < MANY; i++) {
		servers[i] = server;
		assert_int_equal(
			add_at(&servers[i], i, "/a"), i < WATCH_MAX_REQUESTS ? 0 : -ENOSPC);
	}
	captured_read(&log, said, sizeof(said));
	captured_end(&log);
	assert_non_null(strstr(said, "too many documents are watched: the others are polled"));
	assert_null(strstr(strstr(said, "too many") + 1, "too many")); /* once */
	assert_int_equal(state_of(MANY - 1), WATCH_OFF);
	assert_int_equal(
		add_at(&servers[0], MANY - 1, "/ab"), 0); /* there is room in what there is */
	pass(WATCH_SPLAY_MS);
	assert_int_equal(net.started, WATCH_MAX_REQUESTS);
}

static void add__where_nothing_is_to_be_watched__says_so(void **state)
{
	(void)state;
	server.kind = SETTINGS_HTTP;
	assert_int_equal(add(0, "/a"), -ENOTSUP);
	assert_int_equal(state_of(0), WATCH_OFF);
	pass(WATCH_SPLAY_MS);
	assert_int_equal(net.started, 0);
}

/* ---- when again ---- */

static void answers__at_once_again_and_again__are_a_burst_then_one_a_second(void **state)
{
	uint64_t begin_ms;

	(void)state;
	begin(SETTINGS_APOLLO);
	begin_ms = now_ms;
	for (unsigned n = 0; n < 20; n++) {
		assert_int_equal(until_asked(), n <= WATCH_BURST ? 0 : 1000);
		answer(200, "nothing");
	}
	assert_int_equal(now_ms - begin_ms, (19 - WATCH_BURST) * 1000);
	assert_string_equal(error_of(0), "");
	/* after a pause as much as at first, and no more */
	until_asked();
	pass_idle_hour();
	for (unsigned n = 0; n < 6; n++) {
		answer(200, "nothing");
		assert_int_equal(until_asked(), n < WATCH_BURST ? 0 : 1000);
	}
}

static void requests__have_the_versions_and_positions_of_now(void **state)
{
	(void)state;
	begin(SETTINGS_APOLLO);
	assert_string_equal(under_way()->body, "/a=1@0 ");
	answer(200, "moved 0 12");
	items[0].version = "2";
	until_asked();
	assert_string_equal(under_way()->body, "/a=2@12 ");
	assert_int_equal(under_way()->max_bytes, 1000);
	assert_int_equal(items[0].changes, 1);
}

/* ---- a server that compares ---- */

static void told__of_what_is_watched_alone__is_asked_again_when_it_was_followed(void **state)
{
	(void)state;
	begin(SETTINGS_NACOS);
	for (unsigned n = 2; n < 6; n++) {
		answer(200, "moved 0 0");
		pass(5000);
		assert_null(net.first);
		items[0].version = "2";
		watch_followed(&items[0].item);
		watch_followed(&items[0].item);
		assert_int_equal(until_asked(), 0);
		assert_string_equal(under_way()->body, "/a=2@0 ");
		assert_int_equal(net.started, n);
	}
}

static void told__and_followed_at_once_again_and_again__is_once_a_second(void **state)
{
	(void)state;
	begin(SETTINGS_NACOS);
	for (unsigned n = 0; n < 10; n++) {
		answer(200, "moved 0 0");
		watch_followed(&items[0].item);
		assert_int_equal(until_asked(), n < WATCH_BURST ? 0 : 1000);
	}
}

static void told__and_removed_before_it_is_followed__is_over(void **state)
{
	(void)state;
	begin(SETTINGS_NACOS);
	answer(200, "moved 0 0");
	watch_remove(watcher, &items[0].item);
	watch_followed(&items[0].item); /* its pull ended */
	pass(1000);
	assert_int_equal(net.started, 1);
	assert_int_equal(state_of(0), WATCH_OFF);
}

static void told__and_never_followed__is_asked_again_all_the_same(void **state)
{
	(void)state;
	begin(SETTINGS_NACOS);
	answer(200, "moved 0 0");
	assert_int_equal(until_asked(), WATCH_RETRY_MS);
	watch_followed(&items[0].item); /* too late: it is not asked for twice */
	pass(1000);
	assert_int_equal(net.started, 2);
}

static void told__of_one_of_several__keeps_the_others_waiting_for_a_second_at_most(void **state)
{
	(void)state;
	server.kind = SETTINGS_NACOS;
	assert_int_equal(add(1, "/ab"), 0);
	begin(SETTINGS_NACOS);
	answer(200, "moved 0 0");
	assert_int_equal(until_asked(), WATCH_PULL_MS);
	assert_string_equal(under_way()->body, "/a=1@0 ");
	answer(200, "stale"); /* the last one that was not waited for */
	watch_followed(&items[1].item);
	assert_int_equal(state_of(0), WATCH_ON);
	assert_int_equal(until_asked(), WATCH_PULL_MS);
	assert_string_equal(under_way()->body, "/ab=1@0 ");
	answer(200, "moved 0 0");
	watch_followed(&items[0].item);
	watch_followed(&items[1].item);
	assert_int_equal(until_asked(), 0);
	assert_int_equal(strlen(under_way()->body), strlen("/a=1@0 /ab=1@0 "));
}

static void told__of_one_of_several__whose_pull_hangs__is_asked_for_the_others_alone(void **state)
{
	unsigned started;

	(void)state;
	server.kind = SETTINGS_NACOS;
	assert_int_equal(add(1, "/ab"), 0);
	assert_int_equal(add(2, "/ac"), 0);
	begin(SETTINGS_NACOS);
	answer(200, "moved 0 0");
	assert_int_equal(until_asked(), WATCH_PULL_MS);
	assert_null(strstr(under_way()->body, "/ab="));
	started = net.started;
	for (unsigned n = 0; n < 3; n++) { /* no answer: nothing has changed */
		pass(25 * 1000);
		assert_int_equal(net.started, started);
		answer(200, "");
		started++;
		assert_int_equal(until_asked(), WATCH_PULL_MS);
		assert_null(strstr(under_way()->body, "/ab="));
	}
	items[1].version = "2";
	assert_int_equal(net.cancelled, 0);
	watch_followed(&items[1].item);
	assert_int_equal(net.cancelled, 1);
	assert_int_equal(until_asked(), 0);
	assert_int_equal(state_of(1), WATCH_ON);
	assert_non_null(strstr(under_way()->body, "/ab=2@0 "));
	assert_int_equal(strlen(under_way()->body), strlen("/a=1@0 /ab=2@0 /ac=1@0 "));
}

static void told__of_several__whose_pulls_end_one_by_one__is_asked_once_a_second(void **state)
{
	unsigned started;

	(void)state;
	server.kind = SETTINGS_NACOS;
	for (unsigned i = 1; i < 40; i++) {
		char path[16];

		snprintf(path, sizeof(path), "/a%u", i);
		assert_int_equal(add(i, path), 0);
	}
	begin(SETTINGS_NACOS);
	for (unsigned i = 0; i < 30; i++) {
		answer(200, "moved 0 0");
		until_asked();
	}
	started = net.started;
	for (unsigned i = 0; i < 40; i++) {
		watch_followed(&items[i].item);
		pass(100);
	}
	assert_in_range(net.started - started, 1, 4 + WATCH_BURST);
}

static void told__and_others_come_or_go__is_waited_for_as_these_allow(void **state)
{
	(void)state;
	begin(SETTINGS_NACOS);
	answer(200, "moved 0 0");
	pass(100);
	assert_int_equal(add(1, "/ab"), 0);
	assert_int_equal(until_asked(), WATCH_PULL_MS);
	assert_string_equal(under_way()->body, "/ab=1@0 ");
	watch_remove(watcher, &items[0].item);
	assert_int_equal(until_asked(), 0);
	assert_string_equal(under_way()->body, "/ab=1@0 ");
}

static void followed__when_the_watch_fails__does_not_hurry_it(void **state)
{
	(void)state;
	begin(SETTINGS_NACOS);
	answer(200, "half");
	assert_int_equal(items[0].changes, 1);
	watch_followed(&items[0].item);
	assert_int_equal(until_asked(), 250);
}

/* ---- the backoff of the address ---- */

static struct backoff *backoff_of(const char *url)
{
	struct backoff *b = backoff_join(backoffs, &server, url);

	assert_non_null(b);
	assert_true(b->users > 1); /* the watch has it, too */
	backoff_leave(b);
	return b;
}

/* Another request was rejected there. */
static void turn_away(const char *url, uint64_t for_ms)
{
	const struct http_client_response busy = {
		.result = HTTP_CLIENT_OK, .status = 503, .retry_after_ms = for_ms - 1};

	backoff_ended(backoff_of(url), now_ms, &busy);
}

static void backoff__for_another_request__keeps_the_next_one_of_a_watch_away(void **state)
{
	(void)state;
	begin(SETTINGS_APOLLO);
	answer(200, "nothing");
	assert_int_equal(until_asked(), 0);
	turn_away("http://a", 40000); /* the other address is free */
	answer(200, "nothing");
	assert_int_equal(until_asked(), 0);
	assert_string_equal(under_way()->url, "http://b/watch");
	assert_int_equal(state_of(0), WATCH_ON);
	turn_away("http://b", 30000); /* what is held there goes on */
	pass(1000);
	answer(200, "nothing");
	pass(1);
	assert_int_equal(state_of(0), WATCH_CONNECTING);
	assert_int_equal(until_asked(), 28999);
	assert_string_equal(under_way()->url, "http://b/watch");
	answer(200, "nothing");
	assert_int_equal(state_of(0), WATCH_ON);
}

static void backoff__by_a_watch_that_is_turned_away__is_that_of_the_address(void **state)
{
	(void)state;
	begin(SETTINGS_ETCD);
	answer(503, "busy"); /* without a number that can be read: a second */
	assert_int_equal(backoff_until(backoff_of("http://a"), now_ms), now_ms + 1001);
	assert_int_equal(until_asked(), 250);
	assert_string_equal(under_way()->url, "http://b/watch");
	answer(503, "busy");
	assert_int_equal(backoff_until(backoff_of("http://b"), now_ms), now_ms + 1001);
	assert_int_equal(until_asked(), 751); /* and not the 500 of its own */
	assert_string_equal(under_way()->url, "http://a/watch");
	line("nothing");
	assert_null(backoff_of("http://a")->error);
	assert_int_equal(backoff_of("http://a")->shaper.in_a_row, 0);
}

static void backoff__of_a_watch_that_was_held__counts_only_if_it_is_turned_away(void **state)
{
	static const struct {
		enum http_client_result result;
		long status;
		uint64_t backoff_ms;
		bool counts;
	} table[] = {
		{HTTP_CLIENT_NETWORK, 0, WATCH_PROVEN_MS - 1, true},
		{HTTP_CLIENT_NETWORK, 0, WATCH_PROVEN_MS, false},
		{HTTP_CLIENT_OK, 504, 1, true},
		{HTTP_CLIENT_OK, 504, 60000, false}, /* a proxy's patience */
		{HTTP_CLIENT_OK, 503, 60000, true},
		{HTTP_CLIENT_TIMEOUT, 0, 1, true}, /* no connection */
		{HTTP_CLIENT_OK, 200, 1, false},
	};
	(void)state;
	begin(SETTINGS_APOLLO);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const char *url =
			strncmp(under_way()->url, "http://a", 8) == 0 ? "http://a" : "http://b";
		uint32_t before[2] = {
			backoff_of(url)->shaper.count[0], backoff_of(url)->shaper.count[1]};

		pass(table[i].backoff_ms);
		end(under_way(), table[i].result, table[i].status, "busy");
		assert_int_equal(backoff_of(url)->shaper.count[0] +
					 backoff_of(url)->shaper.count[1] - before[0] - before[1],
			table[i].counts);
		until_asked();
	}
}

/* ---- failures ---- */

static void failures__in_a_row__wait_longer_at_one_address_after_the_other(void **state)
{
	uint64_t most_ms = 1000;

	(void)state;
	begin(SETTINGS_APOLLO);
	for (unsigned n = 0; n < 12; n++) {
		assert_string_equal(under_way()->url, n % 2 ? "http://b/watch" : "http://a/watch");
		if (n % 3)
			cut();
		else
			answer(200, n % 2 ? "bad" : "busy");
		assert_int_equal(state_of(0), WATCH_FAILING);
		assert_string_equal(error_of(0), n % 3   ? "the line was cut"
						 : n % 2 ? "it is bad"
							 : "it is busy");
		assert_int_equal(until_asked(), most_ms / 4);
		most_ms = 2 * most_ms < WATCH_RETRY_MS ? 2 * most_ms : WATCH_RETRY_MS;
	}
	/* one good answer, and it begins small again */
	answer(200, "nothing");
	assert_int_equal(state_of(0), WATCH_ON);
	assert_string_equal(error_of(0), "");
	until_asked();
	answer(200, "busy");
	assert_int_equal(until_asked(), 250);
}

static void failures__and_the_end_of_them__are_a_line_each(void **state)
{
	static const struct {
		const char *words;
		unsigned times;
	} lines[] = {{"watch failed: changes are seen at the interval server=main path=/a "
		      "why=\"it is busy\"\n",
			     1},
		{"watch failed: ", 2}, {"why=\"it is busy\" repeated=1\n", 1},
		{"watching again server=main path=/a\n", 2}, {"watching again", 2}};
	struct captured log = captured_begin(STDERR_FILENO);
	char said[4096];

	(void)state;
	begin(SETTINGS_APOLLO);
	log_setup(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
	for (int i = 0; i < 2; i++) {
		for (int k = 0; k < 2; k++) { /* the second is not news */
			answer(200, "busy");
			until_asked();
		}
		answer(200, "nothing");
		until_asked();
		answer(200, "nothing");
		pass(LOG_LIMIT_MS);
	}
	captured_read(&log, said, sizeof(said));
	captured_end(&log);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		unsigned n = 0;

		for (const char *at = said; (at = strstr(at, lines[i].words)); at++)
			n++;
		if (n != lines[i].times)
			fail_msg("%u times %s:\n%s", lines[i].times, lines[i].words, said);
	}
}

static void failures__of_many_hosts__are_not_repeated_in_step(void **state)
{
	uint64_t least_ms = UINT64_MAX, most_ms = 0;

	(void)state;
	dice = true;
	begin(SETTINGS_APOLLO);
	for (unsigned n = 0; n < 200; n++) {
		uint64_t ms;

		answer(200, "busy"); /* the first in a row */
		ms = until_asked();
		assert_in_range(ms, 250, 1000);
		least_ms = ms < least_ms ? ms : least_ms;
		most_ms = ms > most_ms ? ms : most_ms;
		answer(200, "nothing");
		until_asked();
	}
	assert_true(least_ms < 300);
	assert_true(most_ms > 950);
}

static void request__that_cannot_be_made__is_a_failure(void **state)
{
	(void)state;
	begin(SETTINGS_APOLLO);
	net.refuses = EIO;
	answer(200, "nothing");
	turn();
	assert_int_equal(state_of(0), WATCH_FAILING);
	assert_true(error_of(0)[0]);
	assert_int_equal(until_asked(), 250);
}

/* ---- streams ---- */

static void stream__that_stood_for_long_and_breaks__is_begun_at_once_where_it_stood(void **state)
{
	(void)state;
	begin(SETTINGS_ETCD);
	line("moved 0 5");
	pass(WATCH_PROVEN_MS);
	cut();
	assert_int_equal(state_of(0), WATCH_CONNECTING);
	assert_string_equal(error_of(0), "");
	assert_int_equal(until_asked(), 0);
	assert_string_equal(under_way()->url, "http://b/watch");
	assert_string_equal(under_way()->body, "/a=1@5 ");
	assert_int_equal(items[0].changes, 1); /* by the line */
}

static void stream__that_breaks_soon_again_and_again__is_a_failure(void **state)
{
	(void)state;
	begin(SETTINGS_ETCD);
	for (uint64_t ms = 250; ms < 4000; ms *= 2) {
		line("nothing");
		assert_int_equal(state_of(0), WATCH_ON);
		pass(WATCH_PROVEN_MS - 1);
		cut();
		assert_int_equal(state_of(0), WATCH_FAILING);
		assert_int_equal(until_asked(), ms);
	}
	/* it is proven now */
	line("nothing");
	pass(WATCH_PROVEN_MS);
	line("busy");
	assert_int_equal(until_asked(), 250);
}

static void stream__that_the_server_ends__is_begun_again(void **state)
{
	(void)state;
	begin(SETTINGS_ETCD);
	answer(200, "");
	assert_string_equal(error_of(0), "the server ended the watch at once");
	assert_int_equal(until_asked(), 250);
	line("moved 0 5");
	pass(WATCH_PROVEN_MS);
	answer(200, "");
	assert_int_equal(until_asked(), 0);
	assert_string_equal(under_way()->body, "/a=1@5 ");
}

static void stream__that_is_silent__is_given_up_before_long(void **state)
{
	(void)state;
	dice = true;
	begin(SETTINGS_ETCD);
	for (unsigned n = 0; n < 100; n++) {
		assert_in_range(under_way()->idle_ms, WATCH_IDLE_MS * 3 / 4, WATCH_IDLE_MS);
		pass(20);
		end(under_way(), HTTP_CLIENT_TIMEOUT, 200, "");
		until_asked();
	}
}

static void line__that_is_empty__is_not_an_answer(void **state)
{
	(void)state;
	begin(SETTINGS_ETCD);
	line("");
	assert_int_equal(state_of(0), WATCH_CONNECTING);
	line("moved 0 5");
	line("");
	assert_int_equal(state_of(0), WATCH_ON);
}

static void line__that_is_bad__ends_the_stream(void **state)
{
	(void)state;
	begin(SETTINGS_ETCD);
	line("moved 0 5");
	line("bad");
	assert_null(net.first);
	assert_int_equal(net.cancelled, 1);
	assert_string_equal(error_of(0), "it is bad");
	assert_int_equal(until_asked(), 250);
	assert_string_equal(under_way()->url, "http://b/watch");
}

static void stale__begins_anew_soon_and_everything_may_have_changed(void **state)
{
	(void)state;
	begin(SETTINGS_ETCD);
	line("moved 0 5");
	for (unsigned n = 0; n < 8; n++) {
		line("stale");
		assert_int_equal(items[0].changes, n + 2);
		assert_string_equal(items[0].last, " -");
		assert_int_equal(until_asked(), n < WATCH_BURST ? 0 : 1000);
		assert_string_equal(under_way()->body, "/a=1@0 ");
	}
}

static void stale__of_what_is_asked_again__is_asked_anew(void **state)
{
	(void)state;
	begin(SETTINGS_APOLLO);
	answer(200, "moved 0 5");
	until_asked();
	answer(200, "stale");
	assert_int_equal(state_of(0), WATCH_ON);
	assert_int_equal(until_asked(), 0);
	assert_string_equal(under_way()->body, "/a=1@0 ");
}

/* ---- logins ---- */

static void log_in_as_me(void)
{
	static char me[] = "me";

	server.user = me;
	server.password_file = password;
	begin(SETTINGS_ETCD);
	assert_string_equal(under_way()->url, "http://a/login");
	answer(200, "t1");
	assert_string_equal(under_way()->url, "http://a/watch");
	assert_string_equal(under_way()->token, "t1");
}

static void token__refused_by_an_answer__is_renewed_in_the_same_request(void **state)
{
	(void)state;
	log_in_as_me();
	answer(401, "denied");
	assert_string_equal(under_way()->url, "http://a/login");
	answer(200, "t2");
	assert_string_equal(under_way()->token, "t2");
	assert_int_equal(state_of(0), WATCH_CONNECTING);
	answer(401, "denied"); /* again: it is not the token */
	assert_int_equal(state_of(0), WATCH_FAILING);
	assert_int_equal(until_asked(), 250);
}

static void token__refused_in_a_line__is_renewed_by_the_next_request(void **state)
{
	(void)state;
	log_in_as_me();
	line("moved 0 5");
	line("denied");
	assert_null(net.first);
	until_asked();
	assert_string_equal(under_way()->url, "http://b/login");
	answer(200, "t2");
	assert_string_equal(under_way()->token, "t2");
	assert_string_equal(under_way()->body, "/a=1@5 ");
	/* it is not the token, then: nobody logs in for it again */
	line("denied");
	until_asked();
	assert_string_equal(under_way()->url, "http://a/watch");
	assert_string_equal(under_way()->token, "t2");
}

static void login__that_is_refused__is_a_failure(void **state)
{
	(void)state;
	log_in_as_me();
	line("denied");
	until_asked();
	answer(403, "no");
	assert_null(net.first);
	assert_int_equal(state_of(0), WATCH_FAILING);
	assert_string_equal(error_of(0), "the password is wrong");
	until_asked();
}

/* ---- the machine slept ---- */

static void resume__asks_again_on_new_connections_from_where_it_stood(void **state)
{
	(void)state;
	begin(SETTINGS_ETCD);
	line("moved 0 5");
	watch_resume(watcher);
	assert_int_equal(net.forgotten, 1);
	assert_int_equal(net.cancelled, 1);
	assert_null(net.first);
	assert_int_equal(state_of(0), WATCH_CONNECTING);
	assert_int_equal(until_asked(), 0);
	assert_string_equal(under_way()->body, "/a=1@5 ");
	assert_int_equal(items[0].changes, 1);
	/* again and again, and it is not asked more often than otherwise */
	for (unsigned n = 1; n < 7; n++) {
		watch_resume(watcher);
		assert_int_equal(until_asked(), n < WATCH_BURST ? 0 : 1000);
	}
}

static void resume__between_two_requests__changes_nothing(void **state)
{
	(void)state;
	begin(SETTINGS_ETCD);
	line("bad");
	watch_resume(watcher);
	assert_int_equal(state_of(0), WATCH_FAILING);
	assert_int_equal(until_asked(), 250);
}

/* ---- documents come and go ---- */

static void add__while_a_request_is_under_way__asks_anew_from_where_it_stood(void **state)
{
	(void)state;
	begin(SETTINGS_ETCD);
	line("moved 0 5");
	assert_int_equal(add(1, "/ab"), 0);
	assert_int_equal(add(2, "/ac"), 0); /* one request for both */
	assert_int_equal(net.cancelled, 1);
	assert_int_equal(state_of(0), WATCH_CONNECTING);
	assert_int_equal(until_asked(), 0);
	assert_string_equal(under_way()->body, "/a=1@5 /ab=1@0 /ac=1@0 ");
	assert_int_equal(net.started, 2);
}

static void remove__of_one_of_several__asks_for_the_others_from_where_they_stood(void **state)
{
	(void)state;
	server.kind = SETTINGS_ETCD;
	assert_int_equal(add(0, "/a"), 0);
	assert_int_equal(add(1, "/ab"), 0);
	assert_int_equal(add(2, "/ac"), 0);
	assert_int_equal(add(3, "/b"), 0); /* another request */
	pass(WATCH_SPLAY_MS);
	net.first->line(net.first->arg, &(struct http_client_response){.status = 200,
						.body = {.data = (char[]){"moved 2 7"}, .len = 9}});
	watch_remove(watcher, &items[0].item); /* the request's path was its */
	memset(&items[0], 'x', sizeof(items[0]));
	assert_int_equal(net.cancelled, 1);
	watch_remove(watcher, &items[1].item);
	pass(1);
	assert_int_equal(net.cancelled, 1);
	assert_int_equal(net.started, 3);
	assert_string_equal(net.first->body, "/b=1@0 "); /* is the same */
	assert_string_equal(net.first->next->body, "/ac=1@7 ");
	watch_remove(watcher, &items[3].item);
	line("moved 0 9");
	assert_int_equal(items[2].changes, 2);
	assert_int_equal(items[3].changes, 0);
}

static void remove__of_the_last__ends_the_request_and_makes_room(void **state)
{
	char path[16];

	(void)state;
	server.kind = SETTINGS_CONSUL;
	for (size_t i = 0; i < WATCH_MAX_REQUESTS; i++) {
		snprintf(path, sizeof(path), "/a%zu", i);
		assert_int_equal(add(i, path), 0);
	}
	assert_int_equal(add(WATCH_MAX_REQUESTS, "/b"), -ENOSPC);
	watch_remove(watcher, &items[7].item);
	assert_int_equal(state_of(7), WATCH_OFF);
	assert_int_equal(add(7, "/b"), 0);
	pass(WATCH_SPLAY_MS);
	assert_int_equal(net.started, WATCH_MAX_REQUESTS);
	watch_remove(watcher, &items[7].item);
	assert_int_equal(net.cancelled, 1);
}

static void free__in_the_middle_of_everything__leaves_nothing(void **state)
{
	(void)state;
	server.kind = SETTINGS_ETCD;
	assert_int_equal(add(0, "/a"), 0);
	assert_int_equal(add(1, "/b"), 0);
	assert_int_equal(add(2, "/c"), 0);
	pass(10);
	assert_int_equal(net.started, 3);
	end(net.first, HTTP_CLIENT_NETWORK, 0, ""); /* one waits for its next request */
	assert_int_equal(add(3, "/d"), 0);          /* one for its first */
}

/* ---- local files ---- */

static void is_changed_at_last(void *arg, const char *key, size_t key_len, const char *version)
{
	is_changed(arg, key, key_len, version);
	loop_stop(loop);
}

static void file__that_is_replaced__is_reported(void **state)
{
	char url[SCRATCH_PATH + 16], *files[] = {url};
	struct file_watch *drift = file_watch_new(loop);
	struct settings_server local = {
		.kind = SETTINGS_FILE, .name = name, .urls = files, .url_count = 1};
	struct watch *watching = watch_new(loop, &sys, backoffs, NULL, drift);

	(void)state;
	assert_non_null(drift);
	assert_non_null(watching);
	snprintf(url, sizeof(url), "file://%s", dir);
	memset(&items[0], 0, sizeof(items[0]));
	items[0].item.path = "/web.yaml";
	items[0].item.changed = is_changed_at_last;
	items[0].item.arg = &items[0];
	assert_int_equal(watch_add(watching, &local, &session, &items[0].item), 0);
	turn();
	assert_int_equal(items[0].changes, 0);
	scratch_write(dir, "web.yaml", "n: 1\n", 5);
	alarm(20);
	assert_int_equal(loop_run(loop), 0);
	alarm(0);
	assert_true(items[0].changes > 0);
	assert_string_equal(items[0].last, " -");
	watch_remove(watching, &items[0].item);
	watch_free(watching);
	file_watch_free(drift);
}

static void file__whose_directory_comes_late_or_is_another__is_watched_after_the_next_pull(
	void **state)
{
	char url[SCRATCH_PATH + 16], place[SCRATCH_PATH + 8], *files[] = {url};
	struct file_watch *drift = file_watch_new(loop);
	struct settings_server local = {
		.kind = SETTINGS_FILE, .name = name, .urls = files, .url_count = 1};
	struct watch *watching = watch_new(loop, &sys, backoffs, NULL, drift);
	struct captured log;
	const char *error;
	char said[4096];

	(void)state;
	log_setup(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
	log = captured_begin(STDERR_FILENO);
	snprintf(place, sizeof(place), "%s/place", dir);
	snprintf(url, sizeof(url), "file://%s", place);
	memset(&items[0], 0, sizeof(items[0]));
	items[0].item.path = "/web.yaml";
	items[0].item.changed = is_changed;
	items[0].item.arg = &items[0];
	assert_int_equal(watch_add(watching, &local, &session, &items[0].item), 0);
	watch_followed(&items[0].item);
	assert_int_equal(watch_status(&items[0].item, &error), WATCH_FAILING);
	assert_string_equal(error, "its directory is not there");
	assert_int_equal(items[0].changes, 0);
	assert_int_equal(mkdir(place, 0700), 0);
	watch_followed(&items[0].item);
	assert_int_equal(watch_status(&items[0].item, &error), WATCH_ON);
	assert_string_equal(error, "");
	assert_int_equal(items[0].changes, 1); /* since the pull */
	watch_followed(&items[0].item);
	assert_int_equal(items[0].changes, 1);
	watch_remove(watching, &items[0].item);
	assert_int_equal(watch_status(&items[0].item, &error), WATCH_OFF);
	watch_free(watching);
	file_watch_free(drift);
	captured_read(&log, said, sizeof(said));
	captured_end(&log);
	assert_non_null(strstr(said, "watch failed: changes are seen at the interval"));
	assert_null(strstr(strstr(said, "watch failed") + 1, "watch failed")); /* once */
	assert_non_null(strstr(said, "watching again"));
}

static void file__without_inotify__is_a_watch_that_fails(void **state)
{
	const char *error;

	(void)state;
	server.kind = SETTINGS_FILE;
	assert_int_equal(add(0, "/a"), 0);
	assert_int_equal(watch_status(&items[0].item, &error), WATCH_FAILING);
	assert_string_equal(error, "inotify cannot be used");
	watch_followed(&items[0].item);
	assert_int_equal(watch_status(&items[0].item, &error), WATCH_FAILING);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	static const struct CMUnitTest tests[] = {
		CASE(add__to_what_is_watched__is_the_same_request),
		CASE(answer__that_came_with_the_news__goes_to_who_wants_it),
		CASE(add__of_more_than_fit__makes_a_second_request),
		CASE(add__of_what_does_not_go_together__makes_a_request_each),
		CASE(add__of_too_many__leaves_the_others_as_they_are),
		CASE(add__where_nothing_is_to_be_watched__says_so),
		CASE(answers__at_once_again_and_again__are_a_burst_then_one_a_second),
		CASE(requests__have_the_versions_and_positions_of_now),
		CASE(told__of_what_is_watched_alone__is_asked_again_when_it_was_followed),
		CASE(told__and_followed_at_once_again_and_again__is_once_a_second),
		CASE(told__and_removed_before_it_is_followed__is_over),
		CASE(told__and_never_followed__is_asked_again_all_the_same),
		CASE(told__of_one_of_several__keeps_the_others_waiting_for_a_second_at_most),
		CASE(told__of_one_of_several__whose_pull_hangs__is_asked_for_the_others_alone),
		CASE(told__of_several__whose_pulls_end_one_by_one__is_asked_once_a_second),
		CASE(told__and_others_come_or_go__is_waited_for_as_these_allow),
		CASE(followed__when_the_watch_fails__does_not_hurry_it),
		CASE(backoff__for_another_request__keeps_the_next_one_of_a_watch_away),
		CASE(backoff__by_a_watch_that_is_turned_away__is_that_of_the_address),
		CASE(backoff__of_a_watch_that_was_held__counts_only_if_it_is_turned_away),
		CASE(failures__in_a_row__wait_longer_at_one_address_after_the_other),
		CASE(failures__and_the_end_of_them__are_a_line_each),
		CASE(failures__of_many_hosts__are_not_repeated_in_step),
		CASE(request__that_cannot_be_made__is_a_failure),
		CASE(stream__that_stood_for_long_and_breaks__is_begun_at_once_where_it_stood),
		CASE(stream__that_breaks_soon_again_and_again__is_a_failure),
		CASE(stream__that_the_server_ends__is_begun_again),
		CASE(stream__that_is_silent__is_given_up_before_long),
		CASE(line__that_is_empty__is_not_an_answer),
		CASE(line__that_is_bad__ends_the_stream),
		CASE(stale__begins_anew_soon_and_everything_may_have_changed),
		CASE(stale__of_what_is_asked_again__is_asked_anew),
		CASE(token__refused_by_an_answer__is_renewed_in_the_same_request),
		CASE(token__refused_in_a_line__is_renewed_by_the_next_request),
		CASE(login__that_is_refused__is_a_failure),
		CASE(resume__asks_again_on_new_connections_from_where_it_stood),
		CASE(resume__between_two_requests__changes_nothing),
		CASE(add__while_a_request_is_under_way__asks_anew_from_where_it_stood),
		CASE(remove__of_one_of_several__asks_for_the_others_from_where_they_stood),
		CASE(remove__of_the_last__ends_the_request_and_makes_room),
		CASE(free__in_the_middle_of_everything__leaves_nothing),
		CASE(file__that_is_replaced__is_reported),
		CASE(file__whose_directory_comes_late_or_is_another__is_watched_after_the_next_pull),
		CASE(file__without_inotify__is_a_watch_that_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
