/* The last events of configs: what is noted, for whom, and within which bounds. */
#include "tests/unit/fixture/core.h"

#include "config/events.h"

static char answer[131072];
static struct events *events;

static int set_up(void **state)
{
	int r = core_set_up(state);

	events = events_new();
	assert_non_null(events);
	core.env.events = events;
	return r;
}

static int tear_down(void **state)
{
	int r = core_tear_down(state);

	events_free(events);
	return r;
}

static const char *ask(enum audience audience)
{
	struct buffer out;

	buffer_init(&out, sizeof(answer));
	assert_int_equal(events_write(core.config, audience, &out), 0);
	snprintf(answer, sizeof(answer), "%.*s", (int)out.len, out.data);
	buffer_fini(&out);
	return answer;
}

static size_t count_events(const char *words)
{
	size_t n = 0;

	for (const char *p = ask(AUDIENCE_OPERATOR); (p = strstr(p, words)); p++)
		n++;
	return n;
}

static void begin(const char *extra)
{
	server_has("n: 1\n");
	agent_starts(extra);
}

/* What the last event is. */
static void check_last(const char *words, const char *file, int line)
{
	const char *begin = strstr(ask(AUDIENCE_OPERATOR), "[{"), *end = strchr(answer, '}');

	if (!begin || !end || !memmem(begin, (size_t)(end - begin), words, strlen(words)))
		core_fail(file, line, "\"%s\" is not the last: %s", words, answer);
}

#define assert_last(words) check_last(words, __FILE__, __LINE__)

static void each__that_happens__is_noted(void **state)
{
	(void)state;
	begin("guard: {require: [n]}, reload: {run: [/bin/true]}, probe: {run: [/bin/true], for: "
	      "10s}");
	assert_int_equal(count_events("\"published\""), 0); /* the history has the start */
	assert_last("\"event\":\"reloaded\",\"generation\":1,\"by\":null,\"text\":null");
	world_end_probe(NULL);
	world_turn();
	assert_last("\"event\":\"probe passed\"");
	config_note_order(core.config, CAUSE_OPERATOR, "ann");
	pull_of("n: 2\n");
	assert_int_equal(
		count_events("\"event\":\"published\",\"generation\":2,\"by\":\"operator\","
			     "\"text\":\"ann\""),
		1);
	world_end_probe("it is down");
	world_turn();
	assert_int_equal(count_events("\"event\":\"probe failed\",\"generation\":2,\"by\":null,"
				      "\"text\":\"it is down\""),
		1);
	assert_int_equal(count_events("\"by\":\"probe\",\"text\":\"probe: generation 2"), 1);
	pull_of("m: 1\n");
	assert_last("\"event\":\"rejected\",\"generation\":3,\"by\":\"guard\",\"text\":\"the "
		    "required key n is not there\"");
	server_is_down();
	pull();
	assert_last("\"event\":\"failed\",\"generation\":3,\"by\":\"unreachable\",\"text\":"
		    "\"/web.yaml: connection refused\"");
	server_recovers();
	pull_of("n: 1\n");
	assert_last("\"event\":\"recovered\"");
	operator_pins(0);
	config_note_decision(core.config, "pinned", "ann", "exam week");
	assert_last("\"event\":\"decided\",\"generation\":3,\"by\":null,\"text\":\"pinned by ann: "
		    "exam week\"");
	pull_of("n: 4\n");
	assert_last("\"event\":\"held\",\"generation\":3,\"by\":\"pin\"");
}

static void same_again__is_counted(void **state)
{
	(void)state;
	begin("");
	server_is_down();
	for (int i = 0; i < 5; i++) {
		world.wall_ms += 1000;
		pull();
	}
	assert_int_equal(count_events("\"event\":\"failed\""), 1);
	assert_last("\"times\":5");
	server_fails(PULL_FAILED, KIND_CAUSE_UNREACHABLE, "no route");
	pull();
	assert_int_equal(count_events("\"event\":\"failed\""), 2);
}

static void text__with_a_value__is_for_operators(void **state)
{
	char quoted[128], sentence[256];

	(void)state;
	begin("");
	snprintf(sentence, sizeof(sentence), "/n must be an integer, but is %s",
		sentence_quote(quoted, sizeof(quoted), "hunter2", 7, "a string"));
	events_note(core.config, EVENT_REJECTED, "schema", sentence);
	assert_non_null(strstr(ask(AUDIENCE_OPERATOR), "but is hunter2"));
	assert_non_null(strstr(ask(AUDIENCE_READER), "but is a string"));
	assert_null(strstr(answer, "hunter2"));
	assert_non_null(strstr(ask(AUDIENCE_PUBLIC),
		"\"by\":\"schema\",\"text\":\"see the control socket for the reason\""));
	assert_null(strstr(answer, "integer"));
}

static void text__that_is_long__is_cut_and_its_value_stays_hidden(void **state)
{
	char value[900], quoted[1100], sentence[1400];

	(void)state;
	begin("");
	memset(value, 'v', sizeof(value));
	snprintf(sentence, sizeof(sentence), "it is %s, and more",
		sentence_quote(quoted, sizeof(quoted), value, sizeof(value), "a text"));
	events_note(core.config, EVENT_FAILED, NULL, sentence);
	assert_non_null(strstr(ask(AUDIENCE_OPERATOR), "vvv"));
	assert_null(strstr(answer, "and more"));
	assert_non_null(strstr(ask(AUDIENCE_READER), "it is a text\""));
	assert_null(strstr(answer, "vvv"));
	memset(sentence, 'x', sizeof(sentence));
	for (size_t i = EVENTS_MAX_TEXT - 1; i < 600; i += 2)
		memcpy(sentence + i, "\xc3\xa9", 2); /* the limit is within the first */
	sentence[600] = '\0';
	events_note(core.config, EVENT_FAILED, NULL, sentence);
	assert_non_null(strstr(ask(AUDIENCE_OPERATOR), "xxx\",\"times\"")); /* no half of it */
}

static void events__of_a_config__are_the_last_50(void **state)
{
	char text[24];

	(void)state;
	begin("");
	for (int i = 0; i < 3 * EVENTS_A_CONFIG; i++) {
		snprintf(text, sizeof(text), "event %d", i);
		events_note(core.config, EVENT_FAILED, NULL, text);
	}
	assert_int_equal(count_events("\"event\":"), EVENTS_A_CONFIG);
	assert_last("event 149");
	assert_non_null(strstr(answer, "event 100\""));
	assert_null(strstr(answer, "event 99\""));
}

/* Of more configs than there is room for: the oldest go first. */
static void events__of_all__are_bounded(void **state)
{
	struct config other = {.env = &core.env};
	struct settings_config settings = {.name = NULL};
	char name[24];

	(void)state;
	begin("");
	events_note(core.config, EVENT_FAILED, NULL, "mine");
	other.settings = &settings;
	settings.name = name;
	for (int i = 0; i < EVENTS_MAX - 1; i++) {
		snprintf(name, sizeof(name), "other-%d", i);
		events_note(&other, EVENT_FAILED, NULL, "theirs");
	}
	assert_int_equal(count_events("mine"), 1);
	snprintf(name, sizeof(name), "one more");
	events_note(&other, EVENT_FAILED, NULL, "theirs");
	assert_int_equal(count_events("mine"), 0);
	events_note(core.config, EVENT_FAILED, NULL, "mine again");
	assert_int_equal(count_events("\"event\":"), 1);
}

static void config__of_a_new_configuration__keeps_its_events(void **state)
{
	(void)state;
	begin("");
	events_note(core.config, EVENT_FAILED, NULL, "before");
	assert_true(config_retire(core.config, NULL, NULL));
	agent_crashes();
	core.env.events = events;
	agent_starts("format: json");
	assert_int_equal(count_events("\"before\""), 1);
	assert_int_equal(count_events("\"by\":\"settings\""), 1);
}

static void agent__without_events__has_none(void **state)
{
	(void)state;
	core.env.events = NULL;
	begin("");
	server_is_down();
	pull();
	assert_string_equal(ask(AUDIENCE_OPERATOR), "{\"name\":\"web\",\"events\":[]}");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each__that_happens__is_noted),
		TEST(same_again__is_counted),
		TEST(text__with_a_value__is_for_operators),
		TEST(text__that_is_long__is_cut_and_its_value_stays_hidden),
		TEST(events__of_a_config__are_the_last_50),
		TEST(events__of_all__are_bounded),
		TEST(config__of_a_new_configuration__keeps_its_events),
		TEST(agent__without_events__has_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
