/*
 * The shaper's rules, one by one and against a model: the header's sentences in plain arithmetic,
 * without bounds.
 *
 * Randomness is an argument: 0 gives the shortest hold, span - 1 the longest of a span.
 */
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "lib/shaper.h"
#include "tests/unit/fixture/model_random.h"

#define STEPS 2000000
#define C SHAPER_CONGESTION
#define N SHAPER_NETWORK
#define NONE SHAPER_NO_ADVICE
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* What assert() calls: lets expect_assert_failure() see it. */
void __assert_fail(const char *expression, const char *file, unsigned line, const char *function)
{
	(void)function;
	mock_assert(0, expression, file, (int)line);
	abort();
}

/* ---- rule by rule ---- */

/* How long the first failure holds that a request of one millisecond has at 1000 ms, after so many
 * others in a row. */
static uint64_t hold_after(
	unsigned failures, enum shaper_failure kind, uint64_t advice_ms, uint64_t random)
{
	struct shaper s;

	shaper_init(&s);
	for (unsigned i = 0; i < failures; i++)
		shaper_failed(&s, i + 1, i + 1, N, NONE, 0); /* each for 1 ms */
	assert_int_equal(s.in_a_row, failures);
	shaper_failed(&s, 999, 1000, kind, advice_ms, random);
	assert_in_range(shaper_until(&s), 1000, 1000 + SHAPER_CAP_MS * 3 / 2);
	return shaper_until(&s) - 1000;
}

static void init__holds_nothing(void **state)
{
	struct shaper s;

	(void)state;
	memset(&s, 0xff, sizeof(s));
	shaper_init(&s);
	assert_int_equal(shaper_until(&s), 0);
	assert_false(shaper_holds(&s, 0));
	assert_int_equal(s.in_a_row, 0);
	assert_int_equal(s.count[C], 0);
	assert_int_equal(s.count[N], 0);
	assert_int_equal(s.advised, 0);
	shaper_succeeded(&s, 0);
	assert_false(shaper_holds(&s, 0));
}

static void holds__until_its_end_and_no_longer(void **state)
{
	struct shaper s;

	(void)state;
	shaper_init(&s);
	shaper_failed(&s, 4999, 5000, C, NONE, 41);
	assert_int_equal(shaper_until(&s), 5042);
	assert_true(shaper_holds(&s, 5000));
	assert_true(shaper_holds(&s, 5041));
	assert_false(shaper_holds(&s, 5042));
}

static void failed__without_advice__ceiling_doubles_up_to_the_cap(void **state)
{
	static const uint64_t congestion_ms[] = {
		100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600, 51200, 60000, 60000};
	static const uint64_t network_ms[] = {
		1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000, 60000};

	(void)state;
	for (unsigned i = 0; i < COUNT(congestion_ms); i++) {
		assert_int_equal(hold_after(i, C, NONE, congestion_ms[i] - 1), congestion_ms[i]);
		assert_int_equal(hold_after(i, C, NONE, congestion_ms[i]), 1);
	}
	for (unsigned i = 0; i < COUNT(network_ms); i++) {
		assert_int_equal(hold_after(i, N, NONE, network_ms[i] - 1), network_ms[i]);
		assert_int_equal(hold_after(i, N, NONE, network_ms[i]), 1);
	}
	for (unsigned i = 15; i < 900; i++) { /* far beyond the cap: 2^i has no room */
		assert_int_equal(hold_after(i, C, NONE, 59999), 60000);
		assert_int_equal(hold_after(i, N, NONE, 59999), 60000);
	}
}

static void failed__without_advice__jitter_covers_all_from_1_to_the_ceiling(void **state)
{
	static unsigned seen[1001];

	(void)state;
	memset(seen, 0, sizeof(seen));
	for (uint64_t random = 0; random < 3000; random++)
		seen[hold_after(0, N, NONE, random)]++;
	assert_int_equal(seen[0], 0);
	for (unsigned ms = 1; ms <= 1000; ms++)
		assert_int_equal(seen[ms], 3); /* evenly */
	for (unsigned bit = 0; bit < 64; bit++) {
		assert_in_range(hold_after(0, N, NONE, UINT64_C(1) << bit), 1, 1000);
		assert_in_range(hold_after(0, C, NONE, UINT64_MAX << bit), 1, 100);
	}
}

static void failed__together__counts_once_for_the_growth(void **state)
{
	struct shaper s;

	(void)state;
	shaper_init(&s);
	for (unsigned i = 0; i < 8;
		i++) /* began at 10 to 17, the last of them as the first failed */
		shaper_failed(&s, 10 + i, 17 + i, N, NONE, 0);
	assert_int_equal(s.in_a_row, 1);
	assert_int_equal(s.count[N], 8);
	assert_int_equal(shaper_until(&s), 18); /* and one hold */
	shaper_failed(&s, 17, 26, C, 1000, 0);  /* but advice is taken */
	assert_int_equal(shaper_until(&s), 1026);
	assert_int_equal(s.in_a_row, 1);
	shaper_failed(&s, 25, 30, N, NONE, 0);
	shaper_failed(&s, 25, 31, C, NONE, 0);
	shaper_failed(&s, 30, 32, C, NONE, 0);
	assert_int_equal(s.in_a_row, 2);
	shaper_failed(&s, 31, 33, C, NONE, 0);
	assert_int_equal(s.in_a_row, 3);
}

static void succeeded__ends_the_growth_and_not_the_hold(void **state)
{
	struct shaper s;

	(void)state;
	shaper_init(&s);
	shaper_failed(&s, 1, 2, N, NONE, 0);
	shaper_failed(&s, 3, 4, N, NONE, 0);
	shaper_failed(&s, 5, 6, N, NONE, 3999);
	assert_int_equal(shaper_until(&s), 4006);
	shaper_succeeded(&s, 7);
	assert_int_equal(s.in_a_row, 0);
	assert_int_equal(shaper_until(&s), 4006);
	assert_true(shaper_holds(&s, 4005));
	shaper_failed(&s, 5000, 5001, N, NONE, 999);
	assert_int_equal(shaper_until(&s), 6001); /* the ceiling is the first again */
	shaper_failed(&s, 6001, 6002, N, NONE, 1999);
	assert_int_equal(shaper_until(&s), 8002);
}

static void succeeded__of_a_request_from_before_the_failure__says_nothing_new(void **state)
{
	struct shaper s;

	(void)state;
	shaper_init(&s);
	shaper_failed(&s, 10, 20, C, NONE, 0);
	shaper_succeeded(&s, 10);
	shaper_succeeded(&s, 19);
	assert_int_equal(s.in_a_row, 1);
	shaper_succeeded(&s, 20);
	assert_int_equal(s.in_a_row, 0);
	assert_int_equal(s.count[C], 1);
}

static void failed__late_and_from_before_a_success__says_nothing_new(void **state)
{
	struct shaper s;

	(void)state;
	shaper_init(&s);
	shaper_failed(&s, 0, 10, N, NONE, 0);
	shaper_succeeded(&s, 11);
	shaper_failed(&s, 0, 12, N, NONE, 500);
	assert_int_equal(s.in_a_row, 0);
	assert_false(shaper_holds(&s, 12));
}

static void failed__at_the_end_of_time__holds_for_ever(void **state)
{
	struct shaper s;

	(void)state;
	shaper_init(&s);
	shaper_failed(&s, 0, UINT64_MAX - 10, C, 5000, 0);
	assert_true(shaper_until(&s) == UINT64_MAX);
	assert_true(s.advised_until_ms == UINT64_MAX);
}

static void failed__with_advice__it_is_brought_into_its_bounds(void **state)
{
	static const uint64_t table[][2] = {{0, 1000}, {1, 1000}, {999, 1000}, {1000, 1000},
		{1001, 1001}, {7000, 7000}, {60000, 60000}, {60001, 60000}, {3600000, 60000},
		{UINT64_MAX - 1, 60000}};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++)
		for (unsigned failures = 0; failures < 20; failures++)
			for (enum shaper_failure kind = 0; kind < SHAPER_FAILURES; kind++)
				assert_int_equal(
					hold_after(failures, kind, table[i][0], 0), table[i][1]);
}

static void failed__with_advice__jitter_is_half_of_it_or_the_ceiling(void **state)
{
	static const struct {
		unsigned failures;
		enum shaper_failure kind;
		uint64_t advice_ms, longest_ms;
	} table[] = {
		{0, C, 1000, 1500},   /* half the advice is more than 100 ms */
		{2, C, 1000, 1500},   /* than 400 */
		{3, C, 1000, 1800},   /* and less than 800 */
		{0, N, 1000, 2000},   /* than 1 s */
		{0, N, 2001, 3001},   /* half, rounded down, is 1 s */
		{0, N, 5000, 7500},   /* half */
		{5, N, 1000, 31000},  /* half the cap is less than 32 s */
		{9, N, 1000, 31000},  /* than the cap */
		{9, N, 60000, 90000}, /* the most there is */
		{0, C, UINT64_MAX - 1, 90000},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		uint64_t shortest_ms =
			hold_after(table[i].failures, table[i].kind, table[i].advice_ms, 0);
		uint64_t span = table[i].longest_ms - shortest_ms + 1;

		for (uint64_t random = 0; random < span; random += random < span - 9 ? 7 : 1)
			assert_int_equal(hold_after(table[i].failures, table[i].kind,
						 table[i].advice_ms, random),
				shortest_ms + random);
		assert_int_equal(
			hold_after(table[i].failures, table[i].kind, table[i].advice_ms, span),
			shortest_ms);
	}
}

static void failed__again__never_shortens_a_hold(void **state)
{
	struct shaper s;

	(void)state;
	shaper_init(&s);
	shaper_failed(&s, 99, 100, C, 60000, 0);
	assert_int_equal(shaper_until(&s), 60100);
	shaper_failed(&s, 101, 102, C, NONE, 0);
	shaper_failed(&s, 103, 104, N, 0, 0);
	shaper_failed(&s, 50, 105, N, 1000, 0);
	assert_int_equal(shaper_until(&s), 60100);
	shaper_failed(&s, 50, 106, N, 60000, 0);
	assert_int_equal(shaper_until(&s), 60106);
}

static void lift__ends_a_hold_that_nobody_asked_for(void **state)
{
	struct shaper s;

	(void)state;
	shaper_init(&s);
	shaper_lift(&s);
	assert_false(shaper_holds(&s, 0));
	shaper_failed(&s, 1, 2, N, NONE, 999);
	shaper_lift(&s);
	assert_false(shaper_holds(&s, 2));
	assert_int_equal(s.in_a_row, 1);
	shaper_failed(&s, 3, 4, N, NONE, 1999); /* the growth stays */
	assert_int_equal(shaper_until(&s), 2004);
}

static void lift__does_not_end_what_the_server_asked_for(void **state)
{
	struct shaper s;

	(void)state;
	shaper_init(&s);
	shaper_failed(&s, 9, 10, C, 5000, 2500);
	assert_int_equal(shaper_until(&s), 7510);
	shaper_lift(&s);
	assert_int_equal(shaper_until(&s), 5010); /* without the jitter */
	shaper_failed(&s, 11, 12, C, 1, 0);       /* less: the longer one stays */
	shaper_lift(&s);
	assert_int_equal(shaper_until(&s), 5010);
	shaper_failed(&s, 13, 14, C, UINT64_MAX - 1, 30000);
	assert_int_equal(shaper_until(&s), 90014);
	shaper_lift(&s);
	assert_int_equal(shaper_until(&s), 60014); /* within its bounds */
	shaper_failed(&s, 70000, 70001, N, NONE, 7999);
	shaper_lift(&s);
	assert_false(shaper_holds(&s, 70001));
}

/* ---- the longest interval of those who wait ---- */

static void limit__of_an_interval__no_hold_of_our_own_is_longer(void **state)
{
	static const uint64_t table[][2] = {{0, 1000}, {1, 1000}, {999, 1000}, {1000, 1000},
		{1001, 1001}, {5000, 5000}, {59999, 59999}, {60000, 60000}, {60001, 60000},
		{UINT64_MAX, 60000}};
	struct shaper s;

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		shaper_init(&s);
		shaper_limit(&s, table[i][0]);
		for (uint64_t at = 1000; at < 40000000; at += 100000) /* far beyond any growth */
			shaper_failed(&s, at - 1, at, N, NONE, table[i][1] - 1);
		assert_int_equal(shaper_until(&s), 39901000 + table[i][1]);
		shaper_failed(&s, 39999999, 40000000, C, NONE, table[i][1]);
		assert_int_equal(shaper_until(&s), 40000001);
	}
}

static void limit__of_a_hold_that_has_begun__brings_it_within_that(void **state)
{
	struct shaper s;

	(void)state;
	shaper_init(&s);
	for (unsigned i = 0; i < 9; i++)
		shaper_failed(&s, i + 1, i + 1, N, NONE, 0);
	shaper_failed(&s, 100, 100, N, NONE, 59999);
	assert_int_equal(shaper_until(&s), 60100);
	shaper_limit(&s, UINT64_MAX);
	assert_int_equal(shaper_until(&s), 60100);
	shaper_limit(&s, 7000); /* 60000 = 8 x 7000 + 4000 */
	assert_int_equal(shaper_until(&s), 4100);
	shaper_limit(&s, 60000); /* and never longer again */
	assert_int_equal(shaper_until(&s), 4100);
	shaper_limit(&s, 0);
	assert_int_equal(shaper_until(&s), 1100);
	shaper_failed(&s, 101, 102, N, NONE, 999);
	assert_int_equal(shaper_until(&s), 1102);
}

static void limit__over_all_draws__the_hold_is_even_and_within_the_cap(void **state)
{
	static unsigned seen[5001];

	(void)state;
	memset(seen, 0, sizeof(seen));
	for (uint64_t random = 0; random < 60000; random++) {
		struct shaper s;

		shaper_init(&s);
		for (unsigned i = 0; i < 9; i++)
			shaper_failed(&s, i + 1, i + 1, N, NONE, 0);
		shaper_failed(&s, 100, 100, N, NONE, random);
		shaper_limit(&s, 5000);
		assert_in_range(shaper_until(&s), 101, 5100);
		seen[shaper_until(&s) - 100]++;
	}
	for (unsigned ms = 1; ms <= 5000; ms++)
		assert_int_equal(seen[ms], 12);
}

static void limit__does_not_touch_what_the_server_asked_for(void **state)
{
	struct shaper s;

	(void)state;
	shaper_init(&s);
	shaper_limit(&s, 5000);
	shaper_failed(&s, 99, 100, C, 40000, 20000);
	assert_int_equal(shaper_until(&s), 60100);
	shaper_limit(&s, 1000);
	assert_int_equal(shaper_until(&s), 60100);
	/* a hold of our own that began meanwhile, and lasts longer */
	shaper_limit(&s, 60000);
	for (unsigned i = 0; i < 9; i++)
		shaper_failed(&s, 101 + i, 101 + i, N, NONE, 0);
	shaper_failed(&s, 30000, 30000, N, NONE, 59999);
	assert_int_equal(shaper_until(&s), 90000);
	shaper_limit(&s, 1000);
	assert_int_equal(shaper_until(&s), 40100);
}

static void failed__with_advice_below_the_limit__jitter_is_within_it(void **state)
{
	struct shaper s;

	(void)state;
	shaper_init(&s);
	shaper_limit(&s, 5000);
	for (unsigned i = 0; i < 9; i++)
		shaper_failed(&s, i + 1, i + 1, N, NONE, 0);
	shaper_failed(&s, 99, 100, C, 1000, 5000); /* not up to 30 s */
	assert_int_equal(shaper_until(&s), 6100);
	shaper_lift(&s);
	shaper_failed(&s, 101, 102, C, 1000, 5001);
	assert_int_equal(shaper_until(&s), 1102);
}

static void failed__with_advice__grows_and_counts_like_any(void **state)
{
	struct shaper s;

	(void)state;
	shaper_init(&s);
	shaper_failed(&s, 1, 2, C, 0, 0);
	shaper_failed(&s, 3, 4, N, UINT64_MAX - 1, 0);
	shaper_failed(&s, 3, 5, N, 5000, 0); /* one with the one before */
	shaper_failed(&s, 6, 7, C, NONE, 0);
	assert_int_equal(s.in_a_row, 3);
	assert_int_equal(s.count[C], 2);
	assert_int_equal(s.count[N], 2);
	assert_int_equal(s.advised, 3);
}

static void assert__own_bugs__end_the_program(void **state)
{
	struct shaper s;

	(void)state;
	shaper_init(&s);
	expect_assert_failure(shaper_failed(&s, 0, 1, SHAPER_FAILURES, NONE, 0));
}

/* ---- against the model ---- */

static struct {
	uint64_t until_ms, advised_until_ms, cap_ms;
	uint64_t from_ms;    /* of the present hold, */
	bool own;            /* if the server did not ask for it */
	uint64_t counted_ms; /* when a failure last counted */
	bool counted;        /* one ever did */
	unsigned in_a_row;
	uint32_t count[SHAPER_FAILURES], advised;
} model;

static uint64_t model_ceiling(enum shaper_failure kind)
{
	uint64_t ceiling_ms = kind == C ? 100 : 1000;

	for (unsigned i = 0; i < model.in_a_row && ceiling_ms < model.cap_ms; i++)
		ceiling_ms *= 2;
	return ceiling_ms < model.cap_ms ? ceiling_ms : model.cap_ms;
}

/* The shortest and the number of holds there may be. */
static uint64_t model_hold(enum shaper_failure kind, uint64_t advice_ms, uint64_t *ret_span)
{
	uint64_t longer_ms = model_ceiling(kind);

	*ret_span = longer_ms;
	if (advice_ms == NONE)
		return 1;
	if (advice_ms < 1000)
		advice_ms = 1000;
	if (advice_ms > 60000)
		advice_ms = 60000;
	if (longer_ms > 30000)
		longer_ms = 30000;
	if (longer_ms < advice_ms / 2)
		longer_ms = advice_ms / 2;
	*ret_span = longer_ms + 1;
	return advice_ms;
}

static bool model_is_news(uint64_t started_ms)
{
	return !model.counted || started_ms > model.counted_ms;
}

/* A request that began at most so long ago as failures usually last. */
static uint64_t random_start(uint64_t now_ms)
{
	uint64_t ago_ms = random_below(2) ? random_below(4) : random_bits() >> random_below(64);

	return ago_ms < now_ms ? now_ms - ago_ms : 0;
}

static uint64_t random_advice(void)
{
	switch (random_below(4)) {
	case 0:
		return random_below(70000);
	case 1: /* any; UINT64_MAX, too, is one */
		return random_bits() >> random_below(64);
	default:
		return NONE;
	}
}

static void fail_one(struct shaper *s, uint64_t now_ms)
{
	enum shaper_failure kind = (enum shaper_failure)random_below(SHAPER_FAILURES);
	uint64_t started_ms = random_start(now_ms), advice_ms = random_advice();
	uint64_t random = random_bits() >> random_below(64), before_ms = shaper_until(s);
	uint64_t span, hold_ms = model_hold(kind, advice_ms, &span), shortest_ms = hold_ms;

	if (random_below(4) == 0)
		random = span - 1; /* the longest */
	hold_ms += random % span;
	if (advice_ms == NONE && !model_is_news(started_ms))
		hold_ms = 0;
	shaper_failed(s, started_ms, now_ms, kind, advice_ms, random);
	if (hold_ms && now_ms + hold_ms > model.until_ms) {
		model.until_ms = now_ms + hold_ms;
		model.from_ms = now_ms;
		model.own = advice_ms == NONE;
		CHECK(s->own_ms == (model.own ? now_ms : 0));
	}
	if (advice_ms != NONE && now_ms + shortest_ms > model.advised_until_ms)
		model.advised_until_ms = now_ms + shortest_ms;
	model.count[kind]++;
	model.advised += advice_ms != NONE;
	if (model_is_news(started_ms)) {
		model.in_a_row++;
		model.counted = true;
		model.counted_ms = now_ms;
	}
	CHECK(shaper_until(s) >= before_ms);
	CHECK(advice_ms == NONE || shaper_until(s) >= now_ms + 1000);
	CHECK(advice_ms > 60000 || shaper_until(s) >= now_ms + advice_ms);
}

static void succeed_one(struct shaper *s, uint64_t now_ms)
{
	uint64_t started_ms = random_start(now_ms);

	shaper_succeeded(s, started_ms);
	if (started_ms >= model.counted_ms)
		model.in_a_row = 0;
}

static void lift(struct shaper *s)
{
	shaper_lift(s);
	model.until_ms = model.advised_until_ms;
	model.own = false;
}

static void limit(struct shaper *s)
{
	uint64_t longest_ms = random_bits() >> random_below(64), end_ms;

	shaper_limit(s, longest_ms);
	model.cap_ms = longest_ms < 1000 ? 1000 : longest_ms > 60000 ? 60000 : longest_ms;
	end_ms = model.until_ms;
	while (model.own && end_ms > model.from_ms + model.cap_ms)
		end_ms -= model.cap_ms;
	model.until_ms = end_ms > model.advised_until_ms || end_ms == model.until_ms
				 ? end_ms
				 : model.advised_until_ms;
}

static void start_over(struct shaper *s)
{
	memset(&model, 0, sizeof(model));
	model.cap_ms = 60000;
	shaper_init(s);
}

static void random_operations__agree_with_the_rules(void **state)
{
	uint64_t now_ms = 1;
	struct shaper s;

	(void)state;
	model_random_start();
	start_over(&s);
	for (; model_random.step < STEPS; model_random.step++) {
		/* mostly next to each other, so that requests overlap */
		now_ms += random_below(16) ? random_below(3) : random_below(100000);
		if (random_below(500) == 0)
			start_over(&s);
		else if (random_below(16) == 0)
			lift(&s);
		else if (random_below(16) == 0)
			limit(&s);
		else if (random_below(8))
			fail_one(&s, now_ms);
		else
			succeed_one(&s, now_ms);
		CHECK(shaper_until(&s) == model.until_ms && s.until_ms == model.until_ms);
		CHECK(shaper_holds(&s, now_ms) == (now_ms < model.until_ms));
		CHECK(!shaper_holds(&s, now_ms) || s.until_ms - now_ms <= 90000);
		CHECK(!model.own || model.until_ms <= model.from_ms + model.cap_ms ||
			model.until_ms == model.advised_until_ms);
		CHECK(s.in_a_row == model.in_a_row);
		CHECK(s.counted == model.counted && s.counted_ms == model.counted_ms);
		CHECK(s.count[C] == model.count[C] && s.count[N] == model.count[N]);
		CHECK(s.advised == model.advised);
		CHECK(s.advised_until_ms == model.advised_until_ms && s.cap_ms == model.cap_ms);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(init__holds_nothing),
		cmocka_unit_test(holds__until_its_end_and_no_longer),
		cmocka_unit_test(failed__without_advice__ceiling_doubles_up_to_the_cap),
		cmocka_unit_test(failed__without_advice__jitter_covers_all_from_1_to_the_ceiling),
		cmocka_unit_test(failed__together__counts_once_for_the_growth),
		cmocka_unit_test(succeeded__ends_the_growth_and_not_the_hold),
		cmocka_unit_test(succeeded__of_a_request_from_before_the_failure__says_nothing_new),
		cmocka_unit_test(failed__late_and_from_before_a_success__says_nothing_new),
		cmocka_unit_test(failed__at_the_end_of_time__holds_for_ever),
		cmocka_unit_test(failed__with_advice__it_is_brought_into_its_bounds),
		cmocka_unit_test(failed__with_advice__jitter_is_half_of_it_or_the_ceiling),
		cmocka_unit_test(failed__again__never_shortens_a_hold),
		cmocka_unit_test(lift__ends_a_hold_that_nobody_asked_for),
		cmocka_unit_test(lift__does_not_end_what_the_server_asked_for),
		cmocka_unit_test(limit__of_an_interval__no_hold_of_our_own_is_longer),
		cmocka_unit_test(limit__of_a_hold_that_has_begun__brings_it_within_that),
		cmocka_unit_test(limit__over_all_draws__the_hold_is_even_and_within_the_cap),
		cmocka_unit_test(limit__does_not_touch_what_the_server_asked_for),
		cmocka_unit_test(failed__with_advice_below_the_limit__jitter_is_within_it),
		cmocka_unit_test(failed__with_advice__grows_and_counts_like_any),
		cmocka_unit_test(assert__own_bugs__end_the_program),
		cmocka_unit_test(random_operations__agree_with_the_rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
