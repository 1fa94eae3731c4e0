"""TLS that does not fit: each case is refused, says in the status what is wrong and which key of the configuration it concerns, and the good version stays.

Revoked certificates and a missing client certificate at nginx are in test_servers.py.
"""
import contextlib
import os
import shutil
import socket
import ssl
import struct
import subprocess
import tempfile
import threading
import time
import warnings

import etcd
import harness
import kinds
from harness import Agent, Nginx
from servers.wire import CLOSE, Wire, counted

EC = ('ec', '-pkeyopt', 'ec_paramgen_curve:P-256')
PAST, LONG_PAST, FUTURE, FAR_FUTURE = '20200201000000Z', '20200101000000Z', '20400101000000Z', '20410101000000Z'


class Authorities:
    """Two authorities, ca and other, and what they sign: NAME.pem and NAME.key in `dir`."""

    def __init__(self):
        self.dir, self.serial = tempfile.mkdtemp(prefix='pullet-test-'), 0
        for name in ('ca', 'other', 'selfsigned'):
            self.openssl('req', '-x509', '-newkey', *EC, '-nodes', '-days', '2', '-keyout', f'{name}.key', '-out', f'{name}.pem', '-subj', f'/CN={name}',
                         *(['-addext', 'subjectAltName=IP:127.0.0.1'] if name == 'selfsigned' else []))

    def path(self, name):
        return os.path.join(self.dir, name)

    def write(self, name, text):
        with open(self.path(name), 'w', encoding='ascii') as f:
            f.write(text)

    def openssl(self, *args):
        done = subprocess.run(['openssl', *args], capture_output=True, text=True, cwd=self.dir, check=False)
        assert done.returncode == 0, done.stderr

    def settings(self, name, extensions=''):
        """Of `openssl ca`, with a database of its own."""
        self.write('ca.cnf', f'''
            [ca]
            default_ca = this
            [this]
            database = {self.path(name + ".index")}
            serial = {self.path(name + ".serial")}
            new_certs_dir = {self.dir}
            default_md = sha256
            default_days = 2
            default_crl_days = 2
            policy = any
            [any]
            commonName = supplied
            [ext]
            {extensions}
        ''')
        self.write(name + '.index', '')
        self.serial += 1
        self.write(name + '.serial', f'{self.serial:04x}\n')

    def sign(self, name, ca='ca', names='IP:127.0.0.1', more='', start=None, end=None, key=EC):
        self.settings(name, (f'subjectAltName = {names}\n' if names else '') + more)
        self.openssl('req', '-newkey', *key, '-nodes', '-keyout', f'{name}.key', '-out', f'{name}.csr', '-subj', f'/CN={name}')
        dates = (['-startdate', start] if start else []) + (['-enddate', end] if end else [])
        self.openssl('ca', '-config', 'ca.cnf', '-cert', f'{ca}.pem', '-keyfile', f'{ca}.key', '-in', f'{name}.csr', '-out', f'{name}.pem', '-batch', '-notext',
                     '-extensions', 'ext', *dates)

    def revocations(self, ca, name):
        self.settings(name)
        self.openssl('ca', '-config', 'ca.cnf', '-cert', f'{ca}.pem', '-keyfile', f'{ca}.key', '-gencrl', '-out', f'{name}.pem')


class Https:
    """A server of one document on one port; what it shows to a client that connects can be changed at any time."""

    def __init__(self, test, authorities):
        self.authorities, self.context, self.plain, self.body = authorities, None, None, b'n: 1\n'
        self.connections, self.open, self.lock = 0, set(), threading.Lock()
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.port = self.listener.getsockname()[1]
        self.url = f'https://127.0.0.1:{self.port}'
        threading.Thread(target=self._accept, daemon=True).start()
        test.addCleanup(self.close)

    def show(self, name, ciphers=None, lowest=None, highest=None, clients=None):
        """From the next connection on: the certificate of that name."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        if ciphers:
            context.set_ciphers(ciphers)
        context.load_cert_chain(self.authorities.path(name + '.pem'), self.authorities.path(name + '.key'))
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')  # old versions are what is tested
            context.minimum_version = lowest or ssl.TLSVersion.TLSv1_2
            context.maximum_version = highest or ssl.TLSVersion.MAXIMUM_SUPPORTED
        if clients:
            context.load_verify_locations(self.authorities.path(clients))
            context.verify_mode = ssl.CERT_REQUIRED
        self.context, self.plain = context, None

    def talk(self, plain):
        """From the next connection on: no TLS but `plain(connection)`."""
        self.plain = plain

    def drop(self):
        """Ends the connections there are."""
        with self.lock:
            for connection in self.open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def restart(self, *args, **kw):
        self.show(*args, **kw)
        self.drop()

    def close(self):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.drop()

    def _accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with self.lock:
                self.connections += 1
                self.open.add(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        stream = connection
        try:
            if self.plain:
                self.plain(connection)
                return
            stream = self.context.wrap_socket(connection, server_side=True)
            with self.lock:
                self.open.add(stream)
            head = b''
            while True:
                data = stream.recv(65536)
                if not data:
                    return
                head += data
                while b'\r\n\r\n' in head:
                    _, head = head.split(b'\r\n\r\n', 1)
                    stream.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s' % (len(self.body), self.body))
        except OSError:
            pass
        finally:
            with self.lock:
                self.open -= {stream, connection}
            stream.close()
            connection.close()


class Case(kinds.Case):
    @classmethod
    def setUpClass(cls):
        cls.authorities = a = Authorities()
        cls.addClassCleanup(shutil.rmtree, a.dir)
        a.sign('good')
        a.sign('expired', start=LONG_PAST, end=PAST)
        a.sign('stranger', ca='other')

    def setUp(self):
        super().setUp()
        self.server = Https(self, self.authorities)
        self.server.show('good')

    def tls(self, **keys):
        """The text of `tls`; file names are those of the authorities."""
        return ', '.join(f'{k}: {v if k == "min_version" else self.authorities.path(v)}' for k, v in keys.items())

    def begin_tls(self, url=None, wait='published config=web generation=1', **keys):
        tls = f', tls: {{{self.tls(**keys)}}}' if keys else ''
        return self.begin(f'urls: ["{url or self.server.url}"]{tls}', '/web.yaml', wait=wait)


class Servers(Case):
    """What the server shows. One agent sees it all: a certificate that changes under it."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        a = cls.authorities
        a.sign('early', start=FUTURE, end=FAR_FUTURE)
        a.sign('elsewhere', names='DNS:other.example')
        a.sign('nameless', names=None)
        a.sign('forclients', more='extendedKeyUsage = clientAuth')
        a.sign('short', key=('rsa:1024',))
        a.sign('between', names=None, more='basicConstraints = critical, CA:true')
        a.sign('leaf', ca='between')

    def refused(self, words, cause='unreachable'):
        self.server.drop()
        self.server.body = b'n: 666\n'
        sentence = self.fails(cause, words)
        self.assertEqual(self.standing(), 'n: 1\n')
        self.server.body = b'n: 1\n'
        return sentence

    def test_each_certificate_that_does_not_fit_is_refused_by_name(self):
        self.begin_tls(ca='ca.pem')
        sentences = set()
        for name, words in (
                ('expired', 'certificate has expired: the server needs a new one, or the clock of this host is wrong'),
                ('early', 'certificate is not yet valid: is the clock of this host right'),
                ('elsewhere', "target host name '127.0.0.1': the server's certificate is for another name than the url's"),
                ('nameless', "target host name '127.0.0.1': the server's certificate is for another name than the url's"),
                ('stranger', "unable to get local issuer certificate: name the authority that signed the server's certificate in tls.ca"),
                ('leaf', r'in tls.ca \(or the server leaves out the certificates in between\)'),
                ('selfsigned', 'self-signed certificate: if it is the right one, name it in tls.ca'),
                ('forclients', "purpose: the server's certificate is not one for servers"),
                ('short', 'key too weak: the server needs a certificate with a longer key')):
            with self.subTest(certificate=name):
                self.server.show(name, 'ALL:@SECLEVEL=0' if name == 'short' else None)
                sentences.add(self.refused(words))
                self.server.restart('good')
                self.confirms()
        self.assertEqual(len(sentences), 8, sentences)

    def test_protocols_that_are_too_old_are_refused_and_min_version_is_named(self):
        self.begin_tls(ca='ca.pem')
        words = r'protocol.*: the server speaks no version of TLS from tls.min_version on \(1.2, unless set\)'
        for version in (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1):
            self.server.show('good', 'ALL:@SECLEVEL=0', version, version)
            self.refused(words)
        self.server.restart('good', highest=ssl.TLSVersion.TLSv1_2)
        self.confirms()
        self.end(self.agent)
        self.server.show('good', highest=ssl.TLSVersion.TLSv1_2)
        text = self.read('pullet.yaml').decode().replace('tls: {', 'tls: {min_version: 1.3, ')
        self.run_agent(text, 'last known good')
        self.refused(words)
        self.server.restart('good')
        self.confirms()

    def test_ciphers_that_nobody_wants(self):
        self.begin_tls(ca='ca.pem')
        self.server.show('good', 'eNULL:@SECLEVEL=0', highest=ssl.TLSVersion.TLSv1_2)
        self.refused('handshake failure: .*ciphers that are not allowed here')

    def test_what_is_no_tls_at_all(self):
        self.begin_tls(ca='ca.pem')
        ending = threading.Event()
        self.addCleanup(ending.set)

        def answer(connection):
            connection.recv(65536)
            connection.sendall(b'HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n')

        def reset(connection):
            connection.recv(65536)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
        for plain, words in ((answer, 'does not speak TLS at this port: should the url begin with http://'),
                             (lambda connection: connection.recv(65536), 'SSL_connect|closed|reset'), (reset, 'SSL_connect|closed|reset')):
            self.server.talk(plain)
            self.refused(words)
        self.server.talk(lambda connection: ending.wait(harness.DEADLINE))
        self.refused('SSL connection timeout|time', 'timeout')
        self.server.restart('good')
        self.confirms()

    def test_a_certificate_that_changes_on_a_live_connection(self):
        self.begin_tls(ca='ca.pem')
        self.confirms()
        self.assertEqual(self.server.connections, 1)
        self.server.show('stranger')  # for those who come from now on
        self.confirms()
        self.assertEqual(self.server.connections, 1, 'the connection stands: it was verified')
        self.server.body = b'n: 2\n'
        self.server.drop()  # the restart
        self.fails('unreachable', "name the authority that signed the server's certificate in tls.ca")
        self.assertGreater(self.server.connections, 1)
        self.assertEqual(self.standing(), 'n: 1\n')
        self.fails('unreachable', 'tls.ca')  # and it stays refused
        self.server.show('good')
        self.refreshed('published')
        self.assertEqual(self.standing(), 'n: 2\n')

    def test_the_systems_authorities_do_not_know_ours(self):
        self.begin_tls(wait=None)
        self.fails_at_first('unreachable', 'in tls.ca')


class Clients(Case):
    """What the agent shows, and the files that it is told to use."""

    def refused(self, words, cause='unreachable', **keys):
        self.begin_tls(wait=None, **keys)
        self.fails_at_first(cause, words)
        self.end(self.agent)
        for top in ('state', 'out'):
            shutil.rmtree(self.path(top), ignore_errors=True)

    def test_certificates_that_the_server_does_not_want(self):
        """After a handshake of TLS 1.3 the server may close before its reason is read; with 1.2 the reason always comes."""
        closed = 'closed the connection at once: it may want a certificate of this host, or reject it .tls.cert|reset by peer|Broken pipe'
        for highest in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            sooner = '|' + closed if highest == ssl.TLSVersion.TLSv1_3 else ''
            self.server.show('good', highest=highest, clients='ca.pem')
            with self.subTest(version=highest):
                self.refused('the server wants a certificate of this host.*tls.cert' + sooner, ca='ca.pem')
                self.refused("does not know the authority of this host's certificate .tls.cert" + sooner, ca='ca.pem', cert='stranger.pem', key='stranger.key')
                self.refused("this host's certificate .tls.cert. (has expired|needs renewing)" + sooner, ca='ca.pem', cert='expired.pem', key='expired.key')
        self.begin_tls(ca='ca.pem', cert='good.pem', key='good.key')

    def test_one_file_may_hold_both(self):
        with open(self.authorities.path('both.pem'), 'w', encoding='ascii') as f:
            for name in ('good.pem', 'good.key'):
                with open(self.authorities.path(name), encoding='ascii') as part:
                    f.write(part.read())
        self.server.show('good', clients='ca.pem')
        self.begin_tls(ca='ca.pem', cert='both.pem')

    def test_files_that_are_missing_or_something_else_are_named(self):
        self.authorities.write('garbage.pem', 'nothing\n')
        self.authorities.write('empty.pem', '')
        self.authorities.revocations('other', 'crl')
        for bad in ('garbage.pem', 'empty.pem'):
            with self.subTest(file=bad):
                self.refused(f'{bad}: tls.ca cannot be read, or holds no certificate', 'this host', ca=bad)
                self.refused(f'{bad}.*: tls.cert cannot be read, or is not PEM', 'this host', ca='ca.pem', cert=bad, key='good.key')
                self.refused(f'{bad}.*: it cannot be read, or is not the key of tls.cert .tls.key', 'this host', ca='ca.pem', cert='good.pem', key=bad)
                self.refused(f'{bad}: tls.crl cannot be read, or holds no list', 'this host', ca='ca.pem', crl=bad)
        files = {'ca': 'ca.pem', 'crl': 'other.pem', 'cert': 'good.pem', 'key': 'good.key'}
        for key in files:
            self.refused(rf'/none: tls\.{key} cannot be read: No such file or directory: make it', 'this host', **{**files, key: 'none'})
        self.refused('is not the key of tls.cert .tls.key', 'this host', ca='ca.pem', cert='good.pem', key='stranger.key')
        self.refused("tls.crl has no list of an authority in the server's chain", ca='ca.pem', crl='crl.pem')


class Sessions(harness.Case):
    """A new connection resumes the session of one before it, but only as long as every file of tls: is the one it was."""

    def test_they_go_on_until_a_file_of_tls_changes(self):
        authorities = Authorities()
        self.addCleanup(shutil.rmtree, authorities.dir)
        for name in ('good', 'agent'):
            authorities.sign(name)
        # each connection carries one answer
        server = Wire(self, lambda ask: [counted(b'a: %d\n' % server.asks, 'Connection: close'), CLOSE], (authorities.path('good.pem'), authorities.path('good.key')))
        files = {name: authorities.path(path) for name, path in (('ca', 'ca.pem'), ('cert', 'agent.pem'), ('key', 'agent.key'))}
        tls = ', '.join(f'{key}: {path}' for key, path in files.items())
        agent = Agent(self, f"""agent: {{state_dir: {self.path('state')}, runtime_dir: {self.path('run')}}}
servers: {{main: {{urls: ["{server.url}"], tls: {{{tls}}}}}}}
configs: {{web: {{from: [{{server: main, path: /web.yaml}}], file: {self.path('web.yaml')}, interval: 1h}}}}
""")
        agent.log.wait('published config=web')

        def resumed():
            before = server.resumed
            self.assertEqual(agent.refresh()['outcome'], 'published')
            return server.resumed - before
        self.assertEqual([resumed() for _ in range(3)], [1, 1, 1])
        for key, path in files.items():
            with self.subTest(key):
                shutil.copy(path, path + '.new')
                os.rename(path + '.new', path)  # the same bytes in another file
                self.assertEqual([resumed() for _ in range(2)], [0, 1])
        other = Authorities()
        self.addCleanup(shutil.rmtree, other.dir)
        os.rename(other.path('ca.pem'), files['ca'])
        end = time.monotonic() + 150  # libcurl may hold what it read for a minute, and a session of that minute lives as long
        while agent.refresh()['outcome'] != 'failed':
            self.assertLess(time.monotonic(), end, 'the old authorities are still trusted')
            time.sleep(.5)
        self.assertIn('tls.ca', agent.status()['last_error'])
        agent.stop()


class Renewals(Case):
    """Files of tls: that are replaced on the disk, while nginx keeps a connection of HTTP/2 open."""

    def begin_kept(self, more='', **keys):
        os.mkdir(self.path('tls'))
        for key, name in keys.items():
            shutil.copy(self.authorities.path(name), self.path(f'tls/{key}'))
        paths = {key: self.path(f'tls/{key}') for key in keys}
        self.nginx = Nginx(self, server=f'keepalive_timeout 1h; {more}', ssl=(self.authorities.path('good.pem'), self.authorities.path('good.key')))
        self.write('www/web.yaml', 'n: 1\n')
        self.agent = Agent(self, f"""agent: {{state_dir: {self.path('state')}, runtime_dir: {self.path('run')}}}
servers: {{main: {{urls: ["{self.nginx.url}"], tls: {{{', '.join(f'{k}: {v}' for k, v in paths.items())}}}}}}}
configs: {{web: {{from: [{{server: main, path: /web.yaml}}], file: {self.path('web.yaml')}, interval: 1h}}}}
""")

    def renew(self, **keys):
        for key, name in keys.items():
            shutil.copy(self.authorities.path(name), self.path('tls/new'))
            os.rename(self.path('tls/new'), self.path(f'tls/{key}'))

    def test_a_renewed_certificate_is_shown_at_the_next_pull(self):
        self.begin_kept(f'ssl_client_certificate {self.authorities.path("ca.pem")}; ssl_verify_client on;', ca='ca.pem', cert='stranger.pem', key='stranger.key')
        self.agent.log.wait('pull failed.*the server answered 400')
        self.assertIn('400', self.agent.refresh()['error'])  # the connection of this one is kept
        self.renew(key='good.key', cert='good.pem')
        self.assertEqual(self.agent.refresh()['outcome'], 'published')
        self.end(self.agent)

    def test_a_new_revocation_counts_at_the_next_pull(self):
        self.authorities.revocations('ca', 'none-revoked')
        self.begin_kept(ca='ca.pem', crl='none-revoked.pem')
        self.agent.log.wait('published config=web')
        self.assertEqual(self.agent.refresh()['outcome'], 'unchanged')  # the connection of this one is kept
        self.authorities.settings('revoked')
        self.authorities.openssl('ca', '-config', 'ca.cnf', '-cert', 'ca.pem', '-keyfile', 'ca.key', '-revoke', 'good.pem')
        self.authorities.openssl('ca', '-config', 'ca.cnf', '-cert', 'ca.pem', '-keyfile', 'ca.key', '-gencrl', '-out', 'revoked.pem')
        self.renew(crl='revoked.pem')
        self.assertIn('certificate revoked', self.agent.refresh()['error'])
        self.end(self.agent)


class Etcd(Case):
    """etcd with mutual TLS: pulls and the watch."""

    def setUp(self):
        super().setUp()
        self.etcd = etcd.Etcd(self, tls='mutual')  # ca.pem, server.pem, client.pem in the test's directory
        self.etcd.put('/app/web.yaml', 'n: 1\n')

    def begin_etcd(self, cert=None, wait='published config=web generation=1', **kw):
        certificate = f', cert: {cert}.pem, key: {cert}.key' if cert else ''
        return self.begin(f'kind: etcd, urls: ["{self.etcd.url}"], watch: true, tls: {{ca: {self.path("ca.pem")}{certificate}}}', '/app/web.yaml', wait=wait,
                          **kw)

    def test_without_or_with_another_certificate_it_is_refused(self):
        for cert, words in ((None, 'wants a certificate of this host|it may want a certificate|tls.cert'), (self.authorities.path('stranger'), 'tls.cert'),
                            (self.authorities.path('expired'), 'tls.cert')):
            with self.subTest(cert=cert):
                self.begin_etcd(cert, wait=None)
                self.fails_at_first('unreachable', words + '|reset by peer|Broken pipe')
                self.watching('failing')
                self.assertRegex(self.agent.status()['watch']['error'], words + '|reset by peer|Broken pipe')
                self.end(self.agent)
        self.begin_etcd(self.path('client'))
        self.watching()

    def test_its_certificate_changes_while_the_agent_is_connected(self):
        self.begin_etcd(self.path('client'))
        self.watching()
        self.confirms()
        for name in ('pem', 'key'):
            shutil.copy(self.path(f'server.{name}'), self.path(f'kept.{name}'))
            shutil.copy(self.authorities.path(f'stranger.{name}'), self.path(f'server.{name}'))
        self.etcd.restart(0, wait=False)
        self.until(lambda: self.agent.refresh()['outcome'] == 'failed' and 'tls.ca' in self.agent.status()['last_error'], 'the refusal')
        self.fails('unreachable', "name the authority that signed the server's certificate in tls.ca")
        self.until(lambda: 'tls.ca' in (self.agent.status()['watch']['error'] or ''), 'the refusal of the watch')
        self.assertEqual((self.standing(), self.agent.status()['generation']), ('n: 1\n', 1))
        for name in ('pem', 'key'):
            shutil.copy(self.path(f'kept.{name}'), self.path(f'server.{name}'))
        self.etcd.restart(0)
        revision = self.etcd.put('/app/web.yaml', 'n: 2\n')
        self.stands(str(revision))
        self.watching()
        self.stands(str(self.etcd.put('/app/web.yaml', 'n: 3\n')))
        self.assertEqual(self.standing(), 'n: 3\n')


if __name__ == '__main__':
    harness.main()
