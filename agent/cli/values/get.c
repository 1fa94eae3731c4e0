/* pullet get: one value of a config, for scripts. Surprising: reads a value twice, with two
 * fallbacks, since only the library knows whether it is of the type. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "settings/value.h"
#include "cli/common/cli.h"
#include "cli/common/client.h"
#include "cli/common/names.h"
#include "cli/common/options.h"
#include "cli/values/kept.h"
#include "cli/values/write.h"
#include "base/ending.h"

#define NEAREST 3 /* keys that are named when one is not found */

struct options {
	const char *command, *config, *key, *fallback, *type;
	bool json;
};

static const struct option_row get_rows[] = {
	{"default", "V", "print V when there is no such key or config", OPTION_TEXT,
		.at = offsetof(struct options, fallback)},
	{"type", "T",
		"fail unless the value is a string, int, double, bool, duration (printed in\n"
		"milliseconds) or size (in bytes)",
		OPTION_TEXT, .at = offsetof(struct options, type)},
	{"json", NULL, "print JSON; a list or map with all its members", OPTION_FLAG,
		.at = offsetof(struct options, json)},
	{0},
};

static const struct command_line get_line = {
	.usage = "Usage: pullet get CONFIG KEY [--default V] [--type T] [--json]\n"
		 "Prints one value of a config, as it was written. Needs no running agent.\n"
		 "CONFIG is a name, or a path of a snapshot if there is a '/' in it.\n",
	.rows = get_rows,
	.min = 2,
	.max = 2,
};

/* The agent makes a control page for each config that is to have a snapshot. */
static bool is_config_known(const char *dir, const char *config)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/%s.gen", dir, config);

	return n > 0 && (size_t)n < sizeof(path) && access(path, F_OK) == 0;
}

static bool is_file_here(const char *config)
{
	return ends_in(config, strlen(config), ".snap") && access(config, F_OK) == 0;
}

static int report_no_snapshot(const char *command, const char *config)
{
	const char *dir = client_runtime_dir();
	char hint[NAMES_HINT];
	struct names names;

	if (strchr(config, '/'))
		return cli_error(CLI_NOT_FOUND, command, "there is no snapshot %s", config);
	if (is_config_known(dir, config))
		return cli_error(CLI_NOT_FOUND, command,
			"config %s is configured, but nothing of it is published yet: 'pullet "
			"status %s' says why",
			config, config);
	if (is_file_here(config))
		return cli_error(CLI_NOT_FOUND, command,
			"there is no snapshot of '%s' in %s: the file here is ./%s", config, dir,
			config);
	names_init(&names, config);
	if (names_of_snapshots(dir, names_add, &names) || names.count == 0)
		return cli_error(CLI_NOT_FOUND, command,
			"there is no snapshot of '%s' in %s, nor of any config: 'pullet status' "
			"says why, PULLET_RUNTIME_DIR names another directory",
			config, dir);
	return cli_error(CLI_NOT_FOUND, command, "there is no snapshot of '%s' in %s: %s", config,
		dir, names_hint(&names, hint));
}

void cli_note_waiting(const char *command, const char *config)
{
	const char *dir = client_runtime_dir();
	char hint[NAMES_HINT];
	struct names names;

	names_init(&names, config);
	if (strchr(config, '/') || is_config_known(dir, config) ||
		names_of_snapshots(dir, names_add, &names) || names.count == 0)
		cli_note(command, "nothing is published as %s yet, waiting", config);
	else
		cli_note(command, "nothing is published as %s yet, waiting: %s (%s)", config,
			names_hint(&names, hint), dir);
}

int cli_open(const char *command, const char *config, unsigned flags, struct pullet **ret_p)
{
	int r = pullet_open(config, flags, ret_p);
	char why[512];

	if (r == 0)
		return CLI_OK;
	if (r == -ENOENT)
		return report_no_snapshot(command, config);
	if (r == -EIDRM)
		return cli_error(CLI_NOT_FOUND, command, "%s: %s", config, pullet_strerror(r));
	if (r == -EINVAL)
		return cli_error(CLI_USAGE, command,
			"'%s' is not the name of a config; a path needs a '/' in it", config);
	return cli_error(
		CLI_FAILED, command, "%s: %s", config, pullet_explain(config, r, why, sizeof(why)));
}

/* ---- types ---- */

static bool print_string(struct pullet *p, const char *key, struct buffer *out)
{
	const char *text = pullet_get_string(p, key, NULL);

	if (text)
		buffer_append_string(out, text);
	return text;
}

static bool put_int(int64_t with_0, int64_t with_1, struct buffer *out)
{
	if (with_0 == with_1)
		buffer_printf(out, "%" PRId64, with_0);
	return with_0 == with_1;
}

static bool print_int(struct pullet *p, const char *key, struct buffer *out)
{
	return put_int(pullet_get_int(p, key, 0), pullet_get_int(p, key, 1), out);
}

static bool to_duration(struct pullet *p, const char *key, struct buffer *out)
{
	return put_int(pullet_get_duration_ms(p, key, 0), pullet_get_duration_ms(p, key, 1), out);
}

static bool print_size(struct pullet *p, const char *key, struct buffer *out)
{
	return put_int(pullet_get_size(p, key, 0), pullet_get_size(p, key, 1), out);
}

static bool print_bool(struct pullet *p, const char *key, struct buffer *out)
{
	bool value = pullet_get_bool(p, key, false);

	if (value != pullet_get_bool(p, key, true))
		return false;
	buffer_append_string(out, value ? "true" : "false");
	return true;
}

/* The shortest text that reads back. */
static bool print_double(struct pullet *p, const char *key, struct buffer *out)
{
	double with_0 = pullet_get_double(p, key, 0), with_1 = pullet_get_double(p, key, 1);
	char text[40];

	if (with_0 < with_1 || with_0 > with_1)
		return false;
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, with_0);
		if (strtod(text, NULL) >= with_0 && strtod(text, NULL) <= with_0)
			break;
	}
	buffer_append_string(out, text);
	return true;
}

static const struct type {
	const char *name, *wanted; /* as pullet_decode() says it */
	bool (*convert)(struct pullet *p, const char *key, struct buffer *out);
	bool quoted; /* in JSON; a number it does not have (inf, nan) is too */
} types[] = {
	{"string", "a text", print_string, true},
	{"int", "an integer such as 17", print_int, false},
	{"double", "a number such as 0.5", print_double, false},
	{"bool", "true or false", print_bool, false},
	{"duration", "a duration such as 10s or 1h30m", to_duration, false},
	{"size", "a size such as 64KiB", print_size, false},
};

static const struct type *find_type(const char *name)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strcmp(types[i].name, name) == 0)
			return &types[i];
	return NULL;
}

static const char *const type_words[] = {
	"null", "true or false", "an integer", "a number", "a text", "a list", "a mapping"};

/* ---- the value ---- */

struct near_keys {
	struct buffer text;
	size_t count;
};

static int add_near_key(const char *key, size_t key_len, const struct pullet_value *v, void *arg)
{
	struct near_keys *n = arg;
	char shown[SETTINGS_SHOWN];

	(void)key_len;
	(void)v;
	buffer_printf(&n->text, "%s%s", n->count ? ", " : "", settings_shown(key, shown));
	return ++n->count == NEAREST;
}

/* Names the keys that begin like the missing one. */
static int report_missing_key(struct pullet *p, const struct options *o)
{
	struct near_keys n = {.count = 0};
	char prefix[256];

	buffer_init(&n.text, 4096);
	snprintf(prefix, sizeof(prefix), "%s", o->key);
	for (size_t len = strlen(prefix); len > 0 && n.count == 0; len--) {
		prefix[len] = '\0';
		pullet_each(p, prefix, add_near_key, &n);
	}
	if (n.count && !n.text.error)
		cli_error(CLI_NOT_FOUND, o->command, "there is no key '%s' in %s; near it: %s",
			o->key, o->config, n.text.data);
	else
		cli_error(CLI_NOT_FOUND, o->command,
			"there is no key '%s' in %s: 'pullet list %s' shows all", o->key, o->config,
			o->config);
	buffer_fini(&n.text);
	return CLI_NOT_FOUND;
}

static int put_typed(
	struct pullet *p, const struct options *o, const struct pullet_value *v, struct buffer *out)
{
	const struct type *type = find_type(o->type);
	struct node n = {.type = NODE_STRING};
	struct buffer text;

	buffer_init(&text, EXPORT_MAX_BYTES);
	if (!type->convert(p, o->key, &text)) {
		buffer_fini(&text);
		return cli_error(CLI_FAILED, o->command, "'%s' must be %s, but is %s%s", o->key,
			type->wanted, type_words[v->type],
			v->type == PULLET_STRING ? " of another form" : "");
	}
	buffer_take_error(out, &text);
	n.text = text.data ? text.data : "";
	n.text_len = text.len;
	if (o->json && (type->quoted || !strpbrk(n.text, "0123456789e")))
		document_write(&n, DOCUMENT_JSON, out);
	else
		buffer_printf(out, "%s\n", n.text);
	buffer_fini(&text);
	return CLI_OK;
}

static int put_json(struct pullet *p, const struct options *o, struct buffer *out)
{
	const struct export_selection below = {.below = o->key};
	struct export_error e = {"out of memory"};

	if (export_tree(p, &below, DOCUMENT_JSON, out, &e))
		return cli_error(CLI_FAILED, o->command, "%s", e.message);
	return CLI_OK;
}

static int put_value(
	struct pullet *p, const struct options *o, const struct pullet_value *v, struct buffer *out)
{
	if (o->type)
		return put_typed(p, o, v, out);
	if (o->json)
		return put_json(p, o, out);
	if (v->type == PULLET_LIST || v->type == PULLET_MAP)
		return cli_error(CLI_FAILED, o->command,
			"'%s' is a %s: use --json, or 'pullet list %s %s.'", o->key,
			v->type == PULLET_LIST ? "list" : "map", o->config, o->key);
	buffer_append(out, v->text, v->len);
	buffer_append(out, "\n", 1);
	return CLI_OK;
}

static int print_key(const struct options *o, struct buffer *out)
{
	struct pullet *p = NULL;
	struct pullet_value v;
	int r = CLI_OK;

	/* with a default a config that is not there is one without keys */
	r = cli_open(o->command, o->config, o->fallback ? PULLET_WAIT_FIRST : 0, &p);
	if (r)
		return r;
	kept_note_copy(o->command, p);
	if (pullet_get(p, o->key, strlen(o->key), &v) == 0)
		r = put_value(p, o, &v, out);
	else if (o->fallback)
		buffer_printf(out, "%s\n", o->fallback);
	else
		r = report_missing_key(p, o);
	pullet_close(p);
	if (r == CLI_OK && out->error)
		return cli_error(CLI_FAILED, o->command, "out of memory");
	return r;
}

int cli_get(int argc, char **argv)
{
	struct options o = {.command = argv[0]};
	struct buffer out;
	int r = options_read(&get_line, argc, argv, &o);

	if (r >= 0)
		return r;
	if (o.type && !find_type(o.type))
		return cli_error(CLI_USAGE, argv[0],
			"--type takes string, int, double, bool, duration or size, not '%s'",
			o.type);
	o.config = argv[optind];
	o.key = argv[optind + 1];
	buffer_init(&out, EXPORT_MAX_BYTES);
	r = print_key(&o, &out);
	if (r == CLI_OK)
		r = cli_output(argv[0], &out);
	buffer_fini(&out);
	return r;
}
