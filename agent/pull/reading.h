/*
 * Reads an answer as its kind does (pull/kinds/answer.h): at once, or a large one on the checks'
 * thread, while the loop goes on.
 *
 * Threads: reading_start() and done() are the loop's. Ownership: the thread has copies of the place
 * and of the held part, and the answer itself; nothing that the loop may change or free. When its
 * exchange is cancelled, a reading is dropped without a call. Bound: one for each exchange, so as
 * many answers wait as transfers may be under way.
 */
#ifndef PULLET_READING_H
#define PULLET_READING_H

#include "pull/exchange.h"
#include "pull/kinds/kind.h"
#include "http/client.h"
#include "base/worker.h"

#define READING_LARGE (64u << 10) /* bytes; below that the way there and back costs more */

struct reading_result { /* as of answer_check() */
	enum kind_verdict verdict;
	struct kind_answer answer; /* its body may be taken */
};

/* The exchange still exists: exchange_again() may be called. */
typedef void (*reading_done)(
	void *arg, const struct http_client_response *response, struct reading_result *result);

/* Within ended() of the exchange: has its answer read, and calls done() once before it returns; for
 * a large answer later, if there is a thread (NULL = none) and memory: the exchange is held until
 * then. */
void reading_start(struct worker *thread, struct exchange *x, const struct kind_place *place,
	const struct http_client_response *response, reading_done done, void *arg);

#endif
