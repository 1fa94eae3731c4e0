/* What each part of the agent opens. Surprising: a pull counts one descriptor, however many
 * documents it has. */
#include "descriptor_budget.h"

#include "base/loop.h"
#include "push/subscriber.h"
#include "settings/settings.h"

enum {
	FILES = 8, /* at a time: the directories of a path that is walked, a file, its successor */
	STATE = 5, /* lock, two threads' wake-ups, inotify, one for a thread that reads files */
	HTTP = 6,  /* libcurl's wake-up, a look-up of a name, the authorities' file */
	PROGRAM = 10, /* pipes, pidfd, keeper */
	CONTROL = 6,  /* its lock and socket, one in reserve, clients */
	LISTEN = 2,
	WATCH = 1, /* inotify, of the agent's own configuration */
	REPORT = 2
};

enum part { LOOP, PUBLISHING, REQUESTS, PROGRAMS, SERVED, PUSH, PARTS };

static bool has_programs(const struct settings_config *c)
{
	return c->format_run.argv || c->check.argv || c->probe.argv || c->reload.rule_count;
}

/* At most: one per document that is pulled, within max_in_flight, and one per watch. */
static size_t count_connections(const struct settings *s)
{
	size_t most = 0, pulls = 0, watches = 0;

	for (size_t i = 0; i < s->server_count; i++)
		most += s->servers[i]->max_in_flight;
	for (size_t i = 0; i < s->config_count; i++) {
		const struct settings_config *c = s->configs[i];

		pulls += c->layer_count;
		for (size_t j = 0; j < c->layer_count; j++)
			watches += s->servers[c->layers[j].server]->watch;
	}
	return watches + (pulls < most ? pulls : most);
}

static void add_up(const struct settings *s, bool once, struct descriptors_need needs[PARTS])
{
	static const char *const names[PARTS] = {"event loop", "state and files", "requests",
		"programs", "control socket", "push channel"};
	bool programs = false;

	for (int i = 0; i < PARTS; i++)
		needs[i] = (struct descriptors_need){names[i], 0};
	needs[LOOP].count = LOOP_DESCRIPTORS;
	needs[PUBLISHING].count = STATE + FILES;
	if (!s)
		return;
	for (size_t i = 0; i < s->config_count; i++)
		programs |= has_programs(s->configs[i]);
	needs[REQUESTS].count = HTTP + count_connections(s);
	needs[PROGRAMS].count = programs ? PROGRAM : 0;
	if (once)
		return;
	needs[SERVED].count = CONTROL + (s->listen ? LISTEN : 0) + (s->report.from ? REPORT : 0) +
			      (s->watch_config ? WATCH : 0);
	needs[PUSH].count = s->push_count ? PUSH_DESCRIPTORS(s->push_count) : 0;
}

int descriptor_budget_check(const struct settings *settings, bool once, char why[DESCRIPTORS_WHY])
{
	struct descriptors_need needs[PARTS];

	add_up(settings, once, needs);
	return descriptors_check(needs, PARTS, why);
}

int descriptor_budget_check_next(const struct settings *old, const struct settings *new,
	const struct settings_diff *diff, char why[DESCRIPTORS_WHY])
{
	struct descriptors_need before[PARTS], needs[PARTS];

	add_up(old, false, before);
	add_up(new, false, needs);
	for (int i = 0; i < PARTS; i++)
		if (i != PUSH || !diff->push)
			needs[i].count = needs[i].count > before[i].count
						 ? needs[i].count - before[i].count
						 : 0;
	if (diff->push && new->push_count)
		needs[PUBLISHING].count += FILES; /* libzmq's threads beside what goes on */
	return descriptors_check(needs, PARTS, why);
}
