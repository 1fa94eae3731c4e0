/*
 * One number in a small file. Surprising: what is not exactly such a line is no mark, and a number
 * that generations never reach is none either: they go on from what is read here.
 */
#include "publish/shown.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files/file.h"
#include "files/trusted.h"

#define LINE 24
#define HIGHEST (UINT64_C(1) << 62)

/* The runtime directory, if it lies in memory; else below 0. */
static int open_memory_dir(const struct sys *sys, const char *runtime_dir)
{
	char why[FILE_WHY];
	int dir = trusted_open_dir(sys, runtime_dir, TRUSTED_OWN, why);

	if (dir < 0 || file_in_memory(dir))
		return dir;
	sys->close(dir);
	return -1;
}

static void mark_name(const char *name, char ret_mark[NAME_MAX + 1])
{
	snprintf(ret_mark, NAME_MAX + 1, "%.200s.shown", name);
}

static int print_mark(char line[LINE], uint64_t generation)
{
	return snprintf(line, LINE, "%" PRIu64 "\n", generation);
}

static uint64_t read_mark(const struct sys *sys, int dir, const char *mark)
{
	char line[LINE] = "", again[LINE];
	int fd = sys->openat(dir, mark, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0);
	ssize_t n = fd < 0 ? -1 : sys->read(fd, line, sizeof(line) - 1);
	uint64_t generation = n > 0 ? strtoull(line, NULL, 10) : 0;

	if (fd >= 0)
		sys->close(fd);
	print_mark(again, generation);
	return generation <= HIGHEST && strcmp(line, again) == 0 ? generation : 0;
}

void shown_mark(
	const struct sys *sys, const char *runtime_dir, const char *name, uint64_t generation)
{
	const struct file_options options = {.mode = 0640, .uid = (uid_t)-1, .gid = (gid_t)-1};
	int dir = open_memory_dir(sys, runtime_dir);
	char mark[NAME_MAX + 1], line[LINE], why[FILE_WHY];

	if (dir < 0)
		return;
	mark_name(name, mark);
	if (read_mark(sys, dir, mark) != generation)
		file_replace(
			sys, dir, mark, line, (size_t)print_mark(line, generation), &options, why);
	sys->close(dir);
}

uint64_t shown_read(
	const struct sys *sys, const char *runtime_dir, const char *name, struct sweep *sweep)
{
	int dir = open_memory_dir(sys, runtime_dir);
	char mark[NAME_MAX + 1];
	uint64_t generation;

	if (dir < 0)
		return 0;
	mark_name(name, mark);
	if (sweep)
		sweep_clean(sweep, sys, dir, mark);
	generation = read_mark(sys, dir, mark);
	sys->close(dir);
	return generation;
}
