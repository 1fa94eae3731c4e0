/*
 * What the kernel says of who is connected, and what follows from it. As root the other end is a
 * child of another user; as anybody else it is this process.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "httpd/peer.h"
#include "tests/unit/fixture/fault_memory.h"

#define STRANGER 54321u
#define OPERATORS 54400u

/* What another process is. */
struct who {
	uid_t uid;
	gid_t gid;
	gid_t first;  /* its supplementary groups: so many numbers */
	size_t count; /* from this one on */
};

static int listen_anywhere(struct sockaddr_un *address, socklen_t *ret_len)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*ret_len = sizeof(*address);
	memset(address, 0, sizeof(*address));
	address->sun_family = AF_UNIX; /* no name: the kernel gives an abstract one */
	assert_int_equal(bind(fd, (struct sockaddr *)address, sizeof(sa_family_t)), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)address, ret_len), 0);
	return fd;
}

static void become(const struct who *who)
{
	gid_t *groups = calloc(who->count + 1, sizeof(*groups));

	for (size_t i = 0; groups && i < who->count; i++)
		groups[i] = who->first + (gid_t)i;
	if (!groups || setgroups(who->count, groups) || setresgid(who->gid, who->gid, who->gid) ||
		setresuid(who->uid, who->uid, who->uid))
		_exit(1);
	free(groups);
}

/* The other end of a connection that this process made. */
static struct peer look(const struct sys *sys, const struct who *who, gid_t operators)
{
	struct sockaddr_un address;
	socklen_t len;
	int fd = listen_anywhere(&address, &len), end, status, hold[2];
	struct pollfd comes = {.fd = fd, .events = POLLIN};
	struct peer peer;
	char byte;
	pid_t child;

	assert_int_equal(pipe(hold), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		int s = socket(AF_UNIX, SOCK_STREAM, 0);

		close(hold[1]);
		become(who);
		_exit(connect(s, (struct sockaddr *)&address, len) || read(hold[0], &byte, 1) != 0);
	}
	close(hold[0]);
	assert_int_equal(poll(&comes, 1, 20000), 1);
	end = accept(fd, NULL, NULL);
	assert_true(end >= 0);
	peer_identify(sys, end, operators, &peer);
	close(hold[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close(end);
	close(fd);
	return peer;
}

static const char *passwd_text; /* of a database of ours */

static int open_passwd(int dir, const char *path, int flags, mode_t mode)
{
	char name[] = "/tmp/pullet-passwd-XXXXXX";
	int fd;

	(void)dir, (void)flags, (void)mode;
	assert_string_equal(path, "/etc/passwd");
	fd = mkostemp(name, O_CLOEXEC);
	assert_true(fd >= 0);
	unlink(name);
	assert_int_equal(write(fd, passwd_text, strlen(passwd_text)), strlen(passwd_text));
	lseek(fd, 0, SEEK_SET);
	return fd;
}

static void identify__each_kind_of_user__has_its_right(void **state)
{
	static const struct {
		const char *what;
		struct who who;
		gid_t operators;
		enum right right;
	} table[] = {
		{"root", {0, 0, 0, 0}, PEER_NO_GROUP, RIGHT_OWN},
		{"a stranger", {STRANGER, STRANGER, 0, 0}, OPERATORS, RIGHT_READ},
		{"nobody operates", {STRANGER, STRANGER, OPERATORS, 3}, PEER_NO_GROUP, RIGHT_READ},
		{"a member", {STRANGER, STRANGER, OPERATORS - 2, 3}, OPERATORS, RIGHT_OPERATE},
		{"of other groups", {STRANGER, STRANGER, OPERATORS + 1, 9}, OPERATORS, RIGHT_READ},
		{"the 500th of his groups", {STRANGER, STRANGER, OPERATORS - 499, 500}, OPERATORS,
			RIGHT_OPERATE},
		{"of many other groups", {STRANGER, STRANGER, OPERATORS + 1, 500}, OPERATORS,
			RIGHT_READ},
		{"the last of as many as there can be", {STRANGER, STRANGER, OPERATORS + 1, 65536},
			OPERATORS + 65536, RIGHT_OPERATE},
		{"what a setgid program makes of a stranger", {STRANGER, OPERATORS, 0, 0},
			OPERATORS, RIGHT_READ},
		{"primary by the database", {STRANGER + 1, OPERATORS, 0, 0}, OPERATORS,
			RIGHT_OPERATE},
		{"a damaged line", {STRANGER + 2, OPERATORS, 0, 0}, OPERATORS, RIGHT_READ},
		{"no group is not every group", {STRANGER, 7, 0, 0}, 8, RIGHT_READ},
	};
	struct sys sys = sys_real;

	(void)state;
	if (geteuid() != 0)
		skip();
	sys.openat = open_passwd;
	passwd_text = "stranger:x:54321:54321::/:\nops:x:54322:54400::/:\nbad:x:54323:x::/:\n";
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct peer peer = look(&sys, &table[i].who, table[i].operators);

		if (peer.right != table[i].right)
			fail_msg("%s: %d", table[i].what, (int)peer.right);
		assert_true(peer.local);
		assert_int_equal(peer.uid, table[i].who.uid);
	}
}

static socklen_t told_len; /* of groups; 0 = what the kernel says */
static int told_error;
static unsigned group_calls;

int getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	if (name == SO_PEERGROUPS)
		group_calls++;
	if (name != SO_PEERGROUPS || !told_error)
		return (int)syscall(SYS_getsockopt, fd, level, name, value, len);
	*len = told_len;
	errno = told_error;
	return -1;
}

/* On an older kernel, or with more groups than a process can have. */
static void identify__where_groups_cannot_be_read__reads(void **state)
{
	static const struct {
		int error;
		socklen_t len;
		unsigned calls;
	} rows[] = {{ENOPROTOOPT, 64, 1}, {ERANGE, PEER_MAX_GROUPS * sizeof(gid_t) + 1, 1},
		{ERANGE, PEER_MAX_GROUPS * sizeof(gid_t), 2}};
	static const struct who stranger = {STRANGER, STRANGER, OPERATORS, 1};

	(void)state;
	if (geteuid() != 0)
		skip();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct peer peer;

		told_error = rows[i].error;
		told_len = rows[i].len;
		group_calls = 0;
		peer = look(&sys_real, &stranger, OPERATORS);
		told_error = 0;
		assert_int_equal(peer.right, RIGHT_READ);
		assert_int_equal(group_calls, rows[i].calls);
	}
}

static void identify__of_a_user_in_many_groups__keeps_no_memory(void **state)
{
	static const struct who member = {STRANGER, STRANGER, OPERATORS - 499, 500};
	long before;

	(void)state;
	if (geteuid() != 0)
		skip();
	before = fault_memory.live;
	assert_int_equal(look(&sys_real, &member, OPERATORS).right, RIGHT_OPERATE);
	assert_int_equal(fault_memory.live, before);
}

static void identify__who_this_process_is__owns(void **state)
{
	int ends[2];
	struct peer peer;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	peer_identify(&sys_real, ends[0], PEER_NO_GROUP, &peer);
	assert_true(peer.local);
	assert_int_equal(peer.uid, geteuid());
	assert_int_equal(peer.right, RIGHT_OWN);
	close(ends[0]);
	close(ends[1]);
}

static uid_t played_euid;

uid_t geteuid(void)
{
	return played_euid ? played_euid : (uid_t)syscall(SYS_geteuid);
}

static void identify__root_and_the_agents_user__own_where_they_are_two(void **state)
{
	static const struct who root = {0, 0, 0, 0}, agent = {STRANGER, STRANGER, 0, 0},
				other = {STRANGER + 1, STRANGER, 0, 0};

	(void)state;
	if (geteuid() != 0)
		skip();
	played_euid = STRANGER;
	assert_int_equal(look(&sys_real, &root, OPERATORS).right, RIGHT_OWN);
	assert_int_equal(look(&sys_real, &agent, OPERATORS).right, RIGHT_OWN);
	assert_int_equal(look(&sys_real, &other, OPERATORS).right, RIGHT_READ);
	played_euid = 0;
}

/* The kernel's record is that of nobody then. */
static void identify__of_a_socket_without_another_end__reads(void **state)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct peer peer;

	(void)state;
	peer_identify(&sys_real, fd, PEER_NO_GROUP, &peer);
	assert_false(peer.local);
	assert_true(peer.uid == (uid_t)-1);
	assert_int_equal(peer.right, RIGHT_READ);
	close(fd);
}

static void identify__over_tcp_or_of_no_socket__reads(void **state)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM, 0), there = socket(AF_INET, SOCK_STREAM, 0), end;
	struct peer peer;

	(void)state;
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
	assert_int_equal(connect(there, (struct sockaddr *)&address, sizeof(address)), 0);
	end = accept(fd, NULL, NULL);
	peer_identify(&sys_real, end, getegid(), &peer);
	assert_false(peer.local);
	assert_true(peer.uid == (uid_t)-1); /* nobody, above all not root */
	assert_int_equal(peer.right, RIGHT_READ);
	close(fd);
	close(there);
	close(end);
	peer_identify(&sys_real, -1, getegid(), &peer);
	assert_false(peer.local);
	assert_int_equal(peer.right, RIGHT_READ);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(identify__each_kind_of_user__has_its_right),
		cmocka_unit_test(identify__where_groups_cannot_be_read__reads),
		cmocka_unit_test(identify__who_this_process_is__owns),
		cmocka_unit_test(identify__root_and_the_agents_user__own_where_they_are_two),
		cmocka_unit_test(identify__of_a_socket_without_another_end__reads),
		cmocka_unit_test(identify__over_tcp_or_of_no_socket__reads),
		cmocka_unit_test(identify__of_a_user_in_many_groups__keeps_no_memory),
	};

	return fault_memory_run(tests, 1);
}
