/*
 * Fingerprints: SHA-256, cut to 16 bytes, of a canonical form.
 *
 * Surprising: files that the agent reads at each use (secrets, certificates, the user's programs)
 * do not count, as their changes need no reload; a schema counts, so that versions it rejected are
 * validated again at once, a template, which is another text of the same version, and the key of a
 * push channel, which lasts as long as the connection.
 */
#include "settings/fingerprint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/buffer.h"
#include "crypto/digest.h"
#include "files/trusted.h"
#include "mustache/mustache.h"

#define MAX_TEXT (256u << 20)
#define MAX_CONTENT (16u << 20)
#define MAX_FILES 64 /* more are rejected when they are used */

static void finish_print(struct loader *l, struct buffer *text, struct settings_print *ret_print)
{
	unsigned char digest[DIGEST_SHA256];

	if (text->error || digest_sha256_raw(text->data ? text->data : "", text->len, digest))
		l->no_memory = true;
	else
		memcpy(ret_print->bytes, digest, sizeof(ret_print->bytes));
	if (text->data) /* it may be of a key */
		explicit_bzero(text->data, text->len);
	buffer_fini(text);
}

/* ---- the canonical form ---- */

static int compare_node_keys(const void *a, const void *b)
{
	const struct node *x = *(const struct node *const *)a, *y = *(const struct node *const *)b;

	return strcmp(x->key, y->key);
}

static void print_text(struct buffer *out, const char *text, size_t len)
{
	buffer_printf(out, "%zu:", len);
	buffer_append(out, text, len);
}

static void print_node(struct loader *l, const struct node *n, struct buffer *out)
{
	bool is_map = n->type == NODE_MAP;
	const struct node **children;
	size_t count = 0;

	buffer_printf(out, "%d ", (int)n->type);
	if (!is_map && n->type != NODE_LIST) {
		print_text(out, n->text ? n->text : "", n->text_len);
		return;
	}
	children = calloc(n->count + 1, sizeof(*children));
	l->no_memory |= !children;
	for (const struct node *child = n->first; children && child; child = child->next)
		children[count++] = child;
	if (is_map && count)
		qsort(children, count, sizeof(*children), compare_node_keys);
	buffer_printf(out, "%zu ", count);
	for (size_t i = 0; i < count; i++) {
		if (is_map)
			print_text(out, children[i]->key, children[i]->key_len);
		print_node(l, children[i], out);
	}
	free(children);
}

void settings_print_node(struct loader *l, const struct node *n, struct settings_print *ret_print)
{
	struct buffer text;

	buffer_init(&text, MAX_TEXT);
	if (n->key)
		print_text(&text, n->key, n->key_len);
	print_node(l, n, &text);
	finish_print(l, &text, ret_print);
}

/* ---- what is written elsewhere ---- */

static void add_print(struct buffer *text, const struct settings_print *print)
{
	buffer_append(text, print->bytes, sizeof(print->bytes));
}

/* Adds a file's content, or the error when it cannot be read. */
static void add_content(struct loader *l, const char *path, struct buffer *text)
{
	struct settings_print print = {{0}};
	struct buffer content;
	int r;

	buffer_init(&content, MAX_CONTENT);
	r = trusted_read(&sys_real, path, &content, NULL);
	if (r) {
		buffer_printf(text, "%d", r);
		buffer_fini(&content);
		return;
	}
	finish_print(l, &content, &print);
	add_print(text, &print);
}

/* Adds a directory of schemas; one that cannot be read is an error when it is used. */
static void add_contents(struct loader *l, const char *dir, struct buffer *text)
{
	static const char *const endings[] = {".json", ".yaml", ".yml", NULL};
	char *names[MAX_FILES], *path;
	int count = trusted_list(&sys_real, dir, endings, names, MAX_FILES, NULL);

	buffer_printf(text, "%d ", count);
	for (int i = 0; i < count; i++) {
		if (asprintf(&path, "%s/%s", dir, names[i]) < 0) {
			l->no_memory = true;
			path = NULL;
		}
		print_text(text, names[i], strlen(names[i]));
		if (path)
			add_content(l, path, text);
		free(path);
		free(names[i]);
	}
}

static void resolve_config(struct loader *l, struct settings_config *c)
{
	struct settings_server *const *servers = l->s->servers;
	struct buffer text;

	buffer_init(&text, MAX_TEXT);
	add_print(&text, &c->print);
	for (size_t i = 0; i < c->layer_count; i++)
		add_print(&text, &servers[c->layers[i].server]->print);
	if (c->bootstrap)
		add_print(&text, &servers[c->bootstrap->server]->print);
	if (c->rollout)
		add_print(&text, &servers[c->rollout->server]->print);
	buffer_printf(&text, "%lu:%lu ", (unsigned long)c->uid, (unsigned long)c->gid);
	buffer_printf(&text, "%d ", (int)c->verify.bind); /* others that share its key count */
	if (c->schema)
		add_content(l, c->schema, &text);
	if (c->template)
		mustache_describe(c->template, &text);
	if (c->schema_dir)
		add_contents(l, c->schema_dir, &text);
	finish_print(l, &text, &c->print);
}

static void resolve_push(struct loader *l, struct settings_push *p)
{
	struct buffer text;

	if (!p->secret_key_file)
		return;
	buffer_init(&text, MAX_TEXT);
	add_print(&text, &p->print);
	add_content(l, p->secret_key_file, &text);
	finish_print(l, &text, &p->print);
}

static void resolve_report(struct loader *l, struct settings_report *r)
{
	struct buffer text;

	if (!r->from)
		return;
	buffer_init(&text, MAX_TEXT);
	add_print(&text, &r->print);
	add_print(&text, &l->s->servers[r->server]->print);
	finish_print(l, &text, &r->print);
}

void settings_print_resolve(struct loader *l)
{
	struct settings *s = l->s;

	for (size_t i = 0; i < s->config_count; i++)
		resolve_config(l, s->configs[i]);
	for (size_t i = 0; i < s->push_count; i++)
		resolve_push(l, &s->push[i]);
	resolve_report(l, &s->report);
}
