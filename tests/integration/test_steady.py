"""Polls that find nothing new, one after the other: no descriptor, no block and no page more than before, and few allocations of the agent's own.

The real agent, whose clocks jump to the next poll (hour.c), and whose allocations are counted (allocations.c). Some thousand polls; as many as
PULLET_POLLS says.
"""
import mmap
import os
import struct
import subprocess
import threading

import harness
from harness import Agent, FaultServer

POLLS = int(os.environ.get('PULLET_POLLS', '2000'))
WARM = 300  # polls, after which every buffer has its size
OWN = 14  # allocations of the agent's code in one poll; libcurl makes more
WINDOWS = 4  # of so many polls; where a connection's blocks lie may cost a page in one
SPARE = 100  # blocks: those of a connection, which may be there or not


class Steady(harness.Case):
    @classmethod
    def setUpClass(cls):
        cls.libraries = []
        for name in ('hour', 'allocations'):
            library = os.path.join(harness.BUILD, name + '.so')
            source = os.path.join(os.path.dirname(os.path.abspath(__file__)), name + '.c')
            subprocess.run(['cc', '-shared', '-fPIC', '-O2', '-D_GNU_SOURCE', '-o', library, source], check=True)
            cls.libraries.append(library)

    def setUp(self):
        super().setUp()
        self.polls, self.condition = 0, threading.Condition()
        self.server = FaultServer(self)
        self.server.behave = self.answer
        self.write('counts', bytes(4096))
        with open(self.path('counts'), 'r+b') as f:
            self.counts = mmap.mmap(f.fileno(), 4096)
        self.addCleanup(self.counts.close)

    def answer(self, connection, head, _stopping):
        held = 'If-None-Match: "1"' in head
        connection.sendall(b'HTTP/1.1 304 Not Modified\r\nETag: "1"\r\n\r\n' if held else b'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nETag: "1"\r\n\r\na: 1\n')
        with self.condition:
            self.polls += held
            self.condition.notify_all()

    def after(self, polls):
        """What there is when so many have been answered in all."""
        with self.condition:
            self.assertTrue(self.condition.wait_for(lambda: self.polls >= polls, harness.DEADLINE + POLLS / 100), 'the agent does not poll')
            seen = self.polls
        own, live = struct.unpack_from('Qq', self.counts)
        with open(f'/proc/{self.agent.pid}/status', encoding='ascii') as f:
            rss = next(int(line.split()[1]) for line in f if line.startswith('RssAnon:'))
        return seen, own, live, rss, len(os.listdir(f'/proc/{self.agent.pid}/fd'))

    def test_nothing_grows_with_the_polls(self):
        self.agent = Agent(self, self.config(self.server.url + '/web.yaml', '    interval: 1s\n'), env={
            'LD_PRELOAD': ' '.join(self.libraries), 'ALLOCATIONS': self.path('counts'), 'HOUR_PATIENCE_MS': '1000'})
        begin, grown = self.after(WARM), []
        while len(grown) < WINDOWS and min(grown, default=1) > 0:
            end = self.after(begin[0] + POLLS)
            polls, own, live, rss, descriptors = (b - a for a, b in zip(begin, end))
            print(f'{polls} polls: {own / polls:.2f} allocations of its own in each; {live:+d} blocks, {rss:+d} kB, {descriptors:+d} descriptors')
            self.assertGreaterEqual(polls, POLLS)
            self.assertLessEqual(own / polls, OWN)
            self.assertLessEqual(live, SPARE)
            self.assertLessEqual(descriptors, 1)  # a connection may just be made
            begin, grown = end, grown + [rss]
        self.assertLessEqual(min(grown), 0)  # a leak grows in each
        self.agent.stop()


if __name__ == '__main__':
    harness.main()
