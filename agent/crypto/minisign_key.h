/*
 * The secret key of signatures in minisign's form: its file's text read and written, and what is
 * signed with it. No I/O, no clock, no randomness.
 *
 * A key's text is plain (minisign -G -W) or sealed with a password by scrypt. Sealing costs 128 MiB
 * of memory here; up to the 1 GiB of the tool's own keys is taken when one is opened.
 *
 * Threads: any. Ownership: everything is borrowed for the call; the caller wipes keys and texts.
 * Errors: -errno with a constant sentence that holds nothing of the text. Bounds: SIGNKEY_MAX_FILE.
 */
#ifndef PULLET_SIGNKEY_H
#define PULLET_SIGNKEY_H

#include <stddef.h>

#include "crypto/minisign.h"

#define SIGNKEY_MAX_FILE 4096
#define SIGNKEY_TEXT 512 /* of a secret or a public key's file, with the NUL */
#define SIGNKEY_SALT 32

struct signkey {
	unsigned char id[SIGNATURE_ID], seed[SIGNATURE_KEY], key[SIGNATURE_KEY]; /* key: public */
};

/* Makes the public key of id and seed, both random. 0 or -ENOMEM. */
int signkey_make(struct signkey *k);
/* Reads a secret key's file. password: NULL = none is known. 0; -EINVAL: it is none, or one that
 * would take more memory; -ENOKEY: it is sealed and there is no password; -EKEYREJECTED: not with
 * this one; -ENOMEM. */
int signkey_read(const char *text, size_t len, const char *password, struct signkey *ret_key,
	const char **ret_why);
/* Writes one: sealed, or plain where password is NULL. 0 or -ENOMEM. */
int signkey_write(const struct signkey *k, const char *password,
	const unsigned char salt[SIGNKEY_SALT], char ret_text[SIGNKEY_TEXT]);
/* Writes the file of the public key, whose last line is what verify: public_key names. */
int signkey_write_public(const struct signkey *k, char ret_text[SIGNKEY_TEXT]);
/* Signs the document's BLAKE2b-512, as minisign does since 0.10, and the trusted comment, which has
 * no line end. 0 and the signature file's text; -EMSGSIZE: more than SIGNATURE_MAX_FILE; -ENOMEM.
 */
int signkey_sign(const struct signkey *k, const void *document, size_t len, const char *comment,
	char ret_text[SIGNATURE_MAX_FILE + 1]);

#endif
