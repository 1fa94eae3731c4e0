/*
 * Fuzz target: a secret key's file, plain ones and those that need a password (none is given: each
 * would take scrypt its time).
 *
 * What is checked beside memory: a refusal has a sentence and leaves the key; what is taken is
 * written and read again as the same key, and what it signs is genuine.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "crypto/minisign_key.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(int good)
{
	if (!good)
		abort();
}

static void use(const struct signkey *k)
{
	char text[SIGNKEY_TEXT], public[SIGNKEY_TEXT], file[SIGNATURE_MAX_FILE + 1], why[FILE_WHY];
	char *keys[] = {public, NULL};
	const unsigned char salt[SIGNKEY_SALT] = {0};
	struct signature_facts facts;
	struct signkey again;
	const char *fault;

	demand(!signkey_write(k, NULL, salt, text) && !signkey_write_public(k, public));
	demand(!signkey_read(text, strlen(text), NULL, &again, &fault));
	demand(!memcmp(&again, k, sizeof(again)));
	demand(!signkey_sign(k, "a: 1\n", 5, "rev=7 path=/a", file));
	demand(!signature_verify(keys, "a: 1\n", 5, file, strlen(file), &facts, why));
	demand(facts.rev == 7 && !strcmp(facts.path, "/a"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct signkey k, untouched;
	const char *why = NULL;
	char *text = malloc(size + 1);
	int r;

	demand(text != NULL);
	memcpy(text, data, size);
	memset(&k, 0x5a, sizeof(k));
	untouched = k;
	r = signkey_read(text, size, NULL, &k, &why);
	free(text);
	if (r == 0)
		use(&k);
	else
		demand(why != NULL && !memcmp(&k, &untouched, sizeof(k)));
	return 0;
}
