#!/usr/bin/env python3
"""Each binding beside its own language's usual ways to a configuration value: a map that a file was parsed into once, an environment
variable, reading and parsing the file at each read. Prints one table; $PULLET_BUILD names the build directory.

All read the same: 1,000 keys, of them 16 hot ones in turn, values of 24 bytes, as the string of that language. A program in
languages/ is called as PROGRAM DIRECTORY KEY..., with all keys in its environment too; the directory has config.snap and config.gen
as the agent published them, and config.yaml, config.json and config.properties. It prints six medians of five rounds, in
nanoseconds a read (loop and call of a function included), and what it parsed. Time is the processor's for the process (in
Java, for the thread), so that other work on the machine counts less.
"""
import functools
import http.server
import json
import os
import random
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.join(ROOT, os.environ.get('PULLET_BUILD', 'build'))
LANGUAGES = os.path.join(HERE, 'languages')
sys.path[:0] = [LANGUAGES, HERE]
import build  # noqa: E402
from place import target  # noqa: E402
KEYS, HOT = 1000, 16
TARGETS = {'Python': 120 / 18, 'Node.js': 120 / 18, 'Go': 60 / 18, 'Java': 60 / 18}  # times C, which was 18 ns when these were set
COLUMNS = ('binding ns', 'key ns', 'refresh ns', 'map ns', 'environment ns', 'read + parse us', 'of')


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def source(name):
    return os.path.join(LANGUAGES, name)


def run(*command, **kw):
    return subprocess.run(command, check=True, **kw)


def publish(folder, values):
    """The files, and the snapshot of them, by the agent."""
    with open(os.path.join(folder, 'config.yaml'), 'w', encoding='utf-8') as f:
        f.writelines(f'{k}: {v}\n' for k, v in values.items())
    with open(os.path.join(folder, 'config.properties'), 'w', encoding='utf-8') as f:
        f.writelines(f'{k}={v}\n' for k, v in values.items())
    with open(os.path.join(folder, 'config.json'), 'w', encoding='utf-8') as f:
        json.dump(values, f, indent=1)
    handler = functools.partial(Quiet, directory=folder)
    with http.server.ThreadingHTTPServer(('127.0.0.1', 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with open(os.path.join(folder, 'pullet.yaml'), 'w', encoding='utf-8') as f:
            f.write(f'agent: {{state_dir: {folder}/state, runtime_dir: {folder}}}\n'
                    f'configs: {{config: {{url: "http://127.0.0.1:{server.server_port}/config.yaml"}}}}\n')
        run(os.path.join(BUILD, 'pulletd'), '-c', f.name, '--once', '--log-level', 'warn', env={})
        server.shutdown()


def measure(prepare, name, flags, folder, values, hot):
    """The figures and what was parsed, or None."""
    tmp = os.path.join(folder, prepare.__name__)
    os.mkdir(tmp)
    try:
        command, extra = prepare(tmp, source(name), *flags)
        env = dict(values, PATH=os.environ['PATH'], **extra)
        done = run(*command, folder, *hot, env=env, stdout=subprocess.PIPE, text=True)
    except (OSError, subprocess.CalledProcessError) as e:
        print(f'{prepare.__name__}: {e}', file=sys.stderr)
        return None
    *figures, parsed = done.stdout.strip().split(' ', 6)
    return [float(x) for x in figures], parsed


def main():
    chosen = sys.argv[1:]
    known = {'C': (build.c, 'bench.c', ['-ljansson']), 'C++': (build.cpp, 'bench.cpp', ['-lyaml']), 'Python': (build.python, 'bench.py', []),
             'Python by ctypes': (build.python_ctypes, 'bench.py', []), 'Node.js': (build.node, 'bench.js', []), 'Go': (build.go, 'bench.go', []), 'Java': (build.java, 'Bench.java', [])}
    if not all(name in known for name in chosen):
        sys.exit(f'usage: languages.py [{" | ".join(known)}]...')
    pick = random.Random(1)
    values = {f'service{pick.randrange(100)}_pool_limit_{i}': f'v{pick.getrandbits(92):023x}' for i in range(KEYS)}
    hot, bad, reads = pick.sample(list(values), HOT), 0, {}
    with tempfile.TemporaryDirectory(prefix='bench-languages-', dir='/dev/shm') as folder:
        publish(folder, values)
        print(f'{"language":16}' + ''.join(f' {name:>15}' for name in COLUMNS[:-1]) + f'  {COLUMNS[-1]}', flush=True)
        for name in chosen or known:
            measured = measure(*known[name], folder, values, hot)
            bad += measured is None
            if measured:
                figures, parsed = measured
                figures[-1] /= 1000
                reads[name] = figures[0]
                print(f'{name:16}' + ''.join(f' {x:15.1f}' for x in figures) + f'  {parsed}', flush=True)
    for name, limit in TARGETS.items():
        if {name, 'C'} <= set(reads):
            target(f'a read in {name}, beside C', reads[name] / reads['C'], limit)
    return 1 if bad else 0


sys.exit(main())
