/* Heads of answers, line by line: where the body ends, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "http/framing.h"

/* Reads the lines of a head; what the last one was. */
static enum framing_line read_head(struct framing *f, const char *head, char why[FRAMING_WHY])
{
	enum framing_line is = FRAMING_BAD;
	struct framing_field field;

	*f = (struct framing){0};
	why[0] = '\0';
	while (*head) {
		size_t len = strcspn(head, "\n") + 1;
		char *exact = malloc(len);

		assert_non_null(exact);
		memcpy(exact, head, len);
		is = framing_read(f, exact, len, &field, why);
		free(exact);
		if (is == FRAMING_BAD)
			break;
		head += len;
	}
	assert_int_equal(is == FRAMING_BAD, why[0] != '\0');
	return is;
}

#define OK "HTTP/1.1 200 OK\r\n"

static void length__that_is_malformed_or_contradicted__is_refused(void **state)
{
	static const struct {
		const char *head, *why;
	} table[] = {
		{OK "Content-Length: 5x\r\n", "not a decimal number"},
		{OK "Content-Length: x5\r\n", "not a decimal number"},
		{OK "Content-Length: +5\r\n", "not a decimal number"},
		{OK "Content-Length: -5\r\n", "not a decimal number"},
		{OK "Content-Length: -1\r\n", "not a decimal number"},
		{OK "Content-Length: 0x5\r\n", "not a decimal number"},
		{OK "Content-Length: 5.0\r\n", "not a decimal number"},
		{OK "Content-Length: 5 5\r\n", "not a decimal number"},
		{OK "Content-Length: 5;q=1\r\n", "not a decimal number"},
		{OK "Content-Length: \"5\"\r\n", "not a decimal number"},
		{OK "Content-Length:\r\n", "not a decimal number"},
		{OK "Content-Length:  \t \r\n", "not a decimal number"},
		{OK "Content-Length: ,\r\n", "not a decimal number"},
		{OK "Content-Length: 5,\r\n", "not a decimal number"},
		{OK "Content-Length: ,5\r\n", "not a decimal number"},
		{OK "Content-Length: 5,,5\r\n", "not a decimal number"},
		{OK "Content-Length: 5, 5x\r\n", "not a decimal number"},
		{OK "Content-Length: 9223372036854775808\r\n", "too large"},
		{OK "Content-Length: 18446744073709551617\r\n", "too large"},
		{OK "Content-Length: 99999999999999999999999999999999999999\r\n", "too large"},
		{OK "Content-Length: 5, 50\r\n", "differ"},
		{OK "Content-Length: 50, 5\r\n", "differ"},
		{OK "Content-Length: 50\r\nContent-Length: 5\r\n", "differ"},
		{OK "content-length: 5\r\nETag: \"1\"\r\nCONTENT-LENGTH: 50\r\n", "differ"},
		{OK "Content-Length: 5, 5\r\nContent-Length: 6\r\n", "differ"},
		{OK "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "both"},
		{OK "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", "both"},
		{"HTTP/2 200 \r\nContent-Length: 5\r\nContent-Length: 6\r\n", "differ"},
	};
	char why[FRAMING_WHY];
	struct framing f;

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		assert_int_equal(read_head(&f, table[i].head, why), FRAMING_BAD);
		assert_non_null(strstr(why, table[i].why));
	}
}

static void length__that_is_one_number__is_taken(void **state)
{
	static const struct {
		const char *head;
		uint64_t length;
	} table[] = {
		{OK "Content-Length: 5\r\n\r\n", 5},
		{OK "Content-Length:5\r\n\r\n", 5},
		{OK "Content-Length: \t 5 \t\r\n\r\n", 5},
		{OK "Content-Length: 0\r\n\r\n", 0},
		{OK "Content-Length: 0005\n\n", 5},
		{OK "Content-Length: 9223372036854775807\r\n\r\n", INT64_MAX},
		/* RFC 9112 6.3: a list whose values are all the same is that value */
		{OK "Content-Length: 5, 5\r\n\r\n", 5},
		{OK "Content-Length: 5 ,\t05,5\r\n\r\n", 5},
		{OK "Content-Length: 5\r\nContent-Length: 5\r\n\r\n", 5},
		{"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" OK "Content-Length: 5\r\n\r\n", 5},
		{"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n", 5},
	};
	char why[FRAMING_WHY];
	struct framing f;

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		assert_int_equal(read_head(&f, table[i].head, why), FRAMING_END);
		assert_true(f.over && f.has_length && !f.chunked && f.length == table[i].length);
		assert_true(framing_has_end(&f) && !framing_is_doubtful(&f));
		assert_int_equal(f.status, 200);
	}
}

static void encoding__that_is_not_chunked_alone__is_refused(void **state)
{
	static const char *const bad[] = {
		OK "Transfer-Encoding: gzip\r\n",
		OK "Transfer-Encoding: gzip, chunked\r\n",
		OK "Transfer-Encoding: chunked, gzip\r\n",
		OK "Transfer-Encoding: chunked, chunked\r\n",
		OK "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
		OK "Transfer-Encoding: chunked;x=1\r\n",
		OK "Transfer-Encoding: chunked,\r\n",
		OK "Transfer-Encoding: xchunked\r\n",
		OK "Transfer-Encoding: chunkedx\r\n",
		OK "Transfer-Encoding: \"chunked\"\r\n",
		OK "Transfer-Encoding: identity\r\n",
		OK "Transfer-Encoding:\r\n",
		OK "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
		"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n",
		OK "Transfer-Encoding: ch\vunked\r\n",
	};
	char why[FRAMING_WHY];
	struct framing f;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(read_head(&f, bad[i], why), FRAMING_BAD);
	assert_int_equal(
		read_head(&f, OK "transfer-encoding: \tChunked \r\n\r\n", why), FRAMING_END);
	assert_true(f.chunked && framing_has_end(&f));
	assert_int_equal(read_head(&f, OK "\r\n", why), FRAMING_END);
	assert_false(framing_has_end(&f));
	assert_int_equal(read_head(&f, "HTTP/2 200 \r\n\r\n", why), FRAMING_END);
	assert_true(framing_has_end(&f));
	assert_int_equal(f.version, 20);
}

static void line__that_can_be_read_in_two_ways__is_refused(void **state)
{
	static const struct {
		const char *head, *why;
	} table[] = {
		{OK "ETag : \"1\"\r\n", "blank"},
		{OK "ETag\t: \"1\"\r\n", "blank"},
		{OK "Content-Length : 5\r\n", "blank"},
		{OK ": x\r\n", "no name"},
		{OK "E Tag: x\r\n", "blank"},
		{OK "ETag\xc3\xa4: x\r\n", "another character"},
		{OK "ETag\r\n", "no colon"},
		{OK "ETag: \"1\"\r\n folded\r\n", "goes on"},
		{OK "ETag: \"1\"\r\n\tfolded\r\n", "goes on"},
		{OK " Content-Length: 5\r\n", "goes on"},
		{OK "ETag: \"1\rContent-Length: 5\"\r\n", "control character"},
		{OK "ETag: \"\x01\"\r\n", "control character"},
		{OK "ETag: \"\x7f\"\r\n", "control character"},
		{OK "ETag: \"\x1b[2J\"\r\n", "control character"},
		{OK "Content-Length: 5\r\r\n", "control character"},
		{"HTTP/1.1 200 O\rK\r\n", "control character"},
		{"HTTP/1.1 101 Switching Protocols\r\n", "101"},
		{OK "Content-Length: 50\r\nHTTP/1.1 200 OK\r\n", "no colon"},
		{"ETag: \"1\"\r\n", "status line"},
		{"HTTP/1.1 100 Continue\r\n\r\nETag: \"1\"\r\n", "status line"},
	};
	char why[FRAMING_WHY];
	struct framing f;

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		assert_int_equal(read_head(&f, table[i].head, why), FRAMING_BAD);
		assert_non_null(strstr(why, table[i].why));
	}
}

static void nul__in_a_line__is_refused(void **state)
{
	static const char line[] = "ETag: \"1\0\"\r\n";
	struct framing_field field;
	char why[FRAMING_WHY];
	struct framing f;

	(void)state;
	assert_int_equal(read_head(&f, OK, why), FRAMING_STATUS);
	assert_int_equal(framing_read(&f, line, sizeof(line) - 1, &field, why), FRAMING_BAD);
	assert_non_null(strstr(why, "control character"));
}

static void field__is_split_at_the_first_colon(void **state)
{
	static const struct {
		const char *line, *name, *value;
	} table[] = {
		{"ETag: \"a:b\"\r\n", "etag", "\"a:b\""},
		{"Last-Modified:\t yesterday \t\r\n", "last-modified", "yesterday"},
		{"X!#$%&'*+-.^_`|~9:x\n", "x!#$%&'*+-.^_`|~9", "x"},
		{"Config-Type:\r\n", "config-type", ""},
		{"X: caf\xc3\xa9\tau lait\r\n", "x", "caf\xc3\xa9\tau lait"},
	};
	struct framing_field field;
	char why[FRAMING_WHY];
	struct framing f;

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		read_head(&f, OK, why);
		assert_int_equal(
			framing_read(&f, table[i].line, strlen(table[i].line), &field, why),
			FRAMING_HEADER);
		assert_true(framing_is_named(&field, table[i].name));
		assert_false(framing_is_named(&field, "et"));
		assert_int_equal(field.value_len, strlen(table[i].value));
		assert_memory_equal(field.value, table[i].value, field.value_len);
	}
}

static void trailer__changes_nothing(void **state)
{
	static const char *const trailers[] = {"Content-Length: 7\r\n", "ETag: \"2\"\r\n",
		"HTTP/1.1 200 OK\r\n", "garbage\r\n", "\r\n"};
	struct framing_field field;
	char why[FRAMING_WHY];
	struct framing f;

	(void)state;
	assert_int_equal(read_head(&f, OK "Transfer-Encoding: chunked\r\n\r\n", why), FRAMING_END);
	for (size_t i = 0; i < sizeof(trailers) / sizeof(trailers[0]); i++) {
		assert_int_equal(framing_read(&f, trailers[i], strlen(trailers[i]), &field, why),
			FRAMING_TRAILER);
		assert_true(f.over && f.chunked && !f.has_length && f.status == 200);
	}
}

static void status__without_a_body__that_speaks_of_one_is_doubtful(void **state)
{
	static const struct {
		const char *head;
		bool doubtful;
	} table[] = {
		{"HTTP/1.1 304 Not Modified\r\n\r\n", false},
		{"HTTP/1.1 304 Not Modified\r\nContent-Length: 61\r\n\r\n", true},
		{"HTTP/1.1 304 Not Modified\r\nContent-Length: 0\r\n\r\n", true},
		{"HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n", true},
		{"HTTP/1.1 204 No Content\r\n\r\n", false},
		{"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", true},
		{"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", false},
	};
	char why[FRAMING_WHY];
	struct framing f;

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		assert_int_equal(read_head(&f, table[i].head, why), FRAMING_END);
		assert_int_equal(framing_is_doubtful(&f), table[i].doubtful);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(length__that_is_malformed_or_contradicted__is_refused),
		cmocka_unit_test(length__that_is_one_number__is_taken),
		cmocka_unit_test(encoding__that_is_not_chunked_alone__is_refused),
		cmocka_unit_test(line__that_can_be_read_in_two_ways__is_refused),
		cmocka_unit_test(nul__in_a_line__is_refused),
		cmocka_unit_test(field__is_split_at_the_first_colon),
		cmocka_unit_test(trailer__changes_nothing),
		cmocka_unit_test(status__without_a_body__that_speaks_of_one_is_doubtful),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
