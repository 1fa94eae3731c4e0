/*
 * The form of an update message, read and written without I/O.
 *
 * Frame 0: the topic, 1 to 255 bytes. Frame 1 (optional): JSON {"v":1,"epoch":"<publisher's
 * id>","seq":12,"version":"<etag or revision>","spread_ms":5000,"hops":1}; every member but v is
 * optional, unknown members are ignored, v other than 1 is invalid. One bare frame with the topic
 * is a valid message; of one with more than two frames only the topic counts. Heartbeat: topic
 * "pullet.heartbeat", the envelope carries the epoch. hops: the relays that a change, or the cause
 * of a heartbeat's epoch, came through.
 */
#ifndef PULLET_PUSH_MESSAGE_H
#define PULLET_PUSH_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/buffer.h"

#define PUSH_HEARTBEAT_TOPIC "pullet.heartbeat"
#define PUSH_MAX_SPREAD_MS (3600u * 1000u)
#define PUSH_MAX_ENVELOPE 4096
#define PUSH_MAX_HOPS 16 /* one that came through so many goes no further */

struct push_message {
	bool has_seq, has_spread;
	char epoch[65];    /* "" = none */
	char version[257]; /* "" = none */
	uint64_t seq;
	uint64_t spread_ms; /* at most PUSH_MAX_SPREAD_MS */
	uint64_t hops;      /* at most PUSH_MAX_HOPS */
};

/* Reads the envelope (frame 1). 0, or -EINVAL with a constant reason. Never reads beyond len. */
int push_message_parse(
	const char *data, size_t len, struct push_message *ret_message, const char **ret_why);
/* Appends the envelope as JSON. 0, -ENOMEM, -EMSGSIZE. */
int push_message_write(const struct push_message *m, struct buffer *out);

#endif
