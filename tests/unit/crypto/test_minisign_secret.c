/* Secret keys in minisign's form. Against the tool itself: tests/integration/test_sign.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "crypto/base64.h"
#include "crypto/minisign_secret.h"

#define HEAD "untrusted comment: \n"
#define PASSWORD "correct horse"

static const unsigned char salt[MINISIGN_SECRET_SALT] = {1, 2, 3};

static struct minisign_secret make(void)
{
	struct minisign_secret k = {.id = {1, 2, 3, 4, 5, 6, 7, 8}, .seed = {9}};

	assert_int_equal(minisign_secret_make(&k), 0);
	return k;
}

static int reads(const char *text, size_t len, const char *password)
{
	struct minisign_secret k, untouched;
	const char *why = NULL;
	int r;

	memset(&k, 0x5a, sizeof(k));
	untouched = k;
	r = minisign_secret_read(text, len, password, &k, &why);
	if (r) {
		assert_non_null(why);
		assert_memory_equal(&k, &untouched, sizeof(k));
	}
	return r;
}

/* The public key of RFC 8032's first test, from its seed. */
static void test_make(void **state)
{
	static const unsigned char seed[] = "\x9d\x61\xb1\x9d\xef\xfd\x5a\x60\xba\x84\x4a\xf4"
					    "\x92\xec\x2c\xc4\x44\x49\xc5\x69\x7b\x32\x69\x19"
					    "\x70\x3b\xac\x03\x1c\xae\x7f\x60";
	static const unsigned char key[] = "\xd7\x5a\x98\x01\x82\xb1\x0a\xb7\xd5\x4b\xfe\xd3"
					   "\xc9\x64\x07\x3a\x0e\xe1\x72\xf3\xda\xa6\x23\x25"
					   "\xaf\x02\x1a\x68\xf7\x07\x51\x1a";
	struct minisign_secret k = {0};

	(void)state;
	memcpy(k.seed, seed, sizeof(k.seed));
	assert_int_equal(minisign_secret_make(&k), 0);
	assert_memory_equal(k.key, key, sizeof(k.key));
}

static void test_plain(void **state)
{
	struct minisign_secret k = make(), again;
	char text[MINISIGN_SECRET_TEXT];
	const char *why;

	(void)state;
	assert_int_equal(minisign_secret_write(&k, NULL, salt, text), 0);
	assert_int_equal(minisign_secret_read(text, strlen(text), NULL, &again, &why), 0);
	assert_memory_equal(&again, &k, sizeof(k));
	assert_int_equal(reads(text, strlen(text), "a password that it has not"), 0);
	assert_int_equal(reads(text, strlen(text) - 1, NULL), 0); /* no last line end */
	for (size_t len = 0; len + 1 < strlen(text); len++)
		assert_int_equal(reads(text, len, NULL), -EINVAL);
}

static void test_sealed(void **state)
{
	/* by Python's hashlib: scrypt() of the password, and blake2b() of the key in it */
	static const char sealed[] =
		"untrusted comment: minisign encrypted secret key\n"
		"RWRTY0IyAQIDAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAEAAAAAAAAAAAAgAAA"
		"AANgVEp3C9lOSyKtfmJ3hC3yzCku0csUXsAamU8ujsb9Ehds5Qpk4HrOwPbuCX2d3IeaXy"
		"BV5o+7+526rPnnpVBSQ/SGt2Naj6IjPVyznNBQ3+Qy4yHdAyfcYpRYHYYRUDYDWrfepVSL"
		"0="
		"\n";
	struct minisign_secret k = make(), again;
	char text[MINISIGN_SECRET_TEXT];
	const char *why;

	(void)state;
	assert_int_equal(minisign_secret_write(&k, PASSWORD, salt, text), 0);
	assert_string_equal(text, sealed);
	assert_int_equal(reads(text, strlen(text), NULL), -ENOKEY);
	assert_int_equal(reads(text, strlen(text), PASSWORD "s"), -EKEYREJECTED);
	assert_int_equal(minisign_secret_read(text, strlen(text), PASSWORD, &again, &why), 0);
	assert_memory_equal(&again, &k, sizeof(k));
}

/* A file with other limits than minisign_secret_write() writes; n of scrypt follows from them. */
static int reads_at(uint64_t operations, uint64_t memory, const char *kind)
{
	unsigned char box[158] = {'E', 'd', 0, 0, 'B', '2'};
	struct buffer b;
	int r;

	memcpy(box + 2, kind, 2);
	for (size_t i = 0; i < 8; i++) {
		box[38 + i] = (unsigned char)(operations >> 8 * i);
		box[46 + i] = (unsigned char)(memory >> 8 * i);
	}
	buffer_init(&b, MINISIGN_SECRET_MAX_FILE);
	buffer_append_string(&b, HEAD);
	assert_int_equal(base64_append(&b, box, sizeof(box)), 0);
	r = reads(b.data, b.len, NULL);
	buffer_fini(&b);
	return r;
}

/* What would take more memory is refused before a password is asked for. */
static void test_cost(void **state)
{
	static const struct {
		uint64_t operations, memory;
		int result;
	} table[] = {
		{0, 1 << 20, -ENOKEY}, /* there is a least number of operations */
		{32768, 1 << 20, -ENOKEY}, {65535, 1 << 20, -ENOKEY},
		{65536, 1 << 20, -EINVAL}, /* would be more than one block at a time */
		{65536, (2 << 20) + 31, -ENOKEY}, {65536, (2 << 20) + 32, -ENOKEY},
		{131072, 4095 << 10, -EINVAL}, /* two blocks, by the last step of memory */
		{0, UINT64_C(1) << 40, -ENOKEY}, {0, (UINT64_C(1) << 40) + 1, -EINVAL},
		{UINT64_C(1) << 40, UINT64_C(1) << 40, -EINVAL},
		{33554432, UINT64_C(1) << 40, -ENOKEY}, {67108863, UINT64_C(1) << 40, -ENOKEY},
		{67108864, UINT64_C(1) << 40, -EINVAL}, /* 2 GiB */
	};

	(void)state;
	assert_int_equal(reads_at(33554432, 1073741824, "Sc"), -ENOKEY); /* the tool's */
	assert_int_equal(reads_at(67108864, 2147483648, "Sc"), -EINVAL);
	assert_int_equal(reads_at(UINT64_MAX, UINT64_MAX, "Sc"), -EINVAL);
	assert_int_equal(reads_at(33554432, 1073741824, "Sd"), -EINVAL);
	assert_int_equal(reads_at(33554432, 1073741824, "Tc"), -EINVAL);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (reads_at(table[i].operations, table[i].memory, "Sc") != table[i].result)
			fail_msg("%zu", i);
}

static void test_sign(void **state)
{
	struct minisign_secret k = make();
	char public[MINISIGN_SECRET_TEXT], file[MINISIGN_MAX_FILE + 1], why[FILE_WHY];
	char *keys[] = {public, NULL};
	char comment[MINISIGN_MAX_FILE + 2];
	struct minisign_facts f;

	(void)state;
	assert_int_equal(minisign_secret_write_public(&k, public), 0);
	assert_non_null(strstr(public, "minisign public key 0807060504030201\n"));
	assert_int_equal(minisign_secret_sign(&k, "a: 1\n", 5, "rev=7 path=/a", file), 0);
	assert_int_equal(minisign_verify(keys, "a: 1\n", 5, file, strlen(file), &f, why), 0);
	assert_int_equal(f.rev, 7);
	assert_int_equal(minisign_verify(keys, "a: 2\n", 5, file, strlen(file), &f, why), -EBADMSG);
	memset(&f, 0, sizeof(f));
	assert_int_equal(minisign_read_comment(public, file, strlen(file), &f), 0);
	assert_string_equal(f.path, "/a");
	*strstr(file, "rev=7") = 'R';
	assert_int_equal(minisign_read_comment(public, file, strlen(file), &f), -EBADMSG);
	assert_int_equal(minisign_read_comment(public, file, 10, &f), -EINVAL);
	for (size_t len = MINISIGN_MAX_FILE - 300; len <= MINISIGN_MAX_FILE + 1; len++) {
		memset(comment, 'x', len);
		comment[len] = '\0';
		if (minisign_secret_sign(&k, "", 0, comment, file) == 0)
			assert_int_equal(
				minisign_verify(keys, "", 0, file, strlen(file), &f, why), 0);
		else
			assert_true(len > MINISIGN_MAX_FILE - 300);
	}
	assert_int_equal(minisign_secret_sign(&k, "", 0, comment, file), -EMSGSIZE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_make),
		cmocka_unit_test(test_plain),
		cmocka_unit_test(test_sealed),
		cmocka_unit_test(test_cost),
		cmocka_unit_test(test_sign),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
