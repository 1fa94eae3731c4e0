/*
 * A bound on the memory that peers of the push channel can take.
 *
 * No option of libzmq bounds it: the high-water mark counts whole messages, the size limit a frame,
 * a message may have parts without end, and what a subscriber subscribed to is kept. So what
 * libzmq's threads read is looked at before libzmq sees it; who goes too far is cut off: libzmq
 * finds the end of the connection instead, and frees what it had of it.
 *
 * A publisher: what was read is compared with what has come out of libzmq as whole messages. Parts
 * of two messages cannot interleave on one connection, so what is not accounted for lies in libzmq,
 * as a message that never ends or as messages that nobody has taken.
 *
 * A subscriber: its stream is followed (zmtp.h), and only subscriptions of one part pass. While
 * more of them wait than PEER_GUARD_WAITING nothing is read, from anybody: that is no fault. Topics
 * that stay in libzmq's trie are summed up (kept_topics.h): each subscriber may have
 * PEER_GUARD_SHARE, whatever the others do, and all together PEER_GUARD_POOL above that; over it
 * the one with the most is cut off.
 *
 * It works by recv(), which this module defines for the whole program, as libzmq's threads call it:
 * a look from another thread, at the kernel's count, comes as late as the machine is busy, and a
 * part of no bytes is 2 on the wire and 64 in memory. In the same way it sees what libzmq decrypts
 * by libsodium (CURVE). Threads whose names begin with the number of a side
 * (ZMQ_THREAD_NAME_PREFIX) are guarded; in all others these functions are what they always were.
 * TCP and ipc alike. No libzmq here.
 *
 * Threads: any; one of libzmq's for each side. Errors: none; a connection that cannot be counted
 * for want of memory is cut off. Bounds: 48 bytes for each number of a descriptor, 1.2 kB for a
 * subscriber.
 */
#ifndef PULLET_PEER_GUARD_H
#define PULLET_PEER_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Read, and not accounted for: at most 32 times that in memory. Within CURVE it is 8 times as much,
 * as a part has 35 bytes at least there. */
#define PEER_GUARD_HELD (384u << 10)
/* Subscriptions that the owner has not taken yet, in memory. */
#define PEER_GUARD_WAITING (512u << 10)
/* Topics, in memory. 500 that others have too fit into a share. */
#define PEER_GUARD_SHARE (36u << 10)
#define PEER_GUARD_POOL (1u << 20)

enum peer_guard_side { /* who is guarded against; values for ZMQ_THREAD_NAME_PREFIX */
	PEER_GUARD_PUBLISHERS = 1,
	PEER_GUARD_SUBSCRIBERS,
	PEER_GUARD_SIDES
};

struct peer_guard_cut {
	const char *why;
	char address[64]; /* "" = none */
};

/* ---- publishers ---- */

/* A whole message of so many bytes came out, from the connection with this descriptor
 * (ZMQ_SRCFD). sealed: by CURVE. */
void peer_guard_delivered(int fd, size_t bytes, bool sealed);
/* Was the connection that libzmq says has ended cut off here? Once. */
bool peer_guard_take_cut(int fd);

/* ---- subscribers ---- */

/* A descriptor that becomes readable when the owner is to look for subscriptions; the process has
 * one. Or -errno. */
int peer_guard_wakes(void);
/* What has gone to libzmq for good: ask before the socket is. */
uint64_t peer_guard_passed(void);
/* The socket had nothing more: all that had passed then is taken. */
void peer_guard_taken(uint64_t passed);
/* The last one that was cut off. */
void peer_guard_last_cut(struct peer_guard_cut *ret_cut);

/* Connections cut off so far. */
uint64_t peer_guard_cuts(enum peer_guard_side side);

#endif
