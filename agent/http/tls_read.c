/*
 * What OpenSSL holds of a connection. Surprising: libcurl reads no further than a body's length, so
 * what stands behind it in the same TLS record is in no socket buffer: only OpenSSL knows of it.
 */
#include "http/tls_read.h"

#include <openssl/ssl.h>

bool tls_read_has_unread(const void *ssl)
{
	return SSL_has_pending(ssl);
}
