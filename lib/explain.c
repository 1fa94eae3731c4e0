/*
 * What an error of opening a config means here, and what to do: for people. Surprising: it looks at
 * the directory again, after the error, so what it says may have changed meanwhile; it never says
 * more than the user could find out with ls.
 */
#include "explain.h"

#include <dirent.h>
#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pullet.h"

#define NAME_ROOM 512
#define PATH_ROOM 4096
#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"
#define GROUP_ROOM 65536 /* bytes of a group, with its members */
#define FEW 4            /* names of configs that are listed */
#define MOST_READ 4096   /* entries of the directory that are looked at */

static size_t plain_name(const char *name, size_t len, char plain[NAME_ROOM])
{
	size_t n = 0;

	for (size_t i = 0; i < len && i < NAME_ROOM; i++)
		if (name[i] != '-' && name[i] != '_')
			plain[n++] =
				(char)(name[i] >= 'A' && name[i] <= 'Z' ? name[i] | 0x20 : name[i]);
	return n;
}

bool explain_is_near(const char *a, size_t a_len, const char *b, size_t b_len)
{
	char x[NAME_ROOM], y[NAME_ROOM];
	size_t m = plain_name(a, a_len, x), n = plain_name(b, b_len, y), i = 0;

	while (i < m && i < n && x[i] == y[i])
		i++;
	while (m > i && n > i && x[m - 1] == y[n - 1])
		m--, n--;
	if (m - i == 2 && n - i == 2)
		return x[i] == y[i + 1] && x[i + 1] == y[i];
	return m - i <= 1 && n - i <= 1;
}

/* ---- nothing is published ---- */

struct names {
	char near[65], few[FEW][65];
	size_t count;
};

/* Of "web.snap" without its end; 0: it is no config's snapshot. */
static size_t snapshot_name_length(const char *file)
{
	size_t len = strlen(file);

	if (len <= 5 || len > 69 || strcmp(file + len - 5, ".snap") != 0 || file[0] == '.' ||
		strspn(file, LETTERS) != len)
		return 0;
	return len - 5;
}

static void add_published_name(struct names *n, const char *file, const char *wrong)
{
	size_t len = snapshot_name_length(file), wrong_len = strlen(wrong);

	if (len == 0)
		return;
	if (n->count < FEW)
		memcpy(n->few[n->count], file, len);
	n->count++;
	if (wrong_len >= 3 && (len != wrong_len || memcmp(file, wrong, len) != 0) &&
		explain_is_near(file, len, wrong, wrong_len))
		snprintf(n->near, sizeof(n->near), "%.*s", (int)len, file);
}

static void explain_missing(const char *dir, const char *name, char *text, size_t size)
{
	char list[FEW * sizeof("web, ") + FEW * 65] = "";
	struct names names = {.count = 0};
	const struct dirent *entry;
	DIR *d = opendir(dir);

	if (!d) {
		int error = errno;

		snprintf(text, size, "nothing is published under this name: %s: %s%s", dir,
			strerror(error),
			error == ENOENT ? ": is the agent running? PULLET_RUNTIME_DIR names "
					  "another directory"
					: "");
		return;
	}
	for (int i = 0; i < MOST_READ && (entry = readdir(d)); i++)
		add_published_name(&names, entry->d_name, name);
	closedir(d);
	for (size_t i = 0, len = 0; i < names.count && i < FEW; i++)
		len += (size_t)snprintf(
			list + len, sizeof(list) - len, "%s%s", i ? ", " : "", names.few[i]);
	if (names.near[0])
		snprintf(text, size,
			"nothing is published under this name in %s: did you mean '%s'?", dir,
			names.near);
	else
		snprintf(text, size, "nothing is published under this name in %s%s%s%s", dir,
			!names.count        ? ", nor under any: is the agent running?"
			: names.count > FEW ? " yet: 'pullet status --names' lists what there is"
					    : " yet (there is ",
			names.count > FEW ? "" : list,
			names.count && names.count <= FEW ? ")" : "");
}

static bool is_own(const char *base, const char *below, const char *name, char dir[PATH_ROOM])
{
	char path[PATH_ROOM + NAME_ROOM];

	if (!base || base[0] != '/')
		return false;
	snprintf(dir, PATH_ROOM, "%s%s", base, below);
	snprintf(path, sizeof(path), "%s/%.*s.snap", dir, NAME_ROOM - 8, name);
	return access(path, F_OK) == 0;
}

/* Whether an agent that this user has started without a configuration of its own place (pulletd(8))
 * publishes it, and in which directory. */
static bool own_agent_has(const char *name, char dir[PATH_ROOM])
{
	char usual[64];

	snprintf(usual, sizeof(usual), "/run/user/%u", (unsigned)geteuid());
	return geteuid() != 0 &&
	       (is_own(secure_getenv("XDG_RUNTIME_DIR"), "/pullet", name, dir) ||
		       is_own(usual, "/pullet", name, dir) ||
		       is_own(secure_getenv("XDG_STATE_HOME"), "/pullet-run", name, dir) ||
		       is_own(secure_getenv("HOME"), "/.local/state/pullet-run", name, dir));
}

/* ---- it may not be read ---- */

/* By its number, where it has no name or more members than there is room for. */
static void name_group(gid_t gid, char *name, size_t size)
{
	char *room = malloc(GROUP_ROOM);
	struct group g, *found = NULL;

	snprintf(name, size, "%u", (unsigned)gid);
	if (room)
		(void)getgrgid_r(gid, &g, room, GROUP_ROOM, &found);
	if (found)
		snprintf(name, size, "%s", g.gr_name);
	free(room);
}

/* Names the group whose members may read it, or the directory around it that is closed. */
static void explain_forbidden(char *path, bool is_agents, char *text, size_t size)
{
	struct stat st = {.st_gid = 0};
	char group[NAME_ROOM];
	char *slash;

	while (stat(path, &st) && (slash = strrchr(path, '/')) && slash != path)
		*slash = '\0';
	if (st.st_gid != 0 && (st.st_mode & (S_ISDIR(st.st_mode) ? S_IXGRP : S_IRGRP))) {
		name_group(st.st_gid, group, sizeof(group));
		snprintf(text, size,
			"%s may be read by the group %s only: add this program's user to it "
			"(usermod -aG %s USER), and start the program again",
			path, group, group);
	} else if (is_agents) {
		snprintf(text, size,
			"%s may be read by root and the agent's user only: the agent publishes for "
			"the group that it runs with (Group= of its unit, or that of a "
			"setgid directory)",
			path);
	} else if (st.st_mode == 0) {
		snprintf(text, size, "%s may not be read by this program's user", path);
	} else {
		snprintf(text, size,
			"%s may not be read by this program's user: it belongs to the user %u, and "
			"its mode is %04o",
			path, (unsigned)st.st_uid, (unsigned)st.st_mode & 07777);
	}
}

/* ---- */

/* The name of the config whose snapshot is at a path in the runtime directory; else the path. */
static const char *name_of(const char *dir, const char *path, char name[NAME_ROOM])
{
	size_t n = strlen(dir);
	size_t len = strncmp(path, dir, n) == 0 && path[n] == '/'
			     ? snapshot_name_length(path + n + 1)
			     : 0;
	if (len == 0)
		return path;
	snprintf(name, NAME_ROOM, "%.*s", (int)len, path + n + 1);
	return name;
}

const char *pullet_explain(const char *config_or_path, int error, char *text, size_t size)
{
	const char *given = secure_getenv("PULLET_RUNTIME_DIR"), *dir = given;
	char path[PATH_ROOM], name[NAME_ROOM];
	bool is_path;

	if (!dir || !dir[0])
		dir = "/run/pullet";
	config_or_path = name_of(dir, config_or_path, name);
	is_path = strchr(config_or_path, '/');
	if (is_path)
		snprintf(path, sizeof(path), "%s", config_or_path);
	else
		snprintf(path, sizeof(path), "%s/%s.snap", dir, config_or_path);
	if (error == -EINVAL && !config_or_path[0])
		snprintf(text, size, "the name of the config is empty");
	else if (error == -EACCES)
		explain_forbidden(path, !is_path, text, size);
	else if (error == -ENOENT && is_path)
		snprintf(text, size, "there is no snapshot at this path");
	else if (error == -EBADMSG && is_path)
		snprintf(text, size, "the snapshot is damaged: make it or copy it again");
	else if (error == -ENOENT && dir != given && own_agent_has(config_or_path, path))
		snprintf(text, size, "your own agent publishes it in %s: set PULLET_RUNTIME_DIR=%s",
			path, path);
	else if (error == -ENOENT)
		explain_missing(dir, config_or_path, text, size);
	else
		snprintf(text, size, "%s", pullet_strerror(error));
	return text;
}
