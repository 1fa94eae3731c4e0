/*
 * Surprising: libcurl before 8.4 does not always ask to be called again where there is more to do.
 */
#define CURL_DISABLE_DEPRECATION /* curl_multi_socket_all(), with a libcurl that needs it */
#include "http/multi.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <linux/close_range.h>
#include <sys/socket.h>

#include "http/result.h"

#define AGAIN_MS 100u               /* after libcurl had no memory */
#define ADDRESSES_AT_ONCE 64        /* of a name, that fail one after the other without a wait */
#define GOES_ON_BY_ITSELF 0x080400u /* the first libcurl that does, to a name's next address */

struct watched { /* a socket, as libcurl asks for it */
	struct loop_watch watch;
	struct watched *next, **link;
};

struct multi {
	struct loop *loop;
	CURLM *curl;
	struct loop_timer timer; /* libcurl's one timeout */
	struct multi_entry *entries;
	struct watched *watched;
	void (*turned)(void *arg);
	void *arg;
	bool driven; /* libcurl is at work for a socket or its timeout */
	bool waits;  /* libcurl waits to be called between two addresses of a name */
};

/* ---- turns ---- */

/* Its name was found, and it has no connection, and lost a socket that might have become one, or
 * has none. */
static bool is_between_addresses(const struct multi_entry *e)
{
	if (e->sockets > 0 && !e->lost_one)
		return false;
	return result_has_reached(e->easy, CURLINFO_NAMELOOKUP_TIME_T) && !result_was_sent(e->easy);
}

static bool have_some_lost_an_address(struct multi *m)
{
	bool some = false;

	for (struct multi_entry *e = m->entries; e; e = e->next) {
		some |= is_between_addresses(e);
		e->lost_one = false;
	}
	return some;
}

static void finish_turn(struct multi *m, CURLMcode error)
{
	int running;

	m->driven = false;
	if (error == CURLM_ABORTED_BY_CALLBACK) /* on_socket() had no memory: this ends them all */
		error = curl_multi_perform(m->curl, &running);
	if (error) /* libcurl has asked for no timer then: transfers would never end */
		loop_timer_set(m->loop, &m->timer, loop_now_ms(m->loop) + AGAIN_MS);
	m->turned(m->arg);
}

/* Calls libcurl when a transfer has lost an address: 7.88 to 8.3 picks the name's next one, and
 * opens its socket only at the next call, which may be the end of the time limit. 8.4 asks for that
 * call itself. */
static void go_on_to_next_addresses(struct multi *m)
{
	int running;

	for (unsigned n = 0; m->waits && n < ADDRESSES_AT_ONCE; n++) {
		if (!have_some_lost_an_address(m))
			return;
		m->driven = true;
		finish_turn(m, curl_multi_socket_all(m->curl, &running));
	}
}

static void drive_socket(struct multi *m, curl_socket_t fd, int mask)
{
	int running;

	m->driven = true;
	finish_turn(m, curl_multi_socket_action(m->curl, fd, mask, &running));
	go_on_to_next_addresses(m);
}

static void socket_ready(void *arg, int fd, unsigned events)
{
	drive_socket(arg, fd,
		(events & LOOP_READ ? CURL_CSELECT_IN : 0) |
			(events & LOOP_WRITE ? CURL_CSELECT_OUT : 0));
}

static void timeout_due(void *arg)
{
	drive_socket(arg, CURL_SOCKET_TIMEOUT, 0);
}

/* ---- what libcurl asks for ---- */

/* Of a connection that is left over there is no transfer: NULL. */
static struct multi_entry *entry_of(CURL *easy)
{
	struct multi_entry *e = NULL;

	curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&e);
	return e;
}

static void watched_free(struct watched *w)
{
	*w->link = w->next;
	if (w->next)
		w->next->link = w->link;
	free(w);
}

/* e: NULL = of none. */
static int watched_drop(struct multi *m, struct multi_entry *e, int fd, struct watched *w)
{
	if (!w)
		return 0;
	if (e && e->sockets > 0) {
		e->sockets--;
		e->lost_one = true;
	}
	loop_unwatch(&w->watch);
	watched_free(w);
	curl_multi_assign(m->curl, fd, NULL);
	return 0;
}

static struct watched *watched_new(struct multi *m, int fd)
{
	struct watched *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->next = m->watched;
	w->link = &m->watched;
	if (w->next)
		w->next->link = &w->next;
	m->watched = w;
	curl_multi_assign(m->curl, fd, w);
	return w;
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *watch_arg)
{
	struct multi *m = arg;
	struct watched *w = watch_arg;
	struct multi_entry *e = entry_of(easy);
	unsigned events = what == CURL_POLL_IN    ? LOOP_READ
			  : what == CURL_POLL_OUT ? LOOP_WRITE
						  : LOOP_READ | LOOP_WRITE;

	if (what == CURL_POLL_REMOVE)
		return watched_drop(m, e, fd, w);
	if (!w)
		w = watched_new(m, fd);
	if (!w)
		return -1;
	if (loop_watch(m->loop, &w->watch, fd, events, socket_ready, m) == 0) {
		if (e && !watch_arg)
			e->sockets++;
		if (e)
			e->fd = fd;
		return 0;
	}
	curl_multi_assign(m->curl, fd, NULL); /* libcurl does not ask for its removal then */
	watched_free(w);
	return -1;
}

/* "At once" from libcurl at work means that it has had its turn and there is more: the next one
 * comes with the socket, or in a millisecond where all was read from it already. Otherwise a large
 * body has every turn of the timer too, and what else is ready waits behind both. */
static int on_timer(CURLM *curl, long timeout_ms, void *arg)
{
	struct multi *m = arg;

	(void)curl;
	if (timeout_ms == 0 && m->driven)
		timeout_ms = 1;
	if (timeout_ms < 0)
		loop_timer_cancel(m->loop, &m->timer);
	else
		loop_timer_set(m->loop, &m->timer, loop_now_ms(m->loop) + (uint64_t)timeout_ms);
	return 0;
}

bool multi_watches(void *multi, int fd)
{
	const struct multi *m = multi;
	const struct watched *w = m->watched;

	while (w && w->watch.fd != fd)
		w = w->next;
	return w;
}

/* ---- handles ---- */

int multi_add(struct multi *m, struct multi_entry *e, CURL *easy, void *owner)
{
	*e = (struct multi_entry){.easy = easy, .owner = owner};
	if (curl_easy_setopt(easy, CURLOPT_PRIVATE, e))
		return -EINVAL;
	if (curl_multi_add_handle(m->curl, easy))
		return -EIO;
	e->next = m->entries;
	e->link = &m->entries;
	if (e->next)
		e->next->link = &e->next;
	m->entries = e;
	return 0;
}

void multi_remove(struct multi *m, struct multi_entry *e)
{
	if (!e->link)
		return;
	curl_multi_remove_handle(m->curl, e->easy);
	*e->link = e->next;
	if (e->next)
		e->next->link = e->link;
	e->link = NULL;
}

bool multi_has_peer(const struct multi_entry *e)
{
	struct sockaddr_storage peer;
	socklen_t size = sizeof(peer);

	return e->sockets > 0 && getpeername(e->fd, (struct sockaddr *)&peer, &size) == 0;
}

void *multi_next_ended(struct multi *m, CURLcode *ret_code)
{
	struct CURLMsg *message;
	int left;

	while ((message = curl_multi_info_read(m->curl, &left)))
		if (message->msg == CURLMSG_DONE) {
			*ret_code = message->data.result;
			return entry_of(message->easy_handle)->owner;
		}
	return NULL;
}

static CURLM *curl_new(struct multi *m)
{
	CURLM *curl = curl_multi_init();
	CURLMcode bad = CURLM_OK;

	if (!curl)
		return NULL;
	/* its wake-up pair comes without CLOEXEC too: marks all, as none may be inherited */
	close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
	bad |= curl_multi_setopt(curl, CURLMOPT_SOCKETFUNCTION, on_socket);
	bad |= curl_multi_setopt(curl, CURLMOPT_SOCKETDATA, m);
	bad |= curl_multi_setopt(curl, CURLMOPT_TIMERFUNCTION, on_timer);
	bad |= curl_multi_setopt(curl, CURLMOPT_TIMERDATA, m);
	bad |= curl_multi_setopt(curl, CURLMOPT_MAX_TOTAL_CONNECTIONS, MULTI_CONNECTIONS);
	bad |= curl_multi_setopt(curl, CURLMOPT_MAXCONNECTS, MULTI_IDLE_CONNECTIONS);
	if (bad == CURLM_OK)
		return curl;
	curl_multi_cleanup(curl);
	return NULL;
}

struct multi *multi_new(struct loop *l, void (*turned)(void *arg), void *arg)
{
	struct multi *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->loop = l;
	m->turned = turned;
	m->arg = arg;
	m->waits = curl_version_info(CURLVERSION_NOW)->version_num < GOES_ON_BY_ITSELF;
	loop_timer_init(&m->timer, timeout_due, m);
	m->curl = curl_new(m);
	if (m->curl)
		return m;
	free(m);
	return NULL;
}

bool multi_renew(struct multi *m)
{
	CURLM *fresh = curl_new(m), *old = m->curl;

	if (!fresh)
		return false;
	m->curl = fresh;
	curl_multi_cleanup(old);
	loop_timer_cancel(m->loop, &m->timer);
	return true;
}

void multi_free(struct multi *m)
{
	if (!m)
		return;
	curl_multi_cleanup(m->curl);
	loop_timer_cancel(m->loop, &m->timer);
	free(m);
}
