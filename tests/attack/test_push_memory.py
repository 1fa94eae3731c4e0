"""What one peer of the push channel can make the other side hold: messages, parts and subscriptions without end, by a hand-made peer (zmtp.py).

Each attack sends many times what would be the bound if it were kept; the victim's memory (VmHWM, the highest it ever was) grows by less than
the bound all the same, and afterwards an honest peer is served as before.
"""
import contextlib
import json
import os
import socket
import time

import attack
import harness
import zmq
import zmtp
from etcd import free_ports
from harness import Agent, FaultServer, good
from test_push import Publisher
from test_relay import Relay
from zmq.utils import z85

BOUND = 16 << 20  # bytes, of one peer
# bytes in memory for one that is sent, where nothing bounds it
GROWTH = {'parts of 1 byte': 20, 'parts of no bytes': 32, 'parts of no bytes, and an end now and then': 32, 'parts of 40 bytes, one by one': 400, 'messages of no bytes': 32, 'messages of 1 byte': 20,
          'topics of 7 bytes': 20, 'topics of 31 bytes': 8, 'topics of 290 bytes': 2, 'topics of 240 bytes that have nothing in common': 28, 'topics that branch': 200, 'topics by commands': 6,
          'topics, and away': 8, 'topics that are rolled back': 3, 'one topic': 20, 'all topics, again and again': 32, 'cancellations': 12, 'pings': 8, 'whole messages of 30,000 empty parts': 32,
          'a frame that never ends': 1, 'frames of 60 kB that hardly begin': 4000}
PUBLISHED = ('parts of 60 kB', 'parts of 4 kB', 'parts of 200 bytes', 'parts of 1 byte', 'parts of no bytes', 'parts of 40 bytes, one by one', 'parts of no bytes, and an end now and then',
             'messages of no bytes', 'messages of 1 byte')
SUBSCRIBED = ('parts of no bytes', 'whole messages of 30,000 empty parts', 'messages of 1 byte', 'topics of 7 bytes', 'topics that branch', 'topics, and away', 'cancellations', 'a frame that never ends')
BROKEN = ('a frame that never ends', 'frames of 60 kB that hardly begin')  # no frames, so that CURVE cannot carry them
SENT = 2 * BOUND  # what libzmq would hold all of, and 20 or 32 times that where parts are small
SLOW = 4 << 20  # of messages, each of which is read and counted


class Victim:
    """A process whose memory is watched from now on."""

    def __init__(self, test, pid):
        self.test, self.pid, self.calm = test, pid, attack.memory_kb(pid, 'VmRSS')

    def grown(self):
        return (attack.memory_kb(self.pid, 'VmHWM') - self.calm) << 10

    def hold_against(self, *floods, wanted=0):
        """Until the floods have sent what would be far more than the bound."""
        name, begin = ', '.join(sorted({f.attack for f in floods})), time.monotonic()
        wanted = wanted or (SLOW if floods[0].attack.startswith('messages') or 'one by one' in floods[0].attack else SENT)
        for flood in floods:
            flood.wait_sent(wanted // len(floods), lambda: self.grown() < 8 * BOUND)
        for flood in floods:
            flood.open = False
        for flood in floods:
            flood.stop()
        sent, connections = sum(f.sent for f in floods), sum(f.connections for f in floods)
        print(f'{name}: {sent / 1e6:.1f} MB in {connections} connections, {time.monotonic() - begin:.1f} s: {self.grown() / 1e6:.1f} MB more', flush=True)
        self.test.assertLess(self.grown(), BOUND, name)


@harness.needs(harness.LOOK)
class Subscribers(harness.Case):
    """The agent."""

    def start(self, endpoint):
        self.server = FaultServer(self)
        self.server.behave = good(b'n: 1\n', 'ETag: "v1"\r\n')
        agent = Agent(self, self.config(self.server.url + '/web.yaml', '    interval: 1h\n', push=f'push:\n  - endpoint: "{endpoint}"\n'))
        agent.log.wait('published.*generation=1')
        return agent

    def push(self, agent):
        return json.loads(agent.get('/v1/status')[1])['push'][0]

    def test_an_agent_holds_little_of_a_publisher_that_never_ends(self):
        hostile = zmtp.Endpoint(self)
        agent = self.start(hostile.endpoint)
        victim = Victim(self, agent.pid)
        for name in PUBLISHED:
            with self.subTest(name):
                victim.hold_against(zmtp.Flood(self, hostile.reach, b'PUB', name))
        self.assertGreater(self.push(agent)['cuts'], 0)
        self.assertIn(f'pullet_push_cuts_total{{endpoint="{hostile.endpoint}"}}', agent.get('/metrics')[1])
        hostile.close()
        publisher = Publisher(self, int(hostile.endpoint.rsplit(':', 1)[1]))
        publisher.wait_subscribed()
        agent.refresh()
        self.server.behave = good(b'n: 2\n', 'ETag: "v2"\r\n')
        publisher.send(b'web', {'v': 1, 'epoch': 'e', 'seq': 1})
        agent.log.wait('published.*generation=2')
        agent.stop()


@harness.needs(harness.LOOK)
class Publishers(harness.Case):
    """`pullet serve`, `publish`, and a relay's downstream side; their subscribers are hostile."""

    def start_serve(self, *args):
        self.program, _, self.endpoint = self.serve(*args)
        return Victim(self, self.program.pid)

    def flood(self, name, keys=None):
        return zmtp.Flood(self, zmtp.reach(self.endpoint), b'SUB', name, keys)

    def try_all(self, victim, attacks=tuple(zmtp.ATTACKS), keys=None, peers=1):
        """keys: within CURVE, where a part has 35 bytes or more around it."""
        for name in attacks:
            if keys and name in BROKEN:
                continue
            with self.subTest(name):
                wanted = max(2 * BOUND // GROWTH.get(name, 1), 1 << 16)
                victim.hold_against(*(self.flood(name, keys) for _ in range(peers)), wanted=min(2 * wanted, SLOW) if keys else wanted)

    def honest(self, keys=None):
        """A subscriber of libzmq's, which has heard a heartbeat."""
        s = zmq.Context.instance().socket(zmq.SUB)
        self.addCleanup(s.close, 0)
        if keys:
            s.curve_serverkey, s.curve_publickey, s.curve_secretkey = keys
        s.subscribe(b'')
        s.connect(self.endpoint)
        self.assertTrue(s.poll(harness.DEADLINE * 1000), 'no heartbeat')
        return s

    def change(self, subscriber, keys=None):
        """What is changed now is told to who was there all the time, and to who comes."""
        for s in (subscriber, self.honest(keys)):
            self.changes += 1
            self.write(f'www/web{self.changes}.yaml', f'n: {self.changes}\n')
            deadline = time.monotonic() + harness.DEADLINE
            while s.recv_multipart()[0] != b'web%d' % self.changes:
                self.assertLess(time.monotonic(), deadline)

    def setUp(self):
        super().setUp()
        self.changes = 0

    def test_serve_holds_little_of_a_subscriber_that_never_ends(self):
        victim = self.start_serve('--heartbeat', '200ms')
        subscriber = self.honest()
        self.try_all(victim)
        for why in ('several parts', 'no subscription', 'too long', 'more memory than there is'):
            self.program.log.wait('a subscriber was cut off.*' + why)
        self.change(subscriber)

    def test_nor_of_one_within_curve(self):
        public, secret = zmq.curve_keypair()
        self.write('secret.key', secret.decode() + '\n')
        os.chmod(self.path('secret.key'), 0o600)
        mine = zmq.curve_keypair()
        victim = self.start_serve('--heartbeat', '200ms', '--curve-secret-key', self.path('secret.key'))
        subscriber = self.honest((public, *mine))
        keys = [z85.decode(k) for k in (public, *mine)]
        self.try_all(victim, (*SUBSCRIBED, 'parts of 4 kB', 'topics by commands', 'one topic', 'pings'), keys=keys)
        self.try_all(victim, ('parts of no bytes', 'topics that branch'), keys=keys, peers=20)
        for why in ('several parts', 'no subscription', 'more memory than there is'):
            self.program.log.wait('a subscriber was cut off.*' + why)
        self.change(subscriber, (public, *mine))

    def test_nor_of_a_hundred(self):
        for name in ('whole messages of 30,000 empty parts', 'topics of 7 bytes', 'topics that branch', 'topics, and away', 'one topic'):
            victim = self.start_serve('--heartbeat', '200ms')
            subscriber = self.honest()
            self.try_all(victim, (name,), peers=100)
            self.change(subscriber)
            self.program.close()

    def test_nor_does_publish(self):
        port = free_ports(1)[0]
        self.endpoint = f'tcp://127.0.0.1:{port}'
        self.program = harness.Program([harness.PULLET, 'publish', 'nobody', '--timeout', '10m', '--endpoint', self.endpoint])
        self.addCleanup(self.program.close)
        self.until(lambda: self.listens(port), 'it listens')
        self.try_all(Victim(self, self.program.pid), SUBSCRIBED)
        self.program.log.wait('a subscriber was cut off')
        s = zmq.Context.instance().socket(zmq.SUB)
        self.addCleanup(s.close, 0)
        s.subscribe(b'nobody')
        s.connect(self.endpoint)
        self.assertEqual(self.program.wait(), 0)
        self.assertEqual(s.recv_multipart()[0], b'nobody')

    def listens(self, port):
        with contextlib.suppress(OSError), socket.create_connection(('127.0.0.1', port)):
            return True
        return False

    def relay(self, *args):
        os.makedirs(self.path('www'))
        self.program = Relay(self, '--dir', self.path('www'), *args)
        self.endpoint = self.program.endpoint
        subscriber = self.honest()
        return Victim(self, self.program.pid), subscriber

    def test_nor_does_a_relay(self):
        victim, subscriber = self.relay()
        self.try_all(victim, SUBSCRIBED)
        self.program.log.wait('a subscriber was cut off')
        self.change(subscriber)
        self.program.stop()

    def test_nor_of_a_publisher_above_it(self):
        hostile = zmtp.Endpoint(self)
        victim, subscriber = self.relay('--upstream', hostile.endpoint)
        for name in ('parts of 1 byte', 'parts of no bytes', 'parts of no bytes, and an end now and then', 'messages of no bytes'):
            with self.subTest(name):
                victim.hold_against(zmtp.Flood(self, hostile.reach, b'PUB', name), wanted=4 * BOUND // GROWTH[name])
        hostile.close()
        self.change(subscriber)
        self.program.stop()


if __name__ == '__main__':
    harness.main()
