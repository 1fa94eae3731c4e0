/*
 * A thousand random histories of signed versions, most of them replays of older ones, with kills at
 * any rename, restarts, and servers that are down: what readers see never goes back, neither in rev
 * nor in generation, and the next version is taken. PULLET_SEED repeats them.
 */
#include "tests/unit/fixture/core.h"
#include "tests/unit/fixture/minisign_signer.h"
#include "tests/unit/fixture/model_random.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HISTORIES 100u
#else
#define HISTORIES 1000u
#endif
#define EVENTS 8

static struct signer signer;
static char extra[128];

static struct history {
	unsigned newest;     /* rev that was signed, */
	unsigned shown;      /* and that readers saw last; 0 = none */
	uint64_t generation; /* highest that was visible */
} history;

static struct {
	unsigned replays, kills, starts, versions;
} count;

/* The pair of this rev: the same bytes each time. */
static void server_offers(unsigned rev)
{
	struct signer_job job = {.comment_len = 0};
	char text[32], comment[32], file[SIGNER_FILE];

	job.document = text;
	job.len = (size_t)snprintf(text, sizeof(text), "n: %u\n", rev);
	job.comment = comment;
	job.comment_len = (size_t)snprintf(comment, sizeof(comment), "rev=%u", rev);
	server_has(text);
	world_put_bytes("/web.yaml.minisig", file, signer_file(&signer, &job, file));
	count.replays += rev < history.newest;
}

static unsigned read_shown(void)
{
	char path[SCRATCH_PATH + 64], text[64];
	unsigned rev = 0;

	core_path(path, "out");
	if (scratch_read(path, "web.yaml", text, sizeof(text), NULL))
		CHECK(sscanf(text, "n: %u\n", &rev) == 1);
	return rev;
}

static void look(void)
{
	unsigned shown = read_shown();
	uint64_t generation = core.config->current.version.generation;

	CHECK(shown >= history.shown);
	CHECK(shown <= history.newest);
	CHECK(generation == 0 || generation >= history.generation);
	count.versions += shown > history.shown;
	history.shown = shown;
	if (generation)
		history.generation = generation;
}

static void restart(void)
{
	agent_crashes();
	CHECK(read_shown() >= history.shown);
	agent_starts(extra);
	count.starts++;
}

static void take_event(void)
{
	uint64_t kind = random_below(8);

	if (kind < 2)
		server_offers(++history.newest);
	else if (kind < 7)
		server_offers(1 + (unsigned)random_below(history.newest));
	else
		server_is_down();
	if (random_below(3) == 0)
		world.dies_at = 1 + (unsigned)random_below(6);
	pull();
	count.kills += fault.nth != 0;
	if (world.dies_at || fault.nth || random_below(4) == 0)
		restart();
	world_advance(2 * SECOND);
	look();
}

static void histories__of_replays_kills_and_restarts__never_go_back(void **state)
{
	(void)state;
	model_random_start();
	signer_init(&signer, 1);
	snprintf(extra, sizeof(extra), "verify: {public_key: \"%s\"}", signer.text);
	for (; model_random.step < HISTORIES; model_random.step++) {
		core_open(scratch_memory());
		history = (struct history){.newest = 4};
		server_offers(4);
		agent_starts(extra);
		for (unsigned i = 0; i < EVENTS; i++)
			take_event();
		server_offers(++history.newest);
		world_advance(2 * SECOND);
		pull();
		look();
		CHECK(history.shown == history.newest);
		core_close();
	}
	signer_fini(&signer);
	print_message("# %u histories: %u versions seen, %u replays, %u kills, %u starts\n",
		HISTORIES, count.versions, count.replays, count.kills, count.starts);
	assert_in_range(count.replays, 2 * HISTORIES, EVENTS * HISTORIES);
	assert_in_range(count.kills, HISTORIES / 4, EVENTS * HISTORIES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(histories__of_replays_kills_and_restarts__never_go_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
