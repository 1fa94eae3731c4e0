/*
 * Servers that tell when a document changes: long polls and streams (servers: watch), and the
 * directories of local files. A hint to the trigger: what changed is pulled like anything else.
 *
 * Documents of one server share a request where its kind allows it. A watch that fails is begun
 * again from where it stood, at the next address that does not back off, after a growing, jittered
 * delay; what it meets counts for the backoff of the address, as for pulls. A server that
 * answers at once, again and again, is asked at most WATCHER_BURST times in a row, then once a
 * second. A server that compares versions (Nacos) would tell of the same change again: the next
 * request waits for watcher_followed(), for WATCHER_PULL_MS as long as that keeps it from telling
 * of other documents. While a watch is down the interval counts, as ever.
 *
 * Threads: the loop's. Ownership: items are embedded in their users and stay in place until
 * watcher_remove() or watcher_free(). Bounds: WATCHER_MAX_REQUESTS at a time; what is beyond is
 * said once, and polled.
 */
#ifndef PULLET_WATCHER_H
#define PULLET_WATCHER_H

#include "pull/backoff.h"
#include "files/file_watch.h"
#include "pull/exchange.h"
#include "base/loop.h"

#define WATCHER_MAX_REQUESTS 200
#define WATCHER_BURST 3
#define WATCHER_IDLE_MS 120000u /* a stream without a line for so long is begun again */
#define WATCHER_PROVEN_MS                                                                          \
	10000u                  /* one that stood for so long is begun again at once when it ends */
#define WATCHER_SPLAY_MS 500u   /* the first request comes within that */
#define WATCHER_RETRY_MS 60000u /* the longest delay */
#define WATCHER_PULL_MS 1000u   /* for a pull of one document, when others are watched with it */

struct watcher;

enum watcher_state { WATCHER_OFF, WATCHER_CONNECTING, WATCHER_ON, WATCHER_FAILING };

struct watcher_item {
	const char *path;
	/* The version held of it; "" = none. Borrowed for the call. */
	const char *(*version)(void *arg);
	/* It changed, or may have; see kind_watch. */
	void (*changed)(void *arg, const char *key, size_t key_len, const char *version);
	void *arg;

	/* private */
	bool told; /* of a change; that it was followed is waited for */
	struct watch_request *request;
	struct drift_entry entry;
};

/* A second transport is made for it: watches keep connections busy that pulls need. drift: for
 * local files; NULL = they are not watched. NULL when there is no memory. */
struct watcher *watcher_new(struct loop *l, const struct sys *sys, struct backoffs *backoffs,
	const char *ca_file, struct drift *drift);
void watcher_free(struct watcher *w);
/* The machine slept: the connections are dead, all watches begin again from where they stood. */
void watcher_resume(struct watcher *w);
/* Watches a document of a server from now on. 0; -ENOTSUP: nothing to watch there; -ENOSPC: too
 * many; or another -errno. */
int watcher_add(struct watcher *w, const struct settings_server *server, struct session *session,
	struct watcher_item *item);
/* Ends that; not from within changed(). Others of the same request are asked for anew, from where
 * they stood. */
void watcher_remove(struct watcher *w, struct watcher_item *item);
/* What changed() told of was pulled, or that was tried: version() is as new as can be. */
void watcher_followed(struct watcher_item *item);
/* *ret_error: why it fails, "" = it does not; borrowed. */
enum watcher_state watcher_status(const struct watcher_item *item, const char **ret_error);

#endif
