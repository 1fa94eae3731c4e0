"""What an operator does about versions: history, diff, explain, rollback, pin, override, forced refresh; with the real agent, command and origin."""
import http.client
import json
import os
import pwd
import re
import signal
import subprocess
import threading
import time

import yaml

import harness
from harness import PULLET, Agent, Program
from test_change import Hook

ME_PLAIN = f'{pwd.getpwuid(os.getuid()).pw_name} (uid {os.getuid()})'
ME = re.escape(ME_PLAIN)
WORDS = ('history', 'diff', 'explain', 'rollback', 'pin', 'unpin', 'override')
SECRETS = ('planted-one', 'planted-two', 'planted-three', 'planted-four')


class Case(harness.Case):
    """One config, web, of what `pullet serve` serves; it is pulled when a test says so."""

    def setUp(self):
        super().setUp()
        self.origin, self.url, self.endpoint = self.serve()

    def put(self, text, name='web.yaml'):
        self.write('www/' + name, text)

    def begin(self, text='n: 1\n', more='', agent=''):
        """An agent that has published this text; None: the server has nothing."""
        if text is not None:
            self.put(text)
        self.agent = Agent(self, self.config(self.url + '/web.yaml', '    interval: 1h\n' + more, agent=agent))
        self.agent.log.wait('published config=web generation=1' if text is not None else '404')
        return self.agent

    def layered(self, *layers):
        """The text of a configuration with one config of these layers of the server main."""
        text = self.config('x', push=f'servers: {{main: {{urls: ["{self.url}"]}}}}')
        return text.replace('    url: x\n', '    interval: 1h\n    from:\n' + ''.join(f'      - {layer}\n' for layer in layers))

    def again(self, harm=signal.SIGTERM):
        """The same agent once more."""
        self.agent.signal(harm)
        self.agent.wait()
        with open(self.agent.config_path, encoding='utf-8') as f:
            text = f.read()
        self.agent = Agent(self, text)
        self.agent.log.wait('last known good')
        return self.agent

    def publish(self, *texts):
        """Each becomes what the server has, and is published."""
        for text in texts:
            self.put(text)
            self.assertEqual(self.agent.refresh()['outcome'], 'published', text)

    def do(self, *args, code=0):
        return self.agent.cli(*args, check=code)[1]

    def ask(self, *args):
        return json.loads(self.do(*args, '--json'))

    def until(self, pattern, *args):
        """What the status says, once that is in it."""
        deadline = time.monotonic() + harness.DEADLINE
        while not re.search(pattern, text := self.do('status', *args), re.MULTILINE):
            self.assertLess(time.monotonic(), deadline, f'/{pattern}/: {text}')
        return text

    def refused(self, code, pattern, *args):
        got, out, error = self.agent.cli(*args)
        self.assertEqual((got, out), (code, ''), (args, error))
        self.assertRegex(error, rf'^pullet {args[0]}: .*{pattern}')
        return error

    def versions(self):
        """By generation; the one that stands."""
        versions = {v['generation']: v for v in self.ask('history', 'web')['versions']}
        standing = [g for g, v in versions.items() if v.get('published')]
        self.assertEqual(len(standing), 1)
        return versions, standing[0]

    def file(self):
        return yaml.safe_load(self.read('out/web.yaml'))

    def ledger(self):
        return json.loads(self.read('state/web/ledger.json'))


class Look(Case):
    """history, diff, explain."""

    def test_history_lists_what_is_kept_and_marks_what_stands(self):
        agent = self.begin('n: 1\n')
        self.publish('n: 2\n', 'n: 3  # three\n')
        versions, standing = self.versions()
        self.assertEqual((list(versions), standing), ([3, 2, 1], 3))
        v = versions[3]
        self.assertEqual((v['bytes'], v['urls'], v['origin']), (len('n: 3  # three\n'), [self.url + '/web.yaml'], 'pull'))
        self.assertEqual(v['sha256'], agent.status()['sha256'])
        self.assertEqual(v['version'], agent.status()['version'])
        self.assertLess(abs(v['pulled_ms'] / 1000 - time.time()), 600)
        self.assertNotIn('rejected', v)
        lines = self.do('history', 'web').splitlines()
        self.assertEqual(lines[0].split(), ['GENERATION', 'PUBLISHED', 'BYTES', 'VERSION', 'SHA256', 'WHY'])
        self.assertRegex(lines[1], rf'^3 \* +\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\dZ +14 +\w+ +{v["sha256"][:12]}  pull asked for by {ME}$')
        self.assertRegex(lines[3], r'^1 +2')
        agent.stop()

    def test_history_names_a_version_that_is_damaged_and_is_bounded_by_what_is_kept(self):
        agent = self.begin('n: 1\n', '    history: 3\n')
        self.publish(*[f'n: {n}\n' for n in range(2, 6)])
        with open(self.path('state/web/00000000000000000004'), 'r+b') as f:
            f.seek(-2, os.SEEK_END)
            f.write(b'9')
        versions, _ = self.versions()
        self.assertEqual(list(versions), [5, 4, 3])
        self.assertIn('generation 4 cannot be read', versions[4]['error'])
        self.assertIn('generation 4 cannot be read', self.do('history', 'web'))
        self.refused(1, 'generation 4 cannot be read', 'rollback', 'web', '4')
        self.refused(1, 'generation 4 cannot be read', 'diff', 'web')
        self.assertEqual(self.ask('rollback', 'web')['origin'], 'rollback to generation 3 by %s' % ME_PLAIN)
        agent.stop()

    def test_diff_by_key(self):
        agent = self.begin('db: {host: a, port: 1}\nlist: [1, 2]\n')
        self.refused(2, 'generation 1 is the oldest', 'diff', 'web')
        self.publish('db: {host: b, port: 1}\nlist: [1]\nnew: "two\\nlines"\n', '# only a comment\ndb: {host: b, port: 1}\nlist: [1]\nnew: "two\\nlines"\n')
        self.assertEqual(self.do('diff', 'web', '1'), '# generation 1 -> generation 3\n~ db.host: "a" -> "b"\n- list.1: 2\n+ new: "two\\nlines"\n')
        self.assertEqual(self.do('diff', 'web', '2', '1'), '# generation 2 -> generation 1\n~ db.host: "b" -> "a"\n+ list.1: 2\n- new: "two\\nlines"\n')
        self.assertEqual(self.do('diff', 'web'), '', 'of 2 and 3 only a comment is other')
        answer = self.ask('diff', 'web')
        self.assertEqual((answer['from']['generation'], answer['to']['generation'], answer['equal'], answer['changes']), (2, 3, False, []))
        self.assertEqual(self.ask('diff', 'web', '1', '2')['changes'][0],
                         {'change': 'changed', 'path': 'db.host', 'before': 'a', 'after': 'b'})
        self.assertTrue(self.ask('diff', 'web', '2', '2')['equal'])
        self.refused(2, 'no generation 99', 'diff', 'web', '1', '99')
        self.refused(2, 'no generation 99', 'diff', 'web', '99')
        agent.stop()

    def test_a_diff_of_more_values_than_a_document_may_have(self):
        agent = self.begin('n: 1\n')
        self.publish(''.join(f'key{i}: {i}\n' for i in range(30000)))
        self.assertEqual(len(self.do('diff', 'web').splitlines()), 30002)
        self.assertEqual(len(self.ask('diff', 'web')['changes']), 30001)
        agent.stop()

    def test_of_bytes_only_that_they_changed(self):
        agent = self.begin('one', '    type: bytes\n    snapshot: false\n')
        self.publish('other')
        answer = self.ask('diff', 'web')
        self.assertEqual((answer['equal'], answer['changes'], answer['from']['bytes'], answer['to']['bytes']), (False, None, 3, 5))
        self.assertRegex(self.do('diff', 'web'), r'^# generation 1 -> generation 2\n~ 3 bytes, SHA-256 [0-9a-f]{64} -> 5 bytes, SHA-256 [0-9a-f]{64}\n$')
        self.assertEqual(self.do('diff', 'web', '2', '2'), '')
        self.refused(1, 'it is bytes: it has no keys', 'explain', 'web', 'n')
        self.refused(1, 'it is bytes: it has no keys', 'override', 'web', 'n=1', '--for', '1h')
        self.do('rollback', 'web')
        self.assertEqual(self.read('out/web.yaml'), b'one')
        agent.stop()

    def test_of_a_set_of_files_too(self):
        self.put('a: 1\n', 'a.yaml')
        self.put('b: 1\n', 'b.yaml')
        text = self.layered('{server: main, path: /a.yaml, as: a.yaml}', '{server: main, path: /b.yaml, as: b.yaml}')
        self.agent = Agent(self, text.replace(f'file: {self.path("out/web.yaml")}', f'dir: {self.path("out/web")}'))
        self.agent.log.wait('published config=web generation=1')
        self.put('b: 2\n', 'b.yaml')
        self.agent.refresh()
        self.assertEqual(self.ask('diff', 'web')['changes'], None)
        self.assertEqual(len(self.versions()[0][2]['urls']), 2)
        self.refused(1, 'it is a set of files: it has no keys', 'explain', 'web', 'n')
        self.refused(1, 'it is a set of files: it has no keys', 'override', 'web', 'n=1', '--for', '1h')
        self.do('rollback', 'web')
        self.assertEqual(self.read('out/web/b.yaml'), b'b: 1\n')
        self.agent.stop()

    def test_explain_of_three_layers_and_an_override(self):
        self.put('db: {host: base, port: 1, tls: true}\nlist: [1]\nplain: 1\n', 'base.yaml')
        self.put('db: {host: zone, tls: null}\nplain: {now: a mapping}\n', 'zone.yaml')
        self.agent = Agent(self, self.layered('{server: main, path: /base.yaml}', '{server: main, path: /zone.yaml}',
                                              '{server: main, path: /web.yaml, optional: true}'))
        self.agent.log.wait('published config=web generation=1')
        said = self.ask('explain', 'web', 'db.host')
        self.assertEqual((said['found'], said['value'], said['generation']), (True, 'zone', 1))
        self.assertEqual([(v['path'], v['effect'], v.get('value'), v['effective']) for v in said['layers']],
                         [('/base.yaml', 'sets', 'base', False), ('/zone.yaml', 'sets', 'zone', True), ('/web.yaml', 'absent', None, False)])
        self.assertEqual((said['layers'][0]['url'], said['layers'][0]['line']), (self.url + '/base.yaml', 1))
        self.put('other: 1\n')
        self.agent.refresh()
        self.do('override', 'web', 'db.host=mine', '--for', '1h', '--reason', 'a try')
        said = self.ask('explain', 'web', 'db.host')
        self.assertEqual(said['value'], 'mine')
        self.assertEqual([v['effect'] for v in said['layers']], ['sets', 'sets', 'unset', 'sets'])
        self.assertEqual([v['effective'] for v in said['layers']], [False, False, False, True])
        last = said['layers'][3]
        self.assertEqual((last['override'], last['key'], last['by'], last['reason'], last['value']), (True, 'db.host', ME_PLAIN, 'a try', 'mine'))
        self.assertLess(abs(last['until_ms'] / 1000 - time.time() - 3600), 600)
        self.assertRegex(self.do('explain', 'web', 'db.host'), r'''^db.host: "mine"
  sets      /base.yaml, line 1: "base"
  sets      /zone.yaml, line 1: "zone"
  unset     /web.yaml
\* sets      override of db.host: "mine" by \S+ \(uid \d+\) until \S+: a try\n$''')
        # a mapping that several make up
        self.assertEqual(self.do('explain', 'web', 'db').splitlines()[:3],
                         ['db: a mapping of 2', '* sets      /base.yaml, line 1: a mapping of 3', '* sets      /zone.yaml, line 1: a mapping of 2'])
        self.assertEqual(self.ask('explain', 'web', 'db')['value'], {'host': 'mine', 'port': 1})
        # what was deleted, and what gave way
        _, out, _ = self.agent.cli('explain', 'web', 'db.tls', check=2)
        self.assertEqual(out.splitlines(), ['db.tls: not there', '  sets      /base.yaml, line 1: true', '  deletes   /zone.yaml, line 1',
                                            '  unset     /web.yaml', out.splitlines()[4]])
        self.assertRegex(out.splitlines()[4], '^  unset     override of db.host by \S+ \(uid')
        self.assertEqual(self.ask('explain', 'web', 'plain.now')['layers'][1]['effect'], 'sets')
        self.assertEqual(self.ask('explain', 'web', 'list.0')['value'], 1)
        self.assertFalse(json.loads(self.do('explain', 'web', 'db.tls', '--json', code=2))['found'])
        self.refused(2, 'no layer says anything about it', 'explain', 'web', 'db.none')
        self.refused(64, 'backslash', 'explain', 'web', 'a\\b')
        self.refused(64, 'the key ""', 'explain', 'web', '')
        self.agent.stop()


class RollBack(Case):
    def test_back_and_the_same_bytes_are_not_applied_again_until_they_change(self):
        agent = self.begin('n: 1\n')
        self.publish('n: 2\n')
        self.assertEqual(self.do('rollback', 'web', '--reason', 'pages are slow').splitlines()[0],
                         f'web: generation 3 is current: rollback to generation 1 by {ME_PLAIN}: pages are slow')
        self.assertEqual(self.read('out/web.yaml'), b'n: 1\n')
        log = agent.log.wait('a rollback was asked for')
        self.assertRegex(log, rf'from=2 to=1 by="?{ME}"? reason="pages are slow"')
        versions, standing = self.versions()
        self.assertEqual(standing, 3)
        self.assertEqual(versions[2]['rejected'], {'by': 'operator', 'why': f'rolled back by {ME_PLAIN}: pages are slow'})
        self.assertRegex(self.do('history', 'web'), rf'\n  rolled back by {ME}: pages are slow\n')
        self.until('was rolled back by ')  # without waiting for the interval
        for _ in range(3):
            self.assertEqual(agent.refresh()['outcome'], 'held')
        self.assertEqual((agent.status()['state'], agent.status()['last_error']), ('ok', None), 'a decision is not a failure')
        self.assertEqual(agent.status()['rejected']['by'], 'operator')
        self.assertRegex(self.do('status'), r'the server\'s version "\w+" was rolled back by \S+ \(uid \d+\): pages are slow')
        self.again()
        self.assertEqual(self.agent.refresh()['outcome'], 'held', 'a restart does not forget')
        self.assertEqual(self.read('out/web.yaml'), b'n: 1\n')
        self.publish('n: 3\n')
        self.assertEqual((self.read('out/web.yaml'), self.agent.status()['generation']), (b'n: 3\n', 4))
        self.assertNotIn('rejected', self.agent.status())
        self.put('n: 2\n')
        self.assertEqual(self.agent.refresh()['outcome'], 'held', 'the verdict is about the bytes')
        self.agent.stop()

    def test_without_a_number_it_skips_what_was_taken_back_and_what_is_the_same(self):
        agent = self.begin('n: 1\n')
        self.publish('n: 2\n', 'n: 3\n')
        for file, origin in ((b'n: 2\n', 'rollback to generation 2'), (b'n: 1\n', 'rollback to generation 1')):
            self.assertIn(origin, self.ask('rollback', 'web')['origin'])
            self.assertEqual(self.read('out/web.yaml'), file)
        self.refused(2, 'no older version that differs', 'rollback', 'web')
        # forward again, by its number: it is good again, and what stood is not
        self.assertEqual(self.ask('rollback', 'web', '3')['generation'], 6)
        self.assertEqual(self.read('out/web.yaml'), b'n: 3\n')
        self.assertEqual(agent.refresh()['outcome'], 'unchanged', 'the server has it too')
        versions, _ = self.versions()
        self.assertEqual({g: v.get('rejected', {}).get('by') for g, v in versions.items()},
                         {6: None, 5: 'operator', 4: 'operator', 3: None, 2: 'operator', 1: 'operator'})
        agent.stop()

    def test_refused_with_a_sentence(self):
        agent = self.begin('n: 1\n')
        self.refused(2, 'no older version', 'rollback', 'web')
        self.publish('n: 2\n')
        self.refused(1, 'generation 2 is the current version', 'rollback', 'web', '2')
        self.refused(2, 'there is no generation 7 in the state directory', 'rollback', 'web', '7')
        self.refused(2, 'there is no config of that name', 'rollback', 'none')
        self.do('rollback', 'web')
        self.refused(1, 'generation 1 has the same bytes as the current version', 'rollback', 'web', '1')
        self.refused(64, 'the reason must be', 'rollback', 'web', '2', '--reason', 'two\nlines')
        self.refused(64, 'the reason must be', 'rollback', 'web', '2', '--reason', 'x' * 300)
        self.assertEqual(agent.status()['generation'], 3)
        for query, code in (('generation=x', 400), ('generation=-1', 400), ('generation=99999999999999999999', 400), ('generation=7', 404),
                            ('timeout_ms=x', 400)):
            self.assertEqual(agent.post('/v1/configs/web/rollback?' + query)[0], code, query)
        agent.stop()

    def test_what_is_not_signed_any_more_is_refused(self):
        keys = {}
        for name in ('old', 'new'):
            subprocess.run(['minisign', '-G', '-W', '-p', self.path(name + '.pub'), '-s', self.path(name + '.key')], check=True, stdout=subprocess.DEVNULL)
            keys[name] = self.read(name + '.pub').decode().splitlines()[1]

        def put(text, key, comment):
            self.write('doc', text)
            subprocess.run(['minisign', '-S', '-s', self.path(key + '.key'), '-m', self.path('doc'), '-t', comment], check=True, stdout=subprocess.DEVNULL)
            self.put(self.read('doc.minisig'), 'web.yaml.minisig')
            self.put(text)

        def configure(name=None):
            text = self.config(self.url + '/web.yaml', '    interval: 1h\n' + (
                f'    verify: {{public_key: "{keys[name]}"}}\n' if name else ''))
            self.agent = Agent(self, text)
            self.agent.log.wait('last known good|published config=web')
            return self.agent
        put('n: 1\n', 'old', 'rev=1')
        configure().stop()
        configure('old').log.wait('published config=web generation=2')  # the same document, with its signature
        for n in (2, 3):
            put(f'n: {n}\n', 'old', f'rev={n}')
            self.assertEqual(self.agent.refresh()['outcome'], 'published')
        self.refused(1, 'generation 1 is not signed as the configuration asks for: /web.yaml: it was stored without a signature', 'rollback', 'web', '1')
        self.assertIn('rollback to generation 3', self.do('rollback', 'web'), 'an older rev is no hindrance for an operator')
        put('n: 5\n', 'new', 'rev=5')
        self.agent.stop()
        configure('new')
        self.assertEqual(self.agent.refresh()['outcome'], 'published')
        self.refused(1, 'generation 3 is not signed .*is not by one of the public keys', 'rollback', 'web', '3')
        self.assertEqual(self.file(), {'n': 5})
        self.agent.stop()

    def test_one_that_takes_long_goes_on_when_nobody_waits_any_more(self):
        check = Hook(self, 'check')
        agent = self.begin('n: 1\n', f'    check: [{check.path}, "{{path}}"]\n')
        self.publish('n: 2\n')
        check.do('hold')
        self.refused(4, 'timed out: the request continues', 'rollback', 'web', '--timeout', '200ms')
        self.assertEqual(self.file(), {'n': 2})
        check.release()
        agent.log.wait('published config=web generation=3')
        self.assertEqual(self.file(), {'n': 1})
        while len(check.told()) < 3:
            check.next()
        self.until('was rolled back by ')  # by the pull that follows
        self.put('n: 3\n')
        asked = Program([PULLET, 'override', '--socket', agent.socket, 'web', 'n=4', '--for', '1h'])
        self.addCleanup(asked.close)
        while len(check.told()) < 4:
            check.next()
        asked.close()
        check.release()
        agent.log.wait('published config=web generation=4')
        self.assertEqual(self.file(), {'n': 4})
        agent.stop()

    def test_a_forced_refresh_takes_what_was_taken_back_and_it_is_good_again(self):
        agent = self.begin('n: 1\n', '    guard: {require: [n]}\n')
        self.publish('n: 2\n')
        self.do('rollback', 'web')
        self.assertRegex(self.do('refresh', 'web', '--wait'),
                         r'^web: held, generation 3: rolled back by \S+ \(uid \d+\)\n  a rollback holds .*`pullet refresh web --force` publishes it\n$')
        self.assertEqual(self.do('refresh', 'web', '--force', '--wait'), 'web: published, generation 4\n')
        agent.log.wait(f'forced pull requested config=web by="{ME}"')
        self.assertNotIn('rejected', self.versions()[0][4])
        self.publish('n: 3\n', 'n: 2\n')
        self.put('x: 1\n')
        self.assertEqual(agent.refresh()['outcome'], 'failed')
        self.assertRegex(self.do('status'), 'is rejected by the guard: the required key n is not there')
        self.do('refresh', 'web', '--force', '--wait')
        self.assertEqual(self.file(), {'x': 1})
        agent.stop()


class Pin(Case):
    def test_holds_what_stands_over_a_restart_until_it_is_unpinned(self):
        agent = self.begin('n: 1\n')
        self.assertEqual(self.do('pin', 'web', '--reason', 'exam week'), 'web: pinned at generation 1 until it is unpinned\n')
        agent.log.wait(rf'pinned: keeping the current version config=web generation=1 by="{ME}" reason="exam week"')
        self.put('n: 2\n')
        self.assertEqual(agent.refresh()['outcome'], 'held')
        agent = self.again(signal.SIGKILL)
        self.assertEqual(agent.refresh()['outcome'], 'held')
        status = agent.status()
        self.assertEqual(status['pin'], {'by': ME_PLAIN, 'reason': 'exam week', 'until_ms': None})
        self.assertEqual(status['rejected']['by'], 'pin')
        self.assertEqual(self.file(), {'n': 1})
        self.assertRegex(self.do('status'), rf'(?s)is held by the pin\n  pinned by {ME}: exam week\n')
        self.do('refresh', 'web', '--force', '--wait')
        self.assertEqual(self.file(), {'n': 1}, 'a forced pull is validated again, but a pin is a pin')
        self.assertRegex(self.do('pin', 'web', '--for', '1h'), rf'^web: pinned at generation 1 for 1h\n  this ended the pin by {ME}: exam week\n$')
        self.assertRegex(self.do('unpin', 'web'), rf'^web: unpinned\n  this ended the pin by {ME} until \S+Z\n$')
        agent.log.wait('published config=web generation=2')
        self.assertEqual(self.file(), {'n': 2})
        self.assertNotIn('pin', agent.status())
        self.refused(1, 'it is not pinned', 'unpin', 'web')
        agent.stop()

    def test_a_pull_that_fails_is_told_as_ever(self):
        agent = self.begin('n: 1\n')
        self.do('pin', 'web')
        self.put('n: 2\n')
        self.assertRegex(self.do('refresh', 'web', '--wait'), r'^web: held, generation 1: pinned\n  the pin holds .*`pullet unpin web`')
        self.origin.close()
        self.assertRegex(self.do('refresh', 'web', '--wait', code=1), r'^web: failed, generation 1: .*refused')
        self.assertEqual((agent.status()['state'], agent.status()['rejected']['by']), ('failing', 'pin'))
        done = subprocess.run([PULLET, 'doctor', '-c', agent.config_path, 'web'], capture_output=True, text=True, check=False)
        self.assertRegex(done.stdout, r'web: the server has version \w+, held by the pin -> pullet unpin')
        self.assertRegex(done.stdout, r'web: failing -> see servers, below\n(.*\n)*servers\n  error .*refused')
        agent.stop()


class Suspend(Case):
    def counted(self):
        """How many runs ended; none is under way."""
        status = self.agent.status()
        self.assertFalse(status['running'])
        return sum(status['runs'].values())

    def test_begins_no_pull_whatever_asks_for_one(self):
        self.put('n: 1\n')
        agent = self.agent = Agent(self, self.config(self.url + '/web.yaml', '    interval: 1h\n', push=f'push: [{{endpoint: {self.endpoint}}}]'))
        agent.log.wait('published config=web generation=1')
        agent.log.wait('push channel connected')
        self.assertEqual(self.do('suspend', 'web', '--reason', 'the server moves'), 'web: suspended until it is resumed\n')
        agent.log.wait(rf'suspended: no pulls until it resumes config=web by="{ME}" reason="the server moves"')
        self.put('n: 2\n')
        before = self.counted()
        for args in (('refresh', 'web'), ('refresh', 'web', '--wait'), ('refresh', 'web', '--force')):
            error = self.refused(1, rf'web is suspended by {ME}: the server moves: `pullet resume web` ends that', *args)
            self.assertEqual(error.count('\n'), 1)
        self.assertIn('web is suspended: not pulled', agent.cli('refresh', check=0)[2])
        agent.signal(signal.SIGUSR1)
        agent.log.wait('pulling everything now configs=0 suspended=1')
        status = agent.status()
        self.assertEqual(status['suspension'], {'by': ME_PLAIN, 'reason': 'the server moves', 'until_ms': None})
        self.assertEqual((status['state'], status['next_pull_in_ms'], status['deferred']), ('ok', None, False))
        self.assertRegex(self.do('status'), rf'(?s)1 suspended.*\n  suspended by {ME}: the server moves\n')
        self.assertEqual(agent.get('/readyz')[0], 200)
        self.assertIn('pullet_config_operator_decisions{config="web"} 1', agent.get('/metrics')[1])
        deadline = time.monotonic() + harness.DEADLINE
        while not agent.status()['pushes']:  # of what was put: it was heard
            self.assertLess(time.monotonic(), deadline)
        for _ in range(20):  # turns of its loop, and a pull would have come to something
            self.assertEqual(self.counted(), before)
        self.assertEqual(self.file(), {'n': 1})
        self.assertRegex(self.do('suspend', 'web', '--for', '1h'), rf'^web: suspended for 1h\n  this ended the suspension by {ME}: the server moves\n$')
        self.assertRegex(self.do('resume', 'web'), rf'^web: resumed\n  this ended the suspension by {ME} until \S+Z\n$')
        agent.log.wait(rf'resumed config=web by="{ME}"')
        agent.log.wait('published config=web generation=2')
        self.assertNotIn('suspension', agent.status())
        self.assertIn('pullet_config_operator_decisions{config="web"} 0', agent.get('/metrics')[1])
        self.refused(1, 'it is not suspended', 'resume', 'web')
        agent.stop()

    def test_what_is_under_way_ends_and_who_waits_for_the_next_is_told(self):
        server = harness.FaultServer(self)
        server.behave = harness.good(b'n: 1\n', 'ETag: "1"\r\n')
        agent = self.agent = Agent(self, self.config(server.url + '/web.yaml', '    interval: 1h\n'))
        agent.log.wait('published config=web generation=1')
        gate = threading.Event()
        asked = threading.Event()

        def late(connection, head, stopping):
            asked.set()
            gate.wait(harness.DEADLINE)
            return harness.good(b'n: 2\n', 'ETag: "2"\r\n')(connection, head, stopping)
        server.behave = late
        agent.post('/v1/configs/web/refresh')
        self.assertTrue(asked.wait(harness.DEADLINE))
        self.do('suspend', 'web')
        self.assertTrue(agent.status()['running'])
        gate.set()
        agent.log.wait('published config=web generation=2')
        self.assertIsNone(agent.status()['next_pull_in_ms'])
        self.do('resume', 'web')
        deadline = time.monotonic() + harness.DEADLINE
        while agent.status()['running'] or self.counted() < 3:
            self.assertLess(time.monotonic(), deadline)
        server.behave = harness.good(b'later', 'Retry-After: 60\r\n', '503 Service Unavailable')
        agent.refresh()
        waits = Program([PULLET, 'refresh', 'web', '--wait', '--socket', agent.socket])
        self.addCleanup(waits.close)
        while not agent.status()['deferred']:
            self.assertLess(time.monotonic(), deadline)
        self.do('suspend', 'web', '--reason', 'enough')
        waits.log.wait(f'web is suspended by {ME}: enough: `pullet resume web` ends that')
        self.assertEqual(waits.wait(), 1)
        self.assertFalse(agent.status()['deferred'])
        agent.stop()

    def test_all(self):
        for name in 'ab':
            self.put('n: 1\n', name + '.yaml')
        text = self.config(self.url + '/a.yaml', '    interval: 1h\n')
        agent = self.agent = Agent(self, text + f'  b:\n    url: {self.url}/b.yaml\n    file: {self.path("out/b.yaml")}\n    interval: 1h\n')
        for name in ('web', 'b'):
            agent.log.wait(f'published config={name}')
        self.assertEqual(self.do('suspend', '--all', '--for', '1h'), 'web: suspended for 1h\nb: suspended for 1h\n')
        self.do('resume', 'b')
        self.assertRegex(self.do('resume', '--all'), rf'^web: resumed\n  this ended the suspension by {ME} until \S+Z\n$')
        self.assertEqual(self.do('resume', '--all'), 'no config is suspended\n')
        self.refused(64, 'name a config, or give --all', 'suspend')
        self.refused(64, 'name a config, or give --all', 'resume', 'b', '--all')
        agent.stop()


class Override(Case):

    def test_a_value_from_standard_input_is_in_no_command_line(self):
        agent = self.begin('a: x\n')
        command = [PULLET, 'override', '--socket', agent.socket, 'web', 'a=-', '--for', '1h']
        generation = 1
        for given, value in ((b'planted-one\n', 'planted-one'), (b'"planted two"', 'planted two'), (b"''\n", ''), (b'[1, 2]\n', [1, 2]), (b'x' * 2000 + b'\n', 'x' * 2000)):
            p = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            with p:
                p.stdin.write(given)
                p.stdin.flush()
                with open(f'/proc/{p.pid}/cmdline', 'rb') as f:  # it waits for the end of its input
                    self.assertNotIn(given.strip(), f.read())
                out, _ = p.communicate(timeout=harness.DEADLINE)
            generation += 1
            self.assertEqual(p.returncode, 0, out)
            self.assertIn(f'generation {generation} is current'.encode(), out)
            self.assertEqual(self.file(), {'a': value})
        for given, why in ((b'x' * 8194, 'has more than 8192 bytes'), (b'a\0b', 'has a NUL in it')):
            done = subprocess.run(command, input=given, capture_output=True, timeout=harness.DEADLINE, check=False)
            self.assertEqual(done.returncode, 64)
            self.assertIn(why.encode(), done.stderr)
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=harness.DEADLINE, check=False)
        self.assertNotEqual(done.returncode, 0, 'an empty one is none')
        agent.stop()

    def test_stays_over_new_versions_and_restarts_until_it_is_removed(self):
        agent = self.begin('n: 1\nm: 1\n')
        self.do('override', 'web', 'n=7', '--for', '1h')
        self.publish('n: 2\nm: 2\n')
        self.assertEqual(self.file(), {'n': 7, 'm': 2})
        agent = self.again(signal.SIGKILL)
        self.assertEqual(self.file(), {'n': 7, 'm': 2})
        self.assertEqual(self.ask('override', 'web', 'n', '--remove')['origin'], f'override of n removed by {ME_PLAIN}')
        self.assertEqual(self.file(), {'n': 2, 'm': 2})
        self.refused(2, 'there is no override of that key', 'override', 'web', 'n', '--remove')
        agent.stop()

    def test_any_value_of_yaml(self):
        agent = self.begin('n: 1\nm: {a: 1, b: 2}\nl: [1, 2]\n')
        for what, expected in (('n="1"', {'n': '1'}), ('n=true', {'n': True}), ('n=[1, x]', {'n': [1, 'x']}), ("n=''", {'n': ''}), ('n=a=b', {'n': 'a=b'}),
                               ('m={b: 3, c: 4}', {'m': {'a': 1, 'b': 3, 'c': 4}}), ('l=[3]', {'l': [3]}), ('a.b.c=1', {'a': {'b': {'c': 1}}}),
                               (r'x\.y=1', {'x.y': 1}), ('n=no', {'n': 'no'})):
            self.do('override', 'web', what, '--for', '1h')
            self.assertEqual({k: yaml.load(self.read('out/web.yaml'), yaml.BaseLoader if v == 'no' else yaml.SafeLoader)[k] for k, v in expected.items()},
                             expected, what)
        self.do('override', 'web', 'n=null', '--for', '1h')
        self.assertNotIn('n', self.file())
        self.assertEqual(len(agent.status()['overrides']), 5, 'one of each key')
        agent.stop()

    def test_refused_with_a_sentence(self):
        agent = self.begin('db: {host: a, list: [1]}\nl: [1, {x: 1}]\nn: 1\nnothing:\n')
        for what, pattern in (('l.0=1', 'l is a list: an override of it as a whole'), ('l.1.x=1', 'l is a list'), ('db.list.0=2', 'db.list is a list'),
                              ('n.x=1', 'n is a single value'), ('db.host.x.y=1', 'db.host is a single value')):
            self.refused(1, pattern, 'override', 'web', what, '--for', '1h')  # as the values are now
        for what, pattern in (('a\\b=1', 'backslash'), ('n=', "the value is empty: write '' for"), ('n=#fff', 'the value is empty'),
                              ('n=[1', 'the value cannot be read'), ('n=a: b', 'the value cannot be read'), ('n=1\nm: 2', 'more than one value'),
                              ('n=!!bin 1', 'the value cannot be read'), ('n=' + 'x' * 5000, 'the value is too long'), ('k' * 1100 + '=1', 'the key .*1023')):
            self.refused(64, pattern, 'override', 'web', what, '--for', '1h')
        self.refused(64, 'the reason must be', 'override', 'web', 'n=1', '--for', '1h', '--reason', 'x' * 300)
        self.refused(64, 'too long for a request', 'override', 'web', 'n=' + 'x' * 9000, '--for', '1h')
        self.refused(2, 'no config of that name', 'override', 'none', 'n=1', '--for', '1h')
        for query, pattern in (('key=n&value=1', 'has an end'), ('key=n&for_ms=1000', 'needs a value'), ('value=1&for_ms=1000', 'the key ""'),
                               ('key=n&value=1&for_ms=1h', 'for_ms takes a number')):
            code, body = agent.post('/v1/configs/web/override?' + query)
            self.assertEqual(code, 400, query)
            self.assertRegex(json.loads(body)['error'], pattern)
        self.assertEqual((agent.status()['generation'], agent.status()['overrides']), (1, []))
        self.assertIn('had no such key', self.do('override', 'web', 'nothing.x=1', '--for', '1h'))
        agent.stop()

    def test_what_may_not_be_meant_is_said(self):
        agent = self.begin('db: {host: a, port: 1}\nn: 1\n')
        self.refused(64, 'has a blank around it', 'override', 'web', 'n = 2', '--for', '1h')
        said = self.do('override', 'web', 'db.hots=b', '--for', '1h')
        self.assertRegex(said, "\n  the version before had no such key: is its name right\\? There is db.host\n"
                         "  `pullet override web 'db.hots' --remove` ends it now\n$")
        self.do('override', 'web', 'db.hots', '--remove')
        self.assertEqual(len(self.do('override', 'web', 'db={host: b}', '--for', '1h').splitlines()), 1, 'merged')
        said = self.do('override', 'web', 'db=5', '--for', '1h')
        self.assertIn("\n  it replaces a mapping of 2: readers see none of its keys until it ends\n  `pullet override web 'db' --remove`", said)
        self.publish('db: {host: a, port: 2}\nn: 2\n')
        self.assertIn('\n  overrides stay in effect: db\n', self.do('rollback', 'web'))
        agent.stop()


class Status(Case):
    """What `pullet status` adds to a config's line when there is something to say."""

    def test_nothing_when_all_is_well(self):
        agent = self.begin('n: 1\n')
        self.assertEqual(len(self.do('status').splitlines()), 3)
        agent.stop()

    def test_a_signature_that_expires(self):
        subprocess.run(['minisign', '-G', '-W', '-p', self.path('key.pub'), '-s', self.path('key')], check=True, stdout=subprocess.DEVNULL)
        self.write('doc', 'n: 1\n')
        subprocess.run(['minisign', '-S', '-s', self.path('key'), '-m', self.path('doc'), '-t', 'expires=2037-12-31T00:00:00Z'], check=True,
                       stdout=subprocess.DEVNULL)
        self.put(self.read('doc.minisig'), 'web.yaml.minisig')
        agent = self.begin('n: 1\n', f'    verify: {{public_key: "{self.read("key.pub").decode().splitlines()[1]}"}}\n')
        self.until('^  the signature expires at 2037-12-31T00:00:00Z$', 'web')
        self.assertNotIn('expires', self.do('status'), 'that is no news yet')
        agent.stop()


class All(Case):

    @harness.needs(harness.LOOK)
    def test_nothing_shows_what_the_mask_names(self):
        one, two, three, four = SECRETS
        self.write('schema.json', '{"properties": {"db": {"properties": {"password": {"pattern": "^plan"}}}}}')
        more = f'    mask: ["*.password", token, "keys.*"]\n    schema: {self.path("schema.json")}\n'
        agent = self.begin(f'db: {{password: {one}, host: a}}\ntoken: [{one}]\nkeys: {{x: {one}}}\n', more, agent='  listen: 127.0.0.1:0')
        port = self.listener_port(agent)
        self.publish(f'db: {{password: {two}, host: b}}\ntoken: {{deep: {two}}}\nkeys: {{x: {two}, y: {one}}}\n')
        outputs = []

        def ask(*args):
            outputs.append(''.join(str(part) for part in agent.cli(*args)))
        ask('override', 'web', f'db.password={three}', '--for', '1h', '--reason', 'rotation')
        ask('override', 'web', f'db={{password: {four}, port: 1}}', '--for', '1h')
        ask('override', 'web', f'db.password.x={four}', '--for', '1h')
        ask('override', 'web', f'token.deep={four}', '--for', '1h')
        ask('override', 'web', f'db.password=a-{four}', '--for', '1h')
        self.assertIn('rejected by the schema', outputs[-1])
        keys = ('db', 'db.password', 'token', 'token.deep', 'token.0', 'keys', 'keys.x', 'db.host')
        for json_too in ((), ('--json',)):
            for key in keys:
                ask('explain', 'web', key, *json_too)
            for pair in ((), ('1',), ('1', '2'), ('2', '1'), ('1', '1')):
                ask('diff', 'web', *pair, *json_too)
            for args in (('history', 'web'), ('status',), ('status', 'web'), ('rollback', 'web'), ('pin', 'web'), ('unpin', 'web')):
                ask(*args, *json_too)
        for path in ('/v1/status', '/v1/configs/web', '/v1/configs/web/history', '/v1/configs/web/diff', *['/v1/configs/web/explain?key=' + k for k in keys]):
            outputs.append(agent.get(path)[1])
            outputs.append(self.tcp(port, 'GET', path)[1])
        agent.stop()
        outputs += agent.log.seen
        text = '\n'.join(outputs)
        self.assertGreater(text.count('***'), 20)
        for secret in SECRETS:
            self.assertNotIn(secret, text)
        self.assertIn('"b"', text, 'what is not masked is shown')
        self.assertTrue(any(secret in self.read('out/web.yaml').decode() for secret in SECRETS), 'the search can find')

    def test_nor_does_a_check_of_what_was_merged(self):
        self.write('check', '#!/bin/sh\nif grep -q bad "$1"; then cat "$1"; exit 1; fi\n')
        os.chmod(self.path('check'), 0o755)
        agent = self.begin('token: plan-one\n', f'    mask: [token]\n    format: yaml\n    check: {{run: ["{self.path("check")}", "{{path}}"]}}\n')
        self.do('override', 'web', 'n=1', '--for', '1h')
        self.put('token: plan-two\nshown: bad\n')
        error = agent.refresh()['error']
        self.assertIn('bad', error)
        self.assertIn('***', error)
        self.assertNotIn('plan-two', error)
        agent.stop()
        self.assertNotIn('plan-two', '\n'.join(agent.log.seen))

    @staticmethod
    def listener_port(agent):
        """The TCP port that the agent listens on."""
        agent.ready()
        inodes = set()
        for fd in os.listdir(f'/proc/{agent.pid}/fd'):
            try:
                found = re.match(r'socket:\[(\d+)\]', os.readlink(f'/proc/{agent.pid}/fd/{fd}'))
            except FileNotFoundError:
                continue
            if found:
                inodes.add(found[1])
        with open(f'/proc/{agent.pid}/net/tcp', encoding='ascii') as f:
            rows = [line.split() for line in f.readlines()[1:]]
        return next(int(row[1].split(':')[1], 16) for row in rows if row[3] == '0A' and row[9] in inodes)

    @staticmethod
    def tcp(port, method, path):
        connection = http.client.HTTPConnection('127.0.0.1', port, timeout=harness.DEADLINE)
        connection.request(method, path)
        response = connection.getresponse()
        answer = response.status, response.read().decode()
        connection.close()
        return answer

    @harness.needs(harness.LOOK)
    def test_values_and_changes_are_not_for_the_tcp_listener(self):
        agent = self.begin('n: 1\n', agent='  listen: 127.0.0.1:0')
        self.publish('n: 2\n')
        port = self.listener_port(agent)
        self.assertEqual(self.tcp(port, 'GET', '/v1/configs/web/history')[0], 200)
        for path in ('diff', 'explain?key=n'):
            code, body = self.tcp(port, 'GET', '/v1/configs/web/' + path)
            self.assertEqual(code, 403)
            self.assertIn('on the control socket only', body)
            self.assertEqual(agent.get('/v1/configs/web/' + path)[0], 200)
        for path in ('rollback', 'pin', 'unpin', 'override?key=n&value=1&for_ms=1000', 'refresh?force=1'):
            self.assertEqual(self.tcp(port, 'POST', '/v1/configs/web/' + path)[0], 403)
        for path in ('rollback', 'pin', 'unpin', 'override'):
            self.assertEqual(agent.get('/v1/configs/web/' + path)[0], 405)
            self.assertEqual(agent.post('/v1/configs/none/' + path)[0], 404)
        for path in ('history', 'diff', 'explain'):
            self.assertEqual(agent.post('/v1/configs/web/' + path)[0], 405)
        self.assertEqual(agent.status()['generation'], 2)
        agent.stop()

    def test_before_anything_is_published(self):
        agent = self.begin(None)
        self.assertEqual(self.ask('history', 'web'), {'name': 'web', 'versions': []})
        for args in (('diff', 'web'), ('explain', 'web', 'n'), ('rollback', 'web'), ('rollback', 'web', '1'), ('pin', 'web'),
                     ('override', 'web', 'n=1', '--for', '1h'), ('override', 'web', 'n', '--remove')):
            self.refused(1, 'nothing is published yet', *args)
        self.refused(1, 'it is not pinned', 'unpin', 'web')
        agent.stop()

    @harness.one_thread
    def test_wrong_usage(self):
        agent = self.begin('n: 1\n')
        for args in ((), ('a', 'b', 'c', 'd', 'e'), ('web', '--none')):
            for word in WORDS:
                code, out, error = agent.cli(word, *args)
                self.assertEqual((code, out), (64, ''), (word, args))
                self.assertTrue(error)
        for args, pattern in ((('rollback', 'web', 'x'), 'a generation is a number'), (('rollback', 'web', '0'), 'a generation is a number'),
                              (('rollback', 'web', '-1'), 'Try'), (('diff', 'web', 'x'), 'a generation is a number'), (('diff', 'web', ''), 'a generation is a number'),
                              (('pin', 'web', '--for', '10'), '--for takes a duration'), (('pin', 'web', '--for', '0s'), 'more than nothing'),
                              (('override', 'web', 'n=1'), '--for is needed'), (('override', 'web', 'n', '--for', '1h'), 'KEY=VALUE is needed'),
                              (('override', 'web', '=1', '--for', '1h'), 'KEY=VALUE is needed'),
                              (('override', 'web', 'n', '--remove', '--for', '1h'), '--remove is now'),
                              (('rollback', 'web', '--timeout', 'x'), '--timeout takes a duration'), (('refresh', '--force'), 'name it')):
            code, out, error = agent.cli(*args)
            self.assertEqual((code, out), (64, ''), args)
            self.assertRegex(error, pattern)
        self.assertEqual(agent.status()['generation'], 1)
        agent.stop()

    @harness.one_thread
    def test_help_and_an_agent_that_is_not_there(self):
        for word in WORDS:
            done = subprocess.run([PULLET, word, '--help'], capture_output=True, text=True, check=True)
            self.assertRegex(done.stdout, rf'^Usage: pullet {word} CONFIG')
            self.assertEqual(max(len(line) for line in done.stdout.splitlines()) < 121, True, word)
        everything = subprocess.run([PULLET, '--help'], capture_output=True, text=True, check=True).stdout
        for word in WORDS:
            self.assertRegex(everything, rf'\n  {word} ')
        for args in (('history', 'web'), ('diff', 'web'), ('explain', 'web', 'n'), ('rollback', 'web'), ('pin', 'web'), ('unpin', 'web'),
                     ('override', 'web', 'n=1', '--for', '1h')):
            done = subprocess.run([PULLET, *args, '--socket', self.path('none.sock')], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 3, args)

    def test_words_from_others_do_not_act_on_the_terminal(self):
        check = Hook(self, 'check')
        agent = self.begin('"a\\u001b[31m": "\\u001b[2J"\n', f'    check: [{check.path}, "{{path}}"]\n')
        self.publish('"a\\u001b[31m": "x\\u009b2J"\n')
        self.do('pin', 'web', '--reason', 'bell \u009b31m')
        check.do('printf "one \\033[31m\\ntwo \\302\\2332J\\n"; exit 1')
        error = self.refused(1, 'rejected by the check', 'rollback', 'web')
        self.assertNotRegex(error, '[\x00-\x09\x0b-\x1f\x7f-\x9f]')
        self.assertIn('one ', error)
        self.assertIn('two ', error)
        for args in (('status',), ('status', 'web'), ('history', 'web'), ('diff', 'web'), ('explain', 'web', 'a\x1b[31m')):
            code, out, _ = agent.cli(*args)
            self.assertNotRegex(out, '[\x00-\x09\x0b-\x1f\x7f-\x9f]', args)
            self.assertIn(code, (0, 64))
        agent.stop()


if __name__ == '__main__':
    harness.main()
