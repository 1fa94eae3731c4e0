/*
 * Where to listen: a bound socket of an address.
 *
 * Threads: one at a time (listen_unix() changes the umask for a moment). Ownership: the descriptor
 * is the caller's; non-blocking, closed on exec. Errors: -1 with errno set; EINVAL: the address is
 * not good, or its name is not known.
 */
#ifndef PULLET_LISTEN_H
#define PULLET_LISTEN_H

/* A Unix socket at path, mode 0660. One that nobody listens on, left from a crash, is replaced. */
int listen_unix(const char *path);
/* Removes it, or what else has its name. */
void listen_remove(const char *path);
/* "HOST:PORT", "[v6]:PORT"; port 0 = any free one, the one that it became is returned. */
int listen_tcp(const char *address, int *ret_port);

#endif
