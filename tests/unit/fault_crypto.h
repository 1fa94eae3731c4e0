/*
 * Memory of libcrypto that can be made to run out: the n-th allocation fails. One test program, one
 * thread; fault_crypto_start() comes before anything of libcrypto is called.
 */
#ifndef PULLET_FAULT_CRYPTO_H
#define PULLET_FAULT_CRYPTO_H

#include <stdbool.h>
#include <stdlib.h>

#include <openssl/crypto.h>

static size_t fault_crypto_nth; /* from now on; 0 = none */

static bool fault_crypto_granted(void)
{
	return fault_crypto_nth == 0 || --fault_crypto_nth > 0;
}

static void *fault_crypto_malloc(size_t size, const char *file, int line)
{
	(void)file;
	(void)line;
	return fault_crypto_granted() ? malloc(size) : NULL;
}

static void *fault_crypto_realloc(void *p, size_t size, const char *file, int line)
{
	(void)file;
	(void)line;
	return fault_crypto_granted() ? realloc(p, size) : NULL;
}

static void fault_crypto_free(void *p, const char *file, int line)
{
	(void)file;
	(void)line;
	free(p);
}

/* False when libcrypto was in use already. */
static inline bool fault_crypto_start(void)
{
	return CRYPTO_set_mem_functions(
		       fault_crypto_malloc, fault_crypto_realloc, fault_crypto_free) == 1;
}

static inline void fault_crypto_fail(size_t nth)
{
	fault_crypto_nth = nth;
}

/* Ends it. True when that allocation was asked for. */
static inline bool fault_crypto_failed(void)
{
	bool failed = fault_crypto_nth == 0;

	fault_crypto_nth = 0;
	return failed;
}

#endif
