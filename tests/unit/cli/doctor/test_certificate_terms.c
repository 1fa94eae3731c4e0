/* `pullet doctor`, the times of certificates: each bound, to the second, by a clock that the test
 * plays. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>

#include <cmocka.h>

#include "tests/unit/fixture/examined.h"

#define NOW 1700000000 /* 2023-11-14T22:13:20Z */
#define DAY 86400

static EVP_PKEY *key;
static struct settings_server server;

int clock_gettime(clockid_t id, struct timespec *ret_time)
{
	(void)id;
	*ret_time = (struct timespec){NOW, 0};
	return 0;
}

static int make_key(void **state)
{
	(void)state;
	key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
	return key ? 0 : -1;
}

static int free_key(void **state)
{
	(void)state;
	EVP_PKEY_free(key);
	return 0;
}

static int set_up(void **state)
{
	examined_set_up(state);
	server = (struct settings_server){.ca = NULL};
	return 0;
}

static void forget(const char *name)
{
	unlink(in_dir(name));
}

/* Adds a certificate to the file that is good from then until then, in seconds from now. */
static void add_certificate(const char *name, long from, long until)
{
	X509 *x = X509_new();
	FILE *f = fopen(in_dir(name), "ae");

	assert_true(x && f);
	assert_non_null(ASN1_TIME_set(X509_getm_notBefore(x), NOW + from));
	assert_non_null(ASN1_TIME_set(X509_getm_notAfter(x), NOW + until));
	assert_int_equal(X509_set_pubkey(x, key), 1);
	assert_true(X509_sign(x, key, NULL) > 0);
	assert_int_equal(PEM_write_X509(f, x), 1);
	fclose(f);
	X509_free(x);
}

static const char *examine(const char *name)
{
	doctor_certificates(&doctor, &list, &server);
	return findings_of(name ? in_dir(name) : NULL);
}

#define RENEW " -> put there the certificate of the authority that signs the server's now\n"

static void authority__by_its_times__is_good_or_not(void **state)
{
	static const struct {
		long from, until;
		const char *expected;
	} rows[] = {
		{-100 * DAY, 14 * DAY, "ok @/ca: tls.ca: it is good until 2023-11-28\n"},
		{-100 * DAY, 14 * DAY - 1,
			"warning @/ca: tls.ca: it expires on 2023-11-28 (13 days left): then no "
			"server is believed" RENEW},
		{-100 * DAY, 2 * DAY,
			"warning @/ca: tls.ca: it expires on 2023-11-16 (2 days left): then no "
			"server is believed" RENEW},
		{-100 * DAY, 2 * DAY - 1,
			"warning @/ca: tls.ca: it expires on 2023-11-16 (1 day left): then no "
			"server is believed" RENEW},
		{-100 * DAY, 1,
			"warning @/ca: tls.ca: it expires on 2023-11-14 (0 days left): then no "
			"server is believed" RENEW},
		{-100 * DAY, 0,
			"error @/ca: tls.ca: it expired on 2023-11-14: no server is "
			"believed" RENEW},
		/* of a short life the last third */
		{-2 * DAY, DAY, "ok @/ca: tls.ca: it is good until 2023-11-15\n"},
		{-2 * DAY - 3, DAY,
			"warning @/ca: tls.ca: it expires on 2023-11-15 (1 day left): then no "
			"server is believed" RENEW},
		{-18 * DAY, 12 * DAY, "ok @/ca: tls.ca: it is good until 2023-11-26\n"},
		{-20 * DAY, 10 * DAY - 1,
			"warning @/ca: tls.ca: it expires on 2023-11-24 (9 days left): then no "
			"server is believed" RENEW},
		{0, 100 * DAY, "ok @/ca: tls.ca: it is good until 2024-02-22\n"},
		{1, 100 * DAY,
			"error @/ca: tls.ca: by this host's clock it is not good yet, but from "
			"2023-11-14 on: until then no server is believed -> set this host's clock "
			"right, or put back the one before until then\n"},
	};

	(void)state;
	server.ca = strdup(in_dir("@/ca"));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		forget("@/ca");
		add_certificate("@/ca", rows[i].from, rows[i].until);
		assert_string_equal(examine(NULL), in_dir(rows[i].expected));
	}
	scratch_write(dir, "ca", "nothing\n", 8);
	assert_string_equal(examine(NULL),
		in_dir("error @/ca: tls.ca: there is no certificate in it -> put there the "
		       "certificate of the authority that signs the server's, as PEM\n"));
	free(server.ca);
}

/* Of authorities the best counts, of a chain the worst, wherever it stands. */
static void files__of_several__count_the_best_or_the_worst(void **state)
{
	static const long terms[][2] = {
		{-9 * DAY, 50 * DAY}, {-8 * DAY, 40 * DAY}, {-7 * DAY, 60 * DAY}};

	(void)state;
	server.ca = strdup(in_dir("@/ca"));
	server.cert = strdup(in_dir("@/cert"));
	for (size_t i = 0; i < 3; i++) {
		forget("@/ca");
		forget("@/cert");
		for (size_t k = 0; k < 3; k++) {
			add_certificate("@/ca", terms[(i + k) % 3][0], terms[(i + k) % 3][1]);
			add_certificate("@/cert", terms[(i + k) % 3][0], terms[(i + k) % 3][1]);
		}
		assert_string_equal(
			examine("@/ca"), in_dir("ok @/ca: tls.ca: it is good until 2024-01-13\n"));
		doctor_certificates(&doctor, &list, &server);
		assert_non_null(strstr(findings_of(in_dir("@/cert")),
			in_dir("ok @/cert: tls.cert: it is good until 2023-12-24\n")));
	}
	add_certificate("@/cert", DAY, 70 * DAY); /* one that is not good yet */
	assert_non_null(strstr(examine("@/cert"),
		in_dir("error @/cert: tls.cert: by this host's clock it is not good yet, but from "
		       "2023-11-15 on: until then the server refuses this host -> ")));
	add_certificate("@/ca", DAY, 70 * DAY);
	assert_string_equal(
		examine("@/ca"), in_dir("ok @/ca: tls.ca: it is good until 2024-01-23\n"));
	free(server.ca);
	free(server.cert);
}

static void put_private_key(const char *name)
{
	FILE *f = fopen(in_dir(name), "ae");

	assert_non_null(f);
	assert_int_equal(PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL), 1);
	fclose(f);
}

static void key__may_be_in_the_file_of_the_certificate(void **state)
{
	(void)state;
	server.cert = strdup(in_dir("@/cert"));
	add_certificate("@/cert", -DAY, 100 * DAY);
	assert_string_equal(examine(NULL),
		in_dir("ok @/cert: tls.cert: it is good until 2024-02-22\n"
		       "error @/cert: tls.key: there is no key in it that can be read -> put it "
		       "there as PEM, without a passphrase: nobody is there to type it\n"));
	put_private_key("@/cert");
	assert_string_equal(
		examine(NULL), in_dir("ok @/cert: tls.cert: it is good until 2024-02-22\n"));
	server.key = strdup(in_dir("@/key"));
	put_private_key("@/key");
	assert_string_equal(
		examine(NULL), in_dir("ok @/cert: tls.cert: it is good until 2024-02-22\n"));
	EVP_PKEY_free(key);
	assert_int_equal(make_key(NULL), 0);
	forget("@/key");
	put_private_key("@/key");
	assert_string_equal(examine("@/key"),
		in_dir("error @/key: tls.key: it is not the key of the first certificate in "
		       "@/cert: no connection can be made with them -> put both there as they "
		       "were made together: after a renewal one of them may be the old one\n"));
	free(server.cert);
	free(server.key);
}

static void files__that_only_we_may_not_read__are_told(void **state)
{
	(void)state;
	if (!we_are_root())
		skip();
	server.ca = strdup(in_dir("@/ca"));
	assert_int_equal(chmod(in_dir("@"), 0755), 0);
	put_file("ca", 0600);
	assert_int_equal(seteuid(OTHER), 0);
	doctor.who.can_try = false;
	examine(NULL);
	assert_int_equal(seteuid(0), 0);
	assert_string_equal(text, in_dir("note @/ca: tls.ca: you may not read it; whether it is "
					 "good was not looked at -> run this as root or as the "
					 "agent's user\n"));
	doctor.who.can_try = true; /* else that is told with the other files */
	assert_int_equal(seteuid(OTHER), 0);
	examine(NULL);
	assert_int_equal(seteuid(0), 0);
	assert_string_equal(text, "");
	free(server.ca);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, examined_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(authority__by_its_times__is_good_or_not),
		CASE(files__of_several__count_the_best_or_the_worst),
		CASE(key__may_be_in_the_file_of_the_certificate),
		CASE(files__that_only_we_may_not_read__are_told),
	};

	return cmocka_run_group_tests(tests, make_key, free_key);
}
