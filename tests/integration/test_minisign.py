"""Signatures that the tool minisign makes, validated by agent/crypto/minisign.c (through verify_signature.c) and by the tool itself."""
import errno
import hashlib
import os
import random
import re
import shutil
import subprocess
import tempfile

import harness

SOURCES = [os.path.join(harness.ROOT, name) for name in ('tests/integration/verify_signature.c', 'agent/crypto/minisign.c', 'agent/crypto/base64.c', 'agent/crypto/digest.c',
                                                           'lib/buffer.c')]
SECOND_2026_12_31 = 1798675200
TAMPERED = 200


class Minisign(harness.Case):
    @classmethod
    def setUpClass(cls):
        cls.shared = tempfile.mkdtemp(prefix='pullet-test-')
        cls.addClassCleanup(shutil.rmtree, cls.shared, ignore_errors=True)
        cls.driver = os.path.join(cls.shared, 'verify')
        subprocess.run(['cc', '-std=c11', '-D_GNU_SOURCE', '-O1', '-g', '-iquote', harness.ROOT + '/agent', '-iquote', harness.ROOT, '-o', cls.driver, *SOURCES, '-lcrypto'], check=True)
        for name in ('old', 'new'):
            path = os.path.join(cls.shared, name)
            subprocess.run(['minisign', '-G', '-W', '-p', path + '.pub', '-s', path + '.key'], check=True, stdout=subprocess.DEVNULL)

    def key(self, name):
        return os.path.join(self.shared, name + '.pub')

    def key_id(self, name):
        with open(self.key(name), encoding='utf-8') as f:
            return re.search(r'public key (\w+)', f.readline())[1].rjust(16, '0')

    def sign(self, document, *options, key='new'):
        self.write('doc', document)
        subprocess.run(['minisign', '-S', '-s', os.path.join(self.shared, key + '.key'), '-m', self.path('doc'), *options],
                       check=True, stdout=subprocess.DEVNULL)
        return self.read('doc.minisig')

    def ours(self, *keys):
        p = subprocess.run([self.driver, self.path('doc'), self.path('doc.minisig'), *[self.key(k) for k in keys or ('new',)]],
                           check=False, capture_output=True, text=True)
        self.assertEqual((p.stderr, p.returncode), ('', 0 if p.stdout.startswith('good ') else 1), p.stdout)
        return p.stdout.strip()

    def tools(self, key='new'):
        p = subprocess.run(['minisign', '-V', '-q', '-m', self.path('doc'), '-p', self.key(key)], check=False, capture_output=True)
        return p.returncode == 0

    def facts(self, rev='none0', expires='none0', key='new'):
        return f'good key={self.key_id(key)} rev={rev} expires={expires}'

    def refused(self, error, sentence, *keys):
        said = self.ours(*keys)
        self.assertRegex(said, f'^error {error} .*{sentence}')

    def test_both_kinds_and_all_documents(self):
        documents = (b'', b'a: 1\n', bytes(1), bytes(62), bytes(65), bytes(range(256)) * 20000)
        for document in documents:
            for options, facts in (((), {}), (('-t', 'rev=7'), {'rev': '7'}),
                                   (('-t', 'for web\trev=18446744073709551615 expires=2026-12-31T00:00:00Z'),
                                    {'rev': '18446744073709551615', 'expires': str(SECOND_2026_12_31 * 1000)}),
                                   (('-t', ''), {}), (('-c', 'häß', '-t', 'é rev=0'), {'rev': '0'}),
                                   (('-t', f'expires={SECOND_2026_12_31}'), {'expires': str(SECOND_2026_12_31 * 1000)})):
                for kind in ((), ('-l',)):
                    with self.subTest(len=len(document), options=options, kind=kind):
                        self.sign(document, *kind, *options)
                        self.assertTrue(self.tools())
                        self.assertEqual(self.ours(), self.facts(**facts))
                        self.write('doc', document + b'x')
                        self.assertFalse(self.tools())
                        self.refused(errno.EBADMSG, 'is not of this document')

    def test_a_bad_rev_or_expiry_is_refused_however_well_signed(self):
        for comment in ('rev=', 'rev=-1', 'rev=18446744073709551616', 'rev=1 rev=2', 'rev=x'):
            self.sign(b'a: 1\n', '-t', comment)
            self.refused(errno.EINVAL, 'rev= ')
        for comment in ('expires=', 'expires=tomorrow', 'expires=2026-02-30T00:00:00Z', 'expires=0 expires=0'):
            self.sign(b'a: 1\n', '-t', comment)
            self.assertTrue(self.tools())
            self.refused(errno.EINVAL, 'expires= ')

    def test_a_new_key_beside_the_old_one(self):
        for key in ('old', 'new'):
            self.sign(b'a: 1\n', '-t', 'rev=3', key=key)
            self.assertEqual(self.ours('old', 'new'), self.facts(rev='3', key=key))
            self.assertEqual(self.ours('new', 'old'), self.facts(rev='3', key=key))
        self.refused(errno.EBADMSG, rf'{self.key_id("new")} is not by one of the public keys \({self.key_id("old")}\)', 'old')
        self.assertFalse(self.tools('old'))

    def test_windows_line_ends(self):
        signature = self.sign(b'a: 1\r\n', '-t', 'rev=3')
        self.write('doc.minisig', signature.replace(b'\n', b'\r\n'))
        self.assertTrue(self.tools())
        self.assertEqual(self.ours(), self.facts(rev='3'))

    def test_the_hash_of_a_signed_document_is_not_a_signed_document(self):
        """The tool takes it: no signature covers which kind it is."""
        document = b'a: 1\n'
        lines = self.sign(document, '-t', 'rev=3').split(b'\n')
        self.assertEqual(lines[1][:2], b'RU')
        self.write('doc', hashlib.blake2b(document).digest())
        self.write('doc.minisig', b'\n'.join([lines[0], b'RW' + lines[1][2:], *lines[2:]]))
        self.assertTrue(self.tools())
        self.refused(errno.EBADMSG, 'sign it without -l')
        self.sign(hashlib.blake2b(document).digest(), '-l')
        self.refused(errno.EBADMSG, 'sign it without -l')
        self.sign(hashlib.blake2b(document).digest())
        self.assertEqual(self.ours(), self.facts())

    def test_whatever_we_take_the_tool_takes(self):
        """Changes at random, larger ones than a bit too. The tool reads less strictly, so the reverse is not asked for."""
        seed = int(os.environ.get('PULLET_SEED', random.SystemRandom().randrange(1 << 32)))
        print(f'# PULLET_SEED={seed} repeats this', flush=True)
        rng, taken, refused_by_us_alone = random.Random(seed), 0, 0
        for step in range(TAMPERED):
            document = b'name: web\nport: %d\n' % step
            kind = rng.choice([(), ('-l',)])
            good = bytearray(self.sign(document, *kind, '-t', f'rev={step}'))
            self.assertEqual(self.ours(), self.facts(rev=str(step)))
            at, what = rng.randrange(len(good)), rng.randrange(6)
            if what == 0:
                good[at] ^= 1 << rng.randrange(8)
            elif what == 1:
                del good[at:at + rng.choice([1, 1, 4, 100])]
            elif what == 2:
                good[at:at] = rng.choice([b'\n', b'\r', b' ', b'=', b'A', b'\0', b'untrusted comment: '])
            elif what == 3:
                lines = bytes(good).split(b'\n')
                i, k = rng.randrange(5), rng.randrange(5)
                lines[i], lines[k] = lines[k], lines[i]
                good = bytearray(b'\n'.join(lines))
            elif what == 4:
                good = good[:at]
            else:
                good += rng.choice([b'\n', b'x', b'\r\n', bytes(good)])
            self.write('doc.minisig', bytes(good))
            ours, tools = self.ours(), self.tools()
            where = f'PULLET_SEED={seed} step {step}: {bytes(good)!r}'
            if ours.startswith('good'):
                taken += 1
                self.assertEqual(ours, self.facts(rev=str(step)), where)
                self.assertTrue(tools, where)
            else:
                refused_by_us_alone += tools
        print(f'# of {TAMPERED} changed files {taken} are good by both (what nobody signed had changed), '
              f'{refused_by_us_alone} by the tool alone', flush=True)
        self.assertGreater(taken, 0)
        self.assertLess(taken, TAMPERED / 2)


if __name__ == '__main__':
    harness.main()
