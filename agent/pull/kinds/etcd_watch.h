/*
 * The watches of etcd, which are resumed by revisions: for kind_etcd.
 *
 * A watch goes on from its position. It starts again from now, and all counts as changed, where
 * revisions were compacted, the cluster is another one, or what came cannot be read.
 */
#ifndef PULLET_ETCD_WATCH_H
#define PULLET_ETCD_WATCH_H

#include "pull/kinds/kind.h"

/* As kind.h says of watch_build and watch_read. */
int etcd_watch_build(struct kind_watch *w, struct kind_request *r, char why[FILE_WHY]);
int etcd_watch_read(
	struct kind_watch *w, const struct http_client_response *response, char why[FILE_WHY]);

#endif
