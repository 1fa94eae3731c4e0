/*
 * The compiler: a tree of values to schemas with their rules, by a table of keywords. Surprising:
 * references are resolved when all is compiled, and then no chain of schemas for one value may come
 * back to itself, so that the check always moves down the document and ends.
 */
#include "schema/schema.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/compiler.h"
#include "schema/reference.h"
#include "schema/uri.h"

#define DRAFT "https://json-schema.org/draft/2020-12/schema"
#define SCHEMAS (VALUE_BOOL | VALUE_MAP)

struct piece {
	struct piece *next;
	max_align_t data[];
};

void *compile_take_memory(struct compiler *c, size_t count, size_t size)
{
	struct piece *p = calloc(1, sizeof(*p) + count * size);

	if (!p)
		return NULL;
	p->next = c->s->pieces;
	c->s->pieces = p;
	return p->data;
}

struct tree *compile_tree_of(const struct compiler *c, const struct value *v)
{
	struct tree *t = c->s->trees;

	while (v < t->root || v >= t->root + t->values)
		t++;
	return t;
}

int compile_reject(struct compiler *c, const struct value *at, const char *format, ...)
{
	const struct tree *t = compile_tree_of(c, at);
	char where[VALUE_WHERE];
	size_t len;
	va_list args;

	value_where(at, false, where);
	len = (size_t)snprintf(
		c->why, FILE_WHY, "%.80s%s%s", t->file ? t->file : "", t->file ? ": " : "", where);
	va_start(args, format);
	value_cut(c->why + len, FILE_WHY - len,
		vsnprintf(c->why + len, FILE_WHY - len, format, args));
	va_end(args);
	return -EINVAL;
}

static int must_be(struct compiler *c, const struct value *v, unsigned types, const char *hint)
{
	char names[VALUE_TYPES], shown[VALUE_SHOWN];

	return compile_reject(c, v, "must be %s, but is %s%s", value_types(types, names),
		value_show(v, shown), hint);
}

/* ---- keywords' values ---- */

static int compile_sub(struct compiler *c, const struct value *v, struct sub **ret_sub);

static int read_one_schema(struct compiler *c, struct sub *s, struct rule *r)
{
	(void)s;
	r->subs = compile_take_memory(c, 1, sizeof(struct sub *));
	if (!r->subs)
		return -ENOMEM;
	r->count = 1;
	return compile_sub(c, r->value, &r->subs[0]);
}

/* Of a list or a mapping. */
static int read_schemas(struct compiler *c, struct sub *s, struct rule *r)
{
	int error = 0;

	(void)s;
	if (r->value->node->type == NODE_LIST && r->value->count == 0)
		return compile_reject(c, r->value, "must not be empty");
	r->subs = compile_take_memory(c, r->value->count, sizeof(struct sub *));
	if (!r->subs)
		return -ENOMEM;
	r->count = r->value->count;
	for (unsigned i = 0; i < r->count && error == 0; i++)
		error = compile_sub(c, &r->value->children[i], &r->subs[i]);
	return error;
}

static int add_pattern(struct compiler *c, const struct value *at, const char *text, size_t len,
	struct pattern **ret_pattern)
{
	char why[PATTERN_WHY], shown[VALUE_SHOWN];
	int error = pattern_new(text, len, ret_pattern, why);

	if (error == -EINVAL)
		return compile_reject(c, at, "%s %s", value_show_text(text, len, shown), why);
	return error;
}

static int read_pattern(struct compiler *c, struct sub *s, struct rule *r)
{
	const struct node *n = r->value->node;

	(void)s;
	r->patterns = compile_take_memory(c, 1, sizeof(struct pattern *));
	return r->patterns ? add_pattern(c, r->value, n->text, n->text_len, r->patterns) : -ENOMEM;
}

static int read_pattern_schemas(struct compiler *c, struct sub *s, struct rule *r)
{
	int error = read_schemas(c, s, r);

	if (error == 0)
		r->patterns = compile_take_memory(c, r->count, sizeof(struct pattern *));
	if (error == 0 && !r->patterns)
		error = -ENOMEM;
	for (unsigned i = 0; i < r->count && error == 0; i++) {
		const struct value *v = &r->value->children[i];

		error = add_pattern(c, v, v->node->key, v->node->key_len, &r->patterns[i]);
	}
	return error;
}

static int check_unique(struct compiler *c, const struct value *list)
{
	const struct value *pair[2];
	char shown[VALUE_SHOWN];
	int r = value_twice(list, pair);

	if (r == 1)
		return compile_reject(c, pair[1], "%s is listed twice", value_show(pair[1], shown));
	return r;
}

static int check_name_list(struct compiler *c, const struct value *list)
{
	for (unsigned i = 0; i < list->count; i++)
		if (list->children[i].node->type != NODE_STRING)
			return must_be(c, &list->children[i], VALUE_STRING, "");
	return check_unique(c, list);
}

static int read_required_names(struct compiler *c, struct sub *s, struct rule *r)
{
	(void)s;
	return check_name_list(c, r->value);
}

static int read_dependent_names(struct compiler *c, struct sub *s, struct rule *r)
{
	int error = 0;

	(void)s;
	for (unsigned i = 0; i < r->value->count && error == 0; i++) {
		const struct value *v = &r->value->children[i];

		error = v->node->type == NODE_LIST ? check_name_list(c, v)
						   : must_be(c, v, VALUE_LIST, "");
	}
	return error;
}

static int read_count(struct compiler *c, struct sub *s, struct rule *r)
{
	char shown[VALUE_SHOWN];

	(void)s;
	if (number_count(r->value->node, &r->limit))
		return 0;
	return compile_reject(c, r->value, "must be a whole number from 0 on, but is %s",
		value_show(r->value, shown));
}

static int read_limit(struct compiler *c, struct sub *s, struct rule *r)
{
	const struct node *n = r->value->node;

	(void)s;
	if (n->type == NODE_DOUBLE && isnan(n->number))
		return compile_reject(c, r->value, "must be a number that others compare with");
	return 0;
}

static int read_divisor(struct compiler *c, struct sub *s, struct rule *r)
{
	char shown[VALUE_SHOWN];

	(void)s;
	if (number_divisor(r->value->node, &r->divisor))
		return 0;
	return compile_reject(c, r->value,
		"must be above 0 with at most 18 digits that count, but is %s",
		value_show(r->value, shown));
}

static int read_type(struct compiler *c, const struct value *v, unsigned *types)
{
	static const struct {
		const char *name;
		unsigned types;
	} table[] = {
		{"null", VALUE_NULL},
		{"boolean", VALUE_BOOL},
		{"integer", VALUE_INTEGER},
		{"number", VALUE_NUMBER},
		{"string", VALUE_STRING},
		{"array", VALUE_LIST},
		{"object", VALUE_MAP},
	};
	char shown[VALUE_SHOWN];

	if (v->node->type != NODE_STRING)
		return must_be(c, v, VALUE_STRING, "");
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		if (strcmp(v->node->text, table[i].name) != 0)
			continue;
		*types |= table[i].types;
		return 0;
	}
	return compile_reject(c, v,
		"%s is no type: write null, boolean, integer, number, string, array or object",
		value_show(v, shown));
}

static int read_types(struct compiler *c, struct sub *s, struct rule *r)
{
	int error = 0;

	(void)s;
	if (r->value->node->type == NODE_STRING)
		return read_type(c, r->value, &r->types);
	if (r->value->count == 0)
		return compile_reject(c, r->value, "must not be empty");
	for (unsigned i = 0; i < r->value->count && error == 0; i++)
		error = read_type(c, &r->value->children[i], &r->types);
	return error ? error : check_unique(c, r->value);
}

static int read_sorted_values(struct compiler *c, struct sub *s, struct rule *r)
{
	(void)s;
	r->sorted = compile_take_memory(c, r->value->count, sizeof(struct value *));
	if (!r->sorted)
		return -ENOMEM;
	value_sort(r->value, r->sorted);
	return 0;
}

/* ---- names and references ---- */

static int read_draft(struct compiler *c, struct sub *s, struct rule *r)
{
	const struct node *n = r->value->node;
	size_t len = n->text_len;
	char shown[VALUE_SHOWN];

	(void)s;
	len -= len > 0 && n->text[len - 1] == '#';
	if (len == strlen(DRAFT) && memcmp(n->text, DRAFT, len) == 0)
		return 0;
	return compile_reject(c, r->value, "%s: only draft 2020-12 is understood, write %s",
		value_show(r->value, shown), DRAFT);
}

const struct resource *compile_find_resource(const struct compiler *c, const char *uri)
{
	for (unsigned i = 0; i < c->resource_count; i++)
		if (strcmp(c->resources[i].uri, uri) == 0)
			return &c->resources[i];
	return NULL;
}

int compile_begin_resource(struct compiler *c, const char *uri, const struct value *at)
{
	char *copy = compile_take_memory(c, strlen(uri) + 1, 1);

	if (!copy)
		return -ENOMEM;
	if (c->resource_count == SCHEMA_MAX_RESOURCES)
		return compile_reject(
			c, at, "more than %d schemas with an $id", SCHEMA_MAX_RESOURCES);
	memcpy(copy, uri, strlen(uri));
	c->resources[c->resource_count] = (struct resource){copy, at};
	c->resource = c->resource_count++;
	return 0;
}

static int read_id(struct compiler *c, struct sub *s, struct rule *r)
{
	const char *text = r->value->node->text;
	size_t len = strcspn(text, "#");
	const struct resource *known;
	char shown[VALUE_SHOWN], *uri;
	int error;

	if (text[len] && text[len + 1])
		return compile_reject(c, r->value,
			"%s: an $id has no fragment: write $anchor for it",
			value_show(r->value, shown));
	uri = schema_uri_resolve(c->resources[c->resource].uri, text, len);
	if (!uri)
		return -ENOMEM;
	known = compile_find_resource(c, uri);
	if (known && known->at != s->at)
		error = compile_reject(
			c, r->value, "%s names two schemas", value_show(r->value, shown));
	else
		error = compile_begin_resource(c, uri, s->at);
	free(uri);
	s->resource = c->resource;
	return error;
}

/* True when both are of one resource, which may have several names. */
static bool same_resource(const struct compiler *c, unsigned a, unsigned b)
{
	return c->resources[a].at == c->resources[b].at;
}

static int read_anchor(struct compiler *c, struct sub *s, struct rule *r)
{
	static const char first[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_",
			  compile_other_key[] = "-.0123456789";
	const char *name = r->value->node->text, *p = name;
	char shown[VALUE_SHOWN];

	while (*p && (strchr(first, *p) || (p > name && strchr(compile_other_key, *p))))
		p++;
	if (*p || p == name)
		return compile_reject(c, r->value,
			"%s is no name of an anchor: letters, digits, - _ . and first a letter or "
			"_",
			value_show(r->value, shown));
	for (size_t i = 0; i < c->anchor_count; i++)
		if (strcmp(c->anchors[i].name->node->text, name) == 0 && c->anchors[i].sub != s &&
			same_resource(c, c->anchors[i].sub->resource, s->resource))
			return compile_reject(
				c, r->value, "%s names two schemas", value_show(r->value, shown));
	if (c->anchor_count == SCHEMA_MAX_ANCHORS)
		return compile_reject(c, r->value, "more than %d anchors", SCHEMA_MAX_ANCHORS);
	c->anchors[c->anchor_count].name = r->value;
	c->anchors[c->anchor_count].dynamic = r->keyword == KEYWORD_DYNAMIC_ANCHOR;
	c->anchors[c->anchor_count++].sub = s;
	return 0;
}

static const struct {
	const char *name;
	unsigned takes; /* types of its value */
	bool in_place;  /* its schemas check the same value, not a child */
	int (*compile)(struct compiler *c, struct sub *s, struct rule *r);
	enum keyword beside[2]; /* KEYWORD_SCHEMA (0): none */
} rows[KEYWORD_COUNT] = {
	[KEYWORD_SCHEMA] = {"$schema", VALUE_STRING, false, read_draft, {0}},
	[KEYWORD_ID] = {"$id", VALUE_STRING, false, read_id, {0}},
	[KEYWORD_ANCHOR] = {"$anchor", VALUE_STRING, false, read_anchor, {0}},
	[KEYWORD_DYNAMIC_ANCHOR] = {"$dynamicAnchor", VALUE_STRING, false, read_anchor, {0}},
	[KEYWORD_DEFS] = {"$defs", VALUE_MAP, false, read_schemas, {0}},
	[KEYWORD_DEFINITIONS] = {"definitions", VALUE_MAP, false, read_schemas, {0}},
	[KEYWORD_MIN_CONTAINS] = {"minContains", VALUE_NUMBER, false, read_count, {0}},
	[KEYWORD_MAX_CONTAINS] = {"maxContains", VALUE_NUMBER, false, read_count, {0}},
	[KEYWORD_THEN] = {"then", SCHEMAS, true, read_one_schema, {0}},
	[KEYWORD_ELSE] = {"else", SCHEMAS, true, read_one_schema, {0}},
	[KEYWORD_TYPE] = {"type", VALUE_STRING | VALUE_LIST, false, read_types, {0}},
	[KEYWORD_ENUM] = {"enum", VALUE_LIST, false, read_sorted_values, {0}},
	[KEYWORD_CONST] = {"const", VALUE_ANY, false, NULL, {0}},
	[KEYWORD_MULTIPLE_OF] = {"multipleOf", VALUE_NUMBER, false, read_divisor, {0}},
	[KEYWORD_MAXIMUM] = {"maximum", VALUE_NUMBER, false, read_limit, {0}},
	[KEYWORD_EXCLUSIVE_MAXIMUM] = {"exclusiveMaximum", VALUE_NUMBER, false, read_limit, {0}},
	[KEYWORD_MINIMUM] = {"minimum", VALUE_NUMBER, false, read_limit, {0}},
	[KEYWORD_EXCLUSIVE_MINIMUM] = {"exclusiveMinimum", VALUE_NUMBER, false, read_limit, {0}},
	[KEYWORD_MAX_LENGTH] = {"maxLength", VALUE_NUMBER, false, read_count, {0}},
	[KEYWORD_MIN_LENGTH] = {"minLength", VALUE_NUMBER, false, read_count, {0}},
	[KEYWORD_PATTERN] = {"pattern", VALUE_STRING, false, read_pattern, {0}},
	[KEYWORD_MAX_ITEMS] = {"maxItems", VALUE_NUMBER, false, read_count, {0}},
	[KEYWORD_MIN_ITEMS] = {"minItems", VALUE_NUMBER, false, read_count, {0}},
	[KEYWORD_UNIQUE_ITEMS] = {"uniqueItems", VALUE_BOOL, false, NULL, {0}},
	[KEYWORD_MAX_PROPERTIES] = {"maxProperties", VALUE_NUMBER, false, read_count, {0}},
	[KEYWORD_MIN_PROPERTIES] = {"minProperties", VALUE_NUMBER, false, read_count, {0}},
	[KEYWORD_REQUIRED] = {"required", VALUE_LIST, false, read_required_names, {0}},
	[KEYWORD_DEPENDENT_REQUIRED] = {"dependentRequired", VALUE_MAP, false, read_dependent_names,
		{0}},
	[KEYWORD_REF] = {"$ref", VALUE_STRING, true, NULL, {0}},
	[KEYWORD_DYNAMIC_REF] = {"$dynamicRef", VALUE_STRING, true, NULL, {0}},
	[KEYWORD_PREFIX_ITEMS] = {"prefixItems", VALUE_LIST, false, read_schemas, {0}},
	[KEYWORD_ITEMS] = {"items", SCHEMAS, false, read_one_schema, {KEYWORD_PREFIX_ITEMS}},
	[KEYWORD_CONTAINS] = {"contains", SCHEMAS, false, read_one_schema,
		{KEYWORD_MIN_CONTAINS, KEYWORD_MAX_CONTAINS}},
	[KEYWORD_PROPERTIES] = {"properties", VALUE_MAP, false, read_schemas, {0}},
	[KEYWORD_PATTERN_PROPERTIES] = {"patternProperties", VALUE_MAP, false, read_pattern_schemas,
		{0}},
	[KEYWORD_ADDITIONAL_PROPERTIES] = {"additionalProperties", SCHEMAS, false, read_one_schema,
		{KEYWORD_PROPERTIES, KEYWORD_PATTERN_PROPERTIES}},
	[KEYWORD_PROPERTY_NAMES] = {"propertyNames", SCHEMAS, false, read_one_schema, {0}},
	[KEYWORD_DEPENDENT_SCHEMAS] = {"dependentSchemas", VALUE_MAP, true, read_schemas, {0}},
	[KEYWORD_ALL_OF] = {"allOf", VALUE_LIST, true, read_schemas, {0}},
	[KEYWORD_ANY_OF] = {"anyOf", VALUE_LIST, true, read_schemas, {0}},
	[KEYWORD_ONE_OF] = {"oneOf", VALUE_LIST, true, read_schemas, {0}},
	[KEYWORD_NOT] = {"not", SCHEMAS, true, read_one_schema, {0}},
	[KEYWORD_IF] = {"if", SCHEMAS, true, read_one_schema, {KEYWORD_THEN, KEYWORD_ELSE}},
	[KEYWORD_UNEVALUATED_ITEMS] = {"unevaluatedItems", SCHEMAS, false, read_one_schema, {0}},
	[KEYWORD_UNEVALUATED_PROPERTIES] = {"unevaluatedProperties", SCHEMAS, false,
		read_one_schema, {0}},
};

static const struct {
	const char *name;
	unsigned takes;
} annotations[] = {
	{"$comment", VALUE_STRING},
	{"$vocabulary", VALUE_MAP},
	{"title", VALUE_STRING},
	{"description", VALUE_STRING},
	{"default", VALUE_ANY},
	{"examples", VALUE_LIST},
	{"deprecated", VALUE_BOOL},
	{"readOnly", VALUE_BOOL},
	{"writeOnly", VALUE_BOOL},
	{"format", VALUE_STRING},
	{"contentEncoding", VALUE_STRING},
	{"contentMediaType", VALUE_STRING},
	{"contentSchema", SCHEMAS},
};

/* ---- schemas ---- */

static bool is_keyword(const char *name)
{
	for (size_t i = 0; i < KEYWORD_COUNT; i++)
		if (strcmp(rows[i].name, name) == 0)
			return true;
	return false;
}

/* Of older drafts: without them the schema would ask for less than its author meant. */
static const struct {
	const char *name, *instead;
} outdated[] = {
	{"dependencies", "dependentRequired for names, dependentSchemas for schemas"},
	{"additionalItems", "items, beside prefixItems"},
	{"$recursiveRef", "$dynamicRef"},
	{"$recursiveAnchor", "$dynamicAnchor"},
	{"divisibleBy", "multipleOf"},
	{"disallow", "not"},
	{"extends", "allOf"},
};

/* A name without rules: an annotation, an outdated keyword, or an unknown one. */
static int compile_other_key(struct compiler *c, const struct value *v)
{
	for (size_t i = 0; i < sizeof(outdated) / sizeof(outdated[0]); i++)
		if (strcmp(outdated[i].name, v->node->key) == 0)
			return compile_reject(c, v, "this keyword is of an older draft: write %s",
				outdated[i].instead);
	for (size_t i = 0; i < sizeof(annotations) / sizeof(annotations[0]); i++) {
		if (strcmp(annotations[i].name, v->node->key) != 0)
			continue;
		return value_is(v, annotations[i].takes) ? 0
							 : must_be(c, v, annotations[i].takes, "");
	}
	for (size_t i = 0; i < c->unknown_count; i++)
		if (strcmp(c->unknown[i]->node->key, v->node->key) == 0)
			return 0;
	if (c->unknown_count < COMPILER_UNKNOWN)
		c->unknown[c->unknown_count++] = v;
	return 0;
}

static int compile_rule(struct compiler *c, struct sub *s, enum keyword k, const struct value *v)
{
	struct rule *r = &s->rules[s->count++];

	if (!value_is(v, rows[k].takes))
		return must_be(c, v, rows[k].takes,
			k == KEYWORD_ITEMS && value_is(v, VALUE_LIST) ? ": name it prefixItems"
								      : "");
	r->keyword = k;
	r->value = v;
	for (size_t b = 0; b < 2; b++)
		for (unsigned i = 0; rows[k].beside[b] && i < s->count; i++)
			if (s->rules[i].keyword == rows[k].beside[b])
				r->beside[b] = &s->rules[i];
	s->leftovers |= k == KEYWORD_UNEVALUATED_ITEMS || k == KEYWORD_UNEVALUATED_PROPERTIES;
	return rows[k].compile ? rows[k].compile(c, s, r) : 0;
}

static int compile_sub(struct compiler *c, const struct value *v, struct sub **ret_sub)
{
	struct sub *s = compile_take_memory(c, 1, sizeof(*s));
	unsigned outer = c->resource;
	size_t known = 0;
	int error = 0;

	if (!s)
		return -ENOMEM;
	if (!value_is(v, SCHEMAS))
		return must_be(c, v, SCHEMAS, "");
	*ret_sub = s;
	s->at = v;
	s->resource = c->resource;
	*c->last = s;
	c->last = &s->next;
	c->tree->sub_of[v - c->tree->root] = s;
	for (unsigned i = 0; i < v->count && error == 0; i++) {
		if (is_keyword(v->children[i].node->key))
			known++;
		else
			error = compile_other_key(c, &v->children[i]);
	}
	s->rules = compile_take_memory(c, known, sizeof(*s->rules));
	if (!s->rules)
		return -ENOMEM;
	for (unsigned k = 0; k < KEYWORD_COUNT && s->count < known && error == 0; k++) {
		const struct value *found = value_find(v, rows[k].name, strlen(rows[k].name));

		if (found)
			error = compile_rule(c, s, (enum keyword)k, found);
	}
	c->resource = outer;
	return error;
}

int compile_tree(struct compiler *c, const char *file, const char *uri, const struct node *root,
	struct sub **ret_sub)
{
	struct tree *t = &c->s->trees[c->s->tree_count];
	unsigned outer = c->resource;
	int error = value_tree(root, &t->root, &t->values);

	if (error)
		return error;
	c->s->tree_count++;
	t->file = file;
	t->sub_of = calloc(t->values, sizeof(struct sub *));
	c->tree = t;
	error = t->sub_of ? compile_begin_resource(c, uri, t->root) : -ENOMEM;
	if (error == 0)
		error = compile_sub(c, t->root, ret_sub);
	c->resource = outer;
	return error;
}

/* ---- chains ---- */

#define OPEN UINT_MAX /* a chain that is being followed */

/* Follows all schemas that check the same value as s, which `from` led to. */
static int measure_chain(
	struct compiler *c, struct sub *s, const struct value *from, unsigned depth)
{
	unsigned longest = 0;
	int error = 0;

	if (s->chain == OPEN)
		return compile_reject(c, from,
			"leads back to where it came from without going into the document: the "
			"check would never end");
	if (s->chain)
		return 0;
	s->chain = OPEN;
	for (unsigned i = 0; i < s->count && depth <= SCHEMA_MAX_CHAIN; i++) {
		const struct rule *r = &s->rules[i];

		for (unsigned k = 0; rows[r->keyword].in_place && k < r->count; k++) {
			error = measure_chain(c, r->subs[k], r->value, depth + 1);
			if (error)
				return error;
			if (longest < r->subs[k]->chain)
				longest = r->subs[k]->chain;
		}
	}
	s->chain = longest + 1;
	if (s->chain > SCHEMA_MAX_CHAIN || depth > SCHEMA_MAX_CHAIN)
		return compile_reject(c, from,
			"more than %d schemas follow one another for one value", SCHEMA_MAX_CHAIN);
	return 0;
}

/* ---- the whole ---- */

static int compile_schema(struct compiler *c, const struct node *root)
{
	struct schema *s = c->s;
	char shown[VALUE_SHOWN];
	int error = compile_tree(c, NULL, "", root, &s->top);

	if (error == 0)
		error = reference_resolve_all(c);
	for (struct sub *p = s->subs; p && error == 0; p = p->next)
		error = measure_chain(c, p, p->at, 1);
	for (size_t i = 0; i < c->unknown_count && error == 0; i++) {
		const struct node *n = c->unknown[i]->node;

		error = buffer_printf(&s->unknown, "%s%s", i ? ", " : "",
			value_show_text(n->key, n->key_len, shown));
	}
	return error;
}

int schema_new(const struct node *root, const struct schema_file *files, size_t count,
	struct schema **ret_schema, char why[FILE_WHY])
{
	struct compiler *c = calloc(1, sizeof(*c));
	struct schema *s = calloc(1, sizeof(*s));
	int r = -ENOMEM;

	if (c && s) {
		*c = (struct compiler){.s = s, .last = &s->subs, .files = files, .why = why};
		c->file_count = count < SCHEMA_MAX_FILES ? count : SCHEMA_MAX_FILES;
		buffer_init(&s->unknown, COMPILER_UNKNOWN * (VALUE_SHOWN + 2));
		r = compile_schema(c, root);
	}
	free(c);
	if (r == 0) {
		*ret_schema = s;
		return 0;
	}
	schema_free(s);
	if (r == -EINVAL)
		return r;
	snprintf(why, FILE_WHY, "%s",
		r == -ENOMEM ? "there is no memory for the schema"
			     : "the schema is larger than a document may be");
	return r == -ENOMEM ? r : -EINVAL;
}

static void free_patterns(const struct rule *r)
{
	unsigned count = r->keyword == KEYWORD_PATTERN ? 1 : r->count;

	for (unsigned i = 0; r->patterns && i < count; i++)
		pattern_free(r->patterns[i]);
}

void schema_free(struct schema *s)
{
	struct piece *next;

	if (!s)
		return;
	for (struct sub *p = s->subs; p; p = p->next)
		for (unsigned i = 0; i < p->count; i++)
			free_patterns(&p->rules[i]);
	for (struct piece *p = s->pieces; p; p = next) {
		next = p->next;
		free(p);
	}
	for (unsigned i = 0; i < s->tree_count; i++) {
		free(s->trees[i].root);
		free(s->trees[i].sub_of);
	}
	buffer_fini(&s->unknown);
	free(s);
}

const char *schema_unknown(const struct schema *s)
{
	return s->unknown.data ? s->unknown.data : "";
}
