/*
 * The control API without sockets: what of it lives in the agent's process. Answers that take long
 * are computed on the checks' thread; whoever waits for a run is told when its config ends.
 *
 * Surprising: all of it is the agent's memory, and must be gone when the agent has stopped.
 */
#include "tests/sim/control.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/changes.h"
#include "config/explain.h"
#include "config/inspect.h"
#include "control/api.h"
#include "tests/sim/subject.h"
#include "tests/sim/world.h"

#define ANSWER_SIZE (1u << 20)

struct wait {
	struct config_waiter waiter;
	struct config *config;
	struct control *control;
	struct wait *next;
};

struct answer {
	struct config_task task;
	struct control *control;     /* NULL: nobody waits for it any more */
	struct changes_entry *entry; /* NULL: a question about versions */
	uint64_t read;
	bool values;
	unsigned which;
	struct inspection seen;
	struct buffer out;
	struct answer *next;
};

struct control {
	const struct control_env *env;
	struct changes *changes;
	struct wait *waits;
	struct answer *answers;
};

int control_start(const struct control_env *env, struct control **ret_control, char why[FILE_WHY])
{
	struct control *c = calloc(1, sizeof(*c));

	(void)why;
	if (c)
		c->changes = changes_new();
	if (!c || !c->changes) {
		free(c);
		return -ENOMEM;
	}
	c->env = env;
	*ret_control = c;
	return 0;
}

static void drop_wait(struct wait *w)
{
	struct wait **link = &w->control->waits;

	while (*link != w)
		link = &(*link)->next;
	*link = w->next;
	free(w);
}

static void unlink_answer_of(struct answer *a)
{
	struct answer **link = &a->control->answers;

	while (*link != a)
		link = &(*link)->next;
	*link = a->next;
	a->control = NULL;
}

void control_stop(struct control *c)
{
	if (!c)
		return;
	while (c->waits) {
		config_wait_cancel(c->waits->config, &c->waits->waiter);
		drop_wait(c->waits);
	}
	while (c->answers)
		unlink_answer_of(c->answers);
	changes_free(c->changes);
	free(c);
}

void control_forget(struct control *c, const struct config *config, bool gone)
{
	struct wait *next;

	(void)gone;
	for (struct wait *w = c->waits; w; w = next) {
		next = w->next;
		if (w->config == config) {
			config_wait_cancel(w->config, &w->waiter);
			drop_wait(w);
		}
	}
	changes_forget(c->changes, config);
}

int control_listen(struct control *c, const char *address, char why[FILE_WHY])
{
	(void)c;
	(void)address;
	(void)why;
	return 0;
}

void control_operators(struct control *c, gid_t operators)
{
	(void)c;
	(void)operators;
}

void control_check(struct control *c)
{
	(void)c;
}

/* ---- waits ---- */

static void wait_ended(void *arg, struct config *c)
{
	world_trace("the wait for %s ends", config_name(c));
	drop_wait(arg);
}

void control_wait(struct control *c, struct config *config, unsigned which)
{
	struct wait *w = c ? calloc(1, sizeof(*w)) : NULL;

	if (!w)
		return;
	*w = (struct wait){.config = config, .control = c, .next = c->waits};
	w->waiter = (struct config_waiter){.ended = wait_ended, .arg = w};
	c->waits = w;
	if (which == 0)
		config_wait(config, &w->waiter);
	else if (which == 1)
		config_wait_any(config, &w->waiter);
	else
		config_wait_change(config, &w->waiter);
	if (which == 3) { /* the client is gone already */
		config_wait_cancel(config, &w->waiter);
		drop_wait(w);
	}
}

/* ---- answers that take long ---- */

static void compute_versions(struct answer *a)
{
	char why[FILE_WHY];
	static const char *const keys[] = {
		"d0_0", "d1_0", "over", "over.k1", "over.k1.a", "list", "list.0", "", "absent.a"};

	switch (a->which) {
	case 0:
		inspect_history(
			&a->seen, a->values ? AUDIENCE_OPERATOR : AUDIENCE_PUBLIC, &a->out, why);
		break;
	case 1:
		inspect_diff(&a->seen, 0, 0, a->values, &a->out, why);
		break;
	default:
		inspect_explain(&a->seen, keys[a->which % 9], a->values, &a->out, why);
	}
}

static void run_answer_task(struct config_task *t)
{
	struct answer *a = (struct answer *)t;

	if (a->entry)
		changes_compare(a->entry);
	else
		compute_versions(a);
}

static void find_change(struct control *c, uint64_t read, bool values);

static void answer_task_ended(struct config_task *t)
{
	struct answer *a = (struct answer *)t;
	struct control *c = a->control;
	uint64_t read = a->read;
	bool values = a->values, goes_on = c && a->entry && !t->dropped;

	if (c)
		unlink_answer_of(a);
	if (goes_on)
		changes_keep(c->changes, a->entry);
	else
		changes_drop(a->entry);
	if (!a->entry)
		inspect_end(&a->seen);
	buffer_fini(&a->out);
	free(a);
	if (goes_on)
		find_change(c, read, values);
}

static void begin_answer(struct answer *a, struct control *c, struct config *config)
{
	a->task = (struct config_task){.run = run_answer_task, .ended = answer_task_ended};
	a->control = c;
	a->next = c->answers;
	c->answers = a;
	buffer_init(&a->out, ANSWER_SIZE);
	config_task_begin(config, &a->task);
}

/* An answer of the last changes: complete, or cut at a limit. */
static void write_changes(struct control *c, bool values)
{
	struct buffer out;
	int r;

	buffer_init(&out, ANSWER_SIZE);
	r = changes_write(c->changes, values, &out);
	if (r == 0 && !memmem(out.data, out.len, "\"complete\":", 11))
		subject_report_flaw("the answer about changes is not whole");
	buffer_fini(&out);
}

/* Compares the publications since, one after the other, then answers. */
static void find_change(struct control *c, uint64_t read, bool values)
{
	struct changes_entry *missing;
	struct answer *a;
	int r = changes_find_missing(
		c->changes, c->env->configs, c->env->settings->config_count, &read, &missing);

	if (r == 0)
		write_changes(c, values);
	if (r <= 0)
		return;
	a = calloc(1, sizeof(*a));
	if (!a) {
		changes_drop(missing);
		return;
	}
	a->entry = missing;
	a->read = read;
	a->values = values;
	begin_answer(a, c, changes_config(missing));
}

void control_ask_changes(struct control *c, bool values)
{
	if (c)
		find_change(c, 0, values);
}

void control_ask_versions(struct control *c, struct config *config, unsigned which, bool values)
{
	struct answer *a = c ? calloc(1, sizeof(*a)) : NULL;
	char why[FILE_WHY];

	if (!a || inspect_begin(config, &a->seen, why)) {
		free(a);
		return;
	}
	a->which = which;
	a->values = values;
	begin_answer(a, c, config);
}
