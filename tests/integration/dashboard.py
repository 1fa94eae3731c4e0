"""What packaging/prometheus/pullet.dashboard.json asks of Prometheus, against the series that there are."""
import json
import os
import re

import harness

RELAY = re.compile(r'\bpullet_relay_')


def read():
    with open(os.path.join(harness.ROOT, 'packaging/prometheus/pullet.dashboard.json'), encoding='utf-8') as f:
        return json.load(f)


def check(test, text, relay):
    """Each panel about relays, or about agents, and each legend of it, has its series and labels in the text that one of them answers."""
    names, labels = {'up', 'time'}, {'job', 'instance', 'le'}  # up is Prometheus' own
    for line in text.splitlines():
        if line[0] != '#':
            names.add(re.match(r'\w+', line)[0])
            labels |= set(re.findall(r'[{,](\w+)="', line))
    dashboard = read()
    test.assertEqual(len({p['id'] for p in dashboard['panels']}), len(dashboard['panels']))
    asked = [(t['expr'], t['legendFormat']) for p in dashboard['panels'] if p['type'] != 'row' for t in p['targets']]
    asked += [(v['query']['query'], '') for v in dashboard['templating']['list'] if v['type'] == 'query']
    asked = [(e, legend) for e, legend in asked if bool(RELAY.search(e)) == relay]
    test.assertGreater(len(asked), 5 if relay else 20)
    for e, legend in asked:
        found = re.findall(r'\b(?:pullet|process)_\w+|\bup\b', e)
        test.assertTrue(found, e)
        test.assertEqual(set(found) - names, set(), e)
        by = {x.strip() for by in re.findall(r'by \(([^)]*)\)', e) for x in by.split(',')}
        test.assertEqual((set(re.findall(r'[{,] *(\w+)(?:=~|!=|=)"', e)) | by | set(re.findall(r'{{(\w+)}}', legend))) - labels, set(), e)
