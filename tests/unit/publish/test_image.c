/*
 * A snapshot and its control page: built, replaced whole, raised; what others do to the two is seen
 * and put right; each call may fail.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "document/document.h"
#include "lib/page.h"
#include "lib/snapshot.h"
#include "publish/image.h"
#include "tests/unit/fixture/fault_memory.h"
#include "tests/unit/fixture/fault_sys.h"
#include "tests/unit/fixture/page_waiters.h"
#include "tests/unit/fixture/scratch.h"

static struct sys sys;
static char dir[SCRATCH_PATH];
static struct image *image;
static void *data;
static size_t len;
static char why[FILE_WHY];

static int set_up(void **state)
{
	(void)state;
	memset(&fault, 0, sizeof(fault));
	fault_memory.nth = 0;
	sys = fault_table();
	scratch_open(dir, scratch_memory());
	image = NULL;
	data = NULL;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	image_close(image);
	assert_false(scratch_is_mapped(dir));
	free(data);
	scratch_close(dir);
	return 0;
}

static int open_image(void)
{
	int r = image_open(&sys, dir, "web", NULL, &image, why);

	if (r)
		image = NULL;
	return r;
}

static int build(const char *text, uint64_t max_bytes)
{
	struct document *d = NULL;
	struct document_error error;
	int r;

	free(data);
	data = NULL;
	assert_int_equal(document_parse(DOCUMENT_YAML, text, strlen(text), 0, &d, &error), 0);
	r = image_build(document_root(d), 1, "v1", max_bytes, &data, &len, why);
	document_free(d);
	return r;
}

static const struct page *map_page(void)
{
	char path[SCRATCH_PATH + 16];
	const struct page *page;
	int fd;

	snprintf(path, sizeof(path), "%s/web.gen", dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	page = mmap(NULL, PAGE_SIZE, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	assert_true(page != MAP_FAILED);
	return page;
}

static uint64_t page_generation(void)
{
	const struct page *page = map_page();
	uint64_t generation = atomic_load(&page->generation);

	munmap((void *)(uintptr_t)page, PAGE_SIZE);
	return generation;
}

static void publish(uint64_t generation)
{
	assert_int_equal(image_publish(image, data, len, generation, why), 0);
	assert_int_equal(page_generation(), generation);
}

/* ---- built ---- */

static void build__of_every_type__has_all_values(void **state)
{
	char text[4096] = "a: 1\nb: true\nc: 1.5\nd: text\ne: [1, {x: null}]\nf: {}\n";

	(void)state;
	for (int i = 0; i < 100; i++) /* more than fits the first room */
		snprintf(text + strlen(text), 32, "k%d: %d\n", i, i);
	assert_int_equal(build(text, 1u << 20), 0);
	assert_true(len > 1000);
}

static void build__of_every_type__has_each_value_as_it_is(void **state)
{
	static const struct {
		const char *key;
		struct pullet_value value;
	} table[] = {
		{"a", {.type = PULLET_INT, .integer = -7, .text = "-7"}},
		{"b", {.type = PULLET_BOOL, .boolean = true, .text = "true"}},
		{"c", {.type = PULLET_DOUBLE, .number = 1.5, .text = "1.5"}},
		{"d", {.type = PULLET_STRING, .text = "text"}},
		{"e", {.type = PULLET_LIST, .count = 2, .text = ""}},
		{"e.0", {.type = PULLET_INT, .integer = 1, .text = "1"}},
		{"e.1", {.type = PULLET_MAP, .count = 1, .text = ""}},
		{"e.1.x", {.type = PULLET_NULL, .text = ""}},
		{"f", {.type = PULLET_MAP, .count = 0, .text = ""}},
		{"g", {.type = PULLET_BOOL, .boolean = false, .text = "false"}},
	};
	struct pullet_value v;
	struct snapshot s;

	(void)state;
	assert_int_equal(build("a: -7\nb: true\nc: 1.5\nd: text\ne: [1, {x: null}]\nf: {}\n"
			       "g: false\n",
				 1u << 20),
		0);
	assert_int_equal(snapshot_open(data, len, &s), 0);
	assert_string_equal(snapshot_version(&s), "v1");
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const struct pullet_value *want = &table[i].value;

		assert_int_equal(snapshot_get(&s, table[i].key, strlen(table[i].key), &v), 0);
		assert_int_equal(v.type, want->type);
		assert_string_equal(v.text, want->text);
		assert_int_equal(v.len, strlen(want->text));
		if (want->type == PULLET_BOOL)
			assert_int_equal(v.boolean, want->boolean);
		else if (want->type == PULLET_INT)
			assert_int_equal(v.integer, want->integer);
		else if (want->type == PULLET_DOUBLE)
			assert_true(!(v.number < want->number) && !(v.number > want->number));
		else if (want->type == PULLET_LIST || want->type == PULLET_MAP)
			assert_int_equal(v.count, want->count);
	}
	assert_int_equal(snapshot_get(&s, "e.2", 3, &v), -ENOENT);
}

static void build__beyond_its_bound__says_so(void **state)
{
	(void)state;
	assert_int_equal(build("a: 1\n", 10), -EMSGSIZE);
	assert_non_null(strstr(why, "its snapshot"));
}

static void build__of_a_key_with_a_dot__is_another_path(void **state)
{
	(void)state;
	assert_int_equal(build("a: {b: 1}\na.b: 2\n", 1u << 20), 0);
}

/* No parser makes such a tree. */
static void build__of_two_equal_keys__says_so(void **state)
{
	struct node second = {.type = NODE_NULL, .key = "a", .key_len = 1};
	struct node first = {.type = NODE_NULL, .key = "a", .key_len = 1, .next = &second};
	const struct node root = {.type = NODE_MAP, .first = &first, .count = 2};

	(void)state;
	assert_int_equal(image_build(&root, 1, "v1", 1u << 20, &data, &len, why), -EINVAL);
	assert_string_equal(
		why, "no snapshot can be made of it: two of its values have the same path");
	assert_null(data);
}

static void build__without_memory__fails_and_leaves_nothing(void **state)
{
	struct document *d = NULL;
	struct document_error error;
	int r = -1;

	(void)state;
	assert_int_equal(
		document_parse(DOCUMENT_YAML, "a: {b: [1, 2]}\nc: 3\n", 20, 0, &d, &error), 0);
	for (unsigned n = 1; r; n++) {
		fault_memory.seen = 0;
		fault_memory.nth = n;
		r = image_build(document_root(d), 1, "v1", 1u << 20, &data, &len, why);
		fault_memory.nth = 0;
		assert_int_equal(r, fault_memory.seen < n ? 0 : -ENOMEM);
		assert_in_range(n, 1, 100);
	}
	document_free(d);
}

/* Each record is behind the one before, and is found by its key. */
static size_t assert_in_order(void)
{
	struct pullet_value v;
	const char *key, *last = NULL;
	size_t key_len, last_len = 0, n = 0;
	struct snapshot s;

	assert_int_equal(snapshot_open(data, len, &s), 0);
	for (; snapshot_at(&s, n, &key, &key_len, &v); n++) {
		if (last)
			assert_true(document_compare_text(last, last_len, key, key_len) < 0);
		assert_int_equal(snapshot_get(&s, key, key_len, &v), 0);
		last = key;
		last_len = key_len;
	}
	return n;
}

/* Paths that come in another order than their keys: a, a-b, a.x; l.10 before l.2. */
static void build__of_keys_in_any_order__is_one_image(void **state)
{
	static const char *const members[] = {"a: {x: 1, b: 2}\n", "a-b: 1\n", "aZ: 2\n",
		"'a.b': {'c\\d': 3, 'c.d': 4, c: {}}\n", "B: [x]\n", "\xc3\xa9: {z: 1, y: 2}\n",
		"'0': no\n", "l: [0, 1, 2, 3, 4, {k: 5, j: 6}, 6, 7, 8, 9, 10, [11, 12], 12]\n"};
	const size_t count = sizeof(members) / sizeof(members[0]);
	void *first = NULL;
	size_t first_len = 0;

	(void)state;
	for (size_t step = 1; step < 2 * count; step += 2) { /* odd: it meets all of eight */
		struct buffer text;

		buffer_init(&text, 1u << 20);
		for (size_t i = 0; i < count; i++)
			buffer_append_string(&text, members[(step + i * step) % count]);
		assert_int_equal(build(text.data, 1u << 20), 0);
		buffer_fini(&text);
		assert_int_equal(assert_in_order(), 33);
		if (!first) {
			first = data;
			first_len = len;
			data = NULL;
			continue;
		}
		assert_int_equal(len, first_len);
		assert_memory_equal(data, first, len);
	}
	free(first);
}

static void build__of_a_long_list__has_each_item_in_its_place(void **state)
{
	struct buffer text;

	(void)state;
	buffer_init(&text, 1u << 20);
	buffer_append_string(&text, "l: [0");
	for (unsigned i = 1; i < 1234; i++)
		buffer_printf(&text, ", %u", i);
	buffer_append_string(&text, "]\n");
	assert_int_equal(build(text.data, 1u << 20), 0);
	buffer_fini(&text);
	assert_int_equal(assert_in_order(), 1235);
}

/* ---- published ---- */

static void publish__raises_the_page_and_is_current(void **state)
{
	(void)state;
	assert_int_equal(open_image(), 0);
	assert_string_equal(image_name(image), "web.snap");
	assert_true(image_in_memory(image) || strcmp(scratch_memory(), scratch_disk()) == 0);
	assert_int_equal(build("n: 1\n", 1u << 20), 0);
	assert_false(image_is_current(image));
	publish(3);
	assert_true(image_is_current(image));
	image_confirm(image, 77, 1000);
	assert_int_equal(image_confirmed_ms(image), 77);
	image_close(image);
	assert_int_equal(open_image(), 0);
	assert_false(image_is_current(image)); /* not known yet */
	publish(3);                            /* the same: not written again */
	assert_true(image_is_current(image));
}

static void publish__wakes_all_readers_that_sleep_on_the_page(void **state)
{
	const struct page *page;

	(void)state;
	assert_int_equal(open_image(), 0);
	assert_int_equal(build("n: 1\n", 1u << 20), 0);
	publish(1);
	page = map_page();
	waiters_start(page);
	publish(2);
	assert_int_equal(waiters_end(), WAITERS);
	munmap((void *)(uintptr_t)page, PAGE_SIZE);
}

static void prepared__and_abandoned__leaves_the_old_one(void **state)
{
	(void)state;
	assert_int_equal(open_image(), 0);
	assert_int_equal(build("n: 1\n", 1u << 20), 0);
	publish(1);
	assert_int_equal(build("n: 2\n", 1u << 20), 0);
	assert_int_equal(image_prepare(image, data, len, 2, why), 0);
	image_abandon(image);
	image_abandon(image);
	assert_true(image_is_current(image));
	assert_int_equal(page_generation(), 1);
	assert_int_equal(scratch_count(dir, ".pullet-"), 0);
}

/* As exFAT does. */
static int stat_in_any_case(int at, const char *name, struct stat *ret_st, int flags)
{
	return fstatat(at, strcasecmp(name, "web.snap") == 0 ? "WEB.snap" : name, ret_st, flags);
}

static void prepared__where_it_is_another_file_in_another_case__is_refused(void **state)
{
	(void)state;
	assert_int_equal(open_image(), 0);
	assert_int_equal(build("n: 1\n", 1u << 20), 0);
	scratch_write(dir, "WEB.snap", "", 0);
	sys.fstatat = stat_in_any_case;
	assert_int_equal(image_prepare(image, data, len, 1, why), -EEXIST);
	assert_non_null(strstr(why, "/web.snap: WEB.snap is the same there"));
	assert_int_equal(scratch_count(dir, "web.snap"), 0);
}

static void prepared__and_published__is_the_new_one(void **state)
{
	(void)state;
	assert_int_equal(open_image(), 0);
	assert_int_equal(build("n: 1\n", 1u << 20), 0);
	assert_int_equal(image_prepare(image, data, len, 4, why), 0);
	publish(4);
}

/* After a start, where the same image is there: nothing is written, nothing is removed. */
static void prepared__where_it_is_there__is_not_removed_by_abandoning(void **state)
{
	(void)state;
	assert_int_equal(open_image(), 0);
	assert_int_equal(build("n: 1\n", 1u << 20), 0);
	publish(3);
	image_close(image);
	assert_int_equal(open_image(), 0);
	fault = (struct fault){0};
	assert_int_equal(image_prepare(image, data, len, 3, why), 0);
	image_abandon(image);
	assert_null(strpbrk(fault.trace, "wu"));
	assert_int_equal(scratch_count(dir, "web.snap"), 1);
	assert_int_equal(page_generation(), 3);
}

static void prepared__where_it_is_there__is_not_current_when_removed_meanwhile(void **state)
{
	char path[SCRATCH_PATH + 16];

	(void)state;
	snprintf(path, sizeof(path), "%s/web.snap", dir);
	assert_int_equal(open_image(), 0);
	assert_int_equal(build("n: 1\n", 1u << 20), 0);
	publish(3);
	image_close(image);
	assert_int_equal(open_image(), 0);
	assert_int_equal(image_prepare(image, data, len, 3, why), 0);
	assert_int_equal(unlink(path), 0);
	publish(3);
	assert_false(image_is_current(image));
	publish(3); /* as the agent does then */
	assert_int_equal(scratch_count(dir, "web.snap"), 1);
	assert_true(image_is_current(image));
}

/* ---- verified for readers ---- */

/* Whether the page vouches for the file that is in place. */
static bool is_vouched_for(void)
{
	char path[SCRATCH_PATH + 16];
	const struct page *page = map_page();
	struct snapshot s;
	struct stat st;
	bool vouched;

	snprintf(path, sizeof(path), "%s/web.snap", dir);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(snapshot_open(data, len, &s), 0);
	vouched = atomic_load(&page->verified_ino) == st.st_ino &&
		  atomic_load(&page->verified_ctime_ns) == page_time_ns(&st.st_ctim) &&
		  atomic_load(&page->verified_digest) == snapshot_digest(&s);
	assert_true(vouched || atomic_load(&page->verified_ino) == 0);
	munmap((void *)(uintptr_t)page, PAGE_SIZE);
	return vouched;
}

static void publish__in_memory__vouches_for_the_file(void **state)
{
	char path[SCRATCH_PATH + 16];

	(void)state;
	scratch_need_memory();
	assert_int_equal(open_image(), 0);
	for (uint64_t n = 1; n < 4; n++) {
		assert_int_equal(build("n: 1\n", 1u << 20), 0);
		publish(n);
		assert_true(is_vouched_for());
	}
	image_close(image);
	assert_int_equal(open_image(), 0);
	publish(3); /* the same file is there: what the page says of it holds */
	assert_true(is_vouched_for());
	snprintf(path, sizeof(path), "%s/web.gen", dir);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(image_keep_page(image, why), 0); /* so does the page made in its place */
	assert_true(is_vouched_for());
}

/* A power cut may take what a disk does not have yet, and leave the page. */
static void publish__on_a_disk__vouches_for_nothing(void **state)
{
	(void)state;
	scratch_close(dir);
	scratch_open(dir, scratch_disk());
	assert_int_equal(open_image(), 0);
	if (image_in_memory(image)) {
		print_message("# %s is in memory\n", scratch_disk());
		skip();
	}
	assert_int_equal(build("n: 1\n", 1u << 20), 0);
	publish(1);
	assert_false(is_vouched_for());
}

/* Another file has the name, or its bytes changed, between the rename and a look at it. */
static int rename_and_replace(int from_dir, const char *from, int to_dir, const char *to)
{
	int r = renameat(from_dir, from, to_dir, to);

	if (r == 0 && strcmp(to, "web.snap") == 0) {
		assert_int_equal(unlinkat(to_dir, to, 0), 0);
		scratch_write(dir, to, data, len);
	}
	return r;
}

static int rename_and_change(int from_dir, const char *from, int to_dir, const char *to)
{
	const struct timespec times[2] = {{0, UTIME_OMIT}, {1, 1}};
	int r = renameat(from_dir, from, to_dir, to);

	if (r == 0 && strcmp(to, "web.snap") == 0)
		assert_int_equal(utimensat(to_dir, to, times, 0), 0);
	return r;
}

static int rename_and_cut(int from_dir, const char *from, int to_dir, const char *to)
{
	char path[SCRATCH_PATH + 16];
	int r = renameat(from_dir, from, to_dir, to);

	snprintf(path, sizeof(path), "%s/%s", dir, to);
	if (r == 0 && strcmp(to, "web.snap") == 0)
		assert_int_equal(truncate(path, (off_t)len - 8), 0);
	return r;
}

static void publish__where_somebody_touches_the_file__vouches_for_nothing(void **state)
{
	int (*const acts[])(int, const char *, int, const char *) = {
		rename_and_replace, rename_and_change, rename_and_cut};

	(void)state;
	scratch_need_memory();
	assert_int_equal(open_image(), 0);
	for (uint64_t n = 0; n < sizeof(acts) / sizeof(acts[0]); n++) {
		assert_int_equal(build("n: 1\n", 1u << 20), 0);
		publish(2 * n + 1);
		assert_true(is_vouched_for());
		sys.renameat = acts[n];
		publish(2 * n + 2);
		assert_false(is_vouched_for());
		sys.renameat = sys_real.renameat;
	}
}

/* Files that were replaced, and are mapped. */
static unsigned count_kept(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[PATH_MAX + 200];
	unsigned n = 0;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		n += strstr(line, dir) && strstr(line, "web.snap (deleted)");
	fclose(f);
	return n;
}

static void publish__over_a_large_file__keeps_it_until_readers_had_time_to_leave(void **state)
{
	char text[100000] = "n: ";

	(void)state;
	scratch_need_memory();
	memset(text + 3, 'x', sizeof(text) - 4);
	assert_int_equal(open_image(), 0);
	assert_int_equal(build(text, 1u << 20), 0);
	publish(1);
	assert_int_equal(count_kept(), 0);
	publish(2);
	assert_int_equal(count_kept(), 1);
	publish(3);
	assert_int_equal(count_kept(), 1);
	image_confirm(image, 77, 1000); /* that of this publication */
	assert_int_equal(count_kept(), 1);
	publish(4);
	assert_int_equal(count_kept(), 2);
	image_confirm(image, 78, 1000);
	assert_int_equal(count_kept(), 1);
	image_confirm(image, 79, 1000);
	assert_int_equal(count_kept(), 0);
	assert_int_equal(build("n: 1\n", 1u << 20), 0);
	publish(5);
	assert_int_equal(count_kept(), 1);
	publish(6); /* over a small one */
	assert_int_equal(count_kept(), 0);
}

static int rename_and_remove_the_page(int from_dir, const char *from, int to_dir, const char *to)
{
	unlinkat(to_dir, "web.gen", 0);
	return renameat(from_dir, from, to_dir, to);
}

static void page__that_somebody_removes__is_made_again(void **state)
{
	const struct page *old;
	char path[SCRATCH_PATH + 16];

	(void)state;
	snprintf(path, sizeof(path), "%s/web.gen", dir);
	assert_int_equal(open_image(), 0);
	assert_int_equal(build("n: 1\n", 1u << 20), 0);
	publish(1);
	assert_int_equal(image_keep_page(image, why), 0); /* it is in its place */
	old = map_page();
	assert_int_equal(unlink(path), 0);
	assert_int_equal(image_keep_page(image, why), 0);
	assert_int_equal(page_generation(), 1);
	assert_int_equal(unlink(path), 0);
	publish(2); /* also by a publication, again and again */
	assert_int_equal(unlink(path), 0);
	publish(3);
	sys.renameat = rename_and_remove_the_page;
	publish(4); /* in the middle of one, too */
	sys.renameat = sys_real.renameat;
	munmap((void *)(uintptr_t)old, PAGE_SIZE);
}

/* By another valid page: readers that open it must find the generation there. */
static void page__that_somebody_replaces__gets_the_generation(void **state)
{
	char path[SCRATCH_PATH + 16], aside[SCRATCH_PATH + 16];
	const struct page *old;

	(void)state;
	snprintf(path, sizeof(path), "%s/web.gen", dir);
	snprintf(aside, sizeof(aside), "%s/aside", dir);
	assert_int_equal(open_image(), 0);
	image_close(image);
	assert_int_equal(rename(path, aside), 0); /* without a generation */
	assert_int_equal(open_image(), 0);
	assert_int_equal(build("n: 1\n", 1u << 20), 0);
	publish(5);
	image_confirm(image, 77, 1000);
	old = map_page();
	assert_int_equal(rename(aside, path), 0);
	assert_int_equal(page_generation(), 0);
	assert_int_equal(image_keep_page(image, why), 0);
	assert_int_equal(page_generation(), 5);
	assert_int_equal(image_confirmed_ms(image), 77);
	assert_int_equal(atomic_load(&old->futex), 2); /* its readers are woken to open the other */
	publish(6);
	assert_int_equal(atomic_load(&old->generation), 6);
	munmap((void *)(uintptr_t)old, PAGE_SIZE);
}

/* What the page says, which was cut to this many bytes, is said again in a new one. */
static void page__that_somebody_cuts_short__is_made_again(void **state)
{
	static const off_t lengths[] = {0, 8, 100};
	char path[SCRATCH_PATH + 16];

	(void)state;
	snprintf(path, sizeof(path), "%s/web.gen", dir);
	assert_int_equal(open_image(), 0);
	assert_int_equal(build("n: 1\n", 1u << 20), 0);
	image_confirm(image, 77, 99);
	for (size_t i = 0; i < 3; i++) {
		uint64_t n = 2 * i + 1;

		publish(n);
		assert_int_equal(truncate(path, lengths[i]), 0);
		assert_int_equal(image_keep_page(image, why), 0);
		assert_int_equal(page_generation(), n);
		assert_int_equal(image_confirmed_ms(image), 77);
		assert_int_equal(truncate(path, lengths[i]), 0);
		image_confirm(image, 77, 99);
		publish(n + 1);
		assert_int_equal(page_generation(), n + 1);
		assert_int_equal(image_confirmed_ms(image), 77);
	}
}

static void page__that_cannot_be_made_again__is_an_error_until_it_can(void **state)
{
	const struct page *old;
	char path[SCRATCH_PATH + 16];

	(void)state;
	snprintf(path, sizeof(path), "%s/web.gen", dir);
	assert_int_equal(open_image(), 0);
	assert_int_equal(build("n: 1\n", 1u << 20), 0);
	publish(1);
	old = map_page();
	assert_int_equal(unlink(path), 0);
	fault = (struct fault){.call = CALL_WRITE, .nth = 1, .error = ENOSPC};
	assert_int_equal(image_keep_page(image, why), -ENOSPC);
	assert_non_null(strstr(why, "cannot write"));
	assert_int_equal(scratch_count(dir, ".gen"), 0);
	assert_int_equal(atomic_load(&old->futex), 1); /* there is none that readers could open */
	/* a publication raises the one that readers have, all the same */
	fault = (struct fault){.call = CALL_WRITE, .nth = 2, .error = ENOSPC};
	assert_int_equal(image_publish(image, data, len, 2, why), 0);
	assert_int_equal(fault.seen, 2);
	assert_int_equal(atomic_load(&old->generation), 2);
	fault = (struct fault){0};
	assert_int_equal(image_keep_page(image, why), 0);
	assert_int_equal(page_generation(), 2);
	munmap((void *)(uintptr_t)old, PAGE_SIZE);
}

static void page__that_is_none__is_replaced(void **state)
{
	char path[SCRATCH_PATH + 16], other[SCRATCH_PATH + 16];

	(void)state;
	snprintf(path, sizeof(path), "%s/web.gen", dir);
	snprintf(other, sizeof(other), "%s/other", dir);
	scratch_write(dir, "web.gen", "short", 5);
	assert_int_equal(open_image(), 0);
	image_close(image);
	assert_int_equal(link(path, other), 0); /* a second name */
	assert_int_equal(open_image(), 0);
	image_close(image);
	assert_int_equal(chmod(path, 0666), 0);
	assert_int_equal(open_image(), 0);
	image_close(image);
	assert_int_equal(chmod(path, 0660), 0);
	assert_int_equal(open_image(), 0);
	image_close(image);
	assert_int_equal(unlink(path), 0);
	scratch_write(dir, "web.gen", "", 0);
	assert_int_equal(truncate(path, PAGE_SIZE), 0); /* without the magic */
	assert_int_equal(open_image(), 0);
	image_close(image);
	if (getuid() == 0) {
		assert_int_equal(chown(path, 1, (gid_t)-1), 0);
		assert_int_equal(open_image(), 0);
		image_close(image);
	}
	image = NULL;
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0); /* cannot be replaced */
	assert_int_not_equal(open_image(), 0);
	assert_int_equal(rmdir(path), 0);
}

static void snapshot__that_is_touched__is_not_current(void **state)
{
	char path[SCRATCH_PATH + 16];

	(void)state;
	snprintf(path, sizeof(path), "%s/web.snap", dir);
	assert_int_equal(open_image(), 0);
	assert_int_equal(build("n: 1\n", 1u << 20), 0);
	publish(1);
	scratch_write(dir, "web.snap", "harm", 4);
	assert_int_equal(truncate(path, (off_t)len), 0); /* as long as it was */
	assert_false(image_is_current(image));
	publish(1);
	assert_true(image_is_current(image));
	assert_int_equal(unlink(path), 0);
	assert_false(image_is_current(image));
	publish(1);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_not_equal(image_publish(image, data, len, 2, why), 0);
	assert_false(image_is_current(image));
}

/* In place, so that its inode is the same. */
static void snapshot__that_is_written_in_place__is_not_current(void **state)
{
	char path[SCRATCH_PATH + 16];
	struct timespec times[2];
	struct stat st;

	(void)state;
	snprintf(path, sizeof(path), "%s/web.snap", dir);
	assert_int_equal(open_image(), 0);
	assert_int_equal(build("n: 1\n", 1u << 20), 0);
	publish(1);
	assert_int_equal(stat(path, &st), 0);
	times[0] = st.st_atim;
	times[1] = st.st_mtim;
	assert_int_equal(truncate(path, (off_t)len - 1), 0);
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
	assert_false(image_is_current(image)); /* by its length alone */
	assert_int_equal(truncate(path, (off_t)len), 0);
	times[1].tv_nsec = (st.st_mtim.tv_nsec + 1) % 1000000000;
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
	assert_false(image_is_current(image)); /* in the same second */
	publish(1);
	assert_true(image_is_current(image));
}

/* ---- failures ---- */

static void each_call__that_fails__leaves_the_old_or_the_new_one(void **state)
{
	bool hit = true;

	(void)state;
	assert_int_equal(build("n: 1\n", 1u << 20), 0);
	for (unsigned n = 1; hit; n++) {
		int r;

		for (int round = 0; round < 2; round++) {
			assert_int_equal(open_image(), 0);
			publish(2 * n);
			memset(&fault, 0, sizeof(fault));
			fault.call = -1;
			fault.nth = n;
			fault.for_ever = round;
			fault.error = ENOSPC;
			r = image_prepare(image, data, len, 2 * n + 1, why);
			if (r == 0)
				r = image_publish(image, data, len, 2 * n + 1, why);
			else
				image_abandon(image);
			hit = fault.seen >= n;
			memset(&fault, 0, sizeof(fault));
			assert_int_equal(page_generation(), r ? 2 * n : 2 * n + 1);
			image_close(image);
			image = NULL;
		}
		assert_in_range(n, 1, 100);
	}
}

static void each_call__that_fails_at_the_start__fails_it(void **state)
{
	char path[SCRATCH_PATH + 16];
	int r = -1;

	(void)state;
	snprintf(path, sizeof(path), "%s/web.gen", dir);
	for (unsigned n = 1; r; n++) {
		unlink(path);
		memset(&fault, 0, sizeof(fault));
		fault.call = -1;
		fault.nth = n;
		fault.for_ever = true;
		fault.error = EIO;
		r = open_image();
		memset(&fault, 0, sizeof(fault));
		assert_in_range(n, 1, 100);
	}
}

static void each_allocation__that_fails__fails_the_call(void **state)
{
	int r = -1;

	(void)state;
	for (unsigned n = 1; r; n++) {
		fault_memory.seen = 0;
		fault_memory.nth = n;
		r = open_image();
		fault_memory.nth = 0;
		assert_in_range(n, 1, 100);
	}
	assert_int_equal(build("n: 1\n", 1u << 20), 0);
	fault_memory.seen = 0;
	fault_memory.nth = 1;
	assert_int_equal(image_prepare(image, data, len, 2, why), -ENOMEM);
	fault_memory.nth = 0;
	publish(2);
}

static void page__that_cannot_be_mapped__fails_the_start(void **state)
{
	struct rlimit was, none;
	unsigned descriptors = scratch_descriptors();
	int r;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_AS, &was), 0);
	none = (struct rlimit){.rlim_cur = PAGE_SIZE, .rlim_max = was.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_AS, &none), 0);
	r = open_image();
	assert_int_equal(setrlimit(RLIMIT_AS, &was), 0);
	assert_int_equal(r, -ENOMEM);
	assert_non_null(strstr(why, "cannot map"));
	assert_non_null(strstr(why, "/web.gen: Cannot allocate memory"));
	assert_int_equal(scratch_descriptors(), descriptors);
	assert_int_equal(open_image(), 0);
}

static void directory__that_is_gone__is_an_error(void **state)
{
	(void)state;
	assert_int_equal(open_image(), 0);
	assert_int_equal(build("n: 1\n", 1u << 20), 0);
	publish(1);
	scratch_close(dir);
	assert_false(image_is_current(image));
	assert_int_equal(image_keep_page(image, why), -ENOENT);
	assert_int_equal(image_publish(image, data, len, 2, why), -ENOENT);
	assert_false(image_is_current(image));
	image_close(image);
	assert_int_equal(open_image(), -ENOENT);
	image_close(NULL);
}

/* Readers and the next start see it in the page. */
static void confirmed__is_in_the_page_until_the_next_start(void **state)
{
	const struct page *page;

	(void)state;
	assert_int_equal(open_image(), 0);
	page = map_page();
	image_confirm(image, 77, 1000);
	assert_int_equal(atomic_load(&page->confirmed_ms), 77);
	assert_int_equal(atomic_load(&page->stale_ms), 1000);
	assert_int_equal(image_confirmed_ms(image), 77);
	image_close(image);
	assert_int_equal(open_image(), 0);
	assert_int_equal(image_confirmed_ms(image), image_in_memory(image) ? 77 : 0);
	munmap((void *)(uintptr_t)page, PAGE_SIZE);
}

static void page__that_was_withdrawn__is_not_after_a_publication(void **state)
{
	struct page *page;
	char path[SCRATCH_PATH + 16];
	int fd;

	(void)state;
	assert_int_equal(open_image(), 0);
	snprintf(path, sizeof(path), "%s/web.gen", dir);
	fd = open(path, O_RDWR | O_CLOEXEC);
	page = mmap(NULL, PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	assert_true(page != MAP_FAILED);
	atomic_store(&page->withdrawn, 1);
	assert_int_equal(build("n: 1\n", 1u << 20), 0);
	publish(1);
	assert_int_equal(atomic_load(&page->withdrawn), 0);
	assert_int_equal(atomic_load(&page->futex), 1);
	munmap(page, PAGE_SIZE);
}

static void files__are_the_agents_and_readable_by_its_group(void **state)
{
	static const char *const names[] = {"web.gen", "web.snap"};
	char path[SCRATCH_PATH + 16];
	struct stat st;

	(void)state;
	umask(022);
	assert_int_equal(open_image(), 0);
	assert_int_equal(build("n: 1\n", 1u << 20), 0);
	publish(1);
	for (size_t i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(st.st_mode & 07777, 0640);
		assert_int_equal(st.st_uid, geteuid());
		assert_int_equal(st.st_gid, getegid());
	}
}

static void page__that_cannot_be_opened__is_named_with_the_remedy(void **state)
{
	char begin[SCRATCH_PATH + 32], remedy[FILE_REMEDY];
	unsigned nth = 1;

	(void)state;
	snprintf(begin, sizeof(begin), "cannot open %s/web.gen: ", dir);
	file_remedy(remedy, EMFILE, false);
	for (; nth < 20; nth++) {
		why[0] = '\0';
		fault = (struct fault){.call = CALL_OPEN, .nth = nth, .error = EMFILE};
		if (open_image() == 0)
			image_close(image);
		image = NULL;
		fault.nth = 0;
		if (strncmp(why, begin, strlen(begin)) == 0)
			break;
	}
	assert_true(nth < 20);
	assert_string_equal(why + strlen(begin), remedy);
}

static void descriptor_0__is_as_good_as_any(void **state)
{
	int kept = fault_begin_zero();
	bool is_current, closed;
	int r[4];

	(void)state;
	r[0] = open_image();
	r[1] = build("n: 1\n", 1u << 20);
	r[2] = r[0] ? r[0] : image_publish(image, data, len, 1, why);
	is_current = r[2] == 0 && image_is_current(image);
	r[3] = r[0] ? r[0] : image_keep_page(image, why);
	if (r[0] == 0 && image_prepare(image, data, len, 2, why) == 0)
		image_abandon(image);
	closed = fault_end_zero(kept);
	assert_true(r[0] == 0 && r[1] == 0 && r[2] == 0 && r[3] == 0 && is_current);
	assert_true(closed);
}

static void on_a_disk__what_an_earlier_boot_confirmed__is_forgotten(void **state)
{
	char disk[SCRATCH_PATH];

	(void)state;
	scratch_open(disk, scratch_disk());
	assert_int_equal(image_open(&sys, disk, "web", NULL, &image, why), 0);
	if (image_in_memory(image)) {
		scratch_close(disk);
		skip();
	}
	image_confirm(image, 77, 1000);
	image_close(image);
	assert_int_equal(image_open(&sys, disk, "web", NULL, &image, why), 0);
	assert_int_equal(image_confirmed_ms(image), 0);
	scratch_close(disk);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(build__of_every_type__has_all_values),
		TEST(build__of_every_type__has_each_value_as_it_is),
		TEST(build__beyond_its_bound__says_so),
		TEST(build__of_a_key_with_a_dot__is_another_path),
		TEST(build__of_two_equal_keys__says_so),
		TEST(publish__raises_the_page_and_is_current),
		TEST(publish__wakes_all_readers_that_sleep_on_the_page),
		TEST(prepared__and_abandoned__leaves_the_old_one),
		TEST(prepared__where_it_is_another_file_in_another_case__is_refused),
		TEST(prepared__and_published__is_the_new_one),
		TEST(prepared__where_it_is_there__is_not_removed_by_abandoning),
		TEST(prepared__where_it_is_there__is_not_current_when_removed_meanwhile),
		TEST(publish__in_memory__vouches_for_the_file),
		TEST(publish__on_a_disk__vouches_for_nothing),
		TEST(publish__where_somebody_touches_the_file__vouches_for_nothing),
		TEST(publish__over_a_large_file__keeps_it_until_readers_had_time_to_leave),
		TEST(page__that_somebody_removes__is_made_again),
		TEST(page__that_somebody_replaces__gets_the_generation),
		TEST(page__that_somebody_cuts_short__is_made_again),
		TEST(page__that_cannot_be_made_again__is_an_error_until_it_can),
		TEST(page__that_is_none__is_replaced),
		TEST(snapshot__that_is_touched__is_not_current),
		TEST(snapshot__that_is_written_in_place__is_not_current),
		TEST(each_call__that_fails__leaves_the_old_or_the_new_one),
		TEST(each_call__that_fails_at_the_start__fails_it),
		TEST(directory__that_is_gone__is_an_error),
		TEST(confirmed__is_in_the_page_until_the_next_start),
		TEST(page__that_was_withdrawn__is_not_after_a_publication),
		TEST(files__are_the_agents_and_readable_by_its_group),
		TEST(page__that_cannot_be_opened__is_named_with_the_remedy),
		TEST(descriptor_0__is_as_good_as_any),
		TEST(on_a_disk__what_an_earlier_boot_confirmed__is_forgotten),
		TEST(build__without_memory__fails_and_leaves_nothing),
		TEST(build__of_keys_in_any_order__is_one_image),
		TEST(build__of_a_long_list__has_each_item_in_its_place),
		TEST(each_allocation__that_fails__fails_the_call),
		TEST(page__that_cannot_be_mapped__fails_the_start),
	};

	return fault_memory_run(tests, 3);
}
