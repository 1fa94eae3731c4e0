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
import zmtp
from harness import Agent, FaultServer, good
from test_push import Publisher

BOUND = 16 << 20  # bytes, of one peer
# bytes in memory for one that is sent, where nothing bounds it
GROWTH = {'parts of 1 byte': 20, 'parts of no bytes': 32, 'parts of no bytes, and an end now and then': 32, 'parts of 40 bytes, one by one': 400, 'messages of no bytes': 32, 'messages of 1 byte': 20,
          'topics of 7 bytes': 20, 'topics of 31 bytes': 20, 'topics of 290 bytes': 20}
PUBLISHED = [name for name in zmtp.ATTACKS if not name.startswith('topics')]
SENT = 2 * BOUND  # what libzmq would hold all of, and 20 or 32 times that where parts are small
SLOW = 4 << 20  # of messages, each of which is read and counted


class Victim:
    """A process whose memory is watched from now on."""

    def __init__(self, test, pid):
        self.test, self.pid, self.calm = test, pid, attack.memory_kb(pid, 'VmRSS')

    def grown(self):
        return (attack.memory_kb(self.pid, 'VmHWM') - self.calm) << 10

    def hold_against(self, flood, peers=1):
        """Until the flood has sent what would be far more than the bound."""
        wanted = SLOW if flood.attack.startswith('messages') or 'one by one' in flood.attack else SENT
        begin = time.monotonic()
        flood.wait_sent(wanted, lambda: self.grown() < 8 * BOUND * peers)
        flood.stop()
        print(f'{flood.attack}: {flood.sent / 1e6:.1f} MB in {flood.connections} connections, {time.monotonic() - begin:.1f} s: '
              f'{self.grown() / 1e6:.1f} MB more', flush=True)
        self.test.assertGreaterEqual(flood.sent * GROWTH.get(flood.attack, 1), 2 * BOUND)
        self.test.assertLess(self.grown(), BOUND * peers, flood.attack)


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


if __name__ == '__main__':
    harness.main()
