/* `pullet doctor`, what it asks servers for, and what is known of each answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <sys/syscall.h>
#include <time.h>

#include <cmocka.h>

#include "cli/doctor/pulls.h"
#include "tests/unit/fixture/command.h"
#include "tests/unit/fixture/examined.h"

static const char *url;
static struct pulls pulls;
static pid_t server;
static const char *closed; /* the end of the path that we may not read; NULL = none */
static bool slow;          /* each look at the clock takes a while */

int access(const char *name, int mode)
{
	size_t len = strlen(name), end = closed ? strlen(closed) : 0;

	if (closed && len >= end && strcmp(name + len - end, closed) == 0) {
		errno = EACCES;
		return -1;
	}
	return (int)syscall(SYS_faccessat, AT_FDCWD, name, mode);
}

int clock_gettime(clockid_t clock, struct timespec *ret)
{
	static long more_ms;
	int r = (int)syscall(SYS_clock_gettime, clock, ret);

	if (slow && clock == CLOCK_BOOTTIME) {
		more_ms += 2;
		ret->tv_sec += more_ms / 1000;
		ret->tv_nsec += more_ms % 1000 * 1000000;
		ret->tv_sec += ret->tv_nsec / 1000000000;
		ret->tv_nsec %= 1000000000;
	}
	return r;
}

static int set_up(void **state)
{
	alarm(30);
	closed = NULL;
	slow = false;
	played_open();
	url = played_listen_tcp();
	examined_set_up(state);
	doctor.loop = loop_new(&sys_real);
	doctor.timeout_ms = 20000;
	return 0;
}

static void end_pulls(void)
{
	if (server > 0) {
		kill(server, SIGKILL);
		waitpid(server, NULL, 0);
		doctor_pulls_fini(&pulls);
	}
	server = 0;
}

static int tear_down(void **state)
{
	end_pulls();
	loop_free(doctor.loop);
	examined_tear_down(state);
	played_close();
	return 0;
}

/* Asks for what these configs are made of: "m" is the played server, "n" one that is not there. */
static void ask_for(const char *more, const char *configs)
{
	end_pulls();
	settings_free(doctor.settings);
	doctor.settings = scratch_settings(
		"%sservers:\n  m: {urls: ['%s'], max_size: 100B}\n"
		"  n: {urls: ['http://127.0.0.1:1', '%s'], max_in_flight: 1}\n"
		"  f: {kind: file, urls: ['file://%s']}\n"
		"  e: {kind: etcd, urls: ['%s']}\n"
		"  u: {kind: etcd, urls: ['%s'], auth: {basic: {user: u, password_file: "
		"%s/password}}}\nconfigs:\n%s",
		more, url, url, dir, url, url, dir, configs);
	server = played_fork();
	assert_int_equal(doctor_pulls_run(&doctor, &pulls), 0);
	assert_int_equal(pulls.left > 0, pulls.late);
}

static const struct doctor_pull *pull_of(const char *path, size_t address)
{
	for (size_t i = 0; i < pulls.count; i++)
		if (strcmp(pulls.documents[i].path, path) == 0)
			return &pulls.documents[i].pulls[address];
	fail_msg("%s was not asked for", path);
	return NULL;
}

static void answer__of_each_kind__has_its_cause(void **state)
{
	static const struct {
		const char *path;
		int status;
		const char *body;
		enum kind_cause cause;
		const char *why; /* a part of it */
	} rows[] = {
		{"/good", 200, "a: 1\n", KIND_CAUSE_NONE, ""},
		{"/missing", 404, "", KIND_CAUSE_NOT_FOUND, "404"},
		{"/forbidden", 403, "", KIND_CAUSE_FORBIDDEN, "403"},
		{"/login", 401, "", KIND_CAUSE_FORBIDDEN, ""},
		{"/busy", 503, "", KIND_CAUSE_OVERLOADED, "503"},
		{"/empty", 200, "", KIND_CAUSE_EMPTY, ""},
		{"/broken", 200, "a: [\n", KIND_CAUSE_ANSWER, "line 1, column 4: "},
	};
	char configs[2048] = "", request[8][32];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t len = strlen(configs);

		snprintf(request[i], sizeof(request[i]), "GET %s", rows[i].path);
		played_answers(request[i], rows[i].status, rows[i].body);
		snprintf(configs + len, sizeof(configs) - len,
			"  c%zu: {from: [{server: m, path: %s}], type: yaml, snapshot: true}\n", i,
			rows[i].path);
	}
	ask_for("", configs);
	assert_int_equal(pulls.count, 7);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct doctor_pull *p = pull_of(rows[i].path, 0);

		assert_int_equal(p->state, DOCTOR_PULL_ANSWERED);
		assert_int_equal(p->cause, rows[i].cause);
		assert_shows(p->why, rows[i].why);
		assert_int_equal(p->absent, rows[i].status == 404);
		assert_false(p->tls || p->too_large);
		assert_int_equal(p->body.len, 0); /* nothing is signed */
	}
	assert_int_equal(pull_of("/good", 0)->len, 5);
	assert_true(pull_of("/good", 0)->nameless);
	assert_int_equal(strlen(pull_of("/good", 0)->sha256), 64);
	assert_int_equal(strlen(pull_of("/missing", 0)->sha256), 0);
	assert_int_equal(pulls.upstreams[0].addresses[0].good, 2);
	assert_null(pulls.upstreams[0].addresses[0].dead);
	assert_int_equal(pulls.upstreams[0].addresses[0].skipped, 0);
	assert_false(pulls.upstreams[0].addresses[0].has_clock);
	assert_int_equal(pulls.upstreams[0].in_flight, 0);
	assert_true(pulls.upstreams[0].used);
	assert_false(pulls.upstreams[1].used || pulls.upstreams[0].closed);
}

static void answer__is_held_against_its_headers(void **state)
{
	int64_t ahead_ms;

	(void)state;
	played_answers("GET /w", 200, "a: 1\n");
	played.headers = "ETag: \"v\"\r\nDate: Tue, 14 Nov 2023 22:13:20 GMT\r\nContent-Digest: "
			 "sha-256=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:\r\n";
	ask_for("", "  a: {from: [{server: m, path: /w}], type: yaml, snapshot: true}\n");
	assert_int_equal(pull_of("/w", 0)->cause, KIND_CAUSE_ANSWER);
	assert_string_equal(pull_of("/w", 0)->why,
		"it is not what its server says: SHA-256 is 37b128c59f1f5097..., its "
		"Content-Digest says 0000000000000000...");
	assert_false(pull_of("/w", 0)->nameless);
	assert_true(pulls.upstreams[0].addresses[0].has_clock);
	ahead_ms = pulls.upstreams[0].addresses[0].clock_ms + sys_real.wall_ms() - 1700000000000;
	assert_in_range(ahead_ms, 0, 20000); /* since then */
	played.headers = "Last-Modified: Tue, 14 Nov 2023 22:13:20 GMT\r\nDate: yesterday\r\n";
	ask_for("", "  a: {from: [{server: m, path: /w}], type: yaml, snapshot: true}\n");
	assert_int_equal(pull_of("/w", 0)->cause, KIND_CAUSE_NONE);
	assert_false(pull_of("/w", 0)->nameless);
	assert_false(pulls.upstreams[0].addresses[0].has_clock);
}

static void document__too_large_or_of_no_form(void **state)
{
	char large[102];

	(void)state;
	memset(large, 'a', 101);
	large[101] = '\0';
	played_answers("GET /large", 200, large);
	played_answers("GET /bytes", 200, "a: [\n");
	played_answers("GET /json", 200, "{\"a\":1}");
	played_answers("GET /wrong", 200, "a: 1\n");
	ask_for("", "  a: {from: [{server: m, path: /large}], snapshot: true}\n"
		    "  b: {from: [{server: m, path: /bytes}], type: bytes, file: /nowhere/b}\n"
		    "  c: {from: [{server: m, path: /json}], type: json, snapshot: true}\n"
		    "  e: {from: [{server: m, path: /wrong}], type: json, snapshot: true}\n");
	assert_true(pull_of("/large", 0)->too_large);
	assert_int_equal(pull_of("/bytes", 0)->cause, KIND_CAUSE_NONE);
	assert_int_equal(pull_of("/json", 0)->cause, KIND_CAUSE_NONE);
	assert_int_equal(pull_of("/wrong", 0)->cause, KIND_CAUSE_ANSWER);
}

static void document__of_several_configs__is_asked_for_once(void **state)
{
	(void)state;
	played_answers("GET /w", 200, "a: 1\n");
	ask_for("", "  a: {from: [{server: m, path: /w}], type: yaml, snapshot: true}\n"
		    "  b: {from: [{server: m, path: /w}, {server: m, path: /v, optional: true}], "
		    "type: yaml, snapshot: true}\n");
	assert_int_equal(pulls.count, 2);
	assert_string_equal(pulls.documents[0].config, "a");
	assert_string_equal(pulls.documents[1].config, "b");
	assert_int_equal(pulls.documents[1].layer, 1);
	assert_true(pulls.documents[1].optional);
	assert_int_equal(pull_of("/v", 0)->cause, KIND_CAUSE_NONE); /* it need not be there */
	assert_true(pull_of("/v", 0)->absent);
	assert_int_equal(pulls.upstreams[0].addresses[0].good, 2);
	assert_int_equal(played.log->count, 2);
	doctor.only = "a";
	ask_for("", "  a: {from: [{server: m, path: /w}], type: yaml, snapshot: true}\n"
		    "  b: {from: [{server: m, path: /v}], type: yaml, snapshot: true}\n");
	assert_int_equal(pulls.count, 1);
}

static void signature__is_asked_for_beside_its_document(void **state)
{
	(void)state;
	played_answers("GET /w", 200, "a: 1\n");
	played_answers("GET /w.minisig", 200, "nonsense");
	ask_for("",
		"  a: {from: [{server: m, path: '/w?x=1'}], type: yaml, snapshot: true, verify: "
		"{public_key: RWSYMC7n8ADplDfW2kiEMNo8BX8IPthSF1HxnEXGBzB/"
		"KwlR4ZfoNZlN}}\n");
	assert_int_equal(pulls.count, 2);
	assert_string_equal(pulls.documents[0].path, "/w?x=1");
	assert_non_null(pulls.documents[0].public_keys);
	assert_false(pulls.documents[0].is_signature);
	assert_string_equal(pulls.documents[1].path, "/w.minisig?x=1");
	assert_null(pulls.documents[1].public_keys);
	assert_true(pulls.documents[1].is_signature);
	assert_int_equal(pulls.documents[0].pulls[0].body.len, 5);
	assert_int_equal(pulls.documents[1].pulls[0].body.len, 8);
	assert_int_equal(pulls.documents[1].pulls[0].cause, KIND_CAUSE_NONE);
}

static void address__that_is_dead__is_asked_once(void **state)
{
	(void)state;
	played_answers("GET /a", 200, "a: 1\n");
	played_answers("GET /b", 200, "b: 1\n");
	played_answers("GET /c", 200, "c: 1\n");
	ask_for("", "  a: {from: [{server: n, path: /a}, {server: n, path: /b}, {server: n, path: "
		    "/c}], type: yaml, snapshot: true}\n");
	assert_int_equal(pull_of("/a", 0)->cause, KIND_CAUSE_UNREACHABLE);
	assert_int_equal(pull_of("/b", 0)->state, DOCTOR_PULL_SKIPPED);
	assert_int_equal(pull_of("/c", 0)->state, DOCTOR_PULL_SKIPPED);
	assert_ptr_equal(pulls.upstreams[1].addresses[0].dead, pull_of("/a", 0));
	assert_int_equal(pulls.upstreams[1].addresses[0].skipped, 2);
	assert_int_equal(pulls.upstreams[1].addresses[0].good, 0);
	assert_int_equal(pulls.upstreams[1].addresses[1].good, 3);
	assert_null(pulls.upstreams[1].addresses[1].dead);
	assert_int_equal(played.log->count, 3);
}

static void time__that_is_up__ends_what_runs_and_what_waits(void **state)
{
	(void)state;
	played_answers("GET /a", AGENT_HANGS, "");
	doctor.timeout_ms = 100;
	ask_for("", "  a: {from: [{server: n, path: /a}, {server: n, path: /b}], type: yaml, "
		    "snapshot: true}\n");
	assert_true(pulls.late);
	assert_int_equal(pull_of("/a", 1)->state, DOCTOR_PULL_ANSWERED);
	assert_int_equal(pull_of("/a", 1)->cause, KIND_CAUSE_TIMEOUT);
	assert_string_equal(
		pull_of("/a", 1)->why, "no answer in the 100 ms that this check has (--timeout)");
	assert_ptr_equal(pulls.upstreams[1].addresses[1].dead, pull_of("/a", 1));
	assert_int_equal(pull_of("/b", 1)->state, DOCTOR_PULL_SKIPPED);
	assert_int_equal(pulls.upstreams[1].addresses[1].skipped, 1);
}

static void files_and_receipts__are_asked_for_too(void **state)
{
	(void)state;
	put_file("w.yaml", 0600);
	played_answers(
		"POST /v3/kv/range", 200, "{\"header\":{\"cluster_id\":\"7\",\"revision\":\"9\"}}");
	ask_for("report: {server: e, host: h1}\n",
		"  a: {from: [{server: f, path: /w.yaml}], type: bytes, file: /nowhere/a}\n");
	assert_int_equal(pulls.count, 2);
	assert_int_equal(pull_of("/w.yaml", 0)->len, 2);
	assert_int_equal(pull_of("/w.yaml", 0)->cause, KIND_CAUSE_NONE);
	assert_string_equal(pulls.documents[1].config, "report");
	assert_string_equal(pulls.documents[1].path, "/pullet/agents/h1");
	assert_true(pulls.documents[1].optional);
	assert_int_equal(pulls.documents[1].timeout_ms, 10000);
	assert_int_equal(pulls.documents[1].pulls[0].cause, KIND_CAUSE_NONE);
	doctor.only = "a"; /* the receipts are of no config */
	ask_for("report: {server: e, host: h1}\n",
		"  a: {from: [{server: f, path: /w.yaml}], type: bytes, file: /nowhere/a}\n");
	assert_int_equal(pulls.count, 1);
}

static void server__whose_password_we_may_not_read__is_not_asked(void **state)
{
	(void)state;
	put_file("w.yaml", 0600);
	put_file("password", 0600);
	closed = "/password";
	doctor.who.can_try = false;
	ask_for("report: {server: u, host: h1}\n",
		"  a: {from: [{server: f, path: /w.yaml}], type: bytes, file: /nowhere/a}\n");
	assert_int_equal(pull_of("/w.yaml", 0)->cause, KIND_CAUSE_NONE);
	assert_int_equal(pull_of("/pullet/agents/h1", 0)->state, DOCTOR_PULL_SKIPPED);
	assert_int_equal(played.log->count, 0);
	for (size_t i = 0; i < doctor.settings->server_count; i++)
		assert_int_equal(pulls.upstreams[i].closed,
			strcmp(doctor.settings->servers[i]->name, "u") == 0);
}

static void address__is_as_slow_as_the_slowest_of_its_answers(void **state)
{
	const struct doctor_pull_address *a;
	uint64_t slowest_ms = 0;

	(void)state;
	slow = true;
	played_answers("GET /a", 200, "a: 1\n");
	played_answers("GET /b", 200, "b: 1\n");
	ask_for("", "  a: {from: [{server: m, path: /a}, {server: m, path: /b}], type: yaml, "
		    "snapshot: true}\n  b: {from: [{server: n, path: /c}], type: yaml, snapshot: "
		    "true}\n");
	slow = false;
	a = &pulls.upstreams[0].addresses[0];
	for (size_t i = 0; i < 2; i++) {
		const struct doctor_pull *p = pull_of(i ? "/b" : "/a", 0);

		assert_true(p->took_ms > 0);
		slowest_ms = p->took_ms > slowest_ms ? p->took_ms : slowest_ms;
	}
	assert_int_equal(a->slowest_ms, slowest_ms);
	assert_int_equal(a->certificates_end_ms, 0);
	assert_int_equal(pull_of("/c", 0)->cause, KIND_CAUSE_UNREACHABLE);
	assert_int_equal(pulls.upstreams[1].addresses[0].slowest_ms, 0); /* it did not answer */
}

static void login__that_has_expired__is_made_again(void **state)
{
	(void)state;
	put_file("password", 0600);
	played_answers("POST /v3/auth/authenticate", 200, "{\"token\":\"t\"}");
	played_answers("POST /v3/kv/range", 401, "{\"error\":\"invalid auth token\",\"code\":16}");
	played_answers_then(
		"POST /v3/kv/range", 200, "{\"header\":{\"cluster_id\":\"7\",\"revision\":\"9\"}}");
	ask_for("report: {server: u, host: h1}\n",
		"  a: {from: [{server: f, path: /w.yaml}], type: bytes, file: /nowhere/a}\n");
	assert_string_equal(pulls.documents[1].path, "/pullet/agents/h1");
	assert_int_equal(pulls.documents[1].pulls[0].cause, KIND_CAUSE_NONE);
	assert_string_equal(played_asked(0), "POST /v3/auth/authenticate");
	assert_string_equal(played_asked(1), "POST /v3/kv/range");
	assert_string_equal(played_asked(2), "POST /v3/auth/authenticate");
	assert_string_equal(played_asked(3), "POST /v3/kv/range");
	assert_int_equal(played.log->count, 4);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(answer__of_each_kind__has_its_cause),
		CASE(answer__is_held_against_its_headers),
		CASE(document__too_large_or_of_no_form),
		CASE(document__of_several_configs__is_asked_for_once),
		CASE(signature__is_asked_for_beside_its_document),
		CASE(address__that_is_dead__is_asked_once),
		CASE(time__that_is_up__ends_what_runs_and_what_waits),
		CASE(files_and_receipts__are_asked_for_too),
		CASE(server__whose_password_we_may_not_read__is_not_asked),
		CASE(address__is_as_slow_as_the_slowest_of_its_answers),
		CASE(login__that_has_expired__is_made_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
