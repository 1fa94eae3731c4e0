/*
 * Resolves references between schemas. Private to agent/schema.
 */
#ifndef PULLET_SCHEMA_REFERENCE_H
#define PULLET_SCHEMA_REFERENCE_H

#include "schema/compiler.h"

/* Resolves all references, and compiles the files that they lead to. 0, -EINVAL with why, -ENOMEM.
 */
int reference_resolve_all(struct compiler *c);

#endif
