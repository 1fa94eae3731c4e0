/*
 * JSON Schema, draft 2020-12: a schema is compiled once, then documents are checked against it.
 *
 * The schema is a document itself (JSON or YAML) and may check documents of either kind. All
 * keywords of the core, applicator, unevaluated and validation vocabularies work; format, content*
 * and the annotations (title, default, ...) are read and ask for nothing. A reference leads to a
 * schema: #, #/JSON/POINTER, #ANCHOR of its own resource, or of another behind
 * a URI: one that begins at an $id, at the root or below it, or another file that was given;
 * nothing is ever fetched. A $dynamicRef is taken where it has one target that it can ever have, so
 * that it is the same as a $ref; where two resources have a $dynamicAnchor of that name, it is
 * rejected. $schema, where it is given, must be that of 2020-12; keywords of older drafts that are
 * none any more and would ask for something are rejected with the name of the one to write.
 *
 * Numbers: integers are compared as integers, with doubles exactly; multipleOf divides decimals as
 * they are written, so 19.99 is a multiple of 0.01.
 * .nan and .inf are numbers; .nan keeps no limit, and neither is a multiple. A key is a string.
 *
 * Patterns are PCRE2's in the meaning of ECMA 262: found anywhere unless ^ and $ say otherwise, $
 * is the very end, \d \w \b know ASCII only, \s all of Unicode's spaces. The dot takes a carriage
 * return, which there it would not; PCRE2's extensions are not rejected.
 *
 * Bounds: a schema and a document are documents (document/document.h), and a document that was put
 * together from several keeps the same bounds; SCHEMA_MAX_CHAIN; SCHEMA_MAX_WORK steps for one
 * check, those within patterns included, which is about a second at worst; SCHEMA_MAX_ERRORS lines
 * of errors, each below SCHEMA_MAX_LINE.
 *
 * Threads: a schema is immutable; any number of threads may check with it. Ownership: the tree that
 * schema_new() was given is borrowed and must stay until schema_free().
 */
#ifndef PULLET_SCHEMA_H
#define PULLET_SCHEMA_H

#include "lib/buffer.h"
#include "document/document.h"
#include "files/file.h"

#define SCHEMA_MAX_WORK 10000000 /* steps */
#define SCHEMA_MAX_CHAIN 64      /* schemas one behind the other ($ref, allOf, ...) for one value */
#define SCHEMA_MAX_ANCHORS 1000
#define SCHEMA_MAX_RESOURCES 1000 /* $id, and files */
#define SCHEMA_MAX_FILES 64       /* beside the schema's own */
#define SCHEMA_MAX_PATTERN 10000  /* bytes */
#define SCHEMA_MAX_ERRORS 10
#define SCHEMA_MAX_LINE 1200                     /* bytes */
#define SCHEMA_MAX_REPORT (11 * SCHEMA_MAX_LINE) /* what one check appends at most */

struct schema;

struct schema_file {             /* that references may lead to */
	const char *name;        /* "defs.json" */
	const struct node *root; /* a mapping or a boolean */
};

/* Compiles the tree under root, a mapping or a boolean: every keyword's value is checked, every
 * pattern compiled, every reference resolved. Borrows root and the files' roots until
 * schema_free(), the array for the call. Files (at most SCHEMA_MAX_FILES) are compiled when a
 * reference leads to them, by the $id at their root, else by their name:
 * "https://x/schemas/defs.json" and "defs.json" are the file defs.json. 0; -EINVAL with the first
 * error in why, such as "line 3, column 9: /properties/port/type: ..." (the path is that in the
 * schema), or, in a file, "defs.json: line 3, ..."; -ENOMEM, said in why as well. */
int schema_new(const struct node *root, const struct schema_file *files, size_t count,
	struct schema **ret_schema, char why[FILE_WHY]);
void schema_free(struct schema *s);
/* The names at places of keywords that are none, in quotes, each once, outer ones first, at most
 * ten, for one line of a log; "" when there are none. They are ignored, as the specification wants
 * it. */
const char *schema_unknown(const struct schema *s);
/* Checks the tree under instance. 0; -EINVAL, and the errors are appended to out, a line each, such
 * as "line 12, column 3: /db/port: 70000 is more than the maximum 65535", the last one "and N more"
 * if there are too many; -E2BIG when the work is used up, with one line that says where; -ENOMEM;
 * -EMSGSIZE when out has no room for SCHEMA_MAX_REPORT bytes more and needed it. Strings are shown
 * shortened; values whose path fits a pattern of mask (key_path_matches(); NULL = none) as ***.
 * Without line and column where the document has none (JSON); without path at the root.
 */
int schema_check(
	const struct schema *s, const struct node *instance, char *const *mask, struct buffer *out);

#endif
