/*
 * A table for words, spans of characters for numbers.
 */
#include "document/core_schema.h"

#include <string.h>

static bool one_of(const char *text, const char *const *words)
{
	for (; *words; words++)
		if (strcmp(text, *words) == 0)
			return true;
	return false;
}

bool core_schema_is_integer(const char *s, int *ret_base)
{
	size_t n;

	if (s[0] == '0' && (s[1] == 'o' || s[1] == 'x')) {
		*ret_base = s[1] == 'o' ? 8 : 16;
		n = strspn(s + 2, *ret_base == 8 ? "01234567" : "0123456789abcdefABCDEF");
		return n > 0 && s[2 + n] == '\0';
	}
	*ret_base = 10;
	s += *s == '-' || *s == '+';
	n = strspn(s, "0123456789");
	return n > 0 && s[n] == '\0';
}

static bool is_double(const char *s)
{
	static const char decimal[] = "0123456789";
	size_t whole, part = 0, n;

	s += *s == '-' || *s == '+';
	whole = strspn(s, decimal);
	s += whole;
	if (*s == '.') {
		part = strspn(s + 1, decimal);
		s += 1 + part;
	}
	if (whole + part == 0)
		return false;
	if (*s == 'e' || *s == 'E') {
		s++;
		s += *s == '-' || *s == '+';
		n = strspn(s, decimal);
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

static void resolve_word(const char *text, struct node *ret)
{
	if (one_of(text, nulls)) {
		ret->type = NODE_NULL;
	} else if (one_of(text, truths) || one_of(text, falsehoods)) {
		ret->type = NODE_BOOL;
		ret->boolean = text[0] == 't' || text[0] == 'T';
	}
}

/* As core_schema_resolve(). */
static const char *resolve_number(const char *text, struct node *ret)
{
	int base;

	if (core_schema_is_integer(text, &base)) {
		ret->type = NODE_INT;
		return node_set_number(ret, base == 10 ? text : text + 2, base);
	}
	if (one_of(text, infinities) || one_of(text, nans)) {
		ret->type = NODE_DOUBLE;
		ret->number = one_of(text, nans) ? __builtin_nan("")
			      : text[0] == '-'   ? -__builtin_inf()
						 : __builtin_inf();
	} else if (is_double(text)) {
		ret->type = NODE_DOUBLE;
		return node_set_number(ret, text, 10);
	}
	return NULL;
}

/* The first character says it for most. */
const char *core_schema_resolve(const char *text, struct node *ret)
{
	ret->type = NODE_STRING;
	if (strchr("~nNtTfF", text[0])) /* or nothing at all */
		resolve_word(text, ret);
	else if (strchr("+-.0123456789", text[0]))
		return resolve_number(text, ret);
	return NULL;
}

bool core_schema_apply_tag(struct node *n, const char *tag, const char *text, const char **problem)
{
	static const struct {
		const char *tag;
		enum node_type type;
	} tags[] = {
		{CORE_SCHEMA "str", NODE_STRING},
		{"!", NODE_STRING},
		{CORE_SCHEMA "int", NODE_INT},
		{CORE_SCHEMA "float", NODE_DOUBLE},
		{CORE_SCHEMA "bool", NODE_BOOL},
		{CORE_SCHEMA "null", NODE_NULL},
	};

	for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++) {
		if (strcmp(tag, tags[i].tag) != 0)
			continue;
		if (tags[i].type == NODE_DOUBLE && n->type == NODE_INT) {
			n->type = NODE_DOUBLE; /* strtod() reads octal as decimal */
			if (text[0] == '0' && text[1] == 'o')
				n->number = (double)n->integer;
			else
				*problem = node_set_number(n, text, 10);
		}
		if (tags[i].type == NODE_STRING) {
			n->type = NODE_STRING;
			*problem = NULL;
		}
		return n->type == tags[i].type;
	}
	return false;
}
