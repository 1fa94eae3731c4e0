/*
 * Where the agent keeps its state and its socket. Surprising: of a file that is invalid the two
 * keys are found by a look at its text, since it may be no YAML at all, and the agent that started
 * before the slip has its socket there still.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "settings/places.h"
#include "cli/common/client.h"
#include "cli/doctor/doctor.h"

#define MAX_TEXT (1u << 20) /* as of a file of settings */

/* The start of the file with a NUL behind; the caller frees. NULL: it cannot be read. */
static char *read_settings_text(const char *path)
{
	FILE *f = fopen(path, "re");
	char *text = f ? malloc(MAX_TEXT + 1) : NULL;
	size_t n = text ? fread(text, 1, MAX_TEXT, f) : 0;

	if (f)
		fclose(f);
	if (text)
		text[n] = '\0';
	return text;
}

/* Is the place in a comment, or inside of a longer word? */
static bool is_no_key(const char *text, const char *at)
{
	const char *p = at;

	if (at > text && !strchr(" \t\n{,\"'", at[-1]))
		return true;
	while (p > text && p[-1] != '\n')
		if (*--p == '#' && (p == text || strchr(" \t\n", p[-1])))
			return true;
	return false;
}

/* The value of the first such key that is an absolute path; ret_dir stays as it is where there is
 * none (as with ${NAME}). */
static void find_dir(const char *text, const char *key, char *ret_dir, size_t size)
{
	for (const char *at = text; (at = strstr(at, key)); at += strlen(key)) {
		const char *value = at + strlen(key);
		char quote;

		value += strspn(value, "\"' \t");
		if (is_no_key(text, at) || *value != ':')
			continue;
		value++;
		value += strspn(value, " \t");
		quote = *value == '"' || *value == '\'' ? *value++ : '\0';
		if (*value != '/')
			continue;
		snprintf(ret_dir, size, "%.*s",
			(int)strcspn(value, quote ? (char[]){quote, '\n', '\0'} : " \t\r\n,}"),
			value);
		return;
	}
}

void doctor_find_dirs(struct doctor *d)
{
	char place[PLACES_PATH], *text;

	if (d->settings) {
		snprintf(d->state_dir, sizeof(d->state_dir), "%s", d->settings->state_dir);
		snprintf(d->runtime_dir, sizeof(d->runtime_dir), "%s", d->settings->runtime_dir);
		return;
	}
	snprintf(d->state_dir, sizeof(d->state_dir), "%s", places_state_dir(place));
	snprintf(d->runtime_dir, sizeof(d->runtime_dir), "%s", client_runtime_dir());
	text = read_settings_text(d->path);
	if (!text)
		return;
	find_dir(text, "state_dir", d->state_dir, sizeof(d->state_dir));
	find_dir(text, "runtime_dir", d->runtime_dir, sizeof(d->runtime_dir));
	free(text);
}
