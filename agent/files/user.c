/* Lines of NAME:PASSWORD:UID:... Surprising: those of /etc/group begin the same way. */
#include "files/user.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files/file.h"

#define PASSWD "/etc/passwd"
#define GROUP "/etc/group"

/* Is this a line of that user? ret_group: what stands behind the uid. */
static bool is_id_line(const char *line, uid_t uid, size_t *ret_name_len, const char **ret_group)
{
	size_t name = strcspn(line, ":\n"), password;
	unsigned long long number;
	char *end;

	if (name == 0 || name > USER_MAX_NAME || line[name] != ':')
		return false;
	password = strcspn(line + name + 1, ":\n");
	line += name + 1 + password;
	if (line[0] != ':' || line[1] < '0' || line[1] > '9')
		return false;
	errno = 0;
	number = strtoull(line + 1, &end, 10);
	*ret_name_len = name;
	*ret_group = end + 1; /* if there was a ':' */
	return errno == 0 && *end == ':' && number == uid;
}

/* The first line of that user or group, as is_id_line() finds it; NULL = there is none. */
static const char *find_id_line(
	const char *lines, unsigned id, size_t *ret_name_len, const char **ret_rest)
{
	for (const char *line = lines; *line; line += strcspn(line, "\n"), line += *line == '\n')
		if (is_id_line(line, id, ret_name_len, ret_rest))
			return line;
	return NULL;
}

static void describe_id(const char *lines, const char *what, unsigned id, char ret_text[USER_TEXT])
{
	const char *rest, *line;
	size_t len;

	line = find_id_line(lines, id, &len, &rest);
	if (line)
		snprintf(ret_text, USER_TEXT, "%.*s (%s %u)", (int)len, line, what, id);
	else
		snprintf(ret_text, USER_TEXT, "%s %u", what, id);
}

void user_describe_by(const char *passwd, uid_t uid, char ret_text[USER_TEXT])
{
	describe_id(passwd, "uid", uid, ret_text);
}

int user_primary_group_by(const char *passwd, uid_t uid, gid_t *ret_gid)
{
	unsigned long long number;
	const char *group;
	size_t len;
	char *end;

	if (!find_id_line(passwd, uid, &len, &group))
		return -ENOENT;
	if (*group < '0' || *group > '9')
		return -EINVAL;
	errno = 0;
	number = strtoull(group, &end, 10);
	if (errno || *end != ':' || number >= UINT32_MAX)
		return -EINVAL;
	*ret_gid = (gid_t)number;
	return 0;
}

/* The whole file, with a NUL behind it; "" when it cannot be read. */
static const char *read_lines(const struct sys *sys, const char *path, struct buffer *file)
{
	int fd = sys->openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);

	buffer_init(file, USER_MAX_FILE);
	return fd >= 0 && file_take(sys, fd, file) == 0 && buffer_append(file, "", 1) == 0
		       ? file->data
		       : "";
}

void user_describe(const struct sys *sys, uid_t uid, char ret_text[USER_TEXT])
{
	struct buffer file;

	user_describe_by(read_lines(sys, PASSWD, &file), uid, ret_text);
	buffer_fini(&file);
}

void user_describe_group(const struct sys *sys, gid_t gid, char ret_text[USER_TEXT])
{
	struct buffer file;

	describe_id(read_lines(sys, GROUP, &file), "gid", gid, ret_text);
	buffer_fini(&file);
}

int user_primary_group(const struct sys *sys, uid_t uid, gid_t *ret_gid)
{
	struct buffer file;
	int r = user_primary_group_by(read_lines(sys, PASSWD, &file), uid, ret_gid);

	buffer_fini(&file);
	return r;
}
