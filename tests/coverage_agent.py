#!/usr/bin/env python3
"""Line coverage of agent/ by the unit tests that ran in a build folder with --coverage: a table by room, and the total.

Usage: tests/coverage_agent.py BUILD [--functions N]

A line counts as covered when any object that has it ran it: a test may include a .c file of agent/ by itself, and headers are in many
objects. With --functions: the N functions with the most lines that no test ran, too.
"""
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path.cwd()


def read_objects(notes):
    """What gcov says of some objects, as JSON documents."""
    # the names of the counts follow from those of the notes
    out = subprocess.run(['gcov', '--json-format', '--stdout', *notes], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    return [json.loads(line) for line in out.splitlines() if line]


def read_coverage(build):
    """({file: {line: executions}}, {(file, function): (first line, last line)})"""
    notes = sorted(str(p) for part in ('agent', 'tests/unit') for p in (build / part).rglob('*.gcno'))
    lines, functions = {}, {}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for objects in pool.map(read_objects, [notes[i:i + 20] for i in range(0, len(notes), 20)]):
            for file in (f for o in objects for f in o['files']):
                path = os.path.relpath(ROOT / file['file'], ROOT)
                if not path.startswith('agent/'):
                    continue
                counts = lines.setdefault(path, {})
                for line in file['lines']:
                    number = line['line_number']
                    counts[number] = counts.get(number, 0) + line['count']
                for f in file['functions']:
                    functions[path, f['name']] = f['start_line'], f['end_line']
    return lines, functions


def room_of(path):
    return os.path.dirname(path)[len('agent/'):] or 'agent'


def print_table(lines):
    rooms = {}
    for path, counts in sorted(lines.items()):
        room = rooms.setdefault(room_of(path), [0, 0])
        room[0] += sum(1 for n in counts.values() if n)
        room[1] += len(counts)
    print(f'{"room":<18}{"lines":>14}{"":>10}{"left":>7}')
    for room, (taken, count) in sorted(rooms.items()):
        print(f'{room:<18}{taken:7d}/{count:<6d}{100 * taken / count:8.1f} %{count - taken:7d}')
    taken, count = (sum(column) for column in zip(*rooms.values()))
    print(f'line coverage of agent/ by unit tests: {100 * taken / count:.1f} %')


def print_functions(lines, functions, most):
    left = []
    for (path, name), (first, last) in functions.items():
        missing = sum(1 for number, n in lines[path].items() if first <= number <= last and not n)
        left.append((missing, path, first, name))
    for missing, path, first, name in sorted(left, reverse=True)[:most]:
        print(f'{missing:5d} {path}:{first} {name}')


def main(args):
    lines, functions = read_coverage(pathlib.Path(args[0]))
    if args[1:2] == ['--functions']:
        print_functions(lines, functions, int(args[2]))
    print_table(lines)


if __name__ == '__main__':
    main(sys.argv[1:])
