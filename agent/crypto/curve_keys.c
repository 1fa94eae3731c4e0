/*
 * Keys as text, files of keys. Surprising: a comment needs no rule of its own, although '#' is one
 * of Z85's characters: five of them are a number of 32 bits, and one that begins with '#' would be
 * larger.
 */
#include "crypto/curve_keys.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "crypto/key_file.h"

#define TEXT_LEN (CURVE_TEXT - 1)

/* ---- text ---- */

/* False when the TEXT_LEN characters are no key. */
static bool decode_z85(const char *text, unsigned char ret_key[CURVE_KEY])
{
	static const char digits[] =
		"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
		".-:+=^!/*?&<>()[]{}@%$#";

	for (size_t i = 0; i < TEXT_LEN; i += 5) {
		uint64_t n = 0;

		for (size_t k = i; k < i + 5; k++) {
			const char *digit = memchr(digits, text[k], sizeof(digits) - 1);

			if (!digit)
				return false;
			n = n * 85 + (uint64_t)(digit - digits);
		}
		if (n > UINT32_MAX)
			return false;
		for (int k = 3; k >= 0; k--, n >>= 8)
			ret_key[i / 5 * 4 + (size_t)k] = (unsigned char)n;
	}
	return true;
}

const char *curve_check_key(const char *text)
{
	unsigned char key[CURVE_KEY];

	return strlen(text) == TEXT_LEN && decode_z85(text, key)
		       ? NULL
		       : "is not a public key: 40 characters of Z85, as pullet keygen prints them, "
			 "in single quotes";
}

bool curve_stays_here(const char *endpoint)
{
	const char *end;
	struct in6_addr v6;
	struct in_addr v4;
	char host[64];
	size_t len;

	if (strncmp(endpoint, "ipc://", 6) == 0)
		return true;
	if (strncmp(endpoint, "tcp://", 6) == 0)
		endpoint += 6;
	end = strrchr(endpoint, ':');
	len = end ? (size_t)(end - endpoint) : strlen(endpoint);
	if (len >= 2 && endpoint[0] == '[' && endpoint[len - 1] == ']') {
		endpoint++;
		len -= 2;
	}
	if (len >= sizeof(host))
		return false;
	memcpy(host, endpoint, len);
	host[len] = '\0';
	if (inet_pton(AF_INET, host, &v4) == 1)
		return ntohl(v4.s_addr) >> 24 == IN_LOOPBACKNET;
	if (inet_pton(AF_INET6, host, &v6) == 1)
		return IN6_IS_ADDR_LOOPBACK(&v6) ||
		       (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == IN_LOOPBACKNET);
	return strcasecmp(host, "localhost") == 0;
}

/* The same for a url. */
static bool url_stays_here(const char *url)
{
	const char *host = strstr(url, "://"), *colon;
	char endpoint[128];
	size_t len;

	if (!host)
		return false;
	host += 3;
	len = strcspn(host, "/?#");
	if (len > 80) /* longer than any name of this host */
		return false;
	snprintf(endpoint, sizeof(endpoint), "tcp://%.*s", (int)len, host);
	colon = strrchr(endpoint + 6, ':');
	if (!colon || strchr(colon, ']')) /* without a port */
		snprintf(endpoint, sizeof(endpoint), "tcp://%.*s:80", (int)len, host);
	return curve_stays_here(endpoint);
}

bool curve_url_is_open(const char *url)
{
	return !strncasecmp(url, "http:", 5) && !url_stays_here(url);
}

static bool is_line_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

struct lines {
	const char *at, *end;
	unsigned number; /* of the last line */
};

/* The next key of a text: 1 with its bytes and its place, 0 at the end, -EINVAL for an invalid
 * line.
 */
static int next_key_line(struct lines *l, unsigned char ret_key[CURVE_KEY], const char **ret_text)
{
	while (l->at < l->end) {
		const char *line = l->at, *stop = memchr(line, '\n', (size_t)(l->end - line));

		if (!stop)
			stop = l->end;
		l->at = stop + (stop < l->end);
		l->number++;
		while (line < stop && is_line_blank(*line))
			line++;
		if (line == stop || *line == '#')
			continue;
		if (stop - line < TEXT_LEN || !decode_z85(line, ret_key))
			return -EINVAL;
		*ret_text = line;
		line += TEXT_LEN;
		if (line < stop && !is_line_blank(*line))
			return -EINVAL;
		while (line < stop && is_line_blank(*line))
			line++;
		return line == stop || *line == '#' ? 1 : -EINVAL;
	}
	return 0;
}

/* ---- reading ---- */

static const char *read_one_key(const char *data, size_t len, char ret_text[CURVE_TEXT])
{
	struct lines l = {.at = data, .end = data + len};
	unsigned char key[CURVE_KEY];
	const char *text = NULL, *more, *why = NULL;
	int r = next_key_line(&l, key, &text);

	if (r == 1 && next_key_line(&l, key, &more) != 0)
		why = "the secret key's file holds more than one key";
	else if (r != 1)
		why = "the secret key's file holds no key: 40 characters of Z85 on a line, as "
		      "pullet keygen writes them";
	else
		memcpy(ret_text, text, TEXT_LEN);
	ret_text[TEXT_LEN] = '\0';
	explicit_bzero(key, sizeof(key));
	return why;
}

int curve_read_secret(
	const struct sys *sys, const char *path, char ret_secret[CURVE_TEXT], const char **ret_why)
{
	char data[CURVE_MAX_SECRET_FILE + 1];
	const char *why;
	size_t len;
	int r = key_file_read_secret(sys, path, data, sizeof(data), &len, ret_why);

	if (r)
		return r;
	why = read_one_key(data, len, ret_secret);
	explicit_bzero(data, sizeof(data));
	if (!why)
		return 0;
	*ret_why = why;
	return -EINVAL;
}

/* ---- writing ---- */

int curve_write_pair(const struct sys *sys, const char *path, const char *public_key,
	const char *secret_key, char why[CURVE_WHY])
{
	char secret_text[256], public_text[128];
	int r;

	snprintf(secret_text, sizeof(secret_text),
		"# secret key of a pullet: let nobody read it\n# its public key is %s\n%s\n",
		public_key, secret_key);
	snprintf(public_text, sizeof(public_text), "# public key of a pullet\n%s\n", public_key);
	r = key_file_write_pair(sys, path, secret_text, public_text, why);
	explicit_bzero(secret_text, sizeof(secret_text));
	return r;
}

/* ---- lists ---- */

static int compare_curve_keys(const void *a, const void *b)
{
	return memcmp(a, b, CURVE_KEY);
}

/* The keys of a text, into a list that has room for all. 0, or -EINVAL and why. */
static int parse_allow(
	struct curve_allow *a, const char *path, const char *data, size_t len, char why[CURVE_WHY])
{
	struct lines l = {.at = data, .end = data + len};
	const char *text;
	int r;

	while ((r = next_key_line(&l, a->keys[a->count], &text)) == 1)
		a->count++;
	if (r)
		snprintf(why, CURVE_WHY,
			"the list %.300s: line %u is not a public key, which is 40 characters of "
			"Z85, and a comment behind a # if you like",
			path, l.number);
	else if (a->count == 0)
		snprintf(why, CURVE_WHY,
			"the list %.300s holds no public key: nobody could connect", path);
	if (r || a->count == 0)
		return -EINVAL;
	qsort(a->keys, a->count, CURVE_KEY, compare_curve_keys);
	return 0;
}

static int load_allow(
	const struct sys *sys, struct curve_allow *a, const char *path, char why[CURVE_WHY])
{
	char remedy[FILE_WHY];
	struct stat st;
	int fd = key_file_open(sys, path, &st, remedy);
	size_t size = fd >= 0 && st.st_size < CURVE_MAX_ALLOW ? (size_t)st.st_size + 1 : 0;
	ssize_t n = fd < 0 ? fd : size == 0 ? -EMSGSIZE : -ENOMEM;
	char *data = malloc(size + 1);

	a->keys = calloc(size / TEXT_LEN + 1, CURVE_KEY);
	if (size && data && a->keys)
		n = key_file_take(sys, fd, data, size); /* it grew meanwhile: too large */
	if (fd >= 0)
		sys->close(fd);
	if (n < 0)
		snprintf(why, CURVE_WHY, "the list %.150s cannot be read: %.300s", path,
			n == -EMSGSIZE ? "it is larger than 4 MiB, or grew meanwhile"
			: n == -EINVAL ? "it is not a regular file"
			: n == -EPERM  ? remedy
				       : strerror((int)-n));
	else
		n = parse_allow(a, path, data, (size_t)n, why);
	free(data);
	return (int)n;
}

static bool same_stat(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

int curve_allow_refresh(
	const struct sys *sys, struct curve_allow *a, const char *path, char why[CURVE_WHY])
{
	struct curve_allow fresh = {0};
	int r;

	/* before it is read: a change meanwhile is read next time */
	if (stat(path, &fresh.seen))
		memset(&fresh.seen, 0, sizeof(fresh.seen));
	if ((a->keys || fresh.seen.st_ino) && same_stat(&a->seen, &fresh.seen))
		return 0;
	r = load_allow(sys, &fresh, path, why);
	a->seen = fresh.seen;
	if (r) {
		curve_allow_fini(&fresh);
		return r;
	}
	free(a->keys);
	*a = fresh;
	return 1;
}

bool curve_allow_has(const struct curve_allow *a, const unsigned char key[CURVE_KEY])
{
	return a->count && bsearch(key, a->keys, a->count, CURVE_KEY, compare_curve_keys);
}

void curve_allow_fini(struct curve_allow *a)
{
	free(a->keys);
	*a = (struct curve_allow){0};
}
