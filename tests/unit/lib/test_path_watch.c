/*
 * pullet_fd() in an event loop (epoll), beside an agent that this file plays. Each case has a
 * config of its own; deadlines are for a busy machine, and nothing is waited for by sleeping.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "lib/path_watch.h"
#include "tests/unit/fixture/reader_agent.h"

#define LONG_MS 20000

static int watch_error; /* of what inotify_add_watch() does next; 0 = works */

static int flaps;         /* from 1 on: numbers of watches; 0 = does not */
static bool flaps_itself; /* the file, and not the directory above: it is always another one */

static struct {
	const char *
		name; /* of a config whose image is replaced while it is being watched; NULL = no */
	uint64_t by;  /* generation */
	int held;     /* the replaced image, which somebody else has open */
} race;

static int watch_replaced(int fd, uint32_t mask)
{
	const char *path = agent_path(race.name, ".snap");
	char held[64];

	race.held = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(race.held >= 0);
	agent_put_image(race.name, race.by, false);
	race.name = NULL;
	snprintf(held, sizeof(held), "/proc/self/fd/%d", race.held);
	return (int)syscall(SYS_inotify_add_watch, fd, held, mask);
}

int inotify_add_watch(int fd, const char *path, uint32_t mask)
{
	if (flaps && flaps_itself && strcmp(path, "/") != 0)
		return ++flaps;
	if (flaps && !flaps_itself) { /* there is no file, and each time another directory above */
		errno = ENOENT;
		return mask & IN_ONLYDIR ? ++flaps : -1;
	}
	if (watch_error) {
		errno = watch_error;
		return -1;
	}
	if (race.name && strcmp(path, agent_path(race.name, ".snap")) == 0)
		return watch_replaced(fd, mask);
	return (int)syscall(SYS_inotify_add_watch, fd, path, mask);
}

/* ---- the loop ---- */

struct loop {
	struct pullet *p;
	int fd, epoll;
};

static bool is_readable(const struct loop *l, int timeout_ms)
{
	struct epoll_event e;
	int n = epoll_wait(l->epoll, &e, 1, timeout_ms);

	assert_true(n >= 0);
	return n == 1;
}

/* What the first refresh after each event says that says something; 0: nothing until it is quiet.
 */
static int next(const struct loop *l, bool quiet)
{
	int r = 0;

	while (r == 0 && is_readable(l, quiet ? 0 : LONG_MS))
		r = pullet_refresh(l->p);
	if (r == 0 && !quiet)
		fail_msg("nothing came");
	return r;
}

static void assert_next(const struct loop *l, int expected)
{
	assert_int_equal(next(l, false), expected);
}

static void assert_quiet(const struct loop *l)
{
	assert_int_equal(next(l, true), 0);
	assert_false(is_readable(l, 0));
}

static struct loop open_loop(const char *name, unsigned flags)
{
	struct epoll_event e = {.events = EPOLLIN};
	struct loop l;

	assert_int_equal(pullet_open(agent_path(name, ".snap"), flags, &l.p), 0);
	l.fd = pullet_fd(l.p);
	assert_true(l.fd >= 0);
	assert_int_equal(pullet_fd(l.p), l.fd);
	l.epoll = epoll_create1(EPOLL_CLOEXEC);
	assert_int_equal(epoll_ctl(l.epoll, EPOLL_CTL_ADD, l.fd, &e), 0);
	return l;
}

static void close_loop(struct loop *l)
{
	close(l->epoll);
	pullet_close(l->p);
}

static struct loop open_published(const char *name, struct page **ret_page)
{
	struct loop l;

	agent_put_page(name);
	*ret_page = agent_map_page(name);
	agent_publish(name, *ret_page, 1);
	l = open_loop(name, 0);
	assert_true(is_readable(&l, 0)); /* once, for what came before */
	assert_quiet(&l);
	return l;
}

static void close_published(struct loop *l, struct page *page)
{
	munmap(page, PAGE_SIZE);
	close_loop(l);
}

static size_t open_files(void)
{
	DIR *d = opendir("/proc/self/fd");
	size_t n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static size_t files_before;

static int set_up(void **state)
{
	(void)state;
	watch_error = 0;
	files_before = open_files();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	return open_files() == files_before ? 0 : 1;
}

/* ---- versions ---- */

static void fd__a_new_version__is_readable_until_the_refresh(void **state)
{
	struct page *page;
	struct loop l = open_published("new", &page);

	(void)state;
	for (uint64_t n = 2; n < 50; n++) {
		agent_publish("new", page, n);
		assert_next(&l, 1);
		assert_int_equal(pullet_get_int(l.p, "n", 0), n);
		assert_quiet(&l);
		assert_int_equal(pullet_refresh(l.p), 0);
	}
	close_published(&l, page);
}

static void fd__a_version_between_open_and_fd__is_seen(void **state)
{
	struct epoll_event e = {.events = EPOLLIN};
	struct loop l;

	(void)state;
	agent_put_image("between", 1, false);
	assert_int_equal(pullet_open(agent_path("between", ".snap"), 0, &l.p), 0);
	agent_put_image("between", 2, false);
	l.fd = pullet_fd(l.p);
	l.epoll = epoll_create1(EPOLL_CLOEXEC);
	assert_int_equal(epoll_ctl(l.epoll, EPOLL_CTL_ADD, l.fd, &e), 0);
	assert_next(&l, 1);
	assert_quiet(&l);
	close_loop(&l);
}

static void fd__the_image_is_there_before_the_page_says_so__moves_once(void **state)
{
	struct page *page;
	struct loop l = open_published("early", &page);

	(void)state;
	agent_put_image("early", 2, false);
	assert_next(&l, 1);
	assert_int_equal(pullet_generation(l.p), 2);
	atomic_store(&page->generation, 2);
	agent_wake(page);
	assert_int_equal(pullet_refresh(l.p), 0);
	assert_quiet(&l);
	assert_int_equal(pullet_wait(l.p, 0), 0);
	agent_publish("early", page, 3);
	assert_int_equal(pullet_wait(l.p, LONG_MS), 1); /* waits as before, and drains, too */
	assert_quiet(&l);
	close_published(&l, page);
}

static void fd__what_happens_to_other_configs__wakes_nobody(void **state)
{
	struct page *page, *other;
	struct loop l = open_published("mine", &page);

	(void)state;
	agent_put_page("other");
	other = agent_map_page("other");
	for (uint64_t n = 1; n < 20; n++)
		agent_publish("other", other, n);
	unlink(agent_path("other", ".snap"));
	munmap(other, PAGE_SIZE);
	assert_false(is_readable(&l, 0));
	close_published(&l, page);
}

static void fd__a_damaged_image__is_said_once_and_the_next_one_comes(void **state)
{
	struct page *page;
	struct loop l = open_published("damaged", &page);

	(void)state;
	agent_put_image("damaged", 2, true);
	assert_next(&l, -EBADMSG);
	assert_quiet(&l);
	atomic_store(&page->generation, 2);
	agent_wake(page); /* says it again: the page is new */
	assert_int_equal(pullet_refresh(l.p), -EBADMSG);
	assert_quiet(&l);
	assert_int_equal(pullet_get_int(l.p, "n", 0), 1);
	agent_publish("damaged", page, 3);
	assert_next(&l, 1);
	assert_quiet(&l);
	close_published(&l, page);
}

static void fd__without_a_page__follows_the_file(void **state)
{
	struct loop l;

	(void)state;
	agent_put_image("copy", 1, false);
	l = open_loop("copy", 0);
	assert_quiet(&l);
	agent_put_image("copy", 2, false);
	assert_next(&l, 1);
	assert_quiet(&l);
	agent_put_image("copy", 3, true);
	assert_next(&l, -EBADMSG);
	assert_quiet(&l);
	unlink(agent_path("copy", ".snap"));
	assert_next(&l, -ENOENT);
	assert_int_equal(pullet_get_int(l.p, "n", 0), 2);
	agent_put_image("copy", 4, false);
	assert_next(&l, 1);
	assert_quiet(&l);
	close_loop(&l);
}

/* ---- withdrawn, and before the first ---- */

static void fd__withdrawn__is_said_when_the_page_does(void **state)
{
	struct page *page, *again;
	struct loop l = open_published("withdrawn", &page);

	(void)state;
	munmap(page, PAGE_SIZE); /* the agent lets go of it first */
	assert_quiet(&l);
	page = agent_map_page("withdrawn");
	assert_int_equal(
		link(agent_path("withdrawn", ".snap"), agent_path("withdrawn", ".kept")), 0);
	unlink(agent_path("withdrawn", ".snap"));
	assert_quiet(&l); /* why is not known yet */
	atomic_store(&page->withdrawn, 1);
	agent_wake(page);
	munmap(page, PAGE_SIZE);
	assert_next(&l, -EIDRM);
	assert_int_equal(pullet_refresh(l.p), -EIDRM);
	assert_false(is_readable(&l, 0));
	again = agent_map_page("withdrawn");
	/* the very file, even */
	assert_int_equal(
		rename(agent_path("withdrawn", ".kept"), agent_path("withdrawn", ".snap")), 0);
	assert_next(&l, 1); /* before the page says so */
	assert_false(pullet_withdrawn(l.p));
	agent_publish("withdrawn", again, 1);
	assert_int_equal(next(&l, true), 0);
	assert_false(pullet_withdrawn(l.p));
	close_published(&l, again);
}

static void fd__before_the_directory_is_there__is_woken_by_the_first(void **state)
{
	struct page *page;
	struct loop l;

	(void)state;
	l = open_loop("a/b/c/web", PULLET_WAIT_FIRST);
	assert_quiet(&l);
	assert_int_equal(mkdir(agent_path("a", ""), 0755), 0);
	assert_quiet(&l);
	assert_int_equal(mkdir(agent_path("a/b", ""), 0755), 0);
	assert_int_equal(mkdir(agent_path("a/b/c", ""), 0755), 0);
	assert_quiet(&l);
	agent_put_page("a/b/c/web");
	page = agent_map_page("a/b/c/web");
	agent_publish("a/b/c/web", page, 1);
	assert_next(&l, 1);
	assert_quiet(&l);
	agent_publish("a/b/c/web", page, 2);
	assert_next(&l, 1);
	close_published(&l, page);
}

static void fd__a_directory_that_is_a_file__is_waited_for(void **state)
{
	struct loop l;

	(void)state;
	agent_put(agent_path("file", ""), "", 0);
	assert_int_equal(
		pullet_open(agent_path("file/web", ".snap"), PULLET_WAIT_FIRST, &l.p), -ENOTDIR);
	agent_put_image("moved", 1, false);
	l = open_loop("moved", 0);
	assert_quiet(&l);
	assert_int_equal(unlink(agent_path("moved", ".snap")), 0);
	assert_next(&l, -ENOENT);
	agent_put_image("moved", 2, false);
	assert_next(&l, 1);
	close_loop(&l);
}

static void fd__a_circle_of_symlinks__is_waited_for(void **state)
{
	struct loop l;

	(void)state;
	agent_put_image("circle", 1, false);
	l = open_loop("circle", 0);
	assert_quiet(&l);
	assert_int_equal(unlink(agent_path("circle", ".snap")), 0);
	assert_int_equal(symlink("circle.snap", agent_path("circle", ".snap")), 0);
	assert_next(&l, -ELOOP);
	assert_false(is_readable(&l, 0));
	agent_put_image("circle", 2, false);
	assert_next(&l, 1);
	assert_int_equal(pullet_get_int(l.p, "n", 0), 2);
	assert_quiet(&l);
	close_loop(&l);
}

/* Nothing tells of it; a timer would. */
static void fd__a_symlink_on_the_path_that_is_turned__is_seen_by_the_next_refresh(void **state)
{
	struct loop l;

	(void)state;
	assert_int_equal(mkdir(agent_path("one", ""), 0755), 0);
	assert_int_equal(mkdir(agent_path("two", ""), 0755), 0);
	assert_int_equal(symlink("one", agent_path("now", "")), 0);
	assert_int_equal(symlink("two", agent_path("then", "")), 0);
	agent_put_page("one/web");
	agent_put_page("two/web");
	agent_put_image("one/web", 1, false);
	agent_put_image("two/web", 2, false);
	l = open_loop("now/web", 0);
	assert_true(is_readable(&l, 0));
	assert_quiet(&l);
	assert_int_equal(rename(agent_path("then", ""), agent_path("now", "")), 0);
	assert_false(is_readable(&l, 0));
	assert_int_equal(pullet_refresh(l.p), 1);
	assert_int_equal(pullet_get_int(l.p, "n", 0), 2);
	agent_put_image("two/web", 3, false);
	assert_next(&l, 1);
	close_loop(&l);
}

static void fd__a_path_without_a_directory__is_watched_from_here(void **state)
{
	char here[PATH_MAX];
	struct path_watch w;

	(void)state;
	assert_non_null(getcwd(here, sizeof(here)));
	assert_int_equal(chdir(agent_dir), 0);
	assert_int_equal(path_watch_open(&w), 0);
	assert_int_equal(path_watch_renew(&w, "nothing", "none"), 0);
	agent_put("nothing", "", 0);
	assert_int_equal(path_watch_renew(&w, "nothing", "nothing/none"), 0);
	path_watch_close(&w);
	path_watch_close(&w);
	assert_false(path_watch_is_own(&w));
	assert_int_equal(chdir(here), 0);
}

/* ---- whatever comes when ---- */

struct storm {
	struct page *page;
	uint64_t last;
};

static void *publish_many(void *arg)
{
	struct storm *s = arg;

	for (uint64_t n = 2; n <= s->last; n++) {
		agent_publish("storm", s->page, n);
		if (n % 7 == 0)
			unlink(agent_path("storm", ".snap")); /* for a moment */
		if (n % 7 == 0)
			agent_put_image("storm", n, false);
	}
	return NULL;
}

static void fd__beside_a_publisher__ends_with_the_last(void **state)
{
	struct storm s = {.last = 1000};
	struct loop l = open_published("storm", &s.page);
	pthread_t thread;
	int r;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, publish_many, &s), 0);
	while (pullet_generation(l.p) < s.last) { /* the deadline is of each event */
		if (!is_readable(&l, LONG_MS))
			fail_msg("stuck at %llu", (unsigned long long)pullet_generation(l.p));
		r = pullet_refresh(l.p);
		assert_true(r >= 0 || r == -ENOENT);
	}
	pthread_join(thread, NULL);
	close_published(&l, s.page);
}

/* The watch of the one that was replaced would never fire: its file lives on. */
static void fd__of_an_image_that_is_replaced_while_it_is_set__follows_the_new_one(void **state)
{
	struct page *page;
	struct loop l = open_published("race", &page);

	(void)state;
	agent_publish("race", page, 2);
	race.name = "race";
	race.by = 3;
	assert_next(&l, 1);
	assert_null(race.name);
	assert_int_equal(pullet_generation(l.p), 3);
	assert_quiet(&l);
	agent_put_image("race", 4, false);
	assert_next(&l, 1);
	assert_int_equal(pullet_generation(l.p), 4);
	close(race.held);
	close_published(&l, page);
}

/* ---- forks and errors ---- */

static void fd__in_a_child__is_its_own(void **state)
{
	struct page *page;
	struct loop l = open_published("fork", &page);
	int status = -1;
	pid_t child;

	(void)state;
	agent_publish("fork", page, 2);
	assert_true(is_readable(&l, LONG_MS));
	child = fork();
	if (child == 0) {
		int bad = pullet_refresh(l.p) != 1; /* takes nothing from the parent */

		bad |= pullet_fd(l.p) < 0 || pullet_refresh(l.p) != 0;
		pullet_close(l.p);
		_exit(bad);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_next(&l, 1);
	agent_publish("fork", page, 3);
	assert_next(&l, 1);
	close_published(&l, page);
}

/* The number is a pipe's now, with bytes in it. */
static void take_number(int fd, int ends[2])
{
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0); /* it may block: nobody may read it */
	assert_int_equal(write(ends[1], "theirs", 6), 6);
	assert_int_equal(dup2(ends[0], fd), fd);
}

static void assert_untouched(int fd, int ends[2])
{
	char bytes[16];

	assert_int_equal(read(fd, bytes, sizeof(bytes)), 6);
	assert_memory_equal(bytes, "theirs", 6);
	close(fd);
	close(ends[0]);
	close(ends[1]);
}

static void fd__that_the_program_closed__is_said_and_another_one_is_made(void **state)
{
	struct page *page;
	struct loop l = open_published("closed", &page);
	int fd = l.fd, ends[2];

	(void)state;
	take_number(fd, ends);
	agent_publish("closed", page, 2);
	assert_int_equal(pullet_refresh(l.p), -EBADF);
	assert_int_equal(pullet_get_int(l.p, "n", 0), 2);
	l.fd = pullet_fd(l.p);
	assert_true(l.fd >= 0 && l.fd != fd);
	assert_int_equal(pullet_refresh(l.p), 0);
	agent_publish("closed", page, 3);
	assert_int_equal(poll(&(struct pollfd){.fd = l.fd, .events = POLLIN}, 1, LONG_MS), 1);
	assert_int_equal(pullet_refresh(l.p), 1);
	close_published(&l, page);
	assert_untouched(fd, ends);
}

/* As a daemon does it: a fork, all descriptors closed, some of its own, and then the handle. */
static void fd__whose_number_is_another_file_in_the_child__leaves_that_alone(void **state)
{
	const char *what[] = {"a file of memory", "an epoll", "a device"};
	struct page *page;
	struct loop l = open_published("daemon", &page);

	(void)state;
	for (size_t i = 0; i < sizeof(what) / sizeof(what[0]); i++) {
		int status = -1;
		pid_t child = fork();

		if (child == 0) {
			int own = i == 0   ? memfd_create("own", MFD_CLOEXEC)
				  : i == 1 ? epoll_create1(EPOLL_CLOEXEC)
					   : open("/dev/null", O_RDONLY | O_CLOEXEC);

			if (dup2(own, l.fd) != l.fd)
				_exit(2);
			if (pullet_fd(l.p) == l.fd || fcntl(l.fd, F_GETFD) < 0)
				_exit(3);
			pullet_close(l.p);
			_exit(fcntl(l.fd, F_GETFD) < 0 ? 4 : 0);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		if (status)
			fail_msg("%s: %x", what[i], (unsigned)status);
	}
	close_published(&l, page);
}

static void fd__no_descriptor_left__says_so(void **state)
{
	struct rlimit limit, none;
	struct pullet *p;

	(void)state;
	agent_put_image("limit", 1, false);
	assert_int_equal(pullet_open(agent_path("limit", ".snap"), 0, &p), 0);
	getrlimit(RLIMIT_NOFILE, &limit);
	none = (struct rlimit){.rlim_cur = 0, .rlim_max = limit.rlim_max};
	setrlimit(RLIMIT_NOFILE, &none);
	assert_int_equal(pullet_fd(p), -EMFILE);
	setrlimit(RLIMIT_NOFILE, &limit);
	watch_error = ENOSPC;
	assert_int_equal(pullet_fd(p), -ENOSPC);
	watch_error = 0;
	assert_true(pullet_fd(p) >= 0);
	pullet_close(p);
}

static void refresh__no_watch_left__moves_and_says_so_until_there_is_one(void **state)
{
	struct page *page;
	struct loop l = open_published("watches", &page);

	(void)state;
	agent_publish("watches", page, 2);
	watch_error = ENOSPC;
	assert_int_equal(pullet_refresh(l.p), -ENOSPC);
	assert_int_equal(pullet_get_int(l.p, "n", 0), 2);
	assert_int_equal(pullet_refresh(l.p), -ENOSPC);
	watch_error = ENOENT; /* not even of "/" */
	assert_int_equal(pullet_refresh(l.p), -ENOENT);
	watch_error = 0;
	assert_int_equal(pullet_refresh(l.p), 0);
	agent_publish("watches", page, 3);
	assert_next(&l, 1);
	close_published(&l, page);
}

static void descriptor__that_means_something_else_by_now__is_not_usable(void **state)
{
	struct path_watch w, other;
	int own;

	(void)state;
	assert_int_equal(path_watch_open(&w), 0);
	assert_true(path_watch_is_usable(&w));
	other = w;
	other.dev++;
	assert_false(path_watch_is_usable(&other));
	other = w;
	other.ino++;
	assert_false(path_watch_is_usable(&other));
	own = epoll_create1(EPOLL_CLOEXEC);
	assert_int_equal(dup2(own, w.fd), w.fd);
	assert_false(path_watch_is_usable(&w));
	close(own);
	close(w.fd);
	assert_false(path_watch_is_usable(&w));
	assert_int_equal(path_watch_renew(&w, "a/b", "c"), -EBADF);
	path_watch_close(&w);
	assert_int_equal(w.fd, -1);
	assert_false(path_watch_is_usable(&w));
	assert_int_equal(path_watch_renew(&w, "a/b", "c"), -EBADF);
	path_watch_close(&w);
}

static void renew__what_the_system_says__is_told_and_ends(void **state)
{
	struct path_watch w, others;

	(void)state;
	assert_int_equal(path_watch_open(&w), 0);
	others = w;
	others.pid = 1;
	assert_true(path_watch_is_own(&w));
	assert_false(path_watch_is_own(&others));
	watch_error = ENOTDIR;
	assert_int_equal(path_watch_renew(&w, "a/b", "c"), -ENOTDIR);
	watch_error = EACCES;
	assert_int_equal(path_watch_renew(&w, "a/b", "c"), -EACCES);
	watch_error = ENOMEM;
	assert_int_equal(path_watch_renew(&w, "a/b", "c"), -ENOMEM);
	watch_error = 0;
	flaps = 1;
	assert_int_equal(path_watch_renew(&w, "a/b", "c"), 0);
	assert_in_range(flaps, 60, 70);
	flaps = 1;
	flaps_itself = true;
	assert_int_equal(path_watch_renew(&w, "a/b", "c"), 0);
	assert_in_range(flaps, 120, 140); /* both */
	flaps = 0;
	flaps_itself = false;
	assert_int_equal(poll(&(struct pollfd){.fd = w.fd, .events = POLLIN}, 1, 0), 1);
	path_watch_close(&w);
}

/* It has no name any more, and who has it open still finds it. */
static void renew__a_file_that_is_being_removed__is_readable_for_another_look(void **state)
{
	char path[64];
	struct path_watch w;
	int file = memfd_create("removed", MFD_CLOEXEC);

	(void)state;
	assert_true(file >= 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	assert_int_equal(path_watch_open(&w), 0);
	assert_int_equal(path_watch_renew(&w, path, "none"), 0);
	assert_int_equal(poll(&(struct pollfd){.fd = w.fd, .events = POLLIN}, 1, 0), 1);
	path_watch_close(&w);
	close(file);
}

/* ---- frame ---- */

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
		CASE(fd__a_new_version__is_readable_until_the_refresh),
		CASE(fd__a_version_between_open_and_fd__is_seen),
		CASE(fd__the_image_is_there_before_the_page_says_so__moves_once),
		CASE(fd__what_happens_to_other_configs__wakes_nobody),
		CASE(fd__a_damaged_image__is_said_once_and_the_next_one_comes),
		CASE(fd__without_a_page__follows_the_file),
		CASE(fd__withdrawn__is_said_when_the_page_does),
		CASE(fd__before_the_directory_is_there__is_woken_by_the_first),
		CASE(fd__a_directory_that_is_a_file__is_waited_for),
		CASE(fd__a_circle_of_symlinks__is_waited_for),
		CASE(fd__a_symlink_on_the_path_that_is_turned__is_seen_by_the_next_refresh),
		CASE(fd__a_path_without_a_directory__is_watched_from_here),
		CASE(fd__beside_a_publisher__ends_with_the_last),
		CASE(fd__of_an_image_that_is_replaced_while_it_is_set__follows_the_new_one),
		CASE(fd__in_a_child__is_its_own),
		CASE(fd__that_the_program_closed__is_said_and_another_one_is_made),
		CASE(fd__whose_number_is_another_file_in_the_child__leaves_that_alone),
		CASE(fd__no_descriptor_left__says_so),
		CASE(descriptor__that_means_something_else_by_now__is_not_usable),
		CASE(renew__what_the_system_says__is_told_and_ends),
		CASE(renew__a_file_that_is_being_removed__is_readable_for_another_look),
		CASE(refresh__no_watch_left__moves_and_says_so_until_there_is_one),
	};

	return cmocka_run_group_tests(tests, agent_make_dir, agent_remove_dir);
}
