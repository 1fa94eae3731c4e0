/*
 * Fuzz target: what a subscriber sends. The first byte is how many bytes each piece has.
 *
 * What is checked: in pieces and at once the same subscriptions come out, and the same fault (but
 * that more came with the last step of a handshake, which pieces decide); none is longer than a
 * message may be.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "push/zmtp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct outcome {
	enum zmtp_fault fault;
	uint64_t count, sum;
};

static void demand(bool what)
{
	if (!what)
		abort();
}

static bool subscription(void *arg, bool cancels, const unsigned char *topic, size_t len)
{
	struct outcome *o = arg;

	demand(len < ZMTP_MAX_MESSAGE);
	o->count++;
	o->sum = o->sum * 31 + cancels;
	for (size_t i = 0; i < len; i++)
		o->sum = o->sum * 31 + topic[i];
	return o->count < 1000;
}

static struct outcome feed(const uint8_t *data, size_t size, size_t piece)
{
	struct outcome o = {0};
	struct zmtp *z = calloc(1, sizeof(*z));

	demand(z != NULL);
	for (size_t at = 0; o.fault == ZMTP_VALID && at < size; at += piece)
		o.fault = zmtp_feed(z, data + at, size - at < piece ? size - at : piece,
			&(struct zmtp_calls){subscription, &o});
	free(z);
	return o;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct outcome whole, pieces, unsealed = {0};

	if (size < 2)
		return 0;
	whole = feed(data + 1, size - 1, size - 1);
	pieces = feed(data + 1, size - 1, (size_t)data[0] + 1);
	if (whole.fault != ZMTP_EAGER && pieces.fault != ZMTP_EAGER)
		demand(whole.fault == pieces.fault && whole.count == pieces.count &&
			whole.sum == pieces.sum);
	zmtp_unsealed(data, size, &(struct zmtp_calls){subscription, &unsealed});
	demand(unsealed.count <= 1);
	return 0;
}
