/* `pullet top`: frames in a pipe and on a terminal, keys, an agent that goes away. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <termios.h>

#include <cmocka.h>

#include "cli/common/cli.h"
#include "cli/status/screen.h"
#include "cli/text/terminal.h"
#include "tests/unit/fixture/beside.h"

#define BESIDE(run, act, ...) beside_run(run, act, (const char *const[]){__VA_ARGS__, NULL})

#define STATUS                                                                                     \
	"{\"version\":\"0.1.0\",\"host\":\"h1\",\"pid\":7,\"uptime_ms\":60000,\"configuration\":{" \
	"},"                                                                                       \
	"\"push\":[{\"state\":\"connected\",\"endpoint\":\"tcp://p\"}],\"configs\":["              \
	"{\"name\":\"alpha\",\"state\":\"ok\",\"generation\":3,\"age_ms\":5000,"                   \
	"\"next_pull_in_ms\":900,\"rejections\":2,\"runs\":{\"success\":10,\"timeouts\":1}},"      \
	"{\"name\":\"beta\",\"state\":\"stale\",\"generation\":1,\"age_ms\":900000,"               \
	"\"next_pull_in_ms\":100,\"last_error\":\"no route\",\"cause\":\"unreachable\","           \
	"\"runs\":{\"success\":2,\"failed\":7,\"timeouts\":4}}]}"

static struct document *document;
static struct screen view;
static char screen_text[65536];

static int set_up(void **state)
{
	(void)state;
	alarm(30);
	played_open();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	played_close();
	return 0;
}

/* ---- the command ---- */

static void batch__prints_as_many_frames_as_wanted(void **state)
{
	(void)state;
	played_answers("GET /v1/status", 200, STATUS);
	RUN(cli_top, "pullet top", "-b", "-n", "2", "--interval", "100ms");
	assert_ended(CLI_OK,
		"pulletd 0.1.0 on h1, pid 7, up 60s\n"
		"2 configs: 1 ok, 1 stale; the worst is beta (stale)\n"
		"pulls: 24, timed out: 5, failed: 7, rejected: 2; push: 1 of 1 connected\n"
		"CONFIG  STATE  GEN  AGE  NEXT   RUNS  TIMEOUTS  REJECTED  LAST ERROR\n"
		"beta    stale  1    15m  100ms  13    4         0         unreachable: no route\n"
		"alpha   ok     3    5s   900ms  11    1         2\n"
		"\n"
		"pulletd 0.1.0 on h1, pid 7, up 60s\n"
		"2 configs: 1 ok, 1 stale; the worst is beta (stale)\n"
		"pulls: 24 (0.0/s), timed out: 5, failed: 7, rejected: 2; push: 1 of 1 connected\n"
		"CONFIG  STATE  GEN  AGE  NEXT   RUNS  TIMEOUTS  REJECTED  LAST ERROR\n"
		"beta    stale  1    15m  100ms  13    4         0         unreachable: no route\n"
		"alpha   ok     3    5s   900ms  11    1         2\n",
		"");
}

static int ending; /* the signal */

static void end_by_signal(int printed)
{
	char byte;

	if (read(printed, &byte, 1) == 1) /* it runs */
		kill(getppid(), ending);
	while (read(printed, &byte, 1) == 1)
		;
	_exit(0);
}

static void batch__ends_by_a_signal(void **state)
{
	static const int signals[] = {SIGINT, SIGTERM};
	pid_t agent;

	(void)state;
	played_answers("GET /v1/status", 200, STATUS);
	agent = played_fork();
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		ending = signals[i];
		command.peer = end_by_signal;
		RUN(cli_top, "pullet top", "--batch");
		assert_int_equal(command.code, CLI_OK);
	}
	kill(agent, SIGKILL);
	waitpid(agent, NULL, 0);
}

static void batch__of_no_agent__says_so_and_exits_3(void **state)
{
	(void)state;
	played_stop();
	RUN(cli_top, "pullet top", "-b", "-n", "1");
	assert_int_equal(command.code, CLI_UNREACHABLE);
	assert_shows(command.out, "trying again: no agent answers at ");
}

static void batch__of_an_invalid_answer__says_its_status(void **state)
{
	(void)state;
	played_answers("GET /v1/status", 500, "{\"error\":\"out of memory\"}");
	RUN(cli_top, "pullet top", "-b", "-n", "1");
	assert_int_equal(command.code, CLI_UNREACHABLE);
	assert_string_equal(command.out, "trying again: the agent answered 500: out of memory\n");
	played_answers("GET /v1/status", 200, "{}");
	RUN(cli_top, "pullet top", "-b", "-n", "1");
	assert_string_equal(command.out, "trying again: the agent answered 200: invalid answer\n");
}

static void top__without_a_terminal__names_the_other_way(void **state)
{
	(void)state;
	RUN(cli_top, "pullet top");
	assert_ended(CLI_USAGE, "",
		"pullet top: this is no terminal: --batch -n 1 prints one frame, and needs none\n");
	assert_int_equal(RUN(cli_top, "pullet top", "--interval", "1ms"), CLI_USAGE);
	assert_shows(command.err, "--interval takes at least 100ms, not '1ms'");
	assert_int_equal(RUN(cli_top, "pullet top", "-n", "0"), CLI_USAGE);
	assert_shows(command.err, "--number takes a number from 1 on, not '0'");
	RUN(cli_top, "pullet top", "--help");
	assert_ended(CLI_OK,
		"Usage: pullet top [--interval DURATION] [-n N] [--batch] [--socket PATH]\n"
		"Shows what 'pullet status' shows, live.\n"
		"\n"
		"      --interval DURATION  between two requests (default 1s, at least 100ms)\n"
		"  -n, --number N           end after N requests\n"
		"  -b, --batch              print each frame, one after the other, instead of "
		"taking the screen\n"
		"      --socket PATH        the agent's control socket (default "
		"$PULLET_RUNTIME_DIR/control.sock)\n"
		"\n"
		"Keys: q ends, s changes the order, / filters by name, state or error (Esc ends "
		"that),\n"
		"arrows, PgUp, PgDn, Home and End scroll.\n",
		"");
}

static int terminal = -1;

/* Closes the terminal; what it showed until then. */
static void read_terminal(int master, char *text, size_t size)
{
	size_t len = 0;
	ssize_t n;

	close(terminal);
	while ((n = read(master, text + len, size - 1 - len)) > 0)
		len += (size_t)n;
	text[len] = '\0';
	close(master);
}

/* Runs it on the terminal in place of the redirected streams. */
static int run_on_terminal(int argc, char **argv)
{
	dup2(terminal, 0);
	dup2(terminal, 1);
	return cli_top(argc, argv);
}

static void top__on_a_terminal__takes_the_screen_and_gives_it_back(void **state)
{
	const struct winsize size = {.ws_col = 100, .ws_row = 20};
	char text[32768];
	int master;

	(void)state;
	assert_int_equal(openpty(&master, &terminal, NULL, NULL, &size), 0);
	played_answers("GET /v1/status", 200, STATUS);
	setenv("TERM", "xterm", 1);
	unsetenv("NO_COLOR");
	RUN(run_on_terminal, "pullet top", "-n", "1");
	assert_int_equal(command.code, CLI_OK);
	read_terminal(master, text, sizeof(text));
	assert_int_equal(strncmp(text, "\033[?1049h", 8), 0);
	assert_shows(text, "asking the agent");
	assert_shows(text, "pulletd 0.1.0 on h1");
	assert_shows(text, "\033[31mstale\033[0m");
	assert_shows(text, "q quit   s order: state");
	assert_shows(text, "\033[?1049l");
}

static void top__ends_at_q(void **state)
{
	const struct winsize size = {.ws_col = 100, .ws_row = 20};
	char text[32768];
	int master;

	(void)state;
	assert_int_equal(openpty(&master, &terminal, NULL, NULL, &size), 0);
	played_answers("GET /v1/status", AGENT_HANGS, "");
	assert_int_equal(write(master, "sq\n", 3), 3);
	RUN(run_on_terminal, "pullet top");
	assert_int_equal(command.code, CLI_OK);
	read_terminal(master, text, sizeof(text));
	assert_shows(text, "s order: name");
}

/* ---- its signals ---- */

static int far_end;
static int ended_by;
static struct termios found; /* the terminal, as it is before */

/* Reads the terminal until this text has come; what is behind it is for the next call. */
static void await_on_terminal(const char *words)
{
	size_t len = strlen(screen_text), size = sizeof(screen_text) - 1;
	char *found_at;
	ssize_t n;

	while (!(found_at = strstr(screen_text, words)) &&
		(n = read(far_end, screen_text + len, size - len)) > 0) {
		len += (size_t)n;
		screen_text[len] = '\0';
	}
	assert_shows(screen_text, words);
	found_at += strlen(words);
	memmove(screen_text, found_at, strlen(found_at) + 1);
}

static bool is_as_found(void)
{
	struct termios now;

	assert_int_equal(tcgetattr(terminal, &now), 0);
	return now.c_lflag == found.c_lflag;
}

static void open_terminal(void)
{
	const struct winsize size = {.ws_col = 100, .ws_row = 20};

	assert_int_equal(openpty(&far_end, &terminal, NULL, NULL, &size), 0);
	assert_int_equal(tcgetattr(terminal, &found), 0);
	setenv("TERM", "xterm", 1);
	screen_text[0] = '\0';
}

static void close_terminal(void)
{
	close(terminal);
	close(far_end);
}

static void end_it(void)
{
	await_on_terminal("2 configs");
	assert_false(is_as_found());
	beside_signal(ended_by);
	await_on_terminal("\033[?1049l");
}

static void screen__is_given_back_at_the_signals_that_end_it(void **state)
{
	static const int signals[] = {SIGTERM, SIGINT, SIGQUIT, SIGHUP};

	(void)state;
	played_answers("GET /v1/status", 200, STATUS);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		open_terminal();
		ended_by = signals[i];
		BESIDE(run_on_terminal, end_it, "pullet top");
		assert_int_equal(command.code, CLI_OK);
		assert_true(is_as_found());
		close_terminal();
	}
}

/* The shell gets the terminal as it was, and what is drawn afterwards fits a window that has
 * another size by then. */
static void stop_and_continue_it(void)
{
	const struct winsize narrow = {.ws_col = 20, .ws_row = 20};
	int status;

	await_on_terminal("2 configs: 1 ok, 1 stale; the worst is beta");
	beside_signal(SIGTSTP);
	await_on_terminal("\033[?1049l");
	assert_int_equal(waitpid(beside.pid, &status, WUNTRACED), beside.pid);
	assert_true(WIFSTOPPED(status));
	assert_true(is_as_found());
	beside_signal(SIGCONT);
	await_on_terminal("\033[?1049h");
	await_on_terminal("2 configs: 1 ok, 1 stale; the worst is beta");
	assert_false(is_as_found());
	assert_int_equal(ioctl(terminal, TIOCSWINSZ, &narrow), 0);
	beside_signal(SIGWINCH);
	await_on_terminal("2 configs: 1 ok, ...");
	beside_signal(SIGTERM);
	await_on_terminal("\033[?1049l");
}

static void top__that_is_stopped__gives_the_screen_back_until_it_goes_on(void **state)
{
	(void)state;
	played_answers("GET /v1/status", 200, STATUS);
	open_terminal();
	BESIDE(run_on_terminal, stop_and_continue_it, "pullet top", "--interval", "1h");
	assert_int_equal(command.code, CLI_OK);
	assert_true(is_as_found());
	close_terminal();
}

/* ---- the screen ---- */

static int open_screen(void **state)
{
	struct document_error e;

	(void)state;
	assert_int_equal(
		document_parse(DOCUMENT_JSON, STATUS, strlen(STATUS), DOCUMENT_OURS, &document, &e),
		0);
	view = (struct screen){.rate = 1500};
	assert_int_equal(show_read(document_root(document), &view.show), 0);
	screen_sort(&view);
	return 0;
}

static int close_screen(void **state)
{
	(void)state;
	show_fini(&view.show);
	document_free(document);
	return 0;
}

static const char *draw(size_t width, size_t rows)
{
	static char text[65536];
	struct buffer out;

	buffer_init(&out, sizeof(text));
	screen_frame(&view, width, rows, false, true, &out);
	snprintf(text, sizeof(text), "%s", out.data ? out.data : "");
	buffer_fini(&out);
	return text;
}

static void press(const char *keys)
{
	for (; *keys; keys++)
		assert_true(screen_press(&view, (unsigned char)*keys));
}

static bool is_above(const char *a, const char *b)
{
	const char *text = draw(WRAP_ENDLESS, WRAP_ENDLESS);

	return strstr(text, a) && strstr(text, b) && strstr(text, a) < strstr(text, b);
}

static void s__goes_through_all_orders(void **state)
{
	static const struct {
		const char *order;
		bool alpha_first;
	} orders[] = {{"name", true}, {"age", false}, {"next", false}, {"runs", false},
		{"timeouts", false}, {"rejected", true}, {"state", false}};
	char shown[64];

	(void)state;
	for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
		press("s");
		snprintf(shown, sizeof(shown), "s order: %s ", orders[i].order);
		assert_shows(draw(WRAP_ENDLESS, WRAP_ENDLESS), shown);
		assert_int_equal(is_above("\nalpha", "\nbeta"), orders[i].alpha_first);
	}
}

static void filter__shows_what_has_it_in_name_state_or_error(void **state)
{
	(void)state;
	press("/ROUT");
	assert_shows(draw(WRAP_ENDLESS, WRAP_ENDLESS), "filter: ROUT_   Enter keeps it");
	press("E\r");
	assert_shows(draw(WRAP_ENDLESS, WRAP_ENDLESS), "filter: ROUTE   q quit");
	assert_null(strstr(draw(WRAP_ENDLESS, WRAP_ENDLESS), "\nalpha"));
	assert_shows(draw(WRAP_ENDLESS, WRAP_ENDLESS), "\nbeta");
	screen_press(&view, KEY_ESCAPE);
	assert_shows(draw(WRAP_ENDLESS, WRAP_ENDLESS), "\nalpha");
	press("/al\x7f\x7f\x7f\xc3\xa9\b");
	assert_string_equal(view.filter, "");
	press("x");
	screen_press(&view, KEY_ESCAPE);
	assert_string_equal(view.filter, "");
	assert_false(view.typing);
	press("/e\r");
	assert_shows(draw(WRAP_ENDLESS, WRAP_ENDLESS), "filter: e   q quit");
}

static void arrows__scroll_and_stop_at_the_ends(void **state)
{
	(void)state;
	draw(100, 7); /* four lines of head, the table's head, one row */
	assert_int_equal(view.page, 2);
	draw(100, 6);
	assert_int_equal(view.page, 1);
	assert_shows(draw(100, 6), "\nbeta");
	screen_press(&view, KEY_DOWN);
	assert_shows(draw(100, 6), "\nalpha");
	press("jj ");
	screen_press(&view, KEY_PAGE_DOWN);
	screen_press(&view, KEY_END);
	assert_shows(draw(100, 6), "\nalpha");
	screen_press(&view, KEY_UP);
	assert_shows(draw(100, 6), "\nbeta");
	press("kk");
	screen_press(&view, KEY_HOME);
	assert_int_equal(view.scroll, 0);
	assert_false(screen_press(&view, 'q'));
}

#define HEAD                                                                                       \
	"pulletd 0.1.0 on h1, pid 7, up 60s\n"                                                     \
	"2 configs: 1 ok, 1 stale; the worst is beta (stale)\n"

static void frame__has_a_row_for_each_config(void **state)
{
	static const char expected[] = HEAD
		"pulls: 24 (1.5/s), timed out: 5, failed: 7, rejected: 2; push: 1 of 1 connected\n"
		"q quit   s order: state   / filter   arrows, PgUp, PgDn scroll\n"
		"CONFIG  STATE  GEN  AGE  NEXT   RUNS  TIMEOUTS  REJECTED  LAST ERROR\n"
		"beta    stale  1    15m  100ms  13    4         0         unreachable: no route\n"
		"alpha   ok     3    5s   900ms  11    1         2\n";

	(void)state;
	assert_string_equal(draw(WRAP_ENDLESS, WRAP_ENDLESS), expected);
	assert_string_equal(draw(79, 20), expected);
	assert_string_equal(draw(79, 7), expected);
}

static void narrow__leaves_columns_out_and_cuts_the_rest(void **state)
{
	(void)state;
	/* a column less than the table wants */
	assert_string_equal(draw(78, 20), HEAD
		"pulls: 24 (1.5/s), timed out: 5, failed: 7, rejected: 2; push: 1 of 1 conne...\n"
		"q quit   s order: state   / filter   arrows, PgUp, PgDn scroll\n"
		"CONFIG  STATE  GEN  AGE  NEXT   RUNS  TIMEOUTS  LAST ERROR\n"
		"beta    stale  1    15m  100ms  13    4         unreachable: no route\n"
		"alpha   ok     3    5s   900ms  11    1\n");
	assert_string_equal(draw(60, 20),
		HEAD "pulls: 24 (1.5/s), timed out: 5, failed: 7, rejected: 2; ...\n"
		     "q quit   s order: state   / filter   arrows, PgUp, PgDn s...\n"
		     "CONFIG  STATE  GEN  AGE  NEXT   RUNS  LAST ERROR\n"
		     "beta    stale  1    15m  100ms  13    unreachable: no route\n"
		     "alpha   ok     3    5s   900ms  11\n");
	assert_string_equal(draw(40, 20), "pulletd 0.1.0 on h1, pid 7, up 60s\n"
					  "2 configs: 1 ok, 1 stale; the worst i...\n"
					  "pulls: 24 (1.5/s), timed out: 5, fail...\n"
					  "q quit   s order: state   / filter   ...\n"
					  "CONFIG  STATE  AGE  NEXT   LAST ERROR\n"
					  "beta    stale  15m  100ms  unreachabl...\n"
					  "alpha   ok     5s   900ms\n");
	assert_string_equal(draw(20, 20), "pulletd 0.1.0 on ...\n"
					  "2 configs: 1 ok, ...\n"
					  "pulls: 24 (1.5/s)...\n"
					  "q quit   s order:...\n"
					  "CONFIG  STATE  AGE\n"
					  "beta    stale  15m\n"
					  "alpha   ok     5s\n");
	assert_string_equal(draw(10, 20), "pulletd...\n"
					  "2 confi...\n"
					  "pulls: ...\n"
					  "q quit ...\n"
					  "CONFIG  ..\n"
					  "beta    ..\n"
					  "alpha   ok\n");
}

static void gone__keeps_the_last_answer(void **state)
{
	(void)state;
	view.gone = true;
	view.heard_ago_ms = 4000;
	snprintf(view.why, sizeof(view.why), "it is dead");
	assert_shows(
		draw(WRAP_ENDLESS, WRAP_ENDLESS), "no answer for 4s, trying again: it is dead\n");
	assert_shows(draw(WRAP_ENDLESS, WRAP_ENDLESS), "\nalpha");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define SCREEN(name) cmocka_unit_test_setup_teardown(name, open_screen, close_screen)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(batch__prints_as_many_frames_as_wanted),
		CASE(batch__ends_by_a_signal),
		CASE(batch__of_no_agent__says_so_and_exits_3),
		CASE(batch__of_an_invalid_answer__says_its_status),
		CASE(top__without_a_terminal__names_the_other_way),
		CASE(top__on_a_terminal__takes_the_screen_and_gives_it_back),
		CASE(top__ends_at_q),
		CASE(screen__is_given_back_at_the_signals_that_end_it),
		CASE(top__that_is_stopped__gives_the_screen_back_until_it_goes_on),
		SCREEN(s__goes_through_all_orders),
		SCREEN(filter__shows_what_has_it_in_name_state_or_error),
		SCREEN(arrows__scroll_and_stop_at_the_ends),
		SCREEN(frame__has_a_row_for_each_config),
		SCREEN(narrow__leaves_columns_out_and_cuts_the_rest),
		SCREEN(gone__keeps_the_last_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
