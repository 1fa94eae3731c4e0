/*
 * A kind of configuration server: its requests, and what its answers mean. One table per kind in
 * kinds/, found by kind_of().
 *
 * Without I/O, clock or memory of its own: everything comes in by arguments, so that each kind is
 * tested on recorded exchanges. pull/exchange.c (pulls, logins) and pull/watch.c (watches) send and
 * wait.
 *
 * Threads: any. Ownership: a place is borrowed for the call; requests and answers belong to the
 * caller: kind_request_fini(), kind_answer_fini(). Errors: -errno with a sentence in `why`, which
 * holds no secret. Bounds: KIND_MAX_*; an answer's body is at most its buffer's maximum.
 */
#ifndef PULLET_KIND_H
#define PULLET_KIND_H

#include "files/file.h"
#include "http/integrity.h"
#include "settings/settings.h"
#include "version/store.h"
#include "http/client.h"

#define KIND_MAX_URL 8192
#define KIND_MAX_HEADERS 8
#define KIND_MAX_BODY (1u << 20)     /* of a request */
#define KIND_MAX_WRAPPING (4u << 20) /* of an answer that wraps, beside twice the document */
#define KIND_MAX_TOKEN 8192
#define KIND_MAX_NEWS (1u << 20) /* of an answer to a watch; a larger one is not read */
#define KIND_MAX_WATCHED 64      /* documents in one watch */

/* Why a document was not taken: where an operator starts to look. */
enum kind_cause {
	KIND_CAUSE_NONE,
	KIND_CAUSE_NOT_FOUND,   /* the server answers: there is no such document */
	KIND_CAUSE_EMPTY,       /* it is there, and there is nothing in it */
	KIND_CAUSE_FORBIDDEN,   /* credentials are missing, wrong, or not enough */
	KIND_CAUSE_UNREACHABLE, /* no connection, no TLS, cut */
	KIND_CAUSE_TIMEOUT,
	KIND_CAUSE_OVERLOADED, /* 429, 503 */
	KIND_CAUSE_OLDER,      /* an older version than the one that is held */
	KIND_CAUSE_ANSWER,     /* anything else: the answer is not one that holds a document */
	KIND_CAUSE_HOST,       /* not the server at all: a secret, a certificate or memory here */
	KIND_CAUSES
};

/* A document and its address. Everything is borrowed. */
struct kind_place {
	const struct settings_server *server;
	const char *base;        /* the address: "https://host:port/prefix", no '/' at its end */
	const char *path;        /* as configured; of a watch: the first item's */
	enum settings_type type; /* as configured */
	/* this very document as the agent holds it, from this kind of server (any address); NULL =
	 * not at all */
	const struct part *held;
	bool same_address; /* `held` came from `base` */
	bool forced; /* pull the whole document, whatever is held; an older version is accepted */
	const char *user, *password;        /* auth: basic; NULL = none */
	const char *secret, *session_token; /* auth: access_key; NULL = none */
	const char *token;                  /* of the login; NULL = none */
	size_t max_bytes;                   /* of the document */
	int64_t wall_ms;                    /* now, since 1970; for signatures */
	uint64_t random;                    /* any number, for jitter */
};

struct kind_request {
	const char *method;              /* static: "GET", "POST", "PUT" */
	struct buffer url;               /* with a NUL at its end, which len does not count */
	char *headers[KIND_MAX_HEADERS]; /* "Name: value" */
	size_t header_count;
	struct buffer body; /* of a POST or PUT */
	bool conditional;   /* 304 means: as held */
	bool basic;         /* user and password are sent with it */
	uint64_t hold_ms;   /* of a watch: the server may keep the answer back for so long */
};

void kind_request_init(struct kind_request *r); /* GET, nothing else */
void kind_request_fini(struct kind_request *r); /* wipes */
/* Appends a formatted header line. 0, -ENOMEM, -EMSGSIZE. */
int kind_header(struct kind_request *r, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Appends text to the URL; characters that are not unreserved (RFC 3986), nor in `keep`, as %XX. 0,
 * -ENOMEM, -EMSGSIZE. */
int kind_escape(struct buffer *url, const char *text, size_t len, const char *keep);

int kind_hex_digit(char c); /* 0 to 15, or -1 */

struct document;
struct document_error;
/* Parses a body as JSON, as document_parse(); the error has a message, of memory too. */
int kind_parse_json(const struct buffer *body, struct document **ret_document,
	struct document_error *ret_error);
/* Says why a login or a watch (`what`) failed: denied, busy, or anything else. -EACCES, -EAGAIN or
 * -EPROTO. */
int kind_status_error(long status, const char *what, const char *denied, const char *else_check,
	char why[FILE_WHY]);

struct kind_answer {
	enum settings_type type; /* as which the body is to be validated; never AUTO */
	struct buffer body;      /* the document; its maximum is the place's max_bytes */
	/* equal = the same document; "" = the server names none. Shown to people, compared with
	 * the version of a push: quotes and W/ do not count. Of a web server its ETag, without
	 * quotes when it must not be sent back */
	char version[256];
	char last_modified[64]; /* "" = none, or it must not be sent back */
	/* where versions are ordered: the order they belong to, in the kind's own words; kept with
	 * the document */
	char epoch[128];
	char mismatch[INTEGRITY_WHY]; /* how it does not fit the digests given; "" = it does */
	char note[256]; /* for the log, once: what is unusual about a valid answer; "" = nothing */
	enum kind_cause cause; /* why it was not taken, */
	char why[FILE_WHY];    /* as a sentence */
};

enum kind_verdict {
	KIND_NEW,          /* body, type, version and so on are filled in */
	KIND_SAME,         /* as held (only if something is held) */
	KIND_ABSENT,       /* there is no such document; why */
	KIND_FAILED,       /* why and cause */
	KIND_UNAUTHORIZED, /* the token is invalid by now: log in again, once; why, FORBIDDEN */
	KIND_WHOLE,        /* not the whole document: ask again as if nothing were held */
	KIND_USUAL         /* the meaning is that of the status, by answer.c */
};

/* One document in a watch. */
struct kind_watched {
	const char *path;    /* as configured, borrowed */
	const char *version; /* of what is held; "" = nothing; borrowed */
	/* the state of the watch, kept by the caller from one request to the next: its position in
	 * the kind's own numbers, 0 = from now on; whose numbers these are; how many keys there
	 * were below a prefix */
	uint64_t position, origin[2];
	uint64_t count;
};

struct kind_watch {
	const struct kind_place *place; /* without path and held */
	struct kind_watched *items;
	size_t count; /* 1 to KIND_MAX_WATCHED */
	/* One of the documents changed, or may have. key: the whole name of the changed key, when
	 * the server names it (an item may be a prefix); NULL = unknown. version: NULL = unknown,
	 * or the key is gone. */
	void (*changed)(
		void *arg, size_t item, const char *key, size_t key_len, const char *version);
	void *arg;
	/* Before changed(), where the server sent the whole document with the news: an answer for
	 * read(), as that to a request of build() would be, which the caller may copy. NULL = not
	 * wanted. */
	void (*answered)(void *arg, size_t item, const struct http_client_response *answer);
};

struct kind {
	const char *name;
	bool wraps;    /* documents are within JSON, maybe in base64: an answer is larger */
	bool local;    /* not by HTTP: a file of this host */
	bool stream;   /* a watch is one endless answer: watch_read() gets each line of it */
	bool compares; /* a watch that names a version but the newest is answered at once */

	/* Fills the request for place->path. 0, -ENOMEM, -EMSGSIZE, or -EINVAL with why. */
	int (*build)(const struct kind_place *place, struct kind_request *r, char why[FILE_WHY]);
	/* Checks any whole answer (result OK), into one that kind_answer_init() has set up; its
	 * cause is filled when FAILED. Of place->server it reads only kind and api, and whether
	 * there is a user or a secret (pull/reading.c). */
	enum kind_verdict (*read)(const struct kind_place *place,
		const struct http_client_response *response, struct kind_answer *ret);

	/* Exchange user and password for a token; both NULL = no login. */
	int (*login_build)(
		const struct kind_place *place, struct kind_request *r, char why[FILE_WHY]);
	/* 0, the token (the caller wipes and frees it) and how long it is valid (0 = until the
	 * server rejects it); -EACCES: wrong credentials, -EAGAIN: the server is busy, -ENOTSUP:
	 * this server needs no token, -EPROTO; with why. */
	int (*login_read)(const struct http_client_response *response, char **ret_token,
		uint64_t *ret_lifetime_ms, char why[FILE_WHY]);

	/* True when both documents may be in one watch; NULL = one each. */
	bool (*together)(const char *path, const char *other);
	/* NULL = the kind has no watches. */
	int (*watch_build)(struct kind_watch *w, struct kind_request *r, char why[FILE_WHY]);
	/* Reads a whole answer, or a line of a stream (response->body is the line): calls changed()
	 * for each change and moves the positions. 0; -EAGAIN: the server is busy; -EACCES: the
	 * token is invalid; -ESTALE: the watch must start again (positions are reset, changed() was
	 * called for all items); -EPROTO with why. Where more than KIND_MAX_NEWS is no error of the
	 * server's, anything may have changed. */
	int (*watch_read)(struct kind_watch *w, const struct http_client_response *response,
		char why[FILE_WHY]);
};

extern const struct kind kind_http, kind_etcd, kind_consul, kind_nacos, kind_apollo, kind_spring,
	kind_s3, kind_file;

void kind_answer_init(struct kind_answer *a, size_t max_bytes);
void kind_answer_fini(struct kind_answer *a);
/* Writes the sentence and the cause into the answer. KIND_FAILED. */
enum kind_verdict kind_fail(struct kind_answer *ret, enum kind_cause cause, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* The held part that a request may name, and an answer be compared with; NULL: none is held, or the
 * whole document is pulled whatever is held (`forced`). */
static inline const struct part *kind_held(const struct kind_place *place)
{
	return place->held && !place->held->absent && !place->forced ? place->held : NULL;
}

/* True for the form of an entity-tag (RFC 9110, 8.8.3): "..." or W/"...". No other is sent back. */
bool kind_is_etag(const char *text);
/* Checks the form of a 200 whose body is the document: KIND_NEW or KIND_FAILED. Rejects a body
 * without length or chunking, an empty one, an encoding that was not asked for, an HTML page. */
enum kind_verdict kind_document(const struct kind_place *place,
	const struct http_client_response *r, struct kind_answer *ret);
const struct kind *kind_of(const struct settings_server *server);
/* "not found", "empty", "forbidden", ...; "" for NONE. */
const char *kind_cause_name(enum kind_cause cause);
/* The type of a document: as configured, else by the path's ending (up to '?'), else by the
 * Content-Type, else YAML. */
enum settings_type kind_document_type(const struct kind_place *place, const char *content_type);

#endif
