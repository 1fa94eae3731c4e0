/*
 * Work on versions of a config that takes long and that nobody's publication waits for: what
 * somebody asks about them.
 *
 * Surprising: it runs on the checks' thread, in one line with the versions that are validated, so
 * that no more memory is taken than for one of them at a time. A config that goes waits for its
 * own.
 */
#include "config/state.h"

static void run(struct worker_job *job)
{
	struct config_task *t =
		(struct config_task *)((char *)job - offsetof(struct config_task, job));

	if (!t->dropped)
		t->run(t);
}

static void end(struct config_task *t)
{
	struct config_task **link = &t->config->tasks;

	while (*link != t)
		link = &(*link)->next;
	*link = t->next;
	t->ended(t);
}

static void done(struct worker_job *job)
{
	struct config_task *t =
		(struct config_task *)((char *)job - offsetof(struct config_task, job));
	struct config *c = t->config;

	end(t);
	config_retire_on(c);
}

void config_task_begin(struct config *c, struct config_task *t)
{
	t->config = c;
	t->job = (struct worker_job){.run = run, .done = done};
	t->dropped = c->retires;
	t->next = c->tasks;
	c->tasks = t;
	if (c->env->check && !c->retires) {
		worker_submit(c->env->check, &t->job);
		return;
	}
	run(&t->job);
	end(t);
}

void config_tasks_drop(struct config *c)
{
	for (struct config_task *t = c->tasks; t; t = t->next)
		t->dropped = true;
}

void config_tasks_end(struct config *c)
{
	config_tasks_drop(c);
	while (c->tasks)
		end(c->tasks);
}
