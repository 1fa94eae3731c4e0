/*
 * Files to one compiled schema. Surprising: all texts are in one buffer, one after the other, those
 * of the directory behind their names, so that one digest shows whether anything changed.
 */
#include "schema/files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ending.h"
#include "files/trusted.h"

struct text {
	char *name; /* NULL: the schema itself */
	size_t at, len;
	struct document *document;
};

struct schema_files {
	const struct sys *sys;
	const char *path, *dir;
	struct text texts[1 + SCHEMA_MAX_FILES];
	size_t count;
	struct schema *schema;
	char sha256[DIGEST_HEX];
};

struct schema_files *schema_files_new(const struct sys *sys, const char *path, const char *dir)
{
	struct schema_files *f = calloc(1, sizeof(*f));

	if (f) {
		f->sys = sys;
		f->path = path;
		f->dir = dir;
	}
	return f;
}

static void drop_compiled(struct schema_files *f)
{
	schema_free(f->schema);
	f->schema = NULL;
	for (size_t i = 0; i < f->count; i++) {
		free(f->texts[i].name);
		document_free(f->texts[i].document);
	}
	memset(f->texts, 0, sizeof(f->texts));
	f->count = 0;
	f->sha256[0] = '\0';
}

void schema_files_free(struct schema_files *f)
{
	if (!f)
		return;
	drop_compiled(f);
	free(f);
}

/* ---- reading ---- */

/* given: as trusted_read() has it; NULL = that of the error. */
static int explain_unreadable(const char *path, int error, const char *given, char why[FILE_WHY])
{
	char remedy[FILE_WHY];

	if (given)
		snprintf(remedy, sizeof(remedy), "%s", given);
	else
		file_remedy(remedy, -error, true);
	if (error == -EMSGSIZE)
		snprintf(remedy, sizeof(remedy), "more than %u MiB of schemas",
			SCHEMA_FILES_MAX_BYTES >> 20);
	if (error == -E2BIG)
		snprintf(remedy, sizeof(remedy), "more than %d schemas in a directory",
			SCHEMA_MAX_FILES);
	snprintf(why, FILE_WHY, "cannot read the schema %.150s: %.320s", path, remedy);
	return error;
}

/* Appends one file's text. */
static int add_schema_text(const struct schema_files *f, const char *path, struct buffer *all,
	struct text *t, char why[FILE_WHY])
{
	char remedy[FILE_WHY] = "out of memory";
	struct buffer text;
	int r;

	buffer_init(&text, all->max - all->len);
	r = trusted_read(f->sys, path, &text, remedy);
	t->at = all->len;
	t->len = text.len;
	if (r == 0)
		r = buffer_append(all, text.data ? text.data : "", text.len);
	buffer_fini(&text);
	return r ? explain_unreadable(path, r, remedy, why) : 0;
}

static int add_named_file(const struct schema_files *f, char *name, struct buffer *all,
	struct text *t, char why[FILE_WHY])
{
	char *path;
	int r;

	t->name = name;
	if (asprintf(&path, "%s/%s", f->dir, name) < 0)
		return explain_unreadable(f->dir, -ENOMEM, NULL, why);
	r = buffer_append(all, name, strlen(name) + 1);
	r = r ? explain_unreadable(path, r, NULL, why) : add_schema_text(f, path, all, t, why);
	free(path);
	return r;
}

/* Reads all into one buffer; *ret_count texts of it, whose names are the caller's. */
static int read_all_files(const struct schema_files *f, struct buffer *all, struct text *texts,
	size_t *ret_count, char why[FILE_WHY])
{
	char *names[SCHEMA_MAX_FILES], remedy[FILE_WHY] = "out of memory";
	int r = add_schema_text(f, f->path, all, &texts[0], why), count;

	*ret_count = 1;
	if (r || !f->dir)
		return r;
	count = trusted_list(f->sys, f->dir, (const char *const[]){".json", ".yaml", ".yml", NULL},
		names, SCHEMA_MAX_FILES, remedy);
	if (count < 0)
		return explain_unreadable(f->dir, count, remedy, why);
	for (int i = 0; i < count; i++) {
		if (r == 0)
			r = add_named_file(f, names[i], all, &texts[(*ret_count)++], why);
		else
			free(names[i]);
	}
	return r;
}

/* ---- compiling ---- */

static int parse_schema_file(
	const struct schema_files *f, const struct buffer *all, struct text *t, char why[FILE_WHY])
{
	const char *name = t->name ? t->name : f->path;
	size_t len = strlen(name);
	bool json = ends_in(name, len, ".json");
	struct document_error e = {0};
	int r = document_parse(json ? DOCUMENT_JSON : DOCUMENT_YAML,
		all->data ? all->data + t->at : "", t->len, 0, &t->document, &e);

	if (r)
		snprintf(why, FILE_WHY, "%.80s:%u:%u: the schema cannot be read: %.200s", name,
			e.line, e.column, r == -EINVAL ? e.message : strerror(-r));
	return r;
}

static int compile_files(struct schema_files *f, const struct buffer *all, char why[FILE_WHY])
{
	struct schema_file files[SCHEMA_MAX_FILES];
	char inner[FILE_WHY];
	int r = 0;

	for (size_t i = 0; i < f->count && r == 0; i++) {
		r = parse_schema_file(f, all, &f->texts[i], why);
		if (r == 0 && i)
			files[i - 1] = (struct schema_file){
				f->texts[i].name, document_root(f->texts[i].document)};
	}
	if (r)
		return r;
	r = schema_new(document_root(f->texts[0].document), files, f->count - 1, &f->schema, inner);
	if (r)
		snprintf(why, FILE_WHY, "%.150s: %.220s", f->path, inner);
	return r;
}

int schema_files_read(struct schema_files *f, char why[FILE_WHY])
{
	struct text texts[1 + SCHEMA_MAX_FILES] = {{0}};
	char sha256[DIGEST_HEX];
	struct buffer all;
	size_t count;
	int r;

	buffer_init(&all, SCHEMA_FILES_MAX_BYTES);
	r = read_all_files(f, &all, texts, &count, why);
	if (r == 0) {
		r = digest_sha256(all.data ? all.data : "", all.len, NULL, 0, sha256);
		if (r)
			snprintf(why, FILE_WHY, "out of memory");
	}
	if (r || strcmp(sha256, f->sha256) == 0) {
		for (size_t i = 0; i < count; i++)
			free(texts[i].name);
	} else {
		drop_compiled(f);
		memcpy(f->texts, texts, sizeof(texts));
		f->count = count;
		r = compile_files(f, &all, why);
		if (r)
			drop_compiled(f);
		else
			memcpy(f->sha256, sha256, sizeof(sha256));
		r = r ? r : 1;
	}
	buffer_fini(&all);
	return r;
}

const struct schema *schema_files_schema(const struct schema_files *f)
{
	return f->schema;
}

const char *schema_files_digest(const struct schema_files *f)
{
	return f->sha256;
}
