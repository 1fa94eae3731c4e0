"""Slips in YAML, as people make them: the exact place, a guess at what was meant, and a remedy that mends it (tests/golden/slips.txt)."""
import os
import re
import subprocess

import harness
from harness import Agent

TABLE = os.path.join(harness.ROOT, 'tests', 'golden', 'slips.txt')
ESCAPE = re.compile(rb'\\(\\|t|r|x[0-9A-F]{2})')
MARK = re.compile(r'^--- (\d+:\d+) (.*)$', re.M)


def plain(text):
    """The bytes that the table writes so."""
    return ESCAPE.sub(lambda m: {b't': b'\t', b'r': b'\r', b'\\': b'\\'}.get(m[1]) or bytes.fromhex(m[1][1:].decode()), text.encode())


def rows():
    with open(TABLE, encoding='utf-8') as f:
        for part in re.split(r'^=== ', f.read(), flags=re.M)[1:]:
            name, text = part.split('\n', 1)
            slip, place, words, remedy = MARK.split(text)
            yield name, plain(slip), place, plain(words).decode(), plain(remedy[1:])


class Slips(harness.Case):
    def check(self, text):
        path = self.path('pullet.yaml')
        with open(path, 'wb') as f:
            f.write(text)
        done = subprocess.run([harness.PULLETD, '-c', path, '-t'], capture_output=True, text=True, timeout=20, check=False)
        return done.returncode, done.stderr.replace(path, '@').splitlines()

    def test_each_slip_has_its_place_and_a_guess(self):
        for name, slip, place, words, _ in rows():
            with self.subTest(name):
                code, lines = self.check(slip)
                self.assertEqual(code, 78)
                self.assertTrue(lines[0].startswith(f'@:{place}: '), lines)
                self.assertIn(words, lines[0])

    def test_each_remedy_mends_it(self):
        for name, _, _, _, remedy in rows():
            with self.subTest(name):
                self.assertEqual(self.check(remedy), (0, []))

    def test_the_table_has_forty_rows_at_least_each_once(self):
        names = [row[0] for row in rows()]
        self.assertGreaterEqual(len(names), 40)
        self.assertEqual(len(set(names)), len(names))


HERE = """\
servers:
  main:
    urls: [https://127.0.0.1]
    tls: {ca: @/ca.pem}
    auth: {bearer_file: @/token}
  client: {urls: [https://127.0.0.1], tls: {cert: @/cert.pem,
    key: @/key.pem}}
  basic: {urls: [https://127.0.0.1], auth: {basic: {user: u, password_file: @/password}}}
  header: {urls: [https://127.0.0.1], auth: {headers: {X-Key: {file: @/header}}}}
  local: {kind: file, urls: ["file://@/folder"]}
push:
  - endpoint: tcp://127.0.0.1:7377
    curve: {server_key: "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7", secret_key_file: @/curve}
agent: {state_dir: @/state, runtime_dir: @/run}
configs:
  web:
    from: [{server: main, path: /web.yaml}]
    file: @/out/below/web.yaml
    schema: @/schema.json
    check: [@/check, "{path}"]
    reload: {run: [@/reload]}
    probe: {run: [@/probe]}
"""
PLACES = {  # what is missing, and what mends it
    '4:15: ca: @/ca.pem cannot be read: No such file or directory: make it, or name another one': 'ca.pem',
    '5:25: bearer_file: the file cannot be read: ': 'token',
    '6:51: cert: @/cert.pem cannot be read: ': 'cert.pem',
    '7:10: key: the file cannot be read: ': 'key.pem',
    '8:77: password_file: the file cannot be read: ': 'password',
    '9:70: file: the file cannot be read: ': 'header',
    '10:30: urls: @/folder cannot be read: ': 'folder/',
    '13:86: secret_key_file: the file cannot be read: ': 'curve',
    '18:11: file: @/out does not exist: make that directory, or name another place': 'out/',
    '19:13: schema: @/schema.json cannot be read: ': 'schema.json',
    '20:13: check: @/check does not exist: install it, or name its absolute path': 'check',
    '21:20: run: @/reload does not exist: ': 'reload',
    '22:19: run: @/probe does not exist: ': 'probe',
}


class Here(harness.Case):
    """`pulletd -t` looks at what is named on this host; it contacts no server."""

    def setUp(self):
        super().setUp()
        self.place = self.path('here')
        os.mkdir(self.place)
        self.write('pullet.yaml', HERE.replace('@/', self.place + '/'))

    def check(self):
        done = subprocess.run([harness.PULLETD, '-c', self.path('pullet.yaml'), '-t'], capture_output=True, text=True, timeout=20, check=False)
        return done.returncode, [line.replace(self.path('pullet.yaml') + ':', '').replace(self.place, '@') for line in done.stderr.splitlines()]

    def make(self, name, text='{}'):
        if name.endswith('/'):
            os.mkdir(os.path.join(self.place, name))
            return
        self.write('here/' + name, text)
        os.chmod(self.path('here/' + name), 0o755)

    def test_each_is_named_with_its_place_until_it_is_there(self):
        code, lines = self.check()
        self.assertEqual(code, 1)
        self.assertEqual(len(lines), len(PLACES), lines)
        for words, name in PLACES.items():
            self.assertTrue(any(line.startswith(words) for line in lines), f'{words}\n{lines}')
            self.make(name)
            code, lines = self.check()
            self.assertFalse(any(line.startswith(words) for line in lines), lines)
        self.assertEqual((code, lines), (0, []))

    def test_one_file_by_two_paths_is_named(self):
        self.make('out/')
        os.symlink('out', self.path('here/link'))
        self.write('pullet.yaml', f"""configs:
  a: {{url: 'http://h/', file: {self.place}/out/x}}
  b: {{url: 'http://h/', file: {self.place}/link/x}}
  c: {{url: 'http://h/', file: {self.place}/link/y}}
""")
        self.assertEqual(self.check(), (1, ['3:31: "@/link/x" is also written by config "a", by another path, at 2:31: name another place']))

    def test_what_is_of_the_wrong_kind_is_named(self):
        for name in PLACES.values():
            self.make(name)
        for name, words in {
                'schema.json': '19:13: schema: @/schema.json cannot be used: @/schema.json: line 1, column 10: ',
                'check': "20:13: check: @/check cannot be run: make it executable (chmod +x), for the agent's user too",
                'folder': '10:30: urls: @/folder is no directory: name one',
                'ca.pem': '4:15: ca: @/ca.pem is a directory: name a file'}.items():
            path = self.path('here/' + name)
            (os.rmdir if name == 'folder' else os.unlink)(path)
            if name == 'ca.pem':
                os.mkdir(path)
            else:
                self.write('here/' + name, '{"type": "objekt"}')
                os.chmod(path, 0o644)
            code, lines = self.check()
            self.assertEqual(code, 1)
            self.assertTrue(any(line.startswith(words) for line in lines), f'{words}\n{lines}')

    def test_a_start_says_it_and_goes_on(self):
        text = self.config('http://127.0.0.1:1/web.yaml', f'    check: [{self.place}/check, "{{path}}"]\n')
        agent = Agent(self, text)
        agent.log.wait(r'warn a file that the configuration names cannot be used why="\S+:\d+:\d+: check: \S+/check does not exist: install it')
        agent.log.wait('started')


class Nothing(harness.Case):
    """A configuration of comments alone."""

    def test_it_is_said_by_the_start_the_check_and_the_status(self):
        self.write('pullet.yaml', '# nothing\n')
        path, folder = self.path('pullet.yaml'), os.path.dirname(self.path('pullet.yaml'))
        said = f'{path}: nothing is configured in {folder}: add a config under "configs" (pullet.yaml(5) has examples)\n'
        for args in (['-t'], []):
            done = subprocess.run([harness.PULLETD, '-c', path, *args], capture_output=True, text=True, timeout=20, check=False)
            self.assertEqual((done.returncode, done.stderr), (78, said))
        done = subprocess.run([harness.PULLET, 'status'], capture_output=True, text=True, timeout=20, check=False,
                              env={**os.environ, 'PULLET_CONFIG': path, 'PULLET_RUNTIME_DIR': folder})
        self.assertEqual(done.returncode, 3)
        self.assertIn(f'nothing is configured in {folder}: add a config to {path}, and start it', done.stderr)


class Unpublished(harness.Case):
    def test_a_config_without_a_version_is_told_from_one_that_is_none(self):
        agent = Agent(self, self.config('http://127.0.0.1:1/web.yaml'))
        agent.log.wait('started')
        env = {**os.environ, 'PULLET_RUNTIME_DIR': os.path.dirname(agent.socket)}
        for args, words in ((['get', 'web', 'a'], "config web is configured, but nothing of it is published yet: 'pullet status web' says why"),
                            (['list', 'web'], 'config web is configured, but nothing of it is published yet'),
                            (['get', 'wbe', 'a'], "there is no snapshot of 'wbe'")):
            done = subprocess.run([harness.PULLET, *args], capture_output=True, text=True, timeout=20, check=False, env=env)
            self.assertEqual(done.returncode, 2)
            self.assertIn(words, done.stderr)


if __name__ == '__main__':
    harness.main()
