/* A stream of ZMTP 3. Surprising: a subscription has two forms, of version 3.0 (a message) and of
 * 3.1 (a command), and within CURVE both occur too. */
#include "push/zmtp.h"

#include <string.h>

#define GREETING 64
#define VERSION 10 /* offsets in the greeting */
#define MECHANISM 12

enum { MORE = 1, LONG = 2, COMMAND = 4 };     /* flags of a frame */
enum { SEALED_MORE = 1, SEALED_COMMAND = 2 }; /* and within CURVE */

static bool begins_with(const unsigned char *data, size_t len, const char *with)
{
	return len >= strlen(with) && memcmp(data, with, strlen(with)) == 0;
}

static enum zmtp_fault take_command(
	const unsigned char *body, size_t len, const struct zmtp_calls *calls)
{
	static const char *const names[] = {"\x09SUBSCRIBE", "\x06"
							     "CANCEL"};

	for (size_t i = 0; i < 2; i++) {
		size_t name = strlen(names[i]);

		if (!begins_with(body, len, names[i]))
			continue;
		if (len > ZMTP_MAX_MESSAGE)
			return ZMTP_FRAME;
		return calls->subscription(calls->arg, i == 1, body + name, len - name)
			       ? ZMTP_VALID
			       : ZMTP_REJECTED;
	}
	return ZMTP_VALID;
}

static enum zmtp_fault take_message(bool command, bool more, const unsigned char *body, size_t len,
	const struct zmtp_calls *calls)
{
	if (more)
		return ZMTP_PARTS;
	if (command)
		return take_command(body, len, calls);
	if (len > ZMTP_MAX_MESSAGE)
		return ZMTP_FRAME;
	if (len == 0 || body[0] > 1)
		return ZMTP_FOREIGN;
	return calls->subscription(calls->arg, body[0] == 0, body + 1, len - 1) ? ZMTP_VALID
										: ZMTP_REJECTED;
}

enum zmtp_fault zmtp_unsealed(const void *data, size_t len, const struct zmtp_calls *calls)
{
	const unsigned char *p = data;

	return len == 0 ? ZMTP_FRAME
			: take_message(
				  p[0] & SEALED_COMMAND, p[0] & SEALED_MORE, p + 1, len - 1, calls);
}

/* Returns how many bytes the state needs. */
static size_t bytes_wanted(const struct zmtp *z)
{
	switch (z->state) {
	case ZMTP_GREETING:
		return GREETING;
	case ZMTP_FLAGS:
		return 1;
	case ZMTP_LENGTH:
		return z->flags & LONG ? 8 : 1;
	case ZMTP_BODY:
		break;
	}
	return (size_t)z->length;
}

static enum zmtp_fault end_greeting(struct zmtp *z)
{
	z->sealed = begins_with(z->body + MECHANISM, GREETING - MECHANISM, "CURVE");
	z->state = ZMTP_FLAGS;
	return ZMTP_VALID;
}

static enum zmtp_fault end_flags(struct zmtp *z)
{
	z->flags = z->body[0];
	z->state = ZMTP_LENGTH;
	if (z->flags & ~(MORE | LONG | COMMAND))
		return ZMTP_FRAME;
	return z->flags & MORE ? ZMTP_PARTS : ZMTP_VALID;
}

static enum zmtp_fault end_length(struct zmtp *z)
{
	bool may_be_long = z->sealed || z->flags & COMMAND;

	z->length = 0;
	for (size_t i = 0; i < z->have; i++)
		z->length = z->length << 8 | z->body[i];
	z->state = ZMTP_BODY;
	return z->length > (may_be_long ? ZMTP_MAX_FRAME : ZMTP_MAX_MESSAGE) ? ZMTP_FRAME
									     : ZMTP_VALID;
}

/* Nothing may follow the last step of CURVE's handshake before its answer: libzmq would read it at
 * another time. */
static enum zmtp_fault end_frame_body(struct zmtp *z, size_t left, const struct zmtp_calls *calls)
{
	z->state = ZMTP_FLAGS;
	if (z->sealed)
		return left && begins_with(z->body, z->length, "\x08INITIATE") ? ZMTP_EAGER
									       : ZMTP_VALID;
	return take_message(z->flags & COMMAND, false, z->body, (size_t)z->length, calls);
}

/* Tells whether the greeting, as far as it was read, may be of version 3. */
static bool is_version_3(const struct zmtp *z)
{
	return (z->have < 1 || z->body[0] == 0xff) && (z->have < VERSION || z->body[9] & 1) &&
	       (z->have <= VERSION || z->body[VERSION] >= 3);
}

static enum zmtp_fault end_state(struct zmtp *z, size_t left, const struct zmtp_calls *calls)
{
	enum zmtp_fault fault = ZMTP_VALID;

	switch (z->state) {
	case ZMTP_GREETING:
		fault = end_greeting(z);
		break;
	case ZMTP_FLAGS:
		fault = end_flags(z);
		break;
	case ZMTP_LENGTH:
		fault = end_length(z);
		break;
	case ZMTP_BODY:
		fault = end_frame_body(z, left, calls);
		break;
	}
	z->have = 0;
	return fault;
}

enum zmtp_fault zmtp_feed(
	struct zmtp *z, const void *data, size_t len, const struct zmtp_calls *calls)
{
	const unsigned char *p = data;
	enum zmtp_fault fault = ZMTP_VALID;

	while (fault == ZMTP_VALID && (len || z->have == bytes_wanted(z))) {
		size_t part = bytes_wanted(z) - z->have;

		if (part > len)
			part = len;
		memcpy(z->body + z->have, p, part);
		z->have += (uint32_t)part;
		p += part;
		len -= part;
		if (z->state == ZMTP_GREETING && !is_version_3(z))
			fault = ZMTP_OLD;
		else if (z->have == bytes_wanted(z))
			fault = end_state(z, len, calls);
	}
	return fault;
}
