/*
 * Which connection carries which request: places, sessions, servers of HTTP/2, on a clock of the
 * test. libcurl's handles are played: the functions by which they are set up are defined here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <sys/socket.h>
#include <unistd.h>

#include "http/connections.h"
#include "tests/unit/fixture/scratch.h"

#undef curl_easy_setopt
#undef curl_easy_getinfo
#undef curl_share_setopt

#define IDLE_MS (CONNECTIONS_IDLE_S * UINT64_C(1000))
#define LIFE_MS (CONNECTIONS_SESSION_S * UINT64_C(1000))
#define WARY_MS ((CONNECTIONS_CA_CACHE_S + 1) * UINT64_C(1000))
#define URL "https://server/a"
#define PLAIN "http://server/a"

/* ---- libcurl ---- */

struct share_played {
	unsigned serial; /* an address may be used again */
	bool connections, sessions;
};

/* A transfer's handle; its address is the CURL *. */
struct easy {
	long fresh, forbid, version;
	struct share_played *share;
	int (*check)(void *arg, char *peer, char *own, int peer_port, int own_port);
	void *check_arg;
	curl_socket_t (*open)(void *arg, curlsocktype purpose, struct curl_sockaddr *address);
	void *open_arg;
	curl_socket_t active;
	CURLoption refuses;
};

static unsigned shares, last_share; /* that are there; how many there were */
static bool no_shares, no_locks;

CURLcode curl_easy_setopt(CURL *handle, CURLoption option, ...)
{
	struct easy *e = (struct easy *)handle;
	va_list args;

	if (option == e->refuses)
		return CURLE_UNKNOWN_OPTION;
	va_start(args, option);
	switch ((int)option) {
	case CURLOPT_FRESH_CONNECT:
		e->fresh = va_arg(args, long);
		break;
	case CURLOPT_FORBID_REUSE:
		e->forbid = va_arg(args, long);
		break;
	case CURLOPT_HTTP_VERSION:
		e->version = va_arg(args, long);
		break;
	case CURLOPT_SHARE:
		e->share = va_arg(args, struct share_played *);
		break;
	case CURLOPT_PREREQFUNCTION:
		e->check = va_arg(args, int (*)(void *, char *, char *, int, int));
		break;
	case CURLOPT_PREREQDATA:
		e->check_arg = va_arg(args, void *);
		break;
	case CURLOPT_OPENSOCKETFUNCTION:
		e->open = va_arg(
			args, curl_socket_t(*)(void *, curlsocktype, struct curl_sockaddr *));
		break;
	case CURLOPT_OPENSOCKETDATA:
		e->open_arg = va_arg(args, void *);
		break;
	default:
		fail_msg("option %d", (int)option);
	}
	va_end(args);
	return CURLE_OK;
}

CURLcode curl_easy_getinfo(CURL *handle, CURLINFO info, ...)
{
	va_list args;

	va_start(args, info);
	if (info == CURLINFO_ACTIVESOCKET)
		*va_arg(args, curl_socket_t *) = ((struct easy *)handle)->active;
	va_end(args);
	return info == CURLINFO_ACTIVESOCKET ? CURLE_OK : CURLE_UNKNOWN_OPTION;
}

CURLSH *curl_share_init(void)
{
	struct share_played *s = no_shares ? NULL : calloc(1, sizeof(*s));

	shares += s != NULL;
	if (s)
		s->serial = ++last_share;
	return (CURLSH *)s;
}

CURLSHcode curl_share_setopt(CURLSH *handle, CURLSHoption option, ...)
{
	struct share_played *s = (struct share_played *)handle;
	va_list args;
	int data;

	if (no_locks)
		return CURLSHE_NOT_BUILT_IN;
	assert_int_equal(option, CURLSHOPT_SHARE);
	va_start(args, option);
	data = va_arg(args, int);
	va_end(args);
	s->connections |= data == CURL_LOCK_DATA_CONNECT;
	s->sessions |= data == CURL_LOCK_DATA_SSL_SESSION;
	return CURLSHE_OK;
}

CURLSHcode curl_share_cleanup(CURLSH *handle)
{
	shares -= handle != NULL;
	free(handle);
	return CURLSHE_OK;
}

/* ---- transfers ---- */

struct transfer_played {
	struct connections_use use;
	struct easy easy;
};

static struct connections *c;
static uint64_t now_ms;
static char dir[SCRATCH_PATH], ca[SCRATCH_PATH + 16];

static int last_watched; /* numbers up to it are */

static bool is_watched(void *arg, int fd)
{
	return fd <= *(int *)arg;
}

static int set_up(void **state)
{
	(void)state;
	shares = 0;
	no_shares = no_locks = false;
	now_ms = 1000000;
	scratch_open(dir, scratch_memory());
	snprintf(ca, sizeof(ca), "%s/ca", dir);
	scratch_write(dir, "ca", "1", 1);
	c = connections_new(is_watched, &last_watched);
	last_watched = -1;
	assert_non_null(c);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	connections_free(c);
	assert_int_equal(shares, 0);
	scratch_close(dir);
	return 0;
}

static const char *document(unsigned n)
{
	static char names[2][DIGEST_HEX];
	static unsigned next;
	char *name = names[next++ % 2];

	snprintf(name, DIGEST_HEX, "%064u", n);
	return name;
}

static void lend_to(struct transfer_played *t, const char *url, const char *name)
{
	const struct connections_request q = {.document = name, .url = url, .ca = ca};

	memset(t, 0, sizeof(*t));
	t->easy.active = CURL_SOCKET_BAD;
	assert_int_equal(connections_lend(c, &t->use, (CURL *)&t->easy, &q, now_ms), 0);
	assert_int_equal(t->easy.forbid, 1);
	assert_ptr_equal(t->easy.open_arg, &t->use);
}

static void lend(struct transfer_played *t, unsigned n)
{
	lend_to(t, URL, document(n));
}

static void answer(struct transfer_played *t, unsigned version, unsigned status)
{
	struct framing f = {
		.version = version, .status = (long)status, .has_length = true, .length = 5};

	connections_answered(&t->use, &f, now_ms);
}

/* The transfer ended as usual. */
static void end(struct transfer_played *t)
{
	connections_whole(&t->use);
	connections_ended(&t->use, true, true);
	connections_return(&t->use, now_ms);
	assert_null(t->easy.share);
	assert_null(t->use.of);
	connections_return(&t->use, now_ms); /* of what is not lent: nothing */
}

static void use(unsigned n)
{
	struct transfer_played t;

	lend(&t, n);
	answer(&t, 11, 200);
	end(&t);
}

/* ---- places ---- */

static void place__of_a_document__is_kept_with_its_connection(void **state)
{
	struct transfer_played a, b;
	struct share_played *first;

	(void)state;
	lend(&a, 1);
	assert_true(connections_has_place(&a.use));
	first = a.easy.share;
	assert_true(first->connections && first->sessions);
	assert_int_equal(a.easy.fresh, 0);
	/* it is lent to one at a time */
	lend(&b, 1);
	assert_false(connections_has_place(&b.use));
	assert_ptr_not_equal(b.easy.share, first);
	assert_int_equal(b.easy.forbid, 1);
	end(&b);
	answer(&a, 11, 200);
	assert_int_equal(a.easy.forbid, 0);
	end(&a);
	lend(&b, 1);
	assert_ptr_equal(b.easy.share, first);
	end(&b);
	assert_int_equal(shares, 2);
	connections_forget(c);
	assert_int_equal(shares, 0);
}

static void place__without_a_document_or_alone__is_none(void **state)
{
	const struct connections_request alone = {
		.document = document(1), .url = URL, .ca = ca, .alone = true};
	struct transfer_played a;

	(void)state;
	lend_to(&a, URL, NULL);
	assert_false(connections_has_place(&a.use));
	assert_true(a.easy.share->sessions);
	assert_int_equal(a.easy.forbid, 1);
	assert_null(a.easy.check);
	end(&a);
	lend_to(&a, PLAIN, NULL);
	assert_null(a.easy.share); /* there is nothing to keep */
	end(&a);
	lend_to(&a, PLAIN, document(1));
	assert_true(a.easy.share->connections && !a.easy.share->sessions);
	end(&a);
	lend_to(&a, "HTTPS://server/a", NULL);
	assert_true(a.easy.share->sessions);
	end(&a);
	memset(&a, 0, sizeof(a));
	assert_int_equal(connections_lend(c, &a.use, (CURL *)&a.easy, &alone, now_ms), 0);
	assert_false(connections_has_place(&a.use));
	assert_null(a.easy.share);
	assert_int_equal(a.easy.fresh, 1);
	end(&a);
}

static void places__are_so_many_and_go_to_others_when_they_are_idle(void **state)
{
	struct transfer_played t;

	(void)state;
	for (unsigned n = 0; n < CONNECTIONS_PLACES; n++, now_ms += 10)
		use(n);
	lend(&t, 100);
	assert_false(connections_has_place(&t.use));
	end(&t);
	/* the first was used 80 ms ago */
	now_ms += IDLE_MS - 80;
	lend(&t, 100);
	assert_false(connections_has_place(&t.use));
	end(&t);
	now_ms++;
	lend(&t, 100);
	assert_true(connections_has_place(&t.use));
	end(&t);
	lend(&t, 0);
	assert_false(connections_has_place(&t.use));
	end(&t);
	for (unsigned n = 1; n < CONNECTIONS_PLACES; n++) {
		lend(&t, n);
		assert_true(connections_has_place(&t.use));
		answer(&t, 11, 200);
		end(&t);
	}
}

static void places__that_are_idle__go_in_the_order_of_their_use(void **state)
{
	(void)state;
	for (unsigned oldest = 0; oldest < CONNECTIONS_PLACES; oldest++) {
		struct transfer_played t[CONNECTIONS_PLACES + 1], more;

		for (unsigned i = 0; i < CONNECTIONS_PLACES; i++, now_ms += 10)
			use(1000 * oldest + (oldest + i) % CONNECTIONS_PLACES);
		now_ms += 10 * IDLE_MS;
		lend(&t[CONNECTIONS_PLACES], 100);
		assert_true(connections_has_place(&t[CONNECTIONS_PLACES].use));
		for (unsigned i = 0; i < CONNECTIONS_PLACES; i++) {
			unsigned n = (oldest + 1 + i) % CONNECTIONS_PLACES;

			lend(&t[i], 1000 * oldest + n);
			assert_int_equal(connections_has_place(&t[i].use), n != oldest);
		}
		/* those that are at work keep theirs */
		now_ms += 10 * IDLE_MS;
		lend(&more, 200);
		assert_false(connections_has_place(&more.use));
		end(&more);
		for (unsigned i = 0; i <= CONNECTIONS_PLACES; i++)
			end(&t[i]);
		now_ms += 10 * IDLE_MS;
	}
}

static void places__of_a_crowd__are_given_up_for_a_while(void **state)
{
	struct transfer_played t, busy;

	(void)state;
	for (unsigned n = 1; n < CONNECTIONS_PLACES; n++)
		use(n);
	lend(&busy, 0);
	/* some, long ago: they do not count */
	for (unsigned n = 0; n < 40; n++)
		use(100 + n);
	now_ms += IDLE_MS + 1;
	for (unsigned n = 1; n < CONNECTIONS_PLACES; n++)
		use(n);
	for (unsigned n = 0; n < 63; n++)
		use(100 + n);
	lend(&t, 1);
	assert_true(connections_has_place(&t.use));
	end(&t);
	assert_int_equal(shares, CONNECTIONS_PLACES + 1);
	use(200);
	assert_int_equal(shares, 2); /* of the one at work, and the sessions */
	lend(&t, 1);
	assert_false(connections_has_place(&t.use));
	end(&t);
	end(&busy);
	assert_int_equal(shares, 1);
	now_ms += IDLE_MS - 1;
	lend(&t, 1);
	assert_false(connections_has_place(&t.use));
	end(&t);
	now_ms++;
	lend(&t, 1);
	assert_true(connections_has_place(&t.use));
	end(&t);
	use(300);                         /* at the place that was at work */
	for (unsigned n = 0; n < 63; n++) /* it counts from the beginning */
		use(100 + n);
	lend(&t, 1);
	assert_true(connections_has_place(&t.use));
	end(&t);
}

static void connection__lives_an_hour(void **state)
{
	struct transfer_played t;
	unsigned first;

	(void)state;
	lend(&t, 1);
	first = t.easy.share->serial;
	end(&t);
	now_ms += LIFE_MS - 1;
	lend(&t, 1);
	assert_int_equal(t.easy.share->serial, first);
	end(&t);
	now_ms++;
	lend(&t, 1);
	assert_int_equal(t.easy.share->serial, first + 1);
	end(&t);
	assert_int_equal(shares, 1);
}

static void connection__behind_an_answer_without_a_body__is_left_for_a_second(void **state)
{
	static const struct {
		unsigned status, after_ms;
		bool kept;
	} table[] = {
		{304, 999, false},
		{304, 1000, true},
		{204, 999, false},
		{204, 1000, true},
		{200, 0, true},
	};

	(void)state;
	now_ms += WARY_MS;
	for (unsigned i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct transfer_played t;
		struct framing f = {.version = 11, .status = (long)table[i].status};
		unsigned first;
		int pair[2];

		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
		lend_to(&t, PLAIN, document(i));
		first = t.easy.share->serial;
		t.easy.active = pair[0];
		f.has_length = table[i].status == 200;
		connections_answered(&t.use, &f, now_ms);
		assert_int_equal(t.easy.forbid, 0);
		end(&t);
		now_ms += table[i].after_ms;
		lend_to(&t, PLAIN, document(i));
		assert_int_equal(t.easy.share->serial == first, table[i].kept);
		if (table[i].kept)
			assert_int_equal(t.easy.check(t.easy.check_arg, NULL, NULL, 0, 0),
				CURL_PREREQFUNC_OK);
		end(&t);
		close(pair[0]);
		close(pair[1]);
	}
}

static void connection__with_something_unread__is_stale_once(void **state)
{
	struct transfer_played t;
	unsigned first;
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	lend_to(&t, PLAIN, document(1));
	t.easy.active = pair[0];
	answer(&t, 11, 200);
	end(&t);
	lend_to(&t, PLAIN, document(1));
	first = t.easy.share->serial;
	assert_int_equal(t.easy.check(t.easy.check_arg, NULL, NULL, 0, 0), CURL_PREREQFUNC_OK);
	assert_false(connections_is_stale(&t.use));
	assert_int_equal(write(pair[1], "x", 1), 1);
	assert_int_equal(t.easy.check(t.easy.check_arg, NULL, NULL, 0, 0), CURL_PREREQFUNC_ABORT);
	assert_true(connections_is_stale(&t.use));
	assert_true(connections_renew(&t.use, now_ms));
	assert_false(connections_is_stale(&t.use));
	assert_non_null(t.easy.share);
	assert_true(t.easy.share->connections);
	assert_int_equal(t.easy.share->serial, first + 1);
	assert_int_equal(shares, 1);
	assert_int_equal(t.easy.check(t.easy.check_arg, NULL, NULL, 0, 0), CURL_PREREQFUNC_ABORT);
	assert_false(connections_is_stale(&t.use)); /* but once */
	end(&t);
	/* whose end is there */
	lend_to(&t, PLAIN, document(1));
	t.easy.active = pair[0];
	answer(&t, 11, 200);
	end(&t);
	assert_int_equal(read(pair[0], &(char){0}, 1), 1);
	close(pair[1]);
	lend_to(&t, PLAIN, document(1));
	assert_int_equal(t.easy.check(t.easy.check_arg, NULL, NULL, 0, 0), CURL_PREREQFUNC_ABORT);
	/* a new one is not looked at */
	t.use.fresh = true;
	assert_int_equal(t.easy.check(t.easy.check_arg, NULL, NULL, 0, 0), CURL_PREREQFUNC_OK);
	end(&t);
	close(pair[0]);
}

static void connection__of_an_answer_that_was_not_good__is_unknown(void **state)
{
	static const struct {
		bool good, answered, spoilt;
	} table[] = {{false, true, false}, {true, false, false}, {true, true, true}};
	struct transfer_played t;
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		lend_to(&t, PLAIN, document(1));
		t.easy.active = pair[0];
		if (table[i].answered)
			answer(&t, 11, 200);
		if (table[i].spoilt)
			connections_spoil(&t.use);
		assert_int_equal(t.easy.forbid, !table[i].answered || table[i].spoilt);
		connections_ended(&t.use, table[i].good, true);
		connections_return(&t.use, now_ms);
		lend_to(&t, PLAIN, document(1));
		assert_int_equal(
			t.easy.check(t.easy.check_arg, NULL, NULL, 0, 0), CURL_PREREQFUNC_ABORT);
		end(&t);
	}
	close(pair[0]);
	close(pair[1]);
}

static void socket__is_closed_on_exec(void **state)
{
	struct curl_sockaddr address = {.family = AF_UNIX, .socktype = SOCK_STREAM};
	struct transfer_played t;
	curl_socket_t fd;

	(void)state;
	lend(&t, 1);
	assert_false(t.use.fresh);
	fd = t.easy.open(t.easy.open_arg, CURLSOCKTYPE_IPCXN, &address);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_true(t.use.fresh);
	close(fd);
	end(&t);
}

/* libcurl closed one without a word: another one of its number would never be watched. */
static void socket__has_no_number_that_is_watched(void **state)
{
	struct curl_sockaddr address = {.family = AF_UNIX, .socktype = SOCK_STREAM};
	struct transfer_played t;
	int lowest = dup(STDERR_FILENO);
	curl_socket_t fd;

	(void)state;
	close(lowest);
	lend(&t, 1);
	last_watched = lowest + 3;
	fd = t.easy.open(t.easy.open_arg, CURLSOCKTYPE_IPCXN, &address);
	assert_true(fd > last_watched);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(dup(STDERR_FILENO), lowest); /* no other one is left open */
	close(lowest);
	close(fd);
	end(&t);
}

/* ---- trust ---- */

static void sessions__end_when_a_file_changes(void **state)
{
	static const char *const changes[] = {"22", "23", NULL};
	struct transfer_played t;
	unsigned first;

	(void)state;
	now_ms += 2 * WARY_MS;
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		lend_to(&t, URL, NULL);
		first = t.easy.share->serial;
		answer(&t, 11, 200);
		end(&t);
		lend_to(&t, URL, NULL);
		assert_int_equal(t.easy.share->serial, first);
		end(&t);
		if (changes[i])
			scratch_write(dir, "ca", changes[i], 2);
		else
			assert_int_equal(unlink(ca), 0);
		lend_to(&t, URL, NULL);
		assert_int_equal(t.easy.share->serial, first + 1);
		end(&t);
	}
	assert_int_equal(shares, 1);
}

static void sessions__of_a_file_that_just_changed__are_made_again_later(void **state)
{
	struct transfer_played t;
	unsigned first;

	(void)state;
	lend_to(&t, URL, NULL);
	end(&t);
	scratch_write(dir, "ca", "333", 3);
	lend_to(&t, URL, NULL);
	first = t.easy.share->serial;
	end(&t);
	now_ms += WARY_MS - 1;
	lend_to(&t, URL, NULL);
	assert_int_equal(t.easy.share->serial, first);
	end(&t);
	now_ms++;
	lend_to(&t, URL, NULL);
	assert_int_equal(t.easy.share->serial, first + 1);
	end(&t);
	now_ms += LIFE_MS - 1;
	lend_to(&t, URL, NULL);
	assert_int_equal(t.easy.share->serial, first + 1);
	end(&t);
	now_ms++;
	lend_to(&t, URL, NULL);
	assert_int_equal(t.easy.share->serial, first + 2);
	/* who uses them has them until the end */
	connections_forget(c);
	assert_int_equal(shares, 1);
	end(&t);
	assert_int_equal(shares, 0);
}

static void sessions__are_for_the_files_of_that_request(void **state)
{
	struct connections_request q = {.url = URL, .ca = ca};
	struct transfer_played t[5];
	const char **const files[] = {&q.ca, &q.crl, &q.cert, &q.key};

	(void)state;
	for (size_t i = 0; i < 5; i++) {
		if (i)
			*files[i - 1] = i == 1 ? "/none" : ca;
		memset(&t[i], 0, sizeof(t[i]));
		assert_int_equal(connections_lend(c, &t[i].use, (CURL *)&t[i].easy, &q, now_ms), 0);
		for (size_t k = 0; k < i; k++)
			assert_ptr_not_equal(t[i].easy.share, t[k].easy.share);
	}
	assert_int_equal(shares, 5);
	for (size_t i = 5; i-- > 0;)
		end(&t[i]);
}

static void sessions__are_of_the_ways_that_were_used_last(void **state)
{
	struct share_played *first[CONNECTIONS_TRUSTS + 1];
	struct transfer_played t[CONNECTIONS_TRUSTS + 1];
	struct connections_request q = {.url = URL};
	char path[32];

	(void)state;
	q.ca = path;
	for (size_t i = 0; i <= CONNECTIONS_TRUSTS; i++, now_ms++) {
		snprintf(path, sizeof(path), "/none/%zu", i);
		memset(&t[i], 0, sizeof(t[i]));
		assert_int_equal(connections_lend(c, &t[i].use, (CURL *)&t[i].easy, &q, now_ms), 0);
		first[i] = t[i].easy.share;
	}
	for (size_t n = 0; n <= CONNECTIONS_TRUSTS; n++, now_ms++) {
		/* the first was the one to go; it comes last */
		size_t i = (n + 1) % (CONNECTIONS_TRUSTS + 1);
		struct transfer_played again;

		snprintf(path, sizeof(path), "/none/%zu", i);
		memset(&again, 0, sizeof(again));
		assert_int_equal(
			connections_lend(c, &again.use, (CURL *)&again.easy, &q, now_ms), 0);
		assert_int_equal(again.easy.share == first[i], i != 0);
		end(&again);
	}
	for (size_t i = CONNECTIONS_TRUSTS + 1; i-- > 0;)
		end(&t[i]);
}

static void lend__without_memory__goes_on_without_a_place(void **state)
{
	struct transfer_played t;

	(void)state;
	no_shares = true;
	lend(&t, 1);
	assert_false(connections_has_place(&t.use));
	assert_null(t.easy.share);
	end(&t);
	no_shares = false;
	no_locks = true;
	lend(&t, 1);
	assert_null(t.easy.share);
	end(&t);
	assert_int_equal(shares, 0);
	no_locks = false;
	lend(&t, 1);
	assert_true(connections_has_place(&t.use));
	no_shares = true;
	assert_false(connections_renew(&t.use, now_ms));
	end(&t);
}

static void lend__of_an_option_that_is_refused__says_so(void **state)
{
	static const CURLoption options[] = {CURLOPT_OPENSOCKETFUNCTION, CURLOPT_OPENSOCKETDATA,
		CURLOPT_FRESH_CONNECT, CURLOPT_FORBID_REUSE, CURLOPT_SHARE, CURLOPT_PREREQFUNCTION,
		CURLOPT_PREREQDATA};
	const struct connections_request q = {.document = document(1), .url = URL, .ca = ca};

	(void)state;
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		struct transfer_played t = {.easy.refuses = options[i]};

		assert_int_equal(connections_lend(c, &t.use, (CURL *)&t.easy, &q, now_ms), -22);
		connections_return(&t.use, now_ms);
	}
}

/* ---- HTTP/2 ---- */

static void server__of_http2__needs_no_place(void **state)
{
	struct transfer_played t;

	(void)state;
	lend(&t, 1);
	answer(&t, 20, 200);
	assert_int_equal(t.easy.forbid, 1); /* until the body is whole */
	end(&t);
	assert_int_equal(t.easy.forbid, 0);
	assert_int_equal(shares, 0);
	lend(&t, 1);
	assert_false(connections_has_place(&t.use));
	end(&t);
	lend_to(&t, "https://server?x", document(1)); /* the same server */
	assert_false(connections_has_place(&t.use));
	end(&t);
	lend_to(&t, "https://server:8443/a", document(2));
	assert_true(connections_has_place(&t.use));
	end(&t);
	lend_to(&t, PLAIN, document(3));
	assert_true(connections_has_place(&t.use));
	end(&t);
	/* it speaks HTTP/1.1 again */
	lend(&t, 1);
	answer(&t, 11, 200);
	assert_int_equal(t.easy.forbid, 1);
	end(&t);
	lend(&t, 1);
	assert_true(connections_has_place(&t.use));
	end(&t);
}

static void connections__of_http2__end_with_the_files_of_their_handshake(void **state)
{
	struct transfer_played watch, t;
	struct share_played *first;

	(void)state;
	lend(&t, 1);
	answer(&t, 20, 200);
	end(&t);
	lend(&watch, 1);
	first = watch.easy.share;
	assert_true(first->connections && first->sessions);
	lend(&t, 2);
	assert_ptr_equal(t.easy.share, first);
	end(&t);
	scratch_write(dir, "ca", "22", 2);
	lend(&t, 2);
	assert_ptr_not_equal(t.easy.share, first);
	assert_true(t.easy.share->connections);
	end(&t);
	assert_int_equal(shares, 2); /* who is on the old one stays there */
	end(&watch);
	assert_int_equal(shares, 1);
}

static void answer__by_http2_without_a_body__leaves_the_connection_good(void **state)
{
	static const struct {
		struct framing f;
		long forbid;
	} table[] = {
		{{.version = 20, .status = 204}, 0}, {{.version = 20, .status = 304}, 0},
		{{.version = 20, .status = 200, .has_length = true, .length = 0}, 0},
		{{.version = 20, .status = 200, .has_length = true, .length = 1}, 1},
		{{.version = 20, .status = 200}, 1},
		{{.version = 19, .status = 204}, 1}, /* without a place */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct transfer_played t;

		lend_to(&t, URL, NULL);
		connections_answered(&t.use, &table[i].f, now_ms);
		assert_int_equal(t.easy.forbid, table[i].forbid);
		connections_whole(&t.use);
		assert_int_equal(t.easy.forbid, table[i].f.version < 20);
		end(&t);
	}
}

static void stream__that_died__leaves_its_connection_to_those_on_it(void **state)
{
	struct transfer_played on_it, died, next, other;

	(void)state;
	lend(&on_it, 1);
	answer(&on_it, 20, 200);
	end(&on_it);
	lend(&on_it, 1);
	lend(&died, 2);
	answer(&died, 20, 200);
	connections_ended(&died.use, false, false);
	connections_return(&died.use, now_ms);
	lend(&next, 3);
	assert_int_equal(next.easy.fresh, 1);
	lend_to(&other, "https://other/a", NULL);
	assert_int_equal(other.easy.fresh, 0);
	end(&other);
	end(&on_it);
	lend(&other, 4); /* all that were on it have ended */
	assert_int_equal(other.easy.fresh, 0);
	end(&other);
	end(&next);
	/* one that ended well leaves nothing */
	lend(&on_it, 1);
	lend(&died, 2);
	answer(&died, 20, 200);
	connections_ended(&died.use, false, true);
	connections_return(&died.use, now_ms);
	lend(&next, 3);
	assert_int_equal(next.easy.fresh, 0);
	end(&next);
	end(&on_it);
}

static void stream__that_began_after_a_failure__is_not_suspected(void **state)
{
	struct transfer_played first, second, later, next;

	(void)state;
	lend(&first, 1);
	answer(&first, 20, 200);
	end(&first);
	lend(&first, 1);
	lend(&second, 2);
	connections_return(&first.use, now_ms); /* never alive */
	lend(&later, 3);
	assert_int_equal(later.easy.fresh, 1);
	connections_return(&second.use, now_ms); /* of the same connection: nothing new */
	lend(&next, 4);
	assert_int_equal(next.easy.fresh, 0);
	end(&next);
	connections_return(&later.use, now_ms);
	lend(&next, 5);
	assert_int_equal(next.easy.fresh, 0); /* nobody is on that one */
	end(&next);
}

static void server__that_is_asked_by_http1__is_remembered(void **state)
{
	struct transfer_played t;
	char url[64];

	(void)state;
	lend(&t, 1);
	assert_false(connections_left_http2(&t.use));
	t.use.fresh = true;
	assert_int_equal(connections_leave_http2(&t.use), 0);
	assert_int_equal(t.easy.version, CURL_HTTP_VERSION_1_1);
	assert_int_equal(t.easy.fresh, 1);
	assert_false(t.use.fresh);
	assert_true(connections_left_http2(&t.use));
	end(&t);
	for (unsigned n = 1; n <= CONNECTIONS_ORIGINS; n++) {
		lend(&t, 1);
		assert_true(connections_left_http2(&t.use));
		end(&t);
		snprintf(url, sizeof(url), "https://server%u/a", n);
		lend_to(&t, url, NULL);
		assert_int_equal(connections_leave_http2(&t.use), 0);
		assert_int_equal(connections_leave_http2(&t.use), 0);
		end(&t);
	}
	lend(&t, 1); /* the oldest makes room */
	assert_false(connections_left_http2(&t.use));
	t.easy.refuses = CURLOPT_HTTP_VERSION;
	assert_int_equal(connections_leave_http2(&t.use), -22);
	t.easy.refuses = CURLOPT_FRESH_CONNECT;
	assert_int_equal(connections_leave_http2(&t.use), -22);
	end(&t);
}

static void nothing__is_freed_and_returned(void **state)
{
	struct connections_use zeroed = {NULL};

	(void)state;
	connections_return(&zeroed, now_ms);
	connections_free(NULL);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(place__of_a_document__is_kept_with_its_connection),
		CASE(place__without_a_document_or_alone__is_none),
		CASE(places__are_so_many_and_go_to_others_when_they_are_idle),
		CASE(places__that_are_idle__go_in_the_order_of_their_use),
		CASE(places__of_a_crowd__are_given_up_for_a_while),
		CASE(connection__lives_an_hour),
		CASE(connection__behind_an_answer_without_a_body__is_left_for_a_second),
		CASE(connection__with_something_unread__is_stale_once),
		CASE(connection__of_an_answer_that_was_not_good__is_unknown),
		CASE(socket__is_closed_on_exec),
		CASE(socket__has_no_number_that_is_watched),
		CASE(sessions__end_when_a_file_changes),
		CASE(sessions__of_a_file_that_just_changed__are_made_again_later),
		CASE(sessions__are_for_the_files_of_that_request),
		CASE(sessions__are_of_the_ways_that_were_used_last),
		CASE(lend__without_memory__goes_on_without_a_place),
		CASE(lend__of_an_option_that_is_refused__says_so),
		CASE(server__of_http2__needs_no_place),
		CASE(connections__of_http2__end_with_the_files_of_their_handshake),
		CASE(answer__by_http2_without_a_body__leaves_the_connection_good),
		CASE(stream__that_died__leaves_its_connection_to_those_on_it),
		CASE(stream__that_began_after_a_failure__is_not_suspected),
		CASE(server__that_is_asked_by_http1__is_remembered),
		CASE(nothing__is_freed_and_returned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
