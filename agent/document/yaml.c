/*
 * Reads YAML through libyaml's events.
 *
 * Surprising: libyaml knows no types, no duplicate keys and no depth limit, hands aliases over
 * unexpanded, and needs quadratic time for deep flow nesting; all of that is decided here, while
 * the events come.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <yaml.h>

#include "document/core_schema.h"
#include "document/document.h"
#include "document/slip.h"
#include "base/hash.h"
#include "text/sentence.h"

#define MAX_ANCHORS 1000
#define QUOTED (100 + SENTENCE_WORDS) /* of a name in a message */

struct anchor {
	char *name;
	uint64_t hash; /* of it: 1,000 names are searched for each alias */
	const struct node *node;
	bool open; /* its own content is still being read */
};

struct reader {
	yaml_parser_t parser;
	yaml_event_t event; /* the present one */
	bool has_event;
	const char *data;
	size_t len, seen_bytes, seen_characters; /* seen: offset_of() */
	bool has_question;                       /* a '?' in the text */
	struct document *document;
	struct document_error *error;
	unsigned flags, depth;
	struct anchor *anchors;
	size_t anchor_count;
};

static int reject_at_mark(struct reader *r, yaml_mark_t mark, const char *message)
{
	r->error->line = (unsigned)mark.line + 1;
	r->error->column = (unsigned)mark.column + 1;
	if (message)
		snprintf(r->error->message, sizeof(r->error->message), "%s", message);
	return -EINVAL;
}

static void set_place(const struct reader *r, struct node *n)
{
	n->line = (unsigned)r->event.start_mark.line + 1;
	n->column = (unsigned)r->event.start_mark.column + 1;
}

/* document_add() gave NULL: no memory, or the node cap with its message. */
static int no_node(struct reader *r, yaml_mark_t mark)
{
	return r->error->message[0] ? reject_at_mark(r, mark, NULL) : -ENOMEM;
}

static bool is_ascii_word(const char *data)
{
	uint64_t word;

	memcpy(&word, data, sizeof(word));
	return !(word & UINT64_C(0x8080808080808080));
}

/* Where the character of a mark is in the text: marks count characters. Linear in all, as long as
 * marks come in order. */
static size_t offset_of(struct reader *r, yaml_mark_t mark)
{
	if (mark.index < r->seen_characters)
		r->seen_characters = r->seen_bytes = 0;
	while (r->seen_characters < mark.index && r->seen_bytes < r->len) {
		if (mark.index - r->seen_characters >= sizeof(uint64_t) &&
			r->len - r->seen_bytes >= sizeof(uint64_t) &&
			is_ascii_word(r->data + r->seen_bytes)) {
			r->seen_bytes += sizeof(uint64_t);
			r->seen_characters += sizeof(uint64_t);
			continue;
		}
		r->seen_bytes++;
		while (r->seen_bytes < r->len && (r->data[r->seen_bytes] & 0xc0) == 0x80)
			r->seen_bytes++;
		r->seen_characters++;
	}
	return r->seen_bytes;
}

static int parser_error(struct reader *r)
{
	const yaml_parser_t *p = &r->parser;
	const char *problem = p->problem ? p->problem : "not YAML";

	if (p->error == YAML_MEMORY_ERROR)
		return -ENOMEM;
	if (p->error == YAML_READER_ERROR) { /* document.c has checked each character before */
		snprintf(r->error->message, sizeof(r->error->message), "%s", problem);
		document_place(r->data, r->len, p->problem_offset, r->error);
		return -EINVAL;
	}
	return slip_explain(r->data, r->len, p, r->error)
		       ? -EINVAL
		       : reject_at_mark(r, p->problem_mark, problem);
}

static int reject_tag(struct reader *r, yaml_mark_t at, const char *tag)
{
	char quoted[QUOTED];

	snprintf(r->error->message, sizeof(r->error->message),
		"the tag %s does not fit here: only the core schema's are read%s",
		sentence_quote(quoted, sizeof(quoted), tag, strlen(tag), "that it has"),
		tag[0] == '!' ? ". ! begins a tag in YAML: put the value in quotes" : "");
	return reject_at_mark(r, at, NULL);
}

static const char *anchor_of(const yaml_event_t *e)
{
	const yaml_char_t *name =
		e->type == YAML_ALIAS_EVENT            ? e->data.alias.anchor
		: e->type == YAML_SCALAR_EVENT         ? e->data.scalar.anchor
		: e->type == YAML_MAPPING_START_EVENT  ? e->data.mapping_start.anchor
		: e->type == YAML_SEQUENCE_START_EVENT ? e->data.sequence_start.anchor
						       : NULL;

	return (const char *)name;
}

/* To libyaml a name ends where one of 1.2 goes on: "&a:b c" has the anchor "a:b" there. */
static int check_anchor(struct reader *r, const char *name)
{
	size_t at = offset_of(r, r->event.start_mark);

	while (at < r->len && r->data[at] != '&' && r->data[at] != '*') /* behind a tag */
		at++;
	at += 1 + strlen(name);
	if (at < r->len && r->data[at] && strchr(":?%@`", r->data[at]))
		return reject_at_mark(r, r->event.start_mark,
			"the name of an anchor is letters, digits, - and _: a blank must follow");
	return 0;
}

static int next_event(struct reader *r)
{
	const char *anchor;

	if (r->has_event)
		yaml_event_delete(&r->event);
	r->has_event = yaml_parser_parse(&r->parser, &r->event);
	anchor = r->has_event ? anchor_of(&r->event) : NULL;
	if (anchor)
		return check_anchor(r, anchor);
	return r->has_event ? 0 : parser_error(r);
}

/* ---- scalars ---- */

/* How the scalar was written. A plain string that a tag made one is not written plain again. */
static unsigned char style_of_event(const yaml_event_t *e, enum node_type type)
{
	unsigned style = e->data.scalar.style;
	bool tagged = e->data.scalar.tag != NULL;

	if (type != NODE_STRING && tagged)
		return (unsigned char)(style | STYLE_TAG(type));
	return (unsigned char)(style == STYLE_PLAIN && (tagged || !e->data.scalar.plain_implicit)
				       ? STYLE_ANY
				       : style);
}

/* The type and value of the present scalar event. */
static int scalar_value(struct reader *r, struct node *ret)
{
	const yaml_event_t *e = &r->event;
	const char *text = (const char *)e->data.scalar.value,
		   *tag = (const char *)e->data.scalar.tag;
	const char *problem = NULL;

	*ret = (struct node){.type = NODE_STRING};
	if (memchr(text, 0, e->data.scalar.length))
		return reject_at_mark(r, e->start_mark, "a NUL character: no text can hold it");
	if (e->data.scalar.plain_implicit || (tag && strcmp(tag, "!") != 0))
		problem = core_schema_resolve(text, ret);
	if (tag && !core_schema_apply_tag(ret, tag, text, &problem))
		return reject_tag(r, e->start_mark, tag);
	ret->style = style_of_event(e, ret->type);
	return problem ? reject_at_mark(r, e->start_mark, problem) : 0;
}

/* ---- anchors ---- */

static int anchor_open(struct reader *r, const char *name, const struct node *node)
{
	struct anchor *more;
	char *copy;

	if (!name)
		return 0;
	if (r->anchor_count == MAX_ANCHORS)
		return reject_at_mark(
			r, r->event.start_mark, "more than 1000 anchors: write the values out");
	copy = strdup(name);
	more = realloc(r->anchors, (r->anchor_count + 1) * sizeof(*more));
	if (more)
		r->anchors = more;
	if (!copy || !more) {
		free(copy);
		return -ENOMEM;
	}
	more = &r->anchors[r->anchor_count++];
	more->name = copy;
	more->hash = hash_bytes(HASH_START, copy, strlen(copy));
	more->node = node;
	more->open = true;
	return 0;
}

/* The node of the anchor that was opened at this place is complete. */
static void anchor_close(struct reader *r, size_t place)
{
	if (place < r->anchor_count)
		r->anchors[place].open = false;
}

/* The node that an alias event refers to; the latest anchor of a name counts. */
static int alias_target(struct reader *r, const struct node **ret_node)
{
	const char *name = (const char *)r->event.data.alias.anchor;
	uint64_t hash = hash_bytes(HASH_START, name, strlen(name));
	char quoted[QUOTED];

	for (size_t i = r->anchor_count; i-- > 0;) {
		if (r->anchors[i].hash != hash || strcmp(r->anchors[i].name, name) != 0)
			continue;
		if (r->anchors[i].open)
			return reject_at_mark(r, r->event.start_mark,
				"an alias inside its own anchor never ends");
		*ret_node = r->anchors[i].node;
		return 0;
	}
	snprintf(r->error->message, sizeof(r->error->message),
		"the alias *%s has no anchor before it. * begins an alias in YAML: put the value "
		"in quotes",
		sentence_quote(quoted, sizeof(quoted), name, strlen(name), ""));
	return reject_at_mark(r, r->event.start_mark, NULL);
}

static int copy_children(struct reader *r, const struct node *from, struct node *parent,
	unsigned depth, bool merged);

static int copy_node(struct reader *r, const struct node *from, struct node *parent,
	const char *key, size_t key_len, unsigned depth, struct node **ret_node)
{
	if (depth > DOCUMENT_MAX_DEPTH)
		return reject_at_mark(
			r, r->event.start_mark, "nested deeper than 64 levels, aliases included");
	*ret_node = document_add_copy(r->document, parent, key, key_len, from, r->error);
	if (!*ret_node)
		return no_node(r, r->event.start_mark);
	return copy_children(r, from, *ret_node, depth + 1, false);
}

static int copy_children(
	struct reader *r, const struct node *from, struct node *parent, unsigned depth, bool merged)
{
	struct node *copy;
	int error;

	for (const struct node *c = from->first; c; c = c->next) {
		error = copy_node(r, c, parent, c->key, c->key_len, depth, &copy);
		if (error)
			return error;
		node_copy_key(copy, c);
		copy->merged = merged;
	}
	return 0;
}

/* ---- collections ---- */

static int read_yaml_value(struct reader *r, struct node *parent, const char *key, size_t key_len,
	struct node **ret_node);

static int begin_collection(struct reader *r, struct node *parent, const char *key, size_t key_len,
	struct node **ret_node)
{
	bool map = r->event.type == YAML_MAPPING_START_EVENT;
	const yaml_char_t *tag =
		map ? r->event.data.mapping_start.tag : r->event.data.sequence_start.tag;
	struct node *n;
	int error;

	if (tag && strcmp((const char *)tag, "!") != 0 &&
		strcmp((const char *)tag, map ? CORE_SCHEMA "map" : CORE_SCHEMA "seq") != 0) {
		return reject_tag(r, r->event.start_mark, (const char *)tag);
	}
	if (r->depth == DOCUMENT_MAX_DEPTH)
		return reject_at_mark(r, r->event.start_mark, "nested deeper than 64 levels");
	n = document_add(
		r->document, parent, map ? NODE_MAP : NODE_LIST, key, key_len, NULL, 0, r->error);
	if (!n)
		return no_node(r, r->event.start_mark);
	set_place(r, n);
	error = anchor_open(r, anchor_of(&r->event), n);
	*ret_node = n;
	return error;
}

static int read_yaml_list(struct reader *r, struct node *list)
{
	struct node *item;
	int error;

	for (;;) {
		error = next_event(r);
		if (error || r->event.type == YAML_SEQUENCE_END_EVENT)
			return error;
		error = read_yaml_value(r, list, NULL, 0, &item);
		if (error)
			return error;
	}
}

/* Appends the children of `from`, which a merge key named; the explicit ones will win. */
static int merge_map(struct reader *r, struct node *map, const struct node *from)
{
	if (from->type != NODE_MAP)
		return reject_at_mark(r, r->event.start_mark,
			"a merge key (<<) takes a mapping or a list of mappings");
	return copy_children(r, from, map, r->depth + 1, true);
}

/* merges: the values of the merge keys, linked by `next`. */
static int merge_all(struct reader *r, struct node *map, const struct node *merges)
{
	int error = 0;

	for (; merges && error == 0; merges = merges->next) {
		if (merges->type != NODE_LIST) {
			error = merge_map(r, map, merges);
			continue;
		}
		for (const struct node *c = merges->first; c && error == 0; c = c->next)
			error = merge_map(r, map, c);
	}
	return error;
}

/* To libyaml "{?a: b}" has the key a, to YAML 1.2 the key "?a". */
static bool is_behind_question(struct reader *r, yaml_mark_t mark)
{
	size_t at = offset_of(r, mark);

	return at > 0 && at < r->len && r->data[at - 1] == '?' &&
	       !memchr(" \t\r\n", r->data[at], 4);
}

/* A collection or alias in the place of a key: "{{ url }}" is one to YAML. */
static int reject_key(struct reader *r)
{
	yaml_mark_t mark = r->event.start_mark;
	size_t at = offset_of(r, mark);

	if (at == 0 || at >= r->len || r->data[at] != '{' || r->data[at - 1] != '{')
		return reject_at_mark(
			r, mark, "a key must be a plain value, not a list, mapping or alias");
	mark.column--;
	return reject_at_mark(
		r, mark, "{{ begins a value of a template: fill it in first, or put it in quotes");
}

/* The name is the present event's. */
static int read_map_key(struct reader *r, struct node *ret_key, bool *ret_merge)
{
	const yaml_event_t *e = &r->event;
	struct node value = {.type = NODE_STRING};

	if (e->type != YAML_SCALAR_EVENT)
		return reject_key(r);
	if (r->has_question && is_behind_question(r, e->start_mark))
		return reject_at_mark(r, e->start_mark,
			"a blank must follow the ?, or quotes must enclose the text");
	if (memchr(e->data.scalar.value, 0, e->data.scalar.length))
		return reject_at_mark(r, e->start_mark, "a NUL character: no text can hold it");
	if (e->data.scalar.tag &&
		strcmp((const char *)e->data.scalar.tag, CORE_SCHEMA "str") != 0) {
		int error = scalar_value(r, &value);

		if (error)
			return error;
	}
	ret_key->key_len = e->data.scalar.length;
	ret_key->key = (const char *)e->data.scalar.value;
	ret_key->key_style = style_of_event(e, value.type);
	ret_key->key_line = (unsigned)e->start_mark.line + 1;
	ret_key->key_column = (unsigned)e->start_mark.column + 1;
	*ret_merge = e->data.scalar.plain_implicit && strcmp(ret_key->key, "<<") == 0;
	return 0;
}

/* One key and its value, which is no member yet when the key is a merge key. */
static int read_member(
	struct reader *r, struct node *map, struct node **ret_value, bool *ret_is_merge)
{
	struct node key = {0};
	yaml_event_t event;
	bool merge = false;
	int error = read_map_key(r, &key, &merge);

	if (error)
		return error;
	event = r->event; /* the name is used still */
	r->has_event = false;
	error = next_event(r);
	if (error == 0)
		error = read_yaml_value(
			r, merge ? NULL : map, merge ? NULL : key.key, key.key_len, ret_value);
	if (error == 0 && !merge)
		node_copy_key(*ret_value, &key);
	yaml_event_delete(&event);
	*ret_is_merge = merge;
	return error;
}

static int read_map(struct reader *r, struct node *map)
{
	struct node *merges = NULL, **end = &merges, *value;
	bool is_merge;
	int error;

	for (;;) {
		error = next_event(r);
		if (error || r->event.type == YAML_MAPPING_END_EVENT)
			break;
		error = read_member(r, map, &value, &is_merge);
		if (error)
			return error;
		if (is_merge) {
			*end = value;
			end = &value->next;
		}
	}
	if (error == 0)
		error = merge_all(r, map, merges);
	return error ? error : document_settle_keys(map, r->flags, r->error);
}

/* Reads the value that the present event begins. */
static int read_yaml_value(struct reader *r, struct node *parent, const char *key, size_t key_len,
	struct node **ret_node)
{
	/* where its anchor will be; no place, when it has none */
	size_t place = anchor_of(&r->event) ? r->anchor_count : SIZE_MAX;
	const struct node *target;
	struct node value, *n = NULL;
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
		n->integer = value.integer; /* the widest of the union: any scalar */
		set_place(r, n);
		n->style = value.style;
		*ret_node = n;
		error = anchor_open(r, anchor_of(&r->event), n);
		anchor_close(r, place);
		return error;
	default:
		error = begin_collection(r, parent, key, key_len, &n);
		if (error)
			return error;
		r->depth++;
		error = n->type == NODE_MAP ? read_map(r, n) : read_yaml_list(r, n);
		r->depth--;
		anchor_close(r, place);
		*ret_node = n;
		return error;
	}
}

/* ---- directives ---- */

static bool is_space_or_tab(char c)
{
	return c == ' ' || c == '\t';
}

static size_t blanks_len(const char *s, size_t left)
{
	size_t n = 0;

	while (n < left && is_space_or_tab(s[n]))
		n++;
	return n;
}

static bool ends_line(const char *s, size_t left)
{
	return left == 0 || *s == '\n' || *s == '\r';
}

static size_t line_len(const char *s, size_t left)
{
	size_t n = 0;

	while (!ends_line(s + n, left - n))
		n++;
	return n;
}

/* "%YAML 1.2", which may be followed by a comment. */
static bool is_version(const char *line, size_t len)
{
	size_t at = strlen("%YAML"), n;

	if (len < at || memcmp(line, "%YAML", at) != 0)
		return false;
	n = blanks_len(line + at, len - at);
	at += n;
	if (n == 0 || len - at < 3 || memcmp(line + at, "1.", 2) != 0)
		return false;
	at += 2;
	for (n = 0; at < len && n < 3 && line[at] >= '0' && line[at] <= '9'; n++)
		at++;
	if (n == 0)
		return false;
	n = blanks_len(line + at, len - at);
	return at + n == len || (n && line[at + n] == '#');
}

/* The first line from `at` on that is neither blank nor a comment. */
static size_t skip_comments(const char *data, size_t len, size_t at)
{
	for (;;) {
		size_t n = blanks_len(data + at, len - at), line = line_len(data + at, len - at);

		if (at + line == len)
			return n == line || data[at + n] == '#' ? len : at;
		if (n < line && data[at + n] != '#')
			return at;
		at += line + 1;
	}
}

static int reject_at_offset(struct reader *r, size_t at, const char *message)
{
	document_place(r->data, r->len, at, r->error);
	snprintf(r->error->message, sizeof(r->error->message), "%s", message);
	return -EINVAL;
}

/* libyaml keeps each %TAG and compares it with all before: it sees none. */
static int check_directives(struct reader *r)
{
	bool version = false;
	size_t at = 0;

	while ((at = skip_comments(r->data, r->len, at)) < r->len && r->data[at] == '%') {
		size_t len = line_len(r->data + at, r->len - at);

		if (!is_version(r->data + at, len))
			return reject_at_offset(r, at,
				"unsupported directive: only %YAML 1.2 (or 1.1) is allowed; remove "
				"the line");
		if (version)
			return reject_at_offset(r, at, "a second %YAML: only one is allowed");
		version = true;
		at += len;
	}
	return 0;
}

/* Behind the end of the document, whose mark this is, libyaml would read directives again. */
static int check_rest(struct reader *r, yaml_mark_t end)
{
	static const char mark[] = "...";
	size_t at = offset_of(r, end), n = strlen(mark);

	for (;;) {
		at = skip_comments(r->data, r->len, at);
		if (r->len - at < n || memcmp(r->data + at, mark, n) != 0)
			break;
		at += n;
	}
	return at < r->len && r->data[at] == '%'
		       ? reject_at_offset(r, at, "a second document begins here: only one is read")
		       : 0;
}

/* ---- the document ---- */

static int read_empty(struct reader *r)
{
	struct node *root;

	if (!(r->flags & DOCUMENT_ALLOW_EMPTY))
		return reject_at_mark(r, (yaml_mark_t){0}, "the document is empty");
	root = document_add(r->document, NULL, NODE_MAP, NULL, 0, NULL, 0, r->error);
	if (!root)
		return -ENOMEM;
	root->line = root->column = 1;
	return 0;
}

/* A text without quotes was meant as a key and a value, perhaps. */
static int check_root(struct reader *r, const struct node *root)
{
	size_t at = slip_offset(r->data, r->len, root->line, root->column);
	const char *slip = root->type == NODE_STRING && root->style == STYLE_PLAIN
				   ? slip_in_line(r->data, r->len, &at)
				   : NULL;

	if (!slip)
		return 0; /* document.c rejects what is no mapping */
	document_place(r->data, r->len, at, r->error);
	snprintf(r->error->message, sizeof(r->error->message),
		"the document must be a mapping (key: value), not a single value: %s", slip);
	return -EINVAL;
}

static int read_document(struct reader *r)
{
	struct node *root;
	int error = check_directives(r);

	if (error == 0)
		error = next_event(r); /* stream start */
	if (error == 0)
		error = next_event(r);
	if (error)
		return error;
	if (r->event.type == YAML_STREAM_END_EVENT)
		return read_empty(r);
	error = next_event(r);
	if (error == 0)
		error = read_yaml_value(r, NULL, NULL, 0, &root);
	if (error == 0)
		error = next_event(r); /* document end */
	if (error == 0)
		error = check_rest(r, r->event.end_mark);
	if (error == 0)
		error = next_event(r);
	if (error)
		return error;
	if (r->event.type != YAML_STREAM_END_EVENT)
		return reject_at_mark(
			r, r->event.start_mark, "a second document begins here: only one is read");
	if (root->type == NODE_NULL && r->flags & DOCUMENT_ALLOW_EMPTY)
		root->type = NODE_MAP;
	return check_root(r, root);
}

int yaml_parse(const char *data, size_t len, unsigned flags, struct document *d,
	struct document_error *err)
{
	struct reader r = {.document = d, .error = err, .flags = flags};
	int error;

	r.data = data;
	r.len = len;
	r.has_question = memchr(data, '?', len) != NULL;
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
