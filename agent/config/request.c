/*
 * The operator's open request: how it ends.
 *
 * Surprising: it changes nothing until its version is committed, so that a refusal undoes nothing.
 */
#include "config/core.h"

#include <stdlib.h>
#include <string.h>

void request_fini(struct request *q)
{
	ledger_free(q->overrides);
	free(q->origin);
	free(q->by);
	free(q->verdict);
}

void request_drop(struct config *c)
{
	struct request *q = c->decisions.request;

	c->decisions.request = NULL;
	if (!q)
		return;
	request_fini(q);
	free(q);
}

void request_answer(struct config *c, const char *why)
{
	if (!c->decisions.request)
		return;
	request_drop(c);
	free(c->decisions.error);
	c->decisions.failed = why;
	c->decisions.error = why ? strdup(why) : NULL;
	config_wake_waiters(c, CONFIG_ANY, CONFIG_CHANGE);
}

bool request_supersede(struct config *c)
{
	const struct request *q = c->decisions.request;

	if (!q || q->kind != REQUEST_ROLL_BACK || strcmp(q->about, c->current.version.sha256) == 0)
		return false;
	log_info("not rolled back: another version was published meanwhile", "config",
		c->settings->name, "what", q->origin);
	request_answer(c, "another version was published meanwhile: check it and try again");
	return true;
}

void request_cancel(struct config *c)
{
	static const char why[] = "a new configuration changes this config, or removes it, and "
				  "this was not done yet: ask again";

	if (!c->decisions.request ||
		(c->step.publishing && c->step.decision.origin == ORIGIN_OPERATOR))
		return;
	log_warn("change cancelled", "config", c->settings->name, "why", why);
	request_answer(c, why);
}
