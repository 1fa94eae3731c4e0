/* The files of the agent's own configuration: which changes are reported, when, and which are none.
 * On real files, and a clock that the test pushes forward. */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/fixture/captured.h"
#include "tests/unit/fixture/fault_memory.h"
#include "tests/unit/fixture/scratch.h"
#include "watch_config.h"

#define TURNS 5 /* of the loop, in which what the kernel tells is heard */

static uint64_t now_ms;
static unsigned turns;
static struct sys sys;
static struct loop *loop;
static struct loop_timer end;

static char dir[SCRATCH_PATH], configuration[SCRATCH_PATH + 32];
static struct watched_files seen;
static struct watch_config *watch;
static unsigned reports, descriptors;
static long live; /* pieces of memory */
static struct captured errors;

static const char *in(const char *name)
{
	static char paths[4][SCRATCH_PATH + 64];
	static unsigned n;
	char *path = paths[n++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", dir, name);
	return path;
}

/* A new file under that name: nothing else is noticed. */
static void put(const char *name, const char *text)
{
	scratch_write(in("fresh"), "file", text, strlen(text));
	assert_int_equal(rename(in("fresh/file"), in(name)), 0);
}

/* What the kernel says of the configuration, where it is not what it is. */
static struct stat told;
static bool is_told, is_deaf;

int fstat(int fd, struct stat *ret)
{
	char link[64], path[PATH_MAX] = "";
	int r = fstatat(fd, "", ret, AT_EMPTY_PATH);

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (!is_told || readlink(link, path, sizeof(path) - 1) < 0 ||
		strcmp(path, configuration) != 0)
		return r;
	*ret = told;
	errno = EIO;
	return is_deaf ? -1 : 0;
}

static void changed(void *arg)
{
	(void)arg;
	reports++;
}

static uint64_t virtual_now_ms(void)
{
	return now_ms;
}

/* Events are heard before the clock goes on. */
static void wait_until(uint64_t due_ms)
{
	if (turns > 0)
		turns--;
	else if (due_ms > now_ms)
		now_ms = due_ms;
}

static void time_ended(void *arg)
{
	(void)arg;
	loop_stop(loop);
}

/* What was reported within that time. */
static unsigned reports_within(uint64_t ms)
{
	unsigned before = reports;

	turns = TURNS;
	loop_timer_set(loop, &end, now_ms + ms);
	assert_int_equal(loop_run(loop), 0);
	return reports - before;
}

/* The configuration is read, with this file that it names; NULL = none. */
static void read_configuration(const char *named)
{
	watched_files_begin(&seen, configuration);
	if (named)
		watched_files_add(&seen, in(named));
}

static int set_up(void **state)
{
	(void)state;
	alarm(20);
	descriptors = scratch_descriptors();
	live = fault_memory.live;
	scratch_open(dir, scratch_memory());
	snprintf(configuration, sizeof(configuration), "%s/pullet.yaml", dir);
	errors = captured_begin(STDERR_FILENO);
	assert_int_equal(mkdir(in("etc"), 0755) || mkdir(in("fresh"), 0755), 0);
	put("pullet.yaml", "a: 1\n");
	put("etc/named.env", "A=1\n");
	reports = 0;
	now_ms = 1000000;
	sys = sys_real;
	sys.now_ms = virtual_now_ms;
	sys.wait_until = wait_until;
	loop = loop_new(&sys);
	assert_non_null(loop);
	loop_timer_init(&end, time_ended, NULL);
	watch = watch_config_new(loop, configuration, &seen, changed, NULL);
	assert_non_null(watch);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	watch_config_free(watch);
	watch_config_free(NULL); /* one that could not be made */
	watched_files_fini(&seen);
	loop_free(loop);
	captured_end(&errors);
	scratch_close(dir);
	assert_int_equal(scratch_descriptors(), descriptors);
	assert_int_equal(fault_memory.live, live);
	return 0;
}

/* It is watched, and nothing has changed. */
static void begin_with(const char *named)
{
	read_configuration(named);
	watch_config_set(watch, true);
	assert_int_equal(reports_within(1000), 0);
}

static void configuration__that_changed__is_reported_once_it_is_quiet(void **state)
{
	(void)state;
	begin_with(NULL);
	put("pullet.yaml", "a: 2\n");
	assert_int_equal(reports_within(400), 0);
	assert_int_equal(reports_within(200), 1);
	read_configuration(NULL);
	watch_config_set(watch, true);
	assert_int_equal(reports_within(20000), 0);
	put("pullet.yaml", "a: 3\n");
	assert_int_equal(reports_within(300), 0);
	put("pullet.yaml", "a: 4\n");
	assert_int_equal(reports_within(400), 0); /* the pause is that after the last one */
	assert_int_equal(reports_within(200), 1);
}

static void changes__that_go_on__are_reported_after_10_seconds(void **state)
{
	unsigned at = 0;

	(void)state;
	begin_with(NULL);
	for (unsigned i = 0; i < 50 && !at; i++) { /* 15 seconds */
		put("pullet.yaml", "a: 2\n");
		if (reports_within(300))
			at = i;
	}
	assert_in_range(at, 31, 35);
}

/* Each by itself: another file, or the same one with other bytes. */
static void each_mark_of_a_file__counts(void **state)
{
	(void)state;
	assert_int_equal(stat(configuration, &told), 0);
	is_told = true;
	begin_with(NULL);
	for (unsigned i = 0; i < 6; i++) {
		told.st_dev += i == 0;
		told.st_ino += i == 1;
		told.st_size += i == 2;
		told.st_mtim.tv_nsec += i == 3;
		told.st_ctim.tv_sec += i == 4;
		is_deaf = i == 5;
		put("touched", ""); /* it looks */
		assert_int_equal(reports_within(1000), 1);
		read_configuration(NULL);
		watch_config_set(watch, true);
		assert_int_equal(reports_within(1000), 0);
	}
	is_deaf = false;
	put("touched", ""); /* it can be looked at again */
	assert_int_equal(reports_within(1000), 1);
	is_told = false;
}

static void files__beside_the_configuration__are_no_change(void **state)
{
	(void)state;
	begin_with("etc/named.env");
	put("secret", "x");
	put(".pullet.yaml.swp", "x");
	put("etc/other", "x");
	unlink(in("secret"));
	assert_int_equal(reports_within(1000), 0);
}

static void configuration__in_the_own_directory__is_watched_there(void **state)
{
	int before = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	unsigned first, second;

	(void)state;
	assert_int_equal(chdir(dir), 0);
	snprintf(configuration, sizeof(configuration), "pullet.yaml");
	begin_with(NULL);
	put("pullet.yaml", "a: 2\n");
	first = reports_within(1000);
	assert_int_equal(mkdir(in("conf.d"), 0755), 0);
	put("conf.d/a.yaml", "a: 1\n");
	second = reports_within(1000);
	assert_int_equal(fchdir(before), 0);
	close(before);
	assert_int_equal(first, 1);
	assert_int_equal(second, 1);
}

static void part__of_conf_d__is_a_part(void **state)
{
	(void)state;
	begin_with(NULL);
	assert_int_equal(mkdir(in("conf.d"), 0755), 0);
	assert_int_equal(reports_within(1000), 1);
	read_configuration(NULL);
	watch_config_set(watch, true);
	put("conf.d/a.yaml", "a: 1\n");
	assert_int_equal(reports_within(1000), 1);
	read_configuration(NULL);
	watch_config_set(watch, true);
	put("conf.d/a.yaml", "a: 2\n");
	assert_int_equal(reports_within(1000), 1);
	read_configuration(NULL);
	watch_config_set(watch, true);
	put("conf.d/a.txt", "a: 2\n"); /* is none */
	assert_int_equal(reports_within(1000), 0);
}

/* The last one that is logged as the reason to read the configuration again. */
static void assert_named(const char *name)
{
	char text[4096], line[SCRATCH_PATH + 128];

	snprintf(line, sizeof(line), "the configuration changed: reading it again file=%s/%s\n",
		dir, name);
	captured_read(&errors, text, sizeof(text));
	if (strlen(text) < strlen(line) || strcmp(text + strlen(text) - strlen(line), line) != 0)
		fail_msg("not about %s: %s", name, text);
}

static void named_file__that_changed__is_reported_as_long_as_it_is_named(void **state)
{
	(void)state;
	begin_with("etc/named.env");
	put("etc/named.env", "A=2\n");
	assert_int_equal(reports_within(1000), 1);
	assert_named("etc/named.env");
	read_configuration("etc/named.env");
	watch_config_set(watch, true);
	unlink(in("etc/named.env"));
	assert_int_equal(reports_within(1000), 1);
	read_configuration(NULL);
	watch_config_set(watch, true);
	assert_int_equal(reports_within(1000), 0);
	put("etc/named.env", "A=3\n");
	put("touched", ""); /* it looks, and finds nothing */
	assert_int_equal(reports_within(1000), 0);
}

static void each_named_file__is_looked_at(void **state)
{
	(void)state;
	put("etc/other.env", "B=1\n");
	read_configuration("etc/named.env");
	watched_files_add(&seen, in("etc/other.env"));
	watch_config_set(watch, true);
	assert_int_equal(reports_within(1000), 0);
	put("etc/other.env", "B=2\n");
	assert_int_equal(reports_within(1000), 1);
	assert_named("pullet.yaml"); /* which of both it is, is not known */
}

static void named_file__before_one_that_is_missing__is_looked_at(void **state)
{
	(void)state;
	read_configuration("etc/named.env");
	watched_files_add(&seen, in("etc/missing.env"));
	watch_config_set(watch, true);
	assert_int_equal(reports_within(1000), 0);
	put("etc/named.env", "A=2\n");
	assert_int_equal(reports_within(1000), 1);
}

static void link__of_another_user__is_a_change(void **state)
{
	(void)state;
	if (geteuid() != 0) {
		print_message("# another user needs root\n");
		skip();
	}
	assert_int_equal(mkdir(in("parts"), 0755), 0);
	assert_int_equal(symlink("parts", in("conf.d")), 0);
	begin_with(NULL);
	assert_int_equal(lchown(in("conf.d"), 54321, 54321), 0);
	put("touched", "");                        /* it looks */
	assert_int_equal(reports_within(1000), 1); /* the parts cannot be read any more */
}

static void file__that_is_named_twice__is_looked_at_once(void **state)
{
	(void)state;
	read_configuration("etc/named.env");
	watched_files_add(&seen, in("etc/named.env"));
	assert_int_equal(seen.count, 1);
	watched_files_add(&seen, in("etc/other.env"));
	watched_files_add(&seen, in("etc/other.env"));
	assert_int_equal(seen.count, 2);
	watch_config_set(watch, true);
	assert_int_equal(reports_within(1000), 0);
}

static void link__to_another_folder__is_followed(void **state)
{
	(void)state;
	assert_int_equal(mkdir(in("one"), 0755) || mkdir(in("two"), 0755), 0);
	put("one/pullet.yaml", "a: 1\n");
	put("two/pullet.yaml", "a: 2\n");
	unlink(configuration);
	assert_int_equal(symlink("one", in("data")), 0);
	assert_int_equal(symlink("data/pullet.yaml", configuration), 0);
	begin_with(NULL);
	put("one/pullet.yaml", "a: 3\n");
	assert_int_equal(reports_within(1000), 1);
	read_configuration(NULL);
	watch_config_set(watch, true);
	assert_int_equal(symlink("two", in("new")), 0);
	assert_int_equal(rename(in("new"), in("data")), 0); /* as a volume of Kubernetes */
	assert_int_equal(reports_within(1000), 1);
	read_configuration(NULL);
	watch_config_set(watch, true);
	assert_int_equal(reports_within(1000), 0);
	put("two/pullet.yaml", "a: 4\n");
	assert_int_equal(reports_within(1000), 1);
}

static void change__between_reading_and_watching__is_not_missed(void **state)
{
	(void)state;
	read_configuration(NULL);
	put("pullet.yaml", "a: 2\n");
	watch_config_set(watch, true);
	assert_int_equal(reports_within(1000), 1);
	read_configuration(NULL);
	put("pullet.yaml", "a: 3\n");
	watch_config_set(watch, false);
	put("pullet.yaml", "a: 4\n");
	assert_int_equal(reports_within(20000), 0); /* it is off */
	watch_config_set(watch, true);
	assert_int_equal(reports_within(400), 0);
	assert_int_equal(reports_within(200), 1);
}

/* A file that is another one at each look must not make the agent read it without an end. */
static void file__that_is_never_the_same__is_read_again_a_few_times(void **state)
{
	unsigned reads = 0;

	(void)state;
	read_configuration("etc/named.env");
	watch_config_set(watch, true);
	for (int i = 0; i < 20; i++) {
		seen.hash++; /* as if it were */
		reads += reports_within(600);
		watch_config_set(watch, true);
	}
	assert_in_range(reads, 2, 6);
	put("touched", ""); /* then as often as before */
	reads = 0;
	for (int i = 0; i < 20; i++) {
		seen.hash++;
		reads += reports_within(600);
		watch_config_set(watch, true);
	}
	assert_in_range(reads, 2, 6);
}

/* A change is noticed at a SIGHUP then, and it says so. */
static void watch__without_memory__says_so(void **state)
{
	bool made = false;

	(void)state;
	read_configuration("etc/named.env");
	for (unsigned nth = 1; !made; nth++) {
		struct captured log = captured_begin(STDERR_FILENO);
		char text[4096];

		fault_memory.seen = 0;
		fault_memory.nth = nth;
		watch_config_set(watch, true);
		made = fault_memory.seen < nth;
		fault_memory.nth = 0;
		captured_read(&log, text, sizeof(text));
		captured_end(&log);
		watch_config_set(watch, false);
		assert_in_range(nth, 1, 200);
		if (made)
			assert_string_equal(text, "");
		else if (nth == 1)
			assert_non_null(strstr(text,
				"the configuration cannot be watched: a change needs a SIGHUP "
				"why=\"Cannot allocate memory\"\n"));
	}
}

static void file__that_is_named_without_memory__is_not_watched(void **state)
{
	(void)state;
	watched_files_begin(&seen, configuration);
	for (unsigned nth = 1; nth < 3; nth++) {
		fault_memory.seen = 0;
		fault_memory.nth = nth;
		watched_files_add(&seen, in("etc/named.env"));
		fault_memory.nth = 0;
		assert_int_equal(seen.count, 0);
	}
	watched_files_add(&seen, in("etc/named.env"));
	assert_int_equal(seen.count, 1);
}

static void files__above_the_bound__are_not_watched(void **state)
{
	char name[32], text[2048];

	(void)state;
	watched_files_begin(&seen, configuration);
	for (unsigned i = 0; i < WATCH_CONFIG_MAX_NAMED; i++) {
		snprintf(name, sizeof(name), "etc/%u", i);
		watched_files_add(&seen, in(name));
	}
	captured_read(&errors, text, sizeof(text));
	assert_string_equal(text, "");
	watched_files_add(&seen, in("etc/0"));
	watched_files_add(&seen, in("etc/more"));
	assert_int_equal(seen.count, WATCH_CONFIG_MAX_NAMED);
	captured_read(&errors, text, sizeof(text));
	assert_non_null(
		strstr(text, "too many files are named to watch all of them: a change needs "
			     "a SIGHUP path="));
	assert_non_null(strstr(text, "/etc/more\n"));
}

static void folder__that_cannot_be_watched__is_logged(void **state)
{
	char text[2048];

	(void)state;
	read_configuration("none/named.env");
	watch_config_set(watch, true);
	assert_int_equal(reports_within(1000), 0);
	captured_read(&errors, text, sizeof(text));
	assert_non_null(strstr(text, "the configuration cannot be watched here: a change needs a "
				     "SIGHUP path="));
	assert_non_null(strstr(text, "/none/. why=\"No such file or directory\""));
	assert_int_equal(mkdir(in("none"), 0755), 0);
	put("pullet.yaml", "a: 2\n");
	assert_int_equal(reports_within(1000), 1);
	captured_read(&errors, text, sizeof(text));
	assert_non_null(strstr(text, "the configuration is watched here again path="));
	assert_non_null(strstr(text, "the configuration changed: reading it again file="));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(configuration__that_changed__is_reported_once_it_is_quiet),
		CASE(changes__that_go_on__are_reported_after_10_seconds),
		CASE(each_mark_of_a_file__counts),
		CASE(files__beside_the_configuration__are_no_change),
		CASE(configuration__in_the_own_directory__is_watched_there),
		CASE(part__of_conf_d__is_a_part),
		CASE(named_file__that_changed__is_reported_as_long_as_it_is_named),
		CASE(each_named_file__is_looked_at),
		CASE(named_file__before_one_that_is_missing__is_looked_at),
		CASE(link__of_another_user__is_a_change),
		CASE(file__that_is_named_twice__is_looked_at_once),
		CASE(link__to_another_folder__is_followed),
		CASE(change__between_reading_and_watching__is_not_missed),
		CASE(file__that_is_never_the_same__is_read_again_a_few_times),
		CASE(files__above_the_bound__are_not_watched),
		CASE(folder__that_cannot_be_watched__is_logged),
		CASE(watch__without_memory__says_so),
		CASE(file__that_is_named_without_memory__is_not_watched),
	};

	return fault_memory_run(tests, 2);
}
