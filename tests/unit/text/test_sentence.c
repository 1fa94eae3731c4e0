/* Sentences with values, for each audience; cut, forged, masked. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "text/sentence.h"
#include "tests/unit/fixture/fault_memory.h"

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

/* What an audience sees of a value in a room of that size, which ends where a sanitizer sees it. */
static const char *show_in_room(size_t size, const char *value, const char *words)
{
	char *room = malloc(size);

	assert_non_null(room);
	assert_ptr_equal(sentence_quote(room, size, value, strlen(value), words), room);
	assert_true(strlen(room) < size);
	snprintf(sentence, sizeof(sentence), "(%.300s)", room);
	free(room);
	return show(AUDIENCE_OPERATOR);
}

static void value__that_is_long__is_cut_at_a_character_and_keeps_its_end(void **state)
{
	static const char *const rows[] = {"(12345)", "(12345a)", "(12345ab)", "(12345ab)",
		"(12345ab\xc3\xa9)", "(12345ab\xc3\xa9\n)", "(12345ab\xc3\xa9\n)",
		"(12345ab\xc3\xa9\n)", "(12345ab\xc3\xa9\n)", "(12345ab\xc3\xa9\n\\x1b)",
		"(12345ab\xc3\xa9\n\\x1b )", "(12345ab\xc3\xa9\n\\x1b c)",
		"(12345ab\xc3\xa9\n\\x1b c)"};
	char words[100];

	(void)state;
	memset(words, 'w', sizeof(words) - 1);
	words[sizeof(words) - 1] = '\0';
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_string_equal(
			show_in_room(SENTENCE_WORDS + 1 + i, "12345ab\xc3\xa9\n\x1b\tc", words),
			rows[i]);
		words[SENTENCE_WORDS - 8] = '\0';
		assert_int_equal(strlen(show(AUDIENCE_READER)), strlen(words) + 2);
		assert_memory_equal(shown + 1, words, strlen(words));
		words[SENTENCE_WORDS - 8] = 'w';
	}
}

static void output__of_a_program__is_shown_without_blanks_at_its_end(void **state)
{
	static const char *const rows[][2] = {{"", ""}, {" \t\r\n", ""}, {"a", ": a"},
		{" a\r\n", ":  a"}, {"a\n b\n\n", ": a\n b"}, {"a\tb\t", ": a b"}};
	char room[200];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(sentence, sizeof(sentence), "it%s",
			sentence_quote_output(room, sizeof(room), rows[i][0], strlen(rows[i][0])));
		assert_memory_equal(show(AUDIENCE_OPERATOR), "it", 2);
		assert_string_equal(shown + 2, rows[i][1]);
		assert_string_equal(show(AUDIENCE_READER), "it");
	}
}

static void sentence__without_memory__shows_no_more(void **state)
{
	struct buffer b;

	(void)state;
	fault_memory.nth = 1;
	fault_memory.for_ever = true;
	make(SECRET);
	fault_memory.nth = 0;
	assert_string_equal(show(AUDIENCE_OPERATOR), "must be an integer, but is ; it said: .");
	assert_string_equal(show(AUDIENCE_READER), "must be an integer, but is a string; it said.");
	make(SECRET);
	buffer_init(&b, 1000);
	fault_memory.nth = 1;
	fault_memory.seen = 0;
	assert_string_equal(show(AUDIENCE_OPERATOR), "");
	assert_int_equal(sentence_append(&b, sentence, AUDIENCE_READER), -ENOMEM);
	buffer_init(&b, 1000);
	assert_int_equal(sentence_member(&b, "why", sentence, AUDIENCE_READER), -ENOMEM);
	fault_memory.nth = 0;
	buffer_fini(&b);
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
		cmocka_unit_test(output__of_a_program__is_shown_without_blanks_at_its_end),
		cmocka_unit_test(member__is_json),
		cmocka_unit_test(sentence__without_memory__shows_no_more),
	};

	return fault_memory_run(tests, 1);
}
