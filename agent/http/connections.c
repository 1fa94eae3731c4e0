/*
 * Places and sessions. Surprising: reuse is forbidden from the start and allowed by the head of the
 * answer (by HTTP/2 by its end: libcurl keeps a connection whose stream timed out), since libcurl
 * reads the option when the transfer ends; and a handle has one share, so a
 * place keeps TLS sessions of its own.
 */
#include "http/connections.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "http/tls_read.h"

#define LATE_BODY_MS 1000u
#define CROWD 64u /* documents left without a place within IDLE_MS: then none has one */
#define LIFE_MS (CONNECTIONS_SESSION_S * UINT64_C(1000))
#define IDLE_MS (CONNECTIONS_IDLE_S * UINT64_C(1000))
/* libcurl keeps for a while what it read of tls.ca: a session that is made right after the file
 * changed may still rest on the old one */
#define WARY_MS ((CONNECTIONS_CA_CACHE_S + 1) * UINT64_C(1000))

/* What libcurl keeps between transfers: idle connections, TLS sessions. */
struct share {
	CURLSH *handle;
	unsigned users;
	uint64_t files; /* hash of those of tls: when it was made */
	uint64_t expires_ms;
};

/* The files of a tls:, which decide whom a handshake trusts and who this host is. */
struct trust {
	uint64_t paths, files; /* hashes: of their names, of what they are now; 0 = free */
	uint64_t wary_until_ms, used_ms;
	struct share *sessions; /* and connections of HTTP/2 */
};

struct connections_place {
	struct share *share;
	char document[DIGEST_HEX]; /* "" = free */
	curl_socket_t fd;          /* of the idle connection, as far as known */
	uint64_t used_ms, quiet_until_ms;
	bool busy;
};

struct connections {
	struct connections_place places[CONNECTIONS_PLACES];
	struct trust trusts[CONNECTIONS_TRUSTS];
	struct origins {
		uint64_t known[CONNECTIONS_ORIGINS]; /* 0 = free */
		size_t next;
	} http2, left;     /* those that speak it, those of them that are asked by HTTP/1.1 */
	unsigned left_out; /* since counted_ms */
	struct suspect {
		uint64_t origin; /* 0 = free */
		uint64_t serial; /* uses up to it may be on a dead connection */
	} suspects[CONNECTIONS_ORIGINS];
	size_t next_suspect;
	struct connections_use *lent;
	uint64_t serial; /* of the last use */
	bool (*is_watched)(void *arg, int fd);
	void *arg;
	uint64_t counted_ms, crowded_until_ms;
};

/* ---- shares ---- */

/* The last user closes the idle connections in it. */
static void share_drop(struct share **s)
{
	if (*s && --(*s)->users == 0) {
		curl_share_cleanup((*s)->handle);
		free(*s);
	}
	*s = NULL;
}

static struct share *share_hold(struct share *s)
{
	if (s)
		s->users++;
	return s;
}

static struct share *share_new(bool connections, const struct trust *trust, uint64_t now_ms)
{
	struct share *s = calloc(1, sizeof(*s));
	CURLSHcode bad = CURLSHE_OK;

	if (!s)
		return NULL;
	s->users = 1;
	s->files = trust ? trust->files : 0;
	s->expires_ms =
		trust && now_ms < trust->wary_until_ms ? trust->wary_until_ms : now_ms + LIFE_MS;
	s->handle = curl_share_init();
	if (s->handle && connections)
		bad |= curl_share_setopt(s->handle, CURLSHOPT_SHARE, CURL_LOCK_DATA_CONNECT);
	if (s->handle && trust)
		bad |= curl_share_setopt(s->handle, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION);
	if (!s->handle || bad)
		share_drop(&s);
	return s;
}

/* Replaces a share that has expired, or whose files have changed. */
static void share_refresh(
	struct share **s, bool connections, const struct trust *trust, uint64_t now_ms)
{
	if (*s && now_ms < (*s)->expires_ms && (*s)->files == (trust ? trust->files : 0))
		return;
	share_drop(s);
	*s = share_new(connections, trust, now_ms);
}

/* ---- trust ---- */

static void hash_file(const char *path, uint64_t *paths, uint64_t *files)
{
	struct stat st;

	*paths = hash_bytes(*paths, path ? path : "", path ? strlen(path) + 1 : 1);
	if (!path || stat(path, &st))
		return;
	*files = hash_bytes(*files, &st.st_dev, sizeof(st.st_dev));
	*files = hash_bytes(*files, &st.st_ino, sizeof(st.st_ino));
	*files = hash_bytes(*files, &st.st_size, sizeof(st.st_size));
	*files = hash_bytes(*files, &st.st_mtim, sizeof(st.st_mtim));
	*files = hash_bytes(*files, &st.st_ctim, sizeof(st.st_ctim));
}

static struct trust *trust_find(struct connections *c, uint64_t paths, uint64_t files)
{
	struct trust *oldest = c->trusts;

	for (size_t i = 0; i < CONNECTIONS_TRUSTS; i++) {
		if (c->trusts[i].paths == paths)
			return &c->trusts[i];
		if (c->trusts[i].used_ms < oldest->used_ms)
			oldest = &c->trusts[i];
	}
	share_drop(&oldest->sessions);
	*oldest = (struct trust){.paths = paths, .files = files};
	return oldest;
}

/* Finds the trust of this request's handshake; NULL: no TLS. */
static struct trust *trust_of(
	struct connections *c, const struct connections_request *q, uint64_t now_ms)
{
	uint64_t paths = HASH_START, files = HASH_START;
	struct trust *t;

	if (strncasecmp(q->url, "https:", 6) != 0)
		return NULL;
	hash_file(q->ca ? q->ca : curl_version_info(CURLVERSION_NOW)->cainfo, &paths, &files);
	hash_file(q->crl, &paths, &files);
	hash_file(q->cert, &paths, &files);
	hash_file(q->key, &paths, &files);
	t = trust_find(c, paths, files);
	if (t->files != files) {
		t->files = files;
		t->wary_until_ms = now_ms + WARY_MS;
	}
	t->used_ms = now_ms;
	return t;
}

/* ---- places ---- */

static struct connections_place *place_find(struct connections *c, const char *document)
{
	for (size_t i = 0; i < CONNECTIONS_PLACES; i++)
		if (strcmp(c->places[i].document, document) == 0)
			return &c->places[i];
	return NULL;
}

/* Takes a free place, or one whose connection is too old to be used again: where there are more
 * documents than places, those that have one keep it. */
static struct connections_place *place_claim(
	struct connections *c, const char *document, uint64_t now_ms)
{
	struct connections_place *best = NULL;

	for (size_t i = 0; i < CONNECTIONS_PLACES; i++) {
		struct connections_place *p = &c->places[i];

		if ((!p->document[0] || (!p->busy && now_ms - p->used_ms > IDLE_MS)) &&
			(!best || p->used_ms < best->used_ms))
			best = p;
	}
	if (!best)
		return NULL;
	share_drop(&best->share);
	*best = (struct connections_place){.fd = CURL_SOCKET_BAD, .used_ms = now_ms};
	memcpy(best->document, document, DIGEST_HEX);
	return best;
}

/* Where documents are far more than places, closes all: a place would be luck that costs memory. */
static void count_left_out(struct connections *c, uint64_t now_ms)
{
	if (now_ms - c->counted_ms > IDLE_MS) {
		c->counted_ms = now_ms;
		c->left_out = 0;
	}
	if (++c->left_out < CROWD)
		return;
	c->crowded_until_ms = now_ms + IDLE_MS;
	c->left_out = 0;
	for (size_t i = 0; i < CONNECTIONS_PLACES; i++)
		if (!c->places[i].busy)
			share_drop(&c->places[i].share);
}

static struct connections_place *place_lend(
	struct connections *c, const char *document, const struct trust *trust, uint64_t now_ms)
{
	struct connections_place *p;

	if (now_ms < c->crowded_until_ms)
		return NULL;
	p = place_find(c, document);
	if (!p)
		p = place_claim(c, document, now_ms);
	if (!p)
		count_left_out(c, now_ms);
	if (!p || p->busy)
		return NULL;
	if (now_ms < p->quiet_until_ms)
		share_drop(&p->share);
	p->quiet_until_ms = 0;
	share_refresh(&p->share, true, trust, now_ms);
	p->busy = p->share;
	return p->share ? p : NULL;
}

static void place_return(struct connections_place *p, bool given_up, uint64_t now_ms)
{
	p->busy = false;
	p->used_ms = now_ms;
	if (!given_up)
		return;
	share_drop(&p->share);
	p->document[0] = '\0';
}

/* ---- HTTP/2: known after the first answer only, and in no need of a place ---- */

static uint64_t origin_of(const char *url)
{
	const char *host = strstr(url, "://");
	size_t len = host ? (size_t)(host - url) + 3 : 0;

	return hash_bytes(HASH_START, url, len + strcspn(url + len, "/?"));
}

static uint64_t *origins_find(struct origins *o, uint64_t origin)
{
	for (size_t i = 0; i < CONNECTIONS_ORIGINS; i++)
		if (o->known[i] == origin)
			return &o->known[i];
	return NULL;
}

static void origins_set(struct origins *o, uint64_t origin, bool belongs)
{
	uint64_t *known = origins_find(o, origin);

	if (belongs && !known)
		o->known[o->next++ % CONNECTIONS_ORIGINS] = origin;
	else if (!belongs && known)
		*known = 0;
}

static struct suspect *suspect_find(struct connections *c, uint64_t origin)
{
	for (size_t i = 0; i < CONNECTIONS_ORIGINS; i++)
		if (c->suspects[i].origin == origin)
			return &c->suspects[i];
	return NULL;
}

/* All that is under way there may be on the connection of a use that failed; what began since the
 * last failure is not. */
static void suspect_add(struct connections *c, const struct connections_use *u)
{
	struct suspect *s = suspect_find(c, u->origin);

	if (s && u->serial <= s->serial)
		return;
	if (!s)
		s = &c->suspects[c->next_suspect++ % CONNECTIONS_ORIGINS];
	*s = (struct suspect){u->origin, c->serial};
}

/* libcurl closes a connection when the last one on it has ended. */
static bool suspect_is_used(struct connections *c, uint64_t origin)
{
	struct suspect *s = suspect_find(c, origin);

	for (struct connections_use *u = c->lent; s && u; u = u->next)
		if (u->origin == origin && u->serial <= s->serial)
			return true;
	if (s)
		s->origin = 0;
	return false;
}

/* ---- callbacks of libcurl ---- */

/* libcurl 7.88 closes the socket of an address that did not answer without a word, and would not
 * tell of the next one if that had its number. */
static int take_unwatched_number(const struct connections *c, int fd)
{
	int next;

	while (fd >= 0 && c->is_watched && c->is_watched(c->arg, fd)) {
		next = fcntl(fd, F_DUPFD_CLOEXEC, fd + 1);
		close(fd);
		fd = next;
	}
	return fd;
}

/* libcurl 7.88 opens sockets without CLOEXEC. */
static curl_socket_t open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
	struct connections_use *u = arg;

	(void)purpose;
	u->fresh = true;
	return take_unwatched_number(u->of,
		socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol));
}

/* Finds the SSL * of the connection; NULL: unavailable. */
static void *ssl_of(const struct connections_use *u)
{
	struct curl_tlssessioninfo *info = NULL;

	if (curl_easy_getinfo(u->easy, CURLINFO_TLS_SSL_PTR, &info) || !info ||
		info->backend != CURLSSLBACKEND_OPENSSL)
		return NULL;
	return info->internals;
}

/* True also when that is unknown. */
static bool has_unread(const struct connections_use *u)
{
	curl_socket_t fd = u->place->fd;
	void *ssl;
	char byte;

	if (fd == CURL_SOCKET_BAD || recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 ||
		errno != EAGAIN)
		return true;
	if (!u->trust)
		return false;
	ssl = ssl_of(u);
	return !ssl || tls_read_has_unread(ssl);
}

/* Checks a connection before the request goes out on it. A new one is not checked: readable bytes
 * there may be of its handshake. */
static int check_connection(void *arg, char *peer, char *own, int peer_port, int own_port)
{
	struct connections_use *u = arg;

	(void)peer, (void)own, (void)peer_port, (void)own_port;
	u->stale = !u->fresh && has_unread(u);
	return u->stale ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

/* ---- uses ---- */

struct connections *connections_new(bool (*is_watched)(void *arg, int fd), void *arg)
{
	struct connections *c = calloc(1, sizeof(*c));

	if (c) {
		c->is_watched = is_watched;
		c->arg = arg;
	}
	return c;
}

void connections_forget(struct connections *c)
{
	for (size_t i = 0; i < CONNECTIONS_PLACES; i++)
		share_drop(&c->places[i].share);
	for (size_t i = 0; i < CONNECTIONS_TRUSTS; i++)
		share_drop(&c->trusts[i].sessions);
}

void connections_free(struct connections *c)
{
	if (c)
		connections_forget(c);
	free(c);
}

static int set_connection_options(struct connections_use *u, bool alone)
{
	CURLcode bad = CURLE_OK;

	bad |= curl_easy_setopt(u->easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
	bad |= curl_easy_setopt(u->easy, CURLOPT_OPENSOCKETDATA, u);
	bad |= curl_easy_setopt(u->easy, CURLOPT_FRESH_CONNECT, (long)alone);
	bad |= curl_easy_setopt(u->easy, CURLOPT_FORBID_REUSE, 1L);
	if (u->share)
		bad |= curl_easy_setopt(u->easy, CURLOPT_SHARE, u->share->handle);
	if (u->place) {
		bad |= curl_easy_setopt(u->easy, CURLOPT_PREREQFUNCTION, check_connection);
		bad |= curl_easy_setopt(u->easy, CURLOPT_PREREQDATA, u);
	}
	return bad ? -EINVAL : 0;
}

int connections_lend(struct connections *c, struct connections_use *u, CURL *easy,
	const struct connections_request *q, uint64_t now_ms)
{
	bool alone;

	*u = (struct connections_use){.of = c, .easy = easy, .origin = origin_of(q->url)};
	if (!q->alone) {
		u->trust = trust_of(c, q, now_ms);
		if (q->document && !origins_find(&c->http2, u->origin))
			u->place = place_lend(c, q->document, u->trust, now_ms);
		if (!u->place && u->trust)
			share_refresh(&u->trust->sessions, true, u->trust, now_ms);
		u->share = share_hold(u->place   ? u->place->share
				      : u->trust ? u->trust->sessions
						 : NULL);
	}
	alone = q->alone || suspect_is_used(c, u->origin);
	u->serial = ++c->serial;
	u->next = c->lent;
	u->link = &c->lent;
	if (u->next)
		u->next->link = &u->next;
	c->lent = u;
	return set_connection_options(u, alone);
}

bool connections_has_place(const struct connections_use *u)
{
	return u->place;
}

static void allow_reuse(struct connections_use *u)
{
	u->kept = curl_easy_setopt(u->easy, CURLOPT_FORBID_REUSE, 0L) == CURLE_OK;
}

void connections_answered(struct connections_use *u, const struct framing *f, uint64_t now_ms)
{
	bool empty = f->status == 204 || f->status == 304;

	u->http2 = f->version >= 20;
	origins_set(&u->of->http2, u->origin, u->http2);
	if (u->place && empty)
		u->place->quiet_until_ms = now_ms + LATE_BODY_MS;
	u->given_up = u->place && u->http2;
	if (u->http2 ? empty || (f->has_length && f->length == 0)
		     : u->place && !framing_is_doubtful(f))
		allow_reuse(u);
}

void connections_whole(struct connections_use *u)
{
	if (u->http2)
		allow_reuse(u);
}

void connections_spoil(struct connections_use *u)
{
	u->kept = false;
	curl_easy_setopt(u->easy, CURLOPT_FORBID_REUSE, 1L);
}

void connections_ended(struct connections_use *u, bool good, bool alive)
{
	u->alive = alive;
	if (!u->place)
		return;
	u->place->fd = CURL_SOCKET_BAD;
	if (good && u->kept)
		curl_easy_getinfo(u->easy, CURLINFO_ACTIVESOCKET, &u->place->fd);
}

bool connections_is_stale(const struct connections_use *u)
{
	return u->stale && !u->renewed;
}

bool connections_renew(struct connections_use *u, uint64_t now_ms)
{
	u->stale = false;
	u->renewed = true;
	curl_easy_setopt(u->easy, CURLOPT_SHARE, NULL);
	share_drop(&u->share);
	share_drop(&u->place->share);
	share_refresh(&u->place->share, true, u->trust, now_ms);
	u->share = share_hold(u->place->share);
	return u->share && curl_easy_setopt(u->easy, CURLOPT_SHARE, u->share->handle) == CURLE_OK;
}

int connections_leave_http2(struct connections_use *u)
{
	CURLcode bad = curl_easy_setopt(u->easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);

	bad |= curl_easy_setopt(u->easy, CURLOPT_FRESH_CONNECT, 1L);
	origins_set(&u->of->left, u->origin, true);
	u->fresh = false;
	return bad ? -EINVAL : 0;
}

bool connections_left_http2(const struct connections_use *u)
{
	return origins_find(&u->of->left, u->origin);
}

void connections_return(struct connections_use *u, uint64_t now_ms)
{
	if (!u->of)
		return;
	curl_easy_setopt(u->easy, CURLOPT_SHARE, NULL);
	share_drop(&u->share);
	if (u->place)
		place_return(u->place, u->given_up || now_ms < u->of->crowded_until_ms, now_ms);
	*u->link = u->next;
	if (u->next)
		u->next->link = u->link;
	if (!u->alive && !u->place && origins_find(&u->of->http2, u->origin))
		suspect_add(u->of, u);
	u->of = NULL;
}
