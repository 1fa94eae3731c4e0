/*
 * Names of environment variables that make programs run or load something before they read their
 * configuration: the author of a document must not choose them.
 *
 * Threads: any. Ownership: the reason is a literal. Bounds: none.
 */
#ifndef PULLET_VARIABLES_H
#define PULLET_VARIABLES_H

#include <stddef.h>

/* What the variable of this name does ("says what the loader loads"), or NULL: it may be set. Case
 * counts, as it does in an environment. */
const char *variables_danger(const char *name, size_t len);

#endif
