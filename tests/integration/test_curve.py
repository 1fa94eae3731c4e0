"""A push channel that is encrypted, with publishers and subscribers nobody here wrote (python3-zmq) on the other side, and each way to get it wrong."""
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import threading
import time

import zmq
import zmq.auth
from zmq.auth.thread import ThreadAuthenticator
from zmq.utils import z85
from zmq.utils.monitor import recv_monitor_message

import harness
from harness import Agent, FaultServer, Program, PULLET, PULLETD, good

NO_CURVE = '''
#include <errno.h>
int zmq_has(const char *capability) { (void)capability; return 0; }
int zmq_curve_keypair(char *p, char *s) { (void)p, (void)s; errno = ENOTSUP; return -1; }
'''


class Keys:
    """A pair made by `pullet keygen`."""

    def __init__(self, test, name):
        self.path = test.path(name)
        done = subprocess.run([PULLET, 'keygen', self.path], capture_output=True, text=True, check=True)
        self.public = done.stdout.strip()
        with open(self.path, encoding='ascii') as f:
            self.secret = f.read().splitlines()[-1]


class Publisher:
    """An XPUB socket of the zmq module; keys: its own, then CURVE; allow: public keys, then ZAP by zmq.auth."""

    def __init__(self, test, keys=None, allow=None, port=0):
        self.context, self.auth = zmq.Context(), None
        if allow is not None:
            self.auth = ThreadAuthenticator(self.context)
            self.auth.start()
            self.allow(test, allow)
        self.socket = self.context.socket(zmq.XPUB)
        self.socket.linger = 0
        self.socket.setsockopt(zmq.XPUB_VERBOSE, 1)
        if keys:
            self.socket.curve_server, self.socket.curve_secretkey, self.socket.curve_publickey = True, keys.secret.encode(), keys.public.encode()
        self.socket.bind(f'tcp://127.0.0.1:{port or "*"}')
        self.endpoint = self.socket.getsockopt(zmq.LAST_ENDPOINT).rstrip(b'\0').decode()
        self.port = int(self.endpoint.rsplit(':', 1)[1])
        self.closed = False
        test.addCleanup(self.close)

    def allow(self, test, publics):
        for i, public in enumerate(publics):
            test.write(f'certificates/{i}.key', f'metadata\ncurve\n    public-key = "{public}"\n')
        os.makedirs(test.path('certificates'), exist_ok=True)
        self.auth.configure_curve(domain='*', location=test.path('certificates'))

    def wait_subscribed(self, topic=b'web'):
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
            if self.auth:
                self.auth.stop()
            self.context.term()


class Subscriber:
    """A SUB socket of the zmq module with a monitor: how its handshake ended."""

    def __init__(self, test, endpoint, server_key=None, public=None, secret=None):
        self.context = zmq.Context()
        self.socket = self.context.socket(zmq.SUB)
        self.socket.linger = 0
        self.socket.subscribe(b'')
        if server_key:
            if not public:
                public, secret = (k.decode() for k in zmq.curve_keypair())
            self.socket.curve_serverkey, self.socket.curve_publickey, self.socket.curve_secretkey = (
                k.encode() for k in (server_key, public, secret))
        self.public = public
        self.monitor = self.socket.get_monitor_socket(
            zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL | zmq.EVENT_HANDSHAKE_FAILED_AUTH)
        self.monitor.linger = 0
        self.socket.connect(endpoint)
        test.addCleanup(self.close)

    def handshake(self):
        """The next end of one: True, or the status code or 0 of a refusal."""
        if not self.monitor.poll(harness.DEADLINE * 1000):
            raise AssertionError('no handshake ended')
        event = recv_monitor_message(self.monitor)
        if event['event'] == zmq.EVENT_HANDSHAKE_SUCCEEDED:
            return True
        return event['value'] if event['event'] == zmq.EVENT_HANDSHAKE_FAILED_AUTH else 0

    def receive(self):
        if not self.socket.poll(harness.DEADLINE * 1000):
            raise AssertionError('no message')
        return self.socket.recv_multipart()

    def close(self):
        self.socket.disable_monitor()
        self.monitor.close()
        self.socket.close()
        self.context.term()


class Curve(harness.Case):
    def setUp(self):
        super().setUp()
        self.server = FaultServer(self)
        self.set(1)
        self.here, self.there, self.other = Keys(self, 'agent.key'), Keys(self, 'publisher.key'), Keys(self, 'other.key')

    def set(self, n):
        self.server.behave = good(f'n: {n}\n'.encode(), f'ETag: "v{n}"\r\n')

    def start(self, endpoint, server_key=None, secret='agent.key', more=''):
        """An agent; server_key: then CURVE; secret: its key's file, or None."""
        curve = ''
        if server_key:
            curve = f"    curve: {{server_key: '{server_key}'" + (f', secret_key_file: {self.path(secret)}' if secret else '') + '}\n'
        agent = Agent(self, self.config(self.server.url + '/web.yaml', '    interval: 1h\n',
                                        push=f'push:\n  - endpoint: {endpoint}\n{curve}{more}'))
        agent.log.wait('published.*generation=1')
        return agent

    def push(self, agent):
        return json.loads(agent.get('/v1/status')[1])['push'][0]

    def settled(self, agent):
        """The pull that the connection itself causes is over when a later one has ended."""
        agent.log.wait('push channel connected')
        agent.refresh()
        push = self.push(agent)
        self.assertEqual((push['state'], push['error']), ('connected', None), push)

    def pushed(self, agent, n, send):
        self.set(n)
        send()
        agent.log.wait(f'published.*generation={n}')

    def refused(self, agent, pattern):
        """Refused, with this reason in the log and in the status."""
        line = agent.log.wait('push channel refused.*' + pattern)
        push = self.push(agent)
        self.assertEqual(push['state'], 'refused', push)
        self.assertRegex(push['error'], pattern)
        self.assertGreater(push['handshake_failures'], 0)
        return line

    def clear(self):
        """For another agent in this test."""
        for name in ('state', 'run', 'out'):
            shutil.rmtree(self.path(name))

    def ended(self, agent):
        """The agent ends well, and has never said a secret key."""
        status = agent.get('/v1/status')[1]
        agent.stop()
        for keys in (self.here, self.there, self.other):
            self.assertNotIn(keys.secret, status + '\n'.join(agent.log.seen))

    def serve(self, *args):
        p, url, endpoint = super().serve(*args)
        if '--curve-secret-key' in args:
            self.assertIn(self.there.public, p.log.wait('server_key'))
        return p, url, endpoint


class Foreign(Curve):
    """Publishers of the zmq module, and this agent."""

    def test_an_agent_with_a_key_and_one_without(self):
        for secret in ('agent.key', None):
            publisher = Publisher(self, self.there)
            self.set(1)
            agent = self.start(publisher.endpoint, self.there.public, secret)
            publisher.wait_subscribed()
            self.settled(agent)
            self.pushed(agent, 2, lambda p=publisher: p.send(b'web'))
            self.assertEqual(self.push(agent)['handshake_failures'], 0)
            self.ended(agent)
            publisher.close()
            self.clear()

    def test_a_wrong_server_key_is_refused_until_it_is_put_right(self):
        publisher = Publisher(self, self.other)
        agent = self.start(publisher.endpoint, self.there.public)
        self.refused(agent, 'server_key is not its public key')
        publisher.close()
        publisher = Publisher(self, self.there, port=publisher.port)
        publisher.wait_subscribed()
        self.settled(agent)
        self.pushed(agent, 2, lambda: publisher.send(b'web'))
        self.ended(agent)

    def test_curve_on_one_side_only_is_refused_until_it_is_put_right(self):
        # who hangs up first is a race: the reason may be the vague one, and names both then
        for agents, before, after, pattern in ((self.there.public, None, self.there, 'does not use CURVE'), (None, self.there, None, 'wants CURVE')):
            publisher = Publisher(self, before)
            self.set(1)
            agent = self.start(publisher.endpoint, agents)
            self.refused(agent, pattern)
            publisher.close()
            publisher = Publisher(self, after, port=publisher.port)
            publisher.wait_subscribed()
            self.settled(agent)
            self.pushed(agent, 2, lambda p=publisher: p.send(b'web'))
            self.ended(agent)
            publisher.close()
            self.clear()

    def test_an_agent_that_the_publisher_does_not_know_is_let_in_once_it_does(self):
        publisher = Publisher(self, self.there, allow=[self.other.public])
        agent = self.start(publisher.endpoint, self.there.public)
        line = self.refused(agent, 'does not allow this agent')
        # the key that is to be added there; none of its characters is escaped in JSON
        self.assertEqual(re.search(r'public_key="?([^\s"]+)', line)[1], self.here.public)
        publisher.allow(self, [self.other.public, self.here.public])
        publisher.wait_subscribed()
        self.settled(agent)
        self.pushed(agent, 2, lambda: publisher.send(b'web'))
        self.ended(agent)

    def test_an_agent_without_a_key_of_its_own_at_a_publisher_with_a_list(self):
        publisher = Publisher(self, self.there, allow=[self.here.public])
        agent = self.start(publisher.endpoint, self.there.public, None)
        self.assertNotIn('public_key=', self.refused(agent, 'set secret_key_file'))
        self.ended(agent)

    def test_a_key_file_that_is_no_secret_is_refused_until_it_is_one(self):
        publisher = Publisher(self, self.there)
        os.chmod(self.here.path, 0o644)
        agent = self.start(publisher.endpoint, self.there.public)
        self.refused(agent, 'can be read by others')
        os.rename(self.here.path, self.path('away'))
        self.refused_later(agent, 'does not exist')
        self.write('agent.key', '# empty\n')
        os.chmod(self.here.path, 0o600)
        self.refused_later(agent, 'holds no key')
        os.chmod(self.path('away'), 0o600)
        os.rename(self.path('away'), self.here.path)
        publisher.wait_subscribed()
        self.settled(agent)
        self.pushed(agent, 2, lambda: publisher.send(b'web'))
        self.ended(agent)

    def refused_later(self, agent, pattern):
        """As refused(); the line in the log may be held back, because it is about the same thing."""
        deadline = time.monotonic() + harness.DEADLINE
        while not re.search(pattern, self.push(agent)['error'] or ''):
            self.assertLess(time.monotonic(), deadline, self.push(agent))
            agent.refresh()

    def test_three_silent_heartbeats_and_a_deaf_socket_are_survived(self):
        publisher = Publisher(self, self.there)
        agent = self.start(publisher.endpoint, self.there.public, more='    heartbeat: 200ms\n')
        publisher.wait_subscribed()
        self.settled(agent)
        self.set(2)
        publisher.send(b'pullet.heartbeat', {'v': 1, 'epoch': 'e'})
        agent.log.wait('silent')
        agent.log.wait('published.*generation=2')
        publisher.wait_subscribed()
        self.pushed(agent, 3, lambda: publisher.send(b'web'))
        before = agent.log.count
        publisher.send(b'web', b'x' * (1 << 20))
        agent.log.wait('lost|refused', before)
        publisher.wait_subscribed()
        self.pushed(agent, 4, lambda: publisher.send(b'web'))
        self.ended(agent)

    def test_a_publisher_that_restarts_is_found_again(self):
        publisher = Publisher(self, self.there)
        agent = self.start(publisher.endpoint, self.there.public)
        publisher.wait_subscribed()
        self.settled(agent)
        publisher.close()
        agent.log.wait('push channel lost')
        publisher = Publisher(self, self.there, port=publisher.port)
        publisher.wait_subscribed()
        agent.refresh()
        self.pushed(agent, 2, lambda: publisher.send(b'web'))
        self.assertEqual(self.push(agent)['handshake_failures'], 0)
        self.ended(agent)

    def test_a_publisher_that_comes_back_with_another_key_and_then_with_none(self):
        publisher = Publisher(self, self.there)
        agent = self.start(publisher.endpoint, self.there.public)
        publisher.wait_subscribed()
        self.settled(agent)
        publisher.close()
        impostor = Publisher(self, self.other, port=publisher.port)
        self.refused(agent, 'server_key is not its public key')
        impostor.close()
        deadline = time.monotonic() + harness.DEADLINE
        while self.push(agent)['state'] != 'connecting':  # nobody is there to refuse anything
            self.assertLess(time.monotonic(), deadline, self.push(agent))
            agent.refresh()
        self.assertIn('nobody answers there', self.push(agent)['error'])
        self.ended(agent)

    def test_what_is_no_publisher_is_refused_and_asked_ever_more_rarely(self):
        for answer, pattern in ((b'', 'ended the handshake'), (b'HTTP/1.1 400 Bad Request\r\n\r\n' + b'x' * 100, 'not a ZeroMQ publisher|ended the handshake')):
            listener = socket.create_server(('127.0.0.1', 0))
            self.addCleanup(listener.close)
            came, fifth = [], threading.Event()

            def accept(listener=listener, answer=answer, came=came, fifth=fifth):
                while True:
                    try:
                        connection, _ = listener.accept()
                    except OSError:
                        return
                    came.append(time.monotonic())
                    connection.sendall(answer)
                    connection.close()
                    if len(came) == 5:
                        fifth.set()
            threading.Thread(target=accept, daemon=True).start()
            self.set(1)
            agent = self.start(f'tcp://127.0.0.1:{listener.getsockname()[1]}', self.there.public)
            self.refused(agent, pattern)
            self.assertTrue(fifth.wait(harness.DEADLINE))
            # from at least 100 ms on, each pause at least half of one that doubles
            self.assertGreater(came[4] - came[0], 0.7)
            self.assertEqual(len([line for line in agent.log.seen if 'push channel refused' in line]), 1)
            self.ended(agent)
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()
            self.clear()


class Own(Curve):
    """`pullet serve` and `pullet publish` with keys."""

    def test_serve_and_a_foreign_subscriber(self):
        serve, _, endpoint = self.serve('--curve-secret-key', self.there.path, '--heartbeat', '100ms')
        subscriber = Subscriber(self, endpoint, self.there.public)
        self.assertIs(subscriber.handshake(), True)
        topic, envelope = subscriber.receive()
        self.assertEqual((topic, json.loads(envelope)['v']), (b'pullet.heartbeat', 1))
        self.write('www/web.yaml', 'n: 1\n')
        while topic != b'web':
            topic, envelope = subscriber.receive()
        self.assertEqual(json.loads(envelope)['seq'], 1)
        self.assertEqual(Subscriber(self, endpoint, self.other.public).handshake(), 0)
        self.assertEqual(Subscriber(self, endpoint).handshake(), 0)
        serve.signal(signal.SIGTERM)
        self.assertEqual(serve.wait(), 0)

    def test_serve_with_a_list_and_foreign_subscribers(self):
        self.write('allow', f'# who may listen\n{self.here.public}  # the agent\n')
        serve, _, endpoint = self.serve('--curve-secret-key', self.there.path, '--curve-allow', self.path('allow'), '--heartbeat', '100ms')
        known = Subscriber(self, endpoint, self.there.public, self.here.public, self.here.secret)
        self.assertIs(known.handshake(), True)
        unknown = Subscriber(self, endpoint, self.there.public)
        self.assertEqual(unknown.handshake(), 400)
        line = serve.log.wait('subscriber denied.*address=127.0.0.1')
        self.assertIn(unknown.public, line)
        # a public key is no proof
        self.assertEqual(Subscriber(self, endpoint, self.there.public, self.here.public, self.other.secret).handshake(), 0)
        # from now on the other, too; then only the other, and who is connected stays
        with open(self.path('allow'), 'a', encoding='ascii') as f:
            f.write(self.other.public + '\n')
        self.assertIs(Subscriber(self, endpoint, self.there.public, self.other.public, self.other.secret).handshake(), True)
        self.write('allow', self.other.public + '\n')
        self.assertEqual(Subscriber(self, endpoint, self.there.public, self.here.public, self.here.secret).handshake(), 400)
        # a list that has become bad, or is gone: the last good one counts
        self.write('allow', 'half a ke')
        self.assertEqual(Subscriber(self, endpoint, self.there.public, self.here.public, self.here.secret).handshake(), 400)
        serve.log.wait('cannot read the list of allowed keys.*line 1')
        os.unlink(self.path('allow'))
        self.assertIs(Subscriber(self, endpoint, self.there.public, self.other.public, self.other.secret).handshake(), True)
        serve.log.wait('cannot read the list of allowed keys.*No such file')
        self.write('www/web.yaml', 'n: 1\n')
        while known.receive()[0] != b'web':
            pass
        serve.signal(signal.SIGTERM)
        lines = serve.log.drain()
        self.assertEqual(serve.wait(), 0)
        self.assertNotIn(self.there.secret, '\n'.join(lines))

    def test_forty_subscribers_at_once_are_all_judged(self):
        self.write('allow', self.here.public + '\n')
        serve, _, endpoint = self.serve('--curve-secret-key', self.there.path, '--curve-allow', self.path('allow'))
        known = [Subscriber(self, endpoint, self.there.public, self.here.public, self.here.secret) for _ in range(20)]
        unknown = [Subscriber(self, endpoint, self.there.public) for _ in range(20)]
        self.assertEqual({s.handshake() for s in known}, {True})
        self.assertEqual({s.handshake() for s in unknown}, {400})
        serve.signal(signal.SIGTERM)
        lines = serve.log.drain()
        self.assertEqual(serve.wait(), 0)
        self.assertEqual(len([line for line in lines if 'subscriber denied' in line]), 1)

    def test_serve_with_a_list_and_the_agent(self):
        self.write('allow', self.other.public + '\n')
        self.write('www/web.yaml', 'n: 1\n')
        serve, url, endpoint = self.serve('--curve-secret-key', self.there.path, '--curve-allow', self.path('allow'))
        self.server.url = url
        agent = self.start(endpoint, self.there.public)
        self.refused(agent, 'does not allow this agent')
        _, text, _ = agent.cli('status', check=0)
        self.assertRegex(text, f'push {endpoint}: refused')
        self.write('allow', f'{self.other.public}\n{self.here.public}\n')
        self.settled(agent)
        for n in range(2, 6):
            self.write('www/web.yaml', f'n: {n}\n')
            agent.log.wait(f'published.*generation={n}')
        serve.signal(signal.SIGTERM)
        self.assertEqual(serve.wait(), 0)
        agent.log.wait('push channel lost')
        self.ended(agent)

    def test_publish_with_a_key_and_a_list(self):
        publisher = Publisher(self, self.there)  # for its port
        agent = self.start(publisher.endpoint, self.there.public)
        self.settled(agent)
        publisher.close()
        self.set(2)
        done = subprocess.run([PULLET, 'publish', 'web', '--endpoint', publisher.endpoint, '--curve-secret-key', self.there.path,
                               '--curve-allow', self.here.path + '.pub'], capture_output=True, text=True, timeout=harness.DEADLINE * 2, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        agent.log.wait('published.*generation=2')
        done = subprocess.run([PULLET, 'publish', 'web', '--endpoint', publisher.endpoint, '--curve-secret-key', self.there.path,
                               '--curve-allow', self.other.path + '.pub', '--timeout', '5s'],
                              capture_output=True, text=True, timeout=harness.DEADLINE * 2, check=False)
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertRegex(done.stderr, 'subscriber denied')
        self.refused(agent, 'does not allow this agent|ended the handshake')
        self.ended(agent)


class Refused(Curve):
    """What is rejected before anything begins."""

    def run_(self, *args, env=None):
        done = subprocess.run(args, capture_output=True, text=True, timeout=harness.DEADLINE, check=False, env=dict(os.environ, **(env or {})))
        for keys in (self.here, self.there, self.other):
            self.assertNotIn(keys.secret, done.stdout + done.stderr)
        return done.returncode, done.stdout, done.stderr

    def test_plain_text_leaves_this_host_only_when_it_is_told_to(self):
        def config(item):
            self.write('pullet.yaml', self.config('http://127.0.0.1:1/web.yaml', push=f'push:\n  - {item}\n'))
            return self.run_(PULLETD, '-t', '-c', self.path('pullet.yaml'))
        code, _, error = config('endpoint: tcp://192.0.2.1:7377')
        self.assertEqual(code, 78)
        self.assertRegex(error, r'pullet.yaml:\d+:\d+: endpoint: "tcp://192.0.2.1:7377" .*curve.*pullet keygen.*insecure: true')
        for item in ('{endpoint: tcp://192.0.2.1:7377, insecure: true}', 'endpoint: tcp://127.0.0.1:7377', 'endpoint: tcp://localhost:7377',
                     "{endpoint: 'tcp://[::1]:7377'}", 'endpoint: ipc:///run/x', f"{{endpoint: tcp://192.0.2.1:7377, curve: {{server_key: '{self.there.public}'}}}}"):
            self.assertEqual(config(item)[0], 0, item)
        os.makedirs(self.path('www'))
        for command in (('serve', self.path('www'), '--http', '127.0.0.1:0', '--push'), ('publish', 'web', '--timeout', '200ms', '--endpoint')):
            for endpoint in ('tcp://0.0.0.0:0', 'tcp://*:0', 'tcp://[::]:0', '*:0'):
                code, _, error = self.run_(PULLET, *command, endpoint)
                self.assertEqual(code, 64, error)
                self.assertRegex(error, 'plain text.*--curve-secret-key.*pullet keygen.*--insecure')
        self.assertEqual(self.run_(PULLET, 'publish', 'web', '--timeout', '200ms', '--endpoint', 'tcp://0.0.0.0:0', '--insecure')[0], 4)
        self.assertEqual(self.run_(PULLET, 'publish', 'web', '--timeout', '200ms', '--endpoint', 'tcp://0.0.0.0:0', '--curve-secret-key', self.there.path)[0], 4)
        p = Program([PULLET, 'serve', self.path('www'), '--http', '127.0.0.1:0', '--push', 'tcp://0.0.0.0:0', '--insecure'], read='both')
        self.addCleanup(p.close)
        p.log.wait('publishing on tcp://0.0.0.0:')
        p.signal(signal.SIGTERM)
        self.assertEqual(p.wait(), 0)

    def test_options_and_files_that_do_not_fit(self):
        os.chmod(self.other.path, 0o644)
        self.write('empty', '# nobody\n')
        for args, status, pattern in (
                (('--curve-allow', self.path('x')), 64, '--curve-allow needs --curve-secret-key'),
                (('--curve-secret-key', self.there.path, '--insecure'), 64, 'exclude each other'),
                (('--curve-secret-key', self.path('none')), 1, 'none: .*does not exist: pullet keygen'),
                (('--curve-secret-key', self.other.path), 1, 'chmod 600'),
                (('--curve-secret-key', self.there.path, '--curve-allow', self.path('none')), 1, 'none cannot be read: No such file'),
                (('--curve-secret-key', self.there.path, '--curve-allow', self.path('empty')), 1, 'empty holds no public key')):
            code, _, error = self.run_(PULLET, 'publish', 'web', '--endpoint', 'tcp://127.0.0.1:0', '--timeout', '200ms', *args)
            self.assertEqual(code, status, error)
            self.assertRegex(error, pattern)

    def test_keygen(self):
        for name, mode in (('agent.key', 0o600), ('agent.key.pub', 0o644)):
            self.assertEqual(stat.S_IMODE(os.stat(self.path(name)).st_mode), mode)
        self.assertEqual(len(z85.decode(self.here.public)), 32)
        self.assertEqual(zmq.curve_public(self.here.secret.encode()).decode(), self.here.public)
        self.assertNotEqual(self.here.secret, self.there.secret)
        before = self.read('agent.key')
        code, out, error = self.run_(PULLET, 'keygen', self.here.path)
        self.assertEqual((code, out), (1, ''))
        self.assertRegex(error, 'never overwritten')
        self.assertEqual(self.read('agent.key'), before)
        for args in ((), ('a', 'b')):
            code, out, error = self.run_(PULLET, 'keygen', *args)
            self.assertEqual((code, out), (64, ''))
            self.assertRegex(error, 'name one file')
        code, out, error = self.run_(PULLET, 'keygen', self.path('no/such/dir'))
        self.assertEqual((code, out), (1, ''))
        code, out, error = self.run_(PULLET, 'keygen', self.path('new'))
        self.assertEqual(code, 0)
        self.assertRegex(out, r'^\S{40}\n$')
        self.assertIn(self.path('new.pub'), error)
        self.assertIn(out, self.read('new.pub').decode())

    def test_a_libzmq_without_curve_is_said(self):
        self.write('nocurve.c', NO_CURVE)
        library = self.path('nocurve.so')
        subprocess.run(['cc', '-shared', '-fPIC', '-o', library, self.path('nocurve.c')], check=True)
        env = {'LD_PRELOAD': library, 'ASAN_OPTIONS': 'verify_asan_link_order=0'}
        code, _, error = self.run_(PULLET, 'keygen', self.path('new'), env=env)
        self.assertEqual(code, 1)
        self.assertRegex(error, 'built without CURVE')
        self.assertFalse(os.path.exists(self.path('new')))
        code, _, error = self.run_(PULLET, 'publish', 'web', '--endpoint', 'tcp://127.0.0.1:0', '--curve-secret-key', self.there.path, env=env)
        self.assertEqual(code, 1)
        self.assertRegex(error, 'built without CURVE')
        agent = Agent(self, self.config(self.server.url + '/web.yaml', push=f"push:\n  - {{endpoint: tcp://127.0.0.1:1, curve: {{server_key: '{self.there.public}'}}}}\n"),
                      env=env)
        agent.log.wait('cannot start the push channel.*built without CURVE')
        self.assertEqual(agent.wait(), 1)


if __name__ == '__main__':
    harness.main()
