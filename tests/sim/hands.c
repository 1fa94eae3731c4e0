/*
 * What people do to files that are not theirs. Surprising: a forged state file is whole (its
 * checksums are right), and one member of its facts is not what the agent writes: it is never an
 * error of the agent to drop it, only to show something that no server ever had.
 */
#include "tests/sim/hands.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crypto/digest.h"
#include "tests/sim/disk.h"
#include "tests/sim/world.h"

#define MAGIC "pullet-state 1 "

static uint64_t draw(uint64_t bound)
{
	return world_random(STREAM_OPERATOR, bound);
}

/* What the agent knew may be lost: nothing that follows from it is asked for any more. */
static void forget_promises(struct subject *s)
{
	s->damaged = s->unsaved = s->may_go_back = s->forced = true;
	s->held_us = s->rolling_us = 0;
	s->rolled_back.there = s->settled.there = false;
	s->settled_generation = 0;
	s->pin_until_ms = 0;
	memset(s->override_until_ms, 0, sizeof(s->override_until_ms));
}

/* ---- in the place of what is published ---- */

static void change_mode(struct subject *s, const char *path)
{
	(void)s;
	if (draw(1))
		disk_set_mode(path, draw(1) ? 0666 : 0400);
	else
		disk_set_owner(path, draw(1) ? 1000 : 0, draw(1) ? 1000 : 0);
}

static void put_link(struct subject *s, const char *path)
{
	s->foreign = true;
	disk_remove(path);
	disk_put_link(path, draw(1) ? "/etc/schema.json" : "nowhere");
}

static void put_directory(struct subject *s, const char *path)
{
	s->foreign = true;
	disk_remove(path);
	disk_make_dir(path);
}

static void shorten_file(struct subject *s, const char *path)
{
	s->foreign = true;
	disk_put(path, "something", 9);
}

static void touch_place(struct subject *s)
{
	static void (*const acts[])(struct subject * s, const char *path) = {
		change_mode, put_link, put_directory, shorten_file};

	if (s->place == PLACE_FILE && s->last.there)
		acts[draw(3)](s, s->path);
}

/* ---- in a set of files ---- */

static void touch_set(struct subject *s)
{
	static const char *const names[] = {"..data", "f0.yaml", "f1.yaml", "other.yaml", "..0000",
		"..12-0123456789abcdef", ".hidden", "..data.pullet-0123456789abcdef",
		".f0.yaml.pullet-0123456789abcdef", "..77-0123456789abcdef.x",
		"..77-0123456789abcdeg", "..123456789012345678901-0123456789abcdef",
		"..checked-0123456789abcdeg", "f 0"};
	static const char *const targets[] = {
		"..data/f0.yaml", "..data/other.yaml", "/etc/schema.json", "..12-0123456789abcdef"};
	char path[160];

	if (s->place != PLACE_SET)
		return;
	s->foreign = true;
	snprintf(path, sizeof(path), "%s/%s", s->path,
		names[draw(sizeof(names) / sizeof(names[0]) - 1)]);
	disk_remove(path);
	switch (draw(3)) {
	case 0:
		break;
	case 1:
		disk_make_dir(path);
		break;
	case 2:
		disk_put(path, "something", 9);
		break;
	default:
		disk_put_link(path, targets[draw(3)]);
	}
}

/* One file of the current generation, behind its links. */
static void touch_set_file(struct subject *s)
{
	char path[160], file[256];

	if (s->place != PLACE_SET)
		return;
	snprintf(path, sizeof(path), "%s/..data/f0.yaml", s->path);
	if (disk_real_path(path, file, sizeof(file)) ||
		strncmp(file, s->path, strlen(s->path)) != 0)
		return;
	s->foreign = true;
	switch (draw(3)) {
	case 0:
		disk_remove(file);
		break;
	case 1:
		disk_put(file, "something", 9);
		break;
	case 2:
		change_mode(s, file);
		break;
	default:
		file[strlen(file) - strlen("/f0.yaml")] = '\0';
		disk_remove(file);
	}
}

/* ---- in the runtime directory ---- */

static void touch_runtime(struct subject *s)
{
	static const struct {
		const char *begin, *name, *end;
	} names[] = {{"", NULL, ".gen"}, {"", NULL, ".snap"}, {"", "gone", ".snap"},
		{"", "gone", ".gen"}, {".", "gone", ".snap.pullet-0123456789abcdef"},
		{".", NULL, ".snap.pullet-0123456789abcdef"},
		{".", NULL, ".gen.pullet-0123456789abcdef"}};
	static const char zeros[4096];
	size_t i = draw(6);
	char path[160];

	snprintf(path, sizeof(path), "%s/%s%s%s", s->runtime_dir, names[i].begin,
		names[i].name ? names[i].name : s->name, names[i].end);
	forget_promises(s); /* its generation was there */
	subject_close(s);
	s->generation = 0;
	switch (draw(6)) {
	case 0:
		disk_remove(path);
		break;
	case 1:
		disk_replace(path, "something", 9);
		break;
	case 2:
		disk_set_mode(path, 0666);
		break;
	case 3:
		disk_set_owner(path, 1000, 1000);
		break;
	case 4:
		disk_replace(path, zeros, sizeof(zeros));
		break;
	case 5:
		disk_remove(path);
		disk_put_link(path, "/etc/schema.json");
		break;
	default:
		disk_remove(s->runtime_dir);
	}
}

/* As an agent leaves them that is killed when a config was removed. */
static void leave_page(struct subject *s)
{
	char path[160];
	const char *page;
	size_t len;

	snprintf(path, sizeof(path), "%s/%s.gen", s->runtime_dir, s->name);
	page = disk_get(path, &len);
	if (!page)
		return;
	snprintf(path, sizeof(path), "%s/gone.gen", s->runtime_dir);
	disk_replace(path, page, len);
	snprintf(path, sizeof(path), "%s/.gone.snap" HANDS_TEMPORARY, s->runtime_dir);
	disk_replace(path, "something", 9);
}

/* ---- in the state directory ---- */

struct search {
	char name[64], wanted[64];
	unsigned left;
};

static int choose_name(void *arg, const char *name, mode_t mode)
{
	struct search *q = arg;

	(void)mode;
	if (name[0] == '.' || (q->wanted[0] && strcmp(name, q->wanted) != 0))
		return 0;
	snprintf(q->name, sizeof(q->name), "%.63s", name);
	return q->left-- == 0;
}

/* A file of the config's state; false: there is none. */
static bool choose_file(const struct subject *s, const char *wanted, char ret_path[160])
{
	struct search q = {.left = (unsigned)draw(4)};
	char dir[64];

	snprintf(dir, sizeof(dir), "/var/lib/pullet/%s", s->name);
	snprintf(q.wanted, sizeof(q.wanted), "%s", wanted);
	disk_list(dir, choose_name, &q);
	snprintf(ret_path, 160, "%s/%s", dir, q.name);
	return q.name[0];
}

static void damage_state(struct subject *s)
{
	char path[160], *copy;
	const char *data;
	size_t len;

	if (!choose_file(s, draw(2) ? "" : "ledger.json", path))
		return;
	data = disk_get(path, &len);
	if (!data || !len)
		return;
	forget_promises(s);
	copy = malloc(len);
	memcpy(copy, data, len);
	if (draw(1))
		copy[draw(len - 1)] ^= (char)(1 << draw(7));
	else
		len = draw(len - 1);
	disk_replace(path, copy, len);
	free(copy);
}

static void remove_state(struct subject *s)
{
	char path[160];

	if (!choose_file(s, "", path))
		return;
	forget_promises(s);
	if (draw(2) == 0)
		*strrchr(path, '/') = '\0';
	disk_remove(path);
}

/* The place of a value behind the n-th ':' outside of texts; NULL = there are fewer. */
static char *find_member(char *at, char *end, uint64_t n)
{
	bool text = false;

	for (; at < end; at++) {
		if (*at == '\\')
			at++;
		else if (*at == '"')
			text = !text;
		else if (*at == ':' && !text && n-- == 0)
			return at + 1;
	}
	return NULL;
}

static char *find_value_end(char *at, char *end)
{
	int depth = 0;
	bool text = false;

	for (; at < end; at++) {
		if (*at == '"' && at[-1] != '\\')
			text = !text;
		else if (!text && (*at == '[' || *at == '{'))
			depth++;
		else if (!text && depth == 0 && (*at == ',' || *at == '}' || *at == ']'))
			break;
		else if (!text && (*at == ']' || *at == '}'))
			depth--;
	}
	return at;
}

/* Replaces one value of a JSON text by another one, or renames its key. Returns the new text's
 * length; 0 = it has no such member. */
static size_t forge_text(const char *text, size_t len, char *out, size_t room)
{
	static const char *const values[] = {"null", "-1", "\"\"", "[]", "{}", "[1]", "{\"a\":1}",
		"true", "1.5", "\"text\"", "\"18446744073709551615\"", "99999999999", "[{}]",
		"[\"5\"]", "[{\"url\":\"u\"}]", "\"0\"",
		"\"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef01234567\""};
	const char *value = values[draw(sizeof(values) / sizeof(values[0]) - 1)];
	char *copy = malloc(len + 1), *at, *end;
	size_t made = 0;

	memcpy(copy, text, len);
	copy[len] = '\0';
	at = find_member(copy, copy + len, draw(30));
	if (at) {
		end = find_value_end(at, copy + len);
		if (draw(3) == 0 && at - copy > 3)
			at[-3] = '_'; /* the key */
		else if (draw(4) == 0)
			made = (size_t)snprintf(out, room, "%.*s%s,\"new\":{\"a\": [1, 2]}%s",
				(int)(at - copy), copy, value, end);
		if (!made)
			made = at[-3] == '_' ? (size_t)snprintf(out, room, "%s", copy)
					     : (size_t)snprintf(out, room, "%.*s%s%s",
						       (int)(at - copy), copy, value, end);
	}
	free(copy);
	return made < room ? made : 0;
}

/* Writes a state file whose checksum is right over forged facts. */
static void forge_state(struct subject *s)
{
	static char facts[65536], file[131072];
	char path[160], digest[DIGEST_HEX];
	size_t len, made, head = strlen(MAGIC) + DIGEST_HEX;
	const char *data, *line;

	if (!choose_file(s, "", path) || !isdigit((unsigned char)strrchr(path, '/')[1]))
		return;
	data = disk_get(path, &len);
	line = data && len > head ? memchr(data + head, '\n', len - head) : NULL;
	if (!line)
		return;
	made = forge_text(data + head, (size_t)(line - data) - head, facts, sizeof(facts) / 2);
	len -= (size_t)(line - data);
	if (!made || made + len > sizeof(facts))
		return;
	forget_promises(s);
	memcpy(facts + made, line, len);
	if (digest_sha256(facts, made + len, NULL, 0, digest))
		return;
	len = made + len;
	made = (size_t)snprintf(file, sizeof(file), MAGIC "%s\n", digest);
	memcpy(file + made, facts, len);
	disk_replace(path, file, made + len);
}

static void forge_ledger(struct subject *s)
{
	static char forged[65536];
	char path[160];
	const char *data;
	size_t len, made;

	if (!choose_file(s, "ledger.json", path))
		return;
	data = disk_get(path, &len);
	made = data ? forge_text(data, len, forged, sizeof(forged)) : 0;
	if (!made)
		return;
	forget_promises(s);
	disk_replace(path, forged, made);
}

/* ---- outside ---- */

static const struct {
	void (*act)(struct subject *s);
	const char *what;
} acts[] = {{touch_place, "its place"}, {touch_set, "its set"},
	{touch_set_file, "a file of its set"}, {touch_runtime, "its snapshot"},
	{leave_page, "a page like its own"}, {damage_state, "its state"},
	{remove_state, "its state, away"}, {forge_state, "its state, forged"},
	{forge_ledger, "its ledger, forged"}};

void hands_act(struct subject *s)
{
	size_t i = draw(sizeof(acts) / sizeof(acts[0]) - 1);

	world_trace("somebody touches %s: %s", s->name, acts[i].what);
	disk_use(s->host->disk);
	acts[i].act(s);
}

void hands_spoil(struct subject *s)
{
	if (s->place != PLACE_FILE || s->features.drift != DRIFT_IS_HEALED || s->removed ||
		!s->last.there)
		return;
	world_trace("somebody writes over %s", s->path);
	disk_use(s->host->disk);
	shorten_file(s, s->path);
}

void hands_end(struct subject *s)
{
	disk_use(s->host->disk);
	disk_make_dir(s->runtime_dir);
	if (!s->foreign || s->place == PLACE_NONE)
		return;
	disk_remove(s->path);
	if (s->place != PLACE_SET)
		return;
	disk_make_dir(s->path); /* a running agent makes none */
	s->last.there = s->foreign = false;
}
