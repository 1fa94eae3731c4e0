/*
 * The state directory and the ledger while memory and calls fail, one after the other: what was
 * saved is whole, what was not is not there, and nothing is left over.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/fixture/fault_memory.h"
#include "tests/unit/fixture/fault_sys.h"
#include "tests/unit/fixture/scratch.h"
#include "version/ledger.h"

#define MOST 2000

static struct sys sys;
static char dir[SCRATCH_PATH], files[SCRATCH_PATH + 8], why[FILE_WHY];
static unsigned descriptors;

static int set_up(void **state)
{
	(void)state;
	memset(&fault, 0, sizeof(fault));
	fault_memory.nth = 0;
	fault_memory.for_ever = false;
	sys = fault_table();
	scratch_open(dir, scratch_memory());
	snprintf(files, sizeof(files), "%s/web", dir);
	descriptors = scratch_descriptors();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	memset(&fault, 0, sizeof(fault));
	fault_memory.nth = 0;
	assert_int_equal(scratch_descriptors(), descriptors);
	scratch_close(dir);
	return 0;
}

/* A life of a state directory: opened, a version saved, listed, loaded, removed. Stops at the first
 * thing that fails. */
static int live(void)
{
	uint64_t generations[STORE_MAX_KEEP];
	struct store *s = NULL;
	struct version v, loaded, copy;
	struct store_file file;
	struct buffer body;
	unsigned damaged;
	int r, fd;

	v = (struct version){.generation = 0};
	r = store_open(&sys, dir, "web", 2, &s, why);
	if (r)
		return r;
	buffer_init(&body, 1u << 20);
	fault_memory.paused++;
	version_begin(&v, &body, store_next_generation(s));
	version_add(&v, &body, "http://example/web.yaml", "yaml", "n: 1\n");
	version_add(&v, &body, "", "yaml", NULL);
	assert_int_equal(part_set_epoch(&v.parts[0], "epoch"), 0);
	v.decisions = strdup("{}");
	version_end(&v, &body);
	fault_memory.paused--;
	r = store_save(s, &v, body.data, body.len, true, why);
	buffer_clear(&body);
	if (r == 0)
		r = store_load(s, &loaded, &body, &damaged);
	if (r == 0) {
		r = version_copy(&loaded, &copy);
		if (r == 0)
			version_fini(&copy);
		version_fini(&loaded);
	}
	if (r == 0)
		r = store_list(s, generations) ? 0 : -ENOENT;
	if (r == 0)
		r = store_describe_file(s, v.generation, &file);
	if (r == 0)
		r = store_sync(s, v.generation);
	if (r == 0) {
		r = fd = store_dir(s);
		if (fd >= 0)
			sys.close(fd);
		r = r < 0 ? r : 0;
	}
	store_prune(s, true, &v.generation, 1, 0);
	if (r == 0)
		store_remove(s, v.generation);
	version_fini(&v);
	buffer_fini(&body);
	store_close(s);
	return r;
}

/* A file that was not saved whole is not taken for one, and temporary files are gone after the next
 * start. */
static void assert_whole(void)
{
	struct version v;
	struct buffer body;
	struct store *s;
	unsigned damaged = 0;
	int r;

	assert_int_equal(store_open(&sys, dir, "web", 2, &s, why), 0);
	buffer_init(&body, 1u << 20);
	r = store_load(s, &v, &body, &damaged);
	assert_true(r == 0 || r == -ENOENT);
	if (r == 0) {
		assert_string_equal(body.data, "n: 1\n");
		version_fini(&v);
	}
	assert_int_equal(damaged, 0);
	buffer_fini(&body);
	store_close(s);
	assert_int_equal(scratch_count(files, ".pullet-"), 0);
}

static void store__with_each_allocation_failing__stays_whole(void **state)
{
	(void)state;
	for (int round = 0; round < 2; round++) {
		for (unsigned n = 1;; n++) {
			fault_memory.seen = 0;
			fault_memory.for_ever = round;
			fault_memory.nth = n;
			live();
			fault_memory.nth = 0;
			assert_whole();
			if (fault_memory.seen < n)
				break;
			assert_in_range(n, 1, MOST);
		}
	}
}

static void store__with_each_call_failing__stays_whole(void **state)
{
	static const int errors[] = {EIO, ENOSPC, EMFILE, EROFS, ENOENT, EPERM};

	(void)state;
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		for (int round = 0; round < 2; round++) {
			for (unsigned n = 1;; n++) {
				bool hit;

				memset(&fault, 0, sizeof(fault));
				fault.call = -1;
				fault.nth = n;
				fault.for_ever = round;
				fault.error = errors[i];
				live();
				hit = fault.seen >= n;
				memset(&fault, 0, sizeof(fault));
				assert_whole();
				if (!hit)
					break;
				assert_in_range(n, 1, MOST);
			}
		}
	}
}

/* ---- the newest of two versions ---- */

static void save_two(void)
{
	struct store *s;
	struct version v;
	struct buffer body;

	assert_int_equal(store_open(&sys, dir, "web", 2, &s, why), 0);
	for (int i = 0; i < 2; i++) {
		version_begin(&v, &body, store_next_generation(s));
		version_add(&v, &body, "", "yaml", i ? "new: 1\n" : "old: 1\n");
		v.decisions = strdup("{\"n\": 1}");
		version_end(&v, &body);
		assert_int_equal(store_save(s, &v, body.data, body.len, true, why), 0);
		version_fini(&v);
		buffer_fini(&body);
	}
	store_close(s);
}

/* Loads what is newest: 0, or why it could not be. An older version instead, or a whole file set
 * aside, would be a version that readers have seen and see no more. */
static int load_newest(void)
{
	struct store *s = NULL;
	struct version v;
	struct buffer body;
	unsigned damaged = 0;
	bool is_newest = true;
	int r = store_open(&sys, dir, "web", 2, &s, why);

	buffer_init(&body, 1u << 20);
	if (r == 0)
		r = store_load(s, &v, &body, &damaged);
	fault_memory.nth = 0;
	if (r == 0) {
		is_newest = strcmp(body.data, "new: 1\n") == 0;
		version_fini(&v);
	}
	buffer_fini(&body);
	store_close(s);
	assert_true(is_newest);
	assert_int_equal(damaged, 0);
	assert_int_equal(scratch_count(files, ".bad"), 0);
	return r;
}

static void load__with_each_allocation_failing__gives_no_older_version(void **state)
{
	(void)state;
	save_two();
	for (unsigned n = 1;; n++) {
		fault_memory.seen = 0;
		fault_memory.nth = n;
		load_newest();
		assert_int_equal(load_newest(), 0);
		if (fault_memory.seen < n)
			break;
		assert_in_range(n, 1, MOST);
	}
}

static void load__that_is_interrupted_or_lacks_descriptors__gives_no_older_version(void **state)
{
	static const int errors[] = {EINTR, EMFILE, ENFILE, ENOMEM};

	(void)state;
	save_two();
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		bool hit = true;

		for (unsigned n = 1; hit; n++) {
			fault = (struct fault){.call = CALL_OPEN, .nth = n, .error = errors[i]};
			load_newest();
			hit = fault.seen >= n;
			memset(&fault, 0, sizeof(fault));
			assert_int_equal(load_newest(), 0);
			assert_in_range(n, 1, MOST);
		}
	}
}

/* ---- the ledger ---- */

static int fill_ledger(struct ledger *l)
{
	static const uint64_t revs[LEDGER_MAX_LAYERS] = {7};
	int r = ledger_pin(l, 5, "ann", "reason", "abc");

	if (r == 0)
		r = ledger_suspend(l, 5, "ann", "reason");
	if (r == 0)
		r = ledger_override(l, "k", "1", 5, "ann", "reason");
	if (r == 0)
		r = ledger_override(l, "k", "2", 5, "ann", "reason");
	if (r == 0)
		r = ledger_reject(l, "abc", "guard", "x", 1, "why");
	if (r == 0)
		r = ledger_reject(l, "abc", "schema", "x", 1, "why");
	if (r == 0)
		r = ledger_reserve_revs(l);
	if (r == 0)
		ledger_raise_revs(l, revs);
	return r;
}

static int live_with_ledger(int at)
{
	struct ledger *l = NULL, *read = NULL;
	struct ledger *copy = calloc(1, sizeof(*copy));
	struct buffer out;
	int r;

	buffer_init(&out, 1u << 16);
	r = copy ? ledger_load(&sys, at, &l) : -ENOMEM;
	if (r == 0)
		r = fill_ledger(l);
	if (r == 0)
		r = ledger_write(l, &out);
	if (r == 0)
		r = ledger_read(out.data, out.len, &read);
	if (r == 0)
		r = ledger_copy_overrides(copy, read);
	if (r == 0) {
		size_t decided = read->override_count;

		ledger_adopt_decisions(copy, 9, read, "abc", true);
		assert_int_equal(copy->override_count, decided); /* without memory, too */
	}
	if (r == 0)
		r = ledger_save(l, &sys, at, true, why);
	if (r == 0)
		r = ledger_sync(&sys, at);
	buffer_fini(&out);
	ledger_free(read);
	ledger_free(copy);
	ledger_free(l);
	return r;
}

static void assert_ledger_whole(int at)
{
	struct ledger *l;

	assert_int_equal(ledger_load(&sys, at, &l), 0);
	if (l->pin.by) {
		assert_string_equal(l->overrides[0].value, "2");
		assert_int_equal(ledger_revs(l)[0], 7);
		assert_string_equal(l->verdicts[0].check, "schema");
	}
	ledger_free(l);
}

static int open_place(void)
{
	int at = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(at >= 0);
	return at;
}

static void ledger__with_each_allocation_failing__stays_whole(void **state)
{
	int at = open_place(), r = -1;

	(void)state;
	for (unsigned n = 1; r; n++) {
		fault_memory.seen = 0;
		fault_memory.nth = n;
		r = live_with_ledger(at);
		fault_memory.nth = 0;
		assert_ledger_whole(at);
		assert_in_range(n, 1, MOST);
	}
	close(at);
}

static int pin(struct ledger *l)
{
	return ledger_pin(l, 5, "ann", "reason", "abc");
}

static int suspend(struct ledger *l)
{
	return ledger_suspend(l, 5, "ann", "reason");
}

static int override(struct ledger *l)
{
	return ledger_override(l, "k", "1", 5, "ann", "reason");
}

static int reject(struct ledger *l)
{
	return ledger_reject(l, "abc", "guard", "x", 1, "why");
}

static int copy_overrides(struct ledger *l)
{
	struct ledger from = {.pin.until_ms = 0};
	int r;

	fault_memory.paused++;
	assert_int_equal(override(&from), 0);
	fault_memory.paused--;
	r = ledger_copy_overrides(l, &from);
	ledger_drop_override(&from, "k");
	free(from.overrides);
	return r;
}

static int write_text(struct ledger *l)
{
	struct buffer out;
	int r;

	buffer_init(&out, 1u << 16);
	r = ledger_write(l, &out);
	buffer_fini(&out);
	return r;
}

static void operation_of_ledger__with_each_allocation_failing__says_so(void **state)
{
	static int (*const operations[])(struct ledger *) = {
		pin, suspend, override, reject, ledger_reserve_revs, copy_overrides, write_text};

	(void)state;
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
		for (unsigned n = 1;; n++) {
			struct ledger *l = calloc(1, sizeof(*l));
			int r;

			fault_memory.seen = 0;
			fault_memory.nth = n;
			r = operations[i](l);
			fault_memory.nth = 0;
			ledger_free(l);
			if (fault_memory.seen < n) {
				assert_true(n > 1);
				assert_int_equal(r, 0);
				break;
			}
			assert_int_equal(r, -ENOMEM);
		}
}

static void load_of_ledger__with_each_allocation_failing__forgets_nothing(void **state)
{
	int at = open_place(), r;
	struct ledger *l;

	(void)state;
	assert_int_equal(live_with_ledger(at), 0);
	fault_memory.seen = 0;
	for (unsigned n = 1; fault_memory.seen >= n - 1; n++) {
		l = NULL;
		fault_memory.seen = 0;
		fault_memory.nth = n;
		r = ledger_load(&sys, at, &l);
		fault_memory.nth = 0;
		assert_true(r == -ENOMEM || (r == 0 && l->pin.by && l->verdict_count == 1));
		ledger_free(l);
		assert_in_range(n, 1, MOST);
	}
	close(at);
}

static void ledger__with_each_call_failing__stays_whole(void **state)
{
	int at = open_place(), r = -1;

	(void)state;
	for (unsigned n = 1; r; n++) {
		memset(&fault, 0, sizeof(fault));
		fault.call = -1;
		fault.nth = n;
		fault.error = EIO;
		r = live_with_ledger(at);
		memset(&fault, 0, sizeof(fault));
		assert_ledger_whole(at);
		assert_in_range(n, 1, MOST);
	}
	close(at);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(store__with_each_call_failing__stays_whole),
		TEST(ledger__with_each_call_failing__stays_whole),
		TEST(load__that_is_interrupted_or_lacks_descriptors__gives_no_older_version),
		TEST(store__with_each_allocation_failing__stays_whole),
		TEST(load__with_each_allocation_failing__gives_no_older_version),
		TEST(ledger__with_each_allocation_failing__stays_whole),
		TEST(load_of_ledger__with_each_allocation_failing__forgets_nothing),
		TEST(operation_of_ledger__with_each_allocation_failing__says_so),
	};

	return fault_memory_run(tests, 5);
}
