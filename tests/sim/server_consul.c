/*
 * Consul's KV store as a server of the site: keys wrapped in JSON, and blocking queries.
 * Surprising: a query that waits is asked again each second until the key has changed.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "crypto/base64.h"
#include "lib/buffer.h"
#include "tests/sim/server_consul.h"

#define PREFIX "/v1/kv"

bool consul_is_asked(const char *path)
{
	return strncmp(path, PREFIX, strlen(PREFIX)) == 0;
}

uint64_t consul_unwrap(char *path)
{
	char *query = strchr(path, '?'), *index = query ? strstr(query, "index=") : NULL;
	uint64_t position = index ? strtoull(index + strlen("index="), NULL, 10) : 0;

	if (query)
		*query = '\0';
	memmove(path, path + strlen(PREFIX), strlen(path) - strlen(PREFIX) + 1);
	return position;
}

char *consul_wrap(const char *path, const char *text, size_t len, uint64_t index)
{
	struct buffer b;

	buffer_init(&b, 1u << 20);
	buffer_printf(&b,
		"[{\"LockIndex\":0,\"Key\":\"%s\",\"Flags\":18446744073709551615,\"Value\":\"",
		path + 1);
	base64_append(&b, text, len);
	buffer_printf(&b, "\",\"CreateIndex\":1,\"ModifyIndex\":%" PRIu64 "}]", index);
	return b.data;
}
