"""The servers that other tests believe: each documented behaviour and each fault once, by plain http.client; and wrong requests are refused."""
import base64
import gzip
import hashlib
import hmac
import http.client
import json
import os
import re
import subprocess
import sys
import threading
import time
import urllib.parse
import xml.etree.ElementTree

import botocore.auth
import botocore.awsrequest
import botocore.credentials

import etcd
import harness
from servers import s3 as sigv4
from servers.apollo import Apollo
from servers.consul import Consul, go_duration
from servers.lagging import Lagging
from servers.nacos import Nacos
from servers.proxy import Proxy
from servers.s3 import S3
from servers.spring import Spring

HERE = os.path.dirname(os.path.abspath(__file__))


class Got:
    def __init__(self, response):
        self.status, self.headers, self.body = response.status, response.headers, response.read()

    @property
    def text(self):
        return self.body.decode()

    @property
    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f'{self.status} {dict(self.headers)} {self.body[:500]}'


def ask(server, target, method='GET', headers=None, body=None, timeout=harness.DEADLINE):
    connection = http.client.HTTPConnection('127.0.0.1', server.port, timeout=timeout)
    try:
        connection.request(method, target, body, headers or {})
        return Got(connection.getresponse())
    finally:
        connection.close()


class Later:
    """A request in a thread of its own: what it got, or how it failed, when it is asked for."""

    def __init__(self, *args, **kw):
        self.got = self.error = None
        self.thread = threading.Thread(target=self._run, args=args, kwargs=kw, daemon=True)
        self.thread.start()

    def _run(self, *args, **kw):
        try:
            self.got = ask(*args, **kw)
        except (OSError, http.client.HTTPException) as e:
            self.error = e

    @property
    def result(self):
        self.thread.join(harness.DEADLINE)
        if self.error:
            raise self.error
        return self.got


class Case(harness.Case):
    def refused(self, status, *args, **kw):
        got = ask(*args, **kw)
        self.assertEqual(got.status, status, got)
        return got


class Ground(Case):
    """What all of them can."""

    def test_requests_are_recorded_whole(self):
        server = Lagging(self)
        ask(server, '/a%20b?x=1&y', headers={'X-Zone': 'eu'})
        ask(server, '/p', 'PUT', body=b'text')
        first, second = server.wait_answered(2)
        self.assertEqual((first.method, first.path, first.query, first.headers['x-zone'], first.status), ('GET', '/a b', [('x', '1'), ('y', '')], 'eu', 404))
        self.assertEqual((second.method, second.body, second.status), ('PUT', b'text', 405))
        self.assertEqual((server.count, server.connections), (2, 2))
        self.assertLess(first.time, second.time)

    def test_faults_happen_as_often_and_where_they_should(self):
        server = Lagging(self)
        server.put('/a', b'0123456789')
        once = server.fault(status=503, headers={'Retry-After': '7'}, body=b'later')
        got = ask(server, '/a')
        self.assertEqual((got.status, got.headers['Retry-After'], got.body, once.hits), (503, '7', b'later', 1))
        self.assertEqual(ask(server, '/a').status, 200)
        server.fault(times=None, when=lambda r: r.path == '/a', reset=True)
        with self.assertRaises(OSError):
            ask(server, '/a')
        self.assertEqual(ask(server, '/b').status, 404)
        server.clear_faults()
        server.fault(cut=4)
        with self.assertRaises(http.client.IncompleteRead) as e:
            ask(server, '/a')
        self.assertEqual(e.exception.partial, b'0123')
        server.fault(raw=b'SSH-2.0\r\n')
        with self.assertRaises(http.client.BadStatusLine):
            ask(server, '/a')
        server.fault(change=lambda answer: answer.headers.pop('ETag'))
        self.assertNotIn('ETag', ask(server, '/a').headers)
        begin = time.monotonic()
        server.fault(delay=0.2)
        self.assertEqual(ask(server, '/a').status, 200)
        self.assertGreaterEqual(time.monotonic() - begin, 0.2)

    def test_a_request_that_hangs_ends_with_its_client_or_its_server(self):
        server = Lagging(self)
        server.fault(times=2, hang=True)
        with self.assertRaises(TimeoutError):
            ask(server, '/a', timeout=0.1)
        server.wait_holding(0)  # the server has seen it go
        self.assertEqual(server.wait_answered(1)[0].status, 0)
        held = Later(server, '/a')
        server.wait_holding(1)
        server.drop()
        with self.assertRaises((OSError, http.client.HTTPException)):
            held.result  # pylint: disable=pointless-statement

    def test_down_and_up_again_on_the_same_port_with_the_same_state(self):
        server = Lagging(self)
        server.put('/a', 'one')
        server.down()
        with self.assertRaises(ConnectionRefusedError):
            ask(server, '/a')
        server.up()
        self.assertEqual(ask(server, '/a').body, b'one')

    def test_by_hand(self):
        for name, call, target in (('consul', 'put k {"a":1}', '/v1/kv/k?raw'), ('nacos', 'put k a:1', '/nacos/v1/cs/configs?dataId=k&group=DEFAULT_GROUP'),
                                   ('apollo', 'put application \'{"a": "1"}\'', '/configs/app/default/application'),
                                   ('spring', 'put web \'{"a": 1}\'', '/web/default'), ('lagging', 'put /k v', '/k'), ('s3', 'put b k v', '/b/k')):
            with self.subTest(name=name):
                process = subprocess.Popen([sys.executable, os.path.join(HERE, 'servers', name + '.py'), '--port', '0'], stdin=subprocess.PIPE,
                                           stdout=subprocess.PIPE, text=True)
                try:
                    url = process.stdout.readline()
                    process.stdin.write(call + '\n')
                    process.stdin.flush()
                    process.stdout.readline()  # what the call returned: it has been made
                    connection = http.client.HTTPConnection('127.0.0.1', int(re.search(r':(\d+)$', url)[1]))
                    connection.request('GET', target)
                    self.assertEqual(connection.getresponse().status, 403 if name == 's3' else 200)
                    connection.close()
                finally:
                    process.kill()
                    process.communicate()


class ConsulServer(Case):
    def setUp(self):
        super().setUp()
        self.server = Consul(self)

    def get(self, target, **kw):
        return ask(self.server, '/v1/kv/' + target, **kw)

    def index(self, target):
        return int(self.get(target).headers['X-Consul-Index'])

    def block(self, target):
        held = Later(self.server, '/v1/kv/' + target)
        self.server.wait_holding(1)
        return held

    def test_forms_of_a_read(self):
        s = self.server
        s.put_all({'app/': None, 'app/web.yaml': 'a: <1>', 'app/sub/x': b'\0\xff', 'apple': 'no'}, flags=3)
        got = self.get('app/web.yaml')
        self.assertEqual(got.json, [{'LockIndex': 0, 'Key': 'app/web.yaml', 'Flags': 3, 'Value': base64.b64encode(b'a: <1>').decode(),
                                     'CreateIndex': s.index, 'ModifyIndex': s.index}])
        self.assertEqual((got.headers['Content-Type'], got.headers['X-Consul-Index'], got.headers['X-Consul-KnownLeader'], got.headers['X-Consul-LastContact']),
                         ('application/json', str(s.index), 'true', '0'))
        raw = self.get('app/sub/x?raw')
        self.assertEqual((raw.body, raw.headers['Content-Type'], raw.headers['X-Consul-Index']), (b'\0\xff', 'text/plain', str(s.index)))
        self.assertEqual([(e['Key'], e['Value'] is None) for e in self.get('app/?recurse').json],
                         [('app/', True), ('app/sub/x', False), ('app/web.yaml', False)])
        self.assertEqual(self.get('app/?keys').json, ['app/', 'app/sub/x', 'app/web.yaml'])
        self.assertEqual(self.get('app/?keys&separator=/').json, ['app/', 'app/sub/', 'app/web.yaml'])
        self.assertEqual(self.get('?keys').json[-1], 'apple')
        self.assertIn('    "Key": "apple"', self.get('apple?pretty').text)
        missing = self.get('none')
        self.assertEqual((missing.status, missing.body, missing.headers['X-Consul-Index']), (404, b'', str(s.index)))
        self.assertEqual(self.get('none/?recurse').status, 404)
        self.assertEqual(self.get('none/?keys').status, 404)

    def test_keys_and_large_values_as_go_writes_them(self):
        self.server.put('a&b <ü>', 'x' * 3000)
        got = self.get(urllib.parse.quote('a&b <ü>'), headers={'Accept-Encoding': 'gzip'})
        self.assertEqual((got.headers['Content-Encoding'], got.headers['Transfer-Encoding']), ('gzip', 'chunked'))
        text = gzip.decompress(got.body).decode()
        self.assertIn('"Key":"a\\u0026b \\u003cü\\u003e"', text)
        self.assertEqual(json.loads(text)[0]['Key'], 'a&b <ü>')
        self.assertNotIn('Content-Encoding', self.get(urllib.parse.quote('a&b <ü>')).headers)

    def test_a_blocking_read_ends_with_the_change_of_that_key(self):
        s = self.server
        s.put('app/a', '1')
        held = self.block(f'app/a?index={self.index("app/a")}&wait=1m')
        s.put('app/b', '1')
        s.put('app/a', '1')  # as it was: no write
        s.still_holding()
        s.put('app/a', '2')
        self.assertEqual((held.result.json[0]['Value'], held.result.headers['X-Consul-Index']), (base64.b64encode(b'2').decode(), str(s.index)))
        self.assertEqual(s.requests[-1].hold > 60, True)
        self.assertLess(s.requests[-1].hold, 60 * 17 / 16 + 0.01)

    def test_a_blocking_list_ends_with_any_change_below_it(self):
        s = self.server
        s.put_all({'app/a': '1', 'app/b': '1', 'other': '1'})
        for change in (lambda: s.put('app/c', '1'), lambda: s.delete('app/a')):
            held = self.block(f'app/?recurse&index={self.index("app/?recurse")}')
            s.put('other', str(time.monotonic()))
            s.still_holding()
            change()
            self.assertEqual(int(held.result.headers['X-Consul-Index']), s.index)

    def test_at_the_end_of_the_wait_the_index_is_the_same(self):
        self.server.put('a', '1')
        index, begin = self.index('a'), time.monotonic()
        got = self.get(f'a?index={index}&wait=200ms')
        self.assertEqual((got.status, got.headers['X-Consul-Index']), (200, str(index)))
        self.assertGreaterEqual(time.monotonic() - begin, 0.2)

    def test_wait_is_capped_and_has_a_default(self):
        self.server.put('a', '1')
        for wait, least, most in (('&wait=1h', 600, 600 * 17 / 16), ('', 300, 300 * 17 / 16), ('&wait=0', 300, 300 * 17 / 16), ('&wait=-5s', 300, 300 * 17 / 16)):
            held = self.block(f'a?index={self.server.index}{wait}')
            self.assertGreaterEqual(self.server.requests[-1].hold, least)
            self.assertLessEqual(self.server.requests[-1].hold, most)
            self.server.wake()
            self.assertEqual(held.result.status, 200)
        self.assertEqual([go_duration(t) for t in ('1m30s', '0', '1.5h', '250ms', '.5s', '2us')], [90, 0, 5400, 0.25, 0.5, 2e-6])

    def test_index_0_never_blocks_and_a_lower_index_answers_at_once(self):
        s = self.server
        s.put('a', '1')
        s.put('a', '2')
        for index in ('', '0', '1', str(s.index - 1)):
            self.assertEqual(self.get(f'a?wait=1m&index={index}').headers['X-Consul-Index'], str(s.index))

    def test_a_missing_key_waits_until_it_comes(self):
        s = self.server
        s.put('other', '1')
        held = self.block(f'a?index={self.index("a")}')
        s.put('other', '2')
        s.still_holding()
        s.put('a', '1')
        self.assertEqual(held.result.status, 200)
        s.not_found_sticks = False  # older servers
        held = self.block(f'none?index={self.index("none")}')
        s.put('other', '3')
        self.assertEqual((held.result.status, held.result.headers['X-Consul-Index']), (404, str(s.index)))

    def test_a_deleted_key_is_a_404_with_a_higher_index(self):
        s = self.server
        s.put('a', '1')
        held = self.block(f'a?index={s.index}')
        s.delete('a')
        self.assertEqual((held.result.status, int(held.result.headers['X-Consul-Index'])), (404, s.index))

    def test_a_spurious_wake_up(self):
        self.server.put('a', '1')
        held = self.block(f'a?index={self.server.index}')
        self.server.wake()
        self.assertEqual((held.result.status, held.result.headers['X-Consul-Index']), (200, str(self.server.index)))

    def test_a_restore_takes_the_index_back_and_who_waits_gets_the_old_one(self):
        s = self.server
        s.put('a', '1')
        backup = s.snapshot()
        for i in range(5):
            s.put('a', f'new {i}')
        high = s.index
        held = self.block(f'a?index={high}')
        s.restore(backup)
        self.assertEqual(held.result.headers['X-Consul-Index'], str(high))
        self.assertEqual((self.index('a'), self.get('a?raw').body), (high - 5, b'1'))
        held = self.block(f'a?index={high}')  # a client that does not look misses this write
        s.put('a', 'missed')
        s.still_holding()
        s.wake()
        self.assertLess(int(held.result.headers['X-Consul-Index']), high)
        s.restore(backup, new_cluster=False)
        self.assertGreater(s.put('a', '2'), high - 5)

    def test_a_list_index_goes_back_when_tombstones_go(self):
        s = self.server
        s.put('app/a', '1')
        low = s.index
        s.put('app/b', '1')
        s.delete('app/b')
        self.assertEqual(self.index('app/?recurse'), s.index)
        s.reap_tombstones()
        self.assertEqual(self.index('app/?recurse'), low)

    def test_index_headers_of_broken_servers(self):
        self.server.put('a', '1')
        for text in ('0', 'soon', '18446744073709551616'):
            self.server.index_header = text
            self.assertEqual(self.get('a').headers['X-Consul-Index'], text)
        self.server.index_header = ''
        self.assertNotIn('X-Consul-Index', self.get('a').headers)

    def test_tokens(self):
        s = self.server
        s.put_all({'app/a': '1', 'secret/a': '1'})
        s.allow('reader', read=['app/'])
        for headers in ({'X-Consul-Token': 'reader'}, {'Authorization': 'Bearer reader'}, {'Authorization': 'bearer  reader'}):
            self.assertEqual(self.get('app/a', headers=headers).status, 200)
        self.assertEqual(self.get('app/a?token=reader').status, 200)
        for headers in ({}, {'X-Consul-Token': 'reader'}, {'Authorization': 'Basic reader'}, {'Authorization': 'reader'}):
            got = self.refused(403, s, '/v1/kv/secret/a', headers=headers)
            self.assertRegex(got.text, "^Permission denied: token with AccessorID '.*' lacks permission 'key:read' on \"secret/a\"$")
        self.assertEqual(self.refused(403, s, '/v1/kv/app/a', headers={'X-Consul-Token': 'none'}).text, 'ACL not found')
        listed = self.get('?recurse', headers={'X-Consul-Token': 'reader'})
        self.assertEqual(([e['Key'] for e in listed.json], listed.headers['X-Consul-Results-Filtered-By-ACLs']), (['app/a'], 'true'))
        self.assertEqual(self.get('?recurse').status, 404)
        self.refused(403, s, '/v1/kv/app/a', 'PUT', {'X-Consul-Token': 'reader'}, b'x')
        s.allow('', read=['app/'])
        self.assertEqual(self.get('app/a').status, 200)

    def test_writes(self):
        s = self.server
        self.assertEqual(ask(s, '/v1/kv/a?flags=7', 'PUT', body=b'one').text, 'true')
        self.assertEqual((self.get('a?raw').body, self.get('a').json[0]['Flags']), (b'one', 7))
        self.assertEqual(ask(s, '/v1/kv/a?cas=1', 'PUT', body=b'two').text, 'false')
        self.assertEqual(ask(s, f'/v1/kv/a?cas={s.index}', 'PUT', body=b'two').text, 'true')
        self.refused(413, s, '/v1/kv/a', 'PUT', body=b'x' * (512 * 1024 + 1))
        self.assertEqual(ask(s, '/v1/kv/?recurse', 'DELETE').text, 'true')
        self.assertEqual(self.get('a').status, 404)

    def test_no_leader_and_stale_reads(self):
        s = self.server
        s.put('a', 'old')
        s.follower = s.snapshot()
        s.put('a', 'new')
        s.last_contact_ms = 1500
        self.assertEqual((self.get('a?raw&stale').body, self.get('a?raw').body, self.get('a?raw&consistent').body), (b'old', b'new', b'new'))
        self.assertEqual((self.get('a?stale').headers['X-Consul-LastContact'], self.get('a').headers['X-Consul-LastContact']), ('1500', '0'))
        s.leader = False
        self.assertEqual(self.refused(500, s, '/v1/kv/a').text, 'No cluster leader')
        self.assertEqual(self.refused(500, s, '/v1/kv/a?consistent').text, 'No cluster leader')
        self.assertEqual(self.get('a?stale').headers['X-Consul-KnownLeader'], 'false')
        self.assertEqual(ask(s, '/v1/status/leader').text, '')

    def test_rate_limits(self):
        self.server.limited = 'elsewhere'
        self.assertRegex(self.refused(429, self.server, '/v1/kv/a').text, 'rate limit exceeded')
        self.server.limited = 'later'
        self.assertRegex(self.refused(503, self.server, '/v1/kv/a').text, 'rate limit exceeded')

    def test_what_the_server_refuses(self):
        s = self.server
        s.put('a', '1')
        for target, status, text in (
                ('/v1/kv/a?wait=5&index=1', 400, 'Invalid wait time'), ('/v1/kv/a?wait=5min', 400, 'Invalid wait time'), ('/v1/kv/a?index=-1', 400, 'Invalid index'),
                ('/v1/kv/a?index=x', 400, 'Invalid index'), ('/v1/kv/a?index=18446744073709551616', 400, 'Invalid index'),
                ('/v1/kv/a?stale&consistent', 400, 'conflicting semantics'), ('/v1/kv/', 400, 'Missing key name'), ('/v1/kv/a?dc=dc9', 500, 'No path to datacenter'),
                ('/v1/kv/a%01', 400, 'Bad Request'), ('/v1/kv/a?x=%zz', 500, ''), ('/v1/kv/a?max_stale=1', 400, 'Invalid max_stale'),
                ('/v2/kv/a', 404, "starts with '/v1/'"), ('/v1/kw/a', 404, 'not a recognized HTTP API endpoint')):
            with self.subTest(target=target):
                self.assertIn(text, self.refused(status, s, target).text)
        self.assertEqual(self.refused(301, s, '/v1/kv//a?raw').headers['Location'], '/v1/kv/a?raw')
        self.assertEqual(self.refused(301, s, '/v1/kv/x/../a').headers['Location'], '/v1/kv/a')
        self.assertIn('PUT', self.refused(405, s, '/v1/kv/a', 'POST', body=b'x').headers['Allow'])
        self.assertEqual(self.get('a?dc=dc1').status, 200)
        s.strict_keys = True
        s.put_all({'web.yaml': '1', 'web.json': '1'})
        self.assertEqual(self.get('web.yaml').status, 200)
        self.assertIn('suspicious file extension', self.refused(400, s, '/v1/kv/web.json').text)
        self.assertIn('invalid character', self.refused(400, s, '/v1/kv/a%20b').text)


class NacosServer(Case):
    CONFIGS = '/nacos/v1/cs/configs'

    def setUp(self):
        super().setUp()
        self.server = Nacos(self)

    def get(self, data_id, more='', **kw):
        return ask(self.server, f'{self.CONFIGS}?dataId={data_id}&group=DEFAULT_GROUP{more}', **kw)

    @staticmethod
    def listening(*entries, decodings=2):
        """Listening-Configs of (dataId, group, md5[, tenant]), encoded as often as the server decodes."""
        text = ''.join('\x02'.join(e) + '\x01' for e in entries)
        for _ in range(decodings):
            text = urllib.parse.quote_plus(text)
        return f'Listening-Configs={text}'

    def listen(self, body, timeout='30000', later=False, **headers):
        all_headers = {'Content-Type': 'application/x-www-form-urlencoded', **{k.replace('_', '-'): v for k, v in headers.items()}}
        if timeout is not None:
            all_headers['Long-Pulling-Timeout'] = timeout
        return (Later if later else ask)(self.server, self.CONFIGS + '/listener', 'POST', all_headers, body)

    def test_a_read(self):
        md5 = self.server.put('web.yaml', 'a: ü\n', kind='yaml')
        got = self.get('web.yaml')
        self.assertEqual((got.status, got.body), (200, 'a: ü\n'.encode()))
        self.assertEqual((got.headers['Content-MD5'], got.headers['Config-Type']), (hashlib.md5(got.body).hexdigest(), 'yaml'))
        self.assertEqual(md5, got.headers['Content-MD5'])
        self.assertEqual((got.headers['Pragma'], got.headers['Cache-Control']), ('no-cache', 'no-cache,no-store'))
        self.assertRegex(got.headers['Last-Modified'], 'GMT$')
        self.assertEqual(got.headers['Transfer-Encoding'], 'chunked')
        self.server.put('web.yaml', 'other', tenant='ns-1')
        self.assertEqual((self.get('web.yaml', '&tenant=ns-1').body, self.get('web.yaml', '&tenant=public').status), (b'other', 200))

    def test_refused_reads(self):
        self.server.put('a', '1')
        self.assertEqual(self.refused(404, self.server, self.CONFIGS + '?dataId=none&group=DEFAULT_GROUP').text, 'config data not exist\n')
        for query in ('group=g', 'dataId=a', 'dataId=a%2fb&group=g', 'dataId=&group=g', 'dataId=a&group=g&tenant=x/y', 'dataId=a&group=g&tenant=' + 'x' * 129):
            self.refused(400, self.server, f'{self.CONFIGS}?{query}')
        self.server.dump('a')
        self.assertEqual(self.refused(409, self.server, self.CONFIGS + '?dataId=a&group=DEFAULT_GROUP').text,
                         'requested file is being modified, please try later.\n')
        self.server.dump('a', on=False)
        self.assertEqual(self.get('a').status, 200)
        self.refused(404, self.server, '/v1/cs/configs?dataId=a&group=DEFAULT_GROUP')  # without the context path
        self.refused(405, self.server, self.CONFIGS + '/listener')
        self.refused(404, self.server, '/nacos/v3/client/cs/config?dataId=a&groupName=DEFAULT_GROUP')  # no server of 3.x

    def test_the_digest_may_be_wrong_or_missing(self):
        self.server.put('a', '1')
        self.server.content_md5 = '0' * 32
        self.assertEqual(self.get('a').headers['Content-MD5'], '0' * 32)
        self.server.content_md5 = ''
        self.assertNotIn('Content-MD5', self.get('a').headers)

    def test_the_listener_answers_at_once_what_differs(self):
        md5 = self.server.put('a', '1')
        self.server.put('b', '1', tenant='ns-1')
        got = self.listen(self.listening(('a', 'DEFAULT_GROUP', md5), ('b', 'DEFAULT_GROUP', '', 'ns-1')))
        self.assertEqual(got.text, 'b%02DEFAULT_GROUP%02ns-1%01\n')
        got = self.listen(self.listening(('a', 'DEFAULT_GROUP', 'old'), ('none', 'DEFAULT_GROUP', 'old')))
        self.assertEqual(urllib.parse.unquote_plus(got.text), 'a\x02DEFAULT_GROUP\x01none\x02DEFAULT_GROUP\x01\n')

    def test_the_listener_is_held_until_a_change(self):
        md5 = self.server.put('a', '1')
        held = self.listen(self.listening(('a', 'DEFAULT_GROUP', md5), ('none', 'DEFAULT_GROUP', '')), later=True)
        self.server.wait_holding(1)
        self.server.put('c', '1')
        self.server.put('a', '1')  # the same content
        self.server.still_holding()
        self.assertEqual(self.server.requests[-1].hold, 29.5)
        self.server.put('a', '2')
        self.assertEqual(held.result.text, 'a%02DEFAULT_GROUP%01\n')
        for change in (lambda: self.server.put('none', '1'), lambda: self.server.delete('none')):
            md5 = self.server.configs[('none', 'DEFAULT_GROUP', '')].md5 if self.server.configs.get(('none', 'DEFAULT_GROUP', '')) else ''
            held = self.listen(self.listening(('none', 'DEFAULT_GROUP', md5)), later=True)
            self.server.wait_holding(1)
            change()
            self.assertEqual(held.result.text, 'none%02DEFAULT_GROUP%01\n')

    def test_the_end_of_the_hold_is_an_empty_200(self):
        self.server.min_hold, begin = 0.2, time.monotonic()
        got = self.listen(self.listening(('a', 'g', '')), timeout='600')
        self.assertEqual((got.status, got.body), (200, b''))
        self.assertGreaterEqual(time.monotonic() - begin, 0.2)
        got = self.listen(self.listening(('a', 'g', '')), Long_Pulling_Timeout_No_Hangup='true')
        self.assertEqual((got.status, got.body, self.server.requests[-1].hold), (200, b'', None))
        self.server.min_hold = 10.0
        held = self.listen(self.listening(('a', 'g', '')), timeout='600', later=True)
        self.server.wait_holding(1)
        self.assertEqual(self.server.requests[-1].hold, 10.0)  # whatever less is asked for
        self.server.put('a', '1', group='g')
        self.assertEqual(held.result.status, 200)

    def test_without_the_timeout_header_the_answer_stands_in_headers(self):
        self.server.put('a', '1', group='g')
        got = self.listen(self.listening(('a', 'g', '')), timeout=None)
        self.assertEqual((got.body, got.headers['Probe-Modify-Response'], got.headers['Probe-Modify-Response-New']), (b'', 'a:g;', 'a%02g%01'))

    def test_the_parameter_is_decoded_twice(self):
        md5 = self.server.put('a+b', '1', group='g')
        self.assertEqual(self.listen(self.listening(('a+b', 'g', md5)), Long_Pulling_Timeout_No_Hangup='true').body, b'')
        # encoded once, the + is a blank in the end: another name, of which there is nothing
        self.assertEqual(self.listen(self.listening(('a+b', 'g', md5), decodings=1), Long_Pulling_Timeout_No_Hangup='true').text, 'a+b%02g%01\n')
        # without a special character once is enough
        self.server.put('plain', '1', group='g')
        self.assertEqual(self.listen(self.listening(('plain', 'g', ''), decodings=1)).text, 'plain%02g%01\n')

    def test_refused_listeners(self):
        good = self.listening(('a', 'g', ''))
        for body in ('', 'Listening-Configs=', 'Listening-Configs=a%5E2g%5E2md5%5E1', 'Listening-Configs=a%5E2g%5E2%5E1', self.listening(('a', 'g')),
                     self.listening(('a', 'g', 'm', 't', 'x')), 'Listening-Configs=a%02g%02', 'Listening-Configs=%25zz%02g%02%01',
                     self.listening(*[(f'a{i}', 'g', '') for i in range(10001)])):
            with self.subTest(body=body[:60]):
                self.assertEqual(self.listen(body).status, 400)
        self.assertEqual(self.listen(good, timeout='soon').status, 400)
        self.assertEqual(ask(self.server, self.CONFIGS + '/listener', 'POST', {'Content-Type': 'text/plain', 'Long-Pulling-Timeout': '30000'}, good).status, 400)
        self.server.literal_separators = True  # as the real one: nothing is listened to, and nobody says so
        self.assertEqual(self.listen('Listening-Configs=a%5E2g%5E2md5%5E1', Long_Pulling_Timeout_No_Hangup='true').body, b'')

    def test_overload_is_a_503_that_comes_late(self):
        self.server.overloaded, self.server.overload_delay, begin = True, (0.1, 0.2), time.monotonic()
        self.assertEqual(self.listen(self.listening(('a', 'g', ''))).status, 503)
        self.assertGreaterEqual(time.monotonic() - begin, 0.1)
        self.server.put('a', '1', group='g')
        self.assertEqual(self.listen(self.listening(('a', 'g', ''))).status, 200)  # what differs is told in spite of it

    def login(self, path='/nacos/v1/auth/login', name='me', password='pass&word'):
        return ask(self.server, path, 'POST', {'Content-Type': 'application/x-www-form-urlencoded'}, urllib.parse.urlencode({'username': name, 'password': password}))

    def test_login_tokens_and_their_end(self):
        self.server.put('a', '1')
        self.server.add_user('me', 'pass&word')
        self.server.add_user('other', 'x', allowed=False)
        got = self.login()
        self.assertEqual((got.status, got.json['tokenTtl'], got.json['username']), (200, 18000, 'me'))
        token = got.json['accessToken']
        self.assertEqual(got.headers['Authorization'], 'Bearer ' + token)
        self.assertEqual(self.get('a', '&accessToken=' + token).status, 200)
        self.assertEqual(self.get('a', headers={'Authorization': 'Bearer ' + token}).status, 200)
        for more, message in (('', 'user not found!'), ('&accessToken=x', 'token invalid!'),
                              ('&accessToken=' + self.login(name='other', password='x').json['accessToken'], 'authorization failed!')):
            got = self.get('a', more)
            self.assertEqual((got.status, got.json['message'], got.json['error']), (403, message, 'Forbidden'))
        self.assertEqual(self.listen(self.listening(('a', 'DEFAULT_GROUP', ''))).status, 403)
        self.assertEqual(self.login(password='wrong').status, 403)
        self.assertIn('User not found!', self.login(name='nobody').text)
        self.refused(400, self.server, '/nacos/v1/auth/login', 'POST', {'Content-Type': 'application/x-www-form-urlencoded'}, 'username=me')
        self.server.expire_tokens()
        self.assertEqual(self.get('a', '&accessToken=' + token).json['message'], 'token expired!')
        self.server.token_ttl = 0
        self.assertEqual(self.get('a', '&accessToken=' + self.login('/nacos/v1/auth/users/login').json['accessToken']).status, 403)
        self.server.forget_tokens()
        self.assertEqual(self.get('a', '&accessToken=' + token).json['message'], 'token invalid!')

    def test_version_3(self):
        s = self.server
        s.version, s.context = 3, '/conf'
        md5 = s.put('web.yaml', 'a: 1', kind='yaml')
        url = '/conf/v3/client/cs/config?dataId=web.yaml&groupName=DEFAULT_GROUP'
        for namespace in ('', '&namespaceId=', '&namespaceId=public'):
            got = ask(s, url + namespace).json
            self.assertEqual((got['code'], got['message'], got['data']['content'], got['data']['md5'], got['data']['contentType']), (0, 'success', 'a: 1', md5, 'yaml'))
        missing = ask(s, url + '&namespaceId=other')
        self.assertEqual((missing.status, missing.json), (200, {'code': 20004, 'message': 'resource not found', 'data': None}))
        self.assertEqual(self.refused(400, s, '/conf/v3/client/cs/config?dataId=web.yaml').json['code'], 10000)
        s.content_md5 = 'f' * 32
        self.assertEqual(ask(s, url).json['data']['md5'], 'f' * 32)
        s.v1 = False
        self.refused(410, s, '/conf/v1/cs/configs?dataId=web.yaml&group=DEFAULT_GROUP')
        s.add_user('me', 'pw')
        self.assertEqual(self.refused(403, s, url).json, {'code': 10001, 'message': 'access denied', 'data': 'user not found!'})
        token = self.login('/conf/v3/auth/user/login', password='pw').json['accessToken']
        self.assertEqual(ask(s, url + '&accessToken=' + token).status, 200)
        self.assertEqual(self.login('/conf/v3/auth/user/login', password='no').status, 403)


class ApolloServer(Case):
    def setUp(self):
        super().setUp()
        self.server = Apollo(self)

    @staticmethod
    def poll(known, more='', app='app', cluster='default'):
        text = json.dumps([{'namespaceName': n, 'notificationId': i} for n, i in known.items()]) if isinstance(known, dict) else known
        return f'/notifications/v2?appId={app}&cluster={cluster}&notifications={urllib.parse.quote(text)}{more}'

    def hold(self, *args):
        held = Later(self.server, self.poll(*args))
        self.server.wait_holding(1)
        return held

    def test_the_first_poll_answers_at_once_and_the_next_is_held(self):
        s = self.server
        _, number = s.put('application', {'a': '1'})
        got = ask(s, self.poll({'application': -1}))
        self.assertEqual(got.json, [{'namespaceName': 'application', 'notificationId': number, 'messages': {'details': {'app+default+application': number}}}])
        held = self.hold({'application': number, 'web.yml': -1})
        self.assertEqual(s.requests[-1].hold, 60.0)
        s.put('application', {'a': '1'}, app='other')
        s.still_holding()
        _, newer = s.put('web.yml', 'a: 1')
        self.assertEqual(held.result.json, [{'namespaceName': 'web.yml', 'notificationId': newer, 'messages': {'details': {'app+default+web.yml': newer}}}])

    def test_at_the_end_of_the_hold_304(self):
        self.server.hold_time, begin = 0.2, time.monotonic()
        got = ask(self.server, self.poll({'application': -1}))
        self.assertEqual((got.status, got.body), (304, b''))
        self.assertGreaterEqual(time.monotonic() - begin, 0.2)

    def test_names_are_answered_as_they_were_asked(self):
        _, number = self.server.put('FX.apollo', {'a': '1'})
        self.assertEqual(ask(self.server, self.poll({'fx.APOLLO': -1})).json[0]['namespaceName'], 'fx.APOLLO')
        self.assertEqual(ask(self.server, self.poll({'FX.apollo.properties': -1})).json[0]['namespaceName'], 'FX.apollo')
        held = self.hold({'fx.apollo': number})
        self.server.put('FX.apollo', {'a': '2'})
        self.assertEqual(held.result.json[0]['namespaceName'], 'fx.apollo')
        self.assertEqual(ask(self.server, '/configs/app/default/fx.apollo.properties').json['namespaceName'], 'fx.apollo.properties')

    def test_refused_polls(self):
        for target in (self.poll('not json'), self.poll('{}'), self.poll('[]'), self.poll('[{"notificationId":1}]'), self.poll('[1]')):
            self.assertIn('Invalid format of notifications', self.refused(400, self.server, target).json['message'])
        self.refused(400, self.server, '/notifications/v2?cluster=default&notifications=%5B%5D')
        self.refused(500, self.server, '/notifications/v2?appId=app&cluster=default')
        self.refused(404, self.server, '/notifications/v1')
        self.refused(404, self.server, '/configs/app/default')
        self.refused(400, self.server, '/configs/app/default/application', 'POST', body=b'')

    def test_a_read_and_304_for_its_release(self):
        key, _ = self.server.put('application', {'a': '1', 'b': 'ü'})
        got = ask(self.server, '/configs/app/default/application?ip=1.2.3.4')
        self.assertEqual(got.json, {'appId': 'app', 'cluster': 'default', 'namespaceName': 'application', 'configurations': {'a': '1', 'b': 'ü'}, 'releaseKey': key})
        self.assertEqual(ask(self.server, f'/configs/app/default/application?releaseKey={key}').status, 304)
        newer, _ = self.server.put('application', {'a': '2'})
        self.assertEqual(ask(self.server, f'/configs/app/default/application?releaseKey={key}').json['releaseKey'], newer)
        self.assertEqual(self.refused(404, self.server, '/configs/app/default/none').json['message'],
                         'Could not load configurations with appId: app, clusterName: default, namespace: none')
        self.server.put('web.yml', 'a: 1\n')
        self.assertEqual(ask(self.server, '/configs/app/default/web.yml').json['configurations'], {'content': 'a: 1\n'})
        self.server.delete('web.yml')
        self.refused(404, self.server, '/configs/app/default/web.yml')

    def test_clusters_and_data_centers(self):
        s = self.server
        s.put('application', {'a': 'default'})
        self.assertEqual(ask(s, '/configs/app/blue/application').json['cluster'], 'default')
        s.put('application', {'a': 'center'}, cluster='eu')
        got = ask(s, '/configs/app/blue/application?dataCenter=eu').json
        self.assertEqual((got['cluster'], got['configurations']['a']), ('eu', 'center'))
        s.put('application', {'a': 'blue'}, cluster='blue')
        self.assertEqual(ask(s, '/configs/app/blue/application?dataCenter=eu').json['configurations']['a'], 'blue')
        details = ask(s, self.poll({'application': -1}, '&dataCenter=eu', 'app', 'blue')).json[0]['messages']['details']
        self.assertEqual(set(details), {'app+default+application', 'app+eu+application', 'app+blue+application'})

    def test_a_public_namespace_lies_below_what_the_application_sets(self):
        s = self.server
        s.share('common', 'infra')
        shared, number = s.put('common', {'a': 'infra', 'b': 'infra'}, app='infra')
        self.assertEqual(ask(s, '/configs/app/default/common').json['releaseKey'], shared)
        own, _ = s.put('common', {'a': 'own'})
        got = ask(s, '/configs/app/default/common').json
        self.assertEqual((got['configurations'], got['releaseKey']), ({'a': 'own', 'b': 'infra'}, f'{own}+{shared}'))
        self.assertEqual(ask(s, f'/configs/app/default/common?releaseKey={own}%2B{shared}').status, 304)
        held = self.hold({'common': number + 1})
        s.put('common', {'a': 'new'}, app='infra')
        self.assertEqual(list(held.result.json[0]['messages']['details']), ['infra+default+common'])

    def test_a_server_that_lags_is_brought_up_by_messages(self):
        s = self.server
        s.put('application', {'a': '1'})
        s.lag()
        _, number = s.put('application', {'a': '2'})
        url = '/configs/app/default/application'
        self.assertEqual(ask(s, url).json['configurations'], {'a': '1'})
        self.assertEqual(ask(s, url + '?messages=nonsense').json['configurations'], {'a': '1'})
        details = urllib.parse.quote(json.dumps({'details': {'app+default+application': number}}))
        self.assertEqual(ask(s, f'{url}?messages={details}').json['configurations'], {'a': '2'})
        self.assertEqual(ask(s, url).json['configurations'], {'a': '2'})

    def test_ids_that_begin_anew_are_not_noticed_by_who_holds_higher_ones(self):
        s = self.server
        for i in range(5):
            _, number = s.put('application', {'a': str(i)})
        s.renumber()
        s.hold_time = 0.1
        self.assertEqual(ask(s, self.poll({'application': number})).status, 304)
        s.hold_time = 60
        held = self.hold({'application': number})
        s.put('application', {'a': 'new'})
        self.assertEqual(held.result.json[0]['notificationId'], 2)  # told, with an id lower than the client's

    def test_incremental_answers(self):
        s = self.server
        old, _ = s.put('application', {'a': '1', 'b': '1', 'c': '1'})
        s.incremental = True
        url = '/configs/app/default/application'
        self.assertEqual((ask(s, url).json['configurations'], ask(s, url).json['configSyncType']), ({'a': '1', 'b': '1', 'c': '1'}, None))
        key, _ = s.put('application', {'a': '1', 'b': '2', 'd': '1'})
        got = ask(s, f'{url}?releaseKey={old}').json
        self.assertEqual((got['configurations'], got['configSyncType'], got['releaseKey']), (None, 'IncrementalSync', key))
        self.assertEqual([(c['configurationChangeType'], c['key'], c['newValue']) for c in got['configurationChanges']],
                         [('ADDED', 'd', '1'), ('DELETED', 'c', None), ('MODIFIED', 'b', '2')])
        s.forget_releases()
        self.assertEqual(ask(s, f'{url}?releaseKey={old}').json['configurations'], {'a': '1', 'b': '2', 'd': '1'})

    def test_access_keys(self):
        s = self.server
        s.put('application', {'a': '1'})
        s.secrets['app'] = ['first', 'second']

        def headers(target, secret='second', shift=0, app='app'):
            stamp = str(int(time.time() * 1000) + shift)
            digest = hmac.new(secret.encode(), f'{stamp}\n{target}'.encode(), hashlib.sha1).digest()
            return {'Timestamp': stamp, 'Authorization': f'Apollo {app}:{base64.b64encode(digest).decode()}'}
        for target in ('/configs/app/default/application?releaseKey=a%2Bb&ip=', '/configs/app/default/application', self.poll({'application': -1})):
            self.assertEqual(ask(s, target, headers=headers(target)).status, 200)
            for wrong in (headers(target, 'third'), headers(target + '&x=1'), headers(target, app='other'), {'Timestamp': headers(target)['Timestamp']}):
                self.assertEqual(self.refused(401, s, target, headers=wrong).json['message'], 'Unauthorized')
            for skewed in (headers(target, shift=-61000), headers(target, shift=61000), {**headers(target), 'Timestamp': ''}, {}):
                self.assertEqual(self.refused(401, s, target, headers=skewed).json['message'], 'RequestTimeTooSkewed')
        # signed with seconds, as some do
        target = '/configs/app/default/application'
        self.refused(401, s, target, headers={**headers(target), 'Timestamp': str(int(time.time()))})


class SpringServer(Case):
    def setUp(self):
        super().setUp()
        self.server = Spring(self)

    def test_an_environment(self):
        s = self.server
        s.put('application', {'shared': True, 'level': 'low'})
        s.put('web', {'level': 'mid', 'n': 1, 'f': 1.5, 'hosts': ['a', {'b': 2}], 'none': None, 'empty': []})
        version = s.put('web', {'level': 'high'}, profile='prod')
        got = ask(s, '/web/prod').json
        self.assertEqual({k: got[k] for k in got if k != 'propertySources'},
                         {'name': 'web', 'profiles': ['prod'], 'label': None, 'version': version, 'state': None})
        self.assertEqual([p['name'].rsplit('/', 1)[1] for p in got['propertySources']], ['web-prod.yml', 'web.yml', 'application.yml'])
        self.assertEqual(got['propertySources'][1]['source'],
                         {'level': 'mid', 'n': 1, 'f': 1.5, 'hosts[0]': 'a', 'hosts[1].b': 2, 'none': '', 'empty': ''})
        s.put('web', {'level': 'test'}, profile='test')
        got = ask(s, '/web/prod,test').json
        self.assertEqual((got['profiles'], [p['name'].rsplit('/', 1)[1] for p in got['propertySources']][:2]), (['prod', 'test'], ['web-test.yml', 'web-prod.yml']))
        self.assertEqual(ask(s, '/web/default').json['propertySources'][0]['source']['n'], 1)

    def test_the_version_changes_with_the_content(self):
        s = self.server
        first = s.put('web', {'a': 1})
        self.assertEqual(ask(s, '/web/prod').json['version'], first)
        self.assertEqual(s.put('web', {'a': 1}), first)
        self.assertNotEqual(s.put('web', {'a': 2}), first)
        s.versions['main'] = None
        self.assertIsNone(ask(s, '/web/prod').json['version'])

    def test_labels(self):
        s = self.server
        s.put('web', {'a': 'branch'}, label='feature/x')
        got = ask(s, '/web/prod/feature(_)x').json
        self.assertEqual((got['label'], got['propertySources'][0]['source']), ('feature/x', {'a': 'branch'}))
        self.assertEqual(ask(s, '/web/prod/main').json['propertySources'], [])
        self.assertEqual(self.refused(404, s, '/web/prod/none').json['message'], 'No such label: none')
        self.refused(404, s, '/web/prod/feature/x')
        self.refused(400, s, '/web/prod/feature%2Fx')

    def test_an_unknown_application_is_empty_or_not_found(self):
        got = ask(self.server, '/none/prod')
        self.assertEqual((got.status, got.json['propertySources']), (200, []))
        self.server.accept_empty = False
        self.refused(404, self.server, '/none/prod')

    def test_basic_auth_a_prefix_and_a_broken_backend(self):
        s = self.server
        s.users, s.prefix = {'me': 'pass:word'}, '/config'
        good = {'Authorization': 'Basic ' + base64.b64encode(b'me:pass:word').decode()}
        self.assertEqual(ask(s, '/config/web/prod', headers=good).status, 200)
        for headers in ({}, {'Authorization': 'Basic ' + base64.b64encode(b'me:no').decode()}, {'Authorization': 'Bearer x'}, {'Authorization': 'Basic ?'}):
            got = self.refused(401, s, '/config/web/prod', headers=headers)
            self.assertEqual((got.headers['WWW-Authenticate'][:5], got.json['status']), ('Basic', 401))
        self.refused(404, s, '/web/prod', headers=good)
        self.refused(404, s, '/config/web-prod.yml', headers=good)
        self.refused(405, s, '/config/web/prod', 'POST', good, b'')
        s.broken = 'Could not fetch remote for main'
        got = self.refused(500, s, '/config/web/prod', headers=good)
        self.assertEqual((got.json['error'], got.json['message'], got.json['path']), ('Internal Server Error', s.broken, '/config/web/prod'))


class S3Server(Case):
    def setUp(self):
        super().setUp()
        self.server = S3(self)
        self.access, self.secret = next(iter(self.server.keys.items()))

    def sign(self, target, method='GET', headers=None, secret=None, region='us-east-1', token=None, access=None):
        """What botocore would send."""
        credentials = botocore.credentials.Credentials(access or self.access, secret or self.secret, token)
        request = botocore.awsrequest.AWSRequest(method, self.server.url + target, headers=headers or {})
        request.context['payload_signing_enabled'] = True
        botocore.auth.S3SigV4Auth(credentials, 's3', region).add_auth(request)
        return dict(request.headers.items())

    def get(self, target, method='GET', headers=None, **kw):
        return ask(self.server, target, method, self.sign(target, method, headers, **kw))

    def error(self, status, code, target, method='GET', headers=None, signed=None, **kw):
        got = self.refused(status, self.server, target, method, self.sign(target, method, headers, **kw) if signed is None else signed)
        found = xml.etree.ElementTree.fromstring(got.body)
        self.assertEqual((found.tag, found.findtext('Code'), got.headers['Content-Type']), ('Error', code, 'application/xml'), got)
        return got, found

    def test_the_example_of_the_documentation(self):
        headers = [('Host', 'examplebucket.s3.amazonaws.com'), ('Range', 'bytes=0-9'), ('x-amz-content-sha256', sigv4.EMPTY_SHA256), ('x-amz-date', '20130524T000000Z')]
        canonical = sigv4.canonical_request('GET', '/test.txt', '', headers, ['host', 'range', 'x-amz-content-sha256', 'x-amz-date'], sigv4.EMPTY_SHA256)
        self.assertEqual(sigv4.signature('wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY', '20130524T000000Z', '20130524/us-east-1/s3/aws4_request', canonical),
                         'f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41')

    def test_what_botocore_signs_is_accepted(self):
        for key in ('web.yaml', 'a/b//c.yaml', 'a b+c~d_e-f.(g)!*\'ü%.yaml', './x/../y', '=&?#'):
            etag = self.server.put('bucket', key, 'text of ' + key)
            target = '/bucket/' + urllib.parse.quote(key, safe='/~')
            got = self.get(target)
            self.assertEqual((got.status, got.text, got.headers['ETag']), (200, 'text of ' + key, etag), got)
            self.assertEqual(self.get(target, headers={'If-None-Match': etag}).status, 304)
            version = got.headers['x-amz-version-id']
            for query in (f'versionId={version}', f'versionId={version}&partNumber=1', f'versionId={version}&A=%20%2F&b='):
                self.assertEqual(self.get(f'{target}?{query}').text, 'text of ' + key)
        self.assertEqual(self.get('/bucket/web.yaml', headers={'X-Amz-Meta-Spaces': '  a   b  '}).status, 200)

    def test_conditions_head_and_versions(self):
        s = self.server
        etag = s.put('bucket', 'k', 'one', content_type='application/yaml')
        first = self.get('/bucket/k').headers['x-amz-version-id']
        head = self.get('/bucket/k', 'HEAD')
        self.assertEqual((head.status, head.body, head.headers['Content-Length'], head.headers['Content-Type']), (200, b'', '3', 'application/yaml'))
        self.assertEqual(self.get('/bucket/k', headers={'If-Modified-Since': head.headers['Last-Modified']}).status, 304)
        s.put('bucket', 'k', 'two')
        self.assertEqual((self.get('/bucket/k').text, self.get(f'/bucket/k?versionId={first}').text), ('two', 'one'))
        self.assertEqual(self.get('/bucket/k', headers={'If-None-Match': etag}).status, 200)
        self.error(412, 'PreconditionFailed', '/bucket/k', headers={'If-Match': etag})
        self.assertEqual(self.get('/bucket/k', headers={'If-None-Match': '*'}).status, 304)

    def test_what_is_missing(self):
        self.server.put('bucket', 'k', 'x')
        _, found = self.error(404, 'NoSuchKey', '/bucket/none')
        self.assertEqual(found.findtext('Key'), 'none')
        self.error(404, 'NoSuchBucket', '/none/k')
        self.error(404, 'NoSuchVersion', '/bucket/k?versionId=x')
        head = self.get('/bucket/none', 'HEAD')
        self.assertEqual((head.status, head.body), (404, b''))
        self.server.may_list = False
        self.error(403, 'AccessDenied', '/bucket/none')

    def test_wrong_signatures(self):
        self.server.put('bucket', 'a b', 'x')
        target = '/bucket/a%20b'
        good = self.sign(target)
        self.assertEqual(ask(self.server, target, headers=good).status, 200)
        self.error(403, 'SignatureDoesNotMatch', target, secret='wrong')
        self.error(403, 'SignatureDoesNotMatch', target + '?versionId=x', signed=good)
        self.error(403, 'SignatureDoesNotMatch', '/bucket/other', signed=good)
        self.error(403, 'SignatureDoesNotMatch', target, signed={**good, 'Authorization': good['Authorization'][:-1] + ('0' if good['Authorization'][-1] != '0' else '1')})
        head = self.refused(403, self.server, target, 'HEAD', good)  # another method than was signed
        self.assertEqual(head.body, b'')

    def test_what_must_be_there_and_be_signed(self):
        self.server.put('bucket', 'k', 'x')
        good = self.sign('/bucket/k')

        def without(name):
            return {k: v for k, v in good.items() if k.lower() != name}
        self.error(403, 'AccessDenied', '/bucket/k', signed={})
        self.error(400, 'InvalidRequest', '/bucket/k', signed=without('x-amz-content-sha256'))
        self.error(403, 'AccessDenied', '/bucket/k', signed=without('x-amz-date'))
        _, found = self.error(403, 'AccessDenied', '/bucket/k', signed={**good, 'x-amz-meta-more': '1'})
        self.assertEqual(found.findtext('HeadersNotSigned'), 'x-amz-meta-more')
        self.error(400, 'AuthorizationHeaderMalformed', '/bucket/k', signed={**good, 'Authorization': 'AWS4-HMAC-SHA256 Credential=x'})
        self.error(403, 'SignatureDoesNotMatch', '/bucket/k', signed={**good, 'X-Amz-Content-SHA256': 'UNSIGNED-PAYLOAD'})
        self.error(403, 'InvalidAccessKeyId', '/bucket/k', access='AKIDOTHER')
        self.server.denied.add(self.access)
        self.error(403, 'AccessDenied', '/bucket/k')
        self.server.denied.clear()
        self.refused(405, self.server, '/bucket/k', 'PUT', good, b'x')

    def test_the_clock(self):
        self.server.put('bucket', 'k', 'x')
        for shift in (-901, 901):
            self.server.clock = shift
            _, found = self.error(403, 'RequestTimeTooSkewed', '/bucket/k')
            self.assertEqual(found.findtext('MaxAllowedSkewMilliseconds'), '900000')
        self.server.clock = 890
        self.assertEqual(self.get('/bucket/k').status, 200)

    def test_session_tokens(self):
        s = self.server
        s.put('bucket', 'k', 'x')
        s.tokens[self.access] = 'session-1'
        self.assertEqual(self.get('/bucket/k', token='session-1').status, 200)
        self.error(400, 'InvalidToken', '/bucket/k')
        self.error(400, 'InvalidToken', '/bucket/k', token='other')
        self.error(403, 'AccessDenied', '/bucket/k', signed={**self.sign('/bucket/k'), 'X-Amz-Security-Token': 'session-1'})  # beside the signature
        s.expired_tokens.add('session-1')
        self.error(400, 'ExpiredToken', '/bucket/k', token='session-1')

    def test_regions_and_slow_down(self):
        s = self.server
        s.put('bucket', 'k', 'x')
        got, found = self.error(400, 'AuthorizationHeaderMalformed', '/bucket/k', region='eu-west-1')
        self.assertEqual(found.findtext('Region'), 'us-east-1')
        s.elsewhere['bucket'] = 'eu-west-1'
        got, found = self.error(301, 'PermanentRedirect', '/bucket/k')
        self.assertEqual((found.findtext('Endpoint'), found.findtext('Bucket'), got.headers['x-amz-bucket-region']), ('s3.eu-west-1.amazonaws.com', 'bucket', 'eu-west-1'))
        self.assertNotIn('Location', got.headers)
        s.elsewhere.clear()
        s.slow = True
        self.error(503, 'SlowDown', '/bucket/k')


class ProxyAndReplica(Case):
    def setUp(self):
        super().setUp()
        self.server = Lagging(self)
        self.server.put('/a', b'0123456789' * 100)

    def test_pass_hang_and_on_again(self):
        proxy = Proxy(self, self.server.port)
        self.assertEqual(len(ask(proxy, '/a').body), 1000)
        proxy.switch('hang')
        held = Later(proxy, '/a')
        proxy.wait_connections(2)
        with self.assertRaises(TimeoutError):
            ask(proxy, '/a', timeout=0.1)
        self.assertEqual(self.server.count, 1)
        proxy.switch('pass')
        self.assertEqual(held.result.status, 200)
        self.assertEqual(proxy.connections, 3)

    def test_delay(self):
        proxy = Proxy(self, self.server.port)
        proxy.switch('delay', delay_ms=100)
        begin = time.monotonic()
        self.assertEqual(len(ask(proxy, '/a').body), 1000)
        self.assertGreaterEqual(time.monotonic() - begin, 0.2)  # there and back

    def test_cut_and_refuse(self):
        proxy = Proxy(self, self.server.port)
        proxy.switch('cut', after=200)
        with self.assertRaises((ConnectionResetError, http.client.IncompleteRead)):
            ask(proxy, '/a')
        self.assertEqual(proxy.cuts, 1)
        proxy.switch('pass')
        self.server.fault(hang=True)
        held = Later(proxy, '/a')
        self.server.wait_holding(1)
        proxy.switch('refuse')
        with self.assertRaises((OSError, http.client.HTTPException)):
            held.result  # pylint: disable=pointless-statement
        self.assertEqual(proxy.open, 0)
        with self.assertRaises(ConnectionRefusedError):
            ask(proxy, '/a')
        proxy.switch('pass')
        self.assertEqual(ask(proxy, '/a').status, 200)

    def test_a_server_that_is_down_behind_it(self):
        proxy = Proxy(self, self.server.port)
        self.server.down()
        with self.assertRaises((OSError, http.client.HTTPException)):
            ask(proxy, '/a')

    def test_a_replica_shows_the_version_before_for_a_while(self):
        late = Lagging(self, store=self.server.store, lag=0.3)
        late.freeze()
        old = self.server.put('/b', 'one')
        self.assertEqual(ask(late, '/b').status, 404)
        late.freeze(False)
        begin = time.monotonic()
        while ask(late, '/b').status == 404:
            self.assertLess(time.monotonic() - begin, harness.DEADLINE)
        new = self.server.put('/b', 'two')
        self.assertEqual((ask(self.server, '/b').headers['ETag'], ask(late, '/b').headers['ETag']), (new, old))
        self.assertEqual(ask(late, '/b', headers={'If-None-Match': f'"x", W/{old}'}).status, 304)
        late.lag = 0
        self.assertEqual(ask(late, '/b', headers={'If-None-Match': old}).body, b'two')
        self.server.put('/b', None)
        self.assertEqual(ask(self.server, '/b').status, 404)


class RealEtcd(Case):
    def test_one_member_with_users_and_its_backup(self):
        e = etcd.Etcd(self)
        self.assertIsNone(e.get('a'))
        first = e.put('app/a', 'one')
        self.assertEqual(e.put_all({'app/b': 'two', 'c': b'\0\xff'}), first + 1)
        self.assertEqual(e.get('app/', prefix=True), {'app/a': b'one', 'app/b': b'two'})
        backup, cluster = e.save(), e.cluster_id()
        self.assertEqual(e.delete('app/', prefix=True), first + 2)
        e.compact()
        status, answer = e.request('POST', '/v3/kv/range', {'key': etcd.b64('c'), 'revision': str(first)})
        self.assertEqual((status, answer['code']), (400, 11))
        e.restart(0)
        self.assertEqual((e.get('app/a'), e.revision()), (None, first + 2))
        e.restore(backup)
        self.assertEqual((e.get('app/a'), e.revision(), e.cluster_id()), (b'one', first + 1, cluster))
        e.restore(backup, new_token=True)
        self.assertNotEqual(e.cluster_id(), cluster)
        e.enable_auth(users={'reader': ('secret', ['app/'])})
        self.assertEqual(e.request('POST', '/v3/kv/range', {'key': etcd.b64('c')})[0], 400)
        token = e.authenticate('reader')
        self.assertEqual(e.request('POST', '/v3/kv/range', {'key': etcd.b64('app/a')}, token=token)[0], 200)
        self.assertEqual(e.request('POST', '/v3/kv/range', {'key': etcd.b64('c')}, token=token)[1]['code'], 7)
        self.assertEqual(e.request('POST', '/v3/kv/range', {'key': etcd.b64('c')}, token='x')[0], 401)
        e.set_password('reader', 'new')
        self.assertEqual(e.request('POST', '/v3/auth/authenticate', {'name': 'reader', 'password': 'secret'})[0], 400)
        self.assertEqual(e.call('kv/range', {'key': etcd.b64('app/a')}, user='reader')['count'], '1')

    def test_three_members_one_killed_one_stopped(self):
        e = etcd.Etcd(self, members=3)
        e.put('a', 'one')
        killed = e.kill_leader()
        e.put('a', 'two')
        e.restart(killed)
        self.assertEqual(e.get('a', member=e.members[killed]), b'two')
        e.pause(killed)
        with self.assertRaises(TimeoutError):
            e.request('POST', '/v3/kv/range', {'key': etcd.b64('a')}, member=e.members[killed], timeout=0.2)
        e.resume(killed)
        self.assertEqual(e.get('a', member=e.members[killed]), b'two')
        e.stop(killed)
        with self.assertRaises(ConnectionRefusedError):
            e.request('GET', '/health', member=e.members[killed])
        self.assertEqual(len(set(e.urls)), 3)

    def test_tls(self):
        e = etcd.Etcd(self, tls='mutual')
        e.put('a', 'one')
        self.assertEqual((e.get('a'), e.scheme), (b'one', 'https'))
        e.restore(e.save())
        self.assertEqual(e.get('a'), b'one')
        e.tls = 'server'  # from here on without the client's certificate
        with self.assertRaises(OSError):
            e.get('a')


if __name__ == '__main__':
    harness.main()
