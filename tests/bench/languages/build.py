"""Builds a program in each language that pullet has a library for, around that library as it is in the tree.

Each function takes an empty directory to build in, the source, and flags of the compiler behind it; it returns the command that runs the
program, and what has to be in its environment. OSError or CalledProcessError: the language is not here, or the program is wrong.
"""
import os
import shutil
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
BUILD = os.path.join(ROOT, os.environ.get('PULLET_BUILD', 'build'))
WARN = ('-O2', '-Wall', '-Wextra', '-I', os.path.join(ROOT, 'lib'))
LINK = ('-L', BUILD, '-lpullet', '-Wl,-rpath,' + BUILD)


def run(*command, **kw):
    return subprocess.run(command, check=True, **kw)


def c(tmp, source, *flags):
    run('gcc', '-std=gnu11', *WARN, '-o', f'{tmp}/program', source, *LINK, *flags)
    return [f'{tmp}/program'], {}


def cpp(tmp, source, *flags):
    run('g++', '-std=c++17', *WARN, '-o', f'{tmp}/program', source, *LINK, *flags)
    return [f'{tmp}/program'], {}


def python(_, source):
    library = os.path.join(BUILD, 'libpullet.so.0')
    return ['/usr/bin/python3', source], {
        'PYTHONPATH': f'{BUILD}/python', 'PYTHONDONTWRITEBYTECODE': '1', 'PULLET_LIBRARY': library}


def python_ctypes(_, source):
    command, env = python(_, source)
    return command, dict(env, PYTHONPATH=f'{ROOT}/lib/python')


def node(tmp, source):
    program = os.path.realpath(shutil.which('node') or 'node')
    headers = os.path.join(os.path.dirname(os.path.dirname(program)), 'include/node')
    run('gcc', '-std=c11', *WARN, '-I', headers, '-shared', '-fPIC', '-o', f'{tmp}/pullet.node', f'{ROOT}/lib/node/addon.c', *LINK)
    return ['node', source], {'PULLET_NODE_ADDON': f'{tmp}/pullet.node'}


def go(tmp, source):
    shutil.copy(source, tmp)
    with open(f'{tmp}/go.mod', 'w', encoding='utf-8') as f:
        f.write(f'module program\n\ngo 1.19\n\nrequire pullet v0.0.0\n\nreplace pullet => {ROOT}/lib/go\n')
    run('go', 'build', '-o', 'program', '.', cwd=tmp, env=dict(
        os.environ, HOME=tmp, GOCACHE=f'{tmp}/cache', GOPATH=f'{tmp}/path', GOENV='off', GOFLAGS='-mod=mod', GOPROXY='off',
        GOTOOLCHAIN='local', GOWORK='off', CGO_ENABLED='0'))
    return [f'{tmp}/program'], {}


def java(tmp, source):
    sources = [os.path.join(ROOT, 'lib/java/src/pullet', name) for name in os.listdir(f'{ROOT}/lib/java/src/pullet')]
    run('javac', '--release', '17', '-encoding', 'UTF-8', '-d', tmp, source, *sources)
    return ['java', '-XX:-UsePerfData', '-cp', tmp, os.path.basename(source).removesuffix('.java')], {}
