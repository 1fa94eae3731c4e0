/*
 * The key format. Surprising: a template is part of the configuration, so that an error in it is
 * one of the configuration, found by `pulletd -t`, and a change of it takes a reload.
 */
#include "settings/keys/format.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files/trusted.h"
#include "mustache/mustache.h"
#include "settings/form.h"

#define ENDING ".mustache" /* of a partial's file */

struct draft {
	const struct loader *loader;
	struct settings_command run;
	char *template;
	bool strict;
	int escape;
};

static const struct choice escapes[] = {
	{"line", MUSTACHE_LINE}, {"html", MUSTACHE_HTML}, {NULL, 0}};

static const struct key format_keys[] = {
	{"run", walk_set_argv, MEMBER(draft, run.argv), .max = SETTINGS_MAX_ARGV,
		.check = settings_check_argument},
	{"timeout", walk_set_duration, MEMBER(draft, run.timeout_ms), .min = 100, .max = HOUR},
	{"template", walk_set_text, MEMBER(draft, template), .check = settings_check_path},
	{"strict", walk_set_bool, MEMBER(draft, strict)},
	{"escape", walk_set_choice, MEMBER(draft, escape), .choices = escapes},
};

/* ---- templates ---- */

static int read_template(
	const struct loader *l, const char *path, struct buffer *text, char why[FILE_WHY])
{
	char remedy[FILE_WHY] = "";
	int r;

	loader_opens(l, path);
	r = trusted_read(&sys_real, path, text, remedy);
	if (r == -EMSGSIZE)
		snprintf(remedy, sizeof(remedy), "templates have at most %u KiB, all together",
			MUSTACHE_MAX_BYTES >> 10);
	if (r)
		snprintf(why, FILE_WHY, "cannot read %.200s: %.250s", path, remedy);
	return r;
}

static bool is_file_name(const char *name)
{
	return name[0] != '.' && !strchr(name, '/') && strlen(name) <= SETTINGS_MAX_SET_NAME;
}

/* A partial is a file beside the template. */
static int read_partial(void *arg, const char *name, struct buffer *text, char ret_file[FILE_WHY],
	char why[FILE_WHY])
{
	const struct draft *d = arg;
	int dir = (int)(strrchr(d->template, '/') - d->template);
	char *path;
	int r;

	if (!is_file_name(name)) {
		snprintf(why, FILE_WHY,
			"its name is that of a file beside the template, without " ENDING
			": no '/', no '.' at the beginning");
		return -EINVAL;
	}
	if (asprintf(&path, "%.*s/%s" ENDING, dir, d->template, name) < 0)
		return -ENOMEM;
	snprintf(ret_file, FILE_WHY, "%s", path);
	r = read_template(d->loader, path, text, why);
	free(path);
	return r;
}

static void compile_template(
	struct loader *l, const struct node *n, struct draft *d, struct settings_config *c)
{
	const struct mustache_options options = {.name = d->template,
		.strict = d->strict,
		.escape = (enum mustache_escape)d->escape,
		.partial = read_partial,
		.arg = d};
	char why[FILE_WHY];
	struct buffer text;
	bool is_read;
	int r;

	buffer_init(&text, MUSTACHE_MAX_BYTES);
	r = read_template(l, d->template, &text, why);
	is_read = r == 0;
	if (is_read)
		r = mustache_new(&options, text.len ? text.data : "", text.len, &c->template, why);
	if (r == -ENOMEM)
		l->no_memory = true;
	else if (r)
		loader_complain(l, walk_place(l, n), "%s%s", why,
			is_read ? " (" SETTINGS_TEMPLATE_READ ")" : "");
	buffer_fini(&text);
}

/* ---- the key ---- */

static const struct {
	const char *key, *with;
} companions[] = {{"timeout", "run"}, {"strict", "template"}, {"escape", "template"}};

static void check_mapping(struct loader *l, const struct node *n)
{
	const struct node *run = node_find(n, "run"), *template = node_find(n, "template"), *found;

	if (!run == !template)
		loader_complain(l, walk_key_place(l, n),
			"format needs either run or template, and has %s",
			run ? "both" : "neither");
	for (size_t i = 0; i < COUNT(companions); i++) {
		found = node_find(n, companions[i].key);
		if (found && !run != !template && !node_find(n, companions[i].with))
			loader_complain(l, walk_key_place(l, found), "%s goes with %s: remove it",
				found->key, companions[i].with);
	}
}

static void set_mapping(
	struct loader *l, const struct node *n, const struct key *k, struct settings_config *c)
{
	struct draft d = {
		.loader = l, .run = c->format_run, .strict = true, .escape = MUSTACHE_LINE};

	walk_mapping(l, n, KEYS(format_keys), k->name, NULL, &d);
	check_mapping(l, n);
	c->format = d.template ? SETTINGS_FORMAT_TEMPLATE : SETTINGS_FORMAT_RUN;
	c->format_run = d.run;
	c->template_file = d.template;
	if (d.template && !node_find(n, "run"))
		compile_template(l, node_find(n, "template"), &d, c);
}

void settings_set_format(struct loader *l, const struct node *n, const struct key *k, void *object)
{
	if (n->type == NODE_MAP)
		set_mapping(l, n, k, object);
	else if (walk_expect(l, n, k->name, ~(1u << NODE_LIST),
			 "a name such as yaml, or a mapping with run or template"))
		walk_set_choice(l, n, k, object);
}

void settings_format_fini(struct settings_config *c)
{
	walk_free_texts(c->format_run.argv);
	free(c->template_file);
	mustache_free(c->template);
}
