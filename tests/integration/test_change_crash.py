"""kill -9 at each step of a change: check, state file, file or set, snapshot, page, ledger, reload, probe, and the same of a rollback.

Two mechanisms. The config's own programs kill the agent before or after their work: these steps are exact. And strace kills it instead of its n-th
system call that touches files, for n = 1, 2, 3 ... until a change goes through. After each kill the next agent must stand on a whole version that the
order of things allows, tell the application, prove it, and leave nothing behind. An agent whose renames only seem to work must be caught by that.
"""
import concurrent.futures
import contextlib
import hashlib
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time

import harness
from harness import Agent, DEADLINE, FaultServer, Program, good
from versions import Flaw, about

STRIDE = int(os.environ.get('PULLET_TEST_STRIDE', '7' if harness.SANITIZED else '1'))  # of the system calls
CALLS = 'openat,write,pwrite64,fsync,fdatasync,fchmod,fchown,?rename,renameat,?renameat2,?unlink,unlinkat,?rmdir,?mkdir,mkdirat,symlinkat,?link,linkat,futex'
LINES = 40
# What the config's programs do; the file kill says at which step of which generation the agent, and the program itself, get KILL.
PROGRAM = r'''#!/bin/sh
step=$1
d=@DIR@
hit() {
	[ -f $d/kill ] || return 0
	read line <$d/kill
	[ "$line" = "$step $PULLET_GENERATION $1" ] || return 0
	rm $d/kill
	read -r _ _ _ agent _ </proc/$PPID/stat  # the parent is the keeper
	kill -9 $agent $$
}
hit before
case $step in
format) cat ;;
check) read line <$2@TOP@ || exit 1 ;;
reload) cat $PULLET_FILE@TOP@ >$d/app.new && mv $d/app.new $d/app && echo reload $PULLET_GENERATION >>$d/steps ;;
probe) echo probe $PULLET_GENERATION >>$d/steps; ! grep -q 'bad"*: true' $d/app || { hit after; exit 1; } ;;
esac
result=$?
hit after
exit $result
'''


def numbers(data):
    """Each line names the version: a mixture of two is seen."""
    return [int(n) for n in re.findall(rb'"?(?:number|top|line\d+)"?: (\d+)', data)]


class Readers(threading.Thread):
    """Reads what is published in a tight loop; keeps the order in which versions were seen."""

    def __init__(self, world):
        super().__init__(daemon=True)
        self.world, self.flaws, self.seen, self.reads, self.stopping = world, [], [], 0, threading.Event()

    def look(self):
        """The bytes of one version."""
        if not self.world.is_set:
            with open(self.world.path('out/web.yaml'), 'rb') as f:
                return f.read()
        link = self.world.path('out/..data')
        while True:
            before = os.readlink(link)
            try:
                directory = os.open(link, os.O_RDONLY | os.O_DIRECTORY)
                try:
                    data = b''
                    for name in ('base.yaml', 'top.yaml'):
                        os.stat(self.world.path('out/' + name))  # the link in front leads somewhere
                        with open(os.open(name, os.O_RDONLY, dir_fd=directory), 'rb') as f:
                            data += f.read()
                    return data
                finally:
                    os.close(directory)
            except FileNotFoundError:
                if os.readlink(link) == before:
                    raise

    def once(self):
        try:
            data = self.look()
        except FileNotFoundError as e:
            self.flaws.append(f'missing: {e}')
            return
        found = numbers(data)
        if len(found) != 2 + LINES or len(set(found)) != 1:
            self.flaws.append(f'torn: {data[:60]}')
        elif not self.seen or self.seen[-1] != found[0]:
            self.seen.append(found[0])

    def run(self):
        while not self.stopping.is_set() and len(self.flaws) < 10:
            self.once()
            self.reads += 1
            self.stopping.wait(0.004)  # the machine is shared by all worlds; what a kill left half stays so for longer

    def stop(self):
        self.stopping.set()
        self.join()


def lives(agent):
    """Is it alive? Also when a kill came after its last answer, at what follows on the sync thread."""
    try:
        return agent.get('/livez')[0] == 200
    except (OSError, http.client.HTTPException):
        agent.wait(5)
        return False


class World:
    """A directory, a server and one config, with what the application has seen of it."""
    path, write, read = harness.Case.path, harness.Case.write, harness.Case.read

    def __init__(self, test, kind, memory, interval='1h', more=''):
        self.test, self.kind, self.is_set, self.addCleanup = test, kind, kind == 'dir', test.addCleanup
        self.dir = tempfile.mkdtemp(prefix='pullet-test-', dir=harness.memory() if memory else None)  # else the disk, where it is slower
        test.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.assertEqual, self.assertLess = test.assertEqual, test.assertLess  # for Agent
        self.prefix = getattr(test, 'prefix', ())
        self.n, self.bad, self.asked, self.served, self.lock = 1, False, set(), None, threading.Lock()
        self.server = FaultServer(test)
        self.server.behave = self.answer
        self.write('program', PROGRAM.replace('@DIR@', self.dir).replace('@TOP@', '/top.yaml' if self.is_set else ''))
        os.chmod(self.path('program'), 0o755)
        self.config = self.settings(interval) + more
        self.agent = self.start()
        self.until_settled()
        self.readers = Readers(self)
        self.readers.start()
        test.addCleanup(self.readers.stop)

    def settings(self, interval):
        names = ('base.yaml', 'top.yaml')
        layers = ''.join(f'      - {{server: main, path: /{n}{", as: " + n if self.is_set else ""}}}\n' for n in names)
        program = self.path('program')
        where = f'dir: {self.path("out")}' if self.is_set else f'file: {self.path("out/web.yaml")}\n    snapshot: true'
        made = f'\n    format: {{run: [{program}, format]}}' if self.kind == 'format' else ''
        return f'''agent:
  state_dir: {self.path("state")}
  runtime_dir: {self.path("run")}
  log: {{level: debug, format: text}}
servers:
  main: {{urls: [{self.server.url}]}}
configs:
  web:
    from:
{layers}    {where}{made}
    interval: {interval}
    check: [{program}, check, "{{path}}"]
    reload: {{run: [{program}, reload]}}
    probe: {{run: [{program}, probe], for: 100ms, every: 100ms, failures: 1}}
'''

    def answer(self, connection, head, stopping):
        name = head.split()[1]
        with self.lock:  # a pull that has begun gets both documents of one version
            if not self.asked or name in self.asked:
                self.served, self.asked = (self.n, self.bad), set()
            self.asked ^= {name}
            if len(self.asked) == 2:
                self.asked = set()
            n, bad = self.served
        body = f'bad: {str(bad).lower()}\ntop: {n}\n' if name == '/top.yaml' else f'number: {n}\n' + ''.join(f'line{i}: {n}\n' for i in range(LINES))
        if f'"{n}"' in head:
            connection.sendall(b'HTTP/1.1 304 Not Modified\r\n\r\n')
            return None
        return good(body.encode(), f'ETag: "{n}"\r\n')(connection, head, stopping)

    def start(self):
        self.forget_requests()
        self.asked = set()
        return Agent(self, self.config)

    def forget_requests(self):
        """Until the server has seen the end of each connection of the agent that was killed: what that one asked for last is no half of the
        next one's pull. Connections are accepted in their order, and this one is the last."""
        with socket.create_connection(('127.0.0.1', self.server.port)) as last:
            last.shutdown(socket.SHUT_WR)
            last.recv(1)
        self.test.until(lambda: not self.server.open, 'a connection of an agent that is dead stays open')

    def end(self):
        self.agent.stop()
        self.test.assertGreater(self.readers.reads, 10)

    # ---- what is there

    def ledger(self):
        return json.loads(self.read('state/web/ledger.json'))

    def generations(self):
        return sorted(int(f) for f in os.listdir(self.path('state/web')) if f.isdigit())

    def visible(self):
        """The number of the version that readers see."""
        data = Readers(self).look()
        found = set(numbers(data))
        if len(found) != 1:
            raise Flaw(f'torn: {data[:80]}')
        return found.pop()

    def strangers(self):
        """Whatever should not lie there when nothing is under way."""
        known = {'state': r'web|\.lock', 'state/web': r'\d{20}|ledger\.json', 'run': r'web\.(snap|gen|shown)|control\.sock(\.lock)?',
                 'out': r'\.\.data|\.\.\d+-[0-9a-f]{16}|base\.yaml|top\.yaml' if self.is_set else r'web\.yaml'}
        return [f'{d}/{f}' for d, names in known.items() for f in os.listdir(self.path(d)) if not re.fullmatch(names, f)]

    def status(self):
        return json.loads(self.agent.get('/v1/configs/web')[1])

    def settled(self):
        """The generation that stands, told and proven, with nothing left to do; None = not yet."""
        status = self.status()
        if not status['generation'] or status['reload']['state'] != 'idle':
            return None
        ledger = self.ledger()
        return status['generation'] if ledger['told'] == ledger['proven'] == str(status['generation']) else None

    def until_settled(self, generation=None):
        """Looks after each line of the log: what it tells of is over when the status answers."""
        deadline = time.monotonic() + harness.DEADLINE
        while True:
            at, found = self.agent.log.count, self.settled()
            if found and generation in (None, found):
                return found
            try:
                self.agent.log.wait('.', at)
            except AssertionError as e:
                raise Flaw(f'never settled: {self.agent.log.seen[-20:]}') from e
            if time.monotonic() > deadline:
                raise Flaw(f'never settled: {self.status()} {self.agent.log.seen[-20:]}')

    # ---- one change

    def last_call(self):
        return [line for line in self.read('trace').decode().split('\n') if '(' in line][-1:]

    def begin(self, bad, kill=None, later=0):
        """The server has the next version; kill: at which step, with room for a generation. What the change leads from and to."""
        step = Step(self.until_settled(), self.visible(), self.n + 1, bad)
        if kill:
            self.write('kill', kill % (step.before + later))
        with self.lock:
            self.bad, self.n = bad, step.new
        return step

    def dies(self):
        """Until the agent is dead."""
        self.agent.log.drain()
        self.test.assertEqual(self.agent.wait(), -9)
        self.agent.close()

    def recover(self, step):
        """Starts the next agent after a kill: it must stand where the order of things allows."""
        highest = max(self.generations())
        if self.visible() not in (step.old, step.new):
            raise Flaw(f'{self.visible()} is visible between {step.old} and {step.new}')
        self.agent = self.start()
        try:
            line = self.agent.log.wait('last known good|started version')
        except AssertionError as e:
            raise Flaw(f'does not start: {self.agent.wait()} {self.agent.log.seen}') from e
        generation = int((re.search(r'generation=(\d+)', line) or [0, 0])[1])
        if generation != highest or generation not in step.shows:
            raise Flaw(f'generation {generation} stands after {step.before}, {highest} was saved')
        self.agent.ready()
        at, generation, visible = self.agent.log.count, self.status()['generation'], self.visible()
        if generation == self.status()['generation'] and step.shows.get(generation) != visible:
            try:  # or is the next one on its way?
                self.agent.log.wait('published config', at, timeout=2)
            except AssertionError as e:
                raise Flaw(f'{visible} is visible, generation {generation} stands') from e

    def finished(self, step):
        """All that must hold when nothing is left to do."""
        generation = max(step.shows)
        want = step.shows[generation]
        self.until_settled(generation)
        told = self.read('steps').decode().split('\n')
        image = [] if self.is_set else [struct.unpack_from('<Q', self.read('run/web.' + f), at)[0] for f, at in (('gen', 8), ('snap', 24))]
        facts = {
            'is visible': self.visible() == want,
            'is what the application runs with': set(numbers(self.read('app'))) == {want},
            'was told': f'reload {generation}' in told,
            # what came back is known to be good, and need not be watched
            'was proven after that': step.bad or f'probe {generation}' in told[told.index(f'reload {generation}') + 1:],
            'is in page and image': set(image) <= {generation},
            'left nothing behind': not self.strangers(),
            'was never torn or missing': not self.readers.flaws,
            'came once': self.readers.seen.count(step.new) <= 1,
            'saved the good one only': self.generations()[-1] == generation,
        }
        wrong = [fact for fact, holds in facts.items() if not holds]
        if wrong:
            raise Flaw(f'generation {generation}, {want}: not true that it {wrong}: {self.strangers()} {self.readers.flaws[:3]} '
                       f'{self.readers.seen[-4:]} {told[-5:]} {image}')

    def refuses(self, step):
        """What was rolled back does not come again."""
        outcome = self.agent.refresh()
        if outcome['outcome'] != 'failed' or outcome['generation'] != max(step.shows) or self.visible() != step.old:
            raise Flaw(f'a version that was rolled back is taken again: {outcome}')


class Step:
    """From a version to the next, and back again if that is bad."""

    def __init__(self, before, old, new, bad):
        self.before, self.old, self.new, self.bad = before, old, new, bad
        self.shows = {before: old, before + 1: new}  # generation to number
        if bad:
            self.shows[before + 2] = old


class Change(harness.Case):
    def setUp(self):
        super().setUp()
        self.pool = concurrent.futures.ThreadPoolExecutor(8)
        self.addCleanup(self.pool.shutdown)

    def together(self, jobs):
        """Runs them side by side: they mostly wait for timers. The sum of their results."""
        futures = [self.pool.submit(*job) for job in jobs]
        concurrent.futures.wait(futures)
        return sum(f.result() for f in futures)


class Programs(Change):
    """The agent is killed by one of its own programs, and comes right without being asked."""

    def kill_at_each(self, kind, bad):
        world = World(self, kind, memory=kind != 'file', interval='300ms')
        names = ['format'] * (kind == 'format') + ['check', 'reload', 'probe']
        steps = [(name, 1, when) for name in names for when in ('before', 'after')]
        if bad:
            steps += [(name, 2, when) for name in names[:-1] for when in ('before', 'after')]
        for name, later, when in steps:
            with about(f'{kind}, bad {bad}: killed {when} {name} {later}'):
                step = world.begin(bad, f'{name} %d {when}\n', later)
                world.dies()
                world.recover(step)
                world.finished(step)
                if bad:
                    world.refuses(step)
        world.end()
        return len(steps)

    def test_a_change_is_finished_or_undone_after_a_kill_at_each_program(self):
        kills = self.together([(self.kill_at_each, kind, bad) for kind in ('file', 'format', 'dir') for bad in (False, True)])
        print(f'{kills} kills by the programs of a change')

    def test_a_page_that_was_not_raised_is_raised_at_the_next_start(self):
        world = World(self, 'file', memory=True, interval='300ms')
        step = world.begin(False, 'probe %d before\n', 1)
        world.dies()
        with open(world.path('run/web.gen'), 'r+b') as page:  # as if the kill had come before: there is no system call between
            page.seek(8)
            page.write(struct.pack('<Q', step.before))
        world.recover(step)
        world.finished(step)
        world.agent.stop()


@harness.needs(harness.LOOK)
class Calls(Change):
    """The agent is killed instead of its n-th system call."""

    @staticmethod
    @contextlib.contextmanager
    def trace(world, thread, inject, calls=CALLS):
        """strace on one thread: nothing that the agent starts is touched."""
        tasks = f'/proc/{world.agent.pid}/task/'
        names = {tid: pathlib.Path(tasks, tid, 'comm').read_text(encoding='ascii').strip() for tid in os.listdir(tasks)}
        tid = next(tid for tid, name in names.items() if name == thread)
        tracer = Program(['strace', '-o', world.path('trace'), '-e', f'trace={calls}', '-e', f'inject={calls}:{inject}', '-p', tid])
        try:
            tracer.log.wait('attached')
            yield
        finally:
            tracer.signal(signal.SIGINT)  # it detaches
            tracer.log.drain()
            tracer.close()

    @staticmethod
    def pull(world, step):
        """Asks for a pull, and waits for the end of the change or of the agent."""
        at = world.agent.log.count
        try:
            world.agent.post('/v1/configs/web/refresh')
            world.agent.log.wait(r'reload succeeded.*generation=%d\b' % max(step.shows) if step.bad else 'probe passed', at)
            world.agent.get('/livez')  # what that line tells of is over
        except (AssertionError, OSError, http.client.HTTPException):
            world.agent.wait(5)

    def kill_at_each(self, kind, memory, thread, bad):
        world, n, kills = World(self, kind, memory), 1, 0
        while True:
            step = world.begin(bad)
            with self.trace(world, thread, f'signal=KILL:when={n}'):
                self.pull(world, step)
            dead = not lives(world.agent)
            with about(f'{kind}, memory {memory}, {thread}, bad {bad}: killed at call {n}: {world.last_call()}'):
                if dead:
                    kills += 1
                    world.dies()
                    world.recover(step)
                    world.agent.refresh()
                world.finished(step)
                if bad:
                    world.refuses(step)
            if not dead:
                world.end()
                return kills
            n += STRIDE

    def test_the_change_of_a_file_is_finished_or_undone_after_a_kill_at_each_call(self):
        kills = self.together([(self.kill_at_each, 'file', *rest) for rest in
                               ((True, 'pulletd', False), (True, 'pulletd', True), (False, 'pulletd', False), (False, 'pullet-sync', False))])
        print(f'{kills} kills, one at each call of a change of a file')

    def seed(self, kind, calls, inject, kill, bad=False):
        """One change with a bug that strace seeds, and a kill after it."""
        world = World(self, kind, memory=True, more='    drift: leave\n')  # it would put right what the bug did
        step = world.begin(bad)
        with self.trace(world, 'pulletd', inject, calls):
            self.pull(world, step)
        if kill:
            world.agent.signal(signal.SIGKILL)
            world.dies()
            world.recover(step)
            world.agent.refresh()
        world.finished(step)
        world.agent.stop()

    def caught(self, what, *seed):
        """On a busy machine a ledger's rename of the step before may be the first that strace counts: then the bug was in that one."""
        for _ in range(3):
            try:
                self.seed(*seed)
            except Flaw as flaw:
                self.assertRegex(str(flaw), what)
                return
        self.fail(f'{seed}: no flaw was seen')

    @harness.needs('files in memory')  # on a disk others come between
    def test_an_agent_whose_renames_only_seem_to_work_is_caught(self):
        calls = 'renameat,?renameat2'
        # the n-th: state file, file, snapshot, ledger; of a set first its files for the check
        for kind, n, kill, what in (('file', 1, True, 'stands after'), ('file', 2, False, 'is visible'), ('file', 2, True, 'runs with'),
                                    ('file', 3, False, 'page and image'), ('dir', 6, False, 'is visible')):
            with self.subTest(kind=kind, n=n):
                self.caught(what, kind, calls, f'retval=0:when={n}', kill)
        self.seed('file', calls, 'retval=0:when=100', True)

    def test_files_that_are_not_removed_are_caught(self):
        with self.assertRaisesRegex(Flaw, 'left nothing behind'):
            self.seed('file', '?unlink,unlinkat', 'retval=0:when=1+', False)

    def test_a_version_that_is_taken_again_is_caught(self):
        world = World(self, 'file', memory=True)
        step = world.begin(True)
        self.pull(world, step)
        world.finished(step)
        world.refuses(step)
        world.agent.signal(signal.SIGKILL)
        world.dies()
        os.unlink(world.path('state/web/ledger.json'))
        forget_decisions(world)
        world.recover(step)
        with self.assertRaisesRegex(Flaw, 'taken again'):
            world.refuses(step)

    def test_readers_see_what_is_torn_or_missing(self):
        for kind, name in (('file', 'out/web.yaml'), ('dir', 'out/..data/top.yaml')):
            world = World(self, kind, memory=True)
            world.agent.stop()
            whole = world.read(name)
            for data in (whole[:-1 - len(whole) // 2], whole.replace(b' 1', b' 2', 1), b''):
                with self.subTest(kind=kind, data=data):
                    seen = Readers(world)
                    pathlib.Path(world.path(name)).write_bytes(data)
                    seen.once()
                    self.assertRegex(str(seen.flaws), 'torn')
            seen = Readers(world)
            os.unlink(world.path(name))
            seen.once()
            self.assertRegex(str(seen.flaws), 'missing')

    def test_the_change_of_a_set_is_finished_or_undone_after_a_kill_at_each_call(self):
        kills = self.together([(self.kill_at_each, 'dir', *rest) for rest in
                               ((True, 'pulletd', False), (True, 'pulletd', True), (False, 'pullet-sync', False))])
        print(f'{kills} kills, one at each call of a change of a set')


def forget_decisions(world):
    """Makes the newest state file that of an agent which keeps its decisions in the ledger only."""
    newest = 'state/web/' + max(f for f in os.listdir(world.path('state/web')) if f.isdigit())
    _, facts, body = world.read(newest).split(b'\n', 2)
    facts = json.loads(facts)
    facts.pop('decisions', None)
    rest = json.dumps(facts).encode() + b'\n' + body
    world.write(newest, b'pullet-state 1 ' + hashlib.sha256(rest).hexdigest().encode() + b'\n' + rest)


class Decider:
    """A signed document, and what is decided about it: each decision changes what the file says, and must not be lost once it shows."""
    path, write, read = harness.Case.path, harness.Case.write, harness.Case.read

    def __init__(self, test, memory, ledger, forgets):
        self.test, self.ledger, self.forgets, self.addCleanup = test, ledger, forgets, test.addCleanup
        self.prefix = test.prefix
        self.dir = tempfile.mkdtemp(prefix='pullet-test-', dir=harness.memory() if memory else None)
        test.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.assertEqual, self.assertLess = test.assertEqual, test.assertLess  # for Agent
        subprocess.run(['minisign', '-G', '-W', '-p', self.path('k.pub'), '-s', self.path('k.key')], check=True, stdout=subprocess.DEVNULL)
        self.documents, self.n, self.value = {}, 0, 1000
        self.server = FaultServer(test)
        self.server.behave = self.answer
        self.config = f'''agent:
  state_dir: {self.path("state")}
  runtime_dir: {self.path("run")}
  log: {{level: debug, format: text}}
configs:
  web:
    url: {self.server.url}/web.yaml
    file: {self.path("out/web.yaml")}
    interval: 1h
    verify: {{public_key: {self.read("k.pub").decode().split()[-1]}}}
'''
        self.offer(1)
        self.agent = Agent(self, self.config)
        self.agent.ready()
        self.refresh()

    def offer(self, n):
        """The server has this document from now on, signed with its number as its rev."""
        self.n = n
        if n not in self.documents:
            self.write('doc', b'number: %d\n' % n)
            subprocess.run(['minisign', '-S', '-s', self.path('k.key'), '-m', self.path('doc'), '-t', f'rev={n}'], check=True, stdout=subprocess.DEVNULL)
            self.documents[n] = (self.read('doc'), self.read('doc.minisig'))

    def answer(self, connection, head, stopping):
        body = self.documents[self.n][head.split()[1].endswith('.minisig')]
        return good(body, f'ETag: "{self.n}"\r\n')(connection, head, stopping)

    def visible(self):
        found = re.fullmatch(rb'number: (\d+)\n', self.read('out/web.yaml'))
        if not found:
            raise Flaw(f'not whole: {self.read("out/web.yaml")}')
        return int(found[1])

    def ask(self, what):
        """Asks for it and waits for its end, or for that of the agent."""
        try:
            self.agent.post(f'/v1/configs/web/{what}{"&" if "?" in what else "?"}timeout_ms={DEADLINE * 1000}')
        except (OSError, http.client.HTTPException):
            self.agent.wait(5)

    def refresh(self):
        self.ask('refresh?wait=1')

    # ---- each brings the world to where its decision can be made, and returns what is to be asked and what the server has afterwards

    def newer(self):
        """A version with a higher rev; after it somebody plays back the one before."""
        before = self.n
        self.offer(before + 1)
        self.refresh()
        before = self.n
        self.offer(before + 1)
        return 'refresh?wait=1', before

    def override(self):
        self.value += 1
        return f'override?key=number&value={self.value}&for_ms=3600000', self.n

    def dropped(self):
        self.ask(self.override()[0])
        return 'override?key=number&remove=1', self.n

    def rolled_back(self):
        self.offer(self.n + 1)
        self.refresh()
        return 'rollback', self.n

    def forced(self):
        self.ask(self.rolled_back()[0])
        return 'refresh?force=1&wait=1', self.n

    def die_at(self, decision, thread, n):
        """The decision with a kill at the n-th call; False: it went through without one."""
        what, later = getattr(self, decision)()
        old, seen, ledger = self.visible(), [], self.read('state/web/ledger.json')
        with Calls.trace(self, thread, f'signal=KILL:when={n}'):
            self.ask(what)
        if lives(self.agent):
            self.test.assertNotEqual(self.visible(), old, what)
            return False
        self.agent.close()
        self.offer(later)
        seen.append(self.visible())
        if self.ledger == 'lost':
            self.write('state/web/ledger.json', ledger)
        if self.forgets:
            forget_decisions(self)
        self.agent = Agent(self, self.config)
        self.agent.log.wait('last known good')
        self.agent.ready()
        seen.append(self.visible())
        self.refresh()
        seen.append(self.visible())
        new = [value != old for value in seen]
        if new != sorted(new):
            raise Flaw(f'{decision}, {thread}, killed at call {n}: it was visible, and is not any more: {old} {seen}')
        return True


@harness.needs(harness.LOOK)
class Decisions(Change):
    """What was decided is in the state file before its effect is visible: no kill undoes it, and no power cut that takes what was written to
    the ledger since (`lost`)."""

    def kill_at_each(self, decision, memory, ledger, forgets=False):
        kills = 0
        for thread in ('pulletd',) if memory else ('pulletd', 'pullet-sync'):
            world, n = Decider(self, memory, ledger, forgets), 1
            while world.die_at(decision, thread, n):
                kills, n = kills + 1, n + (1 if forgets else STRIDE)  # the bug shows at a few calls only
            world.agent.stop()
        return kills

    def test_no_decision_is_lost_to_a_kill(self):
        kills = self.together([(self.kill_at_each, decision, *how) for how in ((True, 'kept'), (True, 'lost'), (False, 'kept'))
                               for decision in ('newer', 'override', 'dropped', 'rolled_back', 'forced')])
        print(f'{kills} kills, one at each call of five decisions')
        self.assertGreater(kills, 100 // STRIDE)

    def test_an_agent_that_keeps_them_in_its_ledger_only_is_caught(self):
        # 'forced' shows nothing: a verdict about the bytes that are current decides nothing
        for decision in ('newer', 'override', 'dropped', 'rolled_back'):
            with self.subTest(decision=decision), self.assertRaisesRegex(Flaw, 'not any more'):
                self.kill_at_each(decision, True, 'lost', forgets=True)


if __name__ == '__main__':
    harness.main()
