/*
 * YAML through libyaml's events, read with the 1.2 core schema.
 *
 * Surprising: libyaml knows no types, no duplicate keys and no depth limit, hands aliases over
 * unexpanded, and needs quadratic time for deep flow nesting; all of that is decided here, while
 * the events come.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <yaml.h>

#include "document.h"

#define MAX_ANCHORS 1000
#define CORE "tag:yaml.org,2002:"

struct anchor {
	char *name;
	const struct node *node;
	bool open; /* its own content is still being read */
};

struct reader {
	yaml_parser_t parser;
	yaml_event_t event; /* the present one */
	bool has_event;
	const char *data;
	size_t len;
	struct document *document;
	struct document_error *error;
	unsigned flags, depth;
	struct anchor *anchors;
	size_t anchor_count;
};

static int refuse(struct reader *r, yaml_mark_t mark, const char *message)
{
	r->error->line = (unsigned)mark.line + 1;
	r->error->column = (unsigned)mark.column + 1;
	if (message)
		snprintf(r->error->message, sizeof(r->error->message), "%s", message);
	return -EINVAL;
}

/* document_add() gave NULL: no memory, or the node cap with its message. */
static int no_node(struct reader *r, yaml_mark_t mark)
{
	return r->error->message[0] ? refuse(r, mark, NULL) : -ENOMEM;
}

/* The reader's errors come with an offset only. */
static yaml_mark_t mark_of_offset(const struct reader *r, size_t offset)
{
	yaml_mark_t mark = {0};

	for (size_t i = 0; i < offset && i < r->len; i++) {
		mark.column++;
		if (r->data[i] == '\n') {
			mark.line++;
			mark.column = 0;
		}
	}
	return mark;
}

/* Marks count characters. */
static char character_at(const struct reader *r, size_t index)
{
	for (size_t at = 0; at < r->len; at++)
		if (((unsigned char)r->data[at] & 0xc0) != 0x80 && index-- == 0)
			return r->data[at];
	return '\0';
}

/* libyaml's own words, where they say what is wrong. */
static const char *clearer(const struct reader *r, const char *problem)
{
	bool start = strstr(problem, "cannot start any token");

	if (strstr(problem, "tab character") ||
		(start && character_at(r, r->parser.problem_mark.index) == '\t'))
		return "tabs cannot indent YAML: use spaces";
	return start ? "no plain text begins with this character: put it in quotes" : problem;
}

static int parser_error(struct reader *r)
{
	const yaml_parser_t *p = &r->parser;
	const char *problem = p->problem ? p->problem : "not YAML";

	if (p->error == YAML_MEMORY_ERROR)
		return -ENOMEM;
	if (p->error == YAML_READER_ERROR) {
		snprintf(r->error->message, sizeof(r->error->message), "%s: the text must be UTF-8",
			problem);
		return refuse(r, mark_of_offset(r, p->problem_offset), NULL);
	}
	return refuse(r, p->problem_mark, clearer(r, problem));
}

static int next(struct reader *r)
{
	if (r->has_event)
		yaml_event_delete(&r->event);
	r->has_event = yaml_parser_parse(&r->parser, &r->event);
	return r->has_event ? 0 : parser_error(r);
}

/* ---- scalars ---- */

static bool one_of(const char *text, const char *const *words)
{
	for (; *words; words++)
		if (strcmp(text, *words) == 0)
			return true;
	return false;
}

static size_t digits(const char *s, const char *set)
{
	return strspn(s, set);
}

static bool is_integer(const char *s, int *ret_base)
{
	size_t n;

	if (s[0] == '0' && (s[1] == 'o' || s[1] == 'x')) {
		*ret_base = s[1] == 'o' ? 8 : 16;
		n = digits(s + 2, *ret_base == 8 ? "01234567" : "0123456789abcdefABCDEF");
		return n > 0 && s[2 + n] == '\0';
	}
	*ret_base = 10;
	s += *s == '-' || *s == '+';
	n = digits(s, "0123456789");
	return n > 0 && s[n] == '\0';
}

static bool is_double(const char *s)
{
	static const char decimal[] = "0123456789";
	size_t whole, part = 0, n;

	s += *s == '-' || *s == '+';
	whole = digits(s, decimal);
	s += whole;
	if (*s == '.') {
		part = digits(s + 1, decimal);
		s += 1 + part;
	}
	if (whole + part == 0)
		return false;
	if (*s == 'e' || *s == 'E') {
		s++;
		s += *s == '-' || *s == '+';
		n = digits(s, decimal);
		if (n == 0)
			return false;
		s += n;
	}
	return *s == '\0';
}

static const char *const infinities[] = {
	".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF", NULL};
static const char *const nans[] = {".nan", ".NaN", ".NAN", NULL};
static const char *const nulls[] = {"", "~", "null", "Null", "NULL", NULL};
static const char *const truths[] = {"true", "True", "TRUE", NULL};
static const char *const falsehoods[] = {"false", "False", "FALSE", NULL};

/* What a plain scalar is under the core schema. -ERANGE: an integer outside 64 bits. */
static int resolve(const char *text, struct node *ret)
{
	int base;

	ret->type = NODE_STRING;
	if (one_of(text, nulls)) {
		ret->type = NODE_NULL;
	} else if (one_of(text, truths) || one_of(text, falsehoods)) {
		ret->type = NODE_BOOL;
		ret->boolean = text[0] == 't' || text[0] == 'T';
	} else if (is_integer(text, &base)) {
		ret->type = NODE_INT;
		errno = 0;
		ret->integer = strtoll(base == 10 ? text : text + 2, NULL, base);
		return errno == ERANGE ? -ERANGE : 0;
	} else if (one_of(text, infinities) || one_of(text, nans)) {
		ret->type = NODE_DOUBLE;
		ret->number = one_of(text, nans) ? __builtin_nan("")
			      : text[0] == '-'   ? -__builtin_inf()
						 : __builtin_inf();
	} else if (is_double(text)) {
		ret->type = NODE_DOUBLE;
		ret->number = strtod(text, NULL);
	}
	return 0;
}

/* Makes `type` of what the scalar resolved to, as its tag demands. */
static bool coerce(struct node *n, const char *tag)
{
	static const struct {
		const char *tag;
		enum node_type type;
	} tags[] = {
		{CORE "str", NODE_STRING},
		{"!", NODE_STRING},
		{CORE "int", NODE_INT},
		{CORE "float", NODE_DOUBLE},
		{CORE "bool", NODE_BOOL},
		{CORE "null", NODE_NULL},
	};

	for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++) {
		if (strcmp(tag, tags[i].tag) != 0)
			continue;
		if (tags[i].type == NODE_DOUBLE && n->type == NODE_INT) {
			n->number = (double)n->integer;
			n->type = NODE_DOUBLE;
		}
		if (tags[i].type == NODE_STRING)
			n->type = NODE_STRING;
		return n->type == tags[i].type;
	}
	return false;
}

/* The type and value of the present scalar event. */
static int scalar_value(struct reader *r, struct node *ret)
{
	const yaml_event_t *e = &r->event;
	const char *text = (const char *)e->data.scalar.value,
		   *tag = (const char *)e->data.scalar.tag;
	int error = 0;

	*ret = (struct node){.type = NODE_STRING};
	if (memchr(text, 0, e->data.scalar.length))
		return refuse(r, e->start_mark, "a NUL character: no text can hold it");
	if (e->data.scalar.plain_implicit || (tag && strcmp(tag, "!") != 0))
		error = resolve(text, ret);
	if (tag && !coerce(ret, tag)) {
		snprintf(r->error->message, sizeof(r->error->message),
			"the tag %.100s does not fit here: only the core schema's are read", tag);
		return refuse(r, e->start_mark, NULL);
	}
	if (error && ret->type == NODE_INT)
		return refuse(r, e->start_mark,
			"an integer outside 64 bits: quote it to make it a string");
	return 0;
}

/* ---- anchors ---- */

static int anchor_open(struct reader *r, const yaml_char_t *name, const struct node *node)
{
	struct anchor *more;
	char *copy;

	if (!name)
		return 0;
	if (r->anchor_count == MAX_ANCHORS)
		return refuse(
			r, r->event.start_mark, "more than 1000 anchors: write the values out");
	copy = strdup((const char *)name);
	more = realloc(r->anchors, (r->anchor_count + 1) * sizeof(*more));
	if (more)
		r->anchors = more;
	if (!copy || !more) {
		free(copy);
		return -ENOMEM;
	}
	more = &r->anchors[r->anchor_count++];
	more->name = copy;
	more->node = node;
	more->open = true;
	return 0;
}

static void anchor_close(struct reader *r, const struct node *node)
{
	for (size_t i = r->anchor_count; i-- > 0;)
		if (r->anchors[i].node == node)
			r->anchors[i].open = false;
}

/* The node an alias event stands for; the latest anchor of a name counts. */
static int alias_target(struct reader *r, const struct node **ret_node)
{
	const char *name = (const char *)r->event.data.alias.anchor;

	for (size_t i = r->anchor_count; i-- > 0;) {
		if (strcmp(r->anchors[i].name, name) != 0)
			continue;
		if (r->anchors[i].open)
			return refuse(r, r->event.start_mark,
				"an alias inside its own anchor never ends");
		*ret_node = r->anchors[i].node;
		return 0;
	}
	snprintf(r->error->message, sizeof(r->error->message),
		"the alias *%.100s has no anchor before it", name);
	return refuse(r, r->event.start_mark, NULL);
}

static int copy_node(struct reader *r, const struct node *from, struct node *parent,
	const char *key, size_t key_len, unsigned depth, struct node **ret_node)
{
	struct node *n;
	int error = 0;

	if (depth > DOCUMENT_MAX_DEPTH)
		return refuse(
			r, r->event.start_mark, "nested deeper than 64 levels, aliases included");
	n = document_add(r->document, parent, from->type, key, key_len, from->text, from->text_len,
		r->error);
	if (!n)
		return no_node(r, r->event.start_mark);
	n->line = from->line;
	n->column = from->column;
	if (from->type == NODE_BOOL)
		n->boolean = from->boolean;
	if (from->type == NODE_INT)
		n->integer = from->integer;
	if (from->type == NODE_DOUBLE)
		n->number = from->number;
	for (const struct node *c = from->first; c && error == 0; c = c->next) {
		struct node *copy;

		error = copy_node(r, c, n, c->key, c->key_len, depth + 1, &copy);
		if (error == 0) {
			copy->key_line = c->key_line;
			copy->key_column = c->key_column;
		}
	}
	*ret_node = n;
	return error;
}

/* ---- collections ---- */

static int read_value(struct reader *r, struct node *parent, const char *key, size_t key_len,
	struct node **ret_node);

static int collection(struct reader *r, struct node *parent, const char *key, size_t key_len,
	struct node **ret_node)
{
	bool map = r->event.type == YAML_MAPPING_START_EVENT;
	const yaml_char_t *tag =
		map ? r->event.data.mapping_start.tag : r->event.data.sequence_start.tag;
	const yaml_char_t *anchor =
		map ? r->event.data.mapping_start.anchor : r->event.data.sequence_start.anchor;
	struct node *n;
	int error;

	if (tag && strcmp((const char *)tag, "!") != 0 &&
		strcmp((const char *)tag, map ? CORE "map" : CORE "seq") != 0) {
		snprintf(r->error->message, sizeof(r->error->message),
			"the tag %.100s does not fit here: only the core schema's are read",
			(const char *)tag);
		return refuse(r, r->event.start_mark, NULL);
	}
	if (r->depth == DOCUMENT_MAX_DEPTH)
		return refuse(r, r->event.start_mark, "nested deeper than 64 levels");
	n = document_add(
		r->document, parent, map ? NODE_MAP : NODE_LIST, key, key_len, NULL, 0, r->error);
	if (!n)
		return no_node(r, r->event.start_mark);
	n->line = (unsigned)r->event.start_mark.line + 1;
	n->column = (unsigned)r->event.start_mark.column + 1;
	error = anchor_open(r, anchor, n);
	*ret_node = n;
	return error;
}

static int read_list(struct reader *r, struct node *list)
{
	struct node *item;
	int error;

	for (;;) {
		error = next(r);
		if (error || r->event.type == YAML_SEQUENCE_END_EVENT)
			return error;
		error = read_value(r, list, NULL, 0, &item);
		if (error)
			return error;
	}
}

/* Appends the children of `from`, which a merge key named; the explicit ones will win. */
static int merge_map(struct reader *r, struct node *map, const struct node *from)
{
	struct node *copy;
	int error = 0;

	if (from->type != NODE_MAP)
		return refuse(r, r->event.start_mark,
			"a merge key (<<) takes a mapping or a list of mappings");
	for (const struct node *c = from->first; c && error == 0; c = c->next) {
		error = copy_node(r, c, map, c->key, c->key_len, r->depth + 1, &copy);
		if (error == 0) {
			copy->merged = true;
			copy->key_line = c->key_line;
			copy->key_column = c->key_column;
		}
	}
	return error;
}

/* The value of one merge key, read on its own; kept until the map is complete. */
struct merge {
	struct node *value;
	struct merge *next;
};

static int merge_all(struct reader *r, struct node *map, const struct merge *merges)
{
	int error = 0;

	for (; merges && error == 0; merges = merges->next) {
		if (merges->value->type != NODE_LIST) {
			error = merge_map(r, map, merges->value);
			continue;
		}
		for (const struct node *c = merges->value->first; c && error == 0; c = c->next)
			error = merge_map(r, map, c);
	}
	return error;
}

static int read_key(struct reader *r, struct node *ret_key, bool *ret_merge)
{
	const yaml_event_t *e = &r->event;
	struct node value;

	if (e->type != YAML_SCALAR_EVENT)
		return refuse(r, e->start_mark,
			"a key must be a plain value, not a list, mapping or alias");
	if (memchr(e->data.scalar.value, 0, e->data.scalar.length))
		return refuse(r, e->start_mark, "a NUL character: no text can hold it");
	if (e->data.scalar.tag && strcmp((const char *)e->data.scalar.tag, CORE "str") != 0) {
		int error = scalar_value(r, &value);

		if (error)
			return error;
	}
	ret_key->key_len = e->data.scalar.length;
	ret_key->key = malloc(ret_key->key_len + 1);
	if (!ret_key->key)
		return -ENOMEM;
	memcpy((char *)ret_key->key, e->data.scalar.value, ret_key->key_len + 1);
	ret_key->key_line = (unsigned)e->start_mark.line + 1;
	ret_key->key_column = (unsigned)e->start_mark.column + 1;
	*ret_merge = e->data.scalar.plain_implicit && strcmp(ret_key->key, "<<") == 0;
	return 0;
}

/* One key and its value. */
static int read_member(
	struct reader *r, struct node *map, struct merge *last_merge, bool *ret_merged)
{
	struct node key = {0}, *value = NULL;
	bool merge = false;
	int error = read_key(r, &key, &merge);

	if (error == 0)
		error = next(r);
	if (error == 0)
		error = read_value(
			r, merge ? NULL : map, merge ? NULL : key.key, key.key_len, &value);
	if (error == 0 && !merge) {
		value->key_line = key.key_line;
		value->key_column = key.key_column;
	}
	free((char *)key.key);
	last_merge->value = value;
	*ret_merged = merge;
	return error;
}

static int read_map(struct reader *r, struct node *map)
{
	struct merge *merges = NULL, **end = &merges, *m;
	struct merge read;
	bool merged;
	int error;

	for (;;) {
		error = next(r);
		if (error || r->event.type == YAML_MAPPING_END_EVENT)
			break;
		error = read_member(r, map, &read, &merged);
		if (error)
			break;
		if (!merged)
			continue;
		m = malloc(sizeof(*m));
		if (!m) {
			error = -ENOMEM;
			break;
		}
		*m = (struct merge){.value = read.value};
		*end = m;
		end = &m->next;
	}
	if (error == 0)
		error = merge_all(r, map, merges);
	while ((m = merges)) {
		merges = m->next;
		free(m);
	}
	return error ? error : document_settle_keys(map, r->flags, r->error);
}

/* Reads the value that the present event begins. */
static int read_value(struct reader *r, struct node *parent, const char *key, size_t key_len,
	struct node **ret_node)
{
	const struct node *target;
	struct node value, *n;
	int error;

	switch (r->event.type) {
	case YAML_ALIAS_EVENT:
		error = alias_target(r, &target);
		return error ? error
			     : copy_node(r, target, parent, key, key_len, r->depth + 1, ret_node);
	case YAML_SCALAR_EVENT:
		error = scalar_value(r, &value);
		if (error)
			return error;
		n = document_add(r->document, parent, value.type, key, key_len,
			(const char *)r->event.data.scalar.value, r->event.data.scalar.length,
			r->error);
		if (!n)
			return no_node(r, r->event.start_mark);
		n->integer = value.integer; /* the widest member of the union */
		if (value.type == NODE_DOUBLE)
			n->number = value.number;
		if (value.type == NODE_BOOL)
			n->boolean = value.boolean;
		n->line = (unsigned)r->event.start_mark.line + 1;
		n->column = (unsigned)r->event.start_mark.column + 1;
		*ret_node = n;
		error = anchor_open(r, r->event.data.scalar.anchor, n);
		anchor_close(r, n);
		return error;
	default:
		error = collection(r, parent, key, key_len, &n);
		if (error)
			return error;
		r->depth++;
		error = n->type == NODE_MAP ? read_map(r, n) : read_list(r, n);
		r->depth--;
		anchor_close(r, n);
		*ret_node = n;
		return error;
	}
}

/* ---- the document ---- */

static int empty(struct reader *r)
{
	struct node *root;

	if (!(r->flags & DOCUMENT_ALLOW_EMPTY))
		return refuse(r, (yaml_mark_t){0}, "the document is empty");
	root = document_add(r->document, NULL, NODE_MAP, NULL, 0, NULL, 0, r->error);
	if (!root)
		return -ENOMEM;
	root->line = root->column = 1;
	return 0;
}

static int read_document(struct reader *r)
{
	struct node *root;
	int error = next(r); /* stream start */

	if (error == 0)
		error = next(r);
	if (error)
		return error;
	if (r->event.type == YAML_STREAM_END_EVENT)
		return empty(r);
	error = next(r);
	if (error == 0)
		error = read_value(r, NULL, NULL, 0, &root);
	if (error == 0)
		error = next(r); /* document end */
	if (error == 0)
		error = next(r);
	if (error)
		return error;
	if (r->event.type != YAML_STREAM_END_EVENT)
		return refuse(
			r, r->event.start_mark, "a second document begins here: only one is read");
	if (root->type == NODE_NULL && r->flags & DOCUMENT_ALLOW_EMPTY)
		root->type = NODE_MAP;
	return 0;
}

int yaml_parse(const char *data, size_t len, unsigned flags, struct document *d,
	struct document_error *err)
{
	struct reader r = {.document = d, .error = err, .flags = flags};
	int error;

	if (len >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0) { /* a byte order mark */
		data += 3;
		len -= 3;
	}
	r.data = data;
	r.len = len;
	if (!yaml_parser_initialize(&r.parser))
		return -ENOMEM;
	yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&r.parser, (const unsigned char *)data, len);
	error = read_document(&r);
	if (r.has_event)
		yaml_event_delete(&r.event);
	yaml_parser_delete(&r.parser);
	for (size_t i = 0; i < r.anchor_count; i++)
		free(r.anchors[i].name);
	free(r.anchors);
	return error;
}

/* ---- writing ---- */

/* Would some YAML reader, of 1.1 or 1.2, take this text for something else than a string? */
static bool looks_typed(const char *text)
{
	static const char *const words[] = {
		"null", "true", "false", "y", "n", "yes", "no", "on", "off", NULL};

	if (text[0] == '\0' || strchr("0123456789+-.~=<", text[0]))
		return true;
	for (const char *const *w = words; *w; w++)
		if (strcasecmp(text, *w) == 0)
			return true;
	return false;
}

/* Can it stand as a literal block and come back as it was? */
static bool fits_literal(const char *text, size_t len)
{
	if (len < 2 || strchr(" \t\n", text[0]) || (text[len - 1] == '\n' && text[len - 2] == '\n'))
		return false;
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)text[i] < ' ' && text[i] != '\n')
			return false;
		else if (text[i] == '\n' && i > 0 && text[i - 1] == ' ')
			return false;
	return (unsigned char)text[len - 1] != ' ';
}

static yaml_scalar_style_t style_of(const char *text, size_t len, bool key)
{
	bool control = false, lines = false;

	for (size_t i = 0; i < len; i++) {
		lines |= text[i] == '\n';
		control |= ((unsigned char)text[i] < ' ' && text[i] != '\n') ||
			   (unsigned char)text[i] >= 0x7f;
	}
	if (lines && !key && !control && fits_literal(text, len))
		return YAML_LITERAL_SCALAR_STYLE;
	if (lines || control)
		return YAML_DOUBLE_QUOTED_SCALAR_STYLE;
	return looks_typed(text) ? YAML_SINGLE_QUOTED_SCALAR_STYLE : YAML_PLAIN_SCALAR_STYLE;
}

static int emit(yaml_emitter_t *e, int made, yaml_event_t *event)
{
	if (!made)
		return -ENOMEM;
	/* takes the event even when it fails */
	return yaml_emitter_emit(e, event) ? 0 : e->error == YAML_MEMORY_ERROR ? -ENOMEM : -EINVAL;
}

static int emit_scalar(yaml_emitter_t *e, const char *text, size_t len, yaml_scalar_style_t style)
{
	yaml_event_t event;
	int made = yaml_scalar_event_initialize(&event, NULL, NULL, (const yaml_char_t *)text,
		(int)len, 1, style != YAML_PLAIN_SCALAR_STYLE || 1, style);

	return emit(e, made, &event);
}

static int emit_node(yaml_emitter_t *e, const struct node *n);

static int emit_collection(yaml_emitter_t *e, const struct node *n)
{
	bool map = n->type == NODE_MAP;
	yaml_event_t event;
	int r = emit(e,
		map ? yaml_mapping_start_event_initialize(
			      &event, NULL, NULL, 1, YAML_BLOCK_MAPPING_STYLE)
		    : yaml_sequence_start_event_initialize(
			      &event, NULL, NULL, 1, YAML_BLOCK_SEQUENCE_STYLE),
		&event);

	for (const struct node *c = n->first; c && r == 0; c = c->next) {
		if (map)
			r = emit_scalar(e, c->key, c->key_len, style_of(c->key, c->key_len, true));
		if (r == 0)
			r = emit_node(e, c);
	}
	if (r)
		return r;
	return emit(e,
		map ? yaml_mapping_end_event_initialize(&event)
		    : yaml_sequence_end_event_initialize(&event),
		&event);
}

static int emit_node(yaml_emitter_t *e, const struct node *n)
{
	char text[32];

	switch (n->type) {
	case NODE_NULL:
		return emit_scalar(e, "null", 4, YAML_PLAIN_SCALAR_STYLE);
	case NODE_BOOL:
		return emit_scalar(e, n->boolean ? "true" : "false", n->boolean ? 4 : 5,
			YAML_PLAIN_SCALAR_STYLE);
	case NODE_INT:
		snprintf(text, sizeof(text), "%" PRId64, n->integer);
		return emit_scalar(e, text, strlen(text), YAML_PLAIN_SCALAR_STYLE);
	case NODE_DOUBLE: { /* as it was written, unless that (by its tag) looks like an integer */
		int base;

		if (is_integer(n->text, &base)) {
			snprintf(text, sizeof(text), "%.17g.0", n->number);
			if (!is_double(text))
				snprintf(text, sizeof(text), "%.17g", n->number);
			return emit_scalar(e, text, strlen(text), YAML_PLAIN_SCALAR_STYLE);
		}
		return emit_scalar(e, n->text, n->text_len, YAML_PLAIN_SCALAR_STYLE);
	}
	case NODE_STRING:
		return emit_scalar(e, n->text, n->text_len, style_of(n->text, n->text_len, false));
	case NODE_LIST:
	case NODE_MAP:
		break;
	}
	return emit_collection(e, n);
}

static int take_output(void *arg, unsigned char *data, size_t len)
{
	return buffer_append(arg, data, len) == 0;
}

int yaml_write(const struct node *root, struct buffer *out)
{
	yaml_emitter_t e;
	yaml_event_t event;
	int r;

	if (!yaml_emitter_initialize(&e))
		return -ENOMEM;
	yaml_emitter_set_output(&e, take_output, out);
	yaml_emitter_set_unicode(&e, 1);
	yaml_emitter_set_width(&e, -1);
	r = emit(&e, yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING), &event);
	if (r == 0)
		r = emit(&e, yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1),
			&event);
	if (r == 0)
		r = emit_node(&e, root);
	if (r == 0)
		r = emit(&e, yaml_document_end_event_initialize(&event, 1), &event);
	if (r == 0)
		r = emit(&e, yaml_stream_end_event_initialize(&event), &event);
	yaml_emitter_delete(&e);
	return out->error ? out->error : r;
}
