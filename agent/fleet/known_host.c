/*
 * The value, the two requests, and what the answer to the first says.
 */
#include "fleet/known_host.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/receipt.h"
#include "text/json_writer.h"

int known_host_init(
	struct known_host *h, const struct settings *settings, const char *host, int64_t wall_ms)
{
	*h = (struct known_host){.settings = settings, .first_ms = wall_ms};
	if (asprintf(&h->key, "%s" RECEIPT_KNOWN "%s", settings->report.prefix, host) >= 0)
		return 0;
	h->key = NULL;
	return -ENOMEM;
}

void known_host_fini(struct known_host *h)
{
	free(h->key);
	h->key = NULL;
}

static int write_known(const struct known_host *h, struct buffer *out)
{
	const struct settings *s = h->settings;
	struct receipt receipt = {.since_ms = h->first_ms,
		.stopped_ms = h->stopped_ms,
		.labels = s->labels,
		.label_count = s->label_count,
		.config_count = s->config_count};
	int e;

	buffer_init(out, RECEIPT_MAX);
	receipt.configs = calloc(s->config_count + 1, sizeof(*receipt.configs));
	if (!receipt.configs)
		return -ENOMEM;
	for (size_t i = 0; i < s->config_count; i++)
		receipt.configs[i].name = s->configs[i]->name;
	e = receipt_write_known(&receipt, out);
	free(receipt.configs);
	return e;
}

int known_host_build_ask(const struct known_host *h, struct buffer *body)
{
	struct buffer value;
	int e = write_known(h, &value);

	if (e == 0) {
		json_writer_begin_object(body, NULL);
		json_writer_begin_array(body, "compare");
		etcd_store_compare(body, h->key, &etcd_store_absent, 0);
		json_writer_end_array(body);
		json_writer_begin_array(body, "success");
		etcd_store_put(body, h->key, &value, 0);
		json_writer_end_array(body);
		json_writer_begin_array(body, "failure");
		json_writer_begin_object(body, NULL);
		json_writer_begin_object(body, "request_range");
		etcd_request_bytes(body, "key", h->key, strlen(h->key));
		json_writer_end_object(body);
		json_writer_end_object(body);
		json_writer_end_array(body);
		json_writer_end_object(body);
	}
	buffer_fini(&value);
	return e;
}

int known_host_build_write(const struct known_host *h, struct buffer *body)
{
	struct buffer value;
	int e = write_known(h, &value);

	if (e == 0) {
		json_writer_begin_object(body, NULL);
		json_writer_begin_array(body, "success");
		etcd_store_put(body, h->key, &value, 0);
		json_writer_end_array(body);
		json_writer_end_object(body);
	}
	buffer_fini(&value);
	return e;
}

/* {"responses":[{"response_range":{"kvs":[{"value": BASE64}]}}]} */
static const struct node *only_pair(const struct node *root)
{
	const struct node *n = node_member(root, "responses", NODE_LIST);

	n = node_member(node_find(n ? n->first : NULL, "response_range"), "kvs", NODE_LIST);
	n = n ? n->first : NULL;
	return n && n->type == NODE_MAP ? n : NULL;
}

/* Is the value what we would write? Keeps its first_ms. */
static bool is_ours(struct known_host *h, const struct node *pair)
{
	struct buffer is, shall;
	struct receipt *known = NULL;
	bool same = false;

	buffer_init(&is, RECEIPT_MAX);
	buffer_init(&shall, RECEIPT_MAX);
	if (pair && etcd_store_decode(pair, "value", &is) == 0 && is.len &&
		receipt_read_known(is.data, is.len, &known) == 0 && known->since_ms) {
		h->first_ms = known->since_ms;
		same = write_known(h, &shall) == 0 && shall.len == is.len &&
		       memcmp(shall.data, is.data, is.len) == 0;
	}
	receipt_free(known);
	buffer_fini(&is);
	buffer_fini(&shall);
	return same;
}

void known_host_asked(struct known_host *h, const struct etcd_store_answer *a)
{
	bool ours = node_is_true(a->root, "succeeded") || is_ours(h, only_pair(a->root));

	h->state = ours ? KNOWN_HOST_WRITTEN : KNOWN_HOST_DIFFERS;
}

void known_host_was_written(struct known_host *h)
{
	h->state = KNOWN_HOST_WRITTEN;
}
