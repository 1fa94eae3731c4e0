"""`pullet sign` and `pullet keygen --sign` beside the tool minisign, both ways, and before an agent that verifies."""
import os
import random
import re
import stat
import subprocess
import time

import harness
from harness import PULLET
from test_change import Origin

RANDOM = 200


class Case(harness.Case):
    def run_(self, *args, code=0, **more):
        done = subprocess.run([PULLET, *args], capture_output=True, text=True, check=False, cwd=self.dir, timeout=harness.DEADLINE, **more)
        self.assertEqual(done.returncode, code, (args, done.stdout, done.stderr))
        return done.stdout + done.stderr

    def tool(self, *args, stdin=''):
        return subprocess.run(['minisign', *args], input=stdin, capture_output=True, text=True, check=True, cwd=self.dir, timeout=harness.DEADLINE).stdout

    def key(self, name):
        self.run_('keygen', '--sign', name)
        return self.read(name + '.pub').decode().split('\n')[1]

    def tools_key(self, name):
        self.tool('-G', '-W', '-p', name + '.pub', '-s', name)

    def comment(self, file, key):
        """What the tool finds in a signature that it has verified."""
        return re.search('^Trusted comment: (.*)$', self.tool('-V', '-m', file, '-p', key + '.pub'), re.M)[1]

    def secret(self, name, text):
        self.write(name, text)
        os.chmod(self.path(name), 0o600)

    def refused(self, sentence, *args, code=1):
        said = self.run_('sign', *args, code=code)
        self.assertRegex(said, sentence)
        self.assertFalse(os.path.exists(self.path('doc.minisig')))


class Tool(Case):
    def test_random_documents_and_comments(self):
        self.key('ours')
        self.tools_key('tools')
        dice = random.Random(7)
        letters = 'abc =/%;"\'\\~ é漢😀'
        for n in range(RANDOM):
            key = dice.choice(('ours', 'tools'))
            text = ''.join(dice.choices(letters, k=dice.choice((0, 1, 5, 300))))
            document = dice.randbytes(dice.choice((0, 1, 63, 64, 65, 127, 128, 129, 5000)))
            with self.subTest(key=key, text=text, len=len(document)):
                self.write('doc', document)
                self.run_('sign', 'doc', '-s', key, '--rev', str(n), '--comment', text)
                self.assertEqual(self.comment('doc', key), f'rev={n} path=/doc {text}')

    def test_the_tool_signs_with_our_key(self):
        self.key('ours')
        self.write('doc', 'a: 1\n')
        self.tool('-S', '-s', 'ours', '-m', 'doc', '-t', 'rev=7 path=/doc')
        self.assertEqual(self.comment('doc', 'ours'), 'rev=7 path=/doc')
        self.assertIn('rev=8 path=/doc\n', self.run_('sign', 'doc', '-s', 'ours'), 'one more than what this key said')
        self.assertEqual(self.comment('doc', 'ours'), 'rev=8 path=/doc')

    def test_keys_with_passwords(self):
        """Each opens the other's; a wrong password or none is said."""
        self.secret('password', 'correct horse\n')
        self.secret('wrong', 'correct house\n')
        self.secret('empty', '\n')
        self.write('open', 'correct horse\n')
        self.write('doc', 'a: 1\n')
        self.run_('keygen', '--sign', 'ours', '--password-file', 'password')
        self.tool('-G', '-p', 'tools.pub', '-s', 'tools', stdin='correct horse\n' * 2)
        for key in ('ours', 'tools'):
            with self.subTest(key=key):
                self.refused(f'{key}: it is sealed with a password, and none is known: --password-file', 'doc', '-s', key)
                self.refused(f'{key}: that is not its password', 'doc', '-s', key, '--password-file', 'wrong')
                self.refused('empty: its first line, the password, is empty', 'doc', '-s', key, '--password-file', 'empty')
                self.refused('open: cannot read the password.*others cannot read', 'doc', '-s', key, '--password-file', 'open')
                self.run_('sign', 'doc', '-s', key, '--password-file', 'password', '--rev', '1')
                self.assertEqual(self.comment('doc', key), 'rev=1 path=/doc')
                os.unlink(self.path('doc.minisig'))
        self.tool('-S', '-s', 'ours', '-m', 'doc', '-t', 'rev=2', stdin='correct horse\n')
        self.assertEqual(self.comment('doc', 'ours'), 'rev=2')


class Keys(Case):
    def test_a_pair(self):
        public = self.key('k')
        self.assertRegex(public, '^RW[A-Za-z0-9+/]{54}$')
        self.assertEqual([stat.S_IMODE(os.stat(self.path(n)).st_mode) for n in ('k', 'k.pub')], [0o600, 0o644])
        before = self.read('k')
        self.assertIn('never overwritten', self.run_('keygen', '--sign', 'k', code=1))
        os.rename(self.path('k'), self.path('j'))
        self.assertIn('k.pub: it is there already', self.run_('keygen', '--sign', 'k', code=1))
        self.assertFalse(os.path.exists(self.path('k')))
        self.assertEqual(self.read('j'), before)
        self.assertIn('--password-file goes with --sign', self.run_('keygen', 'x', '--password-file', 'j', code=64))

    def test_bad_keys(self):
        self.write('doc', 'a: 1\n')
        self.key('k')
        whole = self.read('k')
        lines = whole.split(b'\n')
        for text, sentence in ((b'', 'is not a secret key of minisign: line 1'), (whole[:-5], 'line 2 is not the base64 of 158 bytes .*cut short'),
                               (whole + b'x\nx\n', 'it goes on after line 2'), (self.read('k.pub'), 'a public key, or cut short'),
                               (lines[0] + b'\n' + b'A' + lines[1][1:] + b'\n', 'another algorithm'),
                               (lines[0] + b'\n' + lines[1][:100] + (b'A' if lines[1][100:101] != b'A' else b'B') + lines[1][101:] + b'\n', 'it is damaged'),
                               (b'x' * 5000, 'too large')):
            with self.subTest(sentence=sentence):
                self.secret('bad', text)
                self.refused('pullet sign: bad: .*' + sentence, 'doc', '-s', 'bad')
        for mode in (0o644, 0o604, 0o620, 0o602):
            os.chmod(self.path('k'), mode)
            self.refused('k: the secret key\'s file can be read by others.*chmod 600', 'doc', '-s', 'k')
        self.refused('none: there is no such file: pullet keygen --sign makes one', 'doc', '-s', 'none')


class Sign(Case):
    def setUp(self):
        super().setUp()
        self.public = self.key('k')
        self.write('doc', 'a: 1\n')

    def test_what_it_says(self):
        for args, comment in ((('--path', '/a/b.yaml'), 'rev=1 path=/a/b.yaml'), (('--config', 'web'), 'rev=1 config=web'), (('--unbound',), 'rev=1'),
                              (('--config', 'web', '--path', '/x', '--comment', 'expires=2026-12-31T00:00:00Z'), 'rev=1 path=/x config=web expires=2026-12-31T00:00:00Z')):
            self.assertEqual(self.run_('sign', 'doc', '-s', 'k', '--rev', '1', *args), f'doc.minisig: {comment}\n')
            self.assertEqual(self.comment('doc', 'k'), comment)
        self.write('two', 'b: 1\n')
        self.assertEqual(self.run_('sign', 'doc', self.path('two'), '-s', 'k', '--rev', '1'), f'doc.minisig: rev=1 path=/doc\n{self.path("two")}.minisig: rev=1 path=/two\n')
        self.run_('sign', 'doc', '-s', 'k', '--rev', '4', '-o', 'other.sig')
        self.assertIn(b'rev=4 path=/doc', self.read('other.sig'))

    def test_the_number(self):
        begin = int(time.time())
        def said():
            return int(re.search(r'rev=(\d+)', self.run_('sign', 'doc', '-s', 'k'))[1])
        first = said()
        self.assertTrue(begin - 1 <= first <= time.time() + 1)
        self.assertEqual([said(), said()], [first + 1, first + 2])
        whole = self.read('doc.minisig')
        self.write('doc.minisig', whole.replace(b'rev=', b'rev=9'))
        self.assertLessEqual(abs(said() - time.time()), harness.DEADLINE, 'a forged one does not count')
        self.tool('-S', '-s', 'k', '-m', 'doc', '-t', 'rev=18446744073709551615 path=/doc')
        self.assertIn('its rev is the last there is', self.run_('sign', 'doc', '-s', 'k', code=1))
        before = self.read('doc.minisig')
        self.assertIn('doc.minisig has rev=18446744073709551615: agents that accepted that reject rev=7 as an old version', self.run_('sign', 'doc', '-s', 'k', '--rev', '7', code=1))
        self.assertEqual(self.read('doc.minisig'), before)
        os.unlink(self.path('doc.minisig'))
        self.assertEqual(self.run_('sign', 'doc', '-s', 'k', '--rev', '7'), 'doc.minisig: rev=7 path=/doc\n')

    def test_output_replaces_no_document_and_no_key(self):
        self.write('large', 'x' * 5000)
        os.mkfifo(self.path('pipe'))
        for output in ('doc', 'k', 'k.pub', 'large', 'pipe'):
            for rev in ((), ('--rev', '9')):
                before = None if output == 'pipe' else self.read(output)
                self.refused(f'^pullet sign: {output} is not replaced: .*: remove it, or name another file with --output\n$', 'doc', '-s', 'k', '-o', output, *rev)
                if before is not None:
                    self.assertEqual(self.read(output), before)
        self.write('sig', '')
        for _ in range(2):  # what is empty, and a signature
            self.run_('sign', 'doc', '-s', 'k', '-o', 'sig')
        self.assertIn(b'trusted comment: rev=', self.read('sig'))

    def test_what_it_refuses(self):
        self.write('a b', '1')
        for args, code, sentence in (
                (('doc', '-s', 'k', '--path', 'x'), 1, 'path= is not a path'), (('a b', '-s', 'k'), 1, 'a name with a blank.*use --path'), (('doc', '-s', 'k', '--config', '-'), 1, 'config= is not the name'),
                (('doc', '-s', 'k', '--comment', 'rev=2'), 1, 'rev= is given twice'), (('doc', '-s', 'k', '--unbound', '--comment', 'path=/x'), 1, 'makes it name another config or path'),
                (('doc', '-s', 'k', '--path', '/x config=y'), 1, 'makes it name another config or path'), (('doc', '-s', 'k', '--comment', 'x' * 4000), 1, 'larger than 4 KiB'),
                (('doc', '-s', 'k', '--comment', 'a\nb'), 64, 'one line'), (('doc', '-s', 'k', '--rev', '-1'), 64, 'takes a number'), (('doc', '-s', 'k', '--rev', ''), 64, 'takes a number'),
                (('doc', '-s', 'k', '--rev', '18446744073709551616'), 64, 'takes a number'), (('doc',), 64, 'name a file to sign'), (('-s', 'k'), 64, 'name a file to sign'),
                (('doc', '-s', 'k', '--unbound', '--path', '/x'), 64, 'name neither'), (('doc', 'a b', '-s', 'k', '--path', '/x'), 64, 'name one file'),
                (('none', '-s', 'k'), 1, 'none cannot be read: '), (('doc', '-s', 'k', '-o', 'no/sig'), 1, 'cannot write no/sig')):
            with self.subTest(args=args):
                self.refused(sentence, *args, code=code)
        self.assertEqual(sorted(x for x in os.listdir(self.dir) if 'minisig' in x or 'pullet-' in x), [])

    def test_an_agent_takes_it_and_two_keys_rotate(self):
        """One tool, the whole way: the old key, both, the new one."""
        origin = Origin(self)
        new = self.key('new')
        os.makedirs(self.path('out'))

        def settings(*keys):
            return (f'agent: {{state_dir: {self.path("state")}, runtime_dir: {self.path("run")}}}\nservers: {{main: {{urls: ["{origin.url}"]}}}}\nconfigs:\n'
                    f'  web: {{from: [{{server: main, path: /web.yaml}}], file: {self.path("out/web")}, interval: 1h, timeout: 20s, '
                    f'verify: {{bind: path, rev: required, public_keys: [{", ".join(keys)}]}}}}\n')

        def show(n, key, *options):
            self.write('web.yaml', f'n: {n}\n')
            self.run_('sign', 'web.yaml', '-s', key, *options)
            origin.put('/web.yaml', self.read('web.yaml'))
            origin.put('/web.yaml.minisig', self.read('web.yaml.minisig'))

        def taken(n):
            outcome = agent.refresh('web')
            self.assertEqual((outcome['outcome'], self.read('out/web')), ('published', b'n: %d\n' % n), outcome)

        def refused(sentence):
            outcome = agent.refresh('web')
            self.assertEqual(outcome['outcome'], 'failed', outcome)
            self.assertRegex(outcome['error'], sentence)

        show(1, 'k')
        agent = harness.Agent(self, settings(self.public))
        agent.ready()
        agent.log.wait('published config=web')
        show(2, 'k')
        taken(2)
        show(3, 'k', '--path', '/other.yaml')
        refused('is for something else: it says path=/other.yaml')
        show(3, 'k', '--unbound')
        refused('does not say what it is for')
        show(3, 'new', '--rev', str(int(time.time()) + 100))
        refused('is not by one of the public keys')
        agent.stop()
        agent = harness.Agent(self, settings(self.public, new))
        agent.ready()
        taken_or_published(agent, self, b'n: 3\n')
        show(4, 'k', '--rev', str(int(time.time()) + 200))
        taken(4)
        agent.stop()
        agent = harness.Agent(self, settings(new))
        agent.ready()
        refused('is not by one of the public keys')  # unchanged, and signed by the key that was taken out
        self.assertEqual(self.read('out/web'), b'n: 4\n')
        show(4, 'new', '--rev', str(int(time.time()) + 300))
        taken(4)
        show(5, 'k', '--rev', '99999999999')
        refused('is not by one of the public keys')


class Pushed(Case):
    def test_a_document_that_is_signed_after_it_was_changed_comes_with_its_signature(self):
        public = self.key('k')
        self.write('www/web.yaml', 'n: 1\n')
        self.run_('sign', 'www/web.yaml', '-s', 'k')
        os.makedirs(self.path('out'))
        _, url, served = self.serve()
        relay = harness.Program([PULLET, 'relay', '--dir', self.path('www'), '--push', 'tcp://127.0.0.1:0'], read='both')
        self.addCleanup(relay.close)
        relayed = re.search(r'tcp://\S+', relay.log.wait('publishing on'))[0]
        for n, endpoint in ((2, served), (3, relayed)):
            with self.subTest(endpoint=endpoint):
                agent = harness.Agent(self, f'agent: {{state_dir: {self.path("state")}, runtime_dir: {self.path("run")}}}\npush: [{{endpoint: "{endpoint}"}}]\nconfigs:\n'
                                      f'  web: {{url: "{url}/web.yaml", file: {self.path("out/web")}, interval: 1h, verify: {{public_key: {public}}}}}\n')
                agent.ready()
                agent.log.wait('push channel connected')
                agent.refresh('web')
                self.write('www/web.yaml', f'n: {n}\n')
                agent.log.wait('rejected by the signature')
                self.run_('sign', 'www/web.yaml', '-s', 'k')
                agent.log.wait('published config=web.*cause=push')
                self.assertEqual(self.read('out/web'), b'n: %d\n' % n)
                agent.stop()


def taken_or_published(agent, case, document):
    """The first pull is the agent's own, so a refresh may have nothing left to do."""
    case.assertIn(agent.refresh('web')['outcome'], ('published', 'unchanged', 'not modified'))
    case.assertEqual(case.read('out/web'), document)


if __name__ == '__main__':
    harness.main()
