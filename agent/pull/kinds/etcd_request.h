/*
 * Requests to etcd's JSON gateway, built without I/O: what pulls and receipts share.
 *
 * Threads: any. Ownership: requests belong to the caller. Errors: -errno, or the buffer's, which
 * sticks.
 */
#ifndef PULLET_ETCD_REQUEST_H
#define PULLET_ETCD_REQUEST_H

#include "pull/kinds/kind.h"

/* Begins a POST; the caller appends the JSON body. 0, -ENOMEM, -EMSGSIZE. */
int etcd_request_begin(const struct kind_place *place, const char *api, struct kind_request *r);
/* Appends the member `"name":"the bytes as base64"`. 0 or the buffer's error. */
int etcd_request_bytes(struct buffer *body, const char *name, const void *data, size_t len);
/* etcd_request_bytes() for the first key behind all that begin with `prefix`, which ends in '/'. */
int etcd_request_end_of(struct buffer *body, const char *name, const char *prefix);
/* Appends `"key":...`, and of a prefix `"range_end":...`: the first name behind all that begin so,
 * the prefix with the byte behind '/' at its end. */
void etcd_request_key(struct buffer *body, const char *path);
/* 0, or -EINVAL with a sentence: it names no key. */
int etcd_request_check_path(const char *path, char why[FILE_WHY]);

#endif
