/*
 * Makes minisign's keys and signature files, for the tests of what reads them: any comment, any
 * line ends, and forgeries. Shares nothing with agent/signature.c but the format; that the format
 * is the tool's is shown by tests/golden/minisign and tests/integration/test_minisign.py.
 */
#ifndef PULLET_MINISIGN_SIGNER_H
#define PULLET_MINISIGN_SIGNER_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#define SIGNER_FILE 8192

struct signer {
	EVP_PKEY *pkey;
	unsigned char id[8], key[32];
	char text[64]; /* of the public key */
};

/* What a signature file is made of. */
struct signer_job {
	const char *algorithm; /* two letters: NULL = ED */
	const void *document;
	size_t len;
	const char *comment;
	size_t comment_len;
	const char *end; /* of a line: NULL = LF */
};

static inline void signer_demand(int condition)
{
	if (!condition)
		abort();
}

/* Base64 of at most 100 bytes. */
static inline void signer_encode(const unsigned char *data, size_t len, char ret[140])
{
	signer_demand(len <= 100);
	EVP_EncodeBlock((unsigned char *)ret, data, (int)len);
}

static inline void signer_name(struct signer *s)
{
	unsigned char box[42] = "Ed";

	memcpy(box + 2, s->id, 8);
	memcpy(box + 10, s->key, 32);
	EVP_EncodeBlock((unsigned char *)s->text, box, sizeof(box));
}

static inline void signer_init(struct signer *s, unsigned char seed)
{
	unsigned char secret[32];
	size_t len = sizeof(s->key);

	memset(secret, seed, sizeof(secret));
	memset(s->id, seed, sizeof(s->id));
	s->pkey = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, secret, sizeof(secret));
	signer_demand(s->pkey && EVP_PKEY_get_raw_public_key(s->pkey, s->key, &len) == 1);
	signer_name(s);
}

static inline void signer_fini(struct signer *s)
{
	EVP_PKEY_free(s->pkey);
}

static inline void signer_sign(
	const struct signer *s, const void *data, size_t len, unsigned char ret[64])
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	size_t n = 64;

	signer_demand(ctx && EVP_DigestSignInit(ctx, NULL, NULL, NULL, s->pkey) == 1 &&
		      EVP_DigestSign(ctx, ret, &n, data, len) == 1);
	EVP_MD_CTX_free(ctx);
}

/* Writes the signature file; the document is hashed unless the algorithm is "Ed". Returns its
 * length. */
static inline size_t signer_file(
	const struct signer *s, const struct signer_job *job, char ret[SIGNER_FILE])
{
	unsigned char box[74], hash[64], both[64 + SIGNER_FILE], of_both[64];
	const char *algorithm = job->algorithm ? job->algorithm : "ED";
	const char *end = job->end ? job->end : "\n";
	char line2[140], line4[140];
	int head, tail;

	memcpy(box, algorithm, 2);
	memcpy(box + 2, s->id, 8);
	signer_demand(EVP_Digest(job->document, job->len, hash, NULL, EVP_blake2b512(), NULL) == 1);
	if (memcmp(algorithm, "Ed", 2))
		signer_sign(s, hash, sizeof(hash), box + 10);
	else
		signer_sign(s, job->document, job->len, box + 10);
	signer_demand(job->comment_len <= SIGNER_FILE - 400);
	memcpy(both, box + 10, 64);
	memcpy(both + 64, job->comment, job->comment_len);
	signer_sign(s, both, 64 + job->comment_len, of_both);
	signer_encode(box, sizeof(box), line2);
	signer_encode(of_both, sizeof(of_both), line4);
	head = snprintf(ret, SIGNER_FILE,
		"untrusted comment: by a test%s%s%strusted comment: ", end, line2, end);
	memcpy(ret + head, job->comment, job->comment_len);
	tail = snprintf(ret + head + job->comment_len,
		SIGNER_FILE - (size_t)head - job->comment_len, "%s%s%s", end, line4, end);
	return (size_t)head + job->comment_len + (size_t)tail;
}

#endif
