"""Snapshots of the real agent, read through the library (by its Python binding): values, generations, waiting, loss and repair."""
import os
import signal
import subprocess
import sys
import threading

import harness
from harness import Agent, FaultServer, good

# a sanitized library cannot be loaded into a plain interpreter; the agent under test may be sanitized
LIBRARIES = os.path.join(harness.ROOT, 'build')
os.environ['PULLET_LIBRARY'] = os.path.join(LIBRARIES, 'libpullet.so.0')
sys.path.insert(0, os.path.join(harness.ROOT, 'lib', 'python'))


class Snapshot(harness.Case):
    def setUp(self):
        super().setUp()
        self.server = FaultServer(self)
        self.set(1)

    def set(self, n, more=''):
        self.server.behave = good(f'n: {n}\ndb: {{host: "h{n}", port: 5432}}\nlist: [a, b]\n{more}'.encode(), f'ETag: "v{n}"\r\n')

    def start(self, more='    interval: 1h\n', **kw):
        agent = Agent(self, self.config(self.server.url + '/web.yaml', more), **kw)
        return agent

    def open(self, **kw):
        import pullet
        config = pullet.open(self.path('run/web.snap'), **kw)
        self.addCleanup(config.close)
        return config

    def test_values_generation_version_age_and_the_next_version(self):
        agent = self.start()
        agent.log.wait('published.*generation=1')
        config = self.open()
        self.assertEqual((config['n'], config['db.host'], config['db.port'], config['list.1']), (1, 'h1', 5432, 'b'))
        self.assertEqual((config.generation, config.version), (1, 'v1'))
        self.assertFalse(config.stale)
        self.assertLess(config.age.total_seconds(), 60)
        self.assertFalse(config.refresh())
        woken = threading.Event()

        def wait():
            other = self.open()
            while other.generation < 2:
                other.wait(harness.DEADLINE)
            self.assertEqual(other['n'], 2)
            woken.set()
        thread = threading.Thread(target=wait)
        thread.start()
        self.set(2)
        self.assertEqual(agent.refresh()['generation'], 2)
        self.assertTrue(woken.wait(harness.DEADLINE))
        thread.join()
        self.assertEqual(config['n'], 1, 'a version stays whole until refresh()')
        self.assertTrue(config.refresh())
        self.assertEqual(config.generation, 2)
        self.assertEqual(agent.status()['snapshot'], self.path('run/web.snap'))
        self.assertEqual(os.stat(self.path('run/web.snap')).st_mode & 0o777, 0o640)
        agent.stop()
        self.assertEqual(config['db.host'], 'h2', 'the end of the agent disturbs nobody')

    def test_without_a_file_there_is_only_the_snapshot(self):
        agent = self.start()
        agent.log.wait('published')
        agent.stop()
        text = self.config(self.server.url + '/web.yaml', '    interval: 1h\n', name='only')
        lines = [line for line in text.split('\n') if not line.strip().startswith('file:')]
        agent = Agent(self, '\n'.join(lines))
        agent.log.wait('published config=only')
        self.assertTrue(os.path.exists(self.path('run/only.snap')))
        self.assertFalse(os.path.exists(self.path('out/only.yaml')))
        self.assertEqual(agent.refresh('only')['outcome'], 'unchanged')
        agent.stop()

    def test_a_restart_leaves_an_image_alone_that_is_current_and_a_lost_one_is_put_back(self):
        agent = self.start()
        agent.log.wait('published')
        agent.stop()
        before = os.stat(self.path('run/web.snap'))
        agent = self.start()
        agent.log.wait('started from the last known good')
        agent.ready()
        self.assertEqual(os.stat(self.path('run/web.snap')).st_ino, before.st_ino)
        os.unlink(self.path('run/web.snap'))
        self.assertIn(agent.refresh()['outcome'], ('published', 'unchanged'))
        self.assertEqual(self.open()['n'], 1)
        self.assertEqual(agent.status()['generation'], 1)
        agent.signal(signal.SIGKILL)
        agent.wait()
        with open(self.path('run/web.snap'), 'r+b') as f:  # a damaged image is replaced at the next start
            f.seek(100)
            f.write(b'\xff')
        agent = self.start()
        agent.log.wait('started from the last known good')
        agent.ready()
        self.assertEqual(self.open()['n'], 1)
        agent.stop()

    def test_a_removed_control_page_is_made_again_and_readers_go_over_to_it(self):
        agent = self.start()
        agent.log.wait('published')
        config, told = self.open(), threading.Event()
        import pullet

        def wait():
            other = self.open()
            while other.generation < 3:
                try:
                    other.wait(harness.DEADLINE)
                except pullet.NotPublished:  # for the moment in which neither file is there
                    pass
            told.set()
        thread = threading.Thread(target=wait)
        thread.start()
        for n, names in ((2, ('web.gen',)), (3, ('web.gen', 'web.snap'))):
            for name in names:
                os.unlink(self.path('run/' + name))
            self.set(n)
            self.assertEqual(agent.refresh()['generation'], n)
            page = os.stat(self.path('run/web.gen'))
            self.assertTrue(config.refresh())
            self.assertEqual((config['n'], self.open()['n'], config.stale, self.open().stale), (n, n, False, False))
            with open(f'/proc/{os.getpid()}/maps', encoding='ascii') as f:
                self.assertIn(f' {page.st_ino} ', f.read(), 'the page that is there now')
        self.assertTrue(told.wait(harness.DEADLINE))
        thread.join()
        os.unlink(self.path('run/web.gen'))  # nothing new: the interval sees it
        self.assertEqual(agent.refresh()['generation'], 3)
        self.assertFalse(self.open().stale)
        self.set(4)
        agent.refresh()
        self.assertTrue(config.refresh())
        self.assertEqual(config['n'], 4)
        agent.stop()

    def test_a_removed_control_page_is_no_drift(self):
        agent = self.start('    interval: 1h\n    drift: report\n')
        agent.log.wait('published')
        config = self.open()
        os.unlink(self.path('run/web.gen'))
        self.assertEqual(agent.refresh()['outcome'], 'unchanged')
        self.assertFalse(agent.status()['drifted'])
        self.assertNotIn('changed by somebody else', '\n'.join(agent.log.seen))
        for reader in (self.open(), config):
            reader.refresh()
            self.assertFalse(reader.stale)
        agent.stop()

    def test_a_bad_version_changes_neither_file_nor_snapshot(self):
        agent = self.start()
        agent.log.wait('published')
        config = self.open()
        self.server.behave = good(b'n: [\n')
        self.assertEqual(agent.refresh()['outcome'], 'failed')
        self.assertFalse(config.refresh())
        self.assertEqual(config['n'], 1)
        agent.stop()

    def test_an_application_that_starts_first(self):
        import pullet
        os.makedirs(self.path('run'))
        with self.assertRaises(OSError):
            pullet.open(self.path('run/web.snap'))
        config = self.open(wait_first=True)
        self.assertEqual((config.generation, config.get('n')), (0, None))
        agent = self.start()
        while config.generation == 0:
            self.assertTrue(config.wait(harness.DEADLINE))
        self.assertEqual(config['n'], 1)
        agent.stop()

    def test_bytes_have_no_snapshot(self):
        agent = self.start('    interval: 1h\n    type: bytes\n')
        agent.log.wait('published')
        self.assertEqual([f for f in os.listdir(self.path('run')) if f.startswith('web')], [])
        agent.stop()

    def test_the_example_of_the_man_page_compiles_and_follows_the_values(self):
        with open(os.path.join(harness.ROOT, 'lib/libpullet.3'), encoding='utf-8') as f:
            text = f.read().split('.\\" example begin')[1].split('.\\" example end')[0]
        lines = [line for line in text.split('\n') if not line.startswith(('.Bd', '.Ed'))]
        self.write('example.c', '\n'.join(lines).replace('\\e', '\\'))
        subprocess.run(['cc', '-Wall', '-Wextra', '-Werror', '-I', os.path.join(harness.ROOT, 'lib'), '-o', self.path('example'),
                        self.path('example.c'), '-L', LIBRARIES, '-lpullet', f'-Wl,-rpath,{LIBRARIES}'], check=True)
        agent = self.start()
        agent.log.wait('published')
        example = harness.Program([self.path('example'), 'web', '1'], env={'PULLET_RUNTIME_DIR': self.path('run')}, read='stdout')
        self.addCleanup(example.close)
        example.log.wait('^h1:5432$')
        self.set(2)
        agent.refresh()
        example.log.wait('^h2:5432$')
        self.assertEqual(example.wait(), 0)
        agent.stop()

    def test_the_library_needs_libc_only(self):
        needed = subprocess.run(['objdump', '-p', os.environ['PULLET_LIBRARY']], capture_output=True, text=True, check=True).stdout
        names = [line.split()[1] for line in needed.split('\n') if 'NEEDED' in line]
        self.assertEqual(names, ['libc.so.6'])
        exported = subprocess.run(['nm', '-D', '--defined-only', os.environ['PULLET_LIBRARY']], capture_output=True, text=True, check=True).stdout
        functions = [line.split()[2] for line in exported.strip().split('\n') if ' T ' in line]
        self.assertTrue(functions and all(f.startswith('pullet_') and f.endswith('@@PULLET_0') for f in functions), functions)


if __name__ == '__main__':
    harness.main()
