/*
 * One version as a struct, by a table of its members. Surprising: a value of another type is an
 * error here and not the fallback; only what is missing, or null, leaves the member as it was. One
 * error lists all problems.
 */
#include "pullet.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "explain.h"

#define MAX_PROBLEMS 8 /* that are named; the others are counted */
#define MORE_ROOM 32   /* bytes of the message for that */

static const char *const type_names[] = {
	"null", "true or false", "an integer", "a number", "a text", "a list", "a mapping"};

static const char *const wanted[] = {
	[PULLET_FIELD_STRING] = "a text",
	[PULLET_FIELD_BOOL] = "true or false",
	[PULLET_FIELD_INT] = "an integer such as 17 that fits int",
	[PULLET_FIELD_INT64] = "an integer such as 17",
	[PULLET_FIELD_DOUBLE] = "a number such as 0.5",
	[PULLET_FIELD_DURATION_MS] = "a duration such as 10s or 1h30m",
	[PULLET_FIELD_SIZE] = "a size such as 64KiB",
};

struct decoder {
	struct pullet *p;
	const char *prefix;
	const struct pullet_field *fields;
	size_t count;
	struct pullet_decode_error *error; /* NULL: not wanted */
	size_t len;                        /* of its message */
	unsigned named, others;            /* problems in it, and not */
	int result;                        /* of the first one */
};

typedef int64_t whole_getter(struct pullet *p, const char *key, int64_t fallback);

/* A getter that answers with two different fallbacks has found nothing. */
static bool get_whole(struct pullet *p, const char *key, whole_getter *get, int64_t *ret)
{
	*ret = get(p, key, 0);
	return *ret != 0 || get(p, key, 1) == 0;
}

static bool store_whole(
	struct pullet *p, const char *key, enum pullet_field_kind kind, void *member)
{
	whole_getter *get = kind == PULLET_FIELD_DURATION_MS ? pullet_get_duration_ms
			    : kind == PULLET_FIELD_SIZE      ? pullet_get_size
							     : pullet_get_int;
	int64_t n;

	if (!get_whole(p, key, get, &n))
		return false;
	if (kind != PULLET_FIELD_INT) {
		memcpy(member, &n, sizeof(n));
		return true;
	}
	if (n < INT_MIN || n > INT_MAX)
		return false;
	memcpy(member, &(int){(int)n}, sizeof(int));
	return true;
}

/* False when the value is of another type; then the member is as it was. */
static bool store_member(
	struct pullet *p, const char *key, enum pullet_field_kind kind, void *member)
{
	const char *text;
	double number;
	bool truth;

	switch (kind) {
	case PULLET_FIELD_STRING:
		text = pullet_get_string(p, key, NULL);
		if (text)
			memcpy(member, &text, sizeof(text));
		return text;
	case PULLET_FIELD_BOOL:
		truth = pullet_get_bool(p, key, false);
		if (!truth && pullet_get_bool(p, key, true))
			return false;
		memcpy(member, &truth, sizeof(truth));
		return true;
	case PULLET_FIELD_DOUBLE:
		number = pullet_get_double(p, key, 0);
		if (number == 0 && pullet_get_double(p, key, 1) != 0)
			return false;
		memcpy(member, &number, sizeof(number));
		return true;
	case PULLET_FIELD_ANY:
		return true;
	case PULLET_FIELD_INT:
	case PULLET_FIELD_INT64:
	case PULLET_FIELD_DURATION_MS:
	case PULLET_FIELD_SIZE:
		break;
	}
	return store_whole(p, key, kind, member);
}

/* ---- what was meant by a key that is missing ---- */

struct search {
	const struct decoder *d;
	const char *key; /* that is missing */
	size_t parent;   /* bytes before its last name */
	char *found;     /* PULLET_KEY_ROOM bytes */
};

/* Where the name ends that begins there in a key. */
static size_t end_of_name(const char *key, size_t at)
{
	while (key[at] && key[at] != '.')
		at += key[at] == '\\' && key[at + 1] ? 2 : 1;
	return at;
}

enum place { PLACE_UNKNOWN, PLACE_AROUND_MEMBER, PLACE_MEMBER };

/* What the table says of a key. */
static enum place place_of(const struct decoder *d, const char *key, size_t len)
{
	size_t before = strlen(d->prefix);
	enum place place = PLACE_UNKNOWN;

	for (size_t i = 0; i < d->count && len > before; i++) {
		const char *name = d->fields[i].key;
		size_t n = strlen(name);

		if (before + n < len || strncmp(key + before, name, len - before) != 0)
			continue;
		if (before + n == len)
			return PLACE_MEMBER;
		if (name[len - before] == '.')
			place = PLACE_AROUND_MEMBER;
	}
	return place;
}

static int look_at_key(const char *key, size_t len, const struct pullet_value *value, void *arg)
{
	struct search *s = arg;
	size_t end = s->parent;

	(void)value;
	while (end < len && key[end] != '.' && (unsigned char)key[end] > ' ' && key[end] != 0x7f)
		end += key[end] == '\\' ? 2 : 1;
	if (end != len || place_of(s->d, key, len) != PLACE_UNKNOWN ||
		!explain_is_near(key + s->parent, len - s->parent, s->key + s->parent,
			strlen(s->key + s->parent)))
		return 0;
	snprintf(s->found, PULLET_KEY_ROOM, "%s", key);
	return 1;
}

/* The key beside the missing one, or beside the mapping that is missing around it, that is nearly
 * of its name, and that nobody asked for; "" when there is none. */
static void find_near(const struct decoder *d, const char *key, char found[PULLET_KEY_ROOM])
{
	char missing[PULLET_KEY_ROOM], parent[PULLET_KEY_ROOM];
	struct search s = {.d = d, .key = missing, .found = found};
	struct pullet_value v;

	found[0] = '\0';
	for (size_t len = 0;; s.parent = ++len) {
		len = end_of_name(key, len);
		if (!key[len] || pullet_get(d->p, key, len, &v) != 0) {
			snprintf(missing, sizeof(missing), "%.*s", (int)len, key);
			snprintf(parent, sizeof(parent), "%.*s", (int)s.parent, key);
			if (len - s.parent >= 3)
				pullet_each(d->p, parent, look_at_key, &s);
			return;
		}
	}
}

/* ---- */

/* Adds a problem to the message. */
static __attribute__((format(printf, 4, 5))) void report(
	struct decoder *d, const char *key, int result, const char *format, ...)
{
	char what[PULLET_KEY_ROOM + 80], *end;
	size_t room;
	va_list args;
	int n;

	if (!d->result && d->error) {
		snprintf(d->error->key, sizeof(d->error->key), "%s", key);
		d->len = (size_t)snprintf(d->error->message, sizeof(d->error->message),
			"%.300s, generation %llu", pullet_path(d->p),
			(unsigned long long)pullet_generation(d->p));
	}
	d->result = d->result ? d->result : result;
	if (!d->error)
		return;
	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	end = d->error->message + d->len;
	room = sizeof(d->error->message) - d->len;
	n = snprintf(end, room, "%s%s %s", d->named ? "; " : ": ", key, what);
	if (d->named == 0 ||
		(!d->others && d->named < MAX_PROBLEMS && (size_t)n + MORE_ROOM < room)) {
		d->len += (size_t)n < room ? (size_t)n : room - 1;
		d->named++;
	} else {
		snprintf(end, room, "; and %u more", ++d->others);
	}
}

/* near: what may have been meant; "" = nothing. */
static void report_with_near(
	struct decoder *d, const char *key, int result, const char *what, const char *near)
{
	report(d, key, result, "%s%s%s%s", what, near[0] ? ": did you mean " : "", near,
		near[0] ? "?" : "");
}

static bool is_named_next(const struct decoder *d)
{
	return d->error && d->named < MAX_PROBLEMS;
}

static void report_missing(struct decoder *d, const char *key)
{
	char near[PULLET_KEY_ROOM] = "";

	if (is_named_next(d))
		find_near(d, key, near);
	if (!near[0] && d->prefix[0] && d->prefix[strlen(d->prefix) - 1] != '.')
		snprintf(near, sizeof(near), "the prefix \"%.480s.\"", d->prefix);
	report_with_near(d, key, -ENOENT, "is missing", near);
}

/* What a value is that is not of the type. */
static void report_mismatch(
	struct decoder *d, const char *key, enum pullet_field_kind kind, enum pullet_type type)
{
	const char *is = type_names[type];
	const char *more = type == PULLET_STRING                        ? " of another form"
			   : strncmp(wanted[kind], is, strlen(is)) == 0 ? " that does not fit"
									: "";

	report(d, key, -EINVAL, "must be %s, but is %s%s", wanted[kind], is, more);
}

/* True when a member before has its value below the key, too: what is wrong with that was said. */
static bool was_said(const struct decoder *d, const struct pullet_field *f, const char *key)
{
	char other[PULLET_KEY_ROOM];
	size_t len = strlen(key);

	for (const struct pullet_field *g = d->fields; g < f; g++) {
		snprintf(other, sizeof(other), "%s%s", d->prefix, g->key);
		if (strncmp(other, key, len) == 0 && other[len] == '.')
			return true;
	}
	return false;
}

/* True when a value is missing because something around it is neither a mapping nor a list (nor
 * null, which is as if it were not there), and says so once. */
static bool is_below_scalar(struct decoder *d, const struct pullet_field *f, const char *key)
{
	char around[PULLET_KEY_ROOM];
	struct pullet_value v;

	for (size_t len = 0; key[len]; len += key[len] == '\\' && key[len + 1] ? 2 : 1) {
		if (key[len] != '.' || pullet_get(d->p, key, len, &v) != 0 ||
			v.type == PULLET_NULL || v.type == PULLET_MAP ||
			(v.type == PULLET_LIST && key[len + 1] >= '0' && key[len + 1] <= '9'))
			continue;
		snprintf(around, sizeof(around), "%.*s", (int)len, key);
		if (!was_said(d, f, around))
			report(d, around, -EINVAL, "must be a mapping, but is %s",
				type_names[v.type]);
		return true;
	}
	return false;
}

static void decode_field(struct decoder *d, const struct pullet_field *f, char *into)
{
	char key[PULLET_KEY_ROOM];
	struct pullet_value v;
	int len = snprintf(key, sizeof(key), "%s%s", d->prefix, f->key);
	bool missing;

	if ((size_t)len >= sizeof(key)) {
		report(d, key, -EINVAL, "is too long a key");
		return;
	}
	missing = pullet_get(d->p, key, (size_t)len, &v) != 0;
	if (missing && is_below_scalar(d, f, key))
		return;
	if (!missing && v.type != PULLET_NULL) {
		if (!store_member(d->p, key, f->kind, into + f->offset))
			report_mismatch(d, key, f->kind, v.type);
	} else if (f->required && missing) {
		report_missing(d, key);
	} else if (f->required) {
		report(d, key, -ENOENT, "is null");
	}
}

/* ---- keys that the table does not have ---- */

/* The member, or the mapping around one, that is missing beside a key and has nearly its name,
 * which begins at `last`; "" when there is none. */
static void find_meant(const struct decoder *d, const char *key, size_t len, size_t last,
	char found[PULLET_KEY_ROOM])
{
	size_t before = strlen(d->prefix), at = last - before, end;
	struct pullet_value v;

	for (size_t i = 0; i < d->count && len - last >= 3; i++) {
		const char *name = d->fields[i].key;

		if (strncmp(name, key + before, at) != 0)
			continue;
		end = end_of_name(name, at);
		snprintf(found, PULLET_KEY_ROOM, "%s%.*s", d->prefix, (int)end, name);
		if (explain_is_near(key + last, len - last, name + at, end - at) &&
			pullet_get(d->p, found, strlen(found), &v) != 0)
			return;
	}
	found[0] = '\0';
}

/* What is below a member is its own, and what is below an unknown key goes with that. */
static int look_whether_known(
	const char *key, size_t len, const struct pullet_value *value, void *arg)
{
	struct decoder *d = arg;
	char shown[PULLET_KEY_ROOM], meant[PULLET_KEY_ROOM] = "";
	size_t last = strlen(d->prefix), end;
	struct pullet_value around;

	(void)value;
	for (; (end = end_of_name(key, last)) < len && key[end]; last = end + 1) {
		enum place place = place_of(d, key, end);

		if (place == PLACE_MEMBER ||
			(place == PLACE_UNKNOWN && pullet_get(d->p, key, end, &around) == 0))
			return 0;
	}
	if (place_of(d, key, len) != PLACE_UNKNOWN)
		return 0;
	snprintf(shown, sizeof(shown), "%s", key);
	for (char *c = shown; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?'; /* the message may be shown on a terminal */
	if (is_named_next(d))
		find_meant(d, key, len, last, meant);
	report_with_near(d, shown, -EINVAL, "is not known", meant);
	return 0;
}

/* ---- */

/* In place of all that is missing then. */
static void say_nothing_is_open(const struct pullet *p, struct pullet_decode_error *error)
{
	char why[512];

	pullet_explain(pullet_path(p), pullet_withdrawn(p) ? -EIDRM : -ENOENT, why, sizeof(why));
	snprintf(error->message, sizeof(error->message), "%.300s: %s", pullet_path(p), why);
}

static int decode_struct(struct pullet *p, const char *prefix, const struct pullet_field *fields,
	size_t count, void *into, struct pullet_decode_error *error, bool strict)
{
	struct decoder d = {
		.p = p, .prefix = prefix, .fields = fields, .count = count, .error = error};

	for (size_t i = 0; i < count; i++)
		decode_field(&d, &fields[i], into);
	if (strict)
		pullet_each(p, prefix, look_whether_known, &d);
	if (d.result && error && pullet_generation(p) == 0)
		say_nothing_is_open(p, error);
	return d.result;
}

int pullet_decode(struct pullet *p, const char *prefix, const struct pullet_field *fields,
	size_t count, void *into, struct pullet_decode_error *ret_error)
{
	return decode_struct(p, prefix, fields, count, into, ret_error, false);
}

int pullet_decode_strict(struct pullet *p, const char *prefix, const struct pullet_field *fields,
	size_t count, void *into, struct pullet_decode_error *ret_error)
{
	return decode_struct(p, prefix, fields, count, into, ret_error, true);
}
