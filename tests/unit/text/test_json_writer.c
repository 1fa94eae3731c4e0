/* JSON member by member: where commas are, what is escaped, what a full buffer does. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "text/json_writer.h"

static void commas__of_every_kind_of_value__are_between_and_nowhere_else(void **state)
{
	struct buffer b;

	(void)state;
	buffer_init(&b, 1u << 12);
	json_writer_begin_object(&b, NULL);
	json_writer_text(&b, "text", "a");
	json_writer_text(&b, "none", NULL);
	json_writer_bytes(&b, "bytes", "xyz", 2);
	json_writer_number(&b, "number", 18446744073709551615ull);
	json_writer_integer(&b, "integer", -1);
	json_writer_digits(&b, "digits", UINT64_MAX);
	json_writer_boolean(&b, "yes", true);
	json_writer_boolean(&b, "no", false);
	json_writer_null(&b, "null");
	json_writer_begin_object(&b, "empty");
	json_writer_end_object(&b);
	json_writer_begin_array(&b, "array");
	json_writer_number(&b, NULL, 1);
	json_writer_text(&b, NULL, "{");
	json_writer_text(&b, NULL, "[:");
	json_writer_begin_array(&b, NULL);
	json_writer_end_array(&b);
	json_writer_begin_object(&b, NULL);
	json_writer_key(&b, "keys", 3);
	json_writer_boolean(&b, NULL, true);
	json_writer_member(&b, "raw");
	buffer_append_string(&b, "1.5");
	json_writer_end_object(&b);
	json_writer_null(&b, NULL);
	json_writer_end_array(&b);
	assert_int_equal(json_writer_end_object(&b), 0);
	assert_string_equal(b.data,
		"{\"text\":\"a\",\"none\":null,\"bytes\":\"xy\",\"number\":18446744073709551615,"
		"\"integer\":-1,\"digits\":\"18446744073709551615\",\"yes\":true,\"no\":false,"
		"\"null\":null,\"empty\":{},\"array\":[1,\"{\",\"[:\",[],{\"key\":true,\"raw\":1.5}"
		","
		"null]}");
	buffer_fini(&b);
}

static void lines__of_one_buffer__begin_without_a_comma(void **state)
{
	struct buffer b;

	(void)state;
	buffer_init(&b, 1u << 12);
	for (int i = 0; i < 2; i++) {
		json_writer_begin_object(&b, NULL);
		json_writer_end_object(&b);
		buffer_append_string(&b, "\n");
	}
	assert_string_equal(b.data, "{}\n{}\n");
	buffer_fini(&b);
}

static void text__with_quotes_and_bytes_that_are_no_utf8__is_escaped(void **state)
{
	struct buffer b;

	(void)state;
	buffer_init(&b, 1u << 12);
	json_writer_begin_object(&b, NULL);
	json_writer_text(&b, "a\"b", "c\\d\n\xff");
	json_writer_end_object(&b);
	assert_string_equal(b.data, "{\"a\\\"b\":\"c\\\\d\\n\\ufffd\"}");
	buffer_fini(&b);
}

static void full_buffer__at_any_call__keeps_its_first_error(void **state)
{
	(void)state;
	for (size_t max = 1; max < 24; max++) {
		struct buffer b;

		buffer_init(&b, max);
		json_writer_begin_object(&b, NULL);
		json_writer_text(&b, "name", "value");
		json_writer_begin_array(&b, "list");
		json_writer_number(&b, NULL, 1);
		json_writer_end_array(&b);
		assert_int_equal(json_writer_end_object(&b), -EMSGSIZE);
		assert_true(b.len <= max);
		buffer_fini(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(commas__of_every_kind_of_value__are_between_and_nowhere_else),
		cmocka_unit_test(lines__of_one_buffer__begin_without_a_comma),
		cmocka_unit_test(text__with_quotes_and_bytes_that_are_no_utf8__is_escaped),
		cmocka_unit_test(full_buffer__at_any_call__keeps_its_first_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
