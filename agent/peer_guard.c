/*
 * Connections by descriptor, counted by libzmq's threads in recv(). Surprising: whatever comes out
 * accounts for more than it had on the wire (a header, a MAC, a heartbeat may have been around it),
 * but never for more than was read: so an honest peer owes nothing in the end, and nobody can save
 * up.
 *
 * A descriptor's number is used again: the inode tells sockets apart.
 */
#undef _FORTIFY_SOURCE /* it has a recv() of its own */
#include "peer_guard.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define OVERHEAD 256 /* bytes of a message on the wire, beside those of its parts, at most */
#define SEALED 8

struct connection {
	uint64_t inode; /* 0 = none */
	uint64_t read;
	uint64_t accounted; /* of that */
	uint32_t kept;
	bool sealed, cut;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the table, which is the process's */
static struct connection *connections;                   /* by descriptor */
static size_t size;
static _Atomic uint64_t cuts[PEER_GUARD_SIDES];

/* ---- the table, locked ---- */

static struct connection *find(int fd)
{
	return fd >= 0 && (size_t)fd < size && connections[fd].inode ? &connections[fd] : NULL;
}

/* NULL when memory is short. */
static struct connection *find_or_add(int fd, uint64_t inode)
{
	size_t wanted = fd < 32 ? 64 : 2 * (size_t)fd;
	struct connection *more;

	if ((size_t)fd >= size) {
		more = reallocarray(connections, wanted, sizeof(*more));
		if (!more)
			return NULL;
		memset(&more[size], 0, (wanted - size) * sizeof(*more));
		connections = more;
		size = wanted;
	}
	if (connections[fd].inode != inode)
		connections[fd] = (struct connection){.inode = inode};
	return &connections[fd];
}

static bool is_over(const struct connection *c)
{
	return c->read - c->accounted > (uint64_t)PEER_GUARD_HELD * (c->sealed ? SEALED : 1);
}

/* ---- what comes in ---- */

/* 0 = a thread that is not guarded. */
static int side_of_thread(void)
{
	static _Thread_local int side = -1;
	char name[16] = "";

	if (side < 0) {
		prctl(PR_GET_NAME, name);
		side = name[0] > '0' && name[0] < '0' + PEER_GUARD_SIDES &&
				       strncmp(name + 1, "/ZMQbg/", 7) == 0
			       ? name[0] - '0'
			       : 0;
	}
	return side;
}

/* Is it a pair that the process made for itself? */
static bool is_pair(int fd)
{
	struct sockaddr_storage a;
	socklen_t own = sizeof(a), other = sizeof(a);

	return getsockname(fd, (struct sockaddr *)&a, &own) == 0 && a.ss_family == AF_UNIX &&
	       own == sizeof(sa_family_t) && getpeername(fd, (struct sockaddr *)&a, &other) == 0 &&
	       other == sizeof(sa_family_t);
}

/* The peer learns of it at once, and nothing of the connection stays in the kernel. */
static void shut(int fd)
{
	const struct linger none = {.l_onoff = 1};

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	shutdown(fd, SHUT_RDWR);
}

/* Counts bytes that were read. False: they are too many. */
static bool admit(int fd, size_t bytes, int side)
{
	struct connection *c;
	struct stat st;
	bool good, was_cut;

	if (fstat(fd, &st))
		return true;
	pthread_mutex_lock(&lock);
	c = find_or_add(fd, st.st_ino);
	was_cut = c && c->cut;
	if (c)
		c->read += bytes;
	good = c && !was_cut && (!is_over(c) || is_pair(fd));
	if (c)
		c->cut = !good;
	pthread_mutex_unlock(&lock);
	if (!good && !was_cut) {
		atomic_fetch_add(&cuts[side], 1);
		shut(fd);
	}
	return good;
}

ssize_t recv(int fd, void *data, size_t room, int flags)
{
	ssize_t n = recvfrom(fd, data, room, flags, NULL, NULL);
	int side = n > 0 ? side_of_thread() : 0;

	return side && !admit(fd, (size_t)n, side) ? 0 : n;
}

/* ---- what comes out ---- */

void peer_guard_delivered(int fd, size_t bytes, bool sealed)
{
	struct connection *c;

	pthread_mutex_lock(&lock);
	c = find(fd);
	if (c) {
		c->sealed = sealed;
		c->accounted += bytes + OVERHEAD;
		if (c->accounted > c->read)
			c->accounted = c->read;
	}
	pthread_mutex_unlock(&lock);
}

bool peer_guard_keep(int fd, size_t bytes)
{
	struct connection *c;
	bool cut = false;

	pthread_mutex_lock(&lock);
	c = find(fd);
	if (c && !c->cut) {
		c->kept += (uint32_t)bytes;
		cut = c->cut = c->kept > PEER_GUARD_KEPT;
	}
	if (cut)
		shut(fd); /* locked: libzmq cannot have read from another one of this number */
	pthread_mutex_unlock(&lock);
	if (cut)
		atomic_fetch_add(&cuts[PEER_GUARD_SUBSCRIBERS], 1);
	return !cut;
}

bool peer_guard_take_cut(int fd)
{
	struct connection *c;
	bool cut;

	pthread_mutex_lock(&lock);
	c = find(fd);
	cut = c && c->cut;
	if (cut)
		*c = (struct connection){0};
	pthread_mutex_unlock(&lock);
	return cut;
}

uint64_t peer_guard_cuts(enum peer_guard_side side)
{
	return atomic_load(&cuts[side]);
}
