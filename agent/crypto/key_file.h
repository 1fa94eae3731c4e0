/*
 * Files of secret and public keys: read if their permissions are safe, written in pairs that
 * replace nothing. Their content is not checked.
 *
 * A secret key's file may be read by its owner and its group only, and written by its owner only;
 * any other is rejected (curve_keys.h says why). Symlinks are followed, as files/trusted.h says.
 *
 * Threads: any. Ownership: the caller wipes what was read. Errors: -errno, with a sentence. Bounds:
 * the caller's memory.
 */
#ifndef PULLET_KEY_FILE_H
#define PULLET_KEY_FILE_H

#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "files/file.h"
#include "base/sys.h"

/* Opens a regular file: its descriptor, or -errno. why: as of trusted_open(). */
int key_file_open(const struct sys *sys, const char *path, struct stat *ret_st, char why[FILE_WHY]);
/* Reads all there is in an open file: its length, or -errno; -EMSGSIZE when it does not fit, or
 * just fits. */
ssize_t key_file_take(const struct sys *sys, int fd, char *data, size_t size);
/* Reads a secret key's file of less than size bytes. 0; or -errno and a constant sentence, which
 * does not name the file, and nothing in data. */
int key_file_read_secret(const struct sys *sys, const char *path, char *data, size_t size,
	size_t *ret_len, const char **ret_why);
/* Writes the texts of a pair: the secret one to path (0600), the public one to path.pub (0644),
 * both fsynced. Never replaces a file that is there. 0; or -errno and why, and neither file. */
int key_file_write_pair(const struct sys *sys, const char *path, const char *secret_text,
	const char *public_text, char why[FILE_WHY]);

#endif
