"""A terminal for tests: a pseudo-terminal with a program on it, and the screen that its output makes."""
import fcntl
import os
import re
import select
import struct
import subprocess
import termios
import time
import unicodedata

import harness

SEQUENCE = re.compile('\x1b\\[([?0-9;]*)([A-Za-z])|\r|\n|.', re.S)


def width(char):
    return 0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in 'WF' else 1


class Screen:
    """What a terminal of that size shows. Whatever is written beside it or wraps is a mistake, kept in `bad`; after a change of the
    size, of the last frame only: the one before may still be for the old size."""

    def __init__(self, columns, rows, resized=False):
        self.columns, self.rows, self.bad, self.resized = columns, rows, [], resized
        self.alternate, self.cursor, self.lines, self.column, self.row = False, True, [''] * rows, 0, 0

    def feed(self, text):
        for m in SEQUENCE.finditer(text):
            char = m[0]
            if char == '\r':
                self.column = 0
            elif char == '\n':
                self.row += 1
                if self.row >= len(self.lines):
                    self.lines.append('')
                    if self.alternate:
                        self.bad.append('it scrolls')
            elif m[2]:
                self.control(m[1], m[2])
            elif char < ' ' or '\x7f' <= char < '\xa0':
                self.bad.append(repr(char))
            else:
                self.put(char)

    def put(self, char):
        line = self.lines[self.row].ljust(self.column)
        self.lines[self.row] = line[:self.column] + char + line[self.column + 1:]
        self.column += width(char)
        if self.column > self.columns:
            self.bad.append(f'wider than {self.columns}: {self.lines[self.row]}')

    def control(self, numbers, letter):
        if (numbers, letter) == ('', 'H'):
            self.row = self.column = 0
            if self.resized:
                self.bad, self.lines = [], self.lines[:self.rows]
        elif letter in 'KJ':
            self.lines[self.row] = self.lines[self.row][:self.column]
            if letter == 'J':
                self.lines[self.row + 1:] = [''] * (len(self.lines) - self.row - 1)
        elif numbers == '?1049':
            self.alternate = letter == 'h'
            self.lines, self.row, self.column = [''] * self.rows, 0, 0
        elif numbers == '?25':
            self.cursor = letter == 'h'
        elif numbers != '?7' and letter != 'm':
            self.bad.append(f'{numbers}{letter}')

    @property
    def text(self):
        return '\n'.join(line.rstrip() for line in self.lines)


class Terminal:
    """A program on a terminal. Its size may be changed, keys pressed; every wait has a deadline."""

    def __init__(self, test, args, columns=80, rows=24, env=None):
        self.test = test
        harness.need('a terminal')
        self.master, self.slave = os.openpty()
        self.resize(columns, rows, False)
        self.before = termios.tcgetattr(self.slave)
        self.raw = ''
        full = {k: v for k, v in os.environ.items() if k not in ('NO_COLOR', 'TERM')}
        full.update({'TERM': 'xterm', **(env or {})})
        self.process = subprocess.Popen(args, stdin=self.slave, stdout=self.slave, stderr=self.slave, env=full, start_new_session=True,
                                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        self.pid = self.process.pid
        test.addCleanup(self.close)

    def resize(self, columns, rows, resized=True):
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack('HHHH', rows, columns, 0, 0))
        before, self.screen = getattr(self, 'screen', None), Screen(columns, rows, resized)
        if before:
            self.screen.alternate, self.screen.cursor = before.alternate, before.cursor

    def more(self, timeout):
        """Reads what comes; False after the time."""
        if not select.select([self.master], [], [], max(0, timeout))[0]:
            return False
        self.rest = getattr(self, 'rest', b'') + os.read(self.master, 1 << 20)
        end = len(self.rest)
        while end and self.rest[end - 1] & 0xc0 == 0x80:
            end -= 1
        if end and self.rest[end - 1] >= 0xc0:  # a character may not be all there
            end -= 1
            if len(self.rest) - end >= (2 if self.rest[end] < 0xe0 else 3 if self.rest[end] < 0xf0 else 4):
                end = len(self.rest)
        else:
            end = len(self.rest)
        text, self.rest = self.rest[:end].decode(), self.rest[end:]
        cut = text.rfind('\x1b')
        if cut >= 0 and not re.match('\x1b\\[[?0-9;]*[A-Za-z]', text[cut:]):
            text, self.rest = text[:cut], text[cut:].encode() + self.rest
        self.raw += text
        self.screen.feed(text)
        return True

    def until(self, pattern):
        """Until the screen has the pattern; its text."""
        deadline = time.monotonic() + harness.DEADLINE
        while not re.search(pattern, self.screen.text, re.M) or (self.screen.resized and self.screen.bad):
            if not self.more(deadline - time.monotonic()):
                raise AssertionError(f'no /{pattern}/ on:\n{self.screen.text}\n{self.screen.bad[:3]}')
        self.test.assertEqual(self.screen.bad, [], self.screen.text)
        self.screen.resized = False
        return self.screen.text

    def press(self, keys):
        os.write(self.master, keys.encode())

    def end(self):
        """Until the program has ended; all that is still to be read; its exit code."""
        deadline = time.monotonic() + harness.DEADLINE
        while self.process.poll() is None:
            self.test.assertLess(time.monotonic(), deadline, self.screen.text)
            self.more(0.05)
        while self.more(0):
            pass
        self.test.assertEqual(self.screen.bad, [])
        return self.process.returncode

    def is_restored(self):
        self.test.assertEqual(termios.tcgetattr(self.slave), self.before)
        self.test.assertFalse(self.screen.alternate)
        self.test.assertTrue(self.screen.cursor)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for fd in (self.master, self.slave):
            try:
                os.close(fd)
            except OSError:
                pass
