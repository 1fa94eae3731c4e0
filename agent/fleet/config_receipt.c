/*
 * The receipt of one config. Surprising: a rejected version takes precedence over failed pulls, and
 * a failed reload is a failure too.
 */
#include "fleet/config_receipt.h"

#include <stdio.h>
#include <string.h>

#include "config/state.h"
#include "text/sentence.h"

/* A version is being validated, or the application notified or probed. */
static bool is_applying(const struct config *c, const struct config_status *s)
{
	const struct notify_status *a = &s->notify;

	return c->step.decision.row != ROW_NONE ||
	       (s->has_notify && ((a->has_reload && (a->reload.state == RELOAD_WAITING ||
							    a->reload.state == RELOAD_RUNNING)) ||
					 (a->has_probe && (a->probe == PROBE_WAITING ||
								  a->probe == PROBE_RUNNING))));
}

static bool has_failed_reload(const struct config_status *s)
{
	return s->has_notify && s->notify.has_reload && s->notify.reload.state == RELOAD_FAILED;
}

static enum receipt_state state_of_config_status(const struct config_status *s)
{
	static const enum receipt_state table[] = {RECEIPT_FAILING, RECEIPT_STALE, RECEIPT_WAITING};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (strcmp(s->state, receipt_state_name(table[i])) == 0)
			return table[i];
	return RECEIPT_OK;
}

static void describe_decision(const struct ledger_pin *pin, char ret_text[FILE_WHY])
{
	snprintf(ret_text, FILE_WHY, "by %s%s%s", pin->by, pin->reason[0] ? ": " : "", pin->reason);
}

/* The state, and its reason. */
static enum receipt_state choose_receipt_state(
	const struct config *c, const struct config_status *s, char ret_text[FILE_WHY])
{
	enum receipt_state own = state_of_config_status(s);

	ret_text[0] = '\0';
	if (is_applying(c, s))
		return RECEIPT_APPLYING;
	if (s->rejected && s->rejected_by != REJECTED_BY_PIN) {
		snprintf(ret_text, FILE_WHY, "%s: %s", rejection_name(s->rejected_by),
			s->rejected_why);
		return s->held ? RECEIPT_HELD : RECEIPT_REJECTED;
	}
	if (s->suspension) {
		describe_decision(s->suspension, ret_text);
		return RECEIPT_SUSPENDED;
	}
	if (own != RECEIPT_OK) {
		snprintf(ret_text, FILE_WHY, "%s", s->last_error);
		return own;
	}
	if (has_failed_reload(s)) {
		snprintf(ret_text, FILE_WHY, "the reload failed: %s", s->notify.reload.why);
		return RECEIPT_FAILING;
	}
	if (!s->pin)
		return RECEIPT_OK;
	describe_decision(s->pin, ret_text);
	return RECEIPT_PINNED;
}

/* The versions of the layers behind the first one; a signature follows each, if any does. */
static void list_other_versions(const struct config_status *s, char ret_others[RECEIPT_OTHERS])
{
	size_t each = s->settings->verify.public_keys ? 2 : 1, len = 0;
	char version[RECEIPT_VERSION];

	ret_others[0] = '\0';
	for (size_t i = each; i < s->version->part_count; i += each) {
		receipt_version(s->version->parts[i].etag, version);
		if (version[0] && len < RECEIPT_OTHERS)
			len += (size_t)snprintf(ret_others + len, RECEIPT_OTHERS - len, "%s%.64s",
				len ? " " : "", version);
	}
}

void config_receipt_fill(
	struct config *c, struct receipt_config *ret_receipt, struct receipt_texts *texts)
{
	struct config_status s;
	char text[FILE_WHY], shown[FILE_WHY];
	enum receipt_state state;
	bool published;

	config_status(c, &s);
	published = s.version->generation > 0 && s.version->part_count > 0;
	state = choose_receipt_state(c, &s, text);
	snprintf(texts->rejected_digest, sizeof(texts->rejected_digest), "%.16s",
		s.rejected ? s.rejected->sha256 : "");
	receipt_version(published ? s.version->parts[0].etag : "", texts->version);
	receipt_version(s.rejected && s.rejected->part_count ? s.rejected->parts[0].etag : "",
		texts->rejected);
	list_other_versions(&s, texts->others);
	receipt_why(sentence_show(shown, sizeof(shown), text, AUDIENCE_READER), texts->why);
	snprintf(texts->digest, sizeof(texts->digest), "%.16s", published ? s.version->sha256 : "");
	*ret_receipt = (struct receipt_config){
		.name = s.settings->name,
		.generation = s.version->generation,
		.version = texts->version,
		.others = texts->others,
		.digest = texts->digest,
		.state = state,
		.why = texts->why,
		.rejected = texts->rejected,
		.rejected_digest = texts->rejected_digest,
		.pulled_ms = published ? s.version->pulled_ms : 0,
	};
}
