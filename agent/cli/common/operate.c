/* What the commands about versions share. */
#include "cli/common/operate.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/common/cli.h"
#include "cli/text/words.h"

#define MAX_OUTPUT (256u << 20)

int operate_options(const struct command_line *line, int argc, char **argv, void *target)
{
	struct operate *o = target;
	int r;

	o->command = argv[0];
	o->socket = client_default_socket();
	o->timeout_ms = 60000;
	r = options_read(line, argc, argv, target);
	o->arguments = argv + optind;
	o->count = argc - optind;
	o->config = o->arguments[0];
	return r;
}

/* ---- the request ---- */

/* Names the users who see values, when the agent hid them from this one. */
static void explain_hidden_values(const struct operate *o, const struct node *root)
{
	const struct node *values = node_member(root, "values", NODE_BOOL);

	if (values && !values->boolean)
		cli_note(o->command,
			"values are hidden: root, the agent's user and members of the group that "
			"agent: {operators: GROUP} names see them");
}

int operate_ask(const struct operate *o, const char *method, struct buffer *path,
	int (*show)(const struct operate *o, const struct node *root, struct buffer *out))
{
	struct client_answer a = {0};
	struct buffer out;
	int r, shown = CLI_OK;

	if (path->error) {
		buffer_fini(path);
		return cli_error(CLI_USAGE, o->command, "that is too long for a request");
	}
	/* the agent ends the wait itself: 10 s more for its answer */
	r = client_ask(o->command, o->socket, method, path->data, o->timeout_ms + 10000, &a);
	buffer_fini(path);
	if (r == CLI_OK)
		r = client_config_code(o->command, o->socket, o->config, &a);
	buffer_init(&out, MAX_OUTPUT);
	if (r == CLI_OK && a.json)
		shown = show(o, document_root(a.json), &out);
	if (r == CLI_OK && !o->json)
		explain_hidden_values(o, document_root(a.json));
	if (r == CLI_OK)
		r = cli_output(o->command, o->json ? &a.body : &out);
	buffer_fini(&out);
	client_fini(&a);
	return r ? r : shown;
}

int operate_ask_each(struct operate *o,
	int (*ask)(struct operate *o, const char *name, const struct node *config))
{
	struct client_answer a;
	int r = client_ask(o->command, o->socket, "GET", "/v1/status", 10000, &a), worst;

	if (r == CLI_OK)
		r = client_exit_code(o->command, &a);
	worst = r;
	for (const struct node *c = r ? NULL : node_first(document_root(a.json), "configs"); c;
		c = c->next) {
		r = ask(o, node_text(c, "name", ""), c);
		worst = worst ? worst : r;
	}
	client_fini(&a);
	return worst;
}

/* ---- answers ---- */

/* Of an override: what may not have been meant. */
static void show_effect(const struct operate *o, const struct node *root, struct buffer *out)
{
	const char *near = node_text(root, "near_key", NULL);
	int64_t keys = node_integer(root, "replaced_keys", 0),
		items = node_integer(root, "replaced_items", 0);

	if (node_is_true(root, "adds_key")) {
		buffer_append_string(
			out, "  the version before had no such key: is its name right?");
		if (near) {
			buffer_append_string(out, " There is ");
			words_text(out, near);
		}
		buffer_append(out, "\n", 1);
	}
	if (keys)
		buffer_printf(out,
			"  it replaces a mapping of %" PRId64
			": readers see none of its keys until it ends\n",
			keys);
	if (items)
		buffer_printf(out, "  it replaces a list of %" PRId64 " until it ends\n", items);
	if (!node_is_true(root, "adds_key") && !keys && !items)
		return;
	buffer_append_string(out, "  `pullet override ");
	words_text(out, o->config);
	buffer_append_string(out, " '");
	words_text(out, o->arguments[1]); /* the key alone by now */
	buffer_append_string(out, "' --remove` ends it now\n");
}

/* After a rollback. */
static void show_overridden(const struct node *root, struct buffer *out)
{
	const struct node *first = node_first(root, "overridden");

	for (const struct node *n = first; n; n = n->next) {
		if (n->type != NODE_STRING)
			continue;
		buffer_append_string(out, n == first ? "  overrides stay in effect: " : ", ");
		words_text(out, n->text);
	}
	buffer_append_string(out, first ? "\n" : "");
}

int operate_show_current(const struct operate *o, const struct node *root, struct buffer *out)
{
	words_text(out, o->config);
	buffer_printf(
		out, ": generation %" PRId64 " is current: ", node_integer(root, "generation", 0));
	words_text(out, node_text(root, "origin", "?"));
	buffer_append(out, "\n", 1);
	show_effect(o, root, out);
	show_overridden(root, out);
	operate_forward(out, root);
	return CLI_OK;
}

void operate_address(const char *url, struct buffer *out)
{
	const char *host = strstr(url, "://");
	char text[300];
	size_t len;

	if (strncmp(url, "http", 4) != 0 || !host)
		return;
	host += strlen("://");
	len = strcspn(host, "/?#");
	for (size_t i = 0; i < len; i++)
		if (host[i] == '@') {
			host += i + 1;
			len -= i + 1;
			i = 0;
		}
	snprintf(text, sizeof(text), "%.*s//%.*s", (int)strcspn(url, "/"), url, (int)len, host);
	buffer_append_string(out, " (at ");
	words_text(out, text);
	buffer_append(out, ")", 1);
}

void operate_ended(const char *what, const struct node *root, struct buffer *out)
{
	const struct node *ended = node_find(root, "ended");

	if (!ended)
		return;
	buffer_printf(out, "  this ended the %s", what);
	operate_decision(out, ended);
	buffer_append(out, "\n", 1);
}

const char *operate_why(const struct node *rejected)
{
	const char *by = node_text(rejected, "by", "");
	bool by_operator = strcmp(by, "operator") == 0;

	if (strcmp(by, "pin") == 0)
		return "the current version is kept until it ends";
	return node_text(rejected, "why", by_operator ? "rolled back by the operator" : "?");
}

void operate_append_by(
	const struct node *rejected, const char *is, const char *was, struct buffer *out)
{
	const char *by = node_text(rejected, "by", "?");
	bool held = strcmp(by, "pin") == 0 || strcmp(by, "rollout") == 0;

	if (strcmp(by, "operator") == 0) {
		buffer_append_string(out, was);
		return;
	}
	if (strcmp(by, "probe") == 0)
		buffer_printf(out, "%srolled back by the ", was);
	else
		buffer_printf(out, "%s%s the ", is, held ? "held by" : "rejected by");
	words_text(out, by);
	buffer_append_string(out, ": ");
}

void operate_forward(struct buffer *out, const struct node *entry)
{
	for (const struct node *n = node_first(entry, "forward"); n; n = n->next) {
		if (n->type != NODE_STRING)
			continue;
		buffer_append_string(out, "  ");
		words_text(out, n->text);
		buffer_append(out, "\n", 1);
	}
}

void operate_decision(struct buffer *out, const struct node *entry)
{
	const char *by = node_text(entry, "by", NULL), *reason = node_text(entry, "reason", "");
	int64_t until_ms = node_integer(entry, "until_ms", 0);

	if (by) {
		buffer_append_string(out, " by ");
		words_text(out, by);
	}
	if (until_ms > 0) {
		buffer_append_string(out, " until ");
		words_time(out, until_ms);
	}
	if (reason[0]) {
		buffer_append_string(out, ": ");
		words_text(out, reason);
	}
}
