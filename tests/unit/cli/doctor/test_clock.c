/* `pullet doctor`, the clock: what the kernel and a running agent say of it, on clocks that the
 * test plays. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/timex.h>
#include <time.h>

#include <cmocka.h>

#include "tests/unit/fixture/examined.h"

#define WALL_MS INT64_C(1700000000000)
#define KEPT "ok this host: the clock is kept right, to 12 ms\n"

static struct timex kernel; /* what it says, with this state */
static int kernel_state;
static uint64_t boot_ms; /* since the machine began */

int adjtimex(struct timex *t)
{
	assert_int_equal(t->modes, 0); /* nothing is set */
	*t = kernel;
	return kernel_state;
}

int clock_gettime(clockid_t id, struct timespec *ret_time)
{
	uint64_t ms = id == CLOCK_REALTIME ? (uint64_t)WALL_MS : boot_ms;

	*ret_time = (struct timespec){(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};
	return 0;
}

static int set_up(void **state)
{
	examined_set_up(state);
	kernel = (struct timex){.maxerror = 12999};
	kernel_state = TIME_OK;
	return 0;
}

static int tear_down(void **state)
{
	client_fini(&doctor.status);
	doctor.status = (struct client_answer){0};
	return examined_tear_down(state);
}

static const char *examine(void)
{
	doctor_clock(&doctor, &list);
	return findings_of(NULL);
}

/* ---- what the kernel says ---- */

static void clock__that_is_kept__is_good(void **state)
{
	(void)state;
	assert_string_equal(examine(), KEPT);
}

static void clock__that_nothing_keeps__is_a_note(void **state)
{
	static const char expected[] =
		"note this host: nothing keeps the clock right: certificates and signatures are "
		"validated by it -> run chrony or systemd-timesyncd, unless the host of this "
		"machine keeps its clock\n";

	(void)state;
	kernel.status = STA_UNSYNC;
	assert_string_equal(examine(), expected);
	kernel.status = 0;
	kernel_state = TIME_ERROR;
	assert_string_equal(examine(), expected);
}

static void clock__of_a_kernel_that_says_nothing__is_a_note(void **state)
{
	(void)state;
	kernel_state = -1;
	assert_string_equal(examine(),
		"note this host: whether something keeps the clock right cannot be seen\n");
}

/* ---- since the agent started ---- */

/* When this process began, which is the agent's. */
static int64_t begin_ms(void)
{
	unsigned long long ticks = 0;
	char line[2048];
	FILE *f = fopen("/proc/self/stat", "re");

	assert_non_null(f);
	assert_non_null(fgets(line, sizeof(line), f));
	fclose(f);
	assert_int_equal(
		sscanf(strrchr(line, ')'),
			") %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
			"%*s %*s %llu",
			&ticks),
		1);
	return (int64_t)ticks * 1000 / sysconf(_SC_CLK_TCK);
}

/* The agent says that it started then, on the wall. */
static const char *examine_started(int64_t started_ms)
{
	struct document_error e;
	char answer[64];

	client_fini(&doctor.status);
	snprintf(answer, sizeof(answer), "{\"started_ms\":%lld}", (long long)started_ms);
	doctor.status = (struct client_answer){0};
	assert_int_equal(document_parse(DOCUMENT_JSON, answer, strlen(answer), DOCUMENT_OURS,
				 &doctor.status.json, &e),
		0);
	return examine();
}

static void clock__that_was_set__is_a_note(void **state)
{
	static const char remedy[] =
		" since the agent started -> nothing is to be done if it is right now: the "
		"agent's schedule does not depend on it\n" KEPT;
	static const struct {
		int64_t set_ms;
		const char *by;
	} rows[] = {{0, NULL}, {5000, NULL}, {-5000, NULL}, {5001, "5"}, {-5001, "-5"},
		{60999, "60"}, {-3600000, "-3600"}};
	char expected[512];
	int64_t started_ms;

	(void)state;
	boot_ms = (uint64_t)begin_ms() + 777;
	started_ms = WALL_MS - 777;
	doctor.who.pid = getpid();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(expected, sizeof(expected),
			"note this host: the clock was set by about %s s%s", rows[i].by, remedy);
		assert_string_equal(
			examine_started(started_ms - rows[i].set_ms), rows[i].by ? expected : KEPT);
	}
}

static void agent__whose_start_is_unknown__says_nothing_of_the_clock(void **state)
{
	(void)state;
	boot_ms = (uint64_t)begin_ms();
	doctor.who.pid = getpid();
	assert_string_equal(examine(), KEPT); /* it did not answer */
	assert_string_equal(examine_started(0), KEPT);
	doctor.who.pid = 0; /* in another world */
	assert_string_equal(examine_started(1), KEPT);
	doctor.who.pid = INT_MAX; /* it has ended */
	assert_string_equal(examine_started(1), KEPT);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(clock__that_is_kept__is_good),
		CASE(clock__that_nothing_keeps__is_a_note),
		CASE(clock__of_a_kernel_that_says_nothing__is_a_note),
		CASE(clock__that_was_set__is_a_note),
		CASE(agent__whose_start_is_unknown__says_nothing_of_the_clock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
