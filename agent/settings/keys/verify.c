/*
 * The keys of a config's `verify`: who may sign its documents, and what a signature must say.
 *
 * Surprising: the demands of one config depend on the others. The signature of one document by a
 * key that is trusted for two could be used for the other, so that the path is demanded then,
 * unless `bind` says otherwise; and a config that starts to share a key counts as changed at a
 * reload (settings/fingerprint.c).
 */
#include "settings/keys/verify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "settings/form.h"
#include "crypto/minisign.h"

#define CONFIG(member) MEMBER(settings_config, member)

static const struct choice binds[] = {
	{"config", SETTINGS_BIND_CONFIG},
	{"path", SETTINGS_BIND_PATH},
	{"none", SETTINGS_BIND_NONE},
	{NULL, 0},
};
static const struct choice revs[] = {{"required", true}, {"optional", false}, {NULL, 0}};

static const struct key rows[] = {
	{"public_key", walk_set_texts, CONFIG(verify.public_keys), .max = 1,
		.check = settings_check_public_key, .hidden = true},
	{"public_keys", walk_set_texts, CONFIG(verify.public_keys), .max = SETTINGS_MAX_PATTERNS,
		.check = settings_check_public_key, .hidden = true},
	{"bind", walk_set_choice, CONFIG(verify.bind), .choices = binds},
	{"rev", walk_set_choice, CONFIG(verify.rev_required), .choices = revs},
};
const struct mapping settings_verify_keys = {rows, COUNT(rows)};

/* An empty one is an error: it looks as if something were verified. */
void settings_set_verify(struct loader *l, const struct node *n, const struct key *k, void *object)
{
	const struct node *one = node_find(n, "public_key"), *list = node_find(n, "public_keys");

	if (!walk_expect(l, n, k->name, 1u << NODE_MAP, k->wanted))
		return;
	walk_mapping(l, n, k->mapping, k->name, NULL, object);
	if (!one == !list)
		loader_complain(l, walk_key_place(l, n),
			"%s needs either public_key or public_keys, and has %s", k->name,
			one ? "both" : "neither");
}

struct trusted {
	struct minisign_key key;
	struct settings_config *config;
};

static int compare_trusted(const void *a, const void *b)
{
	const struct trusted *x = a, *y = b;

	return memcmp(x->key.key, y->key.key, sizeof(x->key.key));
}

/* Marks all configs that trust a key which is trusted for several documents. */
static void mark_shared(const struct trusted *first, const struct trusted *end)
{
	bool several = false;

	for (const struct trusted *t = first; t < end; t++)
		several |= t->config != first->config || t->config->layer_count > 1;
	for (const struct trusted *t = first; several && t < end; t++)
		t->config->verify.key_shared = true;
}

void settings_verify_resolve(struct loader *l)
{
	struct settings *s = l->s;
	struct trusted *all;
	size_t count = 0, n = 0;

	for (size_t i = 0; i < s->config_count; i++)
		for (char **key = s->configs[i]->verify.public_keys; key && *key; key++)
			count++;
	all = calloc(count + 1, sizeof(*all));
	l->no_memory |= !all;
	for (size_t i = 0; all && i < s->config_count; i++)
		for (char **key = s->configs[i]->verify.public_keys; key && *key; key++) {
			all[n].config = s->configs[i];
			if (minisign_parse_key(*key, &all[n].key) == 0)
				n++;
		}
	if (n)
		qsort(all, n, sizeof(*all), compare_trusted);
	for (size_t i = 0, k; i < n; i = k) {
		for (k = i + 1; k < n && compare_trusted(&all[i], &all[k]) == 0; k++)
			;
		mark_shared(&all[i], &all[k]);
	}
	free(all);
	for (size_t i = 0; i < s->config_count; i++) {
		struct settings_verify *v = &s->configs[i]->verify;

		if (v->bind == SETTINGS_BIND_AUTO)
			v->bind = v->key_shared ? SETTINGS_BIND_PATH : SETTINGS_BIND_NONE;
	}
}

struct minisign_demand settings_signature_demand(const struct settings_config *c, size_t layer)
{
	const struct settings_verify *v = &c->verify;

	return (struct minisign_demand){
		.config = c->name,
		.path = c->layers[layer].path,
		.or_path = layer == 0 && c->bootstrap ? c->bootstrap->path : NULL,
		.names_config = v->bind == SETTINGS_BIND_CONFIG,
		.names_path = v->bind == SETTINGS_BIND_PATH,
		.has_rev = v->rev_required,
	};
}
