/*
 * Runs a fuzz target over its seed corpus without a fuzzer: each file is one case. A case that does
 * not return ends the program, which the test runner counts as failed.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST (16u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int run_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	uint8_t *data = f ? malloc(LARGEST) : NULL;
	size_t n = data ? fread(data, 1, LARGEST, f) : 0;
	uint8_t *exact = data ? malloc(n ? n : 1)
			      : NULL; /* so that a sanitizer sees the first byte beyond */
	int ok = exact != NULL;

	if (exact) {
		memcpy(exact, data, n);
		LLVMFuzzerTestOneInput(exact, n);
	}
	free(exact);
	free(data);
	if (f)
		fclose(f);
	return ok;
}

int main(int argc, char **argv)
{
	int passed = 0, failed = 0;

	for (int i = 1; i < argc; i++) {
		DIR *d = opendir(argv[i]);
		struct dirent *e;
		char path[4096];

		while (d && (e = readdir(d))) {
			if (e->d_name[0] == '.')
				continue;
			snprintf(path, sizeof(path), "%s/%s", argv[i], e->d_name);
			if (run_file(path))
				passed++;
			else
				failed++;
		}
		if (d)
			closedir(d);
		else
			failed++;
	}
	printf("%d passed, %d failed\n", passed, failed);
	return failed || !passed;
}
