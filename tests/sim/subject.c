/*
 * What readers see, and whether they may. Surprising: a text is only looked at when the disk said
 * that something changed, or after the process ended; that is often enough, because nothing else
 * changes it, and what is between two system calls is seen where the process ends there.
 */
#include "tests/sim/subject.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/pullet.h"
#include "tests/sim/disk.h"
#include "tests/sim/world.h"

#define SETTLED_US 1000000u

char subject_flaw[256];

void subject_report_flaw(const char *format, ...)
{
	char text[200];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	world_trace("FLAW %s", text);
	if (!subject_flaw[0])
		snprintf(subject_flaw, sizeof(subject_flaw), "at %.3f s: %s",
			(double)world.now_us / 1e6, text);
}

/* ---- texts ---- */

struct tally { /* of one document in a text */
	uint64_t number;
	unsigned lines;
	bool mixed;
};

static size_t find_layer(const struct subject *s, unsigned id)
{
	size_t i = 0;

	while (i < s->layer_count && s->layers[i]->id != id)
		i++;
	return i;
}

/* Reads the number behind a key: what is between them is up to the format. */
static const char *read_number(const char *at, const char *end, uint64_t *ret)
{
	while (at < end && *at != '\n' && !isdigit((unsigned char)*at))
		at++;
	*ret = 0;
	while (at < end && isdigit((unsigned char)*at))
		*ret = *ret * 10 + (uint64_t)(*at++ - '0');
	return at;
}

/* Reads "d3_7" at a word's beginning. */
static bool read_key(const char *at, const char *end, unsigned *ret_id, const char **ret_end)
{
	char *after;

	if (at + 3 >= end || (*at != 'd' && *at != 'D') || !isdigit((unsigned char)at[1]))
		return false;
	*ret_id = (unsigned)strtoul(at + 1, &after, 10);
	if (after >= end || *after != '_')
		return false;
	for (after++; after < end && isdigit((unsigned char)*after);)
		after++;
	*ret_end = after;
	return true;
}

/* Counts the lines of each layer. False: it holds a line of another config. */
static bool count_lines(const struct subject *s, const char *text, size_t len,
	struct tally tallies[SUBJECT_MAX_LAYERS])
{
	const char *at = text, *end = text + len;
	uint64_t number;
	unsigned id;

	while (at < end) {
		bool begins = at == text || !isalnum((unsigned char)at[-1]);
		size_t layer;

		if (!begins || !read_key(at, end, &id, &at)) {
			at++;
			continue;
		}
		at = read_number(at, end, &number);
		layer = find_layer(s, id);
		if (layer == s->layer_count)
			return false;
		tallies[layer].mixed |= tallies[layer].lines && tallies[layer].number != number;
		tallies[layer].number = number;
		tallies[layer].lines++;
	}
	return true;
}

static const struct site_version *find_version(const struct site_document *d, uint64_t number)
{
	return number && number <= d->count ? &d->versions[number - 1] : NULL;
}

/* The guard compares with what was there: a small version after a small one is no loss. What is
 * rolled back to was good once. */
static bool guard_rejects(const struct subject *s, size_t i, const struct site_version *v)
{
	const struct site_version *last = find_version(s->layers[i], s->last.numbers[i]);

	return v->quality == SITE_SHRUNK && s->guarded && s->layer_count == 1 && !s->forced &&
	       s->last.there && v->number > s->last.numbers[i] &&
	       !(last && last->quality == SITE_SHRUNK);
}

/* One layer is whole, and may be seen. */
static void check_layer(const struct subject *s, size_t i, const struct tally *t)
{
	const struct site_document *d = s->layers[i];
	const struct site_version *v = find_version(d, t->number);
	unsigned lines = v && v->quality == SITE_SHRUNK ? 1 : d->lines;

	if (t->mixed)
		subject_report_flaw("P1 %s: %s is a mixture", s->name, d->path);
	else if (!v)
		subject_report_flaw("P1 %s: %s has no version %llu", s->name, d->path,
			(unsigned long long)t->number);
	else if (t->lines != lines)
		subject_report_flaw(
			"P1 %s: %s is torn: %u lines of %u", s->name, d->path, t->lines, lines);
	else if ((v->quality == SITE_BROKEN && s->features.type != TYPE_BYTES) ||
		 (v->quality == SITE_HARMFUL && (s->checked || s->features.schema)) ||
		 guard_rejects(s, i, v))
		subject_report_flaw("P1 %s: %s version %llu was rejected, and is visible", s->name,
			d->path, (unsigned long long)t->number);
}

/* Fills in what the text shows. */
static void look_at_text(const struct subject *s, const char *text, size_t len, struct sight *ret)
{
	struct tally tallies[SUBJECT_MAX_LAYERS] = {0};

	ret->there = true;
	if (s->features.type == TYPE_BYTES && memmem(text, len, "<html>", 6)) {
		*ret = s->last; /* a proxy's page is bytes as well */
		ret->there = true;
		return;
	}
	if (!count_lines(s, text, len, tallies)) {
		subject_report_flaw("P1 %s: it shows another config's document", s->name);
		return;
	}
	for (size_t i = 0; i < s->layer_count; i++) {
		if (tallies[i].lines)
			check_layer(s, i, &tallies[i]);
		else if (!s->layers[i]->may_be_absent)
			subject_report_flaw("P1 %s: %s is missing", s->name, s->layers[i]->path);
		ret->numbers[i] = tallies[i].number;
	}
}

/* ---- P4: it is in the state directory ---- */

struct search {
	const struct subject *subject;
	const struct sight *sight;
	char dir[64];
	bool found;
};

static int look_into_state(void *arg, const char *name, mode_t mode)
{
	struct search *q = arg;
	char path[128], line[48];
	const char *data;
	size_t len;

	(void)mode;
	if (!isdigit((unsigned char)name[0]))
		return 0;
	snprintf(path, sizeof(path), "%s/%s", q->dir, name);
	data = disk_get(path, &len);
	for (size_t i = 0; data && i < q->subject->layer_count; i++) {
		if (!q->sight->numbers[i])
			continue;
		snprintf(line, sizeof(line), "d%u_0%s: %llu", q->subject->layers[i]->id,
			q->subject->layers[i]->json ? "\"" : "",
			(unsigned long long)q->sight->numbers[i]);
		if (!memmem(data, len, line, strlen(line)))
			return 0;
	}
	q->found = data;
	return q->found;
}

static void check_state(const struct subject *s, const struct sight *now)
{
	struct search q = {.subject = s, .sight = now};

	snprintf(q.dir, sizeof(q.dir), "/var/lib/pullet/%s", s->name);
	disk_list(q.dir, look_into_state, &q);
	if (!q.found)
		subject_report_flaw("P4 %s: version %llu... is visible, and no state file has it",
			s->name, (unsigned long long)now->numbers[0]);
}

/* ---- what follows what ---- */

bool subject_same_sight(const struct sight *a, const struct sight *b)
{
	return a->there == b->there && memcmp(a->numbers, b->numbers, sizeof(a->numbers)) == 0;
}

/* Some layer is older than before. */
static size_t find_older(
	const struct subject *s, const struct sight *now, const struct sight *before)
{
	for (size_t i = 0; i < s->layer_count; i++)
		if (now->numbers[i] && now->numbers[i] < before->numbers[i])
			return i;
	return s->layer_count;
}

static void follow_sight(struct subject *s, const struct sight *now)
{
	size_t older = find_older(s, now, &s->last);

	if (subject_same_sight(now, &s->last))
		return;
	world_trace("%s shows %llu %llu %llu", s->name, (unsigned long long)now->numbers[0],
		(unsigned long long)now->numbers[1], (unsigned long long)now->numbers[2]);
	if (older < s->layer_count && !s->may_go_back && !s->damaged)
		subject_report_flaw("P2 %s: %s went back from %llu to %llu", s->name,
			s->layers[older]->path, (unsigned long long)s->last.numbers[older],
			(unsigned long long)now->numbers[older]);
	if (s->held_us && s->at_hold.there && !s->unsaved && !s->may_be_lost &&
		world.now_us < s->held_until_us && !subject_same_sight(now, &s->at_hold))
		subject_report_flaw("%s changed while it was held", s->name);
	if (s->rolled_back.there && subject_same_sight(now, &s->rolled_back))
		subject_report_flaw("%s shows again what was rolled back", s->name);
	if (s->rolling_us && s->rolling.there && !s->damaged) {
		s->rolled_back = s->rolling;
		s->rolling_us = 0;
	}
	if (!s->damaged)
		check_state(s, now);
	if (world.now_us - s->changed_us > SETTLED_US)
		s->settled = s->last;
	s->last = *now;
	s->changed_us = world.now_us;
}

/* ---- places ---- */

static void observe_file(struct subject *s, struct sight *ret)
{
	size_t len;
	const char *text = disk_get(s->path, &len);

	if (s->foreign && (!text || memmem(text, len, "something", 9)))
		return;
	if (s->foreign)
		s->repaired_us = world.now_us;
	s->foreign = false;
	if (text)
		look_at_text(s, text, len, ret);
}

static void observe_set(struct subject *s, struct sight *ret)
{
	for (size_t i = 0; i < s->layer_count; i++) {
		char path[128];
		struct tally tallies[SUBJECT_MAX_LAYERS] = {0};
		const char *text;
		size_t len;

		snprintf(path, sizeof(path), "%s/f%zu.yaml", s->path, i);
		text = disk_get(path, &len);
		if (!text)
			continue;
		ret->there = true;
		if (!count_lines(s, text, len, tallies) || !tallies[i].lines)
			subject_report_flaw("P1 %s: f%zu.yaml is another document", s->name, i);
		else
			check_layer(s, i, &tallies[i]);
		ret->numbers[i] = tallies[i].number;
	}
}

/* ---- the snapshot, by the reader library ---- */

static int visit_value(const char *key, size_t key_len, const struct pullet_value *v, void *arg)
{
	struct {
		const struct subject *s;
		struct tally tallies[SUBJECT_MAX_LAYERS];
		bool other;
	} *q = arg;
	const char *end;
	unsigned id;
	size_t i;

	if (!read_key(key, key + key_len + 1, &id, &end))
		return 0;
	i = find_layer(q->s, id);
	if (i == q->s->layer_count) {
		q->other = true;
		return 1;
	}
	q->tallies[i].mixed |= q->tallies[i].lines && q->tallies[i].number != (uint64_t)v->integer;
	q->tallies[i].number = (uint64_t)v->integer;
	q->tallies[i].lines++;
	return 0;
}

static void check_generation(struct subject *s)
{
	uint64_t generation = pullet_generation(s->reader);

	if (generation < s->generation && !s->damaged)
		subject_report_flaw("P2 %s: generation %llu after %llu", s->name,
			(unsigned long long)generation, (unsigned long long)s->generation);
	if (generation == s->generation)
		return;
	if (world.now_us - s->changed_us > SETTLED_US)
		s->settled_generation = s->generation;
	s->generation = generation;
}

static void observe_snapshot(struct subject *s)
{
	struct {
		const struct subject *s;
		struct tally tallies[SUBJECT_MAX_LAYERS];
		bool other;
	} q = {.s = s};
	char path[96];

	snprintf(path, sizeof(path), "%s/%s.snap", subject_runtime_dir(s), s->name);
	disk_owner = OWNER_READER;
	if (!s->reader && pullet_open(path, 0, &s->reader))
		s->reader = NULL;
	if (s->reader && pullet_refresh(s->reader) >= 0) {
		pullet_each(s->reader, "", visit_value, &q);
		check_generation(s);
	}
	disk_owner = OWNER_WORLD;
	if (q.other)
		subject_report_flaw("P1 %s: the snapshot has another config's value", s->name);
	for (size_t i = 0; i < s->layer_count; i++) {
		if (q.tallies[i].lines)
			check_layer(s, i, &q.tallies[i]);
		s->snapshot_last.numbers[i] = q.tallies[i].number;
	}
}

/* ---- outside ---- */

const char *subject_runtime_dir(const struct subject *s)
{
	return s->runtime_dir ? s->runtime_dir : "/run/pullet";
}

void subject_observe(struct subject *s)
{
	struct sight now = {.there = false};

	if (!s->dirty || s->removed)
		return;
	s->dirty = false;
	s->observed++;
	disk_use(s->host->disk);
	if (s->snapshot)
		observe_snapshot(s);
	if (s->place == PLACE_SET && s->foreign)
		return;
	if (s->place == PLACE_FILE)
		observe_file(s, &now);
	else if (s->place == PLACE_SET)
		observe_set(s, &now);
	else
		return;
	if (now.there)
		follow_sight(s, &now);
	else if (s->last.there && !s->foreign)
		subject_report_flaw("P1 %s: the file is gone", s->name);
}

void subject_close(struct subject *s)
{
	disk_owner = OWNER_READER;
	if (s->reader)
		pullet_close(s->reader);
	disk_owner = OWNER_WORLD;
	s->reader = NULL;
}

void subject_power_cut(struct subject *s)
{
	bool settled = s->strict || world.now_us - s->changed_us > SETTLED_US;

	subject_close(s);
	if (s->repaired_us && (s->may_be_lost || world.now_us - s->repaired_us <= SETTLED_US))
		s->foreign = true; /* the repair may be gone */
	if (settled) {
		s->settled = s->last;
		s->settled_generation = s->generation;
	}
	s->last = (struct sight){.there = false};
	s->generation = 0;
	s->dirty = false;
	if (s->strict)
		return;
	s->held_us = s->rolling_us = 0;
	s->rolled_back.there = false;
	s->pin_until_ms = 0;
	memset(s->override_until_ms, 0, sizeof(s->override_until_ms));
}

/* What is missing after the start may be missing because the disk or memory fail. */
static bool has_faults(void)
{
	bool has = world_faults.memory_one_in || world_faults.memory_first;

	for (unsigned i = 0; i < CALL_KINDS; i++)
		has |= world_faults.one_in[i] > 0;
	return has;
}

void subject_check_start(struct subject *s)
{
	size_t older;

	if (s->removed)
		return;
	s->dirty = true;
	subject_observe(s);
	older = find_older(s, &s->last, &s->settled);
	if (has_faults())
		return;
	if (s->place != PLACE_NONE && !s->foreign && !s->damaged && !s->may_be_lost &&
		s->settled.there && !s->last.there)
		subject_report_flaw("P3 %s: nothing is published after the start", s->name);
	else if (older < s->layer_count && !s->may_go_back && !s->clock_steps)
		subject_report_flaw("P4 %s: %s is %llu after the start, and was %llu", s->name,
			s->layers[older]->path, (unsigned long long)s->last.numbers[older],
			(unsigned long long)s->settled.numbers[older]);
	if (s->generation && s->generation < s->settled_generation && !s->damaged)
		subject_report_flaw("P2 %s: generation %llu after the start, and was %llu", s->name,
			(unsigned long long)s->generation,
			(unsigned long long)s->settled_generation);
}

bool subject_has_override(const struct subject *s, size_t i)
{
	char word[8];
	size_t len;
	const char *text;

	disk_use(s->host->disk);
	text = disk_get(s->path, &len);
	snprintf(word, sizeof(word), "k%zu", i);
	return text && memmem(text, len, word, strlen(word));
}

bool subject_shows(const struct subject *s, size_t layer, uint64_t number)
{
	return s->last.numbers[layer] >= number;
}

/* The first layer that is not the servers' newest. */
static size_t find_late(const struct subject *s, const struct sight *sight)
{
	size_t i = 0;

	for (; i < s->layer_count; i++) {
		const struct site_version *v = site_current(s->layers[i]);

		if (sight->numbers[i] != (v->quality == SITE_ABSENT ? 0 : v->number))
			break;
	}
	return i;
}

bool subject_is_newest(const struct subject *s)
{
	bool place = s->place == PLACE_NONE || find_late(s, &s->last) == s->layer_count;
	bool snapshot = !s->snapshot || find_late(s, &s->snapshot_last) == s->layer_count;

	return s->removed || (!s->foreign && place && snapshot);
}

static void report_late(const struct subject *s, const char *place, const struct sight *sight)
{
	size_t late = find_late(s, sight);

	if (late < s->layer_count)
		subject_report_flaw("%s: %s is %llu in the %s at the end, the server has %llu",
			s->name, s->layers[late]->path, (unsigned long long)sight->numbers[late],
			place, (unsigned long long)site_current(s->layers[late])->number);
}

void subject_check_end(struct subject *s)
{
	if (s->removed || s->damaged) /* what was destroyed may need an operator */
		return;
	if (s->foreign)
		subject_report_flaw("%s: what somebody else wrote was not healed", s->name);
	if (s->place != PLACE_NONE)
		report_late(s, "file", &s->last);
	if (s->snapshot)
		report_late(s, "snapshot", &s->snapshot_last);
}
