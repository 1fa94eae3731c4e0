/*
 * Where `pullet dev` has its files: one temporary directory, removed at the end, and the programs
 * that it starts.
 *
 * The directory is made in $XDG_RUNTIME_DIR, where that is this user's, else in $TMPDIR or
 * /tmp; only its user may enter it. Threads: one. Ownership: dev_place_remove() removes all of it.
 * Errors: exit codes, with the sentence printed.
 */
#ifndef PULLET_CLI_DEV_PLACE_H
#define PULLET_CLI_DEV_PLACE_H

#include <stddef.h>

#define PLACE_ROOT 64 /* bytes: a socket's path is to fit behind it */
#define PLACE_PATH (PLACE_ROOT + 32)
#define PLACE_PROGRAM 4096

struct dev_place {
	char root[PLACE_ROOT]; /* "" = it was not made */
	char state[PLACE_PATH], run[PLACE_PATH], files[PLACE_PATH], example[PLACE_PATH],
		configuration[PLACE_PATH], socket[PLACE_PATH];
	char pullet[PLACE_PROGRAM], pulletd[PLACE_PROGRAM];
};

/* Finds the programs and makes the directory. */
int dev_place_make(const char *command, struct dev_place *p);
/* Makes a directory with a small document, web.yaml. */
int dev_place_make_example(const char *command, const struct dev_place *p);
/* Replaces a file below it as a whole. 0 or -errno. */
int dev_place_write(const struct dev_place *p, const char *path, const char *data, size_t len);
void dev_place_remove(struct dev_place *p);

/* Sentences. */
int dev_place_cannot_open(const char *command, const char *dir, int error);
void dev_place_note_odd(const char *command, const char *dir, const char *path, size_t more);
void dev_place_note_full(const char *command, const char *dir);

#endif
