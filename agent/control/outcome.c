/* What a change made of its config, as its answer. */
#include "control/outcome.h"

#include <string.h>

#include "config/explain.h"
#include "control/reply.h"
#include "text/json_writer.h"

static bool is_rollback(const struct httpd_request *r)
{
	const char *what = strrchr(httpd_path(r), '/');

	return what && strcmp(what, "/rollback") == 0;
}

/* A rollback leaves them as they are. */
static void write_overridden_keys(const struct config_status *s, struct buffer *out)
{
	if (!s->override_count)
		return;
	json_writer_begin_array(out, "overridden");
	for (size_t i = 0; i < s->override_count; i++)
		json_writer_text(out, NULL, s->overrides[i].key);
	json_writer_end_array(out);
}

/* Only an override has a value, and it has an effect. */
static void write_override_effect(
	const struct httpd_request *r, const struct inspect_effect *effect, struct buffer *out)
{
	const char *value = httpd_query(r, "value");
	size_t replaced = value ? inspect_replaced(effect, value) : 0;

	if (value && effect->adds)
		json_writer_boolean(out, "adds_key", true);
	if (value && effect->near[0])
		json_writer_text(out, "near_key", effect->near);
	if (replaced)
		json_writer_number(out,
			effect->present == NODE_MAP ? "replaced_keys" : "replaced_items", replaced);
}

void outcome_reply_generation(struct httpd_request *r, int status, struct config *config,
	uint64_t generation, const struct inspect_effect *effect, const struct buffer *ended)
{
	struct config_status s;
	struct buffer b;

	config_status(config, &s);
	buffer_init(&b, 1u << 20);
	json_writer_begin_object(&b, NULL);
	json_writer_boolean(&b, "ok", true);
	json_writer_text(&b, "name", config_name(config));
	json_writer_number(&b, "generation", generation);
	json_writer_text(&b, "origin", version_origin(s.version));
	if (is_rollback(r)) {
		write_overridden_keys(&s, &b);
		explain_forward(config, &b);
	}
	write_override_effect(r, effect, &b);
	if (ended && ended->len) {
		buffer_append(&b, ",", 1);
		buffer_append(&b, ended->data, ended->len);
	}
	json_writer_end_object(&b);
	reply_json(r, status, &b);
}

void outcome_reply_current(struct httpd_request *r, int status, struct config *config,
	const struct inspect_effect *effect)
{
	struct config_status s;

	config_status(config, &s);
	outcome_reply_generation(r, status, config, s.version->generation, effect, NULL);
}
