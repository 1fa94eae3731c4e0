/*
 * A ledger as one line of JSON, and the file that holds it. Surprising: the writer and the reader
 * share one table per kind of entry, so that what is written is what is read; and members of a
 * newer version are kept as they are.
 */
#include "version/ledger.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "document/document.h"
#include "text/json_writer.h"
#include "version/ledger_entry.h"

#define MAX_FILE (1u << 20)

/* ---- entries ---- */

static void append_members(const void *entry, const struct ledger_field *fields, struct buffer *out)
{
	json_writer_begin_object(out, NULL);
	for (const struct ledger_field *f = fields; f->name; f++) {
		if (f->kind == LEDGER_TIME)
			json_writer_integer(
				out, f->name, *(const int64_t *)((const char *)entry + f->offset));
		else
			json_writer_text(
				out, f->name, *ledger_entry_text((void *)(uintptr_t)entry, f));
	}
	json_writer_end_object(out);
}

/* 0, -EBADMSG or -ENOMEM, as for all members: no memory says nothing about the file. */
static int parse_entry(const struct node *map, const struct ledger_field *fields, void *entry)
{
	for (const struct ledger_field *f = fields; f->name; f++) {
		const struct node *n = map->type == NODE_MAP ? node_find(map, f->name) : NULL;
		bool missing = !n && map->type == NODE_MAP && f->kind == LEDGER_LATER_TEXT;

		if (!missing &&
			(!n || n->type != (f->kind == LEDGER_TIME ? NODE_INT : NODE_STRING)))
			return -EBADMSG;
		if (f->kind == LEDGER_TIME && n->integer < 0) /* it could not be written again */
			return -EBADMSG;
		if (f->kind == LEDGER_TIME)
			*(int64_t *)((char *)entry + f->offset) = n->integer;
		else if (!(*ledger_entry_text(entry, f) = strdup(missing ? "" : n->text)))
			return -ENOMEM;
	}
	return 0;
}

static void append_list(const char *name, const void *list, size_t count, size_t size,
	const struct ledger_field *fields, struct buffer *out)
{
	json_writer_begin_array(out, name);
	for (size_t i = 0; i < count; i++) {
		append_members((const char *)list + i * size, fields, out);
	}
	json_writer_end_array(out);
}

static int parse_entries(const struct node *root, const char *name, void **list, unsigned *count,
	size_t max, size_t size, const struct ledger_field *fields)
{
	const struct node *n = node_find(root, name);
	int r = 0;

	if (!n || n->type != NODE_LIST || n->count > max)
		return -EBADMSG;
	for (n = n->first; n && r == 0; n = n->next) {
		void *entry = ledger_entry_append(list, count, max, size);

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
	return l->suspension ? parse_entry(map, ledger_pin_fields, l->suspension) : -ENOMEM;
}

static int parse_members(const struct node *root, struct ledger *l)
{
	const struct node *pin = node_find(root, "pin"),
			  *suspension = node_find(root, "suspension");
	void *verdicts = NULL, *overrides = NULL;
	int r = parse_numbers(root, l) ? parse_revs(root, l) : -EBADMSG;

	if (r == 0 && pin)
		r = parse_entry(pin, ledger_pin_fields, &l->pin);
	if (r == 0 && suspension)
		r = parse_suspension(suspension, l);
	if (r == 0)
		r = parse_entries(root, "verdicts", &verdicts, &l->verdict_count,
			LEDGER_MAX_VERDICTS, sizeof(*l->verdicts), ledger_verdict_fields);
	if (r == 0)
		r = parse_entries(root, "overrides", &overrides, &l->override_count,
			LEDGER_MAX_OVERRIDES, sizeof(*l->overrides), ledger_override_fields);
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
		append_members(&l->pin, ledger_pin_fields, out);
	}
	if (l->suspension) {
		json_writer_member(out, "suspension");
		append_members(l->suspension, ledger_pin_fields, out);
	}
	append_list("verdicts", l->verdicts, l->verdict_count, sizeof(*l->verdicts),
		ledger_verdict_fields, out);
	append_list("overrides", l->overrides, l->override_count, sizeof(*l->overrides),
		ledger_override_fields, out);
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
