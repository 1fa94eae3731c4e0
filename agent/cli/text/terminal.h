/*
 * The terminal that a program shows itself on: its size, and all of its screen with keys one by
 * one.
 *
 * Threads: one. Bounds: TERMINAL_KEYS keys a read. No curses: what is needed are six sequences that
 * every terminal of the last thirty years knows, and one more library to install would not make the
 * code shorter.
 */
#ifndef PULLET_CLI_TERMINAL_H
#define PULLET_CLI_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

#define TERMINAL_KEYS 64

/* Beside these a key is its byte. */
enum terminal_key {
	KEY_ESCAPE = 256,
	KEY_UP,
	KEY_DOWN,
	KEY_PAGE_UP,
	KEY_PAGE_DOWN,
	KEY_HOME,
	KEY_END
};

/* Of standard output; false when it is no terminal, or one without a size. */
bool terminal_size(size_t *ret_columns, size_t *ret_rows);
/* Takes all of the screen: the alternate one, no cursor, no echo, keys without a return. May be
 * called again, as after a stop. Standard input and output must be a terminal. 0 or -errno. */
int terminal_enter(void);
/* Gives everything back as it was; does nothing when nothing was taken. */
void terminal_leave(void);
/* Reads what keys were pressed. Their number; 0 = the terminal is gone. */
size_t terminal_read(int keys[TERMINAL_KEYS]);
/* Shows a frame: lines that end in a newline, from the top of the screen, at most `rows` of them. 0
 * or -errno. */
int terminal_draw(const char *frame, size_t len, size_t rows);

#endif
