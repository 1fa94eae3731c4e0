/*
 * Format program and check, as real shell scripts: what they see, what is said of them, what they
 * leave. After each case no child, no descriptor and no candidate may be left. An alarm is the
 * deadline.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "text/sentence.h"
#include "verify/programs.h"
#include "tests/unit/fixture/fault_memory.h"
#include "tests/unit/fixture/fault_sys.h"
#include "tests/unit/fixture/scratch.h"

#define SHELL "[/bin/sh, -c, "

static char dir[SCRATCH_PATH], runtime[SCRATCH_PATH + 16];
static unsigned descriptors;

static int dir_open(void **state)
{
	(void)state;
	scratch_open(dir, scratch_memory());
	snprintf(runtime, sizeof(runtime), "%s/runtime", dir);
	assert_int_equal(mkdir(runtime, 0700), 0);
	descriptors = scratch_descriptors();
	return 0;
}

static int dir_close(void **state)
{
	(void)state;
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	assert_int_equal(scratch_descriptors(), descriptors);
	assert_int_equal(scratch_count(dir, "pullet-"), 0);
	assert_int_equal(scratch_count(runtime, ""), 0);
	scratch_close(dir);
	return 0;
}

static bool memory_denied;

int memfd_create(const char *name, unsigned flags)
{
	if (memory_denied) {
		errno = ENOSYS;
		return -1;
	}
	return (int)syscall(SYS_memfd_create, name, flags);
}

/* A version on trial. */
struct work {
	struct loop *loop;
	struct settings *settings;
	struct version version;
	struct buffer body;
	struct candidate *candidate;
	struct programs_options options;
	struct programs *trial;
	unsigned ended;
	struct programs_result result;
	char why[FILE_WHY];
};

static struct sys sys; /* its calls fail where a test says so */

/* The config web, with these keys; `DIR` stands for the directory. */
static void begin(struct work *w, const char *keys)
{
	char text[8192] = "servers: {a: {urls: ['http://x']}}\nconfigs:\n  web:\n", *to;
	const char *at;

	memset(w, 0, sizeof(*w));
	memset(&fault, 0, sizeof(fault));
	sys = fault_table();
	for (to = text + strlen(text); (at = strstr(keys, "DIR")); keys = at + 3)
		to += snprintf(to, 2000, "%.*s%s", (int)(at - keys), keys, dir);
	snprintf(to, 2000, "%s", keys);
	w->settings = scratch_settings("%s", text);
	w->loop = loop_new(&sys);
	w->candidate = candidate_new();
	assert_true(w->loop && w->candidate);
	version_begin(&w->version, &w->body, 0);
}

static void add(struct work *w, const char *type, const char *text)
{
	version_add(&w->version, &w->body, "http://x/", type, text);
}

static void ended(void *arg, const struct programs_result *result)
{
	struct work *w = arg;

	w->ended++;
	w->trial = NULL;
	w->result = *result;
	loop_stop(w->loop);
}

/* All parts are added: makes the candidate and what is published of it. */
static void compose_it(struct work *w)
{
	struct settings_config *config = w->settings->configs[0];
	struct candidate *c = w->candidate;

	version_end(&w->version, &w->body);
	assert_int_equal(version_copy(&w->version, &c->version), 0);
	if (w->body.len)
		assert_int_equal(buffer_append(&c->body, w->body.data, w->body.len), 0);
	version_pieces(&c->version, &c->body, c->pieces);
	if (candidate_compose(c, config, NULL, NULL, w->why) ||
		candidate_outputs(c, config, NULL, false, w->why))
		fail_msg("%s", w->why);
	w->options = (struct programs_options){
		.loop = w->loop,
		.config = config,
		.runtime_dir = runtime,
		.candidate = c,
		.generation = 42,
		.ended = ended,
		.arg = w,
	};
}

static int start(struct work *w)
{
	compose_it(w);
	return programs_start(&w->options, &w->trial, w->why);
}

static void run(struct work *w)
{
	if (start(w))
		fail_msg("%s", w->why);
	assert_int_equal(w->ended, 0); /* never from inside */
	assert_int_equal(loop_run(w->loop), 0);
	assert_int_equal(w->ended, 1);
}

static void end(struct work *w)
{
	programs_free(w->trial);
	candidate_free(w->candidate);
	version_fini(&w->version);
	buffer_fini(&w->body);
	loop_free(w->loop);
	settings_free(w->settings);
}

static void assert_passed(const struct work *w)
{
	if (w->result.rejected || w->result.why[0])
		fail_msg("%s", w->result.why);
}

/* What an audience is shown of the sentence. */
static const char *shown(const struct work *w, enum audience audience)
{
	static char text[sizeof(w->result.why)];

	return sentence_show(text, sizeof(text), w->result.why, audience);
}

static void assert_rejected(const struct work *w, enum verify_check check, const char *why)
{
	assert_string_equal(shown(w, AUDIENCE_OPERATOR), why);
	assert_true(w->result.rejected);
	assert_int_equal(w->result.check, check);
}

/* What the script wrote. */
static const char *wrote(const char *name)
{
	static char text[8192];

	if (!scratch_read(dir, name, text, sizeof(text), NULL))
		fail_msg("no file %s", name);
	return text;
}

/* "DIR/BEFORE" and 16 hexadecimal digits; what stands behind them, or NULL. */
static const char *behind_name(const char *path, const char *in, const char *before)
{
	size_t len = strlen(in);

	if (strncmp(path, in, len) != 0 || path[len] != '/')
		return NULL;
	path += len + 1;
	len = strlen(before);
	if (strncmp(path, before, len) != 0 || strspn(path + len, "0123456789abcdef") != 16)
		return NULL;
	return path + len + 16;
}

#define ONE "    url: http://x/web.yaml\n    file: DIR/web.yaml\n"

/* ---- check ---- */

static void wanted__is_a_config_with_a_program(void **state)
{
	static const struct {
		const char *keys;
		bool wanted;
	} table[] = {
		{ONE, false},
		{ONE "    format: json\n", false},
		{ONE "    format: {run: [/bin/cat]}\n", true},
		{ONE "    check: [/bin/true, '{path}']\n", true},
		{ONE "    probe: {run: [/bin/true]}\n", false},
	};
	struct work w;

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		begin(&w, table[i].keys);
		assert_int_equal(programs_wanted(w.settings->configs[0]), table[i].wanted);
		end(&w);
	}
}

static void check__that_passes__has_seen_the_candidate_as_readers_would(void **state)
{
	const char *rest;
	struct work w;

	(void)state;
	begin(&w, ONE "    mode: '0604'\n"
		      "    check: " SHELL "'echo $1 >DIR/log; stat -c %a,%h $1 >>DIR/log; "
		      "cat $1 >>DIR/log; if [ -e DIR/web.yaml ]; then echo visible >>DIR/log; fi', "
		      "sh, '{path}']\n");
	add(&w, "yaml", "# as pulled\na: 1\n");
	run(&w);
	assert_passed(&w);
	rest = behind_name(wrote("log"), dir, ".web.yaml.pullet-");
	assert_non_null(rest);
	assert_string_equal(rest, "\n604,1\n# as pulled\na: 1\n"); /* web.yaml is not there */
	end(&w);
}

static void check__of_a_written_text__sees_that(void **state)
{
	struct work w;

	(void)state;
	begin(&w, ONE "    format: env\n    check: " SHELL "'cat $1 >DIR/log', sh, '{path}']\n");
	add(&w, "yaml", "db: {host: x}\n");
	run(&w);
	assert_passed(&w);
	assert_string_equal(wrote("log"), "DB_HOST=x\n");
	end(&w);
}

static void check__of_a_config_without_a_file__sees_it_in_the_runtime_directory(void **state)
{
	struct work w;

	(void)state;
	begin(&w, "    url: http://x/web.yaml\n    check: " SHELL
		  "'echo $1 >DIR/log; cat $1 >>DIR/log', sh, '{path}']\n");
	add(&w, "yaml", "a: 1\n");
	run(&w);
	assert_passed(&w);
	assert_string_equal(behind_name(wrote("log"), runtime, ".web.snap.pullet-"), "\na: 1\n");
	end(&w);
}

/* Until it is complete the directory of a set is nobody else's. */
static int fchmod_when_complete(int fd, mode_t mode)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	if (S_ISDIR(st.st_mode))
		assert_int_equal(st.st_mode & 07777, 0700);
	return fault_fchmod(fd, mode);
}

static void check__of_a_set__sees_a_directory_of_its_documents(void **state)
{
	const char *rest;
	struct work w;

	(void)state;
	begin(&w, "    dir: DIR\n    snapshot: false\n"
		  "    verify: {public_key: "
		  "RWSYMC7n8ADplDfW2kiEMNo8BX8IPthSF1HxnEXGBzB/KwlR4ZfoNZlN}\n"
		  "    from:\n"
		  "      - {server: a, path: /1, as: one.yaml}\n"
		  "      - {server: a, path: /2, as: two.bin, optional: true}\n"
		  "      - {server: a, path: /3, as: three.bin}\n"
		  "    check: " SHELL "'echo $1 >DIR/log; cd $1; ls -A >>DIR/log; "
		  "cat one.yaml three.bin >>DIR/log; stat -c %a three.bin . >>DIR/log', sh, "
		  "'{path}']\n");
	add(&w, "yaml", "a: 1\n");
	add(&w, "minisig", "signature");
	add(&w, "bytes", NULL);
	add(&w, "minisig", NULL);
	add(&w, "bytes", "three\n");
	add(&w, "minisig", "signature");
	sys.fchmod = fchmod_when_complete;
	run(&w);
	assert_passed(&w);
	rest = behind_name(wrote("log"), dir, FILE_SET_CHECKED);
	assert_non_null(rest);
	assert_string_equal(rest, "\none.yaml\nthree.bin\na: 1\nthree\n640\n755\n");
	assert_int_equal(scratch_count(dir, FILE_SET_CHECKED), 0);
	end(&w);
}

static void check__of_any_words__has_the_path_in_each_of_them(void **state)
{
	char path[PATH_MAX], expected[2 * PATH_MAX];
	struct work w;

	(void)state;
	begin(&w, ONE "    check: " SHELL "'for w; do echo \"$w\"; done >DIR/log', sh, '{path}', "
		      "'a={path}:{path}.', '{path', '', '{{path}}']\n");
	add(&w, "yaml", "a: 1\n");
	run(&w);
	assert_passed(&w);
	snprintf(path, sizeof(path), "%.*s", (int)strcspn(wrote("log"), "\n"), wrote("log"));
	snprintf(expected, sizeof(expected), "%.300s\na=%.300s:%.300s.\n{path\n\n{%.300s}\n", path,
		path, path, path);
	assert_string_equal(wrote("log"), expected);
	end(&w);
}

/* A word is bounded, also as it is with the paths in it. */
static void check__of_a_word_that_the_paths_make_too_long__does_not_begin(void **state)
{
	struct settings_config *c;
	char *many;
	struct work w;

	(void)state;
	begin(&w, ONE "    check: [/bin/true, '{path}']\n");
	add(&w, "yaml", "a: 1\n");
	compose_it(&w);
	c = w.settings->configs[0];
	many = malloc(60000 * strlen("{path}") + 1);
	assert_non_null(many);
	for (size_t i = 0; i < 60000; i++)
		memcpy(many + i * strlen("{path}"), "{path}", strlen("{path}") + 1);
	free(c->check.argv[1]);
	c->check.argv[1] = many;
	assert_true(programs_start(&w.options, &w.trial, w.why) < 0);
	assert_string_equal(w.why, "out of memory");
	end(&w);
}

static void check__that_refuses__says_what_it_wrote(void **state)
{
	static const struct {
		const char *script, *why;
	} table[] = {
		{"echo wrong key; exit 1", "sh exited with 1: wrong key"},
		{"echo out; echo err >&2; exit 77", "sh exited with 77: out\nerr"},
		{"printf \"two \\n\\n\"; exit 2", "sh exited with 2: two"},
		{"exit 3", "sh exited with 3"},
		{"echo last words; kill -11 $$", "sh killed by signal 11: last words"},
		{"exit 139", "sh exited with 139"},
		{"rm -f $1; exit 1", "sh exited with 1"},
	};
	struct work w;

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		char keys[512];

		snprintf(keys, sizeof(keys), ONE "    check: " SHELL "'%s', sh, '{path}']\n",
			table[i].script);
		begin(&w, keys);
		add(&w, "yaml", "a: 1\n");
		run(&w);
		assert_rejected(&w, CHECK_PROGRAM, table[i].why);
		end(&w);
	}
}

static void check__killed_from_outside__says_nothing_about_the_version(void **state)
{
	static const struct {
		const char *script, *why;
	} table[] = {
		{"echo last words; kill -9 $$", "sh killed by signal 9: last words"},
		{"kill -15 $$", "sh killed by signal 15"},
		{"kill -2 $$", "sh killed by signal 2"},
		{"kill -1 $$", "sh killed by signal 1"},
		{"exit 137", "sh exited with 137"},
		{"exit 143", "sh exited with 143"},
	};
	struct work w;

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		char keys[512];

		snprintf(keys, sizeof(keys), ONE "    check: " SHELL "'%s', sh, '{path}']\n",
			table[i].script);
		begin(&w, keys);
		add(&w, "yaml", "a: 1\n");
		run(&w);
		assert_false(w.result.rejected);
		assert_string_equal(shown(&w, AUDIENCE_OPERATOR), table[i].why);
		end(&w);
	}
}

static void check__that_says_much__is_told_by_the_end_of_it(void **state)
{
	const char *why;
	struct work w;
	size_t len;

	(void)state;
	begin(&w, ONE "    check: " SHELL
		      "'i=0; while [ $i -lt 500 ]; do echo line $i; i=$((i + 1)); done; exit 1', "
		      "sh, '{path}']\n");
	add(&w, "yaml", "a: 1\n");
	run(&w);
	assert_true(w.result.rejected);
	why = shown(&w, AUDIENCE_OPERATOR);
	len = strlen(why);
	assert_in_range(len, 600, 640);
	assert_int_equal(strncmp(why, "sh exited with 1: ", 18), 0);
	assert_string_equal(why + len - 9, "\nline 499");
	assert_string_equal(shown(&w, AUDIENCE_READER), "sh exited with 1");
	end(&w);
}

static void check__that_cannot_be_started__is_no_refusal(void **state)
{
	struct work w;

	(void)state;
	begin(&w, ONE "    check: [/none/checker, '{path}']\n");
	add(&w, "yaml", "a: 1\n");
	run(&w);
	assert_false(w.result.rejected);
	assert_string_equal(w.result.why,
		"checker cannot be started: No such file or directory: install it, "
		"name another one, or mend the #! it begins with");
	end(&w);
}

static void check__that_takes_too_long__says_so(void **state)
{
	struct work w;

	(void)state;
	begin(&w,
		ONE "    check: {timeout: 100ms, run: " SHELL "'exec sleep 100', sh, '{path}']}\n");
	add(&w, "yaml", "a: 1\n");
	run(&w);
	assert_string_equal(
		shown(&w, AUDIENCE_OPERATOR), "sh still ran after 100 ms and was killed");
	assert_true(w.result.timed_out);
	assert_false(w.result.rejected);
	assert_int_equal(w.result.check, CHECK_PROGRAM);
	end(&w);
}

static void check__where_the_candidate_cannot_be_written__does_not_begin(void **state)
{
	static const char *const keys[] = {
		"    url: http://x/web.yaml\n    file: DIR/none/web.yaml\n"
		"    check: [/bin/true, '{path}']\n",
		"    dir: DIR/none\n    snapshot: false\n"
		"    from: [{server: a, path: /1, as: one.yaml}]\n"
		"    check: [/bin/true, '{path}']\n",
	};
	struct work w;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		begin(&w, keys[i]);
		add(&w, "yaml", "a: 1\n");
		assert_int_equal(start(&w), -ENOENT);
		assert_non_null(strstr(w.why, "/none"));
		assert_non_null(strstr(w.why, "No such file"));
		assert_true(strstr(w.why, "/none") < strstr(w.why, ": No such file"));
		assert_null(w.trial);
		end(&w);
	}
	assert_int_equal(scratch_count(dir, ""), 1); /* the runtime directory */
}

/* A step of it fails: nothing is left of the candidate. */
static void check__whose_candidate_is_written_halfway__leaves_nothing(void **state)
{
	static const char set[] = "    dir: DIR/set\n    snapshot: false\n"
				  "    from: [{server: a, path: /1, as: one.yaml}, "
				  "{server: a, path: /2, as: two.yaml}]\n"
				  "    check: [/bin/true, '{path}']\n";
	static const char file[] = "    url: http://x/web.yaml\n    file: DIR/set/web.yaml\n"
				   "    check: [/bin/true, '{path}']\n";
	static const struct {
		const char *keys;
		enum fault_call call;
		unsigned nth;
		int error;
		const char *why;
	} table[] = {
		{set, CALL_MKDIR, 1, EROFS, "cannot make "},
		{set, CALL_OPEN, 2, EMFILE, "cannot open "},
		{set, CALL_OPEN, 3, EMFILE, "cannot make a new file for "},
		{set, CALL_WRITE, 1, ENOSPC, "cannot write "},
		{set, CALL_WRITE, 2, EIO, "cannot write "},
		{set, CALL_RENAME, 2, EIO, "cannot replace "},
		{set, CALL_FCHMOD, 3, EPERM, "cannot set the mode of "},
		{file, CALL_WRITE, 1, ENOSPC, "cannot write "},
		{file, CALL_FCHMOD, 1, EPERM, "cannot set the mode of "},
	};
	unsigned before = scratch_descriptors();
	char path[SCRATCH_PATH + 16];
	struct work w;

	(void)state;
	snprintf(path, sizeof(path), "%s/set", dir);
	assert_int_equal(mkdir(path, 0755), 0);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		int r;

		begin(&w, table[i].keys);
		add(&w, "yaml", "a: 1\n");
		if (table[i].keys == set)
			add(&w, "yaml", "b: 1\n");
		fault.call = table[i].call;
		fault.nth = table[i].nth;
		fault.error = table[i].error;
		r = start(&w);
		if (r != -table[i].error || strncmp(w.why, table[i].why, strlen(table[i].why)) != 0)
			fail_msg("%zu: %d, %s", i, r, w.why);
		assert_non_null(strstr(w.why, strerror(table[i].error)));
		assert_non_null(strstr(w.why, path));
		assert_null(w.trial);
		assert_int_equal(w.ended, 0);
		assert_int_equal(scratch_count(path, ""), 0);
		end(&w);
	}
	assert_int_equal(scratch_descriptors(), before);
	assert_int_equal(rmdir(path), 0);
}

static void check__in_a_directory_of_another_user__does_not_begin(void **state)
{
	char path[SCRATCH_PATH + 16];
	struct work w;

	(void)state;
	if (geteuid() != 0)
		skip();
	snprintf(path, sizeof(path), "%s/theirs", dir);
	assert_int_equal(mkdir(path, 0755), 0);
	assert_int_equal(chown(path, 64104, 64104), 0);
	begin(&w, "    dir: DIR/theirs\n    snapshot: false\n"
		  "    from: [{server: a, path: /1, as: one.yaml}]\n"
		  "    check: [/bin/true, '{path}']\n");
	add(&w, "yaml", "a: 1\n");
	assert_int_equal(start(&w), -EPERM);
	assert_non_null(strstr(w.why, "it belongs to uid 64104"));
	end(&w);
	assert_int_equal(scratch_count(path, ""), 0);
	assert_int_equal(rmdir(path), 0);
}

/* ---- freed in the middle ---- */

/* Starts, and returns when the script has written a line into DIR/fifo. */
static void start_ready(struct work *w)
{
	char fifo[SCRATCH_PATH + 16], line[8];
	int fd;

	snprintf(fifo, sizeof(fifo), "%s/fifo", dir);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	if (start(w))
		fail_msg("%s", w->why);
	fd = open(fifo, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_true(read(fd, line, sizeof(line)) > 0);
	close(fd);
	unlink(fifo);
}

static void free__during_a_check__kills_it_and_removes_the_candidate(void **state)
{
	struct work w;

	(void)state;
	begin(&w, ONE "    check: " SHELL "'echo x >DIR/fifo; exec sleep 100', sh, '{path}']\n");
	add(&w, "yaml", "a: 1\n");
	start_ready(&w);
	assert_int_equal(scratch_count(dir, ".web.yaml.pullet-"), 1);
	programs_free(w.trial);
	w.trial = NULL;
	assert_int_equal(scratch_count(dir, ".web.yaml.pullet-"), 0);
	assert_int_equal(w.ended, 0);
	end(&w);
	programs_free(NULL);
}

static void free__during_the_check_of_a_set__removes_its_directory(void **state)
{
	struct work w;

	(void)state;
	begin(&w, "    dir: DIR\n    snapshot: false\n"
		  "    from: [{server: a, path: /1, as: one.yaml}]\n"
		  "    check: " SHELL "'echo x >DIR/fifo; exec sleep 100', sh, '{path}']\n");
	add(&w, "yaml", "a: 1\n");
	start_ready(&w);
	assert_int_equal(scratch_count(dir, FILE_SET_CHECKED), 1);
	programs_free(w.trial);
	w.trial = NULL;
	assert_int_equal(scratch_count(dir, FILE_SET_CHECKED), 0);
	end(&w);
}

static void free__during_a_format_program__kills_it(void **state)
{
	struct work w;

	(void)state;
	begin(&w, ONE "    format: {run: " SHELL "'echo x >DIR/fifo; exec sleep 100']}\n");
	add(&w, "yaml", "a: 1\n");
	start_ready(&w);
	programs_free(w.trial);
	w.trial = NULL;
	assert_int_equal(w.ended, 0);
	assert_false(w.candidate->has_text);
	end(&w);
}

/* ---- format ---- */

static void format__run__makes_the_text_of_the_document_as_json(void **state)
{
	char expected[1024];
	struct work w;

	(void)state;
	begin(&w, "    file: DIR/web.yaml\n"
		  "    from: [{server: a, path: /1}, {server: a, path: /2}]\n"
		  "    format: {run: " SHELL
		  "'cat; echo $0 $PULLET_CONFIG_NAME $PULLET_GENERATION $PULLET_FILE; "
		  "echo not this >&2', name]}\n");
	add(&w, "yaml", "a: 1\nb: x\n");
	add(&w, "json", "{\"b\": [2.5, null]}");
	run(&w);
	assert_passed(&w);
	snprintf(expected, sizeof(expected),
		"{\n  \"a\": 1,\n  \"b\": [\n    2.5,\n    null\n  ]\n}\n"
		"name web 42 %s/web.yaml\n",
		dir);
	assert_true(w.candidate->has_text);
	assert_string_equal(candidate_text(w.candidate)->data, expected);
	end(&w);
}

static void format__run__where_a_sandbox_denies_memory__has_its_input_too(void **state)
{
	struct work w;

	(void)state;
	begin(&w, ONE "    format: {run: [/bin/cat]}\n");
	add(&w, "yaml", "a: 1\n");
	memory_denied = true;
	run(&w);
	memory_denied = false;
	assert_passed(&w);
	assert_string_equal(candidate_text(w.candidate)->data, "{\n  \"a\": 1\n}\n");
	end(&w);
}

static void format__run__of_any_bytes__keeps_them(void **state)
{
	struct work w;

	(void)state;
	begin(&w, ONE "    format: {run: " SHELL "'printf \"a\\000b\"']}\n");
	add(&w, "yaml", "a: 1\n");
	run(&w);
	assert_passed(&w);
	assert_int_equal(candidate_text(w.candidate)->len, 3);
	assert_memory_equal(candidate_text(w.candidate)->data, "a\0b", 3);
	end(&w);
}

static void format__run_and_check__the_check_sees_what_was_made(void **state)
{
	struct work w;

	(void)state;
	begin(&w, ONE "    format: {run: [/bin/echo, made]}\n    check: " SHELL
		      "'cat $1 >DIR/log; echo $PULLET_CONFIG_NAME >>DIR/log; exit 4', sh, "
		      "'{path}']\n");
	add(&w, "yaml", "a: 1\n");
	run(&w);
	assert_rejected(&w, CHECK_PROGRAM, "sh exited with 4");
	assert_string_equal(wrote("log"), "made\nweb\n");
	end(&w);
}

static void format__run__that_fails__refuses_and_no_check_runs(void **state)
{
	static const struct {
		const char *format, *why;
		bool rejected;
	} table[] = {
		{SHELL "'echo out; echo no such key >&2; exit 1']", "sh exited with 1: no such key",
			true},
		{SHELL "'kill -15 $$']", "sh killed by signal 15", false},
		{"[/bin/true]", "/bin/true wrote nothing", true},
		{"[/none/maker]",
			"maker cannot be started: No such file or directory: install it, name "
			"another one, or mend the #! it begins with",
			false},
		{SHELL "'echo part; exec sleep 100'], timeout: 100ms",
			"sh still ran after 100 ms and was killed", false},
	};
	struct work w;

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		char keys[512];

		snprintf(keys, sizeof(keys),
			ONE "    format: {run: %s}\n    check: " SHELL
			    "'touch DIR/log', sh, '{path}']\n",
			table[i].format);
		begin(&w, keys);
		add(&w, "yaml", "a: 1\n");
		run(&w);
		assert_string_equal(shown(&w, AUDIENCE_OPERATOR), table[i].why);
		assert_int_equal(w.result.rejected, table[i].rejected);
		assert_int_equal(w.result.check, CHECK_FORMAT);
		assert_false(w.candidate->has_text);
		assert_int_equal(scratch_count(dir, "log"), 0);
		end(&w);
	}
}

static void format__run__whose_check_cannot_begin__is_no_refusal(void **state)
{
	struct work w;

	(void)state;
	begin(&w, "    url: http://x/web.yaml\n    file: DIR/none/web.yaml\n"
		  "    format: {run: [/bin/echo, made]}\n    check: [/bin/true, '{path}']\n");
	add(&w, "yaml", "a: 1\n");
	run(&w);
	assert_false(w.result.rejected);
	assert_non_null(strstr(w.result.why, "cannot open the directory"));
	end(&w);
}

static void format__run__of_what_json_does_not_have__does_not_begin(void **state)
{
	struct work w;

	(void)state;
	begin(&w, ONE "    format: {run: [/bin/cat]}\n");
	add(&w, "yaml", "a: .inf\n");
	assert_int_equal(start(&w), -EINVAL);
	assert_string_equal(w.why, "it holds a number that JSON does not have");
	end(&w);
}

/* ---- environment ---- */

static void environment__names_config_file_and_generation(void **state)
{
	char **env = programs_environment("web", "/run/web.yaml", UINT64_MAX, NULL, 0);

	(void)state;
	assert_non_null(env);
	assert_string_equal(env[0], "PULLET_CONFIG_NAME=web");
	assert_string_equal(env[1], "PULLET_GENERATION=18446744073709551615");
	assert_string_equal(env[2], "PULLET_FILE=/run/web.yaml");
	assert_null(env[3]);
	programs_environment_free(env);
	env = programs_environment("web", NULL, 1, NULL, 0);
	assert_string_equal(env[1], "PULLET_GENERATION=1");
	assert_null(env[2]);
	programs_environment_free(env);
	programs_environment_free(NULL);
}

/* dir_close() sees that nothing is left of any attempt. */
static void start__without_memory__says_so_and_leaves_nothing(void **state)
{
	static const char *const keys[] = {
		ONE "    check: [/bin/true, '{path} and {path}']\n",
		ONE "    format: {run: [/bin/cat]}\n    check: [/bin/true, '{path}']\n",
		"    dir: DIR/set\n    snapshot: false\n    check: [/bin/true, '{path}']\n"
		"    from: [{server: a, path: /x, as: a.yaml}]\n",
	};
	char set[SCRATCH_PATH + 8];
	struct work w;

	(void)state;
	snprintf(set, sizeof(set), "%s/set", dir);
	assert_int_equal(mkdir(set, 0755), 0);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		int r = -1;

		begin(&w, keys[i]);
		add(&w, "yaml", "a: 1\n");
		compose_it(&w);
		for (unsigned n = 1; r; n++) {
			long live = fault_memory.live;

			fault_memory.seen = 0;
			fault_memory.nth = n;
			r = programs_start(&w.options, &w.trial, w.why);
			fault_memory.nth = 0;
			if (r == 0)
				break;
			assert_null(w.trial);
			assert_int_equal(fault_memory.live, live);
			if (r == -EIO) /* of the loop: libevent does not say more */
				assert_non_null(strstr(w.why, " cannot be started: "));
			else if (strcmp(w.why, "out of memory") != 0)
				assert_non_null(strstr(w.why, ": Cannot allocate memory"));
			assert_true(r == -ENOMEM || r == -EIO);
			assert_int_equal(scratch_count(dir, "pullet-"), 0);
			assert_int_equal(scratch_count(set, ""), 0);
			assert_in_range(n, 1, 200);
		}
		assert_int_equal(loop_run(w.loop), 0);
		assert_passed(&w);
		end(&w);
	}
	assert_int_equal(rmdir(set), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, dir_open, dir_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(wanted__is_a_config_with_a_program),
		CASE(check__that_passes__has_seen_the_candidate_as_readers_would),
		CASE(check__of_a_written_text__sees_that),
		CASE(check__of_a_config_without_a_file__sees_it_in_the_runtime_directory),
		CASE(check__of_a_set__sees_a_directory_of_its_documents),
		CASE(check__of_any_words__has_the_path_in_each_of_them),
		CASE(check__of_a_word_that_the_paths_make_too_long__does_not_begin),
		CASE(check__that_refuses__says_what_it_wrote),
		CASE(check__killed_from_outside__says_nothing_about_the_version),
		CASE(check__that_says_much__is_told_by_the_end_of_it),
		CASE(check__that_cannot_be_started__is_no_refusal),
		CASE(check__that_takes_too_long__says_so),
		CASE(check__where_the_candidate_cannot_be_written__does_not_begin),
		CASE(check__in_a_directory_of_another_user__does_not_begin),
		CASE(check__whose_candidate_is_written_halfway__leaves_nothing),
		CASE(free__during_a_check__kills_it_and_removes_the_candidate),
		CASE(free__during_the_check_of_a_set__removes_its_directory),
		CASE(free__during_a_format_program__kills_it),
		CASE(format__run__makes_the_text_of_the_document_as_json),
		CASE(format__run__where_a_sandbox_denies_memory__has_its_input_too),
		CASE(format__run__of_any_bytes__keeps_them),
		CASE(format__run_and_check__the_check_sees_what_was_made),
		CASE(format__run__that_fails__refuses_and_no_check_runs),
		CASE(format__run__whose_check_cannot_begin__is_no_refusal),
		CASE(format__run__of_what_json_does_not_have__does_not_begin),
		CASE(environment__names_config_file_and_generation),
		CASE(start__without_memory__says_so_and_leaves_nothing),
	};

	alarm(60);
	return fault_memory_run(tests, 1);
}
