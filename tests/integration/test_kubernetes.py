"""The kustomize base of packaging/kubernetes, without a cluster: each name, port, key, file and volume that one of its objects refers to is
there, and an agent with its configuration, mounted as the kubelet mounts it, answers each probe and the PodMonitor, and takes a changed ConfigMap.
And the relays of relay.yaml."""
import os
import re
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request

import yaml

import harness
from etcd import Etcd
from harness import Agent, FaultServer, good
from servers.proxy import Proxy

BASE = os.path.join(harness.ROOT, 'packaging/kubernetes/base')


def read(name):
    with open(os.path.join(BASE, name), encoding='utf-8') as f:
        return yaml.safe_load(f)


class Operator(harness.Case):
    def test_the_alerts_as_an_object_of_the_prometheus_operator(self):
        with open(os.path.join(harness.ROOT, 'packaging/README.md'), encoding='utf-8') as f:
            command, = re.findall(r'^    (.*) \| kubectl apply -f -$', f.read(), re.M)
        made = yaml.safe_load(subprocess.run(['sh', '-c', command], cwd=harness.ROOT, check=True, capture_output=True, timeout=harness.DEADLINE).stdout)
        with open(os.path.join(harness.ROOT, 'packaging/prometheus/pullet.rules.yml'), encoding='utf-8') as f:
            rules = yaml.safe_load(f)
        self.assertEqual(made, {'apiVersion': 'monitoring.coreos.com/v1', 'kind': 'PrometheusRule', 'metadata': {'name': 'pullet'}, 'spec': rules})


class Kustomize(harness.Case):
    def setUp(self):
        super().setUp()
        self.kustomization = read('kustomization.yaml')
        self.objects = [read(name) for name in self.kustomization['resources']]
        self.pod = next(o for o in self.objects if o['kind'] == 'Deployment')['spec']['template']
        self.pullet = next(c for c in self.pod['spec']['initContainers'] if c['name'] == 'pullet')
        self.monitor = next(o for o in self.objects if o['kind'] == 'PodMonitor')
        self.settings = read('pullet.yaml')
        self.ports = {p['name']: p['containerPort'] for p in self.pullet['ports']}

    def test_what_is_referred_to_is_there(self):
        generated = {kind: {g['name']: g for g in self.kustomization[kind + 'Generator']} for kind in ('configMap', 'secret')}
        self.assertTrue(self.kustomization['generatorOptions']['disableNameSuffixHash'])  # or nothing would ever change in a pod
        self.assertEqual({f for f in os.listdir(BASE) if f != 'kustomization.yaml'},
                         set(self.kustomization['resources']) | {f for g in generated['configMap'].values() for f in g['files']})
        volumes = {v['name']: v for v in self.pod['spec']['volumes']}
        self.assertIn(volumes['config']['configMap']['name'], generated['configMap'])
        self.assertIn(volumes['secrets']['secret']['secretName'], generated['secret'])
        mounts = {m['mountPath']: m['name'] for m in self.pullet['volumeMounts']}
        for container in self.pod['spec']['initContainers'] + self.pod['spec']['containers']:
            for m in container['volumeMounts']:
                self.assertIn(m['name'], volumes)
        self.assertEqual(mounts['/etc/pullet'], 'config')
        token = self.settings['servers']['main']['auth']['bearer_file']
        self.assertEqual(mounts[os.path.dirname(token)], 'secrets')
        self.assertEqual([x.split('=')[0] for x in generated['secret']['web-pullet']['literals']], [os.path.basename(token)])
        file = self.settings['configs']['web']['file']
        self.assertEqual(mounts['/' + '/'.join(file.split('/')[1:3])], 'run')
        labels = self.pod['metadata']['labels']
        for chosen in self.objects:
            self.assertLessEqual(chosen['spec']['selector']['matchLabels'].items(), labels.items(), chosen['kind'])

    def test_the_sidecar_is_asked_as_the_base_is(self):
        with open(os.path.join(os.path.dirname(BASE.rstrip('/')), 'sidecar.yaml'), encoding='utf-8') as f:
            config, _, deployment = yaml.safe_load_all(f)
        sidecar, = deployment['spec']['template']['spec']['initContainers']
        for member in ('ports', 'startupProbe', 'readinessProbe', 'livenessProbe'):
            self.assertEqual(sidecar[member], self.pullet[member])
        self.assertEqual(yaml.safe_load(config['data']['pullet.yaml'])['agent'], self.settings['agent'])

    def ask(self, path):
        try:
            with urllib.request.urlopen(f'http://127.0.0.1:{self.port}{path}', timeout=harness.DEADLINE) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as e:
            return e.code, ''

    def mount(self, version, settings):
        """A version of the ConfigMap, in the volume."""
        os.mkdir(self.path('etc/..' + version))
        self.write(f'etc/..{version}/pullet.yaml', yaml.safe_dump(settings))
        os.symlink('..' + version, self.path('etc/..data_tmp'))
        os.rename(self.path('etc/..data_tmp'), self.path('etc/..data'))

    def test_an_agent_with_that_configuration_answers_what_asks(self):
        listen = self.settings['agent']['listen']
        probes = [self.pullet[kind]['httpGet'] for kind in ('startupProbe', 'readinessProbe', 'livenessProbe')]
        endpoints = self.monitor['spec']['podMetricsEndpoints']
        for asked in probes + endpoints:
            self.assertEqual(self.ports[asked['port']], int(listen.rsplit(':', 1)[1]))
        server = FaultServer(self)
        behave, server.behave = good(b'n: 1\n'), good(b'', status='404 Not Found')
        with socket.create_server(('127.0.0.1', 0)) as s:
            self.port = s.getsockname()[1]
        settings = self.settings
        settings['agent'] |= {'listen': f'127.0.0.1:{self.port}', 'state_dir': self.path('state'), 'runtime_dir': self.path('run')}
        settings['servers']['main'] |= {'urls': [server.url], 'auth': {'bearer_file': self.path('token')}}
        settings['configs']['web'] |= {'file': self.path('run/files/web.yaml'), 'interval': '100ms'}
        self.write('token', 'replace-me')
        os.chmod(self.path('token'), 0o600)
        os.mkdir(self.path('etc'))
        self.mount('one', settings)
        os.symlink('..data/pullet.yaml', self.path('etc/pullet.yaml'))
        agent = Agent.__new__(Agent)
        agent.test, agent.dir, agent.socket = self, self.dir, self.path('run/control.sock')
        harness.Program.__init__(agent, [harness.PULLETD, '-c', self.path('etc/pullet.yaml')])
        self.addCleanup(agent.close)
        agent.ready()
        startup, readiness, liveness = (p['path'] for p in probes)
        self.assertEqual((self.ask(startup)[0], self.ask(liveness)[0]), (503, 200))
        server.behave = behave
        agent.log.wait('published config=web generation=1')
        for path in startup, readiness, liveness:
            self.assertEqual(self.ask(path)[0], 200, path)
        for endpoint in endpoints:
            code, text = self.ask(endpoint['path'])
            self.assertEqual(code, 200)
            self.assertIn('pullet_config_ready{config="web"} 1\n', text)
        server.behave = harness.reset
        settings['configs']['more'] = dict(settings['configs']['web'], file=self.path('run/files/more.yaml'))
        self.mount('two', settings)
        agent.log.wait('the new configuration is applied.*added="1: more"')
        self.assertEqual(self.ask(startup)[0], 503)  # of that one there is no version
        for path in readiness, liveness:
            self.assertEqual(self.ask(path)[0], 200, path)
        agent.stop()


class Relays(harness.Case):
    def test_a_relay_with_those_options_answers_what_asks(self):
        with open(os.path.join(os.path.dirname(BASE), 'relay.yaml'), encoding='utf-8') as f:
            service, deployment, monitor = yaml.safe_load_all(f)
        pod = deployment['spec']['template']
        relay, = pod['spec']['containers']
        for selector in (service['spec']['selector'], deployment['spec']['selector']['matchLabels'], monitor['spec']['selector']['matchLabels']):
            self.assertEqual(selector, pod['metadata']['labels'])
        ports = {p['name']: p['containerPort'] for p in relay['ports']}
        options = dict(x[2:].split('=') for x in relay['command'][2:])
        self.assertEqual(relay['command'][:2], ['pullet', 'relay'])
        self.assertEqual(ports[service['spec']['ports'][0]['targetPort']], int(options['push'].rsplit(':', 1)[1]))
        asked = [relay[probe]['httpGet'] for probe in ('readinessProbe', 'livenessProbe')] + monitor['spec']['podMetricsEndpoints']
        self.assertEqual({ports[x['port']] for x in asked}, {int(options['listen'].rsplit(':', 1)[1])})
        self.assertEqual(os.path.dirname(options['curve-secret-key']), relay['volumeMounts'][0]['mountPath'])

        e = Etcd(self)
        proxy = Proxy(self, e.members[0].client)
        proxy.switch('refuse')
        subprocess.run([harness.PULLET, 'keygen', self.path('relay.key')], capture_output=True, check=True)
        options |= {'etcd': proxy.url, 'push': 'tcp://127.0.0.1:0', 'curve-secret-key': self.path('relay.key'), 'listen': '127.0.0.1:0'}
        program = harness.Program([harness.PULLET, 'relay', *[f'--{name}={value}' for name, value in options.items()]], read='both')
        self.addCleanup(program.close)
        url = re.search(r'http://[^/]+', program.log.wait('metrics on'))[0]

        def ask(path):
            try:
                with urllib.request.urlopen(url + path, timeout=harness.DEADLINE) as answer:
                    return answer.status
            except urllib.error.HTTPError as error:
                return error.code

        self.assertEqual([ask(x['path']) for x in asked], [503, 200, 200])
        proxy.switch('pass')
        deadline = time.monotonic() + harness.DEADLINE
        while ask(asked[0]['path']) != 200:
            self.assertLess(time.monotonic(), deadline)
        program.signal(signal.SIGTERM)
        self.assertEqual(program.wait(), 0)


if __name__ == '__main__':
    harness.main()
