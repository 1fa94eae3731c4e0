"""A soak: one agent with 20 configs under 50 changes a second, whose servers restart and whose configuration is read again, while readers in six
languages check each version.

Usage: soak.py Soak       (make soak: SOAK_MINUTES of it, 20 by default)
       soak.py Seeded     (make soak-seeded: the bugs of leak.c, and wrong, old and lost versions, are found in a minute each)

Memory, descriptors, threads and files must be flat from the end of the first third on; no reader may see a version that is not whole, or an older
one; each config must have its newest version at last. A language that is not installed is named, and does not take part.
"""
import contextlib
import http.client
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[1:1] = [os.path.join(os.path.dirname(HERE), *part) for part in (('integration',), ('bench', 'languages'))] + [
    os.path.join(os.path.dirname(os.path.dirname(HERE)), 'lib', 'python')]
import build  # noqa: E402
import harness  # noqa: E402
os.environ.setdefault('PULLET_LIBRARY', os.path.join(harness.BUILD, 'libpullet.so.0'))
import pullet  # noqa: E402
from harness import Agent, Program  # noqa: E402

import documents  # noqa: E402
import measure  # noqa: E402
import sources  # noqa: E402

MINUTES = float(os.environ.get('SOAK_MINUTES', '20'))
SEED = os.environ.get('SOAK_SEED')  # one of SEEDS
RATE = 50  # changes a second, of all configs together
RELOAD_S = 10
LANGUAGES = {'C': (build.c, 'reader.c'), 'C++': (build.cpp, 'reader.cpp'), 'Python': (build.python, 'reader.py'), 'Go': (build.go, 'reader.go'),
             'Java': (build.java, 'Reader.java'), 'Node.js': (build.node, 'reader.js')}
SEEDS = {'descriptor': 'descriptors were', 'memory': 'memory .* grew', 'file': 'files were', 'wrong': 'the sum is', 'old': 'went back', 'lost': 'never came'}
BAD = ('configs: {a: {url: "http://127.0.0.1:1/", file: /nowhere/at/all, intervall: 1s}}\n', 'configs: [\n', '',
       'agent: {state_dir: /tmp, runtime_dir: /tmp}\nconfigs: {a: {url: "http://127.0.0.1:1/a.yaml"}}\n')
MORE = {'serve-yaml': 'durability: strict, reload: {run: [/bin/true], debounce: 300ms}', 'web-json': 'check: [/usr/bin/test, -s, "{path}"]',
        'serve-env': 'format: env', 'etcd-prefix': 'type: json'}


class Soak(harness.Case):
    def setUp(self):
        super().setUp()
        self.random = random.Random(int(os.environ.get('PULLET_SEED', '1')))
        self.flaws, self.stop, self.lock = [], threading.Event(), threading.Lock()
        self.count = dict.fromkeys(('changes', 'restarts', 'reloads', 'rejections'), 0)
        self.run_dir = os.path.join(harness.memory() or self.dir, os.path.basename(self.dir))
        self.addCleanup(subprocess.run, ['rm', '-rf', self.run_dir], check=True)
        os.makedirs(self.run_dir)
        os.makedirs(self.path('out'))
        self.sources, self.lacking = sources.open_sources(self)
        self.source_of = {name: source for source in self.sources for name in source.names}
        self.n = dict.fromkeys(self.source_of, 0)
        self.snapshots = [name for name in self.n if not re.search('-(file|bytes|set)$', name)]
        self.handles = {}

    # -- the agent

    def describe(self, name, interval):
        place = f'dir: {self.path("out/" + name)}' if name.endswith('-set') else f'file: {self.path("out/" + name)}'
        more = f', {MORE[name]}' if name in MORE else ', type: bytes' if name.endswith('-bytes') else ''
        return (f'  {name}: {{{sources.describe(name, self.source_of[name])}, {place}, interval: {interval}, timeout: 2s'
                f'{more}{"" if name in self.snapshots or "bytes" in more or "dir:" in place else ", snapshot: false"}}}\n')

    def settings(self, turn=0):
        """Each turn is another one: an interval, a label, and every second time one config more. Turn 0 is always the same."""
        changed = self.random.choice(list(self.n)) if turn else None
        lines = ''.join(self.describe(name, '700ms' if name == changed else '500ms' if name.startswith('web') else '5s') for name in self.n)
        spare = f'  spare: {{url: "http://127.0.0.1:{self.sources[0].http}/serve-file.yaml", file: {self.path("out/spare")}, interval: 200ms}}\n'
        servers = ''.join(f'  {source.settings}\n' for source in self.sources)
        return f'''agent: {{state_dir: {self.path('state')}, runtime_dir: {self.run_dir}, labels: {{turn: "{turn}"}}}}
push: [{{endpoint: "{self.sources[0].endpoint}", heartbeat: 500ms}}]
servers:
{servers}configs:
{lines}{spare if turn % 2 == 0 else ''}'''

    def start(self):
        env = {}
        if SEED in ('descriptor', 'memory', 'file'):
            library = self.path('leak.so')
            subprocess.run(['cc', '-shared', '-fPIC', '-O1', '-D_GNU_SOURCE', '-o', library, os.path.join(HERE, 'leak.c'), '-ldl'], check=True)
            env = {'LD_PRELOAD': library, 'SOAK_LEAK': SEED}
        self.agent = Agent(self, self.settings(), env=env)
        self.agent.socket = os.path.join(self.run_dir, 'control.sock')
        self.agent.ready()
        self.begin_ticks, self.begin = measure.processor_seconds(self.agent.pid), time.monotonic()
        sources.drain(self.agent)
        self.sampler = measure.Sampler(self.agent.pid, [self.path('state'), self.path('out'), self.run_dir], min(5, MINUTES * 60 / 60))

    # -- what happens to it

    def put(self, name, end=False):
        """The next version; false where it could not be written, and comes again."""
        n = self.n[name] + 1
        values = documents.make_version(name, n, end, name.endswith('-large'))
        if SEED in ('wrong', 'old') and 20 < n <= 40 and n % 2 and name == 'web-yaml':  # of so many, one is pulled
            values = {**values, 'k3': 'another'} if SEED == 'wrong' else documents.make_version(name, n - 10)
        if not (SEED == 'lost' and end and name == 'web-file'):
            try:
                if not self.source_of[name].put(name, values):
                    return False
            except (OSError, http.client.HTTPException, AssertionError, StopIteration, ValueError):
                return False
        self.n[name] = n
        self.count['changes'] += 1
        return True

    def change_on(self):
        due = time.monotonic()
        while not self.stop.is_set():
            self.put(self.random.choice(list(self.n)))
            due = max(due + 1 / RATE, time.monotonic() - 1)
            self.stop.wait(max(0, due - time.monotonic()))

    def restart_on(self):
        while not self.stop.wait(self.random.uniform(2, 8)):
            source = self.random.choice(self.sources)
            source.down()
            self.stop.wait(self.random.uniform(0.05, 2))
            source.up()
            self.count['restarts'] += 1

    def configuration(self):
        return json.loads(self.agent.get('/v1/status')[1])['configuration']

    def reload_on(self):
        turn = 0
        while not self.stop.wait(RELOAD_S):
            turn += 1
            self.reload(self.settings(turn) if turn % 2 else BAD[turn // 2 % len(BAD)], good=turn % 2)
        self.reload(self.settings(), good=True)

    def reload(self, text, good):
        kind = 'reloads' if good else 'rejections'
        before = self.configuration()[kind]
        self.write('pullet.yaml', text)
        self.agent.signal(signal.SIGHUP)
        end = time.monotonic() + harness.DEADLINE
        while self.configuration()[kind] == before:
            if time.monotonic() > end:
                self.flaws.append(f'no {kind} after SIGHUP: {self.configuration()}')
                return
            time.sleep(0.02)
        self.count[kind] += 1

    def guard(self, job):
        try:
            job()
        except Exception as e:  # pylint: disable=broad-except # it is a flaw of the run
            self.flaws.append(f'{job.__name__}: {e!r}')

    def work(self, seconds):
        """All of it, for so long; then all servers are up, and every config has its newest version."""
        self.stop.clear()
        self.sampler.begin()
        threads = [threading.Thread(target=self.guard, args=(job,)) for job in (self.change_on, self.restart_on, self.reload_on)]
        for thread in threads:
            thread.start()
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.agent.process.poll() is None:
            self.stop.wait(min(1, seconds))
        self.sampler.end()
        self.stop.set()
        for thread in threads:
            thread.join()
        self.assertIsNone(self.agent.process.poll(), 'the agent has ended: ' + '\n'.join(self.agent.log.seen[-20:]))
        self.find_lost()

    # -- what became of it

    def value(self, name):
        """The number of the version that a reader gets now."""
        if name in self.snapshots:
            if name not in self.handles:
                self.handles[name] = pullet.open(os.path.join(self.run_dir, name + '.snap'), wait_first=True)
            self.handles[name].refresh()
            return self.handles[name].get_int('n', 0)
        place = self.path('out/' + name) + ('/b.yaml' if name.endswith('-set') else '')
        with contextlib.suppress(FileNotFoundError), open(place, encoding='utf-8') as f:
            return int(documents.parse(f.read())['n'])
        return 0

    def find_lost(self):
        end = time.monotonic() + harness.DEADLINE
        while (late := [name for name in self.n if self.value(name) != self.n[name]]) and time.monotonic() < end:
            time.sleep(0.02)
        self.flaws += [f'{name}: version {self.n[name]} never came, it is {self.value(name)}' for name in late]

    def quiet(self):
        """Of the agent: descriptors by kind, files, threads; the descriptors of each reader. With its idle connections: also to a server that
        has just been started again."""
        self.until(lambda: self.agent.cli('refresh', '--wait')[0] == 0, 'not all servers answer')
        return (measure.wait_for_quiet(self.agent), measure.count_files(self.sampler.places), measure.read_status(self.agent.pid)['Threads'],
                {language: sum(measure.descriptors(program.pid).values()) for language, program in self.readers.items()})

    def start_readers(self):
        """{language: its program}; what cannot be built is not here."""
        env, found = {'PULLET_RUNTIME_DIR': self.run_dir}, {}
        for language, (prepare, source) in LANGUAGES.items():
            os.makedirs(self.path('readers/' + language))
            try:
                command, more = prepare(self.path('readers/' + language), os.path.join(HERE, 'readers', source))
                found[language] = Program([*command, *self.snapshots], env={**env, **more}, read='both')
            except (OSError, subprocess.CalledProcessError) as e:
                print(f'{language} does not take part: {e}', flush=True)
        others = [self.path('out/' + name) for name in self.n if name not in self.snapshots or name == 'serve-env']
        found['files'] = Program(['/usr/bin/python3', os.path.join(HERE, 'readers', 'files.py'), *others], read='both')
        for program in found.values():
            self.addCleanup(program.close)
        return found

    def end_readers(self):
        """Each ends by itself when it has seen the last version of all; what each says."""
        said, end = [], time.monotonic() + harness.DEADLINE
        for language, program in self.readers.items():
            while program.log._more(end):
                pass
            said += program.log.seen[-1:]
            self.flaws += [f'{language}: {line}' for line in program.log.seen if not re.fullmatch(r'\S+: \d+ versions', line)][:5]
            if program.process.poll() is None and time.monotonic() >= end:
                self.flaws.append(f'{language}: the last versions never came')
            elif program.wait() != 0:
                self.flaws.append(f'{language}: ended with {program.process.returncode}')
        return said

    def end_all(self):
        """The last version of all; everybody sees it, and nothing is wrong any more."""
        for name in self.n:
            self.until(lambda name=name: self.put(name, end=True), f'{name} cannot be written')
        self.find_lost()
        code, out, _ = self.agent.cli('status', '--check')
        if code:
            self.flaws.append(f'pullet status --check: {code}: {out}')

    def summary(self, said, quiet):
        seconds = time.monotonic() - self.begin
        first, rest = self.sampler.phases
        last = rest[len(rest) // 2:]

        def between(name, samples):
            values = [getattr(sample, name) for sample in samples]
            return f'{min(values)} to {max(values)}'
        print(f'{seconds / 60:.1f} minutes, {len(self.n)} configs: {self.count["changes"]} changes ({self.count["changes"] / seconds:.1f} a second), '
              f'{self.count["restarts"]} restarts of servers, {self.count["reloads"]} reloads, {self.count["rejections"]} rejected configurations; '
              f'{(measure.processor_seconds(self.agent.pid) - self.begin_ticks) / seconds * 100:.1f} % of a processor')
        print('; '.join(said))
        for name, what in (('rss', 'RSS, kB'), ('anonymous', 'RssAnon, kB'), ('descriptors', 'descriptors'), ('threads', 'threads'), ('files', 'files')):
            print(f'{what}: {between(name, first)} in the first third, {between(name, last)} in the last')
        for when, (kinds, files, threads, _) in zip(('after the first third', 'at the end'), quiet):
            print(f'{when}, at rest: {sum(kinds.values())} descriptors ({kinds["socket"]} sockets), {files} files, {threads} threads')
        if self.lacking:
            print(f'{self.lacking} did not take part')
        print('\n'.join([f'{len(self.flaws)} flaws', *self.flaws]), flush=True)

    def test_soak(self):
        for name in self.n:
            self.put(name)
        self.start()
        self.readers = self.start_readers()
        seconds, quiet = MINUTES * 60, []
        for part in (1 / 3, 2 / 3):
            self.work(seconds * part)
            quiet.append(self.quiet())
        self.end_all()
        said = self.end_readers()
        self.flaws += measure.flaws_of(self.sampler, quiet)
        self.summary(said, quiet)
        self.agent.stop()
        self.assertEqual(self.flaws, [])


class Seeded(harness.Case):
    """Each is found by a soak of a minute."""

    def find(self, seed):
        env = dict(os.environ, SOAK_MINUTES='1', SOAK_SEED=seed)
        done = subprocess.run([sys.executable, __file__, 'Soak'], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertRegex(done.stdout, f'\\d flaws\n(.*\n)*.*{SEEDS[seed]}')


for _seed in SEEDS:
    setattr(Seeded, f'test_{_seed}', lambda self, seed=_seed: self.find(seed))

if __name__ == '__main__':
    harness.main()
