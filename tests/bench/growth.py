#!/usr/bin/env python3
"""What an agent with 100, 1,000 and 10,000 configs costs: first values, restart from the last known good while the server is down, SIGHUP
with nothing, one and all changed, status, stop; with all files in one directory, and each in a directory of its own.

Usage: growth.py [COUNT...]

The figures are of the agent's CPU, all threads, in milliseconds; for a restart, a status and a stop the time that passes is there too. Behind
each stands its ratio to 1,000 configs, a config: 1.0 is linear. At most 2 is the target. The server is a simple one in Python: it, and
not the agent, makes first values take long. Everything lies in memory.
"""
import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time

from place import Place, target  # finds the next one

import harness

COUNTS = (100, 1000, 10000)
BASE = 1000  # what others are compared with
WORST = 2.0
FILE = 1000  # configs in a file: those have a bound
ROWS = ('first values', 'restart', 'restart, passed', 'SIGHUP, nothing', 'SIGHUP, one', 'SIGHUP, all', 'status', 'status, passed', 'stop', 'stop, passed')


class Log(threading.Thread):
    """Reads what the agent says as fast as it comes: ten thousand lines are no load to speak of."""

    def __init__(self, stream):
        super().__init__(daemon=True)
        self.stream, self.text, self.changed = stream, bytearray(), threading.Condition()
        self.start()

    def run(self):
        while data := os.read(self.stream.fileno(), 1 << 18):
            with self.changed:
                self.text += data
                self.changed.notify_all()

    def wait(self, pattern, count=1):
        """Until as many lines have it since the last wait."""
        found, at, deadline, line = 0, 0, time.monotonic() + 60, re.compile(b'.*' + pattern + b'.*\n')
        with self.changed:
            while True:
                for match in line.finditer(self.text, at):
                    found, at = found + 1, match.end()
                    if found == count:
                        break
                if found == count:
                    del match
                    del self.text[:at]
                    return
                at = max(at, self.text.rfind(b'\n') + 1)
                if not self.changed.wait(deadline - time.monotonic()):
                    sys.exit(f'growth: {found} of {count} lines with {pattern}; the last ones: {bytes(self.text[-1000:])}')


class Agent:
    def __init__(self, place):
        # as a service: systemd is told how the configs are
        systemd = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(place.path('notify'))
        systemd.bind(place.path('notify'))
        threading.Thread(target=self.hear, args=(systemd,), daemon=True).start()
        self.process = subprocess.Popen([harness.PULLETD, '-c', place.path('pullet.yaml')], stderr=subprocess.PIPE,
                                        env=dict(os.environ, NOTIFY_SOCKET=place.path('notify')))
        place.addCleanup(self.end)
        self.log = Log(self.process.stderr)

    def end(self):
        if self.process.returncode is None:
            self.process.kill()
            self.process.wait()

    @staticmethod
    def hear(systemd):
        while systemd.recv(4096) != b'STOPPING=1\nSTATUS=stopping':
            pass
        systemd.close()

    def cpu_ms(self):
        return sum(ms for _, ms in harness.processor_ms(self.process.pid))

    def stop(self):
        """(CPU, time) that it takes, in milliseconds."""
        before, begin = self.cpu_ms(), time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        _, status, used = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        self.process.stderr.close()
        if self.process.returncode:
            sys.exit(f'growth: the agent ended with {self.process.returncode}')
        return (used.ru_utime + used.ru_stime) * 1000 - before, (time.monotonic() - begin) * 1000


class World:
    def __init__(self, place, count, shared):
        self.place, self.count, self.shared = place, count, shared
        self.asked, self.asked_more = set(), threading.Condition()
        self.server = harness.FaultServer(place)
        self.is_down(False)
        for name in ('conf.d', 'out'):
            os.makedirs(place.path(name))
        self.configure()

    def is_down(self, down):
        answer = harness.good(b'', status='503 Service Unavailable') if down else harness.good(b'a: 1\nb: two\n', 'ETag: "1"\r\n')

        def behave(connection, head, stopping):
            with self.asked_more:
                self.asked.add(head.split()[1])
                self.asked_more.notify_all()
            return answer(connection, head, stopping)
        self.server.behave = behave

    def configure(self, changed=()):
        dir_ = self.place.dir
        self.place.write('pullet.yaml', f'agent: {{state_dir: {dir_}/state, runtime_dir: {dir_}/run}}\n')
        for first in range(0, self.count, FILE):
            lines = ['configs:']
            for i in range(first, min(first + FILE, self.count)):
                file = f'{dir_}/out/c{i}.yaml' if self.shared else f'{dir_}/out/d{i}/c.yaml'
                lines.append(f'  c{i}: {{url: "{self.server.url}/c{i}.yaml", file: {file}, interval: {"2h" if i in changed else "1h"}}}')
            self.place.write(f'conf.d/{first:05}.yaml', '\n'.join(lines) + '\n')

    def cli(self, *args):
        subprocess.run([harness.PULLET, *args, '--socket', self.place.path('run/control.sock')], check=True, stdout=subprocess.DEVNULL)

    def start(self):
        return Agent(self.place)

    def reload(self, agent, changed):
        """The CPU of a SIGHUP, with the pulls that follow it."""
        self.configure(changed)
        before, wanted = agent.cpu_ms(), {f'/c{i}.yaml' for i in changed}
        self.asked.clear()
        agent.process.send_signal(signal.SIGHUP)
        agent.log.wait(b'the new configuration is applied')
        with self.asked_more:
            if not self.asked_more.wait_for(lambda: len(self.asked) >= len(wanted) and self.asked >= wanted, 60):
                sys.exit(f'growth: {len(wanted - self.asked)} of {len(wanted)} changed configs do not pull')
        self.cli('refresh', 'c0', '--wait')  # after those
        return agent.cpu_ms() - before

    def measure(self):
        figures = {}
        agent = self.start()
        agent.log.wait(b' published config=', self.count)
        figures['first values'] = agent.cpu_ms()
        figures['stop'], figures['stop, passed'] = agent.stop()
        self.is_down(True)
        begin = time.monotonic()
        agent = self.start()
        agent.log.wait(b'from the last known good', self.count)
        figures['restart'], figures['restart, passed'] = agent.cpu_ms(), (time.monotonic() - begin) * 1000
        agent.log.wait(b'started version')
        before, begin = agent.cpu_ms(), time.monotonic()
        self.cli('status', '--json')
        figures['status'], figures['status, passed'] = agent.cpu_ms() - before, (time.monotonic() - begin) * 1000
        agent.stop()
        self.is_down(False)
        agent = self.start()
        agent.log.wait(b'started version')
        self.cli('refresh', '--wait')  # the first pulls are spread over 30 s, and would be measured with what follows
        figures['SIGHUP, nothing'] = self.reload(agent, ())
        figures['SIGHUP, one'] = self.reload(agent, {self.count // 2})
        figures['SIGHUP, all'] = self.reload(agent, set(range(self.count)) - {self.count // 2})
        agent.stop()
        self.server.close()
        return figures


def show(name, counts, results):
    """The table; the worst ratio."""
    base, worst = results.get(BASE), 0
    print(f'{name:22}' + ''.join(f'{count:>10,}       ' for count in counts))
    for row in ROWS:
        line = f'  {row:20}'
        for count in counts:
            value = results[count][row]
            ratio = value / count / (base[row] / BASE) if base and base[row] > 0 else None
            # what costs less than this is not measured well
            counted = ratio is not None and count > BASE and value > 20 and ', passed' not in row
            grows = counted and ratio > WORST
            worst = max(worst, ratio if counted else 0)
            line += f'{value:10.1f} ' + (f'{ratio:4.1f}{"!" if grows else " "} ' if ratio is not None else '      ')
        print(line.rstrip(), flush=True)
    return worst


def main():
    counts = [int(count) for count in sys.argv[1:]] or COUNTS
    worst = 0
    print('milliseconds of the agent\'s CPU; behind it, a config, the ratio to 1,000')
    for shared in (True, False):
        results = {}
        for count in counts:
            with Place() as place:
                results[count] = World(place, count, shared).measure()
        worst = max(worst, show('one directory' if shared else 'a directory each', counts, results))
    if worst:  # something was compared
        target(f'CPU a config of {counts[-1]:,} configs: of {BASE:,}, the worst', worst, WORST)


if __name__ == '__main__':
    main()
