/*
 * The Node-API side of index.js: functions whose first argument is what handle() made, an external
 * over one struct pullet. Values are copied out.
 *
 *	gcc -shared -fPIC -O2 -I/usr/include/node -Ilib -o pullet.node lib/node/addon.c -Lbuild \
 *		-lpullet
 *
 * What surprises: no class, for to ask V8 for what an object wraps takes as long as two look-ups,
 * and an external is that already. slice() waits in a thread of libuv's pool, on a second handle
 * that only that thread touches while it runs; the first one stays with JavaScript. It is opened
 * here, in JavaScript's thread, because opening reads the environment. Whoever of the object and
 * the thread is last frees the struct. While each() reads, a setter on Array.prototype may run and
 * try to move or close what is read: `reading` refuses it.
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

#include "pullet.h"

#define SLICE_MS 1000
#define KEY_MAX ((size_t)1 << 24) /* FORMAT.md: no key is as long */
#define SAFE (((int64_t)1 << 53) - 1)

#define MAGIC UINT64_C(0x9c1f7e3a70756c6c) /* in none of another addon's externals */
#define MAX_ARGUMENTS 2

struct handle {
	uint64_t magic;
	struct pullet *p;      /* NULL = closed */
	struct pullet *waiter; /* NULL = none yet */
	char *path;            /* of the waiter: with a '/' */
	unsigned refs;         /* the external, and work that runs */
	unsigned reading;
	bool running;
	int timeout_ms, result; /* of the work */
	napi_async_work work;
	napi_deferred deferred;
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

static void unref(struct handle *h)
{
	if (--h->refs)
		return;
	pullet_close(h->p);
	pullet_close(h->waiter);
	free(h->path);
	free(h);
}

static void finalize(napi_env env, void *data, void *hint)
{
	(void)env;
	(void)hint;
	unref(data);
}

/* Where the name leads now: the environment may change before the waiter opens it. */
static char *path_of(const char *name)
{
	const char *dir = getenv("PULLET_RUNTIME_DIR");
	size_t len;
	char *path;

	if (strchr(name, '/'))
		return strdup(name);
	if (!dir || !dir[0])
		dir = "/run/pullet";
	len = strlen(dir) + strlen(name) + sizeof("/.snap");
	path = malloc(len);
	if (path)
		snprintf(path, len, "%s/%s.snap", dir, name);
	return path;
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
	if (!h->p && !h->path && strlen(name.data) == name.len)
		r = pullet_open(name.data, wait_first ? PULLET_WAIT_FIRST : 0, &h->p);
	if (r == 0) {
		h->path = path_of(name.data);
		if (!h->path) {
			pullet_close(h->p);
			h->p = NULL;
			r = -ENOMEM;
		}
	}
	free_text(&name);
	return int32(env, r);
}

static napi_value handle_close(napi_env env, napi_callback_info info)
{
	struct handle *h = receive(env, info, 0, NULL, NULL);

	if (!h || !may_move(env, h))
		return NULL;
	pullet_close(h->p);
	h->p = NULL;
	if (!h->running) {
		pullet_close(h->waiter);
		h->waiter = NULL;
	}
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

static void run_slice(napi_env env, void *data) /* in a thread of the pool */
{
	struct handle *h = data;

	(void)env;
	h->result = pullet_wait(h->waiter, h->timeout_ms);
}

/* In JavaScript's thread; also when the process ends, and then JavaScript may not run. */
static void end_slice(napi_env env, napi_status status, void *data)
{
	struct handle *h = data;
	napi_value v;

	h->running = false;
	if (!h->p) {
		pullet_close(h->waiter);
		h->waiter = NULL;
	}
	if (napi_create_int32(env, status == napi_ok ? h->result : -ECANCELED, &v) == napi_ok)
		napi_resolve_deferred(env, h->deferred, v);
	napi_delete_async_work(env, h->work);
	unref(h);
}

/* slice(milliseconds) -> promise of 1, 0 or -errno: of the second handle, a hint only. -errno at
 * once when there is none, or it is in use. */
static napi_value handle_slice(napi_env env, napi_callback_info info)
{
	napi_value arg, name, promise;
	struct handle *h = receive_open(env, info, 1, &arg, NULL);
	int32_t ms;
	int r;

	if (!h)
		return NULL;
	if (napi_get_value_int32(env, arg, &ms) != napi_ok)
		return throw_type(env, "a number is expected");
	if (h->running)
		return int32(env, -EBUSY);
	if (!h->waiter) {
		r = pullet_open(h->path, PULLET_WAIT_FIRST, &h->waiter);
		if (r)
			return int32(env, r);
	}
	h->timeout_ms = ms < 0 ? 0 : ms > SLICE_MS ? SLICE_MS : ms;
	if (napi_create_string_utf8(env, "pullet.wait", NAPI_AUTO_LENGTH, &name) != napi_ok ||
		napi_create_async_work(env, NULL, name, run_slice, end_slice, h, &h->work) !=
			napi_ok)
		return failed(env);
	if (napi_create_promise(env, &h->deferred, &promise) != napi_ok) {
		napi_delete_async_work(env, h->work);
		return failed(env);
	}
	if (napi_queue_async_work(env, h->work) != napi_ok) {
		napi_delete_async_work(env, h->work);
		napi_resolve_deferred(env, h->deferred, undefined(env));
		return failed(env);
	}
	h->running = true;
	h->refs++;
	return promise;
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

/* handle() -> a handle that open() has not opened yet */
static napi_value make_handle(napi_env env, napi_callback_info info)
{
	struct handle *h = calloc(1, sizeof(*h));
	napi_value ret;

	(void)info;
	if (!h)
		return failed(env);
	h->magic = MAGIC;
	h->refs = 1;
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
		FUNCTION("slice", handle_slice, NULL),
	};

	return napi_define_properties(
		       env, exports, sizeof(functions) / sizeof(functions[0]), functions) == napi_ok
		       ? exports
		       : failed(env);
}
