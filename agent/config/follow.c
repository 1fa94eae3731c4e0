/*
 * What follows a publication: the application is notified, then watched by its probe.
 *
 * Surprising: a probe that fails publishes nothing. It says what it saw, in the ledger, and the
 * table decides.
 */
#include "config/core.h"

#include <stdio.h>

/* Same bytes as the last good version, so the overrides are at fault. */
static bool are_overrides_at_fault(struct config *c, uint64_t good)
{
	struct candidate *v = c->current.overrides ? candidate_new() : NULL;
	char why[FILE_WHY];
	unsigned damaged;
	bool same = v && candidate_load(v, c->current.store, good, &damaged, why) == 0 &&
		    version_same(&v->version, &c->current.version);

	candidate_free(v);
	return same;
}

static void drop_overrides(struct config *c, const char *why)
{
	struct ledger *l = c->decisions.ledger;

	config_report_failure(c, "the overrides failed the probe and are removed", why);
	while (l->override_count)
		ledger_drop_override(l, l->overrides[l->override_count - 1].key);
	c->decisions.overrides_why = "probe: the overrides were bad, and are removed";
	c->decisions.overrides_bad = true;
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
	config_report_failure(c,
		c->decisions.ledger->pin.by
			? "the version fails its probe, and is pinned: it stays until the unpin"
			: "the version failed its probe and was rolled back",
		why);
	decisions_reject(c, c->current.version.sha256, rejection_name(REJECTED_BY_PROBE), "", why);
}

static void probe_failed(void *arg, uint64_t generation, const char *why)
{
	struct config *c = arg;
	uint64_t older;

	if (generation != c->current.version.generation)
		return;
	older = current_find_older(c);
	if (!older)
		keep_harmful(c, why);
	else if (are_overrides_at_fault(c, older))
		drop_overrides(c, why);
	else
		reject_current(c, why);
	config_settle(c);
}

static void ledger_changed(void *arg)
{
	decisions_save(arg);
}

static const struct notify_calls notify_calls = {ledger_changed, probe_failed, scrub_output};

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
