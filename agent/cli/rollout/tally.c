/* Counting. Surprising: a host that runs the version and fails (its reload did, or its pulls) does
 * not count as one that runs it: a wave waits for it. */
#include "cli/rollout/tally.h"

#include <errno.h>
#include <string.h>

const char *tally_stand_name(enum tally_stand stand)
{
	static const char *const names[TALLY_STANDS] = {
		[TALLY_RUNS] = "runs",
		[TALLY_REJECTED] = "rejected",
		[TALLY_HELD] = "held",
		[TALLY_UNDECIDED] = "undecided",
		[TALLY_TROUBLED] = "troubled",
		[TALLY_EXCUSED] = "excused",
	};

	return names[stand];
}

static bool is_held_by_rollout(const struct receipt_config *c)
{
	return c->state == RECEIPT_HELD && strncmp(c->why, "operator", strlen("operator")) != 0;
}

enum tally_stand tally_stand_of(const struct roster_row *row, const char *version)
{
	const struct receipt_config *c = row->runs;
	bool runs = version[0] && !row->silent && receipt_runs(c, version);

	if (row->silent)
		return TALLY_TROUBLED;
	switch (c->state) {
	case RECEIPT_OK:
		return runs ? TALLY_RUNS : TALLY_UNDECIDED;
	case RECEIPT_PINNED:
	case RECEIPT_SUSPENDED:
		return runs ? TALLY_RUNS : TALLY_EXCUSED;
	case RECEIPT_HELD:
		return is_held_by_rollout(c) ? TALLY_HELD : TALLY_EXCUSED;
	case RECEIPT_REJECTED:
		return strcmp(c->rejected, version) == 0 ? TALLY_REJECTED : TALLY_UNDECIDED;
	case RECEIPT_APPLYING:
		return TALLY_UNDECIDED;
	case RECEIPT_FAILING:
	case RECEIPT_STALE:
	case RECEIPT_WAITING:
	case RECEIPT_OTHER:
	case RECEIPT_STATES:
		break;
	}
	return TALLY_TROUBLED;
}

/* ---- waves ---- */

static bool has_plan_labels(const struct plan *p, const struct receipt *receipt)
{
	for (size_t i = 0; i < p->label_count; i++) {
		bool found = false;

		for (size_t k = 0; !found && k < receipt->label_count; k++)
			found = strcmp(receipt->labels[k].name, p->labels[i].name) == 0 &&
				strcmp(receipt->labels[k].value, p->labels[i].value) == 0;
		if (!found)
			return false;
	}
	return true;
}

/* The index of the wave that brings it to a host; wave_count = none does. */
static int find_wave(
	const struct plan *p, const char *config, const struct roster_row *row, size_t *ret)
{
	double place;
	int r = rollout_place(p->salt ? p->salt : config, row->host, &place);

	*ret = p->wave_count;
	if (r || !has_plan_labels(p, row->receipt))
		return r;
	for (size_t i = p->wave_count; i > 0; i--)
		if (p->waves[i - 1] == PLAN_WHOLE || place < p->waves[i - 1] / 1000.0)
			*ret = i - 1;
	return 0;
}

/* Of a document without a plan: 0 = the host takes a new version now, 1 = it does not. */
static int find_now(const struct plan *p, const char *config, const struct roster_row *row,
	int64_t wall_ms, size_t *ret)
{
	const struct rollout_host host = {
		row->host, row->receipt->labels, row->receipt->label_count, wall_ms};
	const struct node *about = node_find(document_root(p->document), "version");
	char why[FILE_WHY];
	bool takes = true;
	int r = 0;

	if (p->document)
		r = rollout_decide(document_root(p->document), &host, config,
			about ? about->text : "", "", &takes, why);
	*ret = takes ? 0 : 1;
	return r;
}

static void count_host(struct tally_wave *w, enum tally_stand stand)
{
	w->hosts++;
	w->stands[stand]++;
}

static void name_open_host(struct tally *t, const struct roster_row *row, enum tally_stand stand)
{
	size_t n = t->begun.stands[stand];

	if (n < TALLY_NAMED)
		t->named[stand][n] = row;
	count_host(&t->begun, stand);
}

int tally_count(const struct plan *p, const char *config, const struct roster_row *rows,
	size_t count, int64_t wall_ms, struct tally *ret)
{
	bool by_hand = p->state == PLAN_NONE;
	size_t waves = by_hand ? 1 : p->wave_count, wave = 0;
	int r = 0;

	*ret = (struct tally){.begun = {.hosts = 0}};
	for (size_t i = 0; r == 0 && i < count; i++) {
		enum tally_stand stand = tally_stand_of(&rows[i], p->version);

		r = by_hand ? find_now(p, config, &rows[i], wall_ms, &wave)
			    : find_wave(p, config, &rows[i], &wave);
		count_host(wave < waves ? &ret->waves[wave] : &ret->outside, stand);
		if (wave < (by_hand ? 1 : p->wave))
			name_open_host(ret, &rows[i], stand);
	}
	return r;
}

bool tally_knows(const struct roster_row *rows, size_t count, const char *version)
{
	for (size_t i = 0; i < count; i++)
		if (!rows[i].silent && (receipt_runs(rows[i].runs, version) ||
					       strcmp(rows[i].runs->rejected, version) == 0))
			return true;
	return false;
}

int tally_least(const struct plan *p, const char *config, const struct roster_row *rows,
	size_t count, uint32_t *ret_percent)
{
	double place, least = 101;
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++) {
		if (rows[i].silent || !has_plan_labels(p, rows[i].receipt))
			continue;
		r = rollout_place(p->salt ? p->salt : config, rows[i].host, &place);
		least = r == 0 && place < least ? place : least;
	}
	*ret_percent = least > 100 ? 0 : (uint32_t)(least * 1000) + 1;
	return r;
}

/* What a host has for a version: the digest of what it runs, or of what it rejected or holds. */
static const char *digest_of_host(const struct receipt_config *c, const char *version)
{
	if (receipt_runs(c, version))
		return c->digest;
	return strcmp(c->rejected, version) == 0 ? c->rejected_digest : "";
}

const char *tally_digest(const struct roster_row *rows, size_t count, const char *version)
{
	const char *found = NULL, *digest;

	for (size_t i = 0; version[0] && i < count; i++) {
		digest = rows[i].silent ? "" : digest_of_host(rows[i].runs, version);
		if (digest[0] && found && strcmp(found, digest) != 0)
			return "";
		if (digest[0])
			found = digest;
	}
	for (size_t i = 0; found && i < count; i++)
		if (strcmp(rows[i].runs->digest, found) == 0 &&
			!receipt_runs(rows[i].runs, version))
			return "";
	return found;
}

static bool was_aborted(const struct plan *p, const struct receipt_config *c)
{
	for (size_t i = 0; i < p->aborted_count; i++)
		if (strcmp(p->aborted[i], c->rejected) == 0 ||
			strcmp(p->aborted[i], c->rejected_digest) == 0)
			return true;
	return false;
}

int tally_held_version(
	const struct plan *p, const struct roster_row *rows, size_t count, const char **ret)
{
	int found = 0;

	for (size_t i = 0; found < 2 && i < count; i++) {
		const struct receipt_config *c = rows[i].runs;

		if (rows[i].silent || !is_held_by_rollout(c) || !c->rejected[0] ||
			was_aborted(p, c))
			continue;
		if (!found)
			*ret = c->rejected;
		found = found && strcmp(*ret, c->rejected) != 0 ? 2 : 1;
	}
	return found;
}
