/*
 * Publishing one version: state file, text file, snapshot. Surprising: it is straight-line code
 * that may block, on purpose: the caller decides which thread runs it, and a test can end it after
 * each of its system calls.
 */
#include "publish/publish.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/trusted.h"

struct identity { /* of the file as it was published; any change shows in one of these */
	dev_t dev;
	ino_t ino;
	off_t size;
	mode_t mode;
	uid_t uid;
	gid_t gid;
	struct timespec mtime, ctime;
};

struct target {
	const struct sys *sys;
	const struct settings_config *config;
	char *dir;
	const char *name; /* in config->file */
	bool known;       /* identity is that of the last publication */
	bool dir_synced;  /* the directory's name is on the disk */
	bool in_memory;   /* the directory, when it was opened last */
	struct identity identity;
};

/* ---- the directory ---- */

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
	struct stat dir, st;

	if (fstatat(fd, t->name, &st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0
				       : explain_target(why, errno, "cannot look at",
						 t->config->file, NULL);
	if (S_ISLNK(st.st_mode))
		return explain_target(why, ELOOP, "will not replace", t->config->file,
			"it is a symlink; name the file it points to, or remove it");
	if (!S_ISREG(st.st_mode))
		return explain_target(why, EINVAL, "will not replace", t->config->file,
			"it is not a regular file; remove it, or name another one");
	if (fstat(fd, &dir) == 0 && dir.st_dev != st.st_dev)
		return explain_target(why, EBUSY, "cannot replace", t->config->file,
			"it is a mount point of its own; mount the directory instead");
	return 0;
}

/* Opens and checks the directory. The descriptor, or -errno. */
static int open_target_dir(struct target *t, char why[FILE_WHY])
{
	int r, fd = trusted_open_dir(t->sys, t->dir, TRUSTED_FILE, why);

	if (fd < 0)
		return fd;
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
	const char *slash = strrchr(config->file, '/');
	struct target *t = calloc(1, sizeof(*t));
	int fd;

	if (!t) {
		snprintf(why, FILE_WHY, "out of memory");
		return -ENOMEM;
	}
	t->sys = sys;
	t->config = config;
	t->name = slash + 1;
	t->dir = strndup(config->file, slash > config->file ? (size_t)(slash - config->file) : 1);
	if (!t->dir) {
		free(t);
		snprintf(why, FILE_WHY, "out of memory");
		return -ENOMEM;
	}
	fd = open_target_dir(t, why);
	if (fd == -ENOENT) {
		fd = trusted_make_dir(sys, t->dir, 0755, TRUSTED_FILE, why);
		if (fd >= 0)
			fd = open_target_dir(t, why);
	}
	if (fd < 0) {
		target_close(t);
		return fd;
	}
	sweep_clean(sweep, sys, fd, t->name);
	sys->close(fd);
	*ret_target = t;
	return 0;
}

void target_close(struct target *t)
{
	if (t)
		free(t->dir);
	free(t);
}

/* ---- what is there ---- */

static bool read_identity(const struct target *t, int dir, struct identity *ret)
{
	struct stat st;

	if (fstatat(dir, t->name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
		return false;
	memset(ret, 0, sizeof(*ret)); /* padding too: it is compared as bytes */
	ret->dev = st.st_dev;
	ret->ino = st.st_ino;
	ret->size = st.st_size;
	ret->mode = st.st_mode & 07777;
	ret->uid = st.st_uid;
	ret->gid = st.st_gid;
	ret->mtime = st.st_mtim;
	ret->ctime = st.st_ctim;
	return true;
}

static bool target_has_content(const struct target *t, int dir, const void *text, size_t len)
{
	struct buffer there;
	bool same;

	buffer_init(&there, len);
	same = file_read(t->sys, dir, t->name, &there) == 0 && there.len == len &&
	       (len == 0 || memcmp(there.data, text, len) == 0);
	buffer_fini(&there);
	return same;
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
		!target_has_content(t, dir, text, len))
		return false;
	t->identity = now;
	t->known = true;
	return true;
}

bool target_is_current(struct target *t, const void *text, size_t len)
{
	char why[FILE_WHY];
	int dir = trusted_open_dir(t->sys, t->dir, TRUSTED_ANY, why); /* only looks */
	bool current = dir >= 0 && is_open_target_current(t, dir, text, len);

	if (dir >= 0)
		t->sys->close(dir);
	return current;
}

/* ---- publishing ---- */

static bool needs_sync(const struct publication *p, bool target_on_disk)
{
	return p->config->strict || target_on_disk ||
	       (p->fileset && !file_set_in_memory(p->fileset)) ||
	       (p->image && !image_in_memory(p->image));
}

bool publish_blocks(const struct publication *p)
{
	return needs_sync(p, p->target && !p->target->in_memory);
}

/* The state file, on the disk before what it stands for is. A version that is there already may
 * not be on the disk: the agent was killed before, or the file was in memory then. */
static int save_version(struct publication *p, bool sync)
{
	int r;

	p->state_synced = sync;
	if (p->save)
		return store_save(p->store, p->version, p->body, p->body_len, sync, p->why);
	if (!sync || store_in_memory(p->store))
		return 0;
	r = store_sync(p->store, p->version->generation);
	if (r)
		snprintf(p->why, FILE_WHY, "cannot bring the state file to the disk: %s",
			strerror(-r));
	return r;
}

/* A rename changes the ctime, and nothing else. */
static bool is_untouched(const struct identity *now, const struct stat *written)
{
	return now->ino == written->st_ino && now->size == written->st_size &&
	       now->mode == (written->st_mode & 07777) && now->uid == written->st_uid &&
	       now->gid == written->st_gid && now->mtime.tv_sec == written->st_mtim.tv_sec &&
	       now->mtime.tv_nsec == written->st_mtim.tv_nsec;
}

static int replace_target(struct publication *p, int dir)
{
	struct stat written = {.st_ino = 0};
	const struct file_options options = {
		.mode = p->config->mode,
		.uid = p->config->uid,
		.gid = p->config->gid,
		.sync = !file_in_memory(dir),
		.ret_written = &written,
	};
	struct target *t = p->target;
	int r = file_replace(p->sys, dir, t->name, p->text, p->text_len, &options, p->why);

	if (r == 0 && options.sync && !t->dir_synced) { /* it may be new */
		t->dir_synced = file_sync_parent(p->sys, dir, p->why) == 0;
		r = t->dir_synced ? 0 : FILE_NOT_DURABLE;
	}
	if (r >= 0) {
		p->not_durable = r == FILE_NOT_DURABLE;
		/* somebody may have been there already */
		t->known = read_identity(t, dir, &t->identity) &&
			   (is_untouched(&t->identity, &written) ||
				   target_has_content(t, dir, p->text, p->text_len));
	}
	return r < 0 ? r : 0;
}

static size_t list_set(const struct publication *p, struct file_set_entry entries[STORE_MAX_PARTS])
{
	size_t n = 0;

	for (size_t i = 0; i < p->version->part_count; i++)
		if (!p->pieces[i].signature && !p->pieces[i].facts->absent)
			entries[n++] =
				(struct file_set_entry){p->config->layers[p->pieces[i].layer].as,
					p->pieces[i].data, p->pieces[i].facts->len};
	return n;
}

static struct file_options options_of_set(const struct publication *p)
{
	return (struct file_options){
		.mode = p->config->mode,
		.uid = p->config->uid,
		.gid = p->config->gid,
		.sync = !file_set_in_memory(p->fileset),
	};
}

bool publish_set_is_current(const struct publication *p)
{
	const struct file_options options = options_of_set(p);
	struct file_set_entry entries[STORE_MAX_PARTS];
	size_t n = list_set(p, entries);

	return file_set_is_current(p->fileset, entries, n, &options);
}

static int publish_set(struct publication *p)
{
	const struct file_options options = options_of_set(p);
	struct file_set_entry entries[STORE_MAX_PARTS];
	size_t n = list_set(p, entries);
	int r;

	r = file_set_publish(p->fileset, entries, n, p->version->generation, &options, p->why);
	p->not_durable |= r > 0;
	return r < 0 ? r : 0;
}

void publish_run(struct publication *p)
{
	int dir = p->target ? open_target_dir(p->target, p->why) : -1;

	p->error = p->target && dir < 0 ? dir : 0;
	p->not_durable = false;
	if (p->error == 0)
		p->error = save_version(p, needs_sync(p, dir >= 0 && !file_in_memory(dir)));
	if (p->error == 0 && p->image) /* or the file would be new, and the snapshot old */
		p->error = image_prepare(
			p->image, p->image_data, p->image_len, p->version->generation, p->why);
	if (p->error == 0 && p->target)
		p->error = replace_target(p, dir);
	if (p->error == 0 && p->fileset)
		p->error = publish_set(p);
	if (p->error == 0 && p->image && p->confirmed_ms)
		image_confirm(p->image, p->confirmed_ms, p->stale_ms);
	if (p->error == 0 && p->image)
		p->error = image_publish(
			p->image, p->image_data, p->image_len, p->version->generation, p->why);
	if (p->error == 0 && p->save)
		store_prune(p->store);
	if (p->error && p->image)
		image_abandon(p->image);
	if (p->error && p->target) /* what it shows is not what stands */
		p->target->known = false;
	if (p->error && p->fileset)
		file_set_forget(p->fileset);
	if (dir >= 0)
		p->target->sys->close(dir);
}
