/* An operator's questions about a config's versions: history, differences, where a value comes
 * from, and whether a change is possible. */
#include "tests/unit/fixture/fault_memory.h"
#include "tests/unit/fixture/core.h"
#include "tests/unit/fixture/minisign_signer.h"

#include "config/inspect.h"

#define MOST 5000

static char answer[65536], why[FILE_WHY];
static struct inspection seen;

enum question { HISTORY, DIFF, EXPLAIN, ROLLBACK, OVERRIDE };

static struct {
	uint64_t from, to;
	const char *key;
	bool no_values;
	bool held;   /* what is held back */
	size_t room; /* 0: enough */
	enum audience audience;
} asks;
static struct inspect_effect effect; /* of the override that was asked about */

static int ask_inspection(enum question what, struct buffer *out)
{
	uint64_t generation = asks.to;
	int r = 0;

	switch (what) {
	case HISTORY:
		return inspect_history(&seen, asks.audience, out, why);
	case DIFF:
		return inspect_diff(&seen, asks.from, asks.to, !asks.no_values, out, why);
	case EXPLAIN:
		return inspect_explain(&seen, asks.key, !asks.no_values, out, why);
	case ROLLBACK:
		r = inspect_rollback(&seen, &generation, why);
		buffer_printf(out, "%llu", (unsigned long long)generation);
		return r;
	case OVERRIDE:
		return inspect_override(&seen, asks.key, &effect, why);
	}
	return r;
}

/* The answer is in `answer`, a sentence in `why`. */
static int ask(enum question what)
{
	struct buffer out;
	int r = inspect_begin(core.config, &seen, why);

	if (r == 0 && asks.held) {
		r = inspect_hold(&seen, why);
		if (r)
			inspect_end(&seen);
	}
	if (r)
		return r;
	buffer_init(&out, asks.room ? asks.room : sizeof(answer) - 1);
	r = ask_inspection(what, &out);
	snprintf(answer, sizeof(answer), "%s", out.data ? out.data : "");
	buffer_fini(&out);
	inspect_end(&seen);
	return r;
}

static bool has(const char *words)
{
	if (!strstr(answer, words))
		print_error("%s\n", answer);
	return strstr(answer, words);
}

static int diff(uint64_t from, uint64_t to)
{
	asks.from = from;
	asks.to = to;
	return ask(DIFF);
}

static int explain(const char *key)
{
	asks.key = key;
	return ask(EXPLAIN);
}

static int may_roll_back(uint64_t generation)
{
	asks.to = generation;
	return ask(ROLLBACK);
}

static int may_override(const char *key)
{
	asks.key = key;
	return ask(OVERRIDE);
}

static int set_up(void **state)
{
	int r = core_set_up(state);

	memset(&asks, 0, sizeof(asks));
	asks.audience = AUDIENCE_OPERATOR;
	fault_memory.nth = 0;
	return r;
}

static void begin_with_two(const char *extra)
{
	server_has("n: 1\ndb: {host: a}\n");
	agent_starts(extra);
	pull_of("n: 2\ndb: {host: b}\nl: [1, {x: .inf}]\n");
}

/* ---- history ---- */

static void history__lists_what_is_kept_and_marks_the_current_one(void **state)
{
	(void)state;
	begin_with_two("");
	operator_rolls_back(1);
	assert_int_equal(ask(HISTORY), 0);
	assert_true(has("\"generation\":3"));
	assert_true(has("\"origin\":\"rollback to generation 1 by ann: pages are slow\""));
	assert_true(has("\"published\":true"));
	assert_true(has("\"urls\":[\"http://server/web.yaml\"]"));
	assert_true(has("\"rejected\":{\"by\":\"operator\",\"why\":\"rolled back by ann"));
	asks.audience = AUDIENCE_PUBLIC;
	assert_int_equal(ask(HISTORY), 0);
	assert_null(strstr(answer, "rolled back by ann"));
}

static void history__of_a_damaged_version__has_its_error(void **state)
{
	char path[SCRATCH_PATH + 64];

	(void)state;
	begin_with_two("");
	core_path(path, "state/web");
	scratch_write(path, "00000000000000000001", "harm", 4);
	assert_int_equal(ask(HISTORY), 0);
	assert_true(has("\"error\":\"generation 1 cannot be read"));
}

static void history__before_anything_is_published__is_empty(void **state)
{
	(void)state;
	core_make("");
	assert_int_equal(ask(HISTORY), 0);
	assert_true(has("\"versions\":[]"));
}

static void history__beyond_the_room__is_an_error(void **state)
{
	(void)state;
	begin_with_two("");
	asks.room = 100;
	assert_int_equal(ask(HISTORY), -EMSGSIZE);
	assert_string_equal(why, "the answer is too long");
}

static void history__of_a_version_without_an_etag__has_none(void **state)
{
	(void)state;
	core.from =
		"[{server: main, path: /a.yaml}, {server: main, path: /b.yaml, optional: true}]";
	world_put("/a.yaml", "n: 1\n")->etag[0] = '\0';
	agent_starts("");
	assert_int_equal(ask(HISTORY), 0);
	assert_true(has("\"version\":null"));
	assert_true(has("\"urls\":[\"http://server/a.yaml\"]"));
}

/* ---- differences ---- */

static void diff__of_two_versions__is_by_key(void **state)
{
	(void)state;
	begin_with_two("");
	assert_int_equal(diff(0, 0), 0);
	assert_true(has("\"equal\":false"));
	assert_true(has(
		"{\"change\":\"changed\",\"path\":\"db.host\",\"before\":\"a\",\"after\":\"b\"}"));
	assert_int_equal(diff(2, 1), 0);
	assert_true(has("\"before\":\"b\",\"after\":\"a\""));
	assert_int_equal(diff(2, 2), 0);
	assert_true(has("\"equal\":true"));
	asks.no_values = true;
	assert_int_equal(diff(1, 2), 0);
	assert_true(has("\"before\":\"***\""));
}

static void diff__of_what_is_not_there__says_which(void **state)
{
	(void)state;
	agent_starts("");
	assert_int_equal(diff(0, 0), -ENODATA);
	pull_of("n: 1\n");
	assert_int_equal(diff(0, 0), -ENOENT);
	assert_non_null(strstr(why, "generation 1 is the oldest in the state directory"));
	assert_int_equal(diff(1, 99), -ENOENT);
	assert_non_null(strstr(why, "there is no generation 99"));
	assert_int_equal(diff(99, 1), -ENOENT);
}

static void diff__of_bytes__says_only_that_they_differ(void **state)
{
	(void)state;
	begin_with_two("type: bytes");
	assert_int_equal(diff(0, 0), 0);
	assert_true(has("\"changes\":null"));
}

static void diff__beyond_the_room__is_an_error(void **state)
{
	(void)state;
	begin_with_two("");
	asks.room = 500;
	assert_int_equal(diff(0, 0), -EMSGSIZE);
}

/* ---- differences with overrides ---- */

static void diff__says_what_readers_saw_and_what_an_override_hides(void **state)
{
	(void)state;
	begin_with_two("");
	operator_overrides("n", "7", HOUR);
	assert_int_equal(diff(0, 0), 0);
	assert_true(has("\"equal\":true"));
	assert_true(
		has("\"changes\":[{\"change\":\"changed\",\"path\":\"n\",\"before\":2,"
		    "\"after\":7,\"overridden_after\":\"n\",\"server_after\":2}],\"hidden\":[]"));
	assert_true(has("\"overrides\":[{\"key\":\"n\",\"by\":\"ann\",\"reason\":\"a try\","));
	pull_of("n: 3\ndb: {host: c}\n");
	assert_int_equal(diff(3, 4), 0);
	assert_null(strstr(answer, "\"before\":7"));
	assert_true(has("\"hidden\":[{\"change\":\"changed\",\"path\":\"n\",\"before\":2,"
			"\"after\":3,\"override\":\"n\"}]"));
	operator_drops("n");
	assert_int_equal(diff(4, 5), 0);
	assert_true(has("\"changes\":[{\"change\":\"changed\",\"path\":\"n\",\"before\":7,"
			"\"after\":3,\"overridden_before\":\"n\",\"server_before\":3}]"));
	assert_null(strstr(answer, "\"hidden\""));
	asks.no_values = true;
	assert_int_equal(diff(4, 5), 0);
	assert_true(has("\"server_before\":\"***\""));
	assert_null(strstr(answer, "\"before\":7"));
}

static void diff__below_an_overridden_mapping__is_told_apart(void **state)
{
	(void)state;
	begin_with_two("mask: [db.host]");
	operator_overrides("db", "{host: mine, port: 1}", HOUR);
	pull_of("n: 2\ndb: {host: c, port: 2, user: u}\nnn: 1\n");
	assert_int_equal(diff(3, 4), 0);
	assert_true(has("{\"change\":\"added\",\"path\":\"db.user\",\"after\":\"u\","
			"\"overridden_before\":\"db\",\"overridden_after\":\"db\",\"server_after\":"
			"\"u\"}"));
	assert_true(has("{\"change\":\"added\",\"path\":\"nn\",\"after\":1}"));
	assert_true(
		has("\"hidden\":[{\"change\":\"changed\",\"path\":\"db.host\",\"before\":"
		    "\"***\",\"after\":\"***\",\"masked\":true,\"override\":\"db\"},{\"change\":"
		    "\"added\",\"path\":\"db.port\",\"after\":2,\"override\":\"db\"}]"));
}

/* ---- what is held back ---- */

static int diff_of_held(void)
{
	asks.held = true;
	return diff(0, 0);
}

static void held__by_each_decision__is_compared_with_the_current_version(void **state)
{
	(void)state;
	begin_with_two("guard: {require: [db]}");
	operator_overrides("n", "7", HOUR);
	pull_of("m: 1\n");
	assert_int_equal(diff_of_held(), 0);
	assert_true(has("\"to\":{\"generation\":null,"));
	assert_true(
		has("\"held\":{\"by\":\"guard\",\"why\":\"the required key db is not there\"}"));
	assert_true(has("{\"change\":\"added\",\"path\":\"m\",\"after\":1}"));
	assert_true(has("\"hidden\":[{\"change\":\"removed\",\"path\":\"n\",\"before\":2,"));
	operator_pins(0);
	pull_of("n: 9\ndb: {host: b}\nl: [1, {x: .inf}]\nz: 1\n");
	assert_int_equal(diff_of_held(), 0);
	assert_true(has("\"held\":{\"by\":\"pin\",\"why\":\"pinned\"}"));
	assert_true(has("\"changes\":[{\"change\":\"added\",\"path\":\"z\",\"after\":1}]"));
	asks.no_values = true;
	assert_int_equal(diff_of_held(), 0);
	assert_true(has("\"after\":\"***\""));
}

static void override__of_a_whole__counts_what_it_replaces(void **state)
{
	(void)state;
	begin_with_two("");
	assert_int_equal(may_override("db"), 0);
	assert_int_equal(inspect_replaced(&effect, "5"), 1);
	assert_int_equal(inspect_replaced(&effect, "[1]"), 1);
	assert_int_equal(inspect_replaced(&effect, "{port: 1}"), 0);
	assert_int_equal(inspect_replaced(&effect, "null"), 0);
	assert_int_equal(inspect_replaced(&effect, "[1"), 0);
	assert_int_equal(may_override("l"), 0);
	assert_int_equal(inspect_replaced(&effect, "x"), 2);
	assert_int_equal(inspect_replaced(&effect, "[x]"), 0);
	assert_int_equal(may_override("n"), 0);
	assert_int_equal(inspect_replaced(&effect, "x"), 0);
}

static void held__by_a_full_disk_alone__names_no_check(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	disk_fails(CALL_RENAME, 1, true, ENOSPC);
	pull_of("n: 2\n");
	disk_recovers();
	assert_int_equal(diff_of_held(), 0);
	assert_true(has("\"held\":{\"by\":null,\"why\":\"it could not be published, which is tried "
			"again at the next pull: the status says why\"}"));
}

/* Nothing holds it: it is checked, or waits for another version that is. */
static void held__by_nothing__says_when_it_is_published(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("check: [/bin/true, '{path}']");
	world.programs_hang = true;
	pull_of("n: 2\n");
	assert_int_equal(diff_of_held(), 0);
	assert_true(has("\"held\":{\"by\":null,\"why\":\"it is being published\"}"));
	world.programs_hang = false;
	world_turn();
	world.programs_hang = true;
	operator_overrides("n", "7", HOUR);
	pull_of("n: 3\n");
	assert_int_equal(diff_of_held(), 0);
	assert_true(has("\"held\":{\"by\":null,\"why\":\"it is published at the next pull\"}"));
	world.programs_hang = false;
	world_turn();
}

/* After a rollback the bytes are in the state directory. */
static void held__after_a_rollback__is_read_from_the_store(void **state)
{
	(void)state;
	begin_with_two("");
	operator_rolls_back(1);
	assert_int_equal(diff_of_held(), 0);
	assert_true(has("\"from\":{\"generation\":3,"));
	assert_true(has("\"to\":{\"generation\":2,"));
	assert_true(has("\"by\":\"operator\",\"why\":\"rolled back by ann: pages are slow\""));
	assert_true(has("\"before\":1,\"after\":2"));
}

static void held__of_nothing__says_what_the_server_has(void **state)
{
	(void)state;
	core_make("");
	assert_int_equal(diff_of_held(), -ENODATA);
	config_free(core.config);
	settings_free(core.settings);
	begin_with_two("");
	assert_int_equal(diff_of_held(), -ENOENT);
	assert_string_equal(why, "nothing is held back: the server has the current version");
	operator_suspends(HOUR);
	assert_int_equal(diff_of_held(), -ENOENT);
	assert_non_null(strstr(why, "had the current version when it answered last"));
	assert_non_null(strstr(why, "but pulls are suspended since: `pullet resume web`"));
	operator_resumes();
	server_is_down();
	pull();
	assert_int_equal(diff_of_held(), -ENOENT);
	assert_non_null(strstr(why, "but the last pull failed: `pullet status web`"));
	agent_restarts();
	assert_int_equal(diff_of_held(), -ENOENT);
	assert_non_null(strstr(why, "`pullet refresh web --wait` asks it"));
	operator_suspends(HOUR);
	assert_int_equal(diff_of_held(), -ENOENT);
	assert_non_null(strstr(why, "`pullet resume web` asks it"));
}

/* ---- explanations ---- */

static void explain__names_the_layer_that_counts(void **state)
{
	(void)state;
	core.from = "[{server: main, path: /base.yaml}, {server: main, path: /web.yaml}]";
	world_put("/base.yaml", "db: {host: base, tls: true, port: 1}\nplain: 1\n");
	server_has("db: {host: zone, tls: null}\nplain: {now: 1}\n");
	agent_starts("");
	operator_overrides("db.port", "7", HOUR);
	assert_int_equal(explain("db.host"), 0);
	assert_true(
		has("\"value\":\"zone\",\"layers\":[{\"url\":\"http://server/base.yaml\",\"path\":"
		    "\"/base.yaml\",\"effect\":\"sets\",\"line\":1,\"value\":\"base\","
		    "\"effective\":false}"));
	assert_int_equal(explain("db.port"), 0);
	assert_true(
		has("\"override\":true,\"key\":\"db.port\",\"by\":\"ann\",\"reason\":\"a try\""));
	assert_int_equal(explain("db.tls"), 0);
	assert_true(has("\"found\":false"));
	assert_true(has("\"effect\":\"deletes\""));
	assert_int_equal(explain("db"), 0);
	assert_true(has("\"value\":{\"host\":\"zone\",\"port\":7}"));
	assert_int_equal(explain("none"), -ENOENT);
	assert_non_null(strstr(why, "no layer says anything about it"));
	assert_int_equal(explain("a\\b"), -EINVAL);
	ledger_override(core.config->decisions.ledger, "db.port", "7", LEDGER_FOREVER, "ann", "");
	assert_int_equal(explain("db.port"), 0);
	assert_true(has("\"until_ms\":null"));
}

static void explain__of_lists_and_odd_numbers__is_json(void **state)
{
	(void)state;
	begin_with_two("");
	assert_int_equal(explain("l"), 0);
	assert_true(has("\"value\":[1,{\"x\":\".inf\"}]"));
	assert_int_equal(explain("l.0"), 0);
	assert_true(has("\"value\":1"));
}

static void explain__hides_what_is_masked(void **state)
{
	(void)state;
	begin_with_two("mask: ['*.host', n]");
	assert_int_equal(explain("db"), 0);
	assert_true(has("\"value\":{\"host\":\"***\"}"));
	assert_int_equal(explain("n"), 0);
	assert_true(has("\"masked\":true,\"value\":\"***\""));
	asks.no_values = true;
	assert_int_equal(explain("l.0"), 0);
	assert_true(has("\"values\":false"));
}

static void explain__before_anything_is_published__is_refused(void **state)
{
	(void)state;
	agent_starts("");
	assert_int_equal(explain("n"), -ENODATA);
	assert_int_equal(may_override("n"), -ENODATA);
	assert_int_equal(may_roll_back(0), -ENODATA);
}

/* ---- changes ---- */

static void rollback__without_a_number__skips_what_is_the_same_or_rolled_back(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	assert_int_equal(may_roll_back(0), -ENOENT);
	pull_of("n: 2\n");
	pull_of("n: 3\n");
	assert_int_equal(may_roll_back(0), 0);
	assert_string_equal(answer, "2");
	operator_rolls_back(2);
	assert_int_equal(may_roll_back(0), 0);
	assert_string_equal(answer, "1"); /* 3 was rolled back, 2 has the same bytes */
	operator_rolls_back(1);
	assert_int_equal(may_roll_back(0), -ENOENT);
	assert_non_null(strstr(why, "name a generation"));
	assert_int_equal(may_roll_back(3), 0);
	assert_int_equal(may_roll_back(5), -EALREADY);
	assert_non_null(strstr(why, "generation 5 is the current version"));
	assert_int_equal(may_roll_back(1), -EALREADY);
	assert_non_null(strstr(why, "has the same bytes as the current version"));
	assert_int_equal(may_roll_back(99), -ENOENT);
}

static void rollback__past_a_version_that_a_check_rejected__may_go(void **state)
{
	(void)state;
	begin_with_two("");
	decisions_reject(core.config, core.config->current.version.sha256, "guard", "x", "why");
	pull_of("n: 3\n");
	assert_int_equal(may_roll_back(0), 0);
	assert_string_equal(answer, "2");
}

static void rollback__to_what_is_not_signed__is_refused(void **state)
{
	struct signer signer;
	char extra[128], file[SIGNER_FILE];
	const struct signer_job job = {
		.document = "n: 2\n", .len = 5, .comment = "rev=1", .comment_len = 5};

	(void)state;
	signer_init(&signer, 1);
	snprintf(extra, sizeof(extra), "verify: {public_key: \"%s\"}", signer.text);
	server_has("n: 1\n");
	agent_starts("");
	agent_crashes();
	server_has("n: 2\n");
	world_put_bytes("/web.yaml.minisig", file, signer_file(&signer, &job, file));
	agent_starts(extra);
	assert_generation(2);
	assert_int_equal(may_roll_back(1), -EBADMSG);
	assert_non_null(strstr(why, "it was stored without a signature"));
	operator_overrides("m", "1", HOUR);
	decisions_reject(core.config, "x", "probe", "", "why");
	core.config->current.version.sha256[0] = 'x'; /* as if it were another one */
	assert_int_equal(may_roll_back(2), 0);
	signer_fini(&signer);
}

static void override__may_lie_in_mappings_only(void **state)
{
	(void)state;
	begin_with_two("");
	assert_int_equal(may_override("db.host"), 0);
	assert_false(effect.adds);
	assert_int_equal(may_override("new.deep.key"), 0);
	assert_true(effect.adds);
	assert_int_equal(may_override("db"), 0);
	assert_false(effect.adds);
	assert_int_equal(may_override("db.port"), 0);
	assert_true(effect.adds);
	assert_string_equal(effect.near, "");
	assert_int_equal(may_override("db.hots"), 0);
	assert_string_equal(effect.near, "db.host");
	assert_int_equal(may_override("bd.host"), 0);
	assert_string_equal(effect.near, "");
	assert_int_equal(may_override("db.host.x"), -ENOTDIR);
	assert_int_equal(may_override("n "), -EINVAL);
	assert_non_null(strstr(why, "has a blank around it"));
	assert_int_equal(may_override("l.0"), -ENOTDIR);
	assert_non_null(strstr(why, "l is a list"));
	assert_int_equal(may_override("n.x"), -ENOTDIR);
	assert_non_null(strstr(why, "n is a single value"));
	assert_int_equal(may_override(""), -EINVAL);
}

static void change__after_another_publication__is_refused(void **state)
{
	(void)state;
	begin_with_two("");
	assert_int_equal(inspect_begin(core.config, &seen, why), 0);
	assert_int_equal(inspect_unchanged(&seen, why), 0);
	pull_of("n: 3\n");
	assert_int_equal(inspect_unchanged(&seen, why), -EAGAIN);
	inspect_end(&seen);
}

/* ---- without memory ---- */

/* What an answer lacks without memory: versions of the history, values that may be masked, why a
 * version is held. */
static bool is_answer(enum question what, const char *whole)
{
	return what == HISTORY || strcmp(answer, whole) == 0 ||
	       (what == EXPLAIN && strstr(answer, "\"***\"")) ||
	       (what == DIFF && strstr(answer, "\"held\":{\"by\":\"pin\",\"why\":null}")) ||
	       (what == ROLLBACK && !answer[0]);
}

/* With each allocation failing it is the answer, or a failure that says why. */
static void ask_without_memory(enum question what)
{
	static char whole[sizeof(answer)];
	unsigned lost = 0; /* the list of files, once */
	bool hit = true;

	assert_int_equal(ask(what), 0);
	memcpy(whole, answer, sizeof(whole));
	for (unsigned n = 1; hit; n++) {
		int r;

		why[0] = '\0';
		fault_memory.seen = 0;
		fault_memory.nth = n;
		r = ask(what);
		fault_memory.nth = 0;
		hit = fault_memory.seen >= n;
		if (what == ROLLBACK && r == -ENOENT && lost++ == 0)
			continue;
		if (r == 0 ? !is_answer(what, whole) : r != -ENOMEM || !why[0] || !hit) {
			print_message(
				"# question %d, allocation %u: %d %s\n", (int)what, n, r, why);
			fail();
		}
		assert_in_range(n, 1, MOST);
	}
}

static void each_question__without_memory__fails_with_a_sentence(void **state)
{
	(void)state;
	begin_with_two("");
	operator_overrides("m", "1", HOUR);
	asks.key = "db.host";
	asks.from = 1;
	for (int what = HISTORY; what <= OVERRIDE; what++)
		ask_without_memory((enum question)what);
	operator_pins(0);
	pull_of("n: 9\n");
	asks.held = true;
	asks.from = 0;
	ask_without_memory(DIFF);
}

static void explain__of_a_number_and_below_a_null__is_what_it_is(void **state)
{
	char key[300];

	(void)state;
	memset(key, 'k', 210);
	snprintf(key + 210, sizeof(key) - 210, ": 1\nf: 1.5\nnothing:\n");
	server_has(key);
	agent_starts("");
	assert_int_equal(explain("f"), 0);
	assert_true(has("\"value\":1.5"));
	assert_int_equal(may_override("nothing.x"), 0);
	snprintf(key + 210, sizeof(key) - 210, ".x");
	assert_int_equal(may_override(key), -ENOTDIR);
	assert_non_null(strstr(why, "kkk is a single value"));
}

static void history_and_rollback__of_signed_layers__look_at_each(void **state)
{
	struct signer signer;
	char extra[128], file[SIGNER_FILE];
	const struct signer_job job = {
		.document = "n: 2\n", .len = 5, .comment = "path=/web.yaml", .comment_len = 14};

	(void)state;
	signer_init(&signer, 1);
	snprintf(extra, sizeof(extra), "verify: {public_key: \"%s\"}", signer.text);
	core.from = "[{server: main, path: /more.yaml, optional: true}, {server: main, path: "
		    "/web.yaml}]";
	server_has("n: 2\n");
	world_put_bytes("/web.yaml.minisig", file, signer_file(&signer, &job, file));
	agent_starts(extra);
	assert_generation(1);
	core.config->current.version.sha256[0] = 'x'; /* as if another one were current */
	core.config->current.version.generation = 9;
	assert_int_equal(may_roll_back(1), 0);
	assert_int_equal(ask(HISTORY), 0);
	assert_null(strstr(answer, "minisig"));
	signer_fini(&signer);
}

static void history__that_is_whole__is_not_called_truncated(void **state)
{
	(void)state;
	begin_with_two("");
	assert_int_equal(ask(HISTORY), 0);
	assert_null(strstr(answer, "truncated"));
}

/* ---- whole answers ---- */

/* The facts of a version, as answers have them. */
static const char *facts(char text[1024], uint64_t generation, const char *origin,
	const char *document, const char *urls)
{
	char sha256[DIGEST_HEX];

	assert_int_equal(digest_sha256(document, strlen(document), NULL, 0, sha256), 0);
	snprintf(text, 1024,
		"\"generation\":%llu,\"published_ms\":%lld,%s,\"pulled_ms\":%lld,"
		"\"sha256\":\"%s\",\"origin\":\"%s\",\"urls\":"
		"[%s],\"version\":\"\\\"%.8s\\\"\",\"bytes\":%zu",
		(unsigned long long)generation, (long long)world.wall_ms,
		strncmp(origin, "rollback", 8) == 0 ? "\"cause\":\"rollback\",\"by\":\"ann\""
		: generation == 1                   ? "\"cause\":\"start\",\"by\":null"
						    : "\"cause\":\"pull\",\"by\":null",
		(long long)world.wall_ms, sha256, origin, urls, sha256, strlen(document));
	return text;
}

#define FACTS(generation, origin, document)                                                        \
	facts((char[1024]){0}, generation, origin, document, "\"http://server/web.yaml\"")

static void assert_answers(const char *format, ...)
{
	char expected[8192];
	va_list args;

	va_start(args, format);
	vsnprintf(expected, sizeof(expected), format, args);
	va_end(args);
	assert_string_equal(answer, expected);
}

static void history__has_each_fact_newest_first(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	pull_of("n: 22\n");
	decisions_reject(core.config, "other bytes", "probe", "", "bad"); /* before that one */
	operator_rolls_back(1);
	assert_int_equal(ask(HISTORY), 0);
	assert_answers(
		"{\"name\":\"web\",\"versions\":[{%s,\"published\":true},{%s,\"rejected\":{\"by\":"
		"\"operator\",\"why\":\"rolled back by ann: pages are slow\"}},{%s}],"
		"\"forward\":[\"`pullet refresh web --force`: the server's version is published "
		"all "
		"the same, if all checks accept it\",\"another version at the server is checked "
		"when "
		"it is pulled\"]}",
		FACTS(3, "rollback to generation 1 by ann: pages are slow", "n: 1\n"),
		FACTS(2, "pull", "n: 22\n"), FACTS(1, "pull", "n: 1\n"));
	asks.audience = AUDIENCE_PUBLIC;
	assert_int_equal(ask(HISTORY), 0);
	assert_true(has(",\"rejected\":{\"by\":\"operator\"}},"));
}

static void history__of_a_damaged_version__goes_on_with_the_others(void **state)
{
	char path[SCRATCH_PATH + 64], why_not[256];

	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	pull_of("n: 2\n");
	pull_of("n: 3\n");
	core_path(path, "state/web");
	scratch_write(path, "00000000000000000002", "harm", 4);
	assert_int_equal(ask(HISTORY), 0);
	assert_true(has("{\"generation\":2,\"error\":\"generation 2 cannot be read"));
	snprintf(why_not, sizeof(why_not), "%.*s",
		(int)strcspn(strstr(answer, "\"error\":\"") + 9, "\""),
		strstr(answer, "\"error\":\"") + 9);
	assert_answers("{\"name\":\"web\",\"versions\":[{%s,\"published\":true},{\"generation\":2,"
		       "\"error\":\"%s\"},{%s}]}",
		FACTS(3, "pull", "n: 3\n"), why_not, FACTS(1, "pull", "n: 1\n"));
}

static void diff__has_the_facts_of_both_and_each_change(void **state)
{
	static const char first[] = "n: 1\ngone: x\n", second[] = "n: 2\nm: [1]\n";

	(void)state;
	server_has(first);
	agent_starts("");
	pull_of(second);
	assert_int_equal(diff(1, 2), 0);
	assert_answers(
		"{\"name\":\"web\",\"from\":{%s},\"to\":{%s},\"equal\":false,\"values\":true,"
		"\"changes\":[{\"change\":\"removed\",\"path\":\"gone\",\"before\":\"x\"},"
		"{\"change\":\"added\",\"path\":\"m.0\",\"after\":1},"
		"{\"change\":\"changed\",\"path\":\"n\",\"before\":1,\"after\":2}]}",
		FACTS(1, "pull", first), FACTS(2, "pull", second));
	assert_int_equal(diff(0, 0), 0);
	assert_true(has("\"from\":{\"generation\":1,"));
	assert_true(has("\"to\":{\"generation\":2,"));
	asks.no_values = true;
	assert_int_equal(diff(2, 2), 0);
	assert_answers("{\"name\":\"web\",\"from\":{%s},\"to\":{%s},\"equal\":true,\"values\":"
		       "false,\"changes\":[]}",
		FACTS(2, "pull", second), FACTS(2, "pull", second));
}

static void diff__without_a_first_one__is_with_the_newest_before(void **state)
{
	char path[SCRATCH_PATH + 64];

	(void)state;
	begin_with_two("");
	pull_of("n: 3\n");
	pull_of("n: 4\n");
	assert_int_equal(diff(0, 3), 0);
	assert_true(has("\"from\":{\"generation\":2,"));
	assert_true(has("\"to\":{\"generation\":3,"));
	core_path(path, "state/web/00000000000000000002");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(diff(0, 3), 0);
	assert_true(has("\"from\":{\"generation\":1,"));
	assert_int_equal(diff(0, 1), -ENOENT);
	assert_string_equal(why, "generation 1 is the oldest in the state directory: there is "
				 "nothing to compare it with");
	assert_int_equal(diff(2, 4), -ENOENT);
	assert_string_equal(why, "there is no generation 2 in the state directory: `pullet history "
				 "web` lists those that are kept");
}

static void diff__of_bytes__has_no_changes(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("type: bytes");
	pull_of("n: 2\n");
	assert_int_equal(diff(1, 2), 0);
	assert_answers(
		"{\"name\":\"web\",\"from\":{%s},\"to\":{%s},\"equal\":false,\"values\":true,"
		"\"changes\":null}",
		FACTS(1, "pull", "n: 1\n"), FACTS(2, "pull", "n: 2\n"));
}

static void explain__has_each_layer_with_its_effect(void **state)
{
	static const char head[] = "{\"name\":\"web\",\"generation\":2,\"key\":\"%s\",\"found\":%s,"
				   "\"values\":true%s,\"layers\":[";
	char expected[8192];

	(void)state;
	core.from = "[{server: main, path: /a.yaml}, {server: main, path: /no.yaml, optional: "
		    "true}, {server: main, path: /web.yaml}]";
	world_put("/a.yaml", "db:\n  host: base\n  tls: true\n");
	server_has("n: 1\ndb: {tls: null}\n");
	agent_starts("");
	operator_overrides("db.host", "7", HOUR);
	assert_generation(2);
	assert_int_equal(explain("db.host"), 0);
	snprintf(expected, sizeof(expected), head, "db.host", "true", ",\"value\":7");
	assert_answers("%s{\"url\":\"http://server/a.yaml\",\"path\":\"/a.yaml\",\"effect\":"
		       "\"sets\",\"line\":2,\"value\":\"base\",\"effective\":false},"
		       "{\"url\":\"\",\"path\":\"/no.yaml\",\"effect\":\"absent\",\"effective\":"
		       "false},"
		       "{\"url\":\"http://server/web.yaml\",\"path\":\"/web.yaml\",\"effect\":"
		       "\"unset\",\"effective\":false},"
		       "{\"override\":true,\"key\":\"db.host\",\"by\":\"ann\",\"reason\":\"a "
		       "try\",\"until_ms\":%lld,\"effect\":\"sets\",\"value\":7,\"effective\":"
		       "true}]}",
		expected, (long long)world.wall_ms + HOUR);
	assert_int_equal(explain("db.tls"), 0);
	snprintf(expected, sizeof(expected), head, "db.tls", "false", "");
	assert_true(has(expected));
	assert_true(has("\"effect\":\"deletes\",\"line\":2,\"effective\":false},"));
	assert_int_equal(explain("n.x"), 0);
	assert_true(has("\"found\":false,\"values\":true,\"layers\":["));
	assert_true(has("\"effect\":\"replaces\",\"line\":1,\"effective\":false},"));
}

static void explain__of_a_mapping__hides_what_is_masked_in_it(void **state)
{
	(void)state;
	server_has("db: {host: a, list: [{pw: s, n: 1}, 2], pw: s, empty: {}, none: []}\n");
	agent_starts("mask: ['*.pw', 'db.list.1']");
	assert_int_equal(explain("db"), 0);
	assert_answers(
		"{\"name\":\"web\",\"generation\":1,\"key\":\"db\",\"found\":true,\"values\":"
		"true,\"value\":{\"host\":\"a\",\"list\":[{\"pw\":\"***\",\"n\":1},\"***\"],"
		"\"pw\":\"***\",\"empty\":{},\"none\":[]},\"layers\":[{\"url\":"
		"\"http://server/web.yaml\",\"path\":\"/web.yaml\",\"effect\":\"sets\","
		"\"line\":1,\"value\":{\"host\":\"a\",\"list\":[{\"pw\":\"***\",\"n\":1},"
		"\"***\"],\"pw\":\"***\",\"empty\":{},\"none\":[]},\"effective\":true}]}");
	asks.no_values = true;
	assert_int_equal(explain("db.host"), 0);
	assert_answers("{\"name\":\"web\",\"generation\":1,\"key\":\"db.host\",\"found\":true,"
		       "\"values\":false,\"masked\":true,\"value\":\"***\",\"layers\":[{\"url\":"
		       "\"http://server/web.yaml\",\"path\":\"/web.yaml\",\"effect\":\"sets\","
		       "\"line\":1,\"masked\":true,\"value\":\"***\",\"effective\":true}]}");
}

/* A document and its signature, which names its path. */
static void server_signs(struct signer *signer, const char *path, const char *text)
{
	char file[SIGNER_FILE], name[64], comment[64];
	struct signer_job job = {.document = text, .len = strlen(text), .comment = comment};
	size_t len;

	snprintf(comment, sizeof(comment), "path=%.40s", path);
	snprintf(name, sizeof(name), "%.40s.minisig", path);
	job.comment_len = strlen(comment);
	len = signer_file(signer, &job, file);
	world_put(path, text);
	world_put_bytes(name, file, len);
}

static void explain__of_a_signed_layer__names_its_document(void **state)
{
	struct signer signer;
	char extra[128];

	(void)state;
	signer_init(&signer, 1);
	snprintf(extra, sizeof(extra), "verify: {public_key: \"%s\"}", signer.text);
	core.from = "[{server: main, path: /a.yaml}, {server: main, path: /web.yaml}]";
	server_signs(&signer, "/a.yaml", "n: 1\n");
	server_signs(&signer, "/web.yaml", "n: 2\n");
	agent_starts(extra);
	assert_generation(1);
	assert_int_equal(explain("n"), 0);
	assert_true(has("\"layers\":[{\"url\":\"http://server/a.yaml\",\"path\":\"/a.yaml\","));
	assert_true(has("{\"url\":\"http://server/web.yaml\",\"path\":\"/web.yaml\","));
	signer_fini(&signer);
}

/* ---- whether a change is possible ---- */

static void rollback__is_asked_by_its_number_and_says_why_not(void **state)
{
	(void)state;
	begin_with_two("");
	assert_int_equal(may_roll_back(1), 0);
	assert_string_equal(answer, "1");
	assert_int_equal(may_roll_back(2), -EALREADY);
	assert_string_equal(why, "generation 2 is the current version");
	assert_int_equal(may_roll_back(3), -ENOENT);
	assert_string_equal(why, "there is no generation 3 in the state directory: `pullet history "
				 "web` lists those that are kept");
	pull_of("n: 1\ndb: {host: a}\n");
	assert_int_equal(may_roll_back(1), -EALREADY);
	assert_string_equal(why, "generation 1 has the same bytes as the current version");
	assert_int_equal(may_roll_back(0), 0);
	assert_string_equal(answer, "2");
}

static void rollback__without_a_number__passes_over_what_cannot_be_read(void **state)
{
	char path[SCRATCH_PATH + 64];

	(void)state;
	begin_with_two("");
	pull_of("n: 3\n");
	core_path(path, "state/web");
	scratch_write(path, "00000000000000000002", "harm", 4);
	assert_int_equal(may_roll_back(0), 0);
	assert_string_equal(answer, "1");
	assert_int_equal(may_roll_back(2), -EBADMSG);
	assert_non_null(strstr(why, "generation 2 cannot be read"));
	scratch_write(path, "00000000000000000001", "harm", 4);
	assert_int_equal(may_roll_back(0), -ENOENT);
	assert_string_equal(why, "there is no older version that differs from the current one and "
				 "was not rolled back itself: name a generation");
}

static void rollback__to_what_other_keys_signed__names_the_document(void **state)
{
	struct signer first, other;
	char extra[128];

	(void)state;
	signer_init(&first, 1);
	signer_init(&other, 2);
	core.from = "[{server: main, path: /a.yaml}, {server: main, path: /web.yaml}]";
	server_signs(&first, "/a.yaml", "a: 1\n");
	server_signs(&first, "/web.yaml", "n: 1\n");
	snprintf(extra, sizeof(extra), "verify: {public_key: \"%s\"}", first.text);
	agent_starts(extra);
	server_signs(&first, "/web.yaml", "n: 2\n");
	pull();
	server_signs(&first, "/web.yaml", "n: 3\n");
	pull();
	assert_generation(3);
	assert_int_equal(may_roll_back(1), 0);
	assert_int_equal(may_roll_back(2), 0);
	agent_crashes();
	server_signs(&other, "/a.yaml", "a: 1\n");
	server_signs(&other, "/web.yaml", "n: 4\n");
	snprintf(extra, sizeof(extra), "verify: {public_key: \"%s\"}", other.text);
	agent_starts(extra);
	assert_generation(4);
	assert_int_equal(may_roll_back(1), -EBADMSG);
	assert_non_null(
		strstr(why, "generation 1 is not signed as the configuration asks for: /a.yaml: "));
	signer_fini(&first);
	signer_fini(&other);
}

static void override__below_what_is_no_mapping__names_it(void **state)
{
	static const struct {
		const char *key, *why;
	} cases[] = {
		{"n.x", "n is a single value: an override of it as a whole is possible, not of "
			"something in it"},
		{"l.0", "l is a list: an override of it as a whole is possible, not of something "
			"in it"},
		{"db.host.x.y", "db.host is a single value: an override of it as a whole is "
				"possible, not of something in it"},
	};

	(void)state;
	begin_with_two("");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(may_override(cases[i].key), -ENOTDIR);
		assert_string_equal(why, cases[i].why);
	}
	assert_int_equal(may_override("n"), 0);
	assert_int_equal(may_override("l"), 0);
	assert_int_equal(may_override("db"), 0);
	assert_int_equal(may_override("a\\b"), -EINVAL);
}

static void override__below_an_override__is_asked_of_what_is_published(void **state)
{
	(void)state;
	begin_with_two("");
	operator_overrides("n", "{x: 1}", HOUR);
	assert_int_equal(may_override("n.x"), 0);
	operator_drops("n");
	assert_int_equal(may_override("n.x"), -ENOTDIR);
}

static void name_of_a_key__that_is_long__is_cut(void **state)
{
	char text[300], expected[300];

	(void)state;
	for (unsigned len = 199; len <= 201; len++) {
		unsigned shown = len > 200 ? 200 : len;

		memset(text, 'k', len);
		snprintf(text + len, sizeof(text) - len, ": 1\n");
		server_has(text);
		agent_starts("");
		snprintf(text + len, sizeof(text) - len, ".x");
		assert_int_equal(may_override(text), -ENOTDIR);
		snprintf(expected, sizeof(expected), "%.*s is a single value", (int)shown, text);
		assert_int_equal(strncmp(why, expected, strlen(expected)), 0);
		core_close();
		core_open(scratch_memory());
	}
}

/* ---- room ---- */

static void answer__without_room__is_too_long(void **state)
{
	(void)state;
	begin_with_two("");
	asks.room = 40;
	assert_int_equal(explain("n"), -EMSGSIZE);
	assert_string_equal(why, "the answer is too long");
	assert_int_equal(diff(1, 2), -EMSGSIZE);
	assert_string_equal(why, "the answer is too long");
	assert_int_equal(ask(HISTORY), -EMSGSIZE);
	assert_string_equal(why, "the answer is too long");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, core_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(history__lists_what_is_kept_and_marks_the_current_one),
		TEST(history__of_a_damaged_version__has_its_error),
		TEST(history__before_anything_is_published__is_empty),
		TEST(history__beyond_the_room__is_an_error),
		TEST(history__of_a_version_without_an_etag__has_none),
		TEST(diff__of_two_versions__is_by_key),
		TEST(diff__of_what_is_not_there__says_which),
		TEST(diff__of_bytes__says_only_that_they_differ),
		TEST(diff__says_what_readers_saw_and_what_an_override_hides),
		TEST(diff__below_an_overridden_mapping__is_told_apart),
		TEST(held__by_each_decision__is_compared_with_the_current_version),
		TEST(override__of_a_whole__counts_what_it_replaces),
		TEST(held__by_a_full_disk_alone__names_no_check),
		TEST(held__by_nothing__says_when_it_is_published),
		TEST(held__after_a_rollback__is_read_from_the_store),
		TEST(held__of_nothing__says_what_the_server_has),
		TEST(diff__beyond_the_room__is_an_error),
		TEST(explain__names_the_layer_that_counts),
		TEST(explain__of_lists_and_odd_numbers__is_json),
		TEST(explain__hides_what_is_masked),
		TEST(explain__before_anything_is_published__is_refused),
		TEST(rollback__without_a_number__skips_what_is_the_same_or_rolled_back),
		TEST(rollback__past_a_version_that_a_check_rejected__may_go),
		TEST(rollback__to_what_is_not_signed__is_refused),
		TEST(override__may_lie_in_mappings_only),
		TEST(change__after_another_publication__is_refused),
		TEST(explain__of_a_number_and_below_a_null__is_what_it_is),
		TEST(history_and_rollback__of_signed_layers__look_at_each),
		TEST(history__has_each_fact_newest_first),
		TEST(history__of_a_damaged_version__goes_on_with_the_others),
		TEST(diff__has_the_facts_of_both_and_each_change),
		TEST(diff__without_a_first_one__is_with_the_newest_before),
		TEST(diff__of_bytes__has_no_changes),
		TEST(explain__has_each_layer_with_its_effect),
		TEST(explain__of_a_mapping__hides_what_is_masked_in_it),
		TEST(explain__of_a_signed_layer__names_its_document),
		TEST(rollback__is_asked_by_its_number_and_says_why_not),
		TEST(rollback__without_a_number__passes_over_what_cannot_be_read),
		TEST(rollback__to_what_other_keys_signed__names_the_document),
		TEST(override__below_what_is_no_mapping__names_it),
		TEST(override__below_an_override__is_asked_of_what_is_published),
		TEST(name_of_a_key__that_is_long__is_cut),
		TEST(answer__without_room__is_too_long),
		TEST(history__that_is_whole__is_not_called_truncated),
		TEST(each_question__without_memory__fails_with_a_sentence),
	};

	return fault_memory_run(tests, 1);
}
