/*
 * Names of configs: those that have a snapshot, and the one that was meant by a wrong name.
 *
 * Threads: one. Ownership: a wrong name is borrowed, what is added is copied. Bounds: NAMES_FEW
 * names are kept, of however many.
 */
#ifndef PULLET_CLI_NAMES_H
#define PULLET_CLI_NAMES_H

#include <stddef.h>

#define NAMES_FEW 5 /* so many are all named */
#define NAMES_HINT 512

struct names { /* fields are private */
	const char *wrong;
	size_t count;
	unsigned least; /* edits from the wrong name to the best */
	char best[65], few[NAMES_FEW][65];
};

void names_init(struct names *n, const char *wrong);
/* One that there is; struct names is arg, so that names_of_snapshots() may call it. */
void names_add(void *arg, const char *name);
/* What to try instead: "did you mean 'web'?", "there are web, other", or where all of them are.
 * Returns text. */
const char *names_hint(const struct names *n, char text[NAMES_HINT]);

/* Visits the configs that have a snapshot in a runtime directory, in the order of their names. 0,
 * or -errno. */
int names_of_snapshots(const char *dir, void (*visit)(void *arg, const char *name), void *arg);

#endif
