/*
 * A sorted list of keys. Surprising: a key that is long or holds a NUL is kept as its beginning and
 * a hash of the whole; two that collide count once.
 */
#include "fleet/ghosts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"
#include "base/sorted.h"

#define BEGINNING (GHOSTS_KEY - 32)
#define OVERHEAD 24 /* of what malloc() gives */

struct entry {
	enum ghost kind;
	char key[];
};

struct ghosts {
	struct entry **entries;
	size_t count, bytes;
};

static const char *const names[GHOST_KINDS] = {
	[GHOST_NONE] = "nothing",
	[GHOST_KEY] = "the key names no host",
	[GHOST_VALUE] = "the value is not a receipt",
	[GHOST_NEWER] = "of a newer pullet",
	[GHOST_LARGE] = "larger than an agent writes",
	[GHOST_ODD] = "invalid characters",
	[GHOST_UNBOUND] = "under no lease",
	[GHOST_HOST] = "the value names another host or page than the key",
	[GHOST_FUTURE] = "a time in the future",
	[GHOST_SHARED] = "a lease shared by several hosts",
	[GHOST_STRANGE] = "an unknown host",
	[GHOST_CONFIG] = "a config unknown for this host",
};

const char *ghost_name(enum ghost kind)
{
	return names[kind];
}

static void shorten_key(const char *key, size_t len, char ret_text[GHOSTS_KEY])
{
	size_t plain = strnlen(key, len);

	if (plain == len && len < GHOSTS_KEY) {
		memcpy(ret_text, key, len);
		ret_text[len] = '\0';
		return;
	}
	if (plain > BEGINNING)
		plain = BEGINNING;
	memcpy(ret_text, key, plain);
	snprintf(ret_text + plain, GHOSTS_KEY - plain, "...%016" PRIx64,
		hash_bytes(HASH_START, key, len));
}

static const char *key_at(const void *ghosts, size_t i)
{
	return ((const struct ghosts *)ghosts)->entries[i]->key;
}

static size_t entry_bytes(const struct entry *e)
{
	return sizeof(*e) + strlen(e->key) + 1 + OVERHEAD;
}

static void drop_ghost(struct ghosts *g, size_t at)
{
	g->bytes -= entry_bytes(g->entries[at]);
	free(g->entries[at]);
	g->count--;
	memmove(&g->entries[at], &g->entries[at + 1], (g->count - at) * sizeof(struct entry *));
}

static int insert_ghost(struct ghosts *g, size_t at, const char *key, enum ghost kind)
{
	struct entry **entries = array_room(g->entries, g->count, sizeof(struct entry *)), *e;
	size_t len = strlen(key) + 1;

	if (entries)
		g->entries = entries;
	e = entries ? malloc(sizeof(*e) + len) : NULL;
	if (!e)
		return -ENOMEM;
	e->kind = kind;
	memcpy(e->key, key, len);
	memmove(&g->entries[at + 1], &g->entries[at], (g->count - at) * sizeof(struct entry *));
	g->entries[at] = e;
	g->count++;
	g->bytes += entry_bytes(e);
	return 0;
}

int ghosts_put(struct ghosts *g, const char *key, size_t len, enum ghost kind)
{
	char text[GHOSTS_KEY];
	bool found;
	size_t at;

	shorten_key(key, len, text);
	found = sorted_find(g, g->count, key_at, text, &at);
	if (found && kind == GHOST_NONE)
		drop_ghost(g, at);
	else if (found)
		g->entries[at]->kind = kind;
	return found || kind == GHOST_NONE ? 0 : insert_ghost(g, at, text, kind);
}

void ghosts_visit(const struct ghosts *g,
	void (*visit)(void *arg, const char *key, enum ghost kind), void *arg)
{
	for (size_t i = 0; i < g->count; i++)
		visit(arg, g->entries[i]->key, g->entries[i]->kind);
}

size_t ghosts_bytes(const struct ghosts *g)
{
	return g->bytes + 2 * g->count * sizeof(struct entry *); /* at the most */
}

struct ghosts *ghosts_new(void)
{
	return calloc(1, sizeof(struct ghosts));
}

void ghosts_free(struct ghosts *g)
{
	if (!g)
		return;
	for (size_t i = 0; i < g->count; i++)
		free(g->entries[i]);
	free(g->entries);
	free(g);
}
