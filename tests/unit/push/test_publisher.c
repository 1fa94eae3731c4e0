/*
 * A publisher whose subscribers and whose questions about keys are sockets of its own context: what
 * it makes of subscriptions, whom it lets in, what it sends, its options, and libzmq that fails.
 */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "push/message.h"
#include "push/peer_guard.h"
#include "push/publisher.h"
#include "tests/unit/fixture/captured.h"
#include "tests/unit/fixture/fault_zmq.h"
#include "tests/unit/fixture/scratch.h"

#define LIMIT_MS 10000
#define NO_MEMORY "out of memory or descriptors"

static char dir[SCRATCH_PATH], key_file[SCRATCH_PATH + 16], allow_file[SCRATCH_PATH + 16];
static char public_key[CURVE_TEXT], ipc[SCRATCH_PATH + 16], said[8192];
static unsigned char binary_key[CURVE_KEY];
static struct publisher *publisher;
static void *subscriber, *zap;
static struct captured captured;

static int set_up(void **state)
{
	char secret[CURVE_TEXT], why[CURVE_WHY];

	(void)state;
	alarm(60);
	log_setup(LOG_LEVEL_DEBUG, LOG_FORMAT_TEXT);
	captured = captured_begin(STDERR_FILENO);
	scratch_open(dir, scratch_memory());
	snprintf(key_file, sizeof(key_file), "%s/key", dir);
	snprintf(allow_file, sizeof(allow_file), "%s/allow", dir);
	snprintf(ipc, sizeof(ipc), "ipc://%s/push", dir);
	assert_int_equal(zmq_curve_keypair(public_key, secret), 0);
	assert_int_equal(curve_write_pair(&sys_real, key_file, public_key, secret, why), 0);
	zmq_z85_decode(binary_key, public_key);
	scratch_write(dir, "allow", public_key, strlen(public_key));
	fault_zmq.option_count = 0;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	fault_zmq_fail(0, 0);
	if (subscriber)
		zmq_close(subscriber);
	if (zap)
		zmq_close(zap);
	publisher_close(publisher);
	subscriber = zap = publisher = NULL;
	captured_end(&captured);
	scratch_close(dir);
	assert_int_equal(fault_zmq.sockets, 0);
	assert_int_equal(fault_zmq.contexts, 0);
	return 0;
}

/* What was logged so far. */
static const char *read_log(void)
{
	captured_read(&captured, said, sizeof(said));
	return said;
}

static void assert_log(const char *words)
{
	if (!strstr(read_log(), words))
		fail_msg("%s: %s", words, said);
}

static void open_publisher(const char *endpoint, const struct publisher_options *options)
{
	static const struct publisher_options insecure = {.insecure = true};
	char why[CURVE_WHY] = "";

	if (publisher_open(&sys_real, endpoint, options ? options : &insecure, &publisher, why))
		fail_msg("%s", why);
}

static void *open_own(int type, const char *endpoint)
{
	void *s = zmq_socket(fault_zmq.context, type);
	int zero = 0;

	assert_non_null(s);
	zmq_setsockopt(s, ZMQ_LINGER, &zero, sizeof(zero));
	assert_int_equal(zmq_connect(s, endpoint), 0);
	return s;
}

static void open_here(void)
{
	open_publisher("inproc://push", NULL);
	subscriber = open_own(ZMQ_XSUB, "inproc://push");
}

/* ---- subscriptions ---- */

static void subscription__in_each_form__is_a_prefix_and_whether_it_is_new(void **state)
{
	static char longest[514] = "\1", beyond[514] = "\1";
	static const struct {
		const char *frame;
		size_t len, room;
		const char *prefix;
		int is_new;
	} table[] = {
		{"\1web", 4, 512, "web", 1},
		{"\0web", 4, 512, "web", 0},
		{"\1", 1, 512, "", 1},
		{"\0", 1, 512, "", 0},
		{"\1web", 4, 4, "web", 1},
		{"\1web", 4, 3, "", 1}, /* no room for it */
		{"\1we\0b", 5, 512, "we", 0},
		{"\1we\0", 4, 512, "we", 0},
		{longest, 512, 512, longest + 1, 1},
		{beyond, 513, 513, "", 1},
	};
	char prefix[513];
	int is_new = -1;

	(void)state;
	memset(longest + 1, 'l', 511);
	memset(beyond + 1, 'b', 512);
	open_here();
	assert_int_equal(publisher_poll(publisher, prefix, sizeof(prefix), &is_new), 0);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		memset(prefix, '#', sizeof(prefix));
		assert_int_equal(
			zmq_send(subscriber, table[i].frame, table[i].len, 0), table[i].len);
		assert_int_equal(publisher_poll(publisher, prefix, table[i].room, &is_new), 1);
		assert_string_equal(prefix, table[i].prefix);
		if (table[i].room < sizeof(prefix)) /* nothing is written behind it */
			assert_int_equal(prefix[table[i].room], '#');
		assert_int_equal(is_new, table[i].is_new);
		assert_int_equal(publisher_poll(publisher, prefix, sizeof(prefix), &is_new), 0);
	}
}

static void descriptor__is_readable_when_a_subscription_came(void **state)
{
	struct pollfd fd;
	char prefix[64];
	int is_new;

	(void)state;
	open_here();
	fd = (struct pollfd){.fd = publisher_fd(publisher), .events = POLLIN};
	while (publisher_poll(publisher, prefix, sizeof(prefix), &is_new) > 0 ||
		poll(&fd, 1, 0) > 0)
		;
	assert_int_equal(zmq_send(subscriber, "\1web", 4, 0), 4);
	assert_int_equal(poll(&fd, 1, LIMIT_MS), 1);
	assert_int_equal(publisher_poll(publisher, prefix, sizeof(prefix), &is_new), 1);
}

static void subscriptions__that_cannot_be_read__are_an_error(void **state)
{
	const struct publisher_options options = {
		.secret_key_file = key_file, .allow_file = allow_file};
	char prefix[64];
	int is_new;

	(void)state;
	open_publisher("inproc://push", &options);
	for (size_t nth = 1; nth <= 2; nth++) { /* whether a key may connect comes first */
		fault_zmq_fail(nth, ETERM);
		assert_int_equal(
			publisher_poll(publisher, prefix, sizeof(prefix), &is_new), -ETERM);
		assert_true(fault_zmq_failed());
	}
	assert_int_equal(publisher_poll(publisher, prefix, sizeof(prefix), &is_new), 0);
}

static uint64_t skipped_ms;

static uint64_t later_ms(void)
{
	return sys_real.now_ms() + skipped_ms;
}

/* A peer that does not speak ZMTP, until it is cut off: the n-th one. */
static void be_cut_off(uint64_t n)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	uint64_t end_ms = sys_real.now_ms() + LIMIT_MS;
	struct pollfd end = {.fd = fd};

	snprintf(address.sun_path, sizeof(address.sun_path), "%.90s/push", dir);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(send(fd, "\1", 1, MSG_NOSIGNAL), 1);
	while (!(poll(&end, 1, 5) == 1 && end.revents & POLLHUP) &&
		peer_guard_cuts(PEER_GUARD_SUBSCRIBERS) < n)
		assert_true(sys_real.now_ms() < end_ms);
	close(fd);
}

static void peer__that_was_cut_off__is_logged_once(void **state)
{
	static const char line[] = "<4>a subscriber was cut off why=\"it does not speak ZMTP 3: "
				   "libzmq 4 and newer do\" cuts=1\n";
	const struct publisher_options options = {.insecure = true};
	struct sys sys = sys_real;
	char prefix[64], why[CURVE_WHY] = "", both[sizeof(line) * 2];
	int is_new;

	(void)state;
	sys.now_ms = later_ms;
	assert_int_equal(publisher_open(&sys, ipc, &options, &publisher, why), 0);
	assert_int_equal(publisher_poll(publisher, prefix, sizeof(prefix), &is_new), 0);
	assert_string_equal(read_log(), "");
	be_cut_off(1);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(publisher_poll(publisher, prefix, sizeof(prefix), &is_new), 0);
		assert_string_equal(read_log(), line);
		skipped_ms += 3600000; /* one line a minute is no reason */
	}
	be_cut_off(2);
	assert_int_equal(publisher_poll(publisher, prefix, sizeof(prefix), &is_new), 0);
	snprintf(both, sizeof(both), "%s%s", line, line);
	assert_string_equal(read_log(), both);
}

/* ---- keys ---- */

struct zap_frame {
	const char *data;
	size_t len;
};

static void ask(const struct zap_frame *frames, size_t count)
{
	for (size_t i = 0; i < count; i++)
		assert_int_equal(zmq_send(zap, frames[i].data, frames[i].len,
					 i + 1 < count ? ZMQ_SNDMORE : 0),
			frames[i].len);
}

/* Takes the answer: version, id, status, text, user, metadata. */
static void assert_answer(const char *id, const char *status, const char *text)
{
	const char *const wanted[] = {"1.0", id, status, text, "", ""};
	size_t size = sizeof(int);
	char frame[300];
	int n, more = 1;

	for (size_t i = 0; i < 6; i++) {
		assert_int_equal(more, 1);
		n = zmq_recv(zap, frame, sizeof(frame) - 1, ZMQ_DONTWAIT);
		assert_true(n >= 0);
		frame[n] = '\0';
		assert_int_equal(n, strlen(wanted[i]));
		assert_string_equal(frame, wanted[i]);
		assert_int_equal(zmq_getsockopt(zap, ZMQ_RCVMORE, &more, &size), 0);
	}
	assert_int_equal(more, 0);
}

static void open_with_list(void)
{
	const struct publisher_options options = {
		.secret_key_file = key_file, .allow_file = allow_file};

	open_publisher("inproc://push", &options);
	zap = open_own(ZMQ_REQ, "inproc://zeromq.zap.01");
}

static void poll_none(void)
{
	char prefix[64];
	int is_new;

	assert_int_equal(publisher_poll(publisher, prefix, sizeof(prefix), &is_new), 0);
}

static void question__about_a_key__is_answered_by_the_list(void **state)
{
	static const char other[CURVE_KEY + 1] = "others others others others othe";
	const char *key = (const char *)binary_key;
	const struct {
		struct zap_frame frames[8];
		size_t count;
		bool good;
		const char *id;
	} table[] = {
		{{{"1.0", 3}, {"7", 1}, {"pullet", 6}, {"192.0.2.1", 9}, {"", 0}, {"CURVE", 5},
			 {key, 32}},
			7, true, "7"},
		{{{"1.0", 3}, {"id-8", 4}, {"pullet", 6}, {"192.0.2.1", 9}, {"", 0}, {"CURVE", 5},
			 {other, 32}},
			7, false, "id-8"},
		{{{"1.0", 3}, {"9", 1}, {"", 0}, {"", 0}, {"", 0}, {"PLAIN", 5}, {key, 32}}, 7,
			false, "9"},
		{{{"1.0", 3}, {"9", 1}, {"", 0}, {"", 0}, {"", 0}, {"CURVE", 5}, {key, 31}}, 7,
			false, "9"},
		{{{"1.0", 3}, {"9", 1}, {"", 0}, {"", 0}, {"", 0}, {"NULL", 4}}, 6, false, "9"},
		{{{"1.0", 3}, {"9", 1}, {"", 0}, {"", 0}, {"", 0}, {"CURVE", 5}, {key, 32},
			 {"more", 4}},
			8, true, "9"},
		{{{"1.0", 3}}, 1, false, ""},
	};

	(void)state;
	open_with_list();
	poll_none();
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		ask(table[i].frames, table[i].count);
		poll_none();
		assert_answer(table[i].id, table[i].good ? "200" : "400",
			table[i].good ? "OK" : "not allowed");
	}
	assert_log("subscriber denied: its key is not on the list of allowed keys "
		   "address=192.0.2.1 public_key=");
	assert_null(strstr(said, "repeated="));
	assert_null(strstr(strstr(said, "denied:") + 1, "denied:")); /* other forms are no key */
}

static void list__that_cannot_be_read_any_more__counts_as_it_was(void **state)
{
	const struct zap_frame frames[] = {{"1.0", 3}, {"1", 1}, {"", 0}, {"", 0}, {"", 0},
		{"CURVE", 5}, {(const char *)binary_key, 32}};

	(void)state;
	open_with_list();
	assert_int_equal(unlink(allow_file), 0);
	ask(frames, 7);
	poll_none();
	assert_answer("1", "200", "OK");
	assert_log("cannot read the list of allowed keys: keeping the last valid one why=");
}

/* Six or seven frames are read with two calls each, and six are sent. */
static void question__that_cannot_be_read_or_answered__is_an_error(void **state)
{
	const struct zap_frame frames[] = {{"1.0", 3}, {"1", 1}, {"", 0}, {"", 0}, {"", 0},
		{"CURVE", 5}, {(const char *)binary_key, 32}};
	char prefix[64];
	int is_new;

	(void)state;
	for (size_t nth = 1; nth <= 2 * 7 + 6; nth++) {
		open_with_list();
		ask(frames, 7);
		fault_zmq_fail(nth, ETERM);
		assert_int_equal(
			publisher_poll(publisher, prefix, sizeof(prefix), &is_new), -ETERM);
		assert_true(fault_zmq_failed());
		zmq_close(zap);
		zap = NULL;
		publisher_close(publisher);
		publisher = NULL;
	}
}

/* ---- messages ---- */

static const char *receive(void)
{
	static char text[600];
	char frame[300];
	int n;

	n = zmq_recv(subscriber, frame, sizeof(frame) - 1, ZMQ_DONTWAIT);
	assert_true(n >= 0);
	frame[n] = '\0';
	snprintf(text, sizeof(text), "%s", frame);
	n = zmq_recv(subscriber, frame, sizeof(frame) - 1, ZMQ_DONTWAIT);
	assert_true(n > 0);
	frame[n] = '\0';
	snprintf(text + strlen(text), sizeof(text) - strlen(text), " %s", frame);
	return text;
}

static void subscribe_to_all(void)
{
	char prefix[64];
	int is_new;

	assert_int_equal(zmq_send(subscriber, "\1", 1, 0), 1);
	assert_int_equal(publisher_poll(publisher, prefix, sizeof(prefix), &is_new), 1);
}

static void message__has_a_number_and_only_what_was_given(void **state)
{
	const char *text;

	(void)state;
	open_here();
	subscribe_to_all();
	assert_int_equal(publisher_send(publisher, "web", NULL, 0), 0);
	text = receive();
	assert_memory_equal(text, "web {", 5);
	assert_non_null(strstr(text, "\"seq\":1"));
	assert_null(strstr(text, "version"));
	assert_null(strstr(text, "spread"));
	assert_int_equal(publisher_send(publisher, "web", "v9", 1), 0);
	text = receive();
	assert_non_null(strstr(text, "\"seq\":2"));
	assert_non_null(strstr(text, "\"version\":\"v9\""));
	assert_non_null(strstr(text, "\"spread_ms\":1"));
	assert_int_equal(publisher_send(publisher, "", "", 0), 0);
	text = receive();
	assert_memory_equal(text, " {", 2);
	assert_int_equal(publisher_heartbeat(publisher), 0);
	text = receive();
	assert_ptr_equal(strstr(text, PUSH_HEARTBEAT_TOPIC " {"), text);
	assert_non_null(strstr(text, "\"epoch\":\""));
	assert_null(strstr(text, "seq"));
}

static void message__that_cannot_be_sent__is_an_error(void **state)
{
	const struct push_message m = {0};

	(void)state;
	open_here();
	subscribe_to_all();
	for (size_t nth = 1; nth <= 2; nth++) {
		fault_zmq_fail(nth, ENOBUFS);
		assert_int_equal(publisher_send(publisher, "web", "", 0), -ENOBUFS);
		fault_zmq_fail(nth, ENOBUFS);
		assert_int_equal(publisher_heartbeat(publisher), -ENOBUFS);
		fault_zmq_fail(nth, ENOBUFS);
		assert_int_equal(publisher_forward(publisher, "web", &m, false), -ENOBUFS);
		assert_true(fault_zmq_failed());
	}
}

static void strictness__is_changed_when_another_is_asked_for(void **state)
{
	const struct push_message m = {0};
	static const struct {
		bool strict;
		int set; /* -2: not at all */
	} table[] = {{false, -2}, {true, 1}, {true, -2}, {false, 0}, {false, -2}};

	(void)state;
	open_here();
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		fault_zmq.option_count = 0;
		assert_int_equal(publisher_forward(publisher, "web", &m, table[i].strict), 0);
		assert_int_equal(fault_zmq_option(ZMQ_XPUB_NODROP), table[i].set);
	}
	fault_zmq_fail(1, ENOMEM);
	assert_int_equal(publisher_forward(publisher, "web", &m, true), -ENOMEM);
	fault_zmq.option_count = 0;
	assert_int_equal(publisher_forward(publisher, "web", &m, true), 0);
	assert_int_equal(fault_zmq_option(ZMQ_XPUB_NODROP), 1);
}

/* ---- open ---- */

static void options__are_those_of_the_queue_and_the_address(void **state)
{
	static const struct {
		const char *endpoint;
		int queue, sndhwm, sndbuf, ipv6;
	} table[] = {
		{"tcp://127.0.0.1:0", 0, 1000, -1, 0},
		{"127.0.0.1:*", 1, 1, 256 << 10, 1},
		{"inproc://[", 0, 1000, -1, 1},
	};
	static const struct {
		int option, value;
	} fixed[] = {{ZMQ_LINGER, 1000}, {ZMQ_RCVHWM, 0}, {ZMQ_BACKLOG, 4096},
		{ZMQ_XPUB_VERBOSE, 1}, {ZMQ_HEARTBEAT_IVL, 5000}};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const struct publisher_options options = {
			.insecure = true, .queue = table[i].queue};

		fault_zmq.option_count = 0;
		open_publisher(table[i].endpoint, &options);
		assert_int_equal(fault_zmq_option(ZMQ_SNDHWM), table[i].sndhwm);
		assert_int_equal(fault_zmq_option(ZMQ_SNDBUF), table[i].sndbuf);
		assert_int_equal(fault_zmq_option(ZMQ_IPV6), table[i].ipv6);
		for (size_t k = 0; k < sizeof(fixed) / sizeof(fixed[0]); k++)
			assert_int_equal(fault_zmq_option(fixed[k].option), fixed[k].value);
		publisher_close(publisher);
		publisher = NULL;
	}
	open_publisher("127.0.0.1:0", NULL);
	assert_ptr_equal(strstr(publisher_endpoint(publisher), "tcp://127.0.0.1:"),
		publisher_endpoint(publisher));
	assert_string_not_equal(publisher_endpoint(publisher), "tcp://127.0.0.1:0");
}

static void check_faults(const struct publisher_options *options, const char *const *words)
{
	struct publisher *p = NULL;
	char why[CURVE_WHY];
	size_t nth = 1;

	for (;; nth++) {
		int r;

		why[0] = '\0';
		fault_zmq_fail(nth, EMFILE);
		r = publisher_open(&sys_real, ipc, options, &p, why);
		if (!fault_zmq_failed()) {
			assert_int_equal(r, 0);
			break;
		}
		if (nth == 3) { /* copying small frames is better, and no more */
			assert_int_equal(r, 0);
			publisher_close(p);
			p = NULL;
			continue;
		}
		assert_true(r < 0);
		assert_null(p);
		for (size_t i = 0; words[i] && !strstr(why, words[i]); i++)
			if (!words[i + 1])
				fail_msg("%zu: %s", nth, why);
		assert_int_equal(fault_zmq.sockets, 0);
		assert_int_equal(fault_zmq.contexts, 0);
	}
	assert_true(nth > 18);
	publisher_close(p);
}

static void publisher__that_cannot_be_opened__says_why_and_leaves_nothing_open(void **state)
{
	const struct publisher_options plain = {.insecure = true},
				       keyed = {.secret_key_file = key_file},
				       listed = {.secret_key_file = key_file,
					       .allow_file = allow_file};
	static const char *const words[] = {NO_MEMORY, "cannot bind ipc://", NULL},
				 *const keys[] = {NO_MEMORY, "cannot bind ipc://",
					 "key: it does not hold a secret key",
					 "libzmq was built without CURVE", NULL};

	(void)state;
	check_faults(&plain, words);
	check_faults(&keyed, keys);
	check_faults(&listed, keys);
}

static void endpoint__of_the_longest_name__is_tried_and_one_longer_is_not(void **state)
{
	static const struct publisher_options options = {.insecure = true};
	char endpoint[300], why[CURVE_WHY];
	struct publisher *p = NULL;

	(void)state;
	memset(endpoint, 'x', sizeof(endpoint));
	memcpy(endpoint, "inproc://", 9);
	endpoint[255] = '\0';
	open_publisher(endpoint, NULL);
	assert_string_equal(publisher_endpoint(publisher), endpoint);
	endpoint[255] = 'x';
	endpoint[256] = '\0';
	assert_int_equal(publisher_open(&sys_real, endpoint, &options, &p, why), -ENAMETOOLONG);
	assert_ptr_equal(strstr(why, "cannot bind inproc://xx"), why);
	assert_non_null(strstr(why, "x...: it is too long"));
	assert_null(p);
}

static void options__that_contradict_each_other__are_rejected(void **state)
{
	const struct publisher_options list_alone = {.allow_file = allow_file, .insecure = true},
				       both = {.secret_key_file = key_file, .insecure = true},
				       none = {0};
	struct publisher *p = NULL;
	char why[CURVE_WHY];

	(void)state;
	assert_int_equal(publisher_open(&sys_real, ipc, &list_alone, &p, why), -EINVAL);
	assert_string_equal(why, "--curve-allow needs --curve-secret-key beside it");
	assert_int_equal(publisher_open(&sys_real, ipc, &both, &p, why), -EINVAL);
	assert_string_equal(
		why, "--insecure and --curve-secret-key exclude each other: leave one out");
	assert_int_equal(publisher_open(&sys_real, "0.0.0.0:0", &none, &p, why), -EINVAL);
	assert_ptr_equal(strstr(why, "0.0.0.0:0 can be reached from other hosts"), why);
	assert_null(p);
	assert_int_equal(publisher_open(&sys_real, ipc, &none, &publisher, why), 0);
}

static int scheduling_error; /* of the sandbox; libzmq asks, too */

int pthread_setschedparam(pthread_t thread, int policy, const struct sched_param *param)
{
	(void)thread, (void)policy, (void)param;
	return scheduling_error;
}

static void publisher__that_may_not_set_its_scheduling__says_so(void **state)
{
	static const struct publisher_options insecure = {.insecure = true};
	struct publisher *p = NULL;
	char why[CURVE_WHY];

	(void)state;
	scheduling_error = EPERM;
	assert_int_equal(publisher_open(&sys_real, "127.0.0.1:0", &insecure, &p, why), -EPERM);
	scheduling_error = 0;
	assert_null(p);
	assert_string_equal(why,
		"cannot start libzmq: Operation not permitted: a sandbox (seccomp) denies it, or "
		"the kernel is older than 5.3");
}

/* libzmq would remove it. */
static void ipc__where_a_file_lies__is_refused_and_the_file_kept(void **state)
{
	const struct publisher_options options = {0};
	struct publisher *p = NULL;
	char why[CURVE_WHY], path[SCRATCH_PATH + 16];
	struct stat st;

	(void)state;
	scratch_write(dir, "push", "a: 1\n", 5);
	assert_int_equal(publisher_open(&sys_real, ipc, &options, &p, why), -EEXIST);
	assert_ptr_equal(strstr(why, "cannot bind ipc://"), why);
	assert_non_null(strstr(why, "/push: there is something else than a socket: remove it"));
	snprintf(path, sizeof(path), "%s/push", dir);
	assert_int_equal(stat(path, &st), 0);
	assert_true(S_ISREG(st.st_mode));
	assert_int_equal(st.st_size, 5);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("allow", path), 0); /* of which it would remove the link */
	assert_int_equal(publisher_open(&sys_real, ipc, &options, &p, why), -EEXIST);
	assert_int_equal(unlink(path), 0);
	assert_null(p);
	open_publisher(ipc, NULL);
}

static void ipc__where_another_publishes__is_refused_until_it_ends(void **state)
{
	const struct publisher_options options = {0};
	struct publisher *p = NULL;
	char why[CURVE_WHY], path[SCRATCH_PATH + 16];

	(void)state;
	open_publisher(ipc, NULL);
	assert_int_equal(publisher_open(&sys_real, ipc, &options, &p, why), -EADDRINUSE);
	assert_null(p);
	publisher_close(publisher);
	publisher = NULL;
	snprintf(path, sizeof(path), "%s/push", dir);
	assert_int_equal(access(path, F_OK), 0); /* as it is left */
	open_publisher(ipc, NULL);
}

/* Of a service manager, say: libzmq would remove it. */
static void ipc__where_a_socket_of_another_kind_is_bound__is_refused_and_it_is_kept(void **state)
{
	static const int kinds[] = {SOCK_DGRAM, SOCK_SEQPACKET};
	const struct publisher_options options = {0};
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	struct publisher *p = NULL;
	char why[CURVE_WHY];

	(void)state;
	snprintf(at.sun_path, sizeof(at.sun_path), "%s", ipc + strlen("ipc://"));
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		int fd = socket(AF_UNIX, kinds[i] | SOCK_CLOEXEC, 0);

		assert_int_equal(bind(fd, (const struct sockaddr *)&at, sizeof(at)), 0);
		assert_int_equal(publisher_open(&sys_real, ipc, &options, &p, why), -EADDRINUSE);
		assert_null(p);
		assert_non_null(strstr(why, "Address already in use"));
		assert_int_equal(access(at.sun_path, F_OK), 0);
		close(fd);
		assert_int_equal(unlink(at.sun_path), 0);
	}
	open_publisher(ipc, NULL);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(subscription__in_each_form__is_a_prefix_and_whether_it_is_new),
		CASE(descriptor__is_readable_when_a_subscription_came),
		CASE(subscriptions__that_cannot_be_read__are_an_error),
		CASE(peer__that_was_cut_off__is_logged_once),
		CASE(question__about_a_key__is_answered_by_the_list),
		CASE(list__that_cannot_be_read_any_more__counts_as_it_was),
		CASE(question__that_cannot_be_read_or_answered__is_an_error),
		CASE(message__has_a_number_and_only_what_was_given),
		CASE(message__that_cannot_be_sent__is_an_error),
		CASE(strictness__is_changed_when_another_is_asked_for),
		CASE(options__are_those_of_the_queue_and_the_address),
		CASE(publisher__that_cannot_be_opened__says_why_and_leaves_nothing_open),
		CASE(endpoint__of_the_longest_name__is_tried_and_one_longer_is_not),
		CASE(options__that_contradict_each_other__are_rejected),
		CASE(publisher__that_may_not_set_its_scheduling__says_so),
		CASE(ipc__where_a_file_lies__is_refused_and_the_file_kept),
		CASE(ipc__where_another_publishes__is_refused_until_it_ends),
		CASE(ipc__where_a_socket_of_another_kind_is_bound__is_refused_and_it_is_kept),
	};

	return cmocka_run_group_tests_name("publisher", tests, NULL, NULL);
}
