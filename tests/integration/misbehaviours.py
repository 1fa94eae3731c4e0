"""What servers do wrong over HTTP/1.x: for each kind the steps that servers/wire.py plays, and what the status says of it.

A row is (steps, cause, words): `cause` is that of the status, `words` is a pattern of its sentence. A document that is cut, or taken for
another one, is made so that its part would be a good document. `HEAVY` rows never end: the server gives what the bound allows and SLACK
bytes more, and then holds, so that who reads on runs into the time limit.
"""
import gzip
import zlib

from servers.wire import CLOSE, CUT, HOLD, RESET, Bare, chunked, chunks, counted, gzipped, head

CAP = 2 << 20  # max_size of the servers
SLACK = 16 << 10  # bytes that may be read beyond it
SHORT = b'a: 2\n'
LONG = SHORT + b'b: 3 # ' + b'x' * 37 + b'\n'
CHUNKED = head('Transfer-Encoding: chunked')
NO_LENGTH = 'without a length or chunking: its end cannot be told from a cut'
MEND = 'mend the server, or the proxy before it'
LATE, CUT_OFF, GONE, BAD = 'timed out', 'cut short', 'reset|closed|Empty reply|SSL_read', f'the answer is malformed: .*{MEND}'


def drip(*pieces, every=.05):
    """The pieces one after the other, each a while later, for longer than any run lasts."""
    return [step for piece in pieces * (1 if len(pieces) > 1 else 200) for step in (piece, every)] + [HOLD]


def letters(text):
    return [bytes([b]) for b in text]


def broken(body, words, cause='bad answer'):
    return [head('Transfer-Encoding: chunked') + body, CLOSE], cause, words


SILENCE = {
    'no answer': ([HOLD], 'timeout', LATE),
    'half of a status line': ([b'HTTP/1.1 2', HOLD], 'timeout', LATE),
    'a head without its end': ([head('Content-Length: 5')[:-2], HOLD], 'timeout', LATE),
    'a head a letter at a time': (drip(*letters(b'HTTP/1.1 200 OK\r\nX-Slow: ' + b'y' * 300)), 'timeout', LATE),
    'headers one at a time': ([b'HTTP/1.1 200 OK\r\n', *drip(b'X-Slow: y\r\n')], 'timeout', LATE),
    'no body': ([head('Content-Length: 5'), HOLD], 'timeout', LATE),
    'a body a letter at a time': ([head('Content-Length: 300'), *drip(*letters(b'a: 2 #' + b'x' * 294))], 'timeout', LATE),
    'all of the body but a letter': ([head('Content-Length: 5') + SHORT[:-1], HOLD], 'timeout', LATE),
    'chunks of a letter, one at a time': ([CHUNKED, *drip(b'1\r\n#\r\n')], 'timeout', LATE),
    'a chunk extension a letter at a time': ([CHUNKED + b'5;', *drip(b'x')], 'timeout', LATE),
    'no last chunk': ([CHUNKED + chunks(SHORT, last=b''), HOLD], 'timeout', LATE),
    'trailers one at a time': ([CHUNKED + chunks(SHORT, last=b'0\r\n'), *drip(b'X: y\r\n')], 'timeout', LATE),
    'interim answers one at a time': (drip(head(status='100 Continue')), 'timeout', LATE),
    'early hints, and nothing': ([head('Link: </x>', status='103 Early Hints') * 50, HOLD], 'timeout', LATE),
    'half of a packed body': ([head('Content-Length: 200', 'Content-Encoding: gzip') + gzipped(LONG)[:20], HOLD], 'timeout', LATE),
    'the body of an error a letter at a time': ([head('Content-Length: 300', status='404 Not Found'), *drip(b'x')], 'timeout', LATE),
}
ENDS = {
    'the end at once': ([CLOSE], 'unreachable', GONE),
    'a reset at once': ([RESET], 'unreachable', GONE),
    'the end in the status line': ([b'HTTP/1.1 2', CLOSE], 'unreachable|bad answer', 'malformed|' + GONE),
    'the end in the head': ([head('Content-Length: 5')[:-2], CLOSE], 'unreachable|bad answer', GONE + '|malformed'),
    'a reset in the head': ([b'HTTP/1.1 200 OK\r\n', .05, RESET], 'unreachable', GONE),
    'a body that is short': ([head('Content-Length: 50') + SHORT, CLOSE], 'unreachable', CUT_OFF),
    'a body that is short, without a farewell': ([head('Content-Length: 50') + SHORT, .05, CUT], 'unreachable', CUT_OFF + '|SSL_read'),
    'a body that is short, and a reset': ([head('Content-Length: 50') + SHORT, .05, RESET], 'unreachable', GONE),
    'no length': ([head() + SHORT, CLOSE], 'bad answer', NO_LENGTH),
    'no length, without a farewell': ([head() + SHORT, .05, CUT], 'bad answer', NO_LENGTH),
    'no length, and a reset': ([head() + SHORT, .05, RESET], 'unreachable', GONE),
    'no length, as HTTP/1.0': ([head(version='1.0') + SHORT, CLOSE], 'bad answer', NO_LENGTH),
    'an interim answer and the end': ([head(status='100 Continue'), CLOSE], 'unreachable|bad answer', GONE),
    'a chunk that is short': ([CHUNKED + b'32\r\n' + SHORT, CLOSE], 'unreachable', CUT_OFF),
    'a chunk that is short, and a reset': ([CHUNKED + b'32\r\n' + SHORT, .05, RESET], 'unreachable', GONE),
    'chunks without the last': ([CHUNKED + chunks(SHORT, last=b''), CLOSE], 'unreachable', CUT_OFF),
    'the last chunk without its end': ([CHUNKED + chunks(SHORT, last=b'0\r\n'), CLOSE], 'unreachable', CUT_OFF),
    'trailers without an end': ([CHUNKED + chunks(SHORT, last=b'0\r\nX: y\r\n'), CLOSE], 'unreachable', CUT_OFF),
    'an error that is short': ([head('Content-Length: 50', status='404 Not Found') + SHORT, CLOSE], 'unreachable', CUT_OFF),
}
FRAMES = {
    'two lengths': ([head('Content-Length: 5', 'Content-Length: 50') + LONG, CLOSE], 'bad answer', BAD),
    'a list of lengths': ([head('Content-Length: 5, 50') + LONG, CLOSE], 'bad answer', BAD),
    'a negative length': ([head('Content-Length: -5') + SHORT, CLOSE], 'bad answer', 'Content-Length.*' + MEND),
    'a length of 2^64 + 5': ([head(f'Content-Length: {2 ** 64 + 5}') + SHORT, CLOSE], 'bad answer', BAD),
    'a length that is folded': ([head(b'Content-Length: 5\r\n 0') + LONG, CLOSE], 'bad answer', BAD),
    'a length and chunks': ([head('Content-Length: 5', 'Transfer-Encoding: chunked') + chunks(SHORT), CLOSE], 'bad answer', BAD),
    'a coding that is unknown': ([head('Transfer-Encoding: x') + SHORT, CLOSE], 'bad answer', BAD),
    'chunked twice': ([head('Transfer-Encoding: chunked, chunked') + chunks(SHORT), CLOSE], 'bad answer', BAD),
    'a chunk of 2^64 + 5': broken(b'10000000000000005\r\n' + SHORT + b'\r\n0\r\n\r\n', BAD),
    'a negative chunk': broken(b'-5\r\n' + SHORT + b'\r\n0\r\n\r\n', BAD),
    'a chunk without a size': broken(b'\r\n' + SHORT + b'\r\n0\r\n\r\n', BAD),
    'a chunk that is longer than its size': broken(b'4\r\n' + SHORT + b'\r\n0\r\n\r\n', BAD),
    'a NUL in a header': ([head('Content-Length: 5', b'X: a\0b') + SHORT, CLOSE], 'bad answer', 'Nul byte in header: ' + MEND),
    'a bare CR in a header': ([head('Content-Length: 5', b'X: a\rContent-Length: 50') + LONG, CLOSE], 'bad answer', BAD),
    'a blank before a colon': ([head('Content-Length : 5', 'Content-Length: 50') + LONG, CLOSE], 'bad answer', BAD),
    'a header without a name': ([head('Content-Length: 5', ': x') + SHORT, CLOSE], 'bad answer', BAD),
    'two tags that differ': ([counted(SHORT, 'ETag: "a"', 'ETag: "b"')], 'bad answer', "two headers 'etag' that differ"),
    'a tag of control characters': ([counted(SHORT, b'ETag: "\x1b[2J\x01"')], 'bad answer', BAD),
    'a status of two digits': ([b'HTTP/1.1 20 OK\r\nContent-Length: 5\r\n\r\n' + SHORT, CLOSE], 'bad answer', 'Unsupported response code.*' + MEND),
    'another protocol': ([b'SSH-2.0-OpenSSH_9.2\r\n', CLOSE], 'bad answer', 'HTTP.*no head'),
    'a document without a head': ([SHORT * 20, CLOSE], 'bad answer', 'HTTP.*no head'),
    'HTTP/2 that nobody agreed to': ([b'\0\0\0\4\0\0\0\0\0' + b'\0\0\x08\6\0\0\0\0\0' + b'x' * 8, CLOSE], 'bad answer', 'HTTP.*no head'),
}
STATUSES = {
    '401': ([counted(SHORT, status='401 Unauthorized')], 'forbidden', '401.*credentials'),
    '403': ([counted(SHORT, status='403 Forbidden')], 'forbidden', '403'),
    '404': ([counted(SHORT, status='404 Not Found')], 'not found', '404.*check the path'),
    '410': ([counted(SHORT, status='410 Gone')], 'not found', '410'),
    '429': ([counted(SHORT, status='429 Too Many Requests')], 'overloaded', '429'),
    '500': ([counted(SHORT, status='500 Internal Server Error')], 'bad answer', '500'),
    '502': ([counted(SHORT, status='502 Bad Gateway')], 'unreachable', '502'),
    '503': ([counted(SHORT, status='503 Service Unavailable')], 'overloaded', '503'),
    '504': ([counted(SHORT, status='504 Gateway Timeout')], 'unreachable', '504'),
    '999': ([counted(SHORT, status='999 Beyond')], 'bad answer', '999|malformed'),
    '204': ([head(status='204 No Content')], 'bad answer|empty', '204'),
    '206': ([counted(SHORT, 'Content-Range: bytes 0-4/50', status='206 Partial Content')], 'bad answer', '206'),
    'a 200 that is a part': ([counted(SHORT, 'Content-Range: bytes 0-4/50')], 'bad answer', 'part only'),
    'a redirect': ([counted(b'', 'Location: /elsewhere.yaml', status='302 Found')], 'bad answer', r'302.*redirect.* \(/elsewhere.yaml\)'),
    'a redirect to a file': ([counted(b'', 'Location: file:///etc/passwd', status='301 Moved Permanently')], 'bad answer', '301.*redirect'),
    'a redirect to itself': ([counted(b'', 'Location: /web.yaml', status='307 Temporary Redirect')], 'bad answer', '307.*redirect'),
    'a redirect of a megabyte': ([counted(b'', 'Location: http://' + 'x' * 99000, status='308 Permanent Redirect')], 'bad answer', '308.*redirect'),
    'a 304 of another version': ([head('ETag: "other"', status='304 Not Modified')], 'bad answer', '304'),
    'an upgrade': ([head('Upgrade: x', 'Connection: Upgrade', status='101 Switching Protocols') + SHORT, CLOSE], 'bad answer|unreachable', '101|malformed|closed|Empty reply'),
}
DOCUMENTS = {
    'an HTML page': ([counted(b'<html><body>log in: here</body></html>\n', 'Content-Type: text/html')], 'bad answer', 'HTML'),
    'an HTML page that is called yaml': ([counted(b'<html><body>log in</body></html>\n')], None, 'mapping'),
    'an empty body': ([counted(b'')], 'empty', 'empty'),
    'a blank': ([counted(b' ')], None, 'empty|no document|mapping'),
    'only comments': ([counted(b'# nothing\n')], None, 'empty|no document|mapping'),
    'a list': ([counted(b'- a\n- b\n')], None, 'line 1, column 1.*mapping'),
    'bad YAML': ([counted(b'a: 1\nb: [\n')], None, r'line \d+, column \d+'),
    'a key twice': ([counted(b'a: 1\nb: 2\na: 3\n')], None, 'line 3, column 1.*duplicate'),
    'a NUL': ([counted(b'a: "x\\0y"\n')], None, 'NUL'),
    'a NUL as it is': ([counted(b'a: x\0y\n')], None, 'NUL|control|character'),
    'not UTF-8': ([counted(b'a: \xff\xfe\n')], None, 'UTF-8'),
    'UTF-16': ([counted('a: 2\n'.encode('utf-16'))], None, 'UTF-'),
    'two documents': ([counted(b'a: 2\n---\na: 3\n')], None, 'line 2'),
    'too deep': ([counted(b'a: ' + b'[' * 500 + b']' * 500 + b'\n')], None, 'deep|level'),
    'aliases of aliases': ([counted(b'k0: &a0 [x, x]\n' + b''.join(b'k%d: &a%d [*a%d, *a%d]\n' % (i, i, i - 1, i - 1) for i in range(1, 40)))], None, 'alias|anchor|more than|large'),
    'a wrong digest': ([counted(SHORT, f'Content-Digest: sha-256=:{"A" * 43}=:')], None, 'igest'),
    'a coding that nobody asked for': ([counted(SHORT, 'Content-Encoding: br')], 'bad answer', 'encod|coded'),
    'a packed body that is cut': ([counted(gzipped(LONG)[:-9], 'Content-Encoding: gzip')], 'bad answer', 'gzip body is broken'),
    'two packed bodies': ([counted(gzipped(SHORT) + gzipped(b'b: 2\n'), 'Content-Encoding: gzip')], 'bad answer', 'gzip body is broken'),
    'a packed body with a wrong sum': ([counted(gzipped(SHORT)[:-8] + b'\0' * 8, 'Content-Encoding: gzip')], 'bad answer', 'gzip body is broken'),
    'what is not packed, called gzip': ([counted(SHORT, 'Content-Encoding: gzip')], 'bad answer', 'gzip body is broken'),
}
TABLE = {**SILENCE, **ENDS, **FRAMES, **STATUSES, **DOCUMENTS}


# ---- TLS: the steps are played instead of the handshake, but for those of an answer: Bare bytes in its body

def record(kind, body, version=b'\3\3'):
    return bytes([kind]) + version + len(body).to_bytes(2, 'big') + body


CHANGE_CIPHER, ALERT, HANDSHAKE, APPLICATION = 20, 21, 22, 23
NO_TLS = 'SSL|TLS|reset by peer'
INSTEAD = {
    'nothing': ([HOLD], 'timeout', LATE),
    'half of a record': ([record(HANDSHAKE, b'\2' + b'x' * 99)[:20], HOLD], 'timeout', LATE),
    'a hello a letter at a time': (drip(*letters(record(HANDSHAKE, b'\2\0\1\0' + b'x' * 256))), 'timeout', LATE),
    'the end': ([CLOSE], 'unreachable', NO_TLS),
    'a reset': ([.02, RESET], 'unreachable', NO_TLS),
    'an answer without TLS': ([counted(SHORT), CLOSE], 'unreachable', 'does not speak TLS at this port'),
    'garbage': ([bytes(range(256)) * 4, CLOSE], 'unreachable', NO_TLS),
    'an alert that ends it': ([record(ALERT, b'\2\x28'), CLOSE], 'unreachable', NO_TLS),
    'an alert that it is over': ([record(ALERT, b'\1\0'), CLOSE], 'unreachable', NO_TLS),
    'warnings without end': ([record(ALERT, b'\1\x5a') * 100, *drip(record(ALERT, b'\1\x5a'))], 'unreachable', NO_TLS),
    'empty records without end': ([record(HANDSHAKE, b'') * 100, *drip(record(HANDSHAKE, b''))], 'unreachable', NO_TLS),
    'changes of the cipher without end': ([record(CHANGE_CIPHER, b'\1') * 100, *drip(record(CHANGE_CIPHER, b'\1'))], 'unreachable', NO_TLS),
    'a record of 64 KiB': ([record(HANDSHAKE, b'x' * 65535), HOLD], 'unreachable', NO_TLS),
    'a hello of 16 MiB': ([record(HANDSHAKE, b'\2\xff\xff\xff' + b'x' * 16000) * 20, HOLD], 'unreachable', NO_TLS),
    'a document before the handshake': ([record(APPLICATION, counted(SHORT)), HOLD], 'unreachable', NO_TLS),
    'SSL 3': ([record(HANDSHAKE, b'\2\0\0\x26\3\0' + b'x' * 36, b'\3\0'), HOLD], 'unreachable', NO_TLS),
}
WITHIN = {
    'garbage in the body': ([head('Content-Length: 50') + SHORT, .05, Bare(b'x' * 100), HOLD], 'unreachable', NO_TLS),
    'a record that does not decrypt': ([head('Content-Length: 50') + SHORT, .05, Bare(record(APPLICATION, b'x' * 100)), HOLD], 'unreachable', NO_TLS),
    'a forged alert that it is over': ([head('Content-Length: 50') + SHORT, .05, Bare(record(ALERT, b'\1\0')), CUT], 'unreachable', NO_TLS),
    'a forged end of a body without a length': ([head() + SHORT, .05, Bare(record(ALERT, b'\1\0')), CUT], 'unreachable', NO_TLS),
    'half of a record in the body': ([head('Content-Length: 50') + SHORT, .05, Bare(record(APPLICATION, b'x' * 100)[:50]), CUT], 'unreachable', NO_TLS + '|' + CUT_OFF),
    'half of a record, and nothing more': ([head('Content-Length: 50') + SHORT, .05, Bare(record(APPLICATION, b'x' * 100)[:50]), HOLD], 'timeout', LATE),
    'an answer without TLS behind the handshake': ([Bare(counted(SHORT)), CUT], 'unreachable', NO_TLS),
}

# ---- what has no end

def bounded(begin, unit, size=CAP + SLACK):
    """`size` bytes behind the beginning, in whole units, then nothing more."""
    count, piece = -(-size // len(unit)), max(1, 65536 // len(unit))
    return [begin, *[unit * piece] * (count // piece), unit * (count % piece), HOLD]


def bomb(size):
    """One member of zeros."""
    return gzip.compress(b'#' * size, 9, mtime=0)


def stored(size):
    packer = zlib.compressobj(0, zlib.DEFLATED, 31)
    return packer.compress(b'#' * size) + packer.flush()


LARGE, ENDLESS = 'larger than the limit of 2097152 bytes', f'{MEND}|look at the server'
HEAVY = {
    'a body of a terabyte': (bounded(head(f'Content-Length: {1 << 40}'), b'#'), LARGE),
    'a byte too many': ([head(f'Content-Length: {CAP + 1}'), *[b'#' * 65536] * (CAP >> 16), b'#', HOLD], LARGE),
    'a chunk of an exabyte': (bounded(CHUNKED + b'1000000000000000\r\n', b'#'), LARGE),
    'chunks without end': (bounded(CHUNKED, b'400\r\n' + b'#' * 1024 + b'\r\n'), LARGE),
    'a body without a length': (bounded(head(), b'#'), LARGE + '|' + NO_LENGTH),
    'the body of an error without end': (bounded(head('Transfer-Encoding: chunked', status='404 Not Found'), b'400\r\n' + b'#' * 1024 + b'\r\n'), LARGE + '|404'),
    'a packed body that unpacks to 64 MiB': ([counted(bomb(64 << 20), 'Content-Encoding: gzip'), HOLD], LARGE),
    'the same in chunks': ([chunked(bomb(64 << 20), 'Content-Encoding: gzip'), HOLD], LARGE),
    'a packed body that is not packed': ([chunked(stored(CAP + 1), 'Content-Encoding: gzip'), HOLD], LARGE),
    'empty blocks without end': (bounded(head(f'Content-Length: {1 << 40}', 'Content-Encoding: gzip') + gzipped(SHORT)[:10], b'\0\0\0\xff\xff'), LARGE),
    'the name of a packed file without end': (bounded(head(f'Content-Length: {1 << 40}', 'Content-Encoding: gzip') + b'\x1f\x8b\x08\x08\0\0\0\0\0\3', b'x'), LARGE + '|gzip body'),
    'headers without end': (bounded(b'HTTP/1.1 200 OK\r\n', b'X-Y: z\r\n'), ENDLESS),
    'a header without end': (bounded(b'HTTP/1.1 200 OK\r\nX: ', b'y'), ENDLESS),
    'long headers without end': (bounded(b'HTTP/1.1 200 OK\r\n', b'X: ' + b'y' * 60000 + b'\r\n'), ENDLESS),
    'tags without end': (bounded(b'HTTP/1.1 200 OK\r\n', b'ETag: "a"\r\n'), ENDLESS),
    'cookies without end': (bounded(b'HTTP/1.1 200 OK\r\n', b'Set-Cookie: a=' + b'y' * 4000 + b'\r\n'), ENDLESS),
    'digests without end': (bounded(b'HTTP/1.1 200 OK\r\n', b'Content-Digest: sha-256=:AAAA:\r\n'), ENDLESS),
    'a status line without end': (bounded(b'HTTP/1.1 200 ', b'y'), ENDLESS),
    'interim answers without end': (bounded(b'', head(status='100 Continue')), ENDLESS),
    'early hints without end': (bounded(b'', head('Link: </x>', status='103 Early Hints')), ENDLESS),
    'empty lines without end': (bounded(b'', b'\r\n'), 'HTTP.*no head'),
    'a chunk extension without end': (bounded(CHUNKED + b'5;', b'y'), ENDLESS),
    'zeros of a chunk size without end': (bounded(CHUNKED, b'0'), ENDLESS),
    'trailers without end': (bounded(CHUNKED + chunks(SHORT, last=b'0\r\n'), b'X-Y: z\r\n'), ENDLESS),
    'a trailer without end': (bounded(CHUNKED + chunks(SHORT, last=b'0\r\nX: '), b'y'), ENDLESS),
}
