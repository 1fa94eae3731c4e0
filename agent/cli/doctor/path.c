/*
 * Paths with the agent's eyes and rights. Surprising: rights are tried by this thread alone, which
 * takes on the agent's user for one system call (file system ids, groups and capabilities are each
 * thread's own to the kernel), so that access lists and what mounts forbid count too, and nothing
 * has to be written to find out.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <linux/capability.h>
#include <linux/magic.h>
#include <linux/openat2.h>

#include "cli/doctor/doctor.h"

#define CIFS_MAGIC 0xff534d42
#define SMB2_MAGIC 0xfe534d42
#define FUSE_MAGIC 0x65735546

static const struct {
	int64_t type;
	const char *name;
	bool memory, remote;
} file_systems[] = {
	{TMPFS_MAGIC, "tmpfs", .memory = true},
	{RAMFS_MAGIC, "ramfs", .memory = true},
	{NFS_SUPER_MAGIC, "NFS", .remote = true},
	{CIFS_MAGIC, "CIFS", .remote = true},
	{SMB2_MAGIC, "SMB", .remote = true},
	{SMB_SUPER_MAGIC, "SMB", .remote = true},
	{V9FS_MAGIC, "9p", .remote = true},
	{CEPH_SUPER_MAGIC, "Ceph", .remote = true},
	{AFS_SUPER_MAGIC, "AFS", .remote = true},
	{FUSE_MAGIC, "FUSE", .remote = true},
	{OVERLAYFS_SUPER_MAGIC, .name = "overlayfs"},
	{EXT4_SUPER_MAGIC, .name = "ext4"},
	{XFS_SUPER_MAGIC, .name = "XFS"},
	{BTRFS_SUPER_MAGIC, .name = "Btrfs"},
};

enum { FILE_SYSTEMS = sizeof(file_systems) / sizeof(file_systems[0]) };

static size_t find_file_system(int64_t type)
{
	size_t i = 0;

	while (i < FILE_SYSTEMS && file_systems[i].type != type)
		i++;
	return i;
}

const char *doctor_file_system(int64_t type)
{
	size_t i = find_file_system(type);

	return i < FILE_SYSTEMS ? file_systems[i].name : "";
}

bool doctor_is_in_memory(int64_t type)
{
	size_t i = find_file_system(type);

	return i < FILE_SYSTEMS && file_systems[i].memory;
}

bool doctor_is_remote(int64_t type)
{
	size_t i = find_file_system(type);

	return i < FILE_SYSTEMS && file_systems[i].remote;
}

void doctor_parent(const char *path, char *ret_dir, size_t size)
{
	const char *slash = strrchr(path, '/');
	size_t len = slash && slash > path ? (size_t)(slash - path) : 1;

	snprintf(ret_dir, size, "%.*s", (int)len, path);
}

bool doctor_is_shielded(const char *path)
{
	char *real = realpath(path, NULL), *slash;
	struct stat st;
	bool shut = false;

	while (real && !shut && (slash = strrchr(real, '/')) && slash != real) {
		*slash = '\0';
		shut = stat(real, &st) == 0 && !(st.st_mode & S_IXOTH);
	}
	free(real);
	return shut;
}

/* ---- the agent's rights ---- */

struct rights {
	bool taken;
	gid_t groups[DOCTOR_GROUPS];
	int group_count;
	struct __user_cap_data_struct capabilities[_LINUX_CAPABILITY_U32S_3];
};

static int call_capabilities(bool set, struct __user_cap_data_struct *data)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};

	return (int)syscall(set ? SYS_capset : SYS_capget, &header, data);
}

/* Takes on the agent's user, in this thread only. False: it cannot be done. */
static bool take_agent_rights(const struct doctor_who *who, struct rights *before)
{
	struct __user_cap_data_struct less[_LINUX_CAPABILITY_U32S_3];

	*before = (struct rights){.taken = geteuid() == 0};
	if (!before->taken)
		return who->can_try;
	before->group_count = getgroups(DOCTOR_GROUPS, before->groups);
	if (before->group_count < 0 || call_capabilities(false, before->capabilities) ||
		syscall(SYS_setgroups, who->group_count, who->groups))
		return false;
	setfsgid(who->gid);
	setfsuid(who->uid); /* takes those away that are root's over files */
	memcpy(less, before->capabilities, sizeof(less));
	for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
		less[i].effective &= (unsigned)(who->capabilities >> (32 * i));
	return call_capabilities(true, less) == 0;
}

static void restore_rights(const struct rights *before)
{
	int error = errno;

	if (before->taken) {
		setfsuid(geteuid()); /* gives the capabilities back that belong to root's ids */
		setfsgid(getegid());
		call_capabilities(true, (struct __user_cap_data_struct *)before->capabilities);
		syscall(SYS_setgroups, (size_t)before->group_count, before->groups);
	}
	errno = error;
}

/* ---- looking ---- */

/* Within the agent's root, where that is known. The descriptor, or -errno. */
static int open_path(const struct doctor_who *who, const char *path, unsigned flags)
{
	struct open_how how = {.flags = flags | O_CLOEXEC};
	int fd;

	if (who->root < 0) {
		fd = open(path, (int)how.flags);
		return fd < 0 ? -errno : fd;
	}
	how.resolve = RESOLVE_IN_ROOT;
	fd = (int)syscall(SYS_openat2, who->root, path, &how, sizeof(how));
	return fd < 0 ? -errno : fd;
}

static int stat_descriptor(int fd, struct doctor_place *p)
{
	struct statvfs v;
	struct statfs fs;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &p->st) || fstatfs(fd, &fs) ||
		fstatvfs(fd, &v))
		return -errno;
	p->type = (int64_t)(unsigned long)fs.f_type & 0xffffffff;
	p->read_only = v.f_flag & ST_RDONLY;
	p->mount_point = p->st.stx_attributes & STATX_ATTR_MOUNT_ROOT;
	p->bytes = (uint64_t)v.f_frsize * v.f_blocks;
	p->bytes_free = (uint64_t)v.f_frsize * v.f_bavail;
	p->files = v.f_files;
	p->files_free = v.f_favail;
	return 0;
}

/* What stands at the path for us: is it the same thing? */
static bool is_same_here(const char *path, bool follow, const struct statx *st)
{
	struct statx here;

	return statx(AT_FDCWD, path, follow ? 0 : AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &here) ==
		       0 &&
	       here.stx_ino == st->stx_ino && here.stx_dev_major == st->stx_dev_major &&
	       here.stx_dev_minor == st->stx_dev_minor;
}

int doctor_stat_path(struct doctor *d, struct doctor_list *l, const char *path, bool follow,
	struct doctor_place *ret)
{
	int r, fd;

	*ret = (struct doctor_place){0};
	doctor_set_path(l, path);
	fd = open_path(&d->who, path, O_PATH | (follow ? 0 : O_NOFOLLOW));
	if (fd < 0)
		return fd;
	r = stat_descriptor(fd, ret);
	close(fd);
	if (r == 0 && d->who.root >= 0)
		ret->elsewhere = !is_same_here(path, follow, &ret->st);
	return r;
}

int doctor_try_access(struct doctor *d, struct doctor_list *l, const char *path, int mode)
{
	struct rights before;
	int fd, r = 0;

	if (!d->who.can_try)
		return -ENOTSUP;
	doctor_set_path(l, path);
	if (!take_agent_rights(&d->who, &before)) {
		restore_rights(&before);
		return -ENOTSUP;
	}
	fd = open_path(&d->who, path, O_PATH);
	if (fd < 0)
		r = fd;
	else if (faccessat(fd, "", mode, AT_EMPTY_PATH | AT_EACCESS))
		r = -errno;
	restore_rights(&before);
	if (fd >= 0)
		close(fd);
	return r;
}

bool doctor_is_unreadable(const struct doctor *d, const char *path)
{
	return !d->who.can_try && access(path, R_OK) && errno == EACCES;
}

int doctor_read(struct doctor *d, struct doctor_list *l, const char *path, char *ret, size_t size)
{
	ssize_t n;
	int r = 0, fd;

	doctor_set_path(l, path);
	fd = open_path(&d->who, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return fd;
	n = read(fd, ret, size - 1);
	if (n < 0)
		r = -errno;
	else
		ret[n] = '\0';
	close(fd);
	return r;
}
