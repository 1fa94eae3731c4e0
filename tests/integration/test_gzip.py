"""gzip to its end: a stream that is cut, damaged, of another format or followed by something is refused, whatever the length around it says.

One agent has a config for each case. Each document is made so that what stands before a cut is a good one too.
"""
import bz2
import contextlib
import gzip
import json
import lzma
import os
import random
import signal
import struct
import time
import zlib

import harness
from harness import Agent
from servers.wire import Wire, chunked, chunks, counted, gzipped, head

FIRST, LAST = b'first: 1\n', b'last: 1\n'


def flushed(*parts, flush=zlib.Z_FULL_FLUSH, level=6):
    """One member with a flush behind each part: what stands before is all there for a decoder."""
    packer = zlib.compressobj(level, zlib.DEFLATED, 31)
    return b''.join(packer.compress(p) + packer.flush(flush) for p in parts) + packer.flush()


def repeated(part, count):
    """One member of so many parts. Behind a full flush equal parts are equal bytes, so that only two are packed."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    first, again = (packer.compress(part) + packer.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    crc = 0
    for _ in range(count):
        crc = zlib.crc32(part, crc)
    return first + again * (count - 1) + b'\3\0' + struct.pack('<II', crc, len(part) * count % (1 << 32))


def stored(body):
    return gzipped(body, 0)


def documents():
    """{name: (packed, plain)}: ten kinds of streams, small enough to be cut everywhere."""
    rng, lines = random.Random(2), [b'key_%d: %d\n' % (i, i * i) for i in range(12)]
    text = b''.join(lines)
    noise = b'# ' + bytes(rng.choices(b'abcdefghijklmnopqrstuvwxyz0123456789', k=60)) + b'\na: 1\n'
    named = gzip.compress(text, mtime=0)
    return {
        'plain': (gzipped(text), text), 'a flush in the middle': (flushed(*lines[:6], b''.join(lines[6:])), text), 'a flush behind each line': (flushed(*lines[:5]), b''.join(lines[:5])),
        'a sync flush': (flushed(text[:40], text[40:], flush=zlib.Z_SYNC_FLUSH), text), 'a flush at the end': (flushed(text), text), 'stored, not packed': (stored(text), text),
        'noise': (gzipped(noise), noise), 'one line': (gzipped(b'a: 1\n'), b'a: 1\n'), 'repeated': (gzipped(b'a: 1 # ' + b'x' * 3000 + b'\n'), b'a: 1 # ' + b'x' * 3000 + b'\n'),
        'with a name and a comment': (named[:3] + b'\x18' + named[4:10] + b'web.yaml\0a comment\0' + named[10:], text),
    }


class Case(harness.Case):
    def run_cases(self, cases, limit=''):
        """`cases`: {name: (steps, the document if it may be taken, else None)}. Every one is tried after a good answer, and followed by another one."""
        names, stage = list(cases), [0]

        def answer(ask):
            body = (FIRST, None, LAST)[stage[0]]
            return cases[names[int(ask.path[1:])]][0] if stage[0] == 1 else [counted(body, f'ETag: "{stage[0]}"')]
        server = Wire(self, answer)
        os.makedirs(self.path('out'))
        configs = ''.join(f'  c{i}: {{from: [{{server: main, path: /{i}}}], type: yaml, file: {self.path(f"out/{i}")}, snapshot: false, interval: 1h, timeout: 20s}}\n'
                          for i in range(len(names)))
        agent = Agent(self, f'agent: {{state_dir: {self.path("state")}, runtime_dir: {self.path("run")}}}\nservers: {{main: {{urls: ["{server.url}"]{limit}}}}}\nconfigs:\n{configs}')
        agent.ready()
        self.until_runs(agent, 1)
        stage[0] = 1
        bad = []
        with contextlib.closing(harness.UnixConnection(agent.socket)) as control:  # one connection: there are a thousand
            for i in range(len(names)):
                control.request('POST', f'/v1/configs/c{i}/refresh?wait=1')
                self.assertEqual(json.loads(control.getresponse().read())['name'], f'c{i}')
                if i % 50 == 0:
                    agent.log._more(time.monotonic() + .01)
        for i, status in enumerate(self.until_runs(agent, 2)):
            wanted, found = cases[names[i]][1], self.read(f'out/{i}')
            if wanted is not None and found != wanted:
                bad.append(f'{names[i]}: not taken: {status["last_error"]}')
            elif wanted is None and found != FIRST:
                bad.append(f'{names[i]}: published {found[:50]!r}, {len(found)} bytes')
            elif wanted is None and not any(word in (status['last_error'] or '') for word in ('gzip', 'incorrect', 'invalid', 'larger', 'unknown compression', 'short', 'cut', 'empty', 'encoding', 'bytes', 'YAML')):
                bad.append(f'{names[i]}: said {status["last_error"]}')
        stage[0] = 2
        agent.signal(signal.SIGUSR1)  # all pull now
        self.until_runs(agent, 3)
        bad += [f'{name}: the next good answer is not taken' for i, name in enumerate(names) if self.read(f'out/{i}') != LAST]
        agent.stop()
        if bad:
            self.fail(f'{len(bad)} of {len(names)}:\n  ' + '\n  '.join(bad[:60]))

    def until_runs(self, agent, number):
        """Until each config has ended so many runs; their status."""
        end = time.monotonic() + harness.DEADLINE * 2
        while True:
            agent.log._more(time.monotonic() + .02)  # so many lines would fill the pipe
            configs = json.loads(agent.get('/v1/status')[1])['configs']
            left = [c['name'] for c in configs if sum(v for k, v in c['runs'].items() if k != 'late') < number or c['running']]
            if not left:
                return configs
            self.assertLess(time.monotonic(), end, f'{len(left)} runs have not ended: {left[:9]}')


class Cuts(Case):
    def test_no_cut_of_any_document_is_taken(self):
        cases = {}
        for name, (packed, plain) in documents().items():
            for how, make in (('a length', counted), ('chunks', chunked)):
                cases[f'{name}, whole, by {how}'] = ([make(packed, 'Content-Encoding: gzip')], plain)
                for at in range(len(packed)):
                    # every other place by one of the two (tests/unit/http/test_gunzip.c cuts at each), the ends and what is around a flush by both
                    if (at % 4 == (how == 'chunks')) or at < 12 or at > len(packed) - 12 or packed[max(0, at - 4):at] == b'\0\0\xff\xff':
                        cases[f'{name}, cut at {at} of {len(packed)}, by {how}'] = ([make(packed[:at], 'Content-Encoding: gzip')], None)
        self.assertGreater(len(cases), 500)
        self.run_cases(cases)


class Neighbours(Case):
    def test_a_broken_stream_does_not_hold_up_the_other_documents_of_its_server(self):
        def answer(ask):
            packed = gzipped(b'a: 1\nb: 2\n')
            return [counted(packed[:-9] if ask.path == '/a' else packed, 'Content-Encoding: gzip')]
        server = Wire(self, answer)
        agent = Agent(self, f'''agent: {{state_dir: {self.path("state")}, runtime_dir: {self.path("run")}}}
configs:
  a: {{url: "{server.url}/a", file: {self.path("a.yaml")}, interval: 1h, type: yaml}}
  b: {{url: "{server.url}/b", file: {self.path("b.yaml")}, interval: 1h, type: yaml}}
''')
        for _ in range(5):
            _, out, error = agent.cli('refresh', 'a', '--wait')
            self.assertIn('gzip body is broken', out + error)
            self.assertEqual(agent.cli('refresh', 'b', '--wait')[0], 0)
        for s in json.loads(agent.get('/v1/status')[1])['servers']:
            for address in s['addresses']:
                self.assertEqual((address['backoff_ms'], address['network'], address['error']), (0, 0, None), address)
        agent.stop()


class Streams(Case):
    def test_what_is_no_whole_stream_or_more_than_one_is_refused(self):
        text = b''.join(b'key_%d: %d\n' % (i, i) for i in range(30))
        packed = gzipped(text)
        crc, size = struct.unpack('<II', packed[-8:])
        raw = zlib.compressobj(6, zlib.DEFLATED, -15)
        raw = raw.compress(text) + raw.flush()
        header = packed[:10]
        variants = {
            'a wrong sum': packed[:-8] + struct.pack('<II', crc ^ 1, size), 'a wrong sum in its last bit': packed[:-8] + struct.pack('<II', crc ^ 0x80000000, size),
            'a wrong length': packed[:-4] + struct.pack('<I', size + 1), 'a length of 0': packed[:-4] + b'\0\0\0\0', 'sum and length swapped': packed[:-8] + packed[-4:] + packed[-8:-4],
            'both 0': packed[:-8] + b'\0' * 8, 'another stream\'s end': packed[:-8] + gzipped(b'x')[-8:],
            'a byte behind': packed + b'x', 'a NUL behind': packed + b'\0', '1 KiB of NULs behind': packed + b'\0' * 1024, 'a newline behind': packed + b'\n', 'text behind': packed + text,
            'a second member': packed + gzipped(b'b: 2\n'), 'the same member twice': packed + packed, 'an empty second member': packed + gzipped(b''), 'half of a second member': packed + packed[:20],
            'an empty member first': gzipped(b'') + packed, 'the header of a second': packed + header, 'nothing': b'', 'only a header': header, 'an empty stream': gzipped(b''),
            'zlib': zlib.compress(text), 'raw deflate': raw, 'plain text': text, 'a header before plain text': header + text, 'a header before zlib': header + zlib.compress(text),
            'packed twice': gzipped(packed), 'another method': header[:2] + b'\7' + packed[3:], 'reserved flags': header[:3] + b'\xe0' + packed[4:], 'a wrong first byte': b'\x1e' + packed[1:],
            'a wrong second byte': b'\x1f\x8c' + packed[2:], 'an extra field that is longer than all': header[:3] + b'\4' + packed[4:10] + b'\xff\xff' + packed[10:],
            'a name without end': header[:3] + b'\10' + packed[4:10] + b'x' * 4000, 'a wrong sum of the header': header[:3] + b'\2' + packed[4:10] + b'\0\0' + packed[10:],
            'a block of a reserved kind': header + b'\x07' + packed[11:], 'a distance too far back': header + self.far(text) + packed[-8:],
            'bzip2': bz2.compress(text), 'xz': lzma.compress(text), 'compress': b'\x1f\x9d\x90' + text, 'zip': b'PK\3\4' + packed,
        }
        rng = random.Random(3)
        for at in sorted(rng.sample(range(len(packed)), 60)):
            if at not in (4, 5, 6, 7, 8, 9):  # time, level and system count for nothing
                variants[f'a bit of byte {at} flipped'] = packed[:at] + bytes([packed[at] ^ (1 << rng.randrange(8))]) + packed[at + 1:]
        cases = {}
        for name, body in variants.items():
            for how, make in (('a length', counted), ('chunks', chunked)):
                cases[f'{name}, by {how}'] = ([make(body, 'Content-Encoding: gzip')], None)
        cases['a second member, 20 ms later'] = ([head('Transfer-Encoding: chunked', 'Content-Encoding: gzip') + chunks(packed, last=b''), .02, chunks(packed)], None)
        cases['a byte behind, 20 ms later'] = ([head(f'Content-Length: {len(packed) + 1}', 'Content-Encoding: gzip') + packed, .02, b'x'], None)
        for encoding in ('gzip, gzip', 'gzip,', ', gzip', 'gzip;q=1', 'deflate', 'br', 'gzipx', 'xgzip', '"gzip"', 'gzip identity', 'gzip, identity', 'identity, gzip', 'compress', 'zstd', 'aes128gcm'):
            cases[f'Content-Encoding: {encoding}'] = ([counted(packed, f'Content-Encoding: {encoding}')], None)
        cases['two headers'] = ([counted(packed, 'Content-Encoding: gzip', 'Content-Encoding: gzip')], None)
        cases['gzip and br'] = ([counted(packed, 'Content-Encoding: gzip', 'Content-Encoding: br')], None)
        cases['br and gzip'] = ([counted(packed, 'Content-Encoding: br', 'Content-Encoding: gzip')], None)
        cases['packed, and nothing said'] = ([counted(packed)], None)
        self.run_cases(cases)

    @staticmethod
    def far(text):
        """A stream that refers to what stands before its beginning."""
        packer = zlib.compressobj(6, zlib.DEFLATED, -15, zdict=text)
        return packer.compress(text) + packer.flush()


class Sizes(Case):
    def test_the_limit_is_of_what_comes_out_to_the_byte(self):
        limit = 64 << 10

        def document(size):
            return b'a: 1 #' + b'x' * (size - 7) + b'\n'
        cases = {}
        for how, make in (('a length', counted), ('chunks', chunked)):
            for name, size in (('exactly the limit', limit), ('one byte less', limit - 1), ('one byte over', limit + 1), ('twice the limit', 2 * limit), ('a bomb', 64 << 20)):
                for level in (0, 9) if size <= 2 * limit else (9,):
                    body = document(size)
                    cases[f'{name}, level {level}, by {how}'] = ([make(gzipped(body, level), 'Content-Encoding: gzip')], body if size <= limit else None)
            cases[f'the limit in noise, by {how}'] = ([make(gzipped(self.noise(limit)), 'Content-Encoding: gzip')], self.noise(limit))
        del cases['exactly the limit, level 0, by a length'], cases['exactly the limit, level 0, by chunks']  # packed it is larger than the limit: either way is right
        bomb = repeated(b'#' * (1 << 20), 64)
        cases['a bomb with flushes'] = ([counted(bomb, 'Content-Encoding: gzip')], None)
        self.assertEqual(gzip.decompress(repeated(b'a: 1\n', 3)), b'a: 1\n' * 3)
        cases['a bomb, twice packed'] = ([counted(gzipped(bomb), 'Content-Encoding: gzip')], None)
        cases['empty blocks without end'] = ([chunked(gzipped(FIRST)[:10] + b'\0\0\0\xff\xff' * 200000, 'Content-Encoding: gzip')], None)
        self.run_cases(cases, limit=f', max_size: {limit >> 10}KiB')

    @staticmethod
    def noise(size):
        return b'a: 1 #' + bytes(random.Random(4).choices(b'abcdefghijklmnopqrstuvwxyz', k=size - 7)) + b'\n'

    def test_a_bomb_costs_no_memory(self):
        bomb = repeated(b'#' * (1 << 20), 1 << 10)
        stage = [0]
        server = Wire(self, lambda ask: [counted(bomb, 'Content-Encoding: gzip')] if stage[0] else [counted(FIRST)])
        agent = Agent(self, self.config(server.url + '/web.yaml', '    interval: 1h\n    timeout: 20s\n'))
        agent.log.wait('published')

        def peak():
            with open(f'/proc/{agent.pid}/status', encoding='ascii') as f:
                return next(int(line.split()[1]) for line in f if line.startswith('VmHWM'))
        before, stage[0] = peak(), 1
        self.assertRegex(agent.refresh()['error'], 'larger than')
        self.assertLess(peak() - before, 32 << 10, 'KiB; the limit is 8 MiB')
        agent.stop()


if __name__ == '__main__':
    harness.main()
