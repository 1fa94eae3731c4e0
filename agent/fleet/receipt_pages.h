/*
 * The pages of this agent's receipt: what each says, which have changed since they were written,
 * and which are to be written next. Built and read without I/O.
 *
 * A write requires that the key is unchanged since our last write of it, so that another writer is
 * noticed.
 *
 * Threads: the caller's. Ownership: the setup is borrowed. Errors: -ENOMEM, -EMSGSIZE. Bounds:
 * receipt.h.
 */
#ifndef PULLET_RECEIPT_PAGES_H
#define PULLET_RECEIPT_PAGES_H

#include "base/sys.h"
#include "fleet/etcd_store.h"
#include "fleet/receipt.h"

/* Fills in the receipt of the config with that index in the settings, without since_ms. May point
 * to texts. */
typedef void receipt_look(
	void *arg, size_t config, struct receipt_config *ret, struct receipt_texts *texts);

struct receipt_pages_setup {
	const struct sys *sys;
	const struct settings *settings;
	const char *host;
	receipt_look *look;
	void *arg;
};

struct receipt_item;
struct receipt_page;

struct receipt_pages { /* fields are private, but for those that the owner may read */
	struct receipt_pages_setup setup;
	int64_t started_ms;
	char *key;                  /* readable: of the first page */
	struct receipt_item *items; /* as many as there are configs */
	struct receipt_page *pages;
	size_t count;
	bool saw_applying;
};

/* 0 or -ENOMEM; receipt_pages_fini() in either case. wall_ms: the agent's start. */
int receipt_pages_init(
	struct receipt_pages *p, const struct receipt_pages_setup *setup, int64_t wall_ms);
void receipt_pages_fini(struct receipt_pages *p);

/* Looks at one config again: its page is dirty if that changed. */
void receipt_pages_update(struct receipt_pages *p, size_t config);
/* The same of all configs, or of those that were being applied. */
void receipt_pages_update_all(struct receipt_pages *p, bool only_applying);
/* True when a config was being applied as it was looked at since the last call: the end of that is
 * not reported. */
bool receipt_pages_take_applying(struct receipt_pages *p);
/* True when a page has changed since it was written. */
bool receipt_pages_dirty(const struct receipt_pages *p);
/* Nothing is written any more: all are dirty. */
void receipt_pages_forget(struct receipt_pages *p);

/* Queues the pages that are dirty now; others wait for the next round. */
void receipt_pages_queue(struct receipt_pages *p);
/* The first queued page. */
bool receipt_pages_next(const struct receipt_pages *p, size_t *ret_page);
/* Appends the request that writes this page, which is not dirty then. */
int receipt_pages_build_write(
	struct receipt_pages *p, size_t page, uint64_t lease, struct buffer *body);
/* Takes the answer. 1: written; 0: written, for the first time under this lease; -EEXIST: it was
 * changed by another writer, and stays queued. */
int receipt_pages_written(struct receipt_pages *p, size_t page, const struct etcd_store_answer *a);
/* Appends the comparisons that all written pages are unchanged. */
void receipt_pages_append_unchanged(const struct receipt_pages *p, struct buffer *body);

#endif
