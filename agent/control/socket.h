/*
 * Where the control API is served: a Unix socket, and an optional TCP address.
 *
 * The socket is recreated when it, or its directory, is removed while the agent runs: inotify
 * reports that, or control_socket_check(). A socket of another program in its place is not touched,
 * also not at the end. A failure is retried after 1 s, and twice as long each time, up to
 * CONTROL_SOCKET_MAX_DELAY_MS.
 *
 * Threads: the loop's. Ownership: loop and drift (NULL = none) are borrowed. Wake-ups: none
 * while the socket exists.
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
/* httpd_limit() of the Unix socket. */
void control_socket_limit(struct control_socket *p, size_t clients, size_t queued);
/* httpd_share() of the Unix socket. */
void control_socket_share(
	struct control_socket *p, void (*refused)(void *arg, const struct peer *peer), void *arg);
/* httpd_operators() of the Unix socket. */
void control_socket_operators(struct control_socket *p, gid_t operators);
/* Serves on this TCP address instead of the one before (NULL = none). 0, or -errno with a sentence:
 * then nothing has changed. */
int control_socket_listen(struct control_socket *p, const char *address, char why[FILE_WHY]);
/* Checks whether the socket still exists, and schedules its restoration if not. */
void control_socket_check(struct control_socket *p);
/* Drops open requests without an answer. Accepts NULL. */
void control_socket_close(struct control_socket *p);

#endif
