/*
 * Requests to etcd's JSON gateway that are no pulls: leases, writes, ranges; built and read without
 * I/O. Pulls and their watches are pull/kinds/etcd.c's.
 *
 * Threads: any. Ownership: requests and answers belong to the caller: kind_request_fini(),
 * gateway_answer_fini(). Errors: -errno with a sentence and its cause. Bounds: KIND_MAX_BODY; a
 * document's.
 */
#ifndef PULLET_GATEWAY_H
#define PULLET_GATEWAY_H

#include "document/document.h"
#include "pull/kinds/kind.h"

#define GATEWAY_RANGE "/v3/kv/range"
#define GATEWAY_TXN "/v3/kv/txn"
#define GATEWAY_GRANT "/v3/lease/grant"
#define GATEWAY_KEEP_ALIVE "/v3/lease/keepalive"
#define GATEWAY_WATCH "/v3/watch"

struct gateway_answer {
	struct document *json;
	const struct node *root; /* of a line of a stream: what is in its "result" */
	uint64_t cluster, revision;
};

/* Begins a POST; the body, JSON, is the caller's to append. 0, -ENOMEM, -EMSGSIZE. */
int gateway_begin(const struct kind_place *place, const char *api, struct kind_request *r);
/* Appends `"name":"the bytes as base64"`, with a comma before it unless it is the first in its map.
 * 0 or the buffer's error. */
int gateway_bytes(struct buffer *body, const char *name, const void *data, size_t len);
/* The same for the first key behind all that begin with `prefix`, which ends in '/'. */
int gateway_end_of(struct buffer *body, const char *name, const char *prefix);
/* Judges any end of a request, or a line of a stream. 0 and *ret; or, with cause and why:
 * -EACCES: the token is not good; -ESTALE: the lease, or the revision, is not there any more;
 * -EMSGSIZE: the answer is too large; -ENOMEM; -EIO. */
int gateway_read(const struct kind_place *place, const struct transport_response *response,
	struct gateway_answer *ret, enum kind_cause *ret_cause, char why[FILE_WHY]);
void gateway_answer_fini(struct gateway_answer *a);

/* Members: a number, also as a string, 0 = it is not there or something else; true only if it says
 * so. */
uint64_t gateway_number(const struct node *map, const char *name);
bool gateway_true(const struct node *map, const char *name);
/* Replaces what is in out by a member's bytes. 0; -EINVAL: they cannot be read; -ENOMEM, -EMSGSIZE.
 */
int gateway_decode(const struct node *map, const char *name, struct buffer *out);

#endif
