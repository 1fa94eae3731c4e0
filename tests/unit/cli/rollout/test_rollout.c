/* `pullet rollout` beside an etcd that is played, on a virtual clock: what it writes and when, what
 * it waits for, and how it ends. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/common/cli.h"
#include "cli/fleet/follow.h"
#include "cli/rollout/drive.h"
#include "cli/rollout/place.h"
#include "tests/unit/fixture/command.h"

#define PREFIX "/pullet/agents/"
#define KEY "/web.rollout"
#define WALL_MS 1700000100000
#define STAMP "2023-11-14T22:15:00Z web: "
#define BY_HAND "percent: 50\n"

/* ---- the world ---- */

/* Their places in the rollout of web: 1.9 %, 35.1 %, 46.9 %; 53.4 %, 75.7 %; the last two are there
 * in one case only. */
enum { C, K, O, B, F, G, S, HOSTS };
static const char *const names[HOSTS] = {"c", "k", "o", "b", "f", "g", "s"};

struct etcd {
	bool for_document;
};

static struct world {
	struct loop *loop;
	struct etcd document, receipts;
	uint64_t now_ms, randoms, slow_ms;
	unsigned waits;
	void (*waited)(unsigned n); /* the n-th time that the command waits, from 1 */

	struct host {
		const char *version, *rejected, *why, *zone;
		enum receipt_state state;
		bool silent, unknown;
	} hosts[HOSTS];

	char text[ROLLOUT_MAX_BYTES]; /* of the document; "" = there is none */
	uint64_t revision;
	uint64_t written_ms[16]; /* when the n-th revision was */
	int fail_reads, fail_writes, fail_receipts, fail_notes;
	unsigned lost_races; /* writes before which another one was */
	struct place_note note;
	unsigned notes;
} world;

static uint64_t virtual_now_ms(void)
{
	return world.now_ms;
}

static int64_t virtual_wall_ms(void)
{
	return WALL_MS;
}

static uint64_t virtual_random(void)
{
	return ++world.randoms;
}

static void wait_until(uint64_t due_ms)
{
	if (due_ms == UINT64_MAX)
		fail_msg("the command waits for ever");
	world.now_ms = due_ms > world.now_ms ? due_ms : world.now_ms;
	if (world.waited)
		world.waited(++world.waits);
}

static struct sys sys;

int etcd_open(const struct etcd_options *o, struct etcd **ret_etcd)
{
	sys = sys_real;
	sys.now_ms = virtual_now_ms;
	sys.wall_ms = virtual_wall_ms;
	sys.random = virtual_random;
	sys.wait_until = wait_until;
	if (!world.loop)
		world.loop = loop_new(&sys);
	assert_non_null(world.loop);
	*ret_etcd = world.document.for_document ? &world.receipts : &world.document;
	(*ret_etcd)->for_document = *ret_etcd == &world.document;
	assert_string_equal(o->url, "http://e");
	return CLI_OK;
}

void etcd_close(struct etcd *e)
{
	if (e == &world.document) {
		world.document.for_document = false;
		loop_free(world.loop);
		world.loop = NULL;
	}
}

int etcd_check_options(const struct etcd_options *o)
{
	(void)o;
	return CLI_OK;
}

const char *etcd_prefix(const struct etcd *e)
{
	assert_ptr_equal(e, &world.receipts);
	return PREFIX;
}

const char *etcd_name(const struct etcd *e)
{
	return e == &world.document ? "http://d" : "http://r";
}

const char *etcd_rollout_key(const struct etcd *e)
{
	(void)e;
	return NULL;
}

struct loop *etcd_loop(struct etcd *e)
{
	(void)e;
	return world.loop;
}

void etcd_set_deadline(struct etcd *e, uint64_t deadline_ms)
{
	(void)e, (void)deadline_ms;
}

static int fail_once(int *error, char why[FILE_WHY])
{
	int r = *error;

	*error = 0;
	if (r)
		snprintf(why, FILE_WHY, "no route to host");
	return r;
}

int place_read(struct etcd *e, const char *key, struct plan *ret, uint64_t *ret_revision,
	char why[FILE_WHY])
{
	int r = fail_once(&world.fail_reads, why);

	assert_ptr_equal(e, &world.document);
	assert_string_equal(key, KEY);
	world.now_ms += world.slow_ms;
	*ret_revision = world.revision;
	return r ? r : plan_read(world.text, strlen(world.text), ret, why);
}

int place_write(struct etcd *e, const char *key, const struct plan *p, uint64_t revision,
	char why[FILE_WHY])
{
	int r = fail_once(&world.fail_writes, why);
	struct buffer out;

	assert_ptr_equal(e, &world.document);
	assert_string_equal(key, KEY);
	if (r)
		return r;
	if (world.lost_races > 0) {
		world.lost_races--;
		return -EEXIST;
	}
	if (revision != world.revision) {
		snprintf(why, FILE_WHY, "somebody else changed the rollout just now");
		return -EEXIST;
	}
	buffer_init(&out, ROLLOUT_MAX_BYTES);
	assert_int_equal(plan_write(p, &out), 0);
	memcpy(world.text, out.data, out.len + 1);
	buffer_fini(&out);
	world.revision++;
	assert_true(world.revision < 16);
	world.written_ms[world.revision] = world.now_ms;
	return 0;
}

int place_write_note(
	struct etcd *e, const char *key, const struct place_note *note, char why[FILE_WHY])
{
	int r = fail_once(&world.fail_notes, why);

	assert_ptr_equal(e, &world.document);
	assert_string_equal(key, KEY);
	world.notes++;
	world.note = r ? world.note : *note;
	return r;
}

int place_read_note(struct etcd *e, const char *key, struct place_note *ret, char why[FILE_WHY])
{
	(void)e, (void)key;
	*ret = world.note;
	return fail_once(&world.fail_notes, why);
}

static void put_pair(struct roster *r, const char *prefix, const char *host, const struct buffer *v,
	size_t lease)
{
	struct roster_value value = {v->data, v->len, lease};
	char key[64];

	snprintf(key, sizeof(key), "%s%s", prefix, host);
	assert_int_equal(roster_put(r, key, strlen(key), &value), 0);
}

static void put_host(struct roster *r, size_t i)
{
	const struct host *h = &world.hosts[i];
	struct settings_label zone = {(char *)"zone", (char *)h->zone};
	struct receipt_config web = {.name = "web",
		.generation = 3,
		.version = h->version,
		.others = "",
		.digest = h->version[1] == '1' ? "1111111111111111" : "2222222222222222",
		.state = h->state,
		.why = h->why ? h->why : "",
		.rejected = h->rejected ? h->rejected : "",
		.rejected_digest = h->rejected ? "2222222222222222" : "",
		.since_ms = 1700000000000,
		.pulled_ms = 1700000000000};
	struct receipt receipt = {.host = names[i],
		.pullet = "0.1.0",
		.since_ms = 1700000000000,
		.page = 1,
		.pages = 1,
		.labels = &zone,
		.label_count = h->zone ? 1 : 0,
		.configs = &web,
		.config_count = 1};
	struct buffer value;

	buffer_init(&value, RECEIPT_MAX);
	assert_int_equal(receipt_write_known(&receipt, &value), 0);
	put_pair(r, PREFIX "known/", names[i], &value, 0);
	buffer_clear(&value);
	receipt_begin(&receipt, &value);
	receipt_add(&web, &value);
	assert_int_equal(receipt_end(&value), 0);
	if (!h->silent)
		put_pair(r, PREFIX, names[i], &value, i + 1);
	buffer_fini(&value);
}

int follow_read(struct etcd *e, const struct follow_calls *calls, struct roster **ret_roster,
	uint64_t *ret_revision, char why[FILE_WHY])
{
	int r = fail_once(&world.fail_receipts, why);

	(void)calls;
	assert_ptr_equal(e, &world.receipts);
	if (r)
		return r;
	*ret_roster = roster_new(PREFIX, ROSTER_MAX_BYTES);
	for (size_t i = 0; i < HOSTS; i++)
		if (!world.hosts[i].unknown)
			put_host(*ret_roster, i);
	*ret_revision = 9;
	return roster_settle(*ret_roster, WALL_MS);
}

/* These hosts, ended by HOSTS, run the version. */
static void run_version(const char *version, const int *hosts)
{
	for (; *hosts < HOSTS; hosts++)
		world.hosts[*hosts] =
			(struct host){.version = version, .zone = world.hosts[*hosts].zone};
}

#define RUNS(version, ...) run_version(version, (const int[]){__VA_ARGS__, HOSTS})

/* A host that runs v1 in this state. */
static void put_state(size_t host, enum receipt_state state, const char *rejected, const char *why)
{
	world.hosts[host] =
		(struct host){.version = "v1", .rejected = rejected, .why = why, .state = state};
}

static int set_up(void **state)
{
	(void)state;
	alarm(20);
	world = (struct world){.now_ms = 1000000};
	RUNS("v1", C, K, O, B, F);
	world.hosts[G].unknown = world.hosts[S].unknown = true;
	return 0;
}

#define ROLLOUT(...)                                                                               \
	RUN(cli_rollout, "pullet rollout", __VA_ARGS__, "web", "--etcd", "http://e", "--path", KEY)
#define START_IT "start", "--version", "v2", "--waves", "50,100"
#define START(...) ROLLOUT(START_IT, __VA_ARGS__)
#define NOT_SEEN                                                                                   \
	"pullet rollout start: no host has seen v2 yet: publish it now; if it is misspelt, "       \
	"`pullet rollout abort web`\n"
#define GOES_ON ": `pullet rollout resume web` goes on"

static void put_text(const char *text)
{
	snprintf(world.text, sizeof(world.text), "%s", text);
}

static struct plan read_back(void)
{
	char why[FILE_WHY];
	struct plan p;

	assert_int_equal(plan_read(world.text, strlen(world.text), &p, why), 0);
	document_free(p.document);
	p.document = NULL;
	return p;
}

static void assert_plan(enum plan_state state, size_t wave)
{
	struct plan p = read_back();

	assert_int_equal(p.state, state);
	assert_int_equal(p.wave, wave);
}

/* As another operator would. */
static void change_document(enum plan_state state, const char *driver, const char *by)
{
	struct plan p = read_back();
	char why[FILE_WHY];

	p.state = state;
	snprintf(p.driver, sizeof(p.driver), "%s", driver);
	snprintf(p.by, sizeof(p.by), "%s", by);
	assert_int_equal(place_write(&world.document, KEY, &p, world.revision, why), 0);
}

/* ---- start, and its waves ---- */

static void publish_wave_by_wave(unsigned n)
{
	if (n == 5)
		RUNS("v2", C, K);
	if (n == 10)
		RUNS("v2", O);
	if (world.revision && strstr(world.text, "\"wave\":2"))
		RUNS("v2", B, F);
}

static void start__goes_wave_by_wave_until_all_hosts_run_it(void **state)
{
	uint64_t begun_ms = world.now_ms;

	(void)state;
	world.waited = publish_wave_by_wave;
	START("--every", "90s");
	assert_ended(CLI_OK,
		STAMP "wave 1 of 2: v2 goes to 50%: 3 hosts\n" STAMP
		      "wave 1 of 2: 3 of 3 hosts run v2; the next wave comes in 90s\n" STAMP
		      "wave 2 of 2: v2 goes to 100%: 5 hosts\n" STAMP
		      "wave 2 of 2: 5 of 5 hosts run v2; the rollout is finished\n",
		NOT_SEEN);
	assert_plan(PLAN_FINISHED, 2);
	assert_string_equal(read_back().digest, "2222222222222222");
	/* begun, its digest, the second wave once the first has run 90 s, the end at once */
	assert_int_equal(world.revision, 4);
	assert_int_equal(world.written_ms[1], begun_ms);
	assert_in_range(world.written_ms[2] - begun_ms, 4000, 5000);
	assert_in_range(world.written_ms[3] - begun_ms, 9000 + 90000, 10000 + 91000);
	assert_in_range(world.written_ms[4] - world.written_ms[3], 0, 1000);
}

static void start__signs_the_document(void **state)
{
	struct plan p;
	char user[160];

	(void)state;
	RUNS("v2", C, K, O, B, F);
	assert_int_equal(
		START("--abort-at", "7.5%", "--every", "0s", "--timeout", "5m", "--salt", "s"),
		CLI_OK);
	p = read_back();
	assert_int_equal(p.since_ms, WALL_MS);
	assert_int_equal(p.abort_at, 7500);
	assert_int_equal(p.every_ms, 0);
	assert_int_equal(p.timeout_ms, 300000);
	assert_string_equal(p.driver, "0000000000000001");
	assert_shows(world.text, "\"salt\":\"s\"");
	snprintf(user, sizeof(user), "(uid %u)", (unsigned)getuid());
	assert_shows(p.by, user);
	assert_shows(p.by, " at ");
}

static void start__without_options__has_the_waves_of_the_page(void **state)
{
	struct plan p;

	(void)state;
	RUNS("v2", C, K, O, B, F);
	world.fail_receipts = -EIO; /* so the first wave is not fitted */
	world.waited = NULL;
	ROLLOUT("start", "--version", "v2", "--every", "0s", "--salt", "web");
	p = read_back();
	assert_int_equal(p.wave_count, 4);
	assert_int_equal(p.waves[0], 1000);
	assert_int_equal(p.waves[1], 10000);
	assert_int_equal(p.waves[2], 50000);
	assert_int_equal(p.waves[3], PLAN_WHOLE);
	assert_int_equal(p.abort_at, 2000);
}

static void first_wave__of_the_default__grows_until_it_reaches_a_host(void **state)
{
	struct plan p;

	(void)state;
	RUNS("v2", C, K, O, B, F);
	ROLLOUT("start", "--version", "v2", "--every", "0s");
	assert_int_equal(command.code, CLI_OK);
	assert_string_equal(command.err, "pullet rollout start: the first wave is 1.934% of the "
					 "hosts: 1% reaches none of them\n");
	p = read_back();
	assert_int_equal(p.wave_count, 4);
	assert_int_equal(p.waves[0], 1934);
	assert_int_equal(p.waves[1], 10000);
	world.text[0] = '\0';
	world.hosts[C].unknown = true; /* the next one is beyond the second wave */
	ROLLOUT("start", "--version", "v2", "--every", "0s");
	p = read_back();
	assert_int_equal(p.wave_count, 3);
	assert_in_range(p.waves[0], 35000, 35200);
	assert_int_equal(p.waves[1], 50000);
}

static void first_wave__that_was_given_and_reaches_no_host__is_refused(void **state)
{
	(void)state;
	ROLLOUT("start", "--version", "v2", "--waves", "1,100");
	assert_ended(CLI_FAILED, "",
		"pullet rollout start: the first wave, 1%, reaches no host: the first one is "
		"reached at 1.934%, so give --waves from there on, or another --salt\n");
	ROLLOUT("start", "--version", "v2", "--label", "zone=eu");
	assert_ended(CLI_FAILED, "",
		"pullet rollout start: no host with a receipt has all of these labels: `pullet "
		"fleet web --json` lists the hosts with theirs\n");
	assert_string_equal(world.text, "");
	world.hosts[F].zone = "eu";
	world.hosts[F].version = "v2";
	ROLLOUT("start", "--version", "v2", "--label", "zone=eu", "--waves", "75,76,100", "--every",
		"0s");
	assert_int_equal(command.code, CLI_FAILED);
	ROLLOUT("start", "--version", "v2", "--label", "zone=eu", "--waves", "76,100", "--every",
		"0s");
	assert_int_equal(command.code, CLI_OK);
	assert_shows(command.out, "wave 2 of 2: 1 of 1 host run v2; the rollout is finished");
	assert_shows(world.text, "\"labels\":{\"zone\":\"eu\"}");
}

static void start__of_a_version_that_is_not_held__names_the_held_one(void **state)
{
	(void)state;
	put_state(C, RECEIPT_HELD, "v3", "rollout: not yet");
	START("--timeout", "1s");
	assert_shows(command.err,
		"no host has seen v2 yet, and v3 is what they hold back: if you mean that one, "
		"`pullet rollout abort web`, and start again\n");
}

static void start__where_one_is_open__changes_nothing(void **state)
{
	char before[ROLLOUT_MAX_BYTES];

	(void)state;
	START("--timeout", "1s"); /* is paused */
	change_document(PLAN_RUNNING, "0000000000000077", "ann");
	snprintf(before, sizeof(before), "%s", world.text);
	ROLLOUT(START_IT);
	assert_ended(CLI_FAILED, "",
		"pullet rollout start: a rollout of v2 is running, at 50%, by ann: `pullet rollout "
		"resume web` goes on with it, `pullet rollout abort web` ends it\n");
	assert_string_equal(world.text, before);
}

static void start__that_comes_second__drives_nothing(void **state)
{
	(void)state;
	world.fail_writes = -EEXIST;
	ROLLOUT(START_IT);
	assert_ended(CLI_FAILED, "",
		NOT_SEEN "pullet rollout start: http://d: no route to host: `pullet rollout status "
			 "web` shows how it is now\n");
	world.fail_writes = -EIO;
	ROLLOUT(START_IT);
	assert_shows(command.err, "no route to host: it may be written, or not: `pullet rollout");
}

/* ---- what a wave waits for ---- */

static void decide_late(unsigned n)
{
	if (n == 3)
		put_state(K, RECEIPT_FAILING, NULL, "the reload failed");
	if (n == 70)
		RUNS("v2", K);
	if (n > 70 && strstr(world.text, "\"wave\":2"))
		RUNS("v2", B);
}

static void wave__waits_for_hosts_that_got_into_trouble_since_and_says_so_each_minute(void **state)
{
	(void)state;
	RUNS("v2", C, O);
	world.hosts[F].silent = true;
	world.waited = decide_late;
	START("--every", "0s");
	assert_ended(CLI_OK,
		STAMP "1 host is silent, failing or without a version: not waited for\n" STAMP
		      "wave 1 of 2: v2 goes to 50%: 3 hosts\n" STAMP
		      "wave 1 of 2 waits for 1 host: k (failing: the reload failed)\n" STAMP
		      "wave 1 of 2: 3 of 3 hosts run v2; the next wave comes in 0ms\n" STAMP
		      "wave 2 of 2: v2 goes to 100%: 5 hosts\n" STAMP
		      "wave 2 of 2: 4 of 5 hosts run v2; the rollout is finished\n",
		"");
}

static void wave__with_hosts_that_never_decide__is_paused_after_the_timeout(void **state)
{
	uint64_t begun_ms = world.now_ms;

	(void)state;
	RUNS("v2", C);
	put_state(K, RECEIPT_HELD, "v2", "rollout: not yet");
	START("--timeout", "30s");
	assert_int_equal(command.code, CLI_TIMED_OUT);
	assert_shows(command.err,
		"pullet rollout start: paused at 50%: 2 hosts have not decided in 30s (resume goes "
		"on without those in trouble): o (ok), k (held: rollout: not yet); `pullet rollout "
		"resume web` waits again, `pullet rollout abort web` ends it\n");
	assert_plan(PLAN_PAUSED, 1);
	assert_in_range(world.now_ms - begun_ms, 30000, 32000);
	RUNS("v2", K, O, B, F);
	assert_int_equal(ROLLOUT("resume"), CLI_OK);
	assert_plan(PLAN_FINISHED, 2);
	assert_string_equal(read_back().why, "");
}

static void have_trouble_twice(unsigned n)
{
	if (n == 3 || n == 100)
		put_state(K, RECEIPT_FAILING, NULL, "the reload failed");
	if (n == 13 || n == 110)
		RUNS("v2", K);
	if (strstr(world.text, "\"wave\":2"))
		RUNS("v2", B, F);
}

static void trouble__that_passes__is_no_part_of_the_next_timeout(void **state)
{
	(void)state;
	RUNS("v2", C, K, O);
	world.waited = have_trouble_twice;
	assert_int_equal(START("--every", "3m", "--timeout", "30s"), CLI_OK);
	assert_plan(PLAN_FINISHED, 2);
}

static void wave__that_no_host_runs__is_no_success(void **state)
{
	uint64_t begun_ms = world.now_ms;

	(void)state;
	put_state(C, RECEIPT_PINNED, NULL, "by root");
	put_state(K, RECEIPT_SUSPENDED, NULL, "by ann");
	world.hosts[O].silent = true;
	START("--timeout", "5m");
	assert_ended(CLI_TIMED_OUT,
		STAMP
		"1 host is silent, failing or without a version: not waited for\n" STAMP
		"wave 1 of 2: v2 goes to 50%: 3 hosts\n" STAMP
		"no host of 3 runs v2: o (silent), c (pinned: by root), k (suspended: by ann); "
		"waiting for one for 5m, then it is paused\n",
		NOT_SEEN
		"pullet rollout start: paused at 50%: no host of 3 runs v2: o (silent), c "
		"(pinned: by root), k (suspended: by ann); `pullet rollout resume web` waits "
		"again, `pullet rollout abort web` ends it\n");
	assert_in_range(world.now_ms - begun_ms, 300000, 302000);
	assert_plan(PLAN_PAUSED, 1);
	assert_string_equal(read_back().driver, "0000000000000001");
}

static void wave__without_a_host_that_has_a_receipt__is_no_success(void **state)
{
	(void)state;
	for (size_t i = 0; i < HOSTS; i++)
		world.hosts[i].unknown = true;
	START("--timeout", "1s");
	assert_int_equal(command.code, CLI_TIMED_OUT);
	assert_shows(command.err,
		"paused at 50%: the waves up to 50% reach no host that has a receipt: start again "
		"with a larger first wave, or give the agents a `report:`;");
}

static void wave__of_many_hosts_that_are_open__names_some(void **state)
{
	(void)state;
	RUNS("v2", C);
	RUNS("v1", G, S);
	ROLLOUT("start", "--version", "v2", "--waves", "100", "--timeout", "1s");
	assert_shows(command.err, "6 hosts have not decided in 1s");
	assert_shows(command.err, ": b (ok), f (ok), g (ok), k (ok), o (ok), 1 more; ");
}

/* ---- aborted by receipts ---- */

static void reject_one_by_one(unsigned n)
{
	if (n == 2)
		put_state(C, RECEIPT_REJECTED, "v0", "schema: of another version");
	if (n == 3)
		put_state(K, RECEIPT_REJECTED, "v2", "probe: \x1b[31mred");
	if (n == 6)
		put_state(O, RECEIPT_REJECTED, "v2", "schema: no");
}

static void hosts_that_reject_it__abort_it_at_the_limit_and_not_before(void **state)
{
	uint64_t begun_ms = world.now_ms;

	(void)state;
	RUNS("v2", B);
	world.waited = reject_one_by_one;
	START("--abort-at", "66.666");
	assert_ended(CLI_FAILED, NULL, NULL);
	assert_shows(command.out,
		STAMP "aborted: 2 of 3 hosts rejected it or rolled it back (66.666%, the limit is "
		      "66.666%): k: probe: ");
	assert_null(strchr(command.out, '\x1b'));
	assert_string_equal(command.err,
		"pullet rollout start: 1 host runs v2: put the version before back on its server, "
		"and it reaches all hosts at once: only v2 is held back now\n"
		"pullet rollout start: aborted\n");
	assert_plan(PLAN_ABORTED, 1);
	assert_in_range(world.now_ms - begun_ms, 5000, 7000);
	assert_shows(world.text, "\"percent\":0,\"version\":[\"v2\",\"2222222222222222\"]");
	assert_shows(ROLLOUT("resume") == CLI_FAILED ? command.err : "",
		"the rollout of v2 is aborted: it cannot be resumed\n");
}

/* ---- a version that is learned ---- */

static void agree_late(unsigned n)
{
	if (n == 2)
		put_state(C, RECEIPT_HELD, "v2", "rollout: not yet");
	if (n == 2)
		put_state(K, RECEIPT_HELD, "v3", "rollout: not yet");
	if (n == 5)
		put_state(K, RECEIPT_HELD, "v2", "rollout: not yet");
	if (strstr(world.text, "\"only\""))
		RUNS("v2", C, K, O, B, F);
}

static void version__is_learned_when_hosts_agree(void **state)
{
	(void)state;
	world.waited = agree_late;
	ROLLOUT("start", "--waves", "100");
	assert_ended(CLI_OK,
		STAMP "new versions are held back by all hosts: publish it now\n" STAMP
		      "wave 1 of 1: v2 goes to 100%: 5 hosts\n" STAMP
		      "wave 1 of 1: 5 of 5 hosts run v2; the rollout is finished\n",
		"");
	assert_in_range(world.written_ms[2] - world.written_ms[1], 4000, 5000);
	world.text[0] = '\0';
	put_state(C, RECEIPT_HELD, "v2", "rollout: not yet");
	put_state(K, RECEIPT_HELD, "v3", "rollout: not yet");
	world.waits = 0;
	ROLLOUT("start", "--waves", "100");
	assert_shows(command.out, "waiting until all hosts hold the same version");
}

/* ---- others ---- */

static void pause_it(unsigned n)
{
	if (n == 2)
		change_document(PLAN_PAUSED, "0000000000000077", "ann");
}

static void abort_it(unsigned n)
{
	if (n == 2)
		change_document(PLAN_ABORTED, "0000000000000077", "ann");
}

static void take_it_over(unsigned n)
{
	if (n == 2)
		change_document(PLAN_RUNNING, "0000000000000077", "ann");
}

static void replace_it(unsigned n)
{
	if (n == 2)
		put_text(BY_HAND);
}

static void damage_it(unsigned n)
{
	if (n == 2)
		put_text("percent: ten\n");
}

static void replace_its_plan(unsigned n)
{
	if (n == 2)
		put_text("{\"percent\":100,\"plan\":{\"v\":2}}");
}

static void interrupt_it(unsigned n)
{
	if (n == 2)
		raise(SIGINT);
}

static void driver__whose_document_another_changes__ends_and_says_who(void **state)
{
	static const struct {
		void (*waited)(unsigned n);
		const char *sentence;
	} rows[] = {
		{pause_it, "paused by ann at 50%" GOES_ON},
		{abort_it, "aborted by ann"},
		{take_it_over, "ann has taken the rollout over"},
		{replace_it, "somebody replaced or deleted the rollout document " KEY
			     ": it is not driven any more"},
		{damage_it, "somebody replaced the rollout document " KEY
			    ": 1:10: percent must be a number from 0 to 100: the hosts hold back "
			    "what is new"},
		{replace_its_plan, "somebody replaced the rollout document " KEY
				   ": its plan is of another version of pullet: it is not driven "
				   "any more"},
		{interrupt_it,
			"interrupted: the rollout stays as it is, at 50% of the hosts, and nobody "
			"drives it" GOES_ON ", `pullet rollout abort web` ends it"},
	};
	char expected[512];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		set_up(state);
		world.waited = rows[i].waited;
		ROLLOUT(START_IT);
		snprintf(expected, sizeof(expected), NOT_SEEN "pullet rollout start: %s\n",
			rows[i].sentence);
		assert_ended(CLI_FAILED, STAMP "wave 1 of 2: v2 goes to 50%: 3 hosts\n", expected);
		assert_in_range(world.now_ms, 1002000, 1003000);
		/* who was interrupted says that it has ended */
		assert_int_equal(world.note.at_ms == 0, rows[i].waited == interrupt_it);
		assert_string_equal(world.note.driver, "0000000000000001");
	}
}

static void lose_the_race(unsigned n)
{
	if (n == 2) {
		RUNS("v2", C, K, O, B, F);
		world.fail_writes = -EEXIST;
	}
}

static void write__that_another_was_before__is_decided_once_more(void **state)
{
	(void)state;
	world.waited = lose_the_race;
	assert_int_equal(START("--every", "0s"), CLI_OK);
	assert_null(strstr(command.out, "cannot write"));
	assert_true(world.written_ms[2] < 1003000);
}

static void have_trouble(unsigned n)
{
	if (n == 2 || n == 3)
		world.fail_reads = -EIO;
	if (n == 4)
		world.fail_receipts = -EIO;
	if (n == 6)
		RUNS("v2", C, K, O, B, F);
	if (n == 6 || n == 7)
		world.fail_writes = -EIO;
}

static void etcd__that_does_not_answer__is_named_once_and_once_when_it_does(void **state)
{
	(void)state;
	world.waited = have_trouble;
	START("--every", "0s");
	assert_ended(CLI_OK,
		STAMP "wave 1 of 2: v2 goes to 50%: 3 hosts\n" STAMP
		      "http://d: no route to host; nothing is decided until it answers\n" STAMP
		      "etcd answers again\n" STAMP
		      "cannot write to http://d: no route to host; trying again\n" STAMP
		      "etcd answers again\n" STAMP
		      "cannot write to http://d: no route to host; trying again\n" STAMP
		      "etcd answers again\n" STAMP
		      "wave 1 of 2: 3 of 3 hosts run v2; the next wave comes in 0ms\n" STAMP
		      "wave 2 of 2: v2 goes to 100%: 5 hosts\n" STAMP
		      "wave 2 of 2: 5 of 5 hosts run v2; the rollout is finished\n",
		NOT_SEEN);
}

static void driver__notes_that_it_lives_every_20_seconds(void **state)
{
	(void)state;
	world.fail_notes = -EIO;
	START("--timeout", "59s");
	assert_int_equal(command.code, CLI_TIMED_OUT);
	assert_int_equal(world.notes, 3); /* at 0, 20 and 40 seconds */
	assert_shows(command.out,
		STAMP "cannot write " KEY "#driver to http://d: no route to host: `pullet rollout "
		      "status` does not know that this command lives\n");
	assert_int_equal(world.note.at_ms, WALL_MS);
}

static unsigned turns_of_a_minute(uint64_t slow_ms)
{
	world.slow_ms = slow_ms;
	world.text[0] = '\0';
	world.notes = world.waits = 0;
	START("--timeout", "60s");
	return world.waits;
}

static void count_only(unsigned n)
{
	(void)n;
}

static void etcd__that_is_slow__is_asked_a_tenth_of_the_time_at_most(void **state)
{
	(void)state;
	world.waited = count_only;
	assert_int_equal(turns_of_a_minute(0), 60);
	assert_int_equal(turns_of_a_minute(500), 12);
}

/* ---- pause, abort ---- */

static void pause__of_a_running_rollout__is_written_and_said_once_more(void **state)
{
	(void)state;
	ROLLOUT("pause");
	assert_ended(CLI_FAILED, "",
		"pullet rollout pause: there is no rollout of web that `pullet rollout start` "
		"began\n");
	world.waited = interrupt_it;
	ROLLOUT(START_IT);
	for (int i = 0; i < 2; i++) {
		ROLLOUT("pause");
		assert_ended(CLI_OK, "web: paused at 50%" GOES_ON "\n", "");
		assert_plan(PLAN_PAUSED, 1);
		assert_int_equal(world.revision, 2);
	}
}

static void pause__that_cannot_be_written__says_so(void **state)
{
	(void)state;
	world.waited = interrupt_it;
	ROLLOUT(START_IT);
	world.fail_writes = -EEXIST;
	assert_int_equal(ROLLOUT("pause"), CLI_OK);
	change_document(PLAN_RUNNING, "0000000000000077", "ann");
	world.fail_writes = -EIO;
	ROLLOUT("pause");
	assert_ended(CLI_FAILED, "",
		"pullet rollout pause: http://d: no route to host: it may be written, or not: "
		"`pullet rollout status web` shows how it is now\n");
}

static void pause__while_others_change_it__is_tried_five_times(void **state)
{
	(void)state;
	world.waited = interrupt_it;
	ROLLOUT(START_IT);
	world.lost_races = 5;
	ROLLOUT("pause");
	assert_ended(CLI_FAILED, "",
		"pullet rollout pause: http://d: somebody else keeps changing the rollout: `pullet "
		"rollout status web` shows how it is now\n");
	world.lost_races = 4;
	assert_int_equal(ROLLOUT("pause"), CLI_OK);
	assert_plan(PLAN_PAUSED, 1);
}

static void abort__says_the_way_back_and_notes_the_bytes(void **state)
{
	(void)state;
	world.waited = interrupt_it;
	ROLLOUT(START_IT);
	RUNS("v2", C, F);
	ROLLOUT("abort");
	assert_ended(CLI_OK, "web: aborted: no other host takes it\n",
		"pullet rollout abort: 2 hosts run v2: put the version before back on its server, "
		"and it reaches all hosts at once: only v2 is held back now\n");
	assert_plan(PLAN_ABORTED, 1);
	assert_string_equal(read_back().digest, "2222222222222222");
	ROLLOUT("pause");
	assert_ended(CLI_FAILED, "",
		"pullet rollout pause: the rollout of v2 is aborted: it cannot be paused\n");
}

static void abort__whose_receipts_cannot_be_read__holds_it_by_its_name(void **state)
{
	(void)state;
	world.waited = interrupt_it;
	ROLLOUT(START_IT);
	world.fail_receipts = -EIO;
	ROLLOUT("abort");
	assert_ended(CLI_OK, "web: aborted: no other host takes it\n",
		"pullet rollout abort: http://r: no route to host: which hosts run it is "
		"unknown\n");
	assert_plan(PLAN_ABORTED, 1);
	assert_shows(world.text, "\"version\":\"v2\"");
}

static void abort__before_a_version_came__holds_all(void **state)
{
	(void)state;
	world.waited = interrupt_it;
	ROLLOUT("start", "--waves", "100");
	assert_shows(command.err, "at 0% of the hosts");
	ROLLOUT("abort");
	assert_ended(CLI_OK, "web: aborted: no other host takes it\n",
		"pullet rollout abort: no version had come: what comes is held back by all hosts "
		"until another rollout is started\n");
}

static int say_way_back_from_7(int argc, char **argv)
{
	const struct plan p = {.state = PLAN_ABORTED, .version = "7"};
	struct tally t = {.outside.stands[TALLY_RUNS] = 1};

	(void)argc;
	drive_say_way_back(argv[0], &p, &t);
	return CLI_OK;
}

static void abort__of_a_version_with_a_short_name__says_the_way_back(void **state)
{
	(void)state;
	RUN(say_way_back_from_7, "pullet rollout abort");
	assert_ended(CLI_OK, "",
		"pullet rollout abort: 1 host runs 7: put the version before back on its server, "
		"and it reaches all hosts at once: only 7 is held back now\n");
}

static void abort__of_a_finished_rollout__holds_it_back_from_new_hosts(void **state)
{
	(void)state;
	RUNS("v2", C, K, O, B, F);
	assert_int_equal(START("--every", "0s"), CLI_OK);
	assert_int_equal(ROLLOUT("pause"), CLI_FAILED);
	assert_int_equal(ROLLOUT("abort"), CLI_OK);
	assert_plan(PLAN_ABORTED, 2);
	/* and the rollout after it does not open the way for it */
	assert_int_equal(
		ROLLOUT("start", "--version", "v3", "--waves", "50,100", "--timeout", "1s"),
		CLI_TIMED_OUT);
	assert_string_equal(read_back().aborted[0], "v2");
}

/* ---- status ---- */

static void status__of_a_paused_rollout__shows_its_waves_and_its_fleet(void **state)
{
	struct plan p;

	(void)state;
	RUNS("v2", C, F);
	put_state(K, RECEIPT_REJECTED, "v2", "schema: no");
	START("--every", "90s", "--abort-at", "40%", "--timeout", "1s");
	p = read_back();
	ROLLOUT("status");
	assert_shows(command.out, "web: the rollout of v2 is paused, wave 1 of 2, since "
				  "2023-11-14T22:15:00Z by ");
	assert_shows(command.out, p.by);
	assert_shows(command.out,
		"\n  1 host has not decided in 1s (resume goes on without those in trouble): o "
		"(ok)\n"
		"  each wave is watched for 90s; aborted at 40% of its hosts\n"
		"  WAVE  PERCENT  HOSTS  RUN IT  REJECTED  HELD  UNDECIDED  TROUBLED  EXCUSED\n"
		"  1 *   50%      3      1       1         0     1          0         0\n"
		"  2     100%     2      1       0         0     1          0         0\n"
		"\n"
		"web: 2 of 5 hosts run v2 (40.0%), 1 rejected what the server has\n");
	assert_int_equal(ROLLOUT("status", "--json"), CLI_OK);
	assert_shows(command.out,
		"{\"config\":\"web\",\"document\":\"" KEY "\",\"revision\":3,\"state\":\"paused\","
		"\"version\":\"v2\",\"percent\":50,\"wave\":1,\"every_ms\":90000,\"abort_at\":40,"
		"\"timeout_ms\":1000,\"by\":");
	assert_shows(command.out, "\"since_ms\":1700000100000,\"why\":\"1 host has not");
	assert_shows(command.out,
		"\"waves\":[{\"percent\":50,\"hosts\":3,\"runs\":1,\"rejected\":1,\"held\":0,"
		"\"undecided\":1,\"troubled\":0,\"excused\":0},{\"percent\":100,\"hosts\":2,");
	assert_shows(command.out, "\"outside\":{\"hosts\":0,\"runs\":0,");
	assert_shows(command.out, "\"fleet\":{");
	assert_null(strstr(command.out, "driven"));
}

/* The document as it is, of now or of some minutes ago. */
static void put_running(uint64_t ago_ms)
{
	struct plan p = read_back();
	char why[FILE_WHY];

	p.state = PLAN_RUNNING;
	p.since_ms = sys_real.wall_ms() - (int64_t)ago_ms;
	assert_int_equal(place_write(&world.document, KEY, &p, world.revision, why), 0);
}

static void status__says_who_drives_it(void **state)
{
	(void)state;
	world.waited = interrupt_it;
	ROLLOUT(START_IT);
	put_running(0);
	ROLLOUT("status");
	assert_shows(command.out, "\n  nobody drives it: the command that did has ended" GOES_ON);
	ROLLOUT("status", "--json");
	assert_shows(command.out, "\"driven\":false,\"driven_ms\":0,");

	world.note.at_ms = 1700000000000;
	ROLLOUT("status");
	assert_shows(command.out, "\n  nobody drives it: the command that did spoke last at "
				  "2023-11-14T22:13:20Z" GOES_ON);

	world.note.at_ms = sys_real.wall_ms() - 110500;
	ROLLOUT("status");
	assert_shows(command.out, "\n  the command that drives it spoke 11");
	assert_shows(command.out, "s ago\n");
	ROLLOUT("status", "--json");
	assert_shows(command.out, "\"driven\":true,\"driven_ms\":");

	/* a note of another one: who has just begun has not written his */
	snprintf(world.note.driver, sizeof(world.note.driver), "0000000000000055");
	ROLLOUT("status");
	assert_shows(command.out, "\n  the command that drives it spoke 0s ago\n");
	put_running(3600000);
	ROLLOUT("status");
	assert_shows(command.out, "\n  whether a command drives it is unknown: there is no note of "
				  "it in " KEY "#driver that can be read\n");
	ROLLOUT("status", "--json");
	assert_null(strstr(command.out, "driven"));
}

static void status__without_a_document_or_with_one_by_hand__counts_who_takes_it_now(void **state)
{
	(void)state;
	ROLLOUT("status");
	assert_int_equal(command.code, CLI_OK);
	assert_shows(command.out,
		"web: no rollout document at " KEY ": all hosts take each version\n"
		"  WAVE  PERCENT  HOSTS  RUN IT  REJECTED  HELD  UNDECIDED  TROUBLED  EXCUSED\n"
		"  now   -        5      0 ");
	assert_null(strstr(command.out, "none"));
	put_text(BY_HAND);
	world.revision = 4;
	ROLLOUT("status");
	assert_shows(command.out,
		"web: a rollout document that was written by hand: " KEY "\n"
		"  WAVE  PERCENT  HOSTS  RUN IT  REJECTED  HELD  UNDECIDED  TROUBLED  EXCUSED\n"
		"  now   -        3      0 ");
	assert_shows(command.out, "\n  none  -        2      0 ");
	ROLLOUT("status", "--json");
	assert_shows(command.out, "\"revision\":4,\"state\":\"none\",\"waves\":[{\"hosts\":3,");
	assert_shows(command.out, "}],\"outside\":{\"hosts\":2,");
}

static void status__of_a_config_that_no_host_has__exits_2(void **state)
{
	(void)state;
	for (size_t i = 0; i < HOSTS; i++)
		world.hosts[i].unknown = true;
	ROLLOUT("status");
	assert_ended(CLI_NOT_FOUND, NULL,
		"pullet rollout status: no host that has web has a receipt below " PREFIX
		" at http://r\n");
	ROLLOUT("status", "--json");
	assert_ended(CLI_NOT_FOUND, NULL, "");
	assert_null(strstr(command.out, "fleet"));
	world.fail_receipts = -EIO;
	ROLLOUT("status");
	assert_ended(CLI_FAILED, "", "pullet rollout status: http://r: no route to host\n");
}

static void document__that_is_damaged_or_cannot_be_read__is_named_by_each_verb(void **state)
{
	static const char *const verbs[] = {"start", "pause", "resume", "abort", "status"};
	char expected[512];

	(void)state;
	for (size_t i = 0; i < 5; i++) {
		world.fail_reads = -EIO;
		snprintf(expected, sizeof(expected),
			"pullet rollout %s: http://d: no route to host\n", verbs[i]);
		ROLLOUT(verbs[i]);
		assert_ended(CLI_FAILED, "", expected);
		put_text("percent: ten\n");
		snprintf(expected, sizeof(expected),
			"pullet rollout %s: " KEY
			" is no rollout document: 1:10: percent must be a number from 0 to 100: "
			"hosts hold back every new version until it is mended or deleted\n",
			verbs[i]);
		ROLLOUT(verbs[i]);
		assert_ended(CLI_FAILED, "", expected);
		put_text("{\"percent\":100,\"plan\":{\"v\":2}}");
		snprintf(expected, sizeof(expected),
			"pullet rollout %s: " KEY
			": its plan is of another version of pullet: hosts go by the document, "
			"which this command cannot: mend or delete it\n",
			verbs[i]);
		ROLLOUT(verbs[i]);
		assert_ended(CLI_FAILED, "", expected);
	}
}

/* ---- options ---- */

static void option__that_is_wrong__is_misused(void **state)
{
	static const struct {
		const char *arguments[8], *sentence;
	} rows[] = {
		{{"start", "web", "--waves", "10%,10%"}, "--waves takes rising percentages"},
		{{"start", "web", "--waves", "20,10"}, "--waves takes rising percentages"},
		{{"start", "web", "--waves", "0"}, "--waves takes rising percentages above 0"},
		{{"start", "web", "--waves", "10%,"}, "--waves takes"},
		{{"start", "web", "--waves", ""}, "--waves takes"},
		{{"start", "web", "--waves", "1;2"}, "--waves takes"},
		{{"start", "web", "--waves",
			 "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,"
			 "28,29,30,31,32,33,34,35,36,37,38,39,40,41,42,43,44,45,46,47,48,49,50,51,"
			 "52,53,54,55,56,57,58,59,60,61,62,63,64,65"},
			"at most 64"},
		{{"start", "web", "--abort-at", "0"}, "--abort-at takes a percentage above 0"},
		{{"start", "web", "--abort-at", "2%%"}, "--abort-at takes"},
		{{"start", "web", "--abort-at", "101"}, "--abort-at takes"},
		{{"start", "web", "--version", ""}, "--version takes a version, not nothing"},
		{{"start", "web", "--label", "a"}, "--label takes NAME=VALUE, not 'a'"},
		{{"start", "web", "--label", "=a"}, "--label takes NAME=VALUE, not '=a'"},
		{{"start", "web", "--label", "a=b", "--label", "a=c"},
			"the label a is given twice"},
		{{"pause", "web", "--waves", "1"}, "unrecognized"},
		{{"status", "web", "--path", "/x"}, "--path belongs to --etcd"},
		{{"status", "web", "--etcd", "http://e"}, "--etcd needs --path"},
		{{"start", "web", "--etcd", "http://e", "--path", "app/web.rollout"},
			"--path is a key as the agents' rollout has it, with a slash in front"},
		{{"status", "a b"}, "the config's name "},
		{{"start"}, "name one config"},
		{{"stop", "web"}, "say start, pause, resume, abort or status"},
		{{NULL}, "say start, pause, resume, abort or status"},
	};
	char salt[300];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *arguments[10] = {"pullet rollout"};

		memcpy(arguments + 1, rows[i].arguments, sizeof(rows[i].arguments));
		command_run(cli_rollout, arguments);
		assert_ended(CLI_USAGE, "", NULL);
		assert_shows(command.err, rows[i].sentence);
	}
	memset(salt, 's', 256);
	salt[256] = '\0';
	START("--salt", salt);
	assert_ended(CLI_USAGE, "", "pullet rollout start: --salt takes at most 255 bytes\n");
	salt[255] = '\0';
	assert_int_not_equal(START("--salt", salt, "--timeout", "1s"), CLI_USAGE);
}

static void option__at_its_bound__is_taken(void **state)
{
	(void)state;
	RUNS("v2", C, K, O, B, F);
	ROLLOUT("start", "--version", "v2", "--every", "0s", "--abort-at", "100", "--waves",
		"2,100%");
	assert_int_equal(command.code, CLI_OK);
	assert_int_equal(read_back().abort_at, PLAN_WHOLE);
	assert_int_equal(read_back().waves[1], PLAN_WHOLE);
	world.text[0] = '\0';
	assert_int_equal(START("--every", "0s", "--abort-at", "0.001%"), CLI_OK);
	assert_int_equal(read_back().abort_at, 1);
	RUN(cli_rollout, "pullet rollout", "--help");
	assert_ended(CLI_OK, NULL, "");
	assert_shows(command.out, "Usage: pullet rollout start CONFIG");
}

#define CASE(name) cmocka_unit_test_setup(name, set_up)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(start__goes_wave_by_wave_until_all_hosts_run_it),
		CASE(start__signs_the_document),
		CASE(start__without_options__has_the_waves_of_the_page),
		CASE(first_wave__of_the_default__grows_until_it_reaches_a_host),
		CASE(first_wave__that_was_given_and_reaches_no_host__is_refused),
		CASE(start__of_a_version_that_is_not_held__names_the_held_one),
		CASE(start__where_one_is_open__changes_nothing),
		CASE(start__that_comes_second__drives_nothing),
		CASE(wave__waits_for_hosts_that_got_into_trouble_since_and_says_so_each_minute),
		CASE(wave__with_hosts_that_never_decide__is_paused_after_the_timeout),
		CASE(trouble__that_passes__is_no_part_of_the_next_timeout),
		CASE(wave__that_no_host_runs__is_no_success),
		CASE(wave__without_a_host_that_has_a_receipt__is_no_success),
		CASE(wave__of_many_hosts_that_are_open__names_some),
		CASE(hosts_that_reject_it__abort_it_at_the_limit_and_not_before),
		CASE(version__is_learned_when_hosts_agree),
		CASE(driver__whose_document_another_changes__ends_and_says_who),
		CASE(write__that_another_was_before__is_decided_once_more),
		CASE(etcd__that_does_not_answer__is_named_once_and_once_when_it_does),
		CASE(driver__notes_that_it_lives_every_20_seconds),
		CASE(etcd__that_is_slow__is_asked_a_tenth_of_the_time_at_most),
		CASE(pause__of_a_running_rollout__is_written_and_said_once_more),
		CASE(pause__that_cannot_be_written__says_so),
		CASE(pause__while_others_change_it__is_tried_five_times),
		CASE(abort__says_the_way_back_and_notes_the_bytes),
		CASE(abort__whose_receipts_cannot_be_read__holds_it_by_its_name),
		CASE(abort__before_a_version_came__holds_all),
		CASE(abort__of_a_version_with_a_short_name__says_the_way_back),
		CASE(abort__of_a_finished_rollout__holds_it_back_from_new_hosts),
		CASE(status__of_a_paused_rollout__shows_its_waves_and_its_fleet),
		CASE(status__says_who_drives_it),
		CASE(status__without_a_document_or_with_one_by_hand__counts_who_takes_it_now),
		CASE(status__of_a_config_that_no_host_has__exits_2),
		CASE(document__that_is_damaged_or_cannot_be_read__is_named_by_each_verb),
		CASE(option__that_is_wrong__is_misused),
		CASE(option__at_its_bound__is_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
