/*
 * The entries of a ledger (verdicts, pins, overrides) by their members: one table per kind, by
 * which they are freed, written and read. Private to version/ledger and version/ledger_form.
 */
#ifndef PULLET_LEDGER_ENTRY_H
#define PULLET_LEDGER_ENTRY_H

#include <stddef.h>

enum ledger_field_kind {
	LEDGER_TEXT,
	LEDGER_LATER_TEXT, /* older ledgers do not have it */
	LEDGER_TIME
};

struct ledger_field {
	const char *name; /* in the file; NULL = the end of the table */
	enum ledger_field_kind kind;
	size_t offset;
};

/* Of the structs of ledger.h; defined in ledger.c. Some names are those of 0.1.0, not of today. */
extern const struct ledger_field ledger_verdict_fields[], ledger_override_fields[],
	ledger_pin_fields[];

char **ledger_entry_text(void *entry, const struct ledger_field *f);
/* Frees its texts. */
void ledger_entry_fini(void *entry, const struct ledger_field *fields);
/* One entry more at the end of a list, which has room for `max` when it has any: zeroed; or NULL.
 */
void *ledger_entry_append(void **list, unsigned *count, size_t max, size_t size);

#endif
