#!/usr/bin/env python3
"""Checks every #include of lib/ and agent/ against tests/layers/table.txt.

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
FOREIGN = {'curl/': 'curl', 'zmq': 'zmq', 'yaml.h': 'yaml', 'jansson': 'jansson', 'event2/': 'event2',
           'event.h': 'event2', 'openssl/': 'openssl', 'xxhash': 'xxhash', 'pcre2': 'pcre2', 'cmocka': 'cmocka'}
LIBC_DIRS = ('sys/', 'netinet/', 'arpa/', 'linux/', 'net/')


def read_table(root):
    rows = []
    with open(os.path.join(root, 'tests/layers/table.txt'), encoding='utf-8') as f:
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


SEEDS = [('lib/wheel.c', '#include "../agent/sys.h"', 'agent/sys.h'),
         ('lib/trigger.c', '#include <curl/curl.h>', 'curl'),
         ('agent/source.c', '#include "loop.h"', 'agent/loop.h'),
         ('agent/push.c', '#include <jansson.h>', 'jansson'),
         ('agent/stray.c', '', 'no row')]


def self_test(root):
    failed = 0
    for path, line, expected in SEEDS:
        with tempfile.TemporaryDirectory() as copy:
            for top in ('lib', 'agent', 'tests/layers'):
                shutil.copytree(os.path.join(root, top), os.path.join(copy, top))
            with open(os.path.join(copy, path), 'a', encoding='utf-8') as f:
                f.write(line + '\n')
            found = [v for v in check(copy) if v.startswith(path) and expected in v]
            if not found:
                print(f'seeded violation not found: {path}: {line or "a file without a row"}')
                failed += 1
    print(f'{len(SEEDS) - failed} passed, {failed} failed')
    return 1 if failed else 0


def main():
    if sys.argv[1:2] == ['--self-test']:
        return self_test(sys.argv[2] if len(sys.argv) > 2 else '.')
    found = check(sys.argv[1] if len(sys.argv) > 1 else '.')
    for violation in found:
        print(violation)
    print(f'{0 if found else 1} passed, {len(found)} failed')
    return 1 if found else 0


sys.exit(main())
