#!/usr/bin/env python3
"""Compares the table of agent/config/decide.c with that of core_model.py, over each combination of facts.

Usage: tests/model/core_same.py PROGRAM [BROKEN...]: tests/model/core_*.c, compiled; with a broken copy of decide.c. Prints TAP without
numbers; false when something is not ok. The same comparison must find each bug that the program can seed in the table, and each broken copy.
"""
import itertools
import os
import subprocess
import sys

import core_model

all_good = True


def say(good, text):
    """Prints a result."""
    global all_good
    all_good = all_good and good
    print(f'{"ok" if good else "not ok"} - core: {text}', flush=True)


def ask(*command):
    """What the program prints."""
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=60).stdout


def answer(s):
    """Two bytes, as core_main.c writes them: the row, gates and outcome; then all rows that hold, as bits."""
    rows = [core_model.ROWS.index(r) + 1 for r in core_model.holding(s)]
    first = (rows[0] if rows else 0) | core_model.may_commit(s, 'pull') << 4 | \
        core_model.OUTCOMES.index(core_model.outcome(s)) << 5 | core_model.may_commit(s, 'probe') << 7
    return first, sum(1 << n - 1 for n in rows)


def in_words(two):
    """Such an answer, for people."""
    first, bits = two
    row = core_model.ROWS[(first & 15) - 1].name if first & 15 else 'nothing'
    return f'{row}; a pull may commit: {first >> 4 & 1}, a probe: {first >> 7}; {core_model.OUTCOMES[first >> 5 & 3]}; rows {bits:08b}'


def describe(situations, theirs, ours):
    """The first difference, as a comment."""
    for n, s in enumerate(situations):
        two = theirs[2 * n:2 * n + 2], ours[2 * n:2 * n + 2]
        if two[0] != two[1] and len(two[0]) == 2:
            print(f'# {s}')
            print(f'# C:      {in_words(two[0])}')
            print(f'# Python: {in_words(two[1])}')
            return
    print(f'# {len(theirs)} bytes, not {len(ours)}')


def main():
    program, *broken = sys.argv[1:]
    facts, rows, seeds = {}, [], []
    for line in ask(program, 'table').decode().splitlines():
        kind, *words = line.split('\t')
        if kind == 'fact':
            facts[words[0]] = tuple(words[1:])
        elif kind == 'row':
            rows.append(tuple(words))
        else:
            seeds.append(words)
    say(list(facts.items()) == list(core_model.FACTS.items()), 'C and Python have the same facts and values')
    say(rows == [r[:3] for r in core_model.ROWS], 'C and Python have the same rows')
    situations = [core_model.Situation(*values) for values in itertools.product(*core_model.FACTS.values())]
    ours = bytes(itertools.chain.from_iterable(map(answer, situations)))
    theirs = ask(program, 'answers', '0')
    say(theirs == ours, f'C and Python answer the same in each combination of facts ({len(situations)})')
    if theirs != ours:
        describe(situations, theirs, ours)
    for number, text in seeds:
        say(ask(program, 'answers', number) != ours, f'the comparison finds seeded bug {number}: {text}')
    for name in broken:
        theirs = ask(name, 'answers', '0')
        say(theirs != ours, f'the comparison finds {os.path.basename(name)}')
        describe(situations, theirs, ours)
    return not all_good


if __name__ == '__main__':
    sys.exit(main())
