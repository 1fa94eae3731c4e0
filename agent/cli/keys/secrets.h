/*
 * Passwords and keys of signatures, for `pullet sign` and `pullet keygen --sign`.
 *
 * Threads: none. Ownership: the caller wipes returned passwords. Errors: an exit code, the sentence
 * printed.
 */
#ifndef PULLET_CLI_SECRETS_H
#define PULLET_CLI_SECRETS_H

#include "crypto/minisign_secret.h"

#define SECRETS_PASSWORD 1024 /* as of minisign, with the NUL */

/* Reads a password: the first line of a file that others cannot read. */
int secrets_password(const char *command, const char *path, char ret_password[SECRETS_PASSWORD]);
/* Makes a key for signatures and writes FILE and FILE.pub; prints the public key. Sealed, where
 * password_file is not NULL. */
int secrets_make(const char *command, const char *path, const char *password_file);

#endif
