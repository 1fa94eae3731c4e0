/*
 * Whether a name is that of another file. Surprising: numbers of inodes do not tell, for FUSE makes
 * them up by name; only the list of the directory does.
 */
#include "files/name_case.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

static bool is_there(const struct sys *sys, int dir, const char *name)
{
	struct stat st;

	return sys->fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Is it there in the other case, too? False of a name without letters. */
static bool is_there_turned(const struct sys *sys, int dir, const char *name)
{
	char turned[NAME_MAX + 1];
	size_t i, len = strlen(name);

	if (len > NAME_MAX)
		return false;
	for (i = 0; i <= len; i++) {
		int c = (unsigned char)name[i];

		turned[i] = (char)(islower(c) ? toupper(c) : tolower(c));
	}
	return strcmp(turned, name) != 0 && is_there(sys, dir, turned);
}

/* 0: it is listed as it is written, or not at all; 1: in another case, as ret_listed. */
static int find_listed(
	const struct sys *sys, int dir, const char *name, char ret_listed[NAME_MAX + 1])
{
	DIR *d = file_list_dir(sys, dir, ".");
	struct dirent *e;
	int found = 0;

	if (!d)
		return 0;
	while ((e = readdir(d)) && strcmp(e->d_name, name) != 0)
		if (strcasecmp(e->d_name, name) == 0) {
			snprintf(ret_listed, NAME_MAX + 1, "%s", e->d_name);
			found = 1;
		}
	closedir(d);
	return e ? 0 : found;
}

int name_case_check(const struct sys *sys, int dir, const char *name, char why[FILE_WHY])
{
	char listed[NAME_MAX + 1], path[FILE_DIR];

	if (!is_there_turned(sys, dir, name) || !is_there(sys, dir, name) ||
		!find_listed(sys, dir, name, listed))
		return 0;
	file_show_dir(path, dir);
	snprintf(why, FILE_WHY,
		"will not use %s%.80s: %.80s is the same there, where upper and lower case are not "
		"told apart; give one of them another name",
		path, name, listed);
	return -EEXIST;
}
