/*
 * What programs wrote, without the values of masked keys: those of the candidate and of the last
 * two generations.
 */
#include "config/core.h"

#include "document/merge.h"
#include "document/scrub.h"

/* What the layers said, and what came of it: of a candidate that was merged nothing else is left.
 */
static void scrub_composition(
	struct scrub *s, const struct composition *composition, char *const *mask)
{
	struct merge_layer layers[SETTINGS_MAX_LAYERS + LEDGER_MAX_OVERRIDES] = {{0}};
	size_t count = compose_layers(composition, layers);

	if (composition->merged)
		scrub_add(s, composition->root, mask);
	for (size_t i = 0; i < count; i++)
		scrub_add(s, layers[i].root, mask);
}

static void scrub_generation(struct scrub *s, struct config *c, uint64_t generation)
{
	struct candidate *v;
	char why[FILE_WHY];

	if (validation_load(c, generation, c->current.overrides, &v, why)) {
		scrub_hide_all(s);
		return;
	}
	scrub_composition(s, &v->composition, c->settings->mask);
	candidate_free(v);
}

void scrub_output(void *arg, struct buffer *out, const char *text, size_t len)
{
	uint64_t generations[STORE_MAX_KEEP];
	struct config *c = arg;
	struct scrub *s = c->settings->mask ? scrub_new() : NULL;
	size_t count = c->current.store && c->current.version.generation
			       ? store_list(c->current.store, generations)
			       : 0;

	if (!s) {
		buffer_append(out, c->settings->mask ? "***" : text, c->settings->mask ? 3 : len);
		return;
	}
	if (c->step.programs) /* no other thread is at the candidate then */
		scrub_composition(s, &c->step.candidate->composition, c->settings->mask);
	for (size_t i = 0, used = 0; i < count && used < 2; i++)
		if (generations[i] <= c->current.version.generation) {
			scrub_generation(s, c, generations[i]);
			used++;
		}
	scrub_append(s, out, text, len);
	scrub_free(s);
}
