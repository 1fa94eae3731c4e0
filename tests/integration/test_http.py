"""The agent's HTTP: what it answers is what packaging/openapi.yaml says; who may ask; what a browser may do; hostile clients."""
import contextlib
import glob
import http.client
import json
import os
import pwd
import re
import resource
import select
import shutil
import signal
import socket
import time
import urllib.parse
import warnings

import yaml

import harness
from harness import Agent, Case, FaultServer, good

with warnings.catch_warnings():
    warnings.simplefilter('ignore', DeprecationWarning)
    import jsonschema

SPEC_PATH = os.path.join(harness.ROOT, 'packaging', 'openapi.yaml')
with open(SPEC_PATH, encoding='utf-8') as spec_file:
    SPEC = yaml.safe_load(spec_file)
METHODS = ('get', 'post')
HEADERS = {'Cache-Control': 'no-store', 'Cross-Origin-Resource-Policy': 'same-origin',
           'Referrer-Policy': 'no-referrer', 'X-Content-Type-Options': 'nosniff', 'X-Frame-Options': 'DENY'}


def resolve(part):
    while '$ref' in part and len(part) == 1:
        node = SPEC
        for step in part['$ref'].lstrip('#/').split('/'):
            node = node[step]
        part = node
    return part


def operations():
    """(method, path, operation, parameters) of all that is documented."""
    for path, item in SPEC['paths'].items():
        for method in METHODS:
            if method in item:
                parameters = [resolve(p) for p in item.get('parameters', []) + item[method].get('parameters', [])]
                yield method.upper(), path, item[method], parameters


class Answer:
    def __init__(self, response):
        self.status, self.headers, self.body = response.status, response.headers, response.read().decode()

    def json(self):
        return json.loads(self.body)


class HttpCase(Case):
    def setUp(self):
        super().setUp()
        self.server = FaultServer(self)

    def agent(self, names=('web',), more='', agent='', **kw):
        """An agent with a TCP listener; each config pulls /NAME.yaml."""
        with socket.create_server(('127.0.0.1', 0)) as probe:
            self.port = probe.getsockname()[1]
        configs = ''.join(f'  {n}:\n    url: {self.server.url}/{n}.yaml\n    interval: 1h\n{more}' for n in names)
        return Agent(self, f'''agent:
  state_dir: {self.path("state")}
  runtime_dir: {self.path("run")}
  listen: 127.0.0.1:{self.port}
  log: {{level: debug}}
{agent}
configs:
{configs}''', **kw)

    def connect(self, agent=None):
        """A connection to the control socket of an agent, else to the TCP listener."""
        if agent:
            return harness.UnixConnection(agent.socket)
        return http.client.HTTPConnection('127.0.0.1', self.port, timeout=harness.DEADLINE * 2)

    def ask(self, method, path, agent=None, headers=None):
        connection = self.connect(agent)
        try:
            connection.request(method, path, headers=headers or {})
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def descriptors(self, agent):
        return len(os.listdir(f'/proc/{agent.pid}/fd'))

    def raw(self, data, agent=None):
        """Sends bytes; the connected socket."""
        s = socket.socket(socket.AF_UNIX) if agent else socket.socket()
        s.settimeout(harness.DEADLINE * 2)
        s.connect(agent.socket if agent else ('127.0.0.1', self.port))
        self.addCleanup(s.close)
        if data:
            s.sendall(data)
        return s


class Documented(HttpCase):
    def test_the_document_has_the_paths_of_the_program_and_their_parameters(self):
        with open(os.path.join(harness.ROOT, 'agent', 'control', 'api.c'), encoding='utf-8') as f:
            source = f.read()
        rows = re.findall(r'\{HTTPD_(GET|POST), (CONFIGS|"[^"]*"), (NULL|"[^"]*"), \w+, RIGHT_\w+, (?:true|false),\s+(ANY|\{[^}]*\})\}', source)
        served = {(m, ('/v1/configs/{name}' + after.strip('"')) if before == 'CONFIGS' else before.strip('"')): keys for m, before, after, keys in rows}
        self.assertGreater(len(served), 15)
        self.assertEqual(set(served), {(m, p) for m, p, _, _ in operations()})
        for m, path, _, parameters in operations():
            keys = served[m, path]
            self.assertEqual(keys == 'ANY', not path.startswith('/v1/'), path)
            if keys != 'ANY':
                self.assertEqual(set(re.findall(r'"(\w+)"', keys)), {p['name'] for p in parameters if p['in'] == 'query'}, path)

    def test_the_document_has_the_parameters_of_the_program(self):
        source = ''
        for path in glob.glob(os.path.join(harness.ROOT, 'agent', 'control', '*.c')):
            with open(path, encoding='utf-8') as f:
                source += f.read()
        used = set(re.findall(r'(?:query_number|query_is_set|query_text|httpd_query)\((?:r|[aw]->request), "(\w+)"', source))
        used |= set(re.findall(r'numbers_of_change\(r, "(\w+)"', source))
        documented = {p['name'] for _, _, _, parameters in operations() for p in parameters if p['in'] == 'query'}
        self.assertGreater(len(used), 10)
        self.assertEqual(used, documented)

    def test_every_operation_is_named_and_every_reference_leads_somewhere(self):
        names = [o['operationId'] for _, _, o, _ in operations()]
        self.assertEqual(len(names), len(set(names)))

        def walk(node):
            if isinstance(node, dict):
                if '$ref' in node:
                    resolve({'$ref': node['$ref']})
                for child in node.values():
                    walk(child)
            elif isinstance(node, list):
                for child in node:
                    walk(child)
        walk(SPEC)
        for name, schema in SPEC['components']['schemas'].items():
            with self.subTest(schema=name):
                jsonschema.Draft202012Validator.check_schema(schema)

    def validate(self, method, path, answer):
        """Finds the operation that a request belongs to, and holds the answer against it. Returns the name of what fitted."""
        plain = path.split('?')[0]
        for m, template, operation, _ in operations():
            if m == method and re.fullmatch(re.sub(r'\{\w+\}', '[^/]+', template), plain):
                break
        else:
            self.fail(f'{method} {plain} is not documented')
        response = resolve(operation['responses'].get(str(answer.status), operation['responses'].get('default', {})))
        if str(answer.status) not in operation['responses']:
            self.assertGreaterEqual(answer.status, 400, f'{method} {path}: {answer.status} is not documented')
        content = response['content']
        kind = answer.headers['Content-Type']
        self.assertIn(kind, content, f'{method} {path}')
        body = answer.json() if kind == 'application/json' else answer.body
        schema = dict(content[kind]['schema'])
        validator = jsonschema.Draft202012Validator(schema, resolver=jsonschema.RefResolver('', SPEC))
        errors = [f'{"/".join(map(str, e.absolute_path))}: {e.message}' for e in validator.iter_errors(body)]
        self.assertEqual(errors, [], f'{method} {path}: {answer.body[:2000]}')
        return operation['operationId'], answer.status

    def situations(self):
        """An agent in which everything that a status can show is shown."""
        self.write('schema.json', '{"properties": {"n": {"type": "integer"}}}')
        _, url, endpoint = self.serve()
        self.write('www/web.yaml', 'n: 1\nbase: {a: 1}\nsecret: x\n')
        self.write('www/bytes', 'b')
        text = f'''agent:
  state_dir: {self.path("state")}
  runtime_dir: {self.path("run")}
  listen: 127.0.0.1:0
  labels: {{zone: eu-1}}
  log: {{level: debug}}
push: [{{endpoint: {endpoint}}}, {{endpoint: 'tcp://127.0.0.1:1'}}]
servers:
  main: {{urls: ["{url}"]}}
  files: {{kind: file, urls: ["file://{self.path("files")}"], watch: true}}
  none: {{kind: etcd, urls: ["http://127.0.0.1:1"]}}
report: {{server: none}}
configs:
  web:
    from: [{{server: main, path: /web.yaml}}]
    interval: 1h
    schema: {self.path("schema.json")}
    mask: [secret]
    reload: {{run: [/bin/false]}}
    probe: {{run: [/bin/true], for: 1s, failures: 1}}
  watched: {{from: [{{server: files, path: /w.yaml}}], interval: 1h}}
  raw: {{from: [{{server: main, path: /bytes}}], type: bytes, file: {self.path("raw")}, interval: 1h}}
  gone: {{from: [{{server: main, path: /none.yaml}}], interval: 1h}}
'''
        self.write('files/w.yaml', 'w: 1\n')
        agent = Agent(self, text)
        agent.ready()
        for name in ('web', 'watched', 'raw'):
            agent.log.wait(rf'published.*config={name}\b')
        return agent

    def settled(self, change):
        """Asks for a change until the one before, which was not waited for, is over."""
        deadline = time.monotonic() + harness.DEADLINE
        while (answer := change()).status != 200:
            self.assertIn('another change', answer.body)
            self.assertLess(time.monotonic(), deadline)

    def test_live_answers_fit_the_document(self):
        agent = self.situations()
        seen = set()

        def ask(method, path, expect=None):
            answer = self.ask(method, path, agent)
            if expect:
                self.assertEqual(answer.status, expect, f'{path}: {answer.body}')
            seen.add(self.validate(method, path, answer))
            return answer
        for path in ('/', '/page.css', '/page.js', '/detail.js', '/livez', '/healthz', '/metrics', '/v1/status', '/v1/changes'):
            ask('GET', path, 200)
        for path in ('/readyz', '/readyz?verbose', '/readyz?verbose=1'):
            ask('GET', path, 503)
        self.write('www/web.yaml', 'n: 2\nbase: {b: 1}\nsecret: y\n')
        ask('POST', '/v1/configs/web/refresh?wait=1', 200)
        agent.log.wait('reload failed')
        ask('POST', '/v1/configs/web/override?key=base.c&value=%7Bd%3A%201%7D&for_ms=60000&reason=test', 200)
        ask('POST', '/v1/configs/web/override?key=base.c&remove=1&wait=0', 202)
        self.settled(lambda: ask('POST', '/v1/configs/web/override?key=base.x&value=1&for_ms=60000'))
        ask('POST', '/v1/configs/web/override?key=n&value=text&for_ms=60000', 409)
        ask('POST', '/v1/configs/web/rollback?generation=1&reason=because', 200)
        ask('POST', '/v1/configs/web/rollback?generation=99', 404)
        ask('POST', '/v1/configs/web/rollback?generation=2&wait=0', 202)
        self.settled(lambda: ask('POST', '/v1/configs/web/override?key=base.x&value=2&for_ms=60000'))
        ask('POST', '/v1/configs/web/pin?for_ms=3600000&reason=incident', 200)
        ask('POST', '/v1/configs/web/pin', 200)
        self.write('www/web.yaml', 'n: text\n')
        ask('POST', '/v1/configs/web/unpin', 200)
        ask('POST', '/v1/configs/web/suspend?for_ms=3600000&reason=move', 200)
        ask('POST', '/v1/configs/web/suspend', 200)
        self.assertIn('suspension', ask('GET', '/v1/configs/web', 200).json())
        ask('POST', '/v1/configs/web/refresh', 409)
        ask('POST', '/v1/configs/web/resume', 200)
        ask('POST', '/v1/configs/web/resume', 409)
        ask('POST', '/v1/configs/web/refresh', 202)
        ask('POST', '/v1/configs/web/refresh?force=1&wait=1', 200)
        ask('POST', '/v1/configs/gone/refresh?wait=1', 200)
        for name in ('web', 'watched', 'raw', 'gone'):
            ask('GET', f'/v1/configs/{name}', 200)
            ask('GET', f'/v1/configs/{name}/history', 200)
            ask('GET', f'/v1/configs/{name}/events', 200)
            ask('GET', f'/v1/configs/{name}/explain', 200)
        ask('GET', '/v1/configs/web/diff', 200)
        ask('GET', '/v1/configs/web/diff?from=1&to=2', 200)
        ask('GET', '/v1/configs/web/diff?from=none', 400)
        ask('GET', '/v1/configs/web/diff?held=1', 200)
        ask('GET', '/v1/configs/watched/diff?held=1', 404)
        ask('GET', '/v1/configs/raw/diff?from=1&to=1', 200)
        for key in ('base', 'secret', 'base.x', 'n'):
            ask('GET', f'/v1/configs/web/explain?key={key}', 200)
        ask('GET', '/v1/configs/web/explain?key=none', 404)
        ask('GET', '/v1/configs/web/explain', 200)
        ask('GET', '/v1/configs/web/wait?generation=1', 200)
        ask('GET', '/v1/configs/web/wait?generation=999&timeout_ms=1', 504)
        ask('GET', '/v1/configs/web/wait', 400)
        ask('GET', '/v1/configs/nobody', 404)
        status = ask('GET', '/v1/status', 200).json()
        ask('GET', '/v1/changes', 200)
        # what was to be shown was there
        configs = {c['name']: c for c in status['configs']}
        self.assertIn('schema', configs['web']['rejections_by'])
        self.assertEqual(configs['web']['rejected']['by'], 'schema')
        self.assertEqual(configs['web']['overrides'][0]['key'], 'base.x')
        self.assertIn('reload', configs['web'])
        self.assertIn('probe', configs['web'])
        self.assertEqual(configs['watched']['watch']['state'], 'watching')
        self.assertEqual(configs['gone']['cause'], 'not found')
        self.assertEqual(len(status['push']), 2)
        self.assertIn('report', status)
        named = {o['operationId'] for _, _, o, _ in operations()}
        self.assertEqual(named, {name for name, code in seen if code < 400 or name == 'ready'}, 'every operation was good once')
        self.write('www/none.yaml', 'n: 1\n')
        ask('POST', '/v1/configs/gone/refresh?wait=1', 200)
        self.assertEqual(ask('GET', '/readyz', 200).body, 'ok\n')
        ask('GET', '/readyz?verbose', 200)
        agent.stop()

    def test_a_member_that_is_not_documented_is_found(self):
        agent = self.agent()
        agent.log.wait('published')
        answer = self.ask('GET', '/v1/status')
        self.validate('GET', '/v1/status', answer)
        status = answer.json()
        status['configs'][0]['surprise'] = 1
        answer.body = json.dumps(status)
        with self.assertRaises(AssertionError):
            self.validate('GET', '/v1/status', answer)
        agent.stop()


class Forms(HttpCase):
    def test_every_answer_has_the_headers(self):
        agent = self.agent()
        agent.log.wait('published')
        for where in (agent, None):
            for method, path in (*((m, p.replace('{name}', 'web')) for m, p, _, _ in operations() if m == 'GET'), ('GET', '/none'), ('POST', '/v1/status'),
                                 ('POST', '/v1/configs/web/pin'), ('POST', '/v1/configs/none/pin')):
                with self.subTest(path=path, method=method, tcp=not where):
                    answer = self.ask(method, path, where)
                    for name, value in HEADERS.items():
                        self.assertEqual(answer.headers.get_all(name), [value])
                    policy = answer.headers['Content-Security-Policy']
                    self.assertTrue(policy.startswith("default-src 'none'; "))
                    for part in ("frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'", "script-src 'self'", "require-trusted-types-for 'script'"):
                        self.assertIn(part, policy.split('; '))
                    self.assertNotIn('unsafe', policy)
                    self.assertIsNone(answer.headers['Access-Control-Allow-Origin'])
                    self.assertIsNone(answer.headers['Set-Cookie'])
        agent.stop()

    def test_head_is_get_without_its_body(self):
        agent = self.agent()
        agent.log.wait('published')
        for path in ('/', '/page.js', '/livez', '/v1/changes'):
            get, head = self.ask('GET', path), self.ask('HEAD', path)
            self.assertEqual((head.status, head.body), (200, ''))
            self.assertEqual(int(head.headers['Content-Length']), len(get.body.encode()))
            self.assertEqual(head.headers['Content-Type'], get.headers['Content-Type'])
        agent.stop()

    def test_other_methods_are_refused(self):
        agent = self.agent()
        agent.log.wait('published')
        for where in (agent, None):
            for method in ('PUT', 'DELETE', 'OPTIONS', 'TRACE', 'PATCH'):
                for path, allow in (('/v1/status', 'GET, HEAD'), ('/v1/configs/web/pin', 'POST')):
                    answer = self.ask(method, path, where)
                    self.assertEqual((answer.status, answer.headers['Allow'], answer.headers['Connection']), (405, allow, 'close'), method)
                    self.assertEqual(list(answer.json()), ['error'])
                self.assertEqual(self.ask(method, '/none', where).status, 404)
            answer = self.ask('POST', '/v1/status', where)
            self.assertEqual((answer.status, answer.headers['Allow']), (405, 'GET, HEAD'))
        answer = self.ask('GET', '/v1/configs/web/pin', agent)
        self.assertEqual((answer.status, answer.headers['Allow']), (405, 'POST'))
        agent.stop()

    def test_a_query_has_what_is_documented_and_nothing_else(self):
        agent = self.agent()
        agent.log.wait('published')
        for query, sentence in (('wait=x&frob=1', 'no parameter here is called frob'), ('wait=x', 'wait takes 0 or 1'), ('force=', 'force takes 0 or 1'),
                                ('wait', 'wait takes 0 or 1'), ('wait=1&Wait=1', 'no parameter here is called Wait'), ('*=1', 'no parameter here is called *'),
                                ('k' * 300 + '=1', 'no parameter here is called ' + 'k' * 64), ('%00', None), ('a\xff"=1', None)):
            answer = self.ask('POST', '/v1/configs/web/refresh?' + urllib.parse.quote(query, '=&*%', 'latin-1'), agent)
            self.assertEqual((answer.status, list(answer.json())), (400, ['error']), query)
            if sentence:
                self.assertEqual(answer.json()['error'], sentence)
        self.assertEqual(self.ask('GET', '/v1/status').json()['configs'][0]['runs']['success'], 1, 'nothing was pulled')
        for m, path, _, _ in operations():
            answer = self.ask(m, path.replace('{name}', 'web') + '?frob=1', agent)
            if path.startswith('/v1/'):
                self.assertEqual((answer.status, answer.json()), (400, {'error': 'no parameter here is called frob'}), path)
            else:
                self.assertEqual(answer.status, 200, 'a browser, a probe and a scraper may add what they like')
        agent.stop()

    def test_what_the_http_library_refuses_is_as_documented(self):
        agent = self.agent()
        agent.log.wait('published')
        self.assertIn('answered with 400, 413 or 417 and a page in HTML', ' '.join(SPEC['info']['description'].split()))
        head, long = b'Host: localhost\r\n', b'x' * 5000
        for request, expected, kind in (
                (b'GET // HTTP/1.1\r\n' + head + b'\r\n', 400, b'application/json'),
                (b'OPTIONS * HTTP/1.1\r\n' + head + b'\r\n', 400, b'application/json'),
                (b'GET /livez%00 HTTP/1.1\r\n' + head + b'\r\n', 400, b'application/json'),
                (b'GET\r\n\r\n', 400, b'text/html'),
                (b'GET /livez HTTP/1.1\r\n' + head + b'X: ' + long * 2 + b'\r\n\r\n', 400, b'text/html'),
                (b'POST /v1/configs/web/pin HTTP/1.1\r\n' + head + b'Content-Length: 5000\r\n\r\n' + long, 413, b'text/html'),
                (b'POST /v1/configs/web/pin HTTP/1.1\r\n' + head + b'Expect: more\r\nContent-Length: 4\r\n\r\n', 417, b'text/html')):
            s = self.raw(request, agent)
            data = b''
            with contextlib.suppress(ConnectionResetError):  # what is too long was not read to its end
                while part := s.recv(65536):
                    data += part
            first, body = data.split(b'\r\n\r\n', 1)
            self.assertTrue(first.startswith(b'HTTP/1.1 %d ' % expected), first)
            self.assertIn(b'Content-Type: ' + kind, first, request[:80])
            if kind == b'application/json':
                self.assertEqual(list(json.loads(body)), ['error'])
        agent.stop()

    def test_a_version_that_did_not_come_in_time_is_told_as_that(self):
        agent = self.agent()
        agent.log.wait('published')
        for query, what in (('generation=99', 'generation 99'), ('version=v7', 'version v7'), ('generation=99&version=v7', 'version v7')):
            answer = self.ask('GET', f'/v1/configs/web/wait?{query}&timeout_ms=100', agent)
            self.assertEqual((answer.status, answer.json()['error']), (504, f'{what} was not published within 100ms; generation 1 is current'))
        _, _, error = agent.cli('wait', 'web', '--generation', '99', '--timeout', '1s', check=4)
        self.assertEqual(error.splitlines()[-1].split(': ', 1)[1], 'generation 99 was not published within 1s; generation 1 is current')
        agent.stop()
        self.server.behave = good(b'x', status='404 Not Found')
        shutil.rmtree(self.path('state'))
        agent = self.agent()
        agent.log.wait('pull failed')
        answer = self.ask('GET', '/v1/configs/web/wait?generation=1&timeout_ms=1', agent)
        self.assertEqual(answer.json()['error'], 'generation 1 was not published within 1ms; nothing is published yet')
        agent.stop()

    def test_metrics_have_the_type_that_was_asked_for(self):
        agent = self.agent()
        agent.log.wait('published')
        plain = self.ask('GET', '/metrics')
        self.assertEqual(plain.headers['Content-Type'], 'text/plain; version=0.0.4; charset=utf-8')
        self.assertNotIn('# EOF', plain.body)
        modern = self.ask('GET', '/metrics', headers={'Accept': 'application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3'})
        self.assertEqual(modern.headers['Content-Type'], 'application/openmetrics-text; version=1.0.0; charset=utf-8')
        self.assertTrue(modern.body.endswith('# EOF\n'))
        agent.stop()

    def test_readyz_says_who_is_not_ready_and_why(self):
        self.server.behave = good(b'x', status='503 Service Unavailable', headers='Retry-After: 30\r\n')
        agent = self.agent(names=('web', 'db'))
        agent.log.wait('pull failed')  # one of them says it for both
        self.until(lambda: self.ask('GET', '/readyz').body.count('overloaded') == 2, 'both have asked')
        answer = self.ask('GET', '/readyz')
        self.assertEqual(answer.status, 503)
        lines = dict(line.split(': ', 1) for line in answer.body.splitlines())
        self.assertEqual(set(lines), {'web', 'db'})
        self.assertIn('overloaded', lines['web'])  # the cause alone: it is asked over TCP
        for why in lines.values():
            self.assertTrue(why.startswith('nothing is published yet: '), why)
        self.server.behave = good(b'a: 1\n')
        agent.stop()
        agent = self.agent(names=('web', 'db'))
        for name in ('web', 'db'):
            agent.log.wait(f'published.*config={name}')
        answer = self.ask('GET', '/readyz?verbose')
        self.assertEqual((answer.status, answer.body), (200, '[+]web: generation 1, ok\n[+]db: generation 1, ok\nok\n'))
        agent.stop()

    def test_readyz_names_the_server_that_a_pull_waits_for(self):
        self.server.behave = harness.drip(b'', b'')  # the first request is never answered
        with socket.create_server(('127.0.0.1', 0)) as probe:
            self.port = probe.getsockname()[1]
        agent = Agent(self, f'''agent: {{state_dir: {self.path("state")}, runtime_dir: {self.path("run")}, listen: "127.0.0.1:{self.port}"}}
servers: {{main: {{urls: ["{self.server.url}"], max_in_flight: 1}}}}
configs:
  a: {{from: [{{server: main, path: /a}}], timeout: 60s}}
  b: {{from: [{{server: main, path: /b}}], timeout: 60s}}
''')
        agent.ready()
        body = self.ask('GET', '/readyz?verbose').body
        self.assertRegex(body, r'(?m)^\[-\]a: nothing is published yet: the first pull has not ended$')
        self.assertRegex(body, r'(?m)^\[-\]b: nothing is published yet: the first pull is queued for its server main$')
        self.assertTrue(body.endswith('\nnot ready\n'))
        agent.stop()


class Names(HttpCase):
    def status(self, host, agent=None):
        """Of a request for that host; None = without the header."""
        s = self.raw(f'GET /livez HTTP/1.1\r\n{"" if host is None else f"Host: {host}" + chr(13) + chr(10)}Connection: close\r\n\r\n'.encode(), agent)
        data = b''
        while part := s.recv(65536):
            data += part
        self.assertRegex(data, rb'^HTTP/1\.1 (200|400|421) ')
        if b'evil' in data.lower():
            self.fail('the name is told back')
        return int(data[9:12])

    def test_only_names_of_this_host_are_answered(self):
        agent = self.agent(agent='  listen_names: [metrics.example, Other.Example]\n')
        agent.log.wait('published')
        ours = ('127.0.0.1', f'127.0.0.1:{self.port}', '10.0.0.9', '[::1]', '[::1]:80', 'localhost', f'localhost:{self.port}', 'LOCALHOST', 'x.localhost',
                socket.gethostname(), socket.gethostname() + ':80', 'metrics.example', 'other.example:1')
        others = ('evil.example', 'evil.example:80', socket.gethostname() + '.evil.example', 'localhost.evil.example', '127.0.0.1.evil.example',
                  'xmetrics.example', '')
        for where in (agent, None):
            for host in ours:
                self.assertEqual(self.status(host, where), 200, host)
            for host in others:
                self.assertEqual(self.status(host, where), 421, host)
            self.assertEqual(self.status(None, where), 400)  # RFC 9112, 3.2
        agent.stop()

    def test_the_name_is_looked_at_before_anything_else(self):
        agent = self.agent()
        agent.log.wait('published')
        for method, path in (('GET', '/v1/status'), ('GET', '/'), ('GET', '/none'), ('POST', '/v1/configs/web/pin'), ('GET', '/v1/configs/web/diff')):
            for where in (agent, None):
                answer = self.ask(method, path, where, headers={'Host': 'evil.example'})
                self.assertEqual(answer.status, 421)
                self.assertEqual(list(answer.json()), ['error'])
                self.assertEqual(answer.headers['X-Frame-Options'], 'DENY')
        self.assertNotIn('pin', self.ask('GET', '/v1/configs/web').json())
        agent.stop()

    def test_a_reload_changes_the_names(self):
        agent = self.agent()
        agent.log.wait('published')
        self.assertEqual(self.status('new.example'), 421)
        text = self.read('pullet.yaml').decode().replace('configs:', '  listen_names: [new.example]\nconfigs:')
        self.write('pullet.yaml', text)
        seen = agent.log.count
        agent.signal(signal.SIGHUP)
        agent.log.wait('configuration', start=seen)
        deadline = time.monotonic() + harness.DEADLINE
        while self.status('new.example') != 200:
            self.assertLess(time.monotonic(), deadline)
        agent.stop()

    def test_browsers_change_nothing(self):
        agent = self.agent()
        agent.log.wait('published')
        for headers in ({'Origin': 'http://localhost:8377'}, {'Origin': 'null'}, {'Origin': 'https://evil.example'}, {'Sec-Fetch-Site': 'cross-site'},
                        {'Sec-Fetch-Site': 'same-origin'}, {'Sec-Fetch-Site': 'none'}):
            for path in ('pin', 'unpin', 'suspend', 'resume', 'rollback', 'refresh', 'override?key=a&value=1&for_ms=1000'):
                answer = self.ask('POST', '/v1/configs/web/' + path, agent, headers)
                self.assertEqual(answer.status, 403, (path, headers))
                self.assertIn('browser', answer.json()['error'])
            self.assertEqual(self.ask('GET', '/v1/status', agent, headers).status, 200)
        self.assertNotIn('pin', self.ask('GET', '/v1/configs/web').json())
        self.assertEqual(self.ask('POST', '/v1/configs/web/pin', agent).status, 200)
        self.assertIn('pin', self.ask('GET', '/v1/configs/web').json())
        agent.stop()

    def test_tcp_shows_no_values_and_takes_no_posts(self):
        agent = self.agent()
        agent.log.wait('published')
        for m, path, _, _ in operations():
            answer = self.ask(m, path.replace('{name}', 'web'), None)
            if m == 'POST' or path.endswith(('/diff', '/explain', '/wait')):
                self.assertEqual(answer.status, 403, path)
            else:
                self.assertEqual(answer.status, 200, path)
        agent.stop()


class Changes(HttpCase):
    def put(self, agent, text, name='web'):
        self.server.behave = good(text.encode())
        return agent.refresh(name)

    def changes(self, agent=None):
        answer = self.ask('GET', '/v1/changes', agent)
        self.assertEqual(answer.status, 200, answer.body)
        return answer.json()

    def test_each_publication_and_what_it_changed(self):
        self.server.behave = good(b'a: 1\nb: {c: x}\npassword: first\n')
        agent = self.agent(more='    mask: ["password"]\n')
        agent.log.wait('published')
        self.put(agent, 'a: 2\nd: [true]\npassword: second\n')
        agent.cli('rollback', 'web', '--reason', 'it was wrong', check=0)
        found = self.changes(agent)
        self.assertTrue(found['complete'])
        self.assertEqual([(p['config'], p['generation'], p['from'], p['more']) for p in found['publications']], [('web', 3, 2, 0), ('web', 2, 1, 0), ('web', 1, None, 0)])
        self.assertEqual(found['publications'][1]['changes'], [
            {'key': 'a', 'op': 'changed', 'old': '1', 'new': '2'}, {'key': 'b.c', 'op': 'removed', 'old': '"x"'}, {'key': 'd.0', 'op': 'added', 'new': 'true'},
            {'key': 'password', 'op': 'changed', 'old': '***', 'new': '***'}])
        self.assertEqual([p['origin'] for p in found['publications']], [f'rollback to generation 1 by {pwd.getpwuid(os.geteuid()).pw_name} (uid {os.geteuid()}): it was wrong', 'pull', 'pull'])
        self.assertEqual({c['op'] for c in found['publications'][2]['changes']}, {'added'})
        self.assertLess(abs(found['publications'][0]['at_ms'] - time.time() * 1000), harness.DEADLINE * 1000)
        agent.stop()

    def test_over_tcp_no_value_is_shown(self):
        self.server.behave = good(b'a: alpha\nb: {c: beta}\n"": gamma\n')
        agent = self.agent()
        agent.log.wait('published')
        self.put(agent, 'a: delta\nb: {c: [epsilon]}\n"": zeta\n')
        unix, tcp = self.ask('GET', '/v1/changes', agent), self.ask('GET', '/v1/changes')
        for word in ('alpha', 'beta', 'gamma', 'delta', 'epsilon', 'zeta'):
            self.assertIn(word, unix.body)
            self.assertNotIn(word, tcp.body)

        def without(answer):
            text = re.sub(r'"(old|new)":"(?:[^"\\]|\\.)*"', r'"\1":"***"', answer.body)
            return json.loads(text)
        self.assertEqual((unix.json()['values'], tcp.json()['values']), (True, False))
        self.assertEqual({**without(unix), 'values': False}, tcp.json())
        agent.stop()

    def test_the_newest_of_all_configs_come_first_and_twenty_at_most(self):
        names = ('a', 'b', 'c')
        agent = self.agent(names=names)
        for name in names:
            agent.log.wait(f'published.*config={name}')
        expected = []
        for i in range(8):
            for name in ('b', 'c', 'a'):
                self.put(agent, f'n: {i}\n', name)
                expected.insert(0, (name, i + 2))
        found = self.changes(agent)['publications']
        self.assertEqual(len(found), 20)
        for name in names:
            mine = [p['generation'] for p in found if p['config'] == name]
            self.assertEqual(mine, sorted(mine, reverse=True))
        times = [p['at_ms'] for p in found]
        self.assertEqual(times, sorted(times, reverse=True))
        # the clock of files ticks every few milliseconds: within a tick any order of configs is as good
        self.assertEqual(sorted(p['at_ms'] for p in found)[0], min(times))
        self.assertEqual({(p['config'], p['generation']) for p in found[:15]} - set(expected[:18]), set())
        agent.stop()

    def test_the_newest_come_first_when_known_ones_are_not_kept_any_more(self):
        agent = self.agent(names=('a', 'b'), more='    history: 2\n')
        for name in ('a', 'b'):
            agent.log.wait(f'published.*config={name}')
        for i in range(2, 10):
            for name in ('b', 'a', 'a'):  # generations of b are known for longer than they are kept, and those of a sooner
                self.put(agent, f'n: {i}\nm: {time.monotonic_ns()}\n', name)
                found = self.changes(agent)
                self.assertTrue(found['complete'])
                times = [p['at_ms'] for p in found['publications']]
                self.assertEqual(times, sorted(times, reverse=True), [(p['config'], p['generation']) for p in found['publications']])
        self.assertEqual(len(found['publications']), 20)
        self.assertLess(len(os.listdir(self.path('state/a'))), 8, 'the older ones are not kept')
        agent.stop()

    def test_after_a_restart_they_come_from_the_state_directory(self):
        agent = self.agent(names=('a', 'b'))
        for name in ('a', 'b'):
            agent.log.wait(f'published.*config={name}')
        self.put(agent, 'n: 1\n', 'a')
        before = self.changes(agent)
        agent.stop()
        agent = self.agent(names=('a', 'b'))
        agent.ready()
        self.assertEqual(self.changes(agent), before)
        agent.stop()

    def test_many_keys_and_long_values_are_cut(self):
        agent = self.agent()
        agent.log.wait('published')
        long = 'v' * 100000
        self.put(agent, ''.join(f'k{i:03}: {i}\n' for i in range(100)) + f'z: {long}\n')
        newest = self.changes(agent)['publications'][0]
        self.assertEqual(len(newest['changes']), 20)
        self.assertEqual(newest['more'], 82)  # a was removed, 101 are new
        self.put(agent, f'z: {long}x\n{"k" * 600}: 1\n')
        newest = self.changes(agent)['publications'][0]
        shown = [c for c in newest['changes'] if c['key'] == 'z']
        self.assertEqual(newest['more'] + len(newest['changes']), 102)
        self.assertFalse(shown and len(shown[0]['new']) > 200)
        self.assertLess(len(self.ask('GET', '/v1/changes', agent).body), 20000)
        agent.stop()

    def test_what_is_known_is_not_read_again(self):
        agent = self.agent()
        agent.log.wait('published')
        self.put(agent, 'n: 2\n')
        before = self.changes(agent)
        os.rename(self.path('state/web'), self.path('state/aside'))  # nothing can be read any more
        self.assertEqual(self.changes(agent), before)
        self.assertEqual(len(self.changes()['publications']), 2)
        os.rename(self.path('state/aside'), self.path('state/web'))
        os.unlink(self.path('state/web/00000000000000000001'))
        self.put(agent, 'n: 3\n')
        after = self.changes(agent)['publications']
        self.assertEqual([p['generation'] for p in after], [3, 2, 1])
        self.assertEqual(after[1:], before['publications'])
        agent.stop()

    def test_a_mask_that_is_added_hides_what_was_shown(self):
        self.server.behave = good(b'a: alpha\n')
        agent = self.agent()
        agent.log.wait('published')
        self.put(agent, 'a: beta\n')
        self.assertIn('alpha', self.ask('GET', '/v1/changes', agent).body)
        self.write('pullet.yaml', self.read('pullet.yaml').decode() + '    mask: [a]\n')
        agent.signal(signal.SIGHUP)
        deadline = time.monotonic() + harness.DEADLINE
        while json.loads(agent.get('/v1/status')[1])['configuration']['reloads'] == 0:
            self.assertLess(time.monotonic(), deadline)
        body = self.ask('GET', '/v1/changes', agent).body
        for word in ('alpha', 'beta'):
            self.assertNotIn(word, body)
        self.assertEqual(len(json.loads(body)['publications']), 2)
        agent.stop()

    def test_a_config_that_is_taken_out_is_forgotten(self):
        agent = self.agent(names=('a', 'b'))
        for name in ('a', 'b'):
            agent.log.wait(f'published.*config={name}')
        self.assertEqual({p['config'] for p in self.changes(agent)['publications']}, {'a', 'b'})
        text = self.read('pullet.yaml').decode()
        self.write('pullet.yaml', text[:text.index('  b:\n')])
        agent.signal(signal.SIGHUP)
        deadline = time.monotonic() + harness.DEADLINE
        while len(json.loads(agent.get('/v1/status')[1])['configs']) > 1:
            self.assertLess(time.monotonic(), deadline)
        self.assertEqual({p['config'] for p in self.changes(agent)['publications']}, {'a'})
        self.write('pullet.yaml', text)
        agent.signal(signal.SIGHUP)
        while {p['config'] for p in self.changes(agent)['publications']} != {'a', 'b'}:
            self.assertLess(time.monotonic(), deadline)
        agent.stop()

    def test_bytes_sets_comments_and_what_is_too_long(self):
        self.server.behave = good(b'a: 1\n')
        os.makedirs(self.path('out'))
        with socket.create_server(('127.0.0.1', 0)) as probe:
            self.port = probe.getsockname()[1]
        agent = Agent(self, f'''agent: {{state_dir: {self.path("state")}, runtime_dir: {self.path("run")}, log: {{level: debug}}}}
servers: {{main: {{urls: ["{self.server.url}"]}}}}
configs:
  raw: {{url: "{self.server.url}/raw", type: bytes, file: {self.path("out/raw")}, interval: 1h}}
  set: {{from: [{{server: main, path: /one, as: one.yaml}}, {{server: main, path: /two, as: two.yaml}}], dir: {self.path("out/set")}, interval: 1h}}
  doc: {{url: "{self.server.url}/doc.yaml", interval: 1h}}
''')
        for name in ('raw', 'set', 'doc'):
            agent.log.wait(f'published.*config={name}')
        self.put(agent, 'a: 2\n', 'raw')
        self.put(agent, 'a: 2\n', 'set')
        self.put(agent, 'a: 1 # no other value\n', 'doc')
        newest = {p['config']: p for p in reversed(self.changes(agent)['publications'])}
        self.assertIsNone(newest['raw']['changes'])
        self.assertEqual(newest['set']['changes'], [{'key': 'one.yaml', 'op': 'changed'}, {'key': 'two.yaml', 'op': 'changed'}])
        self.assertEqual(newest['doc']['changes'], [])
        self.put(agent, 'a: 1\nb: "' + 'x' * (1 << 20) + '"\n', 'doc')
        newest = self.changes(agent)['publications'][0]
        self.assertIsNone(newest['changes'])
        self.assertIn('too long', newest['error'])
        agent.stop()

    def test_one_answer_reads_so_much_and_the_next_ones_the_rest(self):
        names = [f'c{i}' for i in range(8)]
        self.server.behave = good(b'b: "' + b'x' * 900000 + b'"\n')
        agent = self.agent(names=names)
        for name in names:
            agent.log.wait(f'published.*config={name}')
        first = self.changes(agent)
        self.assertFalse(first['complete'])
        self.assertLess(len(first['publications']), len(names))
        deadline = time.monotonic() + harness.DEADLINE
        while not (found := self.changes(agent))['complete']:
            self.assertLess(time.monotonic(), deadline)
        self.assertEqual({p['config'] for p in found['publications']}, set(names))
        agent.stop()

    def test_a_damaged_version_is_named(self):
        agent = self.agent()
        agent.log.wait('published')
        self.put(agent, 'n: 2\n')
        self.write('state/web/00000000000000000001', 'damaged')
        newest = self.changes(agent)['publications'][0]
        self.assertEqual(newest['generation'], 2)
        self.assertIsNone(newest['changes'])
        self.assertTrue(newest['error'])
        agent.stop()


class Hostile(HttpCase):
    """Clients that want the agent to stop. Each would be seen without the bound that it tests."""

    LIVE = b'GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n'

    def flood(self, count, data=b''):
        found = []
        for _ in range(count):
            s = socket.socket()
            s.setblocking(False)
            try:
                s.connect(('127.0.0.1', self.port))
            except BlockingIOError:
                pass
            found.append(s)
            self.addCleanup(s.close)
        if data:
            for s in found:
                try:
                    s.send(data)
                except OSError:
                    pass
        return found

    @harness.needs(harness.LOOK)
    def test_many_idle_connections_take_no_descriptors_and_keep_nobody_out(self):
        agent = self.agent()
        agent.log.wait('published')
        self.assertEqual(self.ask('GET', '/livez').status, 200)
        usual = self.descriptors(agent)
        flood = self.flood(300)
        begin = time.monotonic()
        most = 0
        with self.subTest('a new client is served'):
            late = self.raw(self.LIVE)
            while not select.select([late], [], [], 0.01)[0]:
                most = max(most, self.descriptors(agent))
                self.assertLess(time.monotonic() - begin, harness.DEADLINE)
            self.assertTrue(late.recv(4096).startswith(b'HTTP/1.1 200'))
        most = max(most, self.descriptors(agent))  # whoever came before that one has been let in by now, or never was
        self.assertLessEqual(most, usual + 64 + 8)
        self.assertEqual(self.ask('GET', '/v1/status', agent).status, 200, 'the control socket is another matter')
        agent.refresh()
        for s in (*flood, late):
            s.close()
        self.until(lambda: self.descriptors(agent) <= usual + 1, 'the descriptors come back')
        agent.stop()

    @harness.needs(harness.LOOK)
    def test_ten_thousand_connections_one_after_the_other(self):
        agent = self.agent()
        agent.log.wait('published')
        usual = self.descriptors(agent)
        for i in range(10000 if not harness.SANITIZED else 1000):
            with socket.create_connection(('127.0.0.1', self.port)) as s:
                if i % 3 == 0:
                    s.sendall(self.LIVE[:i % len(self.LIVE)])
        self.assertEqual(self.ask('GET', '/livez').status, 200)
        self.until(lambda: self.descriptors(agent) <= usual + 1, 'no descriptor is left')
        agent.stop()

    @harness.needs(harness.LOOK)
    def test_slow_requests_and_answers_that_nobody_reads_end(self):
        agent = self.agent(names=[f'c{i}' for i in range(40)])
        agent.log.wait('published.*config=c39')
        begin = time.monotonic()
        slow = self.raw(b'GET /livez HTTP/1.1\r\nX-Slow: ')
        deaf = socket.socket()
        self.addCleanup(deaf.close)
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        deaf.connect(('127.0.0.1', self.port))
        deaf.sendall(b'GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n' * 100)
        kept = self.raw(self.LIVE)
        self.assertTrue(kept.recv(4096).startswith(b'HTTP/1.1 200'))
        usual = self.descriptors(agent)
        ended = {}
        while len(ended) < 2:
            self.assertLess(time.monotonic() - begin, 30 + harness.DEADLINE)
            if 'slow' not in ended:  # a byte now and then: it is never idle
                try:
                    slow.sendall(b'x')
                    if select.select([slow], [], [], 0.5)[0] and not slow.recv(4096):
                        raise BrokenPipeError
                except OSError:
                    ended['slow'] = time.monotonic() - begin
            if 'deaf' not in ended and self.descriptors(agent) <= usual - 3:
                ended['deaf'] = time.monotonic() - begin
        self.assertGreater(ended['slow'], 29)
        self.assertEqual(kept.recv(4096), b'', 'and one that was only kept alive')
        agent.stop()

    def test_waiting_clients_that_hang_up_make_room(self):
        agent = self.agent()
        agent.log.wait('published')
        wait = b'GET /v1/configs/web/wait?generation=99&timeout_ms=3600000 HTTP/1.1\r\nHost: localhost\r\n\r\n'
        waiting = [self.raw(wait, agent) for _ in range(64)]
        self.until(lambda: self.ask('GET', '/v1/configs/web/wait?generation=99&timeout_ms=1', agent).status == 503, 'all places are taken')
        self.assertEqual(self.ask('GET', '/v1/status', agent).status, 200, 'whoever does not wait is served')
        for s in waiting[:32]:
            s.close()
        for s in waiting[32:]:
            s.shutdown(socket.SHUT_WR)
        self.until(lambda: self.ask('GET', '/v1/configs/web/wait?generation=99&timeout_ms=1', agent).status == 504, 'there is room again')
        agent.stop()

    def test_what_is_sent_while_an_answer_is_awaited_is_not_taken(self):
        agent = self.agent()
        agent.log.wait('published')
        before = self.memory_kb(agent)
        s = self.raw(b'GET /v1/configs/web/wait?generation=99 HTTP/1.1\r\nHost: localhost\r\n\r\n', agent)
        s.setblocking(False)
        sent, block = 0, b'x' * 65536
        while sent < 64 << 20 and select.select([], [s], [], 0.3)[1]:
            sent += s.send(block)
        self.assertLess(sent, 8 << 20)
        self.assertLess(self.memory_kb(agent) - before, 8192)
        s.close()
        agent.stop()

    @staticmethod
    def memory_kb(agent):
        with open(f'/proc/{agent.pid}/status', encoding='ascii') as f:
            return int(re.search(r'VmRSS:\s+(\d+)', f.read())[1])

    def test_what_is_too_long_is_refused(self):
        agent = self.agent()
        agent.log.wait('published')
        head = b'Host: localhost\r\n'
        for request in (b'GET /' + b'a' * 9000 + b' HTTP/1.1\r\n' + head + b'\r\n',
                        b'GET /livez HTTP/1.1\r\n' + head + b'X: ' + b'a' * 9000 + b'\r\n\r\n',
                        b'GET /livez HTTP/1.1\r\n' + head + b''.join(b'X%d: y\r\n' % i for i in range(2000)) + b'\r\n',
                        b'POST /v1/configs/web/pin HTTP/1.1\r\n' + head + b'Content-Length: 5000\r\n\r\n' + b'x' * 5000,
                        b'POST /v1/configs/web/pin HTTP/1.1\r\n' + head + b'Content-Length: 99999999999999999999\r\n\r\n',
                        b'POST /v1/configs/web/pin HTTP/1.1\r\n' + head + b'Transfer-Encoding: chunked\r\n\r\n1388\r\n' + b'x' * 5000 + b'\r\n0\r\n\r\n',
                        b'GET /livez%00 HTTP/1.1\r\n' + head + b'\r\n', b'GET http:// HTTP/1.1\r\n' + head + b'\r\n', b'\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n',
                        b'CONNECT evil.example:80 HTTP/1.1\r\n' + head + b'\r\n', b'GET\r\n\r\n', b' \r\n\r\n', b'GET /livez HTTP/9.9\r\n\r\n'):
            for where in (agent, None):
                s = self.raw(b'', where)
                try:
                    s.sendall(request)
                    s.shutdown(socket.SHUT_WR)
                    data = b''
                    while part := s.recv(65536):
                        data += part
                except OSError:  # it was refused so soon that the end of the request found nobody
                    data = b''
                self.assertNotRegex(data, rb'^HTTP/1\.1 2', request[:80])
        self.assertNotIn('pin', self.ask('GET', '/v1/configs/web').json())
        self.assertEqual(self.ask('GET', '/livez').status, 200)
        agent.stop()

    def test_what_is_sent_while_an_answer_is_not_read_is_not_taken(self):
        """evhttp reads on while it writes; and it looks for the end of a chunk's first line in all that there is of it."""
        agent = self.agent(names=[f'c{i}' for i in range(40)])
        agent.log.wait('published.*config=c39')
        metrics = b'GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n' * 200
        chunk = b'POST /v1/configs/c0/pin HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n'
        bad = b'GET\r\n\r\n'
        for first in (metrics, metrics + bad, chunk):
            before = self.memory_kb(agent)
            s = self.raw(first, agent)
            s.setblocking(False)
            sent = 0
            try:
                while sent < 64 << 20 and select.select([], [s], [], 0.3)[1]:
                    sent += s.send(b'1' * 65536)
            except OSError:  # it was refused
                pass
            self.assertLess(sent, 8 << 20, first[-80:])
            self.assertLess(self.memory_kb(agent) - before, 8192, first[-80:])
            before = self.cpu_s(agent)
            select.select([], [], [], 1.5)  # time itself is what is looked at
            self.assertLess(self.cpu_s(agent) - before, 0.4, f'it does not spin: {first[-80:]}')
            s.close()
        agent.stop()

    def test_who_closes_half_is_answered_whole(self):
        """As `printf ... | nc -N` does: all that was asked for comes, then the end."""
        agent = self.agent(names=[f'c{i:03}' for i in range(150)])
        agent.log.wait('published.*config=c149')
        one = b'GET /%s HTTP/1.1\r\nHost: localhost\r\n\r\n'
        for where in (agent, None):
            s = self.raw(b''.join(one % p for p in (b'livez', b'metrics', b'none', b'v1/status', b'livez')), where)
            s.shutdown(socket.SHUT_WR)
            stream = s.makefile('rb')
            bodies = []
            while line := stream.readline():
                code, length = int(line.split()[1]), 0
                while line := stream.readline().strip():
                    name, value = line.split(b': ', 1)
                    length = int(value) if name == b'Content-Length' else length
                bodies.append((code, stream.read(length)))
                self.assertEqual(len(bodies[-1][1]), length)
            stream.close()
            self.assertEqual([code for code, _ in bodies], [200, 200, 404, 200, 200])
            self.assertGreater(len(bodies[1][1]), 65536)
            self.assertIn(b'c149', bodies[1][1][-65536:])
            self.assertEqual(len(json.loads(bodies[3][1])['configs']), 150)
        agent.stop()

    def test_old_and_odd_requests(self):
        agent = self.agent()
        agent.log.wait('published')
        head = b'Host: localhost\r\n'
        ok, text = rb'^HTTP/1\.1 200 [^\0]*\r\n\r\nok\n', b'text'
        for request, expected in (
                (b'GET /livez HTTP/1.0\r\n' + head + b'\r\n', rb'^HTTP/1\.0 200 [^\0]*\r\n\r\nok\n$'),
                (b'GET /livez HTTP/1.0\r\n' + head + b'Connection: keep-alive\r\n\r\n' + b'GET /livez HTTP/1.0\r\n' + head + b'\r\n', rb'^HTTP/1\.0 200 [^\0]*\nok\nHTTP/1\.0 200 [^\0]*\nok\n$'),
                (b'GET /livez HTTP/1.1\n' + head + b'Connection: close\n\n', ok + rb'$'),
                (b'GET /livez HTTP/1.1\r\n' + head + b'Content-Length: 4\r\n\r\n' + text + b'GET /livez HTTP/1.0\r\n' + head + b'\r\n', ok + rb'HTTP/1\.0 200 [^\0]*\nok\n$'),
                (b'POST /v1/status HTTP/1.1\r\n' + head + b'Expect: 100-continue\r\nConnection: close\r\nContent-Length: 4\r\n\r\n' + text, rb'405 Method Not Allowed'),
                (b'POST /v1/status HTTP/1.1\r\n' + head + b'Expect: more\r\nContent-Length: 4\r\n\r\n', rb'^HTTP/1\.1 417 '),
                (b'POST /v1/status HTTP/1.1\r\n' + head + b'Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n' + b'1\r\nx\r\n' * 4000 + b'0\r\n\r\n', rb'^HTTP/1\.1 405 '),
                (b'HEAD /%00 HTTP/1.1\r\n' + head + b'\r\n', rb'^HTTP/1\.1 400 [^\0]*\r\n\r\n$'),
                (b'GET /v1/configs/web/explain?key=a%00b HTTP/1.1\r\n' + head + b'\r\n', rb'^HTTP/1\.1 400 [^\0]*\r\n\r\n\{"error":"[^"]*"\}\n$'),
                (b'GET /live%zz HTTP/1.1\r\n' + head + b'Connection: close\r\n\r\n', rb'^HTTP/1\.1 404 '),
                (b'BREW /livez HTTP/1.1\r\n' + head + b'Content-Length: 4\r\n\r\n' + text, rb'^HTTP/1\.1 405 [^\0]*Connection: close\r\n[^\0]*\r\n\r\n\{[^\n]*\}\n$')):
            for where in (agent, None):
                s = self.raw(request, where)
                data = b''
                while part := s.recv(65536):
                    data += part
                self.assertRegex(data, expected, request)
        agent.stop()

    def test_who_waits_wakes_nobody(self):
        agent = self.agent()
        agent.log.wait('published')
        s = self.raw(b'GET /v1/configs/web/wait?generation=99 HTTP/1.1\r\nHost: localhost\r\n\r\n', agent)

        def switches():
            with open(f'/proc/{agent.pid}/status', encoding='ascii') as f:
                return int(re.search(r'\nvoluntary_ctxt_switches:\s+(\d+)', f.read())[1])
        self.assertEqual(self.ask('GET', '/livez', agent).status, 200)

        def quiet():
            before = switches()
            select.select([], [], [], 2)  # time itself is what is looked at
            return switches() == before
        self.until(quiet, 'two seconds without a wake-up')
        s.close()
        agent.stop()

    def test_pipelined_requests_are_answered_in_their_order(self):
        agent = self.agent()
        agent.log.wait('published')
        s = self.raw(b''.join(b'GET /%s HTTP/1.1\r\nHost: localhost\r\n\r\n' % p for p in (b'livez', b'none', b'readyz', b'page.css') * 50))
        connection = s.makefile('rb')
        codes = []
        for _ in range(200):
            codes.append(int(connection.readline().split()[1]))
            length = 0
            while line := connection.readline().strip():
                name, value = line.split(b': ', 1)
                length = int(value) if name == b'Content-Length' else length
            connection.read(length)
        connection.close()
        self.assertEqual(codes, [200, 404, 200, 200] * 50)
        agent.stop()

    @harness.needs(harness.LOOK)
    def test_without_descriptors_nothing_spins(self):
        agent = self.agent()
        agent.log.wait('published')
        usual = self.descriptors(agent)
        _, hard = resource.prlimit(agent.pid, resource.RLIMIT_NOFILE)
        old = resource.prlimit(agent.pid, resource.RLIMIT_NOFILE, (usual + 8, hard))
        before = self.cpu_s(agent)
        flood = self.flood(40)
        self.until(lambda: self.descriptors(agent) >= usual + 4, 'there are none left')
        quiet = time.monotonic() + 1.5
        self.until(lambda: time.monotonic() > quiet, 'time passes, which is what is measured')
        self.assertLess(self.cpu_s(agent) - before, 0.8 if not harness.SANITIZED else 1.4)
        for s in flood:
            s.close()
        resource.prlimit(agent.pid, resource.RLIMIT_NOFILE, old)
        self.assertEqual(self.ask('GET', '/livez').status, 200)
        self.assertFalse([line for line in agent.log.seen if 'accept' in line])
        agent.stop()

    @staticmethod
    def cpu_s(agent):
        with open(f'/proc/{agent.pid}/stat', encoding='ascii') as f:
            fields = f.read().rsplit(')', 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')

    def test_answers_that_nobody_reads_are_bounded(self):
        names = [f'config-{i:057}' for i in range(800)]  # as long as names may be
        agent = self.agent(names=names)
        agent.log.wait(f'published.*config={names[-1]}')  # reads what it says meanwhile: a full pipe would hold it
        self.until(lambda: self.ask('GET', '/readyz', agent).status == 200, 'all are published')
        size = len(self.ask('GET', '/metrics', agent).body)
        before = self.memory_kb(agent)
        deaf = [self.raw(b'GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n', agent) for _ in range(120)]
        self.assertGreater(size * len(deaf), 90 << 20)
        self.until(lambda: all(select.select([s], [], [], 0)[0] for s in deaf), 'each has an answer')
        refused = sum(s.recv(12).endswith(b'503') for s in deaf)
        self.assertGreater(refused, 10)
        self.assertLess(refused, len(deaf) - 40)
        self.assertLess(self.memory_kb(agent) - before, (150 if not harness.SANITIZED else 600) << 10)
        for s in deaf:
            s.close()
        self.until(lambda: self.ask('GET', '/metrics', agent).status == 200, 'it is over')
        agent.stop()


class Socket(HttpCase):
    """The control socket while somebody tidies up around it."""

    BACK = 'the control socket was removed: recreated'
    NO_SNAPSHOT = '    file: {}\n    snapshot: false\n'  # it would come back at once, while its directory is removed

    def answers(self, agent):
        self.assertEqual(self.ask('GET', '/livez', agent).status, 200)

    def back(self, agent, start):
        agent.log.wait(self.BACK, start=start)
        self.answers(agent)
        self.assertEqual(os.stat(agent.socket).st_mode & 0o777, 0o660)
        self.assertEqual(len([line for line in agent.log.seen[start:] if 'control socket' in line]), 1, agent.log.seen[start:])

    @harness.needs(harness.LOOK)
    def test_it_comes_back(self):
        agent = self.agent(more=self.NO_SNAPSHOT.format(self.path('web.yaml')))
        agent.log.wait('published')
        usual = self.descriptors(agent)
        held = self.raw(b'GET /v1/configs/web/wait?generation=2 HTTP/1.1\r\nHost: localhost\r\n\r\n', agent)

        def everything():
            for name in os.listdir(self.path('run')):
                os.unlink(self.path('run/' + name))
        for remove in (lambda: os.unlink(agent.socket), lambda: os.rename(agent.socket, self.path('elsewhere')), everything,
                       lambda: os.unlink(agent.socket), lambda: shutil.rmtree(self.path('run')), lambda: os.unlink(agent.socket)):
            seen = agent.log.count
            remove()
            self.back(agent, seen)
        self.until(lambda: self.descriptors(agent) <= usual + 1, 'the old ones are closed')
        self.server.behave = good(b'a: 2\n')
        agent.refresh()
        self.assertTrue(held.recv(4096).startswith(b'HTTP/1.1 200'), 'who was connected stays so')
        held.close()
        agent.stop()
        self.assertFalse(os.path.exists(agent.socket))

    def test_where_inotify_does_not_tell_the_next_pull_sees_it(self):
        agent = self.agent(more='    timeout: 1s\n')
        agent.log.wait('published')
        os.rename(self.path('run'), self.path('aside'))  # nothing is removed in it
        seen = agent.log.count
        text = self.read('pullet.yaml').decode().replace('interval: 1h', 'interval: 1s')
        self.write('pullet.yaml', text)
        agent.signal(signal.SIGHUP)
        self.back(agent, seen)
        agent.stop()

    def test_what_keeps_it_away_is_told_once_and_tried_again(self):
        agent = self.agent(more=self.NO_SNAPSHOT.format(self.path('web.yaml')))
        agent.log.wait('published')
        seen = agent.log.count
        os.rename(self.path('run'), self.path('aside'))
        self.write('run', 'a file')
        os.unlink(self.path('aside/control.sock'))
        line = agent.log.wait('the control socket is gone', start=seen)
        self.assertIn('Not a directory', line)
        select.select([], [], [], 3.5)  # it is tried after 1 and 3 s: time itself is what is looked at
        os.unlink(self.path('run'))
        agent.log.wait(self.BACK, start=seen)
        self.answers(agent)
        self.assertEqual(len([line for line in agent.log.seen[seen:] if 'control socket is gone' in line]), 1)
        agent.stop()

    def test_it_is_not_taken_from_somebody_else(self):
        agent = self.agent()
        agent.log.wait('published')
        seen = agent.log.count
        with socket.socket(socket.AF_UNIX) as other:
            os.unlink(agent.socket)
            other.bind(agent.socket)
            other.listen()
            line = agent.log.wait('the control socket is gone', start=seen)
            self.assertIn('another program has it', line)
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(agent.socket)
                other.settimeout(harness.DEADLINE)
                for _ in range(10):  # the agent looked as well, and went away
                    accepted, _ = other.accept()
                    with accepted:
                        client.send(b'x')
                        if accepted.recv(1):
                            break
                else:
                    self.fail('somebody else has the socket')
        agent.log.wait(self.BACK, start=seen)  # nobody listens there any more
        self.answers(agent)
        seen = agent.log.count
        with socket.socket(socket.AF_UNIX) as other:
            os.unlink(agent.socket)
            other.bind(agent.socket)
            other.listen()
            agent.log.wait('the control socket is gone', start=seen)
            inode = os.stat(agent.socket).st_ino
            agent.stop()
            self.assertEqual(os.stat(agent.socket).st_ino, inode, 'nor removed at the end')

    def test_a_start_does_not_wait_for_whoever_hangs(self):
        with socket.socket(socket.AF_UNIX) as other:
            os.makedirs(self.path('run'))
            other.bind(self.path('run/control.sock'))
            other.listen(0)
            line = []
            try:
                for _ in range(1000):  # until its line is full
                    s = socket.socket(socket.AF_UNIX)
                    self.addCleanup(s.close)
                    s.setblocking(False)
                    s.connect(self.path('run/control.sock'))
                    line.append(s)
            except BlockingIOError:
                pass
            self.assertLess(len(line), 1000)
            agent = self.agent()
            agent.log.wait('cannot serve the control API.*another program has it')
            self.assertEqual(agent.wait(), 1)


if __name__ == '__main__':
    harness.main()
