#!/usr/bin/env python3
"""Runs the benchmarks, or those of two versions in turn.

Usage: run.py measure [NAME...]           all, or those of these names; the figures with a target go into RESULTS.md if it was all
       run.py compare REV [NAME...]       REV and the working tree in turn, $ROUNDS times each (5)

A benchmark says its figures that have a target in lines of one form (bench.h, place.py), "PASS  what: 1.2 ms (target: at most 2.0)"; MISS is a
target that was missed. A figure differs, in a comparison, if each round of one version is beyond each round of the other: with five rounds that
happens by chance once in 126 figures that are the same. Exit status 1: a benchmark failed. $PULLET_BUILD names the build directory.
"""
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RESULTS = os.path.join(ROOT, 'tests', 'bench', 'RESULTS.md')
BUILD = os.environ.get('PULLET_BUILD', 'build')
TARGET = re.compile(r'(PASS|MISS)  (.+): ([0-9.]+) ?(\S*) \(target: at (most|least) ([0-9.]+)\)$')
SCRIPTS = ('beside', 'etcd', 'growth')  # the others are programs
PROBES = {'etcd_probe': 'etcd_probe', 'turns': 'turns.so'}  # what those use: sources, and what is built of them
BEGIN, END = '<!-- written by make bench -->\n', '<!-- end -->\n'


class Figure:
    def __init__(self, bench, line):
        self.bench = bench
        self.verdict, self.what, value, self.unit, self.bound, limit = TARGET.match(line).groups()
        self.value, self.limit = float(value), float(limit)

    def key(self):
        return self.bench, self.what, self.unit


def names(root):
    files = os.listdir(os.path.join(root, 'tests', 'bench'))
    programs = sorted(f[len('bench_'):-len('.c')] for f in files if f.startswith('bench_') and f.endswith('.c'))
    return programs + [name for name in SCRIPTS if f'{name}.py' in files]


def run(root, build, name, show):
    """The figures of one benchmark in a tree; None if it failed."""
    script = os.path.join('tests', 'bench', f'{name}.py')
    command = [sys.executable, script] if name in SCRIPTS else [os.path.join(build, 'bench', f'bench_{name}')]
    figures = []
    with subprocess.Popen(command, cwd=root, env=dict(os.environ, PULLET_BUILD=build), stdout=subprocess.PIPE, text=True,
                          stderr=None if show else subprocess.DEVNULL) as process:
        for line in process.stdout:
            if show:
                print(line, end='', flush=True)
            if TARGET.match(line.rstrip()):
                figures.append(Figure(name, line.rstrip()))
    return figures if process.returncode == 0 else None


def revision(root):
    text = subprocess.run(['git', 'describe', '--always', '--dirty'], cwd=root, stdout=subprocess.PIPE, text=True, check=False).stdout.strip()
    return text or 'unknown'


def write_results(figures, seconds):
    rows = [f'| {f.what} | {f.value:g} {f.unit} | at {f.bound} {f.limit:g} | {"" if f.verdict == "PASS" else "MISS"} | {f.bench} |\n' for f in figures]
    head = (f'`make bench` of {revision(ROOT)}, {time.strftime("%Y-%m-%d", time.gmtime())}: {os.cpu_count()} processors, Linux {os.uname().release}, '
            f'{seconds:.0f} s, load at the end {os.getloadavg()[0]:.1f}.\n\n')
    with open(RESULTS, encoding='utf-8') as f:
        before, _, rest = f.read().partition(BEGIN)
        _, _, after = rest.partition(END)
    with open(RESULTS, 'w', encoding='utf-8') as f:
        f.write(before + BEGIN + head + '| what | figure | target | | by |\n|---|---|---|---|---|\n' + ''.join(rows) + END + after)


def measure(chosen):
    figures, failed, begin = [], [], time.monotonic()
    for name in chosen or names(ROOT):
        started = time.monotonic()
        of_it = run(ROOT, BUILD, name, True)
        print(f'({name}: {time.monotonic() - started:.0f} s)\n')
        figures += of_it or []
        failed += [name] if of_it is None else []
    missed = [f for f in figures if f.verdict == 'MISS']
    seconds = time.monotonic() - begin
    print(f'\n{len(figures)} targets, {len(missed)} missed, {seconds:.0f} s')
    for f in missed:
        print(f'MISS  {f.bench}: {f.what}: {f.value:g} {f.unit} (target: at {f.bound} {f.limit:g})')
    if failed:
        sys.exit(f'run.py: failed: {", ".join(failed)}')
    if not chosen:
        write_results(figures, seconds)


def build(root, chosen):
    """The programs of another version, by its own Makefile."""
    programs = [name for name in chosen if name not in SCRIPTS]
    probes = [made for source, made in PROBES.items() if os.path.exists(os.path.join(root, 'tests', 'bench', f'{source}.c'))]
    targets = [os.path.join('build', 'bench', name) for name in [f'bench_{p}' for p in programs] + probes]
    subprocess.run(['make', '-s', f'-j{os.cpu_count()}', 'all', *targets], cwd=root, check=True, env={k: v for k, v in os.environ.items() if k not in (
        'MAKEFLAGS', 'MAKELEVEL', 'MFLAGS', 'SAN')})


def verdict(old, new):
    """What can be said of two series of a figure of which less is better."""
    if max(new) < min(old):
        return 'better'
    return 'worse' if min(new) > max(old) else ''


def show_comparison(old, new):
    print(f'\n{"":58} {"before":>22} {"now":>22} {"ratio":>6}')
    for key, series in new.items():
        before, now = [f.value for f in old.get(key, [])], [f.value for f in series]
        if not before:
            continue
        middles = [statistics.median(values) for values in (before, now)]
        cells = [f'{middle:g} ({min(values):g}-{max(values):g})' for middle, values in zip(middles, (before, now))]
        said = verdict(before, now) if series[0].bound == 'most' else verdict(now, before)
        ratio = f'{middles[1] / middles[0]:6.2f}' if middles[0] else '     -'
        print(f'{key[1][:58]:58} {cells[0]:>22} {cells[1]:>22} {ratio} {key[2]:4} {said}'.rstrip())
    alone = [key[1] for key in new if key not in old] + [key[1] for key in old if key not in new]
    if alone:
        print(f'in one of the two only: {"; ".join(alone)}')


def compare(rev, chosen):
    rounds = int(os.environ.get('ROUNDS', '5'))
    with tempfile.TemporaryDirectory(prefix='pullet-bench-') as scratch:
        tree = os.path.join(scratch, 'before')
        subprocess.run(['git', 'worktree', 'add', '--quiet', '--detach', tree, rev], cwd=ROOT, check=True)
        try:
            chosen = [name for name in chosen or names(ROOT) if name in names(tree)]
            build(tree, chosen)
            sides = [(tree, 'build', {}), (ROOT, BUILD, {})]
            for turn in range(rounds):
                for name in chosen:
                    for root, where, series in sides if turn % 2 == 0 else sides[::-1]:
                        for figure in run(root, where, name, False) or []:
                            series.setdefault(figure.key(), []).append(figure)
                print(f'round {turn + 1} of {rounds}', flush=True)
            show_comparison(sides[0][2], sides[1][2])
        finally:
            subprocess.run(['git', 'worktree', 'remove', '--force', tree], cwd=ROOT, check=False)


def main():
    if sys.argv[1:2] == ['measure']:
        measure(sys.argv[2:])
    elif sys.argv[1:2] == ['compare'] and len(sys.argv) > 2:
        compare(sys.argv[2], sys.argv[3:])
    else:
        sys.exit(__doc__)


if __name__ == '__main__':
    main()
