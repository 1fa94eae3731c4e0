"""What publishers do wrong over ZMTP: each is refused, cut off or counted by name, the version stays, and pushes flow again within three heartbeats and
the longest pause before a reconnection.

One agent has an endpoint and a config for each row. Each peer is honest first, misbehaves once, and is honest again to whoever connects then.
"""
import collections
import contextlib
import json
import os
import random
import re
import socket
import struct
import sys
import threading
import time

import harness
from harness import Agent
from servers.wire import Wire, counted

sys.path.insert(0, os.path.join(harness.ROOT, 'tests', 'attack'))
import zmtp  # noqa: E402
from zmtp import GREETING, LONG, MORE, frame  # noqa: E402

HEARTBEAT_MS, HANDSHAKE_MS, RECONNECT_MAX_MS = 300, 10000, 2000  # the second: PUSH_HANDSHAKE_MS, the third: of an endpoint on this host
GRACE_MS = 10000 if harness.SANITIZED else 1000
MEMORY = 24 << 10  # KiB, for all at once
INSTEAD, BEFORE_READY, AFTER = 'of the greeting', 'behind the greeting', 'behind the handshake'
KEEP, CLOSE, RESET, HOLD = 'goes on', 'ends', 'is reset', 'says nothing more'
BEAT = frame(b'pullet.heartbeat')
NOT_ZEROMQ, HUNG, REBUILT, SILENT = 'ended the handshake|not a ZeroMQ publisher|keep to the protocol', 'does not answer', 'rebuilt', 'silent'
AT_ONCE = NOT_ZEROMQ + '|lost'  # it may come before libzmq has begun


def ready(kind=b'PUB', more=b''):
    return frame(b'\x05READY' + b'\x0bSocket-Type' + struct.pack('>I', len(kind)) + kind + more, command=True)


def mechanism(name):
    return GREETING[:12] + name.ljust(20, b'\0') + b'\0' * 32


def envelope(text):
    return frame(b'TOPIC', more=True) + frame(text)


# name: (when, what is sent, how it ends, what is said of it or the counter that grows)
ROWS = {
    'the end at once': (INSTEAD, b'', CLOSE, AT_ONCE),
    'a reset at once': (INSTEAD, b'', RESET, AT_ONCE),
    'an answer of HTTP': (INSTEAD, b'HTTP/1.1 400 Bad Request\r\n\r\n' + b'x' * 100, CLOSE, NOT_ZEROMQ),
    'an answer of HTTP, and nothing more': (INSTEAD, b'HTTP/1.1 400 Bad Request\r\n\r\n' + b'x' * 100, HOLD, HUNG),
    'half of a greeting': (INSTEAD, GREETING[:20], CLOSE, NOT_ZEROMQ),
    'half of a greeting, and nothing more': (INSTEAD, GREETING[:20], HOLD, HUNG),
    'nothing': (INSTEAD, b'', HOLD, HUNG),
    'garbage': (INSTEAD, bytes(range(256)) * 16, HOLD, NOT_ZEROMQ),
    'a mechanism nobody knows': (INSTEAD, mechanism(b'XXXX') + ready(), HOLD, 'does not send plain text'),
    'PLAIN': (INSTEAD, mechanism(b'PLAIN') + ready(), HOLD, 'does not send plain text'),
    'CURVE': (INSTEAD, mechanism(b'CURVE'), HOLD, 'does not send plain text'),
    'a greeting, and nothing more': (BEFORE_READY, b'', HOLD, HUNG),
    'READY of a REP': (BEFORE_READY, ready(b'REP'), HOLD, NOT_ZEROMQ),
    'READY with a length beyond its end': (BEFORE_READY, frame(b'\x05READY\x0bSocket-Type\xff\xff\xff\xffPUB', command=True), HOLD, NOT_ZEROMQ),
    'READY of a megabyte': (BEFORE_READY, ready(more=b'\x01X' + struct.pack('>I', 1 << 20) + b'x' * (1 << 20)), HOLD, NOT_ZEROMQ),
    'ERROR for READY': (BEFORE_READY, frame(b'\x05ERROR\x07go away', command=True), HOLD, NOT_ZEROMQ),
    'a message for READY': (BEFORE_READY, frame(b'TOPIC'), HOLD, NOT_ZEROMQ),
    'a command nobody knows for READY': (BEFORE_READY, frame(b'\x04WHAT', command=True), HOLD, NOT_ZEROMQ),
    'a frame of a megabyte': (AFTER, frame(b'TOPIC', more=True) + frame(b'x' * (1 << 20)), HOLD, REBUILT),
    'a frame of 2^63': (AFTER, bytes([LONG]) + b'\x80' + b'\0' * 7, HOLD, REBUILT),
    'a frame of 2^64 - 1': (AFTER, bytes([LONG]) + b'\xff' * 8 + b'x' * 100, HOLD, REBUILT),
    'half of a frame, and the end': (AFTER, frame(b'x' * 200)[:100], CLOSE, ''),
    'half of a frame, and a reset': (AFTER, frame(b'x' * 200)[:100], RESET, ''),
    'half of a frame, and nothing more': (AFTER, frame(b'x' * 200)[:100], HOLD, SILENT),
    'half of a message, and nothing more': (AFTER, frame(b'TOPIC', more=True), HOLD, SILENT),
    'no heartbeats any more': (AFTER, b'', HOLD, SILENT),
    'all flags': (AFTER, b'\xff' + b'\0' * 8 + b'x' * 300, HOLD, REBUILT + '|' + SILENT),
    'garbage for frames': (AFTER, bytes(range(256))[::-1] * 16, HOLD, REBUILT + '|' + SILENT),
    'a second greeting': (AFTER, GREETING + ready(), HOLD, REBUILT + '|' + SILENT),
    'ERROR behind READY': (AFTER, frame(b'\x05ERROR\x07go away', command=True), HOLD, REBUILT + '|' + SILENT),
    'a command nobody knows': (AFTER, frame(b'\x04WHAT' + b'x' * 200, command=True), KEEP, ''),
    'a command without an end': (AFTER, frame(b'\xffWHAT', command=True), KEEP, ''),
    'subscriptions of a publisher': (AFTER, frame(b'\x01web') * 100 + frame(b'\x09SUBSCRIBEweb', command=True) * 100, KEEP, ''),
    'pings without end': (AFTER, frame(b'\x04PING\0\0' + b'x' * 16, command=True) * 20000, KEEP, ''),
    'pings that are too long': (AFTER, frame(b'\x04PING\0\0' + b'x' * 200, command=True) * 20, KEEP, ''),
    'parts without end': (AFTER, frame(b'x', more=True) * 400000, HOLD, 'over the limit of memory' + '|push channel silent' * harness.SANITIZED),  # which makes that slower than the silence
    'three parts': (AFTER, (frame(b'TOPIC', more=True) * 2 + frame(b'')) * 100, KEEP, 'bad'),
    'an empty topic': (AFTER, frame(b''), KEEP, 'bad'),
    'a topic of a kilobyte': (AFTER, frame(b'x' * 1000), KEEP, 'bad'),
    'a NUL in a topic': (AFTER, frame(b'TOPIC\0'), KEEP, 'bad'),
    'an envelope that is no JSON': (AFTER, envelope(b'{"v": 1, "seq": "x'), KEEP, 'bad'),
    'an envelope with numbers beyond all': (AFTER, envelope(b'{"v": 1, "epoch": "e", "seq": 99999999999999999999, "spread_ms": 1e400}'), KEEP, 'bad'),
    'an envelope with a spread below 0': (AFTER, envelope(b'{"v": 1, "spread_ms": -9223372036854775808}'), KEEP, 'bad'),
    'an envelope of other types': (AFTER, envelope(b'{"v": 1, "epoch": [], "seq": {}, "version": 1}'), KEEP, 'bad'),
    'an envelope of a version nobody has': (AFTER, envelope(b'{"v": 1, "epoch": "e", "seq": 1, "version": "never"}'), KEEP, 'messages'),
    'another epoch each time': (AFTER, b''.join(envelope(b'{"v": 1, "epoch": "e%d", "seq": 1}' % n) for n in range(2000)), KEEP, 'epochs'),
    'sequences that go back': (AFTER, b''.join(envelope(b'{"v": 1, "epoch": "e", "seq": %d}' % n) for n in range(2000, 0, -1)), KEEP, 'messages'),
}


class Peer:
    """`number`: of its endpoint and its config."""

    def __init__(self, test, number, row):
        self.topic = b'c%d' % number
        self.when, what, self.ends, self.says = row
        self.what = what.replace(frame(b'TOPIC'), frame(self.topic)).replace(frame(b'TOPIC', more=True), frame(self.topic, more=True))
        self.stage, self.done, self.back, self.held, self.messages, self.wake = 'honest', 0, 0, [], collections.deque(), threading.Event()
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.endpoint = f'tcp://127.0.0.1:{self.listener.getsockname()[1]}'
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()
        test.addCleanup(self.close)

    def limit_ms(self):
        return max(HANDSHAKE_MS if self.says == HUNG else 0, 3 * HEARTBEAT_MS) + RECONNECT_MAX_MS + GRACE_MS

    def run(self):
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            self.held.append(peer)
            with contextlib.suppress(OSError):
                peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if self.stage == 'bad' and self.when != AFTER:
                    self.misbehave(peer)
                    continue
                zmtp.shake_hands(peer, b'PUB')
                self.wait_subscribed(peer)
                self.back = self.back or (time.monotonic() if self.done else 0)
                self.publish(peer)
                continue
            peer.close()

    def wait_subscribed(self, peer):
        while True:
            flags, body = zmtp.take_frame(peer)
            if not flags & zmtp.COMMAND and body == b'\1' + self.topic:
                return

    def publish(self, peer):
        """Heartbeats, and the messages that are to be sent; until it is time to misbehave, or the agent is gone."""
        while self.stage != 'bad':
            peer.sendall(BEAT)
            while some := b''.join(self.messages.popleft() for _ in range(min(len(self.messages), 100))):
                peer.sendall(some)
            self.wake.wait(HEARTBEAT_MS / 4000)  # the rate of heartbeats
            self.wake.clear()
        if self.when != AFTER:
            peer.close()
            return
        self.misbehave(peer)
        if self.ends == KEEP:
            self.back = self.done
            self.publish(peer)

    def say(self, *messages):
        self.messages.extend(messages)
        self.wake.set()

    def misbehave(self, peer):
        """Once. What the agent does not want to read any more is not sent."""
        with contextlib.suppress(OSError):
            if self.when == BEFORE_READY:
                peer.sendall(GREETING)
                zmtp.exactly(peer, 64)
            peer.settimeout(2)
            peer.sendall(self.what)
        self.stage, self.done = 'honest', time.monotonic()
        if self.ends == RESET:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
        if self.ends in (RESET, CLOSE):
            peer.close()

    def close(self):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.stage = 'bad'
        for peer in self.held:
            with contextlib.suppress(OSError):
                peer.shutdown(socket.SHUT_RDWR)
        self.thread.join(5)


class Peers(harness.Case):
    def start(self, rows):
        self.n = 1
        self.server = Wire(self, lambda ask: [counted(b'n: %d\n' % self.n, f'ETag: "{self.n}"')])
        self.peers = {name: Peer(self, i, row) for i, (name, row) in enumerate(rows.items())}
        os.makedirs(self.path('out'))
        push = ''.join(f'  - {{endpoint: "{p.endpoint}", heartbeat: {HEARTBEAT_MS}ms}}\n' for p in self.peers.values())
        configs = ''.join(f'  c{i}: {{url: "{self.server.url}/c{i}", type: yaml, file: {self.path(f"out/c{i}")}, interval: 1h}}\n' for i in range(len(rows)))
        self.agent = Agent(self, f'agent: {{state_dir: {self.path("state")}, runtime_dir: {self.path("run")}, log: {{level: info}}}}\npush:\n{push}configs:\n{configs}')
        self.agent.ready()
        self.until(lambda: all(p['state'] == 'connected' for p in self.push()), lambda: f'not connected: {self.push()}')
        self.until(lambda: self.published(1), 'all are published')

    def push(self):
        self.agent.log._more(time.monotonic() + .02)
        return json.loads(self.agent.get('/v1/status')[1])['push']

    def published(self, n):
        self.agent.log._more(time.monotonic() + .02)
        return all(self.read_or_none(f'out/c{i}') == b'n: %d\n' % n for i in range(len(self.peers)))

    def read_or_none(self, name):
        return self.read(name) if os.path.exists(self.path(name)) else None

    def said(self, peer):
        return [line for line in self.agent.log.seen if f'endpoint={peer.endpoint} ' in line + ' ' and 'push channel connected' not in line]

    def compare(self, name, peer, before, after):
        """What is not as it must be."""
        if not peer.back:
            yield f'{name}: never came back: {self.said(peer)}'
        elif (peer.back - peer.done) * 1000 > peer.limit_ms():
            yield f'{name}: pushes flow again after {peer.back - peer.done:.1f} s'
        if re.fullmatch(r'\w+', peer.says) and peer.says in before:
            if after[peer.says] <= before[peer.says]:
                yield f'{name}: {peer.says} is {after[peer.says]}'
        elif peer.says and not any(re.search(peer.says, line) for line in self.said(peer)):
            yield f'{name}: the log says {self.said(peer)}'
        refused = after['handshake_failures'] - before['handshake_failures']
        if peer.says != AT_ONCE and bool(refused) != (peer.when != AFTER and peer.says != HUNG):
            yield f'{name}: {refused} handshakes failed'

    def memory(self):
        with open(f'/proc/{self.agent.pid}/status', encoding='ascii') as f:
            return next(int(line.split()[1]) for line in f if line.startswith('VmHWM'))

    def test_each_is_survived_and_pushes_flow_again(self):
        self.assertGreaterEqual(len(ROWS), 20)
        self.start(ROWS)
        before, memory = self.push(), self.memory()
        for peer in self.peers.values():
            peer.stage = 'bad'
        self.until(lambda: self.push() and all(p.back for p in self.peers.values()), lambda: f'not back: {[(n, self.said(p)) for n, p in self.peers.items() if not p.back]}')
        after = self.push()
        bad = [line for i, (name, peer) in enumerate(self.peers.items()) for line in self.compare(name, peer, before[i], after[i])]
        self.assertTrue(self.published(1), 'nothing is published that the server does not have')
        if not harness.SANITIZED:
            self.assertLess(self.memory() - memory, MEMORY)
        for i in range(len(self.peers)):  # the pulls that the connections cause are over
            self.agent.refresh(f'c{i}')
        self.n = 2
        for peer in self.peers.values():
            peer.say(frame(peer.topic))
        self.until(lambda: self.published(2), lambda: f'no push came: {[n for i, n in enumerate(self.peers) if self.read(f"out/c{i}") != b"n: 2" + chr(10).encode()]}')
        self.agent.stop()
        self.assertEqual(bad, [], '\n' + '\n'.join(bad))


class Burst(harness.Case):
    MESSAGES, INTERVAL_S, WINDOW_S = 100000, 2, .1  # the last: push_min_interval

    def test_of_a_burst_in_any_order_with_gaps_and_repetitions_the_last_version_stays(self):
        seed = int(os.environ.get('PULLET_SEED', '0')) or random.randrange(1 << 32)
        rng, self.n = random.Random(seed), 1
        server = Wire(self, lambda ask: [counted(b'n: %d\n' % self.n, f'ETag: "v{self.n}"')])
        peer = Peer(self, 0, (AFTER, b'', KEEP, ''))
        os.makedirs(self.path('out'))
        agent = Agent(self, f'agent: {{state_dir: {self.path("state")}, runtime_dir: {self.path("run")}, log: {{level: info}}}}\npush: [{{endpoint: "{peer.endpoint}"}}]\n'
                      f'configs: {{c0: {{url: "{server.url}/c0", type: yaml, file: {self.path("out/c0")}, interval: {self.INTERVAL_S}s, jitter: 0%}}}}\n')
        agent.log.wait('push channel connected')
        agent.refresh('c0')
        before, begin, left = server.asks, time.monotonic(), self.MESSAGES
        while left:
            self.n += 1
            some = [self.n - rng.randrange(4) for _ in range(rng.randrange(500))][:left]
            left -= len(some)
            peer.say(*(frame(peer.topic, more=True) + frame(b'{"v": 1, "epoch": "e", "seq": %d, "version": "v%d"}' % (n, n)) for n in some if n % 7))
            self.until(lambda: not peer.messages, 'they are sent')
        took = time.monotonic() - begin
        fetches = server.asks - before
        agent.refresh('c0')
        self.n += 1  # of this one no message tells
        lost = time.monotonic()
        self.until(lambda: self.read('out/c0') == b'n: %d\n' % self.n, f'the last version, seed {seed}')
        late = time.monotonic() - lost
        print(f'{self.MESSAGES} messages in {took:.1f} s: {fetches} requests; the lost one after {late:.1f} s; seed {seed}', flush=True)
        agent.stop()
        self.assertLessEqual(late, self.INTERVAL_S + GRACE_MS / 1000)
        self.assertLessEqual(fetches, 2 + took / self.WINDOW_S + took / self.INTERVAL_S)
        versions = [int(found[1]) for line in agent.log.seen if (found := re.search(r'published config=c0 .*version=v(\d+)', line))]
        self.assertEqual(versions, sorted(set(versions)), f'seed {seed}')


if __name__ == '__main__':
    harness.main()
