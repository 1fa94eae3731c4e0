/*
 * A compiled template: one list of steps a file, which refer to its text.
 *
 * Threads: immutable once compiled. Ownership: the struct owns everything in it.
 */
#ifndef PULLET_MUSTACHE_TEMPLATE_H
#define PULLET_MUSTACHE_TEMPLATE_H

#include "mustache/mustache.h"

enum step_kind {
	STEP_TEXT,     /* as it is */
	STEP_INDENT,   /* a line begins: of a partial, its tag's indentation */
	STEP_VALUE,    /* a variable, which may be escaped */
	STEP_RAW,      /* one that is not */
	STEP_SECTION,  /* to `end` */
	STEP_INVERTED, /* to `end` */
	STEP_END,
	STEP_PARTIAL, /* file `end`, which stands alone on its line; its text is the indentation */
	STEP_INLINE   /* file `end` within a line: not indented */
};

struct step {
	enum step_kind kind;
	size_t at, len; /* in the file's text: the text, the name, the indentation */
	size_t place;   /* of the tag */
	size_t end;     /* index of the STEP_END, or of a file */
};

struct template_file {
	char *name;  /* of the partial; NULL of the template itself */
	char *shown; /* for sentences */
	struct buffer text;
	struct step *steps;
	size_t count;
};

struct mustache {
	bool strict;
	enum mustache_escape escape;
	size_t count, bytes;
	struct template_file files[MUSTACHE_MAX_FILES];
};

/* Writes a sentence behind the place of an offset. -EINVAL. */
int template_error(const struct template_file *f, size_t offset, char why[FILE_WHY],
	const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
