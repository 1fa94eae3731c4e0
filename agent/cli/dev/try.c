/* Commands to try. Surprising: the key is the first in the snapshot that has a single value, and
 * that a person can type; the program is named by its path unless a shell finds this very one by
 * its name. */
#include "cli/dev/try.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/buffer.h"
#include "lib/pullet.h"
#include "cli/text/words.h"

static struct pullet *open_snapshot(const struct dev_place *p, const char *config)
{
	char path[PLACE_PATH + 80];
	struct pullet *snapshot = NULL;

	snprintf(path, sizeof(path), "%s/%s.snap", p->run, config);
	return pullet_open(path, 0, &snapshot) == 0 ? snapshot : NULL;
}

static bool is_single(const struct pullet_value *v)
{
	return v->type != PULLET_LIST && v->type != PULLET_MAP;
}

static int count_tried_value(
	const char *key, size_t key_len, const struct pullet_value *v, void *arg)
{
	(void)key, (void)key_len;
	*(size_t *)arg += is_single(v);
	return 0;
}

size_t try_count(const struct dev_place *p, const char *config)
{
	struct pullet *snapshot = open_snapshot(p, config);
	size_t count = 0;

	if (snapshot)
		pullet_each(snapshot, "", count_tried_value, &count);
	pullet_close(snapshot);
	return count;
}

static int take_key(const char *key, size_t key_len, const struct pullet_value *v, void *arg)
{
	struct buffer *found = arg;

	if (!is_single(v) || v->type == PULLET_NULL)
		return 0;
	for (size_t i = 0; i < key_len; i++)
		if (key[i] < ' ' || key[i] > '~')
			return 0;
	buffer_append(found, key, key_len);
	return 1;
}

/* As one word of a shell. */
static void append_word(struct buffer *out, const char *text)
{
	static const char plain[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-/:=";

	if (text[0] && strspn(text, plain) == strlen(text)) {
		buffer_append_string(out, text);
		return;
	}
	buffer_append_string(out, "'");
	for (; *text; text++)
		buffer_append(out, *text == '\'' ? "'\\''" : text, *text == '\'' ? 4 : 1);
	buffer_append_string(out, "'");
}

/* Does a shell find this program by its name alone? */
static bool is_found_by_name(const char *program)
{
	const char *dirs = getenv("PATH");
	char path[PLACE_PROGRAM];
	struct stat found, ours;

	for (; dirs && *dirs; dirs += strcspn(dirs, ":") + (dirs[strcspn(dirs, ":")] == ':')) {
		snprintf(path, sizeof(path), "%.*s/pullet", (int)strcspn(dirs, ":"), dirs);
		if (stat(path, &found) == 0)
			return stat(program, &ours) == 0 && found.st_dev == ours.st_dev &&
			       found.st_ino == ours.st_ino;
	}
	return false;
}

static void append_command(struct buffer *out, const struct dev_place *p)
{
	buffer_append_string(out, "    PULLET_RUNTIME_DIR=");
	append_word(out, p->run);
	buffer_append_string(out, " ");
	append_word(out, is_found_by_name(p->pullet) ? "pullet" : p->pullet);
}

bool try_print(const struct dev_place *p, const struct served_document *d, const char *served,
	bool example)
{
	struct pullet *snapshot = open_snapshot(p, d->name);
	struct buffer out, key;

	if (!snapshot)
		return false;
	buffer_init(&out, 1u << 16);
	buffer_init(&key, 1u << 14);
	pullet_each(snapshot, "", take_key, &key);
	buffer_append_string(&out, "\nIn another shell:\n");
	append_command(&out, p);
	if (key.len && !key.error) {
		buffer_printf(&out, " get %s ", d->name);
		append_word(&out, key.data);
	} else {
		buffer_printf(&out, " list %s", d->name);
	}
	buffer_append_string(&out, "\n");
	append_command(&out, p);
	buffer_append_string(&out, " status\n");
	if (example)
		buffer_printf(&out, "    sed -i s/hello/goodbye/ %s/%s\n", served, d->path);
	buffer_append_string(&out, "Change a value in ");
	words_text(&out, served);
	buffer_printf(&out,
		"/%s and save it: what changed is printed here. Applications read\n%s/%s%s, or the "
		"snapshot with PULLET_RUNTIME_DIR as above. Ctrl-C ends it.\n\n",
		d->path, p->files, d->name, served_ending(d));
	printf("%s", out.data ? out.data : "");
	buffer_fini(&out);
	buffer_fini(&key);
	pullet_close(snapshot);
	return true;
}
