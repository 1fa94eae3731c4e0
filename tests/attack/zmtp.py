"""A peer of the push channel that keeps to ZMTP 3.0 (ZeroMQ RFC 23, mechanism NULL, or RFC 26, CURVE) for as long as it likes: by hand, on a raw socket.

Either side: a publisher that the victim connects to, or a subscriber that connects to the victim. What comes behind the handshake is
bytes of the test's choice; `ATTACKS` has the shapes that made libzmq grow without bound.
"""
import contextlib
import ctypes
import itertools
import os
import socket
import struct
import threading
import time

import harness

GREETING = b'\xff' + b'\0' * 8 + b'\x7f' + b'\x03\x00' + b'NULL' + b'\0' * 16 + b'\0' + b'\0' * 31
MORE, LONG, COMMAND = 1, 2, 4


def frame(body, more=False, command=False, long=False):
    flags = (MORE if more else 0) | (COMMAND if command else 0)
    if long or len(body) > 255:
        return bytes([flags | LONG]) + struct.pack('>Q', len(body)) + body
    return bytes([flags, len(body)]) + body


def exactly(peer, size):
    data = b''
    while len(data) < size:
        more = peer.recv(size - len(data))
        if not more:
            raise ConnectionError('closed in the handshake')
        data += more
    return data


def take_frame(peer):
    """(flags, body)"""
    flags = exactly(peer, 1)[0]
    size = struct.unpack('>Q', exactly(peer, 8))[0] if flags & LONG else exactly(peer, 1)[0]
    return flags, exactly(peer, size)


def shake_hands(peer, kind):
    """kind: b'PUB' or b'SUB'."""
    peer.settimeout(harness.DEADLINE)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    peer.sendall(GREETING)
    exactly(peer, 64)
    peer.sendall(frame(b'\x05READY' + b'\x0bSocket-Type' + struct.pack('>I', len(kind)) + kind, command=True))
    take_frame(peer)


def frames(block):
    """(flags, body) of each."""
    at = 0
    while at < len(block):
        flags, head = block[at], 9 if block[at] & LONG else 2
        size = int.from_bytes(block[at + 1:at + head], 'big')
        yield flags, block[at + head:at + head + size]
        at += head + size


class Sealed:
    """A CURVE client on a connected socket, with keys of its own; `server`: the other side's public key."""

    def __init__(self, peer, kind, server, public, secret):
        self.sodium, self.number = ctypes.CDLL('libsodium.so.23'), 0
        brief, brief_secret = ctypes.create_string_buffer(32), ctypes.create_string_buffer(32)
        self.sodium.crypto_box_keypair(brief, brief_secret)
        peer.settimeout(harness.DEADLINE)
        peer.sendall(GREETING[:12] + b'CURVE' + b'\0' * 47)
        exactly(peer, 64)
        number = struct.pack('>Q', 1)
        peer.sendall(frame(b'\x05HELLO\x01\0' + b'\0' * 72 + brief.raw + number + self.box(b'\0' * 64, b'CurveZMQHELLO---' + number, server, brief_secret), command=True))
        welcome = take_frame(peer)[1]
        opened = ctypes.create_string_buffer(128)
        assert self.sodium.crypto_box_open_easy(opened, welcome[24:], ctypes.c_ulonglong(144), b'WELCOME-' + welcome[8:24], server, brief_secret) == 0
        theirs, cookie = opened.raw[:32], opened.raw[32:]
        voucher = os.urandom(16)
        vouch = voucher + self.box(brief.raw + server, b'VOUCH---' + voucher, theirs, secret)
        told = public + vouch + b'\x0bSocket-Type' + struct.pack('>I', len(kind)) + kind
        peer.sendall(frame(b'\x08INITIATE' + cookie + number + self.box(told, b'CurveZMQINITIATE' + number, theirs, brief_secret), command=True))
        take_frame(peer)
        self.key = ctypes.create_string_buffer(32)
        self.sodium.crypto_box_beforenm(self.key, theirs, brief_secret)
        self.number = 2

    def box(self, text, nonce, theirs, ours):
        sealed = ctypes.create_string_buffer(len(text) + 16)
        assert self.sodium.crypto_box_easy(sealed, text, ctypes.c_ulonglong(len(text)), nonce, theirs, ours) == 0
        return sealed.raw

    def frame(self, flags, body):
        self.number += 1
        number, text = struct.pack('>Q', self.number), bytes([flags & MORE | (flags & COMMAND) >> 1]) + body
        sealed = ctypes.create_string_buffer(len(text) + 16)
        self.sodium.crypto_box_easy_afternm(sealed, text, ctypes.c_ulonglong(len(text)), b'CurveZMQMESSAGEC' + number, self.key)
        return frame(b'\x07MESSAGE' + number + sealed.raw)

    def blocks(self, plain):
        """The same frames, encrypted; some at a time."""
        for block in plain:
            inner = frames(block)
            while some := b''.join(self.frame(*f) for f in itertools.islice(inner, 200)):
                yield some


def parts(body, count):
    """One message that never ends: the same bytes again and again."""
    block = frame(body, more=True) * count
    return lambda: itertools.repeat(block)


def one_by_one(body):
    """As parts(), each in a segment of its own."""
    return lambda: itertools.repeat(frame(body, more=True))


def many(make, count=1000):
    """Another frame each time, by its number. Numbers do not repeat between connections either."""
    numbers = itertools.count()

    def blocks():
        while True:
            yield b''.join(make(next(numbers)) for _ in range(count))
    return blocks


def topic(width, number):
    return b'%0*x' % (width, number)


def far_apart(number):
    """Topics in pairs that differ in a byte, as much as bytes can: each makes libzmq's trie have a table of 256."""
    return struct.pack('>I', number // 2 * 2654435761 % (1 << 32)) + (b'\xff' if number % 2 else b'\0')


def some(make, count):
    """As many(), and then the connection ends."""
    blocks = many(make, count)
    return lambda: itertools.islice(blocks(), 1)


def again(data):
    return lambda: itertools.repeat(data)


# bytes of a victim's memory for each byte sent: 1, 20, 32; a whole message of many parts forgives what came before, if it is counted badly
ATTACKS = {
    'parts of 60 kB': parts(b'w' * 60000, 4),
    'parts of 4 kB': parts(b'w' * 4000, 16),
    'parts of 200 bytes': parts(b'w' * 200, 320),
    'parts of 1 byte': parts(b'w', 20000),
    'parts of no bytes': parts(b'', 30000),
    'parts of 40 bytes, one by one': one_by_one(b'w' * 40),
    'parts of no bytes, and an end now and then': lambda: itertools.repeat(frame(b'', more=True) * 30000 + frame(b'w')),
    'messages of no bytes': lambda: itertools.repeat(frame(b'') * 30000),
    'messages of 1 byte': lambda: itertools.repeat(frame(b'w') * 20000),
    'topics of 7 bytes': many(lambda n: frame(b'\x01' + topic(6, n))),
    'topics of 31 bytes': many(lambda n: frame(b'\x01' + topic(30, n))),
    'topics of 290 bytes': many(lambda n: frame(b'\x01' + topic(289, n))),
    'topics of 240 bytes that have nothing in common': many(lambda n: frame(b'\x01' + topic(10, n)[::-1] * 24)),
    'topics that branch': many(lambda n: frame(b'\x01' + far_apart(n))),
    'topics by commands': many(lambda n: frame(b'\x09SUBSCRIBE' + topic(30, n), command=True)),
    'topics that are rolled back': many(lambda n: frame(b'\x01' + topic(30, n)) + frame(b'\x00' + topic(30, n))),
    'topics, and away': some(lambda n: frame(b'\x01' + topic(30, n)), 300),
    'one topic': again(frame(b'\x01web') * 20000),
    'all topics, again and again': again((frame(b'\x01') + frame(b'\x00')) * 20000),
    'cancellations': many(lambda n: frame(b'\x00' + topic(6, n))),
    'pings': again(frame(b'\x04PING\0\0', command=True) * 10000),
    'whole messages of 30,000 empty parts': again(frame(b'', more=True) * 29999 + frame(b'')),
    'a frame that never ends': lambda: itertools.chain([bytes([LONG]) + struct.pack('>Q', 1 << 40)], itertools.repeat(b'\x01' * 60000)),
    'frames of 60 kB that hardly begin': lambda: itertools.chain([bytes([LONG]) + struct.pack('>Q', 60000) + b'\x01']),
}


class Flood:
    """Connects again whenever it is cut off, until it is stopped; `reach()` gives a connected socket."""

    def __init__(self, test, reach, kind, attack, keys=None):
        """keys: the server's public key, and a public and a secret one for this peer; NULL otherwise."""
        self.reach, self.kind, self.attack, self.keys = reach, kind, attack, keys
        self.sent, self.connections, self.open, self.peer = 0, 0, True, None
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()
        test.addCleanup(self.stop)

    def run(self):
        while self.open:
            with contextlib.suppress(OSError), self.reach() as self.peer:
                if self.kind == b'SUB':
                    self.peer.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 64 << 10)  # what is sent is mostly read
                blocks = ATTACKS[self.attack]()
                if self.keys:
                    blocks = Sealed(self.peer, self.kind, *self.keys).blocks(blocks)
                else:
                    shake_hands(self.peer, self.kind)
                self.connections += 1
                for block in blocks:
                    view = memoryview(block)
                    while view and self.open:
                        done = self.peer.send(view)
                        self.sent, view = self.sent + done, view[done:]
                    if not self.open:
                        break

    def wait_sent(self, size, alive=lambda: True):
        """Until so many bytes are sent in all."""
        deadline = time.monotonic() + 4 * harness.DEADLINE
        while self.sent < size:
            assert alive(), 'the victim is gone'
            assert time.monotonic() < deadline, f'{self.attack}: only {self.sent} of {size} bytes in {self.connections} connections'
            time.sleep(.01)

    def stop(self):
        self.open = False
        with contextlib.suppress(OSError, AttributeError):
            self.peer.shutdown(socket.SHUT_RDWR)
        self.thread.join(harness.DEADLINE)


class Endpoint:
    """Where a victim connects to: `reach` waits for it. Who comes while nobody reaches waits in line."""

    def __init__(self, test, family=socket.AF_INET, host='127.0.0.1'):
        self.socket = socket.socket(family)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind((host, 0))
        self.socket.listen(16)
        self.socket.settimeout(.5)
        test.addCleanup(self.close)
        self.endpoint = f'tcp://{f"[{host}]" if ":" in host else host}:{self.socket.getsockname()[1]}'

    def reach(self):
        return self.socket.accept()[0]

    def close(self):
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


def reach(endpoint):
    """A function that connects to a victim's endpoint."""
    host, port = endpoint.removeprefix('tcp://').rsplit(':', 1)
    return lambda: socket.create_connection((host.strip('[]'), int(port)), harness.DEADLINE)
