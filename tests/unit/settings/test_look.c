/* Whether what the configuration names can be used, as `pulletd -t` and the start say it: nothing
 * of it is an error. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "settings/settings.h"
#include "settings/form.h"
#include "tests/unit/fixture/scratch.h"

static char dir[SCRATCH_PATH], said[16384];

static void look(void *arg, const char *message)
{
	size_t len = strlen(said);

	(void)arg;
	snprintf(said + len, sizeof(said) - len, "%s\n", message);
}

static bool refused; /* it may be, and why is in `said` */

static void tell(void *arg, const char *message)
{
	if (refused)
		look(arg, message);
	else
		fail_msg("%s", message);
}

/* All paths of the text begin with "@", the directory; so does what is said of them. */
static const char *look_at_settings(const char *text, bool all)
{
	const struct settings_reading how = {
		.report = tell, .look = look, .look_all = all, .twins = look};
	char written[8192] = "", path[SCRATCH_PATH + 32];
	struct settings *s = NULL;
	size_t len = 0;

	for (; *text; text++) {
		snprintf(written + len, sizeof(written) - len, "%.*s", *text == '@' ? 100 : 1,
			*text == '@' ? dir : text);
		len = strlen(written);
	}
	scratch_write(dir, "pullet.yaml", written, len);
	snprintf(path, sizeof(path), "%s/pullet.yaml", dir);
	said[0] = '\0';
	assert_int_equal(settings_load_with(path, &how, &s), refused);
	settings_free(s);
	for (char *p = said; (p = strstr(p, dir)); p++) {
		*p = '@';
		memmove(p + 1, p + strlen(dir), strlen(p + strlen(dir)) + 1);
	}
	return said;
}

static void make_directory(const char *name)
{
	char path[SCRATCH_PATH + 32];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(mkdir(path, 0755), 0);
}

static int set_up(void **state)
{
	(void)state;
	scratch_open(dir, scratch_memory());
	make_directory("folder");
	scratch_write(dir, "ca.pem", "x", 1);
	scratch_write(dir, "empty.json", "{}", 2);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	scratch_close(dir);
	return 0;
}

#define WEB "configs:\n  web: {url: 'http://127.0.0.1/w', file: @/out"
#define SERVER(more) "servers: {main: {urls: ['https://127.0.0.1']" more "}}\n" WEB "}\n"

static void file__that_is_named__is_looked_at(void **state)
{
	(void)state;
	assert_string_equal(look_at_settings(SERVER(", tls: {ca: @/ca.pem}"), false), "");
	assert_string_equal(look_at_settings(SERVER(", tls: {ca: @/none.pem}"), false),
		"@/pullet.yaml:1:57: ca: @/none.pem cannot be read: No such file or directory: "
		"make "
		"it, or name another one\n");
	assert_string_equal(look_at_settings(SERVER(", tls: {ca: @/folder}"), false),
		"@/pullet.yaml:1:57: ca: @/folder is a directory: name a file\n");
	assert_string_equal(look_at_settings(SERVER(", tls: {ca: @/ca.pem/x}"), false),
		"@/pullet.yaml:1:57: ca: @/ca.pem/x cannot be read: Not a directory: a part of the "
		"path is not a directory\n");
}

static void secret__whose_file_is_missing__is_not_shown(void **state)
{
	(void)state;
	assert_string_equal(look_at_settings(SERVER(", auth: {bearer_file: @/none}"), false),
		"@/pullet.yaml:1:67: bearer_file: the file cannot be read: No such file or "
		"directory: "
		"make it, or name another one\n");
}

static void output__has_its_directory_made_but_not_those_above(void **state)
{
	(void)state;
	assert_string_equal(look_at_settings(WEB "}\n", false), "");
	assert_string_equal(
		look_at_settings(WEB "/new}\n", false), ""); /* out/new: it makes "out" */
	assert_string_equal(look_at_settings(WEB "/one/new}\n", false),
		"@/pullet.yaml:2:42: file: @/out does not exist: make that directory, or name "
		"another place\n");
	scratch_write(dir, "out", "x", 1);
	assert_string_equal(look_at_settings(WEB "/new}\n", false),
		"@/pullet.yaml:2:42: file: @/out is no directory: name another place\n");
	/* nothing can be below it: whatever keeps this user from looking there, he is not told */
	assert_string_equal(look_at_settings(WEB "/one/two/new}\n", false), "");
}

/* Directories of three file systems, one of them by two paths. Roots of file systems tend to have
 * the same inode. */
static void output__by_two_paths__is_told(void **state)
{
	char link[SCRATCH_PATH + 8];

	(void)state;
	snprintf(link, sizeof(link), "%s/link", dir);
	assert_int_equal(symlink("/proc", link), 0);
	assert_string_equal(look_at_settings("configs:\n"
					     "  a: {url: 'http://h/', file: /proc/x}\n"
					     "  b: {url: 'http://h/', file: /sys/x}\n"
					     "  c: {url: 'http://h/', file: /dev/pts/x}\n"
					     "  d: {url: 'http://h/', file: @/link/x}\n"
					     "  e: {url: 'http://h/', file: @/link/y}\n"
					     "  f: {url: 'http://h/', file: @/x}\n",
				    false),
		"@/pullet.yaml:5:31: \"@/link/x\" is also written by config \"a\", by another "
		"path, "
		"at @/pullet.yaml:2:31: name another place\n");
}

static void output__in_directories_that_are_not_there__is_no_twin(void **state)
{
	(void)state;
	assert_string_equal(look_at_settings("configs:\n"
					     "  a: {url: 'http://h/', file: @/one/x}\n"
					     "  b: {url: 'http://h/', file: @/two/x}\n",
				    false),
		"");
}

#define TEMPLATE WEB ", format: {template: @/t.mustache}}\n"

static void partial__is_a_file_beside_the_template(void **state)
{
	static const char *const bad[] = {".hidden", "../t", "folder/t"};
	char text[256];

	(void)state;
	scratch_write(dir, "t.mustache", "a {{> part}}", 12);
	scratch_write(dir, "part.mustache", "b", 1);
	assert_string_equal(look_at_settings(TEMPLATE, false), "");
	refused = true;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(text, sizeof(text), "{{> %s}}", bad[i]);
		scratch_write(dir, "t.mustache", text, strlen(text));
		assert_non_null(strstr(look_at_settings(TEMPLATE, false),
			"its name is that of a file beside the template, without .mustache: no "
			"'/', no '.' at the beginning"));
	}
	for (unsigned len = SETTINGS_MAX_SET_NAME; len <= SETTINGS_MAX_SET_NAME + 1; len++) {
		snprintf(text, sizeof(text), "{{> %0*d}}", len, 0);
		scratch_write(dir, "t.mustache", text, strlen(text));
		assert_non_null(strstr(look_at_settings(TEMPLATE, false),
			len > SETTINGS_MAX_SET_NAME ? "its name is that of a file"
						    : "No such file or directory"));
	}
	refused = false;
}

static void program__that_is_named__is_looked_at(void **state)
{
	(void)state;
	assert_string_equal(
		look_at_settings(WEB ", check: {run: [/bin/sh, '{path}']}}\n", false), "");
	assert_non_null(strstr(look_at_settings(WEB ", check: {run: [@/none, '{path}']}}\n", false),
		"@/none does not exist: install it, or name its absolute path\n"));
	assert_non_null(
		strstr(look_at_settings(WEB ", check: {run: [@/folder, '{path}']}}\n", false),
			"@/folder is no program: name a file\n"));
	assert_non_null(strstr(
		look_at_settings(WEB ", check: {run: [@/ca.pem, '{path}']}}\n", false),
		"@/ca.pem cannot be run: make it executable (chmod +x), for the agent's user "
		"too\n"));
}

#define FOLDER(url)                                                                                \
	"servers: {f: {kind: file, urls: ['file://" url "']}}\n"                                   \
	"configs: {web: {from: [{server: f, path: /w}], file: @/out}}\n"

static void folder_of_a_server__is_looked_at_where_all_is(void **state)
{
	(void)state;
	assert_string_equal(look_at_settings(FOLDER("@/none"), false), "");
	assert_string_equal(look_at_settings(FOLDER("@/folder"), true), "");
	assert_string_equal(look_at_settings(FOLDER("@/none"), true),
		"@/pullet.yaml:1:34: urls: @/none cannot be read: No such file or directory: make "
		"it, "
		"or name another one\n");
	assert_string_equal(look_at_settings(FOLDER("@/ca.pem"), true),
		"@/pullet.yaml:1:34: urls: @/ca.pem is no directory: name one\n");
	assert_string_equal(look_at_settings(SERVER(""), true), ""); /* whose URLs are no paths */
}

static void schema__is_compiled_where_all_is_looked_at(void **state)
{
	(void)state;
	assert_string_equal(look_at_settings(WEB ", schema: @/empty.json}\n", true), "");
	scratch_write(dir, "bad.json", "{\"type\":7}", 10);
	assert_string_equal(look_at_settings(WEB ", schema: @/bad.json}\n", false), "");
	look_at_settings(WEB ", schema: @/bad.json}\n", true);
	assert_non_null(strstr(said, ": schema: @/bad.json cannot be used: "));
	look_at_settings(WEB ", schema: @/none.json}\n", true);
	assert_non_null(strstr(said, ": schema: @/none.json cannot be read: No such file"));
	assert_ptr_equal(strchr(said, '\n') + 1, said + strlen(said)); /* once */
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(file__that_is_named__is_looked_at),
		CASE(secret__whose_file_is_missing__is_not_shown),
		CASE(output__has_its_directory_made_but_not_those_above),
		CASE(output__by_two_paths__is_told),
		CASE(output__in_directories_that_are_not_there__is_no_twin),
		CASE(partial__is_a_file_beside_the_template),
		CASE(program__that_is_named__is_looked_at),
		CASE(folder_of_a_server__is_looked_at_where_all_is),
		CASE(schema__is_compiled_where_all_is_looked_at),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
