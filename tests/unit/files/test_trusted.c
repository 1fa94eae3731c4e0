/*
 * Paths with other users on them: what is refused to an agent with root's rights, what another
 * agent may, what is read, and both ways of walking. As root; else what needs two users is skipped.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "files/trusted.h"
#include "tests/unit/fixture/fault_memory.h"
#include "tests/unit/fixture/fault_sys.h"
#include "tests/unit/fixture/scratch.h"

#define OTHER 64104

static char dir[SCRATCH_PATH];
static struct sys sys;
static unsigned descriptors;

static int no_openat2(int at, const char *path, int flags)
{
	(void)at, (void)path, (void)flags;
	errno = ENOSYS;
	return -1;
}

static const char *in(const char *name)
{
	static char paths[4][PATH_MAX];
	static unsigned n;
	char *path = paths[n++ % 4];

	snprintf(path, PATH_MAX, "%s/%s", dir, name);
	return path;
}

static void make(const char *name, mode_t mode, uid_t uid)
{
	assert_int_equal(mkdir(in(name), 0700), 0);
	assert_int_equal(chown(in(name), uid, (gid_t)-1), 0);
	assert_int_equal(chmod(in(name), mode), 0);
}

static void make_link(const char *to, const char *name, uid_t uid)
{
	assert_int_equal(symlink(to, in(name)), 0);
	assert_int_equal(lchown(in(name), uid, (gid_t)-1), 0);
}

static int set_up(void **state)
{
	(void)state;
	sys = sys_real;
	memset(&fault, 0, sizeof(fault));
	scratch_open(dir, "/tmp");
	descriptors = scratch_descriptors();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	scratch_close(dir);
	assert_int_equal(scratch_descriptors(), descriptors);
	return 0;
}

/* What both ways answer to an agent of this user; why has `expected`. From the directory above it
 * comes to the same. */
static int check(const char *name, uid_t uid, bool strict, const char *expected)
{
	const struct trusted_who who = {.root = -1, .uid = uid, .strict = strict};
	char why[2][FILE_WHY] = {"", ""}, ignored[FILE_WHY];
	int r[2], here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);

	assert_int_equal(chdir(dir), 0);
	r[0] = trusted_check_dir(&sys, &who, name, TRUSTED_FILE, ignored);
	assert_int_equal(fchdir(here), 0);
	close(here);
	assert_int_equal(r[0], trusted_check_dir(&sys, &who, in(name), TRUSTED_FILE, ignored));
	for (int i = 0; i < 2; i++) {
		sys.open_plain = i ? no_openat2 : sys_real.open_plain;
		r[i] = trusted_check_dir(&sys, &who, in(name), TRUSTED_FILE, why[i]);
		if (expected && !strstr(why[i], expected))
			fail_msg("%s: %s", name, why[i]);
	}
	assert_int_equal(r[0], r[1]);
	assert_string_equal(why[0], why[1]);
	return r[0];
}

static void need_root(void)
{
	if (geteuid() != 0)
		skip();
}

static void check_dir__with_root_s_rights__refuses_what_others_decide(void **state)
{
	(void)state;
	need_root();
	make("good", 0755, 0);
	make("good/sub", 0755, 0);
	make("theirs", 0755, OTHER);
	make("theirs/sub", 0755, 0);
	make("open", 0777, 0);
	make("open/sub", 0755, 0);
	make("group", 0775, 0);
	make("group/sub", 0755, 0);
	make("sticky", 01777, 0);
	make("sticky/sub", 0755, 0);
	make("sticky/theirs", 0755, OTHER);
	assert_int_equal(check("good/sub", 0, true, NULL), 0);
	assert_int_equal(check("sticky/sub", 0, true, NULL), 0);
	assert_int_equal(check("sticky", 0, true, NULL), 0);
	assert_int_equal(check("theirs", 0, true, "it belongs to uid 64104"), -EPERM);
	assert_int_equal(check("theirs/sub", 0, true, "/theirs belongs to uid 64104"), -EPERM);
	assert_int_equal(check("sticky/theirs", 0, true, "it belongs to uid 64104"), -EPERM);
	assert_int_equal(check("open/sub", 0, true, "(mode 0777) in its part"), -EPERM);
	assert_int_equal(check("group/sub", 0, true, "(mode 0775) in its part"), -EPERM);
	assert_int_equal(check("open", 0, true, "chmod go-w"), -EPERM);
	assert_int_equal(check("none", 0, true, "No such file"), -ENOENT);
	/* of its own user everything is as of root */
	assert_int_equal(check("theirs", OTHER, true, NULL), 0);
}

static void check_dir__without_root_s_rights__looks_at_the_directory_itself(void **state)
{
	(void)state;
	need_root();
	make("open", 0777, 0);
	make("open/sub", 0755, 1234);
	make("theirs", 0755, OTHER);
	make("theirs/sub", 0755, 1234);
	assert_int_equal(check("open/sub", 1234, false, NULL), 0);
	assert_int_equal(check("theirs/sub", 1234, false, NULL), 0);
	assert_int_equal(check("open", 1234, false, "chmod go-w"), -EPERM);
	make_link("sub", "theirs/link", OTHER);
	assert_int_equal(check("theirs/link", 1234, false, "a symlink of another user"), -EPERM);
}

static void check_dir__through_links__follows_those_of_root(void **state)
{
	char rooted[PATH_MAX];

	(void)state;
	need_root();
	make("real", 0755, 0);
	make("real/sub", 0755, 0);
	make("sticky", 01777, 0);
	make_link("real", "link", 0);
	make_link("../real/./sub/../sub", "sticky/link", 0);
	make_link("../real", "sticky/theirs", OTHER);
	snprintf(rooted, sizeof(rooted), "%s/real", dir);
	make_link(rooted, "rooted", 0);
	make_link("loop", "loop", 0);
	assert_int_equal(check("link/sub", 0, true, NULL), 0);
	assert_int_equal(check("sticky/link", 0, true, NULL), 0);
	assert_int_equal(check("rooted/sub", 0, true, NULL), 0);
	assert_int_equal(check("sticky/theirs/sub", 0, true, "symlink"), -EPERM);
	assert_int_equal(check("loop", 0, true, "symbolic links"), -ELOOP);
}

static void read__through_links_of_others__gives_their_own_files_only(void **state)
{
	struct buffer b;
	char why[FILE_WHY];

	(void)state;
	need_root();
	buffer_init(&b, 100);
	make("theirs", 0755, OTHER);
	scratch_write(dir, "secret", "of root", 7);
	scratch_write(dir, "theirs/own", "own", 3);
	assert_int_equal(chown(in("theirs/own"), OTHER, OTHER), 0);
	make_link("../secret", "theirs/link", OTHER);
	make_link("own", "theirs/link-own", OTHER);
	make_link("theirs/own", "link", 0);
	assert_int_equal(link(in("secret"), in("theirs/hard")), 0);
	assert_int_equal(trusted_read(&sys, in("theirs/link"), &b, why), -EPERM);
	assert_non_null(strstr(why, "a symlink of another user leads to it"));
	assert_int_equal(trusted_read(&sys, in("theirs/hard"), &b, why), -EPERM);
	assert_non_null(strstr(why, "hard links"));
	assert_int_equal(b.len, 0);
	assert_int_equal(trusted_read(&sys, in("secret"), &b, why), 0); /* in a good directory */
	assert_int_equal(trusted_read(&sys, in("theirs/link-own"), &b, why), 0);
	assert_int_equal(trusted_read(&sys, in("link"), &b, why), 0);
	assert_int_equal(trusted_read(&sys, in("theirs"), &b, why), -EINVAL);
	assert_string_equal(b.data, "of rootownown");
	buffer_fini(&b);
}

static void make_dir__makes_the_last_part_alone(void **state)
{
	char why[FILE_WHY] = "";
	int fd;

	(void)state;
	assert_int_equal(trusted_make_dir(&sys, in("a"), 0755, TRUSTED_FILE, why), 1);
	assert_int_equal(trusted_make_dir(&sys, in("a"), 0755, TRUSTED_FILE, why), 0);
	assert_string_equal(why, "");
	assert_int_equal(trusted_make_dir(&sys, in("b/c"), 0755, TRUSTED_FILE, why), -ENOENT);
	fd = trusted_open_dir(&sys, in("a"), TRUSTED_SET, why);
	assert_true(fd >= 0);
	assert_int_equal(trusted_open_below(&sys, fd, "none"), -ENOENT);
	close(fd);
}

/* Both ways refuse it to an agent of root, or to one of uid 1234, with this sentence. */
__attribute__((format(printf, 4, 5))) static void assert_refused(
	const char *name, bool strict, int error, const char *format, ...)
{
	char expected[FILE_WHY];
	va_list args;

	va_start(args, format);
	vsnprintf(expected, sizeof(expected), format, args);
	va_end(args);
	assert_int_equal(check(name, strict ? 0 : 1234, strict, expected), error);
}

static void check_dir__that_is_refused__says_whose_it_is_and_what_to_do(void **state)
{
	(void)state;
	need_root();
	make("theirs", 0755, OTHER);
	make("theirs/sub", 0755, 0);
	make("open", 0757, 0);
	make("open/sub", 0775, 0);
	make("sticky", 01777, 0);
	make_link("../sticky", "sticky/link", OTHER);
	make_link("../open", "theirs/link", OTHER);
	scratch_write(dir, "file", "", 0);
	assert_refused("theirs", true, -EPERM,
		"will not use the directory %s/theirs: it belongs to uid 64104, who could lead the "
		"agent, which has root's rights, elsewhere; give it to root, name another "
		"directory, or run the agent as that user",
		dir);
	assert_refused("theirs/sub", true, -EPERM,
		"will not use the directory %s/theirs/sub: its part %s/theirs belongs to uid "
		"64104, who could lead the agent",
		dir, dir);
	assert_refused("open", true, -EPERM,
		"will not use the directory %s/open: group or others can write in it and could "
		"replace the file; chmod go-w",
		dir);
	assert_refused("open/sub", true, -EPERM,
		"will not use the directory %s/open/sub: group or others can write (mode 0757) in "
		"its part %s/open, and could lead the agent, which has root's rights, elsewhere; "
		"chmod go-w, or +t",
		dir, dir);
	assert_refused("open/sub", false, -EPERM,
		"will not use the directory %s/open/sub: group or others can write in it and could "
		"replace the file; chmod go-w",
		dir);
	assert_refused("sticky/link", true, -EPERM,
		"will not use the directory %s/sticky/link: the symlink %s/sticky/link belongs to "
		"uid 64104, who could lead the agent, which has root's rights, elsewhere; name "
		"what it leads to",
		dir, dir);
	assert_refused("theirs/link", false, -EPERM,
		"will not use the directory %s/theirs/link: a symlink of another user leads to it, "
		"and it belongs to root (uid 0); name it without the link",
		dir);
	assert_refused("none", true, -ENOENT,
		"cannot open the directory %s/none: No such file or directory: the directory is "
		"not there; make it",
		dir);
	assert_refused("file", true, -ENOTDIR,
		"cannot open the directory %s/file: Not a directory: a part of the path is not a "
		"directory",
		dir);
	assert_refused("file/sub", true, -ENOTDIR, "cannot open the directory %s/file/sub: ", dir);
}

static void check_dir__past_a_part_that_others_decide__refuses_the_way_there(void **state)
{
	static const char *const names[] = {
		"open/../good", "open/./../good", "open//../good/", "good/../open/../good/."};

	(void)state;
	need_root();
	make("open", 0777, 0);
	make("good", 0755, 0);
	make("good/..sub", 0755, 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_int_equal(check(names[i], 0, true, "(mode 0777) in its part"), -EPERM);
	assert_int_equal(check("good/../good/.//..sub/", 0, true, NULL), 0);
	assert_int_equal(check("good/../none", 0, true, "No such file"), -ENOENT);
}

/* How the paths were opened. */
static struct {
	unsigned parts, stats;
} asked;

static int count_openat(int at, const char *path, int flags, mode_t mode)
{
	asked.parts++;
	return sys_real.openat(at, path, flags, mode);
}

static int count_fstatat(int at, const char *path, struct stat *ret, int flags)
{
	asked.stats++;
	return sys_real.fstatat(at, path, ret, flags);
}

static void check_dir__of_a_plain_path__walks_no_part(void **state)
{
	static const struct {
		const char *name;
		unsigned parts; /* below the two of `dir`; 0 = it is walked */
	} table[] = {
		{"a", 1},
		{"a/b", 2},
		{"...", 1},
		{"..a", 1},
		{".a", 1},
		{"a.", 1},
		{"a..", 1},
		{"a/", 0},
		{"a//b", 0},
		{"a/.", 0},
		{"a/..", 0},
		{"a/./b", 0},
		{"a/../a", 0},
	};
	const struct trusted_who who = {.root = -1, .uid = geteuid(), .strict = true};
	char why[FILE_WHY];

	(void)state;
	for (size_t i = 0; i < 7; i++)
		assert_int_equal(mkdir(in(table[i].name), 0700), 0);
	sys.openat = count_openat;
	sys.fstatat = count_fstatat;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		asked.parts = asked.stats = 0;
		assert_int_equal(
			trusted_check_dir(&sys, &who, in(table[i].name), TRUSTED_OWN, why), 0);
		assert_int_equal(asked.parts == 0, table[i].parts != 0);
		if (table[i].parts)
			assert_int_equal(asked.stats, 2 + table[i].parts + 1);
	}
	asked.parts = asked.stats = 0;
	assert_int_equal(trusted_check_dir(&sys, &who, "/", TRUSTED_OWN, why), 0);
	assert_int_equal(asked.parts, 0);
	assert_int_equal(asked.stats, 1);
}

static void check_dir__of_a_deep_path__goes_through_all_parts(void **state)
{
	char name[PATH_MAX];

	(void)state;
	need_root();
	make("d", 0755, 0);
	snprintf(name, sizeof(name), "d");
	for (int depth = 3; depth <= 66; depth++) {
		assert_int_equal(check(name, 0, true, NULL), 0);
		snprintf(name + strlen(name), sizeof(name) - strlen(name), "/d");
		make(name, depth == 66 ? 0775 : 0755, 0);
	}
	assert_int_equal(check(name, 0, true, "will not use"), -EPERM);
	assert_int_equal(chown(in("d/d"), OTHER, 0), 0);
	name[strlen(name) - 2] = '\0';
	assert_int_equal(check(name, 0, true, "/d/d belongs to uid 64104"), -EPERM);
}

static uid_t top_owner;

static int lie_about_top(int at, const char *path, struct stat *ret, int flags)
{
	int r = sys_real.fstatat(at, path, ret, flags);
	struct stat top;

	assert_int_equal(stat("/", &top), 0);
	if (r == 0 && ret->st_ino == top.st_ino && ret->st_dev == top.st_dev)
		ret->st_uid = top_owner;
	return r;
}

static void check_dir__of_the_owner_of_the_root__is_as_of_root(void **state)
{
	(void)state;
	need_root();
	sys.fstatat = lie_about_top;
	top_owner = OTHER;
	make("theirs", 0755, OTHER);
	make("theirs/third", 0755, OTHER + 1);
	make_link("theirs", "link", OTHER);
	assert_int_equal(check("theirs", 0, true, NULL), 0);
	assert_int_equal(check("link", 0, true, NULL), 0);
	assert_int_equal(check("theirs/third", 0, true, "belongs to uid 64105"), -EPERM);
}

/* What is below `dir`, as a root directory of its own. */
static void check_dir__in_another_root__stays_there(void **state)
{
	static const struct {
		const char *path;
		int result;
	} table[] = {
		{"/good/sub", 0},
		{"good/sub", 0},
		{"/", 0},
		{"/..", 0},
		{"/../../../good", 0},
		{"/good/../../good/sub", 0},
		{"/rooted/sub", 0},
		{"/good/up/good", 0},
		{"/theirs", -EPERM},
		{"/open/sub", -EPERM},
		{"/tmp", -ENOENT},
		{"/../tmp", -ENOENT},
	};
	struct trusted_who who = {.uid = 0, .strict = true};
	char why[FILE_WHY];

	(void)state;
	need_root();
	make("good", 0755, 0);
	make("good/sub", 0755, 0);
	make("theirs", 0755, OTHER);
	make("open", 0775, 0);
	make("open/sub", 0755, 0);
	make_link("/good", "rooted", 0);
	make_link("../../..", "good/up", 0);
	who.root = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		assert_int_equal(trusted_check_dir(&sys, &who, table[i].path, TRUSTED_OWN, why),
			table[i].result);
	assert_int_equal(trusted_check_dir(&sys, &who, "/open/sub", TRUSTED_OWN, why), -EPERM);
	assert_non_null(strstr(why, "in its part /open, "));
	/* whose owner could change everything anyway */
	assert_int_equal(chown(dir, OTHER, 0), 0);
	assert_int_equal(trusted_check_dir(&sys, &who, "/theirs", TRUSTED_OWN, why), 0);
	assert_int_equal(chmod(dir, 0775), 0);
	assert_int_equal(trusted_check_dir(&sys, &who, "/theirs", TRUSTED_OWN, why), -EPERM);
	assert_non_null(strstr(why, "(mode 0775) in its part /, "));
	close(who.root);
	who.root = -2; /* as none */
	assert_int_equal(trusted_check_dir(&sys, &who, "/", TRUSTED_OWN, why), 0);
}

static void check_dir__for_each_use__asks_for_what_it_needs(void **state)
{
	static const struct {
		mode_t mode;
		enum trusted_use use;
		int result;
	} table[] = {
		{0777, TRUSTED_ANY, 0},
		{0777, TRUSTED_OWN, 0},
		{0777, TRUSTED_FILE, -EPERM},
		{0775, TRUSTED_FILE, -EPERM},
		{0757, TRUSTED_FILE, -EPERM},
		{01777, TRUSTED_FILE, 0},
		{01777, TRUSTED_SET, -EPERM},
		{0757, TRUSTED_SET, -EPERM},
		{0755, TRUSTED_SET, 0},
	};
	const struct trusted_who who = {.root = -1, .uid = geteuid(), .strict = false};

	(void)state;
	assert_int_equal(mkdir(in("a"), 0700), 0);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		char why[FILE_WHY] = "";

		assert_int_equal(chmod(in("a"), table[i].mode), 0);
		assert_int_equal(
			trusted_check_dir(&sys, &who, in("a"), table[i].use, why), table[i].result);
		if (table[i].result)
			assert_non_null(strstr(why, table[i].use == TRUSTED_SET
							    ? "could replace the files; chmod go-w"
							    : "could replace the file; chmod"));
	}
}

static void check_dir__through_forty_links__is_as_far_as_it_goes(void **state)
{
	char from[16], to[16] = ".";

	(void)state;
	need_root();
	for (int i = 1; i <= 41; i++) {
		snprintf(from, sizeof(from), "link%d", i);
		make_link(to, from, 0);
		snprintf(to, sizeof(to), "link%d", i);
	}
	assert_int_equal(check("link40", 0, true, NULL), 0);
	assert_int_equal(check("link41", 0, true, "Too many levels of symbolic"), -ELOOP);
}

static void check_dir__of_a_path_that_is_too_long__says_so(void **state)
{
	char longest[PATH_MAX + 1];
	const struct trusted_who who = {.root = -1, .uid = geteuid(), .strict = false};
	char why[FILE_WHY];

	(void)state;
	memset(longest, '/', sizeof(longest));
	longest[PATH_MAX] = '\0';
	assert_int_equal(trusted_check_dir(&sys, &who, longest, TRUSTED_OWN, why), -ENAMETOOLONG);
	longest[PATH_MAX - 1] = '\0';
	assert_int_equal(trusted_check_dir(&sys, &who, longest, TRUSTED_OWN, why), 0);
	/* what a link puts in front of the rest */
	make_link(".////", "link", geteuid());
	snprintf(longest, sizeof(longest), "%s/link", dir);
	memset(longest + strlen(longest), '/', sizeof(longest) - strlen(longest));
	longest[PATH_MAX - 1] = '\0';
	assert_int_equal(trusted_check_dir(&sys, &who, longest, TRUSTED_OWN, why), 0);
}

static void check_dir__of_a_name_that_is_too_long__is_not_the_one_that_begins_so(void **state)
{
	char name[4 * NAME_MAX];

	(void)state;
	memset(name, 'n', sizeof(name));
	name[NAME_MAX] = '\0';
	assert_int_equal(mkdir(in(name), 0700), 0);
	assert_int_equal(check(name, geteuid(), false, NULL), 0);
	name[NAME_MAX] = 'n';
	for (size_t len = NAME_MAX + 1; len < sizeof(name); len += len) {
		name[len] = '\0';
		assert_int_equal(
			check(name, geteuid(), false, "File name too long"), -ENAMETOOLONG);
		name[len] = 'n';
	}
}

static void check_dir__whose_calls_fail__says_so_and_leaves_none_open(void **state)
{
	static const int errors[] = {EMFILE, EACCES};
	const struct trusted_who who = {.root = -1, .uid = geteuid(), .strict = true};
	char why[FILE_WHY];

	(void)state;
	assert_int_equal(mkdir(in("a"), 0700), 0);
	make_link("a", "link", geteuid());
	sys = fault_table();
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		for (unsigned nth = 1;; nth++) {
			int r;

			memset(&fault, 0, sizeof(fault));
			fault.call = CALL_OPEN;
			fault.nth = nth;
			fault.error = errors[i];
			r = trusted_check_dir(&sys, &who, in("link"), TRUSTED_FILE, why);
			if (fault.seen < nth) {
				assert_int_equal(r, 0);
				assert_in_range(nth, 5, 9);
				break;
			}
			assert_int_equal(r, -errors[i]);
			assert_non_null(strstr(why, strerror(errors[i])));
		}
}

static unsigned stats_left;

static int fail_fstatat(int at, const char *path, struct stat *ret, int flags)
{
	if (stats_left-- > 0)
		return sys_real.fstatat(at, path, ret, flags);
	errno = EIO;
	return -1;
}

static void check_dir__that_cannot_be_looked_at__says_so_and_leaves_none_open(void **state)
{
	static const char *const names[] = {"a", "link", "a/../a"};
	const struct trusted_who who = {.root = -1, .uid = geteuid(), .strict = true};
	char why[FILE_WHY];

	(void)state;
	assert_int_equal(mkdir(in("a"), 0700), 0);
	make_link("a", "link", geteuid());
	sys.fstatat = fail_fstatat;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		for (unsigned n = 0;; n++) {
			int r;

			stats_left = n;
			r = trusted_check_dir(&sys, &who, in(names[i]), TRUSTED_FILE, why);
			if (r == 0) {
				assert_in_range(n, 4, 9);
				break;
			}
			assert_int_equal(r, -EIO);
			assert_non_null(strstr(why, "cannot open the directory"));
			assert_non_null(strstr(why, ": the disk fails"));
		}
}

/* ---- who ---- */

/* What a process with this capability alone is: 1 strict to itself, 2 as one that signals. */
static int strict_with(int capability)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct caps[2] = {{0}};
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		if (capability >= 0)
			caps[0].permitted = caps[0].effective = 1u << capability;
		if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) || setresuid(OTHER, OTHER, OTHER) ||
			syscall(SYS_capset, &header, caps) || trusted_self().uid != OTHER ||
			trusted_signaller().uid != OTHER)
			_exit(4);
		_exit((trusted_self().strict ? 1 : 0) + (trusted_signaller().strict ? 2 : 0));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WEXITSTATUS(status);
}

static void self__is_strict_with_root_s_rights(void **state)
{
	static const struct {
		int capability, strict;
	} table[] = {
		{-1, 0},
		{CAP_CHOWN, 3},
		{CAP_DAC_OVERRIDE, 3},
		{CAP_DAC_READ_SEARCH, 3},
		{CAP_FOWNER, 3},
		{CAP_KILL, 2},
		{CAP_SETGID, 0},
		{CAP_FSETID, 0},
	};

	(void)state;
	assert_int_equal(trusted_self().root, -1);
	assert_int_equal(trusted_signaller().root, -1);
	need_root();
	assert_true(trusted_self().strict && trusted_signaller().strict);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		assert_int_equal(strict_with(table[i].capability), table[i].strict);
}

/* ---- directories to write in ---- */

static void open_dir__for_a_user_who_may_not_write__is_refused_to_publish(void **state)
{
	static const struct {
		uid_t uid;
		mode_t mode;
		enum trusted_use use;
		int result;
	} table[] = {
		{0, 0755, TRUSTED_ANY, 0},
		{0, 0755, TRUSTED_OWN, 0},
		{0, 0755, TRUSTED_FILE, -EACCES},
		{0, 0755, TRUSTED_SET, -EACCES},
		{OTHER, 0755, TRUSTED_FILE, 0},
		{OTHER, 0655, TRUSTED_FILE, -EACCES},
		{OTHER, 0555, TRUSTED_SET, -EACCES},
		{OTHER, 0775, TRUSTED_FILE, -EPERM},
		{OTHER, 0700, TRUSTED_SET, 0},
	};
	char why[FILE_WHY];

	(void)state;
	need_root();
	assert_int_equal(chmod(dir, 0755), 0);
	make("a", 0755, 0);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		int r;

		assert_int_equal(chown(in("a"), table[i].uid, 0), 0);
		assert_int_equal(chmod(in("a"), table[i].mode), 0);
		assert_int_equal(seteuid(OTHER), 0);
		r = trusted_open_dir(&sys, in("a"), table[i].use, why);
		assert_int_equal(seteuid(0), 0);
		if (r >= 0) {
			assert_int_equal(fcntl(r, F_GETFL) & O_PATH, 0);
			close(r);
		}
		assert_int_equal(r < 0 ? r : 0, table[i].result);
		if (r == -EACCES)
			assert_non_null(strstr(why, "cannot write in the directory /"));
	}
}

static int access_error[2]; /* of F_OK, and of the rest; 0: as it is */

int faccessat(int at, const char *path, int mode, int flags)
{
	errno = access_error[mode != F_OK];
	return errno ? -1 : (int)syscall(SYS_faccessat2, at, path, mode, flags);
}

static void open_dir__where_a_filter_denies_the_question__is_not_refused(void **state)
{
	char why[FILE_WHY];
	int fd;

	(void)state;
	make("files", 0755, geteuid());
	access_error[1] = EPERM; /* as of an immutable one */
	assert_int_equal(trusted_open_dir(&sys, in("files"), TRUSTED_FILE, why), -EPERM);
	access_error[0] = EPERM;
	fd = trusted_open_dir(&sys, in("files"), TRUSTED_FILE, why);
	access_error[0] = access_error[1] = 0;
	assert_true(fd >= 0);
	close(fd);
}

static void open_dir__of_what_is_no_safe_directory__is_refused(void **state)
{
	char why[FILE_WHY];
	int fd;

	(void)state;
	need_root();
	make("theirs", 0755, OTHER);
	/* a command's own use is that of a user without root's rights */
	fd = trusted_open_dir(&sys, in("theirs"), TRUSTED_ANY, why);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(trusted_open_dir(&sys, in("theirs"), TRUSTED_OWN, why), -EPERM);
	assert_non_null(strstr(why, "will not use the directory "));
	assert_int_equal(trusted_open_dir(&sys, in("none"), TRUSTED_ANY, why), -ENOENT);
	assert_non_null(strstr(why, "cannot open the directory "));
}

static void open_parent__is_of_the_directory_and_has_the_name(void **state)
{
	static const struct {
		const char *path, *parent, *name;
	} table[] = {
		{"a/b", "a", "b"},
		{"b", ".", "b"},
		{"/b", "/", "b"},
		{"a/../b", ".", "b"},
		{"./a/b.c", "a", "b.c"},
	};
	int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const char *name = NULL;
	char why[FILE_WHY];

	(void)state;
	assert_int_equal(mkdir(in("a"), 0700), 0);
	assert_int_equal(chdir(dir), 0);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		int fd = trusted_open_parent(&sys, table[i].path, TRUSTED_OWN, &name, why);
		struct stat st, expected;

		assert_true(fd >= 0);
		assert_string_equal(name, table[i].name);
		assert_int_equal(fstat(fd, &st), 0);
		assert_int_equal(stat(table[i].parent, &expected), 0);
		assert_int_equal(st.st_ino, expected.st_ino);
		close(fd);
	}
	name = NULL;
	assert_int_equal(trusted_open_parent(&sys, "c/b", TRUSTED_OWN, &name, why), -ENOENT);
	assert_null(name);
	assert_int_equal(fchdir(here), 0);
	close(here);
}

static void make_dir__that_fails__says_so(void **state)
{
	char why[FILE_WHY] = "";

	(void)state;
	sys = fault_table();
	memset(&fault, 0, sizeof(fault));
	fault.call = CALL_MKDIR;
	fault.nth = 1;
	fault.error = EROFS;
	assert_int_equal(trusted_make_dir(&sys, in("a"), 0755, TRUSTED_FILE, why), -EROFS);
	assert_non_null(strstr(why, "cannot make the directory "));
	assert_non_null(strstr(why, "/a: Read-only file system: mount it writable"));
	assert_int_equal(trusted_make_dir(&sys, in("b/c"), 0755, TRUSTED_FILE, why), -ENOENT);
	assert_non_null(strstr(why, "cannot make the directory "));
	assert_non_null(strstr(why, "/b/c: No such file or directory"));
	if (geteuid() == 0) {
		make("theirs", 0755, OTHER);
		assert_int_equal(
			trusted_make_dir(&sys, in("theirs/a"), 0755, TRUSTED_FILE, why), -EPERM);
		assert_non_null(strstr(why, "will not use the directory "));
		assert_int_equal(trusted_make_dir(&sys, in("theirs/a"), 0755, TRUSTED_ANY, why), 1);
	}
}

static void provide_dir__makes_what_is_missing_alone(void **state)
{
	char why[FILE_WHY] = "";
	struct stat st;
	bool made;

	(void)state;
	for (int i = 0; i < 2; i++) {
		int fd = trusted_provide_dir(&sys, in("a"), 0710, TRUSTED_SET, &made, why);

		assert_true(fd >= 0);
		assert_int_equal(made, i == 0);
		assert_string_equal(why, "");
		assert_int_equal(fstat(fd, &st), 0);
		assert_int_equal(st.st_mode & 07777, 0710);
		close(fd);
	}
	assert_int_equal(
		trusted_provide_dir(&sys, in("b/c"), 0755, TRUSTED_SET, &made, why), -ENOENT);
	assert_false(made);
	assert_non_null(strstr(why, "cannot make the directory "));
	scratch_write(dir, "file", "", 0);
	assert_int_equal(
		trusted_provide_dir(&sys, in("file"), 0755, TRUSTED_SET, &made, why), -ENOTDIR);
	assert_false(made);
}

static void open_below__refuses_what_somebody_else_made(void **state)
{
	static const struct {
		uid_t uid;
		mode_t mode;
		int strict, other; /* to root's agent, and to another user's */
	} table[] = {
		{0, 0755, 0, 0},
		{OTHER, 0755, -EPERM, 0},
		{0, 0775, -EPERM, 0},
		{0, 0757, -EPERM, 0},
		{0, 01777, 0, 0},
		{OTHER, 01777, -EPERM, 0},
	};
	int top;

	(void)state;
	need_root();
	make("a", 0755, 0);
	make_link("a", "link", 0);
	scratch_write(dir, "file", "", 0);
	assert_int_equal(chmod(dir, 0755), 0);
	top = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < 2 * sizeof(table) / sizeof(table[0]); i++) {
		int r;

		assert_int_equal(chown(in("a"), table[i / 2].uid, 0), 0);
		assert_int_equal(chmod(in("a"), table[i / 2].mode), 0);
		assert_int_equal(seteuid(i % 2 ? OTHER : 0), 0);
		r = trusted_open_below(&sys, top, "a");
		assert_int_equal(seteuid(0), 0);
		if (r >= 0)
			close(r);
		assert_int_equal(r < 0 ? r : 0, i % 2 ? table[i / 2].other : table[i / 2].strict);
	}
	assert_int_equal(trusted_open_below(&sys, top, "link"), -ENOTDIR);
	assert_int_equal(trusted_open_below(&sys, top, "file"), -ENOTDIR);
	sys.fstatat = fail_fstatat;
	stats_left = 0;
	assert_int_equal(chown(in("a"), 0, 0), 0);
	assert_int_equal(trusted_open_below(&sys, top, "a"), -EIO);
	close(top);
}

/* ---- files ---- */

static void make_file(const char *name, mode_t mode, uid_t uid)
{
	scratch_write(dir, name, "text", 4);
	assert_int_equal(chown(in(name), uid, (gid_t)-1), 0);
	assert_int_equal(chmod(in(name), mode), 0);
}

static void open__of_a_file_with_two_names__is_refused_where_others_can_make_one(void **state)
{
	static const struct {
		struct {
			mode_t mode; /* 0 = there is none */
			uid_t uid;
		} above, below;
		uid_t uid;
		bool refused;
	} table[] = {
		{{0755, 0}, {0, 0}, 0, false},
		{{0755, 0}, {0, 0}, OTHER, false},
		{{0755, OTHER}, {0, 0}, 0, true},
		{{0755, OTHER}, {0, 0}, OTHER, false},
		{{0755, OTHER}, {0, 0}, OTHER + 1, true},
		{{0775, OTHER}, {0, 0}, OTHER, true},
		{{0757, OTHER}, {0, 0}, OTHER, true},
		{{0777, 0}, {0, 0}, 0, true},
		{{01777, 0}, {0, 0}, 0, true},
		{{01777, OTHER}, {0, 0}, OTHER, true},
		{{01777, 0}, {0755, 0}, 0, false},
		{{01777, 0}, {0755, 0}, OTHER, false},
		{{01777, 0}, {0755, OTHER}, OTHER, true},
		{{0777, 0}, {0755, 0}, 0, true},
		{{0755, OTHER}, {0755, OTHER}, OTHER, false},
		{{0755, OTHER}, {0755, 0}, OTHER, false},
		{{0755, OTHER}, {0755, 0}, 0, true},
		{{0755, OTHER}, {0755, OTHER + 1}, OTHER + 1, true},
		{{01755, OTHER}, {0755, 0}, OTHER, false},
		{{01777, OTHER}, {0755, 0}, OTHER, false},
		{{01777, OTHER}, {0755, OTHER}, OTHER, true},
	};

	(void)state;
	need_root();
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		char sub[16], file[32], other[32], why[FILE_WHY] = "";
		int fd;

		snprintf(sub, sizeof(sub), "%zu", i);
		make(sub, table[i].above.mode, table[i].above.uid);
		if (table[i].below.mode) {
			snprintf(sub, sizeof(sub), "%zu/sub", i);
			make(sub, table[i].below.mode, table[i].below.uid);
		}
		snprintf(file, sizeof(file), "%s/file", sub);
		make_file(file, 0600, table[i].uid);
		for (int names = 1; names <= 2; names++) {
			fd = trusted_open(&sys, in(file), why);
			if (names == 2 && table[i].refused) {
				assert_int_equal(fd, -EPERM);
				assert_non_null(strstr(
					why, ", and others can write in its directory; copy it"));
				assert_memory_equal(why,
					"it has more than one name (hard links), belongs to ", 51);
				continue;
			}
			if (fd < 0)
				fail_msg("%zu: %s", i, why);
			close(fd);
			snprintf(other, sizeof(other), "%s/other", sub);
			if (names == 1)
				assert_int_equal(link(in(file), in(other)), 0);
		}
	}
}

static void open__takes_what_is_there_and_waits_for_nothing(void **state)
{
	char why[FILE_WHY] = "";
	int fd;

	(void)state;
	make_file("file", 0600, geteuid());
	assert_int_equal(mkfifo(in("fifo"), 0600), 0);
	for (int i = 0; i < 2; i++) {
		static const char *const names[] = {"file", "fifo", ".", "./file", ".//./fifo"};

		sys.open_plain = i ? no_openat2 : sys_real.open_plain;
		for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
			struct stat st, expected;

			fd = trusted_open(&sys, in(names[k]), NULL);
			assert_true(fd >= 0);
			assert_int_equal(fstat(fd, &st), 0);
			assert_int_equal(stat(in(names[k]), &expected), 0);
			assert_int_equal(st.st_ino, expected.st_ino);
			assert_int_equal(fcntl(fd, F_GETFL) & (O_PATH | O_NONBLOCK), O_NONBLOCK);
			assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
			close(fd);
		}
		assert_int_equal(trusted_open(&sys, in("none"), NULL), -ENOENT);
		assert_int_equal(trusted_open(&sys, in("none"), why), -ENOENT);
		assert_string_equal(why, "No such file or directory: make it, or name another one");
		assert_int_equal(trusted_open(&sys, in("file/none"), why), -ENOTDIR);
	}
}

static int deny_plain(int at, const char *path, int flags)
{
	(void)at, (void)path, (void)flags;
	errno = EACCES;
	return -1;
}

static void open__that_is_denied__names_the_part_that_denies(void **state)
{
	char why[FILE_WHY], expected[FILE_WHY], name[200];

	(void)state;
	need_root();
	sys.open_plain = deny_plain;
	make("a", 0710, OTHER);
	assert_int_equal(chown(in("a"), OTHER, OTHER + 1), 0);
	make_file("a/file", 04640, 0);
	assert_int_equal(chown(in("a/file"), 0, 0), 0);
	assert_int_equal(chmod(in("a/file"), 04640), 0);
	assert_int_equal(trusted_open(&sys, in("a/none/b"), NULL), -EACCES);
	assert_int_equal(trusted_open(&sys, in("a/none/b"), why), -EACCES);
	snprintf(expected, sizeof(expected),
		"Permission denied: the agent's user must be able to read it (it runs as user 0, "
		"group %u); %s/a is of uid 64104 and the group gid 64105, mode 0710",
		(unsigned)getegid(), dir);
	assert_string_equal(why, expected);
	assert_int_equal(trusted_open(&sys, in("a//file"), why), -EACCES);
	snprintf(expected, sizeof(expected),
		"; %s/a//file is of root (uid 0) and the group root (gid 0), mode 4640", dir);
	assert_string_equal(strchr(why, ';'), expected);
	memset(name, 'n', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	make(name, 0700, 0);
	assert_int_equal(trusted_open(&sys, in(name), why), -EACCES);
	snprintf(expected, sizeof(expected), "; %.150s is of root", in(name));
	assert_memory_equal(strchr(why, ';'), expected, strlen(expected));
	assert_int_equal(trusted_open(&sys, "none-of-that-name", why), -EACCES);
	assert_null(strchr(why, ';'));
}

static void open_held__says_in_whose_hands_it_is(void **state)
{
	static const struct {
		const char *name;
		uid_t uid;
		bool strict;
		int result;
		uid_t holder;
		const char *why;
	} table[] = {
		{"good/root", 0, true, 0, (uid_t)-1, ""},
		{"good/other", 0, true, 0, OTHER, ""},
		{"good/other", OTHER, true, 0, (uid_t)-1, ""},
		{"good/other", 0, false, 0, OTHER, ""},
		{"good/group", 0, true, -EPERM, 0,
			"group or others can write it (mode 0664); chmod go-w"},
		{"good/others", 0, false, -EPERM, 0,
			"group or others can write it (mode 0602); chmod go-w"},
		{"theirs/root", 0, true, 0, OTHER, ""},
		{"theirs/other", 0, true, 0, OTHER, ""},
		{"theirs/third", 0, true, -EPERM, 0, "belongs to uid 64105, who could lead"},
		{"theirs/root", 0, false, 0, (uid_t)-1, ""},
		{"theirs/third", 0, false, 0, OTHER + 1, ""},
		{"theirs/link", 0, true, 0, OTHER, ""},
		{"theirs/link", 0, false, -EPERM, 0,
			"a symlink of another user leads to it, and it belongs to root (uid 0)"},
		{"good/link-root", 0, true, 0, OTHER, ""},
		{"good/link-third", 0, true, -EPERM, 0, "belongs to uid 64105"},
		{"good/link-other", 0, true, 0, OTHER, ""},
		{"good/link-other", 0, false, 0, OTHER, ""},
		{"good/link-third", 0, false, -EPERM, 0, "a symlink of another user leads to it"},
		{"good/link-link", 0, false, -EPERM, 0, "the symlink "},
		{"open/root", 0, true, -EPERM, 0, "(mode 0777) in its part"},
		{"open/root", 0, false, 0, (uid_t)-1, ""},
		{"none", 0, true, -ENOENT, 0, "No such file or directory: make it"},
	};

	(void)state;
	need_root();
	make("good", 0755, 0);
	make("theirs", 0755, OTHER);
	make("open", 0777, 0);
	make_file("good/root", 0600, 0);
	make_file("good/other", 0644, OTHER);
	make_file("good/third", 0644, OTHER + 1);
	make_file("good/group", 0664, 0);
	make_file("good/others", 0602, 0);
	make_file("theirs/root", 0600, 0);
	make_file("theirs/other", 0600, OTHER);
	make_file("theirs/third", 0600, OTHER + 1);
	make_file("open/root", 0600, 0);
	make_link("../good/root", "theirs/link", OTHER);
	make_link("root", "good/link-root", OTHER);
	make_link("other", "good/link-other", OTHER);
	make_link("third", "good/link-third", OTHER);
	make_link("link-third", "good/link-link", OTHER + 1);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const struct trusted_who who = {
			.root = -1, .uid = table[i].uid, .strict = table[i].strict};
		uid_t holder = 0;
		char why[FILE_WHY] = "";
		int fd = trusted_open_held(&sys, &who, in(table[i].name), &holder, why);

		if (fd >= 0)
			close(fd);
		if ((fd < 0 ? fd : 0) != table[i].result || !strstr(why, table[i].why))
			fail_msg("%s, %d: %d %s", table[i].name, table[i].strict, fd, why);
		assert_int_equal(holder, table[i].holder);
	}
}

static void read__of_what_is_too_much_or_no_file__says_so(void **state)
{
	struct buffer b;
	char why[FILE_WHY];

	(void)state;
	make_file("file", 0600, geteuid());
	buffer_init(&b, 4);
	assert_int_equal(trusted_read(&sys, in("file"), &b, why), 0);
	assert_int_equal(b.len, 4);
	assert_int_equal(trusted_read(&sys, in("file"), &b, NULL), -EMSGSIZE);
	buffer_clear(&b);
	assert_int_equal(trusted_read(&sys, dir, &b, NULL), -EINVAL);
	assert_int_equal(trusted_read(&sys, dir, &b, why), -EINVAL);
	assert_string_equal(why, "it is not a regular file");
	assert_int_equal(trusted_read(&sys, in("none"), &b, NULL), -ENOENT);
	buffer_fini(&b);
	buffer_init(&b, 3);
	assert_int_equal(trusted_read(&sys, in("file"), &b, why), -EMSGSIZE);
	assert_string_equal(why, "Message too long");
	buffer_fini(&b);
}

static void list__has_the_names_that_end_so_in_order(void **state)
{
	static const char *const made[] = {"b.pub", "a.pem", "a.pub", ".c.pub", "pub", ".pub",
		"d.pub.old", "c.PUB", "a.pu", "B.pub"};
	static const char *const endings[] = {".pub", ".pem", NULL};
	static const char *const expected[] = {"B.pub", "a.pem", "a.pub", "b.pub"};
	char why[FILE_WHY] = "", *names[4];

	(void)state;
	for (size_t i = 0; i < sizeof(made) / sizeof(made[0]); i++)
		scratch_write(dir, made[i], "", 0);
	assert_int_equal(trusted_list(&sys, dir, endings, names, 4, why), 4);
	for (size_t i = 0; i < 4; i++) {
		assert_string_equal(names[i], expected[i]);
		free(names[i]);
	}
	assert_int_equal(trusted_list(&sys, dir, endings, names, 3, why), -E2BIG);
	assert_int_equal(trusted_list(&sys, dir, endings, names, 0, why), -E2BIG);
	assert_int_equal(trusted_list(&sys, dir, endings + 2, names, 0, why), 0);
	assert_string_equal(why, "");
	assert_int_equal(trusted_list(&sys, in("a.pub"), endings, names, 4, NULL), -ENOTDIR);
	assert_int_equal(trusted_list(&sys, in("a.pub"), endings, names, 4, why), -ENOTDIR);
	assert_string_equal(why, "Not a directory: a part of the path is not a directory");
	assert_int_equal(trusted_list(&sys, in("none"), endings, names, 4, why), -ENOENT);
	assert_string_equal(why, "No such file or directory: make it, or name another one");
}

static void list__without_memory__gives_all_back(void **state)
{
	static const char *const endings[] = {".pub", NULL};
	char why[FILE_WHY], *names[4];
	int r = -ENOMEM;

	(void)state;
	scratch_write(dir, "a.pub", "", 0);
	scratch_write(dir, "b.pub", "", 0);
	for (unsigned nth = 1; r == -ENOMEM; nth++) {
		long live = fault_memory.live;

		assert_true(nth < FAULT_MEMORY_MOST);
		fault_memory.seen = 0;
		fault_memory.nth = nth;
		r = trusted_list(&sys, dir, endings, names, 4, why);
		fault_memory.nth = 0;
		if (r < 0)
			assert_int_equal(fault_memory.live, live);
		else
			assert_true(nth > 2);
	}
	assert_int_equal(r, 2);
	free(names[0]);
	free(names[1]);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(check_dir__with_root_s_rights__refuses_what_others_decide),
		CASE(check_dir__without_root_s_rights__looks_at_the_directory_itself),
		CASE(check_dir__through_links__follows_those_of_root),
		CASE(read__through_links_of_others__gives_their_own_files_only),
		CASE(make_dir__makes_the_last_part_alone),
		CASE(check_dir__that_is_refused__says_whose_it_is_and_what_to_do),
		CASE(check_dir__past_a_part_that_others_decide__refuses_the_way_there),
		CASE(check_dir__of_a_plain_path__walks_no_part),
		CASE(check_dir__of_a_deep_path__goes_through_all_parts),
		CASE(check_dir__of_the_owner_of_the_root__is_as_of_root),
		CASE(check_dir__in_another_root__stays_there),
		CASE(check_dir__for_each_use__asks_for_what_it_needs),
		CASE(check_dir__through_forty_links__is_as_far_as_it_goes),
		CASE(check_dir__of_a_path_that_is_too_long__says_so),
		CASE(check_dir__of_a_name_that_is_too_long__is_not_the_one_that_begins_so),
		CASE(check_dir__whose_calls_fail__says_so_and_leaves_none_open),
		CASE(check_dir__that_cannot_be_looked_at__says_so_and_leaves_none_open),
		CASE(self__is_strict_with_root_s_rights),
		CASE(open_dir__for_a_user_who_may_not_write__is_refused_to_publish),
		CASE(open_dir__where_a_filter_denies_the_question__is_not_refused),
		CASE(open_dir__of_what_is_no_safe_directory__is_refused),
		CASE(open_parent__is_of_the_directory_and_has_the_name),
		CASE(make_dir__that_fails__says_so),
		CASE(provide_dir__makes_what_is_missing_alone),
		CASE(open_below__refuses_what_somebody_else_made),
		CASE(open__of_a_file_with_two_names__is_refused_where_others_can_make_one),
		CASE(open__takes_what_is_there_and_waits_for_nothing),
		CASE(open__that_is_denied__names_the_part_that_denies),
		CASE(open_held__says_in_whose_hands_it_is),
		CASE(read__of_what_is_too_much_or_no_file__says_so),
		CASE(list__has_the_names_that_end_so_in_order),
		CASE(list__without_memory__gives_all_back),
	};

	return fault_memory_run(tests, 1);
}
