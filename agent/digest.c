/* SHA-256 through libcrypto's EVP. Surprising: nothing; it is the only file that includes
 * libcrypto. */
#include "digest.h"

#include <errno.h>
#include <stdio.h>

#include <openssl/evp.h>

int digest_sha256(
	const void *a, size_t a_len, const void *b, size_t b_len, char ret_hex[DIGEST_HEX])
{
	unsigned char md[EVP_MAX_MD_SIZE];
	unsigned int len = 0;
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	int ok = ctx && EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) &&
		 EVP_DigestUpdate(ctx, a, a_len) &&
		 (b_len == 0 || EVP_DigestUpdate(ctx, b, b_len)) &&
		 EVP_DigestFinal_ex(ctx, md, &len);

	EVP_MD_CTX_free(ctx);
	if (!ok)
		return -ENOMEM;
	for (unsigned int i = 0; i < len; i++)
		snprintf(ret_hex + 2 * (size_t)i, 3, "%02x", md[i]);
	return 0;
}
