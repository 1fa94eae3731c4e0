/*
 * Spring Cloud Config: one GET of /APPLICATION/PROFILE[/LABEL], whose answer is an environment: a
 * list of sources with flat names, the strongest source first. They become one JSON document.
 *
 * Surprising: a name and its list are one, and belong to the first source that has any part of it.
 * Spring binds a list from one source (IndexedElementsBinder of Spring Boot; the server's own
 * /APPLICATION-PROFILE.yml replaces "key[" as a whole, too), so that no rest of a longer list in a
 * weaker source remains; and an empty list in YAML comes as the name itself, with the value "".
 *
 * A version names a commit of one source while others may change. So an answer is only the same
 * when the document is, whose hash is kept as the epoch. The member "state" adds nothing to that.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crypto/digest.h"
#include "document/document.h"
#include "pull/kinds/kind.h"
#include "document/unflatten.h"
#include "pull/kinds/kv.h"

#define UNDECRYPTED "invalid." /* and the name, with this value: */
#define NO_VALUE "<n/a>"
#define ENCRYPTED "{cipher}"

static int spring_build(const struct kind_place *place, struct kind_request *r, char why[FILE_WHY])
{
	int e = buffer_append_string(&r->url, place->base);

	(void)why;
	/* '%': parts of the path are encoded already */
	if (e == 0)
		e = kind_escape(&r->url, place->path, strlen(place->path), "/,()%");
	if (e == 0) /* else the answer may also name the origin of each value */
		e = kind_header(r, "Accept: application/json");
	r->basic = place->user != NULL;
	return e;
}

/* ---- properties ---- */

struct property {
	const char *name;
	size_t len, root_len; /* the root: see root_of() */
	size_t source;
	const struct node *value;
	bool undecrypted;
};

struct properties {
	struct property *list;
	size_t count;
};

/* The name up to the number of an item, "a.b" of "a.b[0].c[1]"; else all of it. */
static size_t root_of(const char *name, size_t len)
{
	for (size_t i = 1; i < len; i++) {
		size_t end = i + 1;

		while (name[i] == '[' && end < len && isdigit((unsigned char)name[end]))
			end++;
		if (end > i + 1 && end < len && name[end] == ']')
			return i;
	}
	return len;
}

static bool starts_with_text(const struct node *value, const char *text)
{
	return value->type == NODE_STRING && strncmp(value->text, text, strlen(text)) == 0;
}

/* The server renames a value that it cannot decrypt, and passes on one that it shall not decrypt.
 */
static void add_property(struct properties *p, const struct node *n, size_t source)
{
	struct property *new = &p->list[p->count++];
	size_t skip = strlen(UNDECRYPTED);
	bool renamed = n->key_len > skip && strncmp(n->key, UNDECRYPTED, skip) == 0 &&
		       n->type == NODE_STRING && strcmp(n->text, NO_VALUE) == 0;

	*new = (struct property){.name = renamed ? n->key + skip : n->key,
		.len = renamed ? n->key_len - skip : n->key_len,
		.source = source,
		.value = n,
		.undecrypted = renamed || starts_with_text(n, ENCRYPTED)};
	new->root_len = root_of(new->name, new->len);
}

/* Collects those of all sources. 0, -ENOMEM; -EPROTO: it is not an environment. */
static int collect_properties(const struct node *environment, struct properties *p)
{
	const struct node *sources = node_member(environment, "propertySources", NODE_LIST),
			  *values;
	size_t count = 0, number = 0;

	if (!sources)
		return -EPROTO;
	for (const struct node *s = sources->first; s; s = s->next) {
		values = node_member(s, "source", NODE_MAP);
		if (!values)
			return -EPROTO;
		count += values->count;
	}
	p->list = calloc(count + 1, sizeof(*p->list));
	if (!p->list)
		return -ENOMEM;
	for (const struct node *s = sources->first; s; s = s->next, number++)
		for (const struct node *n = node_find(s, "source")->first; n; n = n->next)
			add_property(p, n, number);
	return 0;
}

static bool same_root(const struct property *a, const struct property *b)
{
	return document_compare_text(a->name, a->root_len, b->name, b->root_len) == 0;
}

/* By root, then by source, then by name. */
static int by_owner(const void *a, const void *b)
{
	const struct property *x = a, *y = b;
	int r = document_compare_text(x->name, x->root_len, y->name, y->root_len);

	if (r == 0)
		r = (x->source > y->source) - (x->source < y->source);
	return r ? r : document_compare_text(x->name, x->len, y->name, y->len);
}

/* ---- the document ---- */

static const char *describe_property_error(int error)
{
	switch (error) {
	case -EBADMSG:
		return "is encrypted, and the server did not decrypt it: check its key, or its "
		       "encrypt.enabled";
	case -EINVAL:
	case -EILSEQ:
		return "has a name that no document can hold: rename it";
	case -EMSGSIZE:
		return "is more than fits: raise max_size, or split what is there";
	default:
		return "cannot be read: out of memory";
	}
}

static int add_property_value(struct unflatten *n, const struct property *p, struct buffer *json)
{
	int r;

	if (p->undecrypted)
		return -EBADMSG;
	buffer_clear(json);
	r = document_write(p->value, DOCUMENT_JSON, json);
	return r ? r
		 : unflatten_add(n, p->name, p->len, json->data, json->len - 1); /* the newline */
}

/* Adds each root from its strongest source. */
static int add_all(struct unflatten *n, const struct properties *p, struct kind_answer *ret,
	size_t max_bytes, char why[FILE_WHY])
{
	const struct property *first = p->list, *one;
	char words[KV_WORDS];
	struct buffer json;
	int r = 0;

	buffer_init(&json, max_bytes);
	for (one = first; r == 0 && one < p->list + p->count; one++) {
		if (!same_root(one, first))
			first = one;
		if (one->source != first->source)
			continue;
		kv_words(one->name, one->len, words);
		r = add_property_value(n, one, &json);
		if (r)
			snprintf(why, FILE_WHY, "the property '%s' %s", words,
				describe_property_error(r));
		else if (one->value->type == NODE_STRING && strstr(one->value->text, "${") &&
			 !ret->note[0])
			snprintf(ret->note, sizeof(ret->note),
				"a placeholder is passed on as it is: property '%s'", words);
	}
	buffer_fini(&json);
	return r;
}

static enum kind_verdict set_spring_version(const struct kind_place *place,
	const struct node *environment, struct kind_answer *ret, char why[FILE_WHY])
{
	const struct part *held = kind_held(place);
	const char *version = "";
	size_t len = 0;

	if (digest_sha256(ret->body.data, ret->body.len, NULL, 0, ret->epoch)) {
		snprintf(why, FILE_WHY, "the document cannot be hashed");
		return KIND_FAILED;
	}
	kv_text(environment, "version", &version, &len);
	for (size_t i = 0; i < len; i++)
		if (version[i] <= ' ' || version[i] > '~')
			len = 0; /* no name of a commit */
	snprintf(ret->version, sizeof(ret->version), "%s",
		len && len < sizeof(ret->version) ? version : ret->epoch);
	return held && held->epoch && strcmp(held->epoch, ret->epoch) == 0 &&
			       strcmp(held->etag, ret->version) == 0
		       ? KIND_SAME
		       : KIND_NEW;
}

static enum kind_verdict write_environment(const struct kind_place *place,
	const struct node *environment, const struct unflatten *n, struct kind_answer *ret)
{
	enum kind_verdict verdict;
	int r;

	if (unflatten_count(n) == 0)
		return kind_fail(ret, KIND_CAUSE_EMPTY,
			"the environment has no properties, which is how the server answers for an "
			"unknown application: check the path");
	r = unflatten_write(n, &ret->body);
	if (r)
		return kind_fail(ret, ret->cause, "the environment %s", describe_property_error(r));
	if (ret->type != SETTINGS_TYPE_BYTES)
		ret->type = SETTINGS_TYPE_JSON;
	verdict = set_spring_version(place, environment, ret, ret->why);
	if (verdict != KIND_FAILED)
		ret->cause = KIND_CAUSE_NONE;
	return verdict;
}

static enum kind_verdict read_environment(
	const struct kind_place *place, const struct node *environment, struct kind_answer *ret)
{
	enum kind_verdict verdict = KIND_FAILED;
	struct properties p = {0};
	struct unflatten *n = NULL;
	int r = collect_properties(environment, &p);

	if (r == 0) {
		qsort(p.list, p.count, sizeof(*p.list), by_owner);
		n = unflatten_new(UNFLATTEN_PROPERTIES, place->max_bytes);
	}
	if (r == -EPROTO)
		snprintf(ret->why, FILE_WHY,
			"the answer is not an environment of Spring Cloud Config: it has no "
			"propertySources with a source each");
	else if (!n)
		snprintf(ret->why, FILE_WHY, "out of memory");
	else if (add_all(n, &p, ret, place->max_bytes, ret->why) == 0)
		verdict = write_environment(place, environment, n, ret);
	unflatten_free(n);
	free(p.list);
	return verdict;
}

/* ---- answers ---- */

static enum kind_verdict read_spring_document(const struct kind_place *place,
	const struct http_client_response *response, struct kind_answer *ret)
{
	struct kind_answer whole; /* larger than the document that becomes of it */
	enum kind_verdict verdict;
	struct document *d;
	struct document_error e;

	kind_answer_init(&whole, response->body.len);
	verdict = kind_document(place, response, &whole);
	kind_answer_fini(&whole);
	if (verdict != KIND_NEW)
		return kind_fail(ret, whole.cause, "%s", whole.why);
	ret->type = whole.type;
	ret->cause = KIND_CAUSE_ANSWER;
	if (kind_parse_json(&response->body, &d, &e))
		return kind_fail(ret, KIND_CAUSE_ANSWER,
			"the answer of Spring Cloud Config cannot be read: %s", e.message);
	verdict = read_environment(place, document_root(d), ret);
	document_free(d);
	return verdict;
}

/* Reads the message of an error. False: it is not Spring Cloud Config's. */
static bool read_spring_error(const struct buffer *body, char ret_words[KV_WORDS])
{
	const char *message = "";
	struct document_error e;
	struct document *d;
	uint64_t status;
	bool ours;
	size_t len;

	ret_words[0] = '\0';
	if (kind_parse_json(body, &d, &e))
		return false;
	ours = node_find(document_root(d), "status") &&
	       kv_number(document_root(d), "status", &status);
	if (ours && kv_text(document_root(d), "message", &message, &len))
		kv_words(message, len, ret_words);
	document_free(d);
	return ours;
}

/* A 404 may also be about a repository that the server cannot reach (its documents are not gone),
 * or about a path unknown to it. KIND_CAUSE_NONE: it is about the document. */
static enum kind_cause other_cause(const char *words)
{
	static const struct {
		const char *words;
		enum kind_cause cause;
	} table[] = {
		{"Cannot ", KIND_CAUSE_UNREACHABLE},
		{"No such repository", KIND_CAUSE_UNREACHABLE},
		{"No message available", KIND_CAUSE_NOT_FOUND},
		{"No static resource", KIND_CAUSE_NOT_FOUND},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (strncmp(words, table[i].words, strlen(table[i].words)) == 0)
			return table[i].cause;
	return KIND_CAUSE_NONE;
}

static enum kind_verdict check_missing(bool ours, const char *words, struct kind_answer *ret)
{
	enum kind_cause other = ours ? other_cause(words) : KIND_CAUSE_NOT_FOUND;
	char quoted[KV_QUOTED];

	ret->cause = other ? other : KIND_CAUSE_NOT_FOUND;
	if (other == KIND_CAUSE_NOT_FOUND)
		snprintf(ret->why, FILE_WHY,
			"the server answered 404, but not as Spring Cloud Config does: check the "
			"urls");
	else
		snprintf(ret->why, FILE_WHY, "the server answered 404%s",
			words[0] ? kv_quote(words, quoted)
				 : ": it has no such label: check the path");
	return other ? KIND_FAILED : KIND_ABSENT;
}

static enum kind_verdict spring_read(const struct kind_place *place,
	const struct http_client_response *response, struct kind_answer *ret)
{
	char words[KV_WORDS];
	bool ours;

	if (response->status == 200)
		return read_spring_document(place, response, ret);
	ours = read_spring_error(&response->body, words);
	if (response->status == 404)
		return check_missing(ours, words, ret);
	return words[0] ? kv_refused(response->status, words, ret) : KIND_USUAL;
}

const struct kind kind_spring = {
	.name = "spring", .wraps = true, .build = spring_build, .read = spring_read};
