"""The system calls of the agent in a life with every feature, outside of the sandbox, and what pullet.service allows of them: all.

The agent runs under strace; what its threads call counts, and what a child of it calls until it has become another program. Needs root, for the
owner of a file, and systemd-analyze, which knows what @system-service stands for. A network of its own, where no name server answers.
"""
import ctypes
import os
import re
import signal
import socket
import subprocess

from packages import ROOT, run, secure_servers
import harness
import test_service
from harness import Agent

CLONE_NEWNET = 0x40000000
NAMES = ('tls', 'app', 'local', 'set')  # of the configs
EXCEPTIONS = '(?m)^SystemCallFilter=([^@~\n]*)$'  # single calls that the unit allows as well

# What other settings of the unit refuse by the arguments of a call, and a line with it.
REFUSED = {
    # glibc asks AF_NETLINK what addresses there are before it looks a name up, and does without an answer
    'RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6': (r'socket\((?!AF_UNIX|AF_INET|AF_NETLINK)', 'socket(AF_PACKET, SOCK_RAW, 768) = 3'),
    'RestrictNamespaces=yes': (r'(unshare|setns)\(|clone.*CLONE_NEW', 'clone3({flags=CLONE_NEWUSER, exit_signal=0}, 88) = 3'),
    'RestrictRealtime=yes': (r'sched_set\w+\(.*SCHED_(FIFO|RR|DEADLINE)', 'sched_setscheduler(3, SCHED_RR, [1]) = 0'),
    'RestrictSUIDSGID=yes': (r'\w*(chmod|open|creat|mkdir|mknod)\w*\(.*, 0[2-7]\d{3}\b', 'fchmodat(AT_FDCWD, "x", 04755) = 0'),
    'LockPersonality=yes': (r'personality\(', 'personality(PER_LINUX32) = 0'),
    'MemoryDenyWriteExecute=yes': (r'mmap\(.*PROT_WRITE\|PROT_EXEC|(pkey_)?mprotect\(.*PROT_EXEC|shmat\(.*SHM_EXEC',
                                   'mprotect(0x7f0000000000, 4096, PROT_READ|PROT_EXEC) = 0'),
}


def unit():
    with open(ROOT + '/packaging/systemd/pullet.service', encoding='utf-8') as f:
        return f.read()


def groups():
    """{"@name": what it stands for}, groups within groups still by their names."""
    found, group = {}, None
    for line in run('systemd-analyze', 'syscall-filter').splitlines():
        if line.startswith('@'):
            group = found.setdefault(line, [])
        elif line.startswith(' ') and not line.strip().startswith('#'):
            group.append(line.strip())
    return found


def allowed(text):
    """The calls that the SystemCallFilter= lines of a unit leave, an allow list, as systemd.exec(5) reads them."""
    known = groups()

    def expand(name):
        return set().union(*map(expand, known[name])) if name[0] == '@' else {name}
    left = expand('@default')
    for line in re.findall('^SystemCallFilter=(.*)$', text, re.M):
        for name in line.lstrip('~').split():
            left = left - expand(name) if line[0] == '~' else left | expand(name)
    return left


def calls(directory, pid):
    """The lines of strace -ff that are the agent's."""
    with open(f'{directory}/t.{pid}', encoding='utf-8', errors='replace') as f:
        lines = f.readlines()
    for i, line in enumerate(lines):
        yield line
        child = re.match(r'(?:clone3?|v?fork)\(.* = (\d+)', line)
        if child:
            yield from calls(directory, child[1])
        if i and re.match(r'execve\(.* = 0$', line):
            return


class Syscalls(harness.Case):
    @classmethod
    def setUpClass(cls):
        if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), 'unshare')
        for command in (['link', 'set', 'lo', 'up'], ['route', 'add', 'default', 'dev', 'lo']):
            run('ip', *command)

    def test_the_unit_allows_what_the_agent_calls(self):
        lines = self.lives()
        used = {match[0] for match in map(re.compile(r'\w+').match, lines) if match}
        print(f'{len(used)} system calls of {len(lines)}, {len(allowed(unit()))} are allowed')
        self.assertEqual(sorted(used - allowed(unit())), [], 'the unit forbids these')
        self.assertEqual(used - allowed(re.sub(EXCEPTIONS, '', unit())), set(re.search(EXCEPTIONS, unit())[1].split()), 'each exception is needed')
        for setting, (pattern, refused) in REFUSED.items():
            self.assertTrue(setting in unit().splitlines(), setting)
            self.assertEqual([line for line in [*lines, refused] if re.match(pattern, line)], [refused], setting)

    # ---- a life with every feature

    def trace(self, *, config, args=(), env=None):
        """An agent under strace, whose lines are in the directory that is returned with it. strace ends after it, and with it its standard error."""
        directory = self.path(f'trace-{len(os.listdir(self.dir))}')
        os.mkdir(directory)
        return directory, Agent(self, config, args, env, valgrind=['strace', '-D', '-ff', '-qq', '-o', directory + '/t'])

    def lives(self):
        """All lines: of a life, of a start from the last known good without any server, and of `pulletd --test`."""
        servers = secure_servers(self)
        config = self.everything(servers)
        notify = test_service.Notify(self)
        lines = []
        directory, agent = self.trace(config=config, env=notify.env(WATCHDOG_USEC='200000'))
        self.live(agent, notify, config)
        lines += calls(directory, agent.pid)
        servers.serve.close()
        servers.nginx.close()
        directory, agent = self.trace(config=config)
        for name in NAMES:
            agent.log.wait('started from the last known good config=' + name)
        agent.stop()
        lines += calls(directory, agent.pid)
        directory, agent = self.trace(config=config, args=['--test'])
        agent.log.drain()
        self.assertEqual(agent.wait(), 0)
        return lines + list(calls(directory, agent.pid))

    def program(self, name, script):
        self.write(name, '#!/bin/sh\n' + script)
        os.chmod(self.path(name), 0o755)
        return self.path(name)

    def everything(self, servers):
        """The configuration."""
        for name in ('tls', 'app', 'a', 'b'):
            self.write(f'www/{name}.yaml', 'n: 1\n')
        self.write('disk/local.yaml', 'n: 1\n')
        self.write('token', 's3cret\n')
        os.chmod(self.path('token'), 0o600)
        self.write('schema.json', '{"type": "object"}')
        application = subprocess.Popen(['sleep', '1000'])
        self.addCleanup(application.wait)
        self.addCleanup(application.kill)
        self.write('pid', f'{application.pid}\n')
        look, text, told = self.program('look', 'grep -q n "$1"\n'), self.program('text', 'cat\n'), self.program('tell', ':\n')
        os.makedirs(self.path('out'))
        return f'''agent:
  state_dir: {self.path("state")}
  runtime_dir: {self.path("run")}
  listen: 127.0.0.1:9377
push:
  - endpoint: {servers.endpoint.replace("127.0.0.1", "localhost")}
    curve: {{server_key: '{servers.public}'}}
servers:
  tls:
    urls: ["https://no-such-name.invalid", "{servers.nginx.url}"]
    connect_timeout: 2s
    tls: {{ca: {servers.ca}}}
    auth: {{bearer_file: {self.path("token")}}}
  main:
    urls: ["{servers.url}"]
  disk:
    kind: file
    watch: true
    urls: ["file://{self.path("disk")}"]
configs:
  tls:
    from: [{{server: tls, path: /tls.yaml}}]
    interval: 1h
    file: {self.path("out/tls.yaml")}
    format: {{run: [{text}]}}
    durability: strict
  app:
    url: {servers.url}/app.yaml
    interval: 1h
    file: {self.path("out/app.yaml")}
    snapshot: true
    owner: ":daemon"
    mode: "0640"
    schema: {self.path("schema.json")}
    check: {{run: [{look}, "{{path}}"]}}
    reload: {{run: [{told}]}}
    probe: {{run: [{told}], for: 200ms, every: 100ms}}
  local:
    from: [{{server: disk, path: /local.yaml}}]
    file: {self.path("out/local.yaml")}
    reload: {{signal: CONT, pidfile: {self.path("pid")}}}
  set:
    from:
      - {{server: main, path: /a.yaml, as: a.yaml}}
      - {{server: main, path: /b.yaml, as: b.yaml}}
    dir: {self.path("out/set")}
'''

    def live(self, agent, notify, config):
        for name in NAMES:
            agent.log.wait(f'published config={name} generation=1')
        agent.log.wait('reload succeeded config=local')
        agent.log.wait('push channel connected')
        notify.wait('^READY=1$')
        notify.wait('^WATCHDOG=1$')
        self.assertEqual(agent.refresh('app')['outcome'], 'unchanged')  # the pull that the connection itself causes is over
        self.write('www/app.yaml', 'n: 2\n')
        agent.log.wait('published config=app generation=2')
        self.write('disk/local.yaml', 'n: 2\n')
        agent.log.wait('published config=local generation=2')
        self.write('out/tls.yaml', 'somebody else was here\n')
        agent.log.wait('changed by somebody else: restoring it config=tls')
        self.write('pullet.yaml', config + '    nonsense: 1\n')
        agent.signal(signal.SIGHUP)
        agent.log.wait('nothing was changed')
        self.write('pullet.yaml', config + '    interval: 1h\n')
        agent.signal(signal.SIGHUP)
        agent.log.wait('the new configuration')
        agent.cli('rollback', 'app', check=0)
        agent.log.wait('published config=app generation=3')
        agent.cli('override', 'app', 'n=4', '--for', '1h', check=0)
        agent.log.wait('published config=app generation=4')
        agent.signal(signal.SIGUSR1)
        for path in ('/v1/status', '/metrics', '/readyz', '/v1/configs/app/history'):
            self.assertEqual(agent.get(path)[0], 200)
        with socket.create_connection(('127.0.0.1', 9377), harness.DEADLINE) as c:
            c.sendall(b'GET / HTTP/1.0\r\nHost: 127.0.0.1:9377\r\n\r\n')
            self.assertIn(b'200 OK', c.recv(4096))
        agent.stop()


if __name__ == '__main__':
    harness.main()
