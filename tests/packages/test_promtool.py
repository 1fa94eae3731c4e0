"""What Prometheus itself thinks of the metrics of the agent and of a relay, and of the alerts made of them. Package: prometheus."""
import os
import re
import subprocess
import sys

import yaml

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'integration'))
import harness  # noqa: E402
import test_metrics  # noqa: E402
import test_relay  # noqa: E402
from etcd import Etcd  # noqa: E402

RULES = os.path.join(harness.ROOT, 'packaging/prometheus')


def promtool(*args, stdin=''):
    done = subprocess.run(['promtool', *args], input=stdin, capture_output=True, text=True, timeout=harness.DEADLINE * 2, check=False, cwd=RULES)
    return done.returncode, done.stdout + done.stderr


def rules():
    with open(os.path.join(RULES, 'pullet.rules.yml'), encoding='utf-8') as f:
        return yaml.safe_load(f)['groups'][0]['rules']


def about_relays(rule):
    return rule['alert'].startswith('PulletRelay')


def check_alerts(case, about, table, written):
    """The metrics of these rules are in the table, and those with a label are written with it."""
    case.assertTrue(about)
    for rule in about:
        for name in re.findall(r'\b(?:pullet|process)_\w+', rule['expr']):
            case.assertIn(name, sorted(table), rule['alert'])
        for name, label, value in re.findall(r'(pullet_\w+)\{(\w+)="([^"]*)"\}', rule['expr']):
            series = [pairs for n, pairs in written.series if n == name and (label, value) in pairs]
            case.assertTrue(series, f'{rule["alert"]}: no {name} has {label}="{value}"')


class Agent(test_metrics.Metrics):
    """Of the metrics' tests the agent that does all it can."""

    def test_promtool_has_nothing_to_say_about_the_metrics(self):
        self.begin()
        self.agent.cli('pin', 'url', '--for', '1h', check=0)
        self.refuse('syntax', b'n: [\n')
        text = test_metrics.fetch(self.agent)[2]
        self.assertEqual(promtool('check', 'metrics', stdin=text), (0, ''))
        self.assertNotEqual(promtool('check', 'metrics', stdin=text.replace('# HELP pullet_config_ready', '# HELP pullet_config_other'))[0], 0)

    def test_each_alert_is_about_series_that_there_are(self):
        self.begin()
        self.scrape()
        check_alerts(self, [rule for rule in rules() if not about_relays(rule)], test_metrics.TABLE, self.scrape())


class Relay(test_relay.Monitor):
    def test_promtool_has_nothing_to_say_and_the_alerts_are_about_series_that_there_are(self):
        e = Etcd(self)
        publisher, _ = self.behind('--etcd', e.url, '--prefix', '/a/')
        publisher.send(test_relay.HEARTBEAT.encode(), {'v': 1, 'epoch': 'e'})
        written = self.until(lambda m: self.of_upstream(m, publisher, 'heartbeats_total'))
        self.assertEqual(promtool('check', 'metrics', stdin=self.ask('/metrics')[2]), (0, ''))
        check_alerts(self, [rule for rule in rules() if about_relays(rule)], test_relay.METRICS, written)


for inherited in [name for name in dir(test_metrics.Metrics) if name.startswith('test_')]:
    setattr(Agent, inherited, None)  # they run where they are
for inherited in [name for name in dir(test_relay.Monitor) if name.startswith('test_')]:
    setattr(Relay, inherited, None)


class Rules(harness.Case):
    def test_the_rules_are_good_and_fire_when_they_should(self):
        self.assertEqual(promtool('check', 'rules', 'pullet.rules.yml')[0], 0)
        code, out = promtool('test', 'rules', 'pullet.rules.test.yml')
        self.assertEqual(code, 0, out)

    def test_each_rule_has_its_test_and_what_an_alert_needs(self):
        with open(os.path.join(RULES, 'pullet.rules.test.yml'), encoding='utf-8') as f:
            cases = {case['name']: case['alert_rule_test'] for case in yaml.safe_load(f)['tests']}
        self.assertEqual([rule['alert'] for rule in rules()], list(cases))
        for name, checks in cases.items():
            self.assertEqual({bool(check['exp_alerts']) for check in checks if check['alertname'] == name}, {True, False}, name)
        for rule in rules():
            self.assertEqual(sorted(rule['annotations']), ['description', 'summary'])
            self.assertIn(rule['labels']['severity'], ('critical', 'warning', 'info'))

    def test_nothing_that_can_be_wrong_on_each_host_is_critical(self):
        """Ten thousand hosts whose server is gone are one page. A rollout that is aborted breaks nothing."""
        for rule in rules():
            if rule['alert'] == 'PulletFleetHeld':
                continue
            self.assertEqual(rule['labels']['severity'] == 'critical', bool(re.search(r'avg by \(job(, config)?\)', rule['expr'])), rule['alert'])


if __name__ == '__main__':
    harness.main()
