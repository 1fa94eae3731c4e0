/* pullet export: a config in the form other programs read. Surprising: all is put together before
 * the first byte is printed, so that a reader never gets a part of it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "export_write.h"

struct options {
	const char *command, *config, *prefix;
	const struct format *format;
	struct export_selection selection;
};

struct entry {
	const char *key;
	size_t key_len;
	struct pullet_value value;
	struct buffer name;
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

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_name(const char *s)
{
	if (is_digit(s[0]))
		return false;
	for (; *s; s++)
		if (!is_letter(*s) && !is_digit(*s) && *s != '_')
			return false;
	return true;
}

/* ---- one line of each flat format; 0, or a sentence that begins behind the key ---- */

/* db.host to DB_HOST. Characters are counted, not bytes. */
static void variable_name(const char *prefix, const struct entry *e, struct buffer *name)
{
	struct buffer clear;

	buffer_init(&clear, EXPORT_MAX_BYTES);
	name->error = export_clear_key(e->key, e->key_len, &clear);
	buffer_append_string(name, prefix);
	if (!prefix[0] && clear.len && is_digit(clear.data[0]))
		buffer_append(name, "_", 1);
	for (size_t i = 0; i < clear.len; i++) {
		char c = clear.data[i];

		if (((unsigned char)c & 0xc0) == 0x80)
			continue;
		if (is_letter(c))
			c = (char)(c & ~0x20);
		else if (!is_digit(c))
			c = '_';
		buffer_append(name, &c, 1);
	}
	if (name->len == 0)
		buffer_append(name, "_", 1);
	buffer_fini(&clear);
}

static const char *write_sh(const struct entry *e, struct buffer *out)
{
	buffer_printf(out, "export %s='", e->name.data);
	for (size_t i = 0; i < e->value.len; i++)
		if (e->value.text[i] == '\'')
			buffer_append_string(out, "'\\''");
		else
			buffer_append(out, e->value.text + i, 1);
	buffer_append_string(out, "'\n");
	return NULL;
}

static const char *write_env(const struct entry *e, struct buffer *out)
{
	if (memchr(e->value.text, '\n', e->value.len) || memchr(e->value.text, '\r', e->value.len))
		return "has a line break in it: such a file cannot hold it, --format sh can";
	buffer_printf(out, "%s=%s\n", e->name.data, e->value.text);
	return NULL;
}

/* The code point at s and its length; U+FFFD and 1 when it is not UTF-8. */
static unsigned code_point(const char *s, size_t left, size_t *ret_len)
{
	const unsigned char *u = (const unsigned char *)s;
	size_t len = u[0] < 0x80 ? 1 : u[0] < 0xc2 ? 0 : u[0] < 0xe0 ? 2 : u[0] < 0xf0 ? 3 : 4;
	unsigned c = len == 1 ? u[0] : u[0] & (0x7fu >> len);

	for (size_t i = 1; i < len; i++)
		if (i < left && (u[i] & 0xc0) == 0x80)
			c = c << 6 | (u[i] & 0x3fu);
		else
			len = 0;
	if (len == 0 || c > 0x10ffff || (c >= 0xd800 && c < 0xe000) ||
		(len > 2 && c < (len == 3 ? 0x800u : 0x10000u))) {
		len = 1;
		c = 0xfffd;
	}
	*ret_len = len;
	return c;
}

/* As java.util.Properties.store() does. */
static void property_text(struct buffer *out, const char *s, size_t len, bool key)
{
	static const char from[] = "\t\n\r\f\\=:#!", to[] = "tnrf\\=:#!";

	for (size_t i = 0, n; i < len; i += n) {
		unsigned c = code_point(s + i, len - i, &n);
		const char *special = c && c < 0x80 ? strchr(from, (int)c) : NULL;

		if (special)
			buffer_printf(out, "\\%c", to[special - from]);
		else if (c == ' ')
			buffer_append_string(out, key || i == 0 ? "\\ " : " ");
		else if (c > ' ' && c < 0x7f)
			buffer_append(out, s + i, 1);
		else if (c < 0x10000)
			buffer_printf(out, "\\u%04X", c);
		else
			buffer_printf(
				out, "\\u%04X\\u%04X", 0xd7c0 + (c >> 10), 0xdc00 + (c & 0x3ff));
	}
}

static void property_name(const char *prefix, const struct entry *e, struct buffer *name)
{
	property_text(name, prefix, strlen(prefix), true);
	property_text(name, e->key, e->key_len, true);
}

static const char *write_property(const struct entry *e, struct buffer *out)
{
	if (e->value.type == PULLET_NULL)
		return NULL;
	buffer_printf(out, "%s=", e->name.len ? e->name.data : "");
	property_text(out, e->value.text, e->value.len, false);
	buffer_append(out, "\n", 1);
	return NULL;
}

static const struct format {
	const char *name;
	enum document_type tree; /* when there are no functions */
	bool variables;          /* names must be good for a shell */
	void (*make_name)(const char *prefix, const struct entry *e, struct buffer *name);
	const char *(*write)(const struct entry *e, struct buffer *out);
} formats[] = {
	{"sh", 0, true, variable_name, write_sh},
	{"env", 0, true, variable_name, write_env},
	{"properties", 0, false, property_name, write_property},
	{"json", DOCUMENT_JSON, false, NULL, NULL},
	{"yaml", DOCUMENT_YAML, false, NULL, NULL},
};

/* ---- flat ---- */

struct flat {
	const struct options *o;
	struct entry *entries;
	size_t count, seen, max;
};

static int add(const char *key, size_t key_len, const struct pullet_value *v, void *arg)
{
	struct flat *f = arg;
	struct entry *e = &f->entries[f->count];

	f->seen++;
	if (f->count == f->max || v->type == PULLET_LIST || v->type == PULLET_MAP ||
		!export_selected(&f->o->selection, key, key_len))
		return 0;
	*e = (struct entry){.key = key, .key_len = key_len, .value = *v};
	buffer_init(&e->name, EXPORT_MAX_BYTES);
	f->o->format->make_name(f->o->prefix, e, &e->name);
	f->count++;
	return e->name.error;
}

static int by_name(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return strcmp(x->name.data ? x->name.data : "", y->name.data ? y->name.data : "");
}

static int write_flat(struct flat *f, struct buffer *out)
{
	const char *command = f->o->command;

	for (size_t i = 0; i < f->count; i++) {
		const char *wrong = f->o->format->write(&f->entries[i], out);

		if (wrong)
			return cli_error(CLI_FAILED, command, "'%s' %s", f->entries[i].key, wrong);
	}
	qsort(f->entries, f->count, sizeof(*f->entries), by_name);
	for (size_t i = 1; i < f->count; i++)
		if (by_name(&f->entries[i - 1], &f->entries[i]) == 0)
			return cli_error(CLI_FAILED, command,
				"the keys '%s' and '%s' give the same name %s: export one of them",
				f->entries[i - 1].key, f->entries[i].key, f->entries[i].name.data);
	return CLI_OK;
}

static int export_flat(struct pullet *p, const struct options *o, struct buffer *out)
{
	struct flat f = {.o = o, .max = pullet_count(p)};
	int r, error;

	f.entries = calloc(f.max + 1, sizeof(*f.entries));
	if (!f.entries)
		return cli_error(CLI_FAILED, o->command, "out of memory");
	error = pullet_each(p, "", add, &f);
	if (error)
		r = cli_error(CLI_FAILED, o->command, "out of memory");
	else if (f.seen != f.max)
		r = cli_error(CLI_FAILED, o->command, "the snapshot is damaged");
	else
		r = write_flat(&f, out);
	for (size_t i = 0; i < f.count; i++)
		buffer_fini(&f.entries[i].name);
	free(f.entries);
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
		r = o->format->write ? export_flat(p, o, &out) : export_document(p, o, &out);
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
	if (!o->format)
		return cli_error(CLI_USAGE, o->command,
			"--format sh, env, properties, json or yaml is needed%s%s",
			format ? ", not " : "", format ? format : "");
	if (o->prefix[0] && !o->format->write)
		return cli_error(CLI_USAGE, o->command, "--prefix goes with sh, env or properties");
	if (o->format->variables && !is_name(o->prefix))
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
		return cli_error(CLI_USAGE, argv[0], "a config is needed");
	o.config = argv[optind];
	o.selection.prefixes = argv + optind + 1;
	o.selection.count = (size_t)(argc - optind - 1);
	return export(&o);
}
