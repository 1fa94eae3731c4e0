/*
 * A schema that is being compiled: what compile.c and reference.c share. Private to agent/schema.
 *
 * Memory that is taken is the schema's. Errors: -EINVAL with why, -ENOMEM.
 */
#ifndef PULLET_SCHEMA_COMPILER_H
#define PULLET_SCHEMA_COMPILER_H

#include "schema/rule.h"

#define COMPILER_UNKNOWN 10 /* keywords that are named */

struct compiler {
	struct schema *s;
	struct sub **last; /* where the next one is linked: outer ones come first */
	const struct schema_file *files;
	size_t file_count;
	struct tree *tree; /* that is compiled */
	struct resource {
		const char *uri;        /* resolved, without a fragment; "" = none is known */
		const struct value *at; /* its root */
	} resources[SCHEMA_MAX_RESOURCES];
	unsigned resource_count, resource; /* the latter: that is compiled */
	struct {
		const struct value *name;
		struct sub *sub;
		bool dynamic;
	} anchors[SCHEMA_MAX_ANCHORS];
	size_t anchor_count;
	const struct value *unknown[COMPILER_UNKNOWN];
	size_t unknown_count;
	char *why;
};

void *compile_take_memory(struct compiler *c, size_t count, size_t size);
struct tree *compile_tree_of(const struct compiler *c, const struct value *v);
/* Says what is wrong at a place of the schema. -EINVAL. */
int compile_reject(struct compiler *c, const struct value *at, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
const struct resource *compile_find_resource(const struct compiler *c, const char *uri);
/* Begins a resource, which the schemas from here on are part of. */
int compile_begin_resource(struct compiler *c, const char *uri, const struct value *at);
/* Adds the tree of a file, and compiles it as the resource of that name. */
int compile_tree(struct compiler *c, const char *file, const char *uri, const struct node *root,
	struct sub **ret_sub);

#endif
