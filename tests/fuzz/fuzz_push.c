/* Fuzz target: the envelope of a push message. What is accepted keeps its bounds, and reads back
 * the same after being written. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "push/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(int condition)
{
	if (!condition)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct push_message m, again;
	const char *why = NULL;
	struct buffer b;

	if (push_message_parse((const char *)data, size, &m, &why)) {
		demand(why != NULL);
		return 0;
	}
	demand(m.spread_ms <= PUSH_MAX_SPREAD_MS && strlen(m.epoch) <= 64 &&
		strlen(m.version) <= 256);
	buffer_init(&b, PUSH_MAX_ENVELOPE);
	demand(push_message_write(&m, &b) == 0);
	demand(push_message_parse(b.data, b.len, &again, &why) == 0);
	demand(strcmp(m.epoch, again.epoch) == 0 && strcmp(m.version, again.version) == 0);
	demand(m.has_seq == again.has_seq && m.seq == again.seq &&
		m.has_spread == again.has_spread && m.spread_ms == again.spread_ms);
	buffer_fini(&b);
	return 0;
}
