/* Bound sockets. Surprising: a Unix socket has its mode from the
 * first moment on, for which the process's umask is changed: a file that another thread makes
 * meanwhile begins with fewer rights (ours get theirs by fchmod()). */
#include "httpd/listen.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "files/trusted.h"

/* A socket file without a listener is left from a crash. A program that hangs, with a full queue,
 * listens: there is no wait for it. Any other file refuses connections, too. */
static bool is_stale(const struct sockaddr_un *address, int dir, const char *name)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct stat st;
	bool stale = fd >= 0 && fstatat(dir, name, &st, 0) == 0 && S_ISSOCK(st.st_mode) &&
		     connect(fd, (const struct sockaddr *)address, sizeof(*address)) &&
		     errno == ECONNREFUSED;

	if (fd >= 0)
		close(fd);
	return stale;
}

/* Binds in a trusted directory: so no other user can put a file in the way of bind(), which has no
 * form with a descriptor. */
static int bind_unix(const struct sockaddr_un *address, int dir, const char *name)
{
	int fd, r;

	if (is_stale(address, dir, name))
		sys_real.unlinkat(dir, name, 0);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -1;
	/* at most 0660 from the first moment on; the umask is that of other threads, too */
	r = fchmod(fd, 0660);
	if (r == 0)
		r = bind(fd, (const struct sockaddr *)address, sizeof(*address));
	if (r == 0 && fchmodat(dir, name, 0660, 0) == 0)
		return fd;
	r = errno;
	close(fd);
	errno = r;
	return -1;
}

int listen_unix(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd, dir, error;
	char why[FILE_WHY];
	const char *name;

	if (strlen(path) >= sizeof(address.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(address.sun_path, path, strlen(path) + 1);
	dir = trusted_open_parent(&sys_real, path, TRUSTED_OWN, &name, why);
	if (dir < 0) {
		errno = -dir;
		return -1;
	}
	fd = bind_unix(&address, dir, name);
	error = errno;
	sys_real.close(dir);
	errno = error;
	return fd;
}

void listen_remove(const char *path)
{
	char why[FILE_WHY];
	const char *name;
	int dir = trusted_open_parent(&sys_real, path, TRUSTED_OWN, &name, why);

	if (dir < 0)
		return;
	sys_real.unlinkat(dir, name, 0);
	sys_real.close(dir);
}

/* "HOST:PORT", "[v6]:PORT" to addresses. NULL with errno set. */
static struct addrinfo *resolve_address(const char *text)
{
	const struct addrinfo hints = {
		.ai_flags = AI_PASSIVE | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
	const char *colon = strrchr(text, ':');
	struct addrinfo *found = NULL;
	char host[256];
	size_t len = colon ? (size_t)(colon - text) : 0;
	int r;

	errno = EINVAL;
	if (len == 0 || len >= sizeof(host))
		return NULL;
	if (text[0] == '[' && text[len - 1] == ']') {
		text++;
		len -= 2;
	}
	memcpy(host, text, len);
	host[len] = '\0';
	r = getaddrinfo(host, colon + 1, &hints, &found);
	if (r == 0)
		return found;
	errno = r == EAI_MEMORY ? ENOMEM : EINVAL; /* it has one of its own */
	return NULL;
}

int listen_tcp(const char *text, int *ret_port)
{
	struct addrinfo *a = resolve_address(text);
	struct sockaddr_storage bound;
	socklen_t len = sizeof(bound);
	int one = 1, fd = -1, error = errno;

	if (!a)
		goto out;
	fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
		bind(fd, a->ai_addr, a->ai_addrlen) ||
		getsockname(fd, (struct sockaddr *)&bound, &len)) {
		error = errno;
		if (fd >= 0)
			close(fd);
		fd = -1;
		goto out;
	}
	*ret_port = ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port
						      : ((struct sockaddr_in *)&bound)->sin_port);
out:
	if (a)
		freeaddrinfo(a);
	errno = error;
	return fd;
}
