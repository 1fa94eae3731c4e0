/* Hashes, HMACs and signatures against the vectors of their standards; forgeries, and memory that
 * runs out. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <openssl/err.h>
#include <openssl/evp.h>

#include "crypto/digest.h"
#include "tests/unit/fixture/fault_crypto.h"

/* Hexadecimal digits to bytes. Returns how many. */
static size_t bytes_of(const char *hex, unsigned char *ret)
{
	size_t n = strlen(hex) / 2;

	for (size_t i = 0; i < n; i++) {
		unsigned byte = 0;

		assert_int_equal(sscanf(hex + 2 * i, "%2x", &byte), 1);
		ret[i] = (unsigned char)byte;
	}
	return n;
}

static void sha256__of_one_and_two_pieces__is_the_standards(void **state)
{
	static const char abc[] =
		"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
	char hex[DIGEST_HEX];

	(void)state;
	assert_int_equal(digest_sha256("abc", 3, NULL, 0, hex), 0);
	assert_string_equal(hex, abc);
	assert_int_equal(digest_sha256("ab", 2, "c", 1, hex), 0);
	assert_string_equal(hex, abc);
}

static void sha256_raw__is_the_standards(void **state)
{
	unsigned char expected[32], hash[DIGEST_SHA256];

	(void)state;
	bytes_of("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", expected);
	assert_int_equal(digest_sha256_raw("abc", 3, hash), 0);
	assert_memory_equal(hash, expected, sizeof(hash));
	bytes_of("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", expected);
	assert_int_equal(digest_sha256_raw(NULL, 0, hash), 0);
	assert_memory_equal(hash, expected, sizeof(hash));
}

static void sha512_raw__is_the_standards(void **state)
{
	unsigned char expected[64], hash[DIGEST_SHA512];

	(void)state;
	bytes_of("ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
		 "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
		expected);
	assert_int_equal(digest_sha512_raw("abc", 3, hash), 0);
	assert_memory_equal(hash, expected, sizeof(hash));
	bytes_of("cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce"
		 "47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e",
		expected);
	assert_int_equal(digest_sha512_raw(NULL, 0, hash), 0);
	assert_memory_equal(hash, expected, sizeof(hash));
}

/* RFC 1321, A.5 */
static void md5__is_the_standards(void **state)
{
	static const struct {
		const char *text, *hash;
	} table[] = {
		{"", "d41d8cd98f00b204e9800998ecf8427e"},
		{"a", "0cc175b9c0f1b6a831c399e269772661"},
		{"abc", "900150983cd24fb0d6963f7d28e17f72"},
		{"message digest", "f96b697d7cb7938d525a2f31aaf161d0"},
		{"abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b"},
		{"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
			"d174ab98d277d9f5a5611c2c9f419d9f"},
		{"1234567890123456789012345678901234567890"
		 "1234567890123456789012345678901234567890",
			"57edf4a22be3c955ac49da2e2107b67a"},
	};
	char hex[DIGEST_MD5_HEX];

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		assert_int_equal(digest_md5(table[i].text, strlen(table[i].text), hex), 0);
		assert_string_equal(hex, table[i].hash);
	}
	assert_int_equal(digest_md5(NULL, 0, hex), 0);
	assert_string_equal(hex, table[0].hash);
}

static void md5__where_it_is_forbidden__is_not_supported(void **state)
{
	char hex[DIGEST_MD5_HEX] = "before";

	(void)state;
	assert_int_equal(EVP_set_default_properties(NULL, "fips=yes"), 1);
	assert_int_equal(digest_md5("abc", 3, hex), -ENOTSUP);
	assert_true(ERR_peek_error() == 0);
	assert_string_equal(hex, "before");
	assert_int_equal(EVP_set_default_properties(NULL, ""), 1);
	assert_int_equal(digest_md5("abc", 3, hex), 0);
	assert_string_equal(hex, "900150983cd24fb0d6963f7d28e17f72");
}

#define TEN_TIMES(hex) hex hex hex hex hex hex hex hex hex hex
#define AA20 TEN_TIMES("aaaa")
#define DD50 TEN_TIMES("dddddddddd")
#define CD50 TEN_TIMES("cdcdcdcdcd")

/* RFC 2202, 3, and RFC 4231, 4 */
static void hmac__is_the_standards(void **state)
{
	static const char nist[] = "7768617420646f2079612077616e7420666f72206e6f7468696e673f";
	static const char counted[] = "0102030405060708090a0b0c0d0e0f10111213141516171819";
	static const struct {
		int (*hmac)(const void *key, size_t key_len, const void *data, size_t len,
			unsigned char *ret);
		const char *key, *data, *expected;
	} table[] = {
		{digest_hmac_sha1, TEN_TIMES("0b0b"), "4869205468657265",
			"b617318655057264e28bc0b6fb378c8ef146be00"},
		{digest_hmac_sha1, "4a656665", nist, "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79"},
		{digest_hmac_sha1, AA20, DD50, "125d7342b9ac11cd91a39af48aa17b4f63f175d3"},
		{digest_hmac_sha1, counted, CD50, "4c9007f4026250c6bc8414f9bf50c86c2d7235da"},
		{digest_hmac_sha1, AA20 AA20 AA20 AA20, /* 80 bytes: more than a block */
			"54657374205573696e67204c6172676572205468616e20426c6f636b2d53697a65204b6579"
			"202d2048617368204b6579204669727374",
			"aa4ae5e15272d00e95705637ce8a3b55ed402112"},
		{digest_hmac_sha256, TEN_TIMES("0b0b"), "4869205468657265",
			"b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
		{digest_hmac_sha256, "4a656665", nist,
			"5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
		{digest_hmac_sha256, AA20, DD50,
			"773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
		{digest_hmac_sha256, counted, CD50,
			"82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"},
		/* the standards have none without a key or a text */
		{digest_hmac_sha1, "", "", "fbdb1d1b18aa6c08324b7d64b71fb76370690e1d"},
		{digest_hmac_sha256, "", "",
			"b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad"},
	};
	unsigned char key[80], data[64], expected[32], mac[32];

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		size_t key_len = bytes_of(table[i].key, key);
		size_t len = bytes_of(table[i].data, data);

		assert_int_equal(
			table[i].hmac(key_len ? key : NULL, key_len, len ? data : NULL, len, mac),
			0);
		assert_memory_equal(mac, expected, bytes_of(table[i].expected, expected));
	}
}

/* RFC 4231, 4.7: a key of 131 bytes */
static void hmac_sha256__with_a_key_longer_than_a_block__hashes_the_key(void **state)
{
	static const char data[] = "Test Using Larger Than Block-Size Key - Hash Key First";
	unsigned char key[131], expected[32], mac[DIGEST_SHA256];

	(void)state;
	memset(key, 0xaa, sizeof(key));
	bytes_of("60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54", expected);
	assert_int_equal(digest_hmac_sha256(key, sizeof(key), data, strlen(data), mac), 0);
	assert_memory_equal(mac, expected, sizeof(mac));
}

static void blake2b512__is_the_standards(void **state)
{
	static const struct {
		const char *text, *hash;
	} table[] = {
		{"abc", "ba80a53f981c4d0d6a2797b69f12f6e94c212f14685ac4b74b12bb6fdbffa2d1"
			"7d87c5392aab792dc252d5de4533cc9518d38aa8dbf1925ab92386edd4009923"},
		{"", "786a02f742015903c6c6fd852552d272912f4740e15847618a86e217f71f5419"
		     "d25e1031afee585313896444934eb04b903a685b1448b755d56f701afe9be2ce"},
	};
	unsigned char expected[64], hash[DIGEST_BLAKE2B512];

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		assert_int_equal(bytes_of(table[i].hash, expected), sizeof(expected));
		assert_int_equal(digest_blake2b512(table[i].text, strlen(table[i].text), hash), 0);
		assert_memory_equal(hash, expected, sizeof(hash));
	}
	assert_int_equal(digest_blake2b512(NULL, 0, hash), 0);
	assert_memory_equal(hash, expected, sizeof(hash));
}

/* RFC 8032, 7.1, tests 1 to 3 */
static const struct vector {
	const char *key, *message, *signature;
} vectors[] = {
	{"d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
		"e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
		"5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"},
	{"3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
		"92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
		"085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"},
	{"fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
		"6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac"
		"18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a"},
};
#define VECTORS (sizeof(vectors) / sizeof(vectors[0]))

struct signed_bytes {
	unsigned char key[32], message[8], signature[64];
	size_t len;
};

static struct signed_bytes of_vector(const struct vector *v)
{
	struct signed_bytes s = {0};

	bytes_of(v->key, s.key);
	bytes_of(v->signature, s.signature);
	s.len = bytes_of(v->message, s.message);
	return s;
}

static int verify(const struct signed_bytes *s)
{
	return digest_ed25519_verify(s->key, s->message, s->len, s->signature);
}

static void ed25519_verify__of_the_standards_signatures__is_good(void **state)
{
	struct signed_bytes s;

	(void)state;
	for (size_t i = 0; i < VECTORS; i++) {
		s = of_vector(&vectors[i]);
		assert_int_equal(verify(&s), 0);
	}
	s = of_vector(&vectors[0]);
	assert_int_equal(digest_ed25519_verify(s.key, NULL, 0, s.signature), 0);
}

static void ed25519_verify__with_any_bit_changed__is_bad_and_leaves_no_error_behind(void **state)
{
	struct signed_bytes s = of_vector(&vectors[2]);

	(void)state;
	for (size_t bit = 0; bit < (32 + 64 + 2) * 8; bit++) {
		unsigned char *at = bit < 256   ? s.key + bit / 8
				    : bit < 768 ? s.signature + (bit - 256) / 8
						: s.message + (bit - 768) / 8;

		*at ^= (unsigned char)(1u << bit % 8);
		assert_int_equal(verify(&s), -EBADMSG);
		*at ^= (unsigned char)(1u << bit % 8);
		assert_true(ERR_peek_error() == 0);
	}
	assert_int_equal(verify(&s), 0);
	s.len--;
	assert_int_equal(verify(&s), -EBADMSG);
}

/* The second half of a signature is a number below the group's order L: with L added it would fit
 * the equation as well, and be a second signature of the same bytes. */
static void ed25519_verify__with_the_order_added__is_bad(void **state)
{
	struct signed_bytes s = of_vector(&vectors[1]);
	unsigned char order[32];
	unsigned carry = 0;

	(void)state;
	bytes_of("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010", order);
	for (size_t i = 0; i < sizeof(order); i++) {
		carry += s.signature[32 + i] + order[i];
		s.signature[32 + i] = (unsigned char)carry;
		carry >>= 8;
	}
	assert_int_equal(carry, 0);
	assert_int_equal(verify(&s), -EBADMSG);
}

static int call(size_t which, const struct signed_bytes *s)
{
	unsigned char hash[DIGEST_BLAKE2B512];
	char hex[DIGEST_HEX];

	if (which == 0)
		return digest_sha256(s->message, s->len, NULL, 0, hex);
	if (which == 1)
		return digest_blake2b512(s->message, s->len, hash);
	if (which == 2)
		return verify(s);
	if (which == 3)
		return digest_sha256_raw(s->message, s->len, hash);
	if (which == 4)
		return digest_md5(s->message, s->len, hex);
	if (which == 8)
		return digest_scrypt(s->message, s->len, s->key, sizeof(s->key), 2, hash, 32);
	if (which == 7)
		return digest_sha512_raw(s->message, s->len, hash);
	return (which == 5 ? digest_hmac_sha256 : digest_hmac_sha1)(
		s->key, sizeof(s->key), s->message, s->len, hash);
}

static void all__when_memory_runs_out__say_so_and_leave_no_error_behind(void **state)
{
	struct signed_bytes s = of_vector(&vectors[1]);

	(void)state;
	for (size_t which = 0; which < 9; which++) {
		size_t nth = 0, said = 0;
		bool failed;
		int r;

		assert_int_equal(call(which, &s), 0); /* what is loaded once, is */
		do {
			fault_crypto_fail(++nth);
			r = call(which, &s);
			failed = fault_crypto_failed();
			assert_true(r == 0 || r == -ENOMEM || (which == 2 && r == -EBADMSG));
			assert_true(failed || r == 0); /* libcrypto can do without some */
			said += r == -ENOMEM;
			assert_true(ERR_peek_error() == 0);
		} while (failed);
		assert_true(said > 1);
	}
}

static void errors_of_others__are_left_in_the_queue(void **state)
{
	struct signed_bytes s = of_vector(&vectors[1]);
	unsigned long error;

	(void)state;
	ERR_raise(ERR_LIB_USER, ERR_R_PASSED_INVALID_ARGUMENT);
	error = ERR_peek_last_error();
	s.key[0] ^= 1;
	assert_int_equal(verify(&s), -EBADMSG);
	assert_true(ERR_get_error() == error && ERR_get_error() == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sha256__of_one_and_two_pieces__is_the_standards),
		cmocka_unit_test(sha256_raw__is_the_standards),
		cmocka_unit_test(sha512_raw__is_the_standards),
		cmocka_unit_test(md5__is_the_standards),
		cmocka_unit_test(md5__where_it_is_forbidden__is_not_supported),
		cmocka_unit_test(hmac__is_the_standards),
		cmocka_unit_test(hmac_sha256__with_a_key_longer_than_a_block__hashes_the_key),
		cmocka_unit_test(blake2b512__is_the_standards),
		cmocka_unit_test(ed25519_verify__of_the_standards_signatures__is_good),
		cmocka_unit_test(
			ed25519_verify__with_any_bit_changed__is_bad_and_leaves_no_error_behind),
		cmocka_unit_test(ed25519_verify__with_the_order_added__is_bad),
		cmocka_unit_test(all__when_memory_runs_out__say_so_and_leave_no_error_behind),
		cmocka_unit_test(errors_of_others__are_left_in_the_queue),
	};

	if (!fault_crypto_start()) {
		fprintf(stderr, "libcrypto is in use before the test begins\n");
		return 1;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
