/*
 * Apollo's config service. A path is /APPID/CLUSTER/NAMESPACE. A namespace whose name ends like a
 * file (.json .yml .yaml .xml .txt) is one document; any other is a set of keys, which becomes a
 * JSON document whose values are strings.
 *
 * Surprising: a server with incremental sync answers with the changes since the release that the
 * request named; without that release's bytes they are useless, so the whole is requested then
 * (KIND_WHOLE). Some do so even when no release was named: then all keys are "added", and that is
 * the whole. In a watch, an id other than the last one is a change, whichever is greater.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "crypto/base64.h"
#include "crypto/digest.h"
#include "document/document.h"
#include "text/json_writer.h"
#include "pull/kinds/kind.h"
#include "document/unflatten.h"

#define HOLD_MS 90000 /* servers hold a watch for 60 s, unless set otherwise */
#define MAX_SIGNED (KIND_MAX_URL + 32)

struct names {
	const char *app, *cluster, *space; /* each goes on to the end of the path */
	size_t app_len, cluster_len, space_len;
};

/* ---- requests ---- */

static int split_apollo_path(const char *path, struct names *ret, char why[FILE_WHY])
{
	struct names n = {.app = path + (path[0] == '/')};

	n.app_len = strcspn(n.app, "/");
	n.cluster = n.app + n.app_len + (n.app[n.app_len] == '/');
	n.cluster_len = strcspn(n.cluster, "/");
	n.space = n.cluster + n.cluster_len + (n.cluster[n.cluster_len] == '/');
	n.space_len = strcspn(n.space, "/");
	if (!n.app_len || !n.cluster_len || !n.space_len || n.space[n.space_len]) {
		snprintf(why, FILE_WHY, "a path of Apollo is /APPID/CLUSTER/NAMESPACE");
		return -EINVAL;
	}
	*ret = n;
	return 0;
}

static void add_url_parameter(struct buffer *url, const char *name, const char *value, size_t len)
{
	buffer_printf(url, "%c%s=", strchr(url->data, '?') ? '&' : '?', name);
	kind_escape(url, value, len, ":,"); /* these may stand there: a watch's url stays short */
}

static void add_datacenter(struct buffer *url, const struct kind_place *place)
{
	const char *datacenter = place->server->datacenter;

	if (datacenter && !url->error)
		add_url_parameter(url, "dataCenter", datacenter, strlen(datacenter));
}

/* Signs path and query, as they are sent. */
static int sign_apollo_request(
	const struct kind_place *place, const struct names *n, struct kind_request *r)
{
	const char *host = strstr(r->url.data, "://"), *path = host ? strchr(host + 3, '/') : NULL;
	unsigned char mac[DIGEST_SHA1];
	struct buffer text;
	int e;

	if (!place->secret || !path)
		return 0;
	buffer_init(&text, MAX_SIGNED);
	e = buffer_printf(&text, "%" PRId64 "\n%s", place->wall_ms, path);
	if (e == 0)
		e = digest_hmac_sha1(
			place->secret, strlen(place->secret), text.data, text.len, mac);
	buffer_clear(&text);
	if (e == 0)
		e = base64_append(&text, mac, sizeof(mac));
	if (e == 0)
		e = kind_header(
			r, "Authorization: Apollo %.*s:%s", (int)n->app_len, n->app, text.data);
	if (e == 0)
		e = kind_header(r, "Timestamp: %" PRId64, place->wall_ms);
	buffer_fini(&text);
	return e;
}

static int apollo_build(const struct kind_place *place, struct kind_request *r, char why[FILE_WHY])
{
	const struct part *held = kind_held(place);
	struct buffer *url = &r->url;
	struct names n;
	int e = split_apollo_path(place->path, &n, why);

	if (e)
		return e;
	buffer_printf(url, "%s/configs/", place->base);
	kind_escape(url, n.app, n.app_len, "");
	buffer_append_string(url, "/");
	kind_escape(url, n.cluster, n.cluster_len, "");
	buffer_append_string(url, "/");
	kind_escape(url, n.space, n.space_len, "");
	add_datacenter(url, place);
	if (held && held->etag && held->etag[0] && !url->error) {
		add_url_parameter(url, "releaseKey", held->etag, strlen(held->etag));
		r->conditional = true;
	}
	return url->error ? url->error : sign_apollo_request(place, &n, r);
}

/* ---- answers ---- */

static enum kind_verdict fail_unreadable(struct kind_answer *ret)
{
	return kind_fail(ret, KIND_CAUSE_ANSWER,
		"this is no answer of an Apollo config service: check the url (it is neither the "
		"portal's nor the meta server's)");
}

/* True when the namespace is one document. */
static bool is_file(const char *path)
{
	static const char *const endings[] = {".json", ".yml", ".yaml", ".xml", ".txt"};
	size_t len = strlen(path), n;

	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		n = strlen(endings[i]);
		if (len > n && strcasecmp(path + len - n, endings[i]) == 0)
			return true;
	}
	return false;
}

/* An answer: all keys, or changes. */
struct release {
	const struct node *first; /* a key's value, or a change; then the next ones */
	bool changes;
	const char *key; /* of the release */
};

/* A key and its value, text or NULL. */
struct pair {
	const char *key;
	size_t key_len;
	const struct node *value;
};

/* Of changes only added keys are complete. */
static bool read_pair(const struct release *release, const struct node *n, struct pair *ret)
{
	const struct node *key;

	if (!release->changes) {
		*ret = (struct pair){n->key, n->key_len, n};
	} else {
		key = node_member(n, "key", NODE_STRING);
		if (!key || strcmp(node_text(n, "configurationChangeType", ""), "ADDED") != 0)
			return false;
		*ret = (struct pair){key->text, key->text_len, node_find(n, "newValue")};
	}
	if (ret->value && ret->value->type == NODE_NULL)
		ret->value = NULL;
	return !ret->value || ret->value->type == NODE_STRING;
}

static enum kind_verdict take_file_content(
	const struct kind_place *place, const struct release *release, struct kind_answer *ret)
{
	const struct node *content = NULL;
	struct pair p;

	for (const struct node *n = release->first; n; n = n->next) {
		if (!read_pair(release, n, &p))
			return fail_unreadable(ret);
		if (strcmp(p.key, "content") == 0)
			content = p.value;
		else
			return kind_fail(ret, KIND_CAUSE_ANSWER,
				"the namespace has keys, though its name ends like that of a file");
	}
	if (!content || content->text_len == 0)
		return kind_fail(
			ret, KIND_CAUSE_EMPTY, "the namespace is there, and its file is empty");
	if (buffer_append(&ret->body, content->text, content->text_len))
		return kind_fail(ret, KIND_CAUSE_ANSWER, "larger than max_size, or out of memory");
	ret->type = kind_document_type(place, "");
	return KIND_NEW;
}

static int add_pair(struct unflatten *keys, const struct pair *p)
{
	return p->value ? unflatten_add_text(
				  keys, p->key, p->key_len, p->value->text, p->value->text_len)
			: unflatten_add(keys, p->key, p->key_len, "null", strlen("null"));
}

static const char *describe_pair_error(int error)
{
	switch (error) {
	case -EBADMSG:
		return "a value is not text, or a change is not one of a key that was added";
	case -EEXIST:
		return "a key is there twice";
	case -EINVAL:
	case -EILSEQ:
		return "a key has no name, one that is too long, or one that is not text";
	case -EMSGSIZE:
		return "the keys are too many, or more than max_size";
	default:
		return "out of memory";
	}
}

static enum kind_verdict take_keys(
	const struct kind_place *place, const struct release *release, struct kind_answer *ret)
{
	struct unflatten *keys = unflatten_new(UNFLATTEN_PROPERTIES, place->max_bytes);
	int r = keys ? 0 : -ENOMEM;
	struct pair p;

	for (const struct node *n = release->first; r == 0 && n; n = n->next)
		r = read_pair(release, n, &p) ? add_pair(keys, &p) : -EBADMSG;
	if (r == 0)
		r = unflatten_write(keys, &ret->body);
	unflatten_free(keys);
	if (r)
		return kind_fail(ret, KIND_CAUSE_ANSWER, "%s", describe_pair_error(r));
	if (!release->first)
		return kind_fail(ret, KIND_CAUSE_EMPTY,
			"the namespace is there, and its release has no keys");
	ret->type = place->type == SETTINGS_TYPE_BYTES ? SETTINGS_TYPE_BYTES : SETTINGS_TYPE_JSON;
	return KIND_NEW;
}

static bool read_release(const struct node *root, struct release *ret)
{
	const struct node *all = node_member(root, "configurations", NODE_MAP),
			  *changes = node_member(root, "configurationChanges", NODE_LIST);

	*ret = (struct release){.key = node_text(root, "releaseKey", "")};
	/* "IncrementalSync" */
	ret->changes = strcasestr(node_text(root, "configSyncType", ""), "incremental") ||
		       (changes && !all);
	if (ret->changes ? changes : all)
		ret->first = ret->changes ? changes->first : all->first;
	return (ret->changes || all) && ret->key[0];
}

static enum kind_verdict take_release(
	const struct kind_place *place, const struct release *release, struct kind_answer *ret)
{
	const struct part *held = kind_held(place);
	enum kind_verdict verdict;

	if (strlen(release->key) >= sizeof(ret->version))
		return kind_fail(ret, KIND_CAUSE_ANSWER, "the release's key is too long");
	snprintf(ret->version, sizeof(ret->version), "%s", release->key);
	if (held && held->etag && strcmp(held->etag, release->key) == 0)
		return KIND_SAME;
	if (held && release->changes)
		return KIND_WHOLE;
	verdict = is_file(place->path) ? take_file_content(place, release, ret)
				       : take_keys(place, release, ret);
	if (verdict == KIND_NEW)
		ret->cause = KIND_CAUSE_NONE;
	return verdict;
}

/* A body that was cut is no JSON. */
static enum kind_verdict read_namespace(
	const struct kind_place *place, const struct buffer *body, struct kind_answer *ret)
{
	struct document *d = NULL;
	struct document_error e;
	struct release release;
	enum kind_verdict verdict;

	if (kind_parse_json(body, &d, &e) == 0 && read_release(document_root(d), &release))
		verdict = take_release(place, &release, ret);
	else
		verdict = fail_unreadable(ret);
	document_free(d);
	return verdict;
}

static const char *refused_key(const struct kind_place *place)
{
	/* the place of an answer has no secret */
	return place->server->secret_file
		       ? "the server refuses the signature: check the access key, and this host's "
			 "clock, which may differ by less than a minute"
		       : "the server wants requests to be signed (auth: access_key)";
}

static enum kind_verdict apollo_read(const struct kind_place *place,
	const struct http_client_response *response, struct kind_answer *ret)
{
	switch (response->status) {
	case 200:
		return read_namespace(place, &response->body, ret);
	case 401:
		return kind_fail(ret, KIND_CAUSE_FORBIDDEN, "%s", refused_key(place));
	case 404:
		snprintf(ret->why, FILE_WHY,
			"there is no such namespace, or nothing was released in it: check the app, "
			"the cluster and the namespace");
		return KIND_ABSENT;
	default:
		return KIND_USUAL;
	}
}

/* ---- watches: notifications. A position is the id of the last one, plus 1: an id of -1 means
 * that there was none. ---- */

static bool apollo_together(const char *path, const char *other)
{
	char why[FILE_WHY];
	struct names a, b;

	return split_apollo_path(path, &a, why) == 0 && split_apollo_path(other, &b, why) == 0 &&
	       a.app_len == b.app_len && memcmp(a.app, b.app, a.app_len) == 0 &&
	       a.cluster_len == b.cluster_len && memcmp(a.cluster, b.cluster, a.cluster_len) == 0;
}

/* [{"namespaceName": NAME, "notificationId": ID}, ...] */
static int list_notifications(const struct kind_watch *w, struct buffer *out, char why[FILE_WHY])
{
	struct names n;

	json_writer_begin_array(out, NULL);
	for (size_t i = 0; i < w->count; i++) {
		if (split_apollo_path(w->items[i].path, &n, why))
			return -EINVAL;
		json_writer_begin_object(out, NULL);
		json_writer_bytes(out, "namespaceName", n.space, n.space_len);
		json_writer_integer(out, "notificationId", (int64_t)w->items[i].position - 1);
		json_writer_end_object(out);
	}
	return json_writer_end_array(out);
}

static int apollo_watch_build(struct kind_watch *w, struct kind_request *r, char why[FILE_WHY])
{
	struct buffer *url = &r->url, list;
	struct names n;
	int e = split_apollo_path(w->items[0].path, &n, why);

	if (e)
		return e;
	buffer_init(&list, KIND_MAX_URL);
	e = list_notifications(w, &list, why);
	if (e == 0)
		e = buffer_printf(url, "%s/notifications/v2", w->place->base);
	if (e == 0) {
		add_url_parameter(url, "appId", n.app, n.app_len);
		add_url_parameter(url, "cluster", n.cluster, n.cluster_len);
		add_url_parameter(url, "notifications", list.data, list.len);
		add_datacenter(url, w->place);
		e = url->error;
	}
	buffer_fini(&list);
	r->hold_ms = HOLD_MS;
	return e ? e : sign_apollo_request(w->place, &n, r);
}

/* Without the ending that the server takes off. */
static size_t bare_len(const char *space)
{
	size_t len = strlen(space), n = strlen(".properties");

	return len > n && strcasecmp(space + len - n, ".properties") == 0 ? len - n : len;
}

/* Reports the items that a notification names. Returns how many there are; negative: it is none. */
static int report_notification(struct kind_watch *w, const struct node *notification)
{
	const struct node *name, *id;
	char why[FILE_WHY];
	struct names n;
	int found = 0;
	uint64_t position;

	name = node_member(notification, "namespaceName", NODE_STRING);
	id = node_member(notification, "notificationId", NODE_INT);
	if (!name || !id || id->integer < -1)
		return -EPROTO;
	position = (uint64_t)id->integer + 1;
	for (size_t i = 0; i < w->count; i++) {
		size_t len = bare_len(name->text);

		if (split_apollo_path(w->items[i].path, &n, why) || bare_len(n.space) != len ||
			strncasecmp(n.space, name->text, len) != 0)
			continue;
		found++;
		if (w->items[i].position == position)
			continue;
		w->items[i].position = position;
		w->changed(w->arg, i, NULL, 0, NULL);
	}
	return found;
}

static int report_notifications(struct kind_watch *w, const struct buffer *body)
{
	struct document *d = document_new();
	struct document_error e = {0};
	int r = body->len > KIND_MAX_NEWS ? -EPROTO : -ENOMEM, reported = 0;

	if (d && r == -ENOMEM)
		r = json_parse(body->data ? body->data : "", body->len, 0, d, &e);
	if (r == 0 && document_root(d)->type == NODE_LIST)
		for (const struct node *n = document_root(d)->first; n && r >= 0; n = n->next) {
			r = report_notification(w, n);
			reported += r > 0;
		}
	document_free(d);
	return r == -ENOMEM ? r : r < 0 || reported == 0 ? -EPROTO : 0;
}

static int apollo_watch_read(
	struct kind_watch *w, const struct http_client_response *response, char why[FILE_WHY])
{
	long status = response->status;
	int r;

	if (status == 304)
		return 0;
	if (status == 200) {
		r = report_notifications(w, &response->body);
		if (r)
			snprintf(why, FILE_WHY,
				"the server's answer to the watch is no list of what was asked "
				"for");
		return r;
	}
	if (status == 401) {
		snprintf(why, FILE_WHY, "%s", refused_key(w->place));
		return -EACCES;
	}
	return kind_status_error(status, "the watch", "it forbids it", "check the url", why);
}

const struct kind kind_apollo = {
	.name = "apollo",
	.wraps = true,
	.build = apollo_build,
	.read = apollo_read,
	.together = apollo_together,
	.watch_build = apollo_watch_build,
	.watch_read = apollo_watch_read,
};
