"""GET /metrics of the real agent: the format, that each counter moves when its event happens, that the status has no number without a metric."""
import base64
import contextlib
import functools
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time

import dashboard
import harness
from etcd import Etcd
from exposition import Exposition
from harness import ROOT, UnixConnection, good, reset
from test_change import Case, Hook
from test_push import Publisher

with open(os.path.join(ROOT, 'agent/control/metrics_table.c'), encoding='utf-8') as source:
    TABLE = {m[1]: (m[2], ''.join(re.findall(r'"([^"]*)"', m[3])), m[4])
             for m in re.finditer(r'\{"(\w+)", (GAUGE|COUNTER|HISTOGRAM|METRIC_INFO), \w+,((?:\s*"[^"]*")+),([^{}]*)\}', source.read())}

# labels that no event in this test leads to, and who holds them
ELSEWHERE = {
    ('pullet_control_busy_total', None, None),  # by other users: tests/attack/test_control_socket.py
    ('pullet_control_denied_total', None, None),  # by other users: tests/attack/test_rights.py
    ('pullet_server_pulls_lost_total', 'cause', 'expired'),  # after five minutes at least: tests/unit/pull/test_upstream.c
}

# where the numbers of GET /v1/status are: path, metric, and what one is of the other. None: it has none, because ...
SECONDS = 0.001
STATUS = {
    'pid': None,  # ... it is no quantity
    'started_ms': ('process_start_time_seconds', SECONDS),
    'uptime_ms': None,  # ... it is now less process_start_time_seconds
    'configuration.loaded_ms': ('pullet_configuration_loaded_timestamp_seconds', SECONDS),
    'configuration.reloads': ('pullet_configuration_reloads_total', 1),
    'configuration.rejections': ('pullet_configuration_rejections_total', 1),
    'configuration.errors': ('pullet_configuration_errors', 1),
    'configs.generation': ('pullet_config_generation', 1),
    'configs.published_ms': None,  # ... changes(pullet_config_generation) is its history
    'configs.confirmed_ms': ('pullet_config_confirmed_timestamp_seconds', SECONDS),
    'configs.age_ms': None,  # ... it is now less pullet_config_confirmed_timestamp_seconds
    'configs.backoff_ms': None,  # ... it is the server's pullet_server_backoff_seconds
    'configs.interval_ms': None,  # ... it is configured
    'configs.delay_ms': None,  # ... pullet_config_stale is what follows from it
    'configs.next_pull_in_ms': None,  # ... at the next scrape it is another
    'configs.last_error_ms': None,  # ... pullet_config_run_failures_total has its history
    'configs.failing_since_ms': None,  # ... an alert has its own memory: for:
    # in the metrics these are counted of all configs together: pullet_runs_total and so on; of one there are pullet_config_runs_total and
    # pullet_config_run_failures_total
    **{f'configs.runs.{outcome}': None for outcome in ('success', 'timeouts', 'not_started', 'failed')},
    'configs.rejections': None,
    **{f'configs.rejections_by.{check}': None for check in ('syntax', 'digest', 'signature', 'guard', 'schema', 'format', 'size', 'check')},
    'configs.restored': ('pullet_config_restored_total', 1),
    'configs.pushes': None,
    'configs.watch.documents': None,  # ... it is configured
    'configs.watch.changes': None,
    'configs.expires_ms': ('pullet_config_signature_end_timestamp_seconds', SECONDS),
    'configs.pin.until_ms': None,  # ... whoever acts on it asks for the status
    'configs.suspension.until_ms': None,
    'configs.overrides.until_ms': None,
    'configs.reload.pending': None,  # ... pullet_config_generation is not the notified one
    'configs.reload.notified': ('pullet_config_reload_notified_generation', 1),
    'configs.reload.next_ms': None,
    'configs.reload.runs': None,
    'configs.reload.failed': None,
    'configs.reload.failed_in_a_row': ('pullet_config_reload_failures_in_a_row', 1),
    'configs.probe.generation': None,  # ... it is pullet_config_generation
    'configs.probe.failed': None,
    'servers.backoff_ms': ('pullet_server_backoff_seconds', SECONDS),
    'servers.in_flight': ('pullet_server_in_flight', 1),
    'servers.pending': ('pullet_server_pending', 1),
    'servers.accepted': ('pullet_server_pulls_accepted_total', 1),
    'servers.overridden': ('pullet_server_pulls_lost_total', 1, {'cause': 'overridden'}),
    'servers.expired': ('pullet_server_pulls_lost_total', 1, {'cause': 'expired'}),
    'servers.withdrawn': ('pullet_server_pulls_lost_total', 1, {'cause': 'withdrawn'}),
    'servers.retried': ('pullet_server_pulls_retried_total', 1),
    'servers.dispatched': ('pullet_server_pulls_dispatched_total', 1),
    'servers.batches': ('pullet_server_batch_pulls_count', 1),
    'servers.batch_size': ('pullet_server_batch_pulls_count', 'sum'),
    'servers.dispatch_latency_ms': ('pullet_server_dispatch_delay_seconds_count', 'sum'),
    'servers.addresses.backoff_ms': ('pullet_address_backoff_seconds', SECONDS),
    'servers.addresses.failures_in_a_row': ('pullet_address_failures_in_a_row', 1),
    'servers.addresses.congestion': ('pullet_address_failures_total', 1, {'cause': 'congestion'}),
    'servers.addresses.network': ('pullet_address_failures_total', 1, {'cause': 'network'}),
    'servers.addresses.retry_after': ('pullet_address_retry_after_total', 1),
    'push.messages': ('pullet_push_messages_total', 1),
    'push.heartbeats': ('pullet_push_heartbeats_total', 1),
    'push.bad': ('pullet_push_bad_messages_total', 1),
    'push.gaps': ('pullet_push_gaps_total', 1),
    'push.epochs': ('pullet_push_epochs_total', 1),
    'push.connects': ('pullet_push_connects_total', 1),
    'push.rebuilds': ('pullet_push_rebuilds_total', 1),
    'push.handshake_failures': ('pullet_push_handshake_failures_total', 1),
    'push.cuts': ('pullet_push_cuts_total', 1),
    'push.last_message_ago_ms': ('pullet_push_last_message_age_seconds', SECONDS),
    'report.sent_ms': ('pullet_report_sent_timestamp_seconds', SECONDS),
    'report.sent': ('pullet_report_sent_total', 1),
    'report.failed': ('pullet_report_failures_total', 1),
    'report.leases': ('pullet_report_leases_total', 1),
}


# states of a config, which are numbers: 0 is the first
FAILURES = [None, 'other', 'not found', 'empty', 'forbidden', 'unreachable', 'timeout', 'overloaded', 'older', 'bad answer', 'this host']
REJECTIONS = [None, 'rejected', 'rolled back', 'held']
WATCHES = ['off', 'connecting', 'watching', 'failing']
PROBES = ['none', 'waiting', 'running', 'passed', 'failed']
NAMES = {'failure': FAILURES, 'rejection': REJECTIONS, 'watch_state': WATCHES, 'probe_state': PROBES}


def state_of(metrics, what, config):
    """The name of a config's failure, rejection or state."""
    return NAMES[what][int(metrics[f'pullet_config_{what}', {'config': config}])]


def numbers(value, path='', labels=None):
    """All numbers of the status: (path without indexes, labels of the object, number). Of a list of numbers their sum."""
    labels = labels or {}
    if isinstance(value, dict):
        if path.endswith('configs'):
            labels = {'config': value['name']}
        elif path == 'servers':
            labels = {'server': value['name'] or value['addresses'][0]['url']}
        elif path == 'servers.addresses':
            labels = {**labels, 'address': value['url']}
        elif path == 'push':
            labels = {'endpoint': value['endpoint']}
        for key, member in value.items():
            if key != 'labels':
                yield from numbers(member, f'{path}.{key}'.lstrip('.'), labels)
    elif isinstance(value, list):
        if value and all(isinstance(n, int) for n in value):
            yield path, labels, sum(value)
        else:
            for member in value:
                yield from numbers(member, path, labels)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield path, labels, value


def fetch(agent, accept=None):
    """(status, content type, text)"""
    agent.ready()
    connection = UnixConnection(agent.socket)
    try:
        connection.request('GET', '/metrics', headers={'Accept': accept} if accept else {})
        response = connection.getresponse()
        return response.status, response.getheader('Content-Type'), response.read().decode()
    finally:
        connection.close()


class Metrics(Case):
    def setUp(self):
        super().setUp()
        self.moved, self.last = set(), {}

    def scrape(self):
        """Reads, and holds what must hold between any two."""
        status, kind, text = fetch(self.agent)
        self.assertEqual((status, kind), (200, 'text/plain; version=0.0.4; charset=utf-8'), text)
        now = Exposition(text)
        counters = now.counters()
        for key, before in self.last.items():
            self.assertGreaterEqual(counters.get(key, -1), before, f'{key} went back, or away')
        self.last = counters
        return now

    def wait(self, good_one, what=''):
        deadline, pace = time.monotonic() + harness.DEADLINE, threading.Event()
        while not good_one(now := self.scrape()):
            self.assertLess(time.monotonic(), deadline, what)
            pace.wait(0.02)
        return now

    @contextlib.contextmanager
    def moves(self, name, by=1, least=False, **labels):
        """What happens within moves this counter, by so much (`least`: or by more)."""
        key = name, labels
        before = self.scrape().get(key) or 0
        yield
        now = self.wait(lambda m: (m.get(key) or 0) - before >= by, f'{key} does not move')
        if not least:
            self.assertEqual(now[key] - before, by, key)
        self.moved.add((name, *next(((k, v) for k, v in labels.items() if k in ('outcome', 'check', 'cause')), (None, None))))

    def refuse(self, check, document, name='web', path='/web.yaml', headers=''):
        self.origin.put(path, document, headers)
        with self.moves('pullet_rejections_total', check=check), self.moves('pullet_config_run_failures_total', config=name):
            self.assertEqual(self.agent.refresh(name)['outcome'], 'failed')
        now = self.scrape()
        self.assertEqual(state_of(now, 'rejection', name), 'rejected')
        self.assertEqual((now['pullet_config_ready', {'config': name}], now['pullet_config_stale', {'config': name}]), (1, 0))
        self.assertEqual(state_of(now, 'failure', name), 'other')

    def begin(self, agent=None, every=False, **more):
        """An agent that does all it can; `every`: and a config of it, too."""
        self.etcd = Etcd(self)
        self.publisher, self.plain = Publisher(self), Publisher(self)
        self.hook, self.check = Hook(self, 'hook'), Hook(self, 'check', 'grep -q refuse "$2" && exit 1; exit 0')
        self.probe = Hook(self, 'probe', f'! grep -q bad {self.path("out/web.yaml")}')
        self.write('schema.json', json.dumps({'properties': {'n': {'type': ['integer', 'string']}}}))
        self.write('local/l.yaml', 'n: 1\n')
        subprocess.run(['minisign', '-G', '-W', '-p', self.path('k.pub'), '-s', self.path('k.key')], check=True, stdout=subprocess.DEVNULL)
        self.sign(b's: 1\n')
        self.origin.put('/flat.yaml', b'n: 1\n')
        self.origin.put('/drift.yaml', b'n: 1\n')
        hook = {'run': [self.hook.path], 'debounce': '0s'}
        configs = {
            'web': self.config(schema=self.path('schema.json'), check=[self.check.path, '--', '{path}'], guard={'require': ['n']}, reload=hook,
                               probe={'run': [self.probe.path], 'for': '200ms', 'every': '100ms', 'failures': 1}, timeout='500ms'),
            'flat': {**self.config('/flat.yaml', format='env'), 'file': self.path('out/flat')},
            'signed': {**self.config('/s.yaml', verify={'public_key': self.read('k.pub').decode().split('\n')[1]}), 'file': self.path('out/s')},
            'drift': {**self.config('/drift.yaml', drift='report'), 'file': self.path('out/drift')},
            'local': {**self.config(), 'from': [{'server': 'local', 'path': '/l.yaml'}], 'file': self.path('out/local')},
            'pair': {**self.config(), 'from': [{'server': 'pair', 'path': '/web.yaml'}], 'file': self.path('out/pair')},
            'url': {'url': self.origin.url + '/web.yaml', 'file': self.path('out/url'), 'interval': '1h'},
            'both': {**self.config(timeout='500ms'), 'from': [{'server': 'local', 'path': '/l.yaml'}, {'server': 'secret', 'path': '/web.yaml'}],
                     'file': self.path('out/both')},
            'secret': {**self.config(), 'from': [{'server': 'secret', 'path': '/web.yaml'}], 'file': self.path('out/secret')},
        }
        if every:
            self.sign(b's: 1\n', f'path=/s.yaml rev=1 expires={int(time.time()) + 3600}')
            for name in ('s.yaml', 's.yaml.minisig'):
                shutil.copy(self.path('doc' + name.removeprefix('s.yaml')), self.path('local/' + name))
            configs['all'] = {**configs['web'], **configs['signed'], 'from': [{'server': 'local', 'path': '/s.yaml'}], 'file': self.path('out/all')}
            for key in ('schema', 'check', 'guard'):
                del configs['all'][key]
        self.configs = configs
        self.write('token', 'token\n')
        os.chmod(self.path('token'), 0o600)
        self.pair = [f'http://127.0.0.1:{harness.socket.create_server(("127.0.0.1", 0)).getsockname()[1]}', self.origin.url]
        self.apart = self.origin.url.replace('127.0.0.1', 'localhost')  # what backs off there does not here
        servers = {'main': {'urls': [self.origin.url]}, 'pair': {'urls': self.pair},
                   'local': {'kind': 'file', 'urls': ['file://' + self.path('local')], 'watch': True},
                   'store': {'kind': 'etcd', 'urls': self.etcd.urls},
                   'secret': {'urls': [self.apart], 'auth': {'bearer_file': self.path('token')}}}
        push = [{'endpoint': self.publisher.endpoint, 'heartbeat': '1h'},
                {'endpoint': self.plain.endpoint, 'curve': {'server_key': 'rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7'}}]
        settings = json.loads(self.settings(configs, servers))
        settings |= {'push': push, 'report': {'server': 'store', 'host': 'here'}}
        settings['agent'] |= agent or {}
        self.agent = harness.Agent(self, json.dumps(settings), **more)
        for name in configs:
            self.agent.log.wait(f'published config={name} generation=1')
        self.publisher.wait_subscribed()
        self.agent.log.wait(f'push channel connected.*{self.publisher.endpoint}')
        for name in configs:
            self.agent.refresh(name)
        self.wait(lambda m: state_of(m, 'probe_state', 'web') == 'passed')
        self.wait(lambda m: m.one('pullet_report_state') == 'ok')

    def sign(self, document, expires=''):
        self.write('doc', document)
        subprocess.run(['minisign', '-S', '-s', self.path('k.key'), '-m', self.path('doc'), *(['-t', expires] if expires else [])], check=True,
                       stdout=subprocess.DEVNULL)
        self.origin.put('/s.yaml', document)
        self.origin.put('/s.yaml.minisig', self.read('doc.minisig'))

    def test_each_panel_of_the_dashboard_is_about_series_that_there_are(self):
        self.begin()
        dashboard.check(self, fetch(self.agent)[2], relay=False)

    # ---- each counter

    def run_outcomes(self):
        runs, of_web = functools.partial(self.moves, 'pullet_runs_total'), functools.partial(self.moves, config='web')
        failures = self.scrape()['pullet_config_run_failures_total', {'config': 'web'}]
        with runs(outcome='success'), of_web('pullet_config_runs_total'):
            self.agent.refresh()
        now = self.scrape()
        self.assertIsNone(state_of(now, 'failure', 'web'))
        self.assertEqual(now['pullet_config_run_failures_total', {'config': 'web'}], failures)
        self.origin.put('/web.yaml', None)
        with runs(outcome='failed'), of_web('pullet_config_runs_total'), of_web('pullet_config_run_failures_total'):
            self.agent.refresh()
        self.assertEqual(state_of(self.scrape(), 'failure', 'web'), 'not found')
        self.origin.put('/web.yaml', lambda _c, _h, stopping: stopping.wait(harness.DEADLINE) and 'close')
        with runs(outcome='timeout'), of_web('pullet_config_run_failures_total'):
            self.agent.refresh()
        self.assertEqual(state_of(self.scrape(), 'failure', 'web'), 'timeout')
        self.origin.put('/web.yaml', b'n: 1\n')
        with runs(outcome='success'):
            self.agent.refresh()
        now = self.scrape()
        self.assertEqual((state_of(now, 'failure', 'web'), now['pullet_config_stale', {'config': 'web'}]), (None, 0))
        self.assertLess(abs(time.time() - now['pullet_config_confirmed_timestamp_seconds', {'config': 'web'}]), harness.DEADLINE)

    def checks(self):
        self.refuse('syntax', b'n: [\n')
        self.refuse('guard', b'm: 1\n')
        self.refuse('schema', b'n: [1]\n')
        self.refuse('check', b'n: refuse\n')
        self.refuse('size', json.dumps({'n': 1, 'deep': functools.reduce(lambda inner, _: {'k' * 20000: inner}, range(40), [0] * 100)}).encode())
        digest = base64.b64encode(hashlib.sha256(b'other').digest()).decode()
        self.refuse('digest', b'n: 2\n', headers=f'Repr-Digest: sha-256=:{digest}:\r\n')
        self.refuse('format', b'a: {b: 1}\na_b: 2\n', 'flat', '/flat.yaml')
        self.origin.put('/s.yaml.minisig', self.read('doc.minisig').replace(b'trusted comment: ', b'trusted comment: x'))
        self.refuse('signature', b's: 2\n', 'signed', '/s.yaml')
        self.origin.put('/web.yaml', b'n: 1\n')
        self.agent.refresh()
        self.assertIsNone(state_of(self.scrape(), 'rejection', 'web'))

    def aftermath(self):
        def is_notified(m):
            return m['pullet_config_reload_notified_generation', {'config': 'web'}] == m['pullet_config_generation', {'config': 'web'}]
        with self.moves('pullet_reload_runs_total'):
            generation = self.publish(b'n: 2\n')
        self.wait(lambda m: m['pullet_config_reload_notified_generation', {'config': 'web'}] == generation)
        self.hook.do('exit 3')
        with self.moves('pullet_reload_failures_total', least=True):
            generation = self.publish(b'n: 3\n')
        now = self.scrape()
        self.assertEqual(now['pullet_config_generation', {'config': 'web'}], generation)
        self.assertLess(now['pullet_config_reload_notified_generation', {'config': 'web'}], generation)
        self.assertGreater(now['pullet_config_reload_failures_in_a_row', {'config': 'web'}], 0)
        self.hook.do('exit 0')
        self.wait(is_notified)
        self.wait(lambda m: state_of(m, 'probe_state', 'web') == 'passed')
        with self.moves('pullet_probe_failures_total'):
            self.publish(b'n: bad\n')
        self.wait(is_notified)
        self.agent.refresh()
        self.assertEqual(state_of(self.scrape(), 'rejection', 'web'), 'rolled back')
        self.origin.put('/web.yaml', b'n: 3\n')
        self.agent.refresh()

    def others_write(self):
        with self.moves('pullet_config_restored_total', least=True, config='flat'):
            self.write('out/flat', 'touched\n')
        self.write('out/drift', 'touched\n')
        self.wait(lambda m: m['pullet_config_drifted', {'config': 'drift'}] == 1)

    def operators(self):
        def decisions():
            return self.scrape()['pullet_config_operator_decisions', {'config': 'url'}]
        self.assertEqual(decisions(), 0)
        self.agent.cli('pin', 'url', '--for', '1h', check=0)
        self.assertEqual(decisions(), 1)
        self.origin.put('/web.yaml', b'n: 4\n')
        self.agent.refresh('url')
        self.assertEqual(state_of(self.scrape(), 'rejection', 'url'), 'held')
        self.agent.cli('suspend', 'url', '--for', '1h', check=0)
        self.assertEqual(decisions(), 2)
        self.agent.cli('unpin', 'url', check=0)
        self.agent.cli('resume', 'url', check=0)
        self.assertEqual(decisions(), 0)
        for n, key in enumerate('ab'):
            self.agent.cli('override', 'url', f'{key}=1', '--for', '1h', check=0)
            self.assertEqual(decisions(), n + 1)

    def server(self):
        main = {'server': 'main'}
        for name in ('accepted', 'dispatched'):
            with self.moves(f'pullet_server_pulls_{name}_total', **main):
                self.agent.refresh('drift')
        for name in ('batch_pulls', 'dispatch_delay_seconds'):
            with self.moves(f'pullet_server_{name}_count', **main):
                self.agent.refresh('drift')
            with self.moves(f'pullet_server_{name}_bucket', **main, le='+Inf'):
                self.agent.refresh('drift')
        with self.moves('pullet_server_batch_pulls_sum', **main):
            self.agent.refresh('drift')
        # the dead one of the pair rests when it was asked; a refresh ends that
        dead = {'server': 'pair', 'address': self.pair[0]}
        if self.scrape()['pullet_address_failures_total', {**dead, 'cause': 'network'}] > 0:
            with self.moves('pullet_server_pulls_retried_total', server='pair'), \
                    self.moves('pullet_address_failures_total', cause='network', **dead):
                self.agent.refresh('pair')
        else:  # on this host the good one comes first
            alive = {**dead, 'address': self.pair[1]}
            self.origin.put('/web.yaml', reset)
            with self.moves('pullet_server_pulls_retried_total', server='pair'), \
                    self.moves('pullet_address_failures_total', cause='network', least=True, **alive):
                self.agent.refresh('pair')
            self.origin.put('/web.yaml', b'n: 4\n')

    def line(self):
        """The server asks for a pause: what waits then is overridden, and withdrawn."""
        address = {'server': 'secret', 'address': self.apart}
        self.origin.put('/web.yaml', good(b'busy', 'Retry-After: 1\r\n', '503 Service Unavailable'))
        self.agent.refresh('secret')
        self.origin.put('/web.yaml', b'n: 4\n')
        with self.moves('pullet_server_dispatch_delay_seconds_sum', by=0.5, least=True, server='secret'):
            self.agent.refresh('secret')
        self.origin.put('/web.yaml', good(b'busy', 'Retry-After: 60\r\n', '503 Service Unavailable'))
        with self.moves('pullet_address_failures_total', cause='congestion', **address), self.moves('pullet_address_retry_after_total', **address):
            self.agent.refresh('secret')
        self.origin.put('/web.yaml', b'n: 4\n')
        now = self.scrape()
        self.assertGreater(now['pullet_server_backoff_seconds', {'server': 'secret'}], 50)
        self.assertGreater(now['pullet_address_backoff_seconds', address], 50)
        self.assertEqual(now['pullet_address_failures_in_a_row', address], 1)
        lost = functools.partial(self.moves, 'pullet_server_pulls_lost_total', server='secret')
        with lost(cause='overridden'):
            for _ in range(2):
                self.agent.post('/v1/configs/secret/refresh')
        self.assertEqual(self.scrape()['pullet_server_pending', {'server': 'secret'}], 1)
        with lost(cause='withdrawn'):
            self.agent.refresh('both')  # whose second layer waits until the time limit

    def push(self):
        at = {'endpoint': self.publisher.endpoint}
        self.origin.put('/flat.yaml', b'n: 77\n')
        latency = 'pullet_push_latency_seconds'
        with self.moves(latency + '_count'), self.moves(latency + '_bucket', le='+Inf'), self.moves(latency + '_sum', by=1e-6, least=True):
            self.publisher.send(b'flat', {'v': 1, 'epoch': 'e', 'seq': 0})
        with self.moves('pullet_pushes_total'), self.moves('pullet_push_messages_total', **at):
            self.publisher.send(b'flat', {'v': 1, 'epoch': 'e', 'seq': 1})
        self.assertLess(self.scrape()['pullet_push_last_message_age_seconds', at], harness.DEADLINE)
        with self.moves('pullet_push_gaps_total', **at):
            self.publisher.send(b'flat', {'v': 1, 'epoch': 'e', 'seq': 5})
        with self.moves('pullet_push_epochs_total', **at):
            self.publisher.send(b'flat', {'v': 1, 'epoch': 'f', 'seq': 1})
        with self.moves('pullet_push_bad_messages_total', **at):
            self.publisher.send(b'flat', b'{"v": 1, "seq": "x')
        with self.moves('pullet_push_heartbeats_total', **at):
            self.publisher.send(b'pullet.heartbeat', {'v': 1, 'epoch': 'f'})
        while self.publisher.socket.poll(0):
            self.publisher.socket.recv()
        with self.moves('pullet_push_cuts_total', least=True, **at):
            self.publisher.socket.send_multipart([b'flat'] + [b'x' * 1000] * 1000)  # more than is kept for a publisher
        self.publisher.wait_subscribed(b'flat')
        with self.moves('pullet_push_rebuilds_total', **at), self.moves('pullet_push_connects_total', least=True, **at):
            self.publisher.send(b'flat', b'x' * (1 << 20))  # over the size limit
        with self.moves('pullet_push_handshake_failures_total', least=True, endpoint=self.plain.endpoint):
            pass
        self.assertEqual(self.scrape().one('pullet_push_state', endpoint=self.plain.endpoint), 'refused')

    def watch(self):
        self.wait(lambda m: state_of(m, 'watch_state', 'local') == 'watching')
        with self.moves('pullet_watch_changes_total', least=True):
            self.write('local/l.yaml', 'n: 2\n')

    def secret_gone(self):
        os.rename(self.path('token'), self.path('gone'))
        with self.moves('pullet_runs_total', outcome='not_started'), self.moves('pullet_config_run_failures_total', config='secret'):
            self.agent.refresh('secret')
        os.rename(self.path('gone'), self.path('token'))

    def configuration(self):
        good = self.read('pullet.yaml')
        with self.moves('pullet_configuration_rejections_total'):
            self.write('pullet.yaml', good.replace(b'configs', b'konfigs'))
            self.agent.signal(signal.SIGHUP)
        self.assertGreater(self.scrape()['pullet_configuration_errors'], 0)
        with self.moves('pullet_configuration_reloads_total'):
            self.write('pullet.yaml', good)
            self.agent.signal(signal.SIGHUP)
        self.assertEqual(self.scrape()['pullet_configuration_errors'], 0)

    def report(self):
        with self.moves('pullet_report_sent_total', least=True):
            self.publish(b'n: 5\n')
        before = self.scrape()['pullet_report_leases_total']
        self.assertGreater(before, 0)
        self.moved.add(('pullet_report_leases_total', None, None))
        self.etcd.members[0].end()
        with self.moves('pullet_report_failures_total', least=True):
            self.publish(b'n: 6\n')
        self.assertEqual(self.scrape().one('pullet_report_state'), 'failing')

    def expected(self):
        """All counters, by the values of what label they have beside their object's."""
        now, found = self.scrape(), set()
        for name, (kind, _, _) in TABLE.items():
            if kind == 'HISTOGRAM':
                found |= {(name + part, None, None) for part in ('_count', '_sum', '_bucket')}
            elif kind == 'COUNTER':
                labels = {pair for n, pairs in now.series if n == name for pair in pairs if pair[0] in ('outcome', 'check', 'cause')}
                found |= {(name, *pair) for pair in labels} or {(name, None, None)}
        return found

    def test_every_counter_moves_when_its_event_happens(self):
        self.begin()
        for step in (self.run_outcomes, self.checks, self.aftermath, self.others_write, self.operators, self.server, self.secret_gone, self.line, self.push, self.watch,
                     self.configuration, self.report):
            with self.subTest(step.__name__):
                step()
        with self.moves('process_cpu_seconds_total', by=0.01, least=True):
            while self.scrape()['process_cpu_seconds_total'] < 0.02:
                pass
        self.assertEqual(self.expected() - self.moved, ELSEWHERE)

    # ---- the whole

    def test_each_number_of_the_status_has_its_metric(self):
        self.begin()
        self.sign(b's: 2\n', f'expires={int(time.time()) + 3600}')
        self.agent.refresh('signed')
        self.agent.cli('pin', 'url', '--for', '1h', check=0)
        self.agent.cli('suspend', 'url', '--for', '1h', check=0)
        self.agent.cli('override', 'flat', 'a=1', '--for', '1h', check=0)
        self.refuse('syntax', b'n: [\n')
        with self.moves('pullet_push_heartbeats_total', endpoint=self.publisher.endpoint):
            self.publisher.send(b'pullet.heartbeat', {'v': 1, 'epoch': 'f'})
        def status():
            return list(numbers(json.loads(self.agent.get('/v1/status')[1])))
        # one may move in between: what the metrics say lies between what the status said before and after
        before, now, after, seen = status(), self.scrape(), {(path, *labels.items()): n for path, labels, n in status()}, set()
        for path, labels, number in before:
            self.assertIn(path, STATUS, 'a number of the status without a metric')
            seen.add(path)
            if STATUS[path] is None or (path, labels) == ('configs.restored', {'config': 'drift'}):  # nothing restores it
                continue
            name, factor, more = (*STATUS[path], {})[:3]
            value = now.get((name, {**labels, **more}))
            self.assertIsNotNone(value, (path, labels))
            times = path.endswith('_ms') and not path.endswith(('started_ms', 'until_ms', 'expires_ms', 'published_ms'))
            low, high = sorted(n * (1 if factor == 'sum' else factor) for n in (number, after.get((path, *labels.items()), number)))
            margin = harness.DEADLINE if times else 1e-3
            self.assertTrue(low - margin <= value <= high + margin, (path, labels, low, value, high))
        self.assertEqual({path for path in STATUS if not path.startswith('configs.rejections_by.')} - seen, set(), 'the status has no such numbers any more')

    def test_the_table_is_what_is_written_with_the_labels_of_the_manual(self):
        """tests/man.py holds the names and the helps of the manual against the table."""
        with open(os.path.join(ROOT, 'agent/pulletd.8'), encoding='utf-8') as f:
            page = f.read().split('\n.Sh METRICS\n')[1].split('\n.Sh ')[0]
        told = {m[1]: m[2] for m in re.finditer(r'^\.It Cm (\w+)(?: Pq (\w+))?$', page, re.M)}
        self.begin()
        written = self.scrape()
        families = {name: family.type.upper() for name, family in written.families.items()}
        not_always = {'pullet_config_signature_end_timestamp_seconds', 'pullet_push_last_message_age_seconds'}
        self.assertEqual(set(TABLE) - set(families), not_always & set(TABLE) - set(families))
        self.assertEqual(families, {name: TABLE[name][0].replace('METRIC_INFO', 'GAUGE') for name in families})
        self.assertEqual({name: written.families[name].help for name in families}, {name: TABLE[name][1] for name in families})
        for name, family in written.families.items():
            labels = {key for _, pairs in family.samples for key, _ in pairs} - {'config', 'server', 'address', 'endpoint', 'le'}
            self.assertEqual(labels, {told.get(name)} - {None}, f'the label of {name} in pulletd(8)')

    def test_of_each_config_there_are_at_most_15_series(self):
        """And those that its features need: an agent of hosts x configs is what a Prometheus has to keep."""
        self.begin(every=True)
        self.wait(lambda m: m.get(('pullet_config_watch_state', {'config': 'all'})) is not None)
        now = self.scrape()
        series = {name: sorted(n.removeprefix('pullet_config_') for n, pairs in now.series if ('config', name) in pairs) for name in self.configs}
        plain = ['confirmed_timestamp_seconds', 'failure', 'generation', 'operator_decisions', 'ready', 'rejection', 'restored_total',
                 'run_failures_total', 'runs_total', 'stale']
        reload, probe = ['reload_failures_in_a_row', 'reload_notified_generation'], ['probe_state']
        signature, watch = ['signature_end_timestamp_seconds'], ['watch_state']
        features = {'web': reload + probe, 'local': watch, 'both': watch, 'signed': signature, 'all': reload + probe + signature + watch}
        for name, found in series.items():
            with self.subTest(name):
                expected = [('drifted' if name == 'drift' and n == 'restored_total' else n) for n in plain] + features.get(name, [])
                self.assertEqual(found, sorted(expected))
                self.assertLessEqual(len(found), 15)
        self.assertEqual(len(series['all']), 15)
        self.assertEqual({n for n, _ in now.series if n.startswith('pullet_config_')}, {n for n in TABLE if n.startswith('pullet_config_')})

    def test_what_configs_have_counted_stays_when_they_go(self):
        self.begin()
        self.refuse('syntax', b'n: [\n', 'flat', '/flat.yaml')
        before = self.scrape()
        settings = json.loads(self.read('pullet.yaml'))
        del settings['configs']['flat']
        self.write('pullet.yaml', json.dumps(settings))
        self.agent.signal(signal.SIGHUP)
        self.agent.log.wait('the new configuration is applied')
        together = re.compile('pullet_(runs|rejections|pushes|watch_changes|reload_runs|reload_failures|probe_failures)_total')
        self.last = {key: n for key, n in self.last.items() if together.fullmatch(key[0])}
        self.assertGreater(sum(self.last.values()), 0)
        now = self.scrape()  # which holds that none went back
        self.assertIsNone(now.get(('pullet_config_runs_total', {'config': 'flat'})))
        for check in ('syntax', 'guard'):
            self.assertEqual(*(m['pullet_rejections_total', {'check': check}] for m in (before, now)))

    def test_openmetrics_for_who_asks_for_it(self):
        self.begin()
        accept = 'application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1'
        status, kind, text = fetch(self.agent, accept)
        self.assertEqual((status, kind), (200, 'application/openmetrics-text; version=1.0.0; charset=utf-8'))
        now, plain = Exposition(text, openmetrics=True), self.scrape()
        self.assertEqual(set(now.series), set(plain.series), 'the same series')
        self.assertEqual(now.families['pullet_config_runs'].type, 'counter')
        self.assertEqual(now.families['pullet_build'].type, 'info')
        self.assertEqual(now.families['pullet_config_confirmed_timestamp_seconds'].unit, 'seconds')
        self.assertEqual(fetch(self.agent, 'text/plain')[1], 'text/plain; version=0.0.4; charset=utf-8')

    @harness.needs(harness.LOOK)
    def test_of_one_config_with_a_url_there_is_no_more_than_it_needs(self):
        self.agent = harness.Agent(self, self.settings({'web': {'url': self.origin.url + '/web.yaml', 'file': self.path('web')}}))
        self.agent.log.wait('published')
        now = self.scrape()
        self.assertFalse([name for name in now.families if re.match('pullet_(push_|report|config_(watch|reload|probe|drifted|signature))', name)])
        self.assertEqual(now['pullet_server_in_flight', {'server': self.origin.url}], 0)
        self.assertEqual(now['pullet_build_info', {'version': re.search('"([0-9.]+)"', self.agent.get('/v1/status')[1])[1]}], 1)
        self.assertGreater(now['process_resident_memory_bytes'], 1 << 20)
        self.wait(lambda m: m['process_open_fds'] == len(os.listdir(f'/proc/{self.agent.pid}/fd')) + 1, 'and the connection of the request')
        self.assertEqual(now['process_max_fds'], int(re.search(r'Max open files\s+(\d+)', open(f'/proc/{self.agent.pid}/limits').read())[1]))


if __name__ == '__main__':
    harness.main()
