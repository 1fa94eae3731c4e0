/* The temporary directory, and where the programs are. Surprising: a place whose path is too long
 * for a socket, or has a quote in it, is passed over. */
#include "cli/dev/place.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/common/cli.h"
#include "cli/serve/served.h"

static const char example[] =
	"# the document of an application: change a value, save, and see what happens\n"
	"greeting: hello\n"
	"db:\n"
	"  host: db-1.example\n"
	"  port: 5432\n"
	"features: [search, export]\n";

/* ---- programs ---- */

/* below: the way from dir to pulletd. */
static bool try_pulletd(char path[PLACE_PROGRAM], const char *dir, size_t len, const char *below)
{
	return snprintf(path, PLACE_PROGRAM, "%.*s/%spulletd", (int)len, dir, below) <
		       PLACE_PROGRAM &&
	       access(path, X_OK) == 0;
}

static bool find_in_path(char path[PLACE_PROGRAM])
{
	const char *dirs = getenv("PATH");

	while (dirs && *dirs) {
		size_t len = strcspn(dirs, ":");

		if (len && try_pulletd(path, dirs, len, ""))
			return true;
		dirs += len + (dirs[len] == ':');
	}
	return false;
}

static int find_programs(const char *command, struct dev_place *p)
{
	ssize_t n = readlink("/proc/self/exe", p->pullet, sizeof(p->pullet) - 1);
	const char *slash;
	size_t len;

	if (n < 0)
		return cli_error(CLI_FAILED, command, "cannot find this program by /proc: %s",
			strerror(errno));
	p->pullet[n] = '\0';
	slash = strrchr(p->pullet, '/');
	len = slash ? (size_t)(slash - p->pullet) : 0;
	if (try_pulletd(p->pulletd, p->pullet, len, "") ||
		try_pulletd(p->pulletd, p->pullet, len, "../sbin/") || find_in_path(p->pulletd))
		return CLI_OK;
	return cli_error(CLI_FAILED, command,
		"there is no pulletd, neither in %.*s, in %.*s/../sbin nor in PATH: install it, or "
		"name its directory in PATH",
		(int)len, p->pullet, (int)len, p->pullet);
}

/* ---- the directory ---- */

/* After su it may be another user's, where root's agent would trust nothing. */
static const char *own_runtime_dir(void)
{
	const char *dir = getenv("XDG_RUNTIME_DIR");
	struct stat st;

	return dir && stat(dir, &st) == 0 && st.st_uid == geteuid() ? dir : NULL;
}

/* 0, or why not. */
static int make_in(struct dev_place *p, const char *dir)
{
	if (!dir || dir[0] != '/' || strchr(dir, '\'') || strchr(dir, '\n'))
		return EINVAL;
	if (snprintf(p->root, sizeof(p->root), "%s/pullet-dev-XXXXXX", dir) >= (int)sizeof(p->root))
		return ENAMETOOLONG;
	return mkdtemp(p->root) ? 0 : errno;
}

int dev_place_make(const char *command, struct dev_place *p)
{
	const char *tmp = getenv("TMPDIR");
	int r = find_programs(command, p);

	if (r)
		return r;
	tmp = tmp && tmp[0] ? tmp : "/tmp";
	if (make_in(p, own_runtime_dir()))
		r = make_in(p, tmp);
	if (r) {
		p->root[0] = '\0';
		return cli_error(CLI_FAILED, command,
			"cannot make a temporary directory in %s: %s: name a directory in TMPDIR "
			"that this user may write in, with a short path",
			tmp, strerror(r));
	}
	snprintf(p->state, PLACE_PATH, "%s/state", p->root);
	snprintf(p->run, PLACE_PATH, "%s/run", p->root);
	snprintf(p->files, PLACE_PATH, "%s/files", p->root);
	snprintf(p->example, PLACE_PATH, "%s/served", p->root);
	snprintf(p->configuration, PLACE_PATH, "%s/pullet.yaml", p->root);
	snprintf(p->socket, PLACE_PATH, "%s/run/control.sock", p->root);
	if (mkdir(p->files, 0700))
		return cli_error(
			CLI_FAILED, command, "cannot make %s: %s", p->files, strerror(errno));
	return CLI_OK;
}

int dev_place_write(const struct dev_place *p, const char *path, const char *data, size_t len)
{
	char temporary[PLACE_PATH];
	ssize_t n = -1;
	int fd, r = 0;

	snprintf(temporary, sizeof(temporary), "%s/.new", p->root);
	fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd >= 0)
		n = write(fd, data, len);
	if (n < 0)
		r = -errno;
	else if ((size_t)n != len)
		r = -ENOSPC;
	if (fd >= 0)
		close(fd);
	if (r == 0 && rename(temporary, path))
		r = -errno;
	return r;
}

int dev_place_make_example(const char *command, const struct dev_place *p)
{
	char path[PLACE_PATH + 16];
	int r = mkdir(p->example, 0700) ? -errno : 0;

	snprintf(path, sizeof(path), "%s/web.yaml", p->example);
	if (r == 0)
		r = dev_place_write(p, path, example, strlen(example));
	return r ? cli_error(CLI_FAILED, command, "cannot write %s: %s", path, strerror(-r))
		 : CLI_OK;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st, (void)type, (void)at;
	remove(path);
	return 0;
}

void dev_place_remove(struct dev_place *p)
{
	if (p->root[0])
		nftw(p->root, remove_one, 8, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
	p->root[0] = '\0';
}

/* ---- sentences ---- */

int dev_place_cannot_open(const char *command, const char *dir, int error)
{
	static const struct {
		int error;
		const char *remedy;
	} table[] = {
		{ENOENT, "make it, or name no directory for an example"},
		{ENOTDIR, "name the directory that the file is in"},
		{EACCES, "let this user read it, or name another one"},
	};
	const char *remedy = "name another one";

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].error == error)
			remedy = table[i].remedy;
	return cli_error(
		CLI_FAILED, command, "cannot serve %s: %s: %s", dir, strerror(error), remedy);
}

void dev_place_note_odd(const char *command, const char *dir, const char *path, size_t more)
{
	char others[40] = "";

	if (more)
		snprintf(others, sizeof(others), ", and %zu more like it", more);
	cli_note(command,
		"%s/%s is left out%s: name it with letters, digits, dots, - and _ only, 64 at "
		"most, beginning with a letter or digit",
		dir, path, others);
}

void dev_place_note_full(const char *command, const char *dir)
{
	cli_note(command,
		"%s has more than %d documents: the others are left out; name a folder of it", dir,
		SERVED_MAX);
}
