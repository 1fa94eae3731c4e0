/*
 * What agent/crypto/minisign.c says of one document: DOCUMENT MINISIG PUBLIC_KEY_FILE... prints the
 * facts, or the error's number and the sentence. For test_minisign.py, which asks the tool the
 * same.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "crypto/minisign.h"

#define LARGEST (16u << 20)
#define KEYS 8

static char *read_file(const char *path, size_t *ret_len)
{
	FILE *f = fopen(path, "rb");
	char *data = f ? calloc(1, LARGEST + 1) : NULL;

	if (!data) {
		perror(path);
		exit(2);
	}
	*ret_len = fread(data, 1, LARGEST, f);
	fclose(f);
	return data;
}

int main(int argc, char **argv)
{
	struct minisign_facts f;
	char *keys[KEYS + 1] = {NULL}, why[FILE_WHY];
	char *document, *minisig;
	size_t len, minisig_len, key_len;
	int r;

	if (argc < 4 || argc > 3 + KEYS)
		return 2;
	document = read_file(argv[1], &len);
	minisig = read_file(argv[2], &minisig_len);
	for (int i = 3; i < argc; i++)
		keys[i - 3] = read_file(argv[i], &key_len);
	r = minisign_verify(keys, document, len, minisig, minisig_len, &f, why);
	if (r)
		printf("error %d %s\n", -r, why);
	else
		printf("good key=%s rev=%s%" PRIu64 " expires=%s%" PRId64 "\n", f.key_id,
			f.has_rev ? "" : "none", f.rev, f.has_expiry ? "" : "none", f.expires_ms);
	for (size_t i = 0; i < KEYS; i++)
		free(keys[i]);
	free(document);
	free(minisig);
	return r != 0;
}
