/*
 * Numbers of documents, compared and divided without rounding. Private to agent/schema.
 *
 * Threads: any. All nodes here are of type NODE_INT or NODE_DOUBLE.
 */
#ifndef PULLET_SCHEMA_NUMBER_H
#define PULLET_SCHEMA_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

#include "document/document.h"

/* Below 0, 0 or above 0: a total order by value; 1 and 1.0 are equal; NaN is equal to itself and
 * below all others. */
int number_compare(const struct node *a, const struct node *b);
/* Has no fraction: 1, 1.0, 1e300. */
bool number_is_whole(const struct node *n);
/* True when n is a whole number that is not negative; *ret_count is it, UINT64_MAX at most. */
bool number_count(const struct node *n, uint64_t *ret_count);

struct divisor { /* digits * 10^exponent */
	uint64_t digits;
	int64_t exponent;
};

/* True when n is finite, above 0 and has at most 18 digits that count. */
bool number_divisor(const struct node *n, struct divisor *ret_divisor);
/* True when n is finite and, as the decimal that it is written as, a multiple of d. Takes time by
 * the length of its text. */
bool number_is_multiple(const struct node *n, const struct divisor *d);

#endif
