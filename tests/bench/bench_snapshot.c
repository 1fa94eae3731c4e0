/*
 * The snapshot beside what else an application could look its configuration up in, on the same keys
 * and values in one run: LMDB (one long read transaction), tinycdb, an open-addressing hash in the
 * process with the same hash function, getenv, and reading and parsing a YAML file each time.
 *
 * A lookup gets a key from an array of keys in random order (16 hot ones, or all alike), and the
 * first and the last byte of the value are read, as somebody who wants the value would. Each
 * contender has its own loop, so that none pays for an indirect call. Contenders alternate round by
 * round; medians are printed, and ratios are medians of the rounds' ratios. Lookups are timed by
 * the processor time that they take, so that other work on the machine counts less. A second
 * process on another processor has handles of its own; both read for the same time, and their rates
 * are added.
 *
 * Then: pullet_refresh() with nothing new and to a new image, from the swap to a sleeping reader
 * awake beside a bare futex and inotify, and what making an image of a million keys takes.
 *
 * All files are in memory, below /dev/shm.
 */
#include <cdb.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <linux/futex.h>
#include <lmdb.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "document/document.h"
#include "publish/image.h"
#include "../../lib/page.h"
#include "../../lib/snapshot.h"
#include "bench.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define ROUNDS 11u
#define BATCH 1024u /* lookups between two looks at the clock */
#define HOT 16u
#define HOT_QUERIES (2 * BATCH)
#define UNIFORM_QUERIES (512 * BATCH)
#define VALUE 100u /* bytes */
#define POOL 4096u
#define YAML 1024u
#define MILLION 1000000u
#define LARGE 6400u /* keys: an image of 1 MB */
#define REFRESHES 400u
#define WAKES 2000u
#define GIVE_UP_NS 2000000000u

struct key { /* 32 bytes, in the order in which they are asked for: reading them is no miss */
	char text[24];
	uint32_t len, hot; /* hot: its place among the hot ones */
};

static char base[64];
static struct key *keys, *queries[2]; /* hot, uniform */
static struct key hot_keys[HOT];
static const size_t query_counts[2] = {HOT_QUERIES, UNIFORM_QUERIES};
static char pool[POOL + VALUE]; /* a value is a piece of it */
static char **own_environ;
static volatile unsigned sink;

static void die(const char *what)
{
	fprintf(stderr, "bench_snapshot: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void *memory(size_t n)
{
	void *p = malloc(n);

	if (!p)
		die("memory");
	return p;
}

static void *shared(size_t n)
{
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		die("shared memory");
	return p;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static void clean_up(void)
{
	if (base[0])
		nftw(base, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	base[0] = '\0';
}

static void interrupted(int number)
{
	clean_up();
	_exit(128 + number);
}

static const char *path_of(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", base, name);
	return path;
}

static void stand_on(unsigned processor)
{
	cpu_set_t set;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		return;
	CPU_ZERO(&set);
	CPU_SET(processor, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/* A child that dies with its parent, on a processor. */
static pid_t fork_on(unsigned processor)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		die("fork");
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		signal(SIGINT, SIG_DFL);
		signal(SIGTERM, SIG_DFL);
		stand_on(processor);
	}
	return pid;
}

static void end(pid_t child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

/* ---- keys and values ---- */

static void make_keys(uint32_t count)
{
	static const char *const words[] = {
		"db", "http", "cache", "limits", "feature", "log", "auth", "queue"};
	uint64_t seed = count;

	keys = memory(count * sizeof(*keys));
	for (uint32_t i = 0; i < count; i++)
		keys[i].len = (uint32_t)snprintf(keys[i].text, sizeof(keys[i].text),
			"svc%u.%s.key%u", (unsigned)(bench_random(&seed) % 100),
			words[bench_random(&seed) % COUNT(words)], (unsigned)i);
	for (uint32_t i = 0; i < HOT; i++) {
		hot_keys[i] = keys[bench_random(&seed) % count];
		hot_keys[i].hot = i;
	}
	for (unsigned w = 0; w < 2; w++) {
		queries[w] = memory(query_counts[w] * sizeof(**queries));
		for (size_t i = 0; i < query_counts[w]; i++)
			queries[w][i] = w == 0 ? hot_keys[bench_random(&seed) % HOT]
					       : keys[bench_random(&seed) % count];
	}
}

static void free_keys(void)
{
	free(keys);
	free(queries[0]);
	free(queries[1]);
}

static const char *value_of(uint32_t i)
{
	return pool + i * UINT32_C(2654435761) % POOL;
}

static struct snapshot_entry *make_entries(uint32_t count, const char *values)
{
	struct snapshot_entry *entries = memory(count * sizeof(*entries));

	for (uint32_t i = 0; i < count; i++)
		entries[i] = (struct snapshot_entry){.key = keys[i].text,
			.key_len = keys[i].len,
			.value = {.type = PULLET_STRING,
				.len = VALUE,
				.text = values ? values + (size_t)i * VALUE : value_of(i)}};
	return entries;
}

/* ---- the writer ---- */

struct written {
	double build_ms, publish_ms, times_in_memory, mb;
};

static double resident_peak(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double)usage.ru_maxrss * 1024;
}

/* In a child, for its memory: all of it counts, the keys and values that the image is made from as
 * well. */
static void write_snapshot(uint32_t count, struct written *ret)
{
	struct snapshot_entry *entries;
	struct image *image;
	double before = resident_peak();
	char why[FILE_WHY], *values;
	uint64_t begin_ns;
	void *data;
	size_t len;

	make_keys(count);
	values = memory((size_t)count * VALUE);
	for (uint32_t i = 0; i < count; i++)
		memcpy(values + (size_t)i * VALUE, value_of(i), VALUE);
	if (image_open(&sys_real, base, "bench", NULL, &image, why))
		die(why);
	free(queries[0]);
	free(queries[1]);
	begin_ns = bench_now_ns();
	entries = make_entries(count, values);
	if (snapshot_build(entries, count, 1, 1, "v", &data, &len))
		die("snapshot_build");
	ret->build_ms = (double)(bench_now_ns() - begin_ns) / 1e6;
	begin_ns = bench_now_ns();
	if (image_publish(image, data, len, count, why) < 0)
		die(why);
	ret->publish_ms = (double)(bench_now_ns() - begin_ns) / 1e6;
	ret->mb = (double)len / 1e6;
	ret->times_in_memory =
		(resident_peak() - before - HOT_QUERIES * 32 - UNIFORM_QUERIES * 32) / (double)len;
}

/* ---- the contenders ---- */

struct plain_slot {
	uint32_t tag, offset; /* offset 0: empty */
};

static struct {
	struct plain_slot *slots;
	char *records; /* key_len, value_len (4 bytes each), key, value, one after the other */
	uint32_t mask;
} plain;

static struct pullet *handle;
static struct pullet_key named[HOT];
static struct cdb cdb;
static MDB_env *env;
static MDB_txn *txn;
static MDB_dbi dbi;
static char yaml_path[128];

static void make_plain(uint32_t count)
{
	size_t slots = 2, at = 8, room = 8;

	while (slots < 2 * (size_t)count)
		slots *= 2;
	for (uint32_t i = 0; i < count; i++)
		room += 8 + keys[i].len + VALUE;
	plain.slots = calloc(slots, sizeof(*plain.slots));
	plain.records = memory(room + 8 * (size_t)count);
	plain.mask = (uint32_t)slots - 1;
	if (!plain.slots)
		die("memory");
	for (uint32_t i = 0; i < count; i++) {
		const uint32_t lens[2] = {keys[i].len, VALUE};
		uint64_t hash = XXH3_64bits(keys[i].text, keys[i].len);
		uint32_t slot = (uint32_t)hash & plain.mask;

		while (plain.slots[slot].offset)
			slot = (slot + 1) & plain.mask;
		plain.slots[slot] = (struct plain_slot){(uint32_t)(hash >> 32), (uint32_t)at};
		memcpy(plain.records + at, lens, 8);
		memcpy(plain.records + at + 8, keys[i].text, keys[i].len);
		memcpy(plain.records + at + 8 + keys[i].len, value_of(i), VALUE);
		at = (at + 8 + keys[i].len + VALUE + 7) & ~(size_t)7;
	}
}

static void make_cdb(uint32_t count)
{
	int fd = open(path_of("bench.cdb"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	struct cdb_make make;

	if (fd < 0 || cdb_make_start(&make, fd))
		die("cdb");
	for (uint32_t i = 0; i < count; i++)
		if (cdb_make_add(&make, keys[i].text, keys[i].len, value_of(i), VALUE))
			die("cdb");
	if (cdb_make_finish(&make))
		die("cdb");
	close(fd);
}

static void lmdb_must(int r)
{
	if (r == 0)
		return;
	fprintf(stderr, "bench_snapshot: LMDB: %s\n", mdb_strerror(r));
	exit(1);
}

static void make_lmdb(uint32_t count)
{
	unlink(path_of("bench.mdb"));
	unlink(path_of("bench.mdb-lock"));
	lmdb_must(mdb_env_create(&env));
	lmdb_must(mdb_env_set_mapsize(env, (size_t)1 << 30));
	lmdb_must(mdb_env_open(env, path_of("bench.mdb"), MDB_NOSUBDIR | MDB_NOSYNC, 0600));
	lmdb_must(mdb_txn_begin(env, NULL, 0, &txn));
	lmdb_must(mdb_dbi_open(txn, NULL, 0, &dbi));
	for (uint32_t i = 0; i < count; i++) {
		MDB_val key = {keys[i].len, keys[i].text};
		MDB_val value = {VALUE, (void *)(uintptr_t)value_of(i)};

		lmdb_must(mdb_put(txn, dbi, &key, &value, 0));
	}
	lmdb_must(mdb_txn_commit(txn));
	mdb_env_close(env);
}

static void make_environ(uint32_t count)
{
	own_environ = memory((count + 1) * sizeof(*own_environ));
	for (uint32_t i = 0; i < count; i++)
		if (asprintf(&own_environ[i], "%s=%.*s", keys[i].text, (int)VALUE, value_of(i)) < 0)
			die("memory");
	own_environ[count] = NULL;
}

static void free_environ(void)
{
	for (size_t i = 0; own_environ && own_environ[i]; i++)
		free(own_environ[i]);
	free(own_environ);
	own_environ = NULL;
}

static void make_yaml(void)
{
	int fd, len = 0;
	char text[YAML + 256];

	for (unsigned i = 0; len < (int)YAML; i++)
		len += snprintf(text + len, sizeof(text) - (size_t)len, "key%u: value %.*s\n", i,
			(int)VALUE, pool + i);
	text[YAML - 1] = '\n';
	snprintf(yaml_path, sizeof(yaml_path), "%s", path_of("bench.yaml"));
	fd = open(yaml_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, text, YAML) != YAML)
		die(yaml_path);
	close(fd);
}

/* Each process has handles of its own; the hash in the process is the one it was forked with. */
static void open_all(void)
{
	int fd = open(path_of("bench.cdb"), O_RDONLY | O_CLOEXEC);

	if (fd < 0 || cdb_init(&cdb, fd))
		die("cdb");
	lmdb_must(mdb_env_create(&env));
	lmdb_must(mdb_env_set_mapsize(env, (size_t)1 << 30));
	lmdb_must(mdb_env_open(env, path_of("bench.mdb"), MDB_NOSUBDIR | MDB_RDONLY, 0600));
	lmdb_must(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn));
	lmdb_must(mdb_dbi_open(txn, NULL, 0, &dbi));
	errno = -pullet_open(path_of("bench.snap"), 0, &handle);
	if (errno)
		die("pullet_open");
	for (size_t i = 0; i < HOT; i++)
		pullet_key_init(&named[i], handle, hot_keys[i].text, hot_keys[i].len);
}

static void close_all(void)
{
	pullet_close(handle);
	mdb_txn_abort(txn);
	mdb_env_close(env);
	close(cdb_fileno(&cdb));
	cdb_free(&cdb);
	free(plain.slots);
	free(plain.records);
}

/* ---- lookups: the value, or NULL ---- */

typedef const char *(*get_fn)(const struct key *key, size_t *ret_len);

/* Not inlined, as a hash that is somebody's library would not be. */
static __attribute__((noinline)) const char *plain_find(
	const char *key, size_t key_len, size_t *ret_len)
{
	uint64_t hash = XXH3_64bits(key, key_len);
	uint32_t tag = (uint32_t)(hash >> 32), slot = (uint32_t)hash & plain.mask;

	for (; plain.slots[slot].offset; slot = (slot + 1) & plain.mask) {
		const char *record;
		uint32_t lens[2];

		if (plain.slots[slot].tag != tag)
			continue;
		record = plain.records + plain.slots[slot].offset;
		memcpy(lens, record, 8);
		if (lens[0] != key_len || memcmp(record + 8, key, key_len) != 0)
			continue;
		*ret_len = lens[1];
		return record + 8 + key_len;
	}
	return NULL;
}

static const char *get_plain(const struct key *key, size_t *ret_len)
{
	return plain_find(key->text, key->len, ret_len);
}

static const char *get_pullet(const struct key *key, size_t *ret_len)
{
	struct pullet_value v;

	if (pullet_get(handle, key->text, key->len, &v))
		return NULL;
	*ret_len = v.len;
	return v.text;
}

static const char *get_named(const struct key *key, size_t *ret_len)
{
	const struct pullet_value *v = pullet_key_get(&named[key->hot]);

	if (!v)
		return NULL;
	*ret_len = v->len;
	return v->text;
}

static const char *get_cdb(const struct key *key, size_t *ret_len)
{
	if (cdb_find(&cdb, key->text, key->len) <= 0)
		return NULL;
	*ret_len = cdb_datalen(&cdb);
	return cdb_getdata(&cdb);
}

static const char *get_lmdb(const struct key *key, size_t *ret_len)
{
	MDB_val k = {key->len, (void *)(uintptr_t)key->text}, v;

	if (mdb_get(txn, dbi, &k, &v))
		return NULL;
	*ret_len = v.mv_size;
	return v.mv_data;
}

static const char *get_getenv(const struct key *key, size_t *ret_len)
{
	*ret_len = VALUE;
	return getenv(key->text);
}

static const char *get_yaml(const struct key *key, size_t *ret_len)
{
	static char first[2];
	struct document_error error;
	struct document *d;
	char text[2 * YAML];
	int fd = open(yaml_path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));
	const struct node *v;

	(void)key;
	if (fd >= 0)
		close(fd);
	if (n <= 0 || document_parse(DOCUMENT_YAML, text, (size_t)n, 0, &d, &error))
		return NULL;
	v = node_find(document_root(d), "key5");
	first[0] = v ? v->text[0] : '\0';
	*ret_len = 1;
	document_free(d);
	return v ? first : NULL;
}

/* ---- loops ---- */

struct tally {
	uint64_t lookups, ns; /* of processor time */
};

static uint64_t processor_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Inlined with a get that is known, so that the call of it is direct. */
static inline __attribute__((always_inline)) struct tally run(
	get_fn get, unsigned w, size_t *at, uint64_t for_ns)
{
	struct tally tally = {0, 0};
	uint64_t begin_ns = processor_ns(), until_ns = bench_now_ns() + for_ns;
	unsigned sum = 0;

	do {
		const struct key *key = queries[w] + *at;

		for (size_t i = 0; i < BATCH; i++) {
			const char *text;
			size_t len;

			text = get(&key[i], &len);
			if (!text) {
				fprintf(stderr, "bench_snapshot: %s is lost\n", key[i].text);
				exit(1);
			}
			sum += (unsigned char)text[0] + (unsigned char)text[len - 1];
		}
		*at = (*at + BATCH) % query_counts[w];
		tally.lookups += BATCH;
	} while (bench_now_ns() < until_ns);
	tally.ns = processor_ns() - begin_ns;
	sink += sum;
	return tally;
}

enum { PULLET, PLAIN, CDB, LMDB, NAMED, GETENV, YAML_FILE, CONTENDERS };

static const char *const names[CONTENDERS] = {"pullet_get", "open addressing + XXH3, plain",
	"tinycdb", "LMDB, long transaction", "pullet_key_get", "getenv",
	"read + parse 1 KiB of YAML"};

static struct tally run_contender(unsigned c, unsigned w, size_t *at, uint64_t for_ns)
{
	switch (c) {
	case PULLET:
		return run(get_pullet, w, at, for_ns);
	case PLAIN:
		return run(get_plain, w, at, for_ns);
	case CDB:
		return run(get_cdb, w, at, for_ns);
	case LMDB:
		return run(get_lmdb, w, at, for_ns);
	case NAMED:
		return run(get_named, w, at, for_ns);
	case GETENV:
		return run(get_getenv, w, at, for_ns);
	default:
		return run(get_yaml, w, at, for_ns);
	}
}

/* ---- two processes ---- */

struct command {
	unsigned contender, workload;
	uint64_t for_ns;
};

static struct together {
	_Atomic unsigned ready, go, done;
	struct tally tally;
} * together;

/* All of the memory is there, and translated. */
static void warm_up(void)
{
	size_t at = 0;

	for (unsigned c = PULLET; c <= LMDB; c++)
		run_contender(c, 1, &at, 300000000);
}

static void second_process(int commands)
{
	struct command command;
	size_t at[2] = {0, UNIFORM_QUERIES / 2};

	open_all();
	warm_up();
	while (read(commands, &command, sizeof(command)) == sizeof(command)) {
		atomic_store(&together->ready, 1);
		while (!atomic_load(&together->go))
			;
		together->tally = run_contender(
			command.contender, command.workload, &at[command.workload], command.for_ns);
		atomic_store(&together->done, 1);
	}
	_exit(0);
}

static double rate(struct tally t)
{
	return (double)t.lookups * 1e3 / (double)t.ns;
}

/* Both together, millions a second. */
static double run_both(int commands, struct command command, size_t *at)
{
	struct tally mine;

	atomic_store(&together->ready, 0);
	atomic_store(&together->go, 0);
	atomic_store(&together->done, 0);
	if (write(commands, &command, sizeof(command)) != sizeof(command))
		die("the second process");
	while (!atomic_load(&together->ready))
		;
	atomic_store(&together->go, 1);
	mine = run_contender(command.contender, command.workload, at, command.for_ns);
	while (!atomic_load(&together->done))
		;
	return rate(mine) + rate(together->tally);
}

static const uint32_t counts[] = {100, 10000, MILLION};
static double ns_each[CONTENDERS][2 * COUNT(counts)], both[CONTENDERS][2 * COUNT(counts)],
	gain[CONTENDERS][2 * COUNT(counts)], /* both : one */
	of[CONTENDERS][2 * COUNT(counts)];   /* pullet's time : this one's */

static bool takes_part(unsigned c, size_t size, unsigned w)
{
	return c == NAMED ? w == 0 : c == GETENV ? size < 2 : c == YAML_FILE ? size == 0 : true;
}

static void measure(size_t size, unsigned w, int commands)
{
	uint64_t for_ns = size == 2 && w == 1 ? 60000000 : 15000000;
	static double alone[CONTENDERS][ROUNDS], total[CONTENDERS][ROUNDS];
	double ratio[2][ROUNDS];
	size_t at = 0, column = 2 * size + w;

	for (unsigned round = 0; round < ROUNDS; round++)
		for (unsigned c = 0; c < CONTENDERS; c++) {
			struct command command = {c, w, for_ns};

			if (!takes_part(c, size, w))
				continue;
			alone[c][round] = rate(run_contender(c, w, &at, for_ns));
			total[c][round] = run_both(commands, command, &at);
		}
	for (unsigned c = 0; c < CONTENDERS; c++) {
		ns_each[c][column] = both[c][column] = gain[c][column] = NAN;
		if (!takes_part(c, size, w))
			continue;
		for (unsigned round = 0; round < ROUNDS; round++) {
			ratio[0][round] = total[c][round] / alone[c][round];
			ratio[1][round] = alone[c][round] / alone[PULLET][round];
		}
		gain[c][column] = bench_median(ratio[0], ROUNDS);
		of[c][column] = bench_median(ratio[1], ROUNDS);
	}
	for (unsigned c = 0; c < CONTENDERS; c++) /* sorts */
		if (takes_part(c, size, w)) {
			ns_each[c][column] = 1e3 / bench_median(alone[c], ROUNDS);
			both[c][column] = bench_median(total[c], ROUNDS);
		}
}

static void measure_size(size_t size, struct written *written)
{
	char **environ_before = environ;
	int commands[2];
	pid_t child = fork_on(0);

	if (child == 0) {
		write_snapshot(counts[size], written);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	make_keys(counts[size]);
	make_plain(counts[size]);
	make_cdb(counts[size]);
	make_lmdb(counts[size]);
	if (takes_part(GETENV, size, 0)) {
		make_environ(counts[size]);
		environ = own_environ;
	}
	if (pipe2(commands, O_CLOEXEC))
		die("pipe");
	child = fork_on(1);
	if (child == 0) {
		close(commands[1]);
		second_process(commands[0]);
	}
	open_all();
	warm_up();
	for (unsigned w = 0; w < 2; w++)
		measure(size, w, commands[1]);
	close(commands[0]);
	close(commands[1]);
	end(child);
	environ = environ_before;
	free_environ();
	close_all();
	free_keys();
}

static void print_lookups(void)
{
	static const char *const columns[] = {
		"100 hot", "uniform", "10,000 hot", "uniform", "million hot", "uniform"};
	char what[96];

	bench_head("ns a lookup, 100 B values", columns, COUNT(columns));
	for (unsigned c = 0; c < CONTENDERS; c++)
		bench_row(names[c], ns_each[c], COUNT(columns));
	bench_head("2 processes, total M/s", columns, COUNT(columns));
	for (unsigned c = 0; c < CONTENDERS; c++)
		bench_row(names[c], both[c], COUNT(columns));
	printf("\n");
	for (size_t i = 0; i < COUNT(columns); i++) {
		snprintf(what, sizeof(what), "%u keys, %s, pullet_get : plain hash", counts[i / 2],
			i % 2 ? "uniform" : "hot");
		bench_ratio(what, of[PLAIN][i], 1.3);
	}
	for (size_t i = 0; i < COUNT(columns); i += 2) {
		snprintf(what, sizeof(what), "%u keys, hot, pullet_key_get", counts[i / 2]);
		bench_target(what, ns_each[NAMED][i], 3, "ns");
	}
	for (size_t i = 0; i < COUNT(columns); i++) {
		snprintf(what, sizeof(what), "%u keys, %s, pullet_get : tinycdb", counts[i / 2],
			i % 2 ? "uniform" : "hot");
		bench_ratio(what, of[CDB][i], 0.5);
	}
	for (size_t i = 0; i < COUNT(columns); i++) {
		snprintf(what, sizeof(what), "%u keys, %s, two readers : one", counts[i / 2],
			i % 2 ? "uniform" : "hot");
		bench_least(what, gain[PULLET][i], 1.9, "x");
		printf("      (plain hash: %.2f x)\n", gain[PLAIN][i]);
	}
}

/* ---- refresh ---- */

static void *build(uint32_t count, size_t *ret_len)
{
	struct snapshot_entry *entries = make_entries(count, NULL);
	void *data;

	if (snapshot_build(entries, count, 1, 1, "v", &data, ret_len))
		die("snapshot_build");
	free(entries);
	return data;
}

static double refresh_unchanged(struct pullet *p)
{
	enum { CALLS = 4000000 };
	double ns[ROUNDS];

	for (unsigned round = 0; round < ROUNDS; round++) {
		uint64_t begin_ns = processor_ns();
		int sum = 0;

		for (unsigned i = 0; i < CALLS; i++)
			sum += pullet_refresh(p);
		ns[round] = (double)(processor_ns() - begin_ns) / CALLS;
		if (sum)
			die("a refresh moved");
	}
	return bench_median(ns, ROUNDS);
}

/* What a refresh consists of at least. */
static void bare_mapping(bool touch)
{
	int fd = open(path_of("large.snap"), O_RDONLY | O_CLOEXEC);
	struct stat st;
	unsigned char *map;

	if (fd < 0 || fstat(fd, &st))
		die("large.snap");
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		die("mmap");
	close(fd);
	for (size_t i = 0; touch && i < (size_t)st.st_size; i += 4096)
		sink += map[i];
	munmap(map, (size_t)st.st_size);
}

static double us_since(uint64_t begin_ns)
{
	return (double)(bench_now_ns() - begin_ns) / 1e3;
}

static double look_all_up(struct pullet *p)
{
	uint64_t begin_ns = bench_now_ns();
	struct pullet_value v;

	for (size_t i = 0; i < LARGE; i++) {
		if (pullet_get(p, keys[i].text, keys[i].len, &v))
			die(keys[i].text);
		sink += (unsigned char)v.text[0];
	}
	return us_since(begin_ns);
}

/* As the agent has it. */
static struct page *map_large_page(void)
{
	int fd = open(path_of("large.gen"), O_RDWR | O_CLOEXEC);
	void *page = mmap(NULL, PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (fd < 0 || page == MAP_FAILED)
		die("large.gen");
	close(fd);
	return page;
}

static void measure_refresh(void)
{
	enum {
		REFRESH,
		UNVERIFIED,
		LOOKUPS,
		AGAIN,
		REFRESH_SMALL,
		MAPPED,
		TOUCHED,
		XXH64_DIGEST,
		XXH3_DIGEST,
		COPY,
		STEPS
	};
	static const char *const steps[STEPS] = {"pullet_refresh, new image of 1 MB",
		"the same, read whole", "then its 6,400 keys, once", "and once more",
		"pullet_refresh, 16 keys", "open + mmap + munmap of it",
		"the same, each page touched", "XXH64 over 1 MB", "XXH3 over 1 MB",
		"memcpy of 1 MB"};
	static const char *const columns[] = {"p50 us", "p99 us"};
	static double us[STEPS][REFRESHES];
	struct pullet *p;
	struct image *image;
	struct page *page;
	char why[FILE_WHY];
	size_t len;
	void *data, *copy, *small_data;
	struct pullet *small;
	struct image *small_image;
	size_t small_len;
	double unchanged, p50[STEPS];

	make_keys(LARGE);
	data = build(LARGE, &len);
	small_data = build(HOT, &small_len);
	copy = memory(len);
	if (image_open(&sys_real, base, "large", NULL, &image, why) ||
		image_publish(image, data, len, 1, why) ||
		image_open(&sys_real, base, "small", NULL, &small_image, why) ||
		image_publish(small_image, small_data, small_len, 1, why))
		die(why);
	if (pullet_open(path_of("large.snap"), 0, &p) ||
		pullet_open(path_of("small.snap"), 0, &small))
		die("pullet_open");
	unchanged = refresh_unchanged(p);
	page = map_large_page();
	for (unsigned i = 0; i < REFRESHES; i++) {
		uint64_t begin_ns;

		if (image_publish(image, data, len, 2 * i + 2, why))
			die(why);
		begin_ns = bench_now_ns();
		if (pullet_refresh(p) != 1)
			die("pullet_refresh");
		us[REFRESH][i] = us_since(begin_ns);
		us[LOOKUPS][i] = look_all_up(p);
		us[AGAIN][i] = look_all_up(p);
		if (image_publish(image, data, len, 2 * i + 3, why))
			die(why);
		atomic_store(&page->verified_ino, 0);
		begin_ns = bench_now_ns();
		if (pullet_refresh(p) != 1)
			die("pullet_refresh");
		us[UNVERIFIED][i] = us_since(begin_ns);
		if (image_publish(small_image, small_data, small_len, i + 2, why))
			die(why);
		begin_ns = bench_now_ns();
		if (pullet_refresh(small) != 1)
			die("pullet_refresh");
		us[REFRESH_SMALL][i] = us_since(begin_ns);
		begin_ns = bench_now_ns();
		bare_mapping(false);
		us[MAPPED][i] = us_since(begin_ns);
		begin_ns = bench_now_ns();
		bare_mapping(true);
		us[TOUCHED][i] = us_since(begin_ns);
		begin_ns = bench_now_ns();
		sink += (unsigned)XXH64(data, len, 0);
		us[XXH64_DIGEST][i] = us_since(begin_ns);
		begin_ns = bench_now_ns();
		sink += (unsigned)XXH3_64bits(data, len);
		us[XXH3_DIGEST][i] = us_since(begin_ns);
		begin_ns = bench_now_ns();
		memcpy(copy, data, len);
		us[COPY][i] = us_since(begin_ns);
		sink += ((unsigned char *)copy)[i];
	}
	bench_head("a new version", columns, COUNT(columns));
	for (unsigned s = 0; s < STEPS; s++) {
		double figures[2];

		figures[0] = p50[s] = bench_median(us[s], REFRESHES);
		figures[1] = bench_quantile(us[s], REFRESHES, 0.99);
		bench_row(steps[s], figures, 2);
	}
	printf("\n");
	bench_target("pullet_refresh, nothing new", unchanged, 2, "ns");
	bench_target("pullet_refresh, a new image of 1 MB, p50", p50[REFRESH], 150, "us");
	pullet_close(p);
	pullet_close(small);
	munmap(page, PAGE_SIZE);
	image_close(image);
	image_close(small_image);
	free(data);
	free(small_data);
	free(copy);
	free_keys();
}

/* ---- from the swap to a reader awake ---- */

enum { WAKE_PAGE, WAKE_PULLET, WAKE_FUTEX, WAKE_INOTIFY, WAYS };

static struct wakes {
	_Atomic uint32_t word;
	_Atomic uint64_t awake_ns[WAYS];
} * wakes;
static uint64_t swapped_ns;

/* The moment of the swap: just before the name is given to the new image. */
static int rename_and_note(int from_dir, const char *from, int to_dir, const char *to)
{
	swapped_ns = bench_now_ns();
	return renameat(from_dir, from, to_dir, to);
}

/* What pullet_wait() sleeps on, and nothing more: lib/FORMAT.md has the page's layout. */
static void sleep_on_page(void)
{
	int fd = open(path_of("page.gen"), O_RDONLY | O_CLOEXEC);
	const unsigned char *page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	const _Atomic uint32_t *futex;

	if (fd < 0 || page == MAP_FAILED)
		die("page.gen");
	futex = (const _Atomic uint32_t *)(page + 16);
	for (uint32_t seen = atomic_load(futex);;) {
		while (atomic_load(futex) == seen)
			syscall(SYS_futex, futex, FUTEX_WAIT, seen, NULL, NULL, 0);
		atomic_store(&wakes->awake_ns[WAKE_PAGE], bench_now_ns());
		seen = atomic_load(futex);
	}
}

static void sleep_in_pullet(void)
{
	struct pullet *p;

	errno = -pullet_open(path_of("wake.snap"), 0, &p);
	if (errno)
		die("pullet_open");
	for (;;) {
		if (pullet_wait(p, -1) != 1)
			die("pullet_wait");
		atomic_store(&wakes->awake_ns[WAKE_PULLET], bench_now_ns());
	}
}

static void sleep_on_futex(void)
{
	for (uint32_t seen = 0;; seen++) {
		while (atomic_load(&wakes->word) == seen)
			syscall(SYS_futex, &wakes->word, FUTEX_WAIT, seen, NULL, NULL, 0);
		atomic_store(&wakes->awake_ns[WAKE_FUTEX], bench_now_ns());
	}
}

static void sleep_in_inotify(void)
{
	char events[4096];
	int fd = inotify_init1(IN_CLOEXEC);

	if (fd < 0 || inotify_add_watch(fd, path_of("watched"), IN_MOVED_TO) < 0)
		die("inotify");
	for (;;) {
		if (read(fd, events, sizeof(events)) <= 0)
			die("inotify");
		atomic_store(&wakes->awake_ns[WAKE_INOTIFY], bench_now_ns());
	}
}

static void pause_us(long us)
{
	struct timespec t = {0, us * 1000};

	nanosleep(&t, NULL);
}

/* An empty file, swapped as the image is. */
static void swap_watched(void)
{
	char from[128], to[128];
	int fd;

	snprintf(from, sizeof(from), "%s", path_of("new"));
	snprintf(to, sizeof(to), "%s", path_of("watched/file"));
	fd = open(from, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		die(from);
	close(fd);
	if (rename_and_note(AT_FDCWD, from, AT_FDCWD, to))
		die(to);
}

/* Microseconds from the swap to awake. */
static double wake_once(
	unsigned way, struct image *const images[2], void *data, size_t len, unsigned n)
{
	uint64_t begin_ns = bench_now_ns(), awake_ns;
	char why[FILE_WHY];

	atomic_store(&wakes->awake_ns[way], 0);
	if (way == WAKE_PULLET || way == WAKE_PAGE) {
		if (image_publish(images[way], data, len, n + 2, why))
			die(why);
	} else if (way == WAKE_INOTIFY) {
		swap_watched();
	} else {
		swapped_ns = bench_now_ns();
		atomic_fetch_add(&wakes->word, 1);
		syscall(SYS_futex, &wakes->word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	}
	while ((awake_ns = atomic_load(&wakes->awake_ns[way])) == 0) {
		if (bench_now_ns() - begin_ns > GIVE_UP_NS)
			die("nobody awoke");
		pause_us(50);
	}
	return (double)(awake_ns - swapped_ns) / 1e3;
}

static void measure_wakes(void)
{
	static void (*const sleepers[WAYS])(void) = {
		sleep_on_page, sleep_in_pullet, sleep_on_futex, sleep_in_inotify};
	static const char *const ways[WAYS] = {
		"the page's futex", "pullet_wait, the image open", "bare futex", "bare inotify"};
	static const char *const columns[] = {"p50 us", "p99 us"};
	static double us[WAYS][WAKES];
	struct sys sys = sys_real;
	struct image *images[2]; /* WAKE_PAGE, WAKE_PULLET */
	char why[FILE_WHY];
	double figures[WAYS][2];
	pid_t children[WAYS];
	uint64_t seed = 1;
	size_t len;
	void *data;

	make_keys(HOT);
	data = build(HOT, &len);
	sys.renameat = rename_and_note;
	for (unsigned i = 0; i < 2; i++)
		if (image_open(&sys, base, i ? "wake" : "page", NULL, &images[i], why) ||
			image_publish(images[i], data, len, 1, why))
			die(why);
	if (mkdir(path_of("watched"), 0700))
		die("watched");
	wakes = shared(sizeof(*wakes));
	for (unsigned way = 0; way < WAYS; way++) {
		children[way] = fork_on(1);
		if (children[way] == 0)
			sleepers[way]();
	}
	pause_us(50000);
	for (unsigned n = 0; n < WAKES; n++)
		for (unsigned way = 0; way < WAYS; way++) {
			us[way][n] = wake_once(way, images, data, len, n);
			pause_us(150 + (long)(bench_random(&seed) % 200)); /* asleep again */
		}
	bench_head("from the swap to awake", columns, COUNT(columns));
	for (unsigned way = 0; way < WAYS; way++) {
		end(children[way]);
		figures[way][0] = bench_median(us[way], WAKES);
		figures[way][1] = bench_quantile(us[way], WAKES, 0.99);
		bench_row(ways[way], figures[way], 2);
	}
	printf("\n");
	bench_ratio("swap to awake, p50 : bare futex",
		figures[WAKE_PAGE][0] / figures[WAKE_FUTEX][0], 1.5);
	image_close(images[WAKE_PAGE]);
	image_close(images[WAKE_PULLET]);
	free(data);
	free_keys();
}

int main(void)
{
	struct written *written = shared(COUNT(counts) * sizeof(*written));
	static const char *const columns[] = {"build ms", "publish ms", "MB", "x in memory"};
	uint64_t seed = 1;

	snprintf(base, sizeof(base), "/dev/shm/bench_snapshot.XXXXXX");
	if (!mkdtemp(base)) {
		base[0] = '\0';
		die("/dev/shm");
	}
	signal(SIGINT, interrupted);
	signal(SIGTERM, interrupted);
	stand_on(0);
	for (size_t i = 0; i < sizeof(pool); i++)
		pool[i] = (char)('a' + bench_random(&seed) % 26);
	together = shared(sizeof(*together));
	make_yaml();
	for (size_t size = 0; size < COUNT(counts); size++)
		measure_size(size, &written[size]);
	print_lookups();
	measure_refresh();
	measure_wakes();
	bench_head("the writer", columns, COUNT(columns));
	for (size_t size = 0; size < COUNT(counts); size++) {
		char name[32];
		double figures[] = {written[size].build_ms, written[size].publish_ms,
			written[size].mb, written[size].times_in_memory};

		snprintf(name, sizeof(name), "%u keys", counts[size]);
		bench_row(name, figures, COUNT(figures));
	}
	printf("\n");
	bench_target("a million keys, built and published",
		(written[2].build_ms + written[2].publish_ms) / 1e3, 2, "s");
	bench_ratio("a million keys, memory : image", written[2].times_in_memory, 3);
	clean_up();
	return 0;
}
