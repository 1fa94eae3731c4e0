/*
 * The keywords that look at a value alone, not at schemas for its children: type, enum, maximum,
 * pattern, required and the like. Private to agent/schema.
 */
#ifndef PULLET_SCHEMA_ASSERTIONS_H
#define PULLET_SCHEMA_ASSERTIONS_H

#include "schema/evaluation.h"

/* Is what the rule asserts true of v, or of no concern to v's type, or the rule no assertion? Else
 * the error is reported. */
bool assertions_check(struct evaluation *e, const struct rule *r, const struct value *v);

#endif
