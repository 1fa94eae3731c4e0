/*
 * The backoffs of all addresses, in a tree by their names. Surprising: the tls: of a section is
 * part of an address's name.
 */
#include "pull/backoff.h"

#include <ctype.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/ending.h"

struct backoffs {
	const struct sys *sys;
	void *tree; /* struct backoff, by address */
};

/* ---- addresses ---- */

static int compare_addresses(const void *a, const void *b)
{
	return strcmp(((const struct backoff *)a)->address, ((const struct backoff *)b)->address);
}

/* "https://HOST[:PORT] CA CRL CERT KEY MIN"; of a file its whole url. NULL: no memory. */
static char *name_address(const struct settings_server *server, const char *url)
{
	const char *host = strstr(url, "://");
	bool tls = strncasecmp(url, "https:", 6) == 0;
	size_t len;
	char *name;

	if (!host || strncasecmp(url, "file:", 5) == 0)
		return strdup(url);
	host += 3;
	len = strcspn(host, "/?#");
	if (ends_in(host, len, tls ? ":443" : ":80")) /* the default of its scheme */
		len -= tls ? 4 : 3;
	len += (size_t)(host - url);
	if (asprintf(&name, "%.*s %s\n%s\n%s\n%s\n%d", (int)len, url,
		    tls && server->ca ? server->ca : "", tls && server->crl ? server->crl : "",
		    tls && server->cert ? server->cert : "", tls && server->key ? server->key : "",
		    tls ? (int)server->tls_min : 0) < 0)
		return NULL;
	for (size_t i = 0; i < len; i++)
		name[i] = (char)tolower((unsigned char)name[i]);
	return name;
}

static void free_backoff(struct backoff *b)
{
	free(b->address);
	free(b->error);
	free(b);
}

struct backoff *backoff_join(
	struct backoffs *all, const struct settings_server *server, const char *url)
{
	struct backoff *b = calloc(1, sizeof(*b)), **found;

	if (!b)
		return NULL;
	b->address = name_address(server, url);
	found = b->address ? tsearch(b, &all->tree, compare_addresses) : NULL;
	if (!found || *found != b) {
		free_backoff(b);
		b = found ? *found : NULL;
	} else {
		b->all = all;
		shaper_init(&b->shaper);
	}
	if (b)
		b->users++;
	return b;
}

void backoff_leave(struct backoff *b)
{
	if (!b || --b->users)
		return;
	tdelete(b, &b->all->tree, compare_addresses);
	free_backoff(b);
}

struct backoff **backoff_join_all(struct backoffs *all, const struct settings_server *server)
{
	struct backoff **list = calloc(server->url_count, sizeof(struct backoff *));

	for (size_t i = 0; list && i < server->url_count; i++) {
		list[i] = backoff_join(all, server, server->urls[i]);
		if (list[i])
			continue;
		backoff_leave_all(list, server->url_count);
		return NULL;
	}
	return list;
}

void backoff_leave_all(struct backoff **list, size_t count)
{
	for (size_t i = 0; list && i < count; i++)
		backoff_leave(list[i]);
	free(list);
}

/* ---- may a request go? ---- */

uint64_t backoff_until(const struct backoff *b, uint64_t now_ms)
{
	return shaper_holds(&b->shaper, now_ms) ? shaper_until(&b->shaper) : 0;
}

size_t backoff_pick(struct backoff *const *list, size_t count, size_t first, size_t skip,
	uint64_t now_ms, uint64_t *ret_until_ms)
{
	uint64_t least_ms = UINT64_MAX;
	size_t best = 0;

	for (size_t n = 0; n < count; n++) {
		size_t i = (first + n) % count;
		uint64_t until_ms = backoff_until(list[i], now_ms);

		if (i != skip && until_ms < least_ms) {
			least_ms = until_ms;
			best = i;
		}
	}
	*ret_until_ms = least_ms;
	return best;
}

/* ---- how requests ended ---- */

enum backoff_health backoff_health(const struct http_client_response *r)
{
	static const enum backoff_health table[HTTP_CLIENT_RESULTS] = {
		[HTTP_CLIENT_OK] = BACKOFF_WELL,
		[HTTP_CLIENT_TIMEOUT] = BACKOFF_SILENT,
		[HTTP_CLIENT_REFUSED] = BACKOFF_FAILED,
		[HTTP_CLIENT_NETWORK] = BACKOFF_FAILED,
		[HTTP_CLIENT_TLS] = BACKOFF_FAILED,
		[HTTP_CLIENT_HOST] = BACKOFF_UNASKED,
		[HTTP_CLIENT_TOO_LARGE] = BACKOFF_WELL,
		[HTTP_CLIENT_CODING] = BACKOFF_WELL, /* one document is broken, as bad YAML is */
		[HTTP_CLIENT_PROTOCOL] = BACKOFF_FAILED,
	};

	if (r->result == HTTP_CLIENT_TIMEOUT && !r->sent)
		return BACKOFF_FAILED;
	if (r->result == HTTP_CLIENT_OK && (r->status == 429 || r->status == 503))
		return BACKOFF_CONGESTED;
	if (r->result == HTTP_CLIENT_OK && r->status >= 500)
		return BACKOFF_FAILED;
	return table[r->result];
}

static uint64_t server_advice_ms(const struct http_client_response *response)
{
	uint64_t after_ms = response->retry_after_ms;

	if (after_ms == HTTP_CLIENT_NO_ADVICE)
		return SHAPER_NO_ADVICE;
	/* one more, for the clock is cut to milliseconds: never sooner than asked */
	return 1 + (after_ms > SHAPER_ADVICE_MIN_MS ? after_ms : SHAPER_ADVICE_MIN_MS);
}

/* Takes the error. */
static void record_failure(struct backoff *b, uint64_t started_ms, enum shaper_failure kind,
	uint64_t advice, char *error)
{
	const struct sys *sys = b->all->sys;

	shaper_failed(&b->shaper, started_ms, sys->now_ms(), kind, advice, sys->random());
	free(b->error);
	b->error = error;
}

enum backoff_health backoff_ended(
	struct backoff *b, uint64_t started_ms, const struct http_client_response *response)
{
	enum backoff_health health = backoff_health(response);
	bool congested = health == BACKOFF_CONGESTED;
	char *error = NULL;

	if (health == BACKOFF_WELL) {
		shaper_succeeded(&b->shaper, started_ms);
		free(b->error);
		b->error = NULL;
	} else if (congested || health == BACKOFF_FAILED) {
		if (response->result != HTTP_CLIENT_OK)
			error = strdup(response->message);
		else if (asprintf(&error, "it answered %ld", response->status) < 0)
			error = NULL;
		record_failure(b, started_ms, congested ? SHAPER_CONGESTION : SHAPER_NETWORK,
			congested ? server_advice_ms(response) : SHAPER_NO_ADVICE, error);
	}
	return health;
}

void backoff_kept_waiting(struct backoff *b, uint64_t started_ms)
{
	record_failure(b, started_ms, SHAPER_NETWORK, b->all->sys->now_ms() - started_ms,
		strdup("it does not answer in time"));
}

void backoff_limit(struct backoff *b, uint64_t longest_ms)
{
	shaper_limit(&b->shaper, longest_ms);
}

void backoff_lift(struct backoff *b)
{
	shaper_lift(&b->shaper);
}

/* ---- all of them ---- */

struct backoffs *backoffs_new(const struct sys *sys)
{
	struct backoffs *all = calloc(1, sizeof(*all));

	if (all)
		all->sys = sys;
	return all;
}

void backoffs_free(struct backoffs *all)
{
	free(all);
}
