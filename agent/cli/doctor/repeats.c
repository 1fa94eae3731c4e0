/* Causes that are said once. Surprising: what the agent says of a config's failure and what is
 * found below are worded by different programs, so that a path in the cause counts as much as its
 * text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/doctor/doctor.h"

#define PATH_END " ,;:'\"" /* of a path in a sentence */

/* The first path in the text, "" = none. */
static void find_path(const char *text, char ret_path[512])
{
	const char *at = text;

	ret_path[0] = '\0';
	while ((at = strchr(at, '/')) && at != text && at[-1] != ' ')
		at++;
	if (at)
		snprintf(ret_path, 512, "%.*s", (int)strcspn(at, PATH_END), at);
}

/* The path itself, not one that begins or ends like it. */
static bool mentions_path(const char *text, const char *path)
{
	size_t len = strlen(path);

	for (const char *at = text; len > 1 && (at = strstr(at, path)); at++)
		if ((at == text || at[-1] == ' ') && (!at[len] || strchr(PATH_END, at[len])))
			return true;
	return false;
}

static bool says_cause(const struct doctor_list *l, const char *cause)
{
	char path[512];

	find_path(cause, path);
	for (size_t i = 0; i < l->count; i++) {
		const struct doctor_finding *f = &l->items[i];

		if (f->severity >= DOCTOR_WARNING &&
			(strstr(f->finding, cause) || mentions_path(f->finding, path) ||
				mentions_path(f->subject, path)))
			return true;
	}
	return false;
}

/* "failing" and "connection refused" to "failing: connection refused". */
static void append_cause(struct doctor_finding *f)
{
	char *text;

	if (asprintf(&text, "%s: %s", f->finding, f->cause) < 0)
		return; /* what failed is said */
	free(f->finding);
	f->finding = text;
}

void doctor_say_causes_once(struct doctor_list *lists, size_t count)
{
	for (size_t i = count; i-- > 0;) /* what is behind has its causes by then */
		for (size_t k = 0; k < lists[i].count; k++) {
			struct doctor_finding *f = &lists[i].items[k];
			bool repeats = !f->cause;

			for (size_t n = i + 1; !repeats && n < count; n++)
				repeats = says_cause(&lists[n], f->cause);
			if (!repeats)
				append_cause(f);
		}
}
