/*
 * Guesses at slips that are valid YAML: its text is looked at again, where the value stands.
 *
 * Surprising: "url:http://a" is a text to YAML, and a line without a colon a part of the value
 * above it; only the characters of the file show that.
 */
#include "settings/guess.h"

#include <string.h>
#include <strings.h>

#include "document/slip.h"

#define IS(type) (1u << (type))

static void move_place(const struct loader *l, size_t offset, struct place *place)
{
	struct document_error at;

	document_place(l->text, l->text_len, offset, &at);
	place->line = at.line;
	place->column = at.column;
}

/* Of a plain text that goes on in the next line. */
static const char *guess_second_line(
	const struct loader *l, const struct node *n, size_t at, struct place *place)
{
	size_t next = slip_next_line(l->text, l->text_len, at, n->text_len);
	const char *slip;

	if (next == 0 || memchr(l->text + at, '$', next - at)) /* ${NAME}: another length */
		return NULL;
	slip = slip_in_line(l->text, l->text_len, &next);
	move_place(l, next, place);
	return slip ? slip
		    : "this line has no colon, so that it belongs to the value above it: write "
		      "KEY: VALUE";
}

static const char *guess_text(const struct loader *l, const struct node *n, unsigned types,
	size_t at, struct place *place)
{
	const char *slip = slip_is_typographic(n->text) ? SLIP_TYPOGRAPHIC : NULL;
	bool plain = n->style == STYLE_PLAIN;
	size_t moved = at;

	if (!slip && plain && !(types & IS(NODE_STRING)) &&
		(slip = slip_in_line(l->text, l->text_len, &moved)))
		move_place(l, moved, place);
	if (!slip && plain)
		slip = guess_second_line(l, n, at, place);
	if (!slip && plain && types & IS(NODE_STRING) && n->text[strcspn(n->text, "#")] &&
		n->text[0] != '#')
		slip = "a blank must stand before a # that begins a comment";
	if (!slip && types == IS(NODE_LIST))
		slip = n->text[0] == '/' && strchr(n->text, ' ')
			       ? "write each word as an item: [/PROGRAM, WORD]"
			       : "put a dash (-) before it, or brackets around it";
	return slip;
}

/* A mapping of names, which people write as a list of what has a name. */
static bool has_key_name(const struct node *n)
{
	return n->key && (!strcmp(n->key, "configs") || !strcmp(n->key, "servers"));
}

const char *guess_value(
	const struct loader *l, const struct node *n, unsigned types, struct place *place)
{
	size_t at = l->text ? slip_offset(l->text, l->text_len, n->line, n->column) : 0;
	const char *guess = NULL;

	if (!l->text || at >= l->text_len)
		return "";
	if (n->type == NODE_STRING)
		guess = guess_text(l, n, types, at, place);
	else if (n->type == NODE_NULL && l->text[at] == '&')
		guess = "& begins an anchor in YAML: put the value in quotes";
	else if (n->type == NODE_NULL && types == IS(NODE_MAP) && n->key && n->next)
		guess = "indent its keys deeper than its name";
	else if (n->type == NODE_MAP && types == IS(NODE_LIST))
		guess = "put a dash (-) before it, or brackets around it";
	else if (n->type == NODE_LIST && types & IS(NODE_MAP) && n->first &&
		 n->first->type == NODE_MAP)
		guess = has_key_name(n) ? "write NAME: instead of the dash (-)"
					: "remove the dash, or the brackets";
	return guess ? guess : "";
}

const char *guess_key(const struct loader *l, const struct node *n, struct place *place)
{
	const char *colon = strchr(n->key, ':');

	if (slip_is_typographic(n->key))
		return SLIP_TYPOGRAPHIC;
	if (colon && n->type == NODE_NULL && l->text) {
		size_t at = slip_offset(l->text, l->text_len, n->key_line, n->key_column);

		move_place(l, at + (size_t)(colon - n->key), place);
		return "a blank must follow the colon";
	}
	if (!strcmp(n->key, "apiVersion") || !strcmp(n->key, "kind"))
		return "this is a Kubernetes object: the agent's configuration is what stands in "
		       "it below data:";
	if (n->type == NODE_MAP && node_find(n, "urls"))
		return "it looks like a server: move it below servers:";
	if (n->type == NODE_MAP && (node_find(n, "url") || node_find(n, "from")))
		return "it looks like a config: move it below configs:";
	return NULL;
}

const char *guess_boolean(const char *word)
{
	static const struct {
		const char *word, *value;
	} words[] = {
		{"yes", "true"},
		{"on", "true"},
		{"y", "true"},
		{"1", "true"},
		{"true", "true"},
		{"enabled", "true"},
		{"no", "false"},
		{"off", "false"},
		{"n", "false"},
		{"0", "false"},
		{"false", "false"},
		{"disabled", "false"},
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcasecmp(word, words[i].word))
			return words[i].value;
	return NULL;
}
