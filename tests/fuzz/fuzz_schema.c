/*
 * Fuzz target: JSON Schema. The first byte chooses the kinds of both documents, a NUL parts the
 * schema from the document that is checked with it.
 *
 * What is checked beside memory: that sentences are printable and within their bounds, that a
 * second check says the same, and that the schema {"not": it}, which runs quietly, says the
 * opposite.
 */
#include <errno.h>
#include <string.h>

#include "schema/schema.h"
#include "text/sentence.h"
#include "tests/fuzz/demand.h"

static void demand_lines(const char *text, size_t max_lines)
{
	static char shown[SCHEMA_MAX_REPORT];
	size_t lines = 0, begin = 0;

	text = sentence_show(shown, sizeof(shown), text, AUDIENCE_OPERATOR);
	for (size_t i = 0; text[i]; i++) {
		demand(((unsigned char)text[i] >= 0x20 && text[i] != 0x7f) || text[i] == '\n');
		if (text[i] != '\n')
			continue;
		demand(i - begin < SCHEMA_MAX_LINE);
		begin = i + 1;
		lines++;
	}
	demand(lines <= max_lines);
}

static int check(const struct schema *s, const struct node *instance, struct buffer *out)
{
	int r;

	buffer_init(out, SCHEMA_MAX_REPORT);
	r = schema_check(s, instance, NULL, out);
	demand(r == 0 || r == -EINVAL || r == -E2BIG);
	demand((r == 0) == (out->len == 0));
	demand_lines(out->len ? out->data : "", r == -E2BIG ? 1 : SCHEMA_MAX_ERRORS + 1);
	return r;
}

/* References are from the root: a schema that has some means something else one level down. */
static bool refers(const struct node *n)
{
	if (n->key && strstr(n->key, "$"))
		return true;
	for (const struct node *c = n->type >= NODE_LIST ? n->first : NULL; c; c = c->next)
		if (refers(c))
			return true;
	return false;
}

static void check_opposite(const struct node *root, const struct node *instance, int r)
{
	struct node inner = *root,
		    outer = {.type = NODE_MAP, .count = 1, .first = &inner, .last = &inner};
	char why[FILE_WHY];
	struct schema *s;
	struct buffer out;
	int opposite;

	inner.key = "not";
	inner.key_len = 3;
	if (refers(root) || schema_new(&outer, NULL, 0, &s, why)) /* or one level too deep */
		return;
	opposite = check(s, instance, &out);
	demand(opposite == -E2BIG || (opposite == 0) != (r == 0));
	buffer_fini(&out);
	schema_free(s);
}

static void run(const struct node *root, const struct node *instance)
{
	struct schema *s = NULL;
	struct buffer one, two;
	char why[FILE_WHY] = "";
	int r = schema_new(root, NULL, 0, &s, why);

	if (r) {
		demand(r == -EINVAL && why[0] && strlen(why) < FILE_WHY);
		demand_lines(why, 0);
		return;
	}
	demand_lines(schema_unknown(s), 0);
	r = check(s, instance, &one);
	if (r != -E2BIG) {
		demand(check(s, instance, &two) == r && one.len == two.len);
		demand(one.len == 0 || memcmp(one.data, two.data, one.len) == 0);
		buffer_fini(&two);
		check_opposite(root, instance, r);
	}
	buffer_fini(&one);
	schema_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data + 1,
		   *end = size ? memchr(text, '\0', size - 1) : NULL;
	struct document *schema = NULL, *document = NULL;
	struct document_error e;

	if (!end)
		return 0;
	if (document_parse(data[0] & 1 ? DOCUMENT_JSON : DOCUMENT_YAML, text, (size_t)(end - text),
		    0, &schema, &e) == 0 &&
		document_parse(data[0] & 2 ? DOCUMENT_JSON : DOCUMENT_YAML, end + 1,
			size - 2 - (size_t)(end - text), 0, &document, &e) == 0)
		run(document_root(schema), document_root(document));
	document_free(document);
	document_free(schema);
	return 0;
}
