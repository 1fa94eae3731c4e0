/*
 * Fuzz target: the head of an answer, line by line.
 *
 * What is checked: a line is one of five things, and says why when it is refused; a field points
 * into its line, its name is a token and its value has no control character; no head that was taken
 * to its end has two ideas of its length; behind the end nothing changes.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "http/framing.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(int condition)
{
	if (!condition)
		abort();
}

static void check_field(const char *line, size_t len, const struct framing_field *field)
{
	demand(field->name == line && field->name_len > 0 && field->name_len < len);
	demand(line[field->name_len] == ':');
	demand(field->value > line + field->name_len &&
		field->value + field->value_len <= line + len);
	for (size_t i = 0; i < field->name_len; i++)
		demand(line[i] > ' ' && line[i] < 0x7f && line[i] != ':' && line[i] != ',');
	for (size_t i = 0; i < field->value_len; i++)
		demand((unsigned char)field->value[i] >= ' ' || field->value[i] == '\t');
}

static void check_state(const struct framing *f, const struct framing *before)
{
	demand(!(f->has_length && f->chunked));
	demand(!f->has_length || f->length <= INT64_MAX);
	demand(!f->chunked || f->version >= 11);
	demand(f->status >= 0 && f->status <= 999);
	demand(!before->over || memcmp(f, before, sizeof(*f)) == 0);
	demand(framing_has_end(f) == (f->version >= 20 || f->has_length || f->chunked));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct framing f, before;
	struct framing_field field;
	char why[FRAMING_WHY];

	memset(&f, 0, sizeof(f));
	while (size > 0) {
		const uint8_t *end = memchr(data, '\n', size);
		size_t len = end ? (size_t)(end - data) + 1 : size;
		char *line = malloc(len);
		enum framing_line is;

		demand(line != NULL);
		memcpy(line, data, len);
		before = f;
		why[0] = '\0';
		is = framing_read(&f, line, len, &field, why);
		demand((is == FRAMING_BAD) == (why[0] != '\0'));
		demand((is == FRAMING_TRAILER) == before.over);
		if (is == FRAMING_HEADER)
			check_field(line, len, &field);
		free(line);
		if (is == FRAMING_BAD)
			return 0;
		check_state(&f, &before);
		data += len;
		size -= len;
	}
	return 0;
}
