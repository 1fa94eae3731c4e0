/* `pullet run`: the program gets the values and the signals, is restarted or signalled at a change,
 * and leaves nothing behind. The test beside it is agent and operator, and the program is this
 * test's own: main(). */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/sys.h"
#include "cli/common/cli.h"
#include "tests/unit/fixture/beside.h"
#include "tests/unit/fixture/reader_agent.h"

static char self[PATH_MAX];

/* ---- the program ---- */

static void say_environment(void)
{
	static const char *const names[] = {"N", "APP_N", "OUTER", "DB_HOST", "PULLET_CONFIG_NAME",
		"PULLET_GENERATION", "PULLET_VERSION"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		for (char **v = environ; *v; v++) /* each, if there are several of a name */
			if (strncmp(*v, names[i], strlen(names[i])) == 0 &&
				(*v)[strlen(names[i])] == '=')
				printf(" %s", *v);
}

/* Says each signal; TERM ends it with 7, USR2 by a signal. */
static int play_program(bool stubborn)
{
	sigset_t all;
	int number;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	printf("runs");
	say_environment();
	printf("\n");
	for (;;) {
		fflush(stdout);
		sigwait(&all, &number);
		printf("signal %d\n", number);
		if (number == SIGUSR2) {
			fflush(stdout);
			raise(SIGKILL);
		}
		if (number == SIGTERM && !stubborn)
			return 7;
	}
}

/* Leaves a process behind that ends at TERM, or never. */
static int play_parent(bool stubborn)
{
	sigset_t term;
	int number;

	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_BLOCK, &term, NULL);
	if (fork() == 0)
		do
			sigwait(&term, &number);
		while (stubborn);
	return 5;
}

static int play_masks(void)
{
	struct sigaction pipe;
	sigset_t mask;

	sigaction(SIGPIPE, NULL, &pipe);
	sigprocmask(SIG_SETMASK, NULL, &mask);
	printf("%s, %s\n", pipe.sa_handler == SIG_DFL ? "default" : "ignored",
		sigismember(&mask, SIGTERM) ? "blocked" : "free");
	return 0;
}

static int play(const char *how)
{
	if (strcmp(how, "parent") == 0 || strcmp(how, "stubborn-parent") == 0)
		return play_parent(how[0] == 's');
	if (strcmp(how, "masks") == 0)
		return play_masks();
	return play_program(strcmp(how, "stubborn") == 0);
}

/* ---- the agent ---- */

static struct page *page;

static void confirm(uint64_t ago_ms, uint64_t stale_ms)
{
	atomic_store(&page->stale_ms, stale_ms);
	atomic_store(&page->confirmed_ms, sys_real.now_ms() - ago_ms);
}

static int64_t created_ms; /* of what is published */

static void publish(uint64_t generation, const char *text)
{
	struct snapshot_entry e = {.key = "n", .key_len = 1, .value = {.type = PULLET_STRING}};
	void *image;
	size_t len;

	e.value.text = text;
	e.value.len = strlen(text);
	assert_int_equal(snapshot_build(&e, 1, generation, created_ms, "v7", &image, &len), 0);
	agent_put(agent_path("web", ".snap"), image, len);
	free(image);
	atomic_store(&page->withdrawn, 0);
	atomic_store(&page->generation, generation);
	agent_wake(page);
}

static void withdraw(void)
{
	unlink(agent_path("web", ".snap"));
	atomic_store(&page->withdrawn, 1);
	agent_wake(page);
}

/* ---- the command ---- */

static void run_with(void (*act)(void), const char *const *arguments)
{
	beside_run(cli_run, act, arguments); /* it reaps all that is its process's */
}

/* `pullet run web OPTIONS -- PROGRAM HOW` */
#define PROGRAM(act, how, ...)                                                                     \
	run_with(act,                                                                              \
		(const char *const[]){"pullet run", "web", __VA_ARGS__, "--", self, how, NULL})
#define QUICK "--debounce", "1ms"

static int set_up(void **state)
{
	alarm(30);
	created_ms = 0;
	assert_int_equal(agent_make_dir(state), 0);
	setenv("PULLET_RUNTIME_DIR", agent_dir, 1);
	agent_put_page("web");
	page = agent_map_page("web");
	confirm(0, 3600000);
	publish(1, "one");
	return 0;
}

static int tear_down(void **state)
{
	munmap(page, PAGE_SIZE);
	return agent_remove_dir(state);
}

/* ---- start and end ---- */

static void end_it(void)
{
	beside_await("runs", 1);
	beside_signal(SIGTERM);
}

static void program__has_the_values_beside_the_callers_variables(void **state)
{
	(void)state;
	setenv("OUTER", "kept", 1);
	setenv("N", "replaced", 1);
	PROGRAM(end_it, "", QUICK);
	assert_printed(7, "runs N=one OUTER=kept PULLET_CONFIG_NAME=web PULLET_GENERATION=1 "
			  "PULLET_VERSION=v7\nsignal 15\n");
	PROGRAM(end_it, "", "--prefix", "APP_");
	assert_printed(7, "runs N=replaced APP_N=one OUTER=kept PULLET_CONFIG_NAME=web "
			  "PULLET_GENERATION=1 PULLET_VERSION=v7\nsignal 15\n");
	unsetenv("OUTER");
	unsetenv("N");
}

static void kill_it(void)
{
	beside_await("runs", 1);
	beside_signal(SIGUSR1);
	beside_await("signal 10", 1);
	beside_signal(SIGHUP);
	beside_await("signal 1\n", 1);
	beside_signal(SIGUSR2);
}

static void signals__are_passed_on__and_a_death_by_one_is_128_more(void **state)
{
	(void)state;
	PROGRAM(kill_it, "", QUICK);
	assert_int_equal(command.code, 128 + SIGKILL);
	assert_shows(beside.log, "signal 10\nsignal 1\nsignal 12\n");
}

static void program__has_the_signals_of_before(void **state)
{
	(void)state;
	PROGRAM(NULL, "masks", QUICK);
	assert_printed(0, "default, free\n");
	signal(SIGPIPE, SIG_IGN);
	PROGRAM(NULL, "masks", QUICK);
	signal(SIGPIPE, SIG_DFL);
	assert_printed(0, "ignored, free\n");
}

static void program__that_cannot_be_started__is_127_or_126(void **state)
{
	char text[PATH_MAX + 128];

	(void)state;
	run_with(NULL, (const char *const[]){"pullet run", "web", "--", "/nowhere", NULL});
	assert_printed(127, "pullet run: cannot start /nowhere: No such file or directory\n");
	run_with(NULL,
		(const char *const[]){"pullet run", "web", "--", agent_path("web", ".snap"), NULL});
	snprintf(text, sizeof(text), "pullet run: cannot start %s: Permission denied\n",
		agent_path("web", ".snap"));
	assert_printed(126, text);
}

static void program__that_leaves_processes__has_them_ended(void **state)
{
	char text[PATH_MAX + 256];

	(void)state;
	snprintf(text, sizeof(text),
		"pullet run: %s has ended, and 1 process that it started gets TERM: a program must "
		"stay in the foreground, and a script exec it\n",
		self);
	PROGRAM(NULL, "parent", QUICK);
	assert_printed(5, text);
	PROGRAM(NULL, "stubborn-parent", "--grace", "20ms");
	assert_printed(5, text);
}

/* ---- the first version ---- */

static void publish_the_first(void)
{
	beside_await("waiting", 1);
	confirm(0, 3600000);
	publish(3, "three");
	end_it();
}

static void first_version__is_waited_for(void **state)
{
	(void)state;
	unlink(agent_path("web", ".snap"));
	PROGRAM(publish_the_first, "", QUICK);
	assert_int_equal(command.code, 7);
	assert_shows(beside.log, "\nruns N=three PULLET_CONFIG_NAME=web PULLET_GENERATION=3");
	unlink(agent_path("web", ".snap"));
	PROGRAM(NULL, "", "--timeout", "30ms");
	assert_int_equal(command.code, CLI_TIMED_OUT);
	assert_shows(beside.log, "pullet run: nothing was published as web in that time\n");
	PROGRAM(publish_the_first, "", "--timeout", "20s");
	assert_int_equal(command.code, 7);
}

static void give_up(void)
{
	beside_await("waiting", 1);
	beside_signal(SIGUSR1); /* is for a program */
	beside_signal(SIGTERM);
}

static void give_up_by_hup(void)
{
	beside_await("waiting", 1);
	beside_signal(SIGHUP);
}

static void wait__for_a_first_version__ends_with_a_signal(void **state)
{
	(void)state;
	unlink(agent_path("web", ".snap"));
	PROGRAM(give_up, "", QUICK);
	assert_int_equal(command.code, 128 + SIGTERM);
	PROGRAM(give_up_by_hup, "", QUICK);
	assert_int_equal(command.code, 128 + SIGHUP);
}

static void config__that_was_withdrawn__is_not_waited_for(void **state)
{
	(void)state;
	withdraw();
	PROGRAM(NULL, "", QUICK);
	assert_printed(CLI_NOT_FOUND,
		"pullet run: web was withdrawn: the agent does not publish it any more; configure "
		"it again, with a snapshot\n");
}

static void stale_version__is_noted__and_with_fresh_an_error(void **state)
{
	(void)state;
	confirm(5000, 1000);
	PROGRAM(end_it, "", QUICK);
	assert_int_equal(command.code, 7);
	assert_shows(beside.log, "pullet run: web is stale: no server has confirmed generation 1 "
				 "lately; starting with it\nruns ");
	PROGRAM(NULL, "", "--fresh");
	assert_printed(CLI_FAILED,
		"pullet run: web is stale: no server has confirmed generation 1 lately; 'pullet "
		"status web' says why\n");
	confirm(500, 1000);
	PROGRAM(end_it, "", "--fresh");
	assert_int_equal(command.code, 7);
	assert_null(strstr(beside.log, "stale"));
}

static void snapshot__that_no_agent_keeps__has_no_age(void **state)
{
	char path[PATH_MAX], text[PATH_MAX + 256];

	(void)state;
	unlink(agent_path("web", ".gen"));
	snprintf(path, sizeof(path), "%s", agent_path("web", ".snap"));
	run_with(end_it, (const char *const[]){"pullet run", path, "--", self, "", NULL});
	assert_int_equal(command.code, 7);
	assert_int_equal(strncmp(beside.log, "runs N=one", 10), 0);
	run_with(NULL, (const char *const[]){"pullet run", path, "--fresh", "--", self, "", NULL});
	snprintf(text, sizeof(text),
		"pullet run: no agent keeps %s up to date (there is no control page beside it), so "
		"it has no age: leave out --fresh\n",
		path);
	assert_printed(CLI_FAILED, text);
}

static void snapshot__that_was_copied__has_its_age_noted(void **state)
{
	static const struct {
		int64_t ago_ms;
		const char *text;
	} rows[] = {{0, "1s"}, {90500, "90s"}, {3 * 60000 + 500, "3m"}, {7260000, "2h"},
		{50 * 3600000LL, "50h"}};
	char path[PATH_MAX], text[PATH_MAX + 256];

	(void)state;
	unlink(agent_path("web", ".gen"));
	snprintf(path, sizeof(path), "%s", agent_path("web", ".snap"));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		created_ms = sys_real.wall_ms() - rows[i].ago_ms;
		publish(1, "one");
		run_with(
			NULL, (const char *const[]){"pullet run", path, "--", self, "masks", NULL});
		snprintf(text, sizeof(text),
			"pullet run: %s is a copy that no agent keeps up to date (no control page "
			"is "
			"beside it): it was published %s ago\ndefault, free\n",
			path, rows[i].text);
		assert_printed(0, text);
	}
}

static void values__that_fit_no_environment__start_nothing(void **state)
{
	char *large = malloc(131072);

	(void)state;
	memset(large, 'x', 131071);
	large[131071 - 2] = '\0'; /* "N=", and the NUL: 131072 */
	publish(2, large);
	PROGRAM(NULL, "masks", QUICK);
	assert_printed(0, "default, free\n");
	large[131071 - 2] = 'x';
	large[131071 - 1] = '\0';
	publish(3, large);
	PROGRAM(NULL, "masks", QUICK);
	assert_printed(CLI_FAILED,
		"pullet run: web, generation 3: the variable N takes 131073 bytes, and the system "
		"takes at most 131072: leave the key out, or read it from the file or by "
		"libpullet\n");
	free(large);
}

static void values__that_are_too_many_for_an_environment__start_nothing(void **state)
{
	static struct snapshot_entry e[70];
	static char keys[70][4], large[100001];
	void *image;
	size_t len;

	(void)state;
	memset(large, 'x', sizeof(large) - 1);
	for (size_t i = 0; i < 70; i++) {
		snprintf(keys[i], sizeof(keys[i]), "k%02zu", i);
		e[i] = (struct snapshot_entry){
			.key = keys[i], .key_len = 3, .value = {.type = PULLET_STRING}};
		e[i].value.text = large;
		e[i].value.len = sizeof(large) - 1;
	}
	assert_int_equal(snapshot_build(e, 70, 2, 0, "v7", &image, &len), 0);
	agent_put(agent_path("web", ".snap"), image, len);
	free(image);
	atomic_store(&page->generation, 2);
	PROGRAM(NULL, "masks", QUICK);
	assert_int_equal(command.code, CLI_FAILED);
	assert_shows(beside.log, "pullet run: web, generation 2: the environment takes 70");
	assert_shows(beside.log, " bytes, and the system starts a program with at most ");
}

/* ---- changes ---- */

static void change_twice(void)
{
	beside_await("runs", 1);
	publish(2, "one"); /* the same values */
	publish(3, "three");
	beside_await("runs", 2);
	beside_signal(SIGUSR1);
	beside_await("signal 10", 1);
	beside_signal(SIGTERM);
}

static void change__restarts_the_program_with_the_new_values(void **state)
{
	char text[PATH_MAX + 256];

	(void)state;
	PROGRAM(change_twice, "", QUICK);
	snprintf(text, sizeof(text),
		"runs N=one PULLET_CONFIG_NAME=web PULLET_GENERATION=1 PULLET_VERSION=v7\n"
		"pullet run: web is at generation 3: restarting %s\n"
		"signal 15\n"
		"runs N=three PULLET_CONFIG_NAME=web PULLET_GENERATION=3 PULLET_VERSION=v7\n"
		"signal 10\nsignal 15\n",
		self);
	assert_printed(7, text);
}

static void change_nothing(void)
{
	beside_await("runs", 1);
	publish(2, "one");
	publish(3, "one");
	beside_await("runs", 1);
	publish(4, "four");
	beside_await("runs", 2);
	beside_signal(SIGTERM);
}

static void version__with_the_same_values__restarts_nothing(void **state)
{
	(void)state;
	PROGRAM(change_nothing, "", QUICK);
	assert_int_equal(command.code, 7);
	assert_shows(
		beside.log, "signal 15\nruns N=four PULLET_CONFIG_NAME=web PULLET_GENERATION=4 ");
	assert_null(strstr(beside.log, "GENERATION=2"));
	assert_null(strstr(beside.log, "GENERATION=3"));
}

static void change_what_is_stubborn(void)
{
	beside_await("runs", 1);
	publish(2, "two");
	beside_await("runs", 2);
	publish(3, "three");
	beside_await("signal 15", 2);
	beside_signal(SIGTERM); /* no restart any more, and it has got this signal */
}

static void program__that_does_not_end__is_killed_after_the_grace(void **state)
{
	(void)state;
	PROGRAM(change_what_is_stubborn, "stubborn", QUICK, "--grace", "150ms");
	assert_int_equal(command.code, 128 + SIGKILL);
	assert_shows(beside.log, "runs N=two");
	assert_null(strstr(beside.log, "runs N=three"));
}

static void signal_at_changes(void)
{
	beside_await("runs", 1);
	publish(2, "two");
	beside_await("signal", 1);
	publish(3, "two"); /* at each version */
	beside_await("signal", 2);
	beside_signal(SIGTERM);
}

static void change__with_on_change_signal__sends_it(void **state)
{
	(void)state;
	PROGRAM(signal_at_changes, "", QUICK, "--on-change", "signal");
	assert_int_equal(command.code, 7);
	assert_shows(beside.log, "v7\nsignal 1\nsignal 1\nsignal 15\n");
	PROGRAM(signal_at_changes, "", QUICK, "--on-change", "signal", "--signal", "WINCH");
	assert_int_equal(command.code, 7);
	assert_shows(beside.log, "v7\nsignal 28\nsignal 28\nsignal 15\n");
}

static void change_and_withdraw(void)
{
	beside_await("runs", 1);
	publish(2, "two");
	withdraw();
	beside_await("withdrawn", 1);
	beside_signal(SIGTERM);
}

static void change__with_on_change_nothing__changes_nothing__and_a_withdrawal_is_noted(void **state)
{
	(void)state;
	PROGRAM(change_and_withdraw, "", QUICK, "--on-change", "nothing");
	assert_printed(7,
		"runs N=one PULLET_CONFIG_NAME=web PULLET_GENERATION=1 PULLET_VERSION=v7\n"
		"pullet run: web was withdrawn: the program goes on with its last values\n"
		"signal 15\n");
}

static void change_to_what_does_not_fit(void)
{
	static char large[131073];

	beside_await("runs", 1);
	memset(large, 'x', sizeof(large) - 1);
	publish(2, large);
	beside_await("the program goes on", 1);
	publish(3, "three");
	beside_await("runs", 2);
	beside_signal(SIGTERM);
}

static void version__that_fits_no_environment__leaves_the_program_alone(void **state)
{
	(void)state;
	PROGRAM(change_to_what_does_not_fit, "", QUICK);
	assert_int_equal(command.code, 7);
	assert_shows(beside.log, "\npullet run: web, generation 2: the variable N takes ");
	assert_shows(beside.log, "\npullet run: the program goes on with the values of before\n"
				 "pullet run: web is at generation 3: restarting ");
}

static void change_within_the_debounce(void)
{
	beside_await("runs", 1);
	for (uint64_t g = 2; g < 30; g++) {
		publish(g, "many");
		poll(NULL, 0, 1);
	}
	publish(30, "last");
	beside_await("runs N=last", 1);
	beside_signal(SIGTERM);
}

static void changes__one_after_another__are_few_restarts(void **state)
{
	(void)state;
	PROGRAM(change_within_the_debounce, "", "--debounce", "100ms");
	assert_in_range(beside_count("runs"), 2, 3);
}

/* ---- options ---- */

static void option__that_is_wrong__is_misused(void **state)
{
	static const struct {
		const char *arguments[8], *sentence;
	} rows[] = {
		{{NULL}, "name a config"},
		{{"web"}, "name a program, behind '--': -- CMD ARG..."},
		{{"web", "--"}, "name a program, behind '--'"},
		{{"web", "--signal", "HUP", "--", "true"}, "--signal goes with --on-change signal"},
		{{"web", "--on-change", "stop", "--", "true"},
			"--on-change takes restart, signal or nothing, not 'stop'"},
		{{"web", "--on-change", "signal", "--signal", "KILL", "--", "true"}, "'KILL' "},
		{{"web", "--prefix", "1X", "--", "true"},
			"--prefix takes letters, digits and '_', no digit first, not '1X'"},
		{{"web", "--grace", "2h", "--", "true"}, "at most 1h"},
		{{"web", "--debounce", "61m", "--", "true"}, "at most 1h"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *arguments[10] = {"pullet run"};

		memcpy(arguments + 1, rows[i].arguments, sizeof(rows[i].arguments));
		run_with(NULL, arguments);
		assert_int_equal(command.code, CLI_USAGE);
		assert_shows(beside.log, rows[i].sentence);
	}
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		CASE(program__has_the_values_beside_the_callers_variables),
		CASE(signals__are_passed_on__and_a_death_by_one_is_128_more),
		CASE(program__has_the_signals_of_before),
		CASE(program__that_cannot_be_started__is_127_or_126),
		CASE(program__that_leaves_processes__has_them_ended),
		CASE(first_version__is_waited_for),
		CASE(wait__for_a_first_version__ends_with_a_signal),
		CASE(config__that_was_withdrawn__is_not_waited_for),
		CASE(stale_version__is_noted__and_with_fresh_an_error),
		CASE(snapshot__that_no_agent_keeps__has_no_age),
		CASE(snapshot__that_was_copied__has_its_age_noted),
		CASE(values__that_fit_no_environment__start_nothing),
		CASE(values__that_are_too_many_for_an_environment__start_nothing),
		CASE(change__restarts_the_program_with_the_new_values),
		CASE(version__with_the_same_values__restarts_nothing),
		CASE(program__that_does_not_end__is_killed_after_the_grace),
		CASE(change__with_on_change_signal__sends_it),
		CASE(change__with_on_change_nothing__changes_nothing__and_a_withdrawal_is_noted),
		CASE(version__that_fits_no_environment__leaves_the_program_alone),
		CASE(changes__one_after_another__are_few_restarts),
		CASE(option__that_is_wrong__is_misused),
	};
	ssize_t n;

	if (argc > 1)
		return play(argv[1]);
	n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	assert_true(n > 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
