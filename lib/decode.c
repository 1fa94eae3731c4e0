/*
 * One version as a struct, by a table of its members. Surprising: a value of another type is an
 * error here and not the fallback; only what is missing, or null, leaves the member as it was.
 */
#include "pullet.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

static const char *const type_names[] = {
	"null", "true or false", "an integer", "a number", "another text", "a list", "a mapping"};

static const char *const wanted[] = {
	[PULLET_FIELD_STRING] = "a text",
	[PULLET_FIELD_BOOL] = "true or false",
	[PULLET_FIELD_INT] = "an integer that fits an int",
	[PULLET_FIELD_INT64] = "an integer",
	[PULLET_FIELD_DOUBLE] = "a number",
	[PULLET_FIELD_DURATION_MS] = "a duration such as \"10s\"",
	[PULLET_FIELD_SIZE] = "a size such as \"64KiB\"",
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
static bool store_value(
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
	case PULLET_FIELD_INT:
	case PULLET_FIELD_INT64:
	case PULLET_FIELD_DURATION_MS:
	case PULLET_FIELD_SIZE:
		break;
	}
	return store_whole(p, key, kind, member);
}

static int report(struct pullet *p, const char *key, int error, const char *what, const char *is,
	struct pullet_decode_error *ret_error)
{
	if (!ret_error)
		return error;
	snprintf(ret_error->key, sizeof(ret_error->key), "%s", key);
	snprintf(ret_error->message, sizeof(ret_error->message), "%.300s, generation %llu: %s %s%s",
		pullet_path(p), (unsigned long long)pullet_generation(p), ret_error->key, what, is);
	return error;
}

static int decode_field(struct pullet *p, const char *prefix, const struct pullet_field *f,
	char *into, struct pullet_decode_error *ret_error)
{
	char key[PULLET_KEY_ROOM], what[80];
	struct pullet_value v;
	int len = snprintf(key, sizeof(key), "%s%s", prefix, f->key);
	bool missing;

	if ((size_t)len >= sizeof(key))
		return report(p, key, -EINVAL, "is too long a key", "", ret_error);
	missing = pullet_get(p, key, (size_t)len, &v) != 0;
	if (missing || v.type == PULLET_NULL)
		return f->required ? report(p, key, -ENOENT, missing ? "is missing" : "is null", "",
					     ret_error)
				   : 0;
	if (store_value(p, key, f->kind, into + f->offset))
		return 0;
	snprintf(what, sizeof(what), "must be %s, but is ", wanted[f->kind]);
	return report(p, key, -EINVAL, what,
		f->kind == PULLET_FIELD_INT && v.type == PULLET_INT ? "larger" : type_names[v.type],
		ret_error);
}

int pullet_decode(struct pullet *p, const char *prefix, const struct pullet_field *fields,
	size_t count, void *into, struct pullet_decode_error *ret_error)
{
	int r = 0;

	for (size_t i = 0; i < count && r == 0; i++)
		r = decode_field(p, prefix, &fields[i], into, ret_error);
	return r;
}
