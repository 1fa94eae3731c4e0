#!/usr/bin/env python3
"""Which programs the suites execute, and of which Debian packages they are.

Usage: tests/programs.py TRACE...     of strace -f -z -e trace=execve: prints the list (`make trace-programs` keeps it in programs.txt)

tests/integration/test_suite.py compares that list, and the Python modules that tests import, with packaging/deps.sh: what is used and
comes neither with a minimal Debian nor with what deps.sh installs is not there on a fresh machine.
"""
import ast
import collections
import functools
import glob
import importlib.util
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LIST = os.path.join(ROOT, 'tests', 'programs.txt')
HEAD = '# What the suites execute, by Debian package. Made by `make trace-programs`, checked by tests/integration/test_suite.py.\n'


def traced(path):
    """The programs of the system in a trace; what was built, or lies in a temporary directory, is ours."""
    with open(path, encoding='utf-8', errors='replace') as f:
        found = set(re.findall(r'execve\("(/(?:usr/|bin/|sbin/|lib)[^"]*)"', f.read()))
    return {os.path.realpath(p) for p in found if os.path.exists(p)}


def package_of(path):
    """The Debian package that a file is of; a link of /bin to /usr/bin may hide that."""
    for name in (path, path.removeprefix('/usr')):
        done = subprocess.run(['dpkg-query', '-S', name], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return done.stdout.split(':')[0]
    return f'(no package has {path})'


def read_list():
    """{package: names of programs}"""
    with open(LIST, encoding='utf-8') as f:
        rows = [line.split() for line in f if not line.startswith('#')]
    return {package.rstrip(':'): names for package, *names in rows}


@functools.lru_cache(None)
def installed():
    """{package: what it needs}, and what comes with a minimal Debian (minbase)."""
    rows = subprocess.run(['dpkg-query', '-W', '-f', '${Package}\t${Essential}\t${Priority}\t${Depends}, ${Pre-Depends}\t${Provides}\n'],
                          capture_output=True, text=True, check=True).stdout.splitlines()
    needs, minimal, provides = {}, {'apt'}, collections.defaultdict(set)
    for package, essential, priority, depends, provided in (row.split('\t') for row in rows):
        needs[package] = set(re.findall(r'(?:^|[,|])\s*([a-z0-9][a-z0-9.+-]*)', depends))
        if essential == 'yes' or priority == 'required':
            minimal.add(package)
        for name in re.findall(r'(?:^|,)\s*([a-z0-9][a-z0-9.+-]*)', provided):
            provides[name].add(package)
    return {p: {q for n in names for q in ({n} if n in needs else provides[n])} for p, names in needs.items()}, minimal


def tables(*names):
    """The Debian packages in these tables of packaging/deps.sh."""
    with open(os.path.join(ROOT, 'packaging', 'deps.sh'), encoding='utf-8') as f:
        text = f.read()
    return {row.split()[1] for name in names for row in re.search(rf"^{name}='\n(.*?)^'", text, re.M | re.S)[1].splitlines()}


def there(*names):
    """The packages that a minimal Debian has after these tables were installed, as far as this machine knows them."""
    needs, minimal = installed()
    found, left = set(), [*minimal, *tables(*names)]
    while left:
        package = left.pop()
        if package not in found:
            found.add(package)
            left += needs.get(package, ())
    return found


def not_installed(packages, *names):
    """Of these packages, those that would be missing."""
    return sorted(set(packages) - there(*names))


def modules(paths):
    """{module that is not Python's own, nor a file beside or in the suites: one of the files that import it}"""
    ours = {os.path.splitext(os.path.basename(p))[0] for p in glob.glob(ROOT + '/tests/**/*.py', recursive=True)} | {'pullet', 'servers'}
    found = {}
    for path in paths:
        with open(path, encoding='utf-8') as f:
            tree = ast.parse(f.read())
        for node in ast.walk(tree):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module] if isinstance(node, ast.ImportFrom) and not node.level else []
            for name in (n.split('.')[0] for n in names):
                if name not in sys.stdlib_module_names and name not in ours:
                    found[name] = os.path.relpath(path, ROOT)
    return found


def package_of_module(name):
    spec = importlib.util.find_spec(name)
    return package_of(spec.origin) if spec else f'(no module {name} here)'


STARTS = {'run', 'Popen', 'check_output', 'check_call', 'call', 'Program', 'Terminal', 'refusal'}


def named(paths):
    """{program that a test names as the first word of what it starts: one of the files that do}"""
    found = {}
    for path in paths:
        with open(path, encoding='utf-8') as f:
            tree = ast.parse(f.read())
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or getattr(node.func, 'attr', getattr(node.func, 'id', None)) not in STARTS:
                continue
            argument = next((a for a in node.args if getattr(a, 'id', None) not in ('self', 'test')), None)
            first = argument.elts[0] if isinstance(argument, (ast.List, ast.Tuple)) and argument.elts else argument
            if isinstance(first, ast.Constant) and isinstance(first.value, str) and re.fullmatch(r'(/\S+/)?[a-z][a-z0-9.+_-]+', first.value):
                found[first.value] = os.path.relpath(path, ROOT)
    return found


def package_of_program(name):
    path = shutil.which(name, path='/usr/sbin:/usr/bin:/sbin:/bin')
    return package_of(os.path.realpath(path)) if path else f'(no program {name} here)'


def main(*traces):
    by_package = collections.defaultdict(set)
    for path in set().union(*map(traced, traces)):
        by_package[package_of(path)].add(os.path.basename(path))
    print(HEAD + ''.join(f'{package}: {" ".join(sorted(names))}\n' for package, names in sorted(by_package.items())), end='')


if __name__ == '__main__':
    main(*sys.argv[1:])
