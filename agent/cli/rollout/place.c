/* Reading and replacing the document. Surprising: an answer that is lost leaves open whether it was
 * written; who reads it again sees. */
#include "cli/rollout/place.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/json_writer.h"

struct ask {
	const char *key;
	const struct buffer *value;
	uint64_t revision;
};

/* ---- reading ---- */

static int build_get(
	void *arg, const struct kind_place *place, struct kind_request *r, char why[FILE_WHY])
{
	const struct ask *a = arg;
	int e = etcd_request_begin(place, ETCD_STORE_RANGE, r);

	(void)why;
	json_writer_begin_object(&r->body, NULL);
	etcd_request_bytes(&r->body, "key", a->key, strlen(a->key));
	json_writer_end_object(&r->body);
	return e ? e : r->body.error;
}

static int read_plan_pair(
	const struct node *pair, struct plan *ret, uint64_t *ret_revision, char why[FILE_WHY])
{
	struct buffer value;
	int r;

	buffer_init(&value, ETCD_MAX_ANSWER);
	if (node_find(pair, "value") && etcd_store_decode(pair, "value", &value)) {
		snprintf(why, FILE_WHY, "the answer cannot be read");
		r = -EIO;
	} else if (!value.len) {
		snprintf(why, FILE_WHY, "it is empty");
		r = -EINVAL;
	} else {
		r = plan_read(value.data, value.len, ret, why);
	}
	buffer_fini(&value);
	*ret_revision = etcd_store_number(pair, "mod_revision");
	return r;
}

int place_read(struct etcd *e, const char *key, struct plan *ret, uint64_t *ret_revision,
	char why[FILE_WHY])
{
	struct ask ask = {.key = key};
	struct etcd_store_answer a;
	const struct node *pair;
	int r = etcd_ask(e, build_get, &ask, &a, why);

	if (r)
		return r;
	pair = node_first(a.root, "kvs");
	*ret_revision = 0;
	if (pair)
		r = read_plan_pair(pair, ret, ret_revision, why);
	else
		r = plan_read("", 0, ret, why);
	etcd_store_answer_fini(&a);
	return r;
}

/* ---- writing ---- */

static int build_put(
	void *arg, const struct kind_place *place, struct kind_request *r, char why[FILE_WHY])
{
	const struct ask *a = arg;
	int e = etcd_request_begin(place, ETCD_STORE_TXN, r);

	(void)why;
	json_writer_begin_object(&r->body, NULL);
	json_writer_begin_array(&r->body, "compare");
	etcd_store_compare(&r->body, a->key,
		a->revision ? &etcd_store_unchanged : &etcd_store_absent, a->revision);
	json_writer_end_array(&r->body);
	json_writer_begin_array(&r->body, "success");
	etcd_store_put(&r->body, a->key, a->value, 0);
	json_writer_end_array(&r->body);
	json_writer_end_object(&r->body);
	return e ? e : r->body.error;
}

int place_write(struct etcd *e, const char *key, const struct plan *p, uint64_t revision,
	char why[FILE_WHY])
{
	struct etcd_store_answer a;
	struct buffer value;
	struct ask ask = {.key = key, .value = &value, .revision = revision};
	int r;

	buffer_init(&value, ROLLOUT_MAX_BYTES);
	r = plan_write(p, &value);
	if (r)
		snprintf(why, FILE_WHY, "the document is too large, or there is no memory for it");
	else
		r = etcd_ask(e, build_put, &ask, &a, why);
	if (r == 0) {
		if (!node_is_true(a.root, "succeeded")) {
			snprintf(why, FILE_WHY, "somebody else changed the rollout just now");
			r = -EEXIST;
		}
		etcd_store_answer_fini(&a);
	}
	buffer_fini(&value);
	return r;
}

/* ---- the driver's note ---- */

#define MAX_NOTE 4096u

static int build_note(
	void *arg, const struct kind_place *place, struct kind_request *r, char why[FILE_WHY])
{
	const struct ask *a = arg;
	int e = etcd_request_begin(place, ETCD_STORE_TXN, r);

	(void)why;
	json_writer_begin_object(&r->body, NULL);
	json_writer_begin_array(&r->body, "success");
	etcd_store_put(&r->body, a->key, a->value, 0);
	json_writer_end_array(&r->body);
	json_writer_end_object(&r->body);
	return e ? e : r->body.error;
}

/* Asks about KEY#driver. */
static int ask_note(struct etcd *e, etcd_build build, const char *key, const struct buffer *value,
	struct etcd_store_answer *ret, char why[FILE_WHY])
{
	struct ask ask = {.value = value};
	char *own;
	int r = asprintf(&own, "%s#driver", key);

	if (r < 0) {
		snprintf(why, FILE_WHY, "out of memory");
		return -ENOMEM;
	}
	ask.key = own;
	r = etcd_ask(e, build, &ask, ret, why);
	free(own);
	return r;
}

int place_write_note(
	struct etcd *e, const char *key, const struct place_note *note, char why[FILE_WHY])
{
	struct etcd_store_answer a;
	struct buffer value;
	int r;

	buffer_init(&value, MAX_NOTE);
	json_writer_begin_object(&value, NULL);
	json_writer_number(&value, "v", 1);
	json_writer_text(&value, "driver", note->driver);
	json_writer_integer(&value, "at_ms", note->at_ms);
	r = json_writer_end_object(&value);
	if (r)
		snprintf(why, FILE_WHY, "out of memory");
	else
		r = ask_note(e, build_note, key, &value, &a, why);
	if (r == 0)
		etcd_store_answer_fini(&a);
	buffer_fini(&value);
	return r;
}

/* What is no note is as none. */
static void read_note(const char *data, size_t len, struct place_note *ret)
{
	struct document *d = NULL;
	struct document_error error;

	if (document_parse(DOCUMENT_JSON, data, len, 0, &d, &error))
		return;
	snprintf(ret->driver, sizeof(ret->driver), "%s", node_text(document_root(d), "driver", ""));
	ret->at_ms = node_integer(document_root(d), "at_ms", 0);
	document_free(d);
}

int place_read_note(struct etcd *e, const char *key, struct place_note *ret, char why[FILE_WHY])
{
	struct etcd_store_answer a;
	const struct node *pair;
	struct buffer value;
	int r = ask_note(e, build_get, key, NULL, &a, why);

	*ret = (struct place_note){.driver = ""};
	if (r)
		return r;
	buffer_init(&value, MAX_NOTE);
	pair = node_first(a.root, "kvs");
	if (pair && etcd_store_decode(pair, "value", &value) == 0 && value.len)
		read_note(value.data, value.len, ret);
	buffer_fini(&value);
	etcd_store_answer_fini(&a);
	return 0;
}
