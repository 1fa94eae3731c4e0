/*
 * Any bytes as a receipt, and as what is known of a host: refused, or read within their bounds,
 * written again, and the same when that is read. The same bytes go into a roster under a key that
 * they name themselves: the first line.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/roster_sum.h"

#define ROOM (64u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool what)
{
	if (!what)
		abort();
}

static void check_same(const struct receipt *a, const struct receipt *b, bool known)
{
	demand(a->since_ms == b->since_ms && a->label_count == b->label_count);
	demand(a->config_count == b->config_count);
	for (size_t i = 0; i < a->label_count; i++)
		demand(!strcmp(a->labels[i].name, b->labels[i].name) &&
			!strcmp(a->labels[i].value, b->labels[i].value));
	for (size_t i = 0; i < a->config_count; i++) {
		const struct receipt_config *x = &a->configs[i], *y = &b->configs[i];

		demand(!strcmp(x->name, y->name));
		if (known)
			continue;
		demand(x->generation == y->generation && !strcmp(x->version, y->version));
		demand(!strcmp(x->digest, y->digest) && !strcmp(x->why, y->why));
		demand(x->state == y->state && !strcmp(x->rejected, y->rejected));
		demand(!strcmp(x->others, y->others));
		demand(!strcmp(x->rejected_digest, y->rejected_digest));
		demand(x->since_ms == y->since_ms && x->pulled_ms == y->pulled_ms);
	}
}

static void try_receipt(const char *data, size_t len, bool known)
{
	struct receipt *r, *again;
	struct buffer b;
	int e = known ? receipt_read_known(data, len, &r) : receipt_read(data, len, &r);

	if (e) {
		demand(e == -EINVAL || e == -EPROTONOSUPPORT);
		return;
	}
	demand(r->page >= 1 && r->pages >= 1 && r->host && r->pullet);
	buffer_init(&b, ROOM);
	if (known) {
		demand(receipt_write_known(r, &b) == 0);
	} else {
		receipt_begin(r, &b);
		for (size_t i = 0; i < r->config_count; i++) {
			char version[RECEIPT_VERSION], why[RECEIPT_WHY];

			receipt_version(r->configs[i].version, version);
			receipt_why(r->configs[i].why, why);
			demand(strlen(version) < RECEIPT_VERSION && strlen(why) < RECEIPT_WHY);
			receipt_runs(&r->configs[i], version);
			receipt_add(&r->configs[i], &b);
		}
		demand(receipt_end(&b) == 0);
	}
	e = known ? receipt_read_known(b.data, b.len, &again) : receipt_read(b.data, b.len, &again);
	demand(e == 0);
	check_same(r, again, known);
	receipt_free(again);
	receipt_free(r);
	buffer_fini(&b);
}

static void count_ghost(void *arg, const char *key, enum ghost kind)
{
	demand(kind > GHOST_NONE && kind < GHOST_KINDS && strlen(key) < GHOSTS_KEY);
	demand(ghost_name(kind)[0]);
	++*(size_t *)arg;
}

/* The sums of what fits; how many fit nothing. */
static size_t sum_up(struct roster *r)
{
	size_t ghosts = 0;
	const struct roster_filter wish = {.config = NULL};
	struct roster_row *rows;
	struct roster_sum s;
	size_t count;

	demand(roster_settle(r, 1000) == 0);
	roster_visit_ghosts(r, count_ghost, &ghosts);
	demand(roster_rows(r, &wish, &rows, &count) == 0);
	for (size_t i = 0; i < count; i += s.count) {
		size_t hosts = 0;

		demand(roster_sum(rows + i, count - i, i % 2 ? "v1" : NULL, &s) == 0);
		demand(s.count > 0 && s.on_it + s.silent <= s.count);
		for (size_t k = 0; k < s.group_count; k++)
			hosts += s.groups[k].hosts;
		demand(hosts + s.silent == s.count);
		for (size_t k = 0; k < s.count; k++)
			roster_behind(&s, &s.rows[k]);
		roster_sum_fini(&s);
	}
	free(rows);
	return ghosts;
}

static void try_roster(const char *data, size_t len)
{
	static const char one[] = "{\"v\":1,\"host\":\"h1\",\"labels\":{},\"configs\":{\"web\":{"
				  "\"generation\":1,\"version\":\"v1\",\"state\":\"ok\"}}}",
			  known[] = "{\"v\":1,\"labels\":{},\"configs\":[\"web\"]}";
	const struct roster_value page = {one, strlen(one), 1}, name = {known, strlen(known), 0};
	const char *line = memchr(data, '\n', len);
	struct roster *r = roster_new("p/", ROSTER_MAX_BYTES);
	size_t key = line ? (size_t)(line - data) : 0;

	demand(r && roster_put(r, "p/h1", 4, &page) == 0);
	demand(roster_put(r, "p/known/h1", 10, &name) == 0 && sum_up(r) == 0);
	for (uint64_t lease = 0; line && lease < 3; lease++) { /* none, another's, its own */
		const struct roster_value value = {line + 1, len - key - 1, lease};

		demand(roster_put(r, data, key, &value) == 0);
		sum_up(r);
	}
	if (line)
		demand(roster_put(r, data, key, NULL) == 0);
	demand(sum_up(r) <= 1); /* what is known of h1 may be gone */
	roster_free(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = size ? (const char *)data : "";

	try_receipt(text, size, false);
	try_receipt(text, size, true);
	try_roster(text, size);
	return 0;
}
