/* Driving the waves. Surprising: what was written is not remembered but read again at the next
 * turn, so that a lost answer, another operator and this command itself are one case. */
#include "cli/rollout/drive.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "settings/value.h"
#include "cli/common/cli.h"
#include "cli/fleet/follow.h"
#include "cli/rollout/place.h"
#include "cli/text/words.h"

#define SAY_EVERY_MS 60000u /* what holds a wave up, on no terminal */
#define SHARE 10u           /* a turn is a tenth of the time at most */
#define LAST_WORD_MS 2000u  /* for the note of the end; nobody waits for it longer */
#define GO_ON (-1)          /* in place of an exit code */

struct drive {
	const struct drive_rollout *o;
	struct loop *loop;
	struct loop_timer pause;
	struct plan plan;
	uint64_t revision;
	bool hurry, sleeping, interrupted;
	uint64_t noted_ms; /* 0 = not yet */
	bool note_failed;

	/* of this command's time */
	bool has_baseline, in_trouble;
	size_t baseline[ROLLOUT_MAX_WAVES]; /* troubled hosts up to each wave, at first */
	size_t wave;                        /* that was announced */
	bool hold_announced;
	uint64_t settled_ms, said_ms; /* 0 = not yet */
	uint64_t vain_ms;             /* since then no host runs it; 0 = one does */
	uint64_t open_ms; /* since then the same wave waits for hosts; 0 = it does not */
};

/* ---- output ---- */

static void clear_progress(void)
{
	if (isatty(STDERR_FILENO))
		fputs("\r\033[K", stderr);
}

/* A line with the time. */
static void say_progress(const struct drive *d, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static void say_progress(const struct drive *d, const char *format, ...)
{
	struct buffer line;
	char *text = NULL;
	va_list args;
	int r;

	va_start(args, format);
	r = vasprintf(&text, format, args);
	va_end(args);
	if (r < 0)
		return;
	buffer_init(&line, 1u << 16);
	words_time(&line, loop_sys(d->loop)->wall_ms());
	buffer_printf(&line, " %s: ", d->o->config);
	words_text(&line, text);
	buffer_append_string(&line, "\n");
	clear_progress();
	fwrite(line.data ? line.data : "", 1, line.len, stdout);
	fflush(stdout);
	buffer_fini(&line);
	free(text);
}

static const char *plural(size_t n)
{
	return n == 1 ? "" : "s";
}

/* "h1 (failing: no route to host), h2 (silent), 3 more" */
static void append_hosts(struct buffer *out, const struct tally *t, enum tally_stand stand)
{
	size_t count = t->begun.stands[stand], named = count < TALLY_NAMED ? count : TALLY_NAMED;

	for (size_t i = 0; i < named; i++) {
		const struct roster_row *row = t->named[stand][i];

		buffer_printf(out, "%s%s (%s%s%s)", out->len ? ", " : "", row->host,
			row->silent ? "silent" : receipt_state_name(row->runs->state),
			!row->silent && row->runs->why[0] ? ": " : "",
			row->silent ? "" : row->runs->why);
	}
	if (count > named)
		buffer_printf(out, ", %zu more", count - named);
}

/* Those that got it otherwise, too: before the rollout, or by an operator. */
static size_t count_running(const struct plan *p, const struct tally *t)
{
	size_t runs = t->outside.stands[TALLY_RUNS];

	for (size_t i = 0; i < p->wave_count; i++)
		runs += t->waves[i].stands[TALLY_RUNS];
	return runs;
}

void drive_say_way_back(const char *command, const struct plan *p, const struct tally *t)
{
	size_t runs = count_running(p, t);

	if (p->state == PLAN_ABORTED && !p->version[0])
		cli_note(command,
			"no version had come: what comes is held back by all hosts until another "
			"rollout is started");
	else if (runs)
		cli_note(command,
			"%zu host%s run%s %s: put the version before back on its server, and it "
			"reaches all hosts at once: only %s is held back now",
			runs, plural(runs), runs == 1 ? "s" : "", p->version, p->version);
}

/* ---- decisions, written ---- */

/* Writes the changed plan. What came of it is seen at the next turn. */
static int write_plan(struct drive *d, const struct plan *next)
{
	char why[FILE_WHY];
	int r = place_write(d->o->document, d->o->key, next, d->revision, why);

	d->hurry = r == 0 || r == -EEXIST;
	if (!d->hurry && !d->in_trouble) {
		d->in_trouble = true;
		say_progress(
			d, "cannot write to %s: %s; trying again", etcd_name(d->o->document), why);
	}
	return GO_ON;
}

/* Notes that this command drives it, for `pullet rollout status`. A note that cannot be written
 * stops nothing. */
static void write_note(struct drive *d)
{
	struct place_note note = {.at_ms = loop_sys(d->loop)->wall_ms()};
	uint64_t now_ms = loop_now_ms(d->loop);
	char why[FILE_WHY];
	int r;

	if (d->noted_ms && now_ms - d->noted_ms < DRIVE_NOTE_MS)
		return;
	d->noted_ms = now_ms;
	snprintf(note.driver, sizeof(note.driver), "%s", d->o->driver);
	r = place_write_note(d->o->document, d->o->key, &note, why);
	if (r && !d->note_failed)
		say_progress(d,
			"cannot write %s#driver to %s: %s: `pullet rollout status` does not know "
			"that this command lives",
			d->o->key, etcd_name(d->o->document), why);
	d->note_failed = r;
}

/* Notes that it does no longer. */
static void write_last_note(struct drive *d)
{
	struct place_note note = {.at_ms = 0};
	char why[FILE_WHY];

	if (!d->noted_ms || d->note_failed)
		return;
	snprintf(note.driver, sizeof(note.driver), "%s", d->o->driver);
	etcd_set_deadline(d->o->document, loop_now_ms(d->loop) + LAST_WORD_MS);
	place_write_note(d->o->document, d->o->key, &note, why);
	etcd_set_deadline(d->o->document, 0);
}

static int begin_wave(struct drive *d, size_t wave)
{
	struct plan next = d->plan;

	next.wave = wave;
	return write_plan(d, &next);
}

static int end_plan(struct drive *d, enum plan_state state, const char *why)
{
	struct plan next = d->plan;

	next.state = state;
	next.since_ms = loop_sys(d->loop)->wall_ms();
	snprintf(next.why, sizeof(next.why), "%s", why);
	if (state == PLAN_FINISHED)
		plan_forget_aborted(&next);
	return write_plan(d, &next);
}

static int abort_by_receipts(struct drive *d, const struct tally *t)
{
	const struct roster_row *first = t->named[TALLY_REJECTED][0];
	char text[1024], why[RECEIPT_WHY], limit[16], share[16];
	size_t rejected = t->begun.stands[TALLY_REJECTED];

	plan_percent_text((uint32_t)(rejected * PLAN_WHOLE / t->begun.hosts), share);
	snprintf(text, sizeof(text),
		"%zu of %zu host%s rejected it or rolled it back (%s%%, the limit is %s%%): "
		"%.100s: %s",
		rejected, t->begun.hosts, plural(t->begun.hosts), share,
		plan_percent_text(d->plan.abort_at, limit), first->host, first->runs->why);
	receipt_why(text, why);
	return end_plan(d, PLAN_ABORTED, why);
}

/* ---- one turn ---- */

/* The waves hold until a version is known. */
static int learn_version(struct drive *d, const struct roster_row *rows, size_t count)
{
	struct plan next = d->plan;
	const char *version;
	int found = tally_held_version(&d->plan, rows, count, &version);

	if (!d->hold_announced)
		say_progress(d, found == 0
					? "new versions are held back by all hosts: publish it now"
					: "waiting until all hosts hold the same version");
	d->hold_announced = true;
	if (found != 1)
		return GO_ON;
	snprintf(next.version, sizeof(next.version), "%s", version);
	next.wave = 1;
	return write_plan(d, &next);
}

/* Hosts that have not decided, and are waited for. */
static size_t count_open(const struct drive *d, const struct tally *t)
{
	size_t troubled = t->begun.stands[TALLY_TROUBLED], known = d->baseline[d->plan.wave - 1];

	return t->begun.stands[TALLY_HELD] + t->begun.stands[TALLY_UNDECIDED] +
	       (troubled > known ? troubled - known : 0);
}

static void keep_baseline(struct drive *d, const struct tally *t)
{
	size_t sum = 0;

	if (d->has_baseline)
		return;
	for (size_t i = 0; i < d->plan.wave_count; i++)
		d->baseline[i] = sum += t->waves[i].stands[TALLY_TROUBLED];
	d->has_baseline = true;
	if (sum)
		say_progress(d, "%zu host%s silent, failing or without a version: not waited for",
			sum, sum == 1 ? " is" : "s are");
}

static void announce_wave(struct drive *d, const struct tally *t)
{
	char text[16];

	if (d->wave == d->plan.wave)
		return;
	d->wave = d->plan.wave;
	d->settled_ms = d->open_ms = 0;
	d->said_ms = loop_now_ms(d->loop);
	say_progress(d, "wave %zu of %zu: %s goes to %s%%: %zu host%s", d->wave, d->plan.wave_count,
		d->plan.version, plan_percent_text(plan_percent(&d->plan), text), t->begun.hosts,
		plural(t->begun.hosts));
}

static void append_counts(const struct drive *d, const struct tally *t, struct buffer *out)
{
	buffer_printf(out, "wave %zu of %zu: %zu of %zu host%s run %s", d->plan.wave,
		d->plan.wave_count, t->begun.stands[TALLY_RUNS], t->begun.hosts,
		plural(t->begun.hosts), d->plan.version);
	if (t->begun.stands[TALLY_REJECTED])
		buffer_printf(out, ", %zu rejected it", t->begun.stands[TALLY_REJECTED]);
}

static void say_counts(const struct drive *d, const struct tally *t, const char *tail)
{
	struct buffer line;

	buffer_init(&line, 4096);
	append_counts(d, t, &line);
	say_progress(d, "%s%s", line.data ? line.data : "", tail);
	buffer_fini(&line);
}

static void show_wave_progress(const struct drive *d, const struct tally *t, size_t open)
{
	struct buffer line, clean;

	if (!isatty(STDERR_FILENO))
		return;
	buffer_init(&line, 4096);
	buffer_init(&clean, 4096);
	append_counts(d, t, &line);
	words_text(&clean, line.data ? line.data : "");
	fprintf(stderr, "\r\033[K%s; waiting for %zu", clean.data ? clean.data : "", open);
	buffer_fini(&line);
	buffer_fini(&clean);
}

static void append_open_hosts(struct buffer *out, const struct tally *t)
{
	static const enum tally_stand stands[] = {TALLY_TROUBLED, TALLY_UNDECIDED, TALLY_HELD};

	for (size_t i = 0; i < sizeof(stands) / sizeof(stands[0]); i++)
		append_hosts(out, t, stands[i]);
}

static void say_open_hosts(struct drive *d, const struct tally *t, size_t open)
{
	struct buffer hosts;
	uint64_t now_ms = loop_now_ms(d->loop);

	show_wave_progress(d, t, open);
	if (now_ms - d->said_ms < SAY_EVERY_MS)
		return;
	d->said_ms = now_ms;
	buffer_init(&hosts, 1u << 14);
	append_open_hosts(&hosts, t);
	say_progress(d, "wave %zu of %zu waits for %zu host%s: %s", d->plan.wave,
		d->plan.wave_count, open, plural(open), hosts.data ? hosts.data : "");
	buffer_fini(&hosts);
}

/* No host runs the version yet: a wave that reached nobody, or of which nothing is heard, is no
 * success. */
static int wait_for_first(struct drive *d, const struct tally *t, size_t open)
{
	uint64_t now_ms = loop_now_ms(d->loop);
	char text[1024], why[RECEIPT_WHY], limit[24], share[16];
	struct buffer hosts;
	bool first = !d->vain_ms;

	d->vain_ms = first ? now_ms : d->vain_ms;
	settings_duration_text(d->plan.timeout_ms, limit);
	plan_percent_text(plan_percent(&d->plan), share);
	buffer_init(&hosts, 1u << 14);
	for (int i = TALLY_HELD; i < TALLY_STANDS; i++)
		append_hosts(&hosts, t, (enum tally_stand)i);
	if (!t->begun.hosts)
		snprintf(text, sizeof(text),
			"the waves up to %s%% reach no host that has a receipt: start again with a "
			"larger first wave, or give the agents a `report:`",
			share);
	else
		snprintf(text, sizeof(text), "no host of %zu runs %.64s: %s", t->begun.hosts,
			d->plan.version, hosts.data ? hosts.data : "");
	buffer_fini(&hosts);
	if (now_ms - d->vain_ms >= d->plan.timeout_ms) {
		receipt_why(text, why);
		return end_plan(d, PLAN_PAUSED, why);
	}
	if (first && !open)
		say_progress(d, "%s; waiting for one for %s, then it is paused", text, limit);
	else if (open)
		say_open_hosts(d, t, open);
	return GO_ON;
}

/* Other hosts run the version, these have not decided: among thousands some die for good. */
static int wait_for_open(struct drive *d, const struct tally *t, size_t open)
{
	uint64_t now_ms = loop_now_ms(d->loop);
	char text[1024], why[RECEIPT_WHY], limit[24];
	struct buffer hosts;

	d->open_ms = d->open_ms ? d->open_ms : now_ms;
	if (now_ms - d->open_ms < d->plan.timeout_ms) {
		say_open_hosts(d, t, open);
		return GO_ON;
	}
	buffer_init(&hosts, 1u << 14);
	append_open_hosts(&hosts, t);
	snprintf(text, sizeof(text),
		"%zu host%s not decided in %s (resume goes on without those in "
		"trouble): %s",
		open, open == 1 ? " has" : "s have",
		settings_duration_text(d->plan.timeout_ms, limit), hosts.data ? hosts.data : "");
	buffer_fini(&hosts);
	receipt_why(text, why);
	return end_plan(d, PLAN_PAUSED, why);
}

static int follow_wave(struct drive *d, const struct tally *t)
{
	size_t open = count_open(d, t);
	bool last = d->plan.wave == d->plan.wave_count;
	char every[24], tail[80] = "";

	if (!t->begun.stands[TALLY_RUNS])
		return wait_for_first(d, t, open);
	d->vain_ms = 0;
	if (open)
		return wait_for_open(d, t, open);
	d->open_ms = 0;
	if (last)
		return end_plan(d, PLAN_FINISHED, "");
	if (!d->settled_ms) {
		d->settled_ms = loop_now_ms(d->loop);
		snprintf(tail, sizeof(tail), "; the next wave comes in %s",
			settings_duration_text(d->plan.every_ms, every));
		say_counts(d, t, tail);
	}
	if (loop_now_ms(d->loop) - d->settled_ms < d->plan.every_ms)
		return GO_ON;
	return begin_wave(d, d->plan.wave + 1);
}

/* Notes the digest of the version's bytes, for an abort, as the receipts have it by now. */
static bool learn_digest(struct drive *d, const struct roster_row *rows, size_t count)
{
	const char *digest = tally_digest(rows, count, d->plan.version);
	struct plan next = d->plan;

	if (!digest || strcmp(d->plan.digest, digest) == 0)
		return false;
	snprintf(next.digest, sizeof(next.digest), "%s", digest);
	write_plan(d, &next);
	return true;
}

static int decide_turn(struct drive *d, const struct roster_row *rows, size_t count)
{
	struct tally t;
	size_t rejected;

	if (tally_count(&d->plan, d->o->config, rows, count, 0, &t))
		return cli_error(CLI_FAILED, d->o->command, "out of memory");
	keep_baseline(d, &t);
	if (d->plan.wave == 0)
		return learn_version(d, rows, count);
	announce_wave(d, &t);
	if (learn_digest(d, rows, count))
		return GO_ON;
	rejected = t.begun.stands[TALLY_REJECTED];
	if (rejected &&
		(uint64_t)rejected * PLAN_WHOLE >= (uint64_t)d->plan.abort_at * t.begun.hosts)
		return abort_by_receipts(d, &t);
	return follow_wave(d, &t);
}

/* ---- the end ---- */

/* What is in the document in place of this command's rollout. */
static int say_other(const struct drive *d)
{
	const struct plan *p = &d->plan;
	const struct drive_rollout *o = d->o;
	char text[16];

	switch (p->state) {
	case PLAN_PAUSED:
		if (strcmp(p->driver, o->driver) == 0) /* by its timeout */
			return cli_error(CLI_TIMED_OUT, o->command,
				"paused at %s%%: %s; `pullet rollout resume %s` waits again, "
				"`pullet rollout abort %s` ends it",
				plan_percent_text(plan_percent(p), text), p->why, o->config,
				o->config);
		return cli_error(CLI_FAILED, o->command,
			"paused by %s at %s%%: `pullet rollout resume %s` goes on", p->by,
			plan_percent_text(plan_percent(p), text), o->config);
	case PLAN_ABORTED:
		return cli_error(CLI_FAILED, o->command, "aborted by %s", p->by);
	case PLAN_RUNNING:
		return cli_error(CLI_FAILED, o->command, "%s has taken the rollout over", p->by);
	case PLAN_NONE:
	case PLAN_FINISHED:
	case PLAN_STATES:
		break;
	}
	return cli_error(CLI_FAILED, o->command,
		"somebody replaced or deleted the rollout document %s: it is not driven any more",
		o->key);
}

/* The rollout is over by this command's own decision. */
static int say_end(struct drive *d)
{
	struct roster_row *rows;
	struct roster *roster;
	struct tally t = {.begun = {.hosts = 0}};
	char why[FILE_WHY];
	size_t count;

	if (drive_read_rows(d->o->receipts, d->o->config, &roster, &rows, &count, why) == 0) {
		tally_count(&d->plan, d->o->config, rows, count, 0, &t);
		free(rows);
		roster_free(roster);
	}
	if (d->plan.state == PLAN_FINISHED) {
		say_counts(d, &t, "; the rollout is finished");
		return CLI_OK;
	}
	say_progress(d, "aborted: %s", d->plan.why);
	clear_progress();
	drive_say_way_back(d->o->command, &d->plan, &t);
	return cli_error(CLI_FAILED, d->o->command, "aborted");
}

static int say_interrupted(struct drive *d)
{
	char text[16];

	write_last_note(d);
	clear_progress();
	return cli_error(CLI_FAILED, d->o->command,
		"interrupted: the rollout stays as it is, at %s%% of the hosts, and nobody drives "
		"it: `pullet rollout resume %s` goes on, `pullet rollout abort %s` ends it",
		plan_percent_text(plan_percent(&d->plan), text), d->o->config, d->o->config);
}

/* ---- the loop ---- */

int drive_read_rows(struct etcd *receipts, const char *config, struct roster **ret_roster,
	struct roster_row **ret_rows, size_t *ret_count, char why[FILE_WHY])
{
	const struct follow_calls calls = {.arg = NULL};
	const struct roster_filter filter = {.config = config};
	uint64_t revision;
	int r = follow_read(receipts, &calls, ret_roster, &revision, why);

	if (r)
		return r;
	r = roster_rows(*ret_roster, &filter, ret_rows, ret_count);
	if (r) {
		snprintf(why, FILE_WHY, "out of memory");
		roster_free(*ret_roster);
	}
	return r;
}

/* Says once that an etcd cannot be asked, and once that it can again. */
static int note_trouble(struct drive *d, struct etcd *e, const char *why)
{
	if (!d->in_trouble)
		say_progress(d, "%s: %s; nothing is decided until it answers", etcd_name(e), why);
	d->in_trouble = true;
	return GO_ON;
}

static int read_driven_document(struct drive *d)
{
	char why[FILE_WHY];
	struct plan next;
	int r = place_read(d->o->document, d->o->key, &next, &d->revision, why);

	if (r == -EINVAL)
		return cli_error(CLI_FAILED, d->o->command,
			"somebody replaced the rollout document %s: %s: the hosts hold back what "
			"is new",
			d->o->key, why);
	if (r == -EPROTO)
		return cli_error(CLI_FAILED, d->o->command,
			"somebody replaced the rollout document %s: %s: it is not driven any more",
			d->o->key, why);
	if (r)
		return note_trouble(d, d->o->document, why);
	plan_fini(&d->plan);
	d->plan = next;
	return CLI_OK;
}

static int take_turn(struct drive *d)
{
	struct roster_row *rows;
	struct roster *roster;
	char why[FILE_WHY];
	size_t count;
	int r = read_driven_document(d);

	if (r != CLI_OK)
		return r;
	if (strcmp(d->plan.driver, d->o->driver) != 0 || d->plan.state == PLAN_NONE ||
		d->plan.state == PLAN_PAUSED)
		return say_other(d);
	if (d->plan.state != PLAN_RUNNING)
		return say_end(d);
	write_note(d);
	if (drive_read_rows(d->o->receipts, d->o->config, &roster, &rows, &count, why))
		return note_trouble(d, d->o->receipts, why);
	if (d->in_trouble)
		say_progress(d, "etcd answers again");
	d->in_trouble = false;
	r = decide_turn(d, rows, count);
	free(rows);
	roster_free(roster);
	return r;
}

static void drive_pause_ended(void *arg)
{
	struct drive *d = arg;

	loop_stop(d->loop);
}

static void signal_came(void *arg, int number)
{
	struct drive *d = arg;

	(void)number;
	d->interrupted = true;
	if (d->sleeping) /* a request that is waited for ends first */
		loop_stop(d->loop);
}

static void sleep_a_turn(struct drive *d, uint64_t begun_ms)
{
	uint64_t now_ms = loop_now_ms(d->loop), wait_ms = (now_ms - begun_ms) * (SHARE - 1);

	if (wait_ms < DRIVE_EVERY_MS)
		wait_ms = DRIVE_EVERY_MS;
	loop_timer_set(d->loop, &d->pause, d->hurry ? now_ms : now_ms + wait_ms);
	d->hurry = false;
	d->sleeping = true;
	loop_run(d->loop);
	d->sleeping = false;
	loop_timer_cancel(d->loop, &d->pause);
}

int drive_run(const struct drive_rollout *rollout)
{
	struct drive d = {.o = rollout, .loop = etcd_loop(rollout->receipts)};
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	int r = GO_ON;

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		if (loop_on_signal(d.loop, signals[i], signal_came, &d))
			return cli_error(CLI_FAILED, rollout->command, "out of memory");
	loop_timer_init(&d.pause, drive_pause_ended, &d);
	while (r == GO_ON) {
		uint64_t begun_ms = loop_now_ms(d.loop);

		r = take_turn(&d);
		if (r == GO_ON)
			sleep_a_turn(&d, begun_ms);
		if (r == GO_ON && d.interrupted)
			r = say_interrupted(&d);
	}
	plan_fini(&d.plan);
	return r;
}
