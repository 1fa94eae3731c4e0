"""HTTP/2 frame by frame over TLS: a server that sends what a test says and when, as wire.py does. It reads just enough of a request to know its stream.

Who does not speak it is served as by wire.py. `answer(ask)` gives steps of wire.py; frames are made by the functions below. Headers are literals that no table takes (RFC 7541, 6.2.2).
"""
import asyncio
import collections
import contextlib
import inspect
import ssl
import struct

from servers.wire import Wire

PREFACE = b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM, ACK, END_HEADERS, PADDED = 1, 1, 4, 8

Ask = collections.namedtuple('Ask', 'place stream')


class Http2(Wire):
    """`tls`: (certificate, key)."""

    def __init__(self, test, answer, tls, places=1):
        super().__init__(test, answer, tls, places)
        self.context.set_alpn_protocols(['h2', 'http/1.1'])

    async def _serve(self, reader, writer, place):
        if writer.get_extra_info('ssl_object').selected_alpn_protocol() != 'h2':
            await super()._serve(reader, writer, place)
            return
        self.connections += 1
        with contextlib.suppress(asyncio.IncompleteReadError, OSError, ssl.SSLError, asyncio.CancelledError):
            if await reader.readexactly(len(PREFACE)) == PREFACE:
                writer.write(frame(SETTINGS))
                await self._read_frames(reader, writer, place)
        writer.close()
        with contextlib.suppress(OSError, ssl.SSLError):
            await writer.wait_closed()

    async def _read_frames(self, reader, writer, place):
        on = True
        while on:
            size, kind, flags, stream = struct.unpack('>3sBBI', await reader.readexactly(9))
            payload = await reader.readexactly(int.from_bytes(size, 'big'))
            if kind in (SETTINGS, PING) and not flags & ACK:
                writer.write(frame(kind, ACK, 0, payload if kind == PING else b''))
            elif kind == HEADERS:
                self.asks += 1
                steps = self.answer(Ask(place, stream))
                self.notify()
                on = await self._play(writer, await steps if inspect.isawaitable(steps) else steps)


def frame(kind, flags=0, stream=0, payload=b''):
    return struct.pack('>I', len(payload))[1:] + bytes([kind, flags]) + struct.pack('>I', stream) + payload


def text(value):
    """With its length, 7 bits at first (RFC 7541, 5.1)."""
    value = value if isinstance(value, bytes) else value.encode()
    if len(value) < 127:
        return bytes([len(value)]) + value
    rest, coded = len(value) - 127, b'\x7f'
    while rest >= 128:
        coded, rest = coded + bytes([rest % 128 + 128]), rest // 128
    return coded + bytes([rest]) + value


def fields(*pairs):
    return b''.join(b'\0' + text(name) + text(value) for name, value in pairs)


def headers(stream, *pairs, status='200', flags=END_HEADERS):
    return frame(HEADERS, flags, stream, fields((':status', status), *pairs))


def data(stream, body, flags=0):
    return frame(DATA, flags, stream, body)


def whole(stream, body, *pairs, status='200'):
    return headers(stream, ('content-length', str(len(body))), *pairs, status=status) + data(stream, body, END_STREAM)


def reset(stream, code):
    return frame(RST_STREAM, 0, stream, struct.pack('>I', code))


def goaway(last, code, words=b''):
    return frame(GOAWAY, 0, 0, struct.pack('>II', last, code) + words)
