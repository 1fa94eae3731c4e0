/*
 * Servers that report when a document changes: long polls and streams (servers: watch), and the
 * directories of local files. A hint to the trigger: a changed document is pulled as ever, but for
 * the request where the document came with the news.
 *
 * Documents of one server share a request where its kind allows it. A watch that fails starts again
 * from its position, at the next address that is not in backoff, after a growing, jittered delay;
 * its failures count for the backoff of the address, as those of pulls. A server that answers at
 * once, again and again, is asked at most WATCH_BURST times in a row, then once a second. A server
 * that compares versions (Nacos) would report the same change again: the next request waits for
 * watch_followed(), but only WATCH_PULL_MS while that delays reports of other documents, and is
 * then for those alone. While a watch is down the interval counts, as ever.
 *
 * Threads: the loop's. Ownership: items are embedded in their users and stay in place until
 * watch_remove() or watch_free(). Bounds: WATCH_MAX_REQUESTS at a time; documents beyond are
 * polled, which is logged once.
 */
#ifndef PULLET_PULL_WATCH_H
#define PULLET_PULL_WATCH_H

#include "pull/backoff.h"
#include "files/file_watch.h"
#include "pull/exchange.h"
#include "base/loop.h"

#define WATCH_MAX_REQUESTS 200
#define WATCH_BURST 3
#define WATCH_IDLE_MS 120000u  /* a stream without a line for so long starts again */
#define WATCH_PROVEN_MS 10000u /* a watch that was up for so long starts again at once */
#define WATCH_SPLAY_MS 500u    /* the first request comes within that */
#define WATCH_RETRY_MS 60000u  /* the longest delay */
#define WATCH_PULL_MS 1000u    /* for a pull of one document, when others are watched with it */

struct watch;

enum watch_state { WATCH_OFF, WATCH_CONNECTING, WATCH_ON, WATCH_FAILING };

struct watch_item {
	const char *path;
	/* The version that is held; "" = none. Borrowed for the call. */
	const char *(*version)(void *arg);
	/* The document changed, or may have; see kind_watch. */
	void (*changed)(void *arg, const char *key, size_t key_len, const char *version);
	void *arg;
	/* The whole document came with the news; see kind_watch. NULL = not wanted. */
	void (*answered)(void *arg, const struct http_client_response *answer);

	/* private */
	bool reported; /* a change; waits for watch_followed() */
	struct watch_request *request;
	struct file_watch_entry entry; /* of a local file, and the next three */
	const struct settings_server *local;
	struct watch *watcher;
	const char *error; /* constant; NULL: it is watched */
};

/* Makes an HTTP client of its own: watches keep connections busy that pulls need. drift: for local
 * files; NULL = their watches fail. NULL when there is no memory. */
struct watch *watch_new(struct loop *l, const struct sys *sys, struct backoffs *backoffs,
	const char *ca_file, struct file_watch *drift);
void watch_free(struct watch *w);
/* After a suspend: the connections are dead, all watches start again from their positions. */
void watch_resume(struct watch *w);
/* Watches a document of a server from now on. 0; -ENOTSUP: it cannot be watched; -ENOSPC: too many;
 * or another -errno. */
int watch_add(struct watch *w, const struct settings_server *server,
	struct exchange_session *session, struct watch_item *item);
/* Ends that; not from within changed(). Others of the same request go on in a new one. */
void watch_remove(struct watch *w, struct watch_item *item);
/* The document that changed() reported was pulled, or that was tried: version() is up to date. The
 * directory of a local file is watched again where it is another one by now. */
void watch_followed(struct watch_item *item);
/* *ret_error: why the watch fails, "" = it does not; borrowed. */
enum watch_state watch_status(const struct watch_item *item, const char **ret_error);

#endif
