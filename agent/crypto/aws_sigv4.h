/*
 * AWS Signature Version 4: the Authorization header of a request (Amazon S3 API Reference,
 * "Authenticating Requests: Using the Authorization Header").
 *
 * Path and query come in their canonical form, and must be sent in that form: the server signs what
 * it received.
 *
 * Threads: any. Ownership: everything is borrowed for the call; what is derived from the secret is
 * wiped. Errors: -errno. Bounds: AWS_SIGV4_MAX_HEADERS.
 */
#ifndef PULLET_AWS_SIGV4_H
#define PULLET_AWS_SIGV4_H

#include <stddef.h>
#include <stdint.h>

#include "lib/buffer.h"

#define AWS_SIGV4_MAX_HEADERS 40
#define AWS_SIGV4_DATE 17 /* YYYYMMDDTHHMMSSZ and a NUL */
/* The hash of no body at all. */
#define AWS_SIGV4_NO_BODY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

struct aws_sigv4_key {
	const char *id, *secret;
	const char *region, *service;
};

struct aws_sigv4_header {
	const char *name, *value; /* as they are sent; upper case and blanks do not count */
};

struct aws_sigv4_request {
	const char *method;
	const char *path;  /* "/..." */
	const char *query; /* sorted, each with a '='; "" = none */
	const char *date;
	const char *body_sha256; /* lower case */
	/* those that are signed: no name twice, "host" and "x-amz-date" among them */
	const struct aws_sigv4_header *headers;
	size_t header_count;
};

/* The time as the header x-amz-date has it. 0, or -ERANGE: before 1970, or after the year 9999. */
int aws_sigv4_date(int64_t wall_ms, char ret_date[AWS_SIGV4_DATE]);
/* Appends the header's value. 0, -ENOMEM, -EMSGSIZE (too many headers, or the buffer is full). */
int aws_sigv4_authorization(
	const struct aws_sigv4_key *key, const struct aws_sigv4_request *r, struct buffer *out);

#endif
