/*
 * Made where they are missing, looked at, and locked. Surprising: the lock is of fcntl(), not of
 * flock(): a program that a killed agent was about to start would keep that for a moment, and the
 * next agent would not start.
 */
#include "own_directories.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/sys.h"
#include "files/file.h"
#include "files/trusted.h"
#include "settings/places.h"

#define LOCK_NAME ".lock" /* beside the configs' directories: no config has such a name */

/* Opens a directory, makes it first if it is missing. The descriptor, or -errno. */
static int open_own_dir(const char *path, mode_t mode)
{
	char why[FILE_WHY], sync_why[FILE_WHY];
	int made = 0, dir = trusted_open_dir(&sys_real, path, TRUSTED_OWN, why);
	struct stat st;

	if (dir == -ENOENT) {
		made = trusted_make_dir(&sys_real, path, mode, TRUSTED_OWN, why);
		dir = made < 0 ? made : trusted_open_dir(&sys_real, path, TRUSTED_OWN, why);
	}
	if (dir < 0) {
		log_err(made < 0 ? "cannot make the directory: make it, or name another one in "
				   "the configuration"
				 : "cannot use the directory: see why, or name another one in the "
				   "configuration",
			"path", path, "why", why);
		return dir;
	}
	if (made && file_sync_parent(&sys_real, dir, sync_why))
		log_warn("a power cut may lose a new directory", "why", sync_why);
	if (fstat(dir, &st) == 0 && (st.st_mode & S_IWOTH))
		log_warn("anybody on this host can write in the directory, and with it choose what "
			 "is published: chmod o-w it",
			"path", path);
	return dir;
}

/* Claims the state directory for one agent. */
static int lock_state(const char *state_dir, int dir, int *ret_lock)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	char why[FILE_REMEDY], path[PATH_MAX];
	int r, fd;

	snprintf(path, sizeof(path), "%s/" LOCK_NAME, state_dir);
	fd = sys_real.openat(dir, LOCK_NAME, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0) {
		r = -errno;
		file_remedy(why, -r, false);
		log_err("cannot write in the state directory", "path", path, "why", why);
		return r;
	}
	if (fcntl(fd, F_SETLK, &lock) == 0) {
		*ret_lock = fd;
		return 0;
	}
	fcntl(fd, F_GETLK, &lock); /* whose it is */
	log_err("another pulletd uses this state directory: stop it, or give this one another "
		"state_dir",
		"path", state_dir, "pid", lock.l_pid > 0 ? LOG_U64((unsigned)lock.l_pid) : NULL);
	sys_real.close(fd);
	return -EBUSY;
}

/* Says where an ordinary user's readers look, which is not the usual place. */
static void report_own_places(const struct settings *s)
{
	char own[PLACES_PATH];

	if (places_own_runtime_dir(own) && strcmp(own, s->runtime_dir) == 0)
		log_info("running in this user's own places: pullet finds them, other programs "
			 "need PULLET_RUNTIME_DIR",
			"PULLET_RUNTIME_DIR", s->runtime_dir, "state_dir", s->state_dir);
}

int own_directories_take(const struct settings *s, int *ret_lock)
{
	int r = 0, state, runtime;

	places_make_above(s->state_dir);
	state = open_own_dir(s->state_dir, 0700);
	if (state < 0)
		return state;
	places_make_above(s->runtime_dir);
	runtime = open_own_dir(s->runtime_dir, 0750);
	if (runtime < 0)
		r = runtime;
	else
		sys_real.close(runtime);
	if (r == 0)
		r = lock_state(s->state_dir, state, ret_lock);
	if (r == 0)
		report_own_places(s);
	sys_real.close(state);
	return r;
}
