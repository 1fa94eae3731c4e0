/*
 * The Node-API side of index.js: functions whose first argument is what handle() made, an external
 * over one struct pullet. Values are copied out.
 *
 *	gcc -shared -fPIC -O2 -I/usr/include/node -Ilib -o pullet.node lib/node/addon.c -Lbuild \
 *		-lpullet
 *
 * What surprises: no class, for to ask V8 for what an object wraps takes as long as two look-ups,
 * and an external is that already. poll() lets libuv's own loop watch the descriptor of
 * pullet_fd(): no thread waits. What libuv has of it lives a turn of the loop longer than the
 *handle, or than the environment of a worker that is ended. While each() reads, a setter on
 *Array.prototype may run and try to move or close what is read: `reading` refuses it.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* strdup() with -std=c11 */
#endif
#define NAPI_VERSION 8
#include <errno.h>
#include <limits.h>
#include <node_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "pullet.h"

#define KEY_MAX ((size_t)1 << 24) /* FORMAT.md: no key is as long */
#define SAFE (((int64_t)1 << 53) - 1)

#define MAGIC UINT64_C(0x9c1f7e3a70756c6c) /* in none of another addon's externals */
#define MAX_ARGUMENTS 3

struct handle {
	uint64_t magic;
	struct pullet *p; /* NULL = closed, or not open yet */
	bool opened;
	unsigned reading;
	struct poller *poller; /* NULL = none yet */
};

struct poller {
	uv_poll_t uv; /* first: libuv closes it later than we do */
	napi_env env;
	struct handle *h;  /* NULL = it is closed */
	napi_ref callback; /* NULL = nobody waits */
	napi_async_cleanup_hook_handle hook;
};

struct text { /* of a JavaScript string, NUL-terminated */
	char *data;
	size_t len;
	char small[256];
};

static napi_value throw_error(napi_env env, const char *code, const char *message)
{
	bool pending = false;

	if (napi_is_exception_pending(env, &pending) == napi_ok && !pending)
		napi_throw_error(env, code, message);
	return NULL;
}

static napi_value throw_type(napi_env env, const char *message)
{
	bool pending = false;

	if (napi_is_exception_pending(env, &pending) == napi_ok && !pending)
		napi_throw_type_error(env, "ERR_INVALID_ARG_TYPE", message);
	return NULL;
}

static napi_value failed(napi_env env)
{
	return throw_error(env, "ENOMEM", "a value cannot be made in JavaScript");
}

static napi_value undefined(napi_env env)
{
	napi_value v = NULL;

	napi_get_undefined(env, &v);
	return v;
}

static napi_value boolean(napi_env env, bool b)
{
	napi_value v;

	return napi_get_boolean(env, b, &v) == napi_ok ? v : failed(env);
}

static napi_value int32(napi_env env, int n)
{
	napi_value v;

	return napi_create_int32(env, n, &v) == napi_ok ? v : failed(env);
}

static napi_value real(napi_env env, double d)
{
	napi_value v;

	return napi_create_double(env, d, &v) == napi_ok ? v : failed(env);
}

/* A number if it holds it exactly, or a bigint. */
static napi_value integer(napi_env env, int64_t n)
{
	napi_status s;
	napi_value v;

	s = n >= -SAFE && n <= SAFE ? napi_create_int64(env, n, &v)
				    : napi_create_bigint_int64(env, n, &v);
	return s == napi_ok ? v : failed(env);
}

static bool is_ascii(const char *text, size_t len)
{
	uint64_t bits = 0, eight;

	for (; len >= sizeof(eight); text += sizeof(eight), len -= sizeof(eight)) {
		memcpy(&eight, text, sizeof(eight));
		bits |= eight;
	}
	while (len)
		bits |= (unsigned char)text[--len];
	return (bits & UINT64_C(0x8080808080808080)) == 0;
}

/* What is ASCII needs no decoder. */
static napi_value string(napi_env env, const char *text, size_t len)
{
	napi_status s = napi_invalid_arg;
	napi_value v = NULL;

	if (len <= INT_MAX)
		s = is_ascii(text, len) ? napi_create_string_latin1(env, text, len, &v)
					: napi_create_string_utf8(env, text, len, &v);
	return s == napi_ok ? v : failed(env);
}

/* The first argument; the others, missing ones undefined, are put into argv, and the function's
 * data into *ret_data. NULL with an exception pending. */
static struct handle *receive(
	napi_env env, napi_callback_info info, size_t argc, napi_value *argv, void **ret_data)
{
	size_t n = argc + 1;
	napi_value all[1 + MAX_ARGUMENTS];
	struct handle *h = NULL;

	if (napi_get_cb_info(env, info, &n, all, NULL, ret_data) != napi_ok ||
		napi_get_value_external(env, all[0], (void **)&h) != napi_ok || !h ||
		h->magic != MAGIC) {
		throw_type(env, "not a pullet handle");
		return NULL;
	}
	for (size_t i = 0; i < argc; i++)
		argv[i] = all[1 + i];
	return h;
}

static struct handle *receive_open(
	napi_env env, napi_callback_info info, size_t argc, napi_value *argv, void **ret_data)
{
	struct handle *h = receive(env, info, argc, argv, ret_data);

	if (!h || h->p)
		return h;
	throw_error(env, "EBADF", "the configuration is closed");
	return NULL;
}

static bool may_move(napi_env env, const struct handle *h)
{
	if (h->reading)
		throw_error(env, "EBUSY", "the configuration is being read");
	return h->reading == 0;
}

static void free_text(struct text *t)
{
	if (t->data != t->small)
		free(t->data);
}

/* 0 and *t, for free_text(); -1 with an exception pending; 1 when it has max bytes or more. */
static int get_text(napi_env env, napi_value value, size_t max, struct text *t)
{
	t->data = t->small;
	if (napi_get_value_string_utf8(env, value, t->small, sizeof(t->small), &t->len) !=
		napi_ok) {
		throw_type(env, "a string is expected");
		return -1;
	}
	if (t->len < sizeof(t->small) - 4) /* it stops before a character that does not fit */
		return 0;
	if (napi_get_value_string_utf8(env, value, NULL, 0, &t->len) != napi_ok) {
		failed(env);
		return -1;
	}
	if (t->len >= max)
		return 1;
	t->data = malloc(t->len + 1);
	if (!t->data ||
		napi_get_value_string_utf8(env, value, t->data, t->len + 1, &t->len) != napi_ok) {
		free(t->data);
		failed(env);
		return -1;
	}
	return 0;
}

/* ---- life ---- */

static void free_poller(uv_handle_t *uv)
{
	struct poller *w = (struct poller *)uv;

	napi_remove_async_cleanup_hook(w->hook);
	free(w);
}

/* Before the descriptor is closed, and before the loop ends. */
static void close_poller(struct poller *w)
{
	if (uv_is_closing((uv_handle_t *)&w->uv))
		return;
	uv_poll_stop(&w->uv);
	if (w->callback)
		napi_delete_reference(w->env, w->callback);
	w->callback = NULL;
	if (w->h)
		w->h->poller = NULL;
	w->h = NULL;
	uv_close((uv_handle_t *)&w->uv, free_poller);
}

static void end_poller(napi_async_cleanup_hook_handle hook, void *data)
{
	(void)hook;
	close_poller(data);
}

static void close_handle(struct handle *h)
{
	if (h->poller)
		close_poller(h->poller);
	pullet_close(h->p);
	h->p = NULL;
}

static void finalize(napi_env env, void *data, void *hint)
{
	(void)env;
	(void)hint;
	close_handle(data);
	free(data);
}

/* open(name or path, wait first?) -> 0 or -errno */
static napi_value handle_open(napi_env env, napi_callback_info info)
{
	bool wait_first = false;
	napi_value argv[2];
	struct handle *h = receive(env, info, 2, argv, NULL);
	struct text name;
	int r;

	if (!h)
		return NULL;
	if (napi_get_value_bool(env, argv[1], &wait_first) != napi_ok)
		return throw_type(env, "a boolean is expected");
	r = get_text(env, argv[0], PATH_MAX, &name);
	if (r)
		return r < 0 ? NULL : int32(env, -ENAMETOOLONG);
	r = -EINVAL;
	if (!h->opened && strlen(name.data) == name.len)
		r = pullet_open(name.data, wait_first ? PULLET_WAIT_FIRST : 0, &h->p);
	h->opened |= r == 0;
	free_text(&name);
	return int32(env, r);
}

static napi_value handle_close(napi_env env, napi_callback_info info)
{
	struct handle *h = receive(env, info, 0, NULL, NULL);

	if (!h || !may_move(env, h))
		return NULL;
	close_handle(h);
	return undefined(env);
}

/* refresh() -> 1, 0 or -errno */
static napi_value handle_refresh(napi_env env, napi_callback_info info)
{
	struct handle *h = receive_open(env, info, 0, NULL, NULL);

	return h && may_move(env, h) ? int32(env, pullet_refresh(h->p)) : NULL;
}

/* ---- reading ---- */

/* A scalar; an empty object for a map; an array of its length for a list. */
static napi_value value_of(napi_env env, struct handle *h, const struct pullet_value *v)
{
	napi_status s = napi_ok;
	napi_value ret = NULL;

	switch (v->type) {
	case PULLET_BOOL:
		return boolean(env, v->boolean);
	case PULLET_INT:
		return integer(env, v->integer);
	case PULLET_DOUBLE:
		return real(env, v->number);
	case PULLET_STRING:
		return string(env, v->text, v->len);
	case PULLET_LIST:
		if (v->count > pullet_count(h->p))
			return throw_error(
				env, "EBADMSG", "a list with more items than there are keys");
		s = napi_create_array_with_length(env, (size_t)v->count, &ret);
		break;
	case PULLET_MAP:
		s = napi_create_object(env, &ret);
		break;
	default:
		s = napi_get_null(env, &ret);
	}
	return s == napi_ok ? ret : failed(env);
}

/* Looks a key up. 0; 1 when there is none; -1 with an exception pending. */
static int look_up(napi_env env, struct handle *h, napi_value key, struct pullet_value *v)
{
	struct text t;
	int r = get_text(env, key, KEY_MAX, &t);

	if (r)
		return r;
	r = pullet_get(h->p, t.data, t.len, v);
	free_text(&t);
	return r ? 1 : 0;
}

static napi_value handle_get(napi_env env, napi_callback_info info)
{
	struct pullet_value v;
	napi_value key;
	struct handle *h = receive_open(env, info, 1, &key, NULL);
	int r = h ? look_up(env, h, key, &v) : -1;

	if (r)
		return r < 0 ? NULL : undefined(env);
	return value_of(env, h, &v);
}

static napi_value handle_has(napi_env env, napi_callback_info info)
{
	struct pullet_value v;
	napi_value key;
	struct handle *h = receive_open(env, info, 1, &key, NULL);
	int r = h ? look_up(env, h, key, &v) : -1;

	return r < 0 ? NULL : boolean(env, r == 0);
}

typedef int64_t int_getter(struct pullet *p, const char *key, int64_t fallback);

/* A getter that answers with two different fallbacks has found nothing. */
static napi_value get_integer(napi_env env, struct handle *h, const char *key, int_getter *get)
{
	int64_t n = get(h->p, key, 0);

	return n == 0 && get(h->p, key, 1) == 1 ? undefined(env) : integer(env, n);
}

static napi_value typed(napi_env env, struct handle *h, const char *key, int type)
{
	const char *s;
	double d;
	bool b;

	switch (type) {
	case 's':
		s = pullet_get_string(h->p, key, NULL);
		return s ? string(env, s, strlen(s)) : undefined(env);
	case 'i':
		return get_integer(env, h, key, pullet_get_int);
	case 'd':
		d = pullet_get_double(h->p, key, 0);
		return d == 0 && pullet_get_double(h->p, key, 1) == 1 ? undefined(env)
								      : real(env, d);
	case 'b':
		b = pullet_get_bool(h->p, key, false);
		return !b && pullet_get_bool(h->p, key, true) ? undefined(env) : boolean(env, b);
	case 't':
		return get_integer(env, h, key, pullet_get_duration_ms);
	default:
		return get_integer(env, h, key, pullet_get_size);
	}
}

/* The functions that get a type have its letter as their data. */
static napi_value handle_typed(napi_env env, napi_callback_info info)
{
	void *type = NULL;
	napi_value key, ret;
	struct handle *h = receive_open(env, info, 1, &key, &type);
	struct text t;
	int r;

	if (!h)
		return NULL;
	r = get_text(env, key, KEY_MAX, &t);
	if (r)
		return r < 0 ? NULL : undefined(env);
	ret = strlen(t.data) == t.len ? typed(env, h, t.data, *(const char *)type) : undefined(env);
	free_text(&t);
	return ret;
}

struct listing {
	napi_env env;
	struct handle *h;
	napi_value array;
	bool values;
	uint32_t n;
};

static int list_one(const char *key, size_t key_len, const struct pullet_value *v, void *arg)
{
	struct listing *l = arg;
	napi_handle_scope scope;
	napi_value item;
	int r = 1;

	if (napi_open_handle_scope(l->env, &scope) != napi_ok)
		return 1;
	item = string(l->env, key, key_len);
	if (item && napi_set_element(l->env, l->array, l->n++, item) == napi_ok) {
		r = 0;
		if (l->values) {
			item = value_of(l->env, l->h, v);
			r = item && napi_set_element(l->env, l->array, l->n++, item) == napi_ok ? 0
												: 1;
		}
	}
	napi_close_handle_scope(l->env, scope);
	return r;
}

/* each(prefix, values?) -> [key, value, key, value, ...] or [key, ...] */
static napi_value handle_each(napi_env env, napi_callback_info info)
{
	struct listing l = {.env = env};
	napi_value argv[2];
	struct text t;
	int r;

	l.h = receive_open(env, info, 2, argv, NULL);
	if (!l.h)
		return NULL;
	if (napi_get_value_bool(env, argv[1], &l.values) != napi_ok)
		return throw_type(env, "a boolean is expected");
	r = get_text(env, argv[0], KEY_MAX, &t);
	if (r < 0)
		return NULL;
	if (napi_create_array(env, &l.array) != napi_ok) {
		if (r == 0)
			free_text(&t);
		return failed(env);
	}
	if (r > 0)
		return l.array;
	if (strlen(t.data) == t.len) {
		l.h->reading++;
		r = pullet_each(l.h->p, t.data, list_one, &l);
		l.h->reading--;
	}
	free_text(&t);
	return r == 0 ? l.array : failed(env);
}

static napi_value handle_generation(napi_env env, napi_callback_info info)
{
	struct handle *h = receive_open(env, info, 0, NULL, NULL);
	uint64_t n;
	napi_value v;

	if (!h)
		return NULL;
	n = pullet_generation(h->p);
	if (n <= (uint64_t)SAFE)
		return integer(env, (int64_t)n);
	return napi_create_bigint_uint64(env, n, &v) == napi_ok ? v : failed(env);
}

static napi_value handle_version(napi_env env, napi_callback_info info)
{
	struct handle *h = receive_open(env, info, 0, NULL, NULL);
	const char *version = h ? pullet_version(h->p) : NULL;

	return version ? string(env, version, strlen(version)) : NULL;
}

static napi_value handle_age(napi_env env, napi_callback_info info)
{
	struct handle *h = receive_open(env, info, 0, NULL, NULL);

	return h ? real(env, (double)pullet_age_ms(h->p)) : NULL;
}

static napi_value handle_stale(napi_env env, napi_callback_info info)
{
	struct handle *h = receive_open(env, info, 0, NULL, NULL);

	return h ? boolean(env, pullet_stale(h->p)) : NULL;
}

static napi_value handle_withdrawn(napi_env env, napi_callback_info info)
{
	struct handle *h = receive_open(env, info, 0, NULL, NULL);

	return h ? boolean(env, pullet_withdrawn(h->p)) : NULL;
}

/* ---- waiting ---- */

/* In libuv's loop, once: whoever waits refreshes, and waits again. */
static void on_readable(uv_poll_t *uv, int status, int events)
{
	struct poller *w = (struct poller *)uv;
	napi_handle_scope scope;
	napi_value callback, global;
	napi_ref ref = w->callback;

	(void)status;
	(void)events;
	uv_poll_stop(uv);
	if (!ref || napi_open_handle_scope(w->env, &scope) != napi_ok)
		return;
	w->callback = NULL;
	if (napi_get_reference_value(w->env, ref, &callback) == napi_ok &&
		napi_get_global(w->env, &global) == napi_ok)
		napi_make_callback(w->env, NULL, global, callback, 0, NULL, NULL);
	napi_delete_reference(w->env, ref);
	napi_close_handle_scope(w->env, scope);
}

/* 0, or -errno: then there is no poller. */
static int make_poller(napi_env env, struct handle *h, int fd)
{
	struct poller *w = calloc(1, sizeof(*w));
	uv_loop_t *loop;

	if (!w)
		return -ENOMEM;
	w->env = env;
	w->h = h;
	if (napi_get_uv_event_loop(env, &loop) != napi_ok || uv_poll_init(loop, &w->uv, fd) != 0) {
		free(w);
		return -ENOMEM;
	}
	h->poller = w;
	if (napi_add_async_cleanup_hook(env, end_poller, w, &w->hook) == napi_ok)
		return 0;
	close_poller(w);
	return -ENOMEM;
}

/* poll(callback) -> 0 or -errno: calls it once, when there may be another version. It takes the
 * place of the one before. */
static napi_value handle_poll(napi_env env, napi_callback_info info)
{
	napi_value callback;
	napi_valuetype type;
	napi_ref ref;
	struct handle *h = receive_open(env, info, 1, &callback, NULL);
	int fd, r = 0;

	if (!h)
		return NULL;
	if (napi_typeof(env, callback, &type) != napi_ok || type != napi_function)
		return throw_type(env, "a function is expected");
	fd = pullet_fd(h->p);
	if (fd < 0)
		return int32(env, fd);
	if (!h->poller)
		r = make_poller(env, h, fd);
	if (r)
		return int32(env, r);
	if (napi_create_reference(env, callback, 1, &ref) != napi_ok)
		return failed(env);
	if (h->poller->callback)
		napi_delete_reference(env, h->poller->callback);
	h->poller->callback = ref;
	return int32(env, uv_poll_start(&h->poller->uv, UV_READABLE, on_readable));
}

/* unpoll(): nobody waits any more; the process may end. */
static napi_value handle_unpoll(napi_env env, napi_callback_info info)
{
	struct handle *h = receive(env, info, 0, NULL, NULL);

	if (!h)
		return NULL;
	if (h->poller && h->poller->callback) {
		uv_poll_stop(&h->poller->uv);
		napi_delete_reference(env, h->poller->callback);
		h->poller->callback = NULL;
	}
	return undefined(env);
}

/* ---- for tests of applications ---- */

struct writing {
	struct pullet_entry *entries;
	struct text *texts; /* three for each: key, kind, value */
	uint32_t count, filled;
};

/* Entry number i from the texts. */
static void fill_entry(struct writing *w, uint32_t i)
{
	const struct text *key = &w->texts[3 * i], *value = &w->texts[3 * i + 2];
	struct pullet_entry *e = &w->entries[i];
	char kind = w->texts[3 * i + 1].data[0];
	static const char kinds[] = "nbidslm"; /* as enum pullet_type */
	const char *at = kind ? strchr(kinds, kind) : NULL;

	e->key = key->data;
	e->key_len = key->len;
	e->value.type = at ? (enum pullet_type)(at - kinds) : PULLET_NULL;
	e->value.text = e->value.type >= PULLET_LIST ? "" : value->data;
	e->value.len = e->value.type >= PULLET_LIST ? 0 : value->len;
	if (kind == 'b')
		e->value.boolean = strcmp(value->data, "true") == 0;
	else if (kind == 'i')
		e->value.integer = strtoll(value->data, NULL, 10);
	else if (kind == 'd')
		e->value.number = strtod(value->data, NULL);
	else if (kind == 'l' || kind == 'm')
		e->value.count = strtoull(value->data, NULL, 10);
}

/* 0, or -1 with an exception pending. */
static int read_writing(napi_env env, napi_value array, struct writing *w)
{
	napi_value item;

	for (; w->filled < 3 * w->count; w->filled++) {
		if (napi_get_element(env, array, w->filled, &item) != napi_ok ||
			get_text(env, item, KEY_MAX, &w->texts[w->filled])) {
			throw_type(env, "a string is expected");
			return -1;
		}
	}
	for (uint32_t i = 0; i < w->count; i++)
		fill_entry(w, i);
	return 0;
}

/* write(path, version, [key, kind, text, ...]) -> 0 or -errno */
static napi_value write_snapshot(napi_env env, napi_callback_info info)
{
	struct writing w = {0};
	struct text path = {.data = path.small}, version = {.data = version.small};
	napi_value argv[3], ret = NULL;
	size_t argc = 3;
	uint32_t length;

	if (napi_get_cb_info(env, info, &argc, argv, NULL, NULL) != napi_ok || argc != 3 ||
		napi_get_array_length(env, argv[2], &length) != napi_ok)
		return throw_type(env, "a path, a version and an array are expected");
	w.count = length / 3;
	w.entries = calloc(w.count + 1, sizeof(*w.entries));
	w.texts = calloc((size_t)length + 1, sizeof(*w.texts));
	if (!w.entries || !w.texts)
		failed(env);
	else if (get_text(env, argv[0], PATH_MAX, &path) == 0 &&
		 get_text(env, argv[1], PATH_MAX, &version) == 0 &&
		 read_writing(env, argv[2], &w) == 0)
		ret = int32(env, pullet_write(path.data, w.entries, w.count, version.data));
	else
		throw_type(env, "it is too long");
	while (w.filled)
		free_text(&w.texts[--w.filled]);
	free_text(&path);
	free_text(&version);
	free(w.entries);
	free(w.texts);
	return ret;
}

/* ---- module ---- */

static napi_value strerror_of(napi_env env, napi_callback_info info)
{
	const char *text;
	size_t argc = 1;
	int32_t error = 0;
	napi_value arg;

	if (napi_get_cb_info(env, info, &argc, &arg, NULL, NULL) != napi_ok ||
		napi_get_value_int32(env, arg, &error) != napi_ok)
		return throw_type(env, "a number is expected");
	text = pullet_strerror(error);
	return string(env, text, strlen(text));
}

/* explain(name, error) -> the sentence of an error of opening it */
static napi_value explain(napi_env env, napi_callback_info info)
{
	napi_value argv[2], ret;
	size_t argc = 2;
	int32_t error = 0;
	struct text name;
	char why[512];
	int r;

	if (napi_get_cb_info(env, info, &argc, argv, NULL, NULL) != napi_ok ||
		napi_get_value_int32(env, argv[1], &error) != napi_ok)
		return throw_type(env, "a number is expected");
	r = get_text(env, argv[0], PATH_MAX, &name);
	if (r) /* too long: no name, whatever else it is */
		return r < 0 ? NULL
			     : string(env, pullet_strerror(error), strlen(pullet_strerror(error)));
	pullet_explain(name.data, error, why, sizeof(why));
	ret = string(env, why, strlen(why));
	free_text(&name);
	return ret;
}

/* handle() -> a handle that open() has not opened yet */
static napi_value make_handle(napi_env env, napi_callback_info info)
{
	struct handle *h = calloc(1, sizeof(*h));
	napi_value ret;

	(void)info;
	if (!h)
		return failed(env);
	h->magic = MAGIC;
	if (napi_create_external(env, h, finalize, NULL, &ret) == napi_ok)
		return ret;
	free(h);
	return failed(env);
}

#define FUNCTION(name, function, data)                                                             \
	{                                                                                          \
		name, NULL, function, NULL, NULL, NULL, napi_enumerable, (void *)(data)            \
	}

NAPI_MODULE_INIT()
{
	static char types[] = "sidbtz";
	const napi_property_descriptor functions[] = {
		FUNCTION("strerror", strerror_of, NULL),
		FUNCTION("explain", explain, NULL),
		FUNCTION("handle", make_handle, NULL),
		FUNCTION("open", handle_open, NULL),
		FUNCTION("close", handle_close, NULL),
		FUNCTION("refresh", handle_refresh, NULL),
		FUNCTION("get", handle_get, NULL),
		FUNCTION("has", handle_has, NULL),
		FUNCTION("getString", handle_typed, types),
		FUNCTION("getInt", handle_typed, types + 1),
		FUNCTION("getNumber", handle_typed, types + 2),
		FUNCTION("getBoolean", handle_typed, types + 3),
		FUNCTION("getDuration", handle_typed, types + 4),
		FUNCTION("getSize", handle_typed, types + 5),
		FUNCTION("each", handle_each, NULL),
		FUNCTION("generation", handle_generation, NULL),
		FUNCTION("version", handle_version, NULL),
		FUNCTION("age", handle_age, NULL),
		FUNCTION("stale", handle_stale, NULL),
		FUNCTION("withdrawn", handle_withdrawn, NULL),
		FUNCTION("poll", handle_poll, NULL),
		FUNCTION("unpoll", handle_unpoll, NULL),
		FUNCTION("write", write_snapshot, NULL),
	};

	return napi_define_properties(
		       env, exports, sizeof(functions) / sizeof(functions[0]), functions) == napi_ok
		       ? exports
		       : failed(env);
}
