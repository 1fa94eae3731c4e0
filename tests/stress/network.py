"""A network that fails, in a namespace of its own: packets are dropped, all or one in five, connections are reset, the line is slow, names are not
answered for. Meanwhile the agent does next to nothing, feeds its watchdog, and can be ended; afterwards it has the newest version within two pulls, and
pushes come again.

Usage: network.py [CASE...]     (black_hole reset loss slow dead_dns seeded_busy seeded_deaf seeded_slow_end; default: all)

Each fault lasts PULLET_TEST_FAULT_S (10) seconds. The seeded bugs, which must be found, are in preloaded libraries: a loop that never sleeps,
connections that fail for ever once one has, an end that takes three seconds. Needs root, iproute2 and iptables: what is missing is named.
"""
import contextlib
import http.client
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'integration'))
import harness  # noqa: E402
from harness import Agent  # noqa: E402
from test_service import Notify  # noqa: E402

FAULT_S = float(os.environ.get('PULLET_TEST_FAULT_S', '10'))
INTERVAL_S, TIMEOUT_S, BOUND = 0.5, 0.8, 2
HEARTBEAT_S, RECONNECT_S = 0.5, 2  # the longest pause before the push channel connects again on this host
POLL_S = INTERVAL_S * BOUND + TIMEOUT_S  # the longest from one pull to the end of the next
WATCHDOG_S = 2
MOST_OF_A_PROCESSOR = 0.01
SEEDS = {
    'busy': 'int epoll_wait(int fd, void *events, int max, int ms) { (void)ms; return (int)syscall(SYS_epoll_wait, fd, events, max, 0); }',
    'deaf': '''#include <errno.h>
int connect(int fd, const struct sockaddr *a, socklen_t len)
{
	static int failed;
	static time_t begin;
	struct tcp_info { char state[256]; };
	if (!begin)
		begin = time(NULL);
	failed |= a->sa_family == AF_INET && time(NULL) > begin + 5;
	return failed && a->sa_family == AF_INET ? (errno = ENETUNREACH, -1) : (int)syscall(SYS_connect, fd, a, len);
}''',
    'slow_end': '__attribute__((destructor)) static void end(void) { sleep(3); }',
}


def answer_names():
    """A name server: any name is this host."""
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(('127.0.0.1', 53))
    while True:
        query, peer = server.recvfrom(512)
        end = query.index(b'\0', 12) + 5
        is_address = query[end - 4:end - 2] == b'\0\1'
        head = query[:2] + struct.pack('>HHHHH', 0x8180, 1, is_address, 0, 0) + query[12:end]
        server.sendto(head + (b'\xc0\x0c\0\1\0\1\0\0\0\0\0\4\x7f\0\0\1' if is_address else b''), peer)


def processor_s(pid):
    """Of all its threads."""
    with contextlib.suppress(FileNotFoundError):
        return sum(ms for _, ms in harness.processor_ms(pid)) / 1e3
    return 0


def run(*command):
    subprocess.run(command, check=True, capture_output=True)


class Network(harness.Case):
    @classmethod
    def setUpClass(cls):
        threading.Thread(target=answer_names, daemon=True).start()

    def setUp(self):
        super().setUp()
        if os.geteuid() != 0:
            self.skipTest('it needs root')
        for program in ('ip', 'tc', 'iptables'):
            if not shutil.which(program):
                self.skipTest(f'it needs {program}')
        self.number = 0

    def begin(self, seed=None):
        self.put()
        self.program, self.url, endpoint = self.serve('--heartbeat', f'{HEARTBEAT_S * 1000:.0f}ms', '--http-name', 'config.test')
        self.ports = [self.url.rsplit(':', 1)[1], endpoint.rsplit(':', 1)[1]]
        env, url = {}, self.url.replace('127.0.0.1', 'config.test')
        if seed:
            env = {'LD_PRELOAD': self.make_seed(seed)}
        more = f'    interval: {INTERVAL_S * 1000:.0f}ms\n    timeout: {TIMEOUT_S * 1000:.0f}ms\n    backoff_bound: {BOUND}\n    jitter: 0%\n'
        pushed = more.replace(f'{INTERVAL_S * 1000:.0f}ms', '1h')
        text = self.config(f'{url}/web.yaml', more, f'push: [{{endpoint: "{endpoint}", heartbeat: {HEARTBEAT_S * 1000:.0f}ms}}]')
        text += f'  pushed:\n    url: {url}/pushed.yaml\n    file: {self.path("out/pushed.yaml")}\n{pushed}'
        self.notify = Notify(self)
        self.start = lambda: Agent(self, text, env=self.notify.env(WATCHDOG_USEC=f'{WATCHDOG_S * 1000000}', **env))
        self.agent = self.start()
        self.agent.log.wait('push channel connected')
        self.wait_for_newest(harness.DEADLINE)

    def make_seed(self, seed):
        head = '#define _GNU_SOURCE\n#include <sys/socket.h>\n#include <sys/syscall.h>\n#include <time.h>\n#include <unistd.h>\n'
        self.write('seed.c', head + SEEDS[seed] + '\n')
        run('cc', '-shared', '-fPIC', '-o', self.path('seed.so'), self.path('seed.c'))
        return self.path('seed.so')

    def put(self):
        self.number += 1
        for name in ('web', 'pushed'):
            self.write(f'www/{name}.yaml', f'n: {self.number}\n')

    def newest(self, name):
        with contextlib.suppress(FileNotFoundError):
            return self.read(f'out/{name}.yaml') == b'n: %d\n' % self.number
        return False

    def wait_for_newest(self, seconds, name='web'):
        """How long it took; AssertionError when it takes longer."""
        begin = time.monotonic()
        while not self.newest(name):
            self.assertLess(time.monotonic() - begin, seconds, f'{name} is not the newest version after so many seconds; two pulls take {2 * POLL_S:.1f}')
            time.sleep(0.005)
        return time.monotonic() - begin

    # -- the faults: each makes the network fail, or heals it

    def filter(self, on, *rule):
        run('iptables', '-A' if on else '-D', 'INPUT', *rule)

    def black_hole(self, on):
        for port in self.ports:
            self.filter(on, '-p', 'tcp', '--dport', port, '-j', 'DROP')

    def reset(self, on):
        for port in self.ports:
            self.filter(on, '-p', 'tcp', '--dport', port, '-j', 'REJECT', '--reject-with', 'tcp-reset')

    def loss(self, on):
        self.filter(on, '-p', 'tcp', '-m', 'statistic', '--mode', 'random', '--probability', '0.2', '-j', 'DROP')

    def slow(self, on):
        shape = ['root', 'tbf', 'rate', '16kbit', 'burst', '1600', 'latency', '400ms'] if on else ['root']
        run('ip', 'link', 'set', 'lo', 'mtu', '1500' if on else '65536')
        run('tc', 'qdisc', 'add' if on else 'del', 'dev', 'lo', *shape)

    def dead_dns(self, on):
        self.filter(on, '-p', 'udp', '--dport', '53', '-j', 'DROP')
        if on:  # a name that is known already is not asked for
            self.agent.stop()
            self.agent = self.start()
            self.agent.ready()

    # -- what is looked at

    def suffer(self):
        """The time of the fault: what the agent uses of a processor, and the longest time between two signs of life."""
        before, begin, seen = processor_s(self.agent.pid), time.monotonic(), len(self.notify.times)
        self.notify.during(FAULT_S)
        used = (processor_s(self.agent.pid) - before) / (time.monotonic() - begin)
        fed = [moment for moment, text in zip(self.notify.times[seen:], self.notify.seen[seen:]) if text == 'WATCHDOG=1']
        gap = max(b - a for a, b in zip([begin, *fed], [*fed, time.monotonic()]))
        self.assertLess(used, MOST_OF_A_PROCESSOR, 'the loop is busy')
        self.assertLess(gap, WATCHDOG_S, 'the watchdog is not fed')
        return used, gap

    def endure(self, fault, always_fails=True, loses_pushes=True, seed=None):
        self.begin(seed)
        fault(True)
        self.put()
        used, gap = self.suffer()
        if always_fails:
            self.assertFalse(self.newest('web'), 'the fault is none')
        self.put()
        fault(False)
        took = self.wait_for_newest(2 * POLL_S + 0.5)
        if loses_pushes:  # else its pull timed out, and the next one is far away
            self.wait_for_newest(3 * HEARTBEAT_S + RECONNECT_S + 1.5, 'pushed')
        self.put()  # nothing but a push brings that one
        pushed = self.wait_for_newest(3 * HEARTBEAT_S + RECONNECT_S + 1.5, 'pushed')
        fault(True)
        self.notify.during(POLL_S)
        begin = time.monotonic()
        self.agent.stop()
        print(f'{fault.__name__}: {used * 100:.2f} % of a processor, watchdog fed every {gap:.2f} s at least, newest version {took:.2f} s after it healed '
              f'(a push took {pushed:.2f} s then), ended within {time.monotonic() - begin:.2f} s', flush=True)

    def tearDown(self):
        for words in (['iptables', '-F'], ['tc', 'qdisc', 'del', 'dev', 'lo', 'root'], ['ip', 'link', 'set', 'lo', 'mtu', '65536']):
            subprocess.run(words, capture_output=True, check=False)

    def test_black_hole(self):
        self.endure(self.black_hole)

    def test_reset(self):
        self.endure(self.reset)

    def test_loss(self):
        self.endure(self.loss, always_fails=False)

    def test_slow(self):
        self.endure(self.slow, always_fails=False)

    def test_dead_dns(self):
        self.endure(self.dead_dns, loses_pushes=False)

    def test_seeded_busy(self):
        with self.assertRaisesRegex(AssertionError, 'the loop is busy'):
            self.endure(self.black_hole, seed='busy')

    def test_seeded_deaf(self):
        with self.assertRaisesRegex(AssertionError, 'is not the newest version'):
            self.endure(self.reset, seed='deaf')

    def test_seeded_slow_end(self):
        with self.assertRaisesRegex(AssertionError, 'the agent must stop in under 2 s'):
            self.endure(self.reset, seed='slow_end')


def enter():
    """A network and mounts of its own, a file of name servers, and this program again in it."""
    resolv = '/etc/resolv.conf'
    script = f'ip link set lo up; printf "nameserver 127.0.0.1\\noptions timeout:1 attempts:2\\n" >"$1"; mount --bind "$1" {os.path.realpath(resolv)}; shift; exec "$@"'
    file = os.path.join(os.environ['PULLET_TEST_APART'], 'resolv.conf')
    os.execvp('unshare', ['unshare', '--net', '--mount', 'sh', '-ec', script, 'sh', file, sys.executable, *sys.argv])


if __name__ == '__main__':
    import tempfile
    if 'PULLET_TEST_APART' not in os.environ and not harness.refusal('unshare', '--net', '--mount', 'true'):
        with tempfile.TemporaryDirectory(prefix='pullet-network-') as place:
            sys.exit(subprocess.run([sys.executable, *sys.argv], env={**os.environ, 'PULLET_TEST_APART': place}, check=False).returncode)
    if 'PULLET_TEST_INSIDE' not in os.environ and 'PULLET_TEST_APART' in os.environ:
        os.environ['PULLET_TEST_INSIDE'] = '1'
        enter()
    sys.argv[1:] = [f'Network.test_{case}' for case in sys.argv[1:]] or ['Network']
    harness.main()
