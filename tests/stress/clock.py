"""Clocks that are elsewhere: CLOCK_BOOTTIME and CLOCK_MONOTONIC ten years on, in a namespace of time, and other ones after a restart; a wall clock of
before 1970 and of after 2106. No pull is missed or comes twice, and the age of what is current stays true.

Usage: clock.py [Clock.test_...]     (steps of the wall clock while the agent runs: tests/integration/test_servers.py, Sleep)

The seeded bug, which must be found: timers that come an hour late where CLOCK_BOOTTIME is years ahead. Namespaces of time need root.
"""
import os
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'integration'))
import harness  # noqa: E402
from harness import Agent, FaultServer, good  # noqa: E402

YEARS = 3652 * 86400
INTERVAL_S = 0.3
PULLS = 12
SEEDED = '''#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>
int timerfd_settime(int fd, int flags, const struct itimerspec *new, struct itimerspec *old)
{
	struct itimerspec t = *new;
	if (t.it_value.tv_sec > %d / 2)
		t.it_value.tv_sec += 3600;
	return (int)syscall(SYS_timerfd_settime, fd, flags, &t, old);
}
''' % YEARS


def later(boottime, monotonic):
    """A prefix for a command, whose clocks are so many seconds ahead."""
    return ['unshare', '--time', '--boottime', str(boottime), '--monotonic', str(monotonic)]


class Clock(harness.Case):
    def setUp(self):
        super().setUp()
        self.server, self.times, self.changed = FaultServer(self), [], threading.Condition()
        self.behave(good(b'a: 1\n', 'ETag: "1"\r\n'))

    def behave(self, answer):
        def behave(connection, head, stopping):
            with self.changed:
                self.times.append(time.monotonic())
                self.changed.notify_all()
            return answer(connection, head, stopping)
        self.server.behave = behave

    def start(self, prefix=(), env=None):
        why = harness.refusal(*prefix, 'true') if prefix else None
        if why:
            self.skipTest(f'it needs a namespace of time: {why}')
        self.prefix = list(prefix)
        more = f'    interval: {INTERVAL_S * 1000:.0f}ms\n    jitter: 0%\n    backoff_bound: 2\n'
        self.agent = Agent(self, self.config(self.server.url + '/web.yaml', more), env=env)
        self.agent.ready()

    def pulls(self):
        """Some come, one each interval."""
        with self.changed:
            first = len(self.times) + 1
            come = self.changed.wait_for(lambda: len(self.times) > first + PULLS, PULLS * INTERVAL_S + 15)
            self.assertTrue(come, 'no pull comes')
            gaps = [b - a for a, b in zip(self.times[first:], self.times[first + 1:])]
        self.assertGreater(min(gaps), 0.7 * INTERVAL_S, gaps)
        self.assertLess(sorted(gaps)[len(gaps) // 2], 2 * INTERVAL_S, gaps)

    def is_well(self):
        status = self.agent.status()
        self.assertEqual(status['state'], 'ok', status)
        self.assertTrue(0 <= status['age_ms'] < 10000, status)

    def test_years_later(self):
        for offsets in ((YEARS, YEARS), (YEARS, 0), (0, YEARS)):
            self.start(later(*offsets))
            self.agent.log.wait('published config=web|started from the last known good')
            self.pulls()
            self.is_well()
            self.agent.stop()

    def test_another_clock_after_a_restart(self):
        """The control page tells of a moment that is years ahead, or ago."""
        for before, after in ((YEARS, 0), (0, YEARS)):
            self.behave(good(b'a: 1\n', 'ETag: "1"\r\n'))
            self.start(later(before, before))
            self.pulls()
            self.agent.stop()
            self.behave(good(b'', status='500 Internal Server Error'))
            self.start(later(after, after))
            self.agent.log.wait('started from the last known good')
            age = self.agent.status()['age_ms']
            self.assertTrue(age is None or age >= 0, age)
            self.behave(good(b'a: 1\n', 'ETag: "1"\r\n'))
            self.until(lambda: self.agent.status()['runs']['success'], 'it does not recover')
            self.is_well()
            self.pulls()
            self.agent.stop()

    def test_wall_clocks_of_another_time(self):
        library, now = self.path('hang.so'), int(time.time())
        source = os.path.join(os.path.dirname(harness.__file__), 'hang.c')
        subprocess.run(['cc', '-shared', '-fPIC', '-O2', '-D_GNU_SOURCE', '-o', library, source], check=True)
        for moment in (-86400, 0, 1 << 31, 1 << 32, now):
            self.write('wall', str(moment - now))
            self.start(env={'LD_PRELOAD': library, 'WALL_OFFSET_FILE': self.path('wall')})
            self.pulls()
            self.is_well()
            self.behave(good(b'a: %d\n' % len(self.times), f'ETag: "{len(self.times)}"\r\n'))
            self.agent.log.wait('published config=web')
            self.is_well()
            self.agent.stop()

    def test_seeded(self):
        self.write('seeded.c', SEEDED)
        subprocess.run(['cc', '-shared', '-fPIC', '-o', self.path('seeded.so'), self.path('seeded.c')], check=True)
        self.start(later(YEARS, YEARS), {'LD_PRELOAD': self.path('seeded.so')})
        with self.assertRaises(AssertionError):
            self.pulls()


if __name__ == '__main__':
    harness.main()
