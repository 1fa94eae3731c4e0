/*
 * An agent's life: the trigger says when, the dispatcher waits out the shaper's hold, the run ends
 * as the server answered or at its time limit, the supervisor says when again.
 *
 * What surprises: the end of a run is known long before it comes, for the modelled server decides
 * when a request is sent. One timer stands for the answer and for the time limit, whichever comes
 * first.
 */
#include "agent.h"

#include <assert.h>
#include <errno.h>

#include "random.h"

#define AGENT_TOUCHED offsetof(struct agent, window_ms) /* by a run */

static const struct dispatcher_limits one_at_a_time = {.max_pending = 1, .max_batch = 1};

static struct agent *agent_of(struct trigger *t)
{
	return (struct agent *)(void *)((char *)t - offsetof(struct agent, trigger));
}

static uint32_t number(const struct fleet *f, const struct agent *a)
{
	return (uint32_t)(a - f->agents);
}

static struct wheel_timer *timer_of(struct fleet *f, const struct agent *a, enum agent_timer timer)
{
	return &f->timers[number(f, a)].timers[timer];
}

/* A task that waits stands for the trigger's moment, which has passed. */
static void arm(struct fleet *f, struct agent *a)
{
	uint64_t due_ms;

	if (dispatcher_next(&a->dispatcher, &due_ms) || trigger_due(&a->trigger, &due_ms))
		wheel_schedule(&f->wheel, timer_of(f, a, TIMER_DUE), due_ms);
	else
		wheel_cancel(&f->wheel, timer_of(f, a, TIMER_DUE));
}

/* The agent is the queue's owner as well: what was called is armed right after. */
static void take_calls(struct fleet *f)
{
	struct trigger *t;

	while ((t = trigger_queue_take(&f->queue)))
		arm(f, agent_of(t));
}

/* ---- a run ---- */

static void ask(struct fleet *f, struct agent *a, bool held)
{
	f->asked[f->asked_count++] = (struct request){
		.at_ms = f->now_ms,
		.agent = f->first + number(f, a),
		.version = a->version,
		.long_poll = f->policy->long_poll,
		.held = held,
	};
}

void agent_answered(struct fleet *f, const struct request *r)
{
	struct agent *a = &f->agents[r->agent - f->first];
	uint64_t limit_ms = a->started_ms + f->policy->limit_ms;

	a->reply = r->reply;
	if (a->reply.at_ms > limit_ms)
		a->reply = (struct reply){ANSWER_TIMEOUT, 0, limit_ms};
	wheel_schedule(&f->wheel, timer_of(f, a, TIMER_REPLY), a->reply.at_ms);
}

static void run_begin(struct fleet *f, struct agent *a)
{
	a->run = supervisor_begin(&a->supervisor);
	a->started_ms = f->now_ms;
	if (f->now_ms < a->not_before_ms)
		f->tally.early++;
	if (f->now_ms >= f->scenario->count_s * UINT64_C(1000))
		f->tally.requests++;
	if (f->now_ms >= f->scenario->measure_s * UINT64_C(1000))
		a->requests++;
	ask(f, a, false);
}

/* Begins a run if a task may be handed out now. */
static void pump(struct fleet *f, struct agent *a)
{
	struct dispatcher_item item;

	if (dispatcher_take(&a->dispatcher, f->now_ms, 1, &item) &&
		trigger_begin(&a->trigger, f->now_ms))
		run_begin(f, a);
}

static void due(struct fleet *f, struct agent *a)
{
	uint64_t due_ms;

	if (trigger_running(&a->trigger)) {
		trigger_begin(&a->trigger, f->now_ms); /* reserves one more run */
	} else {
		if (!dispatcher_pending(&a->dispatcher) && trigger_due(&a->trigger, &due_ms) &&
			due_ms <= f->now_ms)
			dispatcher_submit(
				&a->dispatcher, f->now_ms, 0, a, f->now_ms + a->supervisor.max_ms);
		pump(f, a);
	}
	arm(f, a);
}

/* ---- its end ---- */

static void count_moment(const struct fleet *f, uint32_t *moments)
{
	uint64_t from_ms = f->scenario->measure_s * UINT64_C(1000);

	moments[f->now_ms > from_ms ? f->now_ms - from_ms : 0]++;
}

/* True when the answer was worth the request: it brought a newer version, or a confirmation after
 * half an interval at least. */
static bool learn(struct fleet *f, struct agent *a, uint32_t version)
{
	uint64_t since_ms = f->now_ms - a->answered_ms, stale_ms;
	bool news = version > a->version;

	if (news) {
		stale_ms = f->now_ms - scenario_changed_ms(f->scenario, a->version + 1);
		if (f->now_ms >= f->scenario->count_s * UINT64_C(1000) &&
			stale_ms > f->tally.stalest_ms)
			f->tally.stalest_ms = stale_ms;
		a->version = version;
		if (version == scenario_last_version(f->scenario))
			count_moment(f, f->converged);
	}
	if (!a->answered_ms)
		since_ms = f->scenario->interval_ms;
	a->answered_ms = f->now_ms;
	return news || since_ms >= f->scenario->interval_ms / 2;
}

/* What the agent waits after a run. */
static uint64_t pause_ms(struct fleet *f, const struct agent *a)
{
	const struct policy *p = f->policy;
	uint64_t delay_ms = supervisor_delay(&a->supervisor);

	if (p->fixed_delays)
		return p->delay_ms[a->reply.answer != ANSWER_OK];
	if (p->sharp)
		return delay_ms - (f->now_ms - a->started_ms) % delay_ms;
	if (p->scatter && a->reply.answer == ANSWER_BUSY)
		return random_upto(&f->random, delay_ms);
	return supervisor_jitter(
		&a->supervisor, delay_ms, p->jitter_percent, random_next(&f->random));
}

static void run_end(struct fleet *f, struct agent *a)
{
	static const struct {
		enum supervisor_outcome outcome;
		bool shapes;
		enum shaper_failure failure;
	} endings[ANSWERS] = {
		[ANSWER_OK] = {SUPERVISOR_SUCCESS, false, 0},
		[ANSWER_BUSY] = {SUPERVISOR_FAILED, true, SHAPER_CONGESTION},
		[ANSWER_REFUSED] = {SUPERVISOR_FAILED, true, SHAPER_NETWORK},
		[ANSWER_UNREACHABLE] = {SUPERVISOR_TIMEOUT, true, SHAPER_NETWORK},
		[ANSWER_TIMEOUT] = {SUPERVISOR_TIMEOUT, false, 0},
	};
	const struct policy *p = f->policy;
	enum answer answer = a->reply.answer;
	uint64_t advice_ms = answer == ANSWER_BUSY ? f->scenario->advice_ms : SHAPER_NO_ADVICE;
	bool ended, useful = answer == ANSWER_OK && learn(f, a, a->reply.version);

	if (!useful && a->started_ms >= f->scenario->count_s * UINT64_C(1000))
		f->tally.wasted++;
	if (advice_ms != SHAPER_NO_ADVICE)
		a->not_before_ms = f->now_ms + advice_ms;
	if (endings[answer].shapes && p->shaper)
		shaper_failed(&a->shaper, a->started_ms, f->now_ms, endings[answer].failure,
			advice_ms, random_next(&f->random));
	else if (answer == ANSWER_OK)
		shaper_succeeded(&a->shaper, a->started_ms);
	dispatcher_hold(&a->dispatcher, shaper_until(&a->shaper));
	ended = supervisor_end(&a->supervisor, a->run, endings[answer].outcome);
	assert(ended);
	trigger_end(&a->trigger, f->now_ms, pause_ms(f, a));
	arm(f, a);
}

static void replied(struct fleet *f, struct agent *a)
{
	if (a->reply.answer == ANSWER_HELD)
		ask(f, a, true);
	else
		run_end(f, a);
}

/* ---- push ---- */

/* As hint() in agent/push/topics.c: what is due in the window is the pull; a window that is open
 * stays as it is, the next one follows directly. */
void agent_pushed(struct fleet *f, uint32_t i, uint64_t spread_ms)
{
	struct agent *a = &f->agents[i];
	uint64_t spread = f->policy->spread ? spread_ms : 0, begin_ms = f->now_ms, due_ms;
	bool is_open = spread && a->window_ms <= f->now_ms + 2 * spread;

	if (!is_open || f->now_ms >= f->pending_ms[i]) {
		if (is_open && f->now_ms < a->window_ms)
			begin_ms = a->window_ms;
		a->window_ms = begin_ms + spread;
		f->pending_ms[i] = begin_ms + random_upto(&f->random, spread);
		if (trigger_due(&a->trigger, &due_ms) && due_ms <= a->window_ms)
			f->pending_ms[i] = due_ms;
	}
	trigger_hint(&a->trigger, f->now_ms,
		f->pending_ms[i] > f->now_ms ? f->pending_ms[i] - f->now_ms : 0);
	take_calls(f);
}

/* ---- the channel of an agent ---- */

static bool is_cut_off(const struct fleet *f, uint32_t i)
{
	const struct scenario *s = f->scenario;

	if (f->tree)
		return tree_is_cut_off(f->tree, f->first + i);
	return s->fault_channel &&
	       scenario_fault(s, s->fault_from_s * UINT64_C(1000), f->first + i);
}

/* Sets the moment at which a channel that breaks is there again, or brings the tree's message. */
static void channel_init(struct fleet *f, uint32_t i)
{
	const struct scenario *s = f->scenario;
	uint64_t from_ms = f->tree ? s->change_ms : s->fault_from_s * UINT64_C(1000),
		 to_ms = f->tree ? from_ms + TREE_RESTART_MS : s->fault_to_s * UINT64_C(1000),
		 at_ms = UINT64_MAX;

	if (is_cut_off(f, i))
		at_ms = tree_reconnect_ms(&f->random, TREE_RECONNECT_SPREAD_MS, from_ms, to_ms);
	else if (f->tree)
		at_ms = tree_heard_ms(f->tree, f->first + i);
	if (at_ms != UINT64_MAX)
		wheel_schedule(&f->wheel, &f->agents[i].channel, at_ms);
}

static void channel_expired(struct fleet *f, uint32_t i)
{
	bool connected = is_cut_off(f, i);

	if (connected && f->policy->quiet)
		return;
	if (f->tree)
		count_moment(f, f->heard);
	agent_pushed(f, i, connected ? 0 : f->scenario->spread_ms);
}

/* ---- timers ---- */

/* Whose timer it is, and which of its own, is told from its address. */
static uint32_t find_timer(
	const struct fleet *f, const struct wheel_timer *t, enum agent_timer *ret_timer)
{
	uintptr_t offset = (uintptr_t)t - (uintptr_t)f->timers;

	if (offset < f->count * sizeof(*f->timers)) {
		*ret_timer = offset % sizeof(*f->timers) / sizeof(*t);
		return (uint32_t)(offset / sizeof(*f->timers));
	}
	*ret_timer = TIMER_CHANNEL;
	return (uint32_t)(((uintptr_t)t - (uintptr_t)f->agents) / sizeof(*f->agents));
}

void agent_prefetch(const struct fleet *f, const struct wheel_timer *t, bool deep)
{
	enum agent_timer timer;
	const struct agent *a = &f->agents[find_timer(f, t, &timer)];

	if (deep)
		__builtin_prefetch(a->dispatcher.entries, 1);
	else
		for (size_t line = 0; line < AGENT_TOUCHED; line += 64)
			__builtin_prefetch((const char *)a + line, 1);
}

void agent_expired(struct fleet *f, const struct wheel_timer *t)
{
	static void (*const handlers[])(struct fleet * f, struct agent * a) = {
		[TIMER_DUE] = due,
		[TIMER_REPLY] = replied,
	};
	enum agent_timer timer;
	uint32_t i = find_timer(f, t, &timer);

	if (timer == TIMER_CHANNEL)
		channel_expired(f, i);
	else
		handlers[timer](f, &f->agents[i]);
}

int agent_init(struct fleet *f, uint32_t i)
{
	const struct scenario *s = f->scenario;
	const struct policy *p = f->policy;
	struct agent *a = &f->agents[i];
	bool splay = p->splay && !s->first_start;
	int r;

	*a = (struct agent){.version = s->first_start ? 0 : 1};
	r = dispatcher_init(&a->dispatcher, &one_at_a_time, NULL, NULL);
	if (r)
		return r;
	for (unsigned t = 0; t < AGENT_TIMERS; t++)
		wheel_timer_init(timer_of(f, a, t));
	wheel_timer_init(&a->channel);
	trigger_init(&a->trigger, &f->queue);
	supervisor_init(&a->supervisor, s->interval_ms, p->bound);
	shaper_init(&a->shaper);
	if (p->limits_holds)
		shaper_limit(&a->shaper, s->interval_ms);
	if (p->push)
		channel_init(f, i);
	trigger_fire(&a->trigger, f->now_ms,
		random_upto(&f->random, splay ? s->interval_ms : FLEET_TOGETHER_MS));
	take_calls(f);
	return 0;
}

void agent_fini(struct fleet *f, uint32_t i)
{
	dispatcher_fini(&f->agents[i].dispatcher);
}
