#!/usr/bin/env python3
"""Documents made to blow up each stage, each pulled by an agent of its own with the default of max_size: memory stays below 64 MB + 8 x max_size,
the loop is never held longer than 100 ms of processor time (which does not count what other processes of the machine take), a good document is
published afterwards, and SIGTERM is honoured within 5 s.

A part of them by default; all with PULLET_ALL_DOCUMENTS=1.
"""
import functools
import gzip
import http.server
import json
import os
import re
import signal
import socket
import threading
import time
import unittest

import attack  # noqa: F401
import documents
import harness

ALL = os.environ.get('PULLET_ALL_DOCUMENTS')
SHARE = 1 if ALL else 7  # each so many-th, and those:
ALWAYS = {'tags_1.2MB', 'keys_64', 'j_null_key', 'j_string_escapes', 's_nested_60000_200_json', 's_chains_wide', 'aliases_flat', 'keys_80'}
ASKED = {'keys_64', 'j_string_escapes', 'aliases_flat'} if not ALL else \
    {'keys_64', 'keys_1000', 'j_string_escapes', 'aliases_flat', 'long_value', 's_nested_20_90000_json', 's_control_characters', 'j_maps'}
LIMIT_MS = 100
LIMIT_KB = (64 << 10) + 8 * (documents.LIMIT >> 10)
FORMS = ('', '    format: properties\n', '    format: json\n', '    format: yaml\n')


@functools.lru_cache(None)
def made_once():
    """The names of all documents, and the rows of those that are in use, unless all are: to make them takes seconds."""
    names, kept = [], []
    for i, row in enumerate(documents.documents()):
        names.append(row[0])
        if not ALL and (i % SHARE == 0 or row[0] in ALWAYS | ASKED | {'keys_8', 'keys_64'}):
            kept.append((i, *row))
    return names, kept


def in_use():
    """(number, name, type, text) of each."""
    return ((i, *row) for i, row in enumerate(documents.documents())) if ALL else made_once()[1]


def other(text):
    """The same with other values."""
    for old, new in ((b': 1', b': 3'), (b':1', b':3'), (b', 1', b', 3'), (b'\\n', b'\\t'), (b'\\u0001', b'\\u0003'), (b'xx', b'yy'), (b':', b': ')):
        if old in text:
            return text.replace(old, new)
    raise AssertionError('nothing to change')


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def do_GET(self):
        kind, text = self.server.documents[self.path]
        self.send_response(200)
        self.send_header('Content-Type', 'application/' + kind)
        self.send_header('Content-Length', str(len(text)))
        if self.server.coding:
            self.send_header('Content-Encoding', self.server.coding)
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *args):
        pass


class Case(harness.Case):
    def serve(self):
        server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        server.documents, server.coding = {'/small': ('yaml', b'a: 1\nb: 2\n')}, None
        self.addCleanup(server.server_close)
        self.in_background(server)
        return server

    def in_background(self, server):
        thread = threading.Thread(target=server.serve_forever, kwargs={'poll_interval': 0.05}, daemon=True)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.shutdown)

    def longest_turn(self, agent):
        """Milliseconds of processor time, and kB that the agent has had at most."""
        turn = float(re.search(r'^pullet_loop_longest_turn_seconds (\S+)', agent.get('/metrics')[1], re.M)[1]) * 1000
        with open(f'/proc/{agent.pid}/status', encoding='ascii') as f:
            return turn, int(re.search(r'VmHWM:\s+(\d+) kB', f.read())[1])


class Documents(Case):
    def run_one(self, name, before, after, kinds, more=''):
        """Documents one after the other, of which the second are compared with the first; then everything that shows them."""
        server, corner = self.server, harness.Corner(self, name)

        def put(texts):
            for i, text in enumerate(texts):
                server.documents[f'/doc{i}'] = (kinds[i], text)
        put(before)
        layers = ''.join(f'      - {{server: main, path: /doc{i}}}\n' for i in range(len(kinds)))
        agent = harness.Agent(corner, f"""
agent: {{state_dir: {corner.dir}/state, runtime_dir: {corner.dir}/run}}
servers:
  main: {{urls: ["http://127.0.0.1:{server.server_port}"]}}
configs:
  web:
    from:
{layers}    file: {corner.dir}/out
    interval: 1h
    timeout: 60s
    guard: {{max_changes: 100000, max_shrink: 100%}}
{more}""")
        try:
            good = agent.refresh()['outcome'] != 'failed'  # a schema may refuse whatever there is
            put(after)
            outcome = agent.refresh()
            for path in ('/v1/status', '/metrics', '/', '/livez'):
                agent.get(path)
            turn, top = self.longest_turn(agent)
            put(before[:-1] + [b'{"last": 1}' if kinds[-1] == 'json' else b'last: 1\n'])
            self.assertEqual(agent.refresh()['outcome'] == 'published', good, name)
            begin = time.monotonic()
            agent.signal(signal.SIGTERM)
            agent.log.drain()
            self.assertEqual(agent.wait(), 0)
            self.check(name, outcome['error'] or outcome['outcome'], turn, top, time.monotonic() - begin)
        finally:
            agent.close()

    def check(self, name, outcome, turn, top, stop):
        self.ran += 1
        if ALL:
            print(f'{name:34} {turn:6.0f} ms {top >> 10:4} MB stop {stop:.2f} s {str(outcome)[:90]}', flush=True)
        if not harness.SANITIZED and (turn > LIMIT_MS or top > LIMIT_KB or stop > 5):
            self.bad.append(f'{name}: the loop was held for {turn:.0f} ms, {top} kB, {stop:.1f} s to stop')

    def setUp(self):
        super().setUp()
        self.server, self.bad, self.ran = self.serve(), [], 0

    def chosen(self, table):
        """Those of a table that are tried, with their numbers."""
        return ((i, *row) for i, row in enumerate(table) if i % SHARE == 0 or row[0] in ALWAYS)

    def small(self, kind):
        return b'{"first": 1}' if kind == 'json' else b'first: 1\n'

    def kind_of(self, text):
        return 'json' if text[:1] == b'{' else 'yaml'

    def test_none_holds_the_loop_or_takes_the_memory(self):
        for i, name, kind, text in in_use():
            if i % SHARE and name not in ALWAYS:
                continue
            self.run_one(name, [self.small(kind)], [text], [kind], FORMS[i % len(FORMS)])
        self.assertGreater(self.ran, 20)
        self.assertEqual(self.bad, [])

    def test_nor_do_two_that_are_merged(self):
        for i, name, lower, upper in self.chosen(documents.layers()):
            kinds = [self.kind_of(lower), self.kind_of(upper)]
            self.run_one(name, [self.small(kind) for kind in kinds], [lower, upper], kinds, FORMS[i % len(FORMS)])
        self.assertGreater(self.ran, 2)
        self.assertEqual(self.bad, [])

    def test_nor_does_what_a_schema_makes_of_them(self):
        for _, name, schema, text in self.chosen(documents.schemas()):
            with open(self.path(name + '.schema.json'), 'w', encoding='utf-8') as f:
                json.dump(schema, f)
            kind = self.kind_of(text)
            self.run_one(name, [self.small(kind)], [text], [kind], f'    schema: {self.path(name + ".schema.json")}\n')
        self.assertGreater(self.ran, 2)
        self.assertEqual(self.bad, [])

    def test_there_are_enough_of_them(self):
        """Each of another name, none larger than it may be."""
        names = made_once()[0] + [row[0] for table in (documents.layers(), documents.schemas()) for row in table]
        self.assertEqual(len(names), len(set(names)))
        self.assertGreaterEqual(len(names), 200)



class Held(Case):
    """How much of a large document's work is the loop's: its share of the processor time, which a busy machine does not change much."""

    CHANGES, SHARE = 6, 1 / 30

    def processor_ms(self, agent):
        """Of (the loop, the checks' thread)."""
        times = dict(harness.processor_ms(agent.pid))
        return times['pulletd'], times['pullet-validate']

    def test_the_loop_does_nothing_of_it(self):
        """In gzip, for what comes in is received by the loop, and takes its time."""
        server, texts = self.serve(), [b'change: %d\n' % i + documents.keys(90000, 8, 'x' * 64) for i in (1, 2)]
        packed = [gzip.compress(text, 1) for text in texts]
        server.coding = 'gzip'
        server.documents['/doc'] = ('yaml', packed[0])
        agent = harness.Agent(self, f"""
agent: {{state_dir: {self.dir}/state, runtime_dir: {self.dir}/run}}
configs:
  web: {{url: "http://127.0.0.1:{server.server_port}/doc", type: yaml, file: {self.dir}/out, interval: 1h, timeout: 60s}}
""")
        agent.refresh()
        before = self.processor_ms(agent)
        for i in range(self.CHANGES):
            server.documents['/doc'] = ('yaml', packed[(i + 1) % 2])
            self.assertEqual(agent.refresh()['outcome'], 'published')
        loop, checks = (after - then for after, then in zip(self.processor_ms(agent), before))
        self.assertEqual(self.read('out'), texts[0])
        self.assertLess(loop, checks * self.SHARE, f'loop {loop:.1f} ms, checks {checks:.1f} ms')
        agent.stop()


class Asked(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.documents = {name: (kind, text) for _, name, kind, text in in_use() if name in ASKED | {'keys_8', 'keys_64'}}

    def ask_everything(self, agent, generation):
        """What operators, and whoever opens the page, may ask about the version that stands."""
        turns, tops = {}, {}

        def look(what, expected, answer):
            self.assertIn(answer[0], expected, (what, str(answer[1])[:300]))
            turns[what], tops[what] = self.longest_turn(agent)
        for what in ('history', 'diff', 'explain?key=zzz', 'explain?key=k0000000'):
            look(what, (200, 404, 500), agent.get('/v1/configs/web/' + what))
        look('changes', (200,), agent.get('/v1/changes'))
        look('override', (200, 409), agent.post('/v1/configs/web/override?key=zzz&value=1&for_ms=3600000'))
        look('override removed', (200, 404, 409), agent.post('/v1/configs/web/override?key=zzz&remove=1'))
        look('rollback', (200, 409), agent.post(f'/v1/configs/web/rollback?generation={generation}'))
        return turns, tops

    def start_with(self, name):
        """An agent that has published this document, and then the same with other values."""
        kind, text = self.documents[name]
        server, corner = self.serve(), harness.Corner(self, name)
        server.documents['/doc'] = (kind, text)
        agent = harness.Agent(corner, f"""
agent: {{state_dir: {corner.dir}/state, runtime_dir: {corner.dir}/run}}
configs:
  web:
    url: http://127.0.0.1:{server.server_port}/doc
    type: {kind}
    file: {corner.dir}/out
    interval: 1h
    timeout: 60s
    guard: {{max_shrink: 100%}}
""")
        agent.log.wait('published')
        server.documents['/doc'] = (kind, other(text))
        outcome = agent.refresh()
        self.assertEqual(outcome['outcome'], 'published', (name, outcome))
        return agent

    def send(self, agent, request):
        s = socket.socket(socket.AF_UNIX)
        self.addCleanup(s.close)
        s.settimeout(harness.DEADLINE)
        s.connect(agent.socket)
        s.sendall(request.encode() + b' HTTP/1.1\r\nHost: localhost\r\n\r\n')
        return s

    def test_those_who_ask_may_be_many_and_go_away(self):
        agent = self.start_with('keys_8')
        asked = [self.send(agent, 'GET /v1/configs/web/explain?key=zzz') for _ in range(16)]
        gone = [self.send(agent, 'POST /v1/configs/web/override?key=zzz&value=1&for_ms=3600000') for _ in range(4)]
        for s in asked[::2] + gone:
            s.close()
        answers = [int(s.recv(64).split()[1]) for s in asked[1::2]]
        self.assertLessEqual(set(answers), {404, 503})
        self.assertIn(404, answers)
        self.assertEqual(agent.get('/v1/configs/web/diff')[0], 200)
        agent.stop()

    def test_the_agent_ends_while_it_looks_at_them(self):
        agent = self.start_with('keys_64')
        for _ in range(8):
            self.send(agent, 'GET /v1/configs/web/diff')
        agent.get('/livez')
        begin = time.monotonic()
        agent.signal(signal.SIGTERM)
        agent.log.drain()
        self.assertEqual(agent.wait(), 0)
        self.assertLess(time.monotonic() - begin, harness.DEADLINE)

    def test_a_new_configuration_comes_while_it_looks_at_them(self):
        agent = self.start_with('keys_64')
        asked = [self.send(agent, 'GET /v1/configs/web/diff') for _ in range(8)]
        agent.get('/livez')
        with open(agent.config_path, encoding='utf-8') as f:
            text = f.read()
        with open(agent.config_path, 'w', encoding='utf-8') as f:
            f.write(text.replace('interval: 1h', 'interval: 2h'))
        agent.signal(signal.SIGHUP)
        agent.log.wait('the new configuration is applied')
        self.assertLessEqual({int(s.recv(64).split()[1]) for s in asked}, {200, 409})
        # large ones are shown again by a thread
        self.until(lambda: agent.get('/v1/configs/web/diff')[0] == 200, 'the config does not come back')
        agent.stop()

    def test_what_is_asked_about_them_holds_it_no_longer(self):
        bad = []
        for name in sorted(ASKED):
            agent = self.start_with(name)
            turns, tops = self.ask_everything(agent, 1)
            if ALL:
                print(f'{name:30}', *(f'{what} {turn:.0f} ms {tops[what] >> 10} MB,' for what, turn in turns.items()), flush=True)
            if not harness.SANITIZED and (max(turns.values()) > LIMIT_MS or max(tops.values()) > LIMIT_KB):
                bad.append(f'{name}: {turns} {tops}')
            agent.close()
        self.assertEqual(bad, [])


class Judging(Case):
    """What happens to an agent while it checks a document that takes long."""

    LAYERS = 8  # each takes its time

    def setUp(self):
        super().setUp()
        self.server = self.serve()
        self.put(b'n: 1\n')

    def put(self, text):
        self.server.documents['/doc'] = ('yaml', text)

    def config_of(self, more=''):
        return f"""
agent: {{state_dir: {self.dir}/state, runtime_dir: {self.dir}/run}}
servers:
  main: {{urls: ["http://127.0.0.1:{self.server.server_port}"]}}
configs:
  web:
    from: [{', '.join(['{server: main, path: /doc}'] * self.LAYERS)}]
    file: {self.dir}/out
    format: json
    snapshot: false
    interval: 1h
    timeout: 60s
    guard: {{max_shrink: 100%{more}}}
"""

    def judge_ms(self, agent):
        """Processor time of the checks' thread."""
        return dict(harness.processor_ms(agent.pid)).get('pullet-validate', 0)

    def begin(self):
        """An agent that is in the middle of it."""
        agent = harness.Agent(self, self.config_of())
        agent.log.wait('published')
        before = self.judge_ms(agent)
        self.put(b'n: 2\n' + documents.keys(90000, 8))
        self.assertEqual(agent.post('/v1/configs/web/refresh')[0], 202)
        deadline = time.monotonic() + harness.DEADLINE
        while self.judge_ms(agent) < before + 20:
            self.assertLess(time.monotonic(), deadline)
            threading.Event().wait(0.001)
        return agent

    def content(self):
        with open(self.path('out'), encoding='utf-8') as f:
            return json.load(f)['n']

    def start_again(self):
        """What the server has by now is small, and is published."""
        self.put(b'n: 3\n')
        again = harness.Agent(self, self.config_of())
        again.log.wait('started from the last known good')
        again.refresh()
        self.assertEqual(self.content(), 3)
        again.stop()

    def test_it_ends_at_once(self):
        agent = self.begin()
        begin = time.monotonic()
        agent.signal(signal.SIGTERM)
        agent.log.drain()
        self.assertEqual(agent.wait(), 0)
        self.assertLess(time.monotonic() - begin, harness.DEADLINE)
        self.assertIn(self.content(), (1, 2))
        self.start_again()

    def test_a_kill_leaves_nothing_half_done(self):
        agent = self.begin()
        agent.signal(signal.SIGKILL)
        agent.log.drain()
        agent.wait()
        self.assertIn(self.content(), (1, 2))
        self.start_again()

    def change(self, agent, text):
        """Another configuration, in the middle of it."""
        with open(agent.config_path, 'w', encoding='utf-8') as f:
            f.write(text)
        agent.signal(signal.SIGHUP)
        agent.log.wait('reload pending')
        agent.log.wait('the new configuration is applied')

    def test_what_old_rules_let_pass_new_ones_judge_again(self):
        agent = self.begin()
        self.change(agent, self.config_of(', require: [m]'))
        outcome = agent.refresh()
        self.assertIn('the required key m is not there', str(outcome['error']))
        self.assertEqual(self.content(), 1)
        agent.stop()

    def test_a_config_that_is_taken_out_publishes_nothing_more(self):
        agent = self.begin()
        self.put(b'n: 3\n' + documents.keys(90000, 8))  # as large: it is judged behind the other one
        self.change(agent, self.config_of().replace('  web:', '  other:').replace(f'{self.dir}/out', f'{self.dir}/other'))
        agent.log.wait('published config=other')
        self.assertEqual(self.content(), 1)
        agent.stop()


if __name__ == '__main__':
    harness.main()
