/*
 * What happened to configs of late: publications, rejections, failures, decisions, reloads, probes.
 * For people who look at one config (GET /v1/configs/NAME/events); nothing is decided by it.
 *
 * Surprising: all configs share one list, found by a hash of their names, so that a config that a
 * new configuration changes keeps its events, and ten thousand quiet configs cost nothing. What the
 * history has anyway is not in it: the first pull of an agent, and its start.
 *
 * Threads: the loop's. Ownership: texts are copied. Bounds: EVENTS_MAX of an agent and
 * EVENTS_A_CONFIG of a config, the oldest goes first; texts of EVENTS_MAX_TEXT bytes. The same
 * again, with nothing between, is counted, not added. Errors: none; what there is no memory for is
 * not kept.
 */
#ifndef PULLET_EVENTS_H
#define PULLET_EVENTS_H

#include "lib/buffer.h"
#include "config/config.h"
#include "text/sentence.h"

#define EVENTS_MAX 2048
#define EVENTS_A_CONFIG 50
#define EVENTS_MAX_TEXT 512

enum event_kind {
	EVENT_PUBLISHED, /* by its cause; text: its origin, or the operator who asked for the pull
			  */
	EVENT_REJECTED,  /* by a check */
	EVENT_HELD,      /* by a pin or a rollout */
	EVENT_FAILED,    /* a pull, or a step */
	EVENT_RECOVERED,
	EVENT_DECIDED, /* an operator, or the end of what was decided */
	EVENT_RESTORED,
	EVENT_RELOADED,
	EVENT_RELOAD_FAILED,
	EVENT_PROBE_PASSED,
	EVENT_PROBE_FAILED,
	EVENT_KINDS
};

struct events;

/* NULL when there is no memory. */
struct events *events_new(void);
void events_free(struct events *e);
/* Adds one of this config to those of its agent, if it has some. by: a constant, or NULL; text: a
 * sentence, or NULL. */
void events_note(const struct config *c, enum event_kind kind, const char *by, const char *text);
/* A verdict of this check; that of a probe is an event already. check: a constant. */
void events_note_verdict(const struct config *c, const char *check, const char *why);
/* {"name","events":[{"at_ms","event","generation","by","text","times"}...]}, newest first: at_ms:
 * wall clock, of the last time; event: the name of its kind; generation: the current one then; by,
 * text: or null; times: at least 1. The public sees what operators and pulls did, and "see the
 * control socket for the reason" in place of other texts. 0 or the buffer's error. */
int events_write(const struct config *c, enum audience audience, struct buffer *out);

#endif
