/* The terminal, at the slave's side of a pair: its size, its modes, keys and frames. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/text/terminal.h"

#define ENTER "\033[?1049h\033[?25l\033[?7l"
#define LEAVE "\033[?7h\033[?25h\033[?1049l"

static int master = -1, slave = -1, saved[2];

/* Standard input and output are the terminal from here on. */
static int set_up(void **state)
{
	struct termios plain;

	(void)state;
	alarm(20);
	fflush(NULL);
	master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (master < 0 || grantpt(master) || unlockpt(master))
		return -1;
	slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
	tcgetattr(slave, &plain);
	plain.c_oflag &= ~(tcflag_t)OPOST; /* what is written is what comes */
	tcsetattr(slave, TCSANOW, &plain);
	for (int i = 0; i < 2; i++) {
		saved[i] = dup(i);
		dup2(slave, i);
	}
	return 0;
}

static void give_back(void)
{
	if (slave < 0)
		return;
	fflush(NULL);
	for (int i = 0; i < 2; i++) {
		dup2(saved[i], i);
		close(saved[i]);
	}
	close(slave);
	slave = -1;
}

static int tear_down(void **state)
{
	(void)state;
	terminal_leave();
	give_back();
	close(master);
	return 0;
}

static void assert_written(const char *expected)
{
	char text[4096];
	size_t len = strlen(expected), got = 0;
	int waiting = 0;

	while (got < len) {
		ssize_t n = read(master, text + got, len - got);

		assert_true(n > 0);
		got += (size_t)n;
	}
	text[got] = '\0';
	assert_string_equal(text, expected);
	assert_int_equal(ioctl(master, FIONREAD, &waiting), 0);
	assert_int_equal(waiting, 0);
}

static void resize(unsigned short columns, unsigned short rows)
{
	const struct winsize size = {.ws_col = columns, .ws_row = rows};

	assert_int_equal(ioctl(slave, TIOCSWINSZ, &size), 0);
}

static void size__is_that_of_the_output(void **state)
{
	size_t columns = 1, rows = 2;

	(void)state;
	resize(132, 43);
	assert_true(terminal_size(&columns, &rows));
	assert_int_equal(columns, 132);
	assert_int_equal(rows, 43);
	resize(0, 43);
	assert_false(terminal_size(&columns, &rows));
	resize(80, 0);
	assert_false(terminal_size(&columns, &rows));
	dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), 1);
	assert_false(terminal_size(&columns, &rows));
	assert_int_equal(columns, 132);
	assert_int_equal(rows, 43);
}

static void screen__is_taken_and_given_back(void **state)
{
	struct termios before, during, after;

	(void)state;
	terminal_leave(); /* nothing was taken */
	assert_int_equal(tcgetattr(slave, &before), 0);
	assert_int_equal(terminal_enter(), 0);
	assert_written(ENTER);
	assert_int_equal(tcgetattr(slave, &during), 0);
	assert_int_equal(during.c_lflag & (tcflag_t)(ICANON | ECHO), 0);
	assert_int_equal(during.c_lflag | (tcflag_t)(ICANON | ECHO), before.c_lflag);
	assert_int_equal(during.c_cc[VMIN], 1);
	assert_int_equal(during.c_cc[VTIME], 0);
	assert_int_equal(terminal_enter(), 0); /* as after a stop */
	assert_written(ENTER);
	terminal_leave();
	assert_written(LEAVE);
	assert_int_equal(tcgetattr(slave, &after), 0);
	assert_int_equal(after.c_lflag, before.c_lflag);
	assert_int_equal(after.c_cc[VMIN], before.c_cc[VMIN]);
	terminal_leave(); /* once */
	assert_written("");
}

static void keys__are_bytes_and_sequences(void **state)
{
	static const struct {
		const char *bytes;
		int keys[5];
		size_t count;
	} rows[] = {
		{"q", {'q'}, 1},
		{"qx\xff", {'q', 'x', 0xff}, 3},
		{"\033[A\033[B", {KEY_UP, KEY_DOWN}, 2},
		{"\033OA\033OB", {KEY_UP, KEY_DOWN}, 2},
		{"\033[5~\033[6~", {KEY_PAGE_UP, KEY_PAGE_DOWN}, 2},
		{"\033[H\033[F", {KEY_HOME, KEY_END}, 2},
		{"\033[1~\033[4~", {KEY_HOME, KEY_END}, 2},
		{"\033", {KEY_ESCAPE}, 1},
		{"\033[", {KEY_ESCAPE, '['}, 2},
		{"\033[5", {KEY_ESCAPE, '[', '5'}, 3},
	};
	int keys[TERMINAL_KEYS];

	(void)state;
	assert_int_equal(terminal_enter(), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t len = strlen(rows[i].bytes);

		assert_int_equal(write(master, rows[i].bytes, len), len);
		assert_int_equal(terminal_read(keys), rows[i].count);
		for (size_t k = 0; k < rows[i].count; k++)
			assert_int_equal(keys[k], rows[i].keys[k]);
	}
	dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), 0);
	assert_int_equal(terminal_read(keys), 0);
}

static void frame__clears_what_is_right_and_below(void **state)
{
	static const struct {
		const char *frame;
		size_t rows;
		const char *expected;
	} rows[] = {
		{"", 5, "\033[H"},
		{"a\n", 5, "\033[Ha\033[K\033[J"},
		{"a\nb\n", 5, "\033[Ha\033[K\r\nb\033[K\033[J"},
		{"a\nb\nc\n", 2, "\033[Ha\033[K\r\nb\033[K\033[J"},
		{"a\nb", 5, "\033[Ha\033[K\r\nb\033[K\033[J"},
		{"a\nb\n", 0, "\033[H"},
		{"a\nb\n", 1, "\033[Ha\033[K\033[J"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(
			terminal_draw(rows[i].frame, strlen(rows[i].frame), rows[i].rows), 0);
		assert_written(rows[i].expected);
	}
	dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), 1);
	assert_int_equal(terminal_draw("a\n", 2, 5), -EBADF);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(size__is_that_of_the_output),
		CASE(screen__is_taken_and_given_back),
		CASE(keys__are_bytes_and_sequences),
		CASE(frame__clears_what_is_right_and_below),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
