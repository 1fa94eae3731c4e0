/*
 * Nacos: the API of 1.x and 2.x, whose document is the body, and that of 3.x, which wraps it in
 * JSON. A path is /GROUP/DATAID; the server's `namespace` is the tenant of the one API and the
 * namespaceId of the other; "public" and none are the same. A url without a path is completed by
 * Nacos' own, /nacos; one with a path is taken as it is.
 *
 * Surprising: a version is the MD5 of the document, computed here; the server's must be equal. In a
 * watch the list of documents is decoded twice by the server, but only once by others with its API:
 * so only the characters that a second decoding would change ('%' and '+') are encoded twice. A 404
 * counts as absence only in Nacos' own words, so that a wrong path or a proxy never makes an
 * optional document vanish.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "crypto/digest.h"
#include "document/document.h"
#include "pull/kinds/kind.h"

#define WORD_END '\x02'
#define LINE_END '\x01'
#define HOLD_MS 30000 /* a watch is held for so long, more or less: */
#define HOLD_JITTER_MS 6000
#define MAX_TTL_S (366 * 86400)

/* Codes of the 3.x API. */
#define CODE_OK 0
#define CODE_ACCESS_DENIED 10001
#define CODE_NOT_FOUND 20004
#define CODE_CONFLICT 20005
#define CODE_NO_NAMESPACE 22001

struct names {
	const char *group, *data_id;
	size_t group_len, data_id_len;
};

/* ---- requests ---- */

static bool is_v3(const struct kind_place *place)
{
	return place->server->api == 3;
}

/* The namespace; "" = public. */
static const char *tenant_of(const struct kind_place *place)
{
	const char *tenant = place->server->namespace;

	return tenant && strcasecmp(tenant, "public") != 0 ? tenant : "";
}

static int split_nacos_path(const char *path, struct names *ret, char why[FILE_WHY])
{
	const char *group = path + (path[0] == '/'), *end = strchr(group, '/');

	if (!end || end == group || !end[1] || strchr(end + 1, '/') || strpbrk(path, "\x01\x02")) {
		snprintf(why, FILE_WHY, "a path of Nacos is /GROUP/DATAID");
		return -EINVAL;
	}
	*ret = (struct names){group, end + 1, (size_t)(end - group), strlen(end + 1)};
	return 0;
}

static void begin_url(struct buffer *url, const struct kind_place *place, const char *api)
{
	const char *host = strstr(place->base, "://");

	host = host ? host + 3 : place->base;
	buffer_printf(url, "%s%s%s", place->base, strchr(host, '/') ? "" : "/nacos", api);
}

static void add_form_parameter(
	struct buffer *out, char before, const char *name, const char *value, size_t len)
{
	buffer_printf(out, "%.*s%s=", before != '\0', &before, name);
	kind_escape(out, value, len, "");
}

static void add_token(struct kind_request *r, const struct kind_place *place, char before)
{
	if (place->token)
		add_form_parameter(
			&r->url, before, "accessToken", place->token, strlen(place->token));
}

static int nacos_build(const struct kind_place *place, struct kind_request *r, char why[FILE_WHY])
{
	bool v3 = is_v3(place);
	const char *tenant = tenant_of(place);
	struct names n;
	int e = split_nacos_path(place->path, &n, why);

	if (e)
		return e;
	begin_url(&r->url, place, v3 ? "/v3/client/cs/config" : "/v1/cs/configs");
	add_form_parameter(&r->url, '?', "dataId", n.data_id, n.data_id_len);
	add_form_parameter(&r->url, '&', v3 ? "groupName" : "group", n.group, n.group_len);
	if (*tenant)
		add_form_parameter(
			&r->url, '&', v3 ? "namespaceId" : "tenant", tenant, strlen(tenant));
	add_token(r, place, '&');
	return r->url.error;
}

static int make_form(struct kind_request *r)
{
	r->method = "POST";
	return kind_header(r, "Content-Type: application/x-www-form-urlencoded");
}

/* ---- answers ---- */

static enum kind_verdict document_absent(char why[FILE_WHY])
{
	snprintf(why, FILE_WHY,
		"there is no such document: check the group, the data id and the namespace");
	return KIND_ABSENT;
}

static enum kind_verdict fail_being_changed(struct kind_answer *ret)
{
	return kind_fail(ret, KIND_CAUSE_ANSWER,
		"the document is being changed on the server at this moment: asked again later");
}

static enum kind_verdict fail_forbidden(
	const struct kind_place *place, long status, struct kind_answer *ret)
{
	bool user = place->server->user; /* the place of an answer has no token */

	ret->cause = KIND_CAUSE_FORBIDDEN;
	snprintf(ret->why, FILE_WHY, "the server answered %ld: %s", status,
		user ? "the token is not good, or the user may not read this"
		     : "it wants a user and a password (auth: basic)");
	return user ? KIND_UNAUTHORIZED : KIND_FAILED;
}

static bool is_md5(const char *text)
{
	return strlen(text) == DIGEST_MD5_HEX - 1 &&
	       strspn(text, "0123456789abcdefABCDEF") == DIGEST_MD5_HEX - 1;
}

/* Computes the version of ret->body, which must be the server's ("" = it names none). */
static enum kind_verdict check_version(
	const struct kind_place *place, const char *reported, struct kind_answer *ret)
{
	const struct part *held = kind_held(place);
	char md5[DIGEST_MD5_HEX];
	int e = digest_md5(ret->body.data, ret->body.len, md5);

	if (e == -ENOTSUP && is_md5(reported)) {
		memcpy(md5, reported, DIGEST_MD5_HEX);
		snprintf(ret->note, sizeof(ret->note),
			"this host allows no MD5: the server's is not checked");
	} else if (e) {
		return kind_fail(ret, KIND_CAUSE_ANSWER, "%s",
			e == -ENOTSUP ? "the server tells no MD5, and this host allows none"
				      : "out of memory");
	} else if (*reported && strcasecmp(reported, md5) != 0) {
		return kind_fail(ret, KIND_CAUSE_ANSWER,
			"the document's MD5 is not the one that the server tells: it was cut, or "
			"changed on the way or at this moment");
	}
	snprintf(ret->version, sizeof(ret->version), "%s", md5);
	ret->cause = KIND_CAUSE_NONE;
	return held && held->etag && strcmp(held->etag, md5) == 0 ? KIND_SAME : KIND_NEW;
}

/* What Nacos calls the type, as a Content-Type; NULL = it does not say. */
static const char *content_type(const char *config_type)
{
	return strcasecmp(config_type, "json") == 0   ? "application/json"
	       : strcasecmp(config_type, "yaml") == 0 ? "application/yaml"
						      : NULL;
}

static enum kind_verdict read_v1(const struct kind_place *place,
	const struct http_client_response *response, struct kind_answer *ret)
{
	static const char absence[] = "config data not exist";
	const char *type = content_type(response->config_type);
	enum kind_verdict verdict;

	switch (response->status) {
	case 200:
		if (response->body.len > place->max_bytes) /* there is room for what wraps */
			return kind_fail(
				ret, KIND_CAUSE_ANSWER, "the document is larger than max_size");
		verdict = kind_document(place, response, ret);
		if (verdict != KIND_NEW)
			return verdict;
		if (type)
			ret->type = kind_document_type(place, type);
		return check_version(place, response->content_md5, ret);
	case 401:
	case 403:
		return fail_forbidden(place, response->status, ret);
	case 404:
		if (response->body.len >= strlen(absence) &&
			memcmp(response->body.data, absence, strlen(absence)) == 0)
			return document_absent(ret->why);
		return kind_fail(ret, KIND_CAUSE_NOT_FOUND,
			"the server answered 404, but not as Nacos says that a document is not "
			"there: check the url's path, and whether the server wants api: 3");
	case 409:
		return fail_being_changed(ret);
	case 410:
		return kind_fail(ret, KIND_CAUSE_NOT_FOUND,
			"the server has this API no more: it wants api: 3");
	default:
		return KIND_USUAL;
	}
}

/* ---- answers of 3.x ---- */

/* The text of a member; "" when it is missing, or not text. */
static const char *member_text(const struct node *map, const char *name, size_t *ret_len)
{
	const struct node *n = node_member(map, name, NODE_STRING);

	*ret_len = n ? n->text_len : 0;
	return *ret_len ? n->text : "";
}

/* The answer is not Nacos', or the status suffices. Never: the document is absent. */
static enum kind_verdict fail_not_v3(long status, struct kind_answer *ret)
{
	if (status != 200 && status != 404 && status != 410)
		return KIND_USUAL;
	return kind_fail(ret, status == 200 ? KIND_CAUSE_ANSWER : KIND_CAUSE_NOT_FOUND,
		"this is no answer of the API of Nacos 3: check the url's path, and api:");
}

static enum kind_verdict read_data(
	const struct kind_place *place, const struct node *data, struct kind_answer *ret)
{
	const struct node *content = node_member(data, "content", NODE_STRING);
	const char *type, *md5;
	size_t len;

	if (!content)
		return kind_fail(ret, KIND_CAUSE_ANSWER,
			"the answer has no content: this is not the API of Nacos 3");
	if (content->text_len == 0)
		return kind_fail(ret, KIND_CAUSE_EMPTY, "the document is there, and it is empty");
	member_text(data, "encryptedDataKey", &len);
	if (len)
		return kind_fail(ret, KIND_CAUSE_ANSWER,
			"the document is encrypted by a plugin of the server: only clients with "
			"that plugin can read it");
	if (buffer_append(&ret->body, content->text, content->text_len))
		return kind_fail(ret, KIND_CAUSE_ANSWER, "out of memory, or larger than max_size");
	type = content_type(member_text(data, "contentType", &len));
	ret->type = kind_document_type(place, type ? type : "");
	md5 = member_text(data, "md5", &len);
	return check_version(place, md5, ret);
}

static enum kind_verdict read_code(const struct kind_place *place, long status, int64_t code,
	const struct node *data, struct kind_answer *ret)
{
	if (status == 401 || status == 403 || code == CODE_ACCESS_DENIED)
		return fail_forbidden(place, status, ret);
	if (code == CODE_NOT_FOUND && (status == 200 || status == 404))
		return document_absent(ret->why);
	if (code == CODE_NO_NAMESPACE)
		return kind_fail(ret, KIND_CAUSE_NOT_FOUND,
			"the server has no such namespace: its id is meant, not its name");
	if (code == CODE_CONFLICT || status == 409)
		return fail_being_changed(ret);
	if (status != 200)
		return fail_not_v3(status, ret);
	if (code == CODE_OK)
		return read_data(place, data, ret);
	return kind_fail(
		ret, KIND_CAUSE_ANSWER, "the server answered with the code %" PRId64, code);
}

/* A body that was cut is no JSON. */
static enum kind_verdict read_v3(const struct kind_place *place,
	const struct http_client_response *response, struct kind_answer *ret)
{
	const struct buffer *body = &response->body;
	const struct node *code = NULL;
	struct document_error e;
	struct document *d = NULL;
	enum kind_verdict verdict;

	if (kind_parse_json(body, &d, &e) == 0)
		code = node_member(document_root(d), "code", NODE_INT);
	if (code)
		verdict = read_code(place, response->status, code->integer,
			node_find(document_root(d), "data"), ret);
	else if (response->status == 401 || response->status == 403)
		verdict = fail_forbidden(place, response->status, ret);
	else
		verdict = fail_not_v3(response->status, ret);
	document_free(d);
	return verdict;
}

static enum kind_verdict nacos_read(const struct kind_place *place,
	const struct http_client_response *response, struct kind_answer *ret)
{
	return is_v3(place) ? read_v3(place, response, ret) : read_v1(place, response, ret);
}

/* ---- login ---- */

static int nacos_login_build(
	const struct kind_place *place, struct kind_request *r, char why[FILE_WHY])
{
	int e = make_form(r);

	(void)why;
	if (e)
		return e;
	begin_url(&r->url, place, is_v3(place) ? "/v3/auth/user/login" : "/v1/auth/login");
	add_form_parameter(&r->body, '\0', "username", place->user, strlen(place->user));
	add_form_parameter(&r->body, '&', "password", place->password, strlen(place->password));
	return r->url.error ? r->url.error : r->body.error;
}

static int take_token(const struct node *root, char **ret_token, uint64_t *ret_lifetime_ms)
{
	const struct node *data = node_member(root, "data", NODE_MAP);
	int64_t ttl_s;
	const char *token;
	size_t len;

	if (!node_find(root, "accessToken") && data)
		root = data;
	token = member_text(root, "accessToken", &len);
	if (len == 0 || len > KIND_MAX_TOKEN)
		return -EPROTO;
	ttl_s = node_integer(root, "tokenTtl", 0);
	*ret_token = strdup(token);
	if (!*ret_token)
		return -ENOMEM;
	*ret_lifetime_ms = 0;
	if (ttl_s > 0) /* nine tenths: it is never too old on the way */
		*ret_lifetime_ms = 900 * (uint64_t)(ttl_s < MAX_TTL_S ? ttl_s : MAX_TTL_S);
	return 0;
}

static int status_error(long status, const char *what, char why[FILE_WHY])
{
	return kind_status_error(
		status, what, "it refuses the user", "check the url's path, and api:", why);
}

static int nacos_login_read(const struct http_client_response *response, char **ret_token,
	uint64_t *ret_lifetime_ms, char why[FILE_WHY])
{
	const struct buffer *body = &response->body;
	struct document_error e;
	struct document *d = NULL;
	int r = -EPROTO;

	if (response->status != 200)
		return status_error(response->status, "the login", why);
	if (kind_parse_json(body, &d, &e) == 0)
		r = take_token(document_root(d), ret_token, ret_lifetime_ms);
	document_free(d);
	if (r)
		snprintf(why, FILE_WHY, "%s",
			r == -ENOMEM ? "out of memory"
				     : "the server's answer to the login has no token: check the "
				       "url's path, and api:");
	return r;
}

/* ---- watches: long polls of the API of 1.x ---- */

static bool nacos_together(const char *path, const char *other)
{
	(void)path;
	(void)other;
	return true;
}

/* Encodes the characters that a second decoding would change. */
static void add_word(struct buffer *out, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (text[i] == '%' || text[i] == '+')
			buffer_printf(out, "%%%02X", (unsigned)text[i]);
		else
			buffer_append(out, &text[i], 1);
}

/* dataId 2 group 2 md5 [2 tenant] 1, for each item. */
static int list_listeners(const struct kind_watch *w, struct buffer *out, char why[FILE_WHY])
{
	const char *tenant = tenant_of(w->place);
	struct names n;

	for (size_t i = 0; i < w->count; i++) {
		if (split_nacos_path(w->items[i].path, &n, why))
			return -EINVAL;
		add_word(out, n.data_id, n.data_id_len);
		buffer_printf(out, "%c", WORD_END);
		add_word(out, n.group, n.group_len);
		buffer_printf(out, "%c%s", WORD_END,
			is_md5(w->items[i].version) ? w->items[i].version : "");
		if (*tenant) {
			buffer_printf(out, "%c", WORD_END);
			add_word(out, tenant, strlen(tenant));
		}
		buffer_printf(out, "%c", LINE_END);
	}
	return out->error;
}

static int nacos_watch_build(struct kind_watch *w, struct kind_request *r, char why[FILE_WHY])
{
	struct buffer list;
	int e;

	if (is_v3(w->place)) {
		snprintf(why, FILE_WHY,
			"Nacos 3 tells of changes by gRPC only: leave out `watch`, it is asked at "
			"the interval");
		return -EINVAL;
	}
	r->hold_ms = HOLD_MS - HOLD_JITTER_MS / 2 + w->place->random % (HOLD_JITTER_MS + 1);
	e = make_form(r);
	if (e == 0)
		e = kind_header(r, "Long-Pulling-Timeout: %" PRIu64, r->hold_ms);
	if (e)
		return e;
	begin_url(&r->url, w->place, "/v1/cs/configs/listener");
	add_token(r, w->place, '?');
	buffer_init(&list, KIND_MAX_BODY);
	e = list_listeners(w, &list, why);
	if (e == 0)
		add_form_parameter(&r->body, '\0', "Listening-Configs", list.data, list.len);
	buffer_fini(&list);
	return e ? e : r->url.error ? r->url.error : r->body.error;
}

/* Undoes the encoding of a form. False: it is none. */
static bool decode_form(const char *text, size_t len, struct buffer *out)
{
	for (size_t i = 0; i < len; i++) {
		char c = text[i] == '+' ? ' ' : text[i];

		if (c == '%') {
			int high = i + 2 < len ? kind_hex_digit(text[i + 1]) : -1;
			int low = i + 2 < len ? kind_hex_digit(text[i + 2]) : -1;

			if (high < 0 || low < 0)
				return false;
			c = (char)(high << 4 | low);
			i += 2;
		}
		buffer_append(out, &c, 1);
	}
	return out->error == 0;
}

static bool is_equal(const char *a, size_t a_len, const char *b, size_t b_len)
{
	return a_len == b_len && memcmp(a, b, a_len) == 0;
}

/* True for the configured namespace. Public has two names. */
static bool is_tenant(const struct kind_place *place, const char *text, size_t len)
{
	const char *tenant = tenant_of(place);

	return is_equal(text, len, tenant, strlen(tenant)) ||
	       (!*tenant && is_equal(text, len, "public", strlen("public")));
}

/* Reports the items that a line names: dataId 2 group [2 tenant]. False: it names none. */
static bool report_line(struct kind_watch *w, const char *line, size_t len)
{
	const char *end = line + len, *group = memchr(line, WORD_END, len), *stop;
	bool found = false;
	struct names n;
	char why[FILE_WHY];

	if (!group)
		return false;
	group++;
	stop = memchr(group, WORD_END, (size_t)(end - group));
	if (stop ? !is_tenant(w->place, stop + 1, (size_t)(end - stop - 1)) : *tenant_of(w->place))
		return false;
	stop = stop ? stop : end;
	for (size_t i = 0; i < w->count; i++) {
		if (split_nacos_path(w->items[i].path, &n, why) ||
			!is_equal(line, (size_t)(group - 1 - line), n.data_id, n.data_id_len) ||
			!is_equal(group, (size_t)(stop - group), n.group, n.group_len))
			continue;
		w->changed(w->arg, i, NULL, 0, NULL);
		found = true;
	}
	return found;
}

static int report_lines(struct kind_watch *w, const char *list, size_t len)
{
	const char *end = list + len, *stop;
	size_t reported = 0;

	for (; list < end; list = stop + 1) {
		stop = memchr(list, LINE_END, (size_t)(end - list));
		if (!stop)
			return -EPROTO;
		reported += report_line(w, list, (size_t)(stop - list));
	}
	return reported ? 0 : -EPROTO;
}

static int nacos_watch_read(
	struct kind_watch *w, const struct http_client_response *response, char why[FILE_WHY])
{
	const char *text = response->body.data;
	size_t len = response->body.len;
	struct buffer list;
	int r = -EPROTO;

	if (response->status != 200)
		return status_error(response->status, "the watch", why);
	while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == '\r'))
		len--;
	if (len == 0)
		return 0;
	buffer_init(&list, len);
	if (len > KIND_MAX_NEWS)
		r = -EPROTO;
	else if (decode_form(text, len, &list))
		r = report_lines(w, list.data, list.len);
	else if (list.error == -ENOMEM)
		r = -ENOMEM;
	buffer_fini(&list);
	if (r)
		snprintf(why, FILE_WHY,
			"the server's answer to the watch is no list of what was asked for");
	return r;
}

const struct kind kind_nacos = {
	.name = "nacos",
	.wraps = true, /* by the API of 3.x */
	.compares = true,
	.build = nacos_build,
	.read = nacos_read,
	.login_build = nacos_login_build,
	.login_read = nacos_login_read,
	.together = nacos_together,
	.watch_build = nacos_watch_build,
	.watch_read = nacos_watch_read,
};
