/* Topics and their last numbers, sorted by name. */
#include "push/numbers.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sorted.h"

struct numbered_topic {
	char *name;
	uint64_t seq;
};

static void begin_epoch(struct push_numbers *n)
{
	snprintf(n->epoch, sizeof(n->epoch), "%016" PRIx64, n->sys->random());
	for (size_t i = 0; i < n->count; i++)
		free(n->topics[i].name);
	n->count = 0;
}

void push_numbers_init(struct push_numbers *n, const struct sys *sys)
{
	*n = (struct push_numbers){.sys = sys};
	begin_epoch(n);
}

void push_numbers_fini(struct push_numbers *n)
{
	for (size_t i = 0; i < n->count; i++)
		free(n->topics[i].name);
	free(n->topics);
	*n = (struct push_numbers){.sys = n->sys};
}

static const char *numbered_name_at(const void *topics, size_t i)
{
	return ((const struct numbered_topic *)topics)[i].name;
}

static int insert_numbered(struct push_numbers *n, size_t at, const char *name)
{
	char *copy = strdup(name);
	bool full = (n->count & (n->count - 1)) == 0; /* room for the next power of two, or none */
	struct numbered_topic *more = n->topics;

	if (full)
		more = realloc(n->topics, (n->count ? 2 * n->count : 1) * sizeof(*more));
	if (more)
		n->topics = more;
	if (!copy || !more) {
		free(copy);
		return -ENOMEM;
	}
	memmove(&more[at + 1], &more[at], (n->count - at) * sizeof(*more));
	more[at] = (struct numbered_topic){.name = copy};
	n->count++;
	return 0;
}

void push_numbers_set_epoch(const struct push_numbers *n, struct push_message *m)
{
	memcpy(m->epoch, n->epoch, sizeof(n->epoch));
}

int push_numbers_set_next(struct push_numbers *n, const char *topic, struct push_message *m)
{
	size_t i;

	if (!sorted_find(n->topics, n->count, numbered_name_at, topic, &i)) {
		if (n->count == PUSH_MAX_NUMBERED) {
			begin_epoch(n);
			i = 0;
		}
		if (insert_numbered(n, i, topic))
			return -ENOMEM;
	}
	push_numbers_set_epoch(n, m);
	m->has_seq = true;
	m->seq = ++n->topics[i].seq;
	return 0;
}
