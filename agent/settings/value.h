/*
 * One value of the agent's configuration, from a text and to one. What a text must look like that
 * stays one: form.h.
 *
 * What returns a text returns NULL when the value is valid, else a constant sentence without it, to
 * be put behind the key's name. Nothing here knows files, lines or documents.
 *
 * Threads: one at a time (the lookups of users and groups are not reentrant). Bounds: below.
 */
#ifndef PULLET_SETTINGS_VALUE_H
#define PULLET_SETTINGS_VALUE_H

#include <stdint.h>
#include <sys/types.h>

#define SETTINGS_MAX_WORD 32 /* longer words are not compared */
#define SETTINGS_SHOWN 64

/* "64KiB" "8MiB" to bytes. 0 or -EINVAL. */
int settings_parse_size(const char *text, uint64_t *ret_bytes);
/* "10%" to 10. */
const char *settings_parse_percent(const char *text, unsigned *ret_percent);
/* "HUP", "SIGHUP" or "1" to 1. */
const char *settings_parse_signal(const char *text, int *ret_signal);
/* "640" or "0640", octal: readable by the owner, writable by nobody else. */
const char *settings_parse_mode(const char *text, mode_t *ret_mode);
/* "user", "user:group" or ":group", names or numbers; what is not named is left as -1. */
const char *settings_parse_owner(const char *text, uid_t *ret_uid, gid_t *ret_gid);
/* A group's name or number. */
const char *settings_parse_group(const char *text, gid_t *ret_gid);

/* Milliseconds in the largest unit that divides them: 30000 to "30s". Returns text. */
const char *settings_duration_text(uint64_t ms, char text[24]);
/* Bytes in the largest unit that divides them: 8388608 to "8MiB". Returns text. */
const char *settings_size_text(uint64_t bytes, char text[24]);
/* The value in quotes for a message: cut, control characters replaced. Returns out. */
const char *settings_shown(const char *text, char out[SETTINGS_SHOWN]);
/* Edits (insert, delete, replace, swap neighbours) between two words, letter case ignored;
 * UINT_MAX when either is over SETTINGS_MAX_WORD. Optimal string alignment distance. */
unsigned settings_distance(const char *a, const char *b);

#endif
