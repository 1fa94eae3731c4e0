/*
 * Fan-out: `pullet relay` with 1,000 subscribers, beside a bare XPUB socket with the same ones, in
 * turns; and at the end of a chain of three relays.
 *
 * This process publishes upstream of the first relay; a message's version is the time when it was
 * sent. The subscribers are connections of their own, held by a few processes (an XSUB socket may
 * connect to one endpoint any number of times); each delivery is timed there. Two loads: calm, one
 * message at a time, and a storm, all at once, each on a topic of its own, since a relay makes one
 * message of those that follow each other on one topic. All of it runs on the same processors.
 *
 * Usage: bench_relay [SUBSCRIBERS [STORM]]      $PULLET_BUILD names the directory of pullet
 * (default: build)
 */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <zmq.h>

#include "bench.h"

#define PROCESSES 4
#define ROUNDS 3
#define CALM 60                   /* messages, */
#define CALM_NS 25000u            /* one each, for each subscriber */
#define GIVE_UP_NS 20000000000u   /* without any delivery */
#define MAX_DELIVERIES (8u << 20) /* that are timed */

struct shared {
	_Atomic uint64_t delivered; /* in this load */
	_Atomic uint64_t last_ns;
	_Atomic uint64_t load; /* messages of other loads do not count */
	uint32_t us[MAX_DELIVERIES];
};

struct relay {
	pid_t pid;
	char endpoint[128];
};

static struct shared *shared;
static pid_t subscribers[PROCESSES];
static struct relay relays[3];
static unsigned subscriber_count = 1000, storm = 500, relay_count;
static void *context, *publisher;
static char upstream[128];
static uint64_t load;

static void die(const char *what)
{
	fprintf(stderr, "bench_relay: %s: %s\n", what, zmq_strerror(errno));
	exit(1);
}

static void end(pid_t *pid)
{
	if (*pid > 0) {
		kill(*pid, SIGTERM);
		waitpid(*pid, NULL, 0);
	}
	*pid = 0;
}

static void end_subscribers(void)
{
	for (unsigned i = 0; i < PROCESSES; i++)
		end(&subscribers[i]);
}

static void end_relays(void)
{
	while (relay_count > 0)
		end(&relays[--relay_count].pid);
}

static void end_all(void)
{
	end_subscribers();
	end_relays();
}

static void interrupted(int number)
{
	_exit(128 + number); /* the others die with their parent */
}

static void sleep_ns(uint64_t ns)
{
	struct timespec t = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};

	nanosleep(&t, NULL);
}

/* ---- subscribers ---- */

static void delivered(const char *envelope)
{
	const char *version = strstr(envelope, "\"version\":\"");
	uint64_t now = bench_now_ns(), sent, of, n;
	char *dot;

	if (!version)
		return; /* a heartbeat */
	of = strtoull(version + strlen("\"version\":\""), &dot, 10);
	sent = strtoull(dot + 1, NULL, 10);
	if (of != atomic_load(&shared->load))
		return;
	n = atomic_fetch_add(&shared->delivered, 1);
	if (n < MAX_DELIVERIES)
		shared->us[n] = (uint32_t)((now - sent) / 1000);
	atomic_store(&shared->last_ns, now);
}

static void subscribe(const char *endpoint, unsigned connections)
{
	void *socket = zmq_socket(zmq_ctx_new(), ZMQ_XSUB);
	char topic[256], envelope[512];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (unsigned i = 0; i < connections; i++)
		if (zmq_connect(socket, endpoint))
			die("connect");
	zmq_send(socket, "\1", 1, 0);
	for (;;) {
		int more = 0, n = zmq_recv(socket, topic, sizeof(topic), 0);
		size_t size = sizeof(more);

		if (n < 0)
			_exit(0);
		zmq_getsockopt(socket, ZMQ_RCVMORE, &more, &size);
		n = more ? zmq_recv(socket, envelope, sizeof(envelope) - 1, 0) : 0;
		envelope[n > 0 ? n : 0] = '\0';
		delivered(envelope);
	}
}

static void start_subscribers(const char *endpoint)
{
	fflush(stdout); /* or it is written twice */
	for (unsigned i = 0; i < PROCESSES; i++) {
		subscribers[i] = fork();
		if (subscribers[i] == 0) {
			signal(SIGTERM, SIG_DFL);
			subscribe(endpoint, subscriber_count / PROCESSES);
		}
	}
}

/* ---- relays ---- */

static void start_relay(const char *from)
{
	struct relay *r = &relays[relay_count++];
	const char *build = getenv("PULLET_BUILD");
	char program[512], line[256];
	int out[2];
	FILE *f;

	snprintf(program, sizeof(program), "%s/pullet", build ? build : "build");
	if (pipe(out))
		die("pipe");
	r->pid = fork();
	if (r->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(out[1], 1);
		if (!freopen("/dev/null", "we", stderr))
			_exit(127);
		close(out[0]);
		close(out[1]);
		execl(program, "pullet", "relay", "--upstream", from, "--push", "tcp://127.0.0.1:0",
			(char *)NULL);
		_exit(127);
	}
	close(out[1]);
	f = fdopen(out[0], "r");
	r->endpoint[0] = '\0';
	while (f && !r->endpoint[0] && fgets(line, sizeof(line), f))
		sscanf(line, "publishing on %127s", r->endpoint);
	if (!r->endpoint[0])
		die(program);
	fclose(f);
}

/* Anonymous memory of a process, KiB. */
static double memory_of(pid_t pid)
{
	char path[64], line[256];
	double kib = NAN;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, "RssAnon:", 8) == 0)
			kib = strtod(line + 8, NULL);
	if (f)
		fclose(f);
	return kib;
}

static double cpu_of(pid_t pid)
{
	char path[64], text[512], *from;
	unsigned long user = 0, sys = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (f && fgets(text, sizeof(text), f) && (from = strrchr(text, ')')))
		sscanf(from + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
			&sys);
	if (f)
		fclose(f);
	return (double)(user + sys) / (double)sysconf(_SC_CLK_TCK);
}

/* ---- loads ---- */

static void publish(unsigned topic)
{
	char name[32], envelope[160];
	int n = snprintf(name, sizeof(name), "topic-%u", topic), m;

	m = snprintf(envelope, sizeof(envelope),
		"{\"v\":1,\"epoch\":\"bench\",\"version\":\"%llu.%llu\"}", (unsigned long long)load,
		(unsigned long long)bench_now_ns());
	if (zmq_send(publisher, name, (size_t)n, ZMQ_SNDMORE) < 0 ||
		zmq_send(publisher, envelope, (size_t)m, 0) < 0)
		die("send");
}

static void begin_load(void)
{
	atomic_store(&shared->load, ++load);
	atomic_store(&shared->delivered, 0);
	atomic_store(&shared->last_ns, bench_now_ns());
}

/* Until so many were delivered, or nothing comes any more. How many are missing. */
static uint64_t wait_delivered(uint64_t expected, uint64_t give_up_ns)
{
	uint64_t n, last;

	while ((n = atomic_load(&shared->delivered)) < expected) {
		last = atomic_load(&shared->last_ns);
		if (bench_now_ns() > last && bench_now_ns() - last > give_up_ns)
			return expected - n;
		sleep_ns(1000000);
	}
	return 0;
}

/* Until all are connected: a message reaches each of them. */
static void wait_connected(void)
{
	for (unsigned i = 0; i < 200; i++) {
		begin_load();
		publish(0);
		if (wait_delivered(subscriber_count, 300000000) == 0) {
			sleep_ns(1500000000); /* what late subscribers are sent is over */
			return;
		}
	}
	fprintf(stderr, "bench_relay: not all subscribers connected\n");
	exit(1);
}

static double quantile_us(double share)
{
	uint64_t n = atomic_load(&shared->delivered);
	double *v, q = NAN;

	n = n < MAX_DELIVERIES ? n : MAX_DELIVERIES;
	v = malloc((n + 1) * sizeof(*v));
	for (uint64_t i = 0; v && i < n; i++)
		v[i] = shared->us[i];
	if (v && n > 0)
		q = bench_quantile(v, n, share);
	free(v);
	return q;
}

/* ---- rows ---- */

enum { P50, P99, MAX, CALM_CPU, STORM, STORM_K, STORM_P99, CPU, KIB, KIB_AFTER, FIGURES };

/* CPU of a process for each delivery of this load, us. */
static double cpu_each(pid_t pid, double before, unsigned messages)
{
	return (cpu_of(pid) - before) * 1e6 / ((double)messages * subscriber_count);
}

static uint64_t measure_calm(pid_t pid, double *figures)
{
	double cpu = cpu_of(pid);
	uint64_t missing;

	begin_load();
	for (unsigned i = 0; i < CALM; i++) {
		publish(i);
		sleep_ns((uint64_t)CALM_NS * subscriber_count);
	}
	missing = wait_delivered((uint64_t)CALM * subscriber_count, GIVE_UP_NS);
	figures[CALM_CPU] = cpu_each(pid, cpu, CALM);
	figures[P50] = quantile_us(0.5);
	figures[P99] = quantile_us(0.99);
	figures[MAX] = quantile_us(1);
	return missing;
}

static uint64_t measure_storm(pid_t pid, double *figures)
{
	double cpu = cpu_of(pid);
	uint64_t missing, begin, took;

	begin_load();
	begin = bench_now_ns();
	for (unsigned i = 0; i < storm; i++)
		publish(i);
	missing = wait_delivered((uint64_t)storm * subscriber_count, GIVE_UP_NS);
	took = atomic_load(&shared->last_ns) - begin;
	figures[STORM] = storm * 1e9 / (double)took;
	figures[STORM_K] = figures[STORM] * subscriber_count / 1000;
	figures[STORM_P99] = quantile_us(0.99) / 1000;
	figures[CPU] = cpu_each(pid, cpu, storm);
	return missing;
}

/* pid: who publishes at the endpoint. What was lost. */
static uint64_t measure(const char *endpoint, pid_t pid, double *figures)
{
	double before = memory_of(pid);
	uint64_t missing;

	start_subscribers(endpoint);
	wait_connected();
	figures[KIB] = (memory_of(pid) - before) / subscriber_count;
	missing = measure_calm(pid, figures);
	missing += measure_storm(pid, figures);
	figures[KIB_AFTER] = (memory_of(pid) - before) / subscriber_count;
	end_subscribers();
	return missing;
}

/* The medians of all rounds; of the memory the first, for what is freed stays with the process. */
static void print_medians(const char *name, double rounds[ROUNDS][FIGURES], double *ret)
{
	for (unsigned f = 0; f < FIGURES; f++) {
		double values[ROUNDS];

		for (unsigned i = 0; i < ROUNDS; i++)
			values[i] = rounds[i][f];
		ret[f] = f >= KIB ? rounds[0][f] : bench_quantile(values, ROUNDS, 0.5);
	}
	bench_row(name, ret, FIGURES);
}

/* A bare XPUB socket and one relay, in turns. What was lost. */
static uint64_t compare(void)
{
	double bare[ROUNDS][FIGURES], relay[ROUNDS][FIGURES], medians[2][FIGURES];
	uint64_t missing = 0;

	for (unsigned i = 0; i < ROUNDS; i++) {
		missing += measure(upstream, getpid(), bare[i]);
		start_relay(upstream);
		missing += measure(relays[0].endpoint, relays[0].pid, relay[i]);
		end_relays();
	}
	print_medians("bare XPUB", bare, medians[0]);
	print_medians("one relay", relay, medians[1]);
	bench_ratio(
		"p50 of one relay, of that of a bare XPUB", medians[1][P50] / medians[0][P50], 1.1);
	bench_target("memory for each subscriber of a relay", medians[1][KIB], 12, "KiB");
	bench_target(
		"the same beyond that of a bare XPUB", medians[1][KIB] - medians[0][KIB], 2, "KiB");
	return missing;
}

static void open_publisher(void)
{
	size_t size = sizeof(upstream);
	int zero = 0;

	context = zmq_ctx_new();
	publisher = zmq_socket(context, ZMQ_XPUB);
	zmq_setsockopt(publisher, ZMQ_SNDHWM, &zero, sizeof(zero)); /* never drops */
	zmq_setsockopt(publisher, ZMQ_LINGER, &zero, sizeof(zero));
	if (zmq_bind(publisher, "tcp://127.0.0.1:*") ||
		zmq_getsockopt(publisher, ZMQ_LAST_ENDPOINT, upstream, &size))
		die("publisher");
}

int main(int argc, char **argv)
{
	static const char *const columns[] = {"p50 us", "p99 us", "max us", "cpu us/dlv",
		"storm msg/s", "1000 dlv/s", "p99 ms", "cpu us/dlv", "KiB/sub", "after"};
	double chain[FIGURES];
	struct rlimit files;
	uint64_t missing;

	if (argc > 1)
		subscriber_count = (unsigned)strtoul(argv[1], NULL, 10) / PROCESSES * PROCESSES;
	if (argc > 2)
		storm = (unsigned)strtoul(argv[2], NULL, 10);
	if (subscriber_count == 0 || storm == 0)
		return 64;
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	shared = mmap(
		NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		die("mmap");
	atexit(end_all);
	signal(SIGINT, interrupted);
	signal(SIGTERM, interrupted);
	open_publisher();
	printf("fan-out to %u subscribers in %d processes; calm: one message each %u ms; storm: %u "
	       "messages at once, each on its own topic\n",
		subscriber_count, PROCESSES, CALM_NS * subscriber_count / 1000000, storm);
	bench_head("", columns, FIGURES);
	missing = compare();
	start_relay(upstream);
	start_relay(relays[0].endpoint);
	start_relay(relays[1].endpoint);
	missing += measure(relays[2].endpoint, relays[2].pid, chain);
	bench_row("chain of three", chain, FIGURES);
	printf("messages that did not come: %llu\n", (unsigned long long)missing);
	return missing ? 1 : 0;
}
