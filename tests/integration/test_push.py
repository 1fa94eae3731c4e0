"""Push with a publisher nobody here wrote (python3-zmq), with `pullet publish` and with `pullet serve`."""
import collections
import itertools
import json
import os
import shutil
import signal
import subprocess
import threading
import time

import zmq

import harness
from harness import Agent, FaultServer, good


class Publisher:
    """An XPUB socket of the zmq module: tells when somebody has subscribed."""

    def __init__(self, test, port=0):
        self.context = zmq.Context()
        self.socket = self.context.socket(zmq.XPUB)
        self.socket.linger = 0
        self.socket.setsockopt(zmq.XPUB_VERBOSE, 1)
        self.socket.bind(f'tcp://127.0.0.1:{port or "*"}')
        self.endpoint = self.socket.getsockopt(zmq.LAST_ENDPOINT).rstrip(b'\0').decode()
        self.port = int(self.endpoint.rsplit(':', 1)[1])
        self.closed = False
        test.addCleanup(self.close)

    def wait_subscribed(self, topic=b'web'):
        """Until a subscription that matches the topic has come."""
        while self.socket.poll(harness.DEADLINE * 1000):
            message = self.socket.recv()
            if message[:1] == b'\1' and topic.startswith(message[1:]):
                return
        raise AssertionError('nobody subscribed')

    def send(self, *frames):
        self.socket.send_multipart([f if isinstance(f, bytes) else json.dumps(f).encode() for f in frames])

    def close(self):
        if not self.closed:
            self.closed = True
            self.socket.close()
            self.context.term()


class Push(harness.Case):
    def setUp(self):
        super().setUp()
        self.publisher = Publisher(self)
        self.server = FaultServer(self)
        self.set(1)

    def set(self, n):
        self.server.behave = good(f'n: {n}\n'.encode(), f'ETag: "v{n}"\r\n')

    def start(self, more=''):
        agent = Agent(self, self.config(self.server.url + '/web.yaml', '    interval: 1h\n' + more,
                                        push=f'push:\n  - endpoint: {self.publisher.endpoint}\n'))
        agent.log.wait('published.*generation=1')
        self.publisher.wait_subscribed()
        self.settle(agent)
        return agent

    def settle(self, agent):
        """The pull that the connection itself causes is over when a later one has ended."""
        agent.refresh()

    def test_a_bare_message_of_any_publisher_pulls_at_once(self):
        agent = self.start()
        self.set(2)
        self.publisher.send(b'web')
        agent.log.wait('published.*generation=2')
        self.assertEqual(self.read('out/web.yaml'), b'n: 2\n')
        agent.stop()

    def test_a_message_of_more_frames_than_ours_pulls_at_once(self):
        agent = self.start()
        for n, frames in ((2, (b'web', b'', b'')), (3, (b'web', {'v': 1, 'epoch': 'e', 'seq': 1}, b'signature'))):
            self.set(n)
            self.publisher.send(*frames)
            agent.log.wait(f'published.*generation={n}')
        push = json.loads(agent.get('/v1/status')[1])['push'][0]
        self.assertEqual((push['messages'], push['bad']), (2, 2), push)
        agent.stop()

    def test_an_envelope_pulls_at_once_and_other_topics_do_not(self):
        agent = self.start()
        self.set(2)
        self.publisher.send(b'web', {'v': 1, 'epoch': 'e', 'seq': 1, 'version': 'v2'})
        agent.log.wait('published.*generation=2')
        before = self.server.requests
        self.publisher.send(b'webx', {'v': 1, 'epoch': 'e', 'seq': 1})
        self.publisher.send(b'other')
        self.set(3)
        self.publisher.send(b'web', {'v': 1, 'epoch': 'e', 'seq': 2, 'version': 'v3'})
        agent.log.wait('published.*generation=3')
        self.assertEqual(self.server.requests, before + 1)
        agent.stop()

    def test_a_thousand_messages_are_few_pulls_and_the_last_value_stands(self):
        agent = self.start()
        before = self.server.requests
        for i in range(2, 1002):
            self.set(i)
            self.publisher.send(b'web', {'v': 1, 'epoch': 'e', 'seq': i})
        while self.read('out/web.yaml') != b'n: 1001\n':
            agent.log.wait('published', agent.log.count)
        self.assertLess(self.server.requests - before, 1000)
        agent.stop()

    def test_a_storm_of_spread_messages_is_one_pull_per_window(self):
        agent = self.start()
        before, begin, rate = self.server.requests, time.monotonic(), threading.Event()
        for i in range(2, 202):
            self.set(i)
            self.publisher.send(b'web', {'v': 1, 'epoch': 'e', 'seq': i, 'spread_ms': 500})
            rate.wait(0.01)  # the rate is what is tested
        while self.read('out/web.yaml') != b'n: 201\n':
            agent.log.wait('published', agent.log.count)
        windows = (time.monotonic() - begin) / 0.5
        # a window that began, the pull of the connection, which may be as late as this, and one that was in flight; no windows: 20 at least
        self.assertLessEqual(self.server.requests - before, windows + 4)
        agent.stop()

    def test_a_lagging_server_is_asked_again_until_it_shows_the_promised_version(self):
        agent = self.start()
        new, old = good(b'n: 2\n', 'ETag: "v2"\r\n'), self.server.behave
        left = [2]

        def lagging(connection, head, stopping):
            left[0] -= 1
            return (old if left[0] >= 0 else new)(connection, head, stopping)
        self.server.behave = lagging
        self.publisher.send(b'web', {'v': 1, 'version': 'v2'})
        agent.log.wait('published.*generation=2')
        self.assertEqual(self.read('out/web.yaml'), b'n: 2\n')
        agent.stop()

    def test_a_version_that_never_comes_is_given_up_and_said(self):
        agent = self.start()
        before = self.server.requests
        self.publisher.send(b'web', {'v': 1, 'version': 'never'})
        agent.log.wait('another version than the push promised')
        self.assertEqual(self.server.requests, before + 4)
        agent.stop()

    def test_a_restarted_publisher_leads_to_a_pull(self):
        agent = self.start()
        port = self.publisher.port
        self.publisher.close()
        self.set(2)
        self.publisher = Publisher(self, port)
        agent.log.wait('published.*generation=2')
        agent.stop()

    def test_a_gap_and_a_new_epoch_lead_to_a_pull_and_are_counted(self):
        agent = self.start()
        for n, envelope in ((2, {'v': 1, 'epoch': 'e', 'seq': 1}), (3, {'v': 1, 'epoch': 'e', 'seq': 5}), (4, {'v': 1, 'epoch': 'f', 'seq': 1})):
            self.set(n)
            self.publisher.send(b'web', envelope)
            agent.log.wait(f'published.*generation={n}')
        push = json.loads(agent.get('/v1/status')[1])['push'][0]
        self.assertEqual((push['state'], push['gaps'], push['epochs']), ('connected', 1, 1), push)
        agent.stop()

    def test_a_message_that_makes_libzmq_go_deaf_is_survived(self):
        agent = self.start()
        self.publisher.send(b'web', b'x' * (1 << 20))  # over the size limit: libzmq ends the session for good
        agent.log.wait('push channel lost', timeout=5)  # one heartbeat: it is not shown as connected until the new socket is
        agent.log.wait('rebuil')
        self.publisher.wait_subscribed()
        self.set(2)
        self.publisher.send(b'web')
        agent.log.wait('published.*generation=2')
        agent.stop()

    def test_three_silent_heartbeats_lead_to_a_pull_and_a_new_socket(self):
        agent = Agent(self, self.config(self.server.url + '/web.yaml', '    interval: 1h\n',
                                        push=f'push:\n  - endpoint: {self.publisher.endpoint}\n    heartbeat: 200ms\n'))
        agent.log.wait('published.*generation=1')
        self.publisher.wait_subscribed()
        agent.log.wait('push channel connected')
        self.settle(agent)
        self.set(2)
        self.publisher.send(b'pullet.heartbeat', {'v': 1, 'epoch': 'e'})
        agent.log.wait('silent')
        agent.log.wait('published.*generation=2')
        self.publisher.wait_subscribed()
        self.set(3)
        self.publisher.send(b'web')
        agent.log.wait('published.*generation=3')
        agent.stop()

    def test_a_publisher_that_never_sent_a_heartbeat_is_never_silent(self):
        agent = Agent(self, self.config(self.server.url + '/web.yaml', '    interval: 1h\n',
                                        push=f'push:\n  - endpoint: {self.publisher.endpoint}\n    heartbeat: 100ms\n'))
        agent.log.wait('push channel connected')
        self.publisher.wait_subscribed()
        self.publisher.send(b'web')
        while json.loads(agent.get('/v1/status')[1])['push'][0]['messages'] == 0:
            agent.refresh()
        self.assertEqual(json.loads(agent.get('/v1/status')[1])['push'][0]['state'], 'connected')
        agent.stop()
        self.assertFalse([line for line in agent.log.seen if 'silent' in line])

    def test_messages_within_a_spread_window_are_one_pull(self):
        agent = self.start()
        self.set(2)
        before = self.server.requests
        for seq in range(1, 6):
            self.publisher.send(b'web', {'v': 1, 'epoch': 'e', 'seq': seq, 'spread_ms': 2000})
        agent.log.wait('published.*generation=2')
        self.assertEqual(self.server.requests, before + 1)
        self.assertEqual(json.loads(agent.get('/v1/status')[1])['push'][0]['messages'], 5)
        agent.stop()

    def test_pullet_publish(self):
        self.publisher.close()
        agent = Agent(self, self.config(self.server.url + '/web.yaml', '    interval: 1h\n',
                                        push=f'push:\n  - endpoint: {self.publisher.endpoint}\n'))
        agent.log.wait('published.*generation=1')
        self.set(2)
        done = subprocess.run([harness.PULLET, 'publish', 'web', '--endpoint', self.publisher.endpoint, '--version', 'v2'],
                              capture_output=True, text=True, timeout=harness.DEADLINE * 2, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        agent.log.wait('published.*generation=2')
        agent.stop()

    def test_pullet_publish_to_nobody_and_to_a_taken_port(self):
        done = subprocess.run([harness.PULLET, 'publish', 'web', '--endpoint', 'tcp://127.0.0.1:0', '--timeout', '200ms'],
                              capture_output=True, text=True, timeout=harness.DEADLINE, check=False)
        self.assertEqual(done.returncode, 4, done.stderr)
        done = subprocess.run([harness.PULLET, 'publish', 'web', '--endpoint', self.publisher.endpoint],
                              capture_output=True, text=True, timeout=harness.DEADLINE, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, 'in use|taken|already')


HOUR_MS = 3600000


class Many(harness.Case):
    """Several configs of one server."""

    def setUp(self):
        super().setUp()
        self.publisher = Publisher(self)
        self.server = FaultServer(self)
        self.pulls, self.answer = collections.Counter(), {}
        self.server.behave = self.behave

    def behave(self, connection, head, stopping):
        path = head.split()[1]
        self.pulls[path] += 1
        self.answer.get(path, good(b'n: 1\n'))(connection, head, stopping)

    def start(self, names, more, max_in_flight=8):
        configs = '\n'.join(f'  {n}: {{from: [{{server: main, path: /{n}}}], file: {self.path("out/" + n)}, {more}}}' for n in names)
        os.makedirs(self.path('out'))
        agent = Agent(self, f'''
agent: {{state_dir: {self.path("state")}, runtime_dir: {self.path("run")}, log: {{level: debug}}}}
servers: {{main: {{kind: http, urls: ["{self.server.url}"], max_in_flight: {max_in_flight}}}}}
push: [{{endpoint: "{self.publisher.endpoint}"}}]
configs:
{configs}
''')
        for name in names:
            agent.log.wait(f'published config={name} .*generation=1')
        self.publisher.wait_subscribed(names[-1].encode())
        agent.log.wait('push channel connected')
        return agent

    def push(self, agent, *messages):
        """Sends them; returns when the agent has taken them all."""
        def taken():
            push = json.loads(agent.get('/v1/status')[1])['push'][0]
            return push['messages'] + push['heartbeats']
        before, deadline = taken(), time.monotonic() + harness.DEADLINE
        for topic, envelope in messages:
            self.publisher.send(topic, dict({'v': 1}, **envelope))
        while taken() < before + len(messages):
            self.assertLess(time.monotonic(), deadline)

    def wait_pulls(self, paths, more, before=None):
        """Until each was pulled so many times more than now, or than in `before`; the seconds that took."""
        begin, before = time.monotonic(), before or dict(self.pulls)
        while any(self.pulls[p] < before.get(p, 0) + more for p in paths):
            self.assertLess(time.monotonic() - begin, harness.DEADLINE, f'{before} -> {self.pulls}')
            self.server.stopping.wait(0.01)
        return time.monotonic() - begin


class Hints(Many):
    """A message is a hint, "at that moment at the latest": it never puts a pull off."""

    def test_a_forged_epoch_with_a_spread_of_an_hour_silences_nobody(self):
        names = [f'c{i}' for i in range(5)]
        agent = self.start(names, 'interval: 500ms')
        self.push(agent, (b'pullet.heartbeat', {'epoch': 'a'}), (b'pullet.heartbeat', {'epoch': 'b', 'spread_ms': HOUR_MS}))
        self.assertEqual(json.loads(agent.get('/v1/status')[1])['push'][0]['epochs'], 1)
        self.assertLess(self.wait_pulls(['/' + n for n in names], 4), 4 * 0.55 + 2)
        agent.stop()

    def test_a_spread_far_above_the_interval_leaves_the_next_pull_where_it_is(self):
        agent = self.start(['web'], 'interval: 20s')
        agent.refresh()
        self.push(agent, *[(b'web', {'spread_ms': HOUR_MS})] * 20)
        self.assertLessEqual(agent.status()['next_pull_in_ms'], 22000)
        agent.stop()

    def test_a_push_right_after_a_refresh_does_not_put_it_off(self):
        agent = self.start(['slow', 'web'], 'interval: 1h, timeout: 30s', max_in_flight=1)
        agent.refresh('slow')
        agent.refresh('web')
        entered, leave = threading.Event(), threading.Event()

        def hang(connection, head, stopping):
            entered.set()
            leave.wait(harness.DEADLINE)
            good(b'n: 1\n')(connection, head, stopping)
        self.answer['/slow'] = hang
        self.assertEqual(agent.post('/v1/configs/slow/refresh')[0], 202)
        self.assertTrue(entered.wait(harness.DEADLINE))
        self.assertEqual(agent.post('/v1/configs/web/refresh')[0], 202)
        deadline = time.monotonic() + harness.DEADLINE
        while not agent.status()['deferred']:
            self.assertLess(time.monotonic(), deadline)
        before = self.pulls['/web']
        self.push(agent, *[(b'web', {'spread_ms': HOUR_MS})] * 5)
        status = agent.status()
        self.assertEqual((status['deferred'], status['next_pull_in_ms']), (True, 0))
        leave.set()
        self.assertLess(self.wait_pulls(['/web'], before + 1 - self.pulls['/web']), 5)
        withdrawn = json.loads(agent.get('/v1/status')[1])['servers'][0]['withdrawn']
        self.assertEqual(withdrawn, 0)
        agent.stop()

    def test_in_a_line_for_one_slot_a_storm_starves_nobody(self):
        names = [f'c{i:02}' for i in range(20)]

        def slow(connection, head, stopping):  # the slowness is what is tested
            stopping.wait(0.01)
            good(b'n: 1\n')(connection, head, stopping)
        self.answer = {'/' + n: slow for n in names}
        agent = self.start(names, 'interval: 100ms', max_in_flight=1)
        self.wait_pulls(self.answer, 2)
        before, end, n = dict(self.pulls), time.monotonic() + 6, 0
        while time.monotonic() < end:
            n += 1
            self.publisher.send(names[n % 20].encode(), {'v': 1, 'spread_ms': (0, 50, 60000, HOUR_MS)[n // 20 % 4]})
            self.publisher.send(b'pullet.heartbeat', {'v': 1, 'epoch': f'e{n // 50}', 'spread_ms': HOUR_MS})
            self.server.stopping.wait(0.001)
        pulls = {p: self.pulls[p] - before[p] for p in self.answer}
        share = sum(pulls.values()) / len(pulls)
        self.assertGreater(share, 15, 'the server was idle')
        self.assertGreaterEqual(min(pulls.values()), 0.9 * share - 1, pulls)
        self.assertEqual(json.loads(agent.get('/v1/status')[1])['servers'][0]['withdrawn'], 0)
        agent.stop()


class Floor(Many):
    """Between the pulls that messages cause there is a floor, whatever they say."""
    NAMES = [f'c{i}' for i in range(10)]
    SECONDS, A_SECOND, VISIBLE = 4, 60, 0.2
    PATIENCE = 3 if harness.SANITIZED else 1.25  # for a change to be seen, on a machine that does other things

    def flood(self, agent, messages):
        """Messages as fast as they go for SECONDS, with a true change in the middle; its message comes among them."""
        begin, before, shown = time.monotonic(), sum(self.pulls.values()), None
        changed, name = 0, self.NAMES[3]
        while time.monotonic() - begin < self.SECONDS:
            for frames in messages():
                self.publisher.send(*frames)
            self.server.stopping.wait(0.0005)
            if not changed and time.monotonic() - begin > self.SECONDS / 2:
                self.answer['/' + name] = good(b'n: 2\n', 'ETag: "v2"\r\n')
                changed = time.monotonic()
                self.publisher.send(name.encode(), {'v': 1, 'version': 'v2'})
            if changed and not shown and self.read('out/' + name) == b'n: 2\n':
                shown = time.monotonic() - changed
        pulls = sum(self.pulls.values()) - before
        self.assertLessEqual(pulls, self.A_SECOND * self.SECONDS)
        self.assertGreater(pulls, 2 * len(self.NAMES), 'the messages did not arrive')
        self.assertIsNotNone(shown, 'the change never came')
        self.assertLess(shown, self.VISIBLE * self.PATIENCE)
        agent.stop()

    def test_floods_of_every_kind_are_few_requests_and_hide_no_change(self):
        n = itertools.count()
        kinds = {
            'plain': lambda: [(t.encode(),) for t in self.NAMES],
            'promise': lambda: [(t.encode(), {'v': 1, 'version': f'never-{next(n)}'}) for t in self.NAMES],
            'epoch': lambda: [(t.encode(), {'v': 1, 'epoch': f'e{next(n)}', 'seq': 1}) for t in self.NAMES],
            'gap': lambda: [(t.encode(), {'v': 1, 'epoch': 'e', 'seq': 7 * next(n)}) for t in self.NAMES],
            'heartbeat': lambda: [(b'pullet.heartbeat', {'v': 1, 'epoch': f'e{next(n)}'})],
            'spread': lambda: [(t.encode(), {'v': 1, 'spread_ms': 0}) for t in self.NAMES],
        }
        for kind, messages in kinds.items():
            with self.subTest(kind):
                shutil.rmtree(self.path('out'), ignore_errors=True)
                shutil.rmtree(self.path('state'), ignore_errors=True)
                self.publisher.close()
                self.publisher, self.answer = Publisher(self), {}
                self.flood(self.start(self.NAMES, 'interval: 1h'), messages)

    def test_an_order_is_not_bound_by_the_floor_and_the_interval_neither(self):
        agent = self.start(['web', 'db'], 'push_min_interval: 1h, interval: 1h')
        begin = time.monotonic()
        for _ in range(5):
            agent.refresh()
        self.assertLess(time.monotonic() - begin, harness.DEADLINE)
        self.push(agent, (b'web', {}))
        self.assertGreater(agent.status()['next_pull_in_ms'], 3000000)
        before = self.pulls['/web']
        agent.refresh()
        self.assertEqual(self.pulls['/web'], before + 1)
        agent.stop()

    def test_the_interval_is_not_put_off_by_a_floor_that_is_longer(self):
        agent = self.start(['web'], 'push_min_interval: 1h, interval: 300ms')
        self.push(agent, *[(b'web', {})] * 10)
        self.assertLess(self.wait_pulls(['/web'], 4), 4 * 0.33 + 2)
        agent.stop()

    def test_a_single_push_after_quiet_waits_for_nothing(self):
        agent = self.start(['web'], 'interval: 1h')
        agent.refresh()
        self.server.stopping.wait(0.2)  # the floor itself
        begin, before = time.monotonic(), dict(self.pulls)
        self.publisher.send(b'web', {'v': 1})
        self.wait_pulls(['/web'], 1, before)
        self.assertLess(time.monotonic() - begin, 0.07 * self.PATIENCE)
        agent.stop()

    def test_a_message_does_not_undercut_the_spread_of_the_config(self):
        agent = self.start(['web'], 'push_spread: 1h, interval: 1h, jitter: 0%')
        agent.refresh()
        before = self.pulls['/web']
        self.push(agent, *[(b'web', {'spread_ms': 0})] * 20)
        agent.get('/v1/status')
        self.assertEqual(self.pulls['/web'], before)
        agent.stop()


class Serve(harness.Case):
    def test_a_changed_file_is_pushed_and_published(self):
        serve, url, endpoint = self.serve()
        self.write('www/web.yaml', 'n: 1\n')
        agent = Agent(self, self.config(url + '/web.yaml', '    interval: 1h\n', push=f'push:\n  - endpoint: {endpoint}\n'))
        agent.log.wait('published.*generation=1')
        while json.loads(agent.get('/v1/status')[1])['push'][0]['connects'] == 0:
            agent.refresh()
        agent.refresh()
        for n in range(2, 12):
            self.write('www/web.yaml', f'n: {n}\n')
            agent.log.wait(f'published.*generation={n}')
            self.assertEqual(self.read('out/web.yaml'), f'n: {n}\n'.encode())
        serve.signal(signal.SIGTERM)
        self.assertEqual(serve.wait(), 0)
        agent.stop()

    def test_stop_is_quick_while_the_publisher_and_the_server_hang(self):
        serve, url, endpoint = self.serve()
        self.write('www/web.yaml', 'n: 1\n')
        agent = Agent(self, self.config(url + '/web.yaml', '    interval: 1h\n', push=f'push:\n  - endpoint: {endpoint}\n'))
        agent.log.wait('push channel connected')
        agent.refresh()
        serve.signal(signal.SIGSTOP)
        self.assertEqual(agent.post('/v1/configs/web/refresh')[0], 202)
        agent.stop()

    def test_etag_304_head_and_nothing_out_of_the_directory(self):
        _, url, _ = self.serve()
        self.write('www/web.yaml', 'n: 1\n')
        self.write('secret', 'secret\n')
        os.symlink('../secret', self.path('www/out'))
        os.symlink('web.yaml', self.path('www/in.yaml'))
        os.mkfifo(self.path('www/fifo'))
        import http.client
        host = url.split('//')[1]

        def ask(method, path, **headers):
            c = http.client.HTTPConnection(host, timeout=harness.DEADLINE)
            c.putrequest(method, path)
            for k, v in headers.items():
                c.putheader(k.replace('_', '-'), v)
            c.endheaders()
            r = c.getresponse()
            body = r.read()
            c.close()
            return r.status, r.getheader('ETag'), body
        status, etag, body = ask('GET', '/web.yaml')
        self.assertEqual((status, body), (200, b'n: 1\n'))
        self.assertRegex(etag, r'^"[0-9a-f]{32}"$')
        self.assertEqual(ask('GET', '/web.yaml', If_None_Match=etag), (304, etag, b''))
        self.assertEqual(ask('GET', '/web.yaml', If_None_Match=f'"x", W/{etag}')[0], 304)
        self.assertEqual(ask('GET', '/web.yaml', If_None_Match='"x"')[0], 200)
        self.assertEqual(ask('HEAD', '/web.yaml'), (200, etag, b''))
        self.assertEqual(ask('GET', '/in.yaml')[2], b'n: 1\n')
        for path in ('/../secret', '/%2e%2e/secret', '/..%2fsecret', '/out', '/fifo', '/', '/none', '//etc/passwd', '/a%00b', '/.hidden'):
            self.assertIn(ask('GET', path)[0], (400, 403, 404), path)
        self.assertIn(ask('DELETE', '/web.yaml')[0], (405, 501))

    def test_fifty_clients_at_once(self):
        _, url, _ = self.serve()
        self.write('www/web.yaml', 'n: ' + 'x' * 100000 + '\n')
        import concurrent.futures
        import urllib.request

        def get(_):
            with urllib.request.urlopen(url + '/web.yaml', timeout=harness.DEADLINE) as r:
                return len(r.read())
        with concurrent.futures.ThreadPoolExecutor(50) as pool:
            self.assertEqual(set(pool.map(get, range(500))), {100004})


if __name__ == '__main__':
    harness.main()
