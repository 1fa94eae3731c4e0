/*
 * The user's programs: process/process.h without processes. What a program is follows from the name
 * of its file: check and probe look at the file for what harms or sickens the application, format
 * puts a line before its input, reload counts.
 */
#include "process/process.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/disk.h"
#include "tests/sim/host.h"
#include "tests/sim/programs.h"
#include "tests/sim/world.h"

struct process {
	struct host_event *event;
	void (*ended)(void *arg, const struct process_result *result);
	void *arg;
	struct process_result result;
	char *output;
};

struct sim_programs sim_programs;

#define SET_FILES 4 /* names f0.yaml... in a directory */

static bool file_has(const char *path, const char *word)
{
	size_t len;
	const char *text = disk_get(path, &len);

	char upper[16] = "";

	for (size_t i = 0; word[i]; i++) /* as `format: env` writes it */
		upper[i] = (char)toupper((unsigned char)word[i]);
	return text &&
	       (memmem(text, len, word, strlen(word)) || memmem(text, len, upper, strlen(upper)));
}

/* Looks into a file, or into all files of a set. */
static bool place_has(const char *path, const char *word)
{
	char name[512];
	bool has = file_has(path, word);

	for (int i = 0; !has && i < SET_FILES; i++) {
		snprintf(name, sizeof(name), "%s/f%d.yaml", path, i);
		has = file_has(name, word);
	}
	return has;
}

static void set_end(struct process_result *r, enum process_end end, int code, const char *why)
{
	r->end = end;
	r->code = code;
	r->ok = end == PROCESS_EXITED && code == 0;
	snprintf(r->why, sizeof(r->why), "%s", r->ok ? "" : why);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* "made by format" and the input; a line of a comment, so that the text stays what it was. */
static void make_product(struct process *p, const struct process_options *o)
{
	static const char line[] = "# made\n";
	size_t len = sizeof(line) - 1;

	p->output = malloc(len + o->input_len + 1);
	if (!p->output) {
		set_end(&p->result, PROCESS_NOT_STARTED, ENOMEM, "could not be started");
		return;
	}
	memcpy(p->output, line, len);
	memcpy(p->output + len, o->input, o->input_len);
	p->output[len + o->input_len] = '\0';
	p->result.output = p->output;
	p->result.output_len = len + o->input_len;
}

static void find_result(struct process *p, const struct process_options *o)
{
	const char *name = base_name(o->argv[0]);
	struct process_result *r = &p->result;
	static const char said[] = "refused: d0_1 is 12345, over.k1 is text\n";

	r->output = r->message = "";
	set_end(r, PROCESS_EXITED, 0, "");
	if (world_once_in(STREAM_PROGRAM, sim_programs.not_started))
		set_end(r, PROCESS_NOT_STARTED, EAGAIN, "could not be started");
	else if (world_once_in(STREAM_PROGRAM, sim_programs.killed))
		set_end(r, PROCESS_SIGNALLED, 9, "was killed by signal 9");
	else if (strcmp(name, "check") == 0 && place_has(o->argv[1], "harmful"))
		set_end(r, PROCESS_EXITED, 1, "exited with 1");
	else if (strcmp(name, "probe") == 0 && place_has(o->argv[1], "sick"))
		set_end(r, PROCESS_EXITED, 1, "exited with 1");
	else if (strcmp(name, "reload") == 0 && world_once_in(STREAM_PROGRAM, sim_programs.fails))
		set_end(r, PROCESS_EXITED, 1, "exited with 1");
	else if (strcmp(name, "format") == 0)
		make_product(p, o);
	if (!r->ok) /* it writes values, which may be masked ones */
		r->output = r->message = said;
	r->output_len = r->ok ? r->output_len : sizeof(said) - 1;
	r->message_len = r->ok ? 0 : sizeof(said) - 1;
}

static void free_process(struct process *p)
{
	free(p->output);
	free(p);
}

static void deliver_result(void *arg)
{
	struct process *p = arg;

	world_trace("program ends: %s", p->result.ok ? "well" : p->result.why);
	p->ended(p->arg, &p->result);
	free_process(p);
}

int process_start(struct loop *l, const struct process_options *o,
	void (*ended)(void *arg, const struct process_result *result), void *arg,
	struct process **ret_process)
{
	struct process *p = calloc(1, sizeof(*p));
	uint64_t took_ms = 1 + world_random(STREAM_PROGRAM, 50);

	(void)l;
	if (!p)
		return -ENOMEM;
	p->ended = ended;
	p->arg = arg;
	find_result(p, o);
	if (world_once_in(STREAM_PROGRAM, sim_programs.hangs)) {
		set_end(&p->result, PROCESS_TIMED_OUT, 0, "timed out");
		took_ms = o->timeout_ms;
	}
	sim_programs.started++;
	world_trace("program starts: %s", o->argv[0]);
	p->result.took_ms = took_ms;
	p->event = host_at(host_now, world.now_us + took_ms * 1000, deliver_result, p);
	*ret_process = p;
	return 0;
}

void process_free(struct process *p)
{
	if (!p)
		return;
	host_cancel(p->event);
	free_process(p);
}
