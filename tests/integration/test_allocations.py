"""Each allocation of pulletd fails in a whole life: start, pull, publication, rollback, questions, reload, stop. Never a signal, never a half state.

A preloaded library (fail_allocation.c) lets the n-th allocation fail that the agent's own code asks for, once or from then on; in another life also
those of the libraries (libevent, libcurl, jansson, libyaml, OpenSSL). The agent goes on, or ends with a sentence and a status; only OpenSSL's first
initialisation, before the agent has started, and libevent, while it accepts a connection, crash by themselves. Whatever it did, file, set, snapshot and last known good are whole and of one of the
life's versions, nothing of its own is left allocated when it ended well, and the next agent publishes what the server has and leaves no temporary file.

Of a recorded life those allocations are tried that calls of their own led to, so that a loop's hundred are one. PULLET_TEST_POINTS: how many of each
kind (8), `all` for `make torture`; PULLET_SEED chooses which; PULLET_TEST_AT tries that one alone.
"""
import collections
import concurrent.futures
import contextlib
import http.client
import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time

import harness
from harness import Agent, PULLETD, UnixConnection
from test_calls import Flaw, World

POINTS = os.environ.get('PULLET_TEST_POINTS', '8')
HERE = os.path.dirname(os.path.abspath(__file__))
EARLY = 120  # lives: OpenSSL's own initialisation does without what it could not allocate, at some 50 places
ACCEPTED = 16  # lives: libevent 2.1.12 frees half a connection, in evhttp_connection_base_bufferevent_new()
WAIT = 20  # seconds in which an agent answers, also on a busy machine


def library(directory):
    path = os.path.join(directory, 'fail_allocation.so')
    subprocess.run([*os.environ.get('CC', 'gcc').split(), '-std=gnu11', '-O1', '-shared', '-fPIC', '-o', path, os.path.join(HERE, 'fail_allocation.c'), '-ldl', '-pthread'], check=True)
    return path


class Life(World):
    """One directory, in which one agent lives after the other."""

    def __init__(self, test, preloaded):
        self.preloaded, self.failing, self.ready = preloaded, {}, False
        super().__init__(test, memory=True)
        self.agent.stop()

    def start(self, *tracer):
        env = dict(self.failing, LD_PRELOAD=self.preloaded, FAIL_REPORT=self.path('report')) if self.failing is not None else None
        return Agent(self, self.settings(), valgrind=tracer, env=env)

    def try_ask(self, method, path):
        """Whatever the answer is; None when there is none."""
        connection = UnixConnection(self.agent.socket)
        connection.timeout = WAIT
        try:
            connection.request(method, path)
            return connection.getresponse().status
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()

    def live(self):
        """From start to stop; true when nothing of it failed."""
        self.n += 1
        self.changed = False
        self.agent = self.start()
        answers = []
        try:
            self.agent.log.wait('started version', timeout=WAIT)
            for name in ('web', 'set'):
                answers.append(self.try_ask('POST', f'/v1/configs/{name}/refresh?wait=1&timeout_ms=8000'))
            self.n += 1
            for path in ('web/refresh?wait=1&', 'set/refresh?wait=1&', 'web/rollback?', 'set/rollback?'):
                answers.append(self.try_ask('POST', f'/v1/configs/{path}timeout_ms=8000'))
            for path in ('metrics', 'v1/configs/web', 'v1/configs/web/history', 'v1/configs/web/explain', 'v1/configs/web/diff'):
                answers.append(self.try_ask('GET', '/' + path))
            self.changed = True
            self.write('pullet.yaml', self.settings())
            at = self.agent.log.count
            self.agent.signal(signal.SIGHUP)
            answers.append(200 if 'runs' in self.agent.log.wait('nothing was changed|the new configuration runs|exiting, to start', at, timeout=WAIT) else 0)
            answers.append(self.try_ask('POST', '/v1/configs/more/refresh?wait=1&timeout_ms=8000'))
        except AssertionError:
            answers.append(None)
        self.agent.signal(signal.SIGTERM)
        self.answers = answers
        return set(answers) == {200}

    def end(self):
        """The status with which the agent ended; its log, and what it reported."""
        with contextlib.suppress(AssertionError):
            self.agent.log.wait('(?!)', self.agent.log.count, timeout=WAIT)  # to its end
        try:
            status = self.agent.wait(WAIT)
        except subprocess.TimeoutExpired as e:
            raise Flaw(f'does not end: {self.agent.log.seen[-5:]}') from e
        said = '\n'.join(self.agent.log.seen)
        self.ready = 'started version' in said
        self.agent.close()
        if status < 0:
            if self.failing['FAIL_ALL'] == '0' or not self.dies_in_library(said):
                raise Flaw(f'signal {-status}: {said[-600:]}')
            return status, said, [], [0, 0]
        with open(self.path('report'), encoding='ascii') as f:
            *stacks, last = f.read().split('\n')[:-1]
        return status, said, stacks, [int(n) for n in re.findall(r'\d+', last)]

    @staticmethod
    def dies_in_library(said):
        """Where we cannot do anything about it: see EARLY, ACCEPTED."""
        return 'started version' not in said or re.search('Z debug libevent.*$', said)

    def check(self, status, said):
        """What must be so after any life."""
        if status > 0 and not re.search(r'^(?!\S+Z (info|debug) ).', said, re.M):
            raise Flaw(f'status {status} without a sentence: {said[-600:]}')
        with contextlib.suppress(FileNotFoundError):  # of a life that ended too soon
            for name, (version, _generation, _saved) in self.seen().items():
                if not 0 < version <= self.n:
                    raise Flaw(f'{name}: {version} is visible, of {self.n}')

    def recover(self):
        """The next agent has memory."""
        self.failing = None
        self.changed = False
        self.n += 1
        self.write('pullet.yaml', self.settings())
        done = subprocess.run([PULLETD, '-c', self.path('pullet.yaml'), '--once'], capture_output=True, text=True, timeout=harness.DEADLINE, check=False)
        seen = self.seen()
        if done.returncode or any(version != self.n or generation != saved for version, generation, saved in seen.values()):
            raise Flaw(f'not recovered to {self.n}: {done.returncode} {seen} {done.stderr[-600:]}')
        strangers = [s for s in self.strangers() if not s.startswith('run/control')]
        bad = [f for name in ('web', 'set') for f in os.listdir(self.path('state/' + name)) if f.endswith('.bad')]
        if strangers or bad:
            raise Flaw(f'left behind: {strangers} {bad}')


class Allocations(harness.Case):
    def setUp(self):
        super().setUp()
        self.preloaded = library(self.dir)

    def record(self, kind):
        life = Life(self, self.preloaded)
        life.failing = {'FAIL_ALL': kind}
        self.assertTrue(life.live(), f'a life without a fault: {life.answers} {life.agent.log.seen}')
        status, said, stacks, (count, left) = life.end()
        self.assertEqual(status, 0, said)
        life.recover()
        return stacks, count, left

    def place(self, life):
        """The agent's functions that asked for what failed."""
        with contextlib.suppress(FileNotFoundError, subprocess.CalledProcessError):
            addresses = life.read('report.at').decode().split()
            names = subprocess.run(['addr2line', '-sfe', PULLETD, *addresses[:6]], capture_output=True, text=True, check=True).stdout.split('\n')
            return ' < '.join(f'{name} {where}' for name, where in zip(names[::2], names[1::2]))
        return ''

    def fail_at(self, life, n, on, kind, left):
        life.failing = {'FAIL_AT': str(n), 'FAIL_ON': str(int(on)), 'FAIL_ALL': kind}
        with contextlib.suppress(FileNotFoundError):
            os.unlink(life.path('report.at'))
        try:
            whole = life.live()
            status, said, _, (count, lost) = life.end()
            life.check(status, said)
            if status == 0 and lost > left:
                raise Flaw(f'{lost - left} blocks were not freed')
            life.recover()
        except Exception as e:
            raise Flaw(f'allocation {n}{" and all after it" if on else ""}: {e}\n    asked for by {self.place(life)}') from e
        return count >= n or status < 0, status, whole

    def fail_each(self, kind):
        stacks, count, left = self.record(kind)
        first = {}
        for n, stack in enumerate(stacks, 1):
            first.setdefault(stack, n)
        points = [(n, on) for n in sorted(first.values()) for on in (False, True)]
        if os.environ.get('PULLET_TEST_AT'):
            points = [(int(os.environ['PULLET_TEST_AT']), on) for on in (False, True)]
        elif POINTS != 'all' and len(points) > int(POINTS):
            points = random.Random(os.environ.get('PULLET_SEED', '1') + kind).sample(points, int(POINTS))
        sums = collections.Counter()
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            jobs = [pool.submit(self.fail_some, points[i::4], kind, left) for i in range(4)]
            for job in jobs:
                sums.update(job.result())
        print(f'{count} allocations of a life, {len(first)} by calls of their own; {len(points)} lives without one or all after it: {sums["met"]} met it, '
              f'{sums["well"]} ended well, {sums["whole"]} did everything, {sums["early"]} died in a library before the agent was there, {sums["accepted"]} in libevent\'s accept; '
              f'{left} blocks are left at the end of each')
        self.assertGreater(sums['met'], 0)
        self.assertEqual(sums['flaws'], 0)
        self.assertLessEqual(sums['early'], EARLY)
        self.assertLessEqual(sums['accepted'], ACCEPTED)

    def fail_some(self, points, kind, left):
        sums, life = collections.Counter(), Life(self, self.preloaded)
        for n, on in points:
            try:
                met, status, whole = self.fail_at(life, n, on, kind, left)
                sums.update(met=met, well=status == 0, whole=whole, early=status < 0 and not life.ready, accepted=status < 0 and life.ready)
            except Flaw as flaw:
                sums.update(flaws=1)
                print(flaw)
                life.agent.close()
                life = Life(self, self.preloaded)
        return sums

    @harness.needs('files in memory')
    def test_of_the_agent(self):
        self.fail_each('0')

    @harness.needs('files in memory')
    def test_of_its_libraries(self):
        self.fail_each('1')


if __name__ == '__main__':
    harness.main()
