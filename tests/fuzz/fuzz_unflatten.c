/*
 * Fuzz target: a set of names to a tree. The first byte chooses the form, each line behind it is a
 * name; its value is the line's number.
 *
 * What is checked: the document is one that the agent reads; joining the keys on the way to each
 * value gives the name that this value was added with; as many values as names, in the order of
 * their keys; and the same bytes when the names come the other way round.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "document/document.h"
#include "document/unflatten.h"
#include "tests/fuzz/demand.h"

#define MAX_NAMES 200

struct names {
	enum unflatten_form form;
	size_t count;
	struct {
		const char *text;
		size_t len;
		int added; /* what unflatten_add() said */
	} list[MAX_NAMES];
};

static void add(struct unflatten *n, struct names *names, size_t i, int again)
{
	char number[24];
	int r;

	snprintf(number, sizeof(number), "%zu", i);
	r = unflatten_add(n, names->list[i].text, names->list[i].len, number, strlen(number));
	demand(r == 0 || r == -EEXIST || r == -EINVAL || r == -EILSEQ || r == -EMSGSIZE);
	demand(!again || r == names->list[i].added);
	names->list[i].added = r;
}

/* Is the name as it was added this path? In paths, empty segments do not count. */
static int spells(const struct names *names, size_t i, const struct buffer *path)
{
	const char *text = names->list[i].text;
	size_t len = names->list[i].len, n = 0;

	for (size_t k = 0; k < len; k++) {
		if (names->form == UNFLATTEN_PATHS && text[k] == '/' &&
			(n == 0 || k + 1 == len || text[k + 1] == '/'))
			continue;
		if (n == path->len || path->data[n++] != text[k])
			return 0;
	}
	return n == path->len;
}

static size_t check_below(const struct names *names, const struct node *parent, struct buffer *path)
{
	size_t count = 0, number = 0, len = path->len;

	for (const struct node *n = parent->first; n; n = n->next, number++) {
		if (!n->key)
			buffer_printf(path, "[%zu]", number);
		else if (parent->column != 1) /* not the root */
			buffer_append_string(path, names->form == UNFLATTEN_PATHS ? "/" : ".");
		if (n->key)
			buffer_append(path, n->key, n->key_len);
		demand(!path->error);
		demand(!n->key || !n->next || strcmp(n->key, n->next->key) < 0);
		if (n->type == NODE_INT) {
			demand(n->integer >= 0 && (size_t)n->integer < names->count);
			demand(names->list[n->integer].added == 0);
			demand(spells(names, (size_t)n->integer, path));
			count++;
		} else {
			demand(n->type == NODE_MAP || n->type == NODE_LIST);
			demand(n->count > 0);
			count += check_below(names, n, path);
		}
		path->len = len;
	}
	return count;
}

static void check(
	const struct names *names, const struct unflatten *n, const struct buffer *written)
{
	struct document *d = NULL;
	struct document_error e;
	struct node root;
	struct buffer path;

	demand(document_parse(DOCUMENT_JSON, written->data, written->len, 0, &d, &e) == 0);
	buffer_init(&path, 2 * UNFLATTEN_MAX_NAME);
	root = *document_root(d);
	root.column = 1;
	demand(check_below(names, &root, &path) == unflatten_count(n));
	buffer_fini(&path);
	document_free(d);
}

/* The names that were added, from the last to the first. */
static void check_backwards(struct names *names, const struct buffer *written)
{
	struct unflatten *n = unflatten_new(names->form, 1u << 20);
	struct buffer again;

	demand(n != NULL);
	for (size_t i = names->count; i-- > 0;)
		if (names->list[i].added == 0)
			add(n, names, i, 1);
	buffer_init(&again, 1u << 24);
	demand(unflatten_write(n, &again) == 0);
	demand(again.len == written->len && !memcmp(again.data, written->data, again.len));
	buffer_fini(&again);
	unflatten_free(n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data, *end = text + size;
	struct names names = {
		.form = size && *text == 'p' ? UNFLATTEN_PATHS : UNFLATTEN_PROPERTIES};
	struct unflatten *n = unflatten_new(names.form, 1u << 20);
	struct buffer written;
	size_t added = 0;

	demand(n != NULL);
	for (text += size > 0; text < end && names.count < MAX_NAMES; names.count++) {
		const char *stop = memchr(text, '\n', (size_t)(end - text));

		stop = stop ? stop : end;
		names.list[names.count].text = text;
		names.list[names.count].len = (size_t)(stop - text);
		add(n, &names, names.count, 0);
		added += names.list[names.count].added == 0;
		text = stop + 1;
	}
	demand(unflatten_count(n) == added);
	buffer_init(&written, 1u << 24);
	demand(unflatten_write(n, &written) == 0);
	check(&names, n, &written);
	check_backwards(&names, &written);
	buffer_fini(&written);
	unflatten_free(n);
	return 0;
}
