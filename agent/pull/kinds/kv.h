/*
 * What the kinds that keep keys and values share: a key, or the keys below a prefix, to a document;
 * the members of an answer; the words of a refusal.
 *
 * A path that ends in '/' is a prefix: the names of its keys below it are those of a JSON document,
 * their values are strings. Not in the document: the prefix itself; PREFIX.minisig, the document's
 * signature; empty keys that end in '/', which some tools make as folders.
 *
 * Threads: any. Ownership: arguments are borrowed until kv_fini(). Errors: a verdict, its
 * cause, and a sentence in `why` whose bytes are printable ASCII. Bounds: KV_MAX_*; values and
 * document are at most the place's max_bytes.
 */
#ifndef PULLET_KV_H
#define PULLET_KV_H

#include <stdbool.h>
#include <stdint.h>

#include "document/document.h"
#include "pull/kinds/kind.h"
#include "text/sentence.h"
#include "document/unflatten.h"

#define KV_MAX_KEYS 10000 /* below a prefix: an answer of so many is within DOCUMENT_MAX_NODES */
#define KV_MAX_NAME 8192  /* bytes of a key */
#define KV_WORDS 200      /* bytes of what is quoted from a server, with a NUL */
#define KV_QUOTED (KV_WORDS + SENTENCE_WORDS)

struct kv {
	uint64_t count, highest; /* keys, and the highest of their indexes; with those left out */
	uint64_t fingerprint;    /* of keys, values and indexes, in the order of the answer */
	/* the others are private */
	const struct kind_place *place;
	const char *name;
	size_t name_len;
	bool prefix;
	struct buffer *document;
	struct buffer value;
	struct unflatten *nest;
};

bool kv_is_prefix(const char *path);

/* Sets up: name is the key or prefix as the server knows it. 0, -ENOMEM. */
int kv_init(
	struct kv *k, const struct kind_place *place, const char *name, struct buffer *document);
void kv_fini(struct kv *k);
/* Takes a key of the answer, its value in base64 and the index of its last change. 0 or -errno: the
 * answer is rejected. */
int kv_add(struct kv *k, const char *key, size_t key_len, const char *value, size_t value_len,
	uint64_t index, struct kind_answer *ret);
/* After the last key: KIND_NEW with the document, its type and version (the highest index); or
 * KIND_ABSENT, KIND_FAILED. */
enum kind_verdict kv_end(struct kv *k, struct kind_answer *ret);
/* KIND_ABSENT. */
enum kind_verdict kv_absent(const struct kind_place *place, struct kind_answer *ret);
/* True when these are the held keys, which had this count and fingerprint. */
bool kv_same(const struct kv *k, uint64_t held_count, uint64_t held_fingerprint);

/* A number of digits only. */
bool kv_digits(const char *text, uint64_t *ret);
/* An epoch of n numbers with a blank between them. False (also of NULL): it is not. */
bool kv_epoch(const char *text, uint64_t *ret_numbers, size_t n);
/* Appends the bytes. 0, -EINVAL, -EMSGSIZE, -ENOMEM. */
int kv_decode(struct buffer *out, const char *base64, size_t len);
/* A map's member; missing and null are 0 and "". False: it is something else. */
bool kv_number(const struct node *map, const char *name, uint64_t *ret); /* also as a string */
bool kv_text(const struct node *map, const char *name, const char **ret, size_t *ret_len);

/* A server's words, bounded and printable. */
void kv_words(const char *text, size_t len, char ret_words[KV_WORDS]);
/* ": " and such words for a sentence, where only operators see them (text/sentence.h); "" for none.
 */
const char *kv_quote(const char *words, char ret_quoted[KV_QUOTED]);
/* Says why an answer of `server` is not JSON, without a piece of it: it may hold a secret. */
void kv_unreadable(const char *server, const struct document_error *e, char why[FILE_WHY]);
/* KIND_FAILED by the status of a refusal, and by the server's words. */
enum kind_verdict kv_refused(long status, const char *words, struct kind_answer *ret);
/* The same as -EACCES, -EAGAIN or -EPROTO, for logins and watches. */
int kv_errno(long status, const char *words);

#endif
