"""Documents each line of which names their version, so that a mixture of two is seen; and what a test raises for one."""
import contextlib
import re


class Flaw(AssertionError):
    """What an agent must not do. Not raised for what goes wrong in the harness itself."""


@contextlib.contextmanager
def about(what):
    try:
        yield
    except Exception as e:
        raise Flaw(f'{what}: {e}') from e


def document(n, lines):
    return b'number: %d\n' % n + b''.join(b'line%d: %d\n' % (i, n) for i in range(lines))


def number(data, lines):
    """The version that a document of so many lines names."""
    found = set(re.findall(rb': (\d+)\n', data))
    if data.count(b'\n') != lines + 1 or len(found) != 1:
        raise Flaw(f'not whole: {len(data)} bytes: {data[:60]}')
    return int(found.pop())
