/*
 * The keys of the push channel (ZeroMQ's CURVE): their form, the files that hold them, and where
 * plain text may go. No cryptography, and no libzmq: what a key does is in push/subscriber.c and
 * push/publisher.c.
 *
 * A key is 32 bytes, written as 40 characters of Z85 (ZeroMQ RFC 32). A file of keys has one on a
 * line; blanks around it, empty lines, and text behind a '#' do not count (no key begins
 * with '#', and none has a blank in it).
 *
 * A secret key's file may be read by its owner and its group only, and written by its owner only;
 * any other is rejected, as ssh does, not warned of: a key that everybody on the host could
 * have copied is no secret, and the warning would be read by nobody. The group may read, as with
 * PostgreSQL's: root, a group of its own, 0640 is how a service that is not root gets its
 * secrets. Symlinks are followed: volumes of Kubernetes are made of them.
 *
 * Threads: any. Errors: -errno, with a sentence. Bounds: CURVE_MAX_SECRET_FILE, CURVE_MAX_ALLOW
 * bytes.
 */
#ifndef PULLET_CURVE_KEYS_H
#define PULLET_CURVE_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "base/sys.h"

#define CURVE_KEY 32               /* bytes of a key */
#define CURVE_TEXT 41              /* of its text, with the NUL */
#define CURVE_WHY 512              /* of a sentence */
#define CURVE_MAX_SECRET_FILE 4096 /* bytes */
#define CURVE_MAX_ALLOW (4u << 20) /* bytes of a list: some 100,000 keys */

/* NULL when the text is a key; else a sentence without the text in it, to be put behind its name.
 */
const char *curve_check_key(const char *text);
/* True when what is sent to or bound at the endpoint stays on this host: ipc://, or 127.0.0.0/8,
 * [::1] or localhost (tcp:// may be left out). Names are never looked up. */
bool curve_stays_here(const char *endpoint);
/* True when what goes to the url (http or https, without credentials, with a port or without)
 * leaves this host by plain http: any host on the way can read and change it. */
bool curve_url_is_open(const char *url);

/* Reads a secret key's file. 0 and the key as text, to be wiped by the caller; or -errno and a
 * constant sentence, which does not name the file. */
int curve_read_secret(
	const struct sys *sys, const char *path, char ret_secret[CURVE_TEXT], const char **ret_why);
/* Writes a pair of keys: the secret one to path (0600), the public one to path.pub (0644), both
 * fsynced. Never replaces a file that is there. 0; or -errno and why, and neither file. */
int curve_write_pair(const struct sys *sys, const char *path, const char *public_key,
	const char *secret_key, char why[CURVE_WHY]);

/* A list of public keys. Zeroed = empty; fields are private. */
struct curve_allow {
	unsigned char (*keys)[CURVE_KEY]; /* sorted */
	size_t count;
	struct stat seen; /* the file at the last attempt to read it */
};

/* Reads the list again if the file was replaced or written since the last time: 1 when it was read,
 * 0 when it is unchanged. Or -errno and why (an invalid line, no key at all, no file), once for
 * each change of the file; the list is then unchanged. */
int curve_allow_refresh(
	const struct sys *sys, struct curve_allow *a, const char *path, char why[CURVE_WHY]);
bool curve_allow_has(const struct curve_allow *a, const unsigned char key[CURVE_KEY]);
void curve_allow_fini(struct curve_allow *a);

#endif
