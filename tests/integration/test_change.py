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
from harness import PULLET, PULLETD, Agent, FaultServer, Lines, Program, drip, good, raw, reset
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

    def test_a_layer_that_is_too_slow_ends_the_run_and_nothing_is_half_new(self):
        self.two(1)
        agent = self.start('/base.yaml', '/web.yaml', timeout='1s')
        self.until(lambda s: s['generation'] == 1 or agent.refresh() is None)
        self.two(2)
        self.origin.put('/web.yaml', drip(b'HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nweb', b': 2'))
        before = self.status()['runs']['timeouts']
        self.assertEqual(agent.refresh()['outcome'], 'failed')
        self.assertEqual((self.whole(), self.status()['runs']['timeouts']), ([1, 1], before + 1))

    def test_one_layer_is_new_and_the_others_are_as_they_were_also_over_a_restart(self):
        self.two(1)
        layers = '/base.yaml', {'path': '/none.yaml', 'optional': True}, '/web.yaml'
        self.start(*layers).log.wait('published')
        for base, web, want in ((1, 2, [304, 404, 200]), (2, 2, [200, 404, 304]), (2, 2, [304, 404, 304])):
            self.two(base, web)
            del self.origin.asked[:]
            self.assertNotEqual(self.agent.refresh()['outcome'], 'failed')
            self.assertEqual([dict(self.origin.asked)[p] for p in ('/base.yaml', '/none.yaml', '/web.yaml')], want)
            self.assertEqual(self.whole(), [base, web])
        self.restart(*layers)
        self.two(2, 3)
        del self.origin.asked[:]
        self.assertEqual(self.agent.refresh()['generation'], 4)
        self.assertIn(('/base.yaml', 304), self.origin.asked)
        self.assertEqual(self.whole(), [2, 3])

    def test_a_layer_that_was_refused_is_part_of_the_next_whole_as_the_server_has_it(self):
        """The server then answers 304 for a document that never stood."""
        for stood in (False, True):
            with self.subTest(stood=stood):
                self.two(1)
                if stood:
                    self.origin.put('/base.yaml', b'base: 1\nmust: 1\n')
                agent = self.start('/base.yaml', '/web.yaml', guard={'require': ['must']})
                agent.log.wait('published' if stood else 'rejected by the guard')
                if stood:
                    self.two(1, 2)
                    self.refused('guard', 'must')
                self.origin.put('/base.yaml', b'base: 3\nmust: 1\n')
                outcome = agent.refresh()
                self.assertEqual((outcome['outcome'], outcome['error']), ('published', None))
                self.assertIn(('/web.yaml', 304), self.origin.asked)
                self.assertEqual(self.whole(), [3, 2 if stood else 1])
                agent.stop()
                shutil.rmtree(self.path('state'))
                os.unlink(self.path('out/web.yaml'))

    def test_an_optional_layer_comes_changes_and_goes(self):
        self.origin.put('/web.yaml', b'a: 1\nb: {c: 1}\n')
        self.origin.put('/more.yaml', None)
        layers = '/web.yaml', {'path': '/more.yaml', 'optional': True}
        self.start(*layers, format='json').log.wait('published')
        self.assertEqual(json.loads(self.out()), {'a': 1, 'b': {'c': 1}})
        self.assertEqual(self.agent.refresh()['outcome'], 'unchanged')
        for document, want in ((b'b: {d: 2}\n', {'a': 1, 'b': {'c': 1, 'd': 2}}), (b'a: ~\n', {'b': {'c': 1}}), (None, {'a': 1, 'b': {'c': 1}})):
            self.publish(document, '/more.yaml')
            self.assertEqual(json.loads(self.out()), want)
            self.assertEqual(self.agent.refresh()['outcome'], 'unchanged')
            self.restart(*layers, format='json')
            self.assertEqual(self.agent.refresh()['outcome'], 'unchanged', 'absence is remembered too')
        self.origin.put('/more.yaml', good(b'', status='403 Forbidden'))
        self.assertRegex(self.agent.refresh()['error'], '/more.yaml: the server answered 403', 'only 404 and 410 are an absence')
        self.origin.put('/more.yaml', good(b'', status='410 Gone'))
        self.assertEqual(self.agent.refresh()['outcome'], 'unchanged')

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

    def test_what_a_format_cannot_hold_is_refused_and_named(self):
        self.start(format='env').log.wait('published')
        self.origin.put('/web.yaml', b'a: {b: "two\\nlines"}\n')
        self.refused('format', 'a.b')
        self.origin.put('/web.yaml', b'a: {b: 1}\na_b: 2\n')
        self.refused('format', 'a.b.*a_b')
        self.publish(b'a_b: 2\n')
        self.assertEqual(self.out(), b'A_B=2\n')

    def test_another_format_after_a_restart_writes_the_same_version_anew(self):
        self.origin.put('/web.yaml', EVERYTHING)
        program = Hook(self, 'program', 'cat >/dev/null; echo made')
        for format, want in ((None, EVERYTHING), ('env', b'DB_HOST=a b\nDB_PORT=5432\nLIST_0=1\nLIST_1=x\nON=true\n'),
                             ({'run': [program.path]}, b'made\n'), ('verbatim', EVERYTHING), ({'run': [program.path]}, b'made\n'),
                             ('properties', b'db.host=a b\ndb.port=5432\nlist.0=1\nlist.1=x\non=true\n')):
            with self.subTest(format=format):
                self.start(format=format)
                self.assertNotEqual(self.agent.refresh()['outcome'], 'failed')
                self.until(lambda s, want=want: self.out() == want)
                self.assertEqual(self.agent.refresh()['outcome'], 'unchanged')
                self.assertEqual(self.out(), want)
                self.agent.stop()


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

    def test_that_fails_hangs_or_writes_nothing_is_a_refusal(self):
        self.begin(timeout='1s')
        for n, (does, sentence) in enumerate((('echo half; echo "no such host" >&2; exit 3', 'program exited with 3: no such host'),
                                              ('echo half; tell pid $$; hold', 'program still ran after 1 s'), ('cat >/dev/null', 'wrote nothing'),
                                              ('echo half; kill -SEGV $$', 'program killed by signal 11'))):
            with self.subTest(does=does):
                self.program.do(does)
                self.origin.put('/web.yaml', b'n: %d\n' % (n + 2))
                self.refused('format', sentence)
                runs = self.program.runs
                self.assertRegex(self.agent.refresh()['error'], sentence)
                self.assertEqual(self.program.runs, runs, 'refused by digest: the program is not asked again')
        self.assertTrue(gone(int(words[0]) for words in self.program.told('pid')))
        self.program.do('echo good')
        self.publish(b'n: 9\n')
        self.assertEqual(self.out(), b'good\n')

    def test_that_writes_too_much_is_a_refusal(self):
        self.begin()
        self.program.do('head -c 268435457 /dev/zero')
        self.origin.put('/web.yaml', b'n: 2\n')
        self.refused('format', r'wrote more than \d+ bytes')
        self.assertEqual(self.out(), b'made of version 1\n')

    def test_that_cannot_be_started_says_nothing_about_the_version(self):
        self.begin()
        os.chmod(self.program.path, 0o644)
        self.origin.put('/web.yaml', b'n: 2\n')
        self.assertRegex(self.agent.refresh()['error'], 'Permission denied')
        self.assertNotIn('rejected', self.status())
        os.chmod(self.program.path, 0o755)
        self.assertEqual(self.agent.refresh()['outcome'], 'published')

    def test_what_it_made_survives_a_restart_without_it(self):
        self.begin()
        self.agent.signal(signal.SIGKILL)
        self.agent.wait()
        os.unlink(self.path('out/web.yaml'))
        self.assertTrue(self.read('state/web/00000000000000000001').endswith(b'db: {host: a}\nn: 1\nmade of version 1\n'))
        self.program.do('echo other; exit 1')
        self.start(format={'run': [self.program.path, 'an argument']}).log.wait('last known good')
        self.assertEqual(self.out(), b'made of version 1\n')
        self.assertEqual(self.agent.refresh()['outcome'], 'unchanged')
        at = self.agent.log.count
        self.write('out/web.yaml', 'harm')
        self.agent.log.wait('published', at)
        self.assertEqual((self.out(), self.program.runs), (b'made of version 1\n', 1))


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

    def test_an_optional_file_comes_and_goes(self):
        self.begin()
        for document, want in ((b'n: 1\n', ['a.yaml', 'b.yaml', 'c.yaml']), (None, ['a.yaml', 'b.yaml'])):
            self.publish(document, '/c.yaml')
            self.assertEqual((self.names(), sorted(os.listdir(self.path('out/set/..data')))), (want, want))
            self.assertEqual(self.agent.refresh()['outcome'], 'unchanged')

    def test_a_restart_finds_it_as_it_was(self):
        self.begin()
        before = self.generation()
        self.restart(*self.layers(), dir=self.path('out/set'))
        self.assertEqual(self.agent.refresh()['outcome'], 'unchanged')
        self.assertEqual((self.generation(), self.look()), (before, [1, 1]), 'who watches the directory is not woken for nothing')
        self.agent.stop()
        shutil.rmtree(self.path('out/set'))
        self.start(*self.layers(), dir=self.path('out/set')).log.wait('last known good')
        self.assertEqual((self.look(), self.names()), ([1, 1], ['a.yaml', 'b.yaml']))

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

    def test_syntax(self):
        self.begin()
        for document, sentence in ((b'n: 2\ndb: {host: 1, host: 2}\n', 'invalid YAML, line 2, column 15: duplicate key "host"'),
                                   (b'- 1\n', 'invalid YAML'), (b'n: [2\n', 'invalid YAML, line'), (b'n: \xff\n', 'invalid YAML')):
            self.origin.put('/web.yaml', document)
            self.refused('syntax', sentence)
        self.publish(b'n: 2\n')
        self.assertNotIn('rejected', self.status())
        self.agent.stop()
        self.origin.put('/web.json', b'{"n": 1}')
        self.start('/web.json')
        self.agent.log.wait('published.*generation=3')
        self.origin.put('/web.json', b'{"n": 1,\n "n": 2}')
        self.refused('syntax', 'invalid JSON')

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

    def test_guard(self):
        self.origin.put('/web.yaml', b'db: {host: a}\nn: 1\npad: ' + b'x' * 100 + b'\n')
        self.begin(guard={'max_shrink': '50%', 'require': ['db.host'], 'max_changes': 2})
        for document, sentence in ((b'{}\n', 'the document is empty, and the current one is not'),
                                   (b'db: {host: a}\nn: 2\n', r'it shrank from 125 to 19 bytes, more than max_shrink 50%'),
                                   (b'db: {hosts: a}\nn: 1\npad: ' + b'x' * 100 + b'\n', 'the required key db.host is not there'),
                                   (b'db: {host: ~}\nn: 1\npad: ' + b'x' * 100 + b'\n', 'the required key db.host is null'),
                                   (b'db: {host: b}\nn: 2\nm: 1\npad: ' + b'x' * 100 + b'\n', '3 keys would change, more than max_changes 2')):
            with self.subTest(sentence=sentence):
                self.origin.put('/web.yaml', document)
                self.refused('guard', sentence)
        self.assertEqual(self.status()['rejections'], 5)
        code, body = self.agent.post(f'/v1/configs/web/refresh?wait=1&force=1&timeout_ms={harness.DEADLINE * 1000}')
        self.assertEqual((code, json.loads(body)['outcome']), (200, 'published'))
        self.assertEqual(yaml.safe_load(self.out()), {'db': {'host': 'b'}, 'n': 2, 'm': 1, 'pad': 'x' * 100})
        self.assertNotIn('rejected', self.status())
        self.origin.put('/web.yaml', b'{}\n')
        self.refused('guard', 'the document is empty')  # force was for that one pull
        self.agent.cli('refresh', 'web', '--force', '--wait', check=0)
        self.assertEqual(self.out(), b'{}\n')
        self.restart(guard={'max_shrink': '50%', 'require': ['db.host'], 'max_changes': 2})
        self.assertEqual(self.agent.refresh()['outcome'], 'unchanged', 'what was forced stands')

    def test_what_the_guard_refused_is_judged_again_when_something_else_stands(self):
        self.origin.put('/web.yaml', b'a: 1\nb: 1\n')
        self.begin(guard={'max_changes': 1})
        self.origin.put('/web.yaml', b'a: 2\nb: 2\n')
        self.refused('guard', '2 keys would change')
        self.publish(b'a: 2\nb: 1\n')  # step by step
        self.publish(b'a: 2\nb: 2\n')

    def test_without_a_guard_the_same_pass(self):
        """What the test above refuses is rejected by the guard alone; an empty document by the guard that every config has."""
        self.origin.put('/web.yaml', b'db: {host: a}\nn: 1\npad: ' + b'x' * 100 + b'\n')
        self.begin()
        self.publish(b'db: {host: b}\nn: 2\nm: 1\npad: ' + b'x' * 100 + b'\n')
        self.publish(b'n: 2\n')
        self.origin.put('/web.yaml', b'{}\n')
        self.refused('guard', 'empty')
        self.restart(guard={'allow_empty': True})
        self.assertEqual(self.agent.refresh()['outcome'], 'published')

    def schema(self, **properties):
        self.write('schema.json', json.dumps({'type': 'object', 'properties': properties, 'x-owner': 'us'}))

    def test_schema(self):
        self.schema(workers={'type': 'integer', 'maximum': 64})
        self.origin.put('/web.yaml', b'n: 1\nworkers: 4\n')
        check = Hook(self, 'check')
        self.begin(schema=self.path('schema.json'), check=[check.path, '{path}'])
        self.assertRegex(self.agent.log.wait('keywords that mean nothing'), 'x-owner')
        self.origin.put('/web.yaml', b'n: 1\nworkers: 1000\n')
        self.refused('schema', 'line 2, column 10: /workers: 1000 is more than the maximum 64')
        self.origin.put('/web.yaml', b'n: 1\nworkers: many\n')
        self.refused('schema', 'line 2, column 10: /workers: ')
        self.assertEqual(self.agent.refresh()['outcome'], 'failed')
        self.assertEqual((self.status()['rejections_by'], check.runs), ({'schema': 2}, 1), 'the check is not asked about what others refuse')
        self.schema(workers={'type': ['integer', 'string']})
        self.assertEqual(self.agent.refresh()['outcome'], 'published', 'other rules: validated again')
        self.origin.put('/web.yaml', b'n: 1\nworkers: 1000\n')
        self.assertEqual(self.agent.refresh()['outcome'], 'published', 'by other rules refused')
        self.schema(workers={'maximum': 'many'})
        self.origin.put('/web.yaml', b'n: 1\nworkers: 5\n')
        self.assertRegex(self.agent.refresh()['error'], 'schema.json')
        self.assertEqual((self.out(), self.status()['rejections_by']), (b'n: 1\nworkers: 1000\n', {'schema': 2}), 'a bad schema checks nothing')
        self.schema()
        self.assertEqual(self.agent.refresh()['outcome'], 'published')
        self.assertEqual(self.agent.refresh()['outcome'], 'unchanged')
        self.agent.stop()
        self.assertEqual(len([line for line in self.agent.log.seen if 'keywords that mean nothing' in line]), 3, 'once for each text of the schema')

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

    def test_a_rollout_that_does_not_fit_its_digest_holds_back(self):
        def header(document):
            return 'Content-Digest: sha-256=:' + base64.b64encode(hashlib.sha256(document).digest()).decode() + ':\r\n'
        self.start('/web.yaml', rollout={'server': 'main', 'path': '/rollout.yaml'}).log.wait('published')
        self.origin.put('/rollout.yaml', b'percent: 100\n', header(b'percent: 0\n'))
        self.origin.put('/web.yaml', b'n: 2\n')
        self.assertRegex(self.agent.refresh()['error'], 'it is not what its server says: SHA-256 is ')
        self.assertEqual(self.out(), b'n: 1\n')
        self.origin.put('/rollout.yaml', b'percent: 100\n', header(b'percent: 100\n'))
        self.assertEqual((self.agent.refresh()['outcome'], self.out()), ('published', b'n: 2\n'))

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
        check.do('kill -KILL $$')
        self.start(check=[check.path, '--file', '{path}'], mode='0604')
        self.refused('check', '^check killed by signal 9$')

    def test_check_that_hangs_or_cannot_be_started(self):
        check = Hook(self, 'check')
        self.begin(check={'run': [check.path, '{path}'], 'timeout': '300ms'})
        check.do('sleep 1000 & tell pid $!; tell pid $$; hold')
        self.origin.put('/web.yaml', b'n: 2\n')
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

    def test_judged_again_when_the_judges_change(self):
        self.start(**self.more).log.wait('published')
        self.origin.put('/web.yaml', b'n: bad\n')
        self.refused('check', 'exited with 1')
        self.restart(guard={'max_shrink': '10%'}, **self.more)
        self.refused('check', 'exited with 1')
        self.assertEqual(self.check.runs, 3)
        self.restart(check=['/bin/true', '{path}'])
        self.assertEqual(self.agent.refresh()['outcome'], 'published')


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

    def test_a_signature_that_comes_later_is_enough(self):
        """And a new one of the document that stands changes nothing that readers see."""
        self.begin()
        self.origin.put('/web.yaml.minisig', None)
        self.origin.put('/web.yaml', b'n: 2\n')
        self.refused('signature', 'has no signature')
        del self.origin.asked[:]
        self.sign(b'n: 2\n')
        self.assertEqual(self.agent.refresh()['outcome'], 'published')
        self.assertEqual(sorted(self.origin.asked), [('/web.yaml', 304), ('/web.yaml.minisig', 200)])
        self.assertEqual(self.out(), b'n: 2\n')

    def test_a_version_that_is_played_back_is_refused_also_after_a_restart(self):
        self.begin(comment='rev=5')
        self.sign(b'n: 2\n', 'rev=4')
        self.refused('signature', 'signed as rev=4, but rev=5 was accepted before')
        self.sign(b'n: 2\n')
        self.refused('signature', 'signed without rev=, but rev=5 was accepted before')
        self.restart(kill=True, **self.more)
        self.sign(b'n: 3\n', 'rev=4')
        self.refused('signature', 'signed as rev=4, but rev=5')
        self.sign(b'n: 3\n', 'rev=5')
        self.assertEqual(self.agent.refresh()['outcome'], 'published')
        self.sign(b'n: 4\n', 'rev=6')
        self.assertEqual(self.agent.refresh()['outcome'], 'published')

    def test_an_expired_one_is_refused_and_one_that_expires_while_it_stands_is_stale(self):
        self.begin()
        self.assertNotIn('expires_ms', self.status())
        self.sign(b'n: 2\n', f'expires={int(time.time()) - 1}')
        self.refused('signature', 'its signature has expired')
        expires = int(time.time()) + 3
        self.sign(b'n: 3\n', f'expires={expires}')
        self.assertEqual(self.agent.refresh()['outcome'], 'published')
        status = self.status()
        self.assertEqual(status['expires_ms'], expires * 1000)
        if time.time() < expires - 1:
            self.assertEqual(status['state'], 'ok')
        status = self.until(lambda s: s['state'] == 'stale')
        self.assertGreaterEqual(time.time(), expires)
        self.assertEqual((status['generation'], self.out()), (2, b'n: 3\n'), 'it is still the best there is')
        self.restart(**self.more)
        self.assertEqual((self.status()['state'], self.status()['generation'], self.out()), ('stale', 2, b'n: 3\n'))

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

LISTENER = '''
import signal
wanted = {signal.SIGHUP, signal.SIGUSR2}
signal.pthread_sigmask(signal.SIG_BLOCK, wanted)
print("ready", flush=True)
while True:
    info = signal.sigwaitinfo(wanted)
    print("got", info.si_signo, info.si_pid, flush=True)
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

    def listen(self):
        listener = Program(['/usr/bin/python3', '-I', '-S', '-c', LISTENER], read='stdout')
        self.addCleanup(listener.close)
        listener.log.wait('ready')
        return listener

    def test_a_signal_goes_to_the_process_of_the_pidfile(self):
        listener, other = self.listen(), self.listen()
        self.write('pid', f'{listener.pid}\n')
        self.start(reload={'signal': 'HUP', 'pidfile': self.path('pid')})
        listener.log.wait(f'got {int(signal.SIGHUP)} {self.agent.pid}')
        self.until(lambda s: s['reload']['notified'] == 1)
        self.write('pid', 'nonsense\n')
        self.publish(b'n: 2\n')
        status = self.until(lambda s: s['reload']['state'] == 'failed')
        self.assertRegex(status['reload']['error'], 'pidfile .*pid is not one line with a number')
        self.write('pid', f'{other.pid}\n')
        other.log.wait(f'got {int(signal.SIGHUP)} {self.agent.pid}')
        self.until(lambda s: (s['reload']['notified'], s['reload']['state']) == (2, 'idle'))
        self.assertEqual(listener.log.count, 2, 'ready, and one signal')

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

    def test_debounce_waits_for_a_pause(self):
        self.begin(debounce='800ms')
        last, gaps = time.monotonic(), []
        for n in (2, 3, 4, 5):
            gaps.append(time.monotonic() - last)
            last = time.monotonic()
            self.publish(b'n: %d\nk%d: 1\n' % (n, n))
        self.assertEqual(self.status()['reload']['state'], 'waiting')
        words = self.hook.next()
        if max(gaps) < 0.5:  # nobody kept this test from its pace
            self.assertEqual((sorted(words), self.hook.runs), (['5', 'k2', 'k3', 'k4', 'k5', 'n'], 2))
        while words[0] != '5':
            words = self.hook.next()
        self.assertGreater(time.monotonic() - last, 0.79)

    def test_debounce_max_ends_the_waiting(self):
        self.begin(debounce='600ms', debounce_max='1s')
        for _ in range(5):
            n, first, last, pauses, runs = 1 + self.status()['generation'], time.monotonic(), time.monotonic(), [], self.hook.runs
            while self.hook.runs == runs:  # without a pause
                self.publish(b'n: %d\n' % n)
                n += 1
                pauses.append(time.monotonic() - last)
                last = time.monotonic()
            took = time.monotonic() - first
            if max(pauses) < 0.5:  # nobody kept this test from its pace
                self.assertGreater(took, 0.99)
                break
        else:
            self.fail(f'five times out of step: {pauses}')
        self.until(lambda s: s['reload']['notified'] == s['generation'])

    def test_splay_puts_it_off_by_a_random_time_that_is_shown(self):
        seen = set()
        for _ in range(3):
            self.start(reload={'run': [self.hook.path], 'splay': '1h'})
            self.assertNotEqual(self.agent.refresh()['outcome'], 'failed')
            reload = self.status()['reload']
            self.assertEqual((reload['state'], reload['pending'], reload['notified']), ('waiting', 1, 0))
            self.assertLessEqual(reload['next_ms'], 3600000)
            seen.add(reload['next_ms'] // 30000)
            self.agent.stop()
        self.assertGreater(len(seen), 1, seen)
        self.start(reload={'run': [self.hook.path], 'splay': '300ms'})
        self.assertEqual(self.hook.next(), ['1', '*'])

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

    def test_what_changes_while_it_runs_is_one_more_with_all_its_keys(self):
        self.begin()
        self.hook.do('hold')
        self.publish(b'a: 1\nn: 1\n')
        self.assertEqual(self.hook.next(), ['2', 'a'])
        for n in (1, 2, 3):
            self.publish(b'a: 1\nn: 1\nb%d: 1\n' % n)
        self.hook.do('exit 0')
        self.hook.release()
        self.assertEqual(self.hook.next(), ['5', 'b1', 'b2', 'b3'])
        self.until(lambda s: (s['reload']['notified'], s['reload']['state']) == (5, 'idle'))
        self.assertEqual(self.hook.runs, 3)

    def test_retried_with_growing_pauses_until_it_succeeds_and_visible_meanwhile(self):
        self.begin()
        self.hook.do('echo "not now" >&2; exit 9')
        times = [time.monotonic()]
        self.publish(b'n: 2\n')
        for n in range(3):
            self.assertEqual(self.hook.next(), ['2', 'n'])
            times.append(time.monotonic())
            if n < 2:
                reload = self.until(lambda s, n=n: s['reload']['failed'] == n + 1)['reload']
                self.assertEqual((reload['state'], reload['failed_in_a_row'], reload['notified'], reload['pending']), ('failed', n + 1, 1, 2))
                self.assertRegex(reload['error'], 'hook exited with 9')
                self.assertGreater(reload['next_ms'], 0)
            if n == 1:
                self.hook.do('exit 0')
        self.assertRegex(self.agent.log.wait('reload failed'), 'generation=2.*output="not now\\\\n"')
        self.assertGreater(times[2] - times[1], 0.74)
        self.assertGreater(times[3] - times[2], 1.49)
        reload = self.until(lambda s: s['reload']['state'] == 'idle')['reload']
        self.assertEqual((reload['notified'], reload['failed_in_a_row'], reload['error']), (2, 0, None))

    def test_a_newer_version_joins_what_is_retried(self):
        self.begin()
        self.hook.do('exit 1')
        self.publish(b'a: 1\nn: 1\n')
        self.assertEqual(self.hook.next(), ['2', 'a'])
        self.until(lambda s: s['reload']['state'] == 'failed')
        self.hook.do('exit 0')
        self.publish(b'a: 1\nn: 2\n')
        self.assertEqual(self.hook.next(), ['3', 'a', 'n'])
        self.until(lambda s: (s['reload']['notified'], s['reload']['state']) == (3, 'idle'))

    def test_one_that_hangs_is_killed_with_children_and_grandchildren_and_retried(self):
        self.begin(timeout='500ms')
        self.hook.do("""(trap '' TERM; sleep 1000 & tell pid $!; hold) &
tell pid $!
sh -c 'sleep 1000 & wait' &
tell pid $!
tell pid $$
hold""")
        self.publish(b'n: 2\n')
        self.assertEqual(self.hook.next(), ['2', 'n'])
        pids = [int(self.hook.next('^pid')[0]) for _ in range(4)]
        self.assertTrue(gone(pids), 'some of it lives on')
        reload = self.until(lambda s: s['reload']['failed'] > 0)['reload']
        self.assertRegex(reload['error'], 'hook still ran after 500 ms and was killed')
        self.hook.do('exit 0')
        self.until(lambda s: s['reload']['notified'] == 2)

    def test_one_that_ignores_the_first_signal_is_killed_all_the_same(self):
        self.begin(timeout='100ms')
        self.hook.do("trap '' TERM; tell pid $$; hold")
        self.publish(b'n: 2\n')
        pid = int(self.hook.next('^pid')[0])
        self.hook.do('exit 0')
        self.assertTrue(gone([pid]))
        self.until(lambda s: s['reload']['notified'] == 2)

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

    def test_a_version_that_is_not_published_tells_nobody(self):
        self.begin()
        self.origin.put('/web.yaml', b'n: [\n')
        self.refused('syntax', 'invalid YAML')
        self.write('out/web.yaml', 'harm')
        self.agent.log.wait('published.*generation=1', self.agent.log.count)
        self.assertEqual(self.agent.refresh()['outcome'], 'failed')
        self.assertEqual((self.status()['reload']['runs'], self.hook.runs), (1, 1))


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
        self.agent.log.wait(f'probe failed: rolling the version back.*generation={n}')
        self.agent.log.wait(f'published.*generation={n + 1} .*origin="probe: generation {n} was bad, back to {back}"')
        self.until(lambda s: s['reload']['notified'] == n + 1 and s['reload']['state'] == 'idle')
        self.assertEqual((self.hook.next()[0], self.hook.next()[0]), (str(n), str(n + 1)))

    def test_a_good_one_stays(self):
        self.begin()
        self.agent.log.wait('probe passed: keeping the version.*generation=1')
        self.publish(b'n: 2\n')
        status = self.until(lambda s: s['probe']['state'] == 'passed' and s['probe']['generation'] == 2)
        self.assertEqual((status['generation'], status['probe']['failed'], status['probe']['error']), (2, 0, None))
        runs = self.probe.runs
        self.restart(**self.more)
        self.agent.refresh()
        self.assertEqual((self.status()['generation'], self.probe.runs), (2, runs), 'what is proven is not watched again')

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

    def test_one_failure_is_forgiven_when_two_are_needed(self):
        self.begin()
        self.probe.do(f'rmdir {self.path("once")}')  # fails once, behind a good one
        os.mkdir(self.path('once'))
        self.probe.do(f'if rmdir {self.path("once")}; then exit 1; fi; exit 0')
        self.publish(b'n: 2\n')
        self.until(lambda s: s['probe']['state'] == 'passed' and s['probe']['generation'] == 2)
        self.assertEqual(self.status()['generation'], 2)

    def test_a_look_that_hangs_has_failed(self):
        self.begin()
        self.probe.do(f'if grep -q bad {self.path("out/web.yaml")}; then tell pid $$; hold; fi')
        self.restart(**{**self.more, 'probe': self.watching(timeout='200ms', failures=1)})
        self.origin.put('/web.yaml', b'n: bad\n')
        self.agent.refresh()
        self.rolled_back(2, 1)
        self.assertRegex(self.status()['probe']['error'], 'still ran after 200 ms')
        self.assertTrue(gone(int(words[0]) for words in self.probe.told('pid')))

    def test_a_url(self):
        application, ports = FaultServer(self), []

        def behave(connection, head, stopping):
            ports.append(connection.getpeername()[1])
            harm = {b'500': good(b'', status='500 Internal Server Error'), b'302': good(b'', 'Location: /\r\n', '302 Found'), b'reset': reset,
                    b'silent': drip(b'')}
            answer = harm.get(self.out().split()[1], good(b'fine\n', status='204 No Content'))
            return answer(connection, head, stopping)
        application.behave = behave
        url = application.url + '/health'
        self.more['probe'] = {'url': url, 'for': '300ms', 'every': '100ms', 'timeout': '500ms', 'failures': 1}
        self.begin()
        back = 1
        for n, (word, why) in enumerate((('500', 'answered 500'), ('302', 'answered 302'), ('reset', url), ('silent', url))):
            self.origin.put('/web.yaml', f'n: {word}\n'.encode())
            self.agent.refresh()
            self.rolled_back(2 * n + 2, back)
            self.assertRegex(self.status()['probe']['error'], why)
            back = 2 * n + 3
        self.assertEqual(self.out(), b'n: 1\n')
        self.assertGreater(len(ports), 4)
        self.assertEqual(len(set(ports)), len(ports), 'behind a connection that is kept may be who ran before the reload')

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
        self.agent.log.wait('probe failed: rolling the version back.*generation=2')
        self.agent.log.wait('published.*generation=3.*back to 1')
        self.assertEqual(self.hook.next()[0], '3')

    def test_a_crash_while_it_waits_for_the_reload_forgets_neither(self):
        self.begin()
        self.hook.do('tell pid $$; hold')
        self.publish(b'n: bad\n')
        self.hook.next('^pid')
        self.agent.signal(signal.SIGKILL)
        self.agent.wait()
        self.hook.do('exit 0')
        self.start(**self.more)
        self.agent.log.wait('probe failed: rolling the version back.*generation=2')
        self.agent.log.wait('published.*generation=3')
        self.until(lambda s: s['reload']['notified'] == 3)
        self.assertEqual(self.out(), b'n: 1\n')

    def test_a_newer_version_is_watched_instead_and_goes_back_to_the_last_that_was_proven(self):
        self.begin(probe=self.watching(**{'for': '5s'}), proven=False)
        self.restart(**{**self.more, 'probe': self.watching()})
        self.until(lambda s: s['probe']['state'] == 'passed')
        self.restart(**self.more)
        self.publish(b'n: 2\n')
        self.until(lambda s: s['probe']['state'] == 'running')
        self.hook.next()
        self.origin.put('/web.yaml', b'n: bad\n')
        self.agent.refresh()
        self.rolled_back(3, 1)
        self.assertEqual(self.out(), b'n: 1\n')

    def test_the_proven_one_is_kept_however_old_it_is(self):
        self.begin(history=2)
        self.restart(**{**self.more, 'probe': self.watching(**{'for': '1h'})})
        for n in (2, 3, 4):
            self.publish(b'n: %d\n' % n)
            self.assertEqual(self.hook.next()[0], str(n))
            self.until(lambda s, n=n: s['probe']['generation'] == n)
        self.origin.put('/web.yaml', b'n: bad\n')
        self.agent.refresh()
        self.rolled_back(5, 1)
        self.assertEqual(self.out(), b'n: 1\n')

    def test_without_an_older_one_it_stays_and_that_is_said(self):
        self.origin.put('/web.yaml', b'n: bad\n')
        self.begin(proven=False)
        self.agent.log.wait('there is no older one to go back to')
        self.assertEqual((self.out(), self.status()['probe']['state']), (b'n: bad\n', 'failed'))
        self.assertEqual(self.publish(b'n: 2\n'), 2)
        self.until(lambda s: s['probe']['state'] == 'passed')

    def test_without_a_reload_it_watches_at_once(self):
        self.start(probe=self.watching())
        self.until(lambda s: s['probe']['state'] == 'passed')
        self.origin.put('/web.yaml', b'n: bad\n')
        self.agent.refresh()
        self.agent.log.wait('published.*generation=3 .*origin="probe: generation 2 was bad')
        self.assertEqual(self.out(), b'n: 1\n')


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
            status = self.until(lambda s, name=name: self.out(name) == b'n: 1\n' and os.stat(self.path('out/' + name)).st_mode & 0o777 == 0o640, name)
            self.assertEqual((status['restored'], status['generation']), (1, 1))
        self.assertEqual(len(self.origin.asked), asked, 'nobody asked a server')

    def test_the_snapshot_too(self):
        self.start().log.wait('published')
        for harm in (lambda: os.unlink(self.path('run/web.snap')), lambda: self.write('run/web.snap', 'harm')):
            before = self.status()['restored']
            harm()
            # it may be counted again for what it wrote itself, so the count alone does not tell which harm is undone
            self.until(lambda s, before=before: s['restored'] > before and self.value_of_n() == b'1\n')

    def value_of_n(self):
        return subprocess.run([PULLET, 'get', 'web', 'n'], capture_output=True, check=False, env=dict(os.environ, PULLET_RUNTIME_DIR=self.path('run'))).stdout

    def test_a_set_of_files(self):
        self.start({'path': '/web.yaml', 'as': 'a.yaml'}, dir=self.path('out/set')).log.wait('published')
        os.unlink(self.path('out/set/a.yaml'))
        self.agent.log.wait('restoring it.*cause=removed')
        self.until(lambda s: os.path.exists(self.path('out/set/a.yaml')))
        with open(self.path('out/set/a.yaml'), 'r+b') as f:
            f.write(b'harm')
        self.agent.refresh()  # within a generation it is seen at the interval
        self.until(lambda s: self.read('out/set/a.yaml') == b'n: 1\n')

    def test_report_and_leave(self):
        for drift in ('report', 'leave'):
            self.start(drift=drift)
            self.assertNotEqual(self.agent.refresh()['outcome'], 'failed')
            for harm in self.harms(self.path('out/web.yaml')).values():
                if not os.path.exists(self.path('out/web.yaml')):
                    self.write('out/web.yaml', 'harm')
                harm()
            harmed = self.out()
            self.assertEqual(self.agent.refresh()['outcome'], 'unchanged')
            status = self.status()
            self.assertEqual((self.out(), status['drifted'], status['restored']), (harmed, True, 0))
            self.publish(b'n: %s\n' % drift.encode())
            self.assertEqual((self.status()['drifted'], self.out()), (False, b'n: %s\n' % drift.encode()))
            self.agent.stop()
            said = [line for line in self.agent.log.seen if 'changed by somebody else' in line]
            self.assertEqual(len(said), drift == 'report', said)

    def test_what_is_touched_while_a_pull_fails_is_put_right_after_it(self):
        self.start().log.wait('published')
        gate = Gate(self, good(b'', status='500 Internal Server Error'))
        self.origin.put('/web.yaml', gate)
        self.agent.post('/v1/configs/web/refresh')
        gate.wait(1)
        self.write('out/web.yaml', 'harm')
        self.assertEqual(self.status()['running'], True)  # and the event has come
        gate.open()
        self.agent.log.wait('restoring it.*cause=replaced')
        self.until(lambda s: self.out() == b'n: 1\n')

    def test_an_editor_that_fights_back_makes_no_storm(self):
        self.start(log='info').log.wait('published')
        begin, editor = time.monotonic(), Fighter(self.path('out/web.yaml'))
        with editor:
            status = self.until(lambda s: s['restored'] >= 3)
            took = time.monotonic() - begin
            self.assertLessEqual(status['restored'], took + 1)
        self.until(lambda s: self.out() == b'n: 1\n' and not s['drifted'])
        self.assertEqual(self.agent.refresh()['outcome'], 'unchanged')
        self.assertGreaterEqual(editor.wins, 3)
        self.agent.stop()
        said = [line for line in self.agent.log.seen if 'restoring it' in line or 'published config=web' in line]
        self.assertLessEqual(len(said), 6, said)

    def test_the_editor_makes_a_storm_with_one_who_heals_at_once(self):
        path, heals, begin = self.path('web.yaml'), 0, time.monotonic()
        self.write('web.yaml', 'n: 1\n')
        with Fighter(path):
            while heals < 20 and time.monotonic() - begin < harness.DEADLINE:
                if self.read('web.yaml') != b'n: 1\n':
                    self.write('web.yaml', 'n: 1\n')
                    heals += 1
        self.assertGreater(heals, time.monotonic() - begin + 1, 'the harness sees no storm where there must be one')


class Fighter:
    """An editor that writes its own text whenever it sees another one."""

    def __init__(self, path):
        self.path, self.wins, self.stopping = path, 0, threading.Event()
        self.thread = threading.Thread(target=self._loop, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        self.thread.join()

    def _loop(self):
        while not self.stopping.is_set():  # at once: it may come between the rename and the agent's look at what it wrote
            with open(self.path, 'r+b') as f:
                if f.read() != b'mine':
                    f.seek(0)
                    f.truncate()
                    f.write(b'mine')
                    self.wins += 1


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
        self.assertEqual(done.stdout, '~ db.host: "a" -> "b"\n~ db.password: *** -> ***\n- gone: 1\n+ list.0: 1\n+ list.1: 2\n')
        self.assertRegex(done.stderr, 'dry run: would publish')
        self.assertNotRegex(done.stdout + done.stderr, 'old|new"')
        self.assertEqual((self.check.runs, self.hook.runs), (1, 0))
        self.assertEqual(self.tree(), before)
        self.assertFalse(os.path.exists(self.path('state')) or os.path.exists(self.path('run')))

    def test_says_who_would_refuse_it(self):
        self.check.do('echo "no such host"; exit 1')
        before = self.tree()
        done = self.run_dry()
        self.assertEqual((done.returncode, done.stdout), (1, ''))
        self.assertRegex(done.stderr, 'check exited with 1: no such host')
        self.assertEqual(self.tree(), before)
        self.check.do('exit 0')
        done = self.run_dry(guard={'require': ['none']})
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, 'the required key none is not there')
        self.assertEqual(self.run_dry().returncode, 0, 'nothing was remembered')

    def test_beside_a_running_agent(self):
        self.start(**self.more).log.wait('published')
        self.hook.next()
        self.until(lambda s: s['reload']['notified'] == 1)
        done = self.run_dry()
        self.assertEqual((done.returncode, done.stdout), (0, ''), done.stderr)
        self.assertRegex(done.stderr, 'the file is up to date')
        self.origin.put('/web.yaml', b'db: {host: c, password: new}\nlist: [1, 2]\nsame: 1\n')
        self.assertEqual(self.run_dry().stdout, '~ db.host: "b" -> "c"\n')
        self.assertEqual((self.status()['generation'], self.status()['restored'], self.hook.runs), (1, 0, 1))


if __name__ == '__main__':
    harness.main()
