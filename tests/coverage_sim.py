#!/usr/bin/env python3
"""Lines and branches of the core that the simulator's lives took, in a build folder whose core was built with --coverage.

Usage: tests/coverage_sim.py BUILD [--functions N] [--left [PART]] [--least PERCENT]

Prints a table by room; with --functions the N functions with the most branches that no life took; with --left each line that has
some, and its reason from tests/sim/coverage.txt (PART: only of files whose name has it). Fails when a room has less than PERCENT of
its branches, and when a row of tests/sim/coverage.txt is stale: its text is not in exactly one line of the file.
"""
import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path.cwd()
ROOMS = ('config', 'publish', 'version', 'push')
# what speaks ZeroMQ, and the publisher's side of it, is not part of the simulator
ELSEWHERE = tuple(f'agent/push/{name}.c' for name in ('context', 'peer_guard', 'publisher', 'sockets', 'subscriber', 'zmtp'))
REASONS = 'tests/sim/coverage.txt'


class Code:
    """What was taken of one file, or of one room: [taken, all] of lines and of branches."""

    def __init__(self):
        self.lines, self.branches = [0, 0], [0, 0]

    def add(self, other):
        for mine, theirs in ((self.lines, other.lines), (self.branches, other.branches)):
            mine[0] += theirs[0]
            mine[1] += theirs[1]


def read_notes(build):
    """What gcov says of the rooms' objects: a list of files."""
    notes = sorted(str(p) for room in ROOMS for p in (build / 'agent' / room).rglob('*.gcno'))
    out = subprocess.run(['gcov', '--branch-probabilities', '--json-format', '--stdout', *notes], check=True, stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL).stdout
    return [file for line in out.splitlines() if line for file in json.loads(line)['files']]


def read_lines(build):
    """({file: {line: (executions, [branch taken, ...])}}, {file: [(first line, last line, function)]})"""
    lines, functions = collections.defaultdict(dict), {}
    for file in read_notes(build):
        path = os.path.relpath(ROOT / file['file'], ROOT)
        if not path.endswith('.c') or not path.startswith('agent/') or path in ELSEWHERE:
            continue
        functions[path] = [(f['start_line'], f['end_line'], f['name']) for f in file['functions']]
        for line in file['lines']:
            lines[path][line['line_number']] = line['count'], [b['count'] > 0 for b in line['branches'] if not b['throw']]
    return lines, functions


def count_lines(lines):
    """Of some lines."""
    code = Code()
    for count, branches in lines:
        code.lines[0] += count > 0
        code.lines[1] += 1
        code.branches[0] += sum(branches)
        code.branches[1] += len(branches)
    return code


def print_row(name, code):
    print(f'{name:<28}', *(f'{taken:6d}/{count:<5d}{100 * taken / max(1, count):6.1f} %' for taken, count in (code.lines, code.branches)),
          f'{code.branches[1] - code.branches[0]:7d}')


def print_table(lines):
    """By file and room; returns {room: Code}."""
    rooms, total = collections.defaultdict(Code), Code()
    for path, rows in sorted(lines.items()):
        code = count_lines(rows.values())
        print_row(path[len('agent/'):], code)
        rooms[path.split('/')[1]].add(code)
    print(f'{"room":<28}{"lines":>13}{"":>8}{"branches":>15}{"":>8}{"left":>10}')
    for room, code in sorted(rooms.items()):
        print_row(room, code)
        total.add(code)
    print_row('total', total)
    return rooms


def print_functions(lines, functions, most):
    """The largest holes."""
    left = []
    for path, rows in functions.items():
        for first, last, name in rows:
            code = count_lines(row for number, row in lines[path].items() if first <= number <= last)
            left.append((code.branches[1] - code.branches[0], code.lines[1] - code.lines[0], f'{path}:{first} {name}'))
    for branches, missing, name in sorted(left, reverse=True)[:most]:
        print(f'{branches:5d} branches, {missing:3d} lines  {name}')


def read_reasons():
    """({(file, line): reason}, [what is wrong])"""
    reasons, wrong = {}, []
    if not os.path.exists(REASONS):
        return reasons, wrong
    for row in pathlib.Path(REASONS).read_text(encoding='utf-8').splitlines():
        if not row or row.startswith('#'):
            continue
        place, reason = row.split(' | ', 1)
        file, text = place.split(' ', 1)
        found = [n for n, line in enumerate(pathlib.Path(file).read_text(encoding='utf-8').splitlines(), 1) if text.strip() in line]
        if len(found) == 1:
            reasons[file, found[0]] = reason
        else:
            wrong.append(f'{REASONS}: in {len(found)} lines: {row}')
    return reasons, wrong


def print_left(lines, reasons, part):
    for path, rows in sorted(lines.items()):
        source = pathlib.Path(path).read_text(encoding='utf-8').splitlines()
        for number, (count, branches) in sorted(rows.items()):
            if part in path and (not count or not all(branches)):
                what = f'{len(branches) - sum(branches)} of {len(branches)}' if count else 'never'
                print(f'{path}:{number:<5d} {what:<8} {source[number - 1].strip():<70} {reasons.get((path, number), "")}')


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('build', type=pathlib.Path)
    parser.add_argument('--functions', type=int, default=0)
    parser.add_argument('--left', nargs='?', const='')
    parser.add_argument('--least', type=float, default=0)
    options = parser.parse_args()
    lines, functions = read_lines(options.build)
    reasons, wrong = read_reasons()
    if options.left is not None:
        print_left(lines, reasons, options.left)
    if options.functions:
        print_functions(lines, functions, options.functions)
    rooms = print_table(lines)
    wrong += [f'{room}: less than {options.least} % of the branches' for room, code in rooms.items()
              if 100 * code.branches[0] < options.least * code.branches[1]]
    print(*wrong, sep='\n', end='\n' if wrong else '')
    sys.exit(bool(wrong))


if __name__ == '__main__':
    main()
