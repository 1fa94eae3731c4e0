/*
 * Hashes, HMACs, Ed25519 and scrypt, by libcrypto. Random bytes come from the caller.
 *
 * Threads: any. Errors: -ENOMEM, which but for MD5 is also the answer where libcrypto is set up
 * without the algorithm (FIPS). Nothing stays in the thread's error queue, which libcurl's TLS
 * reads.
 */
#ifndef PULLET_DIGEST_H
#define PULLET_DIGEST_H

#include <stddef.h>

#define DIGEST_HEX 65 /* with the NUL */
#define DIGEST_SHA256 32
#define DIGEST_SHA512 64
#define DIGEST_SHA1 20
#define DIGEST_MD5_HEX 33 /* with the NUL */
#define DIGEST_BLAKE2B512 64
#define DIGEST_ED25519_KEY 32
#define DIGEST_ED25519_SIGNATURE 64

/* Hashes up to two pieces, one after the other (b may be NULL with 0). 0 or -ENOMEM. */
int digest_sha256(
	const void *a, size_t a_len, const void *b, size_t b_len, char ret_hex[DIGEST_HEX]);
int digest_sha256_raw(const void *data, size_t len, unsigned char *ret); /* DIGEST_SHA256 bytes */
int digest_sha512_raw(const void *data, size_t len, unsigned char *ret); /* DIGEST_SHA512 bytes */
/* RFC 1321, lower case; proves nothing, but some protocols name versions by it. 0, -ENOMEM;
 * -ENOTSUP where libcrypto forbids it (FIPS). */
int digest_md5(const void *data, size_t len, char ret_hex[DIGEST_MD5_HEX]);
/* RFC 2104, with keys of any length, none too. 0 or -ENOMEM. */
int digest_hmac_sha256(const void *key, size_t key_len, const void *data, size_t len,
	unsigned char ret[DIGEST_SHA256]);
int digest_hmac_sha1(const void *key, size_t key_len, const void *data, size_t len,
	unsigned char ret[DIGEST_SHA1]);
/* RFC 7693, without a key. 0 or -ENOMEM. */
int digest_blake2b512(const void *data, size_t len, unsigned char ret[DIGEST_BLAKE2B512]);
/* RFC 8032, pure Ed25519. 0; -EBADMSG: not this key's signature of these bytes (also when memory
 * ran out within); -ENOMEM. A key of small order is not rejected here. */
int digest_ed25519_verify(const unsigned char key[DIGEST_ED25519_KEY], const void *data, size_t len,
	const unsigned char signature[DIGEST_ED25519_SIGNATURE]);
/* The public key of a secret one (the seed of RFC 8032). 0 or -ENOMEM. */
int digest_ed25519_public(
	const unsigned char seed[DIGEST_ED25519_KEY], unsigned char ret_key[DIGEST_ED25519_KEY]);
/* RFC 8032, pure Ed25519. 0 or -ENOMEM. */
int digest_ed25519_sign(const unsigned char seed[DIGEST_ED25519_KEY], const void *data, size_t len,
	unsigned char ret_signature[DIGEST_ED25519_SIGNATURE]);
/* RFC 7914 with r = 8 and p = 1, which takes n KiB of memory (n: a power of two), into size bytes.
 * 0 or -ENOMEM. */
int digest_scrypt(const void *password, size_t len, const void *salt, size_t salt_len,
	unsigned long long n, unsigned char *ret, size_t size);

#endif
