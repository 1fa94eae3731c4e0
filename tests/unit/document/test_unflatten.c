/* Flat names to a tree: each rule, each refusal; then random sets, in which every name is looked up
 * where a naive reading of the rules says it is. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "document/unflatten.h"
#include "tests/unit/fixture/model_document.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define ROOM ((size_t)1 << 24)

static struct unflatten *nest(enum unflatten_form form)
{
	struct unflatten *n = unflatten_new(form, ROOM);

	assert_non_null(n);
	return n;
}

static int add(struct unflatten *n, const char *name, const char *json)
{
	return unflatten_add(n, name, strlen(name), json, strlen(json));
}

/* The document of these names (split at blanks; their values are 0, 1, 2, ...), without its white
 * space. */
static void written(enum unflatten_form form, const char *names, struct buffer *out)
{
	struct unflatten *n = nest(form);
	struct buffer b;
	char number[24];
	int count = 0;

	for (const char *s = names; *s; s += strcspn(s, " "), s += *s == ' ') {
		snprintf(number, sizeof(number), "%d", count++);
		assert_int_equal(unflatten_add(n, s, strcspn(s, " "), number, strlen(number)), 0);
	}
	assert_int_equal(unflatten_count(n), count);
	buffer_init(&b, ROOM);
	assert_int_equal(unflatten_write(n, &b), 0);
	assert_true(b.data[b.len - 1] == '\n');
	buffer_init(out, ROOM);
	for (size_t i = 0; i < b.len; i++)
		if (b.data[i] != ' ' && b.data[i] != '\n')
			buffer_append(out, b.data + i, 1);
	buffer_fini(&b);
	unflatten_free(n);
}

struct written_case {
	const char *names, *document;
};

static void check_written(enum unflatten_form form, const struct written_case *table, size_t count)
{
	struct buffer out;

	for (size_t i = 0; i < count; i++) {
		written(form, table[i].names, &out);
		if (strcmp(out.data, table[i].document) != 0)
			fail_msg("%s:\n%s instead of\n%s", table[i].names, out.data,
				table[i].document);
		buffer_fini(&out);
	}
}

/* ---- the rules ---- */

static void write__paths__nests_at_each_slash(void **state)
{
	static const struct written_case table[] = {
		{"", "{}"},
		{"a", "{\"a\":0}"},
		{"db/port db/host", "{\"db\":{\"host\":1,\"port\":0}}"},
		{"/a//b/", "{\"a\":{\"b\":0}}"},
		{"a.b[0]/c", "{\"a.b[0]\":{\"c\":0}}"},
		{"b a/z a/c/x", "{\"a\":{\"c\":{\"x\":2},\"z\":1},\"b\":0}"},
		/* both a value and a mapping */
		{"a a/b", "{\"a\":0,\"a/b\":1}"},
		{"a/b a", "{\"a\":1,\"a/b\":0}"},
		{"a a/b a/b/c", "{\"a\":0,\"a/b\":1,\"a/b/c\":2}"},
		{"a/b a/b/c a/b/c/d a/x", "{\"a\":{\"b\":0,\"b/c\":1,\"b/c/d\":2,\"x\":3}}"},
		{"a/b/c a", "{\"a\":1,\"a/b/c\":0}"},
		/* the order of bytes, also where a piece has a slash in it */
		{"a a/b a+ aa", "{\"a\":0,\"a+\":2,\"a/b\":1,\"aa\":3}"},
		{"\xc3\xbc Z a", "{\"Z\":1,\"a\":2,\"\xc3\xbc\":0}"},
	};

	(void)state;
	check_written(UNFLATTEN_PATHS, table, COUNT(table));
}

static void write__properties__nests_at_each_dot_and_makes_lists(void **state)
{
	static const struct written_case table[] = {
		{"a", "{\"a\":0}"},
		{"db.port db.host", "{\"db\":{\"host\":1,\"port\":0}}"},
		{"a/b", "{\"a/b\":0}"},
		{"a a.b", "{\"a\":0,\"a.b\":1}"},
		/* empty segments count */
		{".", "{\"\":{\"\":0}}"},
		{"a. a..b .c", "{\"\":{\"c\":2},\"a\":{\"\":0,\".b\":1}}"},
		/* lists */
		{"l[0] l[1]", "{\"l\":[0,1]}"},
		{"l[1] l[0]", "{\"l\":[1,0]}"},
		{"s[0].host s[0].port s[1].host", "{\"s\":[{\"host\":0,\"port\":1},{\"host\":2}]}"},
		{"m[0][0] m[0][1] m[1][0]", "{\"m\":[[0,1],[2]]}"},
		{"l[0] l[1] l[2] l[3] l[4] l[5] l[6] l[7] l[8] l[9] l[10]",
			"{\"l\":[0,1,2,3,4,5,6,7,8,9,10]}"},
		/* a gap */
		{"l[1]", "{\"l[1]\":0}"},
		{"l[0] l[2]", "{\"l[0]\":0,\"l[2]\":1}"},
		{"l[0].x l[0].y l[2].x", "{\"l[0]\":{\"x\":0,\"y\":1},\"l[2]\":{\"x\":2}}"},
		{"m[0][0] m[0][1] m[2]", "{\"m[0]\":[0,1],\"m[2]\":2}"},
		{"m[0][0] m[0][2] m[1]", "{\"m[0][0]\":0,\"m[0][2]\":1,\"m[1]\":2}"},
		/* more than a list */
		{"l[0] l", "{\"l\":1,\"l[0]\":0}"},
		{"l[0] l.x", "{\"l\":{\"x\":1},\"l[0]\":0}"},
		{"l[0] l[0].x l[1]", "{\"l[0]\":0,\"l[0].x\":1,\"l[1]\":2}"},
		{"l[0].x l[0][0]", "{\"l[0]\":{\"x\":0},\"l[0][0]\":1}"},
		{"l l[0] l[0].x l.y", "{\"l\":0,\"l.y\":3,\"l[0]\":1,\"l[0].x\":2}"},
		/* no numbers of items */
		{"[0] x.[0]", "{\"[0]\":0,\"x\":{\"[0]\":1}}"},
		{"[0][0]", "{\"[0]\":[0]}"},
		{"[10] x.[10]", "{\"[10]\":0,\"x\":{\"[10]\":1}}"},
		{"l[00] l[01]", "{\"l[00]\":0,\"l[01]\":1}"},
		{"l[] l[x] l[-1] l[0]x l[0 l0]",
			"{\"l0]\":5,\"l[-1]\":2,\"l[0\":4,\"l[0]x\":3,\"l[]\":0,\"l[x]\":1}"},
		{"l[x][0]", "{\"l[x]\":[0]}"},
		{"l[0][x]", "{\"l[0][x]\":0}"},
		{"l[0]x[0]", "{\"l[0]x\":[0]}"},
		{"l[999999999]", "{\"l[999999999]\":0}"},
		{"l[0000000000]", "{\"l[0000000000]\":0}"},
		{"l[18446744073709551616]", "{\"l[18446744073709551616]\":0}"},
	};

	(void)state;
	check_written(UNFLATTEN_PROPERTIES, table, COUNT(table));
}

static void write__a_tree__is_indented_and_ends_with_a_newline(void **state)
{
	struct unflatten *n = nest(UNFLATTEN_PROPERTIES);
	struct buffer b;

	(void)state;
	assert_int_equal(add(n, "b.l[0]", "true"), 0);
	assert_int_equal(unflatten_add_text(n, "b.x", 3, "say \"\xc3\xbc\"\n", 9), 0);
	assert_int_equal(add(n, "a", "[1, {}]"), 0);
	buffer_init(&b, ROOM);
	buffer_append_string(&b, "before ");
	assert_int_equal(unflatten_write(n, &b), 0);
	assert_string_equal(b.data, "before {\n"
				    "  \"a\": [1, {}],\n"
				    "  \"b\": {\n"
				    "    \"l\": [\n"
				    "      true\n"
				    "    ],\n"
				    "    \"x\": \"say \\\"\xc3\xbc\\\"\\n\"\n"
				    "  }\n"
				    "}\n");
	buffer_clear(&b);
	assert_int_equal(unflatten_write(n, &b), 0); /* as often as wanted */
	buffer_fini(&b);
	buffer_init(&b, 20);
	assert_int_equal(unflatten_write(n, &b), -EMSGSIZE);
	buffer_fini(&b);
	unflatten_free(n);
}

static void write__a_deep_name__keeps_its_end_in_one_piece(void **state)
{
	struct unflatten *n = nest(UNFLATTEN_PROPERTIES);
	char name[200];
	struct document *d;
	const struct node *at;
	struct buffer b;

	(void)state;
	for (size_t i = 0; i < sizeof(name); i++)
		name[i] = i % 2 ? '.' : 'a';
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(unflatten_add_text(n, name, strlen(name), "x", 1), 0);
	buffer_init(&b, ROOM);
	assert_int_equal(unflatten_write(n, &b), 0);
	d = parsed(DOCUMENT_JSON, b.data);
	at = document_root(d);
	for (int i = 1; i < UNFLATTEN_MAX_DEPTH; i++, at = at->first)
		assert_int_equal(at->type, NODE_MAP);
	assert_string_equal(at->first->key, name + 2 * (UNFLATTEN_MAX_DEPTH - 1));
	assert_string_equal(at->first->text, "x");
	document_free(d);
	buffer_fini(&b);
	unflatten_free(n);
}

/* ---- refusals ---- */

static void add__the_same_name_again__keeps_the_first(void **state)
{
	struct unflatten *n = nest(UNFLATTEN_PATHS), *p = nest(UNFLATTEN_PROPERTIES);
	struct buffer b;

	(void)state;
	assert_int_equal(add(n, "a/b", "1"), 0);
	assert_int_equal(add(n, "a/b", "2"), -EEXIST);
	assert_int_equal(add(n, "//a///b//", "3"), -EEXIST);
	assert_int_equal(unflatten_add_text(n, "/a/b", 4, "x", 1), -EEXIST);
	assert_int_equal(add(n, "a", "4"), 0); /* on the way to a name is no name */
	assert_int_equal(unflatten_count(n), 2);
	buffer_init(&b, ROOM);
	assert_int_equal(unflatten_write(n, &b), 0);
	assert_string_equal(b.data, "{\n  \"a\": 4,\n  \"a/b\": 1\n}\n");
	buffer_fini(&b);
	assert_int_equal(add(p, "a.b", "1"), 0);
	assert_int_equal(add(p, "a.b", "1"), -EEXIST);
	assert_int_equal(add(p, "a..b", "1"), 0);
	unflatten_free(n);
	unflatten_free(p);
}

static void add__a_name_that_cannot_be__is_refused_and_nothing_else_is(void **state)
{
	struct unflatten *n = nest(UNFLATTEN_PATHS);
	char longest[UNFLATTEN_MAX_NAME + 1];
	struct buffer b;

	(void)state;
	memset(longest, 'x', sizeof(longest));
	assert_int_equal(add(n, "", "1"), -EINVAL);
	assert_int_equal(add(n, "/", "1"), -EINVAL);
	assert_int_equal(add(n, "///", "1"), -EINVAL);
	assert_int_equal(unflatten_add(n, longest, sizeof(longest), "1", 1), -EINVAL);
	assert_int_equal(unflatten_add(n, "a\0b", 3, "1", 1), -EILSEQ);
	assert_int_equal(add(n, "a/\xff", "1"), -EILSEQ);
	assert_int_equal(add(n, "\xc3", "1"), -EILSEQ);
	assert_int_equal(unflatten_add_text(n, "a", 1, "\xed\xa0\x80", 3), -EILSEQ);
	assert_int_equal(unflatten_add_text(n, "a", 1, "x\0", 2), -EILSEQ);
	assert_int_equal(unflatten_count(n), 0);
	assert_int_equal(unflatten_add(n, longest, UNFLATTEN_MAX_NAME, "1", 1), 0);
	/* what only looks so */
	assert_int_equal(
		unflatten_add_text(n, "\\ufffd\xef\xbf\xbd", 9, "\\u0000\\\\ufffd", 13), 0);
	assert_int_equal(unflatten_add_text(n, "e", 1, "", 0), 0);
	buffer_init(&b, ROOM);
	assert_int_equal(unflatten_write(n, &b), 0);
	assert_non_null(strstr(b.data, "\"\\\\ufffd\xef\xbf\xbd\": \"\\\\u0000\\\\\\\\ufffd\""));
	assert_non_null(strstr(b.data, "\"e\": \"\""));
	buffer_fini(&b);
	unflatten_free(n);
}

static void add__more_than_the_room__fails_for_good(void **state)
{
	struct unflatten *n = unflatten_new(UNFLATTEN_PATHS, 10);
	struct buffer b;

	(void)state;
	assert_non_null(n);
	assert_int_equal(add(n, "abc", "12"), 0);
	assert_int_equal(add(n, "abc", "123456789"), -EEXIST); /* takes no room */
	assert_int_equal(unflatten_add_text(n, "d", 1, "12", 2), 0);
	assert_int_equal(add(n, "e", "1"), -EMSGSIZE);
	assert_int_equal(add(n, "f", ""), -EMSGSIZE);
	buffer_init(&b, ROOM);
	assert_int_equal(unflatten_write(n, &b), -EMSGSIZE);
	buffer_fini(&b);
	unflatten_free(n);
	unflatten_free(NULL);
}

static void add__more_names_than_a_document_holds__fails(void **state)
{
	struct unflatten *n = nest(UNFLATTEN_PATHS);
	struct document_error e;
	struct document *d;
	struct buffer b;
	char name[20];

	(void)state;
	for (int i = 1; i < DOCUMENT_MAX_NODES; i++) {
		snprintf(name, sizeof(name), "d/%d", i);
		assert_int_equal(add(n, name, "1"), 0);
	}
	buffer_init(&b, ROOM);
	assert_int_equal(unflatten_write(n, &b), 0);
	assert_int_equal(document_parse(DOCUMENT_JSON, b.data, b.len, 0, &d, &e),
		-EINVAL); /* one too many */
	assert_int_equal(add(n, "d", "1"), 0);
	assert_int_equal(add(n, "more", "1"), -EMSGSIZE);
	assert_int_equal(unflatten_count(n), DOCUMENT_MAX_NODES);
	buffer_fini(&b);
	unflatten_free(n);
}

/* ---- random sets ---- */

#define MODEL_NAMES 14
#define MODEL_PIECES 200

/* One name, split by a plain reading of the rules. */
struct model_name {
	char text[600];
	size_t count;
	struct {
		size_t start, end;
		bool item;
	} pieces[MODEL_PIECES];
};

struct model {
	enum unflatten_form form;
	size_t count;
	struct model_name names[MODEL_NAMES];
};

/* Length of "[n]" at s, n a number as it is usually written; 0 = something else. */
static size_t model_item(const char *s)
{
	size_t digits = s[0] == '[' ? strspn(s + 1, "0123456789") : 0;

	if (digits == 0 || digits > 9 || (s[1] == '0' && digits > 1) || s[1 + digits] != ']')
		return 0;
	return digits + 2;
}

/* Is s[0, len) nothing but items? */
static bool model_items(const char *s, size_t len, size_t *ret_count)
{
	size_t at = 0, n;

	for (*ret_count = 0; at < len; at += n, ++*ret_count) {
		n = model_item(s + at);
		if (n == 0 || at + n > len)
			return false;
	}
	return true;
}

static void model_split(const struct model *m, struct model_name *name)
{
	const char *s = name->text;
	size_t start = 0, end, own, items, depth = 0;

	name->count = 0;
	do {
		end = start + strcspn(s + start, m->form == UNFLATTEN_PATHS ? "/" : ".");
		own = end;
		items = 0;
		if (m->form == UNFLATTEN_PROPERTIES)
			for (own = start + 1; own < end; own++)
				if (model_items(s + own, end - own, &items))
					break;
		if (own >= end) {
			own = end;
			items = 0;
		}
		depth += 1 + items;
		if (depth >= UNFLATTEN_MAX_DEPTH)
			own = end = strlen(s);
		name->pieces[name->count].start = start;
		name->pieces[name->count].item = false;
		name->pieces[name->count++].end = own;
		while (own < end) {
			name->pieces[name->count].start = own;
			own += model_item(s + own);
			name->pieces[name->count].item = true;
			name->pieces[name->count++].end = own;
		}
		start = end + 1;
	} while (s[end]);
}

static bool model_has(const struct model *m, const char *text, size_t len)
{
	for (size_t i = 0; i < m->count; i++)
		if (strlen(m->names[i].text) == len && !memcmp(m->names[i].text, text, len))
			return true;
	return false;
}

/* The piece of a name that follows the first len bytes of text, if it begins with them, and they
 * end a piece; else -1. */
static int model_next(const struct model_name *name, const char *text, size_t len)
{
	for (size_t i = 0; i + 1 < name->count; i++)
		if (name->pieces[i].end == len && !memcmp(name->text, text, len))
			return (int)i + 1;
	return -1;
}

/* How many names have something below the text: by name, and by number. */
static size_t model_below(const struct model *m, const char *text, size_t len, bool item)
{
	size_t n = 0;

	for (size_t i = 0; i < m->count; i++) {
		int next = model_next(&m->names[i], text, len);

		n += next >= 0 && m->names[i].pieces[next].item == item;
	}
	return n;
}

static bool model_is_list(const struct model *m, const char *text, size_t len);

static bool model_is_one_thing(const struct model *m, const char *text, size_t len)
{
	bool keys = model_below(m, text, len, false) > 0;
	bool items = model_below(m, text, len, true) > 0;

	if (model_has(m, text, len))
		return !keys && !items;
	return keys ? !items : model_is_list(m, text, len);
}

/* Each number below the largest is there, and each item is one thing. */
static bool model_is_list(const struct model *m, const char *text, size_t len)
{
	long largest = -1;
	char item[700];

	if (model_below(m, text, len, false) > 0)
		return false;
	for (size_t i = 0; i < m->count; i++) {
		const struct model_name *name = &m->names[i];
		int next = model_next(name, text, len);
		long number =
			next < 0 ? -1 : strtol(name->text + name->pieces[next].start + 1, NULL, 10);

		if (number > largest)
			largest = number;
	}
	for (long i = 0; i <= largest && i < 100; i++) {
		size_t item_len =
			(size_t)snprintf(item, sizeof(item), "%.*s[%ld]", (int)len, text, i);

		if (!model_has(m, item, item_len) &&
			model_below(m, item, item_len, false) +
					model_below(m, item, item_len, true) ==
				0)
			return false;
		if (!model_is_one_thing(m, item, item_len))
			return false;
	}
	return largest >= 0 && largest < 100;
}

static const struct node *child_by_key(const struct node *map, const char *key, size_t len)
{
	CHECK(map && map->type == NODE_MAP);
	for (const struct node *n = map->first; n; n = n->next)
		if (n->key_len == len && !memcmp(n->key, key, len))
			return n;
	return NULL;
}

static const struct node *child_by_number(const struct node *list, long number)
{
	const struct node *n;

	CHECK(list && list->type == NODE_LIST);
	for (n = list->first; n && number > 0; number--)
		n = n->next;
	return n;
}

/* Where the rules say that the name is. */
static const struct node *model_find(
	const struct model *m, const struct model_name *name, const struct node *at)
{
	const char *s = name->text;
	size_t last = name->count - 1, start, end;

	for (size_t i = 0;; i++) {
		start = name->pieces[i].start;
		for (;; i++) { /* to the end of the key */
			end = name->pieces[i].end;
			if (i == last || model_has(m, s, end))
				return child_by_key(at, s + start, strlen(s + start));
			if (!name->pieces[i + 1].item || model_is_list(m, s, end))
				break;
		}
		at = child_by_key(at, s + start, end - start);
		for (; name->pieces[i + 1].item; i++) {
			at = child_by_number(
				at, strtol(s + name->pieces[i + 1].start + 1, NULL, 10));
			if (i + 1 == last)
				return at;
		}
	}
}

static void random_name(struct model *m)
{
	static const char *const segments[] = {"a", "b", "a", "c", "", "a[0]", "a[1]", "b[0]",
		"a[0][0]", "a[0][1]", "a[1][0]", "a[2]", "b[01]", "[0]", "[10]", "a[", "\xc3\xbc",
		"a-", "a[0]x"};
	struct model_name *name = &m->names[m->count];
	uint64_t pieces = 1 + random_below(4);
	size_t n = 0, first;

	if (random_below(30) == 0)
		pieces = UNFLATTEN_MAX_DEPTH - 4 + random_below(8);
	name->text[0] = '\0';
	first = random_below(6);
	for (uint64_t i = 0; i < pieces; i++) {
		/* long names share their beginning, short ones are of a few words */
		size_t which = pieces > 4 && i + 6 < pieces ? first
			       : random_below(2)            ? random_below(3)
							    : random_below(COUNT(segments));

		if (m->form == UNFLATTEN_PATHS && !segments[which][0])
			which = 0;
		n += (size_t)snprintf(name->text + n, sizeof(name->text) - n, "%s%s",
			i ? m->form == UNFLATTEN_PATHS ? "/" : "." : "", segments[which]);
	}
	if (n > 0 && !model_has(m, name->text, n)) {
		model_split(m, name);
		m->count++;
	}
}

static size_t count_scalars(const struct node *parent)
{
	size_t count = 0;

	for (const struct node *n = parent->first; n; n = n->next) {
		bool single = n->type != NODE_MAP && n->type != NODE_LIST;

		CHECK(single || n->count > 0);
		CHECK(!n->key || !n->next || strcmp(n->key, n->next->key) < 0);
		count += single ? 1 : count_scalars(n);
	}
	return count;
}

static void write_model(const struct model *m, bool backwards, struct buffer *out)
{
	struct unflatten *n = nest(m->form);
	char number[24];

	for (size_t i = 0; i < m->count; i++) {
		size_t k = backwards ? m->count - 1 - i : i;

		snprintf(number, sizeof(number), "%zu", k);
		CHECK(add(n, m->names[k].text, number) == 0);
		CHECK(add(n, m->names[k].text, number) == -EEXIST);
	}
	buffer_init(out, ROOM);
	CHECK(unflatten_count(n) == m->count);
	CHECK(unflatten_write(n, out) == 0);
	unflatten_free(n);
}

static void write__random_sets__each_name_is_where_the_rules_say(void **state)
{
	struct model *m = calloc(1, sizeof(*m));
	struct buffer out, again;
	struct document *d;

	(void)state;
	assert_non_null(m);
	model_random_start();
	for (; model_random.step < 5000; model_random.step++) {
		m->form = random_below(4) ? UNFLATTEN_PROPERTIES : UNFLATTEN_PATHS;
		m->count = 0;
		for (uint64_t n = random_below(MODEL_NAMES + 1); n > 0; n--)
			random_name(m);
		write_model(m, false, &out);
		write_model(m, true, &again);
		CHECK(strcmp(out.data, again.data) == 0);
		d = parsed(DOCUMENT_JSON, out.data);
		for (size_t i = 0; i < m->count; i++) {
			const struct node *at = model_find(m, &m->names[i], document_root(d));

			CHECK(at && at->type == NODE_INT && at->integer == (int64_t)i);
		}
		CHECK(count_scalars(document_root(d)) == m->count);
		document_free(d);
		buffer_fini(&out);
		buffer_fini(&again);
	}
	free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(write__paths__nests_at_each_slash),
		cmocka_unit_test(write__properties__nests_at_each_dot_and_makes_lists),
		cmocka_unit_test(write__a_tree__is_indented_and_ends_with_a_newline),
		cmocka_unit_test(write__a_deep_name__keeps_its_end_in_one_piece),
		cmocka_unit_test(add__the_same_name_again__keeps_the_first),
		cmocka_unit_test(add__a_name_that_cannot_be__is_refused_and_nothing_else_is),
		cmocka_unit_test(add__more_than_the_room__fails_for_good),
		cmocka_unit_test(add__more_names_than_a_document_holds__fails),
		cmocka_unit_test(write__random_sets__each_name_is_where_the_rules_say),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
