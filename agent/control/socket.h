/*
 * Where the control API is served: a Unix socket, and a TCP address if there is to be one.
 *
 * The socket comes back when somebody removes it, or the directory that it is in, while the agent
 * runs: inotify tells, and who calls control_socket_check() now and then. It does not when somebody
 * else listens in its place; that is left alone, also when this ends. What cannot be made again is
 * tried again after 1 s, and twice as long each time, up to CONTROL_SOCKET_MAX_DELAY_MS.
 *
 * Threads: the loop's. Ownership: loop and drift (NULL = there is none) are borrowed. Wake-ups:
 * none while the socket is there.
 */
#ifndef PULLET_CONTROL_SOCKET_H
#define PULLET_CONTROL_SOCKET_H

#include "files/file_watch.h"
#include "files/file.h"
#include "httpd/server.h"
#include "base/loop.h"

#define CONTROL_SOCKET_MAX_DELAY_MS 64000u

struct control_socket;

/* Serves on the Unix socket DIR/control.sock. 0, or -errno with a sentence in why. */
int control_socket_open(struct loop *l, struct file_watch *d, const char *dir, httpd_handler handle,
	void *arg, struct control_socket **ret_socket, char why[FILE_WHY]);
/* Other bounds for the Unix socket: httpd_limit(). */
void control_socket_limit(struct control_socket *p, size_t clients, size_t queued);
/* Of the Unix socket: httpd_share(). */
void control_socket_share(
	struct control_socket *p, void (*refused)(void *arg, const struct peer *peer), void *arg);
/* Of the Unix socket: httpd_operators(). */
void control_socket_operators(struct control_socket *p, gid_t operators);
/* Serves on this TCP address too, instead of another one (NULL = on none): nothing happens when it
 * is the one already. 0, or -errno with a sentence, and then it serves where it did. */
int control_socket_listen(struct control_socket *p, const char *address, char why[FILE_WHY]);
/* Is the socket where it was made? One look at the file; what is to be done is done soon. */
void control_socket_check(struct control_socket *p);
/* Open requests are dropped, and nobody is told. Accepts NULL. */
void control_socket_close(struct control_socket *p);

#endif
