/* pullet status: what the agent says, as a table. Surprising: --json prints the API's own answer,
 * so that scripts depend on one form only. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "client.h"

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
	const char *error;
};

static bool is_true(const struct node *map, const char *name)
{
	const struct node *n = node_find(map, name);

	return n && n->type == NODE_BOOL && n->boolean;
}

/* When the next pull comes: "12s", or what it waits for. */
static void next_text(const struct node *c, char *out, size_t size)
{
	int64_t held_ms = client_number(c, "held_ms", 0);
	char text[24];

	if (is_true(c, "running"))
		snprintf(out, size, "running");
	else if (is_true(c, "waiting") && held_ms > 0)
		snprintf(out, size, "held %s", ago(held_ms, text));
	else if (is_true(c, "waiting"))
		snprintf(out, size, "in line");
	else
		snprintf(out, size, "%s", ago(client_number(c, "next_pull_in_ms", -1), text));
}

static void fill_row(const struct node *c, struct row *r)
{
	char text[24];

	snprintf(r->cell[0], sizeof(r->cell[0]), "%s", client_text(c, "name", "?"));
	snprintf(r->cell[1], sizeof(r->cell[1]), "%s", client_text(c, "state", "?"));
	snprintf(r->cell[2], sizeof(r->cell[2]), "%" PRId64, client_number(c, "generation", 0));
	snprintf(r->cell[3], sizeof(r->cell[3]), "%s", ago(client_number(c, "age_ms", -1), text));
	next_text(c, r->cell[4], sizeof(r->cell[4]));
	snprintf(r->cell[5], sizeof(r->cell[5]), "%.60s", client_text(c, "version", "-"));
	r->error = client_text(c, "last_error", NULL);
}

static void print_row(const struct row *r, const size_t width[COLUMNS], bool colour)
{
	for (size_t i = 0; i < COLUMNS; i++) {
		const char *on = colour && i == 1 ? colour_of(r->cell[i]) : "";
		int pad = i + 1 < COLUMNS ? (int)(width[i] - strlen(r->cell[i]) + 2) : 0;

		printf("%s%s%s%*s", on, r->cell[i], on[0] ? "\033[0m" : "", pad, "");
	}
	putchar('\n');
	if (r->error)
		printf("  %s\n", r->error);
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
	}
}

/* One config: every member, a line each. */
static void print_details(const struct node *map, const char *prefix)
{
	for (const struct node *n = map->first; n; n = n->next)
		if (n->type == NODE_MAP)
			print_details(n, n->key);
		else if (n->type != NODE_NULL)
			printf("%s%s%s: %s\n", prefix, prefix[0] ? "." : "", n->key,
				n->text ? n->text : "");
}

static void print(const struct node *root, bool one)
{
	const struct node *configs = node_find(root, "configs"), *push = node_find(root, "push");
	const struct node *servers = node_find(root, "servers");

	if (one) {
		print_details(root, "");
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
