/*
 * A file of this host, or of a mounted volume, read by the thread for files and answered as a web
 * server would: a mount that hangs delays its config until the time limit, and other files.
 *
 * Threads: the loop's. Ownership: the response is lent to done(). Bounds: max_bytes,
 * ORIGIN_MAX_FILE.
 */
#ifndef PULLET_LOCAL_FILE_H
#define PULLET_LOCAL_FILE_H

#include "http/client.h"
#include "base/worker.h"

struct local_file;

/* Reads url, "file:///PATH": 200 with an ETag (of the content), 304 if that is `etag`, 404, 403,
 * 400 and 409 (with a message), or a result that says why not. done() is called once, later. 0 or
 * -ENOMEM. */
int local_file_start(struct worker *w, const char *url, const char *etag, size_t max_bytes,
	http_client_done done, void *arg, struct local_file **ret_file);
/* done() is not called any more. */
void local_file_cancel(struct local_file *f);

#endif
