/*
 * What an application is notified, on a clock that the test moves and with programs that the test
 * plays: agent/notify/reload.c is compiled in here with another process_start(). A model written
 * down plainly is held against it at every millisecond. Signals and one program that hangs are
 * real.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "process/process.h"
#include "tests/unit/fixture/fault_memory.h"
#include "tests/unit/fixture/model_random.h"

#define STEP_PHASE 4
#define LAST_PHASE 7

static int played_start(struct loop *l, const struct process_options *o,
	void (*ended)(void *arg, const struct process_result *result), void *arg,
	struct process **ret_process);
static void played_free(struct process *p);

#define process_start played_start
#define process_free played_free
#include "notify/reload.c"
#undef process_start
#undef process_free

/* ---- the world: a clock, programs, one reload ---- */

struct played { /* a program that runs */
	struct loop_timer timer;
	void (*ended)(void *arg, const struct process_result *result);
	void *arg;
	int code;
};

struct fate { /* of a program */
	bool no_start;
	int code;
	uint64_t takes_ms;
};

static struct world {
	struct sys sys;
	struct loop *loop;
	uint64_t now_ms, random;
	uint64_t leap_ms;   /* the next moment, instead of the next millisecond */
	void (*step)(void); /* at each millisecond, after all that was due at it */
	unsigned phase;
	struct loop_timer tick;

	struct reload *reload;
	struct settings_reload settings;
	struct settings_rule rules[SETTINGS_MAX_RULES];

	/* programs */
	bool real;
	unsigned started, freed;
	struct fate next;                /* of the next one, */
	struct fate (*fate)(unsigned n); /* unless this says that of the n-th */
	const char *output;              /* what it says */
	struct played *running;
	char log[8192];     /* " PROGRAM@TIME" */
	char env[4][40000]; /* of the last one */
	size_t env_count;

	/* results */
	unsigned ended;
	struct reload_result result;
	char why[512], last_output[8192];
	void (*on_ended)(void);
} w;

static uint64_t world_now(void)
{
	return w.now_ms;
}

static uint64_t world_random(void)
{
	return w.random;
}

static void logged(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void logged(const char *format, ...)
{
	size_t len = strlen(w.log);
	va_list args;

	va_start(args, format);
	vsnprintf(w.log + len, sizeof(w.log) - len, format, args);
	va_end(args);
}

static void played_end(void *arg)
{
	struct played *p = arg;
	struct process_result r = {.end = PROCESS_EXITED, .code = p->code, .ok = p->code == 0};

	assert_ptr_equal(w.running, p);
	w.running = NULL;
	r.output = w.output ? w.output : "";
	r.output_len = strlen(r.output);
	r.message = "";
	if (p->code)
		snprintf(r.why, sizeof(r.why), "exited with %d", p->code);
	p->ended(p->arg, &r);
	free(p);
}

static int played_start(struct loop *l, const struct process_options *o,
	void (*ended)(void *arg, const struct process_result *result), void *arg,
	struct process **ret_process)
{
	struct fate f = w.fate ? w.fate(w.started) : w.next;
	struct played *p;

	if (w.real)
		return process_start(l, o, ended, arg, ret_process);
	assert_null(w.running); /* never two at once */
	w.started++;
	logged(" %s@%llu", o->argv[0], (unsigned long long)w.now_ms);
	for (w.env_count = 0; o->env[w.env_count]; w.env_count++)
		snprintf(w.env[w.env_count], sizeof(w.env[0]), "%s", o->env[w.env_count]);
	if (f.no_start)
		return -EAGAIN;
	fault_memory.paused++;
	p = calloc(1, sizeof(*p));
	fault_memory.paused--;
	assert_non_null(p);
	p->ended = ended;
	p->arg = arg;
	p->code = f.code;
	loop_timer_init(&p->timer, played_end, p);
	loop_timer_set(l, &p->timer, w.now_ms + f.takes_ms);
	*ret_process = (struct process *)(void *)p;
	w.running = p;
	return 0;
}

static void played_free(struct process *p)
{
	if (w.real) {
		process_free(p);
		return;
	}
	if (!p)
		return;
	assert_ptr_equal(w.running, p);
	loop_timer_cancel(w.loop, &w.running->timer);
	free(w.running);
	w.running = NULL;
	w.freed++;
}

static void world_ended(void *arg, const struct reload_result *result)
{
	assert_ptr_equal(arg, &w);
	w.ended++;
	w.result = *result;
	snprintf(w.why, sizeof(w.why), "%s", result->why);
	snprintf(w.last_output, sizeof(w.last_output), "%s", result->output);
	if (w.on_ended)
		w.on_ended();
}

/* What was due at a moment comes before the step of that moment, what the step made due for the
 * same moment after it, and both before the next one. Each phase lets pass what is due by then. */
static void world_tick(void *arg)
{
	(void)arg;
	if (w.phase == STEP_PHASE)
		w.step();
	if (w.phase == LAST_PHASE)
		w.now_ms = w.leap_ms > w.now_ms ? w.leap_ms : w.now_ms + 1;
	w.phase = (w.phase + 1) % (LAST_PHASE + 1);
	loop_timer_set(w.loop, &w.tick, w.now_ms);
}

/* The tick moves the clock. */
static void world_wait(uint64_t due_ms)
{
	assert_true(w.real || due_ms <= w.now_ms);
}

static void world_open(void)
{
	w = (struct world){.now_ms = 1000, .sys = sys_real};
	w.sys.now_ms = world_now;
	w.sys.random = world_random;
	w.sys.wait_until = world_wait;
	w.loop = loop_new(&w.sys);
	assert_non_null(w.loop);
	w.settings = (struct settings_reload){
		.rules = w.rules, .rule_count = 1, .debounce_max_ms = 5000, .timeout_ms = 30000};
}

static char web[] = "web", web_file[] = "/run/pullet/web.yaml";

static void world_reload(uint64_t notified, uint64_t current)
{
	const struct reload_options options = {.loop = w.loop,
		.settings = &w.settings,
		.name = web,
		.file = web_file,
		.notified = notified,
		.current = current,
		.ended = world_ended,
		.arg = &w};

	w.reload = reload_new(&options);
	assert_non_null(w.reload);
}

static void world_run(void (*step)(void))
{
	w.step = step;
	loop_timer_init(&w.tick, world_tick, NULL);
	loop_timer_set(w.loop, &w.tick, w.now_ms);
	assert_int_equal(loop_run(w.loop), 0);
}

static void world_close(void)
{
	reload_free(w.reload);
	loop_free(w.loop);
}

static struct reload_status status(void)
{
	struct reload_status s;

	reload_status(w.reload, &s);
	return s;
}

static void changed(uint64_t generation, const char *key)
{
	char *keys[] = {(char *)key};

	reload_changed(w.reload, generation, keys, key != NULL, key == NULL);
}

static char prog_a[] = "/a", prog_b[] = "/b", prog_c[] = "/c";
static char *argv_a[] = {prog_a, NULL}, *argv_b[] = {prog_b, NULL}, *argv_c[] = {prog_c, NULL};
static char *argv_a2[] = {prog_a, NULL}; /* the same words at another place */
static char *argv_ab[] = {prog_a, prog_b, NULL};
static char key_db[] = "db", key_log[] = "log.*", key_ui[] = "ui", key_any[] = "x*",
	    key_more[] = "more";
static char *keys_db[] = {key_db, NULL}, *keys_log[] = {key_log, NULL}, *keys_ui[] = {key_ui, NULL},
	    *keys_any[] = {key_any, NULL}, *keys_more[] = {key_more, NULL};

#define RUN(a, k) ((struct settings_rule){.kind = SETTINGS_RUN, .argv = (a), .keys = (k)})

/* Begins what waits, without the loop. */
static void begin_now(void)
{
	loop_timer_cancel(w.loop, &w.reload->timer);
	begin_attempt(w.reload);
}

/* ---- when ---- */

static void debounce_step(void)
{
	switch (w.now_ms) {
	case 2000:
		changed(1, "a");
		assert_int_equal(status().state, RELOAD_WAITING);
		assert_int_equal(status().next_ms, 100);
		assert_int_equal(status().pending, 1);
		assert_int_equal(status().notified, 0);
		assert_true(reload_pending(w.reload));
		break;
	case 2060:
		changed(2, "b");
		assert_int_equal(status().next_ms, 100);
		assert_int_equal(status().keys, 2);
		break;
	case 2170:
		assert_int_equal(status().state, RELOAD_RUNNING);
		assert_int_equal(status().pending, 2);
		assert_int_equal(status().next_ms, 0);
		assert_int_equal(status().runs, 1);
		break;
	case 2250:
		assert_int_equal(status().state, RELOAD_IDLE);
		assert_int_equal(status().notified, 2);
		assert_int_equal(status().pending, 0);
		assert_int_equal(status().keys, 0);
		assert_false(reload_pending(w.reload));
		assert_string_equal(w.log, " /a@2160");
		assert_int_equal(w.ended, 1);
		assert_true(w.result.ok);
		assert_int_equal(w.result.generation, 2);
		assert_string_equal(w.why, "");
		loop_stop(w.loop);
		break;
	}
}

static void change__debounced__runs_after_the_last_one(void **state)
{
	(void)state;
	world_open();
	w.settings.debounce_ms = 100;
	w.rules[0] = RUN(argv_a, NULL);
	w.next.takes_ms = 50;
	world_reload(0, 0);
	assert_int_equal(status().state, RELOAD_IDLE);
	world_run(debounce_step);
	world_close();
}

static void storm_step(void)
{
	if (w.now_ms <= 4000)
		changed(w.now_ms, "a");
	else if (w.now_ms == 5000)
		loop_stop(w.loop);
}

static void change__that_never_ends__runs_at_the_latest_moment(void **state)
{
	(void)state;
	world_open();
	w.settings.debounce_ms = 100;
	w.settings.debounce_max_ms = 700;
	w.rules[0] = RUN(argv_a, NULL);
	world_reload(0, 0);
	world_run(storm_step);
	/* the first at 1000; the run takes no time, the next change is the first of the next */
	assert_string_equal(w.log, " /a@1700 /a@2400 /a@3100 /a@3800 /a@4100");
	assert_int_equal(status().notified, 4000);
	world_close();
}

static void splay_step(void)
{
	if (w.now_ms == 2000)
		changed(1, "a");
	if (w.now_ms == 2001)
		w.random = 7; /* is not drawn again */
	if (w.now_ms == 2050)
		changed(2, "a");
	if (w.now_ms == 3000)
		loop_stop(w.loop);
}

static void splay__is_drawn_once(void **state)
{
	(void)state;
	world_open();
	w.settings.debounce_ms = 100;
	w.settings.splay_ms = 400;
	w.random = 333;
	w.rules[0] = RUN(argv_a, NULL);
	world_reload(0, 0);
	world_run(splay_step);
	assert_string_equal(w.log, " /a@2483");
	world_close();
}

static unsigned most_waiting;

static void thousand_step(void)
{
	if (w.now_ms < 2000) {
		char key[16];

		snprintf(key, sizeof(key), "k%u", (unsigned)(w.now_ms % 100));
		changed(w.now_ms, key);
		if (status().keys > most_waiting)
			most_waiting = (unsigned)status().keys;
	}
	if (w.now_ms == 4000)
		loop_stop(w.loop);
}

static void changes__a_thousand_in_a_second__are_one_that_runs_and_one_that_waits(void **state)
{
	(void)state;
	world_open();
	w.rules[0] = RUN(argv_a, NULL);
	w.next.takes_ms = 300;
	most_waiting = 0;
	world_reload(0, 0);
	world_run(thousand_step);
	/* played_start() asserts that none runs */
	assert_string_equal(w.log, " /a@1000 /a@1300 /a@1600 /a@1900 /a@2200");
	assert_int_equal(status().notified, 1999);
	assert_int_equal(status().state, RELOAD_IDLE);
	assert_in_range(most_waiting, 100, 200); /* 100 that run, 100 that wait */
	assert_int_equal(w.ended, 5);
	world_close();
}

static void restart_step(void)
{
	if (w.now_ms == 3000)
		loop_stop(w.loop);
}

static void start__with_another_generation_than_told__runs_everything(void **state)
{
	static const struct {
		uint64_t notified, current;
		const char *log;
	} table[] = {
		{7, 9, " /a@1100 /b@1100"},
		{0, 9, " /a@1100 /b@1100"},
		{9, 8, " /a@1100 /b@1100"}, /* the state directory was put back */
		{9, 9, ""},
		{0, 0, ""},
		{9, 0, ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		world_open();
		w.settings.debounce_ms = 100;
		w.settings.rule_count = 3;
		w.rules[0] = RUN(argv_a, keys_db);
		w.rules[1] = (struct settings_rule){.keys = keys_ui};
		w.rules[2] = RUN(argv_b, NULL);
		world_reload(table[i].notified, table[i].current);
		assert_int_equal(reload_pending(w.reload), table[i].log[0] != '\0');
		world_run(restart_step);
		assert_string_equal(w.log, table[i].log);
		assert_int_equal(
			status().notified, table[i].log[0] ? table[i].current : table[i].notified);
		if (table[i].log[0])
			assert_string_equal(w.env[2], "PULLET_CHANGED_KEYS=*");
		world_close();
	}
}

/* ---- which ---- */

static const char *given[8];

static void rules_step(void)
{
	if (w.now_ms == 1000)
		for (size_t i = 0; given[i]; i++)
			changed(5, given[i]);
	if (w.now_ms == 1010)
		loop_stop(w.loop);
}

static void rules__first_that_fits__counts_and_equal_actions_run_once(void **state)
{
	static const struct {
		const char *keys[4], *log;
	} table[] = {
		{{"db"}, " /b@1000"}, {{"db.host"}, " /b@1000"}, {{"dbx"}, " /a@1000"},
		{{"log.level"}, ""}, {{"log"}, " /a@1000"}, {{"ui.color"}, " /a@1000"},
		{{"ui.color", "other"}, " /a@1000"}, /* rules 2 and 5: the same words */
		{{"other", "db.port", "ui"}, " /b@1000 /a@1000"}, {{"log.level", "db"}, " /b@1000"},
		{{"xyz", "db"}, " /b@1000 /c@1000"},
		{{"more", "other"}, " /a@1000 /a@1000"}, /* not the same words */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		world_open();
		w.settings.rule_count = 6;
		w.rules[0] = (struct settings_rule){.keys = keys_log, .kind = SETTINGS_NOTHING};
		w.rules[1] = RUN(argv_b, keys_db);
		w.rules[2] = RUN(argv_a, keys_ui);
		w.rules[3] = RUN(argv_c, keys_any);
		w.rules[4] = RUN(argv_ab, keys_more);
		w.rules[5] = RUN(argv_a2, NULL);
		memcpy(given, table[i].keys, sizeof(table[i].keys));
		world_reload(4, 4);
		world_run(rules_step);
		assert_string_equal(w.log, table[i].log);
		assert_int_equal(status().notified, 5);
		assert_int_equal(w.ended, table[i].log[0] != '\0');
		world_close();
	}
}

static void nothing__to_do__counts_as_told_without_a_word(void **state)
{
	char key[] = "log.level", *keys[] = {key};

	(void)state;
	world_open();
	w.settings.debounce_ms = 100;
	w.settings.rule_count = 2;
	w.rules[0] = (struct settings_rule){.keys = keys_log};
	w.rules[1] = RUN(argv_a, keys_db);
	world_reload(4, 4);
	assert_false(reload_changed(w.reload, 5, keys, 1, false));
	assert_int_equal(status().notified, 5);
	assert_false(reload_changed(w.reload, 6, NULL, 0, false));
	assert_int_equal(status().notified, 6);
	/* while something waits, it joins, and moves nothing */
	changed(7, "db");
	w.now_ms += 50;
	assert_true(reload_changed(w.reload, 8, keys, 1, false));
	assert_int_equal(status().next_ms, 50);
	assert_int_equal(status().notified, 6);
	assert_int_equal(status().pending, 8);
	world_run(restart_step);
	assert_string_equal(w.log, " /a@1100");
	assert_int_equal(status().notified, 8);
	assert_string_equal(w.env[2], "PULLET_CHANGED_KEYS=db\nlog.level");
	world_close();
	/* no rule that does anything */
	world_open();
	world_reload(3, 4);
	assert_int_equal(status().notified, 4);
	assert_false(reload_changed(w.reload, 5, NULL, 0, true));
	assert_int_equal(status().notified, 5);
	world_close();
}

static void meanwhile_step(void)
{
	if (w.now_ms == 1000)
		changed(5, "db");
	if (w.now_ms == 1010) {
		changed(6, "log.level"); /* nothing to do for it */
		assert_int_equal(status().pending, 6);
		assert_int_equal(status().notified, 4);
	}
	if (w.now_ms == 1100)
		loop_stop(w.loop);
}

static void nothing__to_do_for_what_came_while_one_ran__is_told_with_it(void **state)
{
	(void)state;
	for (int fails = 0; fails < 2; fails++) {
		world_open();
		w.next.takes_ms = 50;
		w.next.code = fails;
		w.settings.rule_count = 2;
		w.rules[0] = (struct settings_rule){.keys = keys_log};
		w.rules[1] = RUN(argv_a, NULL);
		world_reload(4, 4);
		world_run(meanwhile_step);
		assert_string_equal(w.log, " /a@1000");
		assert_int_equal(w.result.generation, fails ? 5 : 6);
		assert_int_equal(status().notified, fails ? 4 : 6);
		assert_int_equal(status().pending, fails ? 6 : 0);
		assert_int_equal(status().state, fails ? RELOAD_FAILED : RELOAD_IDLE);
		if (fails) /* the growth is that of the failure */
			assert_int_equal(status().next_ms, 1050 + 1000 - 1100);
		world_close();
	}
}

/* ---- what they are notified ---- */

static void env_step(void)
{
	if (w.now_ms == 1000) {
		changed(12345678901234567, "db.host");
		changed(12345678901234567, "db");
		changed(12345678901234567, "db.host");
		changed(12345678901234568, "b.host");
		changed(12345678901234568, "b");
		assert_int_equal(status().keys, 4);
		assert_false(status().all);
	}
	if (w.now_ms == 1010)
		loop_stop(w.loop);
}

static void environment__of_a_command__says_what_changed(void **state)
{
	struct reload_options options;

	(void)state;
	world_open();
	w.settings.debounce_ms = 5;
	w.rules[0] = RUN(argv_a, NULL);
	world_reload(4, 4);
	world_run(env_step);
	assert_int_equal(w.env_count, 4);
	assert_string_equal(w.env[0], "PULLET_CONFIG_NAME=web");
	assert_string_equal(w.env[1], "PULLET_GENERATION=12345678901234568");
	assert_string_equal(w.env[2], "PULLET_CHANGED_KEYS=db.host\ndb\nb.host\nb");
	assert_string_equal(w.env[3], "PULLET_FILE=/run/pullet/web.yaml");
	world_close();

	world_open();
	w.rules[0] = RUN(argv_a, NULL);
	world_reload(4, 4);
	options = w.reload->o;
	reload_free(w.reload);
	options.file = NULL;
	options.current = 5;
	w.reload = reload_new(&options);
	world_run(restart_step);
	assert_int_equal(w.env_count, 3);
	world_close();
}

static unsigned key_count;
static size_t key_len;
static const char *extra_key;

static void bound_step(void)
{
	if (w.now_ms == 1000)
		for (unsigned i = 0; i < key_count; i++) {
			char key[128];

			snprintf(key, sizeof(key), "%0*u", (int)key_len, i);
			changed(5, key);
			changed(5, key);
		}
	if (w.now_ms == 1000 && extra_key)
		changed(5, extra_key);
	if (w.now_ms == 1010)
		loop_stop(w.loop);
}

static void keys__more_than_the_bound__are_a_star(void **state)
{
	static const struct {
		unsigned count;
		size_t len;
		const char *extra;
		bool all;
	} table[] = {
		{512, 63, NULL, false}, /* 512 * 64 - 1 bytes */
		{512, 63, "", false},   /* an empty name: one more byte */
		{512, 63, "a", true},
		{513, 63, NULL, true},
		{2, 63, "a\nb", true},
		{0, 63, "", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct reload_status s;

		world_open();
		w.settings.debounce_ms = 20;
		w.rules[0] = RUN(argv_a, NULL);
		key_count = table[i].count;
		key_len = table[i].len;
		extra_key = table[i].extra;
		world_reload(4, 4);
		world_run(bound_step);
		s = status();
		assert_int_equal(s.all, table[i].all);
		assert_int_equal(s.keys, table[i].all ? 0 : key_count + (extra_key != NULL));
		begin_now();
		if (table[i].all)
			assert_string_equal(w.env[2], "PULLET_CHANGED_KEYS=*");
		else
			assert_int_equal(strlen(w.env[2]), strlen("PULLET_CHANGED_KEYS=") +
								   key_count * (key_len + 1) -
								   (key_count && !extra_key));
		world_close();
	}
}

/* ---- failures ---- */

#define RETRIES 70

static uint64_t ended_at_ms[RETRIES + 1];

static void note_end(void)
{
	ended_at_ms[w.ended - 1] = w.now_ms;
	assert_int_equal(status().state, RELOAD_FAILED);
	assert_int_equal(status().in_a_row, w.ended);
	assert_int_equal(status().failed, w.ended);
	assert_int_equal(status().notified, 4);
	assert_string_equal(status().why, "/a exited with 3");
	if (w.ended == RETRIES + 1)
		loop_stop(w.loop);
}

static void backoff_step(void)
{
	if (w.now_ms == 1000)
		changed(5, "a");
	if (status().next_ms > 10)
		w.leap_ms = w.now_ms + status().next_ms - 5;
}

static void failure__again_and_again__is_retried_with_growing_delays(void **state)
{
	uint64_t delay_ms = 1000;

	(void)state;
	world_open();
	w.rules[0] = RUN(argv_a, NULL);
	w.next.code = 3;
	w.random = 77777;
	w.on_ended = note_end;
	world_reload(4, 4);
	world_run(backoff_step);
	for (unsigned i = 0; i < RETRIES; i++) {
		uint64_t waited_ms = ended_at_ms[i + 1] - ended_at_ms[i];

		assert_int_equal(waited_ms, delay_ms - w.random % (delay_ms / 4 + 1));
		assert_in_range(waited_ms, delay_ms - delay_ms / 4, delay_ms);
		delay_ms = delay_ms > 150000 ? 300000 : 2 * delay_ms;
	}
	assert_int_equal(delay_ms, 300000);
	world_close();
}

static void recover_step(void)
{
	switch (w.now_ms) {
	case 1000:
		changed(5, "a");
		break;
	case 1001: /* failed at 1000 */
		w.settings.debounce_ms = 100;
		assert_int_equal(status().state, RELOAD_FAILED);
		assert_int_equal(status().next_ms, 999);
		assert_string_equal(status().why, "/a exited with 3");
		assert_int_equal(w.result.ok, false);
		assert_int_equal(w.result.generation, 5);
		break;
	case 3500: /* failed at 2000, next at 4000 */
		assert_int_equal(status().in_a_row, 2);
		assert_int_equal(status().next_ms, 500);
		changed(6, "b");
		assert_int_equal(status().state, RELOAD_WAITING);
		assert_int_equal(status().next_ms, 100);
		assert_int_equal(status().in_a_row, 2);
		break;
	case 3650: /* failed at 3600: the growth began again */
		assert_int_equal(status().state, RELOAD_FAILED);
		assert_int_equal(status().next_ms, 950);
		assert_int_equal(status().in_a_row, 3);
		assert_string_equal(w.env[2], "PULLET_CHANGED_KEYS=a\nb");
		w.next.code = 0;
		break;
	case 4700:
		assert_int_equal(status().state, RELOAD_IDLE);
		assert_int_equal(status().in_a_row, 0);
		assert_int_equal(status().notified, 6);
		assert_int_equal(status().failed, 3);
		assert_int_equal(status().runs, 4);
		assert_string_equal(status().why, "");
		assert_true(w.result.ok);
		/* and after a success as well */
		w.next.code = 3;
		changed(7, "c");
		break;
	case 4900:
		assert_string_equal(w.env[2], "PULLET_CHANGED_KEYS=c");
		assert_int_equal(status().next_ms, 900);
		loop_stop(w.loop);
		break;
	}
}

static void failure__and_newer_keys__join_and_begin_the_growth_anew(void **state)
{
	(void)state;
	world_open();
	w.rules[0] = RUN(argv_a, NULL);
	w.next.code = 3;
	world_reload(4, 4);
	world_run(recover_step);
	world_close();
}

static void all_step(void)
{
	if (w.now_ms == 1000)
		changed(5, "a");
	if (w.now_ms == 1010)
		changed(6, NULL); /* while it runs, and fails */
	if (w.now_ms == 1030) {
		assert_string_equal(w.env[1], "PULLET_GENERATION=6");
		assert_string_equal(w.env[2], "PULLET_CHANGED_KEYS=*");
		assert_true(status().all);
		assert_int_equal(status().keys, 0);
		loop_stop(w.loop);
	}
}

static void failure__and_any_key_may_be_newer__is_about_all(void **state)
{
	(void)state;
	world_open();
	w.rules[0] = RUN(argv_a, NULL);
	w.next = (struct fate){.code = 3, .takes_ms = 20};
	world_reload(4, 4);
	world_run(all_step);
	world_close();
}

static struct fate first_fails(unsigned n)
{
	return (struct fate){.code = n == 0, .takes_ms = 20};
}

static void partly_step(void)
{
	if (w.now_ms == 1000)
		changed(5, NULL);
	if (w.now_ms == 1055) {
		assert_string_equal(w.log, " /a@1000 /b@1020 /c@1040");
		assert_int_equal(status().state, RELOAD_RUNNING);
	}
	if (w.now_ms == 1070) {
		assert_int_equal(status().state, RELOAD_FAILED);
		assert_string_equal(w.why, "/a exited with 1");
	}
	if (w.now_ms == 2100) {
		assert_string_equal(w.log, " /a@1000 /b@1020 /c@1040 /a@2060");
		assert_int_equal(status().state, RELOAD_IDLE);
		loop_stop(w.loop);
	}
}

static void failure__of_one_action__holds_up_no_other_and_is_retried_alone(void **state)
{
	(void)state;
	world_open();
	w.settings.rule_count = 3;
	w.rules[0] = RUN(argv_a, keys_db);
	w.rules[1] = RUN(argv_b, keys_ui);
	w.rules[2] = RUN(argv_c, NULL);
	w.fate = first_fails;
	world_reload(4, 4);
	world_run(partly_step);
	world_close();
}

static void cannot_start_step(void)
{
	if (w.now_ms == 1000)
		changed(5, "a");
	if (w.now_ms == 1001)
		w.next.no_start = false;
	if (w.now_ms == 2100)
		loop_stop(w.loop);
}

static void failure__to_start_at_all__is_one_as_well(void **state)
{
	(void)state;
	world_open();
	w.rules[0] = RUN(argv_a, NULL);
	w.next.no_start = true;
	world_reload(4, 4);
	world_run(cannot_start_step);
	assert_string_equal(w.log, " /a@1000 /a@2000");
	assert_int_equal(status().failed, 1);
	assert_int_equal(status().notified, 5);
	world_close();
}

static void output_step(void)
{
	if (w.now_ms == 1000)
		changed(5, NULL);
	if (w.running && w.now_ms == 1030)
		w.output = "second";
	if (w.now_ms == 1100)
		loop_stop(w.loop);
}

static void output__of_the_first_failure_or_the_last_command__is_handed_on(void **state)
{
	(void)state;
	for (int code = 0; code < 2; code++) {
		world_open();
		w.settings.rule_count = 2;
		w.rules[0] = RUN(argv_a, keys_db);
		w.rules[1] = RUN(argv_b, NULL);
		w.next.takes_ms = 20;
		w.next.code = code;
		w.output = "first";
		world_reload(4, 4);
		world_run(output_step);
		assert_string_equal(w.last_output, code ? "first" : "second");
		assert_string_equal(w.why, code ? "/a exited with 1" : "");
		world_close();
	}
}

/* ---- calls from ended() ---- */

static void change_again(void)
{
	if (w.ended == 1)
		changed(6, "b");
}

static void free_in_it(void)
{
	reload_free(w.reload);
	w.reload = NULL;
	loop_stop(w.loop);
}

static void again_step(void)
{
	if (w.now_ms == 1000)
		changed(5, "a");
	if (w.now_ms == 1100)
		loop_stop(w.loop);
}

static void ended__may_change_and_free(void **state)
{
	(void)state;
	world_open();
	w.rules[0] = RUN(argv_a, NULL);
	w.next.takes_ms = 10;
	w.on_ended = change_again;
	world_reload(4, 4);
	world_run(again_step);
	assert_string_equal(w.log, " /a@1000 /a@1010");
	assert_int_equal(status().notified, 6);
	world_close();
	for (int code = 0; code < 2; code++) {
		world_open();
		w.rules[0] = RUN(argv_a, NULL);
		w.next.takes_ms = 10;
		w.next.code = code;
		w.on_ended = free_in_it;
		world_reload(4, 4);
		world_run(again_step);
		assert_null(w.reload);
		world_close();
	}
}

static void free__while_one_runs_and_one_waits__kills_it(void **state)
{
	(void)state;
	world_open();
	w.rules[0] = RUN(argv_a, NULL);
	w.next.takes_ms = 1000;
	world_reload(4, 5);
	begin_now();
	changed(6, "a");
	assert_int_equal(status().state, RELOAD_RUNNING);
	world_close();
	assert_int_equal(w.freed, 1);
	assert_int_equal(w.ended, 0);
	reload_free(NULL);
}

/* ---- signals ---- */

static char dir[] = "/tmp/pullet-unit-XXXXXX";

static void write_pid(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

/* One attempt with a signal to the process that the pidfile names. */
static void signal_once(char *pidfile, int number)
{
	world_open();
	w.rules[0] = (struct settings_rule){
		.kind = SETTINGS_SIGNAL, .signal = number, .pidfile = pidfile};
	world_reload(4, 4);
	changed(5, "a");
	begin_now();
	assert_int_equal(w.ended, 1);
}

static pid_t start_target(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	assert_true(pid > 1);
	return pid;
}

static void signal__to_the_process_of_a_pidfile__arrives(void **state)
{
	static const char *const forms[] = {"%d\n", "%d", "   %d\n", "%d \n", "%d\r\n"};
	char path[64], text[32];

	(void)state;
	snprintf(path, sizeof(path), "%s/pid", dir);
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		pid_t pid = start_target();
		int how;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(text, sizeof(text), forms[i], (int)pid);
#pragma GCC diagnostic pop
		write_pid(path, text);
		signal_once(path, SIGUSR1);
		assert_true(w.result.ok);
		assert_int_equal(status().notified, 5);
		world_close();
		assert_int_equal(waitpid(pid, &how, 0), pid);
		assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGUSR1);
	}
	unlink(path);
}

static void signals__to_one_process__are_other_actions_than_commands_and_each_other(void **state)
{
	char path[64], text[32];
	pid_t pid = start_target();
	int how;

	(void)state;
	snprintf(path, sizeof(path), "%s/pid", dir);
	snprintf(text, sizeof(text), "%d\n", (int)pid);
	write_pid(path, text);
	world_open();
	w.settings.rule_count = 4;
	w.rules[0] = RUN(argv_a, keys_db);
	for (int i = 1; i < 4; i++) /* WINCH does nothing */
		w.rules[i] = (struct settings_rule){.keys = keys_ui,
			.kind = SETTINGS_SIGNAL,
			.signal = i == 1 ? SIGWINCH : SIGTERM,
			.pidfile = path};
	world_reload(4, 5);
	world_run(restart_step);
	assert_string_equal(w.log, " /a@1000");
	assert_int_equal(status().notified, 5);
	assert_int_equal(waitpid(pid, &how, 0), pid);
	assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGTERM);
	world_close();
	unlink(path);
}

static void signal__with_a_pidfile_that_names_no_process__is_refused(void **state)
{
	static const char bad[] = "is not one line with a number over 1";
	static const struct {
		const char *text, *why;
	} table[] = {
		{NULL, "No such file or directory"},
		{"", bad},
		{"\n", bad},
		{"0\n", bad},
		{"1\n", bad},
		{"-5\n", bad},
		{"+5\n", bad},
		{"12x\n", bad},
		{"0x12\n", bad},
		{"12 34\n", bad},
		{"12\n13\n", bad},
		{"\n12\n", bad},
		{"99999999999\n", bad},
		{"4294967298\n", bad}, /* 2 in 32 bits */
		{"00000000000000000000000000000000000000000000000012\n", bad},
		{"2147483646\n", "No such process"},
	};
	char path[64];

	(void)state;
	snprintf(path, sizeof(path), "%s/pid", dir);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		if (table[i].text)
			write_pid(path, table[i].text);
		signal_once(path, SIGKILL);
		assert_false(w.result.ok);
		assert_non_null(strstr(w.why, path));
		assert_non_null(strstr(w.why, table[i].why));
		assert_int_equal(status().state, RELOAD_FAILED);
		world_close();
		unlink(path);
	}
	signal_once(dir, SIGKILL);
	assert_false(w.result.ok);
	world_close();
}

static void *wait_for_it(void *arg)
{
	void **shared = arg;

	*(pid_t *)shared[0] = (pid_t)syscall(SYS_gettid);
	pthread_barrier_wait(shared[1]);
	pthread_barrier_wait(shared[1]);
	return NULL;
}

static void signal__to_the_agent_itself__is_refused(void **state)
{
	pthread_barrier_t barrier;
	pid_t ours[2] = {getpid(), 0};
	void *shared[] = {&ours[1], &barrier};
	pthread_t thread;
	char path[64], text[32];

	(void)state;
	snprintf(path, sizeof(path), "%s/pid", dir);
	pthread_barrier_init(&barrier, NULL, 2);
	assert_int_equal(pthread_create(&thread, NULL, wait_for_it, shared), 0);
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < 2; i++) {
		snprintf(text, sizeof(text), "%d\n", (int)ours[i]);
		write_pid(path, text);
		signal_once(path, SIGKILL);
		assert_non_null(strstr(w.why, "names this process itself"));
		world_close();
	}
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&barrier);
	unlink(path);
}

static void signal__that_is_not_permitted__is_a_failure(void **state)
{
	char path[64], text[32];
	pid_t target = start_target(), other;
	int how;

	(void)state;
	snprintf(path, sizeof(path), "%s/pid", dir);
	snprintf(text, sizeof(text), "%d\n", (int)target);
	write_pid(path, text);
	chmod(dir, 0755);
	other = fork(); /* an agent of another user; one that may not change has no such target */
	if (other == 0) {
		if (geteuid() == 0 && setresuid(65534, 65534, 65534))
			_exit(1);
		if (geteuid() != 65534)
			_exit(0);
		signal_once(path, SIGKILL);
		_exit(!w.result.ok && strstr(w.why, "Operation not permitted") ? 0 : 2);
	}
	assert_int_equal(waitpid(other, &how, 0), other);
	assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
	kill(target, SIGKILL);
	waitpid(target, NULL, 0);
	unlink(path);
}

/* ---- a real program ---- */

static uint64_t ahead_ms;

static uint64_t now_ahead(void)
{
	return sys_real.now_ms() + ahead_ms;
}

static void real_ended(void)
{
	if (w.result.ok) {
		loop_stop(w.loop);
		return;
	}
	assert_string_equal(w.why, "/bin/sh still ran after 30 s and was killed");
	assert_non_null(strstr(w.last_output, "hangs\n"));
	ahead_ms += RELOAD_RETRY_MS; /* no need to wait */
}

/* It hangs with a child at first; both are killed, and the next attempt succeeds. */
static void program__that_hangs__is_killed_with_its_children_and_retried(void **state)
{
	char sh[] = "/bin/sh", minus_c[] = "-c", fifo[64], line[32] = "",
	     text[] = "[ -p $0 ] || { echo $PULLET_CONFIG_NAME $PULLET_GENERATION; exit 0; }; "
		      "sleep 1000 & echo hangs; echo $! > $0; wait",
	     *argv[] = {sh, minus_c, text, fifo, NULL};
	struct pollfd child = {.events = POLLIN};
	int fd, pid = 0;

	(void)state;
	snprintf(fifo, sizeof(fifo), "%s/fifo", dir);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	world_open();
	w.real = true;
	w.sys.now_ms = now_ahead;
	loop_free(w.loop);
	w.loop = loop_new(&w.sys);
	w.rules[0] = RUN(argv, NULL);
	w.on_ended = real_ended;
	world_reload(4, 4);
	changed(5, "a");
	begin_now();
	fd = open(fifo, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0 && read(fd, line, sizeof(line) - 1) > 0);
	close(fd);
	unlink(fifo);
	assert_int_equal(sscanf(line, "%d", &pid), 1);
	child.fd = (int)syscall(SYS_pidfd_open, pid, 0u);
	assert_true(child.fd >= 0);
	ahead_ms = w.settings.timeout_ms;
	assert_int_equal(loop_run(w.loop), 0);
	assert_int_equal(status().failed, 1);
	assert_int_equal(status().runs, 2);
	assert_int_equal(status().notified, 5);
	assert_string_equal(w.last_output, "web 5\n");
	assert_int_equal(poll(&child, 1, 10000), 1);
	close(child.fd);
	world_close();
	assert_int_equal(waitid(P_ALL, 0, &(siginfo_t){0}, WEXITED | WNOHANG), -1);
}

/* ---- the model ---- */

#define KEYS 6
#define RULES 5
#define ROUNDS 60
#define ROUND_STEPS 1500

static struct model {
	/* settings */
	uint64_t debounce_ms, max_ms, splay_ms;
	unsigned rule_of_key[KEYS]; /* RULES = none */
	unsigned program[RULES];    /* 0 = nothing, else 1 to 3 */
	/* state: sets are arrays of yes and no */
	bool waits, retrying, runs;
	bool waiting_rule[RULES], waiting_key[KEYS], running_rule[RULES], running_key[KEYS];
	bool failed_rule[RULES];
	uint64_t waiting_generation, running_generation, notified;
	uint64_t first_ms, due_ms, splay_drawn_ms, action_end_ms;
	unsigned tries, in_a_row, at_rule, at_code, starts;
	bool in_action;
	char log[8192];
	uint64_t round;
	unsigned change_percent, steps;
	uint64_t generation;
} m;

/* What the n-th program that starts does: known to the model and to the world. */
static struct fate fate_of(unsigned n)
{
	uint64_t z = (m.round * 1000 + n + 1) * UINT64_C(0x9e3779b97f4a7c15) + model_random.seed;

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z ^= z >> 27;
	return (struct fate){
		.no_start = z % 16 == 0, .code = z >> 8 & 1, .takes_ms = 1 + (z >> 16) % 60};
}

static void model_logged(unsigned rule)
{
	size_t len = strlen(m.log);

	snprintf(m.log + len, sizeof(m.log) - len, " /%c@%llu", "abc"[m.program[rule] - 1],
		(unsigned long long)w.now_ms);
}

static void model_end_attempt(void)
{
	bool any = false;

	for (unsigned i = 0; i < RULES; i++)
		any |= m.failed_rule[i];
	m.runs = false;
	if (!any) {
		m.notified = m.running_generation;
		m.in_a_row = m.tries = 0;
		if (!m.waits && m.waiting_generation) {
			m.notified = m.waiting_generation;
			m.waiting_generation = 0;
			memset(m.waiting_key, 0, sizeof(m.waiting_key));
		}
		return;
	}
	m.in_a_row++;
	for (unsigned i = 0; i < RULES; i++)
		m.waiting_rule[i] |= m.failed_rule[i];
	for (unsigned i = 0; i < KEYS; i++)
		m.waiting_key[i] |= m.running_key[i];
	if (m.waiting_generation == 0)
		m.waiting_generation = m.running_generation;
	if (!m.waits) {
		uint64_t delay_ms = UINT64_C(1000) << m.tries++;

		m.retrying = true;
		m.due_ms = w.now_ms + delay_ms - w.random % (delay_ms / 4 + 1);
	}
	m.waits = true;
}

/* Starts actions until one takes time. */
static void model_actions(void)
{
	for (;;) {
		struct fate f;

		while (m.at_rule < RULES && !m.running_rule[m.at_rule])
			m.at_rule++;
		if (m.at_rule == RULES) {
			model_end_attempt();
			return;
		}
		for (unsigned i = m.at_rule + 1; i < RULES; i++)
			if (m.program[i] == m.program[m.at_rule])
				m.running_rule[i] = false;
		f = fate_of(m.starts++);
		model_logged(m.at_rule);
		if (!f.no_start) {
			m.in_action = true;
			m.at_code = (unsigned)f.code;
			m.action_end_ms = w.now_ms + f.takes_ms;
			return;
		}
		m.failed_rule[m.at_rule++] = true;
	}
}

/* What is due at this moment. */
static void model_due(void)
{
	for (;;) {
		if (m.runs && m.in_action && w.now_ms >= m.action_end_ms) {
			m.in_action = false;
			m.failed_rule[m.at_rule++] = m.at_code != 0;
			model_actions();
		} else if (!m.runs && m.waits && w.now_ms >= m.due_ms) {
			m.runs = true;
			m.waits = m.retrying = false;
			memcpy(m.running_rule, m.waiting_rule, sizeof(m.running_rule));
			memcpy(m.running_key, m.waiting_key, sizeof(m.running_key));
			memset(m.waiting_rule, 0, sizeof(m.waiting_rule));
			memset(m.waiting_key, 0, sizeof(m.waiting_key));
			memset(m.failed_rule, 0, sizeof(m.failed_rule));
			m.running_generation = m.waiting_generation;
			m.waiting_generation = 0;
			m.at_rule = 0;
			model_actions();
		} else {
			return;
		}
	}
}

static void model_changed(uint64_t generation, const bool keys[KEYS])
{
	bool wanted = false;

	for (unsigned i = 0; i < KEYS; i++)
		wanted |= keys[i] && m.rule_of_key[i] < RULES && m.program[m.rule_of_key[i]];
	if (!wanted && !m.waits && !m.runs) {
		m.notified = generation;
		return;
	}
	m.waiting_generation = generation;
	for (unsigned i = 0; i < KEYS; i++) {
		m.waiting_key[i] |= keys[i];
		if (keys[i] && m.rule_of_key[i] < RULES && m.program[m.rule_of_key[i]])
			m.waiting_rule[m.rule_of_key[i]] = true;
	}
	if (!wanted)
		return;
	if (!m.waits || m.retrying) {
		m.first_ms = w.now_ms;
		m.splay_drawn_ms = w.random % (m.splay_ms + 1);
	}
	m.waits = true;
	m.retrying = false;
	m.tries = 0;
	m.due_ms = w.now_ms + m.debounce_ms;
	if (m.due_ms > m.first_ms + m.max_ms)
		m.due_ms = m.first_ms + m.max_ms;
	m.due_ms += m.splay_drawn_ms;
}

static char key_names[KEYS][4] = {"k0", "k1", "k2", "k3", "k4", "k5"};

static bool in_env(const char *key)
{
	char text[sizeof(w.env[0]) + 2], name[8];

	snprintf(text, sizeof(text), "\n%s\n", strchr(w.env[2], '=') + 1);
	snprintf(name, sizeof(name), "\n%s\n", key);
	return strstr(text, name) != NULL;
}

static void model_compare(void)
{
	struct reload_status s = status();

	if (strcmp(w.log, m.log) != 0)
		print_message("# it:    %s\n# model: %s\n", w.log, m.log);
	CHECK(strcmp(w.log, m.log) == 0);
	CHECK(s.notified == m.notified);
	CHECK(s.in_a_row == m.in_a_row);
	CHECK(reload_pending(w.reload) == (m.waits || m.runs));
	CHECK(s.state == (m.runs              ? RELOAD_RUNNING
				 : !m.waits   ? RELOAD_IDLE
				 : m.retrying ? RELOAD_FAILED
					      : RELOAD_WAITING));
	CHECK(s.pending == (m.waiting_generation ? m.waiting_generation
				   : m.runs      ? m.running_generation
						 : 0));
	CHECK(s.next_ms == (m.runs || !m.waits ? 0 : m.due_ms - w.now_ms));
	if (m.runs)
		for (unsigned i = 0; i < KEYS; i++)
			CHECK(in_env(key_names[i]) == m.running_key[i]);
}

static void model_step(void)
{
	model_random.step++;
	model_due();
	model_compare();
	if (random_below(100) < m.change_percent) {
		bool chosen[KEYS];
		char *keys[KEYS];
		size_t n = 0;

		for (unsigned i = 0; i < KEYS; i++) {
			chosen[i] = random_below(3) == 0;
			if (chosen[i])
				keys[n++] = key_names[i];
		}
		m.generation++;
		reload_changed(w.reload, m.generation, keys, n, false);
		model_changed(m.generation, chosen);
		model_due();
	}
	/* quiet and busy times; leaps over long waits */
	if (random_below(50) == 0)
		m.change_percent = random_below(3) ? (unsigned)random_below(8) : 60;
	if (!m.runs && m.retrying && m.due_ms > w.now_ms + 100)
		w.leap_ms = m.due_ms - 50;
	if (++m.steps == ROUND_STEPS)
		loop_stop(w.loop);
}

static void model_round(void)
{
	static char *patterns[RULES][KEYS + 1];
	char **const programs[] = {NULL, argv_a, argv_b, argv_c};

	m = (struct model){
		.round = m.round + 1, .change_percent = 5, .generation = 1, .notified = 1};
	world_open();
	w.fate = fate_of;
	m.debounce_ms = random_below(3) ? random_below(40) : 0;
	m.max_ms = m.debounce_ms + random_below(100);
	m.splay_ms = random_below(2) ? random_below(50) : 0;
	w.random = random_below(100000);
	w.settings.debounce_ms = m.debounce_ms;
	w.settings.debounce_max_ms = m.max_ms;
	w.settings.splay_ms = m.splay_ms;
	w.settings.rule_count = RULES;
	for (unsigned i = 0; i < KEYS; i++)
		m.rule_of_key[i] = RULES;
	for (unsigned i = 0; i < RULES; i++) {
		unsigned n = 0;

		m.program[i] = (unsigned)random_below(4);
		for (unsigned k = 0; k < KEYS; k++)
			if (random_below(3) == 0) {
				patterns[i][n++] = key_names[k];
				if (m.rule_of_key[k] == RULES)
					m.rule_of_key[k] = i;
			}
		patterns[i][n] = NULL;
		w.rules[i] = (struct settings_rule){.keys = patterns[i],
			.kind = m.program[i] ? SETTINGS_RUN : SETTINGS_NOTHING,
			.argv = programs[m.program[i]]};
	}
	world_reload(1, 1);
}

static void model__at_random__is_what_it_does(void **state)
{
	(void)state;
	model_random_start();
	m.round = 0;
	for (int i = 0; i < ROUNDS; i++) {
		model_round();
		world_run(model_step);
		world_close();
	}
}

/* ---- without memory ---- */

static void changes__without_memory_for_their_keys__are_of_all(void **state)
{
	char longer[1000], both[1100];
	unsigned failures = 0;

	(void)state;
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	snprintf(both, sizeof(both), "PULLET_CHANGED_KEYS=db\n%s", longer);
	for (unsigned n = 1; n == 1 || fault_memory.seen >= n - 1; n++) {
		world_open();
		w.rules[0] = RUN(argv_a, NULL);
		world_reload(1, 1);
		fault_memory.seen = 0;
		fault_memory.nth = n;
		changed(2, "db");
		changed(3, longer);
		fault_memory.nth = 0;
		failures += status().all;
		assert_int_equal(status().keys, status().all ? 0 : 2);
		begin_now();
		assert_int_equal(w.started, 1);
		assert_string_equal(w.env[2], status().all ? "PULLET_CHANGED_KEYS=*" : both);
		world_close();
		assert_in_range(n, 1, 20);
	}
	assert_true(failures >= 2); /* at the first key, and at the one that needs more room */
}

static void command__without_memory_for_its_environment__fails_and_is_retried(void **state)
{
	unsigned failures = 0;

	(void)state;
	for (unsigned n = 1; n == 1 || fault_memory.seen >= n - 1; n++) {
		world_open();
		w.rules[0] = RUN(argv_a, NULL);
		world_reload(1, 1);
		changed(2, "db");
		fault_memory.seen = 0;
		fault_memory.nth = n;
		begin_now();
		fault_memory.nth = 0;
		if (w.started) {
			assert_int_equal(w.env_count, 4);
			assert_string_equal(w.env[3], "PULLET_FILE=/run/pullet/web.yaml");
		} else {
			assert_int_equal(w.ended, 1);
			assert_false(w.result.ok);
			assert_string_equal(w.why, "/a cannot be started: Cannot allocate memory");
			assert_int_equal(status().state, RELOAD_FAILED);
			assert_int_equal(status().keys, 1);
			assert_int_equal(status().notified, 1);
			failures++;
		}
		world_close();
		assert_in_range(n, 1, 20);
	}
	assert_true(failures >= 5); /* each of its variables, and the list of them */
}

static int make_dir(void **state)
{
	(void)state;
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	(void)state;
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(change__debounced__runs_after_the_last_one),
		cmocka_unit_test(change__that_never_ends__runs_at_the_latest_moment),
		cmocka_unit_test(splay__is_drawn_once),
		cmocka_unit_test(
			changes__a_thousand_in_a_second__are_one_that_runs_and_one_that_waits),
		cmocka_unit_test(start__with_another_generation_than_told__runs_everything),
		cmocka_unit_test(rules__first_that_fits__counts_and_equal_actions_run_once),
		cmocka_unit_test(nothing__to_do__counts_as_told_without_a_word),
		cmocka_unit_test(nothing__to_do_for_what_came_while_one_ran__is_told_with_it),
		cmocka_unit_test(environment__of_a_command__says_what_changed),
		cmocka_unit_test(keys__more_than_the_bound__are_a_star),
		cmocka_unit_test(failure__again_and_again__is_retried_with_growing_delays),
		cmocka_unit_test(failure__and_newer_keys__join_and_begin_the_growth_anew),
		cmocka_unit_test(failure__and_any_key_may_be_newer__is_about_all),
		cmocka_unit_test(failure__of_one_action__holds_up_no_other_and_is_retried_alone),
		cmocka_unit_test(failure__to_start_at_all__is_one_as_well),
		cmocka_unit_test(output__of_the_first_failure_or_the_last_command__is_handed_on),
		cmocka_unit_test(ended__may_change_and_free),
		cmocka_unit_test(free__while_one_runs_and_one_waits__kills_it),
		cmocka_unit_test(signal__to_the_process_of_a_pidfile__arrives),
		cmocka_unit_test(
			signals__to_one_process__are_other_actions_than_commands_and_each_other),
		cmocka_unit_test(signal__with_a_pidfile_that_names_no_process__is_refused),
		cmocka_unit_test(signal__to_the_agent_itself__is_refused),
		cmocka_unit_test(signal__that_is_not_permitted__is_a_failure),
		cmocka_unit_test(program__that_hangs__is_killed_with_its_children_and_retried),
		cmocka_unit_test(model__at_random__is_what_it_does),
		cmocka_unit_test(changes__without_memory_for_their_keys__are_of_all),
		cmocka_unit_test(command__without_memory_for_its_environment__fails_and_is_retried),
	};

	alarm(240);
	return _cmocka_run_group_tests("tests", tests,
		sizeof(tests) / sizeof(tests[0]) - (fault_memory_works ? 0 : 2), make_dir,
		remove_dir);
}
