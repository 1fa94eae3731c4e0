"""kill -9 of the agent during a stream of updates, with readers in a tight loop: never a torn, missing or empty file, no temporary file after the
next start, generations that only go up. A seeded bug (a publisher that writes in place) must be caught by the same readers."""
import os
import random
import signal
import tempfile
import threading

import harness
from harness import Agent, FaultServer, good

KILLS = int(os.environ.get('PULLET_TEST_KILLS', '20' if harness.SANITIZED else '200'))


def document(n):
    """Each line names the version: a mixture of two is seen."""
    return b'n: %d\n' % n + b''.join(b'line%d: %d\n' % (i, n) for i in range(400))


def flaw(data, floor):
    """What is wrong with what a reader saw, or None."""
    if not data:
        return 'empty'
    words = data.split()
    if len(words) != 802 or len(set(words[1::2])) != 1:
        return 'torn'
    return 'went back' if int(words[1]) < floor[0] else None


class Readers:
    def __init__(self, path, count=2):
        self.path, self.reads, self.flaws, self.stopping = path, 0, [], threading.Event()
        self.threads = [threading.Thread(target=self._read, daemon=True) for _ in range(count)]

    def __enter__(self):
        for t in self.threads:
            t.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        for t in self.threads:
            t.join()

    def _read(self):
        floor, whole = [0], None
        while not self.stopping.is_set():
            try:
                with open(self.path, 'rb') as f:
                    data = f.read()
            except FileNotFoundError:
                self.flaws.append('missing')
                continue
            if data == whole:
                self.reads += 1
                self.stopping.wait(0.001)  # the other reader looks meanwhile, and the agent gets on
                continue
            wrong = flaw(data, floor)
            if wrong:
                self.flaws.append(wrong)
            else:
                floor[0], whole = int(data.split(None, 2)[1]), data
            self.reads += 1


class Crash(harness.Case):
    def temporaries(self):
        return {f for d in ('out', 'state/web') for f in os.listdir(self.path(d)) if 'pullet-' in f}

    def kill_many(self, kills):
        server, n = FaultServer(self), [0]

        def next_version(connection, head, stopping):
            n[0] += 1
            return good(document(n[0]), f'ETag: "{n[0]}"\r\n')(connection, head, stopping)
        server.behave = next_version
        config = self.config(server.url + '/web.yaml', '    interval: 100ms\n')
        rng = random.Random(int(os.environ.get('PULLET_SEED', '1')))
        agent = Agent(self, config)
        agent.log.wait('published')
        agent.log.wait('started version')
        generations, left = [], 0
        with Readers(self.path('out/web.yaml')) as readers:
            for _ in range(kills):
                # as many pulls as fit, fired without waiting, until a random one of them is answered; then the kill
                wanted = n[0] + rng.randint(1, 4)
                while n[0] < wanted:
                    agent.post('/v1/configs/web/refresh')
                agent.signal(signal.SIGKILL)
                agent.wait()
                agent.close()
                stale = self.temporaries()
                left += len(stale)
                agent = Agent(self, config)
                line = agent.log.wait('last known good')
                agent.log.wait('started version')
                generations.append(int(line.split('generation=')[1].split()[0]))
                self.assertFalse(stale & self.temporaries())
        agent.stop()
        self.assertEqual(readers.flaws, [], f'{readers.reads} reads')
        self.assertGreater(readers.reads, kills)
        self.assertEqual(generations, sorted(generations))
        self.assertGreater(generations[-1], kills // 2)
        print(f'{kills} kills, {readers.reads} reads, {left} temporary files left by them and removed, {generations[-1]} generations')

    def test_on_disk(self):
        self.kill_many(KILLS)

    @harness.needs('files in memory')
    def test_on_tmpfs(self):
        disk = self.dir
        with tempfile.TemporaryDirectory(dir=harness.memory(), prefix='pullet-test-') as memory:
            self.dir = memory
            self.kill_many(KILLS)
            self.dir = disk

    def test_the_readers_catch_a_publisher_that_writes_in_place(self):
        path = self.path('web.yaml')
        self.write('web.yaml', document(1))
        with Readers(path) as readers:
            for n in range(2, 20000):
                with open(path, 'r+b') as f:
                    f.truncate(0)
                    data = document(n)
                    f.write(data[:1000])
                    f.flush()
                    f.write(data[1000:])
                if readers.flaws:
                    break
        self.assertTrue(readers.flaws, 'the harness sees no torn file where there must be some')


if __name__ == '__main__':
    harness.main()
