/*
 * A bound on the memory that peers of the push channel can take.
 *
 * No option of libzmq bounds it: the high-water mark counts whole messages, the size limit a frame,
 * a message may have parts without end, and subscriptions are kept. So bytes are counted before
 * libzmq sees them, and a peer over its limit is cut off: libzmq finds the end of the connection,
 * and frees its memory.
 *
 * A publisher: the bytes read are compared with the whole messages that libzmq has delivered. Parts
 * of two messages cannot interleave on one connection, so the difference lies in libzmq, as a
 * message that never ends or as messages that wait.
 *
 * A subscriber: its stream is followed (zmtp.h), and only subscriptions of one part pass. While
 * more of them wait than PEER_GUARD_WAITING, no subscriber is read: that is no fault. Topics in
 * libzmq's trie are summed up (kept_topics.h): each subscriber may have PEER_GUARD_SHARE, whatever
 * the others do, and all together PEER_GUARD_POOL above that; beyond, the subscriber with the most
 * is cut off.
 *
 * It works by recv(), which this module defines for the whole program, as libzmq's threads call it:
 * the kernel's count, read by another thread, comes late on a busy machine, and a part of no bytes
 * is 2 on the wire and 64 in memory. In the same way it sees what libzmq decrypts by libsodium
 * (CURVE). Threads whose names begin with the number of a side (ZMQ_THREAD_NAME_PREFIX) are
 * guarded; in all others these functions do as ever. TCP and ipc alike. No libzmq here.
 *
 * Threads: any; one of libzmq's for each side. Errors: none; without memory to count a connection
 * it is cut off. Bounds: 48 bytes for each number of a descriptor, 1.2 kB for a subscriber.
 */
#ifndef PULLET_PEER_GUARD_H
#define PULLET_PEER_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes read and not delivered: at most 32 times that in memory. 8 times as many within CURVE,
 * where a part has 35 bytes at least. */
#define PEER_GUARD_HELD (384u << 10)
/* Bytes in memory of subscriptions that wait for the owner. */
#define PEER_GUARD_WAITING (512u << 10)
/* Bytes in memory of topics: 500 that others have too fit into a share. */
#define PEER_GUARD_SHARE (36u << 10)
#define PEER_GUARD_POOL (1u << 20)

enum peer_guard_side { /* the peers; values for ZMQ_THREAD_NAME_PREFIX */
	PEER_GUARD_PUBLISHERS = 1,
	PEER_GUARD_SUBSCRIBERS,
	PEER_GUARD_SIDES
};

struct peer_guard_cut {
	const char *why;
	char address[64]; /* "" = none */
};

/* ---- publishers ---- */

/* Counts a whole message that libzmq delivered from this descriptor (ZMQ_SRCFD). sealed: by
 * CURVE. */
void peer_guard_delivered(int fd, size_t bytes, bool sealed);
/* Tells, once, whether an ended connection was cut off here. */
bool peer_guard_take_cut(int fd);

/* ---- subscribers ---- */

/* Returns the descriptor that becomes readable when the owner must take subscriptions; the process
 * has one. Or -errno. */
int peer_guard_wakes(void);
/* Returns the bytes of subscriptions that libzmq has: ask before the socket. */
uint64_t peer_guard_passed(void);
/* The socket was empty: all that had passed before is taken. */
void peer_guard_taken(uint64_t passed);
/* What connected subscribers hold now. */
struct peer_guard_held {
	uint64_t subscribers;   /* with a subscription at least */
	uint64_t subscriptions; /* of all of them */
};
void peer_guard_get_held(struct peer_guard_held *ret_held);
/* Copies the last cut of a subscriber. */
void peer_guard_last_cut(struct peer_guard_cut *ret_cut);

/* Connections cut off so far. */
uint64_t peer_guard_cuts(enum peer_guard_side side);

#endif
