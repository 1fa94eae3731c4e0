/*
 * A set of files in one directory that changes as one, by one flip of a symlink, the way Kubernetes
 * updates the files of a ConfigMap:
 *
 *	DIR/..data -> ..12-5f0c9a3e1b7d2468     the generation that is visible
 *	DIR/..12-5f0c9a3e1b7d2468/NAME          its files; "..GENERATION-", 16 hexadecimal digits
 *	DIR/NAME -> ..data/NAME                 what applications open
 *
 * A generation is written whole, then ..data is replaced, then links of new names are made and
 * those of names that are gone are removed. A name that is new is seen only with its content; a
 * crash at any point leaves a complete set behind ..data. Who needs several files of one generation
 * opens DIR/..data as a directory and reads them through that descriptor: the last FILE_SET_KEEP
 * generations stay. Two opens of DIR/NAME may see two generations.
 *
 * Other entries are never touched: a file or a foreign link where a link has to be, or a
 * ..data of somebody else, is an error.
 *
 * Threads: one at a time (the loop's, or the worker's while it publishes). Errors: -errno with a
 * sentence in why. Bounds: FILE_SET_MAX files.
 */
#ifndef PULLET_FILE_SET_H
#define PULLET_FILE_SET_H

#include <stdint.h>

#include "files/file.h"

#define FILE_SET_MAX 1000 /* files of a set */
#define FILE_SET_KEEP 3   /* generations, the visible one included */
#define FILE_SET_LINK "..data"
/* and 16 hexadecimal digits: a set that is being validated, in DIR */
#define FILE_SET_CHECKED "..check-"

struct file_set;

struct file_set_entry {
	/* [A-Za-z0-9._-]{1,200}, not "." and not beginning with ".."; no two alike */
	const char *name;
	const void *data;
	size_t len;
};

/* Checks the directory (exists, ours to write, not writable by others, not NFS), makes it (0755) if
 * only its last part is missing, and repairs what a crash left there: temporary names, sets that
 * were being validated, generations that never were visible, links that are missing or lead
 * nowhere. */
int file_set_open(
	const struct sys *sys, const char *dir, struct file_set **ret_fileset, char why[FILE_WHY]);
void file_set_close(struct file_set *f);
/* Whatever the set shows now, it is not current. */
void file_set_forget(struct file_set *f);
/* True when the directory lay in memory when it was opened: no fsync is needed. */
bool file_set_in_memory(const struct file_set *f);

/* Brings the names of a set that was FILE_NOT_DURABLE to the disk. 0 or -errno. */
int file_set_sync(struct file_set *f);
/* Publishes a whole set; count 0 is an empty one. `options` holds for each file, sync (wanted
 * unless file_set_in_memory()) for directories and links too; directories are 0755 and the agent's.
 * 0; or -errno, and the previous set is visible and whole; or the new set is visible with a
 * shortcoming that why names: FILE_NOT_DURABLE or FILE_SET_INCOMPLETE. */
#define FILE_SET_INCOMPLETE                                                                        \
	2 /* a link could not be made or removed; publishing again repairs it                      \
	   */
int file_set_publish(struct file_set *f, const struct file_set_entry *entries, size_t count,
	uint64_t generation, const struct file_options *options, char why[FILE_WHY]);
/* True when nobody edited, removed or replaced anything since the last publication. Before the
 * first one of this process: when the files have exactly these contents, mode and owner. */
bool file_set_is_current(struct file_set *f, const struct file_set_entry *entries, size_t count,
	const struct file_options *options);

#endif
