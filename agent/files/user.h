/*
 * The name and the primary group of a user, and the name of a group, as this host's own files have
 * them: no directory service is asked, which may take its time.
 *
 * Threads: any. Ownership: texts are the caller's. Bounds: a file of USER_MAX_FILE bytes; a longer
 * name than USER_MAX_NAME is not shown.
 */
#ifndef PULLET_USER_H
#define PULLET_USER_H

#include "base/sys.h"

#define USER_MAX_FILE (1u << 20)
#define USER_MAX_NAME 40
#define USER_TEXT (USER_MAX_NAME + 24)

/* "root (uid 0)"; without a name "uid 0". */
void user_describe(const struct sys *sys, uid_t uid, char ret_text[USER_TEXT]);
/* The same of the text of such a file. */
void user_describe_by(const char *passwd, uid_t uid, char ret_text[USER_TEXT]);

/* "pullet (gid 998)"; without a name "gid 998". */
void user_describe_group(const struct sys *sys, gid_t gid, char ret_text[USER_TEXT]);

/* The group of the user's line: the first one, as getpwuid(3) takes it. 0; -ENOENT: there is no
 * line; -EINVAL: it is damaged. */
int user_primary_group(const struct sys *sys, uid_t uid, gid_t *ret_gid);
/* The same of the text of such a file. */
int user_primary_group_by(const char *passwd, uid_t uid, gid_t *ret_gid);

#endif
