/*
 * What was probably meant by a value or a key of the agent's configuration that does not fit.
 *
 * Private to agent/settings. Threads: one. A guess is the end of a sentence, and may move the place
 * of the error to the character in question. It never holds text of the file.
 */
#ifndef PULLET_SETTINGS_GUESS_H
#define PULLET_SETTINGS_GUESS_H

#include <stddef.h>

#include "document/document.h"
#include "settings/loader.h"

/* Of a value that is of none of these types (1u << NODE_...), or has no valid form. "" = none. */
const char *guess_value(
	const struct loader *l, const struct node *n, unsigned types, struct place *place);
/* Of a key that nobody knows, beside its spelling. NULL = none. */
const char *guess_key(const struct loader *l, const struct node *n, struct place *place);
/* The boolean that a word means, or NULL. */
const char *guess_boolean(const char *word);

#endif
