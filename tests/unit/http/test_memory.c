/* A request with each allocation failing in turn, libcurl's too: it ends by its limits at the
 * latest, and nothing is left of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "http/client.h"
#include "tests/unit/fixture/command.h"
#include "tests/unit/fixture/fault_memory.h"

#define LIMIT_MS 5000
#define HANGS_MS 12000

static struct {
	struct loop *loop;
	bool ended, hangs;
	enum http_client_result result;
	char body[64];
} run;

static void done(void *arg, struct http_client_response *response)
{
	(void)arg;
	run.ended = true;
	run.result = response->result;
	snprintf(run.body, sizeof(run.body), "%.*s", (int)response->body.len,
		response->body.len ? response->body.data : "");
	loop_stop(run.loop);
}

static void hangs(void *arg)
{
	(void)arg;
	run.hangs = true;
	loop_stop(run.loop);
}

/* Runs one request, short of memory from its start to its end. */
static void request_once(unsigned nth)
{
	const struct http_client_request q = {.url = "http://localhost/page",
		.unix_socket = played.socket,
		.max_bytes = 1000,
		.timeout_ms = LIMIT_MS,
		.connect_timeout_ms = LIMIT_MS};
	struct http_client *client;
	struct loop_timer patience;
	struct transfer *t;

	run.ended = run.hangs = false;
	run.loop = loop_new(&sys_real);
	client = http_client_new(run.loop);
	assert_non_null(client);
	loop_timer_init(&patience, hangs, NULL);
	loop_timer_set(run.loop, &patience, loop_now_ms(run.loop) + HANGS_MS);
	fault_memory.seen = 0;
	fault_memory.nth = nth;
	if (http_client_start(client, &q, done, NULL, &t) == 0)
		assert_int_equal(loop_run(run.loop), 0);
	fault_memory.nth = 0;
	if (run.hangs)
		fail_msg("it hangs without its allocation %u", nth);
	http_client_free(client);
	loop_free(run.loop);
}

static void request__without_memory__ends_by_its_limits(void **state)
{
	unsigned nth = 0, failed = 0;
	pid_t server;

	(void)state;
	alarm(60);
	played_open();
	played_answers("GET /page", 200, "whole\n");
	server = played_fork();
	request_once(0);
	assert_int_equal(run.result, HTTP_CLIENT_OK);
	do {
		request_once(++nth);
		if (run.ended && run.result == HTTP_CLIENT_OK)
			assert_string_equal(run.body, "whole\n");
		else
			failed++;
	} while (fault_memory.seen >= nth && nth < FAULT_MEMORY_MOST);
	assert_in_range(nth, 50, FAULT_MEMORY_MOST - 1);
	assert_in_range(failed, 20, nth);
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	played_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(request__without_memory__ends_by_its_limits),
	};

	return fault_memory_run(tests, 1);
}
