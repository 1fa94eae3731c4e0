/*
 * Arrays that grow.
 *
 * Threads: any. Ownership: the caller's, for free(). Errors: NULL, and the array is as it was.
 */
#ifndef PULLET_ARRAY_H
#define PULLET_ARRAY_H

#include <stdlib.h>

/* Makes room for one item behind `count` others. Doubles at powers of two, so that no capacity is
 * kept beside the count. */
static inline void *array_room(void *array, size_t count, size_t size)
{
	if (count & (count - 1))
		return array;
	return reallocarray(array, count ? 2 * count : 1, size);
}

#endif
