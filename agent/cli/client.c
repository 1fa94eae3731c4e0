/* One request to the control socket. Surprising: it runs a loop and a transport of its own for the
 * one request, rather than having a second HTTP client in the house. */
#include "client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../transport.h"
#include "cli.h"

#define MAX_ANSWER (64u << 20)

struct wait {
	struct loop *loop;
	struct client_answer *answer;
	enum transport_result result;
};

const char *client_default_socket(void)
{
	static char path[256];
	const char *dir = getenv("PULLET_RUNTIME_DIR");

	snprintf(path, sizeof(path), "%s/control.sock",
		dir && dir[0] ? dir : PULLET_RUNSTATEDIR "/pullet");
	return path;
}

static void answered(void *arg, const struct transport_response *response)
{
	struct wait *w = arg;

	w->result = response->result;
	w->answer->status = response->status;
	buffer_append(&w->answer->body, response->body.data ? response->body.data : "",
		response->body.len);
	loop_stop(w->loop);
}

static int run(struct wait *w, const struct transport_request *request)
{
	struct transport *t;
	struct transfer *transfer;
	int r = -1;

	w->loop = loop_new(&sys_real);
	t = w->loop ? transport_new(w->loop) : NULL;
	if (t)
		r = transport_start(t, request, answered, w, &transfer);
	if (r == 0)
		r = loop_run(w->loop);
	if (t)
		transport_free(t);
	loop_free(w->loop);
	return r;
}

int client_ask(const char *command, const char *socket, const char *method, const char *path,
	uint64_t timeout_ms, struct client_answer *a)
{
	struct wait w = {.answer = a};
	struct transport_request request = {.unix_socket = socket,
		.method = method,
		.max_bytes = MAX_ANSWER,
		.timeout_ms = timeout_ms,
		.connect_timeout_ms = 5000};
	struct document_error e;
	char url[512];

	*a = (struct client_answer){0};
	buffer_init(&a->body, MAX_ANSWER);
	snprintf(url, sizeof(url), "http://localhost%s", path);
	request.url = url;
	if (run(&w, &request))
		return cli_error(CLI_FAILED, command, "out of memory or descriptors");
	if (w.result == TRANSPORT_TIMEOUT)
		return cli_error(CLI_TIMED_OUT, command, "the agent did not answer in time");
	if (w.result != TRANSPORT_OK)
		return cli_error(CLI_UNREACHABLE, command, "no agent answers at %s: %s", socket,
			access(socket, R_OK | W_OK) ? strerror(errno) : "is pulletd running?");
	if (document_parse(DOCUMENT_JSON, a->body.data ? a->body.data : "", a->body.len, 0,
		    &a->json, &e) == 0)
		a->error = client_text(document_root(a->json), "error", NULL);
	return CLI_OK;
}

int client_exit_code(const char *command, const struct client_answer *a)
{
	static const struct {
		long status;
		int code;
	} table[] = {{200, CLI_OK}, {202, CLI_OK}, {404, CLI_NOT_FOUND}, {504, CLI_TIMED_OUT}};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].status == a->status)
			return table[i].code == CLI_OK
				       ? CLI_OK
				       : cli_error(table[i].code, command, "%s",
						 a->error ? a->error : "the agent refused");
	return cli_error(CLI_FAILED, command, "the agent answered %ld: %s", a->status,
		a->error ? a->error : "no reason given");
}

void client_fini(struct client_answer *a)
{
	document_free(a->json);
	buffer_fini(&a->body);
}

const char *client_text(const struct node *map, const char *name, const char *fallback)
{
	const struct node *n = node_find(map, name);

	return n && n->type == NODE_STRING ? n->text : fallback;
}

int64_t client_number(const struct node *map, const char *name, int64_t fallback)
{
	const struct node *n = node_find(map, name);

	return n && n->type == NODE_INT ? n->integer : fallback;
}
