/*
 * minisign's files, read strictly, and what they prove.
 *
 * Surprising: no signature covers the two letters that say which kind it is, so the
 * signature of a document's hash is also a legacy one of a document that consists of those 64
 * bytes. So a legacy signature of 64 bytes is rejected.
 */
#include "crypto/minisign.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "crypto/base64.h"
#include "crypto/digest.h"

#define UNTRUSTED "untrusted comment: "
#define TRUSTED "trusted comment: "
#define LAST_SECOND UINT64_C(253402300799) /* of the year 9999 */
#define MOMENT "%Y-%m-%dT%H:%M:%SZ"
#define MOMENT_LEN 20
#define KEYS_NAMED 8 /* in a sentence */
#define NAMED 60     /* bytes of a path in a sentence */

struct text {
	const char *data;
	size_t len;
};

struct parts {
	bool legacy;
	unsigned char id[MINISIGN_ID];
	unsigned char signature[DIGEST_ED25519_SIGNATURE];
	struct text comment;
	unsigned char comment_signature[DIGEST_ED25519_SIGNATURE];
};

/* ---- text ---- */

/* Takes the text before the first of the ends, and that end, out of the rest. */
static struct text take_until(struct text *rest, const char *ends)
{
	struct text t = {rest->data, 0};
	size_t taken;

	while (t.len < rest->len && !memchr(ends, rest->data[t.len], strlen(ends)))
		t.len++;
	taken = t.len + (t.len < rest->len);
	rest->data = taken ? rest->data + taken : rest->data;
	rest->len -= taken;
	return t;
}

static struct text take_line(struct text *rest)
{
	struct text line = take_until(rest, "\n");

	if (line.len && line.data[line.len - 1] == '\r')
		line.len--;
	return line;
}

static bool take_prefix(struct text *t, const char *prefix)
{
	size_t len = strlen(prefix);

	if (t->len < len || memcmp(t->data, prefix, len))
		return false;
	t->data += len;
	t->len -= len;
	return true;
}

/* Base64 of exactly size bytes. */
static bool decode_exactly(struct text t, unsigned char *ret, size_t size)
{
	size_t len;

	return base64_decode(t.data, t.len, ret, size, &len) == 0 && len == size;
}

/* ---- keys ---- */

/* Compares with the points whose order divides 8, without the sign; two of them can be written in
 * two ways. */
static bool has_small_order(const unsigned char key[MINISIGN_KEY])
{
	static const char points[][MINISIGN_KEY + 1] = {
		"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
		"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
		"\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
		"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
		"\xec\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"
		"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
		"\xed\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"
		"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
		"\xee\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"
		"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
		"\xc7\x17\x6a\x70\x3d\x4d\xd8\x4f\xba\x3c\x0b\x76\x0d\x10\x67\x0f"
		"\x2a\x20\x53\xfa\x2c\x39\xcc\xc6\x4e\xc7\xfd\x77\x92\xac\x03\x7a",
		"\x26\xe8\x95\x8f\xc2\xb2\x27\xb0\x45\xc3\xf4\x89\xf2\xef\x98\xf0"
		"\xd5\xdf\xac\x05\xd3\xc6\x33\x39\xb1\x38\x02\x88\x6d\x53\xfc\x05",
	};

	for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++)
		if (!memcmp(points[i], key, MINISIGN_KEY - 1) &&
			(unsigned char)points[i][MINISIGN_KEY - 1] ==
				(key[MINISIGN_KEY - 1] & 0x7f))
			return true;
	return false;
}

int minisign_parse_key(const char *text, struct minisign_key *ret_key)
{
	struct text rest = {text, strlen(text)}, line = take_line(&rest);
	unsigned char box[2 + MINISIGN_ID + MINISIGN_KEY];

	if (take_prefix(&line, UNTRUSTED))
		line = take_line(&rest);
	if (!decode_exactly(line, box, sizeof(box)) || rest.len || memcmp(box, "Ed", 2) ||
		has_small_order(box + 2 + MINISIGN_ID))
		return -EINVAL;
	memcpy(ret_key->id, box + 2, MINISIGN_ID);
	memcpy(ret_key->key, box + 2 + MINISIGN_ID, MINISIGN_KEY);
	return 0;
}

/* The tool takes the id for a little-endian number. */
static void name_key(const unsigned char id[MINISIGN_ID], char ret_name[17])
{
	for (size_t i = 0; i < MINISIGN_ID; i++)
		snprintf(ret_name + 2 * i, 3, "%02X", id[MINISIGN_ID - 1 - i]);
}

/* Writes "A, B, ...". The public keys are valid. */
static void list_keys(char *const *public_keys, char *ret_text, size_t size)
{
	size_t at = 0;

	snprintf(ret_text, size, "none");
	for (size_t n = 0; n <= KEYS_NAMED && public_keys[n]; n++) {
		struct minisign_key k = {0};
		char name[17] = "...";

		minisign_parse_key(public_keys[n], &k);
		if (n < KEYS_NAMED)
			name_key(k.id, name);
		at += (size_t)snprintf(ret_text + at, size - at, "%s%s", n ? ", " : "", name);
	}
}

/* ---- the signature file ---- */

static const char *read_signature_parts(struct text rest, struct parts *ret)
{
	struct text lines[4];
	unsigned char box[2 + MINISIGN_ID + DIGEST_ED25519_SIGNATURE];

	if (rest.len > MINISIGN_MAX_FILE)
		return "it is larger than 4 KiB";
	if (rest.len && memchr(rest.data, '\0', rest.len))
		return "it holds a NUL byte";
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		lines[i] = take_line(&rest);
	if (!take_prefix(&lines[0], UNTRUSTED))
		return "line 1 does not begin with '" UNTRUSTED "'";
	if (!decode_exactly(lines[1], box, sizeof(box)))
		return "line 2 is not the base64 of 74 bytes";
	if (memcmp(box, "ED", 2) && memcmp(box, "Ed", 2))
		return "line 2 has an algorithm that is neither ED nor Ed";
	if (!take_prefix(&lines[2], TRUSTED))
		return "line 3 does not begin with '" TRUSTED "'";
	if (!decode_exactly(lines[3], ret->comment_signature, sizeof(ret->comment_signature)))
		return "line 4 is not the base64 of 64 bytes";
	if (rest.len)
		return "it goes on after line 4";
	ret->legacy = box[1] == 'd';
	memcpy(ret->id, box + 2, sizeof(ret->id));
	memcpy(ret->signature, box + 2 + MINISIGN_ID, sizeof(ret->signature));
	ret->comment = lines[2];
	return NULL;
}

/* ---- verifying ---- */

enum verdict {
	GENUINE,
	UNLISTED,
	OTHER_DOCUMENT,
	OTHER_COMMENT,
	AMBIGUOUS,
	UNREADABLE_KEY,
	UNCHECKED
};

/* digest_ed25519_verify with a verdict of its own for "no". */
static enum verdict verify_with_key(const struct minisign_key *key, const void *data, size_t len,
	const unsigned char *signature, enum verdict no)
{
	int r = digest_ed25519_verify(key->key, data, len, signature);

	return r == 0 ? GENUINE : r == -EBADMSG ? no : UNCHECKED;
}

/* Two keys may have the same id: it is not derived from the key. */
static enum verdict find_signer(char *const *public_keys, const struct parts *p, const void *data,
	size_t len, struct minisign_key *ret_key)
{
	enum verdict v = UNLISTED;

	for (; *public_keys && (v == UNLISTED || v == OTHER_DOCUMENT); public_keys++) {
		if (minisign_parse_key(*public_keys, ret_key))
			return UNREADABLE_KEY;
		if (!memcmp(ret_key->id, p->id, MINISIGN_ID))
			v = verify_with_key(ret_key, data, len, p->signature, OTHER_DOCUMENT);
	}
	return v;
}

static enum verdict check_comment(const struct parts *p, const struct minisign_key *key)
{
	unsigned char both[DIGEST_ED25519_SIGNATURE + MINISIGN_MAX_FILE];

	memcpy(both, p->signature, sizeof(p->signature));
	memcpy(both + sizeof(p->signature), p->comment.data, p->comment.len);
	return verify_with_key(key, both, sizeof(p->signature) + p->comment.len,
		p->comment_signature, OTHER_COMMENT);
}

static enum verdict verify_parts(
	char *const *public_keys, const struct parts *p, const void *document, size_t len)
{
	unsigned char hash[DIGEST_BLAKE2B512];
	struct minisign_key key;
	enum verdict v;

	if (p->legacy && len == sizeof(hash))
		return AMBIGUOUS;
	if (!p->legacy) {
		if (digest_blake2b512(document, len, hash))
			return UNCHECKED;
		document = hash;
		len = sizeof(hash);
	}
	v = find_signer(public_keys, p, document, len, &key);
	return v == GENUINE ? check_comment(p, &key) : v;
}

/* ---- the trusted comment ---- */

static bool read_unsigned(struct text t, uint64_t max, uint64_t *ret)
{
	uint64_t n = 0;

	for (size_t i = 0; i < t.len; i++) {
		unsigned digit = (unsigned char)t.data[i] - (unsigned)'0';

		if (digit > 9 || n > (max - digit) / 10)
			return false;
		n = n * 10 + digit;
	}
	*ret = n;
	return t.len > 0;
}

/* A moment that does not read back as it was written is none: 31 February, 24:00:00. */
static bool read_moment(struct text t, int64_t *ret_ms)
{
	char text[MOMENT_LEN + 1], again[32];
	struct tm tm = {0};
	uint64_t seconds;
	time_t at;

	if (read_unsigned(t, LAST_SECOND, &seconds)) {
		*ret_ms = (int64_t)seconds * 1000;
		return true;
	}
	if (t.len != MOMENT_LEN)
		return false;
	memcpy(text, t.data, MOMENT_LEN);
	text[MOMENT_LEN] = '\0';
	if (!strptime(text, MOMENT, &tm))
		return false;
	at = timegm(&tm);
	*ret_ms = (int64_t)at * 1000;
	return at >= 0 && strftime(again, sizeof(again), MOMENT, &tm) && !strcmp(again, text);
}

static bool is_letter_or_digit(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* The name of a config, as settings have it. */
static bool read_config_name(struct text t, char ret_name[MINISIGN_NAME])
{
	if (t.len == 0 || t.len >= MINISIGN_NAME || !is_letter_or_digit((unsigned char)t.data[0]))
		return false;
	for (size_t i = 0; i < t.len; i++)
		if (!is_letter_or_digit((unsigned char)t.data[i]) && !memchr("._-", t.data[i], 3))
			return false;
	memcpy(ret_name, t.data, t.len);
	ret_name[t.len] = '\0';
	return true;
}

static bool read_path(struct text t, char ret_path[MINISIGN_PATH])
{
	if (t.len == 0 || t.len >= MINISIGN_PATH || t.data[0] != '/')
		return false;
	for (size_t i = 0; i < t.len; i++)
		if ((unsigned char)t.data[i] <= ' ' || memchr("\x7f?#", t.data[i], 3))
			return false;
	memcpy(ret_path, t.data, t.len);
	ret_path[t.len] = '\0';
	return true;
}

static const char *read_word(struct text word, struct minisign_facts *f)
{
	if (take_prefix(&word, "rev=")) {
		if (f->has_rev)
			return "rev= is given twice";
		f->has_rev = true;
		if (!read_unsigned(word, UINT64_MAX, &f->rev))
			return "rev= is not a number from 0 to 18446744073709551615";
	} else if (take_prefix(&word, "expires=")) {
		if (f->has_expiry)
			return "expires= is given twice";
		f->has_expiry = true;
		if (!read_moment(word, &f->expires_ms))
			return "expires= is neither like 2026-12-31T00:00:00Z nor seconds since "
			       "1970, or not between 1970 and 9999";
	} else if (take_prefix(&word, "config=")) {
		if (f->config[0])
			return "config= is given twice";
		if (!read_config_name(word, f->config))
			return "config= is not the name of a config";
	} else if (take_prefix(&word, "path=")) {
		if (f->path[0])
			return "path= is given twice";
		if (!read_path(word, f->path))
			return "path= is not a path: a / first, no blank, no control character, "
			       "no query";
	}
	return NULL;
}

static const char *read_comment(struct text t, struct minisign_facts *f)
{
	const char *fault = NULL;

	while (t.len && !fault)
		fault = read_word(take_until(&t, " \t"), f);
	return fault;
}

/* ---- the whole ---- */

/* Explains the verdict on the signature by the key of that name. */
static int explain_verdict(
	enum verdict v, char *const *public_keys, const char *name, char why[FILE_WHY])
{
	static const struct {
		int error;
		const char *sentence;
	} table[] = {
		[UNLISTED] = {-EBADMSG, "is not by one of the public keys"},
		[OTHER_DOCUMENT] = {-EBADMSG, "is not of this document"},
		[OTHER_COMMENT] = {-EBADMSG, "was made with another trusted comment"},
		[AMBIGUOUS] = {-EBADMSG,
			"is a legacy one, which proves nothing of a document of 64 "
			"bytes: sign it without -l"},
		[UNREADABLE_KEY] = {-EINVAL,
			"cannot be checked: a public key is not one of minisign's"},
		[UNCHECKED] = {-ENOMEM, "cannot be checked: no memory, or libcrypto is set up "
					"without BLAKE2b or Ed25519"},
	};
	char listed[(KEYS_NAMED + 1) * 18 + 1];

	snprintf(why, FILE_WHY, "the signature by the key %s %s", name, table[v].sentence);
	if (v == UNLISTED) {
		list_keys(public_keys, listed, sizeof(listed));
		snprintf(why + strlen(why), FILE_WHY - strlen(why), " (%s)", listed);
	}
	return table[v].error;
}

int minisign_verify(char *const *public_keys, const void *document, size_t len, const char *minisig,
	size_t minisig_len, struct minisign_facts *ret_facts, char why[FILE_WHY])
{
	struct minisign_facts facts = {0};
	struct parts p;
	const char *fault = read_signature_parts((struct text){minisig, minisig_len}, &p);
	enum verdict v;

	if (fault) {
		snprintf(why, FILE_WHY, "that is not a signature file of minisign: %s", fault);
		return -EINVAL;
	}
	name_key(p.id, facts.key_id);
	v = verify_parts(public_keys, &p, document, len);
	if (v != GENUINE)
		return explain_verdict(v, public_keys, facts.key_id, why);
	fault = read_comment(p.comment, &facts);
	if (fault) {
		snprintf(why, FILE_WHY, "the trusted comment by the key %s: %s", facts.key_id,
			fault);
		return -EINVAL;
	}
	*ret_facts = facts;
	return 0;
}

int minisign_read_comment(const char *public_key, const char *minisig, size_t minisig_len,
	struct minisign_facts *ret_facts)
{
	struct minisign_facts facts = {0};
	struct minisign_key key;
	struct parts p;
	enum verdict v;

	if (read_signature_parts((struct text){minisig, minisig_len}, &p) ||
		minisign_parse_key(public_key, &key))
		return -EINVAL;
	name_key(p.id, facts.key_id);
	v = check_comment(&p, &key);
	if (v != GENUINE)
		return v == UNCHECKED ? -ENOMEM : -EBADMSG;
	if (read_comment(p.comment, &facts))
		return -EINVAL;
	*ret_facts = facts;
	return 0;
}

/* ---- the demand ---- */

static size_t path_len(const char *path)
{
	return strcspn(path, "?");
}

static bool same_path(const char *named, const char *path)
{
	size_t len = path_len(path);

	if (len == 0)
		return strcmp(named, "/") == 0; /* of a URL without a path */
	return strlen(named) == len && memcmp(named, path, len) == 0;
}

/* True when it can be shown on any terminal. */
static bool is_printable(const char *text)
{
	for (; *text; text++)
		if (*text < '!' || *text > '~')
			return false;
	return true;
}

/* "KEY says path=/a, so it is of another document, not of path=/b: ..." */
static int reject_other_name(const struct minisign_facts *f, const char *word, const char *named,
	const char *ours, size_t len, char why[FILE_WHY])
{
	int shown = (int)(len < NAMED ? len : NAMED);
	bool plain = is_printable(named);

	snprintf(why, FILE_WHY,
		"the signature by the key %s is for something else: it says %s=%.60s%s, and this "
		"is %s=%.*s: publish what was signed for it (pullet sign FILE -s KEY --%s %.*s)",
		f->key_id, word, plain ? named : "", plain ? "" : "(not ASCII)", word, shown, ours,
		word, shown, ours);
	return -EBADMSG;
}

static int reject_missing_name(const struct minisign_facts *f, const char *word, const char *ours,
	size_t len, char why[FILE_WHY])
{
	int shown = (int)(len < NAMED ? len : NAMED);

	snprintf(why, FILE_WHY,
		"the signature by the key %s does not say what it is for: %s=%.*s is required "
		"(verify: bind: %s); sign it with `pullet sign FILE -s KEY --%s %.*s`, or "
		"minisign -t 'rev=N %s=%.*s'",
		f->key_id, word, shown, ours, word, word, shown, ours, word, shown, ours);
	return -EBADMSG;
}

int minisign_check(
	const struct minisign_facts *f, const struct minisign_demand *d, char why[FILE_WHY])
{
	const char *path = path_len(d->path) ? d->path : "/"; /* of a URL without one */

	if (f->config[0] && strcmp(f->config, d->config) != 0)
		return reject_other_name(f, "config", f->config, d->config, strlen(d->config), why);
	if (f->path[0] && !same_path(f->path, d->path) &&
		!(d->or_path && same_path(f->path, d->or_path)))
		return reject_other_name(f, "path", f->path, path, path_len(path), why);
	if (d->names_config && !f->config[0])
		return reject_missing_name(f, "config", d->config, strlen(d->config), why);
	if (d->names_path && !f->path[0])
		return reject_missing_name(f, "path", path, path_len(path), why);
	if (d->has_rev && !f->has_rev) {
		snprintf(why, FILE_WHY,
			"the signature by the key %s has no rev=, which is required (verify: rev: "
			"required): `pullet sign` gives one, minisign with -t 'rev=N'",
			f->key_id);
		return -EBADMSG;
	}
	return 0;
}
