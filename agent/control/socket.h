/*
 * Where the control API is served: a Unix socket, and a TCP address if there is to be one.
 *
 * The socket comes back when somebody removes it, or the directory that it is in, while the agent
 * runs: inotify tells, and who calls places_look() now and then. It does not when somebody else
 * listens in its place; that is left alone, also when this ends. What cannot be made again is tried
 * again after 1 s, and twice as long each time, up to PLACES_MAX_DELAY_MS.
 *
 * Threads: the loop's. Ownership: loop and drift (NULL = there is none) are borrowed. Wake-ups:
 * none while the socket is there.
 */
#ifndef PULLET_PLACES_H
#define PULLET_PLACES_H

#include "files/file_watch.h"
#include "files/file.h"
#include "httpd/server.h"
#include "base/loop.h"

#define PLACES_MAX_DELAY_MS 64000u

struct places;

/* Serves on the Unix socket DIR/control.sock. 0, or -errno with a sentence in why. */
int places_open(struct loop *l, struct drift *d, const char *dir, httpd_handler handle, void *arg,
	struct places **ret_places, char why[FILE_WHY]);
/* Other bounds for the Unix socket: httpd_limit(). */
void places_limit(struct places *p, size_t clients, size_t queued);
/* Of the Unix socket: httpd_share(). */
void places_share(struct places *p, void (*refused)(void *arg, const struct peer *peer), void *arg);
/* Of the Unix socket: httpd_operators(). */
void places_operators(struct places *p, gid_t operators);
/* Serves on this TCP address too, instead of another one (NULL = on none): nothing happens when it
 * is the one already. 0, or -errno with a sentence, and then it serves where it did. */
int places_listen(struct places *p, const char *address, char why[FILE_WHY]);
/* Is the socket where it was made? One look at the file; what is to be done is done soon. */
void places_look(struct places *p);
/* Open requests are dropped, and nobody is told. Accepts NULL. */
void places_close(struct places *p);

#endif
