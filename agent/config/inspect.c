/*
 * The versions that are kept. Surprising: everything is read from the state directory again and
 * composed as for a publication; nothing of a document is kept in memory for this.
 */
#include "config/inspect.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/core.h"
#include "config/explain.h"
#include "text/json_writer.h"
#include "text/sentence.h"

#define MAX_LEDGER (16u << 20)
#define MAX_FORWARD (16u << 10)

int inspect_check_room(const struct buffer *out, char why[FILE_WHY])
{
	if (out->error)
		snprintf(why, FILE_WHY, "%s",
			out->error == -EMSGSIZE ? "the answer is too long" : strerror(-out->error));
	return out->error;
}

char *const *inspect_mask(const struct config *c, bool values)
{
	static char all[] = "*";
	static char *const everything[] = {all, NULL};

	return values ? c->settings->mask : everything;
}

/* ---- copies ---- */

static int copy_ledger(const struct ledger *l, struct ledger **ret_ledger)
{
	struct buffer text;
	int r;

	*ret_ledger = NULL;
	if (!l)
		return 0;
	buffer_init(&text, MAX_LEDGER);
	r = ledger_write(l, &text);
	if (r == 0)
		r = ledger_read(text.data, text.len, ret_ledger);
	buffer_fini(&text);
	return r;
}

static bool is_of_rollback(const struct version *v)
{
	return v->cause == CAUSE_ROLLBACK || v->cause == CAUSE_PROBE;
}

int inspect_begin(struct config *c, struct inspection *ret, char why[FILE_WHY])
{
	int r;

	*ret = (struct inspection){.config = c};
	buffer_init(&ret->forward, MAX_FORWARD);
	r = copy_ledger(c->decisions.ledger, &ret->ledger);
	if (r == 0)
		r = version_copy(&c->current.version, &ret->published);
	if (r == 0 && is_of_rollback(&ret->published))
		r = explain_forward(c, &ret->forward);
	if (r == 0)
		return 0;
	inspect_end(ret);
	snprintf(why, FILE_WHY, "out of memory");
	return -ENOMEM;
}

void inspect_end(struct inspection *i)
{
	ledger_free(i->ledger);
	version_fini(&i->published);
	buffer_fini(&i->forward);
	candidate_free(i->held);
	free(i->held_why);
	i->ledger = NULL;
}

int inspect_unchanged(const struct inspection *i, char why[FILE_WHY])
{
	if (i->published.generation == i->config->current.version.generation)
		return 0;
	snprintf(why, FILE_WHY, "another version was published meanwhile: check it and try again");
	return -EAGAIN;
}

int inspect_check_published(const struct inspection *i, char why[FILE_WHY])
{
	if (i->published.generation && i->ledger && i->config->current.store)
		return 0;
	snprintf(why, FILE_WHY, "nothing is published yet");
	return -ENODATA;
}

/* ---- versions ---- */

void inspect_write_facts(struct buffer *out, const struct version *v)
{
	const char *etag = v->parts[0].etag;
	char url[LOG_URL_SIZE];

	if (v->generation)
		json_writer_number(out, "generation", v->generation);
	else
		json_writer_null(out, "generation");
	if (v->published_ms)
		json_writer_number(out, "published_ms", (unsigned long long)v->published_ms);
	else
		json_writer_null(out, "published_ms");
	json_writer_text(out, "cause", version_cause_name(v->cause));
	json_writer_text(out, "by", v->by);
	json_writer_number(out, "pulled_ms", (unsigned long long)v->pulled_ms);
	json_writer_text(out, "sha256", v->sha256);
	json_writer_text(out, "origin", v->origin);
	json_writer_begin_array(out, "urls");
	for (size_t i = 0; i < v->part_count; i++) {
		const struct part *p = &v->parts[i];

		if (p->absent || strcmp(p->type, "minisig") == 0)
			continue;
		json_writer_text(out, NULL, log_url_text(url, p->url));
	}
	json_writer_end_array(out);
	json_writer_text(out, "version", etag[0] ? etag : NULL);
	json_writer_number(out, "bytes", version_bytes(v));
}

void inspect_write_override(struct buffer *out, const struct ledger_override *o)
{
	json_writer_text(out, "key", o->key);
	json_writer_text(out, "by", o->by);
	json_writer_text(out, "reason", o->reason);
	if (o->until_ms == LEDGER_FOREVER)
		json_writer_text(out, "until_ms", NULL);
	else
		json_writer_number(out, "until_ms", (unsigned long long)o->until_ms);
}

static void write_verdict(
	struct buffer *out, const struct ledger *l, const struct version *v, enum audience audience)
{
	for (size_t i = 0; i < l->verdict_count; i++) {
		if (strcmp(l->verdicts[i].sha256, v->sha256) != 0)
			continue;
		json_writer_begin_object(out, "rejected");
		json_writer_text(out, "by", l->verdicts[i].check);
		if (audience != AUDIENCE_PUBLIC)
			sentence_member(out, "why", l->verdicts[i].why, audience);
		json_writer_end_object(out);
		return;
	}
}

/* Returns how many bytes it has read. */
static size_t write_version(
	const struct inspection *i, uint64_t generation, enum audience audience, struct buffer *out)
{
	struct candidate *v = candidate_new();
	char why[FILE_WHY] = "out of memory";
	unsigned damaged;
	size_t bytes = 0;

	json_writer_begin_object(out, NULL);
	if (!v || candidate_load(v, i->config->current.store, generation, &damaged, why)) {
		json_writer_number(out, "generation", generation);
		sentence_member(out, "error", why, audience);
	} else {
		inspect_write_facts(out, &v->version);
		if (generation == i->published.generation)
			json_writer_boolean(out, "published", true);
		write_verdict(out, i->ledger, &v->version, audience);
		bytes = v->body.len;
	}
	json_writer_end_object(out);
	candidate_free(v);
	return bytes;
}

int inspect_history(
	const struct inspection *i, enum audience audience, struct buffer *out, char why[FILE_WHY])
{
	uint64_t generations[STORE_MAX_KEEP];
	const struct config *c = i->config;
	size_t count = i->ledger && c->current.store ? store_list(c->current.store, generations)
						     : 0,
	       read = 0, n;

	json_writer_begin_object(out, NULL);
	json_writer_text(out, "name", c->settings->name);
	json_writer_begin_array(out, "versions");
	for (n = 0; n < count && read < INSPECT_MAX_READ; n++) {
		read += write_version(i, generations[n], audience, out);
	}
	json_writer_end_array(out);
	if (n < count)
		json_writer_boolean(out, "truncated", true);
	if (i->forward.len) {
		buffer_append(out, ",", 1);
		buffer_append(out, i->forward.data, i->forward.len);
	}
	json_writer_end_object(out);
	return inspect_check_room(out, why);
}

/* ---- what is held back ---- */

/* The server had the current version when it was asked last: whether that was just now. */
static void say_nothing_held(struct config *c, char why[FILE_WHY])
{
	bool suspended = config_suspended(c);
	struct config_status s;

	config_status(c, &s);
	if (!suspended && !s.last_error[0])
		snprintf(why, FILE_WHY, "nothing is held back: the server has the current version");
	else
		snprintf(why, FILE_WHY,
			"nothing is known to be held back: the server had the current version when "
			"it answered last, %s ago, but %s: `pullet %s %s`",
			EXPLAIN_SPAN(s.age_ms),
			suspended ? "pulls are suspended since" : "the last pull failed",
			suspended ? "resume" : "status", c->settings->name);
}

/* Copies what the servers have and is not current, or was saved and never shown. */
static int copy_held(struct inspection *i, char why[FILE_WHY])
{
	const struct config *c = i->config;
	bool is_new = c->latest.state == LATEST_IS_KEPT || c->latest.state == LATEST_IN_STEP;
	struct candidate *latest = latest_hold_bytes(c); /* the worker may be done with them */

	i->held_generation = is_new ? latest_generation(c) : c->current.saved_generation;
	if (latest)
		i->held = candidate_copy(latest);
	candidate_free(latest);
	if (i->held || i->held_generation)
		return 0;
	if (is_new)
		snprintf(why, FILE_WHY, "out of memory");
	else if (c->latest.state == LATEST_IS_CURRENT)
		say_nothing_held(i->config, why);
	else
		snprintf(why, FILE_WHY,
			"it is not known which version the server has: `pullet %s %s%s` asks it",
			config_suspended(c) ? "resume" : "refresh", c->settings->name,
			config_suspended(c) ? "" : " --wait");
	return is_new ? -ENOMEM : -ENOENT;
}

/* Why it is held, for people. */
static void note_held_reason(struct inspection *i)
{
	struct config *c = i->config;
	struct situation s;
	const char *why = "it is being published";
	enum rejection_reason by;

	settle_read_facts(c, &s);
	by = settle_rejection(c, &s, &why);
	if (by != REJECTION_REASONS)
		i->held_by = rejection_name(by);
	else if (s.latest != LATEST_NEW && s.saved == SAVED_HELD)
		i->held_by = rejection_name(REJECTED_BY_PIN);
	if (by == REJECTION_REASONS && i->held_by)
		why = "pinned";
	else if (by == REJECTION_REASONS && explain_is_resting(&s, ROW_LATEST_IS_PUBLISHED))
		why = "it could not be published, which is tried again at the next pull: the "
		      "status says why";
	else if (by == REJECTION_REASONS && c->step.decision.row != ROW_LATEST_IS_PUBLISHED)
		why = "it is published at the next pull";
	i->held_why = strdup(why); /* NULL: without a reason */
}

int inspect_hold(struct inspection *i, char why[FILE_WHY])
{
	int r = inspect_check_published(i, why);

	if (r == -ENODATA)
		snprintf(why, FILE_WHY,
			"nothing is published yet that the server's version could be compared "
			"with: `pullet explain %s` says why",
			i->config->settings->name);
	if (r == 0)
		r = copy_held(i, why);
	if (r == 0)
		note_held_reason(i);
	return r;
}
