"""Decides about a mutant: compiles its object, links the unit tests that contain it, runs them where they can harm nothing.

A build folder with a link map beside each unit test says which programs contain an object. The mutant's object comes before the
archives, so that the linker takes it instead of the member.
"""
import glob
import json
import os
import re
import select
import shlex
import subprocess
import tempfile
import threading
import time

REFUSED, EQUIVALENT, KILLED, SURVIVED = 'refused', 'equivalent', 'killed', 'survived'
MEMBER = re.compile(r'^\S+\.a\((\S+\.o)\)\n?\s+\S+ \((\w+)\)', re.M)
LOADED = re.compile(r'^LOAD (\S+\.[oa])$', re.M)
# a type that only warns is not what the operators mean; other warnings do not count
STRICT = ['-Werror=incompatible-pointer-types', '-Werror=int-conversion']
FAILED = re.compile(rb'^\[ +(?:FAILED|ERROR) ', re.M)  # as cmocka says it
CONFINE = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'confine.sh')
SIMULATED = ('config', 'publish', 'version', 'push', 'pull')
SIM_SEEDS = 300
SIM_LIMIT = 120
FIRST_LIMIT = 120  # seconds for a test as it is; a mutant has ten times what that took, and some
LIMIT = 10
OTHERS = 10  # seconds of tests of other rooms


def room_of(path):
    parts = path.split('/')
    return parts[0] if len(parts) == 2 else parts[1]


def run_test(command, seconds, env=None):
    """Whether a test passes; it is ended at the first case that does not, or after some seconds."""
    deadline = time.monotonic() + seconds
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env=env, start_new_session=True) as p:
        said = b''
        while select.select([p.stdout], [], [], max(0, deadline - time.monotonic()))[0]:
            more = os.read(p.stdout.fileno(), 65536)
            said = said[-100:] + more
            if FAILED.search(said):
                break
            if not more:
                return p.wait() == 0
        p.terminate()  # it ends all that it started
        return False


class Commands:
    """How a build folder compiles and links: three lines that the Makefile wrote there."""

    def __init__(self, build):
        self.build = build
        with open(os.path.join(build, 'commands'), encoding='utf-8') as f:
            compiler, linker, libraries = (shlex.split(line) for line in f)
        self.compiler = [w for w in compiler if not w.startswith(('-MMD', '-MP', '-W'))]
        self.linker = [w for w in linker if not w.startswith('-Wl,-Map')]
        self.libraries = libraries

    def compile(self, folder, path, output):
        """Compiles what lies in folder under this path, or where nothing does the tree's; whether the compiler took it."""
        cc, *flags = self.compiler
        mine = os.path.join(folder, path)
        source = mine if os.path.exists(mine) else path
        places = [w for f in (os.path.join(folder, 'agent'), folder, os.path.dirname(path)) for w in ('-iquote', f)]
        command = [cc, *places, *flags, *STRICT, '-c', '-o', output, source]
        return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0

    def link(self, output, objects, archives):
        done = subprocess.run([*self.linker, '-o', output, *objects, *archives, *self.libraries], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if done.returncode:
            raise RuntimeError(done.stderr.decode(errors='replace')[-2000:])


class Program:
    """A unit test: what it is linked of, what it contains, how long it takes."""

    def __init__(self, build, path):
        self.path = path
        self.name = os.path.relpath(path, os.path.join(build, 'unit'))
        self.room = self.name.split('/')[0]
        with open(path + '.map', encoding='utf-8') as f:
            text = f.read()
        # (member, function): names of members are not unique, those of functions are
        self.members = set(MEMBER.findall(text))
        loaded = [p for p in LOADED.findall(text) if p.startswith(build + '/')]
        self.objects = [p for p in loaded if p.endswith('.o')]
        self.archives = [p for p in loaded if p.endswith('.a')]
        self.seconds = None

    def source(self):
        return f'tests/unit/{self.name}.c'

    def subject(self):
        """The text of the file that it is about, if there is one."""
        room, base = os.path.split(self.name)
        for path in (f'agent/{room}/{base[5:]}.c', f'{room}/{base[5:]}.c'):
            if os.path.exists(path):
                with open(path, encoding='utf-8') as f:
                    return f.read()
        return ''

    def includes(self, path):
        """Whether the test includes a .c file, and so has its functions by itself."""
        with open(self.objects[0][:-2] + '.d', encoding='utf-8') as f:
            return path in f.read().split()

    def text(self):
        with open(self.source(), encoding='utf-8') as f:
            return f.read()


def read_symbols(objects):
    """{object: global names that it defines}"""
    found = {}
    for line in subprocess.run(['nm', '-A', '--extern-only', '--defined-only', *objects], stdout=subprocess.PIPE, check=True).stdout.decode().splitlines():
        path, rest = line.split(':', 1)
        found.setdefault(path, set()).add(rest.split()[-1])
    return found


class Tests:
    """All unit tests of a build folder, and which of them are about a file."""

    def __init__(self, build, confined=True):
        self.build = build
        self.prefix = [CONFINE, os.path.join(build, 'scratch')] if confined else []
        self.programs = [Program(build, m[:-4]) for m in sorted(glob.glob(f'{build}/unit/**/*.map', recursive=True)) if os.path.exists(m[:-4])]
        self.symbols = read_symbols(sorted(glob.glob(f'{build}/lib/*.o') + glob.glob(f'{build}/agent/**/*.o', recursive=True)))
        self.times = os.path.join(build, 'mutants-times.json')

    def contains(self, program, path):
        base, names = os.path.basename(path)[:-2] + '.o', self.symbols.get(f'{self.build}/{path[:-2]}.o', ())
        return program.includes(path) or any(member == base and name in names for member, name in program.members)

    def names(self, program, path):
        """Whether a test, or the file that it is about, includes the header of this file; or the test speaks of a function of it."""
        header, text = path[path.index('/') + 1:-2] + '.h', program.text()
        return any(f'"{prefix}{header}"' in text + program.subject() for prefix in ('', 'lib/')) or any(
            re.search(rf'\b{name}\b', text) for name in self.symbols.get(f'{self.build}/{path[:-2]}.o', ()))

    def rank(self, program, path):
        """0: the file's own test, 1: of its room, 2: of another one that names it, None: not asked"""
        stem = path[path.index('/') + 1:-2]
        folder, base = os.path.split(stem)
        own = f'{folder or room_of(path)}/test_{base}'
        if program.name == own:
            return 0
        if program.room == room_of(path) or program.room == 'agent' and path.count('/') == 1:
            return 1
        return 2 if self.names(program, path) else None

    def select(self, path):
        """The programs to run for a file, those first that probably kill, then the quick ones; of other rooms only some seconds of them."""
        ranked = [(r, p.seconds, p.name, p) for p in self.programs if p.seconds is not None and self.contains(p, path) and (r := self.rank(p, path)) is not None]
        found, spent = [], 0
        for rank, seconds, _, program in sorted(ranked):
            spent += seconds if rank == 2 else 0
            if spent <= OTHERS:
                found.append(program)
        return found

    def measure(self, pool, say):
        """Runs each as it is. One that fails here tells nothing about a mutant."""
        try:
            with open(self.times, encoding='utf-8') as f:
                known = json.load(f)
        except (OSError, ValueError):
            known = {}
        todo = [p for p in self.programs if known.get(p.name, {}).get('built') != os.stat(p.path).st_mtime_ns]
        for program, seconds in zip(todo, pool.map(lambda p: timed([*self.prefix, p.path]), todo)):
            known[program.name] = {'built': os.stat(program.path).st_mtime_ns, 'seconds': seconds}
        for program in self.programs:
            program.seconds = known[program.name]['seconds']
            if program.seconds is None:
                say(f'left out, it fails without a mutant: {program.name}')
        with open(self.times, 'w', encoding='utf-8') as f:
            json.dump(known, f)


def timed(command):
    """How long it takes; None when it fails, once and once more."""
    for _ in range(2):
        begin = time.monotonic()
        if run_test(command, FIRST_LIMIT):
            return round(time.monotonic() - begin, 3)
    return None


class Bench:
    """One build folder: compiles mutants, links its tests with them, runs these."""

    def __init__(self, build, confined=True):
        self.commands, self.tests = Commands(build), Tests(build, confined)

    def find_killer(self, folder, path, out):
        """The first test that fails with a mutant, or None."""
        return next((p for p in self.tests.select(path) if self.kills(p, folder, path, out)), None)

    def kills(self, program, folder, path, out):
        linked, objects = os.path.join(folder, 'test'), list(program.objects)
        if program.includes(path):
            objects[0] = os.path.join(folder, 'test.o')
            if not self.commands.compile(folder, program.source(), objects[0]):
                raise RuntimeError(f'{program.source()} does not compile with {path}')
        else:
            objects.append(out)
        self.commands.link(linked, objects, program.archives)
        return not run_test([*self.tests.prefix, linked], LIMIT + 10 * program.seconds)


class Simulator(Program):
    """The simulator's program. Some calls of libc are wrapped when it is linked: tests/sim/wrap.txt."""

    def __init__(self, bench):
        self.bench, path = bench, f'{bench.commands.build}/sim/sim'
        self.there = os.path.exists(path + '.map')
        if self.there:
            super().__init__(bench.commands.build, path)
            with open('tests/sim/wrap.txt', encoding='utf-8') as f:
                self.wraps = [f'-Wl,--wrap={name}' for name in f.read().split()]
            self.there = self.passes(path)

    def includes(self, path):
        return False

    def passes(self, path):
        return run_test([*self.bench.tests.prefix, path, '--seeds', str(SIM_SEEDS), '--jobs', '1'], SIM_LIMIT)

    def kills(self, folder, path, out):
        if not self.there or not self.bench.tests.contains(self, path):
            return False
        linked = os.path.join(folder, 'sim')
        self.bench.commands.link(linked, [*self.wraps, *self.objects, out], self.archives)
        return not self.passes(linked)


class Judge:
    """Decides about mutants, several at a time: compiles for each bench in turn, the first says what counts at all."""

    def __init__(self, benches):
        self.benches = benches
        self.work = tempfile.TemporaryDirectory(prefix='mutants.', dir='/dev/shm' if os.path.isdir('/dev/shm') else None)
        self.originals, self.simulator, self.lock = {}, None, threading.Lock()

    def close(self):
        self.work.cleanup()

    def decide(self, mutant, source):
        """(verdict, what killed it)"""
        path = mutant.path
        with tempfile.TemporaryDirectory(dir=self.work.name) as folder:
            self.write(folder, path, mutant.apply_to(source))
            out = os.path.join(folder, 'mutant.o')
            for i, bench in enumerate(self.benches):
                if not bench.commands.compile(folder, path, out):
                    return REFUSED, ''
                if i == 0 and self.read(out) == self.original(path, source):
                    return EQUIVALENT, 'the object is the same'
                if killer := bench.find_killer(folder, path, out):
                    return KILLED, killer.path
                if i == 0 and room_of(path) in SIMULATED and self.sim_kills(folder, path, out):
                    return KILLED, 'the simulator'
            return SURVIVED, ', '.join(p.name for p in self.benches[0].tests.select(path)) or 'no unit test has it'

    @staticmethod
    def write(folder, path, text):
        """The file as a mutant, whose places are those of the tree."""
        place = os.path.join(folder, path)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with open(place, 'w', encoding='utf-8') as f:
            f.write(f'#line 1 "{path}"\n{text}')

    @staticmethod
    def read(path):
        with open(path, 'rb') as f:
            return f.read()

    def original(self, path, source):
        """The object of the file as it is, compiled in the same way."""
        with self.lock:
            if path not in self.originals:
                with tempfile.TemporaryDirectory(dir=self.work.name) as folder:
                    self.write(folder, path, source)
                    out = os.path.join(folder, 'original.o')
                    if not self.benches[0].commands.compile(folder, path, out):
                        raise RuntimeError(f'{path} does not compile')
                    self.originals[path] = self.read(out)
            return self.originals[path]

    def sim_kills(self, folder, path, out):
        """The simulator, where there is one in the build folder, and it contains the object."""
        with self.lock:
            if self.simulator is None:
                self.simulator = Simulator(self.benches[0])
        return self.simulator.kills(folder, path, out)
