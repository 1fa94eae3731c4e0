/*
 * A signal to the process that a file names: a small regular file with one line, a number over 1.
 *
 * The file decides who is signalled, with the rights of whoever reads it. So, to an agent with
 * root's rights (or CAP_KILL), each user who could change what it says (its owner, and those of its
 * directories and symlinks) is root, the agent's user, or the user of that very process, who may
 * signal it anyway; group and others may write none of them. To an agent without these rights the
 * same of the file itself. The process must be this user's with its real, effective and saved uid:
 * not a set-user-ID program that the user started.
 *
 * Never signalled: process 1, this one (nor by one of its threads' numbers), a kernel thread. The
 * process is held by a pidfd before it is checked, so a later process of the same number is not
 * hit. Nobody knows whether it is still the one that wrote the file. The number is one of this
 * process's PID namespace; a number of a container's own is rejected where it names no process
 * here, or one of another user than the file's.
 *
 * Threads: any. Errors: -errno and a sentence in `why`; -EPERM: the file may not decide that.
 */
#ifndef PULLET_PIDFILE_H
#define PULLET_PIDFILE_H

#include <sys/types.h>

#include "files/file.h"
#include "base/sys.h"
#include "files/trusted.h"

int pidfile_signal(const struct sys *sys, const char *path, int signal, char why[FILE_WHY]);
/* Reads and checks the file as pidfile_signal() by `who` would. The process, or -errno. */
pid_t pidfile_read(const struct sys *sys, const struct trusted_who *who, const char *path,
	uid_t *ret_holder, char why[FILE_WHY]);

#endif
