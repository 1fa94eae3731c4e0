/*
 * What the agent says of itself, to the letter: the status as JSON, readiness and all series of
 * the metrics, of one config on a virtual clock and of a server, a push channel and receipts that
 * are played.
 */
#include "tests/unit/fixture/core.h"
#include "tests/unit/fixture/minisign_signer.h"

#include <errno.h>

#include "control/detail.h"
#include "control/metrics.h"
#include "control/status.h"
#include "text/json_writer.h"

/* ---- played ---- */

static struct upstream_address_status addresses[2];
static struct subscriber_status push_status;
static struct report_status receipts;

const struct sys *loop_sys(struct loop *l)
{
	(void)l;
	return &world.sys;
}

uint64_t loop_longest_us(const struct loop *l)
{
	(void)l;
	return 7999;
}

void upstream_address_status(
	const struct upstream *s, size_t address, struct upstream_address_status *ret_status)
{
	(void)s;
	*ret_status = addresses[address];
}

size_t subscriber_endpoint_count(const struct subscriber *p)
{
	(void)p;
	return 2;
}

void subscriber_get_status(
	const struct subscriber *p, size_t endpoint, struct subscriber_status *ret_status)
{
	(void)p;
	*ret_status = push_status;
	if (endpoint)
		*ret_status = (struct subscriber_status){.endpoint = "tcp://p:2"};
}

void report_status(const struct report *r, struct report_status *ret_status)
{
	(void)r;
	*ret_status = receipts;
}

/* ---- the agent ---- */

static struct config *configs[1];
static struct dispatcher_counters counters;
static struct configuration_status configuration;
static struct control_counts counts;
static struct subscriber *push;
static struct report *report;
static struct control_env env;

static void view_agent(void)
{
	configs[0] = core.config;
	counters = (struct dispatcher_counters){.accepted = 21,
		.overflowed = 22,
		.expired = 23,
		.cancelled = 24,
		.overridden = 25,
		.retried = 26,
		.batches = 27,
		.taken = 28,
		.batch_size = {.counts = {0, 3, 1}, .sum = 6},
		.latency_ms = {.counts = {5, 0, 0, 1}, .sum = 7}};
	world.server_status = (struct upstream_status){.name = "main",
		.address_count = 2,
		.in_flight = 31,
		.pending = 32,
		.backoff_ms = 33,
		.counters = &counters};
	memset(addresses, 0, sizeof(addresses));
	addresses[0].url = "http://a";
	addresses[0].error = "it \"hangs\"";
	addresses[0].backoff_ms = 41;
	addresses[0].in_a_row = 42;
	addresses[0].congestion = 43;
	addresses[0].network = 44;
	addresses[0].advised = 45;
	addresses[1].url = "http://b";
	addresses[1].error = "";
	counts = (struct control_counts){.denied = 51, .busy = 52};
	configuration = (struct configuration_status){.file = "/etc/p.yaml",
		.loaded_ms = 1700000000321,
		.reloads = 61,
		.rejections = 62,
		.errors = 63,
		.applying = true};
	push = NULL;
	report = NULL;
	env = (struct control_env){.loop = &world.loop,
		.settings = core.settings,
		.configs = configs,
		.servers = world.servers,
		.push = &push,
		.report = &report,
		.configuration = &configuration,
		.counts = &counts,
		.host = "host-1",
		.started_ms = 1699999999000};
}

static void view_push_and_report(void)
{
	push = (struct subscriber *)&world;
	report = (struct report *)&world;
	push_status = (struct subscriber_status){.endpoint = "tcp://p:1",
		.state = PUSH_SILENT,
		.error = "quiet",
		.messages = 71,
		.heartbeats = 72,
		.bad = 73,
		.gaps = 74,
		.epochs = 75,
		.connects = 76,
		.rebuilds = 77,
		.refused = 78,
		.cuts = 79,
		.last_message_ms = world.now_ms - 1500};
	receipts = (struct report_status){.state = REPORT_FAILING,
		.key = "/pullet/agents/host-1",
		.error = "no lease",
		.sent_ms = 1700000000001,
		.sent = 81,
		.failed = 82,
		.leases = 83};
}

static void play_reload_status(void)
{
	world.reload->status = (struct reload_status){.state = RELOAD_RUNNING,
		.pending = 91,
		.notified = 92,
		.next_ms = 93,
		.runs = 94,
		.failed = 95,
		.in_a_row = 96,
		.why = "exit 1"};
}

/* ---- comparing ---- */

static void replace(char *text, size_t size, const char *what, const char *by)
{
	size_t len = strlen(what);

	for (char *p = text; (p = strstr(p, what)); p += strlen(by)) {
		assert_true(strlen(text) + strlen(by) < size + len);
		memmove(p + strlen(by), p + len, strlen(p + len) + 1);
		memcpy(p, by, strlen(by));
	}
}

/* The text, with the directory as "@". */
static void check(struct buffer *b, const char *expected, const char *file, int line)
{
	static char text[65536];

	assert_true(b->len < sizeof(text) / 2);
	snprintf(text, sizeof(text), "%.*s", (int)b->len, b->data ? b->data : "");
	buffer_fini(b);
	replace(text, sizeof(text), core.dir, "@");
	if (strcmp(text, expected) != 0)
		core_fail(file, line, "it is\n%s\nnot\n%s", text, expected);
}

static void check_config(enum audience audience, const char *expected, const char *file, int line)
{
	struct buffer b;

	buffer_init(&b, 65536);
	assert_int_equal(status_config(core.config, audience, &b), 0);
	check(&b, expected, file, line);
}

#define assert_config(audience, expected) check_config(audience, expected, __FILE__, __LINE__)

/* What comes after this member. */
static const char *members_from(enum audience audience, const char *name)
{
	static char text[16384];
	struct buffer b;
	const char *p;

	buffer_init(&b, sizeof(text));
	assert_int_equal(status_config(core.config, audience, &b), 0);
	snprintf(text, sizeof(text), "%.*s", (int)b.len, b.data);
	buffer_fini(&b);
	p = strstr(text, name);
	return p ? p : "";
}

static void check_begins(const char *text, const char *words, const char *file, int line)
{
	if (strncmp(text, words, strlen(words)) != 0)
		core_fail(file, line, "it is %s, not %s", text, words);
}

#define assert_member(audience, name, rest)                                                        \
	check_begins(                                                                              \
		members_from(audience, "\"" name "\":"), "\"" name "\":" rest, __FILE__, __LINE__)

static bool ends(const char *text, const char *with)
{
	size_t len = strlen(text), n = strlen(with);

	return len >= n && strcmp(text + len - n, with) == 0;
}

/* All samples of names that begin so. */
static void check_samples(const char *prefix, const char *expected, const char *file, int line)
{
	struct buffer all, some;

	buffer_init(&all, 1u << 20);
	buffer_init(&some, 65536);
	assert_int_equal(metrics_write(&env, false, &all), 0);
	buffer_append(&all, "", 1);
	for (char *p = all.data, *l; (l = strsep(&p, "\n")) && p;)
		if (strncmp(l, prefix, strlen(prefix)) == 0 && !strstr(l, "_bucket") &&
			!ends(l, "} 0") && !ends(l, "} 0.000")) {
			buffer_append_string(&some, l + strlen(prefix));
			buffer_append_string(&some, "\n");
		}
	buffer_fini(&all);
	check(&some, expected, file, line);
}

static void assert_has_sample(const char *line)
{
	struct buffer all;

	buffer_init(&all, 1u << 20);
	assert_int_equal(metrics_write(&env, false, &all), 0);
	buffer_append(&all, "", 1);
	assert_non_null(strstr(all.data, line));
	buffer_fini(&all);
}

/* But those that are 0. */
#define assert_samples(prefix, expected) check_samples(prefix, expected, __FILE__, __LINE__)

/* ---- a config ---- */

/* A check that rejected nothing. */
#define CHECKED(name) "{\"name\":\"" name "\",\"configured\":true,\"rejections\":0,\"last\":null}"

static void config__that_waits__is_this(void **state)
{
	(void)state;
	core_make("topic: t1");
	assert_config(AUDIENCE_OPERATOR,
		"{\"name\":\"web\",\"state\":\"waiting\",\"url\":\"http://server/web.yaml\","
		"\"server\":\"main\",\"file\":\"@/out/web.yaml\","
		"\"snapshot\":\"@/run/web.snap\",\"type\":\"auto\",\"topic\":\"t1\","
		"\"generation\":0,\"version\":null,\"sha256\":null,\"published_ms\":null,"
		"\"confirmed_ms\":null,\"age_ms\":null,\"running\":false,\"deferred\":false,"
		"\"backoff_ms\":0,\"interval_ms\":3600000,\"delay_ms\":3600000,\"next_pull_in_ms\":"
		"null,"
		"\"last_error\":null,\"cause\":null,\"last_error_url\":null,\"last_error_ms\":null,"
		"\"failing_since_ms\":null,\"runs\":{\"success\":0,\"timeouts\":0,"
		"\"not_started\":0,\"failed\":0},\"rejections\":0,\"rejections_by\":{},"
		"\"explanation\":[],\"restored\":0,\"drifted\":false,\"pushes\":0,"
		"\"overrides\":[],\"layers\":[{\"server\":\"main\",\"path\":\"/web.yaml\","
		"\"as\":null,\"type\":\"auto\",\"optional\":false,\"version\":null,"
		"\"absent\":false}],\"checks\":[" CHECKED("syntax") "," CHECKED("guard") "]}");
}

static void config__that_is_published__is_this(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("reload: {run: [/bin/true]}, probe: {run: [/bin/true], for: 10s, every: 1s}");
	assert_config(AUDIENCE_OPERATOR,
		"{\"name\":\"web\",\"state\":\"ok\",\"url\":\"http://server/web.yaml\","
		"\"server\":\"main\",\"file\":\"@/out/web.yaml\","
		"\"snapshot\":\"@/run/web.snap\",\"type\":\"yaml\",\"topic\":\"web\","
		"\"generation\":1,\"version\":\"\\\"de80e4db\\\"\","
		"\"sha256\":\"de80e4dba5479c2b656999f807339a809a41810905d37eecb8b8fbfc1fdeeddb"
		"\",\"published_ms\":1700000000000,\"confirmed_ms\":1700000000000,\"age_ms\":0,"
		"\"running\":false,\"deferred\":false,\"backoff_ms\":0,\"interval_ms\":3600000,"
		"\"delay_ms\":3600000,"
		"\"next_pull_in_ms\":3600000,\"last_error\":null,\"cause\":null,"
		"\"last_error_url\":null,\"last_error_ms\":null,\"failing_since_ms\":null,\"runs\":"
		"{\"success\":1,"
		"\"timeouts\":0,\"not_started\":0,\"failed\":0},\"rejections\":0,"
		"\"rejections_by\":{},\"explanation\":[],\"restored\":0,\"drifted\":false,"
		"\"pushes\":0,\"overrides\":[],\"reload\":{\"state\":\"idle\",\"pending\":0,"
		"\"notified\":0,\"next_ms\":0,\"runs\":0,\"failed\":0,\"failed_in_a_row\":0,"
		"\"error\":null},\"probe\":{\"state\":\"running\",\"generation\":1,"
		"\"failed\":0,\"error\":null},\"layers\":[{\"server\":\"main\","
		"\"path\":\"/web.yaml\",\"as\":null,\"type\":\"yaml\",\"optional\":false,"
		"\"version\":\"\\\"de80e4db\\\"\",\"absent\":false}],\"checks\":[" CHECKED(
			"syntax") "," CHECKED("guard") "," CHECKED("probe") "]}");
	world_end_probe("it is down");
	world_turn();
	play_reload_status();
	assert_member(AUDIENCE_OPERATOR, "runs",
		"{\"success\":1,\"timeouts\":0,\"not_started\":0,\"failed\":0},\"rejections\":0,"
		"\"rejections_by\":{},\"explanation\":[],\"restored\":0,\"drifted\":false,"
		"\"pushes\":0,\"overrides\":[],\"reload\":{\"state\":\"running\","
		"\"pending\":91,\"notified\":92,\"next_ms\":93,\"runs\":94,\"failed\":95,"
		"\"failed_in_a_row\":96,\"error\":\"exit 1\"},\"probe\":{\"state\":\"failed\","
		"\"generation\":1,\"failed\":1,\"error\":\"it is down\"},");
	assert_member(AUDIENCE_PUBLIC, "reload",
		"{\"state\":\"running\",\"pending\":91,\"notified\":92,\"next_ms\":93,"
		"\"runs\":94,\"failed\":95,\"failed_in_a_row\":96,\"error\":\"see the control "
		"socket for the reason\"},\"probe\":{\"state\":\"failed\",\"generation\":1,"
		"\"failed\":1,\"error\":\"see the control socket for the reason\"},");
}

static void config__with_decisions__shows_them(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	operator_overrides("n", "7", HOUR);
	operator_pins(0);
	pull_of("n: 2\n");
	assert_member(AUDIENCE_READER, "rejections_by",
		"{},\"rejected\":{\"by\":\"pin\",\"version\":\"\\\"49a609b0\\\"\","
		"\"sha256\":\"49a609b0585951f88c4c93255a75ec03aa1e6c99919f8bf195d8af187290716e"
		"\",\"why\":\"pinned\",\"is_last_error\":false},\"explanation\":[\"the server "
		"has version 49a609b0, held by the pin\"],\"restored\":0,\"drifted\":false,"
		"\"pushes\":0,\"pin\":{\"by\":\"ann\",\"reason\":\"release day\","
		"\"until_ms\":null},\"overrides\":[{\"key\":\"n\",\"by\":\"ann\","
		"\"reason\":\"a try\",\"until_ms\":1700003600000}],\"layers\":[");
	operator_suspends(HOUR);
	assert_member(AUDIENCE_READER, "pin",
		"{\"by\":\"ann\",\"reason\":\"release day\",\"until_ms\":null},"
		"\"suspension\":{\"by\":\"ann\",\"reason\":\"move\","
		"\"until_ms\":1700003600000},\"overrides\":[{\"key\":\"n\",\"by\":\"ann\","
		"\"reason\":\"a try\",\"until_ms\":1700003600000}],\"layers\":[");
}

static void config__that_fails__tells_the_public_only_a_cause(void **state)
{
	static const char *const words[KIND_CAUSES] = {
		[KIND_CAUSE_NOT_FOUND] = "there is no such document",
		[KIND_CAUSE_EMPTY] = "the document is empty",
		[KIND_CAUSE_FORBIDDEN] = "the server forbids it",
		[KIND_CAUSE_UNREACHABLE] = "the server is unreachable",
		[KIND_CAUSE_TIMEOUT] = "the server did not answer in time",
		[KIND_CAUSE_OVERLOADED] = "the server is overloaded",
		[KIND_CAUSE_OLDER] = "the server has an older version",
		[KIND_CAUSE_ANSWER] = "the server's answer is invalid",
		[KIND_CAUSE_HOST] = "a problem of this host",
	};

	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	assert_member(AUDIENCE_PUBLIC, "last_error", "null,");
	for (int i = 1; i < KIND_CAUSES; i++) {
		char expected[256];

		server_fails(PULL_FAILED, (enum kind_cause)i, "a secret reason");
		pull();
		snprintf(expected, sizeof(expected), "\"last_error\":\"%s\",\"cause\":\"%s\",",
			words[i], kind_cause_name((enum kind_cause)i));
		check_begins(members_from(AUDIENCE_PUBLIC, "\"last_error\":"), expected, __FILE__,
			__LINE__);
		assert_non_null(
			strstr(members_from(AUDIENCE_OPERATOR, "\"last_error\":"), "secret"));
	}
	assert_member(AUDIENCE_OPERATOR, "last_error_ms",
		"1700000000000,\"failing_since_ms\":1700000000000,\"runs\":{\"success\":1,"
		"\"timeouts\":0,\"not_started\":0,\"failed\":9},\"rejections\":0,"
		"\"rejections_by\":{},\"explanation\":[],\"restored\":0,\"drifted\":false,"
		"\"pushes\":0,\"overrides\":[],\"layers\":[");
}

static void config__has_its_checks_and_their_last_verdicts(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("guard: {require: [n]}");
	pull_of("m: 1\n");
	assert_member(AUDIENCE_OPERATOR, "checks",
		"[" CHECKED("syntax") ",{\"name\":\"guard\",\"configured\":true,\"rejections\":1,"
				      "\"last\":{\"at_ms\":1700000000000,\"sha256\":"
				      "\"0b0f5dbdb8c9f5549627648a5d41a27c5570d4d43bce36d0971768ffee"
				      "19b23f\","
				      "\"why\":\"the required key n is not there\"}}]}");
	assert_null(strstr(members_from(AUDIENCE_PUBLIC, "\"checks\":"), "required key"));
	pull_of("n: 2\n");
	operator_rolls_back(1);
	assert_non_null(strstr(members_from(AUDIENCE_OPERATOR, "\"checks\":"),
		"{\"name\":\"operator\",\"configured\":false,\"rejections\":0,\"last\":{"));
	assert_non_null(strstr(members_from(AUDIENCE_PUBLIC, "\"rejected\":"),
		"\"forward\":[\"`pullet refresh web --force`: "));
}

static void config__whose_version_is_rejected__says_by_whom(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("guard: {require: [n]}");
	pull_of("m: 1\n");
	assert_member(AUDIENCE_OPERATOR, "last_error",
		"\"the required key n is not there\",\"cause\":null,"
		"\"last_error_url\":null,\"last_error_ms\":1700000000000,\"failing_since_ms\":"
		"1700000000000,"
		"\"runs\":{\"success\":1,\"timeouts\":0,\"not_started\":0,\"failed\":1},"
		"\"rejections\":1,\"rejections_by\":{\"guard\":1},"
		"\"rejected\":{\"by\":\"guard\",\"version\":\"\\\"0b0f5dbd\\\"\","
		"\"sha256\":\"0b0f5dbdb8c9f5549627648a5d41a27c5570d4d43bce36d0971768ffee19b23f"
		"\",\"why\":\"the required key n is not there\",\"is_last_error\":true},"
		"\"explanation\":[\"the server has version 0b0f5dbd, rejected by the guard: "
		"the required key n is not there\"],\"restored\":0,\"drifted\":false,"
		"\"pushes\":0,\"overrides\":[],\"layers\":[");
	assert_member(AUDIENCE_OPERATOR, "rejections",
		"1,\"rejections_by\":{\"guard\":1},\"rejected\":{\"by\":\"guard\","
		"\"version\":\"\\\"0b0f5dbd\\\"\","
		"\"sha256\":\"0b0f5dbdb8c9f5549627648a5d41a27c5570d4d43bce36d0971768ffee19b23f"
		"\",\"why\":\"the required key n is not there\",\"is_last_error\":true},"
		"\"explanation\":[\"the server has version 0b0f5dbd, rejected by the guard: "
		"the required key n is not there\"],\"restored\":0,\"drifted\":false,"
		"\"pushes\":0,\"overrides\":[],\"layers\":[");
	assert_member(AUDIENCE_PUBLIC, "last_error",
		"\"rejected by the "
		"guard\",\"cause\":null,\"last_error_url\":null,\"last_error_ms\":1700000000000,"
		"\"failing_since_ms\":1700000000000,\"runs\":{\"success\":1,\"timeouts\":0,"
		"\"not_started\":0,\"failed\":1},\"rejections\":1,\"rejections_by\":{\"guard\":1},"
		"\"rejected\":{\"by\":\"guard\",\"version\":\"\\\"0b0f5dbd\\\"\","
		"\"sha256\":\"0b0f5dbdb8c9f5549627648a5d41a27c5570d4d43bce36d0971768ffee19b23f"
		"\",\"why\":\"see the control socket for the reason\",\"is_last_error\":true},"
		"\"explanation\":[\"the server has version 0b0f5dbd, rejected by the guard: "
		"see the control socket for the reason\"],\"restored\":0,\"drifted\":false,"
		"\"pushes\":0,\"overrides\":[],\"layers\":[");
	assert_member(AUDIENCE_PUBLIC, "rejections",
		"1,\"rejections_by\":{\"guard\":1},\"rejected\":{\"by\":\"guard\","
		"\"version\":\"\\\"0b0f5dbd\\\"\","
		"\"sha256\":\"0b0f5dbdb8c9f5549627648a5d41a27c5570d4d43bce36d0971768ffee19b23f"
		"\",\"why\":\"see the control socket for the reason\",\"is_last_error\":true},"
		"\"explanation\":[\"the server has version 0b0f5dbd, rejected by the guard: "
		"see the control socket for the reason\"],\"restored\":0,\"drifted\":false,"
		"\"pushes\":0,\"overrides\":[],\"layers\":[");
}

static void config__that_is_watched__says_what_the_watch_does(void **state)
{
	(void)state;
	server_has("n: 1\n");
	core_make("");
	core.env.watcher = (struct watch *)&world;
	((struct settings_server *)(uintptr_t)world.server.settings)->watch = true;
	config_start(core.config, true);
	world_turn();
	assert_member(AUDIENCE_READER, "watch",
		"{\"state\":\"watching\",\"documents\":1,\"changes\":0,\"error\":null},"
		"\"overrides\":[],");
	world.items[0]->changed(world.items[0]->arg, "", 0, "");
	world.watch_state = WATCH_FAILING;
	world.watch_error = "refused";
	world_turn();
	assert_member(AUDIENCE_READER, "watch",
		"{\"state\":\"failing\",\"documents\":1,\"changes\":1,\"error\":\"refused\"},"
		"\"overrides\":[],");
	assert_member(AUDIENCE_PUBLIC, "watch",
		"{\"state\":\"failing\",\"documents\":1,\"changes\":1,\"error\":\"see the "
		"control socket for the reason\"},\"overrides\":[],");
	view_agent();
	assert_samples("pullet_config_watch", "_state{config=\"web\"} 3\n");
	assert_samples("pullet_watch", "_changes_total 1\n");
	core.env.watcher = NULL;
}

/* ---- the outcome of a run ---- */

static void check_outcome(enum audience audience, const char *expected, const char *file, int line)
{
	struct buffer b;

	buffer_init(&b, 65536);
	assert_int_equal(status_outcome(core.config, audience, &b), 0);
	check(&b, expected, file, line);
}

#define assert_outcome_is(audience, expected) check_outcome(audience, expected, __FILE__, __LINE__)

static void outcome__of_each_kind__is_named(void **state)
{
	(void)state;
	core_make("");
	assert_outcome_is(AUDIENCE_OPERATOR,
		"{\"name\":\"web\",\"outcome\":\"none\",\"generation\":0,\"version\":null,"
		"\"error\":null}");
	agent_crashes();
	server_has("n: 1\n");
	agent_starts("");
	assert_outcome_is(AUDIENCE_OPERATOR,
		"{\"name\":\"web\",\"outcome\":\"published\",\"generation\":1,"
		"\"version\":\"\\\"de80e4db\\\"\",\"error\":null}");
	pull();
	assert_outcome_is(AUDIENCE_OPERATOR,
		"{\"name\":\"web\",\"outcome\":\"unchanged\",\"generation\":1,"
		"\"version\":\"\\\"de80e4db\\\"\",\"error\":null}");
	operator_pins(0);
	pull_of("n: 2\n");
	assert_outcome_is(AUDIENCE_OPERATOR,
		"{\"name\":\"web\",\"outcome\":\"held\",\"generation\":1,"
		"\"version\":\"\\\"de80e4db\\\"\",\"held_by\":\"pin\",\"error\":\"pinned\"}");
	assert_outcome_is(AUDIENCE_PUBLIC,
		"{\"name\":\"web\",\"outcome\":\"held\",\"generation\":1,"
		"\"version\":\"\\\"de80e4db\\\"\",\"held_by\":\"pin\",\"error\":\"see the control "
		"socket for the "
		"reason\"}");
	server_is_down();
	pull();
	assert_outcome_is(AUDIENCE_OPERATOR,
		"{\"name\":\"web\",\"outcome\":\"failed\",\"generation\":1,"
		"\"version\":\"\\\"de80e4db\\\"\",\"error\":\"/web.yaml: connection refused\","
		"\"url\":\"http://server/web.yaml\"}");
}

/* ---- the whole agent ---- */

static void agent__is_this(void **state)
{
	char pid[32];
	struct buffer b;
	char *p;

	(void)state;
	core.agent_part = ", labels: {zone: a, rack: '7'}";
	core_make("");
	view_agent();
	view_push_and_report();
	buffer_init(&b, 65536);
	assert_int_equal(status_agent(&env, AUDIENCE_READER, &b), 0);
	buffer_append(&b, "", 1);
	snprintf(pid, sizeof(pid), "\"pid\":%d,", (int)getpid());
	p = strstr(b.data, pid);
	assert_non_null(p);
	replace(b.data, b.len, pid, "\"pid\":1,");
	b.len = strlen(b.data);
	check(&b,
		"{\"version\":\"" PULLET_VERSION "\",\"host\":\"host-1\",\"pid\":1,"
		"\"started_ms\":1699999999000,\"uptime_ms\":1000,\"state_dir\":\"@/state\","
		"\"runtime_dir\":\"@/run\",\"configuration\":{\"file\":\"/etc/p.yaml\","
		"\"loaded_ms\":1700000000321,\"reloads\":61,\"rejections\":62,\"error\":null,"
		"\"errors\":63,\"applying\":true},\"audience\":\"reader\",\"labels\":{\"zone\":"
		"\"a\",\"rack\":\"7\"},"
		"\"configs\":[{\"name\":\"web\",\"state\":\"waiting\","
		"\"url\":\"http://server/web.yaml\",\"server\":\"main\","
		"\"file\":\"@/out/web.yaml\",\"snapshot\":\"@/run/web.snap\",\"type\":\"auto\","
		"\"topic\":\"web\",\"generation\":0,\"version\":null,\"sha256\":null,"
		"\"published_ms\":null,\"confirmed_ms\":null,\"age_ms\":null,\"running\":false,"
		"\"deferred\":false,\"backoff_ms\":0,\"interval_ms\":3600000,\"delay_ms\":3600000,"
		"\"next_pull_in_ms\":null,\"last_error\":null,\"cause\":null,"
		"\"last_error_url\":null,\"last_error_ms\":null,\"failing_since_ms\":null,\"runs\":"
		"{\"success\":0,"
		"\"timeouts\":0,\"not_started\":0,\"failed\":0},\"rejections\":0,"
		"\"rejections_by\":{},\"explanation\":[],\"restored\":0,\"drifted\":false,"
		"\"pushes\":0,\"overrides\":[]}],\"servers\":[{\"name\":\"main\","
		"\"backoff_ms\":33,\"in_flight\":31,\"pending\":32,\"accepted\":21,"
		"\"overridden\":25,\"expired\":23,\"withdrawn\":24,\"retried\":26,"
		"\"dispatched\":28,\"batches\":27,\"batch_size\":[0,3,1],"
		"\"dispatch_latency_ms\":[5,0,0,1],\"addresses\":[{\"url\":\"http://a\","
		"\"backoff_ms\":41,\"error\":\"it \\\"hangs\\\"\",\"failures_in_a_row\":42,"
		"\"congestion\":43,\"network\":44,\"retry_after\":45},{\"url\":\"http://b\","
		"\"backoff_ms\":0,\"error\":null,\"failures_in_a_row\":0,\"congestion\":0,"
		"\"network\":0,\"retry_after\":0}]}],\"push\":[{\"endpoint\":\"tcp://p:1\","
		"\"state\":\"silent\",\"error\":\"quiet\",\"messages\":71,\"heartbeats\":72,"
		"\"bad\":73,\"gaps\":74,\"epochs\":75,\"connects\":76,\"rebuilds\":77,"
		"\"handshake_failures\":78,\"cuts\":79,\"last_message_ago_ms\":1500},"
		"{\"endpoint\":\"tcp://p:2\",\"state\":\"connecting\",\"error\":null,"
		"\"messages\":0,\"heartbeats\":0,\"bad\":0,\"gaps\":0,\"epochs\":0,\"connects\":0,"
		"\"rebuilds\":0,\"handshake_failures\":0,\"cuts\":0,\"last_message_ago_ms\":null}],"
		"\"report\":{\"server\":null,\"key\":\"/pullet/agents/host-1\","
		"\"state\":\"failing\",\"error\":\"no lease\",\"sent_ms\":1700000000001,"
		"\"sent\":81,\"failed\":82,\"leases\":83}}",
		__FILE__, __LINE__);
}

/* Whether the status of the config has a member of that name, anywhere. */
static bool has_member(const char *name)
{
	struct buffer b;
	char key[64];
	bool has;

	snprintf(key, sizeof(key), "\"%s\":", name);
	buffer_init(&b, 65536);
	assert_int_equal(status_config(core.config, AUDIENCE_OPERATOR, &b), 0);
	buffer_append(&b, "", 1);
	has = strstr(b.data, key);
	buffer_fini(&b);
	return has;
}

static void config__with_a_reload_or_a_probe_alone__has_no_other(void **state)
{
	(void)state;
	server_has("n: 1\n");
	for (int probe = 0; probe < 2; probe++) {
		agent_starts(probe ? "probe: {run: [/bin/true], for: 10s, every: 1s}"
				   : "reload: {run: [/bin/true]}");
		assert_int_equal(has_member("reload"), !probe);
		assert_int_equal(has_member("probe"), probe);
		agent_crashes();
	}
}

static void layers__of_a_signed_version__are_its_documents(void **state)
{
	struct settings_layer layers[] = {{.path = (char *)"/a"}, {.path = (char *)"/b"}};
	const struct settings_config settings = {.layers = layers, .layer_count = 2};
	struct part parts[] = {{.etag = (char *)"A", .type = "yaml"},
		{.etag = (char *)"S", .type = "minisig"}, {.etag = (char *)"B", .type = "json"}};
	const struct version v = {.generation = 1, .part_count = 3, .parts = parts};
	const struct config_status s = {.settings = &settings, .version = &v};
	struct buffer b;

	(void)state;
	buffer_init(&b, 65536);
	json_writer_begin_object(&b, NULL);
	assert_int_equal(detail_write(&s, AUDIENCE_OPERATOR, &b), 0);
	check_begins(b.data,
		"{\"layers\":["
		"{\"server\":null,\"path\":\"/a\",\"as\":null,\"type\":\"yaml\","
		"\"optional\":false,\"version\":\"A\",\"absent\":false},"
		"{\"server\":null,\"path\":\"/b\",\"as\":null,\"type\":\"json\","
		"\"optional\":false,\"version\":\"B\",\"absent\":false}]",
		__FILE__, __LINE__);
	buffer_fini(&b);
}

static void agent__with_two_servers__shows_both(void **state)
{
	struct upstream *servers[2];
	struct settings two;
	struct buffer b;
	const char *first;

	(void)state;
	core_make("");
	view_agent();
	two = *core.settings;
	two.server_count = 2;
	servers[0] = servers[1] = world.servers[0];
	env.settings = &two;
	env.servers = servers;
	buffer_init(&b, 65536);
	assert_int_equal(status_agent(&env, AUDIENCE_OPERATOR, &b), 0);
	buffer_append(&b, "", 1);
	first = strstr(b.data, "\"in_flight\":31,");
	assert_true(first && strstr(first + 1, "\"in_flight\":31,"));
	buffer_fini(&b);
}

static void agent__with_less__leaves_it_out(void **state)
{
	struct buffer b;
	char *p;

	(void)state;
	core_make("");
	view_agent();
	configuration.error = strdup("line 3 is \"bad\"");
	env.started_ms = world.wall_ms + 5; /* the clock was set back */
	for (int i = 0; i < 2; i++) {
		buffer_init(&b, 65536);
		assert_int_equal(
			status_agent(&env, i ? AUDIENCE_OPERATOR : AUDIENCE_READER, &b), 0);
		buffer_append(&b, "", 1);
		assert_non_null(strstr(b.data, "\"uptime_ms\":0,"));
		assert_non_null(strstr(b.data, "\"labels\":{},"));
		p = strstr(b.data, "\"push\":[]");
		assert_non_null(p);
		check_begins(p, "\"push\":[]}", __FILE__, __LINE__);
		p = strstr(b.data, "\"error\":\"");
		check_begins(p,
			i ? "\"error\":\"line 3 is \\\"bad\\\"\","
			  : "\"error\":\"`pulletd -t` prints the errors\",",
			__FILE__, __LINE__);
		buffer_fini(&b);
	}
	env.started_ms = world.wall_ms - 1;
	view_push_and_report();
	receipts.sent_ms = 0;
	push_status.last_message_ms = world.now_ms;
	buffer_init(&b, 65536);
	assert_int_equal(status_agent(&env, AUDIENCE_READER, &b), 0);
	buffer_append(&b, "", 1);
	assert_non_null(strstr(b.data, "\"uptime_ms\":1,"));
	assert_non_null(strstr(b.data, "\"sent_ms\":null,"));
	assert_non_null(strstr(b.data, "\"last_message_ago_ms\":0}"));
	buffer_fini(&b);
	free(configuration.error);
	buffer_init(&b, 100);
	assert_int_equal(status_agent(&env, AUDIENCE_READER, &b), -EMSGSIZE);
	buffer_fini(&b);
}

/* ---- readiness ---- */

static void check_ready(bool ready, bool verbose, enum audience audience, const char *expected,
	const char *file, int line)
{
	struct buffer b;

	view_agent();
	world.server_status.backoff_ms = core.env.once ? 33 : 0;
	buffer_init(&b, 65536);
	assert_int_equal(status_ready(&env, verbose, audience, &b), ready);
	check(&b, expected, file, line);
}

#define assert_ready(ready, verbose, audience, expected)                                           \
	check_ready(ready, verbose, audience, expected, __FILE__, __LINE__)

static void readiness__is_a_line_for_each_that_is_not(void **state)
{
	(void)state;
	core_make("");
	assert_ready(false, false, AUDIENCE_OPERATOR,
		"web: nothing is published yet: the first pull has not ended\n");
	assert_ready(false, true, AUDIENCE_OPERATOR,
		"[-]web: nothing is published yet: the first pull has not ended\nnot ready\n");
	agent_crashes();
	world.busy = true;
	agent_starts("");
	assert_ready(false, false, AUDIENCE_OPERATOR,
		"web: nothing is published yet: the first pull is queued for its server main\n");
	core.env.once = true;
	assert_ready(false, false, AUDIENCE_OPERATOR,
		"web: nothing is published yet: the first pull is queued for its server main, in "
		"backoff for another 33 ms\n");
	core.env.once = false;
	world.busy = false;
	agent_crashes();
	server_is_down();
	agent_starts("");
	assert_ready(false, false, AUDIENCE_OPERATOR,
		"web: nothing is published yet: /web.yaml: connection refused\n");
	assert_ready(false, false, AUDIENCE_PUBLIC,
		"web: nothing is published yet: the server is unreachable\n");
	server_recovers();
	pull_of("n: 1\n");
	assert_ready(true, false, AUDIENCE_OPERATOR, "ok\n");
	assert_ready(true, true, AUDIENCE_OPERATOR, "[+]web: generation 1, ok\nok\n");
}

/* ---- the metrics ---- */

static void metrics__of_the_agent__are_these(void **state)
{
	(void)state;
	core_make("");
	view_agent();
	view_push_and_report();
	assert_samples("pullet_control", "_busy_total 52\n"
					 "_denied_total 51\n");
	assert_samples("pullet_loop", "_longest_turn_seconds 0.007\n");
	assert_samples("pullet_configuration", "_loaded_timestamp_seconds 1700000000.321\n"
					       "_reloads_total 61\n"
					       "_rejections_total 62\n"
					       "_errors 63\n"
					       "_applying 1\n");
	assert_samples("pullet_server",
		"_in_flight{server=\"main\"} 31\n"
		"_pending{server=\"main\"} 32\n"
		"_backoff_seconds{server=\"main\"} 0.033\n"
		"_pulls_accepted_total{server=\"main\"} 21\n"
		"_pulls_retried_total{server=\"main\"} 26\n"
		"_pulls_lost_total{server=\"main\",cause=\"expired\"} 23\n"
		"_pulls_lost_total{server=\"main\",cause=\"withdrawn\"} 24\n"
		"_pulls_lost_total{server=\"main\",cause=\"overridden\"} 25\n"
		"_pulls_dispatched_total{server=\"main\"} 28\n"
		"_batch_pulls_sum{server=\"main\"} 6\n"
		"_batch_pulls_count{server=\"main\"} 4\n"
		"_dispatch_delay_seconds_sum{server=\"main\"} 0.007\n"
		"_dispatch_delay_seconds_count{server=\"main\"} 6\n");
	assert_samples("pullet_address",
		"_backoff_seconds{server=\"main\",address=\"http://a\"} 0.041\n"
		"_failures_in_a_row{server=\"main\",address=\"http://a\"} 42\n"
		"_failures_total{server=\"main\",address=\"http://a\",cause=\"congestion\"} "
		"43\n"
		"_failures_total{server=\"main\",address=\"http://a\",cause=\"network\"} 44\n"
		"_retry_after_total{server=\"main\",address=\"http://a\"} 45\n");
	assert_samples("pullet_push_", "latency_seconds_sum 0.000000\n"
				       "latency_seconds_count 0\n"
				       "state{endpoint=\"tcp://p:1\",state=\"silent\"} 1\n"
				       "state{endpoint=\"tcp://p:2\",state=\"connecting\"} 1\n"
				       "messages_total{endpoint=\"tcp://p:1\"} 71\n"
				       "heartbeats_total{endpoint=\"tcp://p:1\"} 72\n"
				       "bad_messages_total{endpoint=\"tcp://p:1\"} 73\n"
				       "gaps_total{endpoint=\"tcp://p:1\"} 74\n"
				       "epochs_total{endpoint=\"tcp://p:1\"} 75\n"
				       "connects_total{endpoint=\"tcp://p:1\"} 76\n"
				       "rebuilds_total{endpoint=\"tcp://p:1\"} 77\n"
				       "handshake_failures_total{endpoint=\"tcp://p:1\"} 78\n"
				       "cuts_total{endpoint=\"tcp://p:1\"} 79\n"
				       "last_message_age_seconds{endpoint=\"tcp://p:1\"} 1.500\n");
	assert_samples("pullet_report", "_state{state=\"failing\"} 1\n"
					"_sent_total 81\n"
					"_failures_total 82\n"
					"_leases_total 83\n"
					"_sent_timestamp_seconds 1700000000.001\n");
	push_status.last_message_ms = 0;
	receipts.sent_ms = 0;
	env.configuration = NULL;
	world.server_status.name = NULL;
	assert_samples("pullet_configuration", "");
	assert_samples("pullet_server_pending", "{server=\"http://server\"} 32\n");
	assert_samples("pullet_push_last", "");
	assert_samples("pullet_report_sent", "_total 81\n");
	push_status.last_message_ms = world.now_ms + 1;
	assert_samples("pullet_push_last", "");
	push_status.last_message_ms = world.now_ms - 1;
	assert_samples("pullet_push_last", "_message_age_seconds{endpoint=\"tcp://p:1\"} 0.001\n");
	push_status.last_message_ms = world.now_ms;
	assert_has_sample("pullet_push_last_message_age_seconds{endpoint=\"tcp://p:1\"} 0.000\n");
}

static void metrics__of_a_config__follow_its_life(void **state)
{
	(void)state;
	core_make("");
	view_agent();
	assert_samples("pullet_config_", "");
	agent_crashes();
	server_has("n: 1\n");
	agent_starts("reload: {run: [/bin/true]}, probe: {run: [/bin/true], for: 10s, every: 1s}");
	view_agent();
	assert_samples("pullet_config_",
		"ready{config=\"web\"} 1\n"
		"generation{config=\"web\"} 1\n"
		"confirmed_timestamp_seconds{config=\"web\"} 1700000000.000\n"
		"runs_total{config=\"web\"} 1\n"
		"probe_state{config=\"web\"} 2\n");
	world_end_probe("it is down");
	world_turn();
	operator_overrides("n", "7", HOUR);
	operator_overrides("m", "7", 2 * HOUR);
	operator_pins(HOUR);
	pull_of("n: 2\n");
	operator_suspends(2 * HOUR);
	assert_samples("pullet_config_",
		"ready{config=\"web\"} 1\n"
		"rejection{config=\"web\"} 3\n"
		"generation{config=\"web\"} 3\n"
		"confirmed_timestamp_seconds{config=\"web\"} 1700000000.000\n"
		"runs_total{config=\"web\"} 2\n"
		"operator_decisions{config=\"web\"} 4\n"
		"probe_state{config=\"web\"} 2\n");
	operator_resumes();
	operator_unpins();
	operator_pins(0);
	operator_suspends(0);
	server_is_down();
	play_reload_status();
	assert_samples("pullet_config_",
		"ready{config=\"web\"} 1\n"
		"generation{config=\"web\"} 4\n"
		"confirmed_timestamp_seconds{config=\"web\"} 1700000000.000\n"
		"runs_total{config=\"web\"} 4\n"
		"operator_decisions{config=\"web\"} 4\n"
		"reload_notified_generation{config=\"web\"} 92\n"
		"reload_failures_in_a_row{config=\"web\"} 96\n"
		"probe_state{config=\"web\"} 2\n");
}

static void metrics__of_a_signed_version__say_when_that_ends(void **state)
{
	static const char comment[] = "expires=1700000100", document[] = "n: 1\n";
	const struct signer_job job = {.document = document,
		.len = strlen(document),
		.comment = comment,
		.comment_len = strlen(comment)};
	char file[SIGNER_FILE], extra[128];
	struct signer signer;

	(void)state;
	signer_init(&signer, 1);
	server_has(document);
	world_put_bytes("/web.yaml.minisig", file, signer_file(&signer, &job, file));
	snprintf(extra, sizeof(extra), "verify: {public_key: \"%s\"}", signer.text);
	agent_starts(extra);
	signer_fini(&signer);
	view_agent();
	assert_samples("pullet_config_signature",
		"_end_timestamp_seconds{config=\"web\"} 1700000100.000\n");
}

static void metrics__of_all_configs__keep_what_freed_ones_counted(void **state)
{
	static struct config_totals gone;

	(void)state;
	server_has("n: [\n");
	agent_starts("reload: {run: [/bin/true]}, probe: {run: [/bin/true], for: 10s, every: 1s}");
	pull_of("n: 1\n");
	world_end_probe("it is down");
	play_reload_status();
	core.env.gone = &gone;
	view_agent();
	env.gone = &gone;
	for (int i = 0; i < 2; i++) {
		assert_samples("pullet_runs", "_total{outcome=\"success\"} 1\n"
					      "_total{outcome=\"failed\"} 1\n");
		assert_samples("pullet_rejections", "_total{check=\"syntax\"} 1\n");
		assert_samples("pullet_reload", "_runs_total 94\n_failures_total 95\n");
		assert_samples("pullet_probe", "_failures_total 1\n");
		if (i == 0) {
			agent_crashes();
			core_make("");
			view_agent();
			env.gone = &gone;
		}
	}
	env.gone = NULL;
}

/* ---- the process ---- */

static void process__has_descriptors_memory_and_time(void **state)
{
	struct buffer b;
	const char *p;

	(void)state;
	core_make("");
	view_agent();
	buffer_init(&b, 1u << 20);
	assert_int_equal(metrics_write(&env, false, &b), 0);
	buffer_append(&b, "", 1);
	p = strstr(b.data, "\nprocess_open_fds ");
	assert_non_null(p);
	assert_int_equal(strtoul(p + 18, NULL, 10) + 1, scratch_descriptors());
	assert_non_null(strstr(b.data, "\nprocess_max_fds "));
	p = strstr(b.data, "\nprocess_resident_memory_bytes ");
	assert_non_null(p);
	assert_in_range(strtoull(p + 31, NULL, 10), 100000, UINT64_C(1) << 40);
	p = strstr(b.data, "\nprocess_virtual_memory_bytes ");
	assert_non_null(p);
	assert_true(strtoull(p + 30, NULL, 10) > 1000000);
	p = strstr(b.data, "\nprocess_cpu_seconds_total ");
	assert_non_null(p);
	assert_true(strtod(p + 27, NULL) < 100);
	buffer_fini(&b);
	disk_fails(CALL_READ, 1, true, EIO);
	buffer_init(&b, 1u << 20);
	assert_int_equal(metrics_write(&env, false, &b), 0);
	disk_recovers();
	buffer_append(&b, "", 1);
	assert_null(strstr(b.data, "process_resident"));
	assert_null(strstr(b.data, "process_virtual"));
	assert_null(strstr(b.data, "process_cpu"));
	buffer_fini(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CORE_TEST(config__that_waits__is_this),
		CORE_TEST(config__that_is_published__is_this),
		CORE_TEST(config__with_decisions__shows_them),
		CORE_TEST(config__that_fails__tells_the_public_only_a_cause),
		CORE_TEST(config__has_its_checks_and_their_last_verdicts),
		CORE_TEST(config__whose_version_is_rejected__says_by_whom),
		CORE_TEST(config__that_is_watched__says_what_the_watch_does),
		CORE_TEST(outcome__of_each_kind__is_named),
		CORE_TEST(agent__is_this),
		CORE_TEST(config__with_a_reload_or_a_probe_alone__has_no_other),
		CORE_TEST(layers__of_a_signed_version__are_its_documents),
		CORE_TEST(agent__with_two_servers__shows_both),
		CORE_TEST(agent__with_less__leaves_it_out),
		CORE_TEST(readiness__is_a_line_for_each_that_is_not),
		CORE_TEST(metrics__of_the_agent__are_these),
		CORE_TEST(metrics__of_a_config__follow_its_life),
		CORE_TEST(metrics__of_a_signed_version__say_when_that_ends),
		CORE_TEST(metrics__of_all_configs__keep_what_freed_ones_counted),
		CORE_TEST(process__has_descriptors_memory_and_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
