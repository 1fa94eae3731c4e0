"""Networks that fail below HTTP, in one of the test's own: name servers that never answer; a line that loses everything, some of it, is slow, or
goes down. Pulls end in time, nothing turns in circles, and the change that was made meanwhile is taken soon after the line is back.
"""
import os
import signal
import time

import harness
from harness import PULLET, PULLETD, Agent, Program

INTERVAL_S, TIMEOUT_S, BOUND = .4, .5, 2  # of the config; the last one: backoff_bound
SHELL = '''
ip link set lo up
"$1" -c "$2" &
"$3" serve "$4" --http 127.0.0.1:8080 --push tcp://127.0.0.1:7377 &
while read -r command; do $command; done < "$5"
kill -9 0
'''
MUTE = '''
import os, re, socket, subprocess, sys
subprocess.run(['ip', 'link', 'set', 'lo', 'up'], check=True)
with open('/etc/resolv.conf') as f:
    for server in re.findall(r'^nameserver +([0-9.]+)$', f.read(), re.M):
        subprocess.run(['ip', 'addr', 'add', server + '/32', 'dev', 'lo'], check=False, stderr=subprocess.DEVNULL)
mute = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
mute.bind(('0.0.0.0', 53))
mute.set_inheritable(True)
os.execv(sys.argv[1], sys.argv[1:])
'''


class Talk(Agent):
    """The requests of an agent that another program has started."""

    def __init__(self, test, program):  # pylint: disable=super-init-not-called
        self.test, self.dir, self.log, self.socket = test, test.dir, program.log, test.path('run/control.sock')

    def ready(self):
        self.test.until(lambda: os.path.exists(self.socket), 'the control socket')


class Names(harness.Case):
    def test_name_servers_that_never_answer(self):
        """Every configured name server is this host. A pull ends in time, the loop goes on meanwhile, and a stop is quick."""
        self.write('pullet.yaml', self.config('http://config.example/web.yaml', f'    interval: 1h\n    timeout: 1s\n'))
        self.write('mute.py', MUTE)
        p = Program([*harness.own_network(), '/usr/bin/python3', self.path('mute.py'), PULLETD, '-c', self.path('pullet.yaml')])
        self.addCleanup(p.close)
        agent = Talk(self, p)
        p.log.wait('timed out')
        begin, gaps = time.monotonic(), []
        self.assertEqual(agent.post('/v1/configs/web/refresh')[0], 202)
        while agent.status()['runs']['timeouts'] < 2:
            asked = time.monotonic()
            self.assertEqual(agent.get('/livez')[0], 200)
            gaps.append(time.monotonic() - asked)
            self.assertLess(asked - begin, harness.DEADLINE)
        if not harness.SANITIZED:
            self.assertLess(time.monotonic() - begin, 2)
            self.assertLess(max(gaps), 1)
        self.assertEqual(agent.post('/v1/configs/web/refresh')[0], 202)  # and hangs again
        p.signal(signal.SIGTERM)
        self.assertEqual(p.wait(10 if harness.SANITIZED else 2), 0)


@harness.needs('a network that can be slow')
class Line(harness.Case):
    def setUp(self):
        super().setUp()
        self.n = 0
        self.change()
        os.mkfifo(self.path('commands'))
        self.write('pullet.yaml', self.config('http://127.0.0.1:8080/web.yaml', f'    interval: {INTERVAL_S * 1000:.0f}ms\n    timeout: {TIMEOUT_S * 1000:.0f}ms\n    backoff_bound: {BOUND}\n    jitter: 0%\n'))
        program = Program([*harness.own_network(), 'sh', '-c', SHELL, 'sh', PULLETD, self.path('pullet.yaml'), PULLET, self.path('www'), self.path('commands')])
        self.addCleanup(program.close)
        self.commands = open(self.path('commands'), 'w', encoding='ascii', buffering=1)  # pylint: disable=consider-using-with
        self.addCleanup(self.commands.close)
        self.agent = Talk(self, program)
        self.until(self.current, 'the first version')
        self.pid = next(p for p in harness.children(program.pid) if os.readlink(f'/proc/{p}/exe') == os.path.realpath(PULLETD))

    def change(self):
        """30 kB: eight seconds over a line of 16 kbit/s, and half of one over a good one."""
        self.n += 1
        self.write('www/web.yaml', f'n: {self.n}\ntext: {"x" * 30000}\n')

    def current(self):
        return os.path.exists(self.path('out/web.yaml')) and self.read('out/web.yaml').startswith(b'n: %d\n' % self.n)

    def run_on_line(self, command):
        print(command, file=self.commands)

    def ticks(self):
        with open(f'/proc/{self.pid}/stat', encoding='ascii') as f:
            return sum(map(int, f.read().rsplit(')', 1)[1].split()[11:13]))

    def failures(self):
        runs = self.agent.status()['runs']
        return runs['timeouts'] + runs['failed']

    def survive(self, *spoil, mend='tc qdisc del dev lo root', fails=True):
        """The line is spoiled until two pulls have failed, or (`fails` is False) for a second and a half; then it is mended."""
        failed, begin, used = self.failures(), time.monotonic(), self.ticks()
        for command in spoil:
            self.run_on_line(command)
        self.change()
        self.until(lambda: self.failures() >= failed + 2 if fails else time.monotonic() > begin + 1.5, 'two failures')
        share = (self.ticks() - used) / os.sysconf('SC_CLK_TCK') / (time.monotonic() - begin)
        if fails:
            self.assertFalse(self.current())
        self.change()
        self.run_on_line(mend)
        mended = time.monotonic()
        self.until(self.current, f'version {self.n}')
        took = time.monotonic() - mended
        print(f'{spoil[0]}: {share * 100:.1f} % of a processor, current {took:.1f} s after it was mended', flush=True)
        if not harness.SANITIZED:
            self.assertLess(took, 2 * INTERVAL_S * BOUND + 1)
            self.assertLess(share, .05, 'of which the status is a part: it is asked for all the time')

    def test_a_line_that_fails_and_is_mended(self):
        hole = 'tc qdisc replace dev lo root tbf rate 8bit burst 1 limit 1'
        self.survive(hole)
        self.survive('ip link set lo down', mend='ip link set lo up')
        self.survive('tc qdisc replace dev lo root tbf rate 16kbit burst 2000 latency 400ms')
        self.survive(*['sleep .2', hole, 'sleep .05', 'tc qdisc del dev lo root'] * 6, mend='true', fails=False)


if __name__ == '__main__':
    harness.main()
