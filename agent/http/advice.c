/*
 * A table, of which the first row that fits counts. Surprising: an alert of TLS 1.3 comes after the
 * handshake, as a failed read (CURLE_RECV_ERROR), and OpenSSL's code of it reaches nobody: only the
 * text tells alerts apart.
 */
#include "http/advice.h"

#include <stddef.h>
#include <string.h>

#include <openssl/x509_vfy.h>

#define ANY_CODE CURLE_OK
#define ANY_RESULT X509_V_OK
#define UNTRUSTED(result) CURLE_PEER_FAILED_VERIFICATION, X509_V_ERR_##result, NULL
#define CODE(code) code, ANY_RESULT, NULL
#define TEXT(text) ANY_CODE, ANY_RESULT, text

#define UNKNOWN_AUTHORITY                                                                          \
	"name the authority that signed the server's certificate in tls.ca (or the server leaves " \
	"out the certificates in between)"
#define SELF_SIGNED "if it is the right one, name it in tls.ca"
#define WEAK_KEY "the server needs a certificate with a longer key"
#define OTHER_NAME "the server's certificate is for another name than the url's"
#define MEND_SERVER "mend the server, or the proxy before it"
#define OLD_PROTOCOL "the server speaks no version of TLS from tls.min_version on (1.2, unless set)"
#define WANTS_CERTIFICATE "the server wants a certificate of this host: set tls.cert and tls.key"
#define REJECTED_CERTIFICATE "the server rejects this host's certificate (tls.cert)"

static const struct {
	CURLcode code;
	long verify_result;
	const char *text; /* a part of it; NULL = any */
	const char *advice;
} rows[] = {
	/* the server's certificate */
	{UNTRUSTED(CERT_HAS_EXPIRED),
		"the server needs a new one, or the clock of this host is wrong"},
	{UNTRUSTED(CERT_NOT_YET_VALID), "is the clock of this host right?"},
	{UNTRUSTED(UNABLE_TO_GET_ISSUER_CERT_LOCALLY), UNKNOWN_AUTHORITY},
	{UNTRUSTED(DEPTH_ZERO_SELF_SIGNED_CERT), SELF_SIGNED},
	{UNTRUSTED(SELF_SIGNED_CERT_IN_CHAIN), SELF_SIGNED},
	{UNTRUSTED(INVALID_PURPOSE), "the server's certificate is not one for servers"},
	{UNTRUSTED(EE_KEY_TOO_SMALL), WEAK_KEY},
	{UNTRUSTED(CA_KEY_TOO_SMALL), WEAK_KEY},
	{UNTRUSTED(CA_MD_TOO_WEAK), WEAK_KEY},
	{UNTRUSTED(UNABLE_TO_GET_CRL), "tls.crl has no list of an authority in the server's chain"},
	{UNTRUSTED(CRL_HAS_EXPIRED), "put a newer list into tls.crl"},
	/* libcurl's text for an alert in the middle of a handshake, without a result */
	{CURLE_PEER_FAILED_VERIFICATION, ANY_RESULT, "SSL certificate verification failed",
		"the server says that this host's certificate (tls.cert) has expired"},
	/* what libcurl sets before OpenSSL has checked, and leaves when the name differs */
	{UNTRUSTED(UNSPECIFIED), OTHER_NAME},

	/* connections and answers */
	{TEXT("thread failed to start"),
		"the server's name is not looked up: raise the limit of processes (TasksMax, "
		"pids.max)"},
	{CODE(CURLE_COULDNT_RESOLVE_HOST),
		"check the name in the url, and this host's resolver (/etc/resolv.conf)"},
	{TEXT("Resolving timed out"), ADVICE_RESOLVER},
	{CODE(CURLE_COULDNT_CONNECT), "check the address, and firewalls on the way to it"},
	{TEXT("Failed to connect"),
		"no address of it answers: a firewall is on the way, or the host is down"},
	{CODE(CURLE_OUT_OF_MEMORY),
		"unless this host has none left, a header of the answer is longer than 100 KiB: "
		"look at the server"},
	{TEXT("Out of memory in chunked-encoding"),
		"unless this host has none left, a trailer of the answer is too long: look at the "
		"server"},
	{TEXT("Invalid Content-Length"), MEND_SERVER},
	{TEXT("Nul byte in header"), MEND_SERVER},
	{TEXT("Too large response headers"), MEND_SERVER},
	{TEXT("Unsupported response code"), MEND_SERVER},
	{TEXT("HTTP/0.9"), "it has no head: is this an HTTP server, and its port the right one?"},
	{CODE(CURLE_HTTP2), MEND_SERVER},
	{CODE(CURLE_HTTP2_STREAM), MEND_SERVER},
	{TEXT("nghttp2_session_mem_recv"), MEND_SERVER},
	{TEXT("no application protocol"),
		"the server speaks HTTP/2 only, and its answer has no length: let it send a "
		"Content-Length"},
	{CODE(CURLE_GOT_NOTHING), "it closed the connection without an answer: look at its log"},

	/* files of tls: */
	{CODE(CURLE_SSL_CACERT_BADFILE),
		"tls.ca cannot be read, or holds no certificate in PEM (if it is not set: mend "
		"SSL_CERT_FILE, or install ca-certificates)"},
	{CODE(CURLE_SSL_CRL_BADFILE), "tls.crl cannot be read, or holds no list in PEM"},
	{CURLE_SSL_CERTPROBLEM, ANY_RESULT, "rivate key",
		"it cannot be read, or is not the key of tls.cert (tls.key)"},
	{CODE(CURLE_SSL_CERTPROBLEM), "tls.cert cannot be read, or is not PEM"},

	/* handshakes: what either side says of the other */
	{CODE(CURLE_SSL_CLIENTCERT), WANTS_CERTIFICATE},
	{TEXT("alert certificate required"), WANTS_CERTIFICATE},
	{TEXT("alert protocol version"), OLD_PROTOCOL},
	{TEXT("unsupported protocol"), OLD_PROTOCOL},
	{TEXT("wrong version number"),
		"the server does not speak TLS at this port: should the url begin with http://?"},
	{TEXT("alert handshake failure"),
		"the server wants a certificate of this host (tls.cert, tls.key), or ciphers that "
		"are not allowed here"},
	{TEXT("alert unknown ca"),
		"the server does not know the authority of this host's certificate (tls.cert)"},
	{TEXT("alert certificate expired"), "this host's certificate (tls.cert) needs renewing"},
	{TEXT("alert certificate revoked"), "this host's certificate (tls.cert) was revoked"},
	{TEXT("alert bad certificate"), REJECTED_CERTIFICATE},
	{TEXT("alert unsupported certificate"), REJECTED_CERTIFICATE},
	{TEXT("alert certificate unknown"), REJECTED_CERTIFICATE},
	{TEXT("SSL_ERROR_SYSCALL"),
		"the server closed the connection in the middle of the TLS handshake"},
	{TEXT("getpeername() failed"),
		"the server closed the connection at once: it may want a certificate of this host, "
		"or reject it (tls.cert)"},
};

const char *advice_find(CURLcode code, long verify_result, const char *text)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if ((rows[i].code == ANY_CODE || rows[i].code == code) &&
			(rows[i].verify_result == ANY_RESULT ||
				rows[i].verify_result == verify_result) &&
			(!rows[i].text || strstr(text, rows[i].text)))
			return rows[i].advice;
	return "";
}
