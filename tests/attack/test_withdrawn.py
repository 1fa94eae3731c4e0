"""Values that an operator rolled back: the snapshot of a config that was removed, or that says `snapshot: false` now, is not to be read any more."""
import os
import signal
import struct
import subprocess

import attack  # noqa: F401: finds the harness
import harness
from harness import Agent, FaultServer, Program, good

SECRET = b'planted-4d1e'


class Withdrawn(harness.Case):
    def setUp(self):
        super().setUp()
        self.server = FaultServer(self)
        self.server.behave = good(b'password: ' + SECRET + b'\n', 'ETag: "1"\r\n')
        self.agent = Agent(self, self.text())
        self.agent.refresh()
        self.assertIn(SECRET, self.read('run/web.snap'))

    def text(self, more='', name='web'):
        return self.config(self.server.url + '/web.yaml', '    interval: 1h\n' + more, name=name)

    def page(self):
        """(generation, futex, withdrawn)"""
        return struct.unpack_from('<QII', self.read('run/web.gen'), 8)

    def reload(self, text):
        start = self.agent.log.count
        self.write('pullet.yaml', text)
        self.agent.signal(signal.SIGHUP)
        self.agent.log.wait('the new configuration runs', start)

    def start(self, text):
        self.agent = Agent(self, text)
        self.agent.ready()
        self.agent.get('/livez')  # the loop runs

    def assert_withdrawn(self):
        self.assertFalse(os.path.exists(self.path('run/web.snap')))
        self.assertEqual(self.page()[2], 1)
        get = subprocess.run([harness.PULLET, 'get', self.path('run/web.snap'), 'password'], capture_output=True, check=False)
        self.assertEqual((get.returncode, get.stdout), (2, b''))
        self.assertIn(b'withdrawn', get.stderr)
        for name in os.listdir(self.path('run')):
            if not name.endswith('.sock') and 'other' not in name:  # that config is published, as it should be
                self.assertNotIn(SECRET, self.read('run/' + name))

    def test_a_reload_takes_it_back_and_the_same_readers_see_it_again(self):
        for change in (self.text('    snapshot: false\n'), self.text(name='other')):
            before = self.page()
            self.assertEqual(before[2], 0)
            self.reload(change)
            self.assert_withdrawn()
            self.assertNotEqual(self.page()[1], before[1], 'who waits is woken')
            inode = os.stat(self.path('run/web.gen')).st_ino
            self.reload(self.text())
            self.agent.refresh()
            self.assertIn(SECRET, self.read('run/web.snap'))
            self.assertEqual((self.page()[2], os.stat(self.path('run/web.gen')).st_ino), (0, inode))
            self.assertGreaterEqual(self.page()[0], before[0])
        self.agent.stop()

    def test_a_start_takes_it_back(self):
        for change in (self.text('    snapshot: false\n'), self.text(name='other')):
            self.agent.stop()
            self.start(change)
            self.assert_withdrawn()
            self.agent.stop()
            self.start(self.text())
            self.agent.refresh()
        self.agent.stop()

    def test_a_program_that_has_it_open_is_told_and_sees_it_come_back(self):
        watch = Program([harness.PULLET, 'watch', self.path('run/web.snap')], read='both')
        self.addCleanup(watch.close)
        watch.log.wait('^[0-9]+ 1$')
        for change in (self.text('    snapshot: false\n'), self.text(name='other')):
            start = watch.log.count
            self.reload(change)
            watch.log.wait('withdrawn', start)
            self.reload(self.text())
            watch.log.wait('^[0-9]+ 1$', start)
        self.agent.stop()
        watch.close()

    def test_what_a_killed_agent_left_of_it_goes_too(self):
        left = 'run/.web.snap.pullet-0123456789abcdef'
        others = ['run/.nobody.snap.pullet-0123456789abcdef', 'run/.web.snap.pullet-0123', 'run/.web.snap.new']
        for change in (self.text('    snapshot: false\n'), self.text(name='other')):
            for name in (left, *others):  # a config without a page, and names that the agent does not make
                self.write(name, SECRET if name == left else b'x')
            self.reload(change)
            self.assert_withdrawn()
            self.assertFalse(os.path.exists(self.path(left)))
            self.assertTrue(all(os.path.exists(self.path(name)) for name in others))
            self.reload(self.text())
            self.agent.refresh()
        self.agent.stop()

    def test_what_is_not_ours_stays(self):
        """A copy that somebody put there has no page; a link leads to a file that is not ours to change."""
        self.write('run/copy.snap', self.read('run/web.snap'))
        self.write('elsewhere', bytes(4096))
        os.symlink(self.path('elsewhere'), self.path('run/link.gen'))
        self.write('run/broken.gen', b'x' * 4096)
        self.write('run/broken.snap', b'x')
        self.reload(self.text('    snapshot: false\n'))
        self.assertEqual({n for n in os.listdir(self.path('run')) if n.endswith('.snap')}, {'copy.snap', 'broken.snap'})
        self.assertEqual(self.read('elsewhere'), bytes(4096))
        self.assertEqual(self.read('run/broken.gen'), b'x' * 4096)
        self.agent.stop()


if __name__ == '__main__':
    harness.main()
