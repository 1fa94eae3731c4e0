/*
 * Signatures and rollouts of what servers have. Surprising: one key for all lives, whose seed is
 * constant; a signature is made when a server is asked for it first.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crypto/minisign_secret.h"
#include "tests/sim/disk.h"
#include "tests/sim/site.h"

static struct minisign_secret secret;
static char public_text[MINISIGN_SECRET_TEXT];

/* What is made here stays for all lives: it is the world's. */
const char *site_public_key(void)
{
	enum disk_owner owner = disk_owner;
	char *line;

	if (!public_text[0]) {
		disk_owner = OWNER_WORLD;
		memset(secret.id, 7, sizeof(secret.id));
		memset(secret.seed, 42, sizeof(secret.seed));
		if (minisign_secret_make(&secret) ||
			minisign_secret_write_public(&secret, public_text))
			abort();
		disk_owner = owner;
	}
	line = strchr(public_text, '\n') + 1;
	line[strcspn(line, "\n")] = '\0';
	return line;
}

const char *site_signature(const struct site_document *d, struct site_version *v)
{
	enum disk_owner owner = disk_owner;
	char comment[96], rev[32] = "";

	if (v->signature)
		return v->signature;
	site_public_key();
	disk_owner = OWNER_WORLD;
	if (d->has_rev)
		snprintf(rev, sizeof(rev), " rev=%llu", (unsigned long long)v->number);
	snprintf(comment, sizeof(comment), "path=%s%s", d->path, rev);
	v->signature = malloc(MINISIGN_MAX_FILE + 1);
	if (minisign_secret_sign(&secret, v->text, v->len, comment, v->signature))
		abort();
	disk_owner = owner;
	return v->signature;
}

const char *site_rollout(void)
{
	static const char *const texts[SITE_ROLLOUTS] = {
		NULL,
		"percent: 100\n",
		"percent: 0\nsalt: other\n",
		"labels: {zone: eu-1}\n",
		"labels: {zone: eu-0}\npercent: 100\n",
		"waves:\n  - {at: 2023-11-14T00:00:00Z, percent: 50}\n"
		"  - {at: 2023-11-14T22:35:00Z, percent: 100}\n",
		"percent: many\n",
		"percent: [\n",
		"{\"percent\": 0}\n",
		"version: other\npercent: 0\n",
		"percent: 37\n",
		"percent: 63\n",
	};

	return texts[site.rollout];
}
