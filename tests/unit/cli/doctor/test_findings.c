/*
 * `pullet doctor`, its lists: the checks are played, and what they find is sorted, brought
 * together, counted and printed; a check that hangs is one more finding.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "cli/common/cli.h"
#include "cli/doctor/doctor.h"
#include "tests/unit/fixture/command.h"

static void (*plays[7])(struct doctor *d, struct doctor_list *l);
static bool readable; /* the settings are good */
static char order[64];

static void play(unsigned n, struct doctor *d, struct doctor_list *l)
{
	snprintf(order + strlen(order), sizeof(order) - strlen(order), "%u", n);
	if (plays[n])
		plays[n](d, l);
}

void doctor_configuration(struct doctor *d, struct doctor_list *l)
{
	d->bad_settings = !readable;
	if (readable)
		d->settings = scratch_settings("configs:\n"
					       "  web: {url: 'http://127.0.0.1:1/w', snapshot: "
					       "true}\n  db: {url: 'http://127.0.0.1:1/d', "
					       "snapshot: true}\n");
	play(0, d, l);
}

void doctor_agent(struct doctor *d, struct doctor_list *l)
{
	play(1, d, l);
}

void doctor_clock(struct doctor *d, struct doctor_list *l)
{
	play(2, d, l);
}

void doctor_servers(struct doctor *d, struct doctor_list *l)
{
	play(3, d, l);
}

void doctor_push(struct doctor *d, struct doctor_list *l)
{
	play(4, d, l);
}

void doctor_hooks(struct doctor *d, struct doctor_list *l)
{
	play(5, d, l);
}

void doctor_files(struct doctor *d, struct doctor_list *l)
{
	play(6, d, l);
}

static int set_up(void **state)
{
	(void)state;
	alarm(30);
	memset(plays, 0, sizeof(plays));
	readable = true;
	order[0] = '\0';
	unsetenv("PULLET_CONFIG");
	return 0;
}

/* ---- what they find ---- */

static void find_nothing_wrong(struct doctor *d, struct doctor_list *l)
{
	doctor_add(l, DOCTOR_OK, d->path, NULL, "%d configs", 2);
}

static void find_each(struct doctor *d, struct doctor_list *l)
{
	(void)d;
	doctor_add(l, DOCTOR_OK, "g", NULL, "good");
	doctor_add(l, DOCTOR_NOTE, "n", "look", "noted");
	doctor_add(l, DOCTOR_WARNING, "w", "do", "late");
	doctor_add(l, DOCTOR_ERROR, "e", "mend", "broken");
	doctor_add(l, DOCTOR_ERROR, "e", "mend", "broken"); /* said already */
	doctor_add(l, DOCTOR_NOTE, "n2", NULL, "first");
}

static void find_same_of_several(struct doctor *d, struct doctor_list *l)
{
	(void)d;
	doctor_add(l, DOCTOR_WARNING, "z", "do", "late");
	doctor_add(l, DOCTOR_WARNING, "y", "other", "late");
	doctor_add(l, DOCTOR_WARNING, "x", "do", "late");
	doctor_add(l, DOCTOR_WARNING, "b", NULL, "late");
	doctor_add(l, DOCTOR_WARNING, "v", "do", "late");
	doctor_add(l, DOCTOR_ERROR, "u", "do", "late");
}

static void find_four_and_five(struct doctor *d, struct doctor_list *l)
{
	char subject[8];

	(void)d;
	for (int i = 0; i < 5; i++) {
		snprintf(subject, sizeof(subject), "s%d", i);
		doctor_add(l, DOCTOR_NOTE, subject, NULL, "five");
		if (i < 4)
			doctor_add(l, DOCTOR_ERROR, subject, NULL, "four");
		if (i < 3)
			doctor_add(l, DOCTOR_OK, subject, NULL, "three");
	}
}

/* ---- printing ---- */

static void findings__of_each_kind__are_a_table(void **state)
{
	(void)state;
	plays[0] = find_nothing_wrong;
	plays[3] = find_each;
	RUN(cli_doctor, "pullet doctor");
	assert_ended(CLI_FAILED,
		"configuration\n"
		"  ok      " SETTINGS_DEFAULT_PATH ": 2 configs\n"
		"servers\n"
		"  error   e: broken -> mend\n"
		"  warning w: late -> do\n"
		"  note    n: noted -> look\n"
		"  note    n2: first\n"
		"  ok      g: good\n"
		"1 error, 1 warning, 2 notes, 2 good\n",
		"");
	assert_string_equal(order, "0123456");
}

static void findings__that_say_the_same__are_one_line(void **state)
{
	(void)state;
	plays[2] = find_same_of_several;
	plays[6] = find_four_and_five;
	RUN(cli_doctor, "pullet doctor");
	assert_ended(CLI_FAILED,
		"clock\n"
		"  error   u: late -> do\n"
		"  warning z, x, v: late -> do\n"
		"  warning y: late -> other\n"
		"  warning b: late\n"
		"files\n"
		"  error   s0, s1, s2 and 1 more: four\n"
		"  note    s0, s1, s2 and 2 more: five\n"
		"  ok      s0, s1, s2: three\n"
		"2 errors, 3 warnings, 1 note, 1 good\n",
		"");
}

static void findings__as_json__are_a_list(void **state)
{
	(void)state;
	plays[0] = find_nothing_wrong;
	plays[5] = find_each;
	RUN(cli_doctor, "pullet doctor", "--json", "-c", "/p.yaml", "web");
	assert_ended(CLI_FAILED,
		"[{\"check\":\"configuration\",\"subject\":\"/p.yaml\",\"severity\":\"ok\","
		"\"finding\":\"2 configs\",\"remedy\":null},\n"
		"{\"check\":\"hooks\",\"subject\":\"e\",\"severity\":\"error\",\"finding\":"
		"\"broken\",\"remedy\":\"mend\"},\n"
		"{\"check\":\"hooks\",\"subject\":\"w\",\"severity\":\"warning\",\"finding\":"
		"\"late\",\"remedy\":\"do\"},\n"
		"{\"check\":\"hooks\",\"subject\":\"n\",\"severity\":\"note\",\"finding\":"
		"\"noted\",\"remedy\":\"look\"},\n"
		"{\"check\":\"hooks\",\"subject\":\"n2\",\"severity\":\"note\",\"finding\":"
		"\"first\",\"remedy\":null},\n"
		"{\"check\":\"hooks\",\"subject\":\"g\",\"severity\":\"ok\",\"finding\":\"good\","
		"\"remedy\":null}]\n",
		"");
}

static void find_warning(struct doctor *d, struct doctor_list *l)
{
	(void)d;
	doctor_add(l, DOCTOR_WARNING, "\033[31mred", "do", "a\nb");
}

static void exit_code__says_whether_there_is_an_error(void **state)
{
	(void)state;
	RUN(cli_doctor, "pullet doctor");
	assert_ended(CLI_OK, "0 errors, 0 warnings, 0 notes, 0 good\n", "");
	RUN(cli_doctor, "pullet doctor", "--json");
	assert_ended(CLI_OK, "[]\n", "");
	plays[1] = find_warning;
	RUN(cli_doctor, "pullet doctor", "web");
	assert_int_equal(command.code, CLI_OK);
	assert_shows(command.out, "0 errors, 1 warning, 0 notes, 0 good\n");
	assert_null(strchr(command.out, '\033')); /* what came from elsewhere */
	RUN(cli_doctor, "pullet doctor", "-c", "/p.yaml", "nope");
	assert_ended(CLI_NOT_FOUND, "", "pullet doctor: /p.yaml has no config 'nope'\n");
	readable = false;
	order[0] = '\0';
	RUN(cli_doctor, "pullet doctor", "nope");
	assert_int_equal(command.code, CLI_CONFIG);
	assert_string_equal(order, "0126"); /* what needs no settings */
}

static void path__is_the_option__then_the_variable__then_the_usual_one(void **state)
{
	(void)state;
	plays[0] = find_nothing_wrong;
	setenv("PULLET_CONFIG", "/v.yaml", 1);
	RUN(cli_doctor, "pullet doctor");
	assert_shows(command.out, "ok      /v.yaml: ");
	RUN(cli_doctor, "pullet doctor", "-c", "/o.yaml");
	assert_shows(command.out, "ok      /o.yaml: ");
	setenv("PULLET_CONFIG", "", 1);
	RUN(cli_doctor, "pullet doctor");
	assert_shows(command.out, "ok      " SETTINGS_DEFAULT_PATH ": ");
	unsetenv("PULLET_CONFIG");
	RUN(cli_doctor, "pullet doctor", "a", "b");
	assert_int_equal(command.code, CLI_USAGE);
}

static void see_options(struct doctor *d, struct doctor_list *l)
{
	doctor_add(l, DOCTOR_OK, d->socket ? d->socket : "none", NULL, "%llu %s",
		(unsigned long long)d->timeout_ms, d->only ? d->only : "all");
}

static void options__reach_the_checks(void **state)
{
	(void)state;
	plays[4] = see_options;
	RUN(cli_doctor, "pullet doctor");
	assert_shows(command.out, "push\n  ok      none: 30000 all\n");
	RUN(cli_doctor, "pullet doctor", "--socket", "/s", "--timeout", "2s", "db");
	assert_shows(command.out, "push\n  ok      /s: 2000 db\n");
}

/* ---- causes ---- */

static struct {
	const char *cause, *subject, *finding;
	enum doctor_severity severity;
} caused;

static void find_caused(struct doctor *d, struct doctor_list *l)
{
	(void)d;
	doctor_add_caused(l, DOCTOR_ERROR, "web", NULL, caused.cause, "failing");
}

static void find_again(struct doctor *d, struct doctor_list *l)
{
	(void)d;
	doctor_add(l, caused.severity, caused.subject, NULL, "%s", caused.finding);
}

static void cause__is_left_to_a_later_warning_that_says_it(void **state)
{
	static const struct {
		const char *cause, *subject, *finding;
		enum doctor_severity severity;
		bool is_said;
	} rows[] = {
		{"no route", "s", "it has no route", DOCTOR_ERROR, false},
		{"no route", "s", "it has no route", DOCTOR_WARNING, false},
		{"no route", "s", "it has no route", DOCTOR_NOTE, true},
		{"no route", "s", "no such host", DOCTOR_ERROR, true},
		{"cannot write /run/x: full", "/run/x", "no space", DOCTOR_WARNING, false},
		{"cannot write /run/x: full", "s", "in /run/x: no space", DOCTOR_WARNING, false},
		{"cannot write /run/x: full", "s", "in '/run/x'", DOCTOR_WARNING, true},
		{"cannot write /run/x: full", "/run/xy", "no space", DOCTOR_WARNING, true},
		{"cannot write /run/x: full", "/var/run/x", "no space", DOCTOR_WARNING, true},
	};

	(void)state;
	plays[1] = find_caused;
	plays[3] = find_again;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char line[128];

		caused.cause = rows[i].cause;
		caused.subject = rows[i].subject;
		caused.finding = rows[i].finding;
		caused.severity = rows[i].severity;
		RUN(cli_doctor, "pullet doctor");
		snprintf(line, sizeof(line), "web: failing%s%s\n", rows[i].is_said ? ": " : "",
			rows[i].is_said ? rows[i].cause : "");
		assert_shows(command.out, line);
	}
}

/* ---- a check that hangs ---- */

static void hang(struct doctor *d, struct doctor_list *l)
{
	(void)d;
	doctor_set_path(l, "/mnt/gone");
	for (;;)
		pause();
}

static int run_in_child(int argc, char **argv)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		alarm(60);
		exit(cli_doctor(argc, argv));
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* What the kernel has of the main thread begins with the number of the call that it waits in. */
static bool main_thread_waits_for_a_lock(void)
{
	char name[64];
	long call = -1;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/self/task/%d/syscall", getpid());
	f = fopen(name, "re");
	if (!f)
		return true; /* a kernel that does not say so */
	if (fscanf(f, "%ld", &call) != 1)
		call = -1; /* it runs */
	fclose(f);
	return call == SYS_futex;
}

/* Half of the next path is there when the time is over. */
static void hang_in_the_middle(struct doctor *d, struct doctor_list *l)
{
	(void)d;
	pthread_mutex_lock(&l->lock);
	snprintf(l->at, sizeof(l->at), "/mn");
	while (!main_thread_waits_for_a_lock())
		sched_yield();
	snprintf(l->at, sizeof(l->at), "/mnt/gone");
	pthread_mutex_unlock(&l->lock);
	for (;;)
		pause();
}

static void path__of_a_check_that_hangs__is_whole(void **state)
{
	(void)state;
	plays[5] = hang_in_the_middle;
	RUN(run_in_child, "pullet doctor", "--timeout", "20ms");
	assert_int_equal(command.code, CLI_FAILED);
	assert_shows(command.out, "error   /mnt/gone: the file system does not answer: ");
}

static void check__that_hangs__is_a_finding_and_ends_the_rest(void **state)
{
	(void)state;
	plays[5] = hang;
	plays[6] = find_each;
	RUN(run_in_child, "pullet doctor", "--timeout", "50ms");
	assert_ended(CLI_FAILED,
		"hooks\n  error   /mnt/gone: the file system does not answer: a mount whose server "
		"hangs, or a disk that fails -> bring back what is mounted there, or name another "
		"place; what is behind it in this list was not looked at\n"
		"1 error, 0 warnings, 0 notes, 0 good\n",
		"");
}

/* ---- dates ---- */

static void date__of_a_time__is_a_day_in_utc(void **state)
{
	char date[DOCTOR_DATE];

	(void)state;
	doctor_date(0, date);
	assert_string_equal(date, "1970-01-01");
	doctor_date(1795305599999, date);
	assert_string_equal(date, "2026-11-21");
	doctor_date(1795305600000, date);
	assert_string_equal(date, "2026-11-22");
}

#define CASE(name) cmocka_unit_test_setup(name, set_up)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(findings__of_each_kind__are_a_table),
		CASE(findings__that_say_the_same__are_one_line),
		CASE(findings__as_json__are_a_list),
		CASE(exit_code__says_whether_there_is_an_error),
		CASE(path__is_the_option__then_the_variable__then_the_usual_one),
		CASE(options__reach_the_checks),
		CASE(cause__is_left_to_a_later_warning_that_says_it),
		CASE(check__that_hangs__is_a_finding_and_ends_the_rest),
		CASE(path__of_a_check_that_hangs__is_whole),
		CASE(date__of_a_time__is_a_day_in_utc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
