/*
 * Requests to etcd's JSON gateway other than pulls: leases, writes, ranges; built and read without
 * I/O. Pulls and their watches: pull/kinds/etcd.c, etcd_watch.c.
 *
 * Threads: any. Ownership: requests and answers belong to the caller: kind_request_fini(),
 * etcd_store_answer_fini(). Errors: -errno with a sentence and its cause. Bounds: KIND_MAX_BODY; a
 * document's.
 */
#ifndef PULLET_ETCD_STORE_H
#define PULLET_ETCD_STORE_H

#include "document/document.h"
#include "pull/kinds/etcd_request.h"

#define ETCD_STORE_RANGE "/v3/kv/range"
#define ETCD_STORE_TXN "/v3/kv/txn"
#define ETCD_STORE_GRANT "/v3/lease/grant"
#define ETCD_STORE_KEEP_ALIVE "/v3/lease/keepalive"
#define ETCD_STORE_WATCH "/v3/watch"

struct etcd_store_answer {
	struct document *json;
	const struct node *root; /* of a line of a stream: what is in its "result" */
	uint64_t cluster, revision;
};

/* Appends a comparison of a transaction. revision: what the test compares with; 0 unless
 * etcd_store_unchanged. */
struct etcd_store_test {
	const char *target, *result, *field;
};
extern const struct etcd_store_test etcd_store_absent, etcd_store_present, etcd_store_unchanged;
int etcd_store_compare(struct buffer *body, const char *key, const struct etcd_store_test *test,
	uint64_t revision);
/* Appends a write to a transaction. lease: the key's; 0 = none. */
int etcd_store_put(
	struct buffer *body, const char *key, const struct buffer *value, uint64_t lease);
/* Reads the end of a request, or a line of a stream. 0 and *ret; or, with cause and why: -EACCES:
 * invalid token; -ESTALE: the lease or the revision does not exist any more;
 * -EMSGSIZE: the answer is too large; -ENOMEM; -EIO. */
int etcd_store_read(const struct kind_place *place, const struct http_client_response *response,
	struct etcd_store_answer *ret, enum kind_cause *ret_cause, char why[FILE_WHY]);
void etcd_store_answer_fini(struct etcd_store_answer *a);

/* A member that is a number, also as a string; 0 = absent or invalid. */
uint64_t etcd_store_number(const struct node *map, const char *name);
/* Replaces the content of out by a member's decoded bytes. 0; -EINVAL; -ENOMEM, -EMSGSIZE. */
int etcd_store_decode(const struct node *map, const char *name, struct buffer *out);

#endif
