/*
 * A bound on the memory that one peer of the push channel can take.
 *
 * No option of libzmq bounds it: the high-water mark counts whole messages, the size limit a frame,
 * and a message may have parts without end. So what libzmq's thread reads from a connection is
 * counted, and compared with what has come out of libzmq as whole messages: parts of two messages
 * cannot interleave on one connection, so what was read and is not accounted for lies in libzmq, as
 * a message that never ends or as messages that nobody has taken. Who is over the budget is cut off
 * before libzmq sees the bytes: it finds the end of the connection, and frees what it had of it.
 *
 * It works by recv(), which this module defines for the whole program, as libzmq's threads call it:
 * a look from another thread, at the kernel's count, comes as late as the machine is busy, and a
 * part of no bytes is 2 on the wire and 64 in memory. Threads whose names begin with the number of
 * a side (ZMQ_THREAD_NAME_PREFIX) are guarded; in all others recv() is what it always was. TCP and
 * ipc alike. No libzmq here.
 *
 * Threads: any. Errors: none; a connection that cannot be counted for want of memory is cut off.
 * Bounds: 40 bytes for each number of a descriptor.
 */
#ifndef PULLET_PEER_GUARD_H
#define PULLET_PEER_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Read, and not accounted for: at most 32 times that in memory. Within CURVE it is 8 times as much,
 * as a part has 35 bytes at least there. */
#define PEER_GUARD_HELD (384u << 10)
/* Topics that one subscriber names while it is connected: about 64 times that in memory. */
#define PEER_GUARD_KEPT (56u << 10)

enum peer_guard_side { /* who is guarded against; values for ZMQ_THREAD_NAME_PREFIX */
	PEER_GUARD_PUBLISHERS = 1,
	PEER_GUARD_SUBSCRIBERS,
	PEER_GUARD_SIDES
};

/* A whole message of so many bytes came out, from the connection with this descriptor
 * (ZMQ_SRCFD). sealed: by CURVE. */
void peer_guard_delivered(int fd, size_t bytes, bool sealed);
/* So many bytes of a topic stay in libzmq. False: too many, and the connection is cut off. */
bool peer_guard_keep(int fd, size_t bytes);
/* Was the connection that libzmq says has ended cut off here? Once. */
bool peer_guard_take_cut(int fd);
/* Connections cut off so far. */
uint64_t peer_guard_cuts(enum peer_guard_side side);

#endif
