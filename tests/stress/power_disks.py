"""File systems whose power can be cut, for power_cut.py: by their own shutdown, or by what a disk that remembers each write had then."""
import fcntl
import json
import os
import struct
import subprocess
import sys

SHUTDOWN = 0x8004587d  # _IOR('X', 125, __u32): the same number, with the same flags, of ext4 and of XFS
FLAGS = {'with its journal': 1, 'at once': 2}
BYTES = {'ext4': 64 << 20, 'xfs': 300 << 20}  # mkfs.xfs makes none that is smaller


def run(*args):
    return subprocess.run(args, check=True, capture_output=True, text=True).stdout


class Disk:
    """A file system in an image in memory, shut down."""
    ways = list(FLAGS)

    def __init__(self, test, kind, world, options=''):
        self.kind, self.image, self.place, self.mounted = kind, world.path('image'), world.path('disk'), False
        self.options = 'loop' + (',' + options if options else '')
        os.mkdir(self.place)
        self.make_image(test, world)
        run('mkfs.' + kind, '-q', self.image)
        test.addCleanup(self.unmount)
        self.mount()

    def make_image(self, _test, _world):
        run('truncate', '-s', str(BYTES[self.kind]), self.image)

    def mount(self):
        run('mount', '-o', self.options, self.image, self.place)
        self.mounted = True

    def unmount(self):
        if self.mounted:
            run('umount', self.place)
            self.mounted = False

    def copy(self, how):
        """What is there at this moment is what stays. Nothing where the shutdown does that."""

    def cut(self, how):
        """Nothing is written any more."""
        fd = os.open(self.place, os.O_RDONLY)
        try:
            fcntl.ioctl(fd, SHUTDOWN, struct.pack('I', FLAGS[how]))
        finally:
            os.close(fd)

    def restore(self):
        """Of a copy: it is what is there now."""


class LoggedDisk(Disk):
    """The same on disk_log.py. What it had at a moment comes back: all that was written, what was flushed, or that and a part of the rest."""
    ways = ['all', 'none', 'a part']

    def make_image(self, test, world):
        place = world.path('log')
        os.mkdir(place)
        self.image, self.cuts, self.how = place + '/IMAGE', 0, None
        self.log = subprocess.Popen([sys.executable, os.path.join(os.path.dirname(__file__), 'disk_log.py'), place, str(BYTES[self.kind])],
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        test.addCleanup(self.end_log, place)
        if self.log.stdout.readline() != 'ready\n':
            raise subprocess.CalledProcessError(1, ['mount'], stderr='no FUSE here')

    def end_log(self, place):
        run('umount', place)
        self.log.stdin.close()
        self.log.wait()
        self.log.stdout.close()

    def ask(self, *words):
        self.log.stdin.write(' '.join(map(str, words)) + '\n')
        self.log.stdin.flush()
        return json.loads(self.log.stdout.readline())

    def copy(self, how):
        self.cuts += 1
        self.how = f'part-{self.cuts}' if how == 'a part' else how
        self.stretches = self.ask('save')

    def cut(self, how):
        super().cut('at once')

    def restore(self):
        self.ask('restore', self.stretches[-1][1], self.how)
