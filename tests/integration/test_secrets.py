"""Planted secrets appear nowhere: in no log at debug level, no answer of the control API, no metric, no command line, no environment of a program of
the user, no snapshot, no state, no receipt, no core dump. The servers are hostile: they send back whatever they were sent."""
import base64
import json
import os
import re
import secrets
import signal
import subprocess
import urllib.parse

import zmq

import harness
from harness import PULLETD, Agent, FaultServer
from test_change import Hook
from test_push import Publisher

GET = ('/v1/status', '/v1/changes', '/metrics', '/livez', '/readyz', '/readyz?verbose=1', '/')
PLACES = ('http', 'basic', 'store', 'consul', 'nacos', 'apollo', 'spring', 'bucket')


def shapes(secret):
    """How a secret may be written: as it is, in base64 (with what may stand before it), in a URL, in hex."""
    raw = secret.encode()
    found = {secret, urllib.parse.quote(secret, safe=''), raw.hex()}
    for before in (b'', b'x', b'xx'):  # what of the base64 does not depend on its neighbours
        text = base64.b64encode(before + raw + b'xx').decode()
        found.add(text[4:-4])
    return found


class Echo(FaultServer):
    """Answers with what it was asked, in the way that is its mood: in the status line, headers, body; as a redirect; as a document that is bad."""

    moods = ('document', 'error', 'redirect', 'not-yaml', 'unauthorized', 'odd-header', 'cut', 'json')

    def __init__(self, test):
        super().__init__(test)
        self.mood, self.heard = 'document', ''

    def _serve(self, connection):
        request = connection.makefile('rb')
        try:
            head = b''.join(iter(request.readline, b'\r\n')).decode()
            length = re.search(r'^content-length: (\d+)', head, re.I | re.M)
            self._answer(connection, head + request.read(int(length[1]) if length else 0).decode())
        except OSError:
            pass
        finally:
            request.close()
            with self.lock:
                self.open.discard(connection)
            connection.close()

    def _answer(self, connection, heard):
        self.requests += 1
        self.heard += heard
        everything = re.sub(r'[^ -~]', ' ', heard)
        answers = {
            'document': ('200 OK', '', f'n: {self.requests}\nmasked: {self.masked}\n'),
            'error': (f'500 {everything}', f'X-Echo: {everything}\r\n', everything),
            'redirect': ('302 Found', f'Location: http://user:{self.userinfo}@127.0.0.1:{self.port}/?q={everything.replace(" ", "")}\r\n', everything),
            'not-yaml': ('200 OK', '', f'a: [{everything}\nb: \t@\n'),
            'unauthorized': (f'401 {everything}', f'WWW-Authenticate: Bearer error="{everything}"\r\n', everything),
            'odd-header': ('200 OK', f'Content-Encoding: {everything}\r\nETag: {everything}\r\nDigest: {everything}\r\n', 'n: 2\n'),
            'cut': ('200 OK', 'Content-Length: 99999\r\n', everything),
            'json': ('400 Bad Request', 'Content-Type: application/json\r\n', json.dumps({'error': everything, 'message': everything, 'code': 3})),
        }
        status, headers, text = answers[self.mood]
        if self.mood != 'cut':
            headers += f'Content-Length: {len(text)}\r\n'
        connection.sendall(f'HTTP/1.1 {status}\r\n{headers}Connection: close\r\n\r\n{text}'.encode())


class Case(harness.Case):
    def setUp(self):
        super().setUp()
        os.chmod(self.dir, 0o755)
        self.planted, self.server = {}, Echo(self)
        self.server.userinfo, self.server.masked = self.plant('userinfo of a redirect'), self.plant('masked value')
        os.makedirs(self.path('out'), exist_ok=True)

    def plant(self, what):
        # no base64 alphabet at its end, so that all its shapes can be told
        self.planted[what] = f'Planted-{len(self.planted)}-' + secrets.token_hex(12)
        return self.planted[what]

    def file(self, what, text=None):
        name = what.replace(' ', '-')
        self.write(name, (text or self.plant(what)) + '\n')
        os.chmod(self.path(name), 0o600)
        return self.path(name)

    def check(self, where, text, but=()):
        """None of them is there."""
        text = text if isinstance(text, str) else text.decode('latin-1')
        for what, secret in self.planted.items():
            for shape in shapes(secret) if what not in but else ():
                at = text.find(shape)
                self.assertEqual(at, -1, f'the {what} is in {where}: ...{text[max(0, at - 200):at + 80]!r}')

    def settings(self):
        url = self.server.url
        keys = zmq.curve_keypair()
        self.planted['secret key of the agent'] = keys[1].decode()
        self.publisher = Publisher(self)
        self.hook, self.judge = Hook(self, 'hook'), Hook(self, 'judge')
        for program in (self.hook, self.judge):
            program.do(f'(env; cat /proc/$$/cmdline /proc/$PPID/cmdline) >>{self.path("seen")}; exit 0')
        watch = {'watch': True}
        servers = {
            'http': {'auth': {'bearer_file': self.file('token'), 'headers': {'X-Text': self.plant('header'), 'X-File': {'file': self.file('header file')}}}},
            'basic': {'auth': {'basic': {'user': 'someone', 'password_file': self.file('password')}}},
            'store': {'kind': 'etcd', **watch, 'auth': {'basic': {'user': 'root', 'password_file': self.file('etcd password')}}},
            'consul': {'kind': 'consul', **watch, 'auth': {'bearer_file': self.file('consul token')}},
            'nacos': {'kind': 'nacos', **watch, 'auth': {'basic': {'user': 'nacos', 'password_file': self.file('nacos password')}}},
            'apollo': {'kind': 'apollo', **watch, 'auth': {'access_key': {'secret_file': self.file('apollo secret')}}},
            'spring': {'kind': 'spring', 'auth': {'basic': {'user': 'spring', 'password_file': self.file('spring password')}}},
            'bucket': {'kind': 's3', 'auth': {'access_key': {'id': 'AKIDEXAMPLE', 'secret_file': self.file('s3 secret'),
                                                             'session_token_file': self.file('session token')}}},
        }
        paths = {'http': '/a.yaml', 'basic': '/a.yaml?sig=' + self.plant('query of a path'), 'store': '/a', 'consul': '/a', 'nacos': '/g/a', 'apollo': '/a/c/n',
                 'spring': '/a/p', 'bucket': '/b/a.yaml'}
        programs = {'check': [self.judge.path, '{path}'], 'reload': {'run': [self.hook.path], 'debounce': '0s'},
                    'probe': {'run': [self.judge.path], 'for': '200ms', 'every': '100ms'}}
        configs = {name: {'from': [{'server': name, 'path': paths[name]}], 'file': self.path('out/' + name), 'interval': '1h', 'timeout': '2s',
                          'mask': ['masked']} for name in PLACES}
        configs['url'] = {'url': url + '/u.yaml?token=' + self.plant('query of a url'), 'file': self.path('out/url'), 'interval': '1h', 'timeout': '2s',
                          'mask': ['masked']}
        configs['http'] |= programs
        configs['two'] = {'from': [{'server': 'basic', 'path': '/x.yaml?sig=' + self.planted['query of a path']}, {'server': 'http', 'path': '/y.yaml'}],
                          'file': self.path('out/two'), 'interval': '1h', 'timeout': '2s', 'mask': ['masked']}
        return json.dumps({
            'agent': {'state_dir': self.path('state'), 'runtime_dir': self.path('run'), 'log': {'level': 'debug'}},
            'servers': {name: {'urls': [url], **server} for name, server in servers.items()},
            'push': [{'endpoint': self.publisher.endpoint,
                      'curve': {'server_key': keys[0].decode(), 'secret_key_file': self.file('push key', self.planted['secret key of the agent'])}}],
            'report': {'server': 'store', 'host': 'here'}, 'configs': configs})

    def start(self):
        text = self.settings()
        env = {name: f'http://user:{self.plant("userinfo in " + name)}@127.0.0.1:9' for name in ('http_proxy', 'HTTPS_PROXY', 'ALL_PROXY')}
        self.agent = Agent(self, text, env={**env, 'SOME_TOKEN': self.plant('environment')})
        self.agent.ready()

    def names(self):
        return [config['name'] for config in json.loads(self.agent.get('/v1/status')[1])['configs']]

    def refresh(self, name):
        status, answer = self.agent.post(f'/v1/configs/{name}/refresh?wait=1&timeout_ms={harness.DEADLINE * 1000}')
        self.assertEqual(status, 200, answer)
        self.check(f'the answer to a refresh of {name}', answer)
        return answer

    def look(self, mood):
        """Everything that somebody may look at."""
        for path in GET:
            self.check(f'{path} ({mood})', self.agent.get(path)[1])
        for name in self.names():
            for path in ('', '/history', '/diff', '/explain?key=n', '/explain?key=masked'):
                self.check(f'{path} of {name} ({mood})', self.agent.get(f'/v1/configs/{name}{path}')[1])
        with open(f'/proc/{self.agent.pid}/cmdline', 'rb') as f:
            self.check('the command line', f.read())

    def signal_bad_configuration(self):
        """What is wrong is told without what is there."""
        at = self.agent.log.count
        bad = self.read('pullet.yaml').decode().replace('"urls"', '"urlz"', 1).replace(self.server.url + '/u.yaml', f'http://u:{self.plant("userinfo")}@h/')
        self.write('pullet.yaml', bad)
        self.agent.signal(signal.SIGHUP)
        self.agent.log.wait('nothing was changed', at)
        done = subprocess.run([PULLETD, '-t', '-c', self.agent.config_path], capture_output=True, text=True, timeout=harness.DEADLINE, check=False)
        self.assertEqual(done.returncode, 78)
        self.assertIn('credentials', done.stdout + done.stderr)
        self.check('pulletd -t', done.stdout + done.stderr)
        self.look('a bad configuration')

    def check_files(self):
        looked = 0
        for root in ('state', 'run', 'out'):
            for base, _, files in os.walk(self.path(root)):
                for name in files:
                    path = os.path.join(base, name)
                    if not os.path.isfile(path) or os.path.islink(path):
                        continue
                    with open(path, 'rb') as f:
                        data = f.read()
                    looked += 1
                    # what is published is published, and the address it came from is kept with it
                    self.check(path, data, ('masked value', *(('query of a url', 'query of a path') if root == 'state' else ())))
        self.assertGreater(looked, 10)


class Secrets(Case):
    def test_nowhere(self):
        self.start()
        self.hook.next()
        self.server.mood = 'document'
        for name in self.names():
            self.refresh(name)
        self.look('documents')
        for mood in Echo.moods:
            self.server.mood = mood
            for name in self.names():
                self.refresh(name)
            self.look(mood)
        for what in ('token', 'header', 'header file', 'consul token', 'session token', 'query of a url', 'query of a path', 'etcd password',
                     'nacos password'):
            self.assertIn(self.planted[what], self.server.heard, f'the server did not get the {what}: this test proves nothing about it')
        for user, what in (('someone', 'password'), ('spring', 'spring password')):
            self.assertIn(base64.b64encode(f'{user}:{self.planted[what]}'.encode()).decode(), self.server.heard, what)
        for args in (('status',), ('status', '--json'), ('history', 'http'), ('diff', 'http'), ('explain', 'http', 'n'), ('refresh', 'url')):
            self.check(f'pullet {" ".join(args)}', ''.join(self.agent.cli(*args)[1:]))
        self.signal_bad_configuration()
        self.agent.stop()
        self.check('the log', '\n'.join(self.agent.log.seen))
        self.assertTrue(os.path.exists(self.path('seen')), 'no program ran')
        self.check('the environment and command lines of programs', self.read('seen'))
        self.check_files()

    def test_no_core_is_dumped(self):
        """And nobody but root may look into the process: /proc then says that its files are root's."""
        self.start()
        limits = subprocess.run(['prlimit', f'--pid={self.agent.pid}', '--core=unlimited'], capture_output=True, text=True, check=False)
        self.assertEqual(limits.returncode, 0, limits.stderr)
        self.agent.signal(signal.SIGSEGV)
        self.assertFalse(os.WCOREDUMP(os.waitpid(self.agent.pid, 0)[1]))
        control = subprocess.Popen(['sleep', '1000'], user=65534 if os.geteuid() == 0 else None)
        agent = subprocess.Popen([PULLETD, '-c', self.readable_by_all()], user=65534 if os.geteuid() == 0 else None, stderr=subprocess.PIPE)
        try:
            harness.Lines(agent.stderr).wait('started')
            self.assertNotEqual(os.stat(f'/proc/{control.pid}/environ').st_uid, 0)
            self.assertEqual(os.stat(f'/proc/{agent.pid}/environ').st_uid, 0)
        finally:
            for process in (control, agent):
                process.kill()
                process.wait()
            agent.stderr.close()

    def readable_by_all(self):
        """The path of a configuration for whatever user."""
        place = self.path('of-others')
        os.makedirs(place)
        os.chmod(place, 0o777)
        self.write('of-others/pullet.yaml', json.dumps({'agent': {'state_dir': place + '/state', 'runtime_dir': place + '/run'},
                                                        'configs': {'web': {'url': self.server.url + '/a.yaml', 'file': place + '/web'}}}))
        return place + '/pullet.yaml'

    def test_a_secret_file_that_is_not_good_is_named_and_not_shown(self):
        self.start()
        for what in ('token', 'password', 's3-secret', 'push-key'):
            self.write(what, f'{self.plant("bad " + what)}\n{self.plant("second line of " + what)}\n')
            os.chmod(self.path(what), 0o600)
        for name in ('http', 'basic', 'bucket'):
            self.assertIn('second line', self.refresh(name))
        self.look('bad files')
        self.agent.stop()
        self.check('the log', '\n'.join(self.agent.log.seen))


if __name__ == '__main__':
    harness.main()
