/* Names near a wrong one, and the names of snapshots; what an answer of the agent must have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>

#include <cmocka.h>

#include "cli/common/names.h"
#include "cli/common/shape.h"
#include "tests/unit/fixture/scratch.h"

/* ---- names ---- */

static const char *hint(const char *wrong, const char *const *names)
{
	static char text[NAMES_HINT];
	struct names n;

	names_init(&n, wrong);
	for (; *names; names++)
		names_add(&n, *names);
	return names_hint(&n, text);
}

#define HINT(wrong, ...) hint(wrong, (const char *const[]){__VA_ARGS__, NULL})

static void hint__names_the_nearest__or_all__or_how_many(void **state)
{
	const char *many[NAMES_FEW + 2] = {NULL};
	char expected[NAMES_HINT];

	(void)state;
	assert_string_equal(HINT("web", NULL), "there is none");
	assert_string_equal(HINT("web", "billing"), "there is billing");
	assert_string_equal(HINT("web", "billing", "queue"), "there are billing, queue");
	assert_string_equal(HINT("web", "billing", "wep"), "did you mean 'wep'?");
	assert_string_equal(HINT("wbe", "wex", "web"), "did you mean 'web'?");
	assert_string_equal(HINT("web", "wep", "wek"), "did you mean 'wep'?"); /* the first */
	assert_string_equal(HINT("web", "wxyz"), "there is wxyz");
	/* as far as half of the longer name, rounded up */
	assert_string_equal(HINT("abcd", "abxy"), "did you mean 'abxy'?");
	assert_string_equal(HINT("abcd", "axyz"), "there is axyz");
	assert_string_equal(HINT("abc", "axy"), "did you mean 'axy'?");
	assert_string_equal(HINT("abc", "xyz"), "there is xyz");
	assert_string_equal(HINT("x", "a"), "did you mean 'a'?");
	assert_string_equal(HINT("ab", "abcd"), "did you mean 'abcd'?");
	for (size_t i = 0; i < NAMES_FEW; i++)
		many[i] = "something";
	assert_int_equal(strncmp(hint("web", many), "there are something, ", 21), 0);
	many[NAMES_FEW] = "other-name";
	snprintf(expected, sizeof(expected), "'pullet status --names' lists the %d that there are",
		NAMES_FEW + 1);
	assert_string_equal(hint("web", many), expected);
}

static char visited[512];

static void visit(void *arg, const char *name)
{
	assert_ptr_equal(arg, visited);
	strncat(visited, name, 100);
	strncat(visited, " ", 2);
}

static void snapshots__give_names_in_their_order(void **state)
{
	static const char *const files[] = {"web.snap", "a.snap", ".snap", "web.snap.new",
		"web.yaml", "-x.snap", "a b.snap", "control.sock"};
	char dir[SCRATCH_PATH], name[128];

	(void)state;
	scratch_open(dir, scratch_memory());
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		scratch_write(dir, files[i], "", 0);
	memset(name, 'n', sizeof(name)); /* 64 bytes are a name, 65 are none */
	memcpy(name + 64, ".snap", 6);
	scratch_write(dir, name, "", 0);
	memcpy(name + 64, "n.snap", 7);
	scratch_write(dir, name, "", 0);
	visited[0] = '\0';
	assert_int_equal(names_of_snapshots(dir, visit, visited), 0);
	assert_string_equal(
		visited, "a nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn web ");
	scratch_close(dir);
	assert_int_equal(names_of_snapshots(dir, visit, visited), -ENOENT);
}

/* ---- answers ---- */

static bool fits(const char *method, const char *path, long status, const char *text)
{
	struct document_error e;
	struct document *d = NULL;
	bool r;

	if (text)
		assert_int_equal(document_parse(DOCUMENT_JSON, text, strlen(text), 0, &d, &e), 0);
	r = shape_fits(method, path, status, document_root(d));
	document_free(d);
	return r;
}

#define C "/v1/configs/web"

static void answer__must_have_what_its_path_promises(void **state)
{
	static const struct {
		const char *method, *path;
		long status;
		const char *text;
		bool fits;
	} rows[] = {
		{"GET", "/v1/status", 200, "{\"configs\":[],\"configuration\":{}}", true},
		{"GET", "/v1/status", 200, "{\"configs\":[]}", false},
		{"GET", "/v1/status", 200, "{\"configs\":[1],\"configuration\":{}}", false},
		{"GET", "/v1/status", 200,
			"{\"configs\":[{\"name\":\"a\",\"state\":\"ok\"}],\"configuration\":{}}",
			true},
		{"GET", "/v1/status", 200, "{\"configs\":[{\"name\":\"a\"}],\"configuration\":{}}",
			false},
		{"GET", "/v1/status", 200, "{\"configs\":[{\"state\":\"a\"}],\"configuration\":{}}",
			false},
		{"GET", "/v1/status", 200, NULL, false},
		{"GET", C, 200, "{\"name\":\"web\",\"state\":\"ok\"}", true},
		{"GET", C, 200, "{\"name\":\"web\",\"state\":1}", false},
		{"GET", C "/history", 200, "{\"name\":\"web\",\"versions\":[{}]}", true},
		{"GET", C "/history", 200, "{\"name\":\"web\",\"state\":\"ok\"}", false},
		{"GET", C "/diff?from=1", 200,
			"{\"name\":\"web\",\"from\":{},\"to\":{},\"equal\":true}", true},
		{"GET", C "/diff?from=1", 200, "{\"name\":\"web\",\"from\":{},\"to\":{}}", false},
		{"GET", C "/explain?key=a", 200, "{\"name\":\"web\",\"found\":true,\"layers\":[]}",
			true},
		{"GET", C "/explain?key=a", 200, "{\"name\":\"web\",\"generation\":1,\"facts\":{}}",
			false},
		{"GET", C "/explain", 200, "{\"name\":\"web\",\"generation\":1,\"facts\":{}}",
			true},
		{"GET", C "/explain", 200, "{\"name\":\"web\",\"found\":true,\"layers\":[]}",
			false},
		{"GET", C "/wait?generation=2", 200,
			"{\"ok\":true,\"name\":\"web\",\"generation\":2}", true},
		{"GET", C "/wait?generation=2", 200, "{\"ok\":true,\"name\":\"web\"}", false},
		{"POST", C "/refresh?wait=1", 200,
			"{\"name\":\"web\",\"outcome\":\"held\",\"generation\":2}", true},
		{"POST", C "/refresh", 200, "{\"fired\":true}", false},
		{"POST", C "/refresh", 202, "{\"fired\":true}", true},
		{"POST", C "/refresh", 202, "{}", false},
		{"POST", C "/pin", 200, "{\"ok\":true,\"name\":\"web\",\"generation\":2}", true},
		{"POST", C "/rollback", 202, "{\"ok\":true,\"name\":\"web\",\"generation\":2}",
			true},
		{"POST", C "/pin", 200, "{\"name\":\"web\",\"generation\":2}", false},
		{"GET", C, 202, "{\"name\":\"web\",\"state\":\"ok\"}", false},
		{"GET", "/elsewhere", 200, NULL, true}, /* nothing is promised */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (fits(rows[i].method, rows[i].path, rows[i].status, rows[i].text) !=
			rows[i].fits)
			fail_msg("row %zu", i);
}

static void answer__has_a_bound_by_its_path(void **state)
{
	(void)state;
	assert_int_equal(shape_max_bytes("GET", "/v1/status"), SHAPE_MAX_BYTES);
	assert_int_equal(shape_max_bytes("GET", C), SHAPE_MAX_BYTES);
	assert_int_equal(shape_max_bytes("GET", C "/history"), SHAPE_MAX_BYTES);
	assert_int_equal(shape_max_bytes("GET", C "/diff"), SHAPE_MAX_BYTES);
	assert_int_equal(shape_max_bytes("GET", C "/explain?key=a"), SHAPE_MAX_BYTES);
	assert_int_equal(shape_max_bytes("GET", "/elsewhere"), SHAPE_MAX_BYTES);
	assert_true(shape_max_bytes("GET", C "/explain") < SHAPE_MAX_BYTES);
	assert_true(shape_max_bytes("GET", C "/wait?version=v") < SHAPE_MAX_BYTES);
	assert_true(shape_max_bytes("POST", C "/refresh?wait=1") < SHAPE_MAX_BYTES);
	assert_true(shape_max_bytes("POST", C "/unpin") < SHAPE_MAX_BYTES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hint__names_the_nearest__or_all__or_how_many),
		cmocka_unit_test(snapshots__give_names_in_their_order),
		cmocka_unit_test(answer__must_have_what_its_path_promises),
		cmocka_unit_test(answer__has_a_bound_by_its_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
