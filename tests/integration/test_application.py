"""What tests and event loops of applications are given: `pullet build`, and pullet_fd() beside a real agent, here by Python's asyncio."""
import asyncio
import hashlib
import os
import signal
import subprocess
import sys

import harness
from harness import PULLET, Agent

# Python cannot load a library with a sanitizer in it: the plain one is beside it where CI runs
os.environ['PULLET_LIBRARY'] = os.path.join(harness.ROOT, 'build' if harness.SANITIZED else harness.BUILD, 'libpullet.so.0')
sys.path.insert(0, os.path.join(harness.ROOT, 'lib/python'))
import pullet  # noqa: E402

SCHEMA = '{"type": "object", "properties": {"port": {"$ref": "defs.json#/$defs/port"}}}'


class Build(harness.Case):
    def build(self, *args, rc=0):
        done = subprocess.run([PULLET, 'build', *args], cwd=self.dir, capture_output=True, text=True, timeout=harness.DEADLINE, check=False)
        self.assertEqual(done.returncode, rc, done.stderr)
        self.assertEqual(done.stdout, '')
        return done.stderr.removeprefix('pullet build: ').strip()

    def digest(self):
        return hashlib.sha256(self.read('web.snap')).hexdigest()

    def test_a_document_is_what_readers_read_and_another_one_the_next_generation(self):
        self.write('web.yaml', 'db: {host: a, ports: [1, 2]}\nevery: 10s\n')
        self.build('web.yaml', '-o', 'web.snap', '--version', 'v1')
        with pullet.open(self.path('web.snap')) as config:
            self.assertEqual((config.as_dict(), config.version, config.generation), ({'db': {'host': 'a', 'ports': [1, 2]}, 'every': '10s'}, 'v1', 1))
            first = self.digest()
            self.build('web.yaml', '-o', 'web.snap', '--version', 'v1')
            self.assertEqual(self.digest(), first, 'the same document, the same bytes')
            self.assertFalse(config.refresh())
            self.write('web.json', '{"db": 1}')
            self.build('web.json', '-o', 'web.snap')
            self.assertTrue(config.refresh())
            self.assertEqual((config.as_dict(), config.version, config.generation), ({'db': 1}, '', 2))
        self.assertEqual(os.stat(self.path('web.snap')).st_mode & 0o777, 0o644)

    def test_a_schema_is_asked(self):
        self.write('s.json', SCHEMA)
        self.write('defs/defs.json', '{"$defs": {"port": {"type": "integer"}}}')
        self.write('web.yaml', 'port: http\n')
        said = self.build('web.yaml', '-o', 'web.snap', '--schema', 's.json', '--schema-dir', 'defs', rc=1)
        self.assertEqual(said, 'web.yaml does not fit s.json:\nline 1, column 7: /port: must be an integer, but is "http"')
        self.assertFalse(os.path.exists(self.path('web.snap')))
        self.write('web.yaml', 'port: 80\n')
        self.build('web.yaml', '-o', 'web.snap', '--schema', 's.json', '--schema-dir', 'defs')

    def test_what_is_wrong_is_said_and_changes_nothing(self):
        self.write('web.yaml', 'a: 1\n')
        self.write('bad.yaml', 'a: [\n')
        self.write('agent.gen', '')
        self.write('junk.snap', 'junk')
        self.write('s.json', '{"type": 3}')
        for args, rc, said in (
                (('web.yaml',), 64, 'name the snapshot to write with -o'), (('-o', 'x.snap'), 64, 'name one document'),
                (('web.yaml', '-o', 'web.yaml'), 64, "NAME.snap, not 'web.yaml'"), (('web.yaml', '-o', '.snap'), 64, "NAME.snap, not '.snap'"),
                (('web.yaml', '-o', 'x.snap', '--schema-dir', '.'), 64, '--schema-dir goes with --schema'),
                (('web.yaml', '-o', 'x.snap', '--version', 'v' * 256), 64, 'at most 255 bytes'),
                (('none.yaml', '-o', 'x.snap'), 1, 'none.yaml cannot be read: No such file'), (('bad.yaml', '-o', 'x.snap'), 1, 'bad.yaml:1:4: '),
                (('web.yaml', '-o', 'none/x.snap'), 1, 'none/x.snap cannot be written: '), (('web.yaml', '-o', 'agent.snap'), 1, 'agent.gen lies beside it'),
                (('web.yaml', '-o', 'junk.snap'), 1, 'is no snapshot, or a damaged one'),
                (('web.yaml', '-o', 'x.snap', '--schema', 'none.json'), 1, 'none.json cannot be read: No such file'),
                (('web.yaml', '-o', 'x.snap', '--schema', 's.json'), 1, '/type: must be a list or a string')):
            with self.subTest(args=args):
                self.assertIn(said, self.build(*args, rc=rc))
        self.assertEqual(sorted(os.listdir(self.dir)), ['agent.gen', 'bad.yaml', 'junk.snap', 's.json', 'web.yaml'])
        self.assertEqual(self.read('junk.snap'), b'junk')


class Headers(harness.Case):
    """What an application that is built by other rules than pullet's own includes."""
    SOURCES = {'main.c': '#include <pullet.h>\nconst void *other(struct pullet_key *);\n'
               'int main(void) { struct pullet *p; struct pullet_key k; if (pullet_open("./none.snap", 0, &p)) return 7;\n'
               'pullet_key_init(&k, p, "a", 1); return pullet_key_get(&k) == other(&k); }\n',
               'other.c': '#include <pullet.h>\nconst void *other(struct pullet_key *);\nconst void *other(struct pullet_key *k) { return pullet_key_get(k); }\n'}

    def compile(self, compiler, *args):
        lib = os.path.join(harness.ROOT, 'lib')
        done = subprocess.run([*compiler.split(), '-Wall', '-Wextra', '-Wconversion', '-Wsign-conversion', '-Wshadow', '-Werror', '-I' + lib, '-I' + os.path.join(lib, 'cpp'), *args],
                              cwd=self.dir, capture_output=True, text=True, timeout=harness.DEADLINE, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_two_files_of_any_dialect_of_c_are_one_program(self):
        for name, text in self.SOURCES.items():
            self.write(name, text)
        for dialect in ('-std=c89', '-std=gnu89', '-std=c99', '-std=gnu11', '-std=gnu11 -fgnu89-inline', '-std=c2x'):
            for optimize in ('-O0', '-O2'):
                with self.subTest(dialect=dialect, optimize=optimize):
                    self.compile(os.environ.get('CC', 'gcc'), *dialect.split(), optimize, 'main.c', 'other.c', '-o', 'program',
                                 os.environ['PULLET_LIBRARY'], '-Wl,-rpath,' + os.path.dirname(os.environ['PULLET_LIBRARY']))
                    self.assertEqual(subprocess.run([self.path('program')], check=False, timeout=harness.DEADLINE).returncode, 7)

    def test_the_header_of_cpp_has_no_warnings_of_conversions(self):
        self.write('main.cpp', '#include <pullet.hpp>\nint main() { return 0; }\n')
        self.compile(os.environ.get('CXX', 'g++'), '-std=c++17', '-O2', '-c', 'main.cpp', '-o', 'main.o')


class EventLoop(harness.Case):
    async def bounded(self, what):
        return await asyncio.wait_for(what, harness.DEADLINE)

    def test_the_first_each_change_a_withdrawal_and_a_return_are_seen(self):
        asyncio.run(self.live())

    async def live(self):
        with pullet.open(self.path('run/web.snap'), wait_first=True) as config:  # the directory is not there yet
            waiting = asyncio.create_task(config.wait_async())
            await asyncio.sleep(0)
            _, url, _ = self.serve()
            self.write('www/web.yaml', 'n: 0\n')
            settings = self.config(url + '/web.yaml')
            self.agent = Agent(self, settings)
            await self.bounded(waiting)
            self.assertEqual(config['n'], 0)
            for n in range(1, 20):
                self.write('www/web.yaml', f'n: {n}\n')
                self.agent.refresh()
                while config['n'] != n:
                    await self.bounded(config.wait_async())
            self.agent.stop()
            self.agent = Agent(self, settings)
            self.agent.ready()
            self.write('www/web.yaml', 'n: 100\n')
            self.agent.refresh()
            while config['n'] != 100:
                await self.bounded(config.wait_async())
            self.write('pullet.yaml', settings.replace('    file:', '    snapshot: false\n    file:'))
            self.agent.signal(signal.SIGHUP)
            with self.assertRaises(pullet.Withdrawn):
                while True:
                    await self.bounded(config.wait_async())
            self.write('pullet.yaml', settings)
            self.agent.signal(signal.SIGHUP)
            await self.bounded(config.wait_async())
            self.assertEqual((config['n'], config.withdrawn), (100, False))


if __name__ == '__main__':
    harness.main()
