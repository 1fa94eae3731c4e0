/*
 * Reading and following receipts. Surprising: a watch that catches up sends events that are older
 * than the revision in its header; its position is the revision of the events.
 */
#include "cli/fleet/follow.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "text/json_writer.h"

#define MAX_KEY (2u << 20) /* etcd takes requests of 1.5 MiB */
#define MAX_RESTARTS 3     /* of a read that the compaction overtakes */
#define PAUSE_MS 250u      /* before a watch is begun again, doubled each time it fails */
#define MAX_DOUBLED 5u
#define STOOD_MS 10000u /* a watch that lasted so long did not fail */
#define MAX_FAILURES 3u /* in a row: then everything is read again */

struct follow {
	struct etcd *etcd;
	const struct follow_calls *calls;
	struct roster *roster;
	uint64_t revision; /* all that came before, and this one, is in the roster */
	uint64_t cluster;

	/* a read */
	struct buffer from, key, value;
	unsigned limit;
	uint64_t reading; /* at this revision; 0 = the first one says which */

	/* the watch */
	struct loop_timer draw, pause, deadline;
	uint64_t drawn_ms, deadline_ms;
	unsigned failures;
	bool changed, reload, done, late;
	char why[FILE_WHY];
};

/* ---- reading ---- */

static int put_pair(struct follow *f, const struct roster_value *value)
{
	return roster_put(f->roster, f->key.data, f->key.len, value);
}

/* Takes a key and its value; gone: without one. 0, -ENOMEM, -EFBIG, -EIO. */
static int take_pair(struct follow *f, const struct node *pair, bool gone)
{
	if (pair->type != NODE_MAP || etcd_store_decode(pair, "key", &f->key) || f->key.len == 0)
		return -EIO;
	if (gone)
		return put_pair(f, NULL);
	buffer_clear(&f->value);
	if (node_find(pair, "value") && etcd_store_decode(pair, "value", &f->value))
		return -EIO;
	return put_pair(f, &(struct roster_value){.data = f->value.data ? f->value.data : "",
				   .len = f->value.len,
				   .lease = etcd_store_number(pair, "lease")});
}

/* Settles the roster at the current time. 0, -ENOMEM. */
static int settle_roster(struct follow *f)
{
	return roster_settle(f->roster, loop_sys(etcd_loop(f->etcd))->wall_ms());
}

static int build_range(
	void *arg, const struct kind_place *place, struct kind_request *r, char why[FILE_WHY])
{
	struct follow *f = arg;
	int e = etcd_request_begin(place, ETCD_STORE_RANGE, r);

	(void)why;
	json_writer_begin_object(&r->body, NULL);
	etcd_request_bytes(&r->body, "key", f->from.data, f->from.len);
	etcd_request_end_of(&r->body, "range_end", etcd_prefix(f->etcd));
	if (f->reading)
		json_writer_digits(&r->body, "revision", f->reading);
	json_writer_digits(&r->body, "limit", f->limit);
	json_writer_end_object(&r->body);
	return e ? e : r->body.error;
}

/* Is the key behind all before it, so that a read ends? */
static bool is_key_next(const struct follow *f)
{
	size_t len = f->from.len < f->key.len ? f->from.len : f->key.len;
	int order = memcmp(f->key.data, f->from.data, len);

	return order > 0 || (order == 0 && f->key.len >= f->from.len);
}

/* Takes one answer. 1: there is more. */
static int take_range(struct follow *f, const struct etcd_store_answer *a)
{
	const struct node *pairs = node_member(a->root, "kvs", NODE_LIST);
	int e = 0;

	buffer_clear(&f->key);

	if (!f->reading)
		f->reading = a->revision;
	f->cluster = a->cluster;
	for (const struct node *n = pairs ? pairs->first : NULL; e == 0 && n; n = n->next)
		e = take_pair(f, n, false);
	if (e || !node_is_true(a->root, "more"))
		return e;
	if (f->key.len == 0 || !is_key_next(f))
		return -EIO;
	/* the first key behind this one */
	buffer_clear(&f->from);
	buffer_append(&f->from, f->key.data, f->key.len);
	buffer_append(&f->from, "", 1);
	return f->from.error ? f->from.error : 1;
}

static int read_at_once(struct follow *f, char why[FILE_WHY])
{
	struct etcd_store_answer a;
	int e;

	f->reading = 0;
	buffer_clear(&f->from);
	buffer_append_string(&f->from, etcd_prefix(f->etcd));
	do {
		e = etcd_ask(f->etcd, build_range, f, &a, why);
		if (e == -EMSGSIZE && f->limit > 1) {
			f->limit = (f->limit + 3) / 4;
			e = 1;
			continue;
		}
		if (e)
			return e;
		e = take_range(f, &a);
		etcd_store_answer_fini(&a);
		if (e == -EIO)
			snprintf(why, FILE_WHY, "invalid answer");
	} while (e == 1);
	return e;
}

/* Replaces the roster by a new one only when that is complete. */
static int read_whole_roster(struct follow *f, char why[FILE_WHY])
{
	struct roster *old = f->roster;
	int e = -ESTALE;

	for (int i = 0; e == -ESTALE && i < MAX_RESTARTS; i++) {
		if (f->roster != old)
			roster_free(f->roster);
		f->roster = roster_new(etcd_prefix(f->etcd), ROSTER_MAX_BYTES);
		e = f->roster ? read_at_once(f, why) : -ENOMEM;
	}
	e = e ? e : settle_roster(f);
	if (e) {
		if (e == -ENOMEM)
			snprintf(why, FILE_WHY, "out of memory");
		if (e == -EFBIG)
			snprintf(why, FILE_WHY,
				"the receipts below %.200s exceed %zu MiB: see who writes "
				"there",
				etcd_prefix(f->etcd), ROSTER_MAX_BYTES >> 20);
		roster_free(f->roster);
		f->roster = old;
		return e;
	}
	roster_free(old);
	f->revision = f->reading;
	return 0;
}

/* ---- the watch ---- */

static int build_watch(
	void *arg, const struct kind_place *place, struct kind_request *r, char why[FILE_WHY])
{
	struct follow *f = arg;
	const char *prefix = etcd_prefix(f->etcd);
	int e = etcd_request_begin(place, ETCD_STORE_WATCH, r);

	(void)why;
	json_writer_begin_object(&r->body, NULL);
	json_writer_begin_object(&r->body, "create_request");
	etcd_request_bytes(&r->body, "key", prefix, strlen(prefix));
	etcd_request_end_of(&r->body, "range_end", prefix);
	json_writer_digits(&r->body, "start_revision", f->revision + 1);
	json_writer_boolean(&r->body, "progress_notify", true);
	json_writer_boolean(&r->body, "fragment", true);
	json_writer_end_object(&r->body);
	json_writer_end_object(&r->body);
	return e ? e : r->body.error;
}

static void stop_watch(struct follow *f, bool reload, const char *why)
{
	f->reload |= reload;
	snprintf(f->why, sizeof(f->why), "%s", why);
	loop_stop(etcd_loop(f->etcd));
}

static void show_roster(void *arg)
{
	struct follow *f = arg;

	f->changed = false;
	f->drawn_ms = loop_now_ms(etcd_loop(f->etcd));
	if (settle_roster(f)) {
		stop_watch(f, true, "out of memory");
		return;
	}
	f->done = f->calls->show(f->calls->arg, f->roster, f->revision);
	if (f->done)
		loop_stop(etcd_loop(f->etcd));
}

static void plan_show(struct follow *f)
{
	uint64_t now_ms = loop_now_ms(etcd_loop(f->etcd)),
		 soonest_ms = f->drawn_ms + FOLLOW_EVERY_MS;

	if (!f->changed)
		return;
	loop_timer_set(etcd_loop(f->etcd), &f->draw, soonest_ms > now_ms ? soonest_ms : now_ms);
}

static int take_watch_events(struct follow *f, const struct node *events, bool fragment)
{
	uint64_t last = 0;

	for (const struct node *n = events->first; n; n = n->next) {
		const struct node *pair = node_find(n, "kv");
		bool gone = strcmp(node_text(n, "type", ""), "DELETE") == 0;
		int e = pair ? take_pair(f, pair, gone) : -EIO;

		if (e)
			return e;
		last = etcd_store_number(pair, "mod_revision");
	}
	f->changed = true;
	if (fragment && last) /* others of the same revision follow */
		last--;
	if (last > f->revision)
		f->revision = last;
	return 0;
}

static void watch_line_came(void *arg, const struct etcd_store_answer *a)
{
	struct follow *f = arg;
	const struct node *events = node_member(a->root, "events", NODE_LIST);

	if (node_is_true(a->root, "canceled")) {
		etcd_unwatch(f->etcd);
		stop_watch(f, true, "");
	} else if (a->cluster != f->cluster ||
		   (node_is_true(a->root, "created") && a->revision < f->revision)) {
		etcd_unwatch(f->etcd);
		stop_watch(f, true, "the cluster was restored or replaced");
	} else if (events) {
		if (take_watch_events(f, events, node_is_true(a->root, "fragment"))) {
			etcd_unwatch(f->etcd);
			stop_watch(f, true, "invalid event");
		}
		plan_show(f);
	} else if (!node_is_true(a->root, "created") && a->revision > f->revision) {
		f->revision = a->revision; /* progress: all up to here was sent */
	}
}

static void watch_ended(void *arg, int error, const char *why)
{
	struct follow *f = arg;

	stop_watch(f, error == -ESTALE || f->failures >= MAX_FAILURES, why);
}

static void pause_over(void *arg)
{
	struct follow *f = arg;

	loop_stop(etcd_loop(f->etcd));
}

static void deadline_come(void *arg)
{
	struct follow *f = arg;

	f->late = true;
	loop_stop(etcd_loop(f->etcd));
}

/* Runs the loop until something stops it, and leaves no timer behind. */
static void run_until_stopped(struct follow *f)
{
	struct loop *l = etcd_loop(f->etcd);

	if (f->deadline_ms)
		loop_timer_set(l, &f->deadline, f->deadline_ms);
	plan_show(f);
	loop_run(l);
	loop_timer_cancel(l, &f->deadline);
	loop_timer_cancel(l, &f->draw);
	loop_timer_cancel(l, &f->pause);
}

static void pause_and_run(struct follow *f)
{
	struct loop *l = etcd_loop(f->etcd);
	uint64_t bound_ms = PAUSE_MS << (f->failures < MAX_DOUBLED ? f->failures : MAX_DOUBLED);

	f->failures++;
	loop_timer_set(l, &f->pause,
		loop_now_ms(l) + bound_ms / 2 + sys_random_upto(loop_sys(l), bound_ms / 2));
	run_until_stopped(f);
}

static void watch_once(struct follow *f)
{
	uint64_t begun_ms = loop_now_ms(etcd_loop(f->etcd));

	f->why[0] = '\0';
	if (etcd_watch(f->etcd, build_watch, watch_line_came, watch_ended, f, f->why) == 0)
		run_until_stopped(f);
	etcd_unwatch(f->etcd);
	if (loop_now_ms(etcd_loop(f->etcd)) - begun_ms >= STOOD_MS)
		f->failures = 0;
}

static void keep_up(struct follow *f)
{
	while (!f->done && !f->late) {
		if (f->reload && read_whole_roster(f, f->why) == 0) {
			f->reload = false;
			f->why[0] = '\0';
			show_roster(f);
		} else if (!f->reload) {
			watch_once(f);
		}
		if (f->done || f->late)
			return;
		if (f->why[0] && f->failures == 0)
			f->calls->note(f->calls->arg, f->why);
		pause_and_run(f);
	}
}

/* ---- interface ---- */

static void follow_init(struct follow *f, struct etcd *e, const struct follow_calls *calls)
{
	*f = (struct follow){.etcd = e, .calls = calls, .limit = FOLLOW_KEYS};
	buffer_init(&f->from, MAX_KEY);
	buffer_init(&f->key, MAX_KEY);
	buffer_init(&f->value, ETCD_MAX_ANSWER);
	loop_timer_init(&f->draw, show_roster, f);
	loop_timer_init(&f->pause, pause_over, f);
	loop_timer_init(&f->deadline, deadline_come, f);
}

static void follow_fini(struct follow *f)
{
	roster_free(f->roster);
	buffer_fini(&f->from);
	buffer_fini(&f->key);
	buffer_fini(&f->value);
}

int follow_read(struct etcd *e, const struct follow_calls *calls, struct roster **ret_roster,
	uint64_t *ret_revision, char why[FILE_WHY])
{
	struct follow f;
	int r;

	follow_init(&f, e, calls);
	r = read_whole_roster(&f, why);
	if (r == 0) {
		*ret_roster = f.roster;
		*ret_revision = f.revision;
		f.roster = NULL;
	}
	follow_fini(&f);
	return r;
}

int follow_run(
	struct etcd *e, const struct follow_calls *calls, uint64_t deadline_ms, char why[FILE_WHY])
{
	struct follow f;
	int r;

	follow_init(&f, e, calls);
	f.deadline_ms = deadline_ms;
	etcd_set_deadline(e, deadline_ms);
	r = read_whole_roster(&f, why);
	if (r == 0) {
		f.done = calls->show(calls->arg, f.roster, f.revision);
		f.drawn_ms = loop_now_ms(etcd_loop(e));
		keep_up(&f);
		if (f.late && f.changed)
			show_roster(&f);
		r = f.done ? 0 : -ETIMEDOUT;
	} else if (deadline_ms && loop_now_ms(etcd_loop(e)) >= deadline_ms) {
		r = -ETIMEDOUT;
	}
	follow_fini(&f);
	return r;
}
