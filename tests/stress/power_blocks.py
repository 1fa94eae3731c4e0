"""A power cut after each write to the disk: every beginning of what some publications wrote, and of the blocks between two flushes every subset,
or as many as PULLET_TEST_SUBSETS (16), drawn at random.

Usage: power_blocks.py [CASE...]     (ext4 xfs seeded; default: all, one after the other)

The file system lies on disk_log.py, durability is strict. Of each disk that there could have been, all that power_cut.py looks at is true: what
is there is whole, the agent starts while its server is down, nothing is older than what was answered before that write.

The seeded bug, which must be found: fsync does nothing below the state directory. Needs root, loop devices, FUSE and mkfs.
"""
import os
import signal
import subprocess
import unittest

import power_cut
from power_cut import Flaw, World, make_world
from power_disks import LoggedDisk

SUBSETS = int(os.environ.get('PULLET_TEST_SUBSETS', '16'))
ROUNDS = 2


class Blocks(World):
    def record(self):
        """Some publications and decisions; the moments at which each had been answered."""
        self.down, self.marks = False, []
        for config in self.configs.values():
            self.publish(config)
        self.decided.ask('refresh?wait=1')
        subprocess.run(['sync', '-f', self.disk.place], check=True)
        self.disk.ask('start')
        self.mark()
        for _ in range(ROUNDS):
            for config in self.configs.values():
                self.publish(config)
                self.mark()
            self.decided.step()
            self.mark()
        self.disk.copy('all')
        self.stop()

    def publish(self, config):
        config.offered = max(config.offered, config.version) + 1
        outcome = self.refresh(config.name)
        assert outcome['outcome'] in ('published', 'unchanged'), outcome
        config.see(int(outcome['version'].strip('"')), outcome['generation'])

    def mark(self):
        self.marks.append((self.disk.ask('length'), {config: config.visible() for config in self.configs.values()}, self.decided.visible()))

    def stop(self):
        self.agent.signal(signal.SIGKILL)
        self.agent.wait()
        self.agent.close()
        self.disk.unmount()

    def expect(self, upto):
        """What had been answered when so much had been written, and what was asked for then."""
        last = max(i for i, (length, _, _) in enumerate(self.marks) if length <= upto)
        _, visible, decided = self.marks[last]
        for config, then in visible.items():
            config.forget(then)
        self.decided.forget(decided)
        self.decided.pending = {self.marks[min(last + 1, len(self.marks) - 1)][2][0]}

    def try_disk(self, upto, which):
        self.disk.ask('restore', upto, which)
        self.expect(upto)
        self.recover(f'{upto} entries of the log, {which} of the last blocks')
        self.stop()
        self.cuts += 1

    def try_all(self):
        for first, end, blocks in self.disk.stretches:
            for upto in range(first, end + 1):
                self.try_disk(upto, 'all')
            subsets = 1 << blocks
            masks = range(subsets) if subsets <= SUBSETS else [self.random.randrange(subsets) for _ in range(SUBSETS)]
            for mask in masks if blocks else ():
                self.try_disk(end, hex(mask))


class PowerBlocks(unittest.TestCase):
    def try_all(self, kind, seeded=False):
        world = make_world(Blocks, self, kind, 'strict', LoggedDisk, '', seeded)
        world.record()
        world.try_all()
        flushes = len(world.disk.stretches) - 1
        print(f'{kind}: {world.cuts} disks after {world.marks[-1][0]} writes and flushes ({flushes}) of {len(world.marks) - 1} publications and decisions')

    def test_ext4(self):
        self.try_all('ext4')

    def test_xfs(self):
        self.try_all('xfs')

    def test_seeded(self):
        with self.assertRaisesRegex(Flaw, 'went back|is lost|not whole|missing'):
            self.try_all('ext4', seeded=True)


if __name__ == '__main__':
    power_cut.main(PowerBlocks)
