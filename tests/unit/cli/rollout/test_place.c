/* A rollout document and its driver's note in an etcd that is played: what is asked, what an answer
 * means. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/common/cli.h"
#include "cli/rollout/place.h"
#include "crypto/base64.h"
#include "tests/unit/fixture/command.h"

#define RANGE "POST /v3/kv/range"
#define TXN "POST /v3/kv/txn"
#define KEY "/web.rollout"
#define KEY64 "L3dlYi5yb2xsb3V0"              /* of KEY */
#define NOTE64 "L3dlYi5yb2xsb3V0I2RyaXZlcg==" /* of KEY "#driver" */
#define HEAD "{\"header\":{\"cluster_id\":\"7\",\"revision\":\"9\"}"
#define WRITTEN HEAD ",\"succeeded\":true}"
#define NOT_WRITTEN HEAD "}"
#define DOCUMENT "percent: 10\n"

static struct etcd *etcd;
static pid_t server;
static char answer[4096], why[FILE_WHY];

static int set_up(void **state)
{
	static struct etcd_options o = {.command = "pullet rollout"};

	(void)state;
	alarm(20);
	played_open();
	played_stop();
	o.url = played_listen_tcp();
	why[0] = '\0';
	etcd = NULL;
	return etcd_open(&o, &etcd) == CLI_OK ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	etcd_close(etcd);
	played_close();
	return 0;
}

static void begin(void)
{
	server = played_fork();
}

static void end(void)
{
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
}

/* An answer with one pair. */
static const char *pair_of(const char *value)
{
	struct buffer text;

	buffer_init(&text, 2048);
	assert_int_equal(base64_append(&text, value, strlen(value)), 0);
	snprintf(answer, sizeof(answer),
		HEAD ",\"kvs\":[{\"key\":\"" KEY64 "\",\"mod_revision\":\"5\",\"value\":\"%s\"}]}",
		text.data ? text.data : "");
	buffer_fini(&text);
	return answer;
}

static int read_plan(struct plan *ret, uint64_t *ret_revision)
{
	int r;

	begin();
	r = place_read(etcd, KEY, ret, ret_revision, why);
	end();
	return r;
}

static void document__is_read_with_its_revision(void **state)
{
	struct plan p;
	uint64_t revision;

	(void)state;
	played_answers(RANGE, 200, pair_of(DOCUMENT));
	assert_int_equal(read_plan(&p, &revision), 0);
	assert_int_equal(revision, 5);
	assert_non_null(p.document);
	plan_fini(&p);
	assert_string_equal(played.log->body, "{\"key\":\"" KEY64 "\"}");
	played_answers(RANGE, 200, HEAD "}"); /* there is none */
	assert_int_equal(read_plan(&p, &revision), 0);
	assert_int_equal(revision, 0);
	assert_null(p.document);
	assert_int_equal(p.state, PLAN_NONE);
	plan_fini(&p);
}

static void document__that_cannot_be_read__has_its_sentence(void **state)
{
	const struct {
		int status;
		const char *body;
		int error;
		const char *why;
	} rows[] = {
		{200, HEAD ",\"kvs\":[{\"key\":\"" KEY64 "\",\"mod_revision\":\"5\"}]}", -EINVAL,
			"it is empty"},
		{200,
			HEAD ",\"kvs\":[{\"key\":\"" KEY64
			     "\",\"mod_revision\":\"5\",\"value\":\"?\"}]}",
			-EIO, "the answer cannot be read"},
		{200, pair_of("percent: ten\n"), -EINVAL,
			"1:10: percent must be a number from 0 to 100"},
		{503, "down", 0, "503"},
	};
	struct plan p;
	uint64_t revision;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int r;

		played_answers(RANGE, rows[i].status, rows[i].body);
		r = read_plan(&p, &revision);
		assert_true(rows[i].error ? r == rows[i].error : r < 0);
		assert_shows(why, rows[i].why);
	}
}

static int write_plan(uint64_t revision)
{
	const struct plan p = {.state = PLAN_RUNNING,
		.version = "v2",
		.waves = {PLAN_WHOLE},
		.wave_count = 1,
		.wave = 1};
	int r;

	begin();
	r = place_write(etcd, KEY, &p, revision, why);
	end();
	return r;
}

/* What the last request puts at that key. */
static const char *put_value(const char *key64)
{
	static char text[2048];
	char *at = strstr(played.log->body, "\"request_put\":{\"key\":\"");
	size_t len;

	assert_non_null(at);
	at += strlen("\"request_put\":{\"key\":\"");
	assert_int_equal(strncmp(at, key64, strlen(key64)), 0);
	at += strlen(key64);
	assert_int_equal(strncmp(at, "\",\"value\":\"", 11), 0);
	at += 11;
	assert_int_equal(base64_decode(at, strcspn(at, "\""), text, sizeof(text) - 1, &len), 0);
	text[len] = '\0';
	return text;
}

static void write__replaces_what_was_read_alone(void **state)
{
	(void)state;
	played_answers(TXN, 200, WRITTEN);
	assert_int_equal(write_plan(5), 0);
	assert_shows(put_value(KEY64), "\"state\":\"running\",\"version\":\"v2\"");
	assert_shows(played.log->body,
		"{\"compare\":[{\"key\":\"" KEY64
		"\",\"target\":\"MOD\",\"result\":\"EQUAL\",\"mod_revision\":\"5\"}]");
	assert_int_equal(write_plan(0), 0);
	assert_shows(played.log->body, "{\"compare\":[{\"key\":\"" KEY64 "\",\"target\":\"");
	assert_null(strstr(played.log->body, "\"mod_revision\":\"5\""));
	played_answers(TXN, 200, NOT_WRITTEN);
	assert_int_equal(write_plan(5), -EEXIST);
	assert_string_equal(why, "somebody else changed the rollout just now");
	played_answers(TXN, 503, "down");
	assert_true(write_plan(5) < 0);
	assert_shows(why, "503");
}

static void note__is_written_whatever_is_there(void **state)
{
	const struct place_note note = {"0123456789abcdef", 1700000000000};

	(void)state;
	played_answers(TXN, 200, WRITTEN);
	begin();
	assert_int_equal(place_write_note(etcd, KEY, &note, why), 0);
	end();
	assert_null(strstr(played.log->body, "compare"));
	assert_string_equal(put_value(NOTE64),
		"{\"v\":1,\"driver\":\"0123456789abcdef\",\"at_ms\":1700000000000}");
	played_answers(TXN, 503, "down");
	begin();
	assert_true(place_write_note(etcd, KEY, &note, why) < 0);
	end();
	assert_shows(why, "503");
}

static void note__is_read__and_what_is_none_is_as_none(void **state)
{
	static const struct {
		const char *value, *driver;
		int64_t at_ms;
	} rows[] = {
		{"{\"v\":1,\"driver\":\"0123456789abcdef\",\"at_ms\":17}", "0123456789abcdef", 17},
		{"{\"v\":1,\"driver\":\"0123456789abcdef\",\"at_ms\":0}", "0123456789abcdef", 0},
		{"[1", "", 0},
		{"[1]", "", 0},
		{"", "", 0},
		{NULL, "", 0},
	};
	struct place_note note;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		played_answers(RANGE, 200, rows[i].value ? pair_of(rows[i].value) : HEAD "}");
		memset(&note, 'x', sizeof(note));
		begin();
		assert_int_equal(place_read_note(etcd, KEY, &note, why), 0);
		end();
		assert_string_equal(note.driver, rows[i].driver);
		assert_int_equal(note.at_ms, rows[i].at_ms);
	}
	assert_string_equal(played.log->body, "{\"key\":\"" NOTE64 "\"}");
	played_answers(RANGE, 503, "down");
	begin();
	assert_true(place_read_note(etcd, KEY, &note, why) < 0);
	end();
	assert_string_equal(note.driver, "");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(document__is_read_with_its_revision),
		CASE(document__that_cannot_be_read__has_its_sentence),
		CASE(write__replaces_what_was_read_alone),
		CASE(note__is_written_whatever_is_there),
		CASE(note__is_read__and_what_is_none_is_as_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
