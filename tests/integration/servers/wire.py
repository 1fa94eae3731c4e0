"""HTTP/1.x byte by byte: a server that sends what a test says and when, over plain TCP or TLS; and what such answers are made of.

`answer(ask)` gives steps, which are played in order: bytes are sent as one piece, a number is a pause in seconds, CLOSE and RESET end the
connection, CUT does so without the close_notify of TLS, HOLD sends nothing more, Bare bytes go around TLS, a function is called, and what follows
LATER is sent beside the next request, whose answer need not wait for it. All connections are served by one thread; `answer` is called in it and must not block.
"""
import asyncio
import contextlib
import gzip
import inspect
import logging
import os
import socket
import ssl
import struct
import threading
import urllib.parse

DEADLINE = 20  # seconds; ends a wait that hangs, measures nothing
logging.getLogger('asyncio').setLevel(logging.CRITICAL)  # a client that goes away is no news
CLOSE, RESET, CUT, HOLD, LATER = (object() for _ in range(5))


class Bare(bytes):
    """Goes out as it is on a connection of TLS too."""


class Connection:
    """`number` counts the connections of a server from 0; `notes` is for the test."""

    def __init__(self, number, place):
        self.number, self.place, self.asks, self.notes = number, place, 0, {}


class Ask:
    """One request as it came; `number` counts those of its connection from 0. Names of headers are in lower case."""

    def __init__(self, connection, head, body):
        first, *lines = head.decode('latin-1').split('\r\n')
        self.method, self.target, _ = first.split(' ', 2)
        self.path, _, self.query_string = self.target.partition('?')
        self.query = dict(urllib.parse.parse_qsl(self.query_string, keep_blank_values=True))
        self.headers = {name.lower(): value.strip() for name, _, value in (line.partition(':') for line in lines)}
        self.head, self.body, self.connection, self.place, self.number = head, body, connection, connection.place, connection.asks
        connection.asks += 1

    def __repr__(self):
        return f'<{self.method} {self.target} {self.number + 1} on connection {self.connection.number}>'


class Wire:
    """`places` listeners, each with a url of its own; `tls`: (certificate, key). `greet`: steps at the beginning of each connection."""

    def __init__(self, test, answer, tls=None, places=1, greet=()):
        self.answer, self.greet, self.connections, self.asks, self.resumed, self.errors = answer, greet, 0, 0, 0, []
        self.changed, self.ended = threading.Condition(), False
        self.context = None
        if tls:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(*tls)
        self.sockets = [socket.create_server(('127.0.0.1', 0), backlog=512) for _ in range(places)]
        self.ports = [s.getsockname()[1] for s in self.sockets]
        self.urls = [f'{"https" if tls else "http"}://127.0.0.1:{port}' for port in self.ports]
        self.url, self._tasks, self._begun = self.urls[0], set(), threading.Event()
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()
        assert self._begun.wait(DEADLINE), 'the server did not start'
        test.addCleanup(self.close)

    def wait(self, condition, what='it', timeout=DEADLINE):
        """Until `condition()` is true; looked at after each request and whenever notify() was called."""
        with self.changed:
            assert self.changed.wait_for(condition, timeout), f'{what} never came: {self.asks} requests on {self.connections} connections'

    def notify(self):
        with self.changed:
            self.changed.notify_all()

    def close(self):
        if not self.ended:
            self.ended = True
            self.loop.call_soon_threadsafe(self.loop.stop)
            self.thread.join(DEADLINE)
        assert not self.errors, self.errors[:3]

    def drop(self):
        """Ends every connection, and forgets what was to be sent later."""
        def cancel():
            for task in self._tasks:
                task.cancel()
        self.loop.call_soon_threadsafe(cancel)

    # -- the loop's thread

    def _run(self):
        asyncio.set_event_loop(self.loop)
        for place, listener in enumerate(self.sockets):
            def accepted(reader, writer, place=place):
                self._start(self._serve(reader, writer, place))
            self.loop.run_until_complete(asyncio.start_server(accepted, sock=listener, ssl=self.context))
        self._begun.set()
        self.loop.run_forever()
        for listener in self.sockets:
            listener.close()
        for task in self._tasks:
            task.cancel()
        self.loop.run_until_complete(asyncio.gather(*self._tasks, return_exceptions=True))
        self.loop.run_until_complete(asyncio.sleep(0))
        self.loop.close()

    def _start(self, coroutine):
        task = self.loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader, writer, place):
        connection = Connection(self.connections, place)
        self.connections += 1
        # asyncio does this by itself for some sockets only; without it a second piece waits for the first one's acknowledgement, 40 ms
        writer.get_extra_info('socket').setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.context and writer.get_extra_info('ssl_object').session_reused:
            self.resumed += 1
        try:
            on = await self._begin(writer)
            while on:
                head = (await reader.readuntil(b'\r\n\r\n'))[:-4]
                length = next((int(line[15:]) for line in head.split(b'\r\n') if line.lower().startswith(b'content-length:')), 0)
                ask = Ask(connection, head, await reader.readexactly(length))
                self.asks += 1
                steps = self.answer(ask)
                self.notify()
                on = await self._play(writer, await steps if inspect.isawaitable(steps) else steps)
        except (asyncio.IncompleteReadError, OSError, ssl.SSLError):
            pass
        except asyncio.CancelledError:
            pass
        except Exception as e:  # pylint: disable=broad-except
            self.errors.append(e)
        finally:
            writer.close()
            with contextlib.suppress(OSError, ssl.SSLError):
                await writer.wait_closed()

    async def _play(self, writer, steps):
        """Whether another request may be read."""
        steps = list(steps)
        for i, step in enumerate(steps):
            if isinstance(step, Bare):
                os.write(writer.get_extra_info('socket').fileno(), step)
            elif isinstance(step, bytes):
                if writer.is_closing():
                    return False
                writer.write(step)
                await writer.drain()
            elif step is LATER:
                self._start(self._play_later(writer, steps[i + 1:]))
                return True
            elif step is CLOSE:
                return False
            elif step is RESET:
                writer.get_extra_info('socket').setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
                writer.transport.abort()
                return False
            elif step is CUT:
                with contextlib.suppress(OSError):
                    writer.get_extra_info('socket').shutdown(socket.SHUT_RDWR)
                return False
            elif step is HOLD:
                await asyncio.Event().wait()
            elif callable(step):
                step()
            else:
                await asyncio.sleep(step)
        return True

    async def _begin(self, writer):
        """Whether the connection goes on."""
        return await self._play(writer, self.greet)

    async def _play_later(self, writer, steps):
        with contextlib.suppress(OSError, ssl.SSLError):
            if not await self._play(writer, steps):
                writer.close()


class Handshakes(Wire):
    """A server by TLS that may do something else instead: `begin(port)` gives a list of steps, or a certificate and a key."""

    def __init__(self, test, answer, begin, places):
        super().__init__(test, answer, places=places)
        self.begin, self.urls = begin, [url.replace('http:', 'https:') for url in self.urls]

    async def _begin(self, writer):
        begin = self.begin(writer.get_extra_info('sockname')[1])
        if isinstance(begin, list):
            return await self._play(writer, begin)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*begin)
        await writer.start_tls(context)
        return True


# -- what answers are made of

def head(*lines, status='200 OK', version='1.1'):
    """Each line is bytes or text, as it is."""
    return b'\r\n'.join([f'HTTP/{version} {status}'.encode(), *(line if isinstance(line, bytes) else line.encode('latin-1') for line in lines), b'', b''])


def counted(body, *lines, status='200 OK'):
    """An answer with its length."""
    return head(f'Content-Length: {len(body)}', *lines, status=status) + body


def chunks(*parts, last=b'0\r\n\r\n'):
    """The body of a chunked answer."""
    return b''.join(b'%x\r\n%s\r\n' % (len(part), part) for part in parts if part) + last


def chunked(body, *lines, status='200 OK', last=b'0\r\n\r\n'):
    return head('Transfer-Encoding: chunked', *lines, status=status) + chunks(body, last=last)


def gzipped(body, level=6):
    """One member, the same bytes each time."""
    return gzip.compress(body, level, mtime=0)
