#!/usr/bin/env python3
"""What many configs on one host cost an agent that is idle but for one of them: memory a config, a scrape of /metrics, and a change of one.

Usage: many.py [--agent PROGRAM]... [COUNT...]

Each COUNT (1, 1,000 and 10,000) is an agent of its own, with files and state in memory. `memory`: RssAnon, and what a config adds to that of
an agent with one. `scrape`: the loop thread's processor time for one, and the longest turn since. `change`: from the message of a push to the
new bytes in the file (p50, p90), and the loop's processor time for it; of the config in the middle. With several agents the rounds alternate.
The ratio behind each figure is to the first COUNT of the same agent.

A change here comes within two minutes of the start: with many configs there is then no place for an idle connection (ARCHITECTURE.md, "One
connection, one document"), and each makes a new one.
"""
import argparse
import os
import re
import statistics
import time

from place import Place, quantile  # finds the next ones

import harness
from growth import FILE, Agent
from harness import Nginx, UnixConnection
from test_push import Publisher

CHANGES, SCRAPES, ROUNDS = 100, 20, 3


class Many:
    """An agent with so many configs, of which all have something published."""

    def __init__(self, place, program, server, publisher, count):
        self.place, self.server, self.publisher, self.count, self.n = place, server, publisher, count, 1
        harness.PULLETD = program
        os.makedirs(place.path('conf.d'))
        place.write('pullet.yaml', f'agent: {{state_dir: {place.dir}/state, runtime_dir: {place.dir}/run}}\n'
                                   f'push: [{{endpoint: "{publisher.endpoint}", heartbeat: 1h}}]\n')
        for first in range(0, count, FILE):
            place.write(f'conf.d/{first:05}.yaml', 'configs:\n' + ''.join(
                f'  config-{i}: {{url: "{server.url}/config-{i}.yaml", file: {place.dir}/out/config-{i}.yaml, interval: 1h, push_min_interval: 0s}}\n'
                for i in range(first, min(first + FILE, count))))
        self.agent = Agent(place)
        self.agent.log.wait(b' published config=', count)
        self.middle = f'config-{count // 2}'
        self.publisher.wait_subscribed(self.middle.encode())
        self.change()

    def loop_ms(self):
        return dict(harness.processor_ms(self.agent.process.pid))['pulletd']

    def rss_kb(self):
        with open(f'/proc/{self.agent.process.pid}/status', encoding='ascii') as f:
            return int(re.search(r'RssAnon:\s+(\d+)', f.read())[1])

    def scrape(self):
        """(processor time of the loop in ms, bytes, series, the longest turn so far in ms)"""
        connection, before = UnixConnection(self.place.path('run/control.sock')), self.loop_ms()
        connection.request('GET', '/metrics')
        text = connection.getresponse().read().decode()
        connection.close()
        series = len(re.findall('^[^#]', text, re.M))
        return self.loop_ms() - before, len(text), series, float(re.search(r'^pullet_loop_longest_turn_seconds (\S+)', text, re.M)[1]) * 1000

    def change(self):
        """(from the message to the file in ms, processor time of the loop in ms)"""
        self.n += 1
        text, path = f'n: {self.n}\n', self.place.path(f'out/{self.middle}.yaml')
        www = f'{self.server.root}/{self.middle}.yaml'
        with open(www + '~', 'w', encoding='utf-8') as f:
            f.write(text)
        os.rename(www + '~', www)
        before, begin = self.loop_ms(), time.perf_counter()
        self.publisher.socket.send(self.middle.encode())
        while True:
            with open(path, encoding='utf-8') as f:
                if f.read() == text:
                    break
            if time.perf_counter() - begin > harness.DEADLINE:
                raise SystemExit('many: the change does not come')
        passed = time.perf_counter() - begin
        time.sleep(0.01)  # what follows it ends; and changes do not run into each other
        return passed * 1000, self.loop_ms() - before


def measure(programs, counts):
    """{(program, count): {figure: value}}"""
    results = {}
    for count in counts:
        with Place() as place:
            server, agents = Nginx(place), {}
            os.makedirs(place.path('www'), exist_ok=True)
            for i in range(count):
                place.write(f'www/config-{i}.yaml', 'n: 1\n')
            for i, program in enumerate(programs):
                agents[program] = Many(place.below(str(i)), program, server, Publisher(place), count)
            samples = {program: ([], []) for program in programs}
            rss = {program: agent.rss_kb() for program, agent in agents.items()}
            for _ in range(ROUNDS):
                for program, agent in agents.items():
                    samples[program][0].extend(agent.change() for _ in range(CHANGES))
            for _ in range(ROUNDS):
                for program, agent in agents.items():
                    samples[program][1].extend(agent.scrape() for _ in range(SCRAPES))
            for program, (changes, scrapes) in samples.items():
                results[program, count] = {
                    'RssAnon, kB': rss[program],
                    'a change, p50 ms': quantile([c[0] for c in changes], 0.5), 'a change, p90 ms': quantile([c[0] for c in changes], 0.9),
                    'its loop, p50 ms': quantile([c[1] for c in changes], 0.5),
                    'a scrape, p50 ms': statistics.median(s[0] for s in scrapes), 'its bytes': scrapes[-1][1], 'its series': scrapes[-1][2],
                    'longest turn, ms': scrapes[-1][3]}
    return results


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--agent', action='append')
    parser.add_argument('counts', nargs='*', type=int)
    args = parser.parse_args()
    counts, programs = args.counts or [1, 1000, 10000], args.agent or [harness.PULLETD]
    results = measure(programs, counts)
    for program in programs:
        first = results[program, counts[0]]
        print(f'{program:24}' + ''.join(f'{count:>12,}        ' for count in counts))
        for name in first:
            line = f'  {name:22}'
            for count in counts:
                value = results[program, count][name]
                line += f'{value:12.2f} {value / first[name] if first[name] else 0:6.2f} '
            print(line)
        for count in counts[1:]:
            added = results[program, count]['RssAnon, kB'] - first['RssAnon, kB']
            print(f'  a config of {count:,}: {added * 1024 / (count - counts[0]):.0f} bytes')


if __name__ == '__main__':
    main()
