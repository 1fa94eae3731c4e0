/*
 * Servers: what their keys may hold.
 *
 * Surprising: a url is never shown in a message, because it could hold a password.
 */
#include "settings/keys/servers.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "crypto/curve_keys.h"
#include "settings/fingerprint.h"
#include "settings/look.h"
#include "settings/form.h"
#include "settings/value.h"

#define MAX_WHERE (SETTINGS_SHOWN + 16) /* server "NAME" */

static const struct settings_server server_defaults = {
	.connect_timeout_ms = 3 * SECOND,
	.max_in_flight = 8,
	.max_bytes = SETTINGS_MAX_BYTES_DEFAULT,
	.tls_min = SETTINGS_TLS_1_2,
	.api = 1,
};

#define SERVER(member) MEMBER(settings_server, member)

/* ---- tls ---- */

static const struct choice tls_versions[] = {
	{"1.2", SETTINGS_TLS_1_2},
	{"1.3", SETTINGS_TLS_1_3},
	{NULL, 0},
};
static const struct key tls_keys[] = {
	{"ca", walk_set_text, SERVER(ca), .check = settings_check_path, .look = LOOK_FILE},
	{"cert", walk_set_text, SERVER(cert), .check = settings_check_path, .look = LOOK_FILE},
	{"key", walk_set_text, SERVER(key), .check = settings_check_path, .look = LOOK_FILE,
		.hidden = true},
	{"crl", walk_set_text, SERVER(crl), .check = settings_check_path, .look = LOOK_FILE},
	{"min_version", walk_set_choice, SERVER(tls_min), .choices = tls_versions},
};

static void set_tls(struct loader *l, const struct node *n, const struct key *k, void *object)
{
	walk_set_mapping(l, n, k, object);
	if (node_find(n, "key") && !node_find(n, "cert"))
		loader_complain(l, walk_key_place(l, node_find(n, "key")),
			"key is set without cert, the certificate that it belongs to");
}

/* ---- auth ---- */

static const struct key basic_keys[] = {
	{"user", walk_set_text, SERVER(user), .check = settings_check_user, .required = true},
	{"password_file", walk_set_text, SERVER(password_file), .check = settings_check_path,
		.look = LOOK_FILE, .hidden = true, .required = true},
};

static const struct key header_file_keys[] = {
	{"file", walk_set_text, MEMBER(settings_header, file), .check = settings_check_path,
		.look = LOOK_FILE, .hidden = true, .required = true},
};

static void set_header(struct loader *l, const struct node *n, struct settings_server *s)
{
	char shown[SETTINGS_SHOWN], where[MAX_WHERE];
	const char *why = settings_check_header_name(n->key);
	struct settings_header *h;

	settings_shown(n->key, shown);
	snprintf(where, sizeof(where), "header %s", shown);
	if (why)
		loader_complain(l, walk_key_place(l, n), "%s %s", where, why);
	if (!walk_expect(
		    l, n, where, 1u << NODE_STRING | 1u << NODE_MAP, "a text, or {file: PATH}") ||
		why)
		return;
	h = loader_room(l, s->headers, s->header_count, sizeof(*h));
	if (!h)
		return;
	s->headers = h;
	h += s->header_count++;
	h->name = loader_copy(l, n->key);
	if (n->type == NODE_MAP) {
		walk_mapping(l, n, KEYS(header_file_keys), where, NULL, h);
		return;
	}
	why = settings_check_header_value(n->text);
	if (why)
		loader_complain(l, walk_place(l, n), "the value of %s %s", where, why);
	else
		h->value = loader_copy(l, n->text);
}

static void set_headers(struct loader *l, const struct node *n, const struct key *k, void *object)
{
	struct settings_server *s = object;

	if (!walk_expect_map(l, n, k->name))
		return;
	for (n = n->first; n; n = n->next) {
		if (!walk_has_room(l, n, s->header_count, SETTINGS_MAX_HEADERS, "headers"))
			break;
		set_header(l, n, s);
	}
}

static const struct key access_keys[] = {
	{"id", walk_set_text, SERVER(access_key), .check = settings_check_word},
	{"secret_file", walk_set_text, SERVER(secret_file), .check = settings_check_path,
		.look = LOOK_FILE, .hidden = true, .required = true},
	{"session_token_file", walk_set_text, SERVER(session_token_file),
		.check = settings_check_path, .look = LOOK_FILE, .hidden = true},
};

/* S3 has an id for each key, Apollo one key for an application. */
static void set_access_key(
	struct loader *l, const struct node *n, const struct key *k, void *object)
{
	const struct settings_server *s = object;

	walk_set_mapping(l, n, k, object);
	if (n->type == NODE_MAP && s->kind == SETTINGS_S3 && !node_find(n, "id"))
		loader_complain(l, walk_place(l, n), "access_key has no id");
	for (size_t i = 0; s->kind == SETTINGS_APOLLO && i < COUNT(access_keys); i++)
		if (!access_keys[i].required && node_find(n, access_keys[i].name))
			loader_complain(l, walk_key_place(l, node_find(n, access_keys[i].name)),
				"%s: Apollo knows only the secret of an access key: remove it",
				access_keys[i].name);
}

static const struct key auth_keys[] = {
	{"bearer_file", walk_set_text, SERVER(bearer_file), .check = settings_check_path,
		.look = LOOK_FILE, .hidden = true},
	{"basic", walk_set_mapping, .mapping = KEYS(basic_keys),
		.wanted = "a mapping with user and password_file"},
	{"headers", .set = set_headers},
	{"access_key", set_access_key, .mapping = KEYS(access_keys),
		.wanted = "a mapping with secret_file"},
};

/* Two of them would both be the Authorization header. */
static void check_auth(struct loader *l, const struct node *n, const struct settings_server *s)
{
	static const char *const ways[] = {"bearer_file", "basic", "access_key"};
	const struct node *first = NULL, *way;

	for (size_t i = 0; i < COUNT(ways); i++) {
		way = node_find(n, ways[i]);
		if (way && first)
			loader_complain(l, walk_key_place(l, way),
				"%s and %s exclude each other: remove one", first->key, way->key);
		first = first ? first : way;
	}
	for (size_t i = 0; first && i < s->header_count; i++)
		if (s->headers[i].name && !strcasecmp(s->headers[i].name, "Authorization"))
			loader_complain(l, walk_key_place(l, first),
				"%s and the header \"Authorization\" exclude each other: remove "
				"one",
				first->key);
}

static void set_auth(struct loader *l, const struct node *n, const struct key *k, void *object)
{
	walk_set_mapping(l, n, k, object);
	check_auth(l, n, object);
}

/* ---- servers ---- */

static void set_url(struct loader *l, const struct node *n, struct settings_server *s)
{
	const char *why;
	char **urls, *url;

	if (!walk_expect(l, n, "each of urls", 1u << NODE_STRING, "a text"))
		return;
	why = s->kind == SETTINGS_FILE ? settings_check_file_url(n->text)
				       : settings_check_base_url(n->text);
	if (why) { /* not shown: it may hold a password */
		loader_complain(l, walk_place(l, n), "the url %s", why);
		return;
	}
	urls = loader_room(l, s->urls, s->url_count, sizeof(*urls));
	if (!urls)
		return;
	s->urls = urls;
	url = urls[s->url_count++] = loader_copy(l, n->text);
	if (s->kind == SETTINGS_FILE && url && n->text[strlen("file://")])
		look_at_folder(l, n, n->text + strlen("file://"));
	for (size_t len = url ? strlen(url) : 0; len && url[len - 1] == '/'; len--)
		url[len - 1] = '\0';
	for (size_t i = 0; url && i + 1 < s->url_count; i++)
		if (urls[i] && !strcmp(urls[i], url))
			loader_complain(l, walk_place(l, n), "the url is named twice in this list");
}

static void set_urls(struct loader *l, const struct node *n, const struct key *k, void *object)
{
	struct settings_server *s = object;

	if (!walk_expect(l, n, k->name, 1u << NODE_LIST, "a list of URLs"))
		return;
	if (!n->first)
		loader_complain(l, walk_place(l, n), "urls is empty: name at least one");
	for (n = n->first; n; n = n->next) {
		if (!walk_has_room(l, n, s->url_count, SETTINGS_MAX_URLS, "urls"))
			break;
		set_url(l, n, s);
	}
}

#define KIND(kind) (1u << SETTINGS_##kind)
#define ALL_BUT_FILES (~KIND(FILE))

static const struct choice kinds[] = {
	{"http", SETTINGS_HTTP},
	{"etcd", SETTINGS_ETCD},
	{"consul", SETTINGS_CONSUL},
	{"nacos", SETTINGS_NACOS},
	{"apollo", SETTINGS_APOLLO},
	{"spring", SETTINGS_SPRING},
	{"s3", SETTINGS_S3},
	{"file", SETTINGS_FILE},
	{NULL, 0},
};
static const struct key server_keys[] = {
	{"kind", walk_set_choice, SERVER(kind), .choices = kinds},
	{"urls", .set = set_urls},
	{"tls", set_tls, .mapping = KEYS(tls_keys)},
	{"auth", set_auth, .mapping = KEYS(auth_keys)},
	{"insecure", walk_set_bool, SERVER(insecure)},
	{"watch", walk_set_bool, SERVER(watch)},
	{"region", walk_set_text, SERVER(region), .check = settings_check_word},
	{"datacenter", walk_set_text, SERVER(datacenter), .check = settings_check_word},
	{"namespace", walk_set_text, SERVER(namespace), .check = settings_check_word},
	{"api", walk_set_number, SERVER(api), .min = 1, .max = 3},
	{"connect_timeout", walk_set_duration, SERVER(connect_timeout_ms), .min = 100,
		.max = 60 * SECOND},
	{"max_in_flight", walk_set_number, SERVER(max_in_flight), .min = 1,
		.max = SETTINGS_MAX_IN_FLIGHT},
	{"max_size", walk_set_size, SERVER(max_bytes), .min = 1, .max = UINT64_C(256) << 20},
};
const struct mapping settings_server_keys = {server_keys, COUNT(server_keys)},
		     settings_tls_keys = {tls_keys, COUNT(tls_keys)},
		     settings_auth_keys = {auth_keys, COUNT(auth_keys)},
		     settings_access_keys = {access_keys, COUNT(access_keys)},
		     settings_basic_keys = {basic_keys, COUNT(basic_keys)};

/* Keys for some kinds only; below auth, too. */
static const struct {
	const char *in, *name;
	unsigned kinds;
} uses[] = {
	{NULL, "watch", KIND(ETCD) | KIND(CONSUL) | KIND(NACOS) | KIND(APOLLO) | KIND(FILE)},
	{NULL, "region", KIND(S3)},
	{NULL, "datacenter", KIND(CONSUL) | KIND(APOLLO)},
	{NULL, "namespace", KIND(NACOS)},
	{NULL, "api", KIND(NACOS)},
	{NULL, "tls", ALL_BUT_FILES},
	{NULL, "auth", ALL_BUT_FILES},
	{NULL, "insecure", ALL_BUT_FILES},
	{NULL, "connect_timeout", ALL_BUT_FILES},
	{"auth", "basic", KIND(HTTP) | KIND(ETCD) | KIND(NACOS) | KIND(SPRING)},
	{"auth", "bearer_file", KIND(HTTP) | KIND(CONSUL) | KIND(SPRING)},
	{"auth", "access_key", KIND(S3) | KIND(APOLLO)},
};

/* Reads the kind before the other keys, whose meaning depends on it. False when it is invalid. */
static bool find_kind(const struct node *n, struct settings_server *s)
{
	const struct node *kind = node_find(n, "kind");

	for (size_t i = 0; kind && kind->type == NODE_STRING && kinds[i].name; i++)
		if (!strcmp(kind->text, kinds[i].name)) {
			s->kind = (enum settings_kind)kinds[i].value;
			return true;
		}
	return !kind;
}

static void check_uses(struct loader *l, const struct node *n, const struct settings_server *s)
{
	const struct node *in, *key;

	for (size_t i = 0; i < COUNT(uses); i++) {
		in = uses[i].in ? node_find(n, uses[i].in) : n;
		key = node_find(in, uses[i].name);
		if (key && !(uses[i].kinds & 1u << s->kind))
			loader_complain(l, walk_key_place(l, key),
				"%s means nothing to a server of the kind %s: remove it",
				uses[i].name, kinds[s->kind].name);
	}
	if (s->kind == SETTINGS_NACOS && s->api == 2)
		loader_complain(
			l, walk_place(l, node_find(n, "api")), "api is 1 (Nacos 1.x and 2.x) or 3");
	if (s->kind == SETTINGS_NACOS && s->api == 3 && s->watch)
		loader_complain(l, walk_key_place(l, node_find(n, "watch")),
			"Nacos 3 cannot be watched over HTTP: remove it, the interval counts");
}

/* Names a secret that requests carry as it is; NULL = none. An access_key only signs them. */
static const char *secret_sent(const struct settings_server *s)
{
	if (s->bearer_file)
		return "the token of bearer_file";
	if (s->password_file)
		return "the password of basic";
	for (size_t i = 0; i < s->header_count; i++)
		if (s->headers[i].file ||
			(s->headers[i].name && !strcasecmp(s->headers[i].name, "Authorization")))
			return "the secret of headers";
	return NULL;
}

/* Nobody on the way may read a secret. */
static void check_plain_http(
	struct loader *l, const struct node *n, const struct settings_server *s)
{
	const char *secret = secret_sent(s);
	const struct node *urls = node_find(n, "urls");

	if (!secret || s->insecure || !urls || urls->type != NODE_LIST)
		return;
	for (const struct node *url = urls->first; url; url = url->next)
		if (url->type == NODE_STRING && curve_url_is_open(url->text)) {
			loader_complain(l, walk_place(l, url),
				"the url is not on this host, and %s could be read on the way over "
				"plain http: use https, or add insecure: true",
				secret);
			return;
		}
}

/* Without urls, a path of kind file is one of the whole host. */
static void complete_urls(struct loader *l, const struct node *n, struct settings_server *s)
{
	char shown[SETTINGS_SHOWN];

	if (node_find(n, "urls"))
		return;
	if (s->kind != SETTINGS_FILE) {
		loader_complain(l, walk_key_place(l, n), "server %s has no urls, which it needs",
			settings_shown(n->key, shown));
		return;
	}
	s->urls = loader_room(l, NULL, 0, sizeof(*s->urls));
	if (s->urls && (s->urls[0] = loader_copy(l, "file://")))
		s->url_count = 1;
}

struct settings_server *settings_server_add(struct loader *l)
{
	struct settings *s = l->s;
	struct settings_server **servers =
		loader_room(l, s->servers, s->server_count, sizeof(*servers));
	struct settings_server *server = servers ? loader_room(l, NULL, 0, sizeof(*server)) : NULL;

	if (servers)
		s->servers = servers;
	if (!server)
		return NULL;
	*server = server_defaults;
	return servers[s->server_count++] = server;
}

static void set_server_item(struct loader *l, const struct node *n)
{
	char shown[SETTINGS_SHOWN], where[MAX_WHERE];
	const char *why = settings_check_name(n->key);
	struct settings_server *server;
	bool https = false, known;

	settings_shown(n->key, shown);
	snprintf(where, sizeof(where), "server %s", shown);
	if (why)
		loader_complain(l, walk_key_place(l, n), "%s %s", where, why);
	if (!walk_expect(l, n, where, 1u << NODE_MAP, "a mapping with at least urls"))
		return;
	server = settings_server_add(l);
	if (!server)
		return;
	server->name = loader_copy(l, n->key);
	known = find_kind(n, server);
	walk_mapping(l, n, KEYS(server_keys), where, NULL, server);
	if (known)
		check_uses(l, n, server);
	complete_urls(l, n, server);
	check_plain_http(l, n, server);
	for (size_t i = 0; i < server->url_count; i++)
		https |= server->urls[i] && !strncasecmp(server->urls[i], "https:", 6);
	if (node_find(n, "tls") && server->url_count && !https && server->kind != SETTINGS_FILE)
		loader_complain(l, walk_key_place(l, node_find(n, "tls")),
			"tls is set, but none of the urls is https");
	loader_note(l, &l->servers, server->name, NULL, walk_key_place(l, n));
	settings_print_node(l, n, &server->print);
}

void settings_set_servers(struct loader *l, const struct node *n, const struct key *k, void *object)
{
	(void)object;
	if (!walk_expect_map(l, n, k->name))
		return;
	for (n = n->first; n; n = n->next) {
		if (!walk_has_room(l, n, l->s->server_count, SETTINGS_MAX_SERVERS, "servers"))
			break;
		set_server_item(l, n);
	}
}

/* ---- memory ---- */

void settings_server_free(struct settings_server *s)
{
	walk_free(KEYS(server_keys), s);
	free(s->name);
	for (size_t i = 0; i < s->url_count; i++)
		free(s->urls[i]);
	free(s->urls);
	for (size_t i = 0; i < s->header_count; i++) {
		free(s->headers[i].name);
		free(s->headers[i].value);
		free(s->headers[i].file);
	}
	free(s->headers);
	free(s);
}
