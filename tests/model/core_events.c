/*
 * What may happen in a world: endings of what is under way, and arrivals from outside. A pin, a
 * rollback or an override needs a version that this life has shown; what the server has may change
 * at any moment.
 */
#include "core.h"

#include <string.h>

const char *event_name(enum event event)
{
	static const char *const names[EVENTS] = {"server has a", "server has b", "server has x",
		"tick", "forced refresh", "rollback requested", "override requested", "pinned",
		"unpinned", "overrides expired", "files changed", "rules changed",
		"rollout changed", "crashed", "retired", "pull succeeded", "pull failed",
		"checks ended", "checks failed", "show succeeded", "show failed", "record ended",
		"notify succeeded", "notify failed", "probe ended"};

	return names[event];
}

static void add_event(struct event_list *list, bool may, enum event event)
{
	if (may)
		list->events[list->count++] = event;
}

void endings_add(struct event_list *list, const struct world *w, enum endings which)
{
	bool good = which != ENDINGS_BAD, bad = which != ENDINGS_GOOD;
	bool checking = w->step.row && w->step.phase == PHASE_CHECKING;
	bool showing = w->step.row && w->step.phase == PHASE_SHOWING;
	bool notifying = w->follow == FOLLOW_NOTIFYING || w->follow == FOLLOW_STALE;

	add_event(list, w->pull == PULL_RUNNING && good, EVENT_PULL_SUCCEEDED);
	add_event(list, w->pull == PULL_RUNNING && bad, EVENT_PULL_FAILED);
	add_event(list, checking && good, EVENT_CHECKS_ENDED);
	add_event(list, checking && bad, EVENT_CHECKS_FAILED);
	add_event(list, showing && good, EVENT_SHOW_SUCCEEDED);
	add_event(list, showing && bad, EVENT_SHOW_FAILED);
	add_event(list, w->step.row && w->step.phase == PHASE_RECORDING, EVENT_RECORD_ENDED);
	add_event(list, notifying && good, EVENT_NOTIFY_SUCCEEDED);
	add_event(list, notifying && bad, EVENT_NOTIFY_FAILED);
	add_event(list, w->follow == FOLLOW_PROBING, EVENT_PROBE_ENDED);
}

void arrivals_add(struct event_list *list, const struct profile *p, const struct world *w)
{
	bool active = w->mode == MODE_ACTIVE;
	bool may_ask = w->started && !w->request.what && active;
	bool may_pin = p->can & CAN_PIN;

	for (int i = 0; i < DOCUMENTS - DOCUMENT_A; i++)
		add_event(list, strchr(p->documents, "ABX"[i]) && w->server != DOCUMENT_A + i,
			(enum event)(EVENT_SERVER_HAS_A + i));
	add_event(list, active && (w->pull == PULL_IDLE || w->resting), EVENT_TICK);
	add_event(list, p->can & CAN_FORCE && active && w->pull == PULL_IDLE && !w->pull_forced,
		EVENT_FORCED_REFRESH);
	add_event(list, p->can & CAN_ROLL_BACK && may_ask && w->older, EVENT_ROLLBACK_REQUESTED);
	add_event(list, p->can & CAN_OVERRIDE && may_ask, EVENT_OVERRIDE_REQUESTED);
	add_event(list, may_pin && w->started && !w->pin, EVENT_PINNED);
	add_event(list, may_pin && w->pin, EVENT_UNPINNED);
	add_event(list, p->can & CAN_OVERRIDE && w->overrides, EVENT_OVERRIDES_EXPIRED);
	add_event(
		list, p->can & CAN_CHANGE_FILES && w->current && !w->changed, EVENT_FILES_CHANGED);
	add_event(list, p->can & CAN_CHANGE_RULES, EVENT_RULES_CHANGED);
	add_event(list, p->can & CAN_ROLL_OUT, EVENT_ROLLOUT_CHANGED);
	add_event(list, p->can & CAN_CRASH, EVENT_CRASHED);
	add_event(list, p->can & CAN_RETIRE && active, EVENT_RETIRED);
}
