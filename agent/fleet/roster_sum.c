/* Hosts in groups by what they run. Surprising: which version is wanted is guessed where nobody
 * names one: it is the one that some host pulled last. */
#include "fleet/roster_sum.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int compare_row_versions(const struct receipt_config *x, const struct receipt_config *y)
{
	int order = strcmp(x->version, y->version);

	return order ? order : strcmp(x->digest, y->digest);
}

static int compare_runs(const void *a, const void *b)
{
	const struct receipt_config *const *x = a, *const *y = b;

	return compare_row_versions(*x, *y);
}

static int compare_groups(const void *a, const void *b)
{
	const struct roster_group *x = a, *y = b;
	int order = (x->hosts < y->hosts) - (x->hosts > y->hosts);

	if (order == 0)
		order = strcmp(x->version, y->version);
	return order ? order : strcmp(x->digest, y->digest);
}

/* The version that a host pulled last; not of one that rejects its server's version. */
static const struct receipt_config *find_newest(const struct roster_row *rows, size_t count)
{
	const struct receipt_config *found = NULL;

	for (size_t i = 0; i < count; i++) {
		const struct receipt_config *c = rows[i].runs;

		if (!rows[i].silent && c->generation && c->state != RECEIPT_REJECTED &&
			(!found || c->pulled_ms > found->pulled_ms))
			found = c;
	}
	return found;
}

static int group_runs(struct roster_sum *s, const struct receipt_config **runs, size_t n)
{
	s->groups = calloc(n + 1, sizeof(*s->groups));
	if (!s->groups)
		return -ENOMEM;
	if (n)
		qsort(runs, n, sizeof(runs[0]), compare_runs);
	for (size_t i = 0; i < n; i++) {
		struct roster_group *g;

		if (i == 0 || compare_row_versions(runs[i - 1], runs[i]) != 0)
			s->groups[s->group_count++] = (struct roster_group){.one = runs[i],
				.version = runs[i]->version,
				.digest = runs[i]->digest};
		g = &s->groups[s->group_count - 1];
		g->hosts++;
		g->states[runs[i]->state]++;
	}
	return 0;
}

static bool runs_group_version(const struct roster_group *g, const struct receipt_config *c)
{
	return c->generation && strcmp(g->version, c->version) == 0 &&
	       strcmp(g->digest, c->digest) == 0;
}

/* Marks the groups that run the wanted version. */
static void mark_wanted(struct roster_sum *s, const char *version)
{
	const struct receipt_config *best = version ? NULL : find_newest(s->rows, s->count);

	s->wanted = version ? version
		    : best  ? (*best->version ? best->version : best->digest)
			    : NULL;
	for (size_t i = 0; i < s->group_count; i++) {
		struct roster_group *g = &s->groups[i];

		g->wanted = version ? receipt_runs(g->one, version)
				    : best && runs_group_version(g, best);
		s->on_it += g->wanted ? g->hosts : 0;
	}
}

int roster_sum(const struct roster_row *rows, size_t count, const char *version,
	struct roster_sum *ret_sum)
{
	struct roster_sum s = {.config = rows[0].runs->name, .rows = rows};
	const struct receipt_config **runs = calloc(count, sizeof(struct receipt_config *));
	size_t n = 0;
	int e;

	if (!runs)
		return -ENOMEM;
	while (s.count < count && strcmp(rows[s.count].runs->name, s.config) == 0) {
		s.silent += rows[s.count].silent;
		s.stopped += rows[s.count].silent && rows[s.count].receipt->stopped_ms;
		if (!rows[s.count].silent) {
			s.rejected += rows[s.count].runs->state == RECEIPT_REJECTED;
			s.held += rows[s.count].runs->state == RECEIPT_HELD;
			runs[n++] = rows[s.count].runs;
		}
		s.count++;
	}
	e = group_runs(&s, runs, n);
	free(runs);
	if (e)
		return e;
	mark_wanted(&s, version);
	qsort(s.groups, s.group_count, sizeof(s.groups[0]), compare_groups);
	*ret_sum = s;
	return 0;
}

void roster_sum_fini(struct roster_sum *s)
{
	free(s->groups);
}

bool roster_behind(const struct roster_sum *s, const struct roster_row *row)
{
	const struct receipt_config *c = row->runs;

	if (row->silent || (c->state != RECEIPT_OK && c->state != RECEIPT_APPLYING &&
				   c->state != RECEIPT_PINNED && c->state != RECEIPT_SUSPENDED))
		return true;
	for (size_t i = 0; s->wanted && i < s->group_count; i++)
		if (s->groups[i].wanted && runs_group_version(&s->groups[i], c))
			return false;
	return s->wanted;
}
