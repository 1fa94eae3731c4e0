/* The update message: what is read, what is refused, that what is written reads back; versions
 * compare without quotes. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
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
	assert_true(m.spread_ms == PUSH_MAX_SPREAD_MS);
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
	assert_true(etag_hash("\"") != 0);
	assert_true(etag_hash("") == 0 && etag_hash(NULL) == 0 && etag_hash("\"\"") == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parse__of_all_members__takes_them),
		cmocka_unit_test(parse__of_what_is_not_an_envelope__refuses_it),
		cmocka_unit_test(write__of_a_message__reads_back),
		cmocka_unit_test(version_hash__ignores_quotes_and_weakness),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
