/*
 * Decides rollouts. Surprising: an unknown key is an error, never "everybody": a misspelt one must
 * not reach the whole fleet. `plan` is known, and not looked into.
 */
#include "verify/rollout.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "crypto/digest.h"
#include "base/etag.h"

#define LEAST_DIGEST 12

static int fail_at(char why[FILE_WHY], const struct node *n, const char *what)
{
	if (n && n->line)
		snprintf(why, FILE_WHY, "%u:%u: %s", n->line, n->column, what);
	else
		snprintf(why, FILE_WHY, "%s", what);
	return -EINVAL;
}

int rollout_place(const char *salt, const char *host, double *ret_percent)
{
	unsigned char hash[32];
	uint64_t n = 0;
	char *text;
	int r = asprintf(&text, "%s\n%s", salt, host);

	if (r < 0)
		return -ENOMEM;
	r = digest_sha256_raw(text, (size_t)r, hash);
	free(text);
	for (int i = 0; i < 8; i++)
		n = n << 8 | hash[i];
	*ret_percent = (double)(n >> 11) / 9007199254740992.0 * 100; /* 53 bits: exact */
	return r;
}

/* ---- values ---- */

static int read_share(const struct node *n, double *ret, char why[FILE_WHY])
{
	*ret = n->type == NODE_INT ? (double)n->integer : n->type == NODE_DOUBLE ? n->number : -1;
	return *ret >= 0 && *ret <= 100 ? 0
					: fail_at(why, n, "percent must be a number from 0 to 100");
}

static int read_text(
	const struct node *n, const char *sentence, const char **ret, char why[FILE_WHY])
{
	if (n->type != NODE_STRING && n->type != NODE_INT && n->type != NODE_DOUBLE)
		return fail_at(why, n, sentence);
	*ret = n->text;
	return 0;
}

/* "2026-11-21T03:00:00Z" */
static int read_time(const struct node *n, int64_t *ret_ms, char why[FILE_WHY])
{
	struct tm tm = {0};
	const char *end =
		n->type == NODE_STRING ? strptime(n->text, "%Y-%m-%dT%H:%M:%SZ", &tm) : NULL;

	if (!end || *end)
		return fail_at(why, n, "at must be a time like 2026-11-21T03:00:00Z");
	*ret_ms = (int64_t)timegm(&tm) * 1000;
	return 0;
}

/* ---- parts ---- */

/* The percentage of the last wave that has begun; the waves must come in order. */
static int read_waves(
	const struct node *list, int64_t now_ms, double *ret_percent, char why[FILE_WHY])
{
	int64_t at_ms = 0, last_ms = INT64_MIN;
	double percent = 0, last = 0;
	int r = 0;

	*ret_percent = 0;
	if (list->type != NODE_LIST || !list->first || list->count > ROLLOUT_MAX_WAVES)
		return fail_at(
			why, list, "waves must be a list of 1 to 64 times {at: ..., percent: ...}");
	for (const struct node *n = list->first; r == 0 && n; n = n->next) {
		const struct node *at = node_find(n, "at"), *share = node_find(n, "percent");

		if (!at || !share || n->count != 2)
			return fail_at(why, n, "a wave is {at: TIME, percent: NUMBER}");
		r = read_time(at, &at_ms, why);
		if (r == 0)
			r = read_share(share, &percent, why);
		if (r == 0 && (at_ms <= last_ms || percent < last))
			return fail_at(why, n,
				"a wave must be later than the one before, and not "
				"smaller");
		last_ms = at_ms;
		last = percent;
		if (r == 0 && at_ms <= now_ms)
			*ret_percent = percent;
	}
	return r;
}

static const char *label_of(const struct rollout_host *host, const char *name)
{
	for (size_t i = 0; i < host->label_count; i++)
		if (strcmp(host->labels[i].name, name) == 0)
			return host->labels[i].value;
	return NULL;
}

/* 12 digits or more of the digest, as receipts and `pullet history` show them. */
static bool begins_digest(const char *text, const char *digest)
{
	size_t len = strlen(text);

	return len >= LEAST_DIGEST && strncasecmp(text, digest, len) == 0;
}

/* Is this version, or are these bytes, in the list, or the text? */
static int match_versions(const struct node *n, const char *version, const char *digest,
	bool *ret_match, char why[FILE_WHY])
{
	const struct node *last = n->type == NODE_LIST ? NULL : n->next;
	uint64_t hash = etag_hash(version);
	const char *about = "";
	char no_version[64];

	*ret_match = false;
	snprintf(
		no_version, sizeof(no_version), "%.16s must be a text, or a list of texts", n->key);
	if (n->type == NODE_LIST && !n->first)
		return fail_at(why, n, no_version);
	for (const struct node *v = n->type == NODE_LIST ? n->first : n; v != last; v = v->next) {
		if (read_text(v, no_version, &about, why))
			return -EINVAL;
		*ret_match |= etag_hash(about) == hash || begins_digest(about, digest);
	}
	return 0;
}

/* True, or why the labels are others. */
static int match_labels(const struct node *map, const struct rollout_host *host, bool *ret_match,
	char why[FILE_WHY])
{
	const char *want = "", *have;

	*ret_match = true;
	if (map->type != NODE_MAP)
		return fail_at(why, map, "labels must be a mapping of names to texts");
	for (const struct node *n = map->first; n; n = n->next) {
		if (read_text(n, "a label's value must be a text", &want, why))
			return -EINVAL;
		have = label_of(host, n->key);
		if (*ret_match && (!have || strcmp(have, want) != 0)) {
			*ret_match = false;
			snprintf(why, FILE_WHY,
				"it is for hosts with the label %.60s: %.60s, this "
				"one has %.60s",
				n->key, want, have ? have : "none");
		}
	}
	return 0;
}

/* ---- the document ---- */

struct plan { /* NULL: no such key */
	const struct node *percent, *salt, *labels, *version, *only, *waves, *plan;
};

static int read_plan(const struct node *root, struct plan *ret, char why[FILE_WHY])
{
	const struct {
		const char *name;
		const struct node **to;
	} keys[] = {
		{"percent", &ret->percent},
		{"salt", &ret->salt},
		{"labels", &ret->labels},
		{"version", &ret->version},
		{"only", &ret->only},
		{"waves", &ret->waves},
		{"plan", &ret->plan},
	};
	char sentence[160];

	*ret = (struct plan){.percent = NULL};
	for (const struct node *n = root->first; n; n = n->next) {
		size_t i = 0;

		while (i < sizeof(keys) / sizeof(keys[0]) && strcmp(keys[i].name, n->key) != 0)
			i++;
		if (i == sizeof(keys) / sizeof(keys[0])) {
			snprintf(sentence, sizeof(sentence),
				"there is no key %.40s: percent, salt, labels, version, only and "
				"waves "
				"are the keys of a rollout",
				n->key);
			return fail_at(why, n, sentence);
		}
		*keys[i].to = n;
	}
	if (ret->percent && ret->waves)
		return fail_at(why, ret->waves, "percent and waves exclude each other");
	return 0;
}

/* The host's place is below the percentage. */
static int check_share(
	double percent, const char *salt, const char *host, bool *ret_takes, char why[FILE_WHY])
{
	double place;
	int r = rollout_place(salt, host, &place);

	if (r) {
		snprintf(why, FILE_WHY, "out of memory");
		return r;
	}
	*ret_takes = place < percent || percent >= 100;
	if (!*ret_takes)
		snprintf(why, FILE_WHY, "this host is at %.2f %%, the rollout at %g %%", place,
			percent);
	return 0;
}

int rollout_decide(const struct node *root, const struct rollout_host *host, const char *config,
	const char *version, const char *digest, bool *ret_takes, char why[FILE_WHY])
{
	const char *salt = config;
	bool about = true, of_this = true, match = true;
	double percent = 100;
	struct plan plan;
	int r = read_plan(root, &plan, why);

	if (r == 0 && plan.salt)
		r = read_text(plan.salt, "salt must be a text", &salt, why);
	if (r == 0 && plan.version)
		r = match_versions(plan.version, version, digest, &about, why);
	if (r == 0 && plan.only)
		r = match_versions(plan.only, version, digest, &of_this, why);
	if (r == 0 && plan.percent)
		r = read_share(plan.percent, &percent, why);
	if (r == 0 && plan.waves)
		r = read_waves(plan.waves, host->wall_ms, &percent, why);
	if (r == 0 && plan.labels)
		r = match_labels(plan.labels, host, &match, why);
	if (r)
		return r;
	*ret_takes = of_this;
	if (!of_this)
		snprintf(why, FILE_WHY,
			"the rollout is of another version alone: when that one is finished or "
			"aborted, "
			"this one comes");
	if (!of_this || !about)
		return 0;
	if (match)
		return check_share(percent, salt, host->name, ret_takes, why);
	*ret_takes = false;
	return 0;
}
