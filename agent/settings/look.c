/*
 * Looks at what the configuration names on this host, while it is read: the places are known then.
 *
 * Surprising: a mount that hangs would hang the agent's start, so that only `pulletd -t` looks at
 * the folders of servers of kind file.
 */
#include "settings/look.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/trusted.h"
#include "schema/files.h"

static void say_place(
	struct loader *l, const struct node *n, const char *key, const char *path, const char *why)
{
	char message[PATH_MAX + 1024];

	snprintf(message, sizeof(message), "%.*s:%u:%u: %s: %.*s%s%s", PATH_MAX / 2, l->file,
		n->line, n->column, key, PATH_MAX / 2, path, *path ? " " : "", why);
	l->look(l->arg, message);
}

/* As the agent would open it. */
static void look_at_file(struct loader *l, const struct node *n, const char *key, bool folder,
	bool secret, const char *path)
{
	char why[FILE_WHY], remedy[FILE_REMEDY], said[FILE_WHY + 64];
	int fd = trusted_open(&sys_real, path, why), r = fd < 0 ? fd : 0;
	struct stat st;

	if (r == 0 && fstat(fd, &st))
		r = -errno;
	if (fd >= 0)
		close(fd);
	file_remedy(remedy, -r, true);
	if (r)
		snprintf(said, sizeof(said), "cannot be read: %s",
			r == -EPERM && !secret ? why : remedy);
	else if (folder != S_ISDIR(st.st_mode))
		snprintf(said, sizeof(said), "%s",
			folder ? "is no directory: name one" : "is a directory: name a file");
	else
		return;
	say_place(l, n, key, secret ? "the file" : path, said);
}

/* The agent makes the last directory of an output file, not those above. */
static void look_at_output(
	struct loader *l, const struct node *n, const char *key, const char *path)
{
	char dir[PATH_MAX], *slash;
	struct stat st;

	snprintf(dir, sizeof(dir), "%s", path);
	for (unsigned above = 0; above < 2; above++) {
		slash = strrchr(dir, '/');
		if (!slash || slash == dir)
			return;
		*slash = '\0';
		if (stat(dir, &st) == 0) {
			if (!S_ISDIR(st.st_mode))
				say_place(l, n, key, dir, "is no directory: name another place");
			return;
		}
		if (errno != ENOENT)
			return; /* this user may not look; the agent may */
	}
	say_place(l, n, key, dir, "does not exist: make that directory, or name another place");
}

void look_at(struct loader *l, const struct node *n, const char *key, enum look what, bool secret,
	const char *path)
{
	if (!l->look)
		return;
	if (what == LOOK_FILE || what == LOOK_FOLDER)
		look_at_file(l, n, key, what == LOOK_FOLDER, secret, path);
	else if (what == LOOK_OUTPUT)
		look_at_output(l, n, key, path);
}

void look_at_program(struct loader *l, const struct node *n, const char *key, const char *path)
{
	struct stat st;

	if (!l->look)
		return;
	if (stat(path, &st))
		say_place(l, n, key, path,
			errno == ENOENT ? "does not exist: install it, or name its absolute path"
					: strerror(errno));
	else if (!S_ISREG(st.st_mode))
		say_place(l, n, key, path, "is no program: name a file");
	else if (access(path, X_OK))
		say_place(l, n, key, path,
			"cannot be run: make it executable (chmod +x), for the agent's user too");
}

void look_at_folder(struct loader *l, const struct node *n, const char *path)
{
	if (l->look_all)
		look_at(l, n, "urls", LOOK_FOLDER, false, path);
}

void look_at_schema(
	struct loader *l, const struct node *n, const char *schema, const char *schema_dir)
{
	char why[FILE_WHY] = "", said[FILE_WHY + 64];
	struct schema_files *files;

	if (!l->look || !l->look_all || access(schema, R_OK))
		return; /* the row has said it */
	files = schema_files_new(&sys_real, schema, schema_dir);
	if (files && schema_files_read(files, why) < 0) {
		snprintf(said, sizeof(said), "cannot be used: %s", why);
		say_place(l, n, "schema", schema, said);
	}
	schema_files_free(files);
}
