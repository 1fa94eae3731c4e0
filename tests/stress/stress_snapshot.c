/*
 * Readers against a writer that swaps as fast as it can: the real agent's image_publish() against
 * the real library, on memory and on a disk.
 *
 * What is checked: every version is whole (all its values say the same number), none is missing,
 * the generation never goes back, a version that is held through a thousand swaps still reads.
 * SIGBUS or a lost wake-up would end or hang the program.
 *
 * Usage: stress_snapshot [SWAPS]     (100000, under a sanitizer 5000: four fifths in memory, the
 * rest on a disk)
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../agent/image.h"
#include "../../lib/pullet.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SWAPS 5000
#else
#define SWAPS 100000
#endif
#define READERS 3
#define KEYS 40
#define LEAST_READS 1000000u
#define HELD_SWAPS 1000u

static char dir[64];
static _Atomic uint64_t published; /* newest generation that is in place */
static _Atomic bool ended;
static _Atomic uint64_t reads, moves;

static void die(const char *what, uint64_t a, uint64_t b)
{
	fprintf(stderr, "stress_snapshot: %s: %llu %llu\n", what, (unsigned long long)a,
		(unsigned long long)b);
	exit(1);
}

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
		image_build(document_root(d), 0, NULL, &data, ret_len, why))
		die("cannot build", n, 0);
	document_free(d);
	return data;
}

/* All values of the version that is open, as a number. */
static uint64_t read_all(struct pullet *p)
{
	char key[8];
	uint64_t n = 0, v;

	for (unsigned i = 0; i < KEYS; i++) {
		snprintf(key, sizeof(key), "k%u", i);
		v = (uint64_t)pullet_get_int(p, key, -1);
		if (i && v != n)
			die("torn", n, v);
		n = v;
	}
	atomic_fetch_add_explicit(&reads, KEYS, memory_order_relaxed);
	return n;
}

static void *reader(void *arg)
{
	bool sleeps = arg != NULL;
	struct pullet *p, *held;
	uint64_t last = 0, held_number = 0, n;
	int r;

	if (pullet_open("c", PULLET_WAIT_FIRST, &p) || pullet_open("c", PULLET_WAIT_FIRST, &held))
		die("cannot open", 0, 0);
	while (!atomic_load(&ended)) {
		r = sleeps ? pullet_wait(p, 1000) : pullet_refresh(p);
		if (r < 0)
			die("refresh", (uint64_t)-r, 0);
		if (pullet_generation(p) < last)
			die("went back", last, pullet_generation(p));
		if (r == 0 && !sleeps && atomic_load(&published) > pullet_generation(p) + 1 &&
			pullet_refresh(p) == 0 &&
			atomic_load(&published) > pullet_generation(p) + 1)
			die("missing", atomic_load(&published), pullet_generation(p));
		last = pullet_generation(p);
		n = last ? read_all(p) : 0;
		if (n != last)
			die("another version", last, n);
		moves += (unsigned)r;
		if (held_number == 0 || last > held_number + HELD_SWAPS) {
			if (held_number && read_all(held) != held_number)
				die("the held version changed", held_number, 0);
			if (pullet_refresh(held) < 0)
				die("refresh of the held one", 0, 0);
			held_number = pullet_generation(held);
		}
	}
	pullet_close(held);
	pullet_close(p);
	return NULL;
}

static void run(const char *base, uint64_t swaps)
{
	pthread_t threads[READERS];
	char why[FILE_WHY];
	struct image *image;

	snprintf(dir, sizeof(dir), "%s/stress-snapshot-XXXXXX", base);
	if (!mkdtemp(dir))
		die("cannot make a directory", (uint64_t)errno, 0);
	setenv("PULLET_RUNTIME_DIR", dir, 1);
	if (image_open(&sys_real, dir, "c", &image, why))
		die(why, 0, 0);
	ended = false;
	published = reads = moves = 0;
	for (uintptr_t i = 0; i < READERS; i++)
		if (pthread_create(&threads[i], NULL, reader, i == 0 ? dir : NULL))
			die("cannot start a thread", 0, 0);
	for (uint64_t n = 1; n <= swaps || reads < LEAST_READS; n++) {
		size_t len;
		void *data = build(n, &len);

		if (image_publish(image, data, len, n, why))
			die(why, n, 0);
		atomic_store(&published, n);
		free(data);
	}
	ended = true;
	for (unsigned i = 0; i < READERS; i++)
		pthread_join(threads[i], NULL);
	image_close(image);
	printf("ok - %s: %llu swaps, %llu reads, %llu moves\n", base, (unsigned long long)published,
		(unsigned long long)reads, (unsigned long long)moves);
	for (unsigned i = 0; i < 2; i++) {
		char path[96];

		snprintf(path, sizeof(path), "%s/c.%s", dir, i ? "gen" : "snap");
		unlink(path);
	}
	rmdir(dir);
}

int main(int argc, char **argv)
{
	uint64_t swaps = argc > 1 ? strtoull(argv[1], NULL, 10) : SWAPS;

	run("/dev/shm", swaps / 5 * 4);
	run("/tmp", swaps / 5);
	puts("2 passed, 0 failed");
	return 0;
}
