/*
 * What the files of the simulated push channel share: publishers, links (one endpoint of one
 * subscriber each), and letters (messages under way).
 *
 * Threads: one. Bounds: the tables below.
 */
#ifndef SIM_PUSH_NETWORK_H
#define SIM_PUSH_NETWORK_H

#include "push/numbers.h"
#include "push/session.h"
#include "push/subscriber.h"
#include "relay/relay.h"
#include "tests/sim/push.h"

#define PUSH_MAX_PUBLISHERS 64
#define PUSH_MAX_LINKS 2048
#define PUSH_MAX_LETTERS 4096 /* beyond, a message is lost */
#define PUSH_MAX_UPSTREAMS 4
#define PUSH_NAME 96

enum link_state {
	LINK_UNUSED,
	LINK_CLOSED,   /* no socket */
	LINK_DIALING,  /* attempts, with pauses that grow */
	LINK_GREETING, /* a handshake is under way */
	LINK_UP,
	LINK_MUTE, /* up, but nothing arrives */
	LINK_DEAF  /* ended, and libzmq does not try again; what is in its queue is taken */
};

struct link {
	enum link_state state;
	struct session *session; /* in the process of its subscriber */
	const struct subscriber *subscriber;
	struct push_publisher *relay; /* whose the subscriber is; NULL = an agent's */
	struct push_publisher *to;    /* while connected */
	unsigned host;
	char endpoint[PUSH_NAME];
	uint32_t serial; /* of the connection or attempt: late events of another one are dropped */
	uint64_t timer, armed_ms; /* of the session's deadline */
	uint64_t last_due_us;     /* messages arrive in order */
	uint64_t subscribed_us;
	unsigned attempts;
	bool greets_late; /* the session has not heard of its handshake yet */
};

struct letter {
	unsigned users; /* events under way */
	unsigned next_free;
	struct push_message m;
	char topic[PUSH_MAX_TOPIC + 2];
	char envelope[1024];
	size_t topic_len, envelope_len;
	bool bare, has_more;
};

struct push_publisher {
	char endpoint[PUSH_NAME];
	unsigned host;
	bool runs;
	struct push_numbers numbers;
	uint64_t serial; /* counts starts */
	uint64_t hangs_until_us;
	uint64_t full_until_us; /* the queue of some subscriber of a relay is */
	/* of a relay */
	bool relays;
	char upstreams[PUSH_MAX_UPSTREAMS][PUSH_NAME];
	size_t upstream_count;
	struct relay *relay;
	struct subscriber *listens;
	uint64_t turn; /* counts what may call for another moment of its turn */
};

struct push_network {
	struct push_surroundings around;
	struct push_faults faults;
	struct push_totals totals;
	unsigned host;
	uint64_t spread_ms;              /* of relays */
	struct push_publisher *starting; /* the relay whose subscriber is being made */
	struct push_publisher publishers[PUSH_MAX_PUBLISHERS];
	size_t publisher_count;
	struct link links[PUSH_MAX_LINKS];
	size_t link_count; /* used ones are among the first so many */
	struct letter letters[PUSH_MAX_LETTERS];
	unsigned letter_count, free_letter; /* one more than its place; 0 = none */
	size_t under_way;
};

extern struct push_network *const push_network;
extern const struct sys push_sys; /* of publishers and relays: a clock, and STREAM_PUSH */

bool push_reaches(unsigned from, unsigned to);
/* How long something takes on its way. */
uint64_t push_delay_us(void);
/* Once in n times, of STREAM_PUSH. */
bool push_strikes(uint64_t n);
struct push_publisher *push_find_publisher(const char *endpoint);
/* Sends one message to the links that subscribed to it, unless the publisher hangs. */
void push_send(struct push_publisher *p, const char *topic, const struct push_message *m);

/* ---- push_letter.c: messages under way ---- */

/* Sends a message to all that subscribed to it, with what may become of it. */
void push_post(struct push_publisher *p, const char *topic, const struct push_message *m);

/* ---- push_link.c: connections ---- */

struct link *push_link_new(
	struct session *session, const struct subscriber *subscriber, const char *endpoint);
void push_link_free(struct link *l);
/* Opens a socket: attempts begin. */
void push_link_open(struct link *l);
void push_link_close(struct link *l);
/* Has the session's deadline come when it is due; to be called after each call into the session. */
void push_link_arm(struct link *l);
/* A connection ends: libzmq tries again, or the socket is deaf. Nothing where there is none. */
void push_link_end(struct link *l);
void push_link_deafen(struct link *l);
void push_link_mute(struct link *l);
/* A letter arrives. */
void push_link_hear(struct link *l, const struct letter *letter);
/* Whether its host sleeps, and until when. */
bool push_link_sleeps(const struct link *l, uint64_t *ret_until_us);

/* ---- push_subscriber.c: subscriber.h ---- */

/* Opens a socket as the push thread does, with the agent's own key. */
void push_subscriber_open(const struct subscriber *p, struct link *l);
/* The i-th of its filters, which are prefixes; NULL behind the last. */
const char *push_subscriber_filter(const struct subscriber *p, size_t i);
bool push_subscriber_wants(const struct subscriber *p, const char *topic);

/* ---- push_relay.c ---- */

void push_relay_start(struct push_publisher *p);
void push_relay_stop(struct push_publisher *p);
void push_relay_change(struct push_publisher *p, const char *topic, const char *version);
void push_relay_join(struct push_publisher *p, const struct link *l);

#endif
