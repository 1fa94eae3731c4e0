/*
 * One request to the agent's control socket, waited for.
 *
 * Threads: one. Ownership: client_fini() frees the answer.
 */
#ifndef PULLET_CLI_CLIENT_H
#define PULLET_CLI_CLIENT_H

#include <stdint.h>
#include <sys/time.h>

#include "document/document.h"
#include "http/client.h"

#define CLIENT_WHY 512

struct client_answer {
	long status; /* HTTP */
	struct buffer body;
	struct document *json; /* the body, or NULL when it is none */
	const char *error;     /* its "error" member, or NULL */
	bool fits;             /* after client_ask(): shape_fits(), for 200 and 202 */
};

/* $PULLET_RUNTIME_DIR, or where it is without that. */
const char *client_runtime_dir(void);
/* For an ordinary user whose own agent runs, or who may not enter the host's directory: sets
 * PULLET_RUNTIME_DIR to the own agent's, for libpullet and what is executed, unless it is set. */
void client_choose_runtime_dir(void);
/* The socket's path when no --socket is given: control.sock in there. Static memory. */
const char *client_default_socket(void);
/* Begins a path: "/v1/configs/CONFIG", and what follows, with what needs it escaped. */
void client_path(struct buffer *path, const char *config, const char *verb);
/* Appends a parameter to a path; value NULL appends nothing. */
void client_query(struct buffer *path, const char *name, const char *value);
void client_query_number(struct buffer *path, const char *name, uint64_t value);
/* Asks; method GET or POST. CLI_OK and the answer (whatever its status), or CLI_UNREACHABLE or
 * CLI_FAILED with its sentence printed. */
int client_ask(const char *command, const char *socket, const char *method, const char *path,
	uint64_t timeout_ms, struct client_answer *ret_answer);
/* The code for an answer of no meaning, with its sentence printed. */
int client_unreadable(const char *command);
/* The agent has no place for this user now, or no memory. */
bool client_is_busy(const struct client_answer *a);
/* The exit code that an answer's status stands for; prints its error, if it is one. */
int client_exit_code(const char *command, const struct client_answer *a);
/* The same for an answer about one config: if the agent has none of that name, says which was
 * meant. */
int client_config_code(
	const char *command, const char *socket, const char *config, const struct client_answer *a);
/* The pieces of client_ask(), for who has a loop: a request without its url, whose host does not
 * matter; an empty answer; what came, put into it; the sentence for what did not. */
struct http_client_request client_request(
	const char *socket, const char *method, uint64_t timeout_ms);
void client_init(struct client_answer *a);
void client_take(struct client_answer *a, const struct http_client_response *response);
/* Connects to a socket; with `patience`, waits so long for a place in its queue. The descriptor, or
 * -errno. */
int client_connect(const char *socket, const struct timeval *patience);
const char *client_unreachable(const char *socket, char why[CLIENT_WHY]);
void client_fini(struct client_answer *a);

#endif
