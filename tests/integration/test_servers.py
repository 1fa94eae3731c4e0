"""Servers: failover between addresses, holds and Retry-After, one line of pulls for all configs, secrets, TLS, sleep."""
import base64
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time

import harness
from harness import Agent, FaultServer, Nginx, drip, good, raw


def busy(retry_after='', status='503 Service Unavailable'):
    return good(b'later\n', f'Retry-After: {retry_after}\r\n' if retry_after else '', status)


class Gate:
    """A behaviour that holds every request until it is opened, and remembers how many were held at a time."""

    def __init__(self, test, behave):
        self.behave, self.now, self.most, self.changed = behave, 0, 0, threading.Condition()
        self.is_open = False
        test.addCleanup(self.open)

    def __call__(self, connection, head, stopping):
        with self.changed:
            self.now += 1
            self.most = max(self.most, self.now)
            self.changed.notify_all()
            self.changed.wait_for(lambda: self.is_open or stopping.is_set(), harness.DEADLINE)
            self.now -= 1
        return self.behave(connection, head, stopping)

    def wait(self, number):
        with self.changed:
            assert self.changed.wait_for(lambda: self.now >= number, harness.DEADLINE), self.now

    def open(self):
        with self.changed:
            self.is_open = True
            self.changed.notify_all()


class Case(harness.Case):
    def settings(self, urls, server='', config='    interval: 1h\n', names=('web',), push=''):
        os.makedirs(self.path('out'), exist_ok=True)
        lines = [f'agent:\n  state_dir: {self.path("state")}\n  runtime_dir: {self.path("run")}\n'
                 f'{push}\nservers:\n  main:\n    urls: {json.dumps(urls)}\n{server}\nconfigs:']
        for name in names:
            lines.append(f'  {name}:\n    from: [{{server: main, path: /{name}.yaml}}]\n    file: {self.path("out/" + name + ".yaml")}\n{config}')
        return '\n'.join(lines)

    def two(self):
        """Two servers with the same document, in the order in which this host's agent tries them; and a running agent."""
        servers = [FaultServer(self), FaultServer(self)]
        for s in servers:
            s.behave = good(b'a: 1\n', 'ETag: "1"\r\n')
        agent = Agent(self, self.settings([s.url for s in servers], config='    interval: 1h\n    timeout: 1s\n'))
        agent.log.wait('published.*generation=1')
        servers.sort(key=lambda s: -s.requests)
        self.assertEqual([s.requests for s in servers], [1, 0])
        return *servers, agent

    def server(self, agent):
        return json.loads(agent.get('/v1/status')[1])['servers'][0]


class Failover(Case):
    def test_an_address_that_fails_rests_and_the_same_run_goes_on_at_the_next(self):
        first, second, agent = self.two()
        second.behave = good(b'a: 2\n', 'ETag: "2"\r\n')
        for behave in (busy(), good(b'', status='500 Internal Server Error'), harness.reset, raw(b'SSH-2.0\r\n')):
            asked = first.requests
            first.behave = behave
            outcome = agent.refresh()
            self.assertIn(outcome['outcome'], ('published', 'unchanged'), outcome)
            self.assertGreater(first.requests, asked)
            resting = self.server(agent)['addresses'][0]
            self.assertGreater(resting['backoff_ms'] + 1, 0)
            self.assertIsNotNone(resting['error'])
        self.assertEqual(self.read('out/web.yaml'), b'a: 2\n')
        status = agent.status()
        self.assertEqual((status['runs']['failed'], status['runs']['timeouts']), (0, 0))
        self.assertEqual(self.server(agent)['retried'], 4)
        agent.log.wait('address in backoff')
        agent.stop()

    def test_a_closed_port_and_back(self):
        first, second, agent = self.two()
        second.behave = good(b'a: 2\n', 'ETag: "2"\r\n')
        port = first.port
        first.close()
        self.assertEqual(agent.refresh()['outcome'], 'published')
        self.assertEqual(agent.status()['url'], second.url + '/web.yaml')
        back = socket.create_server(('127.0.0.1', port))
        self.addCleanup(back.close)

        def answer():
            connection, _ = back.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\na: 3\n')
        threading.Thread(target=answer, daemon=True).start()
        self.assertEqual(agent.refresh()['outcome'], 'published')  # a refresh ends the rest
        self.assertEqual(self.read('out/web.yaml'), b'a: 3\n')
        agent.stop()

    def test_an_address_that_hangs_costs_one_time_limit_and_the_next_run_comes_soon(self):
        first, second, agent = self.two()
        first.behave = drip(b'')
        second.behave = good(b'a: 2\n', 'ETag: "2"\r\n')
        self.assertEqual(agent.refresh()['outcome'], 'failed')
        agent.log.wait('published.*generation=2')  # although the interval is an hour
        # the hanging one is asked once; what a busy machine makes of the other is not told apart from that by `timeouts`
        self.assertEqual(first.requests, 2)
        agent.stop()

    def test_all_addresses_down_is_a_failed_run_and_a_hold(self):
        first, second, agent = self.two()
        first.close()
        second.close()
        outcome = agent.refresh()
        self.assertEqual(outcome['outcome'], 'failed')
        self.assertRegex(outcome['error'], 'refused')
        self.assertEqual(agent.status()['runs']['failed'], 1)
        agent.log.wait('server in backoff')
        self.assertEqual(self.read('out/web.yaml'), b'a: 1\n')
        agent.stop()

    def test_the_order_differs_by_address_and_not_by_their_order_in_the_file(self):
        servers = [FaultServer(self), FaultServer(self), FaultServer(self)]
        asked = []
        for urls in ([s.url for s in servers], [s.url for s in reversed(servers)]):
            agent = Agent(self, self.settings(urls), args=['--once'])
            self.assertEqual(agent.wait(), 0)
            asked.append([s.requests for s in servers])
        self.assertEqual([n * 2 for n in asked[0]], asked[1])


class Holds(Case):
    def start(self, behave, config='    interval: 1h\n', **kw):
        shutil.rmtree(self.path('state'), ignore_errors=True)
        server = FaultServer(self)
        server.behave = good(b'a: 1\n', 'ETag: "1"\r\n')
        agent = Agent(self, self.settings([server.url], config=config, **kw))
        agent.log.wait('published.*generation=1')
        server.behave = behave
        return server, agent

    def test_retry_after_is_kept_within_its_bounds_and_a_refresh_does_not_undo_it(self):
        hour = time.strftime('%a, %d %b %Y %H:%M:%S GMT', time.gmtime(time.time() + 3600))
        table = [('0', 1000), ('1', 1000), ('3', 3000), ('3600', 60000), (hour, 60000), ('soon', 1000), ('-5', 1000), (str(2 ** 63), 60000),
                 ('Thu, 01 Jan 1970 00:00:00 GMT', 1000)]
        for status in ('503 Service Unavailable', '429 Too Many Requests'):
            for text, least in table:
                with self.subTest(status=status, text=text):
                    server, agent = self.start(busy(text, status))
                    self.assertEqual(agent.refresh()['outcome'], 'failed')
                    held = self.server(agent)['backoff_ms']
                    self.assertLessEqual(held, least * 3 // 2)
                    self.assertGreater(held, least - 900, 'the rest of the advice, a moment later')
                    asked = server.requests
                    self.assertEqual(agent.post('/v1/configs/web/refresh')[0], 202)
                    self.assertTrue(agent.status()['deferred'])
                    self.assertGreater(agent.status()['backoff_ms'], 0)
                    self.assertEqual(server.requests, asked)
                    agent.stop()
                    server.close()

    def test_the_next_request_does_not_come_before_retry_after(self):
        server, agent = self.start(busy('1'))
        times, later = [], threading.Event()

        def behave(connection, head, stopping):
            times.append(time.monotonic())
            if len(times) == 2:
                later.set()
            return busy('1')(connection, head, stopping)
        server.behave = behave
        agent.refresh()
        self.assertEqual(agent.post('/v1/configs/web/refresh')[0], 202)
        self.assertTrue(later.wait(harness.DEADLINE))
        self.assertGreaterEqual(times[1] - times[0], 1.0)
        agent.stop()

    def test_requests_to_a_failing_server_become_rare(self):
        server, agent = self.start(harness.reset, config='    interval: 100ms\n')
        times, enough = [], threading.Event()

        def behave(connection, head, stopping):
            times.append(time.monotonic())
            if len(times) == 12:
                enough.set()
            return harness.reset(connection, head, stopping)
        server.behave = behave
        self.assertTrue(enough.wait(harness.DEADLINE * 3))
        server.behave = good(b'a: 2\n')
        self.assertGreater(times[11] - times[0], 2.0, 'ten a second without the hold')
        outcome = agent.refresh()
        self.assertEqual(outcome['outcome'], 'published', f'a refresh tries at once: {outcome}')
        self.assertEqual(self.server(agent)['addresses'][0]['failures_in_a_row'], 0)
        agent.stop()

    def test_a_hold_is_for_all_configs_of_the_server(self):
        names = [f'c{i}' for i in range(20)]
        server = FaultServer(self)
        server.behave = busy('60')
        agent = Agent(self, self.settings([server.url], names=names, server='    max_in_flight: 4\n'))
        agent.log.wait('server in backoff')
        status = json.loads(agent.get('/v1/status')[1])
        self.assertLessEqual(server.requests, 4)
        waiting = sum(c['deferred'] for c in status['configs'])
        self.assertGreaterEqual(waiting, 16)
        self.assertEqual(status['servers'][0]['pending'], waiting)
        self.assertEqual(agent.get('/readyz')[0], 503)
        agent.stop()

    def test_a_push_during_a_hold_waits_with_the_others(self):
        server, agent = self.start(busy('60'))
        agent.refresh()
        asked = server.requests
        for _ in range(10):
            agent.signal(signal.SIGUSR1)
            agent.status()
        self.assertEqual(server.requests, asked)
        self.assertGreaterEqual(self.server(agent)['accepted'], 2)
        self.assertEqual(self.server(agent)['pending'], 1)
        agent.stop()


class Line(Case):
    def test_at_most_max_in_flight_at_a_time_and_all_get_their_turn(self):
        names = [f'c{i}' for i in range(30)]
        server = FaultServer(self)
        gate = server.behave = Gate(self, good(b'a: 1\n', 'ETag: "1"\r\n'))
        agent = Agent(self, self.settings([server.url], names=names, server='    max_in_flight: 3\n'))
        gate.wait(3)
        status = self.server(agent)
        self.assertEqual((status['in_flight'], status['pending']), (3, 27))
        gate.open()
        for name in names:
            agent.log.wait(f'published.*config={name} ')
        self.assertEqual(gate.most, 3)
        status = self.server(agent)
        self.assertEqual((status['dispatched'], status['in_flight'], status['pending']), (30, 0, 0))
        self.assertEqual(sum(status['dispatch_latency_ms']), 30)
        agent.stop()

    def test_many_configs_of_one_url_origin_have_few_connections_at_a_time(self):
        """HTTP/1.1: each connection carries one document, so there are many, one after the other."""
        server = FaultServer(self)
        server.behave = good(b'a: 1\n', 'ETag: "1"\r\n')
        text = self.config(server.url + '/c0.yaml', '    interval: 1h\n', name='c0')
        for i in range(1, 200):
            text += f'  c{i}:\n    url: {server.url}/c{i}.yaml\n    file: {self.path(f"out/c{i}.yaml")}\n    interval: 1h\n'
        open_at_once = []
        accept = server._serve
        server._serve = lambda c: (open_at_once.append(len(server.open)), accept(c))
        agent = Agent(self, text)
        for i in range(200):
            agent.log.wait(f'published.*config=c{i} ')
        # in flight, idle, and closed without the server having noticed yet
        self.assertLessEqual(max(open_at_once), 8 + 8 + 8)
        self.assertLessEqual(len(open_at_once), 200)
        self.assertEqual(len(json.loads(agent.get('/v1/status')[1])['servers']), 1)
        agent.stop()

    def test_a_document_over_max_size_is_refused(self):
        server = FaultServer(self)
        server.behave = good(b'a: ' + b'x' * 2000 + b'\n')
        agent = Agent(self, self.settings([server.url], server='    max_size: 1KiB\n'))
        agent.log.wait('larger than the limit of 1024 bytes')
        agent.stop()


class Secrets(Case):
    def heads(self, server_keys):
        server, heads = FaultServer(self), []

        def behave(connection, head, stopping):
            heads.append(head)
            return good(b'a: 1\n')(connection, head, stopping)
        server.behave = behave
        return Agent(self, self.settings([server.url], server=server_keys)), heads

    def test_a_token_is_read_anew_for_each_pull(self):
        self.write('token', 'first-token\n')
        agent, heads = self.heads(f'    auth: {{bearer_file: {self.path("token")}}}\n')
        agent.log.wait('published')
        self.write('token', 'second-token')
        agent.refresh()
        self.assertIn('Authorization: Bearer first-token\r\n', heads[0] + '\r\n')
        self.assertIn('Authorization: Bearer second-token\r\n', heads[1] + '\r\n')
        for bad, why in (('', 'is empty'), ('a\r\nX-Evil: 1', 'control character'), ('x' * 9000, 'larger than 8 KiB')):
            self.write('token', bad)
            outcome = agent.refresh()
            self.assertEqual(outcome['outcome'], 'failed')
            self.assertRegex(outcome['error'], re.escape(self.path('token')) + '.*' + why)
        os.unlink(self.path('token'))
        self.assertRegex(agent.refresh()['error'], 'No such file')
        self.assertEqual(len(heads), 2)
        self.assertEqual(agent.status()['runs']['not_started'], 4)
        agent.stop()
        self.assertNotIn('token-', '\n'.join(agent.log.seen).replace(self.path('token'), ''))

    def test_basic_and_headers(self):
        self.write('password', 'pass:word ä\n')
        self.write('key', 'the key')
        agent, heads = self.heads(f'    auth:\n      basic: {{user: me, password_file: {self.path("password")}}}\n'
                                  f'      headers: {{X-Zone: eu 1, X-Key: {{file: {self.path("key")}}}}}\n')
        agent.log.wait('published')
        wanted = base64.b64encode('me:pass:word ä'.encode()).decode()
        for line in (f'Authorization: Basic {wanted}', 'X-Zone: eu 1', 'X-Key: the key'):
            self.assertIn(line + '\r\n', heads[0] + '\r\n')
        agent.stop()


class Tls(Case):
    """An authority of its own, nginx behind it."""

    def openssl(self, *args):
        done = subprocess.run(['openssl', *args], capture_output=True, text=True, cwd=self.dir, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def setUp(self):
        super().setUp()
        self.write('ca.cnf', f'''
            [ca]
            default_ca = this
            [this]
            database = {self.path("index.txt")}
            serial = {self.path("serial")}
            new_certs_dir = {self.dir}
            default_md = sha256
            default_days = 2
            default_crl_days = 2
            policy = any
            copy_extensions = copy
            [any]
            commonName = supplied
        ''')
        self.write('index.txt', '')
        self.write('serial', '01\n')
        self.openssl('req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2', '-keyout', 'ca.key',
                     '-out', 'ca.pem', '-subj', '/CN=test authority')
        for name in ('server', 'client'):
            self.openssl('req', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', f'{name}.key', '-out', f'{name}.csr',
                         '-subj', f'/CN={name}', '-addext', 'subjectAltName=IP:127.0.0.1')
            self.openssl('ca', '-config', 'ca.cnf', '-cert', 'ca.pem', '-keyfile', 'ca.key', '-in', f'{name}.csr', '-out', f'{name}.pem',
                         '-batch', '-notext')
        self.revoke()
        self.write('www/web.yaml', 'a: 1\n')

    def revoke(self, *names):
        for name in names:
            self.openssl('ca', '-config', 'ca.cnf', '-cert', 'ca.pem', '-keyfile', 'ca.key', '-revoke', f'{name}.pem')
        self.openssl('ca', '-config', 'ca.cnf', '-cert', 'ca.pem', '-keyfile', 'ca.key', '-gencrl', '-out', 'crl.pem')

    def start(self, tls, http='', server=''):
        nginx = Nginx(self, http=http, server=server, ssl=(self.path('server.pem'), self.path('server.key')))
        keys = ', '.join(f'{k}: {v if k == "min_version" else self.path(v)}' for k, v in tls.items())
        return nginx, Agent(self, self.settings([nginx.url], server=f'    tls: {{{keys}}}\n'))

    def test_own_authority_and_client_certificate(self):
        nginx, agent = self.start({'ca': 'ca.pem', 'cert': 'client.pem', 'key': 'client.key', 'min_version': '1.3'},
                                  http='ssl_protocols TLSv1.2 TLSv1.3;', server=f'ssl_client_certificate {self.path("ca.pem")}; ssl_verify_client on;')
        agent.log.wait('published')
        agent.stop()
        nginx.close()

    def test_without_the_client_certificate_it_is_refused(self):
        nginx, agent = self.start({'ca': 'ca.pem'}, server=f'ssl_client_certificate {self.path("ca.pem")}; ssl_verify_client on;')
        agent.log.wait('answered 400')
        agent.stop()
        nginx.close()

    def test_a_revoked_certificate_is_refused(self):
        nginx, agent = self.start({'ca': 'ca.pem', 'crl': 'crl.pem'})
        agent.log.wait('published.*generation=1')
        agent.stop()
        nginx.close()
        self.revoke('server')
        self.write('www/web.yaml', 'a: 2\n')
        nginx, agent = self.start({'ca': 'ca.pem', 'crl': 'crl.pem'})
        outcome = agent.refresh()
        self.assertRegex(outcome['error'], 'revoked')
        self.assertEqual(self.read('out/web.yaml'), b'a: 1\n')
        agent.stop()
        nginx.close()

    def test_a_server_below_min_version_is_refused(self):
        nginx, agent = self.start({'ca': 'ca.pem', 'min_version': '1.3'}, http='ssl_protocols TLSv1.2;')
        agent.log.wait('pull failed.*(version|protocol|handshake)')
        agent.stop()
        nginx.close()


class Sleep(Case):
    def test_after_a_long_sleep_each_config_pulls_once(self):
        server = FaultServer(self)
        server.behave = good(b'a: 1\n', 'ETag: "1"\r\n')
        names = [f'c{i}' for i in range(5)]
        agent = Agent(self, self.settings([server.url], names=names, config='    interval: 2s\n    jitter: 0%\n'))
        for name in names:
            agent.log.wait(f'published.*config={name} ')
        agent.signal(signal.SIGSTOP)
        before = server.requests
        time.sleep(9)  # the length of the sleep is what is tested
        self.assertEqual(server.requests, before)
        agent.signal(signal.SIGCONT)
        agent.log.wait('did not run for a while')
        statuses = [agent.status(name) for name in names]
        # one pull each is due within one interval, and no more than one of each has been
        self.assertTrue(all(s['running'] or 0 <= s['next_pull_in_ms'] <= 2000 for s in statuses), statuses)
        self.assertLessEqual(server.requests, before + 5)
        for name in names:
            self.assertIn(agent.refresh(name)['outcome'], ('unchanged', 'published'))
            self.assertEqual(agent.status(name)['runs']['timeouts'], 0)
        agent.stop()

    if not harness.SANITIZED:  # a sanitizer must be loaded before anything else
        def test_steps_of_the_wall_clock_move_no_pull(self):
            library = self.path('hang.so')
            subprocess.run(['cc', '-shared', '-fPIC', '-O2', '-D_GNU_SOURCE', '-o', library, os.path.join(os.path.dirname(__file__), 'hang.c')],
                           check=True)
            server, times, changed = FaultServer(self), [], threading.Condition()

            def behave(connection, head, stopping):
                with changed:
                    times.append(time.monotonic())
                    changed.notify_all()
                return good(b'a: 1\n', 'ETag: "1"\r\n')(connection, head, stopping)
            server.behave = behave
            self.write('clock', '0')
            agent = Agent(self, self.settings([server.url], config='    interval: 300ms\n    jitter: 0%\n'),
                          env={'LD_PRELOAD': library, 'WALL_OFFSET_FILE': self.path('clock')})
            agent.log.wait('published')
            seen = set()
            for days in (1, -1, 3650, -3650, 0):
                self.write('clock', str(days * 86400))
                with changed:
                    want = len(times) + 3
                    self.assertTrue(changed.wait_for(lambda want=want: len(times) >= want, harness.DEADLINE))
                status = agent.status()
                self.assertLess(status['age_ms'], 10000)
                seen.add(status['confirmed_ms'] // (365 * 86400 * 1000))
            self.assertGreaterEqual(len(seen), 3, 'the clock was stepped indeed')
            gaps = [b - a for a, b in zip(times, times[1:])]
            self.assertGreater(min(gaps), 0.2, gaps)
            self.assertLess(sorted(gaps)[len(gaps) // 2], 0.6, gaps)
            agent.stop()

    def test_the_first_pull_after_a_restart_is_splayed_and_not_without_a_published_version(self):
        server = FaultServer(self)
        server.behave = good(b'a: 1\n', 'ETag: "1"\r\n')
        names = [f'c{i}' for i in range(40)]
        agent = Agent(self, self.settings([server.url], names=names))
        for name in names:
            agent.log.wait(f'published.*config={name} ')
        agent.stop()
        _, _, endpoint = self.serve()
        agent = Agent(self, self.settings([server.url], names=names, push=f'push: [{{endpoint: {endpoint}}}]\n'))
        agent.ready()
        agent.log.wait('push channel connected')  # which does not fire those that will pull anyway
        waits = [c['next_pull_in_ms'] for c in json.loads(agent.get('/v1/status')[1])['configs']]
        self.assertTrue(all(w is None or w <= 30000 for w in waits), waits)
        late = [w for w in waits if w and w > 1000]
        self.assertGreater(len(late), 20, 'of 40, even between 0 and 30 s')
        agent.stop()


if __name__ == '__main__':
    harness.main()
