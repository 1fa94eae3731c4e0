"""A hook that wants to live on: every escape from its session, group, parent and time, and from the agent's death by kill -9.

After each nothing is left whose environment has the hook's mark, and the agent goes on. The hook belongs to the agent's user, who is not root."""
import glob
import os
import signal
import subprocess
import time

import attack
import harness
from harness import Agent, FaultServer, good

WAYS = ('session', 'group', 'daemon', 'hidden', 'subreaper', 'thread', 'sibling', 'namespaces', 'deep', 'stopped', 'hog', 'bomb', 'sessions', 'runners')


def marked(mark):
    """Processes with this word in their environment, but zombies."""
    found = []
    for path in glob.glob('/proc/[0-9]*/environ'):
        try:
            with open(path, 'rb') as f:
                if mark in f.read():
                    found.append(int(path.split('/')[2]))
        except OSError:
            pass
    return found


@attack.needs_users
class Hooks(harness.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.program = os.path.join(harness.BUILD, 'escape')
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'escape.c')
        subprocess.run(['cc', '-std=c11', '-D_GNU_SOURCE', '-O1', '-pthread', '-o', cls.program, source], check=True)

    def setUp(self):
        super().setUp()
        self.mark = f'ESCAPE={os.path.basename(self.dir)}'.encode()
        self.addCleanup(self.end_all)
        self.prefix = attack.as_user(attack.AGENT)
        self.server = FaultServer(self)
        self.turn = 0
        harness.for_anybody(self, self.program)
        os.chown(self.dir, attack.AGENT, attack.AGENT)
        self.write('hook', f'#!/bin/sh\nread -r way stay <{self.path("way")} || exit 0\nESCAPE={os.path.basename(self.dir)}\nexport ESCAPE\n'
                           f'exec {self.path("escape")} $way {self.path("ready")} $stay\n')
        os.chmod(self.path('hook'), 0o755)

    def end_all(self):
        for pid in marked(self.mark):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def agent(self, more):
        self.write('way', '')
        self.show()
        text = self.config(self.server.url + '/web.yaml', more)
        os.chown(self.path('out'), attack.AGENT, attack.AGENT)
        a = Agent(self, text)
        a.ready()
        return a

    def show(self):
        self.turn += 1
        self.server.behave = good(f'a: {self.turn}\n'.encode(), f'ETag: "{self.turn}"\r\n')

    def run_hook(self, agent, way, stay):
        if os.path.exists(self.path('ready')):
            os.unlink(self.path('ready'))
        self.write('way', f'{way} {stay}\n')
        self.show()
        agent.post('/v1/configs/web/refresh')
        self.until(lambda: os.path.exists(self.path('ready')), f'{way} is not ready')

    def gone(self, way):
        """Looks at each process of the machine, so not as often as it could."""
        def none_is_left():
            return not marked(self.mark) or time.sleep(0.05)
        self.until(none_is_left, lambda: f'of {way} there is left: {[self.about(p) for p in marked(self.mark)]}')

    @staticmethod
    def about(pid):
        try:
            with open(f'/proc/{pid}/stat', encoding='ascii') as f:
                return f.read().split()[:6]
        except OSError:
            return pid

    RELOAD = '    reload: {run: [%s], timeout: 60s}\n    interval: 1h\n'

    def test_what_a_hook_leaves_at_its_end_is_killed(self):
        agent = self.agent(self.RELOAD % self.path('hook'))
        for way in WAYS + ('keeper-killed',):
            with self.subTest(way):
                start = agent.log.count
                self.run_hook(agent, way, 'end')
                self.gone(way)
                if way == 'session':
                    agent.log.wait('a program left processes running', start)
        agent.stop()

    def test_what_a_hook_started_ends_with_its_limit(self):
        agent = self.agent((self.RELOAD % self.path('hook')).replace('60s', '1s'))  # in which sixty processes start on a busy machine
        for way in ('daemon', 'deep', 'runners', 'keeper-stopped'):  # each takes the whole grace
            with self.subTest(way):
                self.run_hook(agent, way, 'stay')
                self.gone(way)
        agent.stop()

    def test_what_a_hook_started_ends_with_a_killed_agent(self):
        for way in WAYS:
            with self.subTest(way):
                agent = self.agent(self.RELOAD % self.path('hook'))
                self.run_hook(agent, way, 'stay')
                self.assertTrue(marked(self.mark))
                os.kill(agent.pid, signal.SIGKILL)
                agent.wait()
                self.gone(way)
                agent.close()

    def test_what_a_hook_started_ends_with_an_agent_that_stops(self):
        for way in ('daemon', 'runners', 'keeper-stopped'):
            with self.subTest(way):
                agent = self.agent(self.RELOAD % self.path('hook'))
                self.run_hook(agent, way, 'stay')
                agent.stop()
                self.gone(way)
                agent.close()

    def test_every_kind_of_hook_is_kept(self):
        for kind, more in (('check', '    check: {run: [%s, "{path}"], timeout: 1s}\n'), ('format', '    format: {run: [%s], timeout: 1s}\n'),
                           ('probe', '    probe: {run: [%s], for: 1h, every: 100ms, timeout: 1s}\n')):
            with self.subTest(kind):
                agent = self.agent(more % self.path('hook') + '    interval: 1h\n')
                self.run_hook(agent, 'daemon', 'stay')
                self.write('way', '')
                self.gone(kind)
                agent.close()

    def test_no_program_gains_rights(self):
        """What became root's could not be killed by the agent."""
        self.write('hook', f'#!/bin/sh\ngrep NoNewPrivs /proc/self/status >{self.path("out")}/said\n')
        os.chmod(self.path('hook'), 0o755)
        agent = self.agent(self.RELOAD % self.path('hook'))
        self.show()
        agent.refresh()
        self.until(lambda: os.path.exists(self.path('out/said')) and self.read('out/said'), 'the hook did not run')
        self.assertEqual(self.read('out/said').split(), [b'NoNewPrivs:', b'1'])


if __name__ == '__main__':
    harness.main()
