/*
 * What the answers of the servers come to. Surprising: what is an error of one address is only a
 * warning where another one of the same server has the document, for the agent goes there.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "crypto/minisign.h"
#include "cli/doctor/pulls.h"

#define DAY_MS (INT64_C(24) * 3600 * 1000)
#define CERTIFICATE_MS (30 * DAY_MS)
#define CLOCK_NOTE_MS 5000
#define CLOCK_WARNING_MS 60000

static const char *remedy_for(const struct doctor_pull *p)
{
	if (p->tls)
		return "look at tls: of the server here, and at its certificate there";
	if (p->too_large)
		return "raise max_size of the server, or publish less there";
	if (p->sha256[0]) /* it came whole, and cannot be read */
		return "put it right at its source: as it is, the agent does not take it";
	switch (p->cause) {
	case KIND_CAUSE_NOT_FOUND:
		return "put it there, or name the path where it is";
	case KIND_CAUSE_EMPTY:
		return "publish it whole; an empty document is never taken";
	case KIND_CAUSE_FORBIDDEN:
		return "look at auth: of the server here, and at what it may read there";
	case KIND_CAUSE_UNREACHABLE:
		return "check the address, whether a server runs there, and firewalls on the way";
	case KIND_CAUSE_TIMEOUT:
		return "look at the server's load and at firewalls on the way, or at the resolver "
		       "(/etc/resolv.conf) where its name was not found; timeout and "
		       "connect_timeout are the limits";
	case KIND_CAUSE_OVERLOADED:
		return "nothing here: the agent holds back and comes again";
	case KIND_CAUSE_HOST:
		return "see files, below; nothing is wrong with the server";
	case KIND_CAUSE_NONE:
	case KIND_CAUSE_OLDER:
	case KIND_CAUSE_ANSWER:
	case KIND_CAUSES:
		break;
	}
	return "look at what the server sends: curl -v";
}

/* ---- addresses ---- */

static bool other_answers(const struct doctor_pull_upstream *u, const struct doctor_pull_address *a)
{
	for (size_t i = 0; i < u->server->url_count; i++)
		if (&u->addresses[i] != a && u->addresses[i].good)
			return true;
	return false;
}

static void report_dead_address(const struct doctor_pull_upstream *u,
	const struct doctor_pull_address *a, struct doctor_list *l)
{
	char rest[64] = "";

	if (a->skipped)
		snprintf(rest, sizeof(rest), " (%zu more document%s not asked for)", a->skipped,
			a->skipped == 1 ? "" : "s");
	doctor_add(l, other_answers(u, a) ? DOCTOR_WARNING : DOCTOR_ERROR, a->url,
		remedy_for(a->dead), "%s: %s%s%s", kind_cause_name(a->dead->cause), a->dead->why,
		rest, other_answers(u, a) ? "; the agent goes to another address" : "");
}

static void report_certificate(
	const struct doctor_pull_address *a, int64_t now_ms, struct doctor_list *l)
{
	int64_t days = (a->certificates_end_ms - now_ms) / DAY_MS;
	char date[DOCTOR_DATE];

	if (a->certificates_end_ms == 0 || a->certificates_end_ms - now_ms > CERTIFICATE_MS)
		return;
	doctor_date(a->certificates_end_ms, date);
	doctor_add(l, DOCTOR_WARNING, a->url, "renew it there before that day",
		"a certificate of the server expires on %s (%" PRId64 " day%s left): then nothing "
		"can be pulled",
		date, days, days == 1 ? "" : "s");
}

static void report_server_clock(const struct doctor_pull_address *a, struct doctor_list *l)
{
	int64_t off_ms = a->clock_ms < 0 ? -a->clock_ms : a->clock_ms;

	if (!a->has_clock || off_ms <= CLOCK_NOTE_MS + (int64_t)a->slowest_ms)
		return;
	doctor_add(l, off_ms > CLOCK_WARNING_MS ? DOCTOR_WARNING : DOCTOR_NOTE, a->url,
		"set the one that is wrong: certificates and signatures are validated by this "
		"host's",
		"the server's clock is %" PRId64 " s %s this host's", off_ms / 1000,
		a->clock_ms > 0 ? "ahead of" : "behind");
}

static void report_address(const struct doctor_pull_upstream *u,
	const struct doctor_pull_address *a, int64_t now_ms, struct doctor_list *l)
{
	if (a->dead)
		report_dead_address(u, a, l);
	else if (a->skipped)
		doctor_add(l, DOCTOR_NOTE, a->url, "give more time with --timeout",
			"%zu document%s could not be asked for in time", a->skipped,
			a->skipped == 1 ? "" : "s");
	if (a->good)
		doctor_add(l, DOCTOR_OK, a->url, NULL,
			"%zu document%s came, the slowest in %" PRIu64 " ms", a->good,
			a->good == 1 ? "" : "s", a->slowest_ms);
	report_certificate(a, now_ms, l);
	report_server_clock(a, l);
}

static void report_closed_upstream(
	const struct doctor *d, const struct doctor_pull_upstream *u, struct doctor_list *l)
{
	doctor_add(l, DOCTOR_NOTE, u->server->name ? u->server->name : u->server->urls[0],
		"run this as root or as the agent's user",
		"not looked at: you may not read a secret that %s uses here", d->who.name);
}

/* ---- documents ---- */

static bool has_come(const struct doctor_pull *p)
{
	return p->state == DOCTOR_PULL_ANSWERED && p->cause == KIND_CAUSE_NONE;
}

static bool came_elsewhere(const struct doctor_pull *p)
{
	const struct doctor_pull_document *d = p->document;

	for (size_t i = 0; i < d->upstream->server->url_count; i++)
		if (&d->pulls[i] != p && has_come(&d->pulls[i]))
			return true;
	return false;
}

/* Said of the address, also where several were asked for at a time. */
static bool is_of_dead_address(const struct doctor_pull *p)
{
	const struct doctor_pull *dead = p->address->dead;

	return dead == p || (dead && dead->cause == p->cause && strcmp(dead->why, p->why) == 0);
}

static void report_document_failure(const struct doctor_pull *p, struct doctor_list *l)
{
	const struct doctor_pull_document *d = p->document;
	bool elsewhere = came_elsewhere(p);

	if (p->cause == KIND_CAUSE_NONE || is_of_dead_address(p))
		return;
	if (d->is_signature && p->absent)
		doctor_add(l, elsewhere ? DOCTOR_WARNING : DOCTOR_ERROR, d->config,
			"sign it (pullet sign) and publish the signature beside it",
			"%s%s is not there: without its signature no version is taken",
			p->address->url, LOG_URL(d->path));
	else
		doctor_add_caused(l, elsewhere ? DOCTOR_WARNING : DOCTOR_ERROR, d->config,
			remedy_for(p), p->why, "%s%s: %s", p->address->url, LOG_URL(d->path),
			kind_cause_name(p->cause));
}

static void report_document_form(const struct doctor_pull *p, struct doctor_list *l)
{
	const struct doctor_pull_document *d = p->document;
	uint64_t max_bytes = d->upstream->server->max_bytes;

	if (p->absent)
		return;
	if (p->nameless && !d->is_signature)
		doctor_add(l, DOCTOR_NOTE, d->config,
			"let the server send an ETag: then an unchanged document costs no transfer",
			"%s%s has neither ETag nor Last-Modified: each pull transfers it whole",
			p->address->url, LOG_URL(d->path));
	if (p->len > max_bytes / 10 * 9)
		doctor_add(l, DOCTOR_WARNING, d->config, "raise max_size of the server",
			"%s%s has %zu of the %" PRIu64 " bytes that it may have", p->address->url,
			LOG_URL(d->path), p->len, max_bytes);
	if (p->took_ms > d->timeout_ms / 2)
		doctor_add(l, DOCTOR_WARNING, d->config,
			p->lookup_ms > p->took_ms / 2
				? "look at the resolver (/etc/resolv.conf)"
				: "look at the server's load, or raise timeout",
			"%s%s took %" PRIu64 " ms of the %" PRIu64 " that a pull may take, %" PRIu64
			" of them to find the server's name",
			p->address->url, LOG_URL(d->path), p->took_ms, d->timeout_ms, p->lookup_ms);
}

/* Two addresses are to have the same content; one that lags shows up here. */
static void report_difference(const struct doctor_pull_document *d, struct doctor_list *l)
{
	const struct doctor_pull *first = NULL;

	for (size_t i = 0; i < d->upstream->server->url_count; i++) {
		const struct doctor_pull *p = &d->pulls[i];

		if (!has_come(p))
			continue;
		if (!first)
			first = p;
		else if (strcmp(first->sha256, p->sha256) != 0)
			doctor_add(l, DOCTOR_WARNING, d->config,
				"bring them to the same version: this host takes whichever answers",
				"%s and %s have different contents at %s", first->address->url,
				p->address->url, LOG_URL(d->path));
	}
}

static void report_signature(const struct doctor_pull *p, const struct doctor_pull *signature,
	int64_t now_ms, struct doctor_list *l)
{
	const struct doctor_pull_document *d = p->document;
	struct minisign_demand demand;
	struct minisign_facts facts;
	char why[FILE_WHY], date[DOCTOR_DATE];

	if (!has_come(p) || !has_come(signature) || p->absent || signature->absent)
		return;
	demand = settings_signature_demand(d->of, d->layer);
	if (minisign_verify(d->public_keys, p->body.data ? p->body.data : "", p->body.len,
		    signature->body.data ? signature->body.data : "", signature->body.len, &facts,
		    why) ||
		minisign_check(&facts, &demand, why)) {
		doctor_add(l, DOCTOR_ERROR, d->config,
			"sign what is published, for this place, with a key that verify: names "
			"(pullet sign)",
			"%s%s: %s", p->address->url, LOG_URL(d->path), why);
		return;
	}
	if (!facts.has_rev)
		doctor_add(l, DOCTOR_NOTE, d->config,
			"sign with pullet sign, or minisign -t 'rev=N', N growing; then set "
			"verify: {rev: required}",
			"its signature has no rev=: an old version can be played back with its old "
			"signature");
	if (!facts.has_expiry || facts.expires_ms - now_ms > DAY_MS)
		return;
	doctor_date(facts.expires_ms, date);
	doctor_add(l, facts.expires_ms > now_ms ? DOCTOR_WARNING : DOCTOR_ERROR, d->config,
		"sign it again", "its signature %s %s",
		facts.expires_ms > now_ms ? "is good for less than a day, until" : "expired on",
		date);
}

static void report_document(const struct pulls *p, size_t i, int64_t now_ms, struct doctor_list *l)
{
	const struct doctor_pull_document *d = &p->documents[i];

	for (size_t k = 0; k < d->upstream->server->url_count; k++) {
		const struct doctor_pull *pull = &d->pulls[k];

		if (pull->state != DOCTOR_PULL_ANSWERED)
			continue;
		report_document_failure(pull, l);
		if (has_come(pull))
			report_document_form(pull, l);
		if (d->public_keys)
			report_signature(pull, &p->documents[i + 1].pulls[k], now_ms, l);
	}
	report_difference(d, l);
}

/* ---- all of it ---- */

static void report_proxies(struct doctor_list *l)
{
	static const char *const names[] = {
		"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *value = getenv(names[i]);

		if (value && value[0])
			doctor_add(l, DOCTOR_NOTE, names[i],
				"nothing, if the servers can be reached without one",
				"is set here; the agent never uses a proxy");
	}
}

void doctor_servers(struct doctor *d, struct doctor_list *l)
{
	int64_t now_ms = sys_real.wall_ms();
	struct pulls p;

	report_proxies(l);
	if (doctor_pulls_run(d, &p)) {
		doctor_add(l, DOCTOR_NOTE, "servers", NULL, "not looked at: out of memory");
		doctor_pulls_fini(&p);
		return;
	}
	for (size_t i = 0; i < d->settings->server_count; i++) {
		const struct doctor_pull_upstream *u = &p.upstreams[i];

		if (u->used && u->closed)
			report_closed_upstream(d, u, l);
		for (size_t k = 0; u->used && !u->closed && k < u->server->url_count; k++)
			report_address(u, &u->addresses[k], now_ms, l);
	}
	for (size_t i = 0; i < p.count; i++)
		report_document(&p, i, now_ms, l);
	doctor_pulls_fini(&p);
}
