/*
 * Subscribers that are no agents of ours: they subscribe to anything, and the publisher's record of
 * it must add up. Surprising: that record is what the publisher's memory guard (push/peer_guard.c,
 * not simulated: it is libzmq's side) counts with.
 */
#include <stdlib.h>
#include <string.h>

#include "push/kept_topics.h"
#include "tests/sim/disk.h"
#include "tests/sim/push.h"
#include "tests/sim/subject.h"
#include "tests/sim/world.h"

#define STRANGERS 4
#define ROUNDING 2048 /* of the shares, in bytes: one a topic and holder */

static struct kept_topics kept;
static struct kept_holder strangers[STRANGERS];

/* Few names, so that they are shared; some are the beginning of others, some hold any byte. */
static size_t draw_name(unsigned char name[16])
{
	size_t len = world_random(STREAM_PUSH, 9);

	for (size_t i = 0; i < len; i++)
		name[i] = (unsigned char)("abc\xff"[world_random(STREAM_PUSH, 3)]);
	return len;
}

static void check_sum(void)
{
	size_t cost = kept_topics_cost(&kept), sum = 0;

	for (size_t i = 0; i < STRANGERS; i++)
		sum += kept_topics_share(&strangers[i]);
	if (sum > cost + ROUNDING || cost > sum + ROUNDING)
		subject_report_flaw(
			"the publisher keeps %zu bytes of topics, its subscribers %zu", cost, sum);
}

void push_strangers_act(void)
{
	struct kept_holder *h = &strangers[world_random(STREAM_PUSH, STRANGERS - 1)];
	enum disk_owner owner = disk_owner;
	unsigned char name[16];
	bool fails = world_once_in(STREAM_PUSH, 9);

	disk_owner = fails ? OWNER_SECOND : OWNER_WORLD; /* memory of its own may be short */
	if (world_once_in(STREAM_PUSH, 12))
		kept_topics_leave(&kept, h);
	for (size_t i = 0; i < 12; i++) {
		size_t len = draw_name(name);

		if (world_once_in(STREAM_PUSH, 3))
			kept_topics_remove(&kept, h, name, len);
		else
			kept_topics_add(&kept, h, name, len);
	}
	disk_owner = owner;
	check_sum();
}

void push_strangers_end(void)
{
	for (size_t i = 0; i < STRANGERS; i++)
		kept_topics_leave(&kept, &strangers[i]);
	if (kept.count || kept.held || kept_topics_cost(&kept))
		subject_report_flaw("the publisher keeps topics that nobody subscribes to");
	free(kept.topics);
	kept = (struct kept_topics){0};
}
