/*
 * libevent for descriptors, the wheel for time, a signalfd for signals.
 *
 * Surprising: libevent's own timeouts are not used. Its clock does not count suspend; a timerfd on
 * CLOCK_BOOTTIME, armed for the wheel's next moment, does, and never fires early.
 */
#include "base/loop.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/log.h"

#define MAX_SIGNALS 8
#define MAX_EXPIRED 1024 /* in one turn, then others have theirs */
#define LATE_MS 5000     /* no load makes a timer so late: machine or process was stopped */

struct loop_signal {
	int number;
	void (*handle)(void *arg, int signal);
	void *arg;
};

struct loop {
	const struct sys *sys;
	struct event_base *base;
	struct wheel wheel;
	struct loop_watch timer_watch, wake_watch;
	uint64_t armed_ms; /* what the timerfd is set to; 0 = not */
	void (*woken)(void *arg);
	void *woken_arg;
	void (*resumed)(void *arg, uint64_t late_ms);
	void *resumed_arg;
	uint64_t turn_ms;               /* when the last turn began */
	struct loop_watch signal_watch; /* signalfd */
	sigset_t signal_set;
	struct loop_signal signals[MAX_SIGNALS];
	unsigned signal_count;
	uint64_t longest_us; /* of processor time, for one turn */
	bool stopping;
};

/* Sets the timerfd to the wheel's next moment, if that changed. */
static void arm_timerfd(struct loop *l)
{
	struct itimerspec t = {0};
	uint64_t due_ms = 0;

	if (wheel_next(&l->wheel, &due_ms) && due_ms == 0)
		due_ms = 1; /* 0 would disarm */
	if (due_ms == l->armed_ms)
		return;
	l->armed_ms = due_ms;
	t.it_value.tv_sec = (time_t)(due_ms / 1000);
	t.it_value.tv_nsec = (long)(due_ms % 1000) * 1000000;
	timerfd_settime(l->timer_watch.fd, TFD_TIMER_ABSTIME, &t, NULL);
}

static void timerfd_fired(void *arg, int fd, unsigned events)
{
	struct loop *l = arg;
	uint64_t count;

	(void)events;
	if (read(fd, &count, sizeof(count)) == sizeof(count))
		l->armed_ms = 0; /* loop_run() does the rest */
}

/* Calls resumed() before late timers run, if nothing ran for a while. */
static void notice_resume(struct loop *l, uint64_t now_ms)
{
	uint64_t due_ms, before_ms = l->turn_ms;

	l->turn_ms = now_ms;
	if (l->resumed && wheel_next(&l->wheel, &due_ms) && now_ms > due_ms + LATE_MS &&
		now_ms > before_ms + LATE_MS)
		l->resumed(l->resumed_arg, now_ms - due_ms);
}

/* Calls the handlers of due timers. False when more may be due. */
static bool run_timers(struct loop *l)
{
	uint64_t now_ms = l->sys->now_ms();
	struct wheel_timer *t;

	notice_resume(l, now_ms);
	for (unsigned i = 0; i < MAX_EXPIRED && !l->stopping; i++) {
		t = wheel_advance(&l->wheel, now_ms);
		if (!t)
			return true;
		((struct loop_timer *)t)->due(((struct loop_timer *)t)->arg);
	}
	return false;
}

static void wake_received(void *arg, int fd, unsigned events)
{
	struct loop *l = arg;
	uint64_t count;

	(void)events;
	if (read(fd, &count, sizeof(count)) < 0)
		return;
	if (l->woken)
		l->woken(l->woken_arg);
}

/* libevent ends the program after an error. */
static void log_libevent(int severity, const char *message)
{
	if (severity == EVENT_LOG_ERR)
		log_err("the event loop cannot go on: memory, file descriptors or threads are "
			"short: raise the limits (LimitNOFILE, MemoryMax, TasksMax)",
			"why", message);
	else
		log_debug("libevent", "says", message);
}

struct loop *loop_new(const struct sys *sys)
{
	struct loop *l = calloc(1, sizeof(*l));
	int timer_fd, wake_fd;

	if (!l)
		return NULL;
	l->sys = sys;
	event_set_log_callback(log_libevent);
	l->base = event_base_new();
	l->turn_ms = sys->now_ms();
	wheel_init(&l->wheel, l->turn_ms);
	timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
	wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	l->signal_watch.fd = -1;
	sigemptyset(&l->signal_set);
	l->timer_watch.fd = timer_fd;
	l->wake_watch.fd = wake_fd;
	if (!l->base || timer_fd < 0 || wake_fd < 0 ||
		loop_watch(l, &l->timer_watch, timer_fd, LOOP_READ, timerfd_fired, l) ||
		loop_watch(l, &l->wake_watch, wake_fd, LOOP_READ, wake_received, l)) {
		loop_free(l);
		return NULL;
	}
	return l;
}

void loop_free(struct loop *l)
{
	if (!l)
		return;
	loop_unwatch(&l->signal_watch);
	if (l->signal_watch.fd >= 0)
		close(l->signal_watch.fd);
	loop_unwatch(&l->timer_watch);
	loop_unwatch(&l->wake_watch);
	if (l->timer_watch.fd >= 0)
		close(l->timer_watch.fd);
	if (l->wake_watch.fd >= 0)
		close(l->wake_watch.fd);
	if (l->base)
		event_base_free(l->base);
	free(l);
}

/* Prepares for what comes next. True: the kernel may let the loop sleep until then. */
static bool prepare_sleep(struct loop *l)
{
	uint64_t due_ms = UINT64_MAX;

	if (!l->sys->wait_until) {
		arm_timerfd(l);
		return true;
	}
	wheel_next(&l->wheel, &due_ms);
	l->sys->wait_until(due_ms);
	return false;
}

int loop_run(struct loop *l)
{
	uint64_t begin_us = sys_thread_us(), end_us;

	while (!l->stopping) {
		bool idle = run_timers(l);

		if (l->stopping)
			break;
		idle = idle && prepare_sleep(l);
		if (event_base_loop(l->base, EVLOOP_ONCE | (idle ? 0 : EVLOOP_NONBLOCK)) < 0)
			return -EIO;
		end_us = sys_thread_us();
		if (end_us - begin_us > l->longest_us)
			l->longest_us = end_us - begin_us;
		begin_us = end_us;
	}
	l->stopping = false;
	return 0;
}

void loop_stop(struct loop *l)
{
	l->stopping = true;
	event_base_loopbreak(l->base);
}

uint64_t loop_now_ms(struct loop *l)
{
	return l->sys->now_ms();
}

uint64_t loop_longest_us(const struct loop *l)
{
	return l->longest_us;
}

const struct sys *loop_sys(struct loop *l)
{
	return l->sys;
}

struct event_base *loop_base(struct loop *l)
{
	return l->base;
}

void loop_wake(struct loop *l)
{
	uint64_t one = 1;

	/* it can fail only when the counter is full: then the loop is awake anyway */
	if (write(l->wake_watch.fd, &one, sizeof(one)) < 0)
		return;
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

static void descriptor_ready(evutil_socket_t fd, short what, void *arg)
{
	struct loop_watch *w = arg;

	w->ready(w->arg, fd, (what & EV_READ ? LOOP_READ : 0) | (what & EV_WRITE ? LOOP_WRITE : 0));
}

int loop_watch(struct loop *l, struct loop_watch *w, int fd, unsigned events,
	void (*when_ready)(void *arg, int fd, unsigned events), void *arg)
{
	short what = EV_PERSIST;

	what |= events & LOOP_READ ? EV_READ : 0;
	what |= events & LOOP_WRITE ? EV_WRITE : 0;
	loop_unwatch(w);
	*w = (struct loop_watch){.fd = fd, .events = events, .ready = when_ready, .arg = arg};
	w->event = event_new(l->base, fd, what, descriptor_ready, w);
	if (!w->event)
		return -ENOMEM;
	if (event_add(w->event, NULL)) {
		loop_unwatch(w);
		return -EIO;
	}
	return 0;
}

void loop_unwatch(struct loop_watch *w)
{
	if (w->event)
		event_free(w->event);
	w->event = NULL;
}

static void signal_received(void *arg, int fd, unsigned events)
{
	struct loop *l = arg;
	struct signalfd_siginfo info;

	(void)events;
	if (read(fd, &info, sizeof(info)) != sizeof(info))
		return;
	for (unsigned i = 0; i < l->signal_count; i++)
		if (l->signals[i].number == (int)info.ssi_signo)
			l->signals[i].handle(l->signals[i].arg, l->signals[i].number);
}

int loop_on_signal(struct loop *l, int number, void (*handle)(void *arg, int signal), void *arg)
{
	int fd;

	if (l->signal_count == MAX_SIGNALS)
		return -ENOSPC;
	sigaddset(&l->signal_set, number);
	pthread_sigmask(SIG_BLOCK, &l->signal_set, NULL);
	fd = signalfd(l->signal_watch.fd, &l->signal_set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	l->signals[l->signal_count++] =
		(struct loop_signal){.number = number, .handle = handle, .arg = arg};
	return loop_watch(l, &l->signal_watch, fd, LOOP_READ, signal_received, l);
}
