#!/usr/bin/env python3
"""Answers of configuration servers, each as large as it may be: what holds the document (JSON, base64, many keys, one, deep ones) is read
without holding the loop, whatever the kind; the limits are those of test_documents.py. What is published is what the server has; what happens
to the agent while an answer is read costs neither more than one turn nor the version that stands.
"""
import base64
import hashlib
import http.server
import json
import signal
import threading

import attack  # noqa: F401
import harness
import test_documents
from test_documents import ALL, LIMIT_KB, LIMIT_MS

MAX = 8 << 20
KEYS = 9900  # a little under the most that may stand below a prefix
MANY = 2500 if harness.SANITIZED else KEYS  # to be read in less than the time that the agent has to end


def many(width, count=KEYS):
    return {f'key{i:06d}': f'{i:0{width}d}' for i in range(count)}


def deep(separator, depth=24):
    """Each key in folders of its own, at the end of which it stands."""
    return {separator.join([f'd{i}'] + ['x'] * depth): 'v' * 300 for i in range(3000)}


# name -> keys and values, for a separator
SHAPES = {
    'many': lambda separator: many(600),
    'small': lambda separator: many(8),
    'one': lambda separator: {'key': 'x' * (MAX - 4096)},
    'deep': deep,
    'escapes': lambda separator: {f'key{i}': '\x01"\\' * 40000 for i in range(8)},
}


def nested(keys, separator):
    document = {}
    for key, value in keys.items():
        *folders, name = key.split(separator)
        at = document
        for folder in folders:
            at = at.setdefault(folder, {})
        at[name] = value
    return document


def b64(text):
    return base64.b64encode(text.encode()).decode()


class Kind:
    separator, keys, headers = '.', '', {}

    def document(self, keys):
        return nested(keys, self.separator)


class Etcd(Kind):
    separator, path = '/', '/app/'

    def answer(self, keys, revision=7):
        kvs = [{'key': b64(self.path + k), 'value': b64(v), 'create_revision': '2', 'mod_revision': str(revision), 'version': '1'} for k, v in keys.items()]
        return {'header': {'cluster_id': '1', 'member_id': '2', 'revision': str(revision), 'raft_term': '2'}, 'kvs': kvs, 'count': str(len(kvs))}


class Consul(Kind):
    separator, path, headers = '/', '/app/', {'X-Consul-Index': '7'}

    def answer(self, keys, revision=7):
        return [{'LockIndex': 0, 'Key': 'app/' + k, 'Flags': 0, 'Value': b64(v), 'CreateIndex': 2, 'ModifyIndex': revision} for k, v in keys.items()]


class Apollo(Kind):
    path = '/app/default/application'

    def answer(self, keys, revision=7):
        return {'appId': 'app', 'cluster': 'default', 'namespaceName': 'application', 'configurations': keys, 'releaseKey': f'r{revision}'}


class Spring(Kind):
    path = '/app/prod'

    def answer(self, keys, revision=7):
        return {'name': 'app', 'profiles': ['prod'], 'label': None, 'version': f'v{revision}', 'state': None, 'propertySources': [{'name': 's', 'source': keys}]}


class Nacos(Kind):
    path, keys = '/G/web.json', ', api: 3'

    def answer(self, keys, revision=7):
        text = json.dumps(self.document(keys), ensure_ascii=False)
        return {'code': 0, 'message': 'success', 'data': {'content': text, 'contentType': 'json', 'md5': hashlib.md5(text.encode()).hexdigest()}}


class Nacos1(Nacos):
    keys = ''

    def answer(self, keys, revision=7):
        return self.document(keys)


class Http(Nacos1):
    path = '/web.json'


KINDS = {'etcd': Etcd(), 'consul': Consul(), 'apollo': Apollo(), 'spring': Spring(), 'nacos': Nacos(), 'nacos of 1.x': Nacos1(), 'http': Http()}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def do_GET(self):
        self.rfile.read(int(self.headers.get('Content-Length') or 0))
        watch = 'watch' in self.path or 'index=' in self.path or 'notifications' in self.path or 'listener' in self.path
        if watch and not self.server.watches:
            self.server.silent.set()
            self.server.over.wait(harness.DEADLINE)
            self.close_connection = True
            return
        status, headers, body = self.server.watches.pop() if watch else self.server.others.get(self.path, self.server.answer)
        self.send_response(status)
        for name, value in {'Content-Type': 'application/json', 'Content-Length': str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, *args):
        pass


def put(server, kind, keys, revision):
    body = json.dumps(kind.answer(keys, revision), ensure_ascii=False).encode()
    server.answer = (200, dict(kind.headers), body)
    return len(body)


class Server(http.server.ThreadingHTTPServer):
    """answer: to what is asked, but for the paths of others; watches: to those that watch, one after the other; then they are held, and `silent` says so."""

    def __init__(self, *args):
        super().__init__(*args)
        self.others, self.watches, self.silent, self.over = {}, [], threading.Event(), threading.Event()

    def handle_error(self, *args):
        """The agent went away in the middle."""


class Case(test_documents.Case):
    def serve(self):
        server = Server(('127.0.0.1', 0), Handler)
        self.addCleanup(server.server_close)
        self.in_background(server)
        self.addCleanup(server.over.set)
        return server

    def setUp(self):
        super().setUp()
        self.server = self.serve()

    def put(self, kind, keys, revision=7):
        return put(self.server, kind, keys, revision)

    def config(self, corner, name, more='', keys=''):
        kind = KINDS[name]
        return f"""
agent: {{state_dir: {corner.dir}/state, runtime_dir: {corner.dir}/run}}
servers:
  main: {{kind: {name.split()[0]}, urls: ["http://127.0.0.1:{self.server.server_port}"]{kind.keys}{keys}}}
configs:
  web:
    from: [{{server: main, path: "{kind.path}"}}]
    file: {corner.dir}/out
    interval: 1h
    timeout: 60s
    guard: {{max_changes: 100000, max_shrink: 100%}}
{more}"""


class Answers(Case):
    def begin(self, name, what, keys='', more=''):
        """An agent that has published a small document."""
        self.corner = harness.Corner(self, f'{name} {what}'.replace(' ', '-'))
        self.put(KINDS[name], {'first': '1'}, 5)
        agent = harness.Agent(self.corner, self.config(self.corner, name, more, keys))
        outcome = agent.refresh()
        self.assertNotEqual(outcome['outcome'], 'failed', (name, what, outcome))
        return agent

    def document(self):
        with open(self.corner.path('out'), encoding='utf-8') as f:
            return json.load(f)

    def end(self, agent, name, what):
        """Checks what it took, but not that of a sanitizer."""
        turn, top = self.longest_turn(agent)
        agent.close()
        if ALL:
            print(f'{name:14} {what:10} {turn:6.0f} ms {top >> 10:4} MB', flush=True)
        if not harness.SANITIZED and (turn > LIMIT_MS or top > LIMIT_KB):
            self.bad.append(f'{name} {what}: {turn:.0f} ms, {top} kB')

    def setUp(self):
        super().setUp()
        self.bad = []

    def tearDown(self):
        super().tearDown()
        self.assertEqual(self.bad, [])

    def test_none_holds_the_loop(self):
        for name, kind in KINDS.items():
            for shape in SHAPES if not harness.SANITIZED else ['small']:
                keys = SHAPES[shape](kind.separator)
                agent = self.begin(name, shape)
                self.put(kind, keys)
                outcome = agent.refresh()
                self.assertEqual((outcome['outcome'], outcome['error']), ('published', None), (name, shape))
                self.assertTrue(self.document() == kind.document(keys), (name, shape))
                self.assertEqual(agent.refresh()['outcome'], 'unchanged', (name, shape))
                self.end(agent, name, shape)

    def test_what_is_too_large_is_refused_as_ever(self):
        sentences = {
            'etcd': "the key '/app/key' is more than fits: raise max_size, or split what is there",
            'consul': "the key 'app/key' is more than fits: raise max_size, or split what is there",
            'apollo': 'the keys are too many, or more than max_size',
            'spring': "the property 'key' is more than fits: raise max_size, or split what is there",
            'nacos': 'out of memory, or larger than max_size',
            'nacos of 1.x': 'the document is larger than max_size',
            'http': 'the body is larger than the limit of 8388608 bytes',
        }
        for name, kind in KINDS.items():
            if harness.THREADS and name not in ('etcd', 'http'):
                continue  # the same threads read them all
            agent = self.begin(name, 'large')
            self.put(kind, {'key': 'x' * (MAX + 1)})
            outcome = agent.refresh()
            self.assertEqual((outcome['outcome'], outcome['error']), ('failed', sentences[name]), name)
            self.assertEqual(self.document(), {'first': '1'})
            self.end(agent, name, 'too large')

    def test_nor_does_an_error_of_any_length(self):
        for name in KINDS:
            agent = self.begin(name, 'error')
            self.server.answer = (500, {}, json.dumps({'message': 'no', 'x': many(600)}).encode())
            outcome = agent.refresh()
            self.assertEqual(outcome['outcome'], 'failed', name)
            self.assertIn('the server answered 500', outcome['error'], name)
            self.end(agent, name, 'error')

    def test_nor_does_a_login(self):
        self.write('password', 'secret\n')
        for name in ('etcd', 'nacos'):
            self.corner = harness.Corner(self, name + '-login')
            self.server.answer = (200, {}, json.dumps({'token': 'x', 'accessToken': 'x', 'x': many(600)}).encode())
            login = f', auth: {{basic: {{user: me, password_file: {self.path("password")}}}}}'
            agent = harness.Agent(self.corner, self.config(self.corner, name, keys=login))
            self.assertEqual(agent.refresh()['error'], 'the body is larger than the limit of 262144 bytes')
            self.end(agent, name, 'login')

    def test_nor_does_what_a_watch_tells(self):
        event = {'kv': {'key': b64('/app/x'), 'value': b64('x' * MAX), 'mod_revision': '8', 'version': '1'}}
        told = {
            'etcd': {'result': {'header': {'revision': '8'}, 'watch_id': '1', 'events': [event] + [{'kv': {'key': b64('/app/y')}}] * 9000}},
            'consul': Consul().answer(many(600)),
            'apollo': [{'namespaceName': 'application', 'notificationId': i, 'x': 'x' * 600} for i in range(KEYS)],
            'nacos of 1.x': 'web.json%02G%01' * 400000,
        }
        for name, what in told.items():
            self.server.silent.clear()
            text = what if isinstance(what, str) else json.dumps(what) + '\n'
            self.server.watches = [(200, {'X-Consul-Index': '9'}, text.encode())]
            agent = self.begin(name, 'watch', ', watch: true')
            self.assertTrue(self.server.silent.wait(harness.DEADLINE), name)
            self.assertIsNotNone(agent.status()['watch'], name)
            self.end(agent, name, 'watch')

    def test_nor_does_a_rollout(self):
        text = json.dumps(many(600)).encode()
        self.server.others['/rollout'] = (200, {}, text)
        agent = self.begin('http', 'rollout', more='    rollout: {server: main, path: /rollout}\n')
        self.put(KINDS['http'], {'second': '2'}, 6)
        self.assertEqual(agent.refresh()['error'], f'rollout document /rollout: it has {len(text)} bytes, and a rollout has at most 65536')
        self.assertEqual(self.document(), {'first': '1'})
        self.end(agent, 'http', 'rollout')

    def test_nor_do_digests_that_are_told_again_and_again(self):
        agent = self.begin('http', 'digests')
        size = self.put(KINDS['http'], {'key': 'x' * (MAX - 4096)})
        self.assertGreater(size, MAX - 4096)
        digest = ', '.join([f'sha-512=:{base64.b64encode(hashlib.sha512(self.server.answer[2]).digest()).decode()}:'] * 4)
        self.server.answer[1].update({'Repr-Digest': digest, 'Content-Digest': digest, 'Digest': digest})
        self.assertEqual(agent.refresh()['outcome'], 'published')
        self.end(agent, 'http', 'digests')


class Reading(test_documents.Judging):
    """What happens to an agent while it reads answers that take long."""

    LAYERS, timeout = 6, '60s'

    def serve(self):
        return Case.serve(self)

    def put(self, text):
        """n, and with it many other keys, if the document that stands for it has."""
        n, *more = text.decode().split('\n', 1)
        put(self.server, KINDS['etcd'], {'n': n.split()[1], **(many(500, MANY) if more and more[0] else {})}, 5 + int(n.split()[1]))

    def config_of(self, more=''):
        text = super().config_of(more).replace('urls:', 'kind: etcd, urls:').replace('path: /doc', 'path: /app/')
        return text.replace('timeout: 60s', f'timeout: {self.timeout}')

    def content(self):
        return int(super().content())

    def change(self, agent, text):
        """Nothing waits for what is read."""
        self.write(agent.config_path, text)
        agent.signal(signal.SIGHUP)
        agent.log.wait('the new configuration is applied')

    def test_the_time_limit_is_that_of_the_servers(self):
        """They take longer to read than the run may take to pull them."""
        self.timeout = '500ms'
        agent = harness.Agent(self, self.config_of())
        agent.log.wait('published')
        self.put(b'n: 2\nmore')
        self.until(lambda: agent.refresh()['outcome'] == 'published', 'the version is published')
        self.assertEqual(self.content(), 2)
        agent.stop()


if __name__ == '__main__':
    harness.main()
