/*
 * What changed from one version to another, as readers saw it: with the overrides that each was
 * published with, and what those hide.
 *
 * Surprising: a version is composed twice where there are overrides, once without them: only so is
 * it known which change of the server an override hides.
 */
#include "config/inspect.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/core.h"
#include "document/diff.h"
#include "document/key_path.h"
#include "text/json_writer.h"
#include "text/sentence.h"

#define MAX_HIDDEN 1000 /* changes below an override that are looked at */

/* One of the two versions: as readers saw it, and as the servers gave it. */
struct side {
	struct candidate *effective, *server; /* the same one without overrides */
	struct ledger *overrides;             /* NULL: none */
};

static void side_fini(struct side *s)
{
	if (s->server != s->effective)
		candidate_free(s->server);
	candidate_free(s->effective);
	ledger_free(s->overrides);
}

/* Composes the version without its overrides, too. */
static int add_server_side(const struct config *c, struct side *s, char why[FILE_WHY])
{
	int r;

	s->server = s->effective;
	if (!s->overrides || !s->overrides->override_count)
		return 0;
	s->server = candidate_copy(s->effective);
	if (!s->server) {
		snprintf(why, FILE_WHY, "out of memory");
		return -ENOMEM;
	}
	r = candidate_compose(s->server, c->settings, NULL, NULL, why);
	return r == -EINVAL ? -EBADMSG : r;
}

static int load_side(struct config *c, uint64_t generation, struct side *s, char why[FILE_WHY])
{
	int r = validation_load_own(c, generation, &s->effective, &s->overrides, why);

	return r ? r : add_server_side(c, s, why);
}

/* ---- what is held back ---- */

/* What is rejected as it is no document has no keys either. */
static void say_not_compared(char why[FILE_WHY])
{
	char copy[FILE_WHY];

	snprintf(copy, sizeof(copy), "%s", why);
	snprintf(why, FILE_WHY, "the version that is held cannot be compared: %.*s", FILE_WHY - 64,
		copy);
}

/* With the overrides of now. */
static int load_held(const struct inspection *i, struct side *s, char why[FILE_WHY])
{
	struct config *c = i->config;
	int r;

	snprintf(why, FILE_WHY, "out of memory");
	s->overrides = decisions_copy_overrides(i->ledger);
	if (!s->overrides)
		return -ENOMEM;
	if (!i->held) {
		r = validation_load(c, i->held_generation, s->overrides, &s->effective, why);
		return r ? r : add_server_side(c, s, why);
	}
	s->effective = candidate_copy(i->held);
	if (!s->effective)
		return -ENOMEM;
	r = candidate_compose(s->effective, c->settings, s->overrides, NULL, why);
	if (r)
		say_not_compared(why);
	if (r == -EINVAL)
		return -EBADMSG;
	return r ? r : add_server_side(c, s, why);
}

/* ---- overrides ---- */

/* The path is that key, or in it. */
static bool is_below(const char *path, const char *key)
{
	size_t len = strlen(key);

	return strncmp(path, key, len) == 0 && (path[len] == '\0' || path[len] == '.');
}

/* The override that says what is at a path: the last one. */
static const struct ledger_override *find_override(const struct side *s, const char *path)
{
	for (size_t i = s->overrides ? s->overrides->override_count : 0; i-- > 0;)
		if (is_below(path, s->overrides->overrides[i].key) ||
			is_below(s->overrides->overrides[i].key, path))
			return &s->overrides->overrides[i];
	return NULL;
}

static void write_overrides(const struct side *s, struct buffer *out)
{
	if (!s->overrides || !s->overrides->override_count)
		return;
	json_writer_begin_array(out, "overrides");
	for (size_t i = 0; i < s->overrides->override_count; i++) {
		json_writer_begin_object(out, NULL);
		inspect_write_override(out, &s->overrides->overrides[i]);
		json_writer_end_object(out);
	}
	json_writer_end_array(out);
}

/* Of one side of a change: the override's key, and what the server says there. */
static void write_overridden(
	const struct side *s, const char *path, bool after, char *const *mask, struct buffer *out)
{
	const struct ledger_override *o = find_override(s, path);
	const struct node *n = o ? key_path_find(s->server->composition.root, path) : NULL;

	if (!o)
		return;
	json_writer_text(out, after ? "overridden_after" : "overridden_before", o->key);
	if (n)
		inspect_write_value(out, after ? "server_after" : "server_before", mask, path, n);
}

/* ---- the comparison ---- */

struct comparison {
	struct side from, to;
	char *const *mask;
	struct buffer *out;
};

static void write_change(const struct comparison *c, const struct diff_change *change)
{
	json_writer_begin_object(c->out, NULL);
	diff_write_members(change, c->mask, c->out);
	write_overridden(&c->from, change->path, false, c->mask, c->out);
	write_overridden(&c->to, change->path, true, c->mask, c->out);
	json_writer_end_object(c->out);
}

/* 0, or -errno with a sentence. */
static int compare(
	const struct node *before, const struct node *after, struct diff **ret, char why[FILE_WHY])
{
	int r = diff_new(before, after, ret);

	if (r)
		snprintf(why, FILE_WHY, "%s",
			r == -EMSGSIZE ? "the answer is too long" : strerror(-r));
	return r;
}

static int write_changes(const struct comparison *c, char why[FILE_WHY])
{
	struct buffer *out = c->out;
	struct diff *d;
	size_t i;
	int r = compare(
		c->from.effective->composition.root, c->to.effective->composition.root, &d, why);

	if (r)
		return r;
	json_writer_begin_array(out, "changes");
	for (i = 0; i < diff_count(d) && out->len < INSPECT_MAX_LISTED && !out->error; i++) {
		write_change(c, diff_at(d, i));
	}
	json_writer_end_array(out);
	if (i < diff_count(d))
		json_writer_number(out, "more", diff_count(d) - i);
	diff_free(d);
	return 0;
}

/* A change of the servers that readers do not see, as an override says the same before and after.
 */
static bool is_hidden(const struct comparison *c, const char *path)
{
	const struct node *was = key_path_find(c->from.effective->composition.root, path),
			  *is = key_path_find(c->to.effective->composition.root, path);

	return was && is ? node_equal(was, is) : was == is;
}

static int write_hidden(const struct comparison *c, char why[FILE_WHY])
{
	struct buffer *out = c->out;
	const struct ledger_override *o;
	unsigned looked_at = 0;
	struct diff *d;
	int r;

	if (c->to.server == c->to.effective)
		return 0;
	r = compare(c->from.server->composition.root, c->to.server->composition.root, &d, why);
	if (r)
		return r;
	json_writer_begin_array(out, "hidden");
	for (size_t i = 0; i < diff_count(d) && out->len < INSPECT_MAX_LISTED && !out->error; i++) {
		o = find_override(&c->to, diff_at(d, i)->path);
		if (!o || looked_at++ >= MAX_HIDDEN || !is_hidden(c, diff_at(d, i)->path))
			continue;
		json_writer_begin_object(out, NULL);
		diff_write_members(diff_at(d, i), c->mask, out);
		json_writer_text(out, "override", o->key);
		json_writer_end_object(out);
	}
	json_writer_end_array(out);
	diff_free(d);
	return 0;
}

static void write_side(
	const struct comparison *c, const char *name, const struct side *s, uint64_t generation)
{
	struct version shown = s->effective->version;

	shown.generation = generation;
	json_writer_begin_object(c->out, name);
	inspect_write_facts(c->out, &shown);
	write_overrides(s, c->out);
	json_writer_end_object(c->out);
}

static void write_held_reason(
	const struct inspection *i, enum audience audience, struct buffer *out)
{
	json_writer_begin_object(out, "held");
	json_writer_text(out, "by", i->held_by);
	sentence_member(out, "why", i->held_why, audience);
	json_writer_end_object(out);
}

/* 0, or -errno with a sentence. */
static int write_comparison(
	const struct inspection *i, const struct comparison *c, bool values, char why[FILE_WHY])
{
	const struct version *before = &c->from.effective->version,
			     *after = &c->to.effective->version;
	bool held = i->held || i->held_generation;
	int r = 0;

	json_writer_begin_object(c->out, NULL);
	json_writer_text(c->out, "name", i->config->settings->name);
	write_side(c, "from", &c->from, before->generation);
	write_side(c, "to", &c->to, held ? i->held_generation : after->generation);
	if (held)
		write_held_reason(i, values ? AUDIENCE_OPERATOR : AUDIENCE_READER, c->out);
	json_writer_boolean(c->out, "equal", version_same(before, after));
	json_writer_boolean(c->out, "values", values);
	if (c->from.effective->composition.root && c->to.effective->composition.root) {
		r = write_changes(c, why);
		if (r == 0)
			r = write_hidden(c, why);
	} else {
		json_writer_text(c->out, "changes", NULL);
	}
	json_writer_end_object(c->out);
	return r;
}

static int find_generation_before(
	struct config *c, uint64_t to, uint64_t *ret_generation, char why[FILE_WHY])
{
	uint64_t generations[STORE_MAX_KEEP];
	size_t count = store_list(c->current.store, generations);

	for (size_t i = 0; i < count; i++)
		if (generations[i] < to) {
			*ret_generation = generations[i];
			return 0;
		}
	snprintf(why, FILE_WHY,
		"generation %llu is the oldest in the state directory: there is nothing to compare "
		"it with",
		(unsigned long long)to);
	return -ENOENT;
}

int inspect_diff(const struct inspection *i, uint64_t from, uint64_t to, bool values,
	struct buffer *out, char why[FILE_WHY])
{
	bool held = i->held || i->held_generation;
	struct config *config = i->config;
	struct comparison c = {.mask = inspect_mask(config, values), .out = out};
	int r = inspect_check_published(i, why);

	if (r == 0 && to == 0)
		to = i->published.generation;
	if (r == 0 && from == 0 && held)
		from = i->published.generation;
	else if (r == 0 && from == 0)
		r = find_generation_before(config, to, &from, why);
	if (r == 0)
		r = load_side(config, from, &c.from, why);
	if (r == 0)
		r = held ? load_held(i, &c.to, why) : load_side(config, to, &c.to, why);
	if (r == 0)
		r = write_comparison(i, &c, values, why);
	side_fini(&c.from);
	side_fini(&c.to);
	return r ? r : inspect_check_room(out, why);
}
