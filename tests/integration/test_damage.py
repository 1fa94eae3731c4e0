"""State files that a disk has damaged, directories that somebody removes, and files that are published while others read them.

Each byte of the newest state file is changed, and it is cut at each 64th: the next start, whose server is down, publishes the version before, says
so, and sets the file aside; never is any of it accepted, never does the agent crash. And nothing that readers have is ever written in place: strace
sees no O_TRUNC, no truncation and no shared mapping for writing but that of the control page, and a reader's mapping is as it was after many swaps.

PULLET_TEST_POINTS: how many damaged files (24), `all` for `make torture`: 4,096, and 1,000 swaps instead of 50.
"""
import concurrent.futures
import mmap
import os
import random
import re
import shutil
import signal
import subprocess

import harness
from harness import PULLETD, Program
from test_calls import Flaw, World

POINTS = os.environ.get('PULLET_TEST_POINTS', '24')
ALL, SWAPS = (4096, 1000) if POINTS == 'all' else (int(POINTS), 50)
CALLS = 'openat,?open,?openat2,?creat,?truncate,?ftruncate,?fallocate,mmap,?mprotect'


def damages(data):
    """What becomes of a file: one byte of it is another one, each in turn, or its end is missing."""
    chooser = random.Random(int(os.environ.get('PULLET_SEED', '1')))
    cuts = [data[:n] for n in range(0, len(data), 64)]
    changed = []
    while len(changed) < ALL - len(cuts):
        at = len(changed) % len(data) if ALL > len(data) else chooser.randrange(len(data))
        changed.append(data[:at] + bytes([data[at] ^ chooser.randrange(1, 256)]) + data[at + 1:])
    return (cuts + changed)[:ALL] if ALL >= len(data) else chooser.sample(cuts, min(len(cuts), ALL // 4)) + changed[:ALL * 3 // 4]


def writes_in_place(trace):
    """The lines of a trace that write where readers may be, but for the control page."""
    return [line for line in trace.splitlines() if re.search(r'O_TRUNC|^(creat|f?truncate|fallocate)\(', line)
            or (re.search(r'^mmap\(.*PROT_WRITE.*MAP_SHARED\b', line) and not re.search(r'\.gen>|MAP_ANONYMOUS', line))]


@harness.needs('files in memory')
class Damage(harness.Case):
    def start_with(self, world, data, name):
        """What a start says that finds this as its newest state file, beside a server that is down."""
        place = world.path('state/web')
        shutil.rmtree(place)
        shutil.copytree(world.path('kept'), place)
        with open(os.path.join(place, name), 'wb') as f:
            f.write(data)
        shutil.rmtree(world.path('run'))  # after a boot: what readers still have is not replaced by an older version
        world.down = True
        done = subprocess.run([PULLETD, '-c', world.path('pullet.yaml'), '--once'], capture_output=True, text=True, timeout=harness.DEADLINE, check=False)
        world.down = False
        return done.returncode, done.stderr, world.look('web'), os.listdir(place)

    def check(self, world, data, name, older):
        status, said, visible, files = self.start_with(world, data, name)
        if status < 0 or 'damaged' not in said or visible != older or name in files or name + '.bad' not in files:
            raise Flaw(f'{len(data)} bytes: status {status}, version {visible} instead of {older}, {sorted(files)}: {said}')

    def spoil(self, part):
        """A share of all damages, with an agent of its own."""
        world = World(self, memory=True)
        world.agent.stop()
        shutil.copytree(world.path('state/web'), world.path('kept'))
        name = max(f for f in os.listdir(world.path('kept')) if f.isdigit())
        whole = world.read('kept/' + name)
        each = damages(whole)[part::4]
        for data in each:
            self.check(world, data, name, world.n - 1)
        status, said, visible, _ = self.start_with(world, whole, name)
        self.assertEqual((visible, 'damaged' in said, status >= 0), (world.n, False, True), said)
        with self.assertRaisesRegex(Flaw, 'instead of'):  # one that is accepted would be seen
            self.check(world, whole, name, world.n - 1)
        return len(each)

    def test_no_damaged_state_file_is_accepted(self):
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            count = sum(pool.map(self.spoil, range(4)))
        print(f'{count} damaged state files, 0 accepted')
        self.assertGreaterEqual(count, ALL * 3 // 4)


class Removed(harness.Case):
    @staticmethod
    def answers(world):
        try:
            return world.agent.status('web')
        except OSError:
            return None

    @harness.needs('files in memory')
    def test_directories_that_somebody_removes_are_made_again(self):
        for memory in (True, False):
            world = World(self, memory)
            for name in ('out', 'set', 'run', 'state/web', 'state'):
                with self.subTest(memory=memory, name=name):
                    world.hear()
                    os.rename(world.path(name), world.path('removed'))  # at once: it may be made again meanwhile
                    shutil.rmtree(world.path('removed'))
                    if name == 'run':
                        self.until(lambda: self.answers(world), 'the control socket is not made again')  # pylint: disable=cell-var-from-loop # called at once
                    world.next()
                    self.assertEqual((world.look('web'), world.look('set'), world.image('web')[0]), (world.n,) * 3)
                    self.assertEqual(world.saved('web'), world.agent.status('web')['generation'])
            world.agent.stop()


    def test_a_removed_state_is_saved_again_by_the_next_pull(self):
        world = World(self, False)
        agent = world.agent
        shutil.rmtree(world.path('state'))
        at = world.hear()
        agent.refresh()
        agent.log.wait('the current version is not in the state directory any more config=web', at)
        self.assertEqual(agent.status()['state'], 'failing')
        agent.refresh()
        self.assertEqual((agent.status()['state'], world.look('web')), ('ok', world.n))
        self.assertEqual(world.saved('web'), agent.status()['generation'])
        agent.process.kill()
        agent.process.wait()
        os.remove(world.path('out/web.yaml'))
        world.down = True
        world.start().log.wait('started from the last known good config=web')
        self.assertEqual(world.look('web'), world.n)


class InPlace(harness.Case):
    @harness.needs(harness.LOOK)
    def test_nothing_is_written_in_place(self):
        world = World(self, memory=False)
        tracer = Program(['strace', '-f', '-y', '-qq', '-e', 'signal=none', '-e', f'trace={CALLS}', '-o', world.path('trace'), '-p', str(world.agent.pid)])
        world.hear()
        self.until(lambda: 'TracerPid:\t0' not in open(f'/proc/{world.agent.pid}/status', encoding='ascii').read(), 'strace does not attach')
        for _ in range(5):
            world.next()
        world.reload()
        tracer.signal(signal.SIGINT)
        tracer.log.drain()
        tracer.close()
        trace = re.sub(r'^\d+ +', '', world.read('trace').decode(), flags=re.M)
        self.assertIn('O_EXCL', trace)
        self.assertEqual(writes_in_place(trace), [])
        world.agent.stop()

    def test_what_writes_in_place_is_found(self):
        for line in ('openat(3, "web.yaml", O_WRONLY|O_TRUNC) = 4', 'ftruncate(4, 0) = 0', 'mmap(NULL, 4096, PROT_READ|PROT_WRITE, MAP_SHARED, 4</run/web.snap>, 0) = 0x1'):
            self.assertEqual(writes_in_place(line), [line])
        self.assertEqual(writes_in_place('mmap(NULL, 4096, PROT_READ|PROT_WRITE, MAP_SHARED, 4</run/web.gen>, 0) = 0x1'), [])

    def test_a_mapping_is_as_it_was_after_many_swaps(self):
        world = World(self, memory=True)
        with open(world.path('run/web.snap'), 'rb') as f:
            before = f.read()
            mapped = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)
        with open(world.path('out/web.yaml'), 'rb') as text:
            for _ in range(SWAPS):
                world.n += 1
                world.agent.refresh('web')
                world.hear()
            self.assertEqual(text.read(), b''.join([b'number: 2\n'] + [b'line%d: 2\n' % i for i in range(20)]))
        self.assertEqual(mapped[:], before)
        self.assertEqual(world.look('web'), world.n)
        self.assertNotEqual(world.read('run/web.snap'), before)
        mapped.close()
        world.agent.stop()


if __name__ == '__main__':
    harness.main()
