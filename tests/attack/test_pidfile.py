"""A pidfile in another user's hands: its owner chooses among his own processes, and no other is signalled by a root agent, or by root's `pullet watch`."""
import os
import re
import signal
import subprocess

import attack
import harness
from attack import MALLORY
from harness import PULLET, Agent, Program

SLEEPER = 'import signal, time\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])\nprint("ready", flush=True)\nwhile True:\n    time.sleep(1000)\n'
ROUNDS = 40  # of a race


class Target(Program):
    """Blocks the signal: it stays where the test can see it."""

    def __init__(self, test, uid=0):
        prefix = attack.as_user(uid) if uid else ()
        super().__init__([*prefix, '/usr/bin/python3', '-I', '-S', '-c', SLEEPER], read='stdout')
        test.addCleanup(self.close)
        self.log.wait('^ready$')

    @property
    def signalled(self):
        with open(f'/proc/{self.pid}/status', encoding='ascii', errors='replace') as f:
            pending = int(re.search(r'(?m)^ShdPnd:\s+(\w+)$', f.read())[1], 16)
        return bool(pending & 1 << signal.SIGUSR1 - 1)


@attack.needs_users
class Pidfile(harness.Case):
    def setUp(self):
        super().setUp()
        os.chmod(self.dir, 0o755)
        self.victim, self.own = Target(self), Target(self, MALLORY)
        os.makedirs(self.path('theirs'))
        os.chown(self.path('theirs'), MALLORY, MALLORY)
        os.makedirs(self.path('group'))
        os.chmod(self.path('group'), 0o775)

    def put(self, name, pid, uid=0, mode=0o644):
        self.write(name, f'{pid}\n')
        os.chown(self.path(name), uid, uid)
        os.chmod(self.path(name), mode)
        return self.path(name)

    def link(self, to, name):
        os.symlink(to, self.path(name))
        os.chown(self.path(name), MALLORY, MALLORY, follow_symlinks=False)
        return self.path(name)

    def bad(self):
        """(what it is, its path, what is said): each names the victim, a process of root's."""
        victim = self.victim.pid
        roots = self.put('roots', victim)
        self.put('theirs/hard', victim)
        os.link(self.path('theirs/hard'), self.path('theirs/hard-link'))
        return (
            ('owner', self.put('owner', victim, MALLORY), 'in the hands of uid 64104'),
            ('directory', self.put('theirs/of-root', victim), 'in the hands of uid 64104'),
            ('symlink', self.link(roots, 'link'), 'in the hands of uid 64104'),
            ('group', self.put('written', victim, mode=0o664), r'group or others can write it \(mode 0664\)'),
            ('others', self.put('anybodys', victim, mode=0o646), r'group or others can write it \(mode 0646\)'),
            ('directory of a group', self.put('group/pid', victim), r'group or others can write \(mode 0775\) in its part'),
            ('hard link', self.path('theirs/hard-link'), 'more than one name'),
        )

    def watch(self, path, number='USR1'):
        """What `pullet watch`, root's, says when it has acted once."""
        done = subprocess.run([PULLET, 'watch', self.path('run/web.snap'), '--now', '--signal', number, '--pidfile', path, '--timeout', '1ms'],
                              capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=harness.DEADLINE, check=False)
        self.assertEqual(done.returncode, 4, done.stderr)
        return done.stderr

    def agent(self, *paths):
        """An agent with a config for each path; published once."""
        _, url, _ = self.serve()
        self.write('www/web.yaml', 'a: 1\n')
        configs = ''.join(f'  {name}: {{url: "{url.rstrip("/")}/web.yaml", reload: {{signal: USR1, pidfile: {path}}}}}\n' for name, path in paths)
        return Agent(self, f'agent: {{state_dir: {self.path("state")}, runtime_dir: {self.path("run")}}}\nconfigs:\n{configs}')

    def test_no_process_of_root_is_signalled(self):
        table = [(f'c{i}', path, why) for i, (_, path, why) in enumerate(self.bad())]
        agent = self.agent(*(row[:2] for row in table))
        for name, path, why in table:
            agent.log.wait(f'reload failed.*config={name} .*{why}')
            self.assertRegex(agent.status(name)['reload']['error'], f'{path}.*{why}')
        agent.stop()
        self.assertFalse(self.victim.signalled)

    def test_nor_by_a_watch(self):
        table = self.bad()
        agent = self.agent(('web', self.put('good', self.own.pid)))
        agent.log.wait('published config=web generation=1')
        for what, path, why in table:
            self.assertRegex(self.watch(path), why, what)
        self.assertFalse(self.victim.signalled)
        self.assertNotIn('pidfile', self.watch(self.put('good', self.victim.pid)))
        self.assertTrue(self.victim.signalled, 'of root, by root')

    def test_his_own_process_may_be_named_by_its_user_and_by_root(self):
        targets = {'one': self.own, 'two': Target(self, MALLORY)}
        agent = self.agent(('one', self.put('theirs/pid', targets['one'].pid, MALLORY)), ('two', self.put('pid', targets['two'].pid)))
        for name, target in targets.items():
            agent.log.wait(f'reload succeeded config={name}')
            self.assertTrue(target.signalled, name)
        agent.stop()

    def test_so_it_is_with_a_watch(self):
        agent = self.agent(('web', self.put('good', self.own.pid)))
        agent.log.wait('published config=web generation=1')
        for name, uid in (('theirs/pid', MALLORY), ('pid', 0)):
            target = Target(self, MALLORY)
            self.assertNotIn('pidfile', self.watch(self.put(name, target.pid, uid)))
            self.assertTrue(target.signalled, name)

    def test_never_process_1_nor_the_kernel_nor_the_reader(self):
        agent = self.agent(('web', self.put('good', self.own.pid)))
        agent.log.wait('published config=web generation=1')
        self.assertIn('is not one line with a number over 1', self.watch(self.put('pid', 1), 'CONT'))
        try:
            with open('/proc/2/comm', encoding='ascii') as f:
                kernel = f.read() == 'kthreadd\n'
        except OSError:
            kernel = False
        if kernel:  # else it is another PID namespace's, where there is none
            self.assertIn('names a kernel thread', self.watch(self.put('pid', 2), 'CONT'))
        self.put('self', agent.pid)
        self.assertNotIn('pidfile', self.watch(self.path('self'), 'CONT'), 'the agent is another process than the watch')

    def test_while_the_file_changes_hands_as_fast_as_can_be(self):
        roots = self.put('roots', self.victim.pid)
        agent = self.agent(('web', self.put('good', self.own.pid)))
        agent.log.wait('published config=web generation=1')
        one, other = self.put('theirs/pid', self.own.pid, MALLORY), self.path('theirs/other')
        self.link(roots, 'theirs/other')
        attack.Other(self, MALLORY, lambda number: attack.exchange(one, other))
        for _ in range(ROUNDS):
            self.watch(one)
        self.assertFalse(self.victim.signalled)


if __name__ == '__main__':
    harness.main()
