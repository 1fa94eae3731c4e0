/*
 * Memory that runs out at each allocation of the core, once or from then on: nothing crashes, and
 * with memory again the next pulls publish what the server has, and a restart shows it.
 */
#include "tests/unit/fixture/fault_memory.h"
#include "tests/unit/fixture/core.h"
#include "tests/unit/fixture/minisign_signer.h"

#include "config/inspect.h"

#define MOST 5000
#define NEWEST "n: 9\nm: 9\n"

struct scenario {
	const char *extra, *from;
	bool set; /* of files */
	void (*before)(void);
	void (*does)(void); /* without memory */
	void (*after)(void);
	const char *shows; /* at the end; NULL: NEWEST */
	const char *logs;  /* of at least one of the allocations; or NULL */
};

static struct signer signer;
static char verify[128]; /* "" = nobody signs */

static void server_offers(const char *text, const char *rev)
{
	const struct signer_job job = {
		.document = text, .len = strlen(text), .comment = rev, .comment_len = strlen(rev)};
	char file[SIGNER_FILE];

	server_has(text);
	if (verify[0])
		world_put_bytes("/web.yaml.minisig", file, signer_file(&signer, &job, file));
}

static void begin(const struct scenario *s)
{
	static char place[SCRATCH_PATH + 32];

	snprintf(place, sizeof(place), "dir: %s/out/set", core.dir);
	core.place = s->set ? place : NULL;
	core.from = s->from;
	scratch_write(core.dir, "schema.json", "{\"type\": \"object\"}", 18);
	world_put("/base.yaml", "b: 1\n");
	server_offers("n: 1\nm: 1\n", "rev=1");
	agent_starts(s->extra);
	if (s->before)
		s->before();
}

static void finish(const struct scenario *s)
{
	if (s->after)
		s->after();
	server_offers(NEWEST, "rev=9");
	for (int i = 0; i < 3; i++) {
		world_advance(2 * SECOND);
		pull();
	}
	if (!s->set)
		assert_shows(s->shows ? s->shows : NEWEST);
	agent_restarts();
	if (!s->set)
		assert_shows(s->shows ? s->shows : NEWEST);
	agent_crashes();
	core_close();
	core_open(scratch_memory());
}

static void fail_each(const struct scenario *s)
{
	bool logged = !s->logs;

	for (int round = 0; round < 2; round++) {
		for (unsigned n = 1;; n++) {
			bool hit;

			begin(s);
			fault_memory.seen = 0;
			fault_memory.for_ever = round;
			fault_memory.nth = n;
			s->does();
			fault_memory.nth = 0;
			hit = fault_memory.seen >= n;
			logged = logged || core_count_log(s->logs) > 0;
			finish(s);
			if (!hit)
				break;
			assert_in_range(n, 1, MOST);
		}
	}
	if (!logged)
		fail_msg("no line has \"%s\"", s->logs);
}

/* ---- what is done without memory ---- */

static void rename_bytes(void)
{
	world_find_page("/web.yaml")->etag[1] = 'x';
	pull();
}

static void put_new(void)
{
	server_has("n: 2\nm: 1\n");
}

static void put_newest(void)
{
	server_offers(NEWEST, "rev=9");
}

static void be_published(void)
{
	pull_of("n: 2\nm: 1\n");
}

static void roll_back(void)
{
	operator_rolls_back(1);
}

/* Once the operator was told that it is done, what the server has is not shown again. */
static void find_refusal(void)
{
	if (operator.result || !operator.answers || operator.answer[0])
		return;
	world_advance(2 * SECOND);
	pull();
	assert_shows("n: 1\nm: 1\n");
}

static void override(void)
{
	operator_overrides("n", "7", HOUR);
	operator_drops("n");
}

static void forget_overrides(void)
{
	operator_drops("n");
}

/* What was said to be done is. */
static void assert_decided(bool pinned, bool suspended)
{
	const struct ledger *l = core.config->decisions.ledger;

	assert_true(operator.result ||(
		pinned == (l->pin.by != NULL) && suspended == (l->suspension != NULL)));
}

static void pin_and_suspend(void)
{
	operator_pins(HOUR);
	assert_decided(true, false);
	operator_suspends(HOUR);
	assert_decided(core.config->decisions.ledger->pin.by, true);
	operator_resumes();
	operator_unpins();
}

static void forget_decisions(void)
{
	operator_resumes();
	operator_unpins();
}

static void be_touched(void)
{
	somebody_writes("harm");
}

static void restart(void)
{
	char extra[sizeof(core.extra)];

	snprintf(extra, sizeof(extra), "%s", core.extra);
	fault_memory.paused++;
	agent_crashes();
	core_make(extra);
	fault_memory.paused--;
	core.env.starting = true;
	config_start(core.config, true);
	core.env.starting = false;
	world_turn();
}

static void lose_the_server(void)
{
	be_published();
	server_is_down();
}

/* As far as the state directory goes, the server is not needed. */
static void come_back_without_it(void)
{
	for (int i = 0; i < 3; i++) {
		world_advance(2 * SECOND);
		pull();
	}
	assert_generation(2);
	server_recovers();
}

/* The agent died between the commit and its ledger: a pin moves with an operator's version. */
static void roll_back_and_die(void)
{
	be_published();
	operator_pins(0);
	world.dies_at = 2;
	roll_back();
}

/* What the operator decided is lost by no start. */
static void restart_and_unpin(void)
{
	agent_restarts();
	assert_shows("n: 1\nm: 1\n");
	assert_non_null(core_status().pin);
	operator_unpins();
}

static void fail_probe(void)
{
	if (world.probe.running)
		world_end_probe("it answers 500");
	world_turn();
}

static void prove_and_override(void)
{
	world_end_probe(NULL);
	operator_overrides("n", "7", HOUR);
}

static void expire(void)
{
	world_advance(11 * SECOND);
}

static void override_for_a_moment(void)
{
	operator_overrides("n", "7", 10 * SECOND);
}

static void explain(void)
{
	struct buffer out;

	buffer_init(&out, 16384);
	explain_config(core.config, AUDIENCE_OPERATOR, &out);
	explain_news(core.config, AUDIENCE_OPERATOR, &out);
	scrub_output(core.config, &out, "n: 1", 4);
	buffer_fini(&out);
}

static void hold_a_version(void)
{
	world_put("/rollout.yaml", "percent: 0\n");
	put_new();
}

static uint64_t count_rejections(void)
{
	struct config_status s;
	uint64_t sum = 0;

	fault_memory.paused++;
	s = core_status();
	fault_memory.paused--;
	for (size_t i = 0; i < CHECK_COUNT; i++)
		sum += s.rejections_by[i];
	return sum;
}

/* Once a run, also if the verdict is forgotten at once. */
static void reject(void)
{
	static const char *const bad[] = {"n: [\n", "{}\n"};

	for (size_t i = 0; i < 2; i++) {
		uint64_t before = count_rejections();

		pull_of(bad[i]);
		assert_in_range(count_rejections() - before, 0, 1);
	}
}

static void override_and_put_new(void)
{
	operator_overrides("n", "7", HOUR);
	server_has("n: 2\nm: 2\n");
}

/* Readers never see a version without it. */
static void find_override(void)
{
	char text[64];

	assert_true(scratch_read(core.dir, "out/web.yaml", text, sizeof(text), NULL));
	assert_non_null(strstr(text, "n: 7\n"));
}

/* What the program made is in the state file of what is published. */
static void find_product(void)
{
	assert_true(core.config->current.version.product_len > 0);
}

/* ---- each of them ---- */

#define SCENARIO(name, ...)                                                                        \
	static void name(void **state)                                                             \
	{                                                                                          \
		static const struct scenario s = {__VA_ARGS__};                                    \
                                                                                                   \
		(void)state;                                                                       \
		fail_each(&s);                                                                     \
	}

#define TWO "[{server: main, path: /base.yaml}, {server: main, path: /web.yaml}]"

SCENARIO(pull__without_memory__is_finished_by_the_next, .extra = "reload: {run: [/bin/true]}",
	.before = put_new, .does = pull)
SCENARIO(pull__of_two_layers_without_memory__is_finished_by_the_next, .extra = "", .from = TWO,
	.before = put_new, .does = pull, .shows = "b: 1\nn: 9\nm: 9\n")
SCENARIO(same_bytes__without_memory__change_nothing, .extra = "", .does = rename_bytes)
SCENARIO(rejection__without_memory__is_found_again, .extra = "check: [/bin/true, '{path}']",
	.does = reject, .logs = "out of memory: a verdict is forgotten config=web check=")
SCENARIO(format_program__without_memory__runs_again, .extra = "format: {run: [/bin/cat]}",
	.before = put_new, .does = pull, .after = find_product, .shows = "made: " NEWEST)
SCENARIO(set_of_files__without_memory__is_finished_by_the_next, .extra = "", .set = true,
	.from = "[{server: main, path: /web.yaml, as: a.yaml}, {server: main, path: /base.yaml, "
		"as: b.yaml}]",
	.before = put_new, .does = pull)
SCENARIO(rollback__without_memory__is_answered, .extra = "guard: {max_changes: 9}",
	.before = be_published, .does = roll_back, .after = find_refusal)
SCENARIO(override__without_memory__is_answered, .extra = "", .does = override,
	.after = forget_overrides)
SCENARIO(override__that_ends_without_memory__ends_later, .extra = "",
	.before = override_for_a_moment, .does = expire)
SCENARIO(new_version__without_memory__has_the_override, .extra = "", .before = override_and_put_new,
	.does = pull, .after = find_override, .shows = "n: 7\nm: 9\n")
SCENARIO(pin_and_suspension__without_memory__are_refused, .extra = "", .does = pin_and_suspend,
	.after = forget_decisions)
SCENARIO(heal__without_memory__is_done_later, .extra = "", .does = be_touched)
SCENARIO(start__without_memory__is_done_by_a_run, .extra = "", .before = lose_the_server,
	.does = restart, .after = come_back_without_it)
SCENARIO(start__without_memory__after_an_operators_commit__is_done_by_a_run, .extra = "",
	.before = roll_back_and_die, .does = restart, .after = restart_and_unpin)
SCENARIO(probe__that_fails_without_memory__harms_nothing,
	.extra = "probe: {run: [/bin/true], for: 10s}", .before = be_published, .does = fail_probe)
SCENARIO(overrides__that_fail_their_probe_without_memory__harm_nothing,
	.extra = "probe: {run: [/bin/true], for: 10s}", .before = prove_and_override,
	.does = fail_probe, .after = forget_overrides)
SCENARIO(explanation__without_memory__is_cut, .extra = "mask: [n]", .before = be_published,
	.does = explain)
SCENARIO(rollout__without_memory__holds_nothing_for_ever,
	.extra = "rollout: {server: main, path: /rollout.yaml}", .before = hold_a_version,
	.does = pull, .shows = "n: 1\nm: 1\n")

/* What was published stays the highest rev. */
static void offer_an_older_one(void)
{
	bool published = core.config->current.version.generation > 1;

	server_offers("n: 5\nm: 5\n", "rev=5");
	world_advance(2 * SECOND);
	pull();
	if (published)
		assert_shows(NEWEST);
}

static void signed_version__without_memory__is_not_rejected_for_ever(void **state)
{
	const struct scenario s = {
		.extra = verify, .before = put_newest, .does = pull, .after = offer_an_older_one};

	(void)state;
	signer_init(&signer, 1);
	snprintf(verify, sizeof(verify), "verify: {public_key: \"%s\"}", signer.text);
	fail_each(&s);
	signer_fini(&signer);
	verify[0] = '\0';
}

static void config__without_memory__is_none(void **state)
{
	(void)state;
	for (unsigned n = 1; n < MOST; n++) {
		struct config *c;

		core_make("rollout: {server: main, path: /r}, bootstrap: {server: main, path: /b}");
		config_free(core.config);
		fault_memory.seen = 0;
		fault_memory.nth = n;
		c = config_new(&core.env, core.settings->configs[0]);
		fault_memory.nth = 0;
		assert_true(!c || (c->run.rollout && c->run.bootstrap));
		config_free(c);
		settings_free(core.settings);
		core.config = NULL;
		if (c)
			return;
	}
	fail();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CORE_TEST(pull__without_memory__is_finished_by_the_next),
		CORE_TEST(pull__of_two_layers_without_memory__is_finished_by_the_next),
		CORE_TEST(same_bytes__without_memory__change_nothing),
		CORE_TEST(rejection__without_memory__is_found_again),
		CORE_TEST(format_program__without_memory__runs_again),
		CORE_TEST(set_of_files__without_memory__is_finished_by_the_next),
		CORE_TEST(rollback__without_memory__is_answered),
		CORE_TEST(override__without_memory__is_answered),
		CORE_TEST(override__that_ends_without_memory__ends_later),
		CORE_TEST(new_version__without_memory__has_the_override),
		CORE_TEST(pin_and_suspension__without_memory__are_refused),
		CORE_TEST(heal__without_memory__is_done_later),
		CORE_TEST(start__without_memory__is_done_by_a_run),
		CORE_TEST(start__without_memory__after_an_operators_commit__is_done_by_a_run),
		CORE_TEST(probe__that_fails_without_memory__harms_nothing),
		CORE_TEST(overrides__that_fail_their_probe_without_memory__harm_nothing),
		CORE_TEST(explanation__without_memory__is_cut),
		CORE_TEST(rollout__without_memory__holds_nothing_for_ever),
		CORE_TEST(signed_version__without_memory__is_not_rejected_for_ever),
		CORE_TEST(config__without_memory__is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
