/*
 * A schema applied to a value, with all that its keywords apply to the value and its children.
 * Private to agent/schema.
 */
#ifndef PULLET_SCHEMA_APPLICATORS_H
#define PULLET_SCHEMA_APPLICATORS_H

#include "schema/evaluation.h"

/* Is v valid? Its errors are reported. It counts only if e->error is 0 then. */
bool applicators_apply(struct evaluation *e, const struct sub *s, const struct value *v);

#endif
