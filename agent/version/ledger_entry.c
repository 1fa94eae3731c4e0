/* What can be done with an entry of which only its table of members is known. */
#include "version/ledger_entry.h"

#include <stdlib.h>
#include <string.h>

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

void *ledger_entry_append(void **list, unsigned *count, size_t max, size_t size)
{
	if (!*list)
		*list = calloc(max, size);
	return *list ? memset((char *)*list + (*count)++ * size, 0, size) : NULL;
}
