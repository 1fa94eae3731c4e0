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
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "files/trusted.h"
#include "tests/unit/fixture/scratch.h"

#define OTHER 64104

static char dir[SCRATCH_PATH];
static struct sys sys;

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
	scratch_open(dir, "/tmp");
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	scratch_close(dir);
	return 0;
}

/* What both ways answer to an agent of this user; why has `expected`. */
static int check(const char *name, uid_t uid, bool strict, const char *expected)
{
	const struct trusted_who who = {.root = -1, .uid = uid, .strict = strict};
	char why[2][FILE_WHY] = {"", ""};
	int r[2];

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
	char why[FILE_WHY];
	int fd;

	(void)state;
	assert_int_equal(trusted_make_dir(&sys, in("a"), 0755, TRUSTED_FILE, why), 1);
	assert_int_equal(trusted_make_dir(&sys, in("a"), 0755, TRUSTED_FILE, why), 0);
	assert_int_equal(trusted_make_dir(&sys, in("b/c"), 0755, TRUSTED_FILE, why), -ENOENT);
	fd = trusted_open_dir(&sys, in("a"), TRUSTED_SET, why);
	assert_true(fd >= 0);
	assert_int_equal(trusted_open_below(&sys, fd, "none"), -ENOENT);
	close(fd);
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
