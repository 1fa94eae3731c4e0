/*
 * Whether a rollback or an override is possible, asked before it is requested. Surprising: a
 * rollback's target is loaded, and its signatures are checked by the keys of now.
 */
#include "config/inspect.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/core.h"
#include "crypto/minisign.h"
#include "document/key_path.h"
#include "settings/value.h"
#include "version/compose.h"

/* ---- rollback ---- */

static int fail_no_memory(char why[FILE_WHY])
{
	snprintf(why, FILE_WHY, "out of memory");
	return -ENOMEM;
}

/* The newest version that a rollback may publish. 0, -ENOENT or -ENOMEM. */
static int find_rollback_generation(
	const struct inspection *seen, uint64_t *ret_generation, char why[FILE_WHY])
{
	uint64_t generations[STORE_MAX_KEEP];
	struct store *store = seen->config->current.store;
	size_t count = store_list(store, generations);
	char ignored[FILE_WHY];

	for (size_t i = 0; i < count; i++) {
		struct candidate *v;
		unsigned damaged;
		bool good;
		int r;

		if (generations[i] >= seen->published.generation)
			continue;
		v = candidate_new();
		if (!v)
			return fail_no_memory(why);
		r = candidate_load(v, store, generations[i], &damaged, ignored);
		good = r == 0 && !version_same(&v->version, &seen->published);
		for (size_t k = 0; good && k < seen->ledger->verdict_count; k++) {
			const struct ledger_verdict *verdict = &seen->ledger->verdicts[k];

			good = !rejection_is_rollback(rejection_parse(verdict->check)) ||
			       strcmp(verdict->sha256, v->version.sha256) != 0;
		}
		candidate_free(v);
		if (r == -ENOMEM)
			return fail_no_memory(why);
		if (good) {
			*ret_generation = generations[i];
			return 0;
		}
	}
	snprintf(why, FILE_WHY,
		"there is no older version that differs from the current one and was "
		"not rolled back itself: name a generation");
	return -ENOENT;
}

/* Each document is signed by the present keys. */
static int check_signatures(const struct config *c, const struct candidate *v, char why[FILE_WHY])
{
	char *const *keys = c->settings->verify.public_keys;
	struct minisign_demand demand;
	struct minisign_facts facts;
	char inner[FILE_WHY];

	for (size_t i = 0; keys && i < v->version.part_count; i++) {
		const struct compose_piece *p = &v->pieces[i], *s = p + 1;
		const char *path;
		int r = -EBADMSG;

		if (p->signature || p->facts->absent)
			continue;
		path = LOG_URL(c->settings->layers[p->layer].path);
		snprintf(inner, sizeof(inner), "it was stored without a signature");
		if (i + 1 < v->version.part_count && s->signature && !s->facts->absent)
			r = minisign_verify(keys, p->data, p->facts->len, s->data, s->facts->len,
				&facts, inner);
		if (r == 0) {
			demand = settings_signature_demand(c->settings, p->layer);
			r = minisign_check(&facts, &demand, inner);
		}
		if (r) {
			snprintf(why, FILE_WHY,
				"generation %llu is not signed as the configuration asks for: "
				"%.100s: %.160s",
				(unsigned long long)v->version.generation, path, inner);
			return r == -ENOMEM ? r : -EBADMSG;
		}
	}
	return 0;
}

static int check_rollback_target(
	const struct inspection *seen, uint64_t generation, char why[FILE_WHY])
{
	struct candidate *v;
	int r;

	if (generation == seen->published.generation) {
		snprintf(why, FILE_WHY, "generation %llu is the current version",
			(unsigned long long)generation);
		return -EALREADY;
	}
	r = validation_load(seen->config, generation, seen->ledger, &v, why);
	if (r)
		return r;
	if (version_same(&v->version, &seen->published)) {
		snprintf(why, FILE_WHY, "generation %llu has the same bytes as the current version",
			(unsigned long long)generation);
		r = -EALREADY;
	} else {
		r = check_signatures(seen->config, v, why);
	}
	candidate_free(v);
	return r;
}

int inspect_rollback(const struct inspection *i, uint64_t *generation, char why[FILE_WHY])
{
	int r = inspect_check_published(i, why);

	if (r == 0 && *generation == 0)
		r = find_rollback_generation(i, generation, why);
	return r ? r : check_rollback_target(i, *generation, why);
}

/* ---- override ---- */

/* The key that nearly is the segment from START to REST; the same path with it is one. */
static void find_near_key(const struct node *root, const struct node *map, const char *key,
	const char *start, const char *rest, char near[INSPECT_NEAR])
{
	char word[SETTINGS_MAX_WORD + 2], path[INSPECT_NEAR];
	size_t len = rest ? (size_t)(rest - start) - 1 : strlen(start);
	unsigned least = UINT_MAX;

	if (map->type != NODE_MAP || len > SETTINGS_MAX_WORD)
		return;
	snprintf(word, sizeof(word), "%.*s", (int)len, start);
	for (const struct node *n = map->first; n; n = n->next) {
		size_t other = strlen(n->key), limit = (len > other ? len : other) / 3;
		unsigned d = settings_distance(word, n->key);
		int used;

		if (d > limit || d >= least || strpbrk(n->key, ".\\"))
			continue;
		used = snprintf(path, sizeof(path), "%.*s%s%s%s", (int)(start - key), key, n->key,
			rest ? "." : "", rest ? rest : "");
		if (used < 0 || (size_t)used >= sizeof(path) || !key_path_find(root, path))
			continue;
		least = d;
		memcpy(near, path, sizeof(path));
	}
}

/* An override may lie in mappings only. */
static int check_key_way(
	const struct node *root, const char *key, struct inspect_effect *ret, char why[FILE_WHY])
{
	const struct node *n = root, *map = root;
	const char *rest = key, *start = key;

	while (n && rest) {
		if (n->type != NODE_MAP && n->type != NODE_NULL) {
			snprintf(why, FILE_WHY,
				"%.*s is a %s: an override of it as a whole is possible, not of "
				"something in it",
				(int)(rest - key - 1 > 200 ? 200 : rest - key - 1), key,
				n->type == NODE_LIST ? "list" : "single value");
			return -ENOTDIR;
		}
		map = n;
		start = rest;
		n = key_path_step(n, &rest);
	}
	*ret = (struct inspect_effect){.adds = !n};
	if (!n) {
		find_near_key(root, map, key, start, rest, ret->near);
	} else if (n->type == NODE_MAP || n->type == NODE_LIST) {
		ret->present = n->type;
		ret->count = n->count;
	}
	return 0;
}

size_t inspect_replaced(const struct inspect_effect *effect, const char *value)
{
	char why[FILE_WHY], *json, first;

	if (!effect->count || compose_override_value(value, &json, why))
		return 0;
	first = json[strspn(json, " \n")];
	free(json);
	if (first == 'n' || first == (effect->present == NODE_MAP ? '{' : '['))
		return 0;
	return effect->count;
}

int inspect_override(const struct inspection *i, const char *key, struct inspect_effect *ret_effect,
	char why[FILE_WHY])
{
	struct candidate *current;
	int r = inspect_check_published(i, why);

	if (r == 0)
		r = operate_check_key(i->config, key, why);
	if (r == 0)
		r = validation_load(i->config, i->published.generation, i->ledger, &current, why);
	if (r)
		return r;
	r = check_key_way(current->composition.root, key, ret_effect, why);
	candidate_free(current);
	return r;
}
