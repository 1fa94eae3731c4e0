/*
 * Where to listen: a bound socket of an address.
 *
 * Threads: one at a time (listen_unix() changes the umask for a moment). Ownership: the descriptor
 * is the caller's; non-blocking, closed on exec. Errors: -1 with errno set; EINVAL: the address is
 * invalid, or its name is not known.
 */
#ifndef PULLET_LISTEN_H
#define PULLET_LISTEN_H

/* A Unix socket at path, mode 0660. Replaces one without a listener, left from a crash. */
int listen_unix(const char *path);
/* Removes the file of that name. */
void listen_remove(const char *path);
/* "HOST:PORT", "[v6]:PORT"; port 0 = any free one; ret_port: the bound one. */
int listen_tcp(const char *address, int *ret_port);

#endif
