/*
 * A compiled schema: what compile.c and reference.c build, and applicators.c and assertions.c
 * evaluate. Private to agent/schema.
 */
#ifndef PULLET_SCHEMA_RULE_H
#define PULLET_SCHEMA_RULE_H

#include "schema/schema.h"
#include "schema/number.h"
#include "schema/pattern.h"
#include "schema/value.h"

/* In the order in which they are checked: each behind those that it needs beside itself. */
enum keyword {
	KEYWORD_SCHEMA, /* these ask for nothing */
	KEYWORD_ID,
	KEYWORD_ANCHOR,
	KEYWORD_DYNAMIC_ANCHOR,
	KEYWORD_DEFS,
	KEYWORD_DEFINITIONS,
	KEYWORD_MIN_CONTAINS, /* these are read by others */
	KEYWORD_MAX_CONTAINS,
	KEYWORD_THEN,
	KEYWORD_ELSE,
	KEYWORD_TYPE,
	KEYWORD_ENUM,
	KEYWORD_CONST,
	KEYWORD_MULTIPLE_OF,
	KEYWORD_MAXIMUM,
	KEYWORD_EXCLUSIVE_MAXIMUM,
	KEYWORD_MINIMUM,
	KEYWORD_EXCLUSIVE_MINIMUM,
	KEYWORD_MAX_LENGTH,
	KEYWORD_MIN_LENGTH,
	KEYWORD_PATTERN,
	KEYWORD_MAX_ITEMS,
	KEYWORD_MIN_ITEMS,
	KEYWORD_UNIQUE_ITEMS,
	KEYWORD_MAX_PROPERTIES,
	KEYWORD_MIN_PROPERTIES,
	KEYWORD_REQUIRED,
	KEYWORD_DEPENDENT_REQUIRED,
	KEYWORD_REF,
	KEYWORD_DYNAMIC_REF,
	KEYWORD_PREFIX_ITEMS,
	KEYWORD_ITEMS,
	KEYWORD_CONTAINS,
	KEYWORD_PROPERTIES,
	KEYWORD_PATTERN_PROPERTIES,
	KEYWORD_ADDITIONAL_PROPERTIES,
	KEYWORD_PROPERTY_NAMES,
	KEYWORD_DEPENDENT_SCHEMAS,
	KEYWORD_ALL_OF,
	KEYWORD_ANY_OF,
	KEYWORD_ONE_OF,
	KEYWORD_NOT,
	KEYWORD_IF,
	KEYWORD_UNEVALUATED_ITEMS, /* last: they check what all others left */
	KEYWORD_UNEVALUATED_PROPERTIES,
	KEYWORD_COUNT,
};

struct rule { /* a keyword with its value */
	enum keyword keyword;
	unsigned count;            /* of subs */
	const struct value *value; /* as it is written in the schema */
	struct sub **subs;         /* the schemas in it, in document order */
	struct pattern **patterns; /* KEYWORD_PATTERN: one; _PATTERN_PROPERTIES: one for each sub */
	const struct rule *beside[2]; /* of the same schema, as the keyword's row says; or NULL */
	union {
		uint64_t limit;              /* max*, min* that count */
		unsigned types;              /* _TYPE: a bit for each node_type */
		struct divisor divisor;      /* _MULTIPLE_OF */
		const struct value **sorted; /* _ENUM */
	};
};

struct sub { /* a schema within the schema; a boolean has no rules */
	const struct value *at;
	unsigned resource;  /* that it is part of: whose URI its references start from */
	struct rule *rules; /* in the order of enum keyword */
	unsigned count;
	unsigned chain; /* how many may follow one another from here on for the same value */
	bool leftovers; /* has an unevaluated*: needs to know what the others evaluated */
	struct sub *next;
};

struct tree {             /* of one file */
	const char *file; /* NULL: the schema's own */
	struct value *root;
	size_t values;
	struct sub **sub_of; /* by the index of a value: the schema there, or NULL */
};

struct schema {
	struct tree trees[1 + SCHEMA_MAX_FILES];
	unsigned tree_count;
	struct sub *top;      /* of the first tree's root */
	struct sub *subs;     /* all */
	struct piece *pieces; /* of memory */
	struct buffer unknown;
};

#endif
