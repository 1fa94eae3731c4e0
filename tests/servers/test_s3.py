"""The kind s3 before servers that nobody here wrote: s3rver, from npm, and Ceph's radosgw.

s3rver (3.7.1) is installed by npm into a temporary folder; radosgw stands on a monitor and one store in memory, as Debian packages them, and
answers 13 s after it was begun. `make check-servers` installs what is missing; a case whose server cannot be had is skipped with the reason.
Radosgw computes each signature by code of its own; s3rver only looks at its form and at the id of the key, and lets anybody read.
"""
import datetime
import hashlib
import http.client
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, 'tests', 'integration'))
import etcd  # noqa: E402
import harness  # noqa: E402
import kinds  # noqa: E402
from servers import s3  # noqa: E402

S3RVER = 's3rver@3.7.1'
PATIENCE = harness.DEADLINE * 2


def wait_answer(port, process, log):
    """Until it answers HTTP; it tells nobody."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            connection = http.client.HTTPConnection('127.0.0.1', port, timeout=5)
            connection.request('GET', '/')
            connection.getresponse().read()
            connection.close()
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > end:
                raise AssertionError(f'no answer at port {port}:\n{log()[-2000:]}') from None
            time.sleep(0.05)


class Server:
    """A folder, processes, a port; `user` and `secret` may do everything in the bucket `bucket`."""
    user, secret = 'AKIDEXAMPLE', 'wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY'

    def __init__(self):
        self.dir, self.processes = tempfile.mkdtemp(prefix='pullet-s3-'), []
        try:
            self.port, = etcd.free_ports(1)
            self.start()
            if self.request('PUT', '/bucket')[0] not in (200, 409):
                raise AssertionError('no bucket could be made')
        except BaseException:
            self.close()
            raise

    @property
    def url(self):
        return f'http://127.0.0.1:{self.port}'

    def path(self, name):
        return os.path.join(self.dir, name)

    def log(self):
        with open(self.path('log'), encoding='utf-8', errors='replace') as f:
            return f.read()

    def run(self, *args, **kw):
        done = subprocess.run(args, cwd=self.dir, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=PATIENCE, **kw)
        if done.returncode:
            raise AssertionError(f'{args}: {done.stdout}{done.stderr}')

    def begin(self, *args, **kw):
        with open(self.path('log'), 'ab') as log:
            self.processes.append(subprocess.Popen(args, cwd=self.dir, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **kw))
        return self.processes[-1]

    def close(self):
        for process in reversed(self.processes):
            process.kill()
            process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)

    def request(self, method, path, body=b''):
        """(status, the answer's ETag) of a request that is signed."""
        date = datetime.datetime.now(datetime.timezone.utc).strftime('%Y%m%dT%H%M%SZ')
        digest, scope = hashlib.sha256(body).hexdigest(), f'{date[:8]}/us-east-1/s3/aws4_request'
        headers = {'host': f'127.0.0.1:{self.port}', 'x-amz-content-sha256': digest, 'x-amz-date': date}
        canonical = s3.canonical_request(method, path, '', headers.items(), sorted(headers), digest)
        headers['authorization'] = (f'AWS4-HMAC-SHA256 Credential={self.user}/{scope}, SignedHeaders={";".join(sorted(headers))}, '
                                    f'Signature={s3.signature(self.secret, date, scope, canonical)}')
        connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=PATIENCE)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            answer.read()
            return answer.status, answer.getheader('ETag')
        finally:
            connection.close()


class S3rver(Server):
    user = secret = 'S3RVER'
    CONFIRMED = r'web.yaml 304 '

    def start(self):
        if not shutil.which('npm'):
            raise unittest.SkipTest('npm is missing: make check-servers installs it')
        try:
            self.run('npm', 'install', '--prefix', self.dir, '--no-audit', '--no-fund', '--ignore-scripts', S3RVER)
        except AssertionError as e:
            raise unittest.SkipTest(f'npm cannot install {S3RVER}: {str(e)[-300:]}') from None
        process = self.begin('node', 'node_modules/s3rver/bin/s3rver.js', '-d', self.path('data'), '-a', '127.0.0.1', '-p', str(self.port), '--no-vhost-buckets')
        wait_answer(self.port, process, self.log)


class Radosgw(Server):
    CONFIRMED = r'"GET /bucket/web.yaml HTTP/1.1" 304 '
    SETTINGS = {
        'auth cluster required': 'cephx', 'auth service required': 'cephx', 'auth client required': 'cephx',
        'osd pool default size': 1, 'osd pool default min size': 1, 'osd pool default pg num': 1, 'osd pool default pg autoscale mode': 'off',
        'mon allow pool size one': 'true', 'mon max pg per osd': 1000, 'mon data avail crit': 1, 'osd crush chooseleaf type': 0,
        'osd objectstore': 'memstore', 'memstore device bytes': 256 << 20, 'ms bind ipv6': 'false', 'public addr': '127.0.0.1', 'log to stderr': 'false',
        'rgw enable usage log': 'false',
    }

    def start(self):
        lacking = [p for p in ('ceph', 'ceph-mon', 'ceph-osd', 'radosgw', 'radosgw-admin') if not shutil.which(p)]
        if lacking:
            raise unittest.SkipTest(f'{", ".join(lacking)} is missing: make check-servers installs it')
        monitor, = etcd.free_ports(1)
        here = {'fsid': '6fe5b9e4-3ad5-4e9c-9b4f-0c3a53d3ce3a', 'mon host': f'v2:127.0.0.1:{monitor}', 'mon initial members': 'a', 'run dir': self.dir,
                'keyring': self.path('keyring'), 'admin socket': self.path('$name.asok'), 'pid file': self.path('$name.pid'), 'log file': self.path('log'),
                'crash dir': self.dir, 'mon data': self.path('mon'), 'osd data': self.path('osd'), 'rgw data': self.path('rgw'),
                'rgw frontends': f'beast endpoint=127.0.0.1:{self.port}'}
        with open(self.path('ceph.conf'), 'w', encoding='utf-8') as f:
            f.write('[global]\n' + ''.join(f'{k} = {v}\n' for k, v in {**self.SETTINGS, **here}.items()))
        for name in ('mon', 'osd', 'rgw'):
            os.mkdir(self.path(name))
        kw = {'env': {**os.environ, 'CEPH_CONF': self.path('ceph.conf')}}
        new = ['ceph-authtool', self.path('keyring'), '-g', '-n']
        self.run(*new, 'mon.', '-C', '--cap', 'mon', 'allow *', **kw)
        self.run(*new, 'client.admin', '--cap', 'mon', 'allow *', '--cap', 'osd', 'allow *', **kw)
        self.run(*new, 'osd.0', '--cap', 'mon', 'allow profile osd', '--cap', 'osd', 'allow *', **kw)
        self.run('monmaptool', '--create', '--addv', 'a', f'[v2:127.0.0.1:{monitor}]', '--fsid', here['fsid'], 'monmap', **kw)
        self.run('ceph-mon', '--mkfs', '-i', 'a', '--monmap', 'monmap', '--keyring', 'keyring', **kw)
        self.begin('ceph-mon', '-i', 'a', '-f', **kw)
        self.run('ceph', '--connect-timeout', '30', 'osd', 'create', **kw)
        self.run('ceph-osd', '-i', '0', '--mkfs', **kw)
        self.begin('ceph-osd', '-i', '0', '-f', **kw)
        self.run('radosgw-admin', 'user', 'create', '--uid=t', '--display-name=t', f'--access-key={self.user}', f'--secret={self.secret}', **kw)
        wait_answer(self.port, self.begin('radosgw', '-n', 'client.admin', '-f', **kw), self.log)


class Cases:
    """What both do."""
    server = None

    @classmethod
    def setUpClass(cls):
        cls.server = cls.KIND()
        cls.addClassCleanup(cls.server.close)

    def put(self, n, key='web.yaml'):
        """The ETag."""
        status, etag = self.server.request('PUT', f'/bucket/{key}', f'n: {n}\n'.encode())
        self.assertEqual(status, 200)
        return etag

    def begin_s3(self, path='/bucket/web.yaml', user=None, secret=None, **kw):
        self.write('secret', (secret or self.server.secret) + '\n')
        os.chmod(self.path('secret'), 0o600)
        if self.server.secret != self.server.user:  # s3rver's is no secret
            self.hide(secret or self.server.secret)
        auth = f'auth: {{access_key: {{id: {user or self.server.user}, secret_file: {self.path("secret")}}}}}'
        return self.begin(f'kind: s3, urls: ["{self.server.url}"], {auth}', path, **kw)

    def test_a_version_is_the_etag_and_an_unchanged_object_is_only_confirmed(self):
        etag = self.put(1)
        self.begin_s3()
        self.assertEqual((self.standing(), self.version()), ('n: 1\n', etag))
        self.confirms()
        self.until(lambda: re.search(self.server.CONFIRMED, self.server.log()), 'a 304')
        etag = self.put(2)
        self.assertEqual(self.refreshed('published')['version'], etag)
        self.assertEqual(self.standing(), 'n: 2\n')
        self.confirms()

    def test_a_change_is_seen_at_the_interval(self):
        self.put(1)
        self.begin_s3()
        self.end(self.agent)
        text = self.read('pullet.yaml').decode().replace('interval: 1h', 'interval: 200ms')
        self.run_agent(text, 'last known good')
        self.put(2)
        self.agent.log.wait('published config=web generation=2')
        self.assertEqual(self.standing(), 'n: 2\n')

    def test_an_object_that_is_gone_keeps_the_version(self):
        self.put(1)
        self.begin_s3()
        self.assertIn(self.server.request('DELETE', '/bucket/web.yaml')[0], (200, 204))
        self.fails('not found', '404 NoSuchKey: there is no such object: check the path')
        self.assertEqual(self.standing(), 'n: 1\n')
        self.put(3)
        self.refreshed('published')

    def test_a_bucket_that_is_not_there_is_named(self):
        self.begin_s3(path='/nowhere/web.yaml', wait=None)
        self.fails_at_first('not found', '404 NoSuchBucket: the bucket does not exist')

    def test_an_unknown_key_is_named(self):
        self.put(1)
        self.begin_s3(user='NOBODY', wait=None)
        self.fails_at_first('forbidden', 'InvalidAccessKeyId: the server does not know the id of the access key')

    def test_names_that_must_be_encoded_are_signed_alike(self):
        for n, (name, key) in enumerate({'blank': 'a%20b.yaml', 'plus': 'a%2Bb.yaml', 'letters': 'gr%C3%B6%C3%9Fe.yaml', 'deep': 'deep/er/x.yaml'}.items()):
            with self.subTest(name=name):
                self.put(n, key)
                self.begin_s3(path=f'/bucket/{key}')
                self.assertEqual(self.standing(), f'n: {n}\n')
                self.end(self.agent)
                shutil.rmtree(self.path('state'))
                shutil.rmtree(self.path('out'))


class BeforeS3rver(Cases, kinds.Case):
    KIND = S3rver


class BeforeRadosgw(Cases, kinds.Case):
    KIND = Radosgw

    def test_a_wrong_secret_is_named_and_a_right_one_is_taken(self):
        self.put(1)
        self.begin_s3(secret='not/the+secret/that=is-meant', wait=None)
        self.fails_at_first('forbidden', '403 SignatureDoesNotMatch: secret_file does not hold the secret of this access key')
        self.write('secret', self.server.secret + '\n')
        self.refreshed('published')

    def test_nobody_reads_without_a_key(self):
        self.put(1)
        self.begin(f'kind: s3, urls: ["{self.server.url}"]', '/bucket/web.yaml', wait=None)
        self.fails_at_first('forbidden', '403 AccessDenied')


if __name__ == '__main__':
    harness.main()
