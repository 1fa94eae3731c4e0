/*
 * The official test suite of JSON Schema, where it is installed: that of draft 2020-12 in the
 * directory that $JSON_SCHEMA_SUITE names (a checkout: tests/, remotes/), and that of draft 7,
 * which Debian has, read as what it is: schemas of another draft. What is refused, or means
 * something else, is listed here group by group with its reason; all else must be as the suite
 * says.
 */
#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "schema/schema.h"

#define INSTALLED "/usr/share/json-schema-test-suite"
#define MAX_FILES 100

struct exception {
	const char *file, *group; /* group NULL: all of the file */
	const char *reason;
};

struct suite {
	char dir[300];
	const char *draft;
	const struct exception *exceptions;
	size_t exception_count;
	bool used[64];
	/* remotes */
	struct document *documents[MAX_FILES];
	struct schema_file files[MAX_FILES];
	size_t file_count;
	/* counted */
	unsigned groups, excepted, tests, unknown;
};

static struct suite *current;

/* The file's text as {"x": TEXT}, so that it may be anything; NULL: no document of ours. No text of
 * ours can hold a NUL: another control character stands for it. */
static struct document *load(const char *path)
{
	struct document *d = NULL;
	struct document_error e;
	struct buffer text;
	char piece[4096], *nul;
	size_t n;
	FILE *f = fopen(path, "re");

	assert_non_null(f);
	buffer_init(&text, 8u << 20);
	buffer_append_string(&text, "{\"x\": ");
	while ((n = fread(piece, 1, sizeof(piece), f)))
		buffer_append(&text, piece, n);
	fclose(f);
	assert_int_equal(buffer_append_string(&text, "}"), 0);
	for (nul = strstr(text.data, "\\u0000"); nul; nul = strstr(nul, "\\u0000"))
		nul[5] = '1';
	if (document_parse(DOCUMENT_JSON, text.data, text.len, 0, &d, &e))
		print_message("%s: %s\n", path, e.message);
	buffer_fini(&text);
	return d;
}

static const struct node *content(const struct document *d)
{
	return node_find(document_root(d), "x");
}

static bool ends(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n >= m && strcmp(text + n - m, end) == 0;
}

/* Of the remotes those that lie at the top, or below the draft's own name. */
static int add_remote(const char *path, const struct stat *st, int type, struct FTW *w)
{
	const char *name = path + strlen(current->dir) + strlen("/remotes/");
	struct document *d;

	(void)st, (void)w;
	if (type != FTW_F || !ends(path, ".json"))
		return 0;
	if (strncmp(name, "draft", 5) == 0 &&
		strncmp(name, current->draft, strlen(current->draft)) != 0)
		return 0;
	d = current->file_count < MAX_FILES && current->file_count < SCHEMA_MAX_FILES ? load(path)
										      : NULL;
	if (!d)
		return 0;
	current->documents[current->file_count] = d;
	current->files[current->file_count++] = (struct schema_file){strdup(name), content(d)};
	return 0;
}

static const char *text_of(const struct node *map, const char *key)
{
	const struct node *n = node_find(map, key);

	return n ? n->text : "";
}

static const struct exception *exception_of(struct suite *s, const char *file, const char *group)
{
	for (size_t i = 0; i < s->exception_count; i++) {
		const struct exception *x = &s->exceptions[i];

		if (strcmp(x->file, file) == 0 && (!x->group || strcmp(x->group, group) == 0)) {
			s->used[i] = true;
			return x;
		}
	}
	return NULL;
}

/* "" = as the suite says; else what is not. */
static void try_group(struct suite *s, const struct node *group, char told[600])
{
	struct schema *schema = NULL;
	char why[FILE_WHY];
	int r = schema_new(node_find(group, "schema"), s->files, s->file_count, &schema, why);

	told[0] = '\0';
	if (r) {
		snprintf(told, 600, "refused: %s", why);
		return;
	}
	for (const struct node *t = node_find(group, "tests")->first; t && !told[0]; t = t->next) {
		struct buffer errors;

		buffer_init(&errors, 1u << 20);
		r = schema_check(schema, node_find(t, "data"), NULL, &errors);
		if (r != (node_find(t, "valid")->boolean ? 0 : -EINVAL))
			snprintf(told, 600, "'%s': %s%.300s", text_of(t, "description"),
				r ? "" : "valid", errors.data ? errors.data : "");
		buffer_fini(&errors);
		s->tests++;
	}
	schema_free(schema);
}

static void try_file(struct suite *s, const char *name, unsigned *wrong)
{
	char path[1000], told[600];
	struct document *d;

	snprintf(path, sizeof(path), "%s/tests/%s/%s", s->dir, s->draft, name);
	d = load(path);
	if (!d) {
		++*wrong;
		return;
	}
	for (const struct node *g = content(d)->first; g; g = g->next) {
		const char *group = text_of(g, "description");
		const struct exception *x = exception_of(s, name, group);

		try_group(s, g, told);
		s->groups++;
		s->excepted += x != NULL;
		if (!told[0] == !x)
			continue;
		++*wrong;
		print_error("{\"%s\", \"%s\"}: %s\n", name, group,
			x ? "is as the suite says, in spite of what is said of it here" : told);
	}
	document_free(d);
}

static unsigned run(struct suite *s)
{
	char path[1000];
	struct dirent *e;
	unsigned wrong = 0;
	DIR *d;

	current = s;
	snprintf(path, sizeof(path), "%s/remotes", s->dir);
	nftw(path, add_remote, 8, FTW_PHYS);
	snprintf(path, sizeof(path), "%s/tests/%s", s->dir, s->draft);
	d = opendir(path);
	assert_non_null(d);
	while ((e = readdir(d)))
		if (ends(e->d_name, ".json"))
			try_file(s, e->d_name, &wrong);
	closedir(d);
	for (size_t i = 0; i < s->exception_count; i++)
		if (!s->used[i] && ++wrong)
			print_error("no group {\"%s\", \"%s\"}\n", s->exceptions[i].file,
				s->exceptions[i].group ? s->exceptions[i].group : "");
	print_message("# %s: %u groups, %u of them excepted, %u tests\n", s->draft, s->groups,
		s->excepted, s->tests);
	for (size_t i = 0; i < s->file_count; i++) {
		free((void *)(uintptr_t)s->files[i].name);
		document_free(s->documents[i]);
	}
	return wrong;
}

static void draft_7__as_debian_has_it__differs_where_it_is_another_draft(void **state)
{
	static const char dependencies[] =
		"dependencies: refused, dependentRequired or dependentSchemas",
			  items[] = "items as a list: refused, prefixItems",
			  additional[] = "additionalItems: refused, items beside prefixItems",
			  metaschema[] = "the metaschema is not given",
			  no_place[] = "a reference to what is under no keyword: refused";
	static const struct exception exceptions[] = {
		{"dependencies.json", NULL, dependencies},
		{"items.json", "an array of schemas for items", items},
		{"items.json", "items with boolean schemas", items},
		{"additionalItems.json", NULL, additional},
		{"ref.json", "relative pointer ref to array", items},
		{"ref.json", "escaped pointer ref", no_place},
		{"ref.json", "ref overrides any sibling keywords",
			"beside $ref the others count, too"},
		{"ref.json", "remote ref, containing refs itself", metaschema},
		{"refRemote.json", "fragment within remote ref", no_place},
		{"refRemote.json", "ref within remote ref", no_place},
		{"definitions.json", NULL, metaschema},
	};
	struct suite s = {.dir = INSTALLED, .draft = "draft7", .exceptions = exceptions};

	(void)state;
	if (access(INSTALLED, F_OK)) {
		print_message("# the package json-schema-test-suite is not installed\n");
		skip();
	}
	s.exception_count = sizeof(exceptions) / sizeof(exceptions[0]);
	assert_int_equal(run(&s), 0);
	assert_int_equal(s.groups, 124); /* of version 2.0.0 */
	assert_int_equal(s.excepted, 20);
}

static void draft_2020_12__is_as_the_suite_says(void **state)
{
	static const char dynamic[] = "a $dynamicRef that may lead to several places: refused",
			  metaschema[] = "the metaschema is not given; it needs such a $dynamicRef",
			  letter[] = "PCRE2 knows \\p{L}, but not \\p{Letter}: refused",
			  draft[] = "$schema is another one: refused";
	static const struct exception exceptions[] = {
		{"dynamicRef.json",
			"A $dynamicRef resolves to the first $dynamicAnchor still in scope that is "
			"encountered when the schema is evaluated",
			dynamic},
		{"dynamicRef.json",
			"A $dynamicRef with intermediate scopes that don't include a matching "
			"$dynamicAnchor does not affect dynamic scope resolution",
			dynamic},
		{"dynamicRef.json",
			"A $dynamicRef that initially resolves to a schema with a matching "
			"$dynamicAnchor resolves to the first $dynamicAnchor in the dynamic scope",
			dynamic},
		{"dynamicRef.json", "multiple dynamic paths to the $dynamicRef keyword", dynamic},
		{"dynamicRef.json",
			"after leaving a dynamic scope, it is not used by a $dynamicRef", dynamic},
		{"dynamicRef.json", "strict-tree schema, guards against misspelled properties",
			dynamic},
		{"dynamicRef.json", "tests for implementation dynamic anchor and reference link",
			dynamic},
		{"dynamicRef.json",
			"$ref and $dynamicAnchor are independent of order - $defs first", dynamic},
		{"dynamicRef.json", "$ref and $dynamicAnchor are independent of order - $ref first",
			dynamic},
		{"dynamicRef.json",
			"$dynamicRef skips over intermediate resources - direct reference",
			dynamic},
		{"dynamicRef.json",
			"$dynamicRef avoids the root of each schema, but scopes are still "
			"registered",
			dynamic},
		{"unevaluatedItems.json", "unevaluatedItems with $dynamicRef", dynamic},
		{"unevaluatedProperties.json", "unevaluatedProperties with $dynamicRef", dynamic},
		{"ref.json", "remote ref, containing refs itself", metaschema},
		{"defs.json", "validate definition against metaschema", metaschema},
		{"vocabulary.json",
			"schema that uses custom metaschema with with no validation vocabulary",
			draft},
		{"vocabulary.json", "ignore unrecognized optional vocabulary", draft},
		{"pattern.json", "pattern with Unicode property escape requires unicode mode",
			letter},
		{"patternProperties.json", "patternProperties with Unicode property escape",
			letter},
	};
	const char *dir = getenv("JSON_SCHEMA_SUITE");
	struct suite s = {.draft = "draft2020-12", .exceptions = exceptions};

	(void)state;
	snprintf(s.dir, sizeof(s.dir), "%s", dir);
	s.exception_count = sizeof(exceptions) / sizeof(exceptions[0]);
	assert_int_equal(run(&s), 0);
}

int main(void)
{
	const struct CMUnitTest debian[] = {
		cmocka_unit_test(draft_7__as_debian_has_it__differs_where_it_is_another_draft),
	};
	const struct CMUnitTest all[] = {
		debian[0],
		cmocka_unit_test(draft_2020_12__is_as_the_suite_says),
	};

	return getenv("JSON_SCHEMA_SUITE") ? cmocka_run_group_tests(all, NULL, NULL)
					   : cmocka_run_group_tests(debian, NULL, NULL);
}
