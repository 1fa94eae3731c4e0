/*
 * Flat keys and values as other programs read them: lines for a shell, an environment file, a
 * properties file, a program's environment. `pullet export`, `pullet run` and `format: env |
 * properties` write with this.
 *
 * sh: export DB_HOST='...', for POSIX shells: any value comes back as it was.
 * env: DB_HOST=..., the value as it is, no quotes, no escapes; a line break cannot be in it. Exact
 * for what takes all behind the '=' literally: docker run --env-file (lines up to 64 KiB) and
 * kubectl create configmap --from-env-file, and a program that splits lines itself. systemd's
 * EnvironmentFile= is different: it takes blanks at both ends and backslashes away, a value that
 * begins with a quote loses its quotes, and one that ends with a backslash or opens a quote that is
 * not closed swallows the next lines. It is exact there for all other values. Not for docker
 * compose's env_file, podman, libraries called dotenv, or a shell's `.`: they see '#', '$', blanks
 * and quotes.
 * properties: as java.util.Properties.store() writes, pure ASCII; any value comes back as it was,
 * but null is left out. The key is the path, escapes and all.
 * environ: DB_HOST=..., the value as it is, a NUL behind it: what execve() takes.
 *
 * Variables: letters upper case, each character that is no ASCII letter or digit '_', and a '_'
 * before a digit at the front: db.host to DB_HOST. A name that makes programs run or load something
 * (PATH, LD_PRELOAD: variables.h) is rejected, whatever part of it is the prefix.
 *
 * Threads: any. Ownership: everything is borrowed for the call. Errors: -EINVAL with a sentence
 * that names the key; -ENOMEM, -EMSGSIZE (out's maximum), with a sentence as well. Bounds: those of
 * the document, out's maximum.
 */
#ifndef PULLET_FLATTEN_H
#define PULLET_FLATTEN_H

#include "document/document.h"
#include "files/file.h"

enum flatten_kind { FLATTEN_SH, FLATTEN_ENV, FLATTEN_PROPERTIES, FLATTEN_ENVIRON };

struct flatten_value {
	const char *key; /* the path: segments joined with '.', '.' and '\' in them escaped */
	size_t key_len;
	enum node_type type; /* a scalar's */
	const char *text;    /* as it was written; of null "" */
	size_t text_len;
};

/* Appends a line for each value, in this order, with `prefix` before each name. Rejects two keys
 * that become the same name, a name that is no variable, a value that the format cannot hold; out
 * is then unchanged. */
int flatten_values(const struct flatten_value *values, size_t count, enum flatten_kind kind,
	const char *prefix, struct buffer *out, char why[FILE_WHY]);
/* Appends all scalars of a document in the order of their keys' bytes: what `pullet export` prints
 * for its snapshot. -EMSGSIZE: they would be more than out's maximum; the paths are counted
 * beforehand. */
int flatten_write(
	const struct node *root, enum flatten_kind kind, struct buffer *out, char why[FILE_WHY]);
/* True when s can begin the name of a variable: letters, digits and '_', no digit first; or "". */
bool flatten_is_prefix(const char *s);

#endif
