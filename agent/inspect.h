/*
 * What an operator asks about a config's versions, as JSON: which there are, what changed between
 * two, and where a value comes from. Changes nothing.
 *
 * Values whose key fits one of the config's mask patterns are "***", also inside a mapping that is
 * shown as a whole. The versions are those of the state directory, as the servers gave them; the
 * operator's overrides are no part of a version: history and diff know nothing of them, explain has
 * them as the last layers.
 *
 * Threads: the loop's, which reads and parses here. Errors: 0, or -errno with a sentence: -EINVAL:
 * the key is not good; -ENOENT: there is no such generation, or nobody says anything about the key;
 * -ENOMEM, -EMSGSIZE: no room for the answer; another -errno: not as things stand. Bounds: those of
 * the documents and of `out`; INSPECT_MAX_READ.
 */
#ifndef PULLET_INSPECT_H
#define PULLET_INSPECT_H

#include "../lib/buffer.h"
#include "config.h"

#define INSPECT_MAX_READ (64u << 20) /* bytes of versions that a history looks at */

/* {"name":"web","versions":[...]}, newest first: generation, pulled_ms, sha256, origin, urls, the
 * first document's version (null: none), bytes of the documents; "published":true in the one that
 * stands; "verdict":{"by","why"} if its bytes were refused or taken back. One that is damaged has
 * an "error" in place of all that. "truncated":true: there are older ones, beyond
 * INSPECT_MAX_READ. */
int inspect_history(struct config *c, struct buffer *out, char why[FILE_WHY]);

/* {"name","from":{facts},"to":{facts},"equal":true|false,"changes":[...]}: facts as above, equal:
 * the same bytes; changes: each as diff_write_json() has it, none when only comments or the order
 * changed, null for bytes and for a set of files. to 0 = what stands, from 0 = the newest one
 * before `to`. */
int inspect_diff(
	struct config *c, uint64_t from, uint64_t to, struct buffer *out, char why[FILE_WHY]);

/* {"name","generation","key","found":true|false,"value":...,"layers":[...]}: value is what stands
 * (no member when nothing does). A layer has its "url" and "path"; an override "override":true,
 * "key", "by", "reason" and "until_ms" (null: for ever). Each has the "word" that it says about the
 * key (merge.h): absent, silent, sets, deletes, replaces; "line" where it says it, if that is
 * known; its "value" when it sets one, and "counts". */
int inspect_explain(struct config *c, const char *key, struct buffer *out, char why[FILE_WHY]);

#endif
