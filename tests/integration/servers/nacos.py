"""Nacos' configuration API over HTTP: v1 with its long poll (servers 1.x and 2.x), and the client API of 3.x.

Source: alibaba/nacos config ConfigController, ConfigServletInner, LongPollingService, MD5Util, ParamUtils, GlobalExceptionHandler,
ConfigOpenApiController (v3); core ApiCompatibilityFilter, AbstractWebAuthFilter, AuthFilter; the default auth plugin's UserController,
UserControllerV3, AbstractAuthenticationManager, NacosJwtParser; nacos.io manual/user/open-api and auth.

Covered: GET v1/cs/configs (Content-MD5, Config-Type, Last-Modified, no-cache headers; 404, 409 while it is dumped, 400 for bad names); POST
v1/cs/configs to publish, DELETE; POST v1/cs/configs/listener with the second URL decoding, 0x02 and 0x01, the hold of
max(10 s, timeout - 500 ms), No-Hangup, the answer without a timeout header, 503 after 1-3 s when overloaded; login (both paths of v1,
v3), tokens in the query or as bearer, their end, 403; v3/client/cs/config, where what is missing is a 200 with code 20004; 410 for v1
on a 3.x server that has it switched off. The context path is a member.
Not covered: gRPC, beta and tag releases, encrypted configurations, the v2 API, capacity, username and password on every request.

One thing is stricter than the server: a listener request without one complete entry is refused (400). The server takes it for an empty
list and holds it, so that separators sent as the two characters ^2 and ^1 are never noticed; `literal_separators = True` does that.
"""
import email.utils
import hashlib
import random
import re
import secrets
import time
import urllib.parse

try:
    from servers import base
except ImportError:  # run by hand: this folder is where Python looks
    import base

Answer = base.Answer
NO_CACHE = {'Pragma': 'no-cache', 'Expires': 'Thu, 01 Jan 1970 00:00:00 GMT', 'Cache-Control': 'no-cache,no-store'}
CONTENT_TYPES = {'json': 'application/json', 'xml': 'application/xml', 'html': 'text/html'}
NO_USER = 'User not found! Please check user exist or password is right!'
CODES = {0: 'success', 10000: 'parameter missing', 10001: 'access denied', 20002: 'parameter validate error', 20004: 'resource not found'}


class Config:
    def __init__(self, content, kind):
        self.content, self.kind, self.modified = content, kind, time.time()
        self.md5 = hashlib.md5(content).hexdigest()


class Nacos(base.Server):
    """A 2.x server without authentication."""

    chunked = True  # Tomcat does not know the length

    def __init__(self, test=None, port=0):
        self.version = 2  # 3: has v3/client, and v1 only if `v1` is left on
        self.v1 = True
        self.context = '/nacos'
        self.min_hold, self.early = 10.0, 0.5  # seconds; a test that waits for the end of a hold makes the first smaller
        self.auth, self.token_ttl = False, 18000  # add_user() switches it on
        self.users, self.tokens = {}, {}
        self.overloaded, self.overload_delay = False, (1.0, 3.0)
        self.literal_separators = False
        self.content_md5 = None  # sent instead of the true Content-MD5 (v1) and md5 (v3); '' leaves it out
        self.configs, self.dumping = {}, set()
        super().__init__(test, port)

    # -- data

    def put(self, data_id, content, group='DEFAULT_GROUP', tenant='', kind='text'):
        """Publishes; the md5. The same content again tells nobody."""
        content = content.encode() if isinstance(content, str) else content
        with self.changed:
            config = self.configs[self._key(data_id, group, tenant)] = Config(content, kind)
            self.poke()
            return config.md5

    def delete(self, data_id, group='DEFAULT_GROUP', tenant=''):
        with self.changed:
            self.configs.pop(self._key(data_id, group, tenant), None)
            self.poke()

    def dump(self, data_id, on=True, group='DEFAULT_GROUP', tenant=''):
        """While it is on, a read of that one is a 409."""
        (self.dumping.add if on else self.dumping.discard)(self._key(data_id, group, tenant))

    def _key(self, data_id, group, tenant):
        """The default namespace is '' before 3, `public` since."""
        tenant = tenant.strip()
        return data_id, group, ('' if tenant in ('public', 'null') else tenant) if self.version < 3 else tenant or 'public'

    # -- access

    def add_user(self, name, password, allowed=True):
        """Somebody who may log in; and read, if allowed. Switches authentication on."""
        self.auth, self.users[name] = True, (password, allowed)

    def expire_tokens(self):
        """All tokens given so far are over: 403 `token expired!`."""
        self.tokens = {token: (user, 0) for token, (user, _) in self.tokens.items()}

    def forget_tokens(self):
        """As after a change of the secret key: 403 `token invalid!`."""
        self.tokens = {}

    # -- the protocol

    def answer(self, request):
        if not request.path.startswith(self.context + '/'):
            raise base.spring_error(request, 404, 'No message available')
        request.parameters = {**request.form, **dict(reversed(request.query))}
        path = request.path[len(self.context):]
        routes = {
            ('GET', '/v1/cs/configs'): self._get, ('POST', '/v1/cs/configs'): self._publish, ('DELETE', '/v1/cs/configs'): self._remove,
            ('POST', '/v1/cs/configs/listener'): self._listen, ('POST', '/v1/auth/login'): self._login, ('POST', '/v1/auth/users/login'): self._login,
            ('GET', '/v3/client/cs/config'): self._get_v3, ('POST', '/v3/auth/user/login'): self._login,
        }
        handler = routes.get((request.method, path))
        v3 = path.startswith('/v3/')
        if not any(p == path for _, p in routes) or (v3 and self.version < 3):
            raise base.spring_error(request, 404, 'No message available')
        if not handler:
            raise base.spring_error(request, 405, f"Request method '{request.method}' not supported")
        if self.version >= 3 and not v3 and not self.v1:
            raise base.spring_error(request, 410, '{"code":40000,"message":"Current API will be deprecated, please use API(s) '
                                                  '`GET /nacos/v3/client/cs/config` instead, or set '
                                                  '`nacos.core.api.compatibility.client.enabled=true` in application.properties.","data":null}')
        if self.auth and handler != self._login:
            self._authorize(request, v3)
        return handler(request)

    def _authorize(self, request, v3):
        def deny(message):
            return self._result(403, 10001, message) if self.version >= 3 or v3 else base.spring_error(request, 403, message)
        bearer = request.headers.get('Authorization') or ''
        token = bearer[7:] if bearer.startswith('Bearer ') else request.parameters.get('accessToken', '')
        if not token.strip():
            raise deny('user not found!')
        user, end = self.tokens.get(token, (None, 0))
        if user is None:
            raise deny('token invalid!')
        if time.monotonic() >= end:
            raise deny('token expired!')
        if not self.users[user][1]:
            raise deny('authorization failed!')

    def _login(self, request):
        name, password = request.parameters.get('username'), request.parameters.get('password')
        v3 = '/v3/' in request.path
        if not v3 and (name is None or password is None):
            missing = 'username' if name is None else 'password'
            raise base.spring_error(request, 400, f"Required request parameter '{missing}' for method parameter type String is not present")
        if name not in self.users or self.users[name][0] != password:
            raise self._result(403, 10001, NO_USER) if v3 else Answer(403, NO_USER)
        token = 'eyJhbGciOiJIUzI1NiJ9.' + secrets.token_urlsafe(24) + '.' + secrets.token_urlsafe(24)
        self.tokens[token] = name, time.monotonic() + self.token_ttl
        return Answer(200, {'accessToken': token, 'tokenTtl': self.token_ttl, 'globalAdmin': name == 'nacos', 'username': name},
                      {'Authorization': 'Bearer ' + token})

    @staticmethod
    def _result(status, code, data):
        return Answer(status, {'code': code, 'message': CODES[code], 'data': data})

    def _names(self, request):
        """The key a v1 request names, checked as ParamUtils does."""
        p = request.parameters
        for name in ('dataId', 'group'):
            if name not in p:
                raise base.spring_error(request, 400, f"Required String parameter '{name}' is not present")
        # letters and digits of any script, as Character.isLetterOrDigit
        for name, text in (('dataId', p['dataId'].strip()), ('group', p['group']), ('tenant', p.get('tenant', '').strip())):
            if (name != 'tenant' and not text.strip()) or not re.fullmatch(r'(?:[^\W_]|[_\-.:])*', text) or (name == 'tenant' and len(text) > 128):
                raise Answer(400, f'caused: invalid {name} : {text};' if name != 'tenant' else 'caused: invalid tenant;')
        return self._key(p['dataId'], p['group'], p.get('tenant', ''))

    def _get(self, request):
        key = self._names(request)
        with self.changed:
            config, dumping = self.configs.get(key), key in self.dumping
        if dumping:
            raise Answer(409, 'requested file is being modified, please try later.\n')
        if not config:
            raise Answer(404, 'config data not exist\n')
        headers = {'Config-Type': config.kind, 'Content-Type': CONTENT_TYPES.get(config.kind, 'text/plain') + ';charset=UTF-8',
                   'Content-MD5': config.md5 if self.content_md5 is None else self.content_md5, **NO_CACHE,
                   'Last-Modified': email.utils.formatdate(config.modified, usegmt=True)}
        if self.content_md5 == '':
            del headers['Content-MD5']
        return Answer(200, config.content, headers)

    def _publish(self, request):
        key = self._names(request)
        if not request.parameters.get('content', '').strip():
            raise Answer(400, 'caused: content is blank : ;')
        self.put(key[0], request.parameters['content'], key[1], key[2], request.parameters.get('type', 'text'))
        return Answer(200, 'true', {'Content-Type': 'application/json'})

    def _remove(self, request):
        self.delete(*self._names(request))
        return Answer(200, 'true', {'Content-Type': 'application/json'})

    def _get_v3(self, request):
        p = request.parameters
        for name in ('dataId', 'groupName'):
            if not p.get(name, '').strip():
                raise self._result(400, 10000, f"Required parameter '{name}' type String is not present")
        with self.changed:
            config = self.configs.get(self._key(p['dataId'], p['groupName'], p.get('namespaceId', '')))
        if not config:
            return self._result(200, 20004, None)
        data = {'resultCode': 200, 'errorCode': 0, 'message': None, 'requestId': None, 'content': config.content.decode(), 'encryptedDataKey': '',
                'contentType': config.kind, 'md5': config.md5 if self.content_md5 is None else self.content_md5,
                'lastModified': int(config.modified * 1000), 'tag': None, 'beta': False, 'success': True}
        return self._result(200, 0, data)

    # -- the listener

    def _entries(self, request):
        """[(key, md5, the parts to answer with)] of Listening-Configs, which the controller URL-decodes once more."""
        text = request.parameters.get('Listening-Configs', '')
        if not text.strip():
            raise Answer(400, 'caused: invalid probeModify;')
        if re.search(r'%(?![0-9a-fA-F]{2})', text):
            raise Answer(400, 'caused: URLDecoder: Illegal hex characters in escape (%) pattern;')
        entries = []
        for line in urllib.parse.unquote_plus(text).split('\x01')[:-1]:
            words = line.split('\x02')
            if not 3 <= len(words) <= 4:
                raise Answer(400, 'caused: invalid probeModify;')
            tenant = words[3] if len(words) == 4 else ''
            # 3.x: none is `public`, and answered without it; 2.x: compared as it is written
            key = (words[0], words[1], tenant if self.version < 3 else tenant.strip() or 'public')
            entries.append((key, words[2], words[:2] + ([tenant] if tenant.strip() else [])))
            if len(entries) > 10000:
                raise Answer(400, 'caused: invalid probeModify;')
        if not entries and not self.literal_separators:
            raise Answer(400, 'caused: invalid probeModify;')
        return entries

    def _listen(self, request):
        entries = self._entries(request)

        def changed():
            """What differs from the md5 the client gave; that of what is missing is ''."""
            return [parts for key, md5, parts in entries if (self.configs[key].md5 if key in self.configs else '') != md5]

        def text(parts):
            return base.java_urlencode(''.join('\x02'.join(p) + '\x01' for p in parts))
        with self.changed:
            first = changed()
        timeout = request.headers.get('Long-Pulling-Timeout')
        if timeout is None:  # a client of before long polling: the answer stands in headers
            return Answer(200, b'', {'Probe-Modify-Response': ''.join(f'{p[0]}:{p[1]};' for p in first), 'Probe-Modify-Response-New': text(first), **NO_CACHE})
        if first:
            return Answer(200, text(first) + '\n', NO_CACHE)
        if (request.headers.get('Long-Pulling-Timeout-No-Hangup') or '').lower() == 'true':
            return Answer(200, b'')
        if self.overloaded:
            self.hold(request, random.uniform(*self.overload_delay), lambda: None)
            raise Answer(503, 'The number of connections of the server is too large\n', NO_CACHE)
        if not re.fullmatch(r'[-+]?[0-9]{1,18}', timeout):
            raise Answer(400, f'caused: For input string: "{timeout}";')
        found = self.hold(request, max(self.min_hold, int(timeout) / 1000 - self.early), lambda: changed()[:1] or None)
        return Answer(200, text(found) + '\n', NO_CACHE) if found else Answer(200, b'')


if __name__ == '__main__':
    base.main(Nacos, "put web.yaml 'a: 1' DEFAULT_GROUP")
