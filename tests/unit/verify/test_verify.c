/*
 * The checks, one by one at their boundaries: the digest a server gives, signatures (the tool's own
 * are tests/golden/minisign), the guard, the schema; who is asked when, and what is another rule.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "verify/verify.h"
#include "schema/schema.h"
#include "tests/unit/fixture/fault_memory.h"
#include "tests/unit/fixture/minisign_signer.h"
#include "tests/unit/fixture/scratch.h"

#define CONFIG "configs:\n  web:\n    url: http://x/web.yaml\n    file: /run/web.yaml\n"
#define KEY "RWSYMC7n8ADplDfW2kiEMNo8BX8IPthSF1HxnEXGBzB/KwlR4ZfoNZlN"
#define VERIFIED CONFIG "    verify: {public_key: " KEY "}\n"
#define YEAR_END INT64_C(1798675200000) /* 2026-12-31T00:00:00Z */
#define NOW INT64_C(1795255163000)

/* A version before its checks. */
struct court {
	struct settings *settings;
	struct verify *checks;
	struct version version;
	struct buffer body;
	struct compose_piece pieces[VERSION_MAX_PARTS];
	struct composition composition;
	struct document *before;
	uint64_t revs[SETTINGS_MAX_LAYERS];
	struct verify_case the_case;
	struct verify_result judgement;
};

static void begin(struct court *c, const char *settings)
{
	memset(c, 0, sizeof(*c));
	c->settings = scratch_settings("%s", settings);
	c->checks = verify_new(&sys_real, c->settings->configs[0]);
	assert_non_null(c->checks);
	version_begin(&c->version, &c->body, 1);
}

static void add(struct court *c, const char *type, const char *text)
{
	version_add(&c->version, &c->body, "http://x/web.yaml", type, text);
}

/* What stands. */
static void stands(struct court *c, const char *yaml)
{
	struct document_error e;

	assert_int_equal(document_parse(DOCUMENT_YAML, yaml, strlen(yaml), 0, &c->before, &e), 0);
	c->the_case.before = document_root(c->before);
	c->the_case.before_bytes = strlen(yaml);
}

/* All parts are added. */
static void submit(struct court *c)
{
	char why[FILE_WHY] = "";

	version_end(&c->version, &c->body);
	version_pieces(&c->version, &c->body, c->pieces);
	if (compose_document(c->settings->configs[0], c->pieces, c->version.part_count, NULL, NULL,
		    &c->composition, why))
		fail_msg("%s", why);
	c->the_case.pieces = c->pieces;
	c->the_case.count = c->version.part_count;
	c->the_case.composition = &c->composition;
	for (size_t i = 0; i < c->version.part_count; i++)
		if (!c->pieces[i].signature)
			c->the_case.bytes += c->version.parts[i].len;
	c->the_case.revs = c->revs;
	c->the_case.level = VERIFY_NEW;
	c->the_case.wall_ms = NOW;
}

static int try(struct court *c)
{
	int r = verify_try(c->checks, &c->the_case, &c->judgement);

	assert_true((r == 0) == (c->judgement.why[0] == '\0'));
	return r;
}

static void end(struct court *c)
{
	compose_fini(&c->composition);
	version_fini(&c->version);
	buffer_fini(&c->body);
	verify_free(c->checks);
	document_free(c->before);
	settings_free(c->settings);
}

static void assert_accepted(struct court *c)
{
	if (try(c))
		fail_msg("%s: %s", verify_check_name(c->judgement.check), c->judgement.why);
}

static void assert_refused(struct court *c, enum verify_check check, const char *sentence)
{
	assert_int_equal(try(c), -EINVAL);
	assert_string_equal(verify_check_name(c->judgement.check), verify_check_name(check));
	if (!strstr(c->judgement.why, sentence))
		fail_msg("'%s' is not in '%s'", sentence, c->judgement.why);
}

/* ---- digest ---- */

static void digest__of_any_part__is_judged(void **state)
{
	struct court c;

	(void)state;
	begin(&c, "servers: {main: {urls: [http://x]}}\n"
		  "configs:\n  web:\n    file: /run/web.yaml\n    from:\n"
		  "      - {server: main, path: /a}\n"
		  "      - {server: main, path: /b, optional: true}\n");
	add(&c, "yaml", "a: 1\n");
	add(&c, "yaml", NULL);
	submit(&c);
	c.pieces[0].mismatch = "";
	assert_accepted(&c);
	c.pieces[0].mismatch = NULL; /* came from the state directory */
	c.pieces[1].mismatch = "SHA-256 is another";
	assert_refused(&c, CHECK_DIGEST, " is not what its server says: SHA-256 is another");
	end(&c);
}

/* ---- signature ---- */

static char *golden(const char *name)
{
	static char text[5][4096];
	static unsigned next;
	char dir[PATH_MAX], *to = text[next++ % 5];

	snprintf(dir, sizeof(dir), "%.*s../../golden/minisign",
		(int)(sizeof(__FILE__) - sizeof("test_verify.c")), __FILE__);
	if (!scratch_read(dir, name, to, sizeof(text[0]), NULL))
		fail_msg("%s/%s can not be read: run from the root of the repository", dir, name);
	return to;
}

/* The golden document with one of the golden signatures; NULL = none. */
static void begin_signed(struct court *c, const char *signature)
{
	begin(c, VERIFIED);
	add(c, "yaml", golden("document.yaml"));
	add(c, "minisig", signature ? golden(signature) : NULL);
	submit(c);
}

static void signature__of_a_listed_key__is_good_and_its_facts_are_told(void **state)
{
	struct court c;

	(void)state;
	begin_signed(&c, "rev.minisig");
	assert_accepted(&c);
	assert_true(c.judgement.revs[0] == 7);
	assert_true(c.judgement.expires_ms == YEAR_END);
	end(&c);
	begin_signed(&c, "default.minisig");
	assert_accepted(&c);
	assert_true(c.judgement.revs[0] == 0);
	assert_true(c.judgement.expires_ms == INT64_MAX);
	end(&c);
	begin_signed(&c, "legacy.minisig");
	assert_accepted(&c);
	end(&c);
}

static void signature__that_is_missing_or_of_others__is_refused(void **state)
{
	struct court c;

	(void)state;
	begin_signed(&c, NULL);
	assert_refused(&c, CHECK_SIGNATURE, "/web.yaml has no signature (/web.yaml.minisig)");
	end(&c);
	begin_signed(&c, "other.minisig");
	assert_refused(&c, CHECK_SIGNATURE,
		"/web.yaml: the signature by the key E03D00253CEDDF88 is not by one of");
	end(&c);
	begin_signed(&c, "document.yaml");
	assert_refused(
		&c, CHECK_SIGNATURE, "/web.yaml: that is not a signature file of minisign: line 1");
	end(&c);
	begin(&c, VERIFIED);
	add(&c, "yaml", "name: web\n");
	add(&c, "minisig", golden("rev.minisig"));
	submit(&c);
	assert_refused(&c, CHECK_SIGNATURE,
		"/web.yaml: the signature by the key 94E900F0E72E3098 "
		"is not of this document");
	c.the_case.forced = true; /* that is about the guard only */
	assert_refused(&c, CHECK_SIGNATURE, "is not of this document");
	end(&c);
}

static void signature__with_an_older_rev__is_refused(void **state)
{
	struct court c;

	(void)state;
	begin_signed(&c, "rev.minisig");
	c.revs[0] = 7; /* the same again */
	assert_accepted(&c);
	c.revs[0] = 6;
	assert_accepted(&c);
	c.revs[0] = 8;
	assert_refused(&c, CHECK_SIGNATURE,
		"/web.yaml: signed as rev=7, but rev=8 was accepted "
		"before: an old version is played back");
	c.revs[0] = UINT64_MAX;
	assert_refused(&c, CHECK_SIGNATURE, "rev=18446744073709551615 was accepted");
	c.revs[0] = 0;
	c.revs[1] = 8; /* another layer's */
	assert_accepted(&c);
	end(&c);
	begin_signed(&c, "default.minisig"); /* none at all */
	c.revs[0] = 1;
	assert_refused(&c, CHECK_SIGNATURE, "rev=1 was accepted before");
	end(&c);
}

static void signature__that_has_expired__is_refused_from_that_moment_on(void **state)
{
	struct court c;

	(void)state;
	begin_signed(&c, "rev.minisig");
	c.the_case.wall_ms = YEAR_END - 1;
	assert_accepted(&c);
	c.the_case.wall_ms = YEAR_END;
	assert_refused(&c, CHECK_SIGNATURE, "/web.yaml: its signature has expired");
	end(&c);
}

/* A signature file with this trusted comment. */
static const char *sign(const struct signer *s, const char *document, const char *comment)
{
	static char text[4][SIGNER_FILE];
	static unsigned next;
	const struct signer_job job = {.document = document,
		.len = strlen(document),
		.comment = comment,
		.comment_len = strlen(comment)};
	char *to = text[next++ % 4];

	to[signer_file(s, &job, to)] = '\0';
	return to;
}

static void signature__of_several_layers__is_asked_of_each_that_is_there(void **state)
{
	struct signer signer;
	struct court c;
	char settings[2048];

	(void)state;
	signer_init(&signer, 7);
	snprintf(settings, sizeof(settings),
		"servers: {main: {urls: [http://x]}}\n"
		"configs:\n  web:\n    file: /run/web.yaml\n    from:\n"
		"      - {server: main, path: /a}\n"
		"      - {server: main, path: /b, optional: true}\n"
		"      - {server: main, path: /c}\n"
		"    verify: {bind: none, public_keys: [%s, %s]}\n",
		KEY, signer.text);
	for (int bad = 0; bad < 2; bad++) {
		begin(&c, settings);
		add(&c, "yaml", "a: 1\n");
		add(&c, "minisig", sign(&signer, "a: 1\n", "rev=3 expires=2000000000"));
		add(&c, "yaml", NULL);
		add(&c, "minisig", NULL);
		add(&c, "yaml", golden("document.yaml"));
		add(&c, "minisig", bad ? NULL : golden("rev.minisig"));
		submit(&c);
		if (bad) {
			assert_refused(&c, CHECK_SIGNATURE, "/c has no signature (/c.minisig)");
		} else {
			assert_accepted(&c);
			assert_true(c.judgement.revs[0] == 3);
			assert_true(c.judgement.revs[1] == 0);
			assert_true(c.judgement.revs[2] == 7);
			assert_true(c.judgement.expires_ms == YEAR_END); /* the first */
			c.revs[2] = 8;
			assert_refused(&c, CHECK_SIGNATURE, "/c: signed as rev=7");
		}
		end(&c);
	}
	signer_fini(&signer);
}

#define TWO_LAYERS                                                                                 \
	"servers: {main: {urls: [http://x]}}\n"                                                    \
	"configs:\n  web:\n    file: /run/web.yaml\n    from:\n"                                   \
	"      - {server: main, path: '/a?token=x'}\n"                                             \
	"      - {server: main, path: /b}\n"

/* F15: what says that it is for something else is refused whether or not that is demanded. */
static void signature__that_is_for_something_else__is_refused(void **state)
{
	static const struct {
		const char *bind, *a, *b, *sentence; /* comments of both; NULL = accepted */
	} table[] = {
		{"", "path=/a", "path=/b", NULL},
		{"", "path=/a config=web", "config=web rev=1 path=/b", NULL},
		{"", "path=/b", "path=/a",
			"/a?...: the signature by the key 0707070707070707 is for something else: "
			"it "
			"says path=/b, and this is path=/a"},
		{"", "path=/a", "",
			"/b: the signature by the key 0707070707070707 does not say "
			"what it is for: path=/b is required"},
		{"", "path=/a", "config=web", "path=/b is required"},
		{"", "path=/a?token=x", "path=/b", "path= is not a path"},
		{"", "path=/a", "path=/b/", "says path=/b/, and this is path=/b"},
		{"", "path=/a", "path=/B", "says path=/B, and this is path=/b"},
		{"", "path=/a", "path=/%62", "says path=/%62, and this is path=/b"},
		{"", "path=/a", "path=/\xd0\xb0", "says path=(not ASCII), and this is"},
		{"", "path=/a", "path=/b path=/b", "path= is given twice"},
		{"", "path=/a", "path=b", "path= is not a path"},
		{"", "path=/a", "path=", "path= is not a path"},
		{"", "path=/a", "path=/b config=other",
			"says config=other, and this is config=web"},
		{"bind: path, ", "path=/a", "", "path=/b is required"},
		{"bind: config, ", "config=web", "config=web", NULL},
		{"bind: config, ", "config=web", "path=/b",
			"config=web is required (verify: bind: "
			"config); sign it with `pullet sign"},
		{"bind: config, ", "config=web", "config=web path=/a", "says path=/a"},
		{"bind: config, ", "config=web", "config=Web", "says config=Web"},
		{"bind: config, ", "config=web", "config=web config=web", "config= is given twice"},
		{"bind: config, ", "config=web", "config=", "config= is not the name of a config"},
		{"bind: config, ", "config=web",
			"config=w\xd0\xb5"
			"b",
			"config= is not the name"},
		{"bind: config, ", "config=web",
			"config=we\xe2\x80\x8b"
			"b",
			"config= is not the name"},
		{"bind: config, ", "config=web", "config=web\v", "config= is not the name"},
		{"bind: none, ", "", "rev=1", NULL},
		{"bind: none, ", "", "path=/a", "says path=/a, and this is path=/b"},
		{"bind: none, ", "", "config=api", "says config=api, and this is config=web"},
		{"bind: none, rev: optional, ", "", "", NULL},
		{"bind: none, rev: required, ", "rev=0", "rev=1", NULL},
		{"bind: none, rev: required, ", "rev=1", "", "has no rev=, which is required"},
	};
	struct signer signer;
	char settings[2048];

	(void)state;
	signer_init(&signer, 7);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct court c;

		snprintf(settings, sizeof(settings), TWO_LAYERS "    verify: {%spublic_key: %s}\n",
			table[i].bind, signer.text);
		begin(&c, settings);
		add(&c, "yaml", "a: 1\n");
		add(&c, "minisig", sign(&signer, "a: 1\n", table[i].a));
		add(&c, "yaml", "b: 1\n");
		add(&c, "minisig", sign(&signer, "b: 1\n", table[i].b));
		submit(&c);
		if (table[i].sentence) {
			assert_refused(&c, CHECK_SIGNATURE, table[i].sentence);
			assert_true(c.judgement.revs[1] == 0);
		} else {
			assert_accepted(&c);
		}
		end(&c);
	}
	signer_fini(&signer);
}

/* It stands for the first layer, and may lie elsewhere. */
static void signature__of_what_is_taken_instead__may_name_either_path(void **state)
{
	static const struct {
		const char *comment;
		bool good;
	} table[] = {{"path=/a", true}, {"path=/boot", true}, {"path=/c", false}, {"", false}};
	struct signer signer;
	char settings[2048];

	(void)state;
	signer_init(&signer, 7);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct court c;

		snprintf(settings, sizeof(settings),
			"servers: {main: {urls: [http://x]}}\n"
			"configs:\n  web:\n    file: /run/web.yaml\n    from:\n"
			"      - {server: main, path: /a}\n"
			"    bootstrap: {server: main, path: /boot}\n"
			"    verify: {bind: path, public_key: %s}\n",
			signer.text);
		begin(&c, settings);
		add(&c, "yaml", "a: 1\n");
		add(&c, "minisig", sign(&signer, "a: 1\n", table[i].comment));
		submit(&c);
		if (table[i].good)
			assert_accepted(&c);
		else
			assert_refused(&c, CHECK_SIGNATURE, "path=/a");
		end(&c);
	}
	signer_fini(&signer);
}

static void signature__that_nobody_asks_for__is_not_looked_at(void **state)
{
	struct court c;

	(void)state;
	begin(&c, CONFIG);
	add(&c, "yaml", "a: 1\n");
	submit(&c);
	c.revs[0] = 5;
	assert_accepted(&c);
	assert_true(c.judgement.expires_ms == INT64_MAX);
	end(&c);
}

/* ---- guard ---- */

static void guard__of_an_empty_document__refuses_it_only_where_one_stands_that_is_not(void **state)
{
	static const struct {
		const char *settings, *before, *text;
		bool good;
	} table[] = {
		{CONFIG, NULL, "{}", true},
		{CONFIG, "{}", "{}", true},
		{CONFIG, "a: 1\n", "{}", false},
		{CONFIG, "a: 1\n", "# a: 1\n{}\n", false},
		{CONFIG, "a: 1\n", "a: null\n", true},
		{CONFIG "    guard: {allow_empty: true}\n", "a: 1\n", "{}", true},
	};
	struct court c;

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		begin(&c, table[i].settings);
		if (table[i].before)
			stands(&c, table[i].before);
		add(&c, "yaml", table[i].text);
		submit(&c);
		if (table[i].good)
			assert_accepted(&c);
		else
			assert_refused(&c, CHECK_GUARD,
				"the document is empty, and the current one is not");
		c.the_case.forced = true;
		assert_accepted(&c);
		end(&c);
	}
}

static void guard__of_shrinking__allows_exactly_so_much(void **state)
{
	static const struct {
		const char *settings;
		size_t before, bytes;
		bool good;
	} table[] = {
		{CONFIG, 1000000, 1, true}, /* 100 %: as much as it likes */
		{CONFIG "    guard: {max_shrink: 50%}\n", 100, 50, true},
		{CONFIG "    guard: {max_shrink: 50%}\n", 100, 49, false},
		{CONFIG "    guard: {max_shrink: 50%}\n", 101, 50, false},
		{CONFIG "    guard: {max_shrink: 50%}\n", 101, 51, true},
		{CONFIG "    guard: {max_shrink: 50%}\n", 100, 1000, true},
		{CONFIG "    guard: {max_shrink: 50%}\n", 0, 1, true}, /* nothing stands */
		{CONFIG "    guard: {max_shrink: 0%}\n", 100, 100, true},
		{CONFIG "    guard: {max_shrink: 0%}\n", 100, 99, false},
		{CONFIG "    guard: {max_shrink: 99%}\n", 100, 1, true},
		{CONFIG "    guard: {max_shrink: 99%}\n", 101, 1, false},
	};
	struct court c;

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		begin(&c, table[i].settings);
		add(&c, "yaml", "a: 1\n");
		submit(&c);
		c.the_case.bytes = table[i].bytes;
		c.the_case.before_bytes = table[i].before;
		if (table[i].good)
			assert_accepted(&c);
		else
			assert_refused(&c, CHECK_GUARD, "it shrank from 10");
		c.the_case.forced = true;
		assert_accepted(&c);
		end(&c);
	}
	begin(&c, CONFIG "    guard: {max_shrink: 20%}\n");
	add(&c, "yaml", "a: 1\n");
	submit(&c);
	c.the_case.bytes = 3;
	c.the_case.before_bytes = 10;
	assert_refused(&c, CHECK_GUARD, "it shrank from 10 to 3 bytes, more than max_shrink 20%");
	end(&c);
}

static void guard__of_required_keys__names_the_one_that_is_not_there(void **state)
{
	static const struct {
		const char *text, *sentence;
	} table[] = {
		{"db: {host: x}\nlist: [a]\n'd.t': 1\n", NULL},
		{"db: {host: {}}\nlist: [[]]\n'd.t': ''\n", NULL}, /* empty ones are values */
		{"db: {host: false}\nlist: [0]\n'd.t': 1\n", NULL},
		{"db: {host: null}\nlist: [a]\n'd.t': 1\n", "the required key db.host is null"},
		{"db: {}\nlist: [a]\n'd.t': 1\n", "the required key db.host is not there"},
		{"db.host: x\nlist: [a]\n'd.t': 1\n", "the required key db.host is not there"},
		{"db: x\nlist: [a]\n'd.t': 1\n", "the required key db.host is not there"},
		{"db: {host: x}\nlist: []\n'd.t': 1\n", "the required key list.0 is not there"},
		{"db: {host: x}\nlist: [a]\nd: {t: 1}\n", "the required key d\\.t is not there"},
		{"{}", "the required key db.host is not there"},
	};
	struct court c;

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		begin(&c, CONFIG "    guard: {require: [db.host, list.0, 'd\\.t']}\n");
		add(&c, "yaml", table[i].text);
		submit(&c);
		if (table[i].sentence)
			assert_refused(&c, CHECK_GUARD, table[i].sentence);
		else
			assert_accepted(&c);
		c.the_case.forced = true;
		assert_accepted(&c);
		end(&c);
	}
}

static void guard__of_changes__counts_keys_that_are_changed_added_or_removed(void **state)
{
	static const struct {
		const char *before, *text;
		bool good;
	} table[] = {
		{NULL, "a: 1\nb: 2\nc: 3\n", true}, /* nothing stands */
		{"a: 1\nb: 2\nc: 3\n", "a: 1\nb: 2\nc: 3\n", true},
		{"a: 1\nb: 2\nc: 3\n", "c: 3\nb: 2\na: 1\n", true},
		{"a: 1\nb: 2\nc: 3\n", "a: 9\nb: 9\nc: 3\n", true},
		{"a: 1\nb: 2\nc: 3\n", "a: 9\nb: 9\nc: 9\n", false},
		{"a: 1\nb: 2\nc: 3\n", "a: 9\nb: 2\nd: 4\n", false},
		{"a: 1\nb: 2\nc: 3\n", "c: 3\n", true},
		{"a: 1\n", "a: 1\nm: {b: 2, c: 3}\n", true},
		{"a: 1\n", "a: 1\nm: {b: 2, c: 3, d: 4}\n", false},
	};
	struct court c;

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		begin(&c, CONFIG "    guard: {max_changes: 2}\n");
		if (table[i].before)
			stands(&c, table[i].before);
		add(&c, "yaml", table[i].text);
		submit(&c);
		if (table[i].good)
			assert_accepted(&c);
		else
			assert_refused(
				&c, CHECK_GUARD, "3 keys would change, more than max_changes 2");
		c.the_case.forced = true;
		assert_accepted(&c);
		end(&c);
	}
}

static void guard__of_bytes__looks_at_their_size_only(void **state)
{
	struct court c;

	(void)state;
	begin(&c, CONFIG "    type: bytes\n    guard: {max_shrink: 50%}\n");
	add(&c, "bytes", "xxxxx");
	submit(&c);
	c.the_case.before_bytes = 10;
	assert_accepted(&c);
	c.the_case.before_bytes = 11;
	assert_refused(&c, CHECK_GUARD, "from 11 to 5 bytes");
	end(&c);
}

/* ---- schema ---- */

static char dir[SCRATCH_PATH];

static int dir_open(void **state)
{
	(void)state;
	scratch_open(dir, scratch_memory());
	return 0;
}

static int dir_close(void **state)
{
	(void)state;
	scratch_close(dir);
	return 0;
}

static void begin_schema(struct court *c, const char *name)
{
	char settings[1024];

	snprintf(settings, sizeof(settings), CONFIG "    schema: %.300s/%s\n", dir, name);
	begin(c, settings);
}

static void write_schema(const char *name, const char *text)
{
	scratch_write(dir, name, text, strlen(text));
}

static const char *ready(struct court *c)
{
	char why[FILE_WHY] = "";
	const char *note = NULL;

	if (verify_ready(c->checks, &note, why))
		fail_msg("%s", why);
	assert_non_null(note);
	return note;
}

static void schema__of_either_kind__is_held_against_the_document(void **state)
{
	struct court c;

	(void)state;
	write_schema("s.json", "{\"properties\": {\"port\": {\"type\": \"integer\"},"
			       " \"host\": {\"type\": \"string\"}}, \"required\": [\"port\"]}");
	write_schema("s.yaml", "properties: {port: {type: integer}, host: {type: string}}\n"
			       "required: [port]\n");
	for (int yaml = 0; yaml < 2; yaml++) {
		begin_schema(&c, yaml ? "s.yaml" : "s.json");
		add(&c, "yaml", "host: 5\nport: x\n");
		submit(&c);
		assert_accepted(&c); /* nobody has read it yet */
		assert_string_equal(ready(&c), "");
		assert_refused(&c, CHECK_SCHEMA, "line 1, column 7: /host: ");
		assert_non_null(strstr(c.judgement.why, "\nline 2, column 7: /port: "));
		assert_int_not_equal(c.judgement.why[strlen(c.judgement.why) - 1], '\n');
		c.the_case.forced = true; /* that is about the guard only */
		assert_refused(&c, CHECK_SCHEMA, "/host");
		end(&c);
		begin_schema(&c, yaml ? "s.yaml" : "s.json");
		add(&c, "json", "{\"port\": 1}");
		submit(&c);
		ready(&c);
		assert_accepted(&c);
		end(&c);
	}
}

static void schema__that_changes__is_read_again_and_is_another_rule(void **state)
{
	char first[DIGEST_HEX], before[DIGEST_HEX];
	struct court c;

	(void)state;
	write_schema("s.json", "{\"required\": [\"a\"]}");
	begin_schema(&c, "s.json");
	add(&c, "yaml", "a: 1\n");
	submit(&c);
	snprintf(before, sizeof(before), "%s", verify_id(c.checks));
	ready(&c);
	snprintf(first, sizeof(first), "%s", verify_id(c.checks));
	assert_string_not_equal(first, before);
	assert_accepted(&c);
	write_schema("s.json", "{\"required\": [\"b\"], \"tpye\": 1}");
	assert_accepted(&c); /* until it is read */
	assert_string_equal(ready(&c), "\"tpye\"");
	assert_string_equal(ready(&c), ""); /* told once */
	assert_string_not_equal(verify_id(c.checks), first);
	assert_refused(&c, CHECK_SCHEMA, "b");
	write_schema("s.json", "{\"required\": [\"a\"]}");
	ready(&c);
	assert_string_equal(verify_id(c.checks), first);
	assert_accepted(&c);
	end(&c);
}

static void schema__with_a_directory__refers_to_its_files(void **state)
{
	char settings[1024], why[FILE_WHY], first[DIGEST_HEX], name[PATH_MAX];
	const char *note;
	struct court c;

	(void)state;
	snprintf(name, sizeof(name), "%s/schemas", dir);
	assert_int_equal(mkdir(name, 0755), 0);
	write_schema(
		"s.json", "{\"$id\": \"https://h/s/s.json\", \"$ref\": \"defs.yaml#/$defs/db\"}");
	write_schema("schemas/defs.yaml", "$defs: {db: {required: [a]}}\n");
	write_schema("schemas/README.txt", "no schema at all: {");
	write_schema("schemas/.hidden.json", "{");
	snprintf(settings, sizeof(settings),
		CONFIG "    schema: %.300s/s.json\n    schema_dir: %.300s/schemas\n", dir, dir);
	begin(&c, settings);
	add(&c, "yaml", "a: 1\n");
	submit(&c);
	ready(&c);
	snprintf(first, sizeof(first), "%s", verify_id(c.checks));
	assert_accepted(&c);
	write_schema("schemas/defs.yaml", "$defs: {db: {required: [b]}}\n");
	ready(&c);
	assert_string_not_equal(verify_id(c.checks), first);
	assert_refused(&c, CHECK_SCHEMA, "b");
	write_schema("schemas/defs.yaml", "$defs: {db: {required: [a]}}\n");
	ready(&c);
	assert_string_equal(verify_id(c.checks), first);
	/* another file is another rule; one that is no document is told, wherever references lead
	 */
	write_schema("schemas/z.json", "{}");
	ready(&c);
	assert_string_not_equal(verify_id(c.checks), first);
	write_schema("schemas/z.json", "{");
	assert_int_equal(verify_ready(c.checks, &note, why), -EINVAL);
	assert_non_null(strstr(why, "z.json:1:"));
	write_schema("schemas/z.json", "{\"type\": \"nothing\"}"); /* nobody refers to it */
	ready(&c);
	write_schema("schemas/defs.yaml", "$defs: {db: {type: nothing}}\n");
	assert_int_equal(verify_ready(c.checks, &note, why), -EINVAL);
	assert_non_null(strstr(why, "s.json: defs.yaml: line 1, column 20: /$defs/db/type: "));
	for (int i = 0; i < SCHEMA_MAX_FILES; i++) {
		snprintf(name, sizeof(name), "schemas/%d.yml", i);
		write_schema(name, "{}");
	}
	assert_int_equal(verify_ready(c.checks, &note, why), -E2BIG);
	assert_non_null(strstr(why, "more than 64 schemas in a directory"));
	end(&c);
}

static void schema__that_is_bad_or_gone__is_not_the_versions_fault(void **state)
{
	static const struct {
		const char *text, *sentence;
		int error;
	} table[] = {
		{"{", "s.json:", -EINVAL},
		{"", "s.json:1:1: the schema cannot be read: the document is empty", -EINVAL},
		{"{\"type\": \"nothing\"}", "/type", -EINVAL},
		{NULL, "cannot read the schema ", -ENOENT},
	};
	char first[DIGEST_HEX], why[FILE_WHY], path[PATH_MAX];
	const char *note;
	struct court c;

	(void)state;
	snprintf(path, sizeof(path), "%s/s.json", dir);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		write_schema("s.json", "{\"required\": [\"a\"]}");
		begin_schema(&c, "s.json");
		add(&c, "yaml", "a: 1\n");
		submit(&c);
		ready(&c);
		snprintf(first, sizeof(first), "%s", verify_id(c.checks));
		if (table[i].text)
			write_schema("s.json", table[i].text);
		else
			assert_int_equal(unlink(path), 0);
		for (int again = 0; again < 2; again++) {
			why[0] = '\0';
			assert_int_equal(verify_ready(c.checks, &note, why), table[i].error);
			if (!strstr(why, table[i].sentence))
				fail_msg("%s", why);
		}
		write_schema("s.json", "{\"required\": [\"a\"]}");
		ready(&c);
		assert_string_equal(verify_id(c.checks), first);
		assert_accepted(&c);
		end(&c);
	}
	begin_schema(&c, "none.json"); /* never there */
	assert_int_equal(verify_ready(c.checks, &note, why), -ENOENT);
	assert_non_null(strstr(why, "none.json: No such file"));
	end(&c);
}

static void schema__that_takes_too_long__refuses(void **state)
{
	char text[256];
	struct court c;

	(void)state;
	write_schema("s.json", "{\"properties\": {\"a\": {\"pattern\": \"^(a+)+$\"}}}");
	begin_schema(&c, "s.json");
	snprintf(text, sizeof(text), "a: %.200sb\n",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
	add(&c, "yaml", text);
	submit(&c);
	ready(&c);
	assert_refused(&c, CHECK_SCHEMA, "/a");
	end(&c);
}

/* ---- who is asked, and in which order ---- */

static void level__decides_who_is_asked(void **state)
{
	char settings[1024];
	struct court c;

	(void)state;
	write_schema("s.json", "{\"required\": [\"x\"]}");
	snprintf(settings, sizeof(settings),
		VERIFIED "    guard: {require: [y]}\n    schema: %.300s/s.json\n", dir);
	begin(&c, settings);
	add(&c, "yaml", golden("document.yaml"));
	add(&c, "minisig", golden("other.minisig"));
	submit(&c);
	ready(&c);
	c.pieces[0].mismatch = "SHA-256 is another";
	assert_refused(&c, CHECK_DIGEST, "");
	c.pieces[0].mismatch = "";
	assert_refused(&c, CHECK_SIGNATURE, "");
	c.the_case.level = VERIFY_RECOMPOSED;
	assert_refused(&c, CHECK_SCHEMA, "");
	c.the_case.level = VERIFY_TRUSTED;
	assert_accepted(&c);
	assert_true(c.judgement.expires_ms == INT64_MAX);
	end(&c);
	begin(&c, settings);
	add(&c, "yaml", golden("document.yaml"));
	add(&c, "minisig", golden("rev.minisig"));
	submit(&c);
	ready(&c);
	assert_refused(&c, CHECK_GUARD, "the required key y");
	c.the_case.forced = true;
	assert_refused(&c, CHECK_SCHEMA, "x");
	end(&c);
}

static void level__of_what_was_accepted_before__tells_its_expiry_and_refuses_it_never(void **state)
{
	static const enum verify_level levels[] = {VERIFY_TRUSTED, VERIFY_RECOMPOSED};
	struct court c;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		begin_signed(&c, "rev.minisig");
		c.the_case.level = levels[i];
		c.the_case.wall_ms = YEAR_END + 1;
		c.revs[0] = 9;
		assert_accepted(&c);
		assert_true(c.judgement.expires_ms == YEAR_END);
		assert_true(c.judgement.revs[0] == 0);
		assert_string_equal(c.judgement.unsigned_why, "");
		end(&c);
		begin_signed(&c, "other.minisig"); /* by a key that was revoked since */
		c.the_case.level = levels[i];
		assert_accepted(&c);
		assert_non_null(strstr(c.judgement.unsigned_why,
			"/web.yaml: the signature by the key E03D00253CEDDF88 is not by one of"));
		end(&c);
		/* accepted when no signature was asked for */
		begin(&c, VERIFIED);
		add(&c, "yaml", "a: 1\n");
		submit(&c);
		c.the_case.level = levels[i];
		assert_accepted(&c);
		assert_true(c.judgement.expires_ms == INT64_MAX);
		end(&c);
	}
}

static void expiry__of_what_was_accepted_before__is_the_first_of_all_layers(void **state)
{
	struct signer signer;
	struct court c;
	char settings[2048];

	(void)state;
	signer_init(&signer, 7);
	snprintf(settings, sizeof(settings), "%s    verify: {bind: none, public_keys: [%s, %s]}\n",
		TWO_LAYERS, KEY, signer.text);
	for (int last = 0; last < 2; last++) {
		begin(&c, settings);
		add(&c, "yaml", last ? "a: 1\n" : golden("document.yaml"));
		add(&c, "minisig",
			last ? sign(&signer, "a: 1\n", "expires=2000000000")
			     : golden("rev.minisig"));
		add(&c, "yaml", last ? golden("document.yaml") : "a: 1\n");
		add(&c, "minisig",
			last ? golden("rev.minisig")
			     : sign(&signer, "a: 1\n", "expires=2000000000"));
		submit(&c);
		for (int level = VERIFY_TRUSTED; level <= VERIFY_NEW; level++) {
			c.the_case.level = (enum verify_level)level;
			assert_accepted(&c);
			assert_true(c.judgement.expires_ms == YEAR_END);
		}
		c.pieces[3].signature = false; /* parts of another life: of no signature */
		c.the_case.level = VERIFY_TRUSTED;
		assert_accepted(&c);
		assert_true((c.judgement.expires_ms == YEAR_END) == !last);
		end(&c);
	}
	signer_fini(&signer);
}

static int verify_anew(struct court *c)
{
	struct verify *v = verify_new(&sys_real, c->settings->configs[0]);
	const char *note;
	char why[FILE_WHY];
	int r = v ? verify_ready(v, &note, why) : -ENOMEM;

	if (r == 0)
		r = verify_try(v, &c->the_case, &c->judgement);
	verify_free(v);
	return r;
}

/* Signed, with a schema and a guard. */
static void all__with_each_allocation_failing__is_no_verdict(void **state)
{
	char settings[1024];
	struct court c;
	int r;

	(void)state;
	write_schema("of-memory.json", "{\"type\": \"object\", \"maxProperties\": 100}");
	snprintf(settings, sizeof(settings),
		VERIFIED "    guard: {max_changes: 100}\n    schema: %.300s/of-memory.json\n", dir);
	begin(&c, settings);
	add(&c, "yaml", golden("document.yaml"));
	add(&c, "minisig", golden("rev.minisig"));
	stands(&c, "a: 1\n");
	submit(&c);
	assert_int_equal(verify_anew(&c), 0);
	fault_memory.seen = 0;
	for (unsigned n = 1; fault_memory.seen >= n - 1; n++) {
		fault_memory.seen = 0;
		fault_memory.nth = n;
		r = verify_anew(&c);
		fault_memory.nth = 0;
		if (r && r != -ENOMEM)
			fail_msg("%u: %d %s", n, r, c.judgement.why);
		assert_in_range(n, 1, 5000);
	}
	end(&c);
}

static void names__of_the_judges__are_those_of_the_documents(void **state)
{
	static const char *const names[CHECK_COUNT] = {
		"syntax", "digest", "signature", "guard", "schema", "format", "size", "check"};

	(void)state;
	for (int i = 0; i < CHECK_COUNT; i++)
		assert_string_equal(verify_check_name((enum verify_check)i), names[i]);
}

/* ---- the rules ---- */

static void id_of(const char *settings, char ret[DIGEST_HEX])
{
	struct court c;

	begin(&c, settings);
	ready(&c);
	snprintf(ret, DIGEST_HEX, "%s", verify_id(c.checks));
	assert_int_equal(strlen(ret), VERIFY_ID - 1);
	end(&c);
}

static void id__is_another_with_each_rule_and_the_same_with_all_else(void **state)
{
	static const char *const rules[] = {
		"",
		"    guard: {max_shrink: 50%}\n",
		"    guard: {max_shrink: 51%}\n",
		"    guard: {max_changes: 50}\n",
		"    guard: {max_changes: 51}\n",
		"    guard: {max_shrink: 30%, max_changes: 40}\n",
		"    guard: {max_shrink: 40%, max_changes: 30}\n",
		"    guard: {allow_empty: true}\n",
		"    guard: {require: [a]}\n",
		"    guard: {require: [b]}\n",
		"    guard: {require: [a, b]}\n",
		"    guard: {require: [ab]}\n",
		"    verify: {public_key: " KEY "}\n",
		"    verify: {public_key: RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3}"
		"\n",
		"    format: yaml\n",
		"    format: json\n",
		"    format: env\n",
		"    format: properties\n",
		"    format: {run: [/bin/a]}\n",
		"    format: {run: [/bin/a, b]}\n",
		"    check: [/bin/a, \"{path}\"]\n",
		"    check: {run: [/bin/a, \"{path}\"], timeout: 7s}\n",
		"    check: {run: [/bin/a, \"{path}\"], timeout: 8s}\n",
		"    format: {run: [/bin/a], timeout: 7s}\n",
		"    check: [/bin/a, \"{path}\", x]\n",
		"    check: [/bin/b, \"{path}\"]\n",
		"    mask: [a]\n",
		"    mask: [a, b]\n",
		"    type: yaml\n",
		"    type: json\n",
	};
	static const char *const same[] = {
		"    interval: 1m\n", "    timeout: 1m\n", "    mode: \"0600\"\n",
		"    topic: other\n", "    history: 3\n", "    drift: leave\n",
		"    durability: strict\n", "    reload: {run: [/bin/a]}\n",
		"    probe: {run: [/bin/a]}\n",
		"    guard: {max_shrink: 100%, allow_empty: false}\n", /* as without */
	};
	char ids[sizeof(rules) / sizeof(rules[0])][DIGEST_HEX], id[DIGEST_HEX];
	char settings[1024];

	(void)state;
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		snprintf(settings, sizeof(settings), CONFIG "%s", rules[i]);
		id_of(settings, ids[i]);
		for (size_t k = 0; k < i; k++)
			if (strcmp(ids[i], ids[k]) == 0)
				fail_msg("%s%s", rules[i], rules[k]);
		id_of(settings, id); /* and it stays the same */
		assert_string_equal(id, ids[i]);
	}
	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
		snprintf(settings, sizeof(settings), CONFIG "%s", same[i]);
		id_of(settings, id);
		if (strcmp(id, ids[0]) != 0)
			fail_msg("%s", same[i]);
	}
}

static void id__with_a_schema__is_about_its_text_and_not_its_name(void **state)
{
	char settings[1024], first[DIGEST_HEX], id[DIGEST_HEX];

	(void)state;
	write_schema("a.json", "{}");
	write_schema("b.json", "{}");
	write_schema("c.json", "{} ");
	snprintf(settings, sizeof(settings), CONFIG "    schema: %.300s/a.json\n", dir);
	id_of(settings, first);
	id_of(CONFIG, id);
	assert_string_not_equal(id, first);
	snprintf(settings, sizeof(settings), CONFIG "    schema: %.300s/b.json\n", dir);
	id_of(settings, id);
	assert_string_equal(id, first);
	snprintf(settings, sizeof(settings), CONFIG "    schema: %.300s/c.json\n", dir);
	id_of(settings, id);
	assert_string_not_equal(id, first);
}

#define IN_DIR(name) cmocka_unit_test_setup_teardown(name, dir_open, dir_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(digest__of_any_part__is_judged),
		cmocka_unit_test(signature__of_a_listed_key__is_good_and_its_facts_are_told),
		cmocka_unit_test(signature__that_is_missing_or_of_others__is_refused),
		cmocka_unit_test(signature__with_an_older_rev__is_refused),
		cmocka_unit_test(signature__that_has_expired__is_refused_from_that_moment_on),
		cmocka_unit_test(signature__of_several_layers__is_asked_of_each_that_is_there),
		cmocka_unit_test(signature__that_is_for_something_else__is_refused),
		cmocka_unit_test(signature__of_what_is_taken_instead__may_name_either_path),
		cmocka_unit_test(signature__that_nobody_asks_for__is_not_looked_at),
		cmocka_unit_test(
			guard__of_an_empty_document__refuses_it_only_where_one_stands_that_is_not),
		cmocka_unit_test(guard__of_shrinking__allows_exactly_so_much),
		cmocka_unit_test(guard__of_required_keys__names_the_one_that_is_not_there),
		cmocka_unit_test(guard__of_changes__counts_keys_that_are_changed_added_or_removed),
		cmocka_unit_test(guard__of_bytes__looks_at_their_size_only),
		IN_DIR(schema__of_either_kind__is_held_against_the_document),
		IN_DIR(schema__that_changes__is_read_again_and_is_another_rule),
		IN_DIR(schema__with_a_directory__refers_to_its_files),
		IN_DIR(schema__that_is_bad_or_gone__is_not_the_versions_fault),
		IN_DIR(schema__that_takes_too_long__refuses),
		IN_DIR(level__decides_who_is_asked),
		cmocka_unit_test(
			level__of_what_was_accepted_before__tells_its_expiry_and_refuses_it_never),
		cmocka_unit_test(names__of_the_judges__are_those_of_the_documents),
		cmocka_unit_test(id__is_another_with_each_rule_and_the_same_with_all_else),
		IN_DIR(id__with_a_schema__is_about_its_text_and_not_its_name),
		cmocka_unit_test(expiry__of_what_was_accepted_before__is_the_first_of_all_layers),
		IN_DIR(all__with_each_allocation_failing__is_no_verdict),
	};

	return fault_memory_run(tests, 1);
}
