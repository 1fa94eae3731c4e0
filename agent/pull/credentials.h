/*
 * The secrets of a server, read from their files for one request: a token or password that is
 * replaced on the disk is used from the next pull on.
 *
 * Threads: the loop's; the files are small and local, reading them does not wait. Ownership:
 * credentials_fini() wipes and frees them. Bounds: a secret is at most
 * SETTINGS_MAX_SECRET bytes; there are at most SETTINGS_MAX_HEADERS + 1 lines.
 */
#ifndef PULLET_CREDENTIALS_H
#define PULLET_CREDENTIALS_H

#include "files/file.h"
#include "settings/settings.h"

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
/* Covers the secrets with asterisks in an answer, as well as the token and the query that were sent
 * (NULL or "" = none): some servers send them back, and their words are quoted to operators. Does
 * not find a secret in another encoding. Covers everything when there is no memory. */
void credentials_hide(
	const struct credentials *c, const char *token, const char *query, char *data, size_t len);
/* Checks that the files of the server's tls: can be read: 0, or -errno with a sentence about the
 * first that cannot. libcurl reads them, for each connection, and says less. */
int credentials_check_tls(const struct settings_server *server, char why[FILE_WHY]);
/* Logs a warning for each of the server's secret files that any user of this host can read or
 * write; it is used all the same. A missing file is reported when it is read. */
void credentials_warn(const struct settings_server *server);
/* Accepts a zeroed struct. */
void credentials_fini(struct credentials *c);

#endif
