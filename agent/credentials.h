/*
 * The secrets of a server, read from their files for one request: a token or password that is
 * replaced on the disk is used from the next pull on.
 *
 * Threads: the loop's; the files are small and local, reading them does not wait. Ownership:
 * credentials_fini() wipes and frees what credentials_read() made. Bounds: a secret is at most
 * SETTINGS_MAX_SECRET bytes; there are at most SETTINGS_MAX_HEADERS + 1 lines.
 */
#ifndef PULLET_CREDENTIALS_H
#define PULLET_CREDENTIALS_H

#include "file.h"
#include "settings.h"

#define CREDENTIALS_LINES (SETTINGS_MAX_HEADERS + 1)

struct credentials {
	char *lines[CREDENTIALS_LINES]; /* "Name: value" */
	size_t count;
	const char *user; /* of the settings; NULL = no basic authentication */
	char *password;
	char *secret, *session_token; /* of the access key; NULL = none */
};

/* 0, or -errno with a sentence that names the file and holds no secret. */
int credentials_read(const struct sys *sys, const struct settings_server *server,
	struct credentials *ret_credentials, char why[FILE_WHY]);
/* Covers them with asterisks in what a server answered: some send back what they were sent, and
 * their words are quoted to operators. Does not find what the server wrote in another way. */
void credentials_hide(const struct credentials *c, char *data, size_t len);
/* The same for one text; NULL or "" is none. */
void credentials_hide_text(const char *secret, char *data, size_t len);
/* Logs a warning for each of the server's secret files that any user of this host can read or
 * write; it is used all the same. A file that is not there is told when it is read. */
void credentials_warn(const struct settings_server *server);
/* Accepts a zeroed struct. */
void credentials_fini(struct credentials *c);

#endif
