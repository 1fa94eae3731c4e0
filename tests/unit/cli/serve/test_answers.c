/* What `pullet serve` answers for a file: whole, unchanged, of before somebody began to write in
 * it, or why not. The file is compiled in here, with files and requests that are played. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "httpd/server.h"
#include "origin/origin.h"
#include "origin/tree_watch.h"

static int played_read(int dir, const char *path, struct origin_file *ret_file);
static bool played_is_written(
	struct tree_watch *w, const char *path, struct tree_watch_before *ret_before);
static enum httpd_method played_method(const struct httpd_request *r);
static const char *played_path(const struct httpd_request *r);
static const char *played_header(const struct httpd_request *r, const char *name);
static void played_add_header(struct httpd_request *r, const char *name, const char *value);
static void played_reply(
	struct httpd_request *r, int status, const char *type, const void *body, size_t len);

static void played_check(struct tree_watch *w, const char *path);

#define origin_read played_read
#define tree_watch_check played_check
#define tree_watch_is_written played_is_written
#define httpd_method(r) played_method(r)
#define httpd_path played_path
#define httpd_header played_header
#define httpd_add_header played_add_header
#define httpd_reply played_reply
#include "cli/serve/serve.c"

#define NOW_S 1700000100
#define OLD "\"00000000000000000000000000000001\""
#define NEW "\"00000000000000000000000000000002\""

static struct sys sys;
static struct server server;

static struct played {
	/* the file */
	int error;
	const char *etag, *etag_later; /* later: of each read but the first; NULL = the same */
	unsigned reads;
	time_t modified;
	bool is_written, is_empty, is_written_later; /* later: when it is checked */
	struct tree_watch_before before;
	/* the request */
	enum httpd_method method;
	const char *match, *since, *host;
	/* the answer: a line each */
	char text[1024];
} played;

static int64_t virtual_wall_ms(void)
{
	return (int64_t)NOW_S * 1000 + 999;
}

static int played_read(int dir, const char *path, struct origin_file *ret_file)
{
	assert_int_equal(dir, 77);
	assert_string_equal(path, "team/web.yaml");
	played.reads++;
	if (played.error)
		return played.error;
	*ret_file = (struct origin_file){.modified = played.modified};
	snprintf(ret_file->etag, sizeof(ret_file->etag), "%s",
		played.reads > 1 && played.etag_later ? played.etag_later : played.etag);
	buffer_init(&ret_file->body, 100);
	return buffer_append_string(&ret_file->body, played.is_empty ? "" : "now\n");
}

static void played_check(struct tree_watch *w, const char *path)
{
	(void)w;
	assert_string_equal(path, "team/web.yaml");
	played.is_written = played.is_written_later;
}

static bool played_is_written(
	struct tree_watch *w, const char *path, struct tree_watch_before *ret_before)
{
	(void)w;
	assert_string_equal(path, "team/web.yaml");
	*ret_before = played.before;
	return played.is_written;
}

static enum httpd_method played_method(const struct httpd_request *r)
{
	(void)r;
	return played.method;
}

static const char *played_path(const struct httpd_request *r)
{
	(void)r;
	return "/team/web.yaml";
}

static const char *played_header(const struct httpd_request *r, const char *name)
{
	(void)r;
	return strcmp(name, "If-None-Match") == 0 ? played.match
	       : strcmp(name, "Host") == 0        ? played.host
						  : played.since;
}

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *format, ...)
{
	size_t len = strlen(played.text);
	va_list args;

	va_start(args, format);
	vsnprintf(played.text + len, sizeof(played.text) - len, format, args);
	va_end(args);
}

static void played_add_header(struct httpd_request *r, const char *name, const char *value)
{
	(void)r;
	say("%s: %s\n", name, value);
}

static void played_reply(
	struct httpd_request *r, int status, const char *type, const void *body, size_t len)
{
	(void)r;
	say("%d %s: %.*s", status, type ? type : "-", (int)len, len ? (const char *)body : "");
}

static int set_up(void **state)
{
	(void)state;
	sys = sys_real;
	sys.wall_ms = virtual_wall_ms;
	server = (struct server){.dir = 77, .loop = loop_new(&sys)};
	assert_non_null(server.loop);
	played = (struct played){
		.etag = NEW, .modified = NOW_S - 1000, .before = {.etag = ""}, .method = HTTPD_GET};
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	loop_free(server.loop);
	return 0;
}

static void assert_answer(const char *text)
{
	played.text[0] = '\0';
	played.reads = 0;
	answer_request(&server, NULL);
	assert_string_equal(played.text, text);
}

#define MODIFIED "Last-Modified: Tue, 14 Nov 2023 21:58:20 GMT\n"
#define REST "Cache-Control: no-cache\nX-Content-Type-Options: nosniff\n"
#define WHOLE(etag, body) "ETag: " etag "\n" MODIFIED REST "200 application/yaml: " body
#define UNCHANGED(etag) "ETag: " etag "\n" MODIFIED REST "304 -: "
#define PLAIN "text/plain; charset=utf-8: "

static void file__is_answered_whole_or_as_unchanged(void **state)
{
	(void)state;
	assert_answer(WHOLE(NEW, "now\n"));
	assert_int_equal(played.reads, 1);
	played.match = NEW;
	assert_answer(UNCHANGED(NEW));
	played.match = OLD;
	assert_answer(WHOLE(NEW, "now\n"));
	played.since = "Tue, 14 Nov 2023 21:58:20 GMT"; /* the ETag goes before it */
	assert_answer(WHOLE(NEW, "now\n"));
	played.match = NULL;
	assert_answer(UNCHANGED(NEW));
	played.since = "Tue, 14 Nov 2023 21:58:21 GMT"; /* any other time is another file */
	assert_answer(WHOLE(NEW, "now\n"));
	played.since = "yesterday";
	assert_answer(WHOLE(NEW, "now\n"));
}

/* Within its second a file may change again under the same time. */
static void time__of_a_moment_ago__is_neither_sent_nor_compared(void **state)
{
	(void)state;
	played.modified = NOW_S - 1;
	played.since = "Tue, 14 Nov 2023 22:14:59 GMT";
	assert_answer("ETag: " NEW "\n" REST "200 application/yaml: now\n");
	played.modified = NOW_S - 2;
	played.since = "Tue, 14 Nov 2023 22:14:58 GMT";
	assert_answer(
		"ETag: " NEW "\nLast-Modified: Tue, 14 Nov 2023 22:14:58 GMT\n" REST "304 -: ");
}

static void file__that_is_written__is_answered_as_it_was_before(void **state)
{
	(void)state;
	played.is_written = true;
	played.modified = 1;
	played.before = (struct tree_watch_before){OLD, "before, and more", 6, NOW_S - 1000};
	assert_answer(WHOLE(OLD, "before"));
	played.error = -ENOENT; /* an editor may have moved it away */
	assert_answer(WHOLE(OLD, "before"));
	played.error = 0;
	played.before.body = NULL; /* large: those who have it know it by its ETag */
	played.match = OLD;
	assert_answer(UNCHANGED(OLD));
	played.match = NEW;
	assert_answer("Retry-After: 1\n503 " PLAIN "the file is being written: ask again\n");
	played.match = NULL;
	assert_answer("Retry-After: 1\n503 " PLAIN "the file is being written: ask again\n");
	played.before.etag = ""; /* it was not there */
	assert_answer("404 " PLAIN "not found\n");
}

/* It changed, and somebody may have begun to write in it between the read and the question. */
static void file__that_is_another_than_the_watch_knows__is_read_again(void **state)
{
	(void)state;
	played.before.etag = OLD;
	played.etag_later = OLD;
	assert_answer(WHOLE(OLD, "now\n"));
	assert_int_equal(played.reads, 2);
	played.etag_later = NULL; /* and only once more */
	assert_answer(WHOLE(NEW, "now\n"));
	assert_int_equal(played.reads, 2);
	played.before.etag = NEW;
	assert_answer(WHOLE(NEW, "now\n"));
	assert_int_equal(played.reads, 1);
}

/* Who writes it anew truncates it first, which no event says for a moment. */
static void file__that_has_become_empty__is_answered_as_it_was_before(void **state)
{
	(void)state;
	played.is_empty = true;
	assert_answer(WHOLE(NEW, "")); /* it was not there */
	played.before = (struct tree_watch_before){NEW, "", 0, NOW_S - 1000};
	assert_answer(WHOLE(NEW, "")); /* it was empty */
	played.before = (struct tree_watch_before){OLD, "before", 6, NOW_S - 1000};
	assert_answer("Retry-After: 1\n503 " PLAIN "the file is being written: ask again\n");
	assert_int_equal(played.reads, 2);
	played.is_written_later = true;
	assert_answer(WHOLE(OLD, "before"));
}

static void file__that_cannot_be_read__is_refused(void **state)
{
	static const struct {
		int error;
		const char *answer;
	} rows[] = {
		{-ENOENT, "404 " PLAIN "not found\n"},
		{-EISDIR, "404 " PLAIN "not found\n"},
		{-ENOTDIR, "404 " PLAIN "not found\n"},
		{-EINVAL, "404 " PLAIN "not found\n"},
		{-EACCES, "403 " PLAIN "forbidden\n"},
		{-EXDEV, "403 " PLAIN "forbidden\n"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		played.error = rows[i].error;
		assert_answer(rows[i].answer);
	}
	played.error = 0;
	played.method = HTTPD_OTHER;
	assert_answer("Allow: GET, HEAD\n405 " PLAIN "only GET and HEAD\n");
	played.method = HTTPD_HEAD;
	assert_answer(WHOLE(NEW, "now\n"));
}

/* A page in a browser here may have its own name point to this host (DNS rebinding). */
static void name__of_somebody_else__is_refused_where_only_this_host_comes(void **state)
{
	static char name[] = "config.example";
	struct options options = {.http = "127.0.0.1:0"};
	static const char *const good[] = {NULL, "upstream", "127.0.0.1:8080", "localhost:8080",
		"[::1]:8080", "config.example:80"};

	(void)state;
	server.options = &options;
	played.host = "evil.example:8080";
	assert_answer(WHOLE(NEW, "now\n"));
	server.checks_names = true;
	assert_answer("421 " PLAIN "this host does not have the requested name: use its address, "
		      "or name it with --http-name\n");
	played.host = "config.example";
	played.text[0] = '\0';
	answer_request(&server, NULL);
	assert_memory_equal(played.text, "421 ", 4);
	options.http_names[0] = name;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		played.host = good[i];
		assert_answer(WHOLE(NEW, "now\n"));
	}
}

static void topic__is_the_path_without_its_ending(void **state)
{
	static const char *const rows[][2] = {{"web.yaml", "web"}, {"team/web.yaml", "team/web"},
		{"a.b/web", "a.b/web"}, {"a.b.c", "a.b"}, {".hidden", ".hidden"},
		{"a/.hidden", "a/.hidden"}, {"web", "web"}, {"team/web.yaml.minisig", "team/web"},
		{"web.minisig", "web"}, {"a.b/web.minisig", "a.b/web"}};
	char topic[256];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		topic_of_path(rows[i][0], topic);
		assert_string_equal(topic, rows[i][1]);
	}
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(file__is_answered_whole_or_as_unchanged),
		CASE(time__of_a_moment_ago__is_neither_sent_nor_compared),
		CASE(file__that_is_written__is_answered_as_it_was_before),
		CASE(file__that_is_another_than_the_watch_knows__is_read_again),
		CASE(file__that_has_become_empty__is_answered_as_it_was_before),
		CASE(file__that_cannot_be_read__is_refused),
		CASE(name__of_somebody_else__is_refused_where_only_this_host_comes),
		CASE(topic__is_the_path_without_its_ending),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
