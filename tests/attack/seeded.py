#!/usr/bin/env python3
"""Puts each hole back, one after the other, and sees that its test fails: a test that cannot fail proves nothing.

Usage: tests/attack/seeded.py [--units] [--third N] [WORD...]    only patches that a unit test catches; every third of them, from the Nth (0 to 2) on;
                                                                 those with one of the words in their names

Each tests/attack/seeds/*.patch is applied to a copy of the tree in build/seeded, what the command in its first line
("# caught by: COMMAND") needs is built there, and the command must fail. It passes where nothing is seeded, or it would prove nothing
either. A patch that does not apply, or does not build, or is not caught is a failure. Ends with "N passed, N failed".
"""
import argparse
import filecmp
import glob
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
COPY = os.path.join(ROOT, 'build', 'seeded')
HEAD = re.compile(r'^# caught by: (.+)$')
NAMES = re.compile(r'^(?:FAIL|ERROR): (\S+)|^not ok \d+ - (\S+)|^\[  FAILED  \] (\w+)', re.M)
SUM = re.compile(r'^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$', re.M)
LIMIT = 600  # seconds for one command


def sources():
    """The files of the tree, but what building makes."""
    for folder, folders, names in os.walk(ROOT):
        if folder == ROOT:
            folders[:] = [f for f in folders if f != '.git' and not f.startswith('build')]
        folders[:] = [f for f in folders if f != '__pycache__']
        for name in names:
            path = os.path.relpath(os.path.join(folder, name), ROOT)
            if path != '.git':
                yield path


def same(a, b):
    """By content: after a seed was taken out again its file is newer than the tree's."""
    if os.path.islink(a) or os.path.islink(b) or not os.path.exists(b):
        return os.path.islink(a) and os.path.islink(b) and os.readlink(a) == os.readlink(b)
    return os.stat(a).st_mode == os.stat(b).st_mode and filecmp.cmp(a, b, shallow=False)


def copy_tree():
    """The copy is as the tree is; what was built there stays, or is that of the tree at first."""
    if not os.path.isdir(COPY):
        os.makedirs(COPY)
        built = os.path.join(ROOT, 'build')
        shutil.copytree(built, os.path.join(COPY, 'build'), symlinks=True,
                        ignore=lambda folder, names: [n for n in names if folder == built and (n in ('seeded', 'packages', 'values', 'values-languages', 'sums') or n.startswith('libpullet.pc.'))])
    wanted = set(sources())
    for folder, folders, names in os.walk(COPY):
        if folder == COPY:
            folders[:] = [f for f in folders if f != 'build']
        for name in names:
            path = os.path.join(folder, name)
            if os.path.relpath(path, COPY) not in wanted:
                os.remove(path)
    for path in sorted(wanted):
        if not same(os.path.join(ROOT, path), os.path.join(COPY, path)):
            restore(path)


def restore(path):
    """That file as it is in the tree."""
    original, its_copy = os.path.join(ROOT, path), os.path.join(COPY, path)
    there = os.path.lexists(its_copy)
    if there:
        os.remove(its_copy)
    if os.path.lexists(original):
        os.makedirs(os.path.dirname(its_copy), exist_ok=True)
        shutil.copy2(original, its_copy, follow_symlinks=False)
        if there and not os.path.islink(its_copy):
            os.utime(its_copy)  # make shall see that it is another one than before


def run(command, limit):
    """(status, output); None for the status when it hung. Nothing that it started is left."""
    env = {k: v for k, v in os.environ.items() if k not in ('PULLET_BUILD', 'MAKEFLAGS', 'MFLAGS', 'MAKELEVEL')}
    with subprocess.Popen(command, cwd=COPY, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, errors='replace',
                          start_new_session=True, env={**env, 'CMOCKA_MESSAGE_OUTPUT': 'TAP'}) as p:
        try:
            output, _ = p.communicate(timeout=limit)
            status = p.returncode
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, signal.SIGKILL)
            output, status = p.communicate()[0], None
        return status, output


def tail(output, lines=25):
    return ''.join(f'      | {line}\n' for line in output.splitlines()[-lines:])


def build(command):
    """What the command runs: programs of build/ that it names; the programs and libraries for anything else."""
    targets = [word for word in command if word.startswith('build/')] or ['all']
    return run(['make', '--no-print-directory', f'-j{os.cpu_count() or 1}', *targets], LIMIT)


def command_of(patch):
    with open(patch, encoding='utf-8') as f:
        found = HEAD.match(f.readline().rstrip('\n'))
    command = shlex.split(found[1]) if found else []
    return ['/usr/bin/python3', *command] if command and command[0].endswith('.py') else command


def apply(patch):
    """With git, which refuses what does not fit; it must not look at a repository that the copy lies in. What it says then, or None."""
    done = subprocess.run(['git', 'apply', patch], cwd=COPY, capture_output=True, text=True, check=False,
                          env={**os.environ, 'GIT_CEILING_DIRECTORIES': os.path.dirname(COPY)})
    return None if done.returncode == 0 else done.stderr


def touched(patch):
    """The files that a patch changes."""
    with open(patch, encoding='utf-8') as f:
        return {m[1] for m in re.finditer(r'^(?:---|\+\+\+) [ab]/(\S+)', f.read(), re.M)}


clean = {}  # command: what it said where nothing is seeded


def try_clean(command):
    """None when it passes without a seed; else (whether that is a failure, why)."""
    if tuple(command) not in clean:
        status, output = build(command)
        if status == 0:
            status, output = run(command, LIMIT)
            if status == 1:  # as tests/run --again does: a busy machine is told from a defect
                status, output = run(command, LIMIT)
        sums = SUM.findall(output)
        if status != 0:
            clean[tuple(command)] = True, 'it fails without the seed\n' + tail(output)
        elif sums and int(sums[-1][0]) == 0:
            reason = re.search(r'# SKIP (.*)', output)
            clean[tuple(command)] = False, reason[1] if reason else 'its test is skipped here'
        else:
            clean[tuple(command)] = None
    return clean[tuple(command)]


def try_seed(patch):
    """(passed, failed or skipped; what is to be said)"""
    command = command_of(patch)
    if not command:
        return 'failed', 'the first line must be "# caught by: COMMAND"'
    why = try_clean(command)
    if why:
        return 'failed' if why[0] else 'skipped', why[1]
    files = touched(patch)
    error = apply(patch)
    if error is not None:
        return 'failed', 'it does not apply\n' + tail(error)
    try:
        status, output = build(command)
        if status != 0:
            return 'failed', 'it does not build\n' + tail(output)
        status, output = run(command, LIMIT)
    finally:
        for path in files:
            restore(path)
    if status is None:
        return 'failed', f'its test hung for {LIMIT} s\n' + tail(output)
    if status == 0:
        return 'failed', f'not caught by {shlex.join(command)}\n' + tail(output, 5)
    names = [next(filter(None, found)) for found in NAMES.findall(output)]
    if not names and not SUM.search(output):
        return 'failed', f'{shlex.join(command)} ended with {status}, but names no test that failed\n' + tail(output)
    return 'passed', ' '.join(dict.fromkeys(names)) or output.splitlines()[-1]


def chosen(options):
    patches = sorted(glob.glob(os.path.join(ROOT, 'tests', 'attack', 'seeds', '*.patch')))
    if options.words:
        patches = [p for p in patches if any(word in os.path.basename(p) for word in options.words)]
    if options.units:
        patches = [p for p in patches if ''.join(command_of(p)[:1]).startswith('build/unit/')]
    return patches if options.third is None else patches[options.third::3]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--units', action='store_true')
    parser.add_argument('--third', type=int, choices=range(3))
    parser.add_argument('words', nargs='*')
    patches = chosen(parser.parse_args())
    copy_tree()
    counts = {'passed': 0, 'failed': 0, 'skipped': 0}
    for patch in patches:
        begin = time.monotonic()
        outcome, said = try_seed(patch)
        counts[outcome] += 1
        word = {'passed': 'caught', 'failed': 'FAIL  ', 'skipped': 'skip  '}[outcome]
        print(f'  {word} {time.monotonic() - begin:6.1f} s  {os.path.basename(patch)[:-6]}: {said}', flush=True)
    print(f'{counts["passed"]} passed, {counts["failed"]} failed' + (f', {counts["skipped"]} skipped' if counts['skipped'] else ''))
    return 1 if counts['failed'] or not patches else 0


if __name__ == '__main__':
    sys.exit(main())
