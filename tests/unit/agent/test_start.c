/*
 * The start of a whole agent: what keeps it from starting, and is said then; which configuration
 * and log it has; and what it does once, or not at all.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <grp.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>

#include <cmocka.h>

#include "httpd/listen.h"
#include "tests/unit/fixture/captured.h"
#include "tests/unit/fixture/pulletd.h"

/* The path with the directory before it. */
static const char *place(const char *name)
{
	static char path[SCRATCH_PATH + 64];

	snprintf(path, sizeof(path), "%s/%s", played.dir, name);
	return path;
}

/* Also in threads of the agent. */
static bool is_there(const char *name)
{
	char path[SCRATCH_PATH + 64];

	snprintf(path, sizeof(path), "%s/%s", played.dir, name);
	return access(path, F_OK) == 0;
}

/* Another pulletd, in a process of its own with so many descriptors; 0 = as many as here. Its exit
 * code; what it logs is in command.err. */
static int run_another(const char *file, rlim_t descriptors)
{
	struct captured errors = captured_begin(STDERR_FILENO);
	char name[] = "pulletd", option[] = "-c", path[SCRATCH_PATH + 64],
	     *argv[] = {name, option, path, NULL};
	pid_t pid = fork();
	int status = 0;

	snprintf(path, sizeof(path), "%s", place(file));
	if (pid == 0) {
		const struct rlimit limit = {descriptors, descriptors};

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (descriptors)
			setrlimit(RLIMIT_NOFILE, &limit);
		optind = 0;
		exit(run_pulletd(3, argv));
	}
	waitpid(pid, &status, 0);
	captured_read(&errors, command.err, sizeof(command.err));
	captured_end(&errors);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* ---- what keeps it from starting ---- */

static int second_code;

static pid_t first_pid;

static void start_a_second(int printed)
{
	first_pid = agent_pid;
	if (log_has(printed, "started version", 1))
		second_code = run_another("pullet.yaml", 0);
}

static void second_agent__of_the_same_state__does_not_start(void **state)
{
	char expected[512];

	(void)state;
	put_settings("", WEB);
	run_with(start_a_second);
	snprintf(expected, sizeof(expected),
		"another pulletd uses this state directory: stop it, or give this one another "
		"state_dir path=%s/state pid=%d\n",
		played.dir, (int)first_pid);
	assert_shows(command.err, expected);
	assert_int_equal(second_code, 1);
}

static void start_another_at_the_socket(int printed)
{
	char text[1024];

	snprintf(text, sizeof(text),
		"agent: {state_dir: %s/other, runtime_dir: %s/run}\nconfigs:\n"
		"  web: {url: 'http://127.0.0.1:1/w'}\n",
		played.dir, played.dir);
	put("other.yaml", text);
	if (!log_has(printed, "started version", 1))
		return;
	second_code = run_another("other.yaml", 0);
	ask("GET /livez"); /* 0 */
}

static void second_agent__at_the_same_socket__does_not_start(void **state)
{
	(void)state;
	put_settings("", WEB);
	run_with(start_another_at_the_socket);
	assert_shows(command.err, "cannot serve the control API why=");
	assert_int_equal(second_code, 1);
	assert_answer(0, 200, "ok"); /* the first one has it still */
}

static void see_it_start(int printed)
{
	log_has(printed, "started version", 1);
}

/* As the copy of a killed agent does that was about to start a program: it has the socket until the
 * next agent has asked who is there. */
static void hold_socket(int ready)
{
	struct pollfd asked = {.fd = listen_unix(place("run/control.sock")), .events = POLLIN};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	_exit(listen(asked.fd, 8) || write(ready, "", 1) != 1 || poll(&asked, 1, -1) != 1);
}

static void socket__that_a_killed_agents_copy_has_for_a_moment__is_waited_for(void **state)
{
	int ends[2], status = -1;
	char byte;
	pid_t pid;

	(void)state;
	put_settings("", WEB);
	assert_int_equal(mkdir(place("run"), 0750), 0);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0)
		hold_socket(ends[1]);
	close(ends[1]);
	assert_int_equal(read(ends[0], &byte, 1), 1);
	close(ends[0]);
	run_with(see_it_start);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void state__that_cannot_be_written__is_named(void **state)
{
	char expected[512];

	(void)state;
	put_settings("", WEB);
	assert_int_equal(mkdir(place("state"), 0700), 0);
	assert_int_equal(mkdir(place("state/.lock"), 0700), 0);
	assert_int_equal(run_another("pullet.yaml", 0), 1);
	snprintf(expected, sizeof(expected),
		"cannot write in the state directory path=%s/state/.lock why=\"Is a directory",
		played.dir);
	assert_shows(command.err, expected);
}

static void limit_of_descriptors__that_is_too_low__is_an_invalid_configuration(void **state)
{
	(void)state;
	put_settings("", WEB);
	assert_int_equal(run_another("pullet.yaml", 16), 78); /* too few to read it */
	assert_shows(command.err, "cannot start: the limit of open files is too low why=");
	assert_null(strstr(command.err, "control socket"));
	assert_int_equal(run_another("pullet.yaml", 32), 78);
	assert_shows(command.err, "cannot start: the limit of open files is too low why=");
	assert_shows(command.err, "control socket");
	assert_false(is_there("state"));
}

/* The reason is that, and not what has failed before. */
static void threads__that_are_short__are_said_to_be(void **state)
{
	pthread_attr_t before, larger;

	(void)state;
	put_settings("", WEB);
	pthread_getattr_default_np(&before);
	pthread_attr_init(&larger);
	pthread_attr_setstacksize(&larger, (size_t)1 << 46); /* no machine has that */
	assert_int_equal(pthread_setattr_default_np(&larger), 0);
	RUN(run_pulletd, "pulletd", "-c", settings_path, "--once");
	pthread_setattr_default_np(&before);
	pthread_attr_destroy(&larger);
	pthread_attr_destroy(&before);
	assert_int_equal(command.code, 1);
	assert_shows(command.err,
		"cannot start: memory, file descriptors or threads are short: raise the limits "
		"(LimitNOFILE, MemoryMax, TasksMax) why=\"Cannot allocate memory\"\n");
}

static int timer_error; /* 0 = there are timers */

int timerfd_create(int clock, int flags)
{
	if (timer_error) {
		errno = timer_error;
		return -1;
	}
	return (int)syscall(SYS_timerfd_create, clock, flags);
}

/* No limit that is raised would help. */
static void timers__that_a_sandbox_denies__are_no_shortage(void **state)
{
	(void)state;
	put_settings("", WEB);
	timer_error = EPERM;
	RUN(run_pulletd, "pulletd", "-c", settings_path, "--once");
	timer_error = 0;
	assert_int_equal(command.code, 1);
	assert_shows(command.err,
		"cannot start: a timer, a signal or a thread is denied: allow the system call in "
		"the sandbox (seccomp), or use a kernel that has it why=\"Operation not "
		"permitted\"\n");
	assert_null(strstr(command.err, "raise"));
}

static void signals__that_it_could_not_hear__keep_it_from_starting(void **state)
{
	void (*before)(int) = signal(SIGPIPE, SIG_DFL);
	struct captured errors = captured_begin(STDERR_FILENO);
	struct agent a = {.lock = -1};
	char text[512];
	int r = handle_signals(&a, NULL);

	(void)state;
	captured_read(&errors, text, sizeof(text));
	captured_end(&errors);
	signal(SIGPIPE, before);
	assert_int_equal(r, -ENOMEM);
	assert_shows(text, "cannot start: memory, file descriptors or threads are short: ");
}

static void ask_which_configuration(int printed)
{
	if (log_has(printed, "started version", 1))
		ask("GET /v1/status"); /* 0 */
}

/* Who asks may be in another directory. */
static void configuration__by_a_relative_path__is_named_with_its_directory(void **state)
{
	int before = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char expected[SCRATCH_PATH + 64];

	(void)state;
	put_settings("", WEB);
	assert_int_equal(chdir(played.dir), 0);
	snprintf(settings_path, sizeof(settings_path), "././pullet.yaml");
	run_with(ask_which_configuration);
	assert_int_equal(fchdir(before), 0);
	close(before);
	snprintf(expected, sizeof(expected), "\"file\":\"%s/pullet.yaml\"", played.dir);
	assert_answer(0, 200, expected);
}

/* ---- what it is told ---- */

static void configuration__of_the_environment__counts_unless_one_is_named(void **state)
{
	char expected[512];

	(void)state;
	put_settings("", WEB DB);
	setenv("PULLET_CONFIG", settings_path, 1);
	assert_int_equal(RUN(run_pulletd, "pulletd", "-t"), 0);
	snprintf(expected, sizeof(expected), "%s: valid, 2 configs\n", settings_path);
	assert_string_equal(command.out, expected);
	assert_int_equal(RUN(run_pulletd, "pulletd", "-t", "-c", "/nowhere.yaml"), 78);
	assert_shows(command.err, "/nowhere.yaml: cannot be read: ");
	setenv("PULLET_CONFIG", "", 1);
	RUN(run_pulletd, "pulletd", "-t");
	assert_shows(command.code ? command.err : command.out, SETTINGS_DEFAULT_PATH ": ");
	unsetenv("PULLET_CONFIG");
}

static void log__is_as_the_configuration_says_unless_the_command_line_does(void **state)
{
	(void)state;
	put("web.yaml", "port: 1\n");
	put_settings(", log: {level: err}", WEB);
	assert_int_equal(RUN(run_pulletd, "pulletd", "-c", settings_path, "--once"), 0);
	assert_string_equal(command.err, "");
	put_settings(", log: {level: debug, format: json}", WEB);
	assert_int_equal(RUN(run_pulletd, "pulletd", "-c", settings_path, "--once"), 0);
	assert_int_equal(command.err[0], '{');
	assert_shows(command.err, "\"message\":\"started\"");
	assert_int_equal(
		RUN(run_pulletd, "pulletd", "-c", settings_path, "--once", "--log-level", "err"),
		0);
	assert_string_equal(command.err, "");
}

static void directory__that_anybody_can_write_in__is_warned_of(void **state)
{
	char expected[512];

	(void)state;
	put("web.yaml", "port: 1\n");
	put_settings("", WEB);
	assert_int_equal(mkdir(place("run"), 0700), 0);
	assert_int_equal(chmod(place("run"), 01777), 0);
	RUN(run_pulletd, "pulletd", "-c", settings_path, "--once");
	snprintf(expected, sizeof(expected),
		"anybody on this host can write in the directory, and with it choose what is "
		"published: chmod o-w it path=%s/run\n",
		played.dir);
	assert_shows(command.err, expected);
	assert_null(strstr(command.err, "/state\n"));
}

static void configuration__that_anybody_can_write__is_warned_of(void **state)
{
	char expected[512];

	(void)state;
	put("web.yaml", "port: 1\n");
	put_settings("", WEB);
	RUN(run_pulletd, "pulletd", "-c", settings_path, "--once");
	assert_null(strstr(command.err, "can write the configuration"));
	assert_int_equal(chmod(settings_path, 0646), 0);
	RUN(run_pulletd, "pulletd", "-c", settings_path, "--once");
	snprintf(expected, sizeof(expected),
		"anybody on this host can write the configuration, and with it make the agent run "
		"programs: chmod o-w it file=%s\n",
		settings_path);
	assert_shows(command.err, expected);
}

static void look_at_modes(int printed)
{
	static const struct {
		const char *name;
		mode_t mode;
	} table[] = {
		{"state", 0700}, {"run", 0750}, {"state/.lock", 0600}, {"run/control.sock", 0660}};
	struct stat st;

	if (!log_has(printed, "started version", 1))
		return;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (stat(place(table[i].name), &st) || (st.st_mode & 07777) != table[i].mode) {
			print_error("%s is not %o\n", table[i].name, (unsigned)table[i].mode);
			talk->failed = true;
		}
}

static void directories__that_it_makes__are_its_own__and_the_socket_its_groups(void **state)
{
	mode_t before = umask(0);

	(void)state;
	put_settings("", WEB);
	run_with(look_at_modes);
	umask(before);
}

static void operators__whom_nobody_can_be__are_warned_of(void **state)
{
	(void)state;
	put_settings(", operators: 54321", WEB);
	assert_int_equal(RUN(run_pulletd, "pulletd", "-t", "-c", settings_path), 0);
	assert_shows(command.err, "operators: nobody is a member of the group 54321: usermod -aG ");
	put_settings("", WEB);
	assert_int_equal(RUN(run_pulletd, "pulletd", "-t", "-c", settings_path), 0);
	assert_string_equal(command.err, "");
}

/* ---- once, and not at all ---- */

static void once__waits_for_each_config__and_fails_with_any(void **state)
{
	(void)state;
	put("web.yaml", "port: [\n");
	put("db.yaml", "port: 5\n");
	put("more.yaml", "port: 6\n");
	put_settings("",
		WEB DB "  more: {from: [{server: d, path: /more.yaml}], type: yaml, snapshot: "
		       "true}\n");
	assert_int_equal(RUN(run_pulletd, "pulletd", "-c", settings_path, "--once"), 1);
	assert_false(is_there("run/web.snap"));
	assert_true(is_there("run/db.snap"));
	assert_true(is_there("run/more.snap"));
	assert_false(is_there("run/control.sock"));
}

/* The check of one waits for the file of another, which is published long before. */
static void once__waits_for_the_slowest_config(void **state)
{
	char config[1024];

	(void)state;
	put("web.yaml", "port: 1\n");
	put("slow.yaml", "port: 2\n");
	snprintf(config, sizeof(config),
		WEB "  slow: {from: [{server: d, path: /slow.yaml}], type: yaml, snapshot: true, "
		    "check: {run: [/bin/sh, -c, 'until [ -e %s/run/web.snap ]; do sleep 0.01; "
		    "done; sleep 0.05', '{path}']}}\n",
		played.dir);
	put_settings("", config);
	assert_int_equal(RUN(run_pulletd, "pulletd", "-c", settings_path, "--once"), 0);
	assert_true(is_there("run/web.snap"));
	assert_true(is_there("run/slow.snap"));
}

#define OWN_USER 54321u

/* Runs it once, in a process that is prepared for it. */
static int run_once_as(void (*become)(void))
{
	struct captured errors = captured_begin(STDERR_FILENO);
	char name[] = "pulletd", option[] = "-c", once[] = "--once",
	     *argv[] = {name, option, settings_path, once, NULL};
	pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		become();
		optind = 0;
		exit(run_pulletd(4, argv));
	}
	waitpid(pid, &status, 0);
	captured_read(&errors, command.err, sizeof(command.err));
	captured_end(&errors);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static char own[SCRATCH_PATH + 16];

/* A user who has a directory of its own for what lives as long as its session. */
static void become_own_user(void)
{
	char state[SCRATCH_PATH + 32];

	setenv("XDG_RUNTIME_DIR", own, 1);
	snprintf(state, sizeof(state), "%s/deep/er", own);
	setenv("XDG_STATE_HOME", state, 1);
	if (setgroups(0, NULL) || setresgid(OWN_USER, OWN_USER, OWN_USER) ||
		setresuid(OWN_USER, OWN_USER, OWN_USER))
		exit(99);
}

/* Its programs would look for the values in the usual place. What is above it is made. */
static void own_places__of_an_ordinary_user__are_said(void **state)
{
	char text[1024], expected[1024];

	(void)state;
	if (geteuid() != 0) {
		print_message("# another user needs root\n");
		skip();
	}
	assert_int_equal(chmod(played.dir, 0755), 0);
	snprintf(own, sizeof(own), "%s/own", played.dir);
	assert_int_equal(mkdir(own, 0700), 0);
	assert_int_equal(chown(own, OWN_USER, OWN_USER), 0);
	put("web.yaml", "port: 1\n");
	snprintf(expected, sizeof(expected),
		"running in this user's own places: pullet finds them, other programs need "
		"PULLET_RUNTIME_DIR PULLET_RUNTIME_DIR=%s/pullet state_dir=%s/deep/er/pullet\n",
		own, own);
	for (unsigned elsewhere = 0; elsewhere < 2; elsewhere++) {
		snprintf(text, sizeof(text),
			"agent: {state_dir: %s/deep/er/pullet, runtime_dir: %s/%s}\n"
			"servers:\n  d: {kind: file, urls: ['file://%s']}\nconfigs:\n%s",
			own, own, elsewhere ? "other" : "pullet", played.dir, WEB);
		put("pullet.yaml", text);
		assert_int_equal(run_once_as(become_own_user), 0);
		if (!strstr(command.err, elsewhere ? "own places" : expected) != (bool)elsewhere)
			fail_msg("%u: %s", elsewhere, command.err);
	}
}

static pid_t first_process;

pid_t getpid(void)
{
	pid_t pid = (pid_t)syscall(SYS_getpid);

	return pid == first_process ? 1 : pid;
}

static void become_first(void)
{
	first_process = (pid_t)syscall(SYS_getpid);
}

/* As in a container: its child is the agent, and it is none itself. */
static void first_process__ends_as_the_agent_does(void **state)
{
	(void)state;
	put_settings("", WEB); /* it has no document */
	assert_int_equal(run_once_as(become_first), 1);
	assert_shows(command.err, "started version=");
	assert_null(strstr(strstr(command.err, "started version=") + 1, "started version="));
}

static void dry_run__writes_nothing__not_even_directories(void **state)
{
	(void)state;
	put("web.yaml", "port: 1\n");
	put_settings("", WEB);
	assert_int_equal(RUN(run_pulletd, "pulletd", "-c", settings_path, "--dry-run"), 0);
	assert_shows(command.err, "dry run: would publish config=web");
	assert_null(strstr(command.err, "started version="));
	assert_false(is_there("state"));
	assert_false(is_there("run"));
}

static void see_what_is_withdrawn(int printed)
{
	log_has(printed, "withdrew snapshots that no config has any more snapshots=1", 1);
}

static void once__keeps_snapshots_of_others__and_a_start_withdraws_them(void **state)
{
	(void)state;
	put("web.yaml", "port: 1\n");
	put("db.yaml", "port: 5\n");
	put_settings("", WEB);
	assert_int_equal(RUN(run_pulletd, "pulletd", "-c", settings_path, "--once"), 0);
	put_settings("", DB);
	assert_int_equal(RUN(run_pulletd, "pulletd", "-c", settings_path, "--once"), 0);
	assert_true(is_there("run/web.snap") && is_there("run/db.snap"));
	run_with(see_what_is_withdrawn);
	assert_shows(talk->log, "withdrew snapshots that no config has any more snapshots=1\n");
	assert_null(strstr(talk->log, "cannot be marked as left"));
	assert_false(is_there("run/web.snap"));
	assert_true(is_there("run/db.snap"));
	run_with(see_it_start); /* the log goes on: not again */
	assert_null(strstr(strstr(talk->log, "withdrew") + 1, "withdrew"));
	assert_null(strstr(talk->log, "can still be read"));
}

static void files__that_are_missing__are_named_up_to_a_bound(void **state)
{
	static const char line[] = "a file that the configuration names cannot be used why=";
	char text[8192] = "";
	size_t len, named = 0;

	(void)state;
	put("web.yaml", "port: 1\n");
	len = (size_t)snprintf(text, sizeof(text),
		"agent: {state_dir: %s/state, runtime_dir: %s/run}\nservers:\n"
		"  d: {kind: file, urls: ['file://%s']}\n",
		played.dir, played.dir, played.dir);
	for (int i = 0; i < 22; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
			"  s%d: {urls: ['http://127.0.0.1:1'], auth: {bearer_file: /nowhere/%d}}\n",
			i, i);
	snprintf(text + len, sizeof(text) - len, "configs:\n%s", WEB);
	put("pullet.yaml", text);
	run_with(see_it_start);
	for (const char *p = talk->log; (p = strstr(p, line)); p++)
		named++;
	assert_int_equal(named, 20);
	assert_shows(talk->log, "more files cannot be used: pulletd -t prints them count=2\n");
}

/* ---- running ---- */

static void pull_and_interrupt(int printed)
{
	if (!log_has(printed, "published", 2))
		return;
	put("web.yaml", "port: 2\n");
	put("db.yaml", "port: 2\n");
	ask("POST /v1/configs/more/suspend"); /* 0 */
	kill(agent_pid, SIGUSR1);
	if (!log_has(printed, "pulling everything now configs=2 suspended=1\n", 1) ||
		!log_has(printed, "published config=web generation=2", 1) ||
		!log_has(printed, "published config=db generation=2", 1))
		return;
	ask("POST /v1/configs/more/resume"); /* 1 */
	kill(agent_pid, SIGUSR1);
	log_has(printed, "pulling everything now configs=3\n", 1);
	kill(agent_pid, SIGPIPE); /* who reads the log, or asked, is gone */
	ask("GET /livez");        /* 2 */
	kill(agent_pid, SIGINT);
	log_has(printed, "stopping signal=Interrupt\n", 1);
}

static void signals__pull_each_config__and_end_the_agent(void **state)
{
	(void)state;
	put("web.yaml", "port: 1\n");
	put("db.yaml", "port: 1\n");
	put_settings("",
		WEB DB "  more: {from: [{server: d, path: /more.yaml}], type: yaml, snapshot: "
		       "true}\n");
	run_with(pull_and_interrupt);
	assert_answer(0, 200, "\"ok\":true");
	assert_answer(1, 200, "\"ok\":true");
	assert_answer(2, 200, "ok");
}

/* A disk, and a file system of a server, that do not answer while a file of that name is there. */
int fsync(int fd)
{
	if (is_there("hang-disk")) {
		put("hangs", "");
		while (is_there("hang-disk"))
			poll(NULL, 0, 2);
	}
	return (int)syscall(SYS_fsync, fd);
}

ssize_t read(int fd, void *to, size_t size)
{
	char link[64], path[PATH_MAX] = "";

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (is_there("hang-file") && readlink(link, path, sizeof(path) - 1) > 0 &&
		strstr(path, "/web.yaml")) {
		put("hangs", "");
		while (is_there("hang-file"))
			poll(NULL, 0, 2);
	}
	return syscall(SYS_read, fd, to, size);
}

/* Runs pulletd, ends it while that hangs, and returns its exit code. */
static int end_while(const char *hangs)
{
	int ends[2], status = 0;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	put(hangs, "");
	fork_pulletd(ends[1]);
	close(ends[1]);
	while (!is_there("hangs"))
		poll(NULL, 0, 2);
	kill(agent_pid, SIGTERM);
	assert_int_equal(waitpid(agent_pid, &status, 0), agent_pid);
	agent_pid = -1;
	for (ssize_t n = 1; n > 0;) {
		size_t len = strlen(talk->log);

		n = read(ends[0], talk->log + len, sizeof(talk->log) - 1 - len);
	}
	close(ends[0]);
	unlink(place(hangs));
	unlink(place("hangs"));
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* A service manager would wait for a minute and a half. */
static void end__while_a_disk_or_a_file_hangs__comes_all_the_same(void **state)
{
	char disk[SCRATCH_PATH], text[1024];

	(void)state;
	scratch_open(disk, scratch_disk());
	snprintf(text, sizeof(text),
		"agent: {state_dir: %s/state, runtime_dir: %s/run}\nservers:\n"
		"  d: {kind: file, urls: ['file://%s']}\nconfigs:\n"
		"  web: {from: [{server: d, path: /web.yaml}], type: yaml, file: %s/out}\n",
		disk, played.dir, played.dir, disk);
	put("pullet.yaml", text);
	put("web.yaml", "port: 1\n");
	assert_int_equal(mkdir(place("run"), 0750), 0);
	snprintf(text, sizeof(text), "%s/state", disk);
	assert_int_equal(mkdir(text, 0700), 0);
	assert_int_equal(end_while("hang-file"), 0); /* nothing is lost */
	assert_shows(talk->log, "a file of a server does not answer: exiting without it\n");
	assert_int_equal(end_while("hang-disk"), 1);
	assert_shows(talk->log,
		"the disk does not answer: exiting without the last write; the last known good is "
		"safe\n");
	scratch_close(disk);
}

/* As put_settings(), and the server is watched. */
static void put_watched(const char *configs)
{
	char text[2048];

	snprintf(text, sizeof(text),
		"agent: {state_dir: %s/state, runtime_dir: %s/run}\nservers:\n"
		"  d: {kind: file, urls: ['file://%s'], watch: true}\nconfigs:\n%s",
		played.dir, played.dir, played.dir, configs);
	put("pullet.yaml", text);
}

static void change_watched(int printed)
{
	if (!log_has(printed, "published", 1))
		return;
	put("web.yaml", "port: 2\n");
	if (!log_has(printed, "published config=web generation=2", 1))
		return;
	put_watched(WEB DB);
	kill(agent_pid, SIGHUP);
	if (!log_has(printed, "published config=db", 1))
		return;
	put("db.yaml", "port: 2\n");
	log_has(printed, "published config=db generation=2", 1);
}

/* Each pulls but once an hour. */
static void server__that_is_watched__tells_at_once(void **state)
{
	(void)state;
	put("web.yaml", "port: 1\n");
	put("db.yaml", "port: 1\n");
	put_watched(WEB);
	run_with(change_watched);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, pulletd_set_up, pulletd_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(second_agent__of_the_same_state__does_not_start),
		CASE(second_agent__at_the_same_socket__does_not_start),
		CASE(socket__that_a_killed_agents_copy_has_for_a_moment__is_waited_for),
		CASE(state__that_cannot_be_written__is_named),
		CASE(limit_of_descriptors__that_is_too_low__is_an_invalid_configuration),
		CASE(threads__that_are_short__are_said_to_be),
		CASE(timers__that_a_sandbox_denies__are_no_shortage),
		CASE(signals__that_it_could_not_hear__keep_it_from_starting),
		CASE(configuration__by_a_relative_path__is_named_with_its_directory),
		CASE(configuration__of_the_environment__counts_unless_one_is_named),
		CASE(log__is_as_the_configuration_says_unless_the_command_line_does),
		CASE(configuration__that_anybody_can_write__is_warned_of),
		CASE(directory__that_anybody_can_write_in__is_warned_of),
		CASE(directories__that_it_makes__are_its_own__and_the_socket_its_groups),
		CASE(operators__whom_nobody_can_be__are_warned_of),
		CASE(once__waits_for_each_config__and_fails_with_any),
		CASE(once__waits_for_the_slowest_config),
		CASE(own_places__of_an_ordinary_user__are_said),
		CASE(first_process__ends_as_the_agent_does),
		CASE(dry_run__writes_nothing__not_even_directories),
		CASE(files__that_are_missing__are_named_up_to_a_bound),
		CASE(once__keeps_snapshots_of_others__and_a_start_withdraws_them),
		CASE(signals__pull_each_config__and_end_the_agent),
		CASE(end__while_a_disk_or_a_file_hangs__comes_all_the_same),
		CASE(server__that_is_watched__tells_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
