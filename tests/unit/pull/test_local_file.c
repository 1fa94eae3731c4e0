/*
 * Files of this host, answered as a web server would. Real files; what happens to one during its
 * reading happens within fstat(), which is defined here: each reading calls it before and after.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include <cmocka.h>

#include "crypto/digest.h"
#include "pull/local_file.h"
#include "pull/kinds/answer.h"
#include "tests/unit/fixture/fault_memory.h"
#include "tests/unit/fixture/scratch.h"

#define WAIT_MS 10000u

/* ---- what happens during a reading ---- */

static struct {
	pthread_mutex_t gate;
	pthread_cond_t changed;
	bool closed, arrived; /* a reading waits */
	int touches;          /* so many times the file looks as if it were written */
	unsigned calls;
} during = {.gate = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

int fstat(int fd, struct stat *ret)
{
	int r = fstatat(fd, "", ret, AT_EMPTY_PATH);

	pthread_mutex_lock(&during.gate);
	during.calls++;
	while (during.closed) {
		during.arrived = true;
		pthread_cond_broadcast(&during.changed);
		pthread_cond_wait(&during.changed, &during.gate);
	}
	if (during.touches > 0)
		ret->st_mtim.tv_nsec = during.touches--;
	pthread_mutex_unlock(&during.gate);
	return r;
}

static void close_gate(void)
{
	pthread_mutex_lock(&during.gate);
	during.closed = true;
	during.arrived = false;
	pthread_mutex_unlock(&during.gate);
}

static void wait_at_gate(void)
{
	pthread_mutex_lock(&during.gate);
	while (!during.arrived)
		pthread_cond_wait(&during.changed, &during.gate);
	pthread_mutex_unlock(&during.gate);
}

static void open_gate(void)
{
	pthread_mutex_lock(&during.gate);
	during.closed = false;
	pthread_cond_broadcast(&during.changed);
	pthread_mutex_unlock(&during.gate);
}

/* ---- one reading ---- */

static struct loop *loop;
static struct worker *worker;
static char dir[SCRATCH_PATH];

struct told {
	unsigned times;
	struct http_client_response response; /* without the body */
	char body[64];
	enum kind_verdict verdict;
	enum kind_cause cause;
	char why[FILE_WHY];
};

static void tell(void *arg, struct http_client_response *response)
{
	static const struct settings_server server = {.kind = SETTINGS_FILE};
	struct kind_place place = {.server = &server, .path = "/x", .max_bytes = 1u << 20};
	struct told *t = arg;
	struct kind_answer answer;

	t->times++;
	t->response = *response;
	snprintf(t->body, sizeof(t->body), "%s", response->body.data ? response->body.data : "");
	t->response.body = (struct buffer){.len = response->body.len};
	kind_answer_init(&answer, place.max_bytes);
	t->verdict = answer_check(&place, response, true, &answer);
	t->cause = answer.cause;
	memcpy(t->why, answer.why, sizeof(t->why));
	kind_answer_fini(&answer);
	loop_stop(loop);
}

static struct local_file *begin(
	const char *name, const char *etag, size_t max_bytes, struct told *ret_told)
{
	char url[SCRATCH_PATH + 300];
	struct local_file *f;

	*ret_told = (struct told){.times = 0};
	snprintf(url, sizeof(url), "file://%s/%s", dir, name);
	assert_int_equal(local_file_start(worker, url, etag, max_bytes, tell, ret_told, &f), 0);
	assert_int_equal(ret_told->times, 0);
	return f;
}

static struct told read_with(const char *name, const char *etag, size_t max_bytes)
{
	struct told t;

	begin(name, etag, max_bytes, &t);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(t.times, 1);
	assert_true(t.response.framed && t.response.sent);
	assert_true(t.response.retry_after_ms == HTTP_CLIENT_NO_ADVICE);
	return t;
}

static int set_up(void **state)
{
	(void)state;
	scratch_open(dir, scratch_memory());
	loop = loop_new(&sys_real);
	worker = worker_start(loop, "test");
	assert_true(loop && worker);
	during.touches = 0;
	during.calls = 0;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	if (worker)
		assert_int_equal(worker_stop(worker, WAIT_MS), 0);
	loop_free(loop);
	scratch_close(dir);
	return 0;
}

static void write_text(const char *name, const char *text)
{
	scratch_write(dir, name, text, strlen(text));
}

/* ---- cases ---- */

static void read__of_a_file__brings_it_with_a_name_for_its_content(void **state)
{
	char hex[DIGEST_HEX], want[64];
	struct told t, other;

	(void)state;
	write_text("web.yaml", "a: 1\n");
	t = read_with("web.yaml", "", 100);
	assert_int_equal(t.response.result, HTTP_CLIENT_OK);
	assert_int_equal(t.response.status, 200);
	assert_string_equal(t.body, "a: 1\n");
	assert_int_equal(t.response.body.len, 5);
	assert_int_equal(digest_sha256("a: 1\n", 5, NULL, 0, hex), 0);
	snprintf(want, sizeof(want), "\"%.32s\"", hex);
	assert_string_equal(t.response.etag, want);
	assert_int_equal(t.verdict, KIND_NEW);
	/* the same, by another name and age */
	write_text("copy.yaml", "a: 1\n");
	other = read_with("copy.yaml", "", 100);
	assert_string_equal(other.response.etag, t.response.etag);
	/* what is in it does not matter */
	scratch_write(dir, "bytes", "\0\xff\n", 3);
	t = read_with("bytes", "", 3);
	assert_int_equal(t.response.status, 200);
	assert_int_equal(t.response.body.len, 3);
}

static void read__of_what_is_held__is_not_modified(void **state)
{
	struct told t;

	(void)state;
	write_text("web.yaml", "a: 1\n");
	t = read_with("web.yaml", "", 100);
	t = read_with("web.yaml", t.response.etag, 100);
	assert_int_equal(t.response.status, 304);
	assert_int_equal(t.verdict, KIND_SAME);
	write_text("web.yaml", "a: 2\n");
	t = read_with("web.yaml", t.response.etag, 100);
	assert_int_equal(t.response.status, 200);
	assert_string_equal(t.body, "a: 2\n");
}

static void read__of_a_link__follows_it(void **state)
{
	char link[SCRATCH_PATH + 16], target[SCRATCH_PATH + 16];
	struct told t;

	(void)state;
	write_text("target", "a: 1\n");
	snprintf(link, sizeof(link), "%s/link", dir);
	snprintf(target, sizeof(target), "%s/target", dir);
	assert_int_equal(symlink(target, link), 0);
	t = read_with("link", "", 100);
	assert_string_equal(t.body, "a: 1\n");
	assert_int_equal(unlink(link), 0);
	assert_int_equal(symlink(link, link), 0);
	t = read_with("link", "", 100);
	assert_int_equal(t.verdict, KIND_FAILED);
	assert_string_equal(t.why, "the file cannot be read: its links lead to no end");
	assert_int_equal(unlink(link), 0);
	assert_int_equal(symlink("/none/at/all", link), 0);
	t = read_with("link", "", 100);
	assert_int_equal(t.response.status, 404);
}

static void read__of_what_is_not_there__is_404(void **state)
{
	static const char *const names[] = {"none.yaml", "none/web.yaml", "file/web.yaml"};

	(void)state;
	write_text("file", "a: 1\n");
	for (size_t i = 0; i < 3; i++) {
		struct told t = read_with(names[i], "", 100);

		assert_int_equal(t.response.result, HTTP_CLIENT_OK);
		assert_int_equal(t.response.status, 404);
		assert_int_equal(t.response.body.len, 0);
		assert_int_equal(t.verdict, KIND_ABSENT);
		assert_int_equal(t.cause, KIND_CAUSE_NOT_FOUND);
	}
}

/* Of the thread that reads. Root may read anything. */
static void become_nobody(struct worker_job *job)
{
	(void)job;
	if (geteuid() == 0)
		assert_int_equal(syscall(SYS_setresuid, -1, 65534, -1), 0);
}

static void stop_loop(struct worker_job *job)
{
	(void)job;
	loop_stop(loop);
}

static void read__of_what_is_forbidden__is_403(void **state)
{
	struct worker_job job = {.run = become_nobody, .done = stop_loop};
	char path[SCRATCH_PATH + 16];
	struct told t;

	(void)state;
	write_text("secret", "a: 1\n");
	snprintf(path, sizeof(path), "%s/secret", dir);
	assert_int_equal(chmod(path, 0), 0);
	worker_submit(worker, &job);
	assert_int_equal(loop_run(loop), 0);
	t = read_with("secret", "", 100);
	assert_int_equal(t.response.status, 403);
	assert_int_equal(t.verdict, KIND_FAILED);
	assert_int_equal(t.cause, KIND_CAUSE_FORBIDDEN);
}

/* What is wrong with one file says nothing about others: the answer is one of a server that is
 * well. */
static void read__of_what_is_no_file__says_what_it_is(void **state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	static const struct {
		const char *name, *why;
	} table[] = {
		{"fifo", "the file cannot be read: it is no regular file"},
		{"socket", "the file cannot be read: it is no regular file"},
		{"folder", "the file cannot be read: it is a directory"},
		{"", "the file cannot be read: it is a directory"},
	};
	char path[SCRATCH_PATH + 16];
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)state;
	snprintf(path, sizeof(path), "%s/fifo", dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	snprintf(path, sizeof(path), "%s/folder", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "%.90s/socket", dir);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct told t = read_with(table[i].name, "", 100);

		assert_int_equal(t.response.result, HTTP_CLIENT_OK);
		assert_true(t.response.status >= 400 && t.response.status < 500);
		assert_int_equal(t.verdict, KIND_FAILED);
		assert_int_equal(t.cause, KIND_CAUSE_ANSWER);
		assert_string_equal(t.why, table[i].why);
	}
	close(fd);
}

/* It says something about the place. */
static void read__that_fails_in_another_way__is_no_answer(void **state)
{
	char name[300];
	struct told t;

	(void)state;
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	t = read_with(name, "", 100);
	assert_int_equal(t.response.result, HTTP_CLIENT_PROTOCOL);
	assert_int_equal(t.response.status, 0);
	assert_int_equal(t.verdict, KIND_FAILED);
	assert_string_equal(t.why, "the file cannot be read: File name too long");
}

static void read__of_a_file_over_the_limit__is_too_large(void **state)
{
	char path[SCRATCH_PATH + 16];
	struct told t;

	(void)state;
	write_text("web.yaml", "a: 1\n");
	t = read_with("web.yaml", "", 5);
	assert_int_equal(t.response.status, 200);
	t = read_with("web.yaml", "", 4);
	assert_int_equal(t.response.result, HTTP_CLIENT_TOO_LARGE);
	assert_string_equal(t.why, "the file is larger than the limit of 4 bytes");
	assert_int_equal(t.cause, KIND_CAUSE_ANSWER);
	assert_int_equal(t.response.body.len, 0);
	/* over what is ever read: it is not */
	snprintf(path, sizeof(path), "%s/web.yaml", dir);
	assert_int_equal(truncate(path, ((off_t)64 << 20) + 1), 0);
	t = read_with("web.yaml", "", (size_t)256 << 20);
	assert_int_equal(t.response.result, HTTP_CLIENT_TOO_LARGE);
	assert_string_equal(t.why, "the file is larger than the limit of 67108864 bytes");
}

static void read__of_an_empty_file__is_told_as_empty(void **state)
{
	struct told t;

	(void)state;
	write_text("web.yaml", "");
	t = read_with("web.yaml", "", 100);
	assert_int_equal(t.response.status, 200);
	assert_int_equal(t.verdict, KIND_FAILED);
	assert_int_equal(t.cause, KIND_CAUSE_EMPTY);
}

static void read__of_a_file_that_is_being_written__reads_again_and_gives_up(void **state)
{
	struct told t;

	(void)state;
	write_text("web.yaml", "a: 1\n");
	during.touches = 3; /* during the first two readings */
	t = read_with("web.yaml", "", 100);
	assert_int_equal(t.response.status, 200);
	assert_string_equal(t.body, "a: 1\n"); /* once */
	assert_int_equal(during.calls, 6);
	during.touches = 10;
	t = read_with("web.yaml", "", 100);
	assert_int_equal(during.touches, 0);
	assert_int_equal(t.verdict, KIND_FAILED);
	assert_int_equal(t.cause, KIND_CAUSE_ANSWER);
	assert_string_equal(t.why, "the file cannot be read: it is being written");
}

static void cancel__of_a_reading_that_hangs__tells_nobody_and_leaves_nothing(void **state)
{
	struct told t, other;
	struct local_file *f;

	(void)state;
	write_text("web.yaml", "a: 1\n");
	write_text("other", "b: 1\n");
	close_gate();
	f = begin("web.yaml", "", 100, &t);
	wait_at_gate();
	local_file_cancel(f);
	begin("other", "", 100, &other);
	open_gate();
	assert_int_equal(loop_run(loop), 0); /* the other one's end */
	assert_int_equal(other.times, 1);
	assert_int_equal(t.times, 0);
	/* before it has begun */
	close_gate();
	f = begin("web.yaml", "", 100, &t);
	local_file_cancel(begin("other", "", 100, &other));
	wait_at_gate();
	open_gate();
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(t.times, 1);
	assert_int_equal(worker_stop(worker, WAIT_MS), 0);
	worker = NULL;
	assert_int_equal(other.times, 0);
}

struct ending {
	struct local_file *f;
	unsigned times;
};

static void cancel_within(void *arg, struct http_client_response *response)
{
	struct ending *e = arg;

	assert_int_equal(response->status, 200);
	e->times++;
	local_file_cancel(e->f);
	loop_stop(loop);
}

static void cancel__within_its_end__is_harmless(void **state)
{
	struct ending e = {NULL, 0};
	char url[SCRATCH_PATH + 32];

	(void)state;
	write_text("web.yaml", "a: 1\n");
	snprintf(url, sizeof(url), "%s/web.yaml", dir); /* the scheme may be left out */
	assert_int_equal(local_file_start(worker, url, "", 100, cancel_within, &e, &e.f), 0);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(e.times, 1);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

static void told_of_nothing(void *arg, struct http_client_response *response)
{
	(void)arg;
	(void)response;
	fail();
}

static void start__without_memory__is_an_error_and_reads_nothing(void **state)
{
	struct local_file *f = NULL;

	(void)state;
	for (unsigned n = 1; n <= 2; n++) {
		fault_memory.seen = 0;
		fault_memory.nth = n;
		assert_int_equal(
			local_file_start(worker, "file:///x", "", 10, told_of_nothing, NULL, &f),
			-ENOMEM);
		fault_memory.nth = 0;
		assert_null(f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(read__of_a_file__brings_it_with_a_name_for_its_content),
		CASE(read__of_what_is_held__is_not_modified),
		CASE(read__of_a_link__follows_it),
		CASE(read__of_what_is_not_there__is_404),
		CASE(read__of_what_is_forbidden__is_403),
		CASE(read__of_what_is_no_file__says_what_it_is),
		CASE(read__that_fails_in_another_way__is_no_answer),
		CASE(read__of_a_file_over_the_limit__is_too_large),
		CASE(read__of_an_empty_file__is_told_as_empty),
		CASE(read__of_a_file_that_is_being_written__reads_again_and_gives_up),
		CASE(cancel__of_a_reading_that_hangs__tells_nobody_and_leaves_nothing),
		CASE(cancel__within_its_end__is_harmless),
		CASE(start__without_memory__is_an_error_and_reads_nothing),
	};

	alarm(20);
	return fault_memory_run(tests, 1);
}
