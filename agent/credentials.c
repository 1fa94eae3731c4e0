/*
 * Secret files to header lines. Surprising: one newline at the end of a file is not part of the
 * secret (editors put it there); any other control character is refused, for it would end the
 * header and begin another.
 */
#include "credentials.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *fault_of(const struct buffer *b)
{
	if (b->len == 0)
		return "is empty";
	for (size_t i = 0; i < b->len; i++)
		if ((unsigned char)b->data[i] < 0x20 || b->data[i] == 0x7f)
			return "holds a control character or a second line";
	return NULL;
}

static void wipe(char *text)
{
	if (text)
		explicit_bzero(text, strlen(text));
	free(text);
}

/* The file's secret behind a prefix. 0 and *ret_text (the caller's), or -errno and why. */
static int read_secret(const struct sys *sys, const char *path, const char *prefix, char **ret_text,
	char why[FILE_WHY])
{
	const char *fault;
	struct buffer b;
	int r;

	buffer_init(&b, SETTINGS_MAX_SECRET + 1);
	r = file_read(sys, AT_FDCWD, path, &b);
	if (r) {
		snprintf(why, FILE_WHY, "the file %.300s cannot be read: %s", path,
			r == -EMSGSIZE ? "it is larger than 8 KiB" : strerror(-r));
		goto out;
	}
	if (b.len && b.data[b.len - 1] == '\n')
		b.len--;
	if (b.len && b.data[b.len - 1] == '\r')
		b.len--;
	fault = fault_of(&b);
	if (fault) {
		snprintf(why, FILE_WHY, "the file %.300s %s", path, fault);
		r = -EINVAL;
		goto out;
	}
	if (asprintf(ret_text, "%s%.*s", prefix, (int)b.len, b.data) < 0) {
		*ret_text = NULL;
		r = -ENOMEM;
		snprintf(why, FILE_WHY, "out of memory");
	}
out:
	if (b.data)
		explicit_bzero(b.data, b.cap);
	buffer_fini(&b);
	return r;
}

static int add_header(const struct sys *sys, const struct settings_header *h, struct credentials *c,
	char why[FILE_WHY])
{
	char prefix[80], *line = NULL;
	int r = 0;

	snprintf(prefix, sizeof(prefix), "%s: ", h->name);
	if (h->file) {
		r = read_secret(sys, h->file, prefix, &line, why);
	} else if (asprintf(&line, "%s%s", prefix, h->value) < 0) {
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
		r = add_header(sys, &server->headers[i], c, why);
	if (r)
		credentials_fini(c);
	return r;
}

void credentials_fini(struct credentials *c)
{
	for (size_t i = 0; i < c->count; i++)
		wipe(c->lines[i]);
	wipe(c->password);
	wipe(c->secret);
	wipe(c->session_token);
	*c = (struct credentials){0};
}
