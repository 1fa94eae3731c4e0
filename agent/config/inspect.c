/*
 * The versions that are kept. Surprising: everything is read from the state directory again and
 * composed as for a publication; nothing of a document is kept in memory for this.
 */
#include "config/inspect.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/core.h"
#include "text/json_writer.h"
#include "text/sentence.h"

#define MAX_LEDGER (16u << 20)
#define MAX_FORWARD (16u << 10)

int inspect_check_room(const struct buffer *out, char why[FILE_WHY])
{
	if (out->error)
		snprintf(why, FILE_WHY, "%s",
			out->error == -EMSGSIZE ? "the answer is too long" : strerror(-out->error));
	return out->error;
}

char *const *inspect_mask(const struct config *c, bool values)
{
	static char all[] = "*";
	static char *const everything[] = {all, NULL};

	return values ? c->settings->mask : everything;
}

/* ---- copies ---- */

static int copy_ledger(const struct ledger *l, struct ledger **ret_ledger)
{
	struct buffer text;
	int r;

	*ret_ledger = NULL;
	if (!l)
		return 0;
	buffer_init(&text, MAX_LEDGER);
	r = ledger_write(l, &text);
	if (r == 0)
		r = ledger_read(text.data, text.len, ret_ledger);
	buffer_fini(&text);
	return r;
}

static bool is_of_rollback(const struct version *v)
{
	return v->cause == CAUSE_ROLLBACK || v->cause == CAUSE_PROBE;
}

int inspect_begin(struct config *c, struct inspection *ret, char why[FILE_WHY])
{
	int r;

	*ret = (struct inspection){.config = c};
	buffer_init(&ret->forward, MAX_FORWARD);
	r = copy_ledger(c->decisions.ledger, &ret->ledger);
	if (r == 0)
		r = version_copy(&c->current.version, &ret->published);
	if (r == 0 && is_of_rollback(&ret->published))
		r = explain_forward(c, &ret->forward);
	if (r == 0)
		return 0;
	inspect_end(ret);
	snprintf(why, FILE_WHY, "out of memory");
	return -ENOMEM;
}

void inspect_end(struct inspection *i)
{
	ledger_free(i->ledger);
	version_fini(&i->published);
	buffer_fini(&i->forward);
	candidate_free(i->held);
	free(i->held_why);
	i->ledger = NULL;
}

int inspect_unchanged(const struct inspection *i, char why[FILE_WHY])
{
	if (i->published.generation == i->config->current.version.generation)
		return 0;
	snprintf(why, FILE_WHY, "another version was published meanwhile: check it and try again");
	return -EAGAIN;
}

int inspect_check_published(const struct inspection *i, char why[FILE_WHY])
{
	if (i->published.generation && i->ledger && i->config->current.store)
		return 0;
	snprintf(why, FILE_WHY, "nothing is published yet");
	return -ENODATA;
}

/* ---- versions ---- */

void inspect_write_facts(struct buffer *out, const struct version *v)
{
	const char *etag = v->parts[0].etag;
	char url[LOG_URL_SIZE];

	if (v->generation)
		json_writer_number(out, "generation", v->generation);
	else
		json_writer_null(out, "generation");
	if (v->published_ms)
		json_writer_number(out, "published_ms", (unsigned long long)v->published_ms);
	else
		json_writer_null(out, "published_ms");
	json_writer_text(out, "cause", version_cause_name(v->cause));
	json_writer_text(out, "by", v->by);
	json_writer_number(out, "pulled_ms", (unsigned long long)v->pulled_ms);
	json_writer_text(out, "sha256", v->sha256);
	json_writer_text(out, "origin", version_origin(v));
	json_writer_begin_array(out, "urls");
	for (size_t i = 0; i < v->part_count; i++) {
		const struct part *p = &v->parts[i];

		if (p->absent || strcmp(p->type, "minisig") == 0)
			continue;
		json_writer_text(out, NULL, log_url_text(url, p->url));
	}
	json_writer_end_array(out);
	json_writer_text(out, "version", etag[0] ? etag : NULL);
	json_writer_number(out, "bytes", version_bytes(v));
}

void inspect_write_override(struct buffer *out, const struct ledger_override *o)
{
	json_writer_text(out, "key", o->key);
	json_writer_text(out, "by", o->by);
	json_writer_text(out, "reason", o->reason);
	if (o->until_ms == LEDGER_FOREVER)
		json_writer_text(out, "until_ms", NULL);
	else
		json_writer_number(out, "until_ms", (unsigned long long)o->until_ms);
}

static void write_verdict(
	struct buffer *out, const struct ledger *l, const struct version *v, enum audience audience)
{
	for (size_t i = 0; i < l->verdict_count; i++) {
		if (strcmp(l->verdicts[i].sha256, v->sha256) != 0)
			continue;
		json_writer_begin_object(out, "rejected");
		json_writer_text(out, "by", l->verdicts[i].check);
		if (audience != AUDIENCE_PUBLIC)
			sentence_member(out, "why", l->verdicts[i].why, audience);
		json_writer_end_object(out);
		return;
	}
}

/* Returns how many bytes it has read. */
static size_t write_version(
	const struct inspection *i, uint64_t generation, enum audience audience, struct buffer *out)
{
	struct candidate *v = candidate_new();
	char why[FILE_WHY] = "out of memory";
	unsigned damaged;
	size_t bytes = 0;

	json_writer_begin_object(out, NULL);
	if (!v || candidate_load(v, i->config->current.store, generation, &damaged, why)) {
		json_writer_number(out, "generation", generation);
		sentence_member(out, "error", why, audience);
	} else {
		inspect_write_facts(out, &v->version);
		if (generation == i->published.generation)
			json_writer_boolean(out, "published", true);
		write_verdict(out, i->ledger, &v->version, audience);
		bytes = v->body.len;
	}
	json_writer_end_object(out);
	candidate_free(v);
	return bytes;
}

int inspect_history(
	const struct inspection *i, enum audience audience, struct buffer *out, char why[FILE_WHY])
{
	uint64_t generations[STORE_MAX_KEEP];
	const struct config *c = i->config;
	size_t count = i->ledger && c->current.store ? store_list(c->current.store, generations)
						     : 0,
	       read = 0, n;

	json_writer_begin_object(out, NULL);
	json_writer_text(out, "name", c->settings->name);
	json_writer_begin_array(out, "versions");
	for (n = 0; n < count && read < INSPECT_MAX_READ; n++) {
		read += write_version(i, generations[n], audience, out);
	}
	json_writer_end_array(out);
	if (n < count)
		json_writer_boolean(out, "truncated", true);
	if (i->forward.len) {
		buffer_append(out, ",", 1);
		buffer_append(out, i->forward.data, i->forward.len);
	}
	json_writer_end_object(out);
	return inspect_check_room(out, why);
}
