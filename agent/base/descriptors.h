/*
 * File descriptors, counted before they are taken: libzmq aborts when its own cannot be had, and
 * what runs half is worse than what says at the start how many it needs.
 *
 * Threads: any, at the start or from the loop; what another thread takes meanwhile is not seen.
 * Errors: -EMFILE and a sentence. Bounds: looks at as many descriptors as are open and needed.
 */
#ifndef PULLET_DESCRIPTORS_H
#define PULLET_DESCRIPTORS_H

#include <stddef.h>

#define DESCRIPTORS_WHY 512

struct descriptors_need {
	const char *what;
	size_t count; /* 0 = not needed */
};

/* Are there as many as all of these need, beside those that are open? Raises the soft limit to the
 * hard one where only that makes it so. 0 or -EMFILE. */
int descriptors_check(
	const struct descriptors_need *needs, size_t count, char why[DESCRIPTORS_WHY]);

#endif
