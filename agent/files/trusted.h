/*
 * Trusted directories: every path that a user named is opened here, for all that publishes, tries,
 * keeps state, sweeps, or reads secrets.
 *
 * Who owns a part of a path, or may write in it, can put a symlink or another directory there at
 * any moment. So a directory that is written in is opened first, then each part above the one that
 * was opened (by "..", from its descriptor) is checked: what was checked is what is used. Whatever
 * follows is done by descriptor.
 *
 * To write, with the rights of root (or with capabilities that are as good): every part belongs to
 * root, the agent's user, or the owner of "/", who could change everything anyway; none may be
 * written by group or others, except a sticky one, where nobody can replace what the former own.
 * Symlinks are followed where they belong to them, too, as /var/run does. With the rights of any
 * other user, who can write nowhere but where that user may: only the directory itself may not be
 * written by others (but a sticky one passes for a file), whoever owns the parts above; a volume
 * that a pod shares is such a part.
 *
 * To read: a symlink of another user leads to that user's own files only; and what lies in a
 * directory that others can change has one name only, or belongs to that directory's owner (it may
 * be a hard link to a file that they cannot read).
 *
 * To read who is to be signalled (trusted_open_held()): as to write, and one other user may decide,
 * whom the caller checks; the file itself may not be written by group or others.
 *
 * Threads: any. Errors: -errno and a sentence in `why`, which names the part, whose it is, and what
 * to do; -EPERM: it is not to be trusted. Bounds: 40 symlinks, paths of PATH_MAX.
 */
#ifndef PULLET_TRUSTED_H
#define PULLET_TRUSTED_H

#include <stdbool.h>
#include <sys/types.h>

#include <linux/capability.h>

#include "lib/buffer.h"
#include "files/file.h"
#include "files/path_walk.h"
#include "base/sys.h"

/* Capabilities that are root's rights over files; and over files that say who is signalled. */
#define TRUSTED_RIGHTS                                                                             \
	(UINT64_C(1) << CAP_CHOWN | UINT64_C(1) << CAP_DAC_OVERRIDE |                              \
		UINT64_C(1) << CAP_DAC_READ_SEARCH | UINT64_C(1) << CAP_FOWNER)
#define TRUSTED_SIGNAL_RIGHTS (TRUSTED_RIGHTS | UINT64_C(1) << CAP_KILL)

enum trusted_use {
	TRUSTED_ANY,  /* a command's own: as for a user without root's rights */
	TRUSTED_OWN,  /* state and runtime directory */
	TRUSTED_FILE, /* a file is replaced in it */
	TRUSTED_SET, /* a set of files lies in it, where others could put links: not a sticky one */
};

/* This process. */
struct trusted_who trusted_self(void);
/* The same for one that sends signals: CAP_KILL is root's right then. */
struct trusted_who trusted_signaller(void);

/* Opens a directory to write in. Refused as well, to publish: one on NFS, one that this process may
 * not write in. The descriptor, or -errno. */
int trusted_open_dir(
	const struct sys *sys, const char *path, enum trusted_use use, char why[FILE_WHY]);
/* Fsyncs a directory, and the one above it unless *named; sets *named. 0, also in memory, or
 * -errno.
 */
int trusted_sync_dir(const struct sys *sys, const char *path, bool *named);
/* Makes the last part of the path, if it is not there. 1 it was made, 0 it was there, or -errno. */
int trusted_make_dir(const struct sys *sys, const char *path, mode_t mode, enum trusted_use use,
	char why[FILE_WHY]);
/* Opens a directory, which is made where it is missing. The descriptor, or -errno. */
int trusted_provide_dir(const struct sys *sys, const char *path, mode_t mode, enum trusted_use use,
	bool *ret_made, char why[FILE_WHY]);
/* Opens the directory `name` in an open one, as for TRUSTED_OWN; no symlink. The descriptor, or
 * -errno; -EPERM: somebody else made it. */
int trusted_open_below(const struct sys *sys, int dir, const char *name);
/* Opens the directory that a file lies in, or is to; *ret_name is within path. */
int trusted_open_parent(const struct sys *sys, const char *path, enum trusted_use use,
	const char **ret_name, char why[FILE_WHY]);
/* Would it be refused to `who`? 0, or -errno. Nothing is opened for writing. */
int trusted_check_dir(const struct sys *sys, const struct trusted_who *who, const char *path,
	enum trusted_use use, char why[FILE_WHY]);

/* Opens a file to read, whatever it is; a FIFO is not waited for. The descriptor, or -errno. why:
 * what follows "PATH cannot be read: "; may be NULL. */
int trusted_open(const struct sys *sys, const char *path, char why[FILE_WHY]);
/* Opens a file whose words decide about processes. *ret_holder: the one other user in whose hands
 * it is (its own, a directory's or, strict, a symlink's owner); (uid_t)-1 = nobody's. -EPERM: in
 * the hands of more than one, or group or others can write. The descriptor, or -errno. */
int trusted_open_held(const struct sys *sys, const struct trusted_who *who, const char *path,
	uid_t *ret_holder, char why[FILE_WHY]);
/* Reads a regular file whole into out (up to out's maximum: -EMSGSIZE; not a regular file:
 * -EINVAL). */
int trusted_read(const struct sys *sys, const char *path, struct buffer *out, char why[FILE_WHY]);
/* The names in a directory that end in one of the NULL-terminated endings and do not begin with a
 * dot, in the order of their bytes. Their number, at most max, and the names, each to be freed;
 * -E2BIG: there are more; -ENOMEM, -errno. */
int trusted_list(const struct sys *sys, const char *dir, const char *const endings[],
	char **ret_names, int max, char why[FILE_WHY]);

#endif
