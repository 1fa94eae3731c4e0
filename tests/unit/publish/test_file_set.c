/*
 * Sets of files under faults and beside readers: every system call failing in every way, the
 * process ending at each of them, a thousand flips under the eyes of readers. What is behind ..data
 * is one set, whole; what is not of the set is left alone; nothing is left behind. Two seeded bugs,
 * a publisher that flips first and one that writes in place, must be caught by the same harness.
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <linux/fs.h>

#include <cmocka.h>

#include "publish/file_set.h"
#include "tests/unit/fixture/fault_sys.h"
#include "tests/unit/fixture/scratch.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define FLIPS 1000
#define READS 2000  /* of whole sets, that readers must have made */
#define MOST 200000 /* flips, then a reader starves */

static struct sys sys;
static int link_error; /* that a disk gives for ..data; 0 = none */

/* Instead of libc's. */
ssize_t readlinkat(int dir, const char *path, char *text, size_t size)
{
	if (link_error && strcmp(path, "..data") == 0) {
		errno = link_error;
		return -1;
	}
	return syscall(SYS_readlinkat, dir, path, text, size);
}

/* ---- sets ---- */

struct set {
	struct file_set_entry e[8];
	size_t count;
};

#define ENTRY(name, text)                                                                          \
	{                                                                                          \
		name, text, sizeof(text) - 1                                                       \
	}

static const struct set old_set = {{ENTRY("a.conf", "old a\n"), ENTRY("b", "old b, longer\n"),
					   ENTRY(".env", ""), ENTRY("gone", "old only\n")},
	4};
static const struct set new_set = {{ENTRY("b", "new b\n"), ENTRY("fresh", "new only\n"),
					   ENTRY("a.conf", "new a, of another length\n"),
					   ENTRY(".env", "X=1\n"), ENTRY("more-2", "also new\n")},
	5};

static const struct file_options in_memory = {.mode = 0640, .uid = (uid_t)-1, .gid = (gid_t)-1};

/* ---- a place ---- */

struct place {
	char dir[SCRATCH_PATH];
	struct file_set *f;
	struct file_options options;
};

static void place_open(struct place *p)
{
	char why[FILE_WHY] = "";

	if (file_set_open(&sys, p->dir, &p->f, why))
		fail_msg("%s", why);
	p->options = in_memory;
	p->options.sync = !file_set_in_memory(p->f);
}

static int publish(struct place *p, const struct set *s, uint64_t generation, char why[FILE_WHY])
{
	return file_set_publish(p->f, s->e, s->count, generation, &p->options, why);
}

static void publish_well(struct place *p, const struct set *s, uint64_t generation)
{
	char why[FILE_WHY] = "";

	if (publish(p, s, generation, why))
		fail_msg("%s", why);
}

static void place_init(struct place *p, const char *base)
{
	memset(&fault, 0, sizeof(fault));
	link_error = 0;
	sys = fault_table();
	scratch_open(p->dir, base);
	place_open(p);
}

static void place_fini(struct place *p)
{
	memset(&fault, 0, sizeof(fault));
	file_set_close(p->f);
	scratch_close(p->dir);
}

static void place_reopen(struct place *p)
{
	file_set_close(p->f);
	place_open(p);
}

static char *path_of(const struct place *p, const char *name)
{
	static char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", p->dir, name);
	return path;
}

static void put(const struct place *p, const char *name, const char *text)
{
	int fd = open(path_of(p, name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static bool has_text(int dir, const char *name, const struct file_set_entry *e)
{
	char text[4096];
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof(text)) : -1;

	if (fd >= 0)
		close(fd);
	return n == (ssize_t)e->len && memcmp(text, e->data, e->len) == 0;
}

/* Is this set, and nothing else, in the directory? */
static bool holds(int dir, const struct set *s)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fdopendir(fd);
	struct dirent *e;
	size_t files = 0;
	bool good = true;

	while ((e = readdir(d)))
		files += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
	closedir(d);
	for (size_t i = 0; i < s->count; i++)
		good = good && has_text(dir, s->e[i].name, &s->e[i]);
	return good && files == s->count;
}

/* What a reader behind ..data sees: 0 old, 1 new, -1 anything else. */
static int visible(const struct place *p)
{
	int dir = open(path_of(p, "..data"), O_RDONLY | O_DIRECTORY | O_CLOEXEC), seen;

	if (dir < 0)
		return -1;
	seen = holds(dir, &old_set) ? 0 : holds(dir, &new_set) ? 1 : -1;
	close(dir);
	return seen;
}

static unsigned generations(const struct place *p)
{
	DIR *d = opendir(p->dir);
	struct dirent *e;
	unsigned n = 0;

	while ((e = readdir(d)))
		n += strspn(e->d_name, ".") == 2 && e->d_name[2] >= '0' && e->d_name[2] <= '9';
	closedir(d);
	return n;
}

/* Do the names lead to this set, each by its link, and is there no other link and nothing that
 * should have been cleaned up? Foreign regular files do not count. */
static bool is_tidy(const struct place *p, const struct set *s)
{
	size_t links = 0;
	DIR *d = opendir(p->dir);
	struct dirent *e;
	bool good = true;

	while ((e = readdir(d))) {
		links += e->d_type == DT_LNK && strcmp(e->d_name, "..data") != 0;
		good = good && !strstr(e->d_name, ".pullet-");
	}
	for (size_t i = 0; i < s->count; i++) {
		char text[300], wanted[300];
		ssize_t n = readlinkat(dirfd(d), s->e[i].name, text, sizeof(text) - 1);

		text[n > 0 ? n : 0] = '\0';
		snprintf(wanted, sizeof(wanted), "..data/%s", s->e[i].name);
		good = good && strcmp(text, wanted) == 0 &&
		       has_text(dirfd(d), s->e[i].name, &s->e[i]);
	}
	closedir(d);
	return good && links == s->count && generations(p) <= FILE_SET_KEEP;
}

static bool is_current(struct place *p, const struct set *s)
{
	return file_set_is_current(p->f, s ? s->e : NULL, s ? s->count : 0, &p->options);
}

static unsigned entries_in(const char *path)
{
	DIR *d = opendir(path);
	unsigned n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

static unsigned descriptors(void)
{
	return entries_in("/proc/self/fd");
}

/* ---- what is published ---- */

static void publish__of_a_set__shows_each_file_by_its_name(void **state)
{
	struct place p;
	struct stat st;

	(void)state;
	place_init(&p, scratch_memory());
	p.options.mode = 0604;
	publish_well(&p, &old_set, 7);
	assert_true(is_tidy(&p, &old_set));
	assert_int_equal(visible(&p), 0);
	assert_int_equal(stat(path_of(&p, "a.conf"), &st), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0604);
	assert_int_equal(stat(path_of(&p, "..data"), &st), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 0755);
	place_fini(&p);
}

static void publish__of_another_set__makes_new_links_and_removes_stale_ones(void **state)
{
	const struct set empty = {.count = 0};
	struct place p;

	(void)state;
	place_init(&p, scratch_disk());
	publish_well(&p, &old_set, 1);
	publish_well(&p, &new_set, 2);
	assert_true(is_tidy(&p, &new_set));
	publish_well(&p, &empty, 3);
	assert_true(is_tidy(&p, &empty));
	publish_well(&p, &old_set, 4);
	assert_true(is_tidy(&p, &old_set));
	place_fini(&p);
}

static void publish__on_a_disk__orders_files_directory_flip_links(void **state)
{
	const struct set one = {{ENTRY("a", "1")}, 1};
	struct place p;

	(void)state;
	place_init(&p, scratch_disk());
	p.options.gid = getegid();
	p.options.sync = true;
	fault = (struct fault){0};
	publish_well(&p, &one, 1);
	/* open; make a directory, open it; a file: open, write, owner, mode, fsync, close, rename,
	 * fsync; the directory: mode, fsync, close; the outer one: fsync; flip: link, rename,
	 * fsync; its own name: open the parent, fsync, close; names: look, link, look, fsync; old
	 * ones: look; what is there: look; close */
	assert_string_equal(fault.trace, "okoowcmfxrfmfxflrf"
					 "ofx"
					 "olofoox");
	place_fini(&p);
}

static void publish__in_memory__never_waits_for_a_disk(void **state)
{
	struct place p;

	(void)state;
	scratch_need_memory();
	place_init(&p, scratch_memory());
	assert_true(file_set_in_memory(p.f));
	fault = (struct fault){0};
	publish_well(&p, &old_set, 1);
	assert_null(strchr(fault.trace, 'f'));
	place_fini(&p);
}

static void publish__keeps_three_generations_for_readers_inside(void **state)
{
	struct place p;
	int inside;

	(void)state;
	place_init(&p, scratch_memory());
	publish_well(&p, &old_set, 1);
	inside = open(path_of(&p, "..data"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(inside >= 0);
	for (uint64_t g = 2; g < 1 + FILE_SET_KEEP; g++) {
		publish_well(&p, &new_set, g);
		assert_true(holds(inside, &old_set));
	}
	place_reopen(&p);
	assert_true(holds(inside, &old_set));
	publish_well(&p, &new_set, 1 + FILE_SET_KEEP);
	assert_false(has_text(inside, "a.conf", &old_set.e[0]));
	assert_true(is_tidy(&p, &new_set));
	close(inside);
	place_fini(&p);
}

/* The state directory was lost, so that numbers begin again; or a set is put back under its number.
 */
static void publish__of_a_number_that_is_not_higher__keeps_the_one_before(void **state)
{
	struct place p;

	(void)state;
	place_init(&p, scratch_memory());
	for (uint64_t g = 100; g < 105; g++)
		publish_well(&p, &old_set, g);
	for (uint64_t g = 1; g < 20; g++) {
		int inside = open(path_of(&p, "..data"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		publish_well(&p, g % 2 ? &new_set : &old_set, g < 10 ? g : 10);
		assert_true(holds(inside, g % 2 ? &old_set : &new_set));
		assert_true(is_tidy(&p, g % 2 ? &new_set : &old_set));
		close(inside);
	}
	place_reopen(&p);
	assert_int_equal(visible(&p), 1);
	place_fini(&p);
}

static void publish__of_a_thousand_files__works_and_of_more_is_refused(void **state)
{
	static struct file_set_entry e[FILE_SET_MAX + 1];
	static char names[FILE_SET_MAX + 1][16];
	char why[FILE_WHY] = "";
	struct place p;

	(void)state;
	place_init(&p, scratch_memory());
	for (size_t i = 0; i < COUNT(e); i++) {
		snprintf(names[i], sizeof(names[i]), "file-%zu", i);
		e[i] = (struct file_set_entry){names[i], names[i], strlen(names[i])};
	}
	assert_int_equal(file_set_publish(p.f, e, FILE_SET_MAX, 1, &in_memory, why), 0);
	assert_true(file_set_is_current(p.f, e, FILE_SET_MAX, &in_memory));
	assert_int_equal(file_set_publish(p.f, e, FILE_SET_MAX + 1, 2, &in_memory, why), -E2BIG);
	assert_non_null(strstr(why, "1001 files are too many"));
	assert_true(file_set_is_current(p.f, NULL, 0, &in_memory));
	place_fini(&p);
}

/* ---- what is refused ---- */

static void expect_refused(struct place *p, const struct set *s, int error, const char *part)
{
	char why[FILE_WHY] = "";
	unsigned before = entries_in(p->dir);

	assert_int_equal(publish(p, s, 9, why), error);
	if (!strstr(why, part))
		fail_msg("%s", why);
	assert_int_equal(entries_in(p->dir), before);
}

static void publish__with_something_else_in_the_way__says_so_and_touches_nothing(void **state)
{
	struct place p;
	struct stat st;

	(void)state;
	place_init(&p, scratch_memory());
	put(&p, "fresh", "mine\n");
	put(&p, "unrelated", "mine\n");
	publish_well(&p, &old_set, 1);
	expect_refused(&p, &new_set, -EEXIST, "/fresh: something else has that name; remove it");
	assert_true(has_text(
		AT_FDCWD, path_of(&p, "fresh"), &(struct file_set_entry){"fresh", "mine\n", 5}));
	assert_int_equal(unlink(path_of(&p, "fresh")), 0);
	assert_int_equal(symlink("elsewhere", path_of(&p, "fresh")), 0);
	expect_refused(&p, &new_set, -EEXIST, "/fresh: something else");
	assert_int_equal(unlink(path_of(&p, "fresh")), 0);
	assert_int_equal(symlink("..data/fresh2", path_of(&p, "fresh")), 0);
	expect_refused(&p, &new_set, -EEXIST, "/fresh: something else");
	assert_int_equal(unlink(path_of(&p, "fresh")), 0);
	assert_int_equal(mkdir(path_of(&p, "fresh"), 0700), 0);
	expect_refused(&p, &new_set, -EEXIST, "/fresh: something else");
	assert_int_equal(rmdir(path_of(&p, "fresh")), 0);
	assert_int_equal(visible(&p), 0);
	publish_well(&p, &new_set, 2);
	assert_true(is_tidy(&p, &new_set));
	assert_int_equal(lstat(path_of(&p, "unrelated"), &st), 0);
	place_reopen(&p);
	assert_int_equal(lstat(path_of(&p, "unrelated"), &st), 0);
	place_fini(&p);
}

static void publish__with_foreign_data__is_refused_and_so_is_open(void **state)
{
	static const char *const texts[] = {"..2024_05_01_10_00_00.123456789", "elsewhere",
		"..1-0123456789abcdefa", "..1-0123456789abcdeF", "..-0123456789abcdef",
		"..123456789012345678901-0123456789abcdef", "/..1-0123456789abcdef", NULL};
	char why[FILE_WHY] = "", there[300];
	struct file_set *f = NULL;
	struct place p;

	(void)state;
	place_init(&p, scratch_memory());
	for (size_t i = 0; i < COUNT(texts); i++) {
		if (texts[i])
			assert_int_equal(symlink(texts[i], path_of(&p, "..data")), 0);
		else
			put(&p, "..data", "x");
		expect_refused(&p, &new_set, -EEXIST, "/..data: it is not one of this agent's");
		assert_int_equal(file_set_open(&sys, p.dir, &f, why), -EEXIST);
		assert_non_null(strstr(why, "use another directory"));
		if (texts[i])
			assert_int_equal(readlink(path_of(&p, "..data"), there, sizeof(there)),
				strlen(texts[i]));
		assert_int_equal(unlink(path_of(&p, "..data")), 0);
	}
	publish_well(&p, &new_set, 1);
	place_fini(&p);
}

static void publish__where_the_link_cannot_be_read__says_why(void **state)
{
	char why[FILE_WHY] = "";
	struct file_set *f = NULL;
	struct place p;

	(void)state;
	place_init(&p, scratch_memory());
	publish_well(&p, &old_set, 1);
	link_error = EIO;
	expect_refused(&p, &new_set, -EIO, "/..data: Input/output error");
	assert_int_equal(file_set_open(&sys, p.dir, &f, why), -EIO);
	link_error = 0;
	assert_null(strstr(why, "exists"));
	publish_well(&p, &new_set, 2);
	place_fini(&p);
}

static void publish__of_bad_names__names_them(void **state)
{
	char longest[202];
	const char *const bad[] = {"", ".", "..", "..data", "...", "..x", "a/b", "/", "a b", "a\n",
		"\xc3\xa4", "a\\", "a:b", longest};
	struct set s = {{ENTRY("x", "1"), ENTRY("y", "2"), ENTRY("z", "3")}, 3};
	struct place p;

	(void)state;
	place_init(&p, scratch_memory());
	memset(longest, 'n', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	for (size_t i = 0; i < COUNT(bad); i++) {
		s.e[1].name = bad[i];
		expect_refused(&p, &s, -EINVAL, "a name is 1 to 200 of");
	}
	s.e[1].name = "z";
	expect_refused(&p, &s, -EINVAL, "/z: two of the set have this name");
	s.e[1].name = longest + 1;
	s.e[2].name = ".z";
	publish_well(&p, &s, 1);
	assert_true(is_tidy(&p, &s));
	place_fini(&p);
}

static int open_error(const char *dir, const char *part)
{
	char why[FILE_WHY] = "";
	struct file_set *f = NULL;
	int r = file_set_open(&sys, dir, &f, why);

	if (r == 0)
		file_set_close(f);
	if (!strstr(why, part))
		fail_msg("%s", why);
	return r;
}

static void open__in_bad_places__says_what_to_do(void **state)
{
	struct place p;
	struct stat st;

	(void)state;
	place_init(&p, scratch_memory());
	assert_int_equal(chmod(p.dir, 0770), 0);
	assert_int_equal(open_error(p.dir, "chmod go-w"), -EPERM);
	assert_int_equal(chmod(p.dir, 01777), 0); /* others could put their links there */
	assert_int_equal(open_error(p.dir, "chmod go-w"), -EPERM);
	expect_refused(&p, &new_set, -EPERM, "chmod go-w");
	assert_int_equal(chmod(p.dir, 0700), 0);
	put(&p, "file", "");
	assert_int_equal(open_error(path_of(&p, "file"), "Not a directory"), -ENOTDIR);
	assert_int_equal(open_error(path_of(&p, "no/such"), "No such file"), -ENOENT);
	assert_int_equal(open_error(path_of(&p, "made"), ""), 0);
	assert_int_equal(stat(path_of(&p, "made"), &st), 0);
	place_fini(&p);
}

/* ---- leftovers ---- */

static void publish__into_a_directory_that_is_append_only__leaves_nothing(void **state)
{
	int flags = FS_APPEND_FL, none = 0, dir;
	bool can;
	struct place p;

	(void)state;
	place_init(&p, scratch_memory());
	publish_well(&p, &old_set, 1);
	dir = open(p.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	can = ioctl(dir, FS_IOC_SETFLAGS, &flags) == 0;
	if (can)
		expect_refused(&p, &new_set, -EPERM, "append-only: chattr -a it");
	ioctl(dir, FS_IOC_SETFLAGS, &none);
	close(dir);
	place_fini(&p);
	if (!can)
		skip();
}

static void open__after_a_crash__puts_right_what_is_left_and_no_more(void **state)
{
	struct place p;
	struct stat st;

	(void)state;
	place_init(&p, scratch_memory());
	publish_well(&p, &old_set, 1);
	publish_well(&p, &new_set, 2);
	assert_int_equal(mkdir(path_of(&p, "..3-0123456789abcdef"), 0700), 0);
	put(&p, "..3-0123456789abcdef/half", "written");
	assert_int_equal(mkdir(path_of(&p, "..0-0123456789abcdef"), 0700), 0);
	assert_int_equal(
		symlink("..3-0123456789abcdef", path_of(&p, "...data.pullet-0123456789abcdef")), 0);
	assert_int_equal(symlink("..data/gone", path_of(&p, "gone")), 0);
	assert_int_equal(unlink(path_of(&p, "fresh")), 0);
	/* not ours */
	assert_int_equal(symlink("..data/gone", path_of(&p, "other")), 0);
	assert_int_equal(symlink("nowhere", path_of(&p, "dangling")), 0);
	assert_int_equal(mkdir(path_of(&p, "..2024_05_01"), 0700), 0);
	put(&p, ".x.pullet-0123456789abcdef", "");
	place_reopen(&p);
	assert_int_equal(lstat(path_of(&p, "..3-0123456789abcdef"), &st), -1);
	assert_int_equal(lstat(path_of(&p, "..0-0123456789abcdef"), &st), 0); /* one of three */
	assert_int_equal(lstat(path_of(&p, "other"), &st), 0);
	assert_int_equal(lstat(path_of(&p, "dangling"), &st), 0);
	assert_int_equal(lstat(path_of(&p, "..2024_05_01"), &st), 0);
	assert_int_equal(lstat(path_of(&p, ".x.pullet-0123456789abcdef"), &st), 0);
	rmdir(path_of(&p, "..2024_05_01"));
	unlink(path_of(&p, "other"));
	unlink(path_of(&p, "dangling"));
	unlink(path_of(&p, ".x.pullet-0123456789abcdef"));
	assert_true(is_tidy(&p, &new_set));
	assert_true(is_current(&p, &new_set));
	place_fini(&p);
}

/* Somebody removed what ..data leads to: no reader has a set, until it is published again. */
static void open__with_data_that_leads_nowhere__publishes_again(void **state)
{
	struct place p;
	char inner[PATH_MAX];
	struct stat st;

	(void)state;
	place_init(&p, scratch_memory());
	publish_well(&p, &old_set, 1);
	assert_int_equal(symlink("..5-0123456789abcdef", path_of(&p, "x")), 0);
	snprintf(inner, sizeof(inner), "%s", path_of(&p, "x"));
	assert_int_equal(rename(inner, path_of(&p, "..data")), 0);
	place_reopen(&p);
	assert_int_equal(visible(&p), -1);
	assert_int_equal(lstat(path_of(&p, "a.conf"), &st), 0); /* the links wait for it */
	assert_false(is_current(&p, &old_set));
	publish_well(&p, &old_set, 6);
	assert_int_equal(visible(&p), 0);
	assert_true(is_tidy(&p, &old_set));
	assert_true(is_current(&p, NULL));
	place_fini(&p);
}

/* Only a link that leads nowhere is stale. */
static void open__with_a_link_that_leads_in_a_circle__keeps_it(void **state)
{
	struct place p;
	struct stat st;

	(void)state;
	place_init(&p, scratch_memory());
	publish_well(&p, &old_set, 1);
	assert_int_equal(unlink(path_of(&p, "..data/gone")), 0);
	assert_int_equal(symlink("gone", path_of(&p, "..data/gone")), 0);
	assert_int_equal(unlink(path_of(&p, "..data/b")), 0);
	place_reopen(&p);
	assert_int_equal(lstat(path_of(&p, "gone"), &st), 0);
	assert_int_equal(lstat(path_of(&p, "b"), &st), -1);
	assert_false(is_current(&p, &old_set));
	publish_well(&p, &old_set, 2);
	assert_true(is_tidy(&p, &old_set));
	place_fini(&p);
}

static void put_generation_of(
	const struct place *p, unsigned number, unsigned tail, struct timespec made)
{
	const struct timespec times[2] = {made, made};
	char name[64];

	snprintf(name, sizeof(name), "..%u-%016x", number, tail);
	assert_int_equal(mkdir(path_of(p, name), 0700), 0);
	assert_int_equal(utimensat(AT_FDCWD, path_of(p, name), times, 0), 0);
}

static void put_generation(const struct place *p, unsigned number, unsigned tail, time_t made)
{
	put_generation_of(p, number, tail, (struct timespec){.tv_sec = made});
}

/* More than are looked at in one go: each start and each publication removes some. */
static void open__with_very_many_generations__keeps_the_current_one(void **state)
{
	struct place p;
	unsigned left;

	(void)state;
	place_init(&p, scratch_memory());
	publish_well(&p, &old_set, 1000);
	for (unsigned i = 0; i < 150; i++)
		put_generation(&p, i, i, 1000);
	place_reopen(&p);
	left = generations(&p);
	assert_in_range(left, FILE_SET_KEEP + 1, 150);
	for (int i = 0; i < 4; i++) {
		place_reopen(&p);
		assert_int_equal(visible(&p), 0);
	}
	assert_true(is_tidy(&p, &old_set));
	assert_true(is_current(&p, &old_set));
	place_fini(&p);
}

/* Its number is that of others, when the state directory was lost: time decides. */
static void publish__beside_generations_of_one_number__keeps_the_latest(void **state)
{
	struct place p;
	struct stat st;

	(void)state;
	place_init(&p, scratch_memory());
	publish_well(&p, &old_set, 7);
	put_generation(&p, 7, 1, 2000);
	put_generation(&p, 7, 2, 3000); /* one more than the current one and that before it */
	put_generation(&p, 7, 3, 1000);
	publish_well(&p, &new_set, 8);
	assert_int_equal(lstat(path_of(&p, "..7-0000000000000001"), &st), -1);
	assert_int_equal(lstat(path_of(&p, "..7-0000000000000002"), &st), 0);
	assert_int_equal(lstat(path_of(&p, "..7-0000000000000003"), &st), -1);
	assert_true(is_tidy(&p, &new_set));
	place_fini(&p);
}

/* What was made after the visible one never was visible; to the nanosecond, of one number. */
static void open__beside_generations_of_one_number__removes_those_made_later(void **state)
{
	struct timespec made, later, earlier;
	struct place p;
	struct stat st;

	(void)state;
	place_init(&p, scratch_memory());
	publish_well(&p, &old_set, 7);
	assert_int_equal(stat(path_of(&p, "..data"), &st), 0);
	made = later = earlier = st.st_mtim;
	later.tv_nsec = (later.tv_nsec + 1) % 1000000000;
	later.tv_sec += later.tv_nsec == 0;
	earlier.tv_sec--;
	put_generation_of(&p, 7, 1, made);
	put_generation_of(&p, 7, 2, later);
	put_generation_of(&p, 7, 3, earlier);
	put_generation_of(&p, 8, 4, earlier);
	place_reopen(&p);
	assert_int_equal(lstat(path_of(&p, "..7-0000000000000001"), &st), 0);
	assert_int_equal(lstat(path_of(&p, "..7-0000000000000002"), &st), -1);
	assert_int_equal(lstat(path_of(&p, "..7-0000000000000003"), &st), 0);
	assert_int_equal(lstat(path_of(&p, "..8-0000000000000004"), &st), -1);
	assert_true(is_tidy(&p, &old_set));
	place_fini(&p);
}

/* ---- is_current ---- */

/* Through the link, same length; again until the clock of the file system has moved on. */
static void edit(const struct place *p)
{
	struct stat before, st;

	assert_int_equal(stat(path_of(p, "b"), &before), 0);
	do {
		put(p, "b", "new B\n");
		assert_int_equal(stat(path_of(p, "b"), &st), 0);
	} while (st.st_ctim.tv_sec == before.st_ctim.tv_sec &&
		 st.st_ctim.tv_nsec == before.st_ctim.tv_nsec);
}

static void edit_and_hide_it(const struct place *p)
{
	struct timespec times[2];
	struct stat st;

	assert_int_equal(stat(path_of(p, "b"), &st), 0);
	edit(p);
	times[0] = st.st_atim;
	times[1] = st.st_mtim;
	assert_int_equal(utimensat(AT_FDCWD, path_of(p, "b"), times, 0), 0);
}

static void change_mode(const struct place *p)
{
	assert_int_equal(chmod(path_of(p, "b"), 0600), 0);
}

static void remove_file(const struct place *p)
{
	assert_int_equal(unlink(path_of(p, "..data/b")), 0);
}

static void replace_file(const struct place *p)
{
	char from[PATH_MAX];

	put(p, "..data/b.new", "new b\n");
	snprintf(from, sizeof(from), "%s", path_of(p, "..data/b.new"));
	assert_int_equal(rename(from, path_of(p, "..data/b")), 0);
}

static void add_file(const struct place *p)
{
	put(p, "..data/extra", "");
}

static void remove_link(const struct place *p)
{
	assert_int_equal(unlink(path_of(p, "b")), 0);
}

static void replace_link(const struct place *p)
{
	remove_link(p);
	put(p, "b", "new b\n");
}

static void turn_link(const struct place *p)
{
	remove_link(p);
	assert_int_equal(symlink("..data/a.conf", path_of(p, "b")), 0);
}

static void remove_data(const struct place *p)
{
	assert_int_equal(unlink(path_of(p, "..data")), 0);
}

static void turn_data(const struct place *p)
{
	char copy[] = "..9-0123456789abcdef";

	assert_int_equal(mkdir(path_of(p, copy), 0755), 0);
	remove_data(p);
	assert_int_equal(symlink(copy, path_of(p, "..data")), 0);
}

static void put_data(const struct place *p)
{
	remove_data(p);
	put(p, "..data", "");
}

static void remove_all(const struct place *p)
{
	scratch_close(p->dir);
	assert_int_equal(mkdir(p->dir, 0700), 0);
}

static void is_current__tells_every_change_by_others(void **state)
{
	static const struct {
		void (*change)(const struct place *p);
		bool in_the_way; /* publishing does not mend it */
	} changes[] = {
		{edit, false},
		{edit_and_hide_it, false},
		{change_mode, false},
		{remove_file, false},
		{replace_file, false},
		{add_file, false},
		{remove_link, false},
		{replace_link, true},
		{turn_link, true},
		{remove_data, false},
		{turn_data, false},
		{put_data, true},
		{remove_all, false},
	};
	char why[FILE_WHY];

	(void)state;
	for (size_t i = 0; i < COUNT(changes); i++) {
		struct place p;

		place_init(&p, scratch_memory());
		publish_well(&p, &new_set, 1);
		assert_true(is_current(&p, NULL));
		changes[i].change(&p);
		assert_false(is_current(&p, NULL));
		assert_false(is_current(&p, &new_set));
		assert_int_equal(
			publish(&p, &new_set, 1, why), changes[i].in_the_way ? -EEXIST : 0);
		assert_int_equal(is_current(&p, NULL), !changes[i].in_the_way);
		place_fini(&p);
	}
}

static void is_current__after_a_start__compares_what_stands_there(void **state)
{
	struct set other = new_set;
	struct place p;

	(void)state;
	place_init(&p, scratch_disk());
	assert_false(is_current(&p, &new_set));
	publish_well(&p, &new_set, 1);
	place_reopen(&p);
	assert_false(is_current(&p, NULL)); /* nothing to compare with */
	assert_false(is_current(&p, &old_set));
	other.e[1] = (struct file_set_entry)ENTRY("fresh", "NEW only\n");
	assert_false(is_current(&p, &other));
	other.e[1] = (struct file_set_entry)ENTRY("renamed", "new only\n");
	assert_false(is_current(&p, &other)); /* as many, one of another name */
	other = new_set;
	other.count = 4;
	assert_false(is_current(&p, &other));
	p.options.mode = 0600;
	assert_false(is_current(&p, &new_set));
	p.options.mode = 0640;
	assert_true(is_current(&p, &new_set));
	assert_true(is_current(&p, NULL));
	assert_true(has_text(AT_FDCWD, path_of(&p, "b"), &new_set.e[0])); /* reading is no change */
	assert_true(is_current(&p, NULL));
	put(&p, "unrelated", "");
	assert_true(is_current(&p, NULL));
	edit(&p);
	assert_false(is_current(&p, NULL));
	place_fini(&p);
}

/* ---- sentences ---- */

static unsigned busy; /* so many names are taken */

static int busy_mkdirat(int at, const char *path, mode_t mode)
{
	if (busy && busy--) {
		errno = EEXIST;
		return -1;
	}
	return mkdirat(at, path, mode);
}

static void generation__whose_names_are_taken__is_tried_under_five(void **state)
{
	char why[FILE_WHY] = "", words[SCRATCH_PATH + 64];
	struct place p;

	(void)state;
	place_init(&p, scratch_memory());
	sys.mkdirat = busy_mkdirat;
	busy = 4;
	publish_well(&p, &old_set, 1);
	busy = 5;
	assert_int_equal(publish(&p, &new_set, 2, why), -EEXIST);
	assert_int_equal(busy, 0);
	snprintf(words, sizeof(words), "cannot make a directory in %s: ", p.dir);
	assert_int_equal(strncmp(why, words, strlen(words)), 0);
	place_fini(&p);
}

static uint64_t same_each_time(void)
{
	return 0xab;
}

static void generation__of_somebody_elses_name__is_not_removed(void **state)
{
	char why[FILE_WHY] = "";
	struct place p;

	(void)state;
	place_init(&p, scratch_memory());
	sys.random = same_each_time;
	assert_int_equal(mkdir(path_of(&p, "..2-00000000000000ab"), 0700), 0);
	assert_int_equal(publish(&p, &old_set, 2, why), -EEXIST);
	assert_int_equal(access(path_of(&p, "..2-00000000000000ab"), F_OK), 0);
	place_fini(&p);
}

/* Each call fails in its turn; each of these sentences is said, once at least. */
static void publish__that_fails__says_at_what(void **state)
{
	static const struct {
		enum fault_call call;
		const char *words;
	} table[] = {
		{CALL_MKDIR, "cannot make a directory in /"},
		{CALL_FCHMOD, "cannot set the mode of a directory in /"},
		{CALL_FSYNC, "cannot bring to the disk a directory in /"},
		{CALL_FSYNC, "cannot bring to the disk /"},
		{CALL_FSYNC, "the new set is visible, but not on the disk yet: /"},
		{CALL_SYMLINK, "cannot make /"},
		{CALL_RENAME, "cannot replace /"},
	};
	char why[FILE_WHY];

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		bool said = false, hit = true;
		size_t fileless = 0;

		for (unsigned n = 1; hit; n++) {
			struct place p;
			int r;

			place_init(&p, scratch_memory());
			p.options.sync = true;
			why[0] = '\0';
			fault = (struct fault){.call = (int)table[i].call, .nth = n, .error = EIO};
			r = publish(&p, &old_set, 1, why);
			hit = fault.seen >= n;
			assert_int_equal(r != 0, hit);
			said |= strncmp(why, table[i].words, strlen(table[i].words)) == 0;
			fileless += hit && !strstr(why, p.dir);
			place_fini(&p);
			assert_in_range(n, 1, 100);
		}
		if (!said)
			fail_msg("%s", table[i].words);
		assert_int_equal(fileless, 0);
	}
}

static void directory__that_is_made__may_be_read_by_all(void **state)
{
	char path[SCRATCH_PATH + 16], why[FILE_WHY] = "";
	struct file_set *f = NULL;
	struct place p;
	struct stat st;

	(void)state;
	umask(022);
	place_init(&p, scratch_memory());
	snprintf(path, sizeof(path), "%s/made", p.dir);
	assert_int_equal(file_set_open(&sys, path, &f, why), 0);
	file_set_close(f);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0755);
	place_fini(&p);
}

static void descriptor_0__is_as_good_as_any(void **state)
{
	bool open = false, current = false, closed;
	char why[FILE_WHY] = "";
	struct place p;
	int kept, r[3];

	(void)state;
	place_init(&p, scratch_memory());
	file_set_close(p.f);
	kept = fault_begin_zero();
	open = file_set_open(&sys, p.dir, &p.f, why) == 0;
	r[0] = open ? publish(&p, &old_set, 1, why) : -1;
	r[1] = open ? publish(&p, &new_set, 2, why) : -1;
	current = open && file_set_is_current(p.f, new_set.e, new_set.count, &p.options);
	if (open)
		file_set_close(p.f);
	open = file_set_open(&sys, p.dir, &p.f, why) == 0;
	r[2] = open && file_set_is_current(p.f, new_set.e, new_set.count, &p.options);
	closed = fault_end_zero(kept);
	assert_true(open && current && closed);
	assert_true(r[0] == 0 && r[1] == 0 && r[2] == 1);
	place_fini(&p);
}

static void is_current__without_its_directory__is_false(void **state)
{
	char why[FILE_WHY] = "";
	unsigned before;
	struct place p;

	(void)state;
	place_init(&p, scratch_memory());
	publish_well(&p, &new_set, 1);
	scratch_close(p.dir);
	before = descriptors();
	assert_false(is_current(&p, NULL));
	assert_false(is_current(&p, &new_set));
	assert_int_equal(publish(&p, &new_set, 2, why), 0); /* it is made again */
	assert_true(is_current(&p, &new_set));
	assert_int_equal(descriptors(), before);
	place_fini(&p);
}

/* ---- somebody at the very moment ---- */

static const struct place *touched; /* NULL: nobody */
static void (*touch)(const struct place *p);

/* By its link, which is there only once the old set was published. */
static int touch_after_flip(int from_dir, const char *from, int to_dir, const char *to)
{
	int r = fault_renameat(from_dir, from, to_dir, to);

	if (r == 0 && touched && strcmp(to, "..data") == 0)
		touch(touched);
	return r;
}

static void publish__touched_right_after_the_flip__is_not_current(void **state)
{
	static void (*const touches[])(const struct place *p) = {
		edit, edit_and_hide_it, change_mode, remove_file, replace_file, add_file};

	(void)state;
	for (size_t i = 0; i < COUNT(touches); i++) {
		struct place p;

		place_init(&p, scratch_memory());
		publish_well(&p, &old_set, 1);
		touched = &p;
		touch = touches[i];
		sys.renameat = touch_after_flip;
		publish_well(&p, &new_set, 2);
		touched = NULL;
		assert_false(is_current(&p, NULL)); /* somebody was faster than the first look */
		publish_well(&p, &new_set, 3);
		assert_int_equal(visible(&p), 1);
		assert_true(is_tidy(&p, &new_set));
		assert_true(is_current(&p, NULL));
		place_fini(&p);
	}
}

static void remove_written(int dir)
{
	assert_int_equal(unlinkat(dir, "b", 0), 0);
}

static void lengthen_written(int dir)
{
	int fd = openat(dir, "b", O_WRONLY | O_APPEND | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "x", 1), 1);
	close(fd);
}

static void (*touch_written)(int dir);

/* The directory gets its mode when all files are written. */
static int touch_before_flip(int fd, mode_t mode)
{
	if (touch_written && mode == 0755)
		touch_written(fd);
	return fault_fchmod(fd, mode);
}

static void publish__touched_before_the_flip__is_not_current(void **state)
{
	static void (*const touches[])(int dir) = {remove_written, lengthen_written};

	(void)state;
	for (size_t i = 0; i < COUNT(touches); i++) {
		struct place p;

		place_init(&p, scratch_memory());
		touch_written = touches[i];
		sys.fchmod = touch_before_flip;
		publish_well(&p, &new_set, 1);
		touch_written = NULL;
		assert_false(is_current(&p, NULL));
		publish_well(&p, &new_set, 2);
		assert_true(is_tidy(&p, &new_set));
		assert_true(is_current(&p, NULL));
		place_fini(&p);
	}
}

/* ---- faults ---- */

static const int errors[] = {
	ENOSPC, EDQUOT, EIO, EROFS, EACCES, EMFILE, EINTR, ENOMEM, EEXIST, ENOENT};

/* One publication with the fault; what must hold after it. False when the fault was never met. */
static bool try_fault(bool sync, int call, unsigned nth, bool for_ever, int error)
{
	char why[FILE_WHY] = "";
	struct place p;
	unsigned before;
	bool met;
	int r;

	/* a descriptor that answers EINTR for ever is not a kernel's behaviour */
	if (error == EINTR && for_ever && (call == CALL_WRITE || call == CALL_OPEN))
		return false;
	place_init(&p, scratch_memory());
	p.options.sync = sync;
	publish_well(&p, &old_set, 1);
	before = descriptors();
	fault = (struct fault){.call = call, .nth = nth, .for_ever = for_ever, .error = error};
	r = publish(&p, &new_set, 2, why);
	met = fault.seen >= nth;
	fault.nth = 0;
	assert_int_equal(descriptors(), before);
	assert_int_equal(visible(&p), r >= 0);
	assert_int_equal(r != 0, why[0] != '\0');
	if (r != FILE_SET_INCOMPLETE && call != CALL_UNLINK && call != CALL_OPEN) {
		assert_true(is_tidy(&p, r < 0 ? &old_set : &new_set));
		assert_int_equal(generations(&p), r < 0 ? 1 : 2);
	}
	if (r == FILE_SET_INCOMPLETE)
		assert_false(is_current(&p, NULL));
	publish_well(&p, &new_set, 2);
	assert_int_equal(visible(&p), 1);
	assert_true(is_current(&p, NULL));
	place_reopen(&p);
	assert_true(is_tidy(&p, &new_set));
	place_fini(&p);
	return met;
}

static void publish__with_each_call_failing_in_each_way__keeps_old_or_shows_new(void **state)
{
	unsigned points = 0;

	(void)state;
	for (int sync = 0; sync < 2; sync++)
		for (int call = 0; call < CALLS; call++)
			for (size_t e = 0; e < COUNT(errors); e++)
				for (int for_ever = 0; for_ever < 2; for_ever++)
					for (unsigned nth = 1; nth < 100; nth++) {
						if (!try_fault(
							    sync, call, nth, for_ever, errors[e]))
							break;
						points++;
					}
	print_message("%u fault points\n", points);
	assert_true(points > 500);
}

/* After a crash between the flip and the links. What an opening cannot do, the next one does. */
static void open__with_each_call_failing__opens_or_says_why_and_harms_nothing(void **state)
{
	unsigned points = 0, before;
	bool met = true;
	struct place p;

	(void)state;
	for (int for_ever = 0; for_ever < 2; for_ever++, met = true)
		for (unsigned nth = 1; met; nth++) {
			char why[FILE_WHY] = "";
			struct file_set *f = NULL;
			int r;

			place_init(&p, scratch_memory());
			publish_well(&p, &old_set, 1);
			assert_int_equal(mkdir(path_of(&p, "..check-0123456789abcdef"), 0700), 0);
			assert_int_equal(unlink(path_of(&p, "gone")), 0);
			before = descriptors();
			fault = (struct fault){
				.call = -1, .nth = nth, .for_ever = for_ever, .error = EMFILE};
			r = file_set_open(&sys, p.dir, &f, why);
			met = fault.seen >= nth;
			points += met;
			fault.nth = 0;
			assert_int_equal(r != 0, f == NULL);
			assert_true(r == 0 || (r == -EMFILE && strstr(why, p.dir)));
			assert_int_equal(visible(&p), 0);
			if (f)
				file_set_close(f);
			assert_int_equal(descriptors(), before);
			place_reopen(&p);
			assert_true(is_tidy(&p, &old_set));
			assert_int_equal(entries_in(p.dir), 2 + 2 + old_set.count);
			place_fini(&p);
		}
	assert_true(points > 10);
}

static void publish__when_a_link_cannot_be_made__is_visible_and_says_so(void **state)
{
	char why[FILE_WHY] = "";
	struct place p;

	(void)state;
	place_init(&p, scratch_memory());
	publish_well(&p, &old_set, 1);
	fault = (struct fault){.call = CALL_SYMLINK, .nth = 2, .error = ENOSPC};
	assert_int_equal(publish(&p, &new_set, 2, why), FILE_SET_INCOMPLETE);
	assert_non_null(strstr(why, "cannot make the link"));
	assert_int_equal(visible(&p), 1);
	assert_false(is_current(&p, &new_set));
	place_reopen(&p);
	assert_true(is_tidy(&p, &new_set));
	assert_true(is_current(&p, &new_set));
	place_fini(&p);
}

static void publish__when_only_the_directory_fsync_fails__is_visible_and_says_so(void **state)
{
	char why[FILE_WHY] = "";
	struct place p;

	(void)state;
	place_init(&p, scratch_memory());
	p.options.sync = true;
	publish_well(&p, &old_set, 1);
	/* a file and its directory each, the directory, the outer one, then the flip's */
	fault = (struct fault){
		.call = CALL_FSYNC, .nth = 2 * (unsigned)old_set.count + 3, .error = EIO};
	assert_int_equal(publish(&p, &old_set, 2, why), FILE_NOT_DURABLE);
	assert_non_null(strstr(why, "visible, but not on the disk yet"));
	assert_true(is_tidy(&p, &old_set));
	assert_true(is_current(&p, NULL));
	place_fini(&p);
}

/* ---- the process ends at the n-th call ---- */

typedef void (*publisher)(struct place *p);

static void end_well(struct place *p)
{
	char why[FILE_WHY];

	publish(p, &new_set, 2, why);
}

/* A seeded bug: the files come behind the flip. */
static void end_flipped_first(struct place *p)
{
	char why[FILE_WHY], from[PATH_MAX];
	int dir;

	sys.mkdirat(AT_FDCWD, path_of(p, "..2-0123456789abcdef"), 0700);
	dir = sys.openat(AT_FDCWD, path_of(p, "..2-0123456789abcdef"), O_RDONLY | O_DIRECTORY, 0);
	sys.symlinkat("..2-0123456789abcdef", AT_FDCWD, path_of(p, "x"));
	snprintf(from, sizeof(from), "%s", path_of(p, "x"));
	rename(from, path_of(p, "..data"));
	for (size_t i = 0; i < new_set.count; i++)
		file_replace(&sys, dir, new_set.e[i].name, new_set.e[i].data, new_set.e[i].len,
			&in_memory, why);
	sys.close(dir);
}

/* How many of the points leave something bad behind; *ret_points is how many there are. */
static unsigned end_at_each_call(bool sync, publisher end, unsigned *ret_points)
{
	unsigned bad = 0, n;

	for (n = 1; n < 200; n++) {
		struct place p;
		int status, seen;
		pid_t child;

		place_init(&p, scratch_memory());
		p.options.sync = sync;
		publish_well(&p, &old_set, 1);
		child = fork();
		assert_true(child >= 0);
		if (child == 0) {
			fault = (struct fault){.call = -1, .nth = n};
			end(&p);
			_exit(0);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		seen = visible(&p);
		place_reopen(&p);
		bad += seen == -1 || visible(&p) != seen ||
		       !is_tidy(&p, seen ? &new_set : &old_set) ||
		       !is_current(&p, seen ? &new_set : &old_set) ||
		       generations(&p) != (seen ? 2 : 1);
		if (seen != -1) {
			publish_well(&p, &new_set, 2);
			bad += !is_tidy(&p, &new_set);
		}
		place_fini(&p);
		if (WEXITSTATUS(status) == 0)
			break;
	}
	*ret_points = n - 1;
	return bad;
}

static void publish__ended_at_each_call__leaves_a_whole_set_and_nothing_else(void **state)
{
	unsigned synced, not_synced;

	(void)state;
	assert_int_equal(end_at_each_call(true, end_well, &synced), 0);
	assert_int_equal(end_at_each_call(false, end_well, &not_synced), 0);
	print_message("%u points with fsync, %u without\n", synced, not_synced);
	assert_true(synced > not_synced && not_synced > 30);
}

static void harness__sees_a_publisher_that_flips_first(void **state)
{
	unsigned points;

	(void)state;
	assert_true(end_at_each_call(false, end_flipped_first, &points) > 0);
}

/* ---- readers ---- */

#define NAMES 6
static const char *const shared_names[NAMES] = {"a", "b", "c", "d", "e", "f"};

struct readers {
	struct place p;
	_Atomic uint64_t began, done; /* numbers of publications */
	_Atomic bool stop;
	_Atomic unsigned long whole, retired, mixed, lost; /* sets read */
	_Atomic unsigned long singles;
	_Atomic uint64_t seen; /* generations, by the first reader */
};

/* The number in a file; 0 when there is none. */
static uint64_t read_number(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	char text[4096];
	ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	return strtoull(text, NULL, 10);
}

/* What cannot be read must be of a generation that is not kept any more. */
static void missed(struct readers *r, uint64_t oldest)
{
	if (atomic_load(&r->began) >= oldest + FILE_SET_KEEP)
		atomic_fetch_add(&r->retired, 1);
	else
		atomic_fetch_add(&r->lost, 1);
}

/* Reads sets through one descriptor of ..data. */
static void *read_sets(void *arg)
{
	struct readers *r = arg;
	uint64_t last = 0;
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/..data", r->p.dir);
	while (!atomic_load(&r->stop)) {
		uint64_t oldest = atomic_load(&r->done), first = 0, n = 0;
		int dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
		size_t i;

		for (i = 0; i < NAMES && dir >= 0; i++) {
			n = read_number(dir, shared_names[i]);
			first = i ? first : n;
			if (n == 0 || n != first)
				break;
		}
		if (i == NAMES) {
			atomic_fetch_add(&r->whole, 1);
			atomic_fetch_add(&r->seen, first != last);
			atomic_fetch_add(&r->lost, first < oldest);
			last = first;
		} else if (n == 0) {
			missed(r, oldest);
		} else {
			atomic_fetch_add(&r->mixed, 1);
		}
		if (dir >= 0)
			close(dir);
	}
	return NULL;
}

/* Opens one file after the other by its name. */
static void *read_names(void *arg)
{
	struct readers *r = arg;
	char path[PATH_MAX];

	for (size_t i = 0; !atomic_load(&r->stop); i = (i + 1) % NAMES) {
		uint64_t oldest = atomic_load(&r->done), n;

		snprintf(path, sizeof(path), "%s/%s", r->p.dir, shared_names[i]);
		n = read_number(AT_FDCWD, path);
		if (n == 0)
			missed(r, oldest);
		else
			atomic_fetch_add(n < oldest ? &r->lost : &r->singles, 1);
	}
	return NULL;
}

typedef void (*shared_publisher)(struct place *p, const struct set *s, uint64_t generation);

/* The other seeded bug. */
static void publish_in_place(struct place *p, const struct set *s, uint64_t generation)
{
	if (generation == 1)
		publish_well(p, s, generation);
	for (size_t i = 0; i < s->count; i++)
		put(p, s->e[i].name, s->e[i].data);
}

static void set_of(uint64_t generation, struct set *s, char text[512])
{
	size_t len = (size_t)snprintf(text, 32, "%llu ", (unsigned long long)generation);

	memset(text + len, '.', generation * 37 % 400); /* of several lengths */
	text[len + generation * 37 % 400] = '\0';
	s->count = NAMES;
	for (size_t i = 0; i < NAMES; i++)
		s->e[i] = (struct file_set_entry){shared_names[i], text, strlen(text)};
}

static bool read_enough(struct readers *r)
{
	return atomic_load(&r->whole) + atomic_load(&r->mixed) >= READS &&
	       atomic_load(&r->singles) >= READS && atomic_load(&r->seen) >= 100;
}

static void flip_under_readers(struct readers *r, shared_publisher publish_one, bool until_mixed)
{
	pthread_t threads[3];
	char text[512];
	struct set s;
	uint64_t g;

	memset(r, 0, sizeof(*r));
	place_init(&r->p, scratch_memory());
	set_of(1, &s, text);
	publish_one(&r->p, &s, 1);
	atomic_store(&r->began, 1);
	atomic_store(&r->done, 1);
	for (size_t i = 0; i < COUNT(threads); i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, i == 2 ? read_names : read_sets, r), 0);
	for (g = 2; g < MOST &&
		    (until_mixed ? !atomic_load(&r->mixed) : g <= FLIPS + 1 || !read_enough(r));
		g++) {
		set_of(g, &s, text);
		atomic_store(&r->began, g);
		publish_one(&r->p, &s, g);
		atomic_store(&r->done, g);
	}
	atomic_store(&r->stop, true);
	for (size_t i = 0; i < COUNT(threads); i++)
		pthread_join(threads[i], NULL);
	print_message(
		"%llu flips, %lu whole sets, %lu mixed, %lu retired, %lu lost, %lu single files\n",
		(unsigned long long)g - 2, r->whole, r->mixed, r->retired, r->lost, r->singles);
	assert_true(g < MOST);
	place_fini(&r->p);
}

static void publish__a_thousand_times_beside_readers__never_shows_two_generations_in_one(
	void **state)
{
	static struct readers r;

	(void)state;
	flip_under_readers(&r, publish_well, false);
	assert_int_equal(r.mixed, 0);
	assert_int_equal(r.lost, 0);
}

static void harness__sees_a_publisher_that_writes_in_place(void **state)
{
	static struct readers r;

	(void)state;
	flip_under_readers(&r, publish_in_place, true);
	assert_true(r.mixed > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(publish__of_a_set__shows_each_file_by_its_name),
		cmocka_unit_test(publish__of_another_set__makes_new_links_and_removes_stale_ones),
		cmocka_unit_test(publish__on_a_disk__orders_files_directory_flip_links),
		cmocka_unit_test(publish__in_memory__never_waits_for_a_disk),
		cmocka_unit_test(publish__keeps_three_generations_for_readers_inside),
		cmocka_unit_test(publish__of_a_number_that_is_not_higher__keeps_the_one_before),
		cmocka_unit_test(publish__of_a_thousand_files__works_and_of_more_is_refused),
		cmocka_unit_test(
			publish__with_something_else_in_the_way__says_so_and_touches_nothing),
		cmocka_unit_test(publish__with_foreign_data__is_refused_and_so_is_open),
		cmocka_unit_test(publish__where_the_link_cannot_be_read__says_why),
		cmocka_unit_test(publish__of_bad_names__names_them),
		cmocka_unit_test(open__in_bad_places__says_what_to_do),
		cmocka_unit_test(publish__into_a_directory_that_is_append_only__leaves_nothing),
		cmocka_unit_test(open__after_a_crash__puts_right_what_is_left_and_no_more),
		cmocka_unit_test(open__with_data_that_leads_nowhere__publishes_again),
		cmocka_unit_test(open__with_a_link_that_leads_in_a_circle__keeps_it),
		cmocka_unit_test(open__with_very_many_generations__keeps_the_current_one),
		cmocka_unit_test(publish__beside_generations_of_one_number__keeps_the_latest),
		cmocka_unit_test(open__beside_generations_of_one_number__removes_those_made_later),
		cmocka_unit_test(is_current__tells_every_change_by_others),
		cmocka_unit_test(is_current__after_a_start__compares_what_stands_there),
		cmocka_unit_test(is_current__without_its_directory__is_false),
		cmocka_unit_test(generation__whose_names_are_taken__is_tried_under_five),
		cmocka_unit_test(generation__of_somebody_elses_name__is_not_removed),
		cmocka_unit_test(directory__that_is_made__may_be_read_by_all),
		cmocka_unit_test(publish__that_fails__says_at_what),
		cmocka_unit_test(descriptor_0__is_as_good_as_any),
		cmocka_unit_test(publish__touched_right_after_the_flip__is_not_current),
		cmocka_unit_test(publish__touched_before_the_flip__is_not_current),
		cmocka_unit_test(
			publish__with_each_call_failing_in_each_way__keeps_old_or_shows_new),
		cmocka_unit_test(open__with_each_call_failing__opens_or_says_why_and_harms_nothing),
		cmocka_unit_test(publish__when_a_link_cannot_be_made__is_visible_and_says_so),
		cmocka_unit_test(
			publish__when_only_the_directory_fsync_fails__is_visible_and_says_so),
		cmocka_unit_test(publish__ended_at_each_call__leaves_a_whole_set_and_nothing_else),
		cmocka_unit_test(harness__sees_a_publisher_that_flips_first),
		cmocka_unit_test(
			publish__a_thousand_times_beside_readers__never_shows_two_generations_in_one),
		cmocka_unit_test(harness__sees_a_publisher_that_writes_in_place),
	};

	umask(077);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
