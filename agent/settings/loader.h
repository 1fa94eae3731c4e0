/*
 * The state of loading a configuration: errors so far, places, and names that must be unique over
 * all files. Private to agent/settings.
 *
 * Threads: one. Ownership: the caller owns the struct (zeroed, then s, report and arg set) and ends
 * it with loader_fini(), which does not free the settings. Errors: short memory sets no_memory,
 * which is reported at the end. Bounds: LOADER_MAX_ERRORS are reported, the rest is counted.
 */
#ifndef PULLET_SETTINGS_LOADER_H
#define PULLET_SETTINGS_LOADER_H

#include <stdbool.h>
#include <stddef.h>

#include "settings/settings.h"

#define LOADER_MAX_ERRORS 1000

#define LOADER_MAX_KEYS 64 /* rows of a table */

struct place {
	const char *file; /* one of the loader's; NULL = not set */
	unsigned line, column;
};

/* A text that may occur only once in all files together. */
struct mark {
	const char *text,
		*of; /* of: the config that it belongs to, or NULL; both of the settings */
	struct place place;
	size_t order;
};

struct marks {
	struct mark *items;
	size_t count;
};

/* A mapping of the file, for who looks for a key in the wrong one. */
struct mapping;
struct section {
	const char *name, *below; /* "tls", "servers: NAME: tls:" */
	const struct mapping *keys;
};

/* What env_file says (environment.c). */
struct environment {
	struct variable {
		const char *name, *value;
	} * variables;
	size_t count;
	char *text; /* theirs */
};

struct loader {
	struct settings *s;
	settings_report report;
	settings_report look;  /* of what is not there on this host; NULL = nobody looks */
	bool look_all;         /* mounts that may hang, and what is in schemas, too */
	settings_report twins; /* of files that two configs publish; NULL = nobody asks */
	void *arg;
	void (*opens)(void *arg, const char *path); /* NULL = nobody asks */
	void *opens_arg;
	char **files; /* their names; places point at them */
	size_t file_count;
	const char *file; /* being read */
	const char *text; /* of it, without a byte order mark; NULL = unknown */
	size_t text_len;
	const struct section *sections; /* ends without a name */
	size_t errors;
	bool config_missed; /* a file or config was invalid: "no config is set" would mislead */
	bool file_missed;   /* what it names is unknown, and not missed */
	bool no_memory;
	struct marks names, paths, endpoints, labels, servers;
	struct marks froms; /* servers that configs name, in the order of those configs */
	struct environment environment;
	struct marks asides; /* and those that they name beside from, found by their texts */
	/* of the mappings that several files may add to */
	struct place root_seen[LOADER_MAX_KEYS], agent_seen[LOADER_MAX_KEYS],
		log_seen[LOADER_MAX_KEYS];
};

/* Reports one error: "file:line:column: " and the text; without line and column when the place has
 * none. Not when memory is short: what is missing then may have been there. */
void loader_complain(struct loader *l, struct place at, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Reports how many errors were not reported, if any. */
void loader_complain_rest(struct loader *l, const char *file);
/* Grows the array by one zeroed item; NULL when memory is short, the array is unchanged then. */
void *loader_room(struct loader *l, void *array, size_t count, size_t size);
/* A copy of the text, or NULL when memory is short. */
char *loader_copy(struct loader *l, const char *text);
/* Takes a file's name and keeps it as long as places need it. NULL when it is NULL or memory is
 * short. */
const char *loader_add_file(struct loader *l, char *name);
/* Remembers a text (borrowed; NULL is ignored) for loader_complain_twice(). */
void loader_note(
	struct loader *l, struct marks *m, const char *text, const char *of, struct place place);
/* Reports every text that was noted twice, with both places. */
void loader_complain_twice(struct loader *l, struct marks *m, const char *what);
/* Reports every path of a config that lies inside another one; after loader_complain_twice(). */
void loader_complain_inside(struct loader *l, const struct marks *m);
/* Before a file that the configuration names is read as a part of it. */
void loader_opens(const struct loader *l, const char *path);
void loader_fini(struct loader *l);

#endif
