/* Rights from the kernel's record of a connection. Surprising: the primary group that counts is
 * that of the user database, not that of the connected process, which a setgid program chooses. */
#include "httpd/peer.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "files/user.h"

#define FIRST_GROUPS 64 /* the first guess, in one call for nearly everybody */

static bool lists_group(const gid_t *groups, size_t count, gid_t group)
{
	for (size_t i = 0; i < count; i++)
		if (groups[i] == group)
			return true;
	return false;
}

/* Is it among the supplementary groups? Asks again with the size the kernel wants. */
static bool is_member(int fd, gid_t group)
{
	gid_t first[FIRST_GROUPS], *more = NULL;
	socklen_t len = sizeof(first);
	bool found;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, first, &len) == 0)
		return lists_group(first, len / sizeof(*first), group);
	if (errno != ERANGE || len > PEER_MAX_GROUPS * sizeof(*more))
		return false;
	more = malloc(len);
	found = more && getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, more, &len) == 0 &&
		lists_group(more, len / sizeof(*more), group);
	free(more);
	return found;
}

static bool is_operator(const struct sys *sys, int fd, const struct ucred *cred, gid_t operators)
{
	gid_t primary;

	if (operators == PEER_NO_GROUP)
		return false;
	if (is_member(fd, operators))
		return true;
	return cred->gid == operators && user_primary_group(sys, cred->uid, &primary) == 0 &&
	       primary == operators;
}

void peer_identify(const struct sys *sys, int fd, gid_t operators, struct peer *ret_peer)
{
	int domain = 0;
	socklen_t len = sizeof(domain);
	struct ucred cred;

	*ret_peer = (struct peer){.uid = (uid_t)-1, .right = RIGHT_READ};
	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) || domain != AF_UNIX)
		return;
	len = sizeof(cred);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) || cred.uid == (uid_t)-1)
		return;
	ret_peer->local = true;
	ret_peer->uid = cred.uid;
	if (cred.uid == 0 || cred.uid == geteuid())
		ret_peer->right = RIGHT_OWN;
	else if (is_operator(sys, fd, &cred, operators))
		ret_peer->right = RIGHT_OPERATE;
}
