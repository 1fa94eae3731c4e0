/*
 * The loop without descriptors: the wheel, a wake-up, and nothing else, as the core needs no more.
 */
#include "tests/sim/loop.h"

#include <stdlib.h>

#include "tests/sim/host.h"
#include "tests/sim/world.h"

#define LATE_MS 5000 /* as base/loop.c */
#define MAX_TURNS 100000

struct loop {
	const struct sys *sys;
	struct host *host;
	struct wheel wheel;
	uint64_t turn_ms;
	void (*woken)(void *arg);
	void *woken_arg;
	void (*resumed)(void *arg, uint64_t late_ms);
	void *resumed_arg;
	bool wakes, stopping;
};

struct loop *loop_new(const struct sys *sys)
{
	struct loop *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->sys = sys;
	l->host = host_now;
	l->turn_ms = sys->now_ms();
	wheel_init(&l->wheel, l->turn_ms);
	return l;
}

void loop_free(struct loop *l)
{
	free(l);
}

static void notice_resume(struct loop *l, uint64_t now_ms)
{
	uint64_t due_ms, before_ms = l->turn_ms;

	l->turn_ms = now_ms;
	if (l->resumed && wheel_next(&l->wheel, &due_ms) && now_ms > due_ms + LATE_MS &&
		now_ms > before_ms + LATE_MS)
		l->resumed(l->resumed_arg, now_ms - due_ms);
}

void sim_loop_turn(struct loop *l)
{
	uint64_t now_ms = l->sys->now_ms();
	struct wheel_timer *t;
	unsigned turns = 0;

	notice_resume(l, now_ms);
	while (!l->stopping) {
		t = wheel_advance(&l->wheel, now_ms);
		if (t) {
			((struct loop_timer *)t)->due(((struct loop_timer *)t)->arg);
		} else if (l->wakes) {
			l->wakes = false;
			l->woken(l->woken_arg);
		} else {
			break;
		}
		if (++turns == MAX_TURNS) {
			world_trace("the loop does not come to rest");
			abort();
		}
	}
	if (l->stopping)
		host_loop_ended();
}

bool sim_loop_next(struct loop *l, uint64_t *ret_due_ms)
{
	if (!l->wakes)
		return wheel_next(&l->wheel, ret_due_ms);
	*ret_due_ms = 0;
	return true;
}

int loop_run(struct loop *l)
{
	(void)l;
	return 0;
}

void loop_stop(struct loop *l)
{
	l->stopping = true;
}

uint64_t loop_now_ms(struct loop *l)
{
	return l->sys->now_ms();
}

uint64_t loop_longest_us(const struct loop *l)
{
	(void)l;
	return 0;
}

const struct sys *loop_sys(struct loop *l)
{
	return l->sys;
}

void loop_wake(struct loop *l)
{
	l->wakes = true;
}

void loop_on_wake(struct loop *l, void (*woken)(void *arg), void *arg)
{
	l->woken = woken;
	l->woken_arg = arg;
}

void loop_on_resume(struct loop *l, void (*resumed)(void *arg, uint64_t late_ms), void *arg)
{
	l->resumed = resumed;
	l->resumed_arg = arg;
}

void loop_timer_init(struct loop_timer *t, void (*due)(void *arg), void *arg)
{
	wheel_timer_init(&t->timer);
	t->due = due;
	t->arg = arg;
}

void loop_timer_set(struct loop *l, struct loop_timer *t, uint64_t due_ms)
{
	wheel_schedule(&l->wheel, &t->timer, due_ms);
}

void loop_timer_cancel(struct loop *l, struct loop_timer *t)
{
	wheel_cancel(&l->wheel, &t->timer);
}
