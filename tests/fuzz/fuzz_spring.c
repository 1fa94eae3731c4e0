/*
 * Fuzz target: answers of Spring Cloud Config. The first byte chooses the status, the rest is the
 * body.
 *
 * What is checked: a verdict comes with all that belongs to it; the document is one that the agent
 * reads, and it holds just the values of those properties whose name (up to the number of an item)
 * no stronger source has, as a naive reading finds them; the same answer again is the same.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "crypto/digest.h"
#include "document/document.h"
#include "base/hash.h"
#include "pull/kinds/kind.h"

#define MAX_PROPERTIES 300 /* that are compared with each other */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(int condition)
{
	if (!condition)
		abort();
}

/* ---- a naive reading ---- */

/* Values, in whatever order. */
struct values {
	size_t count;
	uint64_t sum;
	int nested; /* some is a list or a mapping itself */
};

static void count_value(struct values *v, const struct node *n)
{
	uint64_t type = (uint64_t)n->type;

	v->count++;
	if (n->type == NODE_LIST || n->type == NODE_MAP)
		v->nested = 1;
	else
		v->sum += hash_bytes(
			hash_bytes(HASH_START, &type, sizeof(type)), n->text, n->text_len);
}

static void count_below(struct values *v, const struct node *parent)
{
	for (const struct node *n = parent->first; n; n = n->next)
		if (n->type == NODE_LIST || n->type == NODE_MAP)
			count_below(v, n);
		else
			count_value(v, n);
}

static size_t root_of(const char *name)
{
	const char *bracket = name[0] ? name + 1 : name;

	while ((bracket = strchr(bracket, '['))) {
		size_t digits = strspn(bracket + 1, "0123456789");

		if (digits && bracket[1 + digits] == ']')
			return (size_t)(bracket - name);
		bracket++;
	}
	return strlen(name);
}

static int is_owned_before(const struct node *first, const struct node *source, const char *name)
{
	size_t root = root_of(name);

	for (const struct node *s = first; s != source; s = s->next)
		for (const struct node *n = node_find(s, "source")->first; n; n = n->next)
			if (root_of(n->key) == root && strncmp(n->key, name, root) == 0)
				return 1;
	return 0;
}

/* What the document must hold; false: too much to be compared, or renamed by a server that could
 * not decrypt it. */
static int expect(const struct document *d, struct values *ret)
{
	const struct node *first = node_find(document_root(d), "propertySources")->first;
	size_t count = 0;

	for (const struct node *s = first; s; s = s->next)
		for (const struct node *n = node_find(s, "source")->first; n; n = n->next) {
			if (++count > MAX_PROPERTIES || strncmp(n->key, "invalid.", 8) == 0)
				return 0;
			if (is_owned_before(first, s, n->key))
				continue;
			demand(n->type != NODE_STRING || strncmp(n->text, "{cipher}", 8) != 0);
			count_value(ret, n);
		}
	return !ret->nested;
}

/* ---- what is demanded ---- */

static void check_sentence(const char *why)
{
	demand(why[0] && memchr(why, '\0', FILE_WHY));
}

static void check_document(const struct http_client_response *r, const struct kind_answer *a)
{
	struct values expected = {0}, found = {0};
	struct document *asked, *got;
	struct document_error e;
	char hash[DIGEST_HEX];

	demand(a->type == SETTINGS_TYPE_JSON && a->version[0] && !a->mismatch[0]);
	for (const char *c = a->version; *c; c++)
		demand(*c > ' ' && *c <= '~');
	demand(digest_sha256(a->body.data, a->body.len, NULL, 0, hash) == 0);
	demand(strcmp(hash, a->epoch) == 0);
	demand(document_parse(DOCUMENT_JSON, r->body.data, r->body.len, 0, &asked, &e) == 0);
	/* names may be nested too deeply together with their values */
	if (document_parse(DOCUMENT_JSON, a->body.data, a->body.len, 0, &got, &e) == 0) {
		count_below(&found, document_root(got));
		if (expect(asked, &expected))
			demand(expected.count == found.count && expected.sum == found.sum);
		document_free(got);
	} else {
		demand(strstr(e.message, "64 levels") != NULL);
	}
	document_free(asked);
}

static void check_again(
	struct kind_place place, const struct http_client_response *r, struct kind_answer *first)
{
	struct part held = {.etag = first->version, .epoch = first->epoch};
	struct kind_answer a;

	place.held = &held;
	kind_answer_init(&a, place.max_bytes);
	demand(kind_spring.read(&place, r, &a) == KIND_SAME);
	kind_answer_fini(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct settings_server server = {.kind = SETTINGS_SPRING};
	const struct kind_place place = {.server = &server,
		.base = "http://spring:8888",
		.path = "/web/prod",
		.max_bytes = 1u << 20};
	struct http_client_response r = {.framed = true};
	struct kind_answer a;
	enum kind_verdict verdict;

	if (size == 0)
		return 0;
	r.status = data[0] == '4' ? 404 : data[0] == '5' ? 500 : 200;
	buffer_init(&r.body, size);
	demand(buffer_append(&r.body, data + 1, size - 1) == 0);
	kind_answer_init(&a, place.max_bytes);
	a.cause = KIND_CAUSES;
	verdict = kind_spring.read(&place, &r, &a);
	demand(verdict == KIND_NEW || verdict == KIND_FAILED || verdict == KIND_ABSENT ||
		verdict == KIND_USUAL);
	demand((verdict == KIND_NEW) <= (r.status == 200));
	demand((verdict == KIND_ABSENT) <= (r.status == 404));
	demand((verdict == KIND_USUAL) <= (r.status == 500));
	if (verdict == KIND_FAILED || verdict == KIND_ABSENT) {
		demand(a.cause > KIND_CAUSE_NONE && a.cause < KIND_CAUSES);
		check_sentence(a.why);
	}
	if (verdict == KIND_NEW) {
		demand(a.cause == KIND_CAUSE_NONE);
		check_document(&r, &a);
		check_again(place, &r, &a);
	}
	buffer_fini(&r.body);
	kind_answer_fini(&a);
	return 0;
}
