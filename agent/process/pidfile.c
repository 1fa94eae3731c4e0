/*
 * From a pidfile to a process, and to the owners of both. Surprising: /proc may be that of another
 * PID namespace, so the number to use there is the one it has for the pidfd.
 */
#include "process/pidfile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/buffer.h"
#include "files/user.h"

#define MAX_PIDFILE 32
#define MAX_PROC 1024
#define KERNEL_THREAD 0x00200000ul /* PF_KTHREAD */
#define NOBODY ((uid_t)-1)

struct owner {
	uid_t real, effective, saved;
	bool kernel; /* it is a kernel thread */
};

/* ---- the file ---- */

/* Parses a pidfile's text; 0 unless it is a number over 1. */
static pid_t parse_pid(const char *text, size_t len)
{
	const char *digits = text + strspn(text, " ");
	char *end;
	unsigned long long n;

	if (strspn(digits, "0123456789") == 0)
		return 0;
	n = strtoull(digits, &end, 10);
	end += strspn(end, " \r");
	end += *end == '\n';
	return end == text + len && n > 1 && n <= INT_MAX ? (pid_t)n : 0;
}

pid_t pidfile_read(const struct sys *sys, const struct trusted_who *who, const char *path,
	uid_t *ret_holder, char why[FILE_WHY])
{
	char reason[FILE_WHY], remedy[FILE_REMEDY];
	int r = trusted_open_held(sys, who, path, ret_holder, reason);
	struct buffer text;
	pid_t pid = 0;

	buffer_init(&text, MAX_PIDFILE);
	if (r >= 0) {
		r = file_take(sys, r, &text);
		file_remedy(remedy, -r, true);
		snprintf(reason, sizeof(reason), "%s",
			r == -EINVAL ? "it is not a regular file" : remedy);
	}
	if (r == 0 && text.len)
		pid = parse_pid(text.data, text.len);
	buffer_fini(&text);
	if (r && r != -EMSGSIZE)
		snprintf(why, FILE_WHY, "cannot read the pidfile %.150s: %.300s", path, reason);
	else if (pid == 0)
		snprintf(why, FILE_WHY, "the pidfile %.200s is not one line with a number over 1",
			path);
	return pid ? pid : r && r != -EMSGSIZE ? r : -EINVAL;
}

/* ---- the process ---- */

/* The beginning of a file in /proc. 0 or -errno. */
static int read_proc(const struct sys *sys, const char *path, char ret_text[MAX_PROC])
{
	int fd = sys->openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = sys->read(fd, ret_text, MAX_PROC - 1);
	n = n < 0 ? -errno : n;
	sys->close(fd);
	if (n < 0)
		return (int)n;
	ret_text[n] = '\0';
	return 0;
}

/* What follows "NAME:" at the beginning of a line; NULL = no such line. */
static const char *find_proc_field(const char *text, const char *name)
{
	const char *line = strstr(text, name);

	return line ? line + strlen(name) : NULL;
}

/* Reads the owner of the pidfd's process. 0 or -errno. */
static int look_up_owner(const struct sys *sys, int pidfd, struct owner *ret_owner)
{
	char path[64], text[MAX_PROC];
	unsigned real, effective, saved;
	unsigned long flags;
	const char *line;
	long number;
	int r;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
	r = read_proc(sys, path, text);
	line = r ? NULL : find_proc_field(text, "\nPid:\t");
	number = line ? strtol(line, NULL, 10) : 0;
	if (r == 0 && number <= 0)
		r = -ESRCH;
	if (r)
		return r;
	snprintf(path, sizeof(path), "/proc/%ld/status", number);
	r = read_proc(sys, path, text);
	line = r ? NULL : find_proc_field(text, "\nUid:\t");
	if (r || !line || sscanf(line, "%u %u %u", &real, &effective, &saved) != 3)
		return r ? r : -EIO;
	snprintf(path, sizeof(path), "/proc/%ld/stat", number);
	r = read_proc(sys, path, text);
	line = r ? NULL : strrchr(text, ')');
	if (r || !line || sscanf(line, ") %*c %*d %*d %*d %*d %*d %lu", &flags) != 1)
		return r ? r : -EIO;
	*ret_owner = (struct owner){
		.real = real,
		.effective = effective,
		.saved = saved,
		.kernel = flags & KERNEL_THREAD,
	};
	return 0;
}

static bool belongs_to(const struct owner *o, uid_t uid)
{
	return o->real == uid && o->effective == uid && o->saved == uid;
}

/* Names the holder of the file and the user of the process. */
static int refuse_holder(const struct sys *sys, const char *path, pid_t pid, uid_t holder,
	const struct owner *o, char why[FILE_WHY])
{
	uid_t other = o->real != holder        ? o->real
		      : o->effective != holder ? o->effective
					       : o->saved;
	char whose[USER_TEXT], user[USER_TEXT];

	user_describe(sys, holder, user);
	user_describe(sys, other, whose);
	snprintf(why, FILE_WHY,
		"the pidfile %.150s is in the hands of %s and names process %d, which has the "
		"rights of %s; give the file and its directory to root, or to the user of the "
		"process",
		path, user, (int)pid, whose);
	return -EPERM;
}

/* Checks that a file of this holder may name this process. */
static int check_process(const struct sys *sys, const char *path, pid_t pid, int pidfd,
	uid_t holder, char why[FILE_WHY])
{
	struct owner o;
	int r = look_up_owner(sys, pidfd, &o);

	if (r && holder == NOBODY)
		return 0; /* such as hidden by hidepid=: only trusted users wrote the number */
	if (r)
		snprintf(why, FILE_WHY, "cannot see whose process %d of the pidfile %.200s is: %s",
			(int)pid, path, strerror(-r));
	else if (o.kernel)
		snprintf(why, FILE_WHY, "the pidfile %.200s names a kernel thread, process %d",
			path, (int)pid);
	else if (holder != NOBODY && !belongs_to(&o, holder))
		return refuse_holder(sys, path, pid, holder, &o, why);
	else
		return 0;
	return r ? r : -EPERM;
}

/* Without pidfd_open(): signals only a number that trusted users wrote. */
static int signal_by_number(pid_t pid, int signal, uid_t holder)
{
	if (holder != NOBODY)
		return -ENOSYS;
	return kill(pid, signal) ? -errno : 0;
}

static int signal_process(const struct sys *sys, const char *path, pid_t pid, int signal,
	uid_t holder, char why[FILE_WHY])
{
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0u), r = pidfd < 0 ? -errno : 0;

	why[0] = '\0';
	if (r == -ENOSYS || r == -EPERM)
		r = signal_by_number(pid, signal, holder);
	if (r == -EINVAL || r == -ENOENT)
		snprintf(why, FILE_WHY, "the pidfile %.200s names thread %d, which is no process",
			path, (int)pid);
	if (pidfd >= 0) {
		r = check_process(sys, path, pid, pidfd, holder, why);
		if (r == 0)
			r = syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0u) ? -errno : 0;
		sys->close(pidfd);
	}
	if (r && !why[0])
		snprintf(why, FILE_WHY, "cannot send signal %d to process %d of %.200s: %s", signal,
			(int)pid, path, strerror(-r));
	return r;
}

int pidfile_signal(const struct sys *sys, const char *path, int signal, char why[FILE_WHY])
{
	const struct trusted_who who = trusted_signaller();
	uid_t holder = NOBODY;
	pid_t pid = pidfile_read(sys, &who, path, &holder, why);

	if (pid < 0)
		return pid;
	if (tgkill(getpid(), pid, 0) == 0) { /* any of its threads */
		snprintf(why, FILE_WHY, "the pidfile %.200s names this process itself", path);
		return -EPERM;
	}
	return signal_process(sys, path, pid, signal, holder, why);
}
