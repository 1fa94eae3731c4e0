/*
 * recv() of a thread that is named as libzmq's are, on real connections: what is counted, when it
 * ends, and whose connections are left alone.
 */
#undef _FORTIFY_SOURCE /* it has a recv() of its own */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>
#include <pthread.h>
#include <zmq.h>

#include <cmocka.h>

#include "push/peer_guard.h"
#include "tests/unit/fixture/fault_memory.h"

#define BLOCK 4096
#define WAITING_WEB (160 + 2 * 3) /* a subscription to "web" that waits */

struct line { /* a connection */
	int ours, theirs;
};

static int failed; /* the line; cmocka's asserts are for its own thread */

/* ---- time ---- */

static bool late;              /* the clock stands at the last moment of a second */
static struct timespec waited; /* until when a thread last waited, at most */
static unsigned waits;

int clock_gettime(clockid_t clock, struct timespec *ret)
{
	int r = (int)syscall(SYS_clock_gettime, clock, ret);

	if (late)
		*ret = (struct timespec){.tv_sec = 1000, .tv_nsec = 999999999};
	return r;
}

int pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *until)
{
	static int (*genuine)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);

	if (!genuine)
		*(void **)&genuine = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
	waited = *until;
	waits++;
	return genuine(c, m, until);
}

/* ---- connections ---- */

#define CHECK(it)                                                                                  \
	do {                                                                                       \
		if (!(it) && !failed)                                                              \
			failed = __LINE__;                                                         \
	} while (0)

/* False: this host has no such address. */
static bool try_connect(struct line *l, int family)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
	struct sockaddr_un local = {.sun_family = AF_UNIX}; /* without a path: any, not a file's */
	struct sockaddr_storage bound;
	struct sockaddr *a = family == AF_INET    ? (struct sockaddr *)&v4
			     : family == AF_INET6 ? (struct sockaddr *)&v6
						  : (struct sockaddr *)&local;
	socklen_t size = family == AF_INET    ? sizeof(v4)
			 : family == AF_INET6 ? sizeof(v6)
					      : sizeof(sa_family_t);
	int listener = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (listener < 0 || bind(listener, a, size)) {
		close(listener);
		return false;
	}
	CHECK(listen(listener, 1) == 0);
	size = sizeof(bound);
	CHECK(getsockname(listener, (struct sockaddr *)&bound, &size) == 0);
	l->theirs = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(connect(l->theirs, (struct sockaddr *)&bound, size) == 0);
	l->ours = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	CHECK(l->ours >= 0);
	close(listener);
	return true;
}

static void line_open(struct line *l)
{
	CHECK(try_connect(l, AF_INET));
}

static void line_close(struct line *l)
{
	close(l->ours);
	close(l->theirs);
}

/* They send so many bytes, which are read here. How many were read before the connection ended. */
static size_t pass(const struct line *l, size_t size)
{
	char bytes[BLOCK] = {0};
	size_t done = 0;

	while (done < size) {
		size_t part = size - done < BLOCK ? size - done : BLOCK, left = part;

		if (send(l->theirs, bytes, part, MSG_NOSIGNAL) != (ssize_t)part)
			return done;
		while (left) {
			ssize_t n = recv(l->ours, bytes, left, 0);

			CHECK(n >= 0);
			if (n <= 0)
				return done;
			left -= (size_t)n;
			done += (size_t)n;
		}
	}
	return done;
}

/* ---- threads ---- */

struct job {
	const char *name;
	void (*run)(void);
};

static void *work(void *arg)
{
	const struct job *j = arg;

	prctl(PR_SET_NAME, j->name);
	j->run();
	return NULL;
}

/* In a thread of that name. */
static void in_thread(const char *name, void (*run)(void))
{
	struct job j = {name, run};
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, work, &j), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	if (failed)
		fail_msg("line %d", failed);
}

static void pass_far_more(void)
{
	struct line l;

	line_open(&l);
	CHECK(pass(&l, 4 * PEER_GUARD_HELD) == 4 * PEER_GUARD_HELD);
	CHECK(!peer_guard_take_cut(l.ours));
	line_close(&l);
}

static void other_threads__read_what_they_like(void **state)
{
	(void)state;
	pass_far_more();
	in_thread("ZMQbg/IO/0", pass_far_more);
	in_thread("9/ZMQbg/IO/0", pass_far_more);
	in_thread("1/other", pass_far_more);
}

/* ---- guarded ---- */

static void read_to_the_end(void)
{
	struct line l;
	char byte;

	line_open(&l);
	CHECK(pass(&l, PEER_GUARD_HELD) == PEER_GUARD_HELD);
	CHECK(pass(&l, 1) == 0);
	CHECK(recv(l.ours, &byte, 1, 0) == 0);
	close(l.ours);
	CHECK(recv(l.theirs, &byte, 1, 0) <= 0); /* it is told */
	CHECK(peer_guard_take_cut(l.ours));
	CHECK(!peer_guard_take_cut(l.ours));
	close(l.theirs);
}

static void connection__of_which_nothing_comes_out__ends_at_the_bound(void **state)
{
	uint64_t before = peer_guard_cuts(PEER_GUARD_PUBLISHERS);

	(void)state;
	in_thread("1/ZMQbg/IO/0", read_to_the_end);
	assert_int_equal(peer_guard_cuts(PEER_GUARD_PUBLISHERS), before + 1);
	assert_int_equal(peer_guard_cuts(PEER_GUARD_SUBSCRIBERS), 0);
}

static void read_messages(void)
{
	struct line l;

	line_open(&l);
	for (unsigned i = 0; i < 1000; i++) {
		CHECK(pass(&l, BLOCK) == BLOCK);
		peer_guard_delivered(l.ours, BLOCK - 100, false); /* 100: what was around it */
	}
	CHECK(pass(&l, PEER_GUARD_HELD) == PEER_GUARD_HELD);
	line_close(&l);
}

static void messages__that_came_out__are_not_held_against_a_peer(void **state)
{
	(void)state;
	in_thread("1/ZMQbg/IO/0", read_messages);
}

static void save_up(void)
{
	struct line l;

	line_open(&l);
	CHECK(pass(&l, 1) == 1);
	for (unsigned i = 0; i < 10000; i++)
		peer_guard_delivered(l.ours, 1, false);
	CHECK(pass(&l, PEER_GUARD_HELD) == PEER_GUARD_HELD);
	CHECK(pass(&l, 1) == 0);
	line_close(&l);
}

static void credit__for_what_is_around_messages__cannot_be_saved_up(void **state)
{
	(void)state;
	in_thread("1/ZMQbg/IO/0", save_up);
}

static void read_sealed(void)
{
	struct line l;

	line_open(&l);
	CHECK(pass(&l, 100) == 100);
	peer_guard_delivered(l.ours, 100, true);
	CHECK(pass(&l, 8 * PEER_GUARD_HELD) == 8 * PEER_GUARD_HELD);
	CHECK(pass(&l, 1) == 0);
	line_close(&l);
}

static void sealed_connection__has_eight_times_the_bound(void **state)
{
	(void)state;
	in_thread("1/ZMQbg/IO/0", read_sealed);
}

/* ---- subscribers ---- */

static const char greeting[64] = "\xff\0\0\0\0\0\0\0\0\x7f\3\0NULL";
static const char sealed[64] = "\xff\0\0\0\0\0\0\0\0\x7f\3\0CURVE";
static const char ready[] = "\4\x19\5READY\x0bSocket-Type\0\0\0\3SUB";

/* They send it, and it is read here until the end. Bytes that were read; 0 or less: cut off. */
static ssize_t pass_bytes(const struct line *l, const void *data, size_t size)
{
	char bytes[BLOCK];
	size_t done = 0;

	if (send(l->theirs, data, size, MSG_NOSIGNAL) != (ssize_t)size)
		return 0;
	while (done < size) {
		ssize_t n = recv(l->ours, bytes, sizeof(bytes), 0);

		if (n <= 0)
			return n;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

static bool subscribe(const struct line *l, const char *topic)
{
	char frame[300];
	int n = snprintf(frame + 2, sizeof(frame) - 2, "\1%s", topic);

	frame[0] = 0;
	frame[1] = (char)n;
	return pass_bytes(l, frame, (size_t)n + 2) > 0;
}

static void open_subscriber(struct line *l)
{
	line_open(l);
	CHECK(pass_bytes(l, greeting, sizeof(greeting)) > 0);
	CHECK(pass_bytes(l, ready, sizeof(ready) - 1) > 0);
}

static void send_what_is_no_subscription(void)
{
	static const struct {
		const char *data;
		size_t len;
		const char *why;
	} table[] = {
		{"\1\4\1web", 6, "several parts"},
		{"\0\0", 2, "no subscription"},
		{"\0\4\2web", 6, "no subscription"},
		{"\2\0\0\0\0\0\0\xff\xff", 9, "too long"},
		{"\x10", 1, "too long, or none"},
	};
	struct peer_guard_cut cut;
	struct line l;

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		open_subscriber(&l);
		CHECK(subscribe(&l, "web"));
		CHECK(pass_bytes(&l, table[i].data, table[i].len) == 0);
		peer_guard_last_cut(&cut);
		CHECK(strstr(cut.why, table[i].why));
		CHECK(strncmp(cut.address, "127.0.0.1:", 10) == 0);
		line_close(&l);
	}
	line_open(&l);
	CHECK(pass_bytes(&l, "\1", 1) == 0);
	peer_guard_last_cut(&cut);
	CHECK(strstr(cut.why, "ZMTP 3"));
	line_close(&l);
	line_open(&l);
	CHECK(pass_bytes(&l, sealed, sizeof(sealed)) > 0);
	CHECK(pass_bytes(&l, "\4\x09\x08INITIATE", 12) == 0);
	peer_guard_last_cut(&cut);
	CHECK(strstr(cut.why, "did not wait for the end of the handshake"));
	line_close(&l);
}

static void subscriber__that_sends_anything_else__is_cut_off(void **state)
{
	uint64_t before = peer_guard_cuts(PEER_GUARD_SUBSCRIBERS);

	(void)state;
	in_thread("2/ZMQbg/IO/0", send_what_is_no_subscription);
	assert_int_equal(peer_guard_cuts(PEER_GUARD_SUBSCRIBERS), before + 7);
}

/* ---- what CURVE decrypts ---- */

typedef int box_function(unsigned char *, const unsigned char *, unsigned long long,
	const unsigned char *, const unsigned char *);
box_function crypto_box_open_afternm, crypto_box_open_easy_afternm;

static box_function *seal, *seal_easy; /* libsodium's, as libzmq has it */

/* Seals a text and opens it again by the function that has its own form, or by the older one, whose
 * texts begin with 32 zeros; forged: one bit of it was changed on the way. */
static int open_again(bool easy, const char *text, size_t len, bool forged)
{
	static const unsigned char nonce[24] = "nonce", key[32] = "key";
	unsigned char plain[64] = {0}, closed[64] = {0}, opened[64] = {0};
	size_t zeros = easy ? 0 : 32;
	int r;

	memcpy(plain + zeros, text, len);
	CHECK((easy ? seal_easy : seal)(closed, plain, zeros + len, nonce, key) == 0);
	closed[20] ^= forged;
	r = easy ? crypto_box_open_easy_afternm(opened, closed, len + 16, nonce, key)
		 : crypto_box_open_afternm(opened, closed, zeros + len, nonce, key);
	CHECK(r || memcmp(opened + zeros, text, len) == 0);
	return r;
}

static void open_anything(void)
{
	for (int easy = 0; easy < 2; easy++) {
		CHECK(open_again(easy, "\1\1web", 5, false) == 0);
		CHECK(open_again(easy, "\1\1web", 5, true) == -1);
	}
}

static void open_subscriptions(void)
{
	struct peer_guard_cut cut;
	struct line l;

	for (int easy = 0; easy < 2; easy++) {
		line_open(&l);
		CHECK(pass_bytes(&l, sealed, sizeof(sealed)) > 0);
		CHECK(open_again(easy, "\0\1web", 5, false) == 0);
		CHECK(open_again(easy, "\0\1web", 5, true) == -1);
		CHECK(open_again(easy, "\0\1web", 5, false) == 0); /* nobody was cut off */
		CHECK(open_again(easy, "\1\1web", 5, false) == -1);
		peer_guard_last_cut(&cut);
		CHECK(strstr(cut.why, "several parts"));
		CHECK(open_again(easy, "\0\1web", 5, false) == -1);
		line_close(&l);
	}
}

static void sealed_frame__that_is_forged_or_no_subscription__is_not_opened(void **state)
{
	uint64_t before = peer_guard_cuts(PEER_GUARD_SUBSCRIBERS);

	(void)state;
	if (zmq_has("curve")) {
		*(void **)&seal = dlsym(RTLD_DEFAULT, "crypto_box_afternm");
		*(void **)&seal_easy = dlsym(RTLD_DEFAULT, "crypto_box_easy_afternm");
	}
	if (!seal || !seal_easy) {
		print_message("# this libzmq does not encrypt by libsodium\n");
		skip();
	}
	open_anything();
	in_thread("1/ZMQbg/IO/0", open_anything);
	assert_int_equal(peer_guard_cuts(PEER_GUARD_SUBSCRIBERS), before);
	in_thread("2/ZMQbg/IO/0", open_subscriptions);
	assert_int_equal(peer_guard_cuts(PEER_GUARD_SUBSCRIBERS), before + 2);
}

/* As the socket's owner does whenever it finds nothing more. */
static void take_all(void)
{
	peer_guard_taken(peer_guard_passed());
}

static void name_topics_without_end(void)
{
	struct line honest, greedy;
	char topic[64];
	unsigned n = 0, own = 0;

	open_subscriber(&honest);
	open_subscriber(&greedy);
	for (bool cut = false; !cut && n < 100000; n++) {
		snprintf(topic, sizeof(topic), "%08x-and-more", n * 2654435761u);
		cut = !subscribe(&greedy, topic);
		if (n % 100 == 0 && own < 100) {
			snprintf(topic, sizeof(topic), "own-%u", own++);
			CHECK(subscribe(&honest, topic));
		}
		take_all();
	}
	CHECK(n > 1000 && n < PEER_GUARD_POOL / 100);
	line_close(&greedy);
	for (unsigned i = 0; i < 10; i++) { /* until libzmq has let go of it */
		char byte;

		CHECK(recv(honest.ours, &byte, 1, MSG_DONTWAIT) < 0);
		take_all();
	}
	CHECK(subscribe(&honest, "still"));
	line_close(&honest);
}

static void topics__without_end__cut_off_the_one_with_the_most(void **state)
{
	(void)state;
	in_thread("2/ZMQbg/IO/0", name_topics_without_end);
}

static bool owner_is_woken(void)
{
	struct pollfd fd = {.fd = peer_guard_wakes(), .events = POLLIN};

	return poll(&fd, 1, 0) == 1;
}

static void name_what_nobody_takes(void)
{
	struct line l;
	uint64_t passed;
	unsigned n = 0;
	char byte;

	CHECK(!owner_is_woken());
	open_subscriber(&l);
	take_all();
	passed = peer_guard_passed();
	while (n < 100000 && subscribe(&l, "web"))
		n++;
	CHECK(errno == EAGAIN);
	CHECK(peer_guard_passed() - passed == n * WAITING_WEB);
	CHECK(n == PEER_GUARD_WAITING / WAITING_WEB + 1);
	CHECK(owner_is_woken());
	waits = 0;
	late = true;
	CHECK(recv(l.ours, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
	late = false;
	CHECK(waits == 1 && waited.tv_sec == 1001 && waited.tv_nsec == 999999);
	peer_guard_taken(passed); /* nothing of it */
	CHECK(!owner_is_woken());
	CHECK(recv(l.ours, &byte, 1, MSG_DONTWAIT) < 0 && owner_is_woken());
	peer_guard_taken(passed + WAITING_WEB);
	peer_guard_taken(passed); /* it does not go back */
	CHECK(recv(l.ours, &byte, 1, MSG_DONTWAIT) == 1);
	take_all();
	CHECK(!owner_is_woken());
	line_close(&l);
}

static void subscriptions__that_nobody_takes__wait_outside(void **state)
{
	uint64_t before = peer_guard_cuts(PEER_GUARD_SUBSCRIBERS);

	(void)state;
	take_all();
	in_thread("2/ZMQbg/IO/0", name_what_nobody_takes);
	assert_int_equal(peer_guard_cuts(PEER_GUARD_SUBSCRIBERS), before);
}

static void read_a_burst(void)
{
	static const char frame[] = "\0\4\1web";
	char burst[300 * 6], bytes[BLOCK];
	struct line l;

	for (size_t i = 0; i < sizeof(burst); i += 6)
		memcpy(burst + i, frame, 6);
	open_subscriber(&l);
	CHECK(send(l.theirs, burst, sizeof(burst), MSG_NOSIGNAL) == sizeof(burst));
	CHECK(recv(l.ours, bytes, sizeof(bytes), 0) == 1024);
	CHECK(recv(l.ours, bytes, 6, 0) == 6);
	CHECK(recv(l.ours, bytes, sizeof(bytes), 0) == (ssize_t)sizeof(burst) - 1030);
	line_close(&l);
	take_all();
}

static void burst__of_subscriptions__is_read_in_small_pieces(void **state)
{
	(void)state;
	take_all();
	in_thread("2/ZMQbg/IO/0", read_a_burst);
}

/* Until libzmq has let go of the topics of others. */
static void be_patient(const struct line *l)
{
	char byte;

	for (unsigned i = 0; i < 10; i++) {
		CHECK(recv(l->ours, &byte, 1, MSG_DONTWAIT) < 0);
		take_all();
	}
}

static void open_after_others(struct line *l)
{
	line_open(l);
	be_patient(l);
	CHECK(pass_bytes(l, greeting, sizeof(greeting)) > 0);
	CHECK(pass_bytes(l, ready, sizeof(ready) - 1) > 0);
}

/* Names so many topics of its own, and the owner takes each. How many were not refused. */
static unsigned name_topics(const struct line *l, unsigned whose, unsigned count)
{
	char topic[64], bytes[BLOCK];
	unsigned n = 0;

	for (bool named = true; named && n < count; n += named) {
		snprintf(topic, sizeof(topic), "%08x-%u", (n * 16 + whose) * 2654435761u, whose);
		named = subscribe(l, topic);
		for (unsigned i = 0; i < 10 && !named; i++) {
			take_all();
			named = recv(l->ours, bytes, sizeof(bytes), MSG_DONTWAIT) > 0;
		}
		take_all();
	}
	return n;
}

static void end_unseen(void)
{
	struct line first, second, third;
	uint64_t before = peer_guard_cuts(PEER_GUARD_SUBSCRIBERS);
	unsigned most;

	open_after_others(&first);
	most = name_topics(&first, 1, 100000);
	CHECK(most > 1000 && most < 100000);
	CHECK(peer_guard_cuts(PEER_GUARD_SUBSCRIBERS) == before + 1);
	line_close(&first);
	open_after_others(&second);
	CHECK(name_topics(&second, 2, most / 4 * 3) == most / 4 * 3);
	close(second.theirs);
	second.theirs = fcntl(second.ours, F_DUPFD_CLOEXEC, 0); /* its number is not used again */
	close(second.ours);
	close(second.theirs);
	second.ours = open("/dev/null", O_RDONLY | O_CLOEXEC);
	open_after_others(&third);
	CHECK(name_topics(&third, 3, most / 4 * 3) == most / 4 * 3);
	CHECK(peer_guard_cuts(PEER_GUARD_SUBSCRIBERS) == before + 1);
	line_close(&third);
	close(second.ours);
}

static void topics__of_a_connection_that_ended_unseen__are_forgotten(void **state)
{
	(void)state;
	take_all();
	in_thread("2/ZMQbg/IO/0", end_unseen);
}

static void send_nonsense(void)
{
	static const struct {
		int family;
		const char *begin;
	} table[] = {{AF_INET, "127.0.0.1:"}, {AF_INET6, "[::1]:"}, {AF_UNIX, ""}};
	struct peer_guard_cut cut;
	struct line l;

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct sockaddr_storage a;
		socklen_t len = sizeof(a);
		char port[16];

		if (!try_connect(&l, table[i].family))
			continue;
		CHECK(getsockname(l.theirs, (struct sockaddr *)&a, &len) == 0);
		snprintf(port, sizeof(port), "%u", ntohs(((struct sockaddr_in *)&a)->sin_port));
		CHECK(pass_bytes(&l, "GET / HTTP/1.1", 14) == 0);
		peer_guard_last_cut(&cut);
		CHECK(strncmp(cut.address, table[i].begin, strlen(table[i].begin)) == 0);
		CHECK(strcmp(cut.address + strlen(table[i].begin), table[i].begin[0] ? port : "") ==
			0);
		CHECK(strcmp(cut.why, "it does not speak ZMTP 3: libzmq 4 and newer do") == 0);
		line_close(&l);
	}
}

static void address__of_a_peer_that_was_cut_off__is_known_where_it_has_one(void **state)
{
	(void)state;
	in_thread("2/ZMQbg/IO/0", send_nonsense);
}

static void read_without_memory(void)
{
	static const int numbers[] = {200, 450, 950};
	static const char *const names[] = {"first", "second", "third"};
	struct peer_guard_cut cut;
	struct line l;
	char bytes[64];

	for (size_t i = 0; i < 3; i++) {
		line_open(&l);
		close(fcntl(l.ours, F_DUPFD_CLOEXEC, numbers[i]));
		CHECK(dup2(l.ours, numbers[i]) == numbers[i]);
		close(l.ours);
		l.ours = numbers[i];
		CHECK(send(l.theirs, greeting, 64, MSG_NOSIGNAL) == 64);
		fault_memory.seen = 0;
		fault_memory.nth = 1;
		CHECK(recv(l.ours, bytes, 64, 0) == 0);
		fault_memory.nth = 0;
		line_close(&l);
	}
	for (unsigned nth = 1; nth <= 3; nth++) {
		open_subscriber(&l);
		fault_memory.seen = 0;
		fault_memory.nth = nth;
		if (!subscribe(&l, names[nth - 1])) {
			peer_guard_last_cut(&cut);
			CHECK(strcmp(cut.why, "out of memory") == 0);
		} else {
			CHECK(nth > 1);
		}
		fault_memory.nth = 0;
		line_close(&l);
		take_all();
	}
}

static void memory__that_is_short__cuts_a_connection_off(void **state)
{
	(void)state;
	take_all();
	in_thread("2/ZMQbg/IO/0", read_without_memory);
}

static void wakes__is_one_descriptor_of_the_process(void **state)
{
	int fd = peer_guard_wakes();

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(peer_guard_wakes(), fd);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC && fcntl(fd, F_GETFL) & O_NONBLOCK);
}

/* The next connection has the number of the last. */
static void read_in_turn(void)
{
	struct line l;
	int number = -1;

	for (unsigned i = 0; i < 20; i++) {
		line_open(&l);
		CHECK(number < 0 || number == l.ours);
		number = l.ours;
		CHECK(pass(&l, PEER_GUARD_HELD) == PEER_GUARD_HELD);
		if (i % 2)
			CHECK(pass(&l, 1) == 0); /* and the mark of that is not the next's */
		line_close(&l);
	}
	peer_guard_delivered(-1, 1, false);
	peer_guard_delivered(1 << 20, 1, false);
	CHECK(!peer_guard_take_cut(-1));
}

static void number__of_a_descriptor_that_is_used_again__begins_anew(void **state)
{
	(void)state;
	in_thread("1/ZMQbg/IO/0", read_in_turn);
}

/* Each where the table just has room for it, has not, or has far too little. */
static void read_by_high_numbers(void)
{
	static const int numbers[] = {63, 64, 65, 127, 128, 129, 300, 301, 700};
	struct line l;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		line_open(&l);
		CHECK(dup3(l.ours, numbers[i], O_CLOEXEC) == numbers[i]);
		close(l.ours);
		l.ours = numbers[i];
		CHECK(pass(&l, PEER_GUARD_HELD) == PEER_GUARD_HELD);
		CHECK(pass(&l, 1) == 0);
		CHECK(peer_guard_take_cut(l.ours));
		line_close(&l);
	}
}

static void number__however_high__is_guarded(void **state)
{
	(void)state;
	in_thread("1/ZMQbg/IO/0", read_by_high_numbers);
}

static void read_other_kinds(void)
{
	static const int families[] = {AF_INET6, AF_UNIX};
	struct line l;
	int pair[2];

	for (size_t i = 0; i < 2; i++)
		if (try_connect(&l, families[i])) {
			CHECK(pass(&l, PEER_GUARD_HELD) == PEER_GUARD_HELD);
			CHECK(pass(&l, 1) == 0);
			line_close(&l);
		}
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	l = (struct line){pair[0], pair[1]};
	CHECK(pass(&l, 2 * PEER_GUARD_HELD) == 2 * PEER_GUARD_HELD);
	line_close(&l);
}

static void ipv6_and_ipc__are_guarded_and_a_pair_of_libzmqs_own_is_not(void **state)
{
	(void)state;
	in_thread("1/ZMQbg/IO/0", read_other_kinds);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(other_threads__read_what_they_like),
		cmocka_unit_test(connection__of_which_nothing_comes_out__ends_at_the_bound),
		cmocka_unit_test(messages__that_came_out__are_not_held_against_a_peer),
		cmocka_unit_test(credit__for_what_is_around_messages__cannot_be_saved_up),
		cmocka_unit_test(sealed_connection__has_eight_times_the_bound),
		cmocka_unit_test(subscriber__that_sends_anything_else__is_cut_off),
		cmocka_unit_test(sealed_frame__that_is_forged_or_no_subscription__is_not_opened),
		cmocka_unit_test(topics__without_end__cut_off_the_one_with_the_most),
		cmocka_unit_test(subscriptions__that_nobody_takes__wait_outside),
		cmocka_unit_test(burst__of_subscriptions__is_read_in_small_pieces),
		cmocka_unit_test(topics__of_a_connection_that_ended_unseen__are_forgotten),
		cmocka_unit_test(address__of_a_peer_that_was_cut_off__is_known_where_it_has_one),
		cmocka_unit_test(wakes__is_one_descriptor_of_the_process),
		cmocka_unit_test(number__however_high__is_guarded),
		cmocka_unit_test(number__of_a_descriptor_that_is_used_again__begins_anew),
		cmocka_unit_test(ipv6_and_ipc__are_guarded_and_a_pair_of_libzmqs_own_is_not),
		cmocka_unit_test(memory__that_is_short__cuts_a_connection_off),
	};

	return fault_memory_run(tests, 1);
}
