"""etcd behind the agent while things break: connections cut, revisions compacted, leaders killed, backups restored."""
import http.client
import random
import time

import etcd
import harness
from servers.proxy import Proxy
from test_etcd import KEY, Etcd, Reader

PREFIX = '/app/web/'


class Cuts(Etcd):
    """The agent reaches etcd through a proxy; what the tests write goes past it."""

    def setUp(self):
        super().setUp()
        self.etcd = etcd.Etcd(self)
        self.proxy = Proxy(self, self.etcd.members[0].client)
        self.etcd.put(KEY, 'n: 1\n')

    def begin_behind(self, **kw):
        self.begin_etcd(urls=[self.proxy.url], **kw)
        return self.settled()

    def test_what_changed_during_a_cut_is_seen_when_the_watch_is_back(self):
        before = self.begin_behind()
        self.proxy.switch('refuse')
        for n in range(2, 12):
            revision = self.etcd.put(KEY, f'n: {n}\n')
        self.proxy.switch('pass')
        self.stands(revision)
        self.assertEqual(self.standing(), 'n: 11\n')
        self.assertLessEqual(self.pulls() - before, 2)

    def test_a_watch_goes_on_where_it_stood_and_nothing_is_pulled_for_it(self):
        self.begin_behind()
        self.stands(self.etcd.put(KEY, 'n: 2\n'))
        before, changes = self.settled(), self.agent.status()['watch']['changes']
        for _ in range(2):
            connections = self.proxy.connections
            self.proxy.switch('refuse')
            self.proxy.switch('pass')
            self.proxy.wait_connections(connections + 1)
            self.watching()
        self.stands(self.etcd.put(KEY, 'n: 3\n'))  # nothing else is under way
        self.assertEqual((self.pulls(), self.agent.status()['watch']['changes']), (before + 1, changes + 1))

    def test_revisions_that_were_compacted_meanwhile(self):
        self.begin_behind()
        self.proxy.switch('refuse')
        for n in range(2, 7):
            revision = self.etcd.put(KEY, f'n: {n}\n')
        self.etcd.compact()
        self.proxy.switch('pass')
        self.stands(revision)
        self.assertEqual(self.standing(), 'n: 6\n')
        self.watching()
        self.stands(self.etcd.put(KEY, 'n: 7\n'))
        self.pulls()

    def test_a_key_that_went_meanwhile(self):
        self.begin_behind()
        self.proxy.switch('refuse')
        self.etcd.delete(KEY)
        self.etcd.put('/other', 'x')
        self.etcd.compact()
        self.proxy.switch('pass')
        self.agent.log.wait('pull failed.*no such key')
        self.assertEqual((self.standing(), self.agent.status()['cause']), ('n: 1\n', 'not found'))

    def test_much_that_was_missed_fits_into_small_limits(self):
        """All of it comes at once: many times what a document may have."""
        text = 'n: {}\nblob: ' + 'x' * 15000 + '\n'
        self.begin_behind(keys=', max_size: 16KiB')
        self.proxy.switch('refuse')
        for n in range(2, 302):
            revision = self.etcd.put(KEY, text.format(n))
        self.proxy.switch('pass')
        self.stands(revision)
        self.assertEqual(self.standing(), text.format(301))
        self.watching()

    def test_connections_that_are_cut_anywhere(self):
        self.begin_behind()
        dice = random.Random(7)
        for n in range(2, 52):
            if n % 5 == 0:
                self.proxy.switch('cut', after=dice.randrange(1500))
            revision = self.etcd.put(KEY, f'n: {n}\n')
            if n % 5 == 2:
                self.proxy.switch('pass')
        self.proxy.switch('pass')
        self.stands(revision)
        self.assertEqual(self.standing(), 'n: 51\n')
        self.assertGreater(self.proxy.cuts, 0)

    def test_slow_lines(self):
        self.begin_behind()
        self.proxy.switch('delay', delay_ms=150)
        for n in range(2, 5):
            self.stands(self.etcd.put(KEY, f'n: {n}\n'))
        self.pulls()

    def test_a_pull_that_is_cut_while_the_watch_lives_is_made_up_for(self):
        """The watch told of it, and tells once: the interval is an hour."""
        self.etcd.put_all({'/app/told': 'a: 1\n', KEY: 'b: 1\n'})
        layers = '    from: [{server: main, path: /app/told}, {server: pulled, path: /app/web.yaml}]\n'
        self.begin_etcd(layers, f'}}\n  pulled: {{kind: etcd, urls: ["{self.proxy.url}"]', path=None)
        self.settled()
        self.proxy.switch('refuse')
        self.etcd.put_all({'/app/told': 'a: 2\n', KEY: 'b: 2\n'})
        self.agent.log.wait('pull failed.*refused')
        self.proxy.switch('pass')
        self.agent.log.wait('generation=2')
        self.assertEqual(self.standing(), 'a: 2\nb: 2\n')


class Leaders(Etcd):
    NAMES = [f'{PREFIX}{name}' for name in 'abcde']

    def write_all(self, n):
        """n as the value of all keys, once, whoever leads: a write whose answer was lost is not repeated over a later one. Its revision."""
        puts = [{'request_put': {'key': etcd.b64(k), 'value': etcd.b64(str(n))}} for k in self.NAMES]
        before = {'key': etcd.b64(self.NAMES[0]), 'target': 'VALUE', 'result': 'EQUAL', 'value': etcd.b64(str(n - 1))}
        body, end, turn = {'compare': [before], 'success': puts}, time.monotonic() + harness.DEADLINE, 0
        while True:
            self.assertLess(time.monotonic(), end, f'{n} was not written')
            running = [m for m in self.etcd.members if m.running]
            turn += 1
            try:
                status, answer = self.etcd.request('POST', '/v3/kv/txn', body, member=running[turn % len(running)], timeout=2)
            except (OSError, http.client.HTTPException, ValueError):
                continue
            if status == 200:
                return int(answer['header']['revision'])  # done now, or by the attempt before

    def test_the_leader_is_killed_during_a_thousand_updates(self):
        """Readers see no half of one and nothing that goes back, and at last the last."""
        self.etcd = etcd.Etcd(self, members=3)
        self.etcd.put_all({k: '0' for k in self.NAMES})
        self.begin_etcd(path=PREFIX)
        self.settled()
        reader = Reader(self, self.path('out/web.yaml'))
        for n in range(1, 1001):
            self.write_all(n)
            if n in (100, 400, 700):
                killed = self.etcd.kill_leader(wait=False)
            if n in (300, 600):
                self.etcd.restart(killed)
        self.stands(self.etcd.revision())
        reader.end(1000)
        self.assertGreater(self.agent.status()['generation'], 10)
        self.agent.stop()


class Backups(Etcd):
    """An old backup is put back while the agent has what was written after it."""

    def begin_and_save(self, **kw):
        self.etcd = etcd.Etcd(self)
        self.etcd.put(KEY, 'n: 1\n')
        backup = self.etcd.save()
        for n in range(2, 12):
            self.etcd.put(KEY, f'n: {n}\n')
        self.begin_etcd(**kw)
        self.settled()
        return backup

    def test_into_another_cluster_it_is_taken_and_said(self):
        backup = self.begin_and_save()
        self.etcd.restore(backup, new_token=True)
        self.assertRegex(self.agent.log.wait('cluster.s identity changed'), 'revision 12 -> [0-9]')
        self.agent.log.wait('published config=web generation=2')
        self.assertEqual(self.standing(), 'n: 1\n')
        # its revisions begin below those that the watch knew
        for n in range(2, 5):
            self.stands(self.etcd.put(KEY, f'n: {n}\n'))
        self.assertEqual(self.standing(), 'n: 4\n')

    def test_into_another_cluster_with_the_same_document_it_is_no_change(self):
        self.etcd = etcd.Etcd(self)
        self.etcd.put(KEY, 'n: 1\n')
        backup = self.etcd.save()
        self.begin_etcd()
        self.settled()
        self.etcd.put('/other', 'x')
        self.etcd.restore(backup, new_token=True)
        self.watching()
        self.assertEqual(self.agent.refresh()['outcome'], 'unchanged')
        self.assertEqual(self.agent.status()['generation'], 1)
        self.stands(self.etcd.put(KEY, 'n: 2\n'))

    def test_under_the_old_name_it_is_refused_until_somebody_says_so(self):
        backup = self.begin_and_save()
        identity = self.etcd.cluster_id()
        self.etcd.restore(backup)
        self.assertEqual(self.etcd.cluster_id(), identity)
        self.agent.log.wait('pull failed.*the revision went back')
        why = self.fails('older')
        self.assertIn('pullet refresh CONFIG --force', why)
        self.agent.cli('refresh', 'web', '--force', '--wait', check=0)
        self.assertEqual((self.standing(), self.agent.status()['cause']), ('n: 1\n', None))
        self.agent.log.wait('an older revision was taken, as asked for')
        self.stands(self.etcd.put(KEY, 'n: 2\n'))
        self.assertEqual(self.standing(), 'n: 2\n')

    def test_under_the_old_name_a_lower_term_gives_it_away(self):
        self.etcd = etcd.Etcd(self)
        self.etcd.put(KEY, 'n: 1\n')
        backup = self.etcd.save()
        for _ in range(2):
            self.etcd.restart(0)  # an election, a term
        self.etcd.put(KEY, 'n: 2\n')
        self.begin_etcd()
        self.settled()
        self.etcd.restore(backup)
        self.agent.log.wait('cluster.s identity changed')
        self.agent.log.wait('published config=web generation=2')
        self.assertEqual(self.standing(), 'n: 1\n')

    def test_a_backup_that_is_put_back_while_the_agent_is_down(self):
        backup = self.begin_and_save()
        self.agent.stop()
        self.etcd.restore(backup, new_token=True)
        self.begin_etcd(wait='last known good')
        self.agent.log.wait('cluster.s identity changed')
        self.agent.log.wait('published config=web generation=2')
        self.assertEqual(self.standing(), 'n: 1\n')

    def restored_while_away(self, backup, writes, **kw):
        """The watch comes back when the revisions have reached where it stood."""
        proxy = Proxy(self, self.etcd.members[0].client)
        self.begin_etcd(urls=[proxy.url])
        self.settled()
        proxy.switch('refuse')
        self.etcd.restore(backup, **kw)
        for key, value in writes:
            revision = self.etcd.put(key, value)
        proxy.switch('pass')
        self.agent.log.wait('published config=web generation=2')
        return revision

    def test_other_values_at_the_very_revision_that_is_held(self):
        """The numbers are those that are held, and the document is not."""
        self.etcd = etcd.Etcd(self)
        backup = self.etcd.save()
        held = self.etcd.put(KEY, 'n: 1\n')
        self.assertEqual(self.restored_while_away(backup, [(KEY, 'n: 7\n')], new_token=True), held)
        self.assertEqual(self.standing(), 'n: 7\n')

    def test_under_the_old_name_and_beyond_where_the_watch_stood(self):
        self.etcd = etcd.Etcd(self)
        self.etcd.put(KEY, 'n: 1\n')
        backup = self.etcd.save()
        for _ in range(2):
            self.etcd.restart(0)
        self.etcd.put(KEY, 'n: 2\n')
        self.restored_while_away(backup, [(f'/other{i}', 'x') for i in range(20)])
        self.assertEqual(self.standing(), 'n: 1\n')
        self.stands(self.etcd.put(KEY, 'n: 3\n'))


if __name__ == '__main__':
    harness.main()
