/* Slips in YAML, as people make them: the place, and a guess at what was meant. The table is
 * tests/golden/slips.txt, whose rows that are no matter of YAML are left to test_slips.py. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "document/document.h"

#define TABLE "tests/golden/slips.txt"

struct slip_row {
	char *name, *text, *place, *words, *remedy;
	size_t text_len, remedy_len;
};

static char table[1u << 17];

static int read_table(void **state)
{
	FILE *f = fopen(TABLE, "re");
	size_t n;

	(void)state;
	assert_non_null(f);
	n = fread(table, 1, sizeof(table) - 1, f);
	assert_in_range(n, 1, sizeof(table) - 2);
	table[n] = '\0';
	fclose(f);
	return 0;
}

/* \t \r \\ and \xHH become bytes, in their place. The length. */
static size_t unescape(char *text)
{
	char *to = text, hex[3] = "";

	for (const char *from = text; *from; to++) {
		if (from[0] != '\\') {
			*to = *from++;
			continue;
		}
		memcpy(hex, from + 2, from[1] == 'x' ? 2 : 0);
		*to = from[1] == 't'   ? '\t'
		      : from[1] == 'r' ? '\r'
		      : from[1] == 'x' ? (char)strtol(hex, NULL, 16)
				       : from[1];
		from += from[1] == 'x' ? 4 : 2;
	}
	*to = '\0';
	return (size_t)(to - text);
}

/* Cuts off a text at this mark. What is behind it; NULL = it has none. */
static char *cut(char *text, const char *mark)
{
	char *at = text ? strstr(text, mark) : NULL;

	if (!at)
		return NULL;
	*at = '\0';
	return at + strlen(mark);
}

/* The row that begins here, and the begin of the next one, or NULL. */
static char *read_row(char *at, struct slip_row *row)
{
	char *next = cut(at, "\n=== ");

	*row = (struct slip_row){.name = at};
	row->text = cut(at, "\n");
	row->place = cut(row->text, "--- "); /* the text ends in its newline */
	row->words = cut(row->place, " ");
	row->remedy = cut(row->words, "\n");
	assert_non_null(row->remedy);
	row->text_len = unescape(row->text);
	unescape(row->words);
	row->remedy_len = unescape(row->remedy);
	return next;
}

static void slip__of_the_table__has_its_place_and_a_guess(void **state)
{
	char *at = cut(table, "\n=== "), place[32];
	struct document_error error;
	struct document *d = NULL;
	struct slip_row row;
	size_t known = 0;

	(void)state;
	while (at) {
		at = read_row(at, &row);
		if (strchr(row.words, '@')) /* the settings' own sentence */
			continue;
		error = (struct document_error){0};
		if (document_parse(DOCUMENT_YAML, row.text, row.text_len, 0, &d, &error) == 0) {
			document_free(d);
			continue;
		}
		known++;
		snprintf(place, sizeof(place), "%u:%u", error.line, error.column);
		if (strcmp(place, row.place) != 0 || !strstr(error.message, row.words))
			fail_msg("%s: %s: %s", row.name, place, error.message);
		if (document_parse(DOCUMENT_YAML, row.remedy, row.remedy_len, 0, &d, &error))
			fail_msg("%s: the remedy: %s", row.name, error.message);
		document_free(d);
	}
	assert_in_range(known, 55, 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(slip__of_the_table__has_its_place_and_a_guess, read_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
