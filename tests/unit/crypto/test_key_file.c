/* Files of keys: which secret ones are read, how a pair is written, and what each error says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "crypto/key_file.h"
#include "tests/unit/fixture/fault_sys.h"
#include "tests/unit/fixture/scratch.h"

#define OTHER 64104

static struct sys sys;
static char dir[SCRATCH_PATH], path[SCRATCH_PATH + 16], why[FILE_WHY];
static unsigned descriptors;

static int set_up(void **state)
{
	(void)state;
	memset(&fault, 0, sizeof(fault));
	why[0] = '\0';
	sys = fault_table();
	scratch_open(dir, scratch_memory());
	snprintf(path, sizeof(path), "%s/key", dir);
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

static void arm(enum fault_call call, unsigned nth, int error)
{
	memset(&fault, 0, sizeof(fault));
	fault.call = call;
	fault.nth = nth;
	fault.error = error;
}

/* What is read into 8 bytes; the sentence is in why. */
static int read_secret(char data[8], size_t *ret_len)
{
	const char *sentence = "";
	int r;

	*ret_len = 99;
	memset(data, '?', 8);
	r = key_file_read_secret(&sys, path, data, 8, ret_len, &sentence);
	snprintf(why, sizeof(why), "%s", sentence);
	return r;
}

static void secret__that_others_cannot_read__is_read(void **state)
{
	static const struct {
		mode_t mode;
		bool good;
	} table[] = {
		{0600, true},
		{0400, true},
		{0640, true},
		{0700, true},
		{0750, true},
		{0620, false},
		{0602, false},
		{0604, false},
		{0601, false},
		{0777, false},
	};
	char data[8];
	size_t len;

	(void)state;
	scratch_write(dir, "key", "secret", 6);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		assert_int_equal(chmod(path, table[i].mode), 0);
		assert_int_equal(read_secret(data, &len), table[i].good ? 0 : -EINVAL);
		if (table[i].good) {
			assert_int_equal(len, 6);
			assert_memory_equal(data, "secret", 6);
			continue;
		}
		assert_int_equal(len, 99);
		assert_memory_equal(data, "\0\0\0\0\0\0\0\0", 8); /* nothing is left of it */
		assert_string_equal(why,
			"the secret key's file can be read by others, or written by more than its "
			"owner: chmod 600 it, and make a new key if it was open for long");
	}
}

static void secret__that_cannot_be_read__says_why(void **state)
{
	static const struct {
		enum fault_call call;
		int error;
		const char *why;
	} table[] = {
		{CALL_OPEN, ENOENT,
			"the secret key's file does not exist: pullet keygen makes one"},
		{CALL_OPEN, ENOTDIR,
			"the secret key's file does not exist: pullet keygen makes one"},
		{CALL_OPEN, EACCES, "the secret key's file cannot be read by this user"},
		{CALL_OPEN, EMFILE,
			"the secret key's file cannot be read: no descriptors are left"},
		{CALL_OPEN, ENFILE,
			"the secret key's file cannot be read: no descriptors are left"},
		{CALL_OPEN, EIO, "the secret key's file cannot be read"},
		{CALL_READ, EIO, "the secret key's file cannot be read"},
	};
	char data[8];
	size_t len;

	(void)state;
	scratch_write(dir, "key", "secret", 6);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		arm(table[i].call, 1, table[i].error);
		assert_int_equal(read_secret(data, &len), -table[i].error);
		assert_string_equal(why, table[i].why);
		assert_int_equal(len, 99);
	}
	arm(CALL_READ, 2, EIO); /* what was read until then is wiped */
	assert_int_equal(read_secret(data, &len), -EIO);
	assert_memory_equal(data, "\0\0\0\0\0\0\0\0", 8);
	arm(CALL_READ, 1, EINTR);
	assert_int_equal(read_secret(data, &len), 0);
	assert_int_equal(len, 6);
}

static void secret__of_another_kind_or_size__is_refused(void **state)
{
	char data[8];
	size_t len;

	(void)state;
	scratch_write(dir, "key", "1234567", 7);
	assert_int_equal(read_secret(data, &len), 0);
	assert_int_equal(len, 7);
	scratch_write(dir, "key", "12345678", 8);
	assert_int_equal(read_secret(data, &len), -EMSGSIZE);
	assert_string_equal(why, "the secret key's file is too large to be one");
	assert_memory_equal(data, "\0\0\0\0\0\0\0\0", 8);
	scratch_write(dir, "key", "", 0);
	assert_int_equal(read_secret(data, &len), 0);
	assert_int_equal(len, 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(read_secret(data, &len), -EINVAL);
	assert_string_equal(why, "the secret key's file is not a regular file");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(read_secret(data, &len), -ENOENT);
}

static void secret__by_another_users_link__is_not_trusted(void **state)
{
	char data[8];
	size_t len;

	(void)state;
	if (geteuid() != 0)
		skip();
	scratch_write(dir, "real", "secret", 6);
	assert_int_equal(symlink("real", path), 0);
	assert_int_equal(read_secret(data, &len), 0);
	assert_int_equal(lchown(path, OTHER, OTHER), 0);
	assert_int_equal(read_secret(data, &len), -EPERM);
	assert_string_equal(why,
		"the secret key's file is not trusted: another user's symlink leads to it, or it "
		"has several names (hard links) where others can write");
}

static void open__of_a_file__has_what_it_is(void **state)
{
	struct stat st = {0};
	int fd;

	(void)state;
	scratch_write(dir, "key", "secret", 6);
	fd = key_file_open(&sys, path, &st, why);
	assert_true(fd >= 0);
	assert_int_equal(st.st_size, 6);
	close(fd);
	assert_int_equal(key_file_open(&sys, dir, &st, why), -EINVAL);
	snprintf(path, sizeof(path), "%s/none", dir);
	assert_int_equal(key_file_open(&sys, path, &st, why), -ENOENT);
	assert_string_equal(why, "No such file or directory: make it, or name another one");
}

/* The text of a file of that mode. */
static void assert_file(const char *name, mode_t mode, const char *text)
{
	char found[64], file[SCRATCH_PATH + 16];
	struct stat st;

	assert_true(scratch_read(dir, name, found, sizeof(found), NULL));
	assert_string_equal(found, text);
	snprintf(file, sizeof(file), "%s/%s", dir, name);
	assert_int_equal(lstat(file, &st), 0);
	assert_int_equal(st.st_mode, S_IFREG | mode);
}

static void pair__is_written_to_the_disk_with_its_modes(void **state)
{
	mode_t mask = umask(0077);

	(void)state;
	fault.short_writes = fault.interrupt = true;
	assert_int_equal(key_file_write_pair(&sys, path, "secret\n", "public\n", why), 0);
	umask(mask);
	assert_file("key", 0600, "secret\n");
	assert_file("key.pub", 0644, "public\n");
	assert_int_equal(scratch_count(dir, ""), 2);
	assert_non_null(strstr(fault.trace, "wmfxo"));
	assert_string_equal(fault.trace + strlen(fault.trace) - 5, "wmfxx");
}

static bool made_a_file;

/* Of a file that is made; no other user may read it before fchmod() says so. */
static int open_for_its_owner(int at, const char *name, int flags, mode_t mode)
{
	made_a_file = made_a_file || (flags & O_CREAT);
	if (flags & O_CREAT)
		assert_int_equal(mode, 0600);
	return sys_real.openat(at, name, flags, mode);
}

static void pair__while_it_is_written__is_its_owners(void **state)
{
	(void)state;
	sys.openat = open_for_its_owner;
	assert_int_equal(key_file_write_pair(&sys, path, "secret\n", "public\n", why), 0);
	assert_true(made_a_file);
}

static void pair__never_replaces_a_file(void **state)
{
	char expected[FILE_WHY];

	(void)state;
	scratch_write(dir, "key", "old", 3);
	assert_int_equal(key_file_write_pair(&sys, path, "secret", "public", why), -EEXIST);
	snprintf(expected, sizeof(expected),
		"cannot make %s: it is there already, and a key is never overwritten", path);
	assert_string_equal(why, expected);
	assert_file("key", 0600, "old");
	assert_int_equal(scratch_count(dir, ""), 1);
	assert_int_equal(unlink(path), 0);
	scratch_write(dir, "key.pub", "old", 3);
	assert_int_equal(key_file_write_pair(&sys, path, "secret", "public", why), -EEXIST);
	snprintf(expected, sizeof(expected),
		"cannot make %s.pub: it is there already, and a key is never overwritten", path);
	assert_string_equal(why, expected);
	assert_file("key.pub", 0600, "old");
	assert_int_equal(scratch_count(dir, ""), 1);
}

static void pair__that_cannot_be_written__leaves_neither_file(void **state)
{
	static const struct {
		enum fault_call call;
		int error;
		const char *what;
	} table[] = {
		{CALL_WRITE, ENOSPC, "cannot write"},
		{CALL_FCHMOD, EPERM, "cannot write"},
		{CALL_FSYNC, EIO, "cannot write"},
		{CALL_CLOSE, EIO, "cannot write"},
	};
	char expected[FILE_WHY];

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		for (unsigned nth = 1; nth <= 2; nth++) {
			arm(table[i].call, nth, table[i].error);
			assert_int_equal(key_file_write_pair(&sys, path, "secret", "public", why),
				-table[i].error);
			snprintf(expected, sizeof(expected), "%s %s%s: %s", table[i].what, path,
				nth == 2 ? ".pub" : "", strerror(table[i].error));
			assert_string_equal(why, expected);
			assert_int_equal(scratch_count(dir, ""), 0);
		}
	arm(CALL_OPEN, 2, EROFS); /* the first is of the directory */
	assert_int_equal(key_file_write_pair(&sys, path, "secret", "public", why), -EROFS);
	snprintf(expected, sizeof(expected), "cannot make %s: Read-only file system", path);
	assert_string_equal(why, expected);
	arm(CALL_CLOSE, 1, EINTR);
	assert_int_equal(key_file_write_pair(&sys, path, "secret", "public", why), 0);
	assert_int_equal(scratch_count(dir, ""), 2);
}

static ssize_t write_nothing(int fd, const void *data, size_t len)
{
	(void)fd, (void)data, (void)len;
	return 0;
}

static void pair__by_writes_of_nothing__is_an_error(void **state)
{
	(void)state;
	sys.write = write_nothing;
	assert_int_equal(key_file_write_pair(&sys, path, "secret", "public", why), -EIO);
	assert_int_equal(scratch_count(dir, ""), 0);
}

static void pair__at_an_impossible_place__says_why(void **state)
{
	char longest[PATH_MAX], expected[2 * FILE_WHY];

	(void)state;
	snprintf(path, sizeof(path), "%s/none/key", dir);
	assert_int_equal(key_file_write_pair(&sys, path, "secret", "public", why), -ENOENT);
	snprintf(expected, sizeof(expected),
		"cannot make %s: cannot open the directory %s/none: ", path, dir);
	assert_memory_equal(why, expected, strlen(expected));
	/* as long as a path may be, but for its .pub */
	memset(longest, '/', sizeof(longest));
	memcpy(longest, dir, strlen(dir));
	memcpy(longest + sizeof(longest) - 4, "key", 4);
	assert_int_equal(
		key_file_write_pair(&sys, longest, "secret", "public", why), -ENAMETOOLONG);
	assert_string_equal(why, "the path is too long");
	memcpy(longest + sizeof(longest) - 8, "key", 4);
	assert_int_equal(key_file_write_pair(&sys, longest, "secret", "public", why), 0);
	assert_int_equal(scratch_count(dir, ""), 2);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(secret__that_others_cannot_read__is_read),
		CASE(secret__that_cannot_be_read__says_why),
		CASE(secret__of_another_kind_or_size__is_refused),
		CASE(secret__by_another_users_link__is_not_trusted),
		CASE(open__of_a_file__has_what_it_is),
		CASE(pair__is_written_to_the_disk_with_its_modes),
		CASE(pair__while_it_is_written__is_its_owners),
		CASE(pair__never_replaces_a_file),
		CASE(pair__that_cannot_be_written__leaves_neither_file),
		CASE(pair__by_writes_of_nothing__is_an_error),
		CASE(pair__at_an_impossible_place__says_why),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
