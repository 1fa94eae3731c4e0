/*
 * The policy of one endpoint of the push channel: which messages are news, when messages may have
 * been missed, when the publisher is silent, when the socket is given up and replaced. No socket,
 * no thread, no libzmq: the owner passes what its sockets say, and does what the answer says.
 *
 *             CONNECTED         GREETED
 *   DIALING ------------> GREETING ----> UP         GREETING, LOST --RETRIED--> DIALING
 *   UP ------ENDED------> LOST                      LOST, CLOSED --deadline---> DIALING, rebuilt
 *   any ----failure-----> CLOSED                    UP ------silent-----------> DIALING, rebuilt
 *   DIALING --RETRIED---> CLOSED where the endpoint has a name, else DIALING
 *
 * Missed messages make all topics pull, or the listener hears of it: after a handshake, a new
 * epoch, and silence. Times grow from reconnect_ms to retry_max_ms while sockets are replaced in
 * vain.
 *
 * Threads: one owner; session_get_status() from any. Ownership: the setup's texts are borrowed.
 * Errors: none. Bounds: one session is of a fixed size.
 */
#ifndef PULLET_PUSH_SESSION_H
#define PULLET_PUSH_SESSION_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/log.h"
#include "base/sys.h"
#include "push/endpoint.h"
#include "push/topics.h"

#define SESSION_SILENT_HEARTBEATS 3

enum session_phase {
	SESSION_DIALING,  /* the socket tries to connect, again and again */
	SESSION_GREETING, /* connected; a handshake is under way */
	SESSION_UP,       /* messages come */
	SESSION_LOST,     /* the connection ended; the socket tries again, or is deaf for ever */
	SESSION_CLOSED    /* given up: no socket until the deadline */
};

enum session_event {
	SESSION_CONNECTED,
	SESSION_GREETED, /* the handshake succeeded */
	SESSION_RETRIED, /* the socket itself tries again */
	SESSION_ENDED,   /* a connection did */
	/* failures: the answer is SESSION_CLOSE, where nothing else is said */
	SESSION_CUT,          /* the publisher sent too much: the connection was cut off */
	SESSION_UNANSWERED,   /* derived: SESSION_REJECTED that came late */
	SESSION_REJECTED,     /* a handshake ended without a reason */
	SESSION_MISMATCHED,   /* CURVE on one side only */
	SESSION_UNDECIPHERED, /* by this key */
	SESSION_BROKEN,       /* another fault of protocol in the handshake */
	SESSION_DENIED,       /* not on the publisher's list of keys */
	SESSION_NO_PUBLISHER, /* derived: SESSION_ENDED before a handshake */
	SESSION_UNREACHABLE,  /* derived: SESSION_RETRIED before a connection, by name */
	SESSION_NOBODY,       /* the same, by address: the socket goes on trying */
	SESSION_NO_SOCKET,    /* the owner cannot open one */
	SESSION_NO_FILTER,    /* the owner cannot change the socket's subscriptions */
	SESSION_EVENTS
};

enum session_action {
	SESSION_NONE,
	SESSION_CLOSE,  /* close the socket, if there is one */
	SESSION_REBUILD /* close it, and open another one */
};

struct session_setup {
	const struct sys *sys;
	const struct subscriber_endpoint *at;
	const char *public_key; /* the agent's own when it is logged; "" = a new one each time */
	size_t number;          /* of the endpoint */
	const struct subscriber_listener *listener; /* zeroed = topics are hinted at; borrowed */
	struct push_topics *topics;                 /* borrowed; they have this endpoint */
};

struct session { /* fields are private, but for those that the owner may read */
	const struct sys *sys;
	struct subscriber_endpoint at; /* readable */
	const char *public_key;
	size_t number; /* readable */
	const struct subscriber_listener *listener;
	struct push_topics *topics;
	uint64_t reconnect_ms, retry_max_ms; /* readable: the socket's own; random for each */
	enum session_phase phase;            /* readable */
	uint64_t handshake_ms;               /* when the one under way began */
	uint64_t deadline_ms; /* of a rebuild while LOST or CLOSED, else of silence; 0 = none */
	uint64_t retry_ms;    /* grows while rebuilding fails */
	bool heard_heartbeat; /* in this connection: silence means something */
	bool half_dialled;    /* a name, by one of two families in vain */
	bool only_ipv4;       /* readable: the family of a name's address, the other one after each
			       * socket that reached nobody */
	char epoch[sizeof(((struct push_message *)0)->epoch)];
	struct log_limit log_limit, change_log;
	bool quiet; /* its last loss or silence was not logged, nor is its end */
	_Atomic int state;
	const char *_Atomic error;
	_Atomic uint64_t messages, heartbeats, bad, gaps, epochs, connects, rebuilds, refused, cuts,
		last_message_ms;
};

struct session_message {
	const char *topic;    /* NUL-terminated where it has at most PUSH_MAX_TOPIC bytes */
	const char *envelope; /* NULL = none */
	size_t topic_len, envelope_len;
	bool has_more; /* frames */
};

/* Begins in SESSION_DIALING: a socket is about to be opened. */
void session_init(struct session *s, const struct session_setup *setup);
/* Replaces the topics, which follow the ones before (push_topics_follow()). */
void session_set_topics(struct session *s, struct push_topics *topics);

/* Takes one message as it came. */
void session_hear(struct session *s, const struct session_message *m, uint64_t now_ms);
/* Takes one event: SESSION_NONE, or SESSION_CLOSE. */
enum session_action session_note(struct session *s, enum session_event event, uint64_t now_ms);
/* Gives up because of the agent's own key; why: constant. There is no socket. */
void session_refuse_key(struct session *s, const char *why, uint64_t now_ms);
/* Nothing connects it any more: shows that from now on. */
void session_end(struct session *s);
/* Returns when to call session_due(); 0 = not by itself. */
uint64_t session_deadline_ms(const struct session *s);
/* SESSION_NONE before the deadline, else SESSION_REBUILD: the session is in SESSION_DIALING then.
 */
enum session_action session_due(struct session *s, uint64_t now_ms);

void session_get_status(const struct session *s, struct subscriber_status *ret_status);

#endif
