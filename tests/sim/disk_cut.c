/* What a power cut leaves. Surprising: all changes are taken back, then those that survive are done
 * again; as each is a value of one name, any set of them can be. */
#include "disk_tree.h"

#include <string.h>

#include "world.h"

/* ---- data ---- */

enum outcome { OUTCOME_ALL, OUTCOME_NONE, OUTCOME_PREFIX, OUTCOME_ZEROS, OUTCOME_PAGES, OUTCOMES };

/* Puts what was durable of that page in place, zeros behind it. */
static void revert_page(struct pages *p, size_t at, size_t end, const struct inode *n)
{
	size_t known = n->truncated ? 0 : n->safe_len, len = end - at;
	size_t kept = known <= at ? 0 : known - at < len ? known - at : len;

	if (kept)
		memcpy(p->data + at, n->safe->data + at, kept);
	memset(p->data + at + kept, 0, len - kept);
}

static void keep_synced(struct inode *n)
{
	pages_unref(n->data);
	n->data = n->safe;
	if (n->data)
		n->data->refs++;
	n->len = n->safe_len;
}

static void tear_pages(struct inode *n, enum outcome outcome)
{
	size_t count = (n->len + DISK_PAGE - 1) / DISK_PAGE;
	size_t kept = outcome == OUTCOME_PREFIX ? world_random(STREAM_DISK, count) : 0;
	size_t len = n->len;
	struct pages *old = n->data;

	if (outcome == OUTCOME_PREFIX && kept < count) {
		len = kept * DISK_PAGE;
		if (!n->truncated && len < n->safe_len)
			len = n->safe_len;
	}
	n->data = pages_copy(old, n->len, len);
	for (size_t i = 0, at = 0; at < len; i++, at += DISK_PAGE) {
		bool keep = outcome == OUTCOME_PAGES ? world_random(STREAM_DISK, 1) : i < kept;

		if (!keep)
			revert_page(n->data, at, at + DISK_PAGE < len ? at + DISK_PAGE : len, n);
	}
	n->len = len;
	pages_unref(old);
}

static void tear_file(struct inode *n)
{
	enum outcome outcome;

	if (!S_ISREG(n->mode) || !n->dirty)
		return;
	outcome = (enum outcome)world_random(STREAM_DISK, OUTCOMES - 1);
	if (n->lost)
		outcome = outcome >= OUTCOME_ZEROS ? OUTCOME_ZEROS : OUTCOME_NONE;
	if (outcome == OUTCOME_NONE)
		keep_synced(n);
	else if (outcome != OUTCOME_ALL && n->len > 0)
		tear_pages(n, outcome);
}

static void settle_file(struct inode *n)
{
	if (!S_ISREG(n->mode))
		return;
	pages_unref(n->safe);
	n->safe = n->data;
	if (n->safe)
		n->safe->refs++;
	n->safe_len = n->len;
	n->dirty = n->truncated = n->lost = false;
	n->writers = 0;
}

/* ---- names ---- */

static void set_attributes(struct change *c, bool after)
{
	c->after->mode = after ? c->is.mode : c->was.mode;
	c->after->uid = after ? c->is.uid : c->was.uid;
	c->after->gid = after ? c->is.gid : c->was.gid;
}

static void undo_change(struct change *c)
{
	if (!c->dir) {
		set_attributes(c, false);
		return;
	}
	dir_set(c->dir, c->to ? c->to : c->name, c->before);
	if (c->to)
		dir_set(c->dir, c->name, c->moved);
}

static void redo_change(struct change *c)
{
	if (!c->dir) {
		set_attributes(c, true);
		return;
	}
	if (c->to)
		dir_set(c->dir, c->name, NULL);
	dir_set(c->dir, c->to ? c->to : c->name, c->after);
}

static void revert_names(struct disk *d)
{
	size_t kept = world_random(STREAM_DISK, d->logged);
	bool keep, keep_before = true;

	if (kept > 0 && kept < d->logged && d->log[kept - 1].joined)
		kept--;
	for (size_t i = d->logged; i-- > 0;)
		undo_change(&d->log[i]);
	for (size_t i = 0; i < d->logged; i++) {
		keep = d->model == DISK_JOURNAL ? i < kept : world_random(STREAM_DISK, 1);
		if (i > 0 && d->log[i - 1].joined && !keep_before)
			keep = false;
		if (keep)
			redo_change(&d->log[i]);
		keep_before = keep;
	}
	log_forget(d, 0, d->logged);
}

/* ---- what can be reached ---- */

static void forget_entry(struct inode *dir, size_t i)
{
	name_unref(dir->entries[i].name);
	dir->entries[i] = dir->entries[--dir->count];
}

/* Marks the tree, counts links and references again; a directory has one name only, as fsck sees
 * to it. */
static void mark_tree(struct inode *dir)
{
	size_t i = 0;

	dir->marked = true;
	dir->links += 2;
	dir->refs++;
	while (i < dir->count) {
		struct inode *n = dir->entries[i].inode;

		if (S_ISDIR(n->mode) && n->marked) {
			forget_entry(dir, i);
			continue;
		}
		if (!n->marked) {
			name_ref(dir->entries[i].name);
			name_unref(n->name);
			n->name = dir->entries[i].name;
			n->parent = dir;
			dir->refs++;
		}
		if (S_ISDIR(n->mode)) {
			dir->links++;
			mark_tree(n);
		} else { /* may have two names: a rename of which a half was kept */
			n->marked = true;
			n->links++;
			n->refs++;
		}
		i++;
	}
}

static void sweep_tree(struct disk *d)
{
	struct inode *next;

	for (struct inode *n = d->inodes; n; n = n->next) {
		n->marked = false;
		n->links = 0;
		n->refs = 0;
	}
	mark_tree(d->root);
	for (struct inode *n = d->inodes; n; n = next) {
		next = n->next;
		if (!n->marked)
			inode_destroy(n);
	}
}

static void empty_memory(struct disk *d)
{
	for (struct inode *n = d->inodes; n; n = n->next)
		while (n->device != DISK_DEVICE && n->count > 0)
			forget_entry(n, 0);
}

void disk_cut(struct disk *d)
{
	void (*changed)(void *, const char *, const char *, const char *) = d->changed;

	d->changed = NULL; /* nobody is there to notice */
	for (int owner = 0; owner < OWNERS; owner++)
		disk_kill(d, (enum disk_owner)owner);
	d->changed = changed;
	revert_names(d);
	empty_memory(d);
	sweep_tree(d);
	for (struct inode *n = d->inodes; n; n = n->next) {
		tear_file(n);
		settle_file(n);
	}
}
