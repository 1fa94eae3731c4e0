/* The diff of two settings. Surprising: configs and servers are compared by fingerprint and never
 * by value, so that a new key counts by itself. */
#include "settings/diff.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct entry {
	const char *name;
	const struct settings_print *print;
	size_t index;
};

static bool same_print(const struct settings_print *a, const struct settings_print *b)
{
	return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

/* ---- configs and servers ---- */

static int compare_setting_names(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static struct entry config_entry(const struct settings *s, size_t i)
{
	return (struct entry){s->configs[i]->name, &s->configs[i]->print, i};
}

static struct entry server_entry(const struct settings *s, size_t i)
{
	const struct settings_server *v = s->servers[i];

	return (struct entry){v->name ? v->name : v->urls[0], &v->print, i};
}

/* Sorted by name; NULL when there is no memory. */
static struct entry *list_entries(const struct settings *s, size_t count,
	struct entry (*entry)(const struct settings *s, size_t i))
{
	struct entry *entries = calloc(count + 1, sizeof(*entries));

	for (size_t i = 0; entries && i < count; i++)
		entries[i] = entry(s, i);
	if (entries)
		qsort(entries, count, sizeof(*entries), compare_setting_names);
	return entries;
}

static void pair_entries(struct settings_match *m, const struct entry *old, const struct entry *new)
{
	m->before[new->index] = old->index;
	m->stays[old->index] = true;
	m->same[new->index] = m->kept[old->index] = same_print(old->print, new->print);
	if (m->same[new->index])
		m->unchanged++;
	else
		m->changed++;
}

static int match_entries(const struct settings *old, size_t old_count, const struct settings *new,
	size_t new_count, struct entry (*entry)(const struct settings *s, size_t i),
	struct settings_match *m)
{
	struct entry *a = list_entries(old, old_count, entry),
		     *b = list_entries(new, new_count, entry);
	bool good;

	m->before = calloc(new_count + 1, sizeof(*m->before));
	m->same = calloc(new_count + 1, sizeof(*m->same));
	m->kept = calloc(old_count + 1, sizeof(*m->kept));
	m->stays = calloc(old_count + 1, sizeof(*m->stays));
	good = a && b && m->before && m->same && m->kept && m->stays;
	for (size_t i = 0, k = 0; good && k < new_count; k++) {
		int order = -1;

		while (i < old_count && (order = compare_setting_names(&a[i], &b[k])) < 0)
			i++;
		if (i < old_count && order == 0)
			pair_entries(m, &a[i++], &b[k]);
		else
			m->before[b[k].index] = SETTINGS_NONE;
	}
	m->added = new_count - m->changed - m->unchanged;
	m->removed = old_count - m->changed - m->unchanged;
	free(a);
	free(b);
	return good ? 0 : -ENOMEM;
}

/* ---- the agent's own ---- */

static bool same_push(const struct settings *old, const struct settings *new)
{
	for (size_t i = 0; i < new->push_count; i++) {
		size_t k = 0;

		while (k < old->push_count && !same_print(&new->push[i].print, &old->push[k].print))
			k++;
		if (k == old->push_count)
			return false;
	}
	return old->push_count == new->push_count;
}

static bool same_labels(const struct settings *old, const struct settings *new)
{
	for (size_t i = 0; i < new->label_count; i++) {
		const struct settings_label *label = &new->labels[i];
		size_t k = 0;

		while (k < old->label_count && strcmp(label->name, old->labels[k].name) != 0)
			k++;
		if (k == old->label_count || strcmp(label->value, old->labels[k].value) != 0)
			return false;
	}
	return old->label_count == new->label_count;
}

/* A receipt names the configs in their order. */
static bool same_order(const struct settings *old, const struct settings *new)
{
	for (size_t i = 0; i < new->config_count &&i < old->config_count; i++)
		if (strcmp(old->configs[i]->name, new->configs[i]->name) != 0)
			return false;
	return old->config_count == new->config_count;
}

int settings_diff(
	const struct settings *old, const struct settings *new, struct settings_diff *ret_diff)
{
	struct settings_diff d = {
		.push = !same_push(old, new),
		.labels = !same_labels(old, new) || !same_text(old->report.host, new->report.host),
		.listen = !same_text(old->listen, new->listen),
		.operators = old->operators != new->operators,
		.watch_config = old->watch_config != new->watch_config,
		.fixed = !same_text(old->state_dir, new->state_dir)       ? "state_dir"
			 : !same_text(old->runtime_dir, new->runtime_dir) ? "runtime_dir"
									  : NULL,
	};
	int r = match_entries(
		old, old->config_count, new, new->config_count, config_entry, &d.configs);

	d.report = d.labels || !same_order(old, new) ||
		   !same_print(&old->report.print, &new->report.print);
	if (r == 0)
		r = match_entries(
			old, old->server_count, new, new->server_count, server_entry, &d.servers);
	if (r)
		settings_diff_fini(&d);
	else
		*ret_diff = d;
	return r;
}

/* ---- what stays ---- */

static void adopt_config(struct settings_config **old, struct settings_config **new)
{
	struct settings_config *kept = *old;

	for (size_t i = 0; i < kept->layer_count; i++)
		kept->layers[i].server = (*new)->layers[i].server;
	if (kept->bootstrap)
		kept->bootstrap->server = (*new)->bootstrap->server;
	if (kept->rollout)
		kept->rollout->server = (*new)->rollout->server;
	*old = *new;
	*new = kept;
}

static void swap_texts(char **old, char **new)
{
	char *kept = *old;

	if (!kept || strcmp(kept, *new) != 0)
		return;
	*old = *new;
	*new = kept;
}

void settings_adopt(struct settings *old, struct settings *new, const struct settings_diff *diff)
{
	for (size_t i = 0; i < new->config_count; i++)
		if (diff->configs.same[i])
			adopt_config(&old->configs[diff->configs.before[i]], &new->configs[i]);
	for (size_t i = 0; i < new->server_count; i++)
		if (diff->servers.same[i]) {
			struct settings_server **old_one = &old->servers[diff->servers.before[i]];
			struct settings_server *kept = *old_one;

			*old_one = new->servers[i];
			new->servers[i] = kept;
		}
	swap_texts(&old->state_dir, &new->state_dir);
	swap_texts(&old->runtime_dir, &new->runtime_dir);
}

static void match_fini(struct settings_match *m)
{
	free(m->before);
	free(m->same);
	free(m->kept);
	free(m->stays);
}

void settings_diff_fini(struct settings_diff *diff)
{
	match_fini(&diff->configs);
	match_fini(&diff->servers);
	*diff = (struct settings_diff){.fixed = NULL};
}
