/*
 * minisign's keys and signature files: what the tool made is taken, everything else is refused with
 * a sentence. The tool's own files are tests/golden/minisign; files with any other comment and
 * forgeries are made by tests/unit/fixture/minisign_signer.h.
 */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "crypto/digest.h"
#include "crypto/minisign.h"
#include "tests/unit/fixture/fault_crypto.h"
#include "tests/unit/fixture/minisign_signer.h"
#include "tests/unit/fixture/model_random.h"

#define TAMPERED 1000
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SIGNED 4
#else
#define SIGNED 20 /* documents each bit of which is flipped, and of their signatures and keys */
#endif
#define LARGEST 2048 /* bytes of a document */
#define UNTRUSTED "untrusted comment: "
#define SECONDS_2026_12_31 INT64_C(1798675200) /* date -ud 2026-12-31 +%s */
#define LAST_SECOND INT64_C(253402300799)      /* date -ud 9999-12-31T23:59:59 +%s */

static struct signer signer, stranger;
static const char document[] = "name: web\n";
#define DOCUMENT document, sizeof(document) - 1

struct file {
	char data[SIGNER_FILE];
	size_t len;
};

/* ---- help ---- */

static struct file golden(const char *name)
{
	struct file file;
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%.*s../../golden/minisign/%s",
		(int)(sizeof(__FILE__) - sizeof("test_minisign.c")), __FILE__, name);
	f = fopen(path, "rb");
	if (!f)
		fail_msg("%s can not be read: run from the root of the repository", path);
	file.len = fread(file.data, 1, sizeof(file.data) - 1, f);
	file.data[file.len] = '\0';
	fclose(f);
	assert_true(file.len > 0);
	return file;
}

/* Made again with the comment, over the document. */
static struct file signed_with(const char *comment)
{
	struct signer_job job = {.document = document,
		.len = sizeof(document) - 1,
		.comment = comment,
		.comment_len = strlen(comment)};
	struct file file;

	file.len = signer_file(&signer, &job, file.data);
	return file;
}

static char why[FILE_WHY];
static struct minisign_facts facts;

/* The call, with what is true of each: a refusal has a readable sentence and leaves the facts; the
 * file's bytes end where a sanitizer sees it. */
static int verify_by(
	char *const *keys, const void *data, size_t len, const char *minisig, size_t minisig_len)
{
	struct minisign_facts untouched;
	char *exact = malloc(minisig_len ? minisig_len : 1);
	int r;

	assert_non_null(exact);
	memcpy(exact, minisig, minisig_len);
	memset(&facts, 0x5a, sizeof(facts));
	untouched = facts;
	memset(why, 0, sizeof(why));
	r = minisign_verify(keys, data, len, exact, minisig_len, &facts, why);
	free(exact);
	assert_true(r == 0 || r == -EINVAL || r == -EBADMSG || r == -ENOMEM);
	assert_true((r == 0) == (why[0] == '\0'));
	if (r)
		assert_memory_equal(&facts, &untouched, sizeof(facts));
	for (const char *c = why; *c; c++)
		assert_true(*c >= 0x20 && *c < 0x7f);
	return r;
}

static int verify(const void *data, size_t len, const struct file *f)
{
	char *keys[] = {signer.text, NULL};

	return verify_by(keys, data, len, f->data, f->len);
}

static void assert_refused(int expected, const char *sentence, const struct file *f)
{
	assert_int_equal(verify(DOCUMENT, f), expected);
	if (!strstr(why, sentence))
		fail_msg("'%s' is not in '%s'", sentence, why);
}

/* The file with line n (1 to 4) replaced; the text brings its own line end. */
static struct file with_line(const struct file *f, int n, const char *text)
{
	struct file made = {.len = 0};
	const char *at = f->data, *end = f->data + f->len;

	for (int i = 1; at < end; i++) {
		const char *next = (const char *)memchr(at, '\n', (size_t)(end - at)) + 1;
		const char *from = i == n ? text : at;
		size_t len = i == n ? strlen(text) : (size_t)(next - at);

		memcpy(made.data + made.len, from, len);
		made.len += len;
		at = next;
	}
	return made;
}

static const char *line_of(struct file *f, int n, size_t *ret_len)
{
	const char *at = f->data;

	for (; n > 1; n--)
		at = strchr(at, '\n') + 1;
	*ret_len = strcspn(at, "\r\n");
	return at;
}

/* ---- keys ---- */

static void parse_key__of_what_the_tool_prints__takes_it(void **state)
{
	static const unsigned char id[] = {0x98, 0x30, 0x2e, 0xe7, 0xf0, 0x00, 0xe9, 0x94};
	static const char *const forms[] = {"%s", "%s\n", "%s\r\n", UNTRUSTED "x\n%s",
		UNTRUSTED "\n%s\n", UNTRUSTED "x\r\n%s\r\n"};
	struct file pub = golden("test.pub");
	struct minisign_key whole, other;
	char text[200];

	(void)state;
	assert_int_equal(minisign_parse_key(pub.data, &whole), 0);
	assert_memory_equal(whole.id, id, sizeof(id));
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		struct minisign_key k;
		const char *form = forms[i], *hole = strstr(form, "%s");

		snprintf(text, sizeof(text), "%.*s%s%s", (int)(hole - form), form, signer.text,
			hole + 2);
		assert_int_equal(minisign_parse_key(text, &k), 0);
		assert_memory_equal(k.id, signer.id, sizeof(k.id));
		assert_memory_equal(k.key, signer.key, sizeof(k.key));
	}
	pub = golden("other.pub");
	assert_int_equal(minisign_parse_key(pub.data, &other), 0);
	assert_memory_not_equal(whole.key, other.key, sizeof(whole.key));
}

static void parse_key__of_anything_else__refuses_it(void **state)
{
#define KEY "RWSYMC7n8ADplDfW2kiEMNo8BX8IPthSF1HxnEXGBzB/KwlR4ZfoNZlN"
	static const char *const bad[] = {"", "\n", "x", UNTRUSTED, UNTRUSTED "x", UNTRUSTED "x\n",
		" " KEY, KEY " ", KEY "\n\n", KEY "\nx", KEY "=", KEY KEY, "\n" KEY, "x\n" KEY,
		UNTRUSTED "x\n" UNTRUSTED "x\n" KEY, "trusted comment: x\n" KEY,
		"RUSYMC7n8ADplDfW2kiEMNo8BX8IPthSF1HxnEXGBzB/KwlR4ZfoNZlN",  /* ED */
		"RWSYMC7n8ADplDfW2kiEMNo8BX8IPthSF1HxnEXGBzB/KwlR4ZfoNZl",   /* short */
		"RWSYMC7n8ADplDfW2kiEMNo8BX8IPthSF1HxnEXGBzB/KwlR4ZfoNZlN=", /* long */
		"RWSYMC7n8ADplDfW2kiEMNo8BX8IPthSF1HxnEXGBzB/KwlR4ZfoNZk=",
		"RWSYMC7n8ADplDfW2kiEMNo8BX8IPthSF1HxnEXGBzB_KwlR4ZfoNZlN",
		"RWSYMC7n8ADplDfW2kiEMNo8BX8I\nPthSF1HxnEXGBzB/KwlR4ZfoNZlN",
		"RWSYMC7n8ADplDfW2kiEMNo8BX8IPthSF1HxnEXGBzB/KwlR4Zfo\xc3\xa9lN"};
	struct minisign_key k;
	char good[] = KEY;

	(void)state;
	assert_int_equal(minisign_parse_key(good, &k), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct minisign_key untouched = k;

		if (minisign_parse_key(bad[i], &k) != -EINVAL)
			fail_msg("taken: '%s'", bad[i]);
		assert_memory_equal(&k, &untouched, sizeof(k));
	}
#undef KEY
}

/* With the neutral point as the key and in the signature, the equation holds for all bytes. */
static void parse_key__of_small_order__refuses_it(void **state)
{
	static const unsigned char neutral[64] = {1};
	static const unsigned char lowest[] = {0, 1, 0xec, 0xed, 0xee, 0xc7, 0x26};
	static const unsigned char of_order_8[][31] = {
		{0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b, 0x76, 0x0d, 0x10,
			0x67, 0x0f, 0x2a, 0x20, 0x53, 0xfa, 0x2c, 0x39, 0xcc, 0xc6, 0x4e, 0xc7,
			0xfd, 0x77, 0x92, 0xac, 0x03},
		{0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef,
			0x98, 0xf0, 0xd5, 0xdf, 0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38,
			0x02, 0x88, 0x6d, 0x53, 0xfc},
	};
	struct signer weak = signer;
	struct minisign_key k;

	(void)state;
	assert_int_equal(
		EVP_PKEY_get_id(signer.pkey), EVP_PKEY_ED25519); /* and what such a key is worth: */
	assert_int_equal(digest_ed25519_verify(neutral, DOCUMENT, neutral), 0);
	for (size_t i = 0; i < sizeof(lowest); i++)
		for (unsigned sign = 0; sign <= 0x80; sign += 0x80) {
			bool order_8 = i >= 5;

			memset(weak.key, i < 2 ? 0 : 0xff, sizeof(weak.key));
			weak.key[31] = i < 2 ? 0 : 0x7f;
			if (order_8) {
				memcpy(weak.key, of_order_8[i - 5], 31);
				weak.key[31] = i == 5 ? 0x7a : 0x05;
			}
			weak.key[0] = lowest[i];
			weak.key[31] |= (unsigned char)sign;
			signer_name(&weak);
			assert_int_equal(minisign_parse_key(weak.text, &k), -EINVAL);
			weak.key[15] ^= 1;
			signer_name(&weak);
			assert_int_equal(minisign_parse_key(weak.text, &k), 0);
		}
}

/* ---- the tool's files ---- */

static int verify_golden(const char *name)
{
	struct file pub = golden("test.pub"), doc = golden("document.yaml"), sig = golden(name);
	char *keys[] = {pub.data, NULL};

	return verify_by(keys, doc.data, doc.len, sig.data, sig.len);
}

static void verify__of_the_tools_own_comment__has_no_rev(void **state)
{
	(void)state;
	assert_int_equal(verify_golden("default.minisig"), 0);
	assert_true(!facts.has_rev && !facts.has_expiry);
	assert_true(facts.rev == 0 && facts.expires_ms == 0);
	assert_string_equal(facts.key_id, "94E900F0E72E3098");
}

static void verify__with_rev_and_expiry__hands_them_over(void **state)
{
	(void)state;
	assert_int_equal(verify_golden("rev.minisig"), 0);
	assert_true(facts.has_rev && facts.rev == 7 && facts.has_expiry);
	assert_true(facts.expires_ms == SECONDS_2026_12_31 * 1000);
}

static void verify__of_the_legacy_kind__takes_it(void **state)
{
	(void)state;
	assert_int_equal(verify_golden("legacy.minisig"), 0);
	assert_true(facts.has_rev && facts.rev == 7 && !facts.has_expiry);
}

/* ---- keys and signatures that do not belong together ---- */

static void verify__by_a_key_that_is_not_listed__names_it_and_those_that_are(void **state)
{
	struct file pub = golden("test.pub");
	struct file doc = golden("document.yaml");
	struct file sig = golden("other.minisig");
	char *keys[] = {pub.data, signer.text, NULL, NULL};

	(void)state;
	assert_int_equal(verify_by(keys, doc.data, doc.len, sig.data, sig.len), -EBADMSG);
	assert_string_equal(why, "the signature by the key E03D00253CEDDF88 is not by one of the "
				 "public keys (94E900F0E72E3098, 0101010101010101)");
	assert_int_equal(verify_by(keys + 2, doc.data, doc.len, sig.data, sig.len), -EBADMSG);
	assert_non_null(strstr(why, "(none)"));
	pub = golden("other.pub");
	keys[2] = pub.data;
	assert_int_equal(verify_by(keys, doc.data, doc.len, sig.data, sig.len), 0);
	assert_string_equal(facts.key_id, "E03D00253CEDDF88");
}

static void verify__with_more_keys_than_a_sentence_holds__names_the_first_ones(void **state)
{
	struct file f = signed_with("");
	char *keys[10] = {0};

	(void)state;
	for (size_t i = 0; i < 8; i++)
		keys[i] = stranger.text;
	assert_int_equal(verify_by(keys, DOCUMENT, f.data, f.len), -EBADMSG);
	assert_null(strstr(why, "..."));
	assert_non_null(strstr(why, "(0202020202020202, 0202020202020202"));
	keys[8] = stranger.text;
	assert_int_equal(verify_by(keys, DOCUMENT, f.data, f.len), -EBADMSG);
	assert_string_equal(why + strlen(why) - 22, "0202020202020202, ...)");
	keys[9] = NULL;
	keys[8] = signer.text;
	assert_int_equal(verify_by(keys, DOCUMENT, f.data, f.len), 0);
}

static void verify__with_two_keys_of_one_id__takes_the_one_that_fits(void **state)
{
	struct signer twin = stranger;
	struct file f = signed_with("");
	char *keys[] = {twin.text, signer.text, NULL};

	(void)state;
	memcpy(twin.id, signer.id, sizeof(twin.id));
	signer_name(&twin);
	assert_int_equal(verify_by(keys, DOCUMENT, f.data, f.len), 0);
	keys[0] = signer.text;
	keys[1] = twin.text;
	assert_int_equal(verify_by(keys, DOCUMENT, f.data, f.len), 0);
	keys[0] = twin.text;
	assert_int_equal(verify_by(keys, DOCUMENT, f.data, f.len), -EBADMSG);
	assert_string_equal(
		why, "the signature by the key 0101010101010101 is not of this document");
}

static void verify__with_a_public_key_that_cannot_be_read__says_so(void **state)
{
	char broken[] = "RWS";
	struct file f = signed_with("");
	char *keys[] = {stranger.text, broken, signer.text, NULL};

	(void)state;
	assert_int_equal(verify_by(keys, DOCUMENT, f.data, f.len), -EINVAL);
	assert_non_null(strstr(why, "a public key is not one of minisign's"));
}

static void verify__of_another_document__refuses_it(void **state)
{
	struct file f = signed_with("rev=1");

	(void)state;
	assert_int_equal(verify("name: wed\n", 10, &f), -EBADMSG);
	assert_non_null(strstr(why, "is not of this document"));
	assert_int_equal(verify(document, sizeof(document) - 2, &f), -EBADMSG);
	assert_int_equal(verify(document, sizeof(document), &f), -EBADMSG); /* and its NUL */
	assert_int_equal(verify("", 0, &f), -EBADMSG);
	assert_int_equal(verify(DOCUMENT, &f), 0);
}

static void verify__of_an_empty_document__is_as_of_any_other(void **state)
{
	struct signer_job job = {.document = "", .comment = ""};
	struct file f;

	(void)state;
	for (int legacy = 0; legacy < 2; legacy++) {
		job.algorithm = legacy ? "Ed" : "ED";
		f.len = signer_file(&signer, &job, f.data);
		assert_int_equal(verify("", 0, &f), 0);
		assert_int_equal(verify(NULL, 0, &f), 0);
		assert_int_equal(verify("x", 1, &f), -EBADMSG);
	}
}

static void verify__of_a_forged_comment__refuses_it(void **state)
{
	struct file f = signed_with("rev=7"), other = signed_with("rev=8"), made;
	char text[200];
	size_t len;
	const char *line4 = line_of(&other, 4, &len);

	(void)state;
	made = with_line(&f, 3, "trusted comment: rev=8\n");
	assert_refused(-EBADMSG, "was made with another trusted comment", &made);
	made = with_line(&f, 3, "trusted comment: rev=7 \n");
	assert_refused(-EBADMSG, "was made with another trusted comment", &made);
	made = with_line(&f, 3, "trusted comment: \n");
	assert_refused(-EBADMSG, "was made with another trusted comment", &made);
	/* the comment of another signature, with the signature of that comment, by the same key */
	snprintf(text, sizeof(text), "%.*s\n", (int)len, line4);
	made = with_line(&f, 4, text);
	assert_refused(-EBADMSG, "was made with another trusted comment", &made);
}

static void verify__of_a_comment_moved_from_another_documents_signature__refuses_it(void **state)
{
	struct signer_job job = {
		.document = "old\n", .len = 4, .comment = "rev=9", .comment_len = 5};
	struct file f = signed_with("rev=7"), other, made;
	char line3[200], line4[200];
	const char *line;
	size_t len;

	(void)state;
	other.len = signer_file(&signer, &job, other.data);
	line = line_of(&other, 3, &len);
	snprintf(line3, sizeof(line3), "%.*s\n", (int)len, line);
	line = line_of(&other, 4, &len);
	snprintf(line4, sizeof(line4), "%.*s\n", (int)len, line);
	made = with_line(&f, 3, line3);
	made = with_line(&made, 4, line4);
	assert_refused(-EBADMSG, "was made with another trusted comment", &made);
}

/* ---- the two kinds ---- */

static void verify__with_any_other_algorithm__refuses_it(void **state)
{
	struct signer_job job = {.document = document, .len = sizeof(document) - 1, .comment = ""};
	unsigned char letters[2];
	size_t taken = 0;

	(void)state;
	for (int legacy = 0; legacy < 2; legacy++) {
		struct file f, made;
		unsigned char box[76];
		char line[142], text[140];
		size_t len;

		job.algorithm = legacy ? "Ed" : "ED";
		f.len = signer_file(&signer, &job, f.data);
		snprintf(text, sizeof(text), "%.100s", line_of(&f, 2, &len));
		assert_int_equal(len, 100);
		assert_int_equal(
			EVP_DecodeBlock(box, (unsigned char *)text, 100), 75); /* with padding */
		for (unsigned pair = 0; pair < 65536; pair++) {
			letters[0] = (unsigned char)(pair >> 8);
			letters[1] = (unsigned char)pair;
			memcpy(box, letters, 2);
			signer_encode(box, 74, text);
			snprintf(line, sizeof(line), "%s\n", text);
			made = with_line(&f, 2, line);
			if (verify(DOCUMENT, &made) == 0) {
				assert_memory_equal(letters, job.algorithm, 2);
				taken++;
			} else if (!memcmp(letters, "ED", 2) || !memcmp(letters, "Ed", 2)) {
				assert_non_null(strstr(why, "is not of this document"));
			} else {
				assert_non_null(strstr(why, "neither ED nor Ed"));
			}
		}
	}
	assert_int_equal(taken, 2);
}

static void verify__of_a_hash_as_the_document__refuses_it(void **state)
{
	struct signer_job job = {
		.algorithm = "Ed", .document = document, .comment = "rev=7", .comment_len = 5};
	unsigned char hash[64];
	struct file f;

	(void)state;
	/* the prehashed signature of the document, said to be a legacy one of its hash */
	assert_int_equal(EVP_Digest(DOCUMENT, hash, NULL, EVP_blake2b512(), NULL), 1);
	job.document = hash;
	job.len = sizeof(hash);
	f.len = signer_file(&signer, &job, f.data);
	assert_int_equal(verify(hash, sizeof(hash), &f), -EBADMSG);
	assert_non_null(strstr(why, "sign it without -l"));
	job.len = sizeof(hash) - 1;
	f.len = signer_file(&signer, &job, f.data);
	assert_int_equal(verify(hash, sizeof(hash) - 1, &f), 0);
	job.algorithm = "ED";
	job.len = sizeof(hash);
	f.len = signer_file(&signer, &job, f.data);
	assert_int_equal(verify(hash, sizeof(hash), &f), 0);
}

/* ---- the form of the file ---- */

static void verify__with_other_line_ends__takes_it(void **state)
{
	struct signer_job job = {.document = document,
		.len = sizeof(document) - 1,
		.comment = "rev=5\texpires=0",
		.comment_len = 15,
		.end = "\r\n"};
	struct file f;

	(void)state;
	f.len = signer_file(&signer, &job, f.data);
	for (size_t cut = 0; cut <= 2; cut++) { /* the last line without its end */
		f.len -= cut != 0;
		assert_int_equal(verify(DOCUMENT, &f), 0);
		assert_true(facts.has_rev && facts.rev == 5);
		assert_true(facts.has_expiry && facts.expires_ms == 0);
	}
	f = signed_with("rev=5");
	f.len--;
	assert_int_equal(verify(DOCUMENT, &f), 0);
}

static void verify__of_what_is_not_a_signature_file__says_which_line(void **state)
{
	struct file f = signed_with("rev=7"), made;
	char two[200], four[200], text[420];
	size_t len;
	const char *line = line_of(&f, 2, &len);

	(void)state;
	snprintf(two, sizeof(two), "%.*s", (int)len, line);
	line = line_of(&f, 4, &len);
	snprintf(four, sizeof(four), "%.*s", (int)len, line);

	made = with_line(&f, 1, "<html>not found</html>\n");
	assert_refused(-EINVAL, "line 1 does not begin with 'untrusted comment: '", &made);
	made = with_line(&f, 1, "");
	assert_refused(-EINVAL, "line 1", &made);
	made = with_line(&f, 1, " untrusted comment: x\n");
	assert_refused(-EINVAL, "line 1", &made);
	made = with_line(&f, 1, "untrusted comment: \n");
	assert_int_equal(verify(DOCUMENT, &made), 0);
	made = with_line(&f, 2, "");
	assert_refused(-EINVAL, "line 2 is not the base64 of 74 bytes", &made);
	made = with_line(&f, 3, "untrusted comment: rev=7\n");
	assert_refused(-EINVAL, "line 3 does not begin with 'trusted comment: '", &made);
	made = with_line(&f, 3, "trusted comment:rev=7\n");
	assert_refused(-EINVAL, "line 3", &made);
	made = with_line(&f, 4, "");
	assert_refused(-EINVAL, "line 4 is not the base64 of 64 bytes", &made);
	snprintf(text, sizeof(text), "%s\n%s\n", four, four);
	made = with_line(&f, 4, text);
	assert_refused(-EINVAL, "it goes on after line 4", &made);
	snprintf(text, sizeof(text), "%s\n\n", four);
	made = with_line(&f, 4, text);
	assert_refused(-EINVAL, "it goes on after line 4", &made);
	for (int n = 2; n <= 4; n += 2) {
		const char *good = n == 2 ? two : four;
		static const char *const forms[] = {" %s\n", "%s \n", "%s\t\n", "%s=\n", "=%s\n",
			"%s\r\r\n", "%s%s\n", "\n%s\n"};

		for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
			const char *form = forms[i], *hole = strstr(form, "%s");

			snprintf(text, sizeof(text), "%.*s%s%.5s", (int)(hole - form), form, good,
				hole + 2);
			made = with_line(&f, n, text);
			assert_refused(-EINVAL, n == 2 ? "line 2" : "line 4", &made);
		}
	}
	made.len = 0;
	assert_refused(-EINVAL, "line 1", &made);
}

/* The last digit of a group that is padded has bits of no byte; they must be zero. */
static void verify__of_base64_written_in_another_way__refuses_it(void **state)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	struct file f = signed_with("rev=7");
	size_t at[2], len, taken = 0;

	(void)state;
	at[0] = (size_t)(line_of(&f, 2, &len) - f.data) + 98;
	at[1] = (size_t)(line_of(&f, 4, &len) - f.data) + 85;
	for (size_t i = 0; i < 2; i++)
		for (size_t c = 1; c < 256; c++) {
			struct file made = f;
			const char *digit = memchr(digits, (int)c, 64);

			assert_int_equal(made.data[at[i] + 1], '=');
			made.data[at[i]] = (char)c;
			if (verify(DOCUMENT, &made) == 0) {
				assert_int_equal(made.data[at[i]], f.data[at[i]]);
				taken++;
			} else if (digit && (digit - digits) % (i == 0 ? 4 : 16) == 0) {
				assert_non_null(strstr(why, i == 0 ? "is not of this document"
								   : "another trusted comment"));
			} else {
				assert_non_null(strstr(why, i == 0 ? "line 2" : "line 4"));
			}
		}
	assert_int_equal(taken, 2);
}

static void verify__of_a_file_cut_anywhere__refuses_it(void **state)
{
	struct file f = signed_with("rev=7");
	size_t whole = f.len;

	(void)state;
	assert_int_equal(f.data[whole - 1], '\n');
	for (f.len = 0; f.len < whole - 1; f.len++)
		assert_int_equal(verify(DOCUMENT, &f), -EINVAL);
	f.len = whole;
	for (size_t i = 0; i < whole; i++) { /* one byte left out */
		struct file made = f;
		bool free_text = i >= strlen(UNTRUSTED) && f.data[i] != '\n' &&
				 i < (size_t)(strchr(f.data, '\n') - f.data);

		memmove(made.data + i, made.data + i + 1, made.len-- - i - 1);
		assert_true((verify(DOCUMENT, &made) == 0) == (free_text || i == whole - 1));
	}
}

static void verify__of_a_file_over_4_KiB__refuses_it(void **state)
{
	char comment[MINISIGN_MAX_FILE];
	struct signer_job job = {
		.document = document, .len = sizeof(document) - 1, .comment = comment};
	struct file f;

	(void)state;
	memset(comment, ' ', sizeof(comment));
	job.comment_len = MINISIGN_MAX_FILE - signed_with("").len;
	memcpy(comment + job.comment_len - 5, "rev=3", 5);
	f.len = signer_file(&signer, &job, f.data);
	assert_int_equal(f.len, MINISIGN_MAX_FILE);
	assert_int_equal(verify(DOCUMENT, &f), 0);
	assert_true(facts.has_rev && facts.rev == 3);
	job.comment_len++;
	f.len = signer_file(&signer, &job, f.data);
	assert_refused(-EINVAL, "larger than 4 KiB", &f);
	f = golden("rev.minisig");
	f.len = MINISIGN_MAX_FILE + 1;
	assert_refused(-EINVAL, "larger than 4 KiB", &f);
}

/* ---- the trusted comment ---- */

static void verify__of_each_rev__reads_it_or_says_why_not(void **state)
{
	static const struct {
		const char *comment;
		const char *fault; /* NULL = none */
		bool has;
		uint64_t rev;
	} table[] = {
		{"rev=0", NULL, true, 0},
		{"rev=18446744073709551615", NULL, true, UINT64_MAX},
		{"rev=18446744073709551609", NULL, true, UINT64_MAX - 6},
		{"rev=0000000000000000000000000000000000000042", NULL, true, 42},
		{" rev=1 ", NULL, true, 1},
		{"\t \trev=1\t", NULL, true, 1},
		{"a b rev=12\tc", NULL, true, 12},
		{"timestamp:1\tfile:x\thashed rev=2", NULL, true, 2},
		{"", NULL, false, 0},
		{" ", NULL, false, 0},
		{"\t", NULL, false, 0},
		{"rev", NULL, false, 0},
		{"xrev=1", NULL, false, 0},
		{"Rev=1", NULL, false, 0},
		{"rev:1", NULL, false, 0},
		{"rev=", "rev= is not a number", false, 0},
		{"rev= 1", "rev= is not a number", false, 0},
		{"rev=-1", "rev= is not a number", false, 0},
		{"rev=-0", "rev= is not a number", false, 0},
		{"rev=+1", "rev= is not a number", false, 0},
		{"rev=1.0", "rev= is not a number", false, 0},
		{"rev=0x1", "rev= is not a number", false, 0},
		{"rev=1e3", "rev= is not a number", false, 0},
		{"rev=1,", "rev= is not a number", false, 0},
		{"rev=1/", "rev= is not a number", false, 0},
		{"rev=1:", "rev= is not a number", false, 0},
		{"rev=\xd9\xa1", "rev= is not a number", false, 0},
		{"rev=1\r\xc2\xa0", "rev= is not a number", false, 0},
		{"rev=18446744073709551616", "rev= is not a number", false, 0},
		{"rev=18446744073709551620", "rev= is not a number", false, 0},
		{"rev=99999999999999999999", "rev= is not a number", false, 0},
		{"rev=184467440737095516150", "rev= is not a number", false, 0},
		{"rev=1 rev=1", "rev= is given twice", false, 0},
		{"rev=1 x rev=", "rev= is given twice", false, 0},
		{"rev= rev=1", "rev= is not a number", false, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct file f = signed_with(table[i].comment);

		if (table[i].fault) {
			assert_refused(-EINVAL, table[i].fault, &f);
			continue;
		}
		if (verify(DOCUMENT, &f) || facts.has_rev != table[i].has ||
			facts.rev != table[i].rev)
			fail_msg("'%s': %s, rev %" PRIu64, table[i].comment, why, facts.rev);
		assert_false(facts.has_expiry);
	}
}

static void verify__of_each_expiry__reads_it_or_says_why_not(void **state)
{
	static const struct {
		const char *comment;
		int64_t seconds; /* -1 = refused, -2 = none */
	} table[] = {
		{"expires=2026-12-31T00:00:00Z", SECONDS_2026_12_31},
		{"expires=1798675200", SECONDS_2026_12_31},
		{"rev=1\texpires=2026-12-31T23:59:59Z x", SECONDS_2026_12_31 + 86399},
		{"expires=0", 0},
		{"expires=1970-01-01T00:00:00Z", 0},
		{"expires=2024-02-29T12:00:00Z", 1709208000},
		{"expires=2000-02-29T00:00:00Z", 951782400},
		{"expires=2038-01-19T03:14:08Z", INT64_C(2147483648)},
		{"expires=9999-12-31T23:59:59Z", LAST_SECOND},
		{"expires=253402300799", LAST_SECOND},
		{"expires", -2},
		{"Expires=0", -2},
		{"expire=0", -2},
		{"expires=253402300800", -1},
		{"expires=1798675200000", -1}, /* that was milliseconds */
		{"expires=18446744073709551616", -1},
		{"expires=10000-01-01T00:00:0Z", -1},
		{"expires=", -1},
		{"expires=-1", -1},
		{"expires=never", -1},
		{"expires=1969-12-31T23:59:59Z", -1},
		{"expires=0000-01-01T00:00:00Z", -1},
		{"expires=2026-02-29T00:00:00Z", -1},
		{"expires=1900-02-29T00:00:00Z", -1},
		{"expires=2100-02-29T00:00:00Z", -1},
		{"expires=2026-04-31T00:00:00Z", -1},
		{"expires=2026-13-01T00:00:00Z", -1},
		{"expires=2026-00-01T00:00:00Z", -1},
		{"expires=2026-01-00T00:00:00Z", -1},
		{"expires=2026-01-32T00:00:00Z", -1},
		{"expires=2026-12-31T24:00:00Z", -1},
		{"expires=2026-12-31T23:60:00Z", -1},
		{"expires=2026-12-31T23:59:60Z", -1},
		{"expires=9999-12-31T23:59:60Z", -1},
		{"expires=2026-12-31T00:00:00", -1},
		{"expires=2026-12-31T00:00:00z", -1},
		{"expires=2026-12-31t00:00:00Z", -1},
		{"expires=2026-12-31T00:00:00ZZ", -1},
		{"expires=2026-12-31", -1},
		{"expires=2026-12-31T00:00Z", -1},
		{"expires=2026-12-31T00:00:00+00:00", -1},
		{"expires=+026-12-31T00:00:00Z", -1},
		{"expires=2026-1-031T00:00:00Z", -1},
		{"expires=02026-12-31T00:00:0Z", -1},
		{"expires=2026-12-31T00:00:0\xd9Z", -1},
		{"expires=20261231T0000000000Z", -1},
		{"expires=1 expires=1", -1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct file f = signed_with(table[i].comment);
		int r = verify(DOCUMENT, &f);

		if (r != (table[i].seconds == -1 ? -EINVAL : 0))
			fail_msg("'%s': %d %s", table[i].comment, r, why);
		if (r) {
			assert_non_null(strstr(why, "expires= "));
			continue;
		}
		assert_int_equal(facts.has_expiry, table[i].seconds >= 0);
		if (facts.has_expiry && facts.expires_ms != table[i].seconds * 1000)
			fail_msg("'%s': %" PRId64, table[i].comment, facts.expires_ms);
	}
}

static void verify__of_a_file_with_a_nul__refuses_it(void **state)
{
	static const char comment[] = "rev=7\0";
	struct signer_job job = {.document = document,
		.len = sizeof(document) - 1,
		.comment = comment,
		.comment_len = sizeof(comment) - 1};
	struct file f;

	(void)state;
	f.len = signer_file(&signer, &job, f.data);
	assert_refused(-EINVAL, "it holds a NUL byte", &f);
	f = signed_with("rev=7");
	f.data[strlen(UNTRUSTED)] = '\0';
	assert_refused(-EINVAL, "it holds a NUL byte", &f);
	f = signed_with("rev=7");
	f.len++; /* the text's own NUL */
	f.data[f.len - 1] = '\0';
	assert_refused(-EINVAL, "it holds a NUL byte", &f);
}

/* ---- tampering ---- */

struct sample {
	char key[64];
	char document[LARGEST];
	size_t len;
	struct file file;
};

static struct sample random_sample(void)
{
	static const char *const comments[] = {"", "rev=7", "timestamp:1\tfile:a.yaml\thashed",
		"rev=18446744073709551615 expires=2026-12-31T00:00:00Z", "M"};
	struct sample s;
	struct signer_job job = {.document = s.document, .algorithm = "ED"};

	s.len = 1 + random_below(random_below(2) ? 100 : LARGEST);
	for (size_t i = 0; i < s.len; i++)
		s.document[i] = (char)random_bits();
	job.len = s.len;
	if (s.len != 64 && random_below(2))
		job.algorithm = "Ed";
	job.end = random_below(2) ? "\n" : "\r\n";
	job.comment = comments[random_below(sizeof(comments) / sizeof(comments[0]))];
	job.comment_len = strlen(job.comment);
	s.file.len = signer_file(&signer, &job, s.file.data);
	memcpy(s.key, signer.text, sizeof(s.key));
	return s;
}

static struct sample golden_sample(size_t which)
{
	static const char *const names[] = {"default.minisig", "rev.minisig", "legacy.minisig"};
	struct file doc = golden("document.yaml"), pub = golden("test.pub");
	struct sample s = {.len = doc.len, .file = golden(names[which])};
	size_t len;

	memcpy(s.document, doc.data, doc.len);
	snprintf(s.key, sizeof(s.key), "%.56s", line_of(&pub, 2, &len));
	return s;
}

static bool accepted(struct sample *s)
{
	char *keys[] = {s->key, NULL};

	return verify_by(keys, s->document, s->len, s->file.data, s->file.len) == 0;
}

static void flip(char *data, size_t bit)
{
	data[bit / 8] = (char)((unsigned char)data[bit / 8] ^ 1u << bit % 8);
}

/* Flips one bit of what is signed or says who signed it: all but the text of the untrusted comment.
 */
static void tamper(struct sample *s)
{
	size_t free_text = strlen(UNTRUSTED);
	size_t free_end = (size_t)(strchr(s->file.data, '\n') - s->file.data);
	uint64_t part = random_below(4);
	size_t bit;

	if (part == 0) {
		flip(s->document, random_below(s->len * 8));
	} else if (part == 1) {
		flip(s->key, random_below(strlen(s->key) * 8));
	} else {
		do
			bit = random_below(s->file.len * 8);
		while (bit / 8 >= free_text && bit / 8 < free_end);
		flip(s->file.data, bit);
	}
}

/* Each bit of `len` bytes, but those between. Returns how many there were. */
static size_t flip_each(struct sample *s, char *data, size_t len, size_t free_text, size_t free_end)
{
	size_t flips = 0;

	for (size_t bit = 0; bit < len * 8; bit++) {
		if (bit / 8 >= free_text && bit / 8 < free_end)
			continue;
		flip(data, bit);
		CHECK(!accepted(s));
		flip(data, bit);
		flips++;
	}
	return flips;
}

/* The first three are of the tool, the others so short that it takes seconds. */
static struct sample sample_of(uint64_t number)
{
	struct sample s;

	if (number < 3)
		return golden_sample(number);
	do
		s = random_sample();
	while (s.len > 64);
	return s;
}

static void verify__with_each_bit_of_signed_documents_flipped__accepts_none(void **state)
{
	size_t flips = 0, end;

	(void)state;
	model_random_start();
	for (; model_random.step < SIGNED; model_random.step++) {
		struct sample s = sample_of(model_random.step);

		CHECK(accepted(&s));
		end = (size_t)(strchr(s.file.data, '\n') - s.file.data);
		flips += flip_each(&s, s.document, s.len, 0, 0);
		flips += flip_each(&s, s.key, strlen(s.key), 0, 0);
		flips += flip_each(&s, s.file.data, s.file.len, strlen(UNTRUSTED), end);
		CHECK(accepted(&s));
	}
	print_message("# %zu bits of %d signed documents\n", flips, SIGNED);
}

static void verify__of_a_thousand_tampered_files__accepts_none(void **state)
{
	(void)state;
	model_random_start();
	for (; model_random.step < TAMPERED; model_random.step++) {
		uint64_t which = random_below(6);
		struct sample s = which < 3 ? golden_sample(which) : random_sample();

		CHECK(accepted(&s)); /* else the rest proves nothing */
		tamper(&s);
		CHECK(!accepted(&s));
	}
}

/* Nobody signed it, so nothing may depend on it. */
static void verify__with_the_untrusted_comment_tampered__takes_the_same_facts(void **state)
{
	struct sample s = golden_sample(1);
	size_t end = (size_t)(strchr(s.file.data, '\n') - s.file.data);

	(void)state;
	for (size_t bit = strlen(UNTRUSTED) * 8; bit < end * 8; bit++) {
		flip(s.file.data, bit);
		if (memchr(s.file.data, '\n', end) || memchr(s.file.data, '\0', end)) {
			assert_false(accepted(&s));
		} else {
			assert_true(accepted(&s));
			assert_true(facts.has_rev && facts.rev == 7);
			assert_true(facts.expires_ms == SECONDS_2026_12_31 * 1000);
			assert_string_equal(facts.key_id, "94E900F0E72E3098");
		}
		flip(s.file.data, bit);
	}
}

static void verify__when_memory_runs_out__refuses_and_says_so(void **state)
{
	(void)state;
	for (size_t which = 1; which < 3; which++) { /* prehashed, legacy */
		struct sample s = golden_sample(which);
		size_t nth = 0, said = 0;
		bool failed, ok;

		assert_true(accepted(&s));
		do {
			fault_crypto_fail(++nth);
			ok = accepted(&s);
			failed = fault_crypto_failed();
			assert_true(failed || ok);
			assert_true(which == 2 || nth > 1 || strstr(why, "no memory"));
			said += strstr(why, "no memory") != NULL;
		} while (failed);
		assert_true(said >= 3); /* each of the calls */
	}
}

static int begin(void **state)
{
	(void)state;
	signer_init(&signer, 1);
	signer_init(&stranger, 2);
	return 0;
}

static int end(void **state)
{
	(void)state;
	signer_fini(&signer);
	signer_fini(&stranger);
	return 0;
}

#define CASE(name) cmocka_unit_test(name)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(parse_key__of_what_the_tool_prints__takes_it),
		CASE(parse_key__of_anything_else__refuses_it),
		CASE(parse_key__of_small_order__refuses_it),
		CASE(verify__of_the_tools_own_comment__has_no_rev),
		CASE(verify__with_rev_and_expiry__hands_them_over),
		CASE(verify__of_the_legacy_kind__takes_it),
		CASE(verify__by_a_key_that_is_not_listed__names_it_and_those_that_are),
		CASE(verify__with_more_keys_than_a_sentence_holds__names_the_first_ones),
		CASE(verify__with_two_keys_of_one_id__takes_the_one_that_fits),
		CASE(verify__with_a_public_key_that_cannot_be_read__says_so),
		CASE(verify__of_another_document__refuses_it),
		CASE(verify__of_an_empty_document__is_as_of_any_other),
		CASE(verify__of_a_forged_comment__refuses_it),
		CASE(verify__of_a_comment_moved_from_another_documents_signature__refuses_it),
		CASE(verify__with_any_other_algorithm__refuses_it),
		CASE(verify__of_a_hash_as_the_document__refuses_it),
		CASE(verify__with_other_line_ends__takes_it),
		CASE(verify__of_what_is_not_a_signature_file__says_which_line),
		CASE(verify__of_base64_written_in_another_way__refuses_it),
		CASE(verify__of_a_file_cut_anywhere__refuses_it),
		CASE(verify__of_a_file_over_4_KiB__refuses_it),
		CASE(verify__of_each_rev__reads_it_or_says_why_not),
		CASE(verify__of_each_expiry__reads_it_or_says_why_not),
		CASE(verify__of_a_file_with_a_nul__refuses_it),
		CASE(verify__of_a_thousand_tampered_files__accepts_none),
		cmocka_unit_test(verify__with_each_bit_of_signed_documents_flipped__accepts_none),
		CASE(verify__with_the_untrusted_comment_tampered__takes_the_same_facts),
		CASE(verify__when_memory_runs_out__refuses_and_says_so),
	};

	if (!fault_crypto_start()) {
		fprintf(stderr, "libcrypto is in use before the test begins\n");
		return 1;
	}
	return cmocka_run_group_tests(tests, begin, end);
}
