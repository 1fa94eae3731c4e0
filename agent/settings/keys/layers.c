/*
 * The documents of a config: "from", and the short form of it, "url".
 *
 * Surprising: a config may name a server of a file that is read later, so names are looked up when
 * all files are read; their places are kept until then.
 */
#include "settings/keys/layers.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "settings/keys/servers.h"
#include "settings/form.h"
#include "settings/value.h"

/* ---- from ---- */

static const struct key from_keys[] = {
	{"server", walk_set_text, MEMBER(settings_layer, from), .check = settings_check_name,
		.required = true},
	{"path", walk_set_text, MEMBER(settings_layer, path), .check = settings_check_url_path,
		.required = true},
	{"optional", walk_set_bool, MEMBER(settings_layer, optional)},
	{"as", walk_set_text, MEMBER(settings_layer, as), .check = settings_check_file_name},
};

const struct mapping settings_from_keys = {from_keys, COUNT(from_keys)};

static void set_layer(struct loader *l, const struct node *n, struct settings_config *c)
{
	struct settings_layer *layer;
	char shown[SETTINGS_SHOWN];

	if (!walk_expect(l, n, "each of from", 1u << NODE_MAP, "a mapping with server and path"))
		return;
	layer = loader_room(l, c->layers, c->layer_count, sizeof(*layer));
	if (!layer)
		return;
	c->layers = layer;
	layer += c->layer_count++;
	walk_mapping(l, n, KEYS(from_keys), "from", NULL, layer);
	if (layer->from)
		loader_note(
			l, &l->froms, layer->from, c->name, walk_place(l, node_find(n, "server")));
	for (const struct settings_layer *before = c->layers; layer->as && before < layer; before++)
		if (before->as && !strcmp(before->as, layer->as))
			loader_complain(l, walk_place(l, node_find(n, "as")),
				"as: %s is named twice in this list",
				settings_shown(layer->as, shown));
}

void settings_set_from(struct loader *l, const struct node *n, const struct key *k, void *object)
{
	struct settings_config *c = object;

	if (!walk_expect(l, n, k->name, 1u << NODE_LIST, "a list of {server: NAME, path: /PATH}"))
		return;
	if (!n->first)
		loader_complain(l, walk_place(l, n), "from is empty: name at least one document");
	for (n = n->first; n; n = n->next) {
		if (!walk_has_room(l, n, c->layer_count, SETTINGS_MAX_LAYERS, "items of from"))
			break;
		set_layer(l, n, c);
	}
}

/* ---- one document beside those of from ---- */

static const struct key aside_keys[] = {
	{"server", walk_set_text, MEMBER(settings_layer, from), .check = settings_check_name,
		.required = true},
	{"path", walk_set_text, MEMBER(settings_layer, path), .check = settings_check_url_path,
		.required = true},
};

void settings_set_aside(struct loader *l, const struct node *n, const struct key *k, void *object)
{
	struct settings_layer **member = (struct settings_layer **)((char *)object + k->offset),
			      *layer;

	if (!walk_expect(l, n, k->name, 1u << NODE_MAP, "a mapping with server and path"))
		return;
	layer = loader_room(l, NULL, 0, sizeof(*layer));
	if (!layer)
		return;
	*member = layer;
	walk_mapping(l, n, KEYS(aside_keys), k->name, NULL, layer);
	if (layer->from)
		loader_note(
			l, &l->asides, layer->from, NULL, walk_place(l, node_find(n, "server")));
}

/* ---- from beside the other keys ---- */

/* An item of from beside "dir", or the lack of that. */
static void check_item(struct loader *l, const struct node *n, bool is_set, bool is_alone)
{
	const struct node *as = node_find(n, "as"), *optional = node_find(n, "optional");

	if (n->type != NODE_MAP)
		return; /* reported already */
	if (is_set && !as)
		loader_complain(l, walk_place(l, n),
			"an item of from has no as, the name of its file in the set (dir)");
	if (!is_set && as)
		loader_complain(l, walk_key_place(l, as),
			"as names a file of a set: set dir instead of file, or remove it");
	if (is_alone && optional && optional->text && !strcmp(optional->text, "true"))
		loader_complain(l, walk_key_place(l, optional),
			"optional: the only document cannot be missing: remove it, or add another "
			"item");
}

void settings_layers_check(struct loader *l, const struct node *n)
{
	const struct node *url = node_find(n, "url"), *from = node_find(n, "from"),
			  *dir = node_find(n, "dir"), *file = node_find(n, "file");
	char name[SETTINGS_SHOWN];

	if (!url == !from)
		loader_complain(l, walk_key_place(l, n),
			"config %s needs either url or from, and has %s",
			settings_shown(n->key, name), url ? "both" : "neither");
	if (dir && file)
		loader_complain(
			l, walk_key_place(l, dir), "dir and file exclude each other: remove one");
	if (dir && url)
		loader_complain(l, walk_key_place(l, dir),
			"dir needs from, a list of {server: NAME, path: /PATH, as: FILE}");
	if (dir && node_find(n, "bootstrap"))
		loader_complain(l, walk_key_place(l, node_find(n, "bootstrap")),
			"bootstrap brings one document, dir is a set of several: remove one");
	if (!from || from->type != NODE_LIST)
		return;
	for (const struct node *item = from->first; item; item = item->next)
		check_item(l, item, dir, from->count == 1);
}

/* ---- servers of documents ---- */

static size_t path_start(const char *url)
{
	size_t scheme = (size_t)(strstr(url, "://") - url) + 3;

	return scheme + strcspn(url + scheme, "/?");
}

static const struct settings_server *nearest_server(const struct settings *s, const char *word)
{
	const struct settings_server *best = NULL;
	unsigned least = 4, d;

	for (size_t i = 0; i < s->server_count; i++) {
		d = s->servers[i]->name ? settings_distance(word, s->servers[i]->name) : least;
		if (d < least) {
			least = d;
			best = s->servers[i];
		}
	}
	return best;
}

bool settings_find_server(
	struct loader *l, const char *name, struct place place, unsigned *ret_server)
{
	const struct settings *s = l->s;
	const struct settings_server *like;
	char shown[SETTINGS_SHOWN], known[SETTINGS_SHOWN];

	for (size_t i = 0; i < s->server_count; i++) {
		if (s->servers[i]->name && strcmp(s->servers[i]->name, name) == 0) {
			*ret_server = (unsigned)i;
			return true;
		}
	}
	like = nearest_server(s, name);
	if (like)
		loader_complain(l, place, "there is no server %s: did you mean %s?",
			settings_shown(name, shown), settings_shown(like->name, known));
	else if (!l->file_missed)
		loader_complain(l, place, "there is no server %s: add it under \"servers\"",
			settings_shown(name, shown));
	return false;
}

/* What a path is to a kind of server. */
static const struct shape {
	unsigned least, most; /* segments; most 0 = anything */
	bool prefix;          /* it may end in '/': all below */
	bool whole;           /* the document comes byte for byte: it may be signed */
	const char *form;
} shapes[SETTINGS_KINDS] = {
	[SETTINGS_HTTP] = {.whole = true},
	[SETTINGS_ETCD] = {1, 64, true, true, "/KEY, or /PREFIX/"},
	[SETTINGS_CONSUL] = {1, 64, true, true, "/KEY, or /PREFIX/"},
	[SETTINGS_NACOS] = {2, 2, false, true, "/GROUP/DATAID"},
	[SETTINGS_APOLLO] = {3, 3, false, false, "/APPID/CLUSTER/NAMESPACE"},
	[SETTINGS_SPRING] = {2, 3, false, false,
		"/APPLICATION/PROFILE or "
		"/APPLICATION/PROFILE/LABEL"},
	[SETTINGS_S3] = {1, 64, false, true, "/BUCKET/KEY"},
	[SETTINGS_FILE] = {1, 64, false, true, "/FILE"},
};

/* Of a path: its segments; 0 when one is empty. */
static unsigned count_segments(const char *path, bool is_prefix)
{
	unsigned n = 0;
	size_t len;

	for (; *path == '/'; path += len, n++) {
		len = strcspn(path + 1, "/");
		if (len++ == 0)
			return is_prefix && !path[1] ? n : 0;
	}
	return n;
}

static void check_layer_path(struct loader *l, const struct settings_server *server,
	const struct settings_layer *layer, bool is_signed, struct place place)
{
	const struct shape *shape = &shapes[server->kind];
	size_t len = strlen(layer->path);
	unsigned n = count_segments(layer->path, shape->prefix);

	for (size_t u = 0; u < server->url_count; u++)
		if (server->urls[u] && strlen(server->urls[u]) + len > SETTINGS_MAX_URL)
			loader_complain(l, place,
				"the server's url and the path together are too long: at "
				"most 1023 bytes");
	if (shape->most && (n < shape->least || n > shape->most))
		loader_complain(
			l, place, "the path must be %s on a server of this kind", shape->form);
	else if (is_signed && (!shape->whole || (shape->prefix && layer->path[len - 1] == '/')))
		loader_complain(l, place,
			"verify needs a document as it was signed: what the agent makes of several "
			"values has no signature");
}

/* Finds the server that the layer names at that place. */
static void find_named(
	struct loader *l, struct settings_layer *layer, bool is_signed, struct place place)
{
	if (settings_find_server(l, layer->from, place, &layer->server) && layer->path)
		check_layer_path(l, l->s->servers[layer->server], layer, is_signed, place);
}

/* Resolves bootstrap or rollout. */
static void resolve_aside(struct loader *l, struct settings_layer *layer, bool is_signed)
{
	for (size_t i = 0; layer && layer->from && i < l->asides.count; i++)
		if (l->asides.items[i].text == layer->from)
			find_named(l, layer, is_signed, l->asides.items[i].place);
}

static int compare_origins(const void *a, const void *b)
{
	const struct settings_config *x = *(struct settings_config *const *)a,
				     *y = *(struct settings_config *const *)b;
	size_t xl = path_start(x->url), yl = path_start(y->url);
	int r = strncasecmp(x->url, y->url, xl < yl ? xl : yl);

	return r ? r : (xl > yl) - (xl < yl);
}

/* A server for the origin of this config's url. */
static void add_origin_server(struct loader *l, const struct settings_config *c)
{
	struct settings_server *server = settings_server_add(l);

	if (!server)
		return;
	server->urls = loader_room(l, NULL, 0, sizeof(*server->urls));
	if (!server->urls)
		return;
	server->urls[0] = strndup(c->url, path_start(c->url));
	l->no_memory |= !server->urls[0];
	server->url_count = 1;
}

/* The one document of a config with a plain url, from the last server. */
static char *path_in_url(const struct settings_config *c)
{
	return c->url + path_start(c->url);
}

static void add_plain(struct loader *l, struct settings_config *c)
{
	c->layers = loader_room(l, NULL, 0, sizeof(*c->layers));
	if (!c->layers)
		return;
	c->layer_count = 1;
	c->layers->type = c->type;
	c->layers->server = (unsigned)l->s->server_count - 1;
	c->layers->path = path_in_url(c);
}

/* Configs with a plain url, by origin. */
static void find_origins(struct loader *l)
{
	struct settings *s = l->s;
	struct settings_config **plain = calloc(s->config_count + 1, sizeof(*plain));
	size_t n = 0;

	for (size_t i = 0; plain && i < s->config_count; i++)
		if (s->configs[i]->url && !s->configs[i]->layers)
			plain[n++] = s->configs[i];
	if (plain && n)
		qsort(plain, n, sizeof(struct settings_config *), compare_origins);
	l->no_memory |= !plain;
	for (size_t i = 0; i < n && !l->no_memory; i++) {
		if (i == 0 || compare_origins(&plain[i - 1], &plain[i]))
			add_origin_server(l, plain[i]);
		if (!l->no_memory)
			add_plain(l, plain[i]);
	}
	free(plain);
}

/* What the file of a set is, by the ending of its name. */
static enum settings_type type_of_file(const char *name)
{
	static const struct {
		const char *ending;
		enum settings_type type;
	} table[] = {
		{".yaml", SETTINGS_TYPE_YAML},
		{".yml", SETTINGS_TYPE_YAML},
		{".json", SETTINGS_TYPE_JSON},
	};
	const char *ending = strrchr(name, '.');

	for (size_t i = 0; ending && i < COUNT(table); i++)
		if (!strcasecmp(ending, table[i].ending))
			return table[i].type;
	return SETTINGS_TYPE_BYTES;
}

static void resolve_layers(struct loader *l, struct settings_config *c, size_t *from)
{
	for (size_t i = 0; i < c->layer_count; i++) {
		struct settings_layer *layer = &c->layers[i];

		layer->type = c->type;
		if (layer->as && c->type == SETTINGS_TYPE_AUTO)
			layer->type = type_of_file(layer->as);
		if (layer->from && *from < l->froms.count)
			find_named(
				l, layer, c->verify.public_keys, l->froms.items[(*from)++].place);
	}
	if (c->bootstrap)
		c->bootstrap->type = c->type;
	resolve_aside(l, c->bootstrap, c->verify.public_keys);
	if (c->rollout)
		c->rollout->optional = true; /* without it all hosts take all versions */
	resolve_aside(l, c->rollout, false);
}

/* Bounds the size of its document by its servers'. */
static void bound_document(const struct settings *s, struct settings_config *c)
{
	for (size_t i = 0; i < c->layer_count; i++) {
		size_t server = c->layers[i].server;
		uint64_t max_bytes = server < s->server_count ? s->servers[server]->max_bytes : 0;

		if (SETTINGS_GROWTH * max_bytes > c->max_made)
			c->max_made = SETTINGS_GROWTH * max_bytes;
	}
}

void settings_layers_resolve(struct loader *l)
{
	size_t from = 0;

	for (size_t i = 0; i < l->s->config_count; i++)
		resolve_layers(l, l->s->configs[i], &from);
	find_origins(l);
	for (size_t i = 0; i < l->s->config_count; i++)
		bound_document(l->s, l->s->configs[i]);
}

static void layer_fini(struct settings_layer *layer)
{
	if (layer)
		walk_free(KEYS(from_keys), layer);
}

void settings_layers_fini(struct settings_config *c)
{
	if (c->url && c->layers && c->layers->path == path_in_url(c))
		c->layers->path = NULL;
	for (size_t i = 0; i < c->layer_count; i++)
		layer_fini(&c->layers[i]);
	free(c->layers);
	layer_fini(c->bootstrap);
	free(c->bootstrap);
	layer_fini(c->rollout);
	free(c->rollout);
}
