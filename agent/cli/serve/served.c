/* Documents of a directory as configs. Surprising: a document that is gone stays a config, since
 * many editors remove a file and write it again. */
#include "cli/serve/served.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "origin/origin.h"

#define PLAIN                                                                                      \
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-/" /* in addresses */

static bool is_document(const char *path)
{
	static const char *const endings[] = {".yaml", ".yml", ".json"};
	const char *dot = strrchr(path, '.');

	for (size_t i = 0; dot && i < sizeof(endings) / sizeof(endings[0]); i++)
		if (strcasecmp(dot, endings[i]) == 0)
			return origin_serves(path);
	return false;
}

static bool has_name(const struct served *s, const char *name)
{
	for (size_t i = 0; i < s->count; i++)
		if (strcmp(s->documents[i].name, name) == 0)
			return true;
	return false;
}

/* The first len bytes of the path as a name. False: they are none, or it is taken. */
static bool take_name(
	const struct served *s, const char *path, size_t len, char name[SETTINGS_MAX_NAME + 1])
{
	if (len > SETTINGS_MAX_NAME)
		return false;
	for (size_t i = 0; i < len; i++)
		name[i] = path[i] == '/' ? '-' : path[i];
	name[len] = '\0';
	return !settings_check_name(name) && !has_name(s, name);
}

static size_t stem_len(const char *path)
{
	return (size_t)(strrchr(path, '.') - path);
}

enum served_result served_add(struct served *s, const char *path)
{
	struct served_document d;

	if (!is_document(path))
		return SERVED_OTHER;
	for (size_t i = 0; i < s->count; i++)
		if (strcmp(s->documents[i].path, path) == 0)
			return SERVED_KNOWN;
	if (s->count == SERVED_MAX) {
		s->full = true;
		return SERVED_FULL;
	}
	if (strspn(path, PLAIN) != strlen(path) || strlen(path) >= SERVED_PATH ||
		(!take_name(s, path, stem_len(path), d.name) &&
			!take_name(s, path, strlen(path), d.name))) {
		snprintf(s->odd, sizeof(s->odd), "%s", path);
		s->odd_count++;
		return SERVED_ODD;
	}
	snprintf(d.path, sizeof(d.path), "%s", path);
	s->documents[s->count++] = d;
	return SERVED_NEW;
}

static bool is_folder(int dir, const char *path)
{
	struct stat st;

	return fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

static bool is_readable_file(int dir, const char *path)
{
	struct stat st;

	return fstatat(dir, path, &st, 0) == 0 && S_ISREG(st.st_mode);
}

static void find_in_folder(struct served *s, int dir, const char *folder, int depth)
{
	struct dirent **names = NULL;
	char path[1024];
	int n = scandirat(dir, folder[0] ? folder : ".", &names, NULL, alphasort);

	for (int i = 0; i < n; i++) {
		int len = snprintf(path, sizeof(path), "%s%s%s", folder, folder[0] ? "/" : "",
			names[i]->d_name);

		if (!s->full && len < (int)sizeof(path) && origin_serves(path)) {
			if (is_folder(dir, path) && depth < SERVED_DEPTH)
				find_in_folder(s, dir, path, depth + 1);
			else if (is_document(path) && is_readable_file(dir, path))
				served_add(s, path);
		}
		free(names[i]);
	}
	free(names);
}

void served_find(struct served *s, int dir)
{
	find_in_folder(s, dir, "", 1);
}

/* ---- the configuration ---- */

/* A path, and the end of its line; in quotes where they are needed. */
static void append_path_line(struct buffer *out, const char *text)
{
	if (strspn(text, PLAIN) == strlen(text)) {
		buffer_printf(out, "%s\n", text);
		return;
	}
	buffer_append_string(out, "'");
	for (; *text; text++)
		buffer_append(out, *text == '\'' ? "''" : text, *text == '\'' ? 2 : 1);
	buffer_append_string(out, "'\n");
}

const char *served_ending(const struct served_document *d)
{
	return strlen(d->name) == strlen(d->path) ? "" : d->path + stem_len(d->path);
}

static void write_served_config(
	const struct served_document *d, const struct served_from *from, struct buffer *out)
{
	size_t len = stem_len(d->path);
	struct buffer file;

	buffer_init(&file, 1u << 14);
	buffer_printf(&file, "%s/%s%s", from->files, d->name, served_ending(d));
	buffer_printf(out, "  %s:\n    url: %s/%s\n    file: ", d->name, from->url, d->path);
	append_path_line(out, file.data ? file.data : "");
	buffer_fini(&file);
	if (strlen(d->name) != len || strncmp(d->name, d->path, len) != 0)
		buffer_printf(out, "    topic: '%.*s'\n", (int)len, d->path);
	buffer_append_string(out, from->more);
}

int served_write(const struct served *s, const struct served_from *from, struct buffer *out)
{
	if (s->count == 0)
		return out->error;
	buffer_printf(out, "push:\n  - endpoint: %s\n", from->push);
	if (from->server_key[0])
		buffer_printf(out, "    curve: {server_key: '%s'}\n", from->server_key);
	else if (from->insecure)
		buffer_append_string(out, "    insecure: true\n");
	buffer_append_string(out, "configs:\n");
	for (size_t i = 0; i < s->count; i++)
		write_served_config(&s->documents[i], from, out);
	return out->error;
}
