/*
 * Tables of keys against mappings. Surprising: nothing stops at the first error. Each invalid value
 * is reported and left out, and only the count at the end decides whether there are settings.
 */
#include "settings/walk.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "document/slip.h"
#include "settings/guess.h"
#include "settings/form.h"
#include "settings/value.h"

/* ---- errors ---- */

struct place walk_place(const struct loader *l, const struct node *n)
{
	return (struct place){l->file, n->line, n->column};
}

struct place walk_key_place(const struct loader *l, const struct node *n)
{
	return n->key_line ? (struct place){l->file, n->key_line, n->key_column} : walk_place(l, n);
}

/* "; ${NAME} stands there", where the value's text in the file begins with a reference; or "". */
static void write_variable(const struct loader *l, const struct node *n, char text[80])
{
	size_t at = l->text ? slip_offset(l->text, l->text_len, n->line, n->column) : 0, end;

	text[0] = '\0';
	if (!l->text || at >= l->text_len)
		return;
	at += l->text[at] == '"';
	if (l->text_len - at < 2 || strncmp(l->text + at, "${", 2) != 0)
		return;
	for (end = at; end < l->text_len && end < at + 60 && l->text[end] != '}';)
		end++;
	if (end < l->text_len && l->text[end] == '}')
		snprintf(text, 80, "; %.*s stands there", (int)(end + 1 - at), l->text + at);
}

void walk_complain(struct loader *l, const struct node *n, const struct key *k, const char *why)
{
	bool is_path = k->check == settings_check_url_path; /* whose query may be a secret */
	struct place place = walk_place(l, n);
	const char *guess = guess_value(l, n, 1u << NODE_STRING, &place);
	const char *mark = *guess ? ": " : "";
	char shown[SETTINGS_SHOWN], variable[80];

	write_variable(l, n, variable);
	if (k->hidden || !n->text)
		loader_complain(l, place, "%s %s%s%s%s", k->name, why, mark, guess, variable);
	else
		loader_complain(l, place, "%s: %s %s%s%s%s", k->name,
			settings_shown(is_path ? LOG_URL(n->text) : n->text, shown), why, mark,
			guess, variable);
}

bool walk_expect(struct loader *l, const struct node *n, const char *name, unsigned types,
	const char *wanted)
{
	static const char *const is[] = {
		[NODE_NULL] = "empty",
		[NODE_BOOL] = "true or false",
		[NODE_INT] = "a number",
		[NODE_DOUBLE] = "a number with a fraction",
		[NODE_STRING] = "a text",
		[NODE_LIST] = "a list",
		[NODE_MAP] = "a mapping",
	};
	/* an item that is a mapping: {path} without quotes, or a colon in a text */
	bool quotes =
		types == 1u << NODE_STRING && ((n->type >= NODE_BOOL && n->type < NODE_STRING) ||
						      (n->type == NODE_MAP && !n->key));

	struct place place = walk_place(l, n);
	const char *guess;

	if (types & 1u << n->type)
		return true;
	guess = quotes ? "put it in quotes" : guess_value(l, n, types, &place);
	loader_complain(l, place, "%s must be %s, but it is %s%s%s", name, wanted, is[n->type],
		*guess ? ": " : "", guess);
	return false;
}

/* ---- one value ---- */

static void store_value(void *object, const struct key *k, uint64_t value)
{
	void *member = (char *)object + k->offset;

	switch (k->size) {
	case sizeof(bool):
		*(bool *)member = value != 0;
		break;
	case sizeof(unsigned): /* and the enums */
		*(unsigned *)member = (unsigned)value;
		break;
	case sizeof(uint64_t):
		*(uint64_t *)member = value;
		break;
	}
}

void walk_set_text(struct loader *l, const struct node *n, const struct key *k, void *object)
{
	char **member = (char **)(void *)((char *)object + k->offset);
	const char *why;

	if (!walk_expect(l, n, k->name, 1u << NODE_STRING, "a text"))
		return;
	why = k->check(n->text);
	if (why)
		walk_complain(l, n, k, why);
	else if ((*member = loader_copy(l, n->text)))
		look_at(l, n, k->name, k->look, k->hidden, n->text);
}

void walk_set_duration(struct loader *l, const struct node *n, const struct key *k, void *object)
{
	char low[24], high[24];
	uint64_t ms;

	if (!walk_expect(
		    l, n, k->name, 1u << NODE_STRING | 1u << NODE_INT, "a duration such as 30s"))
		return;
	if (n->type == NODE_INT || (*n->text && !n->text[strspn(n->text, "0123456789")]))
		walk_complain(
			l, n, k, "has no unit: write it with ms, s, m, h or d behind the number");
	else if (settings_parse_duration(n->text, &ms))
		walk_complain(l, n, k,
			"is not a duration: write a whole number and a unit, such as 500ms, 10s, "
			"5m, 1h or 2d, or several, the greatest first: 1h30m");
	else if (ms < k->min || ms > k->max)
		loader_complain(l, walk_place(l, n), "%s must be between %s and %s", k->name,
			settings_duration_text(k->min, low), settings_duration_text(k->max, high));
	else
		store_value(object, k, ms);
}

void walk_set_size(struct loader *l, const struct node *n, const struct key *k, void *object)
{
	char low[24], high[24];
	uint64_t bytes;

	if (!walk_expect(l, n, k->name, 1u << NODE_STRING | 1u << NODE_INT, "a size such as 8MiB"))
		return;
	if (settings_parse_size(n->text, &bytes))
		walk_complain(l, n, k,
			"is not a size: write a whole number and a unit, such as 64KiB, 8MiB or "
			"1GiB");
	else if (bytes < k->min || bytes > k->max)
		loader_complain(l, walk_place(l, n), "%s must be between %s and %s", k->name,
			settings_size_text(k->min, low), settings_size_text(k->max, high));
	else
		store_value(object, k, bytes);
}

void walk_set_percent(struct loader *l, const struct node *n, const struct key *k, void *object)
{
	unsigned percent;
	const char *why;

	if (!walk_expect(
		    l, n, k->name, 1u << NODE_STRING | 1u << NODE_INT, "a percentage such as 10%"))
		return;
	why = settings_parse_percent(n->text, &percent);
	if (why)
		walk_complain(l, n, k, why);
	else if (percent < k->min || percent > k->max)
		loader_complain(l, walk_place(l, n), "%s must be between %u%% and %u%%", k->name,
			(unsigned)k->min, (unsigned)k->max);
	else
		store_value(object, k, percent);
}

void walk_set_number(struct loader *l, const struct node *n, const struct key *k, void *object)
{
	if (!walk_expect(l, n, k->name, 1u << NODE_INT, "a whole number"))
		return;
	if (n->integer < (int64_t)k->min || n->integer > (int64_t)k->max)
		loader_complain(l, walk_place(l, n), "%s must be between %u and %u", k->name,
			(unsigned)k->min, (unsigned)k->max);
	else
		store_value(object, k, (uint64_t)n->integer);
}

void walk_set_choice(struct loader *l, const struct node *n, const struct key *k, void *object)
{
	char wanted[128] = "one of";
	const struct choice *c = k->choices;

	for (; n->text && c->name;
		c++) /* a plain 1.2 is a number in YAML: what counts is how it was written */
		if (!strcmp(c->name, n->text))
			break;
	if (n->text && c->name) {
		store_value(object, k, c->value);
		return;
	}
	for (c = k->choices; c->name; c++) {
		size_t len = strlen(wanted);

		snprintf(wanted + len, sizeof(wanted) - len, "%s %s", c == k->choices ? "" : ",",
			c->name);
	}
	loader_complain(l, walk_place(l, n), "%s must be %s", k->name, wanted);
}

void walk_set_mode(struct loader *l, const struct node *n, const struct key *k, void *object)
{
	mode_t mode;
	const char *why;

	/* a plain 0640 is the number 640 in YAML 1.2: what counts is how it was written */
	if (!walk_expect(
		    l, n, k->name, 1u << NODE_STRING | 1u << NODE_INT, "a file mode like \"0640\""))
		return;
	why = settings_parse_mode(n->text, &mode);
	if (why)
		walk_complain(l, n, k, why);
	else
		store_value(object, k, mode);
}

void walk_set_bool(struct loader *l, const struct node *n, const struct key *k, void *object)
{
	/* what counts is how it was written: quotes do no harm */
	bool is_true = n->text && !strcmp(n->text, "true"),
	     is_false = n->text && !strcmp(n->text, "false");
	const char *guess = n->text ? guess_boolean(n->text) : NULL;

	if (n->type == NODE_BOOL || is_true || is_false)
		store_value(object, k, n->type == NODE_BOOL ? n->boolean : is_true);
	else
		loader_complain(l, walk_place(l, n), "%s must be true or false%s%s", k->name,
			guess ? ": write " : "", guess ? guess : "");
}

/* ---- several texts ---- */

void walk_free_texts(char **texts)
{
	for (char **t = texts; t && *t; t++)
		free(*t);
	free(texts);
}

static void add_list_text(struct loader *l, const struct node *n, const struct key *k, char **texts)
{
	char name[64];
	const char *why;

	snprintf(name, sizeof(name), "%s%s", k->max == 1 ? "" : "each of ", k->name);
	if (!walk_expect(l, n, name, 1u << NODE_STRING, "a text"))
		return;
	why = k->check(n->text);
	if (why) {
		walk_complain(l, n, k, why);
		return;
	}
	while (*texts)
		texts++;
	*texts = loader_copy(l, n->text);
}

void walk_set_texts(struct loader *l, const struct node *n, const struct key *k, void *object)
{
	char ***member = (char ***)(void *)((char *)object + k->offset);
	bool one = k->max == 1;

	if (!one && !walk_expect(l, n, k->name, 1u << NODE_LIST, "a list of texts"))
		return;
	if (!one && (n->count == 0 || n->count > k->max)) {
		loader_complain(l, walk_place(l, n), "%s must have 1 to %u items, but it has %zu",
			k->name, (unsigned)k->max, n->count);
		return;
	}
	walk_free_texts(*member);
	*member = calloc(one ? 2 : n->count + 1, sizeof(**member));
	l->no_memory |= !*member;
	for (const struct node *item = one ? n : n->first; item && *member;
		item = one ? NULL : item->next)
		add_list_text(l, item, k, *member);
}

void walk_set_argv(struct loader *l, const struct node *n, const struct key *k, void *object)
{
	const struct node *program = n->type == NODE_LIST ? n->first : NULL;
	const char *why;

	walk_set_texts(l, n, k, object);
	if (!program || program->type != NODE_STRING)
		return;
	why = settings_check_path(program->text);
	if (why)
		walk_complain(l, program, k, why);
	else
		look_at_program(l, program, k->name, program->text);
}

/* ---- mappings ---- */

const struct key *walk_find_key(const struct mapping *m, const char *name)
{
	for (size_t i = 0; i < m->count; i++)
		if (!strcmp(m->keys[i].name, name))
			return &m->keys[i];
	return NULL;
}

/* The row whose name is spelled most like the word, with at most so many other letters. */
static const struct key *nearest_key(const struct mapping *m, const char *word, size_t most)
{
	const struct key *best = NULL;
	unsigned least = UINT_MAX;

	for (size_t i = 0; i < m->count; i++) {
		size_t a = strlen(word), b = strlen(m->keys[i].name);
		size_t limit = (a > b ? a : b) / 3;
		unsigned d = settings_distance(word, m->keys[i].name);

		if (d <= limit && d <= most && d < least) {
			least = d;
			best = &m->keys[i];
		}
	}
	return best;
}

/* Where the key belongs: below the section, or out of a mapping in it. */
static const char *say_move(const struct section *s, const char *where, char text[128])
{
	bool within = walk_find_key(s->keys, where) != NULL;

	snprintf(text, 128, "%s %s", within ? "out of" : "below", within ? where : s->below);
	return text;
}

/* True when the key, or one that is nearly spelled so, belongs into another mapping. */
static bool complain_of_section(struct loader *l, const struct node *n, const char *where)
{
	char shown[SETTINGS_SHOWN], move[128];
	const struct key *k;

	settings_shown(n->key, shown);
	for (unsigned near = 0; near < 2; near++)
		for (const struct section *s = l->sections; s && s->name; s++) {
			k = near ? nearest_key(s->keys, n->key, 1) : walk_find_key(s->keys, n->key);
			if (!k)
				continue;
			if (near)
				loader_complain(l, walk_key_place(l, n),
					"unknown key %s in %s: did you mean %s, a key of %s? Move "
					"it %s",
					shown, where, k->name, s->name, say_move(s, where, move));
			else
				loader_complain(l, walk_key_place(l, n),
					"unknown key %s in %s: it is a key of %s: move it %s",
					shown, where, s->name, say_move(s, where, move));
			return true;
		}
	return false;
}

static void complain_unknown(
	struct loader *l, const struct node *n, const struct mapping *m, const char *where)
{
	const struct key *k = nearest_key(m, n->key, SIZE_MAX);
	struct place place = walk_key_place(l, n);
	char shown[SETTINGS_SHOWN], known[512] = "";
	const char *guess;

	if (!k && strcmp(n->key, "interval") == 0) /* of pulls; a probe's is another word */
		k = walk_find_key(m, "every");
	if (k) {
		loader_complain(l, walk_key_place(l, n),
			"unknown key %s in %s: did you mean \"%s\"?", settings_shown(n->key, shown),
			where, k->name);
		return;
	}
	guess = guess_key(l, n, &place);
	if (guess) {
		loader_complain(l, place, "unknown key %s in %s: %s", settings_shown(n->key, shown),
			where, guess);
		return;
	}
	if (complain_of_section(l, n, where))
		return;
	for (size_t i = 0; i < m->count; i++) {
		size_t len = strlen(known);

		snprintf(known + len, sizeof(known) - len, "%s%s", i ? ", " : "", m->keys[i].name);
	}
	loader_complain(l, walk_key_place(l, n), "unknown key %s in %s: the keys there are %s",
		settings_shown(n->key, shown), where, known);
}

void walk_mapping(struct loader *l, const struct node *map, const struct mapping *m,
	const char *where, struct place *seen, void *object)
{
	struct place own[LOADER_MAX_KEYS] = {{0}}, *s;
	const struct key *k;

	assert(m->count <= LOADER_MAX_KEYS);
	seen = seen ? seen : own;
	for (const struct node *n = map->first; n; n = n->next) {
		k = walk_find_key(m, n->key);
		if (!k) {
			complain_unknown(l, n, m, where);
			continue;
		}
		s = &seen[k - m->keys];
		if (s->file && (!k->merges || s->file == l->file)) {
			loader_complain(l, walk_key_place(l, n),
				"%s is set twice: first at %s:%u:%u", k->name, s->file, s->line,
				s->column);
			if (!k->merges)
				continue;
		} else {
			*s = walk_key_place(l, n);
		}
		k->set(l, n, k, object);
	}
	for (size_t i = 0; i < m->count; i++)
		if (m->keys[i].required && !seen[i].file)
			loader_complain(l, walk_key_place(l, map), "%s has no %s, which it needs",
				where, m->keys[i].name);
}

void walk_set_mapping(struct loader *l, const struct node *n, const struct key *k, void *object)
{
	if (k->wanted ? walk_expect(l, n, k->name, 1u << NODE_MAP, k->wanted)
		      : walk_expect_map(l, n, k->name))
		walk_mapping(l, n, k->mapping, k->name, NULL, object);
}

void walk_free(const struct mapping *m, void *object)
{
	for (const struct key *k = m->keys; k < m->keys + m->count; k++) {
		void *member = (char *)object + k->offset;

		if (k->set == walk_set_text) {
			free(*(char **)member);
			*(char **)member = NULL;
		} else if (k->set == walk_set_texts || k->set == walk_set_argv) {
			walk_free_texts(*(char ***)member);
			*(char ***)member = NULL; /* two rows may fill one member */
		} else if (k->mapping) {
			walk_free(k->mapping, object);
		}
	}
}

bool walk_expect_map(struct loader *l, const struct node *n, const char *name)
{
	return walk_expect(l, n, name, 1u << NODE_MAP | 1u << NODE_NULL, "a mapping");
}

bool walk_has_room(
	struct loader *l, const struct node *n, size_t count, size_t max, const char *what)
{
	if (count >= max)
		loader_complain(l, walk_key_place(l, n), "too many %s: at most %zu", what, max);
	return count < max;
}
