/*
 * Metrics as text for Prometheus: the text exposition format 0.0.4, or OpenMetrics 1.0.
 *
 * A metric is a row of a table: what it is called and means, and where its value is. A value is a
 * field of a subject, a struct of the table's owner, which metric_scope.next() fills with one
 * object after the other. Times are milliseconds (or microseconds) there, and seconds in the
 * output. A value below zero is absent: it has no series.
 *
 * Threads: any. Ownership: tables are constant; texts are borrowed. Errors: -ENOMEM, -EMSGSIZE.
 * Bounds: the output's; beside it 8 bytes a series, 512 MiB a scope.
 */
#ifndef PULLET_EXPOSITION_H
#define PULLET_EXPOSITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/buffer.h"

#define METRIC_LABELS 2

enum metric_type { METRIC_GAUGE, METRIC_COUNTER, METRIC_INFO, METRIC_HISTOGRAM };
enum metric_unit { METRIC_NUMBER, METRIC_SECONDS, METRIC_MICROSECONDS, METRIC_BYTES };
enum metric_width { METRIC_BOOL, METRIC_32, METRIC_64 };

struct metric {
	const char *name; /* of the samples; ends in the unit, and _total, _info where it must */
	enum metric_type type;
	enum metric_unit unit;
	const char *help; /* one sentence; without \ and " and line breaks */
	size_t offset;    /* of the value, or of the first of them, in the subject */
	enum metric_width width;
	size_t when;              /* offset of a bool: no series where it is false; 0 = always */
	const char *label;        /* beside those of the scope; NULL = none */
	const char *const *names; /* its values: one series each, */
	const char *(*name_of)(size_t i); /* where names is NULL */
	size_t values;                    /* their number */
	size_t buckets;                   /* of a histogram: counts, followed by the sum */
	uint64_t step; /* of a histogram in microseconds: bucket i is below step << i */
	bool is_set;   /* the value is a number: the series of that number is 1, others 0 */
};

/* The .offset and .width of a row whose value is this member of this struct. */
#define METRIC_FIELD(type, member)                                                                 \
	.offset = offsetof(type, member), .width = _Generic(((type *)NULL)->member, bool           \
							    : METRIC_BOOL, unsigned                \
							    : METRIC_32, default                   \
							    : METRIC_64)

struct metric_scope {
	const char *labels[METRIC_LABELS]; /* NULL = no more */
	const struct metric *metrics;
	size_t count;
	/* Fills the subject with the next object. False: there are no more. */
	bool (*next)(void *subject);
};

/* Appends the metrics of a scope. labels: where next() puts the values of the scope's labels. 0, or
 * the error of a buffer: then the output is cut. */
int exposition_write(const struct metric_scope *scope, void *subject, const char *const *labels,
	bool openmetrics, struct buffer *out);

/* Tells whether a request with this Accept header (NULL = none) asks for OpenMetrics. */
bool exposition_is_open(const char *accept);
/* The content type. */
const char *exposition_type(bool openmetrics);

#endif
