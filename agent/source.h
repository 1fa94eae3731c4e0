/*
 * HTTP source: builds the conditional request, judges the response's form. No I/O, no timers.
 *
 * 200 with a body and 304 are the only good answers. Refused: any other status, a body without
 * length or chunking, an empty body, an encoding that was not asked for, an HTML page where a
 * document was expected.
 */
#ifndef PULLET_SOURCE_H
#define PULLET_SOURCE_H

#include "credentials.h"
#include "settings.h"
#include "store.h"
#include "transport.h"

enum source_verdict { SOURCE_NEW, SOURCE_SAME, SOURCE_ABSENT, SOURCE_TIMEOUT, SOURCE_FAILED };

struct source_item { /* what is pulled; texts are borrowed */
	const char *path;
	enum settings_type type;
	bool optional; /* 404 and 410 are SOURCE_ABSENT */
	uint64_t timeout_ms;
};

struct source_request {
	struct transport_request request; /* borrows from the settings and the credentials */
	bool conditional;
	char url[1024], if_none_match[300], if_modified_since[128];
	const char *headers[CREDENTIALS_LINES + 3];
};

/* Fills the request to the server's address `base`; conditional on `held` (NULL = nothing held) if
 * that came from there. */
void source_build(const struct source_item *item, const struct settings_server *server,
	const char *base, const struct part *held, const struct credentials *credentials,
	struct source_request *ret_request);
/* Judges the response. SOURCE_NEW: body is to be judged as *ret_type. SOURCE_TIMEOUT and
 * SOURCE_FAILED: `why` is a sentence. */
enum source_verdict source_judge(const struct source_item *item,
	const struct transport_response *response, bool conditional, enum settings_type *ret_type,
	char why[FILE_WHY]);

#endif
