/*
 * Candidates while memory runs out at each allocation, of what was pulled and of what the store
 * has: that is said, and nothing else is made of it. The pull is played.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "verify/candidate.h"
#include "tests/unit/fixture/fault_memory.h"
#include "tests/unit/fixture/scratch.h"

#define MOST 2000
#define PARTS 3
#define SETTINGS                                                                                   \
	"servers: {main: {urls: [http://x]}}\n"                                                    \
	"configs:\n  web:\n    file: /run/web.json\n    format: json\n    from:\n"                 \
	"      - {server: main, path: /a.yaml}\n"                                                  \
	"      - {server: main, path: /b.yaml}\n"                                                  \
	"      - {server: main, path: /c.yaml, optional: true}\n"

/* ---- a pull that has ended ---- */

struct pull {
	struct pull_part parts[PARTS];
};

size_t pull_count(const struct pull *g)
{
	(void)g;
	return PARTS;
}

const struct pull_part *pull_part(const struct pull *g, size_t i)
{
	return &g->parts[i];
}

static char dir[SCRATCH_PATH];
static struct settings *settings;
static struct store *store;
static struct version held;
static struct buffer body;
static struct pull pulled;

static void put(size_t i, const char *text, const char *mismatch)
{
	struct pull_part *p = &pulled.parts[i];

	*p = (struct pull_part){.state = PULL_PULLED, .layer = i};
	assert_int_equal(part_init(&p->facts, "http://x", "\"2\"", "", "yaml"), 0);
	p->facts.len = strlen(text);
	buffer_init(&p->body, 1000);
	assert_int_equal(buffer_append_string(&p->body, text), 0);
	p->mismatch = mismatch ? strdup(mismatch) : NULL;
}

/* The first part is held, the others are new. */
static int begin(void **state)
{
	char why[FILE_WHY];

	(void)state;
	scratch_open(dir, scratch_memory());
	settings = scratch_settings("%s", SETTINGS);
	assert_int_equal(store_open(&sys_real, dir, "web", 10, &store, why), 0);
	version_begin(&held, &body, 1);
	for (size_t i = 0; i < PARTS; i++)
		version_add(&held, &body, "http://x", "yaml", i ? "b: 0\n" : "a: 1\n");
	version_end(&held, &body);
	assert_int_equal(store_save(store, &held, body.data, body.len, false, why), 0);
	pulled.parts[0] = (struct pull_part){.state = PULL_HELD};
	put(1, "b: {c: 2}\n", "of another digest");
	put(2, "d: [3]\n", NULL);
	return 0;
}

static int end(void **state)
{
	(void)state;
	for (size_t i = 1; i < PARTS; i++) {
		part_fini(&pulled.parts[i].facts);
		buffer_fini(&pulled.parts[i].body);
		free(pulled.parts[i].mismatch);
	}
	version_fini(&held);
	buffer_fini(&body);
	store_close(store);
	settings_free(settings);
	scratch_close(dir);
	return 0;
}

/* A step, with each of its allocations failing alone, then with all from there on, up to the first
 * round in which none is left to fail. `make` comes before it, with memory. */
static void fail_each(int (*make)(struct candidate *c, char *why),
	int (*step)(struct candidate *c, char *why), const char *sentence)
{
	for (int for_ever = 0; for_ever < 2; for_ever++) {
		unsigned failures = 0;

		for (unsigned n = 1; n == 1 || fault_memory.seen >= n - 1; n++) {
			long live = fault_memory.live;
			struct candidate *c = candidate_new();
			char why[FILE_WHY] = "";
			int r;

			assert_non_null(c);
			assert_int_equal(make ? make(c, why) : 0, 0);
			why[0] = '\0';
			fault_memory.seen = 0;
			fault_memory.for_ever = for_ever;
			fault_memory.nth = n;
			r = step(c, why);
			fault_memory.nth = 0;
			if (r && r != -ENOMEM)
				fail_msg("%u: %d %s", n, r, why);
			if (r && sentence)
				assert_string_equal(why, sentence);
			failures += r != 0;
			candidate_free(c);
			assert_int_equal(fault_memory.live, live);
			assert_in_range(n, 1, MOST);
		}
		assert_true(failures > 0);
	}
}

static int take(struct candidate *c, char *why)
{
	return candidate_take(c, &pulled, NULL, &held, &body, 77, why);
}

static int take_from_store(struct candidate *c, char *why)
{
	return candidate_take(c, &pulled, store, &held, NULL, 77, why);
}

static int load(struct candidate *c, char *why)
{
	unsigned damaged;

	return candidate_load(c, store, 1, &damaged, why);
}

static int compose(struct candidate *c, char *why)
{
	static const struct ledger none;

	return candidate_compose(c, settings->configs[0], &none, NULL, why);
}

static int take_and_compose(struct candidate *c, char *why)
{
	int r = take(c, why);

	return r ? r : compose(c, why);
}

static int make_outputs(struct candidate *c, char *why)
{
	return candidate_outputs(c, settings->configs[0], "v1", true, why);
}

static int compare(struct candidate *c, char *why)
{
	struct candidate *before = candidate_new();
	unsigned nth = fault_memory.nth;
	int r;

	fault_memory.nth = 0;
	assert_int_equal(load(before, why), 0);
	assert_int_equal(compose(before, why), 0);
	fault_memory.nth = nth;
	r = candidate_compare(c, before->composition.root);
	fault_memory.nth = 0;
	if (r == 0) {
		assert_false(c->all_changed);
		assert_int_equal(c->key_count, 3);
		assert_string_equal(c->keys[0], "b");
		assert_string_equal(c->keys[1], "b.c");
		assert_string_equal(c->keys[2], "d.0");
	}
	candidate_free(before);
	return r;
}

static int compare_files(struct candidate *c, char *why)
{
	(void)why;
	return candidate_compare_files(c, c, settings->configs[0]);
}

static void take__without_memory__says_so(void **state)
{
	(void)state;
	fail_each(NULL, take, "out of memory");
}

static void take__of_bytes_in_the_store__fails_for_memory_alone(void **state)
{
	(void)state;
	fail_each(NULL, take_from_store, NULL);
}

static void load__without_memory__says_which(void **state)
{
	(void)state;
	fail_each(NULL, load,
		"generation 1 cannot be read from the state directory: Cannot allocate memory");
}

static void compose__without_memory__is_not_the_documents_fault(void **state)
{
	(void)state;
	fail_each(take, compose, NULL);
}

static void outputs__without_memory__are_not_the_documents_fault(void **state)
{
	(void)state;
	fail_each(take_and_compose, make_outputs, NULL);
}

static void compare__without_memory__says_so(void **state)
{
	(void)state;
	fail_each(take_and_compose, compare, NULL);
	fail_each(take_and_compose, compare_files, NULL);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(take__without_memory__says_so),
		CASE(take__of_bytes_in_the_store__fails_for_memory_alone),
		CASE(load__without_memory__says_which),
		CASE(compose__without_memory__is_not_the_documents_fault),
		CASE(outputs__without_memory__are_not_the_documents_fault),
		CASE(compare__without_memory__says_so),
	};

	return fault_memory_run(tests, 6);
}
