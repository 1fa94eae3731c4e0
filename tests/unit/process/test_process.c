/*
 * Programs run from the loop, on real children: what they get, how they end, what they leave. After
 * each case no child and no descriptor may be left. An alarm is the deadline.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/fixture/captured.h"
#include "process/keeper.h"
#include "process/process.h"
#include "tests/unit/fixture/fault_memory.h"
#include "tests/unit/fixture/fault_syscall.h"

static bool sandboxed; /* without /dev/null */

int open(const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list args;

	if (sandboxed && strcmp(path, "/dev/null") == 0) {
		errno = EACCES;
		return -1;
	}
	if (flags & O_CREAT) {
		va_start(args, flags);
		mode = va_arg(args, mode_t);
		va_end(args);
	}
	return openat(AT_FDCWD, path, flags, mode);
}

#define LONG_MS 60000u /* a time limit that is not to be reached */
/* what a script does that is to be ended, and ends by itself when the test fails */
#define NAP "i=0; while [ $i -lt 6000 ]; do sleep 0.01; i=$((i+1)); done"
#define SPIN "i=0; while [ $i -lt 20000000 ]; do i=$((i+1)); done"

struct outcome {
	struct loop *loop;
	unsigned *left; /* programs; the last one stops the loop */
	bool ended;
	struct process_result result;
	char output[8192], message[8192];
};

static char dir[] = "/tmp/pullet-unit-XXXXXX";

static void ended(void *arg, const struct process_result *result)
{
	struct outcome *o = arg;

	assert_false(o->ended);
	o->ended = true;
	o->result = *result;
	assert_int_equal(result->output[result->output_len], '\0');
	assert_int_equal(result->message[result->message_len], '\0');
	snprintf(o->output, sizeof(o->output), "%s", result->output);
	snprintf(o->message, sizeof(o->message), "%s", result->message);
	o->result.output = o->output;
	o->result.message = o->message;
	if (!o->left || --*o->left == 0)
		loop_stop(o->loop);
}

/* Runs one program to its end. */
static struct outcome run(const struct process_options *options)
{
	struct outcome o = {.loop = loop_new(&sys_real)};
	struct process *p;

	assert_non_null(o.loop);
	assert_int_equal(process_start(o.loop, options, ended, &o, &p), 0);
	assert_false(o.ended);
	assert_int_equal(loop_run(o.loop), 0);
	assert_true(o.ended);
	loop_free(o.loop);
	return o;
}

static char shell[] = "/bin/sh", minus_c[] = "-c";

/* What a script does with the usual options; `change` may be NULL. */
static struct outcome script(const char *text, const struct process_options *change)
{
	char *argv[] = {shell, minus_c, (char *)text, NULL};
	struct process_options o = {.max_output = 4096, .timeout_ms = LONG_MS};

	if (change)
		o = *change;
	o.argv = argv;
	return run(&o);
}

/* ---- a program that has come to a certain point, on a clock that the test moves ---- */

static uint64_t ahead_ms;

static uint64_t now_ahead(void)
{
	return sys_real.now_ms() + ahead_ms;
}

static struct sys ahead_sys;

/* Starts a script and returns when it has written a line into "$1". */
static struct process *start_ready(
	struct outcome *o, const char *text, struct process_options options)
{
	char fifo[64], line[8], *argv[] = {shell, minus_c, (char *)text, shell, fifo, NULL};
	struct process *p;
	int fd;

	snprintf(fifo, sizeof(fifo), "%s/fifo", dir);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	options.argv = argv;
	options.max_output = 4096;
	if (!options.timeout_ms)
		options.timeout_ms = LONG_MS;
	ahead_ms = 0;
	ahead_sys = sys_real;
	ahead_sys.now_ms = now_ahead;
	*o = (struct outcome){.loop = loop_new(&ahead_sys)};
	assert_int_equal(process_start(o->loop, &options, ended, o, &p), 0);
	fd = open(fifo, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_true(read(fd, line, sizeof(line)) > 0);
	close(fd);
	unlink(fifo);
	return p;
}

static void run_out(struct outcome *o)
{
	assert_int_equal(loop_run(o->loop), 0);
	loop_free(o->loop);
}

/* ---- how they end ---- */

static void exit_code__of_any_kind__is_told(void **state)
{
	struct outcome o = script("exit 0", NULL);

	(void)state;
	assert_true(o.result.ok);
	assert_int_equal(o.result.end, PROCESS_EXITED);
	assert_string_equal(o.result.why, "");
	o = script("exit 1", NULL);
	assert_false(o.result.ok);
	assert_int_equal(o.result.end, PROCESS_EXITED);
	assert_int_equal(o.result.code, 1);
	assert_string_equal(o.result.why, "exited with 1");
	o = script("exit 255", NULL);
	assert_int_equal(o.result.code, 255);
	assert_string_equal(o.result.why, "exited with 255");
	o = script("exit 127", NULL); /* is not "cannot be started" */
	assert_int_equal(o.result.end, PROCESS_EXITED);
	assert_int_equal(o.result.code, 127);
}

static void signal__that_kills_it__is_told(void **state)
{
	struct outcome o = script("kill -9 $$", NULL);

	(void)state;
	assert_false(o.result.ok);
	assert_int_equal(o.result.end, PROCESS_SIGNALLED);
	assert_int_equal(o.result.code, 9);
	assert_string_equal(o.result.why, "killed by signal 9");
	o = script("kill -TERM $$", NULL);
	assert_int_equal(o.result.end, PROCESS_SIGNALLED);
	assert_int_equal(o.result.code, 15);
}

static void write_file(const char *path, const char *text, mode_t mode)
{
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(path, mode), 0);
}

static void exec__that_fails__is_told_with_its_errno(void **state)
{
	char path[64], *argv[] = {path, NULL};
	const struct process_options options = {
		.argv = argv, .max_output = 100, .timeout_ms = LONG_MS};
	struct outcome o;

	(void)state;
	snprintf(path, sizeof(path), "%s/script", dir);
	o = run(&options);
	assert_false(o.result.ok);
	assert_int_equal(o.result.end, PROCESS_NOT_STARTED);
	assert_int_equal(o.result.code, ENOENT);
	assert_string_equal(o.result.why,
		"cannot be started: No such file or directory: install it, name another "
		"one, or mend the #! it begins with");

	write_file(path, "#!/bin/sh\nexit 3\n", 0600);
	o = run(&options);
	assert_int_equal(o.result.end, PROCESS_NOT_STARTED);
	assert_int_equal(o.result.code, EACCES);
	assert_string_equal(o.result.why,
		"cannot be started: Permission denied: the agent's user must be able to "
		"execute it (chmod +x)");

	write_file(path, "exit 3\n", 0700); /* a shell would run it */
	o = run(&options);
	assert_int_equal(o.result.code, ENOEXEC);
	assert_string_equal(o.result.why,
		"cannot be started: Exec format error: it is neither a program for this machine "
		"nor begins with #!");

	write_file(path, "#!/bin/sh\nexit 3\n", 0700);
	o = run(&options);
	assert_int_equal(o.result.end, PROCESS_EXITED);
	assert_int_equal(o.result.code, 3);
	unlink(path);
}

static int chdir_error; /* 0 = none */

int chdir(const char *path)
{
	errno = chdir_error;
	return chdir_error ? -1 : (int)syscall(SYS_chdir, path);
}

static void preparation__that_fails__starts_nothing(void **state)
{
	struct outcome o;

	(void)state;
	chdir_error = EACCES; /* by a security module */
	o = script("echo started", NULL);
	chdir_error = 0;
	assert_int_equal(o.result.end, PROCESS_NOT_STARTED);
	assert_int_equal(o.result.code, EACCES);
	assert_string_equal(o.output, "");
}

static pid_t agent_of_the_test;
static bool keeper_is_gone, no_subreaper, no_keepers_subreaper;

/* Another one has the child whose parent has ended. */
pid_t getppid(void)
{
	return keeper_is_gone && getpid() != agent_of_the_test ? 1 : (pid_t)syscall(SYS_getppid);
}

int prctl(int option, ...)
{
	bool agent = getpid() == agent_of_the_test;
	unsigned long more[4];
	va_list args;

	va_start(args, option);
	for (int i = 0; i < 4; i++)
		more[i] = va_arg(args, unsigned long);
	va_end(args);
	if (option == PR_SET_CHILD_SUBREAPER && (agent ? no_subreaper : no_keepers_subreaper)) {
		errno = EINVAL;
		return -1;
	}
	return (int)syscall(SYS_prctl, option, more[0], more[1], more[2], more[3]);
}

static void keeper__that_ended_meanwhile__starts_nothing(void **state)
{
	struct outcome o;

	(void)state;
	agent_of_the_test = getpid();
	keeper_is_gone = true;
	o = script("echo started", NULL);
	keeper_is_gone = false;
	assert_int_equal(o.result.end, PROCESS_NOT_STARTED);
	assert_int_equal(o.result.code, ESRCH);
	assert_string_equal(o.output, "");
}

/* Its orphans would be nobody's. */
static void start__where_orphans_cannot_be_kept__fails(void **state)
{
	const struct process_options options = {
		.argv = (char *[]){shell, NULL}, .timeout_ms = LONG_MS};
	struct loop *l = loop_new(&sys_real);
	struct process *p = NULL;
	struct outcome o;

	(void)state;
	agent_of_the_test = getpid();
	no_subreaper = true;
	assert_int_equal(process_start(l, &options, ended, NULL, &p), -EINVAL);
	no_subreaper = false;
	assert_null(p);
	loop_free(l);
	no_keepers_subreaper = true;
	o = script("echo started", NULL);
	no_keepers_subreaper = false;
	assert_int_equal(o.result.end, PROCESS_NOT_STARTED);
	assert_int_equal(o.result.code, EINVAL);
	assert_string_equal(o.output, "");
}

static int write_error; /* of the next byte; 0 = none */

ssize_t write(int fd, const void *from, size_t len)
{
	if (!write_error || len != 1)
		return syscall(SYS_write, fd, from, len);
	errno = write_error;
	write_error = 0;
	return -1;
}

/* Nobody waits for one that cannot be asked. */
static bool no_signalfd;

int signalfd(int fd, const sigset_t *set, int flags)
{
	errno = EMFILE;
	return no_signalfd ? -1 : (int)syscall(SYS_signalfd4, fd, set, (size_t)8, flags);
}

static void keeper__that_is_told_of_no_end__looks_for_it(void **state)
{
	struct outcome o;

	(void)state;
	no_signalfd = true;
	o = script("sleep 1000 & exit 3", NULL);
	no_signalfd = false;
	assert_int_equal(o.result.code, 3);
	assert_int_equal(o.result.left, 1);
	assert_true(o.result.took_ms < LONG_MS / 2);
}

static void limit__passed_where_nothing_can_be_sent__ends_it_by_kill(void **state)
{
	struct outcome o;

	(void)state;
	start_ready(&o, "trap 'echo asked; exit 0' TERM; echo begun; echo > $1; " NAP,
		(struct process_options){.timeout_ms = 30000});
	ahead_ms = 30000;
	write_error = EIO;
	run_out(&o);
	assert_int_equal(write_error, 0);
	assert_int_equal(o.result.end, PROCESS_TIMED_OUT);
	assert_string_equal(o.output, "begun\n");
	assert_true(o.result.took_ms < 30000 + PROCESS_GRACE_MS);
}

static void limit__passed__is_told_in_its_unit(void **state)
{
	static const struct {
		uint64_t ms;
		const char *why;
	} rows[] = {{1500, "still ran after 1500 ms and was killed"},
		{999000, "still ran after 999 s and was killed"},
		{2001, "still ran after 2001 ms and was killed"}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct outcome o;

		start_ready(
			&o, "echo > $1; " NAP, (struct process_options){.timeout_ms = rows[i].ms});
		ahead_ms = rows[i].ms;
		run_out(&o);
		assert_int_equal(o.result.end, PROCESS_TIMED_OUT);
		assert_string_equal(o.result.why, rows[i].why);
	}
}

static void limit__passed__ends_it_by_term(void **state)
{
	static const char *const texts[] = {"echo begun; echo > $1; sleep 1000",
		"trap 'echo asked; exit 0' TERM; echo begun; "
		"echo > $1; " SPIN};
	static const char *const outputs[] = {"begun\n", "begun\nasked\n"};

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct outcome o;

		start_ready(&o, texts[i], (struct process_options){.timeout_ms = 30000});
		ahead_ms = 30000;
		run_out(&o);
		assert_false(o.result.ok);
		assert_int_equal(o.result.end, PROCESS_TIMED_OUT);
		assert_string_equal(o.result.why, "still ran after 30 s and was killed");
		assert_string_equal(o.output, outputs[i]);
		assert_true(o.result.took_ms >= 30000);
		assert_true(o.result.took_ms < 30000 + PROCESS_GRACE_MS);
	}
}

static void limit__passed_by_one_that_ignores_term__ends_it_by_kill(void **state)
{
	struct outcome o;

	(void)state;
	start_ready(&o, "trap '' TERM; echo deaf; echo > $1; " NAP,
		(struct process_options){.timeout_ms = 1, .grace_ms = 50});
	run_out(&o);
	assert_int_equal(o.result.end, PROCESS_TIMED_OUT);
	assert_string_equal(o.result.why, "still ran after 1 ms and was killed");
	assert_string_equal(o.output, "deaf\n");
	assert_true(o.result.took_ms >= 51);
}

static void limit__when_only_the_loop_was_late__is_not_passed(void **state)
{
	struct outcome o;

	(void)state;
	start_ready(&o, "echo > $1; exit 4", (struct process_options){0});
	assert_int_equal(waitid(P_ALL, 0, &(siginfo_t){0}, WEXITED | WNOWAIT), 0);
	ahead_ms = LONG_MS + 1;
	run_out(&o);
	assert_int_equal(o.result.end, PROCESS_EXITED);
	assert_int_equal(o.result.code, 4);
}

/* ---- output ---- */

static void output__of_both_kinds__comes_in_its_order(void **state)
{
	struct outcome o = script("echo one; echo two >&2; echo three; exit 2", NULL);

	(void)state;
	assert_string_equal(o.output, "one\ntwo\nthree\n");
	assert_int_equal(o.result.output_len, 14);
	assert_int_equal(o.result.message_len, 0);
	assert_int_equal(o.result.dropped, 0);
}

static void output__over_the_bound__is_cut_and_counted(void **state)
{
	const struct process_options ten = {.max_output = 10, .timeout_ms = LONG_MS};
	struct outcome o = script("printf 0123456789", &ten);

	(void)state;
	assert_string_equal(o.output, "0123456789");
	assert_int_equal(o.result.dropped, 0);
	o = script("printf 0123456; printf 789abc", &ten);
	assert_string_equal(o.output, "0123456789");
	assert_int_equal(o.result.dropped, 3);
	assert_true(o.result.ok);
}

static void output__of_a_million_lines__blocks_nobody(void **state)
{
	struct outcome o = script("yes | head -n 1000000", NULL);

	(void)state;
	assert_true(o.result.ok);
	assert_int_equal(o.result.output_len, 4096);
	assert_int_equal(o.result.dropped, 2000000 - 4096);
}

static void product__and_message__are_kept_apart(void **state)
{
	const struct process_options product = {
		.product = true, .max_output = 10, .timeout_ms = LONG_MS};
	struct outcome o = script("echo product; echo message >&2", &product);

	(void)state;
	assert_true(o.result.ok);
	assert_string_equal(o.output, "product\n");
	assert_string_equal(o.message, "message\n");
	o = script("echo product; echo message >&2; exit 5", &product);
	assert_false(o.result.ok);
	assert_string_equal(o.result.why, "exited with 5");
	assert_string_equal(o.message, "message\n");
	o = script("yes | head -n 10000 >&2", &product);
	assert_true(o.result.ok);
	assert_int_equal(o.result.output_len, 0);
	assert_int_equal(o.result.message_len, PROCESS_MAX_MESSAGE);
	assert_int_equal(o.result.dropped, 0);
}

static void product__over_the_bound__is_an_error(void **state)
{
	const struct process_options product = {
		.product = true, .max_output = 10, .timeout_ms = LONG_MS};
	struct outcome o = script("printf 0123456789", &product);

	(void)state;
	assert_true(o.result.ok);
	assert_string_equal(o.output, "0123456789");
	o = script("printf 0123456789a", &product);
	assert_false(o.result.ok);
	assert_int_equal(o.result.end, PROCESS_EXITED);
	assert_int_equal(o.result.dropped, 1);
	assert_string_equal(o.result.why, "wrote more than 10 bytes");
}

/* ---- input ---- */

static void input__of_nothing__ends_at_once(void **state)
{
	const struct process_options empty = {
		.input = "", .max_output = 100, .timeout_ms = LONG_MS};
	struct outcome o = script("wc -c; readlink /proc/self/fd/0", NULL);

	(void)state;
	assert_string_equal(o.output, "0\n/dev/null\n"); /* as programs expect it */
	o = script("wc -c", &empty);
	assert_string_equal(o.output, "0\n");
	sandboxed = true;
	o = script("wc -c; wc -c <&0", NULL);
	sandboxed = false;
	assert_string_equal(o.output, "0\n0\n");
}

static void input__large__comes_whole(void **state)
{
	size_t len = 20u << 20;
	char *data = malloc(len), expected[32];
	struct process_options options = {.max_output = 100, .timeout_ms = LONG_MS};
	struct outcome o;
	uint64_t sum = 0;

	(void)state;
	assert_non_null(data);
	for (size_t i = 0; i < len; i++)
		data[i] = (char)('a' + i * i % 25);
	data[len - 1] = '\n';
	options.input = data;
	options.input_len = len;
	o = script("tr -d a | wc -c", &options);
	for (size_t i = 0; i < len; i++)
		sum += data[i] != 'a';
	snprintf(expected, sizeof(expected), "%" PRIu64 "\n", sum);
	assert_string_equal(o.output, expected);
	o = script("wc -c < /dev/stdin", &options); /* opened by its name, as well */
	snprintf(expected, sizeof(expected), "%zu\n", len);
	assert_string_equal(o.output, expected);
	free(data);
}

/* memfd_create(), also as it was before Linux 6.3. */
static bool before_noexec, memory_denied;

int memfd_create(const char *name, unsigned flags)
{
	if (memory_denied) {
		errno = EPERM;
		return -1;
	}
	if (before_noexec && (flags & ~(MFD_CLOEXEC | MFD_ALLOW_SEALING))) {
		errno = EINVAL;
		return -1;
	}
	return (int)syscall(SYS_memfd_create, name, flags);
}

static void input__on_an_older_kernel__comes_all_the_same(void **state)
{
	const struct process_options options = {
		.input = "a text", .input_len = 6, .max_output = 100, .timeout_ms = LONG_MS};
	struct outcome o;

	(void)state;
	before_noexec = true;
	o = script("cat", &options);
	before_noexec = false;
	assert_string_equal(o.output, "a text");
}

/* What process_start() says. */
static int start_fails(struct process_options o)
{
	struct loop *l = loop_new(&sys_real);
	struct process *p = NULL;
	int r;

	o.argv = (char *[]){shell, NULL};
	r = process_start(l, &o, ended, NULL, &p);
	assert_null(p);
	loop_free(l);
	return r;
}

static void input__where_memory_is_denied__lies_in_a_directory_without_a_name(void **state)
{
	char own[] = "/dev/shm/pullet-unit-XXXXXX";
	struct process_options options = {.input = "a text",
		.input_len = 6,
		.input_dir = own,
		.max_output = 100,
		.timeout_ms = LONG_MS};
	struct outcome o;

	(void)state;
	if (!mkdtemp(own)) {
		print_message("# no tmpfs\n");
		skip();
	}
	memory_denied = true;
	o = script("cat; cat /dev/stdin", &options);
	assert_string_equal(o.output, "a texta text");
	o = script("readlink /proc/self/fd/0", &options);
	assert_non_null(strstr(o.output, " (deleted)\n"));
	options.input_dir = NULL;
	assert_int_equal(start_fails(options), -EPERM);
	options.input_dir = "/nowhere";
	assert_int_equal(start_fails(options), -EPERM); /* not ENOENT */
	memory_denied = false;
	assert_int_equal(rmdir(own), 0);
}

static size_t piece;      /* bytes that a file takes at a time; 0 = all */
static size_t whole;      /* bytes that it is to have */
static int interruptions; /* which come first: every second one takes nothing */

ssize_t pwrite(int fd, const void *from, size_t len, off_t at)
{
	assert_true(!piece || (size_t)at + len == whole);
	if (interruptions > 0) {
		errno = interruptions % 2 ? EINTR : 0;
		return interruptions-- % 2 ? -1 : 0;
	}
	return syscall(SYS_pwrite64, fd, from, piece && piece < len ? piece : len, at);
}

static void input__that_memory_takes_in_pieces__comes_whole(void **state)
{
	const struct process_options options = {.input = "0123456789abcdefghijklmnopqrstuvwxyz",
		.input_len = 36,
		.max_output = 100,
		.timeout_ms = LONG_MS};
	struct outcome o;

	(void)state;
	piece = 7;
	whole = 36;
	interruptions = 4;
	o = script("cat", &options);
	piece = 0;
	assert_string_equal(o.output, options.input);
}

static void input__for_which_there_is_no_room__is_refused(void **state)
{
	const struct process_options options = {
		.input = "exit 0", .input_len = 6, .timeout_ms = LONG_MS};
	void (*signal_before)(int) = signal(SIGXFSZ, SIG_IGN);
	struct rlimit before, low;
	int r;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	low = before;
	low.rlim_cur = 5; /* it takes a part of it first */
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
	r = start_fails(options);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(r, -EFBIG);
	signal(SIGXFSZ, signal_before);
}

static void input__that_nobody_reads__does_no_harm(void **state)
{
	size_t len = 1u << 20;
	char *data = calloc(1, len);
	struct process_options options = {
		.input = data, .input_len = len, .max_output = 100, .timeout_ms = LONG_MS};
	void (*before)(int) = signal(SIGPIPE, SIG_DFL);
	struct outcome o;

	(void)state;
	assert_non_null(data);
	o = script("exec <&-; exit 0", &options);
	assert_true(o.result.ok);
	o = script("head -c 1 > /dev/null", &options);
	assert_true(o.result.ok);
	signal(SIGPIPE, before);
	free(data);
}

/* ---- what they get ---- */

static void descriptors__of_the_agent__are_not_inherited(void **state)
{
	static const char list[] =
		"for i in 0 1 2 3 4 5 6 7 8 9 40 200; do [ -e /proc/$$/fd/$i ] && echo $i; done; "
		"exit 0";
	int leaked[3];
	struct outcome o;

	(void)state;
	leaked[0] = dup(0);
	leaked[1] = fcntl(0, F_DUPFD, 40);
	leaked[2] = fcntl(0, F_DUPFD, 200);
	assert_int_equal(leaked[1], 40);
	assert_int_equal(leaked[2], 200);
	for (int older = 0; older < 2; older++) { /* without close_range() */
		fault_syscall.number = SYS_close_range;
		fault_syscall.error = older ? ENOSYS : 0;
		o = script(list, NULL);
		fault_syscall.error = 0;
		assert_string_equal(o.output, "0\n1\n2\n");
	}
	for (int i = 0; i < 3; i++)
		close(leaked[i]);
}

static void descriptors__when_the_agents_own_are_closed__are_right_all_the_same(void **state)
{
	char text[] = "cat; echo out; echo err >&2", *argv[] = {shell, minus_c, text, NULL};
	const struct process_options options = {.argv = argv,
		.product = true,
		.input = "in",
		.input_len = 2,
		.max_output = 100,
		.timeout_ms = LONG_MS};

	(void)state;
	for (int closed = 1; closed < 8; closed++) { /* each of the three, or not */
		struct outcome o = {.loop = loop_new(&sys_real)};
		int saved[3], r, lost = 0;
		struct process *p;

		for (int i = 0; i < 3; i++)
			saved[i] = fcntl(i, F_DUPFD_CLOEXEC, 10);
		for (int i = 0; i < 3; i++)
			if (closed & 1 << i)
				close(i);
		r = process_start(o.loop, &options, ended, &o, &p);
		if (r == 0)
			loop_run(o.loop);
		for (int i = 0; i < 3; i++) {
			lost += (closed & 1 << i) && fcntl(i, F_GETFD) >= 0;
			dup2(saved[i], i);
			close(saved[i]);
		}
		assert_int_equal(r, 0);
		assert_int_equal(lost, 0);
		assert_true(o.result.ok);
		assert_string_equal(o.output, "inout\n");
		assert_string_equal(o.message, "err\n");
		loop_free(o.loop);
	}
}

/* The limit of descriptors, where the kernel cannot close all at once; and what was closed. */
static struct sweep {
	pid_t agent;
	bool unknown;
	rlim_t limit;
	int first, last;
} * swept;

/* Called by a sanitizer, too, before it is ready. */
__attribute__((no_sanitize("thread"))) int getrlimit(
	__rlimit_resource_t resource, struct rlimit *ret)
{
	if (!swept || getpid() == swept->agent)
		return prlimit(0, resource, NULL, ret);
	ret->rlim_cur = ret->rlim_max = swept->limit;
	errno = EPERM;
	return swept->unknown ? -1 : 0;
}

int close(int fd)
{
	if (swept && getpid() != swept->agent) {
		swept->first = fd < swept->first ? fd : swept->first;
		swept->last = fd > swept->last ? fd : swept->last;
	}
	return (int)syscall(SYS_close, fd);
}

static void descriptors__up_to_the_limit__are_closed_one_by_one(void **state)
{
	static const struct {
		bool unknown;
		rlim_t limit;
		int last;
	} rows[] = {{false, 300, 299}, {false, 65536, 65535}, {false, 65537, 65535},
		{false, RLIM_INFINITY, 65535}, {true, 300, 65535}};

	(void)state;
	swept = mmap(
		NULL, sizeof(*swept), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct outcome o;

		*swept = (struct sweep){getpid(), rows[i].unknown, rows[i].limit, 99, 0};
		fault_syscall.number = SYS_close_range;
		fault_syscall.error = ENOSYS;
		o = script("exit 9", NULL);
		fault_syscall.error = 0;
		assert_int_equal(o.result.code, 9);
		assert_int_equal(swept->first, 1); /* of the keeper: 0 is its lifeline */
		assert_int_equal(swept->last, rows[i].last);
	}
	munmap(swept, sizeof(*swept));
	swept = NULL;
}

static void environment__is_what_was_given_and_nothing_else(void **state)
{
	char env[] = "/usr/bin/env", *argv[] = {env, NULL};
	char name[] = "PULLET_CONFIG_NAME=web", keys[] = "PULLET_CHANGED_KEYS=a\nb c",
	     *more[] = {name, keys, NULL};
	struct process_options options = {.argv = argv, .max_output = 4096, .timeout_ms = LONG_MS};
	struct outcome o;

	(void)state;
	setenv("SECRET_TOKEN", "planted", 1);
	o = run(&options);
	assert_string_equal(o.output,
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n"
		"HOME=/\nLANG=C.UTF-8\n");
	options.env = more;
	o = run(&options);
	assert_string_equal(o.output,
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n"
		"HOME=/\nLANG=C.UTF-8\nPULLET_CONFIG_NAME=web\nPULLET_CHANGED_KEYS=a\nb c\n");
	unsetenv("SECRET_TOKEN");
}

static void environment__too_large__is_refused(void **state)
{
	char entry[] = "A=1", *argv[] = {shell, NULL}, *env[100];
	const struct process_options options = {.argv = argv, .env = env, .timeout_ms = LONG_MS};
	struct loop *l = loop_new(&sys_real);
	struct process *p = NULL;

	(void)state;
	for (int i = 0; i < 99; i++)
		env[i] = entry;
	env[99] = NULL;
	assert_int_equal(process_start(l, &options, ended, NULL, &p), -E2BIG);
	env[61] = NULL;
	assert_int_equal(process_start(l, &options, ended, NULL, &p), -E2BIG);
	assert_null(p);
	loop_free(l);
	env[60] = NULL; /* as many as there may be */
	assert_true(run(&options).result.ok);
}

static void signals__of_the_agent__are_not_inherited(void **state)
{
	sigset_t all, before;
	void (*pipe_before)(int) = signal(SIGPIPE, SIG_IGN), (*usr)(int) = signal(SIGUSR2, SIG_IGN);
	unsigned long long blocked, ignored;
	struct outcome o;

	(void)state;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	o = script("exec grep -E '^Sig(Blk|Ign)' /proc/self/status", NULL);
	assert_int_equal(sscanf(o.output, "SigBlk: %llx SigIgn: %llx", &blocked, &ignored), 2);
	/* 32 and 33 are the C library's own; GNU make starts programs with them ignored */
	assert_true(blocked == 0 && (ignored & ~(3ULL << 31)) == 0);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	signal(SIGPIPE, pipe_before);
	signal(SIGUSR2, usr);
}

/* Whoever kills all of the agent's name would leave nobody to end the program. */
static void keeper__has_a_name_of_its_own(void **state)
{
	(void)state;
	assert_string_equal(script("cat /proc/$PPID/comm", NULL).output, "hook-keeper\n");
}

static void group__umask_and_directory__are_its_own(void **state)
{
	mode_t before = umask(077);
	long pid, keeper;
	char expected[128];
	struct outcome o;

	(void)state;
	o = script("for p in $$ $PPID; do echo $p $(cut -d' ' -f5 /proc/$p/stat); done; umask; pwd",
		NULL);
	umask(before);
	assert_int_equal(sscanf(o.output, "%ld %*d %ld", &pid, &keeper), 2);
	/* nor is its keeper in the agent's group, which a terminal interrupts */
	assert_true(pid != getpgrp() && keeper != getpgrp());
	snprintf(expected, sizeof(expected), "%ld %ld\n%ld %ld\n0022\n/\n", pid, pid, keeper,
		keeper);
	assert_string_equal(o.output, expected);
}

static uid_t played_euid; /* 0 = the real one */

uid_t geteuid(void)
{
	return played_euid ? played_euid : (uid_t)syscall(SYS_geteuid);
}

/* As root it may need rights that its file gives it; anybody else's may gain none. */
static void program__gains_no_rights_unless_the_agent_is_root(void **state)
{
	struct outcome o = script("grep NoNewPrivs /proc/self/status", NULL);

	(void)state;
	assert_string_equal(o.output, geteuid() ? "NoNewPrivs:\t1\n" : "NoNewPrivs:\t0\n");
	played_euid = 54321;
	o = script("grep NoNewPrivs /proc/self/status", NULL);
	played_euid = 0;
	assert_string_equal(o.output, "NoNewPrivs:\t1\n");
}

/* ---- what they leave ---- */

/* Waits until a process that is not our child is dead (somebody else reaps it). */
static void wait_dead(long pid)
{
	struct pollfd p = {.fd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0u), .events = POLLIN};

	if (p.fd < 0) {
		assert_int_equal(errno, ESRCH);
		return;
	}
	assert_int_equal(poll(&p, 1, 10000), 1);
	close(p.fd);
}

static void children__that_hold_the_pipe__are_killed_and_not_waited_for(void **state)
{
	struct outcome o = script("sleep 1000 & trap '' TERM; sleep 1001 & echo $! $$", NULL);
	long child, leader;

	(void)state;
	assert_true(o.result.ok);
	assert_true(o.result.took_ms < LONG_MS / 2);
	assert_int_equal(sscanf(o.output, "%ld %ld", &child, &leader), 2);
	wait_dead(child);
}

static void children__of_one_that_is_killed_by_term__are_killed_with_it(void **state)
{
	struct outcome o;
	long child;

	(void)state;
	start_ready(&o,
		"sh -c 'trap \"\" TERM; echo $$; echo > $0; " NAP "' $1 & "
		"wait",
		(struct process_options){0});
	ahead_ms = LONG_MS;
	run_out(&o);
	assert_int_equal(o.result.end, PROCESS_TIMED_OUT);
	assert_true(o.result.took_ms < LONG_MS + PROCESS_GRACE_MS); /* the leader took TERM */
	assert_int_equal(sscanf(o.output, "%ld", &child), 1);
	wait_dead(child);
}

static unsigned *single_terms; /* of the keepers, to one process each; shared with them */

static void begin_to_count(void)
{
	agent_of_the_test = getpid();
	single_terms = mmap(NULL, sizeof(*single_terms), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

static void assert_counted(unsigned count)
{
	assert_int_equal(*single_terms, count);
	munmap(single_terms, sizeof(*single_terms));
	single_terms = NULL;
}

static void children__of_one_that_is_asked_to_end__are_asked_too(void **state)
{
	struct outcome o;

	(void)state;
	begin_to_count();
	start_ready(&o,
		"trap : TERM; sh -c 'trap \"echo child; exit 0\" TERM; echo > $0; " SPIN
		"' $1 & wait; wait; echo leader",
		(struct process_options){0});
	ahead_ms = LONG_MS;
	run_out(&o);
	assert_int_equal(o.result.end, PROCESS_TIMED_OUT);
	assert_string_equal(o.output, "child\nleader\n");
	assert_counted(0); /* all of its group, once */
}

/* One that left the group and its parent, as daemons do. */
static void orphans__of_one_that_is_asked_to_end__are_asked_too(void **state)
{
	struct outcome o;

	(void)state;
	begin_to_count();
	start_ready(&o,
		"trap : TERM; (setsid sh -c 'trap \"echo orphan; kill -9 $1; exit 0\" TERM; echo > "
		"$0; " SPIN "' $1 $$ &); " SPIN,
		(struct process_options){0});
	ahead_ms = LONG_MS;
	run_out(&o);
	assert_int_equal(o.result.end, PROCESS_TIMED_OUT);
	assert_non_null(strstr(o.output, "orphan\n"));
	assert_counted(1);
}

static void children__in_a_session_of_their_own__are_killed_too(void **state)
{
	static const char *const texts[] = {
		"setsid sleep 1000 & echo $!",
		"sh -c 'setsid sleep 1000 & echo $!'; exec >&-", /* its parent has ended */
		"setsid sh -c 'trap \"\" TERM HUP; exec >&- 2>&-; " NAP "' & echo $!",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct outcome o = script(texts[i], NULL);
		long child;

		assert_true(o.result.ok);
		assert_true(o.result.took_ms < LONG_MS / 2);
		assert_int_equal(o.result.left, 1);
		assert_int_equal(sscanf(o.output, "%ld", &child), 1);
		wait_dead(child);
	}
	assert_int_equal(script("sleep 0 & wait", NULL).result.left, 0);
}

static void children__that_are_left__are_logged_once_a_minute(void **state)
{
	struct captured log = captured_begin(STDERR_FILENO);
	char program[sizeof(dir) + 16], text[4096] = "", *line;
	char script_text[] = "setsid sleep 1000 & :",
	     *argv[] = {program, minus_c, script_text, NULL};
	const struct process_options options = {
		.argv = argv, .max_output = 4096, .timeout_ms = LONG_MS};

	(void)state;
	script("exit 0", NULL);       /* which leaves none */
	for (int i = 0; i < 5; i++) { /* three of one name, then one each of two others */
		snprintf(program, sizeof(program), "%s/leaver%d", dir, i < 2 ? 2 : i);
		(void)!symlink(shell, program);
		assert_int_equal(run(&options).result.left, 1);
	}
	captured_read(&log, text, sizeof(text));
	captured_end(&log);
	for (int i = 2; i < 5; i++) {
		snprintf(program, sizeof(program), "%s/leaver%d", dir, i);
		unlink(program);
	}
	line = strstr(text, "a program left processes running: they were killed; have a service "
			    "manager start daemons program=");
	assert_non_null(line);
	assert_non_null(strstr(line, "leaver2 processes=1"));
	line = strstr(line + 1, "a program left");
	assert_non_null(line);
	assert_non_null(strstr(line, "leaver3 processes=1 suppressed=2\n"));
	line = strstr(line + 1, "a program left");
	assert_non_null(line);
	assert_non_null(strstr(line, "leaver4 processes=1\n"));
	assert_null(strstr(line + 1, "a program left"));
	assert_null(strstr(text, "processes=0"));
}

static void children__in_a_session_of_their_own__end_with_the_limit(void **state)
{
	struct outcome o;
	long child;

	(void)state;
	start_ready(&o, "trap '' TERM; setsid sleep 1000 & echo $!; echo > $1; wait",
		(struct process_options){.timeout_ms = 1, .grace_ms = 1});
	run_out(&o);
	assert_int_equal(o.result.end, PROCESS_TIMED_OUT);
	assert_int_equal(sscanf(o.output, "%ld", &child), 1);
	wait_dead(child);
}

static void children__that_write_for_ever__do_not_keep_it_from_ending(void **state)
{
	struct outcome o;
	long child;

	(void)state;
	start_ready(&o,
		"setsid sh -c 'echo $$; yes 1 | head -c 60000; mkdir $0.d; exec yes' $1 & "
		"until [ -d $1.d ]; do :; done; rmdir $1.d; echo > $1",
		(struct process_options){0});
	assert_int_equal(waitid(P_ALL, 0, &(siginfo_t){0}, WEXITED | WNOWAIT), 0);
	run_out(&o);
	assert_true(o.result.ok);
	assert_int_equal(o.result.output_len, 4096);
	assert_true(o.result.dropped < 10u << 20);
	assert_int_equal(sscanf(o.output, "%ld", &child), 1);
	wait_dead(child); /* of what it writes: nobody reads it any more */
}

static unsigned played_children; /* so many are in a list of the kernel's */

static ssize_t read_played(void *to, size_t size)
{
	static const char number[] = "4194304 ";
	static size_t at; /* in the number */
	size_t len = 0;

	for (; played_children && len < size - 3; len++) { /* a number may be cut */
		((char *)to)[len] = number[at];
		at = number[at + 1] ? at + 1 : 0;
		played_children -= at == 0;
	}
	return (ssize_t)len;
}

/* Whoever else holds the pipe writes again as soon as something was read. */
static int echo_fd = -1;

static int read_error;   /* of the next pipe that is read; 0 = none */
static int second_error; /* of the one behind that */
static size_t sip;       /* bytes that a pipe gives at a time; 0 = all */

ssize_t read(int fd, void *to, size_t size)
{
	struct stat st;
	ssize_t n;

	if (read_error && fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode)) {
		errno = read_error;
		read_error = second_error;
		second_error = 0;
		return -1;
	}
	if (sip && sip < size && fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode))
		size = sip;
	n = played_children ? read_played(to, size) : syscall(SYS_read, fd, to, size);
	if (echo_fd >= 0 && n > 0 && fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode))
		(void)!write(echo_fd, "x", 1);
	return n;
}

static int taken; /* bytes that another one reads after the look at what is there */

/* And once more between the look at what is there and the reading of it. */
int ioctl(int fd, unsigned long request, ...)
{
	va_list more;
	void *to;
	int r;

	va_start(more, request);
	to = va_arg(more, void *);
	va_end(more);
	r = (int)syscall(SYS_ioctl, fd, request, to);
	if (r == 0 && request == FIONREAD)
		*(int *)to += taken;
	if (echo_fd >= 0 && request == FIONREAD)
		(void)!write(echo_fd, "late", 4);
	return r;
}

static void output__that_is_not_there_yet__is_waited_for(void **state)
{
	static const int errors[] = {EAGAIN, EINTR};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct outcome o;

		start_ready(&o, "echo > $1; echo one; echo two >&2", (struct process_options){0});
		read_error = errors[i];
		run_out(&o);
		assert_int_equal(read_error, 0);
		assert_string_equal(o.output, "one\ntwo\n");
	}
}

/* The end is seen before the output, which is read then. */
static void output__that_is_left_at_the_end__is_read(void **state)
{
	struct outcome o;

	(void)state;
	start_ready(&o, "echo > $1; yes | head -n 3000", (struct process_options){0});
	assert_int_equal(waitid(P_ALL, 0, &(siginfo_t){0}, WEXITED | WNOWAIT), 0);
	read_error = EAGAIN;
	run_out(&o);
	assert_int_equal(o.result.output_len, 4096);
	assert_int_equal(o.result.dropped, 6000 - 4096);
}

static void output__that_comes_in_bytes__is_whole(void **state)
{
	(void)state;
	for (int at_end = 0; at_end < 2; at_end++) {
		struct outcome o;

		start_ready(&o, "echo > $1; echo one; echo two >&2", (struct process_options){0});
		assert_int_equal(waitid(P_ALL, 0, &(siginfo_t){0}, WEXITED | WNOWAIT), 0);
		sip = 1;
		read_error = at_end ? EAGAIN : 0;
		second_error = at_end ? EINTR : 0;
		run_out(&o);
		sip = 0;
		assert_int_equal(read_error, 0);
		assert_string_equal(o.output, "one\ntwo\n");
	}
}

static unsigned count_shared_pages(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];
	unsigned n = 0;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		n += strstr(line, "/dev/zero") != NULL;
	fclose(f);
	return n;
}

static void program__that_has_ended__leaves_no_memory(void **state)
{
	const struct process_options product = {
		.product = true, .max_output = 10, .timeout_ms = LONG_MS};
	unsigned pages = 0;
	long live = 0;

	(void)state;
	for (int i = 0; i < 3; i++) {
		script("echo product; echo message >&2", &product);
		if (i == 0) {
			pages = count_shared_pages();
			live = fault_memory.live;
		}
	}
	assert_int_equal(count_shared_pages(), pages);
	assert_int_equal(fault_memory.live, live);
}

static void output__that_another_has_taken__is_not_waited_for(void **state)
{
	struct outcome o;

	(void)state;
	start_ready(&o, "echo > $1; echo one", (struct process_options){0});
	assert_int_equal(waitid(P_ALL, 0, &(siginfo_t){0}, WEXITED | WNOWAIT), 0);
	read_error = EAGAIN;
	taken = 100;
	run_out(&o);
	taken = 0;
	assert_string_equal(o.output, "one\n");
}

static pid_t first_child_of(const char *process)
{
	char path[64];
	int pid = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%s/children", process);
	f = fopen(path, "re");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%d", &pid), 1);
	fclose(f);
	return pid;
}

/* Such as one that was given it over a socket, and is no descendant. */
static void stranger__that_writes_for_ever__does_not_keep_it_from_ending(void **state)
{
	char process[32], path[64];
	struct outcome o;
	pid_t keeper, program;

	(void)state;
	start_ready(&o, "echo > $1; " NAP, (struct process_options){0});
	keeper = first_child_of("thread-self");
	snprintf(process, sizeof(process), "%d/task/%d", (int)keeper, (int)keeper);
	program = first_child_of(process);
	/* the same pipe as 1, which leads elsewhere during the echo */
	snprintf(path, sizeof(path), "/proc/%d/fd/2", (int)program);
	echo_fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	assert_true(echo_fd >= 0);
	for (int i = 0; i < 5000; i++) /* more than is kept */
		assert_int_equal(write(echo_fd, "x", 1), 1);
	kill(program, SIGKILL);
	run_out(&o);
	close(echo_fd);
	echo_fd = -1;
	assert_int_equal(o.result.end, PROCESS_SIGNALLED);
	assert_int_equal(o.output[0], 'x'); /* what was there by then */
	assert_null(strchr(o.output, 'l')); /* and no more */
}

static void many__at_once__end_each_with_its_own_code(void **state)
{
	enum { MANY = 100 };
	struct outcome *o = calloc(MANY, sizeof(*o));
	struct loop *l = loop_new(&sys_real);
	unsigned left = MANY;
	char text[64], *argv[] = {shell, minus_c, text, NULL};
	const struct process_options options = {
		.argv = argv, .max_output = 100, .timeout_ms = LONG_MS};

	(void)state;
	assert_non_null(o);
	for (int i = 0; i < MANY; i++) {
		struct process *p;

		o[i].loop = l;
		o[i].left = &left;
		snprintf(text, sizeof(text), "echo %d; cat /dev/zero | head -c 20000; exit %d", i,
			i);
		assert_int_equal(process_start(l, &options, ended, &o[i], &p), 0);
	}
	assert_int_equal(loop_run(l), 0);
	for (int i = 0; i < MANY; i++) {
		assert_true(o[i].ended);
		assert_int_equal(o[i].result.code, i);
		snprintf(text, sizeof(text), "%d\n", i);
		assert_string_equal(o[i].output, text);
		assert_int_equal(
			o[i].result.output_len + o[i].result.dropped, 20000 + strlen(text));
	}
	loop_free(l);
	free(o);
}

/* ---- the process between ---- */

static void keeper__killed__leaves_nothing(void **state)
{
	struct outcome o;
	long child;

	(void)state;
	start_ready(&o, "setsid sleep 1000 & echo $!; echo > $1; kill -9 $PPID; " NAP,
		(struct process_options){0});
	run_out(&o);
	assert_false(o.result.ok);
	assert_int_equal(o.result.end, PROCESS_SIGNALLED);
	assert_string_equal(o.result.why, "was killed with the process that watches it");
	assert_int_equal(sscanf(o.output, "%ld", &child), 1);
	wait_dead(child);
}

/* What the keepers do while nothing dies of KILL, and no time passes but what they wait for. */
static struct deaf {
	pid_t agent;
	unsigned rounds, groups;
	uint64_t passed_ms;
} * deaf;

/* Signals to a process whose number is watched. */
static pid_t watched_pid;
static unsigned watched_signals;

int kill(pid_t pid, int number)
{
	if (deaf && getpid() != deaf->agent && number == SIGKILL) {
		deaf->groups += pid < 0;
		return 0;
	}
	if (single_terms && getpid() != agent_of_the_test && pid > 0)
		*single_terms += number == SIGTERM;
	watched_signals += pid == watched_pid || (watched_pid && pid == 1);
	return (int)syscall(SYS_kill, pid, number);
}

struct look {
	struct loop_timer timer;
	struct outcome *o;
};

/* Stops the loop once the keeper has been reaped. */
static void look_for_its_end(void *arg)
{
	struct look *l = arg;

	if (waitid(P_PID, (id_t)watched_pid, &(siginfo_t){0}, WEXITED | WNOHANG | WNOWAIT))
		loop_stop(l->o->loop);
	else
		loop_timer_set(l->o->loop, &l->timer, loop_now_ms(l->o->loop) + 1);
}

/* Its number may be another process's by then. */
static void keeper__that_has_ended__is_signalled_no_more(void **state)
{
	struct outcome o;
	struct look look = {.o = &o};
	struct process *p;

	(void)state;
	p = start_ready(&o, /* killed level by level */
		"( ( ( sleep 1000 & wait ) & wait ) & wait ) & setsid sleep 1000 & echo > $1; "
		"kill -9 $PPID; " NAP,
		(struct process_options){0});
	watched_pid = first_child_of("thread-self");
	loop_timer_init(&look.timer, look_for_its_end, &look);
	loop_timer_set(o.loop, &look.timer, 0);
	assert_int_equal(loop_run(o.loop), 0);
	watched_signals = 0;
	if (!o.ended) /* it waits until the orphans are dead */
		process_free(p);
	assert_int_equal(watched_signals, 0);
	watched_pid = 0;
	loop_timer_cancel(o.loop, &look.timer);
	loop_free(o.loop);
	/* nor is an orphan left */
	assert_int_equal(waitid(P_ALL, 0, &(siginfo_t){0}, WEXITED | WNOHANG), -1);
}

static void stop_loop(void *arg)
{
	loop_stop(((struct outcome *)arg)->loop);
}

/* Runs what is due then. */
static void run_at(struct outcome *o, uint64_t ms)
{
	struct loop_timer stop;

	ahead_ms = ms;
	loop_timer_init(&stop, stop_loop, o);
	loop_timer_set(o->loop, &stop, loop_now_ms(o->loop));
	assert_int_equal(loop_run(o->loop), 0);
}

static void limit__passed_by_one_that_ignores_term__gives_it_5_seconds(void **state)
{
	struct outcome o;

	(void)state;
	start_ready(
		&o, "trap '' TERM; echo > $1; " NAP, (struct process_options){.timeout_ms = 30000});
	watched_pid = first_child_of("thread-self");
	watched_signals = 0;
	run_at(&o, 30000);
	run_at(&o, 34000);
	assert_int_equal(watched_signals, 0);
	run_at(&o, 35001);
	assert_int_equal(watched_signals, 1);
	watched_pid = 0;
	if (!o.ended)
		assert_int_equal(loop_run(o.loop), 0);
	loop_free(o.loop);
	assert_int_equal(o.result.end, PROCESS_TIMED_OUT);
}

static void signal__to_all_children__reaches_each(void **state)
{
	pid_t children[2];
	int status;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		children[i] = fork();
		if (children[i] == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (;;)
				pause();
		}
	}
	assert_int_equal(keeper_signal_children(SIGUSR1), 2);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(waitpid(children[i], &status, 0), children[i]);
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR1);
	}
	assert_int_equal(keeper_signal_children(SIGUSR1), 0);
}

static unsigned kept;

static bool keep_counted(pid_t pid)
{
	kept += pid == 4194304;
	return true;
}

static void sweep__of_more_than_fit_into_one_round__leaves_them_to_the_next(void **state)
{
	(void)state;
	kept = 0;
	played_children = 5000;
	assert_int_equal(keeper_sweep(keep_counted), 0);
	assert_int_equal(played_children, 0);
	assert_int_equal(kept, 4096);
}

static unsigned astray; /* polls of the agent */

int poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	const struct timespec t = {
		.tv_sec = timeout_ms / 1000, .tv_nsec = (long)(timeout_ms % 1000) * 1000000};

	/* who waits for nothing waits in vain, and none waits for what it has not named */
	astray += fds ? fds[0].fd < 0 : count > 0;
	if (!deaf || getpid() == deaf->agent || timeout_ms < 0)
		return ppoll(fds, count, timeout_ms < 0 ? NULL : &t, NULL);
	deaf->rounds++;
	deaf->passed_ms += (uint64_t)timeout_ms;
	return 0;
}

int clock_gettime(clockid_t id, struct timespec *ret)
{
	if (!deaf || getpid() == deaf->agent || id != CLOCK_BOOTTIME)
		return (int)syscall(SYS_clock_gettime, id, ret);
	*ret = (struct timespec){.tv_sec = (time_t)(deaf->passed_ms / 1000),
		.tv_nsec = (long)(deaf->passed_ms % 1000) * 1000000};
	return 0;
}

/* They hang in the kernel. */
static void keeper__of_processes_that_do_not_die__leaves_them_to_the_agent(void **state)
{
	struct outcome o;

	(void)state;
	deaf = mmap(NULL, sizeof(*deaf), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	deaf->agent = getpid();
	o = script("setsid sleep 1000 & exit 7", NULL);
	assert_int_equal(o.result.code, 7);
	assert_int_equal(o.result.left, 1);
	assert_in_range(deaf->passed_ms, KEEPER_WAIT_MS, KEEPER_WAIT_MS + 100);
	assert_int_equal(deaf->groups, 1);     /* later its number may be that of others */
	assert_in_range(deaf->rounds, 20, 40); /* it is in no hurry any more */
	munmap(deaf, sizeof(*deaf));
	deaf = NULL;
	while (waitid(P_ALL, 0, &(siginfo_t){0}, WEXITED) == 0)
		; /* the agent has killed it */
}

static void keeper__stopped__does_its_work_at_the_limit(void **state)
{
	struct outcome o;

	(void)state;
	start_ready(&o, "trap '' TERM; kill -STOP $PPID; echo > $1; " NAP,
		(struct process_options){.timeout_ms = 1, .grace_ms = 1});
	run_out(&o);
	assert_int_equal(o.result.end, PROCESS_TIMED_OUT);
}

/* ---- freed ---- */

static void free__kills_the_group_and_reaps(void **state)
{
	char text[] = "trap '' TERM; sleep 1000 & echo $!; wait",
	     *argv[] = {shell, minus_c, text, NULL};
	const struct process_options options = {
		.argv = argv, .max_output = 100, .timeout_ms = LONG_MS};
	struct loop *l = loop_new(&sys_real);
	struct process *p = NULL;

	(void)state;
	for (int i = 0; i < 20; i++) { /* some before exec, some after it */
		assert_int_equal(process_start(l, &options, ended, NULL, &p), 0);
		process_free(p);
		assert_int_equal(waitid(P_ALL, 0, &(siginfo_t){0}, WEXITED | WNOHANG), -1);
		assert_int_equal(errno, ECHILD);
	}
	process_free(NULL);
	loop_free(l);
}

/* An agent that is killed takes the program with it. */
static void agent__killed__takes_the_program_with_it(void **state)
{
	int ends[2];
	pid_t agent;
	int pid = 0, daemon = 0;

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	agent = fork();
	assert_true(agent >= 0);
	if (agent == 0) {
		char fifo[64], text[256], *argv[] = {shell, minus_c, text, NULL};
		const struct process_options options = {.argv = argv, .timeout_ms = LONG_MS};
		struct outcome o = {.loop = loop_new(&sys_real)};
		struct process *p;

		/* a program that says who it is, once it runs */
		snprintf(fifo, sizeof(fifo), "/proc/%d/fd/%d", getpid(), ends[1]);
		snprintf(text, sizeof(text),
			"sh -c 'setsid sleep 1000 & echo $!' > %s; echo $$ > %s; exec sleep 1000",
			fifo, fifo);
		if (process_start(o.loop, &options, ended, &o, &p))
			_exit(1);
		loop_run(o.loop);
		_exit(1);
	}
	close(ends[1]);
	{
		char said[32] = "";
		size_t len = 0;
		ssize_t n;

		while ((!strchr(said, '\n') || strchr(said, '\n') == strrchr(said, '\n')) &&
			(n = read(ends[0], said + len, sizeof(said) - 1 - len)) > 0)
			len += (size_t)n;
		assert_int_equal(sscanf(said, "%d %d", &daemon, &pid), 2);
	}
	assert_int_equal(kill(pid, 0), 0);
	assert_int_equal(kill(daemon, 0), 0);
	kill(agent, SIGKILL);
	assert_int_equal(waitpid(agent, NULL, 0), agent);
	wait_dead(pid);
	wait_dead(daemon);
	while (waitid(P_ALL, 0, &(siginfo_t){0}, WEXITED) == 0)
		; /* its keeper, which fell to us */
	close(ends[0]);
}

/* ---- where they are started ---- */

static atomic_bool busy;

/* Holds libc's locks most of the time. */
static void *be_busy(void *arg)
{
	FILE *null = fopen("/dev/null", "we");

	while (atomic_load(&busy)) {
		char *p = malloc(100 + (size_t)rand() % 4000);

		fprintf(null, "%p", (void *)p);
		free(p);
	}
	fclose(null);
	return arg;
}

static void start__while_threads_hold_locks__works(void **state)
{
	pthread_t threads[4];

	(void)state;
	atomic_store(&busy, true);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, be_busy, NULL), 0);
	for (int i = 0; i < 20; i++) {
		struct outcome o = script("exit 6", NULL);

		assert_int_equal(o.result.end, PROCESS_EXITED);
		assert_int_equal(o.result.code, 6);
	}
	atomic_store(&busy, false);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

static void start__where_children_are_ignored__learns_the_end_all_the_same(void **state)
{
	struct outcome o;

	(void)state;
	signal(SIGCHLD, SIG_IGN);
	o = script("exit 8", NULL);
	assert_int_equal(o.result.code, 8);
	assert_string_equal(o.result.why, "exited with 8");
}

static void start__without_descriptors__fails_and_leaves_nothing(void **state)
{
	const struct process_options options = {.argv = (char *[]){shell, NULL},
		.product = true,
		.input = "exit 0",
		.input_len = 6,
		.timeout_ms = LONG_MS};
	struct loop *l = loop_new(&sys_real);
	struct outcome o = {.loop = l};
	int first = dup(0), r, failures = 0;
	struct rlimit before, low;
	struct process *p;

	(void)state;
	close(first); /* the lowest that is free */
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	low = before;
	for (low.rlim_cur = (rlim_t)first;; low.rlim_cur++) {
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
		r = process_start(l, &options, ended, &o, &p);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
		if (r == 0)
			break;
		assert_int_equal(r, -EMFILE);
		failures++;
	}
	assert_in_range(failures, 4, 10);
	assert_int_equal(loop_run(l), 0);
	assert_true(o.result.ok || o.result.end == PROCESS_NOT_STARTED);
	loop_free(l);
}

/* It is the keeper that cannot fork: the agent has started that. */
static void start__of_a_process_too_many__is_told_with_its_errno(void **state)
{
	struct outcome o;

	(void)state;
	fault_syscall.number = SYS_clone;
	fault_syscall.error = EAGAIN;
	o = script("true", NULL);
	fault_syscall.error = 0;
	assert_false(o.result.ok);
	assert_int_equal(o.result.end, PROCESS_NOT_STARTED);
	assert_int_equal(o.result.code, EAGAIN);
	assert_string_equal(o.result.why,
		"cannot be started: Resource temporarily unavailable: raise the limit of processes "
		"(TasksMax, pids.max)");
}

static int fork_error; /* 0 = none */

pid_t fork(void)
{
	pid_t (*real)(void);

	*(void **)&real = dlsym(RTLD_NEXT, "fork");
	errno = fork_error;
	return fork_error ? -1 : real();
}

static void start__of_a_keeper_too_many__fails_and_leaves_nothing(void **state)
{
	const struct process_options options = {
		.argv = (char *[]){shell, NULL}, .timeout_ms = LONG_MS};
	struct loop *l = loop_new(&sys_real);
	struct process *p = NULL;

	(void)state;
	fork_error = EAGAIN;
	assert_int_equal(process_start(l, &options, ended, NULL, &p), -EAGAIN);
	fork_error = 0;
	assert_null(p);
	loop_free(l);
}

/* On a kernel that has no pidfd_open(), or does not let it through. */
static void start__without_pidfds__fails_and_leaves_nothing(void **state)
{
	const struct process_options options = {
		.argv = (char *[]){shell, minus_c, (char[]){NAP}, NULL}, .timeout_ms = LONG_MS};
	struct loop *l = loop_new(&sys_real);
	struct process *p = NULL;

	(void)state;
	fault_syscall.number = SYS_pidfd_open;
	fault_syscall.error = ENOSYS;
	assert_int_equal(process_start(l, &options, ended, NULL, &p), -ENOSYS);
	fault_syscall.error = 0;
	assert_null(p);
	assert_string_equal(sys_advice(ENOSYS), sys_advice(EPERM));
	assert_string_equal(sys_advice(EPERM),
		": a sandbox (seccomp) denies it, or the kernel is older than 5.3");
	loop_free(l);
}

static void product__for_which_there_is_no_memory__is_an_error(void **state)
{
	const struct process_options product = {.product = true};
	struct outcome o;

	(void)state;
	start_ready(&o, "echo product; echo > $1", product);
	fault_memory.seen = 0;
	fault_memory.nth = 1;
	fault_memory.for_ever = true;
	assert_int_equal(loop_run(o.loop), 0);
	fault_memory.nth = 0;
	fault_memory.for_ever = false;
	loop_free(o.loop);
	assert_false(o.result.ok);
	assert_string_equal(o.result.why, "wrote more than there is memory for");
	assert_int_equal(o.result.dropped, 8);
}

static void start__without_a_page_to_share__fails_and_leaves_nothing(void **state)
{
	const struct process_options options = {
		.argv = (char *[]){shell, NULL}, .timeout_ms = LONG_MS};
	struct loop *l = loop_new(&sys_real);
	struct rlimit before, low;
	struct process *p = NULL;
	int r;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
	low = before;
	low.rlim_cur = 1; /* what is mapped stays */
	assert_int_equal(setrlimit(RLIMIT_AS, &low), 0);
	r = process_start(l, &options, ended, NULL, &p);
	assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
	assert_int_equal(r, -ENOMEM);
	assert_null(p);
	loop_free(l);
}

static void start__without_memory__fails_and_leaves_nothing(void **state)
{
	const struct process_options options = {.argv = (char *[]){shell, NULL},
		.product = true,
		.input = "exit 0",
		.input_len = 6,
		.timeout_ms = LONG_MS};
	struct loop *l = loop_new(&sys_real);
	struct outcome o = {.loop = l};
	unsigned failures = 0;
	int r;

	(void)state;
	for (;;) {
		struct process *p = NULL;

		fault_memory.seen = 0;
		fault_memory.nth = failures + 1;
		r = process_start(l, &options, ended, &o, &p);
		fault_memory.nth = 0;
		if (r == 0)
			break;
		assert_true(r == -ENOMEM || r == -EIO); /* libevent does not tell them apart */
		assert_null(p);
		assert_false(o.ended);
		failures++;
		assert_in_range(failures, 1, 20);
		assert_int_equal(waitid(P_ALL, 0, &(siginfo_t){0}, WEXITED | WNOHANG), -1);
	}
	assert_true(failures >= 4); /* its own, its name's, those of what is watched */
	assert_int_equal(loop_run(l), 0);
	assert_true(o.result.ok);
	loop_free(l);
}

/* ---- nothing left ---- */

static unsigned open_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static unsigned descriptors_before;
static sigset_t mask_before;

static int before_each(void **state)
{
	(void)state;
	pthread_sigmask(SIG_SETMASK, NULL, &mask_before);
	descriptors_before = open_descriptors();
	return 0;
}

static int after_each(void **state)
{
	siginfo_t info;
	sigset_t mask;

	(void)state;
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	for (int i = 1; i < NSIG; i++)
		assert_int_equal(sigismember(&mask, i), sigismember(&mask_before, i));
	assert_int_equal(open_descriptors(), descriptors_before);
	assert_int_equal(astray, 0);
	assert_int_equal(waitid(P_ALL, 0, &info, WEXITED | WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	return 0;
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

#define CASE(f) cmocka_unit_test_setup_teardown(f, before_each, after_each)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(exit_code__of_any_kind__is_told),
		CASE(signal__that_kills_it__is_told),
		CASE(exec__that_fails__is_told_with_its_errno),
		CASE(preparation__that_fails__starts_nothing),
		CASE(keeper__that_ended_meanwhile__starts_nothing),
		CASE(start__where_orphans_cannot_be_kept__fails),
		CASE(limit__passed__is_told_in_its_unit),
		CASE(limit__passed_where_nothing_can_be_sent__ends_it_by_kill),
		CASE(limit__passed_by_one_that_ignores_term__gives_it_5_seconds),
		CASE(keeper__that_is_told_of_no_end__looks_for_it),
		CASE(limit__passed__ends_it_by_term),
		CASE(limit__passed_by_one_that_ignores_term__ends_it_by_kill),
		CASE(limit__when_only_the_loop_was_late__is_not_passed),
		CASE(output__of_both_kinds__comes_in_its_order),
		CASE(output__over_the_bound__is_cut_and_counted),
		CASE(output__of_a_million_lines__blocks_nobody),
		CASE(product__and_message__are_kept_apart),
		CASE(product__over_the_bound__is_an_error),
		CASE(input__of_nothing__ends_at_once),
		CASE(input__large__comes_whole),
		CASE(input__on_an_older_kernel__comes_all_the_same),
		CASE(input__where_memory_is_denied__lies_in_a_directory_without_a_name),
		CASE(input__that_memory_takes_in_pieces__comes_whole),
		CASE(input__for_which_there_is_no_room__is_refused),
		CASE(input__that_nobody_reads__does_no_harm),
		CASE(descriptors__of_the_agent__are_not_inherited),
		CASE(descriptors__when_the_agents_own_are_closed__are_right_all_the_same),
		CASE(descriptors__up_to_the_limit__are_closed_one_by_one),
		CASE(environment__is_what_was_given_and_nothing_else),
		CASE(environment__too_large__is_refused),
		CASE(signals__of_the_agent__are_not_inherited),
		CASE(keeper__has_a_name_of_its_own),
		CASE(group__umask_and_directory__are_its_own),
		CASE(program__gains_no_rights_unless_the_agent_is_root),
		CASE(children__that_hold_the_pipe__are_killed_and_not_waited_for),
		CASE(children__of_one_that_is_killed_by_term__are_killed_with_it),
		CASE(children__of_one_that_is_asked_to_end__are_asked_too),
		CASE(orphans__of_one_that_is_asked_to_end__are_asked_too),
		CASE(children__in_a_session_of_their_own__are_killed_too),
		CASE(children__that_are_left__are_logged_once_a_minute),
		CASE(children__in_a_session_of_their_own__end_with_the_limit),
		CASE(keeper__killed__leaves_nothing),
		CASE(keeper__that_has_ended__is_signalled_no_more),
		CASE(signal__to_all_children__reaches_each),
		CASE(sweep__of_more_than_fit_into_one_round__leaves_them_to_the_next),
		CASE(keeper__of_processes_that_do_not_die__leaves_them_to_the_agent),
		CASE(keeper__stopped__does_its_work_at_the_limit),
		CASE(children__that_write_for_ever__do_not_keep_it_from_ending),
		CASE(output__that_is_not_there_yet__is_waited_for),
		CASE(output__that_is_left_at_the_end__is_read),
		CASE(output__that_comes_in_bytes__is_whole),
		CASE(program__that_has_ended__leaves_no_memory),
		CASE(output__that_another_has_taken__is_not_waited_for),
		CASE(stranger__that_writes_for_ever__does_not_keep_it_from_ending),
		CASE(many__at_once__end_each_with_its_own_code),
		CASE(free__kills_the_group_and_reaps),
		CASE(agent__killed__takes_the_program_with_it),
		CASE(start__while_threads_hold_locks__works),
		CASE(start__where_children_are_ignored__learns_the_end_all_the_same),
		CASE(start__without_descriptors__fails_and_leaves_nothing),
		CASE(start__of_a_process_too_many__is_told_with_its_errno),
		CASE(start__of_a_keeper_too_many__fails_and_leaves_nothing),
		CASE(start__without_pidfds__fails_and_leaves_nothing),
		CASE(product__for_which_there_is_no_memory__is_an_error),
		CASE(start__without_a_page_to_share__fails_and_leaves_nothing),
		CASE(start__without_memory__fails_and_leaves_nothing),
	};

	alarm(240);
	return _cmocka_run_group_tests("tests", tests,
		sizeof(tests) / sizeof(tests[0]) - (fault_memory_works ? 0 : 3), make_dir,
		remove_dir);
}
