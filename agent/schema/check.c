/*
 * A document against a compiled schema. Surprising: the same code runs loud and quiet. Loud, it
 * goes on after an error and reports each; quiet, where an error only decides something (anyOf,
 * not, if, ...), it stops at the first.
 */
#include "schema/schema.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "document/key_path.h"
#include "schema/rule.h"
#include "text/sentence.h"

#define SHOWN (VALUE_SHOWN + SENTENCE_WORDS)

struct report {
	struct buffer *out;
	size_t count;              /* of all errors */
	size_t max;                /* of those that are written */
	const struct value *about; /* not NULL: no places; no path either for this value itself */
	unsigned depth;            /* of the first error in the document */
};

struct run {
	struct report *report;   /* NULL: quiet */
	struct matcher *matcher; /* NULL until the first pattern */
	uint64_t work;           /* what is left */
	const struct value *at;  /* being checked */
	char *const *mask;       /* key patterns whose values are not shown; or NULL */
	int error;               /* not 0: the result does not count */
};

/* The children of one value that some schema has evaluated: a bit for each. */
struct marks {
	size_t words;
	uint64_t one, *bits; /* bits: &one, or allocated */
};

static bool apply_schema(
	struct run *run, const struct sub *s, const struct value *v, struct marks *marks);

/* ---- work, errors ---- */

static bool spend_work(struct run *run, uint64_t steps)
{
	if (run->error == 0 && run->work >= steps) {
		run->work -= steps;
		return true;
	}
	if (run->error == 0)
		run->error = -E2BIG;
	return false;
}

/* How often a count can be halved, and twice more: what looking up and sorting cost. */
static uint64_t count_halvings(size_t count)
{
	uint64_t n = 1;

	for (; count > 0; count /= 2)
		n++;
	return n;
}

/* Pays for finding `count` keys among others. */
static bool spend_finds(struct run *run, size_t count, size_t among)
{
	return spend_work(run, count * (1 + count_halvings(among) / 2));
}

static bool is_reported(const struct run *run)
{
	return run->error == 0 && run->report && run->report->count < run->report->max;
}

static bool count_only(struct run *run)
{
	if (run->report)
		run->report->count++;
	return false;
}

/* Reports an error of v; see complain(). Always false. */
__attribute__((format(printf, 4, 5))) static bool complain_at(
	struct run *run, const struct value *v, bool key, const char *format, ...)
{
	struct report *t = run->report;
	char where[VALUE_WHERE] = "", message[SCHEMA_MAX_LINE - VALUE_WHERE - 16];
	bool is_name = v->node->text && v->node->text == v->node->key; /* check_property_names */
	va_list args;

	if (t->count++ == 0)
		for (const struct value *p = v->parent; p; p = p->parent)
			t->depth++;
	if (!t->about)
		value_where(v, key, where);
	else if (t->about != v)
		value_path(v, where);
	va_start(args, format);
	value_cut(message, sizeof(message), vsnprintf(message, sizeof(message), format, args));
	va_end(args);
	if (buffer_printf(t->out, "%s%s%s%s", where, is_name ? "its key: " : "", message,
		    t->about ? "" : "\n"))
		run->error = t->out->error;
	return false;
}

/* Always false, too; its arguments are only evaluated when it is reported. */
#define complain_key(run, v, key, ...)                                                             \
	(is_reported(run) ? complain_at(run, v, key, __VA_ARGS__) : count_only(run))
#define complain(run, v, ...) complain_key(run, v, false, __VA_ARGS__)

static void append_path(const struct value *v, struct buffer *path)
{
	if (!v->parent)
		return;
	append_path(v->parent, path);
	key_path_append(path, !v->parent->parent, v->node, value_index(v));
}

static bool is_masked(const struct run *run, const struct value *v)
{
	struct buffer path;
	bool masked;

	if (!run->mask)
		return false;
	buffer_init(&path, 16u << 20);
	append_path(v, &path);
	masked = path.error || key_path_matches(run->mask, path.data ? path.data : "");
	buffer_fini(&path);
	return masked;
}

/* A value of the document for people, or the words that replace it. */
static const char *show_value(const struct run *run, const struct value *v, char shown[SHOWN])
{
	static const char *const words[] = {
		[NODE_BOOL] = "true or false",
		[NODE_INT] = "an integer",
		[NODE_DOUBLE] = "a number",
		[NODE_STRING] = "a string",
	};
	char text[VALUE_SHOWN];
	const char *value = is_masked(run, v) ? "***" : value_show(v, text);

	if (value_is(v, VALUE_NULL | VALUE_LIST | VALUE_MAP)) {
		snprintf(shown, SHOWN, "%s", value);
		return shown;
	}
	return sentence_quote(shown, SHOWN, value, strlen(value), words[v->node->type]);
}

/* What the schema says that v may be: as secret as v. */
static const char *show_wanted(
	const struct run *run, const struct value *v, const char *wanted, char *shown, size_t size)
{
	if (is_masked(run, v))
		wanted = "***";
	return sentence_quote(shown, size, wanted, strlen(wanted), "what the schema says");
}

/* ---- marks ---- */

static bool marks_begin(struct run *run, struct marks *m, size_t count)
{
	*m = (struct marks){.words = (count + 63) / 64};
	if (!spend_work(run, m->words))
		return false;
	m->bits = m->words <= 1 ? &m->one : calloc(m->words, sizeof(*m->bits));
	if (!m->bits)
		run->error = -ENOMEM;
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

/* ---- values as a whole ---- */

static bool check_type(
	struct run *run, const struct rule *r, const struct value *v, struct marks *marks)
{
	char names[VALUE_TYPES], shown[SHOWN];
	bool quote = r->types == VALUE_STRING && !value_is(v, VALUE_LIST | VALUE_MAP);

	(void)marks;
	if (value_is(v, r->types))
		return true;
	if (r->types & VALUE_INTEGER && v->node->type == NODE_DOUBLE && number_is_whole(v->node))
		return true;
	return complain(run, v, "must be %s, but is %s%s", value_types(r->types, names),
		show_value(run, v, shown), quote ? ": put it in quotes" : "");
}

static int by_compared_value(const void *a, const void *b)
{
	return value_compare(*(const struct value *const *)a, *(const struct value *const *)b);
}

static bool check_enum(
	struct run *run, const struct rule *r, const struct value *v, struct marks *marks)
{
	char one[VALUE_SHOWN], shown[SHOWN], names[512] = "nothing", all[512 + SENTENCE_WORDS];
	size_t len = 0;

	(void)marks;
	if (!spend_work(run, v->weight * count_halvings(r->value->count)))
		return false;
	if (bsearch(&v, r->sorted, r->value->count, sizeof(*r->sorted), by_compared_value))
		return true;
	for (unsigned i = 0; is_reported(run) && i < r->value->count && len < sizeof(names); i++)
		len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s", i ? ", " : "",
			value_show(&r->value->children[i], one));
	value_cut(names, sizeof(names), (int)len);
	return complain(run, v, "%s is none of: %s%s", show_value(run, v, shown),
		show_wanted(run, v, names, all, sizeof(all)), len < sizeof(names) ? "" : "...");
}

static bool check_const(
	struct run *run, const struct rule *r, const struct value *v, struct marks *marks)
{
	char a[SHOWN], b[SHOWN], wanted[VALUE_SHOWN];

	(void)marks;
	if (!spend_work(run, v->weight) || value_compare(r->value, v) == 0)
		return run->error == 0;
	if (value_is(v, VALUE_LIST | VALUE_MAP) && r->value->node->type == v->node->type)
		return complain(run, v, "differs from the one that the schema asks for");
	return complain(run, v, "must be %s, but is %s",
		show_wanted(run, v, value_show(r->value, wanted), a, sizeof(a)),
		show_value(run, v, b));
}

/* ---- numbers ---- */

static bool check_multiple_of(
	struct run *run, const struct rule *r, const struct value *v, struct marks *marks)
{
	char a[SHOWN], b[VALUE_SHOWN];

	(void)marks;
	if (!spend_work(run, v->node->text_len / 8))
		return false;
	if (number_is_multiple(v->node, &r->divisor))
		return true;
	return complain(run, v, "%s is not a multiple of %s", show_value(run, v, a),
		value_show(r->value, b));
}

static bool check_limit(
	struct run *run, const struct rule *r, const struct value *v, struct marks *marks)
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
	char a[SHOWN], b[VALUE_SHOWN];
	int difference = number_compare(v->node, r->value->node) * limits[r->keyword].sign;
	bool number = v->node->type == NODE_INT || !isnan(v->node->number);

	(void)marks;
	if (number && (difference < 0 || (difference == 0 && !limits[r->keyword].exclusive)))
		return true;
	return complain(run, v, "%s %s %s", show_value(run, v, a), limits[r->keyword].text,
		value_show(r->value, b));
}

/* ---- what is counted, strings ---- */

static bool check_count(
	struct run *run, const struct rule *r, const struct value *v, struct marks *marks)
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

	(void)marks;
	if (v->node->type == NODE_STRING) {
		if (!spend_work(run, v->weight))
			return false;
		count = value_characters(v);
	}
	if (most ? count <= r->limit : count >= r->limit)
		return true;
	return complain(run, v, "has %zu %s%s, at %s %llu %s", count, counts[r->keyword].what,
		count == 1 ? "" : "s", most ? "most" : "least", (unsigned long long)r->limit,
		most ? "allowed" : "required");
}

static bool matches_pattern(struct run *run, const struct pattern *p, const char *text, size_t len)
{
	int r;

	if (!run->matcher)
		run->matcher = matcher_new();
	r = run->matcher ? pattern_match(p, run->matcher, text, len, &run->work) : -ENOMEM;
	if (r < 0 && run->error == 0)
		run->error = r;
	return r == 1;
}

static bool check_pattern(
	struct run *run, const struct rule *r, const struct value *v, struct marks *marks)
{
	char a[SHOWN], b[VALUE_SHOWN];

	(void)marks;
	if (matches_pattern(run, r->patterns[0], v->node->text, v->node->text_len))
		return true;
	return complain(run, v, "%s does not match the pattern %s", show_value(run, v, a),
		value_show(r->value, b));
}

/* ---- lists ---- */

static bool check_unique_items(
	struct run *run, const struct rule *r, const struct value *v, struct marks *marks)
{
	const struct value *pair[2];
	char shown[SHOWN];
	int found;

	(void)marks;
	if (!r->value->node->boolean)
		return true;
	if (!spend_work(run, v->weight * count_halvings(v->count)))
		return false;
	found = value_twice(v, pair);
	if (found < 0)
		run->error = found;
	if (found <= 0)
		return found == 0;
	return complain(run, v, "the items %zu and %zu are equal (%s), but all must differ",
		value_index(pair[0]), value_index(pair[1]), show_value(run, pair[0], shown));
}

/* A child that nothing else in the schema names: where none is allowed, the error is its being
 * there. */
static bool apply_rest(
	struct run *run, const struct sub *s, const struct value *v, struct marks *marks)
{
	mark_child(marks, value_index(v));
	if (s->at->node->type == NODE_BOOL && !s->at->node->boolean && spend_work(run, 1))
		return complain_key(run, v, v->node->key != NULL, "this %s is not allowed here",
			v->node->key ? "key" : "item");
	return apply_schema(run, s, v, NULL);
}

/* While errors are reported, a check goes on after the first. */
static bool may_continue(const struct run *run, bool valid)
{
	return run->error == 0 && (valid || run->report);
}

static bool check_prefix_items(
	struct run *run, const struct rule *r, const struct value *v, struct marks *marks)
{
	bool valid = true;

	for (unsigned i = 0; i < r->count && i < v->count && may_continue(run, valid); i++) {
		mark_child(marks, i);
		valid &= apply_schema(run, r->subs[i], &v->children[i], NULL);
	}
	return valid;
}

static bool check_items(
	struct run *run, const struct rule *r, const struct value *v, struct marks *marks)
{
	unsigned i = r->beside[0] ? r->beside[0]->count : 0;
	bool valid = true;

	for (; i < v->count && may_continue(run, valid); i++)
		valid &= apply_rest(run, r->subs[0], &v->children[i], marks);
	return valid;
}

static bool fits_schema(
	struct run *run, const struct sub *s, const struct value *v, struct marks *marks);

static bool check_contains(
	struct run *run, const struct rule *r, const struct value *v, struct marks *marks)
{
	uint64_t min = r->beside[0] ? r->beside[0]->limit : 1,
		 max = r->beside[1] ? r->beside[1]->limit : UINT64_MAX, found = 0;

	for (unsigned i = 0; i < v->count && run->error == 0; i++) {
		if (!fits_schema(run, r->subs[0], &v->children[i], NULL))
			continue;
		found++;
		mark_child(marks, i);
	}
	if (found >= min && found <= max)
		return true;
	return complain(run, v, "%llu item%s the schema of contains, at %s %llu %s",
		(unsigned long long)found, found == 1 ? " fits" : "s fit",
		found < min ? "least" : "most", (unsigned long long)(found < min ? min : max),
		found < min ? "must" : "may");
}

/* ---- mappings ---- */

static bool check_required(
	struct run *run, const struct rule *r, const struct value *v, struct marks *marks)
{
	char shown[VALUE_SHOWN];
	bool valid = spend_finds(run, r->value->count, v->count);

	(void)marks;
	for (unsigned i = 0; i < r->value->count && may_continue(run, valid); i++) {
		const struct value *name = &r->value->children[i];

		if (!value_find(v, name->node->text, name->node->text_len))
			valid = complain(run, v, "the key %s is missing", value_show(name, shown));
	}
	return valid;
}

static bool check_dependent_required(
	struct run *run, const struct rule *r, const struct value *v, struct marks *marks)
{
	char a[VALUE_SHOWN], b[VALUE_SHOWN];
	bool valid = spend_finds(run, r->value->count, v->count);

	(void)marks;
	for (unsigned i = 0; i < r->value->count && may_continue(run, valid); i++) {
		const struct value *names = &r->value->children[i];
		const struct node *there = names->node;

		if (!value_find(v, there->key, there->key_len) ||
			!spend_finds(run, names->count, v->count))
			continue;
		for (unsigned k = 0; k < names->count; k++) {
			const struct value *name = &names->children[k];

			if (value_find(v, name->node->text, name->node->text_len))
				continue;
			valid = complain(run, v,
				"the key %s is missing: %s must not be there alone",
				value_show(name, a),
				value_show_text(there->key, there->key_len, b));
		}
	}
	return valid;
}

static bool check_properties(
	struct run *run, const struct rule *r, const struct value *v, struct marks *marks)
{
	/* errors are reported in the document's order */
	const struct value *fewer = run->report || v->count < r->value->count ? v : r->value,
			   *more = fewer == v ? r->value : v;
	bool valid = spend_finds(run, fewer->count, more->count);

	for (unsigned i = 0; i < fewer->count && may_continue(run, valid); i++) {
		const struct value *one = &fewer->children[i],
				   *other = value_find(more, one->node->key, one->node->key_len),
				   *child = fewer == v ? one : other,
				   *named = fewer == v ? other : one;

		if (!other)
			continue;
		mark_child(marks, value_index(child));
		valid &= apply_schema(run, r->subs[value_index(named)], child, NULL);
	}
	return valid;
}

static bool check_pattern_properties(
	struct run *run, const struct rule *r, const struct value *v, struct marks *marks)
{
	bool valid = true;

	for (unsigned i = 0; i < v->count; i++) {
		const struct node *n = v->children[i].node;

		for (unsigned k = 0; k < r->count && may_continue(run, valid); k++) {
			if (!matches_pattern(run, r->patterns[k], n->key, n->key_len))
				continue;
			mark_child(marks, i);
			valid &= apply_schema(run, r->subs[k], &v->children[i], NULL);
		}
	}
	return valid;
}

static bool is_named(struct run *run, const struct rule *names, const struct rule *patterns,
	const struct node *n)
{
	if (names && value_find(names->value, n->key, n->key_len))
		return true;
	for (unsigned i = 0; patterns && i < patterns->count; i++)
		if (matches_pattern(run, patterns->patterns[i], n->key, n->key_len))
			return true;
	return false;
}

static bool check_additional_properties(
	struct run *run, const struct rule *r, const struct value *v, struct marks *marks)
{
	bool valid = spend_finds(run, v->count, r->beside[0] ? r->beside[0]->count : 0);

	for (unsigned i = 0; i < v->count && may_continue(run, valid); i++) {
		const struct value *child = &v->children[i];

		if (!is_named(run, r->beside[0], r->beside[1], child->node) && run->error == 0)
			valid &= apply_rest(run, r->subs[0], child, marks);
	}
	return valid;
}

static bool check_property_names(
	struct run *run, const struct rule *r, const struct value *v, struct marks *marks)
{
	bool valid = true;

	(void)marks;
	for (unsigned i = 0; i < v->count && may_continue(run, valid); i++) {
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

		valid &= apply_schema(run, r->subs[0], &name, NULL);
		run->at = v; /* not name, which ends here */
	}
	return valid;
}

static bool check_dependent_schemas(
	struct run *run, const struct rule *r, const struct value *v, struct marks *marks)
{
	bool valid = spend_finds(run, r->count, v->count);

	for (unsigned i = 0; i < r->count && may_continue(run, valid); i++) {
		const struct node *n = r->value->children[i].node;

		if (value_find(v, n->key, n->key_len))
			valid &= apply_schema(run, r->subs[i], v, marks);
	}
	return valid;
}

/* The children that no other keyword has evaluated. */
static bool check_unevaluated(
	struct run *run, const struct rule *r, const struct value *v, struct marks *marks)
{
	bool valid = spend_work(run, v->count);

	for (unsigned i = 0; i < v->count && may_continue(run, valid); i++)
		if (!is_marked(marks, i))
			valid &= apply_rest(run, r->subs[0], &v->children[i], marks);
	return valid;
}

/* ---- schemas for the same value ---- */

/* Quietly; only a schema that fits has marked anything. */
static bool fits_schema(
	struct run *run, const struct sub *s, const struct value *v, struct marks *marks)
{
	struct report *report = run->report;
	struct marks own;
	bool valid = false;

	run->report = NULL;
	if (!marks) {
		valid = apply_schema(run, s, v, NULL);
	} else if (marks_begin(run, &own, v->count)) {
		valid = apply_schema(run, s, v, &own);
		if (valid)
			mark_all(marks, &own);
		marks_end(&own);
	}
	run->report = report;
	return valid;
}

static bool check_all_of(/* and $ref, which is one */
	struct run *run, const struct rule *r, const struct value *v, struct marks *marks)
{
	bool valid = true;

	for (unsigned i = 0; i < r->count && may_continue(run, valid); i++)
		valid &= apply_schema(run, r->subs[i], v, marks);
	return valid;
}

/* Reports the first errors of those schemas that got deepest into the document: probably one of
 * them is meant. */
static bool none_fits(
	struct run *run, const struct rule *r, const struct value *v, const char *keyword)
{
	struct report *report = run->report;
	struct buffer all, one;
	unsigned deepest = 0, reported = 0;

	if (!report)
		return false;
	if (r->count == 1)
		return apply_schema(run, r->subs[0], v, NULL);
	if (!is_reported(run))
		return count_only(run);
	buffer_init(&all, SCHEMA_MAX_LINE);
	buffer_init(&one, SCHEMA_MAX_LINE);
	for (unsigned i = 0; i < r->count && run->error == 0; i++) {
		struct report inner = {.out = &one, .max = 1, .about = v};

		buffer_clear(&one);
		run->report = &inner;
		apply_schema(run, r->subs[i], v, NULL);
		run->report = report;
		if (inner.depth > deepest) {
			deepest = inner.depth;
			reported = 0;
			buffer_clear(&all);
		}
		if (inner.depth == deepest && reported < 3 && one.data)
			buffer_printf(&all, "%s%s", reported++ ? "; or: " : "", one.data);
	}
	complain(run, v, "fits no schema of %s: %s", keyword, all.data ? all.data : "");
	if (all.error == -ENOMEM)
		run->error = -ENOMEM;
	buffer_fini(&all);
	buffer_fini(&one);
	return false;
}

static bool check_any_of(
	struct run *run, const struct rule *r, const struct value *v, struct marks *marks)
{
	bool valid = false;

	for (unsigned i = 0; i < r->count && run->error == 0 && (!valid || marks); i++)
		valid |= fits_schema(run, r->subs[i], v, marks);
	return valid || none_fits(run, r, v, "anyOf");
}

static bool check_one_of(
	struct run *run, const struct rule *r, const struct value *v, struct marks *marks)
{
	unsigned fitting[2] = {0}, count = 0;

	for (unsigned i = 0; i < r->count && run->error == 0 && count < 2; i++)
		if (fits_schema(run, r->subs[i], v, marks))
			fitting[count++] = i + 1;
	if (count == 0)
		return none_fits(run, r, v, "oneOf");
	return count == 1 ||
	       complain(run, v, "fits the schemas %u and %u of oneOf, must fit one only",
		       fitting[0], fitting[1]);
}

static bool check_not(
	struct run *run, const struct rule *r, const struct value *v, struct marks *marks)
{
	(void)marks;
	return !fits_schema(run, r->subs[0], v, NULL) ||
	       complain(run, v, "must not fit the schema of not");
}

static bool check_if(
	struct run *run, const struct rule *r, const struct value *v, struct marks *marks)
{
	const struct rule *then = r->beside[fits_schema(run, r->subs[0], v, marks) ? 0 : 1];

	return !then || apply_schema(run, then->subs[0], v, marks);
}

/* ---- a schema ---- */

static const struct {
	unsigned types; /* of values that it checks; others pass */
	bool (*check)(
		struct run *run, const struct rule *r, const struct value *v, struct marks *marks);
} checks[KEYWORD_COUNT] = {
	/* the others ask for nothing by themselves */
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

static bool apply_rules(
	struct run *run, const struct sub *s, const struct value *v, struct marks *marks)
{
	bool valid = true;

	for (unsigned i = 0; i < s->count && may_continue(run, valid); i++) {
		const struct rule *r = &s->rules[i];

		if (!value_is(v, checks[r->keyword].types))
			continue;
		if (r->keyword >= KEYWORD_UNEVALUATED_ITEMS && !valid)
			break; /* what is left would only repeat that */
		run->at = v;
		valid &= checks[r->keyword].check(run, r, v, marks);
	}
	return valid;
}

static bool apply_schema(
	struct run *run, const struct sub *s, const struct value *v, struct marks *marks)
{
	struct marks own;
	bool valid;

	run->at = v;
	if (!spend_work(run, 1))
		return false;
	if (s->at->node->type == NODE_BOOL)
		return s->at->node->boolean || complain(run, v, "no value is allowed here");
	if (!s->leftovers)
		return apply_rules(run, s, v, marks);
	if (!marks_begin(run, &own, v->count))
		return false;
	valid = apply_rules(run, s, v, &own);
	if (valid)
		mark_all(marks, &own);
	marks_end(&own);
	return valid;
}

/* ---- the whole ---- */

static void give_up_check(struct run *run, struct buffer *out, size_t start)
{
	char where[VALUE_WHERE];

	value_where(run->at, false, where);
	if (out->error == 0 && out->len > start) {
		out->len = start;
		out->data[start] = '\0';
	}
	buffer_printf(out,
		"%sgiven up here: this schema asks for too much work with this document\n", where);
}

int schema_check(
	const struct schema *s, const struct node *instance, char *const *mask, struct buffer *out)
{
	struct report report = {.out = out, .max = SCHEMA_MAX_ERRORS};
	struct run run = {.report = &report, .work = SCHEMA_MAX_WORK, .mask = mask};
	size_t start = out->len, count;
	struct value *root = NULL;
	bool valid = false;

	run.error = value_tree(instance, &root, &count);
	run.at = root;
	if (run.error == -E2BIG)
		buffer_append_string(out, "larger or deeper than a document may be\n");
	if (run.error == 0) {
		valid = apply_schema(&run, s->top, root, NULL);
		if (run.error == -E2BIG)
			give_up_check(&run, out, start);
		else if (report.count > report.max)
			buffer_printf(out, "and %zu more\n", report.count - report.max);
	}
	matcher_free(run.matcher);
	free(root);
	if (run.error == 0 && out->error)
		run.error = out->error;
	return run.error ? run.error : valid ? 0 : -EINVAL;
}
