/*
 * References to the environment in the agent's configuration. Surprising: they are replaced in the
 * tree and not in the text, so that a value cannot become another key, and places stay true.
 */
#include "settings/environment.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/buffer.h"
#include "document/document.h"
#include "settings/loader.h"
#include "settings/walk.h"

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"
#define DIGITS "0123456789"
#define BEGIN "${"
#define NAME_MAX_SHOWN 64

/* Bytes of a name at the beginning of text; 0: there is none. */
static size_t variable_name_length(const char *text)
{
	return strspn(text, LETTERS) ? strspn(text, LETTERS DIGITS) : 0;
}

/* ---- the file ---- */

static void add_variable(struct loader *l, const char *name, char *value)
{
	struct environment *e = &l->environment;
	size_t len = strlen(value);
	struct variable *variables;

	if (len >= 2 && (*value == '"' || *value == '\'') && value[len - 1] == *value) {
		value[len - 1] = '\0';
		value++;
	}
	variables = loader_room(l, e->variables, e->count, sizeof(*variables));
	if (!variables)
		return;
	e->variables = variables;
	variables[e->count++] = (struct variable){name, value};
}

static void read_line(struct loader *l, struct place at, char *line)
{
	size_t name;

	line += strspn(line, " \t");
	if (*line == '\0' || *line == '#')
		return;
	name = variable_name_length(line);
	if (name == 0 || line[name] != '=') {
		loader_complain(l, at,
			"is not NAME=VALUE: a name has letters, digits and _, and the = stands "
			"right behind it");
		return;
	}
	line[name] = '\0';
	add_variable(l, line, line + name + 1);
}

void environment_read(struct loader *l, const char *file, const struct buffer *text)
{
	struct place at = {file, 1, 1};
	char *line, *end;

	if (memchr(text->data ? text->data : "", '\0', text->len)) {
		loader_complain(l, at, "holds a NUL: it is not a text");
		return;
	}
	line = l->environment.text = strndup(text->data ? text->data : "", text->len);
	l->no_memory |= !line;
	for (; line; line = end, at.line++) {
		end = strchr(line, '\n');
		if (end)
			*end++ = '\0';
		line[strcspn(line, "\r")] = '\0';
		read_line(l, at, line);
	}
}

/* The last line counts, as in a shell. */
static const char *find_variable(const struct environment *e, const char *name)
{
	const char *value = getenv(name);

	for (size_t i = e->count; !value && i-- > 0;)
		if (strcmp(e->variables[i].name, name) == 0)
			value = e->variables[i].value;
	return value;
}

/* ---- references ---- */

struct filling {
	struct loader *l;
	struct document *to;
	struct document_error error;
	int result;
};

static bool has_reference(const struct node *n)
{
	if (n->type == NODE_STRING)
		return strstr(n->text, BEGIN) != NULL;
	for (n = n->type >= NODE_LIST ? n->first : NULL; n; n = n->next)
		if (has_reference(n))
			return true;
	return false;
}

/* What the reference at *text stands for, which moves behind it; NULL: reported. */
static const char *resolve_variable(struct filling *f, const struct node *n, const char **text)
{
	const char *begin = *text + strlen(BEGIN), *value;
	size_t len = variable_name_length(begin);
	struct place at = walk_place(f->l, n);
	char *name;

	if (len == 0 || begin[len] != '}') {
		loader_complain(f->l, at,
			"after ${ a name of letters, digits and _ is wanted, then }; for the two "
			"characters themselves write $${");
		return NULL;
	}
	name = strndup(begin, len);
	f->l->no_memory |= !name;
	value = name ? find_variable(&f->l->environment, name) : NULL;
	if (!value)
		loader_complain(f->l, at,
			"${%.*s} is not set: set it in the environment of the agent, or in the "
			"file that env_file names",
			(int)(len < NAME_MAX_SHOWN ? len : NAME_MAX_SHOWN), begin);
	free(name);
	*text = begin + len + 1;
	return value;
}

/* The text with its references replaced, and a NUL behind it. 0, -EINVAL (reported) or -ENOMEM. */
static int fill_text(struct filling *f, const struct node *n, struct buffer *out)
{
	const char *text = n->text, *mark, *value;
	int r = 0;

	while (r == 0 && (mark = strstr(text, BEGIN))) {
		bool escaped = mark > text && mark[-1] == '$';

		r = buffer_append(out, text, (size_t)(mark - text) - escaped);
		text = mark;
		value = escaped ? BEGIN : resolve_variable(f, n, &text);
		if (escaped)
			text += strlen(BEGIN);
		if (r == 0)
			r = value ? buffer_append(out, value, strlen(value)) : -EINVAL;
	}
	if (r == 0)
		r = buffer_append(out, text, strlen(text) + 1);
	if (r == 0)
		out->len--;
	if (r == -EMSGSIZE) {
		loader_complain(f->l, walk_place(f->l, n),
			"is longer than %u bytes with what ${} brings", ENVIRONMENT_MAX_VALUE);
		r = -EINVAL;
	}
	return r;
}

/* The scalar that YAML reads in a word; NULL: it is a text, or memory is short. */
static const struct node *read_filled_word(
	struct filling *f, const struct buffer *text, struct document **ret_document)
{
	static const char letters[] = LETTERS DIGITS "+-.";
	struct document_error error;
	char *line;
	int r;

	if (text->len == 0 || strspn(text->data, letters) != text->len)
		return NULL;
	r = asprintf(&line, "v: %s\n", text->data) < 0 ? -ENOMEM : 0;
	if (r == 0) {
		r = document_parse(DOCUMENT_YAML, line, strlen(line), 0, ret_document, &error);
		free(line);
	}
	f->result = r == -ENOMEM ? r : f->result;
	return r ? NULL : node_find(document_root(*ret_document), "v");
}

static struct node *add_filled(struct filling *f, struct node *parent, const struct node *from)
{
	struct document *word = NULL;
	const struct node *value;
	struct node *n = NULL;
	struct buffer text;
	int r;

	buffer_init(&text, ENVIRONMENT_MAX_VALUE);
	r = fill_text(f, from, &text);
	value = r == 0 && from->style == STYLE_PLAIN ? read_filled_word(f, &text, &word) : NULL;
	if (value)
		n = document_add_copy(f->to, parent, from->key, from->key_len, value, &f->error);
	else if (r == 0)
		n = document_add(f->to, parent, NODE_STRING, from->key, from->key_len, text.data,
			text.len, &f->error);
	if (n) {
		n->line = from->line;
		n->column = from->column;
	}
	f->result = r ? r : f->result;
	document_free(word);
	buffer_fini(&text);
	return n;
}

static void copy_filled(struct filling *f, struct node *parent, const struct node *from)
{
	bool fills = from->type == NODE_STRING && has_reference(from);
	struct node *n =
		fills ? add_filled(f, parent, from)
		      : document_add_copy(f->to, parent, from->key, from->key_len, from, &f->error);

	if (!n) {
		f->result = f->result ? f->result : -ENOMEM;
		return;
	}
	node_copy_key(n, from);
	for (from = from->type >= NODE_LIST ? from->first : NULL; from; from = from->next)
		copy_filled(f, n, from);
}

int environment_fill(struct loader *l, const struct document *d, struct document **ret_filled)
{
	struct filling f = {.l = l};

	*ret_filled = NULL;
	if (!has_reference(document_root(d)))
		return 0;
	f.to = document_new();
	if (!f.to)
		return -ENOMEM;
	copy_filled(&f, NULL, document_root(d));
	if (f.result == -ENOMEM && f.error.message[0]) {
		loader_complain(l, (struct place){l->file, 0, 0},
			"is too large with what ${} brings: give the variables shorter values");
		f.result = -EINVAL;
	}
	if (f.result)
		document_free(f.to);
	else
		*ret_filled = f.to;
	return f.result;
}
