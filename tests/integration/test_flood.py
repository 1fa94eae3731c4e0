"""Floods of messages: what they cost the configuration server, and what they must not cost anybody: a true change, an order, an interval, a neighbour.

Each kind of flood has an agent, a publisher and ten configs of its own, and all run at the same time, beside an agent that nobody floods: what
a change takes there is what it takes on this machine now.
"""
import collections
import os
import statistics
import threading
import time

import harness
from harness import Agent, Corner
from servers.wire import Wire, counted, head
from test_push import Publisher

SECONDS = 4.0
NAMES = [f'c{i}' for i in range(10)]
RATE = 60  # requests a second and agent, at most
VISIBLE = .2  # seconds: a true change, in the middle of a flood
FLOOR = 1  # seconds: no hint waits longer than that (agent/push/floor.h)
PUSH_SPREAD = 1  # seconds: of the flood that would cut it short


def plain(n):
    return [b'%s' % NAMES[n % 10].encode()]


def envelope(n, **more):
    return [NAMES[n % 10].encode(), {'v': 1, 'epoch': 'e', 'seq': n, **more}]


FLOODS = {
    'nothing': None,
    'bare topics': plain,
    'one topic': lambda n: [b'c0'],
    'messages in order': envelope,
    'promises of versions that never come': lambda n: envelope(n, version=f'never-{n}'),
    'the same promise again and again': lambda n: envelope(n, version='never'),
    'another epoch each time': lambda n: [NAMES[n % 10].encode(), {'v': 1, 'epoch': f'e{n}', 'seq': 1}],
    'gaps': lambda n: envelope(n * 10),
    'heartbeats of other epochs': lambda n: [b'pullet.heartbeat', {'v': 1, 'epoch': f'e{n}', 'seq': n}],
    'heartbeats with gaps': lambda n: [b'pullet.heartbeat', {'v': 1, 'epoch': 'e', 'seq': n * 10}],
    'heartbeats with a spread of an hour': lambda n: [b'pullet.heartbeat', {'v': 1, 'epoch': f'e{n}', 'seq': n, 'spread_ms': 3600000}],
    'a spread of 0': lambda n: envelope(n, spread_ms=0),
    'a spread of an hour': lambda n: envelope(n, spread_ms=3600000),
    'epochs and a spread of an hour': lambda n: [NAMES[n % 10].encode(), {'v': 1, 'epoch': f'e{n}', 'seq': 1, 'spread_ms': 3600000}],
    'what is no message': lambda n: [NAMES[n % 10].encode(), b'{"v": 1, "seq": "x'],
}


class Flood:
    """One agent, its publisher, its place at the server."""

    def __init__(self, test, kind, place, url, server):
        self.test, self.kind, self.make, self.place, self.server = test, kind, FLOODS[kind], place, server
        self.corner, self.lock, self.sent = Corner(test, f'a{place}'), threading.Lock(), 0
        self.publisher = Publisher(test)
        self.times, self.turn, self.over, self.spread = [], 0, threading.Event(), kind == 'a spread of 0'
        os.makedirs(self.corner.path('out'))
        configs = ''.join(f'  {n}: {{url: "{url}/{n}", type: yaml, file: {self.corner.path("out/" + n)}, interval: 1h'
                          f'{f", push_spread: {PUSH_SPREAD}s" if self.spread else ""}}}\n' for n in NAMES)
        self.agent = Agent(self.corner, f'agent: {{state_dir: {self.corner.path("state")}, runtime_dir: {self.corner.path("run")}, log: {{level: info}}}}\n'
                           f'push: [{{endpoint: {self.publisher.endpoint}}}]\nconfigs:\n{configs}')

    def send(self, frames):
        with self.lock:
            self.publisher.send(*frames)

    def begin(self):
        """Every config is there, every topic subscribed, and the pulls that the connection causes are over."""
        for name in NAMES:
            self.agent.log.wait(f'published config={name} ')
        topics = set()
        while len(topics) < 11:
            assert self.publisher.socket.poll(harness.DEADLINE * 1000), topics
            topics.add(self.publisher.socket.recv())
        for name in NAMES:
            self.agent.refresh(name)

    def run(self):
        """The flood, some thousand messages a second, in bursts."""
        n = 1
        while not self.over.wait(.004):
            for _ in range(4):
                if self.make:
                    self.send(self.make(n))
                n += 1
        self.sent = n

    def measure(self):
        """Changes, one config after the other, and how long each takes until its file shows it."""
        while not self.over.wait(.3):
            self.times.append(self.change_once())

    def change_once(self):
        """A change, told by a message like all others, but of that topic and, where the kind names one, of the true version. Seconds."""
        name, self.turn = NAMES[self.turn % 10], self.turn + 1
        version, frames = self.server.change(self.place, name), self.make(self.turn * 1000000) if self.make else []
        begin, wanted = time.monotonic(), b'version: %d\n' % version
        if len(frames) > 1 and isinstance(frames[1], dict):
            self.send([name.encode(), {**{k: v for k, v in frames[1].items() if k != 'spread_ms' or self.spread}, 'version': f'v{version}'}])
        else:
            self.send([name.encode()])
        while time.monotonic() - begin < 3:
            with open(self.corner.path('out/' + name), 'rb') as f:
                if f.read() == wanted:
                    break
            time.sleep(.001)
        return time.monotonic() - begin


class Documents(Wire):
    """/NAME at each place: a version, which change() makes newer; what was asked for is counted."""

    def __init__(self, test, places=1, pause=0, always=False):
        self.versions, self.asked = collections.Counter(), collections.Counter()
        self.pause, self.always = pause, always  # seconds for each answer; whether each answer is a new version
        super().__init__(test, self.document, places=places)

    def change(self, place, name):
        self.versions[place, name] += 1
        return self.versions[place, name]

    def document(self, ask):
        key = ask.place, ask.path.strip('/')
        self.asked[key] += 1
        if self.always:
            self.change(*key)
        tag = f'"v{self.versions[key]}"'
        if ask.headers.get('if-none-match') == tag:
            return [self.pause, head(f'ETag: {tag}', status='304 Not Modified')]
        return [self.pause, counted(b'version: %d\n' % self.versions[key], f'ETag: {tag}')]

    def count(self, place):
        return sum(n for (p, _), n in self.asked.items() if p == place)


class Floods(harness.Case):
    def test_no_flood_costs_many_requests_or_hides_a_change(self):
        server = Documents(self, len(FLOODS))
        floods = [Flood(self, kind, i, server.urls[i], server) for i, kind in enumerate(FLOODS)]
        for flood in floods:
            flood.begin()
        before = [server.count(i) for i in range(len(floods))]
        begin = time.monotonic()
        threads = [threading.Thread(target=target) for flood in floods for target in (flood.run, flood.measure)]
        for thread in threads:
            thread.start()
        time.sleep(SECONDS)  # of floods: what is tested
        took, asked = time.monotonic() - begin, [server.count(i) - before[i] for i in range(len(floods))]
        for flood in floods:
            flood.over.set()
        for thread in threads:
            thread.join(harness.DEADLINE)
        calm = statistics.median(floods[0].times)
        lines, bad = [], []
        for flood, requests in zip(floods, asked):
            median = statistics.median(flood.times)
            line = f'{flood.kind}: {flood.sent} messages, {requests / took:.0f} requests a second, {len(flood.times)} changes, median {median * 1000:.1f} ms, worst {max(flood.times) * 1000:.0f} ms'
            lines.append(line)
            if requests - len(flood.times) > RATE * took:  # a change is worth a request
                bad.append('too many requests: ' + line)
            spread = PUSH_SPREAD if flood.spread else 0
            if median > spread + VISIBLE + 5 * calm:
                bad.append('a change comes late: ' + line)
            if spread and requests - len(flood.times) > 40 * took:  # ten windows that last half of it on average make 20
                bad.append('a message cuts push_spread short: ' + line)
            after = flood.change_once()
            if after > spread + FLOOR + VISIBLE + 5 * calm:
                bad.append(f'{after * 1000:.0f} ms for a change when the flood is over: ' + line)
            flood.agent.stop()
        print('\n'.join(lines), flush=True)
        self.assertFalse(bad, '\n  ' + '\n  '.join(bad) + '\nof\n  ' + '\n  '.join(lines))


class Single(harness.Case):
    def start(self, names, server, more='', config='interval: 1h', limit=8):
        os.makedirs(self.path('out'))
        self.publisher = Publisher(self)
        configs = ''.join(f'  {n}: {{from: [{{server: main, path: /{n}}}], type: yaml, file: {self.path("out/" + n)}, {config}}}\n' for n in names)
        agent = Agent(self, f'agent: {{state_dir: {self.path("state")}, runtime_dir: {self.path("run")}}}\npush: [{{endpoint: {self.publisher.endpoint}}}]\n'
                      f'servers: {{main: {{urls: ["{server.url}"], max_in_flight: {limit}}}}}\nconfigs:\n{configs}{more}')
        for name in names:
            agent.log.wait(f'published config={name} ')
        topics = set()
        while len(topics) < len(names) + 1:
            self.assertTrue(self.publisher.socket.poll(harness.DEADLINE * 1000))
            topics.add(self.publisher.socket.recv())
        return agent

    def test_a_flood_as_fast_as_it_can_be_of_many_configs_is_bounded_for_the_agent(self):
        server, names = Documents(self), [f'c{i}' for i in range(40)]
        agent = self.start(names, server)
        agent.refresh(names[0])
        before, begin, n = server.asks, time.monotonic(), 0
        while time.monotonic() - begin < SECONDS:
            for name in names:
                self.publisher.send(name.encode())
                n += 1
        rate = (server.asks - before) / (time.monotonic() - begin)
        print(f'{n} messages for 40 configs: {rate:.0f} requests a second', flush=True)
        self.assertLessEqual(rate, 2 * RATE, 'each config may have a pull at first')
        agent.stop()

    def test_an_order_is_not_bound_by_what_messages_are_bound_by(self):
        server = Documents(self)
        agent = self.start(['web'], server)
        over = threading.Event()

        def flood():
            n = 0
            while not over.wait(.002):
                n += 1
                self.publisher.send(b'web', {'v': 1, 'epoch': 'e', 'seq': n})
        thread = threading.Thread(target=flood)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(over.set)
        took = []
        for _ in range(30):
            version, begin = server.change(0, 'web'), time.monotonic()
            agent.refresh('web')
            took.append(time.monotonic() - begin)
            self.assertEqual(self.read('out/web'), b'version: %d\n' % version, 'what stands after a refresh is what was there before it')
        over.set()
        thread.join()
        calm = []
        for _ in range(30):
            begin = time.monotonic()
            agent.refresh('web')
            calm.append(time.monotonic() - begin)
        self.assertLess(statistics.median(took), .05 + 5 * statistics.median(calm))
        agent.stop()

    def test_a_spread_of_an_hour_puts_no_interval_off(self):
        server, names = Documents(self), ['a', 'b', 'c']
        agent = self.start(names, server, config='interval: 300ms, jitter: 0%')
        for kind in ('a message', 'a heartbeat', 'an epoch'):
            before, begin, n = server.asked.copy(), time.monotonic(), 0
            while time.monotonic() - begin < 2.4:
                n += 1
                more = {'v': 1, 'epoch': f'{kind}{n}' if kind != 'a message' else 'e', 'seq': n, 'spread_ms': 3600000}
                for name in names if kind != 'a heartbeat' else ['pullet.heartbeat']:
                    self.publisher.send(name.encode(), more)
                time.sleep(.05)
            pulls = {name: server.asked[0, name] - before[0, name] for name in names}
            self.assertGreaterEqual(min(pulls.values()), 6, f'{kind}: of 8 intervals: {pulls}')
        # one message, and then nothing more
        for name in names:
            self.publisher.send(name.encode(), {'v': 1, 'epoch': 'last', 'seq': 1, 'spread_ms': 3600000})
        before = server.asked.copy()
        server.wait(lambda: all(server.asked[0, n] > before[0, n] + 2 for n in names), 'the intervals after a message', 10)
        agent.stop()

    def test_a_spread_that_comes_during_a_refresh_does_not_put_it_off(self):
        server = Documents(self, pause=.02)
        agent = self.start(['a', 'b'], server, limit=1)
        took = []
        for n in range(15):
            version = server.change(0, 'a')
            self.publisher.send(b'b')  # the only slot is taken
            thread = threading.Thread(target=lambda: took.append((time.monotonic(), agent.refresh('a'), time.monotonic())))
            thread.start()
            for m in range(5):
                self.publisher.send(b'a', {'v': 1, 'epoch': f'e{n}', 'seq': m, 'spread_ms': 3600000})
            thread.join()
            begin, outcome, end = took[-1]
            self.assertLess(end - begin, 2, outcome)
            self.assertEqual(self.read('out/a'), b'version: %d\n' % version)
        self.assertLess(statistics.median(end - begin for begin, _, end in took), .5)
        agent.stop()

    def test_a_spread_shortens_a_wait_that_would_be_longer(self):
        server = Documents(self)
        agent = self.start(['web'], server)  # the interval is an hour
        agent.refresh('web')
        version = server.change(0, 'web')
        self.publisher.send(b'web', {'v': 1, 'epoch': 'x', 'seq': 1, 'spread_ms': 500})
        agent.log.wait(f'published config=web .*version=v{version}\\b', timeout=5)
        agent.stop()

    def test_twenty_configs_in_line_for_one_slot_each_get_their_share(self):
        names = [f'c{i:02}' for i in range(20)]
        server = Documents(self, pause=.015, always=True)
        agent = self.start(names, server, config='interval: 100ms', limit=1)
        for kind, more in (('at once', {}), ('in an hour', {'spread_ms': 3600000})):
            before, begin, n = server.asked.copy(), time.monotonic(), 0
            while time.monotonic() - begin < 4:
                n += 1
                # five of them are told ten times as often: who is told more waits no longer, and no shorter
                self.publisher.send(names[n % 5 if n % 4 else n // 4 % 20].encode(), {'v': 1, 'epoch': 'e', 'seq': n, **more})
                if n % 10 == 0:
                    time.sleep(.001)
                    agent.log._more(time.monotonic() + .001)
            pulls = [server.asked[0, name] - before[0, name] for name in names]
            share = sum(pulls) / len(pulls)
            print(f'{kind}: {n} messages, {sum(pulls)} pulls, {min(pulls)} to {max(pulls)} each', flush=True)
            self.assertGreater(share, 5)
            # whole pulls: one that is under way or in line at the ends counts for neither
            self.assertGreaterEqual(min(pulls) + 1, .9 * share, pulls)
        agent.stop()


if __name__ == '__main__':
    harness.main()
