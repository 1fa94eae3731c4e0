/*
 * Format program and check. Surprising: the check's candidate is written as any published file is,
 * so that the check sees what readers would see, mode and owner included.
 */
#include "verify/programs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sys.h"
#include "process/process.h"
#include "text/sentence.h"
#include "files/trusted.h"

#define MAX_PRODUCT (256u << 20)
#define PATH "{path}"
#define LAST 600 /* bytes of a program's output in a sentence */

struct programs {
	struct programs_options o;
	struct process *process;
	char *path;       /* of the candidate on the file system; NULL = none */
	const char *name; /* its last part; NULL = it was not made */
	int parent;       /* the directory that it lies in; -1 = none */
	int set;          /* itself, when it is a set of files; -1 = it is not */
	char **argv;      /* of the check, with the path in it */
	char **env;
};

bool programs_wanted(const struct settings_config *config)
{
	return config->format_run.argv || config->check.argv;
}

/* ---- texts ---- */

static void free_texts(char **texts)
{
	for (char **t = texts; t && *t; t++)
		free(*t);
	free(texts);
}

char **programs_environment(
	const char *name, const char *file, uint64_t generation, const char *keys, size_t keys_len)
{
	char **env = calloc(5, sizeof(*env)), **to = env;
	int r;

	if (!env)
		return NULL;
	r = asprintf(to++, "PULLET_CONFIG_NAME=%s", name);
	if (r >= 0)
		r = asprintf(to++, "PULLET_GENERATION=%llu", (unsigned long long)generation);
	if (r >= 0 && keys)
		r = asprintf(to++, "PULLET_CHANGED_KEYS=%.*s", (int)keys_len, keys);
	if (r >= 0 && file)
		r = asprintf(to, "PULLET_FILE=%s", file);
	if (r >= 0)
		return env;
	free_texts(env);
	return NULL;
}

void programs_environment_free(char **env)
{
	free_texts(env);
}

/* The word with each {path} replaced. */
static char *replace_path(const char *word, const char *path)
{
	struct buffer b;
	const char *at;

	buffer_init(&b, 1u << 20);
	while ((at = strstr(word, PATH))) {
		buffer_append(&b, word, (size_t)(at - word));
		buffer_append_string(&b, path);
		word = at + strlen(PATH);
	}
	if (buffer_append_string(&b, word)) {
		buffer_fini(&b);
		return NULL;
	}
	return b.data ? b.data : strdup("");
}

static char **replace_paths(char *const *argv, const char *path)
{
	size_t n = 0;
	char **made;

	while (argv[n])
		n++;
	made = calloc(n + 1, sizeof(*made));
	for (size_t i = 0; made && i < n; i++) {
		made[i] = replace_path(argv[i], path);
		if (!made[i]) {
			free_texts(made);
			return NULL;
		}
	}
	return made;
}

/* ---- the candidate on the file system ---- */

static int write_file(const struct programs *t, int dir, const char *name, const void *data,
	size_t len, char why[FILE_WHY])
{
	const struct settings_config *c = t->o.config;
	const struct file_options options = {.mode = c->mode, .uid = c->uid, .gid = c->gid};
	int r = file_replace(loop_sys(t->o.loop), dir, name, data ? data : "", len, &options, why);

	return r < 0 ? r : 0;
}

static int fail_set(const struct programs *t, const char *what, int error, char why[FILE_WHY])
{
	char remedy[FILE_REMEDY];

	file_remedy(remedy, error, false);
	snprintf(why, FILE_WHY, "cannot %s %.200s: %s", what, t->path, remedy);
	return -error;
}

static int write_set(struct programs *t, char why[FILE_WHY])
{
	const struct sys *sys = loop_sys(t->o.loop);
	const struct candidate *c = t->o.candidate;
	const char *name;
	int r = 0;

	if (asprintf(&t->path, "%s/" FILE_SET_CHECKED "%016llx", t->o.config->dir,
		    (unsigned long long)sys->random()) < 0) {
		t->path = NULL;
		snprintf(why, FILE_WHY, "out of memory");
		return -ENOMEM;
	}
	t->parent = trusted_open_parent(sys, t->path, TRUSTED_SET, &name, why);
	if (t->parent < 0)
		return t->parent;
	if (sys->mkdirat(t->parent, name, 0700))
		return fail_set(t, "make", errno, why);
	t->name = name;
	t->set = trusted_open_below(sys, t->parent, t->name);
	if (t->set < 0) {
		r = t->set;
		t->set = -1;
		return fail_set(t, "open", -r, why);
	}
	for (size_t i = 0; r == 0 && i < c->version.part_count; i++) {
		const struct compose_piece *p = &c->pieces[i];

		if (!p->signature && !p->facts->absent)
			r = write_file(t, t->set, t->o.config->layers[p->layer].as, p->data,
				p->facts->len, why);
	}
	if (r == 0 && sys->fchmod(t->set, 0755))
		r = fail_set(t, "set the mode of", errno, why);
	return r;
}

/* ".NAME.pullet-0123456789abcdef" beside `target`: the temporary file of a replacement that never
 * comes; what a crash leaves of it is removed at the next start as any such file is. */
static int write_beside(
	struct programs *t, const char *target, enum trusted_use use, char why[FILE_WHY])
{
	const struct settings_config *c = t->o.config;
	const struct file_options options = {.mode = c->mode, .uid = c->uid, .gid = c->gid};
	const struct buffer *text = candidate_text(t->o.candidate);
	const struct sys *sys = loop_sys(t->o.loop);
	char temporary[NAME_MAX + 1];
	const char *name;
	int r;

	t->parent = trusted_open_parent(sys, target, use, &name, why);
	if (t->parent < 0)
		return t->parent;
	r = file_prepare(sys, t->parent, name, text->data ? text->data : "", text->len, &options,
		temporary, why);
	if (r)
		return r;
	if (asprintf(&t->path, "%.*s%s", (int)(name - target), target, temporary) < 0) {
		t->path = NULL;
		sys->unlinkat(t->parent, temporary, 0);
		snprintf(why, FILE_WHY, "out of memory");
		return -ENOMEM;
	}
	t->name = t->path + (name - target);
	return 0;
}

static int write_candidate(struct programs *t, char why[FILE_WHY])
{
	const struct settings_config *c = t->o.config;
	char snapshot[PATH_MAX];

	if (c->dir)
		return write_set(t, why);
	if (c->file)
		return write_beside(t, c->file, TRUSTED_FILE, why);
	snprintf(snapshot, sizeof(snapshot), "%s/%s.snap", t->o.runtime_dir, c->name);
	return write_beside(t, snapshot, TRUSTED_OWN, why);
}

static void remove_candidate(struct programs *t)
{
	const struct candidate *c = t->o.candidate;
	const struct sys *sys = loop_sys(t->o.loop);

	for (size_t i = 0; t->set >= 0 && i < c->version.part_count; i++)
		if (!c->pieces[i].signature)
			sys->unlinkat(t->set, t->o.config->layers[c->pieces[i].layer].as, 0);
	if (t->set >= 0)
		sys->close(t->set);
	if (t->parent < 0)
		return;
	if (t->name)
		sys->unlinkat(t->parent, t->name, t->o.config->dir ? AT_REMOVEDIR : 0);
	sys->close(t->parent);
}

/* ---- the programs ---- */

static void end_programs(struct programs *t, const struct programs_result *result)
{
	void (*ended)(void *, const struct programs_result *) = t->o.ended;
	void *arg = t->o.arg;

	t->process = NULL; /* it is over */
	programs_free(t);
	ended(arg, result);
}

void programs_scrub(void (*scrub)(void *arg, struct buffer *out, const char *text, size_t len),
	void *arg, struct buffer *out, const char *text, size_t len)
{
	if (scrub && len)
		scrub(arg, out, text, len);
	else
		buffer_append(out, text, len);
}

/* From outside, as where memory is short or the service is stopped; or a shell says so of what it
 * ran. */
static bool was_killed(const struct process_result *p)
{
	static const int from_outside[] = {SIGKILL, SIGTERM, SIGINT, SIGHUP};
	int number = p->end == PROCESS_SIGNALLED ? p->code
		     : p->end == PROCESS_EXITED  ? p->code - 128
						 : 0;

	for (size_t i = 0; i < sizeof(from_outside) / sizeof(from_outside[0]); i++)
		if (number == from_outside[i])
			return true;
	return false;
}

/* "PROGRAM exited with 1: the last of what it wrote". A program that did not run, or not to its
 * end, says nothing about the version. */
static void describe_program_failure(const struct programs *t, const struct process_result *p,
	const char *program, enum verify_check check, struct programs_result *ret)
{
	const char *slash = strrchr(program, '/');
	bool checks = check == CHECK_PROGRAM; /* else what it wrote is the document */
	char shown[LAST + SENTENCE_WORDS];
	struct buffer said;
	size_t from;

	buffer_init(&said, 4u * PROGRAMS_MAX_OUTPUT);
	programs_scrub(t->o.scrub, t->o.arg, &said, checks ? p->output : p->message,
		checks ? p->output_len : p->message_len);
	while (said.len && strchr(" \n", said.data[said.len - 1]))
		said.len--;
	from = said.len > LAST ? said.len - LAST : 0;
	ret->rejected = (p->end == PROCESS_EXITED || p->end == PROCESS_SIGNALLED) && !was_killed(p);
	ret->timed_out = p->end == PROCESS_TIMED_OUT;
	ret->check = check;
	snprintf(ret->why, sizeof(ret->why), "%s %s%s", slash ? slash + 1 : program, p->why,
		sentence_quote_output(
			shown, sizeof(shown), said.len ? said.data + from : "", said.len - from));
	buffer_fini(&said);
}

static int start_program(struct programs *t, const struct process_options *options,
	void (*ended)(void *arg, const struct process_result *result), char why[FILE_WHY])
{
	int r = process_start(t->o.loop, options, ended, t, &t->process);

	if (r)
		snprintf(why, FILE_WHY, "%.200s cannot be started: %s%s", options->argv[0],
			strerror(-r), sys_advice(-r));
	return r;
}

static void check_ended(void *arg, const struct process_result *p)
{
	struct programs_result result = {.why = ""};
	struct programs *t = arg;

	if (!p->ok)
		describe_program_failure(t, p, t->argv[0], CHECK_PROGRAM, &result);
	end_programs(t, &result);
}

static int start_check(struct programs *t, char why[FILE_WHY])
{
	struct process_options options = {
		.env = t->env,
		.max_output = PROGRAMS_MAX_OUTPUT,
		.timeout_ms = t->o.config->check.timeout_ms,
	};
	int r = write_candidate(t, why);

	if (r)
		return r;
	options.argv = t->argv = replace_paths(t->o.config->check.argv, t->path);
	if (!t->argv) {
		snprintf(why, FILE_WHY, "out of memory");
		return -ENOMEM;
	}
	return start_program(t, &options, check_ended, why);
}

static void format_ended(void *arg, const struct process_result *p)
{
	struct programs_result result = {.why = ""};
	struct programs *t = arg;
	struct buffer *text = &t->o.candidate->text;
	char why[FILE_WHY];
	int r = 0;

	if (!p->ok) {
		describe_program_failure(
			t, p, t->o.config->format_run.argv[0], CHECK_FORMAT, &result);
	} else if (p->output_len == 0) {
		result.rejected = true;
		result.check = CHECK_FORMAT;
		snprintf(result.why, sizeof(result.why), "%s wrote nothing",
			t->o.config->format_run.argv[0]);
	} else {
		t->o.candidate->has_text = true;
		r = buffer_append(text, p->output, p->output_len);
		snprintf(why, sizeof(why), "out of memory");
		if (r == 0 && t->o.config->check.argv) {
			r = start_check(t, why);
			if (r == 0)
				return;
		}
		if (r)
			snprintf(result.why, sizeof(result.why), "%s", why);
	}
	end_programs(t, &result);
}

static int start_format(struct programs *t, struct buffer *json, char why[FILE_WHY])
{
	const struct settings_command *run = &t->o.config->format_run;
	const struct process_options options = {
		.argv = run->argv,
		.env = t->env,
		.input = json->data,
		.input_len = json->len,
		.input_dir = t->o.runtime_dir,
		.product = true,
		.max_output = CANDIDATE_MAX_BYTES - t->o.candidate->body.len, /* kept with it */
		.timeout_ms = run->timeout_ms,
	};

	return start_program(t, &options, format_ended, why);
}

int programs_start(
	const struct programs_options *options, struct programs **ret_programs, char why[FILE_WHY])
{
	struct programs *t = calloc(1, sizeof(*t));
	const struct settings_config *c = options->config;
	struct buffer json;
	int r;

	snprintf(why, FILE_WHY, "out of memory");
	if (!t)
		return -ENOMEM;
	t->o = *options;
	t->parent = t->set = -1;
	t->env = programs_environment(c->name, settings_place(c), options->generation, NULL, 0);
	buffer_init(&json, MAX_PRODUCT);
	r = t->env ? 0 : -ENOMEM;
	if (r == 0 && c->format_run.argv) {
		r = document_write(options->candidate->composition.root, DOCUMENT_JSON, &json);
		if (r == 0)
			r = start_format(t, &json, why);
		else if (r == -EINVAL)
			snprintf(why, FILE_WHY, "it holds a number that JSON does not have");
	} else if (r == 0) {
		r = start_check(t, why);
	}
	buffer_fini(&json);
	if (r)
		programs_free(t);
	else
		*ret_programs = t;
	return r;
}

void programs_free(struct programs *t)
{
	if (!t)
		return;
	process_free(t->process);
	remove_candidate(t);
	free_texts(t->argv);
	free_texts(t->env);
	free(t->path);
	free(t);
}
