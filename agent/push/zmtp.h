/*
 * Follows a subscriber's stream of ZMTP 3 (ZeroMQ RFC 23 and 37) byte by byte: its subscriptions,
 * and anything that no subscriber of ours sends: another protocol, a message of several parts, a
 * long one, one that is no subscription. Within CURVE the messages come here once more, decrypted.
 *
 * Threads: one owner for each stream. Errors: an enum. Bounds: ZMTP_MAX_FRAME bytes of a stream. No
 * I/O, no libzmq.
 */
#ifndef PULLET_ZMTP_H
#define PULLET_ZMTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ZMTP_MAX_FRAME 1024  /* of handshakes and of what is encrypted */
#define ZMTP_MAX_MESSAGE 320 /* a subscription; topics of ours have 255 bytes at most */

enum zmtp_fault {
	ZMTP_VALID,
	ZMTP_OLD,   /* not version 3 */
	ZMTP_FRAME, /* flags that do not exist, or a frame that is too long */
	ZMTP_PARTS,
	ZMTP_FOREIGN, /* no subscription */
	ZMTP_EAGER,   /* more behind the last step of a handshake, before the answer */
	ZMTP_REJECTED /* by the caller's function */
};

struct zmtp { /* zeroed = nothing was read; fields are private */
	enum { ZMTP_GREETING, ZMTP_FLAGS, ZMTP_LENGTH, ZMTP_BODY } state;
	unsigned char flags;
	bool sealed;
	uint32_t have;   /* bytes of the state */
	uint64_t length; /* of the body */
	unsigned char body[ZMTP_MAX_FRAME];
};

struct zmtp_calls {
	/* A subscription, or a cancellation. False: stop. */
	bool (*subscription)(void *arg, bool cancels, const unsigned char *topic, size_t len);
	void *arg;
};

/* Continues with these bytes. After a fault the stream cannot be used again. */
enum zmtp_fault zmtp_feed(
	struct zmtp *z, const void *data, size_t len, const struct zmtp_calls *calls);
/* The plaintext of one CURVE message: flags, then the body. */
enum zmtp_fault zmtp_unsealed(const void *data, size_t len, const struct zmtp_calls *calls);

#endif
