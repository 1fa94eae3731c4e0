/*
 * The ledger's file: read at the start, written after each decision.
 */
#include "config/core.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void report_unsaved(struct config *c, const char *why)
{
	struct unsaved *u = c->decisions.unsaved_note;
	unsigned n = 0;

	if (!u)
		u = c->decisions.unsaved_note = calloc(1, sizeof(*u));
	if (u)
		snprintf(u->why, sizeof(u->why), "%s", why);
	if (!u || log_limit_pass(&u->limit, c->env->sys->now_ms(), why, &n))
		log_err("cannot save rejections, pins and overrides: they will be lost on restart",
			"config", c->settings->name, "why", why, "repeated", n ? LOG_U64(n) : NULL);
}

void decisions_forget_unsaved(struct config *c)
{
	free(c->decisions.unsaved_note);
	c->decisions.unsaved_note = NULL;
}

int decisions_save(struct config *c)
{
	char why[FILE_WHY];
	int r, dir = store_dir(c->current.store);

	r = dir < 0 ? dir
		    : ledger_save(c->decisions.ledger, c->env->sys, dir, c->settings->strict, why);
	if (dir >= 0)
		c->env->sys->close(dir);
	else
		snprintf(why, sizeof(why), "the state directory: %s", strerror(-dir));
	c->decisions.unsaved = r != 0;
	if (r)
		report_unsaved(c, why);
	else
		decisions_forget_unsaved(c);
	if (r == 0 && !c->settings->strict)
		syncing_ask(c, SYNCING_LEDGER);
	decisions_await_expiry(c);
	return r;
}

int decisions_save_asked(struct config *c, char why[FILE_WHY])
{
	if (decisions_save(c) == 0)
		return 0;
	snprintf(why, FILE_WHY,
		"done, but not saved: it will be lost on restart (the log says why)");
	return -EIO;
}

int decisions_open(struct config *c, char why[FILE_WHY])
{
	int r, dir;

	if (c->decisions.ledger)
		return 0;
	r = dir = store_dir(c->current.store);
	if (dir >= 0) {
		r = ledger_load(c->env->sys, dir, &c->decisions.ledger);
		c->env->sys->close(dir);
	}
	if (r == -EIO && current_is_patient(c)) {
		ledger_free(c->decisions.ledger);
		c->decisions.ledger = NULL;
	} else if (c->decisions.ledger && r) {
		log_err("the ledger cannot be read: pins and rejections are forgotten", "config",
			c->settings->name);
		r = 0;
	}
	if (r)
		snprintf(why, FILE_WHY, "the ledger: %s", strerror(-r));
	else if (c->decisions.ledger->others)
		log_warn("the ledger is of a newer version: keeping what is not known here",
			"config", c->settings->name);
	return r;
}
