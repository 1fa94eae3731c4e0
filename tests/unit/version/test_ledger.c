/*
 * What a config remembers: it comes back from its file as it was, within its bounds; a file that is
 * not a ledger is an empty one, and said to be.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "version/ledger.h"
#include "tests/unit/fixture/fault_sys.h"
#include "tests/unit/fixture/scratch.h"

#define FILE_NAME "ledger.json"

static struct sys sys;
static char place[SCRATCH_PATH];
static int dir;
static unsigned descriptors;

static int place_open(void **state)
{
	(void)state;
	memset(&fault, 0, sizeof(fault));
	scratch_open(place, scratch_memory());
	dir = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(dir >= 0);
	descriptors = scratch_descriptors();
	return 0;
}

static int place_close(void **state)
{
	(void)state;
	memset(&fault, 0, sizeof(fault));
	assert_int_equal(scratch_descriptors(), descriptors);
	close(dir);
	scratch_close(place);
	return 0;
}

static struct ledger *load(void)
{
	struct ledger *l = NULL;

	assert_int_equal(ledger_load(&sys, dir, &l), 0);
	assert_non_null(l);
	return l;
}

static void save(const struct ledger *l)
{
	char why[FILE_WHY] = "";

	if (ledger_save(l, &sys, dir, false, why))
		fail_msg("%s", why);
}

static void assert_empty(const struct ledger *l)
{
	assert_non_null(l);
	assert_int_equal(l->verdict_count, 0);
	assert_int_equal(l->override_count, 0);
	assert_null(l->pin.by);
	assert_null(l->suspension);
	assert_true(l->notified == 0 && l->proven == 0 && l->generation == 0);
	assert_null(l->revs);
	assert_true(ledger_next_expiry(l) == LEDGER_FOREVER);
}

static void assert_same_pin(const struct ledger_pin *a, const struct ledger_pin *b)
{
	assert_int_equal(a->by != NULL, b->by != NULL);
	if (!a->by)
		return;
	assert_string_equal(a->by, b->by);
	assert_string_equal(a->reason, b->reason);
	assert_true(a->until_ms == b->until_ms);
}

static void assert_same(const struct ledger *a, const struct ledger *b)
{
	assert_int_equal(a->verdict_count, b->verdict_count);
	for (size_t i = 0; i < a->verdict_count; i++) {
		assert_string_equal(a->verdicts[i].sha256, b->verdicts[i].sha256);
		assert_string_equal(a->verdicts[i].check, b->verdicts[i].check);
		assert_string_equal(a->verdicts[i].checks, b->verdicts[i].checks);
		assert_string_equal(a->verdicts[i].why, b->verdicts[i].why);
		assert_true(a->verdicts[i].at_ms == b->verdicts[i].at_ms);
	}
	assert_int_equal(a->override_count, b->override_count);
	for (size_t i = 0; i < a->override_count; i++) {
		assert_string_equal(a->overrides[i].key, b->overrides[i].key);
		assert_string_equal(a->overrides[i].value, b->overrides[i].value);
		assert_string_equal(a->overrides[i].by, b->overrides[i].by);
		assert_string_equal(a->overrides[i].reason, b->overrides[i].reason);
		assert_true(a->overrides[i].until_ms == b->overrides[i].until_ms);
	}
	assert_same_pin(&a->pin, &b->pin);
	assert_int_equal(a->suspension != NULL, b->suspension != NULL);
	if (a->suspension)
		assert_same_pin(a->suspension, b->suspension);
	assert_true(a->notified == b->notified);
	assert_true(a->proven == b->proven);
	assert_true(a->generation == b->generation);
	assert_memory_equal(ledger_revs(a), ledger_revs(b), LEDGER_MAX_LAYERS * sizeof(uint64_t));
}

static void assert_comes_back(const struct ledger *l)
{
	struct ledger *back;

	save(l);
	back = load();
	assert_same(l, back);
	ledger_free(back);
}

/* A ledger with something of everything. */
static void fill(struct ledger *l)
{
	assert_int_equal(ledger_reject(l, "aa", "schema", "rules", 1000, "line 1"), 0);
	assert_int_equal(ledger_reject(l, "bb", "probe", "", 2000, "no answer"), 0);
	assert_int_equal(ledger_override(l, "log.level", "debug", 5000, "uid 0", "looking"), 0);
	assert_int_equal(ledger_override(l, "a\\.b", "[1, 2]", LEDGER_FOREVER, "uid 7", ""), 0);
	assert_int_equal(ledger_pin(l, 9000, "uid 0", "release", "5e"), 0);
	assert_int_equal(ledger_suspend(l, 9500, "root (uid 0)", "the server moves"), 0);
	l->notified = 12;
	l->proven = 11;
	l->generation = 13;
	assert_int_equal(ledger_reserve_revs(l), 0);
	l->revs[0] = 3;
	l->revs[LEDGER_MAX_LAYERS - 1] = 4;
}

/* ---- file ---- */

static void load__where_there_is_none__is_an_empty_one(void **state)
{
	struct ledger *l = load();

	(void)state;
	assert_empty(l);
	assert_comes_back(l);
	ledger_free(l);
	ledger_free(NULL);
}

static void save__of_everything__comes_back_as_it_was(void **state)
{
	struct ledger *l = load();

	(void)state;
	fill(l);
	assert_comes_back(l);
	assert_true(ledger_unpin(l));
	assert_comes_back(l);
	assert_true(ledger_resume(l));
	assert_comes_back(l);
	ledger_free(l);
}

static void save__of_any_text__comes_back_as_it_was(void **state)
{
	static const char text[] = "\"quoted\" \\ back\n\tlines\r\x01\x7f {}[],: "
				   "\xc3\xbc \xe2\x82\xac \xf0\x9f\x8e\x88";
	struct ledger *l = load();

	(void)state;
	assert_int_equal(ledger_reject(l, text, text, text, 1, text), 0);
	assert_int_equal(ledger_reject(l, "", "", "", 0, ""), 0);
	assert_int_equal(ledger_override(l, text, text, 1, text, text), 0);
	assert_int_equal(ledger_override(l, "", "", 0, "", ""), 0);
	assert_int_equal(ledger_pin(l, 1, text, "", "5e"), 0);
	assert_comes_back(l);
	ledger_free(l);
}

static void save__of_the_largest_and_smallest_numbers__comes_back_as_it_was(void **state)
{
	struct ledger *l = load();

	(void)state;
	l->notified = l->proven = UINT64_MAX;
	assert_int_equal(ledger_reserve_revs(l), 0);
	for (size_t i = 0; i < LEDGER_MAX_LAYERS; i++)
		l->revs[i] = UINT64_MAX - i;
	assert_int_equal(ledger_reject(l, "aa", "x", "", INT64_MAX, ""), 0);
	assert_int_equal(ledger_reject(l, "bb", "x", "", 0, ""), 0);
	assert_int_equal(ledger_override(l, "a", "1", LEDGER_FOREVER, "", ""), 0);
	assert_int_equal(ledger_override(l, "b", "1", 0, "", ""), 0);
	assert_int_equal(ledger_pin(l, LEDGER_FOREVER, "uid 0", "", "5e"), 0);
	assert_comes_back(l);
	ledger_free(l);
}

static void save__of_a_full_ledger__comes_back_as_it_was(void **state)
{
	struct ledger *l = load();
	char name[80], long_text[4096];

	(void)state;
	memset(long_text, '\n', sizeof(long_text) - 1);
	long_text[sizeof(long_text) - 1] = '\0';
	for (int i = 0; i < LEDGER_MAX_VERDICTS; i++) {
		snprintf(name, sizeof(name), "%064d", i);
		assert_int_equal(ledger_reject(l, name, "check", name, i, long_text), 0);
	}
	for (int i = 0; i < LEDGER_MAX_OVERRIDES; i++) {
		snprintf(name, sizeof(name), "key.%d", i);
		assert_int_equal(ledger_override(l, name, long_text, i, name, long_text), 0);
	}
	assert_comes_back(l);
	ledger_free(l);
}

static void save__of_more_than_a_file_may_have__says_so_and_leaves_the_old_one(void **state)
{
	struct ledger *l = load(), *back;
	char why[FILE_WHY] = "", *huge = calloc(1, (1u << 20) + 1);

	(void)state;
	assert_non_null(huge);
	memset(huge, 'x', 1u << 20);
	l->notified = 7;
	save(l);
	assert_int_equal(ledger_pin(l, 1, "uid 0", huge, "5e"), 0);
	assert_int_equal(ledger_save(l, &sys, dir, false, why), -EMSGSIZE);
	assert_non_null(strstr(why, "the ledger cannot be written"));
	back = load();
	assert_int_equal(back->notified, 7);
	assert_null(back->pin.by);
	ledger_free(back);
	ledger_free(l);
	free(huge);
}

static void save__replaces_one_small_file_that_others_cannot_read(void **state)
{
	struct ledger *l = load();
	struct stat st;

	(void)state;
	save(l);
	fill(l);
	save(l);
	assert_int_equal(scratch_count(place, ""), 1);
	assert_int_equal(fstatat(dir, FILE_NAME, &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	ledger_free(l);
}

static void save__with_each_call_failing__leaves_the_old_one(void **state)
{
	static const int calls[] = {CALL_OPEN, CALL_WRITE, CALL_FSYNC, CALL_FCHMOD, CALL_RENAME};
	struct ledger *l = load(), *back;
	char why[FILE_WHY];

	(void)state;
	l->notified = 1;
	save(l);
	l->notified = 2;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		why[0] = '\0';
		fault = (struct fault){.call = calls[i], .nth = 1, .error = ENOSPC};
		assert_int_equal(ledger_save(l, &sys, dir, true, why), -ENOSPC);
		assert_non_null(strstr(why, "No space left"));
		fault.nth = 0;
		assert_int_equal(scratch_count(place, ""), 1);
		back = load();
		assert_int_equal(back->notified, 1);
		ledger_free(back);
	}
	fault = (struct fault){.short_writes = true, .interrupt = true};
	save(l);
	assert_null(strchr(fault.trace, 'f')); /* not asked for */
	back = load();
	assert_int_equal(back->notified, 2);
	ledger_free(back);
	ledger_free(l);
}

static void save__when_the_directory_does_not_reach_the_disk__is_no_success(void **state)
{
	struct ledger *l = load();
	char why[FILE_WHY] = "";

	(void)state;
	save(l);
	fault = (struct fault){.call = CALL_FSYNC, .nth = 2, .error = EIO};
	assert_int_equal(ledger_save(l, &sys, dir, true, why), -EIO);
	assert_non_null(strstr(why, "its directory is not on the disk yet"));
	fault.nth = 0;
	assert_int_equal(ledger_save(l, &sys, dir, true, why), 0);
	ledger_free(l);
}

static void load__when_the_file_cannot_be_read__is_empty_and_says_so(void **state)
{
	static const int errors[] = {EIO, EACCES, EISDIR};
	struct ledger *l = load();

	(void)state;
	fill(l);
	save(l);
	ledger_free(l);
	for (int call = 0; call < CALLS; call++)
		for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
			if (call != CALL_OPEN && call != CALL_READ)
				continue;
			fault = (struct fault){.call = call, .nth = 1, .error = errors[i]};
			l = NULL;
			/* a disk that fails may work again */
			assert_int_equal(
				ledger_load(&sys, dir, &l), errors[i] == EIO ? -EIO : -EBADMSG);
			assert_empty(l);
			ledger_free(l);
		}
	fault.nth = 0;
	assert_int_equal(unlinkat(dir, FILE_NAME, 0), 0);
	assert_int_equal(symlinkat("/etc/passwd", dir, FILE_NAME), 0);
	assert_int_equal(ledger_load(&sys, dir, &l), -EBADMSG);
	assert_empty(l);
	ledger_free(l);
}

static void load__when_descriptors_or_memory_run_out__is_not_an_empty_one(void **state)
{
	static const int errors[] = {EMFILE, ENFILE, ENOMEM};
	struct ledger *l = load();

	(void)state;
	fill(l);
	save(l);
	ledger_free(l);
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		l = NULL;
		fault = (struct fault){.call = CALL_OPEN, .nth = 1, .error = errors[i]};
		assert_int_equal(ledger_load(&sys, dir, &l), -errors[i]);
		assert_null(l); /* the next save would replace the file by nothing */
	}
}

#define NUMBERS "\"told\":\"1\",\"proven\":\"2\""
#define REST ",\"revs\":[\"5\"],\"verdicts\":[],\"overrides\":[]"
#define VERDICT "\"sha256\":\"a\",\"judge\":\"b\",\"judges\":\"c\",\"why\":\"d\""
#define OVERRIDE "\"key\":\"a\",\"value\":\"b\",\"by\":\"c\",\"reason\":\"d\""

static void load__of_what_is_not_a_ledger__is_empty_and_says_so(void **state)
{
	static const char good[] =
		"{" NUMBERS ",\"revs\":[\"5\"],\"later\":{},\"pin\":{\"by\":\"a\",\"reason\":\"b\","
		"\"until_ms\":1},\"verdicts\":[{" VERDICT ",\"at_ms\":1}],\"overrides\":[{" OVERRIDE
		",\"until_ms\":1}]}";
	static const char *const bad[] = {
		"",
		"\n",
		"told: 1\n",
		"[]",
		"7",
		"{",
		"{}",
		"{\"told\":\"1\"" REST "}",
		"{\"proven\":\"1\"" REST "}",
		"{\"told\":1,\"proven\":\"2\"" REST "}",
		"{\"told\":\"\",\"proven\":\"2\"" REST "}",
		"{\"told\":\"x\",\"proven\":\"2\"" REST "}",
		"{\"told\":\"-1\",\"proven\":\"2\"" REST "}",
		"{\"told\":\" 1\",\"proven\":\"2\"" REST "}",
		"{\"told\":\"1\",\"proven\":\"18446744073709551616\"" REST "}",
		"{" NUMBERS ",\"generation\":\"x\"" REST "}",
		"{" NUMBERS ",\"generation\":3" REST "}",
		"{" NUMBERS ",\"verdicts\":[],\"overrides\":[]}",
		"{" NUMBERS ",\"revs\":{},\"verdicts\":[],\"overrides\":[]}",
		"{" NUMBERS ",\"revs\":[5],\"verdicts\":[],\"overrides\":[]}",
		"{" NUMBERS ",\"revs\":[\"five\"],\"verdicts\":[],\"overrides\":[]}",
		"{" NUMBERS ",\"revs\":[\"1\",\"1\",\"1\",\"1\",\"1\",\"1\",\"1\",\"1\",\"1\","
		"\"1\",\"1\",\"1\",\"1\",\"1\",\"1\",\"1\",\"1\"],\"verdicts\":[],\"overrides\":[]"
		"}",
		"{" NUMBERS ",\"revs\":[],\"overrides\":[]}",
		"{" NUMBERS ",\"revs\":[],\"verdicts\":[]}",
		"{" NUMBERS ",\"revs\":[],\"verdicts\":{},\"overrides\":[]}",
		"{" NUMBERS ",\"revs\":[],\"verdicts\":[1],\"overrides\":[]}",
		"{" NUMBERS ",\"revs\":[],\"verdicts\":[{" VERDICT "}],\"overrides\":[]}",
		"{" NUMBERS ",\"revs\":[],\"verdicts\":[{" VERDICT
		",\"at_ms\":\"1\"}],\"overrides\":[]}",
		"{" NUMBERS ",\"revs\":[],\"verdicts\":[{" VERDICT
		",\"at_ms\":1},{}],\"overrides\":[]}",
		"{" NUMBERS ",\"revs\":[],\"verdicts\":[{" VERDICT
		",\"at_ms\":1}],\"overrides\":[{" OVERRIDE "}]}",
		"{" NUMBERS ",\"revs\":[],\"verdicts\":[{" VERDICT
		",\"at_ms\":1}],\"overrides\":[{" OVERRIDE ",\"until_ms\":1},[]]}",
		"{" NUMBERS ",\"revs\":[],\"verdicts\":[],\"overrides\":[{\"key\":\"a\","
		"\"value\":1,\"by\":\"c\",\"reason\":\"d\",\"until_ms\":1}]}",
		"{" NUMBERS REST ",\"pin\":1}",
		"{" NUMBERS REST ",\"pin\":{}}",
		"{" NUMBERS REST ",\"pin\":{\"by\":\"a\",\"until_ms\":1}}",
		"{" NUMBERS REST ",\"pin\":{\"by\":\"a\",\"reason\":\"b\",\"until_ms\":1.5}}",
	};
	struct ledger *l;

	(void)state;
	scratch_write(place, FILE_NAME, good, sizeof(good) - 1);
	l = load();
	assert_int_equal(l->notified, 1);
	assert_int_equal(l->revs[0], 5);
	assert_string_equal(l->overrides[0].reason, "d");
	assert_string_equal(l->pin.reason, "b");
	ledger_free(l);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		scratch_write(place, FILE_NAME, bad[i], strlen(bad[i]));
		l = NULL;
		if (ledger_load(&sys, dir, &l) != -EBADMSG)
			fail_msg("%s", bad[i]);
		assert_empty(l);
		fill(l); /* and it can be used */
		assert_comes_back(l);
		ledger_free(l);
	}
}

static void load__of_a_file_with_any_byte_flipped_or_cut_off__is_a_ledger_or_empty(void **state)
{
	char file[4096];
	struct ledger *l = load();
	unsigned empty = 0;
	size_t len = 0;

	(void)state;
	fill(l);
	save(l);
	ledger_free(l);
	assert_true(scratch_read(place, FILE_NAME, file, sizeof(file), &len));
	for (size_t i = 0; i < 2 * len; i++) {
		bool flip = i < len;
		int r;

		if (flip)
			file[i] ^= 0x20;
		scratch_write(place, FILE_NAME, file, flip ? len : i - len);
		if (flip)
			file[i] ^= 0x20;
		r = ledger_load(&sys, dir, &l);
		assert_true(r == 0 || r == -EBADMSG);
		if (r)
			assert_empty(l);
		empty += r != 0;
		assert_true(flip || r || i - len == len - 1); /* all but the last newline */
		ledger_free(l);
	}
	assert_true(empty > len);
}

static void load__of_too_many_entries__is_empty_and_says_so(void **state)
{
	static const struct {
		const char *before, *entry, *behind;
		int max;
	} table[] = {
		{"{" NUMBERS ",\"revs\":[],\"overrides\":[],\"verdicts\":[",
			"{" VERDICT ",\"at_ms\":1}", "]}", LEDGER_MAX_VERDICTS},
		{"{" NUMBERS ",\"revs\":[],\"verdicts\":[],\"overrides\":[",
			"{" OVERRIDE ",\"until_ms\":1}", "]}", LEDGER_MAX_OVERRIDES},
	};
	struct ledger *l;

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		for (int more = 0; more < 2; more++) {
			struct buffer b;

			buffer_init(&b, 1u << 20);
			buffer_append_string(&b, table[i].before);
			for (int n = 0; n < table[i].max + more; n++)
				buffer_printf(&b, "%s%s", n ? "," : "", table[i].entry);
			buffer_append_string(&b, table[i].behind);
			scratch_write(place, FILE_NAME, b.data, b.len);
			assert_int_equal(ledger_load(&sys, dir, &l), more ? -EBADMSG : 0);
			ledger_free(l);
			buffer_fini(&b);
		}
}

/* ---- verdicts ---- */

static void refuse__of_one_too_many__drops_the_oldest(void **state)
{
	struct ledger *l = load();
	char sha256[8];

	(void)state;
	for (int i = 0; i <= LEDGER_MAX_VERDICTS; i++) {
		snprintf(sha256, sizeof(sha256), "%d", i);
		assert_int_equal(ledger_reject(l, sha256, "guard", "", i, "why"), 0);
	}
	assert_int_equal(l->verdict_count, LEDGER_MAX_VERDICTS);
	assert_null(ledger_find_verdict(l, "0", ""));
	assert_string_equal(l->verdicts[0].sha256, "1");
	assert_string_equal(l->verdicts[LEDGER_MAX_VERDICTS - 1].sha256, "16");
	ledger_free(l);
}

static void refuse__of_the_same_bytes__takes_the_place_of_the_former(void **state)
{
	const struct ledger_verdict *v;
	struct ledger *l = load();

	(void)state;
	assert_int_equal(ledger_reject(l, "aa", "guard", "one", 1, "small"), 0);
	assert_int_equal(ledger_reject(l, "bb", "guard", "one", 2, "small"), 0);
	assert_int_equal(ledger_reject(l, "aa", "schema", "two", 3, "wrong"), 0);
	assert_int_equal(l->verdict_count, 2);
	assert_string_equal(l->verdicts[1].sha256, "aa"); /* the newest again */
	assert_null(ledger_find_verdict(l, "aa", "one"));
	v = ledger_find_verdict(l, "aa", "two");
	assert_non_null(v);
	assert_string_equal(v->check, "schema");
	assert_string_equal(v->why, "wrong");
	assert_true(v->at_ms == 3);
	ledger_free(l);
}

static void find__is_about_bytes_and_rules(void **state)
{
	struct ledger *l = load();

	(void)state;
	assert_int_equal(ledger_reject(l, "aa", "schema", "rules", 1, ""), 0);
	assert_int_equal(ledger_reject(l, "bb", "probe", "", 1, ""), 0);
	assert_non_null(ledger_find_verdict(l, "aa", "rules"));
	assert_null(ledger_find_verdict(l, "aa", "other rules"));
	assert_null(ledger_find_verdict(l, "aa", ""));
	assert_non_null(ledger_find_verdict(l, "bb", "rules")); /* whatever they are */
	assert_non_null(ledger_find_verdict(l, "bb", ""));
	assert_null(ledger_find_verdict(l, "cc", "rules"));
	ledger_free(l);
}

static void forgive__of_bytes_or_of_a_check__tells_whether_there_was_any(void **state)
{
	struct ledger *l = load();

	(void)state;
	assert_false(ledger_forgive_check(l, "x"));
	fill(l);
	assert_false(ledger_forgive(l, "cc"));
	assert_true(ledger_forgive(l, "aa"));
	assert_null(ledger_find_verdict(l, "aa", "rules"));
	assert_int_equal(l->verdict_count, 1);
	assert_string_equal(l->verdicts[0].sha256, "bb");
	assert_int_equal(ledger_reject(l, "aa", "x", "", 1, ""), 0);
	assert_true(ledger_forgive_check(l, "x"));
	assert_int_equal(ledger_reject(l, "aa", "x", "", 7, ""), 0);
	assert_int_equal(ledger_reject(l, "cc", "y", "", 8, ""), 0);
	assert_false(ledger_forgive_later(l, "x", 7));
	assert_true(ledger_forgive_later(l, "x", 6));
	assert_null(ledger_find_verdict(l, "aa", ""));
	assert_true(ledger_forgive(l, "cc"));
	assert_true(ledger_forgive(l, "bb"));
	assert_int_equal(l->verdict_count, 0);
	assert_comes_back(l);
	ledger_free(l);
}

/* ---- overrides, pin ---- */

static void override__of_one_too_many__is_refused_and_a_known_key_never(void **state)
{
	struct ledger *l = load();
	char key[16];

	(void)state;
	for (int i = 0; i < LEDGER_MAX_OVERRIDES; i++) {
		snprintf(key, sizeof(key), "key%d", i);
		assert_int_equal(ledger_override(l, key, "1", 100, "uid 0", ""), 0);
	}
	assert_int_equal(ledger_override(l, "one more", "1", 100, "uid 0", ""), -ENOSPC);
	assert_int_equal(l->override_count, LEDGER_MAX_OVERRIDES);
	assert_int_equal(ledger_override(l, "key3", "2", 200, "uid 1", "again"), 0);
	assert_int_equal(l->override_count, LEDGER_MAX_OVERRIDES);
	assert_string_equal(l->overrides[3].key, "key4");
	assert_string_equal(l->overrides[LEDGER_MAX_OVERRIDES - 1].key, "key3");
	assert_string_equal(l->overrides[LEDGER_MAX_OVERRIDES - 1].value, "2");
	assert_string_equal(l->overrides[LEDGER_MAX_OVERRIDES - 1].reason, "again");
	assert_true(ledger_drop_override(l, "key0"));
	assert_false(ledger_drop_override(l, "key0"));
	assert_int_equal(ledger_override(l, "one more", "1", 100, "uid 0", ""), 0);
	ledger_free(l);
}

static void pin__again__takes_the_place_of_the_former(void **state)
{
	struct ledger *l = load();

	(void)state;
	assert_false(ledger_unpin(l));
	assert_int_equal(ledger_pin(l, 100, "uid 0", "release", "5e"), 0);
	assert_int_equal(ledger_pin(l, 200, "uid 1", "", "5e"), 0);
	assert_string_equal(l->pin.by, "uid 1");
	assert_string_equal(l->pin.reason, "");
	assert_true(l->pin.until_ms == 200);
	assert_true(ledger_unpin(l));
	assert_null(l->pin.by);
	assert_false(ledger_unpin(l));
	ledger_free(l);
}

static void suspend__is_beside_a_pin_and_ends_as_one(void **state)
{
	struct ledger *l = load();
	bool overrides;

	(void)state;
	assert_false(ledger_resume(l));
	assert_int_equal(ledger_pin(l, 300, "uid 0", "release", "5e"), 0);
	assert_int_equal(ledger_suspend(l, 100, "uid 0", "a"), 0);
	assert_int_equal(ledger_suspend(l, 200, "uid 1", ""), 0);
	assert_string_equal(l->suspension->by, "uid 1");
	assert_true(ledger_next_expiry(l) == 200);
	assert_false(ledger_expire(l, 199, &overrides));
	assert_true(ledger_expire(l, 200, &overrides));
	assert_false(overrides);
	assert_null(l->suspension);
	assert_non_null(l->pin.by);
	assert_false(ledger_resume(l));
	assert_int_equal(ledger_suspend(l, LEDGER_FOREVER, "uid 1", ""), 0);
	assert_true(ledger_next_expiry(l) == 300);
	assert_true(ledger_expire(l, INT64_MAX - 1, &overrides)); /* the pin alone */
	assert_non_null(l->suspension);
	assert_true(ledger_next_expiry(l) == LEDGER_FOREVER);
	assert_true(ledger_resume(l));
	ledger_free(l);
}

static void expire__drops_what_has_come_to_its_time_and_tells_what(void **state)
{
	struct ledger *l = load();
	bool overrides = true;

	(void)state;
	assert_false(ledger_expire(l, INT64_MAX - 1, &overrides));
	assert_false(overrides);
	assert_int_equal(ledger_override(l, "later", "1", 300, "", ""), 0);
	assert_int_equal(ledger_override(l, "soon", "1", 100, "", ""), 0);
	assert_int_equal(ledger_override(l, "always", "1", LEDGER_FOREVER, "", ""), 0);
	assert_int_equal(ledger_pin(l, 200, "uid 0", "", "5e"), 0);
	assert_true(ledger_next_expiry(l) == 100);
	assert_false(ledger_expire(l, 99, &overrides));
	assert_int_equal(l->override_count, 3);
	assert_true(ledger_expire(l, 100, &overrides));
	assert_true(overrides);
	assert_int_equal(l->override_count, 2);
	assert_true(ledger_next_expiry(l) == 200);
	assert_true(ledger_expire(l, 299, &overrides)); /* the pin alone */
	assert_false(overrides);
	assert_null(l->pin.by);
	assert_true(ledger_next_expiry(l) == 300);
	assert_int_equal(ledger_pin(l, 300, "uid 0", "", "5e"), 0);
	assert_true(ledger_expire(l, 5000, &overrides)); /* both at once */
	assert_true(overrides);
	assert_null(l->pin.by);
	assert_int_equal(l->override_count, 1);
	assert_string_equal(l->overrides[0].key, "always");
	assert_true(ledger_next_expiry(l) == LEDGER_FOREVER);
	assert_int_equal(ledger_pin(l, LEDGER_FOREVER, "uid 0", "", "5e"), 0);
	assert_false(ledger_expire(l, INT64_MAX - 1, &overrides));
	assert_non_null(l->pin.by);
	assert_true(ledger_next_expiry(l) == LEDGER_FOREVER);
	ledger_free(l);
}

/* ---- a state file that is newer ---- */

/* What was decided with generation 14, of the bytes "new" instead of "old". */
static void decide(struct ledger *l)
{
	*l = (struct ledger){.generation = 14};
	assert_int_equal(ledger_reserve_revs(l), 0);
	l->revs[0] = 7;
	l->revs[1] = 1;
	assert_int_equal(ledger_override(l, "log.level", "warn", 6000, "uid 1", ""), 0);
	assert_int_equal(ledger_reject(l, "old", "operator", "", 3000, "rolled back"), 0);
}

static void adopt__of_what_is_newer__takes_overrides_verdicts_and_higher_revs(void **state)
{
	struct ledger *l = load(), decided;

	(void)state;
	fill(l);
	l->revs[1] = 9;
	assert_int_equal(ledger_reject(l, "new", "probe", "", 2500, "it was bad"), 0);
	decide(&decided);
	assert_int_equal(ledger_adopt_decisions(l, 14, &decided, "new", true), 1);
	assert_int_equal(l->override_count, 1);
	assert_string_equal(l->overrides[0].value, "warn");
	assert_null(ledger_find_verdict(l, "new", "")); /* it stands now */
	assert_string_equal(ledger_find_verdict(l, "old", "")->why, "rolled back");
	assert_string_equal(ledger_find_verdict(l, "bb", "")->why, "no answer");
	assert_true(l->revs[0] == 7 && l->revs[1] == 9 && l->revs[LEDGER_MAX_LAYERS - 1] == 4);
	assert_true(l->pin.by && l->notified == 12 && l->proven == 11 && l->generation == 14);
	assert_int_equal(ledger_adopt_decisions(l, 14, &decided, "new", true), 0);
	ledger_forgive(&decided, "old");
	while (decided.override_count)
		ledger_drop_override(&decided, decided.overrides[0].key);
	free(decided.verdicts);
	free(decided.overrides);
	free(decided.revs);
	ledger_free(l);
}

static void forget_revs__lets_go_of_them_and_of_verdicts_of_that_judge_for_good(void **state)
{
	static const uint64_t high[LEDGER_MAX_LAYERS] = {UINT64_MAX, 3},
			      low[LEDGER_MAX_LAYERS] = {6};
	struct ledger *l = calloc(1, sizeof(*l)), *again;
	struct buffer text;

	(void)state;
	assert_non_null(l);
	assert_false(ledger_forget_revs(l, "signature"));
	assert_int_equal(ledger_reserve_revs(l), 0);
	assert_true(ledger_raise_revs(l, high));
	assert_false(ledger_raise_revs(l, low));
	assert_int_equal(ledger_reject(l, "a", "signature", "", 1, "old"), 0);
	assert_int_equal(ledger_reject(l, "b", "guard", "", 1, "small"), 0);
	assert_true(ledger_forget_revs(l, "signature"));
	assert_false(ledger_forget_revs(l, "signature"));
	assert_null(ledger_find_verdict(l, "a", ""));
	assert_non_null(ledger_find_verdict(l, "b", ""));
	assert_true(ledger_raise_revs(l, low));
	buffer_init(&text, 1u << 20);
	assert_int_equal(ledger_write(l, &text), 0);
	assert_int_equal(ledger_read(text.data, text.len, &again), 0);
	assert_true(ledger_revs(again)[0] == 6 && ledger_revs(again)[1] == 0);
	buffer_fini(&text);
	ledger_free(again);
	ledger_free(l);
}

static void revs__are_written_up_to_the_last_one_that_is_known(void **state)
{
	static const struct {
		uint64_t first, third;
		const char *text;
	} table[] = {{0, 0, "\"revs\":[]"}, {3, 0, "\"revs\":[\"3\"]"},
		{0, 5, "\"revs\":[\"0\",\"0\",\"5\"]"}};
	struct ledger *l = calloc(1, sizeof(*l));
	struct buffer out;

	(void)state;
	assert_non_null(l);
	assert_int_equal(ledger_reserve_revs(l), 0);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		l->revs[0] = table[i].first;
		l->revs[2] = table[i].third;
		buffer_init(&out, 1u << 20);
		assert_int_equal(ledger_write(l, &out), 0);
		if (!strstr(out.data, table[i].text))
			fail_msg("%s: %s", table[i].text, out.data);
		buffer_fini(&out);
	}
	ledger_free(l);
}

static void adopt__of_what_was_decided_under_a_pin__pins_the_new_bytes(void **state)
{
	struct ledger *l = load(), *decided = load();

	(void)state;
	fill(l);
	assert_int_equal(ledger_pin(decided, 1, "uid 1", "other", "new"), 0);
	assert_int_equal(ledger_adopt_decisions(l, 14, decided, "new", true), 1);
	assert_string_equal(l->pin.sha256, "new");
	assert_string_equal(l->pin.by, "uid 0");
	assert_string_equal(l->pin.reason, "release");
	assert_true(l->pin.until_ms == 9000);
	ledger_free(l);
	ledger_free(decided);
}

static void adopt__of_what_was_decided_without_a_pin__leaves_the_pin(void **state)
{
	struct ledger *l = load(), *decided = load();

	(void)state;
	fill(l);
	assert_int_equal(ledger_adopt_decisions(l, 14, decided, "new", true), 1);
	assert_string_equal(l->pin.sha256, "5e");
	assert_int_equal(ledger_pin(decided, 1, "uid 1", "other", "5e"), 0);
	ledger_unpin(l);
	ledger_adopt_decisions(l, 15, decided, "new", true);
	assert_null(l->pin.by);
	ledger_free(l);
	ledger_free(decided);
}

static void adopt__of_the_proven_one__is_proven(void **state)
{
	struct ledger *l = load(), *decided = load();

	(void)state;
	decided->proven = 14;
	assert_int_equal(ledger_adopt_decisions(l, 13, decided, "new", true), 0);
	assert_int_equal(l->proven, 0);
	assert_int_equal(ledger_adopt_decisions(l, 14, decided, "new", true), 1);
	assert_int_equal(l->proven, 14);
	ledger_free(l);
	ledger_free(decided);
}

static void adopt__of_what_decided_nothing__has_nothing_to_be_written(void **state)
{
	struct ledger *l = load(), decided = {.generation = 0};

	(void)state;
	assert_int_equal(ledger_adopt_decisions(l, 14, &decided, "new", true), 0);
	assert_int_equal(l->generation, 14);
	assert_int_equal(ledger_reject(l, "new", "probe", "", 2500, "it was bad"), 0);
	assert_int_equal(
		ledger_adopt_decisions(l, 15, &decided, "new", true), 1); /* it stands now */
	assert_int_equal(ledger_adopt_decisions(l, 16, &decided, "new", true), 0);
	ledger_free(l);
}

static void adopt__of_what_is_not_newer__changes_nothing(void **state)
{
	struct ledger *l = load(), *same = load(), decided;

	(void)state;
	fill(l);
	fill(same);
	decide(&decided);
	for (uint64_t generation = 14; generation < 16; generation++) {
		l->generation = same->generation = generation;
		assert_int_equal(ledger_adopt_decisions(l, 14, &decided, "new", true), 0);
		assert_same(l, same);
	}
	ledger_forgive(&decided, "old");
	while (decided.override_count)
		ledger_drop_override(&decided, decided.overrides[0].key);
	free(decided.verdicts);
	free(decided.overrides);
	free(decided.revs);
	ledger_free(l);
	ledger_free(same);
}

static void load__of_the_former_format__knows_no_generation(void **state)
{
	static const char text[] = "{" NUMBERS REST "}";
	struct ledger *l;

	(void)state;
	scratch_write(place, FILE_NAME, text, strlen(text));
	l = load();
	assert_true(l->generation == 0 && l->revs[0] == 5);
	ledger_free(l);
}

static void sync__is_of_the_file_and_its_directory(void **state)
{
	struct ledger *l = load();

	(void)state;
	fault = (struct fault){0};
	assert_int_equal(ledger_sync(&sys, dir), -ENOENT);
	save(l);
	fault = (struct fault){0};
	assert_int_equal(ledger_sync(&sys, dir), 0);
	assert_string_equal(fault.trace, "ofxf");
	fault = (struct fault){.call = CALL_FSYNC, .nth = 2, .error = EIO};
	assert_int_equal(ledger_sync(&sys, dir), -EIO);
	fault.nth = 0;
	ledger_free(l);
}

/* ---- versions ---- */

static void load__of_what_a_newer_version_wrote__keeps_what_it_does_not_know(void **state)
{
	static const char text[] =
		"{\"told\":\"1\",\"new\":{\"a\":[1,\"x\\ny\"]},\"proven\":\"2\",\"revs\":[],"
		"\"verdicts\":[],\"overrides\":[],\"last\":true}";
	struct buffer b;
	struct ledger *l, *back;

	(void)state;
	buffer_init(&b, 1000);
	assert_int_equal(ledger_read(text, strlen(text), &l), 0);
	assert_non_null(l->others);
	assert_int_equal(ledger_override(l, "k", "1", 1000, "uid 0", ""), 0);
	assert_int_equal(ledger_write(l, &b), 0);
	assert_null(strchr(b.data, '\n'));
	assert_int_equal(ledger_read(b.data, b.len, &back), 0);
	assert_same(l, back);
	assert_string_equal(back->others, l->others);
	assert_non_null(strstr(b.data, "\"last\":true"));
	assert_non_null(strstr(b.data, "x\\ny"));
	ledger_free(l);
	ledger_free(back);
	buffer_fini(&b);
}

/* ---- overrides ---- */

static void same_overrides__by_keys_and_values_not_by_who_or_how_long(void **state)
{
	struct ledger a = {.generation = 0}, b = {.generation = 0};

	(void)state;
	assert_true(ledger_same_overrides(NULL, NULL));
	assert_true(ledger_same_overrides(NULL, &a));
	assert_true(ledger_same_overrides(&a, NULL));
	assert_int_equal(ledger_override(&a, "k", "1", 1000, "uid 0", "one"), 0);
	assert_false(ledger_same_overrides(NULL, &a));
	assert_false(ledger_same_overrides(&a, &b));
	assert_int_equal(ledger_override(&b, "k", "1", 2000, "uid 7", "other"), 0);
	assert_true(ledger_same_overrides(&a, &b));
	assert_int_equal(ledger_override(&b, "k", "2", 2000, "uid 7", "other"), 0);
	assert_false(ledger_same_overrides(&a, &b));
	ledger_drop_override(&b, "k");
	assert_int_equal(ledger_override(&b, "l", "1", 1000, "uid 0", "one"), 0);
	assert_false(ledger_same_overrides(&a, &b));
	ledger_drop_override(&a, "k");
	ledger_drop_override(&b, "l");
	free(a.overrides);
	free(b.overrides);
}

static void save__gives_the_file_to_nobody_else(void **state)
{
	struct ledger l = {.notified = 1};

	(void)state;
	fault.trace[0] = '\0';
	save(&l);
	assert_null(strchr(fault.trace, 'c')); /* no fchown */
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, place_open, place_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(load__where_there_is_none__is_an_empty_one),
		CASE(save__of_everything__comes_back_as_it_was),
		CASE(save__of_any_text__comes_back_as_it_was),
		CASE(save__of_the_largest_and_smallest_numbers__comes_back_as_it_was),
		CASE(save__of_a_full_ledger__comes_back_as_it_was),
		CASE(save__of_more_than_a_file_may_have__says_so_and_leaves_the_old_one),
		CASE(save__replaces_one_small_file_that_others_cannot_read),
		CASE(save__with_each_call_failing__leaves_the_old_one),
		CASE(save__when_the_directory_does_not_reach_the_disk__is_no_success),
		CASE(load__when_the_file_cannot_be_read__is_empty_and_says_so),
		CASE(load__when_descriptors_or_memory_run_out__is_not_an_empty_one),
		CASE(load__of_what_is_not_a_ledger__is_empty_and_says_so),
		CASE(load__of_a_file_with_any_byte_flipped_or_cut_off__is_a_ledger_or_empty),
		CASE(load__of_too_many_entries__is_empty_and_says_so),
		CASE(refuse__of_one_too_many__drops_the_oldest),
		CASE(refuse__of_the_same_bytes__takes_the_place_of_the_former),
		CASE(find__is_about_bytes_and_rules),
		CASE(forgive__of_bytes_or_of_a_check__tells_whether_there_was_any),
		CASE(override__of_one_too_many__is_refused_and_a_known_key_never),
		CASE(pin__again__takes_the_place_of_the_former),
		CASE(suspend__is_beside_a_pin_and_ends_as_one),
		CASE(expire__drops_what_has_come_to_its_time_and_tells_what),
		CASE(adopt__of_what_is_newer__takes_overrides_verdicts_and_higher_revs),
		CASE(revs__are_written_up_to_the_last_one_that_is_known),
		CASE(adopt__of_what_was_decided_under_a_pin__pins_the_new_bytes),
		CASE(adopt__of_what_was_decided_without_a_pin__leaves_the_pin),
		CASE(adopt__of_the_proven_one__is_proven),
		CASE(forget_revs__lets_go_of_them_and_of_verdicts_of_that_judge_for_good),
		CASE(adopt__of_what_decided_nothing__has_nothing_to_be_written),
		CASE(adopt__of_what_is_not_newer__changes_nothing),
		CASE(load__of_the_former_format__knows_no_generation),
		CASE(load__of_what_a_newer_version_wrote__keeps_what_it_does_not_know),
		CASE(same_overrides__by_keys_and_values_not_by_who_or_how_long),
		CASE(sync__is_of_the_file_and_its_directory),
		CASE(save__gives_the_file_to_nobody_else),
	};

	sys = fault_table();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
