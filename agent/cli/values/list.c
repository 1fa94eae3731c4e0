/* pullet list: the values of a config, a line each. Surprising: lists and maps have no line of
 * their own; with --json the empty ones are shown, as nothing else tells of them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common/cli.h"
#include "cli/values/write.h"

static void usage(FILE *out)
{
	fputs("Usage: pullet list CONFIG [PREFIX] [--json]\n"
	      "Prints the values of a config as KEY=VALUE lines in key order, control characters "
	      "escaped.\n"
	      "Needs no running agent. CONFIG is a name, or a path of a snapshot if there is a '/' "
	      "in it.\n\n"
	      "      PREFIX  only keys that begin with it\n"
	      "      --json  one object: key to value\n",
		out);
}

struct listing {
	struct buffer *out;
	struct node root, *nodes; /* with --json; nodes has room for all */
	size_t found, count, max;
	const char *not_finite;
};

static bool is_plain(const char *s, size_t i, bool backslash)
{
	unsigned char c = (unsigned char)s[i];

	return c >= ' ' && c != 0x7f && (c != '\\' || backslash);
}

/* Appends text on one line; a key's backslashes stay, so that it can be given to `get`. */
static void escape(struct buffer *out, const char *s, size_t len, bool key)
{
	static const char from[] = "\n\r\t\\", to[] = "nrt\\";

	for (size_t i = 0, n; i < len; i += n) {
		const char *short_form;

		for (n = 0; i + n < len && is_plain(s, i + n, key);)
			n++;
		buffer_append(out, s + i, n);
		if (n)
			continue;
		n = 1;
		short_form = memchr(from, s[i], sizeof(from) - 1);
		if (short_form)
			buffer_printf(out, "\\%c", to[short_form - from]);
		else
			buffer_printf(out, "\\x%02x", (unsigned char)s[i]);
	}
}

static bool is_collection(const struct pullet_value *v)
{
	return v->type == PULLET_LIST || v->type == PULLET_MAP;
}

static int add_line(const char *key, size_t key_len, const struct pullet_value *v, void *arg)
{
	struct listing *l = arg;

	l->found++;
	if (is_collection(v))
		return 0;
	escape(l->out, key, key_len, true);
	buffer_append(l->out, "=", 1);
	escape(l->out, v->text, v->len, false);
	return buffer_append(l->out, "\n", 1);
}

static int add_member(const char *key, size_t key_len, const struct pullet_value *v, void *arg)
{
	struct listing *l = arg;
	struct node *n = &l->nodes[l->count];

	l->found++;
	if ((is_collection(v) && v->count) || l->count == l->max)
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
	pullet_each(p, prefix, add_member, l);
	l->root.type = NODE_MAP;
	l->root.first = l->count ? l->nodes : NULL;
	if (l->not_finite)
		return cli_error(CLI_FAILED, command,
			"'%s' is no finite number: JSON has none such", l->not_finite);
	document_write(&l->root, DOCUMENT_JSON, l->out);
	return CLI_OK;
}

static int list(const char *command, const char *config, const char *prefix, bool json)
{
	struct buffer out;
	struct listing l = {.out = &out};
	struct pullet *p = NULL;
	int r = cli_open(command, config, 0, &p);

	if (r)
		return r;
	buffer_init(&out, EXPORT_MAX_BYTES);
	if (json)
		r = list_json(p, command, prefix, &l);
	else
		pullet_each(p, prefix, add_line, &l);
	if (r == CLI_OK && l.found == 0 && prefix[0])
		r = cli_error(
			CLI_NOT_FOUND, command, "no key in %s begins with '%s'", config, prefix);
	else if (r == CLI_OK && prefix[0] == '\0' && l.found != pullet_count(p))
		r = cli_error(CLI_FAILED, command, "the snapshot is damaged");
	else if (r == CLI_OK && out.error)
		r = cli_error(CLI_FAILED, command, "out of memory");
	if (r == CLI_OK)
		r = cli_output(command, &out);
	free(l.nodes);
	buffer_fini(&out);
	pullet_close(p);
	return r;
}

int cli_list(int argc, char **argv)
{
	enum { JSON = 256 };
	static const struct option longs[] = {
		{"json", no_argument, NULL, JSON},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	bool json = false;
	int opt;

	while ((opt = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
		if (opt == JSON)
			json = true;
		else if (opt == 'h')
			return usage(stdout), CLI_OK;
		else
			return cli_bad_option(argv[0]);
	}
	if (argc - optind < 1 || argc - optind > 2)
		return cli_miscounted(argv[0], usage, argc, argv, 2);
	return list(argv[0], argv[optind], argc - optind == 2 ? argv[optind + 1] : "", json);
}
