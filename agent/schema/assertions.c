/*
 * The keywords that look at a value alone: JSON Schema's validation vocabulary, but the bounds of
 * contains.
 */
#include "schema/assertions.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/complaint.h"

/* ---- values as a whole ---- */

static bool check_type(struct evaluation *e, const struct rule *r, const struct value *v)
{
	char names[VALUE_TYPES], shown[COMPLAINT_SHOWN];
	bool quote = r->types == VALUE_STRING && !value_is(v, VALUE_LIST | VALUE_MAP);

	if (value_is(v, r->types))
		return true;
	if (r->types & VALUE_INTEGER && v->node->type == NODE_DOUBLE && number_is_whole(v->node))
		return true;
	return complain(e, v, "must be %s, but is %s%s", value_types(r->types, names),
		complaint_show(e, v, shown), quote ? ": put it in quotes" : "");
}

static int by_compared_value(const void *a, const void *b)
{
	return value_compare(*(const struct value *const *)a, *(const struct value *const *)b);
}

static bool check_enum(struct evaluation *e, const struct rule *r, const struct value *v)
{
	char one[VALUE_SHOWN], shown[COMPLAINT_SHOWN], names[512] = "nothing";
	char all[512 + SENTENCE_WORDS];
	size_t len = 0;

	if (!evaluation_spend(e, v->weight * evaluation_halvings(r->value->count)))
		return false;
	if (bsearch(&v, r->sorted, r->value->count, sizeof(*r->sorted), by_compared_value))
		return true;
	for (unsigned i = 0; complaint_is_written(e) && i < r->value->count && len < sizeof(names);
		i++)
		len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s", i ? ", " : "",
			value_show(&r->value->children[i], one));
	value_cut(names, sizeof(names), (int)len);
	return complain(e, v, "%s is none of: %s%s", complaint_show(e, v, shown),
		complaint_show_wanted(e, v, names, all, sizeof(all)),
		len < sizeof(names) ? "" : "...");
}

static bool check_const(struct evaluation *e, const struct rule *r, const struct value *v)
{
	char a[COMPLAINT_SHOWN], b[COMPLAINT_SHOWN], wanted[VALUE_SHOWN];

	if (!evaluation_spend(e, v->weight) || value_compare(r->value, v) == 0)
		return e->error == 0;
	if (value_is(v, VALUE_LIST | VALUE_MAP) && r->value->node->type == v->node->type)
		return complain(e, v, "differs from the one that the schema asks for");
	return complain(e, v, "must be %s, but is %s",
		complaint_show_wanted(e, v, value_show(r->value, wanted), a, sizeof(a)),
		complaint_show(e, v, b));
}

/* ---- numbers ---- */

static bool check_multiple_of(struct evaluation *e, const struct rule *r, const struct value *v)
{
	char a[COMPLAINT_SHOWN], b[VALUE_SHOWN];

	if (!evaluation_spend(e, v->node->text_len / 8))
		return false;
	if (number_is_multiple(v->node, &r->divisor))
		return true;
	return complain(e, v, "%s is not a multiple of %s", complaint_show(e, v, a),
		value_show(r->value, b));
}

static bool check_limit(struct evaluation *e, const struct rule *r, const struct value *v)
{
	static const struct {
		int sign;       /* of the difference that is wrong */
		bool exclusive; /* no difference is wrong as well */
		const char *text;
	} limits[] = {
		[KEYWORD_MAXIMUM] = {1, false, "is more than the maximum"},
		[KEYWORD_EXCLUSIVE_MAXIMUM] = {1, true, "must be less than"},
		[KEYWORD_MINIMUM] = {-1, false, "is less than the minimum"},
		[KEYWORD_EXCLUSIVE_MINIMUM] = {-1, true, "must be more than"},
	};
	char a[COMPLAINT_SHOWN], b[VALUE_SHOWN];
	int difference = number_compare(v->node, r->value->node) * limits[r->keyword].sign;
	bool number = v->node->type == NODE_INT || !isnan(v->node->number);

	if (number && (difference < 0 || (difference == 0 && !limits[r->keyword].exclusive)))
		return true;
	return complain(e, v, "%s %s %s", complaint_show(e, v, a), limits[r->keyword].text,
		value_show(r->value, b));
}

/* ---- what is counted, strings ---- */

static bool check_count(struct evaluation *e, const struct rule *r, const struct value *v)
{
	static const struct {
		bool most;
		const char *what;
	} counts[] = {
		[KEYWORD_MAX_LENGTH] = {true, "character"},
		[KEYWORD_MIN_LENGTH] = {false, "character"},
		[KEYWORD_MAX_ITEMS] = {true, "item"},
		[KEYWORD_MIN_ITEMS] = {false, "item"},
		[KEYWORD_MAX_PROPERTIES] = {true, "key"},
		[KEYWORD_MIN_PROPERTIES] = {false, "key"},
	};
	bool most = counts[r->keyword].most;
	size_t count = v->count;

	if (v->node->type == NODE_STRING) {
		if (!evaluation_spend(e, v->weight))
			return false;
		count = value_characters(v);
	}
	if (most ? count <= r->limit : count >= r->limit)
		return true;
	return complain(e, v, "has %zu %s%s, at %s %llu %s", count, counts[r->keyword].what,
		count == 1 ? "" : "s", most ? "most" : "least", (unsigned long long)r->limit,
		most ? "allowed" : "required");
}

static bool check_pattern(struct evaluation *e, const struct rule *r, const struct value *v)
{
	char a[COMPLAINT_SHOWN], b[VALUE_SHOWN];

	if (evaluation_matches(e, r->patterns[0], v->node->text, v->node->text_len))
		return true;
	return complain(e, v, "%s does not match the pattern %s", complaint_show(e, v, a),
		value_show(r->value, b));
}

/* ---- lists, mappings ---- */

static bool check_unique_items(struct evaluation *e, const struct rule *r, const struct value *v)
{
	const struct value *pair[2];
	char shown[COMPLAINT_SHOWN];
	int found;

	if (!r->value->node->boolean)
		return true;
	if (!evaluation_spend(e, v->weight * evaluation_halvings(v->count)))
		return false;
	found = value_twice(v, pair);
	if (found < 0)
		e->error = found;
	if (found <= 0)
		return found == 0;
	return complain(e, v, "the items %zu and %zu are equal (%s), but all must differ",
		value_index(pair[0]), value_index(pair[1]), complaint_show(e, pair[0], shown));
}

static bool check_required(struct evaluation *e, const struct rule *r, const struct value *v)
{
	char shown[VALUE_SHOWN];
	bool valid = evaluation_spend_finds(e, r->value->count, v->count);

	for (unsigned i = 0; i < r->value->count && evaluation_may_continue(e, valid); i++) {
		const struct value *name = &r->value->children[i];

		if (!value_find(v, name->node->text, name->node->text_len))
			valid = complain(e, v, "the key %s is missing", value_show(name, shown));
	}
	return valid;
}

static bool check_dependent_required(
	struct evaluation *e, const struct rule *r, const struct value *v)
{
	char a[VALUE_SHOWN], b[VALUE_SHOWN];
	bool valid = evaluation_spend_finds(e, r->value->count, v->count);

	for (unsigned i = 0; i < r->value->count && evaluation_may_continue(e, valid); i++) {
		const struct value *names = &r->value->children[i];
		const struct node *there = names->node;

		if (!value_find(v, there->key, there->key_len) ||
			!evaluation_spend_finds(e, names->count, v->count))
			continue;
		for (unsigned k = 0; k < names->count; k++) {
			const struct value *name = &names->children[k];

			if (value_find(v, name->node->text, name->node->text_len))
				continue;
			valid = complain(e, v, "the key %s is missing: %s must not be there alone",
				value_show(name, a),
				value_show_text(there->key, there->key_len, b));
		}
	}
	return valid;
}

/* ---- a keyword ---- */

static const struct {
	unsigned types; /* of values that it checks; others pass */
	bool (*check)(struct evaluation *e, const struct rule *r, const struct value *v);
} assertions[KEYWORD_COUNT] = {
	[KEYWORD_TYPE] = {VALUE_ANY, check_type},
	[KEYWORD_ENUM] = {VALUE_ANY, check_enum},
	[KEYWORD_CONST] = {VALUE_ANY, check_const},
	[KEYWORD_MULTIPLE_OF] = {VALUE_NUMBER, check_multiple_of},
	[KEYWORD_MAXIMUM] = {VALUE_NUMBER, check_limit},
	[KEYWORD_EXCLUSIVE_MAXIMUM] = {VALUE_NUMBER, check_limit},
	[KEYWORD_MINIMUM] = {VALUE_NUMBER, check_limit},
	[KEYWORD_EXCLUSIVE_MINIMUM] = {VALUE_NUMBER, check_limit},
	[KEYWORD_MAX_LENGTH] = {VALUE_STRING, check_count},
	[KEYWORD_MIN_LENGTH] = {VALUE_STRING, check_count},
	[KEYWORD_PATTERN] = {VALUE_STRING, check_pattern},
	[KEYWORD_MAX_ITEMS] = {VALUE_LIST, check_count},
	[KEYWORD_MIN_ITEMS] = {VALUE_LIST, check_count},
	[KEYWORD_UNIQUE_ITEMS] = {VALUE_LIST, check_unique_items},
	[KEYWORD_MAX_PROPERTIES] = {VALUE_MAP, check_count},
	[KEYWORD_MIN_PROPERTIES] = {VALUE_MAP, check_count},
	[KEYWORD_REQUIRED] = {VALUE_MAP, check_required},
	[KEYWORD_DEPENDENT_REQUIRED] = {VALUE_MAP, check_dependent_required},
};

bool assertions_check(struct evaluation *e, const struct rule *r, const struct value *v)
{
	if (!value_is(v, assertions[r->keyword].types))
		return true;
	e->at = v;
	return assertions[r->keyword].check(e, r, v);
}
