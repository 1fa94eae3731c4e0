#!/usr/bin/env python3
"""From a put that etcd acknowledged to the value at a reader: an agent's own watch, a relay and its push, and confd's way, beside the bare
hops they are made of, in one run. $PULLET_BUILD names the build directory.

Usage: etcd.py [CHANGES [ROUNDS]]       of each way, in each round (40, 3)

One real etcd, the agents and the relay are there all the time; each has a key of its own, so that a put wakes only what is measured. The
readers sleep until they are woken. Ways and hops take turns round by round; shown are medians over the rounds, and the p99 of all changes
together. Everything lies in memory, and etcd does not fsync.

"confd's way" is an imitation, since confd is in no package: etcd_probe watches a prefix, reads it whole when an event comes, fills a template
that copies, compares, writes and renames. It has no Go runtime, but it goes through the JSON gateway, as we do, where confd has gRPC.
"""
import os
import statistics
import subprocess
import sys

from place import Place, quantile, target  # finds the two that follow

import etcd
import harness

PROBE = os.path.join(harness.BUILD, 'bench', 'etcd_probe')
KEYS = {name: f'/bench/{name}/web.yaml' for name in ('watch', 'relay', 'copy', 'bare', 'etcdctl')}
HOPS = ('range POST', '(parse: JSON, base64, YAML)', '(write + rename)', 'write + rename, reader awake', 'ZeroMQ one way')  # as the probe prints them
RANGE, _, REPLACE, AWAKE, MESSAGE = HOPS
ETCDCTL = 'etcdctl watch'
# the way, and the hops that it cannot do without
WAYS = {
    "agent's watch, file": ('watch event', RANGE, AWAKE),
    "agent's watch, snapshot": ('watch event', RANGE, AWAKE),
    'relay + push, file': ('watch event', MESSAGE, RANGE, AWAKE),
    'relay + push, snapshot': ('watch event', MESSAGE, RANGE, AWAKE),
    "confd's way (imitation), file": ('watch event', RANGE, AWAKE),
}


def agent(place, cluster, key, server='', push=''):
    """pulletd with one config, web, of that key; nothing but a hint makes it pull, and puts come faster than the floor between two."""
    urls = ', '.join(f'"{u}"' for u in cluster.urls)
    harness.Agent(place, f'''
agent: {{state_dir: {place.path("state")}, runtime_dir: {place.path("run")}, log: {{level: warn}}}}
servers: {{main: {{kind: etcd, urls: [{urls}]{server}}}}}
{push}
configs: {{web: {{from: [{{server: main, path: {key}}}], file: {place.path("web.yaml")}, interval: 1h, push_min_interval: 0s}}}}
''')


class Bench:
    def __init__(self, place, changes):
        self.place, self.changes, self.number = place, changes, 1
        self.cluster = etcd.Etcd(place)
        for key in KEYS.values():
            self.cluster.put(key, 'change: 10000000\n')
        relay = harness.Program([harness.PULLET, 'relay', '--push', 'tcp://127.0.0.1:0', '--etcd', self.cluster.url, '--prefix', '/bench/relay/'],
                                read='stdout')
        place.callback(relay.close)
        endpoint = relay.log.wait('^publishing on ').split()[-1]
        self.watching, self.relayed, self.copied, self.bare = (place.below(name) for name in ('watch', 'relay', 'copy', 'bare'))
        agent(self.watching, self.cluster, KEYS['watch'], ', watch: true')
        agent(self.relayed, self.cluster, KEYS['relay'], push=f'push: [{{endpoint: "{endpoint}"}}]')
        copy = harness.Program([PROBE, 'copy', self.cluster.url, '/bench/copy/', self.copied.path('web.yaml')], read='stdout')
        place.callback(copy.close)
        copy.log.wait('^watching')

        # a client of gRPC, Debian's; its first line is of the key's first revision: the watch is there
        self.etcdctl = subprocess.Popen(['etcdctl', f'--endpoints={self.cluster.url}', 'watch', '--rev=1', KEYS['etcdctl']], stdout=subprocess.PIPE)
        place.callback(self.etcdctl.stdout.close)
        place.callback(self.etcdctl.wait)
        place.callback(self.etcdctl.kill)
        self.etcdctl.stdout.readline()

    def probe(self, *args):
        done = subprocess.run([PROBE, *map(str, args)], stdin=self.etcdctl.stdout, stdout=subprocess.PIPE, text=True, check=True)
        return [[int(number) / 1000 for number in line.split()] for line in done.stdout.splitlines()]

    def put(self, key, reader):
        """[(request to answer, request to seen)] in microseconds."""
        self.number += 1000 + self.changes
        return self.probe('put', self.cluster.url, KEYS[key], self.number, self.changes, reader)

    def round(self):
        """{row: [microseconds]}: of what is put, from the answer and from the request."""
        series = {
            "agent's watch, file": ('watch', 'file:' + self.watching.path('web.yaml')),
            "agent's watch, snapshot": ('watch', 'snapshot:' + self.watching.path('run/web.snap')),
            'relay + push, file': ('relay', 'file:' + self.relayed.path('web.yaml')),
            'relay + push, snapshot': ('relay', 'snapshot:' + self.relayed.path('run/web.snap')),
            "confd's way (imitation), file": ('copy', 'file:' + self.copied.path('web.yaml')),
            'watch event': ('bare', 'watch:' + KEYS['bare']),
            ETCDCTL: ('etcdctl', 'lines:etcdctl'),
        }
        rows = {'put': []}
        for name, (key, reader) in series.items():
            times = self.put(key, reader)
            rows['put'] += [answered for answered, _ in times]
            rows[name] = [seen - answered for answered, seen in times]
            rows[name + ' (request)'] = [seen for _, seen in times]
        hops = self.probe('hops', self.cluster.url, KEYS['bare'], self.bare.dir, self.changes)
        rows.update(zip(HOPS, map(list, zip(*hops))))
        return rows


def show(rounds):
    """Prints the tables."""
    middle = {name: statistics.median(statistics.median(r[name]) for r in rounds) for name in rounds[0]}
    late = {name: quantile([value for r in rounds for value in r[name]], 0.99) for name in rounds[0]}

    print(f'{"the bare hops":<34} {"p50":>8} {"p99":>8}   us')
    for name, told in (('put', 'put: request to answer'), ('watch event', 'put answered to event read'),
                       ('watch event (request)', 'put requested to event read'), (ETCDCTL, 'put answered to line of etcdctl'),
                       (ETCDCTL + ' (request)', 'put requested to line of etcdctl'), *((h, h) for h in HOPS)):
        print(f'{told:<34} {middle[name]:8.0f} {late[name]:8.0f}')
    print(f'\n{"":<34} {"from the answer":>26} {"from the request":>26}')
    print(f'{"a put to the value at a reader":<34}' + 2 * f' {"p50":>8} {"p99":>8} {"x hops":>8}' + '   us')
    for name, hops in WAYS.items():
        print(f'{name:<34}', end='')
        for of in ('', ' (request)'):
            least = middle[hops[0] + of] + sum(middle[h] for h in hops[1:])
            print(f' {middle[name + of]:8.0f} {late[name + of]:8.0f} {middle[name + of] / least:8.2f}', end='')
        print()
    # from the request: an event may come before the answer to the put
    file, told = middle["agent's watch, file (request)"], middle[ETCDCTL + ' (request)']
    print("x hops: its p50 : the sum of its hops' p50: event, range, write + rename to reader awake; of a relay ZeroMQ one way too")
    target('etcd put to the file: to etcdctl watch, write + rename', file / (told + middle[REPLACE]), 1.3)
    event, *hops = WAYS['relay + push, file']
    target('etcd put to the file by relay and push: its hops',
           middle['relay + push, file (request)'] / (middle[event + ' (request)'] + sum(middle[h] for h in hops)), 1.5)


def main():
    changes = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    print(f'\netcd: {changes} changes of 1 KiB each way in each of {rounds} rounds; load {os.getloadavg()[0]:.1f}')
    with Place() as place:
        bench = Bench(place, changes)
        show([bench.round() for _ in range(rounds)])


if __name__ == '__main__':
    main()
