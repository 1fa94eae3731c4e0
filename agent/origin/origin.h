/*
 * The files of one directory as HTTP resources: looked up safely, read whole, with a strong ETag.
 *
 * A path never leads out of the directory, neither by `..` nor by a symlink (openat2
 * RESOLVE_BENEATH); symlinks inside are followed, so that Kubernetes volumes work. Parts that begin
 * with a dot, and editors' files (x~, x.swp, #x#, 4913), are not served.
 *
 * Threads: one owner. Bounds: a file is at most ORIGIN_MAX_FILE bytes.
 */
#ifndef PULLET_ORIGIN_H
#define PULLET_ORIGIN_H

#include <stdbool.h>
#include <time.h>

#include "lib/buffer.h"
#include "files/file.h"

#define ORIGIN_MAX_FILE (64u << 20)
#define ORIGIN_ETAG 35 /* quotes, 32 hexadecimal digits, NUL */

struct origin_file {
	struct buffer body;
	char etag[ORIGIN_ETAG]; /* "<first 32 hex digits of the SHA-256>" with its quotes */
	time_t modified;
};

/* Opens the directory; the descriptor, or -errno. */
int origin_open(const char *path);
/* True when the name of a path relative to the directory may be served. */
bool origin_serves(const char *path);
/* Reads dir/path. 0 and *ret_file (free its body with buffer_fini()), or -ENOENT, -EXDEV (leads
 * out), -EISDIR, -EAGAIN (it is being written, or a folder renamed) and others. */
int origin_read(int dir, const char *path, struct origin_file *ret_file);
/* The same for any path of this host; -EPERM and why: the path is not to be trusted. */
int origin_read_path(const char *path, struct origin_file *ret_file, char why[FILE_WHY]);
/* The content type that a path's ending stands for. */
const char *origin_content_type(const char *path);
/* True when an If-None-Match value names this ETag (weak comparison, lists, *). */
bool origin_etag_matches(const char *if_none_match, const char *etag);

#endif
