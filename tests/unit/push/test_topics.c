/*
 * The table of topics on a virtual clock: when a message makes a config pull, what is news at which
 * endpoint, and what a new table takes from the one before.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/etag.h"
#include "push/topics.h"
#include "tests/unit/fixture/fault_memory.h"

#define T UINT64_C(1000000)
#define INTERVAL_MS 3600000

static uint64_t clock_ms, drawn; /* drawn: what randomness gives */

static uint64_t now_ms(void)
{
	return clock_ms;
}

static uint64_t next_random(void)
{
	return drawn;
}

static uint64_t now_us(void)
{
	return clock_ms * 1000;
}

static const struct sys sys = {.now_ms = now_ms, .monotonic_us = now_us, .random = next_random};

static struct trigger_queue queue;
static struct trigger triggers[3];
static struct push_topic topics[3]; /* "web", "db", "web" */
static struct push_topics *table;

static void wake(void *arg)
{
	(void)arg;
}

static struct push_topics *make_table(size_t endpoints)
{
	struct push_topic *const list[] = {&topics[0], &topics[1], &topics[2]};
	struct push_topics *t = push_topics_new(&sys, list, 3, endpoints);

	assert_non_null(t);
	return t;
}

static int set_up(void **state)
{
	static const char *const names[] = {"web", "db", "web"};

	(void)state;
	clock_ms = T;
	drawn = 0;
	trigger_queue_init(&queue, wake, NULL);
	for (size_t i = 0; i < 3; i++) {
		trigger_init(&triggers[i], &queue);
		trigger_fire(&triggers[i], clock_ms, INTERVAL_MS);
		topics[i] = (struct push_topic){.topic = names[i], .trigger = &triggers[i]};
	}
	table = make_table(2);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	push_topics_free(table);
	while (trigger_queue_take(&queue))
		;
	return 0;
}

/* When the i-th config pulls; UINT64_MAX: not because of a hint. */
static uint64_t due(size_t i)
{
	uint64_t due_ms = 0;

	while (trigger_queue_take(&queue))
		;
	assert_true(trigger_due(&triggers[i], &due_ms));
	return due_ms < clock_ms + INTERVAL_MS / 2 ? due_ms : UINT64_MAX;
}

static void pull(size_t i)
{
	while (trigger_queue_take(&queue))
		;
	trigger_fire(&triggers[i], clock_ms, INTERVAL_MS);
}

static enum push_seen update(const char *name, uint64_t spread_ms)
{
	const struct push_message m = {.has_spread = true, .spread_ms = spread_ms};

	return push_topics_update(table, 0, name, &m);
}

static enum push_seen number(size_t endpoint, const char *name, uint64_t seq)
{
	const struct push_message m = {.has_seq = true, .seq = seq};

	return push_topics_update(table, endpoint, name, &m);
}

/* ---- hints ---- */

static void message__without_a_spread__pulls_now(void **state)
{
	(void)state;
	drawn = 77;
	assert_int_equal(update("db", 0), PUSH_NEXT);
	assert_int_equal(due(1), T);
	assert_true(due(0) == UINT64_MAX && due(2) == UINT64_MAX);
	pull(1);
	clock_ms++;
	update("db", 0);
	assert_int_equal(due(1), T + 1);
}

static void message__is_timed_from_the_first_that_no_run_has_taken(void **state)
{
	(void)state;
	update("db", 0);
	clock_ms++;
	update("db", 0);
	assert_int_equal(topics[1].heard_us, T * 1000);
	assert_int_equal(topics[0].heard_us, 0);
	topics[1].heard_us = 0; /* a run begins */
	update("db", 0);
	assert_int_equal(topics[1].heard_us, (T + 1) * 1000);
}

static void messages__within_a_window__cost_one_pull_each_window(void **state)
{
	(void)state;
	drawn = 400;
	update("db", 1000);
	assert_int_equal(due(1), T + 400);
	clock_ms = T + 399;
	drawn = 100;
	update("db", 1000); /* the one to come is for this as well */
	assert_int_equal(due(1), T + 400);
	clock_ms = T + 400;
	pull(1);
	drawn = 250;
	update("db", 1000);
	assert_int_equal(due(1), T + 1250);
	clock_ms = T + 1250;
	pull(1);
	drawn = 1000;
	update("db", 1000);
	assert_int_equal(due(1), T + 3000);
	clock_ms = T + 3000; /* where the window ends */
	pull(1);
	drawn = 5;
	update("db", 1000);
	assert_int_equal(due(1), T + 3005);
}

static void window__of_a_longer_spread__is_open_for_one_of_half_that(void **state)
{
	static const struct {
		uint64_t spread_ms, due_ms;
	} rows[] = {{500, T + 1000}, {499, T}, {0, T}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		push_topics_free(table);
		table = make_table(1);
		clock_ms = T;
		drawn = 0;
		update("db", 1000);
		assert_int_equal(due(1), T);
		pull(1);
		update("db", rows[i].spread_ms);
		assert_int_equal(due(1), rows[i].due_ms);
		pull(1);
	}
}

static void pull__that_is_due_within_the_window__is_the_one(void **state)
{
	static const struct {
		uint64_t due_ms, next_ms;
	} rows[] = {{300, 300}, {1000, 1000}, {1001, 900}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		push_topics_free(table);
		table = make_table(1);
		clock_ms = T;
		drawn = 900;
		while (trigger_queue_take(&queue))
			;
		trigger_fire(&triggers[1], clock_ms, rows[i].due_ms);
		update("db", 1000);
		assert_int_equal(due(1), T + rows[i].next_ms);
		clock_ms = T + rows[i].next_ms;
		pull(1);
		drawn = 7;
		update("db", 1000); /* for the next window */
		assert_int_equal(due(1), T + 1007);
	}
}

static void spread__of_the_config__is_the_least(void **state)
{
	(void)state;
	topics[1].spread_ms = 500;
	drawn = 500;
	update("db", 499);
	assert_int_equal(due(1), T + 500);
	topics[0].spread_ms = 500;
	drawn = 501;
	update("web", 501);
	assert_int_equal(due(0), T + 501);
}

static void hint_at_all__is_for_those_that_have_pulled(void **state)
{
	(void)state;
	topics[0].pulled = topics[1].pulled = true;
	topics[1].spread_ms = 900;
	drawn = 300;
	push_topics_hint_all(table, 300);
	assert_int_equal(due(0), T + 300);
	assert_int_equal(due(1), T + 300);
	assert_true(due(2) == UINT64_MAX);
	pull(1);
	drawn = 901;
	clock_ms = T + 900;
	push_topics_hint_all(table, 0);
	assert_int_equal(due(1), T + 900); /* 901 of 0 to 900 begins again */
}

/* ---- messages ---- */

static void message__of_a_topic__is_for_all_its_configs(void **state)
{
	const struct push_message m = {.version = "\"v1\""};

	(void)state;
	assert_int_equal(push_topics_update(table, 0, "web", &m), PUSH_NEXT);
	assert_true(due(0) == T && due(2) == T && due(1) == UINT64_MAX);
	assert_int_equal(topics[0].messages, 1);
	assert_int_equal(topics[2].messages, 1);
	assert_int_equal(topics[1].messages, 0);
	assert_true(topics[0].wanted == etag_hash("v1") && topics[2].wanted == etag_hash("v1"));
	assert_int_equal(push_topics_update(table, 0, "we", &m), PUSH_UNKNOWN);
	assert_int_equal(push_topics_update(table, 0, "web2", &m), PUSH_UNKNOWN);
	assert_int_equal(topics[0].messages, 1);
}

static void numbers__tell_what_is_repeated_and_what_was_lost(void **state)
{
	static const struct {
		uint64_t seq;
		enum push_seen seen;
	} rows[] = {{5, PUSH_NEXT}, {5, PUSH_REPEATED}, {6, PUSH_NEXT}, {8, PUSH_GAP},
		{9, PUSH_NEXT}, {3, PUSH_GAP}, {4, PUSH_NEXT}, {0, PUSH_GAP}, {0, PUSH_REPEATED}};
	unsigned news = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		pull(0);
		assert_int_equal(number(0, "web", rows[i].seq), rows[i].seen);
		news += rows[i].seen != PUSH_REPEATED;
		assert_int_equal(topics[0].messages, news);
		assert_int_equal(due(0), rows[i].seen == PUSH_REPEATED ? UINT64_MAX : T);
	}
	assert_int_equal(update("web", 0), PUSH_NEXT); /* without a number */
	assert_int_equal(number(0, "web", 0), PUSH_REPEATED);
}

static void numbers__are_of_one_topic_at_one_endpoint(void **state)
{
	(void)state;
	for (size_t endpoint = 0; endpoint < 2; endpoint++) {
		assert_int_equal(number(endpoint, "web", 7 + endpoint), PUSH_NEXT);
		assert_int_equal(number(endpoint, "db", 17 + endpoint), PUSH_NEXT);
	}
	push_topics_forget(table, 0);
	assert_int_equal(number(0, "web", 1), PUSH_NEXT);
	assert_int_equal(number(0, "db", 1), PUSH_NEXT);
	assert_int_equal(number(1, "web", 8), PUSH_REPEATED);
	assert_int_equal(number(1, "db", 18), PUSH_REPEATED);
	push_topics_forget(table, 1);
	assert_int_equal(number(1, "web", 1), PUSH_NEXT);
	assert_int_equal(number(1, "db", 1), PUSH_NEXT);
	assert_int_equal(number(0, "db", 1), PUSH_REPEATED);
}

static void names__are_sorted_and_end(void **state)
{
	(void)state;
	assert_string_equal(push_topics_name(table, 0), "db");
	assert_string_equal(push_topics_name(table, 1), "web");
	assert_string_equal(push_topics_name(table, 2), "web");
	assert_null(push_topics_name(table, 3));
	assert_true(push_topics_has(table, "db") && push_topics_has(table, "web"));
	assert_true(!push_topics_has(table, "dc") && !push_topics_has(table, ""));
}

/* ---- another table ---- */

static void table__that_follows__has_windows_and_numbers_of_the_same_names(void **state)
{
	static struct push_topic other;
	struct push_topic *const list[] = {&other, &topics[1]};
	struct push_topics *before = table;

	(void)state;
	other = (struct push_topic){.topic = "app", .trigger = &triggers[0]};
	drawn = 400;
	update("db", 1000);
	number(0, "db", 5);
	number(1, "db", 9);
	number(1, "web", 3);
	table = push_topics_new(&sys, list, 2, 2);
	assert_non_null(table);
	push_topics_follow(table, before);
	push_topics_free(before);
	assert_int_equal(number(0, "db", 5), PUSH_REPEATED);
	assert_int_equal(number(1, "db", 9), PUSH_REPEATED);
	assert_int_equal(number(1, "app", 3), PUSH_NEXT);
	assert_int_equal(number(0, "app", 3), PUSH_NEXT);
}

static void window__of_the_table_before__goes_on(void **state)
{
	struct push_topics *before = table;

	(void)state;
	drawn = 400;
	update("db", 1000);
	table = make_table(2);
	push_topics_follow(table, before);
	push_topics_free(before);
	clock_ms = T + 399;
	drawn = 1;
	update("db", 1000);
	assert_int_equal(due(1), T + 400);
	clock_ms = T + 400;
	pull(1);
	update("db", 1000);
	assert_int_equal(due(1), T + 1001);
}

static void table__of_nothing__is_one(void **state)
{
	struct push_topics *none = push_topics_new(&sys, NULL, 0, 0);

	(void)state;
	assert_non_null(none);
	assert_null(push_topics_name(none, 0));
	assert_false(push_topics_has(none, "web"));
	push_topics_hint_all(none, 0);
	push_topics_free(none);
	push_topics_free(NULL);
}

static void table__without_memory__is_none(void **state)
{
	struct push_topic *const list[] = {&topics[0]};

	(void)state;
	for (unsigned nth = 1; nth <= 3; nth++) {
		struct push_topics *t;

		fault_memory.seen = 0;
		fault_memory.nth = nth;
		t = push_topics_new(&sys, list, 1, 1);
		fault_memory.nth = 0;
		assert_null(t);
	}
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(message__without_a_spread__pulls_now),
		CASE(message__is_timed_from_the_first_that_no_run_has_taken),
		CASE(messages__within_a_window__cost_one_pull_each_window),
		CASE(window__of_a_longer_spread__is_open_for_one_of_half_that),
		CASE(pull__that_is_due_within_the_window__is_the_one),
		CASE(spread__of_the_config__is_the_least),
		CASE(hint_at_all__is_for_those_that_have_pulled),
		CASE(message__of_a_topic__is_for_all_its_configs),
		CASE(numbers__tell_what_is_repeated_and_what_was_lost),
		CASE(numbers__are_of_one_topic_at_one_endpoint),
		CASE(names__are_sorted_and_end),
		CASE(table__that_follows__has_windows_and_numbers_of_the_same_names),
		CASE(window__of_the_table_before__goes_on),
		CASE(table__of_nothing__is_one),
		CASE(table__without_memory__is_none),
	};

	return fault_memory_run(tests, 1);
}
