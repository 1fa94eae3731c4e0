/*
 * Document to image, image to file, page raised.
 *
 * Surprising: the page is the one file that is written in place, by atomic stores through a shared
 * mapping: eight bytes of it change, it is never shorter than a page, and its memory is there
 * before it is mapped, so that no store can meet a full file system. Who cuts it short all the same
 * gets a new one made (page_guard).
 */
#include "publish/image.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/page.h"
#include "lib/snapshot.h"
#include "document/extent.h"
#include "document/key_path.h"
#include "files/name_case.h"
#include "files/trusted.h"
#include "publish/page_guard.h"

#define KEEP_BYTES 65536 /* a smaller file is freed in no time */

struct image {
	const struct sys *sys;
	const char *dir;
	_Atomic(struct page *) page; /* the worker may replace it */
	struct page *old_page;       /* that was removed; readers may have it; NULL = none was */
	ino_t page_ino;              /* 0: its memory is lost */
	uint64_t generation;         /* what the page says */
	_Atomic uint64_t confirmed_ms, stale_ms; /* this, too; the worker may read it */
	struct {
		uint64_t ino, ctime_ns, digest;
	} verified; /* this, too */
	bool in_memory;
	bool failed; /* the last publication */
	bool known;  /* what follows is of the file last published */
	ino_t ino;
	off_t size;
	uint64_t mtime_ns;
	_Atomic(void *) replaced, leaving; /* files that readers had, mapped; NULL = none */
	struct prepared *prepared;         /* by image_prepare(); NULL = nothing is */
	char name[];                       /* NAME.snap */
};

struct prepared {
	int dir;                      /* that it is prepared in; -1 = none */
	char temporary[NAME_MAX + 1]; /* "" = an equal file is there */
	struct stat written;
	uint64_t digest;
};

/* ---- flattening ---- */

struct flat {
	const struct node *root;
	struct buffer path, keys;       /* keys: one after the other, each with its NUL */
	struct snapshot_entry *entries; /* room for all */
	size_t count;
	const struct node **children; /* of the nodes on the path; room for all */
	size_t child_count;
};

/* Adds the node under the present path. The key is an offset until all are there: keys may move. */
static int add_snapshot_entry(struct flat *f, const struct node *n)
{
	static const enum pullet_type types[] = {
		[NODE_NULL] = PULLET_NULL,
		[NODE_BOOL] = PULLET_BOOL,
		[NODE_INT] = PULLET_INT,
		[NODE_DOUBLE] = PULLET_DOUBLE,
		[NODE_STRING] = PULLET_STRING,
		[NODE_LIST] = PULLET_LIST,
		[NODE_MAP] = PULLET_MAP,
	};
	struct snapshot_entry *e = &f->entries[f->count++];
	bool has_text = n->type >= NODE_BOOL && n->type <= NODE_STRING;

	*e = (struct snapshot_entry){
		.key = (const char *)(uintptr_t)f->keys.len,
		.key_len = f->path.len,
		.value = {.type = types[n->type],
			.len = has_text ? n->text_len : 0,
			.text = has_text ? n->text : ""},
	};
	if (n->type == NODE_BOOL)
		e->value.boolean = n->boolean;
	else if (n->type == NODE_INT)
		e->value.integer = n->integer;
	else if (n->type == NODE_DOUBLE)
		e->value.number = n->number;
	else if (n->type >= NODE_LIST)
		e->value.count = n->count;
	return buffer_append(&f->keys, f->path.data, f->path.len + 1);
}

static int by_key(const void *a, const void *b)
{
	return node_compare_keys(*(const struct node *const *)a, *(const struct node *const *)b);
}

static int flatten_node(struct flat *f, const struct node *parent);

static int flatten_child(
	struct flat *f, const struct node *parent, const struct node *n, size_t number)
{
	size_t len = f->path.len;
	int r = key_path_append(&f->path, parent == f->root, n, number);

	if (r == 0)
		r = add_snapshot_entry(f, n);
	if (r == 0)
		r = flatten_node(f, n);
	f->path.len = len;
	return r;
}

/* An item, and behind it those whose numbers begin with its own. */
static int flatten_items(
	struct flat *f, const struct node *list, const struct node *const *items, size_t number)
{
	int r = flatten_child(f, list, items[number], number);

	for (size_t next = 10 * number; number && next < 10 * number + 10; next++)
		if (next < list->count && r == 0)
			r = flatten_items(f, list, items, next);
	return r;
}

/* Children come in the order of their names: so do most paths, and need no more sorting. As deep as
 * a document may be. */
static int flatten_node(struct flat *f, const struct node *parent)
{
	const struct node **children = f->children + f->child_count;
	size_t count = 0;
	int r = 0;

	if (parent->type != NODE_LIST && parent->type != NODE_MAP)
		return 0;
	for (const struct node *n = parent->first; n; n = n->next)
		children[count++] = n;
	f->child_count += count;
	if (parent->type == NODE_MAP && !node_keys_ascend(parent))
		qsort(children, count, sizeof(*children), by_key);
	for (size_t i = 0; i < count && r == 0; i++)
		if (parent->type == NODE_MAP)
			r = flatten_child(f, parent, children[i], i);
		else if (i < 10)
			r = flatten_items(f, parent, children, i);
	f->child_count -= count;
	return r;
}

int image_build(const struct node *root, int64_t created_ms, const char *version,
	uint64_t max_bytes, void **ret_data, size_t *ret_len, char why[FILE_WHY])
{
	struct flat f = {.root = root};
	struct extent extent;
	int r;

	extent_measure(root, &extent);
	r = extent_check("its snapshot", extent.image_bytes, max_bytes, why);
	if (r)
		return r;
	buffer_init(&f.path, extent.image_bytes);
	buffer_init(&f.keys, extent.image_bytes); /* each of them is in a record */
	f.entries = reallocarray(NULL, extent.values + 1, sizeof(*f.entries));
	f.children = reallocarray(NULL, extent.values + 1, sizeof(const struct node *));
	r = f.entries && f.children ? buffer_reserve(&f.keys, extent.paths) : -ENOMEM;
	if (r == 0)
		r = flatten_node(&f, root);
	for (size_t i = 0; r == 0 && i < f.count; i++)
		f.entries[i].key = f.keys.data + (uintptr_t)f.entries[i].key;
	if (r == 0)
		r = snapshot_build(f.entries, f.count, 1, created_ms, version, ret_data, ret_len);
	if (r)
		snprintf(why, FILE_WHY, "no snapshot can be made of it: %s",
			r == -EMSGSIZE ? "it would be too large"
			: r == -EINVAL ? "two of its values have the same path"
				       : strerror(-r));
	buffer_fini(&f.path);
	buffer_fini(&f.keys);
	free(f.entries);
	free(f.children);
	return r;
}

/* ---- the page ---- */

/* Also checks that no other user can write it: a page cut short would end this process. 0, -EPERM
 * (it is another file), or -errno. */
static int check_own_page(int fd)
{
	struct stat st;
	char magic[8];
	ssize_t n;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size != PAGE_SIZE || st.st_nlink != 1 ||
		st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH)))
		return -EPERM;
	n = pread(fd, magic, sizeof(magic), 0);
	if (n < 0)
		return -errno;
	return n == sizeof(magic) && memcmp(magic, PAGE_MAGIC, sizeof(magic)) == 0 ? 0 : -EPERM;
}

static void page_name(const struct image *i, char ret_name[NAME_MAX + 1])
{
	snprintf(ret_name, NAME_MAX + 1, "%.*s.gen", (int)(strlen(i->name) - strlen(".snap")),
		i->name);
}

/* The descriptor of the page that is there; -ENOENT: none, or not ours; or -errno: it may be fine,
 * and readers have it mapped: it is not replaced. */
static int open_page(const struct image *i, int dir, const char *name)
{
	int fd = i->sys->openat(dir, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0);
	int r = fd < 0 ? -errno : check_own_page(fd);

	if (r == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return file_error_is_ours(-r) || file_error_may_pass(-r) ? r : -ENOENT;
}

/* The descriptor, or -errno with a sentence. */
static int open_or_make_page(const struct image *i, int dir, char why[FILE_WHY])
{
	const struct file_options options = {.mode = 0640, .uid = (uid_t)-1, .gid = (gid_t)-1};
	char fresh[PAGE_SIZE] = PAGE_MAGIC, remedy[FILE_REMEDY], name[NAME_MAX + 1];
	int r, fd;

	page_name(i, name);
	fd = open_page(i, dir, name);
	if (fd == -ENOENT) {
		r = file_replace(i->sys, dir, name, fresh, sizeof(fresh), &options, why);
		if (r < 0)
			return r;
		fd = open_page(i, dir, name);
	}
	if (fd < 0) {
		file_remedy(remedy, -fd, false);
		snprintf(why, FILE_WHY, "cannot open %.200s/%.80s: %s", i->dir, name, remedy);
	}
	return fd;
}

/* Maps the page; makes it whole before. 0 and the page, or -errno. */
static int map_image_page(struct image *i, int dir, struct page **ret_page, char why[FILE_WHY])
{
	int r, fd = open_or_make_page(i, dir, why);
	struct stat st;
	char name[NAME_MAX + 1];
	void *map;

	if (fd < 0)
		return fd;
	map = fstat(fd, &st) ? MAP_FAILED
			     : mmap(NULL, PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	r = map == MAP_FAILED ? -errno : 0;
	close(fd);
	if (r) {
		page_name(i, name);
		snprintf(why, FILE_WHY, "cannot map %.200s/%.80s: %s", i->dir, name, strerror(-r));
		return r;
	}
	i->page_ino = st.st_ino;
	*ret_page = map;
	return 0;
}

static bool page_in_place(const struct image *i, int dir)
{
	char name[NAME_MAX + 1];
	struct stat st;

	page_name(i, name);
	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_ino == i->page_ino &&
	       st.st_size == PAGE_SIZE;
}

static void read_page(struct image *i, struct page *page)
{
	page_guard_begin(page);
	i->generation = atomic_load_explicit(&page->generation, memory_order_acquire);
	i->confirmed_ms = atomic_load_explicit(&page->confirmed_ms, memory_order_acquire);
	i->stale_ms = atomic_load_explicit(&page->stale_ms, memory_order_acquire);
	i->verified.ino = atomic_load_explicit(&page->verified_ino, memory_order_acquire);
	i->verified.ctime_ns = atomic_load_explicit(&page->verified_ctime_ns, memory_order_acquire);
	i->verified.digest = atomic_load_explicit(&page->verified_digest, memory_order_acquire);
	page_guard_end();
}

/* Wakes readers even if the generation is the same: a lost image may have been restored. */
static bool raise_page(struct page *page, const struct image *i)
{
	page_guard_begin(page);
	atomic_store_explicit(&page->verified_ino, i->verified.ino, memory_order_release);
	atomic_store_explicit(&page->verified_ctime_ns, i->verified.ctime_ns, memory_order_release);
	atomic_store_explicit(&page->verified_digest, i->verified.digest, memory_order_release);
	atomic_store_explicit(&page->withdrawn, 0, memory_order_release);
	atomic_store_explicit(&page->generation, i->generation, memory_order_release);
	atomic_fetch_add_explicit(&page->futex, 1, memory_order_release);
	syscall(SYS_futex, &page->futex, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	return page_guard_end();
}

/* Raises the page that readers find, and the one before it, which some may still have mapped. */
static void raise_pages(struct image *i, uint64_t generation)
{
	i->generation = generation;
	if (!raise_page(i->page, i))
		i->page_ino = 0;
	if (i->old_page)
		raise_page(i->old_page, i);
}

static void drop_mapping(void *map)
{
	if (map)
		munmap(map, PAGE_SIZE);
}

/* Replaces a removed page; readers of the old one open the new one. Unmaps the page before that,
 * which nobody here writes to any more: publications and image_confirm() have taken turns since. */
static int renew_page(struct image *i, int dir, char why[FILE_WHY])
{
	struct page *fresh, *page = i->page;
	int r = map_image_page(i, dir, &fresh, why);

	if (r)
		return r;
	page_guard_begin(fresh);
	atomic_store(&fresh->stale_ms, i->stale_ms);
	atomic_store(&fresh->confirmed_ms, i->confirmed_ms);
	page_guard_end();
	drop_mapping(i->old_page);
	i->old_page = page;
	i->page = fresh;
	raise_pages(i, i->generation);
	return 0;
}

/* Keeps a large file that is about to be replaced from being freed by the last reader that leaves
 * it, which would wait for that: until the second confirmation, or publication, from now. */
static void keep_replaced(struct image *i, int dir)
{
	int fd = i->in_memory && i->known && i->size >= KEEP_BYTES
			 ? i->sys->openat(
				   dir, i->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0)
			 : -1;
	void *map = fd < 0 ? MAP_FAILED : mmap(NULL, PAGE_SIZE, PROT_NONE, MAP_SHARED, fd, 0);

	if (fd >= 0)
		i->sys->close(fd);
	drop_mapping(atomic_exchange(&i->replaced, map == MAP_FAILED ? NULL : map));
}

void image_confirm(struct image *i, uint64_t now_ms, uint64_t stale_ms)
{
	struct page *page = i->page;

	drop_mapping(atomic_exchange(&i->leaving, atomic_exchange(&i->replaced, NULL)));
	i->confirmed_ms = now_ms;
	i->stale_ms = stale_ms;
	page_guard_begin(page);
	atomic_store_explicit(&page->stale_ms, stale_ms, memory_order_release);
	atomic_store_explicit(&page->confirmed_ms, now_ms, memory_order_release);
	if (!page_guard_end())
		i->page_ino = 0;
}

uint64_t image_confirmed_ms(const struct image *i)
{
	return i->confirmed_ms;
}

uint64_t image_stale_ms(const struct image *i)
{
	return i->stale_ms;
}

/* ---- the image ---- */

static int open_runtime_dir(const struct image *i, char why[FILE_WHY])
{
	return trusted_open_dir(i->sys, i->dir, TRUSTED_OWN, why);
}

int image_keep_page(struct image *i, char why[FILE_WHY])
{
	int dir = open_runtime_dir(i, why), r = dir;

	if (dir < 0)
		return r;
	r = page_in_place(i, dir) ? 0 : renew_page(i, dir, why);
	i->sys->close(dir);
	return r;
}

int image_open(const struct sys *sys, const char *runtime_dir, const char *name,
	struct sweep *sweep, struct image **ret_image, char why[FILE_WHY])
{
	size_t size = strlen(name) + sizeof(".snap");
	struct image *i = calloc(1, sizeof(*i) + size);
	char name_of_page[NAME_MAX + 1];
	struct page *page = NULL;
	int r, dir;

	snprintf(why, FILE_WHY, "out of memory");
	if (!i)
		return -ENOMEM;
	i->sys = sys;
	i->dir = runtime_dir;
	snprintf(i->name, size, "%s.snap", name);
	r = dir = open_runtime_dir(i, why);
	if (dir >= 0) {
		i->in_memory = file_in_memory(dir);
		sweep_clean(sweep, sys, dir, i->name);
		page_name(i, name_of_page);
		sweep_clean(sweep, sys, dir, name_of_page);
		r = map_image_page(i, dir, &page, why);
		i->page = page;
		if (r == 0)
			read_page(i, page);
		if (r == 0 && !i->in_memory) {
			/* it may be of another boot, whose clock was another one, and may have cost
			 * what was not on the disk yet */
			memset(&i->verified, 0, sizeof(i->verified));
			image_confirm(i, 0, i->stale_ms);
		}
		sys->close(dir);
	}
	if (r < 0) {
		image_close(i);
		return r;
	}
	*ret_image = i;
	return 0;
}

void image_close(struct image *i)
{
	if (!i)
		return;
	drop_mapping(i->page);
	drop_mapping(i->old_page);
	drop_mapping(i->replaced);
	drop_mapping(i->leaving);
	free(i);
}

const char *image_name(const struct image *i)
{
	return i->name;
}

static void remember_image(struct image *i, const struct stat *st)
{
	i->known = true;
	i->ino = st->st_ino;
	i->size = st->st_size;
	i->mtime_ns = page_time_ns(&st->st_mtim);
}

bool image_is_current(const struct image *i)
{
	char why[FILE_WHY];
	struct stat st;
	int dir = trusted_open_dir(i->sys, i->dir, TRUSTED_ANY, why); /* only looks */
	bool same = i->known && dir >= 0 && fstatat(dir, i->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    st.st_ino == i->ino && st.st_size == i->size &&
		    page_time_ns(&st.st_mtim) == i->mtime_ns;

	if (dir >= 0)
		i->sys->close(dir);
	return same;
}

/* Vouches for the file that has just got its name, so that not each reader reads all of it. Where
 * it was changed meanwhile, or is another one, or may be lost with the memory, nobody does. */
static void note_verified(struct image *i, int dir, const struct prepared *p)
{
	struct stat st;
	bool same = i->in_memory && fstatat(dir, i->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    st.st_ino == p->written.st_ino && st.st_size == p->written.st_size &&
		    page_time_ns(&st.st_mtim) == page_time_ns(&p->written.st_mtim);

	memset(&i->verified, 0, sizeof(i->verified));
	if (same) {
		i->verified.ino = st.st_ino;
		i->verified.ctime_ns = page_time_ns(&st.st_ctim);
		i->verified.digest = p->digest;
	}
}

static void drop_prepared(struct image *i)
{
	if (i->prepared && i->prepared->dir >= 0)
		i->sys->close(i->prepared->dir);
	free(i->prepared);
	i->prepared = NULL;
}

int image_prepare(struct image *i, void *data, size_t len, uint64_t generation, char why[FILE_WHY])
{
	struct prepared *p = i->prepared = calloc(1, sizeof(*p));
	struct file_options options = {
		.mode = 0640, .uid = (uid_t)-1, .gid = (gid_t)-1, .sync = !i->in_memory};
	int dir = p ? open_runtime_dir(i, why) : -ENOMEM, r = 0;

	if (!p)
		snprintf(why, FILE_WHY, "out of memory");
	else
		p->dir = dir;
	if (dir < 0) {
		drop_prepared(i);
		return dir;
	}
	options.ret_written = &p->written;
	options.again = i->failed;
	p->digest = snapshot_stamp(data, len, generation);
	r = name_case_check(i->sys, dir, i->name, why);
	if (r == 0 && (i->known || !file_holds(i->sys, dir, i->name, data, len)))
		r = file_prepare(i->sys, dir, i->name, data, len, &options, p->temporary, why);
	i->failed = r != 0;
	if (r)
		drop_prepared(i);
	return r;
}

void image_abandon(struct image *i)
{
	if (i->prepared && i->prepared->temporary[0])
		i->failed |= i->sys->unlinkat(i->prepared->dir, i->prepared->temporary, 0) != 0;
	drop_prepared(i);
}

int image_publish(struct image *i, void *data, size_t len, uint64_t generation, char why[FILE_WHY])
{
	int dir, r = i->prepared ? 0 : image_prepare(i, data, len, generation, why);
	struct prepared *p = i->prepared;
	bool seen = true;

	if (r)
		return r;
	dir = p->dir;
	if (p->temporary[0]) {
		keep_replaced(i, dir);
		r = file_commit(i->sys, dir, i->name, p->temporary, !i->in_memory, why);
		i->failed = r < 0;
		if (r >= 0)
			note_verified(i, dir, p);
	} else {
		seen = fstatat(dir, i->name, &p->written, AT_SYMLINK_NOFOLLOW) == 0;
	}
	if (r >= 0) {
		raise_pages(i, generation); /* first of all: somebody sleeps on it */
		if (seen)
			remember_image(i, &p->written);
		if (!page_in_place(i, dir)) /* should that fail, image_keep_page() will say so */
			renew_page(i, dir, why);
	}
	drop_prepared(i);
	return r;
}

int image_sync(const struct image *i)
{
	bool named = true;

	return trusted_sync_dir(i->sys, i->dir, &named);
}

uint64_t image_generation(const struct image *i)
{
	return i->generation;
}

bool image_in_memory(const struct image *i)
{
	return i->in_memory;
}
