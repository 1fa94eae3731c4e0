/*
 * What a publication would do, for --dry-run. Surprising: it reads the published file, and nothing
 * else of what is there.
 */
#include "config/core.h"

#include <stdio.h>
#include <string.h>

#include "document/diff.h"
#include "document/document.h"
#include "files/trusted.h"
#include "text/sentence.h"

/* The document in the published file, if it is one. */
static struct document *parse_file(const struct config *c, const struct buffer *text)
{
	bool json = c->settings->format == SETTINGS_FORMAT_JSON ||
		    (c->settings->format == SETTINGS_VERBATIM &&
			    c->step.candidate->version.parts[0].type[0] == 'j');
	struct document_error e;
	struct document *d = NULL;

	if (c->settings->format > SETTINGS_FORMAT_JSON || !text->data ||
		document_parse(
			json ? DOCUMENT_JSON : DOCUMENT_YAML, text->data, text->len, 0, &d, &e))
		return NULL;
	return d;
}

/* Prints the keys that would change. */
static void print_changes(const struct config *c, const struct buffer *there)
{
	struct document *before = parse_file(c, there);
	struct diff *d = NULL;
	struct buffer lines;

	buffer_init(&lines, 64u << 20);
	if (c->step.candidate->composition.root &&
		diff_new(before ? document_root(before) : NULL, c->step.candidate->composition.root,
			&d) == 0)
		for (size_t i = 0; i < diff_count(d); i++)
			diff_write_text(diff_at(d, i), c->settings->mask, &lines);
	if (lines.len)
		fwrite(lines.data, 1, lines.len, stdout);
	buffer_fini(&lines);
	diff_free(d);
	document_free(before);
}

static void print_line(const struct buffer *line)
{
	if (line->len)
		fwrite(line->data, 1, line->len, stdout);
	fflush(stdout);
}

/* Of several layers and of a template the digest is of what is published. */
static void print_verdict(const struct config *c, bool same, const struct buffer *text)
{
	const char *place = settings_place(c->settings);
	char digest[DIGEST_HEX];
	struct buffer line;

	buffer_init(&line, 16384);
	if (c->settings->dir)
		buffer_printf(&line, "%s: would publish a set of files, to %s\n", c->settings->name,
			place);
	else if (digest_sha256(text->data ? text->data : "", text->len, NULL, 0, digest) == 0)
		buffer_printf(&line, "%s: %s %zu bytes, sha256 %.12s%s%s\n", c->settings->name,
			same ? "is up to date:" : "would publish", text->len, digest,
			place ? ", to " : "", place ? place : "");
	print_line(&line);
	buffer_fini(&line);
}

void dry_run_ended(struct config *c)
{
	struct config_status s;
	char shown[FILE_WHY], *template_read;
	struct buffer line;

	config_status(c, &s);
	if (s.outcome != CONFIG_FAILED && s.outcome != CONFIG_HELD)
		return;
	sentence_show(shown, sizeof(shown),
		s.outcome == CONFIG_HELD && s.rejected_why ? s.rejected_why : s.last_error,
		AUDIENCE_OPERATOR);
	template_read = strstr(shown, " (" SETTINGS_TEMPLATE_READ ")");
	if (template_read) /* by an agent that stays */
		*template_read = '\0';
	buffer_init(&line, 16384);
	buffer_printf(&line, "%s: %s: %s\n", c->settings->name,
		s.outcome == CONFIG_HELD ? "held"
		: s.rejections           ? "rejected"
					 : "failed",
		shown);
	print_line(&line);
	buffer_fini(&line);
}

void dry_run_publish(struct config *c)
{
	const struct buffer *text = candidate_text(c->step.candidate);
	struct buffer there;
	bool same;

	buffer_init(&there, CANDIDATE_MAX_BYTES);
	same = c->settings->file &&
	       trusted_read(c->env->sys, c->settings->file, &there, NULL) == 0 &&
	       there.len == text->len &&
	       memcmp(there.data ? there.data : "", text->data ? text->data : "", text->len) == 0;
	log_info(same ? "dry run: the file is up to date" : "dry run: would publish", "config",
		c->settings->name, "file", settings_place(c->settings), "bytes", LOG_U64(text->len),
		"version", VERSION_TEXT(&c->step.candidate->version));
	print_verdict(c, same, text);
	if (!same)
		print_changes(c, &there);
	fflush(stdout);
	buffer_fini(&there);
	if (!same)
		run_note_published(c);
	latest_forget(c); /* the next run says it again */
	step_end(c, true);
}
