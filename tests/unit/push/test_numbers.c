/* The numbers of a publisher's topics, and the epoch that begins when there are too many. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "push/numbers.h"

static uint64_t next_random(void)
{
	static uint64_t n;

	return ++n;
}

static const struct sys sys = {.random = next_random};
static struct push_numbers numbers;

static int set_up(void **state)
{
	(void)state;
	push_numbers_init(&numbers, &sys);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	push_numbers_fini(&numbers);
	return 0;
}

static uint64_t number_of(const char *topic, struct push_message *m)
{
	assert_int_equal(push_numbers_set_next(&numbers, topic, m), 0);
	assert_true(m->has_seq);
	return m->seq;
}

static void numbers__of_each_topic__begin_at_one_and_grow(void **state)
{
	struct push_message m = {0}, beat = {0};

	(void)state;
	assert_int_equal(number_of("web", &m), 1);
	assert_int_equal(number_of("db", &m), 1);
	assert_int_equal(number_of("web", &m), 2);
	assert_int_equal(number_of("web2", &m), 1);
	assert_int_equal(number_of("db", &m), 2);
	push_numbers_set_epoch(&numbers, &beat);
	assert_string_equal(beat.epoch, m.epoch);
	assert_int_equal(strlen(m.epoch), 16);
	assert_false(beat.has_seq);
}

static void topics__that_are_too_many__begin_another_epoch(void **state)
{
	struct push_message first = {0}, m = {0};
	char topic[16];

	(void)state;
	assert_int_equal(number_of("topic-000000", &first), 1);
	for (unsigned i = 1; i < PUSH_MAX_NUMBERED; i++) {
		snprintf(topic, sizeof(topic), "topic-%06u", i);
		assert_int_equal(number_of(topic, &m), 1);
	}
	assert_int_equal(number_of("topic-000000", &m), 2);
	assert_string_equal(m.epoch, first.epoch);
	assert_int_equal(number_of("one more", &m), 1);
	assert_string_not_equal(m.epoch, first.epoch);
	assert_int_equal(number_of("topic-000000", &m), 1);
}

static void publishers__have_epochs_of_their_own(void **state)
{
	struct push_numbers other;
	struct push_message a = {0}, b = {0};

	(void)state;
	push_numbers_init(&other, &sys);
	push_numbers_set_epoch(&numbers, &a);
	push_numbers_set_epoch(&other, &b);
	assert_string_not_equal(a.epoch, b.epoch);
	push_numbers_fini(&other);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(numbers__of_each_topic__begin_at_one_and_grow),
		CASE(topics__that_are_too_many__begin_another_epoch),
		CASE(publishers__have_epochs_of_their_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
