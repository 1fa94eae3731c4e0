"""The ground under the conformance servers: HTTP/1.1 on a free port of 127.0.0.1, a thread for each connection, everything recorded.

A server is made for one test (`Consul(test)` closes with it) or by hand (`python3 consul.py --port 8500`). What it is asked is kept in
`requests`; `fault()` says what goes wrong; a request may be held until something changes. Nothing polls: a held request sleeps on its
socket and on one eventfd, so it notices at once that the state changed, that the server closes or that its client has gone.
"""
import argparse
import contextlib
import datetime
import email.utils
import gzip
import http
import http.server
import json
import os
import select
import shlex
import socket
import struct
import sys
import threading
import time
import urllib.parse

DEADLINE = 20  # seconds; ends a wait that hangs, measures nothing


class Gone(Exception):
    """The client has closed its side, or the server closes."""


class Request:
    """One request as it came. `status` is what was answered: None while it is held, 0 if the connection was cut instead."""

    def __init__(self, method, target, headers, body):
        self.method, self.target, self.headers, self.body = method, target, headers, body
        self.time = time.monotonic()
        self.raw_path, _, self.query_string = target.partition('?')
        self.path = urllib.parse.unquote(self.raw_path)
        self.query = urllib.parse.parse_qsl(self.query_string, keep_blank_values=True)
        self.status = self.took = self.hold = self.answer_headers = None

    def __repr__(self):
        return f'<{self.method} {self.target} {self.status}>'

    def get(self, name, default=None):
        """The first query parameter of that name; '' for one without a value."""
        return next((v for k, v in self.query if k == name), default)

    def has(self, name):
        return any(k == name for k, _ in self.query)

    @property
    def form(self):
        """The fields of a form, read once by form rules; only with the Content-Type that makes it one."""
        if self.headers.get_content_type() != 'application/x-www-form-urlencoded':
            return {}
        return dict(reversed(urllib.parse.parse_qsl(self.body.decode(errors='replace'), keep_blank_values=True)))


class Answer(Exception):
    """Raised anywhere below `answer()`: this is the answer."""

    def __init__(self, status, body=b'', headers=None, **kw):
        super().__init__(status)
        if not isinstance(body, (bytes, str)):
            body, headers = json.dumps(body, ensure_ascii=False, separators=(',', ':')), {'Content-Type': 'application/json', **(headers or {})}
        self.status, self.body, self.headers = status, body.encode() if isinstance(body, str) else body, dict(headers or {})
        self.chunked = kw.get('chunked')


class Fault:
    """What happens to the next `times` requests (None: to all) for which `when(request)` is true. `hits` counts them."""

    def __init__(self, times, when, **what):
        self.left, self.when, self.hits = times, when or (lambda request: True), 0
        self.status, self.headers, self.body = what.pop('status', None), what.pop('headers', None), what.pop('body', b'')
        self.delay, self.hang = what.pop('delay', 0), what.pop('hang', False)  # before the answer; no answer at all
        self.reset, self.cut = what.pop('reset', False), what.pop('cut', None)  # RST; only that many bytes of the body, then the end
        self.raw, self.change = what.pop('raw', None), what.pop('change', None)  # these bytes as they are; change(answer) before it goes
        assert not what, f'unknown: {what}'

    def clear(self):
        self.left = 0


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    wbufsize = -1  # one segment for an answer
    disable_nagle_algorithm = True

    def parse_request(self):
        # http.server turns a leading // into /; what was asked is kept as it was
        ok = super().parse_request()
        words = str(self.raw_requestline, 'iso-8859-1').split()
        self.target = words[1] if len(words) > 1 else ''
        return ok

    def handle_expect_100(self):
        ok = super().handle_expect_100()
        self.wfile.flush()
        return ok

    def log_message(self, format, *args):  # pylint: disable=redefined-builtin
        pass

    def respond(self):
        server = self.server
        if 'Transfer-Encoding' in self.headers:
            self.send_error(411)
            return
        body = self.rfile.read(int(self.headers.get('Content-Length') or 0))
        request = Request(self.command, self.target, self.headers, body)
        request.connection = self.connection
        with server.changed:
            server.requests.append(request)
            fault = next((f for f in server.faults if f.left != 0 and f.when(request)), None)
            if fault:
                fault.hits += 1
                fault.left = fault.left and fault.left - 1
            server.changed.notify_all()
        try:
            self.write(request, self.decide(request, fault), fault)
        except (Gone, OSError):
            self.close_connection = True
        finally:
            request.took = time.monotonic() - request.time
            with server.changed:
                request.status = request.status or 0
                server.changed.notify_all()

    def decide(self, request, fault):
        if fault and (fault.delay or fault.hang):
            self.server.hold(request, None if fault.hang else fault.delay, lambda: None)
        if fault and fault.reset:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
            raise Gone
        if fault and fault.status:
            return Answer(fault.status, fault.body, fault.headers)
        if fault and fault.raw is not None:
            return None
        try:
            answer = self.server.answer(request)
        except Answer as a:
            answer = a
        except (Gone, OSError):
            raise
        except Exception as e:  # pylint: disable=broad-except
            self.server.errors.append(e)
            answer = Answer(500, f'an error of the conformance server itself: {e!r}')
        if fault and fault.change:
            fault.change(answer)
        return answer

    def write(self, request, answer, fault):
        server = self.server
        if answer is None:
            self.wfile.write(fault.raw)
            self.wfile.flush()
            self.close_connection = True
            return
        body, headers = answer.body, {'Date': email.utils.formatdate(usegmt=True), **server.headers(request), **answer.headers}
        if body and server.gzip_over is not None and len(body) >= server.gzip_over and 'gzip' in self.headers.get('Accept-Encoding', ''):
            body, headers = gzip.compress(body), {**headers, 'Content-Encoding': 'gzip', 'Vary': 'Accept-Encoding'}
        chunked = server.chunked if answer.chunked is None else answer.chunked
        empty = request.method == 'HEAD' or answer.status in (204, 304)
        if chunked and body and not empty:
            headers['Transfer-Encoding'] = 'chunked'
            body = b'%x\r\n%s\r\n0\r\n\r\n' % (len(body), body)
        elif answer.status not in (204, 304):
            headers.setdefault('Content-Length', str(len(body)))
        lines = [f'HTTP/1.1 {answer.status} {http.HTTPStatus(answer.status).phrase}', *(f'{k}: {v}' for k, v in headers.items()), '', '']
        request.status, request.answer_headers = answer.status, headers
        cut = len(body) if not fault or fault.cut is None else fault.cut
        self.wfile.write('\r\n'.join(lines).encode('latin-1') + (b'' if empty else body[:cut]))
        self.wfile.flush()
        self.close_connection = self.close_connection or cut < len(body)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = respond


class Server:
    """Override `answer(request)`: return or raise an Answer. State is read and written under `self.changed`, and `poke()` follows a change."""

    chunked = False  # how bodies go out, unless the Answer says
    gzip_over = None  # bodies of that many bytes are compressed for who accepts it

    def __init__(self, test=None, port=0):
        self.requests, self.faults, self.connections, self.errors = [], [], 0, []
        self.changed = threading.Condition(threading.RLock())
        self._held, self._turn, self._open, self._threads, self._closing, self._listener = {}, 0, set(), set(), False, None
        self.port = port
        self.up()
        if test:
            test.addCleanup(self.close)

    @property
    def url(self):
        return f'http://127.0.0.1:{self.port}'

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # -- what tests call

    @property
    def count(self):
        return len(self.requests)

    def fault(self, times=1, when=None, **what):
        """Status, headers, body, delay, hang, reset, cut, raw, change: see Fault. Faults are tried in the order they were given."""
        with self.changed:
            self.faults.append(Fault(times, when, **what))
            return self.faults[-1]

    def clear_faults(self):
        with self.changed:
            self.faults.clear()

    def wait(self, number=1, when=None, timeout=DEADLINE):
        """The first `number` requests for which `when` is true, as soon as that many have come."""
        def found():
            return [r for r in self.requests if not when or when(r)]
        with self.changed:
            assert self.changed.wait_for(lambda: len(found()) >= number, timeout), f'{len(found())} of {number} in {self.requests[-40:]}'
            return found()[:number]

    def wait_answered(self, number=1, when=None, timeout=DEADLINE):
        """As `wait`, of requests that have been answered (or cut)."""
        return self.wait(number, lambda r: r.status is not None and (not when or when(r)), timeout)

    @property
    def holding(self):
        """How many requests are held now."""
        return len(self._held)

    def wait_holding(self, number=1, timeout=DEADLINE):
        with self.changed:
            assert self.changed.wait_for(lambda: len(self._held) == number, timeout), f'{len(self._held)} held, not {number}: {self.requests[-9:]}'

    def still_holding(self, number=1, timeout=DEADLINE):
        """Every held request has looked at what there is now, and that many are still held."""
        with self.changed:
            assert self.changed.wait_for(lambda: all(seen >= self._turn for _, seen in self._held.values()), timeout)
            assert len(self._held) == number, f'{len(self._held)} held, not {number}: {self.requests[-9:]}'

    def drop(self):
        """Cuts every open connection; held requests too."""
        with self.changed:
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def down(self):
        """Nobody listens any more; the state stays."""
        with self.changed:
            listener, self._listener = self._listener, None
        if listener:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        self.drop()

    def up(self):
        """Listens (again) on the same port."""
        self._listener = socket.create_server(('127.0.0.1', self.port), backlog=512)
        self.port = self._listener.getsockname()[1]
        self._start(self._accept, self._listener)

    def close(self):
        self._closing = True
        self.down()
        self.poke()
        for thread in list(self._threads):
            thread.started.wait(DEADLINE)
            thread.join(DEADLINE)
        assert not self.errors, self.errors

    # -- what servers use

    def answer(self, request):
        raise NotImplementedError

    def headers(self, _request):
        """Headers of every answer."""
        return {}

    def poke(self):
        """Something changed: every held request looks again."""
        with self.changed:
            self._turn += 1
            for event, _ in self._held.values():
                os.eventfd_write(event, 1)
            self.changed.notify_all()

    def hold(self, request, seconds, ready):
        """Until `ready()`, called under the lock at each change, gives something that is not None (that is returned), or None after `seconds`."""
        request.hold, deadline = seconds, None if seconds is None else time.monotonic() + seconds
        with self.changed:
            result = ready()
            if result is not None or self._closing:
                return result
            event = os.eventfd(0, os.EFD_CLOEXEC)
            self._held[request] = event, self._turn
            self.changed.notify_all()
        try:
            poll = select.poll()
            poll.register(event, select.POLLIN)
            poll.register(request.connection, select.POLLIN)
            while True:
                left = None if deadline is None else max(0, deadline - time.monotonic())
                for fd, _ in poll.poll(None if left is None else left * 1000 + 0.5):
                    if fd == event:
                        os.eventfd_read(event)
                    elif request.connection.recv(1, socket.MSG_PEEK):
                        poll.unregister(request.connection)  # the next request is already there
                    else:
                        raise Gone
                if self._closing:
                    raise Gone
                with self.changed:
                    result = ready()
                    if result is None:
                        self._held[request] = event, self._turn
                        self.changed.notify_all()
                if result is not None or (deadline is not None and time.monotonic() >= deadline):
                    return result
        finally:
            with self.changed:
                del self._held[request]
                os.close(event)
                self.changed.notify_all()

    def _start(self, target, *args):
        def run():
            try:
                target(*args)
            finally:
                self._threads.discard(thread)
        thread = threading.Thread(target=run, daemon=True)
        thread.started = threading.Event()
        self._threads.add(thread)
        thread.start()
        thread.started.set()

    def _accept(self, listener):
        while True:
            try:
                connection, address = listener.accept()
            except OSError:
                return
            with self.changed:
                if self._listener is not listener:
                    connection.close()
                    return
                self.connections += 1
                self._open.add(connection)
            self._start(self._serve, connection, address)

    def _serve(self, connection, address):
        try:
            _Handler(connection, address, self)
        except OSError:
            pass
        finally:
            with self.changed:
                self._open.discard(connection)
            connection.close()


def spring_error(request, status, message, path=None):
    """The JSON that a Spring Boot server makes of sendError(status, message)."""
    now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec='milliseconds')
    return Answer(status, {'timestamp': now, 'status': status, 'error': http.HTTPStatus(status).phrase, 'message': message, 'path': path or request.raw_path})


def java_urlencode(text):
    """As java.net.URLEncoder: a blank is +, and ~ is written %7E."""
    return urllib.parse.quote_plus(text, safe='*-._').replace('~', '%7E')


def main(cls, example):
    """By hand: prints the url; then each line of standard input is a call, as each --call is: NAME ARG... (an ARG that is JSON is read as such)."""
    parser = argparse.ArgumentParser(description=f'Conformance server. A call, on standard input or as --call: {example}')
    parser.add_argument('--port', type=int, default=0)
    parser.add_argument('--call', nargs='+', action='append', default=[], metavar=('NAME', 'ARG'))
    options = parser.parse_args()

    def value(text):
        try:
            return json.loads(text)
        except ValueError:
            return text

    def call(server, name, *args):
        member = getattr(server, name)
        if callable(member):
            print(json.dumps(member(*map(value, args)), default=repr), flush=True)
        else:
            setattr(server, name, *map(value, args))

    with cls(port=options.port) as server:
        print(server.url, flush=True)
        for words in options.call:
            call(server, *words)
        try:
            for line in sys.stdin:
                if line.strip():
                    try:
                        call(server, *shlex.split(line))
                    except Exception as e:  # pylint: disable=broad-except
                        print(f'{type(e).__name__}: {e}', file=sys.stderr)
            threading.Event().wait()
        except KeyboardInterrupt:
            pass
