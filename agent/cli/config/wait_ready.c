/* pullet wait --ready: what a service that needs a configuration orders after. Surprising: an agent
 * that is not there yet, or is started again meanwhile, is waited for as well. */
#include "cli/config/wait_ready.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/sys.h"
#include "cli/common/cli.h"
#include "cli/text/words.h"
#include "settings/value.h"

#define PAUSE_MS 250u             /* until an agent that is not there, or is busy, is asked again */
#define REQUEST_MS (1800u * 1000) /* of one request; the agent takes up to an hour */

enum { AGAIN = -1 }; /* beside exit codes */

struct ready {
	const struct operate *o;
	uint64_t end_ms;
	bool noted; /* it was printed that there is no agent */
	size_t count;
};

static uint64_t time_left(const struct ready *w)
{
	uint64_t now_ms = sys_real.now_ms();

	return now_ms < w->end_ms ? w->end_ms - now_ms : 0;
}

/* Waits a moment, and not beyond the time limit. */
static void pause_briefly(const struct ready *w)
{
	uint64_t left_ms = time_left(w);

	poll(NULL, 0, (int)(left_ms < PAUSE_MS ? left_ms : PAUSE_MS));
}

/* Waits until an agent listens. */
static int await_agent(struct ready *w)
{
	const char *socket = w->o->socket;
	char why[CLIENT_WHY];
	int fd;

	while ((fd = client_connect(socket, NULL)) < 0) {
		bool may_come = fd == -ENOENT || fd == -ECONNREFUSED || fd == -EAGAIN;

		if (!may_come || !time_left(w))
			return cli_error(CLI_UNREACHABLE, w->o->command, "%s",
				client_unreachable(socket, why));
		if (!w->noted)
			cli_note(w->o->command,
				"waiting for the agent, which does not listen at %s yet", socket);
		w->noted = true;
		pause_briefly(w);
	}
	close(fd);
	return CLI_OK;
}

/* Prints what the config lacks, and why; CLI_OK when it lacks nothing by now. */
static int report_timeout(const struct ready *w, const char *name)
{
	const struct operate *o = w->o;
	struct client_answer a = {0};
	int code = CLI_TIMED_OUT;
	struct buffer path, why;
	char span[24];

	client_path(&path, name, "");
	buffer_init(&why, 1u << 16);
	if (client_ask(o->command, o->socket, "GET", path.data, 10000, &a) == CLI_OK && a.json) {
		words_lines(&why, node_text(document_root(a.json), "last_error", ""));
		code = node_integer(document_root(a.json), "generation", 0) > 0 ? CLI_OK : code;
	}
	if (code)
		cli_error(code, o->command, "not ready after %s: %s: nothing is published yet%s%s",
			settings_duration_text(o->timeout_ms, span), name, why.len ? ": " : "",
			why.len ? why.data : "");
	buffer_fini(&why);
	buffer_fini(&path);
	client_fini(&a);
	return code;
}

/* The exit code that an answer stands for, or AGAIN. */
static int judge_answer(
	struct ready *w, const char *name, bool named, const struct client_answer *a)
{
	if (a->status == 404 && !named) /* removed by a reload: the next round knows */
		return CLI_OK;
	if (a->status == 504)
		return time_left(w) ? AGAIN : report_timeout(w, name);
	if ((a->status == 409 || client_is_busy(a)) && time_left(w)) {
		pause_briefly(w);
		return AGAIN;
	}
	return client_config_code(w->o->command, w->o->socket, name, a);
}

/* One request that waits for the config. */
static int ask_config(struct ready *w, const char *name, bool named)
{
	uint64_t left_ms = time_left(w), limit_ms = left_ms < REQUEST_MS ? left_ms : REQUEST_MS;
	struct client_answer a = {0};
	struct buffer path;
	int r;

	client_path(&path, name, "/wait");
	client_query(&path, "generation", "1");
	client_query_number(&path, "timeout_ms", limit_ms);
	if (path.error)
		r = cli_error(CLI_NOT_FOUND, w->o->command, "no config has so long a name");
	else
		r = client_ask(w->o->command, w->o->socket, "GET", path.data, limit_ms + 10000, &a);
	if (r == CLI_OK)
		r = judge_answer(w, name, named, &a);
	else if (r == CLI_UNREACHABLE && left_ms) /* it was stopped */
		r = AGAIN;
	buffer_fini(&path);
	client_fini(&a);
	return r;
}

static int await_config(struct ready *w, const char *name, bool named)
{
	int r;

	do {
		r = await_agent(w);
		if (r == CLI_OK)
			r = ask_config(w, name, named);
	} while (r == AGAIN);
	return r;
}

/* Waits for each config of the status that has no version. AGAIN: there was one. */
static int await_listed(struct ready *w, const struct node *status)
{
	int r = CLI_OK, found = CLI_OK;

	w->count = 0;
	for (const struct node *c = node_first(status, "configs"); r == CLI_OK && c; c = c->next) {
		w->count++;
		if (node_integer(c, "generation", 0) > 0)
			continue;
		found = AGAIN;
		r = await_config(w, node_text(c, "name", ""), false);
	}
	return r ? r : found;
}

/* Rounds, until the agent has no config without a version: a reload may bring another one. */
static int await_all(struct ready *w)
{
	struct client_answer a;
	int r;

	do {
		r = await_agent(w);
		if (r)
			return r;
		r = client_ask(w->o->command, w->o->socket, "GET", "/v1/status", 10000, &a);
		if (r == CLI_OK && client_is_busy(&a) && time_left(w)) {
			pause_briefly(w);
			r = AGAIN;
		} else if (r == CLI_OK) {
			r = client_exit_code(w->o->command, &a);
			r = r ? r : await_listed(w, document_root(a.json));
		} else if (r == CLI_UNREACHABLE && time_left(w)) {
			r = AGAIN;
		}
		client_fini(&a);
	} while (r == AGAIN);
	return r;
}

int wait_ready(const struct operate *o)
{
	struct ready w = {.o = o, .end_ms = sys_real.now_ms() + o->timeout_ms};
	struct buffer out;
	int r = CLI_OK;

	if (o->count == 0)
		r = await_all(&w);
	for (int i = 0; r == CLI_OK && i < o->count; i++) {
		r = await_config(&w, o->arguments[i], true);
		w.count++;
	}
	if (r)
		return r;
	buffer_init(&out, 128);
	buffer_printf(&out, "%zu config%s ready: a version is published\n", w.count,
		w.count == 1 ? "" : "s");
	r = cli_output(o->command, &out);
	buffer_fini(&out);
	return r;
}
