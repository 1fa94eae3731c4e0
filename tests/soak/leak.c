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
#include <sys/syscall.h>
#include <unistd.h>

static int leaks(const char *what)
{
	const char *leak = getenv("SOAK_LEAK");

	return leak && strcmp(leak, what) == 0;
}

static int is_configuration(const char *path)
{
	size_t len = strlen(path), end = strlen("pullet.yaml");

	return len >= end && strcmp(path + len - end, "pullet.yaml") == 0;
}

/* openat2() has no function of its own. */
long syscall(long number, ...)
{
	static long (*real)(long, ...);
	va_list arguments;
	long a[6];

	va_start(arguments, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(arguments, long);
	va_end(arguments);
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "syscall");
	if (number == SYS_openat2 && leaks("descriptor") && is_configuration((const char *)a[1]))
		fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
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
