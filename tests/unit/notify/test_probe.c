/*
 * Probes: real shell scripts and a small web server in the same loop, asked every few milliseconds.
 * After each case no child and no descriptor may be left. An alarm is the deadline.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "notify/probe.h"
#include "text/sentence.h"
#include "tests/unit/fixture/fault_memory.h"
#include "tests/unit/fixture/scratch.h"
#include "tests/unit/fixture/web.h"

#define LONG_MS 60000u /* a time limit that is not to be reached */

static char dir[SCRATCH_PATH];
static unsigned descriptors;

static int dir_open(void **state)
{
	(void)state;
	scratch_open(dir, scratch_memory());
	descriptors = scratch_descriptors();
	return 0;
}

static int dir_close(void **state)
{
	(void)state;
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	assert_int_equal(scratch_descriptors(), descriptors);
	scratch_close(dir);
	return 0;
}

/* An application under watch. */
struct work {
	struct loop *loop;
	struct http_client *transport;
	struct web web;
	struct settings_probe settings;
	char *argv[6], url[128];
	struct probe *probe;
	uint64_t started_ms, ended_ms;
	unsigned ended;
	bool good;
	char why[PROBE_WHY];
};

static void begin(struct work *w)
{
	memset(w, 0, sizeof(*w));
	w->loop = loop_new(&sys_real);
	assert_non_null(w->loop);
	w->transport = http_client_new(w->loop);
	assert_non_null(w->transport);
	web_open(&w->web, w->loop);
	w->settings = (struct settings_probe){
		.for_ms = 40, .every_ms = 10, .timeout_ms = LONG_MS, .failures = 3};
}

/* The script; "$1" is the directory. */
static void use_script(struct work *w, const char *script)
{
	static char shell[] = "/bin/sh", minus_c[] = "-c", name[] = "probe";

	w->argv[0] = shell;
	w->argv[1] = minus_c;
	w->argv[2] = (char *)(uintptr_t)script;
	w->argv[3] = name;
	w->argv[4] = dir;
	w->settings.argv = w->argv;
}

static struct web_page *use_page(struct work *w, int status)
{
	snprintf(w->url, sizeof(w->url), "%s/health", w->web.url);
	w->settings.url = w->url;
	return web_put(&w->web, "/health", status, NULL, "it is\n");
}

/* What an audience is shown of the sentence. */
static const char *shown(const struct work *w, enum audience audience)
{
	static char text[sizeof(w->why)];

	return sentence_show(text, sizeof(text), w->why, audience);
}

static void ended(void *arg, bool good, const char *why)
{
	struct work *w = arg;

	w->ended++;
	w->good = good;
	w->probe = NULL;
	w->ended_ms = loop_now_ms(w->loop);
	snprintf(w->why, sizeof(w->why), "%s", why);
	loop_stop(w->loop);
}

static void start(struct work *w)
{
	const struct probe_options options = {
		.loop = w->loop,
		.transport = w->transport,
		.settings = &w->settings,
		.name = "web",
		.file = "/run/web.yaml",
		.generation = 42,
		.ended = ended,
		.arg = w,
	};

	w->started_ms = loop_now_ms(w->loop);
	w->probe = probe_start(&options);
	assert_non_null(w->probe);
	assert_int_equal(w->ended, 0);
}

static void run(struct work *w)
{
	start(w);
	assert_int_equal(loop_run(w->loop), 0);
	assert_int_equal(w->ended, 1);
}

static void end(struct work *w)
{
	probe_free(w->probe);
	http_client_free(w->transport);
	web_close(&w->web);
	loop_free(w->loop);
}

/* The text of a file that the script wrote; "" when there is none. */
static const char *wrote(const char *name)
{
	static char text[8192];

	return scratch_read(dir, name, text, sizeof(text), NULL) ? text : "";
}

/* ---- programs ---- */

static void run__that_is_good_all_the_time__is_good_when_the_time_is_over(void **state)
{
	struct work w;

	(void)state;
	begin(&w);
	use_script(&w, "echo x >>$1/log");
	run(&w);
	assert_true(w.good);
	assert_string_equal(w.why, "");
	assert_true(w.ended_ms - w.started_ms >= 40);
	assert_in_range(strlen(wrote("log")) / 2, 1, 4);
	end(&w);
}

static void run__that_fails_so_often_in_a_row__is_bad(void **state)
{
	struct work w;

	(void)state;
	begin(&w);
	w.settings.for_ms = LONG_MS;
	use_script(&w, "echo x >>$1/log; echo not well; echo at all; exit 1");
	run(&w);
	assert_false(w.good);
	assert_string_equal(
		shown(&w, AUDIENCE_OPERATOR), "/bin/sh exited with 1: not well\nat all");
	assert_string_equal(shown(&w, AUDIENCE_READER), "/bin/sh exited with 1");
	assert_string_equal(wrote("log"), "x\nx\nx\n");
	end(&w);
	begin(&w);
	w.settings.for_ms = LONG_MS;
	w.settings.failures = 1;
	use_script(&w, "kill -9 $$");
	run(&w);
	assert_false(w.good);
	assert_string_equal(w.why, "/bin/sh killed by signal 9");
	end(&w);
}

/* Fails while the log has not so many lines; which ones is told by their numbers. */
#define COUNTED(good)                                                                              \
	"echo x >>$1/log; n=$(wc -l <$1/log); case $n in " good ") ;; *) exit $n ;; esac"

static void run__that_recovers_in_time__is_good(void **state)
{
	struct work w;

	(void)state;
	begin(&w);
	w.settings.for_ms = 0; /* over with the first attempt */
	use_script(&w, COUNTED("3"));
	run(&w);
	assert_true(w.good);
	assert_string_equal(w.why, "/bin/sh exited with 2"); /* the last failure */
	assert_string_equal(wrote("log"), "x\nx\nx\n");
	end(&w);
}

static void run__that_fails_when_the_time_is_over__is_asked_on(void **state)
{
	struct work w;

	(void)state;
	begin(&w);
	w.settings.for_ms = 0;
	use_script(&w, COUNTED("none"));
	run(&w);
	assert_false(w.good);
	assert_string_equal(w.why, "/bin/sh exited with 3");
	end(&w);
}

static void run__that_fails_now_and_then__starts_to_count_again(void **state)
{
	struct work w;

	(void)state;
	begin(&w);
	w.settings.for_ms = LONG_MS;
	w.settings.every_ms = 1;
	use_script(&w, COUNTED("3|6|9"));
	run(&w);
	assert_false(w.good);
	assert_string_equal(w.why, "/bin/sh exited with 12"); /* 10, 11 and 12 in a row */
	end(&w);
}

static void run__that_hangs__fails_by_its_time_limit(void **state)
{
	struct work w;

	(void)state;
	begin(&w);
	w.settings.for_ms = LONG_MS;
	w.settings.failures = 2;
	w.settings.timeout_ms = 50;
	use_script(&w, "exec sleep 100");
	run(&w);
	assert_false(w.good);
	assert_string_equal(w.why, "/bin/sh still ran after 50 ms and was killed");
	assert_true(w.ended_ms - w.started_ms >= 120);
	end(&w);
}

static void run__that_hangs_beyond_the_time__is_waited_for(void **state)
{
	struct work w;

	(void)state;
	begin(&w);
	w.settings.for_ms = 1;
	w.settings.failures = 1;
	use_script(&w, "sleep 0.1; exit 1");
	run(&w);
	assert_false(w.good);
	end(&w);
}

static void run__that_takes_longer_than_the_interval__is_alone(void **state)
{
	struct work w;

	(void)state;
	begin(&w);
	w.settings.every_ms = 1;
	w.settings.failures = 1;
	use_script(&w, "mkdir $1/lock || exit 9; sleep 0.02; rmdir $1/lock");
	run(&w);
	assert_true(w.good);
	end(&w);
}

static void run__that_cannot_be_started__fails(void **state)
{
	static char program[] = "/none/healthy";
	struct work w;

	(void)state;
	begin(&w);
	w.settings.for_ms = LONG_MS;
	w.argv[0] = program;
	w.settings.argv = w.argv;
	run(&w);
	assert_false(w.good);
	assert_string_equal(w.why,
		"/none/healthy cannot be started: No such file or directory: install it, name "
		"another one, or mend the #! it begins with");
	end(&w);
}

static void run__that_says_much__is_told_within_bounds(void **state)
{
	struct work w;

	(void)state;
	begin(&w);
	w.settings.failures = 1;
	use_script(&w, "head -c 100000 /dev/zero | tr '\\0' x; exit 1");
	run(&w);
	assert_false(w.good);
	assert_in_range(strlen(shown(&w, AUDIENCE_OPERATOR)),
		strlen("/bin/sh exited with 1: ") + 300,
		strlen("/bin/sh exited with 1: ") + 300 + SENTENCE_WORDS);
	end(&w);
}

static void run__finds_config_file_and_generation_in_its_environment(void **state)
{
	struct work w;

	(void)state;
	begin(&w);
	w.settings.for_ms = 0;
	use_script(&w, "echo $PULLET_CONFIG_NAME $PULLET_FILE $PULLET_GENERATION $HOME >$1/log");
	run(&w);
	assert_true(w.good);
	assert_string_equal(wrote("log"), "web /run/web.yaml 42 /\n");
	end(&w);
}

/* ---- URLs ---- */

static void url__of_any_status__is_good_from_200_to_299(void **state)
{
	static const struct {
		int status;
		bool good;
	} table[] = {{200, true}, {204, true}, {299, true}, {304, false}, {302, false},
		{404, false}, {500, false}, {503, false}};
	char why[256];
	struct work w;

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		begin(&w);
		w.settings.for_ms = 15;
		use_page(&w, table[i].status)->body = "";
		run(&w);
		assert_int_equal(w.good, table[i].good);
		snprintf(why, sizeof(why), "%s answered %d", w.url, table[i].status);
		assert_string_equal(w.why, table[i].good ? "" : why);
		if (!table[i].good)
			assert_int_equal(web_find(&w.web, "/health")->asked, 3);
		end(&w);
	}
}

static void url__that_does_not_answer__fails(void **state)
{
	struct work w;

	(void)state;
	begin(&w);
	w.settings.for_ms = LONG_MS;
	w.settings.timeout_ms = 30;
	use_page(&w, 0);
	run(&w);
	assert_false(w.good);
	assert_non_null(strstr(w.why, "/health: timed out: "));
	assert_true(w.ended_ms - w.started_ms >= 120);
	end(&w);
	begin(&w);
	use_page(&w, 200);
	web_close(&w.web);
	run(&w);
	assert_false(w.good);
	assert_non_null(strstr(w.why, "/health: connection refused"));
	end(&w);
}

static void url__with_a_long_answer__counts_by_its_status(void **state)
{
	char *body = calloc(1, 2 * PROBE_MAX_BYTES);
	struct work w;

	(void)state;
	assert_non_null(body);
	memset(body, 'x', 2 * PROBE_MAX_BYTES - 1);
	for (int good = 0; good < 2; good++) {
		begin(&w);
		w.settings.for_ms = 0;
		use_page(&w, good ? 200 : 500)->body = body;
		run(&w);
		assert_int_equal(w.good, good);
		end(&w);
	}
	free(body);
}

static void recover(void *arg)
{
	struct work *w = arg;

	web_put(&w->web, "/health", 200, NULL, "");
}

static void url__that_recovers__is_good(void **state)
{
	struct loop_timer timer;
	struct work w;

	(void)state;
	begin(&w);
	w.settings.failures = 1000;
	w.settings.every_ms = 2;
	use_page(&w, 503);
	loop_timer_init(&timer, recover, &w);
	loop_timer_set(w.loop, &timer, loop_now_ms(w.loop) + 60); /* behind its time */
	run(&w);
	assert_true(w.good);
	assert_true(w.ended_ms - w.started_ms >= 60);
	assert_non_null(strstr(w.why, "answered 503"));
	end(&w);
}

/* ---- freed in the middle ---- */

static void stop(void *arg)
{
	loop_stop(arg);
}

static void free__at_any_point__ends_it_and_tells_nobody(void **state)
{
	struct loop_timer timer;
	struct work w;

	(void)state;
	begin(&w); /* before the first attempt */
	use_script(&w, "touch $1/log");
	start(&w);
	probe_free(w.probe);
	loop_timer_init(&timer, stop, w.loop);
	loop_timer_set(w.loop, &timer, loop_now_ms(w.loop) + 15);
	assert_int_equal(loop_run(w.loop), 0);
	assert_int_equal(scratch_count(dir, ""), 0);
	w.probe = NULL;
	end(&w);

	begin(&w); /* while a program runs */
	use_script(&w, "exec sleep 100");
	w.settings.every_ms = 0;
	start(&w);
	loop_timer_init(&timer, stop, w.loop);
	loop_timer_set(w.loop, &timer, loop_now_ms(w.loop) + 5);
	assert_int_equal(loop_run(w.loop), 0);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), 0); /* there is a child */
	probe_free(w.probe);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	w.probe = NULL;
	assert_int_equal(w.ended, 0);
	end(&w);

	begin(&w); /* while a request waits */
	use_page(&w, 0);
	w.web.hangs = stop;
	w.web.arg = w.loop;
	start(&w);
	assert_int_equal(loop_run(w.loop), 0);
	assert_int_equal(web_hanging(&w.web), 1);
	probe_free(w.probe);
	w.probe = NULL;
	assert_int_equal(w.ended, 0);
	end(&w);
	probe_free(NULL);
}

/* ---- without memory ---- */

static void start__without_memory__is_none(void **state)
{
	struct work w;

	(void)state;
	begin(&w);
	use_script(&w, "exit 0");
	for (unsigned n = 1; !w.probe; n++) {
		const struct probe_options options = {
			.loop = w.loop, .settings = &w.settings, .name = "web", .file = "/w"};

		fault_memory.seen = 0;
		fault_memory.nth = n;
		w.probe = probe_start(&options);
		fault_memory.nth = 0;
		assert_true(w.probe || fault_memory.seen >= n);
		assert_in_range(n, 1, 20);
	}
	end(&w);
}

static void attempt__without_memory__fails_and_is_followed_by_another(void **state)
{
	struct work w;

	(void)state;
	for (unsigned n = 1; n < 5; n++) { /* of the program's start, one after the other */
		begin(&w);
		w.settings.for_ms = 0;
		w.settings.every_ms = 0;
		use_script(&w, "echo x >>$1/log");
		start(&w);
		fault_memory.seen = 0;
		fault_memory.nth = n;
		assert_int_equal(loop_run(w.loop), 0);
		fault_memory.nth = 0;
		assert_true(w.good);
		if (n == 1)
			assert_string_equal(
				w.why, "the probe cannot be started: Cannot allocate memory");
		else
			assert_memory_equal(w.why, "the probe cannot be started: ", 29);
		assert_int_equal(strlen(wrote("log")), 2 * n); /* once each time */
		end(&w);
	}
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, dir_open, dir_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(run__that_is_good_all_the_time__is_good_when_the_time_is_over),
		CASE(run__that_fails_so_often_in_a_row__is_bad),
		CASE(run__that_recovers_in_time__is_good),
		CASE(run__that_fails_when_the_time_is_over__is_asked_on),
		CASE(run__that_fails_now_and_then__starts_to_count_again),
		CASE(run__that_hangs__fails_by_its_time_limit),
		CASE(run__that_hangs_beyond_the_time__is_waited_for),
		CASE(run__that_takes_longer_than_the_interval__is_alone),
		CASE(run__that_cannot_be_started__fails),
		CASE(run__that_says_much__is_told_within_bounds),
		CASE(run__finds_config_file_and_generation_in_its_environment),
		CASE(url__of_any_status__is_good_from_200_to_299),
		CASE(url__that_does_not_answer__fails),
		CASE(url__with_a_long_answer__counts_by_its_status),
		CASE(url__that_recovers__is_good),
		CASE(free__at_any_point__ends_it_and_tells_nobody),
		CASE(start__without_memory__is_none),
		CASE(attempt__without_memory__fails_and_is_followed_by_another),
	};

	alarm(60);
	return fault_memory_run(tests, 2);
}
