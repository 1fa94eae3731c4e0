/* The embedded origin: nothing outside the directory is ever read, ETags follow the content, and
 * the watcher tells what really changed. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/loop.h"
#include "origin/origin.h"
#include "origin/tree_watch.h"
#include "tests/unit/fixture/scratch.h"

static char base[64], root[80];
static int dir;

static void path_in(char path[PATH_MAX], const char *name)
{
	snprintf(path, PATH_MAX, "%s/%s", base, name);
}

/* Writes by rename. */
static void put(const char *name, const char *text)
{
	char path[PATH_MAX], temporary[PATH_MAX];
	FILE *f;

	path_in(path, name);
	path_in(temporary, "temporary");
	f = fopen(temporary, "we");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	assert_int_equal(rename(temporary, path), 0);
}

static void link_to(const char *target, const char *name)
{
	char path[PATH_MAX], temporary[PATH_MAX];

	path_in(path, name);
	path_in(temporary, "temporary");
	assert_int_equal(symlink(target, temporary), 0);
	assert_int_equal(rename(temporary, path), 0);
}

static int set_up(void **state)
{
	const char *tmp = getenv("TMPDIR");
	char path[PATH_MAX];

	(void)state;
	snprintf(base, sizeof(base), "%.40s/pullet-unit-XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(base))
		return -1;
	snprintf(root, sizeof(root), "%s/www", base);
	mkdir(root, 0700);
	path_in(path, "www/team");
	mkdir(path, 0700);
	put("secret.yaml", "secret: 1\n");
	put("www/web.yaml", "a: 1\n");
	put("www/team/db.yaml", "b: 1\n");
	dir = origin_open(root);
	return dir < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
	(void)state;
	close(dir);
	scratch_close(base);
	return 0;
}

static int error_of(const char *path)
{
	struct origin_file f;
	int r = origin_read(dir, path, &f);

	if (r == 0)
		buffer_fini(&f.body);
	return r;
}

static void read__of_paths_that_lead_out__is_refused(void **state)
{
	static const char *const bad[] = {"", "/etc/passwd", "../secret.yaml",
		"team/../../secret.yaml", "..", ".", "team//db.yaml", "team/", ".hidden",
		"team/.hidden", "out.yaml", "absolute.yaml", "web.yaml~", "web.yaml.swp",
		"none.yaml", "web.yaml/x"};
	char absolute[PATH_MAX];

	(void)state;
	put("www/.hidden", "x: 1\n");
	put("www/web.yaml~", "x: 1\n");
	link_to("../secret.yaml", "www/out.yaml");
	path_in(absolute, "secret.yaml");
	link_to(absolute, "www/absolute.yaml");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (error_of(bad[i]) == 0)
			print_error("%s was served\n", bad[i]);
		assert_int_not_equal(error_of(bad[i]), 0);
	}
	assert_int_equal(error_of("web.yaml"), 0);
	assert_int_equal(error_of("team/db.yaml"), 0);
}

static void read__of_what_is_no_file__is_refused_and_never_hangs(void **state)
{
	char path[PATH_MAX];

	(void)state;
	path_in(path, "www/fifo");
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(error_of("fifo"), -EINVAL);
	assert_int_equal(error_of("team"), -EISDIR);
}

static void read__through_a_symlink_inside__follows_it(void **state)
{
	struct origin_file f;
	char path[PATH_MAX];

	(void)state;
	path_in(path, "www/..v1");
	assert_int_equal(mkdir(path, 0700), 0);
	put("www/..v1/cm.yaml", "from: volume\n");
	link_to("..v1", "www/..data");
	link_to("..data/cm.yaml", "www/cm.yaml");
	assert_int_equal(origin_read(dir, "cm.yaml", &f), 0);
	assert_string_equal(f.body.data, "from: volume\n");
	buffer_fini(&f.body);
	assert_int_not_equal(error_of("..data/cm.yaml"), 0);
}

static void etag__follows_the_content_only(void **state)
{
	struct origin_file a, b;

	(void)state;
	assert_int_equal(origin_read(dir, "web.yaml", &a), 0);
	put("www/web.yaml", "a: 1\n");
	assert_int_equal(origin_read(dir, "web.yaml", &b), 0);
	assert_string_equal(a.etag, b.etag);
	buffer_fini(&b.body);
	put("www/web.yaml", "a: 2\n");
	assert_int_equal(origin_read(dir, "web.yaml", &b), 0);
	assert_string_not_equal(a.etag, b.etag);
	buffer_fini(&a.body);
	buffer_fini(&b.body);
}

static void etag_matches__lists_weak_ones_and_the_star(void **state)
{
	(void)state;
	assert_true(origin_etag_matches("\"a\"", "\"a\""));
	assert_true(origin_etag_matches("W/\"a\"", "\"a\""));
	assert_true(origin_etag_matches("\"x\", W/\"y\" , \"a\"", "\"a\""));
	assert_true(origin_etag_matches("*", "\"a\""));
	assert_false(origin_etag_matches("", "\"a\""));
	assert_false(origin_etag_matches("\"ab\"", "\"a\""));
	assert_false(origin_etag_matches("\"a\"b", "\"a\""));
	assert_false(origin_etag_matches("a", "\"a\""));
}

/* ---- watching ---- */

static struct loop *loop;
static char told[512];
static const char *awaited; /* in any order */

static void give_up(void *arg)
{
	(void)arg;
	loop_stop(loop);
}

/* Until all is told, or for 20 seconds. */
static void run_until(const char *text)
{
	struct loop_timer patience;

	told[0] = '\0';
	awaited = text;
	loop_timer_init(&patience, give_up, NULL);
	loop_timer_set(loop, &patience, loop_now_ms(loop) + 20000);
	assert_int_equal(loop_run(loop), 0);
	loop_timer_cancel(loop, &patience);
}

static void on_change(void *arg, const char *path, const char *etag)
{
	size_t n = strlen(told);

	(void)arg;
	snprintf(told + n, sizeof(told) - n, "%s%s ", etag ? "+" : "-", path);
	if (strlen(told) >= strlen(awaited))
		loop_stop(loop);
}

static void watch__tells_each_real_change_once(void **state)
{
	struct tree_watch *w;
	char path[PATH_MAX];

	(void)state;
	loop = loop_new(&sys_real);
	assert_int_equal(tree_watch_start(loop, root, dir, on_change, NULL, &w), 0);
	put("www/web.yaml", "a: new\n");
	put("www/web.yaml", "a: new\n"); /* the same content: not a change */
	put("www/.hidden", "h: 1\n");
	put("www/team/db.yaml", "b: new\n");
	path_in(path, "www/deep");
	assert_int_equal(mkdir(path, 0700), 0);
	put("www/deep/new.yaml", "n: 1\n");
	path_in(path, "www/team/db.yaml");
	assert_int_equal(unlink(path), 0);
	put("www/end.yaml", "end: 1\n");
	run_until("+web.yaml -team/db.yaml +deep/new.yaml +end.yaml ");
	/* a file that is gone before it is looked at is told as gone only */
	if (strcmp(told, awaited) != 0)
		print_message("%s\n", told);
	assert_non_null(strstr(told, "+web.yaml "));
	assert_null(strstr(strstr(told, "+web.yaml ") + 1, "+web.yaml "));
	assert_non_null(strstr(told, "-team/db.yaml "));
	assert_non_null(strstr(told, "+deep/new.yaml "));
	assert_null(strstr(told, "hidden"));
	tree_watch_stop(w);
	loop_free(loop);
}

static void watch__sees_the_flip_of_a_volume(void **state)
{
	struct tree_watch *w;
	char path[PATH_MAX];

	(void)state;
	path_in(path, "www/..v1");
	mkdir(path, 0700);
	put("www/..v1/end.yaml", "v: 1\n");
	link_to("..v1", "www/..data");
	link_to("..data/end.yaml", "www/end.yaml");
	loop = loop_new(&sys_real);
	assert_int_equal(tree_watch_start(loop, root, dir, on_change, NULL, &w), 0);
	path_in(path, "www/..v2");
	mkdir(path, 0700);
	put("www/..v2/end.yaml", "v: 2\n");
	link_to("..v2", "www/..data");
	run_until("+end.yaml ");
	assert_string_equal(told, "+end.yaml ");
	tree_watch_stop(w);
	loop_free(loop);
}

/* Its watch has the number that it had. */
static void watch__of_a_folder_that_is_renamed__goes_on(void **state)
{
	struct tree_watch *w;
	char from[PATH_MAX], to[PATH_MAX];

	(void)state;
	loop = loop_new(&sys_real);
	assert_int_equal(tree_watch_start(loop, root, dir, on_change, NULL, &w), 0);
	path_in(from, "www/team");
	path_in(to, "www/crew");
	assert_int_equal(rename(from, to), 0);
	run_until("-team/db.yaml +crew/db.yaml ");
	put("www/crew/db.yaml", "b: new\n");
	run_until("+crew/db.yaml ");
	assert_string_equal(told, awaited);
	tree_watch_stop(w);
	loop_free(loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			read__of_paths_that_lead_out__is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			read__of_what_is_no_file__is_refused_and_never_hangs, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			read__through_a_symlink_inside__follows_it, set_up, tear_down),
		cmocka_unit_test_setup_teardown(etag__follows_the_content_only, set_up, tear_down),
		cmocka_unit_test(etag_matches__lists_weak_ones_and_the_star),
		cmocka_unit_test_setup_teardown(
			watch__tells_each_real_change_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			watch__sees_the_flip_of_a_volume, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			watch__of_a_folder_that_is_renamed__goes_on, set_up, tear_down),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
