"""`pullet relay` between real sources and subscribers nobody here wrote (python3-zmq), and real agents at its end."""
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import zmq

import dashboard
import etcd
import harness
from exposition import Exposition
from harness import Agent, FaultServer, Program, PULLET, ROOT, good
from servers.consul import Consul
from servers.proxy import Proxy

HEARTBEAT = 'pullet.heartbeat'

with open(os.path.join(ROOT, 'agent/cli/relay/relay_metrics.c'), encoding='utf-8') as source:
    METRICS = {m[1]: (m[2], ''.join(re.findall(r'"([^"]*)"', m[3])))
               for m in re.finditer(r'\{"(\w+)", (GAUGE|COUNTER|METRIC_INFO), \w+,((?:\s*"[^"]*")+),', source.read())}

# A subscriber in a process of its own that can be stopped: prints each epoch it comes to know.
SLOW = '''
import json, sys, zmq
s = zmq.Context().socket(zmq.SUB)
s.setsockopt(zmq.RCVHWM, 1)
s.setsockopt(zmq.RCVBUF, 4096)
s.subscribe(b'')
s.connect(sys.argv[1])
epoch, n = None, 0
while True:
    topic, envelope = s.recv_multipart()
    n += 1
    if json.loads(envelope)['epoch'] != epoch:
        epoch = json.loads(envelope)['epoch']
        print('epoch', epoch, 'after', n, flush=True)
'''


class Relay(Program):
    def __init__(self, test, *args, port=0, heartbeat='200ms'):
        super().__init__([PULLET, 'relay', '--push', f'tcp://127.0.0.1:{port}', '--heartbeat', heartbeat, *args], read='both')
        test.addCleanup(self.close)
        self.test, self.args, self.heartbeat = test, args, heartbeat
        self.endpoint = re.search(r'tcp://\S+', self.log.wait('publishing on'))[0]
        self.port = int(self.endpoint.rsplit(':', 1)[1])

    def again(self):
        """kill -9, and a new one at the same endpoint."""
        self.close()
        return Relay(self.test, *self.args, port=self.port, heartbeat=self.heartbeat)

    def stop(self):
        self.signal(signal.SIGTERM)
        lines = self.log.drain()
        self.test.assertEqual(self.wait(), 0, '\n'.join(lines))


class Subscriber:
    """A SUB socket of the zmq module. Numbers that are not the last one or the next one of a topic, within an epoch, are an error."""

    def __init__(self, test, endpoint, prefix='', ready=True):
        self.context = zmq.Context()
        self.socket = self.context.socket(zmq.SUB)
        self.socket.linger = 0
        self.socket.subscribe(prefix.encode())
        self.socket.subscribe(HEARTBEAT.encode())
        self.socket.connect(endpoint)
        self.seen, self.numbers, self.epoch = [], {}, None
        test.addCleanup(self.close)
        if ready:
            self.wait(HEARTBEAT)  # the relay knows of it

    def receive(self, timeout):
        if not self.socket.poll(max(0, timeout) * 1000):
            return False
        topic, envelope = self.socket.recv_multipart()
        topic, m = topic.decode(errors='replace'), json.loads(envelope)
        if m['epoch'] != self.epoch:
            self.epoch, self.numbers = m['epoch'], {}
        if topic != HEARTBEAT:
            last = self.numbers.get(topic)
            assert last is None or m['seq'] in (last, last + 1), (topic, last, m)
            m['again'] = last == m['seq']
            self.numbers[topic] = m['seq']
        self.seen.append((topic, m))
        return True

    def wait(self, topic, start=None, **members):
        """The first message of a topic with these members, among those seen from number `start` on (None: among new ones)."""
        deadline, at = time.monotonic() + harness.DEADLINE, len(self.seen) if start is None else start
        while True:
            for t, m in self.seen[at:]:
                at += 1
                if t == topic and all(m.get(k) == v for k, v in members.items()):
                    return m
            assert self.receive(deadline - time.monotonic()), f'no {topic} {members} in {self.seen[-20:]}'

    def wait_epoch(self, other_than):
        """Until the epoch is another one; the epoch."""
        deadline = time.monotonic() + harness.DEADLINE
        while self.epoch == other_than:
            assert self.receive(deadline - time.monotonic()), f'the epoch stays {other_than}'
        return self.epoch

    def calm(self):
        """The epoch, when what belongs to a connection or a start is over: a second of heartbeats with one epoch."""
        begin, epoch = time.monotonic(), None
        while time.monotonic() - begin < 1.5 or epoch is None:
            self.wait(HEARTBEAT)
            if self.epoch != epoch:
                begin, epoch = time.monotonic(), self.epoch
        return epoch

    def of(self, topic):
        return [m for t, m in self.seen if t == topic and not m['again']]

    def close(self):
        if not self.socket.closed:
            self.socket.close()
            self.context.term()


class Publisher:
    """An upstream of the zmq module."""

    def __init__(self, test, port=0):
        self.context = zmq.Context()
        self.socket = self.context.socket(zmq.XPUB)
        self.socket.linger = 0
        self.socket.setsockopt(zmq.SNDHWM, 0)
        self.socket.setsockopt(zmq.XPUB_VERBOSE, 1)
        self.socket.bind(f'tcp://127.0.0.1:{port or "*"}')
        self.endpoint = self.socket.getsockopt(zmq.LAST_ENDPOINT).rstrip(b'\0').decode()
        test.addCleanup(self.close)

    def wait_subscribed(self):
        while self.socket.poll(harness.DEADLINE * 1000):
            if self.socket.recv() == b'\1':
                return
        raise AssertionError('nobody subscribed to everything')

    def send(self, *frames):
        self.socket.send_multipart([f if isinstance(f, bytes) else json.dumps(f).encode() for f in frames])

    def close(self):
        if not self.socket.closed:
            self.socket.close()
            self.context.term()


class Case(harness.Case):
    def agent(self, endpoint, url=None, server='', path=''):
        """pulletd with the config web, an interval that is never due, and the relay's push; when its first pulls are over."""
        push = f'push:\n  - {{endpoint: "{endpoint}", heartbeat: 200ms}}\n'
        config = self.config(url, '    interval: 1h\n', push=push + server)
        if not url:
            config = config.replace('    url: None\n', f'    from: [{{server: main, path: {path}}}]\n')
        agent = Agent(self, config)
        agent.log.wait('published.*generation=1')
        self.push_state(agent, lambda p: p['connects'] and p['heartbeats'] > 1)
        agent.refresh()
        return agent

    def push_state(self, agent, good_enough):
        """Until the push endpoint's status is as wanted; the status."""
        deadline = time.monotonic() + harness.DEADLINE
        while True:
            push = json.loads(agent.get('/v1/status')[1])['push'][0]
            if good_enough(push):
                return push
            self.assertLess(time.monotonic(), deadline, push)

    def upstream(self, *args, **kw):
        """A relay behind a publisher of the zmq module, and a subscriber; when all is calm."""
        publisher = Publisher(self)
        relay = Relay(self, '--upstream', publisher.endpoint, *args, **kw)
        publisher.wait_subscribed()
        subscriber = Subscriber(self, relay.endpoint)
        subscriber.calm()
        return publisher, relay, subscriber


class Etcd(Case):
    def relay(self, url, *args):
        relay = Relay(self, '--etcd', url, '--prefix', '/app/', *args)
        subscriber = Subscriber(self, relay.endpoint)
        subscriber.calm()
        return relay, subscriber

    def test_a_put_is_a_message_with_its_revision_and_a_delete_one_without(self):
        e = etcd.Etcd(self)
        relay, subscriber = self.relay(e.url)
        for i in range(1, 6):
            revision = e.put('/app/team/web.yaml', f'n: {i}')
            self.assertEqual(subscriber.wait('team/web', version=str(revision))['seq'], i)
        e.put('/other/web.yaml', 'n: 1')
        e.delete('/app/team/web.yaml')
        self.assertNotIn('version', subscriber.wait('team/web', seq=6))
        # a rollout document makes the agents of its config pull; its version is none of theirs, and its driver's notes are nobody's news
        e.put('/app/team/web.rollout#driver', '{}')
        e.put('/app/team/web.rollout', '{}')
        self.assertNotIn('version', subscriber.wait('team/web', seq=7))
        e.put_all({'/app/a.json': '1', '/app/b': '2'})
        subscriber.wait('a', start=0, seq=1)
        subscriber.wait('b', start=0, seq=1)
        self.assertEqual({t for t, _ in subscriber.seen}, {HEARTBEAT, 'team/web', 'a', 'b'})
        relay.stop()

    def test_a_late_subscriber_gets_the_last_message_with_the_same_number(self):
        e = etcd.Etcd(self)
        _, subscriber = self.relay(e.url)
        for i in range(3):
            revision = e.put('/app/web.yaml', f'n: {i}')
            subscriber.wait('web', version=str(revision))
        late = Subscriber(self, subscriber.socket.getsockopt(zmq.LAST_ENDPOINT).rstrip(b'\0').decode(), 'web', ready=False)
        m = late.wait('web')
        self.assertEqual((m['seq'], m['version'], m['epoch']), (3, str(revision), subscriber.epoch))
        self.assertEqual(subscriber.wait('web')['again'], True)  # the others see it again, and know it

    def test_of_many_puts_the_last_one_is_told(self):
        e = etcd.Etcd(self)
        _, subscriber = self.relay(e.url)
        for i in range(200):
            last = e.put('/app/web.yaml', str(i))
        subscriber.wait('web', start=0, version=str(last))

    def test_what_was_compacted_while_nobody_listened_is_a_new_epoch(self):
        e = etcd.Etcd(self)
        proxy = Proxy(self, e.members[0].client)
        _, subscriber = self.relay(proxy.url)
        e.put('/app/web.yaml', '1')
        subscriber.wait('web', seq=1)
        epoch = subscriber.epoch
        proxy.switch('refuse')
        e.put('/app/web.yaml', '2')
        e.put('/app/db.yaml', '1')
        e.compact()
        proxy.switch('pass')
        subscriber.wait_epoch(epoch)
        subscriber.calm()
        revision = e.put('/app/web.yaml', '3')
        subscriber.wait('web', version=str(revision))

    def test_what_changed_while_the_server_was_away_is_told_when_it_is_back(self):
        e = etcd.Etcd(self)
        proxy = Proxy(self, e.members[0].client)
        _, subscriber = self.relay(proxy.url)
        epoch = subscriber.epoch
        proxy.switch('refuse')
        revisions = e.put('/app/web.yaml', '2'), e.put('/app/db.yaml', '1')
        proxy.switch('pass')
        subscriber.wait('web', version=str(revisions[0]))
        subscriber.wait('db', start=0, version=str(revisions[1]))
        e.restart(0)
        revision = e.put('/app/web.yaml', '3')
        subscriber.wait('web', version=str(revision))
        self.assertEqual(subscriber.epoch, epoch)  # nothing was in doubt

    def test_a_cluster_that_loses_members_loses_no_change(self):
        e = etcd.Etcd(self, members=3)
        _, subscriber = self.relay(','.join(e.urls))
        for i, victim in enumerate((0, 1, 2)):
            e.kill(victim)
            revision = e.put('/app/web.yaml', str(i))
            subscriber.wait('web', start=0, version=str(revision))
            e.restart(victim)

    def test_a_restored_cluster_is_a_new_epoch(self):
        e = etcd.Etcd(self)
        backup = e.save()
        _, subscriber = self.relay(e.url)
        for i in range(5):
            e.put('/app/web.yaml', str(i))
        subscriber.wait('web', start=0, version=str(e.revision()))
        epoch = subscriber.epoch
        e.restore(backup, new_token=True)
        subscriber.wait_epoch(epoch)
        subscriber.calm()
        revision = e.put('/app/web.yaml', '3')
        subscriber.wait('web', version=str(revision))

    def test_tls_and_users_come_from_the_configuration(self):
        e = etcd.Etcd(self, tls='server')
        e.enable_auth(users={'relay': ('relay-password', ['/app/'])})
        self.write('password', 'relay-password\n')
        os.chmod(self.path('password'), 0o600)
        self.write('relay.yaml', f'''
servers:
  main:
    kind: etcd
    urls: ["{e.url}"]
    tls: {{ca: {self.path('ca.pem')}}}
    auth: {{basic: {{user: relay, password_file: {self.path('password')}}}}}
''')
        relay = Relay(self, '-c', self.path('relay.yaml'), '--server', 'main', '--prefix', '/app/')
        subscriber = Subscriber(self, relay.endpoint)
        subscriber.calm()
        revision = e.put('/app/web.yaml', '1')
        subscriber.wait('web', version=str(revision))
        relay.stop()

    def test_an_agent_has_the_value_that_was_put(self):
        e = etcd.Etcd(self)
        e.put('/app/web.yaml', 'n: 0\n')
        relay, _ = self.relay(e.url)
        agent = self.agent(relay.endpoint, server=f'servers:\n  main: {{kind: etcd, urls: ["{e.url}"]}}\n', path='/app/web.yaml')
        for i in range(1, 6):
            start = agent.log.count
            e.put('/app/web.yaml', f'n: {i}\n')
            agent.log.wait(r'published.*generation=', start)
            self.assertEqual(self.read('out/web.yaml'), f'n: {i}\n'.encode())
        agent.stop()

    def test_several_prefixes_and_sources_at_once(self):
        e, c = etcd.Etcd(self), Consul(self)
        os.makedirs(self.path('www'))
        relay = Relay(self, '--etcd', e.url, '--prefix', '/a/', '--prefix', '/b/', '--consul', c.url, '--prefix', 'c/', '--dir', self.path('www'))
        subscriber = Subscriber(self, relay.endpoint)
        subscriber.calm()
        e.put('/a/one.yaml', '1')
        e.put('/b/two.yaml', '1')
        c.put('c/three.yaml', '1')
        self.write('www/four.yaml', '1')
        for topic in ('one', 'two', 'three', 'four'):
            subscriber.wait(topic, start=0)
        relay.stop()


class ConsulIndex(Case):
    def relay(self, server, prefix='app/'):
        relay = Relay(self, '--consul', server.url, '--prefix', prefix)
        subscriber = Subscriber(self, relay.endpoint)
        server.wait_holding()
        subscriber.calm()
        return relay, subscriber

    def test_a_put_is_a_message_with_its_index_and_a_delete_a_new_epoch(self):
        c = Consul(self)
        c.put('app/db.yaml', '1')
        relay, subscriber = self.relay(c)
        for i in range(1, 4):
            index = c.put('app/web.yaml', str(i))
            self.assertEqual(subscriber.wait('web', version=str(index))['seq'], i)
        epoch = subscriber.epoch
        c.delete('app/web.yaml')
        subscriber.wait_epoch(epoch)
        relay.stop()

    def test_a_prefix_with_a_slash_before_it_is_the_same(self):
        c = Consul(self)
        _, subscriber = self.relay(c, '/app/')
        c.put('app/web.yaml', '1')
        subscriber.wait('web')

    def test_a_delete_that_another_change_hides_is_a_new_epoch(self):
        c = Consul(self)
        c.put_all({'app/a': '1', 'app/b': '1'})
        _, subscriber = self.relay(c)
        epoch = subscriber.epoch
        c.down()
        c.delete('app/a')
        index = c.put('app/b', '2')
        c.up()
        subscriber.wait('b', version=str(index))
        subscriber.wait_epoch(epoch)

    def test_an_index_that_goes_back_is_a_new_epoch(self):
        c = Consul(self)
        before = c.snapshot()
        _, subscriber = self.relay(c)
        c.put('app/web.yaml', '1')
        subscriber.wait('web')
        epoch = subscriber.epoch
        c.restore(before)
        while subscriber.epoch == epoch:
            c.wake()  # else it would be noticed only when the time of a query is over
            subscriber.wait(HEARTBEAT)

    def test_what_changed_while_the_server_was_away_is_told_when_it_is_back(self):
        c = Consul(self)
        _, subscriber = self.relay(c)
        c.put('app/web.yaml', '1')
        subscriber.wait('web')
        c.down()
        index = c.put('app/web.yaml', '2')
        c.up()
        subscriber.wait('web', version=str(index))


class Directory(Case):
    def test_files_are_topics_and_their_etags_versions(self):
        os.makedirs(self.path('www'))
        self.write('www/web.yaml', 'n: 0\n')
        relay = Relay(self, '--dir', self.path('www'))
        subscriber = Subscriber(self, relay.endpoint)
        versions = set()
        for i in range(1, 4):
            self.write('www/web.yaml', f'n: {i}\n')
            versions.add(subscriber.wait('web', start=0, seq=i)['version'])
        self.assertEqual(len(versions), 3)
        self.assertTrue(all(re.fullmatch('[0-9a-f]{32}', v) for v in versions), versions)
        self.write('www/team/db.json', '{}')
        subscriber.wait('team/db', start=0)
        os.unlink(self.path('www/web.yaml'))
        self.assertNotIn('version', subscriber.wait('web', start=0, seq=4))
        relay.stop()

    def test_names_that_are_no_topics_are_said(self):
        os.makedirs(self.path('www'))
        relay = Relay(self, '--dir', self.path('www'))
        subscriber = Subscriber(self, relay.endpoint)
        self.write('www/' + HEARTBEAT + '.yaml', '1')
        relay.log.wait('invalid topic name.*' + HEARTBEAT)
        self.write('www/web.yaml', '1')
        subscriber.wait('web')


class Upstream(Case):
    def test_messages_go_on_under_own_numbers_and_bad_ones_as_bare_hints(self):
        publisher, relay, subscriber = self.upstream()
        publisher.send(b'web', {'v': 1, 'epoch': 'e', 'seq': 41, 'version': 'v1', 'spread_ms': 70})
        m = subscriber.wait('web', seq=1)
        self.assertEqual((m['version'], m['spread_ms'], m['epoch']), ('v1', 70, subscriber.epoch))
        publisher.send(b'bare')
        self.assertNotIn('version', subscriber.wait('bare', seq=1))
        publisher.send(b'broken', b'{"v":1,"seq":')
        self.assertNotIn('version', subscriber.wait('broken', seq=1))
        publisher.send(b'three', b'{"v":1,"version":"v1"}', b'frames')
        self.assertNotIn('version', subscriber.wait('three', seq=1))
        publisher.send(b'x' * 300)
        publisher.send(b'nul\0topic', {'v': 1})
        publisher.send(b'web', {'v': 1, 'epoch': 'e', 'seq': 42})
        subscriber.wait('web', seq=2)
        self.assertEqual({t for t, _ in subscriber.seen}, {HEARTBEAT, 'web', 'bare', 'broken', 'three'})
        relay.stop()

    def test_a_repeated_number_is_nothing_and_a_gap_or_a_new_epoch_a_new_epoch(self):
        publisher, relay, subscriber = self.upstream()
        epoch = subscriber.epoch
        publisher.send(b'web', {'v': 1, 'epoch': 'e', 'seq': 5})
        subscriber.wait('web', start=0, seq=1)
        for seq in (5, 5, 6):
            publisher.send(b'web', {'v': 1, 'epoch': 'e', 'seq': seq})
        subscriber.wait('web', start=0, seq=2)
        self.assertEqual(subscriber.calm(), epoch)
        publisher.send(b'web', {'v': 1, 'epoch': 'e', 'seq': 8})
        epoch = subscriber.wait_epoch(epoch)
        relay.log.wait('message from upstream is missing')
        subscriber.wait('web', start=0, seq=3)
        publisher.send(HEARTBEAT.encode(), {'v': 1, 'epoch': 'f'})
        subscriber.wait_epoch(epoch)
        relay.log.wait('upstream has a new epoch')

    def test_a_storm_is_a_few_messages_and_the_last_one_is_told(self):
        publisher, _, subscriber = self.upstream()
        for seq in range(1, 1001):
            publisher.send(b'web', {'v': 1, 'epoch': 'e', 'seq': seq, 'version': f'v{seq}'})
        subscriber.wait('web', start=0, version='v1000')
        self.assertLess(len(subscriber.of('web')), 500)

    def test_silence_is_a_new_epoch_and_its_end_another(self):
        root = Relay(self, '--dir', self.dir)
        relay = Relay(self, '--upstream', root.endpoint, '--upstream-heartbeat', '200ms')
        subscriber = Subscriber(self, relay.endpoint)
        epoch = subscriber.calm()
        root.signal(signal.SIGSTOP)
        epoch = subscriber.wait_epoch(epoch)
        relay.log.wait('new epoch.*no heartbeat')
        at = relay.log.count
        root.signal(signal.SIGCONT)
        subscriber.wait_epoch(epoch)
        relay.log.wait('upstream connected', at)
        subscriber.calm()
        self.write('web.yaml', '1')
        subscriber.wait('web')

    def test_garbage_instead_of_a_publisher_is_survived(self):
        with socket.create_server(('127.0.0.1', 0)) as listener:
            def serve():
                try:
                    while True:
                        c, _ = listener.accept()
                        with c:
                            c.sendall(os.urandom(4096))
                except OSError:
                    pass
            threading.Thread(target=serve, daemon=True).start()
            publisher = Publisher(self)
            relay = Relay(self, '--upstream', f'tcp://127.0.0.1:{listener.getsockname()[1]}', '--upstream', publisher.endpoint)
            publisher.wait_subscribed()
            subscriber = Subscriber(self, relay.endpoint)
            relay.log.wait('upstream (refused|rebuilt|lost)')
            publisher.send(b'web')
            subscriber.wait('web', start=0)
            relay.stop()
            listener.shutdown(socket.SHUT_RDWR)

    def test_stop_is_quick_while_upstream_and_a_subscriber_hang(self):
        root = Relay(self, '--dir', self.dir)
        relay = Relay(self, '--upstream', root.endpoint)
        slow = Program([sys.executable, '-c', SLOW, relay.endpoint], read='stdout')
        self.addCleanup(slow.close)
        slow.log.wait('epoch')
        root.signal(signal.SIGSTOP)
        slow.signal(signal.SIGSTOP)
        begin = time.monotonic()
        relay.stop()
        if not harness.SANITIZED:
            self.assertLess(time.monotonic() - begin, 2.5)

    def test_spread_is_told_in_messages_that_name_none_or_a_shorter_one_and_with_epochs(self):
        publisher, _, subscriber = self.upstream('--spread', '90ms')
        self.assertEqual(subscriber.wait(HEARTBEAT)['spread_ms'], 90)
        publisher.send(b'web', {'v': 1, 'epoch': 'e', 'seq': 1, 'spread_ms': 70})
        self.assertEqual(subscriber.wait('web', seq=1)['spread_ms'], 90)
        publisher.send(b'long', {'v': 1, 'epoch': 'e', 'seq': 1, 'spread_ms': 110})
        self.assertEqual(subscriber.wait('long', seq=1)['spread_ms'], 110)
        publisher.send(b'db')
        self.assertEqual(subscriber.wait('db', seq=1)['spread_ms'], 90)


class Loss(Case):
    def test_a_restarted_relay_makes_agents_pull(self):
        server = FaultServer(self)
        server.behave = good(b'n: 1\n', 'ETag: "v1"\r\n')
        publisher = Publisher(self)
        relay = Relay(self, '--upstream', publisher.endpoint)
        agent = self.agent(relay.endpoint, server.url + '/web.yaml')
        server.behave = good(b'n: 2\n', 'ETag: "v2"\r\n')  # nobody says so
        relay.again()
        agent.log.wait('published.*generation=2')
        agent.stop()

    def test_a_chain_of_three_survives_the_loss_of_its_middle(self):
        server = FaultServer(self)
        server.behave = good(b'n: 1\n', 'ETag: "v1"\r\n')
        os.makedirs(self.path('www'))
        root = Relay(self, '--dir', self.path('www'))
        middle = Relay(self, '--upstream', root.endpoint, '--upstream-heartbeat', '200ms')
        leaf = Relay(self, '--upstream', middle.endpoint, '--upstream-heartbeat', '200ms')
        subscriber = Subscriber(self, leaf.endpoint)
        epoch = subscriber.calm()
        agent = self.agent(leaf.endpoint, server.url + '/web.yaml')
        server.behave = good(b'n: 2\n', 'ETag: "v2"\r\n')
        self.write('www/web.yaml', '1')
        self.assertEqual(subscriber.wait('web', start=0)['seq'], 1)
        agent.log.wait('published.*generation=2')
        middle.close()
        server.behave = good(b'n: 3\n', 'ETag: "v3"\r\n')
        self.write('www/web.yaml', '2')  # while nobody passes it on
        middle.again()
        subscriber.wait_epoch(epoch)
        agent.log.wait('published.*generation=3')
        agent.stop()

    def test_an_epoch_makes_agents_pull_and_a_repeated_message_does_not(self):
        server = FaultServer(self)
        server.behave = good(b'n: 1\n', 'ETag: "v1"\r\n')
        publisher, relay, subscriber = self.upstream()
        agent = self.agent(relay.endpoint, server.url + '/web.yaml')
        publisher.send(b'web', {'v': 1, 'epoch': 'e', 'seq': 1, 'version': 'v1'})
        subscriber.wait('web', start=0, seq=1)
        before = self.push_state(agent, lambda p: p['messages'] > 0)['messages']
        agent.refresh()
        requests = server.requests
        late = Subscriber(self, relay.endpoint, 'web')
        late.wait('web', start=0, seq=1)
        self.push_state(agent, lambda p: p['messages'] > before)
        self.assertEqual(server.requests, requests)
        server.behave = good(b'n: 2\n', 'ETag: "v2"\r\n')
        publisher.send(HEARTBEAT.encode(), {'v': 1, 'epoch': 'e'})
        publisher.send(HEARTBEAT.encode(), {'v': 1, 'epoch': 'f'})
        agent.log.wait('published.*generation=2')
        agent.stop()

    def test_the_spread_of_a_heartbeat_holds_for_the_pulls_of_a_new_epoch(self):
        server = FaultServer(self)
        server.behave = good(b'n: 1\n', 'ETag: "v1"\r\n')
        publisher = Publisher(self)
        stopping = threading.Event()

        def beat():
            while not stopping.wait(0.1):
                publisher.send(HEARTBEAT.encode(), {'v': 1, 'epoch': 'e'})
        thread = threading.Thread(target=beat, daemon=True)
        thread.start()
        agent = self.agent(publisher.endpoint, server.url + '/web.yaml')
        stopping.set()
        thread.join()
        requests = server.requests
        publisher.send(HEARTBEAT.encode(), {'v': 1, 'epoch': 'f', 'spread_ms': 3600000})
        self.push_state(agent, lambda p: p['epochs'] == 1)
        self.assertEqual(server.requests, requests)
        agent.stop()

    def test_a_slow_subscriber_loses_messages_and_learns_of_it(self):
        publisher, relay, subscriber = self.upstream(heartbeat='500ms')
        slow = Program([sys.executable, '-c', SLOW, relay.endpoint], read='stdout')
        self.addCleanup(slow.close)
        slow.log.wait('epoch ' + subscriber.epoch)
        slow.signal(signal.SIGSTOP)
        epoch, count, lost = subscriber.epoch, 0, None
        deadline = time.monotonic() + harness.DEADLINE
        while not lost:
            self.assertLess(time.monotonic(), deadline)
            for _ in range(200):
                count += 1
                publisher.send(f'{count}-{"x" * 230}'.encode(), {'v': 1, 'epoch': 'e', 'seq': 1, 'version': 'v' * 250})
            subscriber.wait(f'{count}-{"x" * 230}', start=max(0, len(subscriber.seen) - 1))
            lost = subscriber.epoch != epoch
        relay.log.wait('subscriber too slow')
        relay.log.wait('new epoch.*a subscriber lost messages')
        self.assertEqual(len({t for t, _ in subscriber.seen if t != HEARTBEAT}), count)  # the other one has all of them
        epoch = subscriber.calm()  # one loss is one new epoch, however long it lasts
        slow.signal(signal.SIGCONT)
        slow.log.wait('epoch ' + epoch)

    @harness.needs('many open files')
    def test_a_thousand_subscribers_that_come_late_cost_a_few_repetitions(self):
        publisher, relay, subscriber = self.upstream()
        publisher.send(b'web', {'v': 1, 'epoch': 'e', 'seq': 1, 'version': 'v1'})
        subscriber.wait('web', seq=1)
        context = zmq.Context()
        crowd = context.socket(zmq.XSUB)  # may connect to one endpoint many times
        crowd.linger = 0
        self.addCleanup(context.destroy)
        crowd.send(b'\1web')
        for _ in range(1000):
            crowd.connect(relay.endpoint)
        got, deadline = 0, time.monotonic() + harness.DEADLINE
        while got < 1000:
            self.assertTrue(crowd.poll(max(0, deadline - time.monotonic()) * 1000), got)
            self.assertEqual(json.loads(crowd.recv_multipart()[1])['seq'], 1)
            got += 1
        subscriber.wait(HEARTBEAT)
        subscriber.wait(HEARTBEAT)
        self.assertLess(len([1 for t, m in subscriber.seen if t == 'web' and m['again']]), 100)
        crowd.close()


class Curve(Case):
    def keys(self, name):
        done = subprocess.run([PULLET, 'keygen', self.path(name)], capture_output=True, text=True, check=True)
        return self.path(name), done.stdout.strip()

    def test_a_chain_is_encrypted_from_end_to_end(self):
        (root_key, root_public), (leaf_key, leaf_public), (own_key, own_public) = self.keys('root'), self.keys('leaf'), self.keys('own')
        self.write('allow', own_public + '\n')
        os.makedirs(self.path('www'))
        root = Relay(self, '--dir', self.path('www'), '--curve-secret-key', root_key, '--curve-allow', self.path('allow'))
        root.log.wait(re.escape(f"server_key: '{root_public}'"))
        leaf = Relay(self, '--upstream', root.endpoint, '--upstream-curve-server-key', root_public, '--upstream-curve-secret-key', own_key,
                     '--curve-secret-key', leaf_key)
        leaf.log.wait('upstream connected')
        server = FaultServer(self)
        server.behave = good(b'n: 1\n', 'ETag: "v1"\r\n')
        agent = Agent(self, self.config(server.url + '/web.yaml', '    interval: 1h\n', push=f'''push:
  - endpoint: {leaf.endpoint}
    heartbeat: 200ms
    curve: {{server_key: "{leaf_public}"}}
'''))
        agent.log.wait('published.*generation=1')
        self.push_state(agent, lambda p: p['heartbeats'] > 8)  # the epochs of the start are over
        agent.refresh()
        server.behave = good(b'n: 2\n', 'ETag: "v2"\r\n')
        self.write('www/web.yaml', '1')
        agent.log.wait('published.*generation=2')
        agent.stop()
        stranger = Relay(self, '--upstream', root.endpoint, '--upstream-curve-server-key', root_public)
        stranger.log.wait('upstream refused')
        for relay in (stranger, leaf, root):
            relay.stop()


class Monitor(Case):
    def relay(self, *args, heartbeat='200ms'):
        relay = Relay(self, '--listen', '127.0.0.1:0', *args, heartbeat=heartbeat)
        self.address = re.search(r'http://([^/]+)/metrics', relay.log.wait('metrics on'))[1]
        return relay

    def ask(self, path, method='GET', **headers):
        """Status, headers, body."""
        connection = http.client.HTTPConnection(self.address, timeout=harness.DEADLINE)
        try:
            connection.request(method, path, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read().decode()
        finally:
            connection.close()

    def scrape(self):
        status, headers, text = self.ask('/metrics')
        self.assertEqual((status, headers['Content-Type']), (200, 'text/plain; version=0.0.4; charset=utf-8'))
        return Exposition(text)

    def until(self, good_enough):
        """Until the metrics are as wanted; the metrics."""
        deadline = time.monotonic() + harness.DEADLINE
        while True:
            now = self.scrape()
            if good_enough(now):
                return now
            self.assertLess(time.monotonic(), deadline, now.series)

    def changes_is(self, n):
        return self.until(lambda m: m['pullet_relay_changes_total'] == n and m['pullet_relay_waiting_changes'] == 0)

    def dropped(self, m, cause):
        return m['pullet_relay_dropped_changes_total', {'cause': cause}]

    def behind(self, *args):
        """A relay behind a publisher of the zmq module, which it has connected to."""
        publisher = Publisher(self)
        relay = self.relay('--upstream', publisher.endpoint, *args)
        publisher.wait_subscribed()
        self.until(lambda m: self.state(m, publisher) == 'connected')
        return publisher, relay

    @staticmethod
    def state(m, publisher):
        return m.one('pullet_relay_upstream_state', endpoint=publisher.endpoint)

    def of_upstream(self, m, publisher, what):
        return m[f'pullet_relay_upstream_{what}', {'endpoint': publisher.endpoint}]

    def test_each_panel_of_the_dashboard_is_about_series_that_there_are(self):
        publisher, _ = self.behind()
        publisher.send(b'web')
        self.changes_is(1)
        dashboard.check(self, self.ask('/metrics')[2], relay=True)

    def test_the_counts_are_those_of_the_messages(self):
        publisher, relay = self.behind()
        subscriber = Subscriber(self, relay.endpoint)
        subscriber.calm()
        before = self.scrape()
        beat = len(HEARTBEAT) + len(json.dumps({'v': 1, 'epoch': subscriber.epoch}, separators=(',', ':')))
        for i in range(100):
            publisher.send(f'topic-{i}'.encode(), {'v': 1, 'epoch': 'e', 'seq': 1})
        m = self.changes_is(100)
        self.assertEqual((m['pullet_relay_messages_total'], m['pullet_relay_topics']), (100, 100))
        for i in range(1, 301):
            publisher.send(b'web', {'v': 1, 'epoch': 'e', 'seq': i, 'version': f'v{i}'})
        publisher.send(b'web', {'v': 1, 'epoch': 'e', 'seq': 300, 'version': 'v300'})
        publisher.send(b'broken', b'{"v":1,"seq":')  # a hint, all the same
        publisher.send(b'three', b'{}', b'frames')  # this, too
        for _ in range(3):
            publisher.send(HEARTBEAT.encode(), {'v': 1, 'epoch': 'e'})
        publisher.send(b'last')
        m = self.changes_is(404)
        subscriber.wait('web', start=0, version='v300')
        subscriber.wait('last', start=0)
        self.assertEqual(self.dropped(m, 'repeated'), 1)
        self.assertGreater(self.dropped(m, 'superseded'), 100)  # 20 ms lie between two messages of a topic
        self.assertEqual(m['pullet_relay_messages_total'], 404 - 1 - self.dropped(m, 'superseded'))
        self.assertEqual(m['pullet_relay_messages_total'], len([1 for t, _ in subscriber.seen if t != HEARTBEAT]))
        self.assertEqual([self.of_upstream(m, publisher, f'{what}_total') for what in ('messages', 'heartbeats', 'bad_messages', 'connects')],
                         [404, 3, 2, 1])
        self.assertEqual([self.dropped(m, cause) for cause in ('no_room', 'invalid_name')], [0, 0])
        self.assertEqual(m['pullet_relay_topics'], 104)
        self.assertLess(self.of_upstream(m, publisher, 'last_message_age_seconds'), harness.DEADLINE)
        # bytes: of the messages as this subscriber has them, and of the heartbeats between
        written = sum(len(t) + len(json.dumps({k: x for k, x in e.items() if k != 'again'}, separators=(',', ':')))
                      for t, e in subscriber.seen if t != HEARTBEAT)
        beats = m['pullet_relay_heartbeats_total'] - before['pullet_relay_heartbeats_total']
        self.assertEqual(m['pullet_relay_sent_bytes_total'] - before['pullet_relay_sent_bytes_total'], written + beats * beat)
        relay.stop()

    def test_subscribers_are_counted_while_they_are_there(self):
        publisher, relay = self.behind()
        publisher.send(b'web', {'v': 1, 'epoch': 'e', 'seq': 1})
        first = Subscriber(self, relay.endpoint)  # two subscriptions each
        second = Subscriber(self, relay.endpoint, 'web')
        second.wait('web', start=0)
        self.assertEqual(self.held(), (2, 4))
        self.assertGreater(self.scrape()['pullet_relay_repetitions_total'], 0)
        with socket.create_connection(('127.0.0.1', relay.port)) as s:
            s.sendall(b'\xff')  # the beginning of a greeting is no subscriber yet
            self.assertEqual(self.held(), (2, 4))
        second.socket.unsubscribe(HEARTBEAT.encode())
        self.until(lambda m: self.held(m) == (2, 3))
        second.close()
        self.until(lambda m: self.held(m) == (1, 2))
        garbage = socket.create_connection(('127.0.0.1', relay.port))
        garbage.sendall(b'GET / HTTP/1.1\r\n\r\n' * 10)
        self.until(lambda m: m['pullet_relay_cut_subscribers_total'] == 1)
        garbage.close()
        self.assertEqual(self.held(), (1, 2))
        first.close()
        self.until(lambda m: self.held(m) == (0, 0))

    def held(self, m=None):
        m = m or self.scrape()
        return m['pullet_relay_subscribers'], m['pullet_relay_subscriptions']

    def test_an_upstream_that_is_killed_and_comes_back_is_seen(self):
        publisher, relay = self.behind()
        self.assertEqual(self.ask('/readyz')[::2], (200, 'ok\n'))
        doubts = self.scrape()['pullet_relay_epochs_total', {'cause': 'doubt'}]
        publisher.close()
        m = self.until(lambda m: self.state(m, publisher) == 'connecting')
        self.assertEqual(m['pullet_relay_ready'], 0)
        status, _, text = self.ask('/readyz')
        self.assertEqual((status, text), (503, f'[-]{publisher.endpoint}: connecting\nnot ready\n'))
        self.assertEqual([self.ask(path)[::2] for path in ('/livez', '/healthz')], [(200, 'ok\n')] * 2)
        again = Publisher(self, port=int(publisher.endpoint.rsplit(':', 1)[1]))
        again.wait_subscribed()
        m = self.until(lambda m: self.state(m, publisher) == 'connected' and m['pullet_relay_epochs_total', {'cause': 'doubt'}] > doubts)
        self.assertEqual((self.of_upstream(m, publisher, 'connects_total'), m['pullet_relay_ready']), (2, 1))
        self.assertEqual(self.ask('/readyz?verbose')[::2], (200, f'[+]{publisher.endpoint}: connected\nok\n'))
        again.send(b'web', {'v': 1, 'epoch': 'e', 'seq': 1})
        self.assertEqual(self.changes_is(1)['pullet_relay_messages_total'], 1)
        relay.stop()

    def test_one_of_two_upstreams_keeps_it_ready_and_a_hung_one_is_silent(self):
        root = Relay(self, '--dir', self.dir, heartbeat='100ms')
        publisher, _ = self.behind('--upstream', root.endpoint, '--upstream-heartbeat', '100ms')
        self.until(lambda m: self.of_upstream(m, root, 'heartbeats_total'))
        root.signal(signal.SIGSTOP)
        m = self.until(lambda m: self.state(m, root) == 'silent')
        self.assertEqual((self.state(m, publisher), m['pullet_relay_ready']), ('connected', 1))
        self.assertGreater(self.of_upstream(m, root, 'last_message_age_seconds'), 0.2)
        publisher.close()
        self.until(lambda m: m['pullet_relay_ready'] == 0)
        root.signal(signal.SIGCONT)
        self.until(lambda m: m['pullet_relay_ready'] == 1)

    def test_sources_and_their_states(self):
        e, c = etcd.Etcd(self), Consul(self)
        os.makedirs(self.path('www'))
        gone = 'http://127.0.0.1:1'
        self.relay('--etcd', e.url, '--prefix', '/a/', '--consul', c.url, '--prefix', 'c/', '--etcd', gone, '--prefix', '/b/', '--dir', self.path('www'))
        etcd_, consul, lost = f'{e.url} /a/', f'{c.url} c/', f'{gone} /b/'
        self.until(lambda m: [m.one('pullet_relay_source_state', source=s) for s in (etcd_, consul, lost)] == ['watching', 'watching', 'failing'])
        _, _, text = self.ask('/readyz?verbose')
        self.assertEqual(text, f"[+]{etcd_}: watching\n[+]{consul}: watching\n[-]{lost}: failing\n[+]{self.path('www')}: watching\nok\n")
        before = self.scrape()
        e.put('/a/one.yaml', '1')
        self.write('www/two.yaml', '1')
        self.write('www/' + HEARTBEAT + '.yaml', '1')
        m = self.until(lambda m: self.dropped(m, 'invalid_name') and self.of_source(m, etcd_) > self.of_source(before, etcd_))
        self.assertEqual(self.dropped(m, 'invalid_name'), 1)
        self.assertGreater(self.of_source(m, self.path('www')), self.of_source(before, self.path('www')))
        self.assertEqual(sum(self.of_source(m, s) - self.of_source(before, s) for s in (etcd_, consul, lost, self.path('www'))),
                         m['pullet_relay_changes_total'] - before['pullet_relay_changes_total'])

    def test_names_of_any_bytes_leave_the_metrics_valid(self):
        for name in (b'q"\\', b'line\nfeed', b'\xff'):
            os.mkdir(os.path.join(self.dir.encode(), name))
        self.relay(*(x for name in (b'q"\\', b'line\nfeed', b'\xff') for x in ('--dir', os.path.join(self.dir.encode(), name))))
        sources = {dict(pairs)['source'] for name, pairs in self.scrape().series if name == 'pullet_relay_source_changes_total'}
        self.assertEqual(sources, {f'{self.dir}/{name}' for name in ('q"\\', r'line\x0afeed', r'\xff')})

    def of_source(self, m, source):
        return m['pullet_relay_source_changes_total', {'source': source}]

    def test_denied_keys_are_counted(self):
        key, own = self.path('key'), self.path('own')
        keys = [subprocess.run([PULLET, 'keygen', path], capture_output=True, text=True, check=True).stdout.strip() for path in (key, own)]
        self.write('allow', keys[1] + '\n')
        relay = self.relay('--dir', self.dir, '--curve-secret-key', key, '--curve-allow', self.path('allow'))
        stranger = Relay(self, '--upstream', relay.endpoint, '--upstream-curve-server-key', keys[0])
        stranger.log.wait('upstream refused')
        self.assertGreater(self.scrape()['pullet_relay_denied_subscribers_total'], 0)
        self.assertEqual(self.held(), (0, 0))

    def test_a_message_that_a_slow_subscriber_loses_is_counted(self):
        publisher, relay = self.behind()
        subscriber = Subscriber(self, relay.endpoint)
        slow = Program([sys.executable, '-c', SLOW, relay.endpoint], read='stdout')
        self.addCleanup(slow.close)
        slow.log.wait('epoch')
        slow.signal(signal.SIGSTOP)
        deadline, count = time.monotonic() + harness.DEADLINE, 0
        while not self.scrape()['pullet_relay_lost_messages_total', {'cause': 'slow_subscriber'}]:
            self.assertLess(time.monotonic(), deadline)
            for _ in range(200):
                count += 1
                publisher.send(f'{count}-{"x" * 230}'.encode(), {'v': 1, 'epoch': 'e', 'seq': 1, 'version': 'v' * 250})
            subscriber.wait(f'{count}-{"x" * 230}', start=max(0, len(subscriber.seen) - 1))
        self.until(lambda m: m['pullet_relay_epochs_total', {'cause': 'lost_message'}] == 1)

    def test_hostile_clients_stop_neither_messages_nor_scrapes(self):
        publisher, relay = self.behind()
        subscriber = Subscriber(self, relay.endpoint)
        subscriber.calm()
        host, port = self.address.split(':')
        clients = []
        self.addCleanup(lambda: [c.close() for c in clients])
        for i in range(100):
            c = socket.create_connection((host, int(port)), timeout=harness.DEADLINE)
            clients.append(c)
            c.sendall((b'', b'GET /metrics HTTP/1.1\r\nX: ', b'POST /metrics HTTP/1.1\r\nContent-Length: 4000\r\n\r\n',
                       b'GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n' * 400)[i % 4])
        stop = threading.Event()

        def flood():  # a request without end, again and again
            while not stop.is_set():
                try:
                    with socket.create_connection((host, int(port)), timeout=harness.DEADLINE) as s:
                        s.sendall(b'GET /metrics HTTP/1.1\r\n')
                        while not stop.is_set():
                            s.sendall(b'X-Y: ' + b'z' * 1000 + b'\r\n')
                except OSError:
                    pass

        thread = threading.Thread(target=flood)
        thread.start()
        try:
            for i in range(500):
                publisher.send(f'topic-{i}'.encode(), {'v': 1, 'epoch': 'e', 'seq': 1})
                if i % 50 == 49:
                    subscriber.wait(f'topic-{i}', start=0)
            m = self.changes_is(500)
        finally:
            stop.set()
            thread.join()
        self.assertEqual(m['pullet_relay_messages_total'], 500)
        relay.stop()

    def test_the_table_is_what_is_written_with_the_labels_of_the_manual(self):
        """tests/man.py holds the names and the helps of the manual against the table."""
        with open(os.path.join(ROOT, 'agent/cli/pullet.1'), encoding='utf-8') as f:
            page = f.read().split('\n.Ss Metrics of a relay\n')[1].split('\n.S')[0]
        e = etcd.Etcd(self)
        publisher, _ = self.behind('--etcd', e.url, '--prefix', '/a/')
        publisher.send(HEARTBEAT.encode(), {'v': 1, 'epoch': 'e'})
        written = self.until(lambda m: self.of_upstream(m, publisher, 'heartbeats_total'))
        families = {name: family.type.upper() for name, family in written.families.items()}
        self.assertEqual(families, {name: kind.replace('METRIC_INFO', 'GAUGE') for name, (kind, _) in METRICS.items()})
        self.assertEqual({name: family.help for name, family in written.families.items()}, {name: text for name, (_, text) in METRICS.items()})
        told = {m[1]: m[2] for m in re.finditer(r'^\.It Cm (\w+)(?: Pq (\w+))?$', page, re.M)}
        for name, family in written.families.items():
            labels = {key for _, pairs in family.samples for key, _ in pairs} - {'endpoint', 'source'}
            self.assertEqual(labels, {told.get(name)} - {None}, f'the label of {name} in pullet(1)')
        status, headers, text = self.ask('/metrics', Accept='application/openmetrics-text')
        self.assertEqual((status, headers['Content-Type'].split(';')[0]), (200, 'application/openmetrics-text'))
        Exposition(text, openmetrics=True)

    def test_what_is_not_there_and_foreign_names(self):
        self.relay('--dir', self.dir, '--listen-name', 'relay.example', '--listen-name', 'other')
        port = self.address.split(':')[1]
        for status, says, path, method, host in (
                (404, '/metrics, /livez, /healthz and /readyz', '/', 'GET', None),
                (404, 'nothing at this path', '/v1/status', 'GET', None),
                (405, 'does not take that method', '/metrics', 'POST', None),
                (421, 'this host does not have', '/metrics', 'GET', 'evil.example'),
                (200, 'pullet_relay_build_info', '/metrics', 'GET', 'RELAY.example:' + port),
                (200, 'ok', '/livez', 'GET', 'other')):
            got, headers, text = self.ask(path, method, **({'Host': host} if host else {}))
            self.assertEqual(got, status, text)
            self.assertIn(says, text)
            self.assertEqual(headers['Cache-Control'], 'no-store')
            self.assertEqual(headers['Allow'], 'GET, HEAD' if status == 405 else None)
        status, headers, text = self.ask('/metrics', 'HEAD')
        self.assertEqual((status, text), (200, ''))
        self.assertGreater(int(headers['Content-Length']), 1000)

    def test_without_listen_there_is_no_other_socket(self):
        def listening(relay):
            own = {os.readlink(f'/proc/{relay.pid}/fd/{fd}') for fd in os.listdir(f'/proc/{relay.pid}/fd')}
            with open('/proc/net/tcp', encoding='utf-8') as f:
                return len([1 for line in list(f)[1:] if line.split()[3] == '0A' and f'socket:[{line.split()[9]}]' in own])

        self.assertEqual(listening(Relay(self, '--dir', self.dir)), 1)
        self.assertEqual(listening(self.relay('--dir', self.dir)), 2)


@harness.one_thread
class Usage(Case):
    def run_relay(self, *args):
        done = subprocess.run([PULLET, 'relay', *args], capture_output=True, text=True, timeout=harness.DEADLINE, check=False)
        return done.returncode, done.stdout + done.stderr

    def test_what_makes_no_sense_is_said(self):
        key = self.path('key')
        public = subprocess.run([PULLET, 'keygen', key], capture_output=True, text=True, check=True).stdout.strip()
        for says, *args in (
                ('nothing to relay',),
                ('no option', 'x', '--dir', '.'),
                ('--help', '--nonsense'),
                ('--prefix behind it', '--etcd', 'http://127.0.0.1:1'),
                ('name it first', '--prefix', '/a/'),
                ("ends in '/'", '--etcd', 'http://127.0.0.1:1', '--prefix', '/a'),
                ('url of a server', '--etcd', 'http://u:p@127.0.0.1:1', '--prefix', '/a/'),
                ('url of a server', '--consul', '127.0.0.1:8500', '--prefix', '/a/'),
                ('url of a server', '--etcd', 'http://127.0.0.1:1,', '--prefix', '/a/'),
                ('at most 16 urls', '--etcd', ','.join(['http://127.0.0.1:1'] * 17), '--prefix', '/a/'),
                ('at most 16 servers', *['--etcd', 'http://127.0.0.1:1'] * 17),
                ('at most 16 prefixes', '--etcd', 'http://127.0.0.1:1', *['--prefix', '/a/'] * 17),
                ('at most 16 directories', *['--dir', '.'] * 17),
                ('at most 16 upstreams', *['--upstream', 'tcp://127.0.0.1:1'] * 17),
                ('--upstream ', '--upstream', 'http://127.0.0.1:1'),
                ('name it first', '--upstream-heartbeat', '1s'),
                ('100ms to 1h', '--upstream', 'tcp://127.0.0.1:1', '--upstream-heartbeat', '1ms'),
                ('takes a duration', '--dir', '.', '--heartbeat', 'x'),
                ('0s to 1h', '--dir', '.', '--spread', '2h'),
                ('not on this host', '--upstream', 'tcp://192.0.2.1:1'),
                ('exclude each other', '--upstream', 'tcp://127.0.0.1:1', '--upstream-insecure', '--upstream-curve-server-key', public),
                ('needs --upstream-curve-server-key', '--upstream', 'tcp://127.0.0.1:1', '--upstream-curve-secret-key', key),
                ('--upstream-curve-server-key ', '--upstream', 'tcp://127.0.0.1:1', '--upstream-curve-server-key', 'x'),
                ('needs -c', '--server', 'main', '--prefix', '/a/'),
                ('for --server only', '-c', 'x', '--dir', '.'),
                ("--listen '9378' ", '--dir', '.', '--listen', '9378'),
                ("--listen '127.0.0.1:99999' ", '--dir', '.', '--listen', '127.0.0.1:99999'),
                ("--listen-name 'a b' is not a name", '--dir', '.', '--listen', '127.0.0.1:0', '--listen-name', 'a b'),
                ('at most 16 names', '--dir', '.', '--listen', '127.0.0.1:0', *['--listen-name', 'a'] * 17),
                ('for the clients of --listen', '--dir', '.', '--listen-name', 'a'),
                ('named twice', '--push', 'tcp://127.0.0.1:0', '--dir', '.', '--dir', '.', '--listen', '127.0.0.1:0'),
                ('named twice', '--push', 'tcp://127.0.0.1:0', *['--upstream', 'tcp://127.0.0.1:1'] * 2, '--listen', '127.0.0.1:0')):
            status, text = self.run_relay(*args)
            self.assertEqual(status, 64, (args, text))
            self.assertIn(says, text)
            self.assertNotIn('u:p', text)

    def path_endpoint(self):
        return 'ipc://' + self.path('socket')

    def test_what_cannot_be_done_is_said(self):
        self.write('relay.yaml', 'servers:\n  main: {kind: etcd, urls: ["http://127.0.0.1:1"]}\n  web: {urls: ["http://127.0.0.1:1"]}\n')
        self.write('bad.yaml', 'servers:\n  main: {kind: etcd, url: x}\n')
        named = '--prefix', '/a/', '--push', 'tcp://127.0.0.1:0'
        taken = socket.create_server(('127.0.0.1', 0))
        self.addCleanup(taken.close)
        address = f'127.0.0.1:{taken.getsockname()[1]}'
        for status, says, *args in (
                (78, 'no server other', '-c', self.path('relay.yaml'), '--server', 'other', *named),
                (78, 'only etcd and Consul', '-c', self.path('relay.yaml'), '--server', 'web', *named),
                (78, 'bad.yaml:2:', '-c', self.path('bad.yaml'), '--server', 'main', *named),
                (78, 'cannot be read', '-c', self.path('none.yaml'), '--server', 'main', *named),
                (1, 'cannot watch', '--dir', self.path('none'), '--push', 'tcp://127.0.0.1:0'),
                (1, f'cannot listen on {address}: another program has it: stop that, or name another with --listen', '--dir', '.', '--push',
                 'tcp://127.0.0.1:0', '--listen', address),
                (64, 'can be reached from other hosts', '--dir', '.', '--push', 'tcp://0.0.0.0:0'),
                (1, 'own endpoint', '--upstream', self.path_endpoint(), '--push', self.path_endpoint()),
                (1, 'none', '--dir', '.', '--push', 'tcp://127.0.0.1:0', '--curve-secret-key', self.path('none'))):
            got, text = self.run_relay(*args)
            self.assertEqual(got, status, (args, text))
            self.assertIn(says, text)

    def test_help_names_every_option(self):
        status, text = self.run_relay('--help')
        self.assertEqual(status, 0)
        for option in ('push', 'etcd', 'consul', 'server', 'prefix', 'dir', 'upstream', 'heartbeat', 'spread', 'curve-secret-key', 'insecure', 'listen',
                       'listen-name'):
            self.assertIn('--' + option, text)


if __name__ == '__main__':
    harness.main()
