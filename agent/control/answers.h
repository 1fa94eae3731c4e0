/*
 * Requests whose answer takes long: it is computed on the checks' thread (config_task), from a copy
 * of the config's state, and sent on the loop.
 *
 * Threads: the loop's; compute() is called on the checks'. Ownership: an answer is freed after it
 * was sent; texts of the request that it needs are copied. When the client disconnects the work
 * ends all the same, without an answer or a change. Bounds: ANSWERS_MAX under way at a time, in
 * shares of their users (httpd/share.h); an answer of ANSWERS_MAX_ANSWER.
 */
#ifndef PULLET_ANSWERS_H
#define PULLET_ANSWERS_H

#include "httpd/server.h"
#include "config/inspect.h"

#define ANSWERS_MAX 8
#define ANSWERS_MAX_ANSWER (32u << 20)

struct answers { /* those under way */
	struct answer *first;
	size_t count;
};

struct answer {
	/* set by the caller */
	void (*compute)(struct answer *a); /* on the thread: fills out, error and why */
	void (*reply)(struct answer *a);   /* on the loop: takes request and out */
	void *arg;
	uint64_t from, to, number;
	char *key;                  /* a copy, which is freed with it; NULL = none */
	void *made;                 /* by compute(), for reply() */
	void (*unmake)(void *made); /* frees made where reply() left it; NULL = nothing */
	enum audience audience;
	unsigned tries;
	bool held;                    /* about what is held back: inspect_hold() */
	struct inspect_effect effect; /* by compute(): of an override */
	/* input and output of compute() */
	struct inspection seen;
	struct buffer out;
	int error; /* -ECANCELED: the config is being freed */
	char why[FILE_WHY];
	struct httpd_request *request; /* never NULL in reply() */
	/* private */
	struct peer peer;
	struct config_task task;
	struct answers *answers;
	struct answer *next;
};

/* Copies the answer and begins. The request is answered later, or at once. 0, or -EBUSY, -ENOMEM or
 * inspect_hold()'s error with a sentence: then the request is not answered, and key and made are
 * still the caller's. */
int answers_begin(struct answers *answers, const struct answer *a, struct httpd_request *r,
	struct config *c, char why[FILE_WHY]);
/* The server ends: sends no answers any more. */
void answers_forget(struct answers *answers);

#endif
