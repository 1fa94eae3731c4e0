/*
 * pullet build: the snapshot image of a document, for tests of applications, as the agent would
 * publish it.
 *
 * Surprising: the same document gives the same bytes, so no clock is read (created_ms is 0), and
 * the generation goes up only where the document is another one. An agent's own snapshot, which has
 * a control page beside it, is never replaced.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/snapshot.h"
#include "base/sys.h"
#include "document/document.h"
#include "files/file.h"
#include "files/trusted.h"
#include "publish/image.h"
#include "schema/files.h"
#include "cli/common/cli.h"
#include "cli/common/options.h"
#include "base/ending.h"

#define MAX_DOCUMENT (64u << 20)
#define MAX_IMAGE (4u * MAX_DOCUMENT)
#define ENDING ".snap"

struct options {
	const char *command, *file, *output, *version, *schema, *schema_dir;
};

static const struct option_row build_rows[] = {
	{"output", "FILE", "the snapshot to write; its name ends in .snap", OPTION_TEXT,
		.at = offsetof(struct options, output), .letter = 'o'},
	{"schema", "FILE", "a JSON Schema that the document must fit", OPTION_TEXT,
		.at = offsetof(struct options, schema)},
	{"schema-dir", "DIR", "files that references of the schema lead to", OPTION_TEXT,
		.at = offsetof(struct options, schema_dir)},
	{"version", "V", "what the application is told as the server's version", OPTION_TEXT,
		.at = offsetof(struct options, version)},
	{0},
};

static const struct command_line build_line = {
	.usage =
		"Usage: pullet build FILE -o NAME.snap [--schema S] [--schema-dir DIR] "
		"[--version V]\n"
		"Makes the snapshot of a YAML or JSON document (JSON where FILE ends in .json), "
		"for "
		"tests of\n"
		"applications: the reader libraries open it by its path. Built again from another "
		"document, it has\n"
		"the next generation, and programs that have it open move to it. Needs no agent.\n",
	.rows = build_rows,
	.min = 1,
	.max = 1,
	.wants = "name one document, and the snapshot to write with -o",
};

/* ---- the document ---- */

static int parse_document(
	const struct options *o, const struct buffer *text, struct document **ret_document)
{
	enum document_type type =
		ends_in(o->file, strlen(o->file), ".json") ? DOCUMENT_JSON : DOCUMENT_YAML;
	struct document_error e = {0};
	int r = document_parse(type, text->data ? text->data : "", text->len, 0, ret_document, &e);

	if (r == -ENOMEM)
		return cli_error(CLI_FAILED, o->command, "out of memory");
	if (r && e.line)
		return cli_error(CLI_FAILED, o->command, "%s:%u:%u: %s", o->file, e.line, e.column,
			e.message);
	return r ? cli_error(CLI_FAILED, o->command, "%s: %s", o->file, e.message) : CLI_OK;
}

static int read_built_document(const struct options *o, struct document **ret_document)
{
	char why[FILE_WHY];
	struct buffer text;
	int r;

	buffer_init(&text, MAX_DOCUMENT);
	r = trusted_read(&sys_real, o->file, &text, why);
	if (r)
		r = cli_error(CLI_FAILED, o->command, "%s cannot be read: %s", o->file,
			r == -EMSGSIZE ? "it is larger than 64 MiB" : why);
	else
		r = parse_document(o, &text, ret_document);
	buffer_fini(&text);
	return r;
}

/* ---- the schema ---- */

static int check_with(const struct options *o, const struct schema *schema, const struct node *root)
{
	struct buffer errors;
	int r;

	buffer_init(&errors, SCHEMA_MAX_REPORT);
	r = schema_check(schema, root, NULL, &errors);
	if (r && !errors.len)
		r = cli_error(CLI_FAILED, o->command, "%s: %s", o->file,
			r == -ENOMEM ? "out of memory" : "it takes too long to be validated");
	else if (r)
		r = cli_error(CLI_FAILED, o->command, "%s does not fit %s:\n%.*s", o->file,
			o->schema, (int)errors.len - 1, errors.data);
	buffer_fini(&errors);
	return r;
}

static int check_document(const struct options *o, const struct node *root)
{
	char path[PATH_MAX], dir[PATH_MAX], why[FILE_WHY];
	const char *missing = !realpath(o->schema, path)                       ? o->schema
			      : o->schema_dir && !realpath(o->schema_dir, dir) ? o->schema_dir
									       : NULL;
	struct schema_files *f;
	int r;

	if (missing)
		return cli_error(
			CLI_FAILED, o->command, "%s cannot be read: %s", missing, strerror(errno));
	f = schema_files_new(&sys_real, path, o->schema_dir ? dir : NULL);
	if (!f)
		return cli_error(CLI_FAILED, o->command, "out of memory");
	if (schema_files_read(f, why) < 0)
		r = cli_error(CLI_FAILED, o->command, "%s", why);
	else
		r = check_with(o, schema_files_schema(f), root);
	schema_files_free(f);
	return r;
}

/* ---- the snapshot ---- */

struct target {
	int dir;
	const char *name; /* in dir; borrowed */
};

/* A control page beside it is an agent's. CLI_OK, or CLI_FAILED. */
static int check_no_page(const struct options *o, const struct target *t)
{
	char page[NAME_MAX + 1];

	snprintf(page, sizeof(page), "%.*s.gen", (int)(strlen(t->name) - strlen(ENDING)), t->name);
	if (faccessat(t->dir, page, F_OK, AT_SYMLINK_NOFOLLOW))
		return CLI_OK;
	return cli_error(CLI_FAILED, o->command,
		"%s is an agent's: %s lies beside it; write to another place", o->output, page);
}

/* Gives the image its generation: that of the snapshot in its place, or the next one if that has
 * other values. CLI_OK; -EALREADY: an equal one is there; or the exit code. */
static int stamp_image(const struct options *o, const struct target *t, void *image, size_t len)
{
	struct snapshot old;
	struct buffer there;
	uint64_t generation = 0;
	int r;

	buffer_init(&there, UINT32_MAX);
	r = file_read(&sys_real, t->dir, t->name, &there);
	if (r == 0 && snapshot_open(there.data ? there.data : "", there.len, &old) == 0) {
		generation = snapshot_generation(&old);
		if (snapshot_stamp(image, len, generation) == snapshot_digest(&old))
			r = -EALREADY;
	} else if (r == 0) {
		r = cli_error(CLI_FAILED, o->command,
			"%s is no snapshot, or a damaged one: remove it first", o->output);
	}
	buffer_fini(&there);
	if (r && r != -ENOENT)
		return r > 0 || r == -EALREADY
			       ? r
			       : cli_error(CLI_FAILED, o->command, "%s cannot be read: %s",
					 o->output, strerror(-r));
	snapshot_stamp(image, len, generation + 1);
	return CLI_OK;
}

static int write_image(const struct options *o, void *image, size_t len)
{
	struct file_options options = {.mode = 0644, .uid = (uid_t)-1, .gid = (gid_t)-1};
	struct target t;
	char why[FILE_WHY];
	int r;

	t.dir = trusted_open_parent(&sys_real, o->output, TRUSTED_ANY, &t.name, why);
	if (t.dir < 0)
		return cli_error(
			CLI_FAILED, o->command, "%s cannot be written: %s", o->output, why);
	r = check_no_page(o, &t);
	if (r == CLI_OK)
		r = stamp_image(o, &t, image, len);
	if (r == CLI_OK && file_replace(&sys_real, t.dir, t.name, image, len, &options, why))
		r = cli_error(CLI_FAILED, o->command, "%s cannot be written: %s", o->output, why);
	sys_real.close(t.dir);
	return r == -EALREADY ? CLI_OK : r;
}

/* ---- the command ---- */

static int build_snapshot(const struct options *o, const struct node *root)
{
	char why[FILE_WHY];
	void *image;
	size_t len;
	int r = o->schema ? check_document(o, root) : CLI_OK;

	if (r)
		return r;
	if (image_build(root, 0, o->version, MAX_IMAGE, &image, &len, why))
		return cli_error(CLI_FAILED, o->command, "%s: %s", o->file, why);
	r = write_image(o, image, len);
	free(image);
	return r;
}

static int check_build_options(const struct options *o)
{
	const char *slash = o->output ? strrchr(o->output, '/') : NULL,
		   *name = slash ? slash + 1 : o->output;

	if (!o->output)
		return options_misused(
			&build_line, o->command, "name the snapshot to write with -o");
	if (!ends_in(name, strlen(name), ENDING))
		return cli_error(CLI_USAGE, o->command,
			"-o takes the name of a snapshot, NAME" ENDING ", not '%s'", o->output);
	if (o->schema_dir && !o->schema)
		return options_misused(&build_line, o->command, "--schema-dir goes with --schema");
	if (o->version && strlen(o->version) > SNAPSHOT_MAX_VERSION)
		return cli_error(CLI_USAGE, o->command, "a version has at most %d bytes",
			SNAPSHOT_MAX_VERSION);
	return CLI_OK;
}

int cli_build(int argc, char **argv)
{
	struct options o = {.command = argv[0]};
	struct document *d = NULL;
	int r = options_read(&build_line, argc, argv, &o);

	if (r >= 0)
		return r;
	o.file = argv[optind];
	r = check_build_options(&o);
	if (r == CLI_OK)
		r = read_built_document(&o, &d);
	if (r == CLI_OK)
		r = build_snapshot(&o, document_root(d));
	document_free(d);
	return r;
}
