/*
 * The documents of a directory that is served, as configs of an agent: their names, and the
 * configuration to paste.
 *
 * A document is a file that the origin serves and whose name ends in .yaml, .yml or .json. Its
 * config has its path's name, with - for each /: team/web.yaml is team-web; where two have one
 * name, the second keeps its ending: web.json.
 *
 * Threads: one. Ownership: none kept. Bounds: SERVED_MAX documents, SERVED_DEPTH folders deep.
 */
#ifndef PULLET_CLI_SERVED_H
#define PULLET_CLI_SERVED_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/buffer.h"
#include "settings/form.h"

#define SERVED_MAX 100
#define SERVED_DEPTH 16
#define SERVED_PATH 256

enum served_result {
	SERVED_NEW,
	SERVED_KNOWN,
	SERVED_OTHER, /* no document */
	SERVED_ODD,   /* its path has characters that a name or an address may not have */
	SERVED_FULL
};

struct served {
	size_t count;
	struct served_document {
		char name[SETTINGS_MAX_NAME + 1], path[SERVED_PATH]; /* below the directory */
	} documents[SERVED_MAX];
	char odd[SERVED_PATH]; /* the last that was left out for its characters */
	size_t odd_count;      /* so many were */
	bool full;             /* others were left out for their number */
};

/* Where an agent finds them. */
struct served_from {
	const char *url, *push; /* "http://127.0.0.1:8080", "tcp://127.0.0.1:7377" */
	const char *server_key; /* of the push channel; "" = plain text */
	bool insecure;          /* plain text to other hosts */
	const char *files;      /* the directory that the configs' files are published in */
	const char *more;       /* lines of each config, indented; "" = none */
};

/* Adds one by its path below the directory. */
enum served_result served_add(struct served *s, const char *path);
/* Adds all that are there now, folder by folder, in the order of their names. What cannot be read
 * is left out. */
void served_find(struct served *s, int dir);
/* What follows the name of its config in that of the published file: ".yaml", or "" where the name
 * has it. */
const char *served_ending(const struct served_document *d);
/* Appends the keys push and configs. Nothing where there is no document. 0 or the buffer's error.
 */
int served_write(const struct served *s, const struct served_from *from, struct buffer *out);

#endif
