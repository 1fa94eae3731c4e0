/* pullet status: what the agent says, as a table, and below a config what an operator should know
 * of it. Surprising: --json prints the API's own answer, so that scripts depend on one form only.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../keypath.h"
#include "cli.h"
#include "operate.h"

#define COLUMNS 6

static void usage(FILE *out)
{
	fputs("Usage: pullet status [CONFIG] [--json] [--socket PATH]\n"
	      "Shows what stands, how old it is, and what went wrong last.\n\n"
	      "      --json         the control API's answer\n"
	      "      --socket PATH  the agent's control socket (default "
	      "$PULLET_RUNTIME_DIR/control.sock)\n",
		out);
}

static bool colours(void)
{
	const char *no = getenv("NO_COLOR");

	return isatty(STDOUT_FILENO) && !(no && no[0]);
}

static const char *colour_of(const char *state)
{
	static const struct {
		const char *state, *colour;
	} table[] = {
		{"ok", "\033[32m"},
		{"connected", "\033[32m"},
		{"failing", "\033[33m"},
		{"connecting", "\033[33m"},
		{"waiting", "\033[33m"},
		{"stale", "\033[31m"},
		{"silent", "\033[31m"},
		{"refused", "\033[31m"},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (strcmp(table[i].state, state) == 0)
			return table[i].colour;
	return "";
}

/* "350ms" "12s" "5m" "3h" "2d"; "-" for what is not known. */
static const char *ago(int64_t ms, char text[24])
{
	static const struct {
		int64_t below, unit;
		const char *name;
	} units[] = {
		{1000, 1, "ms"},
		{120 * 1000, 1000, "s"},
		{120 * 60 * 1000, 60 * 1000, "m"},
		{48 * 3600 * 1000, 3600 * 1000, "h"},
		{INT64_MAX, 24 * 3600 * 1000, "d"},
	};

	snprintf(text, 24, "-");
	for (size_t i = 0; ms >= 0 && i < sizeof(units) / sizeof(units[0]); i++) {
		if (ms >= units[i].below)
			continue;
		snprintf(text, 24, "%" PRId64 "%s", ms / units[i].unit, units[i].name);
		break;
	}
	return text;
}

struct row {
	char cell[COLUMNS][72];
};

/* When the next pull comes: "12s", or what it waits for. */
static void next_text(const struct node *c, char *out, size_t size)
{
	int64_t held_ms = client_number(c, "held_ms", 0);
	char text[24];

	if (operate_is_true(c, "running"))
		snprintf(out, size, "running");
	else if (operate_is_true(c, "waiting") && held_ms > 0)
		snprintf(out, size, "held %s", ago(held_ms, text));
	else if (operate_is_true(c, "waiting"))
		snprintf(out, size, "in line");
	else
		snprintf(out, size, "%s", ago(client_number(c, "next_pull_in_ms", -1), text));
}

static void fill_row(const struct node *c, struct row *r)
{
	struct buffer version;
	char text[24];

	snprintf(r->cell[0], sizeof(r->cell[0]), "%s", client_text(c, "name", "?"));
	snprintf(r->cell[1], sizeof(r->cell[1]), "%s", client_text(c, "state", "?"));
	snprintf(r->cell[2], sizeof(r->cell[2]), "%" PRId64, client_number(c, "generation", 0));
	snprintf(r->cell[3], sizeof(r->cell[3]), "%s", ago(client_number(c, "age_ms", -1), text));
	next_text(c, r->cell[4], sizeof(r->cell[4]));
	buffer_init(&version, 1024);
	operate_text(&version, client_text(c, "version", "-"));
	snprintf(r->cell[5], sizeof(r->cell[5]), "%.60s", version.data ? version.data : "-");
	buffer_fini(&version);
}

static void print_row(const struct row *r, const size_t width[COLUMNS], bool colour)
{
	for (size_t i = 0; i < COLUMNS; i++) {
		const char *on = colour && i == 1 ? colour_of(r->cell[i]) : "";
		int pad = i + 1 < COLUMNS ? (int)(width[i] - strlen(r->cell[i]) + 2) : 0;

		printf("%s%s%s%*s", on, r->cell[i], on[0] ? "\033[0m" : "", pad, "");
	}
	putchar('\n');
}

/* ---- what an operator should know ---- */

static void note_error(const struct node *c, struct buffer *out)
{
	const struct node *away = node_find(c, "turned_away");
	const char *error = client_text(c, "last_error", NULL);

	if (!error || (away && strcmp(error, client_text(away, "why", "")) == 0))
		return; /* told by note_away() */
	buffer_append_string(out, "  ");
	if (client_text(c, "cause", NULL))
		buffer_printf(out, "%s: ", client_text(c, "cause", ""));
	operate_lines(out, error);
	buffer_append(out, "\n", 1);
}

static void note_away(const struct node *c, struct buffer *out)
{
	const struct node *away = node_find(c, "turned_away");
	const char *by = away ? client_text(away, "by", "?") : "";

	if (!away)
		return;
	buffer_append_string(out, "  the server's version ");
	operate_text(out, client_text(away, "version", "(without a name)"));
	if (strcmp(by, "pin") == 0) {
		buffer_append_string(out, " is held back by the pin\n");
		return;
	}
	buffer_append_string(out, strcmp(by, "probe") == 0 || strcmp(by, "operator") == 0
					  ? " was taken back by the "
				  : strcmp(by, "rollout") == 0 ? " is held back by the "
							       : " is refused by the ");
	operate_text(out, by);
	buffer_append_string(out, ": ");
	operate_lines(out, client_text(away, "why", "?"));
	buffer_append(out, "\n", 1);
}

static void note_decisions(const struct node *c, struct buffer *out)
{
	const struct node *pin = node_find(c, "pin"), *overrides = node_find(c, "overrides");

	if (pin) {
		buffer_append_string(out, "  pinned");
		operate_decision(out, pin);
		buffer_append(out, "\n", 1);
	}
	for (const struct node *o = overrides ? overrides->first : NULL; o; o = o->next) {
		buffer_append_string(out, "  override of ");
		operate_text(out, client_text(o, "key", "?"));
		operate_decision(out, o);
		buffer_append(out, "\n", 1);
	}
}

static void note_aftermath(const struct node *c, struct buffer *out)
{
	const struct node *reload = node_find(c, "reload"), *probe = node_find(c, "probe");
	const char *state = reload ? client_text(reload, "state", "idle") : "idle", *error;
	char text[24];

	if (strcmp(state, "failed") == 0) {
		buffer_printf(out, "  the application could not be told, trying again in %s: ",
			ago(client_number(reload, "next_ms", -1), text));
		operate_text(out, client_text(reload, "error", "?"));
		buffer_append(out, "\n", 1);
	} else if (strcmp(state, "idle") != 0) {
		buffer_printf(out,
			"  the application has yet to be told of generation %" PRId64 "\n",
			client_number(reload, "pending", 0));
	}
	error = probe && strcmp(client_text(probe, "state", ""), "bad") == 0
			? client_text(probe, "error", NULL)
			: NULL;
	if (error) {
		buffer_printf(out, "  generation %" PRId64 " failed its probe: ",
			client_number(probe, "generation", 0));
		operate_lines(out, error);
		buffer_append(out, "\n", 1);
	}
}

static void print_notes(const struct node *c)
{
	int64_t expires_ms = client_number(c, "expires_ms", 0);
	struct buffer out;

	buffer_init(&out, 1u << 20);
	note_error(c, &out);
	note_away(c, &out);
	note_decisions(c, &out);
	note_aftermath(c, &out);
	if (operate_is_true(c, "drifted"))
		buffer_append_string(&out, "  somebody changed the file, and it is left so\n");
	if (expires_ms > 0) {
		buffer_append_string(&out, "  the signature expires at ");
		operate_time(&out, expires_ms);
		buffer_append(&out, "\n", 1);
	}
	if (out.data)
		fputs(out.data, stdout);
	buffer_fini(&out);
}

static void print_configs(const struct node *configs)
{
	static const struct row head = {
		.cell = {"NAME", "STATE", "GENERATION", "AGE", "NEXT", "VERSION"}};
	size_t width[COLUMNS] = {0};
	bool colour = colours();
	struct row r;

	for (const struct node *c = configs->first; c; c = c->next) {
		fill_row(c, &r);
		for (size_t i = 0; i < COLUMNS; i++)
			if (strlen(r.cell[i]) > width[i])
				width[i] = strlen(r.cell[i]);
	}
	for (size_t i = 0; i < COLUMNS; i++)
		if (strlen(head.cell[i]) > width[i])
			width[i] = strlen(head.cell[i]);
	print_row(&head, width, false);
	for (const struct node *c = configs->first; c; c = c->next) {
		fill_row(c, &r);
		print_row(&r, width, colour);
		print_notes(c);
	}
}

/* Only what an operator would ask about: the server's addresses that rest. */
static void print_servers(const struct node *servers)
{
	char text[24];

	for (const struct node *s = servers->first; s; s = s->next) {
		const struct node *addresses = node_find(s, "addresses");
		int64_t held_ms = client_number(s, "held_ms", 0);

		if (held_ms > 0)
			printf("server %s: left alone for %s, %" PRId64 " pulls wait\n",
				client_text(s, "name", "without a name"), ago(held_ms, text),
				client_number(s, "pending", 0));
		for (const struct node *a = addresses ? addresses->first : NULL; a; a = a->next)
			if (client_number(a, "rests_ms", 0) > 0)
				printf("  %s rests for %s after %" PRId64
				       " failures in a row: %s\n",
					client_text(a, "url", "?"),
					ago(client_number(a, "rests_ms", 0), text),
					client_number(a, "failures_in_a_row", 0),
					client_text(a, "error", "?"));
	}
}

static void print_push(const struct node *push)
{
	char text[24];

	for (const struct node *p = push->first; p; p = p->next) {
		const char *state = client_text(p, "state", "?"),
			   *on = colours() ? colour_of(state) : "";

		printf("push %s: %s%s%s, last message %s ago, %" PRId64 " messages, %" PRId64
		       " heartbeats, %" PRId64 " gaps, %" PRId64 " rebuilds\n",
			client_text(p, "endpoint", "?"), on, state, on[0] ? "\033[0m" : "",
			ago(client_number(p, "last_message_ago_ms", -1), text),
			client_number(p, "messages", 0), client_number(p, "heartbeats", 0),
			client_number(p, "gaps", 0), client_number(p, "rebuilds", 0));
		if (client_text(p, "error", "")[0])
			printf("  %s\n", client_text(p, "error", ""));
	}
}

/* One config: every member, a line each. path: where n stands. */
static void print_details(const struct node *n, struct buffer *path)
{
	size_t len = path->len, number = 0;

	if (n->type < NODE_LIST) {
		struct buffer line;

		if (n->type == NODE_NULL)
			return;
		buffer_init(&line, 1u << 20);
		operate_text(&line, path->data);
		buffer_append_string(&line, ": ");
		operate_text(&line, n->text);
		if (line.data)
			puts(line.data);
		buffer_fini(&line);
		return;
	}
	for (const struct node *child = n->first; child; child = child->next) {
		keypath_append(path, len == 0, child, number++);
		print_details(child, path);
		path->len = len;
	}
}

static void print(const struct node *root, bool one)
{
	const struct node *configs = node_find(root, "configs"), *push = node_find(root, "push");
	const struct node *servers = node_find(root, "servers");
	struct buffer path;

	if (one) {
		buffer_init(&path, 1u << 16);
		print_details(root, &path);
		buffer_fini(&path);
		return;
	}
	if (configs)
		print_configs(configs);
	if (servers)
		print_servers(servers);
	if (push)
		print_push(push);
}

int cli_status(int argc, char **argv)
{
	enum { SOCKET = 256, JSON };
	static const struct option longs[] = {
		{"json", no_argument, NULL, JSON},
		{"socket", required_argument, NULL, SOCKET},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	const char *socket = client_default_socket();
	struct client_answer a;
	char path[256] = "/v1/status";
	bool json = false;
	int opt, r;

	while ((opt = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
		if (opt == JSON)
			json = true;
		else if (opt == SOCKET)
			socket = optarg;
		else if (opt == 'h')
			return usage(stdout), CLI_OK;
		else
			return cli_bad_option(argv[0]);
	}
	if (argc - optind > 1)
		return cli_error(
			CLI_USAGE, argv[0], "one config at most; without one all are shown");
	if (optind < argc)
		snprintf(path, sizeof(path), "/v1/configs/%s", argv[optind]);
	r = client_ask(argv[0], socket, "GET", path, 10000, &a);
	if (r == CLI_OK)
		r = client_exit_code(argv[0], &a);
	if (r == CLI_OK && json)
		fwrite(a.body.data, 1, a.body.len, stdout);
	else if (r == CLI_OK && a.json)
		print(document_root(a.json), optind < argc);
	client_fini(&a);
	return r;
}
