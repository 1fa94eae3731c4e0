/*
 * What etcd's answers to pulls, logins and watches have in common: a header, or a refusal.
 *
 * Threads: any. Ownership: nothing is kept. Errors: as said.
 */
#ifndef PULLET_ETCD_ANSWER_H
#define PULLET_ETCD_ANSWER_H

#include "document/document.h"
#include "pull/kinds/kind.h"
#include "pull/kinds/kv.h"

/* Of a header. */
enum { ETCD_CLUSTER, ETCD_TERM, ETCD_REVISION, ETCD_HEADER_NUMBERS };

/* Reads the header that every answer has. False: it has none, or an invalid one. */
bool etcd_answer_header(const struct node *map, uint64_t numbers[ETCD_HEADER_NUMBERS]);
/* The status of a refusal with these words: etcd answers 400 to a token that is missing or too old,
 * which is 401. */
long etcd_answer_status(long status, const char *words);
/* The gateway's words: {"error": TEXT, "message": TEXT, "code": N}, or that within "error" (of a
 * stream). False: it is something else. */
bool etcd_answer_words(const struct http_client_response *response, char words[KV_WORDS]);
/* True, with a sentence: there is no such API at the address. */
bool etcd_answer_is_no_gateway(long status, char why[FILE_WHY]);

#endif
