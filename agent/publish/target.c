/*
 * One text file. Surprising: its directory is opened again for each publication and each look, for
 * another one may have taken its place.
 */
#include "publish/target.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/page.h"
#include "files/name_case.h"
#include "files/trusted.h"

struct identity { /* of the file as it was published; any change shows in one of these */
	dev_t dev;
	ino_t ino;
	off_t size;
	mode_t mode;
	uid_t uid;
	gid_t gid;
	uint64_t mtime_ns, ctime_ns;
};

struct target {
	const struct sys *sys;
	const struct settings_config *config;
	bool failed;     /* the last publication */
	bool known;      /* identity is that of the last publication */
	bool dir_synced; /* the directory's name is on the disk */
	bool in_memory;  /* the directory, when it was opened last */
	struct identity identity;
};

/* The file's name in its directory. */
static const char *target_name(const struct target *t)
{
	return strrchr(t->config->file, '/') + 1;
}

/* ---- the directory ---- */

/* A path that is too long stays so, which those who open it say. */
#define TARGET_DIR (PATH_MAX + 1)

static void write_target_dir(const struct target *t, char ret_path[TARGET_DIR])
{
	int len = (int)(target_name(t) - 1 - t->config->file);

	snprintf(ret_path, TARGET_DIR, "%.*s", len ? len : 1, t->config->file);
}

/* "BEFORE PATH: ADVICE", with the error's own remedy when there is no better advice. */
static int explain_target(
	char why[FILE_WHY], int error, const char *before, const char *path, const char *advice)
{
	char remedy[FILE_REMEDY];

	file_remedy(remedy, error, false);
	snprintf(why, FILE_WHY, "%s %.200s: %s", before, path, advice ? advice : remedy);
	return -error;
}

static int check_target_file(const struct target *t, int fd, char why[FILE_WHY])
{
	struct stat st;
	int r = name_case_check(t->sys, fd, target_name(t), why);

	if (r)
		return r;
	if (fstatat(fd, target_name(t), &st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0
				       : explain_target(why, errno, "cannot look at",
						 t->config->file, NULL);
	if (S_ISLNK(st.st_mode))
		return explain_target(why, ELOOP, "will not replace", t->config->file,
			"it is a symlink; name the file it points to, or remove it");
	if (!S_ISREG(st.st_mode))
		return explain_target(why, EINVAL, "will not replace", t->config->file,
			"it is not a regular file; remove it, or name another one");
	if (file_is_mount_point(fd, target_name(t), &st))
		return explain_target(why, EBUSY, "cannot replace", t->config->file,
			"it is a mount point of its own; mount the directory instead");
	return 0;
}

int target_open_dir(struct target *t, char why[FILE_WHY])
{
	char path[TARGET_DIR];
	bool made;
	int r, fd;

	write_target_dir(t, path);
	fd = trusted_provide_dir(t->sys, path, 0755, TRUSTED_FILE, &made, why);
	if (fd < 0)
		return fd;
	t->dir_synced &= !made;
	t->in_memory = file_in_memory(fd);
	r = check_target_file(t, fd, why);
	if (r == 0)
		return fd;
	t->sys->close(fd);
	return r;
}

int target_open(const struct sys *sys, const struct settings_config *config, struct sweep *sweep,
	struct target **ret_target, char why[FILE_WHY])
{
	struct target *t = calloc(1, sizeof(*t));
	int fd;

	if (!t) {
		snprintf(why, FILE_WHY, "out of memory");
		return -ENOMEM;
	}
	t->sys = sys;
	t->config = config;
	fd = target_open_dir(t, why);
	if (fd < 0) {
		target_close(t);
		return fd;
	}
	sweep_clean(sweep, sys, fd, target_name(t));
	sys->close(fd);
	*ret_target = t;
	return 0;
}

void target_close(struct target *t)
{
	free(t);
}

int target_sync(struct target *t)
{
	char path[TARGET_DIR];

	write_target_dir(t, path);
	return trusted_sync_dir(t->sys, path, &t->dir_synced);
}

/* ---- what is there ---- */

static bool read_identity(const struct target *t, int dir, struct identity *ret)
{
	struct stat st;

	if (fstatat(dir, target_name(t), &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
		return false;
	memset(ret, 0, sizeof(*ret)); /* padding too: it is compared as bytes */
	ret->dev = st.st_dev;
	ret->ino = st.st_ino;
	ret->size = st.st_size;
	ret->mode = st.st_mode & 07777;
	ret->uid = st.st_uid;
	ret->gid = st.st_gid;
	ret->mtime_ns = page_time_ns(&st.st_mtim);
	ret->ctime_ns = page_time_ns(&st.st_ctim);
	return true;
}

static bool is_open_target_current(struct target *t, int dir, const void *text, size_t len)
{
	const struct settings_config *c = t->config;
	struct identity now;

	if (!read_identity(t, dir, &now))
		return false;
	if (t->known)
		return memcmp(&now, &t->identity, sizeof(now)) == 0;
	if (!text || now.mode != c->mode || (c->uid != (uid_t)-1 && now.uid != c->uid) ||
		(c->gid != (gid_t)-1 && now.gid != c->gid) ||
		!file_holds(t->sys, dir, target_name(t), text, len))
		return false;
	t->identity = now;
	t->known = true;
	return true;
}

bool target_is_current(struct target *t, const void *text, size_t len)
{
	char why[FILE_WHY], path[TARGET_DIR];
	bool current;
	int dir;

	write_target_dir(t, path);
	dir = trusted_open_dir(t->sys, path, TRUSTED_ANY, why); /* only looks */
	current = dir >= 0 && is_open_target_current(t, dir, text, len);
	if (dir >= 0)
		t->sys->close(dir);
	return current;
}

void target_forget(struct target *t)
{
	t->known = false;
}

bool target_in_memory(const struct target *t)
{
	return t->in_memory;
}

/* ---- its replacement ---- */

/* A rename changes the ctime, and nothing else. */
static bool is_untouched(const struct identity *now, const struct stat *written)
{
	return now->ino == written->st_ino && now->size == written->st_size &&
	       now->mode == (written->st_mode & 07777) && now->uid == written->st_uid &&
	       now->gid == written->st_gid && now->mtime_ns == page_time_ns(&written->st_mtim);
}

int target_replace(struct target *t, int dir, const void *text, size_t len, char why[FILE_WHY])
{
	struct stat written = {.st_ino = 0};
	const struct file_options options = {
		.mode = t->config->mode,
		.uid = t->config->uid,
		.gid = t->config->gid,
		.sync = !file_in_memory(dir),
		.ret_written = &written,
		.again = t->failed,
	};
	int r = file_replace(t->sys, dir, target_name(t), text, len, &options, why);

	t->failed = r < 0;
	if (r == 0 && options.sync && !t->dir_synced) { /* it may be new */
		t->dir_synced = file_sync_parent(t->sys, dir, why) == 0;
		r = t->dir_synced ? 0 : FILE_NOT_DURABLE;
	}
	if (r >= 0)
		/* somebody may have changed it already */
		t->known = read_identity(t, dir, &t->identity) &&
			   (is_untouched(&t->identity, &written) ||
				   file_holds(t->sys, dir, target_name(t), text, len));
	return r;
}
