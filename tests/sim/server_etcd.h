/*
 * etcd's JSON gateway as servers of the site: a key is a document's path. Ranges are read where the
 * leader is, so they are never old; the events of a watch are those that the member has by now.
 */
#ifndef SIM_SERVER_ETCD_H
#define SIM_SERVER_ETCD_H

#include "tests/sim/site.h"

/* The path is one of etcd's. */
bool etcd_is_asked(const char *path);
/* The key that a request's body asks for, "" = none; of a watch, the revision it begins with. */
void etcd_read_question(
	const char *body, size_t len, char *ret_key, size_t size, uint64_t *ret_revision);
/* The answer to a range; text: NULL = there is no such key. The caller's to free. */
char *etcd_wrap_range(const char *key, const char *text, uint64_t revision);
/* The first line of a watch; a position of 0 becomes the next revision. The caller's to free. */
char *etcd_begin_watch(struct site_server *s, uint64_t *position);
/* The next line, if there is one; moves the position. The caller's to free; NULL = nothing is new.
 */
char *etcd_next_line(struct site_server *s, const char *key, uint64_t *position);

#endif
