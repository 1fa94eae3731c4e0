#!/usr/bin/env python3
"""Users of the control socket who take all that they get of it: connections, waits, answers that they never read. Root gets through, other users too, and each has a share."""
import contextlib
import json
import os
import re
import resource
import select
import socket
import subprocess
import time

import attack
import harness

MANY = 600
ROUNDS = 3 if harness.SANITIZED else 8  # each starts five programs beside each kind of flood
OPERATORS, READERS = 64201, 64202
READER = (64231, 64231, (READERS,))
OPERATOR = (64232, 64232, (READERS, OPERATORS))
MEMBERS = [(64240 + i, 64240 + i, (READERS,)) for i in range(3)]
STATUS = b'GET /v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n'
METRICS = b'GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n' * 100  # more than a socket takes
HISTORY = b'GET /v1/configs/web/history HTTP/1.1\r\nHost: localhost\r\n\r\n' * 100
WAIT = b'GET /v1/configs/web/wait?generation=999&timeout_ms=3600000 HTTP/1.1\r\nHost: localhost\r\n\r\n'
PLACES, WAITS = 128, 64


class Flood:
    """Keeps MANY connections; one that the agent ends is opened again. Each sends `first`, and reads nothing."""

    def __init__(self, path, first, keep=True):
        self.path, self.first, self.keep = path, first, keep
        self.open, self.poll = {}, select.poll()

    def more(self):
        s = socket.socket(socket.AF_UNIX)
        s.setblocking(False)
        try:
            s.connect(self.path)
            s.send(self.first)
        except OSError:
            s.close()
            return False
        if self.keep:
            self.open[s.fileno()] = s
            self.poll.register(s, select.POLLHUP | select.POLLERR)
        else:
            s.close()
        return True

    def turn(self):
        for fd, _ in self.poll.poll(1):
            self.open.pop(fd).close()
            self.poll.unregister(fd)
        for _ in range(MANY - len(self.open)):
            if not self.more():
                break


@attack.needs_users
class Shares(harness.Case):
    def setUp(self):
        super().setUp()
        _, url, _ = self.serve()
        self.write('www/web.yaml', 'a: 1\n')
        self.agent = harness.Agent(self, f'''agent: {{state_dir: {self.path("state")}, runtime_dir: {self.path("run")}, operators: {OPERATORS}}}
configs:
  web: {{url: "{url.rstrip("/")}/web.yaml", interval: 1h}}
''')
        self.agent.log.wait('published config=web generation=1')
        self.write('www/web.yaml', 'a: 2\n')
        self.agent.refresh('web')
        self.generation = 2
        os.chmod(self.dir, 0o755)  # whoever gets to the socket at all: its directory and mode are another test's
        os.chmod(self.path('run'), 0o755)
        os.chmod(self.agent.socket, 0o666)

    def tearDown(self):
        self.agent.stop()
        super().tearDown()

    def pullet(self, command, *args, user=None, code=0):
        done = attack.run(harness.PULLET, command, '--socket', self.agent.socket, *args, user=user, timeout=harness.DEADLINE * 2)
        self.assertEqual(done[0], code, (command, args, user, done))
        return done[1] + done[2]

    def counted(self, name='pullet_control_busy_total'):
        return int(re.search(rf'^{name} (\d+)$', self.agent.get('/metrics')[1], re.M)[1])

    def other(self, who, begin):
        """A process of that user; begin(), there, returns what it does again and again, and has done once when this returns."""
        reader, writer = os.pipe()
        state = []

        def turn(number):
            if number == 0:
                resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
                state.append(begin())
            state[0]()
            if number == 0:
                os.write(writer, b'.')
        process = attack.Other(self, who[0], turn, who[1], who[2])
        os.close(writer)
        self.addCleanup(os.close, reader)
        self.assertTrue(select.select([reader], [], [], harness.DEADLINE)[0], 'the attack began')
        self.assertEqual(os.read(reader, 1), b'.')
        return process

    def hold(self, who, waits, deaf):
        """That many places for long: waiting, and with answers that nobody reads."""
        path = self.agent.socket

        def begin():
            kept = []
            for request in [WAIT] * waits + [METRICS] * deaf:
                s = socket.socket(socket.AF_UNIX)
                s.connect(path)
                s.sendall(request)
                if request is METRICS:
                    s.recv(1)  # it is answered
                kept.append(s)
            return lambda: select.select([], [], [], 0.1) and kept
        return self.other(who, begin)

    def ask(self, who, request=STATUS):
        """(status, body) of one answer as that user, who sends the request at once."""
        path = self.agent.socket

        def answer():
            with socket.socket(socket.AF_UNIX) as s:
                harness.connect_in_turn(s, path, harness.DEADLINE)
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the answer is there all the same
                    s.sendall(request)
                data = b''
                with contextlib.suppress(ConnectionResetError):
                    while b'\r\n\r\n' not in data or len(data) < data.index(b'\r\n\r\n') + 4 + int(re.search(rb'Content-Length: (\d+)', data)[1]):
                        more = s.recv(65536)
                        if not more:
                            break
                        data += more
            head, _, body = data.decode().partition('\r\n\r\n')
            return f'{head.split()[1]} {body}'
        text, error = attack.tried(who[0], answer, who[1], who[2])
        self.assertIsNone(error)
        return int(text[:3]), text[4:]

    def until(self, ready, what):
        """Asks again until it is so; each question waits for an answer."""
        deadline = time.monotonic() + harness.DEADLINE
        while not ready():
            self.assertLess(time.monotonic(), deadline, what)

    def descriptors(self):
        return len(os.listdir(f'/proc/{self.agent.pid}/fd'))

    def everybody_else_gets_through(self):
        for _ in range(ROUNDS):
            self.pullet('status')
            self.pullet('rollback', 'web', str(self.generation - 1))
            self.generation += 1
            self.pullet('refresh', 'web', '--wait', user=OPERATOR)
            self.assertIn('web', self.pullet('status', user=READER))
            self.pullet('history', 'web')

    def attacked(self, first, keep=True):
        waits = [subprocess.Popen([*(attack.as_user(*who) if who else ()), harness.PULLET, 'wait', '--socket', self.agent.socket, 'web', '--generation',
                                   str(self.generation + ROUNDS + 1), '--timeout', '1h'], stdout=subprocess.DEVNULL) for who in (None, OPERATOR, READER)]
        for p in waits:
            self.addCleanup(p.wait)
            self.addCleanup(p.kill)
        memory, path = attack.memory_kb(self.agent.pid), self.agent.socket
        flood = self.other(MEMBERS[0], lambda: Flood(path, first, keep).turn)
        self.everybody_else_gets_through()
        grown = attack.memory_kb(self.agent.pid) - memory
        if not harness.SANITIZED:
            self.assertLess(grown, 16 << 10)
        flood.stop()
        self.until(lambda: self.ask(MEMBERS[0])[0] == 200, 'the attacker is a user as others')
        self.pullet('rollback', 'web', str(self.generation - 1))
        for p in waits:
            self.assertEqual(p.wait(harness.DEADLINE * 2), 0, 'who waited was not ended')

    def test_idle_connections(self):
        self.attacked(b'')
        self.assertGreater(self.counted(), 0)
        self.agent.log.wait(r'the control socket is busy: a request was denied.*by=.*\b64240\b')

    def test_half_of_a_request(self):
        self.attacked(STATUS[:-2])
        self.assertGreater(self.counted(), 0)

    def test_answers_that_are_not_read(self):
        self.attacked(METRICS)
        self.assertGreater(self.counted(), 0)

    def test_answers_that_take_long(self):
        self.attacked(HISTORY)

    def test_waits(self):
        self.attacked(WAIT)
        self.assertGreater(self.counted(), 0)

    def test_opened_and_closed(self):
        self.attacked(b'', keep=False)

    def test_one_user_has_a_quarter_and_is_told_so(self):
        user = MEMBERS[0]
        holder = self.hold(user, WAITS // 4, PLACES // 4 - WAITS // 4)
        before = self.counted()
        status, body = self.ask(user)
        self.assertEqual(status, 503)
        self.assertRegex(json.loads(body)['error'], 'this user has all the connections that one user may have')
        self.assertGreater(self.counted(), before)
        for command in (('status',), ('status', '--json'), ('status', '--ready'), ('wait', 'web', '--generation', '1'), ('diff', 'web')):
            said = self.pullet(*command, user=user, code=4)
            self.assertRegex(said, rf'^pullet {command[0]}: the agent is busy: this user has all the connections .* try again\n$')
        self.assertEqual(self.ask(READER)[0], 200)
        self.pullet('wait', 'web', '--generation', '1', user=READER)
        holder.stop()
        self.until(lambda: self.ask(user)[0] == 200, 'there is room again')

    def test_one_user_waits_in_a_quarter_of_the_places_for_that(self):
        user = MEMBERS[0]
        self.hold(user, WAITS // 4, 0)
        self.assertEqual(self.pullet('wait', 'web', '--generation', '999', user=user, code=4),
                         'pullet wait: the agent is busy: too many clients wait already: try again, or without waiting\n')
        self.assertEqual(self.ask(user)[0], 200, 'it may still ask')
        self.assertIn('was not published within', self.pullet('wait', 'web', '--generation', '999', '--timeout', '1ms', user=READER, code=4))

    def test_readers_together_leave_room_for_operators_and_those_for_root(self):
        readers, quarter = PLACES // 8 * 5, PLACES // 4
        for who, places in zip(MEMBERS, (quarter, quarter, readers - 2 * quarter)):
            self.hold(who, 0, places)
        status, body = self.ask(READER)
        self.assertEqual(status, 503)
        self.assertRegex(json.loads(body)['error'], 'other users have all the connections but those that are kept for root')
        self.assertEqual(self.ask(OPERATOR)[0], 200)
        self.hold(OPERATOR, 0, PLACES // 4 * 3 - readers)
        self.assertEqual(self.ask((OPERATOR[0] + 1, *OPERATOR[1:]))[0], 503)
        for _ in range(ROUNDS):
            self.pullet('status')

    def test_an_idle_connection_gives_its_place(self):
        """One that waits, or gets an answer, does not."""
        user, path = MEMBERS[0], self.agent.socket
        self.hold(user, WAITS // 4, 0)

        def begin():
            kept = [socket.socket(socket.AF_UNIX) for _ in range(PLACES // 4 - WAITS // 4)]
            for s in kept:
                s.connect(path)
            return lambda: select.select([], [], [], 0.1) and kept
        self.other(user, begin)
        self.until(lambda: self.ask(user)[0] == 200, 'they were idle for long enough')
        self.assertIn('too many clients wait', self.pullet('wait', 'web', '--generation', '999', user=user, code=4))

    @harness.needs(harness.LOOK)
    def test_who_is_told_that_it_is_busy_and_reads_nothing_holds_nothing(self):
        usual = self.descriptors()
        path = self.agent.socket
        first = [b'', STATUS, STATUS[:-2]]
        floods = [self.other(who, lambda f=f: Flood(path, f).turn) for who, f in zip(MEMBERS, first)]
        for _ in range(ROUNDS):
            self.pullet('status')
            self.assertLessEqual(self.descriptors(), usual + PLACES + 8)
        for flood in floods:
            flood.stop()
        self.until(lambda: self.agent.get('/livez')[0] == 200 and self.descriptors() <= usual + 1, 'no descriptor is left')


if __name__ == '__main__':
    harness.main()
