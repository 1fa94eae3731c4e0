/* Where a server listens: the sockets of Unix and of TCP, and what is no address. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "httpd/listen.h"
#include "tests/unit/fixture/scratch.h"

#define OTHER 64104

static char dir[SCRATCH_PATH], path[SCRATCH_PATH + 16];
static unsigned descriptors;

/* Of a name that is too long nobody is asked. */
int getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
	struct addrinfo **ret_found)
{
	int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);

	assert_true(strlen(host) < 256);
	*(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
	return real(host, port, hints, ret_found);
}

static unsigned removed_nowhere; /* with a descriptor that is none */

int unlinkat(int at, const char *name, int flags)
{
	removed_nowhere += at < 0 && at != AT_FDCWD;
	return (int)syscall(SYS_unlinkat, at, name, flags);
}

static int set_up(void **state)
{
	(void)state;
	removed_nowhere = 0;
	scratch_open(dir, scratch_memory());
	snprintf(path, sizeof(path), "%s/s", dir);
	descriptors = scratch_descriptors();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	scratch_close(dir);
	assert_int_equal(scratch_descriptors(), descriptors);
	assert_int_equal(removed_nowhere, 0);
	return 0;
}

static void assert_refused(const char *where, int error)
{
	errno = 0;
	assert_int_equal(listen_unix(where), -1);
	assert_int_equal(errno, error);
}

/* Of the kind that the server wants. */
static void assert_ready(int fd)
{
	int type = 0;
	socklen_t len = sizeof(type);

	assert_true(fd >= 0);
	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len), 0);
	assert_int_equal(type, SOCK_STREAM);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
}

static void unix__at_a_free_path__is_bound_for_its_group(void **state)
{
	struct sockaddr_un address;
	socklen_t len = sizeof(address);
	mode_t mask = umask(0);
	struct stat st;
	int fd = listen_unix(path);

	(void)state;
	assert_int_equal(umask(mask), 0);
	assert_ready(fd);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
	assert_string_equal(address.sun_path, path);
	assert_int_equal(lstat(path, &st), 0);
	assert_int_equal(st.st_mode, S_IFSOCK | 0660);
	listen_remove(path);
	assert_int_equal(lstat(path, &st), -1);
	listen_remove(path);
	close(fd);
}

static void unix__with_a_strict_umask__has_its_mode_all_the_same(void **state)
{
	mode_t mask = umask(0777);
	struct stat st;
	int fd = listen_unix(path);

	(void)state;
	umask(mask);
	assert_true(fd >= 0);
	assert_int_equal(lstat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0660);
	close(fd);
}

static void unix__where_another_listens__is_refused_until_it_ends(void **state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int first = listen_unix(path), second, queued[3];

	(void)state;
	assert_int_equal(listen(first, 0), 0);
	assert_refused(path, EADDRINUSE);
	/* its queue is full now, and it listens all the same */
	snprintf(address.sun_path, sizeof(address.sun_path), "%.100s", path);
	for (size_t i = 0; i < 3; i++) {
		queued[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		(void)!connect(queued[i], (struct sockaddr *)&address, sizeof(address));
	}
	assert_refused(path, EADDRINUSE);
	for (size_t i = 0; i < 3; i++)
		close(queued[i]);
	close(first);
	second = listen_unix(path);
	assert_ready(second);
	close(second);
}

static void unix__where_a_file_lies__is_refused_and_the_file_kept(void **state)
{
	char text[8];

	(void)state;
	scratch_write(dir, "s", "text", 4);
	assert_refused(path, EADDRINUSE);
	assert_true(scratch_read(dir, "s", text, sizeof(text), NULL));
}

static void unix__at_no_such_place__says_why(void **state)
{
	char longest[sizeof(((struct sockaddr_un *)0)->sun_path) + 1];
	int fd;

	(void)state;
	snprintf(path, sizeof(path), "%s/none/s", dir);
	assert_refused(path, ENOENT);
	listen_remove(path);
	memset(longest, 's', sizeof(longest));
	memcpy(longest, dir, strlen(dir));
	longest[strlen(dir)] = '/';
	longest[sizeof(longest) - 1] = '\0';
	assert_refused(longest, ENAMETOOLONG);
	longest[sizeof(longest) - 2] = '\0';
	fd = listen_unix(longest);
	assert_ready(fd);
	close(fd);
}

static void unix__in_another_users_directory__is_refused(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(chown(dir, OTHER, OTHER), 0);
	assert_refused(path, EPERM);
	scratch_write(dir, "s", "text", 4);
	listen_remove(path);
	assert_int_equal(scratch_count(dir, "s"), 1);
}

static void tcp__at_port_0__has_a_free_one(void **state)
{
	static const struct {
		const char *address;
		int family;
	} table[] = {
		{"127.0.0.1:0", AF_INET},
		{"[127.0.0.1]:0", AF_INET},
		{"[::1]:0", AF_INET6},
		{"::1:0", AF_INET6},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		union {
			struct sockaddr any;
			struct sockaddr_in v4;
			struct sockaddr_in6 v6;
		} bound;
		socklen_t len = sizeof(bound);
		int port = -1, one = 0, fd = listen_tcp(table[i].address, &port);

		if (fd < 0 && table[i].family == AF_INET6) /* the host has none */
			continue;
		assert_ready(fd);
		assert_int_equal(getsockname(fd, &bound.any, &len), 0);
		assert_int_equal(bound.any.sa_family, table[i].family);
		assert_in_range(port, 1, 65535);
		assert_int_equal(
			ntohs(table[i].family == AF_INET6 ? bound.v6.sin6_port : bound.v4.sin_port),
			port);
		len = sizeof(one);
		assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, &len), 0);
		assert_true(one);
		close(fd);
	}
}

static void tcp__at_a_port_that_is_taken__says_so(void **state)
{
	int port = 0, none = 0, first = listen_tcp("127.0.0.1:0", &port);
	char address[32];

	(void)state;
	assert_int_equal(listen(first, 1), 0);
	snprintf(address, sizeof(address), "127.0.0.1:%d", port);
	errno = 0;
	assert_int_equal(listen_tcp(address, &none), -1);
	assert_int_equal(errno, EADDRINUSE);
	assert_int_equal(none, 0);
	close(first);
}

static void tcp__of_what_is_no_address__is_invalid(void **state)
{
	static const char *const table[] = {"", ":80", "127.0.0.1", "127.0.0.1:http", "[::1:0",
		"127.0.0.1]:0", "nobody.invalid.:0", "[]:0"};
	char longest[300];
	int port = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		int fd;

		errno = 0;
		fd = listen_tcp(table[i], &port);
		if (fd >= 0 || errno != EINVAL)
			fail_msg("%s: %d, %d", table[i], fd, errno);
	}
	for (size_t len = 254; len <= 258; len++) {
		memset(longest, 'n', sizeof(longest));
		memcpy(longest + len, ":0", 3);
		assert_int_equal(listen_tcp(longest, &port), -1);
		assert_int_equal(errno, EINVAL);
	}
}

static void tcp__without_descriptors__says_so(void **state)
{
	struct rlimit limit, none;
	int fd, error, port = 0;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = (struct rlimit){.rlim_max = limit.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	fd = listen_tcp("127.0.0.1:0", &port);
	error = errno;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(fd, -1);
	assert_int_equal(error, EMFILE);
	assert_int_equal(port, 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(unix__at_a_free_path__is_bound_for_its_group),
		CASE(unix__with_a_strict_umask__has_its_mode_all_the_same),
		CASE(unix__where_another_listens__is_refused_until_it_ends),
		CASE(unix__where_a_file_lies__is_refused_and_the_file_kept),
		CASE(unix__at_no_such_place__says_why),
		CASE(unix__in_another_users_directory__is_refused),
		CASE(tcp__at_port_0__has_a_free_one),
		CASE(tcp__at_a_port_that_is_taken__says_so),
		CASE(tcp__of_what_is_no_address__is_invalid),
		CASE(tcp__without_descriptors__says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
