/*
 * Servers: what their keys may hold.
 *
 * What would surprise: a url is never shown in a message, because it could hold a password.
 */
#include "settings_servers.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "settings_value.h"

#define MAX_WHERE (SETTINGS_SHOWN + 16) /* server "NAME" */

static const struct settings_server server_defaults = {
	.connect_timeout_ms = 3 * SECOND,
	.max_in_flight = 8,
	.max_bytes = SETTINGS_MAX_BYTES_DEFAULT,
	.tls_min = SETTINGS_TLS_1_2,
};

#define SERVER(member) MEMBER(settings_server, member)

/* ---- tls ---- */

static const struct choice tls_versions[] = {
	{"1.2", SETTINGS_TLS_1_2},
	{"1.3", SETTINGS_TLS_1_3},
	{NULL, 0},
};
static const struct key tls_keys[] = {
	{"ca", set_text, SERVER(ca), .check = settings_check_path},
	{"cert", set_text, SERVER(cert), .check = settings_check_path},
	{"key", set_text, SERVER(key), .check = settings_check_path},
	{"crl", set_text, SERVER(crl), .check = settings_check_path},
	{"min_version", set_choice, SERVER(tls_min), .choices = tls_versions},
};

static void set_tls(struct loader *l, const struct node *n, const struct key *k, void *object)
{
	static const struct mapping mapping = {tls_keys, COUNT(tls_keys)};
	struct place seen[COUNT(tls_keys)] = {{0}};

	if (!expect_map(l, n, k->name))
		return;
	settings_walk(l, n, &mapping, "tls", seen, object);
	if (node_find(n, "key") && !node_find(n, "cert"))
		loader_complain(l, place_of_key(l, node_find(n, "key")),
			"key is set without cert, the certificate that it belongs to");
}

/* ---- auth ---- */

static const struct key basic_keys[] = {
	{"user", set_text, SERVER(user), .check = settings_check_user, .required = true},
	{"password_file", set_text, SERVER(password_file), .check = settings_check_path,
		.required = true},
};

static void set_basic(struct loader *l, const struct node *n, const struct key *k, void *object)
{
	static const struct mapping mapping = {basic_keys, COUNT(basic_keys)};
	struct place seen[COUNT(basic_keys)] = {{0}};

	if (expect(l, n, k->name, 1u << NODE_MAP, "a mapping with user and password_file"))
		settings_walk(l, n, &mapping, "basic", seen, object);
}

static const struct key header_file_keys[] = {
	{"file", set_text, MEMBER(settings_header, file), .check = settings_check_path,
		.required = true},
};

static void set_header(struct loader *l, const struct node *n, struct settings_server *s)
{
	static const struct mapping mapping = {header_file_keys, COUNT(header_file_keys)};
	struct place seen[COUNT(header_file_keys)] = {{0}};
	char shown[SETTINGS_SHOWN], where[MAX_WHERE];
	const char *why = settings_check_header_name(n->key);
	struct settings_header *h;

	settings_shown(n->key, shown);
	snprintf(where, sizeof(where), "header %s", shown);
	if (why)
		loader_complain(l, place_of_key(l, n), "%s %s", where, why);
	if (!expect(l, n, where, 1u << NODE_STRING | 1u << NODE_MAP, "a text, or {file: PATH}") ||
		why)
		return;
	h = loader_room(l, s->headers, s->header_count, sizeof(*h));
	if (!h)
		return;
	s->headers = h;
	h += s->header_count++;
	h->name = loader_copy(l, n->key);
	if (n->type == NODE_MAP) {
		settings_walk(l, n, &mapping, where, seen, h);
		return;
	}
	why = settings_check_header_value(n->text);
	if (why)
		loader_complain(l, place_of(l, n), "the value of %s %s", where, why);
	else
		h->value = loader_copy(l, n->text);
}

static void set_headers(struct loader *l, const struct node *n, const struct key *k, void *object)
{
	struct settings_server *s = object;

	if (!expect_map(l, n, k->name))
		return;
	for (n = n->first; n; n = n->next) {
		if (!has_room(l, n, s->header_count, SETTINGS_MAX_HEADERS, "headers"))
			break;
		set_header(l, n, s);
	}
}

static const struct key auth_keys[] = {
	{"bearer_file", set_text, SERVER(bearer_file), .check = settings_check_path},
	{"basic", .set = set_basic},
	{"headers", .set = set_headers},
};

/* Two of them would both be the Authorization header. */
static void check_auth(struct loader *l, const struct node *n, const struct settings_server *s)
{
	const struct node *bearer = node_find(n, "bearer_file"), *basic = node_find(n, "basic");

	if (bearer && basic)
		loader_complain(l, place_of_key(l, basic),
			"bearer_file and basic exclude each other: remove one");
	for (size_t i = 0; (bearer || basic) && i < s->header_count; i++)
		if (s->headers[i].name && !strcasecmp(s->headers[i].name, "Authorization"))
			loader_complain(l, place_of_key(l, bearer ? bearer : basic),
				"%s and the header \"Authorization\" exclude each other: remove "
				"one",
				bearer ? "bearer_file" : "basic");
}

static void set_auth(struct loader *l, const struct node *n, const struct key *k, void *object)
{
	static const struct mapping mapping = {auth_keys, COUNT(auth_keys)};
	struct place seen[COUNT(auth_keys)] = {{0}};

	if (!expect_map(l, n, k->name))
		return;
	settings_walk(l, n, &mapping, "auth", seen, object);
	check_auth(l, n, object);
}

/* ---- servers ---- */

static void set_url(struct loader *l, const struct node *n, struct settings_server *s)
{
	const char *why;
	char **urls, *url;

	if (!expect(l, n, "each of urls", 1u << NODE_STRING, "a text"))
		return;
	why = settings_check_base_url(n->text);
	if (why) { /* not shown: it may hold a password */
		loader_complain(l, place_of(l, n), "the url %s", why);
		return;
	}
	urls = loader_room(l, s->urls, s->url_count, sizeof(*urls));
	if (!urls)
		return;
	s->urls = urls;
	url = urls[s->url_count++] = loader_copy(l, n->text);
	for (size_t len = url ? strlen(url) : 0; len && url[len - 1] == '/'; len--)
		url[len - 1] = '\0';
	for (size_t i = 0; url && i + 1 < s->url_count; i++)
		if (urls[i] && !strcmp(urls[i], url))
			loader_complain(l, place_of(l, n), "the url is named twice in this list");
}

static void set_urls(struct loader *l, const struct node *n, const struct key *k, void *object)
{
	struct settings_server *s = object;

	if (!expect(l, n, k->name, 1u << NODE_LIST, "a list of URLs"))
		return;
	if (!n->first)
		loader_complain(l, place_of(l, n), "urls is empty: name at least one");
	for (n = n->first; n; n = n->next) {
		if (!has_room(l, n, s->url_count, SETTINGS_MAX_URLS, "urls"))
			break;
		set_url(l, n, s);
	}
}

static const struct choice kinds[] = {{"http", 0}, {NULL, 0}};
static const struct key server_keys[] = {
	{"kind", set_choice, .choices = kinds},
	{"urls", .set = set_urls, .required = true},
	{"tls", .set = set_tls},
	{"auth", .set = set_auth},
	{"connect_timeout", set_duration, SERVER(connect_timeout_ms), .min = 100,
		.max = 60 * SECOND},
	{"max_in_flight", set_number, SERVER(max_in_flight), .min = 1,
		.max = SETTINGS_MAX_IN_FLIGHT},
	{"max_size", set_size, SERVER(max_bytes), .min = 1, .max = UINT64_C(256) << 20},
};

struct settings_server *settings_server_add(struct loader *l)
{
	struct settings *s = l->s;
	struct settings_server *server =
		loader_room(l, s->servers, s->server_count, sizeof(*server));

	if (!server)
		return NULL;
	s->servers = server;
	server += s->server_count++;
	*server = server_defaults;
	return server;
}

static void set_server(struct loader *l, const struct node *n)
{
	static const struct mapping mapping = {server_keys, COUNT(server_keys)};
	struct place seen[COUNT(server_keys)] = {{0}};
	char shown[SETTINGS_SHOWN], where[MAX_WHERE];
	const char *why = settings_check_name(n->key);
	struct settings_server *server;
	bool https = false;

	settings_shown(n->key, shown);
	snprintf(where, sizeof(where), "server %s", shown);
	if (why)
		loader_complain(l, place_of_key(l, n), "%s %s", where, why);
	if (!expect(l, n, where, 1u << NODE_MAP, "a mapping with at least urls"))
		return;
	server = settings_server_add(l);
	if (!server)
		return;
	server->name = loader_copy(l, n->key);
	settings_walk(l, n, &mapping, where, seen, server);
	for (size_t i = 0; i < server->url_count; i++)
		https |= server->urls[i] && !strncasecmp(server->urls[i], "https:", 6);
	if (node_find(n, "tls") && server->url_count && !https)
		loader_complain(l, place_of_key(l, node_find(n, "tls")),
			"tls is set, but none of the urls is https");
	loader_note(l, &l->servers, server->name, NULL, place_of_key(l, n));
}

void settings_set_servers(struct loader *l, const struct node *n, const struct key *k, void *object)
{
	(void)object;
	if (!expect_map(l, n, k->name))
		return;
	for (n = n->first; n; n = n->next) {
		if (!has_room(l, n, l->s->server_count, SETTINGS_MAX_SERVERS, "servers"))
			break;
		set_server(l, n);
	}
}

/* ---- memory ---- */

void settings_server_fini(struct settings_server *s)
{
	char **const texts[] = {&s->name, &s->bearer_file, &s->user, &s->password_file, &s->ca,
		&s->crl, &s->cert, &s->key};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		free(*texts[i]);
	for (size_t i = 0; i < s->url_count; i++)
		free(s->urls[i]);
	free(s->urls);
	for (size_t i = 0; i < s->header_count; i++) {
		free(s->headers[i].name);
		free(s->headers[i].value);
		free(s->headers[i].file);
	}
	free(s->headers);
}
