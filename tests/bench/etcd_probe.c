/*
 * What etcd.py measures, as far as it needs the clock: puts and who sees them, the bare hops, and
 * an imitation of confd. Every time is taken where the thing happens; the numbers go to etcd.py as
 * they are, in nanoseconds.
 *
 * Usage: etcd_probe put URL KEY FIRST CHANGES READER      a line a change: answered, seen; both
 *                                                         from the moment before the request
 *        etcd_probe hops URL KEY DIR CHANGES              a line a change: see hops[]
 *        etcd_probe copy URL PREFIX FILE                  as confd does it, until it is ended
 *
 * A READER sleeps until there is something: snapshot:PATH (libpullet, on the futex), file:PATH
 * (inotify), watch:KEY (a line of etcd's own watch), lines:NAME (of NAME, on standard input). It
 * has seen a change when it has read its number in the document.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <curl/curl.h>
#include <zmq.h>

#include "crypto/base64.h"
#include "document/document.h"
#include "files/file.h"
#include "../../lib/buffer.h"
#include "../../lib/pullet.h"
#include "bench.h"

#define DOCUMENT 1024
#define WARM_UP 10
#define GIVE_UP_S 10
#define MAX_BODY (1u << 20)
/* From one change to the next: a relay puts 20 ms between messages of one topic. */
#define PAUSE_MS 22
#define PAUSE_MORE_US 8000

static void die(const char *what)
{
	fprintf(stderr, "etcd_probe: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* Pacing, so that changes do not run into each other. It is not a wait for anything. */
static void pause_a_little(void)
{
	static uint64_t seed = 1;
	struct timespec t = {
		0, PAUSE_MS * 1000000 + (long)(bench_random(&seed) % PAUSE_MORE_US) * 1000};

	nanosleep(&t, NULL);
}

/* ---- the document ---- */

static size_t document(unsigned change, char text[DOCUMENT + 64])
{
	size_t n = (size_t)snprintf(text, DOCUMENT + 64, "change: %08u\n", 10000000 + change);

	for (unsigned i = 0; n < DOCUMENT - 32; i++)
		n += (size_t)snprintf(text + n, DOCUMENT + 64 - n, "key%03u: value %u\n", i, i * 7);
	return n;
}

/* The number in the beginning of a document; 0 = it is none. */
static unsigned change_in(const char *text)
{
	unsigned number;

	return sscanf(text, "change: %8u", &number) == 1 ? number - 10000000 : 0;
}

/* ---- etcd's gateway ---- */

struct post {
	CURL *curl;
	struct curl_slist *headers;
	char url[256];
	struct buffer body, answer;
};

static size_t take(char *data, size_t size, size_t n, void *arg)
{
	return buffer_append(arg, data, size * n) ? 0 : size * n;
}

static void post_open(struct post *p, const char *base, const char *api)
{
	snprintf(p->url, sizeof(p->url), "%s%s", base, api);
	buffer_init(&p->body, MAX_BODY);
	buffer_init(&p->answer, MAX_BODY);
	p->curl = curl_easy_init();
	p->headers = curl_slist_append(NULL, "Content-Type: application/json");
	if (!p->curl || !p->headers)
		die("curl");
	curl_easy_setopt(p->curl, CURLOPT_URL, p->url);
	curl_easy_setopt(p->curl, CURLOPT_HTTPHEADER, p->headers);
	curl_easy_setopt(p->curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(p->curl, CURLOPT_TCP_NODELAY, 1L);
	curl_easy_setopt(p->curl, CURLOPT_FAILONERROR, 1L);
	curl_easy_setopt(p->curl, CURLOPT_WRITEFUNCTION, take);
	curl_easy_setopt(p->curl, CURLOPT_WRITEDATA, &p->answer);
}

/* `{"key":...`, and of a prefix its end; without the closing brace. */
static void begin_body(struct post *p, const char *key)
{
	size_t len = strlen(key);

	buffer_clear(&p->body);
	buffer_append_string(&p->body, "{\"key\":\"");
	base64_append(&p->body, key, len);
	if (key[len - 1] == '/') {
		char end[256];

		snprintf(end, sizeof(end), "%.*s0", (int)len - 1, key); /* '0' comes after '/' */
		buffer_append_string(&p->body, "\",\"range_end\":\"");
		base64_append(&p->body, end, len);
	}
	buffer_append_string(&p->body, "\"");
}

static void set_body(struct post *p)
{
	if (p->body.error)
		die("out of memory");
	curl_easy_setopt(p->curl, CURLOPT_POSTFIELDS, p->body.data);
	curl_easy_setopt(p->curl, CURLOPT_POSTFIELDSIZE, (long)p->body.len);
}

static void make_put(struct post *p, const char *key, unsigned change)
{
	char text[DOCUMENT + 64];

	begin_body(p, key);
	buffer_append_string(&p->body, ",\"value\":\"");
	base64_append(&p->body, text, document(change, text));
	buffer_append_string(&p->body, "\"}");
	set_body(p);
}

static void make_range(struct post *p, const char *key)
{
	begin_body(p, key);
	buffer_append_string(&p->body, "}");
	set_body(p);
}

static void make_watch(struct post *p, const char *key)
{
	struct buffer body;

	begin_body(p, key);
	body = p->body;
	buffer_init(&p->body, MAX_BODY);
	buffer_printf(&p->body, "{\"create_request\":%s}}", body.data ? body.data : "");
	buffer_fini(&body);
	set_body(p);
}

static void post(struct post *p)
{
	CURLcode r;

	buffer_clear(&p->answer);
	r = curl_easy_perform(p->curl);
	if (r) {
		fprintf(stderr, "etcd_probe: %s: %s\n", p->url, curl_easy_strerror(r));
		exit(1);
	}
}

/* ---- readers ---- */

struct reader {
	void (*run)(struct reader *r);
	const char *what; /* a path, or a key */
	const char *url;
	sem_t ready, seen;
	_Atomic unsigned wanted;
	_Atomic uint64_t at_ns;
	struct buffer line;
};

static void saw(struct reader *r, unsigned change)
{
	uint64_t now_ns = bench_now_ns();

	if (change == 0 || change != atomic_load(&r->wanted))
		return;
	atomic_store(&r->wanted, 0);
	atomic_store(&r->at_ns, now_ns);
	sem_post(&r->seen);
}

/* Nanoseconds from `since` on; ends the program when nothing comes. */
static long long wait_seen(struct reader *r, uint64_t since_ns)
{
	struct timespec end;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += GIVE_UP_S;
	while (sem_clockwait(&r->seen, CLOCK_MONOTONIC, &end))
		if (errno != EINTR)
			die(r->what);
	return (long long)(atomic_load(&r->at_ns) - since_ns);
}

static void read_snapshot(struct reader *r)
{
	struct pullet *p;

	errno = -pullet_open(r->what, PULLET_WAIT_FIRST, &p);
	if (errno)
		die(r->what);
	sem_post(&r->ready);
	for (;;) {
		saw(r, (unsigned)(pullet_get_int(p, "change", 0) - 10000000));
		if (pullet_wait(p, -1) < 0)
			die("pullet_wait");
	}
}

static void read_file(struct reader *r)
{
	char directory[256], events[4096], text[17];
	const char *slash = strrchr(r->what, '/');
	int watch = inotify_init1(IN_CLOEXEC);

	snprintf(directory, sizeof(directory), "%.*s", (int)(slash - r->what), r->what);
	if (watch < 0 || inotify_add_watch(watch, directory, IN_MOVED_TO) < 0)
		die(directory);
	sem_post(&r->ready);
	while (read(watch, events, sizeof(events)) > 0) {
		int fd = open(r->what, O_RDONLY | O_CLOEXEC);
		ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

		text[n > 0 ? n : 0] = '\0';
		saw(r, change_in(text));
		if (fd >= 0)
			close(fd);
	}
	die("inotify");
}

/* The first bytes of the first value in a line of a watch. */
static unsigned change_in_line(const char *line)
{
	static const char member[] = "\"value\":\"";
	const char *value = strstr(line, member);
	char text[18 + 1] = "";
	size_t len;

	if (value && strlen(value) > sizeof(member) - 1 + 24)
		base64_decode(value + sizeof(member) - 1, 24, text, 18, &len);
	return change_in(text);
}

static size_t take_line(char *data, size_t size, size_t n, void *arg)
{
	struct reader *r = arg;

	if (buffer_append(&r->line, data, size * n))
		return 0;
	if (data[size * n - 1] != '\n')
		return size * n;
	if (strstr(r->line.data, "\"created\":true"))
		sem_post(&r->ready);
	else
		saw(r, change_in_line(r->line.data));
	buffer_clear(&r->line);
	return size * n;
}

static void read_watch(struct reader *r)
{
	struct post p;

	buffer_init(&r->line, MAX_BODY);
	post_open(&p, r->url, "/v3/watch");
	curl_easy_setopt(p.curl, CURLOPT_WRITEFUNCTION, take_line);
	curl_easy_setopt(p.curl, CURLOPT_WRITEDATA, r);
	make_watch(&p, r->what);
	post(&p);
	die("the watch ended");
}

static void read_lines(struct reader *r)
{
	char *line = NULL;
	size_t size = 0;

	sem_post(&r->ready);
	while (getline(&line, &size, stdin) >= 0)
		saw(r, change_in(line));
	die(r->what);
}

static void *run_reader(void *arg)
{
	struct reader *r = arg;

	r->run(r);
	return NULL;
}

static void reader_start(struct reader *r)
{
	pthread_t thread;

	sem_init(&r->ready, 0, 0);
	sem_init(&r->seen, 0, 0);
	if (pthread_create(&thread, NULL, run_reader, r))
		die("thread");
	pthread_detach(thread);
	while (sem_wait(&r->ready) && errno == EINTR)
		;
}

static bool reader_parse(struct reader *r, const char *text, const char *url)
{
	static const struct {
		const char *name;
		void (*run)(struct reader *r);
	} kinds[] = {{"snapshot:", read_snapshot}, {"file:", read_file}, {"watch:", read_watch},
		{"lines:", read_lines}};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		size_t len = strlen(kinds[i].name);

		if (strncmp(text, kinds[i].name, len) != 0)
			continue;
		*r = (struct reader){.run = kinds[i].run, .what = text + len, .url = url};
		return true;
	}
	return false;
}

/* ---- put ---- */

static int run_put(char **argv)
{
	unsigned first = (unsigned)strtoul(argv[2], NULL, 10);
	unsigned changes = (unsigned)strtoul(argv[3], NULL, 10);
	static struct reader reader;
	struct post p;

	if (!reader_parse(&reader, argv[4], argv[0]))
		return 64;
	post_open(&p, argv[0], "/v3/kv/put");
	reader_start(&reader);
	for (unsigned i = 0; i < changes + WARM_UP; i++) {
		uint64_t sent_ns, answered_ns;
		long long seen;

		make_put(&p, argv[1], first + i);
		pause_a_little();
		atomic_store(&reader.wanted, first + i);
		sent_ns = bench_now_ns();
		post(&p);
		answered_ns = bench_now_ns();
		seen = wait_seen(&reader, sent_ns);
		if (i >= WARM_UP)
			printf("%lld %lld\n", (long long)(answered_ns - sent_ns), seen);
	}
	return 0;
}

/* ---- the bare hops ---- */

static struct post range, before;
static struct buffer values; /* of the range's answer */
static int directory = -1;
static void *publisher;
static struct reader heard, file;

static void receive(struct reader *r)
{
	void *context = zmq_ctx_new(), *socket = zmq_socket(context, ZMQ_SUB);
	char text[32];
	int n;

	zmq_setsockopt(socket, ZMQ_SUBSCRIBE, "change", 6);
	if (zmq_connect(socket, r->what))
		die("zmq_connect");
	sem_post(&r->ready);
	while ((n = zmq_recv(socket, text, sizeof(text) - 1, 0)) >= 0) {
		text[n < 31 ? n : 31] = '\0';
		saw(r, change_in(text));
	}
	die("zmq_recv");
}

/* Right behind a put, as a pull is: an etcd that has slept takes longer. */
static long long hop_range(unsigned change)
{
	uint64_t begin_ns;

	(void)change;
	post(&before);
	begin_ns = bench_now_ns();
	post(&range);
	return (long long)(bench_now_ns() - begin_ns);
}

/* The values below the prefix, one behind the other: a template that copies. */
static void fill_template(const struct buffer *answer, struct buffer *out)
{
	const struct node *pairs, *value;
	struct document_error e;
	struct document *d;
	char text[2 * DOCUMENT];
	size_t len;

	if (document_parse(DOCUMENT_JSON, answer->data, answer->len, 0, &d, &e))
		die(e.message);
	buffer_clear(out);
	pairs = node_find(document_root(d), "kvs");
	for (const struct node *n = pairs ? pairs->first : NULL; n; n = n->next) {
		value = node_find(n, "value");
		if (value &&
			base64_decode(value->text, value->text_len, text, sizeof(text), &len) == 0)
			buffer_append(out, text, len);
	}
	document_free(d);
}

/* Of the range's answer: JSON, base64, YAML. */
static long long hop_parse(unsigned change)
{
	uint64_t begin_ns = bench_now_ns();
	struct document_error e;
	struct document *d;
	long long took_ns;

	(void)change;
	fill_template(&range.answer, &values);
	if (document_parse(DOCUMENT_YAML, values.data, values.len, 0, &d, &e))
		die(e.message);
	took_ns = (long long)(bench_now_ns() - begin_ns);
	document_free(d);
	return took_ns;
}

static void replace(int dir, const char *name, const void *data, size_t len)
{
	const struct file_options options = {.mode = 0640, .uid = (uid_t)-1, .gid = (gid_t)-1};
	char why[FILE_WHY];

	errno = -file_replace(&sys_real, dir, name, data, len, &options, why);
	if (errno)
		die(why);
}

/* Until the call is over; nobody watches that file. */
static long long hop_write(unsigned change)
{
	char text[DOCUMENT + 64];
	size_t len = document(change, text);
	uint64_t begin_ns = bench_now_ns();

	replace(directory, "hop.yaml", text, len);
	return (long long)(bench_now_ns() - begin_ns);
}

static long long hop_awake(unsigned change)
{
	char text[DOCUMENT + 64];
	size_t len = document(change, text);
	uint64_t begin_ns;

	atomic_store(&file.wanted, change);
	begin_ns = bench_now_ns();
	replace(directory, "hop.yaml", text, len);
	return wait_seen(&file, begin_ns);
}

static long long hop_zmq(unsigned change)
{
	char text[32];
	int len = snprintf(text, sizeof(text), "change: %08u", 10000000 + change);
	uint64_t begin_ns;

	atomic_store(&heard.wanted, change);
	begin_ns = bench_now_ns();
	zmq_send(publisher, text, (size_t)len, 0);
	return wait_seen(&heard, begin_ns);
}

static void start_publisher(void)
{
	static char endpoint[64];
	size_t size = sizeof(endpoint);
	char subscription[16];
	int one = 1;

	publisher = zmq_socket(zmq_ctx_new(), ZMQ_XPUB);
	zmq_setsockopt(publisher, ZMQ_XPUB_VERBOSE, &one, sizeof(one));
	if (zmq_bind(publisher, "tcp://127.0.0.1:*") ||
		zmq_getsockopt(publisher, ZMQ_LAST_ENDPOINT, endpoint, &size))
		die("publisher");
	heard = (struct reader){.run = receive, .what = endpoint};
	reader_start(&heard);
	if (zmq_recv(publisher, subscription, sizeof(subscription), 0) < 0)
		die("subscription");
}

static int run_hops(char **argv)
{
	static long long (*const hops[])(unsigned) = {
		hop_range, hop_parse, hop_write, hop_awake, hop_zmq};
	unsigned changes = (unsigned)strtoul(argv[3], NULL, 10);
	char path[256];

	buffer_init(&values, MAX_BODY);
	post_open(&range, argv[0], "/v3/kv/range");
	make_range(&range, argv[1]);
	post_open(&before, argv[0], "/v3/kv/put");
	make_put(&before, argv[1], 0);
	directory = open(argv[2], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (directory < 0)
		die(argv[2]);
	snprintf(path, sizeof(path), "%s/hop.yaml", argv[2]);
	start_publisher();
	file = (struct reader){.run = read_file, .what = path};
	reader_start(&file);
	for (unsigned i = 1; i <= changes + WARM_UP; i++)
		for (size_t h = 0; h < sizeof(hops) / sizeof(hops[0]); h++) {
			long long ns;

			pause_a_little();
			ns = hops[h](i);
			if (i > WARM_UP)
				printf("%lld%c", ns,
					h + 1 < sizeof(hops) / sizeof(hops[0]) ? ' ' : '\n');
		}
	return 0;
}

/* ---- as confd does it ---- */

static struct copy {
	struct buffer line;
	bool created, event;
} copy;

static size_t take_event(char *data, size_t size, size_t n, void *arg)
{
	struct copy *c = arg;

	if (buffer_append(&c->line, data, size * n))
		return 0;
	if (data[size * n - 1] == '\n') {
		c->created |= strstr(c->line.data, "\"created\":true") != NULL;
		c->event |= strstr(c->line.data, "\"events\":") != NULL;
		buffer_clear(&c->line);
	}
	return size * n;
}

/* Written and renamed only if it is another than what is there. */
static void put_in_place(const char *path, const struct buffer *text)
{
	const char *slash = strrchr(path, '/');
	struct buffer old;

	if (directory < 0) {
		char parent[256];

		snprintf(parent, sizeof(parent), "%.*s", (int)(slash - path), path);
		directory = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (directory < 0)
			die(parent);
	}
	buffer_init(&old, MAX_BODY);
	if (file_read(&sys_real, directory, slash + 1, &old) || old.len != text->len ||
		memcmp(old.data, text->data, text->len) != 0)
		replace(directory, slash + 1, text->data ? text->data : "", text->len);
	buffer_fini(&old);
}

static int run_copy(char **argv)
{
	CURLM *multi = curl_multi_init();
	struct post watch;
	bool told = false;
	int running = 1;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	buffer_init(&copy.line, MAX_BODY);
	buffer_init(&values, MAX_BODY);
	post_open(&range, argv[0], "/v3/kv/range");
	make_range(&range, argv[1]);
	post_open(&watch, argv[0], "/v3/watch");
	make_watch(&watch, argv[1]);
	curl_easy_setopt(watch.curl, CURLOPT_WRITEFUNCTION, take_event);
	curl_easy_setopt(watch.curl, CURLOPT_WRITEDATA, &copy);
	curl_multi_add_handle(multi, watch.curl);
	while (running && curl_multi_perform(multi, &running) == CURLM_OK) {
		if (copy.created && !told)
			told = puts("watching") >= 0 && fflush(stdout) == 0;
		if (!copy.event) {
			curl_multi_poll(multi, NULL, 0, 1000, NULL);
			continue;
		}
		copy.event = false;
		post(&range);
		fill_template(&range.answer, &values);
		put_in_place(argv[2], &values);
	}
	die("the watch ended");
	return 1;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int arguments;
		int (*run)(char **argv);
	} roles[] = {{"put", 5, run_put}, {"hops", 4, run_hops}, {"copy", 3, run_copy}};

	curl_global_init(CURL_GLOBAL_DEFAULT);
	for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++)
		if (argc == roles[i].arguments + 2 && strcmp(argv[1], roles[i].name) == 0)
			return roles[i].run(argv + 2);
	return 64;
}
