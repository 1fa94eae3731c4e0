/* All members of the agent's answer about one config, a line each, as people write them.
 * Surprising: only the name tells a moment from a span; both are milliseconds. */
#include <string.h>

#include "document/key_path.h"
#include "cli/model/show.h"
#include "cli/text/words.h"

static const char unit[] = "_ms";

/* Members that are moments, and their names here. */
static const struct moment {
	const char *member, *name;
} moments[] = {
	{"published_ms", "published"},
	{"confirmed_ms", "confirmed"},
	{"last_error_ms", "last_error_at"},
	{"failing_since_ms", "failing_since"},
	{"expires_ms", "expires"},
	{"until_ms", "until"},
	{"at_ms", "at"},
};

static const struct moment *find_moment(const char *member)
{
	for (size_t i = 0; i < sizeof(moments) / sizeof(moments[0]); i++)
		if (strcmp(moments[i].member, member) == 0)
			return &moments[i];
	return NULL;
}

static bool is_ms(const struct node *n, size_t len)
{
	size_t end = sizeof(unit) - 1;

	return n->type == NODE_INT && len > end && strcmp(n->key + len - end, unit) == 0;
}

/* path: of the member; its end is changed. */
static void add_member_line(const struct node *n, struct buffer *path, struct buffer *out)
{
	size_t len = n->key ? strlen(n->key) : 0;
	bool ms = is_ms(n, len);
	const struct moment *m = ms ? find_moment(n->key) : NULL;
	char text[24];

	if (ms) {
		path->len -= m ? len : sizeof(unit) - 1;
		path->data[path->len] = '\0';
		buffer_append_string(path, m ? m->name : "");
	}
	words_text(out, path->data);
	buffer_append_string(out, ": ");
	if (m)
		words_time(out, n->integer);
	else if (ms)
		buffer_append_string(out, wrap_span(n->integer, text));
	else if (len && strcmp(n->key, "version") == 0)
		show_version(n->text, out);
	else
		words_text(out, n->text);
	buffer_append_string(out, "\n");
}

/* path: of n. */
static void add_members(const struct node *n, struct buffer *path, struct buffer *out)
{
	size_t len = path->len, number = 0;

	if (path->error)
		return;
	if (n->type != NODE_NULL && n->type < NODE_LIST)
		add_member_line(n, path, out);
	for (const struct node *child = n->type < NODE_LIST ? NULL : n->first; child;
		child = child->next) {
		key_path_append(path, len == 0, child, number++);
		add_members(child, path, out);
		path->len = len;
	}
}

void show_details(const struct show *s, struct buffer *out)
{
	struct buffer path;

	buffer_init(&path, 1u << 16);
	add_members(s->root, &path, out);
	buffer_take_error(out, &path);
	buffer_fini(&path);
}
