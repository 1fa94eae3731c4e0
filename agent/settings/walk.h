/*
 * The walk through one mapping of the agent's configuration: a table of keys, a function per kind
 * of value, every error told where it stands.
 *
 * A row names the key, the function that checks its value, and the member of the object that takes
 * it. Private to agent/settings. Threads: one. Errors: told through the loader, and counted there;
 * a value that is not good is left out.
 */
#ifndef PULLET_SETTINGS_WALK_H
#define PULLET_SETTINGS_WALK_H

#include <stdint.h>

#include "document/document.h"
#include "settings/loader.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define MEMBER(type, member)                                                                       \
	.offset = offsetof(struct type, member), .size = sizeof(((struct type *)0)->member)
#define SECOND UINT64_C(1000)
#define HOUR (3600 * SECOND)

struct key;
/* Checks a value and stores it in object, at the row's offset. */
typedef void (*key_set)(struct loader *l, const struct node *n, const struct key *k, void *object);

struct choice {
	const char *name;
	uint64_t value;
};

struct key {
	const char *name;
	key_set set;
	size_t offset, size; /* of the member */
	uint64_t min, max;   /* of a number, a percentage, milliseconds or bytes */
	const char *(*check)(const char *text);
	const struct choice *choices; /* ends with a NULL name */
	bool required;
	bool merges; /* may stand in several files: they add to each other */
	bool hidden; /* the value is never shown: it is a secret, or may be one by mistake */
};

struct mapping {
	const struct key *keys;
	size_t count;
};

/* Where a value, or its key, stands. */
struct place place_of(const struct loader *l, const struct node *n);
struct place place_of_key(const struct loader *l, const struct node *n);

/* "KEY: VALUE why", without the value where it is hidden or no text. */
void complain_value(struct loader *l, const struct node *n, const struct key *k, const char *why);
/* True when the node is of one of the types; else tells that `name` must be `wanted`. */
bool expect(struct loader *l, const struct node *n, const char *name, unsigned types,
	const char *wanted);
/* An empty value is an empty mapping: all its keys may be commented out. */
bool expect_map(struct loader *l, const struct node *n, const char *name);
/* True while there is room; tells that there is none. */
bool has_room(struct loader *l, const struct node *n, size_t count, size_t max, const char *what);

/* The kinds of values: text by the row's check, "30s", "8MiB", "10%", a whole number, one of the
 * row's choices, a file mode, true or false. */
void set_text(struct loader *l, const struct node *n, const struct key *k, void *object);
void set_duration(struct loader *l, const struct node *n, const struct key *k, void *object);
void set_size(struct loader *l, const struct node *n, const struct key *k, void *object);
void set_percent(struct loader *l, const struct node *n, const struct key *k, void *object);
void set_number(struct loader *l, const struct node *n, const struct key *k, void *object);
void set_choice(struct loader *l, const struct node *n, const struct key *k, void *object);
void set_mode(struct loader *l, const struct node *n, const struct key *k, void *object);
void set_bool(struct loader *l, const struct node *n, const struct key *k, void *object);
/* A list of 1 to max texts by the row's check, into an array that ends with NULL; where max is 1, a
 * text instead of a list. */
void set_texts(struct loader *l, const struct node *n, const struct key *k, void *object);
void settings_texts_free(char **texts);

/* Each child by its row. seen has a place per row; it outlives the call where several files may set
 * the keys of one object. */
void settings_walk(struct loader *l, const struct node *map, const struct mapping *m,
	const char *where, struct place *seen, void *object);

#endif
