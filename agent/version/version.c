#include "version/version.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int part_init(struct part *p, const char *url, const char *etag, const char *last_modified,
	const char *type)
{
	size_t url_size = strlen(url) + 1, etag_size = strlen(etag) + 1,
	       modified_size = strlen(last_modified) + 1;
	char *texts = malloc(url_size + etag_size + modified_size);

	*p = (struct part){.url = texts};
	if (!texts)
		return -ENOMEM;
	p->etag = texts + url_size;
	p->last_modified = p->etag + etag_size;
	memcpy(p->url, url, url_size);
	memcpy(p->etag, etag, etag_size);
	memcpy(p->last_modified, last_modified, modified_size);
	snprintf(p->type, sizeof(p->type), "%s", type);
	return 0;
}

int part_set_epoch(struct part *p, const char *epoch)
{
	free(p->epoch);
	p->epoch = epoch && epoch[0] ? strdup(epoch) : NULL;
	return epoch && epoch[0] && !p->epoch ? -ENOMEM : 0;
}

int part_copy(const struct part *p, struct part *ret_copy)
{
	int r = part_init(ret_copy, p->url, p->etag, p->last_modified, p->type);

	if (r)
		return r;
	ret_copy->absent = p->absent;
	ret_copy->len = p->len;
	r = part_set_epoch(ret_copy, p->epoch);
	if (r)
		part_fini(ret_copy);
	return r;
}

void part_fini(struct part *p)
{
	free(p->url); /* with the two behind it */
	free(p->epoch);
	*p = (struct part){.len = 0};
}

int version_copy(const struct version *v, struct version *ret_copy)
{
	struct version copy = *v;
	int r = 0;

	copy.decisions = NULL;
	copy.by = v->by ? strdup(v->by) : NULL;
	copy.part_count = 0;
	copy.parts = calloc(v->part_count ? v->part_count : 1, sizeof(*copy.parts));
	copy.origin = v->origin ? strdup(v->origin) : NULL;
	if (!copy.parts || (v->origin && !copy.origin) || (v->by && !copy.by))
		r = -ENOMEM;
	for (size_t i = 0; r == 0 && i < v->part_count; i++, copy.part_count++) {
		r = part_copy(&v->parts[i], &copy.parts[i]);
		if (r)
			break;
	}
	if (r)
		version_fini(&copy);
	else
		*ret_copy = copy;
	return r;
}

void version_fini(struct version *v)
{
	for (size_t i = 0; i < v->part_count; i++)
		part_fini(&v->parts[i]);
	free(v->parts);
	free(v->origin);
	free(v->by);
	free(v->decisions);
	*v = (struct version){.generation = 0};
}

static const char *const causes[VERSION_CAUSES] = {
	[CAUSE_PULL] = "pull",
	[CAUSE_PUSH] = "push",
	[CAUSE_WATCH] = "watch",
	[CAUSE_START] = "start",
	[CAUSE_OPERATOR] = "operator",
	[CAUSE_ROLLBACK] = "rollback",
	[CAUSE_PROBE] = "probe",
	[CAUSE_OVERRIDE] = "override",
	[CAUSE_PIN] = "pin",
	[CAUSE_SETTINGS] = "settings",
};

const char *version_cause_name(enum version_cause cause)
{
	return causes[cause];
}

enum version_cause version_parse_cause(const char *name)
{
	int i = VERSION_CAUSES - 1;

	while (i > CAUSE_UNKNOWN && (!name || strcmp(name, causes[i]) != 0))
		i--;
	return (enum version_cause)i;
}

int version_set_cause(struct version *v, enum version_cause cause, const char *by)
{
	char *copy = by ? strdup(by) : NULL;

	free(v->by);
	v->by = copy;
	v->cause = (unsigned char)cause;
	return by && !copy ? -ENOMEM : 0;
}

const char *version_origin(const struct version *v)
{
	return v->origin ? v->origin : VERSION_PULLED;
}

int64_t version_shown_ms(const struct version *v)
{
	return v->published_ms ? v->published_ms : v->pulled_ms;
}

bool version_same(const struct version *a, const struct version *b)
{
	if (strcmp(a->sha256, b->sha256) != 0 || a->part_count != b->part_count)
		return false;
	for (size_t i = 0; i < a->part_count; i++)
		if (a->parts[i].len != b->parts[i].len || a->parts[i].absent != b->parts[i].absent)
			return false;
	return true;
}

uint32_t version_digest_begin(const struct version *v)
{
	char digits[9];

	snprintf(digits, sizeof(digits), "%.8s", v->sha256);
	return (uint32_t)strtoul(digits, NULL, 16);
}

size_t version_bytes(const struct version *v)
{
	size_t bytes = 0;

	for (size_t i = 0; i < v->part_count; i++)
		if (strcmp(v->parts[i].type, "minisig") != 0)
			bytes += v->parts[i].len;
	return bytes;
}

const char *version_text(const struct version *v, char text[VERSION_TEXT_SIZE])
{
	const char *etag = v->part_count ? v->parts[0].etag : "";
	size_t len = strlen(etag);
	bool quoted = len >= 2 && etag[0] == '"' && etag[len - 1] == '"';

	snprintf(text, VERSION_TEXT_SIZE, "%.*s", (int)(quoted ? len - 2 : len), etag + quoted);
	return text[0] ? text : NULL;
}
