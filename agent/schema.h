/*
 * JSON Schema, draft 2020-12: a schema is compiled once, then documents are checked against it.
 *
 * The schema is a document itself (JSON or YAML) and may stand for documents of either kind. All
 * keywords of the core, applicator, unevaluated and validation vocabularies work; format, content*
 * and the annotations (title, default, ...) are read and ask for nothing. References stay within
 * the file: #, #/JSON/POINTER, #ANCHOR, also behind the schema's own $id; they must lead to a place
 * where schemas stand. As one file is one schema resource ($id below the root is refused), a
 * $dynamicRef has one target it can ever have and is the same as a $ref. $schema, where it is
 * given, must be that of 2020-12.
 *
 * Numbers: integers are compared as integers, with doubles exactly; multipleOf divides decimals as
 * they are written (of JSON: as the shortest text that reads back), so 19.99 is a multiple of 0.01.
 * .nan and .inf are numbers; .nan keeps no limit, and neither is a multiple. A key is a string.
 *
 * Patterns are PCRE2's in the meaning of ECMA 262: found anywhere unless ^ and $ say otherwise, $
 * is the very end, \d \w \b know ASCII only, \s all of Unicode's spaces. The dot takes a carriage
 * return, which there it would not; what PCRE2 has more is not refused.
 *
 * Bounds: a schema and a document are documents (document.h), and a document that was put together
 * from several keeps the same bounds; SCHEMA_MAX_CHAIN; SCHEMA_MAX_WORK steps for one check, those
 * within patterns included, which is about a second at worst; SCHEMA_MAX_ERRORS lines of errors,
 * each below SCHEMA_MAX_LINE.
 *
 * Threads: a schema is immutable; any number of threads may check with it. Ownership: the tree that
 * schema_new() was given is borrowed and must stay until schema_free().
 */
#ifndef PULLET_SCHEMA_H
#define PULLET_SCHEMA_H

#include "../lib/buffer.h"
#include "document.h"
#include "file.h"

#define SCHEMA_MAX_WORK 10000000 /* steps */
#define SCHEMA_MAX_CHAIN 64      /* schemas one behind the other ($ref, allOf, ...) for one value */
#define SCHEMA_MAX_ANCHORS 1000
#define SCHEMA_MAX_PATTERN 10000 /* bytes */
#define SCHEMA_MAX_ERRORS 10
#define SCHEMA_MAX_LINE 1200                     /* bytes */
#define SCHEMA_MAX_REPORT (11 * SCHEMA_MAX_LINE) /* what one check appends at most */

struct schema;

/* Compiles the tree under root, a mapping or a boolean: every keyword's value is checked, every
 * pattern compiled, every reference resolved. Borrows root until schema_free(). 0; -EINVAL with the
 * first error in why, such as "line 3, column 9: /properties/port/type: ..." (the path is that in
 * the schema); -ENOMEM, said in why as well. */
int schema_new(const struct node *root, struct schema **ret_schema, char why[FILE_WHY]);
void schema_free(struct schema *s);
/* The names at places of keywords that are none, in quotes, each once, outer ones first, at most
 * ten, for one line of a log; "" when there are none. They are ignored, as the specification wants
 * it. */
const char *schema_unknown(const struct schema *s);
/* Checks the tree under instance. 0; -EINVAL, and the errors are appended to out, a line each, such
 * as "line 12, column 3: /db/port: 70000 is more than the maximum 65535", the last one "and N more"
 * if there are too many; -E2BIG when the work is used up, with one line that says where; -ENOMEM;
 * -EMSGSIZE when out has no room for SCHEMA_MAX_REPORT bytes more and needed it. Strings are shown
 * shortened; values whose path fits a pattern of mask (keypath_matches(); NULL = none) as ***.
 * Without line and column where the document has none (JSON); without path at the root.
 */
int schema_check(
	const struct schema *s, const struct node *instance, char *const *mask, struct buffer *out);

#endif
