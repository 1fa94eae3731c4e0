/* Headers and refusals. Surprising: which refusals are about the token only their words say. */
#include "pull/kinds/etcd_answer.h"

#include <stdio.h>
#include <string.h>

bool etcd_answer_header(const struct node *map, uint64_t numbers[ETCD_HEADER_NUMBERS])
{
	const struct node *header = node_member(map, "header", NODE_MAP);

	return header && kv_number(header, "cluster_id", &numbers[ETCD_CLUSTER]) &&
	       numbers[ETCD_CLUSTER] && kv_number(header, "raft_term", &numbers[ETCD_TERM]) &&
	       kv_number(header, "revision", &numbers[ETCD_REVISION]) &&
	       numbers[ETCD_REVISION] < INT64_MAX;
}

long etcd_answer_status(long status, const char *words)
{
	static const char *const of_token[] = {
		"user name is empty", "invalid auth token", "auth store is old"};

	for (size_t i = 0; i < sizeof(of_token) / sizeof(of_token[0]); i++)
		if (strstr(words, of_token[i]))
			return 401;
	return status;
}

bool etcd_answer_words(const struct http_client_response *response, char words[KV_WORDS])
{
	const struct node *root, *error;
	struct document_error e;
	struct document *d;
	const char *text;
	size_t len;
	bool found;

	if (kind_parse_json(&response->body, &d, &e))
		return false;
	root = document_root(d);
	error = node_find(root, "error");
	if (error && error->type == NODE_MAP)
		root = error;
	found = (kv_text(root, "message", &text, &len) && len > 0) ||
		(kv_text(root, "error", &text, &len) && len > 0);
	if (found)
		kv_words(text, len, words);
	document_free(d);
	return found;
}

bool etcd_answer_is_no_gateway(long status, char why[FILE_WHY])
{
	if (status != 404 && status != 405 && status != 410 && status != 501)
		return false;
	snprintf(why, FILE_WHY,
		"the server answered %ld: there is no v3 JSON gateway of etcd (3.4 or newer) at "
		"this address: check the urls",
		status);
	return true;
}
