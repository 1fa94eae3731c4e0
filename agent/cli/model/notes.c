/* Notes on one config for its operator, a sentence each. Surprising: the error of a check appears
 * once, with the version it rejected. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/sys.h"
#include "cli/common/operate.h"
#include "cli/model/show.h"
#include "cli/text/words.h"

const char *show_next_pull(const struct show_config *c, char text[24])
{
	int64_t backoff_ms = node_integer(c->node, "backoff_ms", 0);
	char span[24];

	if (node_is_true(c->node, "running"))
		snprintf(text, 24, "running");
	else if (node_is_true(c->node, "deferred") && backoff_ms > 0)
		snprintf(text, 24, "held %.18s", wrap_span(backoff_ms, span));
	else if (node_is_true(c->node, "deferred"))
		snprintf(text, 24, "queued");
	else
		wrap_span(c->next_ms, text);
	return text;
}

const char *show_clean(const char *text, struct buffer *b)
{
	buffer_clear(b);
	words_text(b, text);
	return b->data ? b->data : "";
}

void show_error(const struct show_config *c, struct buffer *out)
{
	const char *error = node_text(c->node, "last_error", NULL),
		   *cause = node_text(c->node, "cause", NULL);

	if (!error)
		return;
	if (cause) {
		words_text(out, cause);
		buffer_append_string(out, ": ");
	}
	words_lines(out, error);
}

static void note_error(const struct node *c, const struct show_config *s, struct buffer *out)
{
	const struct node *rejected = node_find(c, "rejected");
	const char *error = node_text(c, "last_error", NULL);

	if (!error || node_is_true(rejected, "is_last_error"))
		return; /* note_rejected() says it */
	buffer_append_string(out, "  ");
	show_error(s, out);
	if (strcmp(node_text(c, "cause", "this host"), "this host") != 0)
		operate_address(node_text(c, "last_error_url", node_text(c, "url", "")), out);
	buffer_append_string(out, "\n");
}

/* The current version, when it was confirmed last, and the next pull. */
static void note_current(const struct node *c, const struct show_config *s, struct buffer *out)
{
	int64_t generation = node_integer(c, "generation", 0),
		backoff_ms = node_integer(c, "backoff_ms", 0),
		at_ms = node_integer(c, "confirmed_ms", 0),
		since_ms = node_integer(c, "failing_since_ms", 0), now_ms = sys_real.wall_ms();
	char text[24];

	if (s->rank < SHOW_FAILING)
		return;
	buffer_append_string(out, "  ");
	if (since_ms > 0)
		buffer_printf(out, "failing for %s; ",
			wrap_span(now_ms > since_ms ? now_ms - since_ms : 0, text));
	if (generation == 0)
		buffer_append_string(out, "nothing is published; ");
	else
		buffer_printf(out, "generation %" PRId64 " stays, last confirmed %s ago",
			generation, wrap_span(s->age_ms, text));
	if (generation && at_ms > 0) {
		buffer_append_string(out, " (");
		words_time(out, at_ms);
		buffer_append_string(out, ")");
	}
	if (generation)
		buffer_append_string(out, "; ");
	if (node_is_true(c, "running"))
		buffer_append_string(out, "a pull is running\n");
	else if (node_is_true(c, "deferred") && backoff_ms > 0)
		buffer_printf(out, "pull deferred: server in backoff for %s\n",
			wrap_span(backoff_ms, text));
	else if (node_is_true(c, "deferred"))
		buffer_append_string(out, "pull queued (server busy)\n");
	else
		buffer_printf(out, "next pull in %s\n", wrap_span(s->next_ms, text));
}

static void note_rejected(const struct node *c, struct buffer *out)
{
	const struct node *rejected = node_find(c, "rejected");
	const char *by = node_text(rejected, "by", "?");

	if (!rejected)
		return;
	buffer_append_string(out, "  the server's version ");
	words_text(out, node_text(rejected, "version", "(without a name)"));
	if (strcmp(by, "pin") == 0) {
		buffer_append_string(out, " is held by the pin\n");
		return;
	}
	operate_append_by(rejected, " is ", " was ", out);
	words_lines(out, operate_why(rejected));
	buffer_append_string(out, "\n");
	operate_forward(out, rejected);
}

static void note_operator_decisions(const struct node *c, struct buffer *out)
{
	const struct node *pin = node_find(c, "pin"), *suspension = node_find(c, "suspension");

	if (suspension) {
		buffer_append_string(out, "  suspended");
		operate_decision(out, suspension);
		buffer_append_string(out, "\n");
	}
	if (pin) {
		buffer_append_string(out, "  pinned");
		operate_decision(out, pin);
		buffer_append_string(out, "\n");
	}
	for (const struct node *o = node_first(c, "overrides"); o; o = o->next) {
		buffer_append_string(out, "  override of ");
		words_text(out, node_text(o, "key", "?"));
		operate_decision(out, o);
		buffer_append_string(out, "\n");
	}
}

static void note_pending_reload(const struct node *c, struct buffer *out)
{
	const struct node *reload = node_find(c, "reload");
	const char *state = node_text(reload, "state", "idle");
	char text[24];

	if (strcmp(state, "failed") == 0) {
		buffer_printf(out, "  reload failed, next attempt in %s: ",
			wrap_span(node_integer(reload, "next_ms", -1), text));
		words_text(out, node_text(reload, "error", "?"));
		buffer_append_string(out, "\n");
	} else if (strcmp(state, "idle") != 0) {
		buffer_printf(out, "  reload pending for generation %" PRId64 "\n",
			node_integer(reload, "pending", 0));
	}
}

static void note_probe(const struct node *c, struct buffer *out)
{
	const struct node *probe = node_find(c, "probe");
	const char *error = node_text(probe, "error", NULL);

	if (show_is_probed(c) && node_integer(probe, "generation", 0) == 0)
		buffer_append_string(out, "  the probe waits for the reload\n");
	else if (show_is_probed(c))
		buffer_printf(out, "  generation %" PRId64 " is being probed\n",
			node_integer(probe, "generation", 0));
	if (!error || strcmp(node_text(probe, "state", ""), "failed") != 0)
		return;
	buffer_printf(out, "  generation %" PRId64 " failed its probe: ",
		node_integer(probe, "generation", 0));
	words_lines(out, error);
	buffer_append_string(out, "\n");
}

static void note_watch(const struct node *c, struct buffer *out)
{
	const struct node *watch = node_find(c, "watch");

	if (strcmp(node_text(watch, "state", ""), "failing") != 0)
		return;
	buffer_append_string(out, "  the watch fails, changes come with the interval: ");
	words_text(out, node_text(watch, "error", "?"));
	buffer_append_string(out, "\n");
}

static void note_expiry(const struct node *c, bool all, struct buffer *out)
{
	int64_t expires_ms = node_integer(c, "expires_ms", 0);

	if (expires_ms <= 0 || (!all && expires_ms - sys_real.wall_ms() >= SHOW_SOON_MS))
		return;
	buffer_append_string(out, show_has_expired(c) ? "  the signature expired at "
						      : "  the signature expires at ");
	words_time(out, expires_ms);
	buffer_append_string(out, "\n");
}

void show_notes(const struct show_config *s, bool all, struct buffer *out)
{
	const struct node *c = s->node;

	note_error(c, s, out);
	note_rejected(c, out);
	note_current(c, s, out);
	note_operator_decisions(c, out);
	note_pending_reload(c, out);
	note_probe(c, out);
	note_watch(c, out);
	if (node_is_true(c, "drifted"))
		buffer_append_string(
			out, "  the published file was changed by somebody and is not restored\n");
	note_expiry(c, all, out);
}
