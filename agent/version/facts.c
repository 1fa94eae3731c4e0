/*
 * The first part's members stand beside the version's, as they did when there was only one.
 */
#include "version/facts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "document/document.h"
#include "text/json_writer.h"

static void append_part_facts(const struct part *p, struct buffer *out)
{
	json_writer_text(out, "etag", p->etag);
	json_writer_text(out, "last_modified", p->last_modified);
	json_writer_text(out, "type", p->type);
	json_writer_text(out, "url", p->url);
	json_writer_number(out, "len", p->len);
	if (p->absent)
		json_writer_boolean(out, "absent", true);
	if (p->epoch)
		json_writer_text(out, "epoch", p->epoch);
}

void facts_append(const struct version *v, struct buffer *out)
{
	json_writer_begin_object(out, NULL);
	json_writer_number(out, "generation", v->generation);
	json_writer_number(out, "pulled_ms", (unsigned long long)v->pulled_ms);
	json_writer_text(out, "sha256", v->sha256);
	json_writer_text(out, "origin", version_origin(v));
	if (v->published_ms)
		json_writer_number(out, "published_ms", (unsigned long long)v->published_ms);
	if (v->cause)
		json_writer_text(out, "cause", version_cause_name((enum version_cause)v->cause));
	if (v->by)
		json_writer_text(out, "by", v->by);
	if (v->product_len)
		json_writer_number(out, "product", v->product_len);
	if (v->settings[0])
		json_writer_text(out, "settings", v->settings);
	append_part_facts(&v->parts[0], out);
	if (v->part_count > 1) {
		json_writer_begin_array(out, "more");
		for (size_t i = 1; i < v->part_count; i++) {
			json_writer_begin_object(out, NULL);
			append_part_facts(&v->parts[i], out);
			json_writer_end_object(out);
		}
		json_writer_end_array(out);
	}
	json_writer_member(out, "decisions");
	buffer_append_string(out, v->decisions && v->decisions[0] ? v->decisions : "{}");
	json_writer_end_object(out);
	buffer_append(out, "\n", 1);
}

static const char *stored_text(const struct node *map, const char *name)
{
	const struct node *n = node_find(map, name);

	return n && n->type == NODE_STRING ? n->text : NULL;
}

/* 0, -EBADMSG or -ENOMEM, as all that reads facts. */
static int parse_part(const struct node *map, struct part *ret)
{
	const char *url = stored_text(map, "url"), *etag = stored_text(map, "etag");
	const char *last_modified = stored_text(map, "last_modified"),
		   *type = stored_text(map, "type");
	const struct node *len = node_find(map, "len"), *absent = node_find(map, "absent");

	if (!url || !etag || !last_modified || !type || strlen(type) >= sizeof(ret->type))
		return -EBADMSG;
	if (part_init(ret, url, etag, last_modified, type))
		return -ENOMEM;
	if (part_set_epoch(ret, stored_text(map, "epoch"))) {
		part_fini(ret);
		return -ENOMEM;
	}
	ret->len = len && len->type == NODE_INT ? (size_t)len->integer : SIZE_MAX;
	ret->absent = absent && absent->type == NODE_BOOL && absent->boolean;
	return 0;
}

static int parse_parts(const struct node *root, struct version *ret)
{
	const struct node *more = node_find(root, "more"), *n;
	size_t count = 1 + (more && more->type == NODE_LIST ? more->count : 0);
	int r;

	if (count > VERSION_MAX_PARTS)
		return -EBADMSG;
	ret->parts = calloc(count, sizeof(*ret->parts));
	r = ret->parts ? parse_part(root, &ret->parts[0]) : -ENOMEM;
	if (r)
		return r;
	ret->part_count = 1;
	for (n = count > 1 ? more->first : NULL; n; n = n->next) {
		r = n->type == NODE_MAP ? parse_part(n, &ret->parts[ret->part_count]) : -EBADMSG;
		if (r)
			return r;
		ret->part_count++;
	}
	return 0;
}

/* Older state files have none. */
static int parse_decisions(const struct node *root, struct version *ret)
{
	const struct node *n = node_find(root, "decisions");
	struct buffer text;
	int r;

	if (!n)
		return 0;
	if (n->type != NODE_MAP)
		return -EBADMSG;
	buffer_init(&text, FACTS_LARGEST);
	r = n->count ? document_write(n, DOCUMENT_JSON, &text) : 0;
	if (r == 0) {
		ret->decisions = strdup(text.len ? text.data : "");
		r = ret->decisions ? 0 : -ENOMEM;
	}
	buffer_fini(&text);
	for (char *p = r ? NULL : ret->decisions; p && *p; p++)
		if (*p == '\n') /* facts are one line */
			*p = ' ';
	return r == 0 || r == -ENOMEM ? r : -EBADMSG;
}

/* A number of at least 0; 0 where there is none, or another one. */
static int64_t stored_number(const struct node *map, const char *name)
{
	const struct node *n = node_find(map, name);

	return n && n->type == NODE_INT && n->integer > 0 ? n->integer : 0;
}

/* Texts that older state files do not have are empty. */
static int parse_texts(const struct node *root, struct version *ret)
{
	const char *origin = stored_text(root, "origin"), *settings = stored_text(root, "settings");

	if (origin && strcmp(origin, VERSION_PULLED) != 0 && !(ret->origin = strdup(origin)))
		return -ENOMEM;
	if (settings && strlen(settings) < sizeof(ret->settings))
		memcpy(ret->settings, settings, strlen(settings) + 1);
	return version_set_cause(
		ret, version_parse_cause(stored_text(root, "cause")), stored_text(root, "by"));
}

int facts_parse(const char *line, size_t len, struct version *ret)
{
	struct document *d = NULL;
	struct document_error e;
	const struct node *generation, *product, *root;
	const char *sha256;
	int r = document_parse(DOCUMENT_JSON, line, len, 0, &d, &e);

	if (r)
		return r == -ENOMEM ? r : -EBADMSG;
	root = document_root(d);
	generation = node_find(root, "generation");
	product = node_find(root, "product");
	sha256 = stored_text(root, "sha256");
	*ret = (struct version){.generation = 0};
	if (!generation || generation->type != NODE_INT || !sha256 ||
		strlen(sha256) >= sizeof(ret->sha256))
		r = -EBADMSG;
	if (r == 0)
		r = parse_parts(root, ret);
	if (r == 0)
		r = parse_decisions(root, ret);
	if (r == 0)
		r = parse_texts(root, ret);
	if (r == 0) {
		ret->generation = (uint64_t)generation->integer;
		ret->pulled_ms = stored_number(root, "pulled_ms");
		ret->published_ms = stored_number(root, "published_ms");
		ret->product_len =
			product && product->type == NODE_INT ? (size_t)product->integer : 0;
		memcpy(ret->sha256, sha256, strlen(sha256) + 1);
	} else {
		version_fini(ret);
	}
	document_free(d);
	return r;
}
