/*
 * Receipts written and read again, whatever is in them; and a roster of a fleet, held against one
 * that is counted plainly.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"
#include "pull/kinds/kind.h"
#include "fleet/roster_sum.h"
#include "tests/unit/fixture/fault_memory.h"
#include "tests/unit/fixture/model_random.h"

#define PREFIX "/pullet/agents/"
#define NOW 100000 /* wall clock, ms */

static struct settings_label zone_label = {(char *)"zone", (char *)"eu-1"};

static const struct receipt plain = {.host = "h1",
	.pullet = "0.1.0",
	.since_ms = 5,
	.page = 1,
	.pages = 1,
	.labels = &zone_label,
	.label_count = 1};

static const struct receipt_config web = {.name = "web",
	.generation = 12,
	.version = "v1",
	.others = "v7 v88",
	.digest = "0123456789abcdef",
	.state = RECEIPT_REJECTED,
	.why = "schema: no",
	.rejected = "v2",
	.rejected_digest = "fedcba9876543210",
	.since_ms = 7,
	.pulled_ms = 6};

static void write_page(
	struct buffer *out, const struct receipt *r, const struct receipt_config *c, size_t count)
{
	buffer_init(out, RECEIPT_MAX);
	receipt_begin(r, out);
	for (size_t i = 0; i < count; i++)
		receipt_add(&c[i], out);
	assert_int_equal(receipt_end(out), 0);
}

static struct receipt *read_text(const char *text)
{
	struct receipt *r = NULL;

	assert_int_equal(receipt_read(text, strlen(text), &r), 0);
	return r;
}

/* ---- the form ---- */

static void page__of_one_config__is_written_so(void **state)
{
	struct buffer b;

	(void)state;
	write_page(&b, &plain, &web, 1);
	assert_string_equal(b.data,
		"{\"v\":1,\"host\":\"h1\",\"pullet\":\"0.1.0\",\"since_ms\":5,\"labels\":{\"zone\":"
		"\"eu-1\"},\"configs\":{\"web\":{\"generation\":12,\"version\":\"v1\",\"others\":"
		"\"v7 v88\",\"digest\":\"0123456789abcdef\",\"state\":\"rejected\",\"why\":"
		"\"schema: no\",\"rejected\":\"v2\",\"rejected_digest\":"
		"\"fedcba9876543210\",\"since_ms\":7,\"pulled_ms\":6}}}");
	buffer_fini(&b);
}

static void known__is_written_so(void **state)
{
	struct receipt_config names[] = {{.name = "web"}, {.name = "db"}};
	struct receipt r = plain, *again;
	struct buffer b;

	(void)state;
	r.configs = names;
	r.config_count = 2;
	buffer_init(&b, RECEIPT_MAX);
	assert_int_equal(receipt_write_known(&r, &b), 0);
	assert_string_equal(b.data, "{\"v\":1,\"first_ms\":5,\"labels\":{\"zone\":\"eu-1\"},"
				    "\"configs\":[\"web\",\"db\"]}");
	assert_int_equal(receipt_read_known(b.data, b.len, &again), 0);
	assert_int_equal(again->since_ms, 5);
	assert_string_equal(again->configs[1].name, "db");
	assert_string_equal(again->configs[1].version, "");
	receipt_free(again);
	assert_int_equal(receipt_read(b.data, b.len, &again), -EINVAL);
	buffer_fini(&b);
}

static void page__from_another_hand__is_read_as_far_as_it_is_known(void **state)
{
	struct receipt *r =
		read_text("{\"configs\":{\"web\":{\"state\":\"dancing\",\"generation\":-4,"
			  "\"more\":[{}],\"version\":7},\"db\":{}},\"labels\":{},\"v\":1,"
			  "\"page\":3,\"extra\":null}");

	(void)state;
	assert_int_equal(r->config_count, 2);
	assert_int_equal(r->configs[0].state, RECEIPT_OTHER);
	assert_int_equal(r->configs[0].generation, 0);
	assert_string_equal(r->configs[0].version, "");
	assert_string_equal(r->configs[1].name, "db");
	assert_string_equal(r->host, "");
	assert_int_equal(r->page, 3);
	assert_int_equal(r->pages, 1);
	receipt_free(r);
}

static void bytes__that_are_no_receipt__are_refused(void **state)
{
	static const struct {
		const char *text;
		int error;
	} table[] = {
		{"", -EINVAL},
		{"{", -EINVAL},
		{"[]", -EINVAL},
		{"{}", -EINVAL},
		{"{\"v\":\"1\",\"labels\":{},\"configs\":{}}", -EINVAL},
		{"{\"v\":2}", -EPROTONOSUPPORT},
		{"{\"v\":1}", -EINVAL},
		{"{\"v\":1,\"labels\":[],\"configs\":{}}", -EINVAL},
		{"{\"v\":1,\"labels\":{\"a\":1},\"configs\":{}}", -EINVAL},
		{"{\"v\":1,\"labels\":{},\"configs\":[]}", -EINVAL},
		{"{\"v\":1,\"labels\":{},\"configs\":{\"web\":1}}", -EINVAL},
		{"{\"v\":1,\"labels\":{},\"configs\":{}} x", -EINVAL},
	};
	struct receipt *r;

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		assert_int_equal(
			receipt_read(table[i].text, strlen(table[i].text), &r), table[i].error);
}

static void largest_page__fits_into_a_request(void **state)
{
	static char version[RECEIPT_VERSION], others[RECEIPT_OTHERS], why[RECEIPT_WHY], name[65],
		value[256], label_name[65];
	static struct settings_label labels[SETTINGS_MAX_LABELS];
	static struct receipt_config configs[RECEIPT_CONFIGS];
	struct receipt r = plain;
	struct buffer b;

	(void)state;
	memset(version, 'v', sizeof(version) - 1);
	memset(others, 'o', sizeof(others) - 1);
	memset(why, 1, sizeof(why) - 1); /* what is longest in JSON */
	memset(name, 'n', sizeof(name) - 1);
	memset(label_name, 'l', sizeof(label_name) - 1);
	memset(value, '"', sizeof(value) - 1);
	for (size_t i = 0; i < SETTINGS_MAX_LABELS; i++)
		labels[i] = (struct settings_label){label_name, value};
	for (size_t i = 0; i < RECEIPT_CONFIGS; i++) {
		configs[i] = web;
		configs[i].name = name;
		configs[i].version = configs[i].rejected = version;
		configs[i].others = others;
		configs[i].why = why;
		configs[i].generation = UINT64_MAX;
		configs[i].since_ms = configs[i].pulled_ms = INT64_MAX;
	}
	r.host = name;
	r.labels = labels;
	r.label_count = SETTINGS_MAX_LABELS;
	r.page = r.pages = 100;
	write_page(&b, &r, configs, RECEIPT_CONFIGS);
	assert_true(b.len / 3 * 4 + 10000 < KIND_MAX_BODY);
	buffer_fini(&b);
}

static void largest_known__fits_into_a_request(void **state)
{
	static char name[65], value[256], label_name[65];
	static struct settings_label labels[SETTINGS_MAX_LABELS];
	struct receipt r = plain;
	struct buffer b;

	(void)state;
	memset(name, 'n', sizeof(name) - 1);
	memset(label_name, 'l', sizeof(label_name) - 1);
	memset(value, '"', sizeof(value) - 1);
	for (size_t i = 0; i < SETTINGS_MAX_LABELS; i++)
		labels[i] = (struct settings_label){label_name, value};
	r.labels = labels;
	r.label_count = SETTINGS_MAX_LABELS;
	r.config_count = SETTINGS_MAX_CONFIGS;
	r.configs = calloc(r.config_count, sizeof(*r.configs));
	assert_non_null(r.configs);
	for (size_t i = 0; i < r.config_count; i++)
		r.configs[i].name = name;
	buffer_init(&b, RECEIPT_MAX);
	assert_int_equal(receipt_write_known(&r, &b), 0);
	assert_true(b.len / 3 * 4 + 10000 < KIND_MAX_BODY);
	free(r.configs);
	buffer_fini(&b);
}

/* ---- texts ---- */

static void version__is_without_quotes_and_weakness(void **state)
{
	static const char *const table[][2] = {{"\"a\"", "a"}, {"W/\"a\"", "a"}, {"a", "a"},
		{"\"", "?"}, {"\"\"", ""}, {"", ""}, {"W/a", "W/a"}, {"\"a", "?a"}, {"42", "42"},
		{"\"a b\xff\\\"", "a?b??"}};
	char version[RECEIPT_VERSION], text[1000];

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		receipt_version(table[i][0], version);
		assert_string_equal(version, table[i][1]);
	}
	memset(text, 'a', sizeof(text));
	text[999] = '\0';
	receipt_version(text, version);
	assert_int_equal(strlen(version), RECEIPT_VERSION - 1);
}

static void why__is_one_line_cut_between_characters(void **state)
{
	char why[RECEIPT_WHY], text[500];

	(void)state;
	receipt_why("first\nsecond", why);
	assert_string_equal(why, "first");
	receipt_why("", why);
	assert_string_equal(why, "");
	for (unsigned char c = 0x80; c < 0xc0; c++) { /* any second byte */
		for (size_t i = 0; i + 1 < sizeof(text); i += 2)
			memcpy(text + i, (const char[]){'\xc3', (char)c}, 2);
		text[498] = '\0';
		receipt_why(text, why);
		assert_int_equal(strlen(why), 200);
		receipt_why(text + 1, why); /* one byte off */
		assert_int_equal(strlen(why), 199);
	}
}

static void config__runs_what_it_says__or_what_its_digest_begins_with(void **state)
{
	struct receipt_config c = web;

	(void)state;
	assert_true(receipt_runs(&c, "v1"));
	assert_true(receipt_runs(&c, "v7") && receipt_runs(&c, "v88"));
	assert_false(receipt_runs(&c, "v8") || receipt_runs(&c, "v7 v88") || receipt_runs(&c, ""));
	assert_false(receipt_runs(&c, "v2"));
	assert_true(receipt_runs(&c, "0123456789ab"));
	assert_true(receipt_runs(&c, "0123456789ABCDEF"));
	assert_true(receipt_runs(&c, "0123456789abcdef00112233445566778899aabbccddeeff"));
	assert_false(receipt_runs(&c, "0123456789a")); /* too short to mean it */
	assert_false(receipt_runs(&c, "0123456789ac"));
	c.generation = 0;
	assert_false(receipt_runs(&c, "v1"));
}

/* ---- any receipt comes back as it was ---- */

static const char *any_text(char *out, size_t max)
{
	static const char *const pieces[] = {"a", "Z", "9", "\"", "\\", "/", "\n", "\t", "\x01",
		"\x7f", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "{", "]", ","};
	size_t len = 0, n = random_below(40);

	for (size_t i = 0; i < n; i++) {
		const char *piece = pieces[random_below(sizeof(pieces) / sizeof(pieces[0]))];

		if (len + strlen(piece) >= max)
			break;
		memcpy(out + len, piece, strlen(piece));
		len += strlen(piece);
	}
	out[len] = '\0';
	return out;
}

static void check_config(const struct receipt_config *a, const struct receipt_config *b)
{
	CHECK(strcmp(a->name, b->name) == 0);
	CHECK(a->generation == b->generation);
	CHECK(strcmp(a->version, b->version) == 0);
	CHECK(strcmp(a->others, b->others) == 0);
	CHECK(strcmp(a->digest, b->digest) == 0);
	CHECK(a->state == b->state);
	CHECK(strcmp(a->why, b->why) == 0);
	CHECK(strcmp(a->rejected, b->rejected) == 0);
	CHECK(strcmp(a->rejected_digest, b->rejected_digest) == 0);
	CHECK(a->since_ms == b->since_ms);
	CHECK(a->pulled_ms == b->pulled_ms);
}

static void any_page__written_and_read__is_the_same(void **state)
{
	static char texts[7][RECEIPT_CONFIGS][200];
	struct receipt_config configs[RECEIPT_CONFIGS];
	struct receipt r, *again;
	struct buffer b;

	(void)state;
	model_random_start();
	for (model_random.step = 0; model_random.step < 3000; model_random.step++) {
		size_t n = random_below(model_random.step % 100 == 0 ? RECEIPT_CONFIGS : 5);

		for (size_t i = 0; i < n; i++) {
			snprintf(texts[0][i], 200, "c%zu", i);
			configs[i] = (struct receipt_config){.name = texts[0][i],
				.generation = random_bits() >> (1 + random_below(63)),
				.version = any_text(texts[1][i], 200),
				.others = any_text(texts[6][i], 200),
				.digest = any_text(texts[2][i], 20),
				.state = (enum receipt_state)random_below(RECEIPT_STATES),
				.why = any_text(texts[3][i], 200),
				.rejected = any_text(texts[4][i], 200),
				.rejected_digest = "0123456789abcdef",
				.since_ms = (int64_t)(random_bits() >> 1),
				.pulled_ms = (int64_t)random_below(1000)};
		}
		r = plain;
		r.page = 1 + random_below(9);
		r.pages = 2 + random_below(9);
		r.host = any_text(texts[5][0], 200);
		write_page(&b, &r, configs, n);
		CHECK(receipt_read(b.data, b.len, &again) == 0);
		CHECK(again->config_count == n && again->page == r.page && again->pages == r.pages);
		CHECK(strcmp(again->host, r.host) == 0 && strcmp(again->pullet, "0.1.0") == 0);
		CHECK(again->label_count == 1 && strcmp(again->labels[0].value, "eu-1") == 0);
		for (size_t i = 0; i < n; i++)
			check_config(&configs[i], &again->configs[i]);
		receipt_free(again);
		buffer_fini(&b);
	}
}

/* ---- rosters ---- */

static int put_leased(struct roster *r, const char *key, const char *text, uint64_t lease)
{
	const struct roster_value value = {
		.data = text, .len = text ? strlen(text) : 0, .lease = lease};

	return roster_put(r, key, strlen(key), text ? &value : NULL);
}

/* Under a lease that is the host's. */
static int put_key(struct roster *r, const char *name, const char *value)
{
	char key[200];

	snprintf(key, sizeof(key), PREFIX "%s", name);
	return put_leased(r, key, value, hash_bytes(1, name, strcspn(name, "#")));
}

__attribute__((format(printf, 3, 4))) static void put(
	struct roster *r, const char *name, const char *format, ...)
{
	char text[4096];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	assert_int_equal(put_key(r, name, text), 0);
}

#define ONE(host, version, digest, state, pulled)                                                  \
	"{\"v\":1,\"host\":\"" host                                                                \
	"\",\"labels\":{\"zone\":\"eu\"},\"configs\":{\"web\":{\"generation\":1,"                  \
	"\"version\":\"" version "\",\"digest\":\"" digest "\",\"state\":\"" state                 \
	"\",\"pulled_ms\":" #pulled "}}}"
#define KNOWN_WEB "{\"v\":1,\"first_ms\":1,\"labels\":{\"zone\":\"eu\"},\"configs\":[\"web\"]}"

/* h1 to hN are known to have the config web. */
static void know(struct roster *r, int n)
{
	char name[32];

	for (int i = 1; i <= n; i++) {
		snprintf(name, sizeof(name), "known/h%d", i);
		put(r, name, KNOWN_WEB);
	}
}

/* Does a receipt of this host count? */
static bool has_row(const struct roster *r, const char *host)
{
	static const struct roster_filter all = {.config = NULL};
	struct roster_row *rows;
	bool found = false;
	size_t count;

	if (roster_rows(r, &all, &rows, &count))
		return false;
	for (size_t i = 0; i < count; i++)
		found |= !rows[i].silent && strcmp(rows[i].host, host) == 0;
	free(rows);
	return found;
}

static struct roster_sum sum_of(
	struct roster *r, const char *config, const char *version, struct roster_row **ret_rows)
{
	const struct roster_filter wish = {.config = config};
	struct roster_sum s;
	size_t count;

	assert_int_equal(roster_settle(r, NOW), 0);
	assert_int_equal(roster_rows(r, &wish, ret_rows, &count), 0);
	assert_true(count > 0);
	assert_int_equal(roster_sum(*ret_rows, count, version, &s), 0);
	return s;
}

static void sum__knows_the_newest__and_who_is_behind_refuses_or_is_silent(void **state)
{
	static const bool behind[] = {false, true, true, false, true, true};
	struct roster *r = roster_new(PREFIX, ROSTER_MAX_BYTES);
	struct roster_row *rows;
	struct roster_sum s;

	(void)state;
	put(r, "h1", ONE("h1", "v2", "d2", "ok", 20));
	put(r, "h2", ONE("h2", "v1", "d1", "ok", 10));
	put(r, "h3", ONE("h3", "v1", "d1", "rejected", 99)); /* went back: not the newest */
	put(r, "h4", ONE("h4", "v2", "d2", "pinned", 15));
	put(r, "h5", ONE("h5", "v2", "d2", "stale", 15));
	know(r, 6);
	s = sum_of(r, "web", NULL, &rows);
	assert_int_equal(s.count, 6);
	assert_int_equal(s.silent, 1);
	assert_string_equal(s.wanted, "v2");
	assert_int_equal(s.on_it, 3);
	assert_int_equal(s.group_count, 2);
	assert_string_equal(s.groups[0].version, "v2");
	assert_true(s.groups[0].wanted);
	assert_int_equal(s.groups[1].hosts, 2);
	assert_int_equal(s.groups[1].states[RECEIPT_REJECTED], 1);
	for (size_t i = 0; i < s.count; i++)
		assert_int_equal(roster_behind(&s, &rows[i]), behind[i]);
	assert_true(rows[5].silent);
	assert_string_equal(rows[5].host, "h6");
	roster_sum_fini(&s);
	free(rows);
	/* what is asked for counts, whatever is new */
	s = sum_of(r, "web", "v1", &rows);
	assert_int_equal(s.on_it, 2);
	assert_true(roster_behind(&s, &rows[0]));
	assert_false(roster_behind(&s, &rows[1]));
	roster_sum_fini(&s);
	free(rows);
	s = sum_of(r, "web", "v9", &rows);
	assert_int_equal(s.on_it, 0);
	assert_string_equal(s.wanted, "v9");
	assert_true(roster_behind(&s, &rows[0]));
	roster_sum_fini(&s);
	free(rows);
	roster_free(r);
}

static void sum__of_versions_without_a_name__tells_them_apart_by_their_digest(void **state)
{
	struct roster *r = roster_new(PREFIX, ROSTER_MAX_BYTES);
	struct roster_row *rows;
	struct roster_sum s;

	(void)state;
	put(r, "h1", ONE("h1", "", "d1d1d1d1d1d1d1d1", "ok", 10));
	put(r, "h2", ONE("h2", "", "d2d2d2d2d2d2d2d2", "ok", 20));
	put(r, "h3",
		"{\"v\":1,\"host\":\"h3\",\"labels\":{},\"configs\":{\"web\":{\"generation\":0,"
		"\"state\":\"waiting\"}}}");
	know(r, 3);
	s = sum_of(r, NULL, NULL, &rows);
	assert_int_equal(s.group_count, 3);
	assert_string_equal(s.wanted, "d2d2d2d2d2d2d2d2");
	assert_int_equal(s.on_it, 1);
	assert_true(roster_behind(&s, &rows[2]));
	roster_sum_fini(&s);
	free(rows);
	s = sum_of(r, NULL, "d1d1d1d1d1d1", &rows);
	assert_int_equal(s.on_it, 1);
	assert_false(roster_behind(&s, &rows[0]));
	roster_sum_fini(&s);
	free(rows);
	roster_free(r);
}

static void rows__are_of_the_labels_that_are_asked_for(void **state)
{
	const struct roster_label eu = {"zone", "eu"}, us = {"zone", "us"}, both[] = {eu, us};
	struct roster_filter wish = {.config = "web", .labels = &eu, .label_count = 1};
	struct roster *r = roster_new(PREFIX, ROSTER_MAX_BYTES);
	struct roster_row *rows;
	size_t count;

	(void)state;
	put(r, "h1", ONE("h1", "v2", "d2", "ok", 20));
	put(r, "h3",
		"{\"v\":1,\"host\":\"h3\",\"labels\":{\"zone\":\"us\"},\"configs\":{\"web\":{}}}");
	know(r, 2);
	put(r, "known/h3", "{\"v\":1,\"labels\":{\"zone\":\"us\"},\"configs\":[\"web\"]}");
	assert_int_equal(roster_settle(r, NOW), 0);
	assert_int_equal(roster_rows(r, &wish, &rows, &count), 0);
	assert_int_equal(count, 2);
	free(rows);
	wish.labels = &us;
	assert_int_equal(roster_settle(r, NOW), 0);
	assert_int_equal(roster_rows(r, &wish, &rows, &count), 0);
	assert_int_equal(count, 1);
	assert_string_equal(rows[0].host, "h3");
	free(rows);
	wish.labels = both;
	wish.label_count = 2;
	assert_int_equal(roster_settle(r, NOW), 0);
	assert_int_equal(roster_rows(r, &wish, &rows, &count), 0);
	assert_int_equal(count, 0);
	free(rows);
	roster_free(r);
}

static void pages__that_are_missing_or_left_over__are_noticed(void **state)
{
	const struct roster_filter wish = {.config = NULL};
	struct roster *r = roster_new(PREFIX, ROSTER_MAX_BYTES);
	struct roster_row *rows;
	size_t count;

	(void)state;
	put(r, "known/h1", "{\"v\":1,\"first_ms\":1,\"labels\":{},\"configs\":[\"a\",\"b\"]}");
	put(r, "h1",
		"{\"v\":1,\"host\":\"h1\",\"page\":1,\"pages\":2,\"labels\":{},\"configs\":{\"a\":{"
		"}}}");
	put(r, "h1#3",
		"{\"v\":1,\"host\":\"h1\",\"page\":3,\"pages\":3,\"labels\":{},\"configs\":{\"c\":{"
		"}}}");
	assert_int_equal(roster_settle(r, NOW), 0);
	assert_int_equal(roster_rows(r, &wish, &rows, &count), 0);
	assert_int_equal(count, 2);
	assert_false(rows[0].silent);
	assert_string_equal(rows[1].runs->name, "b");
	assert_true(rows[1].silent);
	free(rows);
	put(r, "h1#2",
		"{\"v\":1,\"host\":\"h1\",\"page\":2,\"pages\":2,\"labels\":{},\"configs\":{\"b\":{"
		"}}}");
	assert_int_equal(roster_settle(r, NOW), 0);
	assert_int_equal(roster_rows(r, &wish, &rows, &count), 0);
	assert_int_equal(count, 2);
	assert_false(rows[1].silent);
	free(rows);
	roster_free(r);
}

struct found {
	char text[1000];
};

static void add_ghost(void *arg, const char *key, enum ghost kind)
{
	struct found *f = arg;
	size_t len = strlen(f->text);

	snprintf(f->text + len, sizeof(f->text) - len, "%s: %s\n", key, ghost_name(kind));
}

static struct found ghosts_of(struct roster *r)
{
	struct found f = {.text = ""};

	assert_int_equal(roster_settle(r, NOW), 0);
	roster_visit_ghosts(r, add_ghost, &f);
	return f;
}

static void keys__that_are_no_agents__are_ghosts(void **state)
{
	static const char *const names[] = {"", "known/", "known/a/b", "a/b", "h#", "h#0", "h#1",
		"h#02", "h#x", "h#101", "h#99999999999999999999", "#2", "h b", "h\x1b",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
	struct roster *r = roster_new(PREFIX, ROSTER_MAX_BYTES);
	struct found f;
	char wanted[200];

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_int_equal(put_key(r, names[i], ONE("h", "v", "d", "ok", 1)), 0);
		f = ghosts_of(r);
		snprintf(wanted, sizeof(wanted), "%s: the key names no host\n", names[i]);
		assert_string_equal(f.text, wanted);
		assert_int_equal(put_key(r, names[i], NULL), 0);
		assert_string_equal(ghosts_of(r).text, "");
	}
	assert_int_equal(put_leased(r, "/other/h", "{}", 1), 0);
	assert_string_equal(ghosts_of(r).text, "/other/h: the key names no host\n");
	roster_free(r);
}

static void keys__that_are_long__are_told_apart(void **state)
{
	struct roster *r = roster_new(PREFIX, ROSTER_MAX_BYTES);
	const struct roster_value value = {.data = "", .len = 0};
	static char key[100000];
	size_t prefix = strlen(PREFIX);

	(void)state;
	memset(key, 'k', sizeof(key));
	memcpy(key, PREFIX, prefix);
	assert_int_equal(roster_put(r, key, sizeof(key), &value), 0);
	assert_int_equal(roster_put(r, key, sizeof(key) - 1, &value), 0);
	key[prefix + 3] = '\0';
	assert_int_equal(roster_put(r, key, sizeof(key), &value), 0);
	assert_int_equal(roster_put(r, key, sizeof(key), NULL), 0);
	key[prefix + 3] = 'k';
	assert_int_equal(roster_put(r, key, sizeof(key), NULL), 0);
	assert_memory_equal(ghosts_of(r).text, "kkkk", 4);
	assert_int_equal(roster_put(r, key, sizeof(key) - 1, NULL), 0);
	assert_string_equal(ghosts_of(r).text, "");
	roster_free(r);
}

/* ---- what fits nothing ---- */

#define GOOD ONE("h1", "v", "d", "ok", 1)
#define WITH(members) "{\"v\":1,\"host\":\"h1\",\"labels\":{}," members "}"

static void receipts__that_fit_nothing__are_named_and_not_counted(void **state)
{
	static const struct {
		const char *value, *why;
		uint64_t lease;
	} table[] = {
		{"x", "the value is not a receipt", 7},
		{"{\"v\":2}", "of a newer pullet", 7},
		{GOOD, "under no lease", 0},
		{ONE("h2", "v", "d", "ok", 1), "the value names another host or page than the key",
			7},
		{WITH("\"page\":2,\"pages\":2,\"configs\":{\"web\":{}}"),
			"the value names another host or page than the key", 7},
		{ONE("h1", "v v", "d", "ok", 1), "invalid characters", 7},
		{ONE("h1", "v\\u001b", "d", "ok", 1), "invalid characters", 7},
		{ONE("h1", "\xe2\x80\xae", "d", "ok", 1), "invalid characters", 7},
		{WITH("\"configs\":{\"w b\":{}}"), "invalid characters", 7},
		{ONE("h1", "v", "0123456789abcdef0", "ok", 1), "larger than an agent writes", 7},
		{ONE("h1", "v", "d", "ok", 900000), "a time in the future", 7},
		{WITH("\"since_ms\":900000,\"configs\":{\"web\":{}}"), "a time in the future", 7},
		{GOOD, "a lease shared by several hosts", 9},
		{WITH("\"configs\":{\"db\":{}}"), "a config unknown for this host", 7},
	};
	struct roster *r = roster_new(PREFIX, ROSTER_MAX_BYTES);
	struct roster_row *rows;
	struct roster_sum s;
	char wanted[200];

	(void)state;
	know(r, 2);
	assert_int_equal(put_leased(r, PREFIX "h2", ONE("h2", "v", "d", "ok", 1), 9), 0);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		assert_int_equal(put_leased(r, PREFIX "h1", table[i].value, table[i].lease), 0);
		snprintf(wanted, sizeof(wanted), "h1: %s\n", table[i].why);
		if (table[i].lease == 9) /* of h2, too, nobody knows whether it is true */
			snprintf(wanted, sizeof(wanted), "h1: %s\nh2: %s\n", table[i].why,
				table[i].why);
		assert_string_equal(ghosts_of(r).text, wanted);
		s = sum_of(r, "web", "v", &rows);
		assert_int_equal(s.count, 2);
		assert_int_equal(s.on_it, table[i].lease != 9);
		assert_true(rows[0].silent);
		roster_sum_fini(&s);
		free(rows);
		/* a good one takes its place */
		assert_int_equal(put_leased(r, PREFIX "h1", GOOD, 7), 0);
		assert_string_equal(ghosts_of(r).text, "");
		assert_true(has_row(r, "h1") && has_row(r, "h2"));
	}
	put(r, "h3", ONE("h3", "v", "d", "ok", 1));
	assert_string_equal(ghosts_of(r).text, "h3: an unknown host\n");
	assert_false(has_row(r, "h3"));
	roster_free(r);
}

static void lease__that_two_of_many_share__is_found_wherever_they_are(void **state)
{
	static const char *const hosts[] = {"h1", "h2", "h3", "h4", "h5"};
	char key[64], value[512], wanted[256];

	(void)state;
	for (size_t a = 0; a < 5; a++)
		for (size_t b = a + 1; b < 5; b++) {
			struct roster *r = roster_new(PREFIX, ROSTER_MAX_BYTES);

			know(r, 5);
			for (size_t i = 0; i < 5; i++) {
				snprintf(key, sizeof(key), PREFIX "%s", hosts[i]);
				snprintf(value, sizeof(value),
					"{\"v\":1,\"host\":\"%s\",\"labels\":{},\"configs\":{}}",
					hosts[i]);
				assert_int_equal(
					put_leased(r, key, value, i == b ? 20 - a : 20 - i), 0);
			}
			snprintf(wanted, sizeof(wanted),
				"%s: a lease shared by several hosts\n%s: a lease shared by "
				"several hosts\n",
				hosts[a], hosts[b]);
			assert_string_equal(ghosts_of(r).text, wanted);
			roster_free(r);
		}
}

static void value__that_is_huge__is_not_read(void **state)
{
	struct roster *r = roster_new(PREFIX, ROSTER_MAX_BYTES);
	static char text[RECEIPT_MAX + 1];
	const struct roster_value value = {.data = text, .len = sizeof(text), .lease = 7};

	(void)state;
	memset(text, ' ', sizeof(text));
	memcpy(text, GOOD, strlen(GOOD));
	assert_int_equal(roster_put(r, PREFIX "h1", strlen(PREFIX "h1"), &value), 0);
	assert_string_equal(ghosts_of(r).text, "h1: larger than an agent writes\n");
	roster_free(r);
}

static void roster__that_grows_beyond_its_bound__says_so(void **state)
{
	struct roster *r = roster_new(PREFIX, 20000);
	char key[32];
	int i = 0;

	(void)state;
	do {
		snprintf(key, sizeof(key), i % 2 ? "h%d" : "a/%d", i);
	} while (put_key(r, key, ONE("h1", "v", "d", "ok", 1)) == 0 && i++ < 10000);
	assert_true(i > 10 && i < 2000);
	roster_free(r);
	r = roster_new(PREFIX, 20000);
	for (i = 0; i < 10000; i++) { /* what is gone takes no room */
		snprintf(key, sizeof(key), "h%d", i);
		assert_int_equal(put_key(r, key, GOOD), 0);
		assert_int_equal(put_key(r, key, NULL), 0);
		assert_int_equal(put_key(r, "h1", GOOD), 0);
	}
	roster_free(r);
}

/* How many hosts, and how many ghosts, fit into it. */
static int fill(struct roster *r, const char *format, const char *text)
{
	char key[64];
	int n;

	for (n = 0; n < 1000; n++) {
		snprintf(key, sizeof(key), "%s%03d", format, n);
		if (put_key(r, key, text))
			break;
	}
	for (int i = n; i >= 0; i--) {
		snprintf(key, sizeof(key), "%s%03d", format, i);
		put_key(r, key, NULL);
	}
	return n;
}

static void room__of_what_is_gone__is_there_again(void **state)
{
	static const char *const keys[] = {"h", "known/h", "a/", "#"};
	struct roster *r = roster_new(PREFIX, 20000);
	int first[4];

	(void)state;
	for (int again = 0; again < 3; again++)
		for (size_t i = 0; i < 4; i++) {
			int n = fill(
				r, keys[i], i == 1 ? KNOWN_WEB : ONE("h000", "v", "d", "ok", 1));

			if (!again)
				first[i] = n;
			assert_int_equal(n, first[i]);
			assert_in_range(n, 10, 900);
		}
	roster_free(r);
	roster_free(NULL);
}

/* What becomes of a fleet, step by step; each is taken again when there is memory. */
static int live(struct roster *r, unsigned step)
{
	const struct roster_label eu = {"zone", "eu"};
	const struct roster_filter wish = {.config = "web", .labels = &eu, .label_count = 1};
	struct roster_row *rows = NULL;
	struct roster_sum s;
	size_t count = 0;
	int e;

	switch (step) {
	case 0:
		return put_key(r, "known/h1", KNOWN_WEB);
	case 1:
		return put_key(r, "h1", ONE("h1", "v2", "d2", "ok", 20));
	case 2:
		return put_key(r, "h2", ONE("h2", "v1", "d1", "ok", 10));
	case 3:
		return put_key(r, "known/h2", KNOWN_WEB);
	case 4:
		return put_key(r, "no/host", "{}");
	case 5:
		return put_key(r, "h1#2", "{}");
	case 6:
		return put_key(r, "h1", ONE("h1", "v3", "d3", "ok", 30));
	case 7:
		return put_key(r, "no/host", NULL);
	case 8:
		return roster_settle(r, NOW);
	default:
		break;
	}
	e = roster_rows(r, &wish, &rows, &count);
	if (e)
		return e;
	e = roster_sum(rows, count, NULL, &s);
	if (e == 0) {
		assert_int_equal(s.count, 2);
		assert_int_equal(s.silent, 0);
		assert_int_equal(s.on_it, 1);
		assert_string_equal(s.wanted, "v3");
		assert_int_equal(s.group_count, 2);
		roster_sum_fini(&s);
	}
	free(rows);
	return e;
}

static void memory__that_runs_out__is_said_and_breaks_nothing(void **state)
{
	unsigned failed = 0;
	bool hit;

	(void)state;
	for (unsigned nth = 1;; nth++) {
		struct roster *r;

		fault_memory.seen = 0;
		fault_memory.nth = nth;
		r = roster_new(PREFIX, ROSTER_MAX_BYTES);
		hit = fault_memory.seen >= nth;
		fault_memory.nth = 0;
		assert_int_equal(r == NULL, hit);
		if (!hit) {
			roster_free(r);
			break;
		}
	}
	for (unsigned step = 0; step < 10; step++)
		for (unsigned nth = 1, e = 1; e; nth++) {
			struct roster *r = roster_new(PREFIX, ROSTER_MAX_BYTES);

			for (unsigned k = 0; k < step; k++)
				assert_int_equal(live(r, k), 0);
			fault_memory.seen = 0;
			fault_memory.nth = nth;
			e = (unsigned)-live(r, step);
			fault_memory.nth = 0;
			assert_true(e == 0 || e == ENOMEM);
			failed += e != 0;
			for (unsigned k = step; k < 10; k++)
				assert_int_equal(live(r, k), 0);
			roster_free(r);
		}
	assert_true(failed > 40);
}

/* ---- any roster is counted right ---- */

#define HOSTS 40

static struct {
	bool known, alive;
	unsigned version; /* "vN" */
	enum receipt_state state;
} fleet[HOSTS];

static void stir(struct roster *r)
{
	size_t i = random_below(HOSTS);
	char name[32], text[512];

	snprintf(name, sizeof(name), "h%02zu", i);
	switch (random_below(8)) {
	case 0:
		fleet[i].alive = false;
		CHECK(put_key(r, name, NULL) == 0);
		break;
	case 1:
		fleet[i].known = false;
		snprintf(name, sizeof(name), "known/h%02zu", i);
		CHECK(put_key(r, name, NULL) == 0);
		break;
	case 2:
	case 3:
		fleet[i].known = true;
		snprintf(name, sizeof(name), "known/h%02zu", i);
		CHECK(put_key(r, name, KNOWN_WEB) == 0);
		break;
	default:
		fleet[i].alive = true;
		fleet[i].version = (unsigned)random_below(4);
		fleet[i].state = (enum receipt_state)random_below(RECEIPT_OTHER);
		snprintf(text, sizeof(text),
			"{\"v\":1,\"host\":\"%s\",\"labels\":{},\"configs\":{\"web\":{"
			"\"generation\":%u,"
			"\"version\":\"v%u\",\"state\":\"%s\",\"digest\":\"d%u\"},\"a\":{}}}",
			name, fleet[i].version + 1, fleet[i].version,
			receipt_state_name(fleet[i].state), fleet[i].version);
		CHECK(put_key(r, name, text) == 0);
	}
}

static void count_plainly(struct roster *r)
{
	size_t all = 0, silent = 0, on_it = 0, versions[4] = {0}, groups = 0, count;
	const struct roster_filter wish = {.config = "web"};
	struct roster_row *rows;
	struct roster_sum s;
	char name[8];

	CHECK(roster_settle(r, NOW) == 0);
	for (size_t i = 0; i < HOSTS; i++) {
		snprintf(name, sizeof(name), "h%02zu", i);
		bool counts = fleet[i].alive && fleet[i].known;

		CHECK(has_row(r, name) == counts);
		all += fleet[i].known;
		silent += fleet[i].known && !fleet[i].alive;
		on_it += counts && fleet[i].version == 2;
		versions[fleet[i].version] += counts;
	}
	for (size_t i = 0; i < 4; i++)
		groups += versions[i] > 0;
	CHECK(roster_rows(r, &wish, &rows, &count) == 0);
	CHECK(count == all);
	if (count) {
		CHECK(roster_sum(rows, count, "v2", &s) == 0);
		CHECK(s.count == all && s.silent == silent && s.on_it == on_it);
		CHECK(s.group_count == groups);
		for (size_t i = 1; i < s.group_count; i++)
			CHECK(s.groups[i - 1].hosts >= s.groups[i].hosts);
		roster_sum_fini(&s);
	}
	free(rows);
}

static void any_roster__is_counted_as_by_hand(void **state)
{
	struct roster *r = roster_new(PREFIX, ROSTER_MAX_BYTES);

	(void)state;
	model_random_start();
	memset(fleet, 0, sizeof(fleet));
	for (model_random.step = 0; model_random.step < 20000; model_random.step++) {
		stir(r);
		if (model_random.step % 7 == 0)
			count_plainly(r);
	}
	roster_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(page__of_one_config__is_written_so),
		cmocka_unit_test(known__is_written_so),
		cmocka_unit_test(page__from_another_hand__is_read_as_far_as_it_is_known),
		cmocka_unit_test(bytes__that_are_no_receipt__are_refused),
		cmocka_unit_test(largest_page__fits_into_a_request),
		cmocka_unit_test(largest_known__fits_into_a_request),
		cmocka_unit_test(version__is_without_quotes_and_weakness),
		cmocka_unit_test(why__is_one_line_cut_between_characters),
		cmocka_unit_test(config__runs_what_it_says__or_what_its_digest_begins_with),
		cmocka_unit_test(any_page__written_and_read__is_the_same),
		cmocka_unit_test(sum__knows_the_newest__and_who_is_behind_refuses_or_is_silent),
		cmocka_unit_test(sum__of_versions_without_a_name__tells_them_apart_by_their_digest),
		cmocka_unit_test(rows__are_of_the_labels_that_are_asked_for),
		cmocka_unit_test(pages__that_are_missing_or_left_over__are_noticed),
		cmocka_unit_test(keys__that_are_no_agents__are_ghosts),
		cmocka_unit_test(keys__that_are_long__are_told_apart),
		cmocka_unit_test(receipts__that_fit_nothing__are_named_and_not_counted),
		cmocka_unit_test(value__that_is_huge__is_not_read),
		cmocka_unit_test(roster__that_grows_beyond_its_bound__says_so),
		cmocka_unit_test(room__of_what_is_gone__is_there_again),
		cmocka_unit_test(any_roster__is_counted_as_by_hand),
		cmocka_unit_test(lease__that_two_of_many_share__is_found_wherever_they_are),
		cmocka_unit_test(memory__that_runs_out__is_said_and_breaks_nothing),
	};

	return fault_memory_run(tests, 1);
}
