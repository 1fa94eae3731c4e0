"""Secrets are planted wherever an agent gets one, and looked for wherever it writes: who may see what is the table WHO SEES WHAT of pulletd(8).

Each secret is of a kind, a row of that table; each place where something is written belongs to an audience, a column. A secret in a place whose
audience may not see it fails the test; so does a row that says "yes" where nothing was seen, for then the test looked at nothing. Marks are
found as they are, in base64, in hexadecimal, and cut. Servers, users' programs and documents are hostile: they say again what they know.
"""
import base64
import collections
import contextlib
import http.client
import json
import os
import re
import secrets
import signal
import socket
import subprocess
import tempfile
import urllib.parse

import attack
import etcd
import harness
import terminal
import zmq
from harness import PULLET, PULLETD, Agent, FaultServer
from test_change import Hook, Origin
from test_push import Publisher
from test_rights import WHO, endpoints

READER = WHO['READER']
PLACES = ('http', 'basic', 'store', 'consul', 'nacos', 'apollo', 'spring', 'bucket')
MARK = re.compile(rb'Planted-(\d{3})-')
MAY_ACT_ON_A_TERMINAL = re.compile('[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\udc80-\udcff]')


def pieces(raw):
    """How these bytes may be written: as they are, in hexadecimal, in base64 whatever is before and behind."""
    yield raw
    yield raw.hex().encode()
    for before in range(3):
        text = base64.b64encode(b'x' * before + raw)
        yield text[4 if before else 0:(before + len(raw)) // 3 * 4]


MARKS = tuple(pieces(b'Planted-'))


def who_sees_what():
    """{row: {column: bool}} of the table in pulletd(8)."""
    with open(os.path.join(harness.ROOT, 'agent', 'pulletd.8'), encoding='utf-8') as f:
        section = f.read().split('.Sh WHO SEES WHAT')[1].split('\n.Sh ')[0]
    head, *rows = section.split('.Bd -literal\n')[1].split('\n.Ed')[0].splitlines()
    columns = head.split()[1:]
    return {row[:19].strip(): {column: word == 'yes' for column, word in zip(columns, row[19:].split(), strict=True)} for row in rows}


class Secrets:
    """What was planted, of which kind, and where it was seen."""

    def __init__(self, test):
        self.test, self.planted, self.table, self.seen = test, {}, who_sees_what(), collections.defaultdict(set)
        self.never = []  # what cannot be marked, and is nowhere to be seen
        self.texts, self.shapes, self.numbers = collections.defaultdict(dict), {}, {}

    def plant(self, what, kind):
        assert what not in self.planted and kind in self.table, (what, kind)
        text = f'Planted-{len(self.planted):03}-' + secrets.token_hex(12)
        self.numbers[text[8:11].encode()] = what
        self.planted[what] = text, kind
        self.shapes[what] = tuple(pieces(text[:18].encode()))  # with six of its digits: what is cut is found
        return text

    def __getitem__(self, what):
        return self.planted[what][0]

    def adopt(self, raw, kind):
        """Bytes that are as they are, such as those of a key; nobody may see them."""
        assert len(raw) >= 16 and not any(self.table[kind].values())
        self.never += pieces(raw[:16])

    def look(self, column, where, text):
        """Remembers what was written there; a text that was there before is not looked at again."""
        text = text if isinstance(text, bytes) else text.encode('utf-8', 'surrogateescape')
        self.test.assertFalse(any(never in text for never in self.never), where)
        if any(mark in text for mark in MARKS):
            self.texts[column].setdefault(text, where)

    def near(self, text):
        """Those that may be in it: as they are, or, where a mark is there in another form, all."""
        if any(mark in text for mark in MARKS[1:]):
            return list(self.planted)
        return {what for what in map(self.numbers.get, MARK.findall(text)) if what}

    def check(self, *rows):
        """Whoever must not see something has not, and of these rows whoever may has."""
        found = []
        for column, texts in self.texts.items():
            for text, where in texts.items():
                for what in self.near(text):
                    kind = self.planted[what][1]
                    at = next((at for at in map(text.find, self.shapes[what]) if at >= 0), -1)
                    if at < 0:
                        continue
                    self.seen[kind, column].add(what)
                    if not self.table[kind][column]:
                        found.append(f'{what} ({kind}) is seen by {column} in {where}: ...{text[max(0, at - 160):at + 60]!r}')
        self.test.assertEqual(found, [], '\n'.join(found[:20]))
        for row in rows:
            for column, may in self.table[row].items():
                self.test.assertTrue(self.seen[row, column] or not may, f'{column} may see {row}, and this test has shown none there')


# by which a page could ask somebody, or keep what it was told; it asks by fetch() in one function, and for what stands there
OTHER_WAYS = re.compile(r'XMLHttpRequest|Socket|EventSource|sendBeacon|Worker|import\b|[sS]torage|indexedDB|cookie|caches|postMessage|location|open\(|write|eval|Function\(|HTML|\.(?:src|href)\b'
                        r"|setAttribute\((?!'aria-|name, value)|url\(|@import")
ELEMENTS = re.compile(r'http-equiv|<(?:form|iframe|object|embed|base|img|video|audio|frame)\b|\son\w+=')


def asked_by_the_page(test, answers):
    """The paths that a browser asks for when it has got the page: what that loads, links to, and what its script asks for."""
    asked = set()
    for path in ('/', '/page.css', '/page.js', '/detail.js'):
        text = answers.get(path, '\n\n').split('\n\n', 1)[1]
        test.assertIsNone((ELEMENTS if path == '/' else OTHER_WAYS).search(text), path)
        calls = re.findall(r'(?<!function )\bgetJson\(([^)]*)\)', text)
        of_config = [call for call in calls if call.startswith('`')]  # below the path of the config that is shown
        test.assertTrue(all(re.fullmatch(r"'[\w/]+'|`v1/configs/\$\{name\}(/\w+)?(\?[\w=&$.{}]+)?`", call) for call in calls), calls)
        test.assertLessEqual({'GET /' + call.strip('`').split('?')[0].replace('${name}', 'NAME') for call in of_config}, {' '.join(e.split()) for e in endpoints()})
        test.assertEqual(re.findall(r'fetch\(([^,]*),', text), ['path'] if path == '/page.js' and calls else [])
        test.assertEqual(re.findall(r"'href', (?!`#)", text), [], 'links lead to places of the page')
        asked |= {call.strip("'") for call in set(calls) - set(of_config)}
        asked |= {link for link in re.findall(r'\b(?:href|src|srcset|action)="([^"]*)"', text) if path == '/' and link[:1] != '#' and link != 'data:,'}
    return {'/' + path for path in asked}


class Notified:
    """The socket of a service manager."""

    def __init__(self, test):
        self.socket, self.path, self.heard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM), test.path('notify'), []
        self.socket.bind(self.path)
        self.socket.setblocking(False)
        test.addCleanup(self.socket.close)

    def read(self):
        with contextlib.suppress(BlockingIOError):
            while True:
                self.heard.append(self.socket.recv(65536))
        return b'\n'.join(self.heard)


@attack.needs_users
class Case(harness.Case):
    """One agent with a TCP listener; looks at it as each audience does."""

    def setUp(self):
        super().setUp()
        os.chmod(self.dir, 0o755)
        self.secrets, self.notified = Secrets(self), Notified(self)
        self.port = etcd.free_ports(1)[0]
        self.pullet = harness.for_anybody(self, PULLET)
        os.makedirs(self.path('out'), exist_ok=True)

    def plant(self, what, kind='credential'):
        return self.secrets.plant(what, kind)

    def file(self, what, kind='credential', text=None):
        name = what.replace(' ', '-')
        self.write(name, (text or self.plant(what, kind)) + '\n')
        os.chmod(self.path(name), 0o600)
        return self.path(name)

    def of_agent(self):
        return {'state_dir': self.path('state'), 'runtime_dir': self.path('run'), 'log': {'level': 'debug'}, 'listen': f'127.0.0.1:{self.port}'}

    def start(self, text, env=()):
        self.agent = Agent(self, text, env={'NOTIFY_SOCKET': self.notified.path, **dict(env)})
        self.agent.ready()
        os.chown(self.path('run'), -1, attack.READERS)  # as the package has it
        os.chmod(self.path('run'), 0o750)
        os.chown(self.agent.socket, -1, attack.READERS)
        os.chmod(self.agent.socket, 0o660)

    def names(self):
        return [config['name'] for config in json.loads(self.agent.get('/v1/status')[1])['configs']]

    def refresh(self, name, force=False):
        path = f'/v1/configs/{name}/refresh?wait=1&timeout_ms={harness.DEADLINE * 1000}' + ('&force=1' if force else '')
        status, answer = self.agent.post(path)
        self.assertEqual(status, 200, answer)
        self.secrets.look('OPERATOR', f'the answer to a refresh of {name}', answer)
        return json.loads(answer)

    # -- who looks

    def top(self, user):
        """What `pullet top` writes to a terminal."""
        t = terminal.Terminal(self, [*(attack.as_user(*user) if user else ()), self.pullet, 'top', '--socket', self.agent.socket, '-n', '1'], 2000, 60)
        self.assertEqual(t.end(), 0, t.raw)
        return terminal.SEQUENCE.sub(lambda m: '' if m[2] or m[0] == '\r' else m[0], t.raw)

    KEYS = SHOWN = ()  # keys that are explained, configs that the commands show

    def paths(self, versions=True):
        """All that can be asked for by GET, but what waits; perhaps without what is said of versions, one by one."""
        for method, path in map(str.split, endpoints()):
            if method == 'GET' and not path.endswith('/wait') and (versions or not path.endswith(('/history', '/diff', '/explain'))):
                for name in self.names() if '/NAME' in path else ('',):
                    at = path.replace('NAME', name)
                    yield at
                    yield from (f'{at}?key={key}' for key in self.KEYS if path.endswith('/explain'))
                    yield from (f'{at}?held=1' for _ in range(path.endswith('/diff')))
        yield '/readyz?verbose'

    @staticmethod
    def answers(connect, paths, method='GET'):
        found = {}
        for path in paths:
            connection = connect()
            connection.request(method, path)
            answer = connection.getresponse()
            found[path] = f'{answer.status} {answer.headers}\n' + answer.read().decode('utf-8', 'surrogateescape')
            connection.close()
        return found

    def over_tcp(self, paths):
        return self.answers(lambda: http.client.HTTPConnection('127.0.0.1', self.port, timeout=harness.DEADLINE), paths)

    def over_socket(self, paths):
        return self.answers(lambda: harness.UnixConnection(self.agent.socket), paths)

    def as_reader(self, paths):
        with tempfile.TemporaryFile('w+') as room:
            def ask():
                json.dump(self.over_socket(paths), room)
                room.flush()
            _, error = attack.tried(READER[0], ask, *READER[1:])
            self.assertIsNone(error)
            room.seek(0)
            return json.load(room)

    def commands(self):
        yield from (('status', '--all'), ('status', '--json'), ('status', '--ready'))
        for name in self.SHOWN:
            yield from (('status', name), ('history', name), ('diff', name), ('explain', name))
            yield from (('explain', name, key) for key in self.KEYS)

    def look(self, stage, commands=True, paths=()):
        """Everything that somebody may look at."""
        paths = paths or list(self.paths(versions=commands))
        for column, ask in (('TCP', self.over_tcp), ('READER', self.as_reader), ('OPERATOR', self.over_socket)):
            answers = ask(paths)
            self.assertLessEqual(asked_by_the_page(self, answers), answers.keys(), 'the page asks for what this test does not look at')
            for path, text in answers.items():
                self.secrets.look(column, f'{path} ({stage})', text)
                head, body = text.split('\n\n', 1)
                self.assertIn('Cache-Control: no-store', head, f'a browser would keep {path}')
                self.assertIsNone(MAY_ACT_ON_A_TERMINAL.search(body), (stage, path, body[:2000]))
        for path, text in self.answers(lambda: http.client.HTTPConnection('127.0.0.1', self.port, timeout=harness.DEADLINE),
                                       [path.replace('NAME', self.names()[0]) for method, path in map(str.split, endpoints()) if method == 'POST'], 'POST').items():
            self.secrets.look('TCP', f'POST {path} ({stage})', text)
        for args in self.commands() if commands else ():
            for column, user in (('READER', READER), ('OPERATOR', None)):
                _, out, err = attack.run(self.pullet, args[0], '--socket', self.agent.socket, *args[1:], user=user)
                self.secrets.look(column, f'pullet {" ".join(args)} ({stage})', out + err)
                self.assertIsNone(MAY_ACT_ON_A_TERMINAL.search(out + err), (stage, args, out, err))
        for column, user in (('READER', READER), ('OPERATOR', None)) if commands else ():
            screen = self.top(user)
            self.secrets.look(column, f'pullet top ({stage})', screen)
            self.assertIsNone(MAY_ACT_ON_A_TERMINAL.search(screen), (stage, screen))
        with open(f'/proc/{self.agent.pid}/cmdline', 'rb') as f:
            self.secrets.look('HOOK', 'the command line of the agent', f.read())
        self.secrets.look('RECEIPT', f'what the service manager hears ({stage})', self.notified.read())

    def tree(self, column, root, be=None):
        """All files below it; nobody else may read them where `be` says so. Returns their names."""
        names = set()
        for base, _, files in os.walk(self.path(root)):
            for name in files:
                path = os.path.join(base, name)
                if os.path.isfile(path) and not os.path.islink(path):
                    names.add(os.path.relpath(path, self.path(root)))
                    with open(path, 'rb') as f:
                        self.secrets.look(column, path, f.read())
        self.assertTrue(names, root)
        if be is not None:
            self.assertEqual(os.stat(self.path(root)).st_mode & 0o777, be)
        return names

    def look_at_files(self):
        self.tree('STATE', 'state', 0o700)
        self.tree('SNAPSHOT', 'run')
        for name in self.tree('FILE', 'out'):
            self.assertNotIn('pullet-', name, 'a temporary file was left')

    def end(self, *rows):
        self.look_at_files()
        self.agent.stop()
        log = '\n'.join(self.agent.log.seen)
        self.secrets.look('LOG', 'the log', log)
        self.assertIsNone(MAY_ACT_ON_A_TERMINAL.search(log))
        self.assertNotIn('\ufffd', log, 'a byte that is no character')
        self.look_at_files()
        self.secrets.check(*rows)


class Echo(FaultServer):
    """Answers with what it was asked, in the way that is its mood: in the status line, headers, body; as a redirect; as a document that is bad."""

    moods = ('document', 'error', 'redirect', 'not-yaml', 'unauthorized', 'odd-header', 'digest', 'cut', 'json')

    def __init__(self, test):
        super().__init__(test)
        self.mood, self.heard, self.plant = 'document', '', test.plant
        self.masked, self.userinfo, self.query = test.plant('masked value', 'masked'), test.plant('userinfo of a redirect'), test.plant('query of a redirect', 'query')
        self.tokens = {'/v3/auth/authenticate': ('token', test.plant('login token of etcd')), '/auth/login': ('accessToken', test.plant('login token of Nacos'))}

    def _serve(self, connection):
        try:
            self._answer(connection, attack.request(connection).decode())
        except OSError:
            pass
        finally:
            with self.lock:
                self.open.discard(connection)
            connection.close()

    def _answer(self, connection, heard):
        self.requests += 1
        self.heard += heard
        everything = re.sub(r'[^ -~]', ' ', heard)
        login = next((token for path, token in self.tokens.items() if path in heard.split('\n')[0]), None)
        answers = {
            'document': ('200 OK', '', f'n: {self.requests}\nmasked: {self.masked}\n'),
            'error': (f'500 {everything}', f'X-Echo: {everything}\r\n', everything),
            'redirect': ('302 Found', f'Location: http://user:{self.userinfo}@127.0.0.1:{self.port}/?q={self.query}{everything.replace(" ", "")}\r\n', everything),
            'not-yaml': ('200 OK', '', f'a: [{everything}\nb: \t@\n'),
            'unauthorized': (f'401 {everything}', f'WWW-Authenticate: Bearer error="{everything}"\r\n', everything),
            'odd-header': ('200 OK', f'Content-Encoding: {everything}\r\nETag: {everything}\r\nDigest: {everything}\r\n', 'n: 2\n'),
            'digest': ('200 OK', f'Content-Digest: sha-256=:{"A" * 43}=:\r\nLast-Modified: {everything}\r\n', f'n: {self.requests}\n'),
            'cut': ('200 OK', 'Content-Length: 99999\r\n', everything),
            'json': ('400 Bad Request', 'Content-Type: application/json\r\n', json.dumps({'error': everything, 'message': everything, 'code': 3})),
        }
        status, headers, text = answers[self.mood]
        if login and status[:3] == '200':
            status, headers, text = '200 OK', '', json.dumps({login[0]: login[1], 'tokenTtl': 18000})
        if self.mood != 'cut' or login:
            headers += f'Content-Length: {len(text)}\r\n'
        connection.sendall(f'HTTP/1.1 {status}\r\n{headers}Connection: close\r\n\r\n{text}'.encode())


class Servers(Case):
    """What the agent sends to servers, to all kinds of them, and what they say."""
    KEYS, SHOWN = ('n', 'masked'), ('http', 'two')

    def setUp(self):
        super().setUp()
        self.server = Echo(self)

    def settings(self):
        url, plant, file = self.server.url, self.plant, self.file
        keys = zmq.curve_keypair()
        self.publisher = Publisher(self)
        self.hook, self.check = Hook(self, 'hook'), Hook(self, 'check')
        for program in (self.hook, self.check):
            program.do(f'(env; cat /proc/$$/cmdline) >>{self.path("seen")}; exit 0')
        watch = {'watch': True}
        servers = {
            'http': {'auth': {'bearer_file': file('token'), 'headers': {'X-Text': plant('header'), 'X-File': {'file': file('header file')}}}},
            'basic': {'auth': {'basic': {'user': 'someone', 'password_file': file('password')}}},
            'store': {'kind': 'etcd', **watch, 'auth': {'basic': {'user': 'root', 'password_file': file('etcd password')}}},
            'consul': {'kind': 'consul', **watch, 'auth': {'bearer_file': file('consul token')}},
            'nacos': {'kind': 'nacos', **watch, 'auth': {'basic': {'user': 'nacos', 'password_file': file('nacos password')}}},
            'apollo': {'kind': 'apollo', **watch, 'auth': {'access_key': {'secret_file': file('apollo secret')}}},
            'spring': {'kind': 'spring', 'auth': {'basic': {'user': 'spring', 'password_file': file('spring password')}}},
            'bucket': {'kind': 's3', 'auth': {'access_key': {'id': 'AKIDEXAMPLE', 'secret_file': file('s3 secret'),
                                                             'session_token_file': file('session token')}}},
        }
        key = file('TLS key', text='-----BEGIN PRIVATE KEY-----\n' + base64.b64encode(plant('key of TLS').encode()).decode() + '\n-----END PRIVATE KEY-----')
        pair = {'cert': file('certificate', text='no certificate ' + plant('words in a certificate')), 'key': key}
        paths = {'http': '/a.yaml', 'basic': '/a.yaml?sig=' + plant('query of a path', 'query'), 'store': '/a', 'consul': '/a', 'nacos': '/g/a',
                 'apollo': '/a/c/n', 'spring': '/a/p', 'bucket': '/b/a.yaml'}
        programs = {'check': [self.check.path, '{path}'], 'reload': {'run': [self.hook.path], 'debounce': '0s'},
                    'probe': {'run': [self.check.path], 'for': '200ms', 'every': '100ms'}}
        common = {'interval': '1h', 'timeout': '5s', 'mask': ['masked']}
        configs = {name: {'from': [{'server': name, 'path': paths[name]}], 'file': self.path('out/' + name), **common} for name in PLACES}
        configs['url'] = {'url': url + '/u.yaml?token=' + plant('query of a url', 'query'), 'file': self.path('out/url'), **common}
        configs['http'] |= programs
        configs['two'] = {'from': [{'server': 'basic', 'path': paths['basic'].replace('a.yaml', 'x.yaml')}, {'server': 'http', 'path': '/y.yaml'}],
                          'file': self.path('out/two'), **common}
        configs['tls'] = {'from': [{'server': 'tls', 'path': '/t.yaml'}], 'file': self.path('out/tls'), **common}
        return {
            'agent': self.of_agent(),
            'servers': {**{name: {'urls': [url], **server} for name, server in servers.items()},
                        'tls': {'urls': [url.replace('http:', 'https:')], 'tls': pair}},
            'push': [{'endpoint': self.publisher.endpoint,
                      'curve': {'server_key': keys[0].decode(), 'secret_key_file': self.file('key of CURVE', text=self.curve_key(keys[1].decode()))}}],
            'report': {'server': 'store', 'host': 'here'}, 'configs': configs}

    def curve_key(self, key):
        """A key is what it is: its beginning is the mark."""
        self.secrets.adopt(key.encode(), 'credential')
        return key

    def look_at_bad_configurations(self):
        """What is wrong is told without what is there."""
        good = self.read('pullet.yaml').decode()
        bad = {
            'a wrong key': lambda: good.replace('"urls"', '"urlz"', 1),
            'userinfo': lambda: good.replace(self.server.url + '/u.yaml', f'http://u:{self.plant("userinfo")}@h/'),
            'userinfo of a server': lambda: good.replace(self.server.url + '"', f'http://u:{self.plant("userinfo of a server")}@h/"', 1),
            'a header with controls': lambda: good.replace(self.secrets['header'], self.plant('header with controls') + '\\u0007'),
            'a tag for a header': lambda: good.replace(f'"{self.secrets["header"]}"', '!' + self.plant('header that is a tag') + ' x'),
            'an alias for a header': lambda: good.replace(f'"{self.secrets["header"]}"', '*' + self.plant('header that is an alias')),
            'a quote that is open': lambda: good.replace(f'"{self.secrets["header"]}"', f'"{self.plant("header in open quotes")}'),
            'a list of headers': lambda: good.replace(f'"{self.secrets["header"]}"', f'[{self.plant("header in a list")}]'),
            'a bad path': lambda: good.replace('"/a.yaml?sig=', f'"a.yaml?sig={self.plant("query of a bad path", "query")}'),
            'a token in place of its file': lambda: good.replace(self.path('token'), self.plant('token in place of its file')),
        }
        for what, change in bad.items():
            at = self.agent.log.count
            self.write('pullet.yaml', change())
            self.agent.signal(signal.SIGHUP)
            self.agent.log.wait('nothing was changed', at)
            done = subprocess.run([PULLETD, '-t', '-c', self.agent.config_path], capture_output=True, text=True, timeout=harness.DEADLINE, check=False)
            self.assertEqual(done.returncode, 78, what)
            self.secrets.look('OPERATOR', f'pulletd -t, {what}', done.stdout + done.stderr)
            self.look(f'the configuration has {what}', False, ['/v1/status', '/readyz?verbose', '/metrics'])
        self.write('pullet.yaml', good)

    def test_requests_and_answers(self):
        settings = json.dumps(self.settings())
        env = {name: f'http://user:{self.plant("userinfo in " + name)}@127.0.0.1:9' for name in ('http_proxy', 'HTTPS_PROXY', 'ALL_PROXY')}
        self.start(settings, {**env, 'SOME_TOKEN': self.plant('environment')})
        self.hook.next()
        for mood in Echo.moods:
            self.server.mood = mood
            for name in self.names():
                self.refresh(name)
            self.look(mood, commands=mood in ('document', 'odd-header'))
        for what in ('token', 'header', 'header file', 'consul token', 'session token', 'query of a url', 'query of a path', 'etcd password',
                     'nacos password', 'login token of etcd', 'login token of Nacos'):
            self.assertIn(self.secrets[what], self.server.heard, f'the server did not get the {what}: this test proves nothing about it')
        for user, what in (('someone', 'password'), ('spring', 'spring password')):
            self.assertIn(base64.b64encode(f'{user}:{self.secrets[what]}'.encode()).decode(), self.server.heard, what)
        done = attack.run(PULLET, 'doctor', '-c', self.agent.config_path)
        self.secrets.look('OPERATOR', 'pullet doctor', done[1] + done[2])
        for what in ('token', 'password', 's3-secret', 'header-file'):  # which are not good, and are named and not shown
            self.write(what, f'{self.plant("bad " + what)}\n{self.plant("second line of " + what)}\n')
            os.chmod(self.path(what), 0o600)
        for name in ('http', 'basic', 'bucket'):
            self.assertIn('second line', json.dumps(self.refresh(name)))
        self.look('bad files')
        self.look_at_bad_configurations()
        self.secrets.look('HOOK', 'the environment and command lines of programs', self.read('seen'))
        self.assertGreaterEqual(len(self.secrets.planted), 40)
        self.end('query')

    def test_no_core_is_dumped(self):
        """And nobody but root may look into the process: /proc then says that its files are root's."""
        self.start(json.dumps({'agent': self.of_agent(), 'configs': {'web': {'url': self.server.url + '/a.yaml', 'file': self.path('out/web')}}}))
        limits = attack.run('prlimit', f'--pid={self.agent.pid}', '--core=unlimited')
        self.assertEqual(limits[0], 0, limits)
        self.agent.signal(signal.SIGSEGV)
        self.assertFalse(os.WCOREDUMP(os.waitpid(self.agent.pid, 0)[1]))
        place = self.path('of-others')
        os.makedirs(place)
        os.chmod(place, 0o777)
        self.write('of-others/pullet.yaml', json.dumps({'agent': {'state_dir': place + '/state', 'runtime_dir': place + '/run'},
                                                        'configs': {'web': {'url': self.server.url + '/a.yaml', 'file': place + '/web'}}}))
        control = subprocess.Popen(['sleep', '1000'], user=attack.AGENT)
        agent = subprocess.Popen([harness.for_anybody(self, PULLETD), '-c', place + '/pullet.yaml'], user=attack.AGENT, stderr=subprocess.PIPE)
        try:
            harness.Lines(agent.stderr).wait('started')
            self.assertNotEqual(os.stat(f'/proc/{control.pid}/environ').st_uid, 0)
            self.assertEqual(os.stat(f'/proc/{agent.pid}/environ').st_uid, 0)
        finally:
            for process in (control, agent):
                process.kill()
                process.wait()
            agent.stderr.close()

    def test_no_command_that_reads_secrets_dumps_a_core(self):
        """Each waits: for a signal, a subscriber, input, an answer. /proc says that its files are root's, as above."""
        pullet, www, port = harness.for_anybody(self, PULLET), self.path('www'), 'tcp://127.0.0.1:0'
        os.makedirs(www)
        os.chmod(www, 0o755)
        with socket.create_server(('127.0.0.1', 0)) as silent:
            for command in (('serve', www, '--http', '127.0.0.1:0', '--push', port), ('relay', '--dir', www, '--push', port),
                            ('publish', 'a', '--endpoint', port, '--timeout', '1h'), ('override', 'web', 'n=-', '--for', '1h'),
                            ('fleet', 'wait', 'a', '--version', 'v', '--etcd', f'http://127.0.0.1:{silent.getsockname()[1]}')):
                p = subprocess.Popen([pullet, *command], user=attack.AGENT, stdin=subprocess.PIPE,
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                with p:
                    try:
                        self.wait_until_it_is_closed(p, command)
                    finally:
                        p.kill()

    def wait_until_it_is_closed(self, p, command):
        def is_closed():
            self.assertIsNone(p.poll(), command)
            return os.stat(f'/proc/{p.pid}/environ').st_uid == 0
        self.until(is_closed, f'others may look into {command}')


class Plain(harness.Case):
    """Who is between two hosts reads no credential: none is sent to another host over plain http, unless the configuration says so."""
    BASIC = {'basic': {'user': 'u', 'password_file': 'secret'}}
    AUTH = (('http', '/a', {'bearer_file': 'secret'}), ('http', '/a', BASIC), ('http', '/a', {'headers': {'X-Token': {'file': 'secret'}}}),
            ('http', '/a', {'headers': {'authorization': 'Bearer x'}}), ('consul', '/a', {'bearer_file': 'secret'}), ('etcd', '/a', BASIC), ('nacos', '/g/a', BASIC), ('spring', '/a/p', BASIC))
    URLS = ((['http://192.0.2.1:1'], False), (['https://192.0.2.1:1', 'http://host.example'], False), (['HTTP://127.0.0.1.example'], False), (['http://[2001:db8::1]'], False),
            (['https://192.0.2.1:1'], True), (['http://127.0.0.1:1', 'http://[::1]:1'], True))

    def settings(self, kind, path, auth, urls, **more):
        at = json.loads(json.dumps(auth).replace('"secret"', json.dumps(self.path('secret'))))
        return json.dumps({'agent': {'state_dir': self.path('state'), 'runtime_dir': self.path('run')}, 'servers': {'main': {'kind': kind, 'urls': urls, 'auth': at, **more}},
                           'configs': {'web': {'from': [{'server': 'main', 'path': path}], 'type': 'yaml'}}})

    def try_one(self, good, *what, **more):
        self.write('pullet.yaml', self.settings(*what, **more))
        code, out, err = attack.run(PULLETD, '-t', '-c', self.path('pullet.yaml'))
        self.assertEqual(code, 0 if good else 78, (what, more, out, err))
        if not good:
            self.assertIn('over plain http', out + err)

    def test_none_is_sent_to_another_host(self):
        self.write('secret', 'Planted\n')
        os.chmod(self.path('secret'), 0o600)
        for kind, path, auth in self.AUTH:
            for urls, good in self.URLS:
                self.try_one(good, kind, path, auth, urls)
                self.try_one(True, kind, path, auth, urls, insecure=True)
        agent = Agent(self, self.settings('http', '/a', self.BASIC, ['http://127.0.0.1:1']))
        agent.ready()
        self.write('pullet.yaml', self.settings('http', '/a', self.BASIC, ['http://192.0.2.1:1']))
        agent.signal(signal.SIGHUP)
        agent.log.wait('over plain http')
        agent.log.wait('nothing was changed')
        agent.stop()


class Tagged:
    """A server whose ETag and Last-Modified are any bytes."""

    def __init__(self, test):
        self.etag, self.modified, self.heard = b'', b'', []
        self.url = attack.Listener(test, self.answer).url

    def answer(self, peer):
        self.heard.append(attack.request_head(peer))
        peer.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nETag: ' + self.etag + b'\r\nLast-Modified: ' + self.modified + b'\r\nConnection: close\r\n\r\nn: 1\n')


class Documents(Case):
    """What is in documents, what the user's programs say of them, and what versions are called."""
    KEYS, SHOWN = ('n', 'db.password', 'plain'), ('web', 'quiet', 'tagged')

    def document(self, what, masked='masked', plain='value', more='', prefix=''):
        """A document with a masked value and another one, each of its kind."""
        return (f'db: {{password: "{prefix}{self.plant("password, " + what, masked)}", user: app}}\n'
                f'plain: "{prefix}{self.plant("plain value, " + what, plain)}"\n{more}').encode()

    def rejected(self, what, **kw):
        return self.document(what, 'masked, rejected', 'value, rejected', **kw)

    def says(self, what, file='$PULLET_FILE'):
        """What a program does that tells all it knows."""
        return f'env >>{self.path("seen")}; cat {file}; cat {file} >&2; echo {self.plant(what, "program")}; echo {self.plant(what + ", on standard error", "program")} >&2'

    def setUp(self):
        super().setUp()
        self.origin, self.words, self.tagged, self.publisher = Origin(self), FaultServer(self), Tagged(self), Publisher(self)
        self.hook, self.check, self.probe, self.maker = (Hook(self, name) for name in ('hook', 'check', 'probe', 'maker'))
        self.etcd = etcd.Etcd(self)
        self.health = FaultServer(self)
        self.hook.do(self.says('a hook'))
        self.maker.do('cat')
        self.words.behave = harness.good(self.plant('words of a server', 'server').encode(), status='500 Internal Server Error')
        self.missing, self.coded = FaultServer(self), FaultServer(self)
        said = json.dumps({'status': 404, 'message': 'No such label: ' + self.plant('words of Spring', 'server')})
        self.missing.behave = harness.good(said.encode(), 'Content-Type: application/json\r\n', '404 Not Found')
        self.coded.behave = harness.good(b'n: 1\n', f'Content-Encoding: {self.plant("an encoding", "server")[:24]}\r\n')
        self.tagged.etag = b'"' + self.plant('ETag', 'version').encode() + b'\x80\x9b31m\xe2\x80\xae\xff"'
        self.tagged.modified = self.plant('Last-Modified', 'version').encode() + b'\x9b\xe2\x80\xae'
        self.put('web', self.document('first'))
        self.put('quiet', self.document('without snapshot', plain='value, no snapshot'))
        for name in ('probed', 'made', 'asked'):
            self.put(name, self.document(f'of {name}'))
        self.put('lone', self.document('of lone', masked='value'))
        self.put('below', self.document('of the layer below'))
        self.put('above', b'more: 1\n')
        pattern = {'type': 'string', 'pattern': '^Planted'}
        self.write('schema.json', json.dumps({'properties': {'plain': pattern, 'db': {'properties': {'password': pattern}}}}))

    def put(self, name, document):
        self.origin.put(f'/{name}.yaml', document)

    def settings(self):
        common, mask = {'interval': '1h', 'timeout': '5s'}, {'mask': ['db.password']}
        tells = {'reload': {'run': [self.hook.path], 'debounce': '0s'}}
        config = lambda name, server='origin', path='', **more: {  # noqa: E731
            'from': [{'server': server, 'path': path or f'/{name}.yaml'}], 'file': self.path(f'out/{name}.yaml'), **common, **more}
        return {
            'agent': self.of_agent(),
            'servers': {'origin': {'urls': [self.origin.url], 'max_size': '4KiB'}, 'words': {'kind': 'consul', 'urls': [self.words.url]},
                        'missing': {'kind': 'spring', 'urls': [self.missing.url]}, 'coded': {'urls': [self.coded.url]},
                        'tagged': {'urls': [self.tagged.url]}, 'store': {'kind': 'etcd', 'urls': [self.etcd.url]}},
            'push': [{'endpoint': self.publisher.endpoint}], 'report': {'server': 'store', 'host': 'here'},
            'configs': {
                'web': config('web', schema=self.path('schema.json'), check=[self.check.path, '{path}'], guard={'require': ['plain']}, **tells, **mask),
                'quiet': config('quiet', mode='0600', snapshot=False, **tells, **mask),
                'probed': config('probed', probe={'run': [self.probe.path], 'for': '300ms', 'every': '100ms', 'failures': 2}, **mask),
                'asked': config('asked', probe={'url': f'{self.health.url}/?token={self.plant("query of a probe", "query")}', 'for': '300ms', 'every': '100ms',
                                                'failures': 2}, **mask),
                'layered': {**config('layered', check=[self.check.path, '{path}'], **mask),
                            'from': [{'server': 'origin', 'path': f'/{layer}.yaml'} for layer in ('below', 'above')]},
                'made': config('made', format={'run': [self.maker.path]}, **mask), 'lone': config('lone'),
                'words': config('words', 'words', '/words'), 'missing': config('missing', 'missing', '/a/p/label'), 'coded': config('coded', 'coded'), 'tagged': config('tagged', 'tagged'),
            }}

    def refuse(self, stage, by, document, name='web', told=''):
        self.put(name, document)
        self.assertIn(by, json.dumps(self.refresh(name)), stage)
        self.look(stage, commands=False)
        self.receipts(told)

    def receipts(self, words=''):
        """Looks at them, again and again until one has these words."""
        def told():
            receipts = self.etcd.get('/pullet/agents/', prefix=True)
            for key, value in receipts.items():
                self.secrets.look('RECEIPT', key, value)
            return any(words in value.decode() for value in receipts.values())
        self.until(told, f'no receipt says {words!r}')

    def override(self, stage, key, value, status):
        told = self.agent.request('POST', f'/v1/configs/web/override?key={key}&value={urllib.parse.quote(value)}&for_ms=600000')
        self.assertEqual(told[0], status, told)
        self.secrets.look('OPERATOR', f'the answer to an override ({stage})', told[1])
        self.look(stage, commands=False)

    def test_values(self):
        self.start(json.dumps(self.settings()))
        wait = self.agent.log.wait
        wait('reload succeeded.*config=web generation=1')
        wait('reload succeeded.*config=quiet generation=1')
        self.put('web', self.document('second'))
        self.assertEqual(self.refresh('web')['generation'], 2)  # maybe by the pull that the push channel's connection caused
        wait('reload succeeded.*config=web generation=2')
        self.look('two versions')
        self.check.do(self.says('a check', '$1') + '; exit 1')
        self.refuse('rejected by the check', 'check exited', self.rejected('rejected by the check'), told='check exited')
        self.put('below', self.rejected('merged, rejected by the check'))
        self.assertIn('check exited', json.dumps(self.refresh('layered')))
        self.check.do('exit 0')
        self.refuse('rejected by the schema', 'pattern', self.rejected('rejected by the schema', prefix='no '), told='schema: ')
        self.refuse('rejected by the guard', 'required key', self.rejected('rejected by the guard').replace(b'plain', b'other'))
        self.refuse('too large', 'limit', self.rejected('too large', more='# ' + 4096 * 'x'))
        for what, text in (('an alias', '*%s'), ('a tag', '!%s x'), ('an open quote', '"%s'), ('an anchor', '&%s"'), ('braces', '{%s'), ('a directive', '\n%%%s')):
            bad = 'invalid YAML, ' + what
            self.refuse(bad, 'invalid YAML', b'db:\n  password: ' + (text % self.plant(bad, 'masked, rejected')).encode() + b'\nplain: [\n')
        self.refuse('invalid YAML, no mask', 'invalid YAML', f'plain: *{self.plant("alias without mask", "value, rejected")}\n'.encode(), 'lone')
        self.override('an override', 'db.password', self.plant('override', 'masked'), 200)
        self.override('an override of a plain key', 'plain', self.plant('plain override', 'value'), 200)
        self.override('an override against the schema', 'db.password', 'no ' + self.plant('override against the schema', 'masked, rejected'), 409)
        self.override('an override that is no value', 'db.password', '*' + self.plant('override that is no value', 'masked, rejected'), 400)
        self.check.do('cat $1; exit 1')
        self.override('an override against the check', 'db.password', self.plant('override against the check', 'masked, rejected'), 409)
        self.check.do('exit 0')
        self.maker.do(f'cat >&2; echo {self.plant("a maker", "program")} >&2; exit 1')
        self.refuse('rejected by the format', 'maker exited', self.rejected('rejected by the format'), 'made')
        self.probe.do(self.says('a probe') + '; exit 1')
        self.put('probed', self.document('of a version that fails its probe'))
        self.refresh('probed')
        wait('the version failed its probe and was rolled back.*config=probed|published.*config=probed.*was bad')
        self.health.behave = harness.good(b'ill', status='500 Internal Server Error')
        self.put('asked', self.document('of another version that fails its probe'))
        self.refresh('asked')
        wait('published.*config=asked.*was bad')
        for name in ('words', 'missing', 'coded'):
            self.refresh(name)
        self.look('all was done')
        self.assertTrue(any(where.startswith('pullet top') for where in self.secrets.texts['OPERATOR'].values()), 'top has shown no sentence of an operator')
        self.see_names_of_versions()
        self.assertFalse(any('quiet' in name for name in os.listdir(self.path('run')) if name.endswith('.snap')))
        self.assertEqual(os.stat(self.path('out/quiet.yaml')).st_mode & 0o777, 0o600)
        self.secrets.look('HOOK', 'the environment of programs', self.read('seen'))
        self.end_dry(self.secrets.table.keys() - {'credential', 'query'})

    def see_names_of_versions(self):
        """An ETag goes back as it came, and is shown escaped; one with controls does not come in at all."""
        self.refresh('tagged')
        self.assertIn(b'\r\nIf-None-Match: ' + self.tagged.etag + b'\r\n', self.tagged.heard[-1])
        self.publisher.wait_subscribed(b'tagged')
        asked = len(self.tagged.heard)
        self.publisher.send(b'tagged', {'v': 1, 'version': '\x9b\u202e' + self.plant('version of a message', 'version')})
        self.publisher.send(b'tagged', self.plant('bad envelope', 'version').encode() + b'\x9b\xff')
        self.publisher.send(b'tagged\x9b' + self.plant('topic', 'version').encode(), {'v': 1})
        self.agent.log.wait('invalid envelope')
        self.refresh('tagged')
        self.assertGreater(len(self.tagged.heard), asked)
        self.receipts(self.secrets['ETag'])
        self.look('names of versions')
        good = self.tagged.etag
        for bad in (b'\x1b[31m', b'\x7f', b'\x01'):
            self.tagged.etag = b'"' + self.plant(f'ETag with {bad}', 'version').encode() + bad + b'"'
            self.refresh('tagged')
            self.refresh('tagged')
            self.assertNotIn(bad, self.tagged.heard[-1])
            self.look(f'an ETag with {bad}', commands=False)
        self.tagged.etag = good

    def end_dry(self, rows):
        self.end()
        self.put('web', self.document('of a dry run', 'masked, rejected', 'value, rejected'))
        dry = harness.Program([PULLETD, '--dry-run', '-c', self.agent.config_path], read='both')
        self.addCleanup(dry.close)
        dry.log.drain()
        dry.wait()
        self.secrets.look('OPERATOR', 'pulletd --dry-run', '\n'.join(dry.log.seen))
        self.secrets.check(*rows)


if __name__ == '__main__':
    harness.main()
