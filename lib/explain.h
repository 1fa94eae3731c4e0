/*
 * What was probably meant: names that are nearly the same. Inside of libpullet only; pure
 * functions, for any thread.
 */
#ifndef PULLET_LIB_EXPLAIN_H
#define PULLET_LIB_EXPLAIN_H

#include <stdbool.h>
#include <stddef.h>

/* True when one name is the other with a character more, less or another one, or two that are
 * swapped, not counting case, '-' and '_'; of each at most 512 bytes are looked at. */
bool explain_is_near(const char *a, size_t a_len, const char *b, size_t b_len);

#endif
