/*
 * All is arithmetic: nobody's answer changes what a relay does, so each moment is known beforehand.
 *
 * What surprises: a leaf that is down and one that never hears are different. The agents of the
 * first notice, for their connection is gone.
 */
#include "tree.h"

#include "random.h"

#define NS_PER_MS UINT64_C(1000000)
#define HOP_NS (TREE_HOP_US * UINT64_C(1000))
#define BELOW (TREE_LEAVES / TREE_TOPS) /* leaves of each top */
#define RECONNECT_MAX_MS 60000u         /* of libzmq's, as agent/push/subscriber.c sets it */

uint64_t tree_reconnect_ms(uint64_t *random, uint64_t spread_ms, uint64_t from_ms, uint64_t to_ms)
{
	uint64_t first_ms = 2000 + random_upto(random, spread_ms), pause_ms = first_ms;

	while (from_ms < to_ms) {
		from_ms += pause_ms + random_upto(random, first_ms);
		pause_ms = pause_ms * 2 < RECONNECT_MAX_MS ? pause_ms * 2 : RECONNECT_MAX_MS;
	}
	return from_ms;
}

/* When a message that was taken up at from_ns is with number `place` of those connected. */
static uint64_t pass_on(uint64_t from_ns, uint32_t place)
{
	return from_ns + (place + 1) * (uint64_t)TREE_COPY_NS + HOP_NS;
}

/* Tops are down from the first on, leaves from the last. */
void tree_init(struct tree *t, const struct scenario *s, uint32_t agents, uint64_t seed, bool quiet)
{
	*t = (struct tree){.scenario = s, .agents = agents};
	for (uint32_t leaf = 0; leaf < TREE_LEAVES; leaf++) {
		uint32_t top = leaf / BELOW;
		uint64_t back_ms = tree_reconnect_ms(&seed, TREE_RECONNECT_SPREAD_MS, s->change_ms,
			s->change_ms + TREE_RESTART_MS);

		if (leaf >= TREE_LEAVES - s->leaves_down)
			t->heard_ns[leaf] = UINT64_MAX;
		else if (top >= s->tops_down)
			t->heard_ns[leaf] =
				pass_on(pass_on(s->change_ms * NS_PER_MS, top), leaf % BELOW);
		else
			t->heard_ns[leaf] = quiet ? UINT64_MAX : back_ms * NS_PER_MS;
	}
}

static uint32_t leaf_of(const struct tree *t, uint32_t agent)
{
	return (uint32_t)((uint64_t)agent * TREE_LEAVES / t->agents);
}

bool tree_is_cut_off(const struct tree *t, uint32_t agent)
{
	return leaf_of(t, agent) >= TREE_LEAVES - t->scenario->leaves_down;
}

uint64_t tree_heard_ms(const struct tree *t, uint32_t agent)
{
	uint32_t leaf = leaf_of(t, agent);
	uint32_t first = (uint32_t)(((uint64_t)leaf * t->agents + TREE_LEAVES - 1) / TREE_LEAVES);

	if (t->heard_ns[leaf] == UINT64_MAX)
		return UINT64_MAX;
	return (pass_on(t->heard_ns[leaf], agent - first) + NS_PER_MS - 1) / NS_PER_MS;
}
