/* Binary search among sorted names. */
#ifndef PULLET_SORTED_H
#define PULLET_SORTED_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Finds the first of `count` names that is not before `name`; name_of(list, i) is the i-th. True
 * when it equals the name; false: *ret_at is where to insert it. */
static inline bool sorted_find(const void *list, size_t count,
	const char *(*name_of)(const void *list, size_t i), const char *name, size_t *ret_at)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(name_of(list, middle), name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	*ret_at = low;
	return low < count && strcmp(name_of(list, low), name) == 0;
}

#endif
