/*
 * Fuzz target: how large a document becomes. What is counted must be what is there when each path
 * is put together, as the image and the text files do it.
 */

#include "document/extent.h"
#include "document/key_path.h"
#include "lib/snapshot.h"
#include "tests/fuzz/demand.h"

static void put_together(
	struct buffer *path, const struct node *parent, bool first, struct extent *e)
{
	size_t len = path->len, number = 0;

	for (const struct node *n = parent->first; n; n = n->next) {
		bool leaf = n->type < NODE_LIST;

		demand(key_path_append(path, first, n, number++) == 0);
		e->values++;
		e->paths += path->len + 1;
		e->leaf_paths += leaf ? path->len + 1 : 0;
		e->image_bytes += snapshot_record_size(
			path->len, leaf && n->type != NODE_NULL ? n->text_len : 0);
		if (!leaf)
			put_together(path, n, false, e);
		path->len = len;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum document_type type = size && data[0] == '{' ? DOCUMENT_JSON : DOCUMENT_YAML;
	struct extent counted, made = {.values = 0};
	struct document *d = NULL;
	struct document_error e;
	char why[FILE_WHY] = "";
	struct buffer path;

	if (size > 4096 || document_parse(type, (const char *)data, size, 0, &d, &e))
		return 0;
	extent_measure(document_root(d), &counted);
	buffer_init(&path, 1u << 20);
	put_together(&path, document_root(d), true, &made);
	made.image_bytes += snapshot_frame_size(made.values);
	demand(counted.values == made.values && counted.paths == made.paths &&
		counted.leaf_paths == made.leaf_paths && counted.image_bytes == made.image_bytes);
	demand(extent_check("it", counted.image_bytes, counted.image_bytes, why) == 0 && !why[0]);
	demand(extent_check("it", counted.image_bytes, counted.image_bytes - 1, why) && why[0]);
	buffer_fini(&path);
	document_free(d);
	return 0;
}
