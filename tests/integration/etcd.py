"""Real etcd (3.4 and later) for tests: one member or three, with or without TLS and users, killed, stopped, restored from a backup.

All goes through the JSON gateway, as the agent does it. Members live on ports that were free, with their data in memory; etcd tells nobody
that it is ready, so its health is asked for until it is, with a deadline. Packages: etcd-server, etcd-client.
"""
import base64
import contextlib
import http.client
import json
import os
import platform
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time

import harness

PATIENCE = harness.DEADLINE * 2  # seconds; generous: it ends a test that hangs, it measures nothing


def b64(text):
    return base64.b64encode(text.encode() if isinstance(text, str) else text).decode()


def after(prefix):
    """The range_end that means "all keys with this prefix"."""
    key = bytearray(prefix.encode())
    while key and key[-1] == 0xff:
        key.pop()
    if not key:
        return b'\0'
    key[-1] += 1
    return bytes(key)


def openssl(test, *args):
    subprocess.run(['openssl', *args], check=True, capture_output=True, cwd=test.dir)


def certificates(test, names=('server', 'client')):
    """ca.pem, and NAME.pem with NAME.key for each, in the test's directory, all for 127.0.0.1 and signed by that authority."""
    ec = ('-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes')
    openssl(test, 'req', '-x509', *ec, '-days', '2', '-keyout', 'ca.key', '-out', 'ca.pem', '-subj', '/CN=test authority')
    test.write('san.cnf', 'subjectAltName=IP:127.0.0.1,DNS:localhost\n')
    for name in names:
        openssl(test, 'req', *ec, '-keyout', f'{name}.key', '-out', f'{name}.csr', '-subj', f'/CN={name}')
        openssl(test, 'x509', '-req', '-in', f'{name}.csr', '-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '2', '-extfile', 'san.cnf',
                '-out', f'{name}.pem')


def free_ports(number):
    """Ports nobody has now; all bound at a time, so that they differ."""
    sockets = [socket.create_server(('127.0.0.1', 0)) for _ in range(number)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class Member:
    def __init__(self, cluster, number, client, peer):
        self.cluster, self.name, self.client, self.peer, self.process, self.paused = cluster, f'm{number}', client, peer, None, False
        self.data = os.path.join(cluster.dir, self.name)
        self.log = os.path.join(cluster.dir, self.name + '.log')

    @property
    def url(self):
        return f'{self.cluster.scheme}://127.0.0.1:{self.client}'

    @property
    def peer_url(self):
        return f'http://127.0.0.1:{self.peer}'

    @property
    def running(self):
        return self.process is not None and self.process.poll() is None

    def start(self):
        c = self.cluster
        tls = []
        if c.tls:
            tls = ['--cert-file', c.path('server.pem'), '--key-file', c.path('server.key')]
            if c.tls == 'mutual':
                tls += ['--client-cert-auth', '--trusted-ca-file', c.path('ca.pem')]
        environment = {k: v for k, v in os.environ.items() if not k.startswith('ETCD')}
        environment['ETCD_UNSUPPORTED_ARCH'] = {'aarch64': 'arm64'}.get(platform.machine(), platform.machine())
        with open(self.log, 'ab') as log:
            self.process = subprocess.Popen(
                ['etcd', '--name', self.name, '--data-dir', self.data, '--listen-client-urls', self.url, '--advertise-client-urls', self.url,
                 '--listen-peer-urls', self.peer_url, '--initial-advertise-peer-urls', self.peer_url, '--initial-cluster', c.initial,
                 '--initial-cluster-token', c.token, '--initial-cluster-state', 'new', '--heartbeat-interval', '50', '--election-timeout', '500',
                 '--unsafe-no-fsync', '--logger', 'zap', *tls, *c.args],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)

    def send(self, number):
        harness.send(self.process, number)

    def pause(self, on):
        self.send(signal.SIGSTOP if on else signal.SIGCONT)
        self.paused = on

    def end(self, number=signal.SIGKILL):
        if self.running:
            self.pause(False)
            self.send(number)
        if self.process:
            self.process.wait(PATIENCE)

    def tail(self):
        with open(self.log, encoding='utf-8', errors='replace') as f:
            return f.read()[-4000:]


class Etcd:
    """A cluster. `tls`: None, 'server' (ca.pem of the test's directory vouches for it), or 'mutual' (client.pem, client.key are asked for)."""

    def __init__(self, test, members=1, tls=None, args=()):
        assert shutil.which('etcd') and shutil.which('etcdctl'), 'the packages etcd-server and etcd-client are missing'
        self.test, self.tls, self.args, self.scheme = test, tls, list(args), 'https' if tls else 'http'
        self.path, self.token, self.root, self._tokens = test.path, 'test-1', None, {}
        self.dir = tempfile.mkdtemp(prefix='pullet-etcd-', dir=harness.memory())
        self.members = []
        test.addCleanup(self.close)
        if tls:
            certificates(test)
        for attempt in range(5):
            ports = free_ports(2 * members)
            self.members = [Member(self, i, ports[2 * i], ports[2 * i + 1]) for i in range(members)]
            for m in self.members:
                m.start()
            try:
                self.wait_healthy()
                return
            except AssertionError:
                # somebody else took one of the ports in between
                if attempt == 4 or not any('address already in use' in m.tail() for m in self.members):
                    raise
                for m in self.members:
                    m.end()
                    shutil.rmtree(m.data, ignore_errors=True)

    @property
    def initial(self):
        return ','.join(f'{m.name}={m.peer_url}' for m in self.members)

    @property
    def urls(self):
        return [m.url for m in self.members]

    @property
    def url(self):
        return self.members[0].url

    # -- the gateway

    def request(self, method, path, body=None, member=None, token=None, timeout=PATIENCE):
        """(status, JSON) of one request to one member."""
        if self.tls:
            context = ssl.create_default_context(cafile=self.path('ca.pem'))
            if self.tls == 'mutual':
                context.load_cert_chain(self.path('client.pem'), self.path('client.key'))
            connection = http.client.HTTPSConnection('127.0.0.1', (member or self._any()).client, timeout=timeout, context=context)
        else:
            connection = http.client.HTTPConnection('127.0.0.1', (member or self._any()).client, timeout=timeout)
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None, {'Authorization': token} if token else {})
            response = connection.getresponse()
            return response.status, json.loads(response.read() or b'{}')
        finally:
            connection.close()

    def _any(self):
        return next(m for m in self.members if m.running and not m.paused)

    def call(self, path, body, member=None, user=None):
        """POST /v3/PATH; the JSON. With authentication on, as `user` or root. A cluster that elects is asked again."""
        end = time.monotonic() + PATIENCE
        while True:
            token = self.authenticate(user or 'root', member) if self.root and path != 'auth/authenticate' else None
            status, answer = self.request('POST', '/v3/' + path, body, member, token)
            if status == 200:
                return answer
            # 14: no leader now; the old token of a member that was restarted is not known any more
            assert (answer.get('code') in (14, 16) or status == 503) and time.monotonic() < end, f'{path}: {status} {answer}'
            self._tokens.clear()
            time.sleep(0.05)

    def authenticate(self, user, member=None, password=None):
        """A token for the header Authorization; kept until it is refused."""
        if password is None and user in self._tokens:
            return self._tokens[user]
        answer = self.call('auth/authenticate', {'name': user, 'password': password or self.passwords[user]}, member)
        self._tokens[user] = answer['token']
        return answer['token']

    def put(self, key, value, member=None, lease=0):
        """The revision of the write."""
        return int(self.call('kv/put', {'key': b64(key), 'value': b64(value), 'lease': str(lease)}, member)['header']['revision'])

    def leases(self, number, ttl=3600):
        """So many new ones, over one connection: transactions have none."""
        connection, found = http.client.HTTPConnection('127.0.0.1', self._any().client, timeout=PATIENCE), []
        with contextlib.closing(connection):
            for _ in range(number):
                connection.request('POST', '/v3/lease/grant', json.dumps({'TTL': ttl}))
                found.append(int(json.loads(connection.getresponse().read())['ID']))
        return found

    def put_all(self, values, member=None, leases=None):
        """All in one transaction; its revision. `leases`: {key: its lease}."""
        puts = [{'request_put': {'key': b64(k), 'value': b64(v), 'lease': str((leases or {}).get(k, 0))}} for k, v in values.items()]
        return int(self.call('kv/txn', {'success': puts}, member)['header']['revision'])

    def delete(self, key, prefix=False, member=None):
        more = {'range_end': b64(after(key))} if prefix else {}
        return int(self.call('kv/deleterange', {'key': b64(key or '\0'), **more}, member)['header']['revision'])

    def get(self, key, prefix=False, member=None):
        """The value as bytes, or None; {key: value} with `prefix` ('' is all)."""
        more = {'range_end': b64(after(key))} if prefix else {}
        found = {base64.b64decode(kv['key']).decode(): base64.b64decode(kv.get('value', ''))
                 for kv in self.call('kv/range', {'key': b64(key or '\0'), **more}, member).get('kvs', [])}
        return found if prefix else found.get(key)

    def revision(self, member=None):
        return int(self.call('kv/range', {'key': b64('\0'), 'limit': '1', 'keys_only': True}, member)['header']['revision'])

    def compact(self, revision=None):
        """Everything before `revision` (or now) is forgotten."""
        self.call('kv/compaction', {'revision': str(revision or self.revision()), 'physical': True})

    # -- users

    def enable_auth(self, password='root-password', users=None):
        """Switches it on. `users`: {name: (password, [prefixes they may read])}."""
        self.passwords = {'root': password, **{name: p for name, (p, _) in (users or {}).items()}}
        self.call('auth/user/add', {'name': 'root', 'password': password})
        self.call('auth/role/add', {'name': 'root'})
        self.call('auth/user/grant', {'user': 'root', 'role': 'root'})
        for name, (user_password, prefixes) in (users or {}).items():
            self.call('auth/user/add', {'name': name, 'password': user_password})
            self.call('auth/role/add', {'name': f'read-{name}'})
            for prefix in prefixes:
                self.call('auth/role/grant', {'name': f'read-{name}', 'perm': {'permType': 'READ', 'key': b64(prefix), 'range_end': b64(after(prefix))}})
            self.call('auth/user/grant', {'user': name, 'role': f'read-{name}'})
        self.call('auth/enable', {})
        self.root = password

    def set_password(self, user, password):
        """Ends the user's tokens as well."""
        self.call('auth/user/changepw', {'name': user, 'password': password})
        self.passwords[user] = password
        self._tokens.clear()

    # -- life and death

    def healthy(self, member):
        try:
            status, answer = self.request('GET', '/health', member=member, timeout=2)
            return status == 200 and answer.get('health') == 'true'
        except (OSError, ValueError, http.client.HTTPException):
            return False

    def wait_healthy(self, members=None):
        """Until all (or these) can read and write."""
        end, pause = time.monotonic() + PATIENCE, 0.01
        for m in members or self.members:
            while not self.healthy(m):
                assert m.running and time.monotonic() < end, f'{m.name} is not healthy:\n{m.tail()}'
                time.sleep(pause)
                pause = min(pause * 1.3, 0.2)

    def kill(self, member):
        """kill -9."""
        self._member(member).end()

    def stop(self, member):
        """An orderly end."""
        self._member(member).end(signal.SIGTERM)

    def restart(self, member, wait=True):
        """Kills it if it runs, and starts it again on the same ports and data."""
        member = self._member(member)
        member.end()
        member.start()
        if wait:
            self.wait_healthy([member])

    def pause(self, member):
        """SIGSTOP: its connections stay and nothing answers."""
        self._member(member).pause(True)

    def resume(self, member):
        self._member(member).pause(False)

    def leader(self):
        """The number of the member that leads."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            for number, m in enumerate(self.members):
                if m.running and not m.paused:
                    status = self.call('maintenance/status', {}, m)
                    if status.get('leader', '0') != '0' and status['leader'] == status['header']['member_id']:
                        return number
            time.sleep(0.05)
        raise AssertionError('no leader')

    def kill_leader(self, wait=True):
        """kill -9 to the leader; its number. Waits until the others have elected a new one (a write that comes before is held for 6 s)."""
        number = self.leader()
        self.kill(number)
        if wait:
            self.leader()
        return number

    def _member(self, member):
        return member if isinstance(member, Member) else self.members[member]

    # -- backups

    def _etcdctl(self, *args):
        environment = {k: v for k, v in os.environ.items() if not k.startswith('ETCD')}
        done = subprocess.run(['etcdctl', *args], env={**environment, 'ETCDCTL_API': '3'}, capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert done.returncode == 0, f'etcdctl {args}: {done.stdout}{done.stderr}'

    def save(self, name='backup.db'):
        """A snapshot in the test's directory; its path."""
        path = self.path(name)
        tls = ['--cacert', self.path('ca.pem')] if self.tls else []
        tls += ['--cert', self.path('client.pem'), '--key', self.path('client.key')] if self.tls == 'mutual' else []
        user = ['--user', f'root:{self.root}'] if self.root else []
        if os.path.exists(path):
            os.unlink(path)
        self._etcdctl('--endpoints', self._any().url, *tls, *user, 'snapshot', 'save', path)
        return path

    def restore(self, path, new_token=False):
        """All members are killed and start again from the backup: revisions go back. A new token makes it a cluster with another id."""
        if new_token:
            self.token = f'test-{int(self.token.split("-")[1]) + 1}'
        for m in self.members:
            m.end()
            shutil.rmtree(m.data, ignore_errors=True)
            self._etcdctl('snapshot', 'restore', path, '--name', m.name, '--data-dir', m.data, '--initial-cluster', self.initial,
                          '--initial-cluster-token', self.token, '--initial-advertise-peer-urls', m.peer_url)
        self._tokens.clear()
        for m in self.members:
            m.start()
        self.wait_healthy()

    def cluster_id(self):
        return self.call('kv/range', {'key': b64('\0')})['header']['cluster_id']

    def close(self):
        for m in self.members:
            m.end()
        shutil.rmtree(self.dir, ignore_errors=True)
