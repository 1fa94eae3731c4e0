"""A peer of the push channel that keeps to ZMTP 3.0 (ZeroMQ RFC 23, mechanism NULL) for as long as it likes: by hand, on a raw socket.

Either side: a publisher that the victim connects to, or a subscriber that connects to the victim. What comes behind the handshake is
bytes of the test's choice; `ATTACKS` has the shapes that made libzmq grow without bound.
"""
import contextlib
import itertools
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


def parts(body, count):
    """One message that never ends: the same bytes again and again."""
    block = frame(body, more=True) * count
    return lambda: itertools.repeat(block)


def one_by_one(body):
    """As parts(), each in a segment of its own."""
    return lambda: itertools.repeat(frame(body, more=True))


def subscriptions(width):
    """Another topic each time. Names do not repeat between connections either."""
    numbers = itertools.count()

    def blocks():
        while True:
            yield b''.join(frame(b'\x01%0*x' % (width, next(numbers))) for _ in range(1000))
    return blocks


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
    'topics of 7 bytes': subscriptions(6),
    'topics of 31 bytes': subscriptions(30),
    'topics of 290 bytes': subscriptions(289),
}


class Flood:
    """Connects again whenever it is cut off, until it is stopped; `reach()` gives a connected socket."""

    def __init__(self, test, reach, kind, attack):
        self.reach, self.kind, self.attack = reach, kind, attack
        self.sent, self.connections, self.open, self.peer = 0, 0, True, None
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()
        test.addCleanup(self.stop)

    def run(self):
        while self.open:
            with contextlib.suppress(OSError), self.reach() as self.peer:
                shake_hands(self.peer, self.kind)
                self.connections += 1
                for block in ATTACKS[self.attack]():
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
