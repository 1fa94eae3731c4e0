"""`pullet run`: a program with a config as its environment, on snapshots that a stand-in for the agent publishes."""
import contextlib
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import time

import harness
from harness import PULLET, Program, needs
from test_snapshot_cli import CliCase, FakeAgent

PYTHON = '/usr/bin/python3'
# says what it was started with, and each signal that it gets; ends at TERM
PROGRAM = '''
import os, signal, sys
def say(number, frame):
    os.write(1, b'got %s\\n' % signal.Signals(number).name.encode())
    if number == signal.SIGTERM and 'deaf' not in sys.argv:
        os._exit(7)
for number in (1, 2, 3, 10, 12, 15, 28, 40):
    if number == 40:
        signal.signal(number, lambda *_: os.write(1, b'got 40\\n'))
    else:
        signal.signal(number, say)
os.write(1, b'run %d A=%s generation %s\\n' % (os.getpid(), os.environb.get(b'A', b'-'), os.environb[b'PULLET_GENERATION']))
while True:
    signal.pause()
'''


def confirmed(agent, stale_ms=3600000):
    """A server has just said that this version is the newest."""
    agent.page[24:40] = struct.pack('<QQ', time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000000, stale_ms)


def withdraw(agent):
    os.unlink(agent.path)
    agent.page[20:24] = struct.pack('<I', 1)
    agent.wake()


class RunCase(CliCase):
    def publish(self, tree):
        agent = super().publish(tree)
        confirmed(agent)
        return agent

    def start(self, *args, prefix=(), **kw):
        p = Program([*prefix, PULLET, 'run', *args], env=self.env, read='both', **kw)
        self.addCleanup(p.close)
        return p

    def program(self, *options, argument='', **kw):
        """`pullet run web OPTIONS -- PROGRAM`."""
        self.write('program.py', PROGRAM)
        return self.start('web', *options, '--', PYTHON, self.path('program.py'), argument, **kw)

    def until_gone(self, pid):
        with contextlib.suppress(ProcessLookupError):
            fd = os.pidfd_open(pid)
            self.addCleanup(os.close, fd)
            self.assertTrue(select.select([fd], [], [], harness.DEADLINE)[0], f'{pid} still runs')

    def pid_of(self, p, start=0):
        return int(p.log.wait('^run ', start=start).split()[1])

    def ends(self, p, code, number=signal.SIGTERM):
        if number:
            p.signal(number)
        lines = p.log.drain()
        self.assertEqual(p.wait(), code, lines)
        return lines


class Environment(RunCase):
    def environment(self, tree, *args):
        self.publish(tree)
        code = 'import json, os; print(json.dumps(dict(os.environ)))'
        return json.loads(self.run_cli('run', 'web', *args, '--', PYTHON, '-c', code))

    def test_values_are_variables_beside_the_callers_own(self):
        self.env.update(OUTER='kept', DB_HOST='old')
        found = self.environment({'db': {'host': 'häß\n two', 'port': 5432}, 'list': ['a', True], 'none': None, 'odd key.x': '=$HOME\t'})
        self.assertEqual({k: found[k] for k in ('DB_HOST', 'DB_PORT', 'LIST_0', 'LIST_1', 'NONE', 'ODD_KEY_X', 'OUTER', 'PULLET_CONFIG_NAME',
                                                'PULLET_GENERATION', 'PULLET_VERSION')},
                         {'DB_HOST': 'häß\n two', 'DB_PORT': '5432', 'LIST_0': 'a', 'LIST_1': 'true', 'NONE': '', 'ODD_KEY_X': '=$HOME\t', 'OUTER': 'kept',
                          'PULLET_CONFIG_NAME': 'web', 'PULLET_GENERATION': '1', 'PULLET_VERSION': 'v1'})
        self.assertEqual(set(found) - set(self.env) - {'LC_CTYPE'}, {'DB_PORT', 'LIST_0', 'LIST_1', 'NONE', 'ODD_KEY_X', 'PULLET_CONFIG_NAME',
                                                                     'PULLET_GENERATION', 'PULLET_VERSION'})

    def test_a_prefix(self):
        self.assertEqual(self.environment({'path': 'x'}, '--prefix', 'APP_')['APP_PATH'], 'x')

    def test_what_cannot_be_a_variable_is_an_error_and_nothing_runs(self):
        for tree, says in (({'a.b': 1, 'a_b': 2}, "'a\\\\\\.b' and 'a_b' give the same name A_B"), 
                           ({'path': '/evil'}, "would be the variable PATH.*--prefix APP_"), ({'pullet': {'version': 'x'}}, 'PULLET_VERSION'),
                           ({'a': 'x' * (128 << 10)}, 'A takes 131075 bytes, and the system takes at most 131072')):
            agent = FakeAgent(self)
            agent.publish(tree)
            confirmed(agent)
            self.assertRegex(self.run_cli('run', 'web', '--', '/bin/echo', 'ran', code=1), f'pullet run: web, generation 1: .*{says}')
        agent = FakeAgent(self)
        agent.publish({f'k{i}': 'x' * 100000 for i in range(70)})
        confirmed(agent)
        self.assertRegex(self.run_cli('run', 'web', '--', '/bin/echo', 'ran', code=1), 'the environment takes 70[0-9]* bytes, and the system starts')

    def test_a_path_is_a_config(self):
        agent = self.publish({'a': 1})
        self.assertEqual(self.run_cli('run', agent.path, '--', '/bin/sh', '-c', 'echo $A'), '1\n')

    def test_input_and_output_are_the_programs(self):
        self.publish({'a': 1})
        done = subprocess.run([PULLET, 'run', 'web', '--', 'cat'], env=self.env, input=b'x\n', capture_output=True, timeout=harness.DEADLINE, check=True)
        self.assertEqual((done.stdout, done.stderr), (b'x\n', b''))


class Ends(RunCase):
    def test_exit_codes_are_the_programs(self):
        self.publish({'a': 1})
        for script, code in (('exit 0', 0), ('exit 7', 7), ('kill -9 $$', 137), ('kill -TERM $$', 143)):
            self.assertEqual(self.ends(self.start('web', '--', '/bin/sh', '-c', script), code, None), [])
        self.assertIn('cannot start ./none: No such file', self.run_cli('run', 'web', '--', './none', code=127))
        self.assertIn('cannot start /: Permission denied', self.run_cli('run', 'web', '--', '/', code=126))

    def test_signals_reach_the_program(self):
        self.publish({'a': 1})
        p = self.program()
        self.pid_of(p)
        for number in (1, 2, 3, 10, 12, 28, 40):
            p.signal(number)
            p.log.wait('^got ' + ('40' if number == 40 else signal.Signals(number).name) + '$')
        self.assertEqual(self.ends(p, 7)[-1], 'got SIGTERM')

    def test_the_program_has_the_callers_signals(self):
        self.publish({'a': 1})
        code = ("import signal as s; print(s.pthread_sigmask(s.SIG_BLOCK, []), [n.name for n in (s.SIGPIPE, s.SIGHUP, s.SIGINT) "
                "if s.getsignal(n) == s.SIG_IGN])")
        for trap, ignored in (('', "['SIGPIPE']"), ("trap '' HUP; ", "['SIGPIPE', 'SIGHUP']")):  # PIPE: Python's own
            done = subprocess.run(['/bin/sh', '-c', f'{trap}exec "$@"', 'sh', PULLET, 'run', 'web', '--', PYTHON, '-c', code], env=self.env,
                                  capture_output=True, text=True, timeout=harness.DEADLINE, check=True)
            self.assertEqual(done.stdout, f'set() {ignored}\n')

    def test_a_kill_of_run_is_the_programs_end(self):
        self.publish({'a': 1})
        p = self.program()
        pid = self.pid_of(p)
        p.signal(signal.SIGKILL)
        self.until_gone(pid)
        self.assertEqual(p.wait(), -9)

    def test_what_the_program_leaves_running_ends_with_it(self):
        self.publish({'a': 1})
        self.write('program.py', PROGRAM)
        code = f'{PYTHON} {self.path("program.py")} %s & read line < {self.path("fifo")}; exit 3'
        os.mkfifo(self.path('fifo'))
        for argument in ('', 'deaf'):
            p = self.start('web', '--grace', '100ms', '--', '/bin/sh', '-c', code % argument)
            pid = self.pid_of(p)
            with open(self.path('fifo'), 'w', encoding='ascii') as f:
                f.write('end\n')
            said = self.ends(p, 3, None)
            self.until_gone(pid)
            self.assertIn('/bin/sh has ended, and 1 process that it started gets TERM', '\n'.join(said))
            self.assertEqual(said.count('got SIGTERM'), 1)

    @needs('processes of its own')
    def test_as_process_1(self):
        self.publish({'a': 1})
        code = ('import os\nr, w = os.pipe()\nif os.fork() == 0:\n    if os.fork() == 0:\n        os.close(r); os._exit(0)\n    os._exit(0)\n'
                'os.wait(); os.close(w); os.read(r, 1)\n'
                'import glob\nwhile len(glob.glob("/proc/[0-9]*")) > 2:\n    os.sched_yield()\n'
                'print("reaped", os.getppid(), flush=True)\n' + PROGRAM)
        self.write('program.py', code)
        p = self.start('web', '--', PYTHON, self.path('program.py'), prefix=harness.unshare('pid')[0])
        p.log.wait('^reaped 1$')
        pid = self.pid_of(p)
        self.assertEqual(pid > 1, True)
        inside = harness.children(p.pid)[0]  # unshare's child: process 1
        os.kill(inside, signal.SIGUSR1)
        p.log.wait('^got SIGUSR1$')
        os.kill(inside, signal.SIGTERM)
        self.assertEqual(self.ends(p, 7, None)[-1], 'got SIGTERM')

    @needs('a terminal')
    def test_a_terminals_keys_reach_the_program_once(self):
        self.publish({'a': 1})
        self.write('program.py', PROGRAM)
        pid, fd = pty.fork()
        if pid == 0:
            os.execve(PULLET, [PULLET, 'run', 'web', '--', PYTHON, self.path('program.py')], self.env)
        self.addCleanup(os.close, fd)
        seen = b''

        def until(text):
            nonlocal seen
            while text not in seen:
                self.assertTrue(select.select([fd], [], [], harness.DEADLINE)[0], seen)
                seen += os.read(fd, 4096)

        until(b'run ')
        os.write(fd, b'\x03')
        until(b'got SIGINT')
        os.kill(pid, signal.SIGUSR1)  # what comes behind the key
        until(b'got SIGUSR1')
        os.kill(pid, signal.SIGTERM)
        until(b'got SIGTERM')
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 7)
        self.assertEqual(seen.count(b'got SIGINT'), 1, seen)


class First(RunCase):
    def test_waits_for_the_first_version(self):
        p = self.program()
        p.log.wait('nothing is published as web yet, waiting')
        self.publish({'a': 'x'})
        p.log.wait('^run .* A=x generation 1$')
        self.ends(p, 7)

    def test_the_wait_ends(self):
        p = self.program('--timeout', '50ms')
        self.assertIn('nothing was published as web in that time', self.ends(p, 4, None)[-1])
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            p = self.program()
            p.log.wait('waiting')
            self.ends(p, 128 + number, number)

    def test_a_withdrawn_config_is_refused(self):
        agent = self.publish({'a': 1})
        withdraw(agent)
        self.assertIn('web was withdrawn', self.run_cli('run', 'web', '--', '/bin/echo', code=2))

    def test_a_stale_version_is_said_to_be_or_refused(self):
        agent = super(RunCase, self).publish({'a': 1})
        p = self.start('web', '--', '/bin/true')
        self.assertRegex(self.ends(p, 0, None)[0], 'web is stale: no server has confirmed generation 1 lately; starting with it')
        self.assertIn('web is stale', self.run_cli('run', 'web', '--fresh', '--', '/bin/echo', code=1))
        confirmed(agent)
        self.assertEqual(self.run_cli('run', 'web', '--fresh', '--', '/bin/echo', 'ran'), 'ran\n')

    def test_a_snapshot_that_no_agent_keeps_is_not_called_stale(self):
        with open(self.path('made.yaml'), 'w', encoding='utf-8') as f:
            f.write('a: 1\n')
        made = self.path('made.snap')
        self.run_cli('build', self.path('made.yaml'), '-o', made)
        p = self.start(made, '--', '/bin/true')
        self.assertEqual(self.ends(p, 0, None), [])
        self.assertIn('no agent keeps', self.run_cli('run', made, '--fresh', '--', '/bin/echo', code=1))

    def test_a_copy_of_an_agent_s_snapshot_says_its_age(self):
        self.write('www/web.yaml', 'a: 1\n')
        agent = harness.Agent(self, f'''agent: {{state_dir: {self.path("state")}, runtime_dir: {self.path("run")}}}
servers: {{main: {{kind: file, urls: ["file://{self.path("www")}"]}}}}
configs: {{web: {{from: [{{server: main, path: /web.yaml}}]}}}}
''')
        agent.log.wait('published')
        copy = self.path('copy.snap')
        shutil.copy(self.path('run/web.snap'), copy)
        said = f'{re.escape(copy)} is a copy that no agent keeps up to date .*: it was published [0-9]+s ago'
        for args, printed in ((('get', copy, 'a'), '1\n'), (('get', copy, 'b', '--default', 'c'), 'c\n'), (('list', copy), 'a=1\n'),
                              (('export', copy, '--format', 'env'), 'A=1\n'), (('run', copy, '--', '/bin/echo', 'ran'), 'ran\n')):
            done = subprocess.run([PULLET, *args], capture_output=True, text=True, timeout=harness.DEADLINE, check=True)
            self.assertRegex(done.stderr, rf'\A[^\n]*{said}\n\Z')
            self.assertEqual(done.stdout, printed)
        self.assertIn('no agent keeps', self.run_cli('run', copy, '--fresh', '--', '/bin/echo', code=1))
        shutil.copy(self.path('run/web.gen'), self.path('copy.gen'))
        self.assertEqual(subprocess.run([PULLET, 'get', copy, 'a'], capture_output=True, text=True, check=True).stderr, '')

    def test_usage_is_64(self):
        self.publish({'a': 1})
        for args in ((), ('web',), ('web', '--'), ('web', '--prefix', 'a-b', '--', 'true'), ('web', '--on-change', 'x', '--', 'true'), ('w b', '--', 'true'),
                     ('web', '--signal', 'HUP', '--', 'true'), ('web', '--on-change', 'signal', '--signal', 'X', '--', 'true'),
                     ('web', '--grace', '2h', '--', 'true'), ('web', '--wrong', '--', 'true')):
            self.run_cli('run', *args, code=64)


class Change(RunCase):
    FAST = ('--debounce', '10ms')

    def test_a_change_is_a_restart(self):
        agent = self.publish({'a': 1})
        p = self.program(*self.FAST)
        pid = self.pid_of(p)
        for n in range(2, 5):
            agent.publish({'a': n})
            before, pid = pid, int(p.log.wait(f'^run .* A={n} generation {n}$').split()[1])
            self.until_gone(before)
        lines = self.ends(p, 7)
        self.assertEqual(len([x for x in lines if x.startswith('run ')]), 4)
        self.assertIn('pullet run: web is at generation 2: restarting /usr/bin/python3', lines)

    def test_a_storm_is_one_restart(self):
        agent = self.publish({'a': 0})
        p = self.program('--debounce', '1s')
        self.pid_of(p)
        for n in range(1, 201):
            agent.publish({'a': n})
        p.log.wait('^run .* A=200 generation 201$')
        self.assertEqual(len([x for x in self.ends(p, 7) if x.startswith('run ')]), 2)

    def test_changes_without_end_are_not_put_off_without_end(self):
        agent = self.publish({'a': 0})
        p = self.program('--debounce', '300ms')
        self.pid_of(p)
        until, n = time.monotonic() + harness.DEADLINE, 0
        while time.monotonic() < until and not any(x.startswith('run ') for x in p.log.seen[1:]):
            n += 1
            agent.publish({'a': n})
            with contextlib.suppress(AssertionError):
                p.log.wait('^run ', start=p.log.count, timeout=0.05)
        self.pid_of(p, start=1)
        self.ends(p, 7)

    def test_the_same_variables_restart_nothing(self):
        agent = self.publish({'a': 1})
        p = self.program(*self.FAST)
        self.pid_of(p)
        agent.publish({'a': '1', 'b': {}})  # another version and another type
        agent.publish({'a': 2})
        p.log.wait('^run .* A=2 generation 3$')
        agent.publish({'a': '2'})
        p.signal(signal.SIGUSR1)
        p.log.wait('^got SIGUSR1$')
        self.assertEqual(len([x for x in self.ends(p, 7) if x.startswith('run ')]), 2)

    def test_a_deaf_program_is_killed_after_the_grace(self):
        agent = self.publish({'a': 1})
        p = self.program(*self.FAST, '--grace', '100ms', argument='deaf')
        pid = self.pid_of(p)
        agent.publish({'a': 2})
        p.log.wait('^run .* A=2')
        self.until_gone(pid)
        self.assertEqual(p.log.seen.count('got SIGTERM'), 1)
        p.signal(signal.SIGTERM)
        p.log.wait('^got SIGTERM$', start=p.log.count)
        p.signal(signal.SIGKILL)

    def test_versions_that_come_while_it_ends_are_in_the_restart(self):
        agent = self.publish({'a': 1})
        p = self.program(*self.FAST, '--grace', '1s', argument='deaf')
        self.pid_of(p)
        agent.publish({'a': 2})
        p.log.wait('^got SIGTERM$')
        agent.publish({'a': 3})
        self.assertIn('A=3 generation 3', p.log.wait('^run ', start=1))
        p.signal(signal.SIGKILL)

    def test_a_version_that_fits_no_environment_changes_nothing(self):
        agent = self.publish({'a': 1})
        p = self.program(*self.FAST)
        self.pid_of(p)
        agent.publish({'a': 2, 'A': 3})
        p.log.wait("generation 2: the keys 'A' and 'a' give the same name A")
        p.log.wait('the program goes on with the values of before')
        agent.publish({'a': 4})
        p.log.wait('^run .* A=4 generation 3$')
        self.ends(p, 7)

    def test_what_ends_by_itself_is_not_started_again(self):
        agent = self.publish({'a': 1})
        script = f'echo "run $$ A=$A"; [ $A = 1 ] || exit 9; exec {PYTHON} -c "import signal; signal.pause()"'
        p = self.start('web', *self.FAST, '--', '/bin/sh', '-c', script)
        self.pid_of(p)
        agent.publish({'a': 2})
        self.assertEqual([x.split()[-1] for x in self.ends(p, 9, None) if x.startswith('run ')], ['A=1', 'A=2'])

    def test_a_signal_during_a_restart_ends_it(self):
        agent = self.publish({'a': 1})
        p = self.program(*self.FAST, '--grace', '500ms', argument='deaf')
        self.pid_of(p)
        agent.publish({'a': 2})
        p.log.wait('^got SIGTERM$')
        lines = self.ends(p, 137)
        self.assertEqual((len([x for x in lines if x.startswith('run ')]), lines.count('got SIGTERM')), (1, 1), lines)

    def test_after_a_signal_to_end_no_change_restarts(self):
        agent = self.publish({'a': 1})
        p = self.program(*self.FAST, '--on-change', 'restart', argument='deaf')
        self.pid_of(p)
        p.signal(signal.SIGTERM)
        p.log.wait('^got SIGTERM$')
        agent.publish({'a': 2})
        p.signal(signal.SIGUSR1)
        p.log.wait('^got SIGUSR1$')
        self.assertEqual(len(p.log.seen), 3, p.log.seen)
        p.signal(signal.SIGKILL)

    def test_withdrawn_while_it_runs(self):
        agent = self.publish({'a': 1})
        p = self.program(*self.FAST)
        self.pid_of(p)
        withdraw(agent)
        p.log.wait('web was withdrawn: the program goes on with its last values')
        agent.page[20:24] = struct.pack('<I', 0)
        agent.publish({'a': 3})
        p.log.wait('^run .* A=3')
        self.ends(p, 7)

    def test_signal(self):
        agent = self.publish({'a': 1})
        for options, name in ((), 'SIGHUP'), (('--signal', 'USR2'), 'SIGUSR2'):
            p = self.program(*self.FAST, '--on-change', 'signal', *options)
            self.pid_of(p)
            for _ in range(2):
                agent.publish({'a': 1})
                p.log.wait(f'^got {name}$', start=p.log.count)
            self.assertEqual(len([x for x in self.ends(p, 7) if x.startswith('run ')]), 1)

    def test_nothing(self):
        agent = self.publish({'a': 1})
        p = self.program(*self.FAST, '--on-change', 'nothing')
        self.pid_of(p)
        agent.publish({'a': 2})
        p.signal(signal.SIGUSR1)
        p.log.wait('^got SIGUSR1$')
        self.assertEqual(len(self.ends(p, 7)), 3)


if __name__ == '__main__':
    harness.main()
