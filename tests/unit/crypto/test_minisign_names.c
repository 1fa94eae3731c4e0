/*
 * What a trusted comment says that its document is for: config= and path=, as they are read, and as
 * they are compared with a demand, each sentence to the letter.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "crypto/minisign.h"
#include "tests/unit/fixture/minisign_signer.h"

#define TEN(text) text text text text text text text text text text
#define SIXTY TEN("0") TEN("1") TEN("2") TEN("3") TEN("4") TEN("5")
#define OF_KEY "the trusted comment by the key 0101010101010101: "
#define NO_CONFIG OF_KEY "config= is not the name of a config"
#define NO_PATH OF_KEY "path= is not a path: a / first, no blank, no control character, no query"

static struct signer signer;

/* Verifies a signature with this trusted comment. */
static int read_facts(const char *comment, struct minisign_facts *ret_facts, char why[FILE_WHY])
{
	const struct signer_job job = {
		.document = "", .comment = comment, .comment_len = strlen(comment)};
	char *keys[] = {signer.text, NULL}, file[SIGNER_FILE];
	size_t len = signer_file(&signer, &job, file);

	why[0] = '\0';
	return minisign_verify(keys, "", 0, file, len, ret_facts, why);
}

static void verify__of_each_name__reads_it_or_says_why_not(void **state)
{
	static const struct {
		const char *comment, *config, *path; /* path NULL: refused, with config */
	} table[] = {
		{"rev=1", "", ""},
		{"Config=a xconfig=b config:c Path=/d path:/e", "", ""},
		{"config=a", "a", ""},
		{"config=Z path=/", "Z", "/"},
		{"\tpath=/a/../%20;b=c&d~\xd0\xb0\t rev=1 config=0.a_B-", "0.a_B-",
			"/a/../%20;b=c&d~\xd0\xb0"},
		{"config=" SIXTY "wxyz", SIXTY "wxyz", ""},
		{"config=", NO_CONFIG, NULL},
		{"config= a", NO_CONFIG, NULL},
		{"config=" SIXTY "vwxyz", NO_CONFIG, NULL},
		{"config=.a", NO_CONFIG, NULL},
		{"config=-a", NO_CONFIG, NULL},
		{"config=_a", NO_CONFIG, NULL},
		{"config=a/b", NO_CONFIG, NULL},
		{"config=a:b", NO_CONFIG, NULL},
		{"config=a@", NO_CONFIG, NULL},
		{"config=a[", NO_CONFIG, NULL},
		{"config=a`", NO_CONFIG, NULL},
		{"config=a{", NO_CONFIG, NULL},
		{"path=", NO_PATH, NULL},
		{"path=a", NO_PATH, NULL},
		{"path=/a?b", NO_PATH, NULL},
		{"path=/a#b", NO_PATH, NULL},
		{"path=/a\x1f", NO_PATH, NULL},
		{"path=/a\x7f", NO_PATH, NULL},
		{"config=a config=a", OF_KEY "config= is given twice", NULL},
		{"path=/ path=/", OF_KEY "path= is given twice", NULL},
	};
	struct minisign_facts f;
	char why[FILE_WHY];

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		int r = read_facts(table[i].comment, &f, why);

		assert_string_equal(r ? why : f.config, table[i].config);
		assert_int_equal(r, table[i].path ? 0 : -EINVAL);
		if (r == 0)
			assert_string_equal(f.path, table[i].path);
	}
}

static void verify__of_a_path_of_1023_bytes__reads_it_and_none_longer(void **state)
{
	char comment[MINISIGN_PATH + 16] = "path=/", why[FILE_WHY];
	struct minisign_facts f;

	(void)state;
	memset(comment + 6, 'x', MINISIGN_PATH - 2);
	assert_int_equal(read_facts(comment, &f, why), 0);
	assert_string_equal(f.path, comment + 5);
	comment[MINISIGN_PATH + 4] = 'x';
	assert_int_equal(read_facts(comment, &f, why), -EINVAL);
	assert_string_equal(why, NO_PATH);
}

#define OTHER "the signature by the key 0101010101010101 is for something else: it says "
#define MISSING "the signature by the key 0101010101010101 does not say what it is for: "
#define SIGNED_FOR ": publish what was signed for it (pullet sign FILE -s KEY --"

static void check__of_names__accepts_them_or_says_how_to_sign(void **state)
{
	static const struct {
		const char *comment;
		struct minisign_demand demand;
		const char *why; /* NULL: accepted */
	} table[] = {
		{"", {"web", "/a", NULL, false, false, false}, NULL},
		{"config=web", {"web", "/a", NULL, true, false, false}, NULL},
		{"path=/a", {"web", "/a?token=x", NULL, false, true, false}, NULL},
		{"path=/", {"web", "", NULL, false, true, false}, NULL},
		{"path=/", {"web", "?token=x", NULL, false, true, false}, NULL},
		{"path=/b", {"web", "/a", "/b", false, true, false}, NULL},
		{"rev=0", {"web", "/a", NULL, false, false, true}, NULL},
		{"config=api path=/b", {"web", "/a", NULL, true, true, true},
			OTHER "config=api, and this is config=web" SIGNED_FOR "config web)"},
		{"config=we", {"web", "/a", NULL, false, false, false},
			OTHER "config=we, and this is config=web" SIGNED_FOR "config web)"},
		{"config=a", {"b", "/a", NULL, false, false, false},
			OTHER "config=a, and this is config=b" SIGNED_FOR "config b)"},
		{"path=/b", {"web", "/a?token=x", NULL, false, false, false},
			OTHER "path=/b, and this is path=/a" SIGNED_FOR "path /a)"},
		{"path=/b", {"web", "/a", "/c", false, false, false},
			OTHER "path=/b, and this is path=/a" SIGNED_FOR "path /a)"},
		{"path=/ab", {"web", "/a", NULL, false, false, false},
			OTHER "path=/ab, and this is path=/a" SIGNED_FOR "path /a)"},
		{"path=/b", {"web", "", NULL, false, false, false},
			OTHER "path=/b, and this is path=/" SIGNED_FOR "path /)"},
		{"path=/\xc3\xa4", {"web", "/a", NULL, false, false, false},
			OTHER "path=(not ASCII), and this is path=/a" SIGNED_FOR "path /a)"},
		{"path=/!~", {"web", "/a", NULL, false, false, false},
			OTHER "path=/!~, and this is path=/a" SIGNED_FOR "path /a)"},
		{"path=/" SIXTY, {"web", "/" SIXTY "/a", NULL, false, false, false},
			OTHER "path=/0000000000111111111122222222223333333333444444444455555555"
			      "5, and this is path=/0000000000111111111122222222223333333333444"
			      "444444455555555"
			      "5" SIGNED_FOR "path /00000000001111111111222222222233333333334444"
			      "44444455555555"
			      "5)"},
		{"path=/a", {"web", "/a", NULL, true, true, false},
			MISSING "config=web is required (verify: bind: config); sign it with "
				"`pullet sign FILE -s KEY --config web`, or minisign -t 'rev=N "
				"config=web'"},
		{"config=web", {"web", "/a?b", NULL, true, true, false},
			MISSING "path=/a is required (verify: bind: path); sign it with `pullet "
				"sign FILE -s KEY --path /a`, or minisign -t 'rev=N path=/a'"},
		{"", {"web", "", NULL, false, true, false},
			MISSING "path=/ is required (verify: bind: path); sign it with `pullet "
				"sign FILE -s KEY --path /`, or minisign -t 'rev=N path=/'"},
		{"config=web", {"web", "/a", NULL, true, false, true},
			"the signature by the key 0101010101010101 has no rev=, which is required "
			"(verify: rev: required): `pullet sign` gives one, minisign with -t "
			"'rev=N'"},
	};
	struct minisign_facts f;
	char why[FILE_WHY];

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		int r = read_facts(table[i].comment, &f, why);

		assert_int_equal(r, 0);
		r = minisign_check(&f, &table[i].demand, why);
		assert_string_equal(why, table[i].why ? table[i].why : "");
		assert_int_equal(r, table[i].why ? -EBADMSG : 0);
	}
}

static int begin(void **state)
{
	(void)state;
	signer_init(&signer, 1);
	return 0;
}

static int end(void **state)
{
	(void)state;
	signer_fini(&signer);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(verify__of_each_name__reads_it_or_says_why_not),
		cmocka_unit_test(verify__of_a_path_of_1023_bytes__reads_it_and_none_longer),
		cmocka_unit_test(check__of_names__accepts_them_or_says_how_to_sign),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
