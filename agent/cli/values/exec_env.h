/*
 * The environment of a program that is started with the values of a config: the caller's variables,
 * those of the config in place of equal ones, and PULLET_CONFIG_NAME, PULLET_GENERATION and
 * PULLET_VERSION.
 *
 * Threads: one. Ownership: the caller's variables are borrowed from environ, everything else is
 * copied. Errors: -EINVAL, -E2BIG, -EBADMSG, with a sentence; -ENOMEM, where it is left alone.
 * Bounds: what this system starts a program with (sysconf(_SC_ARG_MAX), 128 KiB a variable).
 */
#ifndef PULLET_CLI_EXEC_ENV_H
#define PULLET_CLI_EXEC_ENV_H

#include "cli/values/write.h"

struct exec_env {
	struct buffer texts; /* NAME=value, a NUL behind each */
	size_t values;       /* bytes of the config's, which come first */
	char **list;         /* for execve(); ends with NULL */
};

/* Fills *ret with the version that is open. argv: what is started with it, which needs room too.
 * Nothing to free on errors. */
int exec_env_read(struct pullet *p, const char *config, const char *prefix, char *const *argv,
	struct exec_env *ret, struct export_error *ret_error);
/* True when both have the same values of the config. */
bool exec_env_same(const struct exec_env *a, const struct exec_env *b);
/* An empty one ({0}) is fine. */
void exec_env_fini(struct exec_env *e);

#endif
