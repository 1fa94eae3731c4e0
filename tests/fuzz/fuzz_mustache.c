/*
 * Fuzz target: a template and a document. The first byte chooses the mode; then the template, a
 * line with nothing but "%%", and the document in YAML, whose texts are the partials, too.
 *
 * What is checked: it ends within its bounds; an error has a sentence, with a place where it is one
 * of the template; rendered twice it is the same.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "mustache/mustache.h"
#include "tests/fuzz/demand.h"

#define MAX_OUTPUT (1u << 20)

static int find_partial(void *arg, const char *name, struct buffer *text, char ret_file[FILE_WHY],
	char why[FILE_WHY])
{
	const struct node *n = node_member(arg, name, NODE_STRING);

	snprintf(ret_file, FILE_WHY, "partial");
	snprintf(why, FILE_WHY, "there is none");
	return n ? buffer_append(text, n->text, n->text_len) : -ENOENT;
}

static int render(const struct mustache *m, const struct node *root, struct buffer *out)
{
	char why[FILE_WHY] = "";
	int r;

	buffer_init(out, MAX_OUTPUT);
	r = mustache_render(m, root, out, why);
	demand(r == 0 || r == -EINVAL || r == -EMSGSIZE);
	demand(!r == !why[0]);
	demand(r != -EINVAL || !strncmp(why, "template:", 9) || !strncmp(why, "partial:", 8));
	return r;
}

static void render_twice(const struct mustache *m, const struct node *root)
{
	struct buffer one, two;

	demand(render(m, root, &one) == render(m, root, &two));
	demand(one.len == two.len && (!one.len || !memcmp(one.data, two.data, one.len)));
	buffer_fini(&one);
	buffer_fini(&two);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data + (size > 0), *end = (const char *)data + size;
	const char *line = size ? memmem(text, (size_t)(end - text), "\n%%\n", 4) : NULL;
	struct mustache_options o = {.name = "template", .partial = find_partial};
	struct document *d = NULL;
	struct document_error e;
	struct mustache *m = NULL;
	char why[FILE_WHY] = "";
	int r;

	if (!line ||
		document_parse(DOCUMENT_YAML, line + 4, (size_t)(end - line - 4), 0, &d, &e) != 0)
		return 0;
	o.strict = data[0] & 1;
	o.escape = data[0] & 2 ? MUSTACHE_HTML : MUSTACHE_LINE;
	o.arg = (void *)(uintptr_t)document_root(d);
	r = mustache_new(&o, text, (size_t)(line - text), &m, why);
	demand(r == 0 || r == -EINVAL || r == -EMSGSIZE);
	demand(!r == (m != NULL) && (!r || why[0]));
	if (m)
		render_twice(m, document_root(d));
	mustache_free(m);
	document_free(d);
	return 0;
}
