/* `pullet fleet` beside an etcd that is played: which hosts run a version, the wait for it, a host
 * that is forgotten. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <pty.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "cli/common/cli.h"
#include "crypto/base64.h"
#include "fleet/receipt.h"
#include "tests/unit/fixture/command.h"

#define PREFIX "/pullet/agents/"
#define RANGE "POST /v3/kv/range"
#define WATCH "POST /v3/watch"
#define TXN "POST /v3/kv/txn"

/* what a watch says then */
#define REPLACED                                                                                   \
	"{\"result\":{\"header\":{\"cluster_id\":\"8\",\"revision\":\"10\"},\"created\":true}}\n"

static const char *url;
static struct buffer kept[8]; /* answers, until the end of a case */
static size_t kept_count;

static const char *last_shown; /* a watch is killed when this was printed, */
static bool on_terminal;       /* here, or else into a pipe */

static struct settings_label zone = {(char *)"zone", (char *)"eu"};

static int set_up(void **state)
{
	(void)state;
	alarm(30);
	played_open();
	url = played_listen_tcp();
	kept_count = 0;
	on_terminal = false;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	while (kept_count)
		buffer_fini(&kept[--kept_count]);
	played_close();
	return 0;
}

static void add_base64(struct buffer *out, const char *name, const void *data, size_t len)
{
	buffer_printf(out, "\"%s\":\"", name);
	assert_int_equal(base64_append(out, data, len), 0);
	buffer_append_string(out, "\"");
}

static void add_pair(struct buffer *out, const char *key, const struct buffer *value, int lease)
{
	buffer_append_string(out, "{");
	add_base64(out, "key", key, strlen(key));
	buffer_printf(out, ",\"mod_revision\":\"9\",\"lease\":\"%d\",", lease);
	add_base64(out, "value", value->data, value->len);
	buffer_append_string(out, "}");
}

/* The pairs of a host that runs `version` in this state: its receipt, and that it is known. */
static void add_host(struct buffer *out, const char *host, int lease, const char *version,
	enum receipt_state state, bool alive)
{
	struct receipt_config web = {.name = "web",
		.generation = 3,
		.version = version,
		.others = "",
		.digest = version[1] == '1' ? "111111111111aaaa" : "222222222222bbbb",
		.state = state,
		.why = state == RECEIPT_REJECTED ? "schema: no" : "",
		.rejected = state == RECEIPT_REJECTED ? "v2" : "",
		.rejected_digest = "",
		.since_ms = 1700000000000,
		.pulled_ms = version[1] == '1' ? 1700000000000 : 1700000005000};
	struct receipt r = {.host = host,
		.pullet = "0.1.0",
		.since_ms = 1700000000000,
		.page = 1,
		.pages = 1,
		.labels = &zone,
		.label_count = 1,
		.configs = &web,
		.config_count = 1};
	struct buffer value;
	char key[256];

	buffer_init(&value, RECEIPT_MAX);
	assert_int_equal(receipt_write_known(&r, &value), 0);
	snprintf(key, sizeof(key), PREFIX "known/%s", host);
	if (out->data && out->data[out->len - 1] == '}')
		buffer_append_string(out, ",");
	add_pair(out, key, &value, 0);
	buffer_clear(&value);
	receipt_begin(&r, &value);
	receipt_add(&web, &value);
	assert_int_equal(receipt_end(&value), 0);
	snprintf(key, sizeof(key), PREFIX "%s", host);
	if (alive) {
		buffer_append_string(out, ",");
		add_pair(out, key, &value, lease);
	}
	buffer_fini(&value);
}

static struct buffer *begin_answer(const char *before)
{
	struct buffer *out = &kept[kept_count++];

	buffer_init(out, 1u << 20);
	buffer_append_string(out, before);
	return out;
}

/* Three hosts: one on v2, one on v1 that rejects v2, one that is silent. */
static void answer_three_hosts(void)
{
	struct buffer *out =
		begin_answer("{\"header\":{\"cluster_id\":\"7\",\"revision\":\"9\"},\"kvs\":[");

	add_host(out, "a", 11, "v2", RECEIPT_OK, true);
	add_host(out, "b", 12, "v1", RECEIPT_REJECTED, true);
	add_host(out, "c", 13, "v1", RECEIPT_OK, false);
	buffer_append_string(out, "]}");
	played_answers(RANGE, 200, out->data);
}

/* ---- list ---- */

static void list__shows_versions_and_who_is_behind(void **state)
{
	(void)state;
	answer_three_hosts();
	RUN(cli_fleet, "pullet fleet", "web", "--etcd", url);
	assert_ended(CLI_OK,
		"web: 1 of 3 hosts run v2 (33.3%), 1 rejected what the server has, 1 silent\n"
		"  VERSION   DIGEST        HOSTS  PERCENT  STATES\n"
		"  v1        111111111111  1      33.3%    1 rejected\n"
		"  v2        222222222222  1      33.3% *  1 ok\n"
		"  (silent)  -             1      33.3%\n"
		"  HOST  STATE     VERSION  SINCE                 WHY\n"
		"  b     rejected  v1       2023-11-14T22:13:20Z  v2: schema: no\n"
		"  c     silent    -        -\n",
		"");
}

static void list__with_json__has_all_hosts(void **state)
{
	(void)state;
	answer_three_hosts();
	RUN(cli_fleet, "pullet fleet", "--etcd", url, "--json");
	assert_int_equal(command.code, CLI_OK);
	assert_shows(
		command.out, "{\"prefix\":\"/pullet/agents/\",\"configs\":[{\"config\":\"web\"");
	assert_shows(command.out, "\"percent\":33.333");
	assert_shows(command.out, "\"host\":\"a\",\"state\":\"ok\",\"behind\":false");
	assert_shows(command.out, "\"host\":\"c\",\"state\":\"silent\",\"behind\":true");
	assert_shows(command.out, "\"labels\":{\"zone\":\"eu\"}");
	assert_shows(command.out, "\"ghosts\":[],\"revision\":9}\n");
}

static void list__names_invalid_receipts_apart(void **state)
{
	struct buffer *out =
		begin_answer("{\"header\":{\"cluster_id\":\"7\",\"revision\":\"9\"},\"kvs\":[");

	(void)state;
	add_host(out, "a", 11, "v2", RECEIPT_OK, true);
	add_host(out, "b", 0, "v2", RECEIPT_OK, true);
	buffer_append_string(out, "]}");
	played_answers(RANGE, 200, out->data);
	RUN(cli_fleet, "pullet fleet", "--etcd", url, "--ghosts", "--all");
	assert_int_equal(command.code, CLI_OK);
	assert_shows(command.out, "\n1 invalid receipt: 1 under no lease\n  b  under no lease\n");
	assert_shows(command.out, "1 of 2 hosts run v2 (50.0%), 1 silent");
	RUN(cli_fleet, "pullet fleet", "--etcd", url, "--json");
	assert_shows(command.out, "\"ghosts\":[{\"key\":\"b\",\"why\":\"under no lease\"}]");
}

static void list__of_labels_or_configs_that_nobody_has__exits_2(void **state)
{
	(void)state;
	answer_three_hosts();
	RUN(cli_fleet, "pullet fleet", "web", "--etcd", url, "--label", "zone=us");
	assert_int_equal(command.code, CLI_NOT_FOUND);
	assert_shows(command.err, "no host with these labels that has web has a receipt below "
				  "/pullet/agents/ at http");
	RUN(cli_fleet, "pullet fleet", "db", "--etcd", url, "--json");
	assert_int_equal(command.code, CLI_NOT_FOUND);
	assert_shows(command.out, "\"configs\":[]");
	RUN(cli_fleet, "pullet fleet", "web", "--etcd", url, "--label", "zone=eu");
	assert_int_equal(command.code, CLI_OK);
}

static void list__of_more_than_one_answer__goes_on_behind_the_last_key(void **state)
{
	struct buffer *first = begin_answer("{\"header\":{\"cluster_id\":\"7\",\"revision\":\"9\"},"
					    "\"more\":true,\"kvs\":["),
		      *second = begin_answer(
			      "{\"header\":{\"cluster_id\":\"7\",\"revision\":\"12\"},\"kvs\":[");

	(void)state;
	add_host(first, "a", 11, "v2", RECEIPT_OK, true);
	buffer_append_string(first, "]}");
	add_host(second, "b", 12, "v2", RECEIPT_OK, true);
	buffer_append_string(second, "]}");
	played_answers(RANGE, 200, first->data);
	played_answers_then(RANGE, 200, second->data);
	RUN(cli_fleet, "pullet fleet", "web", "--etcd", url);
	assert_int_equal(command.code, CLI_OK);
	assert_shows(command.out, "web: 2 of 2 hosts run v2 (100.0%)\n");
	assert_shows(played.log->body, "\"revision\":\"9\"");
}

static void list__of_an_etcd_that_fails__says_why(void **state)
{
	(void)state;
	played_answers(RANGE, 200, "{\"kvs\":[1]}");
	assert_int_equal(RUN(cli_fleet, "pullet fleet", "--etcd", url), CLI_FAILED);
	played_answers(RANGE, 503, "down");
	RUN(cli_fleet, "pullet fleet", "--etcd", url);
	assert_int_equal(command.code, CLI_FAILED);
	assert_shows(command.err, "503");
	played_answers(RANGE, AGENT_CLOSES, "");
	assert_int_equal(RUN(cli_fleet, "pullet fleet", "--etcd", url), CLI_FAILED);
	played_answers(RANGE, 200,
		"{\"header\":{\"cluster_id\":\"7\",\"revision\":\"9\"},\"kvs\":[],\"more\":true}");
	RUN(cli_fleet, "pullet fleet", "--etcd", url);
	assert_int_equal(command.code, CLI_FAILED);
	assert_shows(command.err, "invalid answer");
}

/* ---- wait ---- */

static void wait__for_what_enough_hosts_run__ends_at_once(void **state)
{
	(void)state;
	answer_three_hosts();
	RUN(cli_fleet, "pullet fleet", "wait", "web", "--version", "v2", "--percent", "33.3%",
		"--etcd", url);
	assert_ended(CLI_OK,
		"web: 1 of 3 hosts run v2 (33.3%), 1 rejected what the server has, 1 silent\n", "");
	RUN(cli_fleet, "pullet fleet", "wait", "web", "--version", "v2", "--percent", "0.001",
		"--etcd", url);
	assert_int_equal(command.code, CLI_OK);
}

static void wait__that_takes_too_long__shows_who_is_behind(void **state)
{
	(void)state;
	answer_three_hosts();
	played_answers(WATCH, AGENT_STREAMS, "");
	RUN(cli_fleet, "pullet fleet", "wait", "web", "--version", "v2", "--timeout", "100ms",
		"--hosts", "08", "--etcd", url);
	assert_int_equal(command.code, CLI_TIMED_OUT);
	assert_shows(command.err, "b     rejected  v1");
	assert_shows(command.err,
		"timed out: 100.000% of the hosts (of --hosts at least) were required\n");
	assert_string_equal(played_asked(1), "POST /v3/watch");
	RUN(cli_fleet, "pullet fleet", "wait", "db", "--version", "v2", "--timeout", "50ms",
		"--etcd", url);
	assert_int_equal(command.code, CLI_TIMED_OUT);
	assert_shows(command.err, "timed out: no host has db in its receipt below ");
	RUN(cli_fleet, "pullet fleet", "wait", "web", "--version", "v2", "--timeout", "50ms",
		"--json", "--etcd", url);
	assert_shows(command.out, "\"on_it\":1");
}

static void wait__sees_the_change_in_the_watch(void **state)
{
	struct buffer *event;

	(void)state;
	answer_three_hosts();
	event = begin_answer("{\"result\":{\"header\":{\"cluster_id\":\"7\",\"revision\":\"10\"},"
			     "\"created\":true}}\n"
			     "{\"result\":{\"header\":{\"cluster_id\":\"7\",\"revision\":\"11\"},"
			     "\"events\":[{\"kv\":");
	{
		struct buffer pairs;
		const char *receipt;

		buffer_init(&pairs, 1u << 16);
		add_host(&pairs, "b", 12, "v2", RECEIPT_OK, true);
		receipt = strstr(pairs.data, "},{") + 2;
		buffer_append_string(event, receipt);
		buffer_fini(&pairs);
	}
	buffer_append_string(event, "}]}}\n");
	played_answers(WATCH, AGENT_STREAMS, event->data);
	RUN(cli_fleet, "pullet fleet", "wait", "web", "--version", "v2", "--percent", "66",
		"--etcd", url, "--timeout", "20s");
	assert_ended(CLI_OK, "web: 2 of 3 hosts run v2 (66.6%), 1 silent\n", "");
}

static void wait__for_an_etcd_that_does_not_answer__exits_4(void **state)
{
	(void)state;
	played_answers(RANGE, AGENT_HANGS, "");
	RUN(cli_fleet, "pullet fleet", "wait", "web", "--version", "v2", "--timeout", "50ms",
		"--etcd", url);
	assert_int_equal(command.code, CLI_TIMED_OUT);
	assert_shows(command.err, "timed out: http://127.0.0.1:");
}

static void wait__whose_etcd_was_replaced__says_so(void **state)
{
	(void)state;
	answer_three_hosts();
	played_answers(WATCH, 200, REPLACED);
	RUN(cli_fleet, "pullet fleet", "wait", "web", "--version", "v2", "--timeout", "50ms",
		"--percent", "99.9", "--etcd", url);
	assert_ended(CLI_TIMED_OUT, "",
		"pullet fleet wait: the cluster was restored or replaced\n"
		"web: 1 of 3 hosts run v2 (33.3%), 1 rejected what the server has, 1 silent\n"
		"  HOST  STATE     VERSION  SINCE                 WHY\n"
		"  b     rejected  v1       2023-11-14T22:13:20Z  v2: schema: no\n"
		"  c     silent    -        -\n"
		"pullet fleet wait: timed out: 99.900% of the hosts were required\n");
}

/* ---- --watch ---- */

/* In a child: a watch does not end. */
static int run_until_shown(int argc, char **argv)
{
	static char text[16384];
	size_t len = 0;
	ssize_t n = 1;
	int ends[2];
	pid_t pid;

	assert_int_equal(
		on_terminal ? openpty(&ends[0], &ends[1], NULL, NULL, NULL) : pipe(ends), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(ends[1], STDOUT_FILENO);
		_exit(cli_fleet(argc, argv));
	}
	close(ends[1]);
	text[0] = '\0';
	while (n > 0 && len < sizeof(text) - 1 && !strstr(text, last_shown)) {
		n = read(ends[0], text + len, sizeof(text) - 1 - len);
		len += n > 0 ? (size_t)n : 0;
		text[len] = '\0';
	}
	close(ends[0]);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	fputs(text, stdout);
	return 0;
}

/* Without the times of the changes, each of which is a line's beginning. */
static const char *without_times(const char *from)
{
	static char text[16384];
	char *to = text;

	for (; *from && to < text + sizeof(text) - 1; from++) {
		if (strspn(from, "0123456789-T:Z") == 20 && (to == text || to[-1] == '\n'))
			from += 20;
		*to++ = *from;
	}
	*to = '\0';
	return text;
}

/* Host b runs v2 when everything is read again. */
static void watch__shows_each_change(void **state)
{
	struct buffer *later =
		begin_answer("{\"header\":{\"cluster_id\":\"8\",\"revision\":\"12\"},\"kvs\":[");

	(void)state;
	answer_three_hosts();
	add_host(later, "a", 11, "v2", RECEIPT_OK, true);
	add_host(later, "b", 12, "v2", RECEIPT_OK, true);
	add_host(later, "c", 13, "v1", RECEIPT_OK, false);
	buffer_append_string(later, "]}");
	played_answers_then(RANGE, 200, later->data);
	played_answers(WATCH, 200, REPLACED);
	last_shown = "  c     silent  -        -\n";
	RUN(run_until_shown, "pullet fleet", "--watch", "--etcd", url);
	assert_string_equal(command.err, "pullet fleet: the cluster was restored or replaced\n");
	assert_string_equal(without_times(command.out),
		"\nweb: 1 of 3 hosts run v2 (33.3%), 1 rejected what the server has, 1 silent\n"
		"  VERSION   DIGEST        HOSTS  PERCENT  STATES\n"
		"  v1        111111111111  1      33.3%    1 rejected\n"
		"  v2        222222222222  1      33.3% *  1 ok\n"
		"  (silent)  -             1      33.3%\n"
		"  HOST  STATE     VERSION  SINCE                 WHY\n"
		"  b     rejected  v1       2023-11-14T22:13:20Z  v2: schema: no\n"
		"  c     silent    -        -\n"
		"\nweb: 2 of 3 hosts run v2 (66.6%), 1 silent\n"
		"  VERSION   DIGEST        HOSTS  PERCENT  STATES\n"
		"  v2        222222222222  2      66.6% *  2 ok\n"
		"  (silent)  -             1      33.3%\n"
		"  HOST  STATE   VERSION  SINCE  WHY\n"
		"  c     silent  -        -\n");
}

static void watch__with_json__is_a_line_for_each_change(void **state)
{
	(void)state;
	answer_three_hosts();
	last_shown = "\"ghosts\":[],\"revision\":9}\n";
	RUN(run_until_shown, "pullet fleet", "--watch", "--json", "--etcd", url);
	assert_ptr_equal(
		strstr(command.out, "{\"prefix\":\"/pullet/agents/\",\"configs\":[{\"config\":"
				    "\"web\",\"wanted\":\"v2\","),
		command.out);
}

static void watch__of_what_nobody_has__says_so(void **state)
{
	(void)state;
	answer_three_hosts();
	last_shown = "no host has a receipt\n";
	RUN(run_until_shown, "pullet fleet", "db", "--watch", "--etcd", url);
	assert_string_equal(without_times(command.out), " no host has a receipt\n");
}

/* In the place of what was there. */
static void watch__on_a_terminal__clears_it(void **state)
{
	(void)state;
	answer_three_hosts();
	on_terminal = true;
	last_shown = "no host has a receipt\r\n";
	RUN(run_until_shown, "pullet fleet", "db", "--watch", "--etcd", url);
	assert_int_equal(strncmp(command.out, "\033[H\033[J20", 8), 0);
	last_shown = "\"revision\":9}\r\n";
	RUN(run_until_shown, "pullet fleet", "db", "--watch", "--json", "--etcd", url);
	assert_string_equal(command.out,
		"{\"prefix\":\"/pullet/agents/\",\"configs\":[],\"ghosts\":[],\"revision\":9}\r\n");
}

/* ---- forget ---- */

static void forget__of_a_silent_host__deletes_its_known_key(void **state)
{
	(void)state;
	played_answers(TXN, 200,
		"{\"header\":{\"cluster_id\":\"7\",\"revision\":\"9\"},\"succeeded\":true,"
		"\"responses\":[{"
		"\"response_delete_range\":{\"deleted\":\"1\"}}]}");
	RUN(cli_fleet, "pullet fleet", "forget", "c", "--etcd", url);
	assert_ended(CLI_OK, "c is forgotten\n", "");
	/* "/pullet/agents/c" is not there, "/pullet/agents/known/c" goes */
	assert_string_equal(played.log->body,
		"{\"compare\":[{\"key\":\"L3B1bGxldC9hZ2VudHMvYw==\",\"target\":\"CREATE\","
		"\"result\":\"EQUAL\",\"create_revision\":\"0\"}],\"success\":[{"
		"\"request_delete_range\":{\"key\":\"L3B1bGxldC9hZ2VudHMva25vd24vYw==\"}}]}");
	RUN(cli_fleet, "pullet fleet", "forget", "c", "--force", "--etcd", url);
	assert_int_equal(command.code, CLI_OK);
	assert_string_equal(played.log->body, "{\"success\":[{\"request_delete_range\":{\"key\":"
					      "\"L3B1bGxldC9hZ2VudHMva25vd24vYw==\"}}]}");
}

static void forget__of_a_host_that_is_alive_or_unknown__says_so(void **state)
{
	(void)state;
	played_answers(TXN, 200, "{\"header\":{\"cluster_id\":\"7\",\"revision\":\"9\"}}");
	RUN(cli_fleet, "pullet fleet", "forget", "a", "--etcd", url);
	assert_ended(CLI_FAILED, "",
		"pullet fleet forget: a is alive: stop its agent, and wait until its receipt is "
		"gone "
		"(the ttl of its report)\n");
	played_answers(TXN, 200,
		"{\"header\":{\"cluster_id\":\"7\",\"revision\":\"9\"},\"succeeded\":true}");
	RUN(cli_fleet, "pullet fleet", "forget", "x", "--etcd", url);
	assert_ended(CLI_NOT_FOUND, "",
		"pullet fleet forget: no host x is known below /pullet/agents/\n");
	played_answers(TXN, 500, "");
	assert_int_equal(RUN(cli_fleet, "pullet fleet", "forget", "x", "--etcd", url), CLI_FAILED);
}

/* ---- which etcd ---- */

static void write_settings(const char *text, char path[SCRATCH_PATH + 16])
{
	scratch_write(played.dir, "p.yaml", text, strlen(text));
	snprintf(path, SCRATCH_PATH + 16, "%s/p.yaml", played.dir);
}

static void file__names_the_etcd_and_the_prefix(void **state)
{
	char path[SCRATCH_PATH + 16], text[512];

	(void)state;
	answer_three_hosts();
	snprintf(text, sizeof(text),
		"servers:\n  e: {kind: etcd, urls: ['%s']}\n  h: {urls: ['http://127.0.0.1:1']}\n"
		"report: {server: e}\nconfigs:\n  web: {from: [{server: h, path: /web.yaml}]}\n",
		url);
	write_settings(text, path);
	RUN(cli_fleet, "pullet fleet", "-c", path);
	assert_int_equal(command.code, CLI_OK);
	assert_shows(command.out, "1 of 3 hosts run v2");
	setenv("PULLET_CONFIG", path, 1);
	RUN(cli_fleet, "pullet fleet", "--server", "e");
	unsetenv("PULLET_CONFIG");
	assert_int_equal(command.code, CLI_OK);
	RUN(cli_fleet, "pullet fleet", "-c", path, "--server", "h");
	assert_ended(CLI_CONFIG, "", "pullet fleet: the server h is not of kind etcd\n");
	RUN(cli_fleet, "pullet fleet", "-c", path, "--server", "x");
	assert_int_equal(command.code, CLI_CONFIG);
	assert_shows(command.err, "has no server x");
}

/* Of two addresses the second is asked only where the first one does not answer. */
static void file__of_several_addresses__asks_the_next(void **state)
{
	char path[SCRATCH_PATH + 16], text[512];

	(void)state;
	answer_three_hosts();
	for (int i = 0; i < 2; i++) {
		snprintf(text, sizeof(text),
			"servers:\n  e: {kind: etcd, urls: ['%s', '%s']}\nreport: {server: e}\n"
			"configs:\n  web: {from: [{server: e, path: /web}], type: yaml}\n",
			i ? "http://127.0.0.1:1" : url, i ? url : "http://127.0.0.1:1");
		write_settings(text, path);
		RUN(cli_fleet, "pullet fleet", "-c", path);
		assert_int_equal(command.code, CLI_OK);
		assert_shows(command.out, "1 of 3 hosts run v2");
		assert_int_equal(played.log->count, 1);
	}
}

static void file__without_a_report_or_with_errors__names_the_other_way(void **state)
{
	char path[SCRATCH_PATH + 16];

	(void)state;
	write_settings("configs:\n  web: {url: 'http://127.0.0.1:1/web.yaml'}\n", path);
	RUN(cli_fleet, "pullet fleet", "-c", path);
	assert_int_equal(command.code, CLI_CONFIG);
	assert_shows(command.err, "has no report: name an etcd with --etcd or --server");
	write_settings("nonsense: 1\n", path);
	RUN(cli_fleet, "pullet fleet", "-c", path);
	assert_int_equal(command.code, CLI_CONFIG);
	assert_shows(command.err, "without it use --etcd");
}

static void options__that_do_not_fit__are_misused(void **state)
{
	static const struct {
		const char *a, *b, *c, *sentence;
	} rows[] = {
		{"--etcd=http://h:1", "--config=x", NULL, "--etcd is used alone"},
		{"--user=u", NULL, NULL, "belong to --etcd"},
		{"--etcd=http://h:1", "--user=u", NULL,
			"--user and --password-file belong together"},
		{"--etcd=http://h:1", "--key=k", NULL, "--key needs --cert"},
		{"--etcd=ftp://h:1", NULL, NULL, "the address of --etcd "},
		{"--etcd=http://h:1", "--prefix=x", NULL, "--prefix must end with /"},
		{"--version=v", NULL, NULL, "--version is that of one config: name it"},
		{"web", "--version=", NULL, "--version takes a version, not nothing"},
		{"web", "--label=x", NULL, "--label takes NAME=VALUE, not 'x'"},
		{"a", "b", NULL, "one config at most"},
		{"wait", "web", NULL, "name one config, and the --version to wait for"},
		{"wait", "web", "--percent=101", "--percent takes a number above 0 and up to 100"},
		{"wait", "web", "--percent=0.000", "--percent takes a number above 0"},
		{"wait", "web", "--percent=100.001", "--percent takes a number above 0"},
		{"wait", "web", "--percent=.5", "--percent takes a number"},
		{"wait", "web", "--percent=1.2345", "--percent takes a number"},
		{"forget", "a b", NULL, "the host's name "},
		{"forget", "--watch", NULL, "Try 'pullet fleet forget --help'."},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		RUN(cli_fleet, "pullet fleet", rows[i].a, rows[i].b, rows[i].c);
		assert_int_equal(command.code, CLI_USAGE);
		assert_shows(command.err, rows[i].sentence);
	}
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(list__shows_versions_and_who_is_behind),
		CASE(list__with_json__has_all_hosts),
		CASE(list__names_invalid_receipts_apart),
		CASE(list__of_labels_or_configs_that_nobody_has__exits_2),
		CASE(list__of_more_than_one_answer__goes_on_behind_the_last_key),
		CASE(list__of_an_etcd_that_fails__says_why),
		CASE(wait__for_what_enough_hosts_run__ends_at_once),
		CASE(wait__that_takes_too_long__shows_who_is_behind),
		CASE(wait__sees_the_change_in_the_watch),
		CASE(wait__whose_etcd_was_replaced__says_so),
		CASE(wait__for_an_etcd_that_does_not_answer__exits_4),
		CASE(watch__shows_each_change),
		CASE(watch__with_json__is_a_line_for_each_change),
		CASE(watch__of_what_nobody_has__says_so),
		CASE(watch__on_a_terminal__clears_it),
		CASE(forget__of_a_silent_host__deletes_its_known_key),
		CASE(forget__of_a_host_that_is_alive_or_unknown__says_so),
		CASE(file__names_the_etcd_and_the_prefix),
		CASE(file__of_several_addresses__asks_the_next),
		CASE(file__without_a_report_or_with_errors__names_the_other_way),
		CASE(options__that_do_not_fit__are_misused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
