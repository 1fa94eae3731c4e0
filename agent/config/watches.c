/*
 * Documents that their servers watch for us: a change is a hint to the trigger. Where the server
 * sent the only document with it, the run that follows takes that, and has nothing to ask.
 */
#include "config/core.h"

#include <stdlib.h>

/* The version seen last: a server that compares (Nacos) would report a rejected version for ever.
 */
static const char *watched_version(void *arg)
{
	const struct watched_layer *w = arg;
	const struct config *c = w->config;
	size_t each = c->settings->verify.public_keys ? 2 : 1, i = w->layer * each;
	const char *seen =
		w->layer < c->settings->layer_count
			? pull_seen(c->run.bootstrapping ? c->run.bootstrap : c->run.pull, i)
			: "";

	return seen                                ? seen
	       : i < c->current.version.part_count ? c->current.version.parts[i].etag
						   : "";
}

/* Callback: hosts hear of it at the same moment, so the spread of a push applies. */
static void document_changed(void *arg, const char *key, size_t key_len, const char *version)
{
	const struct watched_layer *w = arg;
	struct config *c = w->config;
	uint64_t spread_ms = c->settings->push_spread_ms, now_ms = c->env->sys->now_ms(), due_ms;

	(void)key, (void)key_len, (void)version;
	c->run.watch_changes++;
	if (trigger_due(&c->run.trigger, &due_ms) && due_ms <= now_ms + spread_ms)
		return; /* that pull is within the window */
	trigger_hint(&c->run.trigger, now_ms, sys_random_upto(c->env->sys, spread_ms));
}

/* Callback. Hosts that wait for their turn ask the server then. */
static void document_came(void *arg, const struct http_client_response *answer)
{
	const struct watched_layer *w = arg;
	struct config *c = w->config;

	if (w->layer < c->settings->layer_count && c->settings->push_spread_ms == 0 &&
		!c->run.bootstrapping)
		pull_offer(c->run.pull, answer);
}

void watches_stop(struct config *c)
{
	for (size_t i = 0; i < c->run.watched_count; i++)
		watch_remove(c->env->watcher, &c->run.watched[i].item);
	c->run.watched_count = 0;
}

/* A document that cannot be watched is pulled at the interval. */
void watches_start(struct config *c)
{
	size_t n = c->settings->layer_count, count = n + (c->settings->rollout != NULL);

	watches_stop(c); /* a ledger that was read late may say only now that it was suspended */
	free(c->run.watched);
	c->run.watched = c->env->watcher ? calloc(count, sizeof(*c->run.watched)) : NULL;
	for (size_t i = 0; c->run.watched && i < count; i++) {
		const struct settings_layer *layer =
			i < n ? &c->settings->layers[i] : c->settings->rollout;
		struct upstream *server = c->env->pull.servers[layer->server];
		const struct settings_server *settings = upstream_settings(server);
		struct watched_layer *w = &c->run.watched[c->run.watched_count];

		/* Nacos needs the version that is held; of a rollout none is */
		if (!settings->watch || (i == n && settings->kind == SETTINGS_NACOS))
			continue;
		*w = (struct watched_layer){
			.item = {layer->path, watched_version, document_changed, w, document_came},
			.config = c,
			.layer = i};
		c->run.watched_count += watch_add(c->env->watcher, settings,
						upstream_session(server), &w->item) == 0;
	}
	if (c->run.watched_count)
		return;
	free(c->run.watched);
	c->run.watched = NULL;
}

/* The run has followed all changes that watches reported before it began. */
void watches_confirm(struct config *c)
{
	for (size_t i = 0; c->run.followed == c->run.watch_changes && i < c->run.watched_count; i++)
		watch_followed(&c->run.watched[i].item);
}

void watches_fill_status(const struct config *c, struct config_status *s)
{
	s->watched = c->run.watched_count;
	s->watch_changes = c->run.watch_changes;
	s->watch_error = "";
	for (size_t i = 0; i < c->run.watched_count; i++) {
		const char *error;
		enum watch_state state = watch_status(&c->run.watched[i].item, &error);

		if (i == 0 || state == WATCH_FAILING ||
			(state == WATCH_CONNECTING && s->watch == WATCH_ON))
			s->watch = state;
		if (error[0])
			s->watch_error = error;
	}
}
