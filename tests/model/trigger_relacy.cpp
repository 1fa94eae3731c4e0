/*
 * The memory order of lib/trigger.c, for relacy to search: two callers and the owner.
 *
 * The code under test is lib/trigger.c itself. run.sh only renames types: `_Atomic T` becomes relacy's
 * atomic, `next` a plain variable that relacy checks for races; stdatomic.h here does the rest.
 * Beside each interleaving, relacy tries each older value that a relaxed load may return.
 *
 * What surprises: the owner may read what a caller wrote only if it knows that it is that caller who
 * fired, else the read itself is the race. So each caller has a moment of its own: what
 * trigger_due() says before a true trigger_begin() names a call that came before this run.
 *
 * The search is complete up to CONTEXT_BOUND preemptions; without a bound it does not end within
 * minutes. The owner waits for an event, not in a loop: a lost wake-up or a lost fire is a deadlock.
 */
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <relacy/relacy.hpp>

#ifndef CONTEXT_BOUND
#define CONTEXT_BOUND 2
#endif

#undef assert
#define assert RL_ASSERT
#define new new_word /* a name in C */
#include "trigger.c"
#undef new

#define CALLERS 2
#define TRIGGERS 2

struct trigger_test : rl::test_suite<trigger_test, CALLERS + 1> {
	struct trigger_queue queue;
	struct trigger trigger[TRIGGERS];
	plain<int> payload[TRIGGERS][CALLERS];
	rl::atomic<int> stamp[TRIGGERS]; /* calls, counted before the call */
	rl::generic_event woken;

	static void wake(void *arg)
	{
		((trigger_test *)arg)->woken.set($);
	}

	void before()
	{
		woken.init(false, false, $);
		trigger_queue_init(&queue, wake, this);
		for (int i = 0; i < TRIGGERS; i++) {
			trigger_init(&trigger[i], &queue);
			stamp[i].store(0, rl::mo_relaxed, $);
		}
	}

	void after()
	{
		woken.deinit($);
	}

	void prepare_call(unsigned n, unsigned caller)
	{
		payload[n][caller] = 1;
		stamp[n].fetch_add(1, rl::mo_relaxed, $);
	}

	void fire(unsigned n, unsigned caller)
	{
		prepare_call(n, caller);
		trigger_fire(&trigger[n], 0, caller);
	}

	void hint(unsigned n, unsigned caller)
	{
		prepare_call(n, caller);
		trigger_hint(&trigger[n], 0, caller);
	}

	/* True: this run has seen all calls. */
	bool run(unsigned n)
	{
		uint64_t due_ms;
		int calls;

		if (!trigger_due(&trigger[n], &due_ms) || !trigger_begin(&trigger[n], CALLERS))
			return false;
		RL_ASSERT(payload[n][due_ms] == 1);
		calls = stamp[n].load(rl::mo_relaxed, $);
		trigger_end(&trigger[n], CALLERS, TRIGGER_NO_NEXT);
		return calls == (n ? 2 : 1);
	}

	void own()
	{
		bool seen[TRIGGERS] = {};
		struct trigger *t;

		while (!seen[0] || !seen[1]) {
			woken.wait(false, false, $);
			while ((t = trigger_queue_take(&queue)))
				seen[t - trigger] |= run((unsigned)(t - trigger));
		}
	}

	void thread(unsigned index)
	{
		if (index == CALLERS) {
			own();
			return;
		}
		if (index == 1) {
			fire(1, index);
			return;
		}
		hint(1, index); /* both at once; the hint names the sooner moment, and is not heard
				   before the other one's order */
		fire(0, index); /* and one that may find the queue not empty */
	}
};

int main()
{
	rl::test_params p;
	std::ostream nothing(0);

	p.search_type = rl::fair_context_bound_scheduler_type;
	p.context_bound = CONTEXT_BOUND;
	p.execution_depth_limit = 2000;
	p.progress_stream = &nothing;
	return !rl::simulate<trigger_test>(p);
}
