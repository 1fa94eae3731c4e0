/* What was decided, in the ledger and in the state files: verdicts, a pin, overrides, the revs of
 * signatures; what a crash between commit and ledger leaves. */
#include "tests/unit/fixture/core.h"
#include "tests/unit/fixture/minisign_signer.h"

#define DAY INT64_C(86400000)

/* The agent is down for so long. */
static void agent_is_down(uint64_t ms)
{
	agent_crashes();
	world.now_ms += ms;
	world.wall_ms += (int64_t)ms;
}

static size_t overrides_left(void)
{
	return core.config->decisions.ledger->override_count;
}

/* ---- a pin ---- */

static void pin__outlives_a_crash_and_holds(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	operator_pins(0);
	server_has("n: 2\n");
	agent_restarts();
	assert_outcome(CONFIG_HELD);
	assert_shows("n: 1\n");
	assert_string_equal(core_status().pin->by, "ann");
	assert_string_equal(core_status().pin->reason, "release day");
}

static void pin__holds_a_forced_pull_too(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	operator_pins(0);
	server_has("n: 2\n");
	pull_forced();
	assert_outcome(CONFIG_HELD);
	assert_shows("n: 1\n");
	assert_rejected(REJECTED_BY_PIN, "pinned");
}

static void pin__ends_by_itself_and_what_it_held_is_published(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	operator_pins(10 * SECOND);
	pull_of("n: 2\n");
	world_advance(9 * SECOND);
	assert_shows("n: 1\n");
	world_advance(2 * SECOND);
	assert_logged("the pin has expired");
	assert_shows("n: 2\n");
	assert_null(core_status().pin);
}

static void pin__that_ended_while_the_agent_was_down__holds_nothing(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	operator_pins(10 * SECOND);
	agent_is_down(MINUTE);
	server_has("n: 2\n");
	agent_starts("");
	world_advance(SECOND);
	assert_shows("n: 2\n");
}

static void pin__when_the_clock_jumps_ahead__ends_within_a_minute(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	operator_pins(HOUR);
	pull_of("n: 2\n");
	world.wall_ms += 2 * HOUR;
	world_advance(MINUTE + SECOND);
	assert_shows("n: 2\n");
}

static void pin__that_names_bytes_which_are_gone__is_dropped_at_the_start(void **state)
{
	char path[SCRATCH_PATH + 64];

	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	pull_of("n: 2\n");
	operator_pins(0);
	agent_crashes();
	core_path(path, "state/web/00000000000000000002");
	assert_int_equal(unlink(path), 0);
	server_is_down();
	agent_starts("");
	assert_logged("the pinned version is not in the state directory: the pin is dropped");
	assert_shows("n: 2\n"); /* an older one does not take its place without a server */
	assert_null(core_status().pin);
}

static void pin__asked_while_the_disk_takes_a_version__is_about_that_one(void **state)
{
	struct worker_job *job;

	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	world.disk.held = true;
	pull_of("n: 2\n");
	job = world_run_job(&world.disk);
	operator_pins(0);
	assert_logged("pinned: keeping the current version config=web generation=2");
	world_end_job(&world.disk, job);
	world.disk.held = false;
	world_turn();
	assert_shows("n: 2\n");
	pull();
	assert_outcome(CONFIG_UNCHANGED);
	agent_restarts();
	assert_shows("n: 2\n");
	pull_of("n: 3\n");
	assert_outcome(CONFIG_HELD);
}

/* A power cut could take the version, and the pin would name bytes that are nowhere. */
static void pin__asked_while_the_disk_takes_a_version_in_strict__is_asked_again(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("durability: strict");
	world.disk.held = true;
	pull_of("n: 2\n");
	operator_pins(0);
	assert_int_equal(operator.result, -EBUSY);
	assert_string_equal(operator.why,
		"a version is on its way to the disk: try again when it is there");
	assert_null(core_status().pin);
	world.disk.held = false;
	world_turn();
	assert_shows("n: 2\n");
	operator_pins(0);
	assert_int_equal(operator.result, 0);
	agent_restarts();
	assert_shows("n: 2\n");
	assert_non_null(core_status().pin);
}

static void pin__in_strict_while_the_disk_heals__is_about_the_current_version(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("durability: strict");
	world.disk.held = true;
	somebody_writes("harm");
	assert_true(core.config->step.publishing);
	operator_pins(0);
	assert_int_equal(operator.result, 0);
	world.disk.held = false;
	world_turn();
	assert_shows("n: 1\n");
}

static void pin__asked_while_the_disk_takes_a_version_that_fails__is_about_the_old_one(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	world.disk.held = true;
	pull_of("n: 2\n");
	operator_pins(0);
	snapshot_is_blocked();
	world.disk.held = false;
	world_turn();
	assert_logged("pinned: the version that was to be published was not");
	assert_string_equal(
		core.config->decisions.ledger->pin.sha256, core.config->current.version.sha256);
	snapshot_is_free();
	agent_restarts();
	assert_shows("n: 1\n");
	assert_outcome(CONFIG_HELD);
}

static void pin__holds_what_was_saved_before_but_never_shown__over_a_restart(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	snapshot_is_blocked();
	pull_of("n: 2\n");
	operator_pins(0);
	snapshot_is_free();
	agent_restarts();
	assert_shows("n: 1\n");
	assert_outcome(CONFIG_HELD);
	operator_unpins();
	assert_shows("n: 2\n");
}

static void pin__when_the_stored_bytes_are_damaged__lets_the_same_bytes_come_again(void **state)
{
	char path[SCRATCH_PATH + 64];

	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	operator_pins(0);
	core_path(path, "state/web");
	scratch_write(path, "00000000000000000001", "harm", 4);
	somebody_writes("harm");
	assert_error("cannot be read");
	world_advance(2 * SECOND);
	pull();
	pull();
	assert_shows("n: 1\n");
}

static void pin__moves_with_an_operators_rollback(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	pull_of("n: 2\n");
	operator_pins(0);
	operator_rolls_back(1);
	assert_done();
	assert_shows("n: 1\n");
	agent_restarts();
	assert_shows("n: 1\n");
	assert_outcome(CONFIG_HELD);
	assert_non_null(core_status().pin);
}

static void pin__that_moved_in_a_commit_before_a_crash__is_moved_at_the_start(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	pull_of("n: 2\n");
	operator_pins(0);
	world.dies_at = 2; /* the state file is there, nothing else is */
	operator_rolls_back(1);
	agent_restarts();
	assert_generation(3);
	assert_shows("n: 1\n");
	assert_outcome(CONFIG_HELD);
}

/* ---- overrides ---- */

static void override__ends_by_itself_as_a_version_of_its_own(void **state)
{
	(void)state;
	server_has("# commented\nn: 1\n");
	agent_starts("");
	operator_overrides("n", "2", 10 * SECOND);
	assert_done();
	assert_shows("n: 2\n");
	world_advance(11 * SECOND);
	assert_logged("an override has expired");
	assert_shows("# commented\nn: 1\n");
	assert_generation(3);
	assert_origin("an override has expired");
	assert_int_equal(core_status().override_count, 0);
}

static void override__that_expires_when_the_disk_is_bad__goes_as_soon_as_it_can(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	operator_overrides("n", "7", 10 * SECOND);
	operator_pins(0);
	pull_of("n: 2\n"); /* held: the run says nothing about the overrides */
	snapshot_is_blocked();
	world_advance(11 * SECOND);
	assert_error("web.snap");
	snapshot_is_free();
	server_is_down();
	pull();
	assert_shows("n: 1\n");
	assert_int_equal(overrides_left(), 0);
}

static void override__stays_over_new_versions_and_restarts(void **state)
{
	(void)state;
	server_has("n: 1\nm: 1\n");
	agent_starts("");
	operator_overrides("n", "7", HOUR);
	pull_of("n: 2\nm: 2\n");
	assert_shows("n: 7\nm: 2\n");
	agent_restarts();
	assert_shows("n: 7\nm: 2\n");
	assert_outcome(CONFIG_UNCHANGED);
	operator_drops("n");
	assert_done();
	assert_origin("override of n removed by ann");
	assert_shows("n: 2\nm: 2\n");
}

static void override__that_ended_while_the_agent_was_down__is_a_version_of_its_own(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("reload: {run: [/bin/true]}");
	operator_overrides("n", "7", 10 * SECOND);
	agent_is_down(MINUTE);
	somebody_writes_quietly("harm");
	agent_starts("reload: {run: [/bin/true]}");
	world_advance(SECOND);
	assert_shows("n: 1\n");
	assert_generation(3);
	assert_logged("published config=web generation=3");
	assert_int_equal(core.config->decisions.ledger->notified, 3);
}

static void override__that_ended_while_the_agent_was_down__with_once__is_dropped_at_once(
	void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	operator_overrides("n", "7", 10 * SECOND);
	agent_is_down(MINUTE);
	core.env.once = true;
	agent_starts("");
	assert_shows("n: 1\n");
}

static void override__when_it_made_a_version_bad__is_forgiven_with_it(void **state)
{
	static const char rules[] = "{\"not\": {\"required\": [\"old\", \"new\"]}}";
	char schema[SCRATCH_PATH + 64];

	(void)state;
	scratch_write(core.dir, "schema.json", rules, strlen(rules));
	snprintf(schema, sizeof(schema), "schema: %s/schema.json", core.dir);
	server_has("n: 1\n");
	agent_starts(schema);
	operator_overrides("old", "1", HOUR);
	pull_of("new: 1\n");
	assert_rejected(CHECK_SCHEMA, "");
	operator_drops("old");
	assert_shows("new: 1\n");
	assert_verdicts(0);
}

static void override__that_expires_while_suspended__ends_nothing_else(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	operator_overrides("n", "7", 10 * SECOND);
	operator_suspends(HOUR);
	world_advance(11 * SECOND);
	assert_shows("n: 1\n");
	assert_logged("an override has expired");
	assert_not_logged("the suspension has expired");
	assert_non_null(core_status().suspension);
}

static void ledger__of_a_newer_agent__keeps_what_is_not_known_here(void **state)
{
	static const char later[] = ",\"later\":true}\n";
	char path[SCRATCH_PATH + 64], text[4096], *end;

	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	operator_pins(0);
	agent_crashes();
	core_path(path, "state/web");
	assert_true(scratch_read(path, "ledger.json", text, sizeof(text) - 16, NULL));
	end = strrchr(text, '}');
	assert_non_null(end);
	memcpy(end, later, sizeof(later));
	scratch_write(path, "ledger.json", text, strlen(text));
	agent_starts("");
	assert_logged("the ledger is of a newer version: keeping what is not known here");
	assert_non_null(core_status().pin);
	operator_unpins();
	assert_true(scratch_read(path, "ledger.json", text, sizeof(text), NULL));
	assert_non_null(strstr(text, "\"later\":true"));
}

static void override__is_in_what_is_healed(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	operator_overrides("n", "7", HOUR);
	somebody_writes("n: 666\n");
	assert_shows("n: 7\n");
	assert_generation(2);
}

static void override__in_a_commit_before_a_crash__is_taken_over_at_the_start(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	world.dies_at = 2;
	operator_overrides("n", "7", HOUR);
	agent_restarts();
	assert_generation(2);
	assert_shows("n: 7\n");
	assert_int_equal(overrides_left(), 1);
	pull();
	assert_shows("n: 7\n");
}

static void override__whose_ledger_was_not_written_before_a_crash__is_taken_over(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	world.dies_at = 4; /* state, snapshot, text; the ledger is the fourth */
	operator_overrides("n", "7", HOUR);
	assert_shows("n: 7\n");
	agent_restarts();
	assert_shows("n: 7\n");
	assert_generation(2);
	assert_int_equal(overrides_left(), 1);
}

static void override__that_expires_during_a_step__does_not_come_back_with_it(void **state)
{
	(void)state;
	server_has("n: 1\nm: 1\n");
	agent_starts("check: [/bin/true, '{path}']");
	operator_overrides("n", "7", 10 * SECOND);
	world.programs_hang = true;
	pull_of("n: 2\nm: 2\n");
	world_advance(11 * SECOND);
	world.programs_hang = false;
	world_turn();
	assert_shows("n: 2\nm: 2\n");
	assert_int_equal(overrides_left(), 0);
	agent_restarts();
	assert_shows("n: 2\nm: 2\n");
	assert_int_equal(overrides_left(), 0);
}

/* ---- verdicts ---- */

static void operators_verdict__outlives_a_crash(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	pull_of("n: 2\n");
	operator_rolls_back(1);
	agent_restarts();
	assert_outcome(CONFIG_HELD);
	assert_shows("n: 1\n");
	pull_of("n: 3\n");
	assert_shows("n: 3\n");
	pull_of("n: 2\n");
	assert_outcome(CONFIG_HELD); /* it is about the bytes */
}

static void operators_verdict__in_a_commit_before_a_crash__is_taken_over(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	pull_of("n: 2\n");
	world.dies_at = 2;
	operator_rolls_back(1);
	agent_restarts();
	assert_generation(3);
	assert_shows("n: 1\n");
	assert_outcome(CONFIG_HELD);
	assert_rejected(REJECTED_BY_OPERATOR, "rolled back by ann");
}

static void probes_verdict__is_not_erased_by_a_rollback_that_a_check_rejects(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("probe: {run: [/bin/true], for: 10s}, check: [/bin/true, '{path}']");
	world_end_probe(NULL);
	pull_of("n: 2\n");
	operator_pins(0); /* keeps it although it is bad */
	world_end_probe("it answers 500");
	world_turn();
	assert_generation(2);
	world.check_says = "no such host";
	operator_rolls_back(1);
	assert_failed("no such host");
	assert_generation(2);
	world.check_says = NULL;
	operator_unpins();
	assert_shows("n: 1\n");
	assert_origin("probe: generation 2 was bad");
}

static void verdict__of_an_unknown_check__rejects_by_unknown(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	pull_of("n: 2\n");
	decisions_reject(
		core.config, core.config->current.version.sha256, "oracle", "", "a vision");
	pull_of("n: 1\n");
	pull_of("n: 2\n");
	assert_rejected(REJECTED_BY_UNKNOWN, "a vision");
}

/* ---- the ledger's file ---- */

static void ledger__that_cannot_be_written__is_reported(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	disk_fails(CALL_RENAME, 1, true, ENOSPC);
	operator_pins(0);
	assert_int_equal(operator.result, -EIO);
	assert_logged("cannot save rejections, pins and overrides: they will be lost on restart");
	disk_recovers();
	pull_of("n: 2\n");
	assert_outcome(CONFIG_HELD);
}

static void ledger__whose_directory_is_unavailable__is_reported(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	disk_fails(CALL_OPEN, 1, true, EMFILE);
	operator_pins(0);
	assert_logged("cannot save rejections, pins and overrides");
	disk_recovers();
}

static void ledger__that_is_damaged__is_empty_and_said(void **state)
{
	char path[SCRATCH_PATH + 64];

	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	operator_pins(0);
	agent_crashes();
	core_path(path, "state/web");
	scratch_write(path, "ledger.json", "harm", 4);
	agent_starts("");
	assert_logged("the ledger cannot be read: pins and rejections are forgotten");
	assert_null(core_status().pin);
}

static void ledger__that_is_unreadable_now__is_tried_again(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	agent_crashes();
	core_make("");
	disk_fails(CALL_READ, 1, true, ENOMEM);
	config_start(core.config, true);
	disk_recovers();
	world_turn();
	assert_shows("n: 1\n");
	assert_generation(1);
}

/* Of an agent whose standard input is closed. */
static void ledger__by_descriptor_0__is_as_good_as_any(void **state)
{
	int kept = fault_begin_zero();
	bool closed;

	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	pull_of("n: 2\n");
	operator_rolls_back(1);
	operator_pins(HOUR);
	agent_restarts();
	agent_crashes();
	closed = fault_end_zero(kept);
	agent_starts("");
	assert_shows("n: 1\n");
	assert_non_null(core_status().pin);
	assert_true(closed);
}

/* ---- signatures ---- */

static struct signer signer;

static void server_signs(const char *text, const char *comment)
{
	const struct signer_job job = {.document = text,
		.len = strlen(text),
		.comment = comment,
		.comment_len = strlen(comment)};
	char file[SIGNER_FILE];
	size_t len = signer_file(&signer, &job, file);

	server_has(text);
	world_put_bytes("/web.yaml.minisig", file, len);
}

static void agent_verifies(void)
{
	char extra[128];

	snprintf(extra, sizeof(extra), "verify: {public_key: \"%s\"}", signer.text);
	agent_starts(extra);
}

static int set_up_signer(void **state)
{
	signer_init(&signer, 1);
	return core_set_up(state);
}

static int tear_down_signer(void **state)
{
	signer_fini(&signer);
	return core_tear_down(state);
}

static void signature__that_is_missing_wrong_or_late__rejects_until_it_is_there(void **state)
{
	(void)state;
	server_signs("n: 1\n", "");
	agent_verifies();
	assert_shows("n: 1\n");
	pull_of("n: 2\n");
	assert_rejected(REJECTED_BY_SIGNATURE, "is not of this document");
	world_put("/web.yaml.minisig", NULL);
	pull();
	assert_rejected(REJECTED_BY_SIGNATURE, "has no signature");
	server_signs("n: 2\n", "");
	pull();
	assert_shows("n: 2\n");
	assert_int_equal(core_status().rejections_by[CHECK_SIGNATURE], 2);
}

static void signature__that_is_new_for_the_current_bytes__changes_nothing(void **state)
{
	(void)state;
	server_signs("n: 1\n", "");
	agent_verifies();
	server_signs("n: 1\n", "rev=7");
	pull();
	assert_shows("n: 1\n");
	pull();
	assert_outcome(CONFIG_UNCHANGED);
}

static void older_rev__is_rejected_also_after_a_restart(void **state)
{
	(void)state;
	server_signs("n: 1\n", "rev=5");
	agent_verifies();
	server_signs("n: 2\n", "rev=4");
	pull();
	assert_rejected(REJECTED_BY_SIGNATURE, "rev=5 was accepted before");
	agent_restarts();
	assert_rejected(REJECTED_BY_SIGNATURE, "rev=5 was accepted before");
	server_signs("n: 3\n", "rev=6");
	pull();
	assert_shows("n: 3\n");
}

static void older_rev__after_a_crash_between_commit_and_ledger__is_rejected(void **state)
{
	(void)state;
	server_signs("n: 1\n", "rev=5");
	agent_verifies();
	server_signs("n: 2\n", "rev=9");
	world.dies_at = 4; /* visible, and not in the ledger */
	pull();
	assert_shows("n: 2\n");
	server_signs("n: 3\n", "rev=7");
	agent_restarts();
	assert_shows("n: 2\n");
	assert_rejected(REJECTED_BY_SIGNATURE, "rev=9 was accepted before");
}

static void older_rev__after_a_commit_that_was_not_shown__is_rejected(void **state)
{
	(void)state;
	server_signs("n: 1\n", "rev=5");
	agent_verifies();
	server_signs("n: 2\n", "rev=9");
	snapshot_is_blocked();
	pull();
	snapshot_is_free();
	server_signs("n: 3\n", "rev=7");
	pull();
	assert_rejected(REJECTED_BY_SIGNATURE, "rev=9 was accepted before");
}

static void older_rev__when_the_operator_forgets_the_revs__is_accepted(void **state)
{
	(void)state;
	server_signs("n: 1\n", "rev=5");
	agent_verifies();
	server_signs("n: 2\n", "rev=4");
	pull();
	assert_true(config_forget_revs(core.config));
	world_turn();
	pull();
	assert_shows("n: 2\n");
	assert_true(config_forget_revs(core.config));
	assert_false(config_forget_revs(core.config));
}

static void signature__that_expires_while_it_is_current__makes_it_stale(void **state)
{
	char comment[64];

	(void)state;
	snprintf(comment, sizeof(comment), "expires=%lld", (long long)(world.wall_ms / 1000 + 100));
	server_signs("n: 1\n", comment);
	agent_verifies();
	assert_state("ok");
	assert_int_equal(status_readers_stale_ms(core.config), 100 * SECOND);
	world_advance(99 * SECOND);
	assert_state("ok");
	world_advance(2 * SECOND);
	assert_state("stale");
	assert_shows("n: 1\n");
	assert_int_equal(status_readers_stale_ms(core.config), 1);
	agent_restarts();
	assert_state("stale");
	assert_shows("n: 1\n");
	pull();
	assert_outcome(CONFIG_FAILED);
	assert_string_equal(
		core_status().last_error, "the signature of the current version has expired");
	assert_logged("rejected by the signature: keeping the current version");
	server_signs("n: 2\n", comment);
	pull();
	assert_rejected(REJECTED_BY_SIGNATURE, "its signature has expired");
}

/* 1700000000 is now. Afterwards the clock is right, or nearly. */
static void reject_by_a_clock_that_is_ahead(void)
{
	server_signs("n: 1\n", "");
	agent_verifies();
	world.wall_ms += 100 * DAY;
	server_signs("n: 2\n", "expires=1700600000");
	pull();
	assert_shows("n: 1\n");
	assert_rejected(REJECTED_BY_SIGNATURE, "has expired");
	world.wall_ms -= 99 * DAY;
}

static void signature__that_had_expired_by_a_clock_that_was_ahead__is_good_when_it_is_right(
	void **state)
{
	(void)state;
	reject_by_a_clock_that_is_ahead();
	pull();
	assert_shows("n: 2\n");
	assert_false(core_status().rejected);
}

static void signature__that_had_expired_by_a_clock_that_was_ahead__is_good_after_a_restart(
	void **state)
{
	(void)state;
	reject_by_a_clock_that_is_ahead();
	agent_restarts();
	assert_shows("n: 2\n");
}

static void signature__by_a_key_that_was_revoked__fails_each_pull_until_it_is_signed_again(
	void **state)
{
	struct signer revoked = signer;

	(void)state;
	server_signs("n: 1\n", "");
	agent_verifies();
	assert_state("ok");
	signer_init(&signer, 2);
	agent_crashes();
	agent_verifies();
	pull();
	assert_outcome(CONFIG_FAILED);
	assert_state("failing");
	assert_shows("n: 1\n");
	assert_non_null(strstr(core_status().last_error, "is not by one of the public keys"));
	assert_logged("rejected by the signature: keeping the current version");
	server_signs("n: 1\n", "");
	pull();
	assert_state("ok");
	assert_outcome(CONFIG_PUBLISHED);
	pull();
	assert_outcome(CONFIG_UNCHANGED);
	signer_fini(&revoked);
}

static void overrides__of_another_value__differ(void **state)
{
	(void)state;
	server_has("n: 1\nm: 1\n");
	agent_starts("");
	operator_overrides("n", "7", HOUR);
	operator_overrides("n", "8", HOUR);
	assert_shows("n: 8\nm: 1\n");
	assert_false(decisions_overrides_differ(core.config));
	free(core.config->decisions.ledger->overrides[0].key);
	core.config->decisions.ledger->overrides[0].key = strdup("m");
	assert_true(decisions_overrides_differ(core.config));
	config_refresh(core.config, false);
	world_turn();
	assert_shows("n: 1\nm: 8\n");
	assert_origin("the overrides have changed");
}

static void expiry__of_a_retiring_config__waits_for_the_next_life(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	operator_pins(10 * SECOND);
	assert_true(config_retire(core.config, NULL, NULL));
	decisions_expire(core.config);
	world_advance(MINUTE);
	assert_not_logged("the pin has expired");
}

static void expiry__without_a_ledger__is_none(void **state)
{
	(void)state;
	core_make("");
	decisions_expire(core.config);
	assert_null(core.config->decisions.ledger);
}

/* ---- when it ends ---- */

static void pin__ends_a_moment_after_its_time(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	operator_pins(10 * SECOND);
	world_advance(10 * SECOND);
	assert_non_null(core_status().pin);
	world_advance(1);
	assert_null(core_status().pin);
	assert_line("<6>the pin has expired config=web");
}

static void expiry__when_the_clock_jumps__is_seen_after_a_minute(void **state)
{
	unsigned requests;

	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	operator_pins(HOUR);
	requests = world.requests;
	world.wall_ms += 2 * HOUR;
	world_advance(MINUTE);
	assert_non_null(core_status().pin);
	world_advance(1);
	assert_null(core_status().pin);
	assert_int_equal(world.requests, requests + 1); /* what it held is asked for at once */
	operator_pins(MINUTE + 2);
	world.wall_ms += 2 * HOUR;
	world_advance(MINUTE);
	assert_non_null(core_status().pin);
	operator_unpins();
	operator_pins(MINUTE - 2);
	world_advance(MINUTE - 2);
	assert_non_null(core_status().pin);
	world_advance(1);
	assert_null(core_status().pin);
}

static void expiry__that_passed_while_the_agent_was_down__is_at_once(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	operator_pins(10 * SECOND);
	agent_is_down(MINUTE);
	agent_starts("");
	assert_non_null(core_status().pin);
	world_advance(1);
	assert_null(core_status().pin);
}

static void expiry__of_what_has_no_end__needs_no_timer(void **state)
{
	struct wheel_timer *expiry;

	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	expiry = &core.config->decisions.expiry.timer;
	assert_int_not_equal(wheel_timer_state(expiry), WHEEL_SCHEDULED);
	operator_pins(10 * SECOND);
	assert_int_equal(wheel_timer_state(expiry), WHEEL_SCHEDULED);
	operator_pins(0);
	assert_int_not_equal(wheel_timer_state(expiry), WHEEL_SCHEDULED);
}

static void expiry__of_one_decision__leaves_the_others(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	operator_pins(HOUR);
	operator_overrides("n", "7", 2 * HOUR);
	operator_suspends(10 * SECOND);
	world_advance(11 * SECOND);
	assert_line("<6>the suspension has expired config=web");
	assert_not_logged("the pin has expired");
	assert_not_logged("an override has expired");
	assert_non_null(core_status().pin);
	assert_int_equal(overrides_left(), 1);
	world_advance(HOUR);
	assert_line("<6>the pin has expired config=web");
	assert_int_equal(core_count_log("the suspension has expired"), 1);
	world_advance(HOUR);
	assert_line("<6>an override has expired config=web");
	agent_restarts();
	assert_int_equal(overrides_left(), 0);
	assert_null(core_status().pin);
}

/* ---- the file ---- */

static void ledger__that_was_not_written__is_written_by_the_next_run(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	disk_fails(CALL_RENAME, 1, true, ENOSPC);
	operator_pins(0);
	assert_logged("<3>cannot save rejections, pins and overrides: they will be lost on restart "
		      "config=web "
		      "why=");
	assert_logged("No space left on device");
	disk_recovers();
	pull();
	agent_restarts();
	assert_non_null(core_status().pin);
}

static void ledger__whose_directory_is_unavailable__says_which(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	disk_fails(CALL_OPEN, 1, true, EMFILE);
	operator_pins(0);
	disk_recovers();
	assert_line("<3>cannot save rejections, pins and overrides: they will be lost on restart "
		    "config=web "
		    "why=\"the state directory: Too many open files\"");
	assert_true(core.config->decisions.unsaved);
	assert_non_null(core.config->decisions.unsaved_note);
	operator_unpins();
	assert_false(core.config->decisions.unsaved);
	assert_null(core.config->decisions.unsaved_note);
}

static void ledger__that_cannot_be_written_at_each_pull__is_said_once_a_minute(void **state)
{
	unsigned lines;

	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	disk_fails(CALL_RENAME, 1, true, ENOSPC);
	operator_pins(0);
	lines = core_count_log("cannot save rejections");
	assert_int_equal(lines, 1);
	for (int i = 0; i < 5; i++)
		pull();
	assert_int_equal(core_count_log("cannot save rejections"), lines);
	disk_recovers();
	pull();
	assert_null(core.config->decisions.unsaved_note);
}

static void ledger__that_cannot_be_read__is_waited_for_ten_runs(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	operator_pins(0);
	agent_crashes();
	core_make("");
	disk_fails(CALL_READ, 1, true, EIO);
	config_start(core.config, true);
	assert_error("the ledger: Input/output error");
	for (int i = 0; i < 20 && !core_count_log("pins and rejections are forgotten"); i++)
		pull();
	disk_recovers();
	assert_int_equal(core.config->run.number, 10);
	assert_line("<3>the ledger cannot be read: pins and rejections are forgotten config=web");
}

static void ledger__that_is_lost__is_made_from_the_newest_state_file(void **state)
{
	char path[SCRATCH_PATH + 64];

	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	pull_of("n: 2\n");
	operator_rolls_back(1);
	agent_crashes();
	core_path(path, "state/web/ledger.json");
	assert_int_equal(unlink(path), 0);
	agent_starts("");
	assert_shows("n: 1\n");
	assert_outcome(CONFIG_HELD);
	assert_rejected(REJECTED_BY_OPERATOR, "rolled back by ann: pages are slow");
}

static void ledger__that_is_lost_after_a_probes_rollback__still_rejects(void **state)
{
	char path[SCRATCH_PATH + 64];

	(void)state;
	server_has("n: 1\n");
	agent_starts("probe: {run: [/bin/true], for: 10s}");
	world_end_probe(NULL);
	pull_of("n: 2\n");
	world_end_probe("it answers 500");
	world_turn();
	assert_generation(3);
	agent_crashes();
	core_path(path, "state/web/ledger.json");
	assert_int_equal(unlink(path), 0);
	agent_starts("probe: {run: [/bin/true], for: 10s}");
	assert_shows("n: 1\n");
	assert_rejected(REJECTED_BY_PROBE, "it answers 500");
	assert_int_equal(core.config->decisions.ledger->proven, 3);
	assert_false(world.probe.running);
}

/* The verdict is in memory alone when the rollback is committed, and the agent dies then. */
static void verdict__that_the_disk_did_not_take__is_in_the_next_state_file(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("probe: {run: [/bin/true], for: 10s}, check: [/bin/true, '{path}']");
	world_end_probe(NULL);
	disk_fails(CALL_RENAME, 1, false, EIO);
	world.check_says = "no such host";
	pull_of("n: bad\n");
	assert_true(core.config->decisions.unsaved);
	world.check_says = NULL;
	world.dies_at = 3; /* after the ledger and the state file */
	fault.nth = 2;     /* the ledger is not written again by this run */
	pull_of("n: 2\n");
	agent_restarts();
	assert_generation(2);
	pull_of("n: bad\n");
	assert_rejected(CHECK_PROGRAM, "no such host");
}

static void ledger__that_is_not_read__has_no_verdicts(void **state)
{
	(void)state;
	core_make("");
	assert_null(decisions_find_verdict(core.config, "x"));
	assert_int_equal(decisions_verdict(core.config, "x"), VERDICT_FREE);
	assert_false(decisions_overrides_differ(core.config));
}

/* ---- verdicts ---- */

static void harmful_version__with_other_overrides__is_harmful_still(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("probe: {run: [/bin/true], for: 10s}");
	world_end_probe(NULL);
	pull_of("n: 2\n");
	operator_pins(0);
	world_end_probe("it answers 500");
	world_turn();
	operator_overrides("m", "1", HOUR);
	assert_done();
	assert_generation(3);
	assert_verdicts(1);
	agent_restarts();
	assert_verdicts(1);
	operator_unpins();
	assert_shows("n: 1\nm: 1\n");
}

static void rollback__to_the_same_bytes__rejects_nothing(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	operator_overrides("m", "1", HOUR);
	assert_generation(2);
	operator_rolls_back(1);
	assert_done();
	assert_generation(3);
	assert_verdicts(0);
	pull();
	assert_outcome(CONFIG_UNCHANGED);
}

static void rollback__without_a_probe__proves_nothing(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	pull_of("n: 2\n");
	operator_rolls_back(1);
	assert_int_equal(core.config->decisions.ledger->proven, 0);
}

static void verdict__has_its_check_rules_moment_and_reason(void **state)
{
	const struct ledger_verdict *v;

	(void)state;
	server_has("n: 1\n");
	agent_starts("guard: {require: [n]}");
	world_advance(5 * SECOND);
	pull_of("m: 1\n");
	assert_verdicts(1);
	v = &core.config->decisions.ledger->verdicts[0];
	assert_string_equal(v->check, "guard");
	assert_string_equal(v->checks, verify_id(core.config->decisions.checks));
	assert_int_equal(v->at_ms, world.wall_ms);
	assert_string_equal(v->sha256, core.config->latest.candidate->version.sha256);
	assert_non_null(strstr(v->why, "the required key n is not there"));
	agent_restarts();
	assert_verdicts(1); /* it was saved at once */
}

static void verdicts__when_the_rules_cannot_be_read__do_not_count(void **state)
{
	char schema[SCRATCH_PATH + 64];

	(void)state;
	snprintf(schema, sizeof(schema), "schema: %s/schema.json", core.dir);
	scratch_write(core.dir, "schema.json", "{\"required\": [\"n\"]}", 19);
	server_has("n: 1\n");
	agent_starts(schema);
	pull_of("m: 1\n");
	assert_rejected(CHECK_SCHEMA, "");
	assert_false(decisions_read_rules(core.config));
	scratch_write(core.dir, "schema.json", "{", 1);
	assert_true(decisions_read_rules(core.config));
	assert_not_rejected();
	assert_false(decisions_read_rules(core.config));
	scratch_write(core.dir, "schema.json", "{\"required\": [\"n\"]}", 19);
	assert_true(decisions_read_rules(core.config));
	assert_rejected(CHECK_SCHEMA, "");
}

static void forgiven__are_the_verdicts_of_checks_alone(void **state)
{
	unsigned requests;
	struct ledger *l;

	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	l = core.config->decisions.ledger;
	requests = world.requests;
	decisions_reject(core.config, "aa", "probe", "", "bad");
	decisions_reject(core.config, "bb", "operator", "", "bad");
	assert_false(decisions_forgive_checks(core.config));
	world_turn();
	assert_int_equal(world.requests, requests);
	decisions_reject(core.config, "cc", "guard", "x", "bad");
	decisions_reject(core.config, "dd", "schema", "x", "bad");
	assert_true(decisions_forgive_checks(core.config));
	assert_verdicts(2);
	assert_string_equal(l->verdicts[0].sha256, "aa");
	assert_string_equal(l->verdicts[1].sha256, "bb");
	world_turn();
	assert_int_equal(world.requests, requests + 1);
}

/* ---- what a state file says ---- */

static void decisions_of_a_state_file__are_adopted_if_they_are_newer(void **state)
{
	struct version v = {.generation = 5};
	char none[] = "", unknown[] = "harm";

	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	operator_overrides("n", "7", HOUR);
	assert_int_equal(decisions_adopt(core.config, &v), 0); /* it says nothing */
	assert_int_equal(overrides_left(), 1);
	v.decisions = unknown;
	assert_int_equal(decisions_adopt(core.config, &v), -EBADMSG);
	assert_line("<3>the decisions in the state file are not known config=web why=\"Bad "
		    "message\"");
	assert_int_equal(overrides_left(), 1);
	v.decisions = none;
	v.generation = 1;
	assert_int_equal(decisions_adopt(core.config, &v), 0); /* of an older one */
	assert_int_equal(overrides_left(), 1);
	v.generation = 5;
	assert_int_equal(decisions_adopt(core.config, &v), 1);
	assert_int_equal(overrides_left(), 0);
}

static void pin__that_moves_in_a_state_file__keeps_who_why_and_until_when(void **state)
{
	int64_t until_ms;

	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	pull_of("n: 2\n");
	operator_pins(HOUR);
	until_ms = core_status().pin->until_ms;
	world.dies_at = 2;
	operator_rolls_back(1);
	agent_restarts();
	assert_generation(3);
	assert_int_equal(core_status().pin->until_ms, until_ms);
	assert_string_equal(core_status().pin->by, "ann");
	assert_string_equal(core_status().pin->reason, "release day");
	assert_string_equal(core_status().pin->sha256, core.config->current.version.sha256);
}

static void pin__of_other_bytes_than_were_not_published__stays(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	decisions_return_pin(core.config, "x"); /* there is none */
	operator_pins(0);
	decisions_return_pin(core.config, "x");
	decisions_return_pin(core.config, core.config->current.version.sha256);
	assert_not_logged("the version that was to be published was not");
	snprintf(core.config->decisions.ledger->pin.sha256, DIGEST_HEX, "x");
	decisions_return_pin(core.config, "x");
	assert_line("<4>pinned: the version that was to be published was not: the current one is "
		    "kept config=web generation=1");
	assert_string_equal(core_status().pin->sha256, core.config->current.version.sha256);
	agent_restarts();
	assert_string_equal(core_status().pin->sha256, core.config->current.version.sha256);
}

static void pin__that_is_dropped__is_said_with_who_made_it(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	operator_pins(0);
	decisions_drop_pin(core.config, "it is dropped");
	assert_line("<3>it is dropped config=web by=ann");
	assert_null(core_status().pin);
	agent_restarts();
	assert_null(core_status().pin);
}

static void overrides__when_they_are_copied__are_nothing_else(void **state)
{
	struct ledger *copy;

	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	operator_overrides("n", "7", HOUR);
	operator_pins(0);
	decisions_reject(core.config, "aa", "probe", "", "bad");
	copy = decisions_copy_overrides(core.config->decisions.ledger);
	assert_non_null(copy);
	assert_int_equal(copy->override_count, 1);
	assert_string_equal(copy->overrides[0].key, "n");
	assert_null(copy->pin.by);
	assert_int_equal(copy->verdict_count, 0);
	ledger_free(copy);
}

/* ---- revs ---- */

static void rev__when_the_ledger_is_lost__is_known_from_the_newest_state_file(void **state)
{
	char path[SCRATCH_PATH + 64];

	(void)state;
	server_signs("n: 1\n", "rev=5");
	agent_verifies();
	server_signs("n: 2\n", "rev=6");
	pull();
	operator_overrides("m", "1", HOUR); /* another state file, of the same signature */
	assert_generation(3);
	agent_crashes();
	core_path(path, "state/web/ledger.json");
	assert_int_equal(unlink(path), 0);
	core_path(path, "state/web/00000000000000000002");
	assert_int_equal(unlink(path), 0);
	server_signs("n: 3\n", "rev=5");
	agent_verifies();
	assert_rejected(REJECTED_BY_SIGNATURE, "rev=6 was accepted before");
}

static void revs__that_an_operator_forgets__are_forgotten_for_good(void **state)
{
	(void)state;
	server_signs("n: 1\n", "rev=5");
	agent_verifies();
	assert_true(config_forget_revs(core.config));
	agent_restarts();
	server_signs("n: 2\n", "rev=4");
	pull();
	assert_shows("n: 2\n");
}

int main(void)
{
#define SIGNED(name) cmocka_unit_test_setup_teardown(name, set_up_signer, tear_down_signer)
	const struct CMUnitTest tests[] = {
		CORE_TEST(pin__outlives_a_crash_and_holds),
		CORE_TEST(pin__holds_a_forced_pull_too),
		CORE_TEST(pin__ends_by_itself_and_what_it_held_is_published),
		CORE_TEST(pin__that_ended_while_the_agent_was_down__holds_nothing),
		CORE_TEST(pin__when_the_clock_jumps_ahead__ends_within_a_minute),
		CORE_TEST(pin__asked_while_the_disk_takes_a_version_in_strict__is_asked_again),
		CORE_TEST(pin__in_strict_while_the_disk_heals__is_about_the_current_version),
		CORE_TEST(pin__that_names_bytes_which_are_gone__is_dropped_at_the_start),
		CORE_TEST_DISK(pin__asked_while_the_disk_takes_a_version__is_about_that_one),
		CORE_TEST_DISK(
			pin__asked_while_the_disk_takes_a_version_that_fails__is_about_the_old_one),
		CORE_TEST(pin__holds_what_was_saved_before_but_never_shown__over_a_restart),
		CORE_TEST(pin__when_the_stored_bytes_are_damaged__lets_the_same_bytes_come_again),
		CORE_TEST(pin__moves_with_an_operators_rollback),
		CORE_TEST(pin__that_moved_in_a_commit_before_a_crash__is_moved_at_the_start),
		CORE_TEST(override__ends_by_itself_as_a_version_of_its_own),
		CORE_TEST(override__that_expires_when_the_disk_is_bad__goes_as_soon_as_it_can),
		CORE_TEST(override__stays_over_new_versions_and_restarts),
		CORE_TEST(override__that_ended_while_the_agent_was_down__is_a_version_of_its_own),
		CORE_TEST(
			override__that_ended_while_the_agent_was_down__with_once__is_dropped_at_once),
		CORE_TEST(override__when_it_made_a_version_bad__is_forgiven_with_it),
		CORE_TEST(override__is_in_what_is_healed),
		CORE_TEST(override__in_a_commit_before_a_crash__is_taken_over_at_the_start),
		CORE_TEST(override__whose_ledger_was_not_written_before_a_crash__is_taken_over),
		CORE_TEST(override__that_expires_during_a_step__does_not_come_back_with_it),
		CORE_TEST(operators_verdict__outlives_a_crash),
		CORE_TEST(operators_verdict__in_a_commit_before_a_crash__is_taken_over),
		CORE_TEST(probes_verdict__is_not_erased_by_a_rollback_that_a_check_rejects),
		CORE_TEST(verdict__of_an_unknown_check__rejects_by_unknown),
		CORE_TEST(ledger__that_cannot_be_written__is_reported),
		CORE_TEST(ledger__whose_directory_is_unavailable__is_reported),
		CORE_TEST(ledger__that_is_damaged__is_empty_and_said),
		CORE_TEST(ledger__that_is_unreadable_now__is_tried_again),
		CORE_TEST(ledger__by_descriptor_0__is_as_good_as_any),
		SIGNED(signature__that_is_missing_wrong_or_late__rejects_until_it_is_there),
		SIGNED(signature__that_is_new_for_the_current_bytes__changes_nothing),
		SIGNED(older_rev__is_rejected_also_after_a_restart),
		SIGNED(older_rev__after_a_crash_between_commit_and_ledger__is_rejected),
		SIGNED(older_rev__after_a_commit_that_was_not_shown__is_rejected),
		SIGNED(older_rev__when_the_operator_forgets_the_revs__is_accepted),
		SIGNED(signature__that_expires_while_it_is_current__makes_it_stale),
		SIGNED(signature__that_had_expired_by_a_clock_that_was_ahead__is_good_when_it_is_right),
		SIGNED(signature__that_had_expired_by_a_clock_that_was_ahead__is_good_after_a_restart),
		SIGNED(signature__by_a_key_that_was_revoked__fails_each_pull_until_it_is_signed_again),
		CORE_TEST(overrides__of_another_value__differ),
		CORE_TEST(expiry__of_a_retiring_config__waits_for_the_next_life),
		CORE_TEST(expiry__without_a_ledger__is_none),
		CORE_TEST(override__that_expires_while_suspended__ends_nothing_else),
		CORE_TEST(ledger__of_a_newer_agent__keeps_what_is_not_known_here),
		CORE_TEST(pin__ends_a_moment_after_its_time),
		CORE_TEST(expiry__when_the_clock_jumps__is_seen_after_a_minute),
		CORE_TEST(expiry__that_passed_while_the_agent_was_down__is_at_once),
		CORE_TEST(expiry__of_what_has_no_end__needs_no_timer),
		CORE_TEST(expiry__of_one_decision__leaves_the_others),
		CORE_TEST(ledger__that_was_not_written__is_written_by_the_next_run),
		CORE_TEST(ledger__whose_directory_is_unavailable__says_which),
		CORE_TEST(ledger__that_cannot_be_written_at_each_pull__is_said_once_a_minute),
		CORE_TEST(ledger__that_cannot_be_read__is_waited_for_ten_runs),
		CORE_TEST(ledger__that_is_lost__is_made_from_the_newest_state_file),
		CORE_TEST(ledger__that_is_lost_after_a_probes_rollback__still_rejects),
		CORE_TEST(verdict__that_the_disk_did_not_take__is_in_the_next_state_file),
		CORE_TEST(ledger__that_is_not_read__has_no_verdicts),
		CORE_TEST(harmful_version__with_other_overrides__is_harmful_still),
		CORE_TEST(rollback__to_the_same_bytes__rejects_nothing),
		CORE_TEST(rollback__without_a_probe__proves_nothing),
		CORE_TEST(verdict__has_its_check_rules_moment_and_reason),
		CORE_TEST(verdicts__when_the_rules_cannot_be_read__do_not_count),
		CORE_TEST(forgiven__are_the_verdicts_of_checks_alone),
		CORE_TEST(decisions_of_a_state_file__are_adopted_if_they_are_newer),
		CORE_TEST(pin__that_moves_in_a_state_file__keeps_who_why_and_until_when),
		CORE_TEST(pin__of_other_bytes_than_were_not_published__stays),
		CORE_TEST(pin__that_is_dropped__is_said_with_who_made_it),
		CORE_TEST(overrides__when_they_are_copied__are_nothing_else),
		SIGNED(rev__when_the_ledger_is_lost__is_known_from_the_newest_state_file),
		SIGNED(revs__that_an_operator_forgets__are_forgotten_for_good),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
