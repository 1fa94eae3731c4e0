/*
 * A version on its way. Surprising: it may be made of new parts and of parts of the current
 * version; the result is a new version all the same.
 */
#include "verify/candidate.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "document/diff.h"
#include "document/flatten.h"
#include "mustache/mustache.h"

#define GONE UINT_MAX /* of holders: the body is */

struct candidate *candidate_new(void)
{
	/* pages of its own: a thousand may wait for the disk, and leave no holes in the heap */
	struct candidate *c =
		mmap(NULL, sizeof(*c), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (c == MAP_FAILED)
		return NULL;
	buffer_init(&c->body, CANDIDATE_MAX_BYTES);
	buffer_init(&c->text, CANDIDATE_MAX_TEXT);
	c->expires_ms = INT64_MAX;
	return c;
}

static void drop_texts(struct candidate *c)
{
	buffer_fini(&c->text);
	buffer_init(&c->text, CANDIDATE_MAX_TEXT);
	c->has_text = c->text_as_saved = false;
	free(c->image);
	c->image = NULL;
	c->image_len = 0;
}

static void drop_keys(struct candidate *c)
{
	free(c->keys);
	free(c->key_texts);
	c->keys = NULL;
	c->key_texts = NULL;
	c->key_count = 0;
}

void candidate_drop_outputs(struct candidate *c)
{
	compose_fini(&c->composition);
	drop_texts(c);
	drop_keys(c);
}

struct candidate *candidate_hold(struct candidate *c)
{
	unsigned holders = atomic_load(&c->holders);

	do
		if (holders == GONE)
			return NULL;
	while (!atomic_compare_exchange_weak(&c->holders, &holders, holders + 1));
	return c;
}

void candidate_drop_published(struct candidate *c)
{
	unsigned none = 0;

	drop_texts(c);
	if (!atomic_compare_exchange_strong(&c->holders, &none, GONE))
		return;
	free(c->body.data);
	c->body.data = NULL;
}

void candidate_free(struct candidate *c)
{
	if (!c)
		return;
	if (c->holders && c->holders != GONE) {
		c->holders--;
		return;
	}
	candidate_drop_outputs(c);
	version_fini(&c->version);
	buffer_fini(&c->body);
	free(c->unsigned_why);
	for (size_t i = 0; i < VERSION_MAX_PARTS; i++)
		free(c->mismatches[i]);
	munmap(c, sizeof(*c));
}

/* ---- bytes ---- */

/* The parts' places in the complete body. */
static void find_pieces(struct candidate *c)
{
	size_t at = 0, layer = 0;

	for (size_t i = 0; i < c->version.part_count; i++) {
		struct part *p = &c->version.parts[i];
		bool signature = strcmp(p->type, "minisig") == 0;

		layer += i && !signature;
		c->pieces[i].facts = p;
		c->pieces[i].data = c->body.data ? c->body.data + at : "";
		c->pieces[i].layer = layer;
		c->pieces[i].signature = signature;
		c->pieces[i].mismatch = c->mismatches[i] ? c->mismatches[i] : "";
		at += p->len;
	}
}

/* One part of the run. */
static int take_part(struct candidate *c, const struct pull_part *part, size_t i,
	const struct version *held, const struct buffer *body)
{
	const struct part *facts = &part->facts;
	const char *data = part->body.data;
	size_t at = 0;
	int r;

	if (part->state == PULL_HELD) {
		facts = &held->parts[i];
		for (size_t k = 0; k < i; k++)
			at += held->parts[k].len;
		data = body->data + at;
	}
	r = part_copy(facts, &c->version.parts[i]);
	if (r)
		return r;
	c->version.part_count++;
	if (part->state == PULL_PULLED && part->mismatch) {
		c->mismatches[i] = strdup(part->mismatch); /* the pull frees it with the bytes */
		if (!c->mismatches[i])
			return -ENOMEM;
	}
	return facts->len ? buffer_append(&c->body, data, facts->len) : 0;
}

static bool has_held(const struct pull *g)
{
	for (size_t i = 0; i < pull_count(g); i++)
		if (pull_part(g, i)->state == PULL_HELD)
			return true;
	return false;
}

/* The bytes of the current version. */
static int load_body(struct store *store, const struct version *v, struct buffer *ret_body)
{
	struct version stored;
	int r = store_load_generation(store, v->generation, &stored, ret_body);

	if (r)
		return r;
	r = version_same(v, &stored) ? 0 : -EBADMSG;
	version_fini(&stored);
	return r;
}

int candidate_take(struct candidate *c, const struct pull *g, struct store *store,
	const struct version *held, const struct buffer *body, int64_t wall_ms, char why[FILE_WHY])
{
	size_t count = pull_count(g);
	struct buffer loaded;
	int r = 0;

	buffer_init(&loaded, CANDIDATE_MAX_BYTES);
	snprintf(why, FILE_WHY, "out of memory");
	if (!body && has_held(g)) {
		r = load_body(store, held, &loaded);
		if (r)
			snprintf(why, FILE_WHY,
				"the current version cannot be read from the state directory");
	}
	c->version.pulled_ms = wall_ms;
	c->version.parts = calloc(count, sizeof(*c->version.parts));
	if (!c->version.parts)
		r = -ENOMEM;
	for (size_t i = 0; r == 0 && i < count; i++)
		r = take_part(c, pull_part(g, i), i, held, body ? body : &loaded);
	if (r == 0)
		r = digest_sha256(
			c->body.data ? c->body.data : "", c->body.len, NULL, 0, c->version.sha256);
	buffer_fini(&loaded);
	find_pieces(c);
	return r;
}

int candidate_load(struct candidate *c, struct store *store, uint64_t generation,
	unsigned *ret_damaged, char why[FILE_WHY])
{
	int r;

	*ret_damaged = 0;
	r = generation ? store_load_generation(store, generation, &c->version, &c->body)
		       : store_load(store, &c->version, &c->body, ret_damaged);
	if (r == 0 && c->version.product_len) {
		size_t parts = c->body.len - c->version.product_len;

		r = buffer_append(&c->text, c->body.data + parts, c->version.product_len);
		c->has_text = c->text_as_saved = true;
		c->body.len = parts;
	}
	if (r)
		snprintf(why, FILE_WHY,
			"generation %llu cannot be read from the state directory: %s",
			(unsigned long long)generation, strerror(-r));
	else
		find_pieces(c);
	return r;
}

struct candidate *candidate_copy(const struct candidate *from)
{
	struct candidate *c = candidate_new();
	int r = c ? version_copy(&from->version, &c->version) : -ENOMEM;

	if (r == 0 && from->body.len)
		r = buffer_append(&c->body, from->body.data, from->body.len);
	if (r == 0) {
		find_pieces(c);
		return c;
	}
	candidate_free(c);
	return NULL;
}

int candidate_append_product(struct candidate *c)
{
	int r;

	c->body.len = 0; /* an attempt that failed has appended it, too */
	for (size_t i = 0; i < c->version.part_count; i++)
		c->body.len += c->version.parts[i].len;
	c->version.product_len = c->text.len;
	r = buffer_append(&c->body, c->text.data ? c->text.data : "", c->text.len);
	find_pieces(c); /* it may have moved */
	return r;
}

/* ---- document ---- */

int candidate_compose(struct candidate *c, const struct settings_config *config,
	const struct ledger *ledger, const struct kept_layers *kept, char why[FILE_WHY])
{
	size_t documents = 0;

	/* a stored version may have other layers than those configured now */
	for (size_t i = 0; i < c->version.part_count; i++)
		documents += !c->pieces[i].signature;
	if (documents != config->layer_count) {
		snprintf(why, FILE_WHY, "it is made of %zu layers, and %zu are configured now",
			documents, config->layer_count);
		return -EINVAL;
	}
	return compose_document(
		config, c->pieces, c->version.part_count, ledger, kept, &c->composition, why);
}

/* The pulled bytes, without the signature behind them. */
static int write_verbatim(struct candidate *c)
{
	if (c->version.part_count == 1)
		return 0; /* they are the body */
	c->has_text = true;
	return buffer_append(&c->text, c->pieces[0].data, c->pieces[0].facts->len);
}

/* The first number that JSON cannot write, and the nearest name above it. */
static const struct node *find_unwritable(const struct node *n, const char **name)
{
	const struct node *found = NULL;
	const char *above = *name;

	if (n->key)
		*name = n->key;
	if (n->type == NODE_DOUBLE && !isfinite(n->number))
		return n;
	for (const struct node *child = n->first; child && !found; child = child->next)
		found = find_unwritable(child, name);
	if (!found)
		*name = above;
	return found;
}

static void say_unwritable(const struct node *root, char why[FILE_WHY])
{
	const char *name = "";

	find_unwritable(root, &name);
	snprintf(why, FILE_WHY,
		"cannot be written as json: '%.100s' holds no finite number, and JSON has none "
		"such: quote it, or choose another format",
		name);
}

static int write_as_document(const struct node *root, enum settings_format format,
	struct buffer *text, char why[FILE_WHY])
{
	bool json = format == SETTINGS_FORMAT_JSON;
	int r = document_write(root, json ? DOCUMENT_JSON : DOCUMENT_YAML, text);

	if (r == -EMSGSIZE)
		snprintf(why, FILE_WHY,
			"cannot be written as %s: it would take more than the %zu bytes that are "
			"allowed (4 times max_size of the server): nest its texts less deep, or "
			"split the config",
			json ? "json" : "yaml", text->max);
	else if (r == -EINVAL && json)
		say_unwritable(root, why);
	else if (r)
		snprintf(why, FILE_WHY, "cannot be written as %s: %s", json ? "json" : "yaml",
			strerror(-r));
	return r;
}

static int render_template(const struct mustache *template, const struct node *root,
	struct buffer *out, char why[FILE_WHY])
{
	int r = mustache_render(template, root, out, why);
	size_t len = strlen(why);

	if (r && r != -ENOMEM && r != -EMSGSIZE)
		snprintf(why + len, FILE_WHY - len, " (" SETTINGS_TEMPLATE_READ ")");
	return r;
}

static int make_text(struct candidate *c, const struct settings_config *config, char why[FILE_WHY])
{
	const struct node *root = c->composition.root;
	enum settings_format format = config->format;
	int r = 0;

	if (format == SETTINGS_FORMAT_RUN ||
		(format == SETTINGS_FORMAT_TEMPLATE && c->text_as_saved))
		return 0;
	buffer_clear(&c->text); /* a product of before the settings changed */
	c->has_text = false;
	if (config->dir)
		return 0;
	if (format == SETTINGS_VERBATIM && !c->composition.merged)
		return write_verbatim(c);
	c->text.max = config->max_made;
	if (format == SETTINGS_VERBATIM) /* with an override the bytes are not the document */
		format = c->version.parts[0].type[0] == 'j' ? SETTINGS_FORMAT_JSON
							    : SETTINGS_FORMAT_YAML;
	c->has_text = true;
	if (format == SETTINGS_FORMAT_ENV || format == SETTINGS_FORMAT_PROPERTIES)
		r = flatten_write(root,
			format == SETTINGS_FORMAT_ENV ? FLATTEN_ENV : FLATTEN_PROPERTIES, &c->text,
			why);
	else if (format == SETTINGS_FORMAT_TEMPLATE)
		r = render_template(config->template, root, &c->text, why);
	else
		r = write_as_document(root, format, &c->text, why);
	c->text.max = CANDIDATE_MAX_TEXT; /* a program may make more of it */
	return r;
}

int candidate_outputs(struct candidate *c, const struct settings_config *config,
	const char *version_text, bool snapshot, char why[FILE_WHY])
{
	int r = make_text(c, config, why);

	if (r == 0 && snapshot && c->composition.root)
		r = image_build(c->composition.root, c->version.pulled_ms, version_text,
			config->max_made, &c->image, &c->image_len, why);
	return r;
}

/* Copies the texts of the keys, of which the array exists. 0 or -ENOMEM. */
static int copy_keys(struct candidate *c)
{
	size_t bytes = 0;
	char *to;

	for (size_t i = 0; i < c->key_count; i++)
		bytes += strlen(c->keys[i]) + 1;
	to = c->key_texts = malloc(bytes + 1);
	for (size_t i = 0; to && i < c->key_count; i++) {
		size_t len = strlen(c->keys[i]) + 1;

		c->keys[i] = memcpy(to, c->keys[i], len);
		to += len;
	}
	if (!to)
		drop_keys(c);
	return to ? 0 : -ENOMEM;
}

int candidate_compare(struct candidate *c, const struct node *before)
{
	struct diff *d;
	int r;

	c->all_changed = !before || !c->composition.root;
	if (c->all_changed)
		return 0;
	r = diff_new(before, c->composition.root, &d);
	if (r) { /* the paths are too long in sum */
		c->all_changed = r == -EMSGSIZE;
		return c->all_changed ? 0 : r;
	}
	c->keys = calloc(diff_count(d) + 1, sizeof(*c->keys));
	for (size_t i = 0; c->keys && i < diff_count(d); i++) {
		char *path = (char *)diff_at(d, i)->path; /* copied below */

		/* a list that became a mapping: removed and added at one path */
		if (!c->key_count || strcmp(c->keys[c->key_count - 1], path) != 0)
			c->keys[c->key_count++] = path;
	}
	r = c->keys ? copy_keys(c) : -ENOMEM;
	diff_free(d);
	return r;
}

static const struct compose_piece *find_document(const struct candidate *c, size_t layer)
{
	const struct compose_piece *p = c->pieces;

	while (p->signature || p->layer != layer)
		p++;
	return p;
}

int candidate_compare_files(
	struct candidate *c, const struct candidate *before, const struct settings_config *config)
{
	c->all_changed = !before;
	if (c->all_changed)
		return 0;
	c->keys = calloc(config->layer_count + 1, sizeof(*c->keys));
	if (!c->keys)
		return -ENOMEM;
	for (size_t i = 0; i < config->layer_count; i++) {
		const struct compose_piece *now = find_document(c, i),
					   *then = find_document(before, i);
		size_t len = now->facts->len;

		if (now->facts->absent == then->facts->absent && len == then->facts->len &&
			memcmp(now->data, then->data, len) == 0)
			continue;
		c->keys[c->key_count++] = config->layers[i].as;
	}
	return copy_keys(c);
}

const struct buffer *candidate_text(const struct candidate *c)
{
	return c->has_text ? &c->text : &c->body;
}
