/*
 * The queue is one number: when the server will have worked off all that was accepted.
 *
 * What surprises: a reply is cut off by a fault that begins before it arrives, though the fault
 * begins later than the request.
 */
#include "server.h"

#include "random.h"

#define NS_PER_MS UINT64_C(1000000)

void server_init(struct server *s, const struct scenario *scenario, uint32_t agents,
	uint64_t random, uint32_t *per_second)
{
	uint64_t capacity = (uint64_t)FLEET_CAPACITY * agents / FLEET_UNIT;

	*s = (struct server){
		.scenario = scenario,
		.random = random,
		.capacity = capacity ? capacity : 1,
		.per_second = per_second,
	};
}

static uint64_t latency_ms(struct server *s)
{
	return FLEET_LATENCY_MS + random_upto(&s->random, FLEET_LATENCY_MS);
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Serves a request: takes its place in the queue. False when there is none. */
static bool serve(struct server *s, uint64_t now_ms, bool overloaded, bool must, uint64_t *ret_ms)
{
	uint64_t now_ns = now_ms * NS_PER_MS;
	uint64_t cost_ns = 1000 * NS_PER_MS * (overloaded ? FLEET_OVERLOAD : 1) / s->capacity;

	if (s->free_ns < now_ns)
		s->free_ns = now_ns;
	if (!must && s->free_ns - now_ns >= FLEET_QUEUE_S * 1000 * NS_PER_MS)
		return false;
	s->free_ns += cost_ns;
	*ret_ms = s->free_ns / NS_PER_MS;
	return true;
}

/* How long a long poll that has seen the newest version may rest. */
static struct reply hold(const struct server *s, uint64_t now_ms)
{
	uint32_t next = scenario_version(s->scenario, now_ms) + 1;

	return (struct reply){ANSWER_HELD, 0,
		least(now_ms + FLEET_HELD_MS, scenario_changed_ms(s->scenario, next))};
}

/* A fault that begins before the reply arrives cuts it off. */
static void cut_off(const struct server *s, uint64_t now_ms, uint32_t agent, struct reply *r)
{
	static const struct {
		bool cuts, silently;
	} effects[] = {
		[FAULT_NONE] = {false, false},
		[FAULT_SLOW] = {false, false},
		[FAULT_DOWN] = {true, false},
		[FAULT_UNREACHABLE] = {true, true},
		[FAULT_OVERLOADED] = {false, false},
	};
	const struct scenario *sc = s->scenario;
	uint64_t from_ms = sc->fault_from_s * UINT64_C(1000);

	if (!effects[sc->fault].cuts || now_ms >= from_ms || r->at_ms < from_ms ||
		!scenario_fault(sc, from_ms, agent))
		return;
	r->answer = ANSWER_REFUSED;
	r->at_ms = effects[sc->fault].silently ? UINT64_MAX : from_ms;
}

static struct reply decide_reply(struct server *s, uint64_t now_ms, const struct request *q)
{
	const struct scenario *sc = s->scenario;
	enum fault fault = scenario_fault(sc, now_ms, q->agent) ? sc->fault : FAULT_NONE;
	struct reply r = {.answer = ANSWER_OK};
	uint64_t served_ms;

	if (fault == FAULT_UNREACHABLE)
		return (struct reply){q->held ? ANSWER_REFUSED : ANSWER_UNREACHABLE, 0,
			q->held ? UINT64_MAX : now_ms + FLEET_CONNECT_MS};
	if (!q->held) {
		s->arrived++;
		s->per_second[now_ms / 1000]++;
	}
	if (fault == FAULT_DOWN)
		return (struct reply){ANSWER_REFUSED, 0, now_ms + latency_ms(s)};
	if (q->long_poll && !q->held && q->version == scenario_version(sc, now_ms)) {
		r = hold(s, now_ms);
	} else if (serve(s, now_ms, fault == FAULT_OVERLOADED, q->held, &served_ms)) {
		r.version = scenario_version(sc, served_ms);
		r.at_ms = served_ms + (fault == FAULT_SLOW ? FLEET_SLOW_MS : latency_ms(s));
	} else {
		r.answer = ANSWER_BUSY;
		r.at_ms = now_ms + latency_ms(s);
	}
	cut_off(s, now_ms, q->agent, &r);
	return r;
}

void server_ask(struct server *s, struct request *q)
{
	q->reply = decide_reply(s, q->at_ms, q);
}

uint64_t server_foresight_ms(const struct scenario *s)
{
	uint64_t every_ms = s->change_every_ms ? s->change_every_ms : FLEET_LATENCY_MS;

	return least(every_ms, FLEET_LATENCY_MS);
}
