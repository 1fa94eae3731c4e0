/*
 * What an operator is to do about a transfer that failed.
 *
 * Threads: any; no memory, no I/O.
 */
#ifndef PULLET_ADVICE_H
#define PULLET_ADVICE_H

#include <curl/curl.h>

#define ADVICE_RESOLVER "this host's resolver does not answer (/etc/resolv.conf), or its servers"

/* Finds the remedy by libcurl's code, by OpenSSL's result for the server's certificate
 * (CURLINFO_SSL_VERIFYRESULT), then by the text of the error. "" = the text says all. */
const char *advice_find(CURLcode code, long verify_result, const char *text);

#endif
