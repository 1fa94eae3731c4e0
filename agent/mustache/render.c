/*
 * Steps and a document to a text. Surprising: everything is counted, the keys that a look-up passes
 * too, since a partial that calls itself could otherwise go on for ever.
 */
#include "mustache/template.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SHOWN 80
#define MAX_INDENT 4096 /* bytes */

/* What names are looked up in, the innermost first. */
struct frame {
	const struct node *node;
	const struct frame *outer;
};

struct renderer {
	const struct mustache *m;
	struct buffer *out, indent;
	size_t indent_from; /* what is before is of files around an inline partial */
	uint64_t steps;
	unsigned depth;
	char *why;
};

static int render_steps(struct renderer *r, const struct template_file *f, size_t from, size_t to,
	const struct frame *frame);

static int shown_step_len(const struct step *s)
{
	return s->len < SHOWN ? (int)s->len : SHOWN;
}

static int count_steps(
	struct renderer *r, const struct template_file *f, const struct step *s, size_t steps)
{
	r->steps += steps;
	return r->steps <= MUSTACHE_MAX_STEPS
		       ? 0
		       : template_error(f, s->place, r->why,
				 "it takes more than %d steps: too many or too long lists within "
				 "each other",
				 MUSTACHE_MAX_STEPS);
}

/* ---- names ---- */

static const struct node *find_name_in_map(
	struct renderer *r, const struct node *map, const char *name, size_t len)
{
	const struct node *n = map->type == NODE_MAP ? map->first : NULL;

	for (r->steps++; n; n = n->next, r->steps++)
		if (n->key_len == len && memcmp(n->key, name, len) == 0)
			return n;
	return NULL;
}

/* NULL: it is not there. */
static const struct node *find_name(struct renderer *r, const struct template_file *f,
	const struct step *s, const struct frame *frame)
{
	const char *name = f->text.data + s->at, *end = name + s->len;
	const struct node *n = NULL;

	if (s->len == 1 && *name == '.')
		return frame->node;
	for (const char *dot; name < end; name = dot + 1) {
		dot = memchr(name, '.', (size_t)(end - name));
		dot = dot ? dot : end;
		if (n) {
			n = find_name_in_map(r, n, name, (size_t)(dot - name));
		} else {
			for (; frame && !n; frame = frame->outer)
				n = find_name_in_map(r, frame->node, name, (size_t)(dot - name));
		}
		if (!n)
			return NULL;
	}
	return n;
}

static bool is_false(const struct node *n)
{
	return !n || n->type == NODE_NULL || (n->type == NODE_BOOL && !n->boolean) ||
	       (n->type == NODE_LIST && !n->first);
}

/* ---- values ---- */

static int append_html(struct buffer *out, const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (s[i] == '&')
			buffer_append_string(out, "&amp;");
		else if (s[i] == '<')
			buffer_append_string(out, "&lt;");
		else if (s[i] == '>')
			buffer_append_string(out, "&gt;");
		else if (s[i] == '"')
			buffer_append_string(out, "&quot;");
		else
			buffer_append(out, s + i, 1);
	}
	return out->error;
}

static bool has_control_character(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (((unsigned char)s[i] < ' ' && s[i] != '\t') || s[i] == 0x7f)
			return true;
	return false;
}

/* Whether a name has what other languages of templates make filters, calls and operators of. */
static bool is_expression(const char *name, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (name[i] && strchr(" |()+*=?:,;\"'", name[i]))
			return true;
	return false;
}

static int render_value(struct renderer *r, const struct template_file *f, const struct step *s,
	const struct frame *frame)
{
	const struct node *n = find_name(r, f, s, frame);
	const char *name = f->text.data + s->at;
	bool raw = s->kind == STEP_RAW;

	if (!n && r->m->strict && is_expression(name, s->len))
		return template_error(f, s->place, r->why,
			"there is no '%.*s' here: write a name alone, for there are no filters, "
			"calls or operators",
			shown_step_len(s), name);
	if (!n && r->m->strict)
		return template_error(f, s->place, r->why,
			"there is no '%.*s' here: correct the name, or, if it may be missing, put "
			"the line between {{#%.*s}} and {{/%.*s}}",
			shown_step_len(s), name, shown_step_len(s), name, shown_step_len(s), name);
	if (!n || n->type == NODE_NULL)
		return 0;
	if (n->type == NODE_MAP)
		return template_error(f, s->place, r->why,
			"'%.*s' is a mapping, which has no text: name a key of it; a template "
			"cannot go through its keys, a list or format: run can",
			shown_step_len(s), name);
	if (n->type == NODE_LIST)
		return template_error(f, s->place, r->why,
			"'%.*s' is a list, which has no text: use a section, {{#%.*s}}",
			shown_step_len(s), name, shown_step_len(s), name);
	if (!raw && r->m->escape == MUSTACHE_HTML)
		return append_html(r->out, n->text, n->text_len);
	if (!raw && has_control_character(n->text, n->text_len))
		return template_error(f, s->place, r->why,
			"the value of '%.*s' has a line break or another control character in it: "
			"write {{{%.*s}}} if it is meant to be there",
			shown_step_len(s), name, shown_step_len(s), name);
	return buffer_append(r->out, n->text, n->text_len);
}

/* ---- sections, partials ---- */

static int check_depth(struct renderer *r, const struct template_file *f, const struct step *s)
{
	return r->depth < MUSTACHE_MAX_DEPTH
		       ? 0
		       : template_error(f, s->place, r->why,
				 "more than %d sections and partials within each other",
				 MUSTACHE_MAX_DEPTH);
}

static int render_within(struct renderer *r, const struct template_file *f, size_t at,
	const struct node *n, const struct frame *outer)
{
	const struct step *s = &f->steps[at];
	const struct frame frame = {n, outer};
	int e = check_depth(r, f, s);

	if (e)
		return e;
	r->depth++;
	e = render_steps(r, f, at + 1, s->end, n ? &frame : outer);
	r->depth--;
	return e;
}

static int render_section(
	struct renderer *r, const struct template_file *f, size_t at, const struct frame *frame)
{
	const struct step *s = &f->steps[at];
	const struct node *n = find_name(r, f, s, frame);
	int e = 0;

	if (is_false(n) != (s->kind == STEP_INVERTED))
		return 0;
	if (s->kind == STEP_INVERTED)
		return render_within(r, f, at, NULL, frame);
	if (n->type != NODE_LIST)
		return render_within(r, f, at, n, frame);
	for (n = n->first; n && e == 0; n = n->next)
		e = render_within(r, f, at, n, frame);
	return e;
}

static int render_partial(struct renderer *r, const struct template_file *f, const struct step *s,
	const struct frame *frame)
{
	const struct template_file *partial = &r->m->files[s->end];
	size_t len = r->indent.len, from = r->indent_from;
	int e = check_depth(r, f, s);

	if (e)
		return e;
	if (buffer_append(&r->indent, f->text.data + s->at, s->len))
		return r->indent.error == -ENOMEM
			       ? -ENOMEM
			       : template_error(f, s->place, r->why,
					 "partials are indented by more than %d bytes", MAX_INDENT);
	if (s->kind == STEP_INLINE)
		r->indent_from = r->indent.len;
	r->depth++;
	e = render_steps(r, partial, 0, partial->count, frame);
	r->depth--;
	r->indent.len = len;
	r->indent_from = from;
	return e;
}

/* ---- all ---- */

static int render_step(
	struct renderer *r, const struct template_file *f, size_t at, const struct frame *frame)
{
	const struct step *s = &f->steps[at];

	switch (s->kind) {
	case STEP_TEXT:
		return buffer_append(r->out, f->text.data + s->at, s->len);
	case STEP_INDENT:
		return r->indent.len == r->indent_from
			       ? 0
			       : buffer_append(r->out, r->indent.data + r->indent_from,
					 r->indent.len - r->indent_from);
	case STEP_VALUE:
	case STEP_RAW:
		return render_value(r, f, s, frame);
	case STEP_SECTION:
	case STEP_INVERTED:
		return render_section(r, f, at, frame);
	case STEP_PARTIAL:
	case STEP_INLINE:
		return render_partial(r, f, s, frame);
	case STEP_END:
		break;
	}
	return 0;
}

static int render_steps(struct renderer *r, const struct template_file *f, size_t from, size_t to,
	const struct frame *frame)
{
	int e = 0;

	for (size_t at = from; at < to && e == 0; at++) {
		const struct step *s = &f->steps[at];

		e = count_steps(r, f, s, 1);
		if (e == 0)
			e = render_step(r, f, at, frame);
		if (s->kind == STEP_SECTION || s->kind == STEP_INVERTED)
			at = s->end;
	}
	return e;
}

int mustache_render(
	const struct mustache *m, const struct node *root, struct buffer *out, char why[FILE_WHY])
{
	struct renderer r = {.m = m, .out = out, .why = why};
	const struct frame frame = {root, NULL};
	int e;

	buffer_init(&r.indent, MAX_INDENT);
	e = render_steps(&r, &m->files[0], 0, m->files[0].count, &frame);
	buffer_fini(&r.indent);
	if (e == -EMSGSIZE)
		snprintf(why, FILE_WHY,
			"the template makes more than the %zu bytes of it that are allowed (4 "
			"times max_size of the server)",
			out->max);
	else if (e == -ENOMEM)
		snprintf(why, FILE_WHY, "out of memory");
	return e;
}
