/*
 * One check of a document, from its tree to the report.
 */
#include "schema/schema.h"

#include <errno.h>
#include <stdlib.h>

#include "schema/applicators.h"

static void give_up_check(struct evaluation *e, struct buffer *out, size_t start)
{
	char where[VALUE_WHERE];

	value_where(e->at, false, where);
	if (out->error == 0 && out->len > start) {
		out->len = start;
		out->data[start] = '\0';
	}
	buffer_printf(out,
		"%sgiven up here: this schema asks for too much work with this document\n", where);
}

int schema_check(
	const struct schema *s, const struct node *instance, char *const *mask, struct buffer *out)
{
	struct report report = {.out = out, .max = SCHEMA_MAX_ERRORS};
	struct evaluation e = {.report = &report, .work = SCHEMA_MAX_WORK, .mask = mask};
	size_t start = out->len, count;
	struct value *root = NULL;
	bool valid = false;

	e.error = value_tree(instance, &root, &count);
	e.at = root;
	if (e.error == -E2BIG)
		buffer_append_string(out, "larger or deeper than a document may be\n");
	if (e.error == 0) {
		valid = applicators_apply(&e, s->top, root);
		if (e.error == -E2BIG)
			give_up_check(&e, out, start);
		else if (report.count > report.max)
			buffer_printf(out, "and %zu more\n", report.count - report.max);
	}
	matcher_free(e.matcher);
	free(root);
	if (e.error == 0 && out->error)
		e.error = out->error;
	return e.error ? e.error : valid ? 0 : -EINVAL;
}
