/*
 * etcd's answers. Surprising: a member that lags much shows an older leader's term; its revision is
 * behind what the agent may have from another member, but never goes back by itself.
 */
#include "tests/sim/server_etcd.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crypto/base64.h"
#include "lib/buffer.h"
#include "tests/sim/world.h"

#define API "/v3/"
#define LARGEST (1u << 20)
#define PARTED_US 10000000u /* who lags more has not heard of the last election */

bool etcd_is_asked(const char *path)
{
	return strncmp(path, API, strlen(API)) == 0;
}

void etcd_read_question(
	const char *body, size_t len, char *ret_key, size_t size, uint64_t *ret_revision)
{
	static const char key_name[] = "\"key\":\"", revision_name[] = "\"start_revision\":\"";
	const char *key = memmem(body, len, key_name, strlen(key_name)),
		   *revision = memmem(body, len, revision_name, strlen(revision_name));
	const char *end = key ? memchr(key + strlen(key_name), '"',
					(size_t)(body + len - key) - strlen(key_name))
			      : NULL;
	size_t got = 0;

	if (end && base64_decode(key + strlen(key_name), (size_t)(end - key) - strlen(key_name),
			   ret_key, size - 1, &got))
		got = 0;
	ret_key[got] = '\0';
	*ret_revision = revision ? strtoull(revision + strlen(revision_name), NULL, 10) : 0;
}

/* ---- what a member has ---- */

static uint64_t view_of(struct site_server *s)
{
	uint64_t us = world.now_us > s->lag_us ? world.now_us - s->lag_us : 0;

	if (us < site.etcd.restored_us)
		us = site.etcd.restored_us; /* all members have the same backup */
	if (us > s->view_us)
		s->view_us = us;
	return s->view_us;
}

static uint64_t revision_at(uint64_t us)
{
	uint64_t revision = 1;

	for (size_t i = 0; i < site.document_count; i++) {
		const struct site_document *d = site.documents[i];

		for (size_t j = 0; j < d->count; j++)
			if (d->versions[j].since_us <= us && d->versions[j].revision > revision)
				revision = d->versions[j].revision;
	}
	return revision;
}

/* ---- texts ---- */

static void add_header(struct buffer *b, uint64_t revision, bool late)
{
	buffer_printf(b,
		"\"header\":{\"cluster_id\":\"%" PRIu64
		"\",\"member_id\":\"1\",\"revision\":\"%" PRIu64 "\",\"raft_term\":\"%" PRIu64
		"\"}",
		site.etcd.cluster, revision,
		site.etcd.term > 1 && late ? site.etcd.term - 1 : site.etcd.term);
}

static void add_pair(struct buffer *b, const char *key, const char *text, uint64_t revision)
{
	buffer_printf(b, "{\"key\":\"");
	base64_append(b, key, strlen(key));
	buffer_printf(b, "\",\"mod_revision\":\"%" PRIu64 "\"", revision);
	if (text) {
		buffer_printf(b, ",\"create_revision\":\"1\",\"version\":\"1\",\"value\":\"");
		base64_append(b, text, strlen(text));
		buffer_printf(b, "\"");
	}
	buffer_printf(b, "}");
}

char *etcd_wrap_range(const char *key, const char *text, uint64_t revision)
{
	struct buffer b;

	buffer_init(&b, LARGEST);
	buffer_printf(&b, "{");
	add_header(&b, site.etcd.revision, false);
	if (text) {
		buffer_printf(&b, ",\"kvs\":[");
		add_pair(&b, key, text, revision);
		buffer_printf(&b, "],\"count\":\"1\"");
	}
	buffer_printf(&b, "}");
	return b.data;
}

static void begin_line(struct buffer *b, struct site_server *s, uint64_t revision)
{
	buffer_init(b, LARGEST);
	buffer_printf(b, "{\"result\":{");
	add_header(b, revision, s->lag_us > PARTED_US);
	buffer_printf(b, ",\"watch_id\":\"1\"");
}

char *etcd_begin_watch(struct site_server *s, uint64_t *position)
{
	uint64_t revision = revision_at(view_of(s));
	struct buffer b;

	if (!*position)
		*position = revision + 1;
	begin_line(&b, s, revision);
	buffer_printf(&b, ",\"created\":true}}");
	return b.data;
}

static void add_event(struct buffer *b, const char *key, const struct site_version *v, bool first)
{
	bool gone = v->quality == SITE_ABSENT;

	buffer_printf(b, "%s{%s\"kv\":", first ? "" : ",", gone ? "\"type\":\"DELETE\"," : "");
	add_pair(b, key, gone ? NULL : v->text, v->revision);
	buffer_printf(b, "}");
}

char *etcd_next_line(struct site_server *s, const char *key, uint64_t *position)
{
	uint64_t us = view_of(s), revision = revision_at(us);
	struct site_document *d = site_find_document(key);
	bool any = false, progress = world_once_in(STREAM_SERVER, 300);
	struct buffer b;

	begin_line(&b, s, revision);
	for (size_t i = 0; d && i < d->count; i++) {
		const struct site_version *v = &d->versions[i];

		if (v->revision < *position || v->since_us > us)
			continue;
		if (!any)
			buffer_printf(&b, ",\"events\":[");
		add_event(&b, key, v, !any);
		any = true;
	}
	buffer_printf(&b, any ? "]}}" : "}}");
	if (!any && !progress) {
		buffer_fini(&b);
		return NULL;
	}
	if (*position <= revision)
		*position = revision + 1;
	return b.data;
}
