"""`pullet explain CONFIG`: why the current version is current, and what would change it, in each situation that an operator can meet."""
import json
import os
import re
import signal
import subprocess

import harness
import test_operate
from harness import PULLET, Agent
from test_change import Hook
from test_operate import ME

TIME = r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ'
SPAN = r'\d+[smh]'
SHA = r'[0-9a-f]{32}'
PULLED = rf'generation 1 \(version {SHA}\) is current since {TIME} \({SPAN} ago\): pulled from the server(?:, asked for by {ME})?'
SERVER = rf'the server has version {SHA}'
LOOK = '`pullet diff web --held` shows what it would change: put it right at its source'
SAME = rf'the server has the current version: confirmed {SPAN} ago'
NEXT = rf'the agent does nothing before the next pull, in {SPAN}'
ANOTHER = 'another version at the server is checked when it is pulled'
TRY = '`pullet refresh web`: pulls, and tries again, at once'
FORCE = "`pullet refresh web --force`: the server's version is published all the same, if all checks accept it"

AS_IT_IS = FORCE.replace('all the same', 'as it is')
UNPIN_OTHERS = '`pullet unpin web`: other versions at the server are published again, this one is not'


class Case(test_operate.Case):
    def says(self, *patterns):
        """The answer has these lines, and no other one; the facts."""
        lines = self.do('explain', 'web').splitlines()
        self.assertEqual(len(lines), len(patterns), lines)
        for line, pattern in zip(lines, patterns):
            self.assertRegex(line, f'^(?:{pattern})$')
        answer = self.ask('explain', 'web')
        self.assertEqual(len(answer['sentences']), len(patterns))
        return answer

    def comes(self, pattern):
        """The answer has a line with this pattern, soon: for what no line of the log tells."""
        self.until(lambda: re.search(pattern, self.do('explain', 'web'), re.MULTILINE), lambda: f'/{pattern}/: ' + self.do('explain', 'web'))

    def until(self, happened, what):
        harness.Case.until(self, happened, what)

    def take(self, text, outcome):
        """The server has this text, and is asked for it."""
        self.put(text)
        self.assertEqual(self.agent.refresh()['outcome'], outcome)


class Current(Case):
    def test_nothing_then_the_first_version(self):
        self.begin(None)
        facts = self.says('nothing is published yet', 'it is not known which version the server has',
                          rf'failing since {TIME} \({SPAN} ago\): the server answered 404: there is no such document: check the path', TRY, NEXT)
        self.assertEqual((facts['generation'], facts['facts']['current'], facts['facts']['latest'], facts['row']), (0, 'none', 'unknown', 'nothing'))
        self.take('n: 1\n', 'published')
        facts = self.says(PULLED, SAME, NEXT)
        self.assertEqual((facts['name'], facts['generation'], facts['row'], facts['action'], facts['origin'], facts['gate'], facts['resting'], facts['under_way']),
                         ('web', 1, 'nothing', 'none', None, None, [], None))
        self.assertEqual(facts['facts'], {
            'mode': 'active', 'request': 'none', 'pin': 'none', 'saved': 'none', 'current': 'good', 'older': 'none', 'latest': 'same', 'verdict': 'free',
            'force': 'none', 'rollout': 'none', 'overrides': 'same', 'settings': 'same', 'place': 'as published', 'drift': 'heal'})

    def test_after_a_restart_and_while_the_server_is_down(self):
        self.begin()
        for tries in range(5):
            self.again()
            try:
                self.says(PULLED, 'it is not known which version the server has', NEXT)
                break
            except AssertionError:  # the first pull was quicker than the question
                if tries == 4:
                    raise
        self.agent.refresh()
        self.says(PULLED, SAME, NEXT)
        self.origin.close()
        self.assertEqual(self.agent.refresh()['outcome'], 'failed')
        self.says(PULLED, f'the server had the current version when it answered last, {SPAN} ago',
                  rf'failing since {TIME} \({SPAN} ago\): connection refused: is the server running\?', TRY, NEXT)

    def test_an_override_and_a_suspension(self):
        self.begin()
        self.do('override', 'web', 'n=5', '--for', '1h', '--reason', 'trial')
        self.do('suspend', 'web', '--for', '1h', '--reason', 'night')
        self.says(rf'generation 2 \(version {SHA}\) is current since {TIME} \({SPAN} ago\): override of n by {ME} for 1h: trial',
                  f'the server had the current version when it answered last, {SPAN} ago', f'suspended by {ME} until {TIME}: night',
                  f"the server's value of n is overridden by {ME} until {TIME}: trial", '`pullet resume web`: pulls begin again',
                  "`pullet override web KEY --remove`: the server's value comes back", 'the agent does nothing before it is resumed')

    def test_files_that_somebody_changed(self):
        self.begin(more='    drift: report\n')
        self.write('out/web.yaml', 'n: 9\n')
        self.comes('the published files were changed by others')
        facts = self.says(PULLED, SAME, r'the published files were changed by others, and are not restored before the next version is published \(drift: report\)', NEXT)
        self.assertEqual((facts['facts']['place'], facts['facts']['drift']), ('changed', 'report'))


class Rejected(Case):
    def test_by_a_check(self):
        hook = Hook(self, 'check')
        self.begin(more=f'    check: [{hook.path}, "{{path}}"]\n')
        hook.do('echo too many; exit 1')
        self.take('n: 2\n', 'failed')
        facts = self.says(PULLED, f'{SERVER}, rejected by the check: check exited with 1: too many',
                          '`pullet refresh web --force`: it is checked once more, and published if it is accepted now', ANOTHER, NEXT)
        self.assertEqual((facts['gate'], facts['facts']['verdict'], facts['facts']['latest']), ('verdict', 'rejected', 'new'))
        hook.do('exit 0')
        self.do('refresh', 'web', '--force', '--wait')
        self.says(PULLED.replace('generation 1', 'generation 2'), SAME, NEXT)

    def test_by_a_schema_that_is_corrected(self):
        """Its file is a part of the rules: the next pull checks the same bytes again."""
        schema = '{"properties": {"n": {"type": "integer", "maximum": %d}}}'
        self.write('schema.json', schema % 5)
        self.begin(more=f'    schema: {self.path("schema.json")}\n')
        self.take('n: 9\n', 'failed')
        corrected = re.escape(f'a corrected schema ({self.path("schema.json")}) is read at the next pull, which checks this version again; '
                              '`pullet refresh web` pulls now')
        self.says(PULLED, f'{SERVER}, rejected by the schema: .* more than the maximum 5', corrected, ANOTHER, NEXT)
        self.write('schema.json', schema % 50)
        self.do('refresh', 'web', '--wait')
        self.says(PULLED.replace('generation 1', 'generation 2'), SAME, NEXT)

    def test_by_a_template_that_is_corrected(self):
        self.write('tpl', 'n={{n}}')
        self.begin(more=f'    format: {{template: {self.path("tpl")}}}\n')
        self.take('m: 9\n', 'failed')
        corrected = re.escape('a corrected template is read at a reload of the agent (SIGHUP), which checks this version again')
        self.says(PULLED, f'{SERVER}, rejected by the format: .*', corrected, ANOTHER, NEXT)
        self.write('tpl', 'n={{m}}')
        self.agent.signal(signal.SIGHUP)
        self.agent.log.wait('published .*generation=2')

    def test_by_the_guard(self):
        self.begin('a: 1\nb: 2\nc: 3\n', more='    guard: {max_shrink: 10%}\n')
        self.take('a: 5\n', 'failed')
        self.says(PULLED, f'{SERVER}, rejected by the guard: it shrank from 15 to 5 bytes, more than max_shrink 10%',
                  LOOK, AS_IT_IS.replace('all checks', 'all other checks'), ANOTHER, NEXT)
        self.do('refresh', 'web', '--force', '--wait')
        self.says(PULLED.replace('generation 1', 'generation 2').replace(')?', ')'), SAME, NEXT)
        self.agent.log.wait(f'published config=web generation=2 .* cause=operator by="{ME}"')

    @harness.needs(harness.LOOK)
    def test_a_value_is_not_for_the_tcp_listener(self):
        self.write('schema.json', '{"properties": {"n": {"type": "integer"}}}')
        self.begin(more=f'    schema: {self.path("schema.json")}\n', agent='  listen: 127.0.0.1:0')
        self.take('n: hunter2\n', 'failed')
        self.says(PULLED, f'{SERVER}, rejected by the schema: .*/n: must be an integer, but is "hunter2"', 'a corrected schema .*', ANOTHER, NEXT)
        port = test_operate.All.listener_port(self.agent)
        public = test_operate.All.tcp(port, 'GET', '/v1/configs/web')[1]
        self.assertRegex(json.loads(public)['explanation'][0], f'^{SERVER}, rejected by the schema: see the control socket for the reason$')
        self.assertNotIn('hunter2', public)
        self.assertEqual(test_operate.All.tcp(port, 'GET', '/v1/configs/web/explain')[0], 403)

    def test_by_its_probe_and_back(self):
        probe = Hook(self, 'probe', f'! grep -q 2 {self.path("out/web.yaml")} || {{ echo broken; exit 1; }}')
        self.begin(more=f'    probe: {{run: [{probe.path}], for: 300ms, every: 100ms, failures: 1}}\n')
        self.agent.log.wait('probe passed.*generation=1')
        self.put('n: 2\n')
        self.agent.refresh()
        self.agent.log.wait('published.*generation=3')
        current = rf'generation 3 \(version {SHA}\) is current since {TIME} \({SPAN} ago\): probe: generation 2 was bad, back to 1'
        harmful = rf'{SERVER}, which failed its probe and was rolled back: .*probe exited with 1: broken'
        self.says(current, harmful, LOOK, AS_IT_IS, ANOTHER, NEXT)
        self.assertIn('web: failed, generation 3 stays: the server still has the version that failed its probe: ', self.do('refresh', 'web', '--wait', code=1))
        self.do('pin', 'web')
        self.says(current, harmful, f'pinned by {ME}', UNPIN_OTHERS, LOOK, AS_IT_IS.replace('`:', '`, after that:'), NEXT)

    def test_a_probe_that_a_pin_beats(self):
        probe = Hook(self, 'probe', f'! grep -q 2 {self.path("out/web.yaml")} || {{ hold; echo broken; exit 1; }}')
        self.begin(more=f'    probe: {{run: [{probe.path}], for: 10s, every: 100ms, failures: 1, timeout: 10s}}\n')
        self.agent.refresh()
        self.publish('n: 2\n')
        probe.next('^run 2')
        self.comes('the probe of generation 2 is running')
        self.do('pin', 'web', '--reason', 'freeze')
        probe.release()
        self.comes('the current version failed its probe')
        facts = self.says(PULLED.replace('generation 1', 'generation 2'), SAME, f'pinned by {ME}: freeze',
                          'the current version failed its probe, and the pin keeps it: .*probe exited with 1: broken',
                          '`pullet unpin web`: the version that failed its probe is rolled back', NEXT)
        self.assertEqual((facts['facts']['current'], facts['facts']['older']), ('harmful', 'there'))
        self.do('unpin', 'web')
        self.comes('^generation 3 .*generation 2 was bad, back to 1')


class Held(Case):
    def test_by_a_pin_until_the_unpin(self):
        self.begin()
        self.do('pin', 'web', '--for', '2h', '--reason', 'freeze')
        pinned = f'pinned by {ME} until {TIME}: freeze'
        self.says(PULLED, SAME, pinned, "`pullet unpin web`: the server's versions are published again", NEXT)
        self.take('n: 2\n', 'held')
        facts = self.says(PULLED, f'{SERVER}, held by the pin', pinned, "`pullet unpin web`: the server's version is published", NEXT)
        self.assertEqual((facts['gate'], facts['facts']['pin']), ('pin', 'set'))
        self.origin.close()  # as foreseen, although nothing can be pulled
        self.do('unpin', 'web')
        self.comes('^generation 2 ')

    def test_by_an_operators_rollback(self):
        self.begin()
        self.publish('n: 2\n')
        self.do('rollback', 'web', '--reason', 'does not work')
        self.says(rf'generation 3 \(version {SHA}\) is current since {TIME} \({SPAN} ago\): rollback to generation 1 by {ME}: does not work',
                  f'{SERVER}, which was rolled back by {ME}: does not work', FORCE, ANOTHER, NEXT)

    def test_by_an_operators_rollback_and_a_pin(self):
        self.begin()
        self.publish('n: 2\n')
        self.do('pin', 'web')
        self.assertIn(f'{UNPIN_OTHERS}\n', self.do('rollback', 'web'))
        self.do('unpin', 'web')
        self.agent.refresh()
        self.assertEqual(self.agent.status('web')['generation'], 3, 'as it said')
        self.do('refresh', 'web', '--force', '--wait')
        self.assertEqual(self.agent.status('web')['generation'], 4)

    def test_by_a_rollout(self):
        self.put('n: 1\n')
        self.put('percent: 0\n', 'web.rollout')
        self.agent = Agent(self, self.layered('{server: main, path: /web.yaml}').replace('    interval', '    rollout: {server: main, path: /web.rollout}\n    interval'))
        self.agent.log.wait('published config=web generation=1')
        self.take('n: 2\n', 'held')
        facts = self.says(PULLED, rf'{SERVER}, not rolled out to this host yet: this host is at \d+\.\d\d %, the rollout at 0 %', FORCE,
                          'the rollout is read again at each pull', NEXT)
        self.assertEqual((facts['gate'], facts['facts']['rollout']), ('rollout', 'out'))
        self.do('refresh', 'web', '--force', '--wait')
        self.says(PULLED.replace('generation 1', 'generation 2'), SAME, NEXT)


class UnderWay(Case):
    def test_a_slow_check_and_a_pin_meanwhile(self):
        hook = Hook(self, 'check')
        self.begin(more=f'    check: [{hook.path}, "{{path}}"]\n')
        hook.next()
        hook.do('hold')
        self.put('n: 2\n')
        self.agent.post('/v1/configs/web/refresh')
        hook.next()
        facts = self.says(PULLED, f'{SERVER}, which is being published for {SPAN}: its programs check it')
        self.assertEqual((facts['under_way']['row'], facts['under_way']['phase'], facts['gate']), ('latest_is_published', 'programs', 'open'))
        self.do('pin', 'web')
        self.says(PULLED, f'{SERVER}, held by the pin', f'pinned by {ME}',
                  rf"under way for {SPAN}: the server's version is published \(its programs check it\); it is held at the end of its check",
                  "`pullet unpin web`: the server's version is published")
        hook.release()
        self.agent.log.wait('not published: it is held meanwhile')
        self.says(PULLED, f'{SERVER}, held by the pin', f'pinned by {ME}', "`pullet unpin web`: the server's version is published", NEXT)

    def test_a_publication_that_failed(self):
        self.begin()
        os.rename(self.path('out'), self.path('moved'))
        self.write('out', 'a file in the place of the folder')
        self.take('n: 2\n', 'failed')
        facts = self.says(PULLED, f'{SERVER}, which could not be published: it is tried again at the next pull',
                          rf'failing since {TIME} \({SPAN} ago\): cannot open the directory .*out: Not a directory.*', TRY, NEXT)
        self.assertEqual((facts['resting'], facts['row']), (['latest_is_published'], 'nothing'))
        os.unlink(self.path('out'))
        os.rename(self.path('moved'), self.path('out'))
        self.agent.refresh()
        self.says(PULLED.replace('generation 1', 'generation 2'), SAME, NEXT)

    def test_a_reload_that_fails(self):
        hook = Hook(self, 'reload')
        self.begin(more=f'    reload: {{run: [{hook.path}]}}\n')
        hook.next()
        hook.do('echo broken; exit 3')
        self.publish('n: 2\n')
        self.comes('the application was not reloaded')
        self.says(PULLED.replace('generation 1', 'generation 2'), SAME,
                  f'the application was not reloaded, which is tried again in {SPAN}: .*reload exited with 3.*', NEXT)


class Codes(Case):
    def test_an_unknown_config_and_no_agent(self):
        self.begin()
        self.assertEqual(self.agent.cli('explain', 'nope'), (2, '', "pullet explain: there is no config of that name, 'nope': there is web\n"))
        self.agent.stop()
        done = subprocess.run([PULLET, 'explain', 'web', '--socket', self.agent.socket], capture_output=True, text=True, timeout=harness.DEADLINE, check=False)
        self.assertEqual((done.returncode, done.stdout), (3, ''))
        self.assertIn('no agent answers', done.stderr)


if __name__ == '__main__':
    harness.main()
