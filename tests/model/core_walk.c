/*
 * Walks through worlds: breadth first through all, or one long life at random. From each world the
 * rest of the story is told twice, in any order of endings: without faults it must come to rest,
 * and after a tick where the rules want it; with nothing but faults it must come to rest, too.
 * Surprising: it comes to rest if there is no circle of endings, as there are finitely many worlds.
 */
#include "core.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define NOBODY UINT32_MAX

enum { STEPS_UNKNOWN = -1, STEPS_OPEN = -2 };

struct node {
	struct world world;
	uint32_t parent;
	uint8_t event;      /* of the parent that led here */
	bool queued;        /* reached by the walk itself, not only by the rest of a story */
	bool visited[2];    /* by visit_rests(), before and after a tick */
	int16_t to_rest[2]; /* endings, ENDINGS_GOOD and ENDINGS_BAD */
};

struct walk {
	const struct profile *profile;
	struct sightings *sightings;
	struct node *nodes;
	uint32_t count, room;
	uint32_t *slots; /* a hash table: index of a node, plus one */
	uint32_t slot_count;
	struct walk_result result;
};

/* ---- situations that were seen ---- */

#define SIGHT_SLOTS (1u << 17)
static uint32_t sights[2][SIGHT_SLOTS]; /* of all walks, of this one; each plus one */

/* Adds to a set; says whether it was new. */
static bool add_sight(uint32_t *set, uint32_t sight)
{
	uint32_t at = (uint32_t)(sight * 0x9e3779b97f4a7c15u >> 40) & (SIGHT_SLOTS - 1);

	for (unsigned tries = 0; set[at]; at = (at + 1) & (SIGHT_SLOTS - 1), tries++) {
		assert(tries < SIGHT_SLOTS / 2);
		if (set[at] == sight + 1)
			return false;
	}
	set[at] = sight + 1;
	return true;
}

/* The facts, what rests, and what the lane behind a publication sees. */
static void see_situation(struct walk *walk, const struct world *w)
{
	struct situation s = world_situation(walk->profile, w);
	bool proven = w->proven || !walk->profile->has_probe;
	uint32_t sight = 0;

	for (size_t i = 0; i < SITUATION_FACTS; i++)
		sight = sight * situation_facts[i].count + situation_value(&s, &situation_facts[i]);
	sight = (sight << 1 | w->notified) << 1 | proven;
	sight = sight << 9 | s.resting >> 1;
	walk->sightings->all += add_sight(sights[0], sight);
	walk->sightings->last += add_sight(sights[1], sight);
}

/* ---- nodes ---- */

static void *get_memory(void *old, size_t count, size_t size)
{
	void *memory = realloc(old, count * size);

	assert(memory);
	return memory;
}

static uint64_t hash_world(const struct world *w)
{
	uint64_t words[sizeof(*w) / sizeof(uint64_t)], hash = 0;

	memcpy(words, w, sizeof(words));
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		hash = (hash ^ words[i]) * 0x9e3779b97f4a7c15u;
		hash ^= hash >> 29;
	}
	return hash;
}

static void grow_slots(struct walk *walk)
{
	walk->slot_count = walk->slot_count ? walk->slot_count * 2 : 1u << 12;
	free(walk->slots);
	walk->slots = calloc(walk->slot_count, sizeof(*walk->slots));
	assert(walk->slots);
	for (uint32_t i = 0; i < walk->count; i++) {
		uint64_t at = hash_world(&walk->nodes[i].world);

		while (walk->slots[at & (walk->slot_count - 1)])
			at++;
		walk->slots[at & (walk->slot_count - 1)] = i + 1;
	}
}

/* Finds the node of a world, or adds one. */
static uint32_t find_node(struct walk *walk, const struct world *w)
{
	uint64_t at = hash_world(w);
	uint32_t *slot;

	if (walk->count * 2 >= walk->slot_count)
		grow_slots(walk);
	while (*(slot = &walk->slots[at & (walk->slot_count - 1)])) {
		if (!memcmp(&walk->nodes[*slot - 1].world, w, sizeof(*w)))
			return *slot - 1;
		at++;
	}
	if (walk->count == walk->room) {
		walk->room = walk->room ? walk->room * 2 : 1024;
		walk->nodes = get_memory(walk->nodes, walk->room, sizeof(*walk->nodes));
	}
	walk->nodes[walk->count] = (struct node){
		.world = *w, .parent = NOBODY, .to_rest = {STEPS_UNKNOWN, STEPS_UNKNOWN}};
	*slot = ++walk->count;
	return walk->count - 1;
}

/* Keeps the first; none is NULL. */
static void note_flaw(struct walk *walk, const char *flaw)
{
	if (!walk->result.flaw)
		walk->result.flaw = flaw;
}

/* ---- the rest of the story ---- */

static uint32_t follow_event(struct walk *walk, uint32_t id, enum event event)
{
	struct happened ignored;
	struct world after = world_apply(walk->profile, walk->nodes[id].world, event, &ignored);

	return find_node(walk, &after);
}

/* The most endings from here until nothing is under way, in whatever order they come. */
static int count_to_rest(struct walk *walk, uint32_t id, enum endings which)
{
	int known = walk->nodes[id].to_rest[which], most = 0;
	struct event_list list = {0};

	if (known == STEPS_OPEN)
		note_flaw(walk, which == ENDINGS_BAD ? "a storm" : "no fixed point");
	if (known != STEPS_UNKNOWN)
		return known == STEPS_OPEN ? 0 : known;
	walk->nodes[id].to_rest[which] = STEPS_OPEN;
	endings_add(&list, &walk->nodes[id].world, which);
	for (unsigned i = 0; i < list.count && !walk->result.flaw; i++) {
		int steps = 1 + count_to_rest(walk, follow_event(walk, id, list.events[i]), which);

		most = steps > most ? steps : most;
	}
	walk->nodes[id].to_rest[which] = (int16_t)most;
	return most;
}

static void keep_most(int *most, int steps)
{
	*most = steps > *most ? steps : *most;
}

/* Visits each world that follows by good endings. A tick may come in each, whatever is under way; a
 * world at rest after it is held against the rules. */
static void visit_rests(struct walk *walk, uint32_t id, bool ticked)
{
	struct event_list list = {0};

	if (walk->nodes[id].visited[ticked])
		return;
	walk->nodes[id].visited[ticked] = true;
	endings_add(&list, &walk->nodes[id].world, ENDINGS_GOOD);
	for (unsigned i = 0; i < list.count && !walk->result.flaw; i++)
		visit_rests(walk, follow_event(walk, id, list.events[i]), ticked);
	if (walk->result.flaw)
		return;
	if (ticked && list.count == 0) {
		note_flaw(walk, rules_of_rest(walk->profile, &walk->nodes[id].world));
	} else if (!ticked && walk->nodes[id].world.pull == PULL_IDLE) {
		uint32_t after = follow_event(walk, id, EVENT_TICK);

		keep_most(&walk->result.rest_after_tick, count_to_rest(walk, after, ENDINGS_GOOD));
		if (!walk->result.flaw)
			visit_rests(walk, after, true);
	}
}

/* Tells both ends of the story from here. */
static void check_story(struct walk *walk, uint32_t id)
{
	struct walk_result *result = &walk->result;

	if (walk->nodes[id].world.mode != MODE_ACTIVE)
		return;
	keep_most(&result->rest, count_to_rest(walk, id, ENDINGS_GOOD));
	if (!result->flaw)
		visit_rests(walk, id, false);
	if (!result->flaw)
		keep_most(&result->rest_of_faults, count_to_rest(walk, id, ENDINGS_BAD));
}

/* ---- walks ---- */

/* One event, held against the rules. */
static uint32_t take_checked_event(struct walk *walk, uint32_t id, enum event event)
{
	struct world before = walk->nodes[id].world, after;
	struct happened happened;

	after = world_apply(walk->profile, before, event, &happened);
	walk->result.transitions++;
	note_flaw(walk, rules_of_transition(walk->profile, &before, event, &after, &happened));
	if (walk->result.flaw)
		walk->result.last = event;
	return find_node(walk, &after);
}

static void start_walk(struct walk *walk, const struct profile *p, struct sightings *sightings,
	uint32_t *ret_first)
{
	struct world first = world_begin(p);

	memset(walk, 0, sizeof(*walk));
	memset(sights[1], 0, sizeof(sights[1]));
	sightings->last = 0;
	walk->profile = p;
	walk->sightings = sightings;
	walk->result.last = EVENTS;
	*ret_first = find_node(walk, &first);
	walk->nodes[*ret_first].queued = true;
}

/* How the walk came to a world, without its beginning where that is too long ago. */
static void keep_path(struct walk *walk, uint32_t at)
{
	struct walk_result *result = &walk->result;
	unsigned left;

	for (uint32_t i = at; walk->nodes[i].parent != NOBODY; i = walk->nodes[i].parent)
		result->events++;
	left = result->events < PATH_MAX_EVENTS ? result->events : PATH_MAX_EVENTS;
	result->path_length = left;
	for (uint32_t i = at; left; i = walk->nodes[i].parent)
		result->path[--left] = (enum event)walk->nodes[i].event;
}

static struct walk_result end_walk(struct walk *walk, uint32_t at)
{
	if (walk->result.flaw)
		keep_path(walk, at);
	free(walk->nodes);
	free(walk->slots);
	return walk->result;
}

/* Says whether it is the first time that the walk comes here. */
static bool enter_node(struct walk *walk, uint32_t id, uint32_t parent, enum event event)
{
	struct node *node = &walk->nodes[id];

	if (node->queued)
		return false;
	node->queued = true;
	node->parent = parent;
	node->event = (uint8_t)event;
	return true;
}

struct walk_result walk_all(const struct profile *p, struct sightings *sightings)
{
	struct walk walk;
	uint32_t *queue = NULL, first, id, next = 0, end = 0, room = 0;

	start_walk(&walk, p, sightings, &first);
	for (id = first;; id = queue[next++]) {
		struct event_list list = {0};

		see_situation(&walk, &walk.nodes[id].world);
		check_story(&walk, id);
		endings_add(&list, &walk.nodes[id].world, ENDINGS_ANY);
		arrivals_add(&list, p, &walk.nodes[id].world);
		for (unsigned i = 0; i < list.count && !walk.result.flaw; i++) {
			uint32_t there = take_checked_event(&walk, id, list.events[i]);

			if (!enter_node(&walk, there, id, list.events[i]))
				continue;
			if (end == room) {
				room = room ? room * 2 : 1024;
				queue = get_memory(queue, room, sizeof(*queue));
			}
			queue[end++] = there;
		}
		if (walk.result.flaw || next == end)
			break;
	}
	walk.result.worlds = end + 1;
	free(queue);
	return end_walk(&walk, id);
}

/* splitmix64 */
static uint64_t roll_dice(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15u);

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

struct walk_result walk_life(
	const struct profile *p, uint64_t seed, unsigned events, struct sightings *sightings)
{
	struct walk walk;
	uint32_t id;

	start_walk(&walk, p, sightings, &id);
	walk.result.worlds = 1;
	for (unsigned n = 0; n < events && !walk.result.flaw; n++) {
		struct event_list list = {0};
		uint64_t dice = roll_dice(&seed);
		enum event event;
		uint32_t there;

		/* now and then rather an ending, else few steps would come to theirs */
		for (unsigned times = dice & 1 ? 4 : 1; times; times--)
			endings_add(&list, &walk.nodes[id].world, ENDINGS_ANY);
		arrivals_add(&list, p, &walk.nodes[id].world);
		event = list.events[(dice >> 8) % list.count];
		there = take_checked_event(&walk, id, event);
		if (enter_node(&walk, there, id, event)) {
			walk.result.worlds++;
			see_situation(&walk, &walk.nodes[there].world);
			check_story(&walk, there);
		}
		id = there;
	}
	return end_walk(&walk, id);
}
