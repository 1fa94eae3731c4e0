/*
 * One request to a configuration server and its answer: secrets are read, a token is fetched where
 * the kind needs one, the kind's request is sent.
 *
 * Requests of one server share its session: one of them logs in, the others wait for that. A
 * request sent later than exchange_start() asks the backoff of its address first. Files of this
 * host are read by a thread, and answer as a web server would.
 *
 * Threads: the loop's. Ownership: everything in exchange_request is borrowed until the end or
 * exchange_cancel(). Errors: reported once by ended() or failed(), never from inside
 * exchange_start(). Bounds: one login and one repetition with a fresh token per exchange; bodies at
 * most max_bytes, that of a login EXCHANGE_MAX_LOGIN; EXCHANGE_MAX_WORDS of an error's are read.
 */
#ifndef PULLET_EXCHANGE_H
#define PULLET_EXCHANGE_H

#include "pull/backoff.h"
#include "pull/kinds/kind.h"
#include "base/sys.h"
#include "http/client.h"
#include "base/worker.h"

#define EXCHANGE_MAX_LOGIN (256u << 10)
#define EXCHANGE_MAX_WORDS (64u << 10)

struct exchange;

/* A server's token. Zeroed at first. Fields are private. */
struct exchange_session {
	char *token;
	uint64_t expires_ms;            /* UINT64_MAX = until the server rejects it */
	bool open;                      /* the server asks for no login */
	uint64_t serial;                /* of the token */
	uint64_t logins;                /* that were answered */
	struct exchange *first, **last; /* the queue for a token; the first logs in */
};

struct exchange_env {
	const struct sys *sys;
	struct http_client *transport;
	struct worker *files; /* NULL = no file is ever asked for */
	const char *ca_file;  /* NULL = the system's */
};

struct exchange_calls {
	/* As kind.build. */
	int (*build)(void *arg, const struct kind_place *place, struct kind_request *r,
		char why[FILE_WHY]);
	/* An answer, or why there is none (response->result); that of a login only where it means
	 * that nothing is served at this address now. place has no secrets. May call
	 * exchange_again(), else the exchange is over. */
	void (*ended)(void *arg, const struct kind_place *place,
		const struct http_client_response *response);
	/* Nothing was sent, or the login failed. The exchange is over. OVERLOADED: this address is
	 * in backoff by now, another may not be. */
	void (*failed)(void *arg, enum kind_cause cause, const char *why);
	http_client_line line; /* NULL, or as in transport_request */
};

struct exchange_request {
	const struct settings_server *server;
	struct exchange_session *session;
	struct backoff *backoff; /* of place.base, asked by the caller before; NULL = none */
	struct kind_place place; /* without server and secrets */
	uint64_t timeout_ms;     /* of the answer, beside what a watch is held */
	bool document; /* the answer is the document at place.path: its connection may be used
			* again, for that one only */
	const struct exchange_calls *calls;
	void *arg;
};

/* Starts it. 0 and *ret_exchange, or -errno with a sentence: a secret or the request is bad. */
int exchange_start(const struct exchange_env *env, const struct exchange_request *request,
	struct exchange **ret_exchange, char why[FILE_WHY]);
/* Takes the exchange and ends it at once, without a call. NULL is fine. If it was logging in, the
 * next of its session does so now: where that cannot be sent, its failed() is called before this
 * returns. */
void exchange_cancel(struct exchange *x);
/* Within ended(): sends the request again; with a new token (if there is a login, and once), or
 * else for the whole document (once). False: the exchange is over. */
bool exchange_again(struct exchange *x, bool login);
/* Within ended(): keeps the exchange until exchange_end(); exchange_again() may be called until
 * then. ret_response takes the whole answer, with its bodies. If the exchange is cancelled before,
 * dropped(arg) is called. */
void exchange_hold(struct exchange *x, struct http_client_response *ret_response,
	void (*dropped)(void *arg), void *arg);
/* Ends a held exchange: sends it again after exchange_again(), else takes it. */
void exchange_end(struct exchange *x);
bool exchange_held(const struct exchange *x);
/* What it waits for, and where to look; NULL = that is not known. */
const char *exchange_waits_for(const struct exchange *x);
/* Within ended(): its answer, to unpack it. */
struct http_client_response *exchange_answer(struct exchange *x);
/* True when the request answered by ended() was conditional. */
bool exchange_conditional(const struct exchange *x);
/* Wipes a token that is no longer valid: the next exchange logs in. */
void exchange_session_forget(struct exchange_session *s);
/* Wipes the token. No exchange of the session may be under way. */
void exchange_session_fini(struct exchange_session *s);

#endif
