/* Snapshots without a config: withdrawn, marked, and nothing else is touched. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "lib/page.h"
#include "publish/image.h"
#include "publish/withdraw.h"
#include "tests/unit/fixture/fault_memory.h"
#include "tests/unit/fixture/fault_sys.h"
#include "tests/unit/fixture/page_waiters.h"
#include "tests/unit/fixture/scratch.h"

#define TAIL ".pullet-0123456789abcdef"

static struct sys sys;
static char dir[SCRATCH_PATH], why[FILE_WHY];

static void add_snapshot(const char *name)
{
	struct image *image;
	char file[80];

	assert_int_equal(image_open(&sys, dir, name, NULL, &image, why), 0);
	image_confirm(image, 77, 1000);
	image_close(image);
	snprintf(file, sizeof(file), "%s.snap", name);
	scratch_write(dir, file, "image", 5);
}

static int set_up(void **state)
{
	(void)state;
	memset(&fault, 0, sizeof(fault));
	sys = fault_table();
	scratch_open(dir, scratch_memory());
	add_snapshot("web");
	add_snapshot("db");
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	scratch_close(dir);
	return 0;
}

static int withdraw(const char *kept)
{
	const char *names[] = {kept ? kept : ""};

	return withdraw_snapshots(&sys, dir, names, kept ? 1 : 0, why);
}

static struct page *map_page_of(const char *name)
{
	char path[SCRATCH_PATH + 80];
	struct page *page;
	int fd;

	snprintf(path, sizeof(path), "%s/%s.gen", dir, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	page = mmap(NULL, PAGE_SIZE, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	assert_true(page != MAP_FAILED);
	return page;
}

static bool is_withdrawn(const char *name)
{
	struct page *page = map_page_of(name);
	bool withdrawn = atomic_load(&page->withdrawn) == 1 &&
			 atomic_load(&page->confirmed_ms) == 0 && atomic_load(&page->futex) == 1;
	munmap(page, PAGE_SIZE);
	return withdrawn;
}

static void withdraw__of_one__marks_its_page_and_keeps_the_other(void **state)
{
	(void)state;
	assert_int_equal(withdraw("db"), 1);
	assert_true(is_withdrawn("web"));
	assert_false(is_withdrawn("db"));
	assert_int_equal(scratch_count(dir, "web.snap"), 0);
	assert_int_equal(scratch_count(dir, "db.snap"), 1);
	assert_int_equal(withdraw("db"), 0); /* it was before */
	assert_false(scratch_is_mapped(dir));
	assert_int_equal(withdraw(NULL), 1);
}

static void withdraw__wakes_all_readers_that_sleep_on_the_page(void **state)
{
	struct page *page = map_page_of("web");

	(void)state;
	waiters_start(page);
	assert_int_equal(withdraw("db"), 1);
	assert_int_equal(waiters_end(), WAITERS);
	munmap(page, PAGE_SIZE);
}

static void withdraw__after_a_crash_in_between__goes_on(void **state)
{
	char path[SCRATCH_PATH + 80];

	(void)state;
	snprintf(path, sizeof(path), "%s/web.snap", dir);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(withdraw("db"), 1);
	assert_true(is_withdrawn("web"));
	scratch_write(dir, "web.snap", "image", 5); /* marked, and not removed */
	assert_int_equal(withdraw("db"), 1);
	assert_int_equal(scratch_count(dir, "web.snap"), 0);
}

static void withdraw__of_what_is_not_the_agents__touches_nothing(void **state)
{
	char path[SCRATCH_PATH + 80], long_name[80];

	(void)state;
	scratch_write(dir, "text.gen", "a text", 6);
	scratch_write(dir, "text.snap", "a text", 6);
	scratch_write(dir, ".hidden.gen", "x", 1);
	scratch_write(dir, ".gen", "x", 1);
	memset(long_name, 'x', 70);
	memcpy(long_name + 70, ".gen", 5);
	scratch_write(dir, long_name, "x", 1);
	snprintf(path, sizeof(path), "%s/zeros.gen", dir);
	scratch_write(dir, "zeros.gen", "", 0);
	assert_int_equal(truncate(path, PAGE_SIZE), 0);
	add_snapshot("twice");
	snprintf(path, sizeof(path), "%s/twice.gen", dir);
	snprintf(long_name, sizeof(long_name), "%.60s/again", dir);
	assert_int_equal(link(path, long_name), 0); /* a page with two names */
	if (getuid() == 0) {
		add_snapshot("other");
		snprintf(path, sizeof(path), "%s/other.gen", dir);
		assert_int_equal(chown(path, 1, (gid_t)-1), 0);
	}
	snprintf(path, sizeof(path), "%s/folder.gen", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/pipe.gen", dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	scratch_write(dir, "pipe.snap", "x", 1);
	snprintf(path, sizeof(path), "%s/web.snap", dir);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0); /* no image */
	assert_int_equal(withdraw("db"), 1);
	assert_int_equal(scratch_count(dir, "text"), 2);
	assert_int_equal(scratch_count(dir, "web.snap"), 1);
	assert_int_equal(scratch_count(dir, "zeros"), 1);
	assert_int_equal(scratch_count(dir, "pipe"), 2);
	assert_int_equal(scratch_count(dir, "twice.snap"), 1);
	assert_int_equal(scratch_count(dir, "other.snap"), getuid() == 0);
}

static void withdraw__of_another_users_image__keeps_it_and_marks_the_page(void **state)
{
	char path[SCRATCH_PATH + 80];

	(void)state;
	if (getuid() != 0) {
		print_message("# only root can give a file away\n");
		skip();
	}
	snprintf(path, sizeof(path), "%s/web.snap", dir);
	assert_int_equal(chown(path, 1, (gid_t)-1), 0);
	assert_int_equal(withdraw("db"), 1);
	assert_int_equal(scratch_count(dir, "web.snap"), 1);
	assert_true(is_withdrawn("web"));
	assert_int_equal(withdraw("db"), 0);
}

static void temporary_files__beside_a_page_of_its_own__are_removed(void **state)
{
	(void)state;
	scratch_write(dir, ".web.snap" TAIL, "x", 1);
	scratch_write(dir, ".db.snap" TAIL, "x", 1);
	scratch_write(dir, ".none.snap" TAIL, "x", 1);
	scratch_write(dir, ".web.gen" TAIL, "x", 1);
	assert_int_equal(withdraw("db"), 1);
	assert_int_equal(scratch_count(dir, ".web.snap"), 0);
	assert_int_equal(scratch_count(dir, ".db.snap"), 1);
	assert_int_equal(scratch_count(dir, ".none.snap"), 1);
}

static void unlink__that_fails__is_an_error_and_tried_again(void **state)
{
	(void)state;
	scratch_write(dir, ".web.snap" TAIL, "x", 1);
	fault.call = CALL_UNLINK;
	fault.nth = 1;
	fault.for_ever = true;
	fault.error = EROFS;
	assert_int_equal(withdraw("db"), -EROFS);
	assert_non_null(strstr(why, "cannot remove the snapshot of web"));
	fault.error = ENOENT; /* somebody else was faster */
	assert_int_equal(withdraw("db"), -ENOENT);
	memset(&fault, 0, sizeof(fault));
	assert_int_equal(withdraw("db"), 1);
	assert_true(is_withdrawn("web"));
}

static void directory__that_is_none__is_an_error(void **state)
{
	const char *none[] = {""};
	struct sys plain = sys;

	(void)state;
	assert_int_equal(withdraw_snapshots(&plain, "/nowhere/at/all", none, 0, why), -ENOENT);
	assert_null(strstr(why, "cannot read"));
	assert_non_null(strstr(why, "/nowhere/at"));
	fault.call = CALL_OPEN;
	fault.nth = 1;
	fault.for_ever = true;
	fault.error = EMFILE;
	assert_int_equal(withdraw("db"), -EMFILE);
}

/* No config has a longer one: what has one is not the agent's. */
static void name__of_the_longest_config__is_withdrawn_and_a_longer_one_is_not(void **state)
{
	char name[80];

	(void)state;
	assert_int_equal(withdraw(NULL), 2);
	memset(name, 'n', sizeof(name));
	name[65] = '\0';
	add_snapshot(name);
	assert_int_equal(withdraw(NULL), 0);
	name[64] = '\0';
	add_snapshot(name);
	assert_int_equal(withdraw(NULL), 1);
	add_snapshot("n");
	assert_int_equal(withdraw(NULL), 1);
	assert_int_equal(scratch_count(dir, ".snap"), 1);
}

static void several__that_are_kept__are_found_in_any_order(void **state)
{
	const char *kept[] = {"web", "app", "db"};

	(void)state;
	add_snapshot("app");
	add_snapshot("gone");
	assert_int_equal(withdraw_snapshots(&sys, dir, kept, 3, why), 1);
	assert_true(is_withdrawn("gone"));
	assert_false(is_withdrawn("web") || is_withdrawn("app") || is_withdrawn("db"));
}

static void descriptor_0__is_as_good_as_any(void **state)
{
	int kept = fault_begin_zero(), r = withdraw("db");
	bool closed = fault_end_zero(kept);

	(void)state;
	assert_int_equal(r, 1);
	assert_true(closed && is_withdrawn("web"));
}

static void each_allocation__that_fails__withdraws_nothing_and_says_so(void **state)
{
	unsigned descriptors = scratch_descriptors(), failures = 0;
	int r = -1;

	(void)state;
	for (unsigned n = 1; r < 0; n++) {
		why[0] = '\0';
		fault_memory.seen = 0;
		fault_memory.nth = n;
		r = withdraw("db");
		fault_memory.nth = 0;
		assert_int_equal(scratch_descriptors(), descriptors);
		if (r < 0) {
			failures++;
			assert_int_equal(r, -ENOMEM);
			assert_non_null(strstr(why, dir));
			assert_non_null(strstr(why, "Cannot allocate memory"));
			assert_int_equal(scratch_count(dir, "web.snap"), 1);
		}
		assert_in_range(n, 1, 100);
	}
	assert_true(failures > 0);
	assert_int_equal(r, 1);
	assert_true(is_withdrawn("web"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(withdraw__of_one__marks_its_page_and_keeps_the_other),
		TEST(withdraw__wakes_all_readers_that_sleep_on_the_page),
		TEST(withdraw__after_a_crash_in_between__goes_on),
		TEST(withdraw__of_what_is_not_the_agents__touches_nothing),
		TEST(withdraw__of_another_users_image__keeps_it_and_marks_the_page),
		TEST(temporary_files__beside_a_page_of_its_own__are_removed),
		TEST(unlink__that_fails__is_an_error_and_tried_again),
		TEST(directory__that_is_none__is_an_error),
		TEST(name__of_the_longest_config__is_withdrawn_and_a_longer_one_is_not),
		TEST(several__that_are_kept__are_found_in_any_order),
		TEST(descriptor_0__is_as_good_as_any),
		TEST(each_allocation__that_fails__withdraws_nothing_and_says_so),
	};

	return fault_memory_run(tests, 1);
}
