/*
 * libpullet: configuration values from a snapshot that the pullet agent keeps up to date.
 *
 *	struct pullet *p;
 *	if (pullet_open("web", 0, &p) == 0) {
 *		const char *host = pullet_get_string(p, "db.host", "localhost");
 *		...
 *		pullet_refresh(p);   // now and then: is there a newer version?
 *		pullet_close(p);
 *	}
 *
 * A handle reads one version of one config, whole, until pullet_refresh() moves it to a newer one.
 * A lookup takes no lock, makes no system call and copies nothing. The agent's death disturbs
 * nobody.
 *
 * Threads: one handle per thread; different handles need no care. Fork: a handle works in the child
 * as in the parent. Ownership: texts and values point into the version that is open and live until
 * the next pullet_refresh(), pullet_wait() or pullet_close() of that handle. Errors: -errno; see
 * pullet_strerror(). The library needs libc only, never aborts on what it reads, never prints,
 * starts no thread, handles no signal.
 */
#ifndef PULLET_H
#define PULLET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC_GNU_INLINE__) && !defined(__cplusplus) /* -std=gnu89, -fgnu89-inline */
#define PULLET_INLINE extern __inline__
#else
#define PULLET_INLINE inline
#endif

struct pullet;

enum pullet_type {
	PULLET_NULL,
	PULLET_BOOL,
	PULLET_INT,
	PULLET_DOUBLE,
	PULLET_STRING,
	PULLET_LIST,
	PULLET_MAP
};

struct pullet_value { /* points into the image: zero copy */
	enum pullet_type type;
	size_t len; /* bytes of text; for a list or map: 0 */
	const char
		*text; /* as it was written, numbers too ("1.10", "1E5"); NUL-terminated as well */
	union {
		bool boolean;
		int64_t integer;
		double number;
		uint64_t count; /* of a list or map: its items or members */
	};
};

/* A key that is looked up once a version; fields are private. The caller owns it. */
struct pullet_key {
	const uint64_t *images; /* how many p has opened so far */
	uint64_t image;         /* the one that value is of */
	struct pullet_value value;
	struct pullet *p;
	const char *name;
	size_t len;
};

#define PULLET_WAIT_FIRST 1u /* open succeeds before the agent has published anything */

/* Opens a config by its name (the file /run/pullet/NAME.snap, or in $PULLET_RUNTIME_DIR) or, if
 * there is a '/' in it, the snapshot file at a path. 0 and *ret_p; -ENOENT when nothing is
 * published, -EIDRM when it was withdrawn: the agent publishes this config no more (neither with
 * PULLET_WAIT_FIRST: then everything is as if empty until there is something), -EACCES, -EBADMSG
 * (damaged), -EPROTO (not a snapshot, or of a layout this library does not know), -EINVAL (not a
 * name, unknown flags), -ENOMEM, or another -errno. */
int pullet_open(const char *config_or_path, unsigned flags, struct pullet **ret_p);
/* Moves to the newest version. 1 moved, 0 already newest (one atomic load), or -errno as
 * pullet_open(), once for each thing that is wrong: the version that is open stays in use. But
 * -EIDRM (withdrawn) each time, until the config comes back (1): whether to go on with the last
 * values is for the application to decide; and each time, too, what the system refuses (-EMFILE,
 * -ENOMEM, -EACCES, -ELOOP) and, without an agent's page beside the snapshot, -ENOENT. */
int pullet_refresh(struct pullet *p);
/* Looks a key up. 0 and *ret_value, or -ENOENT. key_len bytes of key are compared. A key is its
 * segments joined with '.', as in "servers.0.host"; a dot in a segment is written "\.". */
int pullet_get(struct pullet *p, const char *key, size_t key_len, struct pullet_value *ret_value);
/* The value as that type, or the fallback: when there is no such key, its value is not of the type,
 * or does not fit 64 bits. string: any scalar but null, as it was written. int: an integer; a
 * string that is one, whole: decimal digits, a sign before them or not. double: a number; a string
 * that is one, whole: decimal, and finite; the double nearest to it (0 for 1e-400). bool: true or
 * false, or such a string. duration: a string like "500ms", "10s", "5m", "1h", "2d" or "1h30m", in
 * milliseconds: whole numbers, the greatest unit first and each once. size: a string like "64B",
 * "64KiB", "8MiB", "2GiB" or "1TiB", or as int, in bytes; like durations it may be less than 0,
 * which often stands for "no limit": look where it must not. tests/golden/values.tsv has hundreds
 * of examples. */
const char *pullet_get_string(struct pullet *p, const char *key, const char *fallback);
int64_t pullet_get_int(struct pullet *p, const char *key, int64_t fallback);
double pullet_get_double(struct pullet *p, const char *key, double fallback);
bool pullet_get_bool(struct pullet *p, const char *key, bool fallback);
int64_t pullet_get_duration_ms(struct pullet *p, const char *key, int64_t fallback_ms);
int64_t pullet_get_size(struct pullet *p, const char *key, int64_t fallback_bytes);
/* Names a key of an open handle, for one that is read often: key_len bytes at key, which are
 * borrowed and must live as long as *ret_key. It looks nothing up yet, and the key need not be
 * there. *ret_key belongs to p and to p's thread, may be copied, needs no end, and is not used
 * after pullet_close(p). */
void pullet_key_init(struct pullet_key *ret_key, struct pullet *p, const char *key, size_t key_len);
/* The value in the version that is open, as pullet_get() would give it; NULL when there is no such
 * key. Looked up once a version, whether it is there or not; else it is a comparison of two
 * numbers. Never moves to a newer version: pullet_refresh() does. The value lives as one of
 * pullet_get() does, and no longer than *k. In the library, too, for other languages. */
PULLET_INLINE const struct pullet_value *pullet_key_get(struct pullet_key *k);
/* The same, looked up in any case: for pullet_key_get(). */
const struct pullet_value *pullet_key_find(struct pullet_key *k);
PULLET_INLINE const struct pullet_value *pullet_key_get(struct pullet_key *k)
{
	if (k->image != *k->images)
		return pullet_key_find(k);
	return k->value.text ? &k->value : NULL; /* a value has a text, if an empty one */
}
/* As the functions without _key, for a named key. */
const char *pullet_key_get_string(struct pullet_key *k, const char *fallback);
int64_t pullet_key_get_int(struct pullet_key *k, int64_t fallback);
double pullet_key_get_double(struct pullet_key *k, double fallback);
bool pullet_key_get_bool(struct pullet_key *k, bool fallback);
int64_t pullet_key_get_duration_ms(struct pullet_key *k, int64_t fallback_ms);
int64_t pullet_key_get_size(struct pullet_key *k, int64_t fallback_bytes);
/* Calls visit for each key that begins with prefix ("" = all), in the order of the keys' bytes,
 * until it returns something other than 0; returns that, or 0. key is NUL-terminated as well. */
int pullet_each(struct pullet *p, const char *prefix,
	int (*visit)(const char *key, size_t key_len, const struct pullet_value *v, void *arg),
	void *arg);
/* A member of a struct that pullet_decode() fills; kind says its type in C. */
enum pullet_field_kind {
	PULLET_FIELD_STRING,      /* const char *, which lives as one of pullet_get_string() */
	PULLET_FIELD_BOOL,        /* bool */
	PULLET_FIELD_INT,         /* int */
	PULLET_FIELD_INT64,       /* int64_t */
	PULLET_FIELD_DOUBLE,      /* double */
	PULLET_FIELD_DURATION_MS, /* int64_t */
	PULLET_FIELD_SIZE,        /* int64_t, bytes */
	PULLET_FIELD_ANY          /* no member: of any type, and read elsewhere */
};
struct pullet_field {
	const char *key; /* of a nested struct: "db.port", with offsetof(struct config, db.port) */
	enum pullet_field_kind kind;
	size_t offset;
	bool required;
};
#define PULLET_KEY_ROOM 512 /* bytes of a key that can be decoded, with its NUL */
struct pullet_decode_error {
	char key[PULLET_KEY_ROOM]; /* of the first problem */
	/* "FILE, generation 3: name is missing: did you mean nmae?; db.port must be an integer such
	 * as 17, but is a list; and 4 more": the first eight, as far as there is room; where
	 * nothing is open, that, and why */
	char message[1024];
};
/* Fills a struct from the version that is open, by a table of its members; prefix, "" or
 * "servers.0." for example, comes before each key. What is missing, or null, leaves its member as
 * it was: set the defaults before; but where a mapping should be around it, another value is an
 * error. 0; or, of the first problem, -ENOENT (a required one is missing)
 * or -EINVAL (a value is not of the type, as the getters see it, or does not fit), with all of them
 * in *ret_error (NULL: not wanted); every other member is filled then. Values are never shown. */
int pullet_decode(struct pullet *p, const char *prefix, const struct pullet_field *fields,
	size_t count, void *into, struct pullet_decode_error *ret_error);
/* The same, and a key that begins with prefix and that the table does not have is a problem, too
 * (-EINVAL): it names the member whose key is nearly that, and is missing. */
int pullet_decode_strict(struct pullet *p, const char *prefix, const struct pullet_field *fields,
	size_t count, void *into, struct pullet_decode_error *ret_error);
/* The path of the snapshot; lives as long as the handle. */
const char *pullet_path(const struct pullet *p);
/* The generation that is open; 0 when nothing is yet. Never goes back while the agent keeps its
 * state. */
uint64_t pullet_generation(const struct pullet *p);
/* The server's name for it (ETag or revision); "" when it gave none or nothing is open. */
const char *pullet_version(const struct pullet *p);
/* Number of keys. */
size_t pullet_count(const struct pullet *p);
/* Milliseconds since the server last confirmed the newest version (or has one that an operator or a
 * rollout holds back), suspend included; -1 when that is not known (not since the boot, or no
 * agent's page beside the snapshot). */
int64_t pullet_age_ms(const struct pullet *p);
/* True when that has reached the agent's longest delay between two pulls and the pull's time limit,
 * or is not known. */
bool pullet_stale(const struct pullet *p);
/* True from when the config was removed from the agent, or has no snapshot any more, until it is
 * published again; as it is now, without a refresh. */
bool pullet_withdrawn(const struct pullet *p);
/* Sleeps until there is a newer version than the one that is open, and moves to it. 1; 0 when
 * timeout_ms (-1 = none) has passed; or -errno (-EINTR: a signal came). -EIDRM once: the next call
 * sleeps until the config comes back. An error that pullet_refresh() returns each time comes at
 * once each time, too: do not call it again without a pause. */
int pullet_wait(struct pullet *p, int timeout_ms);
/* A descriptor for an event loop (epoll, poll, libuv, libevent, asyncio): readable when there may
 * be another version, the config was withdrawn or came back, or there is a first version (the agent
 * may be started later); also once at the beginning, and now and then for nothing, but not for an
 * age that grows, nor where the path leads elsewhere and the file stays as it was (a symlink on it
 * is changed, a directory renamed or mounted over): where that happens call pullet_refresh() by a
 * timer, which sees it. Call pullet_refresh() once when it is readable, which drains it. No version
 * is missed, whenever it comes. 0 or more, the same one each time, or -errno: -EMFILE (no
 * descriptor is free, or the user's fs.inotify.max_user_instances are in use), -ENOMEM.
 * The handle owns it: poll it in any thread, do not read or close it; pullet_close() closes it, so
 * take it out of the loop before. If the program closed it anyway, as closefrom(3) does,
 * pullet_refresh() returns -EBADF and this opens another one; a reused number is not touched.
 * After a fork() the child calls this again for one of its own, and takes nothing from its
 * parent's. Once there is one, pullet_refresh() makes system calls each time (a few microseconds),
 * and also returns -ENOSPC (fs.inotify.max_user_watches are in use) or -EACCES (nothing is
 * published, and the directory may not be read): the newest version is open then, but the
 * descriptor tells of no other one before a pullet_refresh() succeeds; so call it by a timer. */
int pullet_fd(struct pullet *p);
/* Frees the handle; NULL is fine. */
void pullet_close(struct pullet *p);
/* For tests of applications: writes a snapshot of these values to a path with a '/' in it, in place
 * of the one that is there, whose next generation it is; handles that have it open move to it.
 * Entries in any order, borrowed; lists and maps have one of their own, as pullet_each() gives
 * them; text must be set. version may be NULL. 0; -EINVAL (two equal keys, no '/'), -EMSGSIZE
 * (larger than 4 GiB, a version of more than 255 bytes), -ENOMEM, or another -errno: then nothing
 * has changed. An agent's snapshot is not to be written: its page would not know. */
struct pullet_entry {
	const char *key;
	size_t key_len;
	struct pullet_value value;
};
int pullet_write(
	const char *path, const struct pullet_entry *entries, size_t count, const char *version);
/* A sentence for an error of this library; never NULL. */
const char *pullet_strerror(int error);
/* The same for an error of pullet_open(), with what it is here: the directory, a config of nearly
 * that name, the group whose members may read. Written into text (256 bytes hold most), cut where
 * that is too small; returns text. Reads the directory, and asks the system for the group's name.
 */
const char *pullet_explain(const char *config_or_path, int error, char *text, size_t size);

#ifdef __cplusplus
}
#endif

#endif
