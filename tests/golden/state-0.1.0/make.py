#!/usr/bin/env python3
"""Makes the state directory beside this file with given programs of 0.1.0: make.py BUILD, where pulletd and pullet lie.

Every config of settings.json has been published, and then decided about; test_golden.py says how each is to be found again.
"""
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
if __name__ == '__main__':
    os.environ['PULLET_BUILD'] = os.path.abspath(sys.argv[1])
    sys.path.insert(0, os.path.join(HERE, '..', '..', 'integration'))
import harness  # noqa: E402
from harness import Agent  # noqa: E402
from test_change import Origin  # noqa: E402

KEY = os.path.join(HERE, '..', 'minisign', 'test.key')
FIRST = {'/plain.yaml': b'n: 1\n', '/pinned.yaml': b'n: 1\n', '/rejected.yaml': b'n: 1\n', '/back.yaml': b'n: 1\n', '/harmful.yaml': b'n: 1\n',
         '/overridden.yaml': b'db: {port: 1, host: a}\n', '/one.yaml': b'one: 1\n', '/two.conf': b'two\n', '/base.yaml': b'base: 1\nn: 1\n',
         '/top.yaml': b'n: 2\n', '/made.yaml': b'n: 1\n'}


class Maker(harness.Case):
    def settings(self, url):
        with open(os.path.join(HERE, 'settings.json'), encoding='ascii') as f:
            return f.read().replace('@DIR@', self.dir).replace('@URL@', url)

    def sign(self, document, rev):
        self.write('doc', document)
        subprocess.run(['minisign', '-S', '-s', KEY, '-m', self.path('doc'), '-t', f'rev={rev}'], check=True, stdout=subprocess.DEVNULL)
        self.origin.put('/signed.yaml', document)
        self.origin.put('/signed.yaml.minisig', self.read('doc.minisig'))

    def offer(self, name, document):
        """The server has it; it is pulled. Whatever becomes of it."""
        self.origin.put(f'/{name}.yaml', document)
        self.agent.refresh(name)

    def ledger(self, name):
        path = self.path(f'state/{name}/ledger.json')
        return self.read(path).decode() if os.path.exists(path) else ''

    def runTest(self):
        os.makedirs(self.path('out'))
        self.origin = Origin(self)
        for path, document in FIRST.items():
            self.origin.put(path, document)
        self.sign(b'n: 1\n', 6)
        self.agent = Agent(self, self.settings(self.origin.url))
        self.agent.ready()
        for name in ('plain', 'pinned', 'rejected', 'back', 'harmful', 'overridden', 'signed', 'set', 'layered', 'made'):
            self.agent.log.wait(f'published config={name} generation=1')
        self.until(lambda: all('"proven":"1"' in self.ledger(n) for n in ('plain', 'harmful')), 'the probes')
        self.offer('plain', b'n: 2\n')
        self.until(lambda: '"told":"2","proven":"2"' in self.ledger('plain'), lambda: self.ledger('plain'))
        self.offer('pinned', b'n: 2\n')
        self.agent.cli('pin', 'pinned', '--reason', 'exam week', check=0)
        self.offer('pinned', b'n: 3\n')
        self.offer('rejected', b'x: 1\n')
        self.offer('back', b'n: 2\n')
        self.agent.cli('rollback', 'back', '--reason', 'slow', check=0)
        self.offer('harmful', b'n: bad\n')
        self.agent.log.wait('config=harmful generation=3')
        self.until(lambda: '"proven":"3"' in self.ledger('harmful'), lambda: self.ledger('harmful'))
        self.agent.cli('override', 'overridden', 'db.port=5', '--for', '300000h', '--reason', 'a try', check=0)
        self.sign(b'n: 2\n', 7)
        self.agent.refresh('signed')
        self.agent.stop()
        shutil.rmtree(os.path.join(HERE, 'state'), ignore_errors=True)
        shutil.copytree(self.path('state'), os.path.join(HERE, 'state'), ignore=shutil.ignore_patterns('.lock'))


if __name__ == '__main__':
    result = harness.unittest.TextTestRunner().run(Maker())
    sys.exit(0 if result.wasSuccessful() else 1)
