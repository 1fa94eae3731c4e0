/*
 * A config's memory as one line of JSON. Surprising: the writer and the reader share one table per
 * kind of entry, so that what is written is what is read.
 */
#include "version/ledger.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "document/document.h"
#include "text/json_writer.h"

#define MAX_FILE (1u << 20)

enum kind { TEXT, LATER_TEXT /* older ledgers do not have it */, TIME };

struct field {
	const char *name;
	enum kind kind;
	size_t offset;
};

#define FIELD(type, kind, member)                                                                  \
	{                                                                                          \
#member, kind, offsetof(struct type, member)                                       \
	}

static const struct field verdict_fields[] = {
	FIELD(ledger_verdict, TEXT, sha256),
	{"judge", TEXT, offsetof(struct ledger_verdict, check)}, /* as 0.1.0 wrote them */
	{"judges", TEXT, offsetof(struct ledger_verdict, checks)},
	FIELD(ledger_verdict, TEXT, why),
	FIELD(ledger_verdict, TIME, at_ms),
	{NULL, TEXT, 0},
};
static const struct field override_fields[] = {
	FIELD(ledger_override, TEXT, key),
	FIELD(ledger_override, TEXT, value),
	FIELD(ledger_override, TEXT, by),
	FIELD(ledger_override, TEXT, reason),
	FIELD(ledger_override, TIME, until_ms),
	{NULL, TEXT, 0},
};
static const struct field pin_fields[] = {
	FIELD(ledger_pin, TEXT, by),
	FIELD(ledger_pin, TEXT, reason),
	FIELD(ledger_pin, LATER_TEXT, sha256),
	FIELD(ledger_pin, TIME, until_ms),
	{NULL, TEXT, 0},
};

static char **text_at(void *entry, const struct field *f)
{
	return (char **)((char *)entry + f->offset);
}

static void entry_fini(void *entry, const struct field *fields)
{
	for (const struct field *f = fields; f->name; f++) {
		if (f->kind == TIME)
			continue;
		free(*text_at(entry, f));
		*text_at(entry, f) = NULL;
	}
}

/* One entry more at the end of a list, which has room for `max` when it has any: zeroed; or NULL.
 */
static void *append_entry(void **list, unsigned *count, size_t max, size_t size)
{
	if (!*list)
		*list = calloc(max, size);
	return *list ? memset((char *)*list + (*count)++ * size, 0, size) : NULL;
}

static void remove_entry(
	void *list, unsigned *count, size_t size, size_t i, const struct field *fields)
{
	char *at = (char *)list + i * size;

	entry_fini(at, fields);
	memmove(at, at + size, (--*count - i) * size);
}

static void remove_verdict(struct ledger *l, size_t i)
{
	remove_entry(l->verdicts, &l->verdict_count, sizeof(*l->verdicts), i, verdict_fields);
}

static void remove_override(struct ledger *l, size_t i)
{
	remove_entry(l->overrides, &l->override_count, sizeof(*l->overrides), i, override_fields);
}

/* ---- file ---- */

static void append_members(const void *entry, const struct field *fields, struct buffer *out)
{
	json_writer_begin_object(out, NULL);
	for (const struct field *f = fields; f->name; f++) {
		if (f->kind == TIME)
			json_writer_integer(
				out, f->name, *(const int64_t *)((const char *)entry + f->offset));
		else
			json_writer_text(out, f->name, *text_at((void *)(uintptr_t)entry, f));
	}
	json_writer_end_object(out);
}

/* 0, -EBADMSG or -ENOMEM, as for all members: no memory says nothing about the file. */
static int parse_entry(const struct node *map, const struct field *fields, void *entry)
{
	for (const struct field *f = fields; f->name; f++) {
		const struct node *n = map->type == NODE_MAP ? node_find(map, f->name) : NULL;
		bool missing = !n && map->type == NODE_MAP && f->kind == LATER_TEXT;

		if (!missing && (!n || n->type != (f->kind == TIME ? NODE_INT : NODE_STRING)))
			return -EBADMSG;
		if (f->kind == TIME && n->integer < 0) /* it could not be written again */
			return -EBADMSG;
		if (f->kind == TIME)
			*(int64_t *)((char *)entry + f->offset) = n->integer;
		else if (!(*text_at(entry, f) = strdup(missing ? "" : n->text)))
			return -ENOMEM;
	}
	return 0;
}

static void append_list(const char *name, const void *list, size_t count, size_t size,
	const struct field *fields, struct buffer *out)
{
	json_writer_begin_array(out, name);
	for (size_t i = 0; i < count; i++) {
		append_members((const char *)list + i * size, fields, out);
	}
	json_writer_end_array(out);
}

static int parse_entries(const struct node *root, const char *name, void **list, unsigned *count,
	size_t max, size_t size, const struct field *fields)
{
	const struct node *n = node_find(root, name);
	int r = 0;

	if (!n || n->type != NODE_LIST || n->count > max)
		return -EBADMSG;
	for (n = n->first; n && r == 0; n = n->next) {
		void *entry = append_entry(list, count, max, size);

		r = entry ? parse_entry(n, fields, entry) : -ENOMEM;
	}
	return r;
}

static const struct {
	const char *name;
	size_t offset;
	bool optional; /* older ledgers do not have it */
} numbers[] = {
	{"told", offsetof(struct ledger, notified), false},
	{"proven", offsetof(struct ledger, proven), false},
	{"generation", offsetof(struct ledger, generation), true},
};

enum { NUMBERS = sizeof(numbers) / sizeof(numbers[0]) };

/* A number as a text of digits. */
static bool parse_digits(const struct node *n, uint64_t *ret)
{
	if (!n || n->type != NODE_STRING || !n->text_len ||
		strspn(n->text, "0123456789") != n->text_len)
		return false;
	errno = 0;
	*ret = strtoull(n->text, NULL, 10);
	return errno == 0;
}

static bool parse_numbers(const struct node *root, struct ledger *l)
{
	for (size_t i = 0; i < NUMBERS; i++) {
		const struct node *n = node_find(root, numbers[i].name);

		if (n ? !parse_digits(n, (uint64_t *)((char *)l + numbers[i].offset))
		      : !numbers[i].optional)
			return false;
	}
	return true;
}

static int parse_revs(const struct node *root, struct ledger *l)
{
	const struct node *n = node_find(root, "revs");

	if (!n || n->type != NODE_LIST || n->count > LEDGER_MAX_LAYERS)
		return -EBADMSG;
	if (n->count && ledger_reserve_revs(l))
		return -ENOMEM;
	n = n->first;
	for (size_t i = 0; n; n = n->next, i++)
		if (!parse_digits(n, &l->revs[i]))
			return -EBADMSG;
	return 0;
}

static int parse_suspension(const struct node *map, struct ledger *l)
{
	l->suspension = calloc(1, sizeof(*l->suspension));
	return l->suspension ? parse_entry(map, pin_fields, l->suspension) : -ENOMEM;
}

static int parse_members(const struct node *root, struct ledger *l)
{
	const struct node *pin = node_find(root, "pin"),
			  *suspension = node_find(root, "suspension");
	void *verdicts = NULL, *overrides = NULL;
	int r = parse_numbers(root, l) ? parse_revs(root, l) : -EBADMSG;

	if (r == 0 && pin)
		r = parse_entry(pin, pin_fields, &l->pin);
	if (r == 0 && suspension)
		r = parse_suspension(suspension, l);
	if (r == 0)
		r = parse_entries(root, "verdicts", &verdicts, &l->verdict_count,
			LEDGER_MAX_VERDICTS, sizeof(*l->verdicts), verdict_fields);
	if (r == 0)
		r = parse_entries(root, "overrides", &overrides, &l->override_count,
			LEDGER_MAX_OVERRIDES, sizeof(*l->overrides), override_fields);
	l->verdicts = verdicts;
	l->overrides = overrides;
	return r;
}

/* ---- members of a newer version ---- */

static bool is_known_member(const char *name)
{
	static const char *const names[] = {"revs", "pin", "suspension", "verdicts", "overrides"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	for (size_t i = 0; i < NUMBERS; i++)
		if (strcmp(name, numbers[i].name) == 0)
			return true;
	return false;
}

/* Keeps them as `"name":value,...`. 0, -ENOMEM or -EMSGSIZE. */
static int keep_other_members(const struct node *root, struct ledger *l)
{
	struct buffer b;
	int r = 0;

	buffer_init(&b, MAX_FILE);
	for (const struct node *n = root->first; n && r == 0; n = n->next) {
		if (is_known_member(n->key))
			continue;
		json_writer_key(&b, n->key, n->key_len);
		r = document_write(n, DOCUMENT_JSON, &b);
		if (r == 0)
			b.data[--b.len] = '\0'; /* the newline */
	}
	if (r == 0 && b.len && !(l->others = strdup(b.data)))
		r = -ENOMEM;
	for (char *p = l->others; p && *p; p++)
		if (*p == '\n') /* a ledger is one line */
			*p = ' ';
	buffer_fini(&b);
	return r;
}

int ledger_read(const char *text, size_t len, struct ledger **ret_ledger)
{
	struct ledger *l = calloc(1, sizeof(*l));
	struct document *d = NULL;
	struct document_error e;
	int r = l ? document_parse(DOCUMENT_JSON, text, len, 0, &d, &e) : -ENOMEM;

	if (r == 0)
		r = parse_members(document_root(d), l);
	if (r == 0)
		r = keep_other_members(document_root(d), l);
	document_free(d);
	if (r) {
		ledger_free(l);
		return r == -ENOMEM ? r : -EBADMSG;
	}
	*ret_ledger = l;
	return 0;
}

int ledger_load(const struct sys *sys, int dir, struct ledger **ret_ledger)
{
	struct ledger *l = NULL;
	struct buffer file;
	int r;

	buffer_init(&file, MAX_FILE);
	r = file_read(sys, dir, LEDGER_NAME, &file);
	if (r == 0)
		r = ledger_read(file.data ? file.data : "", file.len, &l);
	buffer_fini(&file);
	if (file_error_is_ours(-r)) /* the file may be fine */
		return r;
	if (!l && !(l = calloc(1, sizeof(*l))))
		return -ENOMEM;
	*ret_ledger = l;
	if (file_error_may_pass(-r))
		return -EIO;
	return r == 0 || r == -ENOENT ? 0 : -EBADMSG;
}

static void append_revs(const uint64_t *revs, struct buffer *out)
{
	size_t n = LEDGER_MAX_LAYERS;

	while (n && !revs[n - 1])
		n--;
	json_writer_begin_array(out, "revs");
	for (size_t i = 0; i < n; i++)
		json_writer_digits(out, NULL, revs[i]);
	json_writer_end_array(out);
}

int ledger_write(const struct ledger *l, struct buffer *out)
{
	json_writer_begin_object(out, NULL);
	for (size_t i = 0; i < NUMBERS; i++) /* as texts: 64 bits without a sign */
		json_writer_digits(out, numbers[i].name,
			*(const uint64_t *)((const char *)l + numbers[i].offset));
	append_revs(ledger_revs(l), out);
	if (l->pin.by) {
		json_writer_member(out, "pin");
		append_members(&l->pin, pin_fields, out);
	}
	if (l->suspension) {
		json_writer_member(out, "suspension");
		append_members(l->suspension, pin_fields, out);
	}
	append_list("verdicts", l->verdicts, l->verdict_count, sizeof(*l->verdicts), verdict_fields,
		out);
	append_list("overrides", l->overrides, l->override_count, sizeof(*l->overrides),
		override_fields, out);
	if (l->others) {
		buffer_append(out, ",", 1);
		buffer_append_string(out, l->others);
	}
	return json_writer_end_object(out);
}

int ledger_save(
	const struct ledger *l, const struct sys *sys, int dir, bool sync, char why[FILE_WHY])
{
	const struct file_options options = {
		.mode = 0600, .uid = (uid_t)-1, .gid = (gid_t)-1, .sync = sync};
	struct buffer b;
	int r;

	buffer_init(&b, MAX_FILE);
	ledger_write(l, &b);
	r = buffer_append(&b, "\n", 1);
	if (r)
		snprintf(why, FILE_WHY, "the ledger cannot be written: %s", strerror(-r));
	else
		r = file_replace(sys, dir, LEDGER_NAME, b.data, b.len, &options, why);
	if (r == FILE_NOT_DURABLE) /* asked to be on the disk, and is not known to be */
		r = -EIO;
	buffer_fini(&b);
	return r;
}

int ledger_sync(const struct sys *sys, int dir)
{
	return file_sync(sys, dir, LEDGER_NAME);
}

void ledger_free(struct ledger *l)
{
	if (!l)
		return;
	while (l->verdict_count)
		remove_verdict(l, l->verdict_count - 1);
	while (l->override_count)
		remove_override(l, l->override_count - 1);
	entry_fini(&l->pin, pin_fields);
	ledger_resume(l);
	free(l->verdicts);
	free(l->overrides);
	free(l->revs);
	free(l->others);
	free(l);
}

/* ---- revs ---- */

const uint64_t *ledger_revs(const struct ledger *l)
{
	static const uint64_t none[LEDGER_MAX_LAYERS];

	return l->revs ? l->revs : none;
}

int ledger_reserve_revs(struct ledger *l)
{
	if (!l->revs)
		l->revs = calloc(LEDGER_MAX_LAYERS, sizeof(*l->revs));
	return l->revs ? 0 : -ENOMEM;
}

bool ledger_forget_revs(struct ledger *l, const char *check)
{
	bool some = false;

	for (size_t i = 0; l->revs && i < LEDGER_MAX_LAYERS; i++) {
		some |= l->revs[i] != 0;
		l->revs[i] = 0;
	}
	return ledger_forgive_check(l, check) || some;
}

bool ledger_raise_revs(struct ledger *l, const uint64_t revs[LEDGER_MAX_LAYERS])
{
	bool some = false;

	for (size_t i = 0; i < LEDGER_MAX_LAYERS; i++)
		if (revs[i] > ledger_revs(l)[i]) {
			l->revs[i] = revs[i];
			some = true;
		}
	return some;
}

/* ---- verdicts ---- */

/* Takes it, in the place of one about the same bytes, or of the oldest; there is a list. */
static void put_verdict(struct ledger *l, const struct ledger_verdict *v)
{
	ledger_forgive(l, v->sha256);
	if (l->verdict_count == LEDGER_MAX_VERDICTS)
		remove_verdict(l, 0);
	l->verdicts[l->verdict_count++] = *v;
}

int ledger_reject(struct ledger *l, const char *sha256, const char *check, const char *checks,
	int64_t now_ms, const char *why)
{
	struct ledger_verdict v = {
		strdup(sha256), strdup(check), strdup(checks), strdup(why), now_ms};

	if (!l->verdicts)
		l->verdicts = calloc(LEDGER_MAX_VERDICTS, sizeof(v));
	if (!v.sha256 || !v.check || !v.checks || !v.why || !l->verdicts) {
		entry_fini(&v, verdict_fields);
		return -ENOMEM;
	}
	put_verdict(l, &v);
	return 0;
}

const struct ledger_verdict *ledger_find_verdict(
	const struct ledger *l, const char *sha256, const char *checks)
{
	for (size_t i = 0; i < l->verdict_count; i++) {
		const struct ledger_verdict *v = &l->verdicts[i];

		if (strcmp(v->sha256, sha256) == 0 &&
			(v->checks[0] == '\0' || strcmp(v->checks, checks) == 0))
			return v;
	}
	return NULL;
}

bool ledger_forgive(struct ledger *l, const char *sha256)
{
	bool found = false;

	for (size_t i = l->verdict_count; i-- > 0;)
		if (strcmp(l->verdicts[i].sha256, sha256) == 0) {
			remove_verdict(l, i);
			found = true;
		}
	return found;
}

bool ledger_forgive_later(struct ledger *l, const char *check, int64_t now_ms)
{
	bool found = false;

	for (size_t i = l->verdict_count; i-- > 0;)
		if (l->verdicts[i].at_ms > now_ms && strcmp(l->verdicts[i].check, check) == 0) {
			remove_verdict(l, i);
			found = true;
		}
	return found;
}

bool ledger_forgive_check(struct ledger *l, const char *check)
{
	return ledger_forgive_later(l, check, INT64_MIN);
}

/* ---- pin, suspension, overrides ---- */

static int set_pin(struct ledger_pin *pin, int64_t until_ms, const char *by, const char *reason,
	const char *sha256)
{
	struct ledger_pin new = {strdup(by), strdup(reason), strdup(sha256), until_ms};

	if (!new.by || !new.reason || !new.sha256) {
		entry_fini(&new, pin_fields);
		return -ENOMEM;
	}
	entry_fini(pin, pin_fields);
	*pin = new;
	return 0;
}

static bool end_pin(struct ledger_pin *pin)
{
	bool was = pin->by;

	entry_fini(pin, pin_fields);
	return was;
}

int ledger_pin(
	struct ledger *l, int64_t until_ms, const char *by, const char *reason, const char *sha256)
{
	return set_pin(&l->pin, until_ms, by, reason, sha256);
}

bool ledger_unpin(struct ledger *l)
{
	return end_pin(&l->pin);
}

int ledger_suspend(struct ledger *l, int64_t until_ms, const char *by, const char *reason)
{
	struct ledger_pin new = {NULL};
	int r = set_pin(&new, until_ms, by, reason, "");

	if (r)
		return r;
	if (!l->suspension)
		l->suspension = calloc(1, sizeof(*l->suspension));
	if (!l->suspension) {
		end_pin(&new);
		return -ENOMEM;
	}
	end_pin(l->suspension);
	*l->suspension = new;
	return 0;
}

bool ledger_resume(struct ledger *l)
{
	bool was = l->suspension && end_pin(l->suspension);

	free(l->suspension);
	l->suspension = NULL;
	return was;
}

int ledger_override(struct ledger *l, const char *key, const char *value, int64_t until_ms,
	const char *by, const char *reason)
{
	struct ledger_override o = {
		strdup(key), strdup(value), strdup(by), strdup(reason), until_ms};
	void *list;
	int r = -ENOMEM;

	ledger_drop_override(l, key);
	list = l->overrides;
	if (l->override_count == LEDGER_MAX_OVERRIDES)
		r = -ENOSPC;
	else if (o.key && o.value && o.by && o.reason &&
		 append_entry(&list, &l->override_count, LEDGER_MAX_OVERRIDES, sizeof(o)))
		r = 0;
	if (r) {
		entry_fini(&o, override_fields);
		return r;
	}
	l->overrides = list;
	l->overrides[l->override_count - 1] = o;
	return 0;
}

bool ledger_drop_override(struct ledger *l, const char *key)
{
	for (size_t i = 0; i < l->override_count; i++)
		if (strcmp(l->overrides[i].key, key) == 0) {
			remove_override(l, i);
			return true;
		}
	return false;
}

bool ledger_same_overrides(const struct ledger *a, const struct ledger *b)
{
	size_t n = a ? a->override_count : 0;

	if (n != (b ? b->override_count : 0))
		return false;
	for (size_t i = 0; i < n; i++)
		if (strcmp(a->overrides[i].key, b->overrides[i].key) != 0 ||
			strcmp(a->overrides[i].value, b->overrides[i].value) != 0)
			return false;
	return true;
}

bool ledger_expire(struct ledger *l, int64_t now_ms, bool *ret_overrides)
{
	bool some = false;

	*ret_overrides = false;
	for (size_t i = l->override_count; i-- > 0;)
		if (l->overrides[i].until_ms <= now_ms) {
			remove_override(l, i);
			*ret_overrides = some = true;
		}
	if (l->pin.by && l->pin.until_ms <= now_ms)
		some = ledger_unpin(l);
	if (l->suspension && l->suspension->until_ms <= now_ms)
		some = ledger_resume(l);
	return some;
}

int64_t ledger_next_expiry(const struct ledger *l)
{
	int64_t next_ms = l->pin.by ? l->pin.until_ms : LEDGER_FOREVER;

	if (l->suspension && l->suspension->until_ms < next_ms)
		next_ms = l->suspension->until_ms;
	for (size_t i = 0; i < l->override_count; i++)
		if (l->overrides[i].until_ms < next_ms)
			next_ms = l->overrides[i].until_ms;
	return next_ms;
}

/* ---- a state file that is newer ---- */

static void swap_overrides(struct ledger *a, struct ledger *b)
{
	struct ledger_override *overrides = a->overrides;
	unsigned count = a->override_count;

	a->overrides = b->overrides;
	a->override_count = b->override_count;
	b->overrides = overrides;
	b->override_count = count;
}

int ledger_copy_overrides(struct ledger *l, const struct ledger *from)
{
	struct ledger copy = {.override_count = 0};
	int r = 0;

	for (size_t i = 0; r == 0 && i < from->override_count; i++) {
		const struct ledger_override *o = &from->overrides[i];

		r = ledger_override(&copy, o->key, o->value, o->until_ms, o->by, o->reason);
	}
	if (r == 0)
		swap_overrides(l, &copy);
	while (copy.override_count)
		remove_override(&copy, copy.override_count - 1);
	free(copy.overrides);
	return r;
}

/* They leave `from`. */
static void move_verdicts(struct ledger *l, struct ledger *from)
{
	if (!l->verdicts) {
		l->verdicts = from->verdicts;
		l->verdict_count = from->verdict_count;
		from->verdicts = NULL;
	} else {
		for (size_t i = 0; i < from->verdict_count; i++)
			put_verdict(l, &from->verdicts[i]);
	}
	from->verdict_count = 0;
}

static bool move_revs(struct ledger *l, struct ledger *from)
{
	if (l->revs || !from->revs)
		return from->revs && ledger_raise_revs(l, from->revs);
	l->revs = from->revs;
	from->revs = NULL;
	return true;
}

static void move_pinned_bytes(struct ledger *l, struct ledger *from)
{
	free(l->pin.sha256);
	l->pin.sha256 = from->pin.sha256;
	from->pin.sha256 = NULL;
}

bool ledger_adopt_decisions(struct ledger *l, uint64_t generation, struct ledger *decided,
	const char *sha256, bool with_overrides)
{
	bool changed = l->override_count || decided->override_count || decided->verdict_count;

	if (generation <= l->generation)
		return false;
	if (with_overrides)
		swap_overrides(l, decided);
	changed |= ledger_forgive(l, sha256);
	move_verdicts(l, decided);
	if (l->pin.by && decided->pin.by) {
		move_pinned_bytes(l, decided);
		changed = true;
	}
	changed |= move_revs(l, decided);
	l->generation = generation;
	if (decided->proven != generation)
		return changed;
	l->proven = generation;
	return true;
}
