"""Few file descriptors: at each limit a program runs whole, or says how many it needs and ends with 78. libzmq would abort."""
import re
import resource
import signal
import subprocess
import urllib.request

import attack  # noqa: F401
import harness
from harness import PULLET, PULLETD, Program

FIRST, LAST = 8 if harness.SANITIZED else 3, 64  # a sanitizer opens files of its own first
WHOLE = 3  # limits at which it runs, from the least one on; then the last
NEEDED = r'(\d+) file descriptors are needed \(.*\), and the limit of \d+ leaves \d+: raise it to (\d+) or more \(LimitNOFILE= in the unit, ulimit -n in a shell\)'


def limited(limit, *command):
    return ['/bin/sh', '-c', f'ulimit -c 0 && ulimit -n {limit} && exec "$@"', 'sh', *command]


class Descriptors(harness.Case):
    def setUp(self):
        super().setUp()
        self.turn = 0

    def refused(self, code, said, limit):
        """It has ended, and said why: the least limit that would do. None: the dynamic linker, or sh, could do nothing."""
        if code == 127 and limit < 8 and 'error while loading shared libraries' in said:
            return None
        self.assertEqual(code, 78, f'{limit}: {said}')
        self.assertRegex(said, NEEDED, limit)
        return int(re.search(NEEDED, said)[2])

    def try_all(self, run):
        """run(limit) -> (exit code, what was said), or None when it ran whole. The least limit at which it did."""
        least, whole, limit = None, 0, FIRST
        while limit <= LAST or not whole:
            answer = run(limit)
            if answer is None:
                least = least or limit
                whole += 1
                limit = limit + 1 if whole < WHOLE else max(limit + 1, LAST)
                continue
            self.assertEqual(whole, 0, f'{limit} is more than what did: {answer}')
            wanted = self.refused(*answer, limit)
            self.assertLess(limit, wanted or LAST)
            limit += 1
        return least

    def once(self, *command, good):
        """A command that ends by itself: whole, as it is without a limit."""
        def run(limit):
            done = subprocess.run(limited(limit, *command), capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=harness.DEADLINE, check=False)
            if done.returncode == good[0]:
                self.assertRegex(done.stdout + done.stderr, good[1], limit)
                return None
            return done.returncode, done.stderr
        return self.try_all(run)

    def settings(self, *endpoints, interval='1h'):
        """For an agent of this turn, which is new here."""
        self.turn += 1
        push = ', '.join(f'{{endpoint: "{endpoint}"}}' for endpoint in endpoints)
        self.write('pullet.yaml', f'agent: {{state_dir: {self.path(f"state{self.turn}")}, runtime_dir: {self.path(f"run{self.turn}")}}}\n'
                                  f'push: [{push}]\nconfigs:\n  web: {{url: "{self.url.rstrip("/")}/web.yaml", interval: {interval}}}\n')
        return self.path('pullet.yaml')

    def agent(self, limit, path):
        p = Program(limited(limit, PULLETD, '-c', path))
        self.addCleanup(p.close)
        return p

    def cli(self, *args):
        done = subprocess.run([PULLET, args[0], '--socket', self.path(f'run{self.turn}/control.sock'), *args[1:]],
                              capture_output=True, text=True, timeout=harness.DEADLINE, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def begin(self, serve=True):
        self.write('www/web.yaml', 'a: 1\n')
        if serve:
            self.push, self.url = self.served()

    def served(self):
        self.origin = p = Program([PULLET, 'serve', self.path('www'), '--http', '127.0.0.1:0', '--push', 'tcp://127.0.0.1:0'], read='stdout')
        self.addCleanup(p.close)
        url = p.log.wait('^serving').split()[-1]
        return p.log.wait('^publishing on').split()[-1], url

    def live(self, p, *lines, ask=lambda p: None):
        """One life of a program: it says these lines, is asked, and ends when it is told to. As `run` of try_all()."""
        try:
            try:
                for line in lines:
                    p.log.wait(line)
            except AssertionError:
                said = '\n'.join(p.log.drain())
                return p.wait(), said
            ask(p)
            p.signal(signal.SIGTERM)
            p.log.drain()
            self.assertEqual(p.wait(), 0, p.log.seen)
            return None
        finally:
            p.close()

    def test_an_agent(self):
        self.begin()

        def ask(_p):
            self.assertIn('"web"', self.cli('status', '--json'))
        self.try_all(lambda limit: self.live(self.agent(limit, self.settings(self.push)), 'published config=web generation=1', 'push channel connected', ask=ask))

    def server(self, limit, *command):
        return Program(limited(limit, PULLET, *command), read='both')

    def test_many_endpoints(self):
        self.begin()
        done = subprocess.run(limited(128, PULLETD, '-c', self.settings(*(f'tcp://127.0.0.1:{port}' for port in range(1, 65)))), capture_output=True, text=True, timeout=harness.DEADLINE, check=False)
        self.assertGreater(self.refused(done.returncode, done.stderr, 128), 64 * 5)

    def test_a_soft_limit_is_raised(self):
        self.begin()
        p = Program(['/bin/sh', '-c', 'ulimit -S -n 10 && exec "$@"', 'sh', PULLETD, '-c', self.settings(self.push)])
        self.addCleanup(p.close)
        p.log.wait('push channel connected')
        soft, hard = resource.prlimit(p.pid, resource.RLIMIT_NOFILE)
        self.assertEqual(soft, hard)

    def test_without_one_for_a_request_this_host_is_named_not_its_server(self):
        self.begin()
        path = self.settings(interval='1s')
        p = Program([PULLETD, '-c', path])
        self.addCleanup(p.close)
        p.log.wait('published config=web generation=1')
        self.origin.close()
        p.log.wait('pull failed: .*connection refused')
        soft, hard = resource.prlimit(p.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(p.pid, resource.RLIMIT_NOFILE, (8, hard))
        p.log.wait('pull failed: .*why="cannot open a socket: Too many open files: raise the limit of open files \\(LimitNOFILE\\)')
        resource.prlimit(p.pid, resource.RLIMIT_NOFILE, (soft, hard))
        self.assertIn('"cause":"this host"', self.cli('status', '--json'))
        p.log.wait('pull failed: .*connection refused', p.log.count)

    def test_a_reload_that_needs_more_is_refused_and_the_old_goes_on(self):
        self.begin()
        path = self.settings(self.push)
        least = 8
        for _ in range(2):  # before the configuration is read, and after
            done = subprocess.run(limited(least, PULLETD, '-c', path), capture_output=True, text=True, timeout=harness.DEADLINE, check=False)
            least = self.refused(done.returncode, done.stderr, least)
        p = self.agent(least, path)
        p.log.wait('push channel connected')
        p.log.wait('published config=web generation=1')
        self.turn -= 1
        self.settings(self.push, *(f'tcp://127.0.0.1:{port}' for port in range(1, 11)))
        p.signal(signal.SIGHUP)
        self.assertRegex(p.log.wait('invalid configuration'), NEEDED)
        p.log.wait('the new configuration is invalid: nothing was changed')
        start = p.log.count
        self.write('www/web.yaml', 'a: 2\n')  # told by the push channel that there was
        p.log.wait('published config=web generation=2', start)
        self.assertIn('"web"', self.cli('status', '--json'))
        p.signal(signal.SIGTERM)
        p.log.drain()
        self.assertEqual(p.wait(), 0)

    def test_serve(self):
        self.begin(serve=False)

        def ask(p):
            url = p.log.wait('^serving').split()[-1]
            with urllib.request.urlopen(f'{url}/web.yaml', timeout=harness.DEADLINE) as answer:
                self.assertEqual(answer.read(), b'a: 1\n')
        command = 'serve', self.path('www'), '--http', '127.0.0.1:0', '--push', 'tcp://127.0.0.1:0'
        self.try_all(lambda limit: self.live(self.server(limit, *command), '^publishing on', ask=ask))

    def test_relay(self):
        self.begin()
        command = 'relay', '--dir', self.path('www'), '--upstream', self.push, '--push', 'tcp://127.0.0.1:0'
        self.try_all(lambda limit: self.live(self.server(limit, *command), '^publishing on'))

    def test_publish(self):
        self.begin()
        endpoint = 'ipc://' + self.path('socket')
        agent = self.agent(LAST + 64, self.settings(endpoint))
        agent.log.wait('published config=web generation=1')
        self.once(PULLET, 'publish', 'web', '--endpoint', endpoint, good=(0, 'web: sent to 1 subscription'))

    def test_watch(self):
        self.begin()
        subprocess.run([PULLETD, '-c', self.settings(), '--once'], check=True, capture_output=True, timeout=harness.DEADLINE)
        snapshot = self.path(f'run{self.turn}/web.snap')
        self.once(PULLET, 'watch', snapshot, '--now', '--timeout', '1ms', '--', '/bin/echo', 'it ran', good=(4, 'it ran'))

    def test_fleet(self):
        command = [PULLET, 'fleet', '--etcd', 'http://127.0.0.1:1']
        done = subprocess.run(command, capture_output=True, text=True, timeout=harness.DEADLINE, check=False)
        self.once(*command, good=(done.returncode, re.escape(done.stderr.strip()[:40])))


if __name__ == '__main__':
    harness.main()
