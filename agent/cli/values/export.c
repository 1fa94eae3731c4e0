/* pullet export: a config in the form other programs read. Surprising: prints nothing before
 * everything is composed, so that a reader never gets a part. */
#include <stdlib.h>
#include <string.h>

#include "document/flatten.h"
#include "cli/common/cli.h"
#include "cli/common/options.h"
#include "cli/values/kept.h"
#include "cli/values/write.h"

struct options {
	const char *command, *config, *prefix, *format_name;
	const struct format *format;
	struct export_selection selection;
};

static const struct option_row export_rows[] = {
	{"format", "F",
		"sh: lines for a POSIX shell: export DB_HOST='...'\n"
		"env: DB_HOST=..., the value as it is, for docker --env-file; systemd's\n"
		"EnvironmentFile= takes backslashes and quotes away\n"
		"properties: for Java; null is left out\n"
		"json, yaml: the document, keys sorted",
		OPTION_TEXT, .at = offsetof(struct options, format_name)},
	{"prefix", "P",
		"before each name (sh, env, properties): with APP_ a key 'path' is not PATH",
		OPTION_TEXT, .at = offsetof(struct options, prefix)},
	{0},
};

static const struct command_line export_line = {
	.usage = "Usage: pullet export CONFIG --format sh|env|properties|json|yaml [--prefix P] "
		 "[PREFIX...]\n"
		 "Prints a config, or the keys that begin with one of the PREFIXes. Needs no "
		 "running agent.\n"
		 "CONFIG is a name, or a path of a snapshot if there is a '/' in it.\n",
	.rows = export_rows,
	.max = -1,
};

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

/* ---- the command ---- */

static int write_values(struct pullet *p, const struct options *o, struct buffer *out)
{
	struct export_error e = {"out of memory"};
	int r = o->format->flat ? export_flat(p, &o->selection, o->format->kind, o->prefix, out, &e)
				: export_tree(p, &o->selection, o->format->tree, out, &e);

	return r ? cli_error(CLI_FAILED, o->command, "%s", e.message) : CLI_OK;
}

static int stop_at_first(const char *key, size_t key_len, const struct pullet_value *v, void *arg)
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
		if (!pullet_each(p, o->selection.prefixes[i], stop_at_first, NULL))
			return cli_error(CLI_NOT_FOUND, o->command, "no key in %s begins with '%s'",
				o->config, o->selection.prefixes[i]);
	return CLI_OK;
}

static int export_config(const struct options *o)
{
	struct buffer out;
	struct pullet *p = NULL;
	int r = cli_open(o->command, o->config, 0, &p);

	if (r)
		return r;
	kept_note_copy(o->command, p);
	buffer_init(&out, EXPORT_MAX_BYTES);
	r = check_prefixes(p, o);
	if (r == CLI_OK)
		r = write_values(p, o, &out);
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

static int check_export_options(const struct options *o)
{
	if (!o->format_name)
		return options_misused(&export_line, o->command, "--format is needed");
	if (!o->format)
		return cli_error(CLI_USAGE, o->command,
			"--format takes sh, env, properties, json or yaml, not '%s'",
			o->format_name);
	if (o->prefix[0] && !o->format->flat)
		return cli_error(CLI_USAGE, o->command, "--prefix goes with sh, env or properties");
	if (o->format->flat && o->format->kind != FLATTEN_PROPERTIES &&
		!flatten_is_prefix(o->prefix))
		return cli_error(CLI_USAGE, o->command,
			"--prefix takes letters, digits and '_' here, no digit first, not '%s'",
			o->prefix);
	if (!o->config)
		return options_misused(&export_line, o->command, "name a config");
	return CLI_OK;
}

int cli_export(int argc, char **argv)
{
	struct options o = {.command = argv[0], .prefix = ""};
	int r = options_read(&export_line, argc, argv, &o);

	if (r >= 0)
		return r;
	o.format = o.format_name ? find_format(o.format_name) : NULL;
	o.config = argv[optind];
	if (check_export_options(&o))
		return CLI_USAGE;
	o.selection.prefixes = argv + optind + 1;
	o.selection.count = (size_t)(argc - optind - 1);
	return export_config(&o);
}
