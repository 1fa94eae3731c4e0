/*
 * The simulated file system of one host: names, data, modes, locks, mappings, and what of it a
 * power cut leaves.
 *
 * Many may exist; calls of libc go to the one in use (libc.h). The agent's calls ask world_call()
 * first, those of readers and of the world are never made to fail. Users are root: nothing is
 * refused for a mode or an owner. Times come from the world's clock in ticks of 4 ms, inode numbers
 * are used again, as on ext4.
 *
 * A mapping is the page cache itself: what the agent writes there, readers see at once. A file that
 * grows past its buffer while it is mapped leaves the mapping behind; none of pullet's does.
 *
 * Threads: one. Ownership: paths and data are copied. Errors: -errno from disk_*(). Out of memory
 * ends the program. Bounds: DISK_NAME bytes a name, 40 symlinks a path, 1,024 descriptors a
 * process.
 */
#ifndef SIM_DISK_H
#define SIM_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define DISK_NAME 255
#define DISK_DESCRIPTORS 1024

/* What a power cut leaves of what was not synced. */
enum disk_model {
	DISK_JOURNAL, /* ext4, XFS: a prefix of all changes of names; each fsync commits all of them
		       */
	DISK_POSIX    /* each change of a name for itself, unless its directory was synced */
};

/* Whose calls come: each has descriptors and locks of its own. */
enum disk_owner {
	OWNER_WORLD,  /* the simulator, other people */
	OWNER_AGENT,  /* asks world_call(), may end in any call */
	OWNER_SECOND, /* another agent beside it; as the agent */
	OWNER_READER, /* all readers */
	OWNERS
};

struct disk;

/* Who runs now; set by whoever switches. OWNER_WORLD at first. Volatile, as compilers take malloc()
 * for a function that looks at nothing. */
extern volatile enum disk_owner disk_owner;

/* An empty root directory of mode 0755. Its randomness is STREAM_DISK's. */
struct disk *disk_new(enum disk_model model);
/* Takes the disk; mappings that a reader still has remain readable until it unmaps them. */
void disk_free(struct disk *d);
/* Makes it the disk that calls and the helpers below go to; NULL = none, each call is a bug. */
void disk_use(struct disk *d);
struct disk *disk_in_use(void);

/* ---- ends ---- */

/* kill -9 or exit: closes the owner's descriptors, locks and mappings (a reader's mappings remain).
 * Nothing of the files is lost. */
void disk_kill(struct disk *d, enum disk_owner owner);
/* The power fails: ends all owners, then leaves of names and data one state that the model allows.
 * Memory file systems are empty afterwards. What is left is durable. */
void disk_cut(struct disk *d);
/* Descriptors that the owner has open. */
size_t disk_open_count(const struct disk *d, enum disk_owner owner);
/* Mappings that the owner has: of files of this disk, and anonymous ones made while it was in use.
 */
size_t disk_map_count(const struct disk *d, enum disk_owner owner);

/* ---- other hands: at once, whole, durable; never asked, never short. 0 or -errno ---- */

/* Makes the directory and those above it, mode 0755, where it is not there. */
int disk_make_dir(const char *path);
/* Makes a directory and mounts an empty memory file system there: a device of its own. */
int disk_mount_memory(const char *path);
/* Writes the file in place, as an editor that truncates it does: the inode stays; 0644 when new. */
int disk_put(const char *path, const void *data, size_t len);
/* Replaces the file by a new one, as an editor that renames does; keeps mode and owner. */
int disk_replace(const char *path, const void *data, size_t len);
int disk_put_link(const char *path, const char *target);
int disk_set_mode(const char *path, mode_t mode);
int disk_set_owner(const char *path, uid_t uid, gid_t gid);
/* Removes the file, symlink, or directory with all below it. */
int disk_remove(const char *path);
/* Bytes of the file behind the path, symlinks followed, as they are in the page cache; valid until
 * the next change. NULL = there is none. Traces nothing. */
const void *disk_get(const char *path, size_t *ret_len);
/* What a power cut at this moment leaves of the file for certain: data of the last fsync. NULL =
 * there is no such file now. Says nothing about whether its name is durable. */
const void *disk_get_synced(const char *path, size_t *ret_len);
/* Calls visit for each name in the directory, in order of names; stops when it returns other than
 * 0, and returns that. -errno: there is no directory. */
int disk_list(const char *path, int (*visit)(void *arg, const char *name, mode_t mode), void *arg);
/* The absolute path without symlinks, "." and "..", as notices name directories. 0 or -errno. */
int disk_real_path(const char *path, char *ret, size_t size);
/* Names in the tree below path that contain `part` ("" = all). */
size_t disk_count(const char *path, const char *part);

/* ---- notices ---- */

/* Called after each change of a name's file, the agent's own included, as inotify reports them:
 * cause is "written" (a descriptor that could write was closed), "replaced" (renamed to here),
 * "removed" (unlinked or renamed away), "its mode or owner changed". dir is the directory's
 * absolute path. It may not call the disk nor end the process: note it, and act at a later moment.
 */
void disk_on_change(struct disk *d,
	void (*changed)(void *arg, const char *dir, const char *name, const char *cause),
	void *arg);

#endif
