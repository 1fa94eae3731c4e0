/* Sentences with values, for each audience; cut, forged, masked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "text/sentence.h"

#define SECRET "hunter2hunter2"

static char sentence[400], shown[400];

static const char *show(enum audience audience)
{
	return sentence_show(shown, sizeof(shown), sentence, audience);
}

static void make(const char *value)
{
	char quoted[200], output[200];

	snprintf(sentence, sizeof(sentence), "must be an integer, but is %s; it said%s.",
		sentence_quote(quoted, sizeof(quoted), value, strlen(value), "a string"),
		sentence_quote_output(output, sizeof(output), value, strlen(value)));
}

static void value__is_for_operators_only(void **state)
{
	(void)state;
	make(SECRET);
	assert_string_equal(show(AUDIENCE_OPERATOR),
		"must be an integer, but is " SECRET "; it said: " SECRET ".");
	assert_string_equal(show(AUDIENCE_READER), "must be an integer, but is a string; it said.");
	assert_string_equal(show(AUDIENCE_PUBLIC), "must be an integer, but is a string; it said.");
}

static void masked__is_for_nobody(void **state)
{
	(void)state;
	for (size_t len = 0; len < 4; len++) {
		make(&SECRET[sizeof(SECRET) - 1 - len]);
		sentence_mask(sentence);
		assert_string_equal(
			show(AUDIENCE_OPERATOR), len ? "must be an integer, but is ***; it said***."
						     : "must be an integer, but is ***; it said.");
	}
}

static void cut_anywhere__shows_no_more_than_whole(void **state)
{
	(void)state;
	make(SECRET);
	for (size_t len = strlen(sentence); len-- > 0;) {
		sentence[len] = '\0';
		assert_null(strstr(show(AUDIENCE_READER), "hunt"));
		memcpy(&sentence[len], ": and so on",
			sizeof(": and so on")); /* put into another one */
		assert_null(strstr(show(AUDIENCE_READER), "hunt"));
		sentence[len] = '\0';
		sentence_mask(sentence);
		assert_null(strstr(show(AUDIENCE_OPERATOR), "hunt"));
		make(SECRET);
	}
}

static void value__that_forges_brackets__stays_one(void **state)
{
	(void)state;
	make("a\x0f\x0e\x1f" SECRET "\x0f");
	assert_string_equal(show(AUDIENCE_READER), "must be an integer, but is a string; it said.");
	assert_non_null(strstr(show(AUDIENCE_OPERATOR), "a\\x0f\\x0e\\x1f" SECRET "\\x0f"));
	sentence_mask(sentence);
	assert_null(strstr(show(AUDIENCE_OPERATOR), SECRET));
}

static void value__that_is_long__is_cut_at_a_character_and_keeps_its_end(void **state)
{
	char quoted[SENTENCE_WORDS + 20], text[100];

	(void)state;
	memset(text, 'x', sizeof(text));
	for (size_t i = 0; i + 2 < sizeof(text); i += 2)
		memcpy(text + i, "\xc3\xa9", 2);
	snprintf(sentence, sizeof(sentence), "%s!",
		sentence_quote(quoted, sizeof(quoted), text, sizeof(text), "words"));
	assert_string_equal(show(AUDIENCE_READER), "words!");
	assert_non_null(strstr(show(AUDIENCE_OPERATOR), "\xc3\xa9!"));
}

static void member__is_json(void **state)
{
	struct buffer b;

	(void)state;
	make("a\"\n" SECRET);
	buffer_init(&b, 400);
	buffer_append(&b, "{", 1);
	assert_int_equal(sentence_member(&b, "why", sentence, AUDIENCE_READER), 0);
	assert_int_equal(sentence_member(&b, "none", NULL, AUDIENCE_READER), 0);
	assert_string_equal(
		b.data, "{\"why\":\"must be an integer, but is a string; it said.\",\"none\":null");
	buffer_fini(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(value__is_for_operators_only),
		cmocka_unit_test(masked__is_for_nobody),
		cmocka_unit_test(cut_anywhere__shows_no_more_than_whole),
		cmocka_unit_test(value__that_forges_brackets__stays_one),
		cmocka_unit_test(value__that_is_long__is_cut_at_a_character_and_keeps_its_end),
		cmocka_unit_test(member__is_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
