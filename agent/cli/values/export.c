/* pullet export: a config in the form other programs read. Surprising: all is put together before
 * the first byte is printed, so that a reader never gets a part of it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "document/flatten.h"
#include "cli/common/cli.h"
#include "cli/values/write.h"

struct options {
	const char *command, *config, *prefix;
	const struct format *format;
	struct export_selection selection;
};

static void usage(FILE *out)
{
	fputs("Usage: pullet export CONFIG --format sh|env|properties|json|yaml [--prefix P] "
	      "[PREFIX...]\n"
	      "Prints a config, or the keys that begin with one of the PREFIXes. Needs no running "
	      "agent.\n"
	      "CONFIG is a name, or a path of a snapshot if there is a '/' in it.\n\n"
	      "      --format sh          lines for a POSIX shell: export DB_HOST='...'\n"
	      "      --format env         DB_HOST=..., the value as it is, for docker --env-file; "
	      "systemd's\n"
	      "                           EnvironmentFile= takes backslashes and quotes away\n"
	      "      --format properties  for Java; null is left out\n"
	      "      --format json, yaml  the document, keys sorted\n"
	      "      --prefix P           before each name (sh, env, properties): with APP_ a key "
	      "'path' is not PATH\n",
		out);
}

static const struct format {
	const char *name;
	bool flat; /* lines of a kind, else a tree of a type */
	enum flatten_kind kind;
	enum document_type tree;
} formats[] = {
	{"sh", true, FLATTEN_SH, 0},
	{"env", true, FLATTEN_ENV, 0},
	{"properties", true, FLATTEN_PROPERTIES, 0},
	{"json", false, 0, DOCUMENT_JSON},
	{"yaml", false, 0, DOCUMENT_YAML},
};

/* ---- flat ---- */

struct flat {
	const struct options *o;
	struct flatten_value *values;
	size_t count, seen, max;
};

static int add(const char *key, size_t key_len, const struct pullet_value *v, void *arg)
{
	struct flat *f = arg;

	f->seen++;
	if (f->count < f->max && v->type != PULLET_LIST && v->type != PULLET_MAP &&
		export_selected(&f->o->selection, key, key_len))
		f->values[f->count++] =
			(struct flatten_value){key, key_len, export_node(v).type, v->text, v->len};
	return 0;
}

static int export_flat(struct pullet *p, const struct options *o, struct buffer *out)
{
	struct flat f = {.o = o, .max = pullet_count(p)};
	char why[FILE_WHY];
	int r = CLI_OK;

	f.values = calloc(f.max + 1, sizeof(*f.values));
	if (!f.values)
		return cli_error(CLI_FAILED, o->command, "out of memory");
	pullet_each(p, "", add, &f);
	if (f.seen != f.max)
		r = cli_error(CLI_FAILED, o->command, "the snapshot is damaged");
	else if (flatten_values(f.values, f.count, o->format->kind, o->prefix, out, why))
		r = cli_error(CLI_FAILED, o->command, "%s", why);
	free(f.values);
	return r;
}

/* ---- the command ---- */

static int export_document(struct pullet *p, const struct options *o, struct buffer *out)
{
	struct export_error e = {"out of memory"};

	if (export_tree(p, &o->selection, o->format->tree, out, &e))
		return cli_error(CLI_FAILED, o->command, "%s", e.message);
	return CLI_OK;
}

static int found(const char *key, size_t key_len, const struct pullet_value *v, void *arg)
{
	(void)key;
	(void)key_len;
	(void)v;
	(void)arg;
	return 1;
}

static int check_prefixes(struct pullet *p, const struct options *o)
{
	for (size_t i = 0; i < o->selection.count; i++)
		if (!pullet_each(p, o->selection.prefixes[i], found, NULL))
			return cli_error(CLI_NOT_FOUND, o->command, "no key in %s begins with '%s'",
				o->config, o->selection.prefixes[i]);
	return CLI_OK;
}

static int export(const struct options *o)
{
	struct buffer out;
	struct pullet *p = NULL;
	int r = cli_open(o->command, o->config, 0, &p);

	if (r)
		return r;
	buffer_init(&out, EXPORT_MAX_BYTES);
	r = check_prefixes(p, o);
	if (r == CLI_OK)
		r = o->format->flat ? export_flat(p, o, &out) : export_document(p, o, &out);
	if (r == CLI_OK && out.error)
		r = cli_error(CLI_FAILED, o->command, "out of memory");
	if (r == CLI_OK)
		r = cli_output(o->command, &out);
	buffer_fini(&out);
	pullet_close(p);
	return r;
}

static const struct format *find_format(const char *name)
{
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (strcmp(formats[i].name, name) == 0)
			return &formats[i];
	return NULL;
}

static int check(const struct options *o, const char *format)
{
	if (!format)
		return cli_misused(o->command, usage, "--format is needed");
	if (!o->format)
		return cli_error(CLI_USAGE, o->command,
			"--format takes sh, env, properties, json or yaml, not '%s'", format);
	if (o->prefix[0] && !o->format->flat)
		return cli_error(CLI_USAGE, o->command, "--prefix goes with sh, env or properties");
	if (o->format->flat && o->format->kind != FLATTEN_PROPERTIES &&
		!flatten_is_prefix(o->prefix))
		return cli_error(CLI_USAGE, o->command,
			"--prefix takes letters, digits and '_' here, no digit first, not '%s'",
			o->prefix);
	return CLI_OK;
}

int cli_export(int argc, char **argv)
{
	enum { FORMAT = 256, PREFIX };
	static const struct option longs[] = {
		{"format", required_argument, NULL, FORMAT},
		{"prefix", required_argument, NULL, PREFIX},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	struct options o = {.command = argv[0], .prefix = ""};
	const char *format = NULL;
	int opt;

	while ((opt = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
		if (opt == FORMAT)
			format = optarg;
		else if (opt == PREFIX)
			o.prefix = optarg;
		else if (opt == 'h')
			return usage(stdout), CLI_OK;
		else
			return cli_bad_option(argv[0]);
	}
	o.format = format ? find_format(format) : NULL;
	if (check(&o, format))
		return CLI_USAGE;
	if (optind == argc)
		return cli_misused(argv[0], usage, "name a config");
	o.config = argv[optind];
	o.selection.prefixes = argv + optind + 1;
	o.selection.count = (size_t)(argc - optind - 1);
	return export(&o);
}
