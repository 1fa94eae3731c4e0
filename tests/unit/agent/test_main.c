/* pulletd's own part: its options, what -t prints and warns of, and what it hands on to the agent.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/syscall.h>

#include "tests/unit/fixture/captured.h"
#include "tests/unit/fixture/fault_memory.h"
#include "tests/unit/fixture/pulletd.h"

static bool no_directory; /* the own one is not known */

char *getcwd(char *to, size_t size)
{
	char path[PATH_MAX];

	(void)to, (void)size;
	errno = ENOENT;
	return no_directory || syscall(SYS_getcwd, path, sizeof(path)) < 0 ? NULL : strdup(path);
}

/* ---- options ---- */

static struct agent options; /* as they were parsed last */
static bool is_test;

/* The same as a command line, in words. What parse_options() says. */
static int parse(const char *line)
{
	static char text[256];
	char *argv[16] = {(char[]){"pulletd"}}, *at = text, *word;
	int argc = 1;

	snprintf(text, sizeof(text), "%s", line);
	while ((word = strsep(&at, " ")))
		if (*word)
			argv[argc++] = word;
	optind = 0;
	options = (struct agent){.level = LOG_LEVEL_INFO};
	is_test = false;
	return parse_options(argc, argv, &options, &is_test);
}

static void each_option__in_both_forms__is_kept(void **state)
{
	static const struct {
		const char *line, *path;
		bool test, once, dry_run, level_given;
		enum log_level level;
	} rows[] = {
		{"", "/usual.yaml", false, false, false, false, LOG_LEVEL_INFO},
		{"-c /a.yaml", "/a.yaml", false, false, false, false, LOG_LEVEL_INFO},
		{"--config /a.yaml", "/a.yaml", false, false, false, false, LOG_LEVEL_INFO},
		{"-t", "/usual.yaml", true, false, false, false, LOG_LEVEL_INFO},
		{"--test", "/usual.yaml", true, false, false, false, LOG_LEVEL_INFO},
		{"--once", "/usual.yaml", false, true, false, false, LOG_LEVEL_INFO},
		{"--dry-run", "/usual.yaml", false, true, true, false, LOG_LEVEL_INFO},
		{"--log-level debug", "/usual.yaml", false, false, false, true, LOG_LEVEL_DEBUG},
		{"--log-level err -t -c /b", "/b", true, false, false, true, LOG_LEVEL_ERR},
	};

	(void)state;
	setenv("PULLET_CONFIG", "/usual.yaml", 1);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(parse(rows[i].line), -1);
		if (strcmp(options.path, rows[i].path) != 0 || is_test != rows[i].test ||
			options.once != rows[i].once || options.dry_run != rows[i].dry_run ||
			options.level_given != rows[i].level_given ||
			options.level != rows[i].level)
			fail_msg("%s", rows[i].line);
	}
	unsetenv("PULLET_CONFIG");
}

static void options__that_end_it__say_so(void **state)
{
	static const struct {
		const char *option;
		int code;
		const char *out, *err;
	} rows[] = {
		{"-V", 0, "pulletd " PULLET_VERSION "\n", NULL},
		{"-h", 0, "Usage: pulletd", NULL},
		{"-x", 64, NULL, "Try 'pulletd --help'.\n"},
		{"-c", 64, NULL, "Try 'pulletd --help'.\n"},
		{"--log-level=loud", 64, NULL,
			"pulletd: --log-level is err, warn, info or debug, not 'loud'\n"},
		{"more", 64, NULL,
			"pulletd: 'more' is one argument too many; the configuration is named with "
			"-c\n"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(RUN(run_pulletd, "pulletd", rows[i].option), rows[i].code);
		assert_shows(rows[i].out ? command.out : command.err,
			rows[i].out ? rows[i].out : rows[i].err);
		assert_string_equal(rows[i].out ? command.err : command.out, "");
	}
}

static unsigned forbidden; /* dumps of this process */

int prctl(int option, ...)
{
	unsigned long more[4];
	va_list args;

	va_start(args, option);
	for (int i = 0; i < 4; i++)
		more[i] = va_arg(args, unsigned long);
	va_end(args);
	forbidden += option == PR_SET_DUMPABLE && more[0] == 0;
	return (int)syscall(SYS_prctl, option, more[0], more[1], more[2], more[3]);
}

/* It has what must be in no file. */
static void agent__of_any_kind__forbids_dumps(void **state)
{
	(void)state;
	forbidden = 0;
	assert_int_equal(RUN(run_pulletd, "pulletd", "-c", "/nowhere.yaml"), 78);
	assert_true(forbidden > 0);
	prctl(PR_SET_DUMPABLE, 1L, 0L, 0L, 0L);
}

/* Else a file of the agent would be what it logs to. */
static void standard_descriptors__that_are_closed__are_taken(void **state)
{
	char name[] = "pulletd", option[] = "--version", *argv[] = {name, option, NULL};
	int status;
	pid_t pid;

	(void)state;
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		for (int fd = 0; fd < 3; fd++)
			close(fd);
		optind = 0;
		run_pulletd(2, argv);
		for (int fd = 0; fd < 3; fd++)
			if (fcntl(fd, F_GETFD) < 0)
				_exit(1 + fd);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* ---- paths ---- */

static void configuration__is_named_with_its_directory(void **state)
{
	static const struct {
		const char *dir, *path, *expected;
		bool unknown;
	} rows[] = {{"/", "a.yaml", "/a.yaml", false}, {"/", "./a.yaml", "/a.yaml", false},
		{"/dev", "a.yaml", "/dev/a.yaml", false},
		{"/dev", "././x/a.yaml", "/dev/x/a.yaml", false},
		{"/dev", "../a.yaml", "/dev/../a.yaml", false},
		{"/dev", "/etc/./a.yaml", "/etc/./a.yaml", false},
		{"/dev", "./a.yaml", "./a.yaml", true}};
	int before = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *text;

		assert_int_equal(chdir(rows[i].dir), 0);
		no_directory = rows[i].unknown;
		text = write_absolute(rows[i].path);
		no_directory = false;
		assert_int_equal(fchdir(before), 0);
		assert_string_equal(text, rows[i].expected);
		free(text);
	}
	close(before);
}

/* Makes a directory of that mode. */
static void make(const char *name, mode_t mode)
{
	char path[SCRATCH_PATH + 64];

	snprintf(path, sizeof(path), "%s/%s", played.dir, name);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(chmod(path, mode), 0);
}

static void path__that_others_can_change__is_warned_of(void **state)
{
	static const struct {
		const char *path;
		bool is_file, warned;
	} rows[] = {
		{"good", false, false},
		{"good/out", true, false},
		{"open", false, true},
		{"open/out", true, true},
		{"open/new", false, true},         /* which it would make */
		{"open/new/deeper", false, false}, /* which it cannot make */
		{"open/new/out", true, false},
		{"good/new/out", true, false},
	};

	(void)state;
	make("good", 0755);
	make("open", 0777);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct captured errors = captured_begin(STDERR_FILENO);
		char path[SCRATCH_PATH + 64], expected[SCRATCH_PATH + 128], text[1024];

		snprintf(path, sizeof(path), "%s/%s", played.dir, rows[i].path);
		warn_untrusted("subject", path, rows[i].is_file);
		captured_read(&errors, text, sizeof(text));
		captured_end(&errors);
		snprintf(expected, sizeof(expected),
			"subject: an agent of this user will fail: will not use the directory "
			"%s/open: ",
			played.dir);
		if (!rows[i].warned != !text[0] ||
			(text[0] && strncmp(text, expected, strlen(expected)) != 0))
			fail_msg("%s: %s", rows[i].path, text);
	}
	warn_untrusted("subject", "/out", true); /* it is in the root */
}

static void directories__that_others_can_write_in__are_warned_of_by_their_keys(void **state)
{
	static const char *const keys[] = {"state_dir", "runtime_dir", "web", "set"};
	char text[2048], line[512];

	(void)state;
	for (size_t i = 0; i < 4; i++)
		make(keys[i], 0777);
	snprintf(text, sizeof(text),
		"agent: {state_dir: %s/state_dir, runtime_dir: %s/runtime_dir}\nservers:\n"
		"  d: {kind: file, urls: ['file://%s']}\nconfigs:\n"
		"  web: {from: [{server: d, path: /web.yaml}], type: yaml, file: %s/web/out}\n"
		"  set: {from: [{server: d, path: /a, as: a}], dir: %s/set}\n"
		"  only: {from: [{server: d, path: /db.yaml}], type: yaml, snapshot: true}\n",
		played.dir, played.dir, played.dir, played.dir, played.dir);
	put("pullet.yaml", text);
	RUN(run_pulletd, "pulletd", "-t", "-c", settings_path);
	for (size_t i = 0; i < 4; i++) {
		snprintf(line, sizeof(line),
			"%s: an agent of this user will fail: will not use the directory %s/%s: ",
			keys[i], played.dir, keys[i]);
		assert_shows(command.err, line);
	}
	assert_null(strstr(command.err, "only: "));
}

/* ---- what is missing ---- */

static void start__names_up_to_20_missing_files(void **state)
{
	static const size_t counts[] = {0, 1, 20, 21};

	(void)state;
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		struct captured errors = captured_begin(STDERR_FILENO);
		struct missing missing = {0};
		char text[8192], words[32];
		size_t lines = 0;

		buffer_init(&missing.said, 8192);
		for (size_t k = 0; k < counts[i]; k++) {
			snprintf(words, sizeof(words), "file %zu", k);
			keep_missing(&missing, words);
		}
		log_missing(&missing);
		captured_read(&errors, text, sizeof(text));
		captured_end(&errors);
		for (const char *p = text; (p = strstr(p, "cannot be used why=\"file ")); p++)
			lines++;
		assert_int_equal(lines, counts[i] < 20 ? counts[i] : 20);
		assert_int_equal(strstr(text, "more files cannot be used: pulletd -t prints them "
					      "count=1\n") != NULL,
			counts[i] == 21);
		assert_int_equal(strstr(text, "more files") != NULL, counts[i] == 21);
	}
}

static void test__of_files_that_are_missing__counts_them(void **state)
{
	char text[2048], expected[512];

	(void)state;
	for (int missing = 0; missing < 3; missing++) {
		int lines = 0;

		snprintf(text, sizeof(text),
			"agent: {state_dir: %s/state, runtime_dir: %s/run}\nservers:\n"
			"  d: {kind: file, urls: ['file://%s']}\n%s%sconfigs:\n" WEB,
			played.dir, played.dir, played.dir,
			missing > 0 ? "  s: {urls: ['http://127.0.0.1:1'], auth: {bearer_file: "
				      "/nowhere/1}}\n"
				    : "",
			missing > 1 ? "  u: {urls: ['http://127.0.0.1:2'], auth: {bearer_file: "
				      "/nowhere/2}}\n"
				    : "");
		put("pullet.yaml", text);
		assert_int_equal(RUN(run_pulletd, "pulletd", "-t", "-c", settings_path),
			missing ? EXIT_FAILURE : EXIT_SUCCESS);
		snprintf(text, sizeof(text), ", but %d of the files that it names cannot be used",
			missing);
		snprintf(expected, sizeof(expected), "%s: valid, 1 config%s\n", settings_path,
			missing ? text : "");
		assert_string_equal(command.out, expected);
		for (const char *p = command.err; (p = strchr(p, '\n')); p++)
			lines++;
		assert_int_equal(lines, missing);
		if (missing)
			assert_shows(command.err, ": bearer_file: the file cannot be read: ");
	}
}

/* Nothing runs that could read it again. */
static void error__of_a_test__says_nothing_of_a_running_agent(void **state)
{
	static const struct {
		const char *message, *line;
	} rows[] = {{"it is wrong (" SETTINGS_TEMPLATE_READ ")", "it is wrong\n"},
		{"it is wrong (always)", "it is wrong (always)\n"}};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct captured errors = captured_begin(STDERR_FILENO);
		char text[256];

		report_tested(NULL, rows[i].message);
		captured_read(&errors, text, sizeof(text));
		captured_end(&errors);
		assert_string_equal(text, rows[i].line);
	}
}

static void operators__whom_nobody_is__are_warned_of_with_the_remedy(void **state)
{
	(void)state;
	if (geteuid() != 0) {
		print_message("# the agent's group is this user's\n");
		skip();
	}
	put_settings(", operators: 54321", WEB);
	assert_int_equal(RUN(run_pulletd, "pulletd", "-t", "-c", settings_path), 0);
	/* root tests for others, whose group it does not know */
	assert_string_equal(command.err,
		"operators: nobody is a member of the group 54321: usermod -aG 54321 USER\n");
}

/* ---- the directories of the agent ---- */

/* Of somebody else, and not a word of it is taken for one's own. */
static void directory__of_another_user__keeps_it_from_starting(void **state)
{
	static const char *const names[] = {"state", "run"};

	(void)state;
	if (geteuid() != 0) {
		print_message("# another user needs root\n");
		skip();
	}
	put("web.yaml", "port: 1\n");
	put_settings("", WEB);
	for (size_t i = 0; i < 2; i++) {
		char path[SCRATCH_PATH + 16], expected[SCRATCH_PATH + 256];

		make(names[i], 0700);
		snprintf(path, sizeof(path), "%s/%s", played.dir, names[i]);
		assert_int_equal(chown(path, 54321, 54321), 0);
		assert_int_equal(RUN(run_pulletd, "pulletd", "-c", settings_path, "--once"), 1);
		snprintf(expected, sizeof(expected),
			"cannot use the directory: see why, or name another one in the "
			"configuration path=%s why=\"",
			path);
		assert_shows(command.err, expected);
		assert_null(strstr(command.err, "started"));
		assert_int_equal(scratch_count(path, "lock"), 0);
		assert_int_equal(rmdir(path), 0);
	}
}

static void test__leaves_no_memory(void **state)
{
	long before = 0;

	(void)state;
	put_settings("", WEB);
	for (int i = 0; i < 3; i++) {
		RUN(run_pulletd, "pulletd", "-t", "-c", settings_path);
		if (i == 0)
			before = fault_memory.live;
	}
	assert_int_equal(fault_memory.live, before);
}

static void run__leaves_no_descriptor(void **state)
{
	static const char *const ways[] = {"--once", "--dry-run", "--once"};
	unsigned descriptors = 0;

	(void)state;
	put_settings("",
		"  web: {from: [{server: d, path: /web.yaml}], type: yaml, snapshot: true, schema: "
		"/nowhere.json}\n" DB);
	RUN(run_pulletd, "pulletd", "-c", settings_path, "--once");
	put("web.yaml", "port: 1\n");
	put_settings("", WEB DB);
	for (int i = 0; i < 5; i++) {
		RUN(run_pulletd, "pulletd", "-c", settings_path, ways[i % 3]);
		if (i > 1)
			assert_int_equal(scratch_descriptors(), descriptors);
		descriptors = scratch_descriptors();
	}
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, pulletd_set_up, pulletd_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(each_option__in_both_forms__is_kept),
		CASE(options__that_end_it__say_so),
		CASE(agent__of_any_kind__forbids_dumps),
		CASE(standard_descriptors__that_are_closed__are_taken),
		CASE(configuration__is_named_with_its_directory),
		CASE(path__that_others_can_change__is_warned_of),
		CASE(directories__that_others_can_write_in__are_warned_of_by_their_keys),
		CASE(start__names_up_to_20_missing_files),
		CASE(test__of_files_that_are_missing__counts_them),
		CASE(error__of_a_test__says_nothing_of_a_running_agent),
		CASE(operators__whom_nobody_is__are_warned_of_with_the_remedy),
		CASE(directory__of_another_user__keeps_it_from_starting),
		CASE(test__leaves_no_memory),
		CASE(run__leaves_no_descriptor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
