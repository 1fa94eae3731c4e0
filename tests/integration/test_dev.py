"""`pullet dev` as a newcomer meets it, `pullet serve`'s configuration to paste, and an agent in an ordinary user's own places."""
import os
import re
import shutil
import signal
import subprocess
import urllib.error
import urllib.request

import harness
from harness import PULLET, PULLETD, Program, children

NOBODY = 65534


def as_nobody():
    """What makes a command an ordinary user's: nothing where the tests are run by one."""
    return ['setpriv', f'--reuid={NOBODY}', f'--regid={NOBODY}', '--clear-groups'] if os.geteuid() == 0 else []


class Dev(harness.Case):
    def setUp(self):
        super().setUp()
        self.dir = os.path.realpath(self.dir)
        self.tmp = self.path('tmp')
        os.mkdir(self.tmp)
        if os.geteuid() == 0:
            os.chown(self.tmp, NOBODY, NOBODY)
        os.chmod(self.dir, 0o755)
        self.env = {'TMPDIR': self.tmp, 'XDG_RUNTIME_DIR': '', 'HOME': '/nonexistent'}

    def dev(self, *args, env=None):
        p = Program([*as_nobody(), PULLET, 'dev', *args], env=env or self.env, read='both', cwd=self.dir)
        self.addCleanup(p.close)
        return p

    def refused(self, *args, env=None):
        done = subprocess.run([*as_nobody(), PULLET, 'dev', *args], env=dict(os.environ, **(env or self.env)), cwd=self.dir, capture_output=True, text=True,
                              timeout=harness.DEADLINE, check=False)
        self.assertEqual(os.listdir(self.tmp), [])
        return done.returncode, done.stderr

    def ends(self, p, code):
        """It has ended: no process, no file is left."""
        pids = getattr(p, 'started', [])
        self.assertEqual(p.wait(), code, '\n'.join(p.log.drain()))
        self.assertEqual(os.listdir(self.tmp), [])
        self.assertEqual([pid for pid in pids if alive(pid)], [])

    def tries(self, p):
        """The commands to try, once they are printed."""
        p.log.wait('Ctrl-C ends it')
        p.started = children(p.pid)
        self.assertEqual(len(p.started), 2)
        return [line.strip() for line in p.log.seen if line.startswith('    ')]

    def shell(self, command):
        """As a newcomer pastes it, in another shell."""
        done = subprocess.run([*as_nobody(), 'sh', '-c', command], env=dict(os.environ, HOME='/'), cwd='/', capture_output=True, text=True,
                              timeout=harness.DEADLINE, check=False)
        self.assertEqual(done.returncode, 0, f'{command}\n{done.stderr}')
        return done.stdout

    def test_readme__shows_what_it_prints(self):
        """But for the numbers and the temporary directory; a shell finds this pullet by its name."""
        with open(os.path.join(harness.ROOT, 'README.md'), encoding='utf-8') as f:
            shown = re.search(r'```text\n(serving .*?)```', f.read(), re.S)[1]
        p = self.dev(env=dict(self.env, PATH=f'{harness.BUILD}:{os.environ["PATH"]}'))
        *_, sed = self.tries(p)
        self.shell(sed)
        p.log.wait('^~ greeting')
        p.signal(signal.SIGINT)
        self.ends(p, 0)
        same = [re.sub(r'/\S*pullet-dev-\w+', '/tmp/pullet-dev-X', re.sub(r'127.0.0.1:\d+', '127.0.0.1:1', text)) for text in (shown.rstrip(), '\n'.join(p.log.seen))]
        self.assertEqual(*same)

    def test_without_a_directory__an_example_changes_and_nothing_is_left(self):
        p = self.dev()
        get, status, sed = self.tries(p)
        self.assertEqual(self.shell(get), 'db-1.example\n')
        self.assertRegex(self.shell(status), r'web +ok +1 ')
        self.shell(sed)
        p.log.wait('^~ greeting: "hello" -> "goodbye"$')
        p.signal(signal.SIGINT)
        self.ends(p, 0)

    def test_directory__each_document_is_a_config(self):
        self.write('conf/web.yaml', 'port: 1\npassword: hunter2\n')
        self.write('conf/web.json', '{"port": 2}')
        self.write('conf/team/app.yml', 'port: 3\n')
        self.write('conf/my file.yaml', 'port: 4\n')
        self.write('conf/a$b.yaml', 'port: 4\n')
        p = self.dev('conf/')
        p.log.wait('my file.yaml is left out, and 1 more like it: name it with letters')
        self.tries(p)
        for name, path in (('web', 'web.json'), (r'web\.yaml', 'web.yaml'), ('team-app', 'team/app.yml')):
            p.log.wait(f'^{name}: generation 1 of {path}, ')
        start = p.log.count
        self.write('conf/web.yaml', 'port: 5\npassword: hunter3\n')
        p.log.wait('^~ port: 1 -> 5', start)
        p.log.wait(r'^~ password: \*\*\* -> \*\*\*', start)
        self.write('conf/new.yaml', 'port: 6\n')
        p.log.wait('^new: generation 1 of new.yaml, 1 value$', start)
        self.write('conf/new.yaml', 'port: [\n')
        p.log.wait('^new: rejected by the syntax', start)
        os.unlink(self.path('conf/new.yaml'))
        p.log.wait('new.yaml is gone: its last version stays published', start)
        p.signal(signal.SIGTERM)
        self.ends(p, 0)
        self.assertNotIn('hunter', '\n'.join(p.log.seen))
        self.assertEqual(sorted(os.listdir(self.path('conf'))), ['a$b.yaml', 'my file.yaml', 'team', 'web.json', 'web.yaml'])

    def test_child_that_dies__ends_it_and_leaves_nothing(self):
        for index in (0, 1):
            p = self.dev()
            self.tries(p)
            os.kill(p.started[index], signal.SIGKILL)
            p.log.wait('was ended from outside: start this again')
            self.ends(p, 1)

    def test_killed__its_programs_end(self):
        p = self.dev()
        self.tries(p)
        p.signal(signal.SIGKILL)
        self.until(lambda: not [pid for pid in p.started if alive(pid)], 'they go on')
        p.close()

    def test_wrong_input__is_said_with_a_remedy(self):
        os.mkdir(self.path('empty'))
        self.write('file.yaml', 'a: 1\n')
        self.write('conf/web.yaml', 'a: 1\n')
        for args, sentence in ((['nothere'], 'cannot serve nothere: No such file or directory: make it, or'), (['file.yaml'], 'Not a directory: name the directory'),
                               (['empty'], 'no .yaml, .yml or .json file in empty'), (['-x'], "Try 'pullet dev --help'"), (['a', 'b'], 'name one directory, or none'),
                               (['conf', '--http', 'foo'], "pullet dev: --http 'foo' names no port")):
            code, said = self.refused(*args)
            self.assertIn(sentence, said)
            self.assertIn(code, (1, 64), args)
        self.assertIn('name a directory in TMPDIR', self.refused('conf', env=dict(self.env, TMPDIR='/nonexistent'))[1])

    def test_port_that_is_taken__is_said(self):
        p = self.dev()
        self.tries(p)
        taken = re.search(r'http://(\S+),', p.log.seen[0])[1]
        self.write('conf/web.yaml', 'a: 1\n')
        done = subprocess.run([*as_nobody(), PULLET, 'dev', 'conf', '--http', taken], env=dict(os.environ, **self.env), cwd=self.dir, capture_output=True, text=True,
                              timeout=harness.DEADLINE, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f'pullet dev: cannot listen on {taken}: another program has it: stop that, or name another with --http', done.stderr)
        p.signal(signal.SIGINT)
        self.ends(p, 0)

    def test_without_pulletd__is_said(self):
        shutil.copy(PULLET, self.path('pullet'))
        done = subprocess.run([self.path('pullet'), 'dev'], env=dict(self.env, PATH='/nonexistent'), capture_output=True, text=True, timeout=harness.DEADLINE, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn('there is no pulletd, neither in', done.stderr)


class Serve(harness.Case):
    def pasted(self, *args):
        _, url, _ = self.program = self.serve(*args)
        self.program[0].log.wait('^    file: ')
        lines = self.program[0].log.seen
        return url, '\n'.join(lines[next(i for i, line in enumerate(lines) if line.startswith('# a configuration')):]) + '\n'

    def good(self, text):
        self.write('pullet.yaml', text)
        done = subprocess.run([PULLETD, '-t', '-c', self.path('pullet.yaml')], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, text + done.stderr)

    def test_configuration_to_paste__is_a_good_one(self):
        self.write('www/web.yaml', 'a: 1\n')
        url, text = self.pasted()
        self.assertIn(f'url: {url}/web.yaml', text)
        self.assertIn('    guard: {max_shrink: 50%} # ', text)
        self.good(text)

    def test_configuration_with_a_key__has_the_public_one(self):
        self.write('www/web.yaml', 'a: 1\n')
        subprocess.run([PULLET, 'keygen', self.path('key')], check=True, capture_output=True)
        _, text = self.pasted('--curve-secret-key', self.path('key'))
        self.assertIn("curve: {server_key: '", text)
        self.good(text)

    def test_empty_directory__says_what_to_do(self):
        p, _, _ = self.serve()
        p.log.wait('no .yaml, .yml or .json file is in .* yet: put one there')


class WrittenInPlace(harness.Case):
    def setUp(self):
        super().setUp()
        self.write('www/web.yaml', 'a: 1\nb: 1\n')
        self.write('www/large.yaml', 'x' * (1 << 20) + '\n')
        self.program, self.url, _ = self.serve()

    def get(self, name, etag=None):
        """(status, headers, body)"""
        request = urllib.request.Request(f'{self.url}/{name}', headers={'If-None-Match': etag} if etag else {})
        try:
            with urllib.request.urlopen(request, timeout=harness.DEADLINE) as answer:
                return answer.status, answer.headers, answer.read()
        except urllib.error.HTTPError as e:
            return e.code, e.headers, e.read()

    def test_file_with_pauses__is_as_before_until_it_is_closed(self):
        before = self.get('web.yaml')
        with open(self.path('www/web.yaml'), 'wb', buffering=0) as f:  # truncates
            for half in b'a: 2\n', b'b: 2\n':
                status, headers, body = self.get('web.yaml')
                self.assertEqual((status, headers['ETag'], body), (200, before[1]['ETag'], before[2]))
                self.assertEqual(self.get('web.yaml', before[1]['ETag'])[0], 304)
                f.write(half)
        self.assertEqual(self.get('web.yaml', before[1]['ETag'])[2], b'a: 2\nb: 2\n')
        self.program.log.wait('changed path=web.yaml')
        self.write('www/end.yaml', 'e: 1\n')
        self.program.log.wait('changed path=end.yaml')
        self.assertEqual(len([line for line in self.program.log.seen if 'changed path=web.yaml' in line]), 1)

    def test_large_file__is_for_those_who_have_it(self):
        etag = self.get('large.yaml')[1]['ETag']
        with open(self.path('www/large.yaml'), 'ab', buffering=0) as f:
            f.write(b'x')
            self.assertEqual(self.get('large.yaml', etag)[0], 304)
            status, headers, _ = self.get('large.yaml')
            self.assertEqual((status, headers['Retry-After']), (503, '1'))
        self.assertEqual(len(self.get('large.yaml', etag)[2]), (1 << 20) + 2)

    def test_new_file__is_not_there_before_it_is_whole(self):
        with open(self.path('www/new.yaml'), 'wb', buffering=0) as f:
            f.write(b'a: ')
            self.assertEqual(self.get('new.yaml')[0], 404)
            f.write(b'1\n')
        self.assertEqual(self.get('new.yaml')[2], b'a: 1\n')


class Places(harness.Case):
    def test_ordinary_user__has_an_agent_that_pullet_finds(self):
        os.chmod(self.dir, 0o755)
        home = self.path('home')
        self.write('home/.config/pullet/pullet.yaml', f'servers: {{d: {{kind: file}}}}\nconfigs: {{web: {{from: [{{server: d, path: {home}/web.yaml}}]}}}}\n')
        self.write('home/web.yaml', 'a: 1\n')
        if os.geteuid() == 0:
            subprocess.run(['chown', '-R', f'{NOBODY}:{NOBODY}', home], check=True)
        env = {'HOME': home, 'PATH': os.environ['PATH']}
        agent = subprocess.Popen([*as_nobody(), PULLETD], env=env, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        try:
            log = harness.Lines(agent.stderr)
            said = log.wait('other programs need PULLET_RUNTIME_DIR')
            runtime = re.search(r'PULLET_RUNTIME_DIR=(\S+)', said)[1]
            log.wait('published config=web')
            self.assertTrue(os.path.exists(home + '/.local/state/pullet/web'))
            for command in (['status', 'web'], ['get', 'web', 'a']):
                done = subprocess.run([*as_nobody(), PULLET, *command], env=env, capture_output=True, text=True, timeout=harness.DEADLINE, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stdout, '1\n')
            self.assertTrue(os.path.exists(runtime + '/web.snap'))
        finally:
            agent.terminate()
            agent.wait(harness.DEADLINE)
            agent.stderr.close()
            shutil.rmtree(runtime, ignore_errors=True)


def alive(pid):
    try:
        with open(f'/proc/{pid}/stat', encoding='ascii') as f:
            return f.read().rpartition(')')[2].split()[0] != 'Z'
    except (FileNotFoundError, ProcessLookupError):
        return False


if __name__ == '__main__':
    harness.main()
