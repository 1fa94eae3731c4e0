/*
 * Hosts sorted by name, each with its "known" value and the pages of its receipt.
 *
 * Surprising: an alive host without a receipt for one of its known configs is silent about that
 * one: a page is missing.
 */
#include "fleet/roster.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "settings/form.h"
#include "base/sorted.h"

#define MAX_HOST 64
#define MAX_PAGES (SETTINGS_MAX_CONFIGS / RECEIPT_CONFIGS)

struct page {
	struct receipt *receipt; /* NULL = absent */
	uint64_t lease;
	int64_t latest_ms;
	enum ghost ghost;
};

struct host {
	char name[MAX_HOST + 1];
	struct receipt *known; /* its configs by name */
	struct page *pages;    /* by number, from 1 */
	size_t page_count;
};

struct roster {
	const char *prefix;
	struct host **hosts;
	size_t count;
	size_t bytes, max_bytes; /* of hosts */
	struct ghosts *ghosts;   /* keys that are not a page of a host */
};

/* ---- hosts ---- */

static size_t host_bytes(const struct host *h)
{
	size_t bytes = sizeof(*h) + sizeof(h) + h->page_count * sizeof(h->pages[0]);

	for (size_t i = 0; i < h->page_count; i++)
		bytes += h->pages[i].receipt ? h->pages[i].receipt->bytes : 0;
	return bytes + (h->known ? h->known->bytes : 0);
}

static const char *host_at(const void *roster, size_t i)
{
	return ((const struct roster *)roster)->hosts[i]->name;
}

static bool find_roster_host(const struct roster *r, const char *name, size_t *ret_at)
{
	return sorted_find(r, r->count, host_at, name, ret_at);
}

static struct host *get_host(struct roster *r, const char *name, bool make)
{
	struct host **hosts, *h;
	size_t at;

	if (find_roster_host(r, name, &at))
		return r->hosts[at];
	if (!make)
		return NULL;
	hosts = array_room(r->hosts, r->count, sizeof(struct host *));
	if (hosts)
		r->hosts = hosts;
	h = hosts ? calloc(1, sizeof(*h)) : NULL;
	if (!h)
		return NULL;
	memcpy(h->name, name, strlen(name) + 1);
	memmove(&r->hosts[at + 1], &r->hosts[at], (r->count - at) * sizeof(struct host *));
	r->hosts[at] = h;
	r->count++;
	r->bytes += host_bytes(h);
	return h;
}

/* Does the receipt count? An unknown config does not invalidate the others. */
static bool page_fits(const struct page *p)
{
	return p->receipt && (p->ghost == GHOST_NONE || p->ghost == GHOST_CONFIG);
}

static bool is_empty(const struct host *h)
{
	for (size_t i = 0; i < h->page_count; i++)
		if (h->pages[i].receipt)
			return false;
	return !h->known;
}

static void host_free(struct host *h)
{
	for (size_t i = 0; i < h->page_count; i++)
		receipt_free(h->pages[i].receipt);
	free(h->pages);
	receipt_free(h->known);
	free(h);
}

static void drop_if_empty(struct roster *r, const char *name)
{
	size_t at;

	if (!find_roster_host(r, name, &at) || !is_empty(r->hosts[at]))
		return;
	r->bytes -= host_bytes(r->hosts[at]);
	host_free(r->hosts[at]);
	r->count--;
	memmove(&r->hosts[at], &r->hosts[at + 1], (r->count - at) * sizeof(struct host *));
}

/* ---- keys ---- */

struct name {
	char host[MAX_HOST + 1];
	bool known;
	size_t page; /* from 0 */
};

/* "known/HOST", "HOST", "HOST#2". */
static bool parse_key(const struct roster *r, const char *key, size_t len, struct name *ret)
{
	size_t prefix = strlen(r->prefix), host;
	const char *number;

	*ret = (struct name){.known = false};
	if (len < prefix || memcmp(key, r->prefix, prefix) != 0)
		return false;
	key += prefix;
	len -= prefix;
	if (len > strlen(RECEIPT_KNOWN) &&
		strncmp(key, RECEIPT_KNOWN, strlen(RECEIPT_KNOWN)) == 0) {
		ret->known = true;
		key += strlen(RECEIPT_KNOWN);
		len -= strlen(RECEIPT_KNOWN);
	}
	number = ret->known ? NULL : memchr(key, '#', len);
	host = number ? (size_t)(number - key) : len;
	if (host > MAX_HOST || memchr(key, '\0', host))
		return false;
	memcpy(ret->host, key, host);
	if (settings_check_name(ret->host))
		return false;
	if (!number)
		return true;
	for (const char *p = number + 1; p < key + len; p++) {
		if (*p < '0' || *p > '9' || ret->page > MAX_PAGES)
			return false;
		ret->page = ret->page * 10 + (size_t)(*p - '0');
	}
	if (ret->page < 2 || ret->page > MAX_PAGES || number[1] == '0')
		return false;
	ret->page--;
	return true;
}

static int make_page_room(struct host *h, size_t page)
{
	struct page *pages;

	if (page < h->page_count)
		return 0;
	pages = realloc(h->pages, (page + 1) * sizeof(pages[0]));
	if (!pages)
		return -ENOMEM;
	h->pages = pages;
	while (h->page_count <= page)
		h->pages[h->page_count++] = (struct page){.receipt = NULL};
	return 0;
}

static int compare_configs(const void *a, const void *b)
{
	const struct receipt_config *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static void set_known(struct host *h, struct receipt *receipt)
{
	receipt_free(h->known);
	h->known = receipt;
	if (receipt && receipt->config_count)
		qsort(receipt->configs, receipt->config_count, sizeof(receipt->configs[0]),
			compare_configs);
}

/* Takes the receipt on success. */
static int replace_receipt(
	struct host *h, const struct name *name, struct receipt *receipt, uint64_t lease)
{
	if (name->known) {
		set_known(h, receipt);
		return 0;
	}
	if (make_page_room(h, name->page))
		return -ENOMEM;
	receipt_free(h->pages[name->page].receipt);
	h->pages[name->page] = (struct page){.receipt = receipt,
		.lease = lease,
		.latest_ms = receipt ? receipt_latest_ms(receipt) : 0};
	return 0;
}

/* Checks a receipt by itself. */
static enum ghost check_bond(
	const struct name *name, const struct receipt *receipt, const struct roster_value *value)
{
	enum receipt_fault fault = receipt_check(receipt, name->known);

	if (fault != RECEIPT_SOUND)
		return fault == RECEIPT_LARGE ? GHOST_LARGE : GHOST_ODD;
	if (name->known)
		return GHOST_NONE;
	if (strcmp(receipt->host, name->host) != 0 || receipt->page != name->page + 1 ||
		receipt->page > receipt->pages)
		return GHOST_HOST;
	return value->lease ? GHOST_NONE : GHOST_UNBOUND;
}

/* Reads a value: the receipt, or NULL and a ghost. 0, -ENOMEM. */
static int read_receipt_value(const struct name *name, const struct roster_value *value,
	struct receipt **ret_receipt, enum ghost *ret_ghost)
{
	struct receipt *receipt = NULL;
	int e;

	*ret_receipt = NULL;
	*ret_ghost = GHOST_LARGE;
	if (value->len > RECEIPT_MAX)
		return 0;
	e = name->known ? receipt_read_known(value->data, value->len, &receipt)
			: receipt_read(value->data, value->len, &receipt);
	if (e == -ENOMEM)
		return e;
	*ret_ghost = e == -EPROTONOSUPPORT ? GHOST_NEWER
		     : e                   ? GHOST_VALUE
					   : check_bond(name, receipt, value);
	if (*ret_ghost == GHOST_NONE)
		*ret_receipt = receipt;
	else
		receipt_free(receipt);
	return 0;
}

/* Puts a receipt, or NULL, in its place; takes it. */
static int put_host(
	struct roster *r, const struct name *name, struct receipt *receipt, uint64_t lease)
{
	struct host *h = get_host(r, name->host, receipt != NULL);
	int e;

	if (!h || (!receipt && !name->known && name->page >= h->page_count)) {
		receipt_free(receipt);
		return h || !receipt ? 0 : -ENOMEM;
	}
	r->bytes -= host_bytes(h);
	e = replace_receipt(h, name, receipt, lease);
	r->bytes += host_bytes(h);
	if (e)
		receipt_free(receipt);
	drop_if_empty(r, name->host);
	return e;
}

static int put_ghost(struct roster *r, const char *key, size_t len, enum ghost ghost)
{
	size_t prefix = strlen(r->prefix);

	if (len >= prefix && memcmp(key, r->prefix, prefix) == 0) {
		key += prefix;
		len -= prefix;
	}
	return ghosts_put(r->ghosts, key, len, ghost);
}

int roster_put(struct roster *r, const char *key, size_t key_len, const struct roster_value *value)
{
	enum ghost ghost = value ? GHOST_KEY : GHOST_NONE;
	struct receipt *receipt = NULL;
	struct name name;
	int e = 0;

	if (parse_key(r, key, key_len, &name)) {
		if (value)
			e = read_receipt_value(&name, value, &receipt, &ghost);
		if (e == 0)
			e = put_host(r, &name, receipt, value ? value->lease : 0);
	}
	if (e == 0)
		e = put_ghost(r, key, key_len, ghost);
	return e ? e : r->bytes + ghosts_bytes(r->ghosts) > r->max_bytes ? -EFBIG : 0;
}

struct roster *roster_new(const char *prefix, size_t max_bytes)
{
	struct roster *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->prefix = prefix;
	r->max_bytes = max_bytes;
	r->ghosts = ghosts_new();
	if (r->ghosts)
		return r;
	free(r);
	return NULL;
}

void roster_free(struct roster *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->count; i++)
		host_free(r->hosts[i]);
	free(r->hosts);
	ghosts_free(r->ghosts);
	free(r);
}

/* ---- which receipts count ---- */

struct bond { /* of a page to its lease */
	uint64_t lease;
	const struct host *host;
	struct page *page;
};

static int compare_bonds(const void *a, const void *b)
{
	const struct bond *x = a, *y = b;

	return (x->lease > y->lease) - (x->lease < y->lease);
}

static bool host_knows(const struct host *h, const struct receipt_config *c)
{
	return h->known &&
	       bsearch(c, h->known->configs, h->known->config_count, sizeof(*c), compare_configs);
}

static enum ghost check_page(const struct host *h, const struct page *p, int64_t now_ms)
{
	if (p->latest_ms > now_ms + ROSTER_SLACK_MS)
		return GHOST_FUTURE;
	if (!h->known)
		return GHOST_STRANGE;
	for (size_t i = 0; i < p->receipt->config_count; i++)
		if (!host_knows(h, &p->receipt->configs[i]))
			return GHOST_CONFIG;
	return GHOST_NONE;
}

/* An agent has all its pages under one lease of its own. */
static void find_shared(struct bond *bonds, size_t count)
{
	size_t end;

	qsort(bonds, count, sizeof(bonds[0]), compare_bonds);
	for (size_t i = 0; i < count; i = end) {
		bool shared = false;

		for (end = i; end < count && bonds[end].lease == bonds[i].lease; end++)
			shared |= bonds[end].host != bonds[i].host;
		for (size_t k = i; shared && k < end; k++)
			bonds[k].page->ghost = GHOST_SHARED;
	}
}

int roster_settle(struct roster *r, int64_t now_ms)
{
	struct bond *bonds;
	size_t pages = 0, n = 0;

	for (size_t i = 0; i < r->count; i++)
		pages += r->hosts[i]->page_count;
	bonds = calloc(pages + 1, sizeof(*bonds));
	if (!bonds)
		return -ENOMEM;
	for (size_t i = 0; i < r->count; i++) {
		struct host *h = r->hosts[i];

		for (size_t k = 0; k < h->page_count; k++) {
			struct page *p = &h->pages[k];

			if (!p->receipt)
				continue;
			p->ghost = check_page(h, p, now_ms);
			bonds[n++] = (struct bond){.lease = p->lease, .host = h, .page = p};
		}
	}
	find_shared(bonds, n);
	free(bonds);
	return 0;
}

void roster_visit_ghosts(const struct roster *r,
	void (*visit)(void *arg, const char *key, enum ghost kind), void *arg)
{
	char key[MAX_HOST + 32];

	for (size_t i = 0; i < r->count; i++) {
		const struct host *h = r->hosts[i];

		for (size_t k = 0; k < h->page_count; k++) {
			if (!h->pages[k].receipt || h->pages[k].ghost == GHOST_NONE)
				continue;
			snprintf(key, sizeof(key), "%s#%zu", h->name, k + 1);
			visit(arg, k ? key : h->name, h->pages[k].ghost);
		}
	}
	ghosts_visit(r->ghosts, visit, arg);
}

/* ---- rows ---- */

struct rows {
	struct roster_row *rows;
	size_t count;
};

static int append_roster_row(struct rows *rows, const struct roster_row *row)
{
	struct roster_row *more = array_room(rows->rows, rows->count, sizeof(*more));

	if (!more)
		return -ENOMEM;
	rows->rows = more;
	more[rows->count++] = *row;
	return 0;
}

static bool has_labels(const struct receipt *r, const struct roster_filter *filter)
{
	for (size_t i = 0; i < filter->label_count; i++) {
		bool found = false;

		for (size_t k = 0; k < r->label_count; k++)
			found |= strcmp(r->labels[k].name, filter->labels[i].name) == 0 &&
				 strcmp(r->labels[k].value, filter->labels[i].value) == 0;
		if (!found)
			return false;
	}
	return true;
}

static int add_receipt(struct rows *rows, const struct host *h, const struct receipt *receipt,
	const struct roster_filter *filter)
{
	int e = 0;

	if (!has_labels(receipt, filter))
		return 0;
	for (size_t i = 0; e == 0 && i < receipt->config_count; i++) {
		const struct roster_row row = {.host = h->name,
			.receipt = receipt,
			.runs = &receipt->configs[i],
			.silent = receipt == h->known};

		if (!row.silent && !host_knows(h, row.runs))
			continue;
		if (!filter->config || strcmp(row.runs->name, filter->config) == 0)
			e = append_roster_row(rows, &row);
	}
	return e;
}

/* Pages beyond the first one's count are left from an earlier process. */
static int add_host(struct rows *rows, const struct host *h, const struct roster_filter *filter)
{
	size_t n = h->page_count;
	int e = 0;

	if (n && page_fits(&h->pages[0]) && h->pages[0].receipt->pages < n)
		n = (size_t)h->pages[0].receipt->pages;
	for (size_t i = 0; e == 0 && i < n; i++)
		if (page_fits(&h->pages[i]))
			e = add_receipt(rows, h, h->pages[i].receipt, filter);
	if (e == 0 && h->known)
		e = add_receipt(rows, h, h->known, filter);
	return e;
}

/* Receipts come before "known" values. */
static int compare_rows(const void *a, const void *b)
{
	const struct roster_row *x = a, *y = b;
	int order = strcmp(x->runs->name, y->runs->name);

	if (order == 0)
		order = strcmp(x->host, y->host);
	return order ? order : x->silent - y->silent;
}

int roster_rows(const struct roster *r, const struct roster_filter *filter,
	struct roster_row **ret_rows, size_t *ret_count)
{
	struct rows rows = {.rows = NULL};
	size_t kept = 0;
	int e = 0;

	for (size_t i = 0; e == 0 && i < r->count; i++)
		e = add_host(&rows, r->hosts[i], filter);
	if (e) {
		free(rows.rows);
		return e;
	}
	if (rows.count)
		qsort(rows.rows, rows.count, sizeof(rows.rows[0]), compare_rows);
	for (size_t i = 0; i < rows.count; i++) {
		const struct roster_row *last = kept ? &rows.rows[kept - 1] : NULL;

		if (!last || strcmp(last->runs->name, rows.rows[i].runs->name) != 0 ||
			strcmp(last->host, rows.rows[i].host) != 0)
			rows.rows[kept++] = rows.rows[i];
	}
	*ret_rows = rows.rows;
	*ret_count = kept;
	return 0;
}
