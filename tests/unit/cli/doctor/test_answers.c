/* `pullet doctor`, the servers: what is said of answers that the test made up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>

#include <cmocka.h>

#include "cli/doctor/pulls.h"
#include "tests/unit/fixture/examined.h"

#define DAY INT64_C(86400000)

static struct doctor_pull_upstream upstreams[2];
static struct doctor_pull_document document;
static struct doctor_pull pulls[2];
static int result;

int doctor_pulls_run(struct doctor *d, struct pulls *ret_pulls)
{
	*ret_pulls =
		(struct pulls){.d = d, .upstreams = upstreams, .documents = &document, .count = 1};
	return result;
}

void doctor_pulls_fini(struct pulls *p)
{
	(void)p;
}

/* One document at two addresses, both of which have it. */
static int set_up(void **state)
{
	examined_set_up(state);
	doctor.settings = scratch_settings(
		"servers:\n  m: {urls: ['http://127.0.0.1:1', 'http://127.0.0.1:2'], max_size: "
		"1000B}\nconfigs:\n"
		"  web: {from: [{server: m, path: /w}], type: yaml, snapshot: true}\n"
		"  app: {url: 'http://127.0.0.1:3/a', snapshot: true}\n");
	result = 0;
	memset(upstreams, 0, sizeof(upstreams));
	upstreams[0].server = doctor.settings->servers[0];
	upstreams[1].server = doctor.settings->servers[1];
	upstreams[0].used = true;
	for (size_t i = 0; i < 2; i++) {
		upstreams[0].addresses[i] = (struct doctor_pull_address){
			.url = i ? "http://b" : "http://a", .good = 1, .slowest_ms = 5};
		pulls[i] = (struct doctor_pull){.document = &document,
			.address = &upstreams[0].addresses[i],
			.state = DOCTOR_PULL_ANSWERED,
			.sha256 = "x",
			.len = 10};
	}
	document = (struct doctor_pull_document){.config = "web",
		.upstream = &upstreams[0],
		.path = "/w",
		.timeout_ms = 1000,
		.of = doctor.settings->configs[0],
		.pulls = pulls};
	return 0;
}

static const char *examine(const char *subject)
{
	doctor_servers(&doctor, &list);
	return findings_of(subject);
}

/* The second address is as good as the first one, or did not answer. */
static void second_fails(void)
{
	upstreams[0].addresses[1].good = 0;
	pulls[1].state = DOCTOR_PULL_SKIPPED;
}

static void first_fails(enum kind_cause cause, const char *why)
{
	upstreams[0].addresses[0].good = 0;
	pulls[0].cause = cause;
	pulls[0].sha256[0] = '\0';
	snprintf(pulls[0].why, sizeof(pulls[0].why), "%s", why);
}

/* ---- addresses ---- */

static void addresses__that_answer__are_good(void **state)
{
	(void)state;
	upstreams[0].addresses[1].good = 2;
	assert_string_equal(examine(NULL), "ok http://a: 1 document came, the slowest in 5 ms\n"
					   "ok http://b: 2 documents came, the slowest in 5 ms\n");
	result = -ENOMEM;
	assert_string_equal(examine(NULL), "note servers: not looked at: out of memory\n");
}

static void server__that_is_closed_to_us__is_a_note(void **state)
{
	(void)state;
	upstreams[0].closed = upstreams[1].closed = true;
	pulls[0].state = pulls[1].state = DOCTOR_PULL_SKIPPED;
	assert_string_equal(examine(NULL),
		"note m: not looked at: you may not read a secret that robot uses here -> run this "
		"as root or as the agent's user\n");
	upstreams[0].used = false;
	upstreams[1].used = true;
	assert_string_equal(examine("http://127.0.0.1:3"),
		"note http://127.0.0.1:3: not looked at: you may not read a secret that robot uses "
		"here -> run this as root or as the agent's user\n");
}

static void address__that_is_dead__is_an_error_unless_another_one_answers(void **state)
{
	struct doctor_pull_address *a = &upstreams[0].addresses[0];

	(void)state;
	first_fails(KIND_CAUSE_UNREACHABLE, "refused");
	a->dead = &pulls[0];
	assert_string_equal(examine("http://a"),
		"warning http://a: unreachable: refused; the agent goes to another address -> "
		"check the address, whether a server runs there, and firewalls on the way\n");
	assert_string_equal(examine("web"), "");
	second_fails();
	assert_string_equal(examine(NULL),
		"error http://a: unreachable: refused -> check the address, whether a server runs "
		"there, and firewalls on the way\n");
	a->skipped = 1;
	assert_non_null(strstr(
		examine("http://a"), "unreachable: refused (1 more document not asked for) -> "));
	a->skipped = 2;
	assert_non_null(strstr(
		examine("http://a"), "unreachable: refused (2 more documents not asked for) -> "));
	a->dead = NULL;
	assert_string_equal(examine("http://a"),
		"note http://a: 2 documents could not be asked for in time -> "
		"give more time with --timeout\n");
	a->skipped = 1;
	assert_string_equal(examine("http://a"),
		"note http://a: 1 document could not be asked for in time -> "
		"give more time with --timeout\n");
}

static void certificate__that_ends_within_30_days__is_a_warning(void **state)
{
	static const struct {
		int64_t left_ms;
		const char *part; /* "" = nothing is said */
	} rows[] = {{31 * DAY, ""}, {30 * DAY + 60000, ""},
		{30 * DAY - 60000, " (29 days left): then nothing can be pulled -> renew it there "
				   "before that day\n"},
		{2 * DAY - 60000, " (1 day left): "}, {DAY / 2, " (0 days left): "}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int64_t end_ms = sys_real.wall_ms() + rows[i].left_ms;
		char expected[256], date[DOCTOR_DATE];

		upstreams[0].addresses[0].certificates_end_ms = end_ms;
		doctor_date(end_ms, date);
		snprintf(expected, sizeof(expected),
			"warning http://a: a certificate of the server expires on %s%s", date,
			rows[i].part);
		examine("http://a");
		if (rows[i].part[0])
			assert_non_null(strstr(text, expected));
		else
			assert_null(strstr(text, "certificate"));
	}
}

static void clock__that_differs__is_noted(void **state)
{
	static const struct {
		int64_t off_ms;
		const char *words;
	} rows[] = {
		{5005, NULL},
		{5006, "note http://a: the server's clock is 5 s ahead of this host's -> "},
		{-5005, NULL},
		{-5006, "note http://a: the server's clock is 5 s behind this host's -> "},
		{60000, "note http://a: the server's clock is 60 s ahead of this host's -> "},
		{60001, "warning http://a: the server's clock is 60 s ahead of this host's -> set "
			"the one that is wrong: certificates and signatures are validated by this "
			"host's\n"},
		{-60001, "warning http://a: the server's clock is 60 s behind this host's -> "},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		upstreams[0].addresses[0].has_clock = true;
		upstreams[0].addresses[0].clock_ms = rows[i].off_ms;
		examine("http://a");
		if (rows[i].words)
			assert_non_null(strstr(text, rows[i].words));
		else
			assert_null(strstr(text, "clock"));
		upstreams[0].addresses[0].has_clock = false;
		assert_null(strstr(examine("http://a"), "clock"));
	}
}

/* ---- documents ---- */

static void document__that_failed__has_a_remedy_for_its_cause(void **state)
{
	static const struct {
		enum kind_cause cause;
		const char *name, *remedy;
	} rows[] = {
		{KIND_CAUSE_NOT_FOUND, "not found", "put it there, or name the path where it is"},
		{KIND_CAUSE_EMPTY, "empty", "publish it whole; an empty document is never taken"},
		{KIND_CAUSE_FORBIDDEN, "forbidden",
			"look at auth: of the server here, and at what it may read there"},
		{KIND_CAUSE_UNREACHABLE, "unreachable",
			"check the address, whether a server runs there, and firewalls on the way"},
		{KIND_CAUSE_TIMEOUT, "timeout",
			"look at the server's load and at firewalls on the way, or at the resolver "
			"(/etc/resolv.conf) where its name was not found; timeout and "
			"connect_timeout are the limits"},
		{KIND_CAUSE_OVERLOADED, "overloaded",
			"nothing here: the agent holds back and comes again"},
		{KIND_CAUSE_OLDER, "older", "look at what the server sends: curl -v"},
		{KIND_CAUSE_ANSWER, "bad answer", "look at what the server sends: curl -v"},
		{KIND_CAUSE_HOST, "this host",
			"see files, below; nothing is wrong with the server"},
	};
	char expected[512];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		first_fails(rows[i].cause, "why");
		snprintf(expected, sizeof(expected), "warning web: http://a/w: %s: why -> %s\n",
			rows[i].name, rows[i].remedy);
		assert_string_equal(examine("web"), expected);
	}
	second_fails();
	snprintf(expected, sizeof(expected), "error web: http://a/w: this host: why -> %s\n",
		rows[8].remedy);
	assert_string_equal(examine("web"), expected);
	pulls[0].tls = true;
	assert_string_equal(examine("web"),
		"error web: http://a/w: this host: why -> look at tls: of the server here, and at "
		"its certificate there\n");
	pulls[0].tls = false;
	pulls[0].too_large = true;
	assert_string_equal(examine("web"),
		"error web: http://a/w: this host: why -> raise max_size of the server, or publish "
		"less there\n");
	pulls[0].too_large = false;
	pulls[0].sha256[0] = 'x';
	assert_string_equal(examine("web"),
		"error web: http://a/w: this host: why -> put it right at its source: as it is, "
		"the agent does not take it\n");
}

static void signature__that_is_not_there__is_to_be_made(void **state)
{
	(void)state;
	document.is_signature = true;
	first_fails(KIND_CAUSE_NOT_FOUND, "404");
	assert_non_null(strstr(examine("web"), "http://a/w: not found: 404 -> "));
	pulls[0].absent = true;
	assert_string_equal(examine("web"),
		"warning web: http://a/w is not there: without its signature no version is taken "
		"-> sign it (pullet sign) and publish the signature beside it\n");
	second_fails();
	assert_int_equal(strncmp(examine("web"), "error web: http://a/w is not there", 33), 0);
}

static void document__has_a_form(void **state)
{
	(void)state;
	pulls[0].nameless = true;
	assert_string_equal(examine("web"),
		"note web: http://a/w has neither ETag nor Last-Modified: each pull transfers it "
		"whole -> let the server send an ETag: then an unchanged document costs no "
		"transfer\n");
	document.is_signature = true;
	assert_string_equal(examine("web"), "");
	document.is_signature = false;
	pulls[0].absent = true;
	assert_string_equal(examine("web"), "");
	pulls[0] = pulls[1];
	pulls[0].address = &upstreams[0].addresses[0];
	pulls[0].len = 900;
	assert_string_equal(examine("web"), "");
	pulls[0].len = 901;
	assert_string_equal(examine("web"),
		"warning web: http://a/w has 901 of the 1000 bytes that it may have -> raise "
		"max_size of the server\n");
	pulls[0].len = 10;
	pulls[0].took_ms = 500;
	assert_string_equal(examine("web"), "");
	pulls[0].took_ms = 501;
	pulls[0].lookup_ms = 250;
	assert_string_equal(examine("web"),
		"warning web: http://a/w took 501 ms of the 1000 that a pull may take, 250 of them "
		"to find the server's name -> look at the server's load, or raise timeout\n");
	pulls[0].lookup_ms = 251;
	assert_string_equal(examine("web"),
		"warning web: http://a/w took 501 ms of the 1000 that a pull may take, 251 of them "
		"to find the server's name -> look at the resolver (/etc/resolv.conf)\n");
	pulls[0].cause = KIND_CAUSE_ANSWER;
	pulls[0].state = DOCTOR_PULL_SKIPPED;
	assert_string_equal(examine("web"), "");
}

static void contents__that_differ__are_a_warning(void **state)
{
	(void)state;
	pulls[1].sha256[0] = 'y';
	assert_string_equal(examine("web"),
		"warning web: http://a and http://b have different contents at /w -> bring them to "
		"the same version: this host takes whichever answers\n");
	pulls[0].state = DOCTOR_PULL_SKIPPED;
	assert_string_equal(examine("web"), "");
}

static void proxy__that_is_set__is_noted(void **state)
{
	static const char *const names[] = {
		"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unsetenv(names[i]);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char expected[256];

		setenv(names[i], "", 1);
		assert_string_equal(examine(names[i]), "");
		setenv(names[i], "http://p", 1);
		snprintf(expected, sizeof(expected),
			"note %s: is set here; the agent never uses a proxy -> nothing, if the "
			"servers can be reached without one\n",
			names[i]);
		assert_string_equal(examine(names[i]), expected);
		unsetenv(names[i]);
	}
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, examined_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(addresses__that_answer__are_good),
		CASE(server__that_is_closed_to_us__is_a_note),
		CASE(address__that_is_dead__is_an_error_unless_another_one_answers),
		CASE(certificate__that_ends_within_30_days__is_a_warning),
		CASE(clock__that_differs__is_noted),
		CASE(document__that_failed__has_a_remedy_for_its_cause),
		CASE(signature__that_is_not_there__is_to_be_made),
		CASE(document__has_a_form),
		CASE(contents__that_differ__are_a_warning),
		CASE(proxy__that_is_set__is_noted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
