"""Where a body ends, and whether it is the one that was sent: every malformed or contradictory length, coding and digest is refused, the file stays as
it was, the status says why, and the next good answer is taken. What is right, though unusual, is taken.

One agent has a config for each case, each at a server of its own, since an address that fails rests. Bodies are made so that any part that
could be taken for the whole is a good document.
"""
import base64
import hashlib
import json
import os
import time

import harness
from harness import Agent
from servers.wire import CLOSE, Wire, chunked, chunks, counted, gzipped, head

SHORT = b'a: 2\n'  # 5 bytes
LONG = SHORT + b'b: 3 # ' + b'x' * 37 + b'\n'  # 50 bytes
DIGEST, TAKEN = 'igest|its header says', 'it must be taken'


class Cases(harness.Case):
    """All cases at once: first a good answer, then what is tried, then a good one."""

    TIMEOUT = '1500ms'

    def run_cases(self, cases, body=b'a: 1 # first\n', more='', after=None):
        """`cases`: {name: (steps, what the error says, None if any, TAKEN if there must be none, documents that may be taken)}."""
        names = list(cases)
        stage = [0]

        def answer(ask):
            if stage[0] == 1:
                return cases[names[ask.place]][0]
            return [counted(body if stage[0] == 0 else b'a: 5 # last\n', f'ETag: "{stage[0]}"')]
        server = Wire(self, answer, places=len(names))
        os.makedirs(self.path('out'))
        configs = ''.join(f'  c{i}: {{url: "{url}/web.yaml", file: {self.path(f"out/{i}")}, interval: 1h, timeout: {self.TIMEOUT}, jitter: 0%, history: 9{more}}}\n'
                          for i, url in enumerate(server.urls))
        self.agent = Agent(self, f'agent: {{state_dir: {self.path("state")}, runtime_dir: {self.path("run")}}}\nconfigs:\n{configs}')
        self.agent.ready()
        self.until_runs(1)
        self.assertEqual({self.read(f'out/{i}') for i in range(len(names))}, {body})
        before = {i: os.stat(self.path(f'out/{i}')) for i in range(len(names))}
        stage[0] = 1
        for i in range(len(names)):
            self.assertEqual(self.agent.post(f'/v1/configs/c{i}/refresh')[0], 202)
        bad = self.compare(self.until_runs(2), cases, names, body, before)
        stage[0] = 2
        for i, name in enumerate(names):
            outcome = self.agent.refresh(f'c{i}')
            if i % 50 == 0:
                self.read_log()
            if outcome['outcome'] != 'published' or self.read(f'out/{i}') != b'a: 5 # last\n':
                bad.append(f'{name}: the next good answer is not taken: {outcome}')
        self.agent.stop()
        if bad:
            self.fail(f'{len(bad)} of {len(names)}:\n  ' + '\n  '.join(bad))

    def compare(self, status, cases, names, body, before):
        bad = []
        for i, name in enumerate(names):
            _, words, allowed = cases[name]
            found, config = self.read(f'out/{i}'), status[f'c{i}']
            error = config['last_error']
            if words is TAKEN and found not in allowed:
                bad.append(f'{name}: not taken: {error}')
            elif found != body:
                if found not in allowed:
                    bad.append(f'{name}: published {found[:60]!r}{"..." if len(found) > 60 else ""}')
            elif os.stat(self.path(f'out/{i}')).st_ino != before[i].st_ino or config['generation'] != 1:
                bad.append(f'{name}: the file was written again')
            elif not error or (words and not any(w in error for w in words.split('|'))):
                bad.append(f'{name}: {"not taken, without a word" if not error else "said " + error}')
        return bad

    def until_runs(self, number):
        """Until each config has ended so many runs; {name: status}."""
        end = time.monotonic() + harness.DEADLINE
        while True:
            self.read_log()
            status = {c['name']: c for c in json.loads(self.agent.get('/v1/status')[1])['configs']}
            left = [n for n, c in status.items() if sum(v for k, v in c['runs'].items() if k != 'late') < number or c['running']]
            if not left:
                return status
            self.assertLess(time.monotonic(), end, f'{len(left)} runs have not ended: {left[:9]}')

    def read_log(self):
        """What there is, or what comes in a moment: so many lines would fill the pipe, and the agent would wait."""
        self.agent.log._more(time.monotonic() + .02)


def closing(*steps):
    return [*steps, CLOSE]


def refused(*steps, words=None):
    """The same answer, with the end of the connection behind it, and without."""
    return {'': (closing(*steps), words, ()), ', the connection stays open': (list(steps), None, ())}


def all_of(table):
    """{name + how: case} of {name: refused(...)}."""
    return {name + how: case for name, hows in table.items() for how, case in hows.items()}


class Lengths(Cases):
    def test_no_length_that_is_malformed_or_contradicts_another_is_taken(self):
        table = {}
        for text in ('5, 50', '50, 5', '5,50', '5, 5x', '5x', 'x5', '+5', '-5', '- 5', '', ' ', '0x5', '5.0', '5e0', '5 5', '5;', '"5"', '5\t5', '٥', '\xb2', '\v5', '5,', ',5',
                     '5 , ,5', str(2 ** 64 + 5), str(2 ** 63), str(2 ** 63 + 5), str(2 ** 32 * 2 ** 32 + 5), '18446744073709551621', '9' * 20, '1' * 30, '5\0', '\0' + '5', '5\x7f', '5\x01',
                     '0b101', '0o5', '5_0', 'five', 'chunked', '-1', '00000000000000000000000000000000000000000x5', '5#', '5\xa0'):
            line = b'Content-Length: ' + (text.encode() if text == '٥' else text.encode('latin-1'))
            table[f'Content-Length: {text!r}'] = refused(head(line) + LONG)
        for first, second in (('5', '50'), ('50', '5'), ('5', 'x'), ('x', '5'), ('5', ''), ('5', '+5'), ('5', '5, 50'), ('5', '-5'), ('50', '0')):
            table[f'Content-Length: {first} and {second}'] = refused(head(f'Content-Length: {first}', f'Content-Length: {second}') + LONG)
        table['three lengths, one differs'] = refused(head('Content-Length: 5', 'Content-Length: 5', 'Content-Length: 50') + LONG)
        table['a second length in other letters'] = refused(head('content-length: 5', 'X: y', 'CONTENT-LENGTH: 50') + LONG)
        table['a length of 0, and a body'] = refused(head('Content-Length: 0') + LONG)
        table['larger than the body'] = refused(head('Content-Length: 51') + LONG)
        table['no length'] = refused(head() + LONG)
        table['no length, as HTTP/1.0'] = refused(head(version='1.0') + LONG)
        table['no length, Connection: close'] = refused(head('Connection: close') + LONG)
        self.run_cases(all_of(table))

    def test_a_length_that_is_said_twice_or_with_zeros_is_that_length_or_refused(self):
        """RFC 9110, 8.6: a recipient may take a list of the same number for it, or refuse."""
        cases = {}
        for lines in (['Content-Length: 5, 5'], ['Content-Length: 5', 'Content-Length: 5'], ['Content-Length: 0005'], ['Content-Length: ' + '0' * 40 + '5']):
            for how in ([CLOSE], []):
                cases[f'{lines} {"ends" if how else "open"}'] = ([head(*lines) + LONG, *how], None, (SHORT,))
        self.run_cases(cases)

    def test_what_is_right_though_unusual_is_taken(self):
        right = {
            'blanks around the length': [head(b'Content-Length: \t 5 \t ') + SHORT],
            'no blank before the length': [head('content-length:5') + SHORT],
            'letter by letter': [bytes([b]) for b in counted(SHORT)],
            'interim answers first': [head(status='100 Continue') + head('Link: </x>', status='103 Early Hints') + counted(SHORT)],
            'an interim answer, a pause': [head(status='102 Processing'), .05, counted(SHORT)],
            'chunks': [head('Transfer-Encoding: chunked') + chunks(b'a', b': ', b'2\n')],
            'Chunked in other letters': [head('transfer-encoding: CHUNKED') + chunks(SHORT)],
            'chunk extensions': [head('Transfer-Encoding: chunked') + b'2;x=y\r\na:\r\n3;a="b;c"\r\n 2\n\r\n0;end\r\n\r\n'],
            'chunk sizes with zeros and capitals': [head('Transfer-Encoding: chunked') + b'000A\r\na: 2 # xx\n\r\n000\r\n\r\n'],
            'trailers': [head('Transfer-Encoding: chunked') + chunks(SHORT, last=b'0\r\nX-Sum: 1\r\nX-Other: 2\r\n\r\n')],
            'chunks, a byte at a time': [bytes([b]) for b in chunked(SHORT)],
            'as HTTP/1.0, with a length': [head('Content-Length: 5', version='1.0') + SHORT, CLOSE],
            'no reason phrase': [b'HTTP/1.1 200 \r\nContent-Length: 5\r\n\r\n' + SHORT],
            'gzip': [counted(gzipped(SHORT), 'Content-Encoding: gzip')],
            'gzip in chunks': [chunked(gzipped(SHORT), 'Content-Encoding: gzip')],
            'gzip, a byte at a time': [bytes([b]) for b in counted(gzipped(SHORT), 'content-encoding: GZIP')],
            'x-gzip': [counted(gzipped(SHORT), 'Content-Encoding: x-gzip')],
        }
        stage = [0]
        names = list(right)
        server = Wire(self, lambda ask: right[names[ask.place]] if stage[0] else [counted(b'a: 1\n')], places=len(right))
        os.makedirs(self.path('out'))
        configs = ''.join(f'  c{i}: {{url: "{url}/web.yaml", file: {self.path(f"out/{i}")}, interval: 1h}}\n' for i, url in enumerate(server.urls))
        agent = Agent(self, f'agent: {{state_dir: {self.path("state")}, runtime_dir: {self.path("run")}}}\nconfigs:\n{configs}')
        for i in range(len(names)):
            agent.log.wait(f'published config=c{i} ')
        stage[0] = 1
        for i, name in enumerate(names):
            with self.subTest(name):
                outcome = agent.refresh(f'c{i}')
                self.assertEqual(outcome['outcome'], 'published', outcome)
                self.assertEqual(self.read(f'out/{i}'), b'a: 2 # xx\n' if 'zeros' in name else SHORT)
        agent.stop()


class Codings(Cases):
    def test_no_transfer_coding_that_is_unknown_or_meets_a_length_is_taken(self):
        table, chunk = {}, chunks(SHORT)
        for text in ('gzip', 'deflate', 'compress', 'identity', 'xchunked', 'chunkedx', 'chunked, chunked', 'chunked,chunked', 'chunked, gzip', 'gzip, gzip', 'chunked, identity',
                     'x, chunked', '"chunked"', 'chun ked', 'chunked\0', '\vchunked', 'ch\xfcnked', '', ',', 'br', '*', 'identity, chunked', 'deflate, chunked', 'gzip, chunked'):
            line = b'Transfer-Encoding: ' + text.encode('latin-1')
            table[f'Transfer-Encoding: {text!r}, a plain body'] = refused(head(line) + SHORT)
            table[f'Transfer-Encoding: {text!r}, chunks'] = refused(head(line) + chunk)
            table[f'Transfer-Encoding: {text!r} and a length'] = refused(head(line, 'Content-Length: 5') + SHORT)
        for name, lines in {'chunked and a length': ['Transfer-Encoding: chunked', 'Content-Length: 5'], 'a length and chunked': ['Content-Length: 5', 'Transfer-Encoding: chunked'],
                            'chunked and the length of the chunks': ['Transfer-Encoding: chunked', f'Content-Length: {len(chunk)}'],
                            'chunked and a length of 0': ['Content-Length: 0', 'Transfer-Encoding: chunked'],
                            'chunked twice': ['Transfer-Encoding: chunked', 'Transfer-Encoding: chunked'], 'chunked and identity': ['Transfer-Encoding: chunked', 'Transfer-Encoding: identity'],
                            'gzip and chunked': ['Transfer-Encoding: gzip', 'Transfer-Encoding: chunked'], 'chunked and x': ['Transfer-Encoding: x', 'Transfer-Encoding: chunked']}.items():
            table[f'{name}, chunks'] = refused(head(*lines) + chunk)
            table[f'{name}, a plain body'] = refused(head(*lines) + SHORT)
        table['gzip, chunked, that are so'] = refused(head('Transfer-Encoding: gzip, chunked') + chunks(gzipped(SHORT)))
        table['chunked, as HTTP/1.0'] = refused(head('Transfer-Encoding: chunked', version='1.0') + chunk)
        table['chunked with a length, as HTTP/1.0'] = refused(head('Transfer-Encoding: chunked', 'Content-Length: 5', version='1.0') + SHORT)
        self.run_cases(all_of(table))

    def test_no_chunk_that_is_malformed_is_taken(self):
        bodies = {
            'a size that overflows 64 bits': b'10000000000000005\r\n' + SHORT + b'\r\n0\r\n\r\n', 'a size of 17 digits': b'fffffffffffffffff\r\n' + LONG,
            'the largest size': b'ffffffffffffffff\r\n' + LONG, 'half of that': b'7fffffffffffffff\r\n' + LONG, 'and one more': b'8000000000000000\r\n' + LONG,
            'a size that overflows 32 bits': b'100000005\r\n' + SHORT + b'\r\n0\r\n\r\n',
            'a negative size': b'-5\r\n' + SHORT + b'\r\n0\r\n\r\n', 'a size with a plus': b'+5\r\n' + SHORT + b'\r\n0\r\n\r\n', 'a size with 0x': b'0x5\r\n' + SHORT + b'\r\n0\r\n\r\n',
            'no size': b'\r\n' + SHORT + b'\r\n0\r\n\r\n', 'a size that is none': b'g\r\n' + SHORT + b'\r\n0\r\n\r\n', 'a blank before the size': b' 5\r\n' + SHORT + b'\r\n0\r\n\r\n',
            'a size and garbage': b'5x\r\n' + SHORT + b'\r\n0\r\n\r\n', 'a size, a blank and garbage': b'5 5\r\n' + SHORT + b'\r\n0\r\n\r\n',
            'no last chunk': b'5\r\n' + SHORT + b'\r\n', 'no end of the last chunk': b'5\r\n' + SHORT + b'\r\n0\r\n', 'half of the last size': b'5\r\n' + SHORT + b'\r\n0',
            'a chunk that is short': b'5\r\na: 2', 'a chunk that is longer than its size': b'4\r\n' + SHORT + b'\r\n0\r\n\r\n', 'a chunk that is shorter than its size': b'6\r\n' + SHORT + b'\r\n0\r\n\r\n',
            'no end behind a chunk': b'5\r\n' + SHORT + b'0\r\n\r\n', 'a NUL in the size': b'5\0\r\n' + SHORT + b'\r\n0\r\n\r\n', 'a size behind zeros without end': b'0' * 200000 + b'5\r\n' + SHORT + b'\r\n0\r\n\r\n',
            'a size line without end': b'5;' + b'x' * 200000 + b'\r\n' + SHORT + b'\r\n0\r\n\r\n', 'trailers without end': b'5\r\n' + SHORT + b'\r\n0\r\n' + b'X-Y: z\r\n' * 100000 + b'\r\n',
            'one trailer without end': b'5\r\n' + SHORT + b'\r\n0\r\nX: ' + b'y' * 400000 + b'\r\n\r\n',
            'trailers that are cut short': b'5\r\n' + SHORT + b'\r\n0\r\nX-Y: z\r\n', 'a comma for a size': b',\r\n' + SHORT + b'\r\n0\r\n\r\n',
        }
        self.run_cases(all_of({name: refused(head('Transfer-Encoding: chunked') + body) for name, body in bodies.items()}))

    def test_no_header_that_is_malformed_hides_or_makes_a_length(self):
        """What one reader takes for a header another takes for none: each of these is a way to have two lengths."""
        def raw(*lines):
            return b'\r\n'.join((b'HTTP/1.1 200 OK', *lines, b'', b''))
        heads = {
            'a folded length': raw(b'Content-Length:', b' 5'), 'a folded second length': raw(b'Content-Length: 5', b' 0'), 'a folded list': raw(b'Content-Length: 50,', b'\t5'),
            'a folded coding': raw(b'Content-Length: 5', b'Transfer-Encoding:', b' chunked'), 'a blank before the colon': raw(b'Content-Length : 5'),
            'a blank before the colon of a second': raw(b'Content-Length: 50', b'Content-Length : 5'), 'a tab before the colon': raw(b'Content-Length\t: 5', b'Content-Length: 50'),
            'a blank before the colon of a coding': raw(b'Content-Length: 5', b'Transfer-Encoding : chunked'), 'a blank before the first name': raw(b' Content-Length: 50', b'Content-Length: 5'),
            'a bare CR before a second length': raw(b'X: y\rContent-Length: 50', b'Content-Length: 5'), 'a bare CR in the length': raw(b'Content-Length: 5\r0'),
            'a bare CR before the length': raw(b'X: y\rContent-Length: 5'), 'a NUL in a header': raw(b'Content-Length: 5', b'X: a\0b'), 'a NUL in a name': raw(b'Content-Length: 5', b'X\0Y: b'),
            'a NUL behind the length': raw(b'Content-Length: 5\0', b'Content-Length: 50'), 'a line without a colon': raw(b'Content-Length: 5', b'nothing'),
            'a line without a name': raw(b'Content-Length: 5', b': x'), 'a NUL in the status line': b'HTTP/1.1 200 O\0K\r\nContent-Length: 5\r\n\r\n',
            'a bare CR in the status line': b'HTTP/1.1 200 OK\rContent-Length: 50\r\nContent-Length: 5\r\n\r\n',
        }
        cases = all_of({name: refused(text + LONG) for name, text in heads.items()})
        # RFC 9112, 2.2 and 5.2: a bare CR and a folded line may also be read as a blank
        for name in ('a folded length', 'a bare CR before a second length', 'a bare CR in the status line', 'a line without a colon', 'a line without a name'):
            for how in ('', ', the connection stays open'):
                steps, words, _ = cases[name + how]
                cases[name + how] = (steps, words, (SHORT,))
        self.run_cases(cases)

    def test_no_status_line_that_is_malformed_is_taken(self):
        lines = ['HTTP/1.1 200', 'HTTP/1.1  200 OK', 'HTTP/1.1 0200 OK', 'HTTP/1.1 2000 OK', 'HTTP/1.1 20 OK', 'HTTP/1.1 +200 OK', 'HTTP/1.1 200OK', 'HTTP/2.0 200 OK', 'HTTP/3 200 OK',
                 'HTTP/1.2 200 OK', 'HTTP/0.9 200 OK', 'HTTP/11 200 OK', 'HTTP/1.10 200 OK', 'http/1.1 200 OK', 'HTTP 200 OK', 'ICY 200 OK', ' HTTP/1.1 200 OK', 'HTTP/1.1 -200 OK', 'HTTP/1.1 000 OK',
                 'HTTP/1.1 099 OK', 'HTTP/1.1 299 OK', 'HTTP/1.1 600 OK', 'HTTP/1.1 999 OK', 'RTSP/1.0 200 OK', 'HTTP/1.1 200\0 OK']
        # a newer minor version, and what can be read in one way only
        allowed = {'HTTP/1.1 200', 'HTTP/1.2 200 OK', 'HTTP/1.1  200 OK', 'HTTP/1.1 200OK', 'http/1.1 200 OK', 'HTTP/2.0 200 OK'}
        self.run_cases({line: ([f'{line}\r\nContent-Length: 5\r\n\r\n'.encode() + SHORT, CLOSE], None, (SHORT,) if line in allowed else ()) for line in lines})


class Statuses(Cases):
    def test_no_other_answer_than_a_200_is_a_document(self):
        table = {}
        for status in ('201 Created', '202 Accepted', '203 Non-Authoritative Information', '205 Reset Content', '206 Partial Content', '207 Multi-Status', '226 IM Used', '300 Multiple Choices',
                       '301 Moved Permanently', '302 Found', '303 See Other', '305 Use Proxy', '307 Temporary Redirect', '308 Permanent Redirect', '400 Bad Request', '401 Unauthorized', '404 Not Found',
                       '410 Gone', '416 Range Not Satisfiable', '451 Legal', '500 Oh', '501 No', '505 No', '511 Log in'):
            table[status] = refused(counted(SHORT, 'Location: /other.yaml', 'Content-Range: bytes 0-4/5', status=status))
        table['a 200 that is a part'] = refused(counted(SHORT, 'Content-Range: bytes 0-4/50'))
        table['a 200 that is the first of parts'] = refused(counted(b'--x\r\nContent-Range: bytes 0-4/50\r\n\r\na: 2\n\r\n--x--', 'Content-Type: multipart/byteranges; boundary=x'))
        table['a 204'] = refused(head(status='204 No Content'))
        table['a 304 to a question that was not conditional'] = refused(head(status='304 Not Modified'))
        table['a 101'] = refused(head('Upgrade: x', 'Connection: Upgrade', status='101 Switching Protocols') + counted(SHORT))
        table['a 200 without a body, as to HEAD'] = refused(head('Content-Length: 0'))
        table['no last chunk but an end'] = refused(head('Transfer-Encoding: chunked', 'Connection: close') + b'5\r\n' + SHORT + b'\r\n')
        # what is held has an ETag, so that a 304 is an answer: not of another ETag than was asked for
        cases = all_of(table)
        cases = {name: case for name, case in cases.items() if '304' not in name}
        self.run_cases(cases)


def sha(body, algorithm='sha-256'):
    return f'{algorithm}=:{base64.b64encode(hashlib.new(algorithm.replace("-", "").replace("sha512", "sha512"), body).digest()).decode()}:'


class Digests(Cases):
    """RFC 9530: Content-Digest is of the content as it was sent, Repr-Digest of the representation; Content-Encoding is part of both."""

    def test_every_digest_must_fit(self):
        right, wrong, packed = sha(SHORT), sha(b'a: 3\n'), gzipped(SHORT)
        strong, strong_wrong = sha(SHORT, 'sha-512'), sha(b'a: 3\n', 'sha-512')
        bad, good = {}, {}
        for field in ('Content-Digest', 'Repr-Digest'):
            for name, lines in {
                    'wrong': [wrong], 'wrong, sha-512': [strong_wrong], 'right, then wrong': [right, wrong], 'wrong, then right': [wrong, right],
                    'right and wrong in a list': [f'{right}, {strong_wrong}'], 'wrong and right in a list': [f'{wrong}, {strong}'], 'right, wrong in another header': [right, strong_wrong],
                    'an unknown one, and one that is wrong': [f'unknown=:AAAA:, {wrong}'], 'wrong, and an unknown one': [f'{wrong}, md5=:AAAA:']}.items():
                bad[f'{field} {name}'] = refused(counted(SHORT, *(f'{field}: {line}' for line in lines)), words=DIGEST)
            malformed = {'no colons': lambda d: d.replace(':', ''), 'an end that is missing': lambda d: d[:-1], 'two in one': lambda d: d + d[7:], 'garbage behind it': lambda d: d + ' x',
                         'a list of garbage': lambda d: f'{d}, =:x:', 'garbage before it': lambda d: f'=:x:, {d}', 'a blank before the value': lambda d: d.replace('=', '= ', 1),
                         'other letters': lambda d: d.replace('sha', 'SHA')}
            for name, make in malformed.items():  # what is right may be read or refused, what is wrong is refused
                bad[f'{field} wrong, and {name}'] = refused(counted(SHORT, f'{field}: {make(wrong)}'), words=DIGEST)
                good[f'{field} right, but {name}'] = None, [counted(SHORT, f'{field}: {make(right)}')]
            for name, text in {'too short': 'sha-256=:AAAA:', 'empty': 'sha-256=::', 'no base64': 'sha-256=:####:', 'a text': 'sha-256="x"', 'hexadecimal': f'sha-256=:{hashlib.sha256(SHORT).hexdigest()}:',
                               'without a value': 'sha-256', 'too long': 'sha-256=:' + base64.b64encode(hashlib.sha256(SHORT).digest() + b'x').decode() + ':', 'of another length': strong.replace('512', '256')}.items():
                bad[f'{field} malformed, {name}'] = refused(counted(SHORT, f'{field}: {text}'), words=DIGEST)
            for name, lines in {'right': [right], 'right, sha-512': [strong], 'two': [f'{right}, {strong}'], 'two headers': [right, strong], 'an unknown one beside': [f'md5=:AAAA:, {right}'],
                                'an unknown one alone': ['unknown=:AAAA:'], 'with a parameter': [right + ';x=1'], 'other letters': [right]}.items():
                good[f'{field} {name}'] = [counted(SHORT, *(f'{field.lower() if "letters" in name else field}: {line}' for line in lines))]
            # what a proxy packed, which left the digest as it was
            good[f'{field} under gzip, of what was not packed'] = None, [counted(packed, 'Content-Encoding: gzip', f'{field}: {right}')]
            bad[f'{field} under gzip, wrong'] = refused(counted(packed, 'Content-Encoding: gzip', f'{field}: {wrong}'), words=DIGEST)
            bad[f'{field} under gzip and chunks, wrong'] = refused(chunked(packed, 'Content-Encoding: gzip', f'{field}: {wrong}'), words=DIGEST)
            good[f'{field} under gzip'] = [counted(packed, 'Content-Encoding: gzip', f'{field}: {sha(packed)}')]
            good[f'{field} under chunks'] = [chunked(SHORT, f'{field}: {right}')]
            good[f'{field} under gzip and chunks'] = [chunked(packed, 'Content-Encoding: gzip', f'{field}: {sha(packed)}')]
        bad['Content-Digest right, Repr-Digest wrong'] = refused(counted(SHORT, f'Content-Digest: {right}', f'Repr-Digest: {wrong}'), words=DIGEST)
        bad['Content-Digest wrong, Repr-Digest right'] = refused(counted(SHORT, f'Content-Digest: {wrong}', f'Repr-Digest: {right}'), words=DIGEST)
        good['both'] = [counted(SHORT, f'Content-Digest: {right}', f'Repr-Digest: {strong}')]
        self.run_cases({**all_of(bad), **{name: (case[1], None, (SHORT,)) if isinstance(case, tuple) else (case, TAKEN, (SHORT,)) for name, case in good.items()}})


class Trailers(Cases):
    def test_what_a_trailer_says_of_the_document_does_not_count(self):
        """RFC 9110, 6.5.1: no field of a trailer is merged into the headers unless its definition allows it."""
        trailers = {'ETag: "trailer"': None, 'Content-Type: text/html': None, 'Content-Encoding: br': None, 'Content-Encoding: gzip': None, 'Last-Modified: Thu, 01 Jan 2099 00:00:00 GMT': None,
                    'Content-Length: 3': None, 'Transfer-Encoding: identity': None, 'Content-Range: bytes 0-1/2': None, 'Retry-After: 60': None, 'Connection: close': None}
        asked = {}
        names = list(trailers)
        stage = [0]

        def answer(ask):
            asked.setdefault(ask.place, []).append(ask.headers)
            body = f'a: {stage[0] + 1}\n'.encode()
            return [chunked(body, 'ETag: "header"', 'Content-Type: application/yaml', last=f'0\r\n{names[ask.place]}\r\n\r\n'.encode())]
        server = Wire(self, answer, places=len(names))
        os.makedirs(self.path('out'))
        configs = ''.join(f'  c{i}: {{url: "{url}/web", file: {self.path(f"out/{i}")}, interval: 1h}}\n' for i, url in enumerate(server.urls))
        agent = Agent(self, f'agent: {{state_dir: {self.path("state")}, runtime_dir: {self.path("run")}}}\nconfigs:\n{configs}')
        for i, name in enumerate(names):
            with self.subTest(name):
                agent.log.wait(f'published config=c{i} ')
                self.assertEqual((self.read(f'out/{i}'), agent.status(f'c{i}')['version'], agent.status(f'c{i}')['type']), (b'a: 1\n', '"header"', 'yaml'))
        stage[0] = 1
        for i, name in enumerate(names):
            with self.subTest(name):
                self.assertEqual(agent.refresh(f'c{i}')['outcome'], 'published')
                self.assertEqual(self.read(f'out/{i}'), b'a: 2\n')
                self.assertEqual(asked[i][-1].get('if-none-match'), '"header"')
                self.assertNotIn('if-modified-since', asked[i][-1])
        agent.stop()


if __name__ == '__main__':
    harness.main()
