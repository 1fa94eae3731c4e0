/*
 * A handle: the newest valid image of one config, mapped, and the control page beside it.
 *
 * Surprising: an image is accepted whole or not at all; an invalid one changes nothing, the handle
 * keeps its version. Without a control page (an image that somebody copied) the file itself is
 * checked: another inode, size or time is another version. Of a file that the agent verified, and
 * nobody changed since, only the header is read (lib/FORMAT.md has why). And a withdrawn config is
 * an error for as long as that lasts, not once: `seen` has a bit then that no futex has, so that
 * each refresh leaves the fast path, which pays nothing for it.
 */
#include "pullet.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/futex.h>
#include <locale.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "page.h"
#include "path_watch.h"
#include "snapshot.h"

#define RUNTIME_DIR "/run/pullet"
#define SLICE_MS 100 /* how long a wait without a page, or without an image, sleeps at a time */

#define NEVER UINT64_MAX
#define WITHDRAWN (UINT64_C(1) << 32) /* above the futex in `seen`, as is: */
#define WATCHED (UINT64_C(1) << 33)   /* there is a descriptor: the file itself is looked at */

struct pullet {
	char *image_path, *page_path;
	const struct page *page; /* mapped; NULL = none yet */
	dev_t page_dev;
	ino_t page_ino;
	void *map; /* NULL = nothing is open */
	size_t map_len;
	struct snapshot snapshot;
	uint64_t images;     /* opened so far: a key that was found in another one is not current */
	uint64_t generation; /* of the image that is open */
	uint64_t seen;       /* the page's futex when the image was last looked at, WITHDRAWN if
				that is what it said, and WATCHED; NEVER */
	struct stat
		file; /* that was last looked at: of the image that is open, or an invalid one */
	struct path_watch watch; /* for pullet_fd() */
	uint64_t
		back; /* the page's futex when an image was there though it said withdrawn; NEVER */
	locale_t c_locale;
};

/* ---- paths ---- */

static bool is_config_name(const char *name)
{
	static const char *const letters =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
	size_t len = strlen(name);

	return len >= 1 && len <= 64 && strspn(name, letters) == len && !strchr("._-", name[0]);
}

/* Fills both paths. 0, -EINVAL, -ENOMEM. */
static int make_paths(struct pullet *p, const char *name)
{
	static const char tail[] = ".snap";
	const char *dir =
		secure_getenv("PULLET_RUNTIME_DIR"); /* not what calls a set-user-ID program says */
	size_t len = strlen(name);
	int r;

	if (strchr(name, '/')) {
		size_t stem = len;

		if (len > strlen(tail) && strcmp(name + len - strlen(tail), tail) == 0)
			stem -= strlen(tail);
		p->image_path = strdup(name);
		r = asprintf(&p->page_path, "%.*s.gen", (int)stem, name);
	} else if (is_config_name(name)) {
		if (!dir || !dir[0])
			dir = RUNTIME_DIR;
		if (asprintf(&p->image_path, "%s/%s.snap", dir, name) < 0)
			p->image_path = NULL;
		r = asprintf(&p->page_path, "%s/%s.gen", dir, name);
	} else {
		return -EINVAL;
	}
	if (r < 0)
		p->page_path = NULL;
	return p->image_path && p->page_path ? 0 : -ENOMEM;
}

/* ---- mapping ---- */

/* Maps a regular file of at least `least` bytes. 0 and all three, or -errno. */
static int map_file(const char *path, size_t least, void **ret_map, struct stat *ret_stat)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), r = 0;
	void *map;

	if (fd < 0)
		return -errno;
	if (fstat(fd, ret_stat))
		r = -errno;
	else if (!S_ISREG(ret_stat->st_mode))
		r = -EPROTO;
	else if ((uint64_t)ret_stat->st_size < least || (uint64_t)ret_stat->st_size > SIZE_MAX)
		r = -EBADMSG;
	if (r == 0) {
		map = mmap(NULL, (size_t)ret_stat->st_size, PROT_READ, MAP_SHARED, fd, 0);
		if (map == MAP_FAILED)
			r = -errno;
		else
			*ret_map = map;
	}
	close(fd);
	return r;
}

/* Maps the page, which is optional, may come later than the image or the handle, and is a new file
 * after it was removed: then the old one is raised a last time. */
static void map_page(struct pullet *p)
{
	struct stat st;
	void *map;

	if (p->page &&
		(stat(p->page_path, &st) || (st.st_dev == p->page_dev && st.st_ino == p->page_ino)))
		return;
	if (map_file(p->page_path, PAGE_SIZE, &map, &st))
		return;
	if (memcmp(map, PAGE_MAGIC, sizeof(p->page->magic)) != 0 || st.st_size != PAGE_SIZE) {
		munmap(map, (size_t)st.st_size);
		return;
	}
	if (p->page)
		munmap((void *)(uintptr_t)p->page, PAGE_SIZE);
	p->page = map;
	p->seen = p->back = NEVER; /* that was the other one's */
	p->page_dev = st.st_dev;
	p->page_ino = st.st_ino;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* True when the agent verified this very file, and nobody has changed it since: no need to read all
 * of it again. */
static bool verified_by_agent(const struct pullet *p, const struct stat *st, uint64_t digest)
{
	return p->page && st->st_dev == p->page_dev &&
	       atomic_load_explicit(&p->page->verified_ino, memory_order_acquire) == st->st_ino &&
	       atomic_load_explicit(&p->page->verified_ctime_ns, memory_order_acquire) ==
		       page_time_ns(&st->st_ctim) &&
	       atomic_load_explicit(&p->page->verified_digest, memory_order_acquire) == digest;
}

/* Opens the file at the path if it is another image; compares digests, not generations, as an agent
 * that lost its state counts again from 1. 1, 0 when it is the same, or -errno. */
static int take_image(struct pullet *p)
{
	struct snapshot s = {0};
	struct stat st;
	void *map;
	int r = map_file(p->image_path, 1, &map, &st);
	bool mapped = r == 0;

	if (mapped)
		r = snapshot_open_verified(map, (size_t)st.st_size, &s);
	if (r == 0 && !verified_by_agent(p, &st, snapshot_digest(&s)) && !snapshot_verify(&s))
		r = -EBADMSG;
	if (r || (p->map && snapshot_digest(&s) == snapshot_digest(&p->snapshot))) {
		if (mapped)
			munmap(map, (size_t)st.st_size);
		if (r == 0 || r == -EBADMSG || r == -EPROTO)
			p->file = st; /* touched, and the same; or invalid, which is said once */
		return r;
	}
	if (p->map)
		munmap(p->map, p->map_len);
	p->map = map;
	p->map_len = (size_t)st.st_size;
	p->snapshot = s;
	p->images++;
	p->generation = snapshot_generation(&s);
	p->file = st;
	return 1;
}

/* True after a refresh returned -EIDRM, until the config comes back. */
static bool knows_withdrawn(const struct pullet *p)
{
	return p->page && p->seen != NEVER && (p->seen & WITHDRAWN);
}

/* True when the page has changed since the image was looked at. */
static bool page_changed(const struct pullet *p)
{
	return p->seen == NEVER ||
	       atomic_load_explicit(&p->page->futex, memory_order_acquire) != (uint32_t)p->seen;
}

/* Opens the file at the path, and remembers the page's state before: the image is in place before
 * the page changes. An invalid or missing one is not tried again until the page changes. The image
 * of a config that comes back counts as new, even if it is the same. */
static int take_newest(struct pullet *p)
{
	bool withdrawn = knows_withdrawn(p);
	uint64_t seen = NEVER;
	int r;

	if (p->page)
		seen = atomic_load_explicit(&p->page->futex, memory_order_acquire) |
		       (p->watch.fd >= 0 ? WATCHED : 0);
	r = take_image(p);
	if (r == -ENOENT && pullet_withdrawn(p))
		r = -EIDRM;
	if (r == -EIDRM && p->map)
		seen |= WITHDRAWN;
	if (r >= 0 || r == -EBADMSG || r == -EPROTO || r == -ENOENT || r == -EIDRM)
		p->seen = seen;
	return r == 0 && withdrawn ? 1 : r;
}

/* Without a page: opens the image if the file has changed. */
static int take_changed_file(struct pullet *p)
{
	struct stat st;

	if (stat(p->image_path, &st))
		return -errno;
	return same_file(&st, &p->file) ? 0 : take_image(p);
}

/* With a page that says nothing new, but a descriptor: it tells of the image, which is in place
 * before the page says so. */
static int take_watched_file(struct pullet *p)
{
	bool withdrawn = knows_withdrawn(p);
	struct stat st;

	if (stat(p->image_path, &st))
		return withdrawn ? -EIDRM : 0;
	if (same_file(&st, &p->file) && !withdrawn)
		return 0;
	p->back = (uint32_t)p->seen;
	return take_newest(p);
}

/* ---- the interface ---- */

int pullet_open(const char *config_or_path, unsigned flags, struct pullet **ret_p)
{
	struct pullet *p;
	int r;

	if (!config_or_path || (flags & ~PULLET_WAIT_FIRST))
		return -EINVAL;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->seen = p->back = NEVER;
	p->watch.fd = -1;
	p->c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0); /* static: nothing is allocated */
	r = p->c_locale ? make_paths(p, config_or_path) : -ENOMEM;
	if (r == 0) {
		map_page(p);
		r = take_newest(p);
	}
	if ((r == -ENOENT || r == -EIDRM) && (flags & PULLET_WAIT_FIRST))
		r = 0;
	if (r < 0) {
		pullet_close(p);
		return r;
	}
	*ret_p = p;
	return 0;
}

void pullet_close(struct pullet *p)
{
	if (!p)
		return;
	if (p->map)
		munmap(p->map, p->map_len);
	if (p->page)
		munmap((void *)(uintptr_t)p->page, PAGE_SIZE);
	if (p->c_locale)
		freelocale(p->c_locale);
	path_watch_close(&p->watch);
	free(p->image_path);
	free(p->page_path);
	free(p);
}

/* Kept out of pullet_refresh(), which would pay for its stack each time. */
static __attribute__((noinline)) int refresh_slowly(struct pullet *p)
{
	int r, watched = 0;

	if (path_watch_is_own(&p->watch)) /* before the files are looked at: nothing is missed */
		watched = path_watch_renew(&p->watch, p->image_path, p->page_path);
	map_page(p);
	if (!p->page)
		r = take_changed_file(p);
	else if (page_changed(p))
		r = take_newest(p);
	else if (p->watch.fd >= 0)
		r = take_watched_file(p);
	else
		r = -EIDRM; /* the page is as it was: only WITHDRAWN led here */
	if ((r == -ENOENT || r == -EIDRM) && !p->map)
		r = 0;
	return r >= 0 && watched < 0 ? watched : r;
}

int pullet_refresh(struct pullet *p)
{
	if (p->page && atomic_load_explicit(&p->page->futex, memory_order_acquire) == p->seen)
		return 0;
	return refresh_slowly(p);
}

int pullet_get(struct pullet *p, const char *key, size_t key_len, struct pullet_value *ret_value)
{
	return p->map ? snapshot_get(&p->snapshot, key, key_len, ret_value) : -ENOENT;
}

void pullet_key_init(struct pullet_key *ret_key, struct pullet *p, const char *key, size_t key_len)
{
	*ret_key = (struct pullet_key){.images = &p->images, .p = p, .name = key, .len = key_len};
}

const struct pullet_value *pullet_key_find(struct pullet_key *k)
{
	k->image = k->p->images;
	if (pullet_get(k->p, k->name, k->len, &k->value) == 0)
		return &k->value;
	k->value.text = NULL;
	return NULL;
}

/* Here is the one that is not inlined. */
extern inline const struct pullet_value *pullet_key_get(struct pullet_key *k);

int pullet_each(struct pullet *p, const char *prefix,
	int (*visit)(const char *key, size_t key_len, const struct pullet_value *v, void *arg),
	void *arg)
{
	size_t prefix_len = strlen(prefix), key_len;
	struct pullet_value v;
	const char *key;
	int r = 0;

	if (!p->map)
		return 0;
	for (size_t i = snapshot_lower_bound(&p->snapshot, prefix, prefix_len);
		r == 0 && i < p->snapshot.count; i++) {
		if (!snapshot_at(&p->snapshot, i, &key, &key_len, &v))
			continue; /* not good: as if it were not there */
		if (key_len < prefix_len || memcmp(key, prefix, prefix_len) != 0)
			break;
		r = visit(key, key_len, &v, arg);
	}
	return r;
}

uint64_t pullet_generation(const struct pullet *p)
{
	return p->generation;
}

const char *pullet_path(const struct pullet *p)
{
	return p->image_path;
}

const char *pullet_version(const struct pullet *p)
{
	return p->map ? snapshot_version(&p->snapshot) : "";
}

size_t pullet_count(const struct pullet *p)
{
	return p->map ? p->snapshot.count : 0;
}

static uint64_t boot_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

int64_t pullet_age_ms(const struct pullet *p)
{
	uint64_t confirmed_ms, now_ms = boot_ms();

	if (!p->page)
		return -1;
	confirmed_ms = atomic_load_explicit(&p->page->confirmed_ms, memory_order_acquire);
	if (confirmed_ms == 0)
		return -1;
	return now_ms > confirmed_ms ? (int64_t)(now_ms - confirmed_ms) : 0;
}

bool pullet_stale(const struct pullet *p)
{
	int64_t age_ms = pullet_age_ms(p);
	uint64_t stale_ms =
		p->page ? atomic_load_explicit(&p->page->stale_ms, memory_order_acquire) : 0;

	return age_ms < 0 || (stale_ms && (uint64_t)age_ms >= stale_ms);
}

bool pullet_withdrawn(const struct pullet *p)
{
	return p->page && atomic_load_explicit(&p->page->withdrawn, memory_order_acquire) &&
	       atomic_load_explicit(&p->page->futex, memory_order_acquire) != p->back;
}

/* ---- waiting ---- */

int pullet_fd(struct pullet *p)
{
	int r = 0;

	if (!path_watch_is_usable(&p->watch)) {
		path_watch_close(&p->watch); /* the parent's, in a child */
		r = path_watch_open(&p->watch);
	}
	if (r)
		return r;
	if (p->seen != NEVER)
		p->seen |= WATCHED;
	return p->watch.fd;
}

/* Sleeps until the page changes, or until_ms. 0 or -EINTR. */
static int sleep_on_page(struct pullet *p, uint64_t until_ms)
{
	uint64_t now_ms = boot_ms();
	struct timespec left;

	if (now_ms >= until_ms)
		return 0;
	left.tv_sec = (time_t)((until_ms - now_ms) / 1000);
	left.tv_nsec = (long)((until_ms - now_ms) % 1000) * 1000000;
	if (syscall(SYS_futex, &p->page->futex, FUTEX_WAIT, (uint32_t)p->seen,
		    until_ms == UINT64_MAX ? NULL : &left, NULL, 0) == 0)
		return 0;
	return errno == EINTR ? -EINTR : 0;
}

/* Sleeps a slice when there is no page yet. 0 or -EINTR. */
static int sleep_a_slice(uint64_t until_ms)
{
	uint64_t now_ms = boot_ms(), ms = SLICE_MS;
	struct timespec t = {0, 0};

	if (now_ms >= until_ms)
		return 0;
	if (until_ms - now_ms < ms)
		ms = until_ms - now_ms;
	t.tv_nsec = (long)ms * 1000000;
	return nanosleep(&t, NULL) ? -errno : 0;
}

int pullet_wait(struct pullet *p, int timeout_ms)
{
	uint64_t until_ms = timeout_ms < 0 ? UINT64_MAX : boot_ms() + (uint64_t)timeout_ms;
	bool known;
	int r;

	for (;;) {
		known = knows_withdrawn(p);
		r = pullet_refresh(p);
		if (r != 0 && !(r == -EIDRM && known))
			return r;
		if (boot_ms() >= until_ms)
			return 0;
		r = p->page ? sleep_on_page(p, until_ms) : sleep_a_slice(until_ms);
		if (r)
			return r;
	}
}

/* ---- typed values ---- */

/* ret, filled in, or NULL when there is no such key. */
static const struct pullet_value *find_value(
	struct pullet *p, const char *key, struct pullet_value *ret)
{
	return pullet_get(p, key, strlen(key), ret) ? NULL : ret;
}

/* A whole text as an integer. */
static bool parse_int(const char *text, int64_t *ret, const char **ret_end)
{
	char *end;
	intmax_t n;

	if (!text[0] || !strchr("+-0123456789", text[0]))
		return false;
	errno = 0;
	n = strtoimax(text, &end, 10);
	if (errno || end == text || n < INT64_MIN || n > INT64_MAX)
		return false;
	*ret = n;
	*ret_end = end;
	return true;
}

/* An integer with a unit behind it. */
static bool parse_unit(
	const char *text, const char *const names[], const int64_t factors[], int64_t *ret)
{
	const char *unit;
	int64_t n;

	if (!parse_int(text, &n, &unit))
		return false;
	for (size_t i = 0; names[i]; i++)
		if (strcmp(names[i], unit) == 0)
			return !__builtin_mul_overflow(n, factors[i], ret);
	return false;
}

/* Digits as an integer with that sign. */
static bool parse_magnitude(const char *text, bool minus, int64_t *ret, const char **ret_end)
{
	char *end;
	uintmax_t n;

	if (text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	n = strtoumax(text, &end, 10);
	if (errno || n > (uintmax_t)INT64_MAX + minus)
		return false;
	*ret = (int64_t)(minus ? 0 - n : n);
	*ret_end = end;
	return true;
}

/* Integers with units, the greatest first and each once; the sign in front is that of all. */
static bool parse_duration(const char *text, int64_t *ret_ms)
{
	static const char *const names[] = {"ms", "s", "m", "h", "d"};
	static const int64_t factors[] = {1, 1000, 60000, 3600000, 86400000};
	size_t below = sizeof(factors) / sizeof(factors[0]), unit, len;
	bool minus = text[0] == '-';
	int64_t n, sum = 0;
	const char *part = text + (minus || text[0] == '+'), *name;

	do {
		if (!parse_magnitude(part, minus, &n, &name))
			return false;
		len = strcspn(name, "0123456789");
		for (unit = 0; unit < below; unit++)
			if (strlen(names[unit]) == len && strncmp(name, names[unit], len) == 0)
				break;
		if (unit == below || __builtin_mul_overflow(n, factors[unit], &n) ||
			__builtin_add_overflow(sum, n, &sum))
			return false;
		part = name + len;
		below = unit;
	} while (*part);
	*ret_ms = sum;
	return true;
}

static const char *to_string(const struct pullet_value *v, const char *fallback)
{
	return v && v->type >= PULLET_BOOL && v->type <= PULLET_STRING ? v->text : fallback;
}

static int64_t to_int(const struct pullet_value *v, int64_t fallback)
{
	const char *end;
	int64_t n;

	if (!v)
		return fallback;
	if (v->type == PULLET_INT)
		return v->integer;
	return v->type == PULLET_STRING && parse_int(v->text, &n, &end) && !*end ? n : fallback;
}

/* A decimal number is written with a point whatever the locale of the program. */
static double to_double(const struct pullet_value *v, locale_t c_locale, double fallback)
{
	char *end;
	double n;

	if (!v)
		return fallback;
	if (v->type == PULLET_DOUBLE)
		return v->number;
	if (v->type == PULLET_INT)
		return (double)v->integer;
	if (v->type != PULLET_STRING || !v->len || strspn(v->text, "+-.0123456789eE") != v->len)
		return fallback;
	n = strtod_l(v->text, &end, c_locale);
	return *end || !__builtin_isfinite(n) ? fallback : n;
}

static bool to_bool(const struct pullet_value *v, bool fallback)
{
	if (!v)
		return fallback;
	if (v->type == PULLET_BOOL)
		return v->boolean;
	if (v->type == PULLET_STRING && strcmp(v->text, "true") == 0)
		return true;
	return v->type == PULLET_STRING && strcmp(v->text, "false") == 0 ? false : fallback;
}

static int64_t to_duration_ms(const struct pullet_value *v, int64_t fallback_ms)
{
	int64_t ms;

	return v && v->type == PULLET_STRING && parse_duration(v->text, &ms) ? ms : fallback_ms;
}

static int64_t to_size(const struct pullet_value *v, int64_t fallback_bytes)
{
	static const char *const names[] = {"", "B", "KiB", "MiB", "GiB", "TiB", NULL};
	static const int64_t factors[] = {
		1, 1, INT64_C(1) << 10, INT64_C(1) << 20, INT64_C(1) << 30, INT64_C(1) << 40};
	int64_t bytes;

	if (!v)
		return fallback_bytes;
	if (v->type == PULLET_INT)
		return v->integer;
	return v->type == PULLET_STRING && parse_unit(v->text, names, factors, &bytes)
		       ? bytes
		       : fallback_bytes;
}

const char *pullet_get_string(struct pullet *p, const char *key, const char *fallback)
{
	struct pullet_value v;

	return to_string(find_value(p, key, &v), fallback);
}

const char *pullet_key_get_string(struct pullet_key *k, const char *fallback)
{
	return to_string(pullet_key_get(k), fallback);
}

int64_t pullet_get_int(struct pullet *p, const char *key, int64_t fallback)
{
	struct pullet_value v;

	return to_int(find_value(p, key, &v), fallback);
}

int64_t pullet_key_get_int(struct pullet_key *k, int64_t fallback)
{
	return to_int(pullet_key_get(k), fallback);
}

double pullet_get_double(struct pullet *p, const char *key, double fallback)
{
	struct pullet_value v;

	return to_double(find_value(p, key, &v), p->c_locale, fallback);
}

double pullet_key_get_double(struct pullet_key *k, double fallback)
{
	return to_double(pullet_key_get(k), k->p->c_locale, fallback);
}

bool pullet_get_bool(struct pullet *p, const char *key, bool fallback)
{
	struct pullet_value v;

	return to_bool(find_value(p, key, &v), fallback);
}

bool pullet_key_get_bool(struct pullet_key *k, bool fallback)
{
	return to_bool(pullet_key_get(k), fallback);
}

int64_t pullet_get_duration_ms(struct pullet *p, const char *key, int64_t fallback_ms)
{
	struct pullet_value v;

	return to_duration_ms(find_value(p, key, &v), fallback_ms);
}

int64_t pullet_key_get_duration_ms(struct pullet_key *k, int64_t fallback_ms)
{
	return to_duration_ms(pullet_key_get(k), fallback_ms);
}

int64_t pullet_get_size(struct pullet *p, const char *key, int64_t fallback_bytes)
{
	struct pullet_value v;

	return to_size(find_value(p, key, &v), fallback_bytes);
}

int64_t pullet_key_get_size(struct pullet_key *k, int64_t fallback_bytes)
{
	return to_size(pullet_key_get(k), fallback_bytes);
}

const char *pullet_strerror(int error)
{
	static const struct {
		int error;
		const char *text;
	} table[] = {
		{0, "no error"},
		{ENOENT, "nothing is published under this name yet: is the agent running, and is "
			 "the config's name right? Of pullet_write(): there is no such "
			 "directory"},
		{EIDRM, "withdrawn: the agent publishes this config no more, for it was removed or "
			"says `snapshot: false`; programs that have it open keep its last version"},
		{EACCES, "the snapshot may not be read: the reader must be in the group of the "
			 "runtime "
			 "directory"},
		{EBADMSG, "the snapshot is damaged: the agent writes it again with its next pull; "
			  "the version that is open stays"},
		{EPROTO, "not a snapshot, or one of a newer layout than this library knows"},
		{EINVAL, "not the name of a config, or unknown flags; of pullet_write(): a path "
			 "without a '/', or entries with one key, or without key_len"},
		{ELOOP, "a circle of symlinks is in the place of the snapshot, or above it"},
		{EBADF, "the program has closed the descriptor of pullet_fd(), and hears of "
			"nothing: pullet_fd() gives another one"},
		{ENOMEM, "out of memory"},
		{EINTR, "a signal came"},
		{EMFILE, "no descriptor is free, or no inotify instance of this user: see "
			 "fs.inotify.max_user_instances"},
		{ENOSPC, "no inotify watch of this user is free, see fs.inotify.max_user_watches: "
			 "the descriptor tells of nothing until a refresh succeeds"},
	};
	int positive = error == INT_MIN ? INT_MAX : error < 0 ? -error : error;

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].error == positive)
			return table[i].text;
	/* of others strerror() makes a text that its next call frees */
	return positive <= EHWPOISON ? strerror(positive)
				     : "an error that this system does not have";
}
