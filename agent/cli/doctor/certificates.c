/*
 * What tls: of a server names: until when its certificates are good, and whether the key is the
 * certificate's. Surprising: libcrypto would ask for a key's passphrase at the terminal; the agent
 * has none, so a key that wants one is an error.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include <openssl/pem.h>
#include <openssl/x509.h>

#include "cli/doctor/doctor.h"

#define MAX_BYTES (1u << 20) /* of a file; what is behind is not looked at */
#define DAY_MS (INT64_C(24) * 3600 * 1000)
#define SOON_MS (14 * DAY_MS)

/* What a file of certificates comes to. */
struct term {
	size_t count;
	int64_t from_ms, until_ms; /* all of them, or (authorities) any of them: good */
	int64_t life_ms;           /* of the one that ends then */
};

/* What is said of a file. */
struct sentences {
	const char *what, *none, *renew;
	const char *over; /* expired, or will: what follows from it */
	bool any;         /* one that is good is enough */
};

static const struct sentences of_cert = {
	.what = "tls.cert",
	.none = "put there the certificate that the server's operator made for this host, as PEM",
	.renew = "renew it, and put it there with its key: the agent reads both at its next "
		 "connection",
	.over = "the server refuses this host",
};

static const struct sentences of_ca = {
	.what = "tls.ca",
	.none = "put there the certificate of the authority that signs the server's, as PEM",
	.renew = "put there the certificate of the authority that signs the server's now",
	.over = "no server is believed",
	.any = true,
};

static int64_t asn1_to_ms(const ASN1_TIME *t)
{
	struct tm tm;

	return ASN1_TIME_to_tm(t, &tm) ? (int64_t)timegm(&tm) * 1000 : 0;
}

static void add_to_term(struct term *t, const X509 *x, bool any)
{
	int64_t from_ms = asn1_to_ms(X509_get0_notBefore(x)),
		until_ms = asn1_to_ms(X509_get0_notAfter(x));

	if (t->count == 0 || (any ? from_ms < t->from_ms : from_ms > t->from_ms))
		t->from_ms = from_ms;
	if (t->count++ == 0 || (any ? until_ms > t->until_ms : until_ms < t->until_ms)) {
		t->until_ms = until_ms;
		t->life_ms = until_ms - from_ms;
	}
}

/* One that lives for days only is renewed for ever: it is near its end in its last third. */
static bool ends_soon(const struct term *t, int64_t now_ms)
{
	return t->until_ms - now_ms < (t->life_ms / 3 < SOON_MS ? t->life_ms / 3 : SOON_MS);
}

static void report_term(
	struct doctor_list *l, const char *path, const struct term *t, const struct sentences *s)
{
	int64_t now_ms = sys_real.wall_ms();
	char from[DOCTOR_DATE], until[DOCTOR_DATE];
	int64_t days = (t->until_ms - now_ms) / DAY_MS;

	doctor_date(t->from_ms, from);
	doctor_date(t->until_ms, until);
	if (t->count == 0)
		doctor_add(l, DOCTOR_ERROR, path, s->none, "%s: there is no certificate in it",
			s->what);
	else if (t->until_ms <= now_ms)
		doctor_add(l, DOCTOR_ERROR, path, s->renew, "%s: it expired on %s: %s", s->what,
			until, s->over);
	else if (t->from_ms > now_ms)
		doctor_add(l, DOCTOR_ERROR, path,
			"set this host's clock right, or put back the one before until then",
			"%s: by this host's clock it is not good yet, but from %s on: until then "
			"%s",
			s->what, from, s->over);
	else if (ends_soon(t, now_ms))
		doctor_add(l, DOCTOR_WARNING, path, s->renew,
			"%s: it expires on %s (%" PRId64 " day%s left): then %s", s->what, until,
			days, days == 1 ? "" : "s", s->over);
	else
		doctor_add(l, DOCTOR_OK, path, NULL, "%s: it is good until %s", s->what, until);
}

/* The file in memory, to be freed with close_file(); NULL: it cannot be read, which is told with
 * the other files that are read, but for what only we may not. */
static BIO *open_pem(struct doctor *d, struct doctor_list *l, const char *path, const char *what,
	char **ret_text)
{
	int r;

	*ret_text = malloc(MAX_BYTES);
	r = *ret_text ? doctor_read(d, l, path, *ret_text, MAX_BYTES) : -ENOMEM;
	if (r == -EACCES && !d->who.can_try)
		doctor_add(l, DOCTOR_NOTE, path, "run this as root or as the agent's user",
			"%s: you may not read it; whether it is good was not looked at", what);
	return r ? NULL : BIO_new_mem_buf(*ret_text, -1);
}

static void close_pem(BIO *b, char *text)
{
	BIO_free(b);
	OPENSSL_cleanse(text, text ? MAX_BYTES : 0);
	free(text);
}

/* Returns the first certificate of the file, which is the caller's; NULL = none. */
static X509 *check_certificate_file(
	struct doctor *d, struct doctor_list *l, const char *path, const struct sentences *s)
{
	struct term term = {0};
	X509 *first = NULL, *x;
	char *text;
	BIO *b = open_pem(d, l, path, s->what, &text);

	while (b && (x = PEM_read_bio_X509(b, NULL, NULL, NULL))) {
		add_to_term(&term, x, s->any);
		if (first)
			X509_free(x);
		else
			first = x;
	}
	if (b)
		report_term(l, path, &term, s);
	close_pem(b, text);
	return first;
}

static int no_passphrase(char *buf, int size, int rwflag, void *arg)
{
	(void)buf, (void)size, (void)rwflag, (void)arg;
	return -1;
}

static void check_certificate_key(
	struct doctor *d, struct doctor_list *l, const char *path, const char *cert, X509 *x)
{
	EVP_PKEY *key;
	char *text;
	BIO *b = open_pem(d, l, path, "tls.key", &text);

	if (!b) {
		close_pem(b, text);
		return;
	}
	key = PEM_read_bio_PrivateKey(b, NULL, no_passphrase, NULL);
	if (!key)
		doctor_add(l, DOCTOR_ERROR, path,
			"put it there as PEM, without a passphrase: nobody is there to type it",
			"tls.key: there is no key in it that can be read");
	else if (x && !X509_check_private_key(x, key))
		doctor_add(l, DOCTOR_ERROR, path,
			"put both there as they were made together: after a renewal one of them "
			"may "
			"be the old one",
			"tls.key: it is not the key of the first certificate in %s: no connection "
			"can be made with them",
			cert);
	EVP_PKEY_free(key);
	close_pem(b, text);
}

void doctor_certificates(struct doctor *d, struct doctor_list *l, const struct settings_server *s)
{
	X509 *x;

	if (s->ca)
		X509_free(check_certificate_file(d, l, s->ca, &of_ca));
	if (!s->cert)
		return;
	x = check_certificate_file(d, l, s->cert, &of_cert);
	check_certificate_key(d, l, s->key ? s->key : s->cert, s->cert, x);
	X509_free(x);
}
