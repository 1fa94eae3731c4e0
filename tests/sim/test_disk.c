/* The simulated disk beside a real one: the same calls, the same results. Surprising: the real ones
 * are behind the linker's __real_ names, as the plain names are the simulated ones. */
#include "disk.h"
#include "libc.h"
#include "test_world.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define OPEN_FILES 8
#define LEVELS "1/2/3/4/5/6/7/8"

/* The system calls of one side. */
struct side {
	int (*openat)(int at, const char *path, int flags, ...);
	int (*close)(int fd);
	ssize_t (*read)(int fd, void *data, size_t len);
	ssize_t (*pread)(int fd, void *data, size_t len, off_t at);
	ssize_t (*write)(int fd, const void *data, size_t len);
	int (*fsync)(int fd);
	int (*fstatat)(int at, const char *path, struct stat *ret, int flags);
	ssize_t (*readlinkat)(int at, const char *path, char *ret, size_t size);
	int (*renameat)(int from_at, const char *from, int to_at, const char *to);
	int (*unlinkat)(int at, const char *path, int flags);
	int (*mkdirat)(int at, const char *path, mode_t mode);
	int (*symlinkat)(const char *target, int at, const char *path);
	int (*fchmod)(int fd, mode_t mode);
	int (*faccessat)(int at, const char *path, int mode, int flags);
	DIR *(*fdopendir)(int fd);
	struct dirent *(*readdir)(DIR *dir);
	int (*closedir)(DIR *dir);
	int root, fds[OPEN_FILES];
};

int __real_openat(int at, const char *path, int flags, ...);
int __real_close(int fd);
ssize_t __real_read(int fd, void *data, size_t len);
ssize_t __real_pread(int fd, void *data, size_t len, off_t at);
ssize_t __real_write(int fd, const void *data, size_t len);
int __real_fsync(int fd);
int __real_fstatat(int at, const char *path, struct stat *ret, int flags);
ssize_t __real_readlinkat(int at, const char *path, char *ret, size_t size);
int __real_renameat(int from_at, const char *from, int to_at, const char *to);
int __real_unlinkat(int at, const char *path, int flags);
int __real_mkdirat(int at, const char *path, mode_t mode);
int __real_symlinkat(const char *target, int at, const char *path);
int __real_fchmod(int fd, mode_t mode);
int __real_faccessat(int at, const char *path, int mode, int flags);
DIR *__real_fdopendir(int fd);
struct dirent *__real_readdir(DIR *dir);
int __real_closedir(DIR *dir);

static const struct side simulated = {openat, close, read, pread, write, fsync, fstatat, readlinkat,
	renameat, unlinkat, mkdirat, symlinkat, fchmod, faccessat, fdopendir, readdir, closedir, -1,
	{-1, -1, -1, -1, -1, -1, -1, -1}};
static const struct side real = {__real_openat, __real_close, __real_read, __real_pread,
	__real_write, __real_fsync, __real_fstatat, __real_readlinkat, __real_renameat,
	__real_unlinkat, __real_mkdirat, __real_symlinkat, __real_fchmod, __real_faccessat,
	__real_fdopendir, __real_readdir, __real_closedir, -1, {-1, -1, -1, -1, -1, -1, -1, -1}};

/* ---- what an operation is, and what came of it ---- */

struct operation {
	int kind, at, to_at, slot, flags; /* at: a slot, or -1 = the root */
	const char *path, *to;
	mode_t mode;
	size_t len;
	const char *data;
};

struct outcome {
	long result;
	int error;
	size_t len;
	char data[600];
};

static void note(struct outcome *o, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void note(struct outcome *o, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(o->data, sizeof(o->data), format, args);
	va_end(args);
	o->len = strlen(o->data);
}

static void end_call(struct outcome *o, long result)
{
	o->result = result < 0 ? -1 : result;
	o->error = result < 0 ? errno : 0;
}

static void describe_stat(struct outcome *o, const struct stat *st)
{
	note(o, "mode %o links %lu size %ld", (unsigned)st->st_mode, (unsigned long)st->st_nlink,
		S_ISDIR(st->st_mode) ? 0L : (long)st->st_size);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The names in the directory, in order. */
static void list_names(const struct side *s, int at, const char *path, struct outcome *o)
{
	int fd = s->openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : s->fdopendir(fd);
	char *names[64];
	struct dirent *e;
	size_t n = 0, len = 0;

	end_call(o, fd < 0 ? -1 : 0);
	while (d && (e = s->readdir(d)) && n < 64) {
		names[n] = strdup(e->d_name);
		assert_non_null(names[n++]);
	}
	if (d)
		s->closedir(d);
	qsort(names, n, sizeof(*names), compare_names);
	o->data[0] = '\0';
	for (size_t i = 0; i < n; i++) {
		len += (size_t)snprintf(o->data + len, sizeof(o->data) - len, "%s ", names[i]);
		free(names[i]);
	}
	o->len = strlen(o->data);
}

/* ---- operations ---- */

enum {
	OPEN,
	CLOSE,
	READ,
	PREAD,
	WRITE,
	SYNC,
	STAT,
	STAT_FD,
	LINK,
	RENAME,
	UNLINK,
	MKDIR,
	SYMLINK,
	CHMOD,
	ACCESS,
	LIST,
	KINDS
};

static void open_slot(struct side *s, const struct operation *op, int at, struct outcome *o)
{
	int fd = s->openat(at, op->path, op->flags | O_CLOEXEC, op->mode);

	end_call(o, fd < 0 ? -1 : 0);
	if (fd < 0)
		return;
	if (s->fds[op->slot] >= 0)
		s->close(s->fds[op->slot]);
	s->fds[op->slot] = fd;
}

static void do_by_fd(struct side *s, const struct operation *op, struct outcome *o)
{
	int fd = s->fds[op->slot];
	struct stat st;

	switch (op->kind) {
	case CLOSE:
		end_call(o, s->close(fd));
		s->fds[op->slot] = -1;
		break;
	case READ:
		end_call(o, s->read(fd, o->data, op->len));
		o->len = o->result > 0 ? (size_t)o->result : 0;
		break;
	case PREAD:
		end_call(o, s->pread(fd, o->data, op->len, op->flags));
		o->len = o->result > 0 ? (size_t)o->result : 0;
		break;
	case WRITE:
		end_call(o, s->write(fd, op->data, op->len));
		break;
	case SYNC:
		end_call(o, s->fsync(fd));
		break;
	case CHMOD:
		end_call(o, s->fchmod(fd, op->mode));
		break;
	default:
		end_call(o, s->fstatat(fd, "", &st, AT_EMPTY_PATH));
		if (o->result == 0)
			describe_stat(o, &st);
	}
}

static void do_by_path(struct side *s, const struct operation *op, struct outcome *o)
{
	int at = op->at < 0 ? s->root : s->fds[op->at];
	int to_at = op->to_at < 0 ? s->root : s->fds[op->to_at];
	struct stat st;

	switch (op->kind) {
	case OPEN:
		open_slot(s, op, at, o);
		break;
	case STAT:
		end_call(o, s->fstatat(at, op->path, &st, op->flags));
		if (o->result == 0)
			describe_stat(o, &st);
		break;
	case LINK:
		end_call(o, s->readlinkat(at, op->path, o->data, op->len));
		o->len = o->result > 0 ? (size_t)o->result : 0;
		break;
	case RENAME:
		end_call(o, s->renameat(at, op->path, to_at, op->to));
		break;
	case UNLINK:
		end_call(o, s->unlinkat(at, op->path, op->flags));
		break;
	case MKDIR:
		end_call(o, s->mkdirat(at, op->path, op->mode));
		break;
	case SYMLINK:
		end_call(o, s->symlinkat(op->to, at, op->path));
		break;
	case ACCESS:
		end_call(o, s->faccessat(at, op->path, op->flags, AT_EACCESS));
		break;
	default:
		list_names(s, at, op->path, o);
	}
}

static void run_operation(struct side *s, const struct operation *op, struct outcome *o)
{
	memset(o, 0, sizeof(*o));
	switch (op->kind) {
	case CLOSE:
	case READ:
	case PREAD:
	case WRITE:
	case SYNC:
	case CHMOD:
	case STAT_FD:
		do_by_fd(s, op, o);
		break;
	default:
		do_by_path(s, op, o);
	}
}

/* ---- which ones ---- */

static uint64_t draw(uint64_t bound)
{
	return world_random(STREAM_OPERATOR, bound);
}

#define PICK(list) ((list)[draw(sizeof(list) / sizeof((list)[0]) - 1)])

static const char *draw_path(void)
{
	static const char *const paths[] = {"a", "b", "c", "d", "a", "b", "c", "d", "d/a", "d/b",
		"c/a", "c/d", "c/d/a", "a/b", "..", ".", "a/", "d/", "c/..", "d/../a", "./b",
		"d//a", "../x", "", "l", "l", "l/a", "m", "m/b", "d/l"};

	return PICK(paths);
}

static int draw_flags(void)
{
	static const int flags[] = {O_RDONLY, O_RDONLY, O_RDONLY | O_DIRECTORY,
		O_RDONLY | O_DIRECTORY | O_NOFOLLOW, O_RDONLY | O_NOFOLLOW, O_RDWR | O_CREAT,
		O_RDWR | O_CREAT | O_NOFOLLOW, O_WRONLY | O_CREAT | O_EXCL, O_WRONLY | O_TRUNC,
		O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, O_RDWR, O_WRONLY | O_APPEND, O_PATH,
		O_PATH | O_NOFOLLOW, O_PATH | O_DIRECTORY | O_NOFOLLOW,
		O_WRONLY | O_CREAT | O_TRUNC, O_RDONLY | O_NONBLOCK | O_NOFOLLOW};

	return PICK(flags);
}

static struct operation draw_operation(const struct side *s)
{
	static const int kinds[] = {OPEN, OPEN, OPEN, CLOSE, READ, PREAD, WRITE, WRITE, SYNC, STAT,
		STAT, STAT_FD, LINK, RENAME, RENAME, UNLINK, MKDIR, MKDIR, SYMLINK, CHMOD, ACCESS,
		LIST};
	static const char *const targets[] = {
		"a", "d", "../8/c", ".", "l", "m", "d/a", "c/d", "nothing", "../x"};
	static const char data[] = "the quick brown fox jumps over the lazy dog, many times";
	struct operation op = {.kind = PICK(kinds), .at = -1, .to_at = -1, .data = data};

	op.slot = (int)draw(OPEN_FILES - 1);
	if (draw(3) == 0)
		op.at = (int)draw(OPEN_FILES - 1);
	if (op.at >= 0 && s->fds[op.at] < 0)
		op.at = -1;
	if (draw(7) == 0 && s->fds[op.slot] >= 0)
		op.to_at = op.slot;
	op.path = draw_path();
	op.to = op.kind == SYMLINK ? PICK(targets) : draw_path();
	op.flags = op.kind == OPEN     ? draw_flags()
		   : op.kind == UNLINK ? (draw(2) ? 0 : AT_REMOVEDIR)
		   : op.kind == STAT   ? (draw(1) ? 0 : AT_SYMLINK_NOFOLLOW)
		   : op.kind == ACCESS ? R_OK
				       : (int)draw(20);
	op.mode = 0700 | (mode_t)draw(077); /* anybody may run the test */
	op.len = op.kind == LINK ? 1 + draw(20) : draw(sizeof(data) - 1);
	return op;
}

/* ---- the comparison ---- */

static const char *const kind_names[KINDS] = {"open", "close", "read", "pread", "write", "fsync",
	"stat", "fstat", "readlink", "rename", "unlink", "mkdir", "symlink", "fchmod", "access",
	"list"};

static void compare_outcomes(uint64_t seed, int step, const struct operation *op,
	const struct outcome *sim, const struct outcome *is)
{
	if (sim->result == is->result && sim->error == is->error && sim->len == is->len &&
		memcmp(sim->data, is->data, is->len) == 0)
		return;
	fail_msg("seed %llu step %d: %s %d:%s (%d:%s) flags %#x: simulated %ld %s \"%.*s\", real "
		 "%ld %s \"%.*s\"",
		(unsigned long long)seed, step, kind_names[op->kind], op->at, op->path, op->to_at,
		op->to, (unsigned)op->flags, sim->result, strerror(sim->error), (int)sim->len,
		sim->data, is->result, strerror(is->error), (int)is->len, is->data);
}

static void remove_tree(int at, const char *name)
{
	int fd = __real_openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : __real_fdopendir(fd);
	struct dirent *e;

	while (d && (e = __real_readdir(d)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			remove_tree(fd, e->d_name);
	if (d)
		__real_closedir(d);
	__real_unlinkat(at, name, d ? AT_REMOVEDIR : 0);
}

/* The root of a side: eight levels down, so that no ".." leaves the place of the test. */
static void make_levels(struct side *s, int at)
{
	char path[] = LEVELS;

	for (size_t len = 1; len <= strlen(LEVELS); len += 2) {
		path[len] = '\0';
		assert_int_equal(s->mkdirat(at, path, 0755), 0);
		path[len] = LEVELS[len];
	}
	s->root = s->openat(at, LEVELS, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(s->root >= 0);
}

static void run_seed(uint64_t seed, int base)
{
	struct side sim = simulated, is = real;
	struct disk *d;
	struct outcome a, b;

	world_begin(seed);
	d = disk_new(seed & 1 ? DISK_JOURNAL : DISK_POSIX);
	disk_use(d);
	make_levels(&sim, AT_FDCWD);
	make_levels(&is, base);
	for (int step = 0; step < 60; step++) {
		struct operation op = draw_operation(&sim);

		run_operation(&sim, &op, &a);
		run_operation(&is, &op, &b);
		compare_outcomes(seed, step, &op, &a, &b);
	}
	for (int i = 0; i < OPEN_FILES; i++)
		if (is.fds[i] >= 0)
			is.close(is.fds[i]);
	is.close(is.root);
	remove_tree(base, "1");
	disk_free(d);
}

static char scratch[] = "/dev/shm/pullet-disk-XXXXXX";

static int remove_scratch(void **state)
{
	(void)state;
	remove_tree(AT_FDCWD, scratch);
	return 0;
}

static void random_calls__do_what_a_real_file_system_does(void **state)
{
	mode_t mask = umask(0);
	int base;

	(void)state;
	assert_non_null(mkdtemp(scratch));
	base = __real_openat(AT_FDCWD, scratch, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	disk_owner = OWNER_READER;
	for (uint64_t seed = 1; seed <= 4000; seed++)
		run_seed(seed, base);
	disk_owner = OWNER_WORLD;
	__real_close(base);
	umask(mask);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(
			random_calls__do_what_a_real_file_system_does, remove_scratch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
