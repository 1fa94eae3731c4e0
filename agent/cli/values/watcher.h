/*
 * A thread that sleeps until there is a newer version of a config, with a handle of its own, and
 * wakes others by a descriptor.
 *
 * Threads: watcher_start() from the main one, with all signals blocked that the thread shall not
 * take. Nothing crosses but the descriptor. Ownership: the thread lives as long as the process, and
 * owns its handle. Errors: exit codes, with the sentence printed.
 */
#ifndef PULLET_CLI_WATCHER_H
#define PULLET_CLI_WATCHER_H

/* CLI_OK and *ret_fd: an eventfd, readable when there is a newer version, or another error than
 * before. */
int watcher_start(const char *command, const char *config, int *ret_fd);

#endif
