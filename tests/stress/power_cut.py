"""Power cuts: an agent that publishes as fast as it can, on a file system of its own that is shut down at a random moment.

Usage: power_cut.py [CASE...]     (ext4_normal, xfs_copy_strict, seeded, ...: the tests below; default: all, one after the other)

The file system lies in an image in memory, on a loop device. EXT4_IOC_SHUTDOWN and XFS_IOC_GOINGDOWN end it, so that nothing reaches the image
any more; half of the times the journal is written before. In the cases "copy" the device remembers each write, and what comes back is what it had
at a random moment: all that was written, what was flushed, or that and a part of the rest. State directory, file, set of files and snapshot are all
on it. After each cut it is mounted again: what is there must be whole. Then an agent is started whose server is down: each config must stand on
nothing older than the newest version that a reader saw, or the agent told of, before the cut, and on no lower generation; where durability is strict,
pins, overrides and rollbacks that were answered are there. At last an older version comes, with a good signature and an old rev, and is refused.

The seeded bug, which must be found: fsync does nothing below the state directory.

PULLET_TEST_CUTS: how many (200). Needs root, loop devices and mkfs: what is missing is named, and the case is skipped.
"""
import contextlib
import http.client
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import unittest

import xxhash

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'integration'))
import harness  # noqa: E402
from harness import Agent, FaultServer, good  # noqa: E402
from versions import Flaw, document, number  # noqa: E402

from power_decided import Decided  # noqa: E402
from power_disks import Disk, LoggedDisk, run  # noqa: E402

CUTS = int(os.environ.get('PULLET_TEST_CUTS', '200'))
LINES = 100
SEEDED = r'''#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int fsync(int fd)
{
	char link[64], path[4096];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = '\0';
	return strstr(path, "/disk/state") ? 0 : ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(fd);
}
'''


def read(name, dir_fd=None):
    with open(os.open(name, os.O_RDONLY, dir_fd=dir_fd), 'rb') as f:
        return f.read()


class Config:
    """One config: what its server offers, and what was visible of it: (version, generation), both the highest."""

    def __init__(self, world, name):
        self.world, self.name, self.offered, self.version, self.generation = world, name, 1, 0, 0
        self.served, self.asked, self.lock = 0, set(), threading.Lock()

    def serve(self, document):
        """The version of a document that is asked for, None while the server is down: all documents of a pull are of one."""
        with self.lock:
            if document in self.asked or not self.asked:
                self.served, self.asked = None if self.world.down else self.offered, set()
            self.asked.add(document)
            if len(self.asked) == (1 if self.name == 'snapshot' else 2):
                self.asked = set()
            return self.served

    def visible(self):
        """To be forgotten after it what came later."""
        return self.version, self.generation

    def forget(self, visible):
        self.version, self.generation = visible

    def see(self, version, generation=0):
        self.version, self.generation = max(self.version, version), max(self.generation, generation)

    def look(self):
        """What a reader sees: (version, generation); the generation is 0 where nothing tells it."""
        path = self.world.disk.place
        if self.name == 'file':
            return number(read(path + '/out/file.yaml'), LINES), 0
        if self.name == 'set':
            link = os.readlink(path + '/set/..data')
            fd = os.open(f'{path}/set/{link}', os.O_RDONLY | os.O_DIRECTORY)
            try:
                both = {number(read(part, fd), LINES) for part in ('a.yaml', 'b.yaml')}
            finally:
                os.close(fd)
            if len(both) != 1:
                raise Flaw(f'a set of several versions: {both}')
            return both.pop(), int(re.match(r'\.\.(\d+)-', link)[1])
        data = read(path + '/run/snapshot.snap')
        if len(data) < 64 or struct.unpack_from('<Q', data, 8)[0] != xxhash.xxh64_intdigest(data[16:]):
            raise Flaw(f'a snapshot that is not whole: {len(data)} bytes')
        at = struct.unpack_from('<I', data, 60)[0]
        return int(data[at:data.index(b'\0', at)]), struct.unpack_from('<Q', data, 24)[0]

    def publish_on(self):
        """One version after the other, until the power is cut."""
        try:
            while True:
                self.offered = max(self.offered, self.version) + 1
                outcome = self.world.refresh(self.name)
                if outcome['outcome'] == 'published':
                    self.see(self.offered, outcome['generation'])
                    self.world.published += 1
        except (OSError, http.client.HTTPException, AssertionError, ValueError):
            if not self.world.is_cut.is_set():
                raise

    def read_on(self):
        while not self.world.is_cut.is_set():
            with contextlib.suppress(OSError, ValueError):  # of the moment in which the power is cut, or a set is replaced twice
                self.see(*self.look())
                self.world.reads += 1
            self.world.is_cut.wait(0.0005)  # the machine is shared by all


class World:
    path, write, read = harness.Case.path, harness.Case.write, harness.Case.read

    def __init__(self, test, kind, durability, disk=Disk, options='', seeded=False):
        self.test, self.addCleanup = test, test.addCleanup
        self.assertEqual, self.assertLess = test.assertEqual, test.assertLess  # for Agent
        self.dir = tempfile.mkdtemp(prefix='pullet-power-', dir=harness.memory())
        test.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.random = random.Random(int(os.environ.get('PULLET_SEED', '1')))
        self.disk = disk(test, kind, self, options)
        run('minisign', '-G', '-W', '-p', self.path('k.pub'), '-s', self.path('k.key'))
        self.env = {'LD_PRELOAD': self.make_seeded()} if seeded else None
        self.signatures, self.lock, self.down = {}, threading.Lock(), True
        self.server = FaultServer(test)
        self.server.behave = self.answer
        self.configs = {name: Config(self, name) for name in ('file', 'set', 'snapshot')}
        self.decided = Decided(self)
        self.is_cut, self.cuts, self.published, self.reads, self.ahead, self.strict = threading.Event(), 0, 0, 0, 0, durability == 'strict'
        self.text = self.settings(durability)
        self.agent = self.start()

    def make_seeded(self):
        self.write('seeded.c', SEEDED)
        run(*os.environ.get('CC', 'gcc').split(), '-shared', '-fPIC', '-o', self.path('seeded.so'), self.path('seeded.c'), '-ldl')
        return self.path('seeded.so')

    def settings(self, durability):
        disk, url, key = self.disk.place, self.server.url, self.read('k.pub').decode().split()[-1]
        every = f'interval: 1h, durability: {durability}'
        return f'''agent: {{state_dir: {disk}/state, runtime_dir: {disk}/run}}
servers: {{main: {{urls: ["{url}"]}}}}
configs:
  file: {{url: "{url}/file.yaml", file: {disk}/out/file.yaml, snapshot: false, verify: {{public_key: {key}}}, {every}}}
  set: {{from: [{{server: main, path: /set/a.yaml, as: a.yaml}}, {{server: main, path: /set/b.yaml, as: b.yaml}}], dir: {disk}/set, {every}}}
  snapshot: {{url: "{url}/snapshot.yaml", {every}}}
  decided: {{url: "{url}/decided.yaml", {every}}}
'''

    def sign(self, n):
        with self.lock:
            if n not in self.signatures:
                self.write('doc', document(n, LINES))
                run('minisign', '-S', '-s', self.path('k.key'), '-m', self.path('doc'), '-t', f'rev={n}')
                self.signatures[n] = self.read('doc.minisig')
            return self.signatures[n]

    def answer(self, connection, head, stopping):
        path = head.split()[1]
        name = re.match(r'/(\w+)', path)[1]
        n = (self.decided if name == 'decided' else self.configs[name]).serve(path)
        if n is None:
            return good(b'', status='503 Service Unavailable')(connection, head, stopping)
        body = self.sign(n) if '.minisig' in head else document(n, LINES)
        return good(body, f'ETag: "{n}"\r\n')(connection, head, stopping)

    def start(self):
        for config in self.configs.values():
            config.asked = set()
        agent = Agent(self, self.text, env=self.env)
        agent.socket = self.path('disk/run/control.sock')
        agent.ready()
        return agent

    def refresh(self, name):
        return self.agent.refresh(name)

    def cut(self):
        """Versions come and are read; then, at a random moment, the power is cut."""
        self.is_cut.clear()
        all_configs = [*self.configs.values(), self.decided]
        work = [work for config in all_configs for work in (config.publish_on, config.read_on)]
        flaws, threads = [], []

        def guard(job):
            try:
                job()
            except Exception as e:  # pylint: disable=broad-except # it is raised again
                flaws.append(e)
        for job in work:
            threads.append(threading.Thread(target=guard, args=(job,), daemon=True))
            threads[-1].start()
        self.is_cut.wait(0.02 + 0.3 * self.random.random())  # the random moment
        how = self.random.choice(self.disk.ways)
        visible = [config.visible() for config in all_configs]
        self.disk.copy(how)
        self.is_cut.set()
        self.disk.cut(how)
        self.agent.signal(signal.SIGKILL)
        self.agent.wait()
        for thread in threads:
            thread.join()
        self.agent.close()
        self.disk.unmount()
        self.disk.restore()
        for config, then in zip(all_configs, visible) if isinstance(self.disk, LoggedDisk) else ():
            config.forget(then)
        self.cuts += 1
        if flaws:
            raise flaws[0]
        return how

    def recover(self, how):
        """The power is there again, the server is not."""
        self.disk.mount()
        self.down, there = True, {}
        for name, config in self.configs.items():
            with contextlib.suppress(FileNotFoundError):
                there[name] = config.look()[0]
                self.ahead += there[name] < config.version
            if config.version and name != 'snapshot' and name not in there:
                raise Flaw(f'cut {self.cuts}, {how}: {name} is missing')
        self.agent = self.start()
        for name, config in self.configs.items():
            if not config.version:
                continue
            version, generation = config.look()
            generation = max(generation, self.agent.status(name)['generation'])
            if version < config.version or version < there.get(name, 0) or generation < config.generation:
                raise Flaw(f'cut {self.cuts}, {how}: {name} went back: version {version} of generation {generation} stands; visible were {config.version} of '
                           f'{config.generation}, and {there.get(name)} after the cut')
        flaw = self.decided.flaw(self.strict)
        if flaw:
            raise Flaw(f'cut {self.cuts}, {how}: {flaw}')

    def replay(self):
        """Somebody plays back a version that was good once."""
        config = self.configs['file']
        self.down = False
        if config.version < 2:
            return
        config.offered = config.version - 1
        outcome = self.refresh('file')
        if outcome['outcome'] != 'failed' or config.look()[0] < config.version:
            raise Flaw(f'cut {self.cuts}: an old version is taken again: {outcome}')

    def cut_often(self, cuts):
        self.down = False
        for _ in range(cuts):
            self.recover(self.cut())
            self.replay()
        self.agent.stop()
        self.disk.unmount()


def lacking():
    """What this needs and the machine has not; None when all is there."""
    if os.geteuid() != 0:
        return 'it needs root'
    for program in ('mount', 'mkfs.ext4', 'mkfs.xfs', 'minisign'):
        if not shutil.which(program):
            return f'it needs {program}: packaging/deps.sh --test installs it'
    if not harness.memory():
        return 'it needs files in memory: no tmpfs to write in, such as /dev/shm'
    return None


def make_world(world, test, kind, *args):
    why = lacking()
    if why:
        test.skipTest(why)
    try:
        return world(test, kind, *args)
    except subprocess.CalledProcessError as e:
        if e.cmd[0] == 'mount':
            test.skipTest(f'it needs a loop device with {kind}: {e.stderr.strip()}')
        raise


class PowerCut(unittest.TestCase):
    def cut_often(self, kind, durability, disk=Disk, options='', seeded=False):
        world = make_world(World, self, kind, durability, disk, options, seeded)
        world.cut_often(CUTS)
        print(f'{kind}, {durability}{", a copy of the disk" * (disk is LoggedDisk)}{", " * bool(options)}{options}: {world.cuts} cuts, {world.published} versions '
              f'published, {world.decided.done} decisions and {world.reads} reads before them; {world.ahead} times a file was older than what a reader saw, '
              f'until the next start')

    def test_ext4_normal(self):
        self.cut_often('ext4', 'normal')

    def test_ext4_strict(self):
        self.cut_often('ext4', 'strict')

    def test_xfs_normal(self):
        self.cut_often('xfs', 'normal')

    def test_xfs_strict(self):
        self.cut_often('xfs', 'strict')

    def test_ext4_eager(self):
        """Where a rename does not write the new file first by itself."""
        self.cut_often('ext4', 'normal', options='noauto_da_alloc')

    def test_ext4_eager_strict(self):
        self.cut_often('ext4', 'strict', options='noauto_da_alloc')

    def test_ext4_copy(self):
        self.cut_often('ext4', 'normal', LoggedDisk)

    def test_ext4_copy_strict(self):
        self.cut_often('ext4', 'strict', LoggedDisk, 'noauto_da_alloc')

    def test_xfs_copy(self):
        self.cut_often('xfs', 'normal', LoggedDisk)

    def test_xfs_copy_strict(self):
        self.cut_often('xfs', 'strict', LoggedDisk)

    def test_seeded(self):
        """An agent that leaves its state in memory is caught."""
        with self.assertRaisesRegex(Flaw, 'went back|taken again|is lost'):
            self.cut_often('ext4', 'normal', seeded=True)


def main(cases):
    """Runs the cases that the command line names, in mounts of their own."""
    # where nobody copies the mounts: a file system that somebody else still has in his namespace is not gone when it is unmounted here
    if not os.environ.get('PULLET_TEST_APART') and harness.unshare('mount')[0]:
        os.environ['PULLET_TEST_APART'] = '1'
        os.execvp('unshare', [*harness.unshare('mount')[0], sys.executable, *sys.argv])
    sys.argv[1:] = [f'{cases.__name__}.test_{case}' for case in sys.argv[1:]] or [cases.__name__]
    harness.main()


if __name__ == '__main__':
    main(PowerCut)
