/*
 * The steps by which a file is replaced, read, cleaned up after and brought to the disk, in which
 * order, and what each says when it fails.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/fs.h>
#include <sys/ioctl.h>

#include <cmocka.h>

#include "files/file.h"
#include "tests/unit/fixture/fault_sys.h"
#include "tests/unit/fixture/scratch.h"

static struct sys sys;
static char dir[SCRATCH_PATH], why[FILE_WHY];
static int dir_fd;

/* What was fsynced: d the directory, p its parent, f anything else. */
static char synced[16];
static struct stat dir_stat, parent_stat;

static int note_fsync(int fd)
{
	size_t n = strlen(synced);
	struct stat st;

	assert_true(n + 1 < sizeof(synced));
	assert_int_equal(fstat(fd, &st), 0);
	synced[n] = st.st_ino == dir_stat.st_ino      ? 'd'
		    : st.st_ino == parent_stat.st_ino ? 'p'
						      : 'f';
	return fault_fsync(fd);
}

static int set_up(void **state)
{
	(void)state;
	memset(&fault, 0, sizeof(fault));
	memset(synced, 0, sizeof(synced));
	sys = fault_table();
	sys.fsync = note_fsync;
	scratch_open(dir, scratch_memory());
	scratch_write(dir, "web.yaml", "n: 1\n", 5);
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(dir_fd >= 0);
	assert_int_equal(fstat(dir_fd, &dir_stat), 0);
	assert_int_equal(fstatat(dir_fd, "..", &parent_stat, 0), 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	close(dir_fd);
	scratch_close(dir);
	return 0;
}

static unsigned count_descriptors(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void fail_fsync(unsigned nth)
{
	memset(&fault, 0, sizeof(fault));
	memset(synced, 0, sizeof(synced));
	fault.call = CALL_FSYNC;
	fault.nth = nth;
	fault.error = EIO;
}

static void sync__of_a_file__is_of_its_bytes_then_of_its_name(void **state)
{
	unsigned before = count_descriptors();

	(void)state;
	assert_int_equal(file_sync(&sys, dir_fd, "web.yaml"), 0);
	assert_string_equal(synced, "fd");
	assert_int_equal(count_descriptors(), before);
}

static void sync__that_fails__says_so_and_goes_no_further(void **state)
{
	unsigned before = count_descriptors();

	(void)state;
	fail_fsync(1);
	assert_int_equal(file_sync(&sys, dir_fd, "web.yaml"), -EIO);
	assert_string_equal(synced, "f");
	fail_fsync(2);
	assert_int_equal(file_sync(&sys, dir_fd, "web.yaml"), -EIO);
	assert_string_equal(synced, "fd");
	assert_int_equal(count_descriptors(), before);
}

static void sync__of_what_is_not_there__says_so(void **state)
{
	(void)state;
	assert_int_equal(file_sync(&sys, dir_fd, "none"), -ENOENT);
	assert_int_equal(symlinkat("web.yaml", dir_fd, "link"), 0);
	assert_int_equal(file_sync(&sys, dir_fd, "link"), -ELOOP);
	assert_string_equal(synced, "");
}

static void sync__of_the_parent__is_of_the_directorys_name(void **state)
{
	unsigned before = count_descriptors();

	(void)state;
	assert_int_equal(file_sync_parent(&sys, dir_fd, why), 0);
	assert_string_equal(synced, "p");
	fail_fsync(1);
	assert_int_equal(file_sync_parent(&sys, dir_fd, why), -EIO);
	assert_non_null(strstr(why, "cannot bring to the disk the directory"));
	assert_int_equal(count_descriptors(), before);
}

static void sync__of_a_parent_that_cannot_be_opened__is_an_error_but_for_its_rights(void **state)
{
	(void)state;
	fault.call = CALL_OPEN;
	fault.nth = 1;
	fault.for_ever = true;
	fault.error = EACCES;
	assert_int_equal(file_sync_parent(&sys, dir_fd, why), 0);
	fault.error = EMFILE;
	assert_int_equal(file_sync_parent(&sys, dir_fd, why), -EMFILE);
	assert_string_equal(synced, "");
}

/* ---- replacing ---- */

static const struct file_options plain = {.mode = 0640, .uid = (uid_t)-1, .gid = (gid_t)-1};

static void arm(enum fault_call call, unsigned nth, int error)
{
	memset(&fault, 0, sizeof(fault));
	memset(synced, 0, sizeof(synced));
	fault.call = call;
	fault.nth = nth;
	fault.error = error;
}

/* The file's text, and that nothing lies beside it. */
static void assert_alone(const char *text)
{
	char found[64];

	assert_true(scratch_read(dir, "web.yaml", found, sizeof(found), NULL));
	assert_string_equal(found, text);
	assert_int_equal(scratch_count(dir, ""), 1);
}

/* What a file is until its mode is set: nobody else's. */
static ssize_t write_privately(int fd, const void *data, size_t len)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	return fault_write(fd, data, len);
}

static void replace__takes_the_steps_in_this_order(void **state)
{
	static const struct {
		struct file_options o;
		const char *trace; /* letters of fault_hits() */
	} table[] = {
		{{.mode = 0640, .uid = (uid_t)-1, .gid = (gid_t)-1}, "owmxr"},
		{{.mode = 0604, .uid = (uid_t)-1, .gid = (gid_t)-1, .sync = true}, "owmfxrf"},
		{{.mode = 0640, .uid = (uid_t)-2, .gid = (gid_t)-1}, "owcmxr"},
		{{.mode = 0640, .uid = (uid_t)-1, .gid = (gid_t)-2}, "owcmxr"},
	};
	unsigned before = count_descriptors();

	(void)state;
	sys.write = write_privately;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct file_options o = table[i].o;
		struct stat written = {0}, st;

		if (geteuid() != 0 && strchr(table[i].trace, 'c'))
			continue;
		arm(CALLS, 0, 0);
		o.ret_written = &written;
		assert_int_equal(file_replace(&sys, dir_fd, "web.yaml", "n: 2", 4, &o, why), 0);
		assert_string_equal(fault.trace, table[i].trace);
		assert_string_equal(synced, o.sync ? "fd" : "");
		assert_alone("n: 2");
		assert_int_equal(fstatat(dir_fd, "web.yaml", &st, 0), 0);
		assert_int_equal(st.st_mode & 07777, o.mode);
		assert_int_equal(st.st_uid, o.uid == (uid_t)-1 ? geteuid() : o.uid);
		assert_int_equal(st.st_gid, o.gid == (gid_t)-1 ? getegid() : o.gid);
		assert_int_equal(written.st_ino, st.st_ino);
		assert_int_equal(written.st_mode, st.st_mode);
		assert_int_equal(written.st_uid, st.st_uid);
	}
	assert_int_equal(count_descriptors(), before);
}

static void replace__where_a_step_fails__says_which_and_changes_nothing(void **state)
{
	static const struct {
		enum fault_call call;
		unsigned nth;
		int error, result;
		const char *what, *how, *trace;
	} table[] = {
		{CALL_OPEN, 1, EROFS, -EROFS, "cannot make a new file for ", ": mount it writable",
			"o"},
		{CALL_OPEN, 1, EEXIST, -EEXIST, "cannot make a new file for ", ": File exists",
			"ooooo"},
		{CALL_WRITE, 1, ENOSPC, -ENOSPC, "cannot write ", ": make room", "owxu"},
		{CALL_FCHOWN, 1, EIO, -EIO, "cannot set the owner of ", ": the disk fails",
			"owcxu"},
		{CALL_FCHOWN, 1, EPERM, -EPERM, "cannot set the owner of web.yaml: only root may",
			", or leave owner out", "owcxu"},
		{CALL_FCHMOD, 1, EPERM, -EPERM, "cannot set the mode of ", "is immutable",
			"owcmxu"},
		{CALL_FSYNC, 1, EIO, -EIO, "cannot bring to the disk ", ": the disk fails",
			"owcmfxu"},
		{CALL_CLOSE, 1, EIO, -EIO, "cannot close ", ": the disk fails", "owcmfxu"},
		{CALL_RENAME, 1, EBUSY, -EBUSY, "cannot replace ", "mount the directory instead",
			"owcmfxru"},
	};
	const struct file_options o = {
		.mode = 0600, .uid = geteuid(), .gid = (gid_t)-1, .sync = true};
	unsigned before = count_descriptors();

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		char path[sizeof(dir) + 16];

		arm(table[i].call, table[i].nth, table[i].error);
		fault.for_ever = true;
		assert_int_equal(file_replace(&sys, dir_fd, "web.yaml", "n: 2", 4, &o, why),
			table[i].result);
		assert_memory_equal(why, table[i].what, strlen(table[i].what));
		assert_non_null(strstr(why, table[i].how));
		snprintf(path, sizeof(path), " %s/web.yaml: ", dir);
		assert_true(strstr(why, path) || table[i].result == -EPERM);
		assert_string_equal(fault.trace, table[i].trace);
		assert_alone("n: 1\n");
	}
	assert_int_equal(count_descriptors(), before);
}

static mode_t mount_mode;

/* As exFAT and CIFS do: the mode is the mount's. */
static int open_with_mount_mode(int at, const char *path, int flags, mode_t mode)
{
	int fd = openat(at, path, flags, mode);

	assert_int_equal(fchmod(fd, mount_mode), 0);
	return fd;
}

static int keep_mode(int fd, mode_t mode)
{
	(void)fd;
	(void)mode;
	return 0;
}

static void replace__where_modes_are_not_kept__lets_nobody_read_more(void **state)
{
	char said[sizeof(dir) + 64];
	static const struct {
		mode_t asked, mount;
		int result;
	} table[] = {
		{0640, 0755, -ENOTSUP},
		{0600, 0640, -ENOTSUP},
		{0640, 0660, -ENOTSUP},
		{0640, 0700, 0},
		{0644, 0755, 0},
	};
	char text[] = "n: 1\n";

	(void)state;
	sys.openat = open_with_mount_mode;
	sys.fchmod = keep_mode;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct file_options o = {
			.mode = table[i].asked, .uid = (uid_t)-1, .gid = (gid_t)-1};

		arm(CALLS, 0, 0);
		mount_mode = table[i].mount;
		assert_int_equal(file_replace(&sys, dir_fd, "web.yaml", "n: 2\n", 5, &o, why),
			table[i].result);
		assert_int_equal(strchr(fault.trace, 'w') != NULL, table[i].result == 0);
		if (table[i].result == 0)
			text[3] = '2';
		assert_alone(text);
		if (i == 0) {
			snprintf(said, sizeof(said),
				"the mode would be 0755, not 0640, of %s/web.yaml: ", dir);
			assert_memory_equal(why, said, strlen(said));
		}
	}
}

static int fail_to_look(int at, const char *path, struct stat *ret_st, int flags)
{
	(void)at, (void)path, (void)ret_st, (void)flags;
	errno = EIO;
	return -1;
}

static void replace__where_the_mode_is_unknown__writes_nothing(void **state)
{
	(void)state;
	sys.fstatat = fail_to_look;
	arm(CALLS, 0, 0);
	assert_int_equal(file_replace(&sys, dir_fd, "web.yaml", "n: 2\n", 5, &plain, why), -EIO);
	assert_null(strchr(fault.trace, 'w'));
	assert_memory_equal(why, "cannot look at ", 15);
	assert_alone("n: 1\n");
}

static void replace__that_is_visible_but_not_on_the_disk__says_so(void **state)
{
	struct file_options o = plain;

	(void)state;
	o.sync = true;
	arm(CALL_FSYNC, 2, EIO);
	assert_int_equal(
		file_replace(&sys, dir_fd, "web.yaml", "n: 2", 4, &o, why), FILE_NOT_DURABLE);
	assert_non_null(strstr(why, "the new version is visible, but its directory is not on"));
	assert_non_null(strstr(why, "/web.yaml: Input/output error: the disk fails"));
	assert_alone("n: 2");
}

static void replace__with_calls_that_do_half__does_the_whole(void **state)
{
	static const struct {
		enum fault_call call;
		int error;
		bool short_writes, interrupt;
	} table[] = {
		{CALLS, 0, true, true},
		{CALL_OPEN, EINTR, false, false},
		{CALL_OPEN, EEXIST, false, false},
		{CALL_CLOSE, EINTR, false, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		char text[] = "n: 0";

		text[3] = (char)('2' + i);
		arm(table[i].call, table[i].error != 0, table[i].error);
		fault.short_writes = table[i].short_writes;
		fault.interrupt = table[i].interrupt;
		assert_int_equal(file_replace(&sys, dir_fd, "web.yaml", text, 4, &plain, why), 0);
		assert_alone(text);
	}
}

static ssize_t write_nothing(int fd, const void *data, size_t len)
{
	(void)fd, (void)data, (void)len;
	return 0;
}

static void replace__by_writes_of_nothing__is_an_error(void **state)
{
	(void)state;
	sys.write = write_nothing;
	assert_int_equal(file_replace(&sys, dir_fd, "web.yaml", "n: 2", 4, &plain, why), -EIO);
	assert_alone("n: 1\n");
	/* nothing is to be written */
	assert_int_equal(file_replace(&sys, dir_fd, "web.yaml", "", 0, &plain, why), 0);
	assert_alone("");
}

static void replace__of_a_long_name__has_room_for_a_temporary_one(void **state)
{
	char name[NAME_MAX + 1];

	(void)state;
	memset(name, 'n', sizeof(name));
	name[NAME_MAX - 24] = '\0';
	assert_int_equal(file_replace(&sys, dir_fd, name, "", 0, &plain, why), -ENAMETOOLONG);
	assert_non_null(strstr(why, "cannot make a new file for"));
	name[NAME_MAX - 25] = '\0';
	assert_int_equal(file_replace(&sys, dir_fd, name, "", 0, &plain, why), 0);
	assert_int_equal(scratch_count(dir, name), 1);
}

static void replace__in_a_directory_that_is_append_only__leaves_nothing(void **state)
{
	int flags = FS_APPEND_FL, none = 0;

	(void)state;
	if (ioctl(dir_fd, FS_IOC_SETFLAGS, &flags))
		skip();
	assert_int_equal(file_replace(&sys, dir_fd, "web.yaml", "n: 2", 4, &plain, why), -EPERM);
	assert_int_equal(ioctl(dir_fd, FS_IOC_SETFLAGS, &none), 0);
	assert_non_null(strstr(why, "append-only: chattr -a it"));
	assert_alone("n: 1\n");
}

static void commit__makes_what_was_prepared_visible(void **state)
{
	char temporary[NAME_MAX + 1];

	(void)state;
	assert_int_equal(
		file_prepare(&sys, dir_fd, "web.yaml", "n: 2", 4, &plain, temporary, why), 0);
	assert_int_equal(file_temporary(temporary), strlen("web.yaml"));
	assert_int_equal(scratch_count(dir, temporary), 1);
	assert_int_equal(file_commit(&sys, dir_fd, "web.yaml", temporary, false, why), 0);
	assert_string_equal(synced, "");
	assert_alone("n: 2");
	assert_int_equal(file_commit(&sys, dir_fd, "web.yaml", temporary, true, why), -ENOENT);
	assert_string_equal(synced, "");
}

/* ---- reading ---- */

static void read__of_a_file__is_all_of_it(void **state)
{
	static char text[10001];
	unsigned before = count_descriptors();
	struct buffer out;

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[4096] = 'y';
	scratch_write(dir, "web.yaml", text, sizeof(text) - 1);
	buffer_init(&out, sizeof(text) - 1);
	assert_int_equal(file_read(&sys, dir_fd, "web.yaml", &out), 0);
	assert_int_equal(out.len, sizeof(text) - 1);
	assert_memory_equal(out.data, text, out.len);
	buffer_fini(&out);
	buffer_init(&out, sizeof(text) - 2);
	assert_int_equal(file_read(&sys, dir_fd, "web.yaml", &out), -EMSGSIZE);
	buffer_fini(&out);
	scratch_write(dir, "web.yaml", "", 0);
	buffer_init(&out, 4);
	assert_int_equal(file_read(&sys, dir_fd, "web.yaml", &out), 0);
	assert_int_equal(out.len, 0);
	buffer_fini(&out);
	assert_int_equal(count_descriptors(), before);
}

static void read__of_what_is_no_file__says_so(void **state)
{
	unsigned before = count_descriptors();
	struct buffer out;

	(void)state;
	buffer_init(&out, 100);
	assert_int_equal(symlinkat("web.yaml", dir_fd, "link"), 0);
	assert_int_equal(mkfifoat(dir_fd, "fifo", 0600), 0);
	assert_int_equal(file_read(&sys, dir_fd, "link", &out), -ELOOP);
	assert_int_equal(file_read(&sys, dir_fd, "fifo", &out), -EINVAL);
	assert_int_equal(file_read(&sys, dir_fd, ".", &out), -EINVAL);
	assert_int_equal(file_read(&sys, dir_fd, "none", &out), -ENOENT);
	assert_int_equal(file_take(&sys, -1, &out), -EBADF);
	assert_int_equal(out.len, 0);
	assert_int_equal(count_descriptors(), before);
	buffer_fini(&out);
}

static void read__that_is_interrupted__goes_on_and_one_that_fails_ends(void **state)
{
	unsigned before = count_descriptors();
	struct buffer out;

	(void)state;
	buffer_init(&out, 100);
	arm(CALL_OPEN, 1, EINTR);
	assert_int_equal(file_read(&sys, dir_fd, "web.yaml", &out), 0);
	arm(CALL_READ, 1, EINTR);
	assert_int_equal(file_read(&sys, dir_fd, "web.yaml", &out), 0);
	assert_int_equal(out.len, 10);
	assert_memory_equal(out.data, "n: 1\nn: 1\n", 10);
	arm(CALL_READ, 1, EIO);
	assert_int_equal(file_read(&sys, dir_fd, "web.yaml", &out), -EIO);
	assert_int_equal(count_descriptors(), before);
	buffer_fini(&out);
}

static void holds__is_of_exactly_these_bytes(void **state)
{
	unsigned before = count_descriptors();

	(void)state;
	assert_true(file_holds(&sys, dir_fd, "web.yaml", "n: 1\n", 5));
	assert_false(file_holds(&sys, dir_fd, "web.yaml", "n: 1\n", 4));
	assert_false(file_holds(&sys, dir_fd, "web.yaml", "n: 1\n", 6));
	assert_false(file_holds(&sys, dir_fd, "web.yaml", "n: 2\n", 5));
	assert_false(file_holds(&sys, dir_fd, "web.yaml", "", 0));
	assert_false(file_holds(&sys, dir_fd, "none", "", 0));
	scratch_write(dir, "web.yaml", "", 0);
	assert_true(file_holds(&sys, dir_fd, "web.yaml", "", 0));
	assert_false(file_holds(&sys, dir_fd, "web.yaml", "n", 1));
	assert_int_equal(count_descriptors(), before);
}

/* ---- temporary files ---- */

static const struct {
	const char *entry;
	size_t len;
} entries[] = {
	{".web.yaml.pullet-0123456789abcdef", 8},
	{".w.pullet-0123456789abcdef", 1},
	{"..pullet-0123456789abcdef", 0},
	{".pullet-0123456789abcdef", 0},
	{"web.yaml.pullet-0123456789abcdef", 0},
	{".web.yaml.pullet-0123456789abcde", 0},
	{".web.yaml.pullet-0123456789abcdef0", 0},
	{".web.yaml.pullet-g123456789abcdef", 0},
	{".web.yaml.pullet-0123456789abcdeg", 0},
	{".web.yaml.pullet-0123456789ABCDEF", 0},
	{".web.yaml.pulley-0123456789abcdef", 0},
	{".web.yaml", 0},
	{".", 0},
};

static void temporary__has_the_length_of_the_name_it_is_for(void **state)
{
	(void)state;
	assert_int_equal(file_temporary(""), 0);
	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++)
		assert_int_equal(file_temporary(entries[i].entry), entries[i].len);
}

static int open_no_directory(int at, const char *path, int flags, mode_t mode)
{
	(void)at, (void)path, (void)flags, (void)mode;
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void clean__removes_what_is_of_that_name(void **state)
{
	unsigned before = count_descriptors(), made = 0;

	(void)state;
	for (size_t i = 0; i + 1 < sizeof(entries) / sizeof(entries[0]); i++, made++)
		scratch_write(dir, entries[i].entry, "", 0);
	scratch_write(dir, ".web.yaml.pullet-fedcba9876543210", "", 0);
	made++;
	assert_int_equal(file_clean(&sys, dir_fd, "web.yam"), 0);
	assert_int_equal(file_clean(&sys, dir_fd, "web.yamm"), 0);
	assert_int_equal(file_clean(&sys, dir_fd, "web.yaml-"), 0);
	arm(CALL_OPEN, 1, EMFILE);
	assert_int_equal(file_clean(&sys, dir_fd, "web.yaml"), 0);
	sys.openat = open_no_directory;
	assert_int_equal(file_clean(&sys, dir_fd, "web.yaml"), 0);
	assert_int_equal(count_descriptors(), before);
	sys = fault_table();
	arm(CALL_UNLINK, 1, EACCES);
	assert_int_equal(file_clean(&sys, dir_fd, "web.yaml"), 1);
	assert_int_equal(scratch_count(dir, ""), made);
	assert_int_equal(file_clean(&sys, dir_fd, "web.yaml"), 1);
	assert_int_equal(file_clean(&sys, dir_fd, NULL), 1);
	assert_int_equal(file_clean(&sys, dir_fd, NULL), 0);
	assert_int_equal(scratch_count(dir, ""), made - 2);
	assert_int_equal(count_descriptors(), before);
}

/* ---- words ---- */

static void remedy__is_the_error_and_what_to_do(void **state)
{
	static const struct {
		int error;
		bool reading;
		const char *text; /* %s: who the agent is */
	} table[] = {
		{ENOSPC, false,
			"No space left on device: make room on that file system (df, df -i)"},
		{ENOSPC, true, "No space left on device"},
		{EDQUOT, false, "Disk quota exceeded: raise the quota or make room"},
		{EROFS, false,
			"Read-only file system: mount it writable, or name a place that is; under "
			"systemd, open it with ReadWritePaths= (systemctl edit pullet)"},
		{EBUSY, false,
			"Device or resource busy: the file itself is a mount point; mount the "
			"directory instead"},
		{EXDEV, false,
			"Invalid cross-device link: the file itself is a mount point; mount the "
			"directory instead"},
		{EACCES, false,
			"Permission denied: the agent's user must be able to write there%s"},
		{EACCES, true, "Permission denied: the agent's user must be able to read it%s"},
		{EPERM, false,
			"Operation not permitted: what is there belongs to another user, or is "
			"immutable or append-only%s"},
		{EPERM, true, "Operation not permitted%s"},
		{ENOTSUP, false,
			"Operation not supported: its file system keeps no modes; mount it with a "
			"stricter umask, or name another place"},
		{EFBIG, false, "File too large: raise the limit of the size of files (LimitFSIZE)"},
		{EIO, true, "Input/output error: the disk fails"},
		{EMFILE, true, "Too many open files: raise the limit of open files (LimitNOFILE)"},
		{ENFILE, false,
			"Too many open files in system: the system has no file descriptors left"},
		{ENOENT, false, "No such file or directory: the directory is not there; make it"},
		{ENOENT, true, "No such file or directory: make it, or name another one"},
		{ENOTDIR, true, "Not a directory: a part of the path is not a directory"},
		{ENOMEM, false, "Cannot allocate memory"},
	};
	char agent[80], text[FILE_REMEDY], remedy[FILE_REMEDY];

	(void)state;
	snprintf(agent, sizeof(agent), " (it runs as user %u, group %u)", (unsigned)geteuid(),
		(unsigned)getegid());
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const char *who = strstr(table[i].text, "%s");
		size_t len = who ? (size_t)(who - table[i].text) : strlen(table[i].text);

		snprintf(text, sizeof(text), "%.*s%s", (int)len, table[i].text, who ? agent : "");
		file_remedy(remedy, table[i].error, table[i].reading);
		assert_string_equal(remedy, text);
	}
}

static void error__is_the_file_s_or_ours_or_one_that_passes(void **state)
{
	static const struct {
		int error;
		bool ours, passes;
	} table[] = {
		{ENOMEM, true, false},
		{EMFILE, true, false},
		{ENFILE, true, false},
		{EIO, false, true},
		{ESTALE, false, true},
		{ETIMEDOUT, false, true},
		{ENOENT, false, false},
		{EACCES, false, false},
		{0, false, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		assert_int_equal(file_error_is_ours(table[i].error), table[i].ours);
		assert_int_equal(file_error_may_pass(table[i].error), table[i].passes);
	}
}

static void in_memory__is_true_of_a_tmpfs(void **state)
{
	int fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)state;
	assert_false(file_in_memory(fd));
	close(fd);
	assert_false(file_in_memory(-1));
	scratch_need_memory();
	assert_true(file_in_memory(dir_fd));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(sync__of_a_file__is_of_its_bytes_then_of_its_name),
		CASE(sync__that_fails__says_so_and_goes_no_further),
		CASE(sync__of_what_is_not_there__says_so),
		CASE(sync__of_the_parent__is_of_the_directorys_name),
		CASE(sync__of_a_parent_that_cannot_be_opened__is_an_error_but_for_its_rights),
		CASE(replace__takes_the_steps_in_this_order),
		CASE(replace__where_a_step_fails__says_which_and_changes_nothing),
		CASE(replace__where_modes_are_not_kept__lets_nobody_read_more),
		CASE(replace__where_the_mode_is_unknown__writes_nothing),
		CASE(replace__that_is_visible_but_not_on_the_disk__says_so),
		CASE(replace__with_calls_that_do_half__does_the_whole),
		CASE(replace__by_writes_of_nothing__is_an_error),
		CASE(replace__of_a_long_name__has_room_for_a_temporary_one),
		CASE(replace__in_a_directory_that_is_append_only__leaves_nothing),
		CASE(commit__makes_what_was_prepared_visible),
		CASE(read__of_a_file__is_all_of_it),
		CASE(read__of_what_is_no_file__says_so),
		CASE(read__that_is_interrupted__goes_on_and_one_that_fails_ends),
		CASE(holds__is_of_exactly_these_bytes),
		CASE(temporary__has_the_length_of_the_name_it_is_for),
		CASE(clean__removes_what_is_of_that_name),
		CASE(remedy__is_the_error_and_what_to_do),
		CASE(error__is_the_file_s_or_ours_or_one_that_passes),
		CASE(in_memory__is_true_of_a_tmpfs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
