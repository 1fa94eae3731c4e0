/*
 * Documents for tests: from text, and random ones that are small but mean: few keys, so that two of
 * them meet often, with dots, backslashes, digits and nothing in their names; values that look
 * alike and are not. Included after <cmocka.h>.
 */
#ifndef PULLET_MODEL_DOCUMENT_H
#define PULLET_MODEL_DOCUMENT_H

#include <stdbool.h>
#include <string.h>

#include "../../agent/document.h"
#include "../../agent/jsontext.h"
#include "model_random.h"

/* Random documents: no more keys than that in a mapping. */
#define MODEL_MAX_KEYS 13

static inline struct document *parsed(enum document_type type, const char *text)
{
	struct document *d = NULL;
	struct document_error e;

	if (document_parse(type, text, strlen(text), 0, &d, &e))
		fail_msg("%s\nline %u, column %u: %s", text, e.line, e.column, e.message);
	return d;
}

/* One of `count` texts. */
static inline const char *random_text(const char *const *texts, size_t count)
{
	return texts[random_below(count)];
}

struct random_shape {
	unsigned depth; /* of mappings and lists below the root */
	bool nulls;     /* there are some */
	bool fixed;     /* whether a key is a mapping is told by its name: all documents agree */
};

static inline void random_value(struct buffer *out, struct random_shape s);

static inline void random_map(struct buffer *out, struct random_shape s)
{
	static const char *const keys[MODEL_MAX_KEYS] = {
		"a", "b", "c", "", "a.b", ".", "a\\b", "\\", "0", "1", "10", "\xc3\xbc", "x y"};
	bool used[MODEL_MAX_KEYS] = {false};

	buffer_append_string(out, "{");
	for (uint64_t n = random_below(7); n > 0; n--) {
		size_t i = random_below(random_below(2) ? 4 : MODEL_MAX_KEYS);

		if (used[i])
			continue;
		used[i] = true;
		if (out->data[out->len - 1] != '{')
			buffer_append_string(out, ",\n");
		jsontext_append(out, keys[i], strlen(keys[i]));
		buffer_append_string(out, ": ");
		if (!s.fixed)
			random_value(out, s);
		else if (s.depth > 0 && i % 2 == 0)
			random_map(out, (struct random_shape){s.depth - 1, s.nulls, true});
		else
			random_value(out, (struct random_shape){0, s.nulls, true});
	}
	buffer_append_string(out, "}");
}

static inline void random_list(struct buffer *out, struct random_shape s)
{
	buffer_append_string(out, "[");
	for (uint64_t n = random_below(random_below(8) ? 4 : 13); n > 0; n--) {
		random_value(out, s);
		if (n > 1)
			buffer_append_string(out, ", ");
	}
	buffer_append_string(out, "]");
}

static inline void random_value(struct buffer *out, struct random_shape s)
{
	static const char *const scalars[] = {"0", "-0.0", "0.0", "1", "1.0", "\"1\"", "\"\"",
		"\"a\"", "\"null\"", "true", "false", "\"true\"", "[]", "{}",
		"9223372036854775807"};
	uint64_t what = random_below(10);

	if (s.depth > 0)
		s.depth--;
	else
		what = 9;
	if (what < 4)
		random_map(out, s);
	else if (what < 6)
		random_list(out, s);
	else if (s.nulls && random_below(3) == 0)
		buffer_append_string(out, "null");
	else /* of a fixed shape: {} is a mapping */
		buffer_append_string(
			out, random_text(scalars,
				     sizeof(scalars) / sizeof(scalars[0]) - (s.fixed ? 2 : 0)));
}

/* A document that is both YAML and JSON, read as one of them. Freed by the caller. */
static inline struct document *random_document(struct random_shape s)
{
	struct document *d;
	struct buffer text;

	buffer_init(&text, 1u << 24);
	random_map(&text, s);
	assert_int_equal(text.error, 0);
	d = parsed(random_below(2) ? DOCUMENT_YAML : DOCUMENT_JSON, text.data);
	buffer_fini(&text);
	return d;
}

#endif
