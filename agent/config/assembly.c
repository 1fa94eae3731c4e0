/*
 * What a pull brought becomes one version: its parts behind one another, hashed; those of a large
 * one on the checks' thread.
 *
 * Surprising: steps go on meanwhile, and may publish or drop the version that the requests were
 * conditional on. So the thread has a copy of its facts, and holds its bytes.
 */
#include "config/core.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "pull/reading.h"

struct assembly {
	struct worker_job job;
	struct config *config;
	struct candidate *candidate;
	struct version held;          /* of the parts that the servers did not send again */
	struct candidate *held_bytes; /* NULL = they are in the store */
	bool of_current;              /* those parts are the current version's */
	_Atomic bool given_up;        /* the result is dropped */
	int64_t wall_ms;
	/* results */
	int error;
	char why[FILE_WHY];
};

static void free_assembly(struct assembly *a)
{
	candidate_free(a->candidate);
	candidate_free(a->held_bytes);
	version_fini(&a->held);
	free(a);
}

/* ---- on either thread ---- */

static void assemble(struct assembly *a)
{
	struct config *c = a->config;

	if (!a->given_up)
		a->error = candidate_take(a->candidate, c->run.pull, c->current.store, &a->held,
			a->held_bytes ? &a->held_bytes->body : NULL, a->wall_ms, a->why);
	pull_release(c->run.pull);
}

static void run_assembly(struct worker_job *job)
{
	struct assembly *a = (struct assembly *)job;

	a->config->run.assembling_since_ms = a->config->env->sys->now_ms();
	assemble(a);
	a->config->run.assembling_since_ms = 0;
}

/* ---- on the loop ---- */

static void end_assembly(struct assembly *a)
{
	struct config *c = a->config;
	struct candidate *candidate = a->candidate;
	bool is_new = false;
	int r;

	a->candidate = NULL;
	r = latest_take(c, candidate, a->error, a->of_current, &is_new, a->why);
	run_take_version(c, r, is_new, a->why);
}

static void assembly_done(struct worker_job *job)
{
	struct assembly *a = (struct assembly *)job;
	struct config *c = a->config;

	c->run.assembling = NULL;
	if (!a->given_up)
		end_assembly(a);
	free_assembly(a);
	config_finish_retiring(c);
}

/* Notes the version whose parts are used again. 0 or -ENOMEM. */
static int note_held(struct assembly *a)
{
	struct config *c = a->config;
	const struct version *held = latest_version(c);
	size_t i = 0;

	a->of_current = !held || held == &c->current.version;
	while (i < pull_count(c->run.pull) && pull_part(c->run.pull, i)->state != PULL_HELD)
		i++;
	if (!held || i == pull_count(c->run.pull))
		return 0;
	a->held_bytes = latest_hold_bytes(c);
	return version_copy(held, &a->held);
}

static struct assembly *begin_assembly(struct config *c)
{
	struct assembly *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->config = c;
	a->wall_ms = c->env->sys->wall_ms();
	a->candidate = candidate_new();
	if (a->candidate && note_held(a) == 0)
		return a;
	free_assembly(a);
	return NULL;
}

static bool is_large_pull(const struct config *c, const struct assembly *a)
{
	size_t bytes = 0;

	if (a->held_bytes && settings_makes_product(c->settings->format))
		return false; /* the step appends to them */
	for (size_t i = 0; i < pull_count(c->run.pull); i++) {
		const struct pull_part *part = pull_part(c->run.pull, i);

		bytes += part->state == PULL_HELD ? a->held.parts[i].len : part->body.len;
	}
	return bytes > READING_LARGE;
}

void assembly_start(struct config *c)
{
	struct assembly *a = begin_assembly(c);

	if (!a) {
		pull_release(c->run.pull);
		run_take_version(c, -ENOMEM, false, "out of memory");
		return;
	}
	if (c->env->check && is_large_pull(c, a)) {
		a->job = (struct worker_job){.run = run_assembly, .done = assembly_done};
		c->run.assembling = a;
		worker_submit(c->env->check, &a->job);
		return;
	}
	assemble(a);
	end_assembly(a);
	free_assembly(a);
}

void assembly_give_up(struct config *c)
{
	if (c->run.assembling)
		c->run.assembling->given_up = true;
}

void assembly_fini(struct config *c)
{
	if (c->run.assembling) /* the thread has stopped */
		free_assembly(c->run.assembling);
	c->run.assembling = NULL;
}
