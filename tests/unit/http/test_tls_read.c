/* What OpenSSL holds of a connection: two ends in memory, whose suite needs no certificate. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <openssl/ssl.h>

#include "http/tls_read.h"

static SSL *make_end(SSL_CTX *context, BIO *bio)
{
	SSL *end;

	assert_int_equal(SSL_CTX_set_max_proto_version(context, TLS1_2_VERSION), 1);
	assert_int_equal(SSL_CTX_set_cipher_list(context, "aNULL:@SECLEVEL=0"), 1);
	end = SSL_new(context);
	assert_non_null(end);
	SSL_set_bio(end, bio, bio);
	return end;
}

static void record__of_which_a_part_was_read__is_unread(void **state)
{
	SSL_CTX *contexts[2] = {SSL_CTX_new(TLS_client_method()), SSL_CTX_new(TLS_server_method())};
	BIO *bios[2];
	SSL *client, *server;
	char text[16];

	(void)state;
	assert_true(contexts[0] && contexts[1]);
	assert_int_equal(BIO_new_bio_pair(&bios[0], 0, &bios[1], 0), 1);
	client = make_end(contexts[0], bios[0]);
	server = make_end(contexts[1], bios[1]);
	SSL_set_connect_state(client);
	SSL_set_accept_state(server);
	for (int i = 0; i < 10 && !(SSL_is_init_finished(client) && SSL_is_init_finished(server));
		i++) {
		SSL_do_handshake(client);
		SSL_do_handshake(server);
	}
	assert_false(tls_read_has_unread(client));
	assert_int_equal(SSL_write(server, "answer and more", 15), 15);
	assert_int_equal(SSL_read(client, text, 6), 6);
	assert_true(tls_read_has_unread(client));
	assert_int_equal(SSL_read(client, text, 9), 9);
	assert_false(tls_read_has_unread(client));
	for (int i = 0; i < 2; i++)
		SSL_CTX_free(contexts[i]);
	SSL_free(client);
	SSL_free(server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(record__of_which_a_part_was_read__is_unread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
