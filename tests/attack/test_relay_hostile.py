"""A relay between hostile neighbours: an upstream publisher that lies, floods, is silent or speaks nonsense, and subscribers that do.

Beside each stands an honest upstream, and an honest subscriber, who is told of each change all the same: by its message, or, where the relay
lost count, by a new epoch. The relay lives, stays small, and ends well. (What one peer can make libzmq hold is not tried here.)
"""
import contextlib
import itertools
import os
import socket
import struct
import threading
import time

import attack
import harness
from test_relay import HEARTBEAT, Case, Publisher, Relay, Subscriber

GROWTH_KB = 300 << 10  # generous: 65,536 topics and the messages that wait are some 60 MB
GREETING = b'\xff' + b'\0' * 8 + b'\x7f\x03\0'


def greeting(mechanism=b'NULL'):
    return GREETING + mechanism.ljust(20, b'\0') + b'\0' * 32


def command(name, body=b''):
    data = bytes([len(name)]) + name + body
    return b'\x04' + bytes([len(data)]) + data


def ready(kind):
    return command(b'READY', b'\x0bSocket-Type' + struct.pack('>I', len(kind)) + kind)


def exactly(peer, size):
    data = b''
    while len(data) < size and (more := peer.recv(size - len(data))):
        data += more
    return data


def shake_hands(peer, kind):
    """All of a handshake, step by step."""
    peer.sendall(greeting())
    exactly(peer, 64)
    peer.sendall(ready(kind))
    exactly(peer, exactly(peer, 2)[1])


def frame(data, flags=0):
    if len(data) < 256:
        return bytes([flags, len(data)]) + data
    return bytes([flags | 2]) + struct.pack('>Q', len(data)) + data


class Hostile(Case):
    def setUp(self):
        super().setUp()
        self.n, self.came, self.go = 0, 0, threading.Event()
        self.addCleanup(self.go.set)  # whoever waits for it ends

    def begin(self, *upstreams):
        """A relay behind an honest publisher and these, all silent yet; and an honest subscriber."""
        self.honest = Publisher(self)
        self.relay = Relay(self, '--upstream', self.honest.endpoint, *(a for u in upstreams for a in ('--upstream', u)))
        self.honest.wait_subscribed()
        self.subscriber = Subscriber(self, self.relay.endpoint)
        self.change(lossless=False)
        self.memory_kb = attack.memory_kb(self.relay.process.pid)

    def change(self, lossless=True):
        """A change upstream; the subscriber is told of it. lossless: by its own message, with its version."""
        self.n += 1
        version, start, epoch = f'v{self.n}', len(self.subscriber.seen), self.subscriber.epoch
        self.honest.send(b'web', {'v': 1, 'epoch': 'honest', 'seq': self.n, 'version': version})
        deadline, at = time.monotonic() + harness.DEADLINE, start
        while True:
            for topic, m in self.subscriber.seen[at:]:
                at += 1
                if topic == 'web' and not m['again'] and (m.get('version') == version or not lossless):
                    return
                if not lossless and m['epoch'] != epoch:
                    return
            self.assertTrue(self.subscriber.receive(deadline - time.monotonic()), f'nobody is told of {version}: {self.subscriber.seen[-5:]}')
            self.assertIsNone(self.relay.process.poll())

    def calm(self):
        """After it all: whatever is told now is told by a message; and the relay is small."""
        self.subscriber.calm()
        for _ in range(10):
            self.change()
        if not harness.SANITIZED:
            self.assertLess(attack.memory_kb(self.relay.process.pid) - self.memory_kb, GROWTH_KB)
        self.relay.stop()


class Upstream(Hostile):
    """Publishers above the relay."""

    def listener(self, answer):
        """An upstream of raw bytes: silent until self.go."""
        def one(peer):
            self.go.wait()
            self.came += 1
            answer(peer)
        server = attack.Listener(self, one)
        return server, f'tcp://127.0.0.1:{server.port}'

    def through(self, answer, connections=2, places=1):
        """The attack over so many connections, beside honest changes; so many upstreams do it."""
        servers, endpoints = zip(*(self.listener(answer) for _ in range(places)))
        self.begin(*endpoints)
        self.go.set()
        deadline = time.monotonic() + harness.DEADLINE * 2
        while self.came < connections:
            self.assertLess(time.monotonic(), deadline)
            self.change(lossless=False)
        for server in servers:
            server.close()
        self.calm()

    def test_garbage(self):
        self.through(lambda peer: peer.sendall(os.urandom(100000)), 3)

    def test_closes_at_once(self):
        self.through(lambda peer: None, 4)

    def test_never_says_a_word(self):
        gone = threading.Event()
        self.addCleanup(gone.set)
        self.through(lambda peer: gone.wait(), 1)

    def test_garbage_after_a_good_beginning(self):
        turns = itertools.cycle((
            b'\x02' + struct.pack('>Q', 1 << 62) + b'x' * 1000,  # a frame that is longer than anything
            b'\x06' + struct.pack('>Q', 1 << 40),
            b'\xff' * 1000,
            command(b'NONSENSE', b'x' * 200) * 100,
            command(b'ERROR', b'\x03bad'),
            command(b'PING', b'\0\0') * 1000,
            frame(b'') * 1000,
            (frame(b'', 1) * 7 + frame(b'')) * 100,
            frame(b'web', 1) + frame(os.urandom(4000)),
            b''.join(frame(os.urandom(n)) for n in range(1, 255)),
        ))

        def answer(peer):
            shake_hands(peer, b'PUB')
            exactly(peer, 3)  # it subscribes
            peer.sendall(next(turns))
        self.through(answer, 12, places=6)

    def test_what_is_no_message_of_anybodys(self):
        hostile = Publisher(self)
        self.begin(hostile.endpoint)
        for frames in ([b'x' * 256], [b'x' * 60000], [b'nul\0topic'], [b'\xff\xfe\x80'], [b'\x1b[31m\x07'], [b''], [b'\0'], [HEARTBEAT.encode() + b'.'],
                       [b'web', b'{"v":1,"seq":'], [b'web', b'x' * 5000], [b'web', b'[' * 4000], [b'web', {'v': 1, 'seq': 2**63}], [b'web', {'v': 1, 'seq': -1}],
                       [b'web', {'v': 1, 'epoch': 'x' * 65}], [b'web', {'v': 1, 'epoch': '\u001b]0;x\u0007', 'version': '\u202e\u0085'}], [b'a', b'b', b'c', b'd'],
                       [HEARTBEAT.encode(), b'\xff'], [HEARTBEAT.encode(), {'v': 1, 'spread_ms': 2**62}]):
            for _ in range(10):
                hostile.send(*frames)
            self.change(lossless=False)
        hostile.close()
        # what it says of times and numbers is not passed on as its own
        for topic, m in self.subscriber.seen:
            self.assertLessEqual(set(m), {'v', 'epoch', 'seq', 'version', 'spread_ms', 'hops', 'again'}, topic)
            self.assertRegex(m['epoch'], '^[0-9a-f]{16}$')
            self.assertLessEqual(m.get('spread_ms', 0), 3600000)
        self.assertNotRegex('\n'.join(self.relay.log.seen), '[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]')
        self.calm()

    def flood(self, make, number):
        """So many messages as fast as they go, beside honest changes."""
        hostile = Publisher(self)
        self.begin(hostile.endpoint)
        hostile.wait_subscribed()
        over = threading.Event()

        def send():
            for n in range(number // (10 if harness.SANITIZED else 1)):
                hostile.send(*make(n))
            over.set()
        sender = threading.Thread(target=send, daemon=True)
        sender.start()
        while not over.is_set():
            self.change(lossless=False)
        sender.join()
        hostile.send(b'the-end')
        self.change(lossless=False)
        hostile.close()
        self.calm()

    def test_a_flood_of_topics_that_nobody_has(self):
        self.flood(lambda n: [f'{"t" * 200}{n}'.encode(), {'v': 1, 'epoch': 'h', 'seq': 1, 'version': 'v' * 200}], 100000)

    def test_a_flood_of_epochs(self):
        begin = time.monotonic()
        self.flood(lambda n: [HEARTBEAT.encode(), {'v': 1, 'epoch': f'{n}'}], 50000)
        epochs = len({m['epoch'] for _, m in self.subscriber.seen})
        self.assertLess(epochs, time.monotonic() - begin + 5, 'of doubts, one a second')

    def test_a_flood_of_the_honest_ones_topic(self):
        self.flood(lambda n: [b'web', {'v': 1, 'epoch': f'{n % 3}', 'seq': n * 7919 % 1000003, 'version': f'never-{n}'}], 50000)


class Downstream(Hostile):
    """Subscribers below the relay."""

    def setUp(self):
        super().setUp()
        self.begin()
        self.port = self.relay.port

    def peer(self, *said, kind=None, small=False):
        """A connection that says this, perhaps after a handshake."""
        s = socket.socket()
        self.addCleanup(s.close)
        if small:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.settimeout(harness.DEADLINE)
        s.connect(('127.0.0.1', self.port))
        with contextlib.suppress(OSError):
            if kind:
                shake_hands(s, kind)
            s.sendall(b''.join(said))
        return s

    def subscribed(self, *prefixes, **kw):
        return self.peer(*(frame(b'\x01' + p) for p in prefixes), kind=b'SUB', **kw)

    def test_twenty_that_never_read(self):
        peers = [self.subscribed(b'', small=True) for _ in range(20)]
        epoch, count, deadline = self.subscriber.calm(), 0, time.monotonic() + harness.DEADLINE * 3
        while self.subscriber.epoch == epoch:
            self.assertLess(time.monotonic(), deadline)
            for _ in range(200):
                count += 1
                self.honest.send(f'{count}-{"x" * 230}'.encode(), {'v': 1, 'epoch': 'honest', 'seq': 1, 'version': 'v' * 250})
            self.subscriber.wait(f'{count}-{"x" * 230}', start=max(0, len(self.subscriber.seen) - 1))
        self.relay.log.wait('subscriber too slow')
        # the honest one has all of them
        self.assertEqual(len({t for t, _ in self.subscriber.seen if t not in (HEARTBEAT, 'web')}), count)
        for _ in range(50):
            self.change()
        for p in peers:
            p.close()
        self.calm()

    def test_subscriptions_to_many(self):
        peers = []
        for _ in range(5):
            peers.append(self.subscribed(*(os.urandom(16) for _ in range(3000))))
            self.change()
        for p in peers:
            p.close()
        # and rolled back, which were never made; of all sorts of names
        self.subscribed(*(b'web'[:n % 4] for n in range(2000)), b'x' * 255, b'x' * 5000, b'\0' * 600)
        self.peer(frame(b'\0web') * 1000, frame(b'') * 100, frame(b'\x02web') * 100, frame(b'\x07' * 600) * 10, kind=b'SUB')
        self.peer(command(b'SUBSCRIBE', b'web') * 1000, command(b'CANCEL', b'web') * 2000, kind=b'SUB')
        self.change()
        self.calm()

    def test_garbage(self):
        for kind, *said in ((None, os.urandom(4096)), (None, greeting()[:20]), (None, greeting(b'CURVE')), (None, greeting(b'PLAIN'), b'x' * 100),
                            (None, greeting(b'\xff' * 20)), (None, greeting(), ready(b'PUB')), (None, greeting(), ready(b'NONSENSE')), (None, greeting(), b'\x04\xff' + b'x' * 255),
                            (None, b'GET / HTTP/1.1\r\nHost: x\r\n\r\n'), (None, b''), (b'SUB', b'\x02' + struct.pack('>Q', 1 << 62), b'x' * 1000), (b'SUB', b'\xff' * 1000),
                            (b'SUB', command(b'PING', b'\xff\xff') * 2000), (b'SUB', command(b'ERROR', b'\x03bad')), (b'SUB', frame(b'web', 1) * 10, frame(b'web'))):
            peers = [self.peer(*said, kind=kind) for _ in range(5)]
            self.change()
            for p in peers:
                p.close()
        self.calm()

    def test_a_thousand_that_come_and_go(self):
        for n in range(1000):
            with contextlib.closing(self.subscribed(b'') if n % 2 else self.peer(b'' if n % 4 else greeting())):
                pass
            if n % 50 == 0:
                self.change()
        self.calm()


if __name__ == '__main__':
    harness.main()
