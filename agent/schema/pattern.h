/*
 * Regular expressions of schemas, by PCRE2, in the meaning of ECMA 262 and with their work counted.
 * Private to agent/schema.
 *
 * Threads: a pattern is immutable; a matcher belongs to one thread at a time.
 */
#ifndef PULLET_SCHEMA_PATTERN_H
#define PULLET_SCHEMA_PATTERN_H

#include <stddef.h>
#include <stdint.h>

struct pattern;
struct matcher; /* what matching needs beside the pattern: memory, limits */

#define PATTERN_WHY 200

/* Compiles UTF-8 text. 0, -EINVAL with what is wrong in why, -ENOMEM. */
int pattern_new(const char *text, size_t len, struct pattern **ret_pattern, char why[PATTERN_WHY]);
void pattern_free(struct pattern *p);
/* NULL when memory is short. */
struct matcher *matcher_new(void);
void matcher_free(struct matcher *m);
/* True (1) when the pattern is found in the text. Takes its steps off *work; -E2BIG when they, or
 * the memory that one match may use, are not enough; -ENOMEM. */
int pattern_match(
	const struct pattern *p, struct matcher *m, const char *text, size_t len, uint64_t *work);

#endif
