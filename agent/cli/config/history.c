/* pullet history: the versions that are kept. Surprising: nothing. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/common/cli.h"
#include "cli/common/operate.h"
#include "cli/model/show.h"
#include "cli/text/words.h"

enum { GENERATION, PULLED, BYTES, VERSION, DIGEST, ORIGIN, COLUMNS };

#define CELL 48
#define SHOWN_DIGITS 12 /* of a digest */

struct row {
	char cell[ORIGIN][CELL]; /* the origin comes last, and may be long */
};

static const struct option_row history_rows[] = {OPERATE_ROWS, {0}};

static const struct command_line history_line = {
	.usage = "Usage: pullet history CONFIG [--json] [--socket PATH]\n"
		 "Lists the versions in the state directory, newest first; * marks the current "
		 "one.\n",
	.rows = history_rows,
	.min = 1,
	.max = 1,
};

static void fill_row(const struct node *v, struct row *r)
{
	const char *sha256 = client_text(v, "sha256", "-");
	int64_t bytes = client_number(v, "bytes", -1);
	struct buffer text;

	snprintf(r->cell[GENERATION], CELL, "%" PRId64 "%s", client_number(v, "generation", 0),
		client_is_true(v, "published") ? " *" : "");
	buffer_init(&text, CELL);
	words_time(&text, client_number(v, "pulled_ms", 0));
	snprintf(r->cell[PULLED], CELL, "%s", bytes < 0 || !text.data ? "-" : text.data);
	buffer_clear(&text);
	snprintf(r->cell[BYTES], CELL, "-");
	if (bytes >= 0)
		snprintf(r->cell[BYTES], CELL, "%" PRId64, bytes);
	show_version(client_text(v, "version", NULL), &text);
	snprintf(r->cell[VERSION], CELL, "%.40s", text.data ? text.data : "-");
	buffer_fini(&text);
	snprintf(r->cell[DIGEST], CELL, "%.*s", SHOWN_DIGITS, sha256);
}

static void widen_history_columns(const struct row *r, size_t width[ORIGIN])
{
	for (size_t i = 0; i < ORIGIN; i++)
		if (strlen(r->cell[i]) > width[i])
			width[i] = strlen(r->cell[i]);
}

static void add_version_row(
	const struct row *r, const size_t width[ORIGIN], const char *origin, struct buffer *out)
{
	for (size_t i = 0; i < ORIGIN; i++)
		buffer_printf(out, "%-*s  ", (int)width[i], r->cell[i]);
	words_text(out, origin);
	buffer_append(out, "\n", 1);
}

static void add_rejection(const struct node *v, struct buffer *out)
{
	const struct node *rejected = node_find(v, "rejected");
	const char *by = rejected ? client_text(rejected, "by", "?") : "";

	if (!rejected)
		return;
	buffer_printf(out, "  %s the ",
		strcmp(by, "probe") && strcmp(by, "operator") ? "rejected by" : "rolled back by");
	words_text(out, by);
	buffer_append_string(out, ": ");
	words_text(out, client_text(rejected, "why", ""));
	buffer_append(out, "\n", 1);
}

static int show_history(const struct operate *o, const struct node *root, struct buffer *out)
{
	static const struct row head = {
		.cell = {"GENERATION", "PULLED", "BYTES", "VERSION", "SHA256"}};
	const struct node *versions = node_find(root, "versions");
	size_t width[ORIGIN] = {0};
	struct row r;

	(void)o;
	widen_history_columns(&head, width);
	for (const struct node *v = versions ? versions->first : NULL; v; v = v->next) {
		fill_row(v, &r);
		widen_history_columns(&r, width);
	}
	add_version_row(&head, width, "ORIGIN", out);
	for (const struct node *v = versions ? versions->first : NULL; v; v = v->next) {
		fill_row(v, &r);
		add_version_row(
			&r, width, client_text(v, "origin", client_text(v, "error", "")), out);
		add_rejection(v, out);
	}
	if (client_is_true(root, "truncated"))
		buffer_append_string(out, "  there are older ones\n");
	return CLI_OK;
}

int cli_history(int argc, char **argv)
{
	struct operate o = {0};
	struct buffer path;
	int r = operate_options(&history_line, argc, argv, &o);

	if (r >= 0)
		return r;
	client_path(&path, o.config, "/history");
	return operate_ask(&o, "GET", &path, show_history);
}
