/*
 * What operators ask for: pin, suspension, rollback, overrides.
 *
 * Surprising: a pin or a suspension is decided here and now; a rollback and overrides are requests,
 * which change nothing until their version is visible: one that fails leaves only lines in the log.
 */
#include "config/core.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "settings/form.h"
#include "settings/value.h"
#include "text/escape.h"
#include "text/sentence.h"

/* ---- sentences ---- */

static int say_no_memory(char why[FILE_WHY])
{
	snprintf(why, FILE_WHY, "out of memory");
	return -ENOMEM;
}

static int check_reason(const char *reason, char why[FILE_WHY])
{
	bool bad = strlen(reason) > CONFIG_MAX_REASON;

	for (const char *p = reason; *p && !bad; p++)
		bad = (unsigned char)*p < ' ' || *p == 0x7f;
	if (!bad)
		return 0;
	snprintf(why, FILE_WHY, "the reason must be at most %d bytes without control characters",
		CONFIG_MAX_REASON);
	return -EINVAL;
}

int operate_check_published(const struct config *c, char why[FILE_WHY])
{
	if (c->current.version.generation && c->decisions.ledger && c->current.store)
		return 0;
	snprintf(why, FILE_WHY, "nothing is published yet");
	return -ENODATA;
}

int config_check_change(const struct config *c, const char *reason, char why[FILE_WHY])
{
	int r = operate_check_published(c, why);

	if (r == 0)
		r = check_reason(reason, why);
	if (r == 0 && (c->decisions.request || c->mode == MODE_RETIRING)) {
		snprintf(why, FILE_WHY,
			"another change of this config is under way: try again when it has ended");
		r = -EBUSY;
	}
	return r;
}

/* "WHAT by uid 0 for 2h: reason"; tail and reason may be "". */
static char *make_origin(const char *what, const char *by, const char *tail, const char *reason)
{
	char *text;

	if (asprintf(&text, "%s by %s%s%s%s", what, by, tail, reason[0] ? ": " : "", reason) < 0)
		return NULL;
	return text;
}

/* ---- a request ---- */

/* Takes origin, verdict and overrides. 0 or -ENOMEM with a sentence. */
static int begin_request(struct config *c, struct request *q, char why[FILE_WHY])
{
	struct request *request = malloc(sizeof(*request));

	if (!request || !q->origin || (q->kind == REQUEST_ROLL_BACK && !q->verdict)) {
		request_fini(q);
		free(request);
		return say_no_memory(why);
	}
	free(c->decisions.error);
	c->decisions.error = NULL;
	c->decisions.failed = false;
	memcpy(q->about, c->current.version.sha256, sizeof(q->about));
	*request = *q;
	c->decisions.request = request;
	config_settle(c);
	return 0;
}

void config_wait_change(struct config *c, struct config_waiter *w)
{
	config_wait(c, w);
	w->after = CONFIG_CHANGE;
}

const char *config_change_error(const struct config *c)
{
	if (!c->decisions.failed)
		return NULL;
	return c->decisions.error ? c->decisions.error : "out of memory";
}

/* 0, or -ENODATA with a sentence: what was decided is not known. */
static int check_ledger(const struct config *c, char why[FILE_WHY])
{
	if (c->decisions.ledger && c->current.store)
		return 0;
	snprintf(why, FILE_WHY, "its state directory cannot be used: the log says why");
	return -ENODATA;
}

/* ---- pin ---- */

static int64_t deadline_ms(const struct config *c, uint64_t for_ms)
{
	int64_t now_ms = c->env->sys->wall_ms();

	if (for_ms == 0 || for_ms >= (uint64_t)(LEDGER_FOREVER - now_ms))
		return LEDGER_FOREVER;
	return now_ms + (int64_t)for_ms;
}

/* The disk takes another version than the current one. */
static bool is_replacing(const struct config *c)
{
	return c->step.publishing && c->step.decision.action != ACTION_HEAL;
}

/* While the disk takes a version a pin is about that one. */
static const struct version *find_pinned_version(const struct config *c)
{
	return is_replacing(c) ? &c->step.candidate->version : &c->current.version;
}

/* What is answered as done in strict outlives a power cut: the pinned bytes are on the disk. */
static int check_pinnable(const struct config *c, char why[FILE_WHY])
{
	if (!c->settings->strict || !is_replacing(c))
		return 0;
	snprintf(why, FILE_WHY, "a version is on its way to the disk: try again when it is there");
	return -EBUSY;
}

uint64_t config_pinned_generation(const struct config *c)
{
	return find_pinned_version(c)->generation;
}

int config_pin(
	struct config *c, uint64_t for_ms, const char *by, const char *reason, char why[FILE_WHY])
{
	const struct version *pinned = find_pinned_version(c);
	char text[24];
	int r = operate_check_published(c, why);

	if (r == 0)
		r = check_reason(reason, why);
	if (r == 0)
		r = check_pinnable(c, why);
	if (r)
		return r;
	if (ledger_pin(c->decisions.ledger, deadline_ms(c, for_ms), by, reason, pinned->sha256))
		return say_no_memory(why);
	r = decisions_save_asked(c, why);
	log_info("pinned: keeping the current version", "config", c->settings->name, "generation",
		LOG_U64(pinned->generation), "by", by, "reason", sentence_or_null(reason), "for",
		for_ms ? settings_duration_text(for_ms, text) : NULL);
	return r;
}

int config_unpin(struct config *c, const char *by, char why[FILE_WHY])
{
	int r = check_ledger(c, why);

	if (r)
		return r;
	if (!ledger_unpin(c->decisions.ledger)) {
		snprintf(why, FILE_WHY, "it is not pinned");
		return -EALREADY;
	}
	r = decisions_save_asked(c, why);
	log_info("unpinned", "config", c->settings->name, "by", by);
	reason_of_released(c, by);
	config_refresh(c, false);
	config_settle(c);
	return r;
}

/* ---- suspension ---- */

int config_suspend(
	struct config *c, uint64_t for_ms, const char *by, const char *reason, char why[FILE_WHY])
{
	char text[24];
	int r = check_reason(reason, why);

	if (r == 0)
		r = check_ledger(c, why);
	if (r)
		return r;
	if (ledger_suspend(c->decisions.ledger, deadline_ms(c, for_ms), by, reason))
		return say_no_memory(why);
	r = decisions_save_asked(c, why);
	log_info("suspended: no pulls until it resumes", "config", c->settings->name, "by", by,
		"reason", sentence_or_null(reason), "for",
		for_ms ? settings_duration_text(for_ms, text) : NULL);
	run_suspension_began(c);
	return r;
}

int config_resume(struct config *c, const char *by, char why[FILE_WHY])
{
	int r = check_ledger(c, why);

	if (r)
		return r;
	if (!ledger_resume(c->decisions.ledger)) {
		snprintf(why, FILE_WHY, "it is not suspended");
		return -EALREADY;
	}
	r = decisions_save_asked(c, why);
	log_info("resumed", "config", c->settings->name, "by", by);
	run_suspension_ended(c);
	config_note_order(c, CAUSE_OPERATOR, by);
	config_refresh(c, false);
	return r;
}

/* ---- rollback ---- */

int config_roll_back(struct config *c, uint64_t generation, const char *by, const char *reason,
	char why[FILE_WHY])
{
	char what[64];
	struct request q = {.kind = REQUEST_ROLL_BACK, .target = generation};
	int r = config_check_change(c, reason, why);

	if (r == 0 && !c->current.version.sha256[0]) { /* it could not be rejected by that */
		snprintf(why, FILE_WHY,
			"the current version could not be read, and is pulled again: try again "
			"when it was");
		r = -EAGAIN;
	}
	if (r)
		return r;
	snprintf(what, sizeof(what), "rollback to generation %llu", (unsigned long long)generation);
	q.origin = make_origin(what, by, "", reason);
	q.by = strdup(by);
	q.verdict = make_origin("rolled back", by, "", reason);
	log_info("a rollback was asked for", "config", c->settings->name, "from",
		LOG_U64(c->current.version.generation), "to", LOG_U64(generation), "by", by,
		"reason", sentence_or_null(reason));
	return begin_request(c, &q, why);
}

bool config_forget_revs(struct config *c)
{
	const char *check = verify_check_name(CHECK_SIGNATURE);
	bool some = c->decisions.ledger && ledger_forget_revs(c->decisions.ledger, check);

	if (some)
		decisions_save(c);
	config_settle(c);
	return some;
}

/* ---- overrides ---- */

int operate_check_key(const struct config *c, const char *key, char why[FILE_WHY])
{
	bool bytes = c->settings->type == SETTINGS_TYPE_BYTES;
	const char *bad = escape_is_utf8(key) ? settings_check_key(key) : "is not UTF-8";
	char shown[SETTINGS_SHOWN];

	if (bytes || c->settings->dir) {
		snprintf(why, FILE_WHY, "%s: it has no keys",
			bytes ? "it is bytes" : "it is a set of files");
		return -ENOTSUP;
	}
	if (!bad && key[0] && (strchr(" \t", key[0]) || strchr(" \t", key[strlen(key) - 1])))
		bad = "has a blank around it: write KEY=VALUE without";
	if (!bad)
		return 0;
	snprintf(why, FILE_WHY, "the key %s %s", settings_shown(key, shown), bad);
	return -EINVAL;
}

static bool says_null(const char *value)
{
	static const char *const words[] = {"null", "Null", "NULL", "~"};

	value += strspn(value, " \t");
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		size_t len = strlen(words[i]);

		if (strncmp(value, words[i], len) == 0 && !value[len + strspn(value + len, " \t")])
			return true;
	}
	return false;
}

/* An empty value, or one that begins with #, is null in YAML: hardly ever meant. */
static int read_override_value(const char *value, char **ret_json, char why[FILE_WHY])
{
	char *json;
	int r = compose_override_value(value, &json, why);

	if (r)
		return r == -EMSGSIZE ? -EINVAL : r;
	if (strncmp(json + strspn(json, " \n"), "null", 4) == 0 && !says_null(value)) {
		snprintf(why, FILE_WHY,
			"the value is empty: write '' for an empty text, null to remove the key; a "
			"text that begins with # needs quotes");
		r = -EINVAL;
	} else if (strlen(json) > CONFIG_MAX_VALUE) {
		snprintf(why, FILE_WHY, "the value is too long: at most %d bytes as JSON",
			CONFIG_MAX_VALUE);
		r = -EINVAL;
	}
	if (r)
		free(json);
	else
		*ret_json = json;
	return r;
}

/* Sets an override, or drops it (value NULL), and requests a composition. Takes origin. */
static int change_overrides(
	struct config *c, const struct ledger_override *o, char *origin, char why[FILE_WHY])
{
	struct request q = {.kind = REQUEST_OVERRIDES, .origin = origin, .by = strdup(o->by)};
	int r = -ENOMEM;

	q.overrides = decisions_copy_overrides(c->decisions.ledger);
	if (q.overrides && o->value)
		r = ledger_override(q.overrides, o->key, o->value, o->until_ms, o->by, o->reason);
	else if (q.overrides)
		r = ledger_drop_override(q.overrides, o->key) ? 0 : -ENOENT;
	if (r == 0)
		return begin_request(c, &q, why);
	request_fini(&q);
	if (r != -ENOSPC)
		return say_no_memory(why);
	snprintf(why, FILE_WHY, "there are %d overrides already: remove one", LEDGER_MAX_OVERRIDES);
	return r;
}

int config_override(struct config *c, const char *key, const char *value, uint64_t for_ms,
	const char *by, const char *reason, char why[FILE_WHY])
{
	char what[SETTINGS_MAX_KEY + 32], tail[32] = " for ", *json = NULL;
	struct ledger_override o = {.key = (char *)(uintptr_t)key,
		.by = (char *)(uintptr_t)by,
		.reason = (char *)(uintptr_t)reason,
		.until_ms = deadline_ms(c, for_ms)};
	int r = config_check_change(c, reason, why);

	if (r == 0)
		r = operate_check_key(c, key, why);
	if (r == 0 && for_ms == 0) {
		snprintf(why, FILE_WHY, "an override has an end: say for how long it is");
		r = -EINVAL;
	}
	if (r == 0)
		r = read_override_value(value, &json, why);
	if (r)
		return r;
	settings_duration_text(for_ms, tail + strlen(tail));
	snprintf(what, sizeof(what), "override of %s", key);
	log_info("an override was asked for", "config", c->settings->name, "key", key, "by", by,
		"reason", sentence_or_null(reason), "for", tail + strlen(" for "));
	o.value = json;
	r = change_overrides(c, &o, make_origin(what, by, tail, reason), why);
	free(json);
	return r;
}

int config_drop_override(struct config *c, const char *key, const char *by, char why[FILE_WHY])
{
	struct ledger_override o = {.key = (char *)(uintptr_t)key, .by = (char *)(uintptr_t)by};
	char what[SETTINGS_MAX_KEY + 32];
	int r = config_check_change(c, "", why);

	for (size_t i = 0; r == 0 && i < c->decisions.ledger->override_count; i++)
		if (strcmp(c->decisions.ledger->overrides[i].key, key) == 0) {
			snprintf(what, sizeof(what), "override of %s removed", key);
			log_info("an override is to be removed", "config", c->settings->name, "key",
				key, "by", by);
			return change_overrides(c, &o, make_origin(what, by, "", ""), why);
		}
	if (r)
		return r;
	snprintf(why, FILE_WHY, "there is no override of that key: `pullet status %s` lists them",
		c->settings->name);
	return -ENOENT;
}
