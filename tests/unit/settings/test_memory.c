/*
 * The agent's configuration while memory runs out at each allocation of reading it and of comparing
 * it with another: that is said, nobody is told that a good file is a bad one, and nothing leaks.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "settings/diff.h"
#include "tests/unit/fixture/fault_memory.h"
#include "tests/unit/fixture/scratch.h"

/* Something of each kind that is kept: texts, lists, mappings, what refers to something else. */
static const char text[] =
	"agent: {state_dir: /s, runtime_dir: /r, listen_names: [a, b], labels: {zone: eu, rack: "
	"r}}\n"
	"push:\n"
	"- {endpoint: 'ipc:///p', curve: {server_key: 'rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7', "
	"secret_key_file: /nowhere}}\n"
	"servers:\n"
	"  e: {kind: etcd, urls: ['http://e', 'http://f/'], auth: {headers: {A: b, C: {file: "
	"/c}}},\n"
	"    insecure: true, watch: true}\n"
	"  d: {kind: file}\n"
	"configs:\n"
	"  a: {url: 'http://h/a', file: /run/a, mask: [x, y], check: {run: [/bin/a, '{path}']}}\n"
	"  b: {from: [{server: e, path: /b}, {server: d, path: /b}], file: /run/b, schema: "
	"/nowhere, schema_dir: /nowhere,\n"
	"    bootstrap: {server: d, path: /c}, rollout: {server: e, path: /r},\n"
	"    reload: {signal: HUP, pidfile: /p, on: [{keys: [x], run: [/bin/b]}]}}\n"
	"  c: {from: [{server: d, path: /c, as: c.json}], dir: /run/c, snapshot: false,\n"
	"    verify: {public_key: "
	"RWSYMC7n8ADplDfW2kiEMNo8BX8IPthSF1HxnEXGBzB/KwlR4ZfoNZlN}}\n"
	"report:\n  server: e\n  host: ${PULLET_TEST_HOST}\n  ttl: ${PULLET_TEST_TTL}\n";

static char dir[SCRATCH_PATH], path[SCRATCH_PATH + 32], last_words[512];
static struct settings *old, *new;

static void tell(void *arg, const char *message)
{
	(void)arg;
	snprintf(last_words, sizeof(last_words), "%s", message);
}

/* Whether memory was short, which is the only thing that may be wrong. */
static bool was_short(int errors)
{
	if (!errors)
		return false;
	assert_int_equal(errors, 1);
	assert_true(strstr(last_words, ": out of memory") ||
		    strstr(last_words, ": cannot be read: Cannot allocate memory"));
	return true;
}

static bool parse_once(void)
{
	struct settings *s = NULL;
	bool failed = was_short(settings_parse("t.yaml", text, strlen(text), tell, NULL, &s));

	assert_int_equal(s == NULL, failed);
	settings_free(s);
	return failed;
}

static bool load_once(void)
{
	struct settings *s = NULL;
	bool failed = was_short(settings_load(path, tell, NULL, &s));

	if (!failed)
		assert_int_equal(s->config_count, 4);
	settings_free(s);
	return failed;
}

/* A file that says something is never taken for one that nobody has touched. */
static bool ask_once(void)
{
	assert_false(settings_is_untouched(path));
	return false;
}

static bool diff_once(void)
{
	struct settings_diff d;
	int r = settings_diff(old, new, &d);

	if (r == 0) {
		assert_int_equal(d.configs.added + d.configs.changed, 1);
		assert_int_equal(d.servers.unchanged, 3);
		settings_diff_fini(&d);
	} else {
		assert_int_equal(r, -ENOMEM);
	}
	return r;
}

static void parse__without_memory__says_so_and_nothing_else(void **state)
{
	(void)state;
	assert_true(fault_memory_each(parse_once, false) > 100);
}

static void load__without_memory__leaves_out_no_file(void **state)
{
	(void)state;
	assert_true(fault_memory_each(load_once, false) > 50);
}

static void file__without_memory__is_not_taken_for_untouched(void **state)
{
	(void)state;
	assert_int_equal(fault_memory_each(ask_once, false), 0);
	assert_int_equal(fault_memory_each(ask_once, true), 0);
}

static void diff__without_memory__is_an_error(void **state)
{
	(void)state;
	assert_int_equal(settings_parse("t.yaml", text, strlen(text), tell, NULL, &old), 0);
	assert_int_equal(settings_load(path, tell, NULL, &new), 0);
	assert_int_equal(fault_memory_each(diff_once, false), 12);
	settings_free(old);
	settings_free(new);
}

/* A file of variables, one of which decides. */
static void add_environment(void)
{
	char more[SCRATCH_PATH + 32];
	FILE *f = fopen(path, "ae");

	assert_non_null(f);
	fprintf(f, "env_file: %s/environment\n", dir);
	fclose(f);
	snprintf(more, sizeof(more), "# of this host\nPULLET_TEST_HOST=x\n");
	scratch_write(dir, "environment", more, strlen(more));
}

static int write_files(void **state)
{
	char part[SCRATCH_PATH + 16];

	(void)state;
	scratch_open(dir, scratch_memory());
	snprintf(path, sizeof(path), "%s/pullet.yaml", dir);
	snprintf(part, sizeof(part), "%s/conf.d", dir);
	assert_int_equal(mkdir(part, 0700), 0);
	scratch_write(dir, "pullet.yaml", text, strlen(text));
	setenv("PULLET_TEST_HOST", "h", 1);
	setenv("PULLET_TEST_TTL", "60s", 1);
	scratch_write(part, "a.yaml", "configs: {d: {url: 'http://h/d', file: /run/d}}\n", 48);
	add_environment();
	scratch_write(part, "b.yaml", "agent: {labels: {more: x}}\n", 27);
	return 0;
}

static int remove_files(void **state)
{
	(void)state;
	scratch_close(dir);
	return 0;
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, write_files, remove_files)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(parse__without_memory__says_so_and_nothing_else),
		CASE(load__without_memory__leaves_out_no_file),
		CASE(file__without_memory__is_not_taken_for_untouched),
		CASE(diff__without_memory__is_an_error),
	};

	return fault_memory_run(tests, 4);
}
