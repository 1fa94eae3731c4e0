"""Each system call of a publication, a rollback, a reload and a start fails, once and for as long as it lasts, or is the agent's last one.

strace injects an error (or SIGKILL) into the n-th call of a name, on one thread of the real agent. Two configs are in every life: `web`, a text file
and a snapshot, and `set`, a set of files; both in memory, where the loop itself writes, or on a disk, where pullet-sync does.

After each error: file, set and snapshot are whole and of one of the two versions, the last known good verifies, no generation went back; what was not
done has a sentence. When the fault is over the same agent publishes the next version and has lost no descriptor and left no temporary file. A start
that cannot go on says why and ends; the next one goes on from the same version. After each kill all that holds for the agent that starts next, whose
server is down.

PULLET_TEST_POINTS: how many points of each life (8), `all` for `make torture`; PULLET_SEED chooses which; PULLET_TEST_POINT (an expression) has those
whose description fits.
"""
import concurrent.futures
import contextlib
import hashlib
import http.client
import os
import pathlib
import random
import re
import shutil
import signal
import struct
import tempfile

import xxhash

import harness
from harness import Agent, FaultServer, Program, good
from versions import Flaw, about, document, number

POINTS = os.environ.get('PULLET_TEST_POINTS', '8')
LINES = 20
KILL = 'KILL'
KEPT = 3  # directories of a set
# what each call can return; of openat and the like also for ever, which is how a full disk or a table of descriptors looks
ERRORS = {
    'openat': 'EIO ENOSPC EMFILE EINTR ENOMEM EDQUOT', 'openat2': 'EIO EMFILE EINTR ENOMEM', 'read': 'EIO EINTR ENOMEM', 'pread64': 'EIO EINTR ENOMEM',
    'write': 'EIO ENOSPC EINTR EDQUOT', 'pwrite64': 'EIO ENOSPC EINTR EDQUOT', 'fsync': 'EIO ENOSPC EDQUOT', 'fdatasync': 'EIO ENOSPC EDQUOT',
    'rename': 'EIO ENOSPC ENOMEM EDQUOT', 'renameat': 'EIO ENOSPC ENOMEM EDQUOT', 'renameat2': 'EIO ENOSPC ENOMEM EDQUOT',
    'unlink': 'EIO ENOMEM', 'unlinkat': 'EIO ENOMEM', 'mkdirat': 'EIO ENOSPC ENOMEM EDQUOT', 'symlinkat': 'EIO ENOSPC ENOMEM EDQUOT',
    'readlinkat': 'EIO ENOMEM', 'fchmod': 'EIO', 'fchown': 'EIO EDQUOT', 'newfstatat': 'EIO ENOMEM', 'fstatfs': 'EIO ENOMEM', 'getdents64': 'EIO ENOMEM',
    'close': 'EIO EINTR ENOSPC EDQUOT', 'fcntl': 'ENOMEM', 'mmap': 'ENOMEM', 'flock': 'EINTR ENOMEM', 'inotify_add_watch': 'ENOSPC ENOMEM',
    'socket': 'EMFILE ENOMEM', 'eventfd2': 'EMFILE ENOMEM', 'clone3': 'ENOMEM EAGAIN', 'bind': 'ENOMEM EIO', 'listen': 'ENOMEM', 'inotify_init1': 'EMFILE ENOMEM',
    'epoll_create1': 'EMFILE ENOMEM', 'timerfd_create': 'EMFILE ENOMEM', 'pipe2': 'EMFILE', 'mkdir': 'EIO ENOSPC ENOMEM EDQUOT', 'symlink': 'EIO ENOSPC', 'ftruncate': 'EIO',
}
LASTING = {'openat', 'openat2', 'fsync', 'renameat', 'renameat2', 'rename', 'unlinkat', 'mkdirat', 'symlinkat', 'fchmod', 'fchown', 'newfstatat', 'getdents64'}
SYNCS = {'fsync', 'fdatasync'}
KILLED = set(ERRORS) - {'mmap', 'fcntl', 'readlinkat', 'newfstatat', 'fstatfs', 'read', 'pread64', 'getdents64', 'socket', 'eventfd2', 'epoll_create1'}  # nothing lies elsewhere after these
RECORD = ['-e', 'trace=' + ','.join('?' + name for name in ERRORS)]
NO_FILE = re.compile(r'\(\d+<(?:anon_inode|socket|pipe|UNIX|TCP)')
CALL = re.compile(r'^(?:\d+ +)?(\w+)\(')


class World:
    """A directory, a server, two configs and an agent."""
    path, write, read = harness.Case.path, harness.Case.write, harness.Case.read

    def __init__(self, test, memory):
        self.test, self.memory, self.addCleanup = test, memory, test.addCleanup
        self.assertEqual, self.assertLess = test.assertEqual, test.assertLess  # for Agent
        self.prefix = getattr(test, 'prefix', ())
        self.dir = tempfile.mkdtemp(prefix='pullet-test-', dir=harness.memory() if memory else None)
        test.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.n, self.down, self.changed = 1, False, False
        self.server = FaultServer(test)
        self.server.behave = self.answer
        self.agent = self.start()
        self.refresh()
        self.next()

    def settings(self):
        """`changed`: another interval, and a third config."""
        every = f'interval: {2 if self.changed else 1}h, history: 3'
        more = f'  more: {{from: [{{server: main, path: /more.yaml}}], file: {self.path("out/more.yaml")}, {every}}}\n' if self.changed else ''
        return f'''agent: {{state_dir: {self.path("state")}, runtime_dir: {self.path("run")}, log: {{level: debug, format: text}}}}
servers: {{main: {{urls: ["{self.server.url}"]}}}}
configs:
  web: {{from: [{{server: main, path: /web.yaml}}], file: {self.path("out/web.yaml")}, {every}}}
  set: {{from: [{{server: main, path: /a.yaml, as: a.yaml}}, {{server: main, path: /b.yaml, as: b.yaml}}], dir: {self.path("set")}, {every}}}
{more}'''

    def answer(self, connection, head, stopping):
        if self.down:
            return good(b'', status='503 Service Unavailable')(connection, head, stopping)
        return good(document(self.n, LINES), f'ETag: "{self.n}"\r\n')(connection, head, stopping)

    def start(self, *tracer):
        return Agent(self, self.settings(), valgrind=tracer)

    # ---- what is asked for

    def hear(self):
        """The log until now: (number of its lines)."""
        with contextlib.suppress(AssertionError):
            self.agent.log.wait('(?!)', self.agent.log.count, timeout=0.001)
        return self.agent.log.count

    def ask(self, path, ok=(200,)):
        """The answer of the control socket; None when the agent ended before it came."""
        try:
            status, body = self.agent.post(path)
        except (OSError, http.client.HTTPException, AssertionError):
            self.agent.wait(10)
            return None
        if status not in ok:
            raise Flaw(f'{path}: {status} {body}')
        return body

    def refresh(self, names=('web', 'set')):
        for name in names:
            outcome = self.agent.refresh(name)
            if outcome['outcome'] not in ('published', 'unchanged') or outcome['version'] != f'"{self.n}"':
                raise Flaw(f'{name}: version {self.n} is not taken: {outcome} {self.agent.log.seen[-5:]}')

    def next(self):
        self.n += 1
        self.refresh()

    def do(self, action):
        """One change, of what its name says. True when the agent says that it is done."""
        kind, _, name = action.partition(' ')
        if kind == 'publish':
            self.n += 1
            body = self.ask(f'/v1/configs/{name}/refresh?wait=1&timeout_ms=20000', (200, 500, 503))
        elif kind == 'roll-back':
            body = self.ask(f'/v1/configs/{name}/rollback?timeout_ms=20000', (200, 409, 500, 503))
            return body and '"ok":true' in body
        else:
            return self.reload()
        return body and '"published"' in body

    def reload(self):
        self.changed = not self.changed
        self.write('pullet.yaml', self.settings())
        at = self.hear()
        self.agent.signal(signal.SIGHUP)
        try:
            line = self.agent.log.wait('nothing was changed|the new configuration runs|exiting, to start', at)
        except AssertionError:
            self.agent.wait(10)
            return False
        return 'runs' in line

    # ---- what is there

    def look(self, name):
        """The version of the text or the set that readers see."""
        if name != 'set':
            return number(self.read(f'out/{name}.yaml'), LINES)
        there = self.path('set/' + os.readlink(self.path('set/..data')))
        both = {number(pathlib.Path(there, part).read_bytes(), LINES) for part in ('a.yaml', 'b.yaml')}
        if len(both) != 1:
            raise Flaw(f'a set of several versions: {both}')
        return both.pop()

    def image(self, name):
        """(version, generation) of the snapshot; of a set, which has none, of the directory."""
        if name == 'set':
            return self.look(name), int(re.match(r'\.\.(\d+)-', os.readlink(self.path('set/..data')))[1])
        data = self.read(f'run/{name}.snap')
        if len(data) < 64 or struct.unpack_from('<Q', data, 8)[0] != xxhash.xxh64_intdigest(data[16:]):
            raise Flaw(f'a snapshot that is not whole: {len(data)} bytes')
        at = struct.unpack_from('<I', data, 60)[0]
        return int(data[at:data.index(b'\0', at)]), struct.unpack_from('<Q', data, 24)[0]

    def saved(self, name):
        """The generation of the last known good, which is whole."""
        newest = max(f for f in os.listdir(self.path('state/' + name)) if f.isdigit())
        first, rest = self.read(f'state/{name}/{newest}').split(b'\n', 1)
        if first != b'pullet-state 1 ' + hashlib.sha256(rest).hexdigest().encode():
            raise Flaw(f'state/{name}/{newest} does not verify')
        return int(newest)

    def seen(self):
        return {name: (self.look(name), self.image(name)[1], self.saved(name)) for name in ('web', 'set')}

    def strangers(self):
        """Whatever should not lie there when nothing is under way."""
        known = {'state': r'web|set|more|\.lock', 'state/web': r'\d{20}|ledger\.json', 'state/set': r'\d{20}|ledger\.json',
                 'run': r'(web|set|more)\.(snap|gen)|set\.shown|control\.sock(\.lock)?', 'out': r'(web|more)\.yaml', 'set': r'\.\.data|\.\.\d+-[0-9a-f]{16}|[ab]\.yaml'}
        sets = [f for f in os.listdir(self.path('set')) if re.match(r'\.\.\d', f)]
        return [f'{d}/{f}' for d, names in known.items() for f in os.listdir(self.path(d)) if not re.fullmatch(names, f)] + sets[KEPT:]

    def descriptors(self):
        found, place = [], f'/proc/{self.agent.pid}/fd/'
        for fd in os.listdir(place):
            with contextlib.suppress(FileNotFoundError):  # closed meanwhile
                found.append(re.sub(r':\[\d+\]|/\d{20}.*| \(deleted\)', '', os.readlink(place + fd)))
        return sorted(found)

    # ---- what must hold

    def check_whole(self, before, versions):
        """After a fault, whatever it did."""
        for name, (version, generation, saved) in self.seen().items():
            old = before[name]
            if version not in (old[0], *versions):
                raise Flaw(f'{name}: {version} is visible; it was {old[0]}, the change is to {versions}')
            if generation < old[1] or saved < old[2]:
                raise Flaw(f'{name}: generation {generation} (saved {saved}) after {old[1]} (saved {old[2]})')

    def check_agree(self):
        """Text or set and snapshot are of one version, with no other pull."""
        def wrong():
            return [(name, self.look(name), self.image(name)[0]) for name in ('web', 'set') if self.image(name)[0] != self.look(name)]
        self.test.until(lambda: not wrong(), lambda: f'file and snapshot differ: {wrong()} {self.agent.log.seen[-6:]}')

    def check_recovered(self, descriptors=None, lost=0):
        """The fault is over: the next version is published, and nothing is left of it."""
        self.next()
        for name in ('web', 'set'):
            status = self.agent.status(name)
            if self.look(name) != self.n or self.image(name) != (self.n, status['generation']) or self.saved(name) != status['generation'] or status['last_error']:
                raise Flaw(f'{name} is not what was published: {self.look(name)} {self.image(name)} {self.saved(name)} {status["last_error"]} after {self.n}')
        if self.strangers():
            raise Flaw(f'left behind: {self.strangers()}')
        if descriptors is not None:
            self.test.until(lambda: len(self.descriptors()) <= len(descriptors) + lost,
                            lambda: f'descriptors lost: {[d for d in self.descriptors() if self.descriptors().count(d) > descriptors.count(d)]}')


class Point:
    """One call of a recorded life, and what becomes of it."""

    def __init__(self, name, n, text, fault):
        self.name, self.n, self.text, self.fault = name, n, text.strip(), fault
        self.lasts = fault.endswith('+')

    @property
    def options(self):
        what = 'signal=KILL' if self.fault == KILL else 'error=' + self.fault.rstrip('+')
        seen = 'fsync,?rename,renameat,?renameat2' if self.name in SYNCS else self.name
        return ['-e', f'trace={seen}', '-e', f'inject={self.name}:{what}:when={self.n}{"+" if self.lasts else ""}']

    def __str__(self):
        return f'{self.fault} at {self.name} {self.n}: {self.text[:160]}'


def is_complaint(line):
    """Of the levels "warn" and "err", behind the time."""
    return re.match(r'\S+Z (warn|err) ', line) is not None


def points_of(trace, kills, begin=None):
    """Each call that was recorded, with each error it can return (or one kill). `begin`: those after the line that has it."""
    counts, points, begun = {}, [], begin is None
    for line in trace.splitlines():
        found = CALL.match(line)
        if not found or found[1] not in ERRORS:
            continue
        name = found[1]
        counts[name] = counts.get(name, 0) + 1
        begun = begun or begin in line
        if not begun or (NO_FILE.search(line) and name in ('read', 'write', 'fcntl')):  # eventfds do not fail
            continue
        errors = [e for e in ERRORS[name].split() if name != 'openat' or e not in ('ENOSPC', 'EDQUOT') or 'O_CREAT' in line]
        faults = [KILL] * (name in KILLED) if kills else [*errors, *(e + '+' for e in errors if name in LASTING and e != 'EINTR')]
        points += [Point(name, counts[name], line, fault) for fault in faults]
    return points


def chosen(points, key):
    """In check a sample of all calls; else all."""
    only = os.environ.get('PULLET_TEST_POINT')
    if only:
        return [p for p in points if re.search(only, str(p))]
    if POINTS == 'all' or len(points) <= int(POINTS):
        return points
    chooser = random.Random(f'{os.environ.get("PULLET_SEED", "1")} {key}')
    chooser.shuffle(points)
    turns = {}
    for point in points:  # of each call one, then of each another one
        point.turn = turns[point.name] = turns.get(point.name, 0) + 1
    return sorted(points, key=lambda point: point.turn)[:int(POINTS)]


@harness.needs(harness.LOOK, 'files in memory')
class Calls(harness.Case):
    def setUp(self):
        super().setUp()
        self.pool = concurrent.futures.ThreadPoolExecutor(4)
        self.addCleanup(self.pool.shutdown)
        self.synced = 0

    def together(self, what, jobs):
        """Runs them side by side, and prints the sum of their points."""
        futures = [self.pool.submit(*job) for job in jobs]
        concurrent.futures.wait(futures)
        sums = [sum(column) for column in zip(*(f.result() for f in futures))]
        print(f'{what}: {sums[0]} points, {sums[1]} were met, {sums[2]} changes went through all the same'
              + (f'; {self.synced} fsyncs failed, 0 renames or other tries after one' if self.synced else ''))
        self.assertGreater(sums[1], 0)

    @staticmethod
    @contextlib.contextmanager
    def trace(world, thread, *options):
        tasks = f'/proc/{world.agent.pid}/task/'
        tid = next(t for t in os.listdir(tasks) if pathlib.Path(tasks, t, 'comm').read_text(encoding='ascii').strip() == thread)
        tracer = Program(['strace', '-y', '-o', world.path('trace'), '-e', 'signal=none', *options, '-p', tid])
        try:
            tracer.log.wait('attached')
            yield
        finally:
            tracer.signal(signal.SIGINT)  # it detaches
            tracer.log.drain()
            tracer.close()

    def record(self, world, thread, action, kills):
        with self.trace(world, thread, *RECORD):
            done = world.do(action)
        self.assertTrue(done, f'{action}: {world.agent.log.seen[-5:]}')
        world.next()
        return points_of(world.read('trace').decode(), kills)

    # ---- errors

    def fail_each(self, memory, thread, action):
        world = World(self, memory)
        points = chosen(self.record(world, thread, action, False), f'{memory} {thread} {action}')
        met = through = 0
        for point in points:
            with about(f'{action}, memory {memory}, {thread}: {point}'):
                happened, done = self.fail_at(world, thread, action, point)
            met, through = met + happened, through + bool(done and happened)
        world.agent.stop()
        return len(points), met, through

    @staticmethod
    def prepare(world, action):
        """The same for each point: a reload adds a config, the generation before is the version before."""
        if action == 'reload' and world.changed:
            world.reload()
        if action.startswith('roll-back'):
            world.next()

    def fail_at(self, world, thread, action, point):
        self.prepare(world, action)
        before, descriptors, at = world.seen(), world.descriptors(), world.hear()
        with self.trace(world, thread, *point.options):
            done = world.do(action)
        happened = world.read('trace').count(b'(INJECTED)')
        lost = happened if point.name == 'close' else 0  # they are not closed
        if world.agent.process.poll() is not None:
            self.ended(world, point, at)
            descriptors = None
        if point.name in SYNCS and happened:
            self.check_synced(world, at)
        versions = (world.n, world.n - 1, world.n - 2)
        if not self.is_damaged(world, point, at):
            world.check_whole(before, versions)
        if not done and not self.named(world, action, at):
            raise Flaw(f'it failed, and nothing says why: {world.agent.log.seen[at:]}')
        if descriptors and not point.lasts:
            world.check_agree()
        if action == 'reload' and not world.reload() and not world.reload():
            raise Flaw('a reload fails for ever')
        world.check_recovered(descriptors if action != 'reload' else None, lost)
        return happened > 0, done

    def check_synced(self, world, at):
        """What was not brought to the disk is not renamed, nor brought there by another try: the kernel would say that it is there. And it is said."""
        failed = set()
        for line in world.read('trace').decode().splitlines():
            synced, moved = re.match(r'fsync\(\d+<(.*)>\)', line), re.match(r'rename\w*\(.*?"(.*?)"', line)
            name = os.path.basename((synced or moved)[1]) if synced or moved else None
            if name in failed and '.pullet-' in name:
                raise Flaw(f'after an fsync that failed: {line}')
            if synced and '(INJECTED)' in line:
                failed.add(name)
        self.synced += len(failed)
        world.hear()
        if not any(map(is_complaint, world.agent.log.seen[at:])):
            raise Flaw(f'an fsync failed, and nothing says so: {world.agent.log.seen[at:]}')

    def named(self, world, action, at):
        world.hear()
        said = ' '.join(line for line in world.agent.log.seen[at:] if is_complaint(line))
        if action == 'reload':
            return said
        return said or world.agent.status(action.split()[1])['last_error']

    def ended(self, world, point, at):
        """Memory that runs out in the middle of a reload may end an agent; nothing else may."""
        world.agent.log.drain()
        said = '\n'.join(world.agent.log.seen[at:])
        if world.agent.wait() < 0 or not re.search(' err ', said) or 'ENOMEM' not in point.fault:
            raise Flaw(f'the agent ended with {world.agent.wait()}: {said}')
        world.agent.close()
        world.agent = world.start()
        world.agent.ready()

    # ---- kills

    def kill_each(self, memory, thread, action):
        world = World(self, memory)
        points = chosen(self.record(world, thread, action, True), f'{memory} {thread} {action}')
        met = through = 0
        for point in points:
            with about(f'{action}, memory {memory}, {thread}: {point}'):
                self.prepare(world, action)
                before = world.seen()
                with self.trace(world, thread, *point.options):
                    done = world.do(action)
                if not self.lives(world):
                    world.agent.close()
                    self.revive(world, before)
                    met, through = met + 1, through + bool(done)
                world.check_recovered()
        world.agent.stop()
        return len(points), met, through

    def lives(self, world):
        """Also when a kill came after the last answer."""
        try:
            return world.agent.get('/livez')[0] == 200
        except (OSError, http.client.HTTPException):
            self.assertEqual(world.agent.wait(10), -9)
            return False

    def revive(self, world, before):
        """The next agent starts beside a server that is down."""
        world.check_whole(before, (world.n, world.n - 1, world.n - 2))
        before, world.down = world.seen(), True
        world.agent = world.start()
        world.agent.ready()
        world.check_whole(before, (world.n, world.n - 1, world.n - 2))
        world.check_agree()
        world.down = False

    # ---- starts

    def begin(self, world, *options):
        """An agent that strace has from its first call on, beside a server that is down: is it there, and is all that it did at the start done?"""
        world.down = True
        world.agent = world.start('strace', '-D', '-I', '2', '-y', '-o', world.path('trace'), '-e', 'signal=none', *options, '--')
        try:
            world.agent.log.wait('started version')
            world.agent.get('/livez')
        except (AssertionError, OSError, http.client.HTTPException):
            world.agent.wait(10)
        self.end_trace(world)
        world.down = False
        return world.agent.process.poll() is None

    def end_trace(self, world):
        """The fault is over, and its trace is whole."""
        def tracer():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                found = re.search(r'^TracerPid:\t(\d+)', pathlib.Path(f'/proc/{world.agent.pid}/status').read_text(encoding='ascii'), re.M)
                return int(found[1])
            return 0
        pid = tracer()
        if pid:
            os.kill(pid, signal.SIGINT)
            world.agent.get('/livez')  # it sees the signal at the next call
            self.until(lambda: not tracer(), 'strace does not detach')
        def ended():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                return ') Z ' in pathlib.Path(f'/proc/{pid}/stat').read_text(encoding='ascii')  # whoever is to reap it may be slow
            return True
        self.until(lambda: not pid or ended(), 'strace does not end')

    def fail_start(self, memory, kills):
        world = World(self, memory)
        world.agent.stop()
        self.begin(world, *RECORD)
        points = chosen(points_of(world.read('trace').decode(), kills, begin='pullet.yaml'), f'{memory} start {kills}')
        world.refresh()
        world.agent.stop()
        met = through = 0
        for point in points:
            with about(f'start, memory {memory}: {point}'):
                before = world.seen()
                there = self.begin(world, *point.options)
                trace = world.read('trace')
                met += b'(INJECTED)' in trace or (kills and not there)
                through += there
                if not self.is_damaged(world, point):
                    world.check_whole(before, (world.n,))
                if not there:
                    self.did_not_start(world, kills)
                world.check_recovered()
                world.agent.stop()
                world.agent.close()
        return len(points), met, through

    @staticmethod
    def is_damaged(world, point, at=0):
        """A state file that the disk does not give is as one that is damaged: the one before is published, and that is said."""
        world.hear()
        return 'EIO' in point.fault and 'could not be read' in str(world.agent.log.seen[at:])

    def did_not_start(self, world, kills):
        world.agent.log.drain()
        said, status = '\n'.join(world.agent.log.seen), world.agent.wait()
        if status != -9 if kills else status <= 0 or not re.search(r'^(?!<[67]>).', said, re.M):
            raise Flaw(f'ended with {status}: {said}')
        world.agent.close()
        self.revive(world, world.seen())

    def test_a_publication_in_memory(self):
        self.together('errors of publications in memory', [(self.fail_each, True, 'pulletd', action) for action in ('publish web', 'publish set')])

    def test_a_publication_on_a_disk(self):
        self.together('errors of publications on a disk', [(self.fail_each, False, thread, action) for thread in ('pullet-sync', 'pulletd')
                                                            for action in ('publish web', 'publish set')])

    def test_a_rollback(self):
        self.together('errors of rollbacks', [(self.fail_each, memory, thread, action) for memory, thread in ((True, 'pulletd'), (False, 'pullet-sync'))
                                              for action in ('roll-back web', 'roll-back set')])

    def test_a_reload(self):
        self.together('errors of reloads', [(self.fail_each, memory, 'pulletd', 'reload') for memory in (True, False)])

    def test_a_start(self):
        self.together('errors of starts', [(self.fail_start, memory, False) for memory in (True, False)])

    def test_kills_of_a_rollback_and_a_reload(self):
        self.together('kills', [(self.kill_each, *how) for how in ((True, 'pulletd', 'roll-back web'), (True, 'pulletd', 'roll-back set'), (True, 'pulletd', 'reload'),
                                                                  (False, 'pullet-sync', 'roll-back web'), (False, 'pullet-sync', 'roll-back set'),
                                                                  (False, 'pulletd', 'reload'))])

    def test_kills_of_a_start(self):
        self.together('kills of starts', [(self.fail_start, memory, True) for memory in (True, False)])


if __name__ == '__main__':
    harness.main()
