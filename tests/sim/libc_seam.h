/*
 * Between libc_*.c: who calls, how a call ends, and the real functions behind those that are
 * wrapped. Declares the wrapped ones as well, which only the linker calls.
 */
#ifndef SIM_LIBC_SEAM_H
#define SIM_LIBC_SEAM_H

#include <dirent.h>
#include <grp.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <time.h>

#include "world.h"

struct open_how;

bool seam_is_agent(void);
/* 0, or the negative errno that the call fails with. Does not return where the process ends. */
int seam_ask(enum world_call call, const char *path);
/* Traces the result of a call, 0 or more or a negative errno; sets errno, and returns it or -1. */
long seam_end(const char *what, int at, const char *path, long r);
int seam_openat2(int at, const char *path, const struct open_how *how);
ssize_t seam_write_log(int fd, const char *data, size_t len);

/* ---- the real ones ---- */
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void __real_free(void *at);
int __real_vasprintf(char **ret, const char *format, va_list args)
	__attribute__((format(printf, 2, 0)));
void *__real_mmap(void *at, size_t len, int protection, int flags, int fd, off_t offset);
int __real_munmap(void *at, size_t len);
ssize_t __real_write(int fd, const void *data, size_t len);
size_t __real_fwrite(const void *data, size_t size, size_t count, FILE *f);
int __real_fflush(FILE *f);
int __real_clock_gettime(clockid_t id, struct timespec *ret);
ssize_t __real_getrandom(void *data, size_t len, unsigned flags);
char *__real_getenv(const char *name);
char *__real_secure_getenv(const char *name);
int __real_isatty(int fd);
_Noreturn void __real__exit(int status);

/* ---- libc_files.c, libc_names.c ---- */
int __wrap_openat(int at, const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap___open_2(const char *path, int flags);
int __wrap___openat_2(int at, const char *path, int flags);
int __wrap_close(int fd);
ssize_t __wrap_read(int fd, void *data, size_t len);
ssize_t __wrap___read_chk(int fd, void *data, size_t len, size_t room);
ssize_t __wrap_pread(int fd, void *data, size_t len, off_t at);
ssize_t __wrap___pread_chk(int fd, void *data, size_t len, off_t at, size_t room);
ssize_t __wrap_write(int fd, const void *data, size_t len);
int __wrap_fsync(int fd);
int __wrap_fstat(int fd, struct stat *ret);
int __wrap_fstatat(int at, const char *path, struct stat *ret, int flags);
int __wrap_stat(const char *path, struct stat *ret);
int __wrap_lstat(const char *path, struct stat *ret);
int __wrap_statx(int at, const char *path, int flags, unsigned wanted, struct statx *ret);
int __wrap_fstatfs(int fd, struct statfs *ret);
int __wrap_statx(int at, const char *path, int flags, unsigned mask, struct statx *ret);
int __wrap_faccessat(int at, const char *path, int mode, int flags);
int __wrap_access(const char *path, int mode);
ssize_t __wrap_readlink(const char *path, char *ret, size_t size);
ssize_t __wrap___readlink_chk(const char *path, char *ret, size_t size, size_t room);
ssize_t __wrap_readlinkat(int at, const char *path, char *ret, size_t size);
ssize_t __wrap___readlinkat_chk(int at, const char *path, char *ret, size_t size, size_t room);
int __wrap_renameat(int from_at, const char *from, int to_at, const char *to);
int __wrap_rename(const char *from, const char *to);
int __wrap_unlinkat(int at, const char *path, int flags);
int __wrap_unlink(const char *path);
int __wrap_rmdir(const char *path);
int __wrap_mkdirat(int at, const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode);
int __wrap_symlinkat(const char *target, int at, const char *path);
int __wrap_fchmod(int fd, mode_t mode);
int __wrap_fchown(int fd, uid_t uid, gid_t gid);
DIR *__wrap_fdopendir(int fd);
DIR *__wrap_opendir(const char *path);
struct dirent *__wrap_readdir(DIR *dir);
int __wrap_closedir(DIR *dir);
int __wrap_dirfd(DIR *dir);
int __wrap_fcntl(int fd, int command, ...);
int __wrap_getrlimit(int resource, struct rlimit *ret);
int __wrap_setrlimit(int resource, const struct rlimit *limit);
void *__wrap_mmap(void *at, size_t len, int protection, int flags, int fd, off_t offset);
int __wrap_munmap(void *at, size_t len);

/* ---- libc_memory.c ---- */
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_reallocarray(void *old, size_t count, size_t size);
void __wrap_free(void *at);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t most);
int __wrap_vasprintf(char **ret, const char *format, va_list args)
	__attribute__((format(printf, 2, 0)));
int __wrap___vasprintf_chk(char **ret, int flag, const char *format, va_list args)
	__attribute__((format(printf, 3, 0)));
int __wrap_asprintf(char **ret, const char *format, ...) __attribute__((format(printf, 2, 3)));
int __wrap___asprintf_chk(char **ret, int flag, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* ---- libc_process.c ---- */
int __wrap_clock_gettime(clockid_t id, struct timespec *ret);
int __wrap_nanosleep(const struct timespec *t, struct timespec *ret_left);
ssize_t __wrap_getrandom(void *data, size_t len, unsigned flags);
long __wrap_syscall(long number, ...);
int __wrap_kill(pid_t pid, int number);
pid_t __wrap_getpid(void);
uid_t __wrap_geteuid(void);
gid_t __wrap_getegid(void);
char *__wrap_getenv(const char *name);
char *__wrap_secure_getenv(const char *name);
int __wrap_gethostname(char *ret, size_t size);
int __wrap_uname(struct utsname *ret);
struct passwd *__wrap_getpwnam(const char *name);
struct group *__wrap_getgrnam(const char *name);
int __wrap_isatty(int fd);
int __wrap_prctl(int option, ...);
size_t __wrap_fwrite(const void *data, size_t size, size_t count, FILE *f);
int __wrap_fflush(FILE *f);
_Noreturn void __wrap__exit(int status);

#endif
