/* How many descriptors a configuration needs, part by part, at the start and at a reload. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>

#include <cmocka.h>

#include "base/loop.h"
#include "descriptor_budget.h"
#include "push/subscriber.h"
#include "tests/unit/fixture/scratch.h"

#define FILES 13 /* of the state, and open for a moment */
#define FILE_PLACE ", file: /nowhere/w"

static struct descriptors_need asked[8];
static size_t asked_count;

int descriptors_check(const struct descriptors_need *needs, size_t count, char why[DESCRIPTORS_WHY])
{
	assert_true(count <= sizeof(asked) / sizeof(asked[0]));
	memcpy(asked, needs, count * sizeof(*needs));
	asked_count = count;
	snprintf(why, DESCRIPTORS_WHY, "asked");
	return -EMFILE;
}

static void check_asked(const size_t counts[6], const char *file, int line)
{
	static const char *const names[] = {"event loop", "state and files", "requests", "programs",
		"control socket", "push channel"};

	assert_int_equal(asked_count, 6);
	for (size_t i = 0; i < 6; i++)
		if (strcmp(asked[i].what, names[i]) != 0 || asked[i].count != counts[i]) {
			print_error("%s needs %zu, not %zu\n", asked[i].what, asked[i].count,
				counts[i]);
			_fail(file, line);
		}
}

#define assert_asked(...) check_asked((const size_t[6]){__VA_ARGS__}, __FILE__, __LINE__)

/* The settings of these servers, configs and other parts. */
static struct settings *make(const char *more, const char *servers, const char *configs)
{
	return scratch_settings("%sservers:\n%sconfigs:\n%s", more, servers, configs);
}

#define ONE "  m: {urls: ['http://127.0.0.1:1'], max_in_flight: 3}\n"

static void budget__before_and_after_the_configuration_is_read(void **state)
{
	static const struct {
		const char *more, *servers, *configs;
		bool once;
		size_t expected[6];
	} rows[] = {
		/* as many connections as documents, and at most those in flight */
		{"", ONE, "  w: {from: [{server: m, path: /w}], snapshot: true}\n", false,
			{LOOP_DESCRIPTORS, FILES, 6 + 1, 0, 6, 0}},
		{"", ONE,
			"  w: {from: [{server: m, path: /a}, {server: m, path: /b}], type: yaml, "
			"snapshot: true}\n"
			"  x: {from: [{server: m, path: /c}, {server: m, path: /d}], type: yaml, "
			"snapshot: true}\n",
			false, {LOOP_DESCRIPTORS, FILES, 6 + 3, 0, 6, 0}},
		{"", ONE "  n: {urls: ['http://127.0.0.1:2'], max_in_flight: 2}\n",
			"  w: {from: [{server: m, path: /a}, {server: m, path: /b}], type: yaml, "
			"snapshot: true}\n"
			"  x: {from: [{server: n, path: /c}, {server: n, path: /d}], type: yaml, "
			"snapshot: true}\n",
			false, {LOOP_DESCRIPTORS, FILES, 6 + 4, 0, 6, 0}},
		/* a watch each */
		{"", "  e: {kind: etcd, urls: ['http://127.0.0.1:1'], watch: true}\n",
			"  w: {from: [{server: e, path: /a}, {server: e, path: /b}], type: yaml, "
			"snapshot: true}\n",
			false, {LOOP_DESCRIPTORS, FILES, 6 + 2 + 2, 0, 6, 0}},
		/* programs of any kind */
		{"", ONE,
			"  v: {from: [{server: m, path: /v}], snapshot: true}\n"
			"  w: {from: [{server: m, path: /w}], type: yaml, snapshot: true, check: "
			"{run: [/bin/true, '{path}']}}\n",
			false, {LOOP_DESCRIPTORS, FILES, 6 + 2, 10, 6, 0}},
		{"", ONE,
			"  w: {from: [{server: m, path: /w}], type: yaml, snapshot: true, reload: "
			"{run: [/bin/true]}}\n"
			"  x: {from: [{server: m, path: /v}], snapshot: true}\n",
			false, {LOOP_DESCRIPTORS, FILES, 6 + 2, 10, 6, 0}},
		{"", ONE,
			"  w: {from: [{server: m, path: /w}], type: yaml, snapshot: true, probe: "
			"{run: [/bin/true], for: 10s, every: 1s}}\n",
			false, {LOOP_DESCRIPTORS, FILES, 6 + 1, 10, 6, 0}},
		{"", ONE,
			"  w: {from: [{server: m, path: /w}], type: yaml" FILE_PLACE
			", format: {run: [/bin/true]}}\n",
			false, {LOOP_DESCRIPTORS, FILES, 6 + 1, 10, 6, 0}},
		/* who is served */
		{"agent: {listen: '127.0.0.1:1'}\n", ONE,
			"  w: {from: [{server: m, path: /w}], snapshot: true}\n", false,
			{LOOP_DESCRIPTORS, FILES, 6 + 1, 0, 6 + 2, 0}},
		{"report: {server: e}\n", ONE "  e: {kind: etcd, urls: ['http://127.0.0.1:2']}\n",
			"  w: {from: [{server: m, path: /w}], snapshot: true}\n", false,
			{LOOP_DESCRIPTORS, FILES, 6 + 1, 0, 6 + 2, 0}},
		{"push:\n- {endpoint: 'ipc:///nowhere/a'}\n- {endpoint: 'ipc:///nowhere/b'}\n", ONE,
			"  w: {from: [{server: m, path: /w}], snapshot: true}\n", false,
			{LOOP_DESCRIPTORS, FILES, 6 + 1, 0, 6, PUSH_DESCRIPTORS(2)}},
		{"agent: {listen: '127.0.0.1:1'}\npush:\n- {endpoint: 'ipc:///nowhere/a'}\n", ONE,
			"  w: {from: [{server: m, path: /w}], snapshot: true}\n", true,
			{LOOP_DESCRIPTORS, FILES, 6 + 1, 0, 0, 0}},
	};
	char why[DESCRIPTORS_WHY];

	(void)state;
	assert_int_equal(descriptor_budget_check(NULL, false, why), -EMFILE);
	assert_string_equal(why, "asked");
	assert_asked(LOOP_DESCRIPTORS, FILES, 0, 0, 0, 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct settings *s = make(rows[i].more, rows[i].servers, rows[i].configs);

		assert_int_equal(descriptor_budget_check(s, rows[i].once, why), -EMFILE);
		check_asked(rows[i].expected, __FILE__, __LINE__);
		settings_free(s);
	}
}

static void budget__of_a_reload__is_what_it_needs_beyond(void **state)
{
	static const char
		web[] = "  w: {from: [{server: m, path: /w}], snapshot: true}\n",
		both[] = "  w: {from: [{server: m, path: /w}], snapshot: true}\n"
			 "  x: {from: [{server: m, path: /x}], type: yaml, snapshot: true, "
			 "reload: {run: [/bin/true]}}\n",
		push[] = "push:\n- {endpoint: 'ipc:///nowhere/a'}\n";
	struct settings *little = make("", ONE, web), *much = make(push, ONE, both);
	struct settings_diff diff = {.push = true};
	char why[DESCRIPTORS_WHY];

	(void)state;
	assert_int_equal(descriptor_budget_check_next(little, much, &diff, why), -EMFILE);
	assert_asked(0, 8, 1, 10, 0, PUSH_DESCRIPTORS(1));
	assert_int_equal(descriptor_budget_check_next(much, little, &diff, why), -EMFILE);
	assert_asked(0, 0, 0, 0, 0, 0);
	/* another push channel beside the old one, or the same */
	assert_int_equal(descriptor_budget_check_next(much, much, &diff, why), -EMFILE);
	assert_asked(0, 8, 0, 0, 0, PUSH_DESCRIPTORS(1));
	diff.push = false;
	assert_int_equal(descriptor_budget_check_next(much, much, &diff, why), -EMFILE);
	assert_asked(0, 0, 0, 0, 0, 0);
	settings_free(little);
	settings_free(much);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(budget__before_and_after_the_configuration_is_read),
		cmocka_unit_test(budget__of_a_reload__is_what_it_needs_beyond),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
