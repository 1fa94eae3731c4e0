#!/usr/bin/env python3
"""Checks every #include of lib/ and agent/ against tests/layers/table.txt, what includes itself in a circle against tests/layers/circles.txt,
each room's README against the table, every call of agent/ by a path against tests/layers/paths.txt, ARCHITECTURE.md against the functions it names,
and the functions' names against each other.

A room is a folder of agent/. In the tables "agent/push/" is all files of that folder, not of those in it.

Usage: layers.py [ROOT]     exit 1 and a line for each include that the table does not allow
       layers.py --self-test ROOT   copies the sources, seeds violations, and demands that each is found
"""
import contextlib
import fnmatch
import functools
import os
import re
import shutil
import sys
import tempfile

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)
# header prefix -> library; every header with a folder or name that is not the C library's must be here
FOREIGN = {'curl/': 'curl', 'zlib.h': 'zlib', 'zmq': 'zmq', 'yaml.h': 'yaml', 'jansson': 'jansson', 'event2/': 'event2',
           'event.h': 'event2', 'openssl/': 'openssl', 'xxhash': 'xxhash', 'pcre2': 'pcre2', 'cmocka': 'cmocka',
           'node_api': 'node_api', 'Python.h': 'python'}
LIBC_DIRS = ('sys/', 'netinet/', 'arpa/', 'linux/', 'net/')


# calls that take a path; those that end in "at" do when the directory is AT_FDCWD
BY_PATH = re.compile(r"""(?<![\w.>])(open|creat|fopen|freopen|open64|opendir|scandir|nftw|fts_open|glob|stat|lstat|statfs|statvfs|access|faccessat|euidaccess
    |chmod|chown|lchown|truncate|utimes|link|symlink|readlink|realpath|rename|unlink|remove|rmdir|mkdir|mkfifo|mknod|mkstemp|mkdtemp|mount
    |bind|execve|execv|execvp|inotify_add_watch|setxattr|getxattr|statx)\s*\(|\b(AT_FDCWD)\b""", re.X)
DEFINITION = re.compile(r'^(?:__attribute__\(\(\w+\)\) )?(?:[a-z_][\w *]*?[ *])?(\w+)\((?:[^(){};]|\([^()]*\))*\)\n\{', re.M)
COMMENT = re.compile(r'/\*.*?\*/|"(?:\\.|[^"\\])*"', re.S)
NAME = 'tests/layers/paths.txt'
TABLE = 'tests/layers/table.txt'
CIRCLES = 'tests/layers/circles.txt'
MAP = 'ARCHITECTURE.md'
MAX_JUMPS = 15  # of a pull, from file to file
MAX_LINES = {'agent/config/': 400, MAP: 200}


def read_table(root, name=TABLE):
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


@functools.lru_cache(maxsize=None)
def read_once(path, size, changed_ns):
    """(text, text without comments and strings); the self-test looks at nearly the same tree again and again."""
    del size, changed_ns
    with open(path, encoding='utf-8') as f:
        text = f.read()
    return text, COMMENT.sub(lambda m: '\n' * m[0].count('\n'), text)


def read_source(root, path):
    place = os.path.join(root, path)
    now = os.stat(place)
    return read_once(place, now.st_size, now.st_mtime_ns)


def library(header):
    for prefix, name in FOREIGN.items():
        if header.startswith(prefix):
            return name
    if '/' in header and not header.startswith(LIBC_DIRS):
        return header
    return None


def fits(module, pattern):
    """A room, or a name in which * is any text."""
    return os.path.dirname(module) + '/' == pattern if pattern.endswith('/') else fnmatch.fnmatchcase(module, pattern)


def includes(root):
    """(file, line, "<" or a quote, header or module) of each #include. A module is looked for beside the file, from agent/, from the root."""
    for path in sources(root):
        text, _ = read_source(root, path)
        for m in INCLUDE.finditer(text):
            target = m[2]
            if m[1] == '"':
                places = [os.path.normpath(os.path.join(place, target)) for place in (os.path.dirname(path), 'agent', '')]
                target = next((p for p in places if os.path.exists(os.path.join(root, p))), places[0])[:-2]
            yield path, text.count('\n', 0, m.start()) + 1, m[1], target


def check(root):
    """The violations, as 'file:line: sentence'."""
    table, used, found = read_table(root), set(), []
    rows = {path: [r for r in table if fits(path[:-2], r[0])] for path in sources(root)}
    found += [f'{path}:1: has no row in {TABLE}' for path in rows if not rows[path]]
    for path, line, kind, target in includes(root):
        if kind == '<':
            name = library(target)
            allowed = {(r[0], x) for r in rows[path] for x in r[2] if x == name}
            if name and not allowed:
                found.append(f'{path}:{line}: must not use <{target}>: {name} is not for {path[:-2]}')
        else:
            other = target != path[:-2]
            allowed = {(r[0], p) for r in rows[path] for p in r[1] if other and fits(target, p)}
            own = any(r[0].endswith('/') and fits(target, r[0]) for r in rows[path])  # its room
            if other and not own and not allowed:
                found.append(f'{path}:{line}: must not include {target}.h: the table does not allow it for {path[:-2]}')
        used |= allowed
    for name, modules, libraries in table:
        found += [f'{TABLE}:1: {name} does not use {x} any more' for x in modules + libraries if (name, x) not in used]
    return found


def circles(arrows):
    """The sets of names each of which leads to all the others of its set."""
    def reached(name):
        seen, ahead = set(), [name]
        while ahead:
            ahead += (new := arrows.get(ahead.pop(), set()) - seen)
            seen |= new
        return seen
    reach = {name: reached(name) for name in arrows}
    return {frozenset(other for other in reach[name] if name in reach.get(other, ())) for name in arrows if name in reach[name]}


def check_circles(root):
    """Circles of files and of rooms that the list has not, and those of the list that are none any more."""
    files, rooms = {}, {}
    for path, _, kind, target in includes(root):
        if kind == '"' and target != path[:-2]:
            files.setdefault(path[:-2], set()).add(target)
            if os.path.dirname(path) != os.path.dirname(target):
                rooms.setdefault(os.path.dirname(path) + '/', set()).add(os.path.dirname(target) + '/')
    allowed = {frozenset([name, *others]) for name, others, _ in read_table(root, CIRCLES)}
    there = circles(files) | circles(rooms)
    return ([f'{CIRCLES}:1: a new circle: {" ".join(sorted(c))}' for c in sorted(there - allowed, key=sorted)]
            + [f'{CIRCLES}:1: is no circle any more: {" ".join(sorted(c))}' for c in sorted(allowed - there, key=sorted)])


def check_readmes(root):
    """Each room has a README, which names what the table's row names."""
    rows, found = {name: modules for name, modules, _ in read_table(root) if name.endswith('/')}, []
    for room in sorted({os.path.dirname(path) + '/' for path in sources(root) if path.startswith('agent/')}):
        try:
            with open(os.path.join(root, room, 'README'), encoding='utf-8') as f:
                paragraphs = f.read().split('\n\n')
        except FileNotFoundError:
            found.append(f'{room}README:1: is missing')
            continue
        said = next((p.split()[1:] for p in paragraphs if p.startswith('Includes:')), None)
        if said != (rows.get(room) or ['nothing']):
            found.append(f'{room}README:1: its paragraph "Includes:" is not the row of {TABLE}')
    return found


def check_paths(root):
    """The calls by a path that the table has not, and rows that nothing needs."""
    table, found, used = read_table(root, NAME), [], set()
    for path in sources(root):
        if not path.startswith('agent/') or not path.endswith('.c'):
            continue
        _, text = read_source(root, path)
        for m in BY_PATH.finditer(text):
            call, line = m[1] or m[2], text.count('\n', 0, m.start()) + 1
            row = next((i for i, r in enumerate(table) if fnmatch.fnmatchcase(path[:-2], r[0]) and (call in r[1] or '*' in r[1])), None)
            used |= {(row, call), (row, '*')}
            if row is None:
                found.append(f'{path}:{line}: must not use {call}: a path is opened by agent/files/trusted; else {NAME} says why')
    for i, (name, calls, _) in enumerate(table):
        found += [f'{NAME}:1: {name} has no {call} any more' for call in calls if (i, call) not in used]
    return found


def check_map(root):
    """The functions that ARCHITECTURE.md names are in those files; a pull has few jumps; what is to be short is short."""
    found = []
    with open(os.path.join(root, MAP), encoding='utf-8') as f:
        text = f.read()
    for path, function in sorted(set(re.findall(r'`([\w/]+\.c):(\w+)`', text))):
        code = ''
        for name in (os.path.join(root, top, path) for top in ('', 'agent')):
            if os.path.exists(name):
                with open(name, encoding='utf-8') as f:
                    code += f.read()
        if not re.search(rf'^[^\s/].*\b{function}\(', code, re.M):
            found.append(f'{MAP}:1: there is no {function}() in {path}')
    for section in re.findall(r'^## One pull\b.*?(?=^## |\Z)', text, re.M | re.S):
        if section.count('->') > MAX_JUMPS:
            found.append(f'{MAP}:1: a pull has {section.count("->")} jumps, more than {MAX_JUMPS}')
    found += [f'{MAP}:{n}: the line is longer than 512 characters' for n, line in enumerate(text.split('\n'), 1) if len(line) > 512]
    for path in [*sources(root), MAP]:
        most = MAX_LINES.get(path) or MAX_LINES.get(os.path.dirname(path) + '/')
        with open(os.path.join(root, path), encoding='utf-8') as f:
            lines = sum(1 for _ in f)
        if most and lines > most:
            found.append(f'{path}:{lines}: is longer than {most} lines')
    return found


SEEDS = [('lib/wheel.c', '#include "../agent/base/sys.h"', 'agent/base/sys.h'),
         ('lib/trigger.c', '#include <curl/curl.h>', 'curl'),
         ('agent/pull/kinds/answer.c', '#include "base/loop.h"', 'agent/base/loop.h'),
         ('agent/document/diff.c', '#include "settings/settings.h"', 'agent/settings/settings.h'),
         ('agent/push/subscriber.c', '#include <jansson.h>', 'jansson'),
         ('agent/stray/stray.c', '', 'no row'),
         ('agent/stray/stray.h', '', 'README:1: is missing'),
         ('agent/http/README', 'agent/pull/', 'is not the row'),
         (TABLE, 'agent/document/scrub agent/base/ |', 'does not use agent/base/ any more'),
         ('agent/document/key_path.h', '#include "document/merge.h"', 'a new circle: agent/document/key_path agent/document/merge'),
         ('agent/document/diff.h', '#include "schema/schema.h"', 'a new circle: agent/document/ agent/schema/'),
         (CIRCLES, 'agent/document/merge agent/document/tree |', 'is no circle any more'),
         ('agent/verify/programs.c', 'int seed(const char *p);\nint seed(const char *p)\n{\n\treturn unlink(p);\n}', 'unlink'),
         ('agent/version/store.c', 'static int seed(const struct store *s)\n{\n\treturn s->sys->openat(AT_FDCWD, s->path, 0, 0);\n}', 'AT_FDCWD'),
         (NAME, 'agent/document/merge rename | nothing', 'no rename any more'),
         (MAP, '`config/step.c:step_seed`', 'no step_seed() in config/step.c'),
         (MAP, '## One pull, again\n' + '-> a ' * 16, 'a pull has 16 jumps'),
         (MAP, 'x' * 513, 'longer than 512 characters'),
         ('agent/config/tasks.c', '\n' * 400, 'is longer than 400 lines'),
         ('agent/version/store.c', '__attribute__((noreturn)) static int wheel_cancel(\n\tint seed)\n{\n\treturn seed;\n}', 'defines wheel_cancel(), as lib/wheel.c does')]


def check_names(root):
    """No two files define functions of one name: gdb, perf and grep must tell them apart. Bindings are parts of other programs."""
    found, first = [], {}
    for path in sources(root):
        if not path.endswith('.c') or path.startswith(('lib/node/', 'lib/python/')):
            continue
        _, text = read_source(root, path)
        for m in DEFINITION.finditer(text):
            before = first.setdefault(m[1], path)
            if before != path and m[1] != 'main':
                found.append(f'{path}:{text.count(chr(10), 0, m.start(1)) + 1}: defines {m[1]}(), as {before} does: one of them needs another name')
    return found


def check_all(root):
    return check(root) + check_circles(root) + check_readmes(root) + check_paths(root) + check_map(root) + check_names(root)


def finds(copy, path, line, expected):
    """Whether the check finds it with this line more in a file, which is then as it was."""
    place = os.path.join(copy, path)
    before = None
    if os.path.exists(place):
        with open(place, encoding='utf-8') as f:
            before = f.read()
    os.makedirs(os.path.dirname(place), exist_ok=True)
    with open(place, 'a', encoding='utf-8') as f:
        f.write(line + '\n')
    found = any(expected in v for v in check_all(copy))
    if before is None:
        os.unlink(place)
        with contextlib.suppress(OSError):
            os.rmdir(os.path.dirname(place))
    else:
        with open(place, 'w', encoding='utf-8') as f:
            f.write(before)
    return found


def self_test(root):
    failed = 0
    with tempfile.TemporaryDirectory() as copy:
        for top in ('lib', 'agent', 'tests/layers'):
            shutil.copytree(os.path.join(root, top), os.path.join(copy, top))
        shutil.copy(os.path.join(root, MAP), copy)
        for path, line, expected in SEEDS:
            if not finds(copy, path, line, expected):
                print(f'seeded violation not found: {path}: {line or "a file without a row"}')
                failed += 1
    print(f'{len(SEEDS) - failed} passed, {failed} failed')
    return 1 if failed else 0


def main():
    if sys.argv[1:2] == ['--self-test']:
        return self_test(sys.argv[2] if len(sys.argv) > 2 else '.')
    root = sys.argv[1] if len(sys.argv) > 1 else '.'
    found = check_all(root)
    for violation in found:
        print(violation)
    print(f'{0 if found else 1} passed, {len(found)} failed')
    return 1 if found else 0


sys.exit(main())
