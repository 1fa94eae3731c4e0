/*
 * Readers against a writer that swaps as fast as it can: the real agent's image_publish() against
 * the real library, in one directory after the other. Two readers sleep until there is a new
 * version, one looks all the time.
 *
 * What is checked: every version is whole (all its values say the same number), none that was in
 * place before a look is missing, the generation never goes back, a version that is held through a
 * thousand swaps still reads, nobody gets a SIGBUS. Each directory is done in a child, so that a
 * death is a finding; and once more with a writer that overwrites the file in place, which must be
 * found out.
 *
 * Usage: stress_snapshot [SWAPS [DIR...]]     (30000, under a sanitizer 5000; without a directory
 * nine tenths of them in memory, the rest on a disk; `make torture` swaps 100000 times)
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "publish/image.h"
#include "../../lib/pullet.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SWAPS 5000
#else
#define SWAPS 30000
#endif
#define READERS 3
#define SLEEPERS 2 /* of them */
#define KEYS 40
#define LEAST_READS 1000000u
#define HELD_SWAPS 1000u
#define FOUND 2 /* exit status: a reader saw what it must not */

static _Atomic uint64_t published; /* newest generation that is in place */
static _Atomic bool ended;
static _Atomic uint64_t reads, moves, held_reads;

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "stress_snapshot: %s (errno: %s)\n", what, strerror(errno));
	_exit(1);
}

static _Noreturn void found(const char *what, uint64_t a, uint64_t b)
{
	fprintf(stderr, "stress_snapshot: %s: %llu %llu\n", what, (unsigned long long)a,
		(unsigned long long)b);
	_exit(FOUND);
}

/* ---- the writer ---- */

/* A document whose values all are n. */
static void *build(uint64_t n, size_t *ret_len)
{
	char text[KEYS * 40], why[FILE_WHY];
	struct document_error e;
	struct document *d;
	size_t len = 0;
	void *data;

	for (unsigned i = 0; i < KEYS; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "k%u: \"%llu\"\n", i,
			(unsigned long long)n);
	if (document_parse(DOCUMENT_YAML, text, len, 0, &d, &e) ||
		image_build(document_root(d), 0, NULL, UINT32_MAX, &data, ret_len, why))
		die("cannot build");
	document_free(d);
	return data;
}

/* The seeded bug: what rename() does at once, piece by piece. */
static int overwrite(int from_dir, const char *from, int to_dir, const char *to)
{
	int in = openat(from_dir, from, O_RDONLY | O_CLOEXEC);
	int out = openat(to_dir, to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	char piece[256];
	ssize_t n = -1;

	while (in >= 0 && out >= 0 && (n = read(in, piece, sizeof(piece))) > 0)
		if (write(out, piece, (size_t)n) != n)
			die("write");
	close(in);
	close(out);
	return n < 0 ? -1 : unlinkat(from_dir, from, 0);
}

/* ---- a reader ---- */

/* All values of the version that is open, as a number. */
static uint64_t read_all(struct pullet *p)
{
	char key[8];
	uint64_t n = 0, v;

	for (unsigned i = 0; i < KEYS; i++) {
		snprintf(key, sizeof(key), "k%u", i);
		v = (uint64_t)pullet_get_int(p, key, -1);
		if (i && v != n)
			found("torn", n, v);
		n = v;
	}
	atomic_fetch_add_explicit(&reads, KEYS, memory_order_relaxed);
	return n;
}

/* The generation that is open after a look. Nothing that was published before may be missing. */
static uint64_t look(struct pullet *p, bool sleeps)
{
	uint64_t least = atomic_load(&published), before = pullet_generation(p), now;
	int r = sleeps ? pullet_wait(p, 1000) : pullet_refresh(p);

	now = pullet_generation(p);
	if (r < 0)
		found("refresh", (uint64_t)-r, before);
	if (now < before)
		found("went back", before, now);
	if (now < least)
		found("missing", least, now);
	if (now && read_all(p) != now)
		found("another version", now, 0);
	atomic_fetch_add_explicit(&moves, (unsigned)r, memory_order_relaxed);
	return now;
}

static void *reader(void *arg)
{
	bool sleeps = arg != NULL;
	struct pullet *p, *held;
	uint64_t now, held_number = 0;

	errno = 0;
	if (!sleeps && nice(19) < 0 &&
		errno) /* this thread only: it must not keep the others off */
		die("nice");
	if (pullet_open("c", PULLET_WAIT_FIRST, &p) || pullet_open("c", PULLET_WAIT_FIRST, &held))
		found("cannot open", 0, 0);
	do {
		now = look(p, sleeps);
		if (held_number && now <= held_number + HELD_SWAPS)
			continue;
		if (held_number && read_all(held) != held_number)
			found("the held version changed", held_number, 0);
		held_reads += held_number > 0;
		held_number = look(held, false);
	} while (!atomic_load(&ended));
	look(p, false); /* the last one is not missing either */
	pullet_close(held);
	pullet_close(p);
	return NULL;
}

/* ---- a run ---- */

/* In a child. */
static _Noreturn void run(const char *base, const char *dir, uint64_t swaps, const struct sys *sys)
{
	struct timespec begin, end;
	pthread_t threads[READERS];
	char why[FILE_WHY];
	struct image *image;
	uint64_t n = 0;

	if (setenv("PULLET_RUNTIME_DIR", dir, 1) || image_open(sys, dir, "c", NULL, &image, why))
		die("image_open");
	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (uintptr_t i = 0; i < READERS; i++)
		if (pthread_create(&threads[i], NULL, reader, i < SLEEPERS ? threads : NULL))
			die("cannot start a thread");
	while (n < swaps || reads < LEAST_READS) {
		size_t len;
		void *data = build(++n, &len);

		if (image_publish(image, data, len, n, why) < 0)
			die(why);
		atomic_store(&published, n);
		free(data);
	}
	ended = true;
	for (unsigned i = 0; i < READERS; i++)
		pthread_join(threads[i], NULL);
	clock_gettime(CLOCK_MONOTONIC, &end);
	image_close(image);
	if (swaps >= 4 * HELD_SWAPS && held_reads == 0)
		found("no version was held", n, 0);
	printf("ok - %s: %llu swaps, %llu reads, %llu moves, %llu versions held through %u swaps, "
	       "%.1f s\n",
		base, (unsigned long long)n, (unsigned long long)reads, (unsigned long long)moves,
		(unsigned long long)held_reads, HELD_SWAPS,
		(double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9);
	fflush(stdout);
	_exit(0);
}

/* In a fresh directory below base, with the seeded bug or without. True when it went as it must. */
static bool child(const char *base, uint64_t swaps, bool seeded)
{
	struct sys sys = sys_real;
	char dir[4096];
	int status = 0, fd;
	bool is_found;
	pid_t pid;

	if (seeded)
		sys.renameat = overwrite;
	snprintf(dir, sizeof(dir), "%s/stress-snapshot-XXXXXX", base);
	if (!mkdtemp(dir))
		die(base);
	fflush(stdout);
	pid = fork();
	if (pid < 0)
		die("fork");
	if (pid == 0) {
		signal(SIGBUS, SIG_DFL); /* a sanitizer would take it */
		fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
		if (seeded && dup2(fd, STDERR_FILENO) < 0)
			die("/dev/null");
		run(base, dir, swaps, &sys);
	}
	if (waitpid(pid, &status, 0) != pid)
		die("waitpid");
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	file_clean(&sys_real, fd, NULL); /* of a child that was killed */
	unlinkat(fd, "c.snap", 0);
	unlinkat(fd, "c.gen", 0);
	close(fd);
	if (rmdir(dir))
		printf("# %s: %s\n", dir, strerror(errno));
	is_found = WIFSIGNALED(status) ? WTERMSIG(status) == SIGBUS : WEXITSTATUS(status) == FOUND;
	if (seeded)
		printf("%s - %s: a writer in place is found out\n", is_found ? "ok" : "not ok",
			base);
	else if (status)
		printf("not ok - %s: %s\n", base,
			WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "see above");
	return seeded ? is_found : status == 0;
}

int main(int argc, char **argv)
{
	uint64_t swaps = argc > 1 ? strtoull(argv[1], NULL, 10) : SWAPS;
	unsigned passed = 0, done = 0, skipped = 0;

	for (int i = 2; i < argc; i++, done += 2)
		passed += child(argv[i], swaps, true) + child(argv[i], swaps, false);
	if (argc < 3) {
		passed = child("/tmp", swaps, true) + child("/tmp", swaps / 10, false);
		done = 2;
		if (access("/dev/shm", W_OK) == 0) {
			passed += child("/dev/shm", swaps, true) +
				  child("/dev/shm", swaps / 10 * 9, false);
			done = 4;
		} else {
			printf("ok - in memory # SKIP no /dev/shm to write in\n");
			skipped = 2;
		}
	}
	printf("%u passed, %u failed, %u skipped\n", passed, done - passed, skipped);
	return passed == done ? 0 : 1;
}
