/*
 * PCRE2 for schemas. Surprising: its own match limit counts again at each start position, so a long
 * string could still take hours; instead a callout before every item of a pattern counts the steps,
 * and the characters that an item can run over at once.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "schema/pattern.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "schema/schema.h"

#define OPTIONS                                                                                    \
	(PCRE2_UTF | PCRE2_DOLLAR_ENDONLY | PCRE2_ALT_BSUX | PCRE2_ALLOW_EMPTY_CLASS |             \
		PCRE2_MATCH_UNSET_BACKREF | PCRE2_NEVER_UCP | PCRE2_NEVER_BACKSLASH_C |            \
		PCRE2_AUTO_CALLOUT)
#define MAX_HEAP_KIB (32u * 1024) /* of one match */
#define MAX_DEPTH 200000          /* backtracking points of one match */
#define RUN 64                    /* characters that count as one step */

struct matcher {
	pcre2_match_data *data;
	pcre2_match_context *context;
};

/* Spaces of ECMA 262; \s at both ends, so that a hyphen beside it stays no range. */
#define SPACES "\\s\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000\\ufeff\\s"

/* The pattern with \s and \S written out (but \S within [] knows ASCII only), and without POSIX
 * classes, which are PCRE2's. */
static void spell_out(const char *text, size_t len, struct buffer *out)
{
	bool in_class = false;

	for (size_t i = 0; i < len; i++) {
		char next = i + 1 < len ? text[i + 1] : '\0';

		if (text[i] != '\\') {
			if (in_class && text[i] == '[')
				buffer_append(out, "\\", 1);
			in_class = in_class ? text[i] != ']' : text[i] == '[';
			buffer_append(out, &text[i], 1);
			continue;
		}
		if (next == 's')
			buffer_append_string(out, in_class ? SPACES : "[" SPACES "]");
		else if (next == 'S' && !in_class)
			buffer_append_string(out, "[^" SPACES "]");
		else
			buffer_append(out, &text[i], next ? 2 : 1);
		i++;
	}
}

static pcre2_code *code_of(const struct pattern *p)
{
	return (pcre2_code *)(uintptr_t)p;
}

/* 0, -EINVAL with a message, -ENOMEM. */
static int compile_spelled(
	const struct buffer *text, PCRE2_UCHAR message[120], pcre2_code **ret_code)
{
	pcre2_compile_context *context = pcre2_compile_context_create(NULL);
	pcre2_code *code;
	PCRE2_SIZE offset;
	int error;

	if (!context)
		return -ENOMEM;
	pcre2_set_newline(context, PCRE2_NEWLINE_LF);
	pcre2_set_compile_extra_options(context, PCRE2_EXTRA_ALT_BSUX);
	code = pcre2_compile((PCRE2_SPTR)(text->len ? text->data : ""), text->len, OPTIONS, &error,
		&offset, context);
	pcre2_compile_context_free(context);
	if (!code && error == PCRE2_ERROR_HEAP_FAILED)
		return -ENOMEM;
	if (!code) {
		pcre2_get_error_message(error, message, 120);
		return -EINVAL;
	}
	*ret_code = code;
	return 0;
}

int pattern_new(const char *text, size_t len, struct pattern **ret_pattern, char why[PATTERN_WHY])
{
	PCRE2_UCHAR message[120];
	struct buffer spelled;
	pcre2_code *code = NULL;
	int r;

	if (len > SCHEMA_MAX_PATTERN) {
		snprintf(why, PATTERN_WHY, "is longer than %d bytes", SCHEMA_MAX_PATTERN);
		return -EINVAL;
	}
	buffer_init(&spelled, 64 * SCHEMA_MAX_PATTERN);
	spell_out(text, len, &spelled);
	r = spelled.error ? -ENOMEM : compile_spelled(&spelled, message, &code);
	buffer_fini(&spelled);
	if (r == -EINVAL)
		snprintf(why, PATTERN_WHY, "is no regular expression: %s", (const char *)message);
	if (r == 0)
		*ret_pattern = (struct pattern *)(void *)code;
	return r;
}

void pattern_free(struct pattern *p)
{
	pcre2_code_free(code_of(p));
}

struct matcher *matcher_new(void)
{
	struct matcher *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->data = pcre2_match_data_create(1, NULL);
	m->context = pcre2_match_context_create(NULL);
	if (!m->data || !m->context) {
		matcher_free(m);
		return NULL;
	}
	pcre2_set_match_limit(m->context, SCHEMA_MAX_WORK);
	pcre2_set_depth_limit(m->context, MAX_DEPTH);
	pcre2_set_heap_limit(m->context, MAX_HEAP_KIB);
	return m;
}

void matcher_free(struct matcher *m)
{
	if (!m)
		return;
	pcre2_match_data_free(m->data);
	pcre2_match_context_free(m->context);
	free(m);
}

static bool take_steps(uint64_t *work, size_t characters)
{
	uint64_t steps = 1 + characters / RUN;

	if (*work < steps) {
		*work = 0;
		return false;
	}
	*work -= steps;
	return true;
}

static int before_item(pcre2_callout_block *b, void *work)
{
	return take_steps(work, b->subject_length - b->current_position) ? 0 : PCRE2_ERROR_CALLOUT;
}

int pattern_match(
	const struct pattern *p, struct matcher *m, const char *text, size_t len, uint64_t *work)
{
	int r;

	if (!take_steps(work, len))
		return -E2BIG;
	pcre2_set_callout(m->context, before_item, work);
	r = pcre2_match(code_of(p), (PCRE2_SPTR)text, len, 0, 0, m->data, m->context);
	if (r >= 0)
		return 1;
	if (r == PCRE2_ERROR_NOMATCH)
		return 0;
	return r == PCRE2_ERROR_NOMEMORY ? -ENOMEM : -E2BIG;
}
