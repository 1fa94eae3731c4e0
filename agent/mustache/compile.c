/*
 * Texts to steps. Surprising: whether a tag stands alone on its line is seen in the text around it,
 * not in the steps; and where a line begins is a step of its own, since a partial's indentation
 * goes there, whatever the line begins with.
 */
#include "mustache/template.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

#define MAX_DELIMITER 16
#define SHOWN 80

struct compiler {
	struct mustache *m;
	const struct mustache_options *o;
	size_t file;
	const char *text;
	size_t len;
	char open[MAX_DELIMITER + 1], close[MAX_DELIMITER + 1];
	bool line_begins;
	size_t sections[MUSTACHE_MAX_DEPTH]; /* steps of those that are open */
	size_t depth;
	char *why;
};

struct tag {
	size_t at, end; /* from its first byte to behind its last one */
	char sigil;     /* 0 = a plain variable; '{' */
	size_t name, name_len;
};

int template_error(
	const struct template_file *f, size_t offset, char why[FILE_WHY], const char *format, ...)
{
	struct document_error place = {0};
	va_list args;
	int n;

	document_place(f->text.data ? f->text.data : "", f->text.len, offset, &place);
	n = snprintf(why, FILE_WHY, "%.200s:%u:%u: ", f->shown, place.line, place.column);
	va_start(args, format);
	vsnprintf(why + n, FILE_WHY - (size_t)n, format, args);
	va_end(args);
	return -EINVAL;
}

static struct template_file *this_file(struct compiler *c)
{
	return &c->m->files[c->file];
}

static int shown_text_len(size_t len)
{
	return len < SHOWN ? (int)len : SHOWN;
}

/* ---- steps ---- */

static int add_step(struct compiler *c, const struct step *s)
{
	struct template_file *f = this_file(c);
	struct step *steps = array_room(f->steps, f->count, sizeof(*steps));

	if (!steps) {
		snprintf(c->why, FILE_WHY, "out of memory");
		return -ENOMEM;
	}
	f->steps = steps;
	steps[f->count++] = *s;
	return 0;
}

static int begin_line(struct compiler *c)
{
	if (!c->line_begins)
		return 0;
	c->line_begins = false;
	return add_step(c, &(struct step){.kind = STEP_INDENT});
}

static bool is_at_line_end(const char *s, size_t len)
{
	return (len == 1 && s[0] == '\n') || (len == 2 && s[0] == '\r' && s[1] == '\n');
}

/* Text, with the text before it in one step where they touch. */
static int add_piece(struct compiler *c, size_t at, size_t len)
{
	struct template_file *f = this_file(c);
	struct step *last = f->count ? &f->steps[f->count - 1] : NULL;

	if (last && last->kind == STEP_TEXT && last->at + last->len == at) {
		last->len += len;
		return 0;
	}
	return add_step(c, &(struct step){.kind = STEP_TEXT, .at = at, .len = len, .place = at});
}

/* Adds the text from..to, line by line. An empty line is not indented. */
static int add_text(struct compiler *c, size_t from, size_t to)
{
	int r = 0;

	while (from < to && r == 0) {
		const char *end = memchr(c->text + from, '\n', to - from);
		size_t len = end ? (size_t)(end - c->text) + 1 - from : to - from;

		if (!is_at_line_end(c->text + from, len))
			r = begin_line(c);
		if (r == 0)
			r = add_piece(c, from, len);
		c->line_begins = end != NULL;
		from += len;
	}
	return r;
}

/* ---- tags ---- */

static bool is_blank_character(char ch)
{
	return ch == ' ' || ch == '\t' || ch == '\r' || ch == '\n';
}

static void trim(const struct compiler *c, size_t *at, size_t *len)
{
	while (*len && is_blank_character(c->text[*at])) {
		++*at;
		--*len;
	}
	while (*len && is_blank_character(c->text[*at + *len - 1]))
		--*len;
}

/* Finds the tag that begins at t->at. */
static int read_tag(struct compiler *c, struct tag *t)
{
	size_t at = t->at + strlen(c->open);
	const char *close;
	char brace[MAX_DELIMITER + 2];

	while (at < c->len && is_blank_character(c->text[at]))
		at++;
	t->sigil =
		at < c->len && strchr("#^/>!&{=<$", c->text[at]) && c->text[at] ? c->text[at] : 0;
	at += t->sigil != 0;
	snprintf(brace, sizeof(brace), "%s%s",
		t->sigil == '{'   ? "}"
		: t->sigil == '=' ? "="
				  : "",
		c->close);
	close = memmem(c->text + at, c->len - at, brace, strlen(brace));
	if (!close)
		return template_error(this_file(c), t->at, c->why,
			"the tag that begins here is not closed: '%s' is missing", brace);
	t->name = at;
	t->name_len = (size_t)(close - c->text) - at;
	t->end = t->name + t->name_len + strlen(brace);
	trim(c, &t->name, &t->name_len);
	return 0;
}

/* When nothing but blanks is beside the tag: the line without them. */
static bool stands_alone(
	const struct compiler *c, const struct tag *t, size_t *ret_from, size_t *ret_to)
{
	size_t from = t->at, to = t->end;

	if (!t->sigil || strchr("&{", t->sigil))
		return false;
	while (from && (c->text[from - 1] == ' ' || c->text[from - 1] == '\t'))
		from--;
	if (from && c->text[from - 1] != '\n')
		return false;
	while (to < c->len && (c->text[to] == ' ' || c->text[to] == '\t'))
		to++;
	if (to + 1 < c->len && c->text[to] == '\r' && c->text[to + 1] == '\n')
		to++;
	if (to < c->len && c->text[to] != '\n')
		return false;
	*ret_from = from;
	*ret_to = to + (to < c->len);
	return true;
}

static int check_tag_name(struct compiler *c, const struct tag *t)
{
	const char *s = c->text + t->name;
	bool dotted = t->sigil != '>' && !(t->name_len == 1 && s[0] == '.');

	if (!t->name_len)
		return template_error(this_file(c), t->at, c->why, "the tag has no name");
	for (size_t i = 0; i < t->name_len; i++)
		if (is_blank_character(s[i]) || (unsigned char)s[i] < ' ')
			return template_error(this_file(c), t->at, c->why,
				"the name '%.*s' has a blank in it: is the tag closed where it "
				"should be?",
				shown_text_len(strcspn(s, "\r\n") < t->name_len ? strcspn(s, "\r\n")
										: t->name_len),
				s);
	if (dotted && (s[0] == '.' || s[t->name_len - 1] == '.' || memmem(s, t->name_len, "..", 2)))
		return template_error(this_file(c), t->at, c->why,
			"the name '%.*s' has a dot with nothing before or behind it",
			shown_text_len(t->name_len), s);
	return 0;
}

static int set_delimiters(struct compiler *c, const struct tag *t)
{
	const char *s = c->text + t->name;
	size_t n = 0, blanks = 0, m;

	while (n < t->name_len && !is_blank_character(s[n]))
		n++;
	while (n + blanks < t->name_len && is_blank_character(s[n + blanks]))
		blanks++;
	m = t->name_len - n - blanks;
	if (!n || !m || n > MAX_DELIMITER || m > MAX_DELIMITER || memchr(s, '=', t->name_len) ||
		memchr(s + n + blanks, ' ', m) || memchr(s, '\0', t->name_len))
		return template_error(this_file(c), t->at, c->why,
			"delimiters are two words of at most %d characters without '=', as in "
			"{{=<%% %%>=}}",
			MAX_DELIMITER);
	snprintf(c->open, sizeof(c->open), "%.*s", (int)n, s);
	snprintf(c->close, sizeof(c->close), "%.*s", (int)m, s + n + blanks);
	return 0;
}

/* ---- sections ---- */

static int open_section(struct compiler *c, const struct tag *t)
{
	const struct step s = {.kind = t->sigil == '#' ? STEP_SECTION : STEP_INVERTED,
		.at = t->name,
		.len = t->name_len,
		.place = t->at};

	if (c->depth == MUSTACHE_MAX_DEPTH)
		return template_error(this_file(c), t->at, c->why,
			"more than %d sections within each other", MUSTACHE_MAX_DEPTH);
	c->sections[c->depth++] = this_file(c)->count;
	return add_step(c, &s);
}

static int close_section(struct compiler *c, const struct tag *t)
{
	struct template_file *f = this_file(c);
	struct step *open = c->depth ? &f->steps[c->sections[c->depth - 1]] : NULL;

	if (!open)
		return template_error(f, t->at, c->why,
			"'%.*s' is closed here, and no section is open",
			shown_text_len(t->name_len), c->text + t->name);
	if (open->len != t->name_len ||
		memcmp(c->text + open->at, c->text + t->name, t->name_len) != 0) {
		struct document_error place = {0};

		document_place(c->text, c->len, open->place, &place);
		return template_error(f, t->at, c->why,
			"'%.*s' is closed here, but '%.*s', opened in line %u, is to be closed "
			"first",
			shown_text_len(t->name_len), c->text + t->name, shown_text_len(open->len),
			c->text + open->at, place.line);
	}
	c->depth--;
	open->end = f->count;
	return add_step(c, &(struct step){.kind = STEP_END});
}

/* ---- partials ---- */

static int find_partial_file(const struct mustache *m, const char *name)
{
	for (size_t i = 1; i < m->count; i++)
		if (strcmp(m->files[i].name, name) == 0)
			return (int)i;
	return -1;
}

/* Adds a file with a partial's text; it is compiled later. Takes name. Its index, or -errno. */
static int add_partial_file(struct compiler *c, const struct tag *t, char *name)
{
	struct mustache *m = c->m;
	struct template_file *f = &m->files[m->count];
	char shown[FILE_WHY] = "", inner[FILE_WHY] = "there are no partials here";
	int r = -ENOENT;

	if (m->count == MUSTACHE_MAX_FILES) {
		free(name);
		return template_error(this_file(c), t->at, c->why, "more than %d partials",
			MUSTACHE_MAX_FILES - 1);
	}
	m->count++; /* freed with the others from here on */
	f->name = name;
	buffer_init(&f->text, MUSTACHE_MAX_BYTES - m->bytes);
	if (c->o->partial)
		r = c->o->partial(c->o->arg, name, &f->text, shown, inner);
	if (r == -ENOENT && !m->strict)
		r = 0;
	f->shown = strdup(shown[0] ? shown : name);
	if (r == 0 && !f->shown)
		r = -ENOMEM;
	m->bytes += f->text.len;
	if (r == -ENOMEM)
		snprintf(c->why, FILE_WHY, "out of memory");
	else if (r)
		template_error(this_file(c), t->at, c->why, "the partial '%.*s': %.250s",
			shown_text_len(strlen(name)), name, inner);
	return r ? (r == -ENOMEM ? r : -EINVAL) : (int)m->count - 1;
}

/* from: where its line begins, if it stands alone there. */
static int add_partial(struct compiler *c, const struct tag *t, bool alone, size_t from)
{
	char *name = strndup(c->text + t->name, t->name_len);
	int file;

	if (!name) {
		snprintf(c->why, FILE_WHY, "out of memory");
		return -ENOMEM;
	}
	file = find_partial_file(c->m, name);
	if (file < 0)
		file = add_partial_file(c, t, name);
	else
		free(name);
	return file < 0 ? file
			: add_step(c, &(struct step){.kind = alone ? STEP_PARTIAL : STEP_INLINE,
					      .at = from,
					      .len = t->at - from,
					      .place = t->at,
					      .end = (size_t)file});
}

/* ---- a file ---- */

static int reject_sigil(struct compiler *c, const struct tag *t)
{
	return template_error(this_file(c), t->at, c->why,
		"tags that begin with '%s' (%s) are not supported",
		t->sigil == '>' ? ">*" : (char[]){t->sigil, '\0'},
		t->sigil == '>' ? "dynamic names" : "inheritance");
}

/* from: where its line begins, if it stands alone there. */
static int add_tag(struct compiler *c, const struct tag *t, bool alone, size_t from)
{
	int r = 0;

	if (t->sigil == '!')
		return 0;
	if (t->sigil == '=')
		return set_delimiters(c, t);
	if (strchr("<$", t->sigil) && t->sigil)
		return reject_sigil(c, t);
	r = check_tag_name(c, t);
	if (r == 0 && t->sigil == '>' && c->text[t->name] == '*')
		return reject_sigil(c, t);
	if (r == 0 && !alone)
		r = begin_line(c);
	if (r)
		return r;
	if (t->sigil == '/')
		return close_section(c, t);
	if (t->sigil == '#' || t->sigil == '^')
		return open_section(c, t);
	if (t->sigil == '>')
		return add_partial(c, t, alone, from);
	return add_step(c, &(struct step){.kind = t->sigil ? STEP_RAW : STEP_VALUE,
				   .at = t->name,
				   .len = t->name_len,
				   .place = t->at});
}

static int compile_file(struct compiler *c)
{
	size_t at = 0, from, to;
	int r = 0;

	while (r == 0) {
		const char *open = memmem(c->text + at, c->len - at, c->open, strlen(c->open));
		struct tag t = {.at = open ? (size_t)(open - c->text) : c->len};
		bool alone;

		if (!open)
			break;
		r = read_tag(c, &t);
		if (r)
			return r;
		from = t.at;
		to = t.end;
		alone = stands_alone(c, &t, &from, &to);
		r = add_text(c, at, from);
		if (r == 0)
			r = add_tag(c, &t, alone, from);
		if (alone)
			c->line_begins = true;
		at = to;
	}
	if (r == 0)
		r = add_text(c, at, c->len);
	if (r == 0 && c->depth) {
		const struct step *s = &this_file(c)->steps[c->sections[c->depth - 1]];

		r = template_error(this_file(c), s->place, c->why,
			"the section '%.*s' that begins here is not closed", shown_text_len(s->len),
			c->text + s->at);
	}
	return r;
}

int mustache_new(const struct mustache_options *o, const char *text, size_t len,
	struct mustache **ret_template, char why[FILE_WHY])
{
	struct mustache *m = calloc(1, sizeof(*m));
	int r = 0;

	snprintf(why, FILE_WHY, "out of memory");
	if (!m)
		return -ENOMEM;
	m->strict = o->strict;
	m->escape = o->escape;
	m->count = 1;
	m->files[0].shown = strdup(o->name);
	buffer_init(&m->files[0].text, MUSTACHE_MAX_BYTES);
	r = m->files[0].shown ? buffer_append(&m->files[0].text, text, len) : -ENOMEM;
	if (r == -EMSGSIZE)
		snprintf(why, FILE_WHY, "%.200s: has more than %u bytes", o->name,
			MUSTACHE_MAX_BYTES);
	m->bytes = m->files[0].text.len;
	for (size_t i = 0; i < m->count && r == 0; i++) {
		const struct buffer *b = &m->files[i].text;
		struct compiler c = {.m = m,
			.o = o,
			.file = i,
			.text = b->len ? b->data : "",
			.len = b->len,
			.open = "{{",
			.close = "}}",
			.line_begins = true,
			.why = why};

		r = compile_file(&c);
	}
	if (r)
		mustache_free(m);
	else
		*ret_template = m;
	return r;
}

void mustache_free(struct mustache *m)
{
	for (size_t i = 0; m && i < m->count; i++) {
		free(m->files[i].name);
		free(m->files[i].shown);
		free(m->files[i].steps);
		buffer_fini(&m->files[i].text);
	}
	free(m);
}

int mustache_describe(const struct mustache *m, struct buffer *out)
{
	buffer_printf(out, "%d %d\n", m->strict, (int)m->escape);
	for (size_t i = 0; i < m->count; i++) {
		const struct template_file *f = &m->files[i];

		buffer_printf(out, "%s %zu:", f->name ? f->name : "", f->text.len);
		buffer_append(out, f->text.data, f->text.len);
	}
	return out->error;
}
