"""Starts the real programs and real servers for the integration tests, and waits for events with a deadline.

Every wait reads a pipe or a socket until what was asked for has come; nothing sleeps. Everything lives in one temporary directory per
test and on ports the kernel chose; a test leaves no process and no file behind.
"""
import http.client
import json
import os
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, os.environ.get('PULLET_BUILD', 'build'))
PULLETD = os.path.join(BUILD, 'pulletd')
PULLET = os.path.join(BUILD, 'pullet')
SANITIZED = os.path.basename(BUILD) != 'build'
DEADLINE = 60 if SANITIZED else 20  # seconds; generous: it ends a test that hangs, it measures nothing


def send(process, number):
    """A signal. What is to stop has stopped, all its threads: they may go on for a while after the call."""
    process.send_signal(number)
    if number == signal.SIGSTOP:
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)


class Lines:
    """A child's output, read line by line as it comes."""

    def __init__(self, stream):
        self.fd, self.stream, self.seen, self.rest = stream.fileno(), stream, [], b''

    def _more(self, deadline):
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([self.fd], [], [], left)[0]:
            return False
        data = os.read(self.fd, 65536)
        if not data:
            return False
        *lines, self.rest = (self.rest + data).split(b'\n')
        self.seen += [line.decode(errors='replace') for line in lines]
        return True

    def wait(self, pattern, start=0, timeout=None):
        """The first line from number `start` on that has the pattern; AssertionError after the deadline."""
        deadline, at, found = time.monotonic() + (timeout or DEADLINE), start, re.compile(pattern)
        while True:
            for i in range(at, len(self.seen)):
                if found.search(self.seen[i]):
                    return self.seen[i]
            at = len(self.seen)
            if not self._more(deadline):
                raise AssertionError(f'no line with /{pattern}/ in:\n  ' + '\n  '.join(self.seen[start:]))

    def drain(self):
        """All there is until the end of the stream."""
        while self._more(time.monotonic() + DEADLINE):
            pass
        return self.seen

    @property
    def count(self):
        return len(self.seen)


class Program:
    """A child process whose standard error (or output) is read."""

    def __init__(self, args, env=None, read='stderr', **kw):
        full = dict(os.environ, **(env or {}))
        for name in ('http_proxy', 'https_proxy', 'all_proxy', 'ALL_PROXY', 'HTTPS_PROXY', 'no_proxy', 'PULLET_CONFIG'):
            if name not in (env or {}):
                full.pop(name, None)
        streams = {'stdout': subprocess.DEVNULL, 'stderr': subprocess.DEVNULL}
        if read == 'both':
            streams = {'stdout': subprocess.PIPE, 'stderr': subprocess.STDOUT}
        else:
            streams[read] = subprocess.PIPE
        self.process = subprocess.Popen(args, stdin=subprocess.DEVNULL, env=full, **streams, **kw)
        self.log = Lines(self.process.stdout or self.process.stderr)
        self.pid = self.process.pid

    def signal(self, number):
        send(self.process, number)

    def wait(self, timeout=None):
        return self.process.wait(timeout or DEADLINE)

    def close(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
            self.process.wait()
        for stream in (self.process.stdout, self.process.stderr):
            if stream:
                stream.close()


class Agent(Program):
    """pulletd with a configuration of its own."""

    def __init__(self, test, config, args=(), env=None, valgrind=()):
        self.test, self.dir = test, test.dir
        self.config_path = test.path('pullet.yaml')
        test.write('pullet.yaml', config)
        self.socket = test.path('run/control.sock')
        super().__init__([*valgrind, PULLETD, '-c', self.config_path, *args], env=env)
        test.addCleanup(self.close)

    def stop(self):
        """SIGTERM; must end by itself, with 0, soon."""
        begin = time.monotonic()
        self.signal(signal.SIGTERM)
        lines = self.log.drain()
        status = self.wait()
        self.test.assertEqual(status, 0, '\n'.join(lines[-40:]))
        if not SANITIZED:
            self.test.assertLess(time.monotonic() - begin, 2.0, 'the agent must stop in under 2 s')

    def cli(self, *args, check=None):
        """Runs `pullet ARGS`; (exit code, stdout, stderr)."""
        self.ready()
        command, *rest = args
        done = subprocess.run([PULLET, command, '--socket', self.socket, *rest], capture_output=True, text=True, timeout=DEADLINE * 2, check=False)
        if check is not None:
            self.test.assertEqual(done.returncode, check, f'{args}: {done.stdout}{done.stderr}')
        return done.returncode, done.stdout, done.stderr

    def status(self, name='web'):
        _, out, _ = self.cli('status', name, '--json', check=0)
        return json.loads(out)

    def refresh(self, name='web'):
        """Pulls now and waits for the end of that run; the outcome."""
        answer = self.post(f'/v1/configs/{name}/refresh?wait=1&timeout_ms={DEADLINE * 1000}')
        self.test.assertEqual(answer[0], 200, answer)
        return json.loads(answer[1])

    def ready(self):
        """Until the control socket is there."""
        self.log.wait(r'started version|"message":"started"')

    def request(self, method, path):
        self.ready()
        connection = UnixConnection(self.socket)
        try:
            connection.request(method, path)
            response = connection.getresponse()
            answer = response.status, response.read().decode()
            connection.sock.shutdown(socket.SHUT_WR)
            connection.sock.recv(1)  # until the agent has closed its side: nothing of this request is left to do
            return answer
        finally:
            connection.close()

    def get(self, path):
        return self.request('GET', path)

    def post(self, path):
        return self.request('POST', path)


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__('localhost', timeout=DEADLINE * 2)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Nginx(Program):
    """nginx on a socket that is bound before it starts, so that no wait and no port is lost to a race."""

    def __init__(self, test, server='', http='', ssl=None):
        self.root = test.path('www')
        os.makedirs(self.root, exist_ok=True)
        os.chmod(test.dir, 0o755)
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.port = self.listener.getsockname()[1]
        os.set_inheritable(self.listener.fileno(), True)
        listen = f'127.0.0.1:{self.port}' + (' ssl http2' if ssl else '')
        tls = f'ssl_certificate {ssl[0]}; ssl_certificate_key {ssl[1]};' if ssl else ''
        work = test.path('nginx')
        os.makedirs(work, exist_ok=True)
        temps = ''.join(f'{k}_temp_path {work}/{k};' for k in ('client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'))
        conf = f'''
            daemon off; worker_processes 1; pid {work}/pid; error_log stderr warn;
            {'user root;' if os.geteuid() == 0 else ''}
            events {{ worker_connections 256; }}
            http {{
              access_log {work}/access.log; {temps} {http}
              types {{ application/yaml yaml yml; application/json json; text/html html; }}
              default_type application/octet-stream;
              server {{ listen {listen}; {tls} root {self.root}; {server} }}
            }}'''
        test.write('nginx.conf', conf)
        self.access_log = work + '/access.log'
        super().__init__(['/usr/sbin/nginx', '-p', work, '-c', test.path('nginx.conf')],
                         env={'NGINX': f'{self.listener.fileno()};'}, pass_fds=[self.listener.fileno()])
        self.url = f'{"https" if ssl else "http"}://127.0.0.1:{self.port}'
        test.addCleanup(self.close)

    def stop_all(self, number):
        """To the master and its workers."""
        for pid in [self.pid, *children(self.pid)]:
            os.kill(pid, number)

    def close(self):
        if self.process.poll() is None:
            self.stop_all(signal.SIGCONT)
            self.process.terminate()
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.stop_all(signal.SIGKILL)
        self.listener.close()
        super().close()


def children(pid):
    with open(f'/proc/{pid}/task/{pid}/children', encoding='ascii') as f:
        return [int(p) for p in f.read().split()]


class FaultServer:
    """An HTTP server that does what `behave(connection, headers)` says to each request; counts the requests."""

    def __init__(self, test):
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.port = self.listener.getsockname()[1]
        self.url = f'http://127.0.0.1:{self.port}'
        self.behave, self.requests, self.open, self.stopping = good(b'a: 1\n'), 0, set(), threading.Event()
        self.lock = threading.Lock()
        self.thread = threading.Thread(target=self._accept, daemon=True)
        self.thread.start()
        test.addCleanup(self.close)

    def _accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with self.lock:
                self.open.add(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        rest = b''
        try:
            while True:
                while b'\r\n\r\n' not in rest:
                    data = connection.recv(65536)
                    if not data:
                        return
                    rest += data
                head, rest = rest.split(b'\r\n\r\n', 1)
                self.requests += 1
                if self.behave(connection, head.decode(), self.stopping) == 'close':
                    return
        except OSError:
            pass
        finally:
            with self.lock:
                self.open.discard(connection)
            connection.close()

    def close(self):
        self.stopping.set()
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()
        with self.lock:
            for connection in self.open:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
        self.thread.join(5)


def raw(data, close=True):
    """Sends bytes as they are."""
    def behave(connection, _head, _stopping):
        connection.sendall(data)
        return 'close' if close else None
    return behave


def good(body, headers='', status='200 OK'):
    return raw(f'HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{headers}\r\n'.encode() + body, close=False)


def reset(connection, _head, _stopping):
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
    return 'close'


def drip(first, more=b'', every=0.1):
    """Sends `first`, then `more` a byte at a time, one each `every` seconds (the slowness is what is tested), then holds on."""
    def behave(connection, _head, stopping):
        connection.sendall(first)
        for i in range(len(more)):
            if stopping.wait(every):
                return 'close'
            connection.sendall(more[i:i + 1])
        stopping.wait(DEADLINE)
        return 'close'
    return behave


def endless(connection, _head, stopping):
    connection.sendall(b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n')
    while not stopping.is_set():
        connection.sendall(b'10000\r\n' + b'#' * 65536 + b'\r\n')
    return 'close'


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix='pullet-test-')
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.dir, name)

    def write(self, name, text):
        """Replaces a file by rename, as a careful publisher does."""
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path + '.new', 'wb') as f:
            f.write(text if isinstance(text, bytes) else text.encode())
        os.rename(path + '.new', path)

    def read(self, name):
        with open(self.path(name), 'rb') as f:
            return f.read()

    def config(self, url, more='', push='', name='web', agent=''):
        """The text of a configuration with one config in this test's directory."""
        os.makedirs(self.path('out'), exist_ok=True)
        return f'''agent:
  state_dir: {self.path("state")}
  runtime_dir: {self.path("run")}
  log: {{level: debug, format: text}}
{agent}
{push}
configs:
  {name}:
    url: {url}
    file: {self.path("out/" + name + ".yaml")}
{more}
'''

    def serve(self, *args):
        """`pullet serve` on free ports: (program, http url, push endpoint)."""
        os.makedirs(self.path('www'), exist_ok=True)
        p = Program([PULLET, 'serve', self.path('www'), '--http', '127.0.0.1:0', '--push', 'tcp://127.0.0.1:0', *args], read='both')
        self.addCleanup(p.close)
        url = re.search(r'http://\S+', p.log.wait('serving .* on http://'))[0]
        endpoint = re.search(r'tcp://\S+', p.log.wait('publishing on'))[0]
        return p, url, endpoint


def main():
    """Runs the calling module's tests and ends with "N passed, N failed"."""
    result = unittest.TextTestRunner(stream=sys.stderr, verbosity=2).run(
        unittest.defaultTestLoader.loadTestsFromModule(sys.modules['__main__']))
    failed = len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses) + len(result.skipped)
    print(f'{result.testsRun - failed} passed, {failed} failed')
    sys.exit(1 if failed else 0)
