/*
 * The timing wheel beside the timers of libev and libuv, in one run: schedule, cancel and expire
 * with up to 1 million timers (10 million if asked), memory, and wake-ups while idle.
 *
 * All get the same due times (whole milliseconds within five minutes, at random) and are cancelled
 * in the same random order. Rounds alternate between them, so that noise hits all alike; medians
 * over the rounds are printed.
 *
 * What surprises: this program has a clock_gettime() of its own, which both libraries then use: the
 * real one plus an offset. To expire five minutes of timers, the offset jumps and the loop runs
 * once without waiting: one system call and one walk through all that is due, the best case for
 * both. The wheel has no such help: it moves from each due moment to the next by wheel_next(), as
 * the agent does; "1 ms steps" moves it through every millisecond, also the empty ones. Above a
 * million timers only a tenth of the time passes (a heap of 10 million takes a minute to empty);
 * the figure is per timer that expired.
 *
 * Usage: bench_wheel [LARGEST_COUNT]
 */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <ev.h>
#include <uv.h>

#include "../../lib/wheel.h"
#include "bench.h"

#define RANGE_MS 300000u
#define MILLION 1000000u
#define IDLE_MS 5000u
#define HOUR_MS 3600000u
#define MAX_ROUNDS 9

static uint64_t clock_offset_ns; /* changes only while no other thread runs */
static uint32_t *delays_ms, *order;
static size_t expired;

int clock_gettime(clockid_t id, struct timespec *t)
{
	uint64_t ns;

	if (syscall(SYS_clock_gettime, id, t))
		return -1;
	ns = (uint64_t)t->tv_nsec + clock_offset_ns;
	t->tv_sec += (time_t)(ns / 1000000000u);
	t->tv_nsec = (long)(ns % 1000000000u);
	return 0;
}

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "bench_wheel: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void *allocate(size_t n, size_t size)
{
	void *p = calloc(n, size);

	if (!p)
		die("memory");
	return p;
}

/* ---- ours ---- */

static struct wheel *wheel;
static struct wheel_timer *wheel_timers;
static uint64_t wheel_now_ms;

static void ours_open(size_t n)
{
	wheel = allocate(1, sizeof(*wheel));
	wheel_now_ms = bench_now_ns() / 1000000u;
	wheel_init(wheel, wheel_now_ms);
	for (size_t i = 0; i < n; i++)
		wheel_timer_init(&wheel_timers[i]);
}

static void ours_close(size_t n)
{
	(void)n;
	free(wheel);
}

static void ours_schedule(size_t n)
{
	for (size_t i = 0; i < n; i++)
		wheel_schedule(wheel, &wheel_timers[i], wheel_now_ms + delays_ms[i]);
}

static void ours_cancel(size_t n)
{
	for (size_t i = 0; i < n; i++)
		wheel_cancel(wheel, &wheel_timers[order[i]]);
}

static void ours_expire(uint64_t pass_ms)
{
	uint64_t end_ms = wheel_now_ms + pass_ms, due_ms;

	while (wheel_next(wheel, &due_ms) && due_ms <= end_ms)
		while (wheel_advance(wheel, due_ms))
			expired++;
	wheel_advance(wheel, end_ms);
	wheel_now_ms = end_ms;
}

static void ours_expire_by_step(uint64_t pass_ms)
{
	for (; pass_ms; pass_ms--) {
		wheel_now_ms++;
		while (wheel_advance(wheel, wheel_now_ms))
			expired++;
	}
}

/* ---- libev ---- */

static struct ev_loop *ev;
static ev_timer *ev_timers;

static void libev_expired(struct ev_loop *loop, ev_timer *t, int events)
{
	(void)loop, (void)t, (void)events;
	expired++;
}

static void libev_open(size_t n)
{
	ev = ev_loop_new(EVFLAG_AUTO);
	if (!ev)
		die("libev");
	for (size_t i = 0; i < n; i++)
		ev_init(&ev_timers[i], libev_expired);
}

static void libev_close(size_t n)
{
	(void)n;
	ev_loop_destroy(ev);
}

static void libev_schedule(size_t n)
{
	for (size_t i = 0; i < n; i++) {
		ev_timer_set(&ev_timers[i], delays_ms[i] / 1000., 0.);
		ev_timer_start(ev, &ev_timers[i]);
	}
}

static void libev_cancel(size_t n)
{
	for (size_t i = 0; i < n; i++)
		ev_timer_stop(ev, &ev_timers[order[i]]);
}

static void libev_expire(uint64_t pass_ms)
{
	(void)pass_ms;
	ev_run(ev, EVRUN_NOWAIT);
}

/* ---- libuv ---- */

static uv_loop_t *uv;
static uv_timer_t *uv_timers;

static void libuv_expired(uv_timer_t *t)
{
	(void)t;
	expired++;
}

static void libuv_open(size_t n)
{
	uv = allocate(1, sizeof(*uv));
	if (uv_loop_init(uv))
		die("libuv");
	for (size_t i = 0; i < n; i++)
		uv_timer_init(uv, &uv_timers[i]);
}

static void libuv_close(size_t n)
{
	for (size_t i = 0; i < n; i++)
		uv_close((uv_handle_t *)&uv_timers[i], NULL);
	uv_run(uv, UV_RUN_DEFAULT);
	if (uv_loop_close(uv))
		die("libuv");
	free(uv);
}

static void libuv_schedule(size_t n)
{
	for (size_t i = 0; i < n; i++)
		uv_timer_start(&uv_timers[i], libuv_expired, delays_ms[i], 0);
}

static void libuv_cancel(size_t n)
{
	for (size_t i = 0; i < n; i++)
		uv_timer_stop(&uv_timers[order[i]]);
}

static void libuv_expire(uint64_t pass_ms)
{
	(void)pass_ms;
	uv_run(uv, UV_RUN_NOWAIT);
}

/* Brings the loops' own time up to the clock, as it is after each wait. */
static void libev_refresh(void)
{
	ev_now_update(ev);
}

static void libuv_refresh(void)
{
	uv_update_time(uv);
}

static void ours_refresh(void)
{
}

/* ---- the table ---- */

enum { OURS, EV, UV, STEPS, LIBRARIES };
enum { SCHEDULE, CANCEL, EXPIRE, OPERATIONS };

static const struct library {
	const char *name;
	void **timers;
	size_t timer_size;
	void (*open)(size_t n);
	void (*close)(size_t n);
	void (*refresh)(void);
	void (*schedule)(size_t n);
	void (*cancel)(size_t n);
	void (*expire)(uint64_t pass_ms);
} libraries[LIBRARIES] = {
	[OURS] = {"wheel", (void **)&wheel_timers, sizeof(struct wheel_timer), ours_open,
		ours_close, ours_refresh, ours_schedule, ours_cancel, ours_expire},
	[EV] = {"libev", (void **)&ev_timers, sizeof(ev_timer), libev_open, libev_close,
		libev_refresh, libev_schedule, libev_cancel, libev_expire},
	[UV] = {"libuv", (void **)&uv_timers, sizeof(uv_timer_t), libuv_open, libuv_close,
		libuv_refresh, libuv_schedule, libuv_cancel, libuv_expire},
	/* shares the wheel of the first */
	[STEPS] = {"wheel, 1 ms steps", NULL, 0, NULL, NULL, ours_refresh, ours_schedule,
		ours_cancel, ours_expire_by_step},
};

/* A round of a small count is repeated, so that its time can be read off the clock. */
static const struct scale {
	size_t count;
	const char *name;
	unsigned rounds, repetitions;
	uint64_t pass_ms;
} scales[] = {
	{1000, "1 thousand", 9, 100, RANGE_MS},
	{100000, "100 thousand", 5, 1, RANGE_MS},
	{MILLION, "1 million", 3, 1, RANGE_MS},
	{10 * MILLION, "10 million", 1, 1, RANGE_MS / 10},
};

enum { SCALES = sizeof(scales) / sizeof(scales[0]) };

static double figures[SCALES][LIBRARIES][OPERATIONS + 1]; /* the last: bytes */
static bool measured[SCALES];

static void prepare(size_t n)
{
	uint64_t seed = 1;

	delays_ms = allocate(n, sizeof(*delays_ms));
	order = allocate(n, sizeof(*order));
	for (size_t i = 0; i < n; i++) {
		size_t other = bench_random(&seed) % (i + 1);

		delays_ms[i] = (uint32_t)(1 + bench_random(&seed) % RANGE_MS);
		order[i] = order[other];
		order[other] = (uint32_t)i;
	}
}

static size_t allocated(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

/* Timer structs are counted by their size; what the library takes besides, by malloc's account with
 * all timers scheduled. */
static double open_and_weigh(const struct library *l, size_t n)
{
	size_t before, own;

	*l->timers = allocate(n, l->timer_size);
	before = allocated();
	l->open(n);
	l->refresh();
	l->schedule(n);
	own = allocated() - before;
	l->cancel(n);
	return (double)l->timer_size + (double)own / (double)n;
}

/* One round of one library: adds what each operation took to ns[], and the timers it did. */
static void one_round(const struct library *l, const struct scale *s, double *ns, size_t *done)
{
	uint64_t at[6];

	l->refresh();
	at[0] = bench_now_ns();
	l->schedule(s->count);
	at[1] = bench_now_ns();
	l->cancel(s->count);
	at[2] = bench_now_ns();
	l->refresh();
	at[3] = bench_now_ns();
	l->schedule(s->count);
	clock_offset_ns += (s->pass_ms + 10) * 1000000u;
	expired = 0;
	at[4] = bench_now_ns();
	l->expire(s->pass_ms);
	at[5] = bench_now_ns();
	if (s->pass_ms < RANGE_MS)
		l->cancel(s->count);
	if (expired == 0 || (s->pass_ms == RANGE_MS && expired != s->count)) {
		fprintf(stderr, "bench_wheel: %s: %zu of %zu timers expired\n", l->name, expired,
			s->count);
		exit(1);
	}
	ns[SCHEDULE] += (double)(at[1] - at[0]);
	ns[CANCEL] += (double)(at[2] - at[1]);
	ns[EXPIRE] += (double)(at[5] - at[4]);
	done[SCHEDULE] += s->count;
	done[CANCEL] += s->count;
	done[EXPIRE] += expired;
}

static void measure(const struct scale *s, double results[LIBRARIES][OPERATIONS + 1])
{
	static double rounds[LIBRARIES][OPERATIONS][MAX_ROUNDS];
	int contenders = s->pass_ms < RANGE_MS ? STEPS : LIBRARIES;

	prepare(s->count);
	for (int l = 0; l < STEPS; l++)
		results[l][OPERATIONS] = open_and_weigh(&libraries[l], s->count);
	for (unsigned round = 0; round < s->rounds; round++)
		for (int l = 0; l < contenders; l++) {
			double ns[OPERATIONS] = {0};
			size_t done[OPERATIONS] = {0};

			for (unsigned r = 0; r < s->repetitions; r++)
				one_round(&libraries[l], s, ns, done);
			for (int o = 0; o < OPERATIONS; o++)
				rounds[l][o][round] = ns[o] / (double)done[o];
		}
	for (int o = 0; o <= OPERATIONS; o++)
		results[STEPS][o] = NAN; /* but for expire, the first row has them */
	for (int l = 0; l < contenders; l++)
		for (int o = l == STEPS ? EXPIRE : 0; o < OPERATIONS; o++)
			results[l][o] = bench_median(rounds[l][o], s->rounds);
	for (int l = 0; l < STEPS; l++) {
		libraries[l].close(s->count);
		free(*libraries[l].timers);
	}
	free(delays_ms);
	free(order);
}

/* ---- idle: one timer an hour away, one that ends the wait ---- */

static void idle_ours(void)
{
	struct epoll_event event = {.events = EPOLLIN};
	int loop = epoll_create1(EPOLL_CLOEXEC), fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	uint64_t now_ms = bench_now_ns() / 1000000u, due_ms;
	struct itimerspec next = {.it_value = {0}};
	struct wheel_timer far, end;
	struct wheel w;

	if (loop < 0 || fd < 0 || epoll_ctl(loop, EPOLL_CTL_ADD, fd, &event))
		die("timerfd");
	wheel_init(&w, now_ms);
	wheel_timer_init(&far);
	wheel_timer_init(&end);
	wheel_schedule(&w, &far, now_ms + HOUR_MS);
	wheel_schedule(&w, &end, now_ms + IDLE_MS);
	while (wheel_advance(&w, bench_now_ns() / 1000000u) != &end && wheel_next(&w, &due_ms)) {
		due_ms -= bench_now_ns() / 1000000u;
		next.it_value.tv_sec = (time_t)(due_ms / 1000);
		next.it_value.tv_nsec = (long)(due_ms % 1000) * 1000000;
		timerfd_settime(fd, 0, &next, NULL);
		epoll_wait(loop, &event, 1, -1);
	}
	close(fd);
	close(loop);
}

static void libev_idle_over(struct ev_loop *loop, ev_timer *t, int events)
{
	(void)t, (void)events;
	ev_break(loop, EVBREAK_ALL);
}

static void idle_ev(void)
{
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
	ev_timer far, end;

	if (!loop)
		die("libev");
	ev_timer_init(&far, libev_expired, HOUR_MS / 1000., 0.);
	ev_timer_init(&end, libev_idle_over, IDLE_MS / 1000., 0.);
	ev_timer_start(loop, &far);
	ev_timer_start(loop, &end);
	ev_run(loop, 0);
	ev_loop_destroy(loop);
}

static void libuv_idle_over(uv_timer_t *t)
{
	uv_stop(t->loop);
}

static void idle_uv(void)
{
	uv_timer_t far, end;
	uv_loop_t loop;

	if (uv_loop_init(&loop))
		die("libuv");
	uv_timer_init(&loop, &far);
	uv_timer_init(&loop, &end);
	uv_timer_start(&far, libuv_expired, HOUR_MS, 0);
	uv_timer_start(&end, libuv_idle_over, IDLE_MS, 0);
	uv_run(&loop, UV_RUN_DEFAULT);
	uv_close((uv_handle_t *)&far, NULL);
	uv_close((uv_handle_t *)&end, NULL);
	uv_run(&loop, UV_RUN_DEFAULT);
	uv_loop_close(&loop);
}

struct idle {
	void (*wait)(void);
	double wakeups;
	pthread_t thread;
};

static void *idle_thread(void *arg)
{
	struct idle *idle = arg;
	struct rusage before, after;
	uint64_t begin_ns = bench_now_ns();

	getrusage(RUSAGE_THREAD, &before);
	idle->wait();
	getrusage(RUSAGE_THREAD, &after);
	if (bench_now_ns() - begin_ns < (IDLE_MS - 1) * 1000000u) {
		fprintf(stderr, "bench_wheel: an idle wait was too short\n");
		exit(1);
	}
	/* The one at the end is ours. */
	idle->wakeups = (double)(after.ru_nvcsw - before.ru_nvcsw - 1);
	return NULL;
}

static void measure_idle(double *wakeups)
{
	struct idle idle[STEPS] = {{.wait = idle_ours}, {.wait = idle_ev}, {.wait = idle_uv}};

	for (int l = 0; l < STEPS; l++)
		if ((errno = pthread_create(&idle[l].thread, NULL, idle_thread, &idle[l])))
			die("thread");
	for (int l = 0; l < STEPS; l++) {
		pthread_join(idle[l].thread, NULL);
		wakeups[l] = idle[l].wakeups;
	}
}

/* ---- the next moment, while the earliest timer of a far slot is moved again and again ---- */

#define MOVES 2000u
#define CROWD 100000u

static double move_earliest_ns(uint32_t count)
{
	uint64_t seed = 3, due_ms, begin_ns;

	wheel_timers = allocate(count, sizeof(*wheel_timers));
	ours_open(count);
	for (uint32_t i = 0; i < count; i++)
		wheel_schedule(wheel, &wheel_timers[i],
			wheel_now_ms + HOUR_MS + MOVES + bench_random(&seed) % RANGE_MS);
	begin_ns = bench_now_ns();
	for (uint32_t i = 0; i < MOVES; i++) {
		wheel_schedule(wheel, &wheel_timers[i % count], wheel_now_ms + HOUR_MS + i);
		wheel_next(wheel, &due_ms);
		wheel_schedule(wheel, &wheel_timers[i % count], wheel_now_ms + 2 * HOUR_MS);
		wheel_next(wheel, &due_ms);
	}
	begin_ns = bench_now_ns() - begin_ns;
	ours_close(count);
	free(wheel_timers);
	return (double)begin_ns / (2 * MOVES);
}

static void measure_moves(void)
{
	printf("\nns to move the earliest of a far slot, and find the next moment: %.0f of 100 "
	       "timers, %.0f of 10 thousand, %.0f of 100 thousand\n",
		move_earliest_ns(100), move_earliest_ns(10000), move_earliest_ns(CROWD));
}

/* ---- what was to be reached ---- */

static void targets(int scale, bool near_libev)
{
	static const char *const verbs[] = {"schedule", "cancel"};
	static const double limits_ns[] = {70, 40};
	char what[80];

	for (int o = SCHEDULE; o <= CANCEL; o++) {
		double(*f)[OPERATIONS + 1] = figures[scale];

		snprintf(what, sizeof(what), "%s, %s", verbs[o], scales[scale].name);
		if (near_libev) {
			snprintf(what, sizeof(what), "%s, %s, twice libev", verbs[o],
				scales[scale].name);
			bench_target(what, f[OURS][o], 2 * f[EV][o], "ns");
			continue;
		}
		bench_target(what, f[OURS][o], limits_ns[o], "ns");
		for (int l = EV; l <= UV; l++) {
			snprintf(what, sizeof(what), "%s, %s, %s", verbs[o], scales[scale].name,
				libraries[l].name);
			bench_target(what, f[OURS][o], f[l][o], "ns");
		}
	}
}

int main(int argc, char **argv)
{
	static const char *const columns[] = {"schedule", "cancel", "expire", "bytes"};
	size_t largest = argc > 1 ? strtoul(argv[1], NULL, 10) : MILLION;
	double wakeups[STEPS];

	if (largest < scales[0].count) {
		fprintf(stderr, "usage: bench_wheel [LARGEST_COUNT, at least 1000 (1000000; at "
				"most 10000000 is measured)]\n");
		return 64;
	}
	measure_idle(wakeups);
	printf("ns per timer, medians of the rounds; bytes per timer\n");
	for (int s = 0; s < SCALES && scales[s].count <= largest; s++) {
		measure(&scales[s], figures[s]);
		measured[s] = true;
		bench_head(scales[s].name, columns, OPERATIONS + 1);
		for (int l = 0; l < LIBRARIES; l++)
			bench_row(libraries[l].name, figures[s][l], OPERATIONS + 1);
	}
	measure_moves();
	printf("\nwake-ups in %u idle seconds\n", IDLE_MS / 1000);
	for (int l = 0; l < STEPS; l++)
		bench_row(libraries[l].name, &wakeups[l], 1);
	printf("\n");
	for (int s = 0; s < SCALES; s++)
		if (measured[s] && scales[s].count <= MILLION)
			targets(s, scales[s].count < MILLION);
	bench_target("wake-ups while idle", wakeups[OURS], 0, "");
	return 0;
}
