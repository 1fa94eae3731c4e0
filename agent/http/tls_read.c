/*
 * What OpenSSL holds of a connection. Surprising: libcurl reads no further than a body's length, so
 * bytes behind it in the same TLS record are in no socket buffer: only OpenSSL has them.
 */
#include "http/tls_read.h"

#include <openssl/ssl.h>

bool tls_read_has_unread(const void *ssl)
{
	return SSL_has_pending(ssl);
}
