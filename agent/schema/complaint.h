/*
 * The errors of an evaluation as lines of its report, and the document's values in them. Private to
 * agent/schema.
 *
 * Secrets: a value whose path fits the mask is shown as ***; other values are between the marks of
 * text/sentence.
 */
#ifndef PULLET_SCHEMA_COMPLAINT_H
#define PULLET_SCHEMA_COMPLAINT_H

#include "schema/evaluation.h"
#include "text/sentence.h"

#define COMPLAINT_SHOWN (VALUE_SHOWN + SENTENCE_WORDS)

/* Reports an error of v, or of its key, or counts it where it is not written; nothing where the
 * evaluation is quiet. Always false; the arguments are only evaluated when it is written. */
#define complain_key(e, v, key, ...)                                                               \
	(complaint_is_written(e) ? complaint_add(e, v, key, __VA_ARGS__) : complaint_count(e))
#define complain(e, v, ...) complain_key(e, v, false, __VA_ARGS__)

/* Would an error now be a line of the report? */
bool complaint_is_written(const struct evaluation *e);
/* Both always return false. */
bool complaint_count(struct evaluation *e);
__attribute__((format(printf, 4, 5))) bool complaint_add(
	struct evaluation *e, const struct value *v, bool key, const char *format, ...);

/* A value of the document for people, or the words that replace it. */
const char *complaint_show(
	const struct evaluation *e, const struct value *v, char shown[COMPLAINT_SHOWN]);
/* What the schema says that v may be: as secret as v. */
const char *complaint_show_wanted(const struct evaluation *e, const struct value *v,
	const char *wanted, char *shown, size_t size);

#endif
