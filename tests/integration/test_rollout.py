"""`pullet rollout`: a version goes to a fleet of real agents in waves, by the rollout document in a real etcd, and is aborted by their receipts.

PULLET_ROLLOUT_AGENTS=300 PULLET_BUILD=build tests/integration/test_rollout.py Agents   runs it with as many agents.
"""
import hashlib
import json
import os
import re
import signal
import subprocess
import time

import etcd
import harness
from harness import PULLET, PULLETD, Program

PREFIX = '/pullet/agents/'
DOCUMENT = '/web.rollout'
AGENTS = int(os.environ.get('PULLET_ROLLOUT_AGENTS', '20'))
INTERVAL = '500ms' if AGENTS <= 20 else '5s'
PATIENCE = harness.DEADLINE * (1 if AGENTS <= 20 else 8)


def v(n):
    """The ETag of `pullet serve` for the document `n: N`, without its quotes."""
    return hashlib.sha256(f'n: {n}\n'.encode()).hexdigest()[:32]


def place(host, salt='web'):
    return int.from_bytes(hashlib.sha256(f'{salt}\n{host}'.encode()).digest()[:8], 'big') / 2**64 * 100


class Case(harness.Case):
    def setUp(self):
        super().setUp()
        self.etcd = etcd.Etcd(self)

    def where(self):
        return ['--etcd', self.etcd.url, '--path', DOCUMENT]

    def rollout(self, verb, *args, check=0):
        """(stdout, stderr) of `pullet rollout VERB web ARGS`, which must end so."""
        done = subprocess.run([PULLET, 'rollout', verb, 'web', *self.where(), *args], capture_output=True, text=True, timeout=harness.DEADLINE, check=False)
        self.assertEqual(done.returncode, check, f'{verb} {args}: {done.stdout}{done.stderr}')
        return done.stdout, done.stderr

    def drive(self, verb, *args):
        """`pullet rollout start` or `resume`, in the foreground of its own."""
        p = Program([PULLET, 'rollout', verb, 'web', *self.where(), *args], read='both')
        self.addCleanup(p.close)
        return p

    def ends(self, driver, code, pattern):
        """Until the driver ends: so, and with such a line."""
        lines = '\n'.join(driver.log.drain()) if driver.wait(PATIENCE) is not None else ''
        self.assertEqual(driver.wait(), code, lines)
        self.assertRegex(lines, pattern)

    def document(self):
        return json.loads(self.etcd.get(DOCUMENT))

    def status(self):
        return json.loads(self.rollout('status', '--json')[0])


class Agents(Case):
    """A fleet of pulletd processes."""

    def setUp(self):
        super().setUp()
        _, self.url, _ = self.serve()
        self.write('schema.json', '{"properties": {"n": {"maximum": 100}}}')
        self.publish(1)
        self.hosts = {}
        for i in range(AGENTS):
            self.start_host(f'h{i}')
        self.until_state(lambda s: s['fleet']['on_it'] == AGENTS == s['fleet']['count'])

    def publish(self, n):
        self.write('www/web.yaml', f'n: {n}\n')

    def start_host(self, name):
        directory = self.path(name)
        self.write(f'{name}/pullet.yaml', f'''agent:
  state_dir: {directory}/state
  runtime_dir: {directory}/run
  log: {{level: info, format: text}}
servers:
  main: {{kind: etcd, urls: ["{self.etcd.url}"]}}
report: {{server: main, host: {name}}}
configs:
  web:
    url: {self.url}/web.yaml
    file: {directory}/web.yaml
    schema: {self.path("schema.json")}
    rollout: {{server: main, path: {DOCUMENT}}}
    interval: {INTERVAL}
''')
        with open(self.path(f'{name}/log'), 'wb') as log:
            process = subprocess.Popen([PULLETD, '-c', f'{directory}/pullet.yaml'], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.hosts[name] = process
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)

    def logs(self, name):
        return self.read(f'{name}/log').decode()

    def below(self, percent):
        return {h for h in self.hosts if place(h) < percent}

    def until_state(self, wanted):
        """The first `pullet rollout status --json` that `wanted` is true of."""
        end = time.monotonic() + PATIENCE
        while True:
            done = subprocess.run([PULLET, 'rollout', 'status', 'web', *self.where(), '--json'], capture_output=True, text=True, check=False)
            state = json.loads(done.stdout) if done.returncode == 0 else {}
            if state and wanted(state):
                return state
            self.assertLess(time.monotonic(), end, f'{state} {done.stderr}')
            time.sleep(0.2)

    def running(self, n):
        """The hosts whose file has this version."""
        return {h for h in self.hosts if self.read(f'{h}/web.yaml') == f'n: {n}\n'.encode()}

    def test_a_good_version_a_pause_and_a_bad_version(self):
        # a good one: held until it is there, then wave by wave; etcd starts again in the middle, and an agent comes late
        driver = self.drive('start', '--waves', '20%,60%,100%', '--every', '1s')
        driver.log.wait('web: new versions are held back by all hosts: publish it now')
        self.publish(2)
        driver.log.wait(f'wave 1 of 3: {v(2)} goes to 20%: {len(self.below(20))} hosts?', timeout=PATIENCE)
        self.etcd.restart(0)
        self.start_host('late')
        driver.log.wait('wave 2 of 3: .* goes to 60%', timeout=PATIENCE)
        self.ends(driver, 0, rf'wave 3 of 3: {AGENTS + 1} of {AGENTS + 1} hosts run {v(2)}; the rollout is finished')
        self.assertEqual(self.running(2), set(self.hosts))
        self.assertEqual((self.document()['percent'], self.document()['plan']['state']), (100, 'finished'))

        # paused by another terminal, resumed, aborted by another one: no host beyond the first wave had it
        driver = self.drive('start', '--version', v(3), '--waves', '20%,100%', '--every', '1h')
        driver.log.wait('wave 1 of 2')
        self.publish(3)
        driver.log.wait('the next wave comes in 1h', timeout=PATIENCE)
        self.assertIn('paused at 20%', self.rollout('pause')[0])
        self.ends(driver, 1, r'paused by .* at 20%: `pullet rollout resume web` goes on')
        self.assertIn('is paused, at 20%', self.rollout('start', check=1)[1])
        driver = self.drive('resume')
        driver.log.wait('the next wave comes in 1h', timeout=PATIENCE)
        out, error = self.rollout('abort')
        self.assertEqual(out, 'web: aborted: no other host takes it\n')
        self.assertRegex(error, rf'{len(self.below(20))} hosts? runs? {v(3)}: put the version before back on its server')
        self.ends(driver, 1, 'aborted by ')
        self.assertEqual(self.running(3), self.below(20))
        self.publish(2)
        self.until_state(lambda s: s['waves'][0]['undecided'] == s['waves'][0]['hosts'] and s['outside']['hosts'] == 0)
        self.assertEqual(self.running(2), set(self.hosts))

        # a bad one is aborted by the receipts of its first wave, and the next version reaches all at once
        driver = self.drive('start', '--version', v(200), '--waves', '20%,100%', '--every', '1s', '--abort-at', '2%')
        driver.log.wait('wave 1 of 2')
        self.publish(200)
        self.ends(driver, 1, rf'aborted: \d+ of {len(self.below(20))} hosts? rejected it or rolled it back \(.*%, the limit is 2%\): \w+: schema: ')
        tried = {h for h in self.hosts if 'maximum 100' in self.logs(h)}
        self.assertTrue(tried and tried <= self.below(20), tried - self.below(20))
        self.assertEqual(self.running(2), set(self.hosts))
        self.assertIn('The rollout', self.rollout('status')[0].replace('web: the', 'The'))
        self.publish(4)
        self.until_state(lambda s: sum(x['versions'] and x['on_it'] == 0 for x in [s['fleet']]) and {h['version'] for h in s['fleet']['hosts']} == {v(4)})
        self.assertEqual(self.running(4), set(self.hosts))


if __name__ == '__main__':
    harness.main()
