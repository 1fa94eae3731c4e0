"""Receipts and `pullet fleet`: agents that tell a real etcd what they run, and the command that reads it: who is behind, refuses or is silent."""
import hashlib
import json
import os
import re
import signal
import subprocess
import time

import etcd
import harness
from harness import PULLET, Agent, Program

PREFIX = '/pullet/agents/'


def v(n):
    """The ETag of `pullet serve` for the document `n: N`, without its quotes."""
    return hashlib.sha256(f'n: {n}\n'.encode()).hexdigest()[:32]


class Place:
    """A directory of its own for one of several agents of a test."""

    def __init__(self, test, name):
        self.test, self.dir = test, test.path(name)
        os.makedirs(self.dir, exist_ok=True)

    def path(self, name):
        return os.path.join(self.dir, name)

    def write(self, name, text):
        self.test.write(os.path.join(os.path.basename(self.dir), name), text)

    def __getattr__(self, name):
        return getattr(self.test, name)


class Case(harness.Case):
    def setUp(self):
        super().setUp()
        _, self.url, _ = self.serve()
        self.put('n: 1\n')

    def put(self, text, name='web.yaml'):
        self.write('www/' + name, text)

    def start_etcd(self, **kw):
        self.etcd = etcd.Etcd(self, **kw)
        return self.etcd

    def host(self, name, more='', server='', report='', zone='eu', place=None, names=('web',)):
        """An agent that reports under this name."""
        place = Place(self, place or name)
        configs = ''.join(f'''  {config}:
{"" if "from:" in more else f"    url: {self.url}/web.yaml"}
    file: {place.path(config + ".yaml")}
    interval: 1h
{more}''' for config in names)
        agent = Agent(place, f'''agent:
  state_dir: {place.path("state")}
  runtime_dir: {place.path("run")}
  log: {{level: debug, format: text}}
  labels: {{zone: {zone}}}
servers:
  origin: {{urls: ["{self.url}"]}}
  main: {{kind: etcd, urls: {json.dumps(self.etcd.urls)}{server}}}
report: {{server: main, host: {name}, ttl: 5s{report}}}
configs:
{configs}''')
        agent.log.wait(f'published config={names[-1]} |last known good.*config={names[-1]} |nothing new.*{names[-1]} ')
        return agent

    def receipt(self, name):
        value = self.etcd.get(PREFIX + name)
        return json.loads(value) if value else None

    def fleet(self, *args, check=0, where=None):
        """(stdout, stderr) of `pullet fleet ARGS`; if check is not None it must end so."""
        where = where or ['--etcd', self.etcd.url]
        verb = [args[0]] if args and args[0] in ('wait', 'forget') else []
        done = subprocess.run([PULLET, 'fleet', *verb, *where, *args[len(verb):]], capture_output=True, text=True, timeout=harness.DEADLINE * 3, check=False,
                              env={k: v for k, v in os.environ.items() if k != 'PULLET_CONFIG'})
        if check is not None:
            self.assertEqual(done.returncode, check, f'{args}: {done.stdout}{done.stderr}')
        return done.stdout, done.stderr

    def watch(self, *args):
        """`pullet fleet --watch --json`."""
        p = Program([PULLET, 'fleet', '--etcd', self.etcd.url, '--watch', '--json', *args], read='stdout')
        self.addCleanup(p.close)
        return p

    def until_all(self, wanted, watch=None):
        """The first state of the fleet that `wanted` is true of: {config: its sum}."""
        watch = watch or self.watch()
        end, at = time.monotonic() + harness.DEADLINE * 2, 0
        while True:
            try:
                line = watch.log.wait('^{', start=at, timeout=max(0.1, end - time.monotonic()))
            except AssertionError as e:
                raise AssertionError(f'it never came to that; last: {watch.log.seen[-1:]}') from e
            at = watch.log.seen.index(line, at) + 1
            found = {c['config']: c for c in json.loads(line)['configs']}
            try:
                if wanted(found):
                    return found
            except KeyError:  # a config or host is not there
                pass

    def until(self, wanted, watch=None):
        """Of the config web: {host: row}, and its sum."""
        def hosts(found):
            return {h['host']: h for h in found['web']['hosts']}
        found = self.until_all(lambda found: wanted(hosts(found), found['web']), watch)
        return hosts(found), found['web']

    def until_hosts(self, number, **kw):
        return self.until(lambda hosts, found: len(hosts) == number and found['silent'] == 0, **kw)

    def report(self, agent):
        return json.loads(agent.get('/v1/status')[1])['report']

    def until_report(self, agent, wanted):
        """Until the agent's status says so of its receipts: it tells nobody, so it is asked."""
        end = time.monotonic() + harness.DEADLINE * 2
        while True:
            report = self.report(agent)
            if wanted(report):
                return report
            self.assertLess(time.monotonic(), end, report)
            time.sleep(0.05)


class Two(Case):
    """Two hosts, h1 in eu and h2 in us."""

    def setUp(self):
        super().setUp()
        self.start_etcd()

    def two(self, more='', **kw):
        self.agents = [self.host('h1', **kw), self.host('h2', more=more, zone='us', **kw)]
        self.watching = self.watch()
        self.until(lambda hosts, _: len(hosts) == 2 and all(h['state'] != 'applying' for h in hosts.values()), watch=self.watching)
        return self.agents

    def publish(self, text):
        self.put(text)
        for agent in self.agents:
            agent.refresh()

    def stop(self):
        for agent in self.agents:
            agent.stop()

    def test_a_change_arrives_at_both(self):
        self.two()
        out, _ = self.fleet()
        self.assertRegex(out, rf'^web: 2 of 2 hosts run {v(1)} \(100\.0%\)\n')
        self.publish('n: 2\n')
        out, _ = self.fleet('wait', 'web', '--version', f'W/"{v(2)}"', '--timeout', '30s')
        self.assertEqual(out, f'web: 2 of 2 hosts run {v(2)} (100.0%)\n')
        receipt = self.receipt('h2')
        self.assertEqual((receipt['v'], receipt['host'], receipt['labels']), (1, 'h2', {'zone': 'us'}))
        web = receipt['configs']['web']
        self.assertEqual((web['generation'], web['version'], web['state']), (2, v(2), 'ok'))
        self.assertEqual(web['digest'], hashlib.sha256(b'n: 2\n').hexdigest()[:16])
        self.assertLess(abs(web['since_ms'] / 1000 - time.time()), 60)
        self.assertEqual(json.loads(self.etcd.get(PREFIX + 'known/h1'))['configs'], ['web'])
        # by the digest that `sha256sum` prints, too, and by label
        self.fleet('wait', 'web', '--version', hashlib.sha256(b'n: 2\n').hexdigest(), '--timeout', '30s')
        found = json.loads(self.fleet('web', '--json', '--label', 'zone=us')[0])['configs'][0]
        self.assertEqual((found['count'], found['on_it'], found['percent'], [h['host'] for h in found['hosts']]), (1, 1, 100.0, ['h2']))
        self.assertEqual(found['versions'][0]['states'], {'ok': 1})
        self.fleet('web', '--label', 'zone=us', '--label', 'zone=eu', check=2)
        self.assertIn('no host that has nothing', self.fleet('nothing', check=2)[1])
        # what is wanted may be the old one
        out, _ = self.fleet('web', '--version', v(1))
        self.assertRegex(out, r'^web: 0 of 2 hosts run \w+ \(0\.0%\)\n(.*\n){3} +h1 +ok .*\n +h2 +ok ')
        self.stop()

    def test_one_rejects_and_says_why(self):
        self.write('schema.json', json.dumps({'properties': {'n': {'maximum': 5}}}))
        self.two(more=f'    schema: {self.path("schema.json")}\n')
        self.publish('n: 9\n')
        hosts, found = self.until(lambda hosts, _: hosts['h2']['state'] == 'rejected' and hosts['h1']['version'] == v(9), watch=self.watching)
        self.assertEqual((hosts['h2']['version'], hosts['h2']['rejected']), (v(1), v(9)))
        self.assertRegex(hosts['h2']['why'], '^schema: .*/n: an integer is more than the maximum 5')
        self.assertEqual((found['wanted'], found['on_it'], hosts['h1']['behind'], hosts['h2']['behind']), (v(9), 1, False, True))
        out, _ = self.fleet('web')
        self.assertRegex(out, rf'\n +h2 +rejected +{v(1)} +\S+Z +{v(9)}: schema: ')
        self.assertNotRegex(out, r'\n +h1 ')
        self.assertRegex(self.fleet('web', '--all')[0], r'\n +h1 +ok ')
        out, error = self.fleet('wait', 'web', '--version', v(9), '--timeout', '300ms', check=4)
        self.assertEqual(out, '')
        self.assertRegex(error, r'(?s)^web: 1 of 2 hosts run .*\n +h2 +rejected .*timed out: 100\.000%')
        self.fleet('wait', 'web', '--version', v(9), '--percent', '50', '--timeout', '30s')
        self.publish('n: 3\n')
        self.fleet('wait', 'web', '--version', v(3), '--timeout', '30s')
        self.stop()

    def test_one_that_is_killed_is_silent_when_its_lease_has_run_out(self):
        self.two()
        _, error = self.fleet('forget', 'h2', check=1)
        self.assertIn('h2 is alive', error)
        self.agents[1].close()
        begin = time.monotonic()
        # on a busy machine the other one may be late, too, once
        hosts, _ = self.until(lambda hosts, found: hosts['h2']['state'] == 'silent' and (found['silent'], found['on_it'], found['count']) == (1, 1, 2),
                              watch=self.watching)
        if not harness.SANITIZED:
            self.assertLess(time.monotonic() - begin, 8, 'the ttl is 5 s')
        self.assertEqual(hosts['h2']['labels'], {'zone': 'us'})
        out, _ = self.fleet('web')
        self.assertRegex(out, r'\(50\.0%\), 1 silent\n(.*\n)* +\(silent\) +- +1 +50\.0%\n(.*\n)* +h2 +silent')
        _, error = self.fleet('wait', 'web', '--version', v(1), '--timeout', '300ms', check=4)
        self.assertRegex(error, r'\n +h2 +silent')
        self.assertEqual(self.fleet('forget', 'h2')[0], 'h2 is forgotten\n')
        self.fleet('forget', 'h2', check=2)
        self.fleet('wait', 'web', '--version', v(1), '--timeout', '30s')
        # it comes back by itself
        self.agents[1] = self.host('h2', zone='us')
        self.until_hosts(2)
        self.assertTrue(self.etcd.get(PREFIX + 'known/h2'))
        self.stop()

    def test_one_that_was_stopped_is_said_to_be_until_it_runs_again(self):
        self.two()
        self.agents[1].stop()
        hosts, found = self.until(lambda hosts, _: hosts['h2']['state'] == 'silent', watch=self.watching)
        self.assertEqual((found['silent'], found['stopped'], found['count']), (1, 1, 2))
        self.assertAlmostEqual(hosts['h2']['stopped_ms'] / 1000, time.time(), delta=harness.DEADLINE)
        out, _ = self.fleet('web')
        self.assertRegex(out, r'\(50\.0%\), 1 silent \(1 of them stopped\)\n(.*\n)* +h2 +stopped +- +\S.* its agent was told to stop')
        self.agents[1] = self.host('h2', zone='us')
        hosts, found = self.until_hosts(2)
        self.assertEqual(found['stopped'], 0)
        self.agents[1].close()  # killed: nothing is said
        hosts, found = self.until(lambda hosts, _: hosts['h2']['state'] == 'silent')
        self.assertEqual((found['stopped'], 'stopped_ms' in hosts['h2']), (0, False))
        self.agents.pop(1)
        self.stop()

    def test_the_end_of_an_agent_does_not_wait_for_a_server_that_hangs(self):
        self.two()
        self.etcd.members[0].pause(True)
        try:
            self.agents[1].stop()  # under 2 s
        finally:
            self.etcd.members[0].pause(False)
        self.agents.pop(1)
        self.stop()

    def test_one_that_starts_again_leaves_no_gap(self):
        self.two()
        known, value = self.etcd.get(PREFIX + 'known/h1'), self.receipt('h1')
        self.agents[0].stop()
        self.agents[0] = self.host('h1')
        self.agents[0].log.wait('receipt written')
        self.assertEqual(self.etcd.get(PREFIX + 'known/h1'), known)
        self.assertGreater(self.receipt('h1')['since_ms'], value['since_ms'])
        shown = [found for line in self.watching.log.seen for found in json.loads(line)['configs']]
        self.assertEqual({found['silent'] for found in shown if found['count'] == 2}, {0})
        self.stop()

    def test_other_labels_by_a_reload_leave_no_gap(self):
        self.two()
        agent = self.agents[0]
        value, leases = self.receipt('h1'), self.report(agent)['leases']
        agent.signal(signal.SIGHUP)
        agent.log.wait('the new configuration is applied.*unchanged=1$')
        self.assertEqual((self.receipt('h1'), self.report(agent)['leases']), (value, leases), 'nothing has changed, nothing is written')
        self.write('h1/pullet.yaml', self.read('h1/pullet.yaml').replace(b'zone: eu', b'zone: us'))
        agent.signal(signal.SIGHUP)
        agent.log.wait('the new configuration is applied.*unchanged=1 other="labels report"')
        self.until(lambda hosts, _: hosts['h1']['labels'] == {'zone': 'us'}, watch=self.watching)
        shown = [found for line in self.watching.log.seen for found in json.loads(line)['configs']]
        self.assertEqual({found['silent'] for found in shown if found['count'] == 2}, {0})
        self.stop()

    def test_what_an_operator_does_is_seen(self):
        self.two()
        self.publish('n: 2\n')
        self.agents[0].cli('pin', 'web', '--reason', 'we are eating', check=0)
        self.agents[1].cli('rollback', 'web', check=0)
        hosts, _ = self.until(lambda hosts, _: hosts['h1']['state'] == 'pinned' and hosts['h2']['state'] == 'held' and hosts['h2']['behind'], watch=self.watching)
        self.assertRegex(hosts['h1']['why'], r'^by \S+ \(uid \d+\): we are eating$')
        self.assertEqual((hosts['h2']['version'], hosts['h2']['rejected']), (v(1), v(2)))
        self.assertRegex(hosts['h2']['why'], '^operator: ')
        self.agents[0].cli('suspend', 'web', '--reason', 'the server moves', check=0)
        hosts, _ = self.until(lambda hosts, _: hosts['h1']['state'] == 'suspended', watch=self.watching)
        self.assertRegex(hosts['h1']['why'], r'^by \S+ \(uid \d+\): the server moves$')
        self.agents[0].cli('resume', 'web', check=0)
        self.until(lambda hosts, _: hosts['h1']['state'] == 'pinned', watch=self.watching)
        self.stop()

    def test_a_rollout_that_has_not_come_holds_a_host_which_refuses_nothing(self):
        self.put('percent: 0\n', 'web.rollout')
        self.two(more='    rollout: {server: origin, path: /web.rollout}\n')
        self.publish('n: 2\n')
        hosts, found = self.until(lambda hosts, _: hosts['h2']['state'] == 'held' and hosts['h1']['version'] == v(2), watch=self.watching)
        self.assertEqual((hosts['h2']['version'], hosts['h2']['rejected'], hosts['h2']['behind'], found['wanted']), (v(1), v(2), True, v(2)))
        self.assertRegex(hosts['h2']['why'], '^rollout: ')
        self.put('percent: 100\n', 'web.rollout')
        self.agents[1].refresh()
        self.fleet('wait', 'web', '--version', v(2), '--timeout', '30s')
        self.stop()

    def test_layers_have_a_version_each(self):
        self.put('m: 1\n', 'base.yaml')
        more = '    from: [{server: origin, path: /web.yaml}, {server: origin, path: /base.yaml}]\n'
        self.two(more=more)
        self.put('n: 7\n', 'base.yaml')
        for agent in self.agents:
            agent.refresh()
        self.fleet('wait', 'web', '--version', v(7), '--percent', '50', '--timeout', '30s')
        found = json.loads(self.fleet('web', '--json')[0])['configs'][0]
        self.assertEqual({h['host']: (h['version'], h['others']) for h in found['hosts']}, {'h1': (v(1), None), 'h2': (v(1), v(7))})
        self.assertEqual(len({x['digest'] for x in found['versions']}), 2)
        self.stop()

    def test_an_application_that_cannot_be_told_is_no_success(self):
        self.two(more=f'    reload: {{run: [/bin/sh, -c, "test -e {self.path("up")}"]}}\n')
        self.publish('n: 2\n')
        hosts, _ = self.until(lambda hosts, _: hosts['h2']['state'] == 'failing' and hosts['h2']['version'] == v(2), watch=self.watching)
        self.assertIn('the reload failed', hosts['h2']['why'])
        self.write('up', '')
        self.until(lambda hosts, _: hosts['h2']['state'] == 'ok', watch=self.watching)
        self.stop()

    def test_a_version_that_is_probed_is_being_applied(self):
        self.two(more=f'    probe: {{run: [/bin/true], for: 10s, every: 100ms}}\n')
        self.publish('n: 2\n')
        self.until(lambda hosts, _: hosts['h2']['state'] == 'applying' and hosts['h2']['version'] == v(2), watch=self.watching)
        self.until(lambda hosts, _: hosts['h2']['state'] == 'ok', watch=self.watching)
        self.stop()

    def test_two_agents_of_the_same_name_are_told(self):
        self.two()
        twin = self.host('h1', place='twin')
        twin.log.wait("this host's receipt was changed by another writer.*another agent has the same name")
        self.until_report(twin, lambda r: r['error'] and r['error'].startswith('the key was changed by another writer: unless etcd'))
        self.assertIn('receipts to the server main: the key was changed by another writer: unless etcd was restored, another agent has the same name: give each its own with report: host\n',
                      twin.cli('status', check=0)[1])
        twin.stop()
        self.stop()

    def test_fleet_by_the_agents_configuration(self):
        self.two()
        where = ['-c', self.agents[0].config_path]
        self.assertIn('2 of 2', self.fleet(where=where)[0])
        self.assertIn('2 of 2', self.fleet(where=[*where, '--server', 'main'])[0])
        self.assertIn('has no server other', self.fleet(where=[*where, '--server', 'other'], check=78)[1])
        self.assertIn('no host has a receipt below /elsewhere/', self.fleet(where=[*where, '--prefix', '/elsewhere/'], check=2)[1])
        self.assertIn('use --etcd', self.fleet(where=['-c', self.path('none.yaml')], check=78)[1])
        self.write('plain.yaml', self.config('http://127.0.0.1:1/x'))
        self.assertIn('has no report', self.fleet(where=['-c', self.path('plain.yaml')], check=78)[1])
        self.stop()


class Alone(Case):
    """One host."""

    def test_etcd_that_is_away_disturbs_nobody_and_gets_it_when_it_is_back(self):
        self.start_etcd()
        agent = self.host('h1')
        self.until_hosts(1)
        self.etcd.kill(0)
        self.put('n: 2\n')
        begin = time.monotonic()
        self.assertEqual(agent.refresh()['outcome'], 'published')
        if not harness.SANITIZED:
            self.assertLess(time.monotonic() - begin, 1)
        self.until_report(agent, lambda r: r['state'] == 'failing' and 'refused' in r['error'])
        agent.log.wait('cannot write the receipt')
        _, error = self.fleet(check=1)
        self.assertIn('connection refused', error)
        self.fleet('wait', 'web', '--version', 'x', '--timeout', '5s', check=1)
        self.etcd.restart(0)
        agent.log.wait('receipt writes recovered')
        self.fleet('wait', 'web', '--version', v(2), '--timeout', '30s')
        self.assertEqual(self.report(agent)['state'], 'ok')
        # and one that answers nobody does not keep the agent from ending
        self.etcd.pause(0)
        self.put('n: 3\n')
        self.assertEqual(agent.refresh()['outcome'], 'published')
        self.until_report(agent, lambda r: r['state'] == 'failing')
        agent.stop()
        self.etcd.resume(0)

    def test_a_restored_etcd_gets_it_again(self):
        self.start_etcd()
        agent = self.host('h1')
        self.until_hosts(1)
        backup = self.etcd.save()
        self.put('n: 2\n')
        agent.refresh()
        self.fleet('wait', 'web', '--version', v(2), '--timeout', '30s')
        self.etcd.restore(backup)
        self.fleet('wait', 'web', '--version', v(2), '--timeout', '40s')
        agent.stop()

    def test_a_member_that_dies_is_replaced_by_another(self):
        self.start_etcd(members=3)
        agent = self.host('h1')
        self.until_hosts(1)
        for member in (0, 1):
            self.etcd.kill(member)
            self.etcd.leader()
            self.put(f'n: {2 + member}\n')
            agent.refresh()
            where = ['--etcd', self.etcd.urls[2]]
            self.fleet('wait', 'web', '--version', v(2 + member), '--timeout', '40s', where=where)
            self.etcd.restart(member)
        agent.stop()

    def test_users(self):
        self.start_etcd()
        self.write('password', 'secret\n')
        self.write('readonly', 'secret\n')
        self.write('wrong', 'nonsense\n')
        self.etcd.enable_auth(users={'pullet': ('secret', []), 'reader': ('secret', [PREFIX])})
        right = {'permType': 'READWRITE', 'key': etcd.b64(PREFIX), 'range_end': etcd.b64(etcd.after(PREFIX))}
        self.etcd.call('auth/role/grant', {'name': 'read-pullet', 'perm': right})

        def auth(user, file):
            return f', auth: {{basic: {{user: {user}, password_file: {self.path(file)}}}}}'

        def where(user, file):
            return ['--etcd', self.etcd.url, '--user', user, '--password-file', self.path(file)]
        agent = self.host('h1', server=auth('pullet', 'password'))
        self.fleet('wait', 'web', '--version', v(1), '--timeout', '30s', where=where('reader', 'password'))
        self.assertIn('1 of 1', self.fleet(where=['-c', agent.config_path])[0])
        self.assertIn('the login was refused', self.fleet(where=where('reader', 'wrong'), check=1)[1])
        self.assertRegex(self.fleet(check=1)[1], 'user name is empty|credentials')
        self.assertIn('permission denied', self.fleet('forget', 'h9', where=where('reader', 'password'), check=1)[1])
        # a token that is not known any more is replaced
        self.etcd.set_password('pullet', 'other')
        self.write('password', 'other\n')
        self.put('n: 2\n')
        agent.refresh()
        self.fleet('wait', 'web', '--version', v(2), '--timeout', '30s', where=['-c', agent.config_path])
        # who may only read, or has a wrong password, is told, and pulls all the same
        for user, file, why in (('reader', 'readonly', 'permission denied'), ('pullet', 'wrong', 'the login was refused')):
            other = self.host('h2', server=auth(user, file), place=f'as-{file}')
            self.until_report(other, lambda r, why=why: r['state'] == 'failing' and why in r['error'])
            self.put(f'n: {user}\n')
            self.assertEqual(other.refresh()['outcome'], 'published')
            other.stop()
        agent.stop()

    def test_mutual_tls(self):
        self.start_etcd(tls='mutual')
        files = {name: self.path(name + '.pem') for name in ('ca', 'client')}
        tls = f', tls: {{ca: {files["ca"]}, cert: {files["client"]}, key: {self.path("client.key")}}}'
        agent = self.host('h1', server=tls)
        where = ['--etcd', self.etcd.url, '--ca', files['ca'], '--cert', files['client'], '--key', self.path('client.key')]
        self.fleet('wait', 'web', '--version', v(1), '--timeout', '30s', where=where)
        self.assertIn('1 of 1', self.fleet(where=['-c', agent.config_path])[0])
        self.fleet(check=1)
        agent.stop()

    def test_many_configs_are_many_pages_and_one_change_is_one_write(self):
        self.start_etcd()
        names = [f'c{n:03}' for n in range(250)]
        agent = self.host('h1', names=names)
        self.until_all(lambda found: len(found) == 250 and all(c['on_it'] == 1 for c in found.values()))
        configs = json.loads(self.fleet('--json')[0])['configs']
        self.assertEqual([(c['config'], c['on_it'], c['silent']) for c in configs], [(n, 1, 0) for n in names])
        self.assertEqual(sorted(self.etcd.get(PREFIX, prefix=True)), [PREFIX + k for k in ('h1', 'h1#2', 'h1#3', 'known/h1')])
        self.until_report(agent, lambda r: r['sent'] >= 3)
        sent = self.report(agent)['sent']
        self.put('n: 2\n')
        agent.refresh('c120')
        self.fleet('wait', 'c120', '--version', v(2), '--timeout', '30s')
        self.assertEqual(self.report(agent)['sent'], sent + 1)
        agent.stop()

    def test_a_fast_change_of_many_is_few_writes(self):
        self.start_etcd()
        agent = self.host('h1')
        self.until_hosts(1)
        sent = self.report(agent)['sent']
        begin = time.monotonic()
        for n in range(2, 60):
            self.put(f'n: {n}\n')
            agent.refresh()
        self.fleet('wait', 'web', '--version', v(59), '--timeout', '30s')
        self.assertLessEqual(self.report(agent)['sent'] - sent, 2 + (time.monotonic() - begin) / 5)
        agent.stop()

    def test_without_a_name_the_hostname_counts(self):
        self.start_etcd()
        push = f'servers: {{main: {{kind: etcd, urls: ["{self.etcd.url}"]}}}}\nreport: {{server: main}}'
        agent = Agent(self, self.config(self.url + '/web.yaml', push=push))
        report = self.until_report(agent, lambda r: r['state'] in ('ok', 'off'))
        self.assertEqual(report['key'], PREFIX + os.uname().nodename)
        self.assertEqual(report['state'], 'ok' if re.fullmatch(r'[A-Za-z0-9][A-Za-z0-9._-]{0,63}', os.uname().nodename) else 'off')
        agent.stop()


class Reader(Case):
    """`pullet fleet` on receipts that the test writes itself."""

    def setUp(self):
        super().setUp()
        self.start_etcd()
        self.leases = {}

    def page(self, name, **web):
        config = {'generation': 1, 'version': 'v1', 'digest': '0' * 16, 'state': 'ok', 'since_ms': 1700000000000, 'pulled_ms': 10, **web}
        return PREFIX + name, json.dumps({'v': 1, 'host': name, 'pullet': '0.1.0', 'since_ms': 1, 'labels': {}, 'configs': {'web': config}})

    def put_host(self, name, **web):
        """As an agent does it: known, and under a lease of its own, which stays the same."""
        self.leases.setdefault(name, self.etcd.leases(1)[0])
        key, value = self.page(name, **web)
        self.etcd.put_all(dict([self.known(name), (key, value)]), leases={key: self.leases[name]})

    def known(self, name):
        return PREFIX + 'known/' + name, json.dumps({'v': 1, 'first_ms': 1, 'labels': {}, 'configs': ['web']})

    def test_ten_thousand_hosts(self):
        hosts, pairs, leases = 2000 if harness.SANITIZED else 10000, [], {}
        for n, lease in enumerate(self.etcd.leases(hosts)):
            pairs.append(self.known(f'h{n:05}'))
            if n % 100 != 99:
                new = n % 10 == 0
                pairs.append(self.page(f'h{n:05}', version='v2' if new else 'v1', pulled_ms=20 if new else 10))
                leases[pairs[-1][0]] = lease
        for at in range(0, len(pairs), 120):
            self.etcd.put_all(dict(pairs[at:at + 120]), leases=leases)
        begin = time.monotonic()
        found = json.loads(self.fleet('web', '--json')[0])['configs'][0]
        if not harness.SANITIZED:
            self.assertLess(time.monotonic() - begin, 10)
        self.assertEqual((found['count'], found['silent'], found['wanted'], found['on_it']), (hosts, hosts // 100, 'v2', hosts // 10))
        self.assertEqual([(v['version'], v['hosts']) for v in found['versions']], [('v1', hosts * 89 // 100), ('v2', hosts // 10)])
        out, _ = self.fleet('web')
        self.assertRegex(out, rf'^web: {hosts // 10} of {hosts} hosts run v2 \(10\.0%\), {hosts // 100} silent\n')
        self.assertEqual(len(re.findall(r'\n +h\d+ ', out)), 20)
        self.assertRegex(out, rf'\n  and {hosts * 9 // 10 - 20} more: --all lists them\n$')
        self.fleet('wait', 'web', '--version', 'v2', '--percent', '10', '--timeout', '10s')
        _, error = self.fleet('wait', 'web', '--version', 'v2', '--percent', '10.001', '--timeout', '5s', check=4)
        self.assertIn('timed out: ', error)  # the end may come within a reading, where that takes long

    def test_large_receipts_are_read_in_smaller_pieces(self):
        why = 'x' * 200
        configs = {f'c{n:03}{"n" * 60}': {'generation': 1, 'version': 'v' * 255, 'others': 'o' * 900, 'state': 'ok', 'why': why} for n in range(100)}
        for n, lease in enumerate(self.etcd.leases(120)):
            self.etcd.put(f'{PREFIX}h{n:03}', json.dumps({'v': 1, 'host': f'h{n:03}', 'labels': {}, 'configs': configs}), lease=lease)
            self.etcd.put(f'{PREFIX}known/h{n:03}', json.dumps({'v': 1, 'labels': {}, 'configs': sorted(configs)}))
        configs = json.loads(self.fleet('--json')[0])['configs']
        self.assertEqual((len(configs), {c['count'] for c in configs}), (100, {120}))

    def test_watch_goes_on_through_a_compaction_and_a_restart(self):
        self.put_host('h1')
        watch = self.watch('web')
        self.until_hosts(1, watch=watch)
        self.put_host('h2')
        self.until_hosts(2, watch=watch)
        self.etcd.kill(0)
        self.etcd.restart(0)
        for n in range(20):
            self.put_host('h3', generation=n + 1)
        self.etcd.compact()
        self.until_hosts(3, watch=watch)
        self.etcd.delete(PREFIX + 'h1')
        self.etcd.delete(PREFIX + 'known/h1')
        self.until(lambda hosts, _: sorted(hosts) == ['h2', 'h3'], watch=watch)
        backup = self.etcd.save()
        self.put_host('h4')
        self.until_hosts(3, watch=watch)
        self.etcd.restore(backup)
        self.until(lambda hosts, _: sorted(hosts) == ['h2', 'h3'], watch=watch)
        watch.signal(signal.SIGTERM)

    def test_watch_shows_only_what_changed(self):
        self.put_host('h1')
        watch = self.watch('web')
        self.until_hosts(1, watch=watch)
        for n in range(50):
            self.etcd.put('/other', str(n))
            self.put_host('h1')
        self.put_host('h2')
        self.until_hosts(2, watch=watch)
        lines = [json.loads(line) for line in watch.log.seen]
        self.assertEqual([c['configs'][0]['count'] for c in lines], [1, 2])

    def test_wait_for_a_fleet_that_is_being_set_up(self):
        wait = Program([PULLET, 'fleet', 'wait', '--etcd', self.etcd.url, 'web', '--version', 'v1', '--hosts', '2', '--timeout', '60s'], read='both')
        self.addCleanup(wait.close)
        self.put_host('h1')
        self.assertIn('100.000% of the hosts (of --hosts at least)', self.fleet('wait', 'web', '--version', 'v1', '--hosts', '2', '--timeout', '300ms', check=4)[1])
        self.assertIsNone(wait.process.poll())
        self.put_host('h2')
        self.assertEqual(wait.wait(), 0)
        self.assertIn('timed out', self.fleet('wait', 'web', '--version', 'v2', '--timeout', '0s', check=4)[1])
        self.assertIn('no host has none', self.fleet('wait', 'none', '--version', 'v1', '--timeout', '100ms', check=4)[1])
        out, _ = self.fleet('wait', 'web', '--version', 'v2', '--json', '--timeout', '100ms', check=4)
        self.assertEqual(json.loads(out)['on_it'], 0)

    def test_what_is_no_receipt_is_shown_apart(self):
        self.put_host('h1')
        self.assertNotIn('fit', self.fleet('--ghosts')[0])
        self.etcd.put(PREFIX + 'h2', 'nonsense')
        out, _ = self.fleet()
        self.assertIn('1 of 1', out)
        self.assertRegex(out, r'\n\n1 invalid receipt: 1 the value is not a receipt\n$')
        self.etcd.put(PREFIX + 'h3', '{"v":2}')
        self.etcd.put(PREFIX + 'a/b\x1b', '{}')
        for n in range(30):
            self.etcd.put(f'{PREFIX}bad/{n}', '')
        out, error = self.fleet('--ghosts')
        self.assertIn('\n\n33 invalid receipts: 31 the key names no host, 1 the value is not a receipt, 1 of a newer pullet\n', out)
        for line in ('h2  the value is not a receipt', 'h3  of a newer pullet', r"a/b\x1b  the key names no host", "bad/29  the key names no host"):
            self.assertIn(f'\n  {line}\n', out)
        self.assertEqual(error, '')
        found = json.loads(self.fleet('--json')[0])
        self.assertEqual(({'key': 'h2', 'why': 'the value is not a receipt'} in found['ghosts'], len(found['ghosts']), found['configs'][0]['count']), (True, 33, 1))
        out, error = self.fleet('wait', 'web', '--version', 'v1', '--timeout', '30s')
        self.assertEqual(out, 'web: 1 of 1 host run v1 (100.0%)\n')
        self.assertIn('33 invalid receipts: ', error)
        self.etcd.delete(PREFIX + 'known/h1')
        out, error = self.fleet(check=2)
        self.assertEqual(out, '')
        self.assertRegex(error, '(?s)^34 invalid receipts: .*1 an unknown host\n.*no host has a receipt below')

    def test_nothing_of_a_receipt_reaches_the_terminal_as_it_is(self):
        self.put_host('h1', state='rejected', why='no\x1b]0;x\x07\u009b')
        for args in ([], ['web', '--all']):
            out, _ = self.fleet(*args)
            self.assertNotRegex(out, '[\x00-\x09\x0b-\x1f\x7f\u0080-\u009f]')
            self.assertIn(r'no\x1b]0;x\x07\u009b', out)

    @harness.needs('a terminal')
    def test_colours_only_on_a_terminal(self):
        self.put_host('h1', state='rejected')
        command = f'{PULLET} fleet --etcd {self.etcd.url}'

        def on_a_terminal(**env):
            done = subprocess.run(['script', '-qec', command, '/dev/null'], stdin=subprocess.DEVNULL, capture_output=True, timeout=harness.DEADLINE, check=True,
                                  env={**os.environ, 'TERM': 'xterm', **env})
            return done.stdout
        self.assertIn(b'\x1b[31mrejected\x1b[0m', on_a_terminal())
        self.assertNotIn(b'\x1b', on_a_terminal(NO_COLOR='1'))
        self.assertNotIn('\x1b', self.fleet()[0])

    def test_options_that_are_wrong(self):
        table = (
            (['a', 'b'], 'one config at most'),
            (['wait', 'web'], 'name one config, and the --version'),
            (['wait', '--version', 'v'], 'name one config'),
            (['forget'], 'name one host'),
            (['forget', 'a/b'], "the host's name"),
            (['wait', 'web', '--version', 'v', '--percent', '0'], '--percent takes'),
            (['wait', 'web', '--version', 'v', '--percent', '100.1'], '--percent takes'),
            (['wait', 'web', '--version', 'v', '--percent', '9x'], '--percent takes'),
            (['wait', 'web', '--version', 'v', '--percent', '1.2345'], '--percent takes'),
            (['wait', 'web', '--version', 'v', '--hosts', '0'], '--hosts takes'),
            (['wait', 'web', '--version', 'v', '--hosts', '-1'], '--hosts takes'),
            (['wait', 'web', '--version', 'v', '--timeout', 'x'], '--timeout takes'),
            (['wait', 'web', '--version', ''], '--version takes'),
            (['--version', 'v'], '--version is that of one config'),
            (['--label', 'x'], '--label takes'),
            (['--label', '=x'], '--label takes'),
            (['--percent', '5'], 'unrecognized option'),
            (['wait', 'web', '--version', 'v', '--watch'], 'unrecognized option'),
            (['forget', 'h1', '--json'], 'unrecognized option'),
            (['--prefix', '/a'], '--prefix must end with /'),
            (['--server', 'x'], '--etcd is used alone'),
            (['-c', 'x'], '--etcd is used alone'),
            (['--user', 'x'], 'belong together'),
            (['--key', '/x'], '--key needs --cert'),
        )
        for args, words in table:
            self.assertIn(words, self.fleet(*args, check=64)[1], args)
        self.assertIn('belong to --etcd', self.fleet('--user', 'x', where=['-c', 'x'], check=64)[1])
        self.assertIn('the address of --etcd', self.fleet(where=['--etcd', 'ftp://x'], check=64)[1])
        for args in (['--help'], ['wait', '--help'], ['forget', '-h']):
            self.assertIn('Usage: pullet fleet', self.fleet(*args)[0])


if __name__ == '__main__':
    harness.main()
