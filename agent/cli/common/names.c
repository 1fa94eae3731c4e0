/* Names of configs. Surprising: what is near is what the agent's configuration calls near; a name
 * that is nothing like any other gets all of them, if they are few. */
#include "cli/common/names.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "settings/form.h"
#include "settings/value.h"

static const char ending[] = ".snap";

void names_init(struct names *n, const char *wrong)
{
	*n = (struct names){.wrong = wrong, .least = UINT_MAX};
}

void names_add(void *arg, const char *name)
{
	struct names *n = arg;
	size_t a = strlen(n->wrong), b = strlen(name);
	unsigned d = settings_distance(n->wrong, name);

	if (n->count < NAMES_FEW)
		snprintf(n->few[n->count], sizeof(n->few[0]), "%s", name);
	n->count++;
	if (d >= n->least || d > ((a > b ? a : b) + 1) / 2)
		return;
	n->least = d;
	snprintf(n->best, sizeof(n->best), "%s", name);
}

const char *names_hint(const struct names *n, char text[NAMES_HINT])
{
	size_t len;

	if (n->best[0]) {
		snprintf(text, NAMES_HINT, "did you mean '%s'?", n->best);
	} else if (n->count > NAMES_FEW) {
		snprintf(text, NAMES_HINT, "'pullet status --names' lists the %zu that there are",
			n->count);
	} else {
		snprintf(text, NAMES_HINT, n->count ? "there %s " : "there is none",
			n->count == 1 ? "is" : "are");
		for (size_t i = 0; i < n->count; i++) {
			len = strlen(text);
			snprintf(text + len, NAMES_HINT - len, "%s%s", i ? ", " : "", n->few[i]);
		}
	}
	return text;
}

/* "web.snap" to its length without the ending; 0: it is no config's snapshot. */
static size_t name_length(const char *file)
{
	size_t len = strlen(file), cut = sizeof(ending) - 1;
	char name[65];

	if (len <= cut || len - cut >= sizeof(name) || strcmp(file + len - cut, ending) != 0)
		return 0;
	snprintf(name, sizeof(name), "%.*s", (int)(len - cut), file);
	return settings_check_name(name) ? 0 : len - cut;
}

static int is_snapshot(const struct dirent *entry)
{
	return name_length(entry->d_name) > 0;
}

int names_of_snapshots(const char *dir, void (*visit)(void *arg, const char *name), void *arg)
{
	struct dirent **entries;
	int count = scandir(dir, &entries, is_snapshot, alphasort);

	if (count < 0)
		return -errno;
	for (int i = 0; i < count; i++) {
		entries[i]->d_name[name_length(entries[i]->d_name)] = '\0';
		visit(arg, entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
	return 0;
}
