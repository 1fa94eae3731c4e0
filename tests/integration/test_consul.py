"""Consul's key-value store behind the agent: keys and prefixes, blocking queries, tokens, and a server that is restored, without a leader, limited,
or wakes everybody for nothing. Against servers/consul.py, which does as Consul documents.
"""
import json

import harness
from servers.consul import Consul
from test_etcd import Case, Reader

NAME = 'app/web.yaml'


def is_query(request):
    """A request of the watch."""
    return request.has('index')


def is_pull(request):
    return not request.has('index')


class Store(Case):
    def setUp(self):
        super().setUp()
        self.consul = Consul(self)

    def begin_consul(self, more='', keys='', watch=True, urls=None, **kw):
        urls = ', '.join(f'"{u}"' for u in urls or [self.consul.url])
        return self.begin(f'kind: consul, urls: [{urls}]{", watch: true" if watch else ""}{keys}', more, **kw)

    def settled(self):
        """The watch waits for something, and nothing else is going on. The number of pulls so far."""
        before = super().settled()
        self.consul.wait_holding()
        return before

    def queries(self):
        return [r for r in self.consul.requests if is_query(r)]

    def calmly(self, requests, burst=3):
        """They came at most so many at once, and one a second in the long run."""
        times = [r.time for r in requests]
        for i, first in enumerate(times):
            for k in range(i + burst + 1, len(times)):
                # burst + 1 at once; a margin for a clock that is cut to milliseconds
                self.assertGreater(times[k] - first, k - i - burst - 0.1, times)


class Keys(Store):
    def test_a_version_is_the_index_of_the_keys_last_change(self):
        self.consul.put('app/other', 'x')
        index = self.consul.put(NAME, 'a: 1\n')
        self.consul.put('app/other', 'y')
        self.begin_consul(watch=False)
        self.assertEqual((self.standing(), self.agent.status()['version']), ('a: 1\n', str(index)))
        self.assertEqual(self.agent.cli('wait', 'web', '--version', str(index))[:2], (0, 'web: generation 1 is current\n'))
        self.assertEqual(self.agent.refresh()['outcome'], 'unchanged')
        self.stands(index)

    def test_a_change_is_published_without_an_interval(self):
        self.consul.put(NAME, 'a: 1\n')
        self.begin_consul()
        before = self.settled()
        for n in range(2, 6):
            self.stands(self.consul.put(NAME, f'a: {n}\n'))
            self.assertEqual(self.standing(), f'a: {n}\n')
        self.assertLessEqual(self.pulls() - before, 4)
        self.agent.stop()

    def test_a_query_names_what_is_held_and_waits_long_but_not_in_step(self):
        index = self.consul.put(NAME, 'a: 1\n')
        self.begin_consul()
        self.settled()
        query = self.queries()[-1]
        self.assertEqual(query.path, '/v1/kv/' + NAME)
        self.assertEqual(query.get('index'), str(index))
        self.assertRegex(query.get('wait'), '^(2[4-9][0-9]|300)s$')
        self.consul.still_holding()

    def test_what_changes_elsewhere_wakes_nobody(self):
        self.consul.put(NAME, 'a: 1\n')
        self.begin_consul()
        before, asked = self.settled(), self.consul.count
        for n in range(100):
            self.consul.put(f'app/web.yaml{n}', 'x')
        self.consul.still_holding()
        self.assertEqual((self.pulls(), self.consul.count), (before, asked))

    def test_a_prefix_changes_as_one_and_never_by_halves(self):
        names = [f'app/web/{part}/{name}' for part in ('db', 'cache') for name in ('host', 'port', 'note')]
        self.consul.put_all({'app/web/': None, **{name: '0' for name in names}})
        self.begin_consul(path='/app/web/')
        self.settled()
        self.assertTrue(self.queries()[-1].has('recurse'))
        reader = Reader(self, self.path('out/web.yaml'))
        for n in range(1, 301):
            index = self.consul.put_all({name: str(n) for name in names})
        self.stands(index)
        reader.end(300)

    def test_keys_that_come_and_go_below_a_prefix_are_changes(self):
        self.consul.put_all({'app/web/a': '1', 'app/web/b/c': '2', 'app/webx': 'not of it'})
        self.begin_consul(path='/app/web/')
        self.settled()
        self.assertEqual(json.loads(self.standing()), {'a': '1', 'b': {'c': '2'}})
        self.consul.delete('app/web/b', recurse=True)
        self.agent.log.wait('generation=2')
        self.assertEqual(json.loads(self.standing()), {'a': '1'})
        self.stands(self.consul.put('app/web/b/d', '3'))
        self.assertEqual(json.loads(self.standing()), {'a': '1', 'b': {'d': '3'}})

    def test_a_key_that_is_made_later_is_published_then(self):
        self.begin_consul(wait='pull failed')
        self.watching(changes=1)
        self.assertEqual(self.agent.status()['cause'], 'not found')
        self.stands(self.consul.put(NAME, 'a: 1\n'))
        self.assertEqual((self.standing(), self.agent.status()['cause']), ('a: 1\n', None))

    def test_what_the_watch_brought_is_not_asked_for(self):
        self.consul.put(NAME, 'a: 1\n')
        self.begin_consul()
        self.settled()
        asked = len([r for r in self.consul.requests if is_pull(r)])
        for n in range(2, 7):
            self.consul.wait_holding()
            self.stands(self.consul.put(NAME, f'a: {n}\n'))
            self.assertEqual(self.standing(), f'a: {n}\n')
        self.assertEqual(len([r for r in self.consul.requests if is_pull(r)]), asked)

    def test_a_key_that_goes_is_not_found_at_once(self):
        self.consul.put(NAME, 'a: 1\n')
        self.begin_consul()
        self.settled()
        self.consul.delete(NAME)
        self.agent.log.wait('pull failed.*no such key')
        self.assertEqual((self.standing(), self.agent.status()['cause']), ('a: 1\n', 'not found'))
        self.stands(self.consul.put(NAME, 'a: 2\n'))

    def test_long_values_chunked_and_compressed(self):
        self.consul.put(NAME, 'a: 1\nb: ' + 'x' * 100000 + '\n')
        self.begin_consul()
        self.settled()
        self.assertIn('gzip', [r.answer_headers.get('Content-Encoding') for r in self.consul.requests if r.answer_headers])
        self.stands(self.consul.put(NAME, 'a: 2\nb: ' + 'y' * 400000 + '\n'))
        self.assertEqual(len(self.standing()), 400009)

    def test_names_that_need_escapes(self):
        name = 'app/w%2Fé"x"~+&=:@.yaml'
        self.consul.put(name, 'a: 1\n')
        self.begin_consul(path='/' + name.replace('"', '\\"'))
        self.settled()
        self.stands(self.consul.put(name, 'a: 2\n'))

    def test_a_thousand_changes_are_few_pulls_and_the_last_stands(self):
        self.consul.put(NAME, 'a: 0\n')
        self.begin_consul()
        before, asked = self.settled(), len(self.queries())
        for n in range(1, 1001):
            index = self.consul.put(NAME, f'a: {n}\n')
        self.stands(index)
        self.assertEqual(self.standing(), 'a: 1000\n')
        self.assertLess(self.pulls() - before, 20)
        self.calmly(self.queries()[asked:])


class Causes(Store):
    def test_each_has_a_name_of_its_own_and_the_version_stays(self):
        self.consul.put(NAME, 'a: 1\n')
        self.begin_consul(watch=False)

        def good():
            self.assertEqual(self.agent.refresh()['outcome'], 'unchanged')
            self.assertEqual((self.agent.status()['state'], self.agent.status()['cause']), ('ok', None))
        self.consul.delete(NAME)
        self.fails('not found')
        self.consul.put(NAME, None)
        self.fails('empty')
        self.consul.put(NAME, '')
        self.fails('empty')
        self.consul.put(NAME, 'a: 1\n')
        good()
        self.consul.leader = False
        self.assertIn('No cluster leader', self.fails('unreachable'))
        self.consul.leader = True
        good()
        for limited in ('elsewhere', 'later'):
            self.consul.limited = limited
            self.fails('overloaded')
        self.consul.limited = None
        good()
        self.consul.down()
        self.assertIn('refused', self.fails('unreachable'))
        self.consul.up()
        good()
        for fault, why in (({'status': 404, 'body': 'page not found'}, 'check the urls'), ({'status': 405}, 'check the urls'),
                           ({'status': 200, 'body': '<html>', 'headers': {'X-Consul-Index': '9'}}, 'cannot be read'),
                           ({'status': 200, 'body': '[{"Key":"other","Value":"YQ==","ModifyIndex":3}]'}, 'not asked for'),
                           ({'status': 200, 'body': '[{"Key":"app/web.yaml","Value":"!","ModifyIndex":3}]'}, 'base64'),
                           ({'status': 301, 'headers': {'Location': '/v1/kv/x'}}, 'redirect')):
            self.consul.fault(1, is_pull, **fault)
            self.assertIn(why, self.fails('bad answer'))
        good()

    def test_an_answer_that_is_cut_is_made_up_for(self):
        """The watch tells once, and the interval is an hour. With a spread what it brings is asked for again."""
        self.consul.put(NAME, 'a: 1\n')
        self.begin_consul(more='    push_spread: 1ms\n')
        for fault in ({'reset': True}, {'cut': 20}, {'status': 500, 'body': 'No cluster leader'}):
            self.settled()
            self.consul.fault(2, is_pull, **fault)
            self.stands(self.consul.put(NAME, f'a: {fault}\n'))
            self.agent.post('/v1/configs/web/refresh?wait=1')

    def settled(self):
        self.watching(changes=1)
        self.consul.wait_holding()
        return 0


class Access(Store):
    def begin_as(self, **kw):
        return self.begin_consul(keys=f', auth: {{bearer_file: {self.path("token")}}}', **kw)

    def test_a_token(self):
        self.consul.put(NAME, 'a: 1\n')
        self.consul.allow('secret-1', read=['app/'])
        self.write('token', 'secret-1\n')
        self.begin_as()
        self.settled()
        self.stands(self.consul.put(NAME, 'a: 2\n'))
        # it is taken away while the watch waits, which the server still answers, and another one is given
        del self.consul.tokens['secret-1']
        self.stands(self.consul.put(NAME, 'a: 3\n'))
        self.assertIn('ACL not found', self.fails('forbidden'))
        self.consul.allow('secret-2', read=['app/'])
        self.write('token', 'secret-2\n')
        self.assertEqual(self.agent.refresh()['outcome'], 'unchanged')
        self.assertEqual(self.standing(), 'a: 3\n')
        self.stands(self.consul.put(NAME, 'a: 4\n'))
        self.assertFalse([line for line in self.agent.log.seen if 'secret-' in line])

    def test_a_token_for_something_else(self):
        self.consul.put(NAME, 'a: 1\n')
        self.consul.allow('secret-1', read=['other/'])
        self.write('token', 'secret-1\n')
        self.begin_as(wait='pull failed')
        self.assertEqual(self.agent.status()['cause'], 'forbidden')
        self.assertIn("lacks permission 'key:read'", self.agent.status()['last_error'])

    def test_a_token_for_a_part_of_a_prefix_publishes_no_part(self):
        self.consul.put_all({'app/p/a': '1', 'app/p/b': '2'})
        self.consul.allow('secret-1', read=['app/'])
        self.write('token', 'secret-1\n')
        self.begin_as(path='/app/p/')
        self.settled()
        whole = self.standing()
        self.consul.allow('secret-2', read=['app/p/a'])
        self.write('token', 'secret-2\n')
        self.assertIn('may not read all', self.fails('forbidden'))
        self.assertEqual(self.standing(), whole)

    def test_a_datacenter(self):
        self.consul.put(NAME, 'a: 1\n')
        self.begin_consul(keys=', datacenter: dc1')
        self.settled()
        self.assertEqual({r.get('dc') for r in self.consul.requests}, {'dc1'})
        self.stands(self.consul.put(NAME, 'a: 2\n'))
        self.agent.stop()
        self.begin_consul(keys=', datacenter: dc2', wait='last known good')
        self.assertIn('No path to datacenter', self.fails('unreachable'))


class Faults(Store):
    def setUp(self):
        super().setUp()
        self.consul.put(NAME, 'a: 1\n')

    def test_a_server_that_is_restored_goes_back_and_is_followed(self):
        backup = self.consul.snapshot()
        for n in range(2, 10):
            self.consul.put(NAME, f'a: {n}\n')
        self.consul.max_wait = 0.3
        self.begin_consul()
        self.watching(changes=1)
        self.consul.restore(backup)
        self.agent.log.wait('index went back')
        self.agent.log.wait('published config=web generation=2')
        self.assertEqual(self.standing(), 'a: 1\n')
        for n in range(2, 4):
            index = self.consul.put(NAME, f'a: {n + 100}\n')
            self.stands(index)
        self.assertEqual(self.standing(), 'a: 103\n')
        self.consul.wait(1, lambda r: r.get('index') == str(index))  # the watch stands there

    def test_other_values_at_the_very_index_that_is_held(self):
        backup = self.consul.snapshot()
        self.consul.put(NAME, 'a: 2\n')
        self.begin_consul(watch=False)
        self.consul.restore(backup)
        self.consul.put(NAME, 'a: 3\n')
        self.assertEqual(self.agent.refresh()['outcome'], 'published')
        self.assertEqual(self.standing(), 'a: 3\n')

    def test_a_list_whose_index_goes_back_is_no_change(self):
        """The traces of deleted keys are removed after a while."""
        self.consul.put_all({'app/web/a': '1', 'app/web/b': '2'})
        self.consul.delete('app/web/b')
        self.begin_consul(path='/app/web/')
        self.settled()
        self.consul.reap_tombstones()
        self.consul.wake()
        self.consul.wait_answered(1, lambda r: is_query(r) and r.hold)
        self.assertEqual(self.agent.refresh()['outcome'], 'unchanged')
        self.assertEqual(self.agent.status()['generation'], 1)
        self.stands(self.consul.put('app/web/b', '3'))

    def test_wake_ups_for_nothing_pull_nothing_and_do_not_storm(self):
        self.begin_consul()
        before, asked = self.settled(), len(self.queries())
        for n in range(1, 7):
            self.consul.wake()
            self.consul.wait(asked + n, is_query)
            self.consul.wait_holding()
        self.assertEqual(self.pulls(), before)
        self.calmly(self.queries()[asked:])

    def test_a_server_that_does_not_wait_is_asked_once_a_second(self):
        self.consul.max_wait = 0.0
        self.begin_consul()
        self.watching(changes=1)
        self.calmly(self.consul.wait(7, is_query))
        self.stands(self.consul.put(NAME, 'a: 2\n'))
        self.pulls()

    def test_without_an_index_nothing_is_waited_for_and_it_is_said(self):
        self.consul.index_header = ''
        self.begin_consul()
        self.agent.log.wait('watch failed.*X-Consul-Index')
        self.consul.put(NAME, 'a: 2\n')
        self.assertEqual(self.agent.refresh()['outcome'], 'published')
        watch = self.agent.status()['watch']
        self.assertEqual(watch['state'], 'failing')
        self.assertIn('X-Consul-Index', watch['error'])
        self.consul.index_header = None
        self.agent.log.wait('watching again')
        self.stands(self.consul.put(NAME, 'a: 3\n'))

    def test_an_index_of_zero_does_not_storm(self):
        """Who asks with 0 is answered at once."""
        self.consul.index_header = '0'
        self.begin_consul()
        self.watching(changes=1)
        self.assertEqual({r.get('index') for r in self.consul.wait(6, is_query)}, {'1'})
        self.calmly(self.queries())
        self.consul.index_header = None
        self.stands(self.consul.put(NAME, 'a: 2\n'))

    def test_what_changed_while_it_was_down(self):
        self.begin_consul()
        self.settled()
        self.consul.down()
        index = self.consul.put(NAME, 'a: 2\n')
        self.consul.up()
        self.stands(index)
        self.settled()
        self.consul.drop()
        self.stands(self.consul.put(NAME, 'a: 3\n'))

    def test_a_server_without_a_leader_for_a_while(self):
        self.begin_consul()
        self.settled()
        self.consul.leader = False
        self.consul.drop()
        self.agent.log.wait('watch failed')
        index = self.consul.put(NAME, 'a: 2\n')
        self.consul.wait(2, lambda r: r.status == 500)
        self.consul.leader = True
        self.stands(index)

    def test_a_server_that_turns_the_watch_away(self):
        self.begin_consul()
        self.settled()
        fault = self.consul.fault(2, is_query, status=429, body='rate limit exceeded')
        self.consul.drop()
        self.consul.wait(2, lambda r: r.status == 429)
        self.stands(self.consul.put(NAME, 'a: 2\n'))
        self.assertEqual(fault.hits, 2)

    def test_of_two_servers_one_is_enough(self):
        other = Consul(self)
        other.put(NAME, 'a: 1\n')
        other.down()
        self.begin_consul(urls=[other.url, self.consul.url], keys=', connect_timeout: 1s')
        self.watching(changes=1)
        self.agent.refresh()
        self.stands(self.consul.put(NAME, 'a: 2\n'))
        self.pulls()


if __name__ == '__main__':
    harness.main()
