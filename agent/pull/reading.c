/*
 * An answer and a copy of the held part, on the way to the checks' thread and back. Surprising:
 * only marks of the server's settings are copied: kinds check whether there is a user, not its
 * name.
 */
#include "pull/reading.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "http/unpack.h"
#include "pull/kinds/answer.h"

struct reading {
	struct worker_job job;
	struct worker *thread;
	struct exchange *exchange; /* NULL: it was dropped */
	reading_done done;
	void *arg;
	/* the thread's */
	struct kind_place place;
	struct settings_server server;
	struct part held;
	char *base, *path, none[1];
	bool conditional;
	struct http_client_response response;
	struct reading_result result;
};

static void check_reading(const struct kind_place *place, struct http_client_response *response,
	bool conditional, struct reading_result *ret)
{
	unpack_body(response);
	kind_answer_init(&ret->answer, place->max_bytes);
	ret->verdict = answer_check(place, response, conditional, &ret->answer);
}

static void reading_free(struct reading *r)
{
	kind_answer_fini(&r->result.answer);
	buffer_fini(&r->response.body);
	buffer_fini(&r->response.coded);
	part_fini(&r->held);
	free(r->base);
	free(r->path);
	free(r);
}

static void run_reading(struct worker_job *job)
{
	struct reading *r = (struct reading *)job;

	check_reading(&r->place, &r->response, r->conditional, &r->result);
	buffer_fini(&r->response.body);
	buffer_fini(&r->response.coded);
}

static void reading_ended(struct worker_job *job)
{
	struct reading *r = (struct reading *)job;
	struct exchange *x = r->exchange;

	if (x) {
		r->done(r->arg, &r->response, &r->result);
		exchange_end(x);
	}
	reading_free(r);
}

static void drop_reading(void *arg)
{
	struct reading *r = arg;

	r->exchange = NULL;
	if (worker_cancel(r->thread, &r->job))
		reading_free(r);
}

/* Copies the place without its secrets. 0 or -ENOMEM. */
static int copy_place(struct reading *r, const struct kind_place *place)
{
	const struct settings_server *server = place->server;

	r->server = (struct settings_server){.kind = server->kind,
		.api = server->api,
		.user = server->user ? r->none : NULL,
		.secret_file = server->secret_file ? r->none : NULL};
	r->base = strdup(place->base);
	r->path = strdup(place->path);
	r->place = (struct kind_place){.server = &r->server,
		.base = r->base,
		.path = r->path,
		.type = place->type,
		.held = place->held ? &r->held : NULL,
		.same_address = place->same_address,
		.forced = place->forced,
		.max_bytes = place->max_bytes};
	return place->held && part_copy(place->held, &r->held) ? -ENOMEM
	       : r->base && r->path                            ? 0
							       : -ENOMEM;
}

static struct reading *reading_new(const struct kind_place *place)
{
	struct reading *r = calloc(1, sizeof(*r));

	if (r && copy_place(r, place)) {
		reading_free(r);
		return NULL;
	}
	return r;
}

void reading_start(struct worker *thread, struct exchange *x, const struct kind_place *place,
	const struct http_client_response *response, reading_done done, void *arg)
{
	bool large = response->packed || response->body.len + response->coded.len > READING_LARGE;
	struct reading *r = large && thread ? reading_new(place) : NULL;
	struct reading_result result;

	if (!r) {
		check_reading(place, exchange_answer(x), exchange_conditional(x), &result);
		done(arg, response, &result);
		kind_answer_fini(&result.answer);
		return;
	}
	r->job = (struct worker_job){.run = run_reading, .done = reading_ended};
	r->thread = thread;
	r->exchange = x;
	r->done = done;
	r->arg = arg;
	r->conditional = exchange_conditional(x);
	exchange_hold(x, &r->response, drop_reading, r);
	worker_submit(thread, &r->job);
}
