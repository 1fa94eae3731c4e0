/* pullet top: what `pullet status` says, live. Surprising: one request at a time is under way, in
 * the loop, so that keys work while the agent hangs; what it said last stays on the screen. */
#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/common/cli.h"
#include "cli/common/shape.h"
#include "cli/text/terminal.h"
#include "cli/status/screen.h"

#define MIN_INTERVAL_MS 100u
#define PATIENCE_MS 2000u /* beyond the interval: then the agent counts as gone */
#define STATUS_PATH "/v1/status"
#define MAX_FRAME (64u << 20)

struct options {
	const char *command, *socket;
	uint64_t interval_ms, frames; /* frames: 0 = no end */
	bool batch;
};

struct top {
	struct options options;
	struct loop *loop;
	struct http_client *transport;
	struct transfer *transfer; /* NULL = none is under way */
	struct loop_timer tick;
	struct loop_watch input;
	struct client_answer answer; /* the last good one; json NULL = none yet */
	struct screen view;
	uint64_t asked_ms, heard_ms, looks;
	int result;
};

static void usage(FILE *out)
{
	fputs("Usage: pullet top [--interval DURATION] [-n N] [--batch] [--socket PATH]\n"
	      "Shows live what 'pullet status' says.\n\n"
	      "      --interval DURATION  between two looks (default 1s, at least 100ms)\n"
	      "  -n, --number N           end after N looks\n"
	      "  -b, --batch              print each look, one after the other, instead of taking "
	      "the screen\n"
	      "      --socket PATH        the agent's control socket (default "
	      "$PULLET_RUNTIME_DIR/control.sock)\n\n"
	      "Keys: q ends, s changes the order, / filters by name, state or error (Esc ends "
	      "that), "
	      "arrows, PgUp, PgDn, Home and End scroll.\n",
		out);
}

/* ---- the screen ---- */

static void stop(struct top *t, int result)
{
	t->result = result;
	loop_stop(t->loop);
}

/* A frame on the screen, as often as something changes. */
static void draw(struct top *t)
{
	size_t columns = 80, rows = 24;
	struct buffer out;

	if (t->options.batch)
		return;
	terminal_size(&columns, &rows);
	buffer_init(&out, MAX_FRAME);
	t->view.heard_ago_ms = (int64_t)(loop_now_ms(t->loop) - t->heard_ms);
	screen_frame(&t->view, columns, rows, show_colours(), true, &out);
	if (out.len && terminal_draw(out.data, out.len, rows))
		stop(t, CLI_FAILED); /* nobody looks any more */
	buffer_fini(&out);
}

static void print(struct top *t)
{
	struct buffer out;

	buffer_init(&out, MAX_FRAME);
	if (t->looks)
		buffer_append_string(&out, "\n");
	t->view.heard_ago_ms = (int64_t)(loop_now_ms(t->loop) - t->heard_ms);
	screen_frame(&t->view, WRAP_ENDLESS, WRAP_ENDLESS, false, false, &out);
	if (cli_output(t->options.command, &out))
		stop(t, CLI_FAILED);
	buffer_fini(&out);
}

/* ---- the agent ---- */

/* The same agent as before, so that its counters can be compared. */
static bool is_same(const struct node *a, const struct node *b)
{
	return a && b && client_number(a, "started_ms", 0) == client_number(b, "started_ms", 0) &&
	       client_number(a, "pid", 0) == client_number(b, "pid", 0);
}

/* Takes an answer. One that is none leaves on the screen what was there. */
static void take(struct top *t, struct client_answer *a)
{
	const struct node *root = a->json ? document_root(a->json) : NULL;
	uint64_t now_ms = loop_now_ms(t->loop), since_ms = now_ms - t->heard_ms;
	struct screen *v = &t->view;
	struct show s;

	v->gone = a->status != 200 || !shape_fits("GET", STATUS_PATH, 200, root) ||
		  show_read(root, &s);
	if (v->gone) {
		snprintf(v->why, sizeof(v->why), "the agent answered %ld: %s", a->status,
			a->error ? a->error : "the answer cannot be read");
		client_fini(a);
		return;
	}
	v->rate = is_same(root, v->show.root) && since_ms && s.runs >= v->show.runs
			  ? (s.runs - v->show.runs) * 1000000 / (int64_t)since_ms
			  : -1;
	t->heard_ms = now_ms;
	show_fini(&v->show);
	client_fini(&t->answer);
	t->answer = *a;
	v->show = s;
	screen_sort(v);
}

static void finish_look(struct top *t)
{
	uint64_t now_ms = loop_now_ms(t->loop), due_ms = t->asked_ms + t->options.interval_ms;

	if (t->options.batch)
		print(t);
	else
		draw(t);
	t->looks++;
	if (t->options.frames && t->looks >= t->options.frames)
		stop(t, t->view.gone ? CLI_UNREACHABLE : CLI_OK);
	loop_timer_set(t->loop, &t->tick, due_ms > now_ms ? due_ms : now_ms);
}

static void answered(void *arg, struct http_client_response *response)
{
	struct top *t = arg;
	struct client_answer a;

	t->transfer = NULL;
	if (response->result == HTTP_CLIENT_OK) {
		client_init(&a);
		client_take(&a, response);
		take(t, &a);
	} else {
		t->view.gone = true;
		if (response->result == HTTP_CLIENT_TIMEOUT)
			snprintf(t->view.why, sizeof(t->view.why),
				"the agent does not answer at %s", t->options.socket);
		else
			client_unreachable(t->options.socket, t->view.why);
	}
	finish_look(t);
}

static void ask(void *arg)
{
	struct top *t = arg;
	struct http_client_request request =
		client_request(t->options.socket, "GET", t->options.interval_ms + PATIENCE_MS);

	request.url = "http://localhost" STATUS_PATH;
	t->asked_ms = loop_now_ms(t->loop);
	if (http_client_start(t->transport, &request, answered, t, &t->transfer))
		stop(t, cli_error(CLI_FAILED, t->options.command, "out of memory or descriptors"));
}

/* ---- keys ---- */

static void pressed(void *arg, int fd, unsigned events)
{
	struct top *t = arg;
	int keys[TERMINAL_KEYS];
	size_t n = terminal_read(keys);

	(void)fd;
	(void)events;
	if (n == 0)
		stop(t, CLI_FAILED);
	for (size_t i = 0; i < n; i++)
		if (!screen_press(&t->view, keys[i]))
			stop(t, CLI_OK);
	draw(t);
}

/* ---- signals ---- */

static void ended(void *arg, int signal)
{
	(void)signal;
	stop(arg, CLI_OK);
}

static void stopped(void *arg, int signal)
{
	(void)arg;
	(void)signal;
	terminal_leave();
	raise(SIGSTOP); /* SIGTSTP itself is taken by the loop; SIGCONT then draws again */
}

static void redraw(void *arg, int signal)
{
	struct top *t = arg;

	if (signal == SIGCONT && terminal_enter())
		stop(t, CLI_FAILED);
	draw(t);
}

static int take_signals(struct top *t)
{
	static const struct {
		int signal;
		void (*handle)(void *arg, int signal);
	} table[] = {{SIGTERM, ended}, {SIGINT, ended}, {SIGQUIT, ended}, {SIGHUP, ended},
		{SIGTSTP, stopped}, {SIGCONT, redraw}, {SIGWINCH, redraw}};
	size_t n = t->options.batch ? 2 : sizeof(table) / sizeof(table[0]);

	for (size_t i = 0; i < n; i++)
		if (loop_on_signal(t->loop, table[i].signal, table[i].handle, t))
			return -1;
	return 0;
}

/* ---- all of it ---- */

static int run(struct top *t)
{
	t->loop = loop_new(&sys_real);
	t->transport = t->loop ? http_client_new(t->loop) : NULL;
	if (!t->transport || take_signals(t))
		return cli_error(CLI_FAILED, t->options.command, "out of memory or descriptors");
	if (!t->options.batch && (terminal_enter() || loop_watch(t->loop, &t->input, STDIN_FILENO,
							      LOOP_READ, pressed, t)))
		return cli_error(CLI_FAILED, t->options.command,
			"this terminal cannot be used: %s; --batch needs none", strerror(errno));
	loop_timer_init(&t->tick, ask, t);
	draw(t);
	ask(t);
	loop_run(t->loop);
	return t->result;
}

static int top(const struct options *o)
{
	struct top t = {.options = *o, .view = {.rate = -1}};
	int r = run(&t);

	terminal_leave();
	if (t.input.event)
		loop_unwatch(&t.input);
	if (t.transport)
		http_client_free(t.transport);
	loop_free(t.loop);
	show_fini(&t.view.show);
	client_fini(&t.answer);
	return r;
}

static int read_number(const char *command, const char *text, uint64_t *ret)
{
	char *end;

	errno = 0;
	*ret = strtoull(text, &end, 10);
	if (errno || *end || !isdigit((unsigned char)text[0]) || *ret == 0)
		return cli_error(CLI_USAGE, command, "-n takes a number from 1 on, not '%s'", text);
	return CLI_OK;
}

int cli_top(int argc, char **argv)
{
	enum { SOCKET = 256, INTERVAL };
	static const struct option longs[] = {
		{"interval", required_argument, NULL, INTERVAL},
		{"number", required_argument, NULL, 'n'},
		{"batch", no_argument, NULL, 'b'},
		{"socket", required_argument, NULL, SOCKET},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	struct options o = {
		.command = argv[0], .socket = client_default_socket(), .interval_ms = 1000};
	int opt, r = CLI_OK;

	while (r == CLI_OK && (opt = getopt_long(argc, argv, "n:bh", longs, NULL)) != -1) {
		if (opt == 'h')
			return usage(stdout), CLI_OK;
		if (opt == 'b')
			o.batch = true;
		else if (opt == 'n')
			r = read_number(argv[0], optarg, &o.frames);
		else if (opt == SOCKET)
			o.socket = optarg;
		else if (opt == INTERVAL)
			r = cli_duration(argv[0], "--interval", optarg, &o.interval_ms);
		else
			r = cli_bad_option(argv[0]);
	}
	if (r)
		return r;
	if (optind < argc)
		return cli_miscounted(argv[0], usage, argc, argv, 0);
	if (o.interval_ms < MIN_INTERVAL_MS)
		return cli_error(CLI_USAGE, argv[0], "--interval takes at least 100ms");
	if (!o.batch && !(isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)))
		return cli_error(CLI_USAGE, argv[0],
			"this is no terminal: --batch -n 1 prints one look, and needs none");
	return top(&o);
}
