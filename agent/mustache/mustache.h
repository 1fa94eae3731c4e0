/*
 * Mustache templates: the text that a document makes of one. The specification
 * (github.com/mustache/spec 1.4) with its modules comments, delimiters, interpolation, inverted,
 * partials and sections; not inheritance, dynamic names and lambdas, whose tags are errors.
 *
 * False is what is not there, null, false or an empty list; everything else is true, "" and 0 too.
 * Numbers are written as in the document. A list or a mapping has no text: an error.
 *
 * strict (what the specification has not): a variable that is not there is an error, and so is a
 * partial; sections may be about what is not there. In the other mode both are empty.
 * MUSTACHE_LINE: nothing is escaped, and {{name}} takes no value with a control character in it, so
 * that a value stays in its line; {{{name}}} and {{&name}} take any. MUSTACHE_HTML: {{name}}
 * escapes & < > and ", as the specification says.
 *
 * Threads: immutable once compiled. Ownership: a template owns copies of its texts. Errors: -EINVAL
 * with a sentence that begins with FILE:LINE:COLUMN (columns count characters) and never has a
 * value in it; -EMSGSIZE (the text is over out's maximum), -ENOMEM. Bounds: those below.
 */
#ifndef PULLET_MUSTACHE_H
#define PULLET_MUSTACHE_H

#include <stdbool.h>
#include <stddef.h>

#include "document/document.h"
#include "files/file.h"

#define MUSTACHE_MAX_BYTES (256u << 10) /* of all texts together */
#define MUSTACHE_MAX_FILES 64
#define MUSTACHE_MAX_DEPTH 100      /* sections and partials within each other */
#define MUSTACHE_MAX_STEPS 50000000 /* tags, texts and keys looked at while it is rendered */

struct mustache;

enum mustache_escape { MUSTACHE_LINE, MUSTACHE_HTML };

struct mustache_options {
	const char *name; /* of the template, for sentences: its path */
	bool strict;
	enum mustache_escape escape;
	/* Appends the text of a partial, and writes its name for sentences. 0, -ENOENT, or another
	 * -errno; a sentence of either in why. NULL: there are none. */
	int (*partial)(void *arg, const char *name, struct buffer *text, char ret_file[FILE_WHY],
		char why[FILE_WHY]);
	void *arg;
};

/* Compiles a text and all partials that it leads to. */
int mustache_new(const struct mustache_options *o, const char *text, size_t len,
	struct mustache **ret_template, char why[FILE_WHY]);
/* NULL is fine. */
void mustache_free(struct mustache *m);
/* Appends what it makes of a document. On errors out holds a part of it. */
int mustache_render(
	const struct mustache *m, const struct node *root, struct buffer *out, char why[FILE_WHY]);
/* Appends all that its output follows from beside the document: for a digest. */
int mustache_describe(const struct mustache *m, struct buffer *out);

#endif
