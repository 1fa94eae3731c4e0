/* How names end: ".json", ":443". A pure function, for any thread. */
#ifndef PULLET_ENDING_H
#define PULLET_ENDING_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* True when something stands before the ending. len bytes at text, which needs no NUL. */
static inline bool ends_in(const char *text, size_t len, const char *ending)
{
	size_t n = strlen(ending);

	return len > n && memcmp(text + len - n, ending, n) == 0;
}

#endif
