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

#include "crypto/minisign_secret.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(int good)
{
	if (!good)
		abort();
}

static void use(const struct minisign_secret *k)
{
	char text[MINISIGN_SECRET_TEXT], public[MINISIGN_SECRET_TEXT], file[MINISIGN_MAX_FILE + 1],
		why[FILE_WHY];
	char *keys[] = {public, NULL};
	const unsigned char salt[MINISIGN_SECRET_SALT] = {0};
	struct minisign_facts facts;
	struct minisign_secret again;
	const char *fault;

	demand(!minisign_secret_write(k, NULL, salt, text) &&
		!minisign_secret_write_public(k, public));
	demand(!minisign_secret_read(text, strlen(text), NULL, &again, &fault));
	demand(!memcmp(&again, k, sizeof(again)));
	demand(!minisign_secret_sign(k, "a: 1\n", 5, "rev=7 path=/a", file));
	demand(!minisign_verify(keys, "a: 1\n", 5, file, strlen(file), &facts, why));
	demand(facts.rev == 7 && !strcmp(facts.path, "/a"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct minisign_secret k, untouched;
	const char *why = NULL;
	char *text = malloc(size + 1);
	int r;

	demand(text != NULL);
	memcpy(text, data, size);
	memset(&k, 0x5a, sizeof(k));
	untouched = k;
	r = minisign_secret_read(text, size, NULL, &k, &why);
	free(text);
	if (r == 0)
		use(&k);
	else
		demand(why != NULL && !memcmp(&k, &untouched, sizeof(k)));
	return 0;
}
