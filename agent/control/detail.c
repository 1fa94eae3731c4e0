/*
 * The layers and the checks of one config. Surprising: a check's verdict is remembered by the
 * digest of what it rejected, so the newest of a check may be about a version of long ago.
 */
#include "control/detail.h"

#include <string.h>

#include "text/json_writer.h"

/* ---- layers ---- */

static const char *const types[] = {"auto", "yaml", "json", "bytes"};

/* Of the current version; NULL: none, or it was made of other layers. */
static const struct part *find_part(const struct version *v, size_t layer)
{
	size_t at = 0;

	for (size_t i = 0; v->generation && i < v->part_count; i++) {
		if (strcmp(v->parts[i].type, "minisig") == 0)
			continue;
		if (at++ == layer)
			return &v->parts[i];
	}
	return NULL;
}

static void write_layer_detail(
	const struct settings_layer *layer, const struct part *part, struct buffer *out)
{
	json_writer_begin_object(out, NULL);
	json_writer_text(out, "server", layer->from);
	json_writer_text(out, "path", LOG_URL(layer->path));
	json_writer_text(out, "as", layer->as);
	json_writer_text(out, "type", part ? part->type : types[layer->type]);
	json_writer_boolean(out, "optional", layer->optional);
	json_writer_text(out, "version", part && part->etag[0] ? part->etag : NULL);
	json_writer_boolean(out, "absent", part && part->absent);
	json_writer_end_object(out);
}

/* ---- checks ---- */

static bool is_configured(const struct settings_config *s, int check)
{
	switch (check) {
	case CHECK_SYNTAX:
	case CHECK_GUARD:
		return s->type != SETTINGS_TYPE_BYTES;
	case CHECK_SIGNATURE:
		return s->verify.public_keys;
	case CHECK_FORMAT:
		return s->format != SETTINGS_VERBATIM;
	case CHECK_SCHEMA:
		return s->schema;
	case CHECK_PROGRAM:
		return s->check.argv;
	case REJECTED_BY_PROBE:
		return s->probe.argv || s->probe.url;
	default:
		return false;
	}
}

static const struct ledger_verdict *find_verdict(const struct config_status *s, const char *check)
{
	for (size_t i = s->verdict_count; i-- > 0;) /* the newest is the last */
		if (strcmp(s->verdicts[i].check, check) == 0)
			return &s->verdicts[i];
	return NULL;
}

static void write_last(const struct ledger_verdict *v, enum audience audience, struct buffer *out)
{
	bool public = audience == AUDIENCE_PUBLIC;

	json_writer_begin_object(out, "last");
	json_writer_number(out, "at_ms", (unsigned long long)v->at_ms);
	json_writer_text(out, "sha256", v->sha256);
	sentence_member(
		out, "why", public ? "see the control socket for the reason" : v->why, audience);
	json_writer_end_object(out);
}

static void write_check(
	const struct config_status *s, int check, enum audience audience, struct buffer *out)
{
	const char *name = rejection_name((enum rejection_reason)check);
	const struct ledger_verdict *last = find_verdict(s, name);
	uint64_t count = check < CHECK_COUNT          ? s->rejections_by[check]
			 : check == REJECTED_BY_PROBE ? s->notify.probes_failed
						      : 0;

	if (!is_configured(s->settings, check) && !last && !count)
		return;
	json_writer_begin_object(out, NULL);
	json_writer_text(out, "name", name);
	json_writer_boolean(out, "configured", is_configured(s->settings, check));
	json_writer_number(out, "rejections", count);
	if (last)
		write_last(last, audience, out);
	else
		json_writer_null(out, "last");
	json_writer_end_object(out);
}

int detail_write(const struct config_status *s, enum audience audience, struct buffer *out)
{
	json_writer_begin_array(out, "layers");
	for (size_t i = 0; i < s->settings->layer_count; i++) {
		write_layer_detail(&s->settings->layers[i], find_part(s->version, i), out);
	}
	json_writer_end_array(out);
	json_writer_begin_array(out, "checks");
	for (int i = 0; i <= REJECTED_BY_OPERATOR; i++)
		write_check(s, i, audience, out);
	return json_writer_end_array(out);
}
