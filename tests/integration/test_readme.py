"""Each row of README.md's table of servers is good in the five lines above it (its blocks: test_blocks.py; options of its commands: tests/man.py)."""
import os
import re
import subprocess

import harness
from harness import PULLETD

VALID = (0, 1)  # 1: files that the examples name are not on this host


class Readme(harness.Case):
    def setUp(self):
        super().setUp()
        with open(os.path.join(harness.ROOT, 'README.md'), encoding='utf-8') as f:
            self.readme = f.read()

    def blocks(self):
        return re.findall(r'```yaml\n(.*?)```', self.readme, re.S)

    def check(self, text):
        """`pulletd -t`; owners, keys and checks that the examples name need not be there for that."""
        self.write('pullet.yaml', text)
        done = subprocess.run([PULLETD, '-t', '-c', self.path('pullet.yaml')], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def test_each_row_of_servers_is_good(self):
        five = next(b for b in self.blocks() if b.startswith('servers: {main: {kind: etcd'))
        self.assertEqual(five.count('\n'), 5)
        rows = re.findall(r'^\| [^|]+ \| `(\{.*?\})` \| (.*?) \|', self.readme, re.M)
        self.assertEqual(len(rows), 9)
        for main, paths in rows:
            found = re.findall(r'`(/[^`]+)`', paths)
            self.assertTrue(found, paths)
            for path in found:
                text = re.sub(r'main: \{.*\}\}', lambda _, m=main: f'main: {m}}}', five, count=1)
                text = text.replace('/app/web.yaml', path)
                code, said = self.check(text)
                self.assertIn(code, VALID, f'{text}\n{said}')

    def test_a_wrong_row_would_be_found(self):
        code, said = self.check('servers: {main: {kind: nacos, urls: ["http://n"]}}\nconfigs: {web: {from: [{server: main, path: /web.yaml}], file: /a}}\n')
        self.assertEqual(code, 78)
        self.assertIn('/GROUP/DATAID', said)


if __name__ == '__main__':
    harness.main()
