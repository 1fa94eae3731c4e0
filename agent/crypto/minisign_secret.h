/*
 * The secret key of signatures in minisign's form: its file's text read and written, and what is
 * signed with it. No I/O, no clock, no randomness.
 *
 * A key's text is plain (minisign -G -W) or sealed with a password by scrypt. Sealing costs 128 MiB
 * of memory here; up to the 1 GiB of the tool's own keys is taken when one is opened.
 *
 * Threads: any. Ownership: everything is borrowed for the call; the caller wipes keys and texts.
 * Errors: -errno with a constant sentence that holds nothing of the text. Bounds:
 * MINISIGN_SECRET_MAX_FILE.
 */
#ifndef PULLET_MINISIGN_SECRET_H
#define PULLET_MINISIGN_SECRET_H

#include <stddef.h>

#include "crypto/minisign.h"

#define MINISIGN_SECRET_MAX_FILE 4096
#define MINISIGN_SECRET_TEXT 512 /* of a secret or a public key's file, with the NUL */
#define MINISIGN_SECRET_SALT 32

struct minisign_secret {
	unsigned char id[MINISIGN_ID], seed[MINISIGN_KEY], key[MINISIGN_KEY]; /* key: public */
};

/* Makes the public key of id and seed, both random. 0 or -ENOMEM. */
int minisign_secret_make(struct minisign_secret *k);
/* Reads a secret key's file. password: NULL = none is known. 0; -EINVAL: it is none, or one that
 * would take more memory; -ENOKEY: it is sealed and there is no password; -EKEYREJECTED: not with
 * this one; -ENOMEM. */
int minisign_secret_read(const char *text, size_t len, const char *password,
	struct minisign_secret *ret_key, const char **ret_why);
/* Writes one: sealed, or plain where password is NULL. 0 or -ENOMEM. */
int minisign_secret_write(const struct minisign_secret *k, const char *password,
	const unsigned char salt[MINISIGN_SECRET_SALT], char ret_text[MINISIGN_SECRET_TEXT]);
/* Writes the file of the public key, whose last line is what verify: public_key names. */
int minisign_secret_write_public(
	const struct minisign_secret *k, char ret_text[MINISIGN_SECRET_TEXT]);
/* Signs the document's BLAKE2b-512, as minisign does since 0.10, and the trusted comment, which has
 * no line end. 0 and the signature file's text; -EMSGSIZE: more than MINISIGN_MAX_FILE; -ENOMEM.
 */
int minisign_secret_sign(const struct minisign_secret *k, const void *document, size_t len,
	const char *comment, char ret_text[MINISIGN_MAX_FILE + 1]);

#endif
