/*
 * The user at the other end of a control connection, and its rights.
 *
 * Rights: root and the agent's own user may do everything. A member of the operators' group
 * (`agent: {operators: GROUP}`) may do the same; only the control socket keeps no places for it.
 * Everybody else reads: names, states, errors and metrics, never a value. TCP clients
 * read.
 *
 * A member has the group among the supplementary groups the kernel recorded at connect
 * (SO_PEERGROUPS), or whose primary group it is by the user database. The group of SO_PEERCRED
 * alone proves nothing: any setgid program lends it.
 *
 * Threads: any. Errors: peer_identify() never fails: an unknown user reads. Bounds:
 * PEER_MAX_GROUPS groups; the user database as in files/user.h, read only where SO_PEERCRED names
 * the group.
 */
#ifndef PULLET_PEER_H
#define PULLET_PEER_H

#include <stdbool.h>

#include "base/sys.h"

#define PEER_MAX_GROUPS 65536u /* the kernel's own bound (NGROUPS_MAX) */
#define PEER_NO_GROUP ((gid_t)-1)

/* In their order: each includes those before it. */
enum right {
	RIGHT_READ,    /* look, without values */
	RIGHT_OPERATE, /* see values, and change */
	RIGHT_OWN      /* the same, as root or the agent's own user */
};

struct peer {
	bool local; /* a Unix socket: uid is known */
	uid_t uid;
	enum right right;
};

/* Identifies the other end of a connected socket. operators: PEER_NO_GROUP = there are none. */
void peer_identify(const struct sys *sys, int fd, gid_t operators, struct peer *ret_peer);

#endif
