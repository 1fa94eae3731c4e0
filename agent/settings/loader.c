/*
 * Errors, memory and unique names while the agent's configuration is read.
 *
 * Surprising: duplicate names are found by sorting at the end, not by searching each time, so that
 * ten thousand configs load fast.
 */
#include "settings/loader.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "settings/value.h"

void loader_complain(struct loader *l, struct place at, const char *format, ...)
{
	char message[PATH_MAX + 1024];
	va_list args;
	int n;

	if (l->no_memory || ++l->errors > LOADER_MAX_ERRORS)
		return;
	n = at.line ? snprintf(message, PATH_MAX + 32, "%s:%u:%u: ", at.file, at.line, at.column)
		    : snprintf(message, PATH_MAX + 32, "%s: ", at.file);
	n = n < PATH_MAX + 32 ? n : PATH_MAX + 31;
	va_start(args, format);
	vsnprintf(message + n, sizeof(message) - (size_t)n, format, args);
	va_end(args);
	l->report(l->arg, message);
}

void loader_complain_rest(struct loader *l, const char *file)
{
	char message[PATH_MAX + 64];

	if (l->errors <= LOADER_MAX_ERRORS)
		return;
	snprintf(message, sizeof(message), "%s: %zu more errors are not shown", file,
		l->errors - LOADER_MAX_ERRORS);
	l->report(l->arg, message);
}

void *loader_room(struct loader *l, void *array, size_t count, size_t size)
{
	char *larger = array_room(array, count, size);

	if (larger)
		memset(larger + count * size, 0, size);
	else
		l->no_memory = true;
	return larger;
}

char *loader_copy(struct loader *l, const char *text)
{
	char *c = strdup(text);

	l->no_memory |= !c;
	return c;
}

void loader_note(
	struct loader *l, struct marks *m, const char *text, const char *of, struct place place)
{
	struct mark *items;

	if (!text || !(items = loader_room(l, m->items, m->count, sizeof(*items))))
		return;
	m->items = items;
	items[m->count] = (struct mark){text, of, place, m->count};
	m->count++;
}

const char *loader_add_file(struct loader *l, char *name)
{
	char **files = name ? loader_room(l, l->files, l->file_count, sizeof(*files)) : NULL;

	if (!files) {
		l->no_memory = true;
		free(name);
		return NULL;
	}
	l->files = files;
	return files[l->file_count++] = name;
}

/* Sorts paths inside a directory directly behind it. */
static int char_rank(char c)
{
	return c == '/' ? 1 : c ? (unsigned char)c + 1 : 0;
}

static int compare_marks(const void *a, const void *b)
{
	const struct mark *x = a, *y = b;
	size_t i = 0;

	while (x->text[i] && x->text[i] == y->text[i])
		i++;
	if (x->text[i] != y->text[i])
		return char_rank(x->text[i]) - char_rank(y->text[i]);
	return (x->order > y->order) - (x->order < y->order);
}

void loader_complain_twice(struct loader *l, struct marks *m, const char *what)
{
	const struct mark *first = m->items;
	char shown[SETTINGS_SHOWN], of[SETTINGS_SHOWN];

	if (m->count == 0)
		return;
	qsort(m->items, m->count, sizeof(*m->items), compare_marks);
	for (const struct mark *i = first + 1; i < m->items + m->count; i++) {
		if (strcmp(i->text, first->text))
			first = i;
		else if (!i->of || !first->of)
			loader_complain(l, i->place, "%s %s is set twice: first at %s:%u:%u", what,
				settings_shown(i->text, shown), first->place.file,
				first->place.line, first->place.column);
		else if (strcmp(i->of,
				 first->of)) /* else reported already: the config is set twice */
			loader_complain(l, i->place,
				"%s %s is already written by config %s, at %s:%u:%u", what,
				settings_shown(i->text, shown), settings_shown(first->of, of),
				first->place.file, first->place.line, first->place.column);
	}
}

void loader_complain_inside(struct loader *l, const struct marks *m)
{
	const struct mark *outer = m->items;
	char shown[3][SETTINGS_SHOWN];

	for (size_t i = 1; i < m->count; i++) {
		const struct mark *inner = &m->items[i];
		size_t len = strlen(outer->text);

		if (!outer->of || strncmp(inner->text, outer->text, len) ||
			inner->text[len] != '/') {
			outer = inner;
			continue;
		}
		loader_complain(l, inner->place,
			"%s lies inside %s, which is written by config %s, at %s:%u:%u",
			settings_shown(inner->text, shown[0]),
			settings_shown(outer->text, shown[1]), settings_shown(outer->of, shown[2]),
			outer->place.file, outer->place.line, outer->place.column);
	}
}

void loader_opens(const struct loader *l, const char *path)
{
	if (l->opens)
		l->opens(l->opens_arg, path);
}

void loader_fini(struct loader *l)
{
	for (size_t i = 0; i < l->file_count; i++)
		free(l->files[i]);
	free(l->files);
	free(l->names.items);
	free(l->paths.items);
	free(l->endpoints.items);
	free(l->labels.items);
	free(l->servers.items);
	free(l->froms.items);
	free(l->asides.items);
	free(l->environment.variables);
	free(l->environment.text);
}
