"""Starts the real programs and real servers for the integration tests, and waits for events with a deadline.

Every wait reads a pipe or a socket until what was asked for has come; nothing sleeps. Everything lives in one temporary directory per
test and on ports the kernel chose; a test leaves no process and no file behind.

What not every machine can do is in PROBES: a test that needs such a thing says so with @needs, and is skipped with the reason where it
cannot be had. tests/run counts that, and where nothing may be skipped (CI) it is a failure.
"""
import atexit
import contextlib
import functools
import http.client
import json
import os
import re
import resource
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
import urllib.parse

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, os.environ.get('PULLET_BUILD', 'build'))
PULLETD = os.path.join(BUILD, 'pulletd')
PULLET = os.path.join(BUILD, 'pullet')
SANITIZED = os.path.basename(BUILD) != 'build'
THREADS = os.path.basename(BUILD) == 'build-thread'
# the search for leaks costs a short command half of its time: unit tests and what is a Program are searched
LEAKS = {'ASAN_OPTIONS': os.environ.get('ASAN_OPTIONS', '')}
os.environ['ASAN_OPTIONS'] = ':'.join([*filter(None, LEAKS.values()), 'detect_leaks=0'])
DEADLINE = 120 if SANITIZED else 45  # seconds; generous: it ends a test that hangs, it measures nothing


def one_thread(test):
    """Decorates a test, or a class of them, of which each program has one thread only: the sanitizer of threads has nothing to see there, and it is
    left out under that one. That of memory sees it."""
    return None if THREADS else test


def send(process, number):
    """A signal. What is to stop has stopped, all its threads: they may go on for a while after the call."""
    process.send_signal(number)
    if number == signal.SIGSTOP:
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)


# ---- what not every machine can do

def refusal(*command):
    """Why the command fails here; None when it does not."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=DEADLINE, check=False)
    except (OSError, subprocess.TimeoutExpired) as e:
        return str(e)
    return None if done.returncode == 0 else (done.stderr.strip().splitlines() or [f'{command[0]}: status {done.returncode}'])[0]


def mount_refusal():
    with tempfile.TemporaryDirectory(prefix='pullet-probe-') as place:
        return refusal('mount', '-t', 'tmpfs', 'none', place) or refusal('umount', place)


def own_mounts_refusal(*how):
    """With `unshare ARGS`: mounts that nobody outside sees."""
    with tempfile.TemporaryDirectory(prefix='pullet-probe-') as place:
        why = refusal('unshare', *how, 'sh', '-ec', f'mount -t tmpfs none {place}; touch {place}/inside; umount {place}; mount -t tmpfs none {place}')
        if why is None and os.path.ismount(place):
            subprocess.run(['umount', place], check=True)
            why = 'a mount of a namespace of its own is seen outside of it'
        return why


# as pulletd, which holds secrets: its files in /proc are root's, and nobody else may trace it
CLOSED = 'import ctypes, sys; ctypes.CDLL(None).prctl(4, 0, 0, 0, 0); print(1, flush=True); sys.stdin.read()'


def look_refusal(*how):
    """Into a process as the agent is one, that was started with `unshare ARGS`."""
    with subprocess.Popen([*(['unshare', *how] if how else []), '/usr/bin/python3', '-c', CLOSED], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as p:
        if p.stdout.readline() != '1\n':
            return p.stderr.read().strip()
        try:
            os.listdir(f'/proc/{p.pid}/fd')
        except OSError as e:
            return str(e)
        with subprocess.Popen(['strace', '-o', '/dev/null', '-p', str(p.pid)], stderr=subprocess.PIPE, text=True) as tracer:
            said = tracer.stderr.readline().strip()
            tracer.send_signal(signal.SIGINT)
            return None if 'attached' in said else said


WAYS = {
    # within a chroot the first way is closed: its root is no mount. The last one makes the command root of a user namespace
    'mount': (own_mounts_refusal, ['--mount'], ['--mount', '--propagation=unchanged'], ['--map-root-user', '--mount']),
    'net': (lambda *how: refusal('unshare', *how, 'ip', 'link', 'set', 'lo', 'up'), ['--net'], ['--map-root-user', '--net']),
    'look': (look_refusal, [], ['--map-root-user']),
    'pid': (lambda *how: refusal('unshare', *how, 'true'), ['--pid', '--fork', '--mount-proc'], ['--map-root-user', '--pid', '--fork', '--mount-proc']),
}


@functools.lru_cache(None)
def unshare(kind):
    """(a prefix, None), or (None, why there is none). The prefix gives a command mounts or a network of its own, and the right to
    change them; that of 'look' makes the agent one that this user may trace, and whose files in /proc he may read."""
    refuses, *ways = WAYS[kind]
    whys = []
    for how in ways:
        whys.append(refuses(*how))
        if whys[-1] is None:
            return ['unshare', *how] if how else [], None
    return None, whys[0]


def in_memory(directory):
    done = subprocess.run(['stat', '-f', '-c', '%T', directory], capture_output=True, text=True, check=False)
    return done.stdout == 'tmpfs\n' and os.access(directory, os.W_OK)


@functools.lru_cache(None)
def memory():
    """A directory in memory, as /run is; None when there is none to write in."""
    return next((d for d in ('/dev/shm', os.environ.get('XDG_RUNTIME_DIR', '/run'), tempfile.gettempdir()) if in_memory(d)), None)


def slow_refusal():
    prefix, why = unshare('net')
    return why or refusal(*prefix, 'tc', 'qdisc', 'add', 'dev', 'lo', 'root', 'tbf', 'rate', '16kbit', 'burst', '2000', 'latency', '400ms')


def give_refusal():
    with tempfile.NamedTemporaryFile() as f:
        return refusal('chown', '65534:65534', f.name)


def files_refusal():
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most < MANY_FILES and most != resource.RLIM_INFINITY:
        return f'ulimit -Hn is {most}'
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(now, MANY_FILES), most))
    return None


def set_user_id_refusal():
    with open('/proc/self/status', encoding='ascii') as f:
        return 'no_new_privs is set for all that runs here' if 'NoNewPrivs:\t1' in f.read() else None


def ipv6_refusal():
    try:
        socket.create_server(('::1', 0), family=socket.AF_INET6).close()
    except OSError as e:
        return f'::1: {e.strerror}'
    return None


def terminal_refusal():
    try:
        for fd in os.openpty():
            os.close(fd)
    except OSError as e:
        return f'no terminal can be opened: {e.strerror}'
    return None


# why it cannot be had here; None when it can. Each is tried once, for real
MANY_FILES = 4096
LOOK = 'to look into the agent'  # to trace it, to read its files in /proc
PROBES = {
    'to become another user': lambda: refusal('setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', 'true'),
    'to give files away': give_refusal,
    'to mount': mount_refusal,
    'mounts of its own': lambda: unshare('mount')[1],
    'a network of its own': lambda: unshare('net')[1],
    'processes of its own': lambda: unshare('pid')[1],
    'a network that can be slow': slow_refusal,
    LOOK: lambda: unshare('look')[1],
    'to trace': lambda: refusal('strace', '-o', '/dev/null', 'true'),
    'files in memory': lambda: None if memory() else 'no tmpfs to write in, such as /dev/shm',
    'IPv6': ipv6_refusal,
    'set-user-ID programs': set_user_id_refusal,
    'a terminal': terminal_refusal,
    'many open files': files_refusal,
}


@functools.lru_cache(None)
def lacks(name):
    """Why the machine has not what PROBES calls so; None when it has."""
    why = PROBES[name]()
    return why and f'it needs {name}: {why}'


def need(*names):
    """Skips the test that runs, where the machine lacks one of these."""
    for name in names:
        if lacks(name):
            raise unittest.SkipTest(lacks(name))


def needs(*names):
    """Of a test, or of all tests of a class."""
    assert set(names) <= set(PROBES), names

    def decorate(thing):
        if isinstance(thing, type):
            thing.setUp = needs(*names)(thing.setUp)
            return thing

        @functools.wraps(thing)
        def test(self, *args):
            need(*names)
            if LOOK in names:
                self.prefix = unshare('look')[0]  # Agent starts behind it
            return thing(self, *args)
        return test
    return decorate


def own_mounts():
    """A prefix for a command; it may mount, and nobody else sees that."""
    need('mounts of its own')
    return unshare('mount')[0]


def own_network():
    need('a network of its own')
    return unshare('net')[0]


# ---- programs and servers

def for_anybody(test, program):
    """A copy that any user can execute: the tree may lie where only its owner can look."""
    os.chmod(test.dir, 0o755)
    return shutil.copy(program, test.path(os.path.basename(program)))


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
    """A child process whose standard error (or output) is read. It has a process group of its own, which ends with it."""
    running = set()  # what an interrupted test has not closed is closed at exit

    def __init__(self, args, env=None, read='stderr', **kw):
        full = {**os.environ, **LEAKS, **(env or {})}
        for name in ('http_proxy', 'https_proxy', 'all_proxy', 'ALL_PROXY', 'HTTPS_PROXY', 'no_proxy', 'PULLET_CONFIG'):
            if name not in (env or {}):
                full.pop(name, None)
        streams = {'stdout': subprocess.DEVNULL, 'stderr': subprocess.DEVNULL}
        if read == 'both':
            streams = {'stdout': subprocess.PIPE, 'stderr': subprocess.STDOUT}
        else:
            streams[read] = subprocess.PIPE
        if not kw.get('start_new_session'):
            kw['process_group'] = 0
        keyboard = kw.pop('keyboard', False)
        self.process = subprocess.Popen(args, bufsize=0 if keyboard else -1, stdin=subprocess.PIPE if keyboard else subprocess.DEVNULL, env=full, **streams, **kw)
        Program.running.add(self)
        self.log = Lines(self.process.stdout or self.process.stderr)
        self.pid = self.process.pid

    def signal(self, number):
        send(self.process, number)

    def wait(self, timeout=None):
        return self.process.wait(timeout or DEADLINE)

    def close(self):
        if self.process.poll() is None:
            os.killpg(self.pid, signal.SIGKILL)  # what it started is in its group, such as nginx's workers
            self.process.wait()
        Program.running.discard(self)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream:
                stream.close()


@atexit.register
def close_running():
    for program in list(Program.running):
        program.close()


class Agent(Program):
    """pulletd with a configuration of its own."""

    def __init__(self, test, config, args=(), env=None, valgrind=()):
        self.test, self.dir = test, test.dir
        self.config_path = test.path('pullet.yaml')
        test.write('pullet.yaml', config)
        self.socket = test.path('run/control.sock')
        super().__init__([*getattr(test, 'prefix', ()), *valgrind, PULLETD, '-c', self.config_path, *args], env=env)
        test.addCleanup(self.close)

    def stop(self):
        """SIGTERM; must end by itself, with 0, soon."""
        begin = time.monotonic()
        self.signal(signal.SIGTERM)
        lines = self.log.drain()
        status = self.wait()
        found = next((i for i, line in enumerate(lines) if 'WARNING: ThreadSanitizer' in line or 'ERROR: AddressSanitizer' in line), -40)
        self.test.assertEqual(status, 0, '\n'.join(lines[found:][:80]))
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
        """What `pullet status NAME --json` prints, for a tenth of its processor time."""
        code, body = self.get(f'/v1/configs/{name}')
        self.test.assertEqual(code, 200, body)
        return json.loads(body)

    def stands(self, version, name='web'):
        """Until this version is published, as `pullet wait NAME --version V` does."""
        code, body = self.get(f'/v1/configs/{name}/wait?version={urllib.parse.quote(version, safe="")}&timeout_ms={DEADLINE * 1000}')
        self.test.assertEqual(code, 200, body)

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


class Corner:
    """A directory of its own in that of a test, for another agent."""

    def __init__(self, test, name):
        self.test, self.dir = test, test.path(name)
        os.makedirs(self.dir)
        self.addCleanup, self.assertEqual, self.assertLess = test.addCleanup, test.assertEqual, test.assertLess

    def path(self, name):
        return os.path.join(self.dir, name)

    def write(self, name, text):
        self.test.write(os.path.join(self.dir, name), text)


def connect_in_turn(s, path, seconds):
    """With Python's own timeout, connect() fails at once while too many others wait to be accepted."""
    s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack('ll', int(seconds), 0))
    s.connect(path)
    s.settimeout(seconds)


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__('localhost', timeout=DEADLINE * 2)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        connect_in_turn(self.sock, self.path, self.timeout)


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


def processor_ms(pid):
    """[(name, milliseconds of processor time)] of the threads of a process that are there now."""
    threads = []
    for task in os.listdir(f'/proc/{pid}/task'):
        with open(f'/proc/{pid}/task/{task}/comm', encoding='ascii') as name, open(f'/proc/{pid}/task/{task}/schedstat', encoding='ascii') as times:
            threads.append((name.read().rstrip('\n'), int(times.read().split()[0]) / 1e6))
    return threads


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

    def until(self, happened, what):
        """Asks `happened()` until it is true: for what no line of a log tells. `what` (a text, or a function that makes it) says what did not come."""
        end = time.monotonic() + DEADLINE
        while not happened():
            if time.monotonic() > end:
                self.fail(what() if callable(what) else what)
            time.sleep(0.005)

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
    """Runs the calling module's tests, or those that are named (Class, Class.test), and ends with "N passed, N failed", and ", N skipped" when some were."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what is told to end closes what it started
    loader, module, names = unittest.defaultTestLoader, sys.modules['__main__'], sys.argv[1:]
    tests = loader.loadTestsFromNames(names, module) if names else loader.loadTestsFromModule(module)
    result = unittest.TextTestRunner(stream=sys.stderr, verbosity=2).run(tests)
    skipped = {getattr(test, 'test_case', test).id().removeprefix('__main__.'): reason for test, reason in result.skipped}
    for name, reason in skipped.items():
        print(f'ok - {name} # SKIP {reason}')
    # a test with subtests counts once, however many of them fail
    failed = len({getattr(test, 'test_case', test).id() for test, _ in result.failures + result.errors} | {test.id() for test in result.unexpectedSuccesses})
    print(f'{max(0, result.testsRun - failed - len(skipped))} passed, {failed} failed' + (f', {len(skipped)} skipped' if skipped else ''))
    sys.exit(1 if failed else 0)
