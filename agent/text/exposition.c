/*
 * A table of metrics as text. Surprising: a metric's series must be adjacent, and an object's
 * status is read once, so the values of a scope are read first, object by object, and then written
 * metric by metric.
 */
#include "text/exposition.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MAX_ROWS (512u << 20) /* bytes of one scope's values; far more than the settings allow */

/* The values of a scope. */
struct rows {
	const struct metric_scope *scope;
	size_t width; /* values of one object */
	size_t count;
	struct buffer values; /* int64_t, object by object, each in the order of its metrics */
	struct buffer labels; /* of each object a text, "" = none, with its NUL */
	struct buffer ends;   /* size_t: where those end */
};

/* ---- reading ---- */

static size_t value_count(const struct metric *m)
{
	if (m->type == METRIC_HISTOGRAM)
		return m->buckets + 1; /* the sum */
	return m->label ? m->values : 1;
}

static int64_t metric_field(const void *subject, const struct metric *m, size_t i)
{
	const char *at = (const char *)subject + m->offset;

	switch (m->width) {
	case METRIC_BOOL:
		return ((const bool *)at)[i];
	case METRIC_32:
		return ((const unsigned *)(const void *)at)[i];
	case METRIC_64:
		return ((const int64_t *)(const void *)at)[i];
	}
	return -1;
}

static int64_t metric_value(const void *subject, const struct metric *m, size_t i)
{
	if (m->when && !*(const bool *)((const char *)subject + m->when))
		return -1;
	return m->is_set ? metric_field(subject, m, 0) == (int64_t)i : metric_field(subject, m, i);
}

static void append_label(struct buffer *out, const char *name, const char *value)
{
	size_t plain;

	buffer_append_string(out, name);
	buffer_append(out, "=\"", 2);
	for (; value[plain = strcspn(value, "\\\"\n")]; value += plain + 1) {
		buffer_append(out, value, plain);
		buffer_append(out, "\\", 1);
		buffer_append(out, value[plain] == '\n' ? "n" : value + plain, 1);
	}
	buffer_append(out, value, plain);
	buffer_append(out, "\"", 1);
}

static void append_labels(struct rows *r, const char *const *values)
{
	for (size_t i = 0; i < METRIC_LABELS && r->scope->labels[i]; i++) {
		if (i)
			buffer_append(&r->labels, ",", 1);
		append_label(&r->labels, r->scope->labels[i], values[i]);
	}
	buffer_append(&r->labels, "", 1);
	buffer_append(&r->ends, &r->labels.len, sizeof(r->labels.len));
}

/* 0 or the error of a buffer. */
static int read_rows(struct rows *r, void *subject, const char *const *labels)
{
	while (r->scope->next(subject)) {
		r->count++;
		append_labels(r, labels);
		for (size_t m = 0; m < r->scope->count; m++) {
			const struct metric *metric = &r->scope->metrics[m];
			size_t n = value_count(metric);

			for (size_t i = 0; i < n; i++) {
				int64_t v = metric_value(subject, metric, i);

				buffer_append(&r->values, &v, sizeof(v));
			}
		}
	}
	return r->values.error   ? r->values.error
	       : r->labels.error ? r->labels.error
				 : r->ends.error;
}

/* ---- writing ---- */

/* Most of a scrape is here: of thousands of configs each line is one reservation. */
#define MAX_NUMBER 32

struct text {
	const char *data;
	size_t len;
};

static struct text text_of(const char *s)
{
	return (struct text){s, strlen(s)};
}

static char *put(char *at, const char *data, size_t len)
{
	memcpy(at, data, len);
	return at + len;
}

/* At most MAX_NUMBER bytes. */
static char *put_number(char *at, int64_t n, enum metric_unit unit)
{
	char text[MAX_NUMBER], *end = text + sizeof(text), *first = end;
	uint64_t whole = (uint64_t)n;
	int decimals = unit == METRIC_SECONDS ? 3 : unit == METRIC_MICROSECONDS ? 6 : 0;

	if (decimals) {
		for (int i = 0; i < decimals; i++, whole /= 10)
			*--first = (char)('0' + whole % 10);
		*--first = '.';
	}
	do
		*--first = (char)('0' + whole % 10);
	while (whole /= 10);
	return put(at, first, (size_t)(end - first));
}

/* name{labels,extra} number */
static void append_sample(struct buffer *out, struct text name, struct text labels,
	struct text extra, int64_t n, enum metric_unit unit)
{
	char *at;

	if (buffer_reserve(out, name.len + labels.len + extra.len + MAX_NUMBER + sizeof("{,} \n")))
		return;
	at = put(out->data + out->len, name.data, name.len);
	if (labels.len || extra.len) {
		*at++ = '{';
		at = put(at, labels.data, labels.len);
		if (labels.len && extra.len)
			*at++ = ',';
		at = put(at, extra.data, extra.len);
		*at++ = '}';
	}
	*at++ = ' ';
	at = put_number(at, n, unit);
	*at++ = '\n';
	*at = '\0';
	out->len = (size_t)(at - out->data);
}

static void append_part(struct buffer *out, const struct metric *m, const char *suffix,
	struct text labels, const char *le, int64_t n, enum metric_unit unit)
{
	char name[128];

	snprintf(name, sizeof(name), "%s%s", m->name, suffix);
	append_sample(out, text_of(name), labels, text_of(le), n, unit);
}

/* Bucket i has the whole numbers below 2^i; those of times were cut to whole milliseconds. */
static void append_histogram(
	struct buffer *out, const struct metric *m, struct text labels, const int64_t *counts)
{
	bool seconds = m->unit == METRIC_SECONDS;
	size_t buckets = m->buckets;
	int64_t sum = 0;
	char le[32];

	for (size_t i = 0; i < buckets; i++) {
		int64_t below = INT64_C(1) << i;

		sum += counts[i];
		if (i == buckets - 1)
			snprintf(le, sizeof(le), "le=\"+Inf\"");
		else if (m->step)
			snprintf(le, sizeof(le), "le=\"%.9g\"", (double)(m->step << i) / 1000000);
		else if (seconds)
			snprintf(le, sizeof(le), "le=\"%" PRId64 ".%03d\"", below / 1000,
				(int)(below % 1000));
		else
			snprintf(le, sizeof(le), "le=\"%" PRId64 ".0\"", below - 1);
		append_part(out, m, "_bucket", labels, le, sum, METRIC_NUMBER);
	}
	append_part(out, m, "_sum", labels, "", counts[buckets], m->unit);
	append_part(out, m, "_count", labels, "", sum, METRIC_NUMBER);
}

static void append_head(struct buffer *out, const struct metric *m, bool openmetrics)
{
	static const char *const types[] = {"gauge", "counter", "info", "histogram"};
	static const char *const units[] = {NULL, "seconds", "seconds", "bytes"};
	static const char *const endings[] = {"", "_total", "_info", ""};
	const char *type = types[m->type];
	int len = (int)strlen(m->name);

	if (openmetrics) /* there the family is named without what its type adds */
		len -= (int)strlen(endings[m->type]);
	else if (m->type == METRIC_INFO)
		type = "gauge";
	buffer_printf(out, "# HELP %.*s %s\n", len, m->name, m->help);
	buffer_printf(out, "# TYPE %.*s %s\n", len, m->name, type);
	if (openmetrics && units[m->unit])
		buffer_printf(out, "# UNIT %.*s %s\n", len, m->name, units[m->unit]);
}

/* The samples of one object, of a metric with a label of its own. */
static void append_labelled(
	struct buffer *out, const struct metric *m, struct text labels, const int64_t *values)
{
	char extra[64];

	for (size_t i = 0; i < m->values; i++) {
		snprintf(extra, sizeof(extra), "%s=\"%s\"", m->label,
			m->names ? m->names[i] : m->name_of(i));
		append_sample(out, text_of(m->name), labels, text_of(extra), values[i], m->unit);
	}
}

/* `first`: index of the metric's values in a row. */
static void append_metric(struct buffer *out, const struct rows *r, const struct metric *m,
	size_t first, bool openmetrics)
{
	const int64_t *values = (const int64_t *)(const void *)r->values.data + first;
	const size_t *ends = (const size_t *)(const void *)r->ends.data;
	struct text name = text_of(m->name);
	bool headed = false;

	for (size_t i = 0; i < r->count; i++, values += r->width) {
		size_t begin = i ? ends[i - 1] : 0;
		struct text labels = {r->labels.data + begin, ends[i] - begin - 1};

		if (values[0] < 0)
			continue;
		if (!headed)
			append_head(out, m, openmetrics);
		headed = true;
		if (m->type == METRIC_HISTOGRAM)
			append_histogram(out, m, labels, values);
		else if (m->label)
			append_labelled(out, m, labels, values);
		else
			append_sample(out, name, labels, (struct text){"", 0}, values[0], m->unit);
	}
}

int exposition_write(const struct metric_scope *scope, void *subject, const char *const *labels,
	bool openmetrics, struct buffer *out)
{
	struct rows r = {.scope = scope};
	size_t first = 0;
	int e;

	for (size_t i = 0; i < scope->count; i++)
		r.width += value_count(&scope->metrics[i]);
	buffer_init(&r.values, MAX_ROWS);
	buffer_init(&r.labels, MAX_ROWS);
	buffer_init(&r.ends, MAX_ROWS);
	e = read_rows(&r, subject, labels);
	for (size_t i = 0; e == 0 && i < scope->count; i++) {
		append_metric(out, &r, &scope->metrics[i], first, openmetrics);
		first += value_count(&scope->metrics[i]);
	}
	buffer_fini(&r.values);
	buffer_fini(&r.labels);
	buffer_fini(&r.ends);
	return e ? e : out->error;
}

bool exposition_is_open(const char *accept)
{
	return accept && strstr(accept, "application/openmetrics-text");
}

const char *exposition_type(bool openmetrics)
{
	return openmetrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
			   : "text/plain; version=0.0.4; charset=utf-8";
}
