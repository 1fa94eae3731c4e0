/*
 * The dispatcher, rule by rule and against a model: a plain array in order, searched from its
 * start.
 *
 * Work is written as letters: a task is a letter and its id is the small one, so that 'A' is newer
 * work of 'a'. What was lost reads "=a<b-c": a overridden, b overflowed, c expired.
 */
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "lib/dispatcher.h"
#include "tests/unit/fixture/model_random.h"

#define STEPS 150000 /* of each configuration */
#define MOST 96      /* pending or handed out, in these tests */
#define NEVER DISPATCHER_NEVER
#define ROOM SIZE_MAX
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* What assert() calls: lets expect_assert_failure() see it. */
void __assert_fail(const char *expression, const char *file, unsigned line, const char *function)
{
	(void)function;
	mock_assert(0, expression, file, (int)line);
	abort();
}

/* The sanitizers end the program at an allocation that fails unless told not to. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "allocator_may_return_null=1";
}

/* ---- rule by rule ---- */

static struct dispatcher dispatcher;
static struct dispatcher_item taken[MOST]; /* by the last take() */
static size_t taken_count;
static char tasks[256], lost[64];

static void note_lost(void *arg, void *task, enum dispatcher_loss why)
{
	size_t n = strlen(lost);

	assert_ptr_equal(arg, tasks);
	assert_in_range(n, 0, sizeof(lost) - 3);
	lost[n] = "=<-"[why];
	lost[n + 1] = (char)((char *)task - tasks);
	lost[n + 2] = '\0';
}

static void prepare(uint32_t max_pending, uint32_t max_batch, uint64_t max_delay_ms)
{
	struct dispatcher_limits limits = {max_pending, max_batch, max_delay_ms};

	dispatcher_fini(&dispatcher); /* of the case before */
	assert_int_equal(dispatcher_init(&dispatcher, &limits, note_lost, tasks), 0);
	lost[0] = '\0';
	taken_count = 0;
}

static void submit_until(uint64_t now_ms, const char *letters, uint64_t expires_ms)
{
	for (; *letters; letters++)
		dispatcher_submit(&dispatcher, now_ms, (uint64_t)tolower(*letters),
			&tasks[(int)*letters], expires_ms);
}

static void submit(uint64_t now_ms, const char *letters)
{
	submit_until(now_ms, letters, NEVER);
}

static void assert_taken(uint64_t now_ms, size_t room, const char *letters)
{
	char got[MOST + 1] = "";

	taken_count = dispatcher_take(&dispatcher, now_ms, room, taken);
	assert_in_range(taken_count, 0, MOST);
	for (size_t i = 0; i < taken_count; i++) {
		got[i] = (char)((char *)taken[i].task - tasks);
		assert_int_equal(taken[i].id, tolower(got[i]));
	}
	assert_string_equal(got, letters);
}

static void retry(uint64_t now_ms)
{
	dispatcher_retry(&dispatcher, now_ms, taken, taken_count);
	taken_count = 0;
}

/* What was lost since the last time. */
static void assert_lost(const char *expected)
{
	assert_string_equal(lost, expected);
	lost[0] = '\0';
}

/* There is work from then on, and not before. */
static void assert_next(uint64_t expected_ms)
{
	struct dispatcher_item item;
	uint64_t due_ms = 1;

	assert_true(dispatcher_next(&dispatcher, &due_ms));
	assert_int_equal(due_ms, expected_ms);
	if (due_ms > 0)
		assert_int_equal(dispatcher_take(&dispatcher, due_ms - 1, 1, &item), 0);
}

static void assert_empty(void)
{
	uint64_t due_ms = 7;

	assert_int_equal(dispatcher_pending(&dispatcher), 0);
	assert_false(dispatcher_next(&dispatcher, &due_ms));
	assert_int_equal(due_ms, 7);
	assert_taken(UINT64_MAX - 1, ROOM, "");
}

static void init__is_empty(void **state)
{
	static const struct dispatcher_counters zero;

	(void)state;
	prepare(3, 2, 10);
	assert_empty();
	assert_false(dispatcher_cancel(&dispatcher, 0));
	dispatcher_retry(&dispatcher, 0, NULL, 0);
	assert_memory_equal(&dispatcher.counters, &zero, sizeof(zero));
}

static void init__without_memory__fails_and_can_be_finished(void **state)
{
	struct dispatcher_limits limits = {UINT32_C(1) << 24, 1, 0};
	struct dispatcher d;
	struct rlimit before, none;
	int r;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
	none = before;
	none.rlim_cur = 4096;
	assert_int_equal(setrlimit(RLIMIT_AS, &none), 0);
	r = dispatcher_init(&d, &limits, NULL, NULL);
	assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
	assert_int_equal(r, -ENOMEM);
	assert_int_equal(dispatcher_pending(&d), 0);
	dispatcher_fini(&d);
}

static void assert__own_bugs__end_the_program(void **state)
{
	static const struct dispatcher_limits wrong[] = {
		{0, 1, 0}, {(UINT32_C(1) << 24) + 1, 1, 0}, {UINT32_MAX, 1, 0}, {1, 0, 0}};
	struct dispatcher d;

	(void)state;
	expect_assert_failure(dispatcher_init(&d, &wrong[0], NULL, NULL));
	expect_assert_failure(dispatcher_init(&d, &wrong[1], NULL, NULL));
	expect_assert_failure(dispatcher_init(&d, &wrong[2], NULL, NULL));
	expect_assert_failure(dispatcher_init(&d, &wrong[3], NULL, NULL));
}

static void fini__with_work_waiting__forgets_it(void **state)
{
	(void)state;
	prepare(3, 3, 0);
	submit(0, "ab");
	dispatcher_fini(&dispatcher);
	assert_lost("");
	assert_empty();
	dispatcher_fini(&dispatcher);
}

static void grow__has_room_for_more_and_keeps_what_waits(void **state)
{
	(void)state;
	prepare(2, 10, 0);
	submit(5, "ab");
	submit(6, "c");
	assert_lost("<a");
	dispatcher_hold(&dispatcher, 9);
	assert_int_equal(dispatcher_grow(&dispatcher, 4), 0);
	submit_until(7, "Bd", 7000);
	submit(8, "e");
	assert_lost("=b");
	assert_next(9);
	submit(8, "f");
	assert_lost("<B");
	assert_int_equal(dispatcher_grow(&dispatcher, 1), 0); /* nobody is pushed out */
	assert_taken(9, ROOM, "cdef");
	assert_int_equal(taken[0].since_ms, 6);
	assert_int_equal(taken[1].expires_ms, 7000);
	assert_int_equal(dispatcher.counters.accepted, 7);
	assert_int_equal(dispatcher.counters.overflowed, 2);
}

static void grow__without_memory__is_as_it_was(void **state)
{
	struct rlimit before, none;
	int r;

	(void)state;
	prepare(2, 10, 0);
	submit(5, "ab");
	assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
	none = before;
	none.rlim_cur = 4096;
	assert_int_equal(setrlimit(RLIMIT_AS, &none), 0);
	r = dispatcher_grow(&dispatcher, UINT32_C(1) << 24);
	assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
	assert_int_equal(r, -ENOMEM);
	submit(6, "c");
	assert_lost("<a");
	assert_taken(6, ROOM, "bc");
}

static void take__is_in_order_of_submission(void **state)
{
	(void)state;
	prepare(10, 10, 0);
	submit(5, "cab");
	assert_int_equal(dispatcher_pending(&dispatcher), 3);
	assert_taken(5, ROOM, "cab");
	assert_int_equal(taken[0].since_ms, 5);
	assert_int_equal(taken[0].expires_ms, NEVER);
	assert_empty();
	assert_lost("");
}

static void submit__of_an_id_that_waits__keeps_its_place_and_its_age(void **state)
{
	(void)state;
	prepare(10, 10, 500);
	submit(100, "ab");
	submit(300, "A");
	submit_until(599, "B", 7000);
	assert_lost("=a=b");
	assert_next(600);
	submit(599, "c");
	assert_taken(600, ROOM, "ABc");
	assert_int_equal(taken[0].since_ms, 100);
	assert_int_equal(taken[1].since_ms, 100);
	assert_int_equal(taken[1].expires_ms, 7000);
	assert_int_equal(taken[2].since_ms, 599);
	assert_int_equal(dispatcher.counters.overridden, 2);
	assert_int_equal(dispatcher.counters.accepted, 5);
}

static void submit__of_an_id_that_waits__replaces_the_expiry(void **state)
{
	(void)state;
	prepare(10, 10, 0);
	submit_until(0, "ab", 10);
	submit_until(5, "A", 20);
	submit_until(5, "B", 8); /* sooner, too */
	assert_taken(10, ROOM, "A");
	assert_lost("=a=b-B");
}

static void submit__of_an_id_that_waits__needs_no_room(void **state)
{
	(void)state;
	prepare(3, 10, 0);
	submit(0, "abc");
	submit(1, "BACC");
	assert_lost("=b=a=c=C");
	assert_int_equal(dispatcher.counters.overflowed, 0);
	assert_taken(1, ROOM, "ABC");
}

static void submit__when_full__drops_the_oldest(void **state)
{
	(void)state;
	prepare(3, 10, 0);
	submit(0, "abcde");
	assert_lost("<a<b");
	assert_int_equal(dispatcher_pending(&dispatcher), 3);
	submit(1, "a"); /* is new again */
	assert_lost("<c");
	assert_int_equal(dispatcher.counters.overflowed, 3);
	assert_int_equal(dispatcher.counters.accepted, 6);
	assert_taken(1, ROOM, "dea");
}

static void submit__when_full__drops_retried_work_first(void **state)
{
	(void)state;
	prepare(4, 2, 0);
	submit(0, "ab");
	assert_taken(0, ROOM, "ab");
	submit(1, "cd");
	retry(2);
	submit(3, "efg");
	assert_lost("<a<b<c");
	assert_taken(3, ROOM, "de");
	assert_taken(3, ROOM, "fg");
}

static void retry__goes_to_the_front_in_order(void **state)
{
	(void)state;
	prepare(10, 3, 500);
	submit_until(100, "abc", 9000);
	assert_taken(100, ROOM, "abc");
	submit(200, "d");
	retry(250);
	assert_lost("");
	assert_int_equal(dispatcher.counters.retried, 3);
	assert_int_equal(dispatcher.counters.accepted, 4);
	assert_taken(300, ROOM, "abc");
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(taken[i].since_ms, 100);
		assert_int_equal(taken[i].expires_ms, 9000);
	}
	assert_next(700);
}

static void retry__batch_is_due_by_the_age_it_had(void **state)
{
	(void)state;
	prepare(10, 3, 500);
	submit(100, "a");
	assert_taken(600, ROOM, "a");
	submit(650, "b");
	assert_next(1150);
	retry(700);
	assert_next(600);
	assert_taken(700, ROOM, "ab");
}

static void retry__loses_to_newer_work(void **state)
{
	(void)state;
	prepare(10, 10, 0);
	submit(0, "abc");
	assert_taken(0, ROOM, "abc");
	submit(1, "B");
	retry(2);
	assert_lost("=b");
	assert_int_equal(dispatcher.counters.overridden, 1);
	assert_int_equal(dispatcher.counters.retried, 2);
	assert_taken(2, ROOM, "acB");
	assert_int_equal(taken[2].since_ms, 1);
}

static void retry__loses_to_expiry(void **state)
{
	(void)state;
	prepare(10, 10, 0);
	submit_until(0, "a", 10);
	submit_until(0, "b", 11);
	submit_until(0, "c", 9);
	assert_taken(0, ROOM, "abc");
	submit(9, "C"); /* expiry counts before newer work */
	retry(10);
	assert_lost("-c-a");
	assert_int_equal(dispatcher.counters.expired, 2);
	assert_taken(10, ROOM, "bC");
}

static void retry__when_full__loses_the_first_ones_first(void **state)
{
	(void)state;
	prepare(4, 4, 0);
	submit(0, "abcd");
	assert_taken(0, ROOM, "abcd");
	submit(1, "ef");
	retry(2);
	assert_lost("<b<a");
	assert_int_equal(dispatcher.counters.overflowed, 2);
	assert_int_equal(dispatcher.counters.retried, 2);
	assert_taken(2, ROOM, "cdef");
	submit(3, "efgh");
	retry(4);
	assert_lost("=f=e<d<c"); /* newer work counts before the lack of room */
}

static void retry__into_an_empty_set__is_all_there_is(void **state)
{
	(void)state;
	prepare(3, 3, 0);
	submit(0, "abc");
	assert_taken(0, ROOM, "abc");
	retry(1);
	submit(1, "B");
	assert_lost("=b");
	assert_taken(1, ROOM, "aBc");
	assert_int_equal(taken[1].since_ms, 0);
	assert_empty();
}

static void take__of_expired_work__loses_it(void **state)
{
	(void)state;
	prepare(10, 10, 0);
	submit_until(0, "a", 100);
	submit_until(0, "b", 99);
	submit_until(0, "c", 101);
	submit_until(100, "d", 50); /* from its beginning */
	assert_taken(100, ROOM, "c");
	assert_lost("-a-b-d");
	assert_int_equal(dispatcher.counters.expired, 3);
	assert_int_equal(dispatcher.counters.taken, 1);
	assert_empty();
}

static void take__where_all_has_expired__is_no_batch(void **state)
{
	(void)state;
	prepare(10, 10, 500);
	submit_until(0, "ab", 100);
	assert_taken(499, ROOM, "");
	assert_lost("");
	assert_taken(500, ROOM, "");
	assert_lost("-a-b");
	assert_int_equal(dispatcher.counters.batches, 0);
	assert_empty();
}

static void take__of_expired_work__fills_the_batch_with_what_is_behind(void **state)
{
	(void)state;
	prepare(10, 2, 0);
	submit_until(0, "abc", 10);
	submit(0, "def");
	assert_taken(10, ROOM, "de");
	assert_lost("-a-b-c");
	assert_taken(10, ROOM, "f");
}

static void take__when_the_batch_is_full__goes_at_once(void **state)
{
	(void)state;
	prepare(10, 3, 500);
	submit(100, "ab");
	assert_next(600);
	submit(100, "c");
	assert_next(0);
	submit(100, "d");
	assert_taken(100, ROOM, "abc");
	assert_next(600); /* d is alone again */
	assert_taken(600, ROOM, "d");
}

static void take__when_the_first_is_old_enough__goes(void **state)
{
	(void)state;
	prepare(10, 3, 500);
	submit(100, "a");
	submit(400, "b");
	assert_next(600);
	assert_taken(600, ROOM, "ab");
}

static void take__when_the_set_is_full__goes_at_once(void **state)
{
	(void)state;
	prepare(3, 250, 500);
	submit(100, "ab");
	assert_next(600);
	submit(100, "c");
	assert_next(0);
	assert_taken(100, ROOM, "abc");
}

static void take__with_less_room__hands_out_what_fits(void **state)
{
	(void)state;
	prepare(10, 4, 500);
	submit(0, "abcdefg");
	assert_taken(500, 0, "");
	assert_int_equal(dispatcher_pending(&dispatcher), 7);
	assert_taken(500, 1, "a");
	assert_taken(500, 4, "bcde");
	assert_taken(500, 5, "fg");
	assert_int_equal(dispatcher.counters.batches, 3);
}

static void hold__hands_out_nothing_before_its_end(void **state)
{
	(void)state;
	prepare(3, 2, 500);
	dispatcher_hold(&dispatcher, 1000);
	assert_empty();
	submit(100, "ab");
	assert_next(1000);
	submit(600, "cd"); /* full, and beyond */
	assert_next(1000);
	assert_lost("<a");
	assert_taken(1000, ROOM, "bc");
	assert_next(1100);
}

static void hold__that_ends_before_the_batch_is_due__changes_nothing(void **state)
{
	(void)state;
	prepare(3, 2, 500);
	dispatcher_hold(&dispatcher, 599);
	submit(100, "a");
	assert_next(600);
	dispatcher_hold(&dispatcher, 601);
	assert_next(601);
	dispatcher_hold(&dispatcher, 600); /* shorter again: the latest word counts */
	assert_next(600);
}

static void hold__of_zero__ends_it(void **state)
{
	(void)state;
	prepare(3, 1, 500);
	dispatcher_hold(&dispatcher, UINT64_MAX);
	submit(100, "a");
	assert_next(UINT64_MAX);
	dispatcher_hold(&dispatcher, 0);
	assert_next(0);
	assert_taken(0, ROOM, "a");
}

static void hold__does_not_keep_retries_out(void **state)
{
	(void)state;
	prepare(3, 2, 0);
	submit(0, "ab");
	assert_taken(0, ROOM, "ab");
	dispatcher_hold(&dispatcher, 50);
	retry(1);
	assert_next(50);
	assert_taken(50, ROOM, "ab");
}

static void next__is_exact_as_work_comes_and_goes(void **state)
{
	(void)state;
	prepare(10, 3, 50);
	submit(10, "a");
	assert_next(60);
	submit(30, "b");
	assert_next(60);
	assert_true(dispatcher_cancel(&dispatcher, 'a'));
	assert_next(80);
	assert_taken(80, ROOM, "b");
	assert_empty();
}

static void next__delay_beyond_the_end_of_time__saturates(void **state)
{
	(void)state;
	prepare(3, 2, UINT64_MAX);
	submit(0, "a");
	assert_next(UINT64_MAX);
	prepare(3, 2, UINT64_MAX - 5);
	submit(5, "a");
	assert_next(UINT64_MAX);
	prepare(3, 2, UINT64_MAX - 5);
	submit(6, "a");
	assert_next(UINT64_MAX);
	submit(7, "b");
	assert_next(0);
	prepare(3, 2, UINT64_MAX - 6);
	submit(5, "a");
	assert_next(UINT64_MAX - 1);
	assert_taken(UINT64_MAX - 1, ROOM, "a");
}

static void take__at_an_earlier_time__is_of_no_age(void **state)
{
	(void)state;
	prepare(3, 1, 500);
	submit(100, "a");
	assert_taken(50, ROOM, "a");
	assert_int_equal(dispatcher.counters.latency_ms.counts[0], 1);
}

static void cancel__takes_work_back(void **state)
{
	(void)state;
	prepare(10, 10, 0);
	submit(0, "abcde");
	assert_true(dispatcher_cancel(&dispatcher, 'c'));
	assert_false(dispatcher_cancel(&dispatcher, 'c'));
	assert_false(dispatcher_cancel(&dispatcher, 'x'));
	assert_true(dispatcher_cancel(&dispatcher, 'a'));
	assert_true(dispatcher_cancel(&dispatcher, 'e'));
	assert_lost("");
	assert_int_equal(dispatcher.counters.cancelled, 3);
	assert_int_equal(dispatcher_pending(&dispatcher), 2);
	submit(0, "a");
	assert_taken(0, ROOM, "bda");
	assert_false(dispatcher_cancel(&dispatcher, 'b')); /* handed out */
	assert_empty();
}

static void expire__of_work_that_waits__is_a_loss(void **state)
{
	(void)state;
	prepare(10, 10, 0);
	submit(0, "abc");
	assert_true(dispatcher_expire(&dispatcher, 'b'));
	assert_false(dispatcher_expire(&dispatcher, 'b'));
	assert_lost("-b");
	assert_int_equal(dispatcher.counters.expired, 1);
	assert_taken(0, ROOM, "ac");
	assert_empty();
}

static void cancel__of_the_last_one__leaves_an_empty_set(void **state)
{
	(void)state;
	prepare(2, 10, 0);
	submit(0, "a");
	assert_true(dispatcher_cancel(&dispatcher, 'a'));
	assert_empty();
	submit(0, "bc");
	assert_lost("");
	assert_taken(0, ROOM, "bc");
}

static void counters__each_fate_is_counted_once(void **state)
{
	const struct dispatcher_counters *c = &dispatcher.counters;

	(void)state;
	prepare(4, 2, 0);
	submit_until(0, "ab", 10);
	submit(0, "cdAefx"); /* d and on: full; e, f, x push out A, b, c */
	assert_lost("=a<A<b<c");
	assert_true(dispatcher_cancel(&dispatcher, 'x'));
	assert_taken(1, ROOM, "de");
	retry(1);
	submit_until(1, "z", 2);
	assert_taken(2, ROOM, "de");
	assert_taken(2, ROOM, "f");
	assert_lost("-z");
	assert_int_equal(c->accepted, 9);
	assert_int_equal(c->overridden, 1);
	assert_int_equal(c->overflowed, 3);
	assert_int_equal(c->expired, 1);
	assert_int_equal(c->cancelled, 1);
	assert_int_equal(c->retried, 2);
	assert_int_equal(c->batches, 3);
	assert_int_equal(c->taken, 5);
	assert_int_equal(c->batch_size.counts[1], 1);
	assert_int_equal(c->batch_size.counts[2], 2);
	assert_int_equal(c->batch_size.sum, c->taken);
	assert_int_equal(c->latency_ms.sum, 1 + 1 + 2 + 2 + 2); /* d, e; again; f */
	/* nothing is lost without a trace */
	assert_int_equal(c->accepted + c->retried,
		c->overridden + c->overflowed + c->expired + c->cancelled + c->taken);
}

static void histogram__of_latency__bucket_b_is_below_2_to_the_b(void **state)
{
	static const struct {
		uint64_t latency_ms;
		unsigned bucket;
	} table[] = {{0, 0}, {1, 1}, {2, 2}, {3, 2}, {4, 3}, {7, 3}, {8, 4}, {1023, 10}, {1024, 11},
		{(1 << 14) - 1, 14}, {1 << 14, 15}, {(1 << 15) - 1, 15}, {1 << 15, 15},
		{UINT64_C(1) << 32, 15}, {UINT64_MAX - 1, 15}};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		prepare(1, 1, 0);
		submit(0, "a");
		assert_taken(table[i].latency_ms, ROOM, "a");
		for (unsigned b = 0; b < DISPATCHER_BUCKETS; b++)
			assert_int_equal(dispatcher.counters.latency_ms.counts[b],
				b == table[i].bucket ? 1 : 0);
		assert_true(dispatcher.counters.latency_ms.sum == table[i].latency_ms);
	}
}

static void histogram__of_batch_sizes__last_bucket_has_all_that_is_larger(void **state)
{
	static struct dispatcher_item items[40000];
	static const struct {
		uint32_t size;
		unsigned bucket;
	} table[] = {{1, 1}, {2, 2}, {3, 2}, {4, 3}, {250, 8}, {16383, 14}, {16384, 15},
		{32768, 15}, {40000, 15}};
	struct dispatcher_limits limits = {COUNT(items), COUNT(items), 0};
	struct dispatcher d;

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		assert_int_equal(dispatcher_init(&d, &limits, NULL, NULL), 0);
		for (uint32_t id = 0; id < table[i].size; id++)
			dispatcher_submit(&d, 0, id, NULL, NEVER);
		assert_int_equal(dispatcher_take(&d, 0, ROOM, items), table[i].size);
		for (unsigned b = 0; b < DISPATCHER_BUCKETS; b++)
			assert_int_equal(
				d.counters.batch_size.counts[b], b == table[i].bucket ? 1 : 0);
		dispatcher_fini(&d);
	}
}

/* The n-th id of those that all fall into the first bucket: n times the inverse of the hash's
 * multiplier. A guess about the inside; with another hash, these are just ids. */
static uint64_t colliding(uint64_t n)
{
	const uint64_t multiplier = UINT64_C(0x9e3779b97f4a7c15);
	uint64_t inverse = multiplier; /* Newton: right bits double each time, from 3 */

	for (unsigned i = 0; i < 5; i++)
		inverse *= 2 - multiplier * inverse;
	return n * inverse;
}

static void ids_that_collide__are_told_apart(void **state)
{
	struct dispatcher_item items[5];

	(void)state;
	prepare(5, 5, 0);
	for (uint64_t n = 0; n < 5; n++)
		dispatcher_submit(&dispatcher, n, colliding(n), &tasks['a' + n], NEVER);
	dispatcher_submit(&dispatcher, 9, colliding(2), &tasks['C'], NEVER);
	assert_true(dispatcher_cancel(&dispatcher, colliding(3))); /* amid the chain */
	assert_true(dispatcher_cancel(&dispatcher, colliding(4))); /* its head */
	assert_true(dispatcher_cancel(&dispatcher, colliding(0))); /* its end */
	assert_false(dispatcher_cancel(&dispatcher, colliding(5)));
	dispatcher_submit(&dispatcher, 9, colliding(4), &tasks['E'], NEVER);
	assert_lost("=c");
	assert_int_equal(dispatcher_take(&dispatcher, 9, ROOM, items), 3);
	assert_ptr_equal(items[0].task, &tasks['b']);
	assert_ptr_equal(items[1].task, &tasks['C']);
	assert_ptr_equal(items[2].task, &tasks['E']);
	assert_empty();
}

/* In a set of two, of few chains: many pairs share one. */
static void ids__all_64_bits_count(void **state)
{
	(void)state;
	for (unsigned bit = 0; bit < 64; bit++)
		for (uint64_t n = 0; n < 16; n++) {
			uint64_t id = n * UINT64_C(0xd6e8feb86659fd93);
			uint64_t other = id ^ UINT64_C(1) << bit;

			prepare(2, 2, 0);
			dispatcher_submit(&dispatcher, 0, id, &tasks['a'], NEVER);
			assert_false(dispatcher_cancel(&dispatcher, other));
			dispatcher_submit(&dispatcher, 0, other, &tasks['b'], NEVER);
			assert_int_equal(dispatcher_take(&dispatcher, 0, ROOM, taken), 2);
			assert_int_equal(taken[0].id, id);
			assert_int_equal(taken[1].id, other);
		}
}

static void max_pending_of_one__keeps_the_newest(void **state)
{
	(void)state;
	prepare(1, 1, 500);
	submit(0, "aAbc");
	assert_lost("=a<A<b");
	assert_next(0);
	assert_taken(0, ROOM, "c");
	submit(1, "d");
	retry(1);
	assert_lost("<c");
	assert_true(dispatcher_cancel(&dispatcher, 'd'));
	assert_empty();
	submit(2, "e");
	assert_taken(2, ROOM, "e");
	retry(2);
	assert_taken(2, ROOM, "e");
	prepare(1, 250, 500); /* a batch that is never full: the set is */
	submit(0, "a");
	assert_next(0);
	assert_taken(0, ROOM, "a");
}

static void lost__without_a_callback__is_counted(void **state)
{
	struct dispatcher_limits limits = {1, 1, 0};
	struct dispatcher_item item;
	struct dispatcher d;

	(void)state;
	assert_int_equal(dispatcher_init(&d, &limits, NULL, NULL), 0);
	dispatcher_submit(&d, 0, 1, NULL, NEVER);
	dispatcher_submit(&d, 0, 1, NULL, NEVER);
	dispatcher_submit(&d, 0, 2, NULL, 1);
	assert_int_equal(dispatcher_take(&d, 1, 1, &item), 0);
	assert_int_equal(d.counters.overridden, 1);
	assert_int_equal(d.counters.overflowed, 1);
	assert_int_equal(d.counters.expired, 1);
	dispatcher_fini(&d);
}

/* ---- against the model ---- */

struct loss {
	void *task;
	enum dispatcher_loss why;
};

struct losses {
	struct loss of[2 * MOST];
	size_t count;
};

struct configuration {
	const char *name;
	struct dispatcher_limits limits;
	uint64_t ids, start_ms;
	uint64_t (*id)(uint64_t n);
};

static struct {
	struct dispatcher_limits limits;
	struct dispatcher_counters counters;
	struct dispatcher_item line[MOST]; /* the first is the first */
	size_t count;
	uint64_t hold_until_ms;
	struct losses losses;
} model;

static struct {
	uint64_t now_ms, submitted;
	struct dispatcher_item out[MOST]; /* handed out, not yet failed */
	size_t out_count;
	struct losses losses; /* of the dispatcher */
	char tasks[1 << 16];
} run;

static void note_loss(void *arg, void *task, enum dispatcher_loss why)
{
	struct losses *l = arg;

	CHECK(l->count < COUNT(l->of));
	l->of[l->count++] = (struct loss){task, why};
}

static void model_lose(void *task, enum dispatcher_loss why)
{
	note_loss(&model.losses, task, why);
	model.counters.overridden += why == DISPATCHER_OVERRIDDEN;
	model.counters.overflowed += why == DISPATCHER_OVERFLOWED;
	model.counters.expired += why == DISPATCHER_EXPIRED;
}

static struct dispatcher_item *model_find(uint64_t id)
{
	for (size_t i = 0; i < model.count; i++)
		if (model.line[i].id == id)
			return &model.line[i];
	return NULL;
}

static struct dispatcher_item model_remove(struct dispatcher_item *at)
{
	struct dispatcher_item item = *at;
	size_t behind = (size_t)(&model.line[model.count] - at) - 1;

	memmove(at, at + 1, behind * sizeof(*at));
	model.count--;
	return item;
}

static void model_insert(size_t place, const struct dispatcher_item *item)
{
	memmove(&model.line[place + 1], &model.line[place], (model.count - place) * sizeof(*item));
	model.line[place] = *item;
	model.count++;
}

static void model_submit(uint64_t now_ms, uint64_t id, void *task, uint64_t expires_ms)
{
	struct dispatcher_item *older = model_find(id);

	model.counters.accepted++;
	if (older) {
		model_lose(older->task, DISPATCHER_OVERRIDDEN);
		older->task = task;
		older->expires_ms = expires_ms;
		return;
	}
	if (model.count == model.limits.max_pending)
		model_lose(model_remove(model.line).task, DISPATCHER_OVERFLOWED);
	model_insert(model.count, &(struct dispatcher_item){id, task, now_ms, expires_ms});
}

static void model_retry_one(uint64_t now_ms, const struct dispatcher_item *item)
{
	if (item->expires_ms <= now_ms) {
		model_lose(item->task, DISPATCHER_EXPIRED);
		return;
	}
	if (model_find(item->id)) {
		model_lose(item->task, DISPATCHER_OVERRIDDEN);
		return;
	}
	if (model.count == model.limits.max_pending) {
		model_lose(item->task, DISPATCHER_OVERFLOWED);
		return;
	}
	model.counters.retried++;
	model_insert(0, item);
}

__extension__ typedef unsigned __int128 wide;

static uint64_t model_due(void)
{
	wide due_ms = (wide)model.line[0].since_ms + model.limits.max_delay_ms;

	if (model.count == model.limits.max_pending || model.count >= model.limits.max_batch)
		due_ms = 0;
	if (due_ms < model.hold_until_ms)
		due_ms = model.hold_until_ms;
	return due_ms > UINT64_MAX ? UINT64_MAX : (uint64_t)due_ms;
}

static void model_note(struct dispatcher_histogram *h, uint64_t value)
{
	unsigned b = 0;

	while (b < DISPATCHER_BUCKETS - 1 && value >= UINT64_C(1) << b)
		b++;
	h->counts[b]++;
	h->sum += value;
}

static size_t model_take(uint64_t now_ms, size_t room, struct dispatcher_item *ret_items)
{
	size_t n = 0;

	if (model.count == 0 || now_ms < model_due())
		return 0;
	while (n < room && n < model.limits.max_batch && model.count > 0) {
		struct dispatcher_item item = model_remove(model.line);

		if (item.expires_ms <= now_ms) {
			model_lose(item.task, DISPATCHER_EXPIRED);
		} else {
			model_note(&model.counters.latency_ms, now_ms - item.since_ms);
			ret_items[n++] = item;
		}
	}
	model.counters.taken += n;
	if (n > 0) {
		model.counters.batches++;
		model_note(&model.counters.batch_size, n);
	}
	return n;
}

static uint64_t after(uint64_t now_ms, uint64_t delay_ms)
{
	return delay_ms > UINT64_MAX - 1 - now_ms ? UINT64_MAX - 1 : now_ms + delay_ms;
}

static void submit_one(const struct configuration *c)
{
	uint64_t id = c->id(random_below(c->ids));
	void *task = &run.tasks[run.submitted++ % COUNT(run.tasks)];
	uint64_t expires_ms = NEVER;

	if (random_below(3) == 0)
		expires_ms = after(run.now_ms, random_below(60));
	dispatcher_submit(&dispatcher, run.now_ms, id, task, expires_ms);
	model_submit(run.now_ms, id, task, expires_ms);
}

static void submit_some(const struct configuration *c)
{
	for (uint64_t n = random_below(6); n > 0; n--)
		submit_one(c);
}

static void take_some(const struct configuration *c)
{
	struct dispatcher_item got[MOST], expected[MOST];
	size_t room = MOST - run.out_count, n;

	(void)c;
	if (random_below(2))
		room = random_below(room + 1);
	n = dispatcher_take(&dispatcher, run.now_ms, room, got);
	CHECK(n == model_take(run.now_ms, room, expected));
	for (size_t i = 0; i < n; i++) {
		CHECK(got[i].id == expected[i].id && got[i].task == expected[i].task);
		CHECK(got[i].since_ms == expected[i].since_ms);
		CHECK(got[i].expires_ms == expected[i].expires_ms);
		run.out[run.out_count++] = got[i];
	}
}

/* Some of what was handed out last or first fails, or goes well and is forgotten. */
static void end_some(const struct configuration *c)
{
	size_t n = random_below(run.out_count + 1), left = run.out_count - n;
	size_t from = random_below(2) ? left : 0;

	(void)c;
	if (random_below(4)) {
		dispatcher_retry(&dispatcher, run.now_ms, &run.out[from], n);
		for (size_t i = n; i > 0; i--)
			model_retry_one(run.now_ms, &run.out[from + i - 1]);
	}
	if (from == 0)
		memmove(run.out, &run.out[n], left * sizeof(run.out[0]));
	run.out_count = left;
}

static void cancel_one(const struct configuration *c)
{
	uint64_t id = c->id(random_below(c->ids));
	struct dispatcher_item *waits;
	bool expires = random_below(2);

	if (model.count > 0 && random_below(4) == 0)
		id = model.line[random_below(2) ? 0 : model.count - 1].id;
	waits = model_find(id);
	CHECK((expires ? dispatcher_expire : dispatcher_cancel)(&dispatcher, id) ==
		(waits != NULL));
	if (waits && expires) {
		model_lose(model_remove(waits).task, DISPATCHER_EXPIRED);
	} else if (waits) {
		model_remove(waits);
		model.counters.cancelled++;
	}
}

static void hold(const struct configuration *c)
{
	uint64_t until_ms = random_below(2) ? 0 : after(run.now_ms, random_below(30));

	(void)c;
	dispatcher_hold(&dispatcher, until_ms);
	model.hold_until_ms = until_ms;
}

static void grow(const struct configuration *c)
{
	uint32_t more = model.limits.max_pending + (uint32_t)random_below(8);

	(void)c;
	if (more > MOST - 6)
		return;
	CHECK(dispatcher_grow(&dispatcher, more) == 0);
	model.limits.max_pending = more;
}

static void pass_time(const struct configuration *c)
{
	uint64_t due_ms = model_due();

	(void)c;
	switch (random_below(4)) {
	case 0: /* to the moment there is work, or just before it */
		due_ms -= due_ms && random_below(2);
		if (model.count > 0 && due_ms > run.now_ms && due_ms < after(run.now_ms, 1000))
			run.now_ms = due_ms;
		break;
	case 1:
		run.now_ms = after(run.now_ms, random_below(40));
		break;
	default:
		run.now_ms = after(run.now_ms, random_below(3));
		break;
	}
}

static void compare_all(void)
{
	struct dispatcher_item none[1];
	uint64_t due_ms = 0;

	CHECK(dispatcher_pending(&dispatcher) == model.count);
	CHECK(dispatcher_next(&dispatcher, &due_ms) == (model.count > 0));
	CHECK(model.count == 0 || due_ms == model_due());
	if (due_ms > 0) /* so that looking does not change anything */
		CHECK(dispatcher_take(&dispatcher, due_ms - 1, 1, none) == 0);
	CHECK(run.losses.count == model.losses.count);
	for (size_t i = 0; i < run.losses.count; i++) {
		CHECK(run.losses.of[i].task == model.losses.of[i].task);
		CHECK(run.losses.of[i].why == model.losses.of[i].why);
	}
	run.losses.count = model.losses.count = 0;
	CHECK(memcmp(&dispatcher.counters, &model.counters, sizeof(model.counters)) == 0);
}

static void start_over(const struct configuration *c)
{
	dispatcher_fini(&dispatcher);
	CHECK(dispatcher_init(&dispatcher, &c->limits, note_loss, &run.losses) == 0);
	memset(&model, 0, sizeof(model));
	model.limits = c->limits;
	memset(&run, 0, sizeof(run));
	run.now_ms = c->start_ms;
}

static void compare(const struct configuration *c)
{
	static void (*const operations[])(const struct configuration *c) = {submit_one, submit_one,
		submit_some, take_some, take_some, end_some, cancel_one, pass_time, pass_time};

	start_over(c);
	for (model_random.step = 0; model_random.step < STEPS; model_random.step++) {
		if (random_below(64) == 0)
			hold(c);
		else if (random_below(5000) == 0)
			grow(c);
		else
			operations[random_below(COUNT(operations))](c);
		compare_all();
		/* Time only goes on, and stands still at its end. */
		if (random_below(run.now_ms == UINT64_MAX - 1 ? 64 : 5000) == 0)
			start_over(c);
	}
}

static uint64_t itself(uint64_t n)
{
	return n;
}

static uint64_t anything(uint64_t n)
{
	return (n + 1) * UINT64_C(0xd6e8feb86659fd93) ^ n << 57;
}

static void random_operations__agree_with_the_array(void **state)
{
	static const struct configuration configurations[] = {
		{"one", {1, 1, 0}, 3, 0, itself},
		{"one that waits", {1, 5, 10}, 2, 0, colliding},
		{"two", {2, 3, 5}, 4, 1000, itself},
		{"few, small batches", {7, 3, 20}, 10, 1000, itself},
		{"few, the set fills first", {8, 100, 50}, 12, 1000, anything},
		{"no age", {5, 3, UINT64_MAX}, 8, 1000, itself},
		{"many", {64, 16, 10}, 90, 1000, itself},
		{"one chain", {24, 6, 10}, 30, 1000, colliding},
		{"many, no delay", {33, 250, 0}, 60, 1000, anything},
		{"the end of time", {9, 4, 100}, 12, UINT64_MAX - 5000, anything},
	};

	(void)state;
	model_random_start();
	for (size_t i = 0; i < COUNT(configurations); i++) {
		model_random.part = configurations[i].name;
		compare(&configurations[i]);
	}
	dispatcher_fini(&dispatcher);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(init__is_empty),
		cmocka_unit_test(init__without_memory__fails_and_can_be_finished),
		cmocka_unit_test(assert__own_bugs__end_the_program),
		cmocka_unit_test(fini__with_work_waiting__forgets_it),
		cmocka_unit_test(grow__has_room_for_more_and_keeps_what_waits),
		cmocka_unit_test(grow__without_memory__is_as_it_was),
		cmocka_unit_test(take__is_in_order_of_submission),
		cmocka_unit_test(submit__of_an_id_that_waits__keeps_its_place_and_its_age),
		cmocka_unit_test(submit__of_an_id_that_waits__replaces_the_expiry),
		cmocka_unit_test(submit__of_an_id_that_waits__needs_no_room),
		cmocka_unit_test(submit__when_full__drops_the_oldest),
		cmocka_unit_test(submit__when_full__drops_retried_work_first),
		cmocka_unit_test(retry__goes_to_the_front_in_order),
		cmocka_unit_test(retry__batch_is_due_by_the_age_it_had),
		cmocka_unit_test(retry__loses_to_newer_work),
		cmocka_unit_test(retry__loses_to_expiry),
		cmocka_unit_test(retry__when_full__loses_the_first_ones_first),
		cmocka_unit_test(retry__into_an_empty_set__is_all_there_is),
		cmocka_unit_test(take__of_expired_work__loses_it),
		cmocka_unit_test(take__where_all_has_expired__is_no_batch),
		cmocka_unit_test(take__of_expired_work__fills_the_batch_with_what_is_behind),
		cmocka_unit_test(take__when_the_batch_is_full__goes_at_once),
		cmocka_unit_test(take__when_the_first_is_old_enough__goes),
		cmocka_unit_test(take__when_the_set_is_full__goes_at_once),
		cmocka_unit_test(take__with_less_room__hands_out_what_fits),
		cmocka_unit_test(hold__hands_out_nothing_before_its_end),
		cmocka_unit_test(hold__that_ends_before_the_batch_is_due__changes_nothing),
		cmocka_unit_test(hold__of_zero__ends_it),
		cmocka_unit_test(hold__does_not_keep_retries_out),
		cmocka_unit_test(next__is_exact_as_work_comes_and_goes),
		cmocka_unit_test(next__delay_beyond_the_end_of_time__saturates),
		cmocka_unit_test(take__at_an_earlier_time__is_of_no_age),
		cmocka_unit_test(cancel__takes_work_back),
		cmocka_unit_test(expire__of_work_that_waits__is_a_loss),
		cmocka_unit_test(cancel__of_the_last_one__leaves_an_empty_set),
		cmocka_unit_test(counters__each_fate_is_counted_once),
		cmocka_unit_test(histogram__of_latency__bucket_b_is_below_2_to_the_b),
		cmocka_unit_test(histogram__of_batch_sizes__last_bucket_has_all_that_is_larger),
		cmocka_unit_test(ids_that_collide__are_told_apart),
		cmocka_unit_test(ids__all_64_bits_count),
		cmocka_unit_test(max_pending_of_one__keeps_the_newest),
		cmocka_unit_test(lost__without_a_callback__is_counted),
		cmocka_unit_test(random_operations__agree_with_the_array),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
