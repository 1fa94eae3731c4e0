/* The update message: what is read, what is refused, that what is written reads back; versions
 * compare without quotes. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/etag.h"
#include "push/message.h"

static int parse(const char *text, struct push_message *m)
{
	const char *why = NULL;
	int r = push_message_parse(text, strlen(text), m, &why);

	assert_true(r == 0 || (r == -EINVAL && why && why[0]));
	return r;
}

static void parse__of_all_members__takes_them(void **state)
{
	struct push_message m;

	(void)state;
	assert_int_equal(parse("{\"v\":1,\"epoch\":\"e1\",\"seq\":12,\"version\":\"abc\",\"spread_"
			       "ms\":5000,\"more\":[1]}",
				 &m),
		0);
	assert_string_equal(m.epoch, "e1");
	assert_string_equal(m.version, "abc");
	assert_true(m.has_seq && m.seq == 12 && m.has_spread && m.spread_ms == 5000);
	assert_int_equal(parse("{\"v\":1}", &m), 0);
	assert_true(!m.has_seq && !m.has_spread && !m.epoch[0] && !m.version[0]);
	assert_int_equal(parse("{\"v\":1,\"spread_ms\":99999999999}", &m), 0);
	assert_true(m.spread_ms == PUSH_MAX_SPREAD_MS && m.hops == 0);
	assert_int_equal(parse("{\"v\":1,\"hops\":15}", &m), 0);
	assert_int_equal(m.hops, 15);
	assert_int_equal(parse("{\"v\":1,\"hops\":99999999999}", &m), 0);
	assert_int_equal(m.hops, PUSH_MAX_HOPS);
}

static void parse__of_what_is_not_an_envelope__refuses_it(void **state)
{
	static const char *const bad[] = {"", "x", "[1]", "{}", "{\"v\":2}", "{\"v\":\"1\"}",
		"{\"v\":1,\"seq\":-1}", "{\"v\":1,\"seq\":\"1\"}", "{\"v\":1,\"epoch\":5}",
		"{\"v\":1,\"spread_ms\":1.5}", "{\"v\":1,\"v\":1}",
		"{\"v\":1,\"epoch\":\"a\\u0000\"}",
		"{\"v\":1,\"epoch\":"
		"\"0123456789012345678901234567890123456789012345678901234567890123456789\"}"};
	struct push_message m;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(parse(bad[i], &m), -EINVAL);
}

static void assert_refused(const char *data, size_t len, const char *wanted)
{
	struct push_message m = {.seq = 77, .epoch = "before"};
	const char *why = NULL;

	assert_int_equal(push_message_parse(data, len, &m, &why), -EINVAL);
	assert_string_equal(why, wanted);
	assert_true(m.seq == 77 && strcmp(m.epoch, "before") == 0); /* nothing is taken */
}

static void parse__of_each_fault__names_it(void **state)
{
	static const struct {
		const char *text, *why;
	} rows[] = {
		{"[1]", "the envelope is not a JSON object"},
		{"{\"epoch\":\"e\"}", "\"v\" is not 1"},
		{"{\"v\":0}", "\"v\" is not 1"},
		{"{\"v\":1.0}", "\"v\" is not 1"},
		{"{\"v\":1,\"epoch\":1}", "\"epoch\" is not a text of at most 64 bytes"},
		{"{\"v\":1,\"version\":1}", "\"version\" is not a text of at most 256 bytes"},
		{"{\"v\":1,\"seq\":-1}", "\"seq\" is not a number"},
		{"{\"v\":1,\"seq\":null}", "\"seq\" is not a number"},
		{"{\"v\":1,\"spread_ms\":-1}", "\"spread_ms\" is not a number"},
		{"{\"v\":1,\"spread_ms\":true}", "\"spread_ms\" is not a number"},
		{"{\"v\":1,\"hops\":\"1\"}", "\"hops\" is not a number"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_refused(rows[i].text, strlen(rows[i].text), rows[i].why);
}

static void parse__at_the_bounds__takes_them_and_not_one_more(void **state)
{
	static char large[PUSH_MAX_ENVELOPE + 2] = "{\"v\":1,\"seq\":0}";
	struct push_message m;
	const char *why = NULL;
	char text[400];

	(void)state;
	snprintf(text, sizeof(text), "{\"v\":1,\"epoch\":\"%064d\"}", 0);
	assert_int_equal(parse(text, &m), 0);
	assert_int_equal(strlen(m.epoch), 64);
	assert_string_equal(m.version, "");
	snprintf(text, sizeof(text), "{\"v\":1,\"epoch\":\"%065d\"}", 0);
	assert_int_equal(parse(text, &m), -EINVAL);
	snprintf(text, sizeof(text), "{\"v\":1,\"version\":\"%0256d\"}", 0);
	assert_int_equal(parse(text, &m), 0);
	assert_int_equal(strlen(m.version), 256);
	assert_true(m.seq == 0 && !m.has_seq && m.spread_ms == 0);
	snprintf(text, sizeof(text), "{\"v\":1,\"version\":\"%0257d\"}", 0);
	assert_int_equal(parse(text, &m), -EINVAL);
	for (uint64_t ms = PUSH_MAX_SPREAD_MS - 1; ms <= PUSH_MAX_SPREAD_MS + 1; ms++) {
		snprintf(
			text, sizeof(text), "{\"v\":1,\"spread_ms\":%llu}", (unsigned long long)ms);
		assert_int_equal(parse(text, &m), 0);
		assert_int_equal(m.spread_ms, ms > PUSH_MAX_SPREAD_MS ? PUSH_MAX_SPREAD_MS : ms);
	}
	memset(large + strlen(large), ' ', sizeof(large) - strlen(large));
	assert_int_equal(push_message_parse(large, PUSH_MAX_ENVELOPE, &m, &why), 0);
	assert_true(m.has_seq && m.seq == 0);
	assert_refused(large, PUSH_MAX_ENVELOPE + 1, "the envelope is larger than 4 KiB");
}

static void write__of_each_member__has_that_alone(void **state)
{
	static const struct {
		struct push_message m;
		const char *text;
	} rows[] = {
		{{0}, "{\"v\":1}"},
		{{.seq = 3, .spread_ms = 4}, "{\"v\":1}"},
		{{.epoch = "e"}, "{\"v\":1,\"epoch\":\"e\"}"},
		{{.version = "v"}, "{\"v\":1,\"version\":\"v\"}"},
		{{.has_seq = true}, "{\"v\":1,\"seq\":0}"},
		{{.has_spread = true}, "{\"v\":1,\"spread_ms\":0}"},
		{{.hops = 2}, "{\"v\":1,\"hops\":2}"},
	};
	struct buffer b;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		buffer_init(&b, PUSH_MAX_ENVELOPE);
		assert_int_equal(push_message_write(&rows[i].m, &b), 0);
		assert_string_equal(b.data, rows[i].text);
		buffer_fini(&b);
		buffer_init(&b, strlen(rows[i].text) - 1);
		assert_int_equal(push_message_write(&rows[i].m, &b), -EMSGSIZE);
		buffer_fini(&b);
	}
}

static void write__of_a_message__reads_back(void **state)
{
	struct push_message m = {.has_seq = true,
		.seq = 7,
		.has_spread = true,
		.spread_ms = 9,
		.epoch = "e\"\\",
		.version = "W/\"v\""};
	struct push_message back;
	struct buffer b;

	(void)state;
	buffer_init(&b, 1000);
	assert_int_equal(push_message_write(&m, &b), 0);
	assert_int_equal(parse(b.data, &back), 0);
	assert_string_equal(back.epoch, m.epoch);
	assert_string_equal(back.version, m.version);
	assert_true(back.seq == 7 && back.spread_ms == 9);
	buffer_fini(&b);
}

static void version_hash__ignores_quotes_and_weakness(void **state)
{
	(void)state;
	assert_true(etag_hash("abc") == etag_hash("\"abc\""));
	assert_true(etag_hash("abc") == etag_hash("W/\"abc\""));
	assert_true(etag_hash("abc") != etag_hash("abd"));
	assert_true(etag_hash("W-abc") != etag_hash("abc"));
	assert_true(etag_hash("\"") != 0);
	assert_true(etag_hash("") == 0 && etag_hash(NULL) == 0 && etag_hash("\"\"") == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parse__of_all_members__takes_them),
		cmocka_unit_test(parse__of_what_is_not_an_envelope__refuses_it),
		cmocka_unit_test(parse__of_each_fault__names_it),
		cmocka_unit_test(parse__at_the_bounds__takes_them_and_not_one_more),
		cmocka_unit_test(write__of_each_member__has_that_alone),
		cmocka_unit_test(write__of_a_message__reads_back),
		cmocka_unit_test(version_hash__ignores_quotes_and_weakness),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
