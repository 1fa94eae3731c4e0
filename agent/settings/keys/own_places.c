/*
 * The agent's own places. Surprising: the directories of state and snapshots are no forbidden
 * ground, since the sandbox of the service has no other: only what the agent names there is.
 */
#include "settings/keys/own_places.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "settings/value.h"

/* What is behind the directory in the path; NULL: it does not lie there. */
static const char *rest_below(const char *path, const char *dir)
{
	size_t len = strlen(dir);

	return strncmp(path, dir, len) == 0 && path[len] == '/' ? path + len + 1 : NULL;
}

static bool is_config(const struct loader *l, const char *name, size_t len)
{
	for (size_t i = 0; i < l->names.count; i++)
		if (strlen(l->names.items[i].text) == len &&
			strncmp(l->names.items[i].text, name, len) == 0)
			return true;
	return false;
}

static bool is_state(const struct loader *l, const char *path)
{
	const char *rest = l->s->state_dir ? rest_below(path, l->s->state_dir) : NULL;

	return (l->s->state_dir && strcmp(path, l->s->state_dir) == 0) ||
	       (rest && (strcmp(rest, ".lock") == 0 || is_config(l, rest, strcspn(rest, "/"))));
}

static bool is_runtime(const struct loader *l, const char *path)
{
	const char *rest = l->s->runtime_dir ? rest_below(path, l->s->runtime_dir) : NULL;
	const char *end = rest ? strrchr(rest, '.') : NULL;

	if (!rest || strchr(rest, '/'))
		return l->s->runtime_dir && strcmp(path, l->s->runtime_dir) == 0;
	return strcmp(rest, "control.sock") == 0 ||
	       (end && (strcmp(end, ".snap") == 0 || strcmp(end, ".gen") == 0 ||
			       strcmp(end, ".shown") == 0));
}

/* One of the files that were read, or in the folder of more of them. */
static bool is_configuration(const struct loader *l, char *const *real, const char *path)
{
	for (size_t i = 0; i < l->file_count; i++)
		if (real[i] && (strcmp(path, real[i]) == 0 || rest_below(path, real[i])))
			return true;
	return false;
}

static void complain_own(struct loader *l, char *const *real, const struct mark *m)
{
	char shown[SETTINGS_SHOWN];
	const char *what = is_state(l, m->text)     ? "is where the agent keeps its state"
			   : is_runtime(l, m->text) ? "is what the agent makes in runtime_dir"
			   : is_configuration(l, real, m->text) ? "is the agent's own configuration"
								: NULL;

	if (what)
		loader_complain(l, m->place, "%s %s: name another place",
			settings_shown(m->text, shown), what);
}

static void complain_all_own(struct loader *l)
{
	char **real = calloc(l->file_count + 1, sizeof(*real));

	l->no_memory |= !real;
	for (size_t i = 0; real && i < l->file_count; i++)
		real[i] = realpath(l->files[i], NULL); /* NULL: it is not there */
	for (size_t i = 0; real && i < l->paths.count; i++)
		complain_own(l, real, &l->paths.items[i]);
	for (size_t i = 0; real && i < l->file_count; i++)
		free(real[i]);
	free(real);
}

/* ---- one file by two paths ---- */

struct place_id {
	dev_t dev; /* of its directory */
	ino_t ino;
	const struct mark *mark;
};

static const char *last_part(const struct mark *m)
{
	return strrchr(m->text, '/') + 1;
}

static int compare_places(const void *a, const void *b)
{
	const struct place_id *x = a, *y = b;
	int order = strcmp(last_part(x->mark), last_part(y->mark));

	if (x->dev != y->dev)
		return x->dev < y->dev ? -1 : 1;
	if (x->ino != y->ino)
		return x->ino < y->ino ? -1 : 1;
	return order ? order
		     : (x->mark->order > y->mark->order) - (x->mark->order < y->mark->order);
}

static bool identify_place(const struct mark *m, struct place_id *ret)
{
	char *dir = strndup(m->text, (size_t)(last_part(m) - m->text));
	struct stat st;
	bool known = dir && stat(dir, &st) == 0;

	free(dir);
	if (known)
		*ret = (struct place_id){st.st_dev, st.st_ino, m};
	return known;
}

static void report_twins(struct loader *l, const struct place_id *ids, size_t count)
{
	char message[PATH_MAX], shown[2][SETTINGS_SHOWN];

	for (size_t i = 1; i < count; i++) {
		const struct mark *a = ids[i - 1].mark, *b = ids[i].mark;

		if (ids[i].dev != ids[i - 1].dev || ids[i].ino != ids[i - 1].ino ||
			strcmp(last_part(a), last_part(b)) || !strcmp(a->text, b->text))
			continue;
		snprintf(message, sizeof(message),
			"%.1000s:%u:%u: %s is also written by config %s, by another path, at "
			"%.1000s:%u:%u: name another place",
			b->place.file, b->place.line, b->place.column,
			settings_shown(b->text, shown[0]), settings_shown(a->of, shown[1]),
			a->place.file, a->place.line, a->place.column);
		l->twins(l->arg, message);
	}
}

static void find_twins(struct loader *l)
{
	struct place_id *ids = calloc(l->paths.count + 1, sizeof(*ids));
	size_t count = 0;

	for (size_t i = 0; ids && i < l->paths.count; i++)
		count += identify_place(&l->paths.items[i], &ids[count]);
	if (ids) {
		qsort(ids, count, sizeof(*ids), compare_places);
		report_twins(l, ids, count);
	}
	l->no_memory |= !ids;
	free(ids);
}

void settings_own_places_resolve(struct loader *l)
{
	complain_all_own(l);
	if (l->twins && l->errors == 0)
		find_twins(l);
}
