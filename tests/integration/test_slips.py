"""Slips in YAML, as people make them: the exact place, a guess at what was meant, and a remedy that mends it (tests/golden/slips.txt)."""
import os
import re
import subprocess

import harness

TABLE = os.path.join(harness.ROOT, 'tests', 'golden', 'slips.txt')
ESCAPE = re.compile(rb'\\(\\|t|r|x[0-9A-F]{2})')
MARK = re.compile(r'^--- (\d+:\d+) (.*)$', re.M)


def plain(text):
    """The bytes that the table writes so."""
    return ESCAPE.sub(lambda m: {b't': b'\t', b'r': b'\r', b'\\': b'\\'}.get(m[1]) or bytes.fromhex(m[1][1:].decode()), text.encode())


def rows():
    with open(TABLE, encoding='utf-8') as f:
        for part in re.split(r'^=== ', f.read(), flags=re.M)[1:]:
            name, text = part.split('\n', 1)
            slip, place, words, remedy = MARK.split(text)
            yield name, plain(slip), place, plain(words).decode(), plain(remedy[1:])


class Slips(harness.Case):
    def check(self, text):
        path = self.path('pullet.yaml')
        with open(path, 'wb') as f:
            f.write(text)
        done = subprocess.run([harness.PULLETD, '-c', path, '-t'], capture_output=True, text=True, timeout=20, check=False)
        return done.returncode, done.stderr.replace(path, '@').splitlines()

    def test_each_slip_has_its_place_and_a_guess(self):
        for name, slip, place, words, _ in rows():
            with self.subTest(name):
                code, lines = self.check(slip)
                self.assertEqual(code, 78)
                self.assertTrue(lines[0].startswith(f'@:{place}: '), lines)
                self.assertIn(words, lines[0])

    def test_each_remedy_mends_it(self):
        for name, _, _, _, remedy in rows():
            with self.subTest(name):
                self.assertEqual(self.check(remedy), (0, []))

    def test_the_table_has_forty_rows_at_least_each_once(self):
        names = [row[0] for row in rows()]
        self.assertGreaterEqual(len(names), 40)
        self.assertEqual(len(set(names)), len(names))


if __name__ == '__main__':
    harness.main()
