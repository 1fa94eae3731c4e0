/* Hashes, HMACs and one kind of signature, through libcrypto's EVP: the only file that includes
 * libcrypto. Surprising: a call that fails leaves its reason in a queue of the thread, where a TLS
 * connection of libcurl would take it for its own; so each function takes its reasons out again. */
#include "crypto/digest.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>

#include <openssl/err.h>
#include <openssl/evp.h>

static void write_hex(const unsigned char *bytes, size_t len, char *ret_hex)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < len; i++) {
		*ret_hex++ = digits[bytes[i] >> 4];
		*ret_hex++ = digits[bytes[i] & 15];
	}
	*ret_hex = '\0';
}

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
	write_hex(md, len, ret_hex);
	return 0;
}

static int hash_once(const EVP_MD *md, const void *data, size_t len, unsigned char *ret)
{
	int ok;

	ERR_set_mark();
	ok = EVP_Digest(data, len, ret, NULL, md, NULL);
	ERR_pop_to_mark();
	return ok ? 0 : -ENOMEM;
}

int digest_sha256_raw(const void *data, size_t len, unsigned char *ret)
{
	return hash_once(EVP_sha256(), data, len, ret);
}

int digest_sha512_raw(const void *data, size_t len, unsigned char *ret)
{
	return hash_once(EVP_sha512(), data, len, ret);
}

int digest_blake2b512(const void *data, size_t len, unsigned char ret[DIGEST_BLAKE2B512])
{
	return hash_once(EVP_blake2b512(), data, len, ret);
}

/* Only a fetch distinguishes a missing algorithm from missing memory. */
int digest_md5(const void *data, size_t len, char ret_hex[DIGEST_MD5_HEX])
{
	unsigned char bytes[EVP_MAX_MD_SIZE];
	int r = -ENOMEM;
	EVP_MD *md;

	ERR_set_mark();
	md = EVP_MD_fetch(NULL, "MD5", NULL);
	if (md)
		r = hash_once(md, data, len, bytes);
	else if (ERR_GET_REASON(ERR_peek_last_error()) == ERR_R_UNSUPPORTED)
		r = -ENOTSUP;
	EVP_MD_free(md);
	ERR_pop_to_mark();
	if (r == 0)
		write_hex(bytes, (DIGEST_MD5_HEX - 1) / 2, ret_hex);
	return r;
}

/* To libcrypto a NULL key means one that was set before. */
static int hmac_once(const char *md, const void *key, size_t key_len, const void *data, size_t len,
	unsigned char *ret, size_t size)
{
	bool ok;

	ERR_set_mark();
	ok = EVP_Q_mac(NULL, "HMAC", NULL, md, NULL, key_len ? key : "", key_len, data, len, ret,
		     size, NULL) != NULL;
	ERR_pop_to_mark();
	return ok ? 0 : -ENOMEM;
}

int digest_hmac_sha256(const void *key, size_t key_len, const void *data, size_t len,
	unsigned char ret[DIGEST_SHA256])
{
	return hmac_once("SHA256", key, key_len, data, len, ret, DIGEST_SHA256);
}

int digest_hmac_sha1(const void *key, size_t key_len, const void *data, size_t len,
	unsigned char ret[DIGEST_SHA1])
{
	return hmac_once("SHA1", key, key_len, data, len, ret, DIGEST_SHA1);
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
	if (pkey && ctx && EVP_DigestVerifyInit(ctx, NULL, NULL, NULL, pkey) == 1) {
		errno = 0; /* libcrypto calls a signature bad that it had no memory to verify */
		if (EVP_DigestVerify(ctx, signature, DIGEST_ED25519_SIGNATURE, data, len) == 1)
			r = 0;
		else
			r = errno == ENOMEM ? -ENOMEM : -EBADMSG;
	}
	EVP_MD_CTX_free(ctx);
	EVP_PKEY_free(pkey);
	ERR_pop_to_mark();
	return r;
}

int digest_ed25519_public(
	const unsigned char seed[DIGEST_ED25519_KEY], unsigned char ret_key[DIGEST_ED25519_KEY])
{
	size_t len = DIGEST_ED25519_KEY;
	EVP_PKEY *pkey;
	int r = -ENOMEM;

	ERR_set_mark();
	pkey = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed, DIGEST_ED25519_KEY);
	if (pkey && EVP_PKEY_get_raw_public_key(pkey, ret_key, &len) == 1)
		r = 0;
	EVP_PKEY_free(pkey);
	ERR_pop_to_mark();
	return r;
}

int digest_ed25519_sign(const unsigned char seed[DIGEST_ED25519_KEY], const void *data, size_t len,
	unsigned char ret_signature[DIGEST_ED25519_SIGNATURE])
{
	size_t size = DIGEST_ED25519_SIGNATURE;
	EVP_PKEY *pkey;
	EVP_MD_CTX *ctx;
	int r = -ENOMEM;

	ERR_set_mark();
	pkey = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed, DIGEST_ED25519_KEY);
	ctx = EVP_MD_CTX_new();
	if (pkey && ctx && EVP_DigestSignInit(ctx, NULL, NULL, NULL, pkey) == 1 &&
		EVP_DigestSign(ctx, ret_signature, &size, data, len) == 1)
		r = 0;
	EVP_MD_CTX_free(ctx);
	EVP_PKEY_free(pkey);
	ERR_pop_to_mark();
	return r;
}

int digest_scrypt(const void *password, size_t len, const void *salt, size_t salt_len,
	unsigned long long n, unsigned char *ret, size_t size)
{
	int r;

	ERR_set_mark();
	r = EVP_PBE_scrypt(
		password, len, salt, salt_len, n, 8, 1, n * 1024 + (1u << 20), ret, size);
	ERR_pop_to_mark();
	return r == 1 ? 0 : -ENOMEM;
}
