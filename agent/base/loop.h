/*
 * The event loop: libevent for descriptors, the timing wheel for time, a signalfd for signals.
 *
 * One timerfd is armed for the wheel's next moment, so that the loop sleeps while nothing is due.
 * One eventfd wakes it from other threads. libevent is used here, and its HTTP server in
 * httpd/server.c and httpd/clients.c.
 *
 * Threads: all from the loop's thread, but loop_wake() from any. Errors: -errno, or NULL for "could
 * not be made".
 */
#ifndef PULLET_LOOP_H
#define PULLET_LOOP_H

#include "lib/wheel.h"
#include "base/sys.h"

struct event_base; /* libevent's; for its HTTP server */
/* File descriptors of its own: epoll, timer, wake-up, signals, a pair of libevent's. */
#define LOOP_DESCRIPTORS 6

struct loop;

enum { LOOP_READ = 1, LOOP_WRITE = 2 };

/* A watched descriptor. Embedded by its user; fields are private but fd. */
struct loop_watch {
	struct event *event;
	int fd;
	unsigned events;
	void (*ready)(void *arg, int fd, unsigned events);
	void *arg;
};

/* A timer with its handler. Embedded by its user. */
struct loop_timer {
	struct wheel_timer timer; /* first */
	void (*due)(void *arg);
	void *arg;
};

struct loop *loop_new(const struct sys *sys);
void loop_free(struct loop *l);
/* Runs until loop_stop(); may be called again. 0 or -errno. */
int loop_run(struct loop *l);
void loop_stop(struct loop *l);
/* Monotonic milliseconds, read afresh. */
uint64_t loop_now_ms(struct loop *l);
const struct sys *loop_sys(struct loop *l);
/* Processor time of the longest turn so far, in microseconds. */
uint64_t loop_longest_us(const struct loop *l);
struct event_base *loop_base(struct loop *l);

/* Any thread: makes the loop call the function given to loop_on_wake() soon.
 * Several wakes may become one call. */
void loop_wake(struct loop *l);
void loop_on_wake(struct loop *l, void (*take_triggers)(void *arg), void *arg);

/* Calls resumed(arg, late_ms) before the timers when the next of them is more than 5 s late: the
 * machine slept (CLOCK_BOOTTIME counts that), or the process was stopped. */
void loop_on_resume(struct loop *l, void (*resumed)(void *arg, uint64_t late_ms), void *arg);

/* Timers: as the wheel's. loop_timer_set() may be called from any handler of the loop. */
void loop_timer_init(struct loop_timer *t, void (*due)(void *arg), void *arg);
void loop_timer_set(struct loop *l, struct loop_timer *t, uint64_t due_ms);
void loop_timer_cancel(struct loop *l, struct loop_timer *t);

/* Watches fd for events (LOOP_READ | LOOP_WRITE); calling it again changes the events. 0 or -errno.
 * Does not own fd. */
int loop_watch(struct loop *l, struct loop_watch *w, int fd, unsigned events,
	void (*descriptor_ready)(void *arg, int fd, unsigned events), void *arg);
void loop_unwatch(struct loop_watch *w);

/* Calls handle(arg, signal) in the loop's thread. The signal is blocked in the calling thread from
 * then on, also after loop_free() and in what it executes: one that comes meanwhile waits. At most
 * 8 signals. 0 or -errno. */
int loop_on_signal(struct loop *l, int signal, void (*handle)(void *arg, int signal), void *arg);

#endif
