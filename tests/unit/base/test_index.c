/*
 * The hash table beside a model that is an array: what was added and not removed is found by its
 * key, each once, whatever hashes collide.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/index.h"
#include "tests/unit/fixture/fault_memory.h"
#include "tests/unit/fixture/model_random.h"

#define THINGS 3000
#define STEPS 300000

struct thing {
	struct index_link link;
	uint64_t key;
	bool in, found;
};

static struct thing things[THINGS];

/* Few hashes for many keys: chains of things that are not the same. */
static uint64_t hash_of(uint64_t key)
{
	return key % 3 ? key / 4 : 7;
}

/* How many things with this key are found; marks them. */
static unsigned look(const struct index *ix, uint64_t key)
{
	unsigned n = 0;

	for (struct index_link *l = index_first(ix, hash_of(key)); l; l = index_next(l)) {
		struct thing *t = (struct thing *)l;

		if (t->key != key)
			continue;
		assert_true(t->in && !t->found);
		t->found = true;
		n++;
	}
	return n;
}

static void assert_finds(const struct index *ix, uint64_t key)
{
	unsigned expected = 0;

	for (size_t i = 0; i < THINGS; i++)
		expected += things[i].in && things[i].key == key;
	assert_int_equal(look(ix, key), expected);
	for (size_t i = 0; i < THINGS; i++)
		things[i].found = false;
}

static void index__under_random_calls__finds_what_a_model_finds(void **state)
{
	struct index ix = {.count = 0};
	size_t n = 0, at = 0;

	(void)state;
	model_random_start();
	for (unsigned step = 0; step < STEPS; step++) {
		struct thing *t = &things[random_below(THINGS)];

		if (t->in) {
			index_remove(&ix, &t->link);
		} else {
			t->key = random_below(THINGS / 2);
			assert_int_equal(index_add(&ix, &t->link, hash_of(t->key)), 0);
		}
		t->in = !t->in;
		n += t->in ? 1 : (size_t)-1;
		if (step % 100 == 0)
			assert_finds(&ix, random_below(THINGS / 2));
	}
	for (struct index_link *l; (l = index_take(&ix, &at)); n--) {
		struct thing *t = (struct thing *)l;

		assert_true(t->in);
		t->in = false;
	}
	assert_int_equal(n, 0);
	assert_null(index_first(&ix, hash_of(1)));
	index_fini(&ix);
}

static int add_without_memory(struct index *ix, size_t i)
{
	int r;

	fault_memory.nth = 1;
	fault_memory.seen = 0;
	fault_memory.for_ever = true;
	r = index_add(ix, &things[i].link, i);
	fault_memory.nth = 0;
	return r;
}

static void add__without_memory_to_grow__finds_all_and_grows_later(void **state)
{
	struct index ix = {.count = 0};
	size_t count = 0;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(add_without_memory(&ix, 0), -ENOMEM); /* there is no chain yet */
		assert_null(index_first(&ix, 0));
	}
	assert_int_equal(index_add(&ix, &things[count].link, count), 0);
	for (count++; count < 100; count++)
		assert_int_equal(add_without_memory(&ix, count), 0);
	for (; count < 110; count++)
		assert_int_equal(index_add(&ix, &things[count].link, count), 0);
	assert_true(ix.size >= ix.count);
	for (size_t i = 0; i < count; i++)
		assert_ptr_equal(index_first(&ix, i), &things[i].link);
	index_fini(&ix);
}

static void index__that_is_empty__has_nothing(void **state)
{
	struct index ix = {.count = 0};
	size_t at = 0;

	(void)state;
	assert_null(index_first(&ix, 0));
	assert_null(index_take(&ix, &at));
	index_fini(&ix);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(index__under_random_calls__finds_what_a_model_finds),
		cmocka_unit_test(index__that_is_empty__has_nothing),
		cmocka_unit_test(add__without_memory_to_grow__finds_all_and_grows_later),
	};

	return fault_memory_run(tests, 1);
}
