/* pullet top: what `pullet status` shows, live. Surprising: one request at a time runs in the loop,
 * so that keys work while the agent hangs; its last answer stays on the screen. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/common/cli.h"
#include "cli/common/options.h"
#include "cli/common/shape.h"
#include "cli/text/terminal.h"
#include "cli/status/screen.h"

#define MIN_INTERVAL_MS 100u
#define PATIENCE_MS 2000u /* beyond the interval, until the agent counts as gone */
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
	uint64_t asked_ms, heard_ms, frames_shown;
	int result;
};

static const struct option_row top_rows[] = {
	{"interval", "DURATION", "between two requests (default 1s, at least 100ms)",
		OPTION_DURATION, .at = offsetof(struct options, interval_ms),
		.min = MIN_INTERVAL_MS, .takes = "at least 100ms"},
	{"number", "N", "end after N requests", OPTION_NUMBER,
		.at = offsetof(struct options, frames), .letter = 'n', .min = 1,
		.takes = "a number from 1 on"},
	{"batch", NULL, "print each frame, one after the other, instead of taking the screen",
		OPTION_FLAG, .at = offsetof(struct options, batch), .letter = 'b'},
	OPTION_ROW_SOCKET(struct options),
	{0},
};

static const struct command_line top_line = {
	.usage = "Usage: pullet top [--interval DURATION] [-n N] [--batch] [--socket PATH]\n"
		 "Shows what 'pullet status' shows, live.\n",
	.rows = top_rows,
	.tail = "Keys: q ends, s changes the order, / filters by name, state or error (Esc ends "
		"that),\narrows, PgUp, PgDn, Home and End scroll.\n",
};

/* ---- the screen ---- */

static void stop_top(struct top *t, int result)
{
	if (t->result == CLI_OK)
		t->result = result; /* the first one: what could not be printed is no success */
	loop_stop(t->loop);
}

static void draw_frame(struct top *t)
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
		stop_top(t, CLI_FAILED); /* the terminal is gone */
	buffer_fini(&out);
}

static void print_frame(struct top *t)
{
	struct buffer out;

	buffer_init(&out, MAX_FRAME);
	if (t->frames_shown)
		buffer_append_string(&out, "\n");
	t->view.heard_ago_ms = (int64_t)(loop_now_ms(t->loop) - t->heard_ms);
	screen_frame(&t->view, WRAP_ENDLESS, WRAP_ENDLESS, false, false, &out);
	if (cli_output(t->options.command, &out))
		stop_top(t, CLI_FAILED);
	buffer_fini(&out);
}

/* ---- the agent ---- */

/* The same agent as before, so that its counters can be compared. */
static bool is_same_agent(const struct node *a, const struct node *b)
{
	return a && b && node_integer(a, "started_ms", 0) == node_integer(b, "started_ms", 0) &&
	       node_integer(a, "pid", 0) == node_integer(b, "pid", 0);
}

/* Takes an answer. An invalid one leaves the screen as it was. */
static void take_answer(struct top *t, struct client_answer *a)
{
	const struct node *root = document_root(a->json);
	uint64_t now_ms = loop_now_ms(t->loop), since_ms = now_ms - t->heard_ms;
	struct screen *v = &t->view;
	struct show s;

	v->gone = a->status != 200 || !shape_fits("GET", STATUS_PATH, 200, root) ||
		  show_read(root, &s);
	if (v->gone) {
		snprintf(v->why, sizeof(v->why), "the agent answered %ld: %s", a->status,
			a->error ? a->error : "invalid answer");
		client_fini(a);
		return;
	}
	v->rate = is_same_agent(root, v->show.root) && since_ms && s.runs >= v->show.runs
			  ? (s.runs - v->show.runs) * 1000000 / (int64_t)since_ms
			  : -1;
	t->heard_ms = now_ms;
	show_fini(&v->show);
	client_fini(&t->answer);
	t->answer = *a;
	v->show = s;
	screen_sort(v);
}

static void finish_frame(struct top *t)
{
	uint64_t now_ms = loop_now_ms(t->loop), due_ms = t->asked_ms + t->options.interval_ms;

	if (t->options.batch)
		print_frame(t);
	else
		draw_frame(t);
	t->frames_shown++;
	if (t->options.frames && t->frames_shown >= t->options.frames)
		stop_top(t, t->view.gone ? CLI_UNREACHABLE : CLI_OK);
	loop_timer_set(t->loop, &t->tick, due_ms > now_ms ? due_ms : now_ms);
}

static void status_answered(void *arg, struct http_client_response *response)
{
	struct top *t = arg;
	struct client_answer a;

	t->transfer = NULL;
	if (response->result == HTTP_CLIENT_OK) {
		client_init(&a);
		client_take(&a, response);
		take_answer(t, &a);
	} else {
		t->view.gone = true;
		if (response->result == HTTP_CLIENT_TIMEOUT)
			snprintf(t->view.why, sizeof(t->view.why),
				"the agent does not answer at %s", t->options.socket);
		else
			client_unreachable(t->options.socket, t->view.why);
	}
	finish_frame(t);
}

static void ask_agent(void *arg)
{
	struct top *t = arg;
	struct http_client_request request =
		client_request(t->options.socket, "GET", t->options.interval_ms + PATIENCE_MS);

	request.url = "http://localhost" STATUS_PATH;
	t->asked_ms = loop_now_ms(t->loop);
	if (http_client_start(t->transport, &request, status_answered, t, &t->transfer))
		stop_top(t,
			cli_error(CLI_FAILED, t->options.command, "out of memory or descriptors"));
}

/* ---- keys ---- */

static void keys_pressed(void *arg, int fd, unsigned events)
{
	struct top *t = arg;
	int keys[TERMINAL_KEYS];
	size_t n = terminal_read(keys);

	(void)fd;
	(void)events;
	if (n == 0)
		stop_top(t, CLI_FAILED);
	for (size_t i = 0; i < n; i++)
		if (!screen_press(&t->view, keys[i]))
			stop_top(t, CLI_OK);
	draw_frame(t);
}

/* ---- signals ---- */

static void top_ended(void *arg, int signal)
{
	(void)signal;
	stop_top(arg, CLI_OK);
}

static void top_stopped(void *arg, int signal)
{
	(void)arg;
	(void)signal;
	terminal_leave();
	raise(SIGSTOP); /* the loop took SIGTSTP; SIGCONT draws again */
}

static void draw_again(void *arg, int signal)
{
	struct top *t = arg;

	if (signal == SIGCONT && terminal_enter())
		stop_top(t, CLI_FAILED);
	draw_frame(t);
}

static int register_signals(struct top *t)
{
	static const struct {
		int signal;
		void (*handle)(void *arg, int signal);
	} table[] = {{SIGTERM, top_ended}, {SIGINT, top_ended}, {SIGQUIT, top_ended},
		{SIGHUP, top_ended}, {SIGTSTP, top_stopped}, {SIGCONT, draw_again},
		{SIGWINCH, draw_again}};
	size_t n = t->options.batch ? 2 : sizeof(table) / sizeof(table[0]);

	for (size_t i = 0; i < n; i++)
		if (loop_on_signal(t->loop, table[i].signal, table[i].handle, t))
			return -1;
	return 0;
}

/* ---- the command ---- */

static int run_loop(struct top *t)
{
	t->loop = loop_new(&sys_real);
	t->transport = t->loop ? http_client_new(t->loop) : NULL;
	if (!t->transport || register_signals(t))
		return cli_error(CLI_FAILED, t->options.command, "out of memory or descriptors");
	if (!t->options.batch && (terminal_enter() || loop_watch(t->loop, &t->input, STDIN_FILENO,
							      LOOP_READ, keys_pressed, t)))
		return cli_error(CLI_FAILED, t->options.command,
			"this terminal cannot be used: %s; --batch needs none", strerror(errno));
	loop_timer_init(&t->tick, ask_agent, t);
	draw_frame(t);
	ask_agent(t);
	loop_run(t->loop);
	return t->result;
}

static int run_top(const struct options *o)
{
	struct top t = {.options = *o, .view = {.rate = -1}};
	int r = run_loop(&t);

	terminal_leave();
	if (t.input.event)
		loop_unwatch(&t.input);
	http_client_free(t.transport);
	loop_free(t.loop);
	show_fini(&t.view.show);
	client_fini(&t.answer);
	return r;
}

int cli_top(int argc, char **argv)
{
	struct options o = {
		.command = argv[0], .socket = client_default_socket(), .interval_ms = 1000};
	int r = options_read(&top_line, argc, argv, &o);

	if (r >= 0)
		return r;
	if (!o.batch && !(isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)))
		return cli_error(CLI_USAGE, argv[0],
			"this is no terminal: --batch -n 1 prints one frame, and needs none");
	return run_top(&o);
}
