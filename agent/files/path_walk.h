/*
 * A walk along a path that a user named: opens what is at its end, and finds who could have led it
 * elsewhere. trusted.h has the rules.
 *
 * Threads: any, a walk by one at a time. Errors: -errno; -EPERM with a fault: what is there is not
 * to be trusted. Bounds: 40 symlinks, paths of PATH_MAX.
 */
#ifndef PULLET_PATH_WALK_H
#define PULLET_PATH_WALK_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/sys.h"
#include "files/file.h"

#define PATH_WALK_OTHERS (S_IWGRP | S_IWOTH)
#define PATH_WALK_DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_CLOEXEC)

/* Whose path it is: `pullet doctor` asks for the agent. */
struct trusted_who {
	int root; /* its root directory; -1 = this process's */
	uid_t uid;
	bool strict; /* it has root's rights */
};

enum path_walk_fault {
	PATH_WALK_NONE,
	PATH_WALK_OWNER,
	PATH_WALK_MODE,
	PATH_WALK_FILE_MODE,
	PATH_WALK_LINK,
	PATH_WALK_TARGET,
	PATH_WALK_HARD_LINK
};

struct path_walk {
	const struct sys *sys;
	struct trusted_who who;
	uid_t top;      /* owner of "/" */
	int dir;        /* where we are; O_PATH */
	struct stat st; /* of it */
	unsigned links; /* followed */
	bool foreign;   /* one of them was another user's: */
	uid_t whose;
	bool open;     /* others can change a directory on the way: */
	uid_t opener;  /* its owner; (uid_t)-1 = more than one can */
	bool holdable; /* one other user may decide, whom the caller checks: */
	uid_t holder;  /* (uid_t)-1 = none was met */
	enum path_walk_fault fault;
	uid_t fault_uid; /* owner of what is to blame */
	mode_t fault_mode;
	char at[PATH_MAX]; /* where we are, as a text; "" = the root directory; what is to blame */
	char rest[PATH_MAX]; /* what is left of the path */
};

/* holdable may be set behind it. */
void path_walk_init(struct path_walk *w, const struct sys *sys, const struct trusted_who *who);
/* The descriptor, or -errno. */
int path_walk_open_dir(struct path_walk *w, const char *path);
/* Opens it to read, whatever it is; a FIFO is not waited for. Where it is holdable, holder is
 * whose it is then. The descriptor, or -errno. */
int path_walk_open_file(struct path_walk *w, const char *path);
/* The sentence of the fault, "" = there is none. itself: what is to blame is what was to be opened.
 */
void path_walk_explain(const struct path_walk *w, bool itself, char why[FILE_WHY]);

#endif
