"""Bytes nobody asked for: a server that sends them at many moments around the end of an answer, to pulls, watches, logins and receipts.

Every document has its own name in it, and every answer a number. Whatever an unasked answer says, it says in the name of what was asked for
last on its connection, so that each mix-up shows: a file with another's name. An unasked answer that is taken is called a ghost. One that
comes while its connection waits for the answer to a request for the same document *is* that answer in HTTP/1.1, which numbers nothing; those
are told apart by the server and do not count.
"""
import asyncio
import base64
import collections
import concurrent.futures
import contextlib
import ctypes
import hashlib
import http.client
import json
import os
import random
import re
import shutil
import socket
import ssl
import threading
import time

import etcd
import harness
from harness import Agent, Corner
from servers.consul import Consul
from servers.nacos import Nacos
from servers.wire import CLOSE, LATER, Wire, chunked, counted, head
from test_tls import Authorities

SECONDS = 2.0  # of each storm: what is tested is what comes in a time
GRACE = .02  # seconds between an agent's look at a connection and its request there, on a machine that has other things to do
EARLY = (0, .001, .002, .005, .02, .05, .1, .15, .3)


class Moments:
    """What follows an answer, and when. One after the other, so that all have their turn; `sent` counts them by name."""

    def __init__(self, failing=True):
        self.turn, self.serial, self.sent, self.late, self.honest, self.lock = 0, 0, {}, set(), False, threading.Lock()
        self.table = [
            ('in the same packet', self.same_packet), ('behind chunks, in the same packet', self.behind_chunks(None)),
            ('behind chunks, 5 ms later', self.behind_chunks(.005)), ('a length that is too small', self.too_short),
            ('behind a 304, in the same packet', self.behind(304, None)), ('behind a 304, 5 ms later', self.behind(304, .005)),
            ('behind a 304, 50 ms later', self.behind(304, .05)), ('behind a 204, in the same packet', self.behind(204, None)),
            ('behind a 204, 5 ms later', self.behind(204, .005)), ('behind a 404, 5 ms later', self.behind(404, .005)),
            ('half an answer, its rest during the next request', self.half), ('during the next request', self.during),
            ('an empty line, 2 ms later', self.empty_line), ('nothing', self.nothing),
            *((f'{round(s * 1000)} ms later', self.later(s)) for s in EARLY)]
        if not failing:  # what makes a watch or a login wait before it is tried again
            self.table = [(name, make) for name, make in self.table if not re.search('304|204|404|half', name)]

    def number(self):
        self.serial += 1
        return self.serial

    def steps(self, ask, good, ghost, fixed=None):
        """`good(serial)` and `ghost(serial, moment)` give (body, header lines); what is sent. `fixed`: the moment, if it is not the next one."""
        held = ask.connection.notes.pop('during', None)  # what was kept back for this request
        if self.honest:
            body, lines = good(self.number())
            return [counted(body, *lines)]
        name, make = self.table[self.turn % len(self.table) if fixed is None else fixed]
        self.turn += 1
        serial = self.number()
        body, lines = ghost(serial, name)
        steps = make(ask, good(self.number()), counted(body, *lines), lambda: self.count(ask, name, serial))
        return [*(held or ()), *steps]

    def count(self, ask, name, serial):
        """Called when an unasked answer, or its first half, is being sent. Late is what a request on this connection was there before.

        The look is repeated for a while: what had come before, but was not read yet, is read by then, and so is what was sent by an agent that had
        looked at its connection before, and had to wait for a processor.
        """
        self.sent[name] = self.sent.get(name, 0) + 1
        connection, asks = ask.connection, ask.number + 1
        if connection.asks > asks:
            self.late.add(serial)

        async def look():
            end = time.monotonic() + GRACE
            while time.monotonic() < end:
                await asyncio.sleep(GRACE / 20)
                if connection.asks > asks:
                    self.late.add(serial)
        asyncio.ensure_future(look())
        return 0

    # -- one each

    def same_packet(self, ask, good, extra, sent):
        sent()
        return [counted(good[0], *good[1]) + extra]

    def too_short(self, ask, good, extra, sent):
        sent()
        return [head(f'Content-Length: {len(good[0])}', *good[1]) + good[0], extra[:20], extra[20:]]

    def behind_chunks(self, seconds):
        def make(_ask, good, extra, sent):
            answer = chunked(good[0], *good[1])
            return [answer + extra, sent] if seconds is None else [answer, LATER, seconds, sent, extra]
        return make

    def behind(self, status, seconds):
        phrase = {304: '304 Not Modified', 204: '204 No Content', 404: '404 Not Found'}[status]

        def make(ask, good, extra, sent):
            if status == 304 and 'if-none-match' not in ask.headers:
                answer = counted(good[0], *good[1])
            elif status == 404:
                answer = counted(b'', status=phrase)
            else:
                answer = head(f'Content-Length: {len(extra)}', status=phrase)
            return [answer + extra, sent] if seconds is None else [answer, LATER, seconds, sent, extra]
        return make

    def later(self, seconds):
        return lambda _ask, good, extra, sent: [counted(good[0], *good[1]), LATER, seconds, sent, extra]

    def half(self, ask, good, extra, sent):
        ask.connection.notes['during'] = [extra[40:]]
        return [counted(good[0], *good[1]), LATER, .002, sent, extra[:40]]

    def during(self, ask, good, extra, sent):
        ask.connection.notes['during'] = [sent, extra, .002]
        return [counted(good[0], *good[1])]

    def empty_line(self, _ask, good, _extra, _sent):
        return [counted(good[0], *good[1]), LATER, .002, b'\r\n']

    def nothing(self, _ask, good, _extra, _sent):
        return [counted(good[0], *good[1])]


class Documents(Wire):
    """/NAME: a document with that name, another one each time."""

    def __init__(self, test, moments, tls=None):
        self.moments = moments
        super().__init__(test, self.document, tls)

    def document(self, ask):
        name = ask.path.strip('/')
        return self.moments.steps(ask, lambda serial: (f'name: {name}\nserial: {serial}\n'.encode(), [f'ETag: "{serial}"']),
                                  lambda serial, moment: (f'name: {name}\nserial: {serial}\nghost: "{moment}"\n'.encode(), [f'ETag: "{serial}"']))


class Case(harness.Case):
    @classmethod
    def setUpClass(cls):
        cls.authorities = Authorities()
        cls.addClassCleanup(shutil.rmtree, cls.authorities.dir)
        cls.authorities.sign('good')
        cls.tls = cls.authorities.path('good.pem'), cls.authorities.path('good.key')

    def generations(self, folder):
        """The names of the versions; what has another name is being written."""
        folder = self.path(folder)
        return sorted(n for n in os.listdir(folder) if n.isdigit()) if os.path.exists(folder) else []

    def check(self, names, moments, corners=('',), used=()):
        """Nobody ever got what belongs to another, and nobody got what was not asked for: every version that was ever published is looked at.

        `used`: what is known to be wrong already.
        """
        seen, wrong = 0, collections.Counter(used)
        for folder, name in ((os.path.join(corner, 'state', name), name) for corner in corners for name in names):
            for generation in self.generations(folder):
                version = self.read(os.path.join(folder, generation)).decode()
                seen += 1
                ghost, serial = re.search(r'^ghost: "?([^"\n]*)', version, re.M), re.search(r'^serial: (\d+)', version, re.M)
                owner = re.search(r'^name: (.*)', version, re.M)
                if not owner or owner[1] != name:
                    wrong[f'got {"another document" if owner else "what has no name"}, {ghost[1] if ghost else "a true answer to somebody else"}'] += 1
                elif ghost and int(serial[1]) not in moments.late:
                    wrong[f'got a ghost, {ghost[1]}'] += 1
        if wrong:
            self.fail(f'{wrong.total()} of {seen} versions:\n  ' + '\n  '.join(f'{n:4} {what}' for what, n in wrong.most_common()))
        self.assertGreater(seen, len(names) * len(corners), 'versions to look at')


class Pulls(Case):
    """Configs of one host."""

    def settings(self, server, names, interval='100ms', limit=8):
        os.makedirs(self.path('out'), exist_ok=True)
        tls = f', tls: {{ca: {self.authorities.path("ca.pem")}}}' if server.url.startswith('https') else ''
        configs = ''.join(f'  {n}: {{from: [{{server: main, path: /{n}}}], file: {self.path("out/" + n + ".yaml")}, interval: {interval}, type: yaml,'
                          f' history: 1000, timeout: 2s}}\n' for n in names)
        return f"""agent: {{state_dir: {self.path("state")}, runtime_dir: {self.path("run")}}}
servers:
  main: {{urls: ["{server.url}"], max_in_flight: {limit}{tls}}}
configs:
{configs}"""


class Storms(Pulls):
    """All moments, again and again."""

    def versions(self, names):
        """How many were published so far: a slow machine needs longer for as many as there are configs."""
        return sum(len(self.generations(f'state/{name}')) for name in names)

    def storm(self, number, tls=None, **kw):
        moments = Moments()
        server = Documents(self, moments, tls)
        names = [f'c{i:02}' for i in range(number)]
        agent = Agent(self, self.settings(server, names, **kw))
        agent.ready()
        end, rng = time.monotonic() + SECONDS, random.Random(1)
        while time.monotonic() < end or (self.versions(names) <= number and time.monotonic() < end + harness.DEADLINE):
            # in between the intervals' pulls, two at a time: the next request comes a moment after an answer
            agent.post(f'/v1/configs/{rng.choice(names)}/refresh?wait=1')
            agent.log._more(time.monotonic() + rng.choice((0, 0, .001, .003, .01, .03, .12)))  # or the pipe would be full some day
        self.check(names, moments)
        moments.honest = True
        server.drop()
        first, end = moments.serial, time.monotonic() + harness.DEADLINE
        files = {n: self.path(f'out/{n}.yaml') for n in names}
        while left := [n for n in names if not os.path.exists(files[n]) or int(self.read(files[n]).split()[3]) <= first]:
            agent.log._more(time.monotonic() + .02)
            self.assertLess(time.monotonic(), end, f'the next good answer is not taken: {left}')
        for name in names:
            self.assertRegex(self.read(f'out/{name}.yaml').decode(), rf'\Aname: {name}\nserial: \d+\n\Z')
        agent.stop()
        # a connection that is not used again has no next request
        self.assertLessEqual({name for name, _ in moments.table} - {'nothing', 'an empty line, 2 ms later', 'during the next request'}, set(moments.sent), 'every moment had its turn')

    def test_fifty_configs_of_one_host_never_get_anothers_document(self):
        self.storm(50)

    def test_fifty_configs_of_one_host_never_get_anothers_document_by_tls(self):
        self.storm(50, self.tls, interval='200ms')

    def test_a_few_configs_never_get_anothers_document(self):
        self.storm(4)

    def test_a_few_configs_never_get_anothers_document_by_tls(self):
        self.storm(4, self.tls)


class Between(Wire):
    """Stands before a server that is as it should be, and adds what nobody asked for to its answers. With several places each has one moment.

    `change(ask, body, lines, serial, moment)` makes a ghost of the true answer; `look(ask)` sees each request, and may give an answer of its own.
    """

    def __init__(self, test, url, moments, change, look=lambda ask: None, places=1):
        self.upstream, self.moments, self.change, self.look = url.split('//')[1], moments, change, look
        self.pool = concurrent.futures.ThreadPoolExecutor(200)
        test.addCleanup(self.pool.shutdown, wait=False)
        super().__init__(test, self.forward, places=places)

    def ask_upstream(self, ask):
        with contextlib.closing(http.client.HTTPConnection(self.upstream, timeout=harness.DEADLINE)) as connection:
            connection.request(ask.method, ask.target, ask.body or None, {k: v for k, v in ask.headers.items() if k not in ('connection', 'accept-encoding')})
            response = connection.getresponse()
            return f'{response.status} {response.reason}', response.headers, response.read()

    async def forward(self, ask):
        own = self.look(ask)
        if own:
            return own
        try:
            status, headers, body = await self.loop.run_in_executor(self.pool, self.ask_upstream, ask)
        except (OSError, http.client.HTTPException):
            return [CLOSE]
        lines = [f'{k}: {v}' for k, v in headers.items() if k.lower() not in ('content-length', 'transfer-encoding', 'connection')]
        if not status.startswith('200'):
            return [counted(body, *lines, status=status)]
        return self.moments.steps(ask, lambda _: (body, lines), lambda serial, moment: self.change(ask, body, lines, serial, moment),
                                  ask.place if len(self.urls) > 1 else None)


class Kinds(Case):
    """Servers that say more than documents: indexes, tokens, leases."""

    NAMES = [f'c{i:02}' for i in range(8)]

    def setUp(self):
        super().setUp()
        self.wrong, self.uses, self.stopping = [], collections.Counter(), threading.Event()

    def use(self, what, whose, ghost, moments):
        """Something that came in an answer is used: `whose` is an error, if it is another's; `ghost` the number of a ghost."""
        self.uses[what] += 1
        if whose:
            self.wrong.append(f'{what} {whose}')
        elif ghost is not None and ghost not in moments.late:
            self.wrong.append(f'{what} of a ghost is used')

    def document(self, name, serial, ghost=''):
        return f'name: {name}\nserial: {serial}\n' + (f'ghost: "{ghost}"\n' if ghost else '')

    def changes(self, put, moments, beside=lambda turn: None):
        """New documents for SECONDS, one after the other."""
        end, turn = time.monotonic() + SECONDS, 0
        while time.monotonic() < end:
            name = self.NAMES[turn % len(self.NAMES)]
            put(name, self.document(name, moments.number()))
            beside(turn)
            turn += 1
            time.sleep(.02)
            self.agent.log._more(time.monotonic() + .001)

    def settings(self, server, path, more=''):
        os.makedirs(self.path('out'), exist_ok=True)
        configs = ''.join(f'  {n}: {{from: [{{server: main, path: "{path.format(n)}"}}], file: {self.path("out/" + n + ".yaml")}, interval: 150ms, type: yaml,'
                          f' history: 1000, timeout: 2s}}\n' for n in self.NAMES)
        return f"""agent: {{state_dir: {self.path("state")}, runtime_dir: {self.path("run")}}}
servers:
  main: {{{server}}}
{more}
configs:
{configs}"""

    def finish(self, agent, moments, server, put):
        self.check(self.NAMES, moments, used=self.wrong)
        moments.honest = True
        server.drop()
        for name in self.NAMES:
            put(name, self.document(name, moments.number()))
            wanted, end = self.document(name, moments.serial), time.monotonic() + harness.DEADLINE
            while self.read(f'out/{name}.yaml').decode() != wanted:
                self.assertLess(time.monotonic(), end, f'{name}: the next good answer is not taken: {agent.status(name)}')
                agent.refresh(name)
        agent.stop()

    def test_an_index_of_one_key_is_never_waited_for_with_another(self):
        consul, moments, told = Consul(self), Moments(failing=False), collections.defaultdict(set)

        def put(name, text):
            told[f'/v1/kv/app/{name}'].add(consul.put(f'app/{name}', text))
        for name in self.NAMES:
            put(name, self.document(name, moments.number()))

        def change(ask, body, lines, serial, moment):
            items = json.loads(body)
            items[0]['Value'] = base64.b64encode(self.document(ask.path[11:], serial, moment).encode()).decode()
            items[0]['ModifyIndex'] = 10 ** 9 + serial
            told[serial].add(ask.path)
            return json.dumps(items).encode(), [line for line in lines if 'X-Consul-Index' not in line] + [f'X-Consul-Index: {10 ** 9 + serial}']

        def look(ask):
            index = int(ask.query.get('index', 0))
            if index > 10 ** 9:
                self.use('an index', ask.path not in told[index - 10 ** 9] and f'of {told[index - 10 ** 9]} for {ask.path}', index - 10 ** 9, moments)
            elif index:
                self.use('an index', index not in told[ask.path] and f'of another key for {ask.path}', None, moments)
        server = Between(self, consul.url, moments, change, look)
        self.agent = agent = Agent(self, self.settings(f'kind: consul, urls: ["{server.url}"], watch: true', '/app/{}'))
        agent.ready()
        self.changes(put, moments)
        self.finish(agent, moments, server, put)
        self.assertGreater(self.uses['an index'], 8)

    def test_a_token_is_never_taken_from_what_is_no_answer_to_a_login(self):
        nacos, moments = Nacos(self), Moments(failing=False)
        nacos.add_user('me', 'secret')
        self.write('password', 'secret')

        def put(name, text):
            nacos.put(name, text, 'G')
        for name in self.NAMES:
            put(name, self.document(name, moments.number()))

        def change(ask, body, lines, serial, moment):
            if ask.path.endswith('/login'):
                return json.dumps({**json.loads(body), 'accessToken': f'ghost-{serial}'}).encode(), lines
            if ask.path.endswith('/listener'):
                return body, lines
            text = self.document(ask.query['dataId'], serial, moment).encode()
            return text, [line for line in lines if 'Content-MD5' not in line] + [f'Content-MD5: {hashlib.md5(text).hexdigest()}']

        def look(ask):
            token = ask.query.get('accessToken', '')
            if token:
                self.use('a token', None, int(token[6:]) if token.startswith('ghost-') else None, moments)

        def forget(turn):
            if turn % 8 == 0:
                nacos.tokens.clear()  # so that the agent logs in again and again
        server = Between(self, nacos.url, moments, change, look)
        self.agent = agent = Agent(self, self.settings(f'kind: nacos, urls: ["{server.url}"], watch: true, auth: {{basic: {{user: me, password_file: {self.path("password")}}}}}', '/G/{}'))
        agent.ready()
        self.changes(put, moments, forget)
        self.finish(agent, moments, server, put)
        self.assertGreater(self.uses['a token'], 20)


class Etcd(Case):
    """Every answer of an etcd with users, at each moment: an agent for each, with two configs and receipts, all at the same time."""

    def test_documents_logins_leases_and_receipts_at_every_moment(self):
        server, moments, wrong = etcd.Etcd(self, args=['--bcrypt-cost', '4']), Moments(failing=False), []
        leases = {}  # of ghosts
        server.call('auth/user/add', {'name': 'pullet', 'password': 'secret'})
        server.call('auth/role/add', {'name': 'all'})
        server.call('auth/role/grant', {'name': 'all', 'perm': {'permType': 'READWRITE', 'key': etcd.b64('\0'), 'range_end': etcd.b64('\0')}})
        server.call('auth/user/grant', {'user': 'pullet', 'role': 'all'})
        server.enable_auth()
        self.write('password', 'secret')
        hosts = [f'h{i:02}' for i in range(len(moments.table))]
        names = ['a', 'b']

        def put():
            server.put_all({f'/app/{name}': f'name: {name}\nserial: {moments.number()}\n' for name in names})

        def change(ask, body, lines, serial, moment):
            answer = json.loads(body)
            if ask.path.endswith('/authenticate'):
                answer['token'] = f'ghost-{serial}'
            elif ask.path.endswith('/grant'):
                leases[str(10 ** 18 + serial)] = serial
                answer['ID'] = str(10 ** 18 + serial)
            elif ask.path.endswith('/range') and answer.get('kvs'):
                name = base64.b64decode(answer['kvs'][0]['key']).decode()[5:]
                answer['kvs'][0]['value'] = etcd.b64(f'name: {name}\nserial: {serial}\nghost: "{moment}"\n')
            return json.dumps(answer).encode(), lines

        def use(ask, what, ghost):
            if ghost not in moments.late:
                wrong.append(f'{what} of a ghost is used for {ask.path}, {moments.table[ask.place][0]}')

        def look(ask):
            token = ask.headers.get('authorization', '')
            if token.startswith('ghost-'):
                use(ask, 'a token', int(token[6:]))
            for lease in re.findall(r'"(?:ID|lease)":"(\d+)"', ask.body.decode()):
                if lease in leases:
                    use(ask, 'a lease', leases[lease])
            return None
        between = Between(self, server.url, moments, change, look, places=len(hosts))
        put()
        agents = []
        for host, url in zip(hosts, between.urls):
            corner = Corner(self, host)
            os.makedirs(corner.path('out'))
            configs = ''.join(f'  {n}: {{from: [{{server: main, path: /app/{n}}}], file: {corner.path("out/" + n)}, interval: 150ms, type: yaml, timeout: 2s, '
                              f'history: 1000}}\n' for n in names)
            agents.append(Agent(corner, f'''agent: {{state_dir: {corner.path("state")}, runtime_dir: {corner.path("run")}}}
servers:
  main: {{kind: etcd, urls: ["{url}"], auth: {{basic: {{user: pullet, password_file: {self.path("password")}}}}}}}
report: {{server: main, host: {host}, ttl: 5s}}
configs:
{configs}'''))
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            put()
            time.sleep(.1)
            for agent in agents:
                agent.log._more(time.monotonic() + .001)
        self.check(['a', 'b'], moments, hosts, wrong)
        moments.honest = True
        between.drop()
        put()
        for host, agent in zip(hosts, agents):
            for name in names:
                wanted, end = server.get(f'/app/{name}'), time.monotonic() + harness.DEADLINE
                while self.read(f'{host}/out/{name}') != wanted:
                    self.assertLess(time.monotonic(), end, f'{moments.table[hosts.index(host)][0]}: the next good answer is not taken: {agent.status(name)}')
                    agent.refresh(name)
        self.receipts(server, hosts, names)
        for agent in agents:
            agent.stop()

    def receipts(self, server, hosts, names):
        """Each says what its host runs."""
        end = time.monotonic() + harness.DEADLINE
        while True:
            bad = {}
            for host in hosts:
                receipt = json.loads(server.get(f'/pullet/agents/{host}') or b'{}')
                wanted = {n: hashlib.sha256(server.get(f'/app/{n}')).hexdigest()[:16] for n in names}
                found = {n: c['digest'] for n, c in receipt.get('configs', {}).items()}
                if (receipt.get('host'), found) != (host, wanted):
                    bad[host] = receipt
            if not bad:
                return
            self.assertLess(time.monotonic(), end, f'receipts that are not of what stands: {bad}')
            time.sleep(.05)


class Tickets:
    """A TLS server that gives a ticket 3 ms after each answer: bytes that are no data. By hand, since Python has no call for it."""

    def __init__(self, test, tls):
        self.libssl, self.connections, self.tickets = ctypes.CDLL('libssl.so.3'), 0, 0
        self.libssl.SSL_get_version.restype = ctypes.c_char_p
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(*tls)
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.url, self.serial, self.open = f'https://127.0.0.1:{self.listener.getsockname()[1]}', 0, set()
        test.addCleanup(self.close)
        threading.Thread(target=self.accept, daemon=True).start()

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self.serve, args=(self.listener.accept()[0],), daemon=True).start()

    def serve(self, plain):
        with contextlib.suppress(OSError), plain, self.context.wrap_socket(plain, server_side=True) as stream:
            self.connections += 1
            stream.settimeout(harness.DEADLINE)
            # the struct behind SSLSocket begins with the object's head, a weak reference, and SSL *
            inner = ctypes.c_void_p.from_address(id(stream._sslobj) + object.__basicsize__ + ctypes.sizeof(ctypes.c_void_p))
            assert self.libssl.SSL_get_version(inner) == b'TLSv1.3'
            rest = b''
            while data := stream.recv(65536):
                rest += data
                if rest.endswith(b'\r\n\r\n'):
                    rest, self.serial = b'', self.serial + 1
                    stream.sendall(counted(b'serial: %d\n' % self.serial))
                    time.sleep(.003)  # the delay is what is tested
                    self.tickets += self.libssl.SSL_new_session_ticket(inner)
                    stream.do_handshake()  # sends it


class Shapes(Pulls):
    """What an unasked answer may say besides a document. It is there before the next request is sent, so that nothing excuses it."""

    SHAPES = {
        'a document': counted(b'name: ghost\n', 'ETag: "1"'), 'unchanged': head('ETag: "1"', status='304 Not Modified'), 'not found': counted(b'', status='404 Not Found'),
        'gone': counted(b'', status='410 Gone'), 'forbidden': counted(b'', status='403 Forbidden'), 'log in': counted(b'', 'WWW-Authenticate: Basic', status='401 Unauthorized'),
        'too many': counted(b'', 'Retry-After: 1', status='429 Too Many Requests'), 'overloaded': counted(b'', 'Retry-After: 1', status='503 Service Unavailable'),
        'an error': counted(b'', status='500 Internal Server Error'), 'elsewhere': counted(b'', 'Location: /ghost', status='302 Found'), 'go on': head(status='100 Continue'),
        'early hints': head('ETag: "ghost"', status='103 Early Hints'), 'another protocol': head('Upgrade: x', 'Connection: Upgrade', status='101 Switching Protocols'),
        'half a status line': b'HTTP/1.1 304 Not', 'half a head': b'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-', 'a head without its body': head('Content-Length: 1000'),
        'an endless body': head('Transfer-Encoding: chunked') + b'1000\r\n', 'garbage': b'\0\xff\r\n\r\n', 'a line': b'\r\n', 'a byte': b'H', 'a TLS alert': b'\x15\x03\x03\0\2\1\0'}

    def test_nothing_that_comes_between_two_answers_is_noticed(self):
        self.between()

    def test_nothing_that_comes_between_two_answers_is_noticed_by_tls(self):
        self.between(self.tls, (None, .001))

    def between(self, tls=None, waits=(None, .001, .02)):
        plan, versions, sent = {'extra': None, 'behind': 200}, collections.Counter(), threading.Event()

        def answer(ask):
            name, extra = ask.path[1:], plan['extra']
            tag = f'"{versions[name]}"'
            answers = {200: counted(b'name: %s\nversion: %d\n' % (name.encode(), versions[name]), f'ETag: {tag}'), 304: head(f'ETag: {tag}', status='304 Not Modified')}
            status = 304 if ask.headers.get('if-none-match') == tag else 200
            if extra is None or name not in plan['for']:
                return [answers[status]]
            return [answers[status] + extra, sent.set] if plan['wait'] is None else [answers[status], LATER, plan['wait'], extra, sent.set]
        server, wrong, tried = Wire(self, answer, tls), [], 0
        agent = Agent(self, self.settings(server, ['a', 'b'], interval='1h', limit=1))
        for name in 'ab':
            agent.log.wait(f'published config={name} ')
        for shape, extra in self.SHAPES.items():
            for wait in waits:
                for behind in (200, 304):
                    plan.update({'extra': extra, 'wait': wait, 'for': 'a'})
                    sent.clear()
                    versions['a'] += behind == 200
                    outcomes = [agent.refresh('a')]
                    self.assertTrue(sent.wait(harness.DEADLINE))
                    plan['extra'] = None
                    versions['a'] += 1
                    versions['b'] += 1
                    outcomes += [agent.refresh('b'), agent.refresh('a')]
                    wanted = ['published' if behind == 200 else 'unchanged', 'published', 'published']
                    tried += 1
                    found = [self.read(f'out/{name}.yaml').decode() for name in 'ab']
                    if [o['outcome'] for o in outcomes] != wanted or found != [f'name: {name}\nversion: {versions[name]}\n' for name in 'ab']:
                        when = 'in the same packet' if wait is None else f'{round(wait * 1000)} ms later'
                        wrong.append(f'{shape}, behind a {behind}, {when}: {[o["error"] or o["outcome"] for o in outcomes]}')
        agent.stop()
        if wrong:
            self.fail(f'{len(wrong)} of {tried}:\n  ' + '\n  '.join(wrong))

    def test_a_layer_that_may_be_missing_is_not_taken_for_missing(self):
        sent, versions = threading.Event(), collections.Counter()

        def answer(ask):
            name = ask.path[1:]
            versions[name] += 1
            return [counted(b'%s: %d\n' % (name.encode(), versions[name])), LATER, .001, self.SHAPES['not found'], sent.set]
        server = Wire(self, answer)
        os.makedirs(self.path('out'))
        agent = Agent(self, f"""agent: {{state_dir: {self.path("state")}, runtime_dir: {self.path("run")}}}
servers: {{main: {{urls: ["{server.url}"], max_in_flight: 1}}}}
configs: {{web: {{from: [{{server: main, path: /base}}, {{server: main, path: /more, optional: true}}], type: yaml, file: {self.path("out/web.yaml")}, interval: 1h}}}}
""")
        agent.log.wait('published config=web ')
        for _ in range(20):
            sent.clear()
            outcome = agent.refresh()
            self.assertEqual((outcome['outcome'], self.read('out/web.yaml')), ('published', b'base: %d\nmore: %d\n' % (versions['base'], versions['more'])), outcome)
            self.assertTrue(sent.wait(harness.DEADLINE))
        agent.stop()


class Honest(Pulls):
    """What it costs: connections of servers that do nothing wrong."""

    def run_rounds(self, server, names, rounds, **kw):
        agent = Agent(self, self.settings(server, names, interval='1h', **kw))
        for name in names:
            agent.log.wait(f'published config={name} ')
        for _ in range(rounds):
            for name in names:
                outcome = agent.refresh(name)
                self.assertEqual(outcome['outcome'], 'published', outcome)
        status = agent.status(names[0])
        agent.stop()
        self.assertEqual((status['runs']['failed'], status['runs']['timeouts'], status['state']), (0, 0, 'ok'))

    def honest(self, **kw):
        moments = Moments()
        moments.honest = True
        return Documents(self, moments, **kw)

    def test_one_config_keeps_its_connection(self):
        for tls in (None, self.tls):
            with self.subTest(tls=bool(tls)):
                server = self.honest(tls=tls)
                self.run_rounds(server, ['web'], 30)
                self.assertEqual((server.asks, server.connections), (31, 1))
                shutil.rmtree(self.path('state'))

    def test_a_few_configs_keep_their_connections(self):
        server = self.honest()
        self.run_rounds(server, [f'c{i}' for i in range(5)], 10)
        self.assertEqual(server.asks, 55)
        self.assertLessEqual(server.connections, 5)

    def test_many_configs_resume_their_sessions(self):
        server = self.honest(tls=self.tls)
        self.run_rounds(server, [f'c{i}' for i in range(40)], 3)
        self.assertEqual(server.asks, 160)
        again = server.connections - 8  # so many are made before the first answer brings a ticket
        # handshakes that overlap at the start have nothing to resume: on a slow machine that is more of them
        self.assertGreaterEqual(server.resumed, again * 3 // 4, f'{server.resumed} sessions resumed on {server.connections} connections')

    def test_a_server_that_ends_each_connection_costs_no_failure(self):
        for pause in ([], [.002]):
            with self.subTest(pause=pause):
                server = Wire(self, lambda ask, pause=pause: [counted(f'serial: {ask.connection.number}\n'.encode()), *pause, CLOSE])
                self.run_rounds(server, ['a', 'b', 'c'], 10)
                shutil.rmtree(self.path('state'))

    def test_tickets_that_come_late_are_no_failure_and_no_loop(self):
        server = Tickets(self, self.tls)
        self.run_rounds(server, ['web'], 20)
        self.assertEqual(server.serial, 21)
        self.assertGreater(server.tickets, 10)
        self.assertLessEqual(server.connections, 21)


if __name__ == '__main__':
    harness.main()
