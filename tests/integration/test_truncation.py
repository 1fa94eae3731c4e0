"""Every prefix of twenty documents, each by a length that is larger, by the end of the connection alone, within a chunk that is larger, and by a
reset: none is taken. Most prefixes are good documents by themselves. (Packed ones are in test_gzip.py.)

The cases are dealt out to some configs, each at a server of its own; each round all of them try one.
"""
import contextlib
import json
import os
import time

import harness
from harness import Agent
from servers.wire import CLOSE, RESET, Wire, counted, head

GOOD = b'first: 1\n'
DOCUMENTS = [
    b'a: 1\n', b'a: 1\nb: 2\n', b'a: 10\nb: 20\nc: 30\n', b'host: db.example\nport: 5432\n', b'# a comment\na: 1\n', b'a:\n  b:\n    c: 1\n', b'list:\n- 1\n- 2\n- 3\n', b'a: "x y"\nb: \'z\'\n',
    b'text: |\n  one\n  two\n', b'text: >\n  folded\n  lines\n', b'a: {b: 1, c: [1, 2]}\n', b'---\na: 1\n', b'a: 1\n...\n', b'{"a": 1, "b": [true, null]}\n', b'{"nested": {"x": "y"}}', b'yes: no\non: off\n',
    b'n: 1.5e10\nm: -0\n', 'name: héllo ✓\n'.encode(), b'? key\n: value\n', b'a: &x 1\nb: *x\n',
]
WAYS = {
    'a larger length': lambda whole, part: [head(f'Content-Length: {len(whole)}') + part, CLOSE],
    'the end of the connection': lambda whole, part: [head() + part, CLOSE],
    'a larger chunk': lambda whole, part: [head('Transfer-Encoding: chunked') + b'%x\r\n' % len(whole) + part, CLOSE],
    'a reset': lambda whole, part: [head(f'Content-Length: {len(whole)}') + part, .002, RESET],
}
PLACES = 80


class Truncation(harness.Case):
    def test_no_prefix_of_any_document_is_taken(self):
        cases = [(f'{document[:at]}, {name}', way(document, document[:at])) for document in DOCUMENTS for name, way in WAYS.items() for at in range(len(document))]
        self.assertEqual(len(DOCUMENTS), 20)
        hands, given, self.good = [cases[i::PLACES] for i in range(PLACES)], [0] * PLACES, True

        def answer(ask):
            if self.good:
                return [counted(GOOD)]
            given[ask.place] += 1
            return hands[ask.place][given[ask.place] - 1][1]
        server = Wire(self, answer, places=PLACES)
        os.makedirs(self.path('out'))
        configs = ''.join(f'  c{i}: {{url: "{url}/web", type: yaml, file: {self.path(f"out/{i}")}, snapshot: false, interval: 1h, timeout: 20s}}\n' for i, url in enumerate(server.urls))
        self.agent = Agent(self, f'agent: {{state_dir: {self.path("state")}, runtime_dir: {self.path("run")}, log: {{level: warn}}}}\nconfigs:\n{configs}')
        self.until(lambda: os.path.exists(self.path('run/control.sock')), 'the control socket')
        with contextlib.closing(harness.UnixConnection(self.path('run/control.sock'))) as self.control:
            self.until(lambda: self.ended() == PLACES, 'the first pulls')
            self.good, count = False, 0
            while count < len(cases):
                turn = [i for i in range(PLACES) if given[i] < len(hands[i])]
                for i in turn:
                    self.ask('POST', f'/v1/configs/c{i}/refresh')
                count += len(turn)
                self.until(lambda: self.ended() == PLACES + count, lambda: f'{PLACES + count} runs')
                bad = [hands[i][given[i] - 1][0] for i in turn if self.read(f'out/{i}') != GOOD]
                self.assertEqual(bad, [], 'published')
        self.assertEqual([len(h) for h in hands], given)
        self.assertEqual({c['generation'] for c in self.status}, {1})
        print(f'{len(cases)} prefixes of {len(DOCUMENTS)} documents: 0 taken', flush=True)
        self.agent.stop()

    def ask(self, method, path):
        self.control.request(method, path)
        return self.control.getresponse().read()

    def ended(self):
        """How many runs have, of all configs."""
        self.agent.log._more(time.monotonic())
        self.status = json.loads(self.ask('GET', '/v1/status'))['configs']
        return sum(sum(c['runs'].values()) for c in self.status)


if __name__ == '__main__':
    harness.main()
