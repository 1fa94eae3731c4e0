/*
 * Secret files to header lines. Surprising: one newline at the end of a file is not part of the
 * secret (editors put it there); any other control character is rejected: it would end the header
 * and begin another.
 */
#include "pull/credentials.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "crypto/base64.h"
#include "base/log.h"
#include "files/trusted.h"

static const char *secret_fault(const struct buffer *b)
{
	if (b->len == 0)
		return "is empty";
	for (size_t i = 0; i < b->len; i++)
		if ((unsigned char)b->data[i] < 0x20 || b->data[i] == 0x7f)
			return "holds a control character or a second line";
	return NULL;
}

static void wipe_secret(char *text)
{
	if (text)
		explicit_bzero(text, strlen(text));
	free(text);
}

/* NULL: out of memory. asprintf() would leave a copy of the secret in memory that it frees. */
static char *join_secret(const char *begin, const char *between, const char *secret, size_t len)
{
	size_t size = strlen(begin) + strlen(between) + len + 1;
	char *text = malloc(size);

	if (text)
		snprintf(text, size, "%s%s%.*s", begin, between, (int)len, secret);
	return text;
}

/* Reads a secret and puts it behind a prefix. 0 and *ret_text (the caller's), or -errno and why. */
static int read_secret(const struct sys *sys, const char *path, const char *prefix, char **ret_text,
	char why[FILE_WHY])
{
	char remedy[FILE_WHY];
	const char *fault;
	struct buffer b;
	int r;

	buffer_init(&b, SETTINGS_MAX_SECRET + 1);
	r = trusted_read(sys, path, &b, remedy);
	if (r) {
		snprintf(why, FILE_WHY, "the secret %.150s cannot be read: %.320s", path,
			r == -EMSGSIZE ? "it is larger than 8 KiB" : remedy);
		goto out;
	}
	if (b.len && b.data[b.len - 1] == '\n')
		b.len--;
	if (b.len && b.data[b.len - 1] == '\r')
		b.len--;
	fault = secret_fault(&b);
	if (fault) {
		snprintf(why, FILE_WHY,
			"the secret %.300s %s: put the secret alone into it, on one line", path,
			fault);
		r = -EINVAL;
		goto out;
	}
	*ret_text = join_secret(prefix, "", b.data, b.len);
	if (!*ret_text) {
		r = -ENOMEM;
		snprintf(why, FILE_WHY, "out of memory");
	}
out:
	if (b.data)
		explicit_bzero(b.data, b.cap);
	buffer_fini(&b);
	return r;
}

static int add_header_line(const struct sys *sys, const struct settings_header *h,
	struct credentials *c, char why[FILE_WHY])
{
	char prefix[80], *line = NULL;
	int r = 0;

	snprintf(prefix, sizeof(prefix), "%s: ", h->name);
	if (h->file) {
		r = read_secret(sys, h->file, prefix, &line, why);
	} else if (!(line = join_secret(prefix, "", h->value, strlen(h->value)))) {
		snprintf(why, FILE_WHY, "out of memory");
		r = -ENOMEM;
	}
	if (r == 0)
		c->lines[c->count++] = line;
	return r;
}

int credentials_read(const struct sys *sys, const struct settings_server *server,
	struct credentials *c, char why[FILE_WHY])
{
	int r = 0;

	*c = (struct credentials){.user = server->user};
	if (server->password_file)
		r = read_secret(sys, server->password_file, "", &c->password, why);
	if (r == 0 && server->secret_file)
		r = read_secret(sys, server->secret_file, "", &c->secret, why);
	if (r == 0 && server->session_token_file)
		r = read_secret(sys, server->session_token_file, "", &c->session_token, why);
	if (r == 0 && server->bearer_file) {
		r = read_secret(sys, server->bearer_file, "Authorization: Bearer ",
			&c->lines[c->count], why);
		c->count += r == 0;
	}
	for (size_t i = 0; r == 0 && i < server->header_count; i++)
		r = add_header_line(sys, &server->headers[i], c, why);
	if (r)
		credentials_fini(c);
	return r;
}

int credentials_check_tls(const struct settings_server *server, char why[FILE_WHY])
{
	const struct {
		const char *key, *path;
	} files[] = {
		{"tls.ca", server->ca},
		{"tls.crl", server->crl},
		{"tls.cert", server->cert},
		{"tls.key", server->key},
	};
	char remedy[FILE_REMEDY];

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		int error;

		if (!files[i].path || faccessat(AT_FDCWD, files[i].path, R_OK, AT_EACCESS) == 0)
			continue;
		error = errno;
		file_remedy(remedy, error, true);
		snprintf(why, FILE_WHY, "%.200s: %s cannot be read: %s", files[i].path,
			files[i].key, remedy);
		return -error;
	}
	return 0;
}

static void warn_if_open(const struct settings_server *server, const char *path)
{
	struct stat st;

	if (path && stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_mode & 0006)
		log_warn("any user of this host can read or replace the secret: chmod o-rw it, and "
			 "make a new one if it was open for long",
			"server", server->name, "file", path);
}

void credentials_warn(const struct settings_server *server)
{
	const char *paths[] = {server->bearer_file, server->password_file, server->secret_file,
		server->session_token_file, server->key};

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		warn_if_open(server, paths[i]);
	for (size_t i = 0; i < server->header_count; i++)
		warn_if_open(server, server->headers[i].file);
}

/* Marks each byte to cover: all secrets are searched before any is covered, since one may overlap
 * another. */
struct cover {
	const char *data;
	size_t len;
	bool *covered;
};

static void cover_text(struct cover *c, const char *secret)
{
	const size_t n = secret ? strlen(secret) : 0;
	const char *from = c->data, *end = c->data + c->len, *at;

	while (n && (at = memmem(from, (size_t)(end - from), secret, n))) {
		memset(c->covered + (at - c->data), true, n);
		from = at + 1;
	}
}

/* Covers the value of a header, with and without its scheme. */
static void cover_header(struct cover *c, const char *line)
{
	static const char authorization[] = "authorization: ", bearer[] = "Bearer ";
	const char *value = strstr(line, ": ") + 2, *space = strchr(value, ' '),
		   *name = strcasestr(line, authorization);
	bool has_scheme = (name && name + sizeof(authorization) - 1 == value) ||
			  strncasecmp(value, bearer, sizeof(bearer) - 1) == 0;

	cover_text(c, value);
	cover_text(c, has_scheme && space ? space + 1 : NULL);
}

/* Covers user and password as basic authentication sends them. False: out of memory. */
static bool cover_basic(struct cover *c, const char *user, const char *password)
{
	struct buffer encoded;
	char *both = join_secret(user, ":", password, strlen(password));
	bool good;

	buffer_init(&encoded, 4 * SETTINGS_MAX_SECRET);
	good = both && base64_append(&encoded, both, strlen(both)) == 0;
	if (good)
		cover_text(c, encoded.data);
	wipe_secret(both);
	if (encoded.data)
		explicit_bzero(encoded.data, encoded.cap);
	buffer_fini(&encoded);
	return good;
}

void credentials_hide(
	const struct credentials *c, const char *token, const char *query, char *data, size_t len)
{
	const char *texts[] = {c->password, c->secret, c->session_token, token, query};
	struct cover cover = {.data = data, .len = len, .covered = calloc(len, sizeof(bool))};
	bool good = cover.covered;

	if (good && c->user && c->password)
		good = cover_basic(&cover, c->user, c->password);
	for (size_t i = 0; good && i < c->count; i++)
		cover_header(&cover, c->lines[i]);
	for (size_t i = 0; good && i < sizeof(texts) / sizeof(texts[0]); i++)
		cover_text(&cover, texts[i]);
	for (size_t i = 0; i < len; i++)
		if (!good || cover.covered[i])
			data[i] = '*';
	free(cover.covered);
}

void credentials_fini(struct credentials *c)
{
	for (size_t i = 0; i < c->count; i++)
		wipe_secret(c->lines[i]);
	wipe_secret(c->password);
	wipe_secret(c->secret);
	wipe_secret(c->session_token);
	*c = (struct credentials){0};
}
