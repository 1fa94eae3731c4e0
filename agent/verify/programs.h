/*
 * External commands run before publishing: `format: run` makes the text, `check:` validates it.
 *
 * The candidate for a check lies beside the file that it would replace, with its mode and
 * owner, under a temporary name that starts with a dot (for a set of files: a directory of them);
 * without a file, in the runtime directory. It is removed when the check has ended, or at the next
 * start.
 *
 * Threads: the loop's. Ownership: the candidate is borrowed until ended() or programs_free().
 * Bounds: as agent/process/process.h; a text as large as a candidate's; PROGRAMS_MAX_OUTPUT of a
 * check's output.
 */
#ifndef PULLET_PROGRAMS_H
#define PULLET_PROGRAMS_H

#include "verify/candidate.h"
#include "verify/verify.h"
#include "base/loop.h"

#define PROGRAMS_MAX_OUTPUT 65536

struct programs;

struct programs_result {
	bool rejected;  /* by `check`; an error without it says nothing about the version */
	bool timed_out; /* and so has this, once */
	enum verify_check check; /* CHECK_FORMAT or CHECK_PROGRAM */
	char why[VERIFY_WHY];    /* "" = it passed */
};

struct programs_options {
	struct loop *loop;
	const struct settings_config *config;
	const char *runtime_dir;
	struct candidate *candidate; /* its text is filled in by `format: run` */
	uint64_t generation;         /* of the version when published */
	/* Appends what a program wrote without the values of masked keys; NULL = as it is. */
	void (*scrub)(void *arg, struct buffer *out, const char *text, size_t len);
	/* Once, later, from the loop; the programs are freed when it returns. */
	void (*ended)(void *arg, const struct programs_result *result);
	void *arg;
};

/* This config has such programs. */
bool programs_wanted(const struct settings_config *config);
/* 0 and *ret_programs, or -errno with a sentence in why. */
int programs_start(
	const struct programs_options *options, struct programs **ret_programs, char why[FILE_WHY]);
/* Kills what runs; ended() is not called. NULL is fine. */
void programs_free(struct programs *t);
/* Appends the text, through scrub() if it is not NULL. */
void programs_scrub(void (*scrub)(void *arg, struct buffer *out, const char *text, size_t len),
	void *arg, struct buffer *out, const char *text, size_t len);
/* "NAME=value" texts for the environment of external commands: PULLET_CONFIG_NAME, PULLET_FILE
 * (NULL: without), PULLET_GENERATION and PULLET_CHANGED_KEYS (the same); NULL-ended, on the heap;
 * NULL when there is no memory. */
char **programs_environment(
	const char *name, const char *file, uint64_t generation, const char *keys, size_t keys_len);
void programs_environment_free(char **env);

#endif
