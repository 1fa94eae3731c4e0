/*
 * Servers that tell when a document changes: long polls and streams (servers: watch), and the
 * directories of local files. A hint to the trigger: what changed is pulled like anything else.
 *
 * Documents of one server share a request where its kind allows it. A watch that fails is begun
 * again from where it stood, at the next address that does not back off, after a growing, jittered
 * delay; what it meets counts for the backoff of the address, as for pulls. A server that
 * answers at once, again and again, is asked at most WATCH_BURST times in a row, then once a
 * second. A server that compares versions (Nacos) would tell of the same change again: the next
 * request waits for watch_followed(), for WATCH_PULL_MS as long as that keeps it from telling
 * of other documents. While a watch is down the interval counts, as ever.
 *
 * Threads: the loop's. Ownership: items are embedded in their users and stay in place until
 * watch_remove() or watch_free(). Bounds: WATCH_MAX_REQUESTS at a time; what is beyond is
 * said once, and polled.
 */
#ifndef PULLET_WATCHER_H
#define PULLET_WATCHER_H

#include "pull/backoff.h"
#include "files/file_watch.h"
#include "pull/exchange.h"
#include "base/loop.h"

#define WATCH_MAX_REQUESTS 200
#define WATCH_BURST 3
#define WATCH_IDLE_MS 120000u /* a stream without a line for so long is begun again */
#define WATCH_PROVEN_MS                                                                            \
	10000u                /* one that stood for so long is begun again at once when it ends    \
			       */
#define WATCH_SPLAY_MS 500u   /* the first request comes within that */
#define WATCH_RETRY_MS 60000u /* the longest delay */
#define WATCH_PULL_MS 1000u   /* for a pull of one document, when others are watched with it */

struct watch;

enum watch_state { WATCH_OFF, WATCH_CONNECTING, WATCH_ON, WATCH_FAILING };

struct watch_item {
	const char *path;
	/* The version held of it; "" = none. Borrowed for the call. */
	const char *(*version)(void *arg);
	/* It changed, or may have; see kind_watch. */
	void (*changed)(void *arg, const char *key, size_t key_len, const char *version);
	void *arg;

	/* private */
	bool told; /* of a change; that it was followed is waited for */
	struct watch_request *request;
	struct file_watch_entry entry;
};

/* A second transport is made for it: watches keep connections busy that pulls need. drift: for
 * local files; NULL = they are not watched. NULL when there is no memory. */
struct watch *watch_new(struct loop *l, const struct sys *sys, struct backoffs *backoffs,
	const char *ca_file, struct file_watch *drift);
void watch_free(struct watch *w);
/* The machine slept: the connections are dead, all watches begin again from where they stood. */
void watch_resume(struct watch *w);
/* Watches a document of a server from now on. 0; -ENOTSUP: nothing to watch there; -ENOSPC: too
 * many; or another -errno. */
int watch_add(struct watch *w, const struct settings_server *server, struct session *session,
	struct watch_item *item);
/* Ends that; not from within changed(). Others of the same request are asked for again, from where
 * they stood. */
void watch_remove(struct watch *w, struct watch_item *item);
/* What changed() told of was pulled, or that was tried: version() is as new as can be. */
void watch_followed(struct watch_item *item);
/* *ret_error: why it fails, "" = it does not; borrowed. */
enum watch_state watch_status(const struct watch_item *item, const char **ret_error);

#endif
