/*
 * Connections by descriptor, counted by libzmq's threads in recv(). Surprising: a delivered message
 * accounts for more than it had on the wire (a header, a MAC, a heartbeat may have been around it),
 * but never for more than was read: so an honest peer owes nothing in the end, and no peer can save
 * up.
 *
 * A descriptor's number is used again: the inode tells sockets apart. libzmq does not report a
 * connection that it closed itself: its record is freed when the memory is needed.
 *
 * Waiting subscriptions are not counted one by one: when the socket has none left, all that
 * libzmq's thread had read before its last call here are taken.
 */
#undef _FORTIFY_SOURCE /* it has a recv() of its own */
#include "push/peer_guard.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

#include "push/kept_topics.h"
#include "push/zmtp.h"

#define OVERHEAD 256 /* bytes of a message on the wire, beside those of its parts, at most */
#define SEALED 8
#define WAITING 160     /* bytes in memory of a subscription that waits, beside twice its topic's */
#define AT_ONCE 1024    /* bytes a read: a larger burst fragments libzmq's heap */
#define TIDY (1u << 20) /* bytes taken or gone, then the fragmented heap is trimmed */
#define PAUSE_NS 1000000
/* Rounds of both threads until libzmq has freed a connection; two are needed. */
#define ROUNDS 4

struct stream {
	struct zmtp zmtp;
	struct kept_holder topics;
};

struct connection {
	uint64_t inode; /* 0 = none */
	uint64_t read;
	uint64_t accounted;    /* of that */
	struct stream *stream; /* stays, for the next connection of this number */
	bool sealed, cut;
	bool subscribes; /* and has not ended, as far as this module knows */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the table, which is the process's */
static struct connection *connections;                   /* by descriptor */
static size_t size;
static _Atomic uint64_t cuts[PEER_GUARD_SIDES];

/* of subscribers, locked */
static pthread_cond_t taking = PTHREAD_COND_INITIALIZER;
static struct kept_topics kept;
static size_t subscribers;
static size_t subscribed; /* of them with a topic at least */
static size_t leaving;    /* bytes of topics of ended connections that libzmq may still hold */
static unsigned rounds;
static bool came;                       /* libzmq's thread was here since the owner was */
static uint64_t arrived, passed, taken; /* bytes in memory of subscriptions, since the start */
static uint64_t tidied;                 /* of those taken */
static int wakes = -1;                  /* eventfd */
static bool woken;
static struct peer_guard_cut last_cut;
static _Thread_local int reading = -1; /* the connection that libzmq's thread is at */

/* ---- the table, locked ---- */

static struct connection *find_connection(int fd)
{
	return fd >= 0 && (size_t)fd < size && connections[fd].inode ? &connections[fd] : NULL;
}

static void forget_topics(struct connection *c)
{
	size_t before = kept_topics_cost(&kept);

	if (!c->subscribes)
		return;
	subscribed -= kept_holder_count(&c->stream->topics) > 0;
	kept_topics_leave(&kept, &c->stream->topics);
	leaving += before - kept_topics_cost(&kept);
	rounds = 0;
	c->subscribes = false;
	subscribers--;
}

static void begin_connection(struct connection *c, uint64_t inode, int side)
{
	forget_topics(c);
	*c = (struct connection){.inode = inode, .stream = c->stream};
	if (side != PEER_GUARD_SUBSCRIBERS)
		return;
	if (!c->stream)
		c->stream = malloc(sizeof(*c->stream));
	if (c->stream)
		*c->stream = (struct stream){0};
	c->subscribes = c->stream;
	c->cut = !c->subscribes;
	subscribers += c->subscribes;
}

/* NULL when memory is short. */
static struct connection *find_or_add_connection(int fd, uint64_t inode, int side)
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
		begin_connection(&connections[fd], inode, side);
	return &connections[fd];
}

static bool holds_too_much(const struct connection *c)
{
	return c->read - c->accounted > (uint64_t)PEER_GUARD_HELD * (c->sealed ? SEALED : 1);
}

/* A pair of sockets that the process made for itself has no addresses. */
static bool is_own_pair(int fd)
{
	struct sockaddr_storage a;
	socklen_t own = sizeof(a), other = sizeof(a);

	return getsockname(fd, (struct sockaddr *)&a, &own) == 0 && a.ss_family == AF_UNIX &&
	       own == sizeof(sa_family_t) && getpeername(fd, (struct sockaddr *)&a, &other) == 0 &&
	       other == sizeof(sa_family_t);
}

/* ---- cutting off ---- */

static void print_address(int fd, char text[sizeof(last_cut.address)])
{
	struct sockaddr_storage a = {0};
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)&a;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&a;
	socklen_t len = sizeof(a);
	char host[INET6_ADDRSTRLEN] = "";

	*text = '\0';
	if (getpeername(fd, (struct sockaddr *)&a, &len))
		return;
	if (a.ss_family == AF_INET && inet_ntop(AF_INET, &v4->sin_addr, host, sizeof(host)))
		snprintf(text, sizeof(last_cut.address), "%s:%u", host, ntohs(v4->sin_port));
	if (a.ss_family == AF_INET6 && inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof(host)))
		snprintf(text, sizeof(last_cut.address), "[%s]:%u", host, ntohs(v6->sin6_port));
}

/* Ends it at once; the kernel keeps nothing of it. */
static void shut_connection(int fd)
{
	const struct linger none = {.l_onoff = 1};

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	shutdown(fd, SHUT_RDWR);
}

/* Locked. */
static void cut_off(int fd, struct connection *c, int side, const char *why)
{
	c->cut = true;
	atomic_fetch_add(&cuts[side], 1);
	if (side == PEER_GUARD_SUBSCRIBERS) {
		last_cut.why = why;
		print_address(fd, last_cut.address);
	}
	shut_connection(fd);
	forget_topics(c);
}

/* ---- topics of subscribers, locked ---- */

static bool topics_fit(size_t also)
{
	return kept_topics_cost(&kept) + also <= PEER_GUARD_POOL + subscribers * PEER_GUARD_SHARE;
}

static bool connection_is_gone(int fd, const struct connection *c)
{
	struct stat st;

	return fstat(fd, &st) || st.st_ino != c->inode;
}

/* Finds the connection with the most topics, and forgets ended ones on the way. The calling thread
 * is the one that closes connections, so none ends meanwhile. */
static int find_greatest(void)
{
	size_t most = 0;
	int found = -1;

	for (int fd = 0; (size_t)fd < size; fd++) {
		struct connection *c = &connections[fd];
		size_t share;

		if (!c->subscribes)
			continue;
		if (connection_is_gone(fd, c)) {
			forget_topics(c);
			continue;
		}
		share = kept_topics_share(&c->stream->topics);
		if (share > most) {
			most = share;
			found = fd;
		}
	}
	return found;
}

static void make_room_for_topics(void)
{
	while (!topics_fit(0)) {
		int fd = find_greatest();

		if (fd < 0 || topics_fit(0))
			return;
		cut_off(fd, &connections[fd], PEER_GUARD_SUBSCRIBERS,
			"its topics take more memory than there is for all subscribers");
	}
}

static bool subscription_came(void *arg, bool cancels, const unsigned char *topic, size_t len)
{
	struct connection *c = arg;
	struct kept_holder *h = &c->stream->topics;
	bool had = kept_holder_count(h) > 0;

	arrived += WAITING + 2 * len;
	if (cancels)
		kept_topics_remove(&kept, h, topic, len);
	else if (kept_topics_add(&kept, h, topic, len))
		return false;
	subscribed = subscribed - had + (kept_holder_count(h) > 0);
	if (!cancels)
		make_room_for_topics();
	return !c->cut;
}

static const char *fault_text(enum zmtp_fault fault)
{
	switch (fault) {
	case ZMTP_OLD:
		return "it does not speak ZMTP 3: libzmq 4 and newer do";
	case ZMTP_FRAME:
		return "it sent a frame that is too long, or none at all";
	case ZMTP_PARTS:
		return "it sent a message of several parts, which no subscription has";
	case ZMTP_FOREIGN:
		return "it sent a message that is no subscription";
	case ZMTP_EAGER:
		return "it did not wait for the end of the handshake";
	case ZMTP_REJECTED:
		return "out of memory";
	case ZMTP_VALID:
		break;
	}
	return "";
}

/* False: the connection is cut off. */
static bool settle_fault(int fd, struct connection *c, enum zmtp_fault fault)
{
	if (fault != ZMTP_VALID && !c->cut && !is_own_pair(fd))
		cut_off(fd, c, PEER_GUARD_SUBSCRIBERS, fault_text(fault));
	return !c->cut;
}

/* Checks what CURVE has decrypted. False: libzmq must not see it. */
static bool admit_unsealed(const unsigned char *data, size_t len)
{
	struct connection *c;
	bool good;

	pthread_mutex_lock(&lock);
	c = find_connection(reading);
	good = c && !c->cut &&
	       settle_fault(reading, c,
		       zmtp_unsealed(data, len, &(struct zmtp_calls){subscription_came, c}));
	pthread_mutex_unlock(&lock);
	return good;
}

/* ---- bytes that come in ---- */

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

/* Counts bytes that were read. False: the connection is cut off. */
static bool admit_bytes(int fd, const void *data, size_t bytes, int side)
{
	struct connection *c;
	struct stat st;
	bool good;

	if (fstat(fd, &st))
		return true;
	pthread_mutex_lock(&lock);
	c = find_or_add_connection(fd, st.st_ino, side);
	good = c && !c->cut;
	if (good && side == PEER_GUARD_SUBSCRIBERS) {
		good = settle_fault(fd, c,
			zmtp_feed(&c->stream->zmtp, data, bytes,
				&(struct zmtp_calls){subscription_came, c}));
	} else if (good) {
		c->read += bytes;
		good = !holds_too_much(c) || is_own_pair(fd);
		if (!good)
			cut_off(fd, c, side, NULL);
	}
	pthread_mutex_unlock(&lock);
	return good;
}

/* Wakes the owner, who may not have seen an event since. Locked. */
static void wake_owner(void)
{
	if (!woken && wakes >= 0)
		woken = eventfd_write(wakes, 1) == 0;
}

static bool owner_keeps_up(void)
{
	return passed - taken <= PEER_GUARD_WAITING && (leaving == 0 || topics_fit(leaving));
}

/* All bytes of earlier reads are with libzmq. Waits a moment while the owner is behind; false: it
 * still is. */
static bool may_read(int fd)
{
	struct timespec until;
	bool may;

	reading = fd;
	pthread_mutex_lock(&lock);
	passed = arrived;
	came = true;
	may = owner_keeps_up();
	if (!may) {
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += PAUSE_NS;
		if (until.tv_nsec >= 1000000000) {
			until.tv_sec++;
			until.tv_nsec -= 1000000000;
		}
		wake_owner();
		pthread_cond_timedwait(&taking, &lock, &until);
		may = owner_keeps_up();
	}
	pthread_mutex_unlock(&lock);
	return may;
}

static void peer_ended(int fd)
{
	struct connection *c;

	pthread_mutex_lock(&lock);
	c = find_connection(fd);
	if (c)
		forget_topics(c);
	pthread_mutex_unlock(&lock);
}

ssize_t recv(int fd, void *data, size_t room, int flags)
{
	int side = side_of_thread();
	ssize_t n;

	if (side == PEER_GUARD_SUBSCRIBERS && !may_read(fd)) {
		errno = EAGAIN;
		return -1;
	}
	if (side == PEER_GUARD_SUBSCRIBERS && room > AT_ONCE)
		room = AT_ONCE;
	n = recvfrom(fd, data, room, flags, NULL, NULL);
	if (side && n > 0 && !admit_bytes(fd, data, (size_t)n, side))
		return 0;
	if (side == PEER_GUARD_SUBSCRIBERS && n <= 0 && !(n < 0 && errno == EAGAIN))
		peer_ended(fd);
	return n;
}

/* ---- decryption by CURVE: libsodium's functions, of which libzmq uses one or the other ---- */

#define ZEROS 32 /* before the plaintext */

#define OPEN_ARGUMENTS                                                                             \
	unsigned char *m, const unsigned char *c, unsigned long long len, const unsigned char *n,  \
		const unsigned char *k

typedef int open_function(OPEN_ARGUMENTS);

open_function crypto_box_open_afternm, crypto_box_open_easy_afternm;

static open_function *find_genuine(const char *name, void *_Atomic *known)
{
	void *f = atomic_load(known);

	if (!f) {
		f = dlsym(RTLD_NEXT, name);
		atomic_store(known, f);
	}
	return (open_function *)f;
}

/* r: of the genuine function. */
static int check_opened(int r, const unsigned char *text, unsigned long long len)
{
	if (r || side_of_thread() != PEER_GUARD_SUBSCRIBERS)
		return r;
	return admit_unsealed(text, len) ? 0 : -1;
}

int crypto_box_open_easy_afternm(OPEN_ARGUMENTS)
{
	static void *_Atomic known;

	return check_opened(
		find_genuine("crypto_box_open_easy_afternm", &known)(m, c, len, n, k), m, len - 16);
}

int crypto_box_open_afternm(OPEN_ARGUMENTS)
{
	static void *_Atomic known;

	return check_opened(find_genuine("crypto_box_open_afternm", &known)(m, c, len, n, k),
		m + ZEROS, len - ZEROS);
}

/* ---- messages that come out ---- */

void peer_guard_delivered(int fd, size_t bytes, bool sealed)
{
	struct connection *c;

	pthread_mutex_lock(&lock);
	c = find_connection(fd);
	if (c) {
		c->sealed = sealed;
		c->accounted += bytes + OVERHEAD;
		if (c->accounted > c->read)
			c->accounted = c->read;
	}
	pthread_mutex_unlock(&lock);
}

bool peer_guard_take_cut(int fd)
{
	struct connection *c;
	bool cut;

	pthread_mutex_lock(&lock);
	c = find_connection(fd);
	cut = c && c->cut;
	if (cut)
		begin_connection(c, 0, PEER_GUARD_PUBLISHERS);
	pthread_mutex_unlock(&lock);
	return cut;
}

int peer_guard_wakes(void)
{
	int fd;

	pthread_mutex_lock(&lock);
	if (wakes < 0)
		wakes = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	fd = wakes < 0 ? -errno : wakes;
	pthread_mutex_unlock(&lock);
	return fd;
}

uint64_t peer_guard_passed(void)
{
	uint64_t so_far;

	pthread_mutex_lock(&lock);
	so_far = passed;
	pthread_mutex_unlock(&lock);
	return so_far;
}

void peer_guard_taken(uint64_t until)
{
	bool tidy;

	pthread_mutex_lock(&lock);
	if (until > taken)
		taken = until;
	rounds += came;
	came = false;
	tidy = taken - tidied >= TIDY || (rounds >= ROUNDS && leaving >= TIDY);
	if (rounds >= ROUNDS)
		leaving = 0;
	if (tidy)
		tidied = taken;
	if (woken && wakes >= 0) {
		eventfd_t all;

		woken = eventfd_read(wakes, &all) != 0;
	}
	pthread_cond_signal(&taking);
	pthread_mutex_unlock(&lock);
#ifdef __GLIBC__
	if (tidy)
		malloc_trim(0);
#endif
}

void peer_guard_get_held(struct peer_guard_held *ret_held)
{
	pthread_mutex_lock(&lock);
	ret_held->subscribers = subscribed;
	ret_held->subscriptions = kept_topics_count(&kept);
	pthread_mutex_unlock(&lock);
}

void peer_guard_last_cut(struct peer_guard_cut *ret_cut)
{
	pthread_mutex_lock(&lock);
	*ret_cut = last_cut;
	pthread_mutex_unlock(&lock);
}

uint64_t peer_guard_cuts(enum peer_guard_side side)
{
	return atomic_load(&cuts[side]);
}
