"""Who writes into the etcd of the receipts, and is no agent: hosts that nobody has, hosts of others, what never goes away, and more than memory holds.

What fits nothing is shown apart, by its kind, and moves no percentage: four agents of which two have the new version are 50 %, whatever lies beside
them.
"""
import base64
import itertools
import json
import os
import subprocess
import time

import attack
import harness
import test_fleet
from test_fleet import PREFIX, v

GHOSTS = 300


def page(host, version='v9', **more):
    """What an agent says that runs the version; `more`: other members of the receipt, or of its config."""
    config = {'generation': 3, 'version': version, 'digest': 'd' * 16, 'state': 'ok', 'since_ms': 1700000000000, 'pulled_ms': int(time.time() * 1000)}
    root = {'v': 1, 'host': host, 'pullet': '0.1.0', 'since_ms': 1700000000000, 'labels': {'zone': 'eu'}}
    config.update({k: more.pop(k) for k in list(more) if k in ('version', 'digest', 'state', 'why', 'away', 'others', 'pulled_ms')})
    return json.dumps({**root, 'configs': {more.pop('config', 'web'): config}, **more})


class Ghosts(test_fleet.Case):
    def setUp(self):
        super().setUp()
        self.start_etcd()
        self.write('schema.json', json.dumps({'properties': {'n': {'maximum': 5}}}))
        schema = f'    schema: {self.path("schema.json")}\n'
        self.agents = [self.host('h1'), self.host('h2'), self.host('h3', more=schema), self.host('h4', more=schema)]
        self.publish(9)
        self.until(lambda hosts, found: (len(hosts), found['on_it'], found['silent'], found['wanted']) == (4, 2, 0, v(9)) and
                   hosts['h3']['state'] == hosts['h4']['state'] == 'rejected')

    def publish(self, n):
        self.put(f'n: {n}\n')
        for agent in self.agents:
            agent.refresh()

    def ghosts(self, kind, pairs, leases=None):
        """Puts keys and values, each under the lease at its place, or under one of its own; they are told by `kind`, and count nothing."""
        pairs = [(PREFIX + key, value) for key, value in pairs]
        leases = self.etcd.leases(len(pairs)) if leases is None else leases
        size = max(1, min(100, 1000000 // max(len(value) for _, value in pairs)))
        for at in range(0, len(pairs), size):
            self.etcd.put_all(dict(pairs[at:at + size]), leases=dict(zip([k for k, _ in pairs[at:at + size]], leases[at:at + size])))
        out, _ = self.fleet('web', '--ghosts')
        self.assertRegex(out, rf'^web: 2 of 4 hosts run {v(9)} \(50\.0%\), 2 rejected what the server has\n')
        self.assertIn(f'{len(pairs)} {kind}', out)
        found = json.loads(self.fleet('--json', 'web')[0])
        named = {ghost['key'] for ghost in found['ghosts'] if ghost['why'] == kind}
        self.assertEqual(len(named), len(pairs))
        config = found['configs'][0]
        self.assertEqual((config['count'], config['on_it'], config['percent'], config['silent']), (4, 2, 50.0, 0))
        self.assertEqual([h['host'] for h in config['hosts']], ['h1', 'h2', 'h3', 'h4'])

    def test_ghosts_of_each_kind_count_nothing(self):
        names, future = [f'g{n:03}' for n in range(GHOSTS)], int(time.time() * 1000) + 86400000
        none, one = [0] * GHOSTS, self.etcd.leases(1)
        table = (
            ('under no lease', [(name, page(name, v(9))) for name in names], none),
            ('the value names another host or page than the key', [('other-' + name, page(name, v(9))) for name in names], None),
            ('an unknown host', [('new-' + name, page('new-' + name, v(9))) for name in names], None),
            ('a lease shared by several hosts', [('one-' + name, page('one-' + name, v(9))) for name in names], one * GHOSTS),
            ('larger than an agent writes', [('huge', page('huge', why='x' * 800000)), *(('long-' + name, page('long-' + name, 'v' * 300)) for name in names)], None),
            ('invalid characters', [('odd-' + name, page('odd-' + name, 'v\x1b[31m' + name)) for name in names], None),
            ("the key names no host", [(f'{name}\x1b]0;x\x07', page(name, v(9))) for name in names], None),
            ('a time in the future', [('soon-' + name, page('soon-' + name, v(9), pulled_ms=future)) for name in names], None),
            ('the value is not a receipt', [('none-' + name, '{"v":1}' * (1 + n % 2)) for n, name in enumerate(names)], None),
        )
        for kind, pairs, leases in table:
            with self.subTest(kind):
                self.ghosts(kind, pairs, leases)
        # of hosts that are known, but not for this config: that one is not theirs
        for name in names:
            self.etcd.put(f'{PREFIX}known/db-{name}', json.dumps({'v': 1, 'first_ms': 1, 'labels': {}, 'configs': ['db']}))
        self.ghosts('a config unknown for this host', [('db-' + name, page('db-' + name, v(9))) for name in names])
        out, _ = self.fleet('web', '--ghosts')
        self.assertNotRegex(out, '[\x00-\x09\x0b-\x1f\x7f\u0080-\u009f]')
        self.assertIn(f'\n{GHOSTS * 10 + 1} invalid receipts: ', out)
        self.assertNotIn('under no lease\n', self.fleet('web')[0])
        # nobody is kept from waiting for those who are there, and nobody is let through by others
        _, error = self.fleet('wait', 'web', '--version', v(9), '--percent', '50.001', '--timeout', f'{harness.DEADLINE // 4}s', check=4)
        self.assertIn('web: 2 of 4 hosts run', error)
        self.publish(3)
        out, error = self.fleet('wait', 'web', '--version', v(3), '--timeout', f'{harness.DEADLINE}s')
        self.assertEqual(out, f'web: 4 of 4 hosts run {v(3)} (100.0%)\n')
        self.assertIn('invalid receipts: ', error)
        for agent in self.agents:
            agent.stop()

    def test_who_hangs_a_host_on_the_lease_of_another_takes_nobody_out_of_the_count(self):
        """Which of the two is true is not known: neither counts as having it, and the one that is known stays in the count."""
        kvs = self.etcd.call('kv/range', {'key': base64.b64encode(f'{PREFIX}h1'.encode()).decode()})['kvs']
        self.etcd.put(PREFIX + 'g1', page('g1', v(9)), lease=int(kvs[0]['lease']))
        hosts, found = self.until(lambda hosts, _: hosts['h1']['state'] == 'silent')
        self.assertEqual((found['on_it'], found['count'], sorted(hosts)), (1, 4, ['h1', 'h2', 'h3', 'h4']))
        out, _ = self.fleet('--ghosts')
        self.assertIn('\n  h1  a lease shared by several hosts\n', out)
        self.assertIn('\n  g1  a lease shared by several hosts\n', out)
        for agent in self.agents:
            agent.stop()


class Endless(harness.Case):
    """An etcd, or who can write to it, that never comes to an end."""

    def endless(self, pairs, memory_mb=800):
        """`pullet fleet` at an etcd that has pairs for ever: (standard error, how many were sent)."""
        sent = 0

        def answer(peer):
            nonlocal sent
            attack.request(peer)
            kvs = [{'key': base64.b64encode(k).decode(), 'value': base64.b64encode(value).decode(), 'lease': str(lease), 'mod_revision': '1'}
                   for k, value, lease in itertools.islice(pairs, 500)]
            sent += len(kvs)
            peer.sendall(attack.document(json.dumps({'header': {'cluster_id': '1', 'revision': '7'}, 'kvs': kvs, 'more': True, 'count': '1000000000'})))

        server = attack.Listener(self, answer)
        with subprocess.Popen([harness.PULLET, 'fleet', '--etcd', server.url], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as p:
            self.addCleanup(p.kill)
            said = p.stderr.read().decode()
            _, status, usage = os.wait4(p.pid, 0)
            p.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(p.returncode, 1, said)
        if not harness.SANITIZED:
            self.assertLess(usage.ru_maxrss // 1024, memory_mb)
        return said, sent

    def test_receipts_without_end(self):
        configs = ','.join(f'"c{n}":{{}}' for n in range(100))
        said, sent = self.endless((f'{PREFIX}h{n:09}'.encode(), f'{{"v":1,"host":"h{n:09}","labels":{{}},"configs":{{{configs}}}}}'.encode(), n + 1)
                                  for n in itertools.count())
        self.assertIn('the receipts below /pullet/agents/ exceed 256 MiB', said)
        self.assertGreater(sent, 1000)

    def test_a_read_that_comes_no_further(self):
        said, sent = self.endless(itertools.repeat((f'{PREFIX}h1'.encode(), b'{}', 0)))
        self.assertIn('invalid answer', said)
        self.assertEqual(sent, 1000)


if __name__ == '__main__':
    harness.main()
