/*
 * The monitor's paths, a table. Surprising: a page of somebody else's in a browser on this host
 * could read the metrics by a name of its own (DNS rebinding): so the name is checked, as the
 * agent's listener does.
 */
#include "cli/relay/monitor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/relay/relay_metrics.h"
#include "httpd/host_header.h"
#include "httpd/server.h"
#include "text/exposition.h"
#include "text/json_writer.h"

#define MAX_ANSWER (8u << 20) /* of names as long as a command line can have */
#define PLAIN "text/plain; charset=utf-8"

struct monitor {
	const struct relay_view *view;
	char *const *names;
	struct httpd *httpd;
};

static void deny_path(struct httpd_request *r, int status, const char *sentence)
{
	struct buffer b;

	buffer_init(&b, 4096);
	json_writer_begin_object(&b, NULL);
	json_writer_text(&b, "error", sentence);
	json_writer_end_object(&b);
	buffer_append_string(&b, "\n");
	httpd_reply(r, status, "application/json", b.data ? b.data : "", b.len);
	buffer_fini(&b);
}

static void answer_live(struct monitor *m, struct httpd_request *r)
{
	(void)m;
	httpd_reply(r, 200, PLAIN, "ok\n", 3);
}

static void answer_ready(struct monitor *m, struct httpd_request *r)
{
	struct buffer b;
	bool ready;

	buffer_init(&b, MAX_ANSWER);
	ready = relay_metrics_ready(m->view, httpd_query(r, "verbose") != NULL, &b);
	httpd_reply(r, ready ? 200 : 503, PLAIN, b.data ? b.data : "", b.len);
	buffer_fini(&b);
}

static void answer_metrics(struct monitor *m, struct httpd_request *r)
{
	bool open = exposition_is_open(httpd_header(r, "Accept"));
	struct buffer b;
	int e;

	buffer_init(&b, MAX_ANSWER);
	e = relay_metrics_write(m->view, open, &b);
	if (e)
		deny_path(r, 500, strerror(-e));
	else
		httpd_reply(r, 200, exposition_type(open), b.data, b.len);
	buffer_fini(&b);
}

static const struct {
	const char *path;
	void (*answer)(struct monitor *m, struct httpd_request *r);
} paths[] = {
	{"/metrics", answer_metrics},
	{"/livez", answer_live},
	{"/healthz", answer_live},
	{"/readyz", answer_ready},
};

static void answer_path(void *arg, struct httpd_request *r)
{
	struct monitor *m = arg;
	enum httpd_method method = httpd_method(r);
	const char *host = httpd_header(r, "Host");
	size_t i = 0;

	httpd_add_header(r, "Cache-Control", "no-store");
	httpd_add_header(r, "Cross-Origin-Resource-Policy", "same-origin");
	httpd_add_header(r, "X-Content-Type-Options", "nosniff");
	while (i < sizeof(paths) / sizeof(paths[0]) && strcmp(paths[i].path, httpd_path(r)) != 0)
		i++;
	if (!host) {
		deny_path(r, 400, "the request has no Host header: HTTP wants one");
	} else if (!host_header_is_this_machines(host, m->names)) {
		deny_path(r, 421,
			"this host does not have the requested name: use its address, or name it "
			"with --listen-name");
	} else if (i == sizeof(paths) / sizeof(paths[0])) {
		deny_path(r, 404,
			"there is nothing at this path: there are /metrics, /livez, /healthz and "
			"/readyz");
	} else if (method != HTTPD_GET && method != HTTPD_HEAD) {
		httpd_add_header(r, "Allow", "GET, HEAD");
		deny_path(r, 405, "this path does not take that method");
	} else {
		paths[i].answer(m, r);
	}
}

int monitor_open(const struct relay_view *view, const char *address, char *const *names,
	struct monitor **ret_monitor)
{
	struct monitor *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return -ENOMEM;
	m->view = view;
	m->names = names;
	m->httpd = httpd_open_tcp(view->loop, address, answer_path, m);
	if (m->httpd) {
		*ret_monitor = m;
		return 0;
	}
	r = -errno;
	free(m);
	return r;
}

int monitor_port(const struct monitor *m)
{
	return httpd_port(m->httpd);
}

void monitor_close(struct monitor *m)
{
	if (!m)
		return;
	httpd_close(m->httpd);
	free(m);
}
