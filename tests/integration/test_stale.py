"""When what stands is stale: known over restarts and reloads, and never because of what an operator decided."""
import os
import shutil
import signal
import sys
import tempfile
import threading

import harness
from harness import Agent
from test_operate import Case as Operated

# a sanitized library cannot be loaded into a plain interpreter; the agent under test may be sanitized
os.environ['PULLET_LIBRARY'] = os.path.join(harness.ROOT, 'build', 'libpullet.so.0')
sys.path.insert(0, os.path.join(harness.ROOT, 'lib', 'python'))

STALE = 1.6  # seconds: interval x backoff_bound + timeout of the configuration below
QUICK = '    interval: 300ms\n    backoff_bound: 2\n    timeout: 1s\n'


@harness.needs('files in memory')
class Case(Operated):
    def setUp(self):
        harness.Case.setUp(self)
        self.dir = tempfile.mkdtemp(prefix='pullet-test-', dir=harness.memory())  # as /run is: what is there is of this boot
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.origin, self.url, _ = self.serve()
        self.put('n: 1\n')
        self.agent = Agent(self, self.config(self.url + '/web.yaml', QUICK, agent='  listen: 127.0.0.1:0\n'))
        self.agent.log.wait('published config=web generation=1')

    def runs(self, more):
        """As many runs have ended well as fill more than the time after which what stands is stale."""
        want = self.agent.status()['runs']['success'] + more
        self.reached(lambda s: s['runs']['success'] >= want)

    def reached(self, ready):
        limit = threading.Event()
        timer = threading.Timer(harness.DEADLINE, limit.set)
        timer.start()
        while not ready(status := self.agent.status()):
            self.assertFalse(limit.wait(0.03), status)  # the agent tells nobody how old it is, so it is asked
        timer.cancel()
        return status

    def is_fresh(self):
        status = self.agent.status()
        self.assertEqual((status['state'], status['last_error']), ('ok', None))
        self.assertLess(status['age_ms'], 1000 * STALE)
        self.assertEqual(self.file(), {'n': 1})
        self.do('status', '--check')


class Suspended(Case):
    """Nobody asks the server, as somebody decided: that is no staleness, for readers neither; what follows is."""

    def reader(self):
        import pullet
        config = pullet.open(self.path('run/web.snap'))
        self.addCleanup(config.close)
        return config

    def is_left_alone(self):
        status = self.reached(lambda s: s['age_ms'] > 2500 * STALE)
        self.assertEqual((status['state'], status['last_error']), ('ok', None))
        self.assertFalse(self.reader().stale)
        self.do('status', '--check')

    def test_a_suspension(self):
        self.do('suspend', 'web')
        self.is_left_alone()
        self.again(signal.SIGKILL)
        self.is_left_alone()
        self.origin.close()
        self.do('resume', 'web')
        status = self.reached(lambda s: s['last_error'])
        self.assertEqual(status['state'], 'failing', 'it has as long as any')
        self.assertFalse(self.reader().stale)
        self.reached(lambda s: s['state'] == 'stale')
        self.assertTrue(self.reader().stale)
        self.agent.stop()


class Decided(Case):
    """Pulls go on and are answered: what is decided is neither failing nor stale, as long as it may last, also after a restart."""

    def held(self, by):
        self.runs(8)
        self.assertEqual(self.agent.status()['rejected']['by'], by)
        self.is_fresh()
        self.again(signal.SIGKILL)
        self.is_fresh()
        self.runs(8)
        self.is_fresh()
        self.agent.stop()

    def test_a_pin(self):
        self.do('pin', 'web')
        self.put('n: 2\n')
        self.held('pin')

    def test_a_rollback(self):
        self.publish('n: 2\n')
        self.do('rollback', 'web')
        self.held('operator')

    def test_a_rollout(self):
        self.agent.stop()
        text = self.read('pullet.yaml').decode().replace('    interval', '    rollout: {server: main, path: /rollout.yaml}\n    interval')
        self.put('percent: 0\n', 'rollout.yaml')
        self.agent = Agent(self, text + f'servers:\n  main: {{urls: ["{self.url}"]}}\n')
        self.agent.log.wait('started from the last known good')
        self.put('n: 2\n')
        self.agent.log.wait('not rolled out to this host yet')
        self.held('rollout')


class Known(Case):
    """When the server last confirmed it, over the end of the process."""

    def end_and_lose_the_server(self):
        self.runs(6)
        self.before = self.agent.status()['confirmed_ms']
        self.agent.stop()
        self.origin.close()

    def test_a_restart_remembers_it(self):
        self.end_and_lose_the_server()
        self.agent = Agent(self, self.read('pullet.yaml').decode())
        status = self.agent.status()
        self.assertGreaterEqual(status['confirmed_ms'], self.before - 50)
        self.assertLess(status['confirmed_ms'], self.before + 1000)
        self.reached(lambda s: s['state'] == 'stale')
        self.assertEqual(self.file(), {'n': 1})
        self.agent.stop()

    def test_so_does_a_reload_that_changes_the_config(self):
        self.runs(1)
        before = self.agent.status()['confirmed_ms']
        self.origin.signal(signal.SIGSTOP)
        self.write('pullet.yaml', self.read('pullet.yaml').replace(b'timeout: 1s', b'timeout: 1500ms'))
        self.agent.signal(signal.SIGHUP)
        self.agent.log.wait('changed="1: web"')
        self.assertGreaterEqual(self.agent.status()['confirmed_ms'], before - 50)
        self.origin.signal(signal.SIGCONT)
        self.agent.stop()

    def test_where_nobody_knows_it_counts_from_the_start(self):
        """As after a reboot: it is not called stale because it has been good for weeks."""
        self.end_and_lose_the_server()
        threading.Event().wait(STALE)  # the time is what is tested
        os.unlink(self.path('run/web.gen'))
        self.agent = Agent(self, self.read('pullet.yaml').decode())
        status = self.reached(lambda s: s['state'] != 'ok')
        self.assertEqual((status['state'], status['confirmed_ms']), ('failing', None))
        self.reached(lambda s: s['state'] == 'stale')
        self.agent.stop()


if __name__ == '__main__':
    harness.main()
