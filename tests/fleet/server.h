/*
 * The modelled server: what becomes of a request, and when.
 *
 * A first-in-first-out queue in front of a fixed capacity, a latency on top, and one fault of the
 * scenario. A request that waits is served even when its client has given up. A 503 costs the
 * server nothing. All that is known when a request arrives is decided then.
 */
#ifndef FLEET_SERVER_H
#define FLEET_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "scenario.h"

enum answer {
	ANSWER_OK,          /* the document, or "unchanged" */
	ANSWER_BUSY,        /* 503 */
	ANSWER_REFUSED,     /* connection refused or reset */
	ANSWER_UNREACHABLE, /* no connection came about within its limit */
	ANSWER_TIMEOUT,     /* nothing came within the time limit of the pull */
	ANSWER_HELD,        /* a long poll waits: ask again at this moment */
	ANSWERS
};

struct reply {
	enum answer answer;
	uint32_t version; /* of an ANSWER_OK */
	uint64_t at_ms;   /* the client has it; UINT64_MAX: it never comes */
};

struct server {
	const struct scenario *scenario;
	uint64_t random;
	uint64_t capacity; /* requests a second */
	uint64_t free_ns;  /* the queue is empty from then on */
	uint64_t arrived;  /* requests that reached it */
	uint32_t *per_second;
};

struct request {
	uint64_t at_ms; /* sent */
	uint32_t agent;
	uint32_t version; /* the one that the client has */
	bool long_poll;
	bool held; /* it was held and goes on now */
	struct reply reply;
};

/* per_second: one counter for each second of the scenario. */
void server_init(struct server *s, const struct scenario *scenario, uint32_t agents,
	uint64_t random, uint32_t *per_second);
/* Fills in the reply. Requests come in the order of their moments. */
void server_ask(struct server *s, struct request *r);
/* Never does a reply come sooner after its request than this, unless it comes with a change or with
 * the beginning of a fault, which both fall on a multiple of it. */
uint64_t server_foresight_ms(const struct scenario *s);

#endif
