/*
 * Writes YAML through libyaml's emitter, so that each text is read again as what it is, by readers
 * of 1.1 too.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <yaml.h>

#include "document/core_schema.h"
#include "document/document.h"

/* True when some YAML reader, of 1.1 or 1.2, would not take this text for a string. */
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

/* True when the text comes back unchanged from a literal block. */
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

/* The style of a string that has none of its own. */
static unsigned style_of(const char *text, size_t len, bool key)
{
	bool control = false, lines = false;

	for (size_t i = 0; i < len; i++) {
		lines |= text[i] == '\n';
		control |= ((unsigned char)text[i] < ' ' && text[i] != '\n') ||
			   (unsigned char)text[i] >= 0x7f;
	}
	if (lines && !key && !control && fits_literal(text, len))
		return STYLE_LITERAL;
	if (lines || control)
		return STYLE_DOUBLE_QUOTED;
	return looks_typed(text) ? STYLE_SINGLE_QUOTED : STYLE_PLAIN;
}

/* The style that a scalar of YAML had, where it fits again. */
static unsigned style_again(unsigned style, const char *text, size_t len, bool key)
{
	unsigned shape = style & STYLE_SHAPE;

	if (shape == STYLE_PLAIN && len == 0 && key)
		return STYLE_SINGLE_QUOTED |
		       STYLE_TAG(NODE_NULL); /* no key is written as nothing */
	if ((shape == STYLE_PLAIN && memchr(text, '\n', len)) || (shape >= STYLE_LITERAL && key))
		shape = STYLE_DOUBLE_QUOTED;
	return shape | (style & ~STYLE_SHAPE);
}

static int emit_event(yaml_emitter_t *e, int made, yaml_event_t *event)
{
	if (!made)
		return -ENOMEM;
	/* takes the event even when it fails */
	return yaml_emitter_emit(e, event) ? 0 : e->error == YAML_MEMORY_ERROR ? -ENOMEM : -EINVAL;
}

static int emit_scalar(yaml_emitter_t *e, const char *text, size_t len, unsigned style)
{
	static const char *const tags[] = {
		[NODE_NULL] = CORE_SCHEMA "null",
		[NODE_BOOL] = CORE_SCHEMA "bool",
		[NODE_INT] = CORE_SCHEMA "int",
		[NODE_DOUBLE] = CORE_SCHEMA "float",
	};
	const char *tag = style & STYLE_TAGGED ? tags[style >> 4] : NULL;
	yaml_event_t event;
	int made = yaml_scalar_event_initialize(&event, NULL, (const yaml_char_t *)tag,
		(const yaml_char_t *)text, (int)len, !tag, !tag,
		(yaml_scalar_style_t)(style & STYLE_SHAPE));

	return emit_event(e, made, &event);
}

static int emit_text(yaml_emitter_t *e, const char *text, size_t len, unsigned style, bool key)
{
	return emit_scalar(e, text, len,
		style ? style_again(style, text, len, key) : style_of(text, len, key));
}

static int emit_node(yaml_emitter_t *e, const struct node *n);

static int emit_collection(yaml_emitter_t *e, const struct node *n)
{
	bool map = n->type == NODE_MAP;
	yaml_event_t event;
	int r = emit_event(e,
		map ? yaml_mapping_start_event_initialize(
			      &event, NULL, NULL, 1, YAML_BLOCK_MAPPING_STYLE)
		    : yaml_sequence_start_event_initialize(
			      &event, NULL, NULL, 1, YAML_BLOCK_SEQUENCE_STYLE),
		&event);

	for (const struct node *c = n->first; c && r == 0; c = c->next) {
		if (map)
			r = emit_text(e, c->key, c->key_len, c->key_style, true);
		if (r == 0)
			r = emit_node(e, c);
	}
	if (r)
		return r;
	return emit_event(e,
		map ? yaml_mapping_end_event_initialize(&event)
		    : yaml_sequence_end_event_initialize(&event),
		&event);
}

/* A null, boolean or number from elsewhere than YAML: as it was written there, where YAML reads
 * that as the same. */
static int emit_plain(yaml_emitter_t *e, const struct node *n)
{
	struct node again = {.type = NODE_STRING};
	char text[40];
	int base;

	if (n->text && !core_schema_resolve(n->text, &again) && node_equal(n, &again))
		return emit_scalar(e, n->text, n->text_len, STYLE_PLAIN);
	switch (n->type) {
	case NODE_BOOL:
		snprintf(text, sizeof(text), "%s", n->boolean ? "true" : "false");
		break;
	case NODE_INT:
		snprintf(text, sizeof(text), "%" PRId64, n->integer);
		break;
	case NODE_DOUBLE:
		snprintf(text, sizeof(text), "%.17g", n->number);
		if (core_schema_is_integer(text, &base))
			snprintf(text, sizeof(text), "%.17g.0", n->number);
		break;
	default:
		snprintf(text, sizeof(text), "null");
		break;
	}
	return emit_scalar(e, text, strlen(text), STYLE_PLAIN);
}

static int emit_node(yaml_emitter_t *e, const struct node *n)
{
	if (n->type >= NODE_LIST)
		return emit_collection(e, n);
	if (n->type == NODE_STRING || n->style)
		return emit_text(e, n->text, n->text_len, n->style, false);
	return emit_plain(e, n);
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
	r = emit_event(&e, yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING), &event);
	if (r == 0)
		r = emit_event(&e,
			yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1), &event);
	if (r == 0)
		r = emit_node(&e, root);
	if (r == 0)
		r = emit_event(&e, yaml_document_end_event_initialize(&event, 1), &event);
	if (r == 0)
		r = emit_event(&e, yaml_stream_end_event_initialize(&event), &event);
	yaml_emitter_delete(&e);
	return out->error ? out->error : r;
}
