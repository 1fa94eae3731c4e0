/*
 * What a config remembers, in memory: verdicts, revs, pin, suspension, overrides, and how the
 * decisions of a newer state file are taken over. Its form on the disk: ledger_form.c.
 */
#include "version/ledger.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "version/ledger_entry.h"

#define FIELD(type, kind, member)                                                                  \
	{                                                                                          \
#member, kind, offsetof(struct type, member)                                       \
	}

const struct ledger_field ledger_verdict_fields[] = {
	FIELD(ledger_verdict, LEDGER_TEXT, sha256),
	{"judge", LEDGER_TEXT, offsetof(struct ledger_verdict, check)}, /* as 0.1.0 wrote them */
	{"judges", LEDGER_TEXT, offsetof(struct ledger_verdict, checks)},
	FIELD(ledger_verdict, LEDGER_TEXT, why),
	FIELD(ledger_verdict, LEDGER_TIME, at_ms),
	{NULL, LEDGER_TEXT, 0},
};
const struct ledger_field ledger_override_fields[] = {
	FIELD(ledger_override, LEDGER_TEXT, key),
	FIELD(ledger_override, LEDGER_TEXT, value),
	FIELD(ledger_override, LEDGER_TEXT, by),
	FIELD(ledger_override, LEDGER_TEXT, reason),
	FIELD(ledger_override, LEDGER_TIME, until_ms),
	{NULL, LEDGER_TEXT, 0},
};
const struct ledger_field ledger_pin_fields[] = {
	FIELD(ledger_pin, LEDGER_TEXT, by),
	FIELD(ledger_pin, LEDGER_TEXT, reason),
	FIELD(ledger_pin, LEDGER_LATER_TEXT, sha256),
	FIELD(ledger_pin, LEDGER_TIME, until_ms),
	{NULL, LEDGER_TEXT, 0},
};

static void remove_entry(
	void *list, unsigned *count, size_t size, size_t i, const struct ledger_field *fields)
{
	char *at = (char *)list + i * size;

	ledger_entry_fini(at, fields);
	memmove(at, at + size, (--*count - i) * size);
}

static void remove_verdict(struct ledger *l, size_t i)
{
	remove_entry(
		l->verdicts, &l->verdict_count, sizeof(*l->verdicts), i, ledger_verdict_fields);
}

static void remove_override(struct ledger *l, size_t i)
{
	remove_entry(
		l->overrides, &l->override_count, sizeof(*l->overrides), i, ledger_override_fields);
}

void ledger_free(struct ledger *l)
{
	if (!l)
		return;
	while (l->verdict_count)
		remove_verdict(l, l->verdict_count - 1);
	while (l->override_count)
		remove_override(l, l->override_count - 1);
	ledger_entry_fini(&l->pin, ledger_pin_fields);
	ledger_resume(l);
	free(l->verdicts);
	free(l->overrides);
	free(l->revs);
	free(l->others);
	free(l);
}

/* ---- revs ---- */

const uint64_t *ledger_revs(const struct ledger *l)
{
	static const uint64_t none[LEDGER_MAX_LAYERS];

	return l->revs ? l->revs : none;
}

int ledger_reserve_revs(struct ledger *l)
{
	if (!l->revs)
		l->revs = calloc(LEDGER_MAX_LAYERS, sizeof(*l->revs));
	return l->revs ? 0 : -ENOMEM;
}

bool ledger_forget_revs(struct ledger *l, const char *check)
{
	bool some = false;

	for (size_t i = 0; l->revs && i < LEDGER_MAX_LAYERS; i++) {
		some |= l->revs[i] != 0;
		l->revs[i] = 0;
	}
	return ledger_forgive_check(l, check) || some;
}

bool ledger_raise_revs(struct ledger *l, const uint64_t revs[LEDGER_MAX_LAYERS])
{
	bool some = false;

	for (size_t i = 0; i < LEDGER_MAX_LAYERS; i++)
		if (revs[i] > ledger_revs(l)[i]) {
			l->revs[i] = revs[i];
			some = true;
		}
	return some;
}

/* ---- verdicts ---- */

/* Takes it, in the place of one about the same bytes, or of the oldest; there is a list. */
static void put_verdict(struct ledger *l, const struct ledger_verdict *v)
{
	ledger_forgive(l, v->sha256);
	if (l->verdict_count == LEDGER_MAX_VERDICTS)
		remove_verdict(l, 0);
	l->verdicts[l->verdict_count++] = *v;
}

int ledger_reject(struct ledger *l, const char *sha256, const char *check, const char *checks,
	int64_t now_ms, const char *why)
{
	struct ledger_verdict v = {
		strdup(sha256), strdup(check), strdup(checks), strdup(why), now_ms};

	if (!l->verdicts)
		l->verdicts = calloc(LEDGER_MAX_VERDICTS, sizeof(v));
	if (!v.sha256 || !v.check || !v.checks || !v.why || !l->verdicts) {
		ledger_entry_fini(&v, ledger_verdict_fields);
		return -ENOMEM;
	}
	put_verdict(l, &v);
	return 0;
}

const struct ledger_verdict *ledger_find_verdict(
	const struct ledger *l, const char *sha256, const char *checks)
{
	for (size_t i = 0; i < l->verdict_count; i++) {
		const struct ledger_verdict *v = &l->verdicts[i];

		if (strcmp(v->sha256, sha256) == 0 &&
			(v->checks[0] == '\0' || strcmp(v->checks, checks) == 0))
			return v;
	}
	return NULL;
}

bool ledger_forgive(struct ledger *l, const char *sha256)
{
	bool found = false;

	for (size_t i = l->verdict_count; i-- > 0;)
		if (strcmp(l->verdicts[i].sha256, sha256) == 0) {
			remove_verdict(l, i);
			found = true;
		}
	return found;
}

bool ledger_forgive_later(struct ledger *l, const char *check, int64_t now_ms)
{
	bool found = false;

	for (size_t i = l->verdict_count; i-- > 0;)
		if (l->verdicts[i].at_ms > now_ms && strcmp(l->verdicts[i].check, check) == 0) {
			remove_verdict(l, i);
			found = true;
		}
	return found;
}

bool ledger_forgive_check(struct ledger *l, const char *check)
{
	return ledger_forgive_later(l, check, INT64_MIN);
}

/* ---- pin, suspension, overrides ---- */

static int set_pin(struct ledger_pin *pin, int64_t until_ms, const char *by, const char *reason,
	const char *sha256)
{
	struct ledger_pin new = {strdup(by), strdup(reason), strdup(sha256), until_ms};

	if (!new.by || !new.reason || !new.sha256) {
		ledger_entry_fini(&new, ledger_pin_fields);
		return -ENOMEM;
	}
	ledger_entry_fini(pin, ledger_pin_fields);
	*pin = new;
	return 0;
}

static bool end_pin(struct ledger_pin *pin)
{
	bool was = pin->by;

	ledger_entry_fini(pin, ledger_pin_fields);
	return was;
}

int ledger_pin(
	struct ledger *l, int64_t until_ms, const char *by, const char *reason, const char *sha256)
{
	return set_pin(&l->pin, until_ms, by, reason, sha256);
}

bool ledger_unpin(struct ledger *l)
{
	return end_pin(&l->pin);
}

int ledger_suspend(struct ledger *l, int64_t until_ms, const char *by, const char *reason)
{
	struct ledger_pin new = {NULL};
	int r = set_pin(&new, until_ms, by, reason, "");

	if (r)
		return r;
	if (!l->suspension)
		l->suspension = calloc(1, sizeof(*l->suspension));
	if (!l->suspension) {
		end_pin(&new);
		return -ENOMEM;
	}
	end_pin(l->suspension);
	*l->suspension = new;
	return 0;
}

bool ledger_resume(struct ledger *l)
{
	bool was = l->suspension && end_pin(l->suspension);

	free(l->suspension);
	l->suspension = NULL;
	return was;
}

int ledger_override(struct ledger *l, const char *key, const char *value, int64_t until_ms,
	const char *by, const char *reason)
{
	struct ledger_override o = {
		strdup(key), strdup(value), strdup(by), strdup(reason), until_ms};
	void *list;
	int r = -ENOMEM;

	ledger_drop_override(l, key);
	list = l->overrides;
	if (l->override_count == LEDGER_MAX_OVERRIDES)
		r = -ENOSPC;
	else if (o.key && o.value && o.by && o.reason &&
		 ledger_entry_append(&list, &l->override_count, LEDGER_MAX_OVERRIDES, sizeof(o)))
		r = 0;
	if (r) {
		ledger_entry_fini(&o, ledger_override_fields);
		return r;
	}
	l->overrides = list;
	l->overrides[l->override_count - 1] = o;
	return 0;
}

bool ledger_drop_override(struct ledger *l, const char *key)
{
	for (size_t i = 0; i < l->override_count; i++)
		if (strcmp(l->overrides[i].key, key) == 0) {
			remove_override(l, i);
			return true;
		}
	return false;
}

bool ledger_same_overrides(const struct ledger *a, const struct ledger *b)
{
	size_t n = a ? a->override_count : 0;

	if (n != (b ? b->override_count : 0))
		return false;
	for (size_t i = 0; i < n; i++)
		if (strcmp(a->overrides[i].key, b->overrides[i].key) != 0 ||
			strcmp(a->overrides[i].value, b->overrides[i].value) != 0)
			return false;
	return true;
}

bool ledger_expire(struct ledger *l, int64_t now_ms, bool *ret_overrides)
{
	bool some = false;

	*ret_overrides = false;
	for (size_t i = l->override_count; i-- > 0;)
		if (l->overrides[i].until_ms <= now_ms) {
			remove_override(l, i);
			*ret_overrides = some = true;
		}
	if (l->pin.by && l->pin.until_ms <= now_ms)
		some = ledger_unpin(l);
	if (l->suspension && l->suspension->until_ms <= now_ms)
		some = ledger_resume(l);
	return some;
}

int64_t ledger_next_expiry(const struct ledger *l)
{
	int64_t next_ms = l->pin.by ? l->pin.until_ms : LEDGER_FOREVER;

	if (l->suspension && l->suspension->until_ms < next_ms)
		next_ms = l->suspension->until_ms;
	for (size_t i = 0; i < l->override_count; i++)
		if (l->overrides[i].until_ms < next_ms)
			next_ms = l->overrides[i].until_ms;
	return next_ms;
}

/* ---- a state file that is newer ---- */

static void swap_overrides(struct ledger *a, struct ledger *b)
{
	struct ledger_override *overrides = a->overrides;
	unsigned count = a->override_count;

	a->overrides = b->overrides;
	a->override_count = b->override_count;
	b->overrides = overrides;
	b->override_count = count;
}

int ledger_copy_overrides(struct ledger *l, const struct ledger *from)
{
	struct ledger copy = {.override_count = 0};
	int r = 0;

	for (size_t i = 0; r == 0 && i < from->override_count; i++) {
		const struct ledger_override *o = &from->overrides[i];

		r = ledger_override(&copy, o->key, o->value, o->until_ms, o->by, o->reason);
	}
	if (r == 0)
		swap_overrides(l, &copy);
	while (copy.override_count)
		remove_override(&copy, copy.override_count - 1);
	free(copy.overrides);
	return r;
}

/* They leave `from`. */
static void move_verdicts(struct ledger *l, struct ledger *from)
{
	if (!l->verdicts) {
		l->verdicts = from->verdicts;
		l->verdict_count = from->verdict_count;
		from->verdicts = NULL;
	} else {
		for (size_t i = 0; i < from->verdict_count; i++)
			put_verdict(l, &from->verdicts[i]);
	}
	from->verdict_count = 0;
}

static bool move_revs(struct ledger *l, struct ledger *from)
{
	if (l->revs || !from->revs)
		return from->revs && ledger_raise_revs(l, from->revs);
	l->revs = from->revs;
	from->revs = NULL;
	return true;
}

static void move_pinned_bytes(struct ledger *l, struct ledger *from)
{
	free(l->pin.sha256);
	l->pin.sha256 = from->pin.sha256;
	from->pin.sha256 = NULL;
}

bool ledger_adopt_decisions(struct ledger *l, uint64_t generation, struct ledger *decided,
	const char *sha256, bool with_overrides)
{
	bool changed = l->override_count || decided->override_count || decided->verdict_count;

	if (generation <= l->generation)
		return false;
	if (with_overrides)
		swap_overrides(l, decided);
	changed |= ledger_forgive(l, sha256);
	move_verdicts(l, decided);
	if (l->pin.by && decided->pin.by) {
		move_pinned_bytes(l, decided);
		changed = true;
	}
	changed |= move_revs(l, decided);
	l->generation = generation;
	if (decided->proven != generation)
		return changed;
	l->proven = generation;
	return true;
}
