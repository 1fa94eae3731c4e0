/*
 * What Consul puts around a document.
 */
#ifndef SIM_SERVER_CONSUL_H
#define SIM_SERVER_CONSUL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The path is one of Consul's. */
bool consul_is_asked(const char *path);
/* Cuts the path down to the document's; returns the index that a blocking query waits behind, 0 =
 * it does not wait. */
uint64_t consul_unwrap(char *path);
/* The answer; the caller's to free. */
char *consul_wrap(const char *path, const char *text, size_t len, uint64_t index);

#endif
