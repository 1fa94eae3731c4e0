"""Consul's key-value store over HTTP, as hashicorp/consul documents and does it.

Source: hashicorp/consul website/content/api-docs (kv.mdx, features/blocking.mdx, features/consistency.mdx), agent/http.go,
agent/kvs_endpoint.go, agent/consul/kvs_endpoint.go, agent/consul/state/kvs.go, agent/blockingquery/blockingquery.go; Go's net/http mux.

Covered: GET /v1/kv/KEY plain, ?raw, ?recurse, ?keys&separator, ?pretty; PUT (flags, cas) and DELETE (recurse); /v1/status/leader; the index of
a key, of a list (with tombstones) and of what is missing; blocking with index and wait (default 5 min, at most 10, up to wait/16 more);
404 with its index; ACL tokens in the three places they may stand; dc; stale, consistent, default; no leader; rate limits; a restore from a
backup; gzip from 1400 bytes on; 301 for a path that is not clean; 400 for what cannot be read.
Not covered: sessions and locks, transactions over HTTP, namespaces, several datacenters, hash-based blocking.
"""
import base64
import copy
import json
import posixpath
import random
import re
import urllib.parse

try:
    from servers import base
except ImportError:  # run by hand: this folder is where Python looks
    import base

Answer = base.Answer
ANONYMOUS = '00000000-0000-0000-0000-000000000002'
UNITS = {'ns': 1e-9, 'us': 1e-6, 'µs': 1e-6, 'ms': 1e-3, 's': 1, 'm': 60, 'h': 3600}
# newer servers refuse keys that a cache between could take for a file; .yaml and .yml are not among them
SUSPICIOUS = ('.js .css .html .htm .xml .json .txt .log .php .asp .jsp .cgi .pl .py .rb .sh .exe .dll .bat .cmd .com .scr .vbs .pdf .doc .docx .xls '
              '.xlsx .ppt .pptx .zip .rar .tar .gz .7z .bz2 .jpg .jpeg .png .gif .svg .ico .bmp .mp3 .mp4 .avi .mov .wmv .flv .swf .woff .woff2 .ttf '
              '.eot .otf').split()


def go_duration(text):
    """Seconds of what Go's ParseDuration takes; ValueError for the rest (a number needs its unit)."""
    if text in ('0', '+0', '-0'):
        return 0.0
    parts = re.fullmatch(r'([-+]?)((?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|ms|s|m|h))+)', text)
    if not parts:
        raise ValueError(text)
    seconds = sum(float(n) * UNITS[u] for n, u in re.findall(r'(\d+\.?\d*|\.\d+)(ns|us|µs|ms|s|m|h)', parts[2]))
    return -seconds if parts[1] == '-' else seconds


def go_json(value, pretty):
    text = json.dumps(value, ensure_ascii=False, indent=4 if pretty else None, separators=None if pretty else (',', ':'))
    for c in '<>&\u2028\u2029':
        text = text.replace(c, f'\\u{ord(c):04x}')
    return text + ('\n' if pretty else '')


class Entry:
    def __init__(self, key, value, flags, create, modify):
        self.key, self.value, self.flags, self.create, self.modify = key, value, flags, create, modify

    def json(self):
        return {'LockIndex': 0, 'Key': self.key, 'Flags': self.flags, 'Value': None if self.value is None else base64.b64encode(self.value).decode(),
                'CreateIndex': self.create, 'ModifyIndex': self.modify}


class State:
    """What a snapshot holds: entries, tombstones, and the highest index either table has seen."""

    def __init__(self, raft):
        self.raft, self.table, self.entries, self.tombstones = raft, 0, {}, {}

    def get(self, key):
        """(index, entries) of one key: its ModifyIndex, or the table's if there is none."""
        entry = self.entries.get(key)
        return (entry.modify, [entry]) if entry else (self.table or 1, [])

    def list(self, prefix):
        """(index, entries) below a prefix: the highest of entries and tombstones there, or the table's if there are none."""
        found = [self.entries[k] for k in sorted(self.entries, key=str.encode) if k.startswith(prefix)]
        index = max([e.modify for e in found] + [i for k, i in self.tombstones.items() if k.startswith(prefix)], default=0)
        return (index if prefix and index else self.table) or 1, found


class Consul(base.Server):
    """A server in datacenter `dc1` with a leader and no ACLs."""

    gzip_over = 1400

    def __init__(self, test=None, port=0):
        self.datacenter = 'dc1'
        self.acl = False  # deny by default, as soon as a token is given with allow()
        self.tokens = {}
        self.max_wait, self.default_wait, self.jitter = 600.0, 300.0, True
        self.strict_keys = False  # as the newest servers: key names are restricted
        self.not_found_sticks = True  # False, as older servers: writes to other keys end the wait for a missing one
        self.leader, self.last_contact_ms = True, 0
        self.limited = None  # 'elsewhere' (429) or 'later' (503): what an enforced rate limit answers
        self.index_header = None  # a text to send instead of the true X-Consul-Index; '' for none at all
        self.follower = None  # a State of before: what ?stale reads see
        self._state, self._epoch, self._wakes = State(10), 0, 0
        super().__init__(test, port)

    # -- data

    def put(self, key, value, flags=0):
        """Sets one key (text, bytes, or None as a folder key has it); the index now. The same value again changes nothing."""
        return self.put_all({key: value}, flags)

    def put_all(self, values, flags=0):
        """Several keys in one transaction, under one index."""
        with self.changed:
            state = self._state
            state.raft += 1
            for key, value in values.items():
                value = (value.encode() if isinstance(value, str) else value) or None
                old = state.entries.get(key)
                if not old or (old.value, old.flags) != (value, flags):
                    state.entries[key] = Entry(key, value, flags, old.create if old else state.raft, state.raft)
                    state.table = state.raft
            self.poke()
            return state.raft

    def delete(self, key, recurse=False):
        with self.changed:
            state = self._state
            state.raft += 1
            for k in [k for k in state.entries if k == key or (recurse and k.startswith(key))]:
                del state.entries[k]
                state.tombstones[k] = state.table = state.raft
            self.poke()
            return state.raft

    def reap_tombstones(self):
        """What the server does some 15 minutes after a delete: the index of a list may go back."""
        with self.changed:
            self._state.tombstones.clear()
            self.poke()

    def snapshot(self):
        """The state now; for restore(), and for `follower`."""
        with self.changed:
            return copy.deepcopy(self._state)

    def restore(self, state, new_cluster=True):
        """A backup is put back. Who waits is answered at once, from the state before. In a new cluster later writes get low indexes again."""
        with self.changed:
            raft, self._state = self._state.raft, copy.deepcopy(state)
            if not new_cluster:
                self._state.raft = raft
            self._epoch += 1
            self.poke()

    @property
    def index(self):
        """The index of the last write."""
        return self._state.raft

    # -- access, faults (beside fault() and the members above)

    def allow(self, token, read=(), write=()):
        """A token with its prefixes; '' is what those without a token may do. Switches ACLs on."""
        self.acl = True
        self.tokens[token] = {'id': ANONYMOUS if token == '' else f'acc-{len(self.tokens)}', 'read': tuple(read) + tuple(write), 'write': tuple(write)}

    def wake(self):
        """Every blocking query returns now, with nothing changed."""
        with self.changed:
            self._wakes += 1
            self.poke()

    # -- the protocol

    def answer(self, request):
        if any(not (c.isprintable()) for c in request.path):
            raise Answer(400, 'Bad Request')
        clean = '/' + posixpath.normpath(request.path).lstrip('/')
        clean += '/' if request.path.endswith('/') and clean != '/' else ''
        if clean != request.path:
            raise Answer(301, '', {'Location': urllib.parse.quote(clean) + ('?' + request.query_string if request.query_string else '')})
        if re.search(r'%(?![0-9a-fA-F]{2})|;', request.query_string):
            raise Answer(500)
        if request.path == '/v1/status/leader' and request.method == 'GET':
            return Answer(200, '127.0.0.1:8300' if self.leader else '')
        if not request.path.startswith('/v1/kv/'):
            raise Answer(404, "Invalid URL path: " + ('not a recognized HTTP API endpoint\n' if '/v1/' in request.path else
                                                      "if attempting to use the HTTP API, ensure the path starts with '/v1/'\n"))
        if request.method not in ('GET', 'PUT', 'DELETE'):
            raise Answer(405, f'method {request.method} not allowed', {'Allow': 'OPTIONS,GET,PUT,DELETE'})
        index, wait = self._options(request)
        key = request.path[len('/v1/kv/'):]
        self._check_key(key, request)
        if self.limited == 'elsewhere':
            raise Answer(429, 'rate limit exceeded, try again later or against a different server')
        if self.limited == 'later':
            raise Answer(503, 'rate limit exceeded for operation that can only be performed by the leader, try again later')
        if (request.get('dc') or self.datacenter) != self.datacenter:
            raise Answer(500, 'No path to datacenter')
        if not self.leader and not (request.method == 'GET' and self._stale(request)):
            raise Answer(500, 'No cluster leader')
        with self.changed:
            token = self._token(request)
        if request.method != 'GET':
            return self._write(request, key, token)
        return self._read(request, key, token, index, wait)

    @staticmethod
    def _stale(request):
        return request.has('stale') or (request.get('max_stale', '') != '' and go_duration(request.get('max_stale')) > 0)

    def _options(self, request):
        if request.get('max_stale'):
            try:
                go_duration(request.get('max_stale'))
            except ValueError:
                raise Answer(400, f'Invalid max_stale value "{request.get("max_stale")}"') from None
        if self._stale(request) and request.has('consistent'):
            raise Answer(400, 'Cannot specify ?stale with ?consistent, conflicting semantics.')
        wait, index = 0.0, request.get('index') or '0'
        if request.get('wait'):
            try:
                wait = go_duration(request.get('wait'))
            except ValueError:
                raise Answer(400, 'Invalid wait time') from None
        if not re.fullmatch(r'[0-9]{1,20}', index) or int(index) >= 2 ** 64:
            raise Answer(400, 'Invalid index')
        wait = min(wait, self.max_wait) if wait > 0 else self.default_wait
        return int(index), wait + (random.uniform(0, wait / 16) if self.jitter else 0)

    def _check_key(self, key, request):
        if key == '' and not (request.has('keys') or request.has('recurse')):
            raise Answer(400, 'Missing key name')
        if self.strict_keys and key:
            bad = re.search(r'[^A-Za-z0-9,\-_./]', key)
            if bad:
                raise Answer(400, f"key contains invalid character '{bad[0]}' at position {bad.start()}. Only alphanumeric characters and ,-_./ are allowed")
            suffix = next((s for s in SUSPICIOUS if key.lower().endswith(s)), None)
            if suffix:
                raise Answer(400, f"key contains suspicious file extension '{suffix}' that may be cached by proxies")

    def _token(self, request):
        """The token's rights, or None without ACLs. The query's wins over X-Consul-Token, that over the bearer."""
        bearer = re.fullmatch(r'bearer +(\S+).*', request.headers.get('Authorization') or '', re.I)
        secret = request.get('token') or request.headers.get('X-Consul-Token') or (bearer[1] if bearer else '')
        if not self.acl:
            return None
        if secret not in self.tokens and secret != '':
            raise Answer(403, 'ACL not found')
        return self.tokens.get(secret) or {'id': ANONYMOUS, 'read': (), 'write': ()}

    @staticmethod
    def _may(token, what, key):
        return token is None or any(key.startswith(prefix) for prefix in token[what])

    def _must(self, token, what, key):
        if not self._may(token, what, key):
            raise Answer(403, f"Permission denied: token with AccessorID '{token['id']}' lacks permission 'key:{what}' on \"{key}\"")

    def _read(self, request, key, token, index, wait):
        stale = self._stale(request)
        listing = request.has('recurse') or request.has('keys')
        began, wakes, floor, missing = self._epoch, self._wakes, [index], [False]
        last = [None]

        def look():
            """The answer if there is one now: blockingquery.go's loop, once around."""
            if self._epoch != began:
                return last[0]  # the store was abandoned: what was seen last
            state = self.follower if stale and self.follower else self._state
            if not listing:
                self._must(token, 'read', key)
            now, entries = (state.list if listing else state.get)(key)
            seen = [e for e in entries if self._may(token, 'read', e.key)]
            last[0] = now, seen, len(seen) < len(entries)
            if not seen and self.not_found_sticks and not request.has('keys'):
                if missing[0]:
                    floor[0] = now
                missing[0] = True
            return last[0] if index == 0 or now > floor[0] or self._wakes != wakes else None
        found = self.hold(request, wait, look) if index else None
        if found is None:
            with self.changed:
                found = last[0] if index else look()
        return self._found(request, key, *found, stale, token)

    def _found(self, request, key, index, entries, filtered, stale, token):
        headers = {'X-Consul-Index': str(index) if self.index_header is None else self.index_header, 'X-Consul-KnownLeader': 'true' if self.leader else 'false',
                   'X-Consul-LastContact': str(self.last_contact_ms if stale else 0)}
        if headers['X-Consul-Index'] == '':
            del headers['X-Consul-Index']
        if filtered and token and token['id'] != ANONYMOUS:
            headers['X-Consul-Results-Filtered-By-ACLs'] = 'true'
        if request.has('keys'):
            separator = request.get('separator') or request.get('seperator') or ''
            names = {}
            for entry in entries:
                at = entry.key.find(separator, len(key)) if separator else -1
                names[entry.key if at < 0 else entry.key[:at + len(separator)]] = None
            if not names and key:
                return Answer(404, b'', headers)
            return self._json(request, list(names), headers)
        if not entries:
            return Answer(404, b'', headers)
        if request.has('raw') and not request.has('recurse'):
            return Answer(200, entries[0].value or b'', {**headers, 'Content-Type': 'text/plain', 'X-Content-Type-Options': 'nosniff',
                                                         'Content-Security-Policy': 'sandbox'}, chunked=False)
        return self._json(request, [entry.json() for entry in entries], headers)

    @staticmethod
    def _json(request, value, headers):
        body = go_json(value, request.has('pretty'))
        # net/http counts what fits into its buffer, and chunks the rest
        return Answer(200, body, {**headers, 'Content-Type': 'application/json'}, chunked=len(body) > 2048)

    def _write(self, request, key, token):
        if len([w for w in ('cas', 'acquire', 'release', 'recurse') if request.has(w)]) > 1:
            raise Answer(400, 'Conflicting flags: ' + urllib.parse.urlencode(sorted(request.query)) + '\n')
        if request.has('acquire') or request.has('release'):
            raise Answer(500, 'invalid session')
        self._must(token, 'write', key)
        if len(request.body) > 512 * 1024:
            raise Answer(413, f'Request body({len(request.body)} bytes) too large, max size: 524288 bytes. See '
                              'https://www.consul.io/docs/agent/config/config-files#kv_max_value_size.')
        with self.changed:
            old = self._state.entries.get(key)
            if request.has('cas') and int(request.get('cas')) != (old.modify if old else 0):
                return self._json(request, False, {})
            if request.method == 'PUT':
                self.put(key, request.body or None, int(request.get('flags') or 0))
            else:
                self.delete(key, request.has('recurse'))
        return self._json(request, True, {})


if __name__ == '__main__':
    base.main(Consul, "put app/web.yaml 'a: 1'")
