/*
 * Fuzz target: a signature file, a public key, or a trusted comment; the first byte says which
 * (f, k, c). A comment is signed here, else no input would get as far as its words.
 *
 * What is checked beside memory: a refusal has one printable line and leaves the facts; a file is
 * taken only if its second line is the one signature of the document that the key made; a key that
 * is taken has one way of writing it; the words of a comment are found as a plain search finds
 * them.
 */
#include <stdint.h>

#include "crypto/minisign.h"
#include "tests/unit/fixture/minisign_signer.h"

#define DOCUMENT "name: web\n"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int verify(struct signer *s, const char *file, size_t len, struct minisign_facts *ret_facts)
{
	char *keys[] = {s->text, NULL};
	char why[FILE_WHY] = "";
	struct minisign_facts facts, untouched;
	int r;

	memset(&facts, 0x5a, sizeof(facts));
	untouched = facts;
	r = minisign_verify(keys, DOCUMENT, strlen(DOCUMENT), file, len, &facts, why);
	signer_demand((r == 0) == (why[0] == '\0') && strlen(why) < sizeof(why));
	signer_demand(r == 0 || !memcmp(&facts, &untouched, sizeof(facts)));
	for (const char *c = why; *c; c++)
		signer_demand(*c >= 0x20 && *c < 0x7f);
	if (r == 0) {
		signer_demand(!strcmp(facts.key_id, "0101010101010101"));
		signer_demand(facts.has_rev || facts.rev == 0);
		signer_demand(facts.has_expiry || facts.expires_ms == 0);
		signer_demand(
			facts.expires_ms >= 0 && facts.expires_ms <= INT64_C(253402300799000));
		*ret_facts = facts;
	}
	return r;
}

static void try_file(struct signer *s, const char *data, size_t size)
{
	struct minisign_facts facts;
	char made[2][SIGNER_FILE];
	struct signer_job job = {.document = DOCUMENT, .len = strlen(DOCUMENT), .comment = ""};
	size_t head = strlen("untrusted comment: by a test\n"), line = 100;
	const char *second = memchr(data, '\n', size);

	if (verify(s, data, size, &facts))
		return;
	signer_demand(second++ != NULL && size - (size_t)(second - data) > line);
	for (int i = 0; i < 2; i++) {
		job.algorithm = i ? "Ed" : "ED";
		signer_file(s, &job, made[i]);
	}
	signer_demand(
		!memcmp(second, made[0] + head, line) || !memcmp(second, made[1] + head, line));
}

static void try_key(const char *data, size_t size)
{
	char *text = malloc(size + 1), *again;
	struct signer s = {0};
	struct minisign_key k;

	signer_demand(text != NULL);
	memcpy(text, data, size);
	text[size] = '\0';
	if (!minisign_parse_key(text, &k)) {
		memcpy(s.id, k.id, sizeof(s.id));
		memcpy(s.key, k.key, sizeof(s.key));
		signer_name(&s);
		again = strstr(text, s.text);
		signer_demand(again == text || (again && again[-1] == '\n'));
	}
	free(text);
}

/* How many words begin so. */
static size_t words(const char *data, size_t size, const char *begin)
{
	size_t n = 0, len = strlen(begin);

	for (size_t i = 0; i + len <= size; i++)
		n += !memcmp(data + i, begin, len) &&
		     (i == 0 || data[i - 1] == ' ' || data[i - 1] == '\t');
	return n;
}

static void try_comment(struct signer *s, const char *data, size_t size)
{
	struct signer_job job = {.document = DOCUMENT,
		.len = strlen(DOCUMENT),
		.comment = data,
		.comment_len = size};
	struct minisign_facts facts = {0};
	char file[SIGNER_FILE];
	size_t len, revs = words(data, size, "rev="), expiries = words(data, size, "expires=");
	int r;

	if (size > 5000)
		return;
	len = signer_file(s, &job, file);
	r = verify(s, file, len, &facts);
	if (r == 0)
		signer_demand(facts.has_rev == (revs == 1) && facts.has_expiry == (expiries == 1));
	if (memchr(data, '\n', size) || memchr(data, '\0', size) || len > MINISIGN_MAX_FILE ||
		revs > 1 || expiries > 1)
		signer_demand(r != 0);
	else if (revs + expiries == 0 && (size == 0 || data[size - 1] != '\r'))
		signer_demand(r == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct signer s;

	if (size == 0)
		return 0;
	signer_init(&s, 1);
	if (*text == 'f')
		try_file(&s, text + 1, size - 1);
	else if (*text == 'k')
		try_key(text + 1, size - 1);
	else if (*text == 'c')
		try_comment(&s, text + 1, size - 1);
	signer_fini(&s);
	return 0;
}
