/* The receipt of one config: which state of several it names, with its reason; its versions. */
#include "tests/unit/fixture/core.h"
#include "tests/unit/fixture/minisign_signer.h"

#include "fleet/config_receipt.h"

static struct receipt_texts texts;

static struct receipt_config receipt_now(void)
{
	struct receipt_config c;

	memset(&c, 0x5a, sizeof(c));
	config_receipt_fill(core.config, &c, &texts);
	assert_string_equal(c.name, "web");
	return c;
}

static void assert_receipt(enum receipt_state state, const char *why)
{
	struct receipt_config c = receipt_now();

	if (c.state != state || strcmp(c.why, why) != 0)
		core_fail(__FILE__, __LINE__, "it is %s: \"%s\", not %s: \"%s\"",
			receipt_state_name(c.state), c.why, receipt_state_name(state), why);
}

/* An etag without its quotes. */
static const char *version_at(const char *path)
{
	static char version[32];

	snprintf(version, sizeof(version), "%.8s", world_find_page(path)->etag + 1);
	return version;
}

static void version__before_the_first_pull__is_none(void **state)
{
	struct receipt_config c;

	(void)state;
	agent_starts("");
	c = receipt_now();
	assert_int_equal(c.state, RECEIPT_WAITING);
	assert_non_null(strstr(c.why, "404"));
	assert_int_equal(c.generation, 0);
	assert_string_equal(c.version, "");
	assert_string_equal(c.others, "");
	assert_string_equal(c.digest, "");
	assert_string_equal(c.rejected, "");
	assert_int_equal(c.pulled_ms, 0);
}

static void version__that_is_published__has_its_names(void **state)
{
	struct receipt_config c;

	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	c = receipt_now();
	assert_receipt(RECEIPT_OK, "");
	assert_int_equal(c.generation, 1);
	assert_string_equal(c.version, version_at("/web.yaml"));
	assert_int_equal(strlen(c.digest), 16);
	assert_memory_equal(c.digest, core.config->current.version.sha256, 16);
	assert_string_equal(c.others, "");
	assert_string_equal(c.rejected, "");
	assert_int_equal(c.pulled_ms, core.config->current.version.pulled_ms);
	assert_true(c.pulled_ms > 0);
}

static void version__of_layers__names_those_behind_the_first(void **state)
{
	struct receipt_config c;
	char others[32];

	(void)state;
	core.from = "[{server: main, path: /web.yaml}, {server: main, path: /b.yaml}, {server: "
		    "main, path: /c.yaml, optional: true}, {server: main, path: /d.yaml}]";
	server_has("n: 1\n");
	world_put("/b.yaml", "m: 1\n");
	world_put("/d.yaml", "o: 1\n");
	agent_starts("");
	c = receipt_now();
	assert_string_equal(c.version, version_at("/web.yaml"));
	snprintf(others, sizeof(others), "%s", version_at("/b.yaml"));
	snprintf(others + strlen(others), sizeof(others) - strlen(others), " %s",
		version_at("/d.yaml"));
	assert_string_equal(c.others, others);
}

static void versions__of_many_layers__are_cut_to_their_room(void **state)
{
	static char from[4096] = "[{server: main, path: /web.yaml}";
	struct receipt_config c;

	(void)state;
	server_has("n: 1\n");
	for (int i = 0; i < 15; i++) {
		char path[32], text[32];
		struct page *p;

		snprintf(path, sizeof(path), "/l%d.yaml", i);
		snprintf(text, sizeof(text), "l%d: 1\n", i);
		p = world_put(path, text);
		/* longer than is shown of one */
		memset(p->etag, 'e', sizeof(p->etag) - 1);
		p->etag[sizeof(p->etag) - 1] = '\0';
		snprintf(from + strlen(from), sizeof(from) - strlen(from),
			", {server: main, path: %s}", path);
	}
	snprintf(from + strlen(from), sizeof(from) - strlen(from), "]");
	core.from = from;
	agent_starts("");
	c = receipt_now();
	assert_int_equal(c.generation, 1);
	assert_in_range(strlen(c.others), 15, RECEIPT_OTHERS - 1);
	assert_in_range(strcspn(c.others, " "), 1, 64);
}

static void version__with_signatures__does_not_name_them(void **state)
{
	static struct signer signer;
	const char *const texts_of[] = {"n: 1\n", "m: 1\n"};
	const char *const paths[] = {"/web.yaml", "/b.yaml"};
	char extra[128], file[SIGNER_FILE];
	struct receipt_config c;

	(void)state;
	signer_init(&signer, 1);
	core.from = "[{server: main, path: /web.yaml}, {server: main, path: /b.yaml}]";
	for (size_t i = 0; i < 2; i++) {
		char comment[32];
		const struct signer_job job = {.document = texts_of[i],
			.len = 5,
			.comment = comment,
			.comment_len =
				(size_t)snprintf(comment, sizeof(comment), "path=%s", paths[i])};
		char path[32];

		snprintf(path, sizeof(path), "%s.minisig", paths[i]);
		world_put(paths[i], texts_of[i]);
		world_put_bytes(path, file, signer_file(&signer, &job, file));
	}
	snprintf(extra, sizeof(extra), "verify: {public_key: \"%s\"}", signer.text);
	agent_starts(extra);
	c = receipt_now();
	assert_receipt(RECEIPT_OK, "");
	assert_string_equal(c.version, version_at("/web.yaml"));
	assert_string_equal(c.others, version_at("/b.yaml"));
	signer_fini(&signer);
}

static void state__of_a_server_that_fails__is_failing_then_stale(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("backoff_bound: 1, timeout: 10s");
	server_is_down();
	pull();
	assert_receipt(RECEIPT_FAILING, core_status().last_error);
	assert_non_null(strstr(texts.why, "connection refused"));
	world_advance(HOUR + 11 * SECOND);
	assert_receipt(RECEIPT_STALE, core_status().last_error);
	assert_int_equal(receipt_now().generation, 1);
}

static void state__of_a_version_that_is_rejected__goes_before_failed_pulls(void **state)
{
	char rejected[32], digest[DIGEST_HEX];

	(void)state;
	assert_int_equal(digest_sha256("m: 1\n", 5, NULL, 0, digest), 0);
	digest[RECEIPT_DIGEST - 1] = '\0';
	server_has("n: 1\n");
	agent_starts("guard: {require: [n]}, backoff_bound: 1, timeout: 10s");
	pull_of("m: 1\n");
	snprintf(rejected, sizeof(rejected), "%s", version_at("/web.yaml"));
	assert_receipt(RECEIPT_REJECTED, "guard: the required key n is not there");
	server_is_down();
	pull();
	assert_receipt(RECEIPT_REJECTED, "guard: the required key n is not there");
	assert_string_equal(receipt_now().rejected, rejected);
	assert_string_equal(receipt_now().rejected_digest, digest);
	assert_int_equal(receipt_now().generation, 1);
	operator_suspends(0);
	assert_int_equal(receipt_now().state, RECEIPT_REJECTED);
}

static void state__of_a_host_that_the_rollout_left_out__is_held(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("rollout: {server: main, path: /rollout.yaml}");
	world_put("/rollout.yaml", "percent: 0\n");
	pull_of("n: 2\n");
	assert_int_equal(receipt_now().state, RECEIPT_HELD);
	assert_memory_equal(texts.why, "rollout: this host is at ", 25);
	assert_string_equal(texts.rejected, version_at("/web.yaml"));
}

static void state__by_an_operator__has_the_name_and_the_reason(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("");
	operator_pins(0);
	assert_receipt(RECEIPT_PINNED, "by ann: release day");
	pull_of("n: 2\n"); /* a version that a pin holds back is no rejected one */
	assert_receipt(RECEIPT_PINNED, "by ann: release day");
	operator_suspends(0);
	assert_receipt(RECEIPT_SUSPENDED, "by ann: move");
	operator_resumes();
	operator.result = config_pin(core.config, 0, "ben", "", operator.why);
	world_turn();
	assert_receipt(RECEIPT_PINNED, "by ben");
	server_is_down();
	pull();
	assert_int_equal(receipt_now().state, RECEIPT_FAILING);
	server_recovers();
	server_has("n: 1\n");
	pull();
	operator_unpins();
	assert_receipt(RECEIPT_OK, "");
}

static void state__while_a_version_is_applied__is_so(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("check: [/bin/true, '{path}']");
	assert_receipt(RECEIPT_OK, "");
	world.programs_hang = true;
	pull_of("n: 2\n");
	assert_receipt(RECEIPT_APPLYING, "");
	world.programs_hang = false;
	world_turn();
	assert_receipt(RECEIPT_OK, "");
}

static void state__of_the_application__is_that_of_its_reload(void **state)
{
	static const struct {
		enum reload_state reload;
		enum receipt_state state;
		const char *why;
	} table[] = {
		{RELOAD_IDLE, RECEIPT_OK, ""},
		{RELOAD_WAITING, RECEIPT_APPLYING, ""},
		{RELOAD_RUNNING, RECEIPT_APPLYING, ""},
		{RELOAD_FAILED, RECEIPT_FAILING, "the reload failed: hook exited with 9"},
	};

	(void)state;
	server_has("n: 1\n");
	agent_starts("reload: {run: [/bin/true]}");
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		world.reload->status.state = table[i].reload;
		world.reload->status.why = "hook exited with 9";
		assert_receipt(table[i].state, table[i].why);
	}
	/* a failed pull says more, and a pin less */
	operator_pins(0);
	world.reload->status.state = RELOAD_FAILED;
	assert_receipt(RECEIPT_FAILING, "the reload failed: hook exited with 9");
	server_is_down();
	pull();
	world.reload->status.state = RELOAD_FAILED;
	assert_receipt(RECEIPT_FAILING, core_status().last_error);
}

static void state__while_the_application_is_probed__is_applying(void **state)
{
	(void)state;
	server_has("n: 1\n");
	agent_starts("probe: {run: [/bin/true], for: 10s}");
	pull_of("n: 2\n");
	assert_true(world.probe.running);
	assert_receipt(RECEIPT_APPLYING, "");
	world_end_probe(NULL);
	world_turn();
	assert_receipt(RECEIPT_OK, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CORE_TEST(version__before_the_first_pull__is_none),
		CORE_TEST(version__that_is_published__has_its_names),
		CORE_TEST(version__of_layers__names_those_behind_the_first),
		CORE_TEST(versions__of_many_layers__are_cut_to_their_room),
		CORE_TEST(version__with_signatures__does_not_name_them),
		CORE_TEST(state__of_a_server_that_fails__is_failing_then_stale),
		CORE_TEST(state__of_a_version_that_is_rejected__goes_before_failed_pulls),
		CORE_TEST(state__of_a_host_that_the_rollout_left_out__is_held),
		CORE_TEST(state__by_an_operator__has_the_name_and_the_reason),
		CORE_TEST(state__while_a_version_is_applied__is_so),
		CORE_TEST(state__of_the_application__is_that_of_its_reload),
		CORE_TEST(state__while_the_application_is_probed__is_applying),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
