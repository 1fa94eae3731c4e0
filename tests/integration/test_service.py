"""What systemd is told, by a socket that stands for its own: READY=1 without any server, STATUS=, the watchdog, reload and stop."""
import os
import re
import signal
import socket
import subprocess
import threading
import time

import harness
import test_idle
from harness import Agent, FaultServer, good

INTERVAL = '    interval: 1h\n'


class Notify:
    """NOTIFY_SOCKET: what was said, and when."""

    def __init__(self, test, address=None):
        self.test, self.address, self.seen, self.times = test, address or test.path('notify'), [], []
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind('\0' + self.address[1:] if self.address[0] == '@' else self.address)
        test.addCleanup(self.socket.close)

    def env(self, **more):
        return {'NOTIFY_SOCKET': self.address, **more}

    def more(self, timeout):
        """One more message; False after the time."""
        self.socket.settimeout(timeout)
        try:
            text = self.socket.recv(65536).decode()
        except TimeoutError:
            return False
        self.seen.append(text)
        self.times.append(time.monotonic())
        return True

    def wait(self, pattern, start=0):
        """The first message from number `start` on that has a line of that form."""
        deadline, at = time.monotonic() + harness.DEADLINE, start
        while True:
            for text in self.seen[at:]:
                if re.search(pattern, text, re.M):
                    return text
            at = len(self.seen)
            left = deadline - time.monotonic()
            if left <= 0 or not self.more(left):
                raise AssertionError(f'no message with /{pattern}/ in {self.seen[start:]}')

    def during(self, seconds):
        """All that comes in a time: for what must not come."""
        start, end = len(self.seen), time.monotonic() + seconds
        while time.monotonic() < end and self.more(max(end - time.monotonic(), 0.001)):
            pass
        return self.seen[start:]

    def said(self, pattern):
        return [text for text in self.seen if re.search(pattern, text, re.M)]


class Held:
    """The server's answer comes when the test lets it."""

    def __init__(self, answer):
        self.answer, self.asked, self.go = answer, threading.Event(), threading.Event()

    def __call__(self, connection, head, stopping):
        self.asked.set()
        while not self.go.wait(0.1):
            if stopping.is_set():
                return 'close'
        return self.answer(connection, head, stopping)


class Service(harness.Case):
    def setUp(self):
        super().setUp()
        self.server = FaultServer(self)
        self.server.behave = good(b'a: 1\n', 'ETag: "1"\r\n')
        self.url = self.server.url + '/web.yaml'

    def start(self, notify, more=INTERVAL, text=None, args=(), preload=False, **env):
        if preload:
            library = self.path('hang.so')
            subprocess.run(['cc', '-shared', '-fPIC', '-O2', '-D_GNU_SOURCE', '-o', library, os.path.join(os.path.dirname(__file__), 'hang.c')], check=True)
            env.update(LD_PRELOAD=library, HANG_FIFO=self.path('hang'), HANG_PATH=self.path('out'), BOOT_OFFSET_FILE=self.path('offset'))
        return Agent(self, text or self.config(self.url, more), args, env=notify.env(**env))

    def ready(self, *args, **env):
        """An agent that is ready and has published, and what it says it to."""
        notify = Notify(self)
        agent = self.start(notify, *args, **env)
        notify.wait('^READY=1$')
        notify.wait('^STATUS=1 config ok$')
        return notify, agent

    # ---- READY

    def test_ready_waits_for_no_server(self):
        """The socket listens then; the server has not answered."""
        self.server.behave = held = Held(good(b'a: 1\n'))
        notify = Notify(self)
        agent = self.start(notify)
        self.assertEqual(notify.wait('^READY=1$'), 'READY=1\nSTATUS=0 configs ok; waiting for the first version of 1: web')
        self.assertEqual(agent.get('/livez')[0], 200)
        self.assertEqual(agent.get('/readyz')[0], 503)
        self.assertTrue(held.asked.wait(harness.DEADLINE))
        held.go.set()
        notify.wait('^STATUS=1 config ok$')
        self.assertEqual(self.read('out/web.yaml'), b'a: 1\n')
        self.assertEqual(len(notify.said('READY')), 1)
        agent.stop()

    def test_every_config_that_waits_is_counted_and_what_was_refused_is_named(self):
        """The second of three is invalid, the last comes later than the others."""
        held, bad = Held(good(b'a: 1\n')), good(b'a: [1\n')
        ways = {'/c1': bad, '/c2': held}
        self.server.behave = lambda connection, head, stopping: next((w for path, w in ways.items() if path in head), good(b'a: 1\n'))(connection, head, stopping)
        text = self.config(self.server.url + '/c0.yaml', INTERVAL, name='c0')
        for i in (1, 2):
            text += f'  c{i}:\n    url: {self.server.url}/c{i}.yaml\n    file: {self.path(f"out/c{i}.yaml")}\n    interval: 1h\n'
        notify = Notify(self)
        agent = self.start(notify, text=text)
        notify.wait(r'^STATUS=1 config ok; waiting for the first version of 2: c1: .*line 1, column 4: ')
        ways['/c1'] = good(b'a: 1\n')
        agent.post('/v1/configs/c1/refresh')
        notify.wait('^STATUS=2 configs ok; waiting for the first version of 1: c2$')
        held.go.set()
        notify.wait('^STATUS=3 configs ok$')
        agent.stop()

    def test_the_last_known_good_is_ready_at_once_with_the_server_down(self):
        notify = Notify(self, '@' + self.path('first'))  # abstract
        agent = self.start(notify)
        notify.wait('^STATUS=1 config ok$')
        agent.stop()
        self.server.close()
        os.unlink(self.path('out/web.yaml'))
        notify = Notify(self)
        begin = time.monotonic()
        agent = self.start(notify, '    interval: 100ms\n')
        notify.wait('^READY=1\nSTATUS=1 config ok$')
        took = notify.times[-1] - begin
        self.assertEqual(self.read('out/web.yaml'), b'a: 1\n')
        print(f'READY=1 from the last known good {took * 1000:.0f} ms after the start')
        self.assertRegex(notify.wait('^STATUS=0 configs ok; 1 failing: web: '), 'onnect')
        agent.stop()

    def test_ready_is_told_again_when_systemd_did_not_read(self):
        notify = Notify(self)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as filler:
            filler.setblocking(False)
            filler.connect(notify.address)
            try:
                while True:
                    filler.send(b'X=1')
            except BlockingIOError:
                pass
        agent = self.start(notify)
        agent.log.wait('published')
        self.assertEqual(agent.status()['state'], 'ok')  # it does not wait for systemd
        notify.wait('^READY=1$')
        agent.stop()

    # ---- STATUS

    def test_the_status_follows_and_at_most_once_a_second(self):
        """Fifty configs that change between well and ill at every pull."""
        def behave(connection, head, stopping):
            self.turn += 1
            return (good(f'a: {self.turn}\n'.encode()) if self.turn % 3 else good(b'a: ['))(connection, head, stopping)
        self.turn = 0
        self.server.behave = behave
        text = self.config(self.server.url + '/c0.yaml', '    interval: 100ms\n', name='c0')
        for i in range(1, 50):
            text += f'  c{i}:\n    url: {self.server.url}/c{i}.yaml\n    file: {self.path(f"out/c{i}.yaml")}\n    interval: 100ms\n'
        notify = Notify(self)
        agent = self.start(notify, text=text, args=['--log-level', 'err'])  # nobody reads the log meanwhile
        notify.wait(r'^STATUS=\d+ configs? ok(; \d+ failing: .+)?$')
        start = len(notify.seen)
        notify.wait('^STATUS=(?!' + re.escape(notify.seen[-1].removeprefix('STATUS=')) + '$)', start)
        start = len(notify.seen)
        notify.during(4)
        texts = [m for m in notify.seen[start:] if m.startswith('STATUS=')]
        self.assertLessEqual(len(texts), 5, texts)
        for text in texts:
            self.assertRegex(text, r'^STATUS=\d+ configs? ok(; \d+ failing: c\d+: .+)?$')
        agent.stop()

    def test_what_a_server_says_is_no_message_to_systemd(self):
        """A key of a document, which the error names, has a line for systemd in it."""
        self.server.behave = good(b'"x\\nSTOPPING=1\\n\\x07": &a 1\n"x\\nSTOPPING=1\\n\\x07": 2\n')
        notify = Notify(self)
        agent = self.start(notify)
        text = notify.wait('^STATUS=.*STOPPING')
        self.assertEqual(len(text.split('\n')), 1, text)
        self.assertNotIn('\x07', text)
        agent.stop()

    def test_an_idle_agent_under_systemd_does_not_wake(self):
        notify, agent = self.ready()
        agent.refresh()
        notify.during(1.5)  # the status text may still be due
        before = test_idle.threads(agent.pid)
        self.assertEqual(notify.during(3), [])
        switches = {name: count - before[name] for name, count in test_idle.threads(agent.pid).items()}
        self.assertEqual(switches[next(n for n in switches if 'loop' in n)], 0, switches)
        agent.stop()

    # ---- the watchdog

    def test_the_watchdog_is_fed_at_least_at_half_the_time(self):
        notify, agent = self.ready(WATCHDOG_USEC='1000000')
        notify.during(3)
        fed = [t for m, t in zip(notify.seen, notify.times) if m == 'WATCHDOG=1']
        gaps = [b - a for a, b in zip(fed, fed[1:])]
        print('watchdog of 1 s is fed every', ' '.join(f'{gap:.3f}' for gap in gaps), 's')
        self.assertGreaterEqual(len(gaps), 4)
        self.assertLess(max(gaps), 1.0)
        if not harness.SANITIZED:
            self.assertLess(sorted(gaps)[len(gaps) // 2], 0.52)
        agent.signal(signal.SIGSTOP)
        notify.during(0.3)  # what was on its way
        self.assertEqual(notify.during(1.2), [])
        seen = len(notify.seen)
        agent.signal(signal.SIGCONT)
        notify.wait('^WATCHDOG=1$', seen)
        agent.stop()

    def test_a_watchdog_of_another_process_is_not_fed(self):
        notify, agent = self.ready(WATCHDOG_USEC='200000', WATCHDOG_PID='1')
        self.assertEqual([m for m in notify.during(1) if 'WATCHDOG' in m], [])
        agent.stop()

    def test_the_watchdog_is_not_fed_while_a_publication_hangs(self):
        """A disk that does not end an fsync, for more than a minute; the minute is the clock's."""
        if harness.SANITIZED:
            return  # a preloaded library and the sanitizers' do not go together
        notify, agent = self.ready(preload=True, WATCHDOG_USEC='400000')
        self.server.behave = good(b'a: 2\n')
        os.mkfifo(self.path('hang'))
        agent.post('/v1/configs/web/refresh')
        agent.log.wait('fsync hangs')
        self.assertIn('WATCHDOG=1', notify.during(1))  # a slow disk is no hung one
        self.write('offset', '70')
        agent.log.wait('withholding watchdog keepalive config=web why="the disk has not taken a version for a minute"')
        notify.during(0.2)  # what was on its way
        self.assertEqual([m for m in notify.during(1) if 'WATCHDOG' in m], [])
        self.assertEqual(sum('withholding watchdog' in line for line in agent.log.seen), 1)
        seen, writer = len(notify.seen), os.open(self.path('hang'), os.O_WRONLY | os.O_NONBLOCK)
        os.unlink(self.path('hang'))
        agent.log.wait('the agent makes progress again')
        notify.wait('^WATCHDOG=1$', seen)
        agent.log.wait('published.*generation=2')
        os.close(writer)
        agent.stop()

    def test_a_machine_that_slept_is_not_taken_for_one_that_hangs(self):
        """It wakes up in the middle of a pull whose time limit is long past."""
        if harness.SANITIZED:
            return  # a preloaded library and the sanitizers' do not go together
        notify, agent = self.ready(preload=True, WATCHDOG_USEC='400000')
        self.server.behave = held = Held(good(b'a: 2\n'))
        agent.post('/v1/configs/web/refresh')
        self.assertTrue(held.asked.wait(harness.DEADLINE))
        self.write('offset', '7200')
        agent.log.wait('the agent did not run for a while')
        agent.log.wait('timed out')
        for _ in range(3):
            notify.wait('^WATCHDOG=1$', len(notify.seen))
        agent.stop()
        self.assertEqual([line for line in agent.log.seen if 'withholding watchdog' in line], [])

    # ---- reload, stop, hooks

    def reload(self, agent, notify, pattern):
        """HUP; the messages until READY=1, and those after it."""
        seen, before = len(notify.seen), time.monotonic()
        agent.signal(signal.SIGHUP)
        reloading = notify.wait('^RELOADING=1$', seen)
        moment = int(re.search(r'^MONOTONIC_USEC=(\d+)$', reloading, re.M)[1]) / 1e6
        self.assertTrue(before <= moment <= time.monotonic(), (before, moment))
        notify.wait('^READY=1$', notify.seen.index(reloading, seen))
        agent.log.wait(pattern)

    def test_a_reload_is_told_when_it_begins_and_when_it_has_ended_good_or_bad(self):
        notify, agent = self.ready()
        self.write('pullet.yaml', self.config(self.url, INTERVAL + '    nonsense: 1\n'))
        self.reload(agent, notify, 'nothing was changed')
        self.write('pullet.yaml', self.config(self.url, '    interval: 2h\n'))
        self.reload(agent, notify, 'the new configuration')
        self.assertIsNone(agent.process.poll())
        agent.stop()

    def test_a_reload_waits_for_no_server(self):
        self.server.behave = held = Held(good(b'a: 1\n'))
        notify = Notify(self)
        agent = self.start(notify)
        notify.wait('^READY=1$')
        self.assertTrue(held.asked.wait(harness.DEADLINE))
        self.write('pullet.yaml', self.config(self.url, '    interval: 2h\n'))
        self.reload(agent, notify, 'the new configuration')
        self.assertEqual(agent.get('/readyz')[0], 503)
        held.go.set()
        notify.wait('^STATUS=1 config ok$')
        agent.stop()

    def test_the_stop_is_told(self):
        notify, agent = self.ready()
        agent.stop()
        notify.wait('^STOPPING=1$')

    def test_programs_find_nothing_of_it_in_their_environment(self):
        self.write('look', f'#!/bin/sh\nenv > {self.path("env")}\n')
        os.chmod(self.path('look'), 0o755)
        notify, agent = self.ready(INTERVAL + f'    check: {{run: [{self.path("look")}, "{{path}}"]}}\n', WATCHDOG_USEC='60000000')
        env = self.read('env').decode()
        self.assertIn('PULLET_CONFIG_NAME=web', env)
        self.assertNotRegex(env, 'NOTIFY|WATCHDOG')
        agent.stop()

    def test_an_address_that_is_none_is_told_and_harms_nothing(self):
        for address in ('run/notify', '@', '/' + 'x' * 200, 'vsock:2:3'):
            with self.subTest(address):
                agent = Agent(self, self.config(self.url, INTERVAL), env={'NOTIFY_SOCKET': address})
                agent.log.wait('systemd is not notified: invalid NOTIFY_SOCKET')
                agent.refresh()
                agent.stop()


class WaitReady(harness.Case):
    """pullet wait --ready, which pullet-ready.service runs."""

    def setUp(self):
        super().setUp()
        self.server = FaultServer(self)
        self.held = Held(good(b'a: 1\n'))
        self.server.behave = lambda connection, head, stopping: (self.held if '/c1' in head else good(b'a: 1\n'))(connection, head, stopping)
        self.text = self.config(self.server.url + '/c0.yaml', INTERVAL, name='c0')
        self.text += f'  c1:\n    url: {self.server.url}/c1.yaml\n    file: {self.path("out/c1.yaml")}\n    interval: 1h\n'

    def wait(self, *args):
        waits = harness.Program([harness.PULLET, 'wait', '--ready', *args, '--socket', self.path('run/control.sock')], read='both')
        self.addCleanup(waits.close)
        return waits

    def test_what_comes_late_or_again_is_waited_for(self):
        """The agent, another agent, the server."""
        waits = self.wait()
        waits.log.wait('waiting for the agent')
        agent = Agent(self, self.text)
        self.assertTrue(self.held.asked.wait(harness.DEADLINE))
        agent.cli('wait', '--ready', 'c0', check=0)
        agent.stop()
        agent = Agent(self, self.text)
        agent.ready()
        self.held.go.set()
        waits.log.wait('^2 configs ready: a version is published$')
        self.assertEqual(waits.wait(), 0)
        self.assertEqual(self.read('out/c1.yaml'), b'a: 1\n')
        self.assertEqual(agent.cli('wait', '--ready', '--timeout', '0s', check=0)[1], '2 configs ready: a version is published\n')
        agent.stop()

    def test_it_ends_with_the_reason_when_the_time_is_over(self):
        agent = Agent(self, self.text)
        agent.ready()
        self.held.answer = good(b'', status='404 No')
        self.held.go.set()
        agent.refresh('c1')
        for args in (), ('c0', 'c1'):
            _, out, err = agent.cli('wait', '--ready', *args, '--timeout', '50ms', check=4)
            self.assertRegex(err, r'^pullet wait: not ready after 50ms: c1: nothing is published yet: .*404.*\n$')
            self.assertEqual(out, '')
        agent.cli('wait', '--ready', 'c0', '--timeout', '0s', check=0)
        self.assertIn("'c9': did you mean 'c0'?", agent.cli('wait', '--ready', 'c9', check=2)[2])
        agent.stop()
        self.assertIn('no agent answers', agent.cli('wait', '--ready', '--timeout', '1ms', check=3)[2])

    def test_one_form_at_a_time(self):
        agent = Agent(self, self.text)
        for args in (('--ready', '--generation', '1', 'c0'), ('c0',), ('--generation', '1'), ('--generation', '1', 'c0', 'c1')):
            agent.cli('wait', *args, check=64)
        agent.stop()


if __name__ == '__main__':
    harness.main()
