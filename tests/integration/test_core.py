"""What version 0.1.0 promised and did not keep, with a running agent: a place that cannot be written, a kill between two steps, decisions that meet."""
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess

import harness
import test_change
import test_operate
from harness import PULLET, PULLETD, Program
from test_change import Hook
from test_sighup import Later

SNAPSHOT = 'run/web.snap'


class Case(test_change.Case):
    """One config, web, that is pulled when a test says so."""

    def begin(self, document=b'n: 1\n', **config):
        """An agent that has published this document as generation 1."""
        self.more = config
        self.origin.put('/web.yaml', document)
        self.start(**config).log.wait('published config=web generation=1')

    def again(self, **config):
        """The agent is killed, and started once more with the same configuration, but for what is given."""
        self.agent.signal(signal.SIGKILL)
        self.agent.wait()
        self.more = {**self.more, **config}
        self.start(**self.more)

    def down(self):
        """No server answers any more."""
        self.origin.close()

    def block(self, name=SNAPSHOT):
        """A folder in the place of a published file: it cannot be replaced."""
        while not os.path.isdir(self.path(name)):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.path(name))
            with contextlib.suppress(FileExistsError):  # the agent has just restored it
                os.mkdir(self.path(name))

    def unblock(self, name=SNAPSHOT):
        os.rmdir(self.path(name))

    def do(self, *args, code=0):
        return self.agent.cli(*args, check=code)[1]

    def fails(self, pattern, *args):
        """The command is refused with a sentence."""
        code, out, error = self.agent.cli(*args)
        self.assertEqual((code, out), (1, ''), error)
        self.assertRegex(error, pattern)

    def offer(self, document, outcome):
        """The server has it from now on; a pull of it ends so."""
        self.origin.put('/web.yaml', document)
        answer = self.agent.refresh()
        self.assertEqual(answer['outcome'], outcome, answer)
        return answer

    def until_shown(self, document, after=0):
        """A version of a higher number than `after` is current and visible."""
        self.until(lambda s: self.out() == document and s['generation'] > after)

    def bad_disk(self, **more):
        """The environment for a disk that hangs or is full when a test says so; see hang.c."""
        library = self.path('hang.so')
        subprocess.run(['cc', '-shared', '-fPIC', '-D_GNU_SOURCE', '-o', library, os.path.join(harness.ROOT, 'tests/integration/hang.c')], check=True)
        return {'LD_PRELOAD': library, 'ASAN_OPTIONS': 'verify_asan_link_order=0:detect_leaks=0', **more}

    def ledger(self):
        return json.loads(self.read('state/web/ledger.json'))


class Place(Case):
    """The snapshot cannot be replaced."""

    def test_a_pin_holds_the_current_version_not_one_that_was_saved_after_it(self):
        self.begin(drift='leave')
        self.block()
        self.assertRegex(self.offer(b'n: 2\n', 'failed')['error'], 'cannot replace')
        self.do('pin', 'web')
        self.down()
        self.unblock()
        self.again()
        self.agent.refresh()
        self.assertEqual((self.out(), self.status()['generation']), (b'n: 1\n', 3))
        self.assertIn('pin', self.status())

    def test_a_rollback_that_was_refused_does_not_happen_later(self):
        for pinned in (False, True):
            with self.subTest(pinned=pinned):
                self.begin(drift='leave')
                self.publish(b'n: 2\n')
                if pinned:
                    self.do('pin', 'web')
                self.block()
                self.fails('could not publish: keeping the current version', 'rollback', 'web')
                self.unblock()
                self.again()
                self.assertEqual(self.agent.refresh()['error'], None)
                self.assertEqual((self.out(), self.status()['generation']), (b'n: 2\n', 2))
                self.assertNotIn('rejected', self.status())
                self.agent.stop()
                shutil.rmtree(self.path('state'))

    def test_what_could_not_be_published_is_not_half_visible(self):
        """Whatever is to become of changes of others: this one is the agent's own."""
        for drift in ('heal', 'report', 'leave'):
            with self.subTest(drift=drift):
                self.begin(drift=drift)
                self.block()
                self.assertRegex(self.offer(b'n: 2\n', 'failed')['error'], 'cannot replace')
                self.assertEqual(self.status()['generation'], 1)
                self.until_shown(b'n: 1\n')
                self.unblock()
                self.assertEqual(self.agent.refresh()['outcome'], 'published')
                self.assertEqual((self.out(), self.status()['generation'], os.path.isfile(self.path(SNAPSHOT))), (b'n: 2\n', 2, True))
                self.agent.stop()
                shutil.rmtree(self.path('state'))

    def test_a_refused_rollback_is_not_half_visible_either(self):
        for drift in ('heal', 'leave'):
            with self.subTest(drift=drift):
                self.begin(drift=drift)
                self.publish(b'n: 2\n')
                self.block()
                self.fails('could not publish', 'rollback', 'web')
                self.until_shown(b'n: 2\n')
                self.unblock()
                self.agent.stop()
                shutil.rmtree(self.path('state'))

    def test_an_override_that_expires_meanwhile_ends_whatever_the_server_has(self):
        self.begin(drift='leave')
        self.do('pin', 'web')
        self.offer(b'n: 2\n', 'held')
        self.do('override', 'web', 'n=5', '--for', '10s' if harness.SANITIZED else '2s')
        self.assertEqual(self.out(), b'n: 5\n')
        self.block()
        at = self.agent.log.count
        self.agent.log.wait('an override has expired')
        self.agent.log.wait('could not publish', at)
        self.unblock()
        self.agent.refresh()
        self.until_shown(b'n: 1\n', after=2)
        self.assertIn('pin', self.status())


class Probe(Case):
    def setUp(self):
        super().setUp()
        self.probe = Hook(self, 'probe', f'if grep -q bad {self.path("out/web.yaml")}; then hold; exit 1; fi')

    def begin(self, **config):
        super().begin(drift='leave', probe={'run': [self.probe.path], 'for': '200ms', 'every': '100ms', 'failures': 1}, **config)
        self.until(lambda s: s['probe']['state'] == 'passed')

    def publish_bad(self):
        """Generation 2, whose probe waits for fail()."""
        self.publish(b'n: bad\n')
        self.probe.next('^run 2')

    def fail(self, blocked=False):
        """Its probe fails."""
        if blocked:
            self.block()
        at = self.agent.log.count
        self.probe.release()
        self.agent.log.wait('probe failed', at)
        if blocked:
            self.agent.log.wait('could not publish', at)

    def test_a_rollback_that_failed_is_tried_again_when_the_server_is_down(self):
        self.begin()
        self.publish_bad()
        self.fail(blocked=True)
        self.down()
        self.unblock()
        self.agent.refresh()
        self.until_shown(b'n: 1\n', after=2)

    def test_a_rollback_that_failed_is_tried_again_when_the_server_has_a_rejected_version(self):
        self.begin(guard={'require': ['n']})
        self.publish_bad()
        self.fail(blocked=True)
        self.origin.put('/web.yaml', b'x: 1\n')
        self.agent.refresh()
        self.unblock()
        self.agent.refresh()
        self.until_shown(b'n: 1\n', after=2)

    def test_a_harmful_version_is_known_as_such_after_a_check_refused_its_rollback(self):
        check = Hook(self, 'check', f'[ ! -e {self.path("refuse")} ]')
        self.begin(check=[check.path, '{path}'])
        self.publish_bad()
        self.fail(blocked=True)
        self.write('refuse', '')
        self.fails('rejected by the check', 'rollback', 'web')
        self.assertEqual([v['judge'] for v in self.ledger()['verdicts']], ['probe'])
        os.unlink(self.path('refuse'))
        self.unblock()
        self.agent.refresh()
        self.until_shown(b'n: 1\n', after=2)

    def test_a_pinned_version_stays_though_its_probe_fails_and_is_rolled_back_at_the_unpin(self):
        self.begin()
        self.publish_bad()
        self.do('pin', 'web')
        self.fail()
        self.agent.refresh()
        self.assertEqual((self.out(), self.status()['generation']), (b'n: bad\n', 2))
        self.again()
        self.agent.refresh()
        self.assertEqual((self.out(), self.status()['generation']), (b'n: bad\n', 2), 'a restart changes nothing')
        self.do('unpin', 'web')
        self.until_shown(b'n: 1\n', after=2)


class Overrides(Case):
    """A probe that fails while overrides are in force is about the pair: these bytes with these overrides."""

    def setUp(self):
        super().setUp()
        file = self.path('out/web.yaml')
        # one on the first version is not probed to the end before the next version comes
        self.probe = Hook(self, 'probe', f'if grep -q harm {file} && grep -q "n: 1" {file}; then hold; fi; ! grep -q "harm\\|bad" {file}')
        self.begin(probe={'run': [self.probe.path], 'for': '200ms', 'every': '100ms', 'failures': 1})
        self.until(lambda s: s['probe']['state'] == 'passed')

    def until_passed(self, document, after):
        self.until(lambda s: self.out() == document and s['generation'] > after and s['probe']['state'] == 'passed' and
                   s['probe']['generation'] == s['generation'])

    def verdicts(self):
        return [v['judge'] for v in self.ledger()['verdicts']]

    def test_harmful_ones_over_proven_bytes_are_removed_and_the_bytes_stay(self):
        self.do('override', 'web', 'harm=true', '--for', '1h')
        self.probe.next('^run 2')
        self.probe.release()
        self.until_shown(b'n: 1\n', after=2)
        runs = self.probe.runs
        self.agent.refresh()
        self.assertEqual((self.verdicts(), self.ledger()['overrides'], self.ledger()['proven'], self.probe.runs), ([], [], '3', runs))

    def test_harmful_ones_over_a_new_version_are_removed_and_it_is_probed_without_them(self):
        self.do('override', 'web', 'harm=true', '--for', '1h')
        self.probe.next('^run 2')
        self.publish(b'n: 2\n')
        self.until_passed(b'n: 2\n', after=3)
        self.assertEqual((self.verdicts(), self.ledger()['overrides'], self.ledger()['proven']), ([], [], '4'))
        self.assertEqual(self.agent.refresh()['outcome'], 'unchanged')

    def test_harmful_ones_over_a_harmful_version_both_go(self):
        self.do('override', 'web', 'harm=true', '--for', '1h')
        self.probe.next('^run 2')
        self.publish(b'n: bad\n')
        self.until_shown(b'n: 1\n', after=4)
        self.assertEqual((self.verdicts(), self.ledger()['overrides']), (['probe'], []))
        self.assertEqual(self.agent.refresh()['outcome'], 'failed')

    def test_good_ones_over_a_harmful_version_stay(self):
        self.do('override', 'web', 'x=1', '--for', '1h')
        self.until(lambda s: s['probe']['state'] == 'passed' and s['probe']['generation'] == 2)
        self.publish(b'n: bad\n')
        self.until_shown(b'n: 1\nx: 1\n', after=3)
        self.assertEqual((self.verdicts(), [o['key'] for o in self.ledger()['overrides']]), (['probe'], ['x']))
        self.assertEqual(self.agent.refresh()['outcome'], 'failed')


class Kill(Case):
    def test_a_rollback_that_was_cut_off_changes_nothing(self):
        check = Hook(self, 'check')
        self.begin(check=[check.path, '{path}'])
        for n in (2, 3, 4):
            self.publish(b'n: %d\n' % n)
        check.do('hold')
        at = len(check.told())
        asked = Program([PULLET, 'rollback', '--socket', self.agent.socket, 'web', '1'])
        self.addCleanup(asked.close)
        self.until(lambda _: len(check.told()) > at)
        check.do('exit 0')
        self.again()
        self.assertEqual(self.agent.refresh()['outcome'], 'unchanged')
        self.assertEqual((self.out(), self.status()['generation']), (b'n: 4\n', 4), 'nobody was answered')
        self.assertEqual(self.ledger()['verdicts'], [])

    def keep_ledger(self):
        """What is done next is not in the ledger any more after cut_power()."""
        ledger = self.path('state/web/ledger.json')
        self.old = self.read(ledger) if os.path.exists(ledger) else None

    def cut_power(self):
        self.agent.signal(signal.SIGKILL)
        self.agent.wait()
        os.unlink(self.path('state/web/ledger.json'))
        if self.old is not None:
            self.write('state/web/ledger.json', self.old)
        self.start(**self.more)

    def test_a_signed_revision_that_was_visible_is_not_played_back(self):
        subprocess.run(['minisign', '-G', '-W', '-p', self.path('k.pub'), '-s', self.path('k.key')], check=True, stdout=subprocess.DEVNULL)
        self.sign(b'n: 1\n', 1)
        self.begin(verify={'public_key': self.read('k.pub').decode().split('\n')[1]})
        self.keep_ledger()
        self.sign(b'n: 2\n', 2)
        self.assertEqual(self.agent.refresh()['outcome'], 'published')
        self.sign(b'n: 0\n', 1)
        self.cut_power()
        self.assertRegex(self.agent.refresh()['error'], 'signed as rev=1, but rev=2 was accepted before')
        self.assertEqual(self.out(), b'n: 2\n')

    def sign(self, document, rev):
        self.write('doc', document)
        subprocess.run(['minisign', '-S', '-s', self.path('k.key'), '-m', self.path('doc'), '-t', f'rev={rev}'], check=True, stdout=subprocess.DEVNULL)
        self.origin.put('/web.yaml', document)
        self.origin.put('/web.yaml.minisig', self.read('doc.minisig'))

    def test_an_override_that_was_visible_stays(self):
        self.begin()
        self.keep_ledger()
        self.do('override', 'web', 'n=5', '--for', '1h')
        self.cut_power()
        self.agent.refresh()
        self.assertEqual((self.out(), self.status()['generation']), (b'n: 5\n', 2))
        self.assertEqual([o['key'] for o in self.ledger()['overrides']], ['n'])


class Hanging(Case):
    """A server that does not answer holds nothing back that is decided here."""

    def begin(self, **config):
        super().begin(timeout='10m', **config)

    def hang(self):
        """A pull is under way, and stays so."""
        self.origin.put('/web.yaml', lambda connection, head, stopping: stopping.wait(harness.DEADLINE * 2) and 'close')
        asked = len(self.origin.asked)
        self.agent.post('/v1/configs/web/refresh')
        self.until(lambda s: s['running'] and len(self.origin.asked) > asked)

    def tearDown(self):
        self.origin.close()
        super().tearDown()

    def test_a_rollback_and_an_override(self):
        self.begin()
        self.publish(b'n: 2\n')
        self.hang()
        self.do('rollback', 'web', '--timeout', f'{harness.DEADLINE // 2}s')
        self.assertEqual(self.out(), b'n: 1\n')
        self.do('override', 'web', 'n=5', '--for', '1s', '--timeout', f'{harness.DEADLINE // 2}s')
        self.until_shown(b'n: 1\n', after=4)
        self.assertTrue(self.status()['running'])

    def test_the_rollback_of_a_harmful_version(self):
        probe = Hook(self, 'probe', f'if grep -q bad {self.path("out/web.yaml")}; then hold; exit 1; fi')
        self.begin(probe={'run': [probe.path], 'for': '200ms', 'every': '100ms', 'failures': 1})
        self.until(lambda s: s['probe']['state'] == 'passed')
        self.publish(b'n: bad\n')
        probe.next('^run 2')
        self.hang()
        probe.release()
        self.until_shown(b'n: 1\n', after=2)
        self.assertTrue(self.status()['running'])

    def test_what_a_pin_held(self):
        self.begin()
        self.do('pin', 'web')
        self.offer(b'n: 2\n', 'held')
        self.hang()
        self.do('unpin', 'web')
        self.until_shown(b'n: 2\n', after=1)
        self.assertTrue(self.status()['running'])


class Pin(Case):
    def test_while_the_disk_takes_a_version_it_names_that_one(self):
        fifo = self.path('fifo')
        self.begin(env=self.bad_disk(HANG_FIFO=fifo, HANG_PATH='/state/web'))
        os.mkfifo(fifo)
        self.origin.put('/web.yaml', b'n: 2\n')
        waits = Later(self.agent, '/v1/configs/web/refresh?wait=1')
        self.agent.log.wait('fsync hangs')
        pinned = Program([PULLET, 'pin', '--socket', self.agent.socket, 'web'], read='both')
        self.addCleanup(pinned.close)
        self.agent.log.wait('pinned: keeping the current version')
        os.rename(fifo, fifo + '.old')
        with open(fifo + '.old', 'wb'):
            pass
        said = int(re.search(r'pinned at generation (\d+)', pinned.log.wait('pinned'))[1])
        waits.result()
        self.agent.refresh()
        self.assertEqual(self.status()['generation'], said)
        self.offer(b'n: 3\n', 'held')
        self.assertEqual(self.status()['generation'], said)

    def test_takes_its_own_bytes_from_the_server_when_the_stored_ones_are_damaged(self):
        self.begin()
        self.do('pin', 'web')
        with open(self.path('state/web/00000000000000000001'), 'r+b') as f:
            f.seek(-2, os.SEEK_END)
            f.write(b'9')
        self.write('out/web.yaml', 'x: 1\n')
        self.agent.log.wait('cannot repair|cannot be put right')
        self.agent.refresh()
        self.until_shown(b'n: 1\n')
        self.offer(b'n: 2\n', 'held')
        self.assertEqual(self.out(), b'n: 1\n')

    def test_what_it_held_is_published_at_the_unpin_though_the_server_is_down(self):
        self.begin()
        self.do('pin', 'web')
        self.offer(b'n: 2\n', 'held')
        self.down()
        self.do('unpin', 'web')
        self.until_shown(b'n: 2\n')

    def test_holds_nothing_when_its_version_does_not_fit_the_configuration(self):
        self.begin()
        self.do('pin', 'web')
        self.origin.put('/more.yaml', b'm: 1\n')
        self.agent.stop()
        self.start('/web.yaml', '/more.yaml')
        self.agent.refresh()
        self.until(lambda s: s['generation'] > 0)
        self.assertEqual(self.out(), b'n: 1\nm: 1\n')
        self.assertNotIn('pin', self.status())


class Settings(Case):
    def test_another_format_is_a_version_of_its_own_and_the_application_is_notified(self):
        hook = Hook(self, 'hook')
        self.begin(reload={'run': [hook.path]})
        self.assertEqual(hook.next(), ['1', '*'])
        self.until(lambda s: s['reload']['notified'] == 1)
        self.again(format='json')
        self.assertEqual(hook.next()[0], '2')
        self.assertEqual((json.loads(self.out()), self.status()['generation']), ({'n': 1}, 2))

    def hup(self, **config):
        """The configuration changes, and is read again."""
        self.more.update(config)
        self.write('pullet.yaml', self.settings({'web': self.config(**self.more)}))
        at = self.agent.log.count
        self.agent.signal(signal.SIGHUP)
        self.agent.log.wait('changed="1: web"', at)

    def test_it_is_so_after_sighup_too_and_while_it_is_pinned(self):
        hook = Hook(self, 'hook')
        self.begin(reload={'run': [hook.path]})
        self.assertEqual(hook.next(), ['1', '*'])
        self.do('pin', 'web')
        self.down()
        self.hup(format='json')
        self.assertEqual(hook.next()[0], '2')
        self.assertEqual((json.loads(self.out()), self.status()['generation'], 'pin' in self.status()), ({'n': 1}, 2, True))

    def test_what_other_rules_rejected_is_validated_again(self):
        """Every setting that a check sees is one of its rules."""
        self.begin(snapshot=False)
        self.assertRegex(self.offer(b'{ no yaml: [\n', 'failed')['error'], 'invalid YAML')
        self.again(type='bytes')
        self.agent.refresh()
        self.until_shown(b'{ no yaml: [\n')

    def test_a_version_that_the_rollout_lets_in_is_not_asked_for_again(self):
        other = test_change.Origin(self)
        other.put('/rollout', b'percent: 0\n')
        self.begin(servers={'main': {'urls': [self.origin.url]}, 'other': {'urls': [other.url]}}, rollout={'server': 'other', 'path': '/rollout'})
        self.offer(b'n: 2\n', 'held')
        self.assertEqual(self.out(), b'n: 1\n')
        del self.origin.asked[:]
        other.put('/rollout', b'percent: 100\n')
        self.agent.refresh()
        self.until_shown(b'n: 2\n')
        self.assertEqual(self.origin.asked, [('/web.yaml', 304)])



class Layers(Case):
    def begin(self, **config):
        self.origin.put('/base.yaml', b'base: 1\nn: 1\n')
        self.origin.put('/web.yaml', b'n: 2\n')
        self.layers = [{'path': '/base.yaml'}, {'path': '/web.yaml', 'optional': True}]
        self.more = config
        self.start(*self.layers, **config).log.wait('published config=web generation=1')

    def again(self, **config):
        self.agent.signal(signal.SIGKILL)
        self.agent.wait()
        self.start(*self.layers, **{**self.more, **config})

    def test_what_was_saved_of_several_is_shown_whole_after_a_kill(self):
        self.begin(drift='leave')
        self.block()
        self.origin.put('/base.yaml', b'base: 2\nn: 1\n')
        self.assertRegex(self.offer(b'n: 3\n', 'failed')['error'], 'cannot replace')
        self.down()
        self.unblock()
        self.again()
        self.agent.refresh()
        self.until_shown(b'base: 2\nn: 3\n', after=1)

    def test_what_a_pin_held_of_several_is_published_whole_when_one_has_gone_since(self):
        self.begin()
        self.do('pin', 'web')
        self.offer(b'n: 3\n', 'held')
        self.origin.put('/base.yaml', b'base: 2\nn: 1\n')
        self.origin.put('/web.yaml', None)
        self.assertEqual(self.agent.refresh()['outcome'], 'held')
        self.do('override', 'web', 'x=1', '--for', '1h')
        self.assertEqual(self.out(), b'base: 1\nn: 2\nx: 1\n', 'the pinned bytes of both')
        self.down()
        self.do('unpin', 'web')
        self.until_shown(b'base: 2\nn: 1\nx: 1\n', after=2)


class FormatProgram(Case):
    """The program's output is part of the version that it was made for."""

    def begin(self, **config):
        self.write('format', f'#!/bin/sh\necho run >>{self.path("runs")}\n[ ! -e {self.path("broken")} ] && tr a-z A-Z\n')
        os.chmod(self.path('format'), 0o755)
        super().begin(**config)

    def runs(self):
        return len(self.read('runs').splitlines()) if os.path.exists(self.path('runs')) else 0

    def test_what_was_saved_is_shown_after_a_kill_without_the_program(self):
        self.begin(drift='leave', format={'run': [self.path('format')]})
        self.block()
        self.offer(b'n: 2\n', 'failed')
        runs = self.runs()
        self.write('broken', '')
        self.down()
        self.unblock()
        self.again()
        self.agent.refresh()
        self.until(lambda s: s['generation'] == 2)
        self.assertEqual((json.loads(self.out()), self.runs()), ({'N': 2}, runs))

    def test_a_new_one_that_fails_leaves_the_old_form_until_it_works(self):
        self.begin()
        self.write('broken', '')
        self.down()
        self.again(format={'run': [self.path('format')]})
        self.agent.refresh()
        self.until(lambda s: self.runs() and 'format' in (s['last_error'] or '') and not s['running'])
        self.assertEqual((self.out(), self.status()['generation']), (b'n: 1\n', 1))
        os.unlink(self.path('broken'))
        self.agent.refresh()
        self.until(lambda s: s['generation'] == 2)
        self.assertEqual(json.loads(self.out()), {'N': 1})


class Guard(Case):
    MANY = b''.join(b'k%d: 1\n' % i for i in range(10)) + b'n: 1\n'

    def test_what_it_rejected_is_validated_again_when_the_distance_is_another(self):
        """After an operator's rollback too."""
        self.begin(self.MANY, guard={'max_changes': 3})
        for last in (7, 4):
            self.publish(b''.join(b'k%d: 1\n' % i for i in range(last)) + b'n: 1\n')
        self.offer(self.MANY, 'failed')
        self.offer(self.MANY, 'failed')
        self.assertEqual(self.status()['rejections_by'], {'guard': 1}, 'once')
        self.do('rollback', 'web', '2')
        self.until(lambda s: self.out() == self.MANY and 'rejected' not in s)


class History(Case):
    """What is needed is kept, whatever `history` says."""

    def generations(self):
        return sorted(int(name) for name in os.listdir(self.path('state/web')) if name.isdigit())

    def test_a_pinned_version_is_kept_beside_newer_ones_that_never_became_visible(self):
        self.begin(drift='leave', history=1)
        self.block()
        for n in (2, 3, 4):
            self.offer(b'n: %d\n' % n, 'failed')
        self.do('pin', 'web')
        self.down()
        self.unblock()
        for _ in range(2):
            self.again()
            self.agent.refresh()
            self.assertEqual((self.out(), self.status()['generation']), (b'n: 1\n', 3), 'newer than what readers may have seen, once')
        self.do('override', 'web', 'x=1', '--for', '1h')
        self.do('override', 'web', 'x', '--remove')
        self.again()
        self.assertEqual((self.out(), 'pin' in self.status()), (b'n: 1\n', True))

    def test_a_proven_one_a_held_one_and_the_current_one_are_kept(self):
        probe = Hook(self, 'probe', f'if grep -q "n: 1" {self.path("out/web.yaml")}; then exit 0; fi; hold')
        self.begin(history=2, probe={'run': [probe.path], 'for': '200ms', 'every': '100ms', 'failures': 1})
        self.until_passed(1)
        for n in (2, 3, 4):
            self.publish(b'n: %d\n' % n)
        self.assertEqual(self.generations(), [1, 3, 4], 'the one that is proven, and the last two')
        self.do('rollback', 'web', '1')
        self.do('override', 'web', 'x=1', '--for', '1h')
        self.until_passed(6)
        self.assertEqual(self.generations(), [4, 5, 6], 'that of the server is held')
        self.do('override', 'web', 'x=2', '--for', '1h')
        self.assertEqual(self.generations(), [4, 6, 7])
        self.down()
        self.do('override', 'web', 'x', '--remove')
        self.again()
        self.assertEqual(self.out(), b'n: 1\n')

    def until_passed(self, generation):
        self.until(lambda s: s['probe']['state'] == 'passed' and s['probe']['generation'] == generation)

    def test_a_saved_one_is_kept_over_restarts_until_it_is_shown(self):
        self.begin(drift='leave', history=1)
        self.block()
        self.offer(b'n: 2\n', 'failed')
        self.down()
        for _ in range(2):
            self.again()
            self.agent.refresh()
            self.assertIn(2, self.generations())
        self.unblock()
        self.agent.refresh()
        self.until_shown(b'n: 2\n', after=1)


class Disk(Case):
    def test_when_it_is_full_a_decision_is_refused_or_its_loss_is_told(self):
        full = self.path('full')
        self.begin(env=self.bad_disk(FULL_FILE=full))
        self.publish(b'n: 2\n')
        self.write('full', '')
        self.assertRegex(self.offer(b'n: 3\n', 'failed')['error'], 'No space left')
        self.fails('No space left', 'rollback', 'web')
        self.fails('No space left', 'override', 'web', 'n=5', '--for', '1h')
        self.fails('done, but not saved: it will be lost on restart', 'pin', 'web')
        self.agent.log.wait('cannot save rejections, pins and overrides: they will be lost on restart.*No space left')
        status = self.status()
        self.assertEqual((self.out(), status['generation'], status['overrides'], 'pin' in status), (b'n: 2\n', 2, [], True))
        os.unlink(full)
        self.assertEqual(self.agent.refresh()['outcome'], 'held')
        self.assertEqual(self.ledger()['pin']['sha256'], self.status()['sha256'], 'the next pull saves it')
        self.again()
        self.assertEqual((self.out(), self.status()['generation'], 'pin' in self.status()), (b'n: 2\n', 2, True))

    def test_a_ledger_that_cannot_be_written_loses_nothing_that_is_visible(self):
        """However many decisions there are: the state files have them, and one that was not pruned yet has all."""
        for history in (10, 2):
            with self.subTest(history=history):
                self.begin(history=history)
                self.publish(b'n: 2\n')
                self.do('pin', 'web')
                ledger = self.read('state/web/ledger.json')
                self.block('state/web/ledger.json')
                self.do('rollback', 'web')
                self.agent.log.wait('cannot save rejections, pins and overrides: they will be lost on restart')
                for value in (4, 5):
                    self.do('override', 'web', f'x={value}', '--for', '1h')
                self.fails('done, but not saved', 'unpin', 'web')
                self.until(lambda s: s['rejected']['by'] == 'operator')
                self.agent.signal(signal.SIGKILL)
                self.agent.wait()
                self.unblock('state/web/ledger.json')
                self.write('state/web/ledger.json', ledger)
                self.start(**self.more)
                self.assertEqual((self.out(), self.status()['generation'], 'pin' in self.status()), (b'n: 1\nx: 5\n', 5, True))
                self.do('unpin', 'web')
                self.assertEqual(self.agent.refresh()['error'].split(':')[0], f'rolled back by {test_operate.ME_PLAIN}')
                self.assertEqual([o['key'] for o in self.ledger()['overrides']], ['x'])
                self.agent.stop()
                shutil.rmtree(self.path('state'))


class Two(Case):
    def test_a_second_agent_on_one_state_directory_is_refused_and_changes_nothing(self):
        self.begin()
        self.write('second.yaml', self.read('pullet.yaml').replace(self.path('run').encode(), self.path('run2').encode())
                   .replace(self.path('out').encode(), self.path('out2').encode()))
        os.makedirs(self.path('out2'))
        for args in ([], ['--once']):
            second = Program([PULLETD, '-c', self.path('second.yaml'), *args])
            self.addCleanup(second.close)
            self.assertRegex('\n'.join(second.log.drain()), rf'another pulletd uses this state directory.*pid={self.agent.pid}\b')
            self.assertNotEqual(second.wait(), 0)
        self.assertEqual(os.listdir(self.path('out2')), [])
        self.publish(b'n: 2\n')
        self.again()
        self.assertEqual((self.out(), self.status()['generation']), (b'n: 2\n', 2))


if __name__ == '__main__':
    harness.main()
