/*
 * References, after all is compiled: which schema each leads to. Surprising: a file is compiled
 * when the first reference leads to it, so the list of schemas grows while it is gone through.
 */
#include "schema/reference.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "schema/uri.h"

/* %41 to A, in place. False when it is not well-formed. */
static bool unescape_percent(char *text)
{
	static const char hex[] = "0123456789abcdef0123456789ABCDEF";
	char *to = text;

	for (; *text; text++) {
		const char *high, *low;

		*to = *text;
		if (*text == '%') {
			high = text[1] ? strchr(hex, text[1]) : NULL;
			low = high && text[2] ? strchr(hex, text[2]) : NULL;
			if (!low)
				return false;
			*to = (char)((high - hex) % 16 * 16 + (low - hex) % 16);
			if (*to == '\0')
				return false;
			text += 2;
		}
		to++;
	}
	*to = '\0';
	return true;
}

/* One step of a JSON Pointer; the segment is changed. */
static const struct value *step_pointer(const struct value *v, char *segment)
{
	char *to = segment;
	unsigned long number;

	for (const char *from = segment; *from; from++, to++) {
		*to = *from;
		if (*from == '~' && (from[1] == '0' || from[1] == '1'))
			*to = *++from == '0' ? '~' : '/';
	}
	*to = '\0';
	if (v->node->type == NODE_MAP)
		return value_find(v, segment, (size_t)(to - segment));
	if (v->node->type != NODE_LIST || !*segment || segment[strspn(segment, "0123456789")])
		return NULL;
	if (*segment == '0' && segment[1])
		return NULL;
	number = strtoul(segment, NULL, 10);
	return number < v->count ? &v->children[number] : NULL;
}

/* The place in a resource that a fragment, which is changed, names; NULL: none. */
static const struct value *find_fragment(
	const struct compiler *c, const struct resource *resource, char *fragment)
{
	const struct value *v = resource->at;
	char *segment, *rest = fragment + 1;

	if (*fragment == '\0')
		return v;
	if (*fragment == '/') {
		while (v && (segment = strsep(&rest, "/")))
			v = step_pointer(v, segment);
		return v;
	}
	for (size_t i = 0; i < c->anchor_count; i++)
		if (strcmp(c->anchors[i].name->node->text, fragment) == 0 &&
			c->resources[c->anchors[i].sub->resource].at == v)
			return c->anchors[i].sub->at;
	return NULL;
}

static bool has_id(const struct schema_file *f, const char *uri)
{
	const struct node *id = node_member(f->root, "$id", NODE_STRING);
	size_t len = id ? strcspn(id->text, "#") : 0;

	return len && strlen(uri) == len && strncmp(id->text, uri, len) == 0;
}

/* The file that a URI means: by its $id, else by its name. */
static const struct schema_file *find_file(const struct compiler *c, const char *uri)
{
	for (size_t i = 0; i < c->file_count; i++)
		if (has_id(&c->files[i], uri))
			return &c->files[i];
	for (size_t i = 0; i < c->file_count; i++)
		if (schema_uri_is_file(uri, c->files[i].name))
			return &c->files[i];
	return NULL;
}

/* The resource that a reference (without its fragment) leads to; a file is compiled when the first
 * one does. */
static int find_reference_target(struct compiler *c, const struct rule *r, const char *uri,
	const struct resource **ret_resource)
{
	const struct schema_file *f = NULL;
	char shown[VALUE_SHOWN];
	struct sub *sub;
	int error;

	*ret_resource = compile_find_resource(c, uri);
	if (*ret_resource)
		return 0;
	f = find_file(c, uri);
	if (!f)
		return compile_reject(c, r->value,
			"%s lies in another document, and none of that $id or name was given: put "
			"it into schema_dir",
			value_show(r->value, shown));
	for (unsigned i = 0; i < c->resource_count; i++)
		if (c->resources[i].at->node == f->root) /* it goes by another name */
			return compile_begin_resource(c, uri, c->resources[i].at) == 0
				       ? find_reference_target(c, r, uri, ret_resource)
				       : -ENOMEM;
	error = compile_tree(c, f->name, uri, f->root, &sub);
	*ret_resource = compile_find_resource(c, uri);
	return error;
}

/* A $dynamicRef that may lead to several places, by the way that the check has come. */
static int check_dynamic(struct compiler *c, const struct rule *r, const struct value *to)
{
	const char *name = strchr(r->value->node->text, '#');
	char shown[VALUE_SHOWN];
	bool leads_to_one = false;
	unsigned count = 0;

	for (size_t i = 0; name && i < c->anchor_count; i++) {
		if (!c->anchors[i].dynamic || strcmp(c->anchors[i].name->node->text, name + 1) != 0)
			continue;
		leads_to_one |= c->anchors[i].sub->at == to;
		count++;
	}
	if (!leads_to_one || count == 1)
		return 0;
	return compile_reject(c, r->value,
		"%s may lead to %u schemas, which is not supported: give each $dynamicAnchor a "
		"name of its own",
		value_show(r->value, shown), count);
}

static int resolve_reference(struct compiler *c, const struct sub *s, struct rule *r)
{
	const char *reference = r->value->node->text;
	size_t len = strcspn(reference, "#");
	const struct resource *resource = &c->resources[s->resource];
	const struct value *v = NULL;
	char *fragment, *uri, shown[VALUE_SHOWN];
	int error = 0;

	if (len) {
		uri = schema_uri_resolve(resource->uri, reference, len);
		error = uri ? find_reference_target(c, r, uri, &resource) : -ENOMEM;
		free(uri);
	}
	if (error)
		return error;
	fragment = strdup(reference + len + (reference[len] == '#'));
	if (!fragment)
		return -ENOMEM;
	if (unescape_percent(fragment))
		v = find_fragment(c, resource, fragment);
	free(fragment);
	value_show(r->value, shown);
	if (!v)
		return compile_reject(
			c, r->value, "%s: there is no such place in this schema", shown);
	r->subs = compile_take_memory(c, 1, sizeof(struct sub *));
	if (!r->subs)
		return -ENOMEM;
	r->count = 1;
	r->subs[0] = compile_tree_of(c, v)->sub_of[v - compile_tree_of(c, v)->root];
	if (!r->subs[0])
		return compile_reject(
			c, r->value, "%s does not name a schema: put it under $defs", shown);
	return 0;
}

int reference_resolve_all(struct compiler *c)
{
	int error = 0;

	/* files that are led to add theirs at the end */
	for (struct sub *s = c->s->subs; s; s = s->next)
		for (unsigned i = 0; i < s->count && error == 0; i++)
			if (s->rules[i].keyword == KEYWORD_REF ||
				s->rules[i].keyword == KEYWORD_DYNAMIC_REF)
				error = resolve_reference(c, s, &s->rules[i]);
	for (struct sub *s = c->s->subs; s; s = s->next)
		for (unsigned i = 0; i < s->count && error == 0; i++)
			if (s->rules[i].keyword == KEYWORD_DYNAMIC_REF)
				error = check_dynamic(c, &s->rules[i], s->rules[i].subs[0]->at);
	return error;
}
