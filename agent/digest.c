/* Hashes and one kind of signature, through libcrypto's EVP: the only file that includes libcrypto.
 * Surprising: a call that fails leaves its reason in a queue of the thread, where a TLS connection
 * of libcurl would take it for its own; so each function takes its reasons out again. */
#include "digest.h"

#include <errno.h>
#include <stdio.h>

#include <openssl/err.h>
#include <openssl/evp.h>

int digest_sha256(
	const void *a, size_t a_len, const void *b, size_t b_len, char ret_hex[DIGEST_HEX])
{
	unsigned char md[EVP_MAX_MD_SIZE];
	unsigned int len = 0;
	EVP_MD_CTX *ctx;
	int ok;

	ERR_set_mark();
	ctx = EVP_MD_CTX_new();
	ok = ctx && EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) && EVP_DigestUpdate(ctx, a, a_len) &&
	     (b_len == 0 || EVP_DigestUpdate(ctx, b, b_len)) && EVP_DigestFinal_ex(ctx, md, &len);
	EVP_MD_CTX_free(ctx);
	ERR_pop_to_mark();
	if (!ok)
		return -ENOMEM;
	for (unsigned int i = 0; i < len; i++)
		snprintf(ret_hex + 2 * (size_t)i, 3, "%02x", md[i]);
	return 0;
}

int digest_blake2b512(const void *data, size_t len, unsigned char ret[DIGEST_BLAKE2B512])
{
	int ok;

	ERR_set_mark();
	ok = EVP_Digest(data, len, ret, NULL, EVP_blake2b512(), NULL);
	ERR_pop_to_mark();
	return ok ? 0 : -ENOMEM;
}

int digest_ed25519_verify(const unsigned char key[DIGEST_ED25519_KEY], const void *data, size_t len,
	const unsigned char signature[DIGEST_ED25519_SIGNATURE])
{
	EVP_PKEY *pkey;
	EVP_MD_CTX *ctx;
	int r = -ENOMEM;

	ERR_set_mark();
	pkey = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, key, DIGEST_ED25519_KEY);
	ctx = EVP_MD_CTX_new();
	if (pkey && ctx && EVP_DigestVerifyInit(ctx, NULL, NULL, NULL, pkey) == 1)
		r = EVP_DigestVerify(ctx, signature, DIGEST_ED25519_SIGNATURE, data, len) == 1
			    ? 0
			    : -EBADMSG;
	EVP_MD_CTX_free(ctx);
	EVP_PKEY_free(pkey);
	ERR_pop_to_mark();
	return r;
}
