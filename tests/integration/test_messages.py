"""What a stranger reads at night when something of this host is wrong: one sentence with what, where and the remedy, on standard error and in the status;
the exit code as documented; nothing that stood is lost; and what is mended is noticed without a restart.

What servers do wrong is in test_misbehaviour.py, test_tls.py and others.
"""
import contextlib
import glob
import json
import os
import re
import resource
import shutil
import socket
import stat
import subprocess
import unittest.mock

import harness
from harness import Agent, FaultServer, Program, good
from test_tls import Authorities, Https

ROOT = os.geteuid() == 0
# any that is not root; it has nothing. Who is none here is that user, and takes the rights from himself that another would not have
USER, GROUP = (65534, 65534) if ROOT else (os.getuid(), os.getgid())
AS_USER = ('setpriv', f'--reuid={USER}', f'--regid={GROUP}', '--clear-groups')
RUNS_AS = rf'\(it runs as user {USER}, group {GROUP}\)'
NOT_READ = 'cannot be read: Permission denied: the agent\'s user must be able to read it ' + RUNS_AS
NOT_WRITTEN = 'Permission denied: the agent\'s user must be able to write there ' + RUNS_AS
READ_ONLY = 'Read-only file system: mount it writable, or name a place that is; under systemd, open it with ReadWritePaths='
FULL = r'No space left on device: make room on that file system \(df, df -i\)'
PROGRAM = '#!/bin/sh\nexit 0\n'


def run(*args):
    subprocess.run(args, check=True, capture_output=True)


class Host(harness.Case):
    """A host with what the agent needs, every piece of which can be spoilt."""

    def setUp(self):
        super().setUp()
        self.mounts, self.modes = [], {}
        self.addCleanup(self.unmount_all)
        patch = unittest.mock.patch.object(harness, 'PULLETD', harness.for_anybody(self, harness.PULLETD))
        patch.start()
        self.addCleanup(patch.stop)
        self.server = FaultServer(self)
        self.show(1)

    def show(self, n, tail=''):
        self.server.behave = good(f'a: {n}\n{tail}'.encode(), f'ETag: "{n}"\r\n')

    def as_user(self, prefix):
        """The prefix that makes the agent another user's, where it is one."""
        if prefix != AS_USER or not ROOT:
            return () if prefix == AS_USER else prefix
        harness.need('to become another user', 'to give files away')
        return prefix

    def close_file(self, name):
        """Others cannot read it: USER is among them."""
        os.chmod(self.path(name), 0o600 if ROOT else 0)
        if ROOT:
            os.chown(self.path(name), 0, 0)

    def open_file(self, name):
        os.chmod(self.path(name), 0o600)
        if ROOT:
            os.chown(self.path(name), USER, GROUP)

    def mount(self, name, *options):
        harness.need('to mount')
        os.makedirs(self.path(name), exist_ok=True)
        run('mount', *(options or ('-t', 'tmpfs', 'tmpfs')), self.path(name))
        self.mounts.append(self.path(name))

    def unmount(self, name):
        self.mounts.remove(self.path(name))
        run('umount', self.path(name))

    def unmount_all(self):
        while self.mounts:
            run('umount', '--lazy', self.mounts.pop())

    def directory(self, name, user=0):
        os.mkdir(self.path(name), 0o755)
        self.give(user, name)

    def give(self, user, name):
        """The directory and all in it. Who cannot give it away gives up what others do not have."""
        for place in () if ROOT else (self.path(name), *glob.glob(self.path(name) + '/*/')):
            mode = self.modes.setdefault(place, stat.S_IMODE(os.stat(place).st_mode))
            os.chmod(place, mode if user == USER else (mode & 7) * 0o111)
        for place, _, files in os.walk(self.path(name)) if ROOT else ():
            for path in (place, *(os.path.join(place, f) for f in files)):
                os.lchown(path, user, user)

    def fill(self, name):
        """Until not one more byte goes in."""
        fd = os.open(self.path(name + '/fill'), os.O_WRONLY | os.O_CREAT, 0o600)
        for size in (65536, 1):
            with contextlib.suppress(OSError):
                while True:
                    os.write(fd, b'x' * size)
        os.close(fd)

    def program(self, text=PROGRAM, mode=0o755):
        self.write('program', text)
        os.chmod(self.path('program'), mode)

    def secret(self, text='hush\n', mode=0o600):
        self.write('secret', text)
        os.chmod(self.path('secret'), mode)

    def hide(self, name):
        os.rename(self.path(name), self.path(name + '.hidden'))

    def bring_back(self, name):
        os.rename(self.path(name + '.hidden'), self.path(name))

    def text(self, more='', agent='', push='', url=None):
        return self.config((url or self.server.url) + '/web.yaml', f'    interval: 200ms\n{more}', agent=agent, push=push)

    def with_server(self, more, url=None):
        """The same by an entry of `servers`, which has secrets and certificates."""
        url = url or self.server.url
        text = self.text(url=url).replace('configs:', f'servers: {{main: {{urls: ["{url}"], {more}}}}}\nconfigs:')
        return re.sub(r'    url: .*', '    from: [{server: main, path: /web.yaml}]', text)


def add_tests(case, table, check):
    """A test of its own for each row."""
    for name, row in table.items():
        setattr(case, 'test_' + re.sub(r'\W+', '_', name), lambda self, row=row: check(self, *row))


# ---- what keeps the agent from starting. Each arranges something and returns the configuration's text

def as_it_should_be(t):
    return t.text()


def parent_not_writable(t):
    harness.need('to become another user')  # the test itself writes there
    return t.text()


def file_not_readable(t):
    t.write('closed.yaml', t.text())
    t.close_file('closed.yaml')
    return t.text()


def part_not_readable(t):
    t.write('conf.d/more.yaml', 'configs: {}\n')
    t.close_file('conf.d/more.yaml')
    return t.text()


def owner(name):
    return lambda t: t.text(f'    owner: "{name}"\n')


def no_parent(t):
    return t.text().replace(t.path('state'), t.path('missing/state'))


def runtime_parent_not_writable(t):
    harness.need('to become another user')
    t.directory('state', USER)
    return t.text()


def foreign_state(t):
    t.directory('state')
    t.directory('run', USER)
    return t.text()


def foreign_runtime(t):
    t.directory('state', USER)
    t.directory('run')
    return t.text()


def state_is_a_file(t):
    t.write('state', '')
    return t.text()


def read_only(name):
    def arrange(t):
        t.mount(name, '-t', 'tmpfs', '-o', 'ro', 'tmpfs')
        return t.text()
    return arrange


def state_in_use(t):
    t.write('other.yaml', t.text().replace('web.yaml', 'other.yaml'))
    other = Program([harness.PULLETD, '-c', t.path('other.yaml')])
    t.addCleanup(other.close)
    other.log.wait('started version')
    return t.text()


def runtime_in_use(t):
    return state_in_use(t).replace(t.path('state'), t.path('another-state'))


def runtime_too_long(t):
    return t.text().replace(t.path('run'), t.path('r' * 100))


def listen(address):
    return lambda t: t.text(agent=f'  listen: {address}\n')


def port_taken(t):
    listener = socket.create_server(('127.0.0.1', 0))
    t.addCleanup(listener.close)
    return listen(f'127.0.0.1:{listener.getsockname()[1]}')(t)


CANNOT_MAKE = 'cannot make the directory: make it, or name another one in the configuration path='
CANNOT_LOCK = r'cannot write in the state directory path=DIR/state/.lock why="'
CANNOT_LISTEN = r'cannot serve the control API why="cannot listen on '
FEW = r'cannot start: the limit of open files is too low why="\d+ file descriptors are needed '
SHORT = r'memory, file descriptors or threads are short: raise the limits \(LimitNOFILE, MemoryMax, TasksMax\) why='
# what is arranged, what standard error says (DIR is the test's directory), the exit code; how it is started
START = {
    'no such file': (as_it_should_be, 'DIR/missing.yaml: cannot be read: No such file or directory: make it, or name another one', 78,
                     {'args': ('-c', 'DIR/missing.yaml')}),
    'the file is a directory': (as_it_should_be, 'DIR: cannot be read: Is a directory', 78, {'args': ('-c', 'DIR')}),
    'PULLET_CONFIG leads nowhere': (as_it_should_be, '/nonexistent/p.yaml: cannot be read: No such file or directory: make it, or name another one', 78,
                                    {'args': (), 'env': {'PULLET_CONFIG': '/nonexistent/p.yaml'}}),
    'configuration not readable': (file_not_readable, 'DIR/closed.yaml: ' + NOT_READ + '; DIR/closed.yaml is of .* and the group .*, mode 0[0-7]{3}', 78, {'args': ('-c', 'DIR/closed.yaml'), 'prefix': AS_USER}),
    'part of the configuration not readable': (part_not_readable, 'DIR/conf.d/more.yaml: ' + NOT_READ, 78, {'prefix': AS_USER}),
    'unknown user': (owner('who'), r'DIR/pullet.yaml:\d+:\d+: owner: "who" names a user that does not exist here', 78),
    'unknown group': (owner(':who'), r'DIR/pullet.yaml:\d+:\d+: owner: ":who" names a group that does not exist here', 78),
    'socket path too long': (runtime_too_long, 'runtime_dir: .* is too long for the control socket in it: at most 94 bytes', 78),
    'no parent of the state directory': (no_parent, CANNOT_MAKE + 'DIR/missing/state why="cannot make the directory DIR/missing/state: No such file or directory: the directory is not there; make it"', 1),
    'parent of the state directory not writable': (parent_not_writable, f'{CANNOT_MAKE}DIR/state why="cannot make the directory DIR/state: {NOT_WRITTEN}', 1, {'prefix': AS_USER}),
    'parent of the runtime directory not writable': (runtime_parent_not_writable, f'{CANNOT_MAKE}DIR/run why="cannot make the directory DIR/run: {NOT_WRITTEN}', 1, {'prefix': AS_USER}),
    'state directory of another user': (foreign_state, CANNOT_LOCK + NOT_WRITTEN, 1, {'prefix': AS_USER}),
    'runtime directory of another user': (foreign_runtime, f'{CANNOT_LISTEN}DIR/run/control.sock: {NOT_WRITTEN}', 1, {'prefix': AS_USER}),
    'state directory is a file': (state_is_a_file, 'cannot use the directory: see why, or name another one in the configuration path=DIR/state '
                                'why="cannot open the directory DIR/state: Not a directory: a part of the path is not a directory', 1),
    'state directory read only': (read_only('state'), CANNOT_LOCK + READ_ONLY, 1),
    'runtime directory read only': (read_only('run'), f'{CANNOT_LISTEN}DIR/run/control.sock: {READ_ONLY}', 1),
    'state directory in use': (state_in_use, 'another pulletd uses this state directory: stop it, or give this one another state_dir path=DIR/state pid=\\d+', 1),
    'runtime directory in use': (runtime_in_use, CANNOT_LISTEN + 'DIR/run/control.sock: Address already in use: another program has it: stop that, or', 1),
    'port taken': (port_taken, CANNOT_LISTEN + r'127.0.0.1:\d+: Address already in use: another program has it: stop that, or listen elsewhere', 1),
    'address of another host': (listen('192.0.2.1:8080'), CANNOT_LISTEN + '192.0.2.1:8080: .*: this host does not have that address', 1),
    'address that is not known': (listen('who.invalid:8080'), CANNOT_LISTEN + 'who.invalid:8080: .*: the name is not known here: write an address', 1),
    'no descriptors for the loop': (as_it_should_be, FEW, 78, {'prefix': ('prlimit', '--nofile=5')}),
    'no descriptors for the rest': (as_it_should_be, FEW, 78, {'prefix': ('prlimit', '--nofile=24')}),
    'unknown option': (as_it_should_be, "unrecognized option '--nonsense'", 64, {'args': ('--nonsense',)}),
    'unknown level': (as_it_should_be, "--log-level is err, warn, info or debug, not 'loud'", 64, {'args': ('--log-level', 'loud')}),
    'an argument too many': (as_it_should_be, "'x' is one argument too many; the configuration is named with -c", 64, {'args': ('x',)}),
}
if not harness.SANITIZED:  # their shadow does not fit either
    START['no memory'] = (as_it_should_be, SHORT, 1, {'prefix': ('prlimit', f'--as={32 << 20}')})


class Start(Host):
    """It does not start; it touches nothing that was there; it starts when that is mended, as every other test shows."""

    def check(self, arrange, says, code, how=None):
        how = {'prefix': (), 'args': ('-c', 'DIR/pullet.yaml'), 'env': None, **(how or {})}
        self.write('pullet.yaml', arrange(self))
        self.write('out/web.yaml', 'a: 0\n')
        program = Program([*self.as_user(how['prefix']), harness.PULLETD, *(a.replace('DIR', self.dir) for a in how['args'])], env=how['env'])
        self.addCleanup(program.close)
        lines = program.log.drain()
        found = [line for line in lines if re.search(says.replace('DIR', re.escape(self.dir)), line)]
        self.assertEqual((len(found), program.wait()), (1, code), '\n'.join(lines))
        self.assertEqual(self.read('out/web.yaml'), b'a: 0\n')


add_tests(Start, START, Start.check)


# ---- what goes wrong while it runs: (before the start, the fault, what mends it)

def full(name):
    return (lambda t: t.mount(name, '-t', 'tmpfs', '-o', 'size=256k', 'tmpfs'),
            lambda t: t.fill(name),
            lambda t: os.unlink(t.path(name + '/fill')))


def without_inodes(name):
    """Files that fit, on a disk that has no room for another one."""
    def fault(t):
        for i in range(200):
            try:
                t.write(f'{name}/fill/{i}', '')
            except OSError:
                return
    return (lambda t: t.mount(name, '-t', 'tmpfs', '-o', 'nr_inodes=40', 'tmpfs'), fault, lambda t: shutil.rmtree(t.path(name + '/fill')))


def turned_read_only():
    return (lambda t: t.mount('out'),
            lambda t: run('mount', '-o', 'remount,ro', t.path('out')),
            lambda t: run('mount', '-o', 'remount,rw', t.path('out')))


def covered_read_only(name):
    """Where the agent has files open for writing, which a remount would wait for: the same place once more, on top."""
    def fault(t):
        t.mount(name, '--bind', t.path(name))
        run('mount', '-o', 'remount,bind,ro', t.path(name))
    return lambda t: None, fault, lambda t: t.unmount(name)


def changed_owner(name):
    def before(t):
        for each in ('state', 'run', 'out'):
            t.directory(each, USER)
    return before, lambda t: t.give(0, name), lambda t: t.give(USER, name)


def opened_to_all():
    return lambda t: None, lambda t: os.chmod(t.path('out'), 0o777), lambda t: os.chmod(t.path('out'), 0o755)


def not_there(name, make):
    return make, lambda t: t.hide(name), lambda t: t.bring_back(name)


def not_readable(name, make):
    def before(t):
        make(t)
        changed_owner('')[0](t)
        t.open_file(name)
    return before, lambda t: t.close_file(name), lambda t: t.open_file(name)


def spoilt_secret(text):
    return Host.secret, lambda t: t.secret(text), Host.secret


def spoilt_program(*how):
    return Host.program, lambda t: t.program(*how), Host.program


def with_secret(auth):
    return lambda t: t.with_server('auth: {' + auth.replace('SECRET', t.path('secret')) + '}')


def with_config(more):
    return lambda t: t.text(more.replace('DIR', t.dir))


BEARER = with_secret('bearer_file: SECRET')
CHECK = with_config('    check: [DIR/program, "{path}"]\n')
SECRET = 'the secret DIR/secret '
# the fault; what log and status say; the configuration (None: as it should be); the user (None: root)
RUNNING = {
    'disk of the state directory full': (full('state'), 'cannot write DIR/state/web/0{19}2: ' + FULL),
    'disk of the published file full': (full('out'), 'cannot write DIR/out/web.yaml: ' + FULL),
    'disk of the runtime directory full': (full('run'), 'cannot write DIR/run/web.snap: ' + FULL),
    'disk of the state directory without inodes': (without_inodes('state'), 'cannot make a new file for DIR/state/web/0{19}2: ' + FULL),
    'disk of the published file without inodes': (without_inodes('out'), 'cannot make a new file for DIR/out/web.yaml: ' + FULL),
    'disk of the runtime directory without inodes': (without_inodes('run'), 'cannot make a new file for DIR/run/web.snap: ' + FULL),
    'file system of the published file turned read only': (turned_read_only(), 'cannot write in the directory DIR/out: ' + READ_ONLY),
    'state directory turned read only': (covered_read_only('state'), 'cannot make a new file for DIR/state/web/0{19}2: ' + READ_ONLY),
    'runtime directory turned read only': (covered_read_only('run'), 'cannot make a new file for DIR/run/web.snap: ' + READ_ONLY),
    'state directory of another user now': (changed_owner('state'), 'cannot make a state file in DIR/state/web: ' + NOT_WRITTEN, None, AS_USER),
    'directory of the file of another user now': (changed_owner('out'), 'cannot write in the directory DIR/out: ' + NOT_WRITTEN, None, AS_USER),
    'runtime directory of another user now': (changed_owner('run'), 'cannot make a new file for DIR/run/web.snap: ' + NOT_WRITTEN, None, AS_USER),
    'directory of the file open to all': (opened_to_all(), 'will not use the directory DIR/out: group or others can write in it and could replace the file; chmod go-w'),
    'no token': (not_there('secret', Host.secret), SECRET + 'cannot be read: No such file or directory: make it, or name another one', BEARER),
    'token not readable': (not_readable('secret', Host.secret), SECRET + NOT_READ, BEARER, AS_USER),
    'token empty': (spoilt_secret(''), SECRET + 'is empty: put the secret alone into it, on one line', BEARER),
    'token of two lines': (spoilt_secret('a\nb\n'), SECRET + 'holds a control character or a second line: put the secret alone', BEARER),
    'no password': (not_there('secret', Host.secret), SECRET + 'cannot be read: No such file', with_secret('basic: {user: u, password_file: SECRET}')),
    'no header': (not_there('secret', Host.secret), SECRET + 'cannot be read: No such file', with_secret('headers: {X-Token: {file: SECRET}}')),
    'no schema': (not_there('schema.yaml', lambda t: t.write('schema.yaml', 'type: object\n')),
                  'cannot read the schema DIR/schema.yaml: No such file or directory: make it, or name another one', with_config('    schema: DIR/schema.yaml\n')),
    'no check program': (not_there('program', Host.program), 'program cannot be started: No such file or directory: install it, name another one', CHECK),
    'check not executable': (spoilt_program(PROGRAM, 0o644),
                             r"program cannot be started: Permission denied: the agent's user must be able to execute it \(chmod \+x\)", CHECK),
    'check without its interpreter': (spoilt_program('#!/nonexistent\n'), 'mend the #! it begins with', CHECK),
    'check is no program': (spoilt_program('\0\n'), 'neither a program for this machine nor begins with #!', CHECK),
}


class Running(Host):
    def kept(self):
        """Everything that must not be lost: by name, its bytes."""
        found = {}
        for top in ('state/web', 'out', 'run'):
            for place, _, files in os.walk(self.path(top)):
                for name in files:
                    if name not in ('ledger', 'control.sock', 'web.gen'):
                        with open(os.path.join(place, name), 'rb') as f:
                            found[os.path.join(place, name)] = f.read()
        return found

    def check(self, fault, says, text=None, prefix=()):
        before, spoil, mend = fault
        prefix = self.as_user(prefix)
        says = says.replace('DIR', re.escape(self.dir))
        before(self)
        agent = Agent(self, (text or Host.text)(self), valgrind=prefix)
        agent.log.wait('published.*generation=1')
        kept = self.kept()
        spoil(self)
        kept = {path: data for path, data in kept.items() if os.path.exists(path)}  # else removing it is the fault
        self.show(2, '#' * 9000)
        agent.log.wait(says)
        for _ in range(3):
            self.assertRegex(agent.refresh()['error'], says)
        status = agent.status()
        self.assertEqual((status['state'], status['generation']), ('failing', 1))
        self.assertRegex(status['last_error'], says)
        self.assertEqual(status['cause'], 'this host')
        self.assertEqual({path: data for path, data in self.kept().items() if path in kept}, kept)
        mend(self)
        agent.log.wait('published config=web', start=agent.log.count)
        self.assertTrue(self.read('out/web.yaml').startswith(b'a: 2\n'))
        agent.log.wait('recovered')
        self.assertEqual((agent.status()['state'], agent.status()['last_error']), ('ok', None))
        agent.stop()
        told = [line for line in agent.log.seen if re.search(says, line) and 'next_in_ms' in line]
        self.assertEqual(len(told), 1, 'once, however often it is tried: ' + '\n'.join(agent.log.seen))


add_tests(Running, RUNNING, Running.check)


class Others(Host):
    """What does not fit into a table."""

    def test_no_descriptors_left_while_it_runs(self):
        agent = Agent(self, self.text())
        agent.log.wait('published.*generation=1')
        limits = resource.prlimit(agent.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(agent.pid, resource.RLIMIT_NOFILE, (3, limits[1]))
        self.show(2)
        agent.log.wait(r'Too many open files: raise the limit of open files \(LimitNOFILE\)')
        self.assertEqual(self.read('out/web.yaml'), b'a: 1\n')
        resource.prlimit(agent.pid, resource.RLIMIT_NOFILE, limits)
        agent.log.wait('published.*a|published config=web', start=agent.log.count)
        self.assertEqual(self.read('out/web.yaml'), b'a: 2\n')
        agent.stop()

    def test_what_the_server_does_is_told_with_a_remedy(self):
        def answer(status):
            return lambda connection, head, stopping: connection.sendall(f'HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n'.encode())
        agent = Agent(self, self.text())
        agent.log.wait('published.*generation=1')
        for behave, cause, says in ((answer(401), 'forbidden', 'the server answered 401: the server wants credentials: set auth:, or correct them'),
                                    (answer(403), 'forbidden', 'the server answered 403: the server forbids it: check auth: and the rights of its user'),
                                    (answer(500), 'bad answer', 'the server answered 500: the server failed: look at its log'),
                                    (answer(502), 'unreachable', 'the server answered 502: the server failed: look at what is behind it'),
                                    (lambda connection, *_: connection.shutdown(socket.SHUT_RDWR), 'unreachable', 'Empty reply from server: it closed the connection without an answer: look at its log')):
            self.server.behave = behave
            self.assertEqual(agent.refresh()['error'], says)
            self.assertEqual(agent.status()['cause'], cause)
        agent.stop()

    def test_a_pull_that_times_out_says_what_it_waited_for(self):
        def part(connection, _head, stopping):
            connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\na: 2')
            stopping.wait()

        agent = Agent(self, self.text('    timeout: 400ms\n'))
        agent.log.wait('published.*generation=1')
        for behave, says in ((lambda connection, head, stopping: stopping.wait(), 'the server has taken the request, and does not answer'),
                             (part, 'the answer came in part: the server or the way to it is slow')):
            self.server.behave = behave
            self.assertEqual(agent.refresh()['error'], f'request timed out after 400ms: {says}')
        agent.stop()

    def test_a_pull_that_has_no_connection_in_time_says_so(self):
        def told(scheme, server, says):
            agent = Agent(self, self.text('    timeout: 400ms\n', url=f'{scheme}://127.0.0.1:{server.getsockname()[1]}'))
            agent.log.wait(f'request timed out after 400ms: {says}"')
            agent.stop()

        with socket.create_server(('127.0.0.1', 0), backlog=1000) as mute:
            told('https', mute, 'the server does not end the TLS handshake')
        with socket.create_server(('127.0.0.1', 0), backlog=0) as deaf, contextlib.ExitStack() as crowd:
            for _ in range(4):  # what it does not accept fills its line
                one = crowd.enter_context(socket.socket())
                one.setblocking(False)
                one.connect_ex(deaf.getsockname())
            told('http', deaf, 'no connection: the host is down, or a firewall is on the way')

    def test_a_name_that_nobody_knows_is_told_with_a_remedy(self):
        text = self.text(url='http://who..invalid')  # no name at all: no resolver is asked
        agent = Agent(self, text.replace('interval: 200ms', f'interval: {harness.DEADLINE}s'))
        agent.log.wait("Could not resolve host: who..invalid: check the name in the url, and this host's resolver .*resolv.conf")
        self.assertEqual(agent.status()['cause'], 'unreachable')
        agent.stop()

    def test_a_program_that_tells_the_application_is_not_there(self):
        agent = Agent(self, self.text(f'    reload: {{run: [{self.path("program")}]}}\n'))
        agent.log.wait('reload failed: .*program cannot be started: No such file or directory: install it, name another one')
        self.assertEqual(self.read('out/web.yaml'), b'a: 1\n')
        self.program()
        agent.log.wait('reload succeeded')
        agent.stop()

    def test_secrets_that_others_can_read_are_used_and_told_once(self):
        self.secret(mode=0o644)
        self.write('pullet.yaml', self.with_server(f'auth: {{basic: {{user: u, password_file: {self.path("secret")}}}}}'))
        agent = Agent(self, self.with_server(f'auth: {{bearer_file: {self.path("secret")}}}'))
        agent.log.wait('published.*generation=1')
        agent.refresh()
        warnings = [line for line in agent.log.seen if 'any user of this host can read or replace the secret' in line]
        self.assertEqual(len(warnings), 1, agent.log.seen)
        self.assertRegex(warnings[0], 'chmod o-rw it.* server=main file=' + re.escape(self.path('secret')))
        self.assertNotIn('hush', '\n'.join(agent.log.seen))
        agent.stop()

    def test_secrets_of_a_group_are_not_told(self):
        self.secret(mode=0o440)
        agent = Agent(self, self.with_server(f'auth: {{bearer_file: {self.path("secret")}}}'))
        agent.log.wait('published.*generation=1')
        self.assertNotIn('any user of this host', '\n'.join(agent.log.seen))
        agent.stop()

    def test_a_configuration_that_others_can_write_is_used_and_told(self):
        self.write('conf.d/more.yaml', '')
        os.chmod(self.path('conf.d/more.yaml'), 0o666)
        agent = Agent(self, self.text())
        agent.log.wait('anybody on this host can write the configuration, .*: chmod o-w it file=' + re.escape(self.path('conf.d/more.yaml')))
        agent.log.wait('published.*generation=1')
        agent.stop()

    def test_a_state_directory_that_others_can_write_in_is_refused_by_root_else_told(self):
        os.mkdir(self.path('state'))
        os.chmod(self.path('state'), 0o777)
        agent = Agent(self, self.text())
        if os.geteuid() == 0:
            agent.log.wait('cannot use the directory: .* path=' + re.escape(self.path('state')) + ' why="will not use .*: group or others can write in it')
            self.assertEqual(agent.wait(), 1)
            return
        agent.log.wait('anybody on this host can write in the directory, .*: chmod o-w it path=' + re.escape(self.path('state')))
        agent.log.wait('published.*generation=1')
        self.assertEqual(sum('anybody on this host' in line for line in agent.log.seen), 1)
        agent.stop()

    def test_secret_and_schema_as_volumes_of_kubernetes_are_and_their_change(self):
        for n in (1, 2):
            self.write(f'volume/..{n}/token', f'token{n}\n')
        self.write('volume/..1/schema.yaml', 'type: object\n')
        self.write('volume/..2/schema.yaml', 'type: object\nrequired: [b]\n')
        os.symlink('..1', self.path('volume/..data'))
        for name in ('token', 'schema.yaml'):
            os.symlink(f'..data/{name}', self.path(f'volume/{name}'))
        seen = []

        def behave(connection, head, stopping):
            seen.append(re.search(r'Bearer (\w+)', head)[1])
            return good(f'a: {len(seen)}\n'.encode())(connection, head, stopping)
        self.server.behave = behave
        text = self.with_server(f'auth: {{bearer_file: {self.path("volume/token")}}}') + f'    schema: {self.path("volume/schema.yaml")}\n'
        agent = Agent(self, text)
        agent.log.wait('published.*generation=1')
        os.symlink('..2', self.path('volume/..tmp'))
        os.rename(self.path('volume/..tmp'), self.path('volume/..data'))
        self.assertRegex(agent.refresh()['error'], 'the key "b" is missing')
        self.assertEqual((seen[0], seen[-1]), ('token1', 'token2'))
        agent.stop()

    def test_curve_keys_that_cannot_be_used(self):
        secret = self.path('curve')
        run(harness.PULLET, 'keygen', secret)
        with open(secret + '.pub', encoding='ascii') as f:
            public = f.read().split('\n')[1]
        push = f"push:\n  - endpoint: tcp://127.0.0.1:9\n    curve: {{server_key: '{public}', secret_key_file: {secret}}}\n"
        for spoil, says in ((lambda: self.hide('curve'), "the secret key's file does not exist: pullet keygen makes one"),
                            (lambda: os.chmod(secret, 0o644), "the secret key's file can be read by others.*: chmod 600 it, and make a new key")):
            spoil()
            agent = Agent(self, self.text(push=push))
            agent.log.wait('published|started from the last known good')
            agent.log.wait(says)
            self.assertRegex(agent.get('/v1/status')[1], says)
            agent.stop()
            self.bring_back('curve') if not os.path.exists(secret) else os.chmod(secret, 0o600)


class Certificates(Host):
    """Of the agent's side: the server is not blamed, its address does not rest, and what is mended is noticed at the next pull."""

    @classmethod
    def setUpClass(cls):
        cls.authorities = Authorities()
        cls.addClassCleanup(shutil.rmtree, cls.authorities.dir)
        cls.authorities.sign('server')
        cls.authorities.sign('client')

    def setUp(self):
        super().setUp()
        self.https = Https(self, self.authorities)
        self.https.show('server')
        for name in ('ca.pem', 'client.pem', 'client.key'):
            shutil.copy(self.authorities.path(name), self.path(name))
        os.chmod(self.path('client.key'), 0o600)

    def check(self, spoil, says, mend, env=None, tls='ca: DIR/ca.pem, cert: DIR/client.pem, key: DIR/client.key'):
        spoil(self)
        agent = Agent(self, self.with_server('tls: {' + tls.replace('DIR', self.dir) + '}', self.https.url), env=env)
        self.blames_this_host(agent, says)
        mend(self)
        agent.log.wait('published config=web')
        agent.stop()

    def blames_this_host(self, agent, says):
        agent.log.wait(says)
        for _ in range(3):
            self.assertRegex(agent.refresh()['error'], says)
        status = agent.status()
        self.assertRegex(status['last_error'], says)
        self.assertEqual(status['cause'], 'this host')
        for address in json.loads(agent.get('/v1/status')[1])['servers'][0]['addresses']:
            self.assertEqual((address['backoff_ms'], address['failures_in_a_row'], address['error']), (0, 0, None))

    def test_a_key_that_the_agents_user_cannot_read(self):
        prefix = self.as_user(AS_USER)
        changed_owner('')[0](self)
        self.close_file('client.key')
        text = self.with_server(f'tls: {{ca: {self.path("ca.pem")}, cert: {self.path("client.pem")}, key: {self.path("client.key")}}}', self.https.url)
        agent = Agent(self, text, valgrind=prefix)
        self.blames_this_host(agent, re.escape(self.path('client.key')) + ': tls.key ' + NOT_READ)
        self.open_file('client.key')
        agent.log.wait('published config=web')
        agent.stop()


def no_pem(name):
    return lambda t: t.write(name, 'no certificate\n'), lambda t: shutil.copy(t.authorities.path(name), t.path(name))


def hidden(name):
    return lambda t: t.hide(name), lambda t: t.bring_back(name)


NOT_THERE = ' cannot be read: No such file or directory: make it, or name another one'
CERTIFICATES = {
    'no certificate authorities': (hidden('ca.pem')[0], '/ca.pem: tls.ca' + NOT_THERE, hidden('ca.pem')[1]),
    'certificate authorities that are no PEM': (no_pem('ca.pem')[0], '/ca.pem: tls.ca cannot be read, or holds no certificate in PEM', no_pem('ca.pem')[1]),
    'no bundle of the system': (hidden('ca.pem')[0], r'/ca.pem: .*\(if it is not set: mend SSL_CERT_FILE, or install ca-certificates\)', hidden('ca.pem')[1],
                                {'SSL_CERT_FILE': 'DIR/ca.pem'}, 'min_version: "1.2"'),
    'no certificate of this host': (hidden('client.pem')[0], '/client.pem: tls.cert' + NOT_THERE, hidden('client.pem')[1]),
    'no key of this host': (hidden('client.key')[0], '/client.key: tls.key' + NOT_THERE, hidden('client.key')[1]),
    'a key of this host that is none': (no_pem('client.key')[0], 'it cannot be read, or is not the key of tls.cert', no_pem('client.key')[1]),
}


def check_certificates(test, spoil, says, mend, env=None, *tls):
    test.check(spoil, says, mend, {k: v.replace('DIR', test.dir) for k, v in (env or {}).items()}, *tls)


add_tests(Certificates, CERTIFICATES, check_certificates)


class Page(unittest.TestCase):
    """DIAGNOSTICS in pulletd(8)."""

    # who writes a line, and who hands one on: which argument the line is
    WRITERS = {'log_err': 0, 'log_warn': 0, 'log_info': 0, 'config_report_failure': 1, 'run_fail': 2, 'run_note_failure': 1, 'run_note_rejection': 1, 'step_fail': 1,
               'decisions_drop_pin': 1, 'pull_failed': 2, 'warn_lag': 1}
    HANDED_ON = ('rejection_text(REJECTED_BY_SIGNATURE, what)', 'what', 'answer->note', 'NULL')  # their names there: what is put into them is collected, too

    @classmethod
    def setUpClass(cls):
        agent = os.path.join(harness.ROOT, 'agent')
        with open(agent + '/pulletd.8', encoding='utf-8') as f:
            section = f.read().split('.Sh DIAGNOSTICS\n')[1].split('\n.Sh ')[0]
        lists = re.findall(r'\.Bl -diag.*?\n(.*?)\.El', section, re.S)
        cls.told = [line.removeprefix('.It ') for text in lists for line in text.split('\n') if line.startswith('.It ')]
        cls.sources = {}
        for path in [p for p in glob.glob(f'{agent}/**/*.[ch]', recursive=True) if not p.startswith(f'{agent}/cli/')]:
            with open(path, encoding='utf-8') as f:  # what the compiler makes of adjacent literals
                cls.sources[os.path.relpath(path, agent)] = re.sub(r'"\s*\n\s*"', '', re.sub(r'/\*.*?\*/', '', f.read(), flags=re.S))
        cls.macros = {}
        for text in cls.sources.values():
            cls.macros.update(re.findall(r'#define (\w+)\s(?:\\\s)*"([^"\n]*)"', text))

    @staticmethod
    def arguments(text, start):
        """Of a call, from behind its parenthesis on."""
        found, depth, begin, i = [], 0, start, start
        while depth >= 0:
            i += len(re.match(r'"(?:\\.|[^"\\])*"|.', text[i:], re.S)[0])
            last = text[i - 1]
            depth += {'(': 1, '{': 1, ')': -1, '}': -1}.get(last, 0)
            if depth < 0 or (depth == 0 and last == ','):
                found.append(text[begin:i - 1].strip())
                begin = i
        return found

    def collect(self, sources):
        """The texts of all lines, and the places whose text is not seen."""
        said, unseen = set(), []
        for name, text in sources.items():
            named = {**self.macros, **dict(re.findall(r'static const char (\w+)\[\] = "([^"\n]*)"', text))}
            for m in re.finditer(r'\b(%s)\(' % '|'.join(self.WRITERS), text):
                if re.search(r'(?:void|define) $', text[:m.start()]):
                    continue
                argument = self.arguments(text, m.end())[self.WRITERS[m[1]]]
                chosen = re.sub(r'\w\((?:[^()"]|"[^"]*")*\)', '', argument)  # what a condition compares with is no text
                found = re.findall(r'"([^"]*)"', chosen) + [named[word] for word in re.findall(r'\w+', re.sub('"[^"]*"', '', chosen)) if word in named]
                said.update(found)
                if not found and argument not in self.HANDED_ON:
                    unseen.append(f'{name}: {m[1]}({argument})')
            if name == 'config/rejection.c' or name.startswith('pull/kinds/'):
                said.update(re.findall(r'snprintf\((?:what|ret->note|note), [^"]*"([^"%]*%?s?[^"%]*)', text))
        return said, unseen

    def unexplained(self, said):
        def explains(told, text):
            return re.fullmatch(re.sub('%s', '[A-Z]+', re.escape(text)), told) or text.startswith((told + ':', told + ';')) or text.endswith(': ' + told)
        return sorted(text for text in said if not any(explains(told, text) for told in self.told))

    def test_what_it_explains_is_said(self):
        self.assertGreater(len(self.told), 100)
        self.assertEqual([t for t in self.told if not any(re.search(f'[" ]{re.escape(t).replace("CHECK", "%s")}[":;]', s) for s in self.sources.values())], [])

    def test_every_line_that_the_agent_logs_is_explained(self):
        said, unseen = self.collect(self.sources)
        self.assertEqual(unseen, [])
        self.assertGreater(len(said), 100)
        self.assertEqual(self.unexplained(said), [])

    def test_lines_that_are_not_explained_would_be_found(self):
        for line, says in (('log_warn("a new line", "key", value);', 'a new line'), ('config_report_failure(c, x ? "pinned" : "a new\\" line: so", why);', None),
                           ('warn_lag(c, y() ? "one new line" : "unpinned");', 'one new line'), ('log_info(text, "key", value);', None)):
            said, unseen = self.collect({'new.c': line})
            self.assertTrue(unseen or self.unexplained(said), line)
            self.assertTrue(says is None or says in self.unexplained(said), line)


if __name__ == '__main__':
    harness.main()
