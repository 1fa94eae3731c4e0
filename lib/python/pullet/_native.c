/*
 * The fast half of the Python module: Handle, which Config inherits, and Key, over libpullet.
 * Values are copied out. Built with the limited API, so that one file serves Python 3.10 and all
 * later ones; where it is not built, _ctypes.py has the same two classes.
 *
 * What surprises: there is no lock around a read. It holds the GIL, and while it has pointers into
 * the image it makes texts and numbers only, which the garbage collector does not count: so no code
 * of Python runs meanwhile, no finalizer and no signal handler, that could move or close the
 * handle. The GIL is released to open and to wait alone; who comes to a handle that another thread
 * waits with waits for that thread.
 */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030A0000
#include <Python.h>

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "pullet.h"

#define SLICE_US 50000 /* how long a signal may have to wait for its handler */

struct handle {
	PyObject_HEAD struct pullet *p; /* NULL = not open yet, or closed */
	PyThread_type_lock lock;        /* held by the thread that waits */
	pid_t waiting;                  /* 0 = no thread does */
	bool closing;
	uint64_t moves;
};

struct key {
	PyObject_HEAD struct handle *h;
	PyObject *name, *bytes; /* at borrows the bytes */
	struct pullet_key at;   /* of use while h is open */
	PyObject *text;         /* NULL, or what get_str() made of it after as many moves */
	uint64_t moves;
};

struct state { /* of the module, in one interpreter */
	PyTypeObject *key_type;
	PyObject *timedelta;
};

enum kind { ANY, TEXT, WHOLE, REAL, TRUTH, DURATION, SIZE };

/* ---- who may use a handle ---- */

/* Lets the thread that waits with this handle end. 0, or -1 with an exception. */
static int wait_for_thread(struct handle *h)
{
	PyThreadState *saved;
	PyLockStatus s;

	if (h->waiting != getpid()) {
		PyErr_SetString(PyExc_RuntimeError,
			"a thread of the process before fork() waits with this configuration");
		return -1;
	}
	saved = PyEval_SaveThread();
	s = PyThread_acquire_lock_timed(h->lock, SLICE_US, 0);
	if (s == PY_LOCK_ACQUIRED)
		PyThread_release_lock(h->lock);
	PyEval_RestoreThread(saved);
	return PyErr_CheckSignals();
}

static bool can_be_used(struct handle *h)
{
	while (h->waiting)
		if (wait_for_thread(h))
			return false;
	return true;
}

/* True, and then the handle stays open until code of Python runs again; or an exception. */
static bool is_open(struct handle *h)
{
	if (!can_be_used(h))
		return false;
	if (h->p && !h->closing)
		return true;
	PyErr_SetString(PyExc_ValueError, "operation on a closed configuration");
	return false;
}

/* ---- arguments ---- */

static int find_argument(PyObject *name, const char *const names[2])
{
	for (int i = 0; i < 2; i++)
		if (names[i] && PyUnicode_CompareWithASCIIString(name, names[i]) == 0)
			return i;
	return -1;
}

/* Puts at most two arguments, by place or by name, into their places; what is not given stays as
 * it is. False with an exception. */
static bool take_arguments(PyObject *const *argv, Py_ssize_t argc, PyObject *by_name,
	const char *const names[2], PyObject **ret)
{
	Py_ssize_t most = names[1] ? 2 : 1, n = by_name ? PyTuple_Size(by_name) : 0;

	if (argc > most) {
		PyErr_Format(
			PyExc_TypeError, "at most %zd arguments expected, got %zd", most, argc);
		return false;
	}
	for (Py_ssize_t i = 0; i < argc; i++)
		ret[i] = argv[i];
	for (Py_ssize_t i = 0; i < n; i++) {
		PyObject *name = PyTuple_GetItem(by_name, i);
		int at = find_argument(name, names);

		if (at < 0 || at < argc) {
			PyErr_Format(PyExc_TypeError, "unexpected or repeated argument '%U'", name);
			return false;
		}
		ret[at] = argv[argc + i];
	}
	return true;
}

struct text { /* of a str */
	const char *data;
	Py_ssize_t len;
	PyObject *bytes; /* NULL, or what owns data */
};

/* Lone surrogates stand for bytes that are not UTF-8, as everywhere in Python. False with an
 * exception. */
static bool get_text(PyObject *str, struct text *t)
{
	char *data;

	t->bytes = NULL;
	t->data = PyUnicode_AsUTF8AndSize(str, &t->len);
	if (t->data)
		return true;
	if (!PyErr_ExceptionMatches(PyExc_UnicodeEncodeError))
		return false;
	PyErr_Clear();
	t->bytes = PyUnicode_AsEncodedString(str, "utf-8", "surrogateescape");
	if (!t->bytes || PyBytes_AsStringAndSize(t->bytes, &data, &t->len))
		return false;
	t->data = data;
	return true;
}

static PyObject *make_str(const char *text, size_t len)
{
	return PyUnicode_DecodeUTF8(text, (Py_ssize_t)len, "surrogateescape");
}

/* ---- values ---- */

/* Of a list or map: how many items or members. */
static PyObject *make_scalar(const struct pullet_value *v)
{
	switch (v->type) {
	case PULLET_BOOL:
		return PyBool_FromLong(v->boolean);
	case PULLET_INT:
		return PyLong_FromLongLong(v->integer);
	case PULLET_DOUBLE:
		return PyFloat_FromDouble(v->number);
	case PULLET_STRING:
		return make_str(v->text, v->len);
	case PULLET_LIST:
	case PULLET_MAP:
		return PyLong_FromUnsignedLongLong(v->count);
	case PULLET_NULL:
		break;
	}
	return Py_NewRef(Py_None);
}

/* Appends and releases an item, which may be NULL with an exception. */
static int append_item(PyObject *list, PyObject *item)
{
	int r = item ? PyList_Append(list, item) : -1;

	Py_XDECREF(item);
	return r;
}

static int append_entry(const char *key, size_t key_len, const struct pullet_value *v, void *list)
{
	return append_item(list, PyLong_FromLong((long)v->type)) ||
	       append_item(list, make_str(key, key_len)) || append_item(list, make_scalar(v));
}

/* [number of all keys] and, for each key that begins with prefix, its type, itself and its value.
 */
static int append_entries(struct pullet *p, const struct text *prefix, PyObject *list)
{
	if (append_item(list, PyLong_FromSize_t(pullet_count(p))))
		return -1;
	if (strlen(prefix->data) != (size_t)prefix->len)
		return 0; /* no key has a NUL */
	return pullet_each(p, prefix->data, append_entry, list);
}

/* The entries of a list or map, and last its own, which _container() builds it from. */
static PyObject *make_container(struct handle *h, const struct text *key,
	const struct pullet_value *v, PyObject *below, PyObject *entries)
{
	struct text prefix = {.data = PyBytes_AsString(below), .len = key->len + 1};

	if (append_entries(h->p, &prefix, entries) ||
		append_entry(key->data, (size_t)key->len, v, entries))
		return NULL;
	return PyObject_CallMethod((PyObject *)h, "_container", "O", entries);
}

/* key and a dot */
static PyObject *make_prefix(const struct text *key)
{
	PyObject *prefix = PyBytes_FromStringAndSize(NULL, key->len + 1);

	if (prefix) {
		memcpy(PyBytes_AsString(prefix), key->data, (size_t)key->len);
		PyBytes_AsString(prefix)[key->len] = '.';
	}
	return prefix;
}

/* The value with the type it has; the fallback, or NULL without an exception if that is NULL. What
 * a list or map is put into is made before it is looked at, for the garbage collector counts that:
 * a finalizer may have moved the handle, so the key is looked up again. */
static PyObject *read_any(struct handle *h, const struct text *key, PyObject *fallback)
{
	PyObject *below = NULL, *entries = NULL, *ret = NULL;
	struct pullet_value v;

	while (is_open(h)) {
		if (pullet_get(h->p, key->data, (size_t)key->len, &v)) {
			ret = fallback ? Py_NewRef(fallback) : NULL;
			break;
		}
		if (v.type < PULLET_LIST) {
			ret = make_scalar(&v);
			break;
		}
		if (entries) {
			ret = make_container(h, key, &v, below, entries);
			break;
		}
		below = make_prefix(key);
		entries = PyList_New(0);
		if (!below || !entries)
			break;
	}
	Py_XDECREF(below);
	Py_XDECREF(entries);
	return ret;
}

static PyObject *make_duration(PyTypeObject *class, int64_t ms, PyObject *fallback)
{
	const struct state *s = PyType_GetModuleState(class);
	PyObject *ret = PyObject_CallFunction(
		s->timedelta, "iLi", 0, (long long)(ms / 1000), (int)(ms % 1000) * 1000);

	if (ret || !PyErr_ExceptionMatches(PyExc_OverflowError))
		return ret;
	PyErr_Clear();
	return Py_NewRef(fallback);
}

/* A getter that answers with two different fallbacks has found nothing. */
static bool get_integer(
	struct pullet_key *k, int64_t (*get)(struct pullet_key *, int64_t), int64_t *ret)
{
	*ret = get(k, INT64_MIN);
	return *ret != INT64_MIN || get(k, 0) == INT64_MIN;
}

static PyObject *read_as(
	struct pullet_key *k, enum kind kind, PyTypeObject *class, PyObject *fallback)
{
	const char *text;
	int64_t n;
	double d;
	bool b;

	switch (kind) {
	case TEXT:
		text = pullet_key_get_string(k, NULL);
		return text ? make_str(text, strlen(text)) : Py_NewRef(fallback);
	case WHOLE:
		if (get_integer(k, pullet_key_get_int, &n))
			return PyLong_FromLongLong(n);
		break;
	case REAL:
		d = pullet_key_get_double(k, 0);
		if (d != 0 || pullet_key_get_double(k, 1) != 1)
			return PyFloat_FromDouble(d);
		break;
	case TRUTH:
		b = pullet_key_get_bool(k, false);
		if (b || !pullet_key_get_bool(k, true))
			return PyBool_FromLong(b);
		break;
	case DURATION:
		if (get_integer(k, pullet_key_get_duration_ms, &n))
			return make_duration(class, n, fallback);
		break;
	case SIZE:
		if (get_integer(k, pullet_key_get_size, &n))
			return PyLong_FromLongLong(n);
		break;
	case ANY:
		break;
	}
	return Py_NewRef(fallback);
}

/* ---- Handle ---- */

static PyObject *handle_new(PyTypeObject *class, PyObject *args, PyObject *by_name)
{
	struct handle *h = (struct handle *)PyType_GenericNew(class, args, by_name);

	if (!h)
		return NULL;
	h->lock = PyThread_allocate_lock();
	if (h->lock)
		return (PyObject *)h;
	Py_DECREF(h);
	return PyErr_NoMemory();
}

/* No thread is inside: it would have a reference. */
static void handle_dealloc(PyObject *self)
{
	struct handle *h = (struct handle *)self;
	PyTypeObject *class = Py_TYPE(self);

	pullet_close(h->p);
	if (h->lock)
		PyThread_free_lock(h->lock);
	((freefunc)PyType_GetSlot(class, Py_tp_free))(self);
	Py_DECREF(class);
}

static PyObject *handle_open(PyObject *self, PyObject *args)
{
	struct handle *h = (struct handle *)self;
	struct pullet *p = NULL;
	PyThreadState *saved;
	const char *name;
	unsigned flags;
	int r;

	if (!PyArg_ParseTuple(args, "yI", &name, &flags))
		return NULL;
	saved = PyEval_SaveThread();
	r = pullet_open(name, flags, &p);
	PyEval_RestoreThread(saved);
	if (r == 0 && (h->p || h->closing)) {
		pullet_close(p);
		PyErr_SetString(PyExc_ValueError, "a configuration is opened once");
		return NULL;
	}
	if (r == 0)
		h->p = p;
	return PyLong_FromLong(r);
}

static PyObject *handle_close(PyObject *self, PyObject *unused)
{
	struct handle *h = (struct handle *)self;

	(void)unused;
	h->closing = true;
	if (!can_be_used(h))
		return NULL;
	pullet_close(h->p);
	h->p = NULL;
	return Py_NewRef(Py_None);
}

static PyObject *handle_refresh(PyObject *self, PyObject *unused)
{
	struct handle *h = (struct handle *)self;
	int r;

	(void)unused;
	if (!is_open(h))
		return NULL;
	r = pullet_refresh(h->p);
	if (r == 0)
		return Py_NewRef(Py_False);
	if (r < 0)
		return PyObject_CallMethod(self, "_failed", "i", r);
	h->moves++;
	return Py_NewRef(Py_True);
}

static PyObject *handle_fileno(PyObject *self, PyObject *unused)
{
	struct handle *h = (struct handle *)self;
	int fd;

	(void)unused;
	if (!is_open(h))
		return NULL;
	fd = pullet_fd(h->p);
	return fd < 0 ? PyObject_CallMethod(self, "_failed", "i", fd) : PyLong_FromLong(fd);
}

static PyObject *handle_wait(PyObject *self, PyObject *args)
{
	struct handle *h = (struct handle *)self;
	PyThreadState *saved;
	int timeout_ms, r;

	if (!PyArg_ParseTuple(args, "i", &timeout_ms) || !is_open(h))
		return NULL;
	h->waiting = getpid();
	PyThread_acquire_lock(
		h->lock, WAIT_LOCK); /* held by others for a moment, without the GIL */
	saved = PyEval_SaveThread();
	r = pullet_wait(h->p, timeout_ms);
	PyEval_RestoreThread(saved);
	PyThread_release_lock(h->lock);
	h->waiting = 0;
	if (r > 0)
		h->moves++;
	return PyLong_FromLong(r);
}

/* A str, or NULL with an exception. */
static PyObject *check_key(PyObject *key)
{
	if (key && PyUnicode_Check(key))
		return key;
	PyErr_SetString(PyExc_TypeError, "a key is a str");
	return NULL;
}

static PyObject *handle_get_as(struct handle *h, PyTypeObject *class, PyObject *const *argv,
	size_t argc, PyObject *by_name, enum kind kind)
{
	static const char *const names[2] = {"key", "default"};
	PyObject *given[2] = {NULL, Py_None}, *ret = NULL;
	struct pullet_key k;
	struct text key;

	if (!take_arguments(argv, (Py_ssize_t)argc, by_name, names, given) ||
		!check_key(given[0]) || !get_text(given[0], &key))
		return NULL;
	if (kind == ANY) {
		ret = read_any(h, &key, given[1]);
	} else if (is_open(h)) {
		pullet_key_init(&k, h->p, key.data, (size_t)key.len);
		ret = read_as(&k, kind, class, given[1]);
	}
	Py_XDECREF(key.bytes);
	return ret;
}

static PyObject *handle_subscript(PyObject *self, PyObject *name)
{
	PyObject *ret;
	struct text key;

	if (!check_key(name) || !get_text(name, &key))
		return NULL;
	ret = read_any((struct handle *)self, &key, NULL);
	Py_XDECREF(key.bytes);
	if (!ret && !PyErr_Occurred())
		PyErr_SetObject(PyExc_KeyError, name);
	return ret;
}

static int handle_contains(PyObject *self, PyObject *name)
{
	struct handle *h = (struct handle *)self;
	struct pullet_value v;
	struct text key;
	int ret = -1;

	if (!PyUnicode_Check(name))
		return 0;
	if (!get_text(name, &key))
		return -1;
	if (is_open(h))
		ret = pullet_get(h->p, key.data, (size_t)key.len, &v) == 0;
	Py_XDECREF(key.bytes);
	return ret;
}

static Py_ssize_t handle_length(PyObject *self)
{
	struct handle *h = (struct handle *)self;

	return is_open(h) ? (Py_ssize_t)pullet_count(h->p) : -1;
}

static PyObject *handle_entries(PyObject *self, PyObject *prefix)
{
	struct handle *h = (struct handle *)self;
	PyObject *list;
	struct text t;

	if (!check_key(prefix) || !get_text(prefix, &t))
		return NULL;
	list = PyList_New(0); /* before the handle is looked at: the garbage collector may run */
	if (list && (!is_open(h) || append_entries(h->p, &t, list)))
		Py_CLEAR(list);
	Py_XDECREF(t.bytes);
	return list;
}

static PyObject *handle_generation(PyObject *self, void *unused)
{
	struct handle *h = (struct handle *)self;

	(void)unused;
	return is_open(h) ? PyLong_FromUnsignedLongLong(pullet_generation(h->p)) : NULL;
}

static PyObject *handle_version(PyObject *self, void *unused)
{
	struct handle *h = (struct handle *)self;
	const char *version = is_open(h) ? pullet_version(h->p) : NULL;

	(void)unused;
	return version ? make_str(version, strlen(version)) : NULL;
}

static PyObject *handle_age(PyObject *self, void *unused)
{
	struct handle *h = (struct handle *)self;

	(void)unused;
	return is_open(h) ? PyLong_FromLongLong(pullet_age_ms(h->p)) : NULL;
}

static PyObject *handle_stale(PyObject *self, void *unused)
{
	struct handle *h = (struct handle *)self;

	(void)unused;
	return is_open(h) ? PyBool_FromLong(pullet_stale(h->p)) : NULL;
}

static PyObject *handle_withdrawn(PyObject *self, void *unused)
{
	struct handle *h = (struct handle *)self;

	(void)unused;
	return is_open(h) ? PyBool_FromLong(pullet_withdrawn(h->p)) : NULL;
}

static PyObject *handle_closing(PyObject *self, void *unused)
{
	(void)unused;
	return PyBool_FromLong(((struct handle *)self)->closing);
}

/* ---- Key ---- */

static PyObject *handle_key(
	PyObject *self, PyTypeObject *class, PyObject *const *argv, size_t argc, PyObject *by_name)
{
	static const char *const names[2] = {"key", NULL};
	const struct state *s = PyType_GetModuleState(class);
	PyObject *name = NULL, *bytes;
	struct key *k;

	if (!take_arguments(argv, (Py_ssize_t)argc, by_name, names, &name) || !check_key(name))
		return NULL;
	bytes = PyUnicode_AsEncodedString(name, "utf-8", "surrogateescape");
	k = bytes ? (struct key *)PyType_GenericAlloc(s->key_type, 0) : NULL;
	if (!k) {
		Py_XDECREF(bytes);
		return NULL;
	}
	k->h = (struct handle *)Py_NewRef(self);
	k->name = Py_NewRef(name);
	k->bytes = bytes;
	if (!is_open(k->h))
		Py_CLEAR(k);
	else
		pullet_key_init(
			&k->at, k->h->p, PyBytes_AsString(bytes), (size_t)PyBytes_Size(bytes));
	return (PyObject *)k;
}

static void key_dealloc(PyObject *self)
{
	struct key *k = (struct key *)self;
	PyTypeObject *class = Py_TYPE(self);

	Py_XDECREF(k->h);
	Py_XDECREF(k->name);
	Py_XDECREF(k->bytes);
	Py_XDECREF(k->text);
	((freefunc)PyType_GetSlot(class, Py_tp_free))(self);
	Py_DECREF(class);
}

/* The text is made once a version. */
static PyObject *key_text(struct key *k, PyTypeObject *class, PyObject *fallback)
{
	PyObject *ret, *old = k->text;

	if (old && k->moves == k->h->moves)
		return Py_NewRef(old);
	ret = read_as(&k->at, TEXT, class, fallback);
	k->text = ret && ret != fallback ? Py_NewRef(ret) : NULL;
	k->moves = k->h->moves;
	Py_XDECREF(old);
	return ret;
}

static PyObject *key_any(struct key *k, PyObject *fallback)
{
	const struct pullet_value *v = pullet_key_get(&k->at);
	struct text name = {.data = PyBytes_AsString(k->bytes), .len = PyBytes_Size(k->bytes)};

	if (!v)
		return Py_NewRef(fallback);
	return v->type < PULLET_LIST ? make_scalar(v) : read_any(k->h, &name, fallback);
}

static PyObject *key_get_as(struct key *k, PyTypeObject *class, PyObject *const *argv, size_t argc,
	PyObject *by_name, enum kind kind)
{
	static const char *const names[2] = {"default", NULL};
	PyObject *fallback = Py_None;

	if (!take_arguments(argv, (Py_ssize_t)argc, by_name, names, &fallback) || !is_open(k->h))
		return NULL;
	switch (kind) {
	case ANY:
		return key_any(k, fallback);
	case TEXT:
		return key_text(k, class, fallback);
	default:
		return read_as(&k->at, kind, class, fallback);
	}
}

static PyObject *key_name(PyObject *self, void *unused)
{
	(void)unused;
	return Py_NewRef(((struct key *)self)->name);
}

static PyObject *key_repr(PyObject *self)
{
	return PyUnicode_FromFormat("<pullet.Key %R>", ((struct key *)self)->name);
}

/* ---- tables ---- */

#define GETTER(what, kind)                                                                         \
	static PyObject *handle_##what(PyObject *self, PyTypeObject *class, PyObject *const *argv, \
		size_t argc, PyObject *by_name)                                                    \
	{                                                                                          \
		return handle_get_as((struct handle *)self, class, argv, argc, by_name, kind);     \
	}                                                                                          \
	static PyObject *key_##what(PyObject *self, PyTypeObject *class, PyObject *const *argv,    \
		size_t argc, PyObject *by_name)                                                    \
	{                                                                                          \
		return key_get_as((struct key *)self, class, argv, argc, by_name, kind);           \
	}
GETTER(get, ANY)
GETTER(get_str, TEXT)
GETTER(get_int, WHOLE)
GETTER(get_float, REAL)
GETTER(get_bool, TRUTH)
GETTER(get_duration, DURATION)
GETTER(get_size, SIZE)

#define FAST (METH_METHOD | METH_FASTCALL | METH_KEYWORDS)
#define METHOD(name, function, how, doc)                                                           \
	{                                                                                          \
		name, (PyCFunction)(void (*)(void))(function), how, PyDoc_STR(doc)                 \
	}
#define SIGNATURE(name, arguments) name "($self, " arguments ")\n--\n\n"
#define GETTERS(of, a)                                                                             \
	METHOD("get", of##_get, FAST, SIGNATURE("get", a) "Return the value, or default."),        \
		METHOD("get_str", of##_get_str, FAST,                                              \
			SIGNATURE("get_str", a) "Return the text of any scalar as it was "         \
						"written, or default."),                           \
		METHOD("get_int", of##_get_int, FAST,                                              \
			SIGNATURE("get_int", a) "Return an integer, or a string that is one; "     \
						"otherwise default."),                             \
		METHOD("get_float", of##_get_float, FAST,                                          \
			SIGNATURE("get_float", a) "Return a number, or a string that is one; "     \
						  "otherwise default."),                           \
		METHOD("get_bool", of##_get_bool, FAST,                                            \
			SIGNATURE("get_bool", a) "Return true or false, or a string that is one; " \
						 "otherwise default."),                            \
		METHOD("get_duration", of##_get_duration, FAST,                                    \
			SIGNATURE("get_duration",                                                  \
				a) "Return a timedelta of a string such as \"500ms\", \"10s\", "   \
				   "\"5m\", \"1h\";\n"                                             \
				   "otherwise default, also for what no timedelta can hold."),     \
		METHOD("get_size", of##_get_size, FAST,                                            \
			SIGNATURE("get_size", a) "Return the bytes of a string such as "           \
						 "\"64KiB\", or of an integer;\n"                  \
						 "otherwise default.")

static PyMethodDef handle_methods[] = {
	GETTERS(handle, "key, default=None"),
	METHOD("key", handle_key, FAST,
		SIGNATURE("key", "key") "Return a Key, for a key that is read often."),
	METHOD("refresh", handle_refresh, METH_NOARGS,
		"refresh($self)\n--\n\n"
		"Move to the newest version; tell whether there was one.\n\n"
		"When there is nothing newer this costs one load from memory and the call. After\n"
		"an Error the version that was open stays in use. Withdrawn is raised each time\n"
		"until the configuration comes back: whether to go on with the last values is for\n"
		"you to decide."),
	METHOD("fileno", handle_fileno, METH_NOARGS,
		"fileno($self)\n--\n\n"
		"Return a descriptor that is readable when there may be another version.\n\n"
		"For event loops: refresh() once when it is readable. It is that of pullet_fd(3),\n"
		"and is closed with the configuration."),
	METHOD("close", handle_close, METH_NOARGS,
		"close($self)\n--\n\nFree the handle; a second time does nothing."),
	METHOD("_open", handle_open, METH_VARARGS, "0 or -errno."),
	METHOD("_wait", handle_wait, METH_VARARGS, "1, 0 or -errno."),
	METHOD("_entries", handle_entries, METH_O,
		"How many keys there are; then type, key and value of each that begins so."),
	{NULL, NULL, 0, NULL},
};

static PyGetSetDef handle_members[] = {
	{"generation", handle_generation, NULL,
		PyDoc_STR("The generation that is open; 0 when nothing is yet."), NULL},
	{"version", handle_version, NULL,
		PyDoc_STR("The server's name for it (ETag or revision), or an empty string."),
		NULL},
	{"stale", handle_stale, NULL,
		PyDoc_STR("True when the age is longer than the agent's longest delay, or not "
			  "known."),
		NULL},
	{"withdrawn", handle_withdrawn, NULL,
		PyDoc_STR("True while the agent publishes it no more; as it is now, without a "
			  "refresh."),
		NULL},
	{"_age_ms", handle_age, NULL, NULL, NULL},
	{"_closing", handle_closing, NULL, NULL, NULL},
	{NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot handle_slots[] = {
	{Py_tp_doc, (void *)(uintptr_t)PyDoc_STR("One struct pullet.")},
	{Py_tp_new, handle_new},
	{Py_tp_dealloc, handle_dealloc},
	{Py_tp_methods, handle_methods},
	{Py_tp_getset, handle_members},
	{Py_mp_subscript, handle_subscript},
	{Py_mp_length, handle_length},
	{Py_sq_contains, handle_contains},
	{0, NULL},
};

static PyType_Spec handle_spec = {
	.name = "pullet._native.Handle",
	.basicsize = sizeof(struct handle),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
	.slots = handle_slots,
};

static PyMethodDef key_methods[] = {
	GETTERS(key, "default=None"),
	{NULL, NULL, 0, NULL},
};

static PyGetSetDef key_members[] = {
	{"name", key_name, NULL, PyDoc_STR("The key."), NULL},
	{NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot key_slots[] = {
	{Py_tp_doc, (void *)(uintptr_t)PyDoc_STR(
			    "A key of one Config that is looked up once a version: Config.key()\n"
			    "makes it. It moves with its Config, and ends with it.")},
	{Py_tp_dealloc, key_dealloc},
	{Py_tp_methods, key_methods},
	{Py_tp_getset, key_members},
	{Py_tp_repr, key_repr},
	{0, NULL},
};

static PyType_Spec key_spec = {
	.name = "pullet.Key",
	.basicsize = sizeof(struct key),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.slots = key_slots,
};

static PyObject *strerror_of(PyObject *module, PyObject *error)
{
	long n = PyLong_AsLong(error);

	(void)module;
	return n == -1 && PyErr_Occurred() ? NULL : PyUnicode_FromString(pullet_strerror((int)n));
}

static PyObject *explain(PyObject *module, PyObject *args)
{
	const char *name;
	char text[512];
	int error;

	(void)module;
	if (!PyArg_ParseTuple(args, "yi", &name, &error))
		return NULL;
	Py_BEGIN_ALLOW_THREADS;
	pullet_explain(name, error, text, sizeof(text));
	Py_END_ALLOW_THREADS;
	return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "surrogateescape");
}

static PyMethodDef functions[] = {
	METHOD("explain", explain, METH_VARARGS, "The sentence of an error of opening it."),
	METHOD("strerror", strerror_of, METH_O, "The sentence of an error."),
	{NULL, NULL, 0, NULL},
};

static int fill_module(PyObject *module)
{
	struct state *s = PyModule_GetState(module);
	PyObject *datetime = PyImport_ImportModule("datetime"), *handle_type;
	int r = -1;

	s->timedelta = datetime ? PyObject_GetAttrString(datetime, "timedelta") : NULL;
	s->key_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &key_spec, NULL);
	handle_type = PyType_FromModuleAndSpec(module, &handle_spec, NULL);
	if (s->timedelta && s->key_type && handle_type)
		r = PyModule_AddObjectRef(module, "Handle", handle_type) ||
				    PyModule_AddObjectRef(module, "Key", (PyObject *)s->key_type)
			    ? -1
			    : 0;
	Py_XDECREF(handle_type);
	Py_XDECREF(datetime);
	return r;
}

static int visit_state(PyObject *module, visitproc visit, void *arg)
{
	struct state *s = PyModule_GetState(module);

	Py_VISIT(s->key_type);
	Py_VISIT(s->timedelta);
	return 0;
}

static int clear_state(PyObject *module)
{
	struct state *s = PyModule_GetState(module);

	Py_CLEAR(s->key_type);
	Py_CLEAR(s->timedelta);
	return 0;
}

static void free_state(void *module)
{
	clear_state(module);
}

static PyModuleDef_Slot module_slots[] = {
	{Py_mod_exec, fill_module},
	{0, NULL},
};

/* In several phases: each interpreter of a process has a module of its own. */
static struct PyModuleDef definition = {
	PyModuleDef_HEAD_INIT,
	.m_name = "_native",
	.m_size = sizeof(struct state),
	.m_methods = functions,
	.m_slots = module_slots,
	.m_traverse = visit_state,
	.m_clear = clear_state,
	.m_free = free_state,
};

PyMODINIT_FUNC PyInit__native(void);
PyMODINIT_FUNC PyInit__native(void)
{
	return PyModuleDef_Init(&definition);
}
