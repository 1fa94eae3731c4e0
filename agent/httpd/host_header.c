/* Names and addresses. Surprising: nothing; a number in any other form than that of an address
 * (0x7f.1) is a name, and not ours. */
#include "httpd/host_header.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <limits.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define MAX_NAME 255

/* The host without its port, its brackets and a dot at the end. */
static bool split_host(const char *host, char name[MAX_NAME + 1], bool *ret_brackets)
{
	const char *end = host + strlen(host), *port = end;

	while (port > host && isdigit((unsigned char)port[-1]))
		port--;
	if (port > host && port[-1] == ':' && port < end)
		end = port - 1;
	*ret_brackets = host[0] == '[' && end[-1] == ']';
	if (*ret_brackets) {
		host++;
		end--;
	} else if (end > host && end[-1] == '.') {
		end--;
	}
	if (end == host || end - host > MAX_NAME)
		return false;
	memcpy(name, host, (size_t)(end - host));
	name[end - host] = '\0';
	return true;
}

static bool same_host(const char *name, const char *ours)
{
	size_t len = strlen(ours);

	if (len > 0 && ours[len - 1] == '.')
		len--;
	return len > 0 && strlen(name) == len && strncasecmp(name, ours, len) == 0;
}

static bool is_localhost(const char *name)
{
	static const char tail[] = ".localhost";
	size_t len = strlen(name), tail_len = sizeof(tail) - 1;

	return strcasecmp(name, tail + 1) == 0 ||
	       (len > tail_len && strcasecmp(name + len - tail_len, tail) == 0);
}

bool host_header_is_ours(const char *host, const char *machine, char *const *names)
{
	struct in6_addr address;
	char name[MAX_NAME + 1];
	bool brackets;

	if (!host || !split_host(host, name, &brackets))
		return false;
	if (brackets)
		return inet_pton(AF_INET6, name, &address) == 1;
	if (inet_pton(AF_INET, name, &address) == 1 || is_localhost(name) ||
		same_host(name, machine))
		return true;
	for (; names && *names; names++)
		if (same_host(name, *names))
			return true;
	return false;
}

bool host_header_is_this_machines(const char *host, char *const *names)
{
	char machine[HOST_NAME_MAX + 1] = "";

	if (gethostname(machine, sizeof(machine)))
		machine[0] = '\0';
	return host_header_is_ours(host, machine, names);
}
