/* One question to OpenSSL. OpenSSL's ssl.h is used in tls_read.c only. */
#ifndef PULLET_TLS_READ_H
#define PULLET_TLS_READ_H

#include <stdbool.h>

/* Tells whether bytes of this connection (an SSL *) have left the kernel and were not read yet. */
bool tls_read_has_unread(const void *ssl);

#endif
