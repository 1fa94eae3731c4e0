/*
 * Drift by real inotify: who watches a name is told of that name, who watches a directory of all in
 * it, nobody of what others watch; and the kernel watches nothing that nobody asked for.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "files/file_watch.h"
#include "tests/unit/fixture/fault_memory.h"
#include "tests/unit/fixture/scratch.h"

#define NAMES 500

struct watcher {
	struct file_watch_entry entry;
	char name[16];
	unsigned told;
	const char *cause;
	struct file_watch *removes; /* itself, when it is told */
};

static struct loop *loop;
static unsigned expected; /* calls until the loop ends */

static void noticed(void *arg, const char *cause)
{
	struct watcher *w = arg;

	w->told++;
	w->cause = cause;
	if (w->removes)
		file_watch_remove(w->removes, &w->entry);
	if (--expected == 0)
		loop_stop(loop);
}

static void too_late(void *arg)
{
	(void)arg;
	fail_msg("%u calls are missing", expected);
}

/* Runs until so many have been told. */
static void run(unsigned calls)
{
	struct loop_timer limit;

	loop_timer_init(&limit, too_late, NULL);
	loop_timer_set(loop, &limit, loop_now_ms(loop) + 10000);
	expected = calls;
	assert_int_equal(loop_run(loop), 0);
	loop_timer_cancel(loop, &limit);
}

static void add(struct file_watch *d, struct watcher *w, const char *dir, const char *name)
{
	*w = (struct watcher){.entry = {.noticed = noticed, .arg = w}};
	snprintf(w->name, sizeof(w->name), "%s", name ? name : "");
	assert_int_equal(file_watch_add(d, &w->entry, dir, name ? w->name : NULL), 0);
}

/* How many directories the kernel watches for this process. */
static unsigned watched(void)
{
	unsigned n = 0;
	char line[512];

	for (int fd = 0; fd < 64; fd++) {
		char path[64];
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
		f = fopen(path, "re");
		while (f && fgets(line, sizeof(line), f))
			n += strncmp(line, "inotify ", 8) == 0;
		if (f)
			fclose(f);
	}
	return n;
}

static void drift__of_many_in_one_directory__tells_those_it_is_about(void **state)
{
	static struct watcher many[NAMES], all, twin, elsewhere;
	char dir[SCRATCH_PATH], other[SCRATCH_PATH], name[16];
	struct file_watch *d;

	(void)state;
	loop = loop_new(&sys_real);
	d = file_watch_new(loop);
	assert_non_null(d);
	scratch_open(dir, scratch_memory());
	scratch_open(other, scratch_memory());
	for (unsigned i = 0; i < NAMES; i++) {
		snprintf(name, sizeof(name), "c%u", i);
		add(d, &many[i], dir, name);
	}
	add(d, &twin, dir, "c7");
	add(d, &elsewhere, other, "c7");
	assert_int_equal(watched(), 2);
	scratch_write(dir, "c7", "1", 1);
	run(2);
	assert_true(many[7].told == 1 && twin.told == 1 && elsewhere.told == 0);
	assert_string_equal(many[7].cause, "written");
	many[8].removes = d;
	scratch_write(dir, "unknown", "1", 1); /* nobody's */
	scratch_write(dir, "c8", "1", 1);
	scratch_write(dir, "c9", "1", 1);
	run(2);
	assert_true(many[8].told == 1 && many[9].told == 1);
	add(d, &all, dir, NULL);
	scratch_write(dir, "c8", "2", 1);
	run(1);
	assert_true(many[8].told == 1 && all.told == 1);
	scratch_write(other, "c7", "1", 1);
	run(1);
	assert_true(elsewhere.told == 1 && all.told == 1 && many[7].told == 1);
	for (unsigned i = 0; i < NAMES; i++)
		file_watch_remove(d, &many[i].entry); /* of the eighth again: nothing */
	file_watch_remove(d, &twin.entry);
	assert_int_equal(watched(), 2);
	file_watch_remove(d, &all.entry);
	assert_int_equal(watched(), 1);
	file_watch_remove(d, &elsewhere.entry);
	assert_int_equal(watched(), 0);
	assert_int_equal(file_watch_add(d, &all.entry, "/nowhere", NULL), -ENOENT);
	file_watch_free(d);
	loop_free(loop);
	scratch_close(dir);
	scratch_close(other);
}

static void drift__of_each_kind__has_its_cause(void **state)
{
	static const char *const causes[] = {
		"written", "its mode or owner changed", "replaced", "removed", "removed"};
	char dir[SCRATCH_PATH], path[SCRATCH_PATH + 8], other[SCRATCH_PATH + 8];
	static struct watcher w;
	struct file_watch *d;

	(void)state;
	loop = loop_new(&sys_real);
	d = file_watch_new(loop);
	scratch_open(dir, scratch_memory());
	snprintf(path, sizeof(path), "%s/a", dir);
	snprintf(other, sizeof(other), "%s/b", dir);
	add(d, &w, dir, "a");
	for (unsigned i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
		if (i == 0 || i == 3)
			scratch_write(dir, i ? "b" : "a", "1", 1);
		if (i == 1)
			assert_int_equal(chmod(path, 0640), 0);
		if (i == 2) {
			scratch_write(dir, "b", "2", 1);
			assert_int_equal(rename(other, path), 0);
		}
		if (i == 3)
			assert_int_equal(rename(path, other), 0);
		if (i == 4) {
			assert_int_equal(rename(other, path), 0);
			run(1);
			assert_string_equal(w.cause, "replaced");
			assert_int_equal(unlink(path), 0);
		}
		run(1);
		assert_string_equal(w.cause, causes[i]);
	}
	assert_int_equal(w.told, 6);
	file_watch_remove(d, &w.entry);
	file_watch_free(d);
	loop_free(loop);
	scratch_close(dir);
}

/* Who has a file open need not close it: the file itself is watched, beside its name. */
static void drift__of_the_bytes_of_an_open_file__is_told_before_it_is_closed(void **state)
{
	char dir[SCRATCH_PATH], path[SCRATCH_PATH + 8], other[SCRATCH_PATH + 8];
	static struct watcher name, bytes;
	struct file_watch *d;
	int fd;

	(void)state;
	loop = loop_new(&sys_real);
	d = file_watch_new(loop);
	scratch_open(dir, scratch_memory());
	scratch_write(dir, "a", "1", 1);
	snprintf(path, sizeof(path), "%s/a", dir);
	snprintf(other, sizeof(other), "%s/b", dir);
	add(d, &name, dir, "a");
	bytes = (struct watcher){.entry = {.noticed = noticed, .arg = &bytes}};
	assert_int_equal(file_watch_add_bytes(d, &bytes.entry, path), 0);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_int_equal(ftruncate(fd, 0), 0);
	run(1);
	assert_int_equal(write(fd, "22", 2), 2);
	run(1);
	assert_true(bytes.told == 2 && name.told == 0);
	assert_string_equal(bytes.cause, "written");
	scratch_write(dir, "b", "3", 1);
	assert_int_equal(close(fd), 0);
	run(1);
	assert_int_equal(rename(other, path), 0);
	run(2); /* another one has the name, and the watched one is gone */
	assert_true(bytes.told == 3 && name.told == 2);
	assert_string_equal(name.cause, "replaced");
	file_watch_remove(d, &bytes.entry);
	assert_int_equal(unlink(path), 0);
	run(1);
	assert_string_equal(name.cause, "removed");
	assert_int_equal(file_watch_add_bytes(d, &bytes.entry, path), -ENOENT);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(file_watch_add_bytes(d, &bytes.entry, path), -EISDIR);
	assert_int_equal(rmdir(path), 0);
	run(1);
	file_watch_remove(d, &name.entry);
	assert_int_equal(watched(), 0);
	file_watch_free(d);
	loop_free(loop);
	scratch_close(dir);
}

/* Adds the watcher where each allocation fails in turn, and at last where none does. Returns how
 * often it failed; the kernel watches as many directories as before, each time. */
static unsigned add_when_memory_comes(
	struct file_watch *d, struct watcher *w, const char *dir, unsigned before)
{
	*w = (struct watcher){.entry = {.noticed = noticed, .arg = w}};
	for (unsigned n = 1;; n++) {
		int r;

		fault_memory.seen = 0;
		fault_memory.nth = n;
		r = file_watch_add(d, &w->entry, dir, "a");
		fault_memory.nth = 0;
		if (r == 0)
			return n - 1;
		assert_int_equal(r, -ENOMEM);
		assert_int_equal(watched(), before);
		file_watch_remove(d, &w->entry); /* it is not there */
		assert_in_range(n, 1, 10);
	}
}

static void renew__watches_the_directory_that_is_there_by_now(void **state)
{
	char dir[SCRATCH_PATH], place[SCRATCH_PATH + 8], old[SCRATCH_PATH + 8];
	struct file_watch *d;
	struct watcher w = {.entry = {.noticed = noticed, .arg = &w}};

	(void)state;
	loop = loop_new(&sys_real);
	d = file_watch_new(loop);
	assert_non_null(d);
	scratch_open(dir, scratch_memory());
	snprintf(place, sizeof(place), "%s/place", dir);
	snprintf(old, sizeof(old), "%s/old", dir);
	assert_int_equal(file_watch_renew(d, &w.entry, place, "web.yaml"), -ENOENT);
	assert_int_equal(mkdir(place, 0700), 0);
	assert_int_equal(file_watch_renew(d, &w.entry, place, "web.yaml"), 1);
	assert_int_equal(file_watch_renew(d, &w.entry, place, "web.yaml"), 0);
	assert_int_equal(watched(), 1);
	assert_int_equal(rename(place, old), 0);
	assert_int_equal(file_watch_renew(d, &w.entry, place, "web.yaml"), -ENOENT);
	assert_int_equal(watched(), 1); /* the old one */
	assert_int_equal(mkdir(place, 0700), 0);
	assert_int_equal(file_watch_renew(d, &w.entry, place, "web.yaml"), 1);
	assert_int_equal(watched(), 1);
	scratch_write(old, "web.yaml", "", 0);
	scratch_write(place, "web.yaml", "", 0);
	run(1);
	assert_string_equal(w.cause, "written");
	assert_int_equal(w.told, 1);
	file_watch_remove(d, &w.entry);
	assert_int_equal(watched(), 0);
	file_watch_free(d);
	loop_free(loop);
	scratch_close(dir);
}

static void add__without_memory__watches_nothing_more(void **state)
{
	struct watcher many[17], other; /* the table grows */
	char dir[SCRATCH_PATH], elsewhere[SCRATCH_PATH];
	struct file_watch *d;

	(void)state;
	loop = loop_new(&sys_real);
	d = file_watch_new(loop);
	scratch_open(dir, scratch_memory());
	scratch_open(elsewhere, scratch_memory());
	assert_true(add_when_memory_comes(d, &many[0], dir, 0) >= 2);
	assert_true(add_when_memory_comes(d, &other, elsewhere, 1) >= 1);
	for (unsigned i = 1; i < 17; i++)
		assert_int_equal(add_when_memory_comes(d, &many[i], dir, 2), 0);
	scratch_write(dir, "a", "1", 1);
	run(17);
	for (unsigned i = 0; i < 17; i++) {
		assert_int_equal(many[i].told, 1);
		file_watch_remove(d, &many[i].entry);
	}
	assert_int_equal(watched(), 1);
	file_watch_remove(d, &other.entry);
	assert_int_equal(watched(), 0);
	file_watch_free(d);
	loop_free(loop);
	scratch_close(dir);
	scratch_close(elsewhere);
}

static void watch__without_memory__is_none(void **state)
{
	unsigned descriptors;
	struct file_watch *d;

	(void)state;
	loop = loop_new(&sys_real);
	descriptors = scratch_descriptors();
	for (unsigned n = 1;; n++) {
		fault_memory.seen = 0;
		fault_memory.nth = n;
		d = file_watch_new(loop);
		fault_memory.nth = 0;
		if (d)
			break;
		assert_int_equal(scratch_descriptors(), descriptors);
		assert_in_range(n, 1, 10);
	}
	file_watch_free(d);
	assert_int_equal(scratch_descriptors(), descriptors);
	loop_free(loop);
}

static void free__with_a_watcher_left__leaves_nothing(void **state)
{
	char dir[SCRATCH_PATH];
	struct watcher w;
	struct file_watch *d;

	(void)state;
	loop = loop_new(&sys_real);
	d = file_watch_new(loop);
	scratch_open(dir, scratch_memory());
	add(d, &w, dir, "a");
	file_watch_free(d);
	assert_int_equal(watched(), 0);
	loop_free(loop);
	scratch_close(dir);
}

static void watch__without_descriptors__is_none(void **state)
{
	struct rlimit limit, few;
	struct file_watch *d;

	(void)state;
	loop = loop_new(&sys_real);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	few = limit;
	few.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	d = file_watch_new(loop);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_null(d);
	file_watch_free(NULL);
	loop_free(loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(drift__of_many_in_one_directory__tells_those_it_is_about),
		cmocka_unit_test(drift__of_each_kind__has_its_cause),
		cmocka_unit_test(drift__of_the_bytes_of_an_open_file__is_told_before_it_is_closed),
		cmocka_unit_test(free__with_a_watcher_left__leaves_nothing),
		cmocka_unit_test(watch__without_descriptors__is_none),
		cmocka_unit_test(watch__without_memory__is_none),
		cmocka_unit_test(renew__watches_the_directory_that_is_there_by_now),
		cmocka_unit_test(add__without_memory__watches_nothing_more),
	};

	return fault_memory_run(tests, 2);
}
