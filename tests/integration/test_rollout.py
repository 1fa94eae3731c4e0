"""`pullet rollout`: a version goes to a fleet of real agents in waves, by the rollout document in a real etcd, and is aborted by their receipts.

PULLET_ROLLOUT_AGENTS=300 PULLET_BUILD=build tests/integration/test_rollout.py Agents   runs it with as many agents.
"""
import hashlib
import json
import os
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
        # nobody takes another version meanwhile, not where the waves have come either
        self.publish(5)
        self.until_state(lambda s: all(h['state'] == 'held' and h['rejected'] == v(5) for h in s['fleet']['hosts']))
        self.assertEqual((self.running(3), self.running(5)), (self.below(20), set()))
        self.publish(3)
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

        # its bytes are held as well, whatever name their server gives them later
        self.assertIn(hashlib.sha256(b'n: 3\n').hexdigest()[:16], self.document()['version'])

        # a bad one is aborted by the receipts of its first wave, and the next version reaches all at once
        driver = self.drive('start', '--version', v(200), '--waves', '20%,100%', '--every', '1s', '--abort-at', '2%')
        driver.log.wait('wave 1 of 2')
        self.publish(200)
        self.ends(driver, 1, rf'aborted: \d+ of {len(self.below(20))} hosts? rejected it or rolled it back \(.*%, the limit is 2%\): \w+: schema: ')
        tried = {h for h in self.hosts if 'maximum 100' in self.logs(h)}
        self.assertTrue(tried and tried <= self.below(20), tried - self.below(20))
        self.assertEqual(self.running(2), set(self.hosts))
        self.assertIn(f'web: the rollout of {v(200)} is aborted, wave 1 of 2, since ', self.rollout('status')[0])
        self.publish(4)
        self.until_state(lambda s: {h['version'] for h in s['fleet']['hosts']} == {v(4)})
        self.assertEqual(self.running(4), set(self.hosts))


class Driver(Case):
    """The command alone: the test writes the receipts that agents would, so that nothing waits for their pace."""

    def setUp(self):
        super().setUp()
        self.hosts = {f'h{i}': lease for i, lease in enumerate(self.etcd.leases(20))}
        self.half = sorted(h for h in self.hosts if place(h) < 50)
        self.receive(self.hosts, version='v1')

    def receive(self, hosts, **web):
        """Receipts of these hosts, in one transaction."""
        values, leases = {}, {}
        for host in hosts:
            config = {'generation': 1, 'version': 'v1', 'state': 'ok', 'since_ms': 1700000000000, 'pulled_ms': 10, **web}
            config['digest'] = config['version'][1:] * 16
            receipt = {'v': 1, 'host': host, 'pullet': '0.1.0', 'since_ms': 1, 'labels': {}, 'configs': {'web': config}}
            values[PREFIX + 'known/' + host] = json.dumps({'v': 1, 'first_ms': 1, 'labels': {}, 'configs': ['web']})
            values[PREFIX + host] = json.dumps(receipt)
            leases[PREFIX + host] = self.hosts[host]
        self.etcd.put_all(values, leases=leases)

    def lines(self, driver, code):
        self.assertEqual(driver.wait(), code)
        return '\n'.join(driver.log.drain())

    def test_a_wave_waits_for_each_host_but_those_that_were_in_trouble_before(self):
        silent, troubled, late = self.half[0], self.half[1], self.half[2]
        self.etcd.delete(PREFIX + silent)
        self.receive([troubled], state='failing', why='the disk is full')
        driver = self.drive('start', '--version', 'v2', '--waves', '50,100', '--every', '0s')
        driver.log.wait('2 hosts are silent, failing or without a version: not waited for')
        driver.log.wait(f'wave 1 of 2: v2 goes to 50%: {len(self.half)} hosts')
        self.receive(self.half[3:], version='v2')
        self.receive([late], version='v2', state='failing', why='the reload failed')
        self.receive([late], version='v2', state='applying')
        self.receive([late], version='v2')
        self.assertIn(f'wave 1 of 2: {len(self.half) - 2} of {len(self.half)} hosts run v2; the next wave comes in 0', driver.log.wait('wave 1 of 2: .* run v2'))
        driver.log.wait('wave 2 of 2: v2 goes to 100%: 20 hosts')
        self.assertEqual(self.document()['percent'], 100)
        self.receive([h for h in self.hosts if h not in (silent, troubled)], version='v2')
        self.assertRegex(self.lines(driver, 0), 'wave 2 of 2: 18 of 20 hosts run v2; the rollout is finished$')
        self.assertIn('is finished: it cannot be resumed', self.rollout('resume', check=1)[1])
        self.assertIn('aborted: no other host takes it', self.rollout('abort')[0])
        self.assertEqual((self.document()['percent'], self.document()['version']), (0, ['v2', '2' * 16]))

    def test_it_is_aborted_when_the_share_is_reached_and_not_before(self):
        driver = self.drive('start', '--version', 'v2', '--waves', '50%,100%', '--abort-at', f'{200 / len(self.half):.3f}')
        driver.log.wait('wave 1 of 2')
        self.receive(self.half[:1], state='rejected', rejected='v0', why='schema: of another version')
        self.receive(self.half[1:2], state='rejected', rejected='v2', why='probe: \x1b[31mred')
        self.receive(self.half[2:3], state='rejected', rejected='v2', why='schema: no')
        out = self.lines(driver, 1)
        self.assertRegex(out, rf'aborted: 2 of {len(self.half)} hosts rejected it or rolled it back \(.*: {self.half[1]}: probe: .*red')
        self.assertNotIn('\x1b', out)
        state = self.status()
        self.assertEqual((state['state'], state['percent'], state['waves'][0]['rejected'], state['waves'][1]['rejected']), ('aborted', 0, 2, 0))

    def test_a_wave_that_nobody_runs_is_no_success(self):
        first = min(self.hosts, key=place)
        self.assertRegex(self.rollout('start', '--version', 'v2', '--waves', '0.001,100', check=1)[1], rf'the first wave, 0.001%, reaches no host: the first one is reached at {place(first):.2f}')
        # nor does any wave of labels that no host has
        self.assertIn('no host with a receipt has all of these labels', self.rollout('start', '--label', 'zone=nowhere', check=1)[1])
        self.assertIn('--salt takes at most 255 bytes', self.rollout('start', '--salt', 's' * 256, check=64)[1])
        self.assertIsNone(self.etcd.get(DOCUMENT))

        # pinned by an operator, and so not waited for; nothing is known of the version
        self.receive(self.half, state='pinned', why='by root')
        driver = self.drive('start', '--version', 'v2', '--waves', '50,100', '--every', '0s', '--timeout', '1s')
        out = self.lines(driver, 4)
        self.assertIn('no host has seen v2 yet: publish it now; if it is misspelt, `pullet rollout abort web`', out)
        self.assertRegex(out, rf'no host of {len(self.half)} runs v2: {self.half[0]} \(pinned: by root\), .*; waiting for one for 1s, then it is paused')
        self.assertRegex(out, rf'paused at 50%: no host of {len(self.half)} runs v2: .*`pullet rollout resume web` waits again')
        self.assertEqual((self.document()['percent'], self.document()['plan']['state'], self.document()['plan']['wave']), (50, 'paused', 1))
        self.assertRegex(self.rollout('status')[0], r'web: the rollout of v2 is paused, wave 1 of 2, .*\n +no host of \d+ runs v2: ')
        self.receive(self.hosts, version='v2')
        driver = self.drive('resume')
        self.assertIn('the rollout is finished', self.lines(driver, 0))
        self.assertEqual(self.document()['plan']['why'], '')

    def test_hosts_that_never_decide_pause_it_and_a_resume_goes_on_without_them(self):
        lost = self.half[0]
        driver = self.drive('start', '--version', 'v2', '--waves', '50,100', '--every', '0s', '--timeout', '2s')
        driver.log.wait('wave 1 of 2')
        self.receive(self.half[1:], version='v2')
        self.etcd.delete(PREFIX + lost)  # it died after the start
        out = self.lines(driver, 4)
        self.assertRegex(out, rf'paused at 50%: 1 host has not decided in 2s \(resume goes on without those in trouble\): {lost} \(silent\)')
        self.assertEqual(self.document()['plan']['state'], 'paused')
        driver = self.drive('resume')
        driver.log.wait('1 host is silent, failing or without a version: not waited for')
        driver.log.wait('wave 2 of 2')
        self.receive([h for h in self.hosts if h != lost], version='v2')
        self.assertIn('the rollout is finished', self.lines(driver, 0))

    def test_without_a_receipt_nothing_is_finished(self):
        for host in self.hosts:
            self.etcd.delete(PREFIX + host)
            self.etcd.delete(PREFIX + 'known/' + host)
        driver = self.drive('start', '--version', 'v2', '--waves', '100%', '--every', '0s', '--timeout', '1s')
        self.assertRegex(self.lines(driver, 4), 'paused at 100%: the waves up to 100% reach no host that has a receipt: start again with a larger first wave')

    def test_the_first_wave_of_the_default_reaches_a_host(self):
        first = min(self.hosts, key=place)
        self.receive([first], state='held', rejected='v3', why='rollout: not yet')
        driver = self.drive('start', '--version', 'v2')
        driver.log.wait('no host has seen v2 yet, and v3 is what they hold back: if you mean that one, `pullet rollout abort web`')
        driver.log.wait('wave 1 of .*: v2 goes to .*: 1 host')
        self.assertEqual(self.document()['plan']['waves'][-1], 100)
        self.assertTrue(self.document()['percent'] > place(first))

    def test_a_signal_another_driver_and_another_document_end_it_and_the_document_stays(self):
        first = self.drive('start', '--version', 'v2', '--waves', '50%,100%')
        first.log.wait('wave 1 of 2')
        second = self.drive('resume')
        second.log.wait('wave 1 of 2')
        self.assertRegex(self.lines(first, 1), 'root .* has taken the rollout over|uid .* has taken the rollout over')
        before = self.etcd.get(DOCUMENT)
        self.until(lambda: self.etcd.get(DOCUMENT + '#driver'), lambda: 'no note of the driver')
        self.assertRegex(self.rollout('status')[0], r'\n  the command that drives it spoke \d+s ago\n')
        self.assertTrue(self.status()['driven'])
        second.signal(signal.SIGINT)
        self.assertIn('interrupted: the rollout stays as it is, at 50% of the hosts, and nobody drives it: `pullet rollout resume web` goes on', self.lines(second, 1))
        self.assertEqual(self.etcd.get(DOCUMENT), before)
        self.assertRegex(self.rollout('start', '--version', 'v3', check=1)[1], 'a rollout of v2 is running, at 50%, by .*: `pullet rollout resume web` goes on with it')
        self.assertIn('nobody drives it: the command that did has ended: `pullet rollout resume web` goes on', self.rollout('status')[0])
        self.assertFalse(self.status()['driven'])
        # one that was killed: its last note grows old
        note = json.loads(self.etcd.get(DOCUMENT + '#driver'))
        self.etcd.put(DOCUMENT + '#driver', json.dumps({**note, 'at_ms': 1700000000000}))
        self.assertIn('nobody drives it: the command that did spoke last at 2023-11-14T22:13:20Z: `pullet rollout resume web`', self.rollout('status')[0])
        third = self.drive('resume')
        third.log.wait('wave 1 of 2')
        self.assertTrue(self.status()['driven'])
        self.etcd.put(DOCUMENT, 'percent: 7\n')
        self.assertIn(f'somebody replaced or deleted the rollout document {DOCUMENT}', self.lines(third, 1))
        self.assertEqual(self.etcd.get(DOCUMENT), b'percent: 7\n')
        self.assertIn('there is no rollout of web that `pullet rollout start` began', self.rollout('abort', check=1)[1])

    def test_of_two_that_start_at_once_one_drives(self):
        drivers = [self.drive('start', '--version', 'v2', '--waves', '50%,100%') for _ in range(4)]
        ended = []
        self.until(lambda: len(ended := [d for d in drivers if d.process.poll() is not None]) == 3, lambda: f'{len(ended)} have ended')
        for driver in drivers:
            if driver.process.poll() is not None:
                self.assertRegex(self.lines(driver, 1), 'somebody else changed the rollout just now: `pullet rollout status web`|a rollout of v2 is running, at 50%')
            else:
                driver.log.wait('wave 1 of 2')

    def test_a_version_is_learned_only_when_hosts_agree(self):
        driver = self.drive('start', '--waves', '100%')
        driver.log.wait('new versions are held back by all hosts')
        self.assertEqual(self.document()['percent'], 0)
        self.receive(self.half, state='held', rejected='v2', why='rollout: not yet')
        driver.log.wait('wave 1 of 1: v2 goes to 100%: 20 hosts')
        self.assertEqual(self.document()['only'], 'v2')
        self.rollout('abort')
        self.lines(driver, 1)
        self.assertNotIn('only', self.document())
        # what was aborted is not driven once more, unless it is named
        driver = self.drive('start', '--waves', '100%')
        driver.log.wait('new versions are held back by all hosts: publish it now')
        self.receive(self.half[:1], state='held', rejected='v3', why='rollout: not yet')
        driver.log.wait('wave 1 of 1: v3 goes to 100%: 20 hosts')
        self.rollout('abort')
        self.lines(driver, 1)
        # none had come: nothing is let through
        self.receive(self.hosts, version='v1')
        driver = self.drive('start', '--waves', '100%')
        driver.log.wait('new versions are held back by all hosts')
        self.assertIn('no version had come', self.rollout('abort')[1])
        self.lines(driver, 1)
        self.assertEqual((self.document()['percent'], 'version' in self.document()), (0, False))

    def test_documents_of_others_are_shown_and_damaged_ones_named(self):
        self.assertRegex(self.rollout('status')[0], r'^web: no rollout document at /web.rollout: all hosts take each version\n(.*\n) +now +- +20 ')
        with open(os.path.join(harness.ROOT, 'etc', 'api.rollout'), encoding='utf-8') as f:
            self.etcd.put(DOCUMENT, f.read())
        tenth = len([h for h in self.hosts if place(h) < 10])
        self.assertRegex(self.rollout('status')[0], rf'^web: a rollout document that was written by hand: /web.rollout\n(.*\n) +now +- +{tenth} ')
        self.etcd.put(DOCUMENT, 'percent: ten\n')
        for verb in ('status', 'start', 'pause', 'resume', 'abort'):
            self.assertIn('/web.rollout is no rollout document: 1:10: percent must be a number from 0 to 100: hosts hold back', self.rollout(verb, check=1)[1])
        self.etcd.put(DOCUMENT, '')
        self.assertIn('/web.rollout is no rollout document: it is empty: hosts hold back', self.rollout('status', check=1)[1])
        self.etcd.put(DOCUMENT, '{"percent":100,"plan":{"v":2}}')  # agents do not look into the plan
        self.assertRegex(self.rollout('status', check=1)[1], '/web.rollout: its plan is of another version of pullet: hosts go by the document')
        self.etcd.stop(0)
        self.assertIn('connection refused', self.rollout('status', check=1)[1])

    def test_the_agents_configuration_names_the_document(self):
        def settings(rollout):
            self.write('pullet.yaml', f"""servers:
  main: {{kind: etcd, urls: ["{self.etcd.url}"]}}
  web: {{urls: ["http://127.0.0.1:9"]}}
report: {{server: main}}
configs:
  web: {{url: "http://127.0.0.1:9/web.yaml", file: {self.path('web.yaml')}{rollout}}}
""")

        def by_file(*args):
            done = subprocess.run([PULLET, 'rollout', *args, '-c', self.path('pullet.yaml')], capture_output=True, text=True, timeout=harness.DEADLINE, check=False)
            return done.returncode, done.stdout + done.stderr
        settings(', rollout: {server: main, path: /apps/web.rollout}')
        code, out = by_file('status', 'web')
        self.assertEqual(code, 0, out)
        self.assertIn('no rollout document at /apps/web.rollout', out)
        code, out = by_file('status', 'other')
        self.assertEqual((code, 'has no config other' in out), (2, True), out)
        settings('')
        code, out = by_file('start', 'web')
        self.assertEqual((code, 'give it `rollout: {server: NAME, path: KEY}`, on all hosts' in out), (78, True), out)
        settings(', rollout: {server: web, path: /web.rollout}')
        code, out = by_file('start', 'web')
        self.assertEqual((code, 'the rollout document of web is not in an etcd' in out), (78, True), out)

    def test_options_that_are_wrong(self):
        for args, sentence in ((('start', '--waves', '10%,10%'), 'rising percentages above 0'), (('start', '--waves', '0'), 'rising percentages'),
                               (('start', '--waves', '10%,'), 'rising percentages'), (('start', '--waves', ','.join(str(i) for i in range(1, 66))), 'at most 64'),
                               (('start', '--abort-at', '0'), '--abort-at takes a percentage above 0'), (('start', '--abort-at', '2%%'), '--abort-at takes'),
                               (('start', '--every', 'x'), '--every'), (('start', '--version', ''), 'not nothing'), (('start', '--label', 'a'), 'NAME=VALUE'),
                               (('start', '--label', 'a=b', '--label', 'a=c'), 'given twice'), (('pause', '--waves', '1'), 'unrecognized'),
                               (('status', '--user', 'u'), '--user and --password-file belong together'), (('abort', '--config', 'f'), '--etcd is used alone')):
            with self.subTest(args=args):
                self.assertIn(sentence, self.rollout(*args, check=64)[1])
        for args, sentence in (([], 'say start, pause, resume, abort or status'), (['stop', 'web'], 'say start'), (['start'], 'name one config'),
                               (['start', 'a b'], "the config's name"), (['start', 'web', '--path', '/x'], '--path belongs to --etcd'),
                               (['start', 'web', '--etcd', 'http://127.0.0.1:1'], '--etcd needs --path')):
            with self.subTest(args=args):
                done = subprocess.run([PULLET, 'rollout', *args], capture_output=True, text=True, timeout=harness.DEADLINE, check=False)
                self.assertEqual((done.returncode, sentence in done.stderr), (64, True), done.stderr)


if __name__ == '__main__':
    harness.main()
