/*
 * Guesses at slips in YAML, by libyaml's problem, its tokens before that, and the line's text.
 *
 * Surprising: the text is scanned a second time, up to the problem: what was open there (quotes,
 * brackets, columns of mappings and lists) is known to nobody else.
 */
#include "document/slip.h"

#include <stdio.h>
#include <string.h>

#include <yaml.h>

#define MAX_LEVELS (2 * DOCUMENT_MAX_DEPTH)
#define MAX_KEY 1024 /* characters up to the colon: YAML 1.2.2, 7.4.2 */

/* A mapping or list that goes on by its column. */
struct level {
	size_t line, column; /* 0-based; of its last key or dash */
	bool is_list;
};

struct token {
	yaml_token_type_t type;
	yaml_scalar_style_t style;
	yaml_mark_t start, end;
};

struct slip {
	const char *data;
	size_t len;
	yaml_mark_t at, context; /* libyaml's problem */
	size_t offset;           /* of `at` */
	struct level levels[MAX_LEVELS];
	size_t level_count;
	yaml_mark_t brackets[MAX_LEVELS]; /* that are open */
	size_t bracket_count;
	struct token last, before; /* the last token before the problem, and the one before that */
	struct document_error *err;
};

/* ---- text ---- */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool is_line_end(const char *data, size_t len, size_t at)
{
	return at >= len || data[at] == '\n' || data[at] == '\r';
}

static bool is_blank_or_end(const char *data, size_t len, size_t at)
{
	return is_line_end(data, len, at) || is_blank(data[at]);
}

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-' || c == '.';
}

static bool begins(const char *data, size_t len, size_t at, const char *with)
{
	size_t n = strlen(with);

	return at <= len && len - at >= n && memcmp(data + at, with, n) == 0;
}

/* The first character of the next line; len: there is none. */
static size_t next_line(const char *data, size_t len, size_t at)
{
	while (!is_line_end(data, len, at))
		at++;
	at += begins(data, len, at, "\r\n");
	return at < len ? at + 1 : len;
}

static size_t line_start(const char *data, size_t at)
{
	while (at > 0 && data[at - 1] != '\n' && data[at - 1] != '\r')
		at--;
	return at;
}

static size_t skip_blanks(const char *data, size_t len, size_t at)
{
	while (at < len && is_blank(data[at]))
		at++;
	return at;
}

size_t slip_offset(const char *data, size_t len, unsigned line, unsigned column)
{
	size_t at = 0;

	for (; line > 1 && at < len; line--)
		at = next_line(data, len, at);
	for (; column > 1 && !is_line_end(data, len, at); column--)
		for (at++; at < len && (data[at] & 0xc0) == 0x80;)
			at++;
	return at;
}

bool slip_is_typographic(const char *text)
{
	static const char *const quotes[] = {"\xe2\x80\x9c", "\xe2\x80\x9d", "\xe2\x80\x9e",
		"\xe2\x80\x98", "\xe2\x80\x99", "\xe2\x80\x9a", "\xc2\xab", "\xc2\xbb"};

	for (size_t i = 0; i < sizeof(quotes) / sizeof(quotes[0]); i++)
		if (strncmp(text, quotes[i], strlen(quotes[i])) == 0)
			return true;
	return false;
}

bool slip_find_odd_blank(const char *data, size_t len, size_t *ret_at, const char **ret_message)
{
	static const struct {
		const char *bytes, *message;
	} odd[] = {
		{"\xc2\xa0", "a no-break space is no indentation: write an ordinary blank"},
		{"\xe3\x80\x80", "an ideographic space is no indentation: write ordinary blanks"},
		{"\xe2\x80\x8b", "a zero width space, which nobody sees: remove it"},
	};

	for (size_t line = 0, at; line < len; line = next_line(data, len, at)) {
		at = skip_blanks(data, len, line);
		for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
			if (begins(data, len, at, odd[i].bytes)) {
				*ret_at = at;
				*ret_message = odd[i].message;
				return true;
			}
	}
	return false;
}

const char *slip_in_line(const char *data, size_t len, size_t *ret_at)
{
	size_t at = *ret_at, next;

	if (begins(data, len, at, "//") || begins(data, len, at, "/*"))
		return "comments begin with #";
	if (slip_is_typographic(data + at))
		return SLIP_TYPOGRAPHIC;
	if (data[at] == '-' && at + 1 < len && is_word(data[at + 1]) && data[at + 1] != '-')
		return "a blank must follow the dash of an item";
	while (at < len && is_word(data[at]))
		at++;
	if (at == *ret_at)
		return NULL;
	next = skip_blanks(data, len, at);
	if (next < len && data[next] == '=') {
		*ret_at = next;
		return "write KEY: VALUE, not KEY = VALUE";
	}
	if (at < len && data[at] == ':' && !begins(data, len, at, "://")) {
		*ret_at = at;
		return "a blank must follow the colon";
	}
	return NULL;
}

size_t slip_next_line(const char *data, size_t len, size_t at, size_t text_len)
{
	size_t end = at;

	for (; !is_line_end(data, len, end); end++)
		if (data[end] == '#' && end > at && is_blank(data[end - 1]))
			break;
	while (end > at && is_blank(data[end - 1]))
		end--;
	if (end - at >= text_len)
		return 0;
	do
		at = skip_blanks(data, len, next_line(data, len, at));
	while (at < len && is_line_end(data, len, at));
	return at < len ? at : 0;
}

/* ---- what was open ---- */

static void note_token(struct slip *s, const yaml_token_t *t)
{
	struct level *top = s->level_count ? &s->levels[s->level_count - 1] : NULL;

	switch (t->type) {
	case YAML_BLOCK_MAPPING_START_TOKEN:
	case YAML_BLOCK_SEQUENCE_START_TOKEN:
		if (s->level_count < MAX_LEVELS)
			s->levels[s->level_count++] = (struct level){t->start_mark.line,
				t->start_mark.column, t->type == YAML_BLOCK_SEQUENCE_START_TOKEN};
		return;
	case YAML_BLOCK_END_TOKEN:
		s->level_count -= s->level_count > 0;
		return;
	case YAML_FLOW_SEQUENCE_START_TOKEN:
	case YAML_FLOW_MAPPING_START_TOKEN:
		if (s->bracket_count < MAX_LEVELS)
			s->brackets[s->bracket_count++] = t->start_mark;
		break;
	case YAML_FLOW_SEQUENCE_END_TOKEN:
	case YAML_FLOW_MAPPING_END_TOKEN:
		s->bracket_count -= s->bracket_count > 0;
		break;
	case YAML_KEY_TOKEN:
	case YAML_BLOCK_ENTRY_TOKEN:
		if (top && top->column == t->start_mark.column)
			top->line = t->start_mark.line;
		break;
	default:
		break;
	}
	s->before = s->last;
	s->last = (struct token){t->type,
		t->type == YAML_SCALAR_TOKEN ? t->data.scalar.style : YAML_ANY_SCALAR_STYLE,
		t->start_mark, t->end_mark};
}

/* Reads the tokens before the character with this number. */
static void scan_tokens(struct slip *s, size_t end)
{
	yaml_parser_t p;
	yaml_token_t t;
	bool more = true;

	if (!yaml_parser_initialize(&p))
		return;
	yaml_parser_set_encoding(&p, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&p, (const unsigned char *)s->data, s->len);
	while (more && yaml_parser_scan(&p, &t)) {
		more = t.type != YAML_STREAM_END_TOKEN && t.type != YAML_NO_TOKEN &&
		       t.start_mark.index < end;
		if (more && t.type != YAML_STREAM_START_TOKEN)
			note_token(s, &t);
		yaml_token_delete(&t);
	}
	yaml_parser_delete(&p);
}

static size_t offset_of_mark(const struct slip *s, yaml_mark_t mark)
{
	return slip_offset(s->data, s->len, (unsigned)mark.line + 1, (unsigned)mark.column + 1);
}

static char char_at(const struct slip *s, size_t offset)
{
	return offset < s->len ? s->data[offset] : '\0';
}

/* The column where the line of this offset begins to say something, 0-based. */
static size_t indent_of(const struct slip *s, size_t offset)
{
	size_t start = line_start(s->data, offset);

	return skip_blanks(s->data, s->len, start) - start;
}

static bool is_quoted(const struct token *t)
{
	return t->type == YAML_SCALAR_TOKEN && (t->style == YAML_SINGLE_QUOTED_SCALAR_STYLE ||
						       t->style == YAML_DOUBLE_QUOTED_SCALAR_STYLE);
}

/* ---- sentences ---- */

static bool say_at(struct slip *s, yaml_mark_t mark, const char *message)
{
	s->err->line = (unsigned)mark.line + 1;
	s->err->column = (unsigned)mark.column + 1;
	if (message != s->err->message)
		snprintf(s->err->message, sizeof(s->err->message), "%s", message);
	return true;
}

static bool say_at_offset(struct slip *s, size_t offset, const char *message)
{
	document_place(s->data, s->len, offset, s->err);
	snprintf(s->err->message, sizeof(s->err->message), "%s", message);
	return true;
}

/* About a line in which a colon was expected, from the offset on. */
static bool say_line(struct slip *s, size_t offset)
{
	const char *message = slip_in_line(s->data, s->len, &offset);

	return say_at_offset(
		s, offset, message ? message : "this line has no colon: write KEY: VALUE");
}

/* The level whose column is nearest to this one; the deeper of two. */
static const struct level *nearest_level(const struct slip *s, size_t c)
{
	const struct level *best = NULL;
	size_t least = SIZE_MAX;

	for (const struct level *l = s->levels; l < s->levels + s->level_count; l++) {
		size_t d = l->column > c ? l->column - c : c - l->column;

		if (d <= least) {
			least = d;
			best = l;
		}
	}
	return best;
}

static bool say_column(struct slip *s, size_t offset, const char *what, const struct level *l)
{
	document_place(s->data, s->len, offset, s->err);
	snprintf(s->err->message, sizeof(s->err->message),
		"%s: begin it in column %zu, as line %zu does", what, l->column + 1, l->line + 1);
	return true;
}

/* ---- problems ---- */

static bool explain_quote(struct slip *s)
{
	bool single = char_at(s, offset_of_mark(s, s->context)) == '\'';

	return say_at(s, s->context,
		single ? "the single quote that opens here is never closed: close it at the end of "
			 "the value"
		       : "the double quote that opens here is never closed: close it at the end of "
			 "the value");
}

static bool explain_escape(struct slip *s)
{
	return say_at(s, s->at,
		"a backslash in double quotes begins an escape: write \\\\, or use single quotes");
}

static bool explain_number(struct slip *s)
{
	return say_at(s, s->at,
		"hexadecimal digits must follow: \\xHH, \\uHHHH or \\UHHHHHHHH; write \\\\ for a "
		"backslash, or use single quotes");
}

static bool explain_tab(struct slip *s)
{
	return say_at(s, s->at, "tabs cannot indent YAML: use spaces");
}

static bool explain_character(struct slip *s)
{
	char c = char_at(s, s->offset);
	yaml_mark_t before = s->at;

	if (c == '\t')
		return explain_tab(s);
	if (begins(s->data, s->len, s->offset, "```"))
		return say_at(s, s->at, "this is a fence of Markdown: remove the line");
	if (c == '%' && s->offset > 0 && s->data[s->offset - 1] == '{') {
		before.column -= before.column > 0;
		return say_at(s, before, "this is a statement of a template: fill it in first");
	}
	snprintf(s->err->message, sizeof(s->err->message),
		"no text without quotes begins with %c: put the value in quotes", c);
	return say_at(s, s->at, s->err->message);
}

static bool explain_alias(struct slip *s)
{
	return say_at(s, s->context,
		char_at(s, offset_of_mark(s, s->context)) == '*'
			? "* begins an alias in YAML: put the value in quotes"
			: "& begins an anchor in YAML: put the value in quotes");
}

static bool explain_tag(struct slip *s)
{
	return say_at(s, s->context, "! begins a tag in YAML: put the value in quotes");
}

static bool explain_block_text(struct slip *s)
{
	return say_at(s, s->at,
		"the text of a block (| or >) begins in the next line; a value that begins with | "
		"or > must be in quotes");
}

/* Something behind a quoted text. */
static bool explain_after_quote(struct slip *s)
{
	yaml_mark_t close = s->last.end;

	close.column -= close.column > 0;
	if (s->last.start.line < s->last.end.line) {
		snprintf(s->err->message, sizeof(s->err->message),
			"the quote that opens here closes only in line %zu: is one missing in this "
			"line?",
			s->last.end.line + 1);
		return say_at(s, s->last.start, s->err->message);
	}
	if (s->last.style == YAML_SINGLE_QUOTED_SCALAR_STYLE && s->last.end.index == s->at.index &&
		is_word(char_at(s, s->offset)))
		return say_at(s, close, "write an apostrophe inside single quotes twice: ''");
	return say_at(s, s->at, "text behind the closing quote: put the whole value in quotes");
}

/* The offset behind the quoted text that begins here, or of the end of the line. */
static size_t skip_quoted(const struct slip *s, size_t at)
{
	char quote = s->data[at++];

	while (!is_line_end(s->data, s->len, at) && s->data[at] != quote)
		at += 1 + (quote == '"' && s->data[at] == '\\' &&
				  !is_line_end(s->data, s->len, at + 1));
	return is_line_end(s->data, s->len, at) ? at : at + 1;
}

/* The offset behind the text that begins here: a quoted one, or all up to a colon and a blank. */
static size_t skip_key(const struct slip *s, size_t at)
{
	char quote = char_at(s, at);

	if (quote == '"' || quote == '\'') {
		do
			at = skip_quoted(s, at);
		while (quote == '\'' && char_at(s, at) == quote); /* '' is one in the text */
		return at;
	}
	while (!is_line_end(s->data, s->len, at) &&
		!(s->data[at] == ':' && is_blank_or_end(s->data, s->len, at + 1)))
		at++;
	return at;
}

/* A key that begins here ends as one should, but is longer than libyaml looks for its colon. */
static bool explain_long_key(struct slip *s, size_t offset)
{
	size_t end = skip_key(s, offset), chars = 0;

	for (size_t at = offset; at < end && at < s->len; at++)
		chars += (s->data[at] & 0xc0) != 0x80;
	return chars > MAX_KEY && char_at(s, skip_blanks(s->data, s->len, end)) == ':' &&
	       say_at_offset(s, offset,
		       "a key may have 1024 characters in YAML, with its quotes: shorten it, or "
		       "write ? KEY, and : VALUE in the next line");
}

/* The same of the text before the problem, which is a colon. */
static bool explain_long_text(struct slip *s)
{
	bool is_value =
		s->before.type == YAML_VALUE_TOKEN && s->before.start.line == s->last.start.line;

	return s->last.type == YAML_SCALAR_TOKEN && s->last.start.line == s->at.line && !is_value &&
	       char_at(s, s->offset) == ':' &&
	       explain_long_key(s, offset_of_mark(s, s->last.start));
}

/* "a: b: c", or a line below that was to be a key. */
static bool explain_colon(struct slip *s)
{
	size_t key = skip_blanks(s->data, s->len, line_start(s->data, s->offset));

	if (explain_long_text(s))
		return true;
	if (s->last.type == YAML_SCALAR_TOKEN && s->last.start.line < s->at.line) {
		size_t column = indent_of(s, s->offset);
		bool beside = s->before.start.line == s->last.start.line;

		if (is_quoted(&s->last))
			return explain_after_quote(s);
		if (beside && s->level_count && s->before.type == YAML_VALUE_TOKEN)
			return say_column(s, key,
				"this key is indented deeper than the key before it",
				&s->levels[s->level_count - 1]);
		if (beside && s->level_count && column != s->last.start.column)
			return say_column(s, key, "this line fits no column above it",
				nearest_level(s, column));
		return say_line(s, offset_of_mark(s, s->last.start));
	}
	if (s->offset == key)
		return say_at(s, s->at, "no key stands before this colon");
	return say_at(s, s->at, "a colon and a blank inside a value: put the value in quotes");
}

/* A line that was no key; libyaml knows its beginning. */
static bool explain_no_colon(struct slip *s)
{
	const struct level *top = s->level_count ? &s->levels[s->level_count - 1] : NULL;
	size_t offset = offset_of_mark(s, s->context), at = offset;
	bool known = slip_in_line(s->data, s->len, &at) != NULL;

	if (explain_long_key(s, offset))
		return true;
	if (s->last.type == YAML_SCALAR_TOKEN && s->last.style >= YAML_LITERAL_SCALAR_STYLE &&
		s->last.end.index + 1 >= s->context.index)
		return say_at(s, s->context,
			"the text of a block (| or >) must be indented deeper than its key");
	if (known)
		return say_line(s, offset);
	if (s->last.type == YAML_VALUE_TOKEN && top && top->column == s->context.column)
		return say_at(s, s->context,
			"this line has no colon: write KEY: VALUE, or, if it is the value of the "
			"key above, indent it deeper");
	if (top && top->is_list && top->column == s->context.column)
		return say_at(s, s->context,
			"each item of this list begins with a dash and a blank: put them before "
			"it");
	return say_line(s, offset);
}

static bool ends_flow(const struct token *t)
{
	return t->type == YAML_FLOW_SEQUENCE_END_TOKEN || t->type == YAML_FLOW_MAPPING_END_TOKEN;
}

static bool say_closes_nothing(struct slip *s)
{
	snprintf(s->err->message, sizeof(s->err->message),
		"this %c closes nothing: remove it, or put the value in quotes",
		char_at(s, s->offset));
	return say_at(s, s->at, s->err->message);
}

/* A mapping or list goes on with something that does not fit. */
static bool explain_block(struct slip *s)
{
	size_t key = skip_blanks(s->data, s->len, line_start(s->data, s->offset));
	const struct level *l = nearest_level(s, s->at.column);
	char c = char_at(s, s->offset);

	if (c == ']' || c == '}')
		return say_closes_nothing(s);
	if (s->offset != key) {
		if (is_quoted(&s->last))
			return explain_after_quote(s);
		return say_at(s, s->at,
			ends_flow(&s->last)
				? "text behind the closing bracket: put the whole value in quotes"
				: "text behind the end of the value: put all of it in quotes");
	}
	if (l && l->column != s->at.column)
		return say_column(s, s->offset, "this line fits no column above it", l);
	return say_at(s, s->at,
		c == '-' ? "an item of a list (-) among keys: put it below the other items"
			 : "a key among the items of a list: indent it, or put a dash before it");
}

static bool explain_document(struct slip *s)
{
	size_t first = skip_blanks(s->data, s->len, 0), end;

	if (s->level_count && s->levels[0].column > s->at.column) {
		snprintf(s->err->message, sizeof(s->err->message),
			"this line begins in column %zu, but line %zu in column %zu: begin both "
			"in the same column",
			s->at.column + 1, s->levels[0].line + 1, s->levels[0].column + 1);
		return say_at(s, s->at, s->err->message);
	}
	if (is_quoted(&s->last))
		return explain_after_quote(s);
	for (end = first + 1; end < s->len && is_word(s->data[end]);)
		end++;
	if (ends_flow(&s->last) && char_at(s, first) == '[' && char_at(s, end) == ']')
		return say_at_offset(s, first,
			"a [section] of an INI file: YAML says SECTION: and, indented below it, "
			"KEY: VALUE");
	return ends_flow(&s->last) &&
	       say_at(s, s->at, "text behind the bracket that closes the document");
}

static bool say_never_closed(struct slip *s, yaml_mark_t open)
{
	snprintf(s->err->message, sizeof(s->err->message),
		"the bracket %c that opens here is never closed: close it at the end of the value",
		char_at(s, offset_of_mark(s, open)));
	return say_at(s, open, s->err->message);
}

/* Inside of brackets no comma and no end came. */
static bool explain_brackets(struct slip *s)
{
	size_t open = offset_of_mark(s, s->context), word = s->offset;
	char c = char_at(s, s->offset), bracket = char_at(s, open);

	if (explain_long_text(s))
		return true;
	if (is_quoted(&s->last) && s->last.start.line < s->last.end.line)
		return explain_after_quote(s);
	if (is_quoted(&s->last) && s->last.style == YAML_SINGLE_QUOTED_SCALAR_STYLE &&
		s->last.end.index == s->at.index && is_word(c))
		return explain_after_quote(s);
	if ((c == ']' || c == '}') && (bracket == '[' || bracket == '{')) {
		snprintf(s->err->message, sizeof(s->err->message),
			"this %c does not close the bracket %c of line %zu, column %zu", c, bracket,
			s->context.line + 1, s->context.column + 1);
		return say_at(s, s->at, s->err->message);
	}
	if (s->offset >= s->len ||
		(s->at.line > s->context.line && indent_of(s, s->offset) <= indent_of(s, open)))
		return say_never_closed(s, s->context);
	if (s->last.end.line < s->at.line)
		return say_at(s, s->last.end, "a comma is missing here, before the next line");
	while (c == ':' && word > open + 1 && !is_blank(s->data[word - 1])) /* lines are indented */
		word--;
	return say_at_offset(s, word, "a comma is missing before this");
}

static bool explain_content(struct slip *s)
{
	char c = char_at(s, s->offset);

	if (c == ']' || c == '}')
		return say_closes_nothing(s);
	if (s->offset >= s->len && s->bracket_count)
		return say_never_closed(s, s->brackets[s->bracket_count - 1]);
	return c == ',' && say_at(s, s->at, "nothing stands before this comma: remove it");
}

static bool explain_dash(struct slip *s)
{
	return say_at(s, s->at,
		"a list begins in a line of its own: put the dash there, or write [A, B]");
}

static bool explain_conflict(struct slip *s)
{
	static const char *const marks[] = {"<<<<<<<", ">>>>>>>", "|||||||", "======="};

	for (size_t at = 0; at < s->len; at = next_line(s->data, s->len, at))
		for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
			if (begins(s->data, s->len, at, marks[i]) &&
				is_blank_or_end(s->data, s->len, at + strlen(marks[i])))
				return say_at_offset(s, at,
					"a mark of a merge conflict: decide for one side, and "
					"remove the marks");
	return false;
}

static bool explain_odd_blank(struct slip *s)
{
	const char *message;
	size_t at;

	return slip_find_odd_blank(s->data, s->len, &at, &message) && at <= s->offset &&
	       say_at_offset(s, at, message);
}

bool slip_explain(
	const char *data, size_t len, const yaml_parser_t *failed, struct document_error *ret_error)
{
	static const struct {
		const char *context, *problem; /* parts of libyaml's words */
		bool (*explain)(struct slip *s);
	} table[] = {
		{"quoted scalar", "unexpected end of stream", explain_quote},
		{"quoted scalar", "unexpected document indicator", explain_quote},
		{"quoted scalar", "unknown escape", explain_escape},
		{"quoted scalar", "hexdecimal", explain_number},
		{"", "tab character", explain_tab},
		{"", "cannot start any token", explain_character},
		{"alias", "alphabetic or numeric", explain_alias},
		{"anchor", "alphabetic or numeric", explain_alias},
		{"tag", "", explain_tag},
		{"block scalar", "comment or line break", explain_block_text},
		{"", "mapping values are not allowed", explain_colon},
		{"simple key", "could not find expected ':'", explain_no_colon},
		{"", "did not find expected key", explain_block},
		{"", "did not find expected '-' indicator", explain_block},
		{"", "did not find expected <document start>", explain_document},
		{"", "did not find expected ',' or", explain_brackets},
		{"", "did not find expected node content", explain_content},
		{"", "block sequence entries are not allowed", explain_dash},
	};
	struct slip s = {.data = data,
		.len = len,
		.at = failed->problem_mark,
		.context = failed->context_mark,
		.err = ret_error};
	const char *context = failed->context ? failed->context : "";

	s.offset = offset_of_mark(&s, s.at);
	if (explain_conflict(&s) || explain_odd_blank(&s))
		return true;
	for (size_t i = 0; failed->problem && i < sizeof(table) / sizeof(table[0]); i++) {
		if (!strstr(context, table[i].context) ||
			!strstr(failed->problem, table[i].problem))
			continue;
		scan_tokens(
			&s, table[i].explain == explain_no_colon ? s.context.index : s.at.index);
		return table[i].explain(&s);
	}
	return false;
}
