/*
 * The schema of a config as files: the one that `schema` names, and those of the directory
 * `schema_dir` that its references may lead to; read, parsed and compiled, again when a byte of
 * them has changed.
 *
 * Bounds: SCHEMA_MAX_FILES files in the directory, those whose names end in .json, .yaml or .yml;
 * SCHEMA_FILES_MAX_BYTES of all together.
 *
 * Threads: one owner at a time. Ownership: paths are borrowed.
 */
#ifndef PULLET_SCHEMA_FILES_H
#define PULLET_SCHEMA_FILES_H

#include "crypto/digest.h"
#include "files/file.h"
#include "schema/schema.h"
#include "base/sys.h"

#define SCHEMA_FILES_MAX_BYTES (8u << 20)

struct schema_files;

/* path: absolute; dir: NULL = none. NULL when memory is out. Reads nothing yet. */
struct schema_files *schema_files_new(const struct sys *sys, const char *path, const char *dir);
void schema_files_free(struct schema_files *f);
/* Reads the files. 1: they are other ones than before, and were compiled; 0: the same; -errno with
 * why: where they could not be read the ones before stay, where they are bad there is none. */
int schema_files_read(struct schema_files *f, char why[FILE_WHY]);
/* What was compiled last; NULL = nothing. */
const struct schema *schema_files_schema(const struct schema_files *f);
/* The digest of all texts that were; "" = nothing. */
const char *schema_files_digest(const struct schema_files *f);

#endif
