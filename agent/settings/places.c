/* Default places. Surprising: each directory is decided for itself, so that an agent of an ordinary
 * user with one volume of the host's keeps it. */
#include "settings/places.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sys.h"
#include "settings/settings.h"

/* An absolute path from the environment, or NULL. */
static const char *absolute(const char *value)
{
	return value && value[0] == '/' ? value : NULL;
}

static bool put_path(char path[PLACES_PATH], const char *base, const char *below)
{
	return snprintf(path, PLACES_PATH, "%s%s", base, below) < PLACES_PATH;
}

/* base, else HOME and what is below it, then tail. False: root, and the service's user, whose home
 * is the host's state directory, have none of their own. */
static bool put_own(char path[PLACES_PATH], const char *base, const char *in_home, const char *tail)
{
	const char *home = absolute(secure_getenv("HOME"));
	char above[PLACES_PATH];

	if (geteuid() == 0 || (home && strcmp(home, SETTINGS_DEFAULT_STATE_DIR) == 0))
		return false;
	if (absolute(base))
		return put_path(path, base, tail);
	return home && put_path(above, home, in_home) && put_path(path, above, tail);
}

static bool may_write(const char *dir)
{
	return faccessat(AT_FDCWD, dir, W_OK | X_OK, AT_EACCESS) == 0;
}

/* Is it a directory of this user's, or could it be made one? */
static bool is_usable(const char *dir)
{
	char above[PLACES_PATH];
	struct stat st;
	char *slash;

	if (sys_real.fstatat(AT_FDCWD, dir, &st, 0) == 0)
		return st.st_uid == geteuid() || may_write(dir);
	if (errno != ENOENT || !put_path(above, dir, ""))
		return false;
	slash = strrchr(above, '/');
	if (!slash || slash == above)
		return false;
	*slash = '\0';
	return may_write(above);
}

/* ---- each place ---- */

static bool own_configuration(char path[PLACES_PATH])
{
	return put_own(path, secure_getenv("XDG_CONFIG_HOME"), "/.config", "/pullet/pullet.yaml");
}

static bool own_state_dir(char path[PLACES_PATH])
{
	return put_own(path, secure_getenv("XDG_STATE_HOME"), "/.local/state", "/pullet");
}

bool places_own_runtime_dir(char path[PLACES_PATH])
{
	const char *base = absolute(secure_getenv("XDG_RUNTIME_DIR"));
	char usual[64];

	if (geteuid() == 0)
		return false;
	if (base && may_write(base))
		return put_path(path, base, "/pullet");
	snprintf(usual, sizeof(usual), "/run/user/%u", (unsigned)geteuid());
	if (may_write(usual))
		return put_path(path, usual, "/pullet");
	return put_own(path, secure_getenv("XDG_STATE_HOME"), "/.local/state", "/pullet-run");
}

const char *places_configuration(char path[PLACES_PATH])
{
	const char *given = getenv("PULLET_CONFIG");

	if (given && given[0] && put_path(path, given, ""))
		return path;
	if (!own_configuration(path) ||
		(faccessat(AT_FDCWD, path, F_OK, AT_EACCESS) &&
			!faccessat(AT_FDCWD, SETTINGS_DEFAULT_PATH, R_OK, AT_EACCESS)))
		put_path(path, SETTINGS_DEFAULT_PATH, "");
	return path;
}

const char *places_state_dir(char path[PLACES_PATH])
{
	if (is_usable(SETTINGS_DEFAULT_STATE_DIR) || !own_state_dir(path))
		put_path(path, SETTINGS_DEFAULT_STATE_DIR, "");
	return path;
}

const char *places_runtime_dir(char path[PLACES_PATH])
{
	if (is_usable(SETTINGS_DEFAULT_RUNTIME_DIR) || !places_own_runtime_dir(path))
		put_path(path, SETTINGS_DEFAULT_RUNTIME_DIR, "");
	return path;
}

void places_make_above(const char *path)
{
	char own[PLACES_PATH], state[PLACES_PATH];
	bool ours = (places_own_runtime_dir(own) && strcmp(own, path) == 0) ||
		    (own_state_dir(state) && strcmp(state, path) == 0);

	if (!ours || !put_path(own, path, ""))
		return;
	for (char *slash = strchr(own + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		sys_real.mkdirat(AT_FDCWD, own, 0700);
		*slash = '/';
	}
}
