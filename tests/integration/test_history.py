"""`pullet history`, `pullet diff` with overrides and --held, and the way forward after a rollback: with the real agent, command and origin."""
import hashlib
import json
import re
import time

import harness
import test_operate
from test_change import Hook
from test_operate import ME, ME_PLAIN

FORCE = "`pullet refresh web --force`: the server's version is published all the same, if all checks accept it"
ANOTHER = 'another version at the server is checked when it is pulled'


class Case(test_operate.Case):
    def why(self):
        """By generation: when (in words) and why, as the table has it; the newest first."""
        lines = self.do('history', 'web').splitlines()
        self.assertEqual(lines[0].split(), ['GENERATION', 'PUBLISHED', 'BYTES', 'VERSION', 'SHA256', 'WHY'])
        rows = [re.match(r'(\d+)(?: \*)? +(\S+) +\d+ +\S+ +\S+  (.*)$', line) for line in lines[1:]]
        return {int(row[1]): (row[2], row[3]) for row in rows if row}

    def causes(self):
        return {v['generation']: (v['cause'], v['by']) for v in self.ask('history', 'web')['versions']}


class History(Case):
    def test_when_and_why_also_after_a_restart(self):
        self.put('n: 1\n')
        self.agent = harness.Agent(self, self.config(self.url + '/web.yaml', '    interval: 1h\n', push=f'push: [{{endpoint: {self.endpoint}}}]\n'))
        self.agent.log.wait('published config=web generation=1')
        harness.Case.until(self, lambda: '"state":"connected"' in self.agent.get('/v1/status')[1], 'the push channel is connected')
        self.do('refresh', 'web', '--wait')  # behind the pull of a channel that is connected
        self.put('n: 2\n')  # the origin pushes it
        self.agent.log.wait('published config=web generation=2')
        self.put('n: 3\n')
        self.agent.log.wait('published config=web generation=3')
        self.do('rollback', 'web', '--reason', 'pages are slow')
        self.do('override', 'web', 'n=5', '--for', '1h', '--reason', 'a try')
        self.do('override', 'web', 'n', '--remove')
        self.do('refresh', 'web', '--force', '--wait')
        want = {1: ('start', None), 2: ('push', None), 3: ('push', None), 4: ('rollback', ME_PLAIN), 5: ('override', ME_PLAIN), 6: ('override', ME_PLAIN),
                7: ('operator', ME_PLAIN)}
        self.assertEqual(self.causes(), want)
        rows = self.why()
        self.assertEqual({g: why for g, (_, why) in rows.items()}, {
            1: 'pull at the start', 2: 'push', 3: 'push', 4: f'rollback to generation 2 by {ME_PLAIN}: pages are slow',
            5: f'override of n by {ME_PLAIN} for 1h: a try', 6: f'override of n removed by {ME_PLAIN}', 7: f'pull asked for by {ME_PLAIN}'})
        for at, _ in rows.values():
            self.assertRegex(at, r'^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$')
        versions = self.ask('history', 'web')['versions']
        self.assertTrue(all(abs(v['published_ms'] / 1000 - time.time()) < 600 for v in versions))
        self.assertEqual(sorted((v['published_ms'] for v in versions), reverse=True), [v['published_ms'] for v in versions])
        self.again()
        self.assertEqual((self.causes(), self.why()), (want, rows), 'it is kept with each version')
        self.assertEqual(self.agent.status()['published_ms'], versions[0]['published_ms'], 'not when it was pulled')
        self.agent.stop()

    def test_a_pin_that_ends_and_a_probe_that_fails(self):
        hook = Hook(self, 'probe')
        self.begin(more=f'    probe: {{run: [{hook.path}], for: 200ms, every: 100ms}}\n')
        self.agent.log.wait('probe passed')
        self.do('pin', 'web', '--reason', 'exam week')
        self.put('n: 2\n')
        self.agent.refresh()
        self.do('unpin', 'web')
        self.agent.log.wait('published config=web generation=2')
        self.assertEqual(self.why()[2][1], f'unpinned by {ME_PLAIN}')
        self.agent.log.wait('probe passed.*generation=2')
        hook.do('echo it is down; exit 1')
        self.put('n: 3\n')
        self.agent.refresh()
        self.agent.log.wait('published config=web generation=4')
        self.assertEqual(self.causes()[4], ('probe', None))
        self.assertEqual(self.why()[4][1], 'probe: generation 3 was bad, back to 2')
        for command in (('history', 'web'), ('status', 'web'), ('status',)):
            said = self.do(*command)
            self.assertIn('`pullet refresh web --force`: ', said)
            self.assertIn(ANOTHER, said)
        self.agent.stop()

    def test_a_file_of_an_older_agent_is_read_and_says_that_it_does_not_know(self):
        self.begin()
        self.publish('n: 2\n')
        self.agent.stop()
        for generation in (1, 2):
            path = self.path(f'state/web/{generation:020}')
            with open(path, 'rb') as f:
                _, facts, body = f.read().split(b'\n', 2)
            old = {k: v for k, v in json.loads(facts).items() if k not in ('published_ms', 'cause', 'by')}
            rest = json.dumps(old).encode() + b'\n' + body
            with open(path, 'wb') as f:
                f.write(b'pullet-state 1 ' + hashlib.sha256(rest).hexdigest().encode() + b'\n' + rest)
        self.agent = harness.Agent(self, self.config(self.url + '/web.yaml', '    interval: 1h\n'))
        self.agent.log.wait('last known good')
        for v in self.ask('history', 'web')['versions']:
            self.assertEqual((v['published_ms'], v['cause'], v['by'], v['origin']), (None, None, None, 'pull'))
        self.assertEqual(self.why(), {1: ('unknown', 'pull'), 2: ('unknown', 'pull')})
        self.assertRegex(self.do('history', 'web'), r'\n  pulled at \S+Z; an older agent did not note when and why it published it\n')
        self.publish('n: 3\n')
        self.assertEqual(self.causes()[3], ('operator', ME_PLAIN))
        self.assertEqual(self.why()[3][1], f'pull asked for by {ME_PLAIN}')
        self.agent.stop()


class Forward(Case):
    def test_everywhere_after_an_operators_rollback(self):
        self.begin()
        self.publish('n: 2\n')
        self.assertEqual(self.do('rollback', 'web').splitlines()[1:], ['  ' + FORCE, '  ' + ANOTHER])
        for command in (('history', 'web'), ('status', 'web'), ('status',), ('explain', 'web')):
            said = self.do(*command)
            self.assertIn(FORCE, said, command)
            self.assertIn(ANOTHER, said, command)
        self.assertEqual(self.agent.status()['rejected']['forward'], [FORCE, ANOTHER])
        self.assertEqual(self.ask('history', 'web')['forward'], [FORCE, ANOTHER])
        # what it says is so
        self.publish('n: 3\n')
        self.assertNotIn('forward', self.ask('history', 'web'))
        self.do('rollback', 'web')
        self.do('refresh', 'web', '--force', '--wait')
        self.assertEqual(self.file(), {'n': 3})
        self.agent.stop()

    def test_while_it_is_pinned_and_while_the_server_is_not_known(self):
        self.begin()
        self.publish('n: 2\n')
        self.do('pin', 'web')
        self.assertIn('`pullet unpin web`: ', self.do('rollback', 'web'))
        self.do('unpin', 'web')
        self.again()
        self.assertIn('another version at the server than the one that was rolled back is published when it is pulled', self.do('history', 'web'))
        self.do('suspend', 'web')
        self.assertIn('`pullet resume web`: pulls begin again', self.do('history', 'web'))
        self.agent.stop()


class Diff(Case):
    def test_values_in_effect_and_what_an_override_hides(self):
        self.begin('n: 1\ndb: {host: a}\n')
        self.publish('n: 2\ndb: {host: a}\n')
        self.do('override', 'web', 'n=5', '--for', '1h', '--reason', 'a try')
        self.assertRegex(self.do('diff', 'web'), rf'^# generation 2 -> generation 3\n~ n: 2 -> 5  # the override of n by {ME} until \S+Z: a try; the server has 2\n$')
        self.publish('n: 3\ndb: {host: b}\n')
        self.assertRegex(self.do('diff', 'web'), rf'^# generation 3 -> generation 4\n~ db\.host: "a" -> "b"\n# ~ n: 2 -> 3: hidden by the override of n by {ME} until \S+Z: a try\n$')
        self.assertEqual(self.file(), {'n': 5, 'db': {'host': 'b'}})
        self.do('override', 'web', 'n', '--remove')
        self.assertRegex(self.do('diff', 'web'), rf'^# generation 4 -> generation 5\n~ n: 5 -> 3  # the override of n by {ME} until \S+Z: a try was in effect before; the server had 3\n$')
        self.assertRegex(self.do('diff', 'web', '1'), r'^# generation 1 -> generation 5\n~ db\.host: "a" -> "b"\n~ n: 1 -> 3\n$', 'only the two versions count')
        answer = self.ask('diff', 'web', '2', '3')
        self.assertTrue(answer['equal'], 'the same bytes of the server')
        self.assertEqual(answer['to']['overrides'][0]['key'], 'n')
        self.assertNotIn('overrides', answer['from'])
        self.again()
        self.assertIn('hidden by the override of n', self.do('diff', 'web', '3', '4'), 'it is in the state files')
        self.agent.stop()

    def test_held_by_a_check_a_pin_and_a_rollback(self):
        self.begin('n: 1\n', '    guard: {require: [n]}\n    mask: [pw]\n')
        self.refused(2, 'nothing is held back: the server has the current version', 'diff', 'web', '--held')
        self.put('m: 1\npw: planted\n')
        self.agent.refresh()
        self.assertRegex(self.do('diff', 'web', '--held'),
                         r"^# the server's version \w+ is rejected by the guard: the required key n is not there\n\+ m: 1\n- n: 1\n\+ pw: \*\*\*\n$")
        self.do('pin', 'web', '--reason', 'exam week')
        self.put('n: 2\n')
        self.agent.refresh()
        self.do('override', 'web', 'n=7', '--for', '1h')
        said = self.do('diff', 'web', '--held')
        self.assertRegex(said, rf"^# the server's version \w+ is held by the pin: the current version is kept until it ends\n# ~ n: 1 -> 2: hidden by the override of n by {ME} until \S+Z\n$")
        self.do('override', 'web', 'n', '--remove')
        self.do('unpin', 'web')
        self.agent.log.wait('published config=web generation=4')
        self.do('rollback', 'web', '1')
        answer = self.ask('diff', 'web', '--held')
        self.assertEqual((answer['held']['by'], answer['from']['generation'], answer['to']['generation']), ('operator', 5, 4))
        self.assertEqual(answer['changes'], [{'change': 'changed', 'path': 'n', 'before': 1, 'after': 2}])
        self.assertIn('is held after it was rolled back by', self.do('diff', 'web', '--held'))
        self.assertEqual(self.do('diff', 'web', '--held', '4').splitlines()[1:], [], 'from generation 4 nothing changes')
        self.agent.stop()

    def test_held_that_cannot_be_compared_or_is_not_known(self):
        self.begin('n: 1\n')
        self.put('a: [\n')
        self.agent.refresh()
        self.refused(1, 'the version that is held cannot be compared: .*invalid YAML', 'diff', 'web', '--held')
        self.refused(64, '--held takes one generation', 'diff', 'web', '--held', '1', '1')
        self.assertEqual(self.agent.get('/v1/configs/web/diff?held=1&to=1')[0], 400)
        self.assertEqual(self.agent.get('/v1/configs/web/diff?held=2')[0], 400)
        self.origin.close()
        self.again()
        self.refused(2, 'it is not known which version the server has: `pullet refresh web --wait` asks it', 'diff', 'web', '--held')
        self.agent.stop()


class Events(Case):
    def events(self):
        return json.loads(self.agent.get('/v1/configs/web/events')[1])['events']

    def test_each_is_there_once_and_values_are_for_operators(self):
        self.write('schema.json', '{"properties": {"n": {"type": "integer"}}}')
        self.begin(more=f'    schema: {self.path("schema.json")}\n', agent='  listen: 127.0.0.1:0')
        self.put('n: hunter2\n')
        for _ in range(3):
            self.agent.refresh()
        self.publish('n: 2\n')
        self.do('pin', 'web', '--reason', 'exam week')
        kinds = [(e['event'], e['by']) for e in self.events()]
        self.assertEqual(kinds, [('decided', None), ('recovered', None), ('published', 'operator'), ('rejected', 'schema')])
        self.assertIn('"hunter2"', self.events()[3]['text'])
        self.assertEqual(self.events()[0]['text'], f'pinned by {ME_PLAIN}: exam week')
        port = test_operate.All.listener_port(self.agent)
        public = test_operate.All.tcp(port, 'GET', '/v1/configs/web/events')[1]
        self.assertNotIn('hunter2', public)
        self.assertNotIn('integer', public)
        self.assertIn('exam week', public, 'as in the status')
        self.agent.stop()

    def test_an_outage_is_one_event_and_a_count(self):
        self.begin()
        self.origin.close()
        for _ in range(3):
            self.agent.refresh()
        failed = self.events()
        self.assertEqual([(e['event'], e['by'], e['times']) for e in failed], [('failed', 'unreachable', 3)])
        self.agent.stop()


if __name__ == '__main__':
    harness.main()
