"""Amazon S3's GET and HEAD of an object, path style, with Signature Version 4 verified.

Source: the AWS documentation: S3 API reference (GetObject, HeadObject, error responses, authenticating requests with the Authorization header),
IAM user guide (create a signed request, elements of a request signature); S3's rule that a path is encoded once and not normalized.

Covered: ETag, If-None-Match (304), If-Match (412), Last-Modified, If-Modified-Since, versionId as a query parameter that must be signed;
XML errors (an empty body for HEAD): NoSuchKey, NoSuchBucket, NoSuchVersion, AccessDenied, SignatureDoesNotMatch, InvalidAccessKeyId, RequestTimeTooSkewed,
AuthorizationHeaderMalformed, InvalidRequest (no x-amz-content-sha256), XAmzContentSHA256Mismatch, InvalidToken, ExpiredToken, SlowDown,
PermanentRedirect with x-amz-bucket-region for a bucket elsewhere; x-amz-* and host headers that were not signed.
Not covered: virtual-hosted style, ranges, listings (ListObjectsV2), uploads over HTTP, presigned URLs, chunked and unsigned payload signing, SigV4A.
"""
import datetime
import email.utils
import hashlib
import hmac
import re
import secrets
import time
import urllib.parse
from xml.sax.saxutils import escape

try:
    from servers import base
except ImportError:  # run by hand: this folder is where Python looks
    import base

Answer = base.Answer
EMPTY_SHA256 = hashlib.sha256(b'').hexdigest()


def encode(text, slash=False):
    """URI encoding as AWS wants it: all but letters, digits and -_.~ (and /, in a path), in capital hex."""
    return urllib.parse.quote(text, safe='-_.~/' if slash else '-_.~')


def canonical_request(method, raw_path, query_string, headers, signed, payload):
    """The text whose hash is signed. `headers`: (name, value) pairs as they were sent; `signed`: the names, in the order given."""
    pairs = [part.partition('=')[::2] for part in query_string.split('&') if part]
    # as written, + is a plus; a name without a value counts as an empty value
    query = sorted((encode(urllib.parse.unquote(k)), encode(urllib.parse.unquote(v))) for k, v in pairs)
    values = {}
    for name, value in headers:
        values.setdefault(name.lower(), []).append(re.sub(' +', ' ', value.strip()))
    return '\n'.join([method, encode(urllib.parse.unquote(raw_path), slash=True) or '/', '&'.join(f'{k}={v}' for k, v in query),
                      ''.join(f'{name}:{",".join(values.get(name, [""]))}\n' for name in signed), ';'.join(signed), payload])


def signature(secret, date, scope, canonical):
    """`date`: x-amz-date; `scope`: day/region/service/aws4_request."""
    key = ('AWS4' + secret).encode()
    for part in scope.split('/'):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    text = f'AWS4-HMAC-SHA256\n{date}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}'
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


class Object:
    def __init__(self, body, content_type, version):
        self.body, self.content_type, self.version, self.modified = body, content_type, version, int(time.time())
        self.etag = '"' + hashlib.md5(body).hexdigest() + '"'


class S3(base.Server):
    """One region, one access key; buckets are private and appear with their first object."""

    def __init__(self, test=None, port=0):
        self.region = 'us-east-1'
        self.keys = {'AKIDEXAMPLE': 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY'}
        self.tokens = {}  # access key: the session token its requests must carry
        self.expired_tokens = set()
        self.skew = 15 * 60  # seconds
        self.clock = 0  # seconds added to the server's clock
        self.denied = set()  # access keys that may not read; without s3:ListBucket (`may_list = False`) what is missing is denied too
        self.may_list = True
        self.elsewhere = {}  # bucket: the region it lives in
        self.slow = False  # 503 SlowDown
        self.objects, self.versions = {}, {}
        super().__init__(test, port)

    # -- data

    def put(self, bucket, key, body, content_type='binary/octet-stream'):
        """Stores an object; its ETag."""
        body = body.encode() if isinstance(body, str) else body
        with self.changed:
            stored = self.objects.setdefault(bucket, {})[key] = Object(body, content_type, secrets.token_urlsafe(24))
            self.versions[bucket, key, stored.version] = stored
            return stored.etag

    def delete(self, bucket, key):
        with self.changed:
            self.objects[bucket].pop(key, None)

    # -- the protocol

    def headers(self, _request):
        return {'Server': 'AmazonS3', 'x-amz-request-id': secrets.token_hex(8).upper(), 'x-amz-id-2': secrets.token_urlsafe(48)}

    def _error(self, request, status, code, message, headers=None, **more):
        more = {'Resource': request.path, 'RequestId': secrets.token_hex(8).upper(), 'HostId': secrets.token_urlsafe(48), **more}
        xml = ''.join(f'<{k}>{escape(str(v))}</{k}>' for k, v in {'Code': code, 'Message': message, **more}.items())
        body = '' if request.method == 'HEAD' else f'<?xml version="1.0" encoding="UTF-8"?>\n<Error>{xml}</Error>'
        return Answer(status, body, {'Content-Type': 'application/xml', **(headers or {})}, chunked=True)

    def answer(self, request):
        bucket, _, key = request.path[1:].partition('/')
        if request.method not in ('GET', 'HEAD'):
            raise self._error(request, 405, 'MethodNotAllowed', 'The specified method is not allowed against this resource.', {'Allow': 'GET, HEAD'})
        if not bucket or not key:
            raise self._error(request, 501, 'NotImplemented', 'A header you provided implies functionality that is not implemented')
        if self.slow:
            raise self._error(request, 503, 'SlowDown', 'Please reduce your request rate.')
        self._verify(request, bucket)
        with self.changed:
            if bucket not in self.objects and bucket not in self.elsewhere:
                raise self._error(request, 404, 'NoSuchBucket', 'The specified bucket does not exist', BucketName=bucket)
            version = request.get('versionId')
            found = self.objects.get(bucket, {}).get(key) if version is None else self.versions.get((bucket, key, version))
        if not found:
            if not self.may_list:
                raise self._error(request, 403, 'AccessDenied', 'Access Denied')
            if version is not None:
                raise self._error(request, 404, 'NoSuchVersion', 'The specified version does not exist.', Key=key, VersionId=version)
            raise self._error(request, 404, 'NoSuchKey', 'The specified key does not exist.', Key=key)
        return self._object(request, found)

    def _object(self, request, found):
        headers = {'Last-Modified': email.utils.formatdate(found.modified, usegmt=True), 'ETag': found.etag, 'Accept-Ranges': 'bytes',
                   'x-amz-version-id': found.version}
        tags = [t.strip() for t in (request.headers.get('If-None-Match') or '').split(',') if t.strip()]
        match = request.headers.get('If-Match')
        since = email.utils.parsedate_to_datetime(request.headers['If-Modified-Since']) if request.headers.get('If-Modified-Since') else None
        if match and match.strip() not in (found.etag, found.etag.strip('"'), '*'):
            raise self._error(request, 412, 'PreconditionFailed', 'At least one of the pre-conditions you specified did not hold', Condition='If-Match')
        if tags and (found.etag in tags or found.etag.strip('"') in tags or '*' in tags):
            return Answer(304, b'', headers)
        if not tags and since and found.modified <= since.timestamp():
            return Answer(304, b'', headers)
        return Answer(200, found.body, {**headers, 'Content-Type': found.content_type, 'Content-Length': str(len(found.body))})

    def _verify(self, request, bucket):
        """The signature and all that must be true before it; an Answer is raised at the first thing that is not."""
        def refuse(status, code, message, **more):
            return self._error(request, status, code, message, **more)
        authorization = request.headers.get('Authorization')
        if not authorization:
            raise refuse(403, 'AccessDenied', 'Access Denied')
        parts = re.fullmatch(r'AWS4-HMAC-SHA256 +Credential=([^/,\s]+)/(\d{8})/([^/,\s]+)/([^/,\s]+)/aws4_request, *'
                             r'SignedHeaders=([^,\s]+), *Signature=([0-9a-f]{64})', authorization)
        if not parts:
            raise refuse(400, 'AuthorizationHeaderMalformed', 'The authorization header that you provided is not valid.')
        access, day, region, service, names, given = parts.groups()
        signed = names.split(';')
        payload = request.headers.get('x-amz-content-sha256')
        if payload is None:
            raise refuse(400, 'InvalidRequest', 'Missing required header for this request: x-amz-content-sha256')
        date = request.headers.get('x-amz-date') or ''
        try:
            when = datetime.datetime.strptime(date, '%Y%m%dT%H%M%SZ').replace(tzinfo=datetime.timezone.utc).timestamp()
        except ValueError:
            raise refuse(403, 'AccessDenied', 'AWS authentication requires a valid Date or x-amz-date header') from None
        now = time.time() + self.clock
        if abs(now - when) > self.skew:
            raise refuse(403, 'RequestTimeTooSkewed', 'The difference between the request time and the current time is too large.', RequestTime=date,
                         ServerTime=datetime.datetime.fromtimestamp(now, datetime.timezone.utc).strftime('%Y-%m-%dT%H:%M:%SZ'),
                         MaxAllowedSkewMilliseconds=self.skew * 1000)
        if access not in self.keys:
            raise refuse(403, 'InvalidAccessKeyId', 'The AWS Access Key Id you provided does not exist in our records.', AWSAccessKeyId=access)
        home = self.elsewhere.get(bucket, self.region)
        # the endpoint of another region sends you on; only then does the region in the signature matter
        if home != self.region:
            raise refuse(301, 'PermanentRedirect', 'The bucket you are attempting to access must be addressed using the specified endpoint. '
                         'Please send all future requests to this endpoint.', headers={'x-amz-bucket-region': home},
                         Endpoint=f's3.{home}.amazonaws.com', Bucket=bucket)
        if region != self.region:
            raise refuse(400, 'AuthorizationHeaderMalformed', f"The authorization header is malformed; the region '{region}' is wrong; expecting '{self.region}'",
                         headers={'x-amz-bucket-region': home}, Region=self.region)
        if service != 's3' or day != date[:8]:
            raise refuse(400, 'AuthorizationHeaderMalformed',
                         f'The authorization header is malformed; incorrect service "{service}" or date "{day}".')
        unsigned = [h.lower() for h in request.headers if (h.lower().startswith('x-amz-') or h.lower() == 'host') and h.lower() not in signed]
        if unsigned or signed != sorted(signed):
            raise refuse(403, 'AccessDenied', 'There were headers present in the request which were not signed', HeadersNotSigned=', '.join(unsigned))
        canonical = canonical_request(request.method, request.raw_path, request.query_string, request.headers.items(), signed, payload)
        if not hmac.compare_digest(signature(self.keys[access], date, f'{day}/{region}/s3/aws4_request', canonical), given):
            raise refuse(403, 'SignatureDoesNotMatch', 'The request signature we calculated does not match the signature you provided. '
                         'Check your key and signing method.', AWSAccessKeyId=access, SignatureProvided=given, CanonicalRequest=canonical)
        if payload not in ('UNSIGNED-PAYLOAD', hashlib.sha256(request.body).hexdigest()):
            raise refuse(400, 'XAmzContentSHA256Mismatch', "The provided 'x-amz-content-sha256' header does not match what was computed.",
                         ClientComputedContentSHA256=payload, S3ComputedContentSHA256=hashlib.sha256(request.body).hexdigest())
        token = request.headers.get('x-amz-security-token')
        if token in self.expired_tokens:
            raise refuse(400, 'ExpiredToken', 'The provided token has expired.')
        if token != self.tokens.get(access):
            raise refuse(400, 'InvalidToken', 'The provided token is malformed or otherwise invalid.')
        if access in self.denied:
            raise refuse(403, 'AccessDenied', 'Access Denied')


if __name__ == '__main__':
    base.main(S3, "put bucket web.yaml 'a: 1'")
