"""Messages that were recorded and come again, in any order, and clients that are on nobody's list.

A message is a hint: whatever is sent again brings no older version back, costs a bounded number of requests, puts no pull off, and is counted.
Where there is a list of clients, who is not on it gets no message, whatever it says of itself, or says again.
"""
import contextlib
import itertools
import json
import socket
import threading
import time

import attack
import harness
import test_curve
import test_push
from harness import good

RATE = 60  # requests a second that messages may cause, as in test_flood.py
SLACK = 60  # requests; what the floor lets through in a burst


class Replayed(test_push.Many):
    """An agent with one config, and ten messages of its publisher that somebody has recorded."""

    def setUp(self):
        super().setUp()
        self.agent = self.start(['web'], 'interval: 1h')
        self.agent.refresh('web')
        self.n, self.seq, self.recorded = 1, 0, []
        for _ in range(10):
            self.recorded.append(self.change())

    def change(self):
        """A true change, and the message that tells of it; it is published."""
        self.n, self.seq = self.n + 1, self.seq + 1
        self.answer['/web'] = good(f'n: {self.n}\n'.encode(), f'ETag: "v{self.n}"\r\n')
        message = (b'web', {'epoch': 'e', 'seq': self.seq, 'version': f'v{self.n}', 'spread_ms': 0})
        self.publisher.send(message[0], dict({'v': 1}, **message[1]))
        self.agent.log.wait(f'published config=web .*generation={self.n}( |$)')
        return message

    def counters(self):
        push = json.loads(self.agent.get('/v1/status')[1])['push'][0]
        return {name: push[name] for name in ('messages', 'bad', 'gaps', 'epochs')}

    def replay(self, messages):
        """Sends them: (requests that they caused, how much each counter grew)."""
        before, counted, begin = self.pulls['/web'], self.counters(), time.monotonic()
        self.push(self.agent, *messages)
        self.agent.refresh('web')  # a pull that is under way is over
        requests, seconds = self.pulls['/web'] - before - 1, time.monotonic() - begin
        self.assertLess(requests, RATE * seconds + SLACK)
        self.assertEqual(self.read('out/web'), f'n: {self.n}\n'.encode())
        self.assertEqual(self.agent.status('web')['generation'], self.n)
        return requests, {name: value - counted[name] for name, value in self.counters().items()}

    def metric(self, name):
        text = self.agent.get('/metrics')[1]
        return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith(name + '{'))

    def after(self):
        """What comes next is published at once, and nothing older ever was."""
        self.change()
        told = [int(line.split('generation=')[1].split()[0]) for line in self.agent.log.seen if 'published config=web ' in line]
        self.assertEqual(told, list(range(1, self.n + 1)))

    def test_the_last_one_again_is_no_request(self):
        pushes = self.agent.status('web')['pushes']
        requests, grown = self.replay([self.recorded[-1]] * 300)
        self.assertEqual((requests, self.agent.status('web')['pushes'] - pushes), (0, 0))
        self.assertEqual((grown['messages'], grown['gaps'], grown['epochs']), (300, 0, 0))
        self.after()

    def test_older_ones_and_other_orders(self):
        old = self.recorded[:-1]
        for kind, messages in (('older', old * 20), ('backwards', old[::-1] * 20), ('every third', (self.recorded[::3] + self.recorded[1::3]) * 30)):
            with self.subTest(kind):
                before = self.metric('pullet_push_gaps_total')
                _, grown = self.replay(messages)
                self.assertEqual(grown['messages'], len(messages))
                self.assertGreater(grown['gaps'], len(messages) // 20)
                self.assertEqual(self.metric('pullet_push_gaps_total') - before, grown['gaps'])
                self.after()

    def test_epochs_that_are_forged_or_flip(self):
        def with_epoch(epochs):
            return [(topic, dict(m, epoch=epoch)) for (topic, m), epoch in zip(itertools.cycle(self.recorded), epochs)]
        for kind, epochs in (('another each time', [f'x{i}' for i in range(200)]), ('to and fro', ['e', 'f'] * 100), ('forged once', ['z'] * 10)):
            with self.subTest(kind):
                before = self.metric('pullet_push_epochs_total')
                _, grown = self.replay(with_epoch(epochs))
                self.assertGreaterEqual(grown['epochs'], len(set(epochs)) - 1)
                self.assertEqual(self.metric('pullet_push_epochs_total') - before, grown['epochs'])
                self.after()

    def test_numbers_at_their_ends(self):
        for seq in (2**63 - 1, 0, 2**63, 2**64 - 1, 2**64, 10**30, -1, 1.5, '7', None, True):
            with self.subTest(seq):
                bad = not (isinstance(seq, int) and not isinstance(seq, bool) and 0 <= seq < 2**63)
                _, grown = self.replay([(topic, dict(m, seq=seq)) for topic, m in self.recorded])
                self.assertEqual((grown['messages'], grown['bad']), (10, 10 if bad else 0))
                self.after()

    def test_spreads_put_nothing_off(self):
        for spread in (3600000, 2**62, 0):
            with self.subTest(spread):
                self.replay([(topic, dict(m, spread_ms=spread)) for topic, m in self.recorded] * 20)
                self.after()

    def test_a_promise_that_never_comes_true(self):
        """It is said, and neither it nor the promise of an older version takes the place of what is there."""
        self.replay([(topic, dict(m, version='never')) for topic, m in self.recorded] * 10)
        self.after()
        self.replay([(topic, dict(m, seq=100 + i)) for i, (topic, m) in enumerate(self.recorded[:5] * 10)])
        self.after()
        self.push(self.agent, (b'web', {'epoch': 'e', 'seq': 1000, 'version': 'never'}))
        self.agent.log.wait('another version than the push promised')
        self.after()


class PutOff(test_push.Many):
    def test_what_is_due_by_itself_comes_whatever_is_sent(self):
        agent = self.start(['web'], 'interval: 500ms')
        self.push(agent, *[(b'web', {'epoch': f'e{n % 2}', 'seq': n * 7 % 11, 'version': 'v1', 'spread_ms': 3600000}) for n in range(100)])
        self.answer['/web'] = good(b'n: 2\n')
        agent.log.wait('published config=web .*generation=2( |$)')


class Listed(test_curve.Curve):
    """`pullet serve` with a list, and who is not on it."""

    def setUp(self):
        super().setUp()
        self.write('allow', self.here.public + '\n')
        self.publisher, _, self.endpoint = self.serve('--curve-secret-key', self.there.path, '--curve-allow', self.path('allow'), '--heartbeat', '100ms')
        self.n = 0

    def subscriber(self, *args, endpoint=None):
        return test_curve.Subscriber(self, endpoint or self.endpoint, *args)

    def known(self, endpoint=None):
        known = self.subscriber(self.there.public, self.here.public, self.here.secret, endpoint=endpoint)
        self.assertIs(known.handshake(), True)
        while known.receive()[0] != b'pullet.heartbeat':  # its subscription has come
            pass
        return known

    def change(self, *subscribers):
        """One that each of these is told of."""
        self.n += 1
        self.write('www/web.yaml', f'n: {self.n}\n')
        for s in subscribers:
            while True:
                topic, envelope = s.receive()
                if topic == b'web' and json.loads(envelope)['seq'] >= self.n:
                    break

    def test_who_is_not_on_the_list_never_gets_a_message(self):
        known = self.known()
        unlisted = self.subscriber(self.there.public, self.other.public, self.other.secret)
        self.assertEqual(unlisted.handshake(), 400)
        line = self.publisher.log.wait('subscriber denied.*address=127.0.0.1')
        self.assertIn(self.other.public, line)
        nobody = self.subscriber(self.there.public)
        self.assertEqual(nobody.handshake(), 400)
        thief = self.subscriber(self.there.public, self.here.public, self.other.secret)
        self.assertEqual(thief.handshake(), 0)
        plain = self.subscriber()
        self.assertEqual(plain.handshake(), 0)
        for _ in range(10):
            self.change(known)
        for s in (unlisted, nobody, thief, plain):
            self.assertEqual(s.socket.poll(0), 0)
        # the list is read when somebody comes, without a signal; who is connected stays
        self.write('allow', self.other.public + '\n')
        other = self.subscriber(self.there.public, self.other.public, self.other.secret)
        self.assertIs(other.handshake(), True)
        while other.receive()[0] != b'pullet.heartbeat':
            pass
        self.change(known, other)
        self.assertEqual(self.subscriber(self.there.public, self.here.public, self.here.secret).handshake(), 400)
        self.change(known, other)

    def test_a_recorded_connection_opens_nothing(self):
        host, port = self.endpoint.removeprefix('tcp://').rsplit(':', 1)
        said, heard = bytearray(), bytearray()

        def copy(source, to, into):
            with contextlib.suppress(OSError):
                while data := source.recv(65536):
                    into += data
                    to.sendall(data)
                to.shutdown(socket.SHUT_WR)

        def forward(peer):
            with socket.create_connection((host, int(port))) as s:
                back = threading.Thread(target=copy, args=(s, peer, heard), daemon=True)
                back.start()
                copy(peer, s, said)
                back.join()

        recorder = attack.Listener(self, forward)
        known = self.known(f'tcp://127.0.0.1:{recorder.port}')
        self.change(known)
        self.assertIn(b'\x07MESSAGE', heard)  # what the thief must not get
        watching, recorded = self.known(), bytes(said)
        for pieces in ([recorded], [recorded[:64], recorded[64:]], [recorded[at:at + 200] for at in range(0, len(recorded), 200)]):
            got = bytearray()
            with socket.create_connection((host, int(port)), timeout=harness.DEADLINE) as thief, contextlib.suppress(OSError):
                for piece in pieces:
                    thief.sendall(piece)
                self.change(watching)
                self.change(watching)
                thief.settimeout(0)
                while data := thief.recv(65536):
                    got += data
            self.assertNotIn(b'\x07MESSAGE', got)
            self.assertNotIn(b'\x05READY', got)
        self.change(known, watching)


if __name__ == '__main__':
    harness.main()
