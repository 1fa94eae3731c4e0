"""A hostile server, or who can write on one, with genuine signatures and no key: pairs of document and signature in places that they were not made for, old ones,
and signature files that were changed. Whatever is tried, the file stays, and the next good version is taken."""
import hashlib
import os
import shutil
import signal
import subprocess
import tempfile

import attack  # noqa: F401
import harness
from test_change import Origin

HIGHEST = 18446744073709551615


class Case(harness.Case):
    @classmethod
    def setUpClass(cls):
        cls.shared = tempfile.mkdtemp(prefix='pullet-test-')
        cls.addClassCleanup(shutil.rmtree, cls.shared, ignore_errors=True)
        for name in ('old', 'new'):
            path = os.path.join(cls.shared, name)
            subprocess.run(['minisign', '-G', '-W', '-p', path + '.pub', '-s', path + '.key'], check=True, stdout=subprocess.DEVNULL)

    def setUp(self):
        super().setUp()
        self.origin = Origin(self)

    def key(self, name='old'):
        with open(os.path.join(self.shared, name + '.pub'), encoding='ascii') as f:
            return f.read().split('\n')[1]

    def sign(self, document, comment, key='old', *options):
        """A genuine pair."""
        self.write('doc', document)
        subprocess.run(['minisign', '-S', '-s', os.path.join(self.shared, key + '.key'), '-m', self.path('doc'), '-t', comment, *options],
                       check=True, stdout=subprocess.DEVNULL)
        return document, self.read('doc.minisig')

    def show(self, path, pair):
        self.origin.put(path, pair[0])
        self.origin.put(path + '.minisig', pair[1])

    def one(self, name, verify='', paths=None, keys=('old',)):
        from_ = ', '.join(f'{{server: main, path: {p}}}' for p in paths or [f'/{name}.yaml'])
        return (f'  {name}: {{from: [{from_}], file: {self.path("out/" + name)}, interval: 1h, timeout: 20s, '
                f'verify: {{{verify}{", " if verify else ""}public_keys: [{", ".join(map(self.key, keys))}]}}}}\n')

    def settings(self, *configs):
        return (f'agent: {{state_dir: {self.path("state")}, runtime_dir: {self.path("run")}}}\n'
                f'servers: {{main: {{urls: ["{self.origin.url}"]}}}}\nconfigs:\n' + ''.join(configs))

    def start(self, *configs):
        os.makedirs(self.path('out'), exist_ok=True)
        self.agent = harness.Agent(self, self.settings(*configs))
        self.agent.ready()
        return self.agent

    def taken(self, name, document):
        outcome = self.agent.refresh(name)
        self.assertEqual((outcome['outcome'], self.read('out/' + name)), ('published', document), outcome)

    def refused(self, name, sentence):
        before = self.read('out/' + name) if os.path.exists(self.path('out/' + name)) else None
        outcome = self.agent.refresh(name)
        self.assertEqual(outcome['outcome'], 'failed', outcome)
        self.assertRegex(outcome['error'], sentence)
        self.assertEqual(self.read('out/' + name) if before is not None else None, before)


class Elsewhere(Case):
    """F15: staging's pair (rev 9) was taken at prod's path, and prod's rev 6 was refused for ever."""

    def test_stagings_pair_at_prods_path(self):
        self.show('/prod.yaml', self.sign(b'stage: prod\nn: 5\n', 'rev=5 path=/prod.yaml'))
        self.show('/staging.yaml', staging := self.sign(b'stage: staging\n', 'rev=9 path=/staging.yaml'))
        self.start(self.one('prod'), self.one('staging')).log.wait('published config=prod')
        self.show('/prod.yaml', staging)
        self.refused('prod', '/prod.yaml: the signature by the key [0-9A-F]{16} is for something else: it says path=/staging.yaml, and this is path=/prod.yaml')
        self.show('/prod.yaml', good := self.sign(b'stage: prod\nn: 6\n', 'rev=6 path=/prod.yaml'))
        self.taken('prod', good[0])

    def test_a_pair_that_says_nothing_where_the_key_is_shared(self):
        self.show('/prod.yaml', self.sign(b'n: 5\n', 'rev=5 path=/prod.yaml'))
        self.show('/staging.yaml', self.sign(b'n: 1\n', 'rev=9 path=/staging.yaml'))
        self.start(self.one('prod'), self.one('staging')).log.wait('published config=prod')
        self.show('/prod.yaml', self.sign(b'stage: staging\n', 'rev=9'))
        self.refused('prod', 'does not say what it is for: path=/prod.yaml is required')
        self.show('/prod.yaml', self.sign(b'stage: staging\n', 'rev=9 config=prod'))
        self.refused('prod', 'path=/prod.yaml is required')
        self.show('/prod.yaml', self.sign(b'n: 6\n', 'rev=6 path=/prod.yaml'))
        self.taken('prod', b'n: 6\n')

    def test_on_a_host_that_does_not_know_of_staging(self):
        """Nothing is demanded here; what it names counts all the same."""
        self.show('/prod.yaml', self.sign(b'n: 5\n', 'rev=5'))
        self.start(self.one('prod')).log.wait('published config=prod')
        for comment in ('rev=9 path=/staging.yaml', 'rev=9 config=staging', 'rev=9 config=prod path=/staging.yaml', 'rev=9 path=/prod.yaml config=staging',
                        'rev=9 path=/prod.yaml/', 'rev=9 path=//prod.yaml', 'rev=9 path=/PROD.yaml', 'rev=9 path=/%70rod.yaml'):
            self.show('/prod.yaml', self.sign(b'stage: staging\n', comment))
            self.refused('prod', 'is for something else: it says ')
        self.show('/prod.yaml', self.sign(b'n: 6\n', 'rev=6 path=/prod.yaml config=prod'))
        self.taken('prod', b'n: 6\n')

    def test_bound_to_the_config(self):
        self.show('/v1', self.sign(b'n: 1\n', 'config=prod rev=1'))
        self.start(self.one('prod', 'bind: config', ['/v1']), self.one('staging', 'bind: config', ['/v1'])).log.wait('published config=prod')
        self.refused('staging', 'it says config=prod, and this is config=staging')
        self.show('/v1', self.sign(b'n: 2\n', 'path=/v1 rev=2'))
        self.refused('prod', 'does not say what it is for: config=prod is required')
        self.show('/v1', self.sign(b'n: 2\n', 'config=staging rev=2'))
        self.refused('prod', 'it says config=staging')
        self.taken('staging', b'n: 2\n')

    def test_one_layer_in_the_place_of_the_other(self):
        base, web = self.sign(b'tls: false\n', 'rev=1 path=/base.yaml'), self.sign(b'tls: true\n', 'rev=1 path=/web.yaml')
        self.show('/base.yaml', base)
        self.show('/web.yaml', web)
        self.start(self.one('web', paths=['/base.yaml', '/web.yaml'])).log.wait('published config=web')
        self.show('/web.yaml', base)
        self.refused('web', '/web.yaml: .* it says path=/base.yaml')
        self.show('/web.yaml', web)
        self.show('/base.yaml', web)
        self.refused('web', '/base.yaml: .* it says path=/web.yaml')

    def test_a_config_that_comes_to_share_a_key_demands_it_at_once(self):
        self.show('/prod.yaml', self.sign(b'n: 1\n', 'rev=1'))
        self.start(self.one('prod')).log.wait('published config=prod')
        self.show('/staging.yaml', self.sign(b'n: 1\n', 'rev=1 path=/staging.yaml'))
        self.write('pullet.yaml', self.settings(self.one('prod'), self.one('staging')))
        self.agent.signal(signal.SIGHUP)
        self.agent.log.wait('published config=staging')
        self.show('/prod.yaml', self.sign(b'n: 2\n', 'rev=2'))
        self.refused('prod', 'path=/prod.yaml is required')


class Old(Case):
    def test_an_old_pair(self):
        old, new = self.sign(b'n: 1\n', 'rev=1'), self.sign(b'n: 2\n', 'rev=2')
        self.show('/web.yaml', new)
        self.start(self.one('web')).log.wait('published config=web')
        self.show('/web.yaml', old)
        self.refused('web', 'signed as rev=1, but rev=2 was accepted before')
        self.show('/web.yaml', (new[0], old[1]))
        self.refused('web', 'is not of this document')
        self.show('/web.yaml', self.sign(b'n: 0\n', ''))
        self.refused('web', 'signed without rev=, but rev=2 was accepted before')

    def test_one_without_a_rev_where_it_is_required(self):
        self.show('/web.yaml', self.sign(b'n: 1\n', 'rev=0'))
        self.start(self.one('web', 'rev: required')).log.wait('published config=web')
        self.show('/web.yaml', self.sign(b'n: 0\n', 'timestamp:1'))
        self.refused('web', 'has no rev=, which is required')

    def test_the_highest_rev_there_is_and_the_way_out(self):
        self.show('/web.yaml', self.sign(b'n: 5\n', 'rev=5'))
        self.start(self.one('web')).log.wait('published config=web')
        self.show('/web.yaml', self.sign(b'n: 666\n', f'rev={HIGHEST}'))
        self.taken('web', b'n: 666\n')
        self.show('/web.yaml', self.sign(b'n: 6\n', 'rev=6'))
        self.refused('web', f'signed as rev=6, but rev={HIGHEST} was accepted before.*pullet refresh web --forget-rev')
        code, out, err = attack.run(harness.PULLET, 'refresh', 'web', '--forget-rev', '--wait', '--socket', self.path('run/control.sock'))
        self.assertEqual((code, err), (0, ''), out)
        self.agent.log.wait('the revs of signatures are forgotten.*config=web by=')
        self.assertEqual(self.read('out/web'), b'n: 6\n')
        self.agent.signal(signal.SIGKILL)
        self.agent.wait()
        self.start(self.one('web'))
        self.show('/web.yaml', self.sign(b'n: 5\n', 'rev=5'))
        self.refused('web', 'signed as rev=5, but rev=6 was accepted before')
        self.show('/web.yaml', self.sign(b'n: 7\n', 'rev=7'))
        self.taken('web', b'n: 7\n')

    def test_a_key_that_others_have_got(self):
        """Old key, both, new key only; the rev goes on."""
        self.show('/web.yaml', self.sign(b'n: 1\n', 'rev=1'))
        self.start(self.one('web')).log.wait('published config=web')
        self.show('/web.yaml', self.sign(b'n: 2\n', 'rev=2', 'new'))
        self.refused('web', 'is not by one of the public keys')
        at = self.reload('old', 'new')
        self.agent.log.wait('published config=web', at)
        self.assertEqual(self.read('out/web'), b'n: 2\n')
        for key in ('old', 'new'):
            self.show('/web.yaml', self.sign(b'n: 1\n', 'rev=1', key))
            self.refused('web', 'signed as rev=1, but rev=2 was accepted before')
        self.show('/web.yaml', self.sign(b'n: 3\n', 'rev=3'))
        self.taken('web', b'n: 3\n')
        self.reload('new')
        self.show('/web.yaml', self.sign(b'n: 666\n', 'rev=666'))
        self.refused('web', 'is not by one of the public keys')
        self.show('/web.yaml', self.sign(b'n: 2\n', 'rev=2', 'new'))
        self.refused('web', 'signed as rev=2, but rev=3 was accepted before')
        self.show('/web.yaml', self.sign(b'n: 4\n', 'rev=4', 'new'))
        self.taken('web', b'n: 4\n')

    def reload(self, *keys):
        at = self.agent.log.count
        self.write('pullet.yaml', self.settings(self.one('web', keys=keys)))
        self.agent.signal(signal.SIGHUP)
        self.agent.log.wait('the new configuration is applied', at)
        return at


class Changed(Case):
    def setUp(self):
        super().setUp()
        self.show('/web.yaml', self.sign(b'n: 5\n', 'rev=5'))
        self.start(self.one('web')).log.wait('published config=web')

    def tearDown(self):
        self.show('/web.yaml', self.sign(b'n: 6\n', 'rev=6 path=/web.yaml config=web'))
        self.taken('web', b'n: 6\n')

    def test_comments_that_nobody_signed(self):
        document, good = self.sign(b'n: 9\n', 'rev=9 path=/other.yaml')
        lines = good.split(b'\n')
        for comment in (b'rev=9 path=/web.yaml', b'rev=9', b'', b'rev=9 path=/other.yaml ', b'rev=9 path=/other.yaml\0', b'rev=9\tpath=/other.yaml',
                        b'rev=9 path=/other.yaml rev=10', b'rev=9 path=/web.yaml\xe2\x80\x8b'):
            self.show('/web.yaml', (document, b'\n'.join([*lines[:2], b'trusted comment: ' + comment, *lines[3:]])))
            self.refused('web', 'another trusted comment|holds a NUL byte')
        for changed in (b'\n'.join([*lines[:2], b'trusted comment: rev=9 path=/web.yaml', *lines[2:]]), good + b'trusted comment: path=/web.yaml\n', good * 2,
                        b'\n' + good, good.replace(b'\n', b'\r'), b'path=/web.yaml\n' + good, b'\xef\xbb\xbf' + good):
            self.show('/web.yaml', (document, changed))
            self.refused('web', 'that is not a signature file of minisign')
        self.show('/web.yaml', (document, b'untrusted comment: path=/web.yaml rev=9 config=web\n' + b'\n'.join(lines[1:])))
        self.refused('web', 'it says path=/other.yaml')

    def test_words_that_stand_twice_or_are_something_else(self):
        for comment, sentence in (('rev=9 rev=9', 'rev= is given twice'), ('rev=18446744073709551616', 'rev= is not a number'), ('rev=-1', 'rev= is not a number'),
                                  ('rev=0x9', 'rev= is not a number'), ('rev=\u0669', 'rev= is not a number'), ('rev=9 path=/web.yaml path=/other.yaml', 'path= is given twice'),
                                  ('rev=9 config=web config=other', 'config= is given twice'), ('rev=9 config=we\u200bb', 'config= is not the name'),
                                  ('rev=9 config=w\u0435b', 'config= is not the name'), ('rev=9 path=/w\u0435b.yaml', r'it says path=\(not ASCII\)'),
                                  ('rev=9 path=web.yaml', 'path= is not a path'), ('rev=9 path=', 'path= is not a path'), ('rev=9 path=/web.yaml?x', 'path= is not a path'),
                                  ('\uff52ev=9', 'without rev='), ('REV=9', 'without rev='), ('xrev=9', 'without rev=')):
            self.show('/web.yaml', self.sign(b'n: 9\n', comment))
            self.refused('web', sentence)

    def test_files_of_other_sizes(self):
        document, good = self.sign(b'n: 9\n', 'rev=9')
        for signature in (b'', b'\n', good[:-2], good[:100], good + b' ' * 5000, b'A' * 4097, b'A' * (1 << 20)):
            self.show('/web.yaml', (document, signature))
            self.refused('web', '/web.yaml')
        self.show('/web.yaml', (b'n: 9\n', self.sign(b'', 'rev=9')[1]))
        self.refused('web', 'is not of this document')
        self.show('/web.yaml', self.sign(b'', 'rev=9'))
        self.refused('web', 'empty')

    def test_the_older_kind_of_signature_for_the_newer(self):
        document, good = self.sign(b'n: 9\n', 'rev=9')
        lines = good.split(b'\n')
        self.assertEqual(lines[1][:2], b'RU')
        other = b'\n'.join([lines[0], b'RW' + lines[1][2:], *lines[2:]])
        self.show('/web.yaml', (document, other))
        self.refused('web', 'is not of this document')
        self.show('/web.yaml', (hashlib.blake2b(document).digest(), other))
        self.refused('web', 'invalid YAML|sign it without -l')


if __name__ == '__main__':
    harness.main()
