/*
 * Two tables: the directories that were read, and the temporary files that were found there, by the
 * name of their target. Surprising: only those of the given name are removed: the others may belong
 * to another agent.
 */
#include "publish/sweep.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "files/file.h"
#include "base/hash.h"
#include "base/index.h"

struct place { /* a directory */
	dev_t dev;
	ino_t ino;
};

struct swept {
	struct index_link link;
	struct place place;
};

struct leftover {
	struct index_link link;
	struct place place;
	size_t name_len; /* of the file that it was to become, which begins at entry + 1 */
	char entry[];
};

struct sweep {
	const struct sys *sys;
	struct index places, leftovers;
};

static uint64_t leftover_hash(const struct place *p, const char *name, size_t len)
{
	uint64_t hash = hash_bytes(HASH_START, &p->dev, sizeof(p->dev));

	return hash_bytes(hash_bytes(hash, &p->ino, sizeof(p->ino)), name, len);
}

static bool same_place(const struct place *a, const struct place *b)
{
	return a->dev == b->dev && a->ino == b->ino;
}

struct sweep *sweep_new(const struct sys *sys)
{
	struct sweep *s = calloc(1, sizeof(*s));

	if (s)
		s->sys = sys;
	return s;
}

void sweep_free(struct sweep *s)
{
	struct index_link *link;
	size_t at = 0;

	if (!s)
		return;
	while ((link = index_take(&s->places, &at)))
		free(link); /* the first member of a struct swept */
	at = 0;
	while ((link = index_take(&s->leftovers, &at)))
		free(link);
	index_fini(&s->places);
	index_fini(&s->leftovers);
	free(s);
}

static bool place_was_read(const struct sweep *s, const struct place *place, uint64_t hash)
{
	const struct index_link *l = index_first(&s->places, hash);

	while (l && !same_place(&((const struct swept *)l)->place, place))
		l = index_next(l);
	return l;
}

static int note_leftover(
	struct sweep *s, const struct place *place, const char *entry, size_t name_len)
{
	size_t size = strlen(entry) + 1;
	struct leftover *o = malloc(sizeof(*o) + size);

	if (!o)
		return -ENOMEM;
	o->place = *place;
	o->name_len = name_len;
	memcpy(o->entry, entry, size);
	if (index_add(&s->leftovers, &o->link, leftover_hash(place, entry + 1, name_len)) == 0)
		return 0;
	free(o);
	return -ENOMEM;
}

/* Notes the temporary files of a directory. 0, or -errno when it was not read to its end. */
static int read_place(struct sweep *s, int dir, const struct place *place, uint64_t hash)
{
	DIR *d = file_list_dir(s->sys, dir, ".");
	struct swept *swept;
	struct dirent *e;
	int r = 0;

	if (!d)
		return -EIO;
	while (r == 0 && (e = readdir(d))) {
		size_t len = file_temporary(e->d_name);

		r = len ? note_leftover(s, place, e->d_name, len) : 0;
	}
	closedir(d);
	swept = r == 0 ? malloc(sizeof(*swept)) : NULL;
	if (!swept || index_add(&s->places, &swept->link, hash)) {
		free(swept);
		return -ENOMEM;
	}
	swept->place = *place;
	return 0;
}

static void remove_leftovers(struct sweep *s, int dir, const struct place *place, const char *name)
{
	size_t len = strlen(name);
	uint64_t hash = leftover_hash(place, name, len);
	struct index_link *l, *next;

	for (l = index_first(&s->leftovers, hash); l; l = next) {
		struct leftover *o = (struct leftover *)l;

		next = index_next(l);
		if (!same_place(&o->place, place) || o->name_len != len ||
			memcmp(o->entry + 1, name, len) != 0)
			continue;
		s->sys->unlinkat(dir, o->entry, 0);
		index_remove(&s->leftovers, l);
		free(o);
	}
}

void sweep_clean(struct sweep *s, const struct sys *sys, int dir, const char *name)
{
	struct place place;
	struct stat st;
	uint64_t hash;

	if (!s || fstat(dir, &st)) {
		file_clean(sys, dir, name);
		return;
	}
	place = (struct place){st.st_dev, st.st_ino};
	hash = leftover_hash(&place, "", 0);
	if (!place_was_read(s, &place, hash) && read_place(s, dir, &place, hash))
		file_clean(sys, dir, name);
	else
		remove_leftovers(s, dir, &place, name);
}
