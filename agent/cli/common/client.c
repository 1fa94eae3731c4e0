/* One request to the control socket. Surprising: it runs a loop and a transport of its own for the
 * one request, rather than having a second HTTP client in the house. */
#include "cli/common/client.h"

#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli/common/cli.h"
#include "cli/common/names.h"
#include "cli/common/shape.h"
#include "cli/text/words.h"
#include "settings/places.h"
#include "settings/settings.h"

#define TURN_MS 5000u  /* for a connection, while too many others want one */
#define MAX_PATH 8000u /* what the agent takes in one line, without "POST " and " HTTP/1.1" */

struct wait {
	struct loop *loop;
	struct client_answer *answer;
	enum http_client_result result;
	bool unsent; /* it did not come to a connection */
};

const char *client_runtime_dir(void)
{
	const char *dir = getenv("PULLET_RUNTIME_DIR");

	return dir && dir[0] ? dir : PULLET_RUNSTATEDIR "/pullet";
}

void client_choose_runtime_dir(void)
{
	char own[PLACES_PATH], socket[PLACES_PATH + 16];
	const char *given = getenv("PULLET_RUNTIME_DIR");

	if ((given && given[0]) || !places_own_runtime_dir(own) || access(own, X_OK))
		return;
	snprintf(socket, sizeof(socket), "%s/control.sock", own);
	if (access(socket, F_OK) == 0 || access(PULLET_RUNSTATEDIR "/pullet", X_OK))
		setenv("PULLET_RUNTIME_DIR", own, 1);
}

const char *client_default_socket(void)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/control.sock", client_runtime_dir());
	return path;
}

void client_init(struct client_answer *a)
{
	*a = (struct client_answer){0};
	buffer_init(&a->body, SHAPE_MAX_BYTES);
}

struct http_client_request client_request(
	const char *socket, const char *method, uint64_t timeout_ms)
{
	return (struct http_client_request){.unix_socket = socket,
		.method = method,
		.max_bytes = SHAPE_MAX_BYTES,
		.timeout_ms = timeout_ms,
		.connect_timeout_ms = 5000};
}

void client_take(struct client_answer *a, const struct http_client_response *response)
{
	struct document_error e;

	a->status = response->status;
	buffer_append(&a->body, response->body.data ? response->body.data : "", response->body.len);
	if (document_parse(DOCUMENT_JSON, a->body.data ? a->body.data : "", a->body.len,
		    DOCUMENT_OURS, &a->json, &e) == 0)
		a->error = node_text(document_root(a->json), "error", NULL);
}

#define ALLOWED 384

/* Who may use the socket: its group, or that of its directory if that is all one sees. */
static const char *describe_allowed(const char *socket, char text[ALLOWED])
{
	char path[256];
	char name[41];
	const struct group *g;
	struct stat st;
	size_t len;

	snprintf(path, sizeof(path), "%s", socket);
	len = strlen(path);
	while (len && stat(path, &st)) {
		while (len && path[len - 1] != '/')
			len--;
		if (len)
			path[--len] = '\0';
	}
	if (!len || st.st_gid == 0) {
		snprintf(text, ALLOWED, "only by root, as %s belongs to no other group",
			len ? path : socket);
		return text;
	}
	g = getgrgid(st.st_gid);
	if (g)
		snprintf(name, sizeof(name), "%s", g->gr_name);
	else
		snprintf(name, sizeof(name), "%u", (unsigned)st.st_gid);
	snprintf(text, ALLOWED,
		"only by root and the group %s: usermod -aG %s USER, then log in again", name,
		name);
	return text;
}

/* True for the socket of an agent that this user runs for themselves. */
static bool is_own_socket(const char *socket)
{
	char own[PLACES_PATH];

	return places_own_runtime_dir(own) && strncmp(socket, own, strlen(own)) == 0 &&
	       socket[strlen(own)] == '/';
}

const char *client_unreachable(const char *socket, char why[CLIENT_WHY])
{
	bool is_own = is_own_socket(socket);
	int error = access(socket, R_OK | W_OK) ? errno : 0;
	const char *configuration = getenv("PULLET_CONFIG");
	char who[ALLOWED];

	if (!configuration || !strchr(configuration, '/'))
		configuration = SETTINGS_DEFAULT_PATH;
	if (error == EACCES)
		snprintf(why, CLIENT_WHY, "the control socket %s may not be used by this user: %s",
			socket, describe_allowed(socket, who));
	else if (error && error != ENOENT)
		snprintf(why, CLIENT_WHY, "no agent answers at %s: %s", socket, strerror(error));
	else if (error && !is_own && !strcmp(socket, client_default_socket()) &&
		 (getenv("PULLET_CONFIG") || !getenv("PULLET_RUNTIME_DIR")) &&
		 settings_is_untouched(configuration)) /* else it is of another agent */
		snprintf(why, CLIENT_WHY,
			"no agent answers at %s: nothing is configured in %.*s: add a config to "
			"%s, and start it (systemctl start pullet)",
			socket, (int)(strrchr(configuration, '/') - configuration), configuration,
			configuration);
	else
		snprintf(why, CLIENT_WHY, "no agent answers at %s: start it (%s)%s", socket,
			is_own ? "pulletd" : "systemctl start pullet",
			error ? ", or name its socket with --socket, its runtime_dir in "
				"PULLET_RUNTIME_DIR"
			      : "");
	return why;
}

int client_connect(const char *path, const struct timeval *patience)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd, r;

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if ((!patience || !setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, patience, sizeof(*patience))) &&
		!connect(fd, (const struct sockaddr *)&address, sizeof(address)))
		return fd;
	r = -errno;
	close(fd);
	return r;
}

/* Where too many wait to be accepted, libcurl's connect() fails at once (EAGAIN): this one waits
 * for its turn. True: somebody listens there, and there was room just now. */
static bool wait_for_listener(const char *path)
{
	static const struct timeval patience = {.tv_sec = TURN_MS / 1000};
	int fd = client_connect(path, &patience);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void request_answered(void *arg, struct http_client_response *response)
{
	struct wait *w = arg;

	w->result = response->result;
	w->unsent =
		w->result != HTTP_CLIENT_OK && w->result != HTTP_CLIENT_TIMEOUT && !response->sent;
	if (w->result == HTTP_CLIENT_OK)
		client_take(w->answer, response);
	loop_stop(w->loop);
}

static int exchange_with_agent(struct wait *w, const struct http_client_request *request)
{
	struct http_client *t;
	struct transfer *transfer;
	int r = -1;

	w->loop = loop_new(&sys_real);
	t = w->loop ? http_client_new(w->loop) : NULL;
	if (t)
		r = http_client_start(t, request, request_answered, w, &transfer);
	if (r == 0)
		r = loop_run(w->loop);
	http_client_free(t);
	loop_free(w->loop);
	return r;
}

static void append_url_escaped(struct buffer *out, const char *text)
{
	for (; *text; text++)
		if (strchr("-._~", *text) || (*text >= '0' && *text <= '9') ||
			((*text | 0x20) >= 'a' && (*text | 0x20) <= 'z'))
			buffer_append(out, text, 1);
		else
			buffer_printf(out, "%%%02X", (unsigned char)*text);
}

void client_path(struct buffer *path, const char *config, const char *verb)
{
	buffer_init(path, MAX_PATH);
	buffer_append_string(path, "/v1/configs/");
	append_url_escaped(path, config);
	buffer_append_string(path, verb);
}

void client_query(struct buffer *path, const char *name, const char *value)
{
	if (!value)
		return;
	buffer_printf(path, "%c%s=", path->data && strchr(path->data, '?') ? '&' : '?', name);
	append_url_escaped(path, value);
}

void client_query_number(struct buffer *path, const char *name, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	client_query(path, name, text);
}

/* Says nothing. 0 and the answer, or what became of the request; -1: it could not be made. */
static int fetch_answer(const char *socket, const char *method, const char *path,
	uint64_t timeout_ms, struct client_answer *a, enum http_client_result *ret_result)
{
	struct wait w = {.answer = a};
	struct http_client_request request = client_request(socket, method, timeout_ms);
	uint64_t end_ms;
	char *url;
	int r;

	client_init(a);
	if (asprintf(&url, "http://localhost%s", path) < 0)
		return -1;
	request.url = url;
	request.max_bytes = shape_max_bytes(method, path);
	end_ms = sys_real.now_ms() + TURN_MS;
	do
		r = exchange_with_agent(&w, &request);
	while (r == 0 && w.unsent && sys_real.now_ms() < end_ms && wait_for_listener(socket));
	free(url);
	a->fits = shape_fits(method, path, a->status, document_root(a->json));
	*ret_result = w.result;
	return r;
}

int client_ask(const char *command, const char *socket, const char *method, const char *path,
	uint64_t timeout_ms, struct client_answer *a)
{
	enum http_client_result result;
	char why[CLIENT_WHY];

	if (fetch_answer(socket, method, path, timeout_ms, a, &result))
		return cli_error(CLI_FAILED, command, "out of memory or descriptors");
	if (result == HTTP_CLIENT_TIMEOUT)
		return cli_error(CLI_TIMED_OUT, command,
			strcmp(command, "pullet doctor") == 0
				? "the agent did not answer in time"
				: "the agent did not answer in time: `pullet doctor` says why");
	if (result == HTTP_CLIENT_TOO_LARGE)
		return cli_error(CLI_FAILED, command, "the agent's answer is too large");
	if (result != HTTP_CLIENT_OK)
		return cli_error(CLI_UNREACHABLE, command, "%s", client_unreachable(socket, why));
	return CLI_OK;
}

/* Prints the agent's sentence, which may have more than one line. */
static int print_agent_error(int code, const char *command, const char *before, const char *error)
{
	struct buffer clean;

	buffer_init(&clean, 1u << 20);
	words_lines(&clean, error ? error : "it gives no reason");
	cli_error(code, command, "%s%s", before, clean.data ? clean.data : "");
	buffer_fini(&clean);
	return code;
}

int client_unreadable(const char *command)
{
	return cli_error(CLI_FAILED, command,
		"the agent's answer cannot be read: see whether pulletd is of the same version");
}

bool client_is_busy(const struct client_answer *a)
{
	return a->status == 503 && a->error;
}

int client_exit_code(const char *command, const struct client_answer *a)
{
	static const struct {
		long status;
		int code;
	} table[] = {{200, CLI_OK}, {202, CLI_OK}, {400, CLI_USAGE}, {404, CLI_NOT_FOUND},
		{409, CLI_FAILED}, {504, CLI_TIMED_OUT}};
	char status[48];

	if (client_is_busy(a))
		return print_agent_error(CLI_BUSY, command, "the agent is busy: ", a->error);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].status == a->status)
			return table[i].code != CLI_OK
				       ? print_agent_error(table[i].code, command, "", a->error)
			       : a->fits ? CLI_OK
					 : client_unreadable(command);
	snprintf(status, sizeof(status), "the agent answered %ld: ", a->status);
	return print_agent_error(CLI_FAILED, command, status, a->error);
}

/* True, and why is told: the agent's status has configs, but none of that name. */
static bool is_unknown_config(
	const struct client_answer *status, const char *config, struct buffer *why)
{
	const struct node *configs = node_find(document_root(status->json), "configs");
	char hint[NAMES_HINT];
	struct names names;

	names_init(&names, config);
	for (const struct node *c = configs ? configs->first : NULL; c; c = c->next) {
		const char *name = node_text(c, "name", "");

		if (strcmp(name, config) == 0)
			return false;
		names_add(&names, name);
	}
	buffer_printf(
		why, "there is no config of that name, '%s': %s", config, names_hint(&names, hint));
	return configs && !why->error;
}

int client_config_code(
	const char *command, const char *socket, const char *config, const struct client_answer *a)
{
	struct client_answer status;
	enum http_client_result result;
	struct buffer why;
	int r;

	if (a->status != 404)
		return client_exit_code(command, a);
	buffer_init(&why, 1u << 16);
	if (fetch_answer(socket, "GET", "/v1/status", 10000, &status, &result) == 0 &&
		result == HTTP_CLIENT_OK && is_unknown_config(&status, config, &why))
		r = print_agent_error(CLI_NOT_FOUND, command, "", why.data);
	else
		r = client_exit_code(command, a);
	buffer_fini(&why);
	client_fini(&status);
	return r;
}

void client_fini(struct client_answer *a)
{
	document_free(a->json);
	buffer_fini(&a->body);
}
