"""What servers do wrong (misbehaviours.py, misbehaviours_http2.py), over plain HTTP, TLS and HTTP/2: each pull ends in time, the file stays as it was, the log and the status
name the cause, the next good answer is taken at the next pull, and a push is heard afterwards.

One agent has a config for each row, at a server of its own, since an address that fails is in backoff.
"""
import json
import os
import re
import shutil
import threading
import time

import harness
from harness import Agent
from misbehaviours import CAP, INSTEAD, TABLE, WITHIN
from misbehaviours_http2 import LENGTHLESS
from misbehaviours_http2 import ROWS as HTTP2
from servers.http2 import Ask, Http2, whole
from servers.wire import CLOSE, HOLD, Handshakes, Wire, counted
from test_push import Publisher
from test_tls import Authorities

SHORT_MS, LONG_MS = (6000, 60000) if harness.SANITIZED else (1500, 20000)  # time limits of those that are silent, and of others
GRACE_MS = 1000
BY_HTTP1 = b'a: 9 # by HTTP/1.1\n'


def document(n):
    return b'a: %d # good\n' % n


def handshakes(test, answer, keys, places):
    """TLS, but what the row says instead in the bad stage, in which the connections there are end."""
    rows = list(INSTEAD.values())

    def is_bad(place):
        return test.stage == 'bad' and place < len(rows)

    def begin(port):
        place = server.ports.index(port)
        return rows[place][0] if is_bad(place) else keys
    server = Handshakes(test, lambda ask: [CLOSE] if is_bad(ask.place) else answer(ask), begin, places)
    return server


KINDS = {  # what a name of a row goes on with, and the server
    Wire: {'': lambda test, answer, keys, places: Wire(test, answer, None, places), ' (TLS)': Wire},
    Http2: {' (HTTP/2)': Http2},
    Handshakes: {' (TLS)': handshakes},
}


class Table(harness.Case):
    """`rows`: {name: (steps, cause, words)}; each over HTTP and over TLS, or as `kind` says."""

    @classmethod
    def setUpClass(cls):
        cls.authorities = Authorities()
        cls.addClassCleanup(shutil.rmtree, cls.authorities.dir)
        cls.authorities.sign('good')

    def start(self, rows, kind=Wire):
        """Everybody has published the first document."""
        self.stage, names = 1, list(rows)
        keys = tuple(self.authorities.path(f'good.{end}') for end in ('pem', 'key'))

        def answer(ask):
            return self.answer(rows[names[ask.place]], ask)
        self.servers = {how: make(self, answer, keys, len(rows)) for how, make in KINDS[kind].items()}
        self.publisher = Publisher(self)
        os.makedirs(self.path('out'))
        self.rows = [(name + how, url, *rows[name][1:]) for how, server in self.servers.items() for name, url in zip(names, server.urls)]
        tls = f', tls: {{ca: {self.authorities.path("ca.pem")}}}'
        places = ''.join(f'  s{i}: {{urls: ["{url}"], max_size: {CAP >> 10}KiB{tls if "https" in url else ""}}}\n' for i, (_, url, *_) in enumerate(self.rows))
        configs = ''.join(f'  c{i}: {{from: [{{server: s{i}, path: /web.yaml}}], type: yaml, file: {self.path(f"out/{i}")}, interval: 1h, timeout: {self.limit(i)}ms, jitter: 0%}}\n'
                          for i in range(len(self.rows)))
        self.agent = Agent(self, f'agent: {{state_dir: {self.path("state")}, runtime_dir: {self.path("run")}, log: {{level: info}}}}\n'
                           f'push: [{{endpoint: {self.publisher.endpoint}}}]\nservers:\n{places}configs:\n{configs}')
        self.agent.ready()
        self.until(lambda: self.repeated() and self.published(1), self.missing)
        self.agent.log.wait('push channel connected')
        self.refresh_all()  # the pull that the connection causes is over when a later one has ended
        self.until(lambda: all(c['runs']['success'] > 1 and not c['running'] and not c['deferred'] for c in self.repeated().values()), 'the second pulls')

    def limit(self, i):
        return SHORT_MS if 'timeout' in self.rows[i] else LONG_MS

    def answer(self, row, ask):
        if self.stage == 'bad' and callable(row[0]):
            return row[0](ask.stream) if isinstance(ask, Ask) else [counted(BY_HTTP1)]
        if self.stage == 'bad':
            return row[0]
        if isinstance(ask, Ask):
            return [whole(ask.stream, document(self.stage), ('etag', f'"{self.stage}"'))]
        return [counted(document(self.stage), f'ETag: "{self.stage}"')]

    def read_log(self):
        """So many lines would fill the pipe, and the agent would wait."""
        self.agent.log._more(time.monotonic() + .02)

    def published(self, n):
        self.read_log()
        self.wanted = n
        return all(os.path.exists(self.path(f'out/{i}')) and self.read(f'out/{i}') == document(n) for i in range(len(self.rows)))

    def missing(self):
        status = self.status()
        return '\n'.join(f'{name}: {document(self.wanted)} is not published: {status[f"c{i}"]["last_error"]}'
                         for i, (name, *_) in enumerate(self.rows) if not os.path.exists(self.path(f'out/{i}')) or self.read(f'out/{i}') != document(self.wanted))

    def status(self):
        self.read_log()
        return {c['name']: c for c in json.loads(self.agent.get('/v1/status')[1])['configs']}

    def repeated(self):
        """The status; on a busy machine a time limit is too short for a good answer, too: those are asked again."""
        status = self.status()
        for name, config in status.items():
            if config['last_error'] and not config['running'] and not config['deferred']:
                self.agent.post(f'/v1/configs/{name}/refresh')
        return status

    def refresh_all(self):
        """Asks for all at once; when each was asked for, in milliseconds of the wall clock."""
        asked = []
        for i in range(len(self.rows)):
            asked.append(time.time_ns() // 1000000)
            self.assertEqual(self.agent.post(f'/v1/configs/c{i}/refresh')[0], 202)
        return asked

    def compare(self, i, status, before, asked_ms, inode):
        """What is not as it must be; none, if all is."""
        name, _, cause, words = self.rows[i]
        found, error, log = self.read(f'out/{i}'), status['last_error'], [line for line in self.agent.log.seen if f'config=c{i} ' in line and 'published' not in line]
        if found != document(1) or os.stat(self.path(f'out/{i}')).st_ino != inode or status['generation'] != 1:
            yield f'{name}: the file is another one: {found[:60]}'
        if not error or not re.search(words, error):
            yield f'{name}: the status says {error}'
        if not re.fullmatch(cause or 'None', str(status['cause'])):
            yield f'{name}: the cause is {status["cause"]}'
        counter = 'timeouts' if cause == 'timeout' else 'failed'
        if status['runs'] != {**before, counter: before[counter] + 1}:
            yield f'{name}: counted as {status["runs"]}, before {before}'
        if not any(re.search(words, line) for line in log):
            yield f'{name}: the log says {log}'
        took_ms = (status['last_error_ms'] or asked_ms) - asked_ms
        if took_ms > self.limit(i) + GRACE_MS:
            yield f'{name}: it took {took_ms} ms'

    def pushes(self, n):
        """A message for each, and its document is there."""
        self.stage = n
        for i in range(len(self.rows)):
            self.publisher.send(b'c%d' % i)
        self.until(lambda: self.published(n), self.missing)


class Misbehaviours(Table):
    """Each ends in time, keeps the file and names the cause; the next good answer and a push are taken."""

    def run_all(self, rows, kind=Wire):
        self.start(rows, kind)
        inodes = [os.stat(self.path(f'out/{i}')).st_ino for i in range(len(self.rows))]
        before = {name: c['runs'] for name, c in self.status().items()}
        self.stage = 'bad'
        asked = self.refresh_all()

        def running():
            return [self.rows[int(n[1:])][0] for n, c in self.status().items() if c['runs'] == before[n] or c['running']]
        self.until(lambda: not running(), lambda: f'not ended: {running()}')
        status = self.status()
        bad = [line for i in range(len(self.rows)) for line in self.compare(i, status[f'c{i}'], before[f'c{i}'], asked[i], inodes[i])]
        self.assertEqual(bad, [], '\n' + '\n'.join(bad))
        self.stage = 2
        self.refresh_all()
        self.until(lambda: self.published(2), self.missing)
        self.until(lambda: not any(c['last_error'] for c in self.status().values()), 'no error is left')
        self.pushes(3)
        self.assertEqual(sorted(os.listdir(self.path('out')), key=int), [str(i) for i in range(len(self.rows))])
        self.agent.stop()

    def test_over_http_and_tls(self):
        self.assertGreaterEqual(len(TABLE), 60)
        self.run_all(TABLE)

    def test_within_tls(self):
        self.run_all({**INSTEAD, **WITHIN}, Handshakes)

    def test_over_http2(self):
        self.run_all(HTTP2, Http2)

    def test_a_connection_by_http2_that_hangs_is_left_by_all(self):
        """Twenty configs whose pulls overlap keep it busy for ever: libcurl closes it when nobody is on it."""
        names, hangs = [f'c{i}' for i in range(20)], threading.Event()
        self.stage = 1

        def answer(ask):
            if hangs.is_set():
                hangs.clear()
                return [HOLD]
            return [whole(ask.stream, document(self.stage))]
        server = Http2(self, answer, tuple(self.authorities.path(f'good.{end}') for end in ('pem', 'key')))
        self.rows = [(name,) for name in names]
        os.makedirs(self.path('out'))
        configs = ''.join(f'  {name}: {{from: [{{server: main, path: /{name}}}], type: yaml, file: {self.path(f"out/{i}")}, interval: 300ms, timeout: {1000 + i % 5 * 300}ms, backoff_bound: 1}}\n'
                          for i, name in enumerate(names))
        self.agent = Agent(self, f'agent: {{state_dir: {self.path("state")}, runtime_dir: {self.path("run")}, log: {{level: info}}}}\n'
                           f'servers: {{main: {{urls: ["{server.url}"], tls: {{ca: {self.authorities.path("ca.pem")}}}}}}}\nconfigs:\n{configs}')
        self.agent.ready()
        self.until(lambda: self.published(1), self.missing)
        for n in range(2, 5):  # by chance all may leave it at the same moment
            asks = server.asks
            server.wait(lambda asks=asks: server.asks > asks + 20, 'pulls that share connections')
            hangs.set()
            server.wait(lambda: not hangs.is_set(), 'the connection that hangs')
            self.stage = n
            self.until(lambda n=n: self.published(n), self.missing)
        self.agent.stop()

    def test_an_answer_by_http2_without_a_length_is_taken_over_http1(self):
        """libcurl 7.88 takes a stream that was reset for a whole one."""
        self.start({name: (steps,) for name, steps in LENGTHLESS.items()}, Http2)
        self.stage = 'bad'
        for i, (name, *_) in enumerate(self.rows):
            with self.subTest(name):
                self.assertEqual(self.agent.refresh(f'c{i}')['error'], None)
                self.assertEqual(self.read(f'out/{i}'), BY_HTTP1)
        self.stage = 2
        self.refresh_all()
        self.until(lambda: self.published(2), self.missing)
        self.agent.stop()


if __name__ == '__main__':
    harness.main()
