/*
 * minisign's secret keys. Surprising: the tool's check sum is BLAKE2b with 32 bytes, which
 * libcrypto cannot make before 3.2, so the one block of it that is needed is computed here. It
 * detects a wrong password; a plain key has none.
 */
#include "crypto/minisign_secret.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "lib/buffer.h"
#include "crypto/base64.h"
#include "crypto/digest.h"

#define COMMENT "untrusted comment: "
#define SEALED (8 + 64 + 32) /* id, secret and public key, check sum */
#define SEALED_AT 54
#define BOX (SEALED_AT + SEALED)
#define COST 131072u /* KiB: what sealing takes */
#define MAX_COST (1u << 20)

/* ---- BLAKE2b (RFC 7693) of one block, 32 bytes ---- */

static uint64_t rotate_right(uint64_t x, unsigned n)
{
	return x >> n | x << (64 - n);
}

static void mix_columns(uint64_t v[16], const unsigned at[4], uint64_t x, uint64_t y)
{
	uint64_t *a = &v[at[0]], *b = &v[at[1]], *c = &v[at[2]], *d = &v[at[3]];

	*a += *b + x;
	*d = rotate_right(*d ^ *a, 32);
	*c += *d;
	*b = rotate_right(*b ^ *c, 24);
	*a += *b + y;
	*d = rotate_right(*d ^ *a, 16);
	*c += *d;
	*b = rotate_right(*b ^ *c, 63);
}

static void check_sum(const unsigned char *data, size_t len, unsigned char ret[32])
{
	static const uint64_t iv[8] = {0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b,
		0xa54ff53a5f1d36f1, 0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b,
		0x5be0cd19137e2179};
	static const unsigned char sigma[10][16] = {
		{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
		{14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
		{11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
		{7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
		{9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
		{2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
		{12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
		{13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
		{6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
		{10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
	};
	static const unsigned at[8][4] = {{0, 4, 8, 12}, {1, 5, 9, 13}, {2, 6, 10, 14},
		{3, 7, 11, 15}, {0, 5, 10, 15}, {1, 6, 11, 12}, {2, 7, 8, 13}, {3, 4, 9, 14}};
	uint64_t m[16] = {0}, v[16], h[8];

	for (size_t i = 0; i < len; i++)
		m[i / 8] |= (uint64_t)data[i] << 8 * (i % 8);
	memcpy(h, iv, sizeof(h));
	h[0] ^= 0x01010020;
	memcpy(v, h, sizeof(h));
	memcpy(v + 8, iv, sizeof(iv));
	v[12] ^= len;
	v[14] = ~v[14];
	for (size_t round = 0; round < 12; round++)
		for (size_t i = 0; i < 8; i++)
			mix_columns(v, at[i], m[sigma[round % 10][2 * i]],
				m[sigma[round % 10][2 * i + 1]]);
	for (size_t i = 0; i < 32; i++)
		ret[i] = (unsigned char)((h[i / 8] ^ v[i / 8] ^ v[i / 8 + 8]) >> 8 * (i % 8));
	explicit_bzero(m, sizeof(m));
	explicit_bzero(v, sizeof(v));
}

/* Of "Ed" and the sealed part without its check sum. */
static void seal_check_sum(const unsigned char *sealed, unsigned char ret[32])
{
	unsigned char data[2 + 72] = "Ed";

	memcpy(data + 2, sealed, 72);
	check_sum(data, sizeof(data), ret);
	explicit_bzero(data, sizeof(data));
}

/* ---- the password ---- */

static uint64_t read_le(const unsigned char *p)
{
	uint64_t n = 0;

	for (size_t i = 0; i < 8; i++)
		n |= (uint64_t)p[i] << 8 * i;
	return n;
}

static void write_le(unsigned char *p, uint64_t n)
{
	for (size_t i = 0; i < 8; i++)
		p[i] = (unsigned char)(n >> 8 * i);
}

/* libsodium's choice of n for its two limits, where r is 8 and p comes out as 1; 0 = it would not.
 */
static uint64_t cost_of(uint64_t operations, uint64_t memory)
{
	uint64_t most, n = 2;

	if (operations > UINT64_C(1) << 40 || memory > UINT64_C(1) << 40)
		return 0;
	operations = operations < 32768 ? 32768 : operations;
	most = operations < memory / 32 ? operations / 32 : memory / 1024;
	while (n <= most / 2)
		n *= 2;
	return operations < memory / 32 || operations / 4 / n / 8 == 1 ? n : 0;
}

/* Seals an open box, or opens a sealed one. 0 or -ENOMEM. */
static int toggle_seal(unsigned char box[BOX], const char *password, uint64_t n)
{
	unsigned char stream[SEALED];
	int r = digest_scrypt(
		password, strlen(password), box + 6, MINISIGN_SECRET_SALT, n, stream, SEALED);

	for (size_t i = 0; r == 0 && i < SEALED; i++)
		box[SEALED_AT + i] ^= stream[i];
	explicit_bzero(stream, sizeof(stream));
	return r;
}

/* ---- files ---- */

static const char *read_box(const char *text, size_t len, unsigned char box[BOX])
{
	const char *end = text + len, *line = memchr(text, '\n', len), *stop;
	size_t n;

	if (len > MINISIGN_SECRET_MAX_FILE || len < strlen(COMMENT) ||
		memcmp(text, COMMENT, strlen(COMMENT)) || !line)
		return "it is not a secret key of minisign: line 1 does not begin with 'untrusted "
		       "comment: '";
	line++;
	stop = memchr(line, '\n', (size_t)(end - line));
	if (!stop)
		stop = end;
	if (end - stop > 1)
		return "it is not a secret key of minisign: it goes on after line 2";
	if (stop > line && stop[-1] == '\r')
		stop--;
	if (base64_decode(line, (size_t)(stop - line), box, BOX, &n) || n != BOX)
		return "it is not a secret key of minisign: line 2 is not the base64 of 158 bytes "
		       "(a public key, or cut short?)";
	if (memcmp(box, "Ed", 2) || memcmp(box + 4, "B2", 2))
		return "it is a key of another algorithm than minisign's Ed25519";
	return NULL;
}

static int open_box(unsigned char box[BOX], const char *password, const char **ret_why)
{
	unsigned char sum[32];
	uint64_t n;
	int r;

	if (memcmp(box + 2, "\0\0", 2) == 0)
		return 0;
	n = memcmp(box + 2, "Sc", 2) ? 0 : cost_of(read_le(box + 38), read_le(box + 46));
	*ret_why = "it is sealed in a way, or at a cost of memory, that is not known here: at most "
		   "1 GiB by scrypt";
	if (n == 0 || n > MAX_COST)
		return -EINVAL;
	*ret_why = "it is sealed with a password, and none is known: --password-file names one";
	if (!password)
		return -ENOKEY;
	*ret_why = "no memory to open it: as much is needed as it was sealed with, up to 1 GiB";
	r = toggle_seal(box, password, n);
	if (r)
		return r;
	seal_check_sum(box + SEALED_AT, sum);
	*ret_why = "that is not its password";
	return memcmp(sum, box + SEALED_AT + 72, sizeof(sum)) ? -EKEYREJECTED : 0;
}

int minisign_secret_read(const char *text, size_t len, const char *password,
	struct minisign_secret *ret_key, const char **ret_why)
{
	unsigned char box[BOX];
	struct minisign_secret k = {0};
	int r = -EINVAL;

	*ret_why = read_box(text, len, box);
	if (!*ret_why)
		r = open_box(box, password, ret_why);
	if (r == 0) {
		memcpy(k.id, box + SEALED_AT, sizeof(k.id));
		memcpy(k.seed, box + SEALED_AT + 8, sizeof(k.seed));
		r = minisign_secret_make(&k);
		*ret_why = "no memory";
	}
	if (r == 0 && memcmp(k.key, box + SEALED_AT + 40, sizeof(k.key))) {
		*ret_why = "it is damaged: its two halves do not belong together";
		r = -EINVAL;
	}
	if (r == 0)
		*ret_key = k;
	explicit_bzero(box, sizeof(box));
	explicit_bzero(&k, sizeof(k));
	return r;
}

int minisign_secret_make(struct minisign_secret *k)
{
	return digest_ed25519_public(k->seed, k->key);
}

/* "untrusted comment: WHAT" and the base64 of the bytes, into a text that has room for it. */
static int write_lines(
	const char *what, const unsigned char *data, size_t len, char *ret_text, size_t size)
{
	struct buffer b;
	int r;

	buffer_init(&b, size - 1);
	buffer_printf(&b, COMMENT "%s\n", what);
	base64_append(&b, data, len);
	r = buffer_append_string(&b, "\n");
	if (r == 0)
		snprintf(ret_text, size, "%s", b.data);
	if (b.data)
		explicit_bzero(b.data, b.len);
	buffer_fini(&b);
	return r;
}

int minisign_secret_write(const struct minisign_secret *k, const char *password,
	const unsigned char salt[MINISIGN_SECRET_SALT], char ret_text[MINISIGN_SECRET_TEXT])
{
	unsigned char box[BOX] = {'E', 'd', 0, 0, 'B', '2'};
	int r = 0;

	memcpy(box + SEALED_AT, k->id, sizeof(k->id));
	memcpy(box + SEALED_AT + 8, k->seed, sizeof(k->seed));
	memcpy(box + SEALED_AT + 40, k->key, sizeof(k->key));
	if (password) {
		memcpy(box + 2, "Sc", 2);
		memcpy(box + 6, salt, MINISIGN_SECRET_SALT);
		write_le(box + 38, UINT64_C(32) * COST);
		write_le(box + 46, UINT64_C(1024) * COST);
		seal_check_sum(box + SEALED_AT, box + SEALED_AT + 72);
		r = toggle_seal(box, password, COST);
	}
	if (r == 0)
		r = write_lines(password ? "minisign encrypted secret key"
					 : "minisign secret key without a password",
			box, sizeof(box), ret_text, MINISIGN_SECRET_TEXT);
	explicit_bzero(box, sizeof(box));
	return r;
}

int minisign_secret_write_public(
	const struct minisign_secret *k, char ret_text[MINISIGN_SECRET_TEXT])
{
	unsigned char box[2 + MINISIGN_ID + MINISIGN_KEY] = "Ed";
	char what[64];

	memcpy(box + 2, k->id, MINISIGN_ID);
	memcpy(box + 2 + MINISIGN_ID, k->key, MINISIGN_KEY);
	snprintf(what, sizeof(what), "minisign public key %016llX",
		(unsigned long long)read_le(k->id));
	return write_lines(what, box, sizeof(box), ret_text, MINISIGN_SECRET_TEXT);
}

/* ---- signing ---- */

int minisign_secret_sign(const struct minisign_secret *k, const void *document, size_t len,
	const char *comment, char ret_text[MINISIGN_MAX_FILE + 1])
{
	unsigned char hash[DIGEST_BLAKE2B512],
		box[2 + MINISIGN_ID + DIGEST_ED25519_SIGNATURE] = "ED";
	unsigned char both[DIGEST_ED25519_SIGNATURE + MINISIGN_MAX_FILE],
		second[DIGEST_ED25519_SIGNATURE];
	size_t comment_len = strlen(comment);
	struct buffer b;
	int r;

	if (comment_len > MINISIGN_MAX_FILE)
		return -EMSGSIZE;
	memcpy(box + 2, k->id, MINISIGN_ID);
	r = digest_blake2b512(document, len, hash);
	if (r == 0)
		r = digest_ed25519_sign(k->seed, hash, sizeof(hash), box + 2 + MINISIGN_ID);
	memcpy(both, box + 2 + MINISIGN_ID, DIGEST_ED25519_SIGNATURE);
	memcpy(both + DIGEST_ED25519_SIGNATURE, comment, comment_len);
	if (r == 0)
		r = digest_ed25519_sign(
			k->seed, both, DIGEST_ED25519_SIGNATURE + comment_len, second);
	if (r)
		return r;
	buffer_init(&b, MINISIGN_MAX_FILE);
	buffer_printf(&b, COMMENT "signature by pullet sign\n");
	base64_append(&b, box, sizeof(box));
	buffer_printf(&b, "\ntrusted comment: %s\n", comment);
	base64_append(&b, second, sizeof(second));
	r = buffer_append_string(&b, "\n");
	if (r == 0)
		snprintf(ret_text, MINISIGN_MAX_FILE + 1, "%s", b.data);
	buffer_fini(&b);
	return r;
}
