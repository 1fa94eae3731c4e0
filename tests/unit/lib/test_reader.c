/*
 * The reader beside an agent that this file plays: it writes the image beside the old one, renames
 * it, stores the generation, then the futex, and wakes, as lib/FORMAT.md says and with its numbers.
 *
 * Each case has a config of its own in one temporary directory.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <linux/futex.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/pullet.h"
#include "lib/snapshot.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define PAGE 4096
#define LONG_MS 20000 /* longer than any test should take */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

static char dir[] = "/tmp/test_reader.XXXXXX";
static const char *config = "none"; /* the case's own */
static struct snapshot_entry entries[1000];

/* ---- faults ---- */

static bool newlocale_fails;

locale_t __newlocale(int mask, const char *name, locale_t base);

locale_t newlocale(int mask, const char *name, locale_t base)
{
	if (newlocale_fails) {
		errno = ENOMEM;
		return (locale_t)0;
	}
	return __newlocale(mask, name, base);
}

static bool fstat_fails;
static atomic_uint opens;          /* files opened, or tried */
static atomic_uint looks_at_clock; /* until an hour passes at once; 0 = it does not */

int clock_gettime(clockid_t clock, struct timespec *ret_time)
{
	int r = (int)syscall(SYS_clock_gettime, clock, ret_time);

	if (clock == CLOCK_BOOTTIME && looks_at_clock && --looks_at_clock == 0)
		ret_time->tv_sec += 3600;
	return r;
}

int open(const char *path, int flags, ...)
{
	va_list ap;
	int fd;

	va_start(ap, flags);
	fd = openat(AT_FDCWD, path, flags, flags & O_CREAT ? va_arg(ap, mode_t) : 0);
	va_end(ap);
	opens++;
	return fd;
}

int fstat(int fd, struct stat *ret_stat)
{
	if (fstat_fails) {
		errno = EIO;
		return -1;
	}
	return fstatat(fd, "", ret_stat, AT_EMPTY_PATH);
}

#if !SANITIZED
static unsigned allocations_left = UINT_MAX; /* then there is no memory */

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);

static bool allocation_fails(void)
{
	if (allocations_left == UINT_MAX)
		return false;
	if (allocations_left) {
		allocations_left--;
		return false;
	}
	errno = ENOMEM;
	return true;
}

void *malloc(size_t size)
{
	return allocation_fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	return allocation_fails() ? NULL : __libc_calloc(n, size);
}
#endif

/* ---- the agent ---- */

static const char *path_of(const char *name, const char *tail)
{
	static char path[4][PATH_MAX];
	static unsigned next;
	char *p = path[next++ % 4];

	snprintf(p, PATH_MAX, "%s/%s%s", dir, name, tail);
	return p;
}

/* Writes a file whole beside its name, then renames. */
static void put_file(const char *path, const void *data, size_t len)
{
	char beside[PATH_MAX + 8];
	int fd;

	snprintf(beside, sizeof(beside), "%s.new", path);
	fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, len), len);
	close(fd);
	assert_int_equal(rename(beside, path), 0);
}

/* Copies a small file; closes fd. */
static void copy_to(int fd, const char *path)
{
	int from = open(path, O_RDONLY | O_CLOEXEC);
	char bytes[1 << 14];
	ssize_t n = read(from, bytes, sizeof(bytes));

	assert_true(n > 0 && n < (ssize_t)sizeof(bytes));
	assert_int_equal(write(fd, bytes, (size_t)n), n);
	close(from);
	close(fd);
}

static struct snapshot_entry string(const char *key, const char *text)
{
	struct snapshot_entry e = {.key = key, .key_len = strlen(key)};

	e.value.type = PULLET_STRING;
	e.value.text = text;
	e.value.len = strlen(text);
	return e;
}

static void put_entries(size_t count, uint64_t generation, const char *version)
{
	void *image;
	size_t len;

	assert_int_equal(snapshot_build(entries, count, generation, 0, version, &image, &len), 0);
	put_file(path_of(config, ".snap"), image, len);
	free(image);
}

/* An image whose keys all tell its generation. */
static void put_image(uint64_t generation)
{
	static char keys[20][16];
	char text[32];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)generation);
	for (size_t i = 0; i < COUNT(keys); i++) {
		snprintf(keys[i], sizeof(keys[i]), "key%zu", i);
		entries[i] = string(keys[i], text);
	}
	put_entries(COUNT(keys), generation, text);
}

static void put_page(void)
{
	static const unsigned char page[PAGE] = {'P', 'U', 'L', 'G', 'E', 'N', 'P', 1};

	put_file(path_of(config, ".gen"), page, sizeof(page));
}

/* The page as the agent has it. To be unmapped. */
static unsigned char *map_page(void)
{
	int fd = open(path_of(config, ".gen"), O_RDWR | O_CLOEXEC);
	void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	assert_true(fd >= 0 && page != MAP_FAILED);
	close(fd);
	return page;
}

static void store64(unsigned char *page, size_t offset, uint64_t n)
{
	atomic_store_explicit((_Atomic uint64_t *)(void *)(page + offset), n, memory_order_release);
}

static void wake(unsigned char *page)
{
	_Atomic uint32_t *word = (_Atomic uint32_t *)(void *)(page + 16);

	atomic_fetch_add_explicit(word, 1, memory_order_release);
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void tell(uint64_t generation)
{
	unsigned char *page = map_page();

	store64(page, 8, generation);
	wake(page);
	munmap(page, PAGE);
}

static void publish(uint64_t generation)
{
	unsigned char *page = map_page();

	put_image(generation);
	atomic_store((_Atomic uint32_t *)(void *)(page + 20), 0);
	munmap(page, PAGE);
	tell(generation);
}

/* As the agent does where a config is removed. */
static void withdraw(void)
{
	unsigned char *page = map_page();

	unlink(path_of(config, ".snap"));
	atomic_store((_Atomic uint32_t *)(void *)(page + 20), 1);
	store64(page, 24, 0);
	wake(page);
	munmap(page, PAGE);
}

static uint64_t boot_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* ---- the cases' frame ---- */

static void begin(const char *name)
{
	config = name;
	put_page();
}

static struct pullet *opened(unsigned flags)
{
	struct pullet *p = NULL;

	assert_int_equal(pullet_open(config, flags, &p), 0);
	assert_non_null(p);
	return p;
}

/* Fails, and writes nothing. */
static void refuses(const char *name, unsigned flags, int error)
{
	struct pullet *const untouched = (struct pullet *)(void *)dir, *p = untouched;
	int r = pullet_open(name, flags, &p);

	if (r != error)
		fail_msg("%s: %d instead of %d", name ? name : "NULL", r, error);
	assert_ptr_equal(p, untouched);
}

/* All is of that generation; 0 = nothing is there. */
static void assert_generation(struct pullet *p, uint64_t generation)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)generation);
	assert_int_equal(pullet_generation(p), generation);
	assert_string_equal(pullet_version(p), generation ? text : "");
	assert_int_equal(pullet_count(p), generation ? 20 : 0);
	assert_string_equal(pullet_get_string(p, "key0", "0"), text);
	assert_string_equal(pullet_get_string(p, "key19", "0"), text);
	assert_int_equal(pullet_get_int(p, "key7", 0), generation);
}

static size_t open_files(void)
{
	DIR *d = opendir("/proc/self/fd");
	size_t n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* Of files in the temporary directory, removed ones too. */
static size_t mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[PATH_MAX + 200];
	size_t n = 0;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		n += strstr(line, dir) && !strstr(line, "de_DE"); /* libc keeps a locale */
	fclose(f);
	return n;
}

static struct {
	size_t files, mappings;
} before;

static int set_up(void **state)
{
	(void)state;
	before.files = open_files();
	before.mappings = mappings();
	return 0;
}

/* Each case leaves what it found. */
static int tear_down(void **state)
{
	(void)state;
	if (open_files() == before.files && mappings() == before.mappings)
		return 0;
	print_error("%s: files %zu, mappings %zu; before: %zu, %zu\n", config, open_files(),
		mappings(), before.files, before.mappings);
	return 1;
}

/* ---- opening ---- */

static void open__by_name_and_by_path__is_the_same(void **state)
{
	struct pullet *by_name, *by_path;

	(void)state;
	begin("open-1.a_B");
	publish(3);
	by_name = opened(0);
	assert_int_equal(pullet_open(path_of(config, ".snap"), 0, &by_path), 0);
	assert_generation(by_name, 3);
	assert_generation(by_path, 3);
	publish(4);
	assert_int_equal(pullet_refresh(by_name), 1);
	assert_int_equal(pullet_refresh(by_path), 1); /* it has the page beside it, too */
	assert_generation(by_name, 4);
	assert_generation(by_path, 4);
	pullet_close(by_name);
	pullet_close(by_path);
}

static void open__a_path_of_any_name__looks_at_the_file(void **state)
{
	struct pullet *p;

	(void)state;
	begin("open-2");
	put_image(1);
	assert_int_equal(rename(path_of(config, ".snap"), path_of(config, "")), 0);
	assert_int_equal(pullet_open(path_of(config, ""), 0, &p), 0);
	assert_generation(p, 1);
	pullet_close(p);
	refuses(path_of(config, ".sna"), 0, -ENOENT);
	put_image(2); /* beside a page, which a path of another name does not find */
	assert_int_equal(rename(path_of(config, ".snap"), path_of(config, "")), 0);
	assert_int_equal(pullet_open(path_of(config, ""), 0, &p), 0);
	assert_generation(p, 2);
	pullet_close(p);
	refuses(path_of(config, ".snap"), 0, -ENOENT);
	refuses(path_of("no-directory/x", ".snap"), 0, -ENOENT);
	refuses("./x", 0, -ENOENT);
}

static void open__not_a_name__is_refused(void **state)
{
	static const char *const names[] = {"", ".", "..", ".hidden", "-flag", "_x", "a b", "a\n",
		"\xc3\xa4", "a:b", "a*",
		"12345678901234567890123456789012345678901234567890123456789012345"};

	(void)state;
	for (size_t i = 0; i < COUNT(names); i++) {
		refuses(names[i], 0, -EINVAL);
		refuses(names[i], PULLET_WAIT_FIRST, -EINVAL);
	}
	refuses(NULL, 0, -EINVAL);
	refuses("1234567890123456789012345678901234567890123456789012345678901234", 0, -ENOENT);
}

static void open__unknown_flags__are_refused(void **state)
{
	(void)state;
	begin("flags");
	publish(1);
	refuses(config, 2, -EINVAL);
	refuses(config, UINT_MAX, -EINVAL);
	refuses(config, PULLET_WAIT_FIRST | 0x80000000u, -EINVAL);
}

static int count_one(const char *key, size_t key_len, const struct pullet_value *v, void *arg)
{
	(void)key;
	(void)key_len;
	(void)v;
	++*(int *)arg;
	return 0;
}

static void open__nothing_published__waits_only_if_asked(void **state)
{
	struct pullet_value v;
	struct pullet *p;
	int visits = 0;

	(void)state;
	config = "nothing";
	refuses(config, 0, -ENOENT);
	refuses(path_of(config, ".snap"), 0, -ENOENT);
	for (int page = 0; page < 2; page++) {
		p = opened(PULLET_WAIT_FIRST);
		assert_generation(p, 0);
		assert_int_equal(pullet_get(p, "", 0, &v), -ENOENT);
		assert_int_equal(pullet_each(p, "", count_one, &visits), 0);
		assert_int_equal(visits, 0);
		assert_true(pullet_get_bool(p, "x", true));
		assert_int_equal(pullet_get_size(p, "x", 5), 5);
		assert_int_equal(pullet_get_duration_ms(p, "x", 6), 6);
		assert_true(pullet_get_double(p, "x", 7.5) == 7.5);
		assert_null(pullet_get_string(p, "x", NULL));
		assert_int_equal(pullet_age_ms(p), -1);
		assert_true(pullet_stale(p));
		assert_int_equal(pullet_refresh(p), 0);
		assert_int_equal(pullet_wait(p, 0), 0);
		assert_int_equal(pullet_wait(p, 10), 0);
		if (page == 0)
			put_page();
		else
			publish(1);
		assert_int_equal(pullet_refresh(p), page);
		assert_generation(p, page ? 1 : 0);
		pullet_close(p);
	}
}

static void open__the_directory_is_not_there_yet__waits_if_asked(void **state)
{
	char whole[PATH_MAX];
	struct pullet *p;

	(void)state;
	config = "later";
	snprintf(whole, sizeof(whole), "%s/later.d", dir);
	setenv("PULLET_RUNTIME_DIR", whole, 1);
	refuses(config, 0, -ENOENT);
	p = opened(PULLET_WAIT_FIRST);
	setenv("PULLET_RUNTIME_DIR", dir, 1);
	assert_int_equal(pullet_refresh(p), 0);
	assert_int_equal(mkdir(whole, 0755), 0);
	config = "later.d/later";
	put_page();
	publish(9);
	assert_int_equal(pullet_refresh(p), 1);
	assert_generation(p, 9);
	pullet_close(p);
	unlink(path_of(config, ".snap"));
	unlink(path_of(config, ".gen"));
	rmdir(whole);
}

static void open__without_a_runtime_directory_set__is_in_run(void **state)
{
	(void)state;
	unsetenv("PULLET_RUNTIME_DIR");
	refuses("no-such-config-in-run", 0, -ENOENT);
	setenv("PULLET_RUNTIME_DIR", "", 1);
	refuses("no-such-config-in-run", 0, -ENOENT);
	setenv("PULLET_RUNTIME_DIR", dir, 1);
}

static void open__what_is_no_snapshot__is_refused(void **state)
{
	char junk[4096];

	(void)state;
	memset(junk, 'j', sizeof(junk));
	for (unsigned flags = 0; flags <= PULLET_WAIT_FIRST; flags++) {
		begin("foreign");
		put_file(path_of(config, ".snap"), junk, sizeof(junk));
		refuses(config, flags, -EPROTO);
		put_file(path_of(config, ".snap"), "PULSNAP\2", 8);
		refuses(config, flags, -EPROTO);
		put_file(path_of(config, ".snap"), "", 0);
		refuses(config, flags, -EBADMSG);
		unlink(path_of(config, ".snap"));
		assert_int_equal(mkdir(path_of(config, ".snap"), 0755), 0);
		refuses(config, flags, -EPROTO);
		rmdir(path_of(config, ".snap"));
		assert_int_equal(mkfifo(path_of(config, ".snap"), 0644), 0);
		refuses(config, flags, -EPROTO); /* and does not hang */
		unlink(path_of(config, ".snap"));
		assert_int_equal(symlink(config, path_of(config, "")), 0);
		refuses(path_of(config, ""), flags, -ELOOP);
		unlink(path_of(config, ""));
	}
	refuses("/dev/null", 0, -EPROTO);
	refuses("/proc/self/mem", 0, -EBADMSG); /* regular, and empty */
}

/* Replaces the image by a damaged one of that generation. */
static void put_damaged(uint64_t generation)
{
	unsigned char *image;
	size_t len;

	entries[0] = string("key0", "damaged");
	assert_int_equal(snapshot_build(entries, 1, generation, 0, NULL, (void **)&image, &len), 0);
	image[len - 1] ^= 1;
	put_file(path_of(config, ".snap"), image, len);
	free(image);
}

static void open__a_damaged_image__is_refused(void **state)
{
	(void)state;
	begin("damaged");
	put_damaged(1);
	refuses(config, 0, -EBADMSG);
	refuses(config, PULLET_WAIT_FIRST, -EBADMSG);
}

static void open__without_permission__is_refused(void **state)
{
	(void)state;
	begin("secret");
	publish(1);
	assert_int_equal(chmod(path_of(config, ".snap"), 0), 0);
	if (geteuid() == 0)
		assert_int_equal(seteuid(65534), 0);
	refuses(config, 0, -EACCES);
	refuses(config, PULLET_WAIT_FIRST, -EACCES);
	if (getuid() == 0)
		assert_int_equal(seteuid(0), 0);
}

static void open__stat_fails__says_so(void **state)
{
	(void)state;
	begin("stat");
	publish(1);
	fstat_fails = true;
	refuses(config, 0, -EIO);
	fstat_fails = false;
}

static void open__without_memory__says_so(void **state)
{
	(void)state;
	begin("memory");
	publish(1);
	newlocale_fails = true;
	refuses(config, 0, -ENOMEM);
	newlocale_fails = false;
#if !SANITIZED /* which have an allocator of their own */
	for (int by_path = 0; by_path < 2; by_path++) {
		char name[PATH_MAX];
		struct pullet *p = NULL;
		unsigned failures = 0;
		int r = -ENOMEM;

		snprintf(name, sizeof(name), "%s", by_path ? path_of(config, ".snap") : config);
		while (r == -ENOMEM) {
			allocations_left = failures;
			r = pullet_open(name, 0, &p);
			allocations_left = UINT_MAX;
			failures += r == -ENOMEM;
		}
		assert_int_equal(r, 0);
		assert_true(failures >= 3); /* the handle and both paths */
		assert_generation(p, 1);
		pullet_close(p);
	}
#endif
}

static void close__of_null__does_nothing(void **state)
{
	(void)state;
	pullet_close(NULL);
}

/* ---- moving ---- */

static void refresh__follows_the_page(void **state)
{
	struct pullet *p;

	(void)state;
	begin("follow");
	publish(1);
	p = opened(0);
	assert_int_equal(pullet_refresh(p), 0);
	put_image(2);
	assert_int_equal(pullet_refresh(p), 0); /* is not told yet */
	assert_generation(p, 1);
	tell(2);
	assert_int_equal(pullet_refresh(p), 1);
	assert_generation(p, 2);
	assert_int_equal(pullet_refresh(p), 0);
	put_image(INT64_MAX); /* newer than what was told */
	tell(3);
	assert_int_equal(pullet_refresh(p), 1);
	assert_generation(p, INT64_MAX);
	tell(INT64_MAX);
	assert_int_equal(pullet_refresh(p), 0);
	pullet_close(p);
}

static void refresh__to_a_damaged_image__keeps_what_is_open(void **state)
{
	struct pullet *p;
	const char *text;

	(void)state;
	begin("keep");
	publish(5);
	p = opened(0);
	text = pullet_get_string(p, "key3", "");
	for (uint64_t generation = 6; generation < 10; generation++) {
		put_damaged(generation);
		tell(generation);
		if (generation % 2)
			assert_int_equal(pullet_refresh(p), -EBADMSG);
		else
			assert_int_equal(pullet_wait(p, LONG_MS), -EBADMSG);
		for (int i = 0; i < 3; i++) /* once for each that is told */
			assert_int_equal(pullet_refresh(p), 0);
		assert_int_equal(pullet_wait(p, 10), 0);
		assert_generation(p, 5);
		assert_string_equal(text, "5");
	}
	put_file(path_of(config, ".snap"), "PULSNAP\2", 8);
	tell(10);
	assert_int_equal(pullet_refresh(p), -EPROTO);
	unlink(path_of(config, ".snap"));
	tell(11);
	assert_int_equal(pullet_refresh(p), -ENOENT);
	assert_int_equal(pullet_refresh(p), 0);
	assert_int_equal(pullet_wait(p, 10), 0);
	assert_generation(p, 5);
	assert_string_equal(text, "5");
	publish(6);
	assert_int_equal(pullet_refresh(p), 1);
	assert_generation(p, 6);
	pullet_close(p);
}

static void refresh__without_memory_or_stat__keeps_what_is_open(void **state)
{
	struct rlimit limit, none;
	struct pullet *p;
	int r;

	(void)state;
	begin("keep-too");
	publish(5);
	p = opened(0);
	publish(6);
	assert_int_equal(getrlimit(RLIMIT_AS, &limit), 0);
	none = limit;
	none.rlim_cur = 4096;
	assert_int_equal(setrlimit(RLIMIT_AS, &none), 0);
	r = pullet_refresh(p);
	assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
	assert_int_equal(r, -ENOMEM);
	fstat_fails = true;
	r = pullet_refresh(p);
	fstat_fails = false;
	assert_int_equal(r, -EIO);
	assert_generation(p, 5);
	assert_int_equal(pullet_refresh(p), 1);
	assert_generation(p, 6);
	pullet_close(p);
}

static void refresh__an_agent_that_lost_its_state__is_followed(void **state)
{
	struct pullet *p;

	(void)state;
	begin("back");
	publish(8);
	p = opened(0);
	assert_int_equal(pullet_refresh(p), 0);
	tell(0); /* nothing is in place yet: the image is the old one */
	assert_int_equal(pullet_refresh(p), 0);
	assert_generation(p, 8);
	publish(1);
	assert_int_equal(pullet_refresh(p), 1);
	assert_generation(p, 1);
	tell(9); /* an agent that errs */
	assert_int_equal(pullet_refresh(p), 0);
	assert_generation(p, 1);
	publish(2);
	assert_int_equal(pullet_wait(p, LONG_MS), 1);
	assert_generation(p, 2);
	pullet_close(p);
}

/* Its first generation has the number of its last one's. */
static void refresh__another_image_of_the_same_generation__is_followed(void **state)
{
	struct pullet *p;
	int r;

	(void)state;
	begin("same");
	entries[0] = string("x", "old");
	put_entries(1, 1, "old");
	tell(1);
	p = opened(0);
	entries[0] = string("x", "new");
	put_entries(1, 1, "new");
	tell(1);
	r = pullet_refresh(p);
	if (r == 1)
		assert_string_equal(pullet_version(p), "new");
	pullet_close(p);
	assert_int_equal(r, 1);
}

static void refresh__with_a_page_that_was_removed__goes_over_to_the_next_one(void **state)
{
	unsigned char *removed;
	struct pullet *p;

	(void)state;
	begin("removed-page");
	publish(1);
	p = opened(0);
	removed = map_page();
	unlink(path_of(config, ".gen"));
	wake(removed); /* there is no other one yet */
	assert_int_equal(pullet_refresh(p), 0);
	put_image(2);
	wake(removed);
	assert_int_equal(pullet_refresh(p), 1);
	put_page();
	publish(3);
	assert_int_equal(pullet_refresh(p), 0); /* is not told */
	wake(removed);
	assert_int_equal(pullet_refresh(p), 1);
	assert_generation(p, 3);
	publish(4);
	assert_int_equal(pullet_refresh(p), 1);
	assert_generation(p, 4);
	munmap(removed, PAGE);
	pullet_close(p);
}

/* What the old page said, the new one may say for something else. */
static void refresh__with_another_page_and_no_image_for_a_moment__looks_again(void **state)
{
	unsigned char *removed;
	struct pullet *p;

	(void)state;
	begin("moment");
	publish(1);
	p = opened(0);
	removed = map_page();
	unlink(path_of(config, ".gen"));
	put_page();
	tell(2);
	wake(removed);
	unlink(path_of(config, ".snap"));
	assert_int_equal(symlink(path_of(config, ".snap"), path_of(config, ".snap")), 0);
	assert_int_equal(pullet_refresh(p), -ELOOP);
	put_image(2);
	assert_int_equal(pullet_refresh(p), 1);
	assert_generation(p, 2);
	munmap(removed, PAGE);
	pullet_close(p);
}

/* What the agent rolled back. */
static void assert_withdrawn(struct pullet *p, uint64_t generation)
{
	unsigned tries;

	assert_int_equal(pullet_refresh(p), -EIDRM);
	tries = opens;
	assert_int_equal(pullet_refresh(p), -EIDRM); /* not once: nobody goes on without knowing */
	assert_int_equal(opens, tries);
	assert_true(pullet_withdrawn(p));
	assert_true(pullet_stale(p));
	assert_int_equal(pullet_age_ms(p), -1);
	assert_generation(p, generation);
}

static void refresh__of_a_withdrawn_config__says_so_until_it_comes_back(void **state)
{
	struct pullet *p;

	(void)state;
	begin("withdrawn");
	publish(1);
	p = opened(0);
	assert_false(pullet_withdrawn(p));
	for (uint64_t generation = 1; generation < 4; generation++) {
		withdraw();
		assert_true(pullet_withdrawn(p)); /* without a refresh */
		assert_generation(p, generation);
		assert_withdrawn(p, generation);
		tell(generation); /* for nothing */
		assert_withdrawn(p, generation);
		publish(generation + 1);
		assert_int_equal(pullet_refresh(p), 1);
		assert_int_equal(pullet_refresh(p), 0);
		assert_false(pullet_withdrawn(p));
		assert_generation(p, generation + 1);
	}
	withdraw();
	assert_withdrawn(p, 4);
	publish(4); /* the same image: it is there again all the same */
	assert_int_equal(pullet_refresh(p), 1);
	assert_int_equal(pullet_refresh(p), 0);
	assert_generation(p, 4);
	withdraw();
	assert_withdrawn(p, 4);
	put_page(); /* another one, which knows nothing of that */
	assert_int_equal(pullet_refresh(p), -ENOENT);
	assert_int_equal(pullet_refresh(p), 0);
	assert_false(pullet_withdrawn(p));
	assert_generation(p, 4);
	pullet_close(p);
}

static void refresh__a_withdrawn_config_that_comes_back_damaged__says_that(void **state)
{
	struct pullet *p;

	(void)state;
	begin("withdrawn-damaged");
	publish(1);
	p = opened(0);
	withdraw();
	assert_withdrawn(p, 1);
	put_damaged(2);
	tell(2);
	assert_int_equal(pullet_refresh(p), -EBADMSG);
	assert_int_equal(pullet_refresh(p), 0); /* once */
	assert_generation(p, 1);
	publish(3);
	assert_int_equal(pullet_refresh(p), 1);
	assert_generation(p, 3);
	pullet_close(p);
}

static void open__of_a_withdrawn_config__says_so(void **state)
{
	struct pullet *p;

	(void)state;
	begin("withdrawn-open");
	publish(1);
	withdraw();
	refuses(config, 0, -EIDRM);
	p = opened(PULLET_WAIT_FIRST);
	assert_true(pullet_withdrawn(p));
	assert_generation(p, 0);
	assert_int_equal(pullet_refresh(p), 0); /* nothing is open that it could go on with */
	assert_int_equal(pullet_wait(p, 10), 0);
	publish(2);
	assert_int_equal(pullet_refresh(p), 1);
	assert_false(pullet_withdrawn(p));
	assert_generation(p, 2);
	pullet_close(p);
	unlink(path_of(config, ".snap")); /* by somebody, not by the agent */
	refuses(config, 0, -ENOENT);
	unlink(path_of(config, ".gen"));
	refuses(config, 0, -ENOENT);
}

static void refresh__without_a_page__looks_at_the_file(void **state)
{
	struct pullet *p;

	(void)state;
	begin("alone");
	put_image(1);
	unlink(path_of(config, ".gen"));
	p = opened(0);
	assert_int_equal(pullet_age_ms(p), -1);
	assert_true(pullet_stale(p));
	for (uint64_t generation = 2; generation < 20; generation++) {
		assert_int_equal(pullet_refresh(p), 0);
		put_image(generation);
		assert_int_equal(pullet_refresh(p), 1);
		assert_generation(p, generation);
	}
	put_damaged(20);
	assert_int_equal(pullet_refresh(p), -EBADMSG);
	unlink(path_of(config, ".snap"));
	assert_int_equal(pullet_refresh(p), -ENOENT);
	assert_generation(p, 19);
	put_image(20);
	put_page(); /* comes later, and tells of nothing yet */
	assert_int_equal(pullet_refresh(p), 1);
	assert_generation(p, 20);
	publish(21);
	assert_int_equal(pullet_refresh(p), 1);
	assert_int_equal(pullet_refresh(p), 0);
	pullet_close(p);
}

static void refresh__without_a_page__reads_a_touched_file_once(void **state)
{
	struct pullet *p;
	unsigned tries;

	(void)state;
	begin("touched");
	put_image(1);
	unlink(path_of(config, ".gen"));
	p = opened(0);
	put_image(1);
	assert_int_equal(pullet_refresh(p), 0);
	tries = opens;
	assert_int_equal(pullet_refresh(p), 0);
	tries = opens - tries;
	pullet_close(p);
	assert_int_equal(tries, 1); /* for a page */
}

/* Also when the page, mapped in the same call, says what a new handle remembers. */
static void refresh__an_error_that_may_pass__is_tried_again(void **state)
{
	struct pullet *p;
	int first, second;

	(void)state;
	begin("again");
	publish(1);
	unlink(path_of(config, ".gen"));
	p = opened(0);
	put_page();
	put_image(2);
	assert_int_equal(chmod(path_of(config, ".snap"), 0), 0);
	if (geteuid() == 0)
		assert_int_equal(seteuid(65534), 0);
	first = pullet_refresh(p);
	if (getuid() == 0)
		assert_int_equal(seteuid(0), 0);
	assert_int_equal(chmod(path_of(config, ".snap"), 0644), 0);
	second = pullet_refresh(p);
	pullet_close(p);
	assert_int_equal(first, -EACCES);
	assert_int_equal(second, 1);
}

/* Another size or time of the same inode, another device: look again. */
static void refresh__without_a_page__sees_each_sign_of_another_file(void **state)
{
	const struct timespec times[][2] = {{{0, UTIME_OMIT}, {1000, 5}},
		{{0, UTIME_OMIT}, {1000, 6}}, {{0, UTIME_OMIT}, {1001, 6}}};
	char elsewhere[32]; /* memory is a device of its own, where /dev/shm lies on a disk too */
	struct pullet *p;
	unsigned tries;
	int fd;

	(void)state;
	begin("signs");
	put_image(1);
	unlink(path_of(config, ".gen"));
	assert_int_equal(utimensat(AT_FDCWD, path_of(config, ".snap"), times[0], 0), 0);
	p = opened(0);
	for (size_t i = 0; i < COUNT(times); i++) {
		assert_int_equal(utimensat(AT_FDCWD, path_of(config, ".snap"), times[i], 0), 0);
		tries = opens;
		assert_int_equal(pullet_refresh(p), 0);     /* the same generation */
		assert_int_equal(opens - tries, i ? 2 : 1); /* looks for a page, too */
	}
	fd = open(path_of(config, ".snap"), O_WRONLY | O_APPEND | O_CLOEXEC);
	assert_int_equal(write(fd, "x", 1), 1);
	assert_int_equal(futimens(fd, times[0]), 0);
	close(fd);
	assert_int_equal(pullet_refresh(p), -EBADMSG);
	put_image(2);
	assert_int_equal(rename(path_of(config, ".snap"), path_of(config, "")), 0);
	assert_int_equal(symlink(config, path_of(config, ".snap")), 0);
	assert_int_equal(pullet_refresh(p), 1);
	assert_generation(p, 2);
	put_image(3);
	fd = memfd_create("test_reader", MFD_CLOEXEC);
	assert_true(fd >= 0);
	snprintf(elsewhere, sizeof(elsewhere), "/proc/self/fd/%d", fd);
	copy_to(dup(fd), path_of(config, ".snap"));
	unlink(path_of(config, ".snap"));
	assert_int_equal(symlink(elsewhere, path_of(config, ".snap")), 0);
	assert_int_equal(pullet_refresh(p), 1);
	assert_generation(p, 3);
	pullet_close(p);
	close(fd);
}

static void refresh__with_a_page_that_is_none__looks_at_the_file(void **state)
{
	static const unsigned char magic[8] = {'P', 'U', 'L', 'G', 'E', 'N', 'P', 1};
	static unsigned char page[2 * PAGE];

	(void)state;
	for (int kind = 0; kind < 6; kind++) {
		size_t len = kind == 0 ? PAGE - 1 : kind == 1 ? 2 * PAGE : kind == 2 ? 0 : PAGE;
		struct pullet *p;

		begin("foreign-page");
		put_image(1);
		memcpy(page, magic, sizeof(magic));
		memset(page + 8, 0xff, 32);
		if (kind == 3)
			page[0] = 'p';
		if (kind == 4)
			page[7] = 2; /* a version that is not known */
		put_file(path_of(config, ".gen"), page, len);
		if (kind == 5) {
			unlink(path_of(config, ".gen"));
			assert_int_equal(mkdir(path_of(config, ".gen"), 0755), 0);
		}
		p = opened(0);
		assert_int_equal(pullet_refresh(p), 0);
		assert_int_equal(pullet_age_ms(p), -1);
		assert_true(pullet_stale(p));
		put_image(2);
		assert_int_equal(pullet_refresh(p), 1);
		assert_generation(p, 2);
		assert_int_equal(pullet_wait(p, 10), 0);
		pullet_close(p);
		rmdir(path_of(config, ".gen"));
	}
}

static void refresh__a_thousand_times__leaves_nothing_behind(void **state)
{
	struct pullet *p;
	size_t files, maps;

	(void)state;
	begin("leaks");
	publish(1);
	p = opened(0);
	files = open_files();
	maps = mappings();
	assert_int_equal(maps, 2); /* the image and the page */
	for (uint64_t i = 2; i <= 1001; i++) {
		if (i % 10 == 0) {
			put_damaged(i);
			tell(UINT64_MAX);
			assert_int_equal(pullet_refresh(p), -EBADMSG);
		}
		publish(i);
		assert_int_equal(pullet_refresh(p), 1);
		assert_int_equal(pullet_refresh(p), 0);
	}
	assert_generation(p, 1001);
	assert_int_equal(open_files(), files);
	assert_int_equal(mappings(), maps);
	pullet_close(p);
	assert_int_equal(mappings(), 0);
}

/* ---- verified by the agent ---- */

/* The page says that the agent verified the file at the path, or one that differs by so much. */
static void vouch(uint64_t other_ino, uint64_t other_ctime, uint64_t other_digest)
{
	unsigned char *page = map_page();
	struct stat st;
	uint64_t digest;
	int fd = open(path_of(config, ".snap"), O_RDONLY | O_CLOEXEC);

	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(pread(fd, &digest, sizeof(digest), 8), sizeof(digest));
	close(fd);
	store64(page, 40, st.st_ino + other_ino);
	store64(page, 48,
		(uint64_t)st.st_ctim.tv_sec * 1000000000 + (uint64_t)st.st_ctim.tv_nsec +
			other_ctime);
	store64(page, 56, digest + other_digest);
	munmap(page, PAGE);
}

/* Something about the file changes: it has another ctime, at the latest with the clock's next tick.
 */
static void change_ctime(void)
{
	struct stat before_it, st;

	assert_int_equal(stat(path_of(config, ".snap"), &before_it), 0);
	do {
		assert_int_equal(chmod(path_of(config, ".snap"), 0640), 0);
		assert_int_equal(stat(path_of(config, ".snap"), &st), 0);
	} while (st.st_ctim.tv_sec == before_it.st_ctim.tv_sec &&
		 st.st_ctim.tv_nsec == before_it.st_ctim.tv_nsec);
}

/* A wrong digest tells whether all of the file was read. */
static void open__what_the_agent_verified__is_not_read_again(void **state)
{
	struct pullet *p;

	(void)state;
	begin("verified");
	put_damaged(1);
	refuses(config, 0, -EBADMSG);
	vouch(0, 0, 0);
	p = opened(0);
	pullet_close(p);
	vouch(1, 0, 0);
	refuses(config, 0, -EBADMSG);
	vouch(0, 1, 0);
	refuses(config, 0, -EBADMSG);
	vouch(0, 0, 1);
	refuses(config, 0, -EBADMSG);
	vouch(0, 0, 0);
	change_ctime(); /* as any change of the file does */
	refuses(config, 0, -EBADMSG);
	vouch(0, 0, 0);
	put_damaged(1); /* another file with the same bytes */
	refuses(config, 0, -EBADMSG);
	vouch(0, 0, 0);
	unlink(path_of(config, ".gen"));
	refuses(config, 0, -EBADMSG);
}

static void refresh__to_a_damaged_image_beside_a_verified_one__keeps_what_is_open(void **state)
{
	struct pullet *p;

	(void)state;
	begin("verified-before");
	publish(1);
	vouch(0, 0, 0);
	p = opened(0);
	put_damaged(2);
	tell(2);
	assert_int_equal(pullet_refresh(p), -EBADMSG);
	assert_generation(p, 1);
	put_image(3); /* not verified by the agent, and good */
	tell(3);
	assert_int_equal(pullet_refresh(p), 1);
	assert_generation(p, 3);
	put_image(4);
	vouch(0, 0, 0);
	tell(4);
	assert_int_equal(pullet_refresh(p), 1);
	assert_generation(p, 4);
	pullet_close(p);
}

/* The numbers of a file are of its device: the page is not of another one. */
static void open__of_an_image_on_another_device__reads_all_of_it(void **state)
{
	char elsewhere[32];
	int fd = memfd_create("test_reader", MFD_CLOEXEC);

	(void)state;
	begin("verified-elsewhere");
	put_damaged(1);
	assert_true(fd >= 0);
	snprintf(elsewhere, sizeof(elsewhere), "/proc/self/fd/%d", fd);
	copy_to(dup(fd), path_of(config, ".snap"));
	unlink(path_of(config, ".snap"));
	assert_int_equal(symlink(elsewhere, path_of(config, ".snap")), 0);
	vouch(0, 0, 0);
	refuses(config, 0, -EBADMSG);
	close(fd);
}

/* ---- values ---- */

#define NO_INT INT64_C(-77)
#define NO_DOUBLE (-77.25)
enum { F, T, NO_BOOL };

static const struct value_row {
	enum pullet_type type;
	const char *text;
	int64_t raw;
	const char *as_string;
	int64_t as_int;
	double as_double;
	int as_bool;
	int64_t as_duration, as_size;
} value_rows[] = {
#define STRING(t, i, d, b, ms, size)                                                               \
	{                                                                                          \
		PULLET_STRING, t, 0, t, i, d, b, ms, size                                          \
	}
#define TEXT(t) STRING(t, NO_INT, NO_DOUBLE, NO_BOOL, NO_INT, NO_INT)
#define DURATION(t, ms) STRING(t, NO_INT, NO_DOUBLE, NO_BOOL, ms, NO_INT)
#define SIZE(t, n) STRING(t, NO_INT, NO_DOUBLE, NO_BOOL, NO_INT, n)
	{PULLET_NULL, "", 0, NULL, NO_INT, NO_DOUBLE, NO_BOOL, NO_INT, NO_INT},
	{PULLET_LIST, "", 3, NULL, NO_INT, NO_DOUBLE, NO_BOOL, NO_INT, NO_INT},
	{PULLET_MAP, "", 0, NULL, NO_INT, NO_DOUBLE, NO_BOOL, NO_INT, NO_INT},
	{PULLET_BOOL, "true", 1, "true", NO_INT, NO_DOUBLE, T, NO_INT, NO_INT},
	{PULLET_BOOL, "False", 0, "False", NO_INT, NO_DOUBLE, F, NO_INT, NO_INT},
	{PULLET_INT, "0", 0, "0", 0, 0, NO_BOOL, NO_INT, 0},
	{PULLET_INT, "1", 1, "1", 1, 1, NO_BOOL, NO_INT, 1},
	{PULLET_INT, "0x1F", 31, "0x1F", 31, 31, NO_BOOL, NO_INT, 31},
	{PULLET_INT, "9223372036854775807", INT64_MAX, "9223372036854775807", INT64_MAX,
		9223372036854775808.0, NO_BOOL, NO_INT, INT64_MAX},
	STRING("42", 42, 42, NO_BOOL, NO_INT, 42),
	STRING("007", 7, 7, NO_BOOL, NO_INT, 7),
	TEXT(""),
	TEXT(" 42"),
	TEXT("42 "),
	TEXT("4 2"),
	TEXT("42x"),
	TEXT("-"),
	TEXT("+"),
	TEXT("+-1"),
	TEXT("--1"),
	TEXT("\t1"),
	TEXT("1\n"),
	TEXT("abc"),
	TEXT("yes"),
	TEXT("True"),
	TEXT("TRUE"),
	TEXT("false "),
	TEXT("1,5"),
	TEXT("\xd9\xa3"), /* an arabic three */
	TEXT("nan"),
	TEXT("inf"),
	TEXT("."),
	TEXT("1e"),
	STRING("true", NO_INT, NO_DOUBLE, T, NO_INT, NO_INT),
	STRING("false", NO_INT, NO_DOUBLE, F, NO_INT, NO_INT),
	STRING("2.5", NO_INT, 2.5, NO_BOOL, NO_INT, NO_INT),
	STRING("-2.5e-3", NO_INT, -2.5e-3, NO_BOOL, NO_INT, NO_INT),
	STRING(".5", NO_INT, .5, NO_BOOL, NO_INT, NO_INT),
	STRING("1e3", NO_INT, 1000, NO_BOOL, NO_INT, NO_INT),
	STRING("9223372036854775808", NO_INT, 9223372036854775808.0, NO_BOOL, NO_INT, NO_INT),
	STRING("-9223372036854775809", NO_INT, -9223372036854775808.0, NO_BOOL, NO_INT, NO_INT),
	STRING("99999999999999999999999", NO_INT, 1e23, NO_BOOL, NO_INT, NO_INT),
	DURATION("500ms", 500),
	DURATION("10s", 10000),
	DURATION("5m", 300000),
	DURATION("1h", 3600000),
	DURATION("2d", 172800000),
	DURATION("0s", 0),
	DURATION("0ms", 0),
	DURATION("9223372036854775807ms", INT64_MAX),
	DURATION("106751991167d", INT64_C(106751991167) * 86400000),
	TEXT("106751991168d"), /* does not fit */
	TEXT("9223372036854775807s"),
	TEXT("9223372036854775808ms"),
	TEXT("10 s"),
	TEXT("1.5s"),
	TEXT("10S"),
	TEXT("10sec"),
	DURATION("1h30m", 5400000),
	DURATION("-1d1ms", -86400001),
	DURATION("-106751991167d7h12m55s808ms", INT64_MIN),
	TEXT("-106751991167d7h12m55s809ms"),
	TEXT("30m1h"),
	TEXT("1h1h"),
	TEXT("1h-5m"),
	TEXT("1h30"),
	TEXT("s"),
	TEXT("5w"),
	SIZE("64KiB", 65536),
	SIZE("8MiB", 8388608),
	SIZE("3GiB", INT64_C(3) << 30),
	SIZE("1TiB", INT64_C(1) << 40),
	SIZE("12B", 12),
	SIZE("0KiB", 0),
	SIZE("8388607TiB", INT64_C(8388607) << 40),
	TEXT("8388608TiB"),
	TEXT("9223372036854775807KiB"),
	TEXT("64kib"),
	TEXT("64 KiB"),
	TEXT("64KB"),
	TEXT("64K"),
	TEXT("KiB"),
	TEXT("1.5MiB"),
	TEXT("64KiBx"),
};

static void check_row(struct pullet *p, const char *key, const struct value_row *r)
{
	const char *text = pullet_get_string(p, key, NULL);
	bool whole = r->as_string ? text && strcmp(text, r->as_string) == 0 : !text;
	struct pullet_key k;

	pullet_key_init(&k, p, key, strlen(key));
	if (!whole || pullet_key_get_string(&k, NULL) != text ||
		pullet_key_get_int(&k, NO_INT) != r->as_int ||
		pullet_key_get_double(&k, NO_DOUBLE) != r->as_double ||
		pullet_key_get_bool(&k, true) != (r->as_bool != F) ||
		pullet_key_get_bool(&k, false) != (r->as_bool == T) ||
		pullet_key_get_duration_ms(&k, NO_INT) != r->as_duration ||
		pullet_key_get_size(&k, NO_INT) != r->as_size ||
		pullet_get_int(p, key, NO_INT) != r->as_int ||
		pullet_get_double(p, key, NO_DOUBLE) != r->as_double ||
		pullet_get_bool(p, key, true) != (r->as_bool != F) ||
		pullet_get_bool(p, key, false) != (r->as_bool == T) ||
		pullet_get_duration_ms(p, key, NO_INT) != r->as_duration ||
		pullet_get_size(p, key, NO_INT) != r->as_size)
		fail_msg("type %d, text \"%s\": string %s, int %lld, double %g, bool %d, "
			 "duration %lld, size %lld",
			r->type, r->text, text ? text : "none",
			(long long)pullet_get_int(p, key, NO_INT),
			pullet_get_double(p, key, NO_DOUBLE), pullet_get_bool(p, key, true),
			(long long)pullet_get_duration_ms(p, key, NO_INT),
			(long long)pullet_get_size(p, key, NO_INT));
}

static void typed_getters__give_the_value_or_the_fallback(void **state)
{
	static char keys[COUNT(value_rows)][16];
	struct pullet_key absent;
	struct pullet *p;

	(void)state;
	begin("typed");
	for (size_t i = 0; i < COUNT(value_rows); i++) {
		snprintf(keys[i], sizeof(keys[i]), "k%zu", i);
		entries[i] = string(keys[i], value_rows[i].text);
		entries[i].value.type = value_rows[i].type;
		if (value_rows[i].type == PULLET_BOOL)
			entries[i].value.boolean = value_rows[i].raw != 0;
		else
			entries[i].value.integer = value_rows[i].raw;
	}
	put_entries(COUNT(value_rows), 1, "");
	p = opened(0);
	for (size_t i = 0; i < COUNT(value_rows); i++)
		check_row(p, keys[i], &value_rows[i]);
	assert_int_equal(pullet_get_int(p, "absent", 3), 3);
	assert_int_equal(pullet_get_int(p, "", 3), 3);
	assert_int_equal(pullet_get_int(p, "k", 3), 3);
	pullet_key_init(&absent, p, "absent", 6);
	assert_int_equal(pullet_key_get_int(&absent, 3), 3);
	assert_string_equal(pullet_key_get_string(&absent, "x"), "x");
	assert_true(pullet_key_get_double(&absent, 2.5) == 2.5);
	assert_true(pullet_key_get_bool(&absent, true));
	assert_int_equal(pullet_key_get_duration_ms(&absent, 4), 4);
	assert_int_equal(pullet_key_get_size(&absent, 5), 5);
	pullet_close(p);
}

/* One key "x" with a value. */
static struct pullet *opened_with(const char *name, struct snapshot_entry e)
{
	begin(name);
	entries[0] = e;
	put_entries(1, 1, NULL);
	return opened(0);
}

static void get_double__a_double__is_exact(void **state)
{
	static const double numbers[] = {
		0.1, -0.0, 1e-300, 4.9406564584124654e-324, 1.7976931348623157e308, INFINITY};
	struct snapshot_entry e = string("x", "not looked at");
	struct pullet *p;

	(void)state;
	e.value.type = PULLET_DOUBLE;
	for (size_t i = 0; i < COUNT(numbers); i++) {
		double n;

		e.value.number = numbers[i];
		p = opened_with("double", e);
		n = pullet_get_double(p, "x", 3);
		assert_memory_equal(&n, &numbers[i], sizeof(n));
		assert_string_equal(pullet_get_string(p, "x", ""), "not looked at");
		assert_int_equal(pullet_get_int(p, "x", 3), 3);
		assert_int_equal(pullet_get_size(p, "x", 3), 3);
		pullet_close(p);
	}
	e.value.number = NAN;
	p = opened_with("double", e);
	assert_true(isnan(pullet_get_double(p, "x", 3)));
	pullet_close(p);
}

static void get_double__a_string_that_is_no_finite_decimal__gives_the_fallback(void **state)
{
	static const char *const texts[] = {"0x10", "0x1p3", "+inf", "-inf", "-infinity", "+nan",
		"-nan(7)", "1e999", "-1e999", "0x", "+0x1", "1e+", "1.2.3"};
	unsigned wrong = 0;

	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++) {
		struct pullet *p = opened_with("double", string("x", texts[i]));
		double n = pullet_get_double(p, "x", NO_DOUBLE);

		pullet_close(p);
		if (n != NO_DOUBLE)
			print_error("%s is %g\n", texts[i], n);
		wrong += n != NO_DOUBLE;
	}
	assert_int_equal(wrong, 0);
}

/* A locale with a decimal comma. False when the system can make none. */
static bool set_comma_locale(void)
{
	char path[PATH_MAX];
	static char name[] = "localedef", input[] = "-ide_DE", charmap[] = "-fUTF-8",
		    plain[] = "--no-archive";
	char *const argv[] = {name, input, charmap, plain, path, NULL};
	int status;
	pid_t pid;

	snprintf(path, sizeof(path), "%s/de_DE.UTF-8", dir);
	if (posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ) ||
		waitpid(pid, &status, 0) != pid)
		return false;
	setenv("LOCPATH", dir, 1);
	return setlocale(LC_ALL, "de_DE.UTF-8") && localeconv()->decimal_point[0] == ',';
}

static void get_double__in_a_program_with_a_decimal_comma__reads_points(void **state)
{
	double point, comma;
	struct pullet *p;

	(void)state;
	if (!set_comma_locale())
		fail_msg("localedef cannot make de_DE.UTF-8: install the package locales");
	p = opened_with("locale", string("x", "2.5"));
	point = pullet_get_double(p, "x", NO_DOUBLE);
	pullet_close(p);
	p = opened_with("locale", string("x", "2,5"));
	comma = pullet_get_double(p, "x", NO_DOUBLE);
	pullet_close(p);
	setlocale(LC_ALL, "C");
	unsetenv("LOCPATH");
	assert_true(point == 2.5);
	assert_true(comma == NO_DOUBLE);
}

static void get_int__the_bounds__are_exact(void **state)
{
	struct snapshot_entry e = string("x", "-9223372036854775808");
	struct pullet *p = opened_with("bounds", e);

	(void)state;
	assert_true(pullet_get_int(p, "x", 0) == INT64_MIN);
	pullet_close(p);
	e.value.type = PULLET_INT;
	e.value.integer = INT64_MIN;
	p = opened_with("bounds", e);
	assert_true(pullet_get_int(p, "x", 0) == INT64_MIN);
	assert_true(pullet_get_double(p, "x", 0) == -9223372036854775808.0);
	pullet_close(p);
}

static void get__compares_only_the_bytes_given(void **state)
{
	struct pullet *p = opened_with("get", string("a\\.b.c", "text"));
	struct pullet_value v;

	(void)state;
	assert_int_equal(pullet_get(p, "a\\.b.cd", 6, &v), 0);
	assert_int_equal(v.type, PULLET_STRING);
	assert_int_equal(v.len, 4);
	assert_string_equal(v.text, "text");
	assert_int_equal(pullet_get(p, "a\\.b.cd", 5, &v), -ENOENT);
	assert_int_equal(pullet_get(p, "a\\.b.cd", 7, &v), -ENOENT);
	assert_int_equal(pullet_get(p, "a\\.b.c", 7, &v), -ENOENT); /* with its NUL */
	assert_int_equal(pullet_get(p, "", 0, &v), -ENOENT);
	pullet_close(p);
}

struct walk {
	char seen[200];
	int stop_at, visits;
};

static int note(const char *key, size_t key_len, const struct pullet_value *v, void *arg)
{
	struct walk *w = arg;

	assert_int_equal(strlen(key), key_len);
	assert_string_equal(key, v->text);
	snprintf(w->seen + strlen(w->seen), sizeof(w->seen) - strlen(w->seen), "%s ", key);
	return ++w->visits == w->stop_at ? -42 : 0;
}

static void each__visits_a_prefix_in_order_until_told(void **state)
{
	static const char *const keys[] = {
		"b.y", "b", "b.", "a", "\xc3\xa4", "b.x", "bb", "c", "B"};
	static const struct {
		const char *prefix;
		int stop_at, result;
		const char *seen;
	} rows[] = {
		{"", 0, 0, "B a b b. b.x b.y bb c \xc3\xa4 "},
		{"b", 0, 0, "b b. b.x b.y bb "},
		{"b.", 0, 0, "b. b.x b.y "},
		{"b.x", 0, 0, "b.x "},
		{"b.xx", 0, 0, ""},
		{"\xc3", 0, 0, "\xc3\xa4 "},
		{"\xff", 0, 0, ""},
		{"A", 0, 0, ""},
		{"", 1, -42, "B "},
		{"", 9, -42, "B a b b. b.x b.y bb c \xc3\xa4 "},
		{"b", 2, -42, "b b. "},
	};
	struct pullet *p;

	(void)state;
	begin("each");
	for (size_t i = 0; i < COUNT(keys); i++)
		entries[i] = string(keys[i], keys[i]);
	put_entries(COUNT(keys), 1, NULL);
	p = opened(0);
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct walk w = {.stop_at = rows[i].stop_at};

		assert_int_equal(pullet_each(p, rows[i].prefix, note, &w), rows[i].result);
		assert_string_equal(w.seen, rows[i].seen);
	}
	pullet_close(p);
}

static void each__a_bad_record__does_not_hide_those_behind_it(void **state)
{
	struct pullet *p;
	int visits = 0;
	char path[PATH_MAX];

	(void)state;
	snprintf(path, sizeof(path), "%.*s../../golden/bad/type-7.snap",
		(int)(sizeof(__FILE__) - sizeof("test_reader.c")), __FILE__);
	assert_int_equal(pullet_open(path, 0, &p), 0);
	assert_int_equal(pullet_count(p), 3);
	assert_string_equal(pullet_get_string(p, "c", ""), "true");
	assert_int_equal(pullet_each(p, "", count_one, &visits), 0);
	pullet_close(p);
	assert_int_equal(visits, 2); /* a and c */
}

/* ---- named keys ---- */

static void assert_key(struct pullet_key *k, const char *text)
{
	const struct pullet_value *(*volatile get)(struct pullet_key *) = pullet_key_get;
	const struct pullet_value *v = pullet_key_get(k);

	assert_ptr_equal(get(k), v); /* the one that is not inlined */
	if (!text) {
		assert_null(v);
		return;
	}
	assert_non_null(v);
	assert_string_equal(v->text, text);
	assert_int_equal(v->len, strlen(text));
	assert_string_equal(pullet_key_get_string(k, "none"), text);
}

static void key__in_each_version__is_what_get_gives(void **state)
{
	struct pullet_key key, other;
	struct pullet *p;

	(void)state;
	begin("key");
	publish(1);
	p = opened(0);
	pullet_key_init(&key, p, "key7\0 and more", 4);
	pullet_key_init(&other, p, "key7", 5); /* with its NUL */
	for (uint64_t generation = 1; generation < 5; generation++) {
		char text[32];

		snprintf(text, sizeof(text), "%llu", (unsigned long long)generation);
		publish(generation + 1); /* not moved to yet */
		for (int i = 0; i < 3; i++) {
			assert_key(&key, text);
			assert_key(&other, NULL);
		}
		assert_int_equal(pullet_key_get_int(&key, 0), generation);
		assert_ptr_equal(pullet_key_get(&key)->text, pullet_get_string(p, "key7", NULL));
		assert_int_equal(pullet_refresh(p), 1);
	}
	assert_key(&key, "5");
	pullet_close(p);
}

static void key__that_comes_and_goes__is_found_when_it_is_there(void **state)
{
	struct pullet_key key;
	struct pullet *p;

	(void)state;
	config = "key-comes";
	p = opened(PULLET_WAIT_FIRST);
	pullet_key_init(&key, p, "x", 1);
	assert_key(&key, NULL);
	put_page();
	publish(1); /* others only */
	assert_int_equal(pullet_refresh(p), 1);
	for (int i = 0; i < 2; i++) {
		assert_key(&key, NULL);
		assert_int_equal(pullet_key_get_int(&key, 3), 3);
	}
	for (uint64_t generation = 2; generation < 6; generation++) {
		bool there = generation % 2 == 0;

		entries[0] = string(there ? "x" : "y", "");
		put_entries(1, generation, NULL);
		tell(generation);
		assert_int_equal(pullet_refresh(p), 1);
		for (int i = 0; i < 2; i++)
			assert_key(&key, there ? "" : NULL);
	}
	pullet_close(p);
}

/* Damages the record where it lies, in the file that is mapped. */
static void key__of_a_version__is_looked_up_once(void **state)
{
	struct pullet_key found, missing, copy;
	struct pullet_value v;
	struct pullet *p;
	long at;
	FILE *f;

	(void)state;
	begin("key-once");
	entries[0] = string("first", "text");
	put_entries(1, 1, "");
	p = opened(0);
	pullet_key_init(&found, p, "first", 5);
	pullet_key_init(&missing, p, "other", 5);
	assert_key(&found, "text");
	assert_key(&missing, NULL);
	f = fopen(path_of(config, ".snap"), "r+e");
	assert_non_null(f);
	assert_int_equal(pullet_get(p, "first", 5, &v), 0);
	assert_int_equal(fseek(f, 0, SEEK_END), 0);
	for (at = ftell(f) - 8; at > 0; at -= 8) { /* where the key begins */
		char bytes[6] = "";

		assert_int_equal(fseek(f, at, SEEK_SET), 0);
		assert_int_equal(fread(bytes, 1, 5, f), 5);
		if (strcmp(bytes, "first") == 0)
			break;
	}
	assert_int_equal(fseek(f, at, SEEK_SET), 0);
	assert_int_equal(fwrite("FIRST", 1, 5, f), 5);
	fclose(f);
	assert_int_equal(pullet_get(p, "first", 5, &v), -ENOENT);
	assert_key(&found, "text");
	copy = found;
	assert_key(&copy, "text");
	pullet_key_init(&found, p, "first", 5); /* a new one looks */
	assert_key(&found, NULL);
	pullet_close(p);
}

static void key__of_a_version_that_stays__stays(void **state)
{
	struct pullet_key key;
	struct pullet *p;
	const char *text;

	(void)state;
	begin("key-stays");
	publish(1);
	p = opened(0);
	pullet_key_init(&key, p, "key1", 4);
	assert_key(&key, "1");
	text = pullet_key_get(&key)->text;
	put_damaged(2);
	tell(2);
	assert_int_equal(pullet_refresh(p), -EBADMSG);
	assert_key(&key, "1");
	withdraw();
	assert_int_equal(pullet_refresh(p), -EIDRM);
	assert_key(&key, "1");
	publish(1); /* back, and the same: nothing was mapped */
	assert_int_equal(pullet_refresh(p), 1);
	assert_key(&key, "1");
	assert_ptr_equal(pullet_key_get(&key)->text, text);
	publish(3);
	assert_int_equal(pullet_refresh(p), 1);
	assert_key(&key, "3");
	pullet_close(p);
}

/* ---- the table of all languages: tests/golden/values.tsv ---- */

/* %41 to A, in place. */
static void unescape(char *text)
{
	char *to = text, hex[3] = "";

	for (; *text; text++) {
		*to = *text;
		if (*text == '%') {
			memcpy(hex, text + 1, 2);
			*to = (char)strtol(hex, NULL, 16);
			text += 2;
		}
		to++;
	}
	*to = '\0';
}

static bool same_double(double a, double b)
{
	return memcmp(&a, &b, sizeof(a)) == 0 || (isnan(a) && isnan(b));
}

/* The getters' answers with two fallbacks each: "-" is the fallback. */
static void check_values(struct pullet *p, char *column[8])
{
	int64_t (*const whole[])(struct pullet *, const char *, int64_t) = {
		[3] = pullet_get_int, [6] = pullet_get_duration_ms, [7] = pullet_get_size};
	const char *key = column[0];
	struct pullet_value v;
	bool is_text = strcmp(column[1], "absent") != 0 &&
		       pullet_get(p, key, strlen(key), &v) == 0 && v.type >= PULLET_BOOL &&
		       v.type <= PULLET_STRING;

	assert_string_equal(pullet_get_string(p, key, "another"), is_text ? column[2] : "another");
	for (int64_t n = 5; n <= 6; n++) {
		bool other = n == 5;
		double real = pullet_get_double(p, key, (double)n + 0.5);

		for (size_t i = 3; i < COUNT(whole); i++)
			if (whole[i] && whole[i](p, key, n) !=
						(strcmp(column[i], "-") == 0
								? n
								: strtoll(column[i], NULL, 10)))
				fail_msg("%s '%s': column %zu", key, column[2], i);
		if (!same_double(real, strcmp(column[4], "-") == 0 ? (double)n + 0.5
								   : strtod(column[4], NULL)))
			fail_msg("%s '%s' as a double: %.17g", key, column[2], real);
		if (pullet_get_bool(p, key, other) !=
			(strcmp(column[5], "-") == 0 ? other : strcmp(column[5], "true") == 0))
			fail_msg("%s '%s' as a bool", key, column[2]);
	}
}

static void get__of_the_golden_values__is_as_in_the_table(void **state)
{
	int dirname_len = (int)(sizeof(__FILE__) - sizeof("test_reader.c"));
	char path[PATH_MAX], line[10000], *column[8], *rest;
	struct pullet *p;
	size_t rows = 0;
	FILE *f;

	(void)state;
	snprintf(path, sizeof(path), "%.*s../../golden/values.snap", dirname_len, __FILE__);
	assert_int_equal(pullet_open(path, 0, &p), 0);
	snprintf(path, sizeof(path), "%.*s../../golden/values.tsv", dirname_len, __FILE__);
	f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		rest = line;
		if (line[0] == '#')
			continue;
		line[strcspn(line, "\n")] = '\0';
		for (size_t i = 0; i < COUNT(column); i++) {
			column[i] = strsep(&rest, "\t");
			assert_non_null(column[i]);
		}
		unescape(column[2]);
		check_values(p, column);
		rows++;
	}
	fclose(f);
	assert_int_equal(rows, pullet_count(p) + 1); /* one is absent */
	pullet_close(p);
}

/* ---- the page ---- */

static void age_and_stale__follow_the_page(void **state)
{
	unsigned char *page;
	struct pullet *p;

	(void)state;
	begin("age");
	publish(1);
	page = map_page();
	p = opened(0);
	assert_int_equal(pullet_age_ms(p), -1); /* not confirmed since the agent's start */
	assert_true(pullet_stale(p));
	store64(page, 24, boot_ms());
	assert_in_range(pullet_age_ms(p), 0, LONG_MS);
	assert_false(pullet_stale(p)); /* never, with 0 */
	store64(page, 32, 5 * LONG_MS);
	assert_false(pullet_stale(p));
	store64(page, 32, 1);
	store64(page, 24, boot_ms() > 1000000 ? boot_ms() - 1000000 : 1);
	assert_true(pullet_age_ms(p) > 1);
	assert_true(pullet_stale(p));
	store64(page, 32, UINT64_MAX);
	assert_false(pullet_stale(p));
	store64(page, 24, boot_ms() + 3600000); /* of the future: not an age below 0 */
	assert_int_equal(pullet_age_ms(p), 0);
	assert_false(pullet_stale(p));
	store64(page, 24, 0);
	assert_int_equal(pullet_age_ms(p), -1);
	assert_true(pullet_stale(p));
	pullet_close(p);
	munmap(page, PAGE);
}

/* ---- waiting ---- */

static void nap(unsigned ms)
{
	struct timespec t = {ms / 1000, (long)(ms % 1000) * 1000000};

	nanosleep(&t, NULL);
}

static void *publish_later(void *arg)
{
	nap(50);
	publish(*(const uint64_t *)arg);
	return NULL;
}

static void *first_image_later(void *arg)
{
	nap(50);
	put_image(*(const uint64_t *)arg);
	return NULL;
}

static void *withdraw_later(void *arg)
{
	(void)arg;
	nap(50);
	withdraw();
	return NULL;
}

static void *wake_for_nothing(void *arg)
{
	unsigned char *page = map_page();

	for (int i = 0; i < 10; i++) {
		nap(5);
		wake(page);
	}
	munmap(page, PAGE);
	return publish_later(arg);
}

/* Waits while another thread does something; how long it took. */
static uint64_t wait_beside(
	struct pullet *p, void *(*run)(void *), uint64_t generation, int timeout_ms)
{
	uint64_t start_ms = boot_ms();
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, run, &generation), 0);
	assert_int_equal(pullet_wait(p, timeout_ms), 1);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_generation(p, generation);
	return boot_ms() - start_ms;
}

static void wait__nothing_new__ends_with_the_time(void **state)
{
	uint64_t start_ms = boot_ms();
	struct pullet *p;

	(void)state;
	begin("time");
	publish(1);
	p = opened(0);
	assert_int_equal(pullet_wait(p, 0), 0);
	assert_int_equal(pullet_wait(p, 60), 0);
	assert_in_range(boot_ms() - start_ms, 60, LONG_MS);
	unlink(path_of(config, ".gen"));
	pullet_close(p);
	p = opened(0);
	start_ms = boot_ms();
	assert_int_equal(pullet_wait(p, 0), 0);
	assert_int_equal(pullet_wait(p, 130), 0);
	assert_in_range(boot_ms() - start_ms, 130, LONG_MS);
	pullet_close(p);
}

static void wait__the_time_passes_between_two_looks__does_not_sleep(void **state)
{
	struct pullet *p;

	(void)state;
	begin("passes");
	publish(1);
	for (int page = 1; page >= 0; page--) {
		p = opened(0);
		for (unsigned looks = 2; looks <= 3; looks++) { /* the first begins the time */
			looks_at_clock = looks;
			assert_int_equal(pullet_wait(p, 150), 0);
			assert_int_equal(looks_at_clock, 0);
		}
		pullet_close(p);
		unlink(path_of(config, ".gen"));
	}
}

static void wait__something_new__ends_at_once(void **state)
{
	struct pullet *p;

	(void)state;
	begin("new");
	publish(1);
	p = opened(0);
	publish(2);
	assert_int_equal(pullet_wait(p, LONG_MS), 1);
	publish(3);
	assert_int_equal(pullet_wait(p, 0), 1);
	publish(4);
	assert_int_equal(pullet_wait(p, -1), 1);
	assert_generation(p, 4);
	assert_in_range(wait_beside(p, publish_later, 5, LONG_MS), 0, LONG_MS - 1);
	assert_in_range(wait_beside(p, publish_later, 6, -1), 0, LONG_MS - 1);
	assert_in_range(wait_beside(p, publish_later, 7, INT_MAX), 0, LONG_MS - 1);
	assert_in_range(wait_beside(p, publish_later, 8, INT_MIN), 0, LONG_MS - 1);
	assert_in_range(wait_beside(p, wake_for_nothing, 9, LONG_MS), 50, LONG_MS - 1);
	pullet_close(p);
}

static void wait__the_config_is_withdrawn__says_so_once_and_waits_for_its_return(void **state)
{
	struct pullet *p;
	pthread_t thread;

	(void)state;
	begin("withdrawn-wait");
	publish(1);
	p = opened(0);
	assert_int_equal(pthread_create(&thread, NULL, withdraw_later, NULL), 0);
	assert_int_equal(pullet_wait(p, LONG_MS), -EIDRM);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(pullet_wait(p, 0), 0); /* to wait for its return is why one calls it now */
	assert_int_equal(pullet_wait(p, 10), 0);
	assert_int_equal(pullet_refresh(p), -EIDRM);
	wait_beside(p, wake_for_nothing, 2, LONG_MS);
	withdraw();
	assert_int_equal(pullet_refresh(p), -EIDRM);
	wait_beside(p, publish_later, 2, LONG_MS); /* the same again; and the refresh has said so */
	pullet_close(p);
}

static void wait__for_the_first__finds_it(void **state)
{
	struct pullet *p;

	(void)state;
	config = "first"; /* neither image nor page */
	p = opened(PULLET_WAIT_FIRST);
	wait_beside(p, first_image_later, 1, LONG_MS);
	wait_beside(p, first_image_later, 2, -1);
	put_page();
	wait_beside(p, publish_later, 3, LONG_MS);
	pullet_close(p);
	begin("first-too"); /* a page that tells of nothing yet */
	p = opened(PULLET_WAIT_FIRST);
	wait_beside(p, publish_later, 1, LONG_MS);
	pullet_close(p);
}

static void on_alarm(int number)
{
	(void)number;
}

/* With a signal every 20 ms. */
static int interrupted_wait(struct pullet *p)
{
	struct itimerval often = {{0, 20000}, {0, 20000}}, never = {{0, 0}, {0, 0}};
	struct sigaction act = {.sa_handler = on_alarm}, old;
	int r;

	assert_int_equal(sigaction(SIGALRM, &act, &old), 0);
	setitimer(ITIMER_REAL, &often, NULL);
	r = pullet_wait(p, LONG_MS);
	setitimer(ITIMER_REAL, &never, NULL);
	sigaction(SIGALRM, &old, NULL);
	return r;
}

static void wait__a_signal_comes__says_so(void **state)
{
	struct pullet *p;

	(void)state;
	begin("signal");
	publish(1);
	p = opened(0);
	assert_int_equal(interrupted_wait(p), -EINTR);
	assert_generation(p, 1);
	pullet_close(p);
	unlink(path_of(config, ".gen"));
	p = opened(0);
	assert_int_equal(interrupted_wait(p), -EINTR);
	assert_generation(p, 1);
	pullet_close(p);
}

static void waits_without_work(struct pullet *p)
{
	unsigned tries = opens;
	int r = pullet_wait(p, 400);

	tries = opens - tries;
	pullet_close(p);
	assert_int_equal(r, 0);
	assert_in_range(tries, 0, 20);
}

/* As when an older snapshot file was put back by hand. */
static void wait__the_page_is_ahead_of_the_image__does_not_spin(void **state)
{
	struct pullet *p;

	(void)state;
	begin("ahead");
	publish(1);
	p = opened(0);
	tell(2);
	waits_without_work(p);
}

/* As when somebody removed the snapshot. */
static void wait__the_page_tells_of_an_image_that_is_gone__does_not_spin(void **state)
{
	(void)state;
	begin("gone");
	tell(2);
	waits_without_work(opened(PULLET_WAIT_FIRST));
}

static void wait__nothing_is_there__does_not_spin(void **state)
{
	(void)state;
	config = "spin";
	waits_without_work(opened(PULLET_WAIT_FIRST));
	begin("spin");
	waits_without_work(opened(PULLET_WAIT_FIRST));
}

/* ---- processes and threads ---- */

/* In the child of a fork: no assertions, no return. */
static void child(struct pullet *p, int told, int tell_back)
{
	char c = 'x';
	int bad = 0;

	bad |= strcmp(pullet_get_string(p, "key1", ""), "1") ? 1 : 0;
	bad |= write(tell_back, &c, 1) != 1 ? 2 : 0;
	bad |= pullet_wait(p, LONG_MS) != 1 ? 4 : 0;
	bad |= pullet_generation(p) != 2 || pullet_get_int(p, "key1", 0) != 2 ? 8 : 0;
	bad |= read(told, &c, 1) != 1 ? 16 : 0; /* the parent has closed its own */
	bad |= pullet_get_int(p, "key19", 0) != 2 ? 32 : 0;
	bad |= pullet_refresh(p) != 1 || pullet_get_int(p, "key19", 0) != 3 ? 64 : 0;
	pullet_close(p);
	_exit(bad);
}

static void fork__the_handle_works_in_both(void **state)
{
	int to_child[2], to_parent[2], status;
	struct pullet *p;
	char c = 'x';
	pid_t pid;

	(void)state;
	begin("fork");
	publish(1);
	p = opened(0);
	assert_int_equal(pipe2(to_child, O_CLOEXEC), 0);
	assert_int_equal(pipe2(to_parent, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		child(p, to_child[0], to_parent[1]);
	assert_int_equal(read(to_parent[0], &c, 1), 1);
	nap(20);
	publish(2);
	assert_int_equal(pullet_refresh(p), 1);
	assert_generation(p, 2);
	nap(20); /* so that the child has it, too */
	pullet_close(p);
	for (int i = 0; i < 2; i++)
		close(to_parent[i]);
	/* the child waits for 2 before it reads; 3 comes after */
	nap(200);
	publish(3);
	assert_int_equal(write(to_child[1], &c, 1), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	for (int i = 0; i < 2; i++)
		close(to_child[i]);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void handles__many_of_one_config__move_on_their_own(void **state)
{
	static struct pullet *handles[500];

	(void)state;
	begin("many");
	publish(1);
	for (size_t i = 0; i < COUNT(handles); i++)
		handles[i] = opened(0);
	publish(2);
	for (size_t i = 0; i < COUNT(handles); i += 2)
		assert_int_equal(pullet_refresh(handles[i]), 1);
	for (size_t i = 0; i < COUNT(handles); i++)
		assert_generation(handles[i], i % 2 ? 1 : 2);
	for (size_t i = 0; i < COUNT(handles); i++)
		pullet_close(handles[i]);
}

#define LAST 3000

static void *read_all(void *arg)
{
	struct pullet *p = NULL;
	uint64_t last = 0, generation;
	intptr_t bad = 0;

	bad += pullet_open(arg, 0, &p) != 0;
	while (!bad && last < LAST) {
		int r = last % 2 ? pullet_refresh(p) : pullet_wait(p, 1000);

		generation = pullet_generation(p);
		bad += r < 0 || generation < last || (r == 1) != (generation > last);
		bad += (uint64_t)pullet_get_int(p, "key0", -1) != generation;
		bad += (uint64_t)pullet_get_int(p, "key19", -1) != generation;
		bad += strtoull(pullet_version(p), NULL, 10) != generation;
		last = generation;
	}
	pullet_close(p);
	return (void *)bad;
}

static void threads__beside_a_publisher__see_whole_versions_in_order(void **state)
{
	static char name[] = "threads";
	pthread_t readers[3];
	void *bad;

	(void)state;
	begin(name);
	publish(2);
	for (size_t i = 0; i < COUNT(readers); i++)
		assert_int_equal(pthread_create(&readers[i], NULL, read_all, name), 0);
	for (uint64_t generation = 3; generation <= LAST; generation++)
		publish(generation);
	for (size_t i = 0; i < COUNT(readers); i++) {
		assert_int_equal(pthread_join(readers[i], &bad), 0);
		assert_null(bad);
	}
}

/* ---- errors ---- */

static void strerror__has_a_sentence_for_each(void **state)
{
	static const int errors[] = {0, ENOENT, EIDRM, EACCES, EBADMSG, EPROTO, EINVAL, ENOMEM,
		EINTR, EIO, 12345, INT_MAX};

	(void)state;
	for (size_t i = 0; i < COUNT(errors); i++) {
		const char *text = pullet_strerror(-errors[i]);

		assert_non_null(text);
		assert_true(strlen(text) > 5);
		assert_string_equal(text, pullet_strerror(errors[i]));
		for (size_t other = 0; other < i && i < 9; other++)
			assert_string_not_equal(text, pullet_strerror(-errors[other]));
	}
	assert_string_equal(pullet_strerror(-EIO), strerror(EIO));
	assert_non_null(pullet_strerror(INT_MIN));
}

/* ---- */

static int make_dir(void **state)
{
	(void)state;
	if (!mkdtemp(dir) || chmod(dir, 0755))
		return 1;
	return setenv("PULLET_RUNTIME_DIR", dir, 1);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static int remove_dir(void **state)
{
	(void)state;
	return nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* The least time that one of three waits for nothing takes. */
static uint64_t measure_wait(struct pullet *p, int timeout_ms)
{
	uint64_t least_ms = UINT64_MAX, ms;

	for (int i = 0; i < 3; i++) {
		ms = boot_ms();
		assert_int_equal(pullet_wait(p, timeout_ms), 0);
		ms = boot_ms() - ms;
		least_ms = ms < least_ms ? ms : least_ms;
	}
	return least_ms;
}

/* How often this thread has waited in a system call. */
static long count_sleeps(void)
{
	struct rusage used;

	getrusage(RUSAGE_THREAD, &used);
	return used.ru_nvcsw;
}

static void wait__with_a_page_or_without__sleeps_and_no_longer_than_asked(void **state)
{
	struct pullet *p;
	long slept;

	(void)state;
	begin("sleeps");
	publish(1);
	p = opened(0);
	slept = count_sleeps();
	assert_int_equal(pullet_wait(p, 400), 0);
	assert_in_range(count_sleeps() - slept, 1, 8);
	assert_in_range(measure_wait(p, 20), 20, 900);
	pullet_close(p);
	unlink(path_of(config, ".gen"));
	p = opened(0);
	assert_in_range(measure_wait(p, 20), 20, 900);
	pullet_close(p);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(open__by_name_and_by_path__is_the_same),
		CASE(open__a_path_of_any_name__looks_at_the_file),
		CASE(open__not_a_name__is_refused),
		CASE(open__unknown_flags__are_refused),
		CASE(open__nothing_published__waits_only_if_asked),
		CASE(open__the_directory_is_not_there_yet__waits_if_asked),
		CASE(open__without_a_runtime_directory_set__is_in_run),
		CASE(open__what_is_no_snapshot__is_refused),
		CASE(open__a_damaged_image__is_refused),
		CASE(open__without_permission__is_refused),
		CASE(open__stat_fails__says_so),
		CASE(open__without_memory__says_so),
		CASE(close__of_null__does_nothing),
		CASE(refresh__follows_the_page),
		CASE(refresh__to_a_damaged_image__keeps_what_is_open),
		CASE(refresh__without_memory_or_stat__keeps_what_is_open),
		CASE(refresh__an_agent_that_lost_its_state__is_followed),
		CASE(refresh__another_image_of_the_same_generation__is_followed),
		CASE(refresh__with_a_page_that_was_removed__goes_over_to_the_next_one),
		CASE(refresh__with_another_page_and_no_image_for_a_moment__looks_again),
		CASE(refresh__of_a_withdrawn_config__says_so_until_it_comes_back),
		CASE(refresh__a_withdrawn_config_that_comes_back_damaged__says_that),
		CASE(open__of_a_withdrawn_config__says_so),
		CASE(refresh__without_a_page__looks_at_the_file),
		CASE(refresh__without_a_page__sees_each_sign_of_another_file),
		CASE(refresh__without_a_page__reads_a_touched_file_once),
		CASE(refresh__an_error_that_may_pass__is_tried_again),
		CASE(refresh__with_a_page_that_is_none__looks_at_the_file),
		CASE(refresh__a_thousand_times__leaves_nothing_behind),
		CASE(open__what_the_agent_verified__is_not_read_again),
		CASE(refresh__to_a_damaged_image_beside_a_verified_one__keeps_what_is_open),
		CASE(open__of_an_image_on_another_device__reads_all_of_it),
		CASE(typed_getters__give_the_value_or_the_fallback),
		CASE(get_double__a_double__is_exact),
		CASE(get_double__a_string_that_is_no_finite_decimal__gives_the_fallback),
		CASE(get_double__in_a_program_with_a_decimal_comma__reads_points),
		CASE(get_int__the_bounds__are_exact),
		CASE(get__compares_only_the_bytes_given),
		CASE(each__visits_a_prefix_in_order_until_told),
		CASE(each__a_bad_record__does_not_hide_those_behind_it),
		CASE(key__in_each_version__is_what_get_gives),
		CASE(key__that_comes_and_goes__is_found_when_it_is_there),
		CASE(key__of_a_version__is_looked_up_once),
		CASE(key__of_a_version_that_stays__stays),
		cmocka_unit_test(get__of_the_golden_values__is_as_in_the_table),
		CASE(age_and_stale__follow_the_page),
		CASE(wait__nothing_new__ends_with_the_time),
		CASE(wait__the_time_passes_between_two_looks__does_not_sleep),
		CASE(wait__something_new__ends_at_once),
		CASE(wait__the_config_is_withdrawn__says_so_once_and_waits_for_its_return),
		CASE(wait__for_the_first__finds_it),
		CASE(wait__a_signal_comes__says_so),
		CASE(wait__the_page_is_ahead_of_the_image__does_not_spin),
		CASE(wait__the_page_tells_of_an_image_that_is_gone__does_not_spin),
		CASE(wait__nothing_is_there__does_not_spin),
		CASE(fork__the_handle_works_in_both),
		CASE(handles__many_of_one_config__move_on_their_own),
		CASE(threads__beside_a_publisher__see_whole_versions_in_order),
		CASE(strerror__has_a_sentence_for_each),
		CASE(wait__with_a_page_or_without__sleeps_and_no_longer_than_asked),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
