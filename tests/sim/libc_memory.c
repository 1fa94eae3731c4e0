/* The agent's memory: each allocation is in one table, by its address. Surprising: what a library
 * allocates is not, but jansson's, whose values the product frees by itself. */
#include "libc_seam.h"

#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "disk_tree.h"
#include "libc.h"

struct allocation {
	void *at; /* NULL = free */
	const void *where;
	struct disk *disk;
	enum disk_owner owner;
	size_t size;
	uint64_t number;
};

static struct {
	struct allocation *slots;
	size_t room, used; /* room: a power of two */
	uint64_t count;    /* of all times */
} table;

/* ---- the table: linear probing, without tombstones ---- */

static size_t home_of(const void *at)
{
	uint64_t n = (uint64_t)(uintptr_t)at >> 4;

	return (size_t)((n * UINT64_C(0x9e3779b97f4a7c15)) >> 20) & (table.room - 1);
}

static struct allocation *find_allocation(const void *at)
{
	if (table.used == 0)
		return NULL;
	for (size_t i = home_of(at); table.slots[i].at; i = (i + 1) & (table.room - 1))
		if (table.slots[i].at == at)
			return &table.slots[i];
	return NULL;
}

static void insert_allocation(struct allocation a)
{
	size_t i = home_of(a.at);

	while (table.slots[i].at && table.slots[i].at != a.at)
		i = (i + 1) & (table.room - 1);
	table.used += !table.slots[i].at; /* else a library freed it */
	table.slots[i] = a;
}

static void grow_allocations(void)
{
	struct allocation *old = table.slots;
	size_t count = table.room;

	table.room = count ? 2 * count : 4096;
	table.slots = disk_alloc(table.room * sizeof(*old));
	memset(table.slots, 0, table.room * sizeof(*old));
	table.used = 0;
	for (size_t i = 0; i < count; i++)
		if (old[i].at)
			insert_allocation(old[i]);
	disk_release(old);
}

static void remove_allocation(struct allocation *a)
{
	size_t hole = (size_t)(a - table.slots), mask = table.room - 1;

	table.used--;
	for (size_t i = (hole + 1) & mask; table.slots[i].at; i = (i + 1) & mask) {
		size_t home = home_of(table.slots[i].at);

		if (((i - home) & mask) < ((i - hole) & mask))
			continue; /* it is between its home and the hole's other side */
		table.slots[hole] = table.slots[i];
		hole = i;
	}
	table.slots[hole].at = NULL;
}

static void *note_allocation(void *at, size_t size, const void *where)
{
	if (!at || !seam_is_agent())
		return at;
	if (2 * (table.used + 1) > table.room)
		grow_allocations();
	insert_allocation(
		(struct allocation){at, where, disk_in_use(), disk_owner, size, table.count++});
	return at;
}

static bool may_allocate(void)
{
	if (!seam_is_agent() || world_has_memory())
		return true;
	errno = ENOMEM;
	return false;
}

/* ---- libc's names ---- */

#define CALLER __builtin_return_address(0)

void *__wrap_malloc(size_t size)
{
	return may_allocate() ? note_allocation(__real_malloc(size), size, CALLER) : NULL;
}

void *__wrap_calloc(size_t count, size_t size)
{
	return may_allocate() ? note_allocation(__real_calloc(count, size), count * size, CALLER)
			      : NULL;
}

void __wrap_free(void *at)
{
	struct allocation *a = at ? find_allocation(at) : NULL;

	if (a)
		remove_allocation(a);
	__real_free(at);
}

static void *resize(void *old, size_t size, const void *where)
{
	struct allocation *a;
	void *at;

	if (!may_allocate())
		return NULL;
	at = __real_realloc(old, size);
	if (!at)
		return NULL;
	a = old ? find_allocation(old) : NULL;
	if (a)
		remove_allocation(a);
	return a || !old ? note_allocation(at, size, where) : at;
}

void *__wrap_realloc(void *old, size_t size)
{
	return resize(old, size, CALLER);
}

void *__wrap_reallocarray(void *old, size_t count, size_t size)
{
	if (size && count > SIZE_MAX / size) {
		errno = ENOMEM;
		return NULL;
	}
	return resize(old, count * size, CALLER);
}

char *__wrap_strdup(const char *text)
{
	size_t len = strlen(text) + 1;
	char *copy = may_allocate() ? note_allocation(__real_malloc(len), len, CALLER) : NULL;

	return copy ? memcpy(copy, text, len) : NULL;
}

char *__wrap_strndup(const char *text, size_t most)
{
	size_t len = strnlen(text, most);
	char *copy =
		may_allocate() ? note_allocation(__real_malloc(len + 1), len + 1, CALLER) : NULL;

	if (!copy)
		return NULL;
	memcpy(copy, text, len);
	copy[len] = '\0';
	return copy;
}

static __attribute__((format(printf, 2, 0))) int print_new(
	char **ret, const char *format, va_list args, const void *where)
{
	int len;

	if (!may_allocate())
		return -1;
	len = __real_vasprintf(ret, format, args);
	if (len >= 0)
		note_allocation(*ret, (size_t)len + 1, where);
	return len;
}

int __wrap_vasprintf(char **ret, const char *format, va_list args)
{
	return print_new(ret, format, args, CALLER);
}

int __wrap___vasprintf_chk(char **ret, int flag, const char *format, va_list args)
{
	(void)flag;
	return print_new(ret, format, args, CALLER);
}

int __wrap_asprintf(char **ret, const char *format, ...)
{
	va_list args;
	int len;

	va_start(args, format);
	len = print_new(ret, format, args, CALLER);
	va_end(args);
	return len;
}

int __wrap___asprintf_chk(char **ret, int flag, const char *format, ...)
{
	va_list args;
	int len;

	(void)flag;
	va_start(args, format);
	len = print_new(ret, format, args, CALLER);
	va_end(args);
	return len;
}

/* ---- what is left ---- */

void libc_init(void)
{
	json_set_alloc_funcs(__wrap_malloc, __wrap_free);
}

static bool is_of(const struct allocation *a, enum disk_owner owner)
{
	return a->at && a->owner == owner && a->disk == disk_in_use();
}

size_t libc_allocations(enum disk_owner owner)
{
	size_t n = 0;

	for (size_t i = 0; table.used && i < table.room; i++)
		n += is_of(&table.slots[i], owner);
	return n;
}

/* The allocation of that owner with the lowest number of at least `least`, or NULL. */
static const struct allocation *find_next(enum disk_owner owner, uint64_t least)
{
	const struct allocation *first = NULL;

	for (size_t i = 0; table.used && i < table.room; i++) {
		const struct allocation *a = &table.slots[i];

		if (is_of(a, owner) && a->number >= least && (!first || a->number < first->number))
			first = a;
	}
	return first;
}

void libc_trace_allocations(enum disk_owner owner)
{
	extern const char __executable_start;
	const struct allocation *a = find_next(owner, 0);

	for (int i = 0; a && i < 10; i++, a = find_next(owner, a->number + 1))
		world_trace("not freed: %zu bytes of +0x%zx", a->size,
			(size_t)((const char *)a->where - &__executable_start));
}

void libc_forget(enum disk_owner owner)
{
	for (size_t i = 0; table.used && i < table.room; i++)
		while (is_of(&table.slots[i], owner)) {
			__real_free(table.slots[i].at);
			remove_allocation(&table.slots[i]); /* another one may come here */
		}
}
