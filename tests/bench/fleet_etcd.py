#!/usr/bin/env python3
"""A fleet on one machine: real agents with receipts on, a real etcd of three members, and one relay (or none: each agent with a watch of its
own). One put; when do they have it, what does etcd get to do, and what does all that cost? $PULLET_BUILD names the build directory.

Usage: fleet_etcd.py [AGENTS [PUTS]]        (300, 3)

The time of a file is the kernel's, of its rename (to 4 ms); that of a receipt is when a watch of etcd told of it. Both count from the answer to
the put. Requests are etcd's own count of gRPC calls begun (its gateway makes one of each request), looked at five times a second, which costs
etcd some processor time too; the peak second is the busiest one among them. All members, agents and the relay share this machine's processors,
which agents that answer one message want all at once: with a machine each they would be faster, and the peak second at etcd higher.

As root the agents run under users that nobody has, 100 each, so that they do not use up root's inotify instances.
"""
import base64
import http.client
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import threading
import time

from place import Place  # finds the two that follow

import etcd
import harness

KEY = '/fleet/web.yaml'
RECEIPTS = '/pullet/agents/'
# An agent takes up to so long before it writes a receipt, and rests between two: puts that are further apart find all of them rested.
REPORT_FIRST_S, REPORT_REST_S = 1, 5
SAMPLE_S = 0.2
PATIENCE_S = 120
USER, PER_USER = 61000, 100
VARIANTS = {'relay': [], 'relay --spread 10s': ['--spread', '10s'], "agents' own watches": None}


def until(happened, what):
    end = time.monotonic() + PATIENCE_S
    while not happened():
        if time.monotonic() > end:
            raise AssertionError(what)
        time.sleep(0.05)


# ---- what the kernel counts

def cpu_ns(pids):
    """Of all threads that are there now."""
    return sum(ms * 1e6 for pid in pids for _, ms in harness.processor_ms(pid))


def machine_busy_ns():
    """Of all processors together."""
    with open('/proc/stat', encoding='ascii') as f:
        user, nice, system, _, _, irq, softirq, steal = map(int, f.readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) * 1_000_000_000 // os.sysconf('SC_CLK_TCK')


def memory_kb(pids):
    """(PSS, RssAnon) in all."""
    pss = anon = 0
    for pid in pids:
        with open(f'/proc/{pid}/smaps_rollup', encoding='ascii') as f:
            pss += int(re.search(r'^Pss: +(\d+)', f.read(), re.M)[1])
        with open(f'/proc/{pid}/status', encoding='ascii') as f:
            anon += int(re.search(r'^RssAnon:\s+(\d+)', f.read(), re.M)[1])
    return pss, anon


def connections(port):
    """How many are established to that port of this machine."""
    local, count = f':{port:04X}', 0
    with open('/proc/net/tcp', encoding='ascii') as f:
        for line in f:
            fields = line.split()
            count += fields[1].endswith(local) and fields[3] == '01'
    return count


# ---- etcd, looked at from outside

class Requests(threading.Thread):
    """etcd's counters of calls begun, as they grow."""

    def __init__(self, cluster):
        super().__init__(daemon=True)
        self.members = [http.client.HTTPConnection('127.0.0.1', m.client, timeout=PATIENCE_S) for m in cluster.members]
        self.samples, self.ending = [(time.monotonic(), self.look())], threading.Event()

    def run(self):
        while not self.ending.wait(SAMPLE_S):
            self.samples.append((time.monotonic(), self.look()))

    def look(self):
        calls = {}
        for member in self.members:
            member.request('GET', '/metrics')
            text = member.getresponse().read().decode()
            for method, n in re.findall(r'^grpc_server_started_total\{grpc_method="(\w+)".*\} (\S+)$', text, re.M):
                calls[method] = calls.get(method, 0) + int(float(n))
        return calls

    def gauge(self, name):
        """The sum over all members."""
        total = 0
        for member in self.members:
            member.request('GET', '/metrics')
            total += float(re.search(rf'^{name} (\S+)$', member.getresponse().read().decode(), re.M)[1])
        return total

    def end(self):
        """The calls of the busiest second, and of all the time: {method: n}."""
        self.ending.set()
        self.join()
        self.samples.append((time.monotonic(), self.look()))
        spans = [(a, b) for i, (at, a) in enumerate(self.samples) for until_, b in self.samples[i + 1:] if until_ - at <= 1.0 + SAMPLE_S / 2]
        grown = [{m: b[m] - a.get(m, 0) for m in b if b[m] > a.get(m, 0)} for a, b in spans]
        first, last = self.samples[0][1], self.samples[-1][1]
        return max(grown, key=lambda calls: sum(calls.values())), {m: last[m] - first.get(m, 0) for m in last if last[m] > first.get(m, 0)}


class Receipts(threading.Thread):
    """A watch of the receipts: when each host told of a version."""

    def __init__(self, cluster):
        super().__init__(daemon=True)
        self.seen = {}  # version: {host: moment}
        self.connection = http.client.HTTPConnection('127.0.0.1', cluster.members[0].client)
        body = {'create_request': {'key': etcd.b64(RECEIPTS), 'range_end': etcd.b64(etcd.after(RECEIPTS))}}
        self.connection.request('POST', '/v3/watch', json.dumps(body))
        self.stream = self.connection.getresponse()
        assert b'"created":true' in self.stream.readline()
        self.start()

    def run(self):
        for line in self.stream:
            now = time.monotonic()
            for event in json.loads(line)['result'].get('events', []):
                receipt = json.loads(base64.b64decode(event['kv'].get('value', '')) or b'{}')
                configs = receipt.get('configs', {})
                if isinstance(configs, dict) and 'web' in configs:
                    self.seen.setdefault(configs['web']['version'], {}).setdefault(receipt['host'], now)


# ---- the fleet

class Fleet(Place):
    def __init__(self, agents, relay):
        super().__init__()
        self.count, self.number, self.agents = agents, 0, []
        os.chmod(self.dir, 0o755)
        self.cluster = etcd.Etcd(self, members=3)
        revision = self.cluster.put(KEY, self.document())
        self.relay = self.start_relay(relay) if relay is not None else None
        self.program = shutil.copy(harness.PULLETD, self.path('pulletd'))  # which other users may not reach where it is
        self.callback(self.end_agents)
        for i in range(agents):
            self.start_agent(i)
        self.receipts = Receipts(self.cluster)
        self.wait_for(revision)
        if self.relay:
            until(lambda: connections(self.port) >= agents, 'not all agents are connected to the relay')
        else:
            watchers = Requests(self.cluster)
            until(lambda: watchers.gauge('etcd_debugging_mvcc_watcher_total') > agents, 'not all agents watch')

    def document(self):
        self.number += 1
        return f'change: {self.number}\n' + ''.join(f'key{i:03}: value {i * 7}\n' for i in range(50))

    def start_relay(self, args):
        relay = harness.Program([harness.PULLET, 'relay', '--push', 'tcp://127.0.0.1:0', '--etcd', ','.join(self.cluster.urls),
                                 '--prefix', os.path.dirname(KEY) + '/', *args], read='stdout')
        self.callback(relay.close)
        self.endpoint = relay.log.wait('^publishing on ').split()[-1]
        self.port = int(self.endpoint.rsplit(':', 1)[1])
        return relay

    def start_agent(self, i):
        """The addresses in an order of its own: on this machine they would all prefer the same member."""
        directory = self.path(f'a{i}')
        urls = [f'"{self.cluster.urls[(i + k) % 3]}"' for k in range(3)]
        push = f'push: [{{endpoint: "{self.endpoint}"}}]' if self.relay else ''
        os.makedirs(directory)
        self.write(f'a{i}/pullet.yaml', f'''
agent: {{state_dir: {directory}/state, runtime_dir: {directory}/run, log: {{level: warn}}, labels: {{rack: "{i // 20}"}}}}
servers: {{main: {{kind: etcd, urls: [{", ".join(urls)}]{"" if self.relay else ", watch: true"}}}}}
{push}
report: {{server: main, host: agent-{i:03}, prefix: {RECEIPTS}}}
configs: {{web: {{from: [{{server: main, path: {KEY}}}], file: {directory}/web.yaml, interval: 1h}}}}
''')
        user = {}
        if os.geteuid() == 0:
            uid = USER + i // PER_USER
            os.chown(directory, uid, uid)
            user = {'user': uid, 'group': uid, 'extra_groups': []}
        with open(directory + '/log', 'wb') as log:
            self.agents.append(subprocess.Popen([self.program, '-c', directory + '/pullet.yaml'], stdin=subprocess.DEVNULL, stdout=log, stderr=log, **user))

    def end_agents(self):
        for agent in self.agents:
            agent.kill()
        for agent in self.agents:
            agent.wait()

    def wait_for(self, revision):
        """As an operator does it."""
        subprocess.run([harness.PULLET, 'fleet', 'wait', 'web', '--version', str(revision), '--hosts', str(self.count), '--timeout', f'{PATIENCE_S}s',
                        '--etcd', self.cluster.url, '--prefix', RECEIPTS], check=True, stdout=subprocess.DEVNULL)

    def pids(self):
        return {'agents': [a.pid for a in self.agents], 'etcd': [m.process.pid for m in self.cluster.members],
                'relay': [self.relay.pid] if self.relay else []}

    def logs(self):
        """What the agents had to complain of: {line: how often}."""
        said = {}
        for i in range(self.count):
            with open(self.path(f'a{i}/log'), encoding='utf-8') as f:
                for line in f:
                    line = re.sub(r'\b(\d+|https?://\S+)\b', '#', line.strip())
                    said[line] = said.get(line, 0) + 1
        return said

    def put(self):
        """One change, followed until all have it and etcd knows: {row: number}."""
        text, pids = self.document(), self.pids()
        requests = Requests(self.cluster)
        requests.start()
        begun_ns, used, own = machine_busy_ns(), {name: cpu_ns(of) for name, of in pids.items()}, time.process_time_ns()
        sent = time.monotonic()
        revision = self.cluster.put(KEY, text)
        answered, answered_ns = time.monotonic(), time.time_ns()
        self.wait_for(revision)
        told = time.monotonic()
        hosts = self.receipts.seen.get(str(revision), {})
        until(lambda: len(hosts) == self.count, 'not all receipts came by the watch')
        used = {name: cpu_ns(of) - used[name] for name, of in pids.items()}
        busy_ns, passed_ns, own = machine_busy_ns() - begun_ns, (time.monotonic() - sent) * 1e9, time.process_time_ns() - own
        time.sleep(1)  # else what follows the receipts would not be in the counts
        peak, calls = requests.end()
        row = {'put': (answered - sent) * 1e3, 'wait': (told - answered) * 1e3, 'peak': sum(peak.values()), 'calls': sum(calls.values()),
               'peak of': peak, 'busy': busy_ns / passed_ns / os.cpu_count() * 100, 'own': own / 1e6,
               'others': max(0, busy_ns - own - sum(used.values())) / 1e6}
        row.update({f'cpu {name}': ns / 1e6 for name, ns in used.items()})
        row['files'] = sorted((self.changed_ns(i, text) - answered_ns) / 1e6 for i in range(self.count))
        row['receipts'] = sorted((at - answered) * 1e3 for at in hosts.values())
        return row

    def changed_ns(self, i, text):
        with open(self.path(f'a{i}/web.yaml'), encoding='utf-8') as f:
            assert f.read() == text, f'agent {i} says that it has what it has not'
            return os.fstat(f.fileno()).st_ctime_ns


# ---- what is shown

def share(values, percent):
    """How long until so many percent had it."""
    return values[-(-len(values) * percent // 100) - 1]


def measure(agents, puts, relay):
    with Fleet(agents, relay) as fleet:
        rows = []
        for _ in range(puts):
            time.sleep(REPORT_FIRST_S + REPORT_REST_S + 0.5)
            rows.append(fleet.put())
        memory = {name: memory_kb(pids) for name, pids in fleet.pids().items()}
        return rows, memory, fleet.logs()


def cells(rows, memory, agents):
    """[(what, text)] of a variant: medians over the puts."""
    def middle(value):
        return statistics.median(value(r) for r in rows)

    def shares(of):
        return ' / '.join(f'{middle(lambda r: share(r[of], p)):.0f}' for p in (50, 99, 100))

    busiest = max(rows, key=lambda r: r['peak'])['peak of']
    pss, anon = memory['agents']
    return [
        ('put: request to answer, ms', f'{middle(lambda r: r["put"]):.1f}'),
        ('files: 50 / 99 / 100 %, ms', shares('files')),
        ('receipts: 50 / 99 / 100 %, ms', shares('receipts')),
        ('pullet fleet wait ends, ms', f'{middle(lambda r: r["wait"]):.0f}'),
        ('requests at etcd, peak second', f'{middle(lambda r: r["peak"]):.0f}, worst {max(r["peak"] for r in rows)}'),
        ('  the worst: of these', ', '.join(f'{n} {m}' for m, n in sorted(busiest.items(), key=lambda x: -x[1])[:2])),
        ('requests at etcd, in all', f'{middle(lambda r: r["calls"]):.0f}'),
        ('processor, ms: agents', f'{middle(lambda r: r["cpu agents"]):.0f}'),
        ('  etcd, relay', f'{middle(lambda r: r["cpu etcd"]):.0f}, {middle(lambda r: r["cpu relay"]):.0f}'),
        ('  measuring, other work', f'{middle(lambda r: r["own"]):.0f}, {middle(lambda r: r["others"]):.0f}'),
        ('the processors were busy, %', f'{middle(lambda r: r["busy"]):.0f}'),
        ('agents, MB: PSS, RssAnon', f'{pss / 1024:.0f}, {anon / 1024:.0f}'),
        ('  of one, kB', f'{pss / agents:.0f}, {anon / agents:.0f}'),
        ('relay, MB: PSS, RssAnon', ', '.join(f'{kb / 1024:.1f}' for kb in memory['relay'])),
        ('etcd, MB: PSS, RssAnon', ', '.join(f'{kb / 1024:.0f}' for kb in memory['etcd'])),
    ]


def main():
    agents = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    puts = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    print(f'{agents} agents with receipts, three members of etcd, {os.cpu_count()} processors for all; medians of {puts} puts; load {os.getloadavg()[0]:.1f}')
    columns, said = [], {}
    for name, relay in VARIANTS.items():
        rows, memory, logs = measure(agents, puts, relay)
        columns.append(cells(rows, memory, agents))
        for line, n in logs.items():
            said[line] = said.get(line, 0) + n
        print(f'  {name}: done', file=sys.stderr)
    print(f'{"":<32}' + ''.join(f'{name:>26}' for name in VARIANTS))
    for row in zip(*columns):
        print(f'{row[0][0]:<32}' + ''.join(f'{text:>26}' for _, text in row))
    for line, n in sorted(said.items(), key=lambda x: -x[1])[:10]:
        print(f'{n} x an agent said: {line}')


if __name__ == '__main__':
    main()
