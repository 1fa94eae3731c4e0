/* `pullet dev` whole: its server, agent and watch are this program, too, started again as what
 * argv[0] says. The test beside it edits the directory. */
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

int run_pulletd(int argc, char **argv);
#define main run_pulletd
#include "main.c"
#undef main

#include <cmocka.h>

#include "cli/common/cli.h"
#include "tests/unit/fixture/beside.h"

static char bin[SCRATCH_PATH + 16], docs[SCRATCH_PATH + 16], temporary[SCRATCH_PATH + 16];

/* ---- the directory ---- */

static void put(const char *name, const char *text)
{
	char from[SCRATCH_PATH + 64], to[SCRATCH_PATH + 64];
	FILE *f;

	snprintf(from, sizeof(from), "%s/.new", played.dir);
	snprintf(to, sizeof(to), "%s/%s", docs, name);
	f = fopen(from, "we");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	assert_int_equal(rename(from, to), 0);
}

static void remove_document(const char *name)
{
	char path[SCRATCH_PATH + 64];

	snprintf(path, sizeof(path), "%s/%s", docs, name);
	assert_int_equal(unlink(path), 0);
}

static unsigned count_files(const char *path)
{
	DIR *d = opendir(path);
	unsigned n = 0;

	assert_non_null(d);
	for (const struct dirent *e; (e = readdir(d));)
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

static int set_up(void **state)
{
	char self[PATH_MAX] = "", pulletd[SCRATCH_PATH + 32];

	(void)state;
	alarm(60);
	played_open();
	played_stop();
	unsetenv("PULLET_RUNTIME_DIR");
	snprintf(bin, sizeof(bin), "%s/bin", played.dir);
	snprintf(docs, sizeof(docs), "%s/docs", played.dir);
	snprintf(temporary, sizeof(temporary), "%s/tmp", played.dir);
	snprintf(pulletd, sizeof(pulletd), "%s/pulletd", bin);
	assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	assert_int_equal(mkdir(bin, 0755) || mkdir(docs, 0755) || mkdir(temporary, 0700), 0);
	assert_int_equal(symlink(self, pulletd), 0);
	setenv("PATH", bin, 1);
	setenv("TMPDIR", "/nowhere", 1);
	setenv("XDG_RUNTIME_DIR", temporary, 1);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	played_close();
	return 0;
}

/* Runs it, and sees that nothing is left. */
static void run_dev_with(void (*act)(void), const char *const *arguments)
{
	beside_run(cli_dev, act, arguments);
	assert_int_equal(count_files(temporary), 0);
}

#define DEV(act, ...) run_dev_with(act, (const char *const[]){"pullet dev", __VA_ARGS__, NULL})

/* ---- changes ---- */

static void edit_documents(void)
{
	beside_await("Ctrl-C ends it.\n\n", 1);
	put("web.yaml", "db: {host: h, port: 5433, password: new}\n");
	beside_await("web: generation 2 of web.yaml\n", 1);
	beside_await("5432 -> 5433\n", 1);
	put("db.json", "{\"port\": 1}");
	beside_await("db: generation 1 of db.json, 1 value\n", 1);
	put("odd name.yaml", "a: 1\n");
	beside_await("/docs/odd name.yaml is left out: name it with letters", 1);
	put("web.yaml", "db: [\n");
	beside_await("web: rejected by the syntax: keeping the current version: ", 1);
	remove_document("db.json");
	beside_await("/docs/db.json is gone: its last version stays published\n", 1);
	beside_signal(SIGINT);
}

static void directory__is_served__and_each_value_that_changes_is_printed(void **state)
{
	char text[512];

	(void)state;
	put("web.yaml", "db: {host: h, port: 5432, password: old}\n");
	put("no-document.txt", "x");
	snprintf(text, sizeof(text), "%s/", docs);
	DEV(edit_documents, text);
	assert_int_equal(command.code, CLI_OK);
	snprintf(text, sizeof(text), "serving %s on http://127.0.0.1:", docs); /* no slash */
	assert_int_equal(strncmp(beside.log, text, strlen(text)), 0);
	assert_shows(beside.log, ", changes are pushed on tcp://127.0.0.1:");
	assert_int_equal(beside_count("serving "), 1);
	assert_shows(beside.log, "\nweb: generation 1 of web.yaml, 3 values\n\nIn another shell:\n"
				 "    PULLET_RUNTIME_DIR=");
	assert_shows(beside.log, " get web db.host\n    PULLET_RUNTIME_DIR=");
	assert_int_equal(beside_count("In another shell"), 1);
	assert_null(strstr(beside.log, "sed -i"));
	assert_shows(beside.log, "/files/web.yaml, or the snapshot with");
	assert_shows(beside.log, "# generation 1 -> generation 2\n");
	assert_null(strstr(beside.log, "old")); /* a password is masked */
	assert_null(strstr(beside.log, "\"new\""));
	assert_null(strstr(beside.log, "changed path="));
	assert_null(strstr(beside.log, "no-document"));
	assert_null(strstr(beside.log, "ended from outside"));
}

static void try_the_example(void)
{
	beside_await("Ctrl-C ends it.\n\n", 1);
	beside_signal(SIGTERM);
}

static void example__is_made_and_what_to_try_changes_it(void **state)
{
	char text[512];

	(void)state;
	DEV(try_the_example, NULL);
	assert_int_equal(command.code, CLI_OK);
	snprintf(text, sizeof(text), "serving %s/pullet-dev-", temporary);
	assert_int_equal(strncmp(beside.log, text, strlen(text)), 0);
	assert_shows(beside.log, "\nweb: generation 1 of web.yaml, 5 values\n");
	snprintf(text, sizeof(text), "\n    sed -i s/hello/goodbye/ %s/pullet-dev-", temporary);
	assert_shows(beside.log, text);
	assert_shows(beside.log, "/served/web.yaml\nChange a value in ");
}

/* ---- ends ---- */

/* A child of the command that was started with this word. */
static pid_t find_program(const char *word)
{
	char path[64], line[4096];
	int pid = 0, n;
	FILE *f, *g;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", beside.pid, beside.pid);
	f = fopen(path, "re");
	assert_non_null(f);
	while (fscanf(f, "%d", &n) == 1) {
		size_t len;

		snprintf(path, sizeof(path), "/proc/%d/cmdline", n);
		g = fopen(path, "re");
		len = g ? fread(line, 1, sizeof(line) - 1, g) : 0;
		for (size_t i = 0; i < len; i++)
			line[i] = line[i] ? line[i] : ' ';
		line[len] = '\0';
		pid = strstr(line, word) ? n : pid;
		if (g)
			fclose(g);
	}
	fclose(f);
	assert_true(pid > 0);
	return pid;
}

static void kill_the_agent(void)
{
	beside_await("Ctrl-C ends it.\n\n", 1);
	kill(find_program("/pulletd -c "), SIGKILL);
}

static void kill_the_server(void)
{
	beside_await("Ctrl-C ends it.\n\n", 1);
	kill(find_program(" serve --http "), SIGKILL);
}

static void program__that_is_killed__ends_all(void **state)
{
	(void)state;
	DEV(kill_the_agent, NULL);
	assert_int_equal(command.code, CLI_FAILED);
	assert_shows(beside.log, "pullet dev: pulletd was ended from outside: start this again\n");
	DEV(kill_the_server, NULL);
	assert_int_equal(command.code, CLI_FAILED);
	assert_shows(
		beside.log, "pullet dev: pullet serve was ended from outside: start this again\n");
}

/* A server that writes what somebody may have to read, and much else, then fails. */
static int play_server(void)
{
	fputs("<6>changed path=web.yaml version=1\n<6>removed path=web.yaml\n"
	      "<4>pullet serve: the disk is full\na sentence\n<\n",
		stderr);
	printf("on http://127.0.0.1:9, it is said\nserving nothing\n"
	       "serving 1 file on http://127.0.0.1:1\nit is publishing on tcp://127.0.0.1:9\n"
	       "publishing on tcp://127.0.0.1:2\n\nserving 1 file on http://127.0.0.1:3\n"
	       "publishing on tcp://127.0.0.1:4\n");
	fflush(stdout);
	return 5;
}

static void server__is_quoted_where_it_matters_and_its_failure_is_the_end(void **state)
{
	char text[512];

	(void)state;
	put("web.yaml", "a: 1\n");
	setenv("PLAYED_SERVER", "1", 1);
	DEV(NULL, docs);
	unsetenv("PLAYED_SERVER");
	assert_int_equal(command.code, 5);
	snprintf(text, sizeof(text),
		"serving %s on http://127.0.0.1:1, changes are pushed on tcp://127.0.0.1:2\n",
		docs);
	assert_shows(beside.log, text);
	assert_int_equal(beside_count("serving "), 1);
	assert_int_equal(beside_count("tcp://"), 1);
	assert_shows(beside.log, "pullet dev: the disk is full\n");
	assert_shows(beside.log, "pullet dev: a sentence\n");
	assert_shows(beside.log, "pullet dev: <\n");
	assert_null(strstr(beside.log, "path="));
	assert_null(strstr(beside.log, "from outside"));
}

static void address__that_is_taken__is_named(void **state)
{
	char text[128];

	(void)state;
	snprintf(text, sizeof(text), "%s", played_listen_tcp() + strlen("http://"));
	DEV(NULL, "--http", text);
	played_stop();
	assert_int_equal(command.code, CLI_FAILED);
	assert_int_equal(strncmp(beside.log, "pullet dev: cannot listen on 127.0.0.1:", 39), 0);
	assert_shows(beside.log, "another program has it: stop that, or name another with --http");
	assert_null(strstr(beside.log, "from outside"));
}

static void directory__that_cannot_be_served__is_an_error_with_a_remedy(void **state)
{
	char none[SCRATCH_PATH + 32], file[SCRATCH_PATH + 32], text[512];

	(void)state;
	DEV(NULL, docs);
	snprintf(text, sizeof(text),
		"pullet dev: there is no .yaml, .yml or .json file in %s that can be served: make "
		"one (echo 'greeting: hello' >web.yaml), or name no directory for an example\n",
		docs);
	assert_printed(CLI_FAILED, text);
	snprintf(none, sizeof(none), "%s/none", docs);
	DEV(NULL, none);
	snprintf(text, sizeof(text),
		"pullet dev: cannot serve %s: No such file or directory: make it, or name no "
		"directory for an example\n",
		none);
	assert_printed(CLI_FAILED, text);
	put("web.yaml", "a: 1\n");
	snprintf(file, sizeof(file), "%s/web.yaml", docs);
	DEV(NULL, file);
	snprintf(text, sizeof(text),
		"pullet dev: cannot serve %s: Not a directory: name the directory that the file is "
		"in\n",
		file);
	assert_printed(CLI_FAILED, text);
	remove_document("web.yaml");
	put("a b.yaml", "a: 1\n");
	put("c d.yaml", "a: 1\n");
	DEV(NULL, docs);
	assert_shows(beside.log, ".yaml is left out, and 1 more like it: name it with");
	assert_shows(beside.log, "there is no .yaml");
}

static void machine__without_pulletd_or_a_place__is_told_what_to_do(void **state)
{
	(void)state;
	setenv("PATH", "/nowhere::/nowhere/else", 1);
	DEV(NULL, NULL);
	assert_int_equal(command.code, CLI_FAILED);
	assert_shows(beside.log, "pullet dev: there is no pulletd, neither in ");
	assert_shows(
		beside.log, "/../sbin nor in PATH: install it, or name its directory in PATH\n");
	setenv("PATH", bin, 1);
	setenv("XDG_RUNTIME_DIR", "relative", 1);
	DEV(NULL, NULL);
	assert_printed(CLI_FAILED,
		"pullet dev: cannot make a temporary directory in /nowhere: No such file or "
		"directory: name a directory in TMPDIR that this user may write in, with a short "
		"path\n");
	setenv("TMPDIR", "/it's", 1);
	DEV(NULL, NULL);
	assert_shows(beside.log, "in /it's: Invalid argument: name a directory in TMPDIR");
	setenv("TMPDIR", "/123456789012345678901234567890123456789012345", 1); /* and 18 */
	DEV(NULL, NULL);
	assert_shows(beside.log, ": File name too long: name");
	setenv("TMPDIR", "/12345678901234567890123456789012345678901234", 1);
	DEV(NULL, NULL);
	assert_shows(beside.log, ": No such file or directory: name");
	unsetenv("XDG_RUNTIME_DIR");
	setenv("TMPDIR", temporary, 1);
	DEV(try_the_example, NULL);
	assert_int_equal(command.code, CLI_OK);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		CASE(directory__is_served__and_each_value_that_changes_is_printed),
		CASE(example__is_made_and_what_to_try_changes_it),
		CASE(program__that_is_killed__ends_all),
		CASE(server__is_quoted_where_it_matters_and_its_failure_is_the_end),
		CASE(address__that_is_taken__is_named),
		CASE(directory__that_cannot_be_served__is_an_error_with_a_remedy),
		CASE(machine__without_pulletd_or_a_place__is_told_what_to_do),
	};
	size_t len = strlen(argv[0]);
	char name[] = "pullet serve";

	if (argc > 1 && strcmp(argv[1], "serve") == 0) {
		if (getenv("PLAYED_SERVER"))
			return play_server();
		argv[1] = name;
		return cli_serve(argc - 1, argv + 1);
	}
	if (argc > 1 && len > 8 && strcmp(argv[0] + len - 8, "/pulletd") == 0)
		return run_pulletd(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
