/* Why a version is not published: the words of the ledger, the status and the log. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "config/rejection.h"

static const struct {
	enum rejection_reason reason;
	const char *name;
	bool held, rollback;
} table[] = {
	{(enum rejection_reason)CHECK_SYNTAX, "syntax", false, false},
	{REJECTED_BY_DIGEST, "digest", false, false},
	{REJECTED_BY_SIGNATURE, "signature", false, false},
	{REJECTED_BY_GUARD, "guard", false, false},
	{(enum rejection_reason)CHECK_SCHEMA, "schema", false, false},
	{(enum rejection_reason)CHECK_FORMAT, "format", false, false},
	{(enum rejection_reason)CHECK_SIZE, "size", false, false},
	{(enum rejection_reason)CHECK_PROGRAM, "check", false, false},
	{REJECTED_BY_PROBE, "probe", false, true},
	{REJECTED_BY_OPERATOR, "operator", true, true},
	{REJECTED_BY_PIN, "pin", true, false},
	{REJECTED_BY_ROLLOUT, "rollout", true, false},
	{REJECTED_BY_UNKNOWN, "unknown", false, false},
};

#define REASONS (sizeof(table) / sizeof(table[0]))

static void reason__has_a_name_that_is_read_again(void **state)
{
	(void)state;
	assert_int_equal(REASONS, REJECTION_REASONS);
	for (size_t i = 0; i < REASONS; i++) {
		assert_int_equal(table[i].reason, i);
		assert_string_equal(rejection_name(table[i].reason), table[i].name);
		assert_int_equal(rejection_parse(table[i].name), table[i].reason);
	}
}

static void word__that_no_reason_has__is_unknown(void **state)
{
	static const char *const words[] = {"", "oracle", "prob", "probes", "Probe"};

	(void)state;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		assert_int_equal(rejection_parse(words[i]), REJECTED_BY_UNKNOWN);
}

static void reason__is_a_decision_or_a_rollback_or_neither(void **state)
{
	(void)state;
	for (size_t i = 0; i < REASONS; i++) {
		assert_int_equal(rejection_is_held(table[i].reason), table[i].held);
		assert_int_equal(rejection_is_rollback(table[i].reason), table[i].rollback);
	}
	assert_false(rejection_is_held(REJECTION_REASONS));
	assert_false(rejection_is_rollback(REJECTION_REASONS));
}

static void line_of_the_log__names_the_reason(void **state)
{
	char text[REJECTION_TEXT];

	(void)state;
	assert_string_equal(rejection_text(REJECTED_BY_SIGNATURE, text),
		"rejected by the signature: keeping the current version");
	assert_ptr_equal(rejection_text(REJECTED_BY_UNKNOWN, text), text);
	assert_string_equal(text, "rejected by the unknown: keeping the current version");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reason__has_a_name_that_is_read_again),
		cmocka_unit_test(word__that_no_reason_has__is_unknown),
		cmocka_unit_test(reason__is_a_decision_or_a_rollback_or_neither),
		cmocka_unit_test(line_of_the_log__names_the_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
