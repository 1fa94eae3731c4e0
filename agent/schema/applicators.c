/*
 * The keywords that apply schemas to a value or to its children, and so a schema as a whole.
 * Surprising: the same code runs loud and quiet. Loud, it goes on after an error and reports each;
 * quiet, where an error only decides something (anyOf, not, if, ...), it stops at the first.
 */
#include "schema/applicators.h"

#include <errno.h>
#include <stdlib.h>

#include "schema/assertions.h"
#include "schema/complaint.h"

/* The children of one value that some schema has evaluated: a bit for each. */
struct marks {
	size_t words;
	uint64_t one, *bits; /* bits: &one, or allocated */
};

static bool apply_schema(
	struct evaluation *e, const struct sub *s, const struct value *v, struct marks *marks);
static bool fits_schema(
	struct evaluation *e, const struct sub *s, const struct value *v, struct marks *marks);

/* ---- marks ---- */

static bool marks_begin(struct evaluation *e, struct marks *m, size_t count)
{
	*m = (struct marks){.words = (count + 63) / 64};
	if (!evaluation_spend(e, m->words))
		return false;
	m->bits = m->words <= 1 ? &m->one : calloc(m->words, sizeof(*m->bits));
	if (!m->bits)
		e->error = -ENOMEM;
	return m->bits != NULL;
}

static void marks_end(struct marks *m)
{
	if (m->bits != &m->one)
		free(m->bits);
}

static void mark_child(struct marks *m, size_t i)
{
	if (m)
		m->bits[i / 64] |= UINT64_C(1) << i % 64;
}

static bool is_marked(const struct marks *m, size_t i)
{
	return m->bits[i / 64] >> i % 64 & 1;
}

static void mark_all(struct marks *m, const struct marks *from)
{
	for (size_t i = 0; m && i < m->words; i++)
		m->bits[i] |= from->bits[i];
}

/* ---- a child ---- */

/* A child that nothing else in the schema names: where none is allowed, the error is its being
 * there. */
static bool apply_rest(
	struct evaluation *e, const struct sub *s, const struct value *v, struct marks *marks)
{
	mark_child(marks, value_index(v));
	if (s->at->node->type == NODE_BOOL && !s->at->node->boolean && evaluation_spend(e, 1))
		return complain_key(e, v, v->node->key != NULL, "this %s is not allowed here",
			v->node->key ? "key" : "item");
	return apply_schema(e, s, v, NULL);
}

/* ---- lists ---- */

static bool check_prefix_items(
	struct evaluation *e, const struct rule *r, const struct value *v, struct marks *marks)
{
	bool valid = true;

	for (unsigned i = 0; i < r->count && i < v->count && evaluation_may_continue(e, valid);
		i++) {
		mark_child(marks, i);
		valid &= apply_schema(e, r->subs[i], &v->children[i], NULL);
	}
	return valid;
}

static bool check_items(
	struct evaluation *e, const struct rule *r, const struct value *v, struct marks *marks)
{
	unsigned i = r->beside[0] ? r->beside[0]->count : 0;
	bool valid = true;

	for (; i < v->count && evaluation_may_continue(e, valid); i++)
		valid &= apply_rest(e, r->subs[0], &v->children[i], marks);
	return valid;
}

static bool check_contains(
	struct evaluation *e, const struct rule *r, const struct value *v, struct marks *marks)
{
	uint64_t min = r->beside[0] ? r->beside[0]->limit : 1,
		 max = r->beside[1] ? r->beside[1]->limit : UINT64_MAX, found = 0;

	for (unsigned i = 0; i < v->count && e->error == 0; i++) {
		if (!fits_schema(e, r->subs[0], &v->children[i], NULL))
			continue;
		found++;
		mark_child(marks, i);
	}
	if (found >= min && found <= max)
		return true;
	return complain(e, v, "%llu item%s the schema of contains, at %s %llu %s",
		(unsigned long long)found, found == 1 ? " fits" : "s fit",
		found < min ? "least" : "most", (unsigned long long)(found < min ? min : max),
		found < min ? "must" : "may");
}

/* ---- mappings ---- */

static bool check_properties(
	struct evaluation *e, const struct rule *r, const struct value *v, struct marks *marks)
{
	/* errors are reported in the document's order */
	const struct value *fewer = e->report || v->count < r->value->count ? v : r->value,
			   *more = fewer == v ? r->value : v;
	bool valid = evaluation_spend_finds(e, fewer->count, more->count);

	for (unsigned i = 0; i < fewer->count && evaluation_may_continue(e, valid); i++) {
		const struct value *one = &fewer->children[i],
				   *other = value_find(more, one->node->key, one->node->key_len),
				   *child = fewer == v ? one : other,
				   *named = fewer == v ? other : one;

		if (!other)
			continue;
		mark_child(marks, value_index(child));
		valid &= apply_schema(e, r->subs[value_index(named)], child, NULL);
	}
	return valid;
}

static bool check_pattern_properties(
	struct evaluation *e, const struct rule *r, const struct value *v, struct marks *marks)
{
	bool valid = true;

	for (unsigned i = 0; i < v->count; i++) {
		const struct node *n = v->children[i].node;

		for (unsigned k = 0; k < r->count && evaluation_may_continue(e, valid); k++) {
			if (!evaluation_matches(e, r->patterns[k], n->key, n->key_len))
				continue;
			mark_child(marks, i);
			valid &= apply_schema(e, r->subs[k], &v->children[i], NULL);
		}
	}
	return valid;
}

static bool is_named(struct evaluation *e, const struct rule *names, const struct rule *patterns,
	const struct node *n)
{
	if (names && value_find(names->value, n->key, n->key_len))
		return true;
	for (unsigned i = 0; patterns && i < patterns->count; i++)
		if (evaluation_matches(e, patterns->patterns[i], n->key, n->key_len))
			return true;
	return false;
}

static bool check_additional_properties(
	struct evaluation *e, const struct rule *r, const struct value *v, struct marks *marks)
{
	bool valid = evaluation_spend_finds(e, v->count, r->beside[0] ? r->beside[0]->count : 0);

	for (unsigned i = 0; i < v->count && evaluation_may_continue(e, valid); i++) {
		const struct value *child = &v->children[i];

		if (!is_named(e, r->beside[0], r->beside[1], child->node) && e->error == 0)
			valid &= apply_rest(e, r->subs[0], child, marks);
	}
	return valid;
}

static bool check_property_names(
	struct evaluation *e, const struct rule *r, const struct value *v, struct marks *marks)
{
	bool valid = true;

	(void)marks;
	for (unsigned i = 0; i < v->count && evaluation_may_continue(e, valid); i++) {
		const struct node *n = v->children[i].node;
		const struct node string = {.type = NODE_STRING,
			.text = n->key,
			.text_len = n->key_len,
			.key = n->key,
			.key_len = n->key_len,
			.line = n->key_line,
			.column = n->key_column};
		const struct value name = {
			.node = &string, .parent = v, .weight = 1 + (unsigned)(n->key_len / 64)};

		valid &= apply_schema(e, r->subs[0], &name, NULL);
		e->at = v; /* not name, which ends here */
	}
	return valid;
}

static bool check_dependent_schemas(
	struct evaluation *e, const struct rule *r, const struct value *v, struct marks *marks)
{
	bool valid = evaluation_spend_finds(e, r->count, v->count);

	for (unsigned i = 0; i < r->count && evaluation_may_continue(e, valid); i++) {
		const struct node *n = r->value->children[i].node;

		if (value_find(v, n->key, n->key_len))
			valid &= apply_schema(e, r->subs[i], v, marks);
	}
	return valid;
}

/* The children that no other keyword has evaluated. */
static bool check_unevaluated(
	struct evaluation *e, const struct rule *r, const struct value *v, struct marks *marks)
{
	bool valid = evaluation_spend(e, v->count);

	for (unsigned i = 0; i < v->count && evaluation_may_continue(e, valid); i++)
		if (!is_marked(marks, i))
			valid &= apply_rest(e, r->subs[0], &v->children[i], marks);
	return valid;
}

/* ---- schemas for the same value ---- */

/* Quietly; only a schema that fits has marked anything. */
static bool fits_schema(
	struct evaluation *e, const struct sub *s, const struct value *v, struct marks *marks)
{
	struct report *report = e->report;
	struct marks own;
	bool valid = false;

	e->report = NULL;
	if (!marks) {
		valid = apply_schema(e, s, v, NULL);
	} else if (marks_begin(e, &own, v->count)) {
		valid = apply_schema(e, s, v, &own);
		if (valid)
			mark_all(marks, &own);
		marks_end(&own);
	}
	e->report = report;
	return valid;
}

static bool check_all_of(/* and $ref, which is one */
	struct evaluation *e, const struct rule *r, const struct value *v, struct marks *marks)
{
	bool valid = true;

	for (unsigned i = 0; i < r->count && evaluation_may_continue(e, valid); i++)
		valid &= apply_schema(e, r->subs[i], v, marks);
	return valid;
}

/* Reports the first errors of those schemas that got deepest into the document: probably one of
 * them is meant. */
static bool none_fits(
	struct evaluation *e, const struct rule *r, const struct value *v, const char *keyword)
{
	struct report *report = e->report;
	struct buffer all, one;
	unsigned deepest = 0, reported = 0;

	if (!report)
		return false;
	if (r->count == 1)
		return apply_schema(e, r->subs[0], v, NULL);
	if (!complaint_is_written(e))
		return complaint_count(e);
	buffer_init(&all, SCHEMA_MAX_LINE);
	buffer_init(&one, SCHEMA_MAX_LINE);
	for (unsigned i = 0; i < r->count && e->error == 0; i++) {
		struct report inner = {.out = &one, .max = 1, .about = v};

		buffer_clear(&one);
		e->report = &inner;
		apply_schema(e, r->subs[i], v, NULL);
		e->report = report;
		if (inner.depth > deepest) {
			deepest = inner.depth;
			reported = 0;
			buffer_clear(&all);
		}
		if (inner.depth == deepest && reported < 3 && one.data)
			buffer_printf(&all, "%s%s", reported++ ? "; or: " : "", one.data);
	}
	complain(e, v, "fits no schema of %s: %s", keyword, all.data ? all.data : "");
	if (all.error == -ENOMEM)
		e->error = -ENOMEM;
	buffer_fini(&all);
	buffer_fini(&one);
	return false;
}

static bool check_any_of(
	struct evaluation *e, const struct rule *r, const struct value *v, struct marks *marks)
{
	bool valid = false;

	for (unsigned i = 0; i < r->count && e->error == 0 && (!valid || marks); i++)
		valid |= fits_schema(e, r->subs[i], v, marks);
	return valid || none_fits(e, r, v, "anyOf");
}

static bool check_one_of(
	struct evaluation *e, const struct rule *r, const struct value *v, struct marks *marks)
{
	unsigned fitting[2] = {0}, count = 0;

	for (unsigned i = 0; i < r->count && e->error == 0 && count < 2; i++)
		if (fits_schema(e, r->subs[i], v, marks))
			fitting[count++] = i + 1;
	if (count == 0)
		return none_fits(e, r, v, "oneOf");
	return count == 1 ||
	       complain(e, v, "fits the schemas %u and %u of oneOf, must fit one only", fitting[0],
		       fitting[1]);
}

static bool check_not(
	struct evaluation *e, const struct rule *r, const struct value *v, struct marks *marks)
{
	(void)marks;
	return !fits_schema(e, r->subs[0], v, NULL) ||
	       complain(e, v, "must not fit the schema of not");
}

static bool check_if(
	struct evaluation *e, const struct rule *r, const struct value *v, struct marks *marks)
{
	const struct rule *then = r->beside[fits_schema(e, r->subs[0], v, marks) ? 0 : 1];

	return !then || apply_schema(e, then->subs[0], v, marks);
}

/* ---- a schema ---- */

static const struct {
	unsigned types; /* of values that it checks; others pass */
	bool (*check)(struct evaluation *e, const struct rule *r, const struct value *v,
		struct marks *marks);
} applicators[KEYWORD_COUNT] = {
	/* of the others some are assertions, and some ask for nothing by themselves */
	[KEYWORD_REF] = {VALUE_ANY, check_all_of},
	[KEYWORD_DYNAMIC_REF] = {VALUE_ANY, check_all_of},
	[KEYWORD_PREFIX_ITEMS] = {VALUE_LIST, check_prefix_items},
	[KEYWORD_ITEMS] = {VALUE_LIST, check_items},
	[KEYWORD_CONTAINS] = {VALUE_LIST, check_contains},
	[KEYWORD_PROPERTIES] = {VALUE_MAP, check_properties},
	[KEYWORD_PATTERN_PROPERTIES] = {VALUE_MAP, check_pattern_properties},
	[KEYWORD_ADDITIONAL_PROPERTIES] = {VALUE_MAP, check_additional_properties},
	[KEYWORD_PROPERTY_NAMES] = {VALUE_MAP, check_property_names},
	[KEYWORD_DEPENDENT_SCHEMAS] = {VALUE_MAP, check_dependent_schemas},
	[KEYWORD_ALL_OF] = {VALUE_ANY, check_all_of},
	[KEYWORD_ANY_OF] = {VALUE_ANY, check_any_of},
	[KEYWORD_ONE_OF] = {VALUE_ANY, check_one_of},
	[KEYWORD_NOT] = {VALUE_ANY, check_not},
	[KEYWORD_IF] = {VALUE_ANY, check_if},
	[KEYWORD_UNEVALUATED_ITEMS] = {VALUE_LIST, check_unevaluated},
	[KEYWORD_UNEVALUATED_PROPERTIES] = {VALUE_MAP, check_unevaluated},
};

static bool apply_rule(
	struct evaluation *e, const struct rule *r, const struct value *v, struct marks *marks)
{
	if (!applicators[r->keyword].check)
		return assertions_check(e, r, v);
	if (!value_is(v, applicators[r->keyword].types))
		return true;
	e->at = v;
	return applicators[r->keyword].check(e, r, v, marks);
}

static bool apply_rules(
	struct evaluation *e, const struct sub *s, const struct value *v, struct marks *marks)
{
	bool valid = true;

	for (unsigned i = 0; i < s->count && evaluation_may_continue(e, valid); i++) {
		const struct rule *r = &s->rules[i];

		if (r->keyword >= KEYWORD_UNEVALUATED_ITEMS && !valid)
			break; /* what is left would only repeat that */
		valid &= apply_rule(e, r, v, marks);
	}
	return valid;
}

static bool apply_schema(
	struct evaluation *e, const struct sub *s, const struct value *v, struct marks *marks)
{
	struct marks own;
	bool valid;

	e->at = v;
	if (!evaluation_spend(e, 1))
		return false;
	if (s->at->node->type == NODE_BOOL)
		return s->at->node->boolean || complain(e, v, "no value is allowed here");
	if (!s->leftovers)
		return apply_rules(e, s, v, marks);
	if (!marks_begin(e, &own, v->count))
		return false;
	valid = apply_rules(e, s, v, &own);
	if (valid)
		mark_all(marks, &own);
	marks_end(&own);
	return valid;
}

bool applicators_apply(struct evaluation *e, const struct sub *s, const struct value *v)
{
	return apply_schema(e, s, v, NULL);
}
