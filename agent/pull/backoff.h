/*
 * The backoff of each address: how long no request goes there after one that failed. Every request
 * (pulls, watches, receipts, and their logins) asks it first and reports to it how it ended.
 *
 * An address is scheme, host and port, as TLS is spoken to it: sections of `servers:` that name the
 * same one, whatever path is behind it, share its backoff, unless their tls: differs, for then a
 * certificate that is bad for one says nothing about the other. Files share one by their directory.
 *
 * Threads: the loop's. Ownership: joined and left in pairs; the last to leave frees it. Bounds: as
 * many as there are addresses. Times are those of struct sys.
 */
#ifndef PULLET_BACKOFF_H
#define PULLET_BACKOFF_H

#include "lib/shaper.h"
#include "settings/settings.h"
#include "base/sys.h"
#include "http/client.h"

struct backoffs;

struct backoff {       /* read freely, written by the functions only */
	char *error;   /* how the last request that counts failed; NULL = it succeeded */
	char *address; /* the rest is private */
	struct backoffs *all;
	struct shaper shaper;
	size_t users;
};

/* What the end of a request says about its address. */
enum backoff_health {
	BACKOFF_WELL,
	BACKOFF_CONGESTED, /* 429, 503 */
	BACKOFF_FAILED,    /* no connection, cut, TLS, 500 and above */
	BACKOFF_SILENT,    /* no answer in time */
	BACKOFF_UNASKED    /* nothing: the fault is on this host */
};

#define BACKOFF_NONE ((size_t)-1) /* of the addresses */

/* NULL when there is no memory. */
struct backoffs *backoffs_new(const struct sys *sys);
/* All must have left. */
void backoffs_free(struct backoffs *all);

/* Finds or makes the backoff of an address; NULL when there is no memory. */
struct backoff *backoff_join(
	struct backoffs *all, const struct settings_server *server, const char *url);
/* NULL is fine. */
void backoff_leave(struct backoff *b);
/* Joins those of all addresses of a server, in the order of its urls; NULL: no memory. */
struct backoff **backoff_join_all(struct backoffs *all, const struct settings_server *server);
void backoff_leave_all(struct backoff **list, size_t count);

/* Until when no request may go there; 0 = one may now. */
uint64_t backoff_until(const struct backoff *b, uint64_t now_ms);
/* Returns the first of a list, from `first` on and all around, without `skip`, to which a request
 * may go; else the one to which it may soonest, and when; where none is left but `skip` 0 and
 * UINT64_MAX. */
size_t backoff_pick(struct backoff *const *list, size_t count, size_t first, size_t skip,
	uint64_t now_ms, uint64_t *ret_until_ms);

enum backoff_health backoff_health(const struct http_client_response *response);
/* Counts the end of a request that began at started_ms. SILENT and UNASKED change nothing. */
enum backoff_health backoff_ended(
	struct backoff *b, uint64_t started_ms, const struct http_client_response *response);
/* The address kept a request waiting until its time limit: backs off for as long at least. */
void backoff_kept_waiting(struct backoff *b, uint64_t started_ms);
/* See shaper_limit() and shaper_lift(). */
void backoff_limit(struct backoff *b, uint64_t longest_ms);
void backoff_lift(struct backoff *b);

#endif
