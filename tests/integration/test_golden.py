"""The state directory that version 0.1.0 left: today's agent finds everything in it as it was decided, and goes on."""
import json
import os
import shutil
import signal
import sys

import harness
import test_change

GOLDEN = os.path.join(harness.ROOT, 'tests/golden/state-0.1.0')
sys.path.insert(0, GOLDEN)
from make import Maker  # noqa: E402

# of each config: its generation, and what its file has
CURRENT = {'plain': (2, b'n: 2\n'), 'pinned': (2, b'n: 2\n'), 'rejected': (1, b'n: 1\n'), 'back': (3, b'n: 1\n'), 'harmful': (3, b'n: 1\n'),
           'overridden': (2, {'db': {'port': 5, 'host': 'a'}}), 'signed': (2, b'n: 2\n'), 'set': (1, None),
           'layered': (1, {'base': 1, 'n': 2}), 'made': (1, {'n': 1})}
BAD = r'damaged|cannot be read|does not fit|not known|set aside|dropped|lost'


class Golden(Maker):
    """With the helpers of the one who made it, and tests of its own."""
    runTest = None

    def setUp(self):
        super().setUp()
        shutil.copytree(os.path.join(GOLDEN, 'state'), self.path('state'))
        for place, _, files in os.walk(self.path('state')):  # git knows no such modes
            os.chmod(place, 0o700)
            for name in files:
                os.chmod(os.path.join(place, name), 0o600)
        os.makedirs(self.path('out'))

    def serve(self):
        """The server is up: what it has is new, but where a decision holds it."""
        self.origin = test_change.Origin(self)
        new = {'plain': b'n: 3\n', 'pinned': b'n: 3\n', 'rejected': b'x: 1\n', 'back': b'n: 2\n', 'harmful': b'n: bad\n',
               'overridden': b'db: {port: 2, host: b}\n', 'one': b'one: 2\n', 'base': b'base: 2\n', 'top': b'n: 3\n', 'made': b'n: 2\n'}
        for name, document in new.items():
            self.origin.put(f'/{name}.yaml', document)
        self.origin.put('/two.conf', b'two\n')
        self.sign(b'n: 3\n', 6)

    def begin(self, up=False):
        """An agent on the copy, while its server is down."""
        if up:
            self.serve()
        else:
            self.origin = test_change.Origin(self)
            self.origin.close()
        self.agent = harness.Agent(self, self.settings(self.origin.url))
        self.agent.ready()

    def shown(self, name):
        """As in CURRENT."""
        status = self.agent.status(name)
        data = None if name == 'set' else self.read(f'out/{name}.{"txt" if name == "made" else "yaml"}')
        if isinstance(CURRENT[name][1], dict):
            data = test_change.yaml.safe_load(data)
        return status['generation'], data

    def check_current(self):
        for name, wanted in CURRENT.items():
            with self.subTest(name=name):
                self.assertEqual(self.shown(name), wanted)
        self.assertEqual((self.read('out/set/one.yaml'), self.read('out/set/two.conf')), (b'one: 1\n', b'two\n'))

    def check_decisions(self):
        self.assertEqual(self.agent.status('pinned')['pin'], {'by': 'uid 0', 'reason': 'exam week', 'until_ms': None})
        self.assertEqual([(o['key'], o['by'], o['reason']) for o in self.agent.status('overridden')['overrides']], [('db.port', 'uid 0', 'a try')])
        for name, by, generation in (('back', 'operator', 2), ('harmful', 'probe', 2)):
            versions = json.loads(self.agent.cli('history', name, '--json', check=0)[1])['versions']
            self.assertEqual({v['generation']: v.get('rejected', {}).get('by') for v in versions}, {3: None, generation: by, 1: None})
        self.assertEqual(json.loads(self.ledger('pinned'))['pin']['sha256'], self.agent.status('pinned')['sha256'], 'from now on')
        self.assertEqual(self.agent.status('plain')['reload']['notified'], 2)
        self.assertEqual([json.loads(self.ledger(name))['proven'] for name in ('plain', 'harmful')], ['2', '3'])

    def check_nothing_is_bad(self):
        self.assertEqual([f for _, _, files in os.walk(self.path('state')) for f in files if f.endswith('.bad')], [])
        self.assertEqual([line for line in self.agent.log.seen if test_change.re.search(BAD, line)], [])

    def test_everything_is_as_it_was_decided_while_the_server_is_down(self):
        self.begin()
        for name in CURRENT:
            self.agent.refresh(name)
        self.check_current()
        self.check_decisions()
        self.check_nothing_is_bad()
        self.assertFalse(os.path.exists(self.path('notified')) or os.path.exists(self.path('probed')), 'it was, by 0.1.0')
        self.assertFalse(os.path.exists(self.path('made')), 'what a program made is kept')
        self.agent.stop()

    def pull(self, name):
        answer = self.agent.refresh(name)
        return answer['outcome'], answer['error']

    def test_a_pull_goes_on_where_it_left(self):
        self.begin(up=True)
        for name in ('plain', 'overridden', 'set', 'layered', 'made'):
            self.agent.log.wait(f'published config={name} generation={CURRENT[name][0] + 1}')
        self.assertEqual(self.pull('plain')[0], 'unchanged')
        self.assertEqual(self.shown('overridden'), (3, {'db': {'port': 5, 'host': 'b'}}))
        self.assertEqual(self.shown('layered'), (2, {'base': 2, 'n': 3}))
        self.assertEqual(self.read('out/set/one.yaml'), b'one: 2\n')
        for name, outcome, why in (('pinned', 'held', 'pinned'), ('back', 'held', 'rolled back by uid 0: slow'), ('harmful', 'failed', 'exited with 1'),
                                   ('rejected', 'failed', 'the required key n is not there'), ('signed', 'failed', 'rev=6, but rev=7 was accepted before')):
            with self.subTest(name=name):
                got = self.pull(name)
                self.assertEqual(got[0], outcome)
                self.assertIn(why, got[1])
                self.assertEqual(self.shown(name), CURRENT[name])
        self.sign(b'n: 3\n', 7)
        self.assertEqual(self.pull('signed')[0], 'published')
        self.agent.cli('unpin', 'pinned', check=0)
        self.agent.log.wait('published config=pinned generation=3')
        self.agent.cli('override', 'overridden', 'db.port', '--remove', check=0)
        self.assertEqual(self.shown('overridden'), (4, {'db': {'port': 2, 'host': 'b'}}))
        self.check_nothing_is_bad()
        self.agent.stop()

    def test_what_it_writes_itself_is_read_the_same(self):
        self.begin()
        self.agent.cli('override', 'layered', 'n=7', '--for', '1h', check=0)
        for name in ('plain', 'pinned', 'signed'):  # a ledger of today
            self.agent.cli('suspend', name, check=0)
        self.agent.cli('rollback', 'plain', '1', '--reason', 'slow', check=0)
        self.until(lambda: str(json.loads(self.ledger('plain'))['told']) == '3', 'the application was not notified')
        before = [self.facts(name) for name in CURRENT]
        self.agent.signal(signal.SIGKILL)
        self.agent.wait()
        self.begin()
        self.assertEqual([self.facts(name) for name in CURRENT], before)
        self.assertEqual(self.agent.status('layered')['generation'], 2)
        self.assertEqual(self.shown('plain'), (3, b'n: 1\n'))
        self.check_nothing_is_bad()
        self.agent.stop()

    def test_what_a_newer_version_wrote_is_not_lost_and_that_is_said(self):
        ledger = json.loads(self.ledger('pinned'))
        self.write('state/pinned/ledger.json', json.dumps({'later': {'a': [1]}, **ledger}))
        path = self.path('state/plain/00000000000000000002')
        _, facts, body = self.read(path).split(b'\n', 2)
        rest = json.dumps({**json.loads(facts), 'later': 1}).encode() + b'\n' + body
        newer = b'pullet-state 1 ' + test_change.hashlib.sha256(rest).hexdigest().encode() + b'\n' + rest
        self.write(path, newer)
        self.begin()
        self.agent.log.wait('the ledger is of a newer version: .*config=pinned')
        self.agent.cli('suspend', 'pinned', check=0)
        self.agent.cli('pin', 'plain', check=0)
        self.check_current()
        self.assertEqual((json.loads(self.ledger('pinned'))['later'], self.read(path)), ({'a': [1]}, newer))
        self.agent.stop()

    def facts(self, name):
        """All that is to be the same after a restart."""
        status = self.agent.status(name)
        versions = json.loads(self.agent.cli('history', name, '--json', check=0)[1])['versions']
        return {**{key: status.get(key) for key in ('generation', 'version', 'sha256', 'pin', 'suspension', 'overrides')}, 'versions': versions,
                'ledger': self.ledger(name), 'file': None if name == 'set' else self.shown(name)[1]}


del Maker  # it is no test of this module

if __name__ == '__main__':
    harness.main()
