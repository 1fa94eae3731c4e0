#!/usr/bin/env python3
"""Checks every #include of lib/ and agent/ against tests/layers/table.txt, every call of agent/ by a path against tests/layers/paths.txt.

Usage: layers.py [ROOT]     exit 1 and a line for each include that the table does not allow
       layers.py --self-test ROOT   copies the sources, seeds violations, and demands that each is found
"""
import fnmatch
import os
import re
import shutil
import sys
import tempfile

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)
# header prefix -> library; every header with a folder or name that is not the C library's must be here
FOREIGN = {'curl/': 'curl', 'zlib.h': 'zlib', 'zmq': 'zmq', 'yaml.h': 'yaml', 'jansson': 'jansson', 'event2/': 'event2',
           'event.h': 'event2', 'openssl/': 'openssl', 'xxhash': 'xxhash', 'pcre2': 'pcre2', 'cmocka': 'cmocka'}
LIBC_DIRS = ('sys/', 'netinet/', 'arpa/', 'linux/', 'net/')


# calls that take a path; those that end in "at" do when the directory is AT_FDCWD
BY_PATH = re.compile(r"""(?<![\w.>])(open|creat|fopen|freopen|open64|opendir|scandir|nftw|fts_open|glob|stat|lstat|statfs|statvfs|access|faccessat|euidaccess
    |chmod|chown|lchown|truncate|utimes|link|symlink|readlink|realpath|rename|unlink|remove|rmdir|mkdir|mkfifo|mknod|mkstemp|mkdtemp|mount
    |bind|execve|execv|execvp|inotify_add_watch|setxattr|getxattr|statx)\s*\(|\b(AT_FDCWD)\b""", re.X)
COMMENT = re.compile(r'/\*.*?\*/|"(?:\\.|[^"\\])*"', re.S)
NAME = 'tests/layers/paths.txt'


def read_table(root, name='tests/layers/table.txt'):
    rows = []
    with open(os.path.join(root, name), encoding='utf-8') as f:
        for line in f:
            line = line.split('#')[0].strip()
            if not line:
                continue
            left, _, libraries = line.partition('|')
            name, *modules = left.split()
            rows.append((name, modules, libraries.split()))
    return rows


def sources(root):
    for top in ('lib', 'agent'):
        for folder, _, files in os.walk(os.path.join(root, top)):
            for f in sorted(files):
                if f.endswith(('.c', '.h')):
                    yield os.path.relpath(os.path.join(folder, f), root)


def library(header):
    for prefix, name in FOREIGN.items():
        if header.startswith(prefix):
            return name
    if '/' in header and not header.startswith(LIBC_DIRS):
        return header
    return None


def check(root):
    """The violations, as 'file:line: sentence'."""
    table, found = read_table(root), []
    for path in sources(root):
        module = path[:-2]
        row = next((r for r in table if fnmatch.fnmatchcase(module, r[0])), None)
        if not row:
            found.append(f'{path}:1: has no row in tests/layers/table.txt')
            continue
        with open(os.path.join(root, path), encoding='utf-8') as f:
            text = f.read()
        for m in INCLUDE.finditer(text):
            line = text.count('\n', 0, m.start()) + 1
            if m[1] == '<':
                name = library(m[2])
                if name and name not in row[2]:
                    found.append(f'{path}:{line}: must not use <{m[2]}>: {name} is not for {row[0]}')
                continue
            target = os.path.normpath(os.path.join(os.path.dirname(path), m[2]))[:-2]
            if target != module and not any(fnmatch.fnmatchcase(target, p) for p in row[1]):
                found.append(f'{path}:{line}: must not include {target}.h: the table does not allow it for {row[0]}')
    return found


def check_paths(root):
    """The calls by a path that the table has not, and rows that nothing needs."""
    table, found, used = read_table(root, NAME), [], set()
    for path in sources(root):
        if not path.startswith('agent/') or not path.endswith('.c'):
            continue
        with open(os.path.join(root, path), encoding='utf-8') as f:
            text = COMMENT.sub(lambda m: '\n' * m[0].count('\n'), f.read())
        for m in BY_PATH.finditer(text):
            call, line = m[1] or m[2], text.count('\n', 0, m.start()) + 1
            row = next((i for i, r in enumerate(table) if fnmatch.fnmatchcase(path[:-2], r[0]) and (call in r[1] or '*' in r[1])), None)
            used |= {(row, call), (row, '*')}
            if row is None:
                found.append(f'{path}:{line}: must not use {call}: a path is opened by agent/trusted; else {NAME} says why')
    for i, (name, calls, _) in enumerate(table):
        found += [f'{NAME}:1: {name} has no {call} any more' for call in calls if (i, call) not in used]
    return found


SEEDS = [('lib/wheel.c', '#include "../agent/sys.h"', 'agent/sys.h'),
         ('lib/trigger.c', '#include <curl/curl.h>', 'curl'),
         ('agent/source.c', '#include "loop.h"', 'agent/loop.h'),
         ('agent/push.c', '#include <jansson.h>', 'jansson'),
         ('agent/stray.c', '', 'no row'),
         ('agent/trial.c', 'int seed(const char *p);\nint seed(const char *p)\n{\n\treturn unlink(p);\n}', 'unlink'),
         ('agent/store.c', 'static int seed(const struct store *s)\n{\n\treturn s->sys->openat(AT_FDCWD, s->path, 0, 0);\n}', 'AT_FDCWD'),
         (NAME, 'agent/merge rename | nothing', 'no rename any more')]


def self_test(root):
    failed = 0
    for path, line, expected in SEEDS:
        with tempfile.TemporaryDirectory() as copy:
            for top in ('lib', 'agent', 'tests/layers'):
                shutil.copytree(os.path.join(root, top), os.path.join(copy, top))
            with open(os.path.join(copy, path), 'a', encoding='utf-8') as f:
                f.write(line + '\n')
            found = [v for v in check(copy) + check_paths(copy) if v.startswith(path) and expected in v]
            if not found:
                print(f'seeded violation not found: {path}: {line or "a file without a row"}')
                failed += 1
    print(f'{len(SEEDS) - failed} passed, {failed} failed')
    return 1 if failed else 0


def main():
    if sys.argv[1:2] == ['--self-test']:
        return self_test(sys.argv[2] if len(sys.argv) > 2 else '.')
    root = sys.argv[1] if len(sys.argv) > 1 else '.'
    found = check(root) + check_paths(root)
    for violation in found:
        print(violation)
    print(f'{0 if found else 1} passed, {len(found)} failed')
    return 1 if found else 0


sys.exit(main())
