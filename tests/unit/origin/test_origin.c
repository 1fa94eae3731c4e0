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
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/loop.h"
#include "origin/origin.h"
#include "origin/tree_watch.h"
#include "tests/unit/fixture/captured.h"
#include "tests/unit/fixture/fault_memory.h"
#include "tests/unit/fixture/quick_loop.h"
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

static void path__that_is_served__has_no_hidden_or_empty_part(void **state)
{
	static const struct {
		const char *path;
		bool served;
	} table[] = {
		{"a", true},
		{"a.yaml", true},
		{"a/b/c.yaml", true},
		{"a.b/c", true},
		{"~a", true},
		{"a~/b", true},
		{"a.swp/b", true},
		{"swp", true},
		{"", false},
		{"/", false},
		{"/a", false},
		{"a/", false},
		{"a//b", false},
		{".a", false},
		{"a/.b", false},
		{"a/./b", false},
		{"a/b/../c", false},
		{"a~", false},
		{"~", false},
		{"a.swp", false},
		{"b/.swp", false},
		{"4913", false},
		{"a/4913", false},
		{"4913.yaml", true},
		{"a/#b.yaml#", false},
		{"#b.yaml", true},
	};
	char longest[1026];

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (origin_serves(table[i].path) != table[i].served)
			fail_msg("%s", table[i].path);
	memset(longest, 'a', sizeof(longest));
	longest[1025] = '\0';
	assert_false(origin_serves(longest));
	longest[1024] = '\0';
	assert_true(origin_serves(longest));
}

static void content_type__is_that_of_the_ending(void **state)
{
	static const char *const table[][2] = {
		{"a.yaml", "application/yaml"},
		{"a/b.yml", "application/yaml"},
		{"a.json", "application/json"},
		{"a.env", "text/plain; charset=utf-8"},
		{"a.properties", "text/plain; charset=utf-8"},
		{"a.txt", "text/plain; charset=utf-8"},
		{"a.html", "text/html; charset=utf-8"},
		{"a.yaml.bak", "application/octet-stream"},
		{"yaml", "application/octet-stream"},
		{"a", "application/octet-stream"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		assert_string_equal(origin_content_type(table[i][0]), table[i][1]);
}

/* What was read; the caller frees the body. */
static struct origin_file file_of(const char *path)
{
	struct origin_file f = {.etag = ""};
	char why[FILE_WHY] = "";
	int r = path[0] == '/' ? origin_read_path(path, &f, why) : origin_read(dir, path, &f);

	if (r)
		fail_msg("%s: %d %s", path, r, why);
	return f;
}

static void read__of_a_file__has_its_bytes_etag_and_time(void **state)
{
	/* of sha256sum(1) */
	static const char etag[] = "\"87428fc522803d31065e7bce3cf03fe4\"";
	const struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1234567}};
	char path[PATH_MAX];
	struct origin_file f;

	(void)state;
	put("www/a.txt", "a\n");
	path_in(path, "www/a.txt");
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
	for (int anywhere = 0; anywhere < 2; anywhere++) {
		f = file_of(anywhere ? path : "a.txt");
		assert_int_equal(f.body.len, 2);
		assert_string_equal(f.body.data, "a\n");
		assert_string_equal(f.etag, etag);
		assert_int_equal(f.modified, 1234567);
		buffer_fini(&f.body);
	}
}

static void read__of_any_length__is_whole(void **state)
{
	static const size_t lens[] = {0, 1, 4095, 4096, 4097, 100000};
	static char text[100001];

	(void)state;
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		struct origin_file f;

		memset(text, 'x', lens[i]);
		text[lens[i]] = '\0';
		put("www/a.txt", text);
		f = file_of("a.txt");
		assert_int_equal(f.body.len, lens[i]);
		assert_string_equal(f.body.data, text);
		buffer_fini(&f.body);
	}
}

static unsigned before_it_grew; /* so many calls see the size that it had then */

int fstat(int fd, struct stat *st)
{
	int r = fstatat(fd, "", st, AT_EMPTY_PATH);

	if (before_it_grew) {
		before_it_grew--;
		st->st_size = 100;
	}
	return r;
}

static void read__of_a_file_that_grows_meanwhile__is_whole(void **state)
{
	static char text[300001];
	struct origin_file f;

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	put("www/a.txt", text);
	before_it_grew = 1;
	f = file_of("a.txt");
	assert_int_equal(before_it_grew, 0);
	assert_int_equal(f.body.len, sizeof(text) - 1);
	assert_string_equal(f.body.data, text);
	buffer_fini(&f.body);
}

/* As those of /proc: it has no size, and is read to its end all the same. */
static void read__of_a_file_of_the_kernel__is_whole(void **state)
{
	struct origin_file f;
	char text[8192];
	size_t len;

	(void)state;
	assert_true(scratch_read("/proc/self", "limits", text, sizeof(text), &len));
	f = file_of("/proc/self/limits");
	assert_int_equal(f.body.len, len);
	assert_string_equal(f.body.data, text);
	buffer_fini(&f.body);
}

static void read__that_fails__says_how(void **state)
{
	struct origin_file f;
	char path[PATH_MAX], why[FILE_WHY] = "";
	unsigned before = scratch_descriptors();

	(void)state;
	link_to("../secret.yaml", "www/out.yaml");
	path_in(path, "www/fifo");
	assert_int_equal(mkfifo(path, 0600), 0);
	path_in(path, "www/huge");
	put("www/huge", "");
	assert_int_equal(error_of("out.yaml"), -EXDEV);
	assert_int_equal(error_of("team"), -EISDIR);
	assert_int_equal(error_of("fifo"), -EINVAL);
	assert_int_equal(error_of("none.yaml"), -ENOENT);
	assert_int_equal(error_of(".hidden"), -ENOENT);
	assert_int_equal(error_of("web.yaml/x"), -ENOTDIR);
	assert_int_equal(truncate(path, (off_t)ORIGIN_MAX_FILE + 1), 0);
	assert_int_equal(error_of("huge"), -EFBIG);
	assert_int_equal(origin_read_path(path, &f, why), -EFBIG);
	path_in(path, "www/none");
	assert_int_equal(origin_read_path(path, &f, why), -ENOENT);
	assert_string_equal(why, "No such file or directory: make it, or name another one");
	assert_int_equal(scratch_descriptors(), before);
	assert_int_equal(origin_open(path), -ENOENT);
	path_in(path, "www/web.yaml");
	assert_int_equal(origin_open(path), -ENOTDIR);
}

/* Descriptor 0 is one as any other. */
static void read__by_a_program_without_standard_input__is_the_same(void **state)
{
	int input = dup(STDIN_FILENO), r;
	struct origin_file f;

	(void)state;
	close(STDIN_FILENO);
	r = origin_read(dir, "web.yaml", &f);
	assert_int_equal(fcntl(STDIN_FILENO, F_GETFD), -1);
	dup2(input, STDIN_FILENO);
	close(input);
	assert_int_equal(r, 0);
	assert_string_equal(f.body.data, "a: 1\n");
	buffer_fini(&f.body);
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
	assert_int_equal(tree_watch_start(loop, root, dir, 100, on_change, NULL, &w), 0);
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
	assert_int_equal(tree_watch_start(loop, root, dir, 100, on_change, NULL, &w), 0);
	path_in(path, "www/..v2");
	mkdir(path, 0700);
	put("www/..v2/end.yaml", "v: 2\n");
	link_to("..v2", "www/..data");
	run_until("+end.yaml ");
	assert_string_equal(told, "+end.yaml ");
	tree_watch_stop(w);
	loop_free(loop);
}

/* Also after another one: what is in the first is not looked at any more. */
static void watch__of_a_directory_that_is_replaced__goes_over_to_the_other(void **state)
{
	char path[PATH_MAX], link[PATH_MAX];
	struct origin_file file;
	struct tree_watch *w;
	int at;

	(void)state;
	path_in(path, "next");
	mkdir(path, 0700);
	put("next/web.yaml", "a: 2\n");
	link_to("www", "current");
	path_in(link, "current");
	at = origin_open(link);
	loop = loop_new(&sys_real);
	assert_int_equal(tree_watch_start(loop, link, at, 100, on_change, NULL, &w), 0);
	link_to("next", "current");
	run_until("+web.yaml -team/db.yaml ");
	assert_non_null(strstr(told, "+web.yaml "));
	assert_non_null(strstr(told, "-team/db.yaml "));
	assert_int_equal(origin_read(at, "web.yaml", &file), 0);
	assert_string_equal(file.body.data, "a: 2\n");
	buffer_fini(&file.body);
	put("www/web.yaml", "a: 3\n");
	put("next/new.yaml", "a: 4\n");
	run_until("+new.yaml ");
	assert_string_equal(told, awaited);
	link_to("www", "current");
	run_until("+web.yaml +team/db.yaml -new.yaml ");
	assert_non_null(strstr(told, "-new.yaml "));
	tree_watch_stop(w);
	loop_free(loop);
	close(at);
}

/* Who looks at it again and again is told of nothing. */
static void watch__of_a_directory_that_is_gone__says_so_once_and_when_it_is_back(void **state)
{
	struct captured errors;
	struct tree_watch *w;
	char path[PATH_MAX], away[PATH_MAX], text[1024];
	int at;

	(void)state;
	path_in(path, "www");
	path_in(away, "away");
	at = origin_open(path);
	loop = quick_open();
	told[0] = '\0';
	awaited = "x";
	assert_int_equal(tree_watch_start(loop, path, at, 100, on_change, NULL, &w), 0);
	errors = captured_begin(STDERR_FILENO);
	assert_int_equal(rename(path, away), 0);
	for (int i = 0; i < 3; i++) {
		quick.skipped_ms += 1500;
		quick_run();
	}
	captured_read(&errors, text, sizeof(text));
	assert_non_null(strstr(text, "the directory is gone: what is left of it counts until it is "
				     "back path="));
	assert_non_null(strstr(text, "why=\"No such file or directory\"\n"));
	assert_ptr_equal(strstr(text, "\n"), text + strlen(text) - 1);
	assert_int_equal(rename(away, path), 0);
	quick.skipped_ms += 1500;
	quick_run();
	captured_read(&errors, text, sizeof(text));
	captured_end(&errors);
	assert_non_null(strstr(text, "the directory is back path="));
	assert_string_equal(told, "");
	tree_watch_stop(w);
	quick_close();
	close(at);
}

static void watch__of_a_directory_that_stays__does_not_take_it_for_another(void **state)
{
	struct captured errors;
	struct tree_watch *w;
	char path[PATH_MAX], text[1024];
	int at;

	(void)state;
	path_in(path, "www");
	at = origin_open(path);
	loop = quick_open();
	told[0] = '\0';
	awaited = "x";
	assert_int_equal(tree_watch_start(loop, path, at, 100, on_change, NULL, &w), 0);
	errors = captured_begin(STDERR_FILENO);
	for (int i = 0; i < 3; i++) {
		quick.skipped_ms += 1500;
		quick_run();
	}
	captured_read(&errors, text, sizeof(text));
	captured_end(&errors);
	assert_string_equal(text, "");
	assert_string_equal(told, "");
	tree_watch_stop(w);
	quick_close();
	close(at);
}

/* Its watch has the number that it had. */
static void watch__of_a_folder_that_is_renamed__goes_on(void **state)
{
	struct tree_watch *w;
	char from[PATH_MAX], to[PATH_MAX];

	(void)state;
	loop = loop_new(&sys_real);
	assert_int_equal(tree_watch_start(loop, root, dir, 100, on_change, NULL, &w), 0);
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

static void watch__of_many_changes_at_once__tells_them_all(void **state)
{
	unsigned before = scratch_descriptors();
	char path[PATH_MAX], name[32];
	struct tree_watch *w;

	(void)state;
	loop = loop_new(&sys_real);
	assert_int_equal(tree_watch_start(loop, root, dir, 100, on_change, NULL, &w), 0);
	for (int i = 0; i < 9; i++) {
		snprintf(name, sizeof(name), "www/n%d", i);
		put(name, "x");
	}
	run_until("+n0 +n1 +n2 +n3 +n4 +n5 +n6 +n7 +n8 ");
	assert_string_equal(told, awaited);
	for (int i = 0; i < 9; i++) {
		snprintf(name, sizeof(name), "www/n%d", i);
		if (i % 3 == 0)
			put(name, "y");
		path_in(path, name);
		if (i % 3 == 1)
			assert_int_equal(unlink(path), 0);
	}
	run_until("+n0 -n1 +n3 -n4 +n6 -n7 ");
	assert_string_equal(told, awaited);
	put("www/n1", "x"); /* it is there again */
	run_until("+n1 ");
	assert_string_equal(told, awaited);
	tree_watch_stop(w);
	tree_watch_stop(NULL);
	loop_free(loop);
	assert_int_equal(scratch_descriptors(), before);
}

static void watch__of_folders_that_come_and_go__tells_of_what_is_in_them(void **state)
{
	char from[PATH_MAX], to[PATH_MAX];
	struct tree_watch *w;

	(void)state;
	path_in(from, "aside");
	assert_int_equal(mkdir(from, 0700), 0);
	path_in(to, "aside/b");
	assert_int_equal(mkdir(to, 0700), 0);
	put("aside/a.yaml", "a: 1\n");
	put("aside/b/c.yaml", "c: 1\n");
	loop = loop_new(&sys_real);
	assert_int_equal(tree_watch_start(loop, root, dir, 100, on_change, NULL, &w), 0);
	path_in(to, "www/moved");
	assert_int_equal(rename(from, to), 0);
	run_until("+moved/a.yaml +moved/b/c.yaml ");
	assert_non_null(strstr(told, "+moved/a.yaml "));
	assert_non_null(strstr(told, "+moved/b/c.yaml "));
	put("www/moved/b/c.yaml", "c: 2\n");
	run_until("+moved/b/c.yaml ");
	assert_string_equal(told, awaited);
	assert_int_equal(rename(to, from), 0);
	run_until("-moved/a.yaml -moved/b/c.yaml ");
	assert_non_null(strstr(told, "-moved/a.yaml "));
	assert_non_null(strstr(told, "-moved/b/c.yaml "));
	put("aside/a.yaml", "a: 2\n"); /* nobody's any more */
	put("www/web.yaml", "a: 3\n");
	run_until("+web.yaml ");
	assert_string_equal(told, awaited);
	tree_watch_stop(w);
	loop_free(loop);
}

static void watch__of_files_written_in_place__tells_when_they_are_closed(void **state)
{
	struct tree_watch *w;

	(void)state;
	loop = loop_new(&sys_real);
	assert_int_equal(tree_watch_start(loop, root, dir, 100, on_change, NULL, &w), 0);
	scratch_write(root, "web.yaml", "a: 2\n", 5);
	run_until("+web.yaml ");
	assert_string_equal(told, awaited);
	link_to("team/db.yaml", "www/link.yaml");
	run_until("+link.yaml ");
	assert_string_equal(told, awaited);
	put("www/team/end.yaml", "e: 1\n");
	run_until("+team/end.yaml ");
	assert_string_equal(told, awaited);
	tree_watch_stop(w);
	loop_free(loop);
}

static int open_in(const char *name, int flags)
{
	char path[PATH_MAX];
	int fd;

	path_in(path, name);
	fd = open(path, flags | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	return fd;
}

static void watch__of_a_file_that_is_being_written__waits_for_the_close(void **state)
{
	struct tree_watch_before before;
	struct tree_watch *w;
	int fd;

	(void)state;
	put("www/web.yaml", "a: before\n");
	loop = loop_new(&sys_real);
	assert_int_equal(tree_watch_start(loop, root, dir, 100, on_change, NULL, &w), 0);
	told[0] = '\0';
	awaited = "";
	fd = open_in("www/web.yaml", O_TRUNC);
	assert_true(tree_watch_is_written(w, "web.yaml", &before));
	assert_int_equal(write(fd, "a: aft", 6), 6);
	assert_true(tree_watch_is_written(w, "web.yaml", &before));
	assert_int_equal(before.len, 10);
	assert_memory_equal(before.body, "a: before\n", 10);
	assert_string_equal(told, "");
	assert_int_equal(write(fd, "er\n", 3), 3);
	close(fd);
	assert_false(tree_watch_is_written(w, "web.yaml", &before));
	assert_string_equal(told, "+web.yaml "); /* not later than who asks for it */
	assert_memory_equal(before.body, "a: after\n", 9);
	put("www/web.yaml", "a: by a rename\n");
	assert_false(tree_watch_is_written(w, "web.yaml", &before));
	assert_string_equal(told, "+web.yaml +web.yaml ");
	tree_watch_stop(w);
	loop_free(loop);
}

/* A link that leads out is refused to every user, root too. */
static void watch__of_a_file_that_cannot_be_read__says_so(void **state)
{
	struct tree_watch_before before;
	struct captured log;
	struct tree_watch *w;
	char said[1024], path[PATH_MAX];

	(void)state;
	link_to("/etc/passwd", "www/out.yaml");
	loop = loop_new(&sys_real);
	log = captured_begin(STDERR_FILENO);
	assert_int_equal(tree_watch_start(loop, root, dir, 100, on_change, NULL, &w), 0);
	told[0] = '\0';
	awaited = "more than is told";
	put("www/web.yaml", "a: 1\n");
	path_in(path, "www/web.yaml");
	assert_int_equal(unlink(path), 0);
	link_to("/etc/passwd", "www/web.yaml");
	tree_watch_is_written(w, "web.yaml", &before);
	captured_read(&log, said, sizeof(said));
	captured_end(&log);
	assert_non_null(strstr(said, "cannot read a file: changes of it will not be published "
				     "path=out.yaml why=\"it leads out of the directory\""));
	assert_non_null(strstr(said, "path=web.yaml why=\"it leads out of the directory\""));
	assert_string_equal(told, "-web.yaml ");
	tree_watch_stop(w);
	loop_free(loop);
}

/* As after a chmod that makes it readable; root may read any. */
static void watch__of_a_file_with_another_mode__looks_at_it_but_not_while_it_is_written(
	void **state)
{
	struct tree_watch_before before;
	struct tree_watch *w;
	char *mapped, path[PATH_MAX];
	int fd;

	(void)state;
	put("www/web.yaml", "a: 1\n");
	path_in(path, "www/web.yaml");
	fd = open(path, O_RDWR | O_CLOEXEC);
	mapped = mmap(NULL, 5, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(mapped, MAP_FAILED);
	loop = loop_new(&sys_real);
	assert_int_equal(tree_watch_start(loop, root, dir, 100, on_change, NULL, &w), 0);
	told[0] = '\0';
	awaited = "more than is told";
	mapped[3] = '2'; /* without an event */
	assert_int_equal(chmod(path, 0640), 0);
	assert_false(tree_watch_is_written(w, "web.yaml", &before));
	assert_string_equal(told, "+web.yaml ");
	assert_memory_equal(before.body, "a: 2\n", 5);
	assert_int_equal(write(fd, "a", 1), 1);
	assert_int_equal(chmod(path, 0600), 0);
	assert_true(tree_watch_is_written(w, "web.yaml", &before));
	munmap(mapped, 5);
	close(fd);
	tree_watch_stop(w);
	loop_free(loop);
}

/* Who writes a file anew truncates it first, which no event says for a moment. */
static void watch__of_a_file_that_became_empty__waits_for_what_comes(void **state)
{
	struct tree_watch_before before;
	struct tree_watch *w;
	uint64_t began_ms;

	(void)state;
	put("www/web.yaml", "a: before\n");
	loop = loop_new(&sys_real);
	assert_int_equal(tree_watch_start(loop, root, dir, 100, on_change, NULL, &w), 0);
	told[0] = '\0';
	awaited = "more than is told before the loop runs";
	began_ms = loop_now_ms(loop);
	close(open_in("www/web.yaml", O_TRUNC));
	for (int i = 0; i < 3; i++) {
		assert_true(tree_watch_is_written(w, "web.yaml", &before));
		assert_memory_equal(before.body, "a: before\n", 10);
		assert_string_equal(told, "");
		tree_watch_check(w, "web.yaml"); /* as often as somebody asks for it */
	}
	put("www/web.yaml", "a: after\n");
	assert_false(tree_watch_is_written(w, "web.yaml", &before));
	assert_memory_equal(before.body, "a: after\n", 9);
	assert_string_equal(told, "+web.yaml ");
	close(open_in("www/web.yaml", O_TRUNC));
	run_until("+web.yaml "); /* it stays empty */
	assert_string_equal(told, awaited);
	assert_true(loop_now_ms(loop) - began_ms >= TREE_WATCH_QUIET_MS);
	assert_false(tree_watch_is_written(w, "web.yaml", &before));
	assert_int_equal(before.len, 0);
	tree_watch_stop(w);
	loop_free(loop);
}

/* Between the close of one writer and the check there may be the next one. */
static void watch__of_a_file_that_the_next_one_writes_already__waits_for_the_close(void **state)
{
	struct tree_watch_before before;
	struct tree_watch *w;
	char name[160];
	int fd;

	(void)state;
	put("www/web.yaml", "a: before\n");
	loop = loop_new(&sys_real);
	assert_int_equal(tree_watch_start(loop, root, dir, 100, on_change, NULL, &w), 0);
	told[0] = '\0';
	awaited = "";
	close(open_in("www/web.yaml", 0));
	for (int i = 0; i < 150; i++) { /* more events than are read at once */
		snprintf(name, sizeof(name), "www/%0120d~", i);
		close(open_in(name, O_CREAT));
	}
	fd = open_in("www/web.yaml", O_TRUNC);
	assert_int_equal(write(fd, "a: ha", 5), 5);
	assert_true(tree_watch_is_written(w, "web.yaml", &before));
	assert_memory_equal(before.body, "a: before\n", 10);
	assert_string_equal(told, "");
	assert_int_equal(write(fd, "lf\n", 3), 3);
	close(fd);
	assert_false(tree_watch_is_written(w, "web.yaml", &before));
	assert_string_equal(told, "+web.yaml ");
	tree_watch_stop(w);
	loop_free(loop);
}

static void watch__of_a_file_that_nobody_closes__waits_until_it_is_quiet(void **state)
{
	struct tree_watch_before before;
	char from[PATH_MAX], to[PATH_MAX];
	struct tree_watch *w;
	int fd;

	(void)state;
	loop = loop_new(&sys_real);
	assert_int_equal(tree_watch_start(loop, root, dir, 100, on_change, NULL, &w), 0);
	fd = open_in("www/new.yaml", O_CREAT);
	assert_true(tree_watch_is_written(w, "new.yaml", &before));
	assert_string_equal(before.etag, ""); /* it was not there */
	assert_int_equal(write(fd, "n: 1\n", 5), 5);
	run_until("+new.yaml ");
	assert_string_equal(told, awaited);
	assert_false(tree_watch_is_written(w, "new.yaml", &before));
	assert_int_equal(write(fd, "m: 1\n", 5), 5);
	assert_true(tree_watch_is_written(w, "new.yaml", &before));
	assert_memory_equal(before.body, "n: 1\n", 5);
	path_in(to, "www/new.yaml");
	assert_int_equal(unlink(to), 0); /* while it is written */
	run_until("-new.yaml ");
	assert_string_equal(told, awaited);
	close(fd);
	path_in(from, "www/web.yaml");
	path_in(to, "www/hard.yaml");
	told[0] = '\0';
	assert_int_equal(link(from, to), 0);
	assert_false(tree_watch_is_written(w, "hard.yaml", &before)); /* it is whole */
	if (!told[0])
		run_until("+hard.yaml ");
	assert_string_equal(told, "+hard.yaml ");
	tree_watch_stop(w);
	loop_free(loop);
}

static void watch__of_more_than_it_may_keep__knows_the_etag(void **state)
{
	struct tree_watch_before before;
	struct tree_watch *w;
	int fd;

	(void)state;
	put("www/web.yaml", "a: before\n");
	loop = loop_new(&sys_real);
	assert_int_equal(tree_watch_start(loop, root, dir, 9, on_change, NULL, &w), 0);
	fd = open_in("www/web.yaml", O_TRUNC);
	assert_true(tree_watch_is_written(w, "web.yaml", &before));
	assert_null(before.body);
	assert_int_equal(strlen(before.etag), ORIGIN_ETAG - 1);
	close(fd);
	tree_watch_stop(w);
	loop_free(loop);
}

static void watch__of_files_that_change_often__keeps_the_last_of_each(void **state)
{
	struct tree_watch_before before;
	struct tree_watch *w;
	char text[32];
	int fd;

	(void)state;
	put("www/web.yaml", "a: 00\n");
	put("www/team/db.yaml", "b: 00\n");
	loop = loop_new(&sys_real);
	assert_int_equal(tree_watch_start(loop, root, dir, 12, on_change, NULL, &w), 0);
	told[0] = '\0';
	awaited = "x";
	for (unsigned i = 10; i < 15; i++) { /* there is room for both, not for more */
		snprintf(text, sizeof(text), "a: %u\n", i);
		put("www/web.yaml", text);
		assert_false(tree_watch_is_written(w, "web.yaml", &before));
		assert_int_equal(before.len, 6);
		assert_memory_equal(before.body, text, 6);
	}
	fd = open_in("www/web.yaml", O_TRUNC);
	assert_true(tree_watch_is_written(w, "web.yaml", &before));
	assert_memory_equal(before.body, "a: 14\n", 6);
	close(fd);
	assert_false(tree_watch_is_written(w, "team/db.yaml", &before));
	assert_memory_equal(before.body, "b: 00\n", 6);
	tree_watch_stop(w);
	loop_free(loop);
}

static void watch__of_a_large_file__keeps_a_mebibyte_and_not_more(void **state)
{
	struct tree_watch_before before;
	struct tree_watch *w;
	char *large = malloc(TREE_WATCH_KEPT_FILE + 1);

	(void)state;
	assert_non_null(large);
	memset(large, 'x', TREE_WATCH_KEPT_FILE + 1);
	scratch_write(root, "fits", large, TREE_WATCH_KEPT_FILE);
	scratch_write(root, "large", large, TREE_WATCH_KEPT_FILE + 1);
	loop = loop_new(&sys_real);
	assert_int_equal(
		tree_watch_start(loop, root, dir, 4 * TREE_WATCH_KEPT_FILE, on_change, NULL, &w),
		0);
	assert_false(tree_watch_is_written(w, "fits", &before));
	assert_non_null(before.body);
	assert_int_equal(before.len, TREE_WATCH_KEPT_FILE);
	assert_memory_equal(before.body, large, TREE_WATCH_KEPT_FILE);
	assert_false(tree_watch_is_written(w, "large", &before));
	assert_null(before.body);
	assert_int_equal(strlen(before.etag), ORIGIN_ETAG - 1);
	tree_watch_stop(w);
	loop_free(loop);
	free(large);
}

/* ---- a clock that goes on only when nothing is left to do ---- */

#define TURNS 5 /* of the loop, in which what the kernel tells is heard */

static uint64_t still_ms;
static unsigned turns, steps;

static uint64_t still_now(void)
{
	return still_ms;
}

static void still_wait(uint64_t due_ms)
{
	if (turns > 0) {
		turns--;
	} else if (due_ms > still_ms) {
		still_ms = due_ms;
		turns = TURNS;
		steps++;
	}
}

static uint64_t hurried_us;

/* Each look at the clock is late: a round has time for one name. */
static uint64_t hurried_now(void)
{
	return hurried_us += 3000;
}

/* Steps of the clock within that time. */
static unsigned steps_within(uint64_t ms)
{
	struct loop_timer end;

	steps = 0;
	turns = TURNS;
	loop_timer_init(&end, give_up, NULL);
	loop_timer_set(loop, &end, still_ms + ms);
	assert_int_equal(loop_run(loop), 0);
	return steps;
}

static void watch__tells_at_once__and_sleeps_when_all_is_told(void **state)
{
	struct sys sys = sys_real;
	struct tree_watch *w;
	char path[PATH_MAX];
	uint64_t before_ms;

	(void)state;
	path_in(path, "www/..v1");
	mkdir(path, 0700);
	put("www/..v1/end.yaml", "v: 1\n");
	link_to("..v1", "www/..data");
	link_to("..data/end.yaml", "www/end.yaml");
	still_ms = 1000;
	sys.now_ms = still_now;
	sys.wait_until = still_wait;
	loop = loop_new(&sys);
	assert_int_equal(tree_watch_start(loop, root, dir, 100, on_change, NULL, &w), 0);
	before_ms = still_ms;
	put("www/web.yaml", "a: new\n");
	turns = TURNS;
	run_until("+web.yaml ");
	assert_string_equal(told, awaited);
	assert_int_equal(still_ms, before_ms); /* not after a pause */
	path_in(path, "www/..v2");
	mkdir(path, 0700);
	put("www/..v2/end.yaml", "v: 2\n");
	link_to("..v2", "www/..data"); /* everything is looked at */
	turns = TURNS;
	run_until("+end.yaml ");
	assert_string_equal(told, awaited);
	awaited = "x";
	told[0] = '\0';
	steps_within(500);                            /* the rest, and pauses */
	assert_in_range(steps_within(10000), 10, 20); /* the looks at its path */
	assert_string_equal(told, "");
	put("www/web.yaml", "a: newer\n");
	turns = TURNS;
	run_until("+web.yaml "); /* it is awake again */
	assert_string_equal(told, awaited);
	sys.monotonic_us = hurried_now;
	put("www/team/db.yaml", "b: new\n");
	put("www/web.yaml", "a: newest\n");
	turns = TURNS;
	run_until("+team/db.yaml +web.yaml ");
	assert_string_equal(told, awaited);
	steps_within(500);
	assert_in_range(steps_within(10000), 10, 20); /* after a pause, too */
	tree_watch_stop(w);
	loop_free(loop);
}

/* ---- bounds ---- */

static void watch__of_folders_in_folders__goes_sixteen_deep(void **state)
{
	char path[PATH_MAX], low[PATH_MAX] = "www", deepest[PATH_MAX];
	struct tree_watch *w;

	(void)state;
	for (int i = 1; i <= 17; i++) {
		snprintf(low + strlen(low), 8, "/d");
		path_in(path, low);
		assert_int_equal(mkdir(path, 0700), 0);
		if (i == 16)
			snprintf(deepest, sizeof(deepest), "%s/a", low);
	}
	snprintf(low + strlen(low), 8, "/a");
	put(deepest, "1");
	put(low, "1");
	loop = loop_new(&sys_real);
	assert_int_equal(tree_watch_start(loop, root, dir, 100, on_change, NULL, &w), 0);
	put(low, "2");
	put(deepest, "2");
	snprintf(path, sizeof(path), "+%s ", deepest + strlen("www/"));
	run_until(path);
	assert_string_equal(told, path);
	tree_watch_stop(w);
	loop_free(loop);
}

/* Beside the directory itself and "team". */
#define MORE_FOLDERS (TREE_WATCH_MAX_DIRS - 2)

static void change_folders(int (*change)(const char *path))
{
	char path[PATH_MAX], name[32];

	for (unsigned i = 0; i < MORE_FOLDERS; i++) {
		snprintf(name, sizeof(name), "www/f%u", i);
		path_in(path, name);
		assert_int_equal(change(path), 0);
	}
}

static int make_folder(const char *path)
{
	return mkdir(path, 0700);
}

static void watch__of_a_folder_too_many__follows_it_once_there_is_room(void **state)
{
	struct captured log = captured_begin(STDERR_FILENO);
	char path[PATH_MAX], text[1024];
	struct tree_watch *w;

	(void)state;
	loop = loop_new(&sys_real);
	assert_int_equal(tree_watch_start(loop, root, dir, 100, on_change, NULL, &w), 0);
	change_folders(make_folder);
	path_in(path, "www/over");
	assert_int_equal(make_folder(path), 0);
	put("www/over/a.yaml", "a: 1\n");
	put("www/f0/a.yaml", "a: 1\n");
	put("www/web.yaml", "a: 2\n");
	run_until("+f0/a.yaml +web.yaml ");
	captured_read(&log, text, sizeof(text));
	captured_end(&log);
	assert_null(strstr(told, "over"));
	assert_non_null(
		strstr(text, "too many folders: changes in this one will not be published"));
	assert_non_null(strstr(text, "/www/over\n"));
	path_in(path, "www/f0/a.yaml");
	assert_int_equal(unlink(path), 0);
	change_folders(rmdir);
	run_until("-f0/a.yaml +over/a.yaml ");
	assert_non_null(strstr(told, "+over/a.yaml "));
	tree_watch_stop(w);
	loop_free(loop);
}

static bool no_more_watches;

int inotify_add_watch(int fd, const char *path, uint32_t mask)
{
	errno = ENOSPC; /* fs.inotify.max_user_watches */
	return no_more_watches ? -1 : (int)syscall(SYS_inotify_add_watch, fd, path, mask);
}

static void watch__of_a_folder_that_the_kernel_refuses__says_so(void **state)
{
	struct captured log = captured_begin(STDERR_FILENO);
	char path[PATH_MAX], text[1024];
	struct tree_watch *w;

	(void)state;
	loop = loop_new(&sys_real);
	assert_int_equal(tree_watch_start(loop, root, dir, 100, on_change, NULL, &w), 0);
	no_more_watches = true;
	path_in(path, "www/new");
	assert_int_equal(make_folder(path), 0);
	put("www/new/a.yaml", "a: 1\n");
	put("www/web.yaml", "a: 2\n");
	run_until("+web.yaml ");
	no_more_watches = false;
	captured_read(&log, text, sizeof(text));
	captured_end(&log);
	assert_string_equal(told, awaited);
	assert_non_null(
		strstr(text, "cannot watch a folder: changes there will not be published path="));
	assert_non_null(strstr(text, "/www/new why=\"this user has no inotify watches left: "));
	tree_watch_stop(w);
	loop_free(loop);
}

static bool start_once(void)
{
	struct tree_watch *w = NULL;
	int r = tree_watch_start(loop, root, dir, 100, on_change, NULL, &w);

	assert_true(r == 0 || r == -ENOMEM);
	tree_watch_stop(w);
	return r;
}

static void watch__without_memory__begins_or_says_so(void **state)
{
	unsigned before = scratch_descriptors();

	(void)state;
	loop = loop_new(&sys_real);
	assert_true(fault_memory_each(start_once, false) >= 1);
	loop_free(loop);
	assert_int_equal(scratch_descriptors(), before);
}

static void watch__without_descriptors__does_not_begin(void **state)
{
	unsigned before = scratch_descriptors();
	struct tree_watch *w = NULL;
	struct rlimit limit, few;
	int r;

	(void)state;
	loop = loop_new(&sys_real);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	few = limit;
	few.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	r = tree_watch_start(loop, root, dir, 100, on_change, NULL, &w);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(r, -EMFILE);
	assert_null(w);
	loop_free(loop);
	assert_int_equal(scratch_descriptors(), before);
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
			watch__of_a_directory_that_is_replaced__goes_over_to_the_other, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			watch__of_a_folder_that_is_renamed__goes_on, set_up, tear_down),
		cmocka_unit_test(path__that_is_served__has_no_hidden_or_empty_part),
		cmocka_unit_test(content_type__is_that_of_the_ending),
		cmocka_unit_test_setup_teardown(
			read__of_a_file__has_its_bytes_etag_and_time, set_up, tear_down),
		cmocka_unit_test_setup_teardown(read__of_any_length__is_whole, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			read__of_a_file_that_grows_meanwhile__is_whole, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			read__of_a_file_of_the_kernel__is_whole, set_up, tear_down),
		cmocka_unit_test_setup_teardown(read__that_fails__says_how, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			watch__of_a_directory_that_is_gone__says_so_once_and_when_it_is_back,
			set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			watch__of_a_directory_that_stays__does_not_take_it_for_another, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			watch__of_many_changes_at_once__tells_them_all, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			watch__of_folders_that_come_and_go__tells_of_what_is_in_them, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			watch__of_a_file_that_is_being_written__waits_for_the_close, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			watch__of_a_file_that_cannot_be_read__says_so, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			watch__of_a_file_with_another_mode__looks_at_it_but_not_while_it_is_written,
			set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			watch__of_a_file_that_became_empty__waits_for_what_comes, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			watch__of_a_file_that_the_next_one_writes_already__waits_for_the_close,
			set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			watch__of_a_file_that_nobody_closes__waits_until_it_is_quiet, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			watch__of_more_than_it_may_keep__knows_the_etag, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			watch__of_files_written_in_place__tells_when_they_are_closed, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			watch__of_files_that_change_often__keeps_the_last_of_each, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			watch__of_a_large_file__keeps_a_mebibyte_and_not_more, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			watch__tells_at_once__and_sleeps_when_all_is_told, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			read__by_a_program_without_standard_input__is_the_same, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			watch__of_folders_in_folders__goes_sixteen_deep, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			watch__of_a_folder_too_many__follows_it_once_there_is_room, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			watch__of_a_folder_that_the_kernel_refuses__says_so, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			watch__without_descriptors__does_not_begin, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			watch__without_memory__begins_or_says_so, set_up, tear_down),
	};

	alarm(60);
	return fault_memory_run(tests, 1);
}
