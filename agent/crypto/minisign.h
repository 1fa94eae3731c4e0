/*
 * Detached signatures as the tool minisign makes them: reads a public key and a signature file, and
 * verifies a document. No I/O, no clock, nothing is signed.
 *
 * A signature file has four lines, ended by LF or CRLF: a comment that nobody signed, the signature
 * of the document, the trusted comment, the signature of that. Both kinds are taken: of the
 * document's BLAKE2b-512 (what the tool makes) and the legacy one of the document itself (its -l).
 *
 * The trusted comment's words, between blanks and tabs, that mean something here; each at most
 * once, all others are ignored (so the tool's own comment is valid):
 *   rev=N          0 to 18446744073709551615; the caller rejects one that goes back
 *   expires=TIME   2026-12-31T00:00:00Z or seconds since 1970; the caller has the clock
 *   config=NAME    the only config that the document is for
 *   path=/PATH     the only place at a server that it is for, without a query, byte for byte
 *
 * Threads: any. Ownership: everything is borrowed for the call. Errors: -errno, with a sentence in
 * `why` that holds nothing of the file but the key's id and what a genuine trusted comment names.
 * Bounds: MINISIGN_MAX_FILE.
 */
#ifndef PULLET_MINISIGN_H
#define PULLET_MINISIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "files/file.h"

#define MINISIGN_MAX_FILE 4096 /* bytes of a signature file */
#define MINISIGN_ID 8
#define MINISIGN_KEY 32
#define MINISIGN_NAME 65   /* of config=, with the NUL */
#define MINISIGN_PATH 1024 /* of path=, with the NUL */

struct minisign_key {
	unsigned char id[MINISIGN_ID], key[MINISIGN_KEY];
};

struct minisign_facts {
	bool has_rev, has_expiry;
	uint64_t rev;
	int64_t expires_ms; /* since 1970 */
	char key_id[17];    /* as the tool prints it: B2B60BCB6A9E1124 */
	char config[MINISIGN_NAME], path[MINISIGN_PATH]; /* "" = names none */
};

/* The names of a document, and which of them its signature must have. */
struct minisign_demand {
	const char *config;                     /* the name of its config */
	const char *path;                       /* at the server; a query does not count */
	const char *or_path;                    /* where it may be found as well; NULL = nowhere */
	bool names_config, names_path, has_rev; /* required ones */
};

/* Reads a public key: the base64 that the tool prints, or the whole text of its .pub file. 0 or
 * -EINVAL, also for a key of small order, with which anybody could sign. */
int minisign_parse_key(const char *text, struct minisign_key *ret_key);

/*
 * Checks whether one of the public keys (texts, as above; NULL ends them) signed the document and
 * the trusted comment. 0 and the facts of the trusted comment.
 *
 * -EBADMSG: by a key that is not listed, of another document, with another trusted comment, or of
 * the legacy kind where that proves nothing (a document of 64 bytes). -EINVAL: not a signature file
 * (says which line), a word of a genuine trusted comment that cannot be read, or a public key that
 * cannot be. -ENOMEM.
 */
int minisign_verify(char *const *public_keys, const void *document, size_t len, const char *minisig,
	size_t minisig_len, struct minisign_facts *ret_facts, char why[FILE_WHY]);
/* Reads the trusted comment of a signature by this key (a text), of any document. 0; -EBADMSG: by
 * another key; -EINVAL, -ENOMEM as above. */
int minisign_read_comment(const char *public_key, const char *minisig, size_t minisig_len,
	struct minisign_facts *ret_facts);
/*
 * Compares a genuine trusted comment with the demand. 0; or -EBADMSG: it names another config or
 * another path, whether or not one is required, or something required is missing; `why` says how to
 * sign.
 */
int minisign_check(const struct minisign_facts *facts, const struct minisign_demand *demand,
	char why[FILE_WHY]);

#endif
