/* Documents and their versions. Surprising: a restored backup makes old versions current again, as
 * new entries of the same number. */
#include "tests/sim/site.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "tests/sim/world.h"

/* The agent validates from 16 kB on elsewhere (config/validation.c). */
#define LARGE_PAD 17000

struct site site;

void site_begin(void)
{
	memset(&site, 0, sizeof(site));
	site.etcd.cluster = 7;
	site.etcd.term = 2;
	site.etcd.revision = 1;
	site.etcd.elects = true;
}

void site_end(void)
{
	for (size_t i = 0; i < site.document_count; i++) {
		struct site_document *d = site.documents[i];

		for (size_t j = 0; j < d->count; j++) {
			free(d->versions[j].text);
			free(d->versions[j].signature);
		}
		free(d);
	}
	memset(&site, 0, sizeof(site));
}

struct site_document *site_add_document(const char *path, unsigned lines)
{
	struct site_document *d = calloc(1, sizeof(*d));

	d->id = (unsigned)site.document_count;
	d->lines = lines;
	snprintf(d->path, sizeof(d->path), "%s", path);
	site.documents[site.document_count++] = d;
	return d;
}

struct site_document *site_find_document(const char *path)
{
	for (size_t i = 0; i < site.document_count; i++)
		if (strcmp(site.documents[i]->path, path) == 0)
			return site.documents[i];
	return NULL;
}

struct site_server *site_add_server(const char *name)
{
	struct site_server *s = &site.servers[site.server_count++];

	snprintf(s->name, sizeof(s->name), "%s", name);
	s->delay_us = 1000;
	return s;
}

struct site_server *site_find_server(const char *name, size_t len)
{
	for (size_t i = 0; i < site.server_count; i++)
		if (strlen(site.servers[i].name) == len &&
			memcmp(site.servers[i].name, name, len) == 0)
			return &site.servers[i];
	return NULL;
}

static void write_json(const struct site_document *d, struct site_version *v)
{
	unsigned lines = v->quality == SITE_SHRUNK ? 1 : d->lines;
	size_t size = lines * 36 + 96;
	char *text = malloc(size), *at = text;

	at += snprintf(at, size, "{");
	for (unsigned i = 0; i < lines; i++)
		at += snprintf(at, size - (size_t)(at - text), "%s\n\"d%u_%u\": %llu", i ? "," : "",
			d->id, i, (unsigned long long)v->number);
	if (v->quality == SITE_HARMFUL || v->quality == SITE_SICK)
		at += snprintf(at, size - (size_t)(at - text), ", \"%s\": true",
			v->quality == SITE_SICK ? "sick" : "harmful");
	at += snprintf(at, size - (size_t)(at - text), "%s\n",
		v->quality == SITE_BROKEN ? ", broken" : "\n}");
	v->text = text;
	v->len = (size_t)(at - text);
}

static void write_yaml(const struct site_document *d, struct site_version *v)
{
	bool shrunk = v->quality == SITE_SHRUNK;
	unsigned lines = shrunk ? 1 : d->lines;
	size_t pad = d->large && !shrunk ? LARGE_PAD : 0, size = lines * 32 + 96 + pad;
	char *text = malloc(size), *at = text;

	if (pad)
		at += snprintf(at, size, "pad: %0*u\n", (int)pad, 1);
	for (unsigned i = 0; i < lines; i++)
		at += snprintf(at, size - (size_t)(at - text), "d%u_%u: %llu\n", d->id, i,
			(unsigned long long)v->number);
	if (v->quality == SITE_BROKEN)
		at += snprintf(at, size - (size_t)(at - text), "broken: [1, 2\n\t- x: ]\n");
	if (v->quality == SITE_HARMFUL)
		at += snprintf(at, size - (size_t)(at - text), "harmful: true\n");
	if (v->quality == SITE_SICK)
		at += snprintf(at, size - (size_t)(at - text), "sick: true\n");
	v->text = text;
	v->len = (size_t)(at - text);
}

struct site_version *site_change(struct site_document *d, enum site_quality quality)
{
	struct site_version *v = &d->versions[d->count];

	if (d->count == SITE_MAX_VERSIONS)
		return &d->versions[d->count - 1];
	*v = (struct site_version){.number = d->count + 1,
		.quality = quality,
		.since_us = world.now_us,
		.index = ++site.index,
		.revision = ++site.etcd.revision};
	if (d->json)
		write_json(d, v);
	else
		write_yaml(d, v);
	snprintf(v->etag, sizeof(v->etag), "\"%u-%llu\"", d->id, (unsigned long long)v->number);
	d->shown = ++d->count;
	world_trace("site: %s is version %llu%s", d->path, (unsigned long long)v->number,
		quality == SITE_GOOD     ? ""
		: quality == SITE_ABSENT ? ", absent"
					 : ", bad");
	if (site.changed)
		site.changed(site.arg, d, v);
	return v;
}

void site_go_back(struct site_document *d, size_t versions)
{
	const struct site_version *old;
	struct site_version *v = &d->versions[d->count];

	if (d->count <= versions || d->count == SITE_MAX_VERSIONS)
		return;
	old = &d->versions[d->count - 1 - versions];
	*v = *old;
	v->since_us = world.now_us;
	v->index = ++site.index;
	v->revision = ++site.etcd.revision;
	v->sent = false;
	v->signature = NULL;
	v->text = malloc(old->len + 1);
	memcpy(v->text, old->text, old->len + 1);
	d->shown = ++d->count;
	world_trace("site: %s goes back to version %llu", d->path, (unsigned long long)v->number);
}

void site_elect(void)
{
	if (site.etcd.elects)
		site.etcd.term++;
}

/* Only the newest version of a document is in a backup, with no event of its own. */
static void forget_events(struct site_document *d)
{
	uint64_t newest = d->count ? d->versions[d->count - 1].revision : 0;

	for (size_t i = 0; i < d->count; i++)
		d->versions[i].revision = 0;
	if (d->count)
		d->versions[d->count - 1].revision =
			newest < site.etcd.revision ? newest : site.etcd.revision;
}

/* Under a new name, or, until it has one, under the old one: only the term tells then, as long as
 * nobody is elected. */
void site_restore_etcd(void)
{
	uint64_t back = 1 + world_random(STREAM_SERVER, 5);

	site.etcd.elects =
		!site.etcd.elects || site.etcd.term < 2 || world_random(STREAM_SERVER, 2);
	if (site.etcd.elects)
		site.etcd.cluster++;
	else
		site.etcd.term = 1;
	site.etcd.restored_us = world.now_us;
	site.etcd.revision = site.etcd.revision > back ? site.etcd.revision - back : 1;
	for (size_t i = 0; i < site.document_count; i++)
		forget_events(site.documents[i]);
	world_trace("etcd is restored: cluster %llu, term %llu, revision %llu",
		(unsigned long long)site.etcd.cluster, (unsigned long long)site.etcd.term,
		(unsigned long long)site.etcd.revision);
}

struct site_version *site_version_at(struct site_document *d, uint64_t us)
{
	for (size_t i = d->count; i > 0; i--)
		if (d->versions[i - 1].since_us <= us)
			return d->versions[i - 1].quality == SITE_ABSENT ? NULL
									 : &d->versions[i - 1];
	return NULL;
}

struct site_version *site_current(struct site_document *d)
{
	return d->count ? &d->versions[d->count - 1] : NULL;
}

void site_heal(void)
{
	for (size_t i = 0; i < site.server_count; i++) {
		site.servers[i].mode = SERVER_GOOD;
		site.servers[i].lag_us = 0;
		site.servers[i].delay_us = 1000;
	}
	site.unasked_304 = site.wrong_etag = site.cut = site.lost = site.wrong_signature = 0;
	site.rollout = 0;
}
