"""The Debian package in a booted systemd: installed, started, reloaded, killed, upgraded, removed, purged; and every feature under the sandbox.

A container of systemd-nspawn on a fresh root (root.sh), without a network: it and the servers of the tests share a network of their
own, of which this process is a part. Needs root. The tests run in the order of their names, each with the installed package as the
one before left it.
"""
import contextlib
import ctypes
import fcntl
import glob
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

from packages import LAYOUT_BEFORE, PACKAGES, ROOT, secure_servers, timed, took
import harness
import test_service
from harness import FaultServer, Program, children, good

CLONE_NEWNET, PR_SET_PDEATHSIG = 0x40000000, 1
DEADLINE = 60
CONFIG = '''configs:
  web:
    url: {url}/web.yaml
    file: /run/pullet/web.yaml
    interval: 200ms
{more}'''
APP = """[Unit]
Wants=pullet-ready.service
After=pullet-ready.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/echo the application runs
"""


def call(*args, **kw):
    done = subprocess.run(args, capture_output=True, text=True, timeout=DEADLINE * 4, check=False, **kw)
    if done.returncode:
        raise AssertionError(f'{args}: {done.returncode}\n{done.stdout}{done.stderr}')
    return done.stdout


def package(name):
    found = glob.glob(f'{PACKAGES}/deb/{name}_[0-9]*.deb')
    assert len(found) == 1, f'{found}: `make deb` first'
    return found[0]


def die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def with_version(deb, version, into):
    """The same package with another version number."""
    tree = os.path.join(into, 'tree')
    call('dpkg-deb', '-R', deb, tree)
    path = os.path.join(tree, 'DEBIAN/control')
    with open(path, encoding='utf-8') as f:
        control = f.read()
    with open(path, 'w', encoding='utf-8') as f:
        f.write(re.sub('^Version: .*$', f'Version: {version}', control, flags=re.M))
    made = os.path.join(into, f'pullet_{version}.deb')
    call('dpkg-deb', '--root-owner-group', '-b', tree, made)
    shutil.rmtree(tree)
    return made


class Machine:
    """A booted container; one at a time, since the control groups of each have the same names."""

    def __init__(self, root):
        notify = os.path.join(os.path.dirname(root), 'notify')
        with contextlib.suppress(FileNotFoundError):
            os.unlink(notify)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ready:
            ready.bind(notify)
            # in a space of processes of its own, which ends with this process, however that comes about
            self.nspawn = Program(['unshare', '--pid', '--fork', '--kill-child', '--mount-proc', 'systemd-nspawn', '--quiet', '--register=no', '--keep-unit',
                                   '--notify-ready=yes', '--console=pipe', '-D', root, '-b'], env={'NOTIFY_SOCKET': notify}, read='both',
                                  preexec_fn=die_with_parent)
            ready.settimeout(DEADLINE)
            text = ''
            while 'READY=1' not in text:
                try:
                    text = ready.recv(4096).decode()
                except TimeoutError:
                    self.nspawn.process.kill()
                    raise AssertionError('\n'.join(['it does not boot:', *self.nspawn.log.drain()])) from None
        self.leader = children(children(self.nspawn.pid)[0])[-1]
        self.follower = Program(self.inside('journalctl', '-f', '-n', '0', '-o', 'cat'), read='stdout')
        self.journal = self.follower.log

    def inside(self, *args):
        return ['nsenter', '-t', str(self.leader), '-a', '--', *args]

    def run(self, *args, check=0, **kw):
        """Runs a program in it; its standard output."""
        done = subprocess.run(self.inside(*args), capture_output=True, text=True, timeout=DEADLINE, check=False, **kw)
        if check is not None and done.returncode != check:
            with contextlib.suppress(AssertionError):
                self.journal.wait('$^', timeout=0.5)  # all that there is
            raise AssertionError('\n'.join([f'{args}: {done.returncode}', done.stdout, done.stderr, 'journal:', *self.journal.seen[-30:]]))
        return done.stdout

    def path(self, name):
        """Of a file in it, seen from here; to be read only, since an absolute link on the way leads out of it."""
        return f'/proc/{self.leader}/root{name}'

    def write(self, name, text, mode=0o644):
        self.run('install', '-m', f'{mode:o}', '/dev/stdin', name, input=text)

    def read(self, name):
        return self.run('cat', name)

    def show(self, name, unit='pullet'):
        return self.run('systemctl', 'show', '-P', name, unit).strip()

    def off(self):
        """And its control groups, which systemd-nspawn leaves behind."""
        self.follower.close()
        os.kill(self.leader, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.nspawn.wait(10)
        self.nspawn.close()
        for top in glob.glob('/sys/fs/cgroup/*/payload') + glob.glob('/sys/fs/cgroup/*/supervisor'):
            for group, _, _ in os.walk(top, topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(group)


class Readers:
    """Read the published file again and again: each time it is there, and whole."""

    def __init__(self, path):
        self.path, self.reads, self.bad, self.end = path, 0, [], threading.Event()
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        while not self.end.wait(0.001):
            try:
                with open(self.path, 'rb') as f:
                    data = f.read()
            except OSError as e:
                data = repr(e).encode()
            self.reads += 1
            if not re.fullmatch(rb'n: \d+\n#{1000}\n', data):
                self.bad.append(data[:80])

    def stop(self):
        self.end.set()
        self.thread.join()
        return self.reads, self.bad


class Systemd(harness.Case):
    @classmethod
    def setUpClass(cls):
        """The only one on this machine that boots a container; the root, with what the package depends on; the network; the container."""
        turn = os.open('/sys/fs/cgroup', os.O_RDONLY)
        cls.addClassCleanup(os.close, turn)
        fcntl.flock(turn, fcntl.LOCK_EX)
        cls.base = tempfile.mkdtemp(prefix='pullet-systemd-', dir='/var/tmp')
        cls.addClassCleanup(shutil.rmtree, cls.base, ignore_errors=True)
        cls.new, cls.old = package('pullet'), with_version(package('pullet'), '0.0.1-1', cls.base)
        needs = re.findall(r'(?:^|, )([a-z0-9.+-]+)', call('dpkg-deb', '-f', cls.new, 'Depends'))
        cls.root = root = os.path.join(cls.base, 'root')
        with timed('a root with what is depended on'):
            call(ROOT + '/tests/packages/root.sh', root, 'systemd-sysv', 'dbus', 'nginx-light', *needs)
        shutil.copy(cls.new, root + '/root/new.deb')
        shutil.copy(cls.old, root + '/root/old.deb')
        os.unlink(root + '/etc/nginx/sites-enabled/default')
        if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), 'unshare')
        call('ip', 'link', 'set', 'lo', 'up')
        with timed('boot'):
            cls.machine = Machine(root)
        cls.addClassCleanup(lambda: cls.machine.off())  # the one of then
        cls.generation = cls.marks = 0

    def setUp(self):
        super().setUp()
        self.m = self.machine
        self.server = FaultServer(self)
        self.change()

    def change(self):
        """A new version on the server."""
        Systemd.generation += 1
        self.body = f'n: {self.generation}\n{"#" * 1000}\n'
        self.server.behave = good(self.body.encode(), f'ETag: "{self.generation}"\r\n')

    def configure(self, more='', text=None):
        self.m.write('/etc/pullet/pullet.yaml', text or CONFIG.format(url=self.server.url, more=more), 0o640)
        self.m.run('chgrp', 'pullet', '/etc/pullet/pullet.yaml')

    def seen(self):
        """A mark in the journal, behind all that has happened, for what is waited for from here on."""
        Systemd.marks += 1
        self.m.run('systemd-cat', 'echo', f'-- mark {self.marks} --')
        self.m.journal.wait(f'-- mark {self.marks} --', 0, DEADLINE)
        return self.m.journal.count

    def log(self, pattern, start):
        return self.m.journal.wait(pattern, start, DEADLINE)

    def ready_after(self, begin, what):
        """Seconds, by systemd's own account: what follows the journal hears of it some quarters of a second later."""
        started, ready = (int(self.m.show(name + 'TimestampMonotonic')) / 1e6 for name in ('ExecMainStart', 'ActiveEnter'))
        took(ready - begin, f'{what} until ready again, {(ready - started) * 1000:.0f} ms of it sandbox and agent')
        return ready - begin

    def status(self, name='web'):
        return json.loads(self.m.run('pullet', 'status', name, '--json'))

    def start(self, *more):
        """And what is configured has a version."""
        self.configure(*more)
        self.m.run('systemctl', 'restart', 'pullet')
        self.m.run('pullet', 'wait', '--ready')

    # ---- the life of the service

    def test_1_install(self):
        with timed('install'):
            self.m.run('dpkg', '-i', '/root/old.deb')
        self.assertEqual(self.m.show('UnitFileState'), 'enabled')
        # nothing is configured, which is no failure
        self.assertEqual((self.m.show('ActiveState'), self.m.show('Result')), ('inactive', 'exec-condition'))
        self.assertEqual(self.m.run('stat', '-c', '%A %U %G', '/etc/pullet').strip(), 'drwxr-x--- root pullet-config')
        self.assertEqual(self.m.run('id', '-nG', 'pullet').strip(), 'pullet pullet-config')

    def test_2_boot(self):
        """With every server down and nothing published neither boot, start nor reload waits; what is ordered after pullet-ready.service does."""
        behave, self.server.behave = self.server.behave, harness.reset
        self.configure()
        self.m.write('/etc/systemd/system/app.service', APP)
        self.machine.off()
        with timed('boot, with every server down'):
            Systemd.machine = self.m = Machine(self.root)
        self.assertEqual(self.m.run('systemctl', 'is-active', 'multi-user.target', 'pullet').split(), ['active', 'active'])
        self.assertEqual(self.m.run('systemctl', 'list-jobs', '--no-legend'), '')
        self.assertRegex(self.m.show('StatusText'), '^0 configs ok; waiting for the first version of 1: web')
        start = self.seen()
        self.m.run('systemctl', 'start', '--no-block', 'app')
        for verb in 'restart', 'reload':
            with timed(verb + ', with every server down', 10):
                self.m.run('systemctl', verb, 'pullet')
            self.assertEqual([self.m.show('ActiveState', unit) for unit in ('pullet', 'pullet-ready', 'app')], ['active', 'activating', 'inactive'])
        self.server.behave = behave
        self.log('Finished pullet-ready.service', start)
        self.log('the application runs', start)
        self.assertEqual(self.m.read('/run/pullet/web.yaml'), self.body)
        self.assertIn('1 config ready', '\n'.join(self.m.journal.seen))
        self.m.run('systemctl', 'restart', 'pullet')  # which restarts nothing else
        self.assertEqual([self.m.show('ActiveState', unit) for unit in ('pullet-ready', 'app')], ['active', 'active'])
        self.m.run('systemd-analyze', 'security', '--threshold=15', 'pullet-ready')

    def test_2_start(self):
        """With a bad configuration; from the last known good."""
        self.configure(text='config:\n  web: {}\n')  # not skipped: something is there, and it is wrong
        self.m.run('systemctl', 'stop', 'pullet')
        self.m.run('systemctl', 'start', 'pullet', check=1)
        self.assertEqual((self.m.show('ActiveState'), self.m.show('ExecMainStatus'), self.m.show('NRestarts')), ('failed', '78', '0'))
        self.configure()
        with timed('start, from the last known good'):
            self.m.run('systemctl', 'start', 'pullet')
        self.assertEqual(self.m.show('StatusText'), '1 config ok')

    def test_3_reload(self):
        """Good, and bad: then the command fails, and the agent goes on with what it has."""
        self.start()
        pid = self.m.show('MainPID')
        self.configure('  more:\n    url: ' + self.server.url + '/more.yaml\n    file: /run/pullet/more.yaml\n')
        start = self.seen()
        with timed('reload, good'):
            self.m.run('systemctl', 'reload', 'pullet')
            self.log('published config=more', start)
        self.configure('    nonsense: 1\n')
        start = self.seen()
        with timed('reload, bad'):
            self.m.run('systemctl', 'reload', 'pullet', check=1)
        self.log('nonsense', start)
        self.assertEqual(self.m.show('ActiveState'), 'active')
        self.assertEqual(self.status('more')['state'], 'ok')
        self.assertEqual(self.m.show('MainPID'), pid)
        self.configure()
        self.m.run('systemctl', 'reload', 'pullet')

    def test_4_kill(self):
        """Back in under a second from the last known good, with the server down; readers notice nothing."""
        self.start()
        waits = Program(self.m.inside('pullet', 'watch', 'web'), read='stdout')
        self.addCleanup(waits.close)
        waits.log.wait(f'^{self.status()["generation"]} ')
        self.server.behave = harness.reset
        readers = Readers(self.m.path('/run/pullet/web.yaml'))
        times = []
        for _ in range(3):
            start, begin = self.seen(), time.monotonic()
            self.m.run('systemctl', 'kill', '--kill-who=main', '-s', 'KILL', 'pullet')
            self.log('Started pullet.service', start)
            times.append(self.ready_after(begin, 'kill -9'))
            self.log('started from the last known good', start)
        self.assertLess(sorted(times)[1], 1, 'the median: one may be that of a machine that has other things to do')
        reads, bad = readers.stop()
        self.assertEqual(bad, [])
        self.assertGreater(reads, 100)
        generation = self.status()['generation']
        self.change()
        waits.log.wait(f'^{generation + 1} ')  # the one that has waited all the time

    def drop_in(self, text, unit='pullet.service'):
        """Until the end of the test."""
        path = f'/run/systemd/system/{unit}.d'
        self.m.run('mkdir', '-p', path)
        self.m.write(path + '/test.conf', text)
        self.m.run('systemctl', 'daemon-reload')

        def undo():
            self.m.run('rm', '-r', path)
            self.m.run('systemctl', 'daemon-reload')
        self.addCleanup(undo)

    def test_5_watchdog(self):
        """A stopped agent is not waited for longer than the watchdog's time, which is shortened here."""
        self.assertEqual(self.m.show('WatchdogUSec'), '1min')
        self.drop_in('[Service]\nWatchdogSec=2s\n')
        self.start()
        readers, start = Readers(self.m.path('/run/pullet/web.yaml')), self.seen()
        threading.Event().wait(3)  # it is fed; time itself is what is looked at
        self.assertEqual(self.m.show('NRestarts'), '0')
        begin = time.monotonic()
        self.m.run('systemctl', 'kill', '--kill-who=main', '-s', 'STOP', 'pullet')
        self.log('Watchdog timeout', start)
        self.log('Started pullet.service', start)
        self.assertLess(self.ready_after(begin, 'SIGSTOP, with a watchdog of 2 s,'), 5)
        self.assertEqual(readers.stop()[1], [])

    def test_6_stop(self):
        """In under 2 s, also while a server does not answer or a program runs; what was published stays."""
        self.start()
        with timed('stop', 2):
            self.m.run('systemctl', 'stop', 'pullet')
        self.start()
        self.server.behave = held = test_service.Held(self.server.behave)
        self.assertTrue(held.asked.wait(DEADLINE))
        with timed('stop while a server does not answer', 2):
            self.m.run('systemctl', 'stop', 'pullet')
        self.m.write('/usr/local/bin/slow', '#!/bin/sh\ntrap "" TERM\n: >/run/pullet/slow\nsleep 100\n', 0o755)
        self.start('    check: {run: [/usr/local/bin/slow, "{path}"], timeout: 60s}\n')
        self.change()
        self.wait_file('/run/pullet/slow')
        with timed('stop while a program runs that does not want to', 2):
            self.m.run('systemctl', 'stop', 'pullet')
        self.assertEqual((self.m.show('ActiveState'), self.m.show('Result')), ('inactive', 'success'))
        self.assertRegex(self.m.read('/run/pullet/web.yaml'), r'^n: \d+\n')

    def wait_file(self, name):
        """Until it is there: by inotify, from inside."""
        script = 'import sys, ctypes, os, select\n' \
                 'path, libc = sys.argv[1], ctypes.CDLL(None)\n' \
                 'fd = libc.inotify_init1(0)\n' \
                 'libc.inotify_add_watch(fd, os.path.dirname(path).encode(), 0x100 | 0x80)\n' \
                 'while not os.path.exists(path):\n' \
                 '    assert select.select([fd], [], [], 30)[0], "no " + path\n' \
                 '    os.read(fd, 4096)\n'
        call('/usr/bin/python3', '-c', script, self.m.path(name))

    # ---- under the sandbox

    def everything(self):
        """Servers, a drop-in and a configuration with TLS, a token of systemd's, CURVE, the directory of an application, the readers' group,
        programs and a listener. The agent is started again with them; the text of the configuration."""
        self.m.run('sh', '-c', 'groupadd -f readers && install -d -o pullet -g pullet -m 755 /srv/app && chmod 755 /srv')
        self.m.write('/etc/token', 's3cret\n', 0o600)
        self.drop_in('[Service]\nReadWritePaths=/srv/app\nLoadCredential=token:/etc/token\nSupplementaryGroups=readers\n')
        servers = secure_servers(self)
        with open(servers.ca, encoding='ascii') as f:
            self.m.write('/etc/ca.pem', f.read())
        self.write('www/tls.yaml', 'tls: 1\n')
        self.write('www/app.yaml', 'app: 1\n')
        # what the program of the check may not do; and what the one of the reload may
        self.m.write('/usr/local/bin/look', '#!/bin/sh\ngrep -q "app:" "$1" && ! touch /etc/touched && ! touch /srv/touched && ! kill -0 1\n', 0o755)
        text = f"""agent:
  listen: 127.0.0.1:9377
push:
  - endpoint: {servers.endpoint}
    curve: {{server_key: '{servers.public}'}}
    heartbeat: 1s
servers:
  tls:
    urls: [{servers.nginx.url}]
    tls: {{ca: /etc/ca.pem}}
    auth: {{bearer_file: /run/credentials/pullet.service/token}}
configs:
  tls:
    from: [{{server: tls, path: /tls.yaml}}]
    file: /run/pullet/tls.yaml
  app:
    url: {servers.url}/app.yaml
    interval: 1h
    file: /srv/app/app.yaml
    owner: ":readers"
    mode: "0640"
    check: {{run: [/usr/local/bin/look, "{{path}}"]}}
    reload: {{run: [/usr/bin/touch, /run/pullet/told]}}
"""
        self.configure(text=text)
        with timed('restart, until a pull over TLS and one into the directory of an application are published'):
            self.m.run('systemctl', 'restart', 'pullet')
            self.m.run('pullet', 'wait', '--ready')
        return text

    def test_7_every_feature_under_the_sandbox(self):
        start = self.seen()
        self.everything()
        self.until(lambda: self.m.show('StatusText') == '2 configs ok', 'the status is not that of both configs')  # it comes once a second at most
        self.assertEqual(self.m.read('/run/pullet/tls.yaml'), 'tls: 1\n')
        self.assertEqual(self.m.run('stat', '-c', '%A %U %G', '/srv/app/app.yaml').strip(), '-rw-r----- pullet readers')
        self.wait_file('/run/pullet/told')
        self.log('push channel connected', start)
        start = self.seen()
        begin = time.time()
        self.write('www/app.yaml', 'app: 2\n')
        self.log('published config=app', start)
        took(os.stat(self.m.path('/srv/app/app.yaml')).st_mtime - begin, 'a push over CURVE until it is published')
        self.assertEqual(self.m.read('/srv/app/app.yaml'), 'app: 2\n')
        self.assertEqual(self.m.run('pullet', 'get', 'app', 'app').strip(), '2')
        with socket.create_connection(('127.0.0.1', 9377), DEADLINE) as c:
            c.sendall(b'GET /readyz HTTP/1.0\r\nHost: 127.0.0.1:9377\r\n\r\n')
            self.assertIn(b'200 OK', c.recv(4096))
        self.m.run('systemd-analyze', 'security', '--threshold=15', 'pullet')
        status = self.m.read(f'/proc/{self.m.show("MainPID")}/status')
        for line in ('CapEff:\t0000000000000000', 'CapBnd:\t0000000000000000', 'NoNewPrivs:\t1', 'Seccomp:\t2'):
            self.assertIn(line + '\n', status)

    def doctor(self, user, code):
        """{(check, subject, what was found)} of what is wrong, by `pullet doctor` of that user, which must end with the code."""
        said = self.m.run('setpriv', '--reuid', user, '--regid', user, '--init-groups', 'pullet', 'doctor', '--json', check=code)
        return {(f['check'], f['subject'], f['finding']) for f in json.loads(said) if f['severity'] not in ('ok', 'note')}

    def test_7_what_the_doctor_finds(self):
        """As root and as the agent's user: nothing where all is well; and what would not work under the sandbox, before anybody tries it."""
        start = self.seen()
        text = self.everything()
        self.log('push channel connected', start)
        for user in 'root', 'pullet':
            with timed('doctor, as ' + user):
                self.assertEqual(self.doctor(user, 0), set())
        self.m.run('install', '-d', '-o', 'pullet', '/opt/shut')
        url = re.search('url: (.*)', text)[1]
        planted = (('shut', '/opt/shut/app.yaml', '', 'files', 'read-only for the service|the service may not write'),
                   ('sudo', '/run/pullet/sudo.yaml', 'run: [/bin/su, -c, reboot]', 'hooks', 'su is set-user-ID, which the service forbids'),
                   ('call', '/run/pullet/call.yaml', 'run: [/usr/bin/systemctl, reload, nginx]', 'hooks', 'systemctl will refuse pullet'),
                   ('kill', '/run/pullet/kill.yaml', 'signal: HUP, pidfile: /run/nginx.pid', 'hooks', 'pullet may not signal process'))
        self.configure(text=text + ''.join(f'  {name}:\n    url: {url}\n    file: {path}\n' + (f'    reload: {{{reload}}}\n' if reload else '')
                                           for name, path, reload, _, _ in planted))
        for user in 'root', 'pullet':
            found = self.doctor(user, 1)
            for name, path, _, check, pattern in planted:
                about = [f for f in found if f[0] == check and f[1] in (name, os.path.dirname(path))]
                self.assertEqual(len(about), 1, (user, name, found))
                self.assertRegex(about[0][2], pattern)

    def test_8_hooks_that_need_privileges(self):
        """The example of pulletd(8): an agent without privileges, and nginx that is reloaded, once more for what changes meanwhile, until it works."""
        self.server.behave = good(b'location = /v { return 200 "v0"; }\n')
        site = '  site:\n    url: {}/site.conf\n    type: bytes\n    file: /run/pullet/site.conf\n    interval: 100ms\n' \
               '    reload: {{run: [/usr/bin/touch, /run/pullet-changed/nginx]}}\n'.format(self.server.url)
        self.m.write('/etc/nginx/conf.d/site.conf', 'server { listen 127.0.0.1:8080; include /run/pullet/site.conf; }\n')
        self.m.write('/etc/pullet/changed.d/nginx', '#!/bin/sh -e\n[ ! -e /run/fail ]\nnginx -q -t\nsystemctl reload nginx\n'
                     'if [ -p /run/hold ]; then : >/run/held; read line </run/hold; fi\n', 0o755)
        self.drop_in('[Service]\nRestartSec=500ms\n', 'pullet-changed@.service')
        self.configure(text='configs:\n' + site)
        self.m.run('systemctl', 'enable', '--now', 'pullet-changed@nginx.path')
        start = self.seen()
        self.m.run('setpriv', '--reuid=nobody', '--regid=nogroup', '--groups=pullet', 'touch', '/run/pullet-changed/nginx', check=1)  # a reader
        self.m.run('systemctl', 'restart', 'pullet')
        self.m.run('systemctl', 'restart', 'nginx')
        self.log('Finished pullet-changed@nginx.service', start)
        start = self.seen()
        with timed('a change until nginx has it'):
            self.server.behave = good(b'location = /v { return 200 "v1"; }\n')
            self.log('Finished pullet-changed@nginx.service', start)
            self.answer('v1')
        self.m.run('mkfifo', '/run/hold')
        self.server.behave = good(b'location = /v { return 200 "v2"; }\n')
        self.wait_file('/run/held')  # nginx has this one, and the program has not ended
        start = self.seen()
        for i in range(3, 6):
            self.server.behave = good(b'location = /v { return 200 "v%d"; }\n' % i)
            self.log('reload succeeded', start)
            start = self.seen()
        self.m.run('sh', '-c', 'exec 3>/run/hold; rm /run/hold; echo >&3')
        self.log('Finished pullet-changed@nginx.service', start)
        self.answer('v5')
        self.m.write('/run/fail', '')
        start = self.seen()
        self.server.behave = good(b'location = /v { return 200 "last"; }\n')
        self.log('pullet-changed@nginx.service: Failed', start)
        self.m.run('rm', '/run/fail')
        self.answer('last')
        self.m.run('systemctl', 'disable', '--now', 'pullet-changed@nginx.path')
        self.m.run('rm', '/etc/pullet/changed.d/nginx')

    def answer(self, want):
        """Until nginx says this: it tells nobody when its new workers have taken over."""
        end, said = time.monotonic() + DEADLINE, b''
        while not said.endswith(want.encode()):
            self.assertLess(time.monotonic(), end, said)
            threading.Event().wait(0.02)
            with socket.create_connection(('127.0.0.1', 8080), DEADLINE) as c:
                c.sendall(b'GET /v HTTP/1.0\r\n\r\n')
                said = c.makefile('rb').read()

    # ---- upgrade, remove, purge

    def test_9_upgrade_downgrade_remove_purge(self):
        self.start()
        self.m.run('pullet', 'refresh', 'web', '--wait')  # the server has what another test put there
        version_of = {deb: call('dpkg-deb', '-f', path, 'Version').strip() for deb, path in (('old', self.old), ('new', self.new))}
        for deb in ('new', 'old', 'new'):
            version = version_of[deb]
            before, pid = self.status(), self.m.show('MainPID')
            readers = Readers(self.m.path('/run/pullet/web.yaml'))
            self.m.run('sh', '-c', LAYOUT_BEFORE)
            with timed(f'from the installed version to {version}'):
                self.m.run('dpkg', '--force-confold', '-i', f'/root/{deb}.deb')
            self.assertEqual(readers.stop()[1], [])
            self.assertEqual(self.m.run('dpkg-query', '-f', '${Version}', '-W', 'pullet'), version)
            self.assertEqual(self.m.show('ActiveState'), 'active')
            self.assertNotEqual(self.m.show('MainPID'), pid)
            self.assertEqual(self.status()['generation'], before['generation'])
            self.assertIn(self.server.url, self.m.read('/etc/pullet/pullet.yaml'))
            for refused in ('cat /etc/pullet/pullet.yaml', 'touch /run/pullet-changed/web'):
                self.m.run('setpriv', '--reuid=nobody', '--regid=nogroup', '--groups=pullet', *refused.split(), check=1)
        generation = self.status()['generation']
        with timed('remove'):
            self.m.run('dpkg', '-r', 'pullet')
        self.assertEqual(self.m.show('ActiveState'), 'inactive')
        self.assertTrue(os.path.exists(self.m.path('/var/lib/pullet/web')))
        self.assertTrue(os.path.exists(self.m.path('/etc/pullet/pullet.yaml')))
        start = self.seen()
        self.m.run('dpkg', '-i', '/root/new.deb')
        self.log('started from the last known good', start)
        self.assertEqual(self.status()['generation'], generation)
        with timed('purge'):
            self.m.run('dpkg', '-P', 'pullet')
        self.assertEqual([f for f in ('/etc/pullet', '/var/lib/pullet', '/run/pullet', '/run/pullet-changed', '/usr/sbin/pulletd')
                          if os.path.exists(self.m.path(f))], [])
        self.assertEqual(self.m.run('systemctl', 'list-unit-files', '--no-legend', 'pullet*', check=None), '')


if __name__ == '__main__':
    harness.main()
