/*
 * Documents while memory runs out at each allocation of reading and writing them: that is said, and
 * no good document is called a bad one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/fixture/fault_memory.h"
#include "document/document.h"

#define MOST 5000

/* Reads the text as a document and writes it in both forms; 0 or the first error. */
static int read_and_write(enum document_type type, const char *text)
{
	struct document_error e;
	struct document *d = NULL;
	struct buffer out;
	int r = document_parse(type, text, strlen(text), 0, &d, &e);

	buffer_init(&out, 1u << 20);
	if (r == 0)
		r = document_write(document_root(d), DOCUMENT_JSON, &out);
	if (r == 0)
		r = document_write(document_root(d), DOCUMENT_YAML, &out);
	buffer_fini(&out);
	document_free(d);
	return r;
}

static void fail_each(enum document_type type, const char *text)
{
	for (int round = 0; round < 2; round++) {
		for (unsigned n = 1;; n++) {
			bool hit;
			int r;

			fault_memory.seen = 0;
			fault_memory.for_ever = round;
			fault_memory.nth = n;
			r = read_and_write(type, text);
			fault_memory.nth = 0;
			hit = fault_memory.seen >= n;
			assert_true(r == 0 || r == -ENOMEM);
			assert_int_equal(read_and_write(type, text), 0);
			if (!hit)
				break;
			assert_in_range(n, 1, MOST);
		}
	}
}

static void json__without_memory__is_not_invalid(void **state)
{
	(void)state;
	fail_each(DOCUMENT_JSON, "{\"text\": \"a \\u00e9 b\", \"list\": [1, 2.5, true, null], "
				 "\"map\": {\"long\": \"012345678901234567890123456789\", "
				 "\"e\": {}}}\n");
}

static void yaml__without_memory__is_not_invalid(void **state)
{
	(void)state;
	fail_each(DOCUMENT_YAML, "text: \"a \\u00e9 b\"\nlist: [1, 2.5, true, null]\nmap: &a\n"
				 "  long: '012345678901234567890123456789'\n  e: {}\nmore: *a\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(json__without_memory__is_not_invalid),
		cmocka_unit_test(yaml__without_memory__is_not_invalid),
	};

	return fault_memory_run(tests, 2);
}
