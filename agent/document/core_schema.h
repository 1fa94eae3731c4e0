/*
 * The core schema of YAML 1.2: which plain scalar is a null, a boolean or a number, and what its
 * tags demand.
 *
 * Threads: any. Nothing fails but a number that is too large.
 */
#ifndef PULLET_CORE_SCHEMA_H
#define PULLET_CORE_SCHEMA_H

#include "document/document.h"

#define CORE_SCHEMA "tag:yaml.org,2002:" /* in front of its tags */

/* Sets the type and the value of a plain scalar. NULL, or a sentence: a number is too large. */
const char *core_schema_resolve(const char *text, struct node *ret);
/* Makes of what text resolved to what its tag demands. True when that can be; *problem then is what
 * core_schema_resolve() would say. */
bool core_schema_apply_tag(struct node *n, const char *tag, const char *text, const char **problem);
/* Tells whether a plain scalar is an integer, and its base. */
bool core_schema_is_integer(const char *text, int *ret_base);

#endif
