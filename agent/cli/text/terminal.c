/* The terminal. Surprising: a frame is drawn over the last one and goes out in one write, so that
 * nothing flickers; each line clears what is right of it, the last one what is below. */
#include "cli/text/terminal.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "lib/buffer.h"

#define MAX_FRAME (1u << 20)
#define ENTER "\033[?1049h\033[?25l\033[?7l" /* alternate screen, no cursor, no wrapping */
#define LEAVE "\033[?7h\033[?25h\033[?1049l"

static struct termios before;
static bool known, taken; /* `before` is what was found; it is ours now */

bool terminal_size(size_t *ret_columns, size_t *ret_rows)
{
	struct winsize size;

	if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_col ||
		!size.ws_row)
		return false;
	*ret_columns = size.ws_col;
	*ret_rows = size.ws_row;
	return true;
}

static int write_whole_text(const char *data, size_t len)
{
	while (len) {
		ssize_t n = write(STDOUT_FILENO, data, len);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			data += n;
			len -= (size_t)n;
		}
	}
	return 0;
}

int terminal_enter(void)
{
	struct termios raw;

	if (!known && tcgetattr(STDIN_FILENO, &before))
		return -errno;
	known = true;
	raw = before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	raw.c_cc[VMIN] = 1;
	raw.c_cc[VTIME] = 0;
	if (tcsetattr(STDIN_FILENO, TCSADRAIN, &raw))
		return -errno;
	taken = true;
	return write_whole_text(ENTER, sizeof(ENTER) - 1);
}

void terminal_leave(void)
{
	if (!taken)
		return;
	taken = false;
	write_whole_text(LEAVE, sizeof(LEAVE) - 1);
	tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
}

/* The key at the beginning of these bytes, and how many it takes. */
static int find_key(const char *bytes, size_t len, size_t *ret_len)
{
	static const struct {
		const char *bytes;
		int key;
	} table[] = {
		{"\033[A", KEY_UP}, {"\033[B", KEY_DOWN}, {"\033OA", KEY_UP}, {"\033OB", KEY_DOWN},
		{"\033[5~", KEY_PAGE_UP}, {"\033[6~", KEY_PAGE_DOWN}, {"\033[H", KEY_HOME},
		{"\033[F", KEY_END}, {"\033[1~", KEY_HOME}, {"\033[4~", KEY_END},
		{"\033", KEY_ESCAPE}, /* last: the others begin with it */
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		*ret_len = strlen(table[i].bytes);
		if (*ret_len <= len && memcmp(bytes, table[i].bytes, *ret_len) == 0)
			return table[i].key;
	}
	*ret_len = 1;
	return (unsigned char)bytes[0];
}

size_t terminal_read(int keys[TERMINAL_KEYS])
{
	char bytes[TERMINAL_KEYS];
	ssize_t n;
	size_t count = 0, len;

	do
		n = read(STDIN_FILENO, bytes, sizeof(bytes));
	while (n < 0 && errno == EINTR);
	for (ssize_t i = 0; i < n; i += (ssize_t)len)
		keys[count++] = find_key(bytes + i, (size_t)(n - i), &len);
	return count;
}

int terminal_draw(const char *frame, size_t len, size_t rows)
{
	struct buffer out;
	int r;

	buffer_init(&out, MAX_FRAME);
	buffer_append_string(&out, "\033[H");
	for (const char *end = frame + len; frame < end && rows; rows--) {
		const char *line_end = memchr(frame, '\n', (size_t)(end - frame));
		size_t n = (size_t)((line_end ? line_end : end) - frame);

		buffer_append(&out, frame, n);
		frame += n + 1;
		buffer_append_string(&out, frame < end && rows > 1 ? "\033[K\r\n" : "\033[K\033[J");
	}
	r = out.error ? out.error : write_whole_text(out.data, out.len);
	buffer_fini(&out);
	return r;
}
