"""The way of a change: composed of layers, validated, written in a format or as a set of files, told to the application, watched, rolled back, looked after.

The user's programs are scripts that tell each of their runs through a pipe; what hangs waits for a line of another pipe. So a test waits for the
program itself, and knows how often it ran.
"""
import base64
import gzip
import hashlib
import json
import os
import re
import select
import shutil
import signal
import subprocess
import tempfile
import threading
import time

import yaml

import harness
from harness import PULLET, PULLETD, Agent, FaultServer, Lines, Program, good, raw, reset
from test_push import Publisher
from test_servers import Gate

EVERYTHING = b'''# as it was written
db: {host: "a b", port: 5432}
list: [1, x]
on: true
'''


class Origin(FaultServer):
    """Documents by path with strong ETags, and 304 for who has them; in place of a document one of the harness's behaviours, or None: 404."""

    def __init__(self, test):
        self.there, self.asked = {}, []
        super().__init__(test)
        self.behave = self._answer

    def put(self, path, document, headers=''):
        self.there[path] = document, headers

    def _answer(self, connection, head, stopping):
        path = head.split(' ', 2)[1]
        document, headers = self.there.get(path, (None, ''))
        if callable(document):
            self.asked.append((path, 0))
            return document(connection, head, stopping)
        status, body = ('404 Not Found', b'nothing here\n') if document is None else ('200 OK', document)
        if document is not None:
            etag = '"' + hashlib.sha256(document).hexdigest()[:12] + '"'
            headers += f'ETag: {etag}\r\n'
            if f'If-None-Match: {etag}\r\n' in head + '\r\n':
                status, body = '304 Not Modified', b''
        self.asked.append((path, int(status[:3])))
        if status[:3] == '304':
            return raw(f'HTTP/1.1 {status}\r\n{headers}\r\n'.encode(), close=False)(connection, head, stopping)
        return good(body, headers, status)(connection, head, stopping)


class Hook:
    """A program of the user: each run says "run GENERATION ARGUMENTS CHANGED-KEYS" into a pipe and then does what `do` says, in sh, where `tell`
    says more and `hold` waits for release()."""

    def __init__(self, test, name, does='exit 0'):
        self.path, self.at, self.marks = test.path(name), 0, 0
        os.mkfifo(self.path + '.pipe')
        os.mkfifo(self.path + '.gate')
        self.pipe = os.fdopen(os.open(self.path + '.pipe', os.O_RDWR), 'r+b', buffering=0)
        self.gate = os.fdopen(os.open(self.path + '.gate', os.O_RDWR), 'r+b', buffering=0)
        test.addCleanup(self.pipe.close)
        test.addCleanup(self.gate.close)
        self.lines = Lines(self.pipe)
        self.test, self.name = test, name
        self.do(does)
        test.write(name, f'''#!/bin/sh
set -f
tell() {{ echo "$*" >>{self.path}.pipe; }}
hold() {{ read -r held <{self.path}.gate; }}
does=$(cat {self.path}.does) # before it is told: what is set afterwards is for the next run
tell run ${{PULLET_GENERATION:-none}} $* $PULLET_CHANGED_KEYS
set +f
eval "$does"
''')
        os.chmod(self.path, 0o755)

    def do(self, does):
        self.test.write(self.name + '.does', does + '\n')

    def release(self):
        self.gate.write(b'\n')

    def next(self, pattern='^run ', timeout=None):
        """The words of the next line with that pattern, behind those that were returned before."""
        line = self.lines.wait(pattern, self.at, timeout)
        self.at = self.lines.seen.index(line, self.at) + 1
        return line.split()[1:]

    def told(self, word='run'):
        """All lines until now that begin with the word, as lists of words."""
        self.marks += 1
        self.pipe.write(f'mark {self.marks}\n'.encode())
        self.lines.wait(f'^mark {self.marks}$')
        return [line.split()[1:] for line in self.lines.seen if line.split()[0] == word]

    @property
    def runs(self):
        return len(self.told())


class Readers:
    """Threads that look in a tight loop. `look` returns the numbers of the versions it saw (none: it does not count): of one look they must be one
    number, and never go back."""

    def __init__(self, look, count=2):
        self.look, self.flaws, self.looks, self.stopping = look, [], 0, threading.Event()
        self.threads = [threading.Thread(target=self._loop, daemon=True) for _ in range(count)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        for thread in self.threads:
            thread.join()

    def _loop(self):
        newest = 0
        while not self.stopping.is_set() and not self.flaws:
            try:
                seen = self.look()
            except (OSError, ValueError, TypeError, yaml.YAMLError) as e:
                self.flaws.append(repr(e))
                return
            if not seen:
                continue
            if len(set(seen)) != 1 or seen[0] < newest:
                self.flaws.append(f'{seen} after {newest}')
                return
            newest = seen[0]
            self.looks += 1


def gone(pids, timeout=None):
    """True when all of these processes have ended before the deadline."""
    deadline = time.monotonic() + (timeout or harness.DEADLINE)
    for pid in pids:
        try:
            fd = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        try:
            if not select.select([fd], [], [], max(0, deadline - time.monotonic()))[0]:
                return False
        finally:
            os.close(fd)
    return True


class Case(harness.Case):
    def setUp(self):
        super().setUp()
        self.origin, self.agent = Origin(self), None
        self.origin.put('/web.yaml', b'n: 1\n')

    def tearDown(self):
        if self.agent and self.agent.process.poll() is None:
            self.agent.stop()

    def config(self, *layers, **config):
        """One config: of these layers (paths, or mappings), with the keys given; what is None is left out."""
        os.makedirs(self.path('out'), exist_ok=True)
        config = {'from': [{'server': 'main', **({'path': l} if isinstance(l, str) else l)} for l in layers or ('/web.yaml',)],
                  'file': None if 'dir' in config else self.path('out/web.yaml'), 'interval': '1h', **config}
        return {key: value for key, value in config.items() if value is not None}

    def settings(self, configs, servers=None, log='debug'):
        servers = {'main': {'urls': [self.origin.url]}, **(servers or {})}
        return json.dumps({'agent': {'state_dir': self.path('state'), 'runtime_dir': self.path('run'), 'log': {'level': log}},
                           'servers': servers, 'configs': configs}, indent=1)

    def start(self, *layers, servers=None, log='debug', args=(), env=None, prefix=(), **config):
        """An agent with one config, running."""
        self.agent = Agent(self, self.settings({'web': self.config(*layers, **config)}, servers, log), args, env, prefix)
        self.agent.ready()
        return self.agent

    def restart(self, *layers, kill=False, **config):
        if kill:
            self.agent.signal(signal.SIGKILL)
            self.agent.wait()
        else:
            self.agent.stop()
        return self.start(*layers, **config)

    def change_config(self):
        """So that SIGHUP ends the config and begins it again; it pulls no sooner."""
        text = self.read('pullet.yaml').decode()
        changed = text.replace('"1h"', '"2h"', 1)
        self.assertNotEqual(changed, text)
        self.write('pullet.yaml', changed)

    def status(self, name='web'):
        code, body = self.agent.get(f'/v1/configs/{name}')
        self.assertEqual(code, 200, body)
        return json.loads(body)

    def until(self, good_one, name='web'):
        """The first status that is as wanted."""
        deadline, pace = time.monotonic() + harness.DEADLINE, threading.Event()
        while not good_one(status := self.status(name)):
            self.assertLess(time.monotonic(), deadline, status)
            pace.wait(0.02)
        return status

    def publish(self, document, path='/web.yaml', headers=''):
        """Puts a document there and pulls it; the generation."""
        at = self.agent.log.count
        self.origin.put(path, document, headers)
        outcome = self.agent.refresh()
        self.assertEqual((outcome['outcome'], outcome['error']), ('published', None))
        self.agent.log.wait(f'published config=web generation={outcome["generation"]} ', at)  # or its pipe would be full some time
        return outcome['generation']

    def out(self, name='web.yaml'):
        path = self.path('out/' + name)
        return self.read('out/' + name) if os.path.exists(path) else None

    def refused(self, check, sentence):
        """Pulls what this check must refuse: it is counted and named, and what stood stands."""
        before, counted, stood = self.out(), self.status()['rejections_by'].get(check, 0), self.status()['generation']
        outcome = self.agent.refresh()
        self.assertEqual((outcome['outcome'], outcome['generation']), ('failed', stood), outcome)
        self.assertRegex(outcome['error'], sentence)
        status = self.status()
        self.assertEqual(status['rejections_by'].get(check), counted + 1, status)
        self.assertEqual((status['rejected']['by'], status['rejected']['is_last_error']), (check, True))
        self.assertRegex(status['rejected']['why'], sentence)
        self.assertEqual(self.out(), before)
        self.assertEqual(self.strays(), [])
        return status

    def strays(self):
        """Temporary files that somebody forgot."""
        return [name for d in ('out', 'run', 'state/web') if os.path.isdir(self.path(d))
                for name in os.listdir(self.path(d)) if '.pullet-' in name or name.startswith('..check')]


# ---- composed


class Layers(Case):
    def two(self, n, m=None):
        self.origin.put('/base.yaml', b'base: %d\n' % n)
        self.origin.put('/web.yaml', b'web: %d\n' % (m or n))

    def whole(self):
        """Which version of each layer the file shows."""
        document = yaml.safe_load(self.read('out/web.yaml'))
        return [document['base'], document['web']]

    def test_later_ones_win_mappings_merge_deeply_and_null_deletes_whatever_server_they_are_of(self):
        other = Origin(self)
        self.origin.put('/base.yaml', b'db: {host: a, port: 1, pool: {min: 1, max: 5}}\nlist: [1, 2, 3]\ngone: {a: 1}\nkept: x\nwas: {a: 1}\n')
        other.put('/eu.json', b'{"db": {"host": "b", "pool": {"max": 9}}, "list": [4], "was": 1, "null": null}')
        self.origin.put('/web.yaml', b'# mine\ngone: null\ndb: {port: ~}\nnew: {a: {b: c}}\n')
        agent = self.start('/base.yaml', {'server': 'other', 'path': '/eu.json'}, '/web.yaml', servers={'other': {'urls': [other.url]}})
        agent.log.wait('published')
        want = {'db': {'host': 'b', 'pool': {'min': 1, 'max': 9}}, 'list': [4], 'kept': 'x', 'was': 1, 'new': {'a': {'b': 'c'}}}
        self.assertEqual(yaml.safe_load(self.out()), want)
        exported = subprocess.run([PULLET, 'export', 'web', '--format', 'json'], capture_output=True, check=True,
                                  env=dict(os.environ, PULLET_RUNTIME_DIR=self.path('run'))).stdout
        self.assertEqual(json.loads(exported), want, 'the snapshot is of the same whole')

    def test_one_layer_fails_and_nothing_is_published(self):
        self.two(1)
        self.origin.put('/web.yaml', None)
        agent = self.start('/base.yaml', '/web.yaml')
        agent.log.wait('pull failed.*/web.yaml: the server answered 404')
        self.assertIsNone(self.out())
        self.two(1)
        self.assertEqual(agent.refresh()['outcome'], 'published')
        bad = {'404': None, '500': good(b'', status='500 Internal Server Error'), 'a page': good(b'<html>', 'Content-Type: text/html\r\n'),
               'cut short': raw(b'HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nweb: 2\n'), 'reset': reset, 'empty': good(b'')}
        for path in ('/web.yaml', '/base.yaml'):
            for name, behave in bad.items():
                with self.subTest(path=path, bad=name):
                    self.two(2)
                    self.origin.put(path, behave)
                    outcome = agent.refresh()
                    self.assertEqual((outcome['outcome'], outcome['generation']), ('failed', 1))
                    self.assertIn(path, outcome['error'])
                    self.assertEqual(self.whole(), [1, 1])
        self.two(2)
        self.assertEqual(agent.refresh()['generation'], 2, 'nothing of the failed runs used a number up')
        self.assertEqual(self.whole(), [2, 2])

    def test_a_slow_layer_holds_the_whole_back(self):
        self.two(1)
        self.start('/base.yaml', '/web.yaml').log.wait('published')
        gate = Gate(self, good(b'web: 2\n', 'ETag: "2"\r\n'))
        self.two(2)
        self.origin.put('/web.yaml', gate)
        self.agent.post('/v1/configs/web/refresh')
        gate.wait(1)
        self.until(lambda s: ('/base.yaml', 200) in self.origin.asked[2:])
        self.assertEqual((self.whole(), self.status()['running']), ([1, 1], True))
        gate.open()
        self.agent.log.wait('published.*generation=2')
        self.assertEqual(self.whole(), [2, 2])

    def test_of_several_servers_one_that_is_down_holds_the_whole_back(self):
        others = [Origin(self), Origin(self)]
        for i, other in enumerate(others):
            other.put('/l.yaml', b'l%d: 1\n' % i)
        servers = {f's{i}': {'urls': [o.url]} for i, o in enumerate(others)}
        self.start('/web.yaml', *({'server': name, 'path': '/l.yaml'} for name in servers), servers=servers).log.wait('published')
        self.assertEqual(yaml.safe_load(self.out()), {'n': 1, 'l0': 1, 'l1': 1})
        others[1].close()
        others[0].put('/l.yaml', b'l0: 2\n')
        self.assertRegex(self.agent.refresh()['error'], '/l.yaml: ')
        self.assertEqual(yaml.safe_load(self.out()), {'n': 1, 'l0': 1, 'l1': 1})

    def test_no_reader_ever_sees_layers_of_two_versions(self):
        self.two(1)
        self.start('/base.yaml', '/web.yaml', log='info')
        self.assertNotEqual(self.agent.refresh()['outcome'], 'failed')
        with Readers(self.whole) as readers:
            for n in range(2, 22):
                self.two(n)
                self.agent.refresh()
        self.assertEqual((readers.flaws, self.whole()), ([], [21, 21]))
        self.assertGreater(readers.looks, 20)

    def test_the_readers_catch_a_publisher_of_one_layer_after_the_other(self):
        self.write('out/web.yaml', 'base: 1\nweb: 1\n')
        with Readers(self.whole) as readers:
            for n in range(2, 2000):
                self.write('out/web.yaml', f'base: {n}\nweb: {n - 1}\n')
                self.write('out/web.yaml', f'base: {n}\nweb: {n}\n')
                if readers.flaws:
                    break
        self.assertTrue(readers.flaws, 'the harness sees no mixture where there must be some')


# ---- written


class Formats(Case):
    def test_each_is_written_as_it_should_be(self):
        self.origin.put('/web.yaml', EVERYTHING)
        self.origin.put('/logo', b'\x00\xff<html>\n')
        names = 'verbatim', 'yaml', 'json', 'env', 'properties'
        configs = {name: self.config(file=self.path('out/' + name), format=name) for name in names}
        configs['bytes'] = self.config('/logo', file=self.path('out/bytes'), type='bytes')
        self.agent = Agent(self, self.settings(configs))
        for name in configs:
            self.assertNotEqual(self.agent.refresh(name)['outcome'], 'failed')
        want = {'db': {'host': 'a b', 'port': 5432}, 'list': [1, 'x'], 'on': True}
        self.assertEqual(self.out('verbatim'), EVERYTHING)
        self.assertEqual(yaml.safe_load(self.out('yaml')), yaml.safe_load(EVERYTHING))  # to whom on is a boolean
        self.assertNotIn(b'#', self.out('yaml'))
        self.assertEqual(json.loads(self.out('json')), want)
        self.assertEqual(self.out('env'), b'DB_HOST=a b\nDB_PORT=5432\nLIST_0=1\nLIST_1=x\nON=true\n')
        self.assertEqual(self.out('properties'), b'db.host=a b\ndb.port=5432\nlist.0=1\nlist.1=x\non=true\n')
        self.assertEqual(self.out('bytes'), b'\x00\xff<html>\n')


class FormatProgram(Case):
    def setUp(self):
        super().setUp()
        self.program = Hook(self, 'program', f'cat >{self.path("input")}; echo "made of version $PULLET_GENERATION"')
        self.origin.put('/web.yaml', b'db: {host: a}\nn: 1\n')

    def begin(self, **command):
        self.start(format={'run': [self.program.path, 'an argument'], **command})
        self.agent.log.wait('published')

    def test_gets_json_and_its_output_is_published(self):
        self.origin.put('/more.yaml', b'more: 1\n')
        self.start('/web.yaml', '/more.yaml', format={'run': [self.program.path, 'an argument']}).log.wait('published')
        self.assertEqual(json.loads(self.read('input')), {'db': {'host': 'a'}, 'n': 1, 'more': 1})
        self.assertEqual(self.out(), b'made of version 1\n')
        self.assertEqual(self.program.told(), [['1', 'an', 'argument']])
        self.publish(b'n: 2\n')
        self.assertEqual(self.out(), b'made of version 2\n')


class Sets(Case):
    """`dir:` a set of files."""

    def put(self, n, names='ab'):
        for name in names:
            self.origin.put(f'/{name}.yaml', b'n: %d\n' % n)

    def layers(self):
        return [{'path': f'/{name}.yaml', 'as': name + '.yaml', 'optional': name == 'c'} for name in 'abc']

    def begin(self, n=1, **config):
        self.put(n)
        self.origin.put('/c.yaml', None)
        self.start(*self.layers(), dir=self.path('out/set'), **config)
        self.assertNotEqual(self.agent.refresh()['outcome'], 'failed')

    def generation(self):
        return os.readlink(self.path('out/set/..data'))

    def names(self):
        return sorted(n for n in os.listdir(self.path('out/set')) if not n.startswith('..'))

    def look(self):
        """As a reader who needs several files of one generation. Nothing, when two more have come before it had read them: three are kept."""
        fd = os.open(self.path('out/set/..data'), os.O_DIRECTORY)
        opened = int(re.search(r'/\.\.(\d+)-', os.readlink(f'/proc/self/fd/{fd}'))[1])
        seen = []
        try:
            for name in 'a.yaml', 'b.yaml':
                with open(os.open(name, os.O_RDONLY, dir_fd=fd), 'rb') as f:
                    seen.append(int(f.read().split()[1]))
            return seen
        except FileNotFoundError:
            if int(re.match(r'\.\.(\d+)-', self.generation())[1]) > opened + 2:
                return []
            raise
        finally:
            os.close(fd)

    def test_changes_by_one_flip_and_a_reader_sees_one_generation(self):
        self.begin(log='info')
        with Readers(self.look) as readers:
            for n in range(2, 22):
                self.put(n)
                before = self.generation()
                self.assertEqual(self.agent.refresh()['outcome'], 'published')
                self.assertNotEqual(self.generation(), before)
                self.assertEqual(self.read('out/set/b.yaml'), b'n: %d\n' % n)
        self.assertEqual(readers.flaws, [])
        self.assertGreater(readers.looks, 20)
        self.assertEqual(self.names(), ['a.yaml', 'b.yaml'])
        self.assertLessEqual(len(os.listdir(self.path('out/set'))), 6, 'three generations, the link, two names')

    def test_the_readers_catch_a_publisher_that_replaces_file_after_file(self):
        for name in 'ab':
            self.write(f'out/plain/{name}.yaml', 'n: 1\n')
        with Readers(lambda: [int(self.read(f'out/plain/{name}.yaml').split()[1]) for name in 'ab']) as readers:
            for n in range(2, 2000):
                for name in 'ab':
                    self.write(f'out/plain/{name}.yaml', f'n: {n}\n')
                if readers.flaws:
                    break
        self.assertTrue(readers.flaws, 'the harness sees no mixture where there must be some')

    def test_one_of_them_fails_and_nothing_flips(self):
        self.begin()
        before = self.generation()
        self.put(2)
        self.origin.put('/b.yaml', None)
        self.assertRegex(self.agent.refresh()['error'], '/b.yaml: the server answered 404')
        self.put(2)
        self.origin.put('/a.yaml', b'n: [2\n')
        self.assertRegex(self.agent.refresh()['error'], '/a.yaml: invalid YAML, line')
        self.assertEqual((self.generation(), self.look(), self.status()['rejections_by']), (before, [1, 1], {'syntax': 1}))
        self.put(2)
        self.assertEqual(self.agent.refresh()['outcome'], 'published')
        self.assertEqual(self.look(), [2, 2])

    def test_one_change_is_one_reload_with_the_names_of_its_files(self):
        hook, a = Hook(self, 'hook'), Hook(self, 'hook-a')
        self.begin(reload={'run': [hook.path], 'on': [{'keys': ['a.yaml'], 'run': [a.path]}]})
        self.assertEqual((a.next(), hook.next()), (['1', '*'], ['1', '*']))
        self.put(2)
        self.agent.refresh()
        self.assertEqual((a.next(), hook.next()), (['2', 'a.yaml', 'b.yaml'], ['2', 'a.yaml', 'b.yaml']))
        self.publish(b'n: 3\n', '/b.yaml')
        self.assertEqual(hook.next(), ['3', 'b.yaml'])
        self.publish(b'n: 3\n', '/c.yaml')
        self.assertEqual(hook.next(), ['4', 'c.yaml'])
        self.publish(b'n: 3\n', '/a.yaml')
        self.assertEqual(a.next(), ['5', 'a.yaml'])
        self.until(lambda s: s['reload']['notified'] == 5)
        self.assertEqual((a.runs, hook.runs), (3, 4))

    def test_the_check_sees_the_whole_set_and_leaves_nothing(self):
        check = Hook(self, 'check', 'tell files $(ls $1) $(stat -c %a $1/a.yaml); ! grep -q bad $1/*')
        self.begin(check=[check.path, '{path}'], mode='0600')
        self.assertEqual(check.next('^files'), ['a.yaml', 'b.yaml', '600'])
        self.assertEqual((self.strays(), os.listdir(self.path('out'))), ([], ['set']))
        before = self.generation()
        self.origin.put('/b.yaml', b'n: bad\n')
        self.assertRegex(self.agent.refresh()['error'], 'check exited with 1')
        self.assertEqual((self.generation(), self.status()['rejections_by']), (before, {'check': 1}))
        self.assertFalse([name for name in os.listdir(self.path('out/set')) if 'check' in name])


# ---- validated


class Checks(Case):
    def begin(self, **config):
        self.start(**config).log.wait('published')

    def test_size(self):
        self.begin(servers={'main': {'urls': [self.origin.url], 'max_size': '64B'}})
        self.origin.put('/web.yaml', b'n: 2 #' + b'x' * 64)
        outcome = self.agent.refresh()
        self.assertEqual((outcome['outcome'], outcome['generation'], self.out()), ('failed', 1, b'n: 1\n'))
        self.assertRegex(outcome['error'], 'larger than|too large|64')
        self.publish(b'n: 2\n')

    def test_digest_header(self):
        def header(document, name='Repr-Digest', form='sha-256=:%s:'):
            return f'{name}: ' + form % base64.b64encode(hashlib.sha256(document).digest()).decode() + '\r\n'
        self.begin()
        for name, form in (('Content-Digest', 'sha-256=:%s:'), ('Repr-Digest', 'sha-256=:%s:'), ('Repr-Digest', 'md5=:AAAA:, sha-256=:%s:'), ('Digest', 'SHA-256=%s')):
            self.origin.put('/web.yaml', b'n: 2\n', header(b'n: 3\n', name, form))
            for _ in range(2):
                counted = self.status()['rejections_by'].get('digest', 0)
                outcome = self.agent.refresh()
                self.assertRegex(outcome['error'], '/web.yaml is not what its server says: SHA-256 is [0-9a-f]{16}')
                self.assertEqual((self.status()['rejections_by']['digest'], self.out()), (counted + 1, b'n: 1\n'))
        self.publish(b'n: 2\n', headers=header(b'n: 2\n'))  # the very bytes, with the right digest
        self.publish(b'n: 3\n', headers='Repr-Digest: md5=:AAAA:\r\n')
        right, wrong = header(b'n: 4\n', 'Content-Digest'), header(b'n: 5\n', 'Content-Digest')
        for headers in (right + wrong, wrong + right, header(b'n: 4\n') + wrong, right + header(b'n: 5\n'), 'Content-Digest: sha-256=:AAAA:\r\n',
                        'Digest: SHA-256=\r\n'):
            self.origin.put('/web.yaml', b'n: 4\n', headers)
            self.assertRegex(self.agent.refresh()['error'], '/web.yaml is not what its server says: ')
        self.publish(b'n: 4\n', headers=right + header(b'n: 4\n') + header(b'n: 4\n', 'Digest', 'SHA-256=%s'))
        # of what is coded they speak of the bytes as sent; of those that are decoded, where something in between coded them
        for n, name in enumerate(('Content-Digest', 'Repr-Digest', 'Digest'), 5):
            document, other = b'n: %d\n' % n, b'n: %d\n' % (n + 1)
            coded = gzip.compress(document)
            encoding = 'Content-Encoding: gzip\r\n'
            for wrong in (other, gzip.compress(other)):
                self.origin.put('/web.yaml', coded, encoding + header(wrong, name))
                self.assertRegex(self.agent.refresh()['error'], f'is not what its server says: SHA-256 is {hashlib.sha256(coded).hexdigest()[:16]}')
            self.origin.put('/web.yaml', coded, encoding + header(coded if n < 7 else document, name))
            self.assertEqual((self.agent.refresh()['outcome'], self.out()), ('published', document))

    def schema(self, **properties):
        self.write('schema.json', json.dumps({'type': 'object', 'properties': properties, 'x-owner': 'us'}))

    def test_schema_dir(self):
        os.mkdir(self.path('schemas'))
        self.write('schema.json', json.dumps({'$id': 'https://example/s/web.json', '$ref': 'defs.yaml#/$defs/web'}))
        self.write('schemas/defs.yaml', '$defs: {web: {properties: {n: {maximum: 2}}}}\n')
        self.begin(schema=self.path('schema.json'), schema_dir=self.path('schemas'))
        self.origin.put('/web.yaml', b'n: 3\n')
        self.refused('schema', 'line 1, column 4: /n: 3 is more than the maximum 2')
        self.write('schemas/defs.yaml', '$defs: {web: {properties: {n: {maximum: 3}}}}\n')
        self.assertEqual((self.agent.refresh()['outcome'], self.out()), ('published', b'n: 3\n'), 'other rules: validated again')
        self.write('schemas/defs.yaml', '$defs: {other: {}}\n')
        self.origin.put('/web.yaml', b'n: 2\n')
        self.assertRegex(self.agent.refresh()['error'], r'schema.json: .*"defs.yaml#/\$defs/web": there is no such place in this schema')
        self.assertEqual(self.out(), b'n: 3\n')

    def test_check(self):
        check = Hook(self, 'check', 'tell saw $(stat -c "%a %U" "$2") "$(cat "$2")"; if grep -q bad "$2"; then echo "db.host: no such host"; exit 7; fi')
        self.begin(check=[check.path, '--file', '{path}'], mode='0604')
        self.assertEqual(check.next('^saw'), ['604', 'root' if os.geteuid() == 0 else check.lines.seen[-1].split()[2], 'n:', '1'])
        self.assertEqual(os.listdir(self.path('out')), ['web.yaml'])
        self.origin.put('/web.yaml', b'n: bad\n')
        self.refused('check', '^check exited with 7: db.host: no such host$')
        words = check.told()[-1]
        self.assertEqual((words[0], words[1], os.path.dirname(words[2])), ('2', '--file', self.path('out')))
        check.do('tell pid $$; hold')
        self.origin.put('/web.yaml', b'n: 2\n')
        self.agent.post('/v1/configs/web/refresh')
        pid = int(check.next('^pid')[0])
        self.agent.stop()  # in the middle of it
        self.assertTrue(gone([pid]))
        self.assertEqual(self.strays(), [])
        check.do('kill -SEGV $$')
        self.start(check=[check.path, '--file', '{path}'], mode='0604')
        self.refused('check', '^check killed by signal 11$')

    def test_a_check_that_was_killed_says_nothing_about_the_version(self):
        check = Hook(self, 'check', 'if grep -q "n: 2" "$1"; then kill -KILL $$; fi')
        self.begin(check=[check.path, '{path}'])
        self.origin.put('/web.yaml', b'n: 2\n')
        for _ in range(2):
            outcome = self.agent.refresh()
            self.assertEqual((outcome['outcome'], outcome['error'], self.out()), ('failed', 'check killed by signal 9', b'n: 1\n'))
        self.assertEqual((self.status()['rejections_by'], self.status()['cause']), ({}, 'this host'))
        check.do('true')
        self.assertEqual((self.agent.refresh()['outcome'], self.out()), ('published', b'n: 2\n'))

    def test_check_that_hangs_or_cannot_be_started(self):
        check = Hook(self, 'check')
        self.begin(check={'run': [check.path, '{path}'], 'timeout': '300ms'})
        check.do('sleep 1000 & tell pid $!; tell pid $$; hold')
        self.origin.put('/web.yaml', b'n: 2\n')
        for _ in range(2):  # the host may be busy
            outcome = self.agent.refresh()
            self.assertEqual((outcome['outcome'], self.status()['rejections_by']), ('failed', {}))
            self.assertRegex(outcome['error'], '^check still ran after 300 ms and was killed')
        self.refused('check', '^check still ran after 300 ms and was killed')
        self.assertTrue(gone(int(words[0]) for words in check.told('pid')))
        os.unlink(check.path)
        self.origin.put('/web.yaml', b'n: 3\n')
        for _ in range(2):
            self.assertRegex(self.agent.refresh()['error'], 'check cannot be started: No such file')
        self.assertEqual(self.status()['rejections_by'], {'check': 1})
        self.assertEqual(self.out(), b'n: 1\n')


class Remembered(Case):
    """What was refused is known by its digest."""

    def setUp(self):
        super().setUp()
        self.check = Hook(self, 'check', '! grep -q bad "$1"')
        self.more = {'check': [self.check.path, '{path}']}

    def refuse_again(self, times=3):
        for _ in range(times):
            outcome = self.agent.refresh()
            self.assertEqual((outcome['outcome'], outcome['generation']), ('failed', 1))
            self.assertRegex(outcome['error'], 'check exited with 1')

    def test_not_judged_again_until_it_changes(self):
        self.start(**self.more).log.wait('published')
        self.origin.put('/web.yaml', b'n: bad\n')
        self.refused('check', 'exited with 1')
        self.refuse_again()
        self.assertEqual((self.check.runs, self.status()['rejections']), (2, 1))
        away = self.status()['rejected']
        self.assertEqual((away['by'], away['sha256']), ('check', hashlib.sha256(b'n: bad\n').hexdigest()))
        self.assertEqual(self.origin.asked[-1], ('/web.yaml', 304))
        self.origin.put('/web.yaml', good(b'n: bad\n'))  # without an ETag: the bytes come again and again
        self.refuse_again()
        self.restart(kill=True, **self.more)
        self.refuse_again()
        self.assertEqual((self.check.runs, self.status()['rejected']['by']), (2, 'check'))
        self.origin.put('/web.yaml', b'n: bad too\n')
        self.refused('check', 'exited with 1')
        self.origin.put('/web.yaml', b'n: bad\n')
        self.refuse_again()
        self.assertEqual(self.check.runs, 3, 'each is remembered')
        self.origin.put('/web.yaml', b'n: 1\n')
        self.assertEqual(self.agent.refresh()['outcome'], 'unchanged')
        self.assertNotIn('rejected', self.status())
        self.assertEqual((self.status()['state'], self.check.runs), ('ok', 3))
        self.publish(b'n: 2\n')


class Signatures(Case):
    @classmethod
    def setUpClass(cls):
        cls.shared = tempfile.mkdtemp(prefix='pullet-test-')
        cls.addClassCleanup(shutil.rmtree, cls.shared, ignore_errors=True)
        for name in ('ours', 'other'):
            path = os.path.join(cls.shared, name)
            subprocess.run(['minisign', '-G', '-W', '-p', path + '.pub', '-s', path + '.key'], check=True, stdout=subprocess.DEVNULL)

    def key(self, name='ours'):
        with open(os.path.join(self.shared, name + '.pub'), encoding='ascii') as f:
            return f.read().split('\n')[1]

    def sign(self, document, comment='', key='ours', path='/web.yaml'):
        self.write('doc', document)
        subprocess.run(['minisign', '-S', '-s', os.path.join(self.shared, key + '.key'), '-m', self.path('doc'), '-t', comment],
                       check=True, stdout=subprocess.DEVNULL)
        self.origin.put(path, document)
        self.origin.put(path + '.minisig', self.read('doc.minisig'))

    def begin(self, *layers, comment='', **more):
        self.sign(b'n: 1\n', comment)
        self.more = {'verify': {'public_key': self.key()}, **more}
        self.start(*layers, **self.more).log.wait('published')

    def test_unsigned_by_another_key_and_tampered(self):
        self.begin()
        self.assertEqual(self.out(), b'n: 1\n')
        self.origin.put('/web.yaml', b'n: 2\n')
        self.refused('signature', '/web.yaml: the signature by the key [0-9A-F]{16} is not of this document')
        self.origin.put('/web.yaml.minisig', None)
        self.refused('signature', r'/web.yaml has no signature \(/web.yaml.minisig\)')
        self.sign(b'n: 2\n', key='other')
        self.refused('signature', '/web.yaml: .*is not by one of the public keys')
        self.sign(b'n: 2\n', 'rev=1')
        self.origin.put('/web.yaml.minisig', self.read('doc.minisig').replace(b'rev=1', b'rev=2'))
        self.refused('signature', '/web.yaml: .*comment')
        self.origin.put('/web.yaml.minisig', b'nonsense\n')
        self.refused('signature', '/web.yaml: ')
        self.assertEqual(self.status()['rejections_by'], {'signature': 5})
        self.sign(b'n: 2\n')
        self.assertEqual(self.agent.refresh()['outcome'], 'published')
        self.assertEqual(self.out(), b'n: 2\n')

    def test_each_layer_needs_its_own(self):
        self.sign(b'base: 1\n', 'path=/base.yaml', path='/base.yaml')
        self.begin('/base.yaml', '/web.yaml', comment='path=/web.yaml')
        self.assertEqual(yaml.safe_load(self.out()), {'base': 1, 'n': 1})
        self.sign(b'base: 2\n', 'path=/base.yaml', path='/base.yaml')
        self.origin.put('/web.yaml', b'n: 2\n')
        self.refused('signature', '/web.yaml: ')
        self.assertEqual(yaml.safe_load(self.out()), {'base': 1, 'n': 1})
        self.sign(b'n: 2\n', 'path=/web.yaml')
        self.assertEqual(self.agent.refresh()['outcome'], 'published')
        self.assertEqual(yaml.safe_load(self.out()), {'base': 2, 'n': 2})


# ---- told

SPY = '''
import json, os, sys
def one(fd):
    try:
        return os.readlink('/proc/self/fd/' + fd)
    except OSError:
        return None  # that of the listing itself
status = dict(line[:-1].split(':\\t', 1) for line in open('/proc/self/status'))
spied = {'argv': sys.argv[2:], 'env': open('/proc/self/environ').read().split('\\0')[:-1], 'cwd': os.getcwd(),
         'fds': {fd: one(fd) for fd in os.listdir('/proc/self/fd') if one(fd)}, 'group': os.getpgid(0) == os.getpid(),
         'umask': status['Umask'], 'blocked': int(status['SigBlk'], 16), 'ignored': int(status['SigIgn'], 16) & 1 << 11}
open(sys.argv[1], 'w').write('spied ' + json.dumps(spied) + '\\n')
'''


class Reload(Case):
    def setUp(self):
        super().setUp()
        self.hook = Hook(self, 'hook')

    def begin(self, *layers, **reload):
        """Running, and told of generation 1."""
        self.start(*layers, reload={'run': [self.hook.path], **reload})
        self.assertEqual(self.hook.next(), ['1', '*'])
        self.until(lambda s: s['reload']['notified'] == 1)

    @harness.needs(harness.LOOK)
    def test_a_program_gets_what_is_documented_and_nothing_else(self):
        self.write('spy.py', SPY)
        argv = ['/usr/bin/python3', '-I', '-S', self.path('spy.py'), self.hook.path + '.pipe', 'a b', '', '$HOME; *']
        # an agent with a descriptor, a variable and an ignored signal that it was given
        prefix = ['/bin/sh', '-c', 'exec 7</dev/null; trap "" USR2; umask 077; exec "$@"', 'sh']
        self.start(reload={'run': argv}, env={'SECRET': 'x'}, prefix=prefix)
        self.assertTrue(os.path.exists(f'/proc/{self.agent.pid}/fd/7'))
        usual = {'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', 'HOME=/', 'LANG=C.UTF-8',
                 'PULLET_CONFIG_NAME=web', 'PULLET_FILE=' + self.path('out/web.yaml')}
        for document, more in ((None, {'PULLET_GENERATION=1', 'PULLET_CHANGED_KEYS=*'}),
                               (b'n: 2\na: {b.c: 1, d: [1]}\n', {'PULLET_GENERATION=2', 'PULLET_CHANGED_KEYS=a.b\\.c\na.d.0\nn'})):
            if document:
                self.publish(document)
            line = self.hook.lines.wait('^spied', self.hook.at)
            self.hook.at = self.hook.lines.count
            spied = json.loads(line.split(' ', 1)[1])
            self.assertEqual(spied['argv'], argv[5:])
            self.assertEqual(set(spied['env']), usual | more)
            self.assertEqual((spied['cwd'], spied['umask'], spied['group'], spied['blocked'], spied['ignored']), ('/', '0022', True, 0, 0))
            self.assertEqual(sorted(spied['fds']), ['0', '1', '2'], spied['fds'])
            self.assertEqual(spied['fds']['0'], '/dev/null')
            self.assertRegex(spied['fds']['1'], '^pipe:')
            self.agent.log.wait('reload succeeded')

    def test_rules_by_key(self):
        db, log = Hook(self, 'db'), Hook(self, 'log')
        self.origin.put('/web.yaml', b'db: {host: a}\nlog: {level: 1, file: x}\nn: 1\n')
        self.start(reload={'run': [self.hook.path], 'on': [{'keys': ['log.level'], 'none': True}, {'keys': ['db', '*.pool'], 'run': [db.path]},
                                                           {'keys': ['log'], 'run': [log.path]}]})
        every = db, log, self.hook
        self.assertEqual([h.next() for h in every], [['1', '*']] * 3)
        steps = ((b'db: {host: b}\nlog: {level: 1, file: x}\nn: 1\n', [db], ['db.host']),
                 (b'db: {host: b}\nlog: {level: 2, file: x}\nn: 1\n', [], []),
                 (b'db: {host: b}\nlog: {level: 2, file: y}\nn: 1\n', [log], ['log.file']),
                 (b'db: {host: b}\nlog: {level: 2}\nn: 2\n', [log, self.hook], ['log.file', 'n']),
                 (b'db: {host: b}\nlog: {level: 2}\nn: 2\nx: {pool: 1}\n', [db], ['x.pool']))
        told = {h: 1 for h in every}
        for n, (document, who, keys) in enumerate(steps, 2):
            self.publish(document)
            for h in who:
                self.assertEqual(h.next(), [str(n), *keys])
                told[h] += 1
            self.until(lambda s, n=n: (s['reload']['notified'], s['reload']['state']) == (n, 'idle'))
        self.assertEqual({h: h.runs for h in every}, told)

    def test_never_two_at_once_and_a_thousand_changes_are_one_more(self):
        lock = f'mkdir {self.path("lock")} || tell overlap; {{}}; rmdir {self.path("lock")}'
        self.hook.do(lock.format('true'))
        publisher = Publisher(self)
        os.makedirs(self.path('out'))
        self.agent = Agent(self, json.dumps({**json.loads(self.settings({'web': self.config(reload={'run': [self.hook.path]})}, log='info')),
                                             'push': [{'endpoint': publisher.endpoint}]}))
        self.hook.next()
        publisher.wait_subscribed()
        self.agent.refresh()
        self.hook.do(lock.format('hold'))
        self.publish(b'n: 2\n')
        self.assertEqual(self.hook.next(), ['2', 'n'])
        begin = self.storm(publisher, 1000, 2)
        status = self.until(lambda s: s['reload']['pending'] == s['generation'])
        self.assertEqual((status['reload']['state'], status['reload']['runs'], status['reload']['notified']), ('running', 2, 1))
        self.hook.do(lock.format('true'))
        self.hook.release()
        words = self.hook.next()
        self.assertEqual((words[0], self.hook.told('overlap')), (str(self.status()['generation']), []))
        keys = {key for key in words[1:] if key != 'n'}
        self.assertTrue('k1002' in keys or words[1] == '*', words[:9])
        self.until(lambda s: s['reload']['state'] == 'idle')
        self.assertEqual(self.hook.runs, 3, f'one ran, one waited; the storm took {time.monotonic() - begin:.1f} s')
        self.storm(publisher, 200, 2000)  # and now as fast as it runs
        status = self.until(lambda s: s['reload']['state'] == 'idle' and s['reload']['notified'] == s['generation'])
        self.assertEqual(self.hook.told('overlap'), [])
        self.assertEqual(self.hook.told()[-1][0], str(status['generation']), 'the last version is always told')

    def storm(self, publisher, count, start):
        """So many versions, pushed one after the other; until the last one stands."""
        begin = time.monotonic()
        for n in range(start + 1, start + count + 1):
            self.origin.put('/web.yaml', b'n: %d\nk%d: 1\n' % (n, n))
            publisher.send(b'web', {'v': 1, 'epoch': 'e', 'seq': n})
        while not self.out().startswith(b'n: %d\n' % n):
            self.agent.log.wait('published', self.agent.log.count)
        return begin

    def test_the_lock_catches_two_at_once(self):
        self.hook.do(f'mkdir {self.path("lock")} || tell overlap; hold')
        for _ in range(2):
            program = Program([self.hook.path])
            self.addCleanup(program.close)
            self.hook.next()
        self.hook.next('^overlap')

    def test_the_watch_on_processes_sees_a_grandchild_that_lives_on(self):
        self.hook.do('sleep 1000 & tell pid $!; hold')
        program = Program([self.hook.path], start_new_session=True)
        self.addCleanup(program.close)
        pid = int(self.hook.next('^pid')[0])
        program.signal(signal.SIGKILL)
        program.wait()
        self.assertFalse(gone([pid], 0.1), 'the harness misses a survivor')
        os.killpg(program.pid, signal.SIGKILL)
        self.assertTrue(gone([pid]))

    def test_its_output_is_in_the_log_as_one_line_and_bounded(self):
        self.hook.do('echo "one"; echo "two\\033[31m" >&2; exit 0')
        self.begin()
        line = self.agent.log.wait('reload succeeded')
        self.assertIn(r'output="one\ntwo\u001b[31m\n"', line)
        self.hook.do('head -c 1000000 /dev/zero | tr "\\0" x')
        self.publish(b'n: 2\n')
        self.assertLess(len(self.agent.log.wait('reload succeeded.*generation=2.*xxx')), 5000)

    def test_what_was_not_told_is_told_after_a_crash_a_stop_and_a_new_configuration(self):
        """The version is told again rather than not at all."""
        self.begin()
        self.hook.do('tell pid $$; hold')
        for n, end in enumerate((signal.SIGKILL, signal.SIGTERM, signal.SIGHUP), 2):
            self.publish(b'n: %d\n' % n)
            self.assertEqual(self.hook.next(), [str(n), 'n'])
            pid = int(self.hook.next('^pid')[0])
            at = self.agent.log.count
            if end == signal.SIGHUP:
                self.hook.do('exit 0')
                self.change_config()
            self.agent.signal(end)
            if end != signal.SIGHUP:
                self.agent.wait()
                self.agent.close()
            self.assertTrue(gone([pid]), 'two agents would have run two at once')
            self.hook.do('exit 0')
            if end == signal.SIGHUP:
                self.agent.log.wait('the new configuration is applied.*changed="1: web"', at)
            else:
                self.start(reload={'run': [self.hook.path]})
            self.assertEqual(self.hook.next(), [str(n), '*'])
            self.until(lambda s, n=n: s['reload']['notified'] == n)
            self.hook.do('tell pid $$; hold')
        self.restart(reload={'run': [self.hook.path]})
        self.assertEqual(self.agent.refresh()['outcome'], 'unchanged')
        self.assertEqual((self.status()['reload']['state'], self.hook.runs), ('idle', 7), 'what was told is not told again')


# ---- watched


class Probe(Case):
    def setUp(self):
        super().setUp()
        self.hook = Hook(self, 'hook')
        self.probe = Hook(self, 'probe', f'! grep -q bad {self.path("out/web.yaml")} || {{ echo "connection refused"; exit 1; }}')
        self.more = {'reload': {'run': [self.hook.path]}, 'probe': self.watching()}

    def watching(self, **probe):
        return {'run': [self.probe.path], 'for': '300ms', 'every': '100ms', 'failures': 2, **probe}

    def begin(self, proven=True, **more):
        self.more.update(more)
        self.start(**self.more)
        self.assertEqual(self.hook.next(), ['1', '*'])
        self.until(lambda s: s['reload']['notified'] == 1 and (not proven or s['probe']['state'] == 'passed'))

    def rolled_back(self, n, back):
        """Generation n was published, did harm and was rolled back; the next one is what stood before, and reload succeeded of it."""
        self.agent.log.wait(f'reload succeeded.*generation={n}$|reload succeeded.*generation={n} ')
        self.agent.log.wait(f'probe failed .*generation={n}')
        self.agent.log.wait(f'published.*generation={n + 1} .*origin="probe: generation {n} was bad, back to {back}"')
        self.until(lambda s: s['reload']['notified'] == n + 1 and s['reload']['state'] == 'idle')
        self.assertEqual((self.hook.next()[0], self.hook.next()[0]), (str(n), str(n + 1)))

    def test_a_bad_one_is_taken_back_and_its_bytes_are_not_taken_again(self):
        self.begin(probe=self.watching(**{'for': '1h'}), proven=False)
        begin = time.monotonic()
        self.origin.put('/web.yaml', b'n: bad\n')
        self.agent.refresh()
        self.rolled_back(2, 1)
        self.assertGreater(time.monotonic() - begin, 0.19, 'two looks, 100 ms before each')
        status = self.status()
        self.assertEqual((self.out(), status['generation'], status['probe']['state'], status['probe']['failed']), (b'n: 1\n', 3, 'failed', 1))
        self.assertRegex(status['probe']['error'], 'probe exited with 1: connection refused')
        for kind in (b'n: bad\n', good(b'n: bad\n')):  # with an ETag, and without
            self.origin.put('/web.yaml', kind)
            for _ in range(2):
                self.assertRegex(self.agent.refresh()['error'], 'connection refused')
        status = self.status()
        self.assertEqual((self.out(), status['generation'], status['rejected']['by']), (b'n: 1\n', 3, 'probe'))
        self.restart(kill=True, **self.more)
        self.assertEqual((self.agent.refresh()['outcome'], self.out()), ('failed', b'n: 1\n'))
        self.origin.put('/web.yaml', b'n: bad again\n')
        self.agent.refresh()
        self.rolled_back(4, 3)
        self.assertEqual(self.publish(b'n: 4\n'), 6)
        self.assertEqual(self.out(), b'n: 4\n')

    def test_a_crash_in_the_middle_of_it_begins_it_anew(self):
        self.begin(probe=self.watching(**{'for': '1h'}), proven=False)
        self.publish(b'n: 2\n')
        self.until(lambda s: s['probe']['state'] == 'running' and s['probe']['generation'] == 2)
        self.hook.next()
        for end in (signal.SIGKILL, signal.SIGHUP):
            at = self.agent.log.count
            if end == signal.SIGHUP:
                self.change_config()
            self.agent.signal(end)
            if end == signal.SIGKILL:
                self.agent.wait()
                self.start(**self.more)
            else:
                self.agent.log.wait('the new configuration is applied.*changed="1: web"', at)
            self.until(lambda s: s['probe']['state'] == 'running')
        self.probe.do('exit 1')
        self.agent.log.wait('probe failed .*generation=2')
        self.agent.log.wait('published.*generation=3.*back to 1')
        self.assertEqual(self.hook.next()[0], '3')


# ---- looked after


class Drift(Case):
    def harms(self, path):
        """What people do to a file, by the cause that is logged."""
        def replace():
            with open(path + '.mine', 'wb') as f:
                f.write(b'harm')
            os.rename(path + '.mine', path)

        def edit():
            with open(path, 'r+b') as f:
                f.write(b'harm')
        return {'written': edit, 'removed': lambda: os.unlink(path), 'replaced': replace, 'its mode or owner changed': lambda: os.chmod(path, 0o666)}

    def test_a_file_that_was_touched_is_put_right_at_once_and_the_cause_is_said(self):
        names = ['web', 'removed', 'replaced', 'mode']
        self.agent = Agent(self, self.settings({name: self.config(file=self.path('out/' + name)) for name in names}))
        for name in names:
            self.assertNotEqual(self.agent.refresh(name)['outcome'], 'failed')
        asked = len(self.origin.asked)
        for name, cause in zip(names, self.harms('')):
            at = self.agent.log.count
            self.harms(self.path('out/' + name))[cause]()
            self.agent.log.wait(f'restoring it config={name} .*cause="?{cause}', at)
            status = self.until(lambda s, name=name: s['restored'] and self.out(name) == b'n: 1\n' and os.stat(self.path('out/' + name)).st_mode & 0o777 == 0o640, name)
            self.assertEqual((status['restored'], status['generation']), (1, 1))
        self.assertEqual(len(self.origin.asked), asked, 'nobody asked a server')


class DryRun(Case):
    def setUp(self):
        super().setUp()
        self.check, self.hook = Hook(self, 'check'), Hook(self, 'hook')
        self.origin.put('/web.yaml', b'db: {host: b, password: new}\nlist: [1, 2]\nsame: 1\n')
        self.more = {'check': [self.check.path, '{path}'], 'reload': {'run': [self.hook.path]}, 'mask': ['*.password']}

    def run_dry(self, **more):
        self.write('pullet.yaml', self.settings({'web': self.config(**{**self.more, **more})}))
        return subprocess.run([PULLETD, '--dry-run', '-c', self.path('pullet.yaml')], capture_output=True, text=True, check=False,
                              timeout=harness.DEADLINE * 2)

    def tree(self):
        return {os.path.join(d, f): (os.lstat(os.path.join(d, f)).st_ino, os.lstat(os.path.join(d, f)).st_mtime_ns)
                for d, _, files in os.walk(self.dir) for f in files if f != 'pullet.yaml' and not f.endswith(('.pipe', '.does'))}

    def test_prints_what_would_change_with_masks_runs_checks_and_writes_nothing(self):
        self.write('out/web.yaml', 'db: {host: a, password: old}\ngone: 1\nsame: 1\n')
        before = self.tree()
        done = self.run_dry()
        self.assertEqual(done.returncode, 0, done.stderr)
        head, changes = done.stdout.split('\n', 1)
        self.assertRegex(head, rf'^web: would publish \d+ bytes, sha256 \w{{12}}, to {re.escape(self.path("out/web.yaml"))}$')
        self.assertEqual(changes, '~ db.host: "a" -> "b"\n~ db.password: *** -> ***\n- gone: 1\n+ list.0: 1\n+ list.1: 2\n')
        self.assertRegex(done.stderr, 'dry run: would publish')
        self.assertNotRegex(done.stdout + done.stderr, 'old|new"')
        self.assertEqual((self.check.runs, self.hook.runs), (1, 0))
        self.assertEqual(self.tree(), before)
        self.assertFalse(os.path.exists(self.path('state')) or os.path.exists(self.path('run')))

    def test_beside_a_running_agent(self):
        self.start(**self.more).log.wait('published')
        self.hook.next()
        self.until(lambda s: s['reload']['notified'] == 1)
        done = self.run_dry()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r'^web: is up to date: \d+ bytes, sha256 \w{12}, to \S+\n$')
        self.assertRegex(done.stderr, 'the file is up to date')
        self.origin.put('/web.yaml', b'db: {host: c, password: new}\nlist: [1, 2]\nsame: 1\n')
        self.assertEqual(self.run_dry().stdout.split('\n', 1)[1], '~ db.host: "b" -> "c"\n')
        self.assertEqual((self.status()['generation'], self.status()['restored'], self.hook.runs), (1, 0, 1))


if __name__ == '__main__':
    harness.main()
