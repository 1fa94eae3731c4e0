/* `pullet doctor` about certificates and keys of servers, made here with any term. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "cli/common/cli.h"
#include "tests/unit/fixture/command.h"

#define DAY 86400

static char path[SCRATCH_PATH + 64];
static EVP_PKEY *key, *other_key;

static int make_keys(void **state)
{
	(void)state;
	key = EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256");
	other_key = EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256");
	return !key || !other_key;
}

static int free_keys(void **state)
{
	(void)state;
	EVP_PKEY_free(key);
	EVP_PKEY_free(other_key);
	return 0;
}

static int set_up(void **state)
{
	(void)state;
	alarm(30);
	played_open();
	played_stop();
	snprintf(path, sizeof(path), "%s/pullet.yaml", played.dir);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	played_close();
	return 0;
}

static FILE *open_file(const char *name, const char *mode)
{
	char file[SCRATCH_PATH + 64];
	FILE *f;

	snprintf(file, sizeof(file), "%s/%s", played.dir, name);
	f = fopen(file, mode);
	assert_non_null(f);
	return f;
}

/* Adds a certificate that is good from then until then, in seconds from now. */
static void add_certificate(const char *name, long from, long until)
{
	X509 *x = X509_new();
	FILE *f = open_file(name, "ae");

	assert_non_null(x);
	X509_gmtime_adj(X509_getm_notBefore(x), from);
	X509_gmtime_adj(X509_getm_notAfter(x), until);
	assert_int_equal(X509_set_pubkey(x, key), 1);
	assert_true(X509_sign(x, key, EVP_sha256()) > 0);
	assert_int_equal(PEM_write_X509(f, x), 1);
	fclose(f);
	X509_free(x);
}

static void put_key(const char *name, EVP_PKEY *which, const char *passphrase)
{
	FILE *f = open_file(name, "we");

	assert_int_equal(PEM_write_PrivateKey(f, which, passphrase ? EVP_aes_128_cbc() : NULL, NULL,
				 0, NULL, (void *)(uintptr_t)passphrase),
		1);
	fclose(f);
	snprintf(path, sizeof(path), "%s/%s", played.dir, name);
	assert_int_equal(chmod(path, 0600), 0);
	snprintf(path, sizeof(path), "%s/pullet.yaml", played.dir);
}

static void examine(void)
{
	char text[4096];

	snprintf(text, sizeof(text),
		"agent: {state_dir: %s/state, runtime_dir: %s}\nservers:\n"
		"  h: {urls: ['https://127.0.0.1:1'], tls: {ca: %s/ca, cert: %s/cert, key: "
		"%s/key}}\n"
		"configs:\n  web: {from: [{server: h, path: /web.yaml}], snapshot: true}\n",
		played.dir, played.dir, played.dir, played.dir, played.dir);
	scratch_write(played.dir, "pullet.yaml", text, strlen(text));
	RUN(cli_doctor, "pullet doctor", "-c", path, "--timeout", "2s");
}

static void certificates__that_are_good__say_until_when(void **state)
{
	(void)state;
	add_certificate("ca", -DAY, 100 * DAY);
	add_certificate("cert", -DAY, 200 * DAY);
	put_key("key", key, NULL);
	examine();
	assert_shows(command.out, "tls.ca: it is good until ");
	assert_shows(command.out, "tls.cert: it is good until ");
	assert_null(strstr(command.out, "tls.key:"));
}

static void certificate__that_is_over_or_not_yet_good__is_an_error(void **state)
{
	(void)state;
	add_certificate("ca", -9 * DAY, -DAY);
	add_certificate("cert", DAY, 9 * DAY);
	put_key("key", key, NULL);
	examine();
	assert_int_equal(command.code, CLI_FAILED);
	assert_shows(command.out, "tls.ca: it expired on ");
	assert_shows(command.out, ": no server is believed");
	assert_shows(command.out, "tls.cert: by this host's clock it is not good yet, but from ");
	assert_shows(command.out, "on: until then the server refuses this host");
}

static void authorities__one_that_is_good_is_enough__but_all_of_a_chain_count(void **state)
{
	(void)state;
	add_certificate("ca", -9 * DAY, -DAY);
	add_certificate("ca", -DAY, 300 * DAY);
	add_certificate("cert", -DAY, 300 * DAY);
	add_certificate("cert", -9 * DAY, -DAY);
	put_key("key", key, NULL);
	examine();
	assert_shows(command.out, "tls.ca: it is good until ");
	assert_shows(command.out, "tls.cert: it expired on ");
}

/* Two weeks before, or in the last third of a short life. */
static void certificate__near_its_end__is_a_warning(void **state)
{
	(void)state;
	add_certificate("ca", -300 * DAY, 13 * DAY + 60);
	add_certificate("cert", -2 * DAY, DAY + 60); /* more than a third is left of three days */
	put_key("key", key, NULL);
	examine();
	assert_shows(command.out, "tls.ca: it expires on ");
	assert_shows(command.out, "(13 days left): then no server is believed");
	assert_shows(command.out, "tls.cert: it is good until ");
	scratch_write(played.dir, "cert", "", 0);
	add_certificate("cert", -3 * DAY, DAY + 60);
	examine();
	assert_shows(command.out, "(1 day left): then the server refuses this host");
}

static void key__of_another_certificate__or_with_a_passphrase__is_an_error(void **state)
{
	(void)state;
	add_certificate("ca", -DAY, 100 * DAY);
	add_certificate("cert", -DAY, 200 * DAY);
	put_key("key", other_key, NULL);
	examine();
	assert_shows(command.out, "tls.key: it is not the key of the first certificate in ");
	put_key("key", key, "secret");
	examine();
	assert_shows(command.out, "tls.key: there is no key in it that can be read");
	assert_shows(command.out, "without a passphrase: nobody is there to type it");
	scratch_write(played.dir, "cert", "no certificate\n", 15);
	examine();
	assert_shows(command.out, "tls.cert: there is no certificate in it");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(certificates__that_are_good__say_until_when),
		CASE(certificate__that_is_over_or_not_yet_good__is_an_error),
		CASE(authorities__one_that_is_good_is_enough__but_all_of_a_chain_count),
		CASE(certificate__near_its_end__is_a_warning),
		CASE(key__of_another_certificate__or_with_a_passphrase__is_an_error),
	};

	return cmocka_run_group_tests(tests, make_keys, free_keys);
}
