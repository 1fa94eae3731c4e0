/*
 * A text file and what a killed agent left beside it: whose it is, when it is current, and that no
 * failure of a call or of memory leaves a mixture or a stray file.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sched.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include <linux/fs.h>

#include <cmocka.h>

#include "publish/file_set.h"
#include "publish/sweep.h"
#include "publish/target.h"
#include "tests/unit/fixture/fault_memory.h"
#include "tests/unit/fixture/fault_sys.h"
#include "tests/unit/fixture/scratch.h"

#define TAIL ".pullet-0123456789abcdef"

static struct sys sys;
static char dir[SCRATCH_PATH], file[SCRATCH_PATH + 16], why[FILE_WHY];
static struct settings_config config;
static struct target *target;

static int set_up(void **state)
{
	(void)state;
	memset(&fault, 0, sizeof(fault));
	fault_memory.nth = 0;
	sys = fault_table();
	scratch_open(dir, scratch_memory());
	snprintf(file, sizeof(file), "%s/web.yaml", dir);
	config = (struct settings_config){
		.file = file, .mode = 0640, .uid = (uid_t)-1, .gid = (gid_t)-1};
	target = NULL;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	memset(&fault, 0, sizeof(fault));
	target_close(target);
	scratch_close(dir);
	return 0;
}

static int open_target(struct sweep *sweep)
{
	int r = target_open(&sys, &config, sweep, &target, why);

	if (r)
		target = NULL;
	return r;
}

static int replace(const char *text)
{
	int r, at = target_open_dir(target, why);

	if (at < 0)
		return at;
	r = target_replace(target, at, text, strlen(text), why);
	sys.close(at);
	return r;
}

static void replaced__is_current_until_somebody_touches_it(void **state)
{
	(void)state;
	assert_int_equal(open_target(NULL), 0);
	assert_false(target_is_current(target, "n: 1\n", 5));
	assert_int_equal(replace("n: 1\n"), 0);
	assert_true(target_is_current(target, NULL, 0));
	assert_int_equal(chmod(file, 0600), 0);
	assert_false(target_is_current(target, NULL, 0));
	target_forget(target);
	assert_false(target_is_current(target, "n: 1\n", 5)); /* of another mode */
	assert_int_equal(chmod(file, 0640), 0);
	assert_false(target_is_current(target, NULL, 0)); /* the bytes were not compared */
	assert_true(target_is_current(target, "n: 1\n", 5));
	assert_true(target_is_current(target, NULL, 0));
	target_forget(target);
	assert_false(target_is_current(target, "n: 2\n", 5));
	assert_int_equal(unlink(file), 0);
	assert_false(target_is_current(target, "n: 1\n", 5));
	assert_int_equal(mkdir(file, 0700), 0);
	assert_false(target_is_current(target, "n: 1\n", 5));
	assert_int_not_equal(replace("n: 1\n"), 0);
	assert_non_null(strstr(why, "it is not a regular file"));
}

static void owner__that_is_another__is_not_current(void **state)
{
	(void)state;
	assert_int_equal(open_target(NULL), 0);
	assert_int_equal(replace("n: 1\n"), 0);
	target_forget(target);
	config.uid = getuid() + 1;
	assert_false(target_is_current(target, "n: 1\n", 5));
	config.uid = getuid();
	config.gid = getgid() + 1;
	assert_false(target_is_current(target, "n: 1\n", 5));
	config.gid = getgid();
	assert_true(target_is_current(target, "n: 1\n", 5));
}

/* As exFAT does. */
static int stat_in_any_case(int at, const char *name, struct stat *ret_st, int flags)
{
	return fstatat(at, strcasecmp(name, "web.yaml") == 0 ? "WEB.yaml" : name, ret_st, flags);
}

static void file__that_is_another_one_in_another_case__is_not_replaced(void **state)
{
	char found[16];

	(void)state;
	assert_int_equal(open_target(NULL), 0);
	scratch_write(dir, "WEB.yaml", "n: 1\n", 5);
	sys.fstatat = stat_in_any_case;
	assert_int_equal(replace("n: 2\n"), -EEXIST);
	assert_non_null(strstr(why, "/web.yaml: WEB.yaml is the same there"));
	assert_int_equal(scratch_count(dir, ""), 1);
	assert_true(scratch_read(dir, "WEB.yaml", found, sizeof(found), NULL));
	assert_string_equal(found, "n: 1\n");
}

static void directory__that_is_gone__is_made_again(void **state)
{
	(void)state;
	assert_int_equal(open_target(NULL), 0);
	scratch_close(dir);
	assert_false(target_is_current(target, "n: 1\n", 5));
	assert_int_equal(replace("n: 1\n"), 0);
	assert_true(target_is_current(target, "n: 1\n", 5));
}

/* A mount that is not there, for one. */
static void directory__that_is_gone_with_the_one_above__is_an_error(void **state)
{
	char path[SCRATCH_PATH + 32], below[SCRATCH_PATH + 16], above[SCRATCH_PATH + 16];

	(void)state;
	snprintf(above, sizeof(above), "%s/a", dir);
	snprintf(below, sizeof(below), "%s/a/b", dir);
	snprintf(path, sizeof(path), "%s/a/b/web.yaml", dir);
	config.file = path;
	assert_int_equal(mkdir(above, 0700), 0);
	assert_int_equal(open_target(NULL), 0);
	assert_int_equal(rmdir(below), 0);
	assert_int_equal(rmdir(above), 0);
	assert_int_equal(replace("n: 1\n"), -ENOENT);
	assert_non_null(strstr(why, "No such file"));
}

/* The directory of "/FILE" is "/". */
static void file__right_below_the_root__has_the_root_as_directory(void **state)
{
	char path[] = "/web.yaml";

	(void)state;
	config.file = path;
	fault = (struct fault){.call = CALL_OPEN, .nth = 1, .for_ever = true, .error = EMFILE};
	assert_int_equal(open_target(NULL), -EMFILE); /* nothing is done in the real one */
	assert_non_null(strstr(why, " /: "));
}

static void name__that_is_too_long__says_which_file(void **state)
{
	char path[SCRATCH_PATH + NAME_MAX + 8];
	unsigned descriptors = scratch_descriptors();
	size_t at;

	(void)state;
	at = (size_t)snprintf(path, sizeof(path), "%s/", dir);
	memset(path + at, 'n', NAME_MAX + 1);
	path[at + NAME_MAX + 1] = '\0';
	config.file = path;
	assert_int_equal(open_target(NULL), -ENAMETOOLONG);
	assert_non_null(strstr(why, "cannot look at"));
	assert_non_null(strstr(why, dir));
	assert_non_null(strstr(why, "File name too long"));
	assert_int_equal(scratch_descriptors(), descriptors);
	assert_int_equal(scratch_count(dir, ""), 0);
}

/* A file of its own, bound over another one, as container runtimes do it. */
static int open_mounted(const char *disk)
{
	char from[SCRATCH_PATH + 16];
	int r;

	snprintf(from, sizeof(from), "%s/from", disk);
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		mount(from, file, NULL, MS_BIND, NULL))
		return 2;
	r = open_target(NULL);
	return r == -EBUSY && strstr(why, "cannot replace") && strstr(why, "mount the directory")
		       ? 0
		       : 1;
}

static void file__that_is_a_mount_point__is_refused(void **state)
{
	char disk[SCRATCH_PATH];
	int status;
	pid_t child;

	(void)state;
	scratch_need_memory();
	scratch_open(disk, scratch_disk());
	scratch_write(disk, "from", "n: 1\n", 5);
	scratch_write(dir, "web.yaml", "n: 0\n", 5);
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(open_mounted(disk)); /* its mounts end with it */
	assert_int_equal(waitpid(child, &status, 0), child);
	scratch_close(disk);
	if (status == 2 << 8) {
		print_message("# this user may not mount\n");
		skip();
	}
	assert_int_equal(status, 0);
}

static void each_failure__of_a_replacement__leaves_old_or_new(void **state)
{
	char text[32], found[64];
	bool hit = true;

	(void)state;
	assert_int_equal(open_target(NULL), 0);
	assert_int_equal(replace("n: 0\n"), 0);
	for (unsigned n = 1; hit; n++) {
		char before[64];
		int r;

		assert_true(scratch_read(dir, "web.yaml", before, sizeof(before), NULL));
		snprintf(text, sizeof(text), "n: %u\n", n);
		fault.call = -1;
		fault.nth = n;
		fault.error = EIO;
		r = replace(text);
		hit = fault.seen >= n;
		memset(&fault, 0, sizeof(fault));
		assert_true(scratch_read(dir, "web.yaml", found, sizeof(found), NULL));
		assert_string_equal(found, r < 0 ? before : text);
		assert_int_equal(scratch_count(dir, ".pullet-"), 0);
		assert_in_range(n, 1, 100);
	}
}

static void each_allocation__of_an_opening__fails_it(void **state)
{
	int r = -1;

	(void)state;
	for (unsigned n = 1; r; n++) {
		fault_memory.seen = 0;
		fault_memory.nth = n;
		r = open_target(NULL);
		fault_memory.nth = 0;
		assert_true(r == -ENOMEM || (r == 0 && n > 1)); /* its own */
		if (r)
			assert_string_equal(why, "out of memory");
		assert_in_range(n, 1, 100);
	}
}

static void known_file__that_is_gone_or_no_file__is_not_current(void **state)
{
	(void)state;
	assert_int_equal(open_target(NULL), 0);
	assert_int_equal(replace("n: 1\n"), 0);
	assert_true(target_is_current(target, "n: 1\n", 5));
	assert_int_equal(unlink(file), 0);
	assert_false(target_is_current(target, "n: 1\n", 5));
	assert_int_equal(symlink("/dev/null", file), 0);
	assert_false(target_is_current(target, "n: 1\n", 5));
	assert_int_equal(unlink(file), 0);
	assert_int_equal(mkdir(file, 0700), 0);
	assert_false(target_is_current(target, "n: 1\n", 5));
}

static void unknown_file__is_current_with_these_bytes_mode_and_owner(void **state)
{
	(void)state;
	assert_int_equal(open_target(NULL), 0);
	assert_int_equal(replace("n: 1\n"), 0);
	target_forget(target);
	assert_false(target_is_current(target, NULL, 0));
	assert_false(target_is_current(target, "n: 2\n", 5));
	assert_false(target_is_current(target, "n: 1\n", 4));
	config.mode = 0600;
	assert_false(target_is_current(target, "n: 1\n", 5));
	config.mode = 0640;
	config.uid = geteuid() + 1;
	assert_false(target_is_current(target, "n: 1\n", 5));
	config.uid = geteuid();
	config.gid = getegid() + 1;
	assert_false(target_is_current(target, "n: 1\n", 5));
	config.gid = getegid();
	assert_true(target_is_current(target, "n: 1\n", 5));
	assert_true(target_is_current(target, "n: 2\n", 5)); /* it is known now, and untouched */
}

static void descriptor_0__is_as_good_as_any(void **state)
{
	int kept = fault_begin_zero(), r = open_target(NULL), w = r ? r : replace("n: 1\n");
	bool current = w == 0 && target_is_current(target, "n: 1\n", 5), closed;

	(void)state;
	closed = fault_end_zero(kept);
	assert_int_equal(r, 0);
	assert_int_equal(w, 0);
	assert_true(current && closed);
}

/* ---- what a killed agent left ---- */

static void sweep__without_memory_or_descriptors__cleans_all_the_same(void **state)
{
	(void)state;
	for (unsigned n = 1; n < 12; n++) {
		struct sweep *s;
		int at = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		scratch_write(dir, ".web.yaml" TAIL, "x", 1);
		scratch_write(dir, ".other" TAIL, "x", 1);
		fault_memory.seen = 0;
		fault_memory.nth = n;
		s = sweep_new(&sys);
		fault.call = CALL_OPEN;
		fault.nth = n == 11;
		fault.error = EMFILE;
		sweep_clean(s, &sys, at, "web.yaml");
		fault_memory.nth = 0;
		memset(&fault, 0, sizeof(fault));
		sweep_clean(s, &sys, at, "web.yaml");
		sweep_clean(s, &sys, at, "web");
		assert_int_equal(scratch_count(dir, ".web.yaml"), 0);
		assert_int_equal(scratch_count(dir, ".other"), 1);
		sweep_free(s);
		close(at);
	}
	sweep_clean(NULL, &sys, -1, "web.yaml");
}

/* ---- a set ---- */

static void set_of_files__without_memory__stays_as_it_is(void **state)
{
	const struct file_options options = {.mode = 0640, .uid = (uid_t)-1, .gid = (gid_t)-1};
	const struct file_set_entry entries[] = {{"a.yaml", "a: 1\n", 5}, {"b.yaml", "b: 1\n", 5}};
	unsigned descriptors = scratch_descriptors();
	char path[SCRATCH_PATH + 16];
	int r = -1;

	(void)state;
	snprintf(path, sizeof(path), "%s/set", dir);
	for (unsigned n = 1; r; n++) {
		struct file_set *f = NULL;

		fault_memory.seen = 0;
		fault_memory.nth = n;
		r = file_set_open(&sys, path, &f, why);
		if (r == 0)
			r = file_set_publish(f, entries, 2, n, &options, why);
		if (r == 0)
			file_set_is_current(f, entries, 2, &options);
		fault_memory.nth = 0;
		if (r == 0)
			r = fault_memory.seen >= n;
		file_set_close(f);
		assert_int_equal(scratch_descriptors(), descriptors);
		assert_in_range(n, 1, 200);
	}
	assert_true(scratch_count(path, ".yaml") == 2);
}

/* ---- somebody at the very moment ---- */

static void (*touch)(void);

static int rename_and_touch(int from_dir, const char *from, int to_dir, const char *to)
{
	int r = fault_renameat(from_dir, from, to_dir, to);

	if (r == 0 && touch)
		touch();
	return r;
}

static void touch_mode(void)
{
	chmod(file, 0604);
}

static void touch_time(void)
{
	static const struct timespec times[2] = {{1, 1}, {1, 1}};

	utimensat(AT_FDCWD, file, times, 0);
}

static void touch_bytes(void)
{
	scratch_write(dir, "web.yaml", "harm", 4);
}

/* Other bytes, as many, in the same second. */
static void touch_bytes_in_the_second(void)
{
	struct timespec times[2];
	struct stat st;

	assert_int_equal(stat(file, &st), 0);
	scratch_write(dir, "web.yaml", "n: 2\n", 5);
	times[0] = st.st_atim;
	times[1] = st.st_mtim;
	times[1].tv_nsec = (st.st_mtim.tv_nsec + 1) % 1000000000;
	assert_int_equal(utimensat(AT_FDCWD, file, times, 0), 0);
}

static void touch_other(void)
{
	unlink(file);
	scratch_write(dir, "web.yaml", "other", 5);
}

static void touch_owner(void)
{
	(void)!chown(file, getuid() + (getuid() == 0), (gid_t)-1);
}

static void touch_group(void)
{
	(void)!chown(file, (uid_t)-1, getgid() + (getuid() == 0));
}

static void remove_it(void)
{
	unlink(file);
}

static void touched__right_after_the_rename__is_seen(void **state)
{
	static const struct {
		void (*touch)(void);
		bool same_bytes;
	} cases[] = {{NULL, true}, {touch_mode, true}, {touch_time, true}, {touch_owner, true},
		{touch_group, true}, {touch_bytes, false}, {touch_bytes_in_the_second, false},
		{touch_other, false}, {remove_it, false}};

	(void)state;
	sys.renameat = rename_and_touch;
	assert_int_equal(open_target(NULL), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		touch = cases[i].touch;
		assert_int_equal(replace("n: 1\n"), 0);
		assert_true(target_is_current(target, NULL, 0) == cases[i].same_bytes);
	}
	touch = NULL;
}

static struct file_options set_options(void)
{
	return (struct file_options){.mode = 0640, .uid = (uid_t)-1, .gid = (gid_t)-1};
}

static const struct file_set_entry set_entries[] = {
	{"a.yaml", "a: 1\n", 5}, {"b.yaml", "b: 1\n", 5}};

/* As after a start: what is there is compared. */
static bool set_is_current(const char *path, const struct file_options *options, size_t count)
{
	struct file_set *f;
	bool same;

	assert_int_equal(file_set_open(&sys, path, &f, why), 0);
	same = file_set_is_current(f, set_entries, count, options);
	file_set_close(f);
	return same;
}

static void set_of_files__after_a_start__is_compared_with_mode_and_owner(void **state)
{
	struct file_options options = set_options();
	char path[SCRATCH_PATH + 16], name[SCRATCH_PATH + 64];
	struct file_set *f;

	(void)state;
	snprintf(path, sizeof(path), "%s/set", dir);
	assert_int_equal(file_set_open(&sys, path, &f, why), 0);
	assert_false(file_set_is_current(f, set_entries, 2, &options)); /* nothing is there */
	assert_int_equal(file_set_publish(f, set_entries, 2, 1, &options, why), 0);
	file_set_close(f);
	assert_true(set_is_current(path, &options, 2));
	assert_false(set_is_current(path, &options, 1));
	options.mode = 0600;
	assert_false(set_is_current(path, &options, 2));
	options = set_options();
	options.uid = getuid() + 1;
	assert_false(set_is_current(path, &options, 2));
	options.uid = getuid();
	options.gid = getgid() + 1;
	assert_false(set_is_current(path, &options, 2));
	options.gid = getgid();
	assert_true(set_is_current(path, &options, 2));
	snprintf(name, sizeof(name), "%s/a.yaml", path);
	assert_int_equal(unlink(name), 0);
	assert_int_equal(symlink("..data/b.yaml", name), 0); /* another file's link */
	assert_false(set_is_current(path, &options, 2));
	assert_int_equal(unlink(name), 0);
	assert_int_equal(symlink("x/data/a.yaml", name), 0);
	assert_false(set_is_current(path, &options, 2));
	assert_int_equal(unlink(name), 0);
	scratch_write(path, "a.yaml", "a: 1\n", 5); /* a file */
	assert_false(set_is_current(path, &options, 2));
}

static void set_of_files__with_what_a_crash_left__removes_that_alone(void **state)
{
	static const char *const names[] = {"..check-0123456789abcdef", "..check-0123",
		"..check-0123456789abcdefx", "..check-0123456789abcdeg", "..1-0123456789abcdefx",
		"..1-01", "..123456789012345678901-0123456789abcdef", "..x", ".hidden"};
	const struct file_options options = set_options();
	char path[SCRATCH_PATH + 16], name[SCRATCH_PATH + 64];
	struct file_set *f;

	(void)state;
	snprintf(path, sizeof(path), "%s/set", dir);
	assert_int_equal(mkdir(path, 0755), 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(name, sizeof(name), "%s/%s", path, names[i]);
		assert_int_equal(mkdir(name, 0755), 0);
	}
	assert_int_equal(file_set_open(&sys, path, &f, why), 0);
	assert_int_equal(file_set_publish(f, set_entries, 2, 1, &options, why), 0);
	file_set_close(f);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(name, sizeof(name), "%s/%s", path, names[i]);
		assert_int_equal(access(name, F_OK), i ? 0 : -1);
	}
}

/* As where a file system, or a policy, lets names be made and not removed. */
static int unlink_is_denied(int at, const char *path, int flags)
{
	(void)at, (void)path, (void)flags;
	errno = EPERM;
	return -1;
}

static int rename_is_denied(int from_dir, const char *from, int to_dir, const char *to)
{
	(void)from_dir, (void)from, (void)to_dir, (void)to;
	errno = EPERM;
	return -1;
}

static void temporary_files__that_cannot_be_removed__are_not_gathered(void **state)
{
	(void)state;
	assert_int_equal(open_target(NULL), 0);
	sys.unlinkat = unlink_is_denied;
	sys.renameat = rename_is_denied;
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(replace("n: 1\n"), -EPERM);
		assert_int_equal(scratch_count(dir, ".web.yaml.pullet-"), 1);
	}
	assert_non_null(strstr(why, "cannot remove the temporary files beside "));
	sys = fault_table();
	assert_int_equal(replace("n: 1\n"), 0);
	assert_int_equal(scratch_count(dir, ".web.yaml.pullet-"), 0);
	memset(&fault, 0, sizeof(fault));
	assert_int_equal(replace("n: 2\n"), 0);
	assert_null(strchr(fault.trace, 'u')); /* it looked for some after the failure alone */
}

/* False: this user, or file system, cannot make it so. */
static bool make_append_only(bool on)
{
	int at = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), flags = 0, r;

	r = ioctl(at, FS_IOC_GETFLAGS, &flags);
	flags = on ? flags | FS_APPEND_FL : flags & ~FS_APPEND_FL;
	r = r ? r : ioctl(at, FS_IOC_SETFLAGS, &flags);
	close(at);
	return r == 0;
}

static unsigned count_in_append_only(int (*publish)(void))
{
	int r = publish();
	unsigned n = scratch_count(dir, "");

	make_append_only(false);
	assert_int_equal(r, -EPERM);
	assert_non_null(strstr(why, "append-only: chattr -a it, or name another place"));
	return n;
}

static int replace_one(void)
{
	return replace("n: 2\n");
}

static int publish_one(void)
{
	const struct file_set_entry entry = {"web.yaml", "n: 2\n", 5};
	const struct file_options options = {.mode = 0640, .uid = (uid_t)-1, .gid = (gid_t)-1};
	struct file_set *set;
	int r = file_set_open(&sys, dir, &set, why);

	if (r)
		return r;
	r = file_set_publish(set, &entry, 1, 7, &options, why);
	file_set_close(set);
	return r;
}

static void directory__that_is_append_only__gets_no_temporary_files(void **state)
{
	(void)state;
	assert_int_equal(open_target(NULL), 0);
	if (!make_append_only(true)) {
		print_message("# cannot make a directory append-only\n");
		skip();
	}
	assert_int_equal(count_in_append_only(replace_one), 0);
	assert_true(make_append_only(true));
	assert_int_equal(count_in_append_only(publish_one), 0);
	assert_int_equal(replace_one(), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(replaced__is_current_until_somebody_touches_it),
		TEST(owner__that_is_another__is_not_current),
		TEST(file__that_is_another_one_in_another_case__is_not_replaced),
		TEST(directory__that_is_gone__is_made_again),
		TEST(directory__that_is_gone_with_the_one_above__is_an_error),
		TEST(file__right_below_the_root__has_the_root_as_directory),
		TEST(name__that_is_too_long__says_which_file),
		TEST(known_file__that_is_gone_or_no_file__is_not_current),
		TEST(unknown_file__is_current_with_these_bytes_mode_and_owner),
		TEST(descriptor_0__is_as_good_as_any),
		TEST(file__that_is_a_mount_point__is_refused),
		TEST(touched__right_after_the_rename__is_seen),
		TEST(each_failure__of_a_replacement__leaves_old_or_new),
		TEST(temporary_files__that_cannot_be_removed__are_not_gathered),
		TEST(directory__that_is_append_only__gets_no_temporary_files),
		TEST(set_of_files__after_a_start__is_compared_with_mode_and_owner),
		TEST(set_of_files__with_what_a_crash_left__removes_that_alone),
		TEST(each_allocation__of_an_opening__fails_it),
		TEST(sweep__without_memory_or_descriptors__cleans_all_the_same),
		TEST(set_of_files__without_memory__stays_as_it_is),
	};

	return fault_memory_run(tests, 3);
}
