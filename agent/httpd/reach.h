/*
 * Whether members of the operators' group can open the control socket: `agent: {operators: GROUP}`
 * grants a right, but the socket's group and the modes of the directories above it decide access.
 *
 * By modes and this host's user database (nsswitch.conf), as they are now; where socket or
 * directory are not there yet, as the agent would make them. Access lists are ignored, and so is
 * what a mount or a namespace hides.
 *
 * Threads: one, that may wait for a directory service: for `pulletd -t` and `pullet doctor`.
 * Ownership: texts are the caller's. Bounds: REACH_GROUPS groups of a user; more do not count.
 */
#ifndef PULLET_REACH_H
#define PULLET_REACH_H

#include <sys/types.h>

#define REACH_GROUPS 256
#define REACH_TEXT 512

enum reach {
	REACH_GOOD,
	REACH_EMPTY,   /* nobody is in the group */
	REACH_READERS, /* it is the socket's own group: its readers may change things */
	REACH_NOBODY   /* no member of it can open the socket */
};

/* operators: a group; agent: the agent's own group, (gid_t)-1 = not known: then good, where it
 * would matter. Unless good: the fault and the remedy. */
enum reach reach_check(gid_t operators, const char *runtime_dir, gid_t agent,
	char ret_why[REACH_TEXT], char ret_remedy[REACH_TEXT]);

#endif
