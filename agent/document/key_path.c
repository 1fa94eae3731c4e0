/*
 * Paths of keys. Surprising: a pattern is tried on the path and on each path above it, which end at
 * dots without a backslash; so fnmatch() never needs to know of escapes.
 */
#include "document/key_path.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

int key_path_append(struct buffer *path, bool first, const struct node *child, size_t number)
{
	const char *key = child->key;
	size_t plain;

	if (buffer_reserve(path, 1))
		return path->error;
	path->data[path->len] = '\0';
	if (!first)
		buffer_append(path, ".", 1);
	if (!key)
		return buffer_printf(path, "%zu", number);
	for (;; key++) {
		plain = strcspn(key, ".\\");
		buffer_append(path, key, plain);
		key += plain;
		if (*key == '\0')
			return path->error;
		buffer_append(path, "\\", 1);
		buffer_append(path, key, 1);
	}
}

/* Bytes up to the segment's dot or end. A backslash at the end is part of it. */
static size_t segment_len(const char *path)
{
	size_t len = 0;

	while (path[len] && path[len] != '.')
		len += path[len] == '\\' && path[len + 1] ? 2 : 1;
	return len;
}

/* True when the segment, as it is written in a path, spells this key. */
static bool spells_key(const char *segment, size_t len, const char *key)
{
	for (size_t i = 0; i < len; i++, key++) {
		if ((segment[i] == '\\') != (*key == '.' || *key == '\\'))
			return false;
		i += segment[i] == '\\';
		if (segment[i] != *key) /* at the end of the path: its NUL */
			return false;
	}
	return *key == '\0';
}

static const struct node *find_member(const struct node *map, const char *segment, size_t len)
{
	for (const struct node *n = map->first; n; n = n->next)
		if (spells_key(segment, len, n->key))
			return n;
	return NULL;
}

static const struct node *find_item(const struct node *list, const char *segment, size_t len)
{
	const struct node *n = list->first;
	size_t number = 0;

	if (len == 0 || len > 9 || (segment[0] == '0' && len > 1))
		return NULL;
	for (size_t i = 0; i < len; i++) {
		if (segment[i] < '0' || segment[i] > '9')
			return NULL;
		number = 10 * number + (size_t)(segment[i] - '0');
	}
	while (n && number-- > 0)
		n = n->next;
	return n;
}

const struct node *key_path_step(const struct node *parent, const char **path)
{
	const char *segment = *path;
	size_t len = segment_len(segment);

	*path = segment[len] ? segment + len + 1 : NULL;
	if (parent->type == NODE_MAP)
		return find_member(parent, segment, len);
	return parent->type == NODE_LIST ? find_item(parent, segment, len) : NULL;
}

const struct node *key_path_find(const struct node *root, const char *path)
{
	while (root && path)
		root = key_path_step(root, &path);
	return root;
}

static bool fits_a_pattern(char *const *patterns, const char *path)
{
	for (; *patterns; patterns++)
		if (strcmp(*patterns, path) == 0 || fnmatch(*patterns, path, FNM_NOESCAPE) == 0)
			return true;
	return false;
}

bool key_path_matches(char *const *patterns, const char *path)
{
	size_t end = 0;
	char *above;
	bool found = false;

	if (!patterns || !*patterns)
		return false;
	above = strdup(path);
	if (!above)
		return true;
	do {
		end += segment_len(path + end);
		above[end] = '\0';
		found = fits_a_pattern(patterns, above);
		above[end] = path[end];
	} while (!found && path[end++]);
	free(above);
	return found;
}
