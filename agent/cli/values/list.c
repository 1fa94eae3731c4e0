/* pullet list: the values of a config, a line each. Surprising: lists and maps have no line of
 * their own; --json shows the empty ones. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common/cli.h"
#include "cli/common/options.h"
#include "cli/values/kept.h"
#include "cli/values/write.h"
#include "text/escape.h"

struct options {
	bool json;
};

static const struct option_row list_rows[] = {
	{"json", NULL, "one object: key to value", OPTION_FLAG,
		.at = offsetof(struct options, json)},
	{0},
};

static const struct command_line list_line = {
	.usage = "Usage: pullet list CONFIG [PREFIX] [--json]\n"
		 "Prints the values of a config as KEY=VALUE lines in key order, control "
		 "characters escaped;\n"
		 "with PREFIX only keys that begin with it. Needs no running agent.\n"
		 "CONFIG is a name, or a path of a snapshot if there is a '/' in it.\n",
	.rows = list_rows,
	.min = 1,
	.max = 2,
};

struct listing {
	struct buffer *out;
	struct node root, *nodes; /* with --json; nodes has room for all */
	size_t found, count, max;
	const char *not_finite;
};

/* Appends text on one line; a key's backslashes stay, so that it can be given to `get`. */
static void append_escaped_line(struct buffer *out, const char *s, size_t len, bool key)
{
	static const char from[] = "\n\r\t\\", to[] = "nrt\\";
	const size_t count = sizeof(from) - 1 - key;

	while (len) {
		const char *short_form = NULL;
		size_t n = 0;

		while (n < len && !(short_form = memchr(from, s[n], count)))
			n++;
		escape_append(out, s, n);
		if (short_form) {
			buffer_printf(out, "\\%c", to[short_form - from]);
			n++;
		}
		s += n;
		len -= n;
	}
}

static bool has_children(const struct pullet_value *v)
{
	return v->type == PULLET_LIST || v->type == PULLET_MAP;
}

static int add_value_line(const char *key, size_t key_len, const struct pullet_value *v, void *arg)
{
	struct listing *l = arg;

	l->found++;
	if (has_children(v))
		return 0;
	append_escaped_line(l->out, key, key_len, true);
	buffer_append(l->out, "=", 1);
	append_escaped_line(l->out, v->text, v->len, false);
	return buffer_append(l->out, "\n", 1);
}

static int add_json_member(const char *key, size_t key_len, const struct pullet_value *v, void *arg)
{
	struct listing *l = arg;
	struct node *n = &l->nodes[l->count];

	l->found++;
	if ((has_children(v) && v->count) || l->count == l->max)
		return 0;
	*n = export_node(v);
	n->key = key;
	n->key_len = key_len;
	if (l->count++)
		n[-1].next = n;
	if (v->type == PULLET_DOUBLE && !isfinite(v->number))
		l->not_finite = key;
	return 0;
}

static int list_json(struct pullet *p, const char *command, const char *prefix, struct listing *l)
{
	l->max = pullet_count(p);
	l->nodes = calloc(l->max + 1, sizeof(*l->nodes));
	if (!l->nodes)
		return cli_error(CLI_FAILED, command, "out of memory");
	pullet_each(p, prefix, add_json_member, l);
	l->root.type = NODE_MAP;
	l->root.first = l->count ? l->nodes : NULL;
	if (l->not_finite)
		return cli_error(CLI_FAILED, command,
			"'%s' is no finite number: JSON has none such", l->not_finite);
	document_write(&l->root, DOCUMENT_JSON, l->out);
	return CLI_OK;
}

static int list_values(const char *command, const char *config, const char *prefix, bool json)
{
	struct buffer out;
	struct listing l = {.out = &out};
	struct pullet *p = NULL;
	int r = cli_open(command, config, 0, &p);

	if (r)
		return r;
	kept_note_copy(command, p);
	buffer_init(&out, EXPORT_MAX_BYTES);
	if (json)
		r = list_json(p, command, prefix, &l);
	else
		pullet_each(p, prefix, add_value_line, &l);
	if (r == CLI_OK && l.found == 0 && prefix[0])
		r = cli_error(
			CLI_NOT_FOUND, command, "no key in %s begins with '%s'", config, prefix);
	else if (r == CLI_OK && out.error)
		r = cli_error(CLI_FAILED, command, "out of memory");
	else if (r == CLI_OK && prefix[0] == '\0' && l.found != pullet_count(p))
		r = cli_error(CLI_FAILED, command, "the snapshot is damaged");
	if (r == CLI_OK)
		r = cli_output(command, &out);
	free(l.nodes);
	buffer_fini(&out);
	pullet_close(p);
	return r;
}

int cli_list(int argc, char **argv)
{
	struct options o = {.json = false};
	int r = options_read(&list_line, argc, argv, &o);

	if (r >= 0)
		return r;
	return list_values(
		argv[0], argv[optind], argc - optind == 2 ? argv[optind + 1] : "", o.json);
}
