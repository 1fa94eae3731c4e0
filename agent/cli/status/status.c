/* pullet status: the configs, the worst first, each with notes for the operator. Surprising: --json
 * prints the API's answer, so that scripts depend on one form only. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common/cli.h"
#include "cli/common/names.h"
#include "cli/common/operate.h"
#include "cli/common/options.h"
#include "cli/model/show.h"
#include "cli/text/table.h"
#include "cli/text/terminal.h"
#include "cli/text/words.h"

#define GENERATION 2 /* the column that goes first when the terminal is narrow */
#define MAX_OUTPUT (256u << 20)
#define MIN_VERSION 12 /* columns that it keeps then, before the name gives way */
#define MIN_LISTED 10  /* lines, however low the terminal is */

struct options {
	const char *command, *socket;
	bool json, all, names, check, ready;
};

/* The output. WRAP_ENDLESS: no end, nothing is cut. */
struct paper {
	size_t columns, rows;
	bool colour;
};

static const struct option_row status_rows[] = {
	{"all", NULL, "list all configs, however low the terminal is", OPTION_FLAG,
		.at = offsetof(struct options, all)},
	{"names", NULL, "only the names of the configs; without an agent of those with a snapshot",
		OPTION_FLAG, .at = offsetof(struct options, names)},
	OPTION_ROW_JSON(struct options),
	{"check", NULL, "exit 1 unless every config is ok", OPTION_FLAG,
		.at = offsetof(struct options, check)},
	{"ready", NULL, "exit 1 unless every config is published; prints only which is not",
		OPTION_FLAG, .at = offsetof(struct options, ready)},
	OPTION_ROW_SOCKET(struct options),
	{0},
};

static const struct command_line status_line = {
	.usage = "Usage: pullet status [CONFIG] [--all | --names | --json] [--check] [--ready] "
		 "[--socket PATH]\n"
		 "Shows each config's current version, its age, its last error and what is done "
		 "about it.\n",
	.rows = status_rows,
	.max = 1,
	.wants = "one config at most; without one all are shown",
};

/* ---- the table ---- */

static void add_config_row(const struct show_config *c, bool colour, struct table *t)
{
	struct buffer b;
	char text[24];

	buffer_init(&b, 1u << 20);
	table_add_words(t, c->name, WRAP_ENDLESS, "");
	table_add_words(t, c->state, WRAP_ENDLESS, colour ? show_colour(c->state) : "");
	table_printf(t, "%" PRId64, node_integer(c->node, "generation", 0));
	table_add(t, wrap_span(c->age_ms, text), "");
	table_add(t, show_next_pull(c, text), "");
	show_version(node_text(c->node, "version", NULL), &b);
	table_add(t, b.data ? b.data : "", "");
	table_take_error(t, &b);
	buffer_fini(&b);
}

/* A row and the notes below it, into `out`, which is cleared. */
static void add_config_block(const struct show_config *c, const struct table *t, size_t row,
	bool one, const struct paper *paper, struct buffer *out)
{
	struct buffer notes;

	buffer_init(&notes, MAX_OUTPUT);
	buffer_clear(out);
	table_row(t, row, out);
	show_notes(c, one, &notes);
	buffer_take_error(out, &notes);
	if (notes.data)
		wrap_text(out, notes.data, 4, paper->columns);
	buffer_fini(&notes);
}

static void add_omitted(const struct show *s, size_t from, struct buffer *out)
{
	size_t bad = 0;

	for (size_t i = from; i < s->count; i++)
		bad += s->configs[i].rank >= SHOW_FAILING;
	buffer_printf(out, "and %zu more, ", s->count - from);
	if (bad)
		buffer_printf(out, "%zu of them not ok", bad);
	else
		buffer_append_string(out, "all ok");
	buffer_append_string(out, ": --all lists them\n");
}

static void add_configs(
	const struct show *s, const struct paper *paper, bool one, struct buffer *out)
{
	static const char *const heads[] = {
		"NAME", "STATE", "GENERATION", "AGE", "NEXT", "VERSION"};
	static const unsigned char drop[] = {GENERATION, 0};
	size_t left = WRAP_ENDLESS, lines;
	struct buffer block;
	struct table t;

	table_init(&t, heads, sizeof(heads) / sizeof(heads[0]));
	for (size_t i = 0; i < s->count; i++)
		add_config_row(&s->configs[i], paper->colour, &t);
	table_fit(&t, paper->columns, MIN_VERSION, drop);
	if (paper->rows !=
		WRAP_ENDLESS) { /* the prompt, "and 12 more" and the head take a line each */
		left = paper->rows > wrap_count_lines(out) + 3
			       ? paper->rows - wrap_count_lines(out) - 3
			       : 0;
		left = left > MIN_LISTED ? left : MIN_LISTED;
	}
	table_head(&t, SIZE_MAX, out);
	buffer_init(&block, MAX_OUTPUT);
	for (size_t i = 0; i < s->count; i++) {
		add_config_block(&s->configs[i], &t, i, one, paper, &block);
		lines = wrap_count_lines(&block);
		if (i && lines > left) {
			add_omitted(s, i, out);
			break;
		}
		left -= lines < left ? lines : left;
		buffer_take_error(out, &block);
		buffer_append(out, block.data, block.len);
	}
	if (table_error(&t))
		out->error = table_error(&t);
	buffer_fini(&block);
	table_fini(&t);
}

/* ---- the page ---- */

static void add_wrapped(const struct buffer *text, const struct paper *paper, struct buffer *out)
{
	buffer_take_error(out, text);
	if (text->len)
		wrap_text(out, text->data, 2, paper->columns);
}

static void add_agent_head(const struct show *s, const struct paper *paper, struct buffer *out)
{
	struct buffer text;
	char span[24];

	buffer_init(&text, 1u << 20);
	show_headline(s, &text);
	if (show_push_is_good(s))
		buffer_append_string(&text, "; push connected");
	if (node_text(s->root, "version", NULL) && node_find(s->root, "pid")) {
		buffer_append_string(&text, "; pulletd ");
		words_text(&text, node_text(s->root, "version", "?"));
		buffer_printf(
			&text, " up %s", wrap_span(node_integer(s->root, "uptime_ms", -1), span));
	}
	add_wrapped(&text, paper, out);
	buffer_clear(&text);
	show_agent(s, &text);
	add_wrapped(&text, paper, out);
	buffer_fini(&text);
}

static struct paper paper_of(bool all)
{
	struct paper p = {.columns = WRAP_ENDLESS, .rows = WRAP_ENDLESS, .colour = show_colours()};

	terminal_size(&p.columns, &p.rows);
	if (all)
		p.rows = WRAP_ENDLESS;
	return p;
}

static int print_status(const struct options *o, const struct show *s, bool one)
{
	struct paper paper = paper_of(o->all || one);
	struct buffer out;
	int r;

	buffer_init(&out, MAX_OUTPUT);
	if (o->names) {
		for (size_t i = 0; i < s->count; i++) {
			words_text(&out, s->configs[i].name);
			buffer_append_string(&out, "\n");
		}
	} else {
		if (!one)
			add_agent_head(s, &paper, &out);
		add_configs(s, &paper, one, &out);
	}
	if (one && !o->names) {
		buffer_append_string(&out, "\n");
		show_details(s, &out);
	}
	r = cli_output(o->command, &out);
	buffer_fini(&out);
	return r;
}

static int show_answer(const struct options *o, const struct client_answer *a, bool one)
{
	struct show s;
	int r;

	if (o->json && !o->check)
		return cli_output(o->command, &a->body);
	if (show_read(document_root(a->json), &s))
		return cli_error(CLI_FAILED, o->command, "out of memory");
	if (!o->names)
		show_sort(&s, show_by_rank);
	r = o->json ? cli_output(o->command, &a->body) : print_status(o, &s, one);
	if (r == CLI_OK && o->check &&
		(s.ranks[SHOW_QUIET] + s.ranks[SHOW_NOTED] < s.count ||
			show_configuration_is_rejected(&s)))
		r = CLI_FAILED;
	show_fini(&s);
	return r;
}

/* Asks /readyz: "ok", or a line for each config that is not ready. */
static int ask_readiness(const struct options *o)
{
	struct client_answer a;
	struct buffer text;
	int r = client_ask(o->command, o->socket, "GET", "/readyz", 10000, &a);

	buffer_init(&text, MAX_OUTPUT);
	if (r == CLI_OK && client_is_busy(&a)) {
		r = client_exit_code(o->command, &a);
	} else if (r == CLI_OK && a.status != 200) {
		while (a.body.len && a.body.data[a.body.len - 1] == '\n')
			a.body.data[--a.body.len] = '\0';
		words_lines(&text, a.body.data ? a.body.data : "");
		r = cli_error(CLI_FAILED, o->command, "not ready: %s", text.data ? text.data : "");
	}
	buffer_fini(&text);
	client_fini(&a);
	return r;
}

static void print_name(void *arg, const char *name)
{
	(void)arg;
	puts(name);
}

/* Without an agent: the configs with a snapshot beside its socket. */
static void print_snapshots(const struct options *o)
{
	const char *slash = strrchr(o->socket, '/');
	char *dir = slash ? strndup(o->socket, (size_t)(slash - o->socket) + 1) : strdup(".");

	if (dir)
		names_of_snapshots(dir, print_name, NULL);
	free(dir);
}

static int ask_status(const struct options *o, const char *config)
{
	struct client_answer a = {0};
	struct buffer path;
	int r;

	client_path(&path, config ? config : "", "");
	r = path.error ? cli_error(CLI_NOT_FOUND, o->command, "no config has so long a name")
		       : client_ask(o->command, o->socket, "GET", config ? path.data : "/v1/status",
				 10000, &a);
	buffer_fini(&path);
	if (r == CLI_OK)
		r = config ? client_config_code(o->command, o->socket, config, &a)
			   : client_exit_code(o->command, &a);
	else if (r == CLI_UNREACHABLE && o->names && !config)
		print_snapshots(o);
	if (r == CLI_OK)
		r = show_answer(o, &a, config);
	client_fini(&a);
	return r;
}

int cli_status(int argc, char **argv)
{
	struct options o = {.command = argv[0], .socket = client_default_socket()};
	int r = options_read(&status_line, argc, argv, &o);

	if (r >= 0)
		return r;
	if (o.ready && (argc > optind || o.json || o.all || o.names || o.check))
		return options_misused(&status_line, argv[0],
			"--ready is about all configs: give no other option and no config");
	if (o.json + o.all + o.names > 1)
		return options_misused(
			&status_line, argv[0], "--all, --names, --json: one of them");
	return o.ready ? ask_readiness(&o) : ask_status(&o, argv[optind]);
}
