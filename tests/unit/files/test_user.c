/*
 * The name of a user, from files that are as they should be and from others.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "files/user.h"

static const char passwd[] = "root:x:0:0:root:/root:/bin/bash\n"
			     "\n"
			     "# a comment: 7:\n"
			     "+::::::\n"
			     ":x:5:5::/:\n"
			     "short:x:5\n"
			     "negative:x:-6:0::/:\n"
			     "empty:x::0::/:\n"
			     "huge:x:18446744073709551617:0::/:\n"
			     "alice:x:1000:1000:1001:/home/1001:/bin/sh\n"
			     "alice-too:x:1000:1000::/:\n"
			     "a-name-that-is-longer-than-anybody-would-give:x:1002:0::/:\n"
			     "octal:x:0010:0011::/:\n"
			     "forty-bytes-are-the-most-that-are-shown-x:x:1004:0::/:\n"
			     "forty-bytes-are-the-most-that-are-shown:x:1005:0::/:\n"
			     "forty-bytes-are-the-most-that-are-shown1:x:1006:0::/:\n"
			     "newline\n:x:1007:0::/:\n"
			     "last::1003:0";

static void describe__of_a_user_in_the_file__has_the_name(void **state)
{
	static const struct {
		uid_t uid;
		const char *text;
	} table[] = {
		{0, "root (uid 0)"},
		{1000, "alice (uid 1000)"},
		{1003, "last (uid 1003)"},
		{1, "uid 1"}, /* the number that the huge one would be cut to */
		{5, "uid 5"},
		{6, "uid 6"},
		{7, "uid 7"},
		{1001, "uid 1001"},
		{1002, "uid 1002"},
		{8, "uid 8"},
		{10, "octal (uid 10)"},
		{1004, "uid 1004"},
		{1005, "forty-bytes-are-the-most-that-are-shown (uid 1005)"},
		{1006, "forty-bytes-are-the-most-that-are-shown1 (uid 1006)"},
		{1007, "uid 1007"},
		{4294967295u, "uid 4294967295"},
	};
	char text[USER_TEXT];

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		user_describe_by(passwd, table[i].uid, text);
		assert_string_equal(text, table[i].text);
	}
	user_describe_by("", 0, text);
	assert_string_equal(text, "uid 0");
}

static void primary_group__of_a_user_in_the_file__is_that_of_the_line(void **state)
{
	gid_t gid = 7;

	(void)state;
	assert_int_equal(user_primary_group_by(passwd, 1000, &gid), 0);
	assert_int_equal(gid, 1000);
	assert_int_equal(user_primary_group_by(passwd, 0, &gid), 0);
	assert_int_equal(gid, 0);
	assert_int_equal(user_primary_group_by(passwd, 10, &gid), 0);
	assert_int_equal(gid, 11);
	assert_int_equal(user_primary_group_by("a:x:1:4294967294:\n", 1, &gid), 0);
	assert_int_equal(gid, 4294967294u);
	assert_int_equal(user_primary_group_by("a:x:1:0:\n", 1, &gid), 0);
	assert_int_equal(user_primary_group_by(passwd, 1001, &gid), -ENOENT);
	assert_int_equal(user_primary_group_by("a:x:1:-2::/:\n", 1, &gid), -EINVAL);
	assert_int_equal(user_primary_group_by("a:x:1:4294967295::/:\n", 1, &gid), -EINVAL);
	assert_int_equal(user_primary_group_by("a:x:1:18446744073709551617:\n", 1, &gid), -EINVAL);
	assert_int_equal(user_primary_group_by("a:x:1:7", 1, &gid), -EINVAL);
	assert_int_equal(user_primary_group_by("a:x:1:7\n:", 1, &gid), -EINVAL);
	assert_int_equal(user_primary_group_by("a:x:1", 1, &gid), -ENOENT);
	assert_int_equal(user_primary_group_by("a:x:1:\n", 1, &gid), -EINVAL);
	assert_int_equal(gid, 0);
}

static int not_to_be_opened(int dir, const char *name, int flags, mode_t mode)
{
	(void)dir, (void)name, (void)flags, (void)mode;
	return -1;
}

/* Of a host whose users and groups are those of the text. */
static const char *lines_of_host;

static int open_lines(int dir, const char *name, int flags, mode_t mode)
{
	int fd = memfd_create("lines", MFD_CLOEXEC);

	(void)dir, (void)flags, (void)mode;
	assert_true(strcmp(name, "/etc/passwd") == 0 || strcmp(name, "/etc/group") == 0);
	assert_int_equal(write(fd, lines_of_host, strlen(lines_of_host)), strlen(lines_of_host));
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

static void primary_group__on_a_host__is_read_from_its_file(void **state)
{
	struct sys sys = sys_real;
	char text[USER_TEXT];
	gid_t gid = 7;

	(void)state;
	sys.openat = open_lines;
	lines_of_host = "ann:x:1001:1002::/:\n";
	assert_int_equal(user_primary_group(&sys, 1001, &gid), 0);
	assert_int_equal(gid, 1002);
	assert_int_equal(user_primary_group(&sys, 1002, &gid), -ENOENT);
	lines_of_host = "staff:x:1001:ann\n";
	user_describe_group(&sys, 1001, text);
	assert_string_equal(text, "staff (gid 1001)");
	user_describe_group(&sys, 1002, text);
	assert_string_equal(text, "gid 1002");
	lines_of_host = "";
	assert_int_equal(user_primary_group(&sys, 1001, &gid), -ENOENT);
}

static void describe__on_this_host__reads_its_file(void **state)
{
	struct sys sys = sys_real;
	char text[USER_TEXT];

	(void)state;
	user_describe(&sys, 0, text);
	assert_string_equal(text, "root (uid 0)");
	user_describe_group(&sys, 0, text);
	assert_string_equal(text, "root (gid 0)");
	sys.openat = not_to_be_opened;
	user_describe(&sys, 0, text);
	assert_string_equal(text, "uid 0");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(describe__of_a_user_in_the_file__has_the_name),
		cmocka_unit_test(describe__on_this_host__reads_its_file),
		cmocka_unit_test(primary_group__on_a_host__is_read_from_its_file),
		cmocka_unit_test(primary_group__of_a_user_in_the_file__is_that_of_the_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
