/*
 * Fuzz target: the document parsers and writers. The first byte chooses type and flags. What is
 * accepted must keep the limits and read back equal after being written in either format; what is
 * accepted as JSON must be the same to YAML.
 */
#include <stdlib.h>

#include "document/document.h"
#include "tests/fuzz/demand.h"

static size_t count_nodes(const struct node *n)
{
	size_t count = 1;

	for (n = n->first; n; n = n->next)
		count += count_nodes(n);
	return count;
}

static void round_trip(const struct document *d, enum document_type type)
{
	struct document *again = NULL;
	struct document_error e;
	struct buffer b;
	int r;

	buffer_init(&b, 1u << 20);
	r = document_write(document_root(d), type, &b);
	demand(r == 0 || r == -22 /* a number JSON does not have */ ||
		r == -90 /* larger than the buffer */);
	if (r == 0) {
		demand(document_parse(type, b.data, b.len, 0, &again, &e) == 0);
		demand(node_equal(document_root(d), document_root(again)));
	}
	document_free(again);
	buffer_fini(&b);
}

static void same_as_yaml(const struct document *d, const char *text, size_t len)
{
	struct document *yaml = NULL;
	struct document_error e;

	demand(document_parse(DOCUMENT_YAML, text, len, 0, &yaml, &e) == 0);
	demand(node_equal(document_root(d), document_root(yaml)));
	document_free(yaml);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct document *d = NULL;
	struct document_error e;
	unsigned choice = size ? data[0] : 0;
	enum document_type type = choice & 1 ? DOCUMENT_JSON : DOCUMENT_YAML;
	char *text;

	if (size == 0)
		return 0;
	text = malloc(size); /* not NUL-terminated: the parsers must not need it */
	demand(text != NULL);
	for (size_t i = 1; i < size; i++)
		text[i - 1] = (char)data[i];
	if (document_parse(type, text, size - 1, choice >> 1 & 3, &d, &e) == 0) {
		demand(count_nodes(document_root(d)) <= DOCUMENT_MAX_NODES);
		if (type == DOCUMENT_JSON)
			same_as_yaml(d, text, size - 1);
		if (!(choice >> 1 & DOCUMENT_KEEP_DUPLICATES)) {
			round_trip(d, DOCUMENT_YAML);
			round_trip(d, DOCUMENT_JSON);
		}
	} else {
		demand(e.message[0] != '\0');
	}
	document_free(d);
	free(text);
	return 0;
}
