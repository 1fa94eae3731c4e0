/* pullet_decode(): a struct, its defaults, and the errors that name the key. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/unit/fixture/reader_agent.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

struct config {
	const char *name;
	bool debug;
	int port;
	int64_t most, timeout_ms, limit;
	double ratio;
	struct {
		const char *host;
	} db;
};

static const struct pullet_field fields[] = {
	{"name", PULLET_FIELD_STRING, offsetof(struct config, name), true},
	{"debug", PULLET_FIELD_BOOL, offsetof(struct config, debug), false},
	{"port", PULLET_FIELD_INT, offsetof(struct config, port), false},
	{"most", PULLET_FIELD_INT64, offsetof(struct config, most), false},
	{"ratio", PULLET_FIELD_DOUBLE, offsetof(struct config, ratio), false},
	{"timeout", PULLET_FIELD_DURATION_MS, offsetof(struct config, timeout_ms), false},
	{"limit", PULLET_FIELD_SIZE, offsetof(struct config, limit), false},
	{"db.host", PULLET_FIELD_STRING, offsetof(struct config, db.host), false},
};

static const struct config defaults = {"none", true, 80, 7, 5000, 1024, 0.5, {"localhost"}};

struct pair {
	const char *key;
	enum pullet_type type;
	const char *text;
};

/* Writes the pairs, decodes with the prefix. */
static int decode(const struct pair *pairs, const char *prefix, struct config *ret,
	struct pullet_decode_error *ret_error, struct pullet **ret_p)
{
	struct pullet_entry entries[16];
	const char *path = agent_path("decode", ".snap");
	size_t n = 0;

	for (; pairs[n].key; n++) {
		entries[n] = (struct pullet_entry){pairs[n].key, strlen(pairs[n].key),
			{.type = pairs[n].type,
				.len = strlen(pairs[n].text),
				.text = pairs[n].text}};
		if (pairs[n].type == PULLET_BOOL)
			entries[n].value.boolean = strcmp(pairs[n].text, "true") == 0;
		else if (pairs[n].type == PULLET_INT)
			entries[n].value.integer = strtoll(pairs[n].text, NULL, 10);
		else if (pairs[n].type == PULLET_DOUBLE)
			entries[n].value.number = strtod(pairs[n].text, NULL);
	}
	unlink(path);
	assert_int_equal(pullet_write(path, entries, n, NULL), 0);
	assert_int_equal(pullet_open(path, 0, ret_p), 0);
	*ret = defaults;
	return pullet_decode(*ret_p, prefix, fields, COUNT(fields), ret, ret_error);
}

static void decode__all_that_is_there__is_in_the_struct(void **state)
{
	const struct pair pairs[] = {{"a.name", PULLET_STRING, "shop"},
		{"a.debug", PULLET_BOOL, "false"}, {"a.port", PULLET_STRING, "8080"},
		{"a.most", PULLET_INT, "9223372036854775807"}, {"a.ratio", PULLET_INT, "0"},
		{"a.timeout", PULLET_STRING, "0s"}, {"a.limit", PULLET_STRING, "64KiB"},
		{"a.db.host", PULLET_STRING, "db1"}, {NULL, PULLET_NULL, NULL}};
	const struct pair others[] = {{"name", PULLET_STRING, "x"}, {"debug", PULLET_BOOL, "true"},
		{"ratio", PULLET_DOUBLE, "0.25"}, {NULL, PULLET_NULL, NULL}};
	struct pullet *p;
	struct config c;

	(void)state;
	assert_int_equal(decode(pairs, "a.", &c, NULL, &p), 0);
	assert_string_equal(c.name, "shop");
	assert_false(c.debug);
	assert_int_equal(c.port, 8080);
	assert_int_equal(c.most, INT64_MAX);
	assert_true(c.ratio == 0);
	assert_int_equal(c.timeout_ms, 0);
	assert_int_equal(c.limit, 65536);
	assert_string_equal(c.db.host, "db1");
	pullet_close(p);
	assert_int_equal(decode(others, "", &c, NULL, &p), 0);
	assert_true(c.debug && c.ratio == 0.25);
	pullet_close(p);
	assert_int_equal(decode(others, "none.", &c, NULL, &p), -ENOENT);
	pullet_close(p);
}

static void decode__what_is_missing_or_null__is_the_default(void **state)
{
	const struct pair pairs[] = {
		{"name", PULLET_INT, "5"}, {"port", PULLET_NULL, ""}, {NULL, PULLET_NULL, NULL}};
	struct pullet *p;
	struct config c;

	(void)state;
	assert_int_equal(decode(pairs, "", &c, NULL, &p), 0);
	assert_string_equal(c.name, "5");
	assert_int_equal(c.port, 80);
	assert_true(c.debug && c.ratio == 0.5 && c.limit == 1024);
	assert_string_equal(c.db.host, "localhost");
	pullet_close(p);
}

static void decode__what_does_not_fit__names_file_generation_and_key(void **state)
{
	static const struct {
		struct pair pair;
		int error;
		const char *key, *what;
	} table[] = {
		{{"x", PULLET_NULL, ""}, -ENOENT, "name", "name is missing"},
		{{"name", PULLET_NULL, ""}, -ENOENT, "name", "name is null"},
		{{"name", PULLET_LIST, ""}, -EINVAL, "name", "name must be a text, but is a list"},
		{{"debug", PULLET_STRING, "yes"}, -EINVAL, "debug",
			"debug must be true or false, but is a text of another form"},
		{{"port", PULLET_INT, "2147483648"}, -EINVAL, "port",
			"port must be an integer such as 17 that fits int, but is an integer that "
			"does not fit"},
		{{"port", PULLET_INT, "-2147483649"}, -EINVAL, "port",
			"port must be an integer such as 17 that fits int, but is an integer that "
			"does not fit"},
		{{"port", PULLET_DOUBLE, "1.5"}, -EINVAL, "port",
			"port must be an integer such as 17 that fits int, but is a number"},
		{{"most", PULLET_BOOL, "true"}, -EINVAL, "most",
			"most must be an integer such as 17, but is true or false"},
		{{"ratio", PULLET_MAP, ""}, -EINVAL, "ratio",
			"ratio must be a number such as 0.5, but is a mapping"},
		{{"timeout", PULLET_INT, "5"}, -EINVAL, "timeout",
			"timeout must be a duration such as 10s or 1h30m, but is an integer"},
		{{"limit", PULLET_STRING, "1KB"}, -EINVAL, "limit",
			"limit must be a size such as 64KiB, but is a text of another form"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		const struct pair name = {"name", PULLET_STRING, "x"};
		bool of_name = strcmp(table[i].key, "name") == 0;
		const struct pair pairs[] = {table[i].pair, of_name ? (struct pair){0} : name, {0}};
		struct pullet_decode_error e;
		struct config c;
		struct pullet *p;
		char text[1024];

		assert_int_equal(decode(pairs, "", &c, &e, &p), table[i].error);
		snprintf(text, sizeof(text), "%s, generation 1: %s", pullet_path(p), table[i].what);
		assert_string_equal(e.message, text);
		assert_string_equal(e.key, table[i].key);
		pullet_close(p);
	}
}

static void decode__a_scalar_in_place_of_a_nested_struct__is_an_error_once(void **state)
{
	static const struct pullet_field nested[] = {{"dbx.y", PULLET_FIELD_STRING, 0, false},
		{"odd.-1", PULLET_FIELD_STRING, 0, false},
		{"db.host", PULLET_FIELD_STRING, 0, true},
		{"db.port", PULLET_FIELD_STRING, 0, false},
		{"list.0.x", PULLET_FIELD_STRING, 0, false},
		{"null.x", PULLET_FIELD_STRING, 0, false}};
	const struct pair pairs[] = {{"db", PULLET_STRING, "localhost"}, {"list", PULLET_LIST, ""},
		{"null", PULLET_NULL, ""}, {"dbx", PULLET_LIST, ""}, {"odd", PULLET_LIST, ""}, {0}};
	const char *text = "as it was";
	struct pullet_decode_error e;
	struct pullet *p;
	struct config c;

	(void)state;
	(void)decode(pairs, "", &c, NULL, &p);
	assert_int_equal(pullet_decode(p, "", nested, COUNT(nested), &text, &e), -EINVAL);
	assert_string_equal(e.key, "dbx");
	assert_string_equal(strchr(strstr(e.message, "generation"), ':'),
		": dbx must be a mapping, but is a list; odd must be a mapping, but is a list; db "
		"must be "
		"a mapping, but is a text");
	assert_string_equal(text, "as it was");
	assert_int_equal(pullet_decode(p, "db.", nested, COUNT(nested), &text, &e), -EINVAL);
	assert_string_equal(strchr(strstr(e.message, "generation"), ':'),
		": db must be a mapping, but is a text");
	pullet_close(p);
}

static void decode__nothing_is_open__says_that_and_why(void **state)
{
	struct config c = defaults;
	struct pullet_decode_error e;
	struct pullet *p;
	const char *path;

	(void)state;
	path = agent_path("decode", ".snap");
	unlink(path);
	assert_int_equal(pullet_open(path, PULLET_WAIT_FIRST, &p), 0);
	assert_int_equal(pullet_decode(p, "", fields, COUNT(fields), &c, &e), -ENOENT);
	assert_string_equal(e.key, "name");
	assert_non_null(strstr(e.message, ".snap: there is no snapshot at this path"));
	assert_int_equal(pullet_decode(p, "", fields + 1, COUNT(fields) - 1, &c, &e), 0);
	assert_int_equal(c.port, 80);
	pullet_close(p);
	assert_int_equal(pullet_open("none", PULLET_WAIT_FIRST, &p), 0);
	assert_int_equal(pullet_decode(p, "", fields, COUNT(fields), &c, &e), -ENOENT);
	assert_non_null(strstr(e.message, "none.snap: nothing is published under this name"));
	pullet_close(p);
}

static void decode__a_prefix_without_its_dot__is_named(void **state)
{
	const struct pair pairs[] = {
		{"db", PULLET_MAP, ""}, {"db.name", PULLET_STRING, "x"}, {NULL, PULLET_NULL, NULL}};
	struct pullet_decode_error e;
	struct pullet *p;
	struct config c;

	(void)state;
	assert_int_equal(decode(pairs, "db", &c, &e, &p), -ENOENT);
	assert_non_null(strstr(e.message, ": dbname is missing: did you mean the prefix \"db.\"?"));
	pullet_close(p);
}

static void decode__several_mistakes__are_said_at_once_and_the_rest_is_filled(void **state)
{
	const struct pair pairs[] = {{"debug", PULLET_STRING, "yes"}, {"port", PULLET_LIST, ""},
		{"most", PULLET_INT, "3"}, {NULL, PULLET_NULL, NULL}};
	const struct pullet_field twenty[] = {{"a.b.c", PULLET_FIELD_INT, 0, true},
		{"a.b.d", PULLET_FIELD_INT, 0, true}, {"e", PULLET_FIELD_INT, 0, true},
		{"f", PULLET_FIELD_INT, 0, true}, {"g", PULLET_FIELD_INT, 0, true},
		{"h", PULLET_FIELD_INT, 0, true}, {"i", PULLET_FIELD_INT, 0, true},
		{"j", PULLET_FIELD_INT, 0, true}, {"k", PULLET_FIELD_INT, 0, true},
		{"l", PULLET_FIELD_INT, 0, true}};
	struct pullet_decode_error e;
	struct pullet *p;
	struct config c;

	(void)state;
	assert_int_equal(decode(pairs, "", &c, &e, &p), -ENOENT);
	assert_string_equal(e.key, "name");
	assert_non_null(strstr(e.message,
		": name is missing; debug must be true or false, but is a text of another form; "
		"port must be an integer such as 17 that fits int, but is a list"));
	assert_int_equal(c.most, 3);
	assert_int_equal(pullet_decode(p, "", twenty, COUNT(twenty), &c, &e), -ENOENT);
	assert_non_null(strstr(e.message, "; j is missing; and 2 more"));
	pullet_close(p);
}

static void decode__one_that_does_not_fit__counts_those_after_it(void **state)
{
	char key[PULLET_KEY_ROOM];
	const struct pullet_field some[] = {{"first", PULLET_FIELD_INT, 0, true},
		{key, PULLET_FIELD_INT, 0, true}, {key, PULLET_FIELD_INT, 0, true},
		{"last", PULLET_FIELD_INT, 0, true}};
	const struct pair none[] = {{0}};
	struct pullet_decode_error e;
	struct pullet *p;
	struct config c;
	int n;

	(void)state;
	memset(key, 'k', sizeof(key));
	key[PULLET_KEY_ROOM - 1] = '\0';
	(void)decode(none, "", &c, NULL, &p);
	assert_int_equal(pullet_decode(p, "", some, COUNT(some), &n, &e), -ENOENT);
	assert_non_null(strstr(e.message, "kkk is missing; and 2 more"));
	assert_null(strstr(e.message, "last"));
	pullet_close(p);
}

static void decode__a_key_of_nearly_the_name__is_named(void **state)
{
	static const struct {
		const char *there, *meant; /* meant: "" = it is not named */
	} table[] = {{"nmae", "nmae"}, {"nam", "nam"}, {"names", "names"}, {"Name", "Name"},
		{"n_ame", "n_ame"}, {"nume", "nume"}, {"name.x", ""}, {"nom", ""}, {"title", ""},
		{"na.me", ""}, {"port", ""}, {"db.hots", ""}, {"n\tme", ""},
		{"na\x7f"
		 "e",
			""},
		{"na\\.me", ""}};
	struct pullet_decode_error e;
	struct pullet *p;
	struct config c;

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		const struct pair pairs[] = {{table[i].there, PULLET_INT, "5"}, {0}};
		char text[64];

		assert_int_equal(decode(pairs, "", &c, &e, &p), -ENOENT);
		snprintf(text, sizeof(text), ": name is missing%s%s%s",
			table[i].meant[0] ? ": did you mean " : "", table[i].meant,
			table[i].meant[0] ? "?" : "");
		assert_string_equal(strstr(e.message, ": name"), text);
		pullet_close(p);
	}
}

static void decode__a_mapping_of_nearly_the_name__is_named_unless_it_is_known(void **state)
{
	static const struct pullet_field near[] = {{"data.host", PULLET_FIELD_STRING, 0, true},
		{"data.hosts", PULLET_FIELD_STRING, 0, false},
		{"date.x", PULLET_FIELD_INT, 0, false}};
	static const struct {
		const char *there, *prefix, *said;
	} table[] = {{"a.data.hosts", "a.", ": a.data.host is missing"},
		{"a.data.hots", "a.", ": a.data.host is missing: did you mean a.data.hots?"},
		{"a.date", "a.", ": a.data.host is missing"},
		{"a.daat", "a.", ": a.data.host is missing: did you mean a.daat?"},
		{"conf", "cnof.", ": cnof.data.host is missing: did you mean conf?"}};
	struct pullet_decode_error e;
	struct pullet *p;
	struct config c;
	const char *text;

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		const struct pair pairs[] = {{"a", PULLET_MAP, ""}, {"a.data", PULLET_MAP, ""},
			{table[i].there, PULLET_STRING, "x"}, {0}};
		const struct pair bare[] = {
			{"a", PULLET_MAP, ""}, {table[i].there, PULLET_MAP, ""}, {0}};

		(void)decode(
			strncmp(table[i].there, "a.data", 6) == 0 ? pairs : bare, "", &c, NULL, &p);
		assert_int_equal(
			pullet_decode(p, table[i].prefix, near, COUNT(near), &text, &e), -ENOENT);
		assert_string_equal(strchr(strstr(e.message, "generation"), ':'), table[i].said);
		pullet_close(p);
	}
}

static void decode__odd_keys_that_are_missing__are_said_to_be(void **state)
{
	char key[PULLET_KEY_ROOM], there[PULLET_KEY_ROOM];
	const struct pullet_field odd[] = {{"", PULLET_FIELD_INT, 0, true},
		{"a\\.bcd", PULLET_FIELD_INT, 0, true}, {"abc\\", PULLET_FIELD_INT, 0, true}};
	const struct pullet_field one = {key, PULLET_FIELD_INT, 0, true};
	const struct pair pairs[] = {{"a\\.bdc", PULLET_INT, "1"}, {there, PULLET_INT, "1"}, {0}};
	struct pullet_decode_error e;
	struct pullet *p;
	struct config c;
	int n;

	(void)state;
	memset(key, 'k', sizeof(key));
	key[PULLET_KEY_ROOM - 1] = '\0';
	memcpy(there, key, sizeof(key));
	there[PULLET_KEY_ROOM - 2] = 'x';
	(void)decode(pairs, "", &c, NULL, &p);
	assert_int_equal(pullet_decode(p, "", odd, COUNT(odd), &n, &e), -ENOENT);
	assert_non_null(strstr(e.message, ":  is missing; a\\.bcd is missing: did you mean "
					  "a\\.bdc?; abc\\ is missing"));
	assert_int_equal(pullet_decode(p, "", &one, 1, &n, &e), -ENOENT); /* is cut */
	assert_int_equal(strlen(e.message), sizeof(e.message) - 1);
	pullet_close(p);
}

static void decode_strict__keys_that_the_table_has_not__are_named(void **state)
{
	static const struct pullet_field known[] = {{"name", PULLET_FIELD_STRING, 0, true},
		{"db.host", PULLET_FIELD_STRING, 0, false}, {"list", PULLET_FIELD_ANY, 0, false},
		{"a\\.b", PULLET_FIELD_STRING, 0, false},
		{"data.x", PULLET_FIELD_STRING, 0, false}};
	static const struct {
		const char *keys[4], *prefix, *said;
		int result;
	} table[] = {
		{{"name", "db.host", "a\\.b"}, "", "", 0},
		{{"name", "db"}, "", "", -EINVAL}, /* a text: that is said already, and only that */
		{{"name", "list", "list.0", "list.0.x"}, "", "", 0},
		{{"s.name", "other", "s.db.host"}, "s.", "", 0},
		{{"name", "other", "other.x", "other.x.y"}, "", ": other is not known", -EINVAL},
		{{"name", "db.hots"}, "", ": db.hots is not known: did you mean db.host?", -EINVAL},
		{{"name", "db.host", "db.hots"}, "", ": db.hots is not known", -EINVAL},
		{{"name", "daat"}, "", ": daat is not known: did you mean data?", -EINVAL},
		{{"name", "dbs.host"}, "", ": dbs.host is not known", -EINVAL},
		{{"name", "name.x"}, "", "", 0},
		{{"name", "li"}, "", ": li is not known", -EINVAL},
		{{"name", "a.b"}, "", ": a.b is not known", -EINVAL},
		{{"name", "a\\.c"}, "", ": a\\.c is not known: did you mean a\\.b?", -EINVAL},
		{{"s.name", "s.nam"}, "s.", ": s.nam is not known", -EINVAL},
		{{"name", "x\n\x7fy"}, "", ": x??y is not known", -EINVAL},
		{{"nmae"}, "",
			": name is missing: did you mean nmae?; nmae is not known: did you mean "
			"name?",
			-ENOENT},
		{{"name", "one", "two"}, "", ": one is not known; two is not known", -EINVAL},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		struct pair pairs[5] = {{0}};
		struct pullet_decode_error e = {"", ""};
		const char *text = NULL;
		struct pullet *p;
		struct config c;
		int r;

		for (size_t k = 0; k < 4 && table[i].keys[k]; k++)
			pairs[k] = (struct pair){table[i].keys[k], PULLET_STRING, "x"};
		decode(pairs, "", &c, NULL, &p);
		r = pullet_decode_strict(p, table[i].prefix, known, COUNT(known), &text, &e);
		assert_int_equal(r, table[i].result);
		if (table[i].said[0])
			assert_string_equal(strstr(e.message, ": "), table[i].said);
		assert_int_equal(
			pullet_decode_strict(p, table[i].prefix, known, COUNT(known), &text, NULL),
			r);
		pullet_close(p);
	}
}

static void decode_strict__a_key_with_a_nul__is_not_known(void **state)
{
	static const struct pullet_field known[] = {{"a", PULLET_FIELD_STRING, 0, false}};
	const struct pullet_entry odd = {
		"a\0.b", 4, {.type = PULLET_STRING, .len = 1, .text = "x"}};
	const char *path = agent_path("nul", ".snap"), *text = NULL;
	struct pullet_decode_error e;
	struct pullet *p;

	(void)state;
	assert_int_equal(pullet_write(path, &odd, 1, NULL), 0);
	assert_int_equal(pullet_open(path, 0, &p), 0);
	assert_int_equal(pullet_decode_strict(p, "", known, 1, &text, &e), -EINVAL);
	assert_non_null(strstr(e.message, ": a is not known"));
	pullet_close(p);
}

static void decode__a_key_that_is_too_long__is_refused(void **state)
{
	const struct pair none[] = {{0}};
	char prefix[PULLET_KEY_ROOM];
	struct pullet_decode_error e;
	struct pullet *p;
	struct config c;

	(void)state;
	memset(prefix, 'p', sizeof(prefix));
	prefix[sizeof(prefix) - 1] = '\0';
	assert_int_equal(decode(none, prefix, &c, &e, &p), -EINVAL);
	assert_non_null(strstr(e.message, "is too long a key"));
	pullet_close(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decode__all_that_is_there__is_in_the_struct),
		cmocka_unit_test(decode__what_is_missing_or_null__is_the_default),
		cmocka_unit_test(decode__what_does_not_fit__names_file_generation_and_key),
		cmocka_unit_test(decode__a_scalar_in_place_of_a_nested_struct__is_an_error_once),
		cmocka_unit_test(decode__nothing_is_open__says_that_and_why),
		cmocka_unit_test(decode__a_prefix_without_its_dot__is_named),
		cmocka_unit_test(decode__several_mistakes__are_said_at_once_and_the_rest_is_filled),
		cmocka_unit_test(decode__one_that_does_not_fit__counts_those_after_it),
		cmocka_unit_test(decode__a_key_of_nearly_the_name__is_named),
		cmocka_unit_test(decode__a_mapping_of_nearly_the_name__is_named_unless_it_is_known),
		cmocka_unit_test(decode__odd_keys_that_are_missing__are_said_to_be),
		cmocka_unit_test(decode_strict__keys_that_the_table_has_not__are_named),
		cmocka_unit_test(decode_strict__a_key_with_a_nul__is_not_known),
		cmocka_unit_test(decode__a_key_that_is_too_long__is_refused),
	};

	return cmocka_run_group_tests(tests, agent_make_dir, agent_remove_dir);
}
