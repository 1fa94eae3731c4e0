/* `pullet keygen` and `pullet sign`: files, rights, and what agents then accept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/common/cli.h"
#include "crypto/curve_keys.h"
#include "crypto/minisign_secret.h"
#include "tests/unit/fixture/command.h"

static char key[SCRATCH_PATH + 16], document[SCRATCH_PATH + 16], password[SCRATCH_PATH + 16],
	public_key[256], signature[8192];

static int set_up(void **state)
{
	(void)state;
	alarm(30);
	played_open();
	played_stop();
	snprintf(key, sizeof(key), "%s/key", played.dir);
	snprintf(document, sizeof(document), "%s/web.yaml", played.dir);
	snprintf(password, sizeof(password), "%s/password", played.dir);
	scratch_write(played.dir, "web.yaml", "port: 1\n", 8);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	played_close();
	return 0;
}

static const char *in_dir(const char *name)
{
	static char path[SCRATCH_PATH + 64];

	snprintf(path, sizeof(path), "%s/%s", played.dir, name);
	return path;
}

static void make_key(void)
{
	RUN(cli_keygen, "pullet keygen", "--sign", key);
	assert_int_equal(command.code, CLI_OK);
	snprintf(public_key, sizeof(public_key), "%.200s", command.out);
	public_key[strcspn(public_key, "\n")] = '\0';
}

/* Verifies a signature as an agent does. */
static struct minisign_facts verify(const char *name)
{
	char *keys[] = {public_key, NULL};
	struct minisign_facts facts;
	char why[FILE_WHY] = "";
	size_t len = 0;

	assert_true(scratch_read(played.dir, name, signature, sizeof(signature), &len));
	if (minisign_verify(keys, "port: 1\n", 8, signature, len, &facts, why))
		fail_msg("%s", why);
	return facts;
}

/* ---- keygen ---- */

static void keygen__makes_a_pair_that_only_its_owner_reads(void **state)
{
	char text[256];
	struct stat st;

	(void)state;
	RUN(cli_keygen, "pullet keygen", key);
	assert_int_equal(command.code, CLI_OK);
	snprintf(text, sizeof(text),
		"pullet keygen: the secret key is in %.60s, the public key, shown here, in "
		"%.60s.pub\n",
		key, key);
	assert_string_equal(command.err, text);
	assert_int_equal(stat(key, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	command.out[strcspn(command.out, "\n")] = '\0';
	assert_null(curve_check_key(command.out));
	assert_true(scratch_read(played.dir, "key.pub", text, sizeof(text), NULL));
	assert_shows(text, command.out);
}

static void keygen__never_overwrites(void **state)
{
	char before[256], after[256];

	(void)state;
	RUN(cli_keygen, "pullet keygen", key);
	assert_true(scratch_read(played.dir, "key", before, sizeof(before), NULL));
	assert_int_equal(RUN(cli_keygen, "pullet keygen", key), CLI_FAILED);
	assert_int_equal(RUN(cli_keygen, "pullet keygen", "--sign", key), CLI_FAILED);
	assert_true(scratch_read(played.dir, "key", after, sizeof(after), NULL));
	assert_string_equal(before, after);
	assert_int_equal(RUN(cli_keygen, "pullet keygen", "/nowhere/at/all"), CLI_FAILED);
}

static void keygen__misused__says_how(void **state)
{
	(void)state;
	assert_int_equal(RUN(cli_keygen, "pullet keygen"), CLI_USAGE);
	assert_shows(command.err, "name one file for the secret key");
	assert_int_equal(RUN(cli_keygen, "pullet keygen", key, "--password-file", "x"), CLI_USAGE);
	assert_shows(command.err, "--password-file goes with --sign");
}

/* The number of a key and the key itself, which its public text has one after the other. */
static void keygen__again__makes_another_key(void **state)
{
	char made[3][256];
	const char *const names[] = {"a", "b", "c"};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		RUN(cli_keygen, "pullet keygen", "--sign", in_dir(names[i]));
		assert_int_equal(command.code, CLI_OK);
		snprintf(made[i], sizeof(made[i]), "%.200s", command.out);
		for (size_t k = 0; k < i; k++) {
			assert_memory_not_equal(made[k] + 3, made[i] + 3, 10);
			assert_memory_not_equal(made[k] + 14, made[i] + 14, 42);
		}
	}
}

/* ---- sign ---- */

static void sign__names_the_path_and_a_number_that_grows(void **state)
{
	struct minisign_facts first, second;

	(void)state;
	make_key();
	RUN(cli_sign, "pullet sign", document, "-s", key);
	assert_int_equal(command.code, CLI_OK);
	assert_shows(command.out, "web.yaml.minisig: rev=");
	first = verify("web.yaml.minisig");
	assert_string_equal(first.path, "/web.yaml");
	assert_string_equal(first.config, "");
	RUN(cli_sign, "pullet sign", document, "-s", key);
	second = verify("web.yaml.minisig");
	assert_true(second.rev == first.rev + 1);
}

/* A present signature says nothing of the number, where another key made it, or none did. */
static void sign__over_what_is_no_signature_of_the_key__takes_the_time(void **state)
{
	static char large[5000];
	uint64_t before, rev;

	(void)state;
	make_key();
	RUN(cli_sign, "pullet sign", document, "-s", key, "--rev", "7");
	unlink(key);
	unlink(in_dir("key.pub"));
	make_key();
	for (int i = 0; i < 3; i++) {
		before = (uint64_t)sys_real.wall_ms() / 1000;
		RUN(cli_sign, "pullet sign", document, "-s", key);
		assert_int_equal(command.code, CLI_OK);
		rev = verify("web.yaml.minisig").rev;
		assert_in_range(rev, before, (uint64_t)sys_real.wall_ms() / 1000);
		scratch_write(played.dir, "web.yaml.minisig", large, i ? sizeof(large) : 10);
	}
}

static void sign__with_a_lower_number__is_refused_and_writes_nothing(void **state)
{
	char expected[1024];

	(void)state;
	make_key();
	RUN(cli_sign, "pullet sign", document, "-s", key, "--rev", "7");
	assert_int_equal(command.code, CLI_OK);
	RUN(cli_sign, "pullet sign", document, "-s", key, "--rev", "6");
	snprintf(expected, sizeof(expected),
		"pullet sign: %s.minisig has rev=7: agents that accepted that reject rev=6 as an "
		"old version; give a higher one, or leave --rev out. If no agent ever had it, "
		"remove that file first\n",
		document);
	assert_ended(CLI_FAILED, "", expected);
	assert_int_equal(verify("web.yaml.minisig").rev, 7);
	RUN(cli_sign, "pullet sign", document, "-s", key, "--rev", "7"); /* once more */
	assert_int_equal(command.code, CLI_OK);
	RUN(cli_sign, "pullet sign", document, "-s", key);
	assert_int_equal(verify("web.yaml.minisig").rev, 8);
}

static void sign__over_what_it_cannot_read__wants_the_number(void **state)
{
	char expected[1024];
	struct stat st;

	(void)state;
	make_key();
	assert_int_equal(mkdir(in_dir("web.yaml.minisig"), 0700), 0);
	RUN(cli_sign, "pullet sign", document, "-s", key);
	snprintf(expected, sizeof(expected), "pullet sign: %s.minisig cannot be read: ", document);
	assert_int_equal(command.code, CLI_FAILED);
	assert_string_equal(command.out, "");
	assert_int_equal(strncmp(command.err, expected, strlen(expected)), 0);
	assert_shows(command.err, "; set the number with --rev\n");
	assert_ptr_equal(strchr(command.err, '\n') + 1, strchr(command.err, '\0'));
	RUN(cli_sign, "pullet sign", document, "-s", key, "--rev", "1");
	snprintf(expected, sizeof(expected), "pullet sign: cannot write %s.minisig: ", document);
	assert_int_equal(command.code, CLI_FAILED);
	assert_int_equal(strncmp(command.err, expected, strlen(expected)), 0);
	RUN(cli_sign, "pullet sign", document, "-s", key, "-o", "/nowhere/at/all", "--rev", "0");
	assert_int_equal(command.code, CLI_FAILED);
	assert_shows(command.err, "pullet sign: cannot write /nowhere/at/all: ");
	RUN(cli_sign, "pullet sign", document, "-s", key, "-o", in_dir("sig"), "--rev", "0");
	assert_int_equal(command.code, CLI_OK);
	assert_int_equal(stat(in_dir("sig"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0644);
}

static void sign__of_what_is_too_large__says_so(void **state)
{
	static char path[PATH_MAX];
	char expected[512];

	(void)state;
	make_key();
	assert_int_equal(truncate(document, (64 << 20) + 1), 0);
	RUN(cli_sign, "pullet sign", document, "-s", key);
	snprintf(expected, sizeof(expected),
		"pullet sign: %s cannot be read: it is larger than 64 MiB\n", document);
	assert_ended(CLI_FAILED, "", expected);
	memset(path, 'x', sizeof(path) - 1);
	RUN(cli_sign, "pullet sign", path, "-s", key);
	assert_int_equal(command.code, CLI_FAILED);
	assert_shows(command.err, "xxx...: the path is too long\n");
}

static void sign__with_names_and_a_number__signs_those(void **state)
{
	struct minisign_facts f;
	char output[SCRATCH_PATH + 16];

	(void)state;
	make_key();
	snprintf(output, sizeof(output), "%s/out", played.dir);
	RUN(cli_sign, "pullet sign", document, "-s", key, "--rev", "041", "--config", "web", "-o",
		output, "--comment", "expires=2096-12-31T00:00:00Z");
	assert_int_equal(command.code, CLI_OK);
	assert_shows(command.out, "/out: rev=41 config=web expires=2096-12-31T00:00:00Z\n");
	f = verify("out");
	assert_true(f.rev == 41);
	assert_string_equal(f.config, "web");
	assert_string_equal(f.path, "");
	RUN(cli_sign, "pullet sign", document, "-s", key, "--path", "/a/b.yaml");
	assert_string_equal(verify("web.yaml.minisig").path, "/a/b.yaml");
	RUN(cli_sign, "pullet sign", document, "-s", key, "--unbound");
	f = verify("web.yaml.minisig");
	assert_string_equal(f.path, "");
}

static void sign__whose_comment_says_something_else__writes_nothing(void **state)
{
	(void)state;
	make_key();
	RUN(cli_sign, "pullet sign", document, "-s", key, "--config", "web", "--comment",
		"path=/other.yaml");
	assert_int_equal(command.code, CLI_FAILED);
	assert_shows(command.err, "web.yaml is not signed: ");
	assert_int_equal(scratch_count(played.dir, "minisig"), 0);
	RUN(cli_sign, "pullet sign", document, "-s", key, "--comment", "a\nb");
	assert_ended(
		CLI_USAGE, "", "pullet sign: a comment is one line without control characters\n");
	assert_int_equal(
		RUN(cli_sign, "pullet sign", document, "-s", key, "--comment", "\x7f"), CLI_USAGE);
	assert_int_equal(
		RUN(cli_sign, "pullet sign", document, "-s", key, "--comment", "a b~"), CLI_OK);
}

static void sign__with_too_long_a_comment__says_what_to_do(void **state)
{
	static char comment[4200];

	(void)state;
	make_key();
	memset(comment, 'x', sizeof(comment) - 1);
	RUN(cli_sign, "pullet sign", document, "-s", key, "--comment", comment);
	assert_int_equal(command.code, CLI_FAILED);
	assert_shows(command.err, "larger than 4 KiB: shorten the comment");
}

/* As another tool may have signed it. */
static void sign_by_hand(const char *comment)
{
	char text[MINISIGN_SECRET_MAX_FILE];
	struct minisign_secret secret;
	const char *why;
	size_t len;

	assert_true(scratch_read(played.dir, "key", text, sizeof(text), &len));
	assert_int_equal(minisign_secret_read(text, len, NULL, &secret, &why), 0);
	assert_int_equal(minisign_secret_sign(&secret, "port: 1\n", 8, comment, signature), 0);
	scratch_write(played.dir, "web.yaml.minisig", signature, strlen(signature));
}

static void sign__after_the_last_number__wants_another_key(void **state)
{
	(void)state;
	make_key();
	sign_by_hand("rev=18446744073709551615 path=/web.yaml");
	RUN(cli_sign, "pullet sign", document, "-s", key);
	assert_int_equal(command.code, CLI_FAILED);
	assert_shows(command.err, "its rev is the last there is: use another key");
}

/* It could be the last version for ever. */
static void sign__with_a_number_that_nothing_could_follow__is_refused(void **state)
{
	static const char *const numbers[] = {
		"9223372036854775808", "18446744073709551615", "18446744073709551616", "-1"};

	(void)state;
	make_key();
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		RUN(cli_sign, "pullet sign", document, "-s", key, "--rev", numbers[i]);
		assert_int_equal(command.code, CLI_USAGE);
		assert_shows(command.err,
			"--rev takes a number from 0 to 9223372036854775807, behind which newer "
			"versions have room, not '");
	}
	RUN(cli_sign, "pullet sign", document, "-s", key, "--rev", "9223372036854775807");
	assert_int_equal(command.code, CLI_OK);
	assert_int_equal(RUN(cli_sign, "pullet sign", document, "-s", key), CLI_OK);
	assert_true(verify("web.yaml.minisig").rev == (uint64_t)INT64_MAX + 1);
}

static void sign__of_many__goes_on_behind_one_that_is_not_there(void **state)
{
	(void)state;
	make_key();
	RUN(cli_sign, "pullet sign", "/nowhere/a", document, "-s", key);
	assert_int_equal(command.code, CLI_FAILED);
	assert_shows(command.err, "/nowhere/a cannot be read: ");
	verify("web.yaml.minisig");
}

static void sign__with_a_sealed_key__wants_its_password(void **state)
{
	(void)state;
	scratch_write(played.dir, "password", "correct horse\nnot this", 22);
	RUN(cli_keygen, "pullet keygen", "--sign", key, "--password-file", password);
	assert_int_equal(command.code, CLI_OK);
	snprintf(public_key, sizeof(public_key), "%.200s", command.out);
	public_key[strcspn(public_key, "\n")] = '\0';
	RUN(cli_sign, "pullet sign", document, "-s", key, "--password-file", password);
	assert_int_equal(command.code, CLI_OK);
	verify("web.yaml.minisig");
	assert_int_equal(RUN(cli_sign, "pullet sign", document, "-s", key), CLI_FAILED);
	scratch_write(played.dir, "password", "\n", 1);
	RUN(cli_sign, "pullet sign", document, "-s", key, "--password-file", password);
	assert_int_equal(command.code, CLI_FAILED);
	assert_shows(command.err, "its first line, the password, is empty");
	RUN(cli_keygen, "pullet keygen", "--sign", document, "--password-file", "/nowhere/p");
	assert_int_equal(command.code, CLI_FAILED);
	assert_shows(command.err, "/nowhere/p: cannot read the password");
}

static void sign__without_a_key__names_what_makes_one(void **state)
{
	(void)state;
	RUN(cli_sign, "pullet sign", document, "-s", key);
	assert_int_equal(command.code, CLI_FAILED);
	assert_shows(command.err, "there is no such file: pullet keygen --sign makes one");
}

static void sign__misused__says_how(void **state)
{
	(void)state;
	RUN(cli_sign, "pullet sign", document);
	assert_ended(CLI_USAGE, "",
		"pullet sign: name a file to sign, and a key with -s\n"
		"Usage: pullet sign FILE... -s FILE [--rev N] [--config NAME] [--path PATH | "
		"--unbound]\n"
		"                   [--comment COMMENT] [-o FILE] [--password-file FILE]\n"
		"Try 'pullet sign --help'.\n");
	RUN(cli_sign, "pullet sign", document, "-s", key, "--unbound", "--path", "/x");
	assert_shows(command.err, "--unbound is for no path and no config");
	RUN(cli_sign, "pullet sign", document, document, "-s", key, "-o", "x");
	assert_shows(command.err, "--path and --output are of one document");
	assert_int_equal(command.code, CLI_USAGE);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(keygen__makes_a_pair_that_only_its_owner_reads),
		CASE(keygen__never_overwrites),
		CASE(keygen__again__makes_another_key),
		CASE(keygen__misused__says_how),
		CASE(sign__names_the_path_and_a_number_that_grows),
		CASE(sign__over_what_is_no_signature_of_the_key__takes_the_time),
		CASE(sign__with_a_lower_number__is_refused_and_writes_nothing),
		CASE(sign__over_what_it_cannot_read__wants_the_number),
		CASE(sign__of_what_is_too_large__says_so),
		CASE(sign__with_names_and_a_number__signs_those),
		CASE(sign__whose_comment_says_something_else__writes_nothing),
		CASE(sign__with_too_long_a_comment__says_what_to_do),
		CASE(sign__after_the_last_number__wants_another_key),
		CASE(sign__with_a_number_that_nothing_could_follow__is_refused),
		CASE(sign__of_many__goes_on_behind_one_that_is_not_there),
		CASE(sign__with_a_sealed_key__wants_its_password),
		CASE(sign__without_a_key__names_what_makes_one),
		CASE(sign__misused__says_how),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
