#!/usr/bin/env python3
"""Changes the code at random places, and sees that a test fails: what no test notices, none of them tests.

Usage: make mutants [SEED=1] [COUNT=500] [ROOM="config lib agent/pull/watch.c"] [LEAKS=0] [AGAIN=1]     (root: the tests run in namespaces)

All mutants of lib/ and agent/, or of the rooms and files that are named, are listed (operators.py says which there are), COUNT of them
are drawn by the SEED. Each is compiled; one that the compiler refuses does not count, nor does one whose object is the same as that of
the file as it is. Then the unit tests that contain the object run, first the file's own, then those of its room, then those that name it:
the first that fails kills the mutant, as does one that takes ten times as long as without it. What survives that is run once more
where AddressSanitizer, LeakSanitizer and UBSan look on, as in .ci/run, unless LEAKS=0. The simulator runs for the rooms that it is about.

Prints each survivor with its place, and a table by room. Survivors are kept in build-mutants/survivors.txt; AGAIN=1 judges only these.
A survivor that changes nothing anybody could see is named in equivalent.txt, in the same form, with a line that says why:

    lib/wheel.c wheel_next compare
    - the line as it is
    + the line in the mutant
    = the reason

Such a mutant is not judged, and counts as equivalent.
"""
import argparse
import collections
import concurrent.futures
import glob
import os
import random
import sys

import judge
import operators

HERE = os.path.dirname(os.path.abspath(__file__))
EQUIVALENTS = os.path.join(HERE, 'equivalent.txt')
JOBS = 2
COLUMNS = (judge.REFUSED, judge.EQUIVALENT, judge.KILLED, judge.SURVIVED)


def read_keys(path):
    """{key: reason} of a file of survivors"""
    found = {}
    with open(path, encoding='utf-8') as f:
        entries = f.read().split('\n\n')
    for entry in entries:
        lines = [line for line in entry.splitlines() if line and not line.startswith('#')]
        if lines:
            place, before, after, *reason = lines
            found[(*place.split(' '), before[2:], after[2:])] = reason[0][2:] if reason else ''
    return found


def write_key(mutant):
    return f'{mutant.path} {mutant.function} {mutant.operator}\n- {mutant.before}\n+ {mutant.after}\n'


def find_sources():
    return sorted(glob.glob('lib/*.c') + glob.glob('agent/**/*.c', recursive=True))


def read_sources(wanted):
    """{path: text} of the rooms and files that are wanted; of all when none is"""
    found = {}
    for path in find_sources():
        if not wanted or path in wanted or judge.room_of(path) in wanted:
            with open(path, encoding='utf-8') as f:
                found[path] = f.read()
    return found


def draw(sources, seed, count, only=None):
    """The mutants to judge, in an order that depends on the seed alone."""
    mutants = [m for path in sorted(sources) for m in operators.find_mutants(path, sources[path])]
    if only is not None:
        return [m for m in mutants if m.key() in only]
    return random.Random(seed).sample(mutants, min(count, len(mutants)))


def judge_all(decider, mutants, sources, named, say):
    """[(mutant, verdict, by)], each survivor printed as soon as it is known"""
    def decide(mutant):
        if mutant.key() in named:
            return judge.EQUIVALENT, 'named'
        return decider.decide(mutant, sources[mutant.path])
    results = []
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        for mutant, (verdict, by) in zip(mutants, pool.map(decide, mutants)):
            results.append((mutant, verdict, by))
            if verdict == judge.SURVIVED:
                say(f'survived  {mutant.path}:{mutant.line} {mutant.function} {mutant.operator}\n  - {mutant.before}\n  + {mutant.after}\n    asked: {by}')
    return results


def make_table(results):
    """Lines: by room, what became of the mutants."""
    rooms = collections.defaultdict(collections.Counter)
    for mutant, verdict, _ in results:
        for room in (judge.room_of(mutant.path), 'all'):
            rooms[room][verdict] += 1
            rooms[room]['made'] += 1
    yield f'{"room":<24}{"made":>7}' + ''.join(f'{c:>12}' for c in COLUMNS) + f'{"percent":>10}'
    for room in sorted(rooms, key=lambda r: (r == 'all', r)):
        n = rooms[room]
        counted = n[judge.KILLED] + n[judge.SURVIVED]
        share = f'{100 * n[judge.KILLED] / counted:.1f}' if counted else '-'
        yield f'{room:<24}{n["made"]:>7}' + ''.join(f'{n[c]:>12}' for c in COLUMNS) + f'{share:>10}'


def say(text):
    print(text, flush=True)


def main():
    options = argparse.ArgumentParser(usage=__doc__)
    options.add_argument('--build', action='append', help='a folder; the first is the one whose objects are compared')
    options.add_argument('--seed', type=int, default=1)
    options.add_argument('--count', type=int, default=500)
    options.add_argument('--again', action='store_true')
    options.add_argument('rooms', nargs='*')
    args = options.parse_args()
    kept = os.path.join(args.build[0], 'survivors.txt')
    sources = read_sources(args.rooms)
    mutants = draw(sources, args.seed, args.count, read_keys(kept) if args.again else None)
    benches = [judge.Bench(build) for build in args.build]
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        for bench in benches:
            bench.tests.measure(pool, say)
    decider = judge.Judge(benches)
    try:
        results = judge_all(decider, mutants, sources, read_keys(EQUIVALENTS), say)
    finally:
        decider.close()
    with open(kept, 'w', encoding='utf-8') as f:
        f.write('\n'.join(write_key(m) for m, verdict, _ in results if verdict == judge.SURVIVED))
    for line in make_table(results):
        say(line)


if __name__ == '__main__':
    sys.exit(main())
