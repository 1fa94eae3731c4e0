"""Where the configs of the soak come from, each restarted at random: `pullet serve` with its push channel, a web server without one, etcd.

A source has configs (`names`), takes a version of each (`put`), goes down and comes back with all that it had (`down`, `up`).
"""
import contextlib
import os
import shutil
import signal
import threading
import time

import etcd
from harness import PULLET, Program
from servers import base

import documents

PARTS = ('a.yaml', 'b.yaml')  # of a set


def parts_of(name):
    """The documents of a config."""
    return [f'{name}/{part}' for part in PARTS] if name.endswith('-set') else [name + ('.json' if 'json' in name else '.yaml')]


def write_version(name, values):
    return (documents.write_json if 'json' in name else documents.write_yaml)(values)


def drain(program):
    """Reads what it says from now on, so that it never waits for its reader; its first and last lines are kept."""
    def read_on():
        with contextlib.suppress(OSError, ValueError):
            while program.process.poll() is None:
                program.log._more(time.monotonic() + 1)
                del program.log.seen[100:-100]
    threading.Thread(target=read_on, daemon=True).start()


class Serve:
    """`pullet serve`: HTTP and push in one program, a folder of files below it."""
    names = ('serve-yaml', 'serve-json', 'serve-large', 'serve-file', 'serve-bytes', 'serve-set', 'serve-env')

    def __init__(self, test):
        self.test, self.http, self.push = test, *etcd.free_ports(2)
        self.program, self.killed = None, False
        self.settings = f'main: {{urls: ["http://127.0.0.1:{self.http}"]}}'
        self.endpoint = f'tcp://127.0.0.1:{self.push}'
        os.makedirs(test.path('www'), exist_ok=True)
        self.up()
        test.addCleanup(self.close)

    def put(self, name, values):
        for part in parts_of(name):
            self.test.write('www/' + part, write_version(name, values))
        return True

    def up(self):
        self.program = Program([PULLET, 'serve', self.test.path('www'), '--http', f'127.0.0.1:{self.http}', '--push', self.endpoint, '--heartbeat', '500ms'],
                               read='both')
        self.program.log.wait('publishing on')
        drain(self.program)

    def down(self):
        self.killed = not self.killed
        self.program.signal(signal.SIGKILL if self.killed else signal.SIGTERM)
        self.program.wait()
        self.program.close()

    def close(self):
        self.program.close()


class Origin(base.Server):
    """A web server of Python, pulled at an interval."""
    names = ('web-yaml', 'web-json', 'web-large', 'web-file', 'web-bytes', 'web-set', 'web-layers')

    def __init__(self, test, more=()):
        self.names = self.names + tuple(more)
        self.documents, self.lock = {}, threading.Lock()
        super().__init__(test)
        self.settings = f'web: {{urls: ["{self.url}"]}}'

    def put(self, name, values):
        with self.lock:
            for part in parts_of(name):
                self.documents['/' + part] = write_version(name, values), f'"{values["n"]}-{values["sum"]}"'
        return True

    def answer(self, request):
        if request.path == '/base.yaml':
            return base.Answer(200, 'base: {of: all}\n', {'ETag': '"base"'})
        with self.lock:
            text, tag = self.documents[request.path]
        with self.changed:
            self.requests.clear()  # so many are not kept
        if request.headers.get('If-None-Match') == tag:
            return base.Answer(304, headers={'ETag': tag})
        return base.Answer(200, text, {'ETag': tag})


class Store:
    """One member of etcd, watched."""
    names = ('etcd-yaml', 'etcd-json', 'etcd-prefix', 'etcd-file', 'etcd-set', 'etcd-bytes')

    def __init__(self, test):
        self.cluster = etcd.Etcd(test)
        self.member = self.cluster.members[0]
        self.settings = f'etcd: {{kind: etcd, urls: ["{self.cluster.url}"], watch: true}}'

    def put(self, name, values):
        """False while it is down: the same version is put again later."""
        puts = {f'/soak/{name}/{key}': text for key, text in values.items()} if name == 'etcd-prefix' else {
            f'/soak/{part}': write_version(name, values) for part in parts_of(name)}
        if not self.member.running:
            return False
        self.cluster.put_all(puts)
        return True

    def up(self):
        self.cluster.restart(self.member)

    def down(self):
        self.cluster.kill(self.member)


def open_sources(test):
    """All that the machine can have; and what it lacks, in words."""
    if shutil.which('etcd') and shutil.which('etcdctl'):
        return [Serve(test), Origin(test), Store(test)], None
    return [Serve(test), Origin(test, Store.names)], 'etcd'


def describe(name, source):
    """The mapping of one config in pullet.yaml, on one line, but its interval and place."""
    server = source.settings.split(':')[0]
    layers = [f'{{server: {server}, path: {path}}}' for path in paths_of(name, server)]
    if name.endswith('-set'):
        layers = [layer[:-1] + f', as: {part}}}' for layer, part in zip(layers, PARTS)]
    return f'from: [{", ".join(layers)}]'


def paths_of(name, server):
    prefix = '/soak/' if server == 'etcd' else '/'
    if name == 'web-layers':
        return ['/base.yaml', '/web-layers.yaml']
    if name == 'etcd-prefix' and server == 'etcd':
        return ['/soak/etcd-prefix/']
    return [prefix + part for part in parts_of(name)]
