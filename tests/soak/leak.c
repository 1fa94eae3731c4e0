/*
 * The bugs that the soak must find. Preloaded into the agent: $SOAK_LEAK is "descriptor" (one that
 * each reading of pullet.yaml leaves open), "memory" (a kilobyte that each rename leaves behind) or
 * "file" (a name that each hundredth rename leaves behind).
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int leaks(const char *what)
{
	const char *leak = getenv("SOAK_LEAK");

	return leak && strcmp(leak, what) == 0;
}

static void leave_descriptor(const char *path)
{
	size_t len = strlen(path), end = strlen("pullet.yaml");

	if (leaks("descriptor") && len >= end && strcmp(path + len - end, "pullet.yaml") == 0)
		fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
}

int open(const char *path, int flags, ...)
{
	static int (*real)(const char *, int, ...);
	va_list arguments;
	mode_t mode;

	va_start(arguments, flags);
	mode = va_arg(arguments, mode_t);
	va_end(arguments);
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "open");
	leave_descriptor(path);
	return real(path, flags, mode);
}

int openat(int dir, const char *path, int flags, ...)
{
	static int (*real)(int, const char *, int, ...);
	va_list arguments;
	mode_t mode;

	va_start(arguments, flags);
	mode = va_arg(arguments, mode_t);
	va_end(arguments);
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "openat");
	leave_descriptor(path);
	return real(dir, path, flags, mode);
}

FILE *fopen(const char *path, const char *mode)
{
	static FILE *(*real)(const char *, const char *);

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "fopen");
	leave_descriptor(path);
	return real(path, mode);
}

int renameat(int from_dir, const char *from, int to_dir, const char *to)
{
	static int (*real)(int, const char *, int, const char *);
	static int renames;
	char left[300];
	char *lost;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "renameat");
	if (leaks("memory") && (lost = malloc(1024)))
		memset(lost, 1, 1024);
	if (leaks("file") && ++renames % 100 == 0) {
		snprintf(left, sizeof(left), ".left-%d", renames);
		linkat(from_dir, from, from_dir, left, 0);
	}
	return real(from_dir, from, to_dir, to);
}
