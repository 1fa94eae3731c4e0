/* What a subscriber says, byte by byte and at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "push/zmtp.h"

#define TEXT(t) t, sizeof(t) - 1
#define READY "\4\x19\5READY\x0bSocket-Type\0\0\0\3SUB"

static char said[256];

static bool note(void *arg, bool cancels, const unsigned char *topic, size_t len)
{
	size_t at = strlen(said);

	snprintf(said + at, sizeof(said) - at, "%c%.*s ", cancels ? '-' : '+', (int)len,
		(const char *)topic);
	return !arg;
}

static const struct zmtp_calls calls = {note, NULL};

static enum zmtp_fault feed(const char *mechanism, const char *data, size_t len, size_t piece)
{
	static struct zmtp z;
	char greeting[64] = "\xff\0\0\0\0\0\0\0\0\x7f\3\1";
	enum zmtp_fault fault;

	memset(&z, 0, sizeof(z));
	*said = '\0';
	memcpy(greeting + 12, mechanism, strlen(mechanism));
	fault = zmtp_feed(&z, greeting, sizeof(greeting), &calls);
	for (size_t i = 0; i < len && fault == ZMTP_VALID; i += piece)
		fault = zmtp_feed(&z, data + i, len - i < piece ? len - i : piece, &calls);
	return fault;
}

static void both_forms_of_a_subscription__come_out(void **state)
{
	(void)state;
	for (size_t piece = 1; piece < 100; piece++) {
		assert_int_equal(
			feed("NULL",
				TEXT(READY "\0\4\1web\0\4\0web\0\1\1\4\x0d\x09SUBSCRIBEapi\4\x0a\6"
					   "CANCELapi\4\7\4PING\0\0\2\0\0\0\0\0\0\0\2\1x"),
				piece),
			ZMTP_VALID);
		assert_string_equal(said, "+web -web + +api -api +x ");
	}
}

static void whatever_else__is_a_fault(void **state)
{
	static const struct {
		const char *data;
		size_t len;
		enum zmtp_fault fault;
	} table[] = {
		{TEXT(READY "\1\4\1web"), ZMTP_PARTS},
		{TEXT(READY "\0\0"), ZMTP_FOREIGN},
		{TEXT(READY "\0\1\2"), ZMTP_FOREIGN},
		{TEXT(READY "\x08\1\1"), ZMTP_FRAME},
		{TEXT(READY "\2\0\0\0\0\0\0\1\x41"), ZMTP_FRAME},
		{TEXT(READY "\6\0\0\0\0\0\0\4\1"), ZMTP_FRAME},
		{TEXT(READY "\2\xff\xff\xff\xff\xff\xff\xff\xff"), ZMTP_FRAME},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		for (size_t piece = 1; piece < 64; piece += 31)
			assert_int_equal(
				feed("NULL", table[i].data, table[i].len, piece), table[i].fault);
}

static void other_versions__are_refused_as_early_as_can_be(void **state)
{
	static const char *const table[] = {
		"\1", "\xff\0\0\0\0\0\0\0\1\1", "\xff\0\0\0\0\0\0\0\1\x7f\1"};
	static const size_t lens[] = {1, 11, 11};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct zmtp z = {0};

		assert_int_equal(zmtp_feed(&z, table[i], i == 1 ? 10 : lens[i], &calls),
			i == 1 ? ZMTP_VALID : ZMTP_OLD);
	}
}

static void within_curve__frames_are_bounded_and_the_handshake_is_waited_for(void **state)
{
	char initiate[400] = "\6\0\0\0\0\0\0\1\4\x08INITIATE";
	const size_t size = 9 + 260;

	(void)state;
	assert_int_equal(feed("CURVE", initiate, size, size), ZMTP_VALID);
	assert_int_equal(feed("CURVE", initiate, size + 1, size + 1), ZMTP_EAGER);
	assert_int_equal(feed("CURVE", TEXT("\2\0\0\0\0\0\0\4\1"), 9), ZMTP_FRAME);
	assert_int_equal(feed("CURVE", TEXT("\0\4\2web"), 9), ZMTP_VALID); /* libzmq sees to it */
	assert_string_equal(said, "");
}

static void what_curve_decrypts__is_held_to_the_same(void **state)
{
	(void)state;
	*said = '\0';
	assert_int_equal(zmtp_unsealed(TEXT("\0\1web"), &calls), ZMTP_VALID);
	assert_int_equal(zmtp_unsealed(TEXT("\2\6"
					    "CANCELweb"),
				 &calls),
		ZMTP_VALID);
	assert_string_equal(said, "+web -web ");
	assert_int_equal(zmtp_unsealed(TEXT("\1\1web"), &calls), ZMTP_PARTS);
	assert_int_equal(zmtp_unsealed(TEXT("\0"), &calls), ZMTP_FOREIGN);
	assert_int_equal(zmtp_unsealed("", 0, &calls), ZMTP_FRAME);
	assert_int_equal(
		zmtp_unsealed(TEXT("\0\1web"), &(struct zmtp_calls){note, said}), ZMTP_REJECTED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_forms_of_a_subscription__come_out),
		cmocka_unit_test(whatever_else__is_a_fault),
		cmocka_unit_test(other_versions__are_refused_as_early_as_can_be),
		cmocka_unit_test(within_curve__frames_are_bounded_and_the_handshake_is_waited_for),
		cmocka_unit_test(what_curve_decrypts__is_held_to_the_same),
	};

	return cmocka_run_group_tests_name("zmtp", tests, NULL, NULL);
}
