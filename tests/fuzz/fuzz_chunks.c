/*
 * Fuzz target: a chunked body. The first byte is how many bytes each piece has.
 *
 * What is checked: in pieces and at once the same comes out; a piece points into the data; what
 * comes out and the end is what a plain reading of the sizes says.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "http/chunks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct outcome {
	int error, over;
	char *body;
	size_t len, behind;
};

static void demand(int condition)
{
	if (!condition)
		abort();
}

static struct outcome decode(const char *data, size_t size, size_t piece)
{
	struct outcome o = {.body = malloc(size + 1)};
	struct chunks c = {0};
	const char *why = NULL;

	demand(o.body != NULL);
	for (size_t at = 0; o.error == 0 && at < size; at += piece) {
		size_t n = size - at < piece ? size - at : piece, got;
		const char *from = data + at, *part;

		while ((o.error = chunks_take(&c, &from, &n, &part, &got, &why)) > 0) {
			demand(got > 0 && part >= data && part + got == from);
			memcpy(o.body + o.len, part, got);
			o.len += got;
		}
		demand((o.error == -EBADMSG) == (why != NULL));
		demand(o.error || n == 0 || chunks_are_over(&c));
		o.behind += n;
	}
	o.over = chunks_are_over(&c);
	return o;
}

/* By strtoull(), of a body that was taken to its end. */
static void check_plainly(const char *data, size_t size, const struct outcome *o)
{
	char *text = malloc(size + 1), *at = text;
	unsigned long long n;
	size_t len = 0;

	demand(text != NULL);
	memcpy(text, data, size);
	text[size] = '\0';
	while ((n = strtoull(at, NULL, 16)) > 0) {
		at = strstr(at, "\r\n") + 2;
		demand(len + n <= o->len && memcmp(at, o->body + len, n) == 0);
		len += n;
		at += n + 2;
	}
	demand(len == o->len);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data + 1;
	struct outcome whole, pieces;

	if (size < 2)
		return 0;
	whole = decode(text, size - 1, size);
	pieces = decode(text, size - 1, data[0] ? data[0] : 1);
	demand(whole.error == pieces.error && whole.over == pieces.over);
	demand(whole.len == pieces.len && memcmp(whole.body, pieces.body, whole.len) == 0);
	if (whole.error == 0 && whole.over)
		check_plainly(text, size - 1, &whole);
	free(whole.body);
	free(pieces.body);
	return 0;
}
