"""What a push or a watch told of is published, and soon: where the server lags behind it, is away just then, or where another one has it already."""
import json
import time

import etcd
import harness
from harness import Agent
from servers.consul import Consul
from servers.lagging import Lagging
from test_etcd import Case, Reader
from test_push import Publisher

PATH = '/web.json'


def text(n):
    return json.dumps({'n': str(n)}) + '\n'


class Promises(Case):
    """Replicas that share what was put; the interval is an hour."""

    def begin_with(self, replicas, interval='1h'):
        self.publisher = Publisher(self)
        self.replicas = [Lagging(self)]
        self.replicas += [Lagging(self, store=self.replicas[0].store) for _ in range(replicas - 1)]
        self.replicas[0].store.versions[PATH] = [(0, text(1).encode())]  # long ago
        urls = ', '.join(f'"{r.url}"' for r in self.replicas)
        self.agent = Agent(self, f'''agent: {{state_dir: {self.path("state")}, runtime_dir: {self.path("run")}}}
servers:
  main: {{urls: [{urls}]}}
push:
  - endpoint: {self.publisher.endpoint}
configs:
  web:
    from: [{{server: main, path: {PATH}}}]
    file: {self.path("web.json")}
    interval: {interval}
''')
        self.agent.log.wait('published config=web generation=1')
        self.publisher.wait_subscribed()
        self.agent.refresh()
        # as this host takes them
        addresses = json.loads(self.agent.get('/v1/status')[1])['servers'][0]['addresses']
        self.replicas.sort(key=lambda r: [a['url'] for a in addresses].index(r.url))

    def put(self, n):
        return self.replicas[0].put(PATH, text(n)).strip('"')

    def push(self, version=None):
        self.publisher.send(b'web', {'v': 1, **({'version': version} if version else {})})

    def standing(self):
        return json.loads(self.read('web.json'))['n']

    def told(self, pattern):
        return [line for line in self.agent.log.seen if pattern in line]

    def test_of_two_servers_the_one_that_has_it_is_asked(self):
        self.begin_with(2)
        late, fresh = self.replicas
        late.freeze()
        asked = late.count, fresh.count
        version = self.put(2)
        self.push(version)
        self.stands(version)
        self.assertEqual((late.count, fresh.count), (asked[0] + 1, asked[1] + 1))
        # and it does not go back to what the other one shows
        self.assertEqual(self.agent.refresh()['outcome'], 'unchanged')
        self.assertEqual((self.standing(), late.count), ('2', asked[0] + 1))
        version = self.put(3)
        self.push(version)
        self.stands(version)
        self.assertEqual((late.count, self.told('another version')), (asked[0] + 1, []))
        self.agent.stop()

    def test_of_two_servers_the_one_that_does_not_know_it_at_all_is_not_believed(self):
        """A replica may even lag behind the making of the document."""
        self.begin_with(2)
        late, fresh = self.replicas
        late.frozen = -1
        version = self.put(2)
        self.push(version)
        self.stands(version)
        self.assertEqual((self.standing(), self.agent.status()['state']), ('2', 'ok'))

    def test_of_three_servers_the_last_one_is_asked_too(self):
        self.begin_with(3)
        for late in self.replicas[:2]:
            late.freeze()
        version = self.put(2)
        self.push(version)
        self.stands(version)
        self.assertEqual(self.standing(), '2')

    def test_the_one_that_has_it_fails_and_the_other_is_asked_again(self):
        self.begin_with(2)
        late, fresh = self.replicas
        late.freeze()
        version = self.put(2)
        self.push(version)
        self.stands(version)
        fresh.down()
        late.freeze(False)
        version = self.put(3)
        self.push(version)
        self.stands(version)

    def test_a_server_that_lags_for_two_seconds_is_waited_for_and_it_is_said(self):
        self.begin_with(1)
        self.replicas[0].lag = 2.0
        before, begin = self.replicas[0].count, time.monotonic()
        version = self.put(2)
        self.push(version)
        self.stands(version)
        self.assertGreater(time.monotonic() - begin, 1.9)
        self.agent.log.wait('the server shows the promised version now')
        self.assertEqual(len(self.told('still shows another version than the push promised')), 1)
        self.assertEqual(len(self.told('promised version now')), 1)
        self.assertLessEqual(self.replicas[0].count - before, 6)
        self.assertEqual(self.standing(), '2')
        self.agent.stop()

    def test_a_short_lag_is_not_worth_a_word(self):
        self.begin_with(1)
        self.replicas[0].lag = 0.1
        version = self.put(2)
        self.push(version)
        self.stands(version)
        self.agent.refresh()
        self.assertEqual((self.told('promise'), self.standing()), ([], '2'))

    def test_a_newer_promise_takes_the_place_of_an_older_one(self):
        self.begin_with(1)
        self.replicas[0].freeze()
        self.push(self.put(2))
        self.agent.log.wait('still shows another version')
        version = self.put(3)
        self.push(version)
        self.replicas[0].freeze(False)
        self.stands(version)
        self.agent.log.wait('the server shows the promised version now')
        self.assertEqual(len(self.told('still shows another version')), 1)

    def test_a_promise_that_is_never_kept_is_given_up(self):
        """No delay is longer than the interval, which is why this one ends soon."""
        self.begin_with(1, interval='500ms')
        self.push('never')
        self.agent.log.wait('the server never showed the version that the push promised')
        self.assertEqual(len(self.told('still shows another version')), 1)
        # the same promise once more is one of its own
        self.push('never')
        self.agent.log.wait('the server never showed the version that the push promised', self.agent.log.count)
        self.assertEqual(len(self.told('still shows another version')), 2)

    def test_a_storm_beside_a_server_that_lags_never_goes_back(self):
        self.begin_with(2)
        self.replicas[0].lag = 1.0
        self.push(self.put(2))
        self.agent.log.wait('generation=2')
        reader = Reader(self, self.path('web.json'))
        for n in range(3, 203):
            version = self.put(n)
            self.push(version)
        self.stands(version)
        reader.end(202)

    def test_what_is_newer_than_the_promise_stays(self):
        """The other server shows less: it is not asked."""
        self.begin_with(2)
        fresh, late = self.replicas
        late.freeze()
        asked = late.count
        version = self.put(2)
        self.put(3)
        self.push(version)
        self.agent.log.wait('still shows another version')
        self.assertEqual((self.standing(), late.count), ('3', asked))
        self.assertEqual(self.agent.status()['generation'], 2)
        # nor for what was promised between the two, and comes late
        before = fresh.count
        self.push(fresh.etag(text(25).encode()))
        fresh.wait(before + 3)
        self.assertEqual((self.standing(), late.count), ('3', asked))
        self.push(fresh.etag(text(3).encode()))
        self.agent.log.wait('promised version now')

    def test_a_change_nobody_promised_is_taken_as_it_comes(self):
        self.begin_with(2)
        self.put(2)
        self.push()
        self.agent.log.wait('generation=2')
        version = self.put(3)
        self.push('something else')
        self.stands(version)

    def test_a_push_while_the_server_is_away_is_followed_when_it_is_back(self):
        self.begin_with(1)
        self.replicas[0].down()
        version = self.put(2)
        self.push()
        self.agent.log.wait('pull failed.*refused')
        self.replicas[0].up()
        self.stands(version)

    def test_a_push_of_what_was_refused_is_not_followed_for_ever(self):
        self.begin_with(1)
        self.replicas[0].put(PATH, 'not: [json')
        self.push()
        self.agent.log.wait('invalid JSON')
        before = self.replicas[0].count
        self.replicas[0].down()
        self.assertEqual(self.agent.refresh()['outcome'], 'failed')
        self.assertGreater(self.agent.status()['next_pull_in_ms'], 60000)
        self.assertEqual((self.replicas[0].count, self.standing()), (before, '1'))


class Windows(Case):
    def test_changes_that_go_on_and_on_do_not_put_the_pull_off(self):
        store = etcd.Etcd(self)
        store.put('/app/web.yaml', 'a: 1\n')
        self.begin(f'kind: etcd, urls: ["{store.url}"], watch: true', '    push_spread: 10m\n')
        self.watching(changes=1)
        due = self.agent.status()['next_pull_in_ms']
        self.assertLessEqual(due, 600000)
        for n in range(2, 30):
            store.put('/app/web.yaml', f'a: {n}\n')
            self.watching(changes=n)
            now = self.agent.status()['next_pull_in_ms']
            self.assertLessEqual(now, due)
            due = now

    def test_two_kinds_and_two_hints_are_one_document(self):
        """Layers of two servers, each with a watch of its own."""
        store, consul = etcd.Etcd(self), Consul(self)
        store.put('/base', 'a: 1\nb: 1\n')
        consul.put('over', 'b: 2\n')
        self.begin(f'kind: etcd, urls: ["{store.url}"], watch: true}}\n  other: {{kind: consul, urls: ["{consul.url}"], watch: true',
                   '    from: [{server: main, path: /base}, {server: other, path: /over}]\n', path=None)
        self.watching(changes=2)
        for n in range(3, 6):
            revision, index = store.put('/base', f'a: {n}\nb: 1\n'), consul.put('over', f'b: {n}\n')
            self.stands(revision)
            self.stands(index)
            self.assertEqual(super().standing(), f'a: {n}\nb: {n}\n')


if __name__ == '__main__':
    harness.main()
