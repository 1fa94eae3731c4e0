"""What one peer of the push channel can make the other side hold: messages, parts and subscriptions without end, by a hand-made peer (zmtp.py).

Each attack sends many times what would be the bound if it were kept; the victim's memory (VmHWM, the highest it ever was) grows by less than
the bound all the same, and afterwards an honest peer is served as before.
"""
import json
import socket
import threading
import time

import attack
import harness
import zmq
import zmtp
from harness import Agent, FaultServer, good
from test_push import Publisher

BOUND = 16 << 20  # bytes, of one peer
# bytes in memory for one that is sent, where nothing bounds it
GROWTH = {'parts of 1 byte': 20, 'parts of no bytes': 32, 'parts of no bytes, and an end now and then': 32, 'parts of 40 bytes, one by one': 400, 'messages of no bytes': 32, 'messages of 1 byte': 20,
          'topics of 7 bytes': 20, 'topics of 31 bytes': 8, 'topics of 290 bytes': 2, 'topics of 240 bytes that have nothing in common': 28, 'topics that branch': 200, 'topics by commands': 6,
          'topics that are taken back': 3, 'one topic': 20, 'all topics, again and again': 32, 'cancellations': 12, 'pings': 8, 'whole messages of 30,000 empty parts': 32,
          'a frame that never ends': 1, 'frames of 60 kB that hardly begin': 4000}
PUBLISHED = ('parts of 60 kB', 'parts of 4 kB', 'parts of 200 bytes', 'parts of 1 byte', 'parts of no bytes', 'parts of 40 bytes, one by one', 'parts of no bytes, and an end now and then',
             'messages of no bytes', 'messages of 1 byte', 'whole messages of 30,000 empty parts', 'a frame that never ends')
BROKEN = ('a frame that never ends', 'frames of 60 kB that hardly begin')  # no frames, so that CURVE cannot carry them
SEALED = 24  # fewer in memory for one that is sent: each part has 35 bytes or more around it
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
    """The agent, and a relay's upstream side."""

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

    def try_all(self, victim, keys=None):
        for name in zmtp.ATTACKS:
            if keys and name in BROKEN:
                continue
            with self.subTest(name):
                victim.hold_against(self.flood(name, keys), wanted=max(2 * BOUND // GROWTH.get(name, 1), 1 << 16))

    def honest(self, **curve):
        """A subscriber of libzmq's, which waits for the next change."""
        s = zmq.Context.instance().socket(zmq.SUB)
        self.addCleanup(s.close, 0)
        for name, key in curve.items():
            setattr(s, name, key)
        s.subscribe(b'')
        s.connect(self.endpoint)
        self.assertTrue(s.poll(harness.DEADLINE * 1000), 'no heartbeat')
        return s

    def test_serve_holds_little_of_a_subscriber_that_never_ends(self):
        victim = self.start_serve('--heartbeat', '200ms')
        subscriber = self.honest()
        self.try_all(victim)
        for why in ('several parts', 'no subscription', 'too long', 'more memory than there is'):
            self.program.log.wait('a subscriber was cut off.*' + why)
        self.change(subscriber)

    def change(self, subscriber):
        """What is changed now is told to who was there all the time, and to who comes."""
        for s in (subscriber, self.honest()):
            self.n = getattr(self, 'n', 0) + 1
            self.write(f'www/web{self.n}.yaml', f'n: {self.n}\n')
            deadline = time.monotonic() + harness.DEADLINE
            while s.recv_multipart()[0] != b'web%d' % self.n:
                self.assertLess(time.monotonic(), deadline)


if __name__ == '__main__':
    harness.main()
