/* Loop and worker on the real clock of the kernel: order, wake-ups from other threads, jobs. Each
 * waits for its event; an alarm is the deadline. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cmocka.h>

#include <event2/event.h>

#include "base/worker.h"
#include "tests/unit/fixture/fault_memory.h"

static struct loop *loop;

struct note {
	struct loop_timer timer;
	char letter;
	uint64_t due_ms, at_ms;
};

static char order[16];
static struct itimerspec armed; /* what the kernel was asked for last */

int timerfd_settime(int fd, int flags, const struct itimerspec *new, struct itimerspec *old)
{
	armed = *new;
	return (int)syscall(SYS_timerfd_settime, fd, flags, new, old);
}
static unsigned late_or_early;

static void note_down(void *arg)
{
	struct note *n = arg;
	size_t len = strlen(order);

	order[len] = n->letter;
	order[len + 1] = '\0';
	late_or_early += loop_now_ms(loop) < n->due_ms;
	if (len + 1 == 4)
		loop_stop(loop);
}

static void stop_at_once(void *arg)
{
	loop_stop(arg);
}

/* Else it would wake up before its time, again and again, or late. */
static void kernel__is_asked_for_the_next_moment(void **state)
{
	struct loop_timer far, now;
	uint64_t due_ms;

	(void)state;
	loop = loop_new(&sys_real);
	due_ms = loop_now_ms(loop) + 98765432;
	loop_timer_init(&far, stop_at_once, loop);
	loop_timer_init(&now, stop_at_once, loop);
	loop_timer_set(loop, &far, due_ms);
	loop_timer_set(loop, &now, loop_now_ms(loop) + 5);
	loop_run(loop);
	loop_timer_set(loop, &now, loop_now_ms(loop) + 98765000);
	loop_timer_cancel(loop, &now);
	loop_on_wake(loop, stop_at_once, loop);
	loop_wake(loop);
	loop_run(loop);
	assert_int_equal(
		(uint64_t)armed.it_value.tv_sec * 1000 + (uint64_t)armed.it_value.tv_nsec / 1000000,
		due_ms);
	loop_timer_cancel(loop, &far);
	loop_free(loop);
}

static void timers__in_any_order__expire_in_the_order_of_time_and_never_early(void **state)
{
	struct note notes[4] = {{.letter = 'd'}, {.letter = 'b'}, {.letter = 'a'}, {.letter = 'c'}};
	static const unsigned after[] = {30, 10, 0, 20};
	uint64_t now;

	(void)state;
	loop = loop_new(&sys_real);
	now = loop_now_ms(loop);
	for (int i = 0; i < 4; i++) {
		notes[i].due_ms = now + after[i];
		loop_timer_init(&notes[i].timer, note_down, &notes[i]);
		loop_timer_set(loop, &notes[i].timer, notes[i].due_ms);
	}
	assert_int_equal(loop_run(loop), 0);
	assert_string_equal(order, "abcd");
	assert_int_equal(late_or_early, 0);
	loop_free(loop);
}

/* ---- a virtual clock ---- */

static uint64_t virtual_ms, waits;

static uint64_t virtual_now(void)
{
	return virtual_ms;
}

static void virtual_wait(uint64_t due_ms)
{
	waits++;
	assert_true(due_ms > virtual_ms);
	if (due_ms == UINT64_MAX)
		loop_stop(loop);
	else
		virtual_ms = due_ms;
}

static void timers__of_a_century__pass_at_once_on_a_virtual_clock(void **state)
{
	const uint64_t century_ms = UINT64_C(3155760000000);
	struct note notes[3] = {{.letter = 'b'}, {.letter = 'c'}, {.letter = 'a'}};
	const uint64_t after[] = {1000, century_ms, 1};
	struct sys sys = sys_real;

	(void)state;
	sys.now_ms = virtual_now;
	sys.wait_until = virtual_wait;
	order[0] = '\0';
	late_or_early = 0;
	virtual_ms = 5;
	loop = loop_new(&sys);
	for (int i = 0; i < 3; i++) {
		notes[i].due_ms = virtual_ms + after[i];
		loop_timer_init(&notes[i].timer, note_down, &notes[i]);
		loop_timer_set(loop, &notes[i].timer, notes[i].due_ms);
	}
	assert_int_equal(loop_run(loop), 0);
	assert_string_equal(order, "abc");
	assert_int_equal(late_or_early, 0);
	assert_int_equal(virtual_ms, 5 + century_ms);
	assert_int_equal(waits, 4); /* one for each, one for nothing */
	loop_free(loop);
}

static void cancelled_due(void *arg)
{
	(void)arg;
	fail_msg("a cancelled timer came");
}

static void stop_due(void *arg)
{
	(void)arg;
	loop_stop(loop);
}

static void timer__cancelled__does_not_come(void **state)
{
	struct loop_timer a, b;

	(void)state;
	loop = loop_new(&sys_real);
	loop_timer_init(&a, cancelled_due, NULL);
	loop_timer_init(&b, stop_due, NULL);
	loop_timer_set(loop, &a, loop_now_ms(loop) + 5);
	loop_timer_set(loop, &b, loop_now_ms(loop) + 10);
	loop_timer_cancel(loop, &a);
	assert_int_equal(loop_run(loop), 0);
	loop_free(loop);
}

static unsigned woken_count;

static void woken(void *arg)
{
	(void)arg;
	woken_count++;
	loop_stop(loop);
}

static void *wake_it(void *arg)
{
	(void)arg;
	for (int i = 0; i < 1000; i++)
		loop_wake(loop);
	return NULL;
}

static void wake__from_another_thread__is_seen_and_gathered(void **state)
{
	pthread_t thread;

	(void)state;
	loop = loop_new(&sys_real);
	loop_on_wake(loop, woken, NULL);
	assert_int_equal(pthread_create(&thread, NULL, wake_it, NULL), 0);
	assert_int_equal(loop_run(loop), 0);
	pthread_join(thread, NULL);
	assert_true(woken_count >= 1 && woken_count <= 1000);
	loop_free(loop);
}

static int signal_seen;

static void signalled(void *arg, int number)
{
	(void)arg;
	signal_seen = number;
	loop_stop(loop);
}

static void signal__raised__comes_in_the_loop(void **state)
{
	(void)state;
	loop = loop_new(&sys_real);
	assert_int_equal(loop_on_signal(loop, SIGUSR2, signalled, NULL), 0);
	kill(getpid(), SIGUSR2);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(signal_seen, SIGUSR2);
	loop_free(loop);
}

struct work {
	struct worker_job job; /* first */
	pthread_t ran_in, done_in;
	unsigned number;
};

static unsigned runs, dones;

static void work_run(struct worker_job *job)
{
	struct work *w = (struct work *)job;

	w->ran_in = pthread_self();
	w->number = ++runs;
}

static void work_done(struct worker_job *job)
{
	((struct work *)job)->done_in = pthread_self();
	if (++dones == 3 && loop)
		loop_stop(loop);
}

static void worker__jobs__run_there_in_order_and_end_here(void **state)
{
	struct work jobs[3];
	struct worker *w;

	(void)state;
	loop = loop_new(&sys_real);
	w = worker_start(loop, "test");
	assert_non_null(w);
	for (int i = 0; i < 3; i++) {
		jobs[i] = (struct work){.job = {.run = work_run, .done = work_done}};
		worker_submit(w, &jobs[i].job);
	}
	assert_int_equal(loop_run(loop), 0);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(jobs[i].number, i + 1);
		assert_false(pthread_equal(jobs[i].ran_in, pthread_self()));
		assert_true(pthread_equal(jobs[i].done_in, pthread_self()));
	}
	assert_int_equal(worker_stop(w, 5000), 0);
	loop_free(loop);
}

static sem_t ran;

static void work_run_and_say(struct worker_job *job)
{
	work_run(job);
	sem_post(&ran);
}

static void work_done_alone(struct worker_job *job)
{
	(void)job;
	dones++;
	loop_stop(loop);
}

/* Whatever it was beside before. */
static void worker__job_that_is_submitted_again__runs_alone(void **state)
{
	struct work jobs[2];
	struct worker *w;

	(void)state;
	runs = dones = 0;
	loop = loop_new(&sys_real);
	w = worker_start(loop, "test");
	for (size_t i = 0; i < 2; i++) {
		jobs[i] = (struct work){.job = {.run = work_run_and_say, .done = work_done_alone}};
		worker_submit(w, &jobs[i].job);
	}
	for (size_t i = 0; i < 2; i++) /* both end before the loop hears of it */
		while (sem_wait(&ran))
			;
	while (dones < 2)
		assert_int_equal(loop_run(loop), 0);
	worker_submit(w, &jobs[0].job);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(worker_stop(w, 5000), 0);
	assert_int_equal(jobs[0].number, 3);
	assert_int_equal(jobs[1].number, 2);
	assert_int_equal(dones, 3);
	loop_free(loop);
}

static int worker_nice, loop_nice;
static char worker_name[16];
static sigset_t worker_blocks;

static void work_look(struct worker_job *job)
{
	(void)job;
	worker_nice = getpriority(PRIO_PROCESS, 0);
	pthread_getname_np(pthread_self(), worker_name, sizeof(worker_name));
	pthread_sigmask(SIG_SETMASK, NULL, &worker_blocks);
}

static void work_looked(struct worker_job *job)
{
	(void)job;
	loop_nice = getpriority(PRIO_PROCESS, 0);
	loop_stop(loop);
}

static void worker__that_is_behind__gives_way_and_the_loop_does_not(void **state)
{
	struct worker_job job = {.run = work_look, .done = work_looked};
	int before = getpriority(PRIO_PROCESS, 0);
	struct worker *w;

	(void)state;
	loop = loop_new(&sys_real);
	w = worker_start_behind(loop, "test", 3);
	assert_non_null(w);
	worker_submit(w, &job);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(worker_nice, before + 3 > 19 ? 19 : before + 3);
	assert_int_equal(loop_nice, before);
	assert_int_equal(worker_stop(w, 5000), 0);
	w = worker_start(loop, "test");
	worker_submit(w, &job);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(worker_nice, before);
	assert_int_equal(worker_stop(w, 5000), 0);
	loop_free(loop);
}

static void worker__has_its_name__and_leaves_signals_to_the_loop(void **state)
{
	static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGCHLD, SIGPIPE, SIGALRM};
	struct worker_job job = {.run = work_look, .done = work_looked};
	sigset_t before, after;
	struct worker *w;

	(void)state;
	loop = loop_new(&sys_real);
	pthread_sigmask(SIG_SETMASK, NULL, &before);
	w = worker_start(loop, "its-name");
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	worker_submit(w, &job);
	assert_int_equal(loop_run(loop), 0);
	assert_string_equal(worker_name, "its-name");
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		assert_true(sigismember(&worker_blocks, signals[i]));
		assert_int_equal(sigismember(&before, signals[i]), sigismember(&after, signals[i]));
	}
	assert_false(sigismember(&worker_blocks, SIGBUS)); /* of a page that it reads itself */
	assert_int_equal(worker_stop(w, 5000), 0);
	loop_free(loop);
}

static void worker__whose_thread_cannot_be_made__is_none_and_leaves_nothing(void **state)
{
	int first = dup(STDIN_FILENO), second;
	pthread_attr_t before, larger;

	(void)state;
	close(first);
	loop = loop_new(&sys_real);
	pthread_getattr_default_np(&before);
	pthread_attr_init(&larger);
	pthread_attr_setstacksize(&larger, (size_t)1 << 46); /* no machine has that */
	assert_int_equal(pthread_setattr_default_np(&larger), 0);
	assert_null(worker_start(loop, "test"));
	pthread_setattr_default_np(&before);
	pthread_attr_destroy(&larger);
	pthread_attr_destroy(&before);
	loop_free(loop);
	second = dup(STDIN_FILENO);
	close(second);
	assert_int_equal(second, first);
}

static void worker_stop__with_jobs_queued__ends_them_first(void **state)
{
	struct work jobs[3];
	struct worker *w;

	(void)state;
	runs = dones = 0;
	loop = loop_new(&sys_real);
	w = worker_start(loop, "test");
	for (int i = 0; i < 3; i++) {
		jobs[i] = (struct work){.job = {.run = work_run, .done = work_done}};
		worker_submit(w, &jobs[i].job);
	}
	assert_int_equal(worker_stop(w, 5000), 0);
	assert_int_equal(dones, 3);
	loop_free(loop);
}

static void work_long(struct worker_job *job)
{
	struct timespec time = {.tv_nsec = 30000000};

	(void)job;
	while (nanosleep(&time, &time))
		;
}

/* Of an odd time, whose seconds and the rest are carried. */
static void worker_stop__waits_for_a_job_that_takes_less(void **state)
{
	struct work job = {.job = {.run = work_long, .done = work_done}};
	struct worker *w;

	(void)state;
	runs = dones = 0;
	loop = loop_new(&sys_real);
	w = worker_start(loop, "test");
	worker_submit(w, &job.job);
	assert_int_equal(worker_stop(w, 1998), 0);
	assert_int_equal(dones, 1);
	loop_free(loop);
}

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static sem_t hangs;

static void work_hang(struct worker_job *job)
{
	(void)job;
	sem_post(&hangs);
	pthread_mutex_lock(&gate);
	pthread_mutex_unlock(&gate);
}

static void worker_stop__while_a_job_hangs__gives_up_in_time(void **state)
{
	static struct work hung;
	struct worker *w;

	(void)state;
	loop = loop_new(&sys_real);
	w = worker_start(loop, "test");
	hung = (struct work){.job = {.run = work_hang, .done = work_done}};
	pthread_mutex_lock(&gate);
	worker_submit(w, &hung.job);
	while (sem_wait(&hangs)) /* one that has not begun would be dropped */
		;
	assert_int_equal(worker_stop(w, 20), -ETIMEDOUT);
	pthread_mutex_unlock(&gate);
	assert_int_equal(worker_stop(w, 5000), 0);
	loop_free(loop);
}

static void worker__job_that_is_cancelled__neither_runs_nor_ends(void **state)
{
	static struct work hung, jobs[4];
	struct worker *w;

	(void)state;
	runs = dones = 0;
	loop = loop_new(&sys_real);
	w = worker_start(loop, "test");
	hung = (struct work){.job = {.run = work_hang, .done = work_done}};
	pthread_mutex_lock(&gate);
	worker_submit(w, &hung.job);
	while (sem_wait(&hangs)) /* one that has not begun would be dropped */
		;
	for (int i = 0; i < 3; i++) {
		jobs[i] = (struct work){.job = {.run = work_run, .done = work_done}};
		worker_submit(w, &jobs[i].job);
	}
	assert_true(worker_cancel(w, &jobs[2].job)); /* the last one: others still fit behind */
	jobs[3] = (struct work){.job = {.run = work_run, .done = work_done}};
	worker_submit(w, &jobs[3].job);
	assert_true(worker_cancel(w, &jobs[0].job));
	assert_false(worker_cancel(w, &jobs[0].job));
	pthread_mutex_unlock(&gate);
	assert_int_equal(worker_stop(w, 60000), 0);
	assert_int_equal(runs, 2);
	assert_int_equal(dones, 3);
	assert_int_equal(jobs[1].number, 1);
	assert_int_equal(jobs[3].number, 2);
	assert_int_equal(jobs[0].number + jobs[2].number, 0);
	loop_free(loop);
}

/* ---- a machine that slept ---- */

static uint64_t slept_now_ms, slept_late_ms;
static struct sys slept_sys;

static uint64_t slept_now(void)
{
	return slept_now_ms;
}

static void slept_wait(uint64_t due_ms)
{
	(void)due_ms;
}

static void slept_noticed(void *arg, uint64_t late_ms)
{
	assert_ptr_equal(arg, &slept_late_ms);
	slept_late_ms = late_ms;
}

static void slept_due(void *arg)
{
	loop_stop(arg);
}

static void resume__is_noticed_when_timers_are_very_late(void **state)
{
	static const struct {
		uint64_t begin_ms, now_ms, expected;
	} rows[] = {
		{0, 1000, 0}, {0, 5999, 0}, {0, 6000, 0}, {0, 6001, 5001}, {0, 9000, 8000},
		{9000, 9000, 0}, /* the timer is of before the loop began */
	};

	(void)state;
	slept_sys = sys_real;
	slept_sys.now_ms = slept_now;
	slept_sys.wait_until = slept_wait;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct loop_timer timer;

		slept_now_ms = rows[i].begin_ms;
		slept_late_ms = 0;
		loop = loop_new(&slept_sys);
		loop_on_resume(loop, slept_noticed, &slept_late_ms);
		loop_timer_init(&timer, slept_due, loop);
		loop_timer_set(loop, &timer, 1000);
		slept_now_ms = rows[i].now_ms;
		assert_int_equal(loop_run(loop), 0);
		assert_int_equal(slept_late_ms, rows[i].expected);
		assert_ptr_equal(loop_sys(loop), &slept_sys);
		assert_int_equal(loop_now_ms(loop), rows[i].now_ms);
		loop_free(loop);
	}
}

#define WORK_US 10000u

static void work_in_the_loop(void *arg)
{
	uint64_t until_us = sys_thread_us() + WORK_US;

	(void)arg;
	while (sys_thread_us() < until_us)
		;
}

static void do_little(void *arg)
{
	(void)arg;
}

/* What an operator looks at when the agent was late: the worst turn, not the last one. */
static void longest_turn__is_known_and_stays(void **state)
{
	struct loop_timer timers[3];
	uint64_t begin_us;

	(void)state;
	loop = loop_new(&sys_real);
	assert_int_equal(loop_longest_us(loop), 0);
	loop_timer_init(&timers[0], work_in_the_loop, NULL);
	loop_timer_init(&timers[1], do_little, NULL);
	loop_timer_init(&timers[2], stop_at_once, loop);
	for (unsigned i = 0; i < 3; i++)
		loop_timer_set(loop, &timers[i], loop_now_ms(loop) + i * 2 * WORK_US / 1000);
	begin_us = sys_thread_us();
	assert_int_equal(loop_run(loop), 0);
	assert_in_range(loop_longest_us(loop), WORK_US, sys_thread_us() - begin_us);
	loop_free(loop);
}

/* ---- descriptors ---- */

static unsigned ready_events, ready_count;

static void descriptor_is_ready(void *arg, int fd, unsigned events)
{
	assert_int_equal(*(int *)arg, fd);
	ready_events = events;
	ready_count++;
	loop_stop(loop);
}

static void watch__tells_what_a_descriptor_is_ready_for(void **state)
{
	struct loop_watch watch = {0}, other = {0};
	struct loop_timer moment;
	int ends[2];

	(void)state;
	loop = loop_new(&sys_real);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(
		loop_watch(loop, &watch, ends[1], LOOP_WRITE, descriptor_is_ready, &ends[1]), 0);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(ready_events, LOOP_WRITE);
	/* again, for another one: the first is forgotten, though it is ready still */
	assert_int_equal(
		loop_watch(loop, &watch, ends[0], LOOP_READ, descriptor_is_ready, &ends[0]), 0);
	loop_timer_init(&moment, stop_at_once, loop);
	loop_timer_set(loop, &moment, loop_now_ms(loop) + 3);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(ready_count, 1);
	assert_int_equal(write(ends[1], "x", 1), 1);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(ready_events, LOOP_READ);
	assert_int_equal(loop_run(loop), 0); /* it is still there to read */
	assert_int_equal(ready_count, 3);
	loop_unwatch(&watch);
	loop_unwatch(&watch);
	assert_int_not_equal(
		loop_watch(loop, &other, 999999, LOOP_READ, descriptor_is_ready, &ends[0]), 0);
	close(ends[0]);
	close(ends[1]);
	loop_free(loop);
	loop_free(NULL);
}

static void signals__more_than_there_is_room_for__are_refused(void **state)
{
	sigset_t before;

	(void)state;
	pthread_sigmask(SIG_SETMASK, NULL, &before);
	loop = loop_new(&sys_real);
	for (int i = 0; i < 8; i++)
		assert_int_equal(loop_on_signal(loop, SIGRTMIN + i, signalled, NULL), 0);
	assert_int_equal(loop_on_signal(loop, SIGRTMIN + 8, signalled, NULL), -ENOSPC);
	for (int i = 0; i < 8; i += 7) {
		kill(getpid(), SIGRTMIN + i);
		assert_int_equal(loop_run(loop), 0);
		assert_int_equal(signal_seen, SIGRTMIN + i);
	}
	loop_free(loop);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Numbers of the next descriptors: the same as long as none is lost. */
static int next_descriptor(void)
{
	int fd = dup(STDIN_FILENO);

	close(fd);
	return fd;
}

static void loop_and_worker__without_memory__are_none_and_leave_nothing(void **state)
{
	int first = next_descriptor(), second;
	struct worker *w = NULL;
	unsigned failures = 0;

	(void)state;
	event_base_free(event_base_new()); /* what libevent keeps for itself */
	for (loop = NULL; !loop; failures += !loop) {
		assert_int_equal(next_descriptor(), first);
		assert_in_range(failures, 0, 100);
		fault_memory.seen = 0;
		fault_memory.for_ever = true;
		fault_memory.nth = failures + 1;
		loop = loop_new(&sys_real);
		fault_memory.nth = 0;
	}
	assert_true(failures >= 4);
	second = next_descriptor();
	for (failures = 0; !w; failures += !w) {
		assert_int_equal(next_descriptor(), second);
		assert_in_range(failures, 0, 100);
		fault_memory.seen = 0;
		fault_memory.for_ever = true;
		fault_memory.nth = failures + 1;
		w = worker_start(loop, "test");
		fault_memory.nth = 0;
	}
	assert_true(failures >= 2);
	assert_int_equal(worker_stop(w, 10000), 0);
	loop_free(loop);
	assert_int_equal(next_descriptor(), first);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernel__is_asked_for_the_next_moment),
		cmocka_unit_test(timers__in_any_order__expire_in_the_order_of_time_and_never_early),
		cmocka_unit_test(timers__of_a_century__pass_at_once_on_a_virtual_clock),
		cmocka_unit_test(timer__cancelled__does_not_come),
		cmocka_unit_test(wake__from_another_thread__is_seen_and_gathered),
		cmocka_unit_test(signal__raised__comes_in_the_loop),
		/* the first: no other has left signals blocked */
		cmocka_unit_test(worker__has_its_name__and_leaves_signals_to_the_loop),
		cmocka_unit_test(worker__jobs__run_there_in_order_and_end_here),
		cmocka_unit_test(worker__job_that_is_submitted_again__runs_alone),
		cmocka_unit_test(worker__that_is_behind__gives_way_and_the_loop_does_not),
		cmocka_unit_test(worker__whose_thread_cannot_be_made__is_none_and_leaves_nothing),
		cmocka_unit_test(worker_stop__with_jobs_queued__ends_them_first),
		cmocka_unit_test(worker_stop__waits_for_a_job_that_takes_less),
		cmocka_unit_test(worker_stop__while_a_job_hangs__gives_up_in_time),
		cmocka_unit_test(worker__job_that_is_cancelled__neither_runs_nor_ends),
		cmocka_unit_test(resume__is_noticed_when_timers_are_very_late),
		cmocka_unit_test(longest_turn__is_known_and_stays),
		cmocka_unit_test(watch__tells_what_a_descriptor_is_ready_for),
		cmocka_unit_test(signals__more_than_there_is_room_for__are_refused),
		cmocka_unit_test(loop_and_worker__without_memory__are_none_and_leave_nothing),
	};

	alarm(60);
	sem_init(&hangs, 0, 0);
	sem_init(&ran, 0, 0);
	return fault_memory_run(tests, 1);
}
