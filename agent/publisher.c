/*
 * The sending side: an XPUB socket. Surprising: XPUB, not PUB, because it tells who subscribed:
 * `pullet publish` can wait for somebody to be there.
 */
#include "publisher.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zmq.h>

#include "push_message.h"

#define MAX_TOPICS 65536
#define LINGER_MS 1000

struct topic {
	char *name;
	uint64_t seq;
};

struct publisher {
	const struct sys *sys;
	void *context, *socket;
	char endpoint[256];
	char epoch[24];
	struct topic *topics; /* sorted by name */
	size_t topic_count;
};

static void new_epoch(struct publisher *p)
{
	snprintf(p->epoch, sizeof(p->epoch), "%016" PRIx64, p->sys->random());
	for (size_t i = 0; i < p->topic_count; i++)
		free(p->topics[i].name);
	p->topic_count = 0;
}

static int set_options(void *socket, bool ipv6)
{
	const struct {
		int option, value;
	} table[] = {
		{ZMQ_LINGER, LINGER_MS},
		{ZMQ_SNDHWM, 1000},
		{ZMQ_IPV6, ipv6}, /* off otherwise, or 127.0.0.1 shows as ::ffff:127.0.0.1 */
		{ZMQ_XPUB_VERBOSE, 1},
		{ZMQ_HEARTBEAT_IVL, 5000},
		{ZMQ_HEARTBEAT_TIMEOUT, 15000},
		{ZMQ_HEARTBEAT_TTL, 15000},
		{ZMQ_HANDSHAKE_IVL, 10000},
		{ZMQ_TCP_KEEPALIVE, 1},
		{ZMQ_TCP_KEEPALIVE_IDLE, 60},
	};

	static const int64_t max_frame = 64 << 10;

	if (zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &max_frame, sizeof(max_frame)))
		return -1;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (zmq_setsockopt(socket, table[i].option, &table[i].value, sizeof(int)))
			return -1;
	return 0;
}

struct publisher *publisher_open(const struct sys *sys, const char *endpoint)
{
	struct publisher *p = calloc(1, sizeof(*p));
	char full[256];
	size_t size = sizeof(p->endpoint);
	int error;

	if (!p)
		return NULL;
	p->sys = sys;
	if (snprintf(full, sizeof(full), "%s%s", strstr(endpoint, "://") ? "" : "tcp://",
		    endpoint) >= (int)sizeof(full)) {
		free(p);
		errno = ENAMETOOLONG;
		return NULL;
	}
	new_epoch(p);
	p->context = zmq_ctx_new();
	p->socket = p->context ? zmq_socket(p->context, ZMQ_XPUB) : NULL;
	if (p->socket && set_options(p->socket, strpbrk(full, "[*")) == 0 &&
		zmq_bind(p->socket, full) == 0 &&
		zmq_getsockopt(p->socket, ZMQ_LAST_ENDPOINT, p->endpoint, &size) == 0)
		return p;
	error = zmq_errno();
	publisher_close(p);
	errno = error;
	return NULL;
}

void publisher_close(struct publisher *p)
{
	if (!p)
		return;
	if (p->socket)
		zmq_close(p->socket);
	if (p->context)
		zmq_ctx_term(p->context); /* waits for what is queued, LINGER_MS at most */
	for (size_t i = 0; i < p->topic_count; i++)
		free(p->topics[i].name);
	free(p->topics);
	free(p);
}

const char *publisher_endpoint(const struct publisher *p)
{
	return p->endpoint;
}

/* Where the name stands, or where it belongs. */
static size_t place(const struct publisher *p, const char *name)
{
	size_t low = 0, high = p->topic_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(p->topics[middle].name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int next_seq(struct publisher *p, const char *name, uint64_t *ret_seq)
{
	size_t i = place(p, name);
	struct topic *more;
	char *copy;

	if (i == p->topic_count || strcmp(p->topics[i].name, name) != 0) {
		if (p->topic_count ==
			MAX_TOPICS) { /* numbers begin again: a new epoch makes every agent pull */
			new_epoch(p);
			i = 0;
		}
		copy = strdup(name);
		more = realloc(p->topics, (p->topic_count + 1) * sizeof(*more));
		if (more)
			p->topics = more;
		if (!copy || !more) {
			free(copy);
			return -ENOMEM;
		}
		memmove(&more[i + 1], &more[i], (p->topic_count - i) * sizeof(*more));
		more[i] = (struct topic){.name = copy};
		p->topic_count++;
	}
	*ret_seq = ++p->topics[i].seq;
	return 0;
}

static int send(struct publisher *p, const char *topic, const struct push_message *m)
{
	struct buffer b;
	int r;

	buffer_init(&b, PUSH_MAX_ENVELOPE);
	r = push_message_write(m, &b);
	if (r == 0 && (zmq_send(p->socket, topic, strlen(topic), ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0 ||
			      zmq_send(p->socket, b.data, b.len, ZMQ_DONTWAIT) < 0))
		r = -zmq_errno();
	buffer_fini(&b);
	return r;
}

int publisher_send(struct publisher *p, const char *topic, const char *version, uint64_t spread_ms)
{
	struct push_message m = {
		.has_seq = true, .has_spread = spread_ms > 0, .spread_ms = spread_ms};
	int r = next_seq(p, topic, &m.seq);

	if (r)
		return r;
	memcpy(m.epoch, p->epoch, sizeof(p->epoch));
	if (version)
		snprintf(m.version, sizeof(m.version), "%s", version);
	return send(p, topic, &m);
}

int publisher_heartbeat(struct publisher *p)
{
	struct push_message m = {0};

	memcpy(m.epoch, p->epoch, sizeof(p->epoch));
	return send(p, PUSH_HEARTBEAT_TOPIC, &m);
}

int publisher_fd(const struct publisher *p)
{
	int fd = -1;
	size_t size = sizeof(fd);

	zmq_getsockopt(p->socket, ZMQ_FD, &fd, &size);
	return fd;
}

int publisher_poll(struct publisher *p, char *ret_prefix, size_t size, int *ret_subscribed)
{
	char message[512];
	int n = zmq_recv(p->socket, message, sizeof(message), ZMQ_DONTWAIT);

	if (n < 0)
		return zmq_errno() == EAGAIN ? 0 : -zmq_errno();
	if (n == 0 || (size_t)n > sizeof(message) || (size_t)n > size)
		n = 1; /* as if for everything: too long a prefix matches nothing of ours */
	*ret_subscribed = message[0] == 1;
	memcpy(ret_prefix, message + 1, (size_t)n - 1);
	ret_prefix[n - 1] = '\0';
	return 1;
}
