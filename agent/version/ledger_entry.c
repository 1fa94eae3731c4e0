/* The tables of members. Surprising: some names in the file are those of 0.1.0, not of today. */
#include "version/ledger_entry.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define FIELD(type, kind, member)                                                                  \
	{                                                                                          \
#member, kind, offsetof(struct type, member)                                       \
	}

const struct ledger_field ledger_verdict_fields[] = {
	FIELD(ledger_verdict, LEDGER_TEXT, sha256),
	{"judge", LEDGER_TEXT, offsetof(struct ledger_verdict, check)}, /* as 0.1.0 wrote them */
	{"judges", LEDGER_TEXT, offsetof(struct ledger_verdict, checks)},
	FIELD(ledger_verdict, LEDGER_TEXT, why),
	FIELD(ledger_verdict, LEDGER_TIME, at_ms),
	{NULL, LEDGER_TEXT, 0},
};
const struct ledger_field ledger_override_fields[] = {
	FIELD(ledger_override, LEDGER_TEXT, key),
	FIELD(ledger_override, LEDGER_TEXT, value),
	FIELD(ledger_override, LEDGER_TEXT, by),
	FIELD(ledger_override, LEDGER_TEXT, reason),
	FIELD(ledger_override, LEDGER_TIME, until_ms),
	{NULL, LEDGER_TEXT, 0},
};
const struct ledger_field ledger_pin_fields[] = {
	FIELD(ledger_pin, LEDGER_TEXT, by),
	FIELD(ledger_pin, LEDGER_TEXT, reason),
	FIELD(ledger_pin, LEDGER_LATER_TEXT, sha256),
	FIELD(ledger_pin, LEDGER_TIME, until_ms),
	{NULL, LEDGER_TEXT, 0},
};

char **ledger_entry_text(void *entry, const struct ledger_field *f)
{
	return (char **)((char *)entry + f->offset);
}

void ledger_entry_fini(void *entry, const struct ledger_field *fields)
{
	for (const struct ledger_field *f = fields; f->name; f++) {
		if (f->kind == LEDGER_TIME)
			continue;
		free(*ledger_entry_text(entry, f));
		*ledger_entry_text(entry, f) = NULL;
	}
}

void *ledger_entry_append(void **list, size_t *count, size_t max, size_t size)
{
	if (!*list)
		*list = calloc(max, size);
	return *list ? memset((char *)*list + (*count)++ * size, 0, size) : NULL;
}
