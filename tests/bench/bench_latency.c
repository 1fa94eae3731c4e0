/*
 * From "sent" to "seen": the push-to-visible latency of the real agent beside the bare hops it is
 * made of, in one run.
 *
 * One thread sends an update message and then reads the published file in a tight loop until the
 * new content is there. The agent is the real pulletd with its file in memory (/dev/shm). The bare
 * hops are measured under the same condition, one thread spinning on the other core: ZeroMQ one
 * way, an HTTP GET with keep-alive from the same origin, parsing the document, and replacing a file
 * in memory. Rounds alternate; medians over the rounds are printed. Beside them: from a file that
 * is replaced below `pullet serve` to the agent's reader.
 *
 * Changes come a few milliseconds apart, so that processor and caches are as warm as for the bare
 * hops; push_min_interval, which would keep them 100 ms apart, is off for that.
 *
 * Usage: bench_latency [CHANGES [ROUNDS]]      $PULLET_BUILD names the directory of pulletd
 * (default: build)
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <curl/curl.h>
#include <zmq.h>

#include "bench.h"
#include "document/document.h"
#include "files/file.h"

#define DOCUMENT 1024
#define MAX_ROUNDS 9
#define GIVE_UP_NS 5000000000u
#define WARM_UP 50

static char base[64], disk[64]; /* scratch directories in memory and on a disk */
static pid_t agent_pid, serve_pid;

static void die(const char *what)
{
	fprintf(stderr, "bench_latency: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void stop(pid_t *pid)
{
	kill(*pid, SIGTERM);
	waitpid(*pid, NULL, 0);
	*pid = 0;
}

static void clean_up(void)
{
	char command[2][80];

	if (agent_pid > 0)
		stop(&agent_pid);
	if (serve_pid > 0)
		stop(&serve_pid);
	snprintf(command[0], sizeof(command[0]), "%s", base);
	snprintf(command[1], sizeof(command[1]), "%s", disk);
	for (int i = 0; i < 2; i++) {
		pid_t child = command[i][0] ? fork() : -1;

		if (child == 0) {
			execlp("rm", "rm", "-rf", command[i], NULL);
			_exit(127);
		}
		if (child > 0)
			waitpid(child, NULL, 0);
	}
	base[0] = disk[0] = '\0';
}

static void interrupted(int number)
{
	exit(128 + number);
}

/* With two processors or more, the reader has one for itself and everything else (agent, origin,
 * helpers, libzmq) the next one: without that, the spinning reader is moved about and stands in
 * everybody's way, and the figures are the scheduler's. Threads and children inherit their maker's
 * place. */
static void stand_on(unsigned processor)
{
	cpu_set_t set;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		return;
	CPU_ZERO(&set);
	CPU_SET(processor, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/* Pacing, so that changes do not run into each other. It is not a wait for anything. */
static void pause_a_little(unsigned *state)
{
	struct timespec t = {0};

	*state = *state * 1103515245u + 12345u;
	t.tv_nsec = 1000000 + (long)(*state >> 8) % 3000000;
	nanosleep(&t, NULL);
}

/* ---- samples ---- */

struct samples {
	double *ns;
	size_t n;
};

/* In microseconds; sorts. */
static double quantile(struct samples *s, double q)
{
	return s->n ? bench_quantile(s->ns, s->n, q) / 1000 : 0;
}

/* ---- the document and its origin ---- */

static _Atomic unsigned current; /* number of the change that the origin shows */
static _Atomic uint64_t asked_ns,
	answered_ns; /* when the origin last got a request, and had answered it */

static size_t document(unsigned change, char text[DOCUMENT + 64])
{
	size_t n = (size_t)snprintf(text, DOCUMENT + 64, "change: %08u\n", change);

	for (unsigned i = 0; n < DOCUMENT - 32; i++)
		n += (size_t)snprintf(text + n, DOCUMENT + 64 - n, "key%03u: value %u\n", i, i * 7);
	return n;
}

static void *serve_connection(void *arg)
{
	int fd = (int)(intptr_t)arg, one = 1;
	char request[8192], body[DOCUMENT + 64], answer[DOCUMENT + 512];
	size_t have = 0;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	for (;;) {
		ssize_t n = recv(fd, request + have, sizeof(request) - 1 - have, 0);
		unsigned change;
		size_t len;

		if (n <= 0)
			break;
		have += (size_t)n;
		request[have] = '\0';
		if (!strstr(request, "\r\n\r\n"))
			continue;
		have = 0;
		atomic_store(&asked_ns, bench_now_ns());
		change = atomic_load(&current);
		len = document(change, body);
		n = snprintf(answer, sizeof(answer),
			"HTTP/1.1 200 OK\r\nContent-Type: application/yaml\r\nETag: "
			"\"%u\"\r\nContent-Length: %zu\r\n\r\n%s",
			change, len, body);
		if (send(fd, answer, (size_t)n, MSG_NOSIGNAL) != n)
			break;
		atomic_store(&answered_ns, bench_now_ns());
	}
	close(fd);
	return NULL;
}

static void *serve(void *arg)
{
	int listener = (int)(intptr_t)arg;

	for (;;) {
		int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		pthread_t thread;

		if (fd < 0)
			return NULL;
		if (pthread_create(&thread, NULL, serve_connection, (void *)(intptr_t)fd) == 0)
			pthread_detach(thread);
	}
}

static int start_origin(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);
	pthread_t thread;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) || listen(fd, 16) ||
		getsockname(fd, (struct sockaddr *)&a, &len) ||
		pthread_create(&thread, NULL, serve, (void *)(intptr_t)fd))
		die("origin");
	pthread_detach(thread);
	return ntohs(a.sin_port);
}

/* ---- the agent ---- */

static void *context, *publisher;
static char endpoint[128];

static void start_publisher(void)
{
	size_t size = sizeof(endpoint);
	int one = 1;

	context = zmq_ctx_new();
	publisher = zmq_socket(context, ZMQ_XPUB);
	zmq_setsockopt(publisher, ZMQ_XPUB_VERBOSE, &one, sizeof(one));
	if (zmq_bind(publisher, "tcp://127.0.0.1:*") ||
		zmq_getsockopt(publisher, ZMQ_LAST_ENDPOINT, endpoint, &size))
		die("publisher");
}

static void wait_subscribed(const char *topic)
{
	char message[256];
	int n;

	for (;;) {
		n = zmq_recv(publisher, message, sizeof(message), 0);
		if (n < 0)
			die("subscription");
		if (n > 1 && message[0] == 1 && (size_t)n - 1 == strlen(topic) &&
			memcmp(message + 1, topic, (size_t)n - 1) == 0)
			return;
	}
}

static const char *program(const char *name, char path[512])
{
	const char *build = getenv("PULLET_BUILD");

	snprintf(path, 512, "%s/%s", build ? build : "build", name);
	return path;
}

static void start_agent(const char *from, const char *channel, const char *state_base)
{
	char path[160], pulletd[512];
	FILE *f;

	program("pulletd", pulletd);
	snprintf(path, sizeof(path), "%s/pullet.yaml", base);
	f = fopen(path, "we");
	if (!f)
		die(path);
	fprintf(f,
		"agent: {state_dir: %s/state, runtime_dir: %s/run, log: {level: warn}}\npush: "
		"[{endpoint: \"%s\"}]\n"
		"configs: {web: {url: \"%s/web.yaml\", file: %s/web.yaml, "
		"interval: 1h, push_min_interval: 0s}}\n",
		state_base, base, channel, from, base);
	fclose(f);
	agent_pid = fork();
	if (agent_pid == 0) {
		stand_on(1);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl(pulletd, "pulletd", "-c", path, (char *)NULL);
		_exit(127);
	}
}

/* `pullet serve` of a directory in memory, and where it says that it is. */
static void start_serve(char from[64], char channel[64])
{
	char path[96], pullet[512], lines[512];
	size_t have = 0;
	int out[2];

	program("pullet", pullet);
	snprintf(path, sizeof(path), "%s/origin", base);
	if (mkdir(path, 0755) || pipe2(out, O_CLOEXEC))
		die(path);
	serve_pid = fork();
	if (serve_pid == 0) {
		stand_on(1);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(out[1], 1);
		dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), 2);
		execl(pullet, "pullet", "serve", path, "--http", "127.0.0.1:0", "--push",
			"tcp://127.0.0.1:0", (char *)NULL);
		_exit(127);
	}
	close(out[1]);
	do {
		ssize_t n = read(out[0], lines + have, sizeof(lines) - 1 - have);

		if (n <= 0)
			die("pullet serve");
		have += (size_t)n;
		lines[have] = '\0';
	} while (sscanf(lines, "serving %*s on %63s publishing on %63s", from, channel) != 2);
	close(out[0]);
}

static bool visible(const char *path, unsigned change)
{
	char text[17] = "", wanted[32];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool seen;

	if (fd < 0)
		return false;
	snprintf(wanted, sizeof(wanted), "change: %08u", change);
	seen = read(fd, text, 16) == 16 && memcmp(text, wanted, 16) == 0;
	close(fd);
	return seen;
}

static void send_update(unsigned change)
{
	static uint64_t seq;
	char envelope[128];
	int n = snprintf(envelope, sizeof(envelope),
		"{\"v\":1,\"epoch\":\"bench\",\"seq\":%llu,\"version\":\"%u\"}",
		(unsigned long long)++seq, change);

	zmq_send(publisher, "web", 3, ZMQ_SNDMORE);
	zmq_send(publisher, envelope, (size_t)n, 0);
}

/* ---- what is measured ---- */

static unsigned change_number, lost;
static struct samples phases[3]; /* sent to asked, asked to answered, answered to visible */

/* Spins until the file shows this change; the time, 0: it did not come. */
static uint64_t wait_visible(unsigned change)
{
	uint64_t begin = bench_now_ns(), end;
	char path[96];

	snprintf(path, sizeof(path), "%s/web.yaml", base);
	do
		end = bench_now_ns();
	while (!visible(path, change) && end - begin < GIVE_UP_NS);
	return end - begin < GIVE_UP_NS ? end : 0;
}

static void push_to_visible(struct samples *s, size_t n)
{
	unsigned pace = 1;

	for (size_t i = 0; i < n + WARM_UP; i++) {
		uint64_t asked, answered, begin, end;

		pause_a_little(&pace);
		atomic_store(&current, ++change_number);
		begin = bench_now_ns();
		send_update(change_number);
		end = wait_visible(change_number);
		asked = atomic_load(&asked_ns);
		answered = atomic_load(&answered_ns);
		if (end == 0)
			lost++;
		else if (i >= WARM_UP) {
			s->ns[s->n++] = (double)(end - begin);
			phases[0].ns[phases[0].n++] = (double)(asked - begin);
			phases[1].ns[phases[1].n++] = (double)(answered - asked);
			phases[2].ns[phases[2].n++] = (double)(end > answered ? end - answered : 0);
		}
	}
}

/* From a file replaced below `pullet serve` to the value at the agent's reader. */
static void origin_to_visible(struct samples *s, size_t n)
{
	const struct file_options options = {.mode = 0644, .uid = (uid_t)-1, .gid = (gid_t)-1};
	char path[96], text[DOCUMENT + 64], why[FILE_WHY];
	unsigned pace = 1;
	int dir;

	snprintf(path, sizeof(path), "%s/origin", base);
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < n + WARM_UP; i++) {
		size_t len = document(++change_number, text);
		uint64_t begin, end;

		pause_a_little(&pace);
		if (file_replace(&sys_real, dir, "web.yaml", text, len, &options, why))
			die(why);
		begin = bench_now_ns();
		end = wait_visible(change_number);
		if (i < WARM_UP)
			continue; /* its first message may come before the subscription */
		if (end)
			s->ns[s->n++] = (double)(end - begin);
		else
			lost++;
	}
	close(dir);
}

/* A hop that another thread ends: it stores the time, this thread spins. */
static _Atomic uint64_t arrived;

static void spin(struct samples *s, uint64_t begin)
{
	uint64_t end;

	while ((end = atomic_load(&arrived)) == 0 && bench_now_ns() - begin < GIVE_UP_NS)
		;
	if (end)
		s->ns[s->n++] = (double)(end - begin);
	else
		lost++;
}

static void *receive(void *socket)
{
	char message[256];

	stand_on(1);
	for (;;) {
		zmq_pollitem_t item = {.socket = socket, .events = ZMQ_POLLIN};

		if (zmq_poll(&item, 1, -1) < 0)
			return NULL;
		while (zmq_recv(socket, message, sizeof(message), ZMQ_DONTWAIT) >= 0)
			;
		if (zmq_errno() == ETERM)
			return NULL;
		atomic_store(&arrived, bench_now_ns());
	}
}

static void hop_zmq(struct samples *s, size_t n)
{
	static void *socket;
	pthread_t thread;
	unsigned pace = 2;

	if (!socket) {
		socket = zmq_socket(context, ZMQ_SUB);
		zmq_setsockopt(socket, ZMQ_SUBSCRIBE, "hop", 3);
		zmq_connect(socket, endpoint);
		wait_subscribed("hop");
		if (pthread_create(&thread, NULL, receive, socket) == 0)
			pthread_detach(thread);
	}
	for (size_t i = 0; i < n; i++) {
		uint64_t begin;

		pause_a_little(&pace);
		atomic_store(&arrived, 0);
		begin = bench_now_ns();
		zmq_send(publisher, "hop", 3, 0);
		spin(s, begin);
	}
}

/* The other hops are done by a helper thread that is woken by an eventfd, while this one spins; the
 * helper times the hop alone. */
struct helper {
	int wake;
	void (*work)(void);
	_Atomic uint64_t took;
	_Atomic uint64_t woken_at;
};

static struct helper helper = {.wake = -1};

static void *help(void *arg)
{
	uint64_t count, begin;

	(void)arg;
	stand_on(1);
	while (read(helper.wake, &count, sizeof(count)) == sizeof(count)) {
		begin = bench_now_ns();
		atomic_store(&helper.woken_at, begin);
		if (helper.work)
			helper.work();
		atomic_store(&helper.took, bench_now_ns() - begin + 1);
	}
	return NULL;
}

static void by_helper(struct samples *s, size_t n, void (*work)(void), bool wake_only)
{
	uint64_t one = 1, begin, took;
	unsigned pace = 3;
	pthread_t thread;

	if (helper.wake < 0) {
		helper.wake = eventfd(0, EFD_CLOEXEC);
		if (pthread_create(&thread, NULL, help, NULL) == 0)
			pthread_detach(thread);
	}
	helper.work = work;
	for (size_t i = 0; i < n; i++) {
		pause_a_little(&pace);
		atomic_store(&helper.took, 0);
		begin = bench_now_ns();
		if (write(helper.wake, &one, sizeof(one)) < 0)
			die("eventfd");
		while ((took = atomic_load(&helper.took)) == 0)
			;
		s->ns[s->n++] = (double)(wake_only ? atomic_load(&helper.woken_at) - begin : took);
	}
}

static CURL *easy;
static char origin[64], url[80];

static size_t swallow(char *data, size_t size, size_t n, void *arg)
{
	(void)data, (void)arg;
	return size * n;
}

static void work_get(void)
{
	if (!easy) {
		easy = curl_easy_init();
		curl_easy_setopt(easy, CURLOPT_URL, url);
		curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, swallow);
		curl_easy_setopt(easy, CURLOPT_TCP_NODELAY, 1L);
	}
	if (curl_easy_perform(easy))
		lost++;
}

static void work_parse(void)
{
	char text[DOCUMENT + 64];
	struct document *d = NULL;
	struct document_error e;

	if (document_parse(DOCUMENT_YAML, text, document(1, text), 0, &d, &e))
		lost++;
	document_free(d);
}

static void work_replace(void)
{
	static int dir = -1;
	const struct file_options options = {.mode = 0640, .uid = (uid_t)-1, .gid = (gid_t)-1};
	char text[DOCUMENT + 64], why[FILE_WHY];
	size_t n = document(1, text);

	if (dir < 0)
		dir = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (file_replace(&sys_real, dir, "hop.yaml", text, n, &options, why))
		lost++;
}

static void hop_get(struct samples *s, size_t n)
{
	by_helper(s, n, work_get, false);
}
static void hop_parse(struct samples *s, size_t n)
{
	by_helper(s, n, work_parse, false);
}
static void hop_replace(struct samples *s, size_t n)
{
	by_helper(s, n, work_replace, false);
}
static void hop_wake(struct samples *s, size_t n)
{
	by_helper(s, n, NULL, true);
}

static const struct row {
	const char *name;
	void (*measure)(struct samples *s, size_t n);
	bool summed;
} rows[] = {
	{"push to visible", push_to_visible, false},
	{"ZeroMQ one way", hop_zmq, true},
	{"HTTP GET, keep-alive", hop_get, true},
	{"parse 1 KiB of YAML", hop_parse, true},
	{"write + rename, tmpfs", hop_replace, true},
	{"(eventfd wake)", hop_wake, false},
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

struct figure {
	double p50[MAX_ROUNDS], p99[MAX_ROUNDS], max[MAX_ROUNDS];
};

static double report(struct figure *figures, unsigned rounds)
{
	double sum = 0, visible_p50 = bench_median(figures[0].p50, rounds);

	printf("%-24s %9s %9s %9s   us, medians of %u rounds\n", "", "p50", "p99", "max", rounds);
	for (unsigned r = 0; r < ROWS; r++) {
		double p50 = bench_median(figures[r].p50, rounds);

		printf("%-24s %9.1f %9.1f %9.1f\n", rows[r].name, p50,
			bench_median(figures[r].p99, rounds), bench_median(figures[r].max, rounds));
		sum += rows[r].summed ? p50 : 0;
	}
	printf("%-24s %9.1f\n", "sum of the four hops", sum);
	return visible_p50 / sum;
}

int main(int argc, char **argv)
{
	size_t n = argc > 1 ? strtoul(argv[1], NULL, 10) : 300;
	unsigned rounds = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 3;
	static struct figure figures[ROWS];
	char from[64], channel[64];
	struct samples s = {.ns = calloc(n + 64, sizeof(double))};
	const char *tmp = getenv("TMPDIR");
	double ratio, of_serve;

	for (int i = 0; i < 3; i++)
		phases[i].ns = calloc((n + 64) * (MAX_ROUNDS + 1), sizeof(double));

	if (rounds < 1 || rounds > MAX_ROUNDS || n < 10 || !s.ns)
		return 64;
	atexit(clean_up);
	signal(SIGINT, interrupted);
	signal(SIGTERM, interrupted);
	snprintf(base, sizeof(base), "/dev/shm/pullet-bench-XXXXXX");
	snprintf(disk, sizeof(disk), "%.30s/pullet-bench-XXXXXX", tmp ? tmp : "/var/tmp");
	if (!mkdtemp(base) || !mkdtemp(disk))
		die("scratch directory");
	curl_global_init(CURL_GLOBAL_DEFAULT);
	stand_on(1);
	snprintf(origin, sizeof(origin), "http://127.0.0.1:%d", start_origin());
	snprintf(url, sizeof(url), "%s/web.yaml", origin);
	start_publisher();
	stand_on(0);

	start_agent(origin, endpoint, base);
	wait_subscribed("web");
	for (unsigned round = 0; round < rounds; round++) {
		for (unsigned r = 0; r < ROWS; r++) {
			s.n = 0;
			rows[r].measure(&s, n);
			figures[r].p50[round] = quantile(&s, 0.5);
			figures[r].p99[round] = quantile(&s, 0.99);
			figures[r].max[round] = quantile(&s, 1);
		}
	}
	printf("latency of %zu changes a round; file and state in memory, one thread spinning as "
	       "reader\n",
		n);
	ratio = report(figures, rounds);
	printf("of it, p50: message to request %.1f, request to answer %.1f, answer to visible "
	       "%.1f\n",
		quantile(&phases[0], 0.5), quantile(&phases[1], 0.5), quantile(&phases[2], 0.5));
	stop(&agent_pid);

	start_serve(from, channel);
	start_agent(from, channel, base);
	s.n = 0;
	origin_to_visible(&s, n);
	of_serve = quantile(&s, 0.5);
	printf("%-24s %9.1f %9.1f %9.1f   a file replaced below pullet serve\n",
		"origin to visible", of_serve, quantile(&s, 0.99), quantile(&s, 1));
	stop(&agent_pid);
	stop(&serve_pid);

	start_agent(origin, endpoint, disk);
	wait_subscribed("web");
	s.n = 0;
	push_to_visible(&s, n);
	printf("%-24s %9.1f %9.1f %9.1f   state directory on a disk\n", "push to visible",
		quantile(&s, 0.5), quantile(&s, 0.99), quantile(&s, 1));
	stop(&agent_pid);
	printf("changes never seen: %u\n", lost);
	bench_ratio("push to visible: the bare hops", ratio, 1.15);
	bench_ratio("pullet serve, file to visible: push to visible",
		of_serve / figures[0].p50[rounds / 2], 2);
	bench_ratio("push to visible, p99: p50",
		figures[0].p99[rounds / 2] / figures[0].p50[rounds / 2], 2);
	return lost ? 1 : 0;
}
