/*
 * Counts file descriptors before they are opened: libzmq aborts without its own, and an agent that
 * runs half is worse than one that says at the start how many it needs.
 *
 * Threads: any, at the start or from the loop; ignores what other threads open meanwhile.
 * Errors: -EMFILE and a sentence. Bounds: tries as many descriptors as are open and needed.
 */
#ifndef PULLET_DESCRIPTORS_H
#define PULLET_DESCRIPTORS_H

#include <stddef.h>

#define DESCRIPTORS_WHY 512
#define DESCRIPTORS_TRIED 4

struct descriptors_need {
	const char *what;
	size_t count; /* 0 = not needed */
};

/* Checks that all needs fit beside the open descriptors. Raises the soft limit to the hard one if
 * need be. 0 or -EMFILE. */
int descriptors_check(
	const struct descriptors_need *needs, size_t count, char why[DESCRIPTORS_WHY]);

/* Opens standard input, output and error where they are closed, so that nothing else gets their
 * numbers, and with them what is logged or printed. Reading and writing still fail (EBADF), and
 * programs that are started find them closed. */
void descriptors_keep_standard(void);

/* Opens as many sockets as a request needs, DESCRIPTORS_TRIED, and closes them again: some
 * libraries say only that it failed. 0, or what the kernel says (-EMFILE, -ENFILE, -ENOBUFS,
 * -ENOMEM). */
int descriptors_try(void);

#endif
