/*
 * The sending side: an XPUB socket. Surprising: XPUB, not PUB, because it reports subscriptions:
 * `pullet publish` can wait for a subscriber.
 *
 * Where only known keys may connect, libzmq asks within the process, by the protocol ZAP (ZeroMQ
 * RFC 27), and its I/O thread does not wait for the answer. The owner answers in publisher_poll():
 * so there is no thread for it, and one descriptor (epoll) covers both sockets and the guard.
 */
#include "push/publisher.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <zmq.h>

#include "base/log.h"
#include "base/sys.h"
#include "push/context.h"
#include "push/peer_guard.h"
#include "push/message.h"
#include "push/numbers.h"

#define LINGER_MS 1000
#define MAX_FRAME 1024
#define SEND_BUFFER (256 << 10) /* of one subscriber, in the kernel, if the queue is bounded */

struct publisher {
	const struct sys *sys;
	void *context, *socket;
	void *zap;    /* asks whether a key may connect; NULL = all may */
	int epoll_fd; /* of both sockets, and of the guard */
	char *allow_file;
	struct curve_allow allow;
	struct log_limit denied, cut;
	uint64_t cuts; /* logged so far */
	uint64_t bytes, denials;
	char public_key[CURVE_TEXT];
	char endpoint[256];
	bool strict; /* see publisher_forward() */
	struct push_numbers numbers;
};

static int set_publisher_options(void *socket, bool ipv6, int queue)
{
	const struct push_option options[] = {
		{ZMQ_LINGER, LINGER_MS},
		{ZMQ_SNDHWM, queue ? queue : 1000},
		{ZMQ_RCVHWM, 0}, /* the guard bounds it, and counts only received bytes */
		{ZMQ_SNDBUF, queue ? SEND_BUFFER : -1},
		{ZMQ_IPV6, ipv6},    /* off otherwise, or 127.0.0.1 shows as ::ffff:127.0.0.1 */
		{ZMQ_BACKLOG, 4096}, /* a fleet comes back at once */
		{ZMQ_XPUB_VERBOSE, 1},
	};

	return push_context_set_options(
		socket, MAX_FRAME, options, sizeof(options) / sizeof(options[0]));
}

/* ---- keys ---- */

static int set_secret_key(struct publisher *p, const char *path, char why[CURVE_WHY])
{
	char secret[CURVE_TEXT];
	const char *fault = NULL;
	int yes = 1, r;

	if (!zmq_has("curve")) {
		snprintf(why, CURVE_WHY, "libzmq was built without CURVE: install one that has it");
		return -EOPNOTSUPP;
	}
	r = curve_read_secret(p->sys, path, secret, &fault);
	if (r == 0 &&
		(zmq_curve_public(p->public_key, secret) ||
			zmq_setsockopt(p->socket, ZMQ_CURVE_SERVER, &yes, sizeof(yes)) ||
			zmq_setsockopt(p->socket, ZMQ_CURVE_SECRETKEY, secret, sizeof(secret)))) {
		fault = "it does not hold a secret key";
		r = -EINVAL;
	}
	explicit_bzero(secret, sizeof(secret));
	if (r)
		snprintf(why, CURVE_WHY, "%.300s: %s", path, fault);
	return r;
}

/* Lets only known keys connect. libzmq lets all in while no socket answers: so this one opens
 * before the endpoint is bound, and closes after it. */
static int set_allow_list(struct publisher *p, const char *path, char why[CURVE_WHY])
{
	static const char domain[] = "pullet";
	int r;

	p->allow_file = strdup(path);
	r = p->allow_file ? curve_allow_refresh(p->sys, &p->allow, path, why) : -ENOMEM;
	if (r < 0 && p->allow_file)
		return r;
	p->zap = zmq_socket(p->context, ZMQ_REP);
	if (!p->allow_file || !p->zap || zmq_bind(p->zap, "inproc://zeromq.zap.01") ||
		zmq_setsockopt(p->socket, ZMQ_ZAP_DOMAIN, domain, strlen(domain))) {
		snprintf(why, CURVE_WHY, "out of memory or descriptors");
		return -ENOMEM;
	}
	return 0;
}

/* The request's frames, by RFC 27. */
enum { VERSION, REQUEST_ID, DOMAIN, ADDRESS, IDENTITY, MECHANISM, CREDENTIALS, FRAMES };

struct request {
	char frame[FRAMES][256];
	size_t len[FRAMES];
};

/* Takes one request: 1, 0 when there is none, or -errno. Missing frames are empty. */
static int take_zap_request(void *zap, struct request *q)
{
	size_t size = sizeof(int);
	int more = 1;

	memset(q, 0, sizeof(*q));
	for (size_t i = 0; more; i++) {
		char extra[1], *to = i < FRAMES ? q->frame[i] : extra;
		size_t room = i < FRAMES ? sizeof(q->frame[i]) - 1 : 0;
		int n = zmq_recv(zap, to, room, ZMQ_DONTWAIT);

		if (n < 0)
			return zmq_errno() == EAGAIN ? 0 : -zmq_errno();
		if (i < FRAMES)
			q->len[i] = (size_t)n < room ? (size_t)n : room;
		if (zmq_getsockopt(zap, ZMQ_RCVMORE, &more, &size))
			return -zmq_errno();
	}
	return 1;
}

static bool may_connect(struct publisher *p, const struct request *q)
{
	const unsigned char *key = (const unsigned char *)q->frame[CREDENTIALS];
	char why[CURVE_WHY], shown[CURVE_TEXT];
	unsigned repeated;

	if (curve_allow_refresh(p->sys, &p->allow, p->allow_file, why) < 0)
		log_err("cannot read the list of allowed keys: keeping the last valid one", "why",
			why);
	if (strcmp(q->frame[MECHANISM], "CURVE") != 0 || q->len[CREDENTIALS] != CURVE_KEY)
		return false;
	if (curve_allow_has(&p->allow, key))
		return true;
	p->denials++;
	if (log_limit_pass(&p->denied, p->sys->now_ms(), "denied", &repeated))
		log_warn("subscriber denied: its key is not on the list of allowed keys", "address",
			q->frame[ADDRESS], "public_key", zmq_z85_encode(shown, key, CURVE_KEY),
			"repeated", repeated ? LOG_U64(repeated) : NULL);
	return false;
}

/* Answers one subscriber that wants to connect: 1, 0 when there is none, or -errno. */
static int answer_zap_request(struct publisher *p)
{
	struct request q;
	int r = take_zap_request(p->zap, &q);
	bool good = r == 1 && may_connect(p, &q);
	const struct {
		const char *text;
		size_t len;
	} reply[] = {
		{"1.0", 3},
		{q.frame[REQUEST_ID], q.len[REQUEST_ID]},
		{good ? "200" : "400", 3},
		{good ? "OK" : "not allowed", good ? 2 : 11},
		{"", 0}, /* a name of the user, and more about it */
		{"", 0},
	};
	size_t n = sizeof(reply) / sizeof(reply[0]);

	for (size_t i = 0; r == 1 && i < n; i++)
		if (zmq_send(p->zap, reply[i].text, reply[i].len,
			    ZMQ_DONTWAIT | (i + 1 < n ? ZMQ_SNDMORE : 0)) < 0)
			r = -zmq_errno();
	return r;
}

/* ---- open, close ---- */

static int check_publisher_options(
	const char *endpoint, const struct publisher_options *o, char why[CURVE_WHY])
{
	if (o->allow_file && !o->secret_key_file)
		snprintf(why, CURVE_WHY, "--curve-allow needs --curve-secret-key beside it");
	else if (o->secret_key_file && o->insecure)
		snprintf(why, CURVE_WHY,
			"--insecure and --curve-secret-key exclude each other: leave one out");
	else if (!o->secret_key_file && !o->insecure && !curve_stays_here(endpoint))
		snprintf(why, CURVE_WHY,
			"%.200s can be reached from other hosts, and plain text could be read and "
			"forged on the way: name a key with --curve-secret-key (pullet keygen "
			"makes one), or say --insecure",
			endpoint);
	else
		return 0;
	return -EINVAL;
}

static int watch_sockets(struct publisher *p)
{
	void *const sockets[] = {p->socket, p->zap};
	int fds[] = {-1, -1, peer_guard_wakes()};

	p->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (p->epoll_fd < 0)
		return -errno;
	for (size_t i = 0; i < 3; i++) {
		struct epoll_event event = {.events = EPOLLIN};
		size_t size = sizeof(fds[i]);

		if (i < 2 && !sockets[i])
			continue;
		if ((i < 2 && zmq_getsockopt(sockets[i], ZMQ_FD, &fds[i], &size)) ||
			epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, fds[i], &event))
			return -errno;
	}
	return 0;
}

/* Tells whether a socket is bound to the path: 0 = none is, -EADDRINUSE, or another -errno: that is
 * not known. */
static int find_bound_socket(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int r, fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	memcpy(address.sun_path, path, strnlen(path, sizeof(address.sun_path) - 1));
	r = connect(fd, (const struct sockaddr *)&address, sizeof(address)) ? errno : 0;
	close(fd);
	switch (r) {
	case ECONNREFUSED:
	case ENOENT: /* it has just gone */
		return 0;
	case 0:
	case EAGAIN:     /* it has no time to accept more */
	case EPROTOTYPE: /* it is not one of streams */
		return -EADDRINUSE;
	default:
		return -r;
	}
}

/* Binding removes what is at the path of an ipc endpoint, whatever it is: so it must be nothing, or
 * a socket that nobody serves. */
static int check_ipc_path(const char *endpoint, char why[CURVE_WHY])
{
	const char *path = endpoint + 6; /* behind "ipc://" */
	struct stat st;
	int r;

	if (strncmp(endpoint, "ipc://", 6) != 0 || lstat(path, &st))
		return 0;
	if (!S_ISSOCK(st.st_mode)) {
		snprintf(why, CURVE_WHY,
			"cannot bind %s: there is something else than a socket: remove it, or "
			"name another path",
			endpoint);
		return -EEXIST;
	}
	r = find_bound_socket(path);
	if (r)
		snprintf(why, CURVE_WHY, "cannot bind %s: %s", endpoint, strerror(-r));
	return r;
}

static int start_publisher(struct publisher *p, const char *endpoint,
	const struct publisher_options *o, char why[CURVE_WHY])
{
	size_t size = sizeof(p->endpoint);
	char full[256];
	int r = push_context_try();

	if (r) {
		snprintf(why, CURVE_WHY, "cannot start libzmq: %s%s", strerror(-r), sys_advice(-r));
		return r;
	}
	if (snprintf(full, sizeof(full), "%s%s", strstr(endpoint, "://") ? "" : "tcp://",
		    endpoint) >= (int)sizeof(full)) {
		snprintf(why, CURVE_WHY, "cannot bind %.200s...: it is too long", endpoint);
		return -ENAMETOOLONG;
	}
	p->context = push_context_new(PEER_GUARD_SUBSCRIBERS);
	p->socket = p->context ? zmq_socket(p->context, ZMQ_XPUB) : NULL;
	if (!p->socket || set_publisher_options(p->socket, strpbrk(full, "[*"), o->queue)) {
		snprintf(why, CURVE_WHY, "out of memory or descriptors");
		return -ENOMEM;
	}
	if (o->secret_key_file)
		r = set_secret_key(p, o->secret_key_file, why);
	if (r == 0 && o->allow_file)
		r = set_allow_list(p, o->allow_file, why);
	if (r == 0 && watch_sockets(p)) {
		snprintf(why, CURVE_WHY, "out of memory or descriptors");
		r = -ENOMEM;
	}
	if (r == 0)
		r = check_ipc_path(full, why);
	if (r == 0 && (zmq_bind(p->socket, full) ||
			      zmq_getsockopt(p->socket, ZMQ_LAST_ENDPOINT, p->endpoint, &size))) {
		r = -zmq_errno();
		snprintf(why, CURVE_WHY, "cannot bind %s: %s", endpoint, zmq_strerror(-r));
	}
	return r;
}

int publisher_open(const struct sys *sys, const char *endpoint,
	const struct publisher_options *options, struct publisher **ret_publisher,
	char why[CURVE_WHY])
{
	int r = check_publisher_options(endpoint, options, why);
	struct publisher *p = r ? NULL : calloc(1, sizeof(*p));

	if (r)
		return r;
	if (!p) {
		snprintf(why, CURVE_WHY, "out of memory");
		return -ENOMEM;
	}
	p->sys = sys;
	p->epoll_fd = -1;
	push_numbers_init(&p->numbers, sys);
	r = start_publisher(p, endpoint, options, why);
	if (r)
		publisher_close(p);
	else
		*ret_publisher = p;
	return r;
}

void publisher_close(struct publisher *p)
{
	if (!p)
		return;
	if (p->epoll_fd >= 0)
		close(p->epoll_fd);
	if (p->socket)
		zmq_close(p->socket);
	if (p->zap) /* after the socket, see set_allow_list() */
		zmq_close(p->zap);
	if (p->context)
		zmq_ctx_term(p->context); /* waits for what is queued, LINGER_MS at most */
	push_numbers_fini(&p->numbers);
	curve_allow_fini(&p->allow);
	free(p->allow_file);
	free(p);
}

const char *publisher_endpoint(const struct publisher *p)
{
	return p->endpoint;
}

const char *publisher_public_key(const struct publisher *p)
{
	return p->public_key;
}

static int send_message(struct publisher *p, const char *topic, const struct push_message *m)
{
	struct buffer b;
	int r;

	buffer_init(&b, PUSH_MAX_ENVELOPE);
	r = push_message_write(m, &b);
	if (r == 0 && (zmq_send(p->socket, topic, strlen(topic), ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0 ||
			      zmq_send(p->socket, b.data, b.len, ZMQ_DONTWAIT) < 0))
		r = -zmq_errno();
	if (r == 0)
		p->bytes += strlen(topic) + b.len;
	buffer_fini(&b);
	return r;
}

int publisher_send(struct publisher *p, const char *topic, const char *version, uint64_t spread_ms)
{
	struct push_message m = {.has_spread = spread_ms > 0, .spread_ms = spread_ms};
	int r = push_numbers_set_next(&p->numbers, topic, &m);

	if (r)
		return r;
	if (version)
		snprintf(m.version, sizeof(m.version), "%s", version);
	return send_message(p, topic, &m);
}

int publisher_heartbeat(struct publisher *p)
{
	struct push_message m = {0};

	push_numbers_set_epoch(&p->numbers, &m);
	return send_message(p, PUSH_HEARTBEAT_TOPIC, &m);
}

int publisher_forward(
	struct publisher *p, const char *topic, const struct push_message *m, bool strict)
{
	int on = strict;

	if (strict != p->strict && zmq_setsockopt(p->socket, ZMQ_XPUB_NODROP, &on, sizeof(on)))
		return -zmq_errno();
	p->strict = strict;
	return send_message(p, topic, m);
}

void publisher_get_counts(const struct publisher *p, struct publisher_counts *ret_counts)
{
	*ret_counts = (struct publisher_counts){.bytes = p->bytes,
		.denied = p->denials,
		.cuts = peer_guard_cuts(PEER_GUARD_SUBSCRIBERS)};
	peer_guard_get_held(&ret_counts->held);
}

int publisher_fd(const struct publisher *p)
{
	return p->epoll_fd;
}

/* Logs one line for all peers that were cut off since the last line. */
static void log_cuts(struct publisher *p)
{
	uint64_t n = peer_guard_cuts(PEER_GUARD_SUBSCRIBERS);
	struct peer_guard_cut last;
	unsigned repeated;

	if (n == p->cuts)
		return;
	peer_guard_last_cut(&last);
	if (!log_limit_pass(&p->cut, p->sys->now_ms(), last.why, &repeated))
		return;
	log_warn("a subscriber was cut off", "why", last.why, "address",
		*last.address ? last.address : NULL, "cuts", LOG_U64(n - p->cuts));
	p->cuts = n;
}

int publisher_poll(struct publisher *p, char *ret_prefix, size_t size, int *ret_subscribed)
{
	char message[512];
	uint64_t passed;
	int n = 0;

	while (p->zap && (n = answer_zap_request(p)) > 0)
		;
	if (n < 0)
		return n;
	passed = peer_guard_passed();
	n = zmq_recv(p->socket, message, sizeof(message), ZMQ_DONTWAIT);
	if (n < 0 && zmq_errno() == EAGAIN) {
		peer_guard_taken(passed);
		log_cuts(p); /* which changes errno */
		return 0;
	}
	if (n < 0)
		return -zmq_errno();
	if (n > 1 && (size_t)n <= sizeof(message) && memchr(message + 1, '\0', (size_t)n - 1))
		message[0] = 0; /* no topic of ours has a NUL: not a new subscriber */
	if (n == 0 || (size_t)n > sizeof(message) || (size_t)n > size)
		n = 1; /* as if for all topics: too long a prefix matches none of ours */
	*ret_subscribed = message[0] == 1;
	memcpy(ret_prefix, message + 1, (size_t)n - 1);
	ret_prefix[n - 1] = '\0';
	return 1;
}
