/*
 * Sizes, counted by a walk over the tree. Surprising: the path is never put together; its length is
 * that of the parent's path, a dot, and the key with its escapes.
 */
#include "document/extent.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "lib/snapshot.h"

static uint64_t count_digits(size_t number)
{
	uint64_t n = 1;

	for (; number > 9; number /= 10)
		n++;
	return n;
}

static uint64_t segment_bytes(const struct node *child, size_t number)
{
	uint64_t bytes = child->key_len;

	if (!child->key)
		return count_digits(number);
	for (size_t i = 0; i < child->key_len; i++)
		bytes += child->key[i] == '.' || child->key[i] == '\\';
	return bytes;
}

/* As deep as a document may be. path: bytes of the parent's path and its dot. */
static void measure_children(const struct node *parent, uint64_t path, struct extent *e)
{
	size_t number = 0;

	for (const struct node *n = parent->first; n; n = n->next, number++) {
		uint64_t own = path + segment_bytes(n, number);
		bool leaf = n->type < NODE_LIST;

		e->values++;
		e->paths += own + 1;
		e->leaf_paths += leaf ? own + 1 : 0;
		e->image_bytes +=
			snapshot_record_size(own, leaf && n->type != NODE_NULL ? n->text_len : 0);
		if (!leaf)
			measure_children(n, own + 1, e);
	}
}

void extent_measure(const struct node *root, struct extent *ret_extent)
{
	*ret_extent = (struct extent){.values = 0};
	if (root->type >= NODE_LIST)
		measure_children(root, 0, ret_extent);
	ret_extent->image_bytes += snapshot_frame_size(ret_extent->values);
}

int extent_check(const char *what, uint64_t bytes, uint64_t max_bytes, char why[FILE_WHY])
{
	if (bytes <= max_bytes)
		return 0;
	snprintf(why, FILE_WHY,
		"%s would take %" PRIu64 " bytes, and %" PRIu64
		" are allowed (4 times max_size of the server): shorten the keys above many "
		"values, "
		"nest less, or split the config",
		what, bytes, max_bytes);
	return -EMSGSIZE;
}
