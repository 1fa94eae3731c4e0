"""S3 behind the agent: a server that verifies every signature, keys of all kinds, and what S3 says when something is wrong."""
import hashlib
import urllib.parse

import harness
import kinds
from servers.s3 import S3

KEY_ID, SECRET = 'AKIDEXAMPLE', 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY'


class Case(kinds.Case):
    def setUp(self):
        super().setUp()
        self.server = S3(self)

    def put(self, n, key='web.yaml'):
        """The ETag."""
        return self.server.put('bucket', key, f'n: {n}\n')

    def begin_s3(self, keys='', path='/bucket/web.yaml', auth=f'id: {KEY_ID}', secret=SECRET, url=None, **kw):
        auth = f', auth: {{access_key: {{{auth}, secret_file: {self.plant("secret", secret)}}}}}' if auth else ''
        return self.begin(f'kind: s3, urls: ["{url or self.server.url}"]{", " if keys else ""}{keys}{auth}', path, **kw)


class Objects(Case):
    def test_a_version_is_the_etag_and_304_only_confirms(self):
        etag = self.put(1)
        self.begin_s3()
        self.assertEqual((self.standing(), self.version()), ('n: 1\n', etag))
        self.agent.cli('wait', 'web', '--version', etag.strip('"'), check=0)
        self.confirms()
        self.assertEqual((self.server.requests[-1].headers['If-None-Match'], self.server.requests[-1].status), (etag, 304))
        etag = self.put(2)
        self.assertEqual(self.refreshed('published')['version'], etag)
        self.confirms()
        self.end(self.agent)
        self.again('last known good')
        self.confirms()
        self.assertEqual(self.server.requests[-1].status, 304)

    def test_each_cause_has_a_name_and_a_sentence_of_its_own_and_the_version_stays(self):
        self.put(1)
        self.begin_s3()
        self.server.delete('bucket', 'web.yaml')
        sentences = [self.fails('not found', '404 NoSuchKey: there is no such object: check the path')]
        del self.server.objects['bucket']
        sentences.append(self.fails('not found', '404 NoSuchBucket: the bucket does not exist: check the first segment'))
        self.server.put('bucket', 'web.yaml', '')
        sentences.append(self.fails('empty', 'the body is empty'))
        self.put(1)
        self.server.denied.add(KEY_ID)
        sentences.append(self.fails('forbidden', '403 AccessDenied: the object may not be read'))
        self.server.denied.clear()
        self.server.down()
        sentences.append(self.fails('unreachable', 'refused'))
        self.server.up()
        self.server.slow = True
        sentences.append(self.fails('overloaded', '503 SlowDown: the server is overloaded'))
        self.assertGreaterEqual(self.agent.get('/v1/status')[1].count('"congestion":1'), 1)
        self.server.slow = False
        self.assertEqual(len(set(sentences)), 6)
        self.confirms()

    def test_what_is_missing_in_a_bucket_that_may_not_be_listed(self):
        self.put(1)
        self.server.may_list = False
        self.begin_s3(path='/bucket/other.yaml', wait=None)
        self.fails_at_first('forbidden', 'or is missing in a bucket that may not be listed')

    def test_an_optional_object_may_be_missing_but_its_bucket_may_not(self):
        self.put(1)
        self.begin_s3(path=['/bucket/web.yaml', '{server: main, path: /bucket/more.yaml, optional: true}'])
        self.assertEqual(self.standing(), "n: 1\n")
        self.put(2, 'more.yaml')
        self.refreshed('published')
        for body, cause in (('<html>nginx</html>', 'not found'), ('', 'not found'), ('<Error><Code>NoSuchBucket</Code></Error>', 'not found'),
                            ('<Error><Code>NoSuchKeys</Code></Error>', 'bad answer')):
            self.server.fault(when=lambda r: r.path == '/bucket/more.yaml', status=404, body=body)
            self.fails(cause, '404')
        self.assertEqual(self.standing(), "n: 2\n")
        self.server.delete('bucket', 'more.yaml')
        self.refreshed('published')
        self.assertEqual(self.standing(), "n: 1\n")

    def test_what_is_cut_or_not_an_object_is_refused(self):
        self.put(1)
        self.begin_s3()
        self.put(2)
        self.server.fault(cut=3)
        self.fails('unreachable', 'cut short')
        self.server.fault(raw=b'HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nn: 3\n')
        self.fails('bad answer', 'without a length or chunking')
        listing = '<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"></ListBucketResult>'
        self.server.fault(status=200, body=listing, headers={'Content-Type': 'application/xml'})
        self.fails('bad answer', 'listed a bucket instead of sending an object')
        self.server.fault(status=200, body='<html>login</html>', headers={'Content-Type': 'text/html'})
        self.fails('bad answer', 'HTML page')
        self.server.fault(status=500, body='<Error><Code>InternalError</Code><Message>We encountered an internal error.</Message></Error>')
        self.fails('bad answer', '500.*InternalError')
        self.refreshed('published')

    def test_a_version_of_an_object(self):
        self.put(1)
        old = self.server.objects['bucket']['web.yaml'].version
        self.put(2)
        self.begin_s3(path=f'/bucket/web.yaml?versionId={old}')
        self.assertEqual(self.standing(), 'n: 1\n')
        self.confirms()
        self.server.versions.clear()
        self.fails('not found', 'NoSuchVersion')

    def test_without_a_key_nothing_is_signed(self):
        self.put(1)
        self.begin_s3(auth=None, wait=None)
        self.fails_at_first('forbidden', '403 AccessDenied')
        self.assertNotIn('Authorization', self.server.requests[0].headers)
        code, text = self.complaints(f'kind: s3, watch: true, urls: ["{self.server.url}"]', '/bucket/web.yaml')
        self.assertEqual(code, 78)
        self.assertIn('watch means nothing to a server of the kind s3', text)
        code, text = self.complaints(f'kind: s3, urls: ["{self.server.url}"], auth: {{access_key: {{secret_file: /s}}}}', '/bucket/web.yaml')
        self.assertEqual(code, 78)
        self.assertIn('access_key has no id', text)


class Keys(Case):
    """Names of objects: what is asked for is what is signed."""

    NAMES = ['a b.yaml', 'a+b.yaml', 'größe 名.yaml', "!'()*;:@&=,$[].yaml", '100%.yaml', 'a%20b.yaml', 'a?b#c.yaml', 'deep/er/web.yaml', '..a/b..yaml',
             '.hidden/web.yaml', '~tilde_-.yaml', '"quote\\.yaml', 'a//b.yaml', '/leading.yaml', 'ends/']

    @staticmethod
    def path_of(name):
        """As it is written in the configuration: a '/' that would make an empty segment is written %2F."""
        path = urllib.parse.quote(name, safe='/').replace('//', '/%2F')
        path = '%2F' + path[1:] if path.startswith('/') else path
        return path[:-1] + '%2F' if path.endswith('/') else path

    def check_paths(self, paths):
        """{path: name}, all in one configuration: what fails names itself."""
        for i, name in enumerate(paths.values()):
            self.server.put('bucket', name, f'n: {i}\n')
        self.put(0)
        self.begin_s3(configs=self.others({f'c{i}': f'/bucket/{path}' for i, path in enumerate(paths)}, '    type: yaml\n'))
        for i, name in enumerate(paths.values()):
            with self.subTest(name=name):
                self.refreshed('unchanged', f'c{i}')
                self.assertEqual(self.standing(f'c{i}'), f'n: {i}\n')

    def test_keys_of_all_kinds_are_found_and_signed(self):
        self.check_paths({self.path_of(name): name for name in self.NAMES})

    def test_they_may_also_be_written_as_they_are(self):
        self.check_paths({name: name for name in ('a+b.yaml', 'größe-名.yaml', "!'()*;:@&=,$[].yaml", '100%.yaml', '~a.yaml')})

    def test_segments_of_dots_cannot_be_asked_for_and_that_is_said(self):
        """libcurl, like every client of HTTP, takes them out on the way: what comes would be another object."""
        self.server.put('bucket', 'web.yaml', 'n: another\n')
        for path in ('/bucket/./web.yaml', '/bucket/x/../web.yaml', '/bucket/%2E/web.yaml', '/bucket/x/%2e%2E/web.yaml', '/bucket/..',
                     '/bucket/a%2F..%2Fweb.yaml'):
            with self.subTest(path=path):
                self.begin_s3(path=path, wait='pull could not be started')
                status = self.agent.status()
                self.assertEqual((status['cause'], status['generation'], self.server.count), ('this host', 0, 0))
                self.assertIn("'.' or '..' between slashes cannot be asked for: rename it", status['last_error'])
                self.end(self.agent)

    def test_parameters_are_sorted_and_signed(self):
        self.put(1)
        self.begin_s3(path='/bucket/web.yaml?x-id=GetObject&response-content-type=a%20b%2Fc&empty&a=1+2&%C3%A4=%C3%B6')
        self.assertEqual(self.standing(), 'n: 1\n')

    def test_headers_of_amz_are_signed(self):
        self.put(1)
        self.server.keys['OTHER'] = 'x'
        text = self.settings(f'kind: s3, urls: ["{self.server.url}"], auth: {{access_key: {{id: {KEY_ID}, secret_file: {self.plant("secret", SECRET)}}}, '
                             'headers: {X-Amz-Request-Payer: "  requester   pays ", X-Other: "ü"}}', '/bucket/web.yaml')
        self.run_agent(text, 'published')
        names = self.server.requests[0].headers['Authorization']
        self.assertIn('SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-request-payer,', names)


class Signatures(Case):
    def setUp(self):
        super().setUp()
        self.put(1)

    def test_a_wrong_secret_or_id_says_so_and_a_right_one_is_taken(self):
        self.begin_s3()
        self.put(2)
        self.plant('secret', 'not/the+secret/that=is-meant')
        self.fails('forbidden', '403 SignatureDoesNotMatch: secret_file does not hold the secret of this access key')
        self.plant('secret', SECRET)
        self.refreshed('published')
        self.server.keys = {'ANOTHER': SECRET}
        self.fails('forbidden', 'InvalidAccessKeyId: the server does not know the id of the access key')

    def test_a_session_token_is_sent_signed_and_renewed(self):
        token = 'IQoJb3JpZ2luX2VjE+session/token=='
        self.server.tokens[KEY_ID] = token
        path = self.plant('token', token)
        self.begin_s3(auth=f'id: {KEY_ID}, session_token_file: {path}')
        self.confirms()
        self.server.tokens[KEY_ID] = 'another-one-of-the-server'
        self.server.expired_tokens.add(token)
        self.put(2)
        self.fails('forbidden', '400 ExpiredToken: the session token has expired: renew its file')
        self.plant('token', 'some+other/token+of+mine')
        self.fails('forbidden', '400 InvalidToken: session_token_file holds no valid token')
        self.server.tokens[KEY_ID] = 'some+other/token+of+mine'
        self.refreshed('published')

    def test_a_region_that_is_not_the_servers_is_named(self):
        self.server.region = 'eu-central-1'
        self.begin_s3(wait=None)
        self.fails_at_first('forbidden', 'AuthorizationHeaderMalformed: region is not that of the bucket: set it; region eu-central-1')
        self.end(self.agent)
        self.begin_s3('region: eu-central-1')
        self.server.elsewhere['bucket'] = 'us-west-2'
        self.fails('bad answer', '301 PermanentRedirect: the bucket is in another region: set region and url.*s3.us-west-2.amazonaws.com')

    def test_a_clock_that_differs_is_named(self):
        self.begin_s3()
        for seconds in (3600, -3600):
            self.server.clock = seconds
            self.fails('forbidden', 'RequestTimeTooSkewed: the clock of this host differs too much')
        self.server.clock = 600
        self.confirms()

    def test_a_url_with_a_path_and_a_name_for_the_host(self):
        """Behind a path, as some gateways are; the header Host is what is signed."""
        self.server.put('tenant', 'bucket/web.yaml', 'n: 7\n')
        self.begin_s3(url=self.server.url.replace('127.0.0.1', 'localhost') + '/tenant')
        self.assertEqual(self.standing(), 'n: 7\n')
        self.assertEqual(self.server.requests[0].headers['Host'], f'localhost:{self.server.port}')
        self.assertEqual(len([h for h in self.server.requests[0].headers if h.lower() == 'host']), 1)

    def test_with_a_signature_of_the_document_the_same_rules_count(self):
        """`verify` asks for a second object, whose absence is the check's to tell."""
        key = 'RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3'
        self.begin_s3(more=f'    verify: {{public_key: {key}}}\n', wait='rejected by the signature')
        self.assertEqual({r.path for r in self.server.requests}, {'/bucket/web.yaml', '/bucket/web.yaml.minisig'})
        self.assertEqual({r.status for r in self.server.requests}, {200, 404})

    def test_the_etag_of_another_address_is_not_asked_with(self):
        """Two stores with the same bytes may name them differently: what is held is the same all the same."""
        other = S3(self)
        other.put('bucket', 'web.yaml', 'n: 1\n')
        other.objects['bucket']['web.yaml'].etag = '"multipart-2"'
        self.begin_s3(url=f'{self.server.url}", "{other.url}')
        first, second = (self.server, other) if self.server.count else (other, self.server)
        first.down()
        status = self.refreshed('unchanged')
        self.assertEqual(status['generation'], 1)
        self.assertNotIn('If-None-Match', second.requests[-1].headers)
        self.assertEqual(hashlib.sha256(self.standing().encode()).hexdigest(), status['sha256'])


if __name__ == '__main__':
    harness.main()
