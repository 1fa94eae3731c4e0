/* What topics cost in libzmq's trie: beside a trie of the test's own, and by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "push/kept_topics.h"

#define HOLDERS 4
#define NAMES 64
#define NODE 32 /* as in kept_topics.c */
#define POINTER 16
#define TABLE 24
#define TOPIC 112
#define HELD 64

static struct kept_topics set;
static struct kept_holder holders[HOLDERS];

static void add(unsigned holder, const char *name)
{
	assert_int_equal(
		kept_topics_add(&set, &holders[holder], (const unsigned char *)name, strlen(name)),
		0);
}

static void drop(unsigned holder, const char *name)
{
	kept_topics_remove(&set, &holders[holder], (const unsigned char *)name, strlen(name));
}

static void leave_all(void)
{
	for (unsigned i = 0; i < HOLDERS; i++)
		kept_topics_leave(&set, &holders[i]);
	assert_int_equal(set.count, 0);
	assert_int_equal(kept_topics_cost(&set), 0);
	free(set.topics);
	set = (struct kept_topics){0};
}

static void topic__that_is_held_twice__costs_a_place_more(void **state)
{
	size_t one = TOPIC + 3 + 3 * NODE + HELD;

	(void)state;
	add(0, "web");
	assert_int_equal(kept_topics_cost(&set), one);
	add(0, "web");
	assert_int_equal(kept_topics_cost(&set), one);
	add(1, "web");
	assert_int_equal(kept_topics_cost(&set), one + HELD);
	assert_int_equal(kept_topics_count(&set), 2);
	assert_int_equal(kept_holder_count(&holders[0]), 1);
	assert_int_equal(kept_topics_share(&holders[0]), (one - HELD) / 2 + HELD);
	drop(0, "web");
	drop(0, "web");
	drop(0, "we");
	assert_int_equal(kept_topics_cost(&set), one);
	leave_all();
}

static void topics__with_a_common_beginning__share_its_nodes(void **state)
{
	(void)state;
	add(0, "web/b");
	add(0, "web/d");
	add(0, "web");
	assert_int_equal(kept_topics_cost(&set),
		3 * (TOPIC + HELD) + 13 + 6 * NODE + TABLE + POINTER * ('d' - 'b'));
	drop(0, "web/b");
	assert_int_equal(kept_topics_cost(&set), 2 * (TOPIC + HELD) + 8 + 5 * NODE);
	add(0, "");
	assert_int_equal(kept_topics_cost(&set), 3 * (TOPIC + HELD) + 8 + 5 * NODE);
	leave_all();
}

/* ---- beside a model ---- */

static char names[NAMES][8];
static int held[HOLDERS][NAMES];

static int is_held(unsigned name)
{
	int n = 0;

	for (unsigned i = 0; i < HOLDERS; i++)
		n += held[i][name];
	return n;
}

/* Children of the node with these bytes: the nodes below it, and the tables. */
static size_t cost_below(const char *prefix, size_t len)
{
	int first = -1, last = -1, before = -1;
	char found[256] = {0};
	size_t sum = 0;

	for (unsigned i = 0; i < NAMES; i++)
		if (is_held(i) && strncmp(names[i], prefix, len) == 0)
			found[(unsigned char)names[i][len]] = 1;
	for (int c = 1; c < 256; c++) {
		char longer[16] = "";

		if (!found[c])
			continue;
		memcpy(longer, prefix, len);
		longer[len] = (char)c;
		sum += NODE + cost_below(longer, len + 1) + (before >= 0 ? TABLE : 0);
		first = first < 0 ? c : first;
		before = last = c;
	}
	return sum + (last > first ? POINTER * (size_t)(last - first) : 0);
}

static size_t expected(void)
{
	size_t sum = cost_below("", 0);

	for (unsigned i = 0; i < NAMES; i++)
		if (is_held(i))
			sum += TOPIC + strlen(names[i]) + (size_t)is_held(i) * HELD;
	return sum;
}

static void cost__of_whatever_comes_and_goes__is_that_of_a_trie(void **state)
{
	size_t shares = 0;

	(void)state;
	srand(1);
	for (unsigned i = 0; i < NAMES; i++) /* all different */
		snprintf(names[i], sizeof(names[i]), "%c%c%.*s", 'a' + (int)(i % 3) * 7,
			'A' + (int)(i / 3), (int)(i % 4), "xyz");
	for (unsigned turn = 0; turn < 3000; turn++) {
		unsigned h = (unsigned)rand() % HOLDERS, n = (unsigned)rand() % NAMES;

		if (rand() % 50 == 0) {
			kept_topics_leave(&set, &holders[h]);
			memset(held[h], 0, sizeof(held[h]));
		} else if (rand() % 3) {
			add(h, names[n]);
			held[h][n] = 1;
		} else {
			drop(h, names[n]);
			held[h][n] = 0;
		}
		if (turn % 10 == 0)
			assert_int_equal(kept_topics_cost(&set), expected());
	}
	for (unsigned i = 0; i < HOLDERS; i++)
		shares += kept_topics_share(&holders[i]);
	assert_in_range(shares, kept_topics_cost(&set) - HOLDERS * NAMES, kept_topics_cost(&set));
	leave_all();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(topic__that_is_held_twice__costs_a_place_more),
		cmocka_unit_test(topics__with_a_common_beginning__share_its_nodes),
		cmocka_unit_test(cost__of_whatever_comes_and_goes__is_that_of_a_trie),
	};

	return cmocka_run_group_tests_name("kept_topics", tests, NULL, NULL);
}
