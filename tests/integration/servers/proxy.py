"""A TCP proxy that delays and cuts, between a client and one server; what it does can be switched while connections are open.

Modes: `pass`; `hang` accepts and forwards nothing more, in either direction; `delay` passes each piece `delay_ms` later; `cut` ends a connection
(RST) once `after` bytes of answers have gone through it; `refuse` listens no more and cuts what is open. Bytes that were held back go on when
the mode becomes `pass` again.
"""
import contextlib
import os
import select
import socket
import struct
import threading
import time

DEADLINE = 20
PIECE = 65536


class _Pipe:
    """One connection: both directions by one thread, which wakes for bytes, for a piece whose time has come, and for a switch."""

    def __init__(self, proxy, client, upstream):
        self.proxy, self.client, self.upstream, self.event, self.answered = proxy, client, upstream, os.eventfd(0, os.EFD_CLOEXEC), 0

    def run(self):
        queue, ended = [], set()  # (due, to, bytes); sockets that have sent their end
        with self.client, self.upstream:
            try:
                while self._turn(queue, ended):
                    pass
            except OSError:
                pass
            finally:
                with self.proxy.changed:
                    self.proxy.pipes.discard(self)
                    os.close(self.event)
                    self.proxy.changed.notify_all()

    def _turn(self, queue, ended):
        mode, now = self.proxy.mode, time.monotonic()
        if mode == 'refuse':
            return self._reset()
        while queue and mode != 'hang' and (mode != 'delay' or queue[0][0] <= now):
            _, to, data = queue.pop(0)
            if to is self.client:
                if mode == 'cut' and self.answered + len(data) >= self.proxy.after:
                    to.sendall(data[:max(0, self.proxy.after - self.answered)])
                    self.proxy.cuts += 1
                    return self._reset()
                self.answered += len(data)
            if data:
                to.sendall(data)
            else:
                to.shutdown(socket.SHUT_WR)
        if len(ended) == 2 and not queue:
            return False
        sources = [] if len(queue) > 64 else [s for s in (self.client, self.upstream) if s not in ended]
        timeout = max(0, queue[0][0] - now) if queue and mode == 'delay' else None
        for source in select.select([*sources, self.event], [], [], timeout)[0]:
            if source == self.event:
                os.eventfd_read(self.event)
                continue
            data = source.recv(PIECE)
            if not data:
                ended.add(source)
            queue.append((time.monotonic() + self.proxy.delay_ms / 1000, self.upstream if source is self.client else self.client, data))
        return True

    def _reset(self):
        for s in (self.client, self.upstream):
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
        return False


class Proxy:
    """`Proxy(test, server.port)`; then `proxy.url`, and `proxy.switch(mode)` at any time."""

    def __init__(self, test, port, host='127.0.0.1', scheme='http'):
        self.target, self.scheme = (host, port), scheme
        self.mode, self.delay_ms, self.after = 'pass', 0, 0
        self.connections, self.cuts = 0, 0  # taken from clients so far; ended by `cut`
        self.changed, self.pipes, self.listener, self.port = threading.Condition(), set(), None, 0
        self._listen()
        if test:
            test.addCleanup(self.close)

    @property
    def url(self):
        return f'{self.scheme}://127.0.0.1:{self.port}'

    @property
    def open(self):
        """Connections there are now."""
        return len(self.pipes)

    def switch(self, mode, delay_ms=0, after=0):
        assert mode in ('pass', 'hang', 'delay', 'cut', 'refuse'), mode
        with self.changed:
            self.mode, self.delay_ms, self.after = mode, delay_ms, after
            for pipe in self.pipes:
                os.eventfd_write(pipe.event, 1)
            if mode == 'refuse':
                self._deafen()
                assert self.changed.wait_for(lambda: not self.pipes, DEADLINE)
            elif self.listener is None:
                self._listen()

    def wait_connections(self, number, timeout=DEADLINE):
        """Until that many have been taken since the start."""
        with self.changed:
            assert self.changed.wait_for(lambda: self.connections >= number, timeout), self.connections

    def close(self):
        self.switch('refuse')

    def _listen(self):
        self.listener = socket.create_server(('127.0.0.1', self.port), backlog=512)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(self.listener,), daemon=True).start()

    def _deafen(self):
        if self.listener:
            with contextlib.suppress(OSError):
                self.listener.shutdown(socket.SHUT_RDWR)
            self.listener.close()
            self.listener = None

    def _accept(self, listener):
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            try:
                upstream = socket.create_connection(self.target)
            except OSError:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
                client.close()
                continue
            for s in (client, upstream):
                s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self.changed:
                if self.listener is not listener:
                    client.close()
                    upstream.close()
                    return
                pipe = _Pipe(self, client, upstream)
                self.pipes.add(pipe)
                self.connections += 1
                self.changed.notify_all()
            threading.Thread(target=pipe.run, daemon=True).start()
