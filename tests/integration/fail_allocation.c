/*
 * Preloaded: lets the n-th allocation of a program fail, or all from the n-th on; counts them.
 *
 * FAIL_AT=N which one (0: none); FAIL_ON=1 all after it; FAIL_ALL=1 those of libraries too, else
 * only what the program's own code asks for; FAIL_REPORT=FILE gets at the end "allocations N left
 * M", where M is what its own code has not freed, and in between a line for each allocation with a
 * number for the calls that led to it. Children of the program are left alone.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST 400000
#define SLOTS (1u << 18)
#define DEPTH 7
#define OWN (is_own(__builtin_return_address(0)))

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void __libc_free(void *p);

static uintptr_t base, text_begin, text_end;
static unsigned fail_at, seen;
static bool fails_on, fails_all, records, begun;
static const char *report;
static pid_t self;
static uint64_t stacks[MOST];
static void *held[SLOTS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local bool inside;

static bool is_own(const void *caller)
{
	return (uintptr_t)caller >= text_begin && (uintptr_t)caller < text_end;
}

static int find_text(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	(void)arg;
	base = info->dlpi_addr;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X) {
			text_begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
			text_end = text_begin + info->dlpi_phdr[i].p_memsz;
		}
	return 1; /* the first is the program */
}

static unsigned read_number(const char *name)
{
	const char *text = getenv(name);

	return text ? (unsigned)strtoul(text, NULL, 10) : 0;
}

__attribute__((constructor)) static void begin(void)
{
	void *frames[DEPTH];

	backtrace(frames, DEPTH); /* loads what it needs */
	dl_iterate_phdr(find_text, NULL);
	fail_at = read_number("FAIL_AT");
	fails_on = read_number("FAIL_ON");
	fails_all = read_number("FAIL_ALL");
	report = getenv("FAIL_REPORT");
	records = report && !fail_at;
	self = getpid();
	unsetenv("LD_PRELOAD");
	begun = true;
}

/* ---- what is held ---- */

static size_t slot_of(const void *p)
{
	return (size_t)(((uintptr_t)p >> 4) * 0x9e3779b97f4a7c15u >> 40) % SLOTS;
}

static void *hold(void *p, bool own)
{
	size_t i = slot_of(p);

	if (!p || !own || !begun)
		return p;
	pthread_mutex_lock(&lock);
	while (held[i] && held[i] != (void *)-1)
		i = (i + 1) % SLOTS;
	held[i] = p;
	pthread_mutex_unlock(&lock);
	return p;
}

/* True when it was held. */
static bool drop(void *p)
{
	bool found = false;

	if (!p || !begun)
		return false;
	pthread_mutex_lock(&lock);
	for (size_t i = slot_of(p); held[i] && !found; i = (i + 1) % SLOTS)
		if (held[i] == p) {
			held[i] = (void *)-1;
			found = true;
		}
	pthread_mutex_unlock(&lock);
	return found;
}

__attribute__((destructor)) static void end(void)
{
	size_t left = 0;
	FILE *f;

	if (!report || getpid() != self)
		return;
	begun = false;
	for (size_t i = 0; i < SLOTS; i++)
		left += held[i] && held[i] != (void *)-1;
	f = fopen(report, "w");
	if (!f)
		return;
	for (unsigned i = 0; records && i < seen && i < MOST; i++)
		fprintf(f, "%016llx\n", (unsigned long long)stacks[i]);
	fprintf(f, "allocations %u left %zu\n", seen, left);
	fclose(f);
}

/* ---- what fails ---- */

static void record(unsigned n)
{
	void *frames[DEPTH];
	uint64_t hash = 14695981039346656037u;
	int count;

	inside = true;
	count = backtrace(frames, DEPTH);
	inside = false;
	for (int i = 2; i < count; i++)
		hash = (hash ^ ((uintptr_t)frames[i] - text_begin)) * 1099511628211u;
	if (n < MOST)
		stacks[n] = hash;
}

/* Into FAIL_REPORT.at: the calls that led to what fails, as addresses in the program. */
static void tell_place(void)
{
	void *frames[2 * DEPTH];
	char path[4096];
	int count, fd;

	if (!report)
		return;
	inside = true;
	count = backtrace(frames, 2 * DEPTH);
	snprintf(path, sizeof(path), "%s.at", report);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	for (int i = 2; i < count; i++)
		if (is_own(frames[i]))
			dprintf(fd, "%#zx\n", (uintptr_t)frames[i] - base - 1);
	close(fd);
	inside = false;
}

static bool fails(bool own)
{
	unsigned n;

	if (!begun || inside || !(own || fails_all) || getpid() != self)
		return false;
	n = __atomic_fetch_add(&seen, 1, __ATOMIC_RELAXED);
	if (records)
		record(n);
	if (!fail_at || n + 1 < fail_at || (n + 1 > fail_at && !fails_on))
		return false;
	if (n + 1 == fail_at)
		tell_place();
	errno = ENOMEM;
	return true;
}

void *malloc(size_t size)
{
	bool own = OWN;

	return fails(own) ? NULL : hold(__libc_malloc(size), own);
}

void *calloc(size_t n, size_t size)
{
	bool own = OWN;

	return fails(own) ? NULL : hold(__libc_calloc(n, size), own);
}

void *realloc(void *p, size_t size)
{
	bool own = OWN, was;
	void *q;

	if (fails(own))
		return NULL;
	was = drop(p);
	q = __libc_realloc(p, size);
	hold(q ? q : p, own || was);
	return q;
}

void *reallocarray(void *p, size_t n, size_t size)
{
	bool own = OWN, was;
	size_t bytes;
	void *q;

	if (__builtin_mul_overflow(n, size, &bytes) || fails(own)) {
		errno = ENOMEM;
		return NULL;
	}
	was = drop(p);
	q = __libc_realloc(p, bytes);
	hold(q ? q : p, own || was);
	return q;
}

void free(void *p)
{
	drop(p);
	__libc_free(p);
}

char *strdup(const char *s)
{
	bool own = OWN;
	size_t size = strlen(s) + 1;
	char *copy = fails(own) ? NULL : hold(__libc_malloc(size), own);

	return copy ? memcpy(copy, s, size) : NULL;
}

char *strndup(const char *s, size_t most)
{
	bool own = OWN;
	size_t len = strnlen(s, most);
	char *copy = fails(own) ? NULL : hold(__libc_malloc(len + 1), own);

	if (copy) {
		memcpy(copy, s, len);
		copy[len] = '\0';
	}
	return copy;
}

static int print_own(bool own, char **ret_text, const char *format, va_list list)
{
	va_list again;
	int len;

	if (fails(own)) {
		*ret_text = NULL;
		return -1;
	}
	va_copy(again, list);
	len = vsnprintf(NULL, 0, format, again);
	va_end(again);
	*ret_text = len < 0 ? NULL : hold(__libc_malloc((size_t)len + 1), own);
	return *ret_text ? vsnprintf(*ret_text, (size_t)len + 1, format, list) : -1;
}

int __vasprintf_chk(char **ret_text, int flag, const char *format, va_list list)
{
	(void)flag;
	return print_own(OWN, ret_text, format, list);
}

int asprintf(char **ret_text, const char *format, ...)
{
	bool own = OWN;
	va_list list;
	int len;

	va_start(list, format);
	len = print_own(own, ret_text, format, list);
	va_end(list);
	return len;
}

/* As asprintf() where the sources are fortified. */
int __asprintf_chk(char **ret_text, int flag, const char *format, ...)
{
	bool own = OWN;
	va_list list;
	int len;

	(void)flag;
	va_start(list, format);
	len = print_own(own, ret_text, format, list);
	va_end(list);
	return len;
}
