"""What the attacks share: the harness of tests/integration, other users, and a few hostile habits.

A program of this folder imports this module first; then `harness`, `kinds`, `etcd` and `servers` are found. A test plays one attacker: a
server, a peer on the network, a user of the machine, a reader, or an operator who asks for too much. It proves that the hole is closed;
a patch in seeds/ opens it again, and `make seeded` sees that the test fails then.
"""
import contextlib
import ctypes
import os
import re
import socket
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'integration'))
sys.dont_write_bytecode = True
import harness  # noqa: E402

# users of the machine, by number: nobody has them. MALLORY is in no group of anybody's
AGENT, READER, OPERATOR, MALLORY = 64101, 64102, 64103, 64104
READERS, OPERATORS = 64201, 64202
needs_users = harness.needs('to become another user', 'to give files away')


def as_user(uid, gid=None, groups=()):
    """A prefix for a command."""
    gid = uid if gid is None else gid
    return ['setpriv', f'--reuid={uid}', f'--regid={gid}', f'--groups={",".join(map(str, groups))}' if groups else '--clear-groups']


def become(uid, gid=None, groups=()):
    """This process, for good."""
    gid = uid if gid is None else gid
    os.setgroups(list(groups))
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)


LIBC = ctypes.CDLL(None, use_errno=True)


def exchange(one, other):
    """Both names change places at one moment (RENAME_EXCHANGE)."""
    if LIBC.renameat2(-100, os.fsencode(one), -100, os.fsencode(other), 2) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


class Other:
    """A function that runs in a process of another user until it is stopped, again and again; it takes the number of its turn."""

    def __init__(self, test, uid, turn, gid=None, groups=()):
        self.pid = os.fork()
        if self.pid == 0:
            try:
                become(uid, gid, groups)
                number = 0
                while True:
                    with contextlib.suppress(OSError):
                        turn(number)
                    number += 1
            finally:
                os._exit(1)
        test.addCleanup(self.stop)

    def stop(self):
        if self.pid:
            os.kill(self.pid, 9)
            os.waitpid(self.pid, 0)
            self.pid = 0


def tried(uid, function, gid=None, groups=()):
    """What function() returns, as another user: (its value's text, None), or (None, the error's)."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            become(uid, gid, groups)
            said = '=' + str(function())
        except BaseException as e:  # noqa: B036
            said = f'!{type(e).__name__}: {e}'
        os.write(writer, said.encode()[:60000])
        os._exit(0)
    os.close(writer)
    with open(reader, encoding='utf-8', errors='replace') as f:
        said = f.read()
    os.waitpid(pid, 0)
    return (said[1:], None) if said[:1] == '=' else (None, said[1:])


def run(*command, user=None, env=None, timeout=None, **kw):
    """(exit code, standard output, standard error) of a command, perhaps as another user: (uid, gid, groups)."""
    command = [*(as_user(*user) if user else ()), *command]
    done = subprocess.run(command, capture_output=True, text=True, errors='replace', stdin=subprocess.DEVNULL, timeout=timeout or harness.DEADLINE,
                          env={**os.environ, **(env or {})}, check=False, **kw)
    return done.returncode, done.stdout, done.stderr


def memory_kb(pid, name='RssAnon'):
    with open(f'/proc/{pid}/status', encoding='ascii', errors='replace') as f:
        return next(int(line.split()[1]) for line in f if line.startswith(name + ':'))


class Listener:
    """A server of raw bytes: `answer` gets each connection in a thread of its own, and says what it likes."""

    def __init__(self, test, answer, family=socket.AF_INET, address=('127.0.0.1', 0)):
        self.socket = socket.socket(family)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(address)
        self.socket.listen(256)
        self.answer, self.open = answer, True
        threading.Thread(target=self.serve, daemon=True).start()
        test.addCleanup(self.close)

    @property
    def port(self):
        return self.socket.getsockname()[1]

    @property
    def url(self):
        return f'http://127.0.0.1:{self.port}'

    def serve(self):
        while self.open:
            try:
                peer, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.one, args=(peer,), daemon=True).start()

    def one(self, peer):
        with peer, contextlib.suppress(OSError):
            self.answer(peer)

    def close(self):
        self.open = False
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


def request_head(peer):
    """The head of a request, and what came with it; ConnectionError when it does not come whole."""
    data = b''
    while b'\r\n\r\n' not in data:
        more = peer.recv(65536)
        if not more:
            raise ConnectionError
        data += more
    return data


def request(peer):
    """A request with its body."""
    data = request_head(peer)
    length = re.search(rb'(?i)\r\ncontent-length: *(\d+)', data)
    end = data.index(b'\r\n\r\n') + 4 + (int(length[1]) if length else 0)
    while len(data) < end and (more := peer.recv(65536)):
        data += more
    return data


def document(text, head=''):
    """A whole answer."""
    body = text if isinstance(text, bytes) else text.encode()
    return f'HTTP/1.1 200 OK\r\nContent-Type: application/yaml\r\nContent-Length: {len(body)}\r\n{head}\r\n'.encode() + body
