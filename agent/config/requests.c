/*
 * What is to stand instead: a rollback, other overrides, the version before one that fails its
 * probe. Wished for, and granted when nothing else is under way.
 *
 * Surprising: what could not be done is not kept as a wish; every run looks at what stands and
 * wishes for it again.
 */
#include "config/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void take_back(struct config *c, const char *why);

void version_forget_wish(struct config *c)
{
	free(c->wish.origin);
	c->wish = (struct wish){.kind = WISH_NOTHING};
}

/* The standing bytes again, within the run. */
void version_recompose(struct config *c)
{
	char why[FILE_WHY] = "out of memory";
	unsigned damaged;
	int r = -ENOMEM;

	c->candidate = candidate_new();
	if (c->candidate)
		r = candidate_load(c->candidate, c->store, c->published.generation, &damaged, why);
	if (r) {
		version_failed(c, "what stands cannot be made again", why);
		return;
	}
	c->candidate->save = true;
	version_try(c, VERIFY_RECOMPOSED);
}

/* Is what stands made with other overrides than those of now? */
static bool has_old_overrides(const struct config *c)
{
	const struct ledger *was = c->stood, *is = c->ledger;
	size_t n = was ? was->override_count : 0;

	if (c->change.under_way || n != is->override_count)
		return !c->change.under_way;
	for (size_t i = 0; i < n; i++)
		if (strcmp(was->overrides[i].key, is->overrides[i].key) != 0 ||
			strcmp(was->overrides[i].value, is->overrides[i].value) != 0)
			return true;
	return false;
}

/* What was wished for and could not be done is wished for again. */
void version_wish_again(struct config *c)
{
	const struct ledger_verdict *v =
		ledger_find(c->ledger, c->published.sha256, verify_id(c->checks));
	char why[FILE_WHY];

	if (c->away)
		return;
	if (v && strcmp(v->check, "probe") == 0) {
		snprintf(why, sizeof(why), "%.380s", v->why); /* the verdict is replaced */
		take_back(c, why);
	} else if (has_old_overrides(c))
		version_wish(
			c, &(struct wish){.kind = WISH_RECOMPOSE}, "the overrides have changed");
}

int version_wish(struct config *c, const struct wish *wish, const char *origin)
{
	bool recompose = c->wish.kind == WISH_RECOMPOSE || c->wish.recompose;
	char *text;

	if (c->wish.kind != WISH_NOTHING && wish->kind == WISH_RECOMPOSE) {
		c->wish.recompose = true;
		return 0;
	}
	if (c->wish.kind == WISH_ROLL_BACK && !wish->asked)
		return 0;
	text = strdup(origin);
	if (!text) {
		log_err("out of memory: not done", "config", c->settings->name, "what", origin);
		return -ENOMEM;
	}
	version_forget_wish(c);
	c->wish = *wish;
	c->wish.origin = text;
	c->wish.recompose = recompose;
	memcpy(c->wish.from, c->published.sha256, sizeof(c->wish.from));
	version_grant(c);
	return 0;
}

/* What was to be rolled back does not stand any more. */
static void forgo_rollback(struct config *c)
{
	bool recompose = c->wish.recompose;

	log_info("not rolled back: another version was published meanwhile", "config",
		c->settings->name, "what", c->wish.origin);
	version_forget_wish(c);
	if (!c->change.overrides)
		operate_ended(
			c, "another version was published meanwhile: look at it, and ask again");
	if (recompose && version_wish(c, &(struct wish){.kind = WISH_RECOMPOSE},
				 "the overrides have changed"))
		operate_ended(c, "out of memory");
}

static void grant(struct config *c)
{
	bool rolls_back = c->wish.kind == WISH_ROLL_BACK;
	uint64_t generation = rolls_back ? c->wish.generation : c->published.generation;
	char why[FILE_WHY] = "out of memory", *origin = c->wish.origin;
	bool stays = c->wish.stays;
	bool recompose = !rolls_back || c->wish.recompose;
	unsigned damaged;
	int r = -ENOMEM;

	if (c->wish.kind == WISH_NOTHING || c->candidate || trigger_running(&c->trigger))
		return;
	if (rolls_back && strcmp(c->wish.from, c->published.sha256) != 0) {
		forgo_rollback(c);
		return;
	}
	c->wish = (struct wish){.kind = WISH_NOTHING};
	if (!c->published.generation) {
		free(origin);
		return;
	}
	c->candidate = candidate_new();
	if (c->candidate)
		r = candidate_load(c->candidate, c->store, generation, &damaged, why);
	if (r) {
		log_err("what was asked for cannot be done: the old version stays", "config",
			c->settings->name, "what", origin, "why", why);
		free(origin);
		version_drop(c);
		operate_ended(c, why);
		return;
	}
	c->change.granted = c->change.under_way;
	c->candidate->local = c->candidate->save = true;
	c->candidate->stays = stays;
	c->candidate->version.product_len = 0;
	buffer_clear(&c->candidate->text);
	c->candidate->has_text = false;
	free(c->candidate->version.origin);
	c->candidate->version.origin = origin;
	version_try(c, recompose ? VERIFY_RECOMPOSED : VERIFY_TRUSTED);
}

void version_grant(struct config *c)
{
	const char *cause = c->touched;

	c->touched = NULL;
	if (c->retires)
		return;
	if (cause)
		version_noticed(c, cause);
	grant(c);
}

/* The generation that comes back instead of `bad`: the one that was proven, or, without one or when
 * it is not kept any more, the newest before. 0 = there is none. */
static uint64_t good_before(struct config *c, uint64_t bad)
{
	uint64_t generations[STORE_MAX_KEEP], newest = 0;
	size_t n = store_list(c->store, generations);

	for (size_t i = 0; i < n; i++) {
		if (generations[i] >= bad)
			continue;
		if (generations[i] == c->ledger->proven)
			return generations[i];
		if (!newest)
			newest = generations[i];
	}
	return newest;
}

/* The bytes are those that were good: it is the overrides that do harm. */
static bool is_overrides_fault(struct config *c, uint64_t good)
{
	struct candidate *v = c->stood ? candidate_new() : NULL;
	char why[FILE_WHY];
	unsigned damaged;
	bool same = v && candidate_load(v, c->store, good, &damaged, why) == 0 &&
		    version_same(&v->version, &c->published);

	candidate_free(v);
	return same;
}

static void drop_overrides(struct config *c)
{
	while (c->ledger->override_count)
		ledger_drop_override(
			c->ledger, c->ledger->overrides[c->ledger->override_count - 1].key);
	operate_forgive(c);
	version_remember(c);
	version_wish(c, &(struct wish){.kind = WISH_RECOMPOSE, .stays = true},
		"probe: the overrides were bad, and are removed");
}

/* What stands fails its probe. */
static void take_back(struct config *c, const char *why)
{
	uint64_t generation = c->published.generation, good = good_before(c, generation);
	char origin[160];

	if (good && is_overrides_fault(c, good)) {
		config_complain(c, "the overrides failed the probe and are removed", why);
		drop_overrides(c);
		return;
	}
	if (!good && store_list(c->store, (uint64_t[STORE_MAX_KEEP]){0}) > 0) {
		log_err("the version fails its probe, and there is no older one to go back to",
			"config", c->settings->name, "generation", LOG_U64(generation));
		config_complain(c, "the version fails its probe, and there is no older one", why);
		return;
	}
	if (ledger_refuse(
		    c->ledger, c->published.sha256, "probe", "", c->env->sys->wall_ms(), why) == 0)
		version_remember(c);
	snprintf(origin, sizeof(origin), "probe: generation %llu was bad, back to %llu",
		(unsigned long long)generation, (unsigned long long)good);
	config_complain(c, "the version failed its probe and was rolled back", why);
	version_wish(c, &(struct wish){.kind = WISH_ROLL_BACK, .generation = good, .stays = true},
		origin);
}

static void probe_failed(void *arg, uint64_t generation, const char *why)
{
	struct config *c = arg;

	if (generation == c->published.generation)
		take_back(c, why);
}

static void remember(void *arg)
{
	version_remember(arg);
}

static const struct notify_calls aftermath_calls = {remember, probe_failed, version_scrub};

void version_start_aftermath(struct config *c)
{
	const struct notify_options options = {
		.loop = c->env->loop,
		.transport = c->env->gather.exchange.transport,
		.ca_file = c->env->gather.exchange.ca_file,
		.config = c->settings,
		.ledger = c->ledger,
		.standing = c->published.generation,
		.calls = &aftermath_calls,
		.arg = c,
	};

	if (!c->aftermath && c->ledger && !c->env->once && notify_wanted(c->settings)) {
		c->aftermath = notify_new(&options);
		if (!c->aftermath)
			log_err("out of memory: the application will not be told", "config",
				c->settings->name);
	}
}

/* A crash between the verdict and what follows from it: the version that was rolled back stands. */
void version_finish_rollback(struct config *c)
{
	const struct ledger_verdict *v =
		c->published.generation ? ledger_find(c->ledger, c->published.sha256, "") : NULL;
	uint64_t good = v ? good_before(c, c->published.generation) : 0;
	char origin[160];

	if (!good)
		return;
	snprintf(origin, sizeof(origin),
		"%s: generation %llu was rolled back, finished after a restart", v->check,
		(unsigned long long)c->published.generation);
	version_wish(c, &(struct wish){.kind = WISH_ROLL_BACK, .generation = good, .stays = true},
		origin);
}
