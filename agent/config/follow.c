/*
 * What follows a publication: the application is notified, then watched by its probe.
 *
 * Surprising: a probe that fails publishes nothing. It says what it saw, in the ledger, and the
 * table decides.
 */
#include "config/core.h"

#include <stdio.h>
#include <string.h>

/* What a probe that failed with overrides in force says about them. */
enum overrides_word {
	OVERRIDES_GOOD, /* the older version was good with them, or there are none */
	OVERRIDES_SUSPECT,
	OVERRIDES_BAD /* the same bytes were good without them */
};

/* Compares the current bytes and overrides, as a pair, with those of the older version. */
static enum overrides_word compare_overrides(struct config *c, uint64_t older)
{
	struct candidate *v = c->current.overrides ? candidate_new() : NULL;
	enum overrides_word word = OVERRIDES_GOOD;
	struct ledger *decided = NULL;
	char why[FILE_WHY];
	const char *text;
	unsigned damaged;

	if (v && candidate_load(v, c->current.store, older, &damaged, why) == 0) {
		bool same = version_same(&v->version, &c->current.version);

		text = v->version.decisions;
		if (text && text[0] && ledger_read(text, strlen(text), &decided))
			text = NULL; /* unknown, as in a state file of 0.1.0 */
		if (same && (!decided || !decided->override_count))
			word = older == c->decisions.ledger->proven ? OVERRIDES_BAD
								    : OVERRIDES_SUSPECT;
		else if (text && !ledger_same_overrides(decided, c->current.overrides))
			word = OVERRIDES_SUSPECT;
		ledger_free(decided);
	}
	candidate_free(v);
	return word;
}

/* What comes back is composed without them; it is probed, unless it was good before. */
static void drop_overrides(struct config *c, enum overrides_word word, const char *why)
{
	struct ledger *l = c->decisions.ledger;

	config_report_failure(c, "the overrides failed the probe and are removed", why);
	while (l->override_count)
		ledger_drop_override(l, l->overrides[l->override_count - 1].key);
	c->decisions.overrides_why = "probe: the overrides were bad, and are removed";
	c->decisions.overrides_bad = word == OVERRIDES_BAD;
	decisions_forgive_checks(c);
	decisions_save(c);
}

static void keep_harmful(struct config *c, const char *why)
{
	log_err("the version fails its probe, and there is no older one to go back to", "config",
		c->settings->name, "generation", LOG_U64(c->current.version.generation));
	config_report_failure(c, "the version fails its probe, and there is no older one", why);
}

static void reject_current(struct config *c, const char *why)
{
	char *sha256 = c->current.version.sha256;

	decisions_reject(c, sha256, rejection_name(REJECTED_BY_PROBE), "", why);
	if (!current_find_older(c)) { /* all older ones have the same bytes, or failed as well */
		ledger_forgive(c->decisions.ledger, sha256);
		decisions_save(c);
		keep_harmful(c, why);
		return;
	}
	config_report_failure(c,
		c->decisions.ledger->pin.by
			? "the version fails its probe, and is pinned: it stays until the unpin"
			: "the version failed its probe and was rolled back",
		why);
}

static void probe_failed(void *arg, uint64_t generation, const char *why)
{
	struct config *c = arg;
	enum overrides_word word;
	uint64_t older;

	if (generation != c->current.version.generation)
		return;
	run_forget_cause(c);
	older = current_find_older(c);
	word = older ? compare_overrides(c, older) : OVERRIDES_GOOD;
	if (!older)
		keep_harmful(c, why);
	else if (word != OVERRIDES_GOOD)
		drop_overrides(c, word, why);
	else
		reject_current(c, why);
	config_settle(c);
}

static void ledger_changed(void *arg)
{
	decisions_save(arg);
}

static void note_notify_event(void *arg, enum notify_event what, const char *why)
{
	static const enum event_kind kinds[] = {
		[NOTIFY_RELOADED] = EVENT_RELOADED,
		[NOTIFY_RELOAD_FAILED] = EVENT_RELOAD_FAILED,
		[NOTIFY_PROBE_PASSED] = EVENT_PROBE_PASSED,
		[NOTIFY_PROBE_FAILED] = EVENT_PROBE_FAILED,
	};

	events_note(arg, kinds[what], NULL, why[0] ? why : NULL);
}

static const struct notify_calls notify_calls = {
	ledger_changed, probe_failed, note_notify_event, scrub_output};

void current_start_notify(struct config *c)
{
	const struct notify_options options = {
		.loop = c->env->loop,
		.transport = c->env->pull.exchange.transport,
		.ca_file = c->env->pull.exchange.ca_file,
		.config = c->settings,
		.ledger = c->decisions.ledger,
		.current = c->current.version.generation,
		.calls = &notify_calls,
		.arg = c,
	};

	if (!c->current.notify && c->decisions.ledger && !c->env->once &&
		notify_wanted(c->settings)) {
		c->current.notify = notify_new(&options);
		if (!c->current.notify)
			log_err("out of memory: the application will not be notified", "config",
				c->settings->name);
	}
}
