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
RELEASES = re.compile(r'free|fini|clear|close|unref|destroy|delete|cleanup|release|decref|remove|stop|drop|forget')
FAILED = re.compile(rb'^\[ +(?:FAILED|ERROR) ', re.M)  # as cmocka says it
CONFINE = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'confine.sh')
SIMULATED = ('config', 'publish', 'version', 'push', 'pull')
SIM_SEEDS = 300
SIM_LIMIT = 120
FIRST_LIMIT = 120  # seconds for a test as it is; a mutant has ten times what that took, and some
LIMIT = 10


def room_of(path):
    parts = path.split('/')
    return parts[0] if parts[0] == 'lib' or len(parts) == 2 else parts[1]


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
    """How the build compiles and links, from the environment that the Makefile makes."""

    def __init__(self, build, env):
        self.build, self.root = build, os.getcwd()
        self.compiler = [w for w in shlex.split(env['MUTANTS_CC']) if not w.startswith(('-MMD', '-MP', '-W'))]
        self.linker = [w for w in shlex.split(env['MUTANTS_LD']) if not w.startswith('-Wl,-Map')]
        self.libraries = shlex.split(env['MUTANTS_LIBS'])

    def compile(self, folder, path, output, more=()):
        """Compiles what lies in folder under this path, or where nothing does the tree's; whether the compiler took it."""
        cc, *flags = self.compiler
        mine = os.path.join(folder, path)
        source = mine if os.path.exists(mine) else path
        places = [w for f in (os.path.join(folder, 'agent'), folder, os.path.dirname(path)) for w in ('-iquote', f)]
        command = [cc, *places, *flags, *STRICT, *more, '-c', '-o', output, source]
        return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0

    def link(self, output, objects, archives, more=()):
        command = [*self.linker, *more, '-o', output, *objects, *archives, *self.libraries]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
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
        self.seconds, self.leaks = None, None

    def source(self):
        return f'tests/unit/{self.name}.c'

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
        """Whether a test speaks of a file: its header, or a function."""
        header, text = path[path.index('/') + 1:-2] + '.h', program.text()
        return f'"{header}"' in text or f'"lib/{header}"' in text or any(
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
        """The programs to run for a file, those first that probably kill, then the quick ones."""
        ranked = [(r, p.seconds, p.name, p) for p in self.programs if p.seconds is not None and self.contains(p, path) and (r := self.rank(p, path)) is not None]
        return [p for *_, p in sorted(ranked)]

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


class Judge:
    """Decides about mutants, several at a time."""

    def __init__(self, commands, tests, leaks):
        self.commands, self.tests, self.leaks = commands, tests, leaks
        self.work = tempfile.TemporaryDirectory(prefix='mutants.', dir='/dev/shm' if os.path.isdir('/dev/shm') else None)
        self.originals, self.lock = {}, threading.Lock()

    def close(self):
        self.work.cleanup()

    def decide(self, mutant, source):
        """(verdict, what killed it)"""
        with tempfile.TemporaryDirectory(dir=self.work.name) as folder:
            self.write(folder, mutant.path, mutant.apply_to(source))
            out = os.path.join(folder, 'mutant.o')
            if not self.commands.compile(folder, mutant.path, out):
                return REFUSED, ''
            if self.read(out) == self.original(mutant.path, source):
                return EQUIVALENT, 'the object is the same'
            programs = self.tests.select(mutant.path)
            for program in programs:
                if self.kills(program, folder, mutant.path, out):
                    return KILLED, program.name
            if self.leaks and mutant.operator == 'call' and RELEASES.search(mutant.before):
                for program in programs:
                    if self.leaks_in(program, folder, mutant.path, out):
                        return KILLED, program.name + ' (leak)'
            if room_of(mutant.path) in SIMULATED and self.sim_kills(folder, out):
                return KILLED, 'sim'
            return SURVIVED, ', '.join(p.name for p in programs[:4]) or 'no unit test has it'

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
                    if not self.commands.compile(folder, path, out):
                        raise RuntimeError(f'{path} does not compile')
                    self.originals[path] = self.read(out)
            return self.originals[path]

    def build_test(self, program, folder, path, out, name, more=()):
        """Links a test with the mutant; its place."""
        linked, objects = os.path.join(folder, name), list(program.objects)
        if program.includes(path):
            objects[0] = os.path.join(folder, 'test.o')
            if not self.commands.compile(folder, program.source(), objects[0]):
                raise RuntimeError(f'{program.source()} does not compile with {path}')
        elif f'{self.commands.build}/{path[:-2]}.o' in objects:  # the object itself is named, not an archive
            objects = [out if o == f'{self.commands.build}/{path[:-2]}.o' else o for o in objects]
        else:
            objects.append(out)
        self.commands.link(linked, objects, program.archives, more)
        return linked

    def kills(self, program, folder, path, out):
        linked = self.build_test(program, folder, path, out, 'test')
        return not run_test([*self.tests.prefix, linked], LIMIT + 10 * program.seconds)

    def leaks_in(self, program, folder, path, out):
        """Whether LeakSanitizer sees a leak that it does not see without the mutant."""
        with self.lock:
            if program.leaks is None:
                clean = os.path.join(folder, 'clean')
                self.commands.link(clean, program.objects, program.archives, ['-fsanitize=leak'])
                program.leaks = not run_test([*self.tests.prefix, clean], FIRST_LIMIT)
        if program.leaks:
            return False
        linked = self.build_test(program, folder, path, out, 'leak', ['-fsanitize=leak'])
        return not run_test([*self.tests.prefix, linked], LIMIT + 10 * program.seconds)

    def sim_kills(self, folder, out):
        """The simulator, where there is one in the build folder."""
        path = f'{self.commands.build}/sim/sim'
        if not os.path.exists(path + '.map'):
            return False
        with open(path + '.map', encoding='utf-8') as f:
            loaded = [p for p in LOADED.findall(f.read()) if p.startswith(self.commands.build + '/')]
        linked = os.path.join(folder, 'sim')
        self.commands.link(linked, [p for p in loaded if p.endswith('.o')] + [out], [p for p in loaded if p.endswith('.a')])
        return not run_test([*self.tests.prefix, linked], SIM_LIMIT, env=dict(os.environ, SEEDS=str(SIM_SEEDS)))
