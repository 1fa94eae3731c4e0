/*
 * Questions about a config's versions that take long.
 *
 * Surprising: they run on the checks' thread, in one queue with the versions that are validated, so
 * that there is memory for one at a time only. A retired config waits for its own.
 */
#include "config/core.h"

static void run_task(struct worker_job *job)
{
	struct config_task *t =
		(struct config_task *)((char *)job - offsetof(struct config_task, job));

	if (!t->dropped)
		t->run(t);
}

static void end_task(struct config_task *t)
{
	struct config_task **link = &t->config->tasks;

	while (*link != t)
		link = &(*link)->next;
	*link = t->next;
	t->ended(t);
}

static void task_done(struct worker_job *job)
{
	struct config_task *t =
		(struct config_task *)((char *)job - offsetof(struct config_task, job));
	struct config *c = t->config;

	end_task(t);
	config_finish_retiring(c);
}

void config_task_begin(struct config *c, struct config_task *t)
{
	t->config = c;
	t->job = (struct worker_job){.run = run_task, .done = task_done};
	t->dropped = c->mode == MODE_RETIRING;
	t->next = c->tasks;
	c->tasks = t;
	if (c->env->check && c->mode == MODE_ACTIVE) {
		worker_submit(c->env->check, &t->job);
		return;
	}
	run_task(&t->job);
	end_task(t);
}

void tasks_drop(struct config *c)
{
	for (struct config_task *t = c->tasks; t; t = t->next)
		t->dropped = true;
}

void tasks_end(struct config *c)
{
	tasks_drop(c);
	while (c->tasks)
		end_task(c->tasks);
}
