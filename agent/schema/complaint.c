/*
 * An error's sentence. Surprising: what the schema asks for is masked where the value is: it is as
 * secret.
 */
#include "schema/complaint.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "document/key_path.h"

bool complaint_is_written(const struct evaluation *e)
{
	return e->error == 0 && e->report && e->report->count < e->report->max;
}

bool complaint_count(struct evaluation *e)
{
	if (e->report)
		e->report->count++;
	return false;
}

bool complaint_add(struct evaluation *e, const struct value *v, bool key, const char *format, ...)
{
	struct report *t = e->report;
	char where[VALUE_WHERE] = "", message[SCHEMA_MAX_LINE - VALUE_WHERE - 16];
	bool is_name = v->node->text && v->node->text == v->node->key; /* check_property_names */
	va_list args;

	if (t->count++ == 0)
		for (const struct value *p = v->parent; p; p = p->parent)
			t->depth++;
	if (!t->about)
		value_where(v, key, where);
	else if (t->about != v)
		value_path(v, where);
	va_start(args, format);
	value_cut(message, sizeof(message), vsnprintf(message, sizeof(message), format, args));
	va_end(args);
	if (buffer_printf(t->out, "%s%s%s%s", where, is_name ? "its key: " : "", message,
		    t->about ? "" : "\n"))
		e->error = t->out->error;
	return false;
}

static void append_path(const struct value *v, struct buffer *path)
{
	if (!v->parent)
		return;
	append_path(v->parent, path);
	key_path_append(path, !v->parent->parent, v->node, value_index(v));
}

static bool is_masked(const struct evaluation *e, const struct value *v)
{
	struct buffer path;
	bool masked;

	if (!e->mask)
		return false;
	buffer_init(&path, 16u << 20);
	append_path(v, &path);
	masked = path.error || key_path_matches(e->mask, path.data ? path.data : "");
	buffer_fini(&path);
	return masked;
}

const char *complaint_show(
	const struct evaluation *e, const struct value *v, char shown[COMPLAINT_SHOWN])
{
	static const char *const words[] = {
		[NODE_BOOL] = "true or false",
		[NODE_INT] = "an integer",
		[NODE_DOUBLE] = "a number",
		[NODE_STRING] = "a string",
	};
	char text[VALUE_SHOWN];
	const char *value = is_masked(e, v) ? "***" : value_show(v, text);

	if (value_is(v, VALUE_NULL | VALUE_LIST | VALUE_MAP)) {
		snprintf(shown, COMPLAINT_SHOWN, "%s", value);
		return shown;
	}
	return sentence_quote(shown, COMPLAINT_SHOWN, value, strlen(value), words[v->node->type]);
}

const char *complaint_show_wanted(const struct evaluation *e, const struct value *v,
	const char *wanted, char *shown, size_t size)
{
	if (is_masked(e, v))
		wanted = "***";
	return sentence_quote(shown, size, wanted, strlen(wanted), "what the schema says");
}
