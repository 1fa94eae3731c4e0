/*
 * The form of texts, one function for each kind.
 *
 * Surprising: paths are rejected rather than normalised ("//", "/./"), because two configs that
 * write the same file are found by comparing texts.
 */
#include "settings/form.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>

#include "settings/settings.h"
#include "crypto/minisign.h"

#define DIGITS "0123456789"
#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
#define HEARTBEAT_TOPIC "pullet.heartbeat"

static bool has_controls(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			return true;
	return false;
}

/* The inside of [ ]: an IPv6 address, with a zone if it has one. */
static bool is_v6(const char *text, size_t len)
{
	char address[INET6_ADDRSTRLEN];
	struct in6_addr v6;
	const char *zone = memchr(text, '%', len);
	size_t n = zone ? (size_t)(zone - text) : len;

	if (n >= sizeof(address))
		return false;
	memcpy(address, text, n);
	address[n] = '\0';
	if (inet_pton(AF_INET6, address, &v6) != 1)
		return false;
	/* a zone is a name, the rest of the text behind it is the caller's */
	return !zone || (n + 1 < len && strspn(zone + 1, LETTERS DIGITS "._-") >= len - n - 1);
}

/* Checks the host at text and finds its end. Bytes over 0x7f may be part of an international name.
 */
static const char *check_host_part(const char *text, const char *end, const char **ret_end)
{
	const char *p = text;

	if (p < end && *p == '[') {
		p = memchr(text, ']', (size_t)(end - text));
		if (!p || !is_v6(text + 1, (size_t)(p - text - 1)))
			return "has no valid IPv6 address between [ and ]";
		*ret_end = p + 1;
		return NULL;
	}
	while (p < end &&
		(isalnum((unsigned char)*p) || (unsigned char)*p >= 0x80 || strchr(".-_", *p)))
		p++;
	*ret_end = p;
	return p == text ? "names no host" : NULL;
}

static const char *check_port(const char *text, const char *end, unsigned long least)
{
	unsigned long port;

	if (text == end || end - text > 5 || strspn(text, DIGITS) < (size_t)(end - text))
		return "has no valid port: write a number up to 65535 behind the host";
	port = strtoul(text, NULL, 10);
	if (port < least)
		return "has the port 0, which nobody can reach: write 1 to 65535";
	return port > 65535 ? "has a port out of range: at most 65535" : NULL;
}

/* HOST[:PORT] in len bytes, none of which is NUL. */
static const char *check_host_port(
	const char *text, size_t len, bool need_port, unsigned long min_port)
{
	const char *end = text + len, *p, *why = check_host_part(text, end, &p);

	if (why)
		return why;
	if (p == end)
		return need_port ? "names no port: write HOST:PORT" : NULL;
	if (*p++ != ':')
		return "has a character in the host that cannot be there";
	return check_port(p, end, min_port);
}

const char *settings_check_url(const char *text)
{
	const char *authority;
	size_t len;

	if (!strncasecmp(text, "http://", 7))
		authority = text + 7;
	else if (!strncasecmp(text, "https://", 8))
		authority = text + 8;
	else
		return "must begin with http:// or https://";
	len = strcspn(authority, "/?#");
	if (memchr(authority, '@', len))
		return "holds credentials, which do not belong in the URL: remove USER:PASSWORD@";
	if (strlen(text) > SETTINGS_MAX_URL)
		return "is too long: at most 1023 bytes";
	if (has_controls(text) || strchr(text, ' '))
		return "holds a space or a control character: write it as %20 or the like";
	if (strchr(text, '#'))
		return "has a fragment (#...), which is never sent to a server: remove it";
	return check_host_port(authority, len, false, 1);
}

const char *settings_check_base_url(const char *text)
{
	return strchr(text, '?') ? "has a query (?...): that belongs into the paths"
				 : settings_check_url(text);
}

const char *settings_check_url_path(const char *text)
{
	if (*text != '/')
		return "must begin with /: it is put behind each URL of the server";
	if (strlen(text) > SETTINGS_MAX_URL)
		return "is too long: at most 1023 bytes";
	if (has_controls(text) || strchr(text, ' '))
		return "holds a space or a control character: write it as %20 or the like";
	return strchr(text, '#')
		       ? "has a fragment (#...), which is never sent to a server: remove it"
		       : NULL;
}

const char *settings_check_file_url(const char *text)
{
	if (strncmp(text, "file:///", 8) != 0)
		return "must begin with file:///, followed by an absolute path";
	return settings_check_path(text + 7);
}

const char *settings_check_word(const char *text)
{
	size_t len = strlen(text);

	return len >= 1 && len <= 128 && strspn(text, LETTERS DIGITS "._:/+=-") == len
		       ? NULL
		       : "is not a name: 1 to 128 letters, digits and ._:/+=-";
}

const char *settings_check_header_name(const char *text)
{
	/* what the agent sets itself, or what would change how a message is framed */
	static const char *const own[] = {"Accept-Encoding", "Connection", "Content-Length",
		"If-Modified-Since", "If-None-Match", "Range", "Transfer-Encoding", "Upgrade"};
	size_t len = strlen(text);

	if (len < 1 || len > 64 || strspn(text, LETTERS DIGITS "!#$%&'*+-.^_`|~") < len)
		return "is not a header name: letters, digits and '-', at most 64";
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (!strcasecmp(text, own[i]))
			return "is a header that the agent sets itself";
	return NULL;
}

const char *settings_check_header_value(const char *text)
{
	size_t len = strlen(text);

	if (len < 1 || len > SETTINGS_MAX_SECRET)
		return "must have 1 to 8192 bytes";
	return has_controls(text) ? "holds a control character" : NULL;
}

const char *settings_check_user(const char *text)
{
	size_t len = strlen(text);

	if (len < 1 || len > 255)
		return "must have 1 to 255 bytes";
	if (strchr(text, ':'))
		return "holds a ':', which ends a user's name in HTTP";
	return has_controls(text) ? "holds a control character" : NULL;
}

const char *settings_check_endpoint(const char *text)
{
	if (has_controls(text) || strchr(text, ' '))
		return "holds a space or a control character";
	if (!strncmp(text, "tcp://", 6))
		return check_host_port(text + 6, strlen(text + 6), true, 1);
	if (strncmp(text, "ipc://", 6))
		return "must be tcp://HOST:PORT or ipc:///PATH";
	if (strlen(text + 6) >= sizeof(((struct sockaddr_un *)0)->sun_path))
		return "has a path that is too long for a socket: at most 107 bytes";
	return settings_check_path(text + 6);
}

const char *settings_check_binding(const char *text)
{
	const char *port;

	if (!strncmp(text, "ipc://", 6))
		return text[6] ? NULL : "names no path: write ipc:///PATH";
	if (!strncmp(text, "tcp://", 6))
		text += 6;
	else if (strstr(text, "://"))
		return "must be tcp://HOST:PORT or ipc:///PATH";
	port = strrchr(text, ':');
	if (!port)
		return "names no port: write tcp://HOST:PORT";
	if (port == text)
		return "names no host: write tcp://HOST:PORT";
	port++;
	return strcmp(port, "*") == 0 ? NULL : check_port(port, port + strlen(port), 0);
}

const char *settings_check_address(const char *text)
{
	return check_host_port(text, strlen(text), true, 0);
}

const char *settings_check_path(const char *text)
{
	size_t len = strlen(text), segment = 0;

	if (*text != '/')
		return "must be an absolute path, beginning with /";
	if (text[len - 1] == '/')
		return "ends with /: name it without";
	if (len > SETTINGS_MAX_PATH)
		return "is too long: at most 4000 bytes";
	if (has_controls(text))
		return "holds a control character";
	for (const char *p = text + 1;; p += segment + 1) {
		segment = strcspn(p, "/");
		if (segment == 0 || (segment == 1 && !strncmp(p, ".", 1)) ||
			(segment == 2 && !strncmp(p, "..", 2)))
			return "has a part that is empty, \".\" or \"..\": write the path without";
		if (!p[segment])
			break;
	}
	return segment > SETTINGS_MAX_FILENAME
		       ? "has a last part that is too long: at most 230 bytes"
		       : NULL;
}

const char *settings_check_runtime_dir(const char *text)
{
	if (strlen(text) + sizeof("/control.sock") > sizeof(((struct sockaddr_un *)0)->sun_path))
		return "is too long for the control socket in it: at most 94 bytes";
	return settings_check_path(text);
}

const char *settings_check_topic(const char *text)
{
	size_t len = strlen(text);

	if (len < 1 || len > 255)
		return "must have 1 to 255 bytes";
	return strcmp(text, HEARTBEAT_TOPIC) ? NULL
					     : "is the topic of the heartbeats: choose another";
}

static bool is_plain_name(const char *text, size_t max)
{
	size_t len = strlen(text);

	return len >= 1 && len <= max && strspn(text, LETTERS DIGITS "._-") == len &&
	       !strchr("._-", *text);
}

const char *settings_check_name(const char *text)
{
	return is_plain_name(text, SETTINGS_MAX_NAME)
		       ? NULL
		       : "is not a name: 1 to 64 letters, digits, '.', '_' and '-', a letter or "
			 "digit first";
}

const char *settings_check_file_name(const char *text)
{
	return is_plain_name(text, SETTINGS_MAX_SET_NAME)
		       ? NULL
		       : "is not the name of a file in the directory: 1 to 200 letters, digits, "
			 "'.', '_' and '-', a letter or digit first";
}

const char *settings_check_pattern(const char *text)
{
	size_t len = strlen(text);

	if (len < 1 || len > SETTINGS_MAX_KEY)
		return "must have 1 to 1023 bytes";
	return has_controls(text) ? "holds a control character" : NULL;
}

const char *settings_check_key(const char *text)
{
	for (const char *p = strchr(text, '\\'); p; p = strchr(p + 2, '\\'))
		if (p[1] != '.' && p[1] != '\\')
			return "has a backslash that is not before a dot or a backslash: write it "
			       "twice";
	return settings_check_pattern(text);
}

const char *settings_check_argument(const char *text)
{
	return strlen(text) > SETTINGS_MAX_ARGUMENT ? "is too long: at most 8191 bytes" : NULL;
}

const char *settings_check_public_key(const char *text)
{
	struct minisign_key key;

	/* "Ed" in base64 is RW and the first two bits of the next letter */
	if (strlen(text) != 56 || strspn(text, LETTERS DIGITS "+/") != 56 ||
		strncmp(text, "RW", 2) || !strchr("QRST", text[2]) ||
		minisign_parse_key(text, &key))
		return "is not a public key of minisign: 56 characters beginning with RW, the last "
		       "line of the .pub file that minisign -G makes";
	return NULL;
}

const char *settings_check_label(const char *text)
{
	if (strlen(text) > 255)
		return "is too long: at most 255 bytes";
	return has_controls(text) ? "holds a control character" : NULL;
}
