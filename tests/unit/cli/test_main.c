/* pullet without a command, with one that there is not, and with one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

int run_pullet(int argc, char **argv);
#define main run_pullet
#define command pullet_command /* the fixture has one, too */
#include "cli/main.c"
#undef main
#undef command

#include <cmocka.h>

#include "tests/unit/fixture/command.h"

static int set_up(void **state)
{
	(void)state;
	alarm(20);
	played_open();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	played_close();
	return 0;
}

static void no_command__is_misused(void **state)
{
	(void)state;
	assert_int_equal(RUN(run_pullet, "pullet"), CLI_USAGE);
	assert_string_equal(command.out, "");
	assert_shows(command.err, "Usage: pullet COMMAND [ARGUMENT...]\n");
}

static void help__lists_each_command_once(void **state)
{
	static const char *const words[] = {"--help", "-h", "help"};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(RUN(run_pullet, "pullet", words[i]), CLI_OK);
		assert_string_equal(command.err, "");
		assert_shows(command.out,
			"\n  get      CONFIG KEY [--type T]     one value of a config\n");
		assert_shows(command.out, "\n  sign     FILE... -s FILE           sign documents");
	}
	for (size_t i = 0; i < COMMANDS; i++)
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(commands[i].name, commands[k].name);
	assert_int_equal(RUN(run_pullet, "pullet", "help", "help"), CLI_OK);
	assert_shows(command.out, "Usage: pullet COMMAND");
}

/* The first line of each command's help is its own. */
static void help__of_a_command__is_that_of_the_command(void **state)
{
	char usage[64];

	(void)state;
	for (size_t i = 0; i < COMMANDS; i++) {
		snprintf(usage, sizeof(usage), "Usage: pullet %s", commands[i].name);
		assert_int_equal(RUN(run_pullet, "pullet", "help", commands[i].name), CLI_OK);
		assert_ptr_equal(strstr(command.out, usage), command.out);
		assert_int_equal(RUN(run_pullet, "pullet", commands[i].name, "--help"), CLI_OK);
		assert_ptr_equal(strstr(command.out, usage), command.out);
	}
}

static void version__names_the_libraries(void **state)
{
	(void)state;
	assert_int_equal(RUN(run_pullet, "pullet", "--version"), CLI_OK);
	assert_shows(command.out, "pullet " PULLET_VERSION "\n");
	assert_shows(command.out, "libcurl/");
	assert_shows(command.out, "libzmq/");
	assert_int_equal(RUN(run_pullet, "pullet", "-V"), CLI_OK);
}

static void command__that_there_is_not__is_guessed(void **state)
{
	(void)state;
	RUN(run_pullet, "pullet", "histroy");
	assert_ended(CLI_USAGE, "",
		"pullet: there is no command 'histroy', did you mean 'history'?; try 'pullet "
		"--help'\n");
	RUN(run_pullet, "pullet", "re"); /* refresh, resume, relay */
	assert_ended(CLI_USAGE, "", "pullet: there is no command 're'; try 'pullet --help'\n");
	RUN(run_pullet, "pullet", "xyz");
	assert_ended(CLI_USAGE, "", "pullet: there is no command 'xyz'; try 'pullet --help'\n");
	RUN(run_pullet, "pullet", "");
	assert_ended(CLI_USAGE, "", "pullet: there is no command ''; try 'pullet --help'\n");
	RUN(run_pullet, "pullet", "help", "statsu");
	assert_ended(CLI_USAGE, "",
		"pullet: there is no command 'statsu', did you mean 'status'?; try 'pullet "
		"--help'\n");
}

static void command__gets_its_arguments_and_its_whole_name(void **state)
{
	(void)state;
	played_answers("POST /v1/configs/web/unpin", 200,
		"{\"ok\":true,\"name\":\"web\",\"generation\":3,\"origin\":\"pull\"}");
	assert_int_equal(RUN(run_pullet, "pullet", "unpin", "web"), CLI_OK);
	assert_string_equal(played_asked(0), "POST /v1/configs/web/unpin");
	assert_int_equal(RUN(run_pullet, "pullet", "unpin", "web", "--nope"), CLI_USAGE);
	assert_shows(command.err, "pullet unpin: ");
}

/* ---- descriptors ---- */

/* In a child, for a limit cannot be taken back. */
static int run_with_few_descriptors(int argc, char **argv)
{
	const struct rlimit few = {8, 8};
	pid_t pid = fork();
	int how = 0;

	if (pid == 0) {
		setrlimit(RLIMIT_NOFILE, &few);
		how = run_pullet(argc, argv);
		fflush(NULL);
		_exit(how);
	}
	waitpid(pid, &how, 0);
	return WIFEXITED(how) ? WEXITSTATUS(how) : -1;
}

static void command__that_needs_more_descriptors_than_there_are__says_how_many(void **state)
{
	static const struct {
		const char *arguments[8], *sentence;
	} rows[] = {
		{{"watch", "web", "--timeout", "0s"},
			"6 file descriptors are needed (snapshot and files 6)"},
		{{"publish", "web", "--timeout", "0s"},
			"21 file descriptors are needed (push channel 15, files 6)"},
		{{"serve", "/nowhere"},
			"35 file descriptors are needed (event loop 6, push channel 15, HTTP "
			"server and clients 4, directory and files 10)"},
		{{"fleet", "--etcd", "http://127.0.0.1:1"},
			"20 file descriptors are needed (event loop 6, requests 8, files 6)"},
		{{"relay", "--dir", "/nowhere"}, "29 file descriptors are needed (event loop 6, "
						 "push channel 15, directories 2, files 6)"},
		{{"relay", "--etcd=http://127.0.0.1:1", "--prefix=/a/", "--prefix=/b/",
			 "--upstream=ipc:///nowhere"},
			"48 file descriptors are needed (event loop 6, push channel 15, upstreams "
			"13, requests 8, files 6)"},
	};
	char expected[512];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *arguments[10] = {"pullet"};

		memcpy(arguments + 1, rows[i].arguments, sizeof(rows[i].arguments));
		command_run(run_with_few_descriptors, arguments);
		assert_ended(CLI_CONFIG, "", NULL);
		snprintf(expected, sizeof(expected),
			"pullet %s: the limit of open files is too low: %s, and the limit of 8 ",
			arguments[1], rows[i].sentence);
		assert_int_equal(strncmp(command.err, expected, strlen(expected)), 0);
	}
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(no_command__is_misused),
		CASE(help__lists_each_command_once),
		CASE(help__of_a_command__is_that_of_the_command),
		CASE(version__names_the_libraries),
		CASE(command__that_there_is_not__is_guessed),
		CASE(command__gets_its_arguments_and_its_whole_name),
		CASE(command__that_needs_more_descriptors_than_there_are__says_how_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
