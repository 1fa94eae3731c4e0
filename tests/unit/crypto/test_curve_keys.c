/* Keys as text, the files that hold them, lists of them, and which endpoints stay on this host. */
#include <errno.h>
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

#include "crypto/curve_keys.h"
#include "tests/unit/fixture/fault_sys.h"
#include "tests/unit/fixture/scratch.h"

/* of ZeroMQ's RFC 26 */
#define PUBLIC "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID"
#define SECRET "D:)Q[IlAW!ahhC2ac:9*A}h:p?([4%wOTJ%JR%cs"
#define OTHER "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7"

static char root[SCRATCH_PATH];
static struct sys faulty;

static int set_up(void **state)
{
	(void)state;
	memset(&fault, 0, sizeof(fault));
	faulty = fault_table();
	scratch_open(root, scratch_disk());
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	scratch_close(root);
	return 0;
}

static const char *path_of(const char *name)
{
	static char path[2][PATH_MAX];
	static unsigned turn;
	char *p = path[turn++ % 2];

	snprintf(p, PATH_MAX, "%s/%s", root, name);
	return p;
}

static const char *put(const char *name, const char *text, mode_t mode)
{
	const char *path = path_of(name);
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(path, mode), 0);
	return path;
}

static bool exists(const char *name)
{
	return access(path_of(name), F_OK) == 0;
}

/* ---- text ---- */

static void check__of_keys_and_of_what_is_none(void **state)
{
	static const char *const bad[] = {"", "x", PUBLIC "x",
		"Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hI",
		/* Z85 has no quotes, blanks, backslashes, underscores */
		"Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{h\"D",
		"Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{h D",
		"Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{h_D",
		"Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{h\xc3\xa4",
		/* the first five are more than 32 bits: %nSc1 is the first number that is */
		"%nSc1w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID",
		"#ne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID",
		"RWSYMC7n8ADplDfW2kiEMNo8BX8IPthSF1HxnEXGBzB/KwlR4ZfoNZlN"};

	(void)state;
	assert_null(curve_check_key(PUBLIC));
	assert_null(curve_check_key(SECRET));
	assert_null(curve_check_key("%nSc0w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID"));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (!curve_check_key(bad[i]))
			fail_msg("'%s' was taken", bad[i]);
}

static void stays_here__is_for_addresses_not_for_names_that_look_like_them(void **state)
{
	static const char *const here[] = {"ipc:///run/x", "tcp://127.0.0.1:7377",
		"tcp://127.255.0.9:1", "tcp://[::1]:7377", "tcp://[::ffff:127.0.0.1]:1",
		"tcp://localhost:7377", "tcp://LocalHost:1", "127.0.0.1:0", "localhost:7377",
		"tcp://127.0.0.1:*"};
	static const char *const away[] = {"tcp://10.0.0.1:7377", "tcp://0.0.0.0:7377",
		"tcp://*:7377", "*:7377", "tcp://[::]:1", "tcp://[::ffff:10.0.0.1]:1",
		"tcp://127.0.0.1.evil.example:1", "tcp://127.evil.example:1",
		"tcp://localhost.evil.example:1", "tcp://eth0:7377", "tcp://128.0.0.1:1",
		"tcp://127.0.0.1:0;evil.example:1", "tcp://evil.example;127.0.0.1:1", "", "tcp://",
		"tcp://:1", "udp://127.0.0.1:1", "pgm://127.0.0.1:1", "7377"};

	(void)state;
	for (size_t i = 0; i < sizeof(here) / sizeof(here[0]); i++)
		if (!curve_stays_here(here[i]))
			fail_msg("%s stays here", here[i]);
	for (size_t i = 0; i < sizeof(away) / sizeof(away[0]); i++)
		if (curve_stays_here(away[i]))
			fail_msg("%s does not stay here", away[i]);
}

static void url_is_open__plain_http_to_another_host__however_it_is_written(void **state)
{
	static const char *const open[] = {"http://a.example/x", "HTTP://a.example",
		"Http://10.0.0.1:80/", "http://127.0.0.1.a.example/",
		"http://localhost.a.example:80", "http://a.example/@127.0.0.1"};
	static const char *const closed[] = {"https://a.example/x", "HTTPS://a.example",
		"http://127.0.0.1/x", "http://[::1]:80", "HTTP://LocalHost:8080/x",
		"http://localhost?x", "file:///x"};

	(void)state;
	for (size_t i = 0; i < sizeof(open) / sizeof(open[0]); i++)
		if (!curve_url_is_open(open[i]))
			fail_msg("%s is open", open[i]);
	for (size_t i = 0; i < sizeof(closed) / sizeof(closed[0]); i++)
		if (curve_url_is_open(closed[i]))
			fail_msg("%s is not open", closed[i]);
}

/* ---- the secret key's file ---- */

static void expect_secret(const char *text)
{
	char key[CURVE_TEXT] = "";
	const char *why = NULL, *path = put("key", text, 0600);

	if (curve_read_secret(&sys_real, path, key, &why))
		fail_msg("refused: %s", why);
	assert_string_equal(key, SECRET);
}

static void expect_no_secret(const char *path, int error, const char *words)
{
	char key[CURVE_TEXT] = "";
	const char *why = NULL;

	assert_int_equal(curve_read_secret(&sys_real, path, key, &why), error);
	assert_non_null(why);
	if (!strstr(why, words))
		fail_msg("'%s' lacks '%s'", why, words);
	assert_null(strstr(why, "D:)Q"));
}

static void read__of_a_secret_key__takes_one_key_among_comments(void **state)
{
	(void)state;
	expect_secret(SECRET);
	expect_secret(SECRET "\n");
	expect_secret("# a comment\n\n  " SECRET " \t# mine\r\n#" PUBLIC "\n\n");
	expect_secret(SECRET "\r\n");
}

static void read__of_a_secret_key__refuses_what_is_none_and_never_shows_it(void **state)
{
	char large[CURVE_MAX_SECRET_FILE + 2];

	(void)state;
	expect_no_secret(put("a", "", 0600), -EINVAL, "no key");
	expect_no_secret(put("a", "# only words\n", 0600), -EINVAL, "no key");
	expect_no_secret(put("a", SECRET "x\n", 0600), -EINVAL, "no key");
	expect_no_secret(put("a", SECRET " x\n", 0600), -EINVAL, "no key");
	expect_no_secret(put("a", SECRET "\n" SECRET "\n", 0600), -EINVAL, "more than one");
	expect_no_secret(put("a", SECRET "\nx\n", 0600), -EINVAL, "more than one");
	memset(large, '#', sizeof(large));
	large[sizeof(large) - 1] = '\0';
	expect_no_secret(put("a", large, 0600), -EMSGSIZE, "too large");
	large[CURVE_MAX_SECRET_FILE - 41] = '\n';
	memcpy(large + CURVE_MAX_SECRET_FILE - 40, SECRET, 41);
	expect_secret(large);
	expect_no_secret(path_of("none"), -ENOENT, "keygen");
	expect_no_secret(root, -EINVAL, "regular file");
	assert_int_equal(mkfifo(path_of("fifo"), 0600), 0);
	expect_no_secret(path_of("fifo"), -EINVAL, "regular file");
}

static void read__of_a_secret_key__refuses_a_file_that_others_can_read(void **state)
{
	static const mode_t good[] = {0600, 0400, 0640, 0440},
			    bad[] = {0644, 0604, 0602, 0601, 0660, 0620, 0777, 0444};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		char key[CURVE_TEXT];
		const char *why;

		assert_int_equal(
			curve_read_secret(&sys_real, put("key", SECRET, good[i]), key, &why), 0);
		unlink(path_of("key"));
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		expect_no_secret(put("key", SECRET, bad[i]), -EINVAL, "chmod 600");
		unlink(path_of("key"));
	}
}

static void read__of_a_secret_key__follows_links_of_volumes(void **state)
{
	char key[CURVE_TEXT];
	const char *why;

	(void)state;
	put("data", SECRET "\n", 0600);
	assert_int_equal(symlink("data", path_of("key")), 0);
	assert_int_equal(curve_read_secret(&sys_real, path_of("key"), key, &why), 0);
}

static void read__of_a_secret_key__survives_interrupts_and_tells_failures(void **state)
{
	char key[CURVE_TEXT];
	const char *why = NULL, *path = put("key", SECRET "\n", 0600);

	(void)state;
	fault = (struct fault){.call = CALL_READ, .nth = 1, .error = EINTR};
	assert_int_equal(curve_read_secret(&faulty, path, key, &why), 0);
	fault = (struct fault){.call = CALL_READ, .nth = 1, .error = EIO};
	assert_int_equal(curve_read_secret(&faulty, path, key, &why), -EIO);
	assert_non_null(strstr(why, "cannot be read"));
	fault = (struct fault){.call = CALL_OPEN, .nth = 1, .error = EMFILE};
	assert_int_equal(curve_read_secret(&faulty, path, key, &why), -EMFILE);
	assert_non_null(strstr(why, "descriptors"));
}

/* ---- a pair ---- */

static mode_t mode_of(const char *name)
{
	struct stat st;

	assert_int_equal(stat(path_of(name), &st), 0);
	return st.st_mode & 07777;
}

static void write__of_a_pair__can_be_read_again_and_has_its_modes(void **state)
{
	struct curve_allow list = {0};
	char key[CURVE_TEXT], why[CURVE_WHY] = "";
	const char *fault_text = NULL;
	mode_t before = umask(0277);

	(void)state;
	assert_int_equal(curve_write_pair(&sys_real, path_of("k"), PUBLIC, SECRET, why), 0);
	umask(before);
	assert_int_equal(mode_of("k"), 0600);
	assert_int_equal(mode_of("k.pub"), 0644);
	assert_int_equal(curve_read_secret(&sys_real, path_of("k"), key, &fault_text), 0);
	assert_string_equal(key, SECRET);
	assert_int_equal(curve_allow_refresh(&sys_real, &list, path_of("k.pub"), why), 1);
	assert_int_equal(list.count, 1);
	curve_allow_fini(&list);
	/* the one in the place of the other */
	expect_no_secret(path_of("k.pub"), -EINVAL, "chmod 600");
}

static void write__of_a_pair__never_replaces_a_file(void **state)
{
	char why[CURVE_WHY], key[CURVE_TEXT];
	const char *fault_text;

	(void)state;
	put("k", SECRET, 0600);
	assert_int_equal(curve_write_pair(&sys_real, path_of("k"), PUBLIC, OTHER, why), -EEXIST);
	assert_non_null(strstr(why, "never overwritten"));
	assert_null(strstr(why, OTHER));
	assert_false(exists("k.pub"));
	assert_int_equal(curve_read_secret(&sys_real, path_of("k"), key, &fault_text), 0);
	assert_string_equal(key, SECRET);
	put("m.pub", PUBLIC, 0644);
	assert_int_equal(curve_write_pair(&sys_real, path_of("m"), PUBLIC, SECRET, why), -EEXIST);
	assert_false(exists("m"));
	assert_true(exists("m.pub"));
	assert_int_equal(symlink("elsewhere", path_of("l")), 0);
	assert_int_equal(curve_write_pair(&sys_real, path_of("l"), PUBLIC, SECRET, why), -EEXIST);
	assert_false(exists("elsewhere"));
}

static void write__of_a_pair__failing_at_any_call__leaves_nothing(void **state)
{
	static const int calls[] = {CALL_OPEN, CALL_WRITE, CALL_FCHMOD, CALL_FSYNC, CALL_CLOSE};
	char why[CURVE_WHY];
	unsigned failures = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		for (unsigned nth = 1; nth <= 2; nth++) {
			fault = (struct fault){.call = calls[i], .nth = nth, .error = ENOSPC};
			why[0] = '\0';
			failures += curve_write_pair(&faulty, path_of("k"), PUBLIC, SECRET, why) ==
				    -ENOSPC;
			assert_true(why[0]);
			assert_false(exists("k"));
			assert_false(exists("k.pub"));
		}
	assert_int_equal(failures, 10);
	fault = (struct fault){.interrupt = true, .short_writes = true};
	assert_int_equal(curve_write_pair(&faulty, path_of("k"), PUBLIC, SECRET, why), 0);
	expect_secret(SECRET);
}

/* ---- lists ---- */

static bool has(const struct curve_allow *a, const char *text)
{
	/* the bytes, by way of a list of one */
	struct curve_allow one = {0};
	char why[CURVE_WHY];
	bool found;

	assert_int_equal(curve_allow_refresh(&sys_real, &one, put("one", text, 0644), why), 1);
	found = curve_allow_has(a, one.keys[0]);
	curve_allow_fini(&one);
	unlink(path_of("one"));
	return found;
}

static void list__takes_keys_with_comments_and_finds_them(void **state)
{
	static const unsigned char bytes[] = {0xbb, 0x88, 0x47, 0x1d, 0x65, 0xe2, 0x65, 0x9b, 0x30,
		0xc5, 0x5a, 0x53, 0x21, 0xce, 0xbb, 0x5a, 0xab, 0x2b, 0x70, 0xa3, 0x98, 0x64, 0x5c,
		0x26, 0xdc, 0xa2, 0xb2, 0xfc, 0xb4, 0x3f, 0xc5, 0x18};
	struct curve_allow a = {0};
	char why[CURVE_WHY] = "";

	(void)state;
	put("list", "# hosts\n\n" PUBLIC "\n  " OTHER "  # web-2\r\n#" SECRET "\n", 0644);
	assert_false(curve_allow_has(&a, bytes));
	assert_int_equal(curve_allow_refresh(&sys_real, &a, path_of("list"), why), 1);
	assert_int_equal(a.count, 2);
	assert_true(curve_allow_has(&a, bytes)); /* as RFC 26 has them */
	assert_true(has(&a, PUBLIC));
	assert_true(has(&a, OTHER));
	assert_false(has(&a, SECRET));
	curve_allow_fini(&a);
	assert_int_equal(a.count, 0);
}

/* The list of that name cannot be had: the error, and the sentence behind its path. */
static void assert_no_list(const char *name, int error, const char *sentence)
{
	char why[CURVE_WHY], expected[CURVE_WHY + SCRATCH_PATH];
	struct curve_allow a = {0};

	assert_int_equal(curve_allow_refresh(&sys_real, &a, path_of(name), why), error);
	snprintf(expected, sizeof(expected), "the list %s%s", path_of(name), sentence);
	assert_string_equal(why, expected);
	assert_int_equal(a.count, 0);
	assert_null(a.keys);
}

static void list__that_is_bad__is_refused_with_its_line(void **state)
{
	static const struct {
		const char *text;
		unsigned line; /* 0: it is empty */
	} table[] = {
		{"", 0},
		{"\n \t\r\n", 0},
		{"# " PUBLIC "\n", 0},
		{PUBLIC "\nweb-2\n" OTHER "\n", 2},
		{PUBLIC "\n\n" OTHER " web-2\n", 3},
		{PUBLIC OTHER "\n", 1},
		{PUBLIC "\n" PUBLIC "x", 2},
	};
	char sentence[200];

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		put("list", table[i].text, 0644);
		snprintf(sentence, sizeof(sentence),
			table[i].line ? ": line %u is not a public key, which is 40 characters of "
					"Z85, and a comment behind a # if you like"
				      : " holds no public key: nobody could connect",
			table[i].line);
		assert_no_list("list", -EINVAL, sentence);
		unlink(path_of("list"));
	}
}

static void list__that_cannot_be_read__says_why(void **state)
{
	char line[] = PUBLIC "\n#", why[CURVE_WHY];
	struct curve_allow a = {0};

	(void)state;
	assert_no_list("none", -ENOENT, " cannot be read: No such file or directory");
	assert_no_list(".", -EINVAL, " cannot be read: it is not a regular file");
	put("list", line, 0644);
	/* the rest, of NULs, is a comment */
	assert_int_equal(truncate(path_of("list"), CURVE_MAX_ALLOW - 1), 0);
	assert_int_equal(curve_allow_refresh(&sys_real, &a, path_of("list"), why), 1);
	assert_int_equal(a.count, 1);
	curve_allow_fini(&a);
	assert_int_equal(truncate(path_of("list"), CURVE_MAX_ALLOW), 0);
	assert_no_list(
		"list", -EMSGSIZE, " cannot be read: it is larger than 4 MiB, or grew meanwhile");
	if (geteuid() != 0)
		return;
	assert_int_equal(symlink("list", path_of("link")), 0);
	assert_int_equal(lchown(path_of("link"), 65534, 65534), 0);
	assert_int_equal(curve_allow_refresh(&sys_real, &a, path_of("link"), why), -EPERM);
	assert_non_null(strstr(why, "/link cannot be read: "));
	assert_null(strstr(why, strerror(EPERM))); /* but what to do */
	curve_allow_fini(&a);
}

/* Who starts without it has to know, however often it is looked for. */
static void list__that_is_missing__is_an_error_each_time(void **state)
{
	struct curve_allow a = {0};
	char why[CURVE_WHY];

	(void)state;
	for (int i = 0; i < 3; i++) {
		why[0] = '\0';
		assert_int_equal(
			curve_allow_refresh(&sys_real, &a, path_of("missing"), why), -ENOENT);
		assert_non_null(strstr(why, "/missing cannot be read: "));
	}
	put("missing", PUBLIC "\n", 0644);
	assert_int_equal(curve_allow_refresh(&sys_real, &a, path_of("missing"), why), 1);
	assert_int_equal(curve_allow_refresh(&sys_real, &a, path_of("missing"), why), 0);
	assert_int_equal(a.count, 1);
	curve_allow_fini(&a);
	unlink(path_of("missing"));
}

static void list__that_is_written_in_place__is_read_anew(void **state)
{
	struct curve_allow a = {0};
	char why[CURVE_WHY];
	struct stat st, now;

	(void)state;
	put("list", PUBLIC "\n", 0644);
	assert_int_equal(stat(path_of("list"), &st), 0);
	assert_int_equal(curve_allow_refresh(&sys_real, &a, path_of("list"), why), 1);
	/* as large as before, and as old: only the kernel knows better */
	do {
		put("list", OTHER "\n", 0644);
		assert_int_equal(utimensat(AT_FDCWD, path_of("list"),
					 (struct timespec[]){st.st_atim, st.st_mtim}, 0),
			0);
		assert_int_equal(stat(path_of("list"), &now), 0);
	} while (memcmp(&now.st_ctim, &st.st_ctim, sizeof(st.st_ctim)) == 0);
	assert_int_equal(curve_allow_refresh(&sys_real, &a, path_of("list"), why), 1);
	assert_true(has(&a, OTHER));
	assert_false(has(&a, PUBLIC));
	assert_int_equal(curve_allow_refresh(&sys_real, &a, path_of("list"), why), 0);
	curve_allow_fini(&a);
}

static void list__is_read_anew_when_it_changed_only(void **state)
{
	struct curve_allow a = {0};
	char why[CURVE_WHY];
	const char *path = put("list", PUBLIC "\n", 0644);

	(void)state;
	assert_int_equal(curve_allow_refresh(&sys_real, &a, path, why), 1);
	fault = (struct fault){.call = CALL_OPEN, .nth = 1, .for_ever = true, .error = EIO};
	assert_int_equal(curve_allow_refresh(&faulty, &a, path, why), 0);
	put("new", OTHER "\n" PUBLIC "\n", 0644);
	assert_int_equal(rename(path_of("new"), path_of("list")), 0);
	assert_int_equal(curve_allow_refresh(&sys_real, &a, path_of("list"), why), 1);
	assert_true(has(&a, OTHER));
	assert_true(has(&a, PUBLIC));
	put("new", OTHER "\n", 0644);
	assert_int_equal(rename(path_of("new"), path_of("list")), 0);
	assert_int_equal(curve_allow_refresh(&sys_real, &a, path_of("list"), why), 1);
	assert_false(has(&a, PUBLIC));
	curve_allow_fini(&a);
}

static void list__that_becomes_bad__is_said_once_and_stays_as_it_was(void **state)
{
	struct curve_allow a = {0};
	char why[CURVE_WHY];

	(void)state;
	put("list", PUBLIC "\n", 0644);
	assert_int_equal(curve_allow_refresh(&sys_real, &a, path_of("list"), why), 1);
	put("list", PUBLIC "\nhalf a ke", 0644);
	assert_int_equal(curve_allow_refresh(&sys_real, &a, path_of("list"), why), -EINVAL);
	assert_int_equal(curve_allow_refresh(&sys_real, &a, path_of("list"), why), 0);
	assert_true(has(&a, PUBLIC));
	assert_int_equal(unlink(path_of("list")), 0);
	assert_int_equal(curve_allow_refresh(&sys_real, &a, path_of("list"), why), -ENOENT);
	assert_int_equal(curve_allow_refresh(&sys_real, &a, path_of("list"), why), 0);
	assert_true(has(&a, PUBLIC));
	put("list", OTHER "\n", 0644);
	assert_int_equal(curve_allow_refresh(&sys_real, &a, path_of("list"), why), 1);
	assert_false(has(&a, PUBLIC));
	assert_true(has(&a, OTHER));
	curve_allow_fini(&a);
}

static void list__cut_anywhere__is_never_read_past_its_end(void **state)
{
	static const char text[] = "# x\n" PUBLIC "\n" OTHER " # y\n" SECRET;
	char name[16];

	(void)state;
	for (size_t n = 0; n < sizeof(text); n++) {
		struct curve_allow a = {0};
		char cut[sizeof(text)], why[CURVE_WHY];
		int r;

		memcpy(cut, text, n);
		cut[n] = '\0';
		snprintf(name, sizeof(name), "cut%zu", n);
		r = curve_allow_refresh(&sys_real, &a, put(name, cut, 0644), why);
		assert_true(r == 1 ? a.count >= 1 && a.count <= 3 : r == -EINVAL && !a.count);
		curve_allow_fini(&a);
	}
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(check__of_keys_and_of_what_is_none),
		cmocka_unit_test(stays_here__is_for_addresses_not_for_names_that_look_like_them),
		cmocka_unit_test(url_is_open__plain_http_to_another_host__however_it_is_written),
		CASE(read__of_a_secret_key__takes_one_key_among_comments),
		CASE(read__of_a_secret_key__refuses_what_is_none_and_never_shows_it),
		CASE(read__of_a_secret_key__refuses_a_file_that_others_can_read),
		CASE(read__of_a_secret_key__follows_links_of_volumes),
		CASE(read__of_a_secret_key__survives_interrupts_and_tells_failures),
		CASE(write__of_a_pair__can_be_read_again_and_has_its_modes),
		CASE(write__of_a_pair__never_replaces_a_file),
		CASE(write__of_a_pair__failing_at_any_call__leaves_nothing),
		CASE(list__takes_keys_with_comments_and_finds_them),
		CASE(list__that_is_bad__is_refused_with_its_line),
		CASE(list__that_cannot_be_read__says_why),
		CASE(list__is_read_anew_when_it_changed_only),
		CASE(list__that_is_missing__is_an_error_each_time),
		CASE(list__that_is_written_in_place__is_read_anew),
		CASE(list__that_becomes_bad__is_said_once_and_stays_as_it_was),
		CASE(list__cut_anywhere__is_never_read_past_its_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
