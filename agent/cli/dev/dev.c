/*
 * pullet dev: a directory served, an agent on it, and each value that changes.
 *
 * Surprising: nothing is served, pulled or compared here. `pullet serve` and pulletd run beside
 * this process, the lines they write are its events, and what changed is said by `pullet diff`.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "document/document.h"
#include "origin/origin.h"
#include "origin/tree_watch.h"
#include "cli/common/cli.h"
#include "cli/common/options.h"
#include "cli/dev/program.h"
#include "cli/dev/place.h"
#include "cli/dev/try.h"
#include "cli/serve/served.h"

#define END_MS 5000u /* until a program that does not end is killed */

struct options {
	const char *http;
};

struct dev {
	const char *command, *served; /* the directory */
	bool example;                 /* it is one of ours */
	struct options options;
	struct dev_place place;
	struct served documents;
	char url[128], push[128]; /* of pullet serve; "" = not known yet */
	int dir;
	struct loop *loop;
	struct tree_watch *watch;
	struct program serve, agent;
	sigset_t mask;  /* as it was before */
	bool up, again; /* the agent takes SIGHUP; there is more for it */
	bool tried;     /* what to try was printed */
	bool stopping;
	int result;
};

static const struct option_row dev_rows[] = {
	{"http", "HOST:PORT", "where to serve (default: a free port of 127.0.0.1)", OPTION_TEXT,
		.at = offsetof(struct options, http)},
	{0},
};

static const struct command_line dev_line = {
	.usage = "Usage: pullet dev [DIR] [--http HOST:PORT]\n"
		 "Serves DIR, or an example, runs an agent with one config for each .yaml, .yml "
		 "and .json file\n"
		 "in it, prints each value that changes, and what to try. Needs no configuration "
		 "and no root.\n"
		 "Ctrl-C ends it; nothing is left but DIR.\n",
	.rows = dev_rows,
	.min = 0,
	.max = 1,
	.wants = "name one directory, or none for an example",
};

static void end_dev(struct dev *d, int result)
{
	if (!d->stopping)
		d->result = result;
	d->stopping = true;
	loop_stop(d->loop);
}

/* Who reads what is printed may be gone. */
static void flush_output(struct dev *d)
{
	if (fflush(stdout) || ferror(stdout))
		end_dev(d, CLI_FAILED);
}

/* ---- the agent ---- */

static int write_dev_configuration(struct dev *d)
{
	struct served_from from = {.url = d->url,
		.push = d->push,
		.server_key = "",
		.files = d->place.files,
		.more = "    interval: 10s\n"
			"    mask: ['*[Pp]assword*', '*[Pp]asswd*', '*[Ss]ecret*', "
			"'*[Tt]oken*', '*[Pp]rivate_key*']\n"};
	struct buffer out;
	int r;

	buffer_init(&out, 1u << 20);
	buffer_printf(&out,
		"agent:\n  state_dir: '%s'\n  runtime_dir: '%s'\n  log: {format: json}\n",
		d->place.state, d->place.run);
	r = served_write(&d->documents, &from, &out);
	if (r == 0)
		r = dev_place_write(&d->place, d->place.configuration, out.data, out.len);
	if (r)
		r = cli_error(CLI_FAILED, d->command, "cannot write %s: %s", d->place.configuration,
			strerror(-r));
	buffer_fini(&out);
	return r;
}

static void start_agent(struct dev *d)
{
	char option[] = "-c", *argv[] = {d->place.pulletd, option, d->place.configuration, NULL};
	int r = write_dev_configuration(d);

	if (r == 0) {
		r = program_start(&d->agent, d->loop, argv, &d->mask);
		if (r)
			r = cli_error(CLI_FAILED, d->command, "cannot start %s: %s", argv[0],
				strerror(-r));
	}
	if (r)
		end_dev(d, r);
}

/* A new document: the agent reads its configuration again. */
static void renew_agent(struct dev *d)
{
	d->again = !d->up;
	if (d->up && write_dev_configuration(d) == 0 && d->agent.pid)
		kill(d->agent.pid, SIGHUP);
}

static const struct served_document *document_of(const struct dev *d, const char *config)
{
	for (size_t i = 0; i < d->documents.count; i++)
		if (strcmp(d->documents.documents[i].name, config) == 0)
			return &d->documents.documents[i];
	return NULL;
}

/* What changed since the generation before, by `pullet diff`. */
static void print_dev_changes(struct dev *d, const char *config, uint64_t generation)
{
	char from[24], to[24], name[] = "pullet dev", diff[] = "--socket", text[65];
	char *argv[] = {name, text, from, to, diff, d->place.socket, NULL};

	snprintf(text, sizeof(text), "%s", config);
	snprintf(from, sizeof(from), "%" PRIu64, generation - 1);
	snprintf(to, sizeof(to), "%" PRIu64, generation);
	flush_output(d);
	optind = 0; /* another line for getopt */
	cli_diff(6, argv);
}

static void config_published(struct dev *d, const struct node *line)
{
	const char *config = node_text(line, "config", "");
	const struct served_document *document = document_of(d, config);
	uint64_t generation = strtoull(node_text(line, "generation", "0"), NULL, 10);

	if (!document || generation == 0 || d->stopping)
		return;
	printf("%s: generation %" PRIu64 " of %s", config, generation, document->path);
	if (generation == 1) {
		size_t count = try_count(&d->place, config);

		printf(", %zu value%s\n", count, count == 1 ? "" : "s");
	} else {
		printf("\n");
		print_dev_changes(d, config, generation);
	}
	if (!d->tried)
		d->tried = try_print(&d->place, document, d->served, d->example);
	flush_output(d);
}

/* A line of the agent's log; what is none is a sentence. */
static void take_agent_line(void *arg, char *text)
{
	struct dev *d = arg;
	struct document *line = NULL;
	struct document_error e;
	const struct node *root = NULL;
	const char *message, *why, *config;

	if (document_parse(DOCUMENT_JSON, text, strlen(text), DOCUMENT_OURS, &line, &e) == 0)
		root = document_root(line);
	message = node_text(root, "message", text);
	config = node_text(root, "config", "");
	why = node_text(root, "why", node_text(root, "path", ""));
	if (strcmp(message, "published") == 0) {
		config_published(d, root);
	} else if (strcmp(message, "started") == 0) {
		d->up = true;
		if (d->again)
			renew_agent(d);
	} else if (strcmp(node_text(root, "level", "err"), "info") != 0) {
		cli_note(config[0] ? config : d->command, "%s%s%s", message, why[0] ? ": " : "",
			why);
	}
	document_free(line);
}

static void take_agent_output(void *arg, char *line)
{
	(void)arg, (void)line; /* it has none */
}

/* ---- the server ---- */

static void take_serve_output(void *arg, char *line)
{
	static const char on[] = "publishing on ";
	struct dev *d = arg;
	const char *http = strstr(line, " on http://");

	if (d->push[0])
		return; /* the configuration to paste */
	if (http && strncmp(line, "serving ", 8) == 0)
		snprintf(d->url, sizeof(d->url), "%s", strrchr(line, ' ') + 1);
	if (strncmp(line, on, strlen(on)) == 0)
		snprintf(d->push, sizeof(d->push), "%s", line + strlen(on));
	if (!d->url[0] || !d->push[0])
		return;
	printf("serving %s on %s, changes are pushed on %s\n", d->served, d->url, d->push);
	flush_output(d);
	start_agent(d);
}

static void take_serve_error(void *arg, char *line)
{
	static const char own[] = "pullet serve: ";
	struct dev *d = arg;

	if (strstr(line, "changed path=") || strstr(line, "removed path="))
		return; /* the agent says what it makes of it */
	if (line[0] == '<' && line[1] && line[2] == '>')
		line += 3;
	cli_note(
		d->command, "%s", strncmp(line, own, strlen(own)) == 0 ? line + strlen(own) : line);
}

static void served_document_changed(void *arg, const char *path, const char *etag)
{
	struct dev *d = arg;

	if (!etag) {
		if (served_add(&d->documents, path) == SERVED_KNOWN)
			cli_note(d->command, "%s/%s is gone: its last version stays published",
				d->served, path);
		return;
	}
	switch (served_add(&d->documents, path)) {
	case SERVED_NEW:
		renew_agent(d);
		break;
	case SERVED_ODD:
		dev_place_note_odd(d->command, d->served, path, 0);
		break;
	case SERVED_FULL:
		dev_place_note_full(d->command, d->served);
		break;
	case SERVED_KNOWN:
	case SERVED_OTHER:
		break;
	}
}

/* ---- start, stop ---- */

static void dev_interrupted(void *arg, int number)
{
	(void)number;
	end_dev(arg, CLI_OK);
}

static void report_end(struct dev *d, const struct program *c, const char *name)
{
	int code = WIFEXITED(c->status) ? WEXITSTATUS(c->status) : 0;

	if (d->stopping)
		return;
	if (code == 0)
		cli_note(d->command, "%s was ended from outside: start this again", name);
	end_dev(d, code ? code : CLI_FAILED);
}

static void dev_child_ended(void *arg, int number)
{
	struct dev *d = arg;

	(void)number;
	if (program_reap(&d->agent))
		report_end(d, &d->agent, "pulletd");
	if (program_reap(&d->serve))
		report_end(d, &d->serve, "pullet serve");
}

static int start_loop(struct dev *d)
{
	static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	int r = 0;

	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_DFL); /* ignored, it would hide the end of a child */
	sigprocmask(SIG_SETMASK, NULL, &d->mask);
	d->loop = loop_new(&sys_real);
	for (size_t i = 0; d->loop && r == 0 && i < sizeof(ends) / sizeof(ends[0]); i++)
		r = loop_on_signal(d->loop, ends[i], dev_interrupted, d);
	if (d->loop && r == 0)
		r = loop_on_signal(d->loop, SIGCHLD, dev_child_ended, d);
	return d->loop && r == 0
		       ? CLI_OK
		       : cli_error(CLI_FAILED, d->command, "out of memory or descriptors");
}

/* "conf/" as "conf". */
static void trim_slashes(char *path)
{
	size_t len = strlen(path);

	while (len > 1 && path[len - 1] == '/')
		path[--len] = '\0';
}

/* Opens the directory and finds what is in it. */
static int find_documents(struct dev *d)
{
	int r;

	d->dir = origin_open(d->served);
	if (d->dir < 0)
		return dev_place_cannot_open(d->command, d->served, -d->dir);
	served_find(&d->documents, d->dir);
	if (d->documents.odd_count)
		dev_place_note_odd(
			d->command, d->served, d->documents.odd, d->documents.odd_count - 1);
	if (d->documents.full)
		dev_place_note_full(d->command, d->served);
	if (d->documents.count == 0)
		return cli_error(CLI_FAILED, d->command,
			"there is no .yaml, .yml or .json file in %s that can be served: make one "
			"(echo 'greeting: hello' >web.yaml), or name no directory for an example",
			d->served);
	r = tree_watch_start(d->loop, d->served, d->dir, 0, served_document_changed, d, &d->watch);
	return r ? cli_error(CLI_FAILED, d->command, "cannot watch %s: %s", d->served,
			   tree_watch_explain(-r))
		 : CLI_OK;
}

static int start_serve(struct dev *d)
{
	char serve[] = "serve", http[] = "--http", where[256], push[] = "--push",
	     to[] = "tcp://127.0.0.1:0", rest[] = "--";
	char *argv[] = {d->place.pullet, serve, http, where, push, to, rest,
		(char *)(uintptr_t)d->served, NULL};
	int r;

	snprintf(where, sizeof(where), "%s", d->options.http);
	r = program_start(&d->serve, d->loop, argv, &d->mask);
	return r ? cli_error(CLI_FAILED, d->command, "cannot start %s: %s", argv[0], strerror(-r))
		 : CLI_OK;
}

static void run_dev(struct dev *d)
{
	int r = dev_place_make(d->command, &d->place);

	if (r == CLI_OK && !d->served) {
		d->example = true;
		d->served = d->place.example;
		r = dev_place_make_example(d->command, &d->place);
	}
	if (r == CLI_OK)
		r = start_loop(d);
	if (r == CLI_OK)
		r = find_documents(d);
	if (r == CLI_OK)
		r = start_serve(d);
	d->result = r;
	if (r == CLI_OK && loop_run(d->loop))
		d->result = CLI_FAILED;
	d->stopping = true;
	program_end(&d->agent, END_MS);
	program_end(&d->serve, END_MS);
	tree_watch_stop(d->watch);
	loop_free(d->loop);
	if (d->dir >= 0)
		close(d->dir);
	dev_place_remove(&d->place);
}

int cli_dev(int argc, char **argv)
{
	static const struct descriptors_need needs[] = {{"event loops", 2 * LOOP_DESCRIPTORS},
		{"programs", 8}, {"directory and files", CLI_FILES + 4}};
	struct options o = {.http = "127.0.0.1:0"};
	int r = options_read(&dev_line, argc, argv, &o);
	struct dev *d;

	if (r >= 0)
		return r;
	r = cli_room(argv[0], needs, sizeof(needs) / sizeof(needs[0]));
	if (r)
		return r;
	d = calloc(1, sizeof(*d));
	if (!d)
		return cli_error(CLI_FAILED, argv[0], "out of memory");
	d->command = argv[0];
	d->served = argv[optind];
	if (argv[optind])
		trim_slashes(argv[optind]);
	d->options = o;
	d->dir = -1;
	program_init(&d->serve, take_serve_output, take_serve_error, d);
	program_init(&d->agent, take_agent_output, take_agent_line, d);
	run_dev(d);
	r = d->result;
	free(d);
	return r;
}
