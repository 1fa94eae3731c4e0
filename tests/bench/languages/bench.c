/* C: libpullet, a map of jansson, getenv. Called by languages.py. */
#include <jansson.h>
#include <string.h>

#include "../../../lib/pullet.h"
#include "../bench.h"

#define HOT 16
#define ROUNDS 5

static struct pullet *p;
static struct pullet_key named[HOT];
static json_t *all;
static char **keys, path[256];
static volatile size_t sink;

static size_t look_up(const json_t *map, const char *key)
{
	return strlen(json_string_value(json_object_get(map, key)));
}

static size_t parse_and_look_up(const char *key)
{
	json_t *map = json_load_file(path, 0, NULL);
	size_t len = look_up(map, key);

	json_decref(map);
	return len;
}

#define CONTENDER(name, length)                                                                    \
	static void name(long n)                                                                   \
	{                                                                                          \
		for (long i = 0; i < n; i++)                                                       \
			sink += (length);                                                          \
	}
CONTENDER(binding, strlen(pullet_get_string(p, keys[i % HOT], "")))
CONTENDER(key, strlen(pullet_key_get_string(&named[i % HOT], "")))
CONTENDER(refresh, (size_t)pullet_refresh(p))
CONTENDER(map, look_up(all, keys[i % HOT]))
CONTENDER(environment, strlen(getenv(keys[i % HOT])))
CONTENDER(parse, parse_and_look_up(keys[i % HOT]))

static double processor_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double measure(void (*run)(long n))
{
	double ns[ROUNDS], begin_ns, took_ns = 0;
	long n = 1;

	while (took_ns < 50e6) { /* warms up, and finds how many a round takes */
		n *= 2;
		begin_ns = processor_ns();
		run(n);
		took_ns = processor_ns() - begin_ns;
	}
	for (int round = 0; round < ROUNDS; round++) {
		begin_ns = processor_ns();
		run(n);
		ns[round] = (processor_ns() - begin_ns) / (double)n;
	}
	return bench_median(ns, ROUNDS);
}

int main(int argc, char **argv)
{
	char snap[256];

	if (argc != 2 + HOT)
		return 64;
	keys = argv + 2;
	snprintf(path, sizeof(path), "%s/config.json", argv[1]);
	snprintf(snap, sizeof(snap), "%s/config.snap", argv[1]);
	all = json_load_file(path, 0, NULL);
	if (!all || pullet_open(snap, 0, &p))
		return 1;
	for (int i = 0; i < HOT; i++)
		pullet_key_init(&named[i], p, keys[i], strlen(keys[i]));
	printf("%f %f %f %f %f %f JSON, jansson\n", measure(binding), measure(key),
		measure(refresh), measure(map), measure(environment), measure(parse));
	pullet_close(p);
	json_decref(all);
	return 0;
}
