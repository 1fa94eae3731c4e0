#!/usr/bin/env python3
"""Coverage of agent/ by the unit tests that ran in a build folder with --coverage: lines and branches, a table by room, and the total.

Usage: tests/coverage_agent.py BUILD [--functions N]

A line or a branch counts as covered when any object that has it ran it: a test may include a .c file of agent/ by itself, and headers are in
many objects. With --functions: the N functions with the most lines that no test ran, too. The files that a publication stands on are shown by
themselves, with the lines whose branches no test took.
"""
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path.cwd()
PUBLISHING = ('publish/publish.c', 'publish/target.c', 'publish/file_set.c', 'version/store.c', 'verify/verify.c')


def read_objects(notes):
    """What gcov says of some objects, as JSON documents."""
    # the names of the counts follow from those of the notes
    out = subprocess.run(['gcov', '--branch-probabilities', '--json-format', '--stdout', *notes], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    return [json.loads(line) for line in out.splitlines() if line]


def read_coverage(build):
    """({file: {line: executions}}, {(file, function): (first line, last line)}, {file: {line: executions of each branch}})"""
    notes = sorted(str(p) for part in ('agent', 'tests/unit') for p in (build / part).rglob('*.gcno'))
    lines, functions, branches = {}, {}, {}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for objects in pool.map(read_objects, [notes[i:i + 20] for i in range(0, len(notes), 20)]):
            for file in (f for o in objects for f in o['files']):
                path = os.path.relpath(ROOT / file['file'], ROOT)
                if not path.startswith('agent/'):
                    continue
                counts, ways = lines.setdefault(path, {}), branches.setdefault(path, {})
                for line in file['lines']:
                    number = line['line_number']
                    counts[number] = counts.get(number, 0) + line['count']
                    add_branches(ways, number, [b['count'] for b in line['branches']])
                for f in file['functions']:
                    functions[path, f['name']] = f['start_line'], f['end_line']
    return lines, functions, branches


def add_branches(ways, number, counts):
    """Of one object, to those of others, which have the same branches unless it was compiled in another way: then those that ran more count."""
    before = ways.get(number, [])
    if len(before) == len(counts):
        ways[number] = [a + b for a, b in zip(before, counts)]
    elif sum(map(bool, counts)) >= sum(map(bool, before)):
        ways[number] = counts


def room_of(path):
    return os.path.dirname(path)[len('agent/'):] or 'agent'


def count_file(counts, ways):
    """Lines taken, lines, branches taken, branches."""
    each = [n for line in ways.values() for n in line]
    return sum(map(bool, counts.values())), len(counts), sum(map(bool, each)), len(each)


def percent(part, whole):
    return 100 * part / whole if whole else 100


def print_row(name, figures):
    taken, count, ways, branches = figures
    print(f'{name:<22}{taken:7d}/{count:<6d}{percent(taken, count):6.1f} %{count - taken:6d}{ways:8d}/{branches:<6d}{percent(ways, branches):6.1f} %{branches - ways:6d}')


def print_table(lines, branches):
    rooms = {}
    for path, counts in sorted(lines.items()):
        room = rooms.get(room_of(path), (0, 0, 0, 0))
        rooms[room_of(path)] = tuple(a + b for a, b in zip(room, count_file(counts, branches[path])))
    print(f'{"room":<22}{"lines":>14}{"":>8}{"left":>6}{"branches":>15}{"":>8}{"left":>6}')
    for room, figures in sorted(rooms.items()):
        print_row(room, figures)
    for name in PUBLISHING:
        path = 'agent/' + name
        print_row(name, count_file(lines[path], branches[path]))
        left = sorted(number for number, ways in branches[path].items() if not all(ways))
        print(f'  branches left in lines: {" ".join(map(str, left)) or "none"}')
    taken, count, ways, each = (sum(column) for column in zip(*rooms.values()))
    print(f'branch coverage of agent/ by unit tests: {percent(ways, each):.1f} %')
    print(f'line coverage of agent/ by unit tests: {percent(taken, count):.1f} %')


def print_functions(lines, functions, most):
    left = []
    for (path, name), (first, last) in functions.items():
        missing = sum(1 for number, n in lines[path].items() if first <= number <= last and not n)
        left.append((missing, path, first, name))
    for missing, path, first, name in sorted(left, reverse=True)[:most]:
        print(f'{missing:5d} {path}:{first} {name}')


def main(args):
    lines, functions, branches = read_coverage(pathlib.Path(args[0]))
    if args[1:2] == ['--functions']:
        print_functions(lines, functions, int(args[2]))
    print_table(lines, branches)


if __name__ == '__main__':
    main(sys.argv[1:])
