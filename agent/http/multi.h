/*
 * libcurl's multi interface on the loop: its sockets and its one timeout are watched, and a
 * callback follows each time that libcurl ran.
 *
 * Threads: the loop's. Ownership: the handles and entries are the caller's, and must be off before
 * multi_free(). Errors: when libcurl has no memory in its turn it is called again, a little later.
 * Bounds: MULTI_CONNECTIONS connections of all servers.
 */
#ifndef PULLET_HTTP_MULTI_H
#define PULLET_HTTP_MULTI_H

#include <stdbool.h>

#include <curl/curl.h>

#include "base/loop.h"

#define MULTI_CONNECTIONS 256L /* each server has its own limit of transfers */
#define MULTI_IDLE_CONNECTIONS 64L

struct multi;

/* A handle's. Zeroed at first; fields are private. */
struct multi_entry {
	CURL *easy;
	void *owner;
	struct multi_entry *next, **link;
	unsigned sockets; /* that are watched for it */
	bool lost_one;    /* of them, since libcurl was called */
	int fd;           /* the one that libcurl asked for last */
};

/* turned(arg) is called each time that libcurl ran: handles may have ended. NULL: no memory, or
 * libcurl does not take an option. */
struct multi *multi_new(struct loop *l, void (*turned)(void *arg), void *arg);
void multi_free(struct multi *m);
/* Starts the handle; owner is what multi_next_ended() says. 0 or -errno. */
int multi_add(struct multi *m, struct multi_entry *e, CURL *easy, void *owner);
/* Accepts an entry that is not on, too. */
void multi_remove(struct multi *m, struct multi_entry *e);
/* A socket that is watched for it has a peer. */
bool multi_has_peer(const struct multi_entry *e);
/* The owner of the next handle that has ended, still on; NULL = no more. */
void *multi_next_ended(struct multi *m, CURLcode *ret_code);
/* Drops all idle connections; no handle may be on. Without memory they stay: false. */
bool multi_renew(struct multi *m);
/* Tells whether libcurl has asked to watch a descriptor of that number, and not to stop. */
bool multi_watches(void *multi, int fd);

#endif
