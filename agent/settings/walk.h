/*
 * Reads one mapping of the agent's configuration by a table of keys: a row names the key, the
 * function that checks its value, and the member of the object that takes it.
 *
 * Private to agent/settings. Threads: one. Errors: reported through the loader, with their places;
 * an invalid value is left out.
 */
#ifndef PULLET_SETTINGS_WALK_H
#define PULLET_SETTINGS_WALK_H

#include <stdint.h>

#include "document/document.h"
#include "settings/loader.h"
#include "settings/look.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define MEMBER(type, member)                                                                       \
	.offset = offsetof(struct type, member), .size = sizeof(((struct type *)0)->member)
#define SECOND UINT64_C(1000)
#define HOUR (3600 * SECOND)

struct key;
/* Checks a value and stores it in object, at the row's offset. */
typedef void (*walk_setter)(
	struct loader *l, const struct node *n, const struct key *k, void *object);

struct choice {
	const char *name;
	uint64_t value;
};

struct mapping;

struct key {
	const char *name;
	walk_setter set;
	size_t offset, size; /* of the member */
	uint64_t min, max;   /* of a number, a percentage, milliseconds or bytes */
	const char *(*check)(const char *text);
	const struct choice *choices;  /* ends with a NULL name */
	const struct mapping *mapping; /* the keys below this one; of the same object */
	const char *wanted; /* what they are: "a mapping with ..."; NULL = it may be empty */
	bool required;
	bool merges;    /* may stand in several files: they add to each other */
	enum look look; /* of a path */
	bool hidden;    /* the value is never shown: it is a secret, or may be one by mistake */
};

struct mapping {
	const struct key *keys;
	size_t count; /* at most LOADER_MAX_KEYS */
};
#define KEYS(rows) (&(const struct mapping){rows, COUNT(rows)})

/* The place of a value, or of its key. */
struct place walk_place(const struct loader *l, const struct node *n);
struct place walk_key_place(const struct loader *l, const struct node *n);

/* "KEY: VALUE why", without the value where it is hidden or no text. */
void walk_complain(struct loader *l, const struct node *n, const struct key *k, const char *why);
/* True when the node is of one of the types; else reports that `name` must be `wanted`. */
bool walk_expect(struct loader *l, const struct node *n, const char *name, unsigned types,
	const char *wanted);
/* An empty value is an empty mapping: all its keys may be commented out. */
bool walk_expect_map(struct loader *l, const struct node *n, const char *name);
/* True while there is room; else reports that there is none. */
bool walk_has_room(
	struct loader *l, const struct node *n, size_t count, size_t max, const char *what);

/* The kinds of values: text by the row's check, "30s", "8MiB", "10%", a whole number, one of the
 * row's choices, a file mode, true or false. */
void walk_set_text(struct loader *l, const struct node *n, const struct key *k, void *object);
void walk_set_duration(struct loader *l, const struct node *n, const struct key *k, void *object);
void walk_set_size(struct loader *l, const struct node *n, const struct key *k, void *object);
void walk_set_percent(struct loader *l, const struct node *n, const struct key *k, void *object);
void walk_set_number(struct loader *l, const struct node *n, const struct key *k, void *object);
void walk_set_choice(struct loader *l, const struct node *n, const struct key *k, void *object);
void walk_set_mode(struct loader *l, const struct node *n, const struct key *k, void *object);
void walk_set_bool(struct loader *l, const struct node *n, const struct key *k, void *object);
/* A list of 1 to max texts by the row's check, into an array that ends with NULL; where max is 1, a
 * text instead of a list. */
void walk_set_texts(struct loader *l, const struct node *n, const struct key *k, void *object);
/* The same of a command: the first is an absolute path. */
void walk_set_argv(struct loader *l, const struct node *n, const struct key *k, void *object);
void walk_free_texts(char **texts);
/* The row's mapping, into the same object. */
void walk_set_mapping(struct loader *l, const struct node *n, const struct key *k, void *object);

/* The row of a key, or NULL. */
const struct key *walk_find_key(const struct mapping *m, const char *name);
/* Each child by its row. seen has a place per row where several files may set the keys of one
 * object, else it is NULL. */
void walk_mapping(struct loader *l, const struct node *map, const struct mapping *m,
	const char *where, struct place *seen, void *object);
/* Frees the texts that these rows have stored in object, those of mappings below included. */
void walk_free(const struct mapping *m, void *object);

#endif
