/*
 * etcd's requests. Surprising: a member without a leader would keep a silent watch open; the header
 * `hasleader` makes it say so at once.
 */
#include "pull/kinds/etcd_request.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crypto/base64.h"
#include "pull/kinds/kv.h"
#include "text/json_writer.h"

int etcd_request_begin(const struct kind_place *place, const char *api, struct kind_request *r)
{
	int e = kind_header(r, "Content-Type: application/json");

	r->method = "POST";
	buffer_append_string(&r->url, place->base);
	buffer_append_string(&r->url, api);
	if (e == 0) /* a member without a leader says so at once */
		e = kind_header(r, "Grpc-Metadata-Hasleader: true");
	if (e == 0 && place->token)
		e = kind_header(r, "Authorization: %s", place->token);
	return e ? e : r->url.error;
}

int etcd_request_bytes(struct buffer *body, const char *name, const void *data, size_t len)
{
	json_writer_member(body, name);
	buffer_append(body, "\"", 1);
	base64_append(body, data, len);
	return buffer_append(body, "\"", 1);
}

int etcd_request_end_of(struct buffer *body, const char *name, const char *prefix)
{
	size_t len = strlen(prefix);
	char *end = strdup(prefix);

	if (!end)
		return body->error = -ENOMEM;
	end[len - 1]++;
	etcd_request_bytes(body, name, end, len);
	free(end);
	return body->error;
}

void etcd_request_key(struct buffer *out, const char *path)
{
	etcd_request_bytes(out, "key", path, strlen(path));
	if (kv_is_prefix(path))
		etcd_request_end_of(out, "range_end", path);
}

int etcd_request_check_path(const char *path, char why[FILE_WHY])
{
	if (*path)
		return 0;
	snprintf(why, FILE_WHY, "there is no key: the url needs a path");
	return -EINVAL;
}
