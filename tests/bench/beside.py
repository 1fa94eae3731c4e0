#!/usr/bin/env python3
"""A small config beside a stream of changes of a document of 7 MB: how long the loop is held by one turn, and how much later the small one's
changes are visible than alone. Everything lies in memory; the large document comes from a process of its own, each change when the one before
is visible.

Usage: beside.py [CHANGES]

The agent runs with turns.so, which notes the processor time of each turn of its loop that takes more than 0.1 ms. Its threads have the nice
value -20, if that is allowed: they share the processors with each other as usual, and not with what else the machine does.
"""
import contextlib
import os
import random
import signal
import struct
import subprocess
import sys
import time

from place import Place, ROOT, quantile, target  # finds the next one

import harness

sys.path.insert(0, os.path.join(ROOT, 'lib', 'python'))
os.environ.setdefault('PULLET_LIBRARY', os.path.join(harness.BUILD, 'libpullet.so.0'))

import pullet
from test_push import Publisher

KEYS, VALUE = 90000, 64  # 7 MB
HELD_MS, LATER = 5, 3  # targets
GIVE_UP_S = 30


def be_first():
    """What is measured is the agent, not who measures."""
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))


def be_usual():
    """A child of that: its threads share the processors as they do elsewhere, but not with what else this machine does."""
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    with contextlib.suppress(PermissionError):
        os.nice(-20)


class Origin:
    """An HTTP server with one document, and a publisher of its changes."""

    def __init__(self, place, topic):
        self.server, self.publisher, self.topic, self.number = harness.FaultServer(place), Publisher(place), topic, 0

    def put(self, body):
        """Before the message, which change() sends."""
        self.number += 1
        self.server.behave = harness.good(body, f'ETag: "{self.number}"\r\n')

    def change(self):
        self.publisher.send(self.topic, {'v': 1, 'epoch': 'e', 'seq': self.number, 'version': str(self.number)})


def large(kind, change):
    if kind == 'json':
        return b'{"change": %d%s}' % (change, b''.join(b', "key%06d": "%s"' % (i, b'v' * VALUE) for i in range(KEYS)))
    return b'change: %d\n' % change + b''.join(b'key%06d: %s\n' % (i, b'v' * VALUE) for i in range(KEYS))


def wait_change(reader, number):
    """Until the snapshot shows it; milliseconds of the monotonic clock."""
    end = time.monotonic() + GIVE_UP_S
    while reader.get_int('change', 0) != number:
        if time.monotonic() > end:
            sys.exit('beside: a change was never visible')
        reader.wait(1)
    return time.monotonic_ns()


def stream(kind, snapshot):
    """The large document's process: says where it is, then changes it until it is ended."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())  # and with it goes what it wrote
    with Place() as place:
        origin = Origin(place, b'large')
        bodies = [large(kind, i) for i in (1, 2)]
        origin.put(bodies[0])
        print(origin.server.url, origin.publisher.endpoint, flush=True)
        origin.publisher.wait_subscribed(b'large')
        with pullet.open(snapshot, wait_first=True) as reader:
            for i in range(1, 1 << 30):
                wait_change(reader, (i - 1) % 2 + 1)
                print(i, flush=True)
                origin.put(bodies[i % 2])
                origin.change()


class Bench:
    def __init__(self, place, kind):
        self.place, self.small = place, Origin(place, b'small')
        self.snapshot = place.path('run/large.snap')
        self.stream = subprocess.Popen([sys.executable, __file__, 'stream', kind, self.snapshot], stdout=subprocess.PIPE, text=True, preexec_fn=be_usual)
        place.callback(self.end, self.stream)
        url, endpoint = self.stream.stdout.readline().split()
        self.small.put(b'change: 0\n')
        place.write('pullet.yaml', f'''
agent: {{state_dir: {place.path("state")}, runtime_dir: {place.path("run")}, log: {{level: warn}}}}
push: [{{endpoint: "{self.small.publisher.endpoint}"}}, {{endpoint: "{endpoint}"}}]
configs:
  small: {{url: "{self.small.server.url}/small.yaml", file: {place.path("small.yaml")}, interval: 1h, push_min_interval: 0s}}
  large: {{url: "{url}/large.{kind}", file: {place.path("large")}, interval: 1h, push_min_interval: 0s, timeout: 60s}}
''')

    @staticmethod
    def end(process):
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def start(self):
        env = dict(os.environ, LD_PRELOAD=os.path.join(harness.BUILD, 'bench', 'turns.so'), TURNS=self.place.path('turns'))
        agent = subprocess.Popen([harness.PULLETD, '-c', self.place.path('pullet.yaml')], env=env, preexec_fn=be_usual)
        self.place.callback(self.end, agent)
        self.agent = agent
        self.small.publisher.wait_subscribed(b'small')
        self.reader = self.place.enter_context(pullet.open(self.place.path('run/small.snap'), wait_first=True))

    def measure(self, changes):
        """Milliseconds from push to visible of changes at random moments."""
        later = []
        for _ in range(changes):
            time.sleep(random.uniform(0.003, 0.025))  # not a wait for anything: where in the stream it comes
            number = self.small.number
            self.small.put(b'change: %d\n' % number)
            begin = time.monotonic_ns()
            self.small.change()
            later.append((wait_change(self.reader, number) - begin) / 1e6)
        return later

    def turns(self):
        """(end in ns, ms of processor time) of the long turns of the loop up to now."""
        with open(self.place.path('turns'), 'rb') as f:
            return [(end, took / 1e6) for end, took in struct.iter_unpack('QQ', f.read())]


def run(kind, changes):
    with Place() as place:
        bench = Bench(place, kind)
        bench.start()
        bench.stream.stdout.readline()  # it is visible for the first time
        # stopped, the stream waits for nothing and sends nothing
        harness.send(bench.stream, signal.SIGSTOP)
        while bench.agent.poll() is None and busy(bench):
            pass
        alone = bench.measure(changes)
        harness.send(bench.stream, signal.SIGCONT)
        begin = time.monotonic_ns()
        beside = bench.measure(changes)
        seconds = (time.monotonic_ns() - begin) / 1e9
        held = [took for end, took in bench.turns() if end > begin] or [0.0]
        bench.end(bench.stream)
        published = len(bench.stream.stdout.read().split())
    return alone, beside, held, published / seconds


def busy(bench):
    """The agent's threads are at work."""
    before = [sum(ms for _, ms in harness.processor_ms(bench.agent.pid)) for _ in (1, time.sleep(0.1))]
    return before[1] > before[0] + 1


def main(changes):
    be_first()
    print(f'{changes} changes of a small config, alone and beside a stream of a document of 7 MB; push to visible, ms')
    print(f'{"":8}{"alone p50":>11}{"p99":>8}{"beside p50":>12}{"p99":>8}{"max":>8}{"large/s":>9}{"turns: max":>12}{"p99":>7}')
    for kind in ('yaml', 'json'):
        alone, beside, held, rate = run(kind, changes)
        print(f'{kind:8}{quantile(alone, .5):11.2f}{quantile(alone, .99):8.2f}{quantile(beside, .5):12.2f}{quantile(beside, .99):8.2f}{max(beside):8.2f}{rate:9.1f}'
              f'{quantile(held, 1):12.2f}{quantile(held, .99):7.2f}', flush=True)
        target(f'{kind}: the loop is held by one turn', quantile(held, 1), HELD_MS, 'ms')
        target(f'{kind}: p99 beside the stream to p50 alone', quantile(beside, .99) / quantile(alone, .5), LATER)


if __name__ == '__main__':
    if sys.argv[1:2] == ['stream']:
        stream(*sys.argv[2:])
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 250)
