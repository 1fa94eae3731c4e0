/*
 * Shares of the users of the control socket in its bounds: connections, clients that wait, bytes of
 * unread answers.
 *
 * One user has at most a quarter of all, all readers together five eighths, readers and operators
 * together three quarters. Root and the agent's own user (peer.h) have no share: what is left is
 * kept for them. The first of a user, or of a class, is never denied for its size.
 *
 * Threads: any. Ownership: none. Wake-ups, I/O: none.
 */
#ifndef PULLET_SHARE_H
#define PULLET_SHARE_H

#include <stddef.h>

#include "httpd/peer.h"

/* Amounts held already, as they count for one peer that asks. */
struct share_held {
	size_t user;    /* by the same user */
	size_t readers; /* by all that only read */
	size_t others;  /* by those and operators */
	size_t all;
};

enum share {
	SHARE_ROOM,
	SHARE_OF_USER,  /* its share is used up */
	SHARE_OF_CLASS, /* that of readers, or of readers and operators */
	SHARE_OF_ALL
};

/* Counts the amount that holder has, for the peer that asks. */
void share_add(
	struct share_held *held, const struct peer *asks, const struct peer *holder, size_t amount);
/* Decides whether the peer that asks may have amount more of total. */
enum share share_check(
	size_t total, const struct peer *asks, const struct share_held *held, size_t amount);

#endif
